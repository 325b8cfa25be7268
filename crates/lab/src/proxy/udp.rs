//! UDP: one thread, one socket for each forwarded query.

use super::cache::Cache;
use super::fault::Fault;
use super::message::{change_query, change_udp_response, is_query, is_response, question};
use super::{Shared, TICK, count};
use nonesuch_net::{Poll, forbid_fragments};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Octets of the longest datagram.
const DATAGRAM_MAX: usize = 65_535;
/// Maximum number of datagrams that are received from one socket in a row.
const BURST: usize = 64;
/// The ID of all queries with [`Fault::FixedId`].
const FIXED_ID: [u8; 2] = [0, 1];
/// Pause after an error of the system, so that a permanent error does not use a whole CPU.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// Forwards datagrams of clients.
#[derive(Debug)]
pub(super) struct Relay {
    listener: UdpSocket,
    shared: Arc<Shared>,
    table: Vec<InFlight>,
    cache: Cache,
    buffer: Vec<u8>,
    /// The socket of all queries with [`Fault::FixedPort`].
    fixed: Option<UdpSocket>,
}

/// A query that waits for its response.
#[derive(Debug)]
struct InFlight {
    socket: UdpSocket,
    client: SocketAddr,
    /// The ID that the client chose, and that of the forwarded query.
    client_id: [u8; 2],
    id: [u8; 2],
    /// The question section; `None` if the query has not exactly one question.
    question: Option<Vec<u8>>,
    deadline: Instant,
}

impl Relay {
    pub(super) fn new(listener: UdpSocket, shared: Arc<Shared>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        if shared.faults.has(Fault::ForbidFragments) {
            forbid_fragments(&listener, listener.local_addr()?)?;
        }
        let fixed = shared.faults.has(Fault::FixedPort).then(|| open(shared.upstream)).transpose()?;
        Ok(Self {
            listener,
            shared,
            table: Vec::new(),
            cache: Cache::default(),
            buffer: vec![0; DATAGRAM_MAX],
            fixed,
        })
    }

    /// Forwards until the proxy stops.
    pub(super) fn run(mut self) {
        let mut poll = Poll::default();
        while !self.shared.is_stopped() {
            let now = Instant::now();
            self.expire(now);
            let next = self.table.iter().map(|query| query.deadline).min();
            let limit = next.map_or(TICK, |deadline| deadline.saturating_duration_since(now).min(TICK));
            let sockets = std::iter::once(&self.listener).chain(self.table.iter().map(|query| &query.socket));
            if poll.wait(sockets.map(|socket| (socket.as_fd(), false)), limit).is_err() {
                std::thread::sleep(ERROR_PAUSE);
                continue;
            }
            // From the last to the first, because entries are removed.
            let mut ready: Vec<usize> = poll.ready().collect();
            ready.sort_unstable_by(|a, b| b.cmp(a));
            for index in ready {
                match index.checked_sub(1) {
                    Some(entry) => self.receive_response(entry),
                    None => self.receive_queries(),
                }
            }
        }
    }

    /// Removes the queries whose time is over.
    fn expire(&mut self, now: Instant) {
        let before = self.table.len();
        self.table.retain(|query| query.deadline > now);
        (self.table.len()..before).for_each(|_| count(&self.shared.counters.timed_out));
    }

    fn receive_queries(&mut self) {
        for _ in 0..BURST {
            match self.listener.recv_from(&mut self.buffer) {
                Ok((length, client)) => {
                    let query = self.buffer[..length].to_vec();
                    if self.forward(query, client).is_none() {
                        count(&self.shared.counters.dropped);
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// Forwards a query. `None`: it is dropped.
    fn forward(&mut self, mut query: Vec<u8>, client: SocketAddr) -> Option<()> {
        let faults = self.shared.faults;
        if !is_query(&query) || self.table.len() >= self.shared.in_flight || !change_query(&mut query, faults)
        {
            return None;
        }
        if let Some(response) = self.cache.answer(&query, faults) {
            let _ = self.listener.send_to(&response, client);
            return Some(());
        }
        let mut id = FIXED_ID;
        if !faults.has(Fault::FixedId) {
            getrandom::fill(&mut id).ok()?;
        }
        let client_id = *query.first_chunk()?;
        query.get_mut(..2)?.copy_from_slice(&id);
        let socket = match &self.fixed {
            Some(socket) => socket.try_clone(),
            None => open(self.shared.upstream),
        };
        let socket = socket.ok()?;
        socket.send(&query).ok()?;
        count(&self.shared.counters.udp_queries);
        let question = question(&query).map(<[u8]>::to_vec);
        let deadline = Instant::now() + self.shared.timeout;
        self.table.push(InFlight { socket, client, client_id, id, question, deadline });
        Some(())
    }

    /// Receives from the socket of an entry, and returns the response to its client.
    fn receive_response(&mut self, entry: usize) {
        for _ in 0..BURST {
            // With a fixed port, another entry may have received the datagram.
            let Some(query) = self.table.get(entry) else { return };
            let length = match query.socket.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    // No process listens at the server; the client repeats its query.
                    self.table.swap_remove(entry);
                    return;
                }
            };
            let message = &self.buffer[..length];
            let is_shared = self.fixed.is_some();
            let of = self.table.iter().enumerate().find(|(index, query)| {
                (is_shared || *index == entry)
                    && message.first_chunk() == Some(&query.id)
                    && is_response(message, query.question.as_deref())
            });
            let Some((index, _)) = of else {
                count(&self.shared.counters.unexpected);
                continue;
            };
            let response = message.to_vec();
            let query = self.table.swap_remove(index);
            self.answer(&query, response);
            return;
        }
    }

    fn answer(&mut self, query: &InFlight, mut response: Vec<u8>) {
        let faults = self.shared.faults;
        response[..2].copy_from_slice(&query.client_id);
        self.cache.add(&response, faults);
        if change_udp_response(&mut response, faults) {
            // Before the client has it, so that the count includes each response that a client has. An error
            // means that the client is no longer there.
            count(&self.shared.counters.udp_responses);
            let _ = self.listener.send_to(&response, query.client);
        }
    }
}

/// A socket that is connected to the server. The system chooses its port at random.
pub(super) fn open(upstream: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match upstream {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(upstream)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
