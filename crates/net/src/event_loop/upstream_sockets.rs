//! Exchanges over UDP: each has a socket, with a random port (RFC 5452 section 9.2), that is connected
//! to its server. So the kernel drops datagrams from other senders, and reports ICMP errors.
//!
//! A socket serves a few exchanges with its server, one after another within a short time. Opening a
//! socket takes five system calls. An attacker who forges responses still has to guess the port and
//! the message ID of each query: other servers do not see the port, and the time is too short to
//! search 64,000 ports for it. A socket is not used again after an exchange with no response, or with
//! several datagrams.

use super::context::{Context, classify};
use super::slots::{Key, Slots};
use super::source::Source;
use crate::machine::{Event, ExchangeId, Machine, Now, SendFailure};
use crate::sys::{self, Interest};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Maximum number of exchanges of a socket.
const EXCHANGES_PER_SOCKET: u32 = 8;
/// Maximum age of a socket at the start of an exchange.
const SOCKET_AGE_MAX: Duration = Duration::from_millis(100);
/// Maximum number of sockets without an exchange.
const IDLE_SOCKETS_MAX: usize = 64;
/// Maximum number of ports to try for one exchange. Ports in use are rare.
const PORT_ATTEMPTS: usize = 16;
/// Number of random ports that are requested from the kernel together.
const PORT_POOL: usize = 256;

/// The exchanges over UDP. Their number is bounded.
pub(super) struct UpstreamSockets {
    sockets: Slots<UpstreamSocket>,
    /// The sockets without an exchange. The first has waited longest.
    idle: VecDeque<Key>,
    ports: RandomPorts,
}

struct UpstreamSocket {
    socket: UdpSocket,
    server: SocketAddr,
    opened_at: Instant,
    /// `None` if the socket is idle.
    exchange: Option<ExchangeId>,
    /// Number of exchanges so far.
    exchanges: u32,
    /// Number of datagrams received in the exchange.
    datagrams: u32,
}

impl UpstreamSocket {
    /// Whether the socket, whose last exchange has ended, may serve another one that begins at `now`. If
    /// each exchange has had one datagram, no response to an earlier query arrives during a later one.
    fn is_reusable(&self, now: Instant) -> bool {
        self.exchanges < EXCHANGES_PER_SOCKET
            && self.datagrams == 1
            && now.saturating_duration_since(self.opened_at) <= SOCKET_AGE_MAX
    }
}

impl UpstreamSockets {
    pub(super) fn new(max: usize, ports: RangeInclusive<u16>) -> Self {
        Self { sockets: Slots::new(max), idle: VecDeque::new(), ports: RandomPorts::new(ports) }
    }

    /// Sends a query, from an idle socket of the server or from a new one.
    pub(super) fn send(
        &mut self,
        exchange: ExchangeId,
        server: SocketAddr,
        message: &[u8],
        context: &mut Context,
        now: Instant,
    ) -> Result<Key, SendFailure> {
        if let Some(key) = self.take_idle(server, context, now)
            && self.send_from(key, exchange, message, context).is_ok()
        {
            return Ok(key);
        }
        // An error of an idle socket is that of an earlier query.
        let key = self.open(server, context, now)?;
        self.send_from(key, exchange, message, context).map(|()| key)
    }

    /// Sends a query from a socket without an exchange. If this fails, closes the socket.
    fn send_from(
        &mut self,
        key: Key,
        exchange: ExchangeId,
        message: &[u8],
        context: &mut Context,
    ) -> Result<(), SendFailure> {
        let socket = self.sockets.get_mut(key).ok_or(SendFailure::Local)?;
        if let Err(error) = socket.socket.send(message) {
            self.remove(key, context);
            return Err(classify(&error));
        }
        (socket.exchange, socket.datagrams) = (Some(exchange), 0);
        socket.exchanges += 1;
        context.counters.upstream.datagrams_out += 1;
        Ok(())
    }

    /// Returns the idle socket of the server that has waited least, if it may serve an exchange.
    fn take_idle(&mut self, server: SocketAddr, context: &mut Context, now: Instant) -> Option<Key> {
        let Self { sockets, idle, .. } = self;
        let is_of_server = |key: &Key| sockets.get_mut(*key).is_some_and(|socket| socket.server == server);
        let at = idle.iter().rposition(is_of_server)?;
        let key = idle.remove(at)?;
        if sockets.get_mut(key)?.is_reusable(now) {
            return Some(key);
        }
        self.remove(key, context);
        None
    }

