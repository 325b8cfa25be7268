//! The table of a server's open connections: decides which connections are accepted and which are
//! closed.
//!
//! Time limits are checked by periodic sweeps over all connections instead of a timer for each
//! connection. This costs less, and a shorter idle timeout applies immediately to connections that
//! already wait.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::options::TcpOptions;

/// One in this many of the connections that may be closed is selected in one pass over all
/// connections.
const PICKED: usize = 16;

/// The activity of a connection. Each phase has a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The TLS handshake is in progress.
    Handshake,
    /// No complete message has arrived yet.
    First,
    /// The connection waits for the next message.
    Idle,
    /// A part of a message has arrived.
    Message,
    /// The peer must accept answers.
    Writing,
    /// The peer must accept the messages of a stream.
    Streaming,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer closed it between messages, or the server stops.
    Orderly,
    /// It was closed to make room for another connection.
    Evicted,
    TimedOut,
    Broken,
}

/// A command for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionCommand {
    End(End),
    /// Send the current answers, and then end.
    Finish,
}

/// The table entry of one connection.
pub(super) struct ConnectionEntry {
    pub(super) phase: Cell<Phase>,
    /// Start of the current phase, or time of the last progress in it.
    pub(super) since: Cell<Instant>,
    /// Start time of the oldest stream.
    pub(super) stream_since: Cell<Option<Instant>>,
    /// Octets in the buffers of the connection.
    pub(super) held: Cell<usize>,
    order: Cell<Option<ConnectionCommand>>,
    waker: Cell<Option<Waker>>,
    client: Client,
}

impl ConnectionEntry {
    /// Returns the command for the connection, if there is one. Otherwise registers `waker`, which
    /// is woken by the next command.
    pub(super) fn order(&self, waker: &Waker) -> Option<ConnectionCommand> {
        let order = self.order.get();
        if order.is_none() {
            let known = self.waker.take().filter(|known| known.will_wake(waker));
            self.waker.set(Some(known.unwrap_or_else(|| waker.clone())));
        }
        order
    }

    /// Enters a phase, or restarts its time.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(Instant::now());
    }

    fn tell(&self, order: ConnectionCommand) {
        self.order.set(Some(order));
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn limit(&self, options: &TcpOptions, idle: Duration) -> Duration {
        match self.phase.get() {
            Phase::Handshake => options.handshake_timeout,
            Phase::First => options.first_message_timeout,
            Phase::Idle => idle,
            Phase::Message => options.message_timeout,
            Phase::Writing => options.write_timeout,
            Phase::Streaming => options.stream_idle_timeout,
        }
    }

    /// Whether the connection has exceeded a time limit.
    fn is_over(&self, options: &TcpOptions, idle: Duration, now: Instant) -> bool {
        let streams_for = self.stream_since.get().map_or(Duration::ZERO, |since| now - since);
        now - self.since.get() >= self.limit(options, idle) || streams_for >= options.stream_time_max
    }

    /// Returns the priority for closing the connection; lower values are closed first. Connections
    /// without a complete message come first. Connections that are sending answers at an acceptable
    /// pace return `None`.
    fn rank(&self, options: &TcpOptions, now: Instant) -> Option<u8> {
        match self.phase.get() {
            Phase::Handshake | Phase::First => Some(0),
            Phase::Idle | Phase::Message => Some(1),
            // The peer is slow. A stream stays open while its peer keeps the required pace.
            Phase::Writing => (now - self.since.get() >= options.write_timeout / 4).then_some(1),
            Phase::Streaming => (now - self.since.get() >= options.stream_idle_timeout / 4 * 3).then_some(1),
        }
    }
}

/// The client that a connection is counted for: an IPv4 address, or an IPv6 prefix of 64 bits,
/// because one client may control the whole prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Client(u64, bool);

impl Client {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self(u64::from(address.to_bits()), false),
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64, true),
        }
    }
}

