//! Removal of all cached data of a running resolver, in the way of its operators.

use super::config::{program, run_to_end};
use super::error::PeerError;
use super::info::Peer;
use super::server::PeerServer;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

/// File with the output of the program that removes the data.
const LOG_FILE: &str = "flush.log";
/// Time limit for each answer of Knot Resolver.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

impl PeerServer {
    /// Removes all cached data of a resolver, which keeps running.
    ///
    /// # Errors
    /// Fails if the peer is an authoritative server, or if the resolver refuses.
    pub fn flush_cache(&self) -> Result<(), PeerError> {
        let folder = self.folder();
        match self.peer {
            Peer::Unbound => {
                let config = folder.join("unbound.conf");
                self.flush_with(program("unbound-control").arg("-c").arg(config).args(["flush_zone", "."]))
            }
            Peer::BindResolver => {
                self.flush_with(program("rndc").arg("-c").arg(folder.join("rndc.conf")).arg("flush"))
            }
            Peer::PowerDnsRecursor => {
                let socket = format!("--socket-dir={}", folder.display());
                // "$" includes the names below.
                self.flush_with(program("rec_control").args([&socket, "wipe-cache", ".$"]))
            }
            Peer::KnotResolver => {
                let socket = folder.join("control").join(self.pid().to_string());
                let cleared = clear_knot_resolver(&socket);
                cleared.map_err(|source| PeerError::Read { path: socket, source })
            }
            Peer::Bind | Peer::Knot | Peer::Nsd | Peer::PowerDns | Peer::CoreDns => {
                let peer = self.peer.info().title;
                Err(PeerError::Unsupported { peer, what: "remove cached data: it is no resolver" })
            }
        }
    }

    fn flush_with(&self, command: &mut Command) -> Result<(), PeerError> {
        run_to_end(command, self.folder(), LOG_FILE)
    }
}

/// Sends a Lua command to the control socket of Knot Resolver 5. The socket sends a prompt, and the
/// result of each command.
fn clear_knot_resolver(socket: &std::path::Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.set_write_timeout(Some(ANSWER_LIMIT))?;
    stream.write_all(b"cache.clear()\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 512];
    // The result is a table with the number of removed records: `[count] => 12`.
    while answer.len() < 4096 {
        let length = stream.read(&mut part)?;
        answer.extend_from_slice(&part[..length]);
        if String::from_utf8_lossy(&answer).contains("count") {
            return Ok(());
        }
        if length == 0 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&answer).trim().to_owned();
    Err(io::Error::other(format!("cache.clear() failed: {text}")))
}
