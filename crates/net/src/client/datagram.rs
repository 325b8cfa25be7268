//! A query in a datagram, and its response (RFC 1035 section 4.2.1, RFC 5452).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::time::timeout_at;

use crate::error::{ClientError, ClientPhase, Transport};

/// Octets of the longest datagram.
const DATAGRAM_MAX: usize = 65_535;
/// Octets of the ID, at the start of queries and responses.
const ID_OCTETS: usize = 2;

/// Options for queries in datagrams.
#[derive(Clone, Debug)]
pub struct DatagramOptions {
    /// The local address; port 0 selects a free port. Default: the system chooses.
    pub local: Option<SocketAddr>,
    /// Timeout for the response to one attempt. Default 5 s.
    pub timeout: Duration,
    /// Maximum number of attempts, at least one. Default 3.
    pub attempts: usize,
}

impl Default for DatagramOptions {
    fn default() -> Self {
        Self { local: None, timeout: Duration::from_secs(5), attempts: 3 }
    }
}

/// A response, and how it was obtained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The octets of the response.
    pub octets: Vec<u8>,
    /// Number of attempts, from 1.
    pub attempts: usize,
    /// Time from the last attempt to the response.
    pub elapsed: Duration,
}

/// Sends a query to `server` and waits for the response. Each attempt uses a new port, which the
/// system chooses at random, unless `options.local` sets the port.
///
/// Only datagrams from the server are received. A datagram is the response if it has the ID of
/// `query` and `is_answer` returns `true` for it; `is_answer` must compare the question. Other
/// datagrams are treated as forged, and the wait continues (RFC 5452 section 9.1).
///
/// # Errors
/// [`ClientError::Local`] immediately if `options.local` cannot be used. Otherwise the error of the
/// last attempt: [`ClientError::TimedOut`] or [`ClientError::Failed`].
pub async fn exchange_udp(
    server: SocketAddr,
    query: &[u8],
    mut is_answer: impl FnMut(&[u8]) -> bool,
    options: &DatagramOptions,
) -> Result<Datagram, ClientError> {
    let mut attempts = 1;
    loop {
        let sent_at = Instant::now();
        let answer = attempt(server, query, &mut is_answer, options).await;
        match answer {
            Ok(octets) => return Ok(Datagram { octets, attempts, elapsed: sent_at.elapsed() }),
            Err(error @ ClientError::Local { .. }) => return Err(error),
            Err(error) if attempts >= options.attempts => return Err(error),
            Err(_) => attempts += 1,
        }
    }
}

async fn attempt(
    server: SocketAddr,
    query: &[u8],
    is_answer: &mut impl FnMut(&[u8]) -> bool,
    options: &DatagramOptions,
) -> Result<Vec<u8>, ClientError> {
    let failed =
        |phase| move |source| ClientError::Failed { server, transport: Transport::Udp, phase, source };
    let deadline = tokio::time::Instant::now() + options.timeout;
    let socket = open(server, options).await?;
    socket.send(query).await.map_err(failed(ClientPhase::Send))?;
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        match timeout_at(deadline, socket.recv(&mut buffer)).await {
            Err(_) => {
                let (transport, after) = (Transport::Udp, options.timeout);
                return Err(ClientError::TimedOut { server, transport, phase: ClientPhase::Receive, after });
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(failed(ClientPhase::Receive)(error)),
            Ok(Ok(length)) => {
                let datagram = &buffer[..length];
                if length >= ID_OCTETS
                    && datagram.get(..ID_OCTETS) == query.get(..ID_OCTETS)
                    && is_answer(datagram)
                {
                    buffer.truncate(length);
                    return Ok(buffer);
                }
            }
        }
    }
}

async fn open(server: SocketAddr, options: &DatagramOptions) -> Result<UdpSocket, ClientError> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let local = options.local.unwrap_or(any);
    let socket = UdpSocket::bind(local).await.map_err(|source| ClientError::Local { local, source })?;
    socket.connect(server).await.map_err(|source| ClientError::Failed {
        server,
        transport: Transport::Udp,
        phase: ClientPhase::Connect,
        source,
    })?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;
    use std::net;

    #[test]
    fn forged_answers_are_passed_over() {
        let server = net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let address = server.local_addr().expect("bound");
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 16];
            let (length, peer) = server.recv_from(&mut buffer).expect("received");
            let forger = net::UdpSocket::bind("127.0.0.1:0").expect("bound");
            forger.send_to(b"\x12\x34right", peer).expect("sent");
            for answer in [&b"\x12\x35right"[..], b"\x12", b"", b"\x12\x34wrong", b"\x12\x34right"] {
                server.send_to(answer, peer).expect("sent");
            }
            buffer[..length].to_vec()
        });
        let options = DatagramOptions { timeout: Duration::from_secs(10), ..DatagramOptions::default() };
        let answer = exchange_udp(address, b"\x12\x34?", |octets| octets.ends_with(b"right"), &options);
        let answer = block_on(answer).expect("answered");
        assert_eq!((answer.octets.as_slice(), answer.attempts), (&b"\x12\x34right"[..], 1));
        assert_eq!(answering.join().expect("ended"), b"\x12\x34?");
    }

    #[test]
    fn a_lost_query_is_asked_again_from_another_port() {
        let server = net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let address = server.local_addr().expect("bound");
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 16];
            let (_, first) = server.recv_from(&mut buffer).expect("received");
            let (length, second) = server.recv_from(&mut buffer).expect("received");
            server.send_to(&buffer[..length], second).expect("sent");
            (first, second)
        });
        let options = DatagramOptions { timeout: Duration::from_millis(100), ..DatagramOptions::default() };
        let answer = block_on(exchange_udp(address, b"ab", |_| true, &options)).expect("answered");
        let (first, second) = answering.join().expect("ended");
        assert_eq!(answer.attempts, 2);
        assert_ne!(first.port(), second.port());
    }

    #[test]
    fn silence_and_refusal_are_told_apart() {
        let silent = net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let address = silent.local_addr().expect("bound");
        let options =
            DatagramOptions { timeout: Duration::from_millis(5), attempts: 2, ..DatagramOptions::default() };
        let error = block_on(exchange_udp(address, b"ab", |_| true, &options)).expect_err("silence");
        assert!(
            matches!(error, ClientError::TimedOut { server, phase: ClientPhase::Receive, .. } if server == address),
            "{error}"
        );
        drop(silent);
        let error = block_on(exchange_udp(address, b"ab", |_| true, &options)).expect_err("nobody");
        assert!(
            matches!(&error, ClientError::Failed { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused),
            "{error}"
        );
    }
}
