//! A DNS server with a fault: forwards each message to a correct server, and alters queries and responses.

use crate::common::free_address;
use nonesuch_proto::message::{Header, Message};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time limit for the correct server.
const LIMIT: Duration = Duration::from_secs(5);

/// Alters the response to a query; the flag is set for TCP.
type ResponseChange = fn(&[u8], Vec<u8>, bool) -> Option<Vec<u8>>;

/// A fault. Both functions also get the transport: whether it is TCP.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    /// Alters a query before it is forwarded.
    pub(super) query: fn(&mut Vec<u8>, bool),
    /// Alters the response to a query; `None` drops it. Over TCP, this closes the connection.
    pub(super) response: ResponseChange,
    /// Whether a response over UDP comes from another port than that of the server.
    pub(super) from_other_port: fn() -> bool,
}

impl Fault {
    /// No fault.
    pub(super) const NONE: Self =
        Self { query: |_, _| {}, response: |_, response, _| Some(response), from_other_port: || false };

    /// A fault of responses.
    pub(super) const fn of_responses(response: ResponseChange) -> Self {
        Self { response, ..Self::NONE }
    }

    /// A fault of the processing of queries.
    pub(super) const fn of_queries(query: fn(&mut Vec<u8>, bool)) -> Self {
        Self { query, ..Self::NONE }
    }
}

/// Alters a parsed response to a parsed query. Names are then not compressed.
pub(super) fn edit(
    query: &[u8],
    response: Vec<u8>,
    change: impl FnOnce(&Message, &mut Message),
) -> Option<Vec<u8>> {
    let (Ok(query), Ok(mut message)) = (Message::parse(query), Message::parse(&response)) else {
        return Some(response);
    };
    change(&query, &mut message);
    Some(message.to_octets())
}

/// The server. It ends on drop.
pub(super) struct FaultyServer {
    pub(super) address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl FaultyServer {
    pub(super) fn start(upstream: SocketAddr, fault: Fault) -> Self {
        let address = free_address();
        let udp = UdpSocket::bind(address).expect("bound");
        let tcp = TcpListener::bind(address).expect("bound");
        let has_ended = Arc::new(AtomicBool::new(false));
        let (ended_udp, ended_tcp) = (Arc::clone(&has_ended), Arc::clone(&has_ended));
        let threads = vec![
            thread::spawn(move || serve_udp(&udp, upstream, fault, &ended_udp)),
            thread::spawn(move || {
                for stream in tcp.incoming().flatten() {
                    if ended_tcp.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::spawn(move || serve_tcp(stream, upstream, fault));
                }
            }),
        ];
        Self { address, has_ended, threads }
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // Wakes both threads.
        let _ = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], self.address));
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve_udp(socket: &UdpSocket, upstream: SocketAddr, fault: Fault, has_ended: &AtomicBool) {
    let mut buffer = vec![0; 65_535];
    while let Ok((length, client)) = socket.recv_from(&mut buffer) {
        if has_ended.load(Ordering::Relaxed) {
            return;
        }
        let query = buffer[..length].to_vec();
        if let Some(response) = forward_udp(&query, upstream, fault) {
            let other = (fault.from_other_port)().then(|| UdpSocket::bind("127.0.0.1:0").expect("bound"));
            let _ = other.as_ref().unwrap_or(socket).send_to(&response, client);
        }
    }
}

fn forward_udp(query: &[u8], upstream: SocketAddr, fault: Fault) -> Option<Vec<u8>> {
    let mut altered = query.to_vec();
    (fault.query)(&mut altered, false);
    let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
    socket.set_read_timeout(Some(LIMIT)).ok()?;
    socket.send_to(&altered, upstream).ok()?;
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).ok()?;
    (fault.response)(query, buffer[..length].to_vec(), false)
}

/// The queries of a connection by ID.
type Queries = Arc<Mutex<HashMap<u16, Vec<u8>>>>;

fn serve_tcp(mut client: TcpStream, upstream: SocketAddr, fault: Fault) {
    let Ok(mut server) = TcpStream::connect(upstream) else { return };
    let queries = Queries::default();
    let (Ok(mut to_client), Ok(mut from_server)) = (client.try_clone(), server.try_clone()) else { return };
    let known = Arc::clone(&queries);
    let responses = thread::spawn(move || {
        while let Some(response) = receive(&mut from_server) {
            let id = Header::read(&response).map_or(0, |header| header.id);
            let query = known.lock().expect("a lock").get(&id).cloned().unwrap_or_default();
            let Some(response) = (fault.response)(&query, response, true) else { break };
            if send(&mut to_client, &response).is_none() {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    while let Some(query) = receive(&mut client) {
        let id = Header::read(&query).map_or(0, |header| header.id);
        queries.lock().expect("a lock").insert(id, query.clone());
        let mut altered = query;
        (fault.query)(&mut altered, true);
        if send(&mut server, &altered).is_none() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
    let _ = responses.join();
}

fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).ok()?;
    Some(message)
}

fn send(stream: &mut TcpStream, message: &[u8]) -> Option<()> {
    let length = u16::try_from(message.len()).ok()?;
    stream.write_all(&[&length.to_be_bytes(), message].concat()).ok()
}
