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

/// A pass over all connections selects 1/16 of the connections that may be closed, rounded up.
const CANDIDATE_DIVISOR: usize = 16;

/// The activity of a connection. Each phase has a time limit in [`TcpOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The TLS handshake is in progress.
    Handshake,
    /// No complete message has arrived yet.
    FirstMessage,
    /// The connection waits for the next message.
    Idle,
    /// A part of a message has arrived.
    Message,
    /// Complete messages wait for their answers, which need queries to other servers. This phase
    /// has no time limit of its own: what answers them limits its time.
    Answering,
    /// The peer must accept answers.
    Writing,
    /// The peer must accept the messages of a stream.
    Streaming,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The peer closed it between messages, or the server stops.
    Orderly,
    /// It was closed to make room for another connection.
    Evicted,
    TimedOut,
    /// An error ended it: a reset, an end within a message, invalid framing, or a stream that could
    /// not continue.
    Broken,
}

/// A command for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionCommand {
    End(EndReason),
    /// Send the current answers, and then end.
    Finish,
}

/// The table entry of one connection.
pub(crate) struct ConnectionEntry {
    pub(crate) phase: Cell<Phase>,
    /// Start of the current phase, or time of the last progress in it.
    pub(crate) phase_since: Cell<Instant>,
    /// Start time of the oldest stream.
    pub(crate) stream_since: Cell<Option<Instant>>,
    /// Octets in the buffers of the connection.
    pub(crate) buffered: Cell<usize>,
    /// The command for the connection, from the table.
    command: Cell<Option<ConnectionCommand>>,
    /// The waker of the task that serves the connection.
    waker: Cell<Option<Waker>>,
    client: Client,
}

impl ConnectionEntry {
    /// Returns the command for the connection, if there is one. Otherwise registers `waker`, which
    /// is woken by the next command.
    pub(crate) fn poll_command(&self, waker: &Waker) -> Option<ConnectionCommand> {
        let command = self.command.get();
        if command.is_none() {
            let known = self.waker.take().filter(|known| known.will_wake(waker));
            self.waker.set(Some(known.unwrap_or_else(|| waker.clone())));
        }
        command
    }

    /// Sets the phase and restarts its time.
    pub(crate) fn begin_phase(&self, phase: Phase) {
        self.phase.set(phase);
        self.phase_since.set(Instant::now());
    }

    fn send_command(&self, command: ConnectionCommand) {
        self.command.set(Some(command));
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Returns the time limit of the current phase. `idle` is the current idle timeout.
    fn phase_limit(&self, options: &TcpOptions, idle: Duration) -> Duration {
        match self.phase.get() {
            Phase::Handshake => options.handshake_timeout,
            Phase::FirstMessage => options.first_message_timeout,
            Phase::Idle => idle,
            Phase::Message => options.message_timeout,
            Phase::Answering => Duration::MAX,
            Phase::Writing => options.write_timeout,
            Phase::Streaming => options.stream_idle_timeout,
        }
    }

    /// Whether the connection has exceeded the time limit of its phase or of its oldest stream.
    fn has_timed_out(&self, options: &TcpOptions, idle: Duration, now: Instant) -> bool {
        let stream_time = self.stream_since.get().map_or(Duration::ZERO, |since| now - since);
        now - self.phase_since.get() >= self.phase_limit(options, idle)
            || stream_time >= options.stream_time_max
    }

    /// Returns the rank of the connection if it may be closed for another one. Connections with a
    /// lower rank are closed first. Connections without a complete message have the lowest rank,
    /// those that wait for answers the highest.
    /// `None`: the connection must not be closed, because its peer reads answers fast enough.
    fn eviction_rank(&self, options: &TcpOptions, now: Instant) -> Option<u8> {
        match self.phase.get() {
            Phase::Handshake | Phase::FirstMessage => Some(0),
            Phase::Idle | Phase::Message => Some(1),
            // Otherwise, clients that ask for names with slow servers could hold all connections.
            Phase::Answering => Some(2),
            // The peer has made no progress for a part of the time limit.
            Phase::Writing => (now - self.phase_since.get() >= options.write_timeout / 4).then_some(1),
            Phase::Streaming => {
                (now - self.phase_since.get() >= options.stream_idle_timeout / 4 * 3).then_some(1)
            }
        }
    }
}

/// The client that a connection is counted for: an IPv4 address, or an IPv6 prefix of 64 bits,
/// because one client may control the whole prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Client {
    /// The IPv4 address, or the upper 64 bits of the IPv6 address.
    prefix: u64,
    is_ipv6: bool,
}

