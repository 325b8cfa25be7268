//! The echo server, with which the echo floor is measured.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::load::QueryList;
use nonesuch_net::udp::{RESPONSE_CAPACITY, UdpOptions, UdpServer, serve};
use nonesuch_net::{Listeners, NetError, bind};

const HEADER: usize = 12;

/// Options of an echo server.
#[derive(Clone, Debug)]
pub struct EchoOptions {
    /// Listening address. It must be a loopback address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Size of each response, in octets.
    pub octets: usize,
    /// Number of threads. Each thread has its own socket.
    pub workers: usize,
    /// CPUs to which the threads are bound; empty: not bound.
    pub cpus: Vec<usize>,
}

/// Returns the command that runs an echo server on a free port of 127.0.0.1. `program` is
/// `nonesuch` with its environment.
pub(crate) fn echoing(mut program: Command, octets: u16, workers: u16) -> Command {
    program.args(["lab", "echo", "--listen", "127.0.0.1:0", "--octets", &octets.to_string()]);
    program.args(["--workers", &workers.to_string()]);
    program
}

/// Returns queries for servers that do not read them: 45 octets, as for a small zone.
pub(crate) fn default_queries() -> Arc<QueryList> {
    let list = QueryList::parse(Path::new("none"), b"name0000.example. A");
    Arc::new(list.unwrap_or_default())
}

/// Reasons why an echo server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum EchoError {
    /// The address is not a loopback address. On other addresses the server would be an amplifier:
    /// it would send responses that are larger than the queries to any client.
    #[error("{address}: the echo server listens only on loopback addresses: use 127.0.0.1:0")]
    NotLoopback { address: SocketAddr },
    #[error("{octets} octets: a response of the echo server must have 12 to {RESPONSE_CAPACITY} octets")]
    Octets { octets: usize },
    #[error(transparent)]
    Net(#[from] NetError),
}

/// A running echo server. Dropping it stops the server.
#[derive(Debug)]
pub struct EchoServer {
    /// The address on which the server listens.
    pub address: SocketAddr,
    _server: UdpServer,
}

impl EchoServer {
    /// Starts the server.
    ///
    /// # Errors
    /// Fails if an option is invalid or a socket cannot be opened.
    pub fn start(options: &EchoOptions) -> Result<Self, EchoError> {
        if !options.listen.ip().is_loopback() {
            return Err(EchoError::NotLoopback { address: options.listen });
        }
        if !(HEADER..=RESPONSE_CAPACITY).contains(&options.octets) {
            return Err(EchoError::Octets { octets: options.octets });
        }
        let Listeners { udp, local_addr, .. } = bind(options.listen, options.workers)?;
        let octets = options.octets;
        let make = move |_| move |query: &[u8], _: SocketAddr, out: &mut Vec<u8>| echo(query, octets, out);
        let pinned = UdpOptions { cpus: options.cpus.clone(), ..UdpOptions::default() };
        Ok(Self { address: local_addr, _server: serve(udp, &pinned, make)? })
    }
}

/// Writes the response to `out`: the query with QR set (RFC 1035 §4.1.1), truncated or padded with
/// zeros to `octets`. Returns `false` if the message is not a query; it then gets no response.
fn echo(query: &[u8], octets: usize, out: &mut Vec<u8>) -> bool {
    if query.len() < HEADER || query[2] & 0x80 != 0 {
        return false;
    }
    out.extend_from_slice(&query[..query.len().min(octets)]);
    out.resize(octets, 0);
    out[2] |= 0x80;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn options(listen: &str, octets: usize) -> EchoOptions {
        EchoOptions { listen: listen.parse().expect("an address"), octets, workers: 1, cpus: Vec::new() }
    }

    #[test]
    fn answers_have_the_size_asked_for() {
        for octets in [12, 20, 160, RESPONSE_CAPACITY] {
            let server = EchoServer::start(&options("127.0.0.1:0", octets)).expect("started");
            let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
            socket.send_to(query, server.address).expect("sent");
            let mut answer = [0; 2 * RESPONSE_CAPACITY];
            let length = socket.recv(&mut answer).expect("answered");
            assert_eq!((length, &answer[..3], answer[3]), (octets, &b"\x12\x34\x81"[..], 0));
        }
    }

    #[test]
    fn what_is_no_query_has_no_answer() {
        let mut out = Vec::new();
        assert!(!echo(b"\0\0\x01", 160, &mut out) && !echo(&[0x80; 12], 160, &mut out));
        assert!(out.is_empty());
    }

    #[test]
    fn an_amplifier_is_refused() {
        for wrong in ["0.0.0.0:0", "192.0.2.1:0", "[::]:0"] {
            let error = EchoServer::start(&options(wrong, 160)).expect_err("refused");
            assert!(matches!(error, EchoError::NotLoopback { .. }), "{error}");
        }
        for octets in [0, 11, RESPONSE_CAPACITY + 1] {
            let error = EchoServer::start(&options("127.0.0.1:0", octets)).expect_err("refused");
            assert!(matches!(error, EchoError::Octets { .. }), "{error}");
        }
    }
}