    /// Opens a socket and watches it. Closes an idle socket if there are too many sockets.
    fn open(&mut self, server: SocketAddr, context: &mut Context, now: Instant) -> Result<Key, SendFailure> {
        if !self.sockets.has_room()
            && let Some(oldest) = self.idle.pop_front()
        {
            self.remove(oldest, context);
        }
        if !self.sockets.has_room() {
            return Err(SendFailure::Local);
        }
        let socket = UpstreamSocket {
            socket: self.connect(server)?,
            server,
            opened_at: now,
            exchange: None,
            exchanges: 0,
            datagrams: 0,
        };
        let key = self.sockets.insert(socket).ok_or(SendFailure::Local)?;
        let socket = &self.sockets.get_mut(key).ok_or(SendFailure::Local)?.socket;
        if context.epoll.add(socket, Source::UpstreamSocket(key).to_bits(), Interest::READS).is_err() {
            self.remove(key, context);
            return Err(SendFailure::Local);
        }
        context.counters.upstream.open_sockets = self.sockets.len() as u64;
        Ok(key)
    }

    fn connect(&mut self, server: SocketAddr) -> Result<UdpSocket, SendFailure> {
        let kind = Type::DGRAM.nonblocking();
        let socket = Socket::new(Domain::for_address(server), kind, Some(Protocol::UDP));
        let socket = socket.map_err(|error| classify(&error))?;
        self.ports.bind(&socket, server).map_err(|_| SendFailure::Local)?;
        socket.connect(&server.into()).map_err(|error| classify(&error))?;
        Ok(UdpSocket::from(socket))
    }