impl Client {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self { prefix: u64::from(address.to_bits()), is_ipv6: false },
            IpAddr::V6(address) => Self { prefix: (address.to_bits() >> 64) as u64, is_ipv6: true },
        }
    }
}

/// Why a new connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its client has reached the limit of connections for each client.
    ClientLimit,
    /// The server has reached its limit of connections, and none of them may be closed.
    ConnectionLimit,
}

/// The open connections.
#[derive(Default)]
pub(crate) struct ConnectionTable {
    /// The identifier of the next connection.
    next_id: u64,
    /// The open connections, by identifier.
    entries: HashMap<u64, Rc<ConnectionEntry>>,
    /// Number of open connections of each client.
    clients: HashMap<Client, usize>,
    /// Connections that were selected in the last pass: the value of `phase_since` at that time,
    /// and the identifier. The last element is closed next.
    candidates: Vec<(Instant, u64)>,
    /// Octets in the buffers of all connections.
    buffered: usize,
}

impl ConnectionTable {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry for a new connection of `peer`. If the limit of connections is reached, closes
    /// another connection. Returns the identifier, the entry, and whether another connection was
    /// closed.
    pub(crate) fn insert(
        &mut self,
        peer: SocketAddr,
        phase: Phase,
        options: &TcpOptions,
    ) -> Result<(u64, Rc<ConnectionEntry>, bool), Refusal> {
        let client = Client::of(peer.ip());
        let count = self.clients.get(&client).copied().unwrap_or(0);
        if count >= options.connections_per_client && !options.exempt.contains(peer.ip()) {
            return Err(Refusal::ClientLimit);
        }
        let full = self.entries.len() >= options.connections_max;
        if full && !self.evict(options) {
            return Err(Refusal::ConnectionLimit);
        }
        let entry = Rc::new(ConnectionEntry {
            phase: Cell::new(phase),
            phase_since: Cell::new(Instant::now()),
            stream_since: Cell::new(None),
            buffered: Cell::new(0),
            command: Cell::new(None),
            waker: Cell::new(None),
            client,
        });
        let id = self.next_id;
        self.next_id += 1;
        self.entries.insert(id, Rc::clone(&entry));
        *self.clients.entry(client).or_insert(0) += 1;
        Ok((id, entry, full))
    }

