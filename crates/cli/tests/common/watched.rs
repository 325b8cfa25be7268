//! A server with a configuration, and access to its metrics, dnstap and log.

use super::{events, nonesuch, text};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Time limit for each operation.
const LIMIT: Duration = Duration::from_secs(20);

/// A running server. It is killed on drop.
pub struct Watched {
    child: Child,
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
    pub address: SocketAddr,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watched {
    /// Serves watched.example. on an unused port, with `settings` at the top of its configuration
    /// and `tables` at the end.
    #[track_caller]
    pub fn start(folder: &Path, settings: &str, tables: &str) -> Self {
        let (zone, configuration) = (folder.join("zone"), folder.join("configuration.toml"));
        fs::write(&zone, "$TTL 60\n@ SOA ns h 42 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n").expect("written");
        let written = format!(
            "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\n{settings}\n{tables}\n[zone.\"watched.example.\"]\nfile = \"zone\"\n"
        );
        fs::write(&configuration, written).expect("written");
        let log = folder.join("log");
        let mut child = nonesuch(["serve", "--config", text(&configuration), "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a file"))
            .spawn()
            .expect("nonesuch starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let address = ready["ready"]["address"].as_str().and_then(|text| text.parse().ok());
        let Some(address) = address else {
            let _ = child.kill();
            panic!("not ready: {line:?}\n{}", fs::read_to_string(&log).unwrap_or_default());
        };
        Self { child, stdout, log, address }
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// The lines of the event `name` in the log so far, with these fields, each as `name=value`.
    pub fn events(&self, name: &str, fields: &[&str]) -> Vec<String> {
        events(&self.log(), name, fields).into_iter().map(str::to_owned).collect()
    }

    /// Stops the server and waits for its end.
    #[track_caller]
    pub fn stop(mut self) {
        let asked = std::process::Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.expect("kill").success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("its output");
        assert!(self.child.wait().expect("a child").success(), "{rest}{}", self.log());
    }

    /// Sends a query over UDP and returns the response.
    #[track_caller]
    pub fn ask(&self, name: &str, rtype: u16) -> Vec<u8> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        socket.send_to(&query(name, rtype), self.address).expect("sent");
        let mut response = vec![0; 4096];
        let octets = socket.recv(&mut response).expect("a response");
        response.truncate(octets);
        response
    }

    /// Sends a query over TCP and returns the response.
    #[track_caller]
    pub fn ask_over_tcp(&self, name: &str, rtype: u16) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        let query = query(name, rtype);
        stream.write_all(&[&(query.len() as u16).to_be_bytes(), &query[..]].concat()).expect("sent");
        let mut length = [0; 2];
        stream.read_exact(&mut length).expect("a length");
        let mut response = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut response).expect("a response");
        response
    }
}

/// A query with EDNS and DO.
pub fn query(name: &str, rtype: u16) -> Vec<u8> {
    let name: nonesuch_proto::Name = name.parse().expect("a name");
    let mut query = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    query.extend_from_slice(name.wire());
    query.extend_from_slice(&rtype.to_be_bytes());
    query.extend_from_slice(&[0, 1]);
    query.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
    query
}

/// Waits until a condition holds; fails after twenty seconds.
#[track_caller]
pub fn wait_until<T>(what: &str, holds: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(Instant::now() < end, "{what}: it did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}
