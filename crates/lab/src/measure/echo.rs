//! The server that the floor is measured with.

use std::net::SocketAddr;

use nonesuch_net::udp::{RESPONSE_CAPACITY, UdpOptions, UdpServer, serve};
use nonesuch_net::{Listeners, NetError, bind};

const HEADER: usize = 12;

/// How it is run.
#[derive(Clone, Debug)]
pub struct EchoOptions {
    /// Where it listens: an address of this machine's loopback interface; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Octets of each answer.
    pub octets: usize,
    /// Threads, each with its own socket.
    pub workers: usize,
    /// The CPUs that they are bound to; empty: any.
    pub cpus: Vec<usize>,
}

/// Why it does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum EchoError {
    /// It would answer strangers, with more than they sent: an amplifier.
    #[error(
        "{address}: the echo server listens on addresses of the loopback interface alone: take 127.0.0.1:0"
    )]
    NotLoopback { address: SocketAddr },
    #[error("{octets} octets: an answer of the echo server has 12 to {RESPONSE_CAPACITY}")]
    Octets { octets: usize },
    #[error(transparent)]
    Net(#[from] NetError),
}

/// A running echo server; dropping it stops it.
#[derive(Debug)]
pub struct EchoServer {
    /// Where it listens.
    pub address: SocketAddr,
    _server: UdpServer,
}

impl EchoServer {
    /// Starts it.
    ///
    /// # Errors
    /// When the options make no sense or a socket cannot be opened.
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

/// The query with QR set (RFC 1035 section 4.1.1), cut or filled up to `octets`. What is no query has no answer.
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