    /// Removes the entry of a connection that has ended. Does nothing if the table has closed the
    /// connection and therefore removed the entry already.
    pub(crate) fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.buffered -= entry.buffered.take();
        if let Some(count) = self.clients.get_mut(&entry.client) {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(&entry.client);
            }
        }
    }

    /// Commands the connection to end, and removes its entry.
    fn evict_id(&mut self, id: u64) {
        if let Some(entry) = self.entries.get(&id) {
            entry.send_command(ConnectionCommand::End(EndReason::Evicted));
        }
        self.remove(id);
    }

    /// Closes one connection. Of the candidates that have made no progress since the last pass, it
    /// is the one with the lowest [rank](ConnectionEntry::eviction_rank), and among equal ranks the
    /// one that has waited longest. If no candidate is left, makes another pass. Returns `false` if
    /// no connection may be closed.
    pub(crate) fn evict(&mut self, options: &TcpOptions) -> bool {
        loop {
            while let Some((since, id)) = self.candidates.pop() {
                // The connection may have made progress since it was selected.
                if self.entries.get(&id).is_some_and(|entry| entry.phase_since.get() == since) {
                    self.evict_id(id);
                    return true;
                }
            }
            self.select_candidates(options);
            if self.candidates.is_empty() {
                return false;
            }
        }
    }

    /// Selects the connections to close next. It selects many of them in one pass. Otherwise, each
    /// new connection of a flood would need a pass over all connections.
    fn select_candidates(&mut self, options: &TcpOptions) {
        let now = Instant::now();
        let mut waiting: Vec<(u8, Instant, u64)> = self
            .entries
            .iter()
            .filter_map(|(&id, entry)| {
                Some((entry.eviction_rank(options, now)?, entry.phase_since.get(), id))
            })
            .collect();
        let count = waiting.len().div_ceil(CANDIDATE_DIVISOR);
        if count < waiting.len() {
            waiting.select_nth_unstable(count);
            waiting.truncate(count);
        }
        waiting.sort_unstable();
        self.candidates.extend(waiting.into_iter().rev().map(|(_, since, id)| (since, id)));
    }

    /// Records that the buffers of the connection `id` have `octets`. If the buffers of all
    /// connections exceed the limit, closes the connections that made no progress for the longest
    /// time, and returns their number. The connection `id` can be one of them; it receives the
    /// command like the others.
    ///
    /// If handshakes hold more than half of the octets, it closes handshakes, otherwise other
    /// connections. So a flood of handshakes does not displace connections that answer queries, and
    /// slow readers do not displace handshakes.
    pub(crate) fn set_buffered(&mut self, id: u64, octets: usize, options: &TcpOptions) -> usize {
        let Some(entry) = self.entries.get(&id) else { return 0 };
        self.buffered = self.buffered - entry.buffered.replace(octets) + octets;
        if self.buffered <= options.memory_max {
            return 0;
        }
        let is_handshake = |entry: &ConnectionEntry| entry.phase.get() == Phase::Handshake;
        let handshakes = self.entries.values().filter(|entry| is_handshake(entry));
        let handshake_octets: usize = handshakes.map(|entry| entry.buffered.get()).sum();
        let evicts_handshakes = handshake_octets > self.buffered / 2;
        let mut evictable: Vec<(Instant, u64)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.buffered.get() > 0 && is_handshake(entry) == evicts_handshakes)
            .map(|(&id, entry)| (entry.phase_since.get(), id))
            .collect();
        evictable.sort_unstable();
        let mut evicted = 0;
        for (_, id) in evictable {
            // Close more than needed. Otherwise, the next allocation would cause another pass over
            // all connections.
            if self.buffered <= options.memory_max / 8 * 7 {
                break;
            }
            self.evict_id(id);
            evicted += 1;
        }
        evicted
    }

    /// Ends the connections that have exceeded a time limit. `idle` is the current idle timeout.
    /// Wakes each connection that is writing, so that it reads the number of octets that its peer
    /// has acknowledged. The system does not report a change of this number.
    pub(crate) fn sweep(&mut self, options: &TcpOptions, idle: Duration) {
        let now = Instant::now();
        for entry in self.entries.values() {
            if entry.has_timed_out(options, idle, now) {
                entry.send_command(ConnectionCommand::End(EndReason::TimedOut));
            } else if matches!(entry.phase.get(), Phase::Writing | Phase::Streaming) {
                entry.wake();
            }
        }
    }

    /// Ends all connections after they have sent their current answers.
    pub(crate) fn finish_all(&self) {
        self.entries.values().for_each(|entry| entry.send_command(ConnectionCommand::Finish));
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
        let mut insert = |text| table.insert(peer(text), Phase::FirstMessage, &options).map(|(id, ..)| id);
        let first = insert("2001:db8::1").expect("an entry");
        assert!(insert("2001:db8::2:0:0:1").is_ok());
        assert_eq!(insert("2001:db8::3").err(), Some(Refusal::ClientLimit));
        assert!(insert("2001:db8:0:1::3").is_ok());
        assert!(insert("192.0.2.1").is_ok() && insert("192.0.2.1").is_ok() && insert("192.0.2.2").is_ok());
        assert_eq!(insert("192.0.2.1").err(), Some(Refusal::ClientLimit));
        table.remove(first);
        table.remove(first);
        assert!(table.insert(peer("2001:db8::3"), Phase::FirstMessage, &options).is_ok());
        assert_eq!(table.len(), 6);
    }

    #[test]
    fn connections_without_a_message_are_closed_first_and_busy_ones_stay() {
        let options = options(4);
        let mut table = ConnectionTable::default();
        let mut insert = |text| {
            let (id, entry, evicted) = table.insert(peer(text), Phase::FirstMessage, &options)?;
            Ok::<_, Refusal>((id, entry, evicted))
        };
        let (_, busy, _) = insert("192.0.2.1").expect("an entry");
        let (_, old, _) = insert("192.0.2.2").expect("an entry");
        let (_, silent, _) = insert("192.0.2.3").expect("an entry");
        let (_, recent, _) = insert("192.0.2.4").expect("an entry");
        busy.begin_phase(Phase::Writing);
        old.begin_phase(Phase::Idle);
        recent.begin_phase(Phase::Idle);
        let command = |entry: &ConnectionEntry| entry.poll_command(Waker::noop());
        let evicted = Some(ConnectionCommand::End(EndReason::Evicted));
        let mut new = Vec::new();
        for (text, closed) in [("192.0.2.5", &silent), ("192.0.2.6", &old), ("192.0.2.7", &recent)] {
            let (_, entry, has_evicted) = insert(text).expect("an entry");
            entry.begin_phase(Phase::Writing);
            new.push(entry);
            assert!(has_evicted);
            assert_eq!(command(closed), evicted, "{text}");
        }
        assert_eq!(command(&busy), None);
        assert_eq!(insert("192.0.2.8").err(), Some(Refusal::ConnectionLimit));
        assert_eq!(table.len(), 4);
    }

    /// At 1 KiB per second, 16 KiB take 16 of the permitted 30 seconds.
    #[test]
    fn a_slow_stream_stays_and_one_without_progress_is_closed() {
        let options = options(2);
        let mut table = ConnectionTable::default();
        let mut insert = |text, seconds| {
            let (_, entry, _) = table.insert(peer(text), Phase::FirstMessage, &options)?;
            entry.begin_phase(Phase::Streaming);
            entry.phase_since.set(Instant::now() - Duration::from_secs(seconds));
            Ok::<_, Refusal>(entry)
        };
        let slow = insert("192.0.2.1", 16).expect("an entry");
        let stopped = insert("192.0.2.2", 25).expect("an entry");
        let _new = insert("192.0.2.3", 0).expect("an entry");
        let command = |entry: &ConnectionEntry| entry.poll_command(Waker::noop());
        assert_eq!(
            (command(&slow), command(&stopped)),
            (None, Some(ConnectionCommand::End(EndReason::Evicted)))
        );
        assert_eq!(insert("192.0.2.4", 0).err(), Some(Refusal::ConnectionLimit));
    }

    #[test]
    fn handshakes_are_closed_if_they_hold_more_than_half_of_the_memory() {
        let options = TcpOptions { memory_max: 1000, ..options(100) };
        let command = |entry: &ConnectionEntry| entry.poll_command(Waker::noop());
        for (handshakes, others) in [(6, 4), (4, 6)] {
            let mut table = ConnectionTable::default();
            let mut insert = |phase, count: usize| -> Vec<_> {
                let insert = |number| {
                    let peer = peer(&format!("192.0.2.{}", 10 * count + number));
                    let (id, entry, _) = table.insert(peer, phase, &options).expect("an entry");
                    assert_eq!(table.set_buffered(id, 100, &options), 0);
                    entry
                };
                (0..count).map(insert).collect()
            };
            let (handshaking, writing) =
                (insert(Phase::Handshake, handshakes), insert(Phase::Writing, others));
            let (id, ..) =
                table.insert(peer("192.0.2.200"), Phase::FirstMessage, &options).expect("an entry");
            assert_eq!(table.set_buffered(id, 1, &options), 2);
            let gone = |entries: &[Rc<ConnectionEntry>]| {
                entries.iter().filter(|entry| command(entry).is_some()).count()
            };
            let expected = if handshakes > others { (2, 0) } else { (0, 2) };
            assert_eq!((gone(&handshaking), gone(&writing)), expected);
        }
    }

    #[test]
    fn the_buffers_of_all_connections_together_are_bounded() {
        let options = TcpOptions { memory_max: 1000, ..options(100) };
        let mut table = ConnectionTable::default();
        let mut entries = Vec::new();
        for number in 0..10 {
            let (id, entry, _) = table
                .insert(peer(&format!("192.0.2.{number}")), Phase::FirstMessage, &options)
                .expect("an entry");
            entries.push(entry);
            assert_eq!(table.set_buffered(id, 100, &options), 0);
        }
        // One octet too many: the table closes the two oldest connections, until at most 7/8 of the
        // limit is in use.
        let (id, ..) = table.insert(peer("192.0.2.100"), Phase::FirstMessage, &options).expect("an entry");
        assert_eq!(table.set_buffered(id, 1, &options), 2);
        let gone: Vec<bool> =
            entries.iter().map(|entry| entry.poll_command(Waker::noop()).is_some()).collect();
        assert_eq!(gone, [true, true, false, false, false, false, false, false, false, false]);
        assert_eq!((table.buffered, table.len()), (801, 9));
    }
}