    /// Ends an exchange. Its socket becomes idle if it may be used again.
    pub(super) fn close(&mut self, key: Key, context: &mut Context, now: Instant) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        if !socket.is_reusable(now) {
            return self.remove(key, context);
        }
        socket.exchange = None;
        self.idle.push_back(key);
        if self.idle.len() > IDLE_SOCKETS_MAX
            && let Some(oldest) = self.idle.pop_front()
        {
            self.remove(oldest, context);
        }
    }

    fn remove(&mut self, key: Key, context: &mut Context) {
        self.sockets.remove(key);
        context.counters.upstream.open_sockets = self.sockets.len() as u64;
    }

    /// Closes a socket on which a datagram or an error arrived without an exchange.
    fn remove_idle(&mut self, key: Key, context: &mut Context) {
        self.idle.retain(|idle| *idle != key);
        self.remove(key, context);
    }

    /// Receives one datagram and passes it to the machine. If there are more, the next wait reports
    /// the socket again.
    pub(super) fn receive<M: Machine>(&mut self, key: Key, context: &mut Context, machine: &mut M, now: Now) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let Some(exchange) = socket.exchange else { return self.remove_idle(key, context) };
        let received = socket.socket.recv_from(&mut context.buffer);
        socket.datagrams += u32::from(received.is_ok());
        match received {
            // Between bind and connect, the socket accepted datagrams from every sender.
            Ok((_, sender)) if !is_same(sender, socket.server) => {
                context.counters.upstream.foreign_datagrams += 1;
            }
            Ok((octets, _)) => {
                context.counters.upstream.datagrams_in += 1;
                if let Some(message) = context.buffer.get(..octets) {
                    machine.handle_event(Event::Response(exchange, message), now);
                }
            }
            Err(error) if is_temporary(&error) => {}
            Err(error) => {
                self.remove(key, context);
                context.fail(exchange, classify(&error));
            }
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether two addresses are the same, apart from the flow label. A scope of 0 is unspecified.
fn is_same(sender: SocketAddr, server: SocketAddr) -> bool {
    let scope_matches = match (sender, server) {
        (SocketAddr::V6(sender), SocketAddr::V6(server)) => {
            server.scope_id() == 0 || sender.scope_id() == server.scope_id()
        }
        _ => true,
    };
    scope_matches && sender.ip() == server.ip() && sender.port() == server.port()
}

/// Unpredictable ports.
struct RandomPorts {
    range: RangeInclusive<u16>,
    /// Octets of the kernel's generator.
    pool: [u8; 2 * PORT_POOL],
    /// Octets of `pool` that were used.
    used: usize,
}

impl RandomPorts {
    fn new(range: RangeInclusive<u16>) -> Self {
        Self { range, pool: [0; 2 * PORT_POOL], used: 2 * PORT_POOL }
    }

    /// Binds `socket` to a random port of the range.
    fn bind(&mut self, socket: &Socket, server: SocketAddr) -> io::Result<()> {
        let mut result = Err(io::ErrorKind::AddrInUse.into());
        for _ in 0..PORT_ATTEMPTS {
            let port = self.next_port()?;
            let local: SocketAddr = match server {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
            };
            result = socket.bind(&local.into());
            match &result {
                // A policy of the system may forbid some ports.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
                }
                _ => break,
            }
        }
        result
    }

    /// Returns a port of the range. All ports are equally likely.
    fn next_port(&mut self) -> io::Result<u16> {
        let (first, last) = (u32::from(*self.range.start()), u32::from(*self.range.end()));
        let count = (last + 1).saturating_sub(first);
        if count == 0 {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        // A multiple of the number of ports. Values above it would make some ports more likely.
        let limit = (1 << u16::BITS) / count * count;
        loop {
            let value = u32::from(self.next_value()?);
            if value < limit {
                return Ok(u16::try_from(first + value % count).unwrap_or(u16::MAX));
            }
        }
    }

    fn next_value(&mut self) -> io::Result<u16> {
        if self.used >= self.pool.len() {
            sys::fill_random(&mut self.pool)?;
            self.used = 0;
        }
        let value = self.pool.get(self.used..).and_then(|rest| rest.first_chunk());
        self.used += 2;
        Ok(value.map_or(0, |octets| u16::from_ne_bytes(*octets)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Output;
    use crate::sys::Epoll;
    use std::collections::HashSet;

    /// Counts the responses.
    #[derive(Default)]
    struct Responses(usize);

    impl Machine for Responses {
        fn handle_event(&mut self, _: Event<'_>, _: Now) {
            self.0 += 1;
        }
        fn handle_timeout(&mut self, _: Now) {}
        fn poll_output(&mut self) -> Option<Output> {
            None
        }
        fn poll_timeout(&mut self) -> Option<Instant> {
            None
        }
    }

    /// The sockets of a worker and a server.
    struct Pair {
        sockets: UpstreamSockets,
        context: Context,
        server: UdpSocket,
        now: Now,
    }

    impl Pair {
        fn new(max: usize) -> Self {
            let server = UdpSocket::bind("127.0.0.1:0").expect("bound");
            let context = Context::new(Epoll::new(8).expect("created"));
            let now = Now { instant: Instant::now(), unix: 0 };
            Self { sockets: UpstreamSockets::new(max, 1024..=u16::MAX), context, server, now }
        }

        /// Begins an exchange. Returns its key and the address of its socket.
        fn send(&mut self, exchange: u64) -> (Key, SocketAddr) {
            let server = self.server.local_addr().expect("bound");
            let Self { sockets, context, now, .. } = self;
            let key = sockets.send(ExchangeId(exchange), server, b"query", context, now.instant);
            let (_, sender) = self.server.recv_from(&mut [0; 8]).expect("a query");
            (key.expect("sent"), sender)
        }

        /// Sends and receives `count` responses, and ends the exchange.
        fn respond(&mut self, (key, address): (Key, SocketAddr), count: usize) {
            let mut machine = Responses::default();
            for _ in 0..count {
                self.server.send_to(b"response", address).expect("sent");
                self.sockets.receive(key, &mut self.context, &mut machine, self.now);
            }
            assert_eq!(machine.0, count);
            self.sockets.close(key, &mut self.context, self.now.instant);
        }
    }

    #[test]
    fn a_socket_serves_a_few_exchanges() {
        let mut pair = Pair::new(8);
        let mut ports = Vec::new();
        for exchange in 0..2 * u64::from(EXCHANGES_PER_SOCKET) {
            let sent = pair.send(exchange);
            ports.push(sent.1.port());
            pair.respond(sent, 1);
        }
        let uses = |port: &u16| ports.iter().filter(|other| *other == port).count();
        assert!(ports.iter().all(|port| uses(port) == EXCHANGES_PER_SOCKET as usize), "{ports:?}");
    }

    #[test]
    fn a_socket_without_exactly_one_response_or_too_old_is_not_used_again() {
        let mut pair = Pair::new(8);
        // Also after an exchange with one response.
        for (responses, is_used_before) in [(0, false), (2, false), (0, true), (2, true)] {
            if is_used_before {
                let sent = pair.send(1);
                pair.respond(sent, 1);
            }
            let sent = pair.send(1);
            pair.respond(sent, responses);
            assert!(pair.sockets.sockets.is_empty());
        }
        let first = pair.send(2);
        pair.respond(first, 1);
        pair.now.instant += SOCKET_AGE_MAX + Duration::from_millis(1);
        let second = pair.send(3);
        assert_ne!(first.1, second.1);
        assert_eq!((pair.sockets.sockets.len(), pair.sockets.idle.len()), (1, 0));
    }

    /// Whatever arrives then is no response to a query.
    #[test]
    fn a_datagram_without_an_exchange_closes_the_socket() {
        let mut pair = Pair::new(8);
        let (key, address) = pair.send(1);
        pair.respond((key, address), 1);
        pair.server.send_to(b"forged", address).expect("sent");
        let mut machine = Responses::default();
        pair.sockets.receive(key, &mut pair.context, &mut machine, pair.now);
        assert_eq!(machine.0, 0);
        assert!(pair.sockets.sockets.is_empty() && pair.sockets.idle.is_empty());
    }

    #[test]
    fn idle_sockets_are_bounded_and_leave_room_for_exchanges() {
        let mut pair = Pair::new(2 * IDLE_SOCKETS_MAX);
        let all: Vec<_> = (0..2 * IDLE_SOCKETS_MAX as u64).map(|exchange| pair.send(exchange)).collect();
        all.into_iter().for_each(|sent| pair.respond(sent, 1));
        assert_eq!(
            (pair.sockets.sockets.len(), pair.sockets.idle.len()),
            (IDLE_SOCKETS_MAX, IDLE_SOCKETS_MAX)
        );
        // Another server: its exchanges cannot use the idle sockets.
        let mut pair = Pair::new(1);
        let sent = pair.send(1);
        pair.respond(sent, 1);
        pair.server = UdpSocket::bind("127.0.0.1:0").expect("bound");
        pair.send(2);
        assert_eq!((pair.sockets.sockets.len(), pair.sockets.idle.len()), (1, 0));
    }

    #[test]
    fn ports_are_in_their_range_and_differ() {
        for range in [1024..=u16::MAX, 40_000..=40_002, 0..=u16::MAX, 65_535..=65_535] {
            let mut ports = RandomPorts::new(range.clone());
            let drawn: HashSet<u16> = (0..1000).map(|_| ports.next_port().expect("random")).collect();
            assert!(drawn.iter().all(|port| range.contains(port)));
            assert!(drawn.len() >= range.len().min(900), "{range:?}: {}", drawn.len());
        }
        #[expect(clippy::reversed_empty_ranges)]
        let mut none = RandomPorts::new(2..=1);
        assert!(none.next_port().is_err());
    }

    #[test]
    fn ports_in_use_are_not_taken() {
        let taken = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).expect("opened");
        let server = SocketAddr::from(([127, 0, 0, 1], 53));
        taken.bind(&SocketAddr::from(([0, 0, 0, 0], 0)).into()).expect("bound");
        let port = taken.local_addr().expect("bound").as_socket().expect("an IP address").port();
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).expect("opened");
        let error = RandomPorts::new(port..=port).bind(&socket, server).expect_err("in use");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_sender_must_be_the_server() {
        let same = |sender: &str, server: &str| {
            is_same(sender.parse().expect("an address"), server.parse().expect("an address"))
        };
        assert!(same("192.0.2.1:53", "192.0.2.1:53"));
        assert!(!same("192.0.2.1:54", "192.0.2.1:53"));
        assert!(!same("192.0.2.2:53", "192.0.2.1:53"));
        assert!(!same("[::ffff:192.0.2.1]:53", "192.0.2.1:53"));
        assert!(same("[fe80::1%2]:53", "[fe80::1]:53") && same("[fe80::1%2]:53", "[fe80::1%2]:53"));
        assert!(!same("[fe80::1%3]:53", "[fe80::1%2]:53"));
    }
}
