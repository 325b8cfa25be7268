//! Exchanges over UDP: each has its own socket, with a random port (RFC 5452 section 9.2), that is
//! connected to its server. So the kernel drops datagrams from other senders, and reports ICMP
//! errors.

use super::context::{Context, classify};
use super::slots::{Key, Slots};
use super::source::Source;
use crate::machine::{Event, ExchangeId, Machine, Now, SendFailure};
use crate::sys::{self, Interest};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;

/// Maximum number of ports to try for one exchange. Ports in use are rare.
const PORT_ATTEMPTS: usize = 16;
/// Number of random ports that are requested from the kernel together.
const PORT_POOL: usize = 256;

/// The exchanges over UDP. Their number is bounded.
pub(super) struct UpstreamSockets {
    exchanges: Slots<UdpExchange>,
    ports: RandomPorts,
}

struct UdpExchange {
    socket: UdpSocket,
    exchange: ExchangeId,
    server: SocketAddr,
}

impl UpstreamSockets {
    pub(super) fn new(max: usize, ports: RangeInclusive<u16>) -> Self {
        Self { exchanges: Slots::new(max), ports: RandomPorts::new(ports) }
    }

    /// Sends a query from a new socket.
    pub(super) fn send(
        &mut self,
        exchange: ExchangeId,
        server: SocketAddr,
        message: &[u8],
        context: &mut Context,
    ) -> Result<Key, SendFailure> {
        if !self.exchanges.has_room() {
            return Err(SendFailure::Local);
        }
        let socket = self.open(server, message)?;
        let key = self.exchanges.insert(UdpExchange { socket, exchange, server });
        let key = key.ok_or(SendFailure::Local)?;
        let Some(UdpExchange { socket, .. }) = self.exchanges.get_mut(key) else {
            return Err(SendFailure::Local);
        };
        let source = Source::UpstreamSocket(key).to_bits();
        if context.epoll.add(&*socket, source, Interest::READS).is_err() {
            self.exchanges.remove(key);
            return Err(SendFailure::Local);
        }
        context.counters.upstream.datagrams_out += 1;
        context.counters.upstream.open_sockets = self.exchanges.len() as u64;
        Ok(key)
    }

    fn open(&mut self, server: SocketAddr, message: &[u8]) -> Result<UdpSocket, SendFailure> {
        let kind = Type::DGRAM.nonblocking();
        let socket = Socket::new(Domain::for_address(server), kind, Some(Protocol::UDP));
        let socket = socket.map_err(|error| classify(&error))?;
        self.ports.bind(&socket, server).map_err(|_| SendFailure::Local)?;
        socket.connect(&server.into()).map_err(|error| classify(&error))?;
        let socket = UdpSocket::from(socket);
        socket.send(message).map_err(|error| classify(&error))?;
        Ok(socket)
    }

    /// Ends an exchange.
    pub(super) fn close(&mut self, key: Key, context: &mut Context) {
        self.exchanges.remove(key);
        context.counters.upstream.open_sockets = self.exchanges.len() as u64;
    }

    /// Receives one datagram and passes it to the machine. If there are more, the next wait reports
    /// the socket again.
    pub(super) fn receive<M: Machine>(&mut self, key: Key, context: &mut Context, machine: &mut M, now: Now) {
        let Some(UdpExchange { socket, exchange, server }) = self.exchanges.get_mut(key) else { return };
        let exchange = *exchange;
        match socket.recv_from(&mut context.buffer) {
            // Between bind and connect, the socket accepted datagrams from every sender.
            Ok((_, sender)) if !is_same(sender, *server) => {
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
                self.close(key, context);
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
    use std::collections::HashSet;

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