/// Why a new connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its client has reached its limit.
    Client,
    /// All connections are busy.
    Full,
}

/// The open connections.
#[derive(Default)]
pub(super) struct ConnectionTable {
    next: u64,
    places: HashMap<u64, Rc<ConnectionEntry>>,
    clients: HashMap<Client, usize>,
    /// Connections that may be closed to make room, as of the last pass. The last element is closed
    /// next.
    picked: Vec<(Instant, u64)>,
    /// Octets of all buffers.
    held: usize,
}

impl ConnectionTable {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds an entry for a new connection of `peer`. If the limit is reached, closes another
    /// connection for it. The last value is whether another connection was closed.
    pub(super) fn enter(
        &mut self,
        peer: SocketAddr,
        phase: Phase,
        options: &TcpOptions,
    ) -> Result<(u64, Rc<ConnectionEntry>, bool), Refusal> {
        let client = Client::of(peer.ip());
        let count = self.clients.get(&client).copied().unwrap_or(0);
        if count >= options.connections_per_client && !options.exempt.contains(peer.ip()) {
            return Err(Refusal::Client);
        }
        let full = self.places.len() >= options.connections_max;
        if full && !self.evict(options) {
            return Err(Refusal::Full);
        }
        let place = Rc::new(ConnectionEntry {
            phase: Cell::new(phase),
            since: Cell::new(Instant::now()),
            stream_since: Cell::new(None),
            held: Cell::new(0),
            order: Cell::new(None),
            waker: Cell::new(None),
            client,
        });
        let id = self.next;
        self.next += 1;
        self.places.insert(id, Rc::clone(&place));
        *self.clients.entry(client).or_insert(0) += 1;
        Ok((id, place, full))
    }

    /// Removes an entry. The entry of a connection that was closed to make room is already removed.
    pub(super) fn leave(&mut self, id: u64) {
        let Some(place) = self.places.remove(&id) else { return };
        self.held -= place.held.take();
        if let Some(count) = self.clients.get_mut(&place.client) {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(&place.client);
            }
        }
    }

    fn end(&mut self, id: u64, end: End) {
        if let Some(place) = self.places.get(&id) {
            place.tell(ConnectionCommand::End(end));
        }
        self.leave(id);
    }

    /// Closes the connection that has waited longest. Returns `false` if no connection is waiting.
    pub(super) fn evict(&mut self, options: &TcpOptions) -> bool {
        loop {
            while let Some((since, id)) = self.picked.pop() {
                // The connection may have received a message since it was selected.
                if self.places.get(&id).is_some_and(|place| place.since.get() == since) {
                    self.end(id, End::Evicted);
                    return true;
                }
            }
            self.pick(options);
            if self.picked.is_empty() {
                return false;
            }
        }
    }

    /// Selects the connections to close next. It selects many in one pass. Otherwise, a flood of
    /// connections would need a pass over all connections for each new connection.
    fn pick(&mut self, options: &TcpOptions) {
        let now = Instant::now();
        let waiting = self.places.iter();
        let mut waiting: Vec<(u8, Instant, u64)> = waiting
            .filter_map(|(&id, place)| Some((place.rank(options, now)?, place.since.get(), id)))
            .collect();
        let count = waiting.len().div_ceil(PICKED);
        if count < waiting.len() {
            waiting.select_nth_unstable(count);
            waiting.truncate(count);
        }
        waiting.sort_unstable();
        self.picked.extend(waiting.into_iter().rev().map(|(_, since, id)| (since, id)));
    }

    /// Records the octets in the buffers of a connection. If all buffers together exceed the limit,
    /// closes the connections that made no progress for the longest time, and returns their number.
    /// If handshakes hold more than half of the octets, it closes handshakes, otherwise other
    /// connections. So a flood of handshakes does not displace connections that answer queries, and
    /// slow readers do not displace handshakes.
    pub(super) fn hold(&mut self, id: u64, octets: usize, options: &TcpOptions) -> usize {
        let Some(place) = self.places.get(&id) else { return 0 };
        self.held = self.held - place.held.replace(octets) + octets;
        if self.held <= options.memory_max {
            return 0;
        }
        let is_handshake = |place: &ConnectionEntry| place.phase.get() == Phase::Handshake;
        let handshakes = self.places.values().filter(|place| is_handshake(place));
        let handshakes_held: usize = handshakes.map(|place| place.held.get()).sum();
        let of_handshakes = handshakes_held > self.held / 2;
        let holders = self.places.iter();
        let holders =
            holders.filter(|(_, place)| place.held.get() > 0 && is_handshake(place) == of_handshakes);
        let mut holders: Vec<(Instant, u64)> = holders.map(|(&id, place)| (place.since.get(), id)).collect();
        holders.sort_unstable();
        let mut evicted = 0;
        for (_, id) in holders {
            // Close more than needed. Otherwise, the next allocation would cause another pass over
            // all connections.
            if self.held <= options.memory_max / 8 * 7 {
                break;
            }
            self.end(id, End::Evicted);
            evicted += 1;
        }
        evicted
    }

    /// Ends the connections that have exceeded a time limit. Wakes each connection that is writing,
    /// because the connection must read the number of octets that its peer has acknowledged. The
    /// system does not report this number by itself.
    pub(super) fn sweep(&mut self, options: &TcpOptions, idle: Duration) {
        let now = Instant::now();
        for place in self.places.values() {
            if place.is_over(options, idle, now) {
                place.tell(ConnectionCommand::End(End::TimedOut));
            } else if matches!(place.phase.get(), Phase::Writing | Phase::Streaming) {
                place.wake();
            }
        }
    }

    /// Ends all connections after they have sent their current answers.
    pub(super) fn finish_all(&self) {
        self.places.values().for_each(|place| place.tell(ConnectionCommand::Finish));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::ExemptClients;

    fn peer(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().expect("an address"), 1000)
    }

    fn options(connections: usize) -> TcpOptions {
        TcpOptions {
            connections_max: connections,
            connections_per_client: 2,
            exempt: ExemptClients::new(|_| false),
            ..TcpOptions::default()
        }
    }

    #[test]
    fn a_client_is_an_address_or_a_network_of_64_bits() {
        let options = options(100);
        let mut table = ConnectionTable::default();
        let mut enter = |text| table.enter(peer(text), Phase::First, &options).map(|(id, ..)| id);
        let first = enter("2001:db8::1").expect("a place");
        assert!(enter("2001:db8::2:0:0:1").is_ok());
        assert_eq!(enter("2001:db8::3").err(), Some(Refusal::Client));
        assert!(enter("2001:db8:0:1::3").is_ok());
        assert!(enter("192.0.2.1").is_ok() && enter("192.0.2.1").is_ok() && enter("192.0.2.2").is_ok());
        assert_eq!(enter("192.0.2.1").err(), Some(Refusal::Client));
        table.leave(first);
        table.leave(first);
        assert!(table.enter(peer("2001:db8::3"), Phase::First, &options).is_ok());
        assert_eq!(table.len(), 6);
    }

    #[test]
    fn those_that_asked_nothing_go_first_and_busy_ones_stay() {
        let options = options(4);
        let mut table = ConnectionTable::default();
        let mut enter = |text| {
            let (id, place, evicted) = table.enter(peer(text), Phase::First, &options)?;
            Ok::<_, Refusal>((id, place, evicted))
        };
        let (_, busy, _) = enter("192.0.2.1").expect("a place");
        let (_, old, _) = enter("192.0.2.2").expect("a place");
        let (_, silent, _) = enter("192.0.2.3").expect("a place");
        let (_, recent, _) = enter("192.0.2.4").expect("a place");
        busy.enter(Phase::Writing);
        old.enter(Phase::Idle);
        recent.enter(Phase::Idle);
        let order = |place: &ConnectionEntry| place.order(Waker::noop());
        let evicted = Some(ConnectionCommand::End(End::Evicted));
        let mut new = Vec::new();
        for (text, goes) in [("192.0.2.5", &silent), ("192.0.2.6", &old), ("192.0.2.7", &recent)] {
            let (_, place, made_room) = enter(text).expect("a place");
            place.enter(Phase::Writing);
            new.push(place);
            assert!(made_room);
            assert_eq!(order(goes), evicted, "{text}");
        }
        assert_eq!(order(&busy), None);
        assert_eq!(enter("192.0.2.8").err(), Some(Refusal::Full));
        assert_eq!(table.len(), 4);
    }

    /// At 1 KiB per second, 16 KiB take 16 of the permitted 30 seconds.
    #[test]
    fn a_slow_stream_stays_where_one_that_stands_still_goes() {
        let options = options(2);
        let mut table = ConnectionTable::default();
        let mut enter = |text, seconds| {
            let (_, place, _) = table.enter(peer(text), Phase::First, &options)?;
            place.enter(Phase::Streaming);
            place.since.set(Instant::now() - Duration::from_secs(seconds));
            Ok::<_, Refusal>(place)
        };
        let slow = enter("192.0.2.1", 16).expect("a place");
        let stopped = enter("192.0.2.2", 25).expect("a place");
        let _new = enter("192.0.2.3", 0).expect("a place");
        let order = |place: &ConnectionEntry| place.order(Waker::noop());
        assert_eq!((order(&slow), order(&stopped)), (None, Some(ConnectionCommand::End(End::Evicted))));
        assert_eq!(enter("192.0.2.4", 0).err(), Some(Refusal::Full));
    }

    #[test]
    fn handshakes_make_room_where_they_hold_more_than_half() {
        let options = TcpOptions { memory_max: 1000, ..options(100) };
        let order = |place: &ConnectionEntry| place.order(Waker::noop());
        for (handshakes, others) in [(6, 4), (4, 6)] {
            let mut table = ConnectionTable::default();
            let mut enter = |phase, count: usize| -> Vec<_> {
                let enter = |number| {
                    let peer = peer(&format!("192.0.2.{}", 10 * count + number));
                    let (id, place, _) = table.enter(peer, phase, &options).expect("a place");
                    assert_eq!(table.hold(id, 100, &options), 0);
                    place
                };
                (0..count).map(enter).collect()
            };
            let (agreeing, writing) = (enter(Phase::Handshake, handshakes), enter(Phase::Writing, others));
            let (id, ..) = table.enter(peer("192.0.2.200"), Phase::First, &options).expect("a place");
            assert_eq!(table.hold(id, 1, &options), 2);
            let gone =
                |places: &[Rc<ConnectionEntry>]| places.iter().filter(|place| order(place).is_some()).count();
            let expected = if handshakes > others { (2, 0) } else { (0, 2) };
            assert_eq!((gone(&agreeing), gone(&writing)), expected);
        }
    }

    #[test]
    fn buffers_of_all_are_bounded() {
        let options = TcpOptions { memory_max: 1000, ..options(100) };
        let mut table = ConnectionTable::default();
        let mut places = Vec::new();
        for number in 0..10 {
            let (id, place, _) =
                table.enter(peer(&format!("192.0.2.{number}")), Phase::First, &options).expect("a place");
            places.push(place);
            assert_eq!(table.hold(id, 100, &options), 0);
        }
        // One octet too many: the table closes the two oldest connections, until at most 7/8 of the
        // limit is in use.
        let (id, ..) = table.enter(peer("192.0.2.100"), Phase::First, &options).expect("a place");
        assert_eq!(table.hold(id, 1, &options), 2);
        let gone: Vec<bool> = places.iter().map(|place| place.order(Waker::noop()).is_some()).collect();
        assert_eq!(gone, [true, true, false, false, false, false, false, false, false, false]);
        assert_eq!((table.held, table.len()), (801, 9));
    }
}
