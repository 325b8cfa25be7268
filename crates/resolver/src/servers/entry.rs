//! What the table knows of a server, and of a server as a server of one zone.

use super::QueryKind;
use super::address::{AddressKey, ZoneKey};
use super::cookie::ServerCookie;
use super::rtt::{EXPIRY_MS, Rtt};
use nonesuch_net::Transport;
use std::time::Duration;

/// Milliseconds for which properties of a server hold, such as missing support of EDNS. After that,
/// the next query finds out again.
const PROPERTY_MS: u64 = 900_000;
/// Number of timeouts in succession after which a server is queried only now and then.
pub(super) const SILENT_MAX: u8 = 4;
/// Milliseconds between two queries to a server that is silent. The time doubles with each of them.
const PROBE_MS: u64 = 1000;
/// Maximum number of times that the time between probes is doubled: probes are 64 s apart.
const PROBE_DOUBLINGS_MAX: u8 = 6;
/// Milliseconds for which a server is lame for a zone. RFC 9520 §3.2 permits at most five minutes for
/// failures.
const LAME_MS: u64 = 300_000;

/// Number of queries to a server that go over TCP at once after a response was truncated. The next query goes
/// over UDP, and its time is a sample of the round-trip time.
const TCP_AT_ONCE: u8 = 15;

/// Whether a property that was seen at `at` still holds.
fn holds(at: Option<u64>, now: u64) -> bool {
    at.is_some_and(|at| now.saturating_sub(at) < PROPERTY_MS)
}

/// EDNS support of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EdnsSupport {
    /// No response showed it.
    #[default]
    Unknown,
    /// The server sent OPT, last at this time.
    Supported(u64),
    /// The server answered FORMERR, NOTIMP or BADVERS with EDNS, and did answer without it, at this
    /// time.
    Unsupported(u64),
}

/// A server. Times are in milliseconds.
#[derive(Clone, Default)]
pub(super) struct Server {
    pub(super) rtt: Rtt,
    /// Rounds of timeouts since the last response for any zone.
    pub(super) silent: u8,
    /// Whether the table has, or had, a [`Path`] of the server.
    pub(super) has_paths: bool,
    pub(super) edns: EdnsSupport,
    /// When the server did not copy the case of the query name.
    pub(super) changed_case_at: Option<u64>,
    /// When the server required TCP.
    pub(super) required_tcp_at: Option<u64>,
    /// Number of queries that go over TCP at once, because the responses do not fit into a datagram.
    tcp_at_once: u8,
    pub(super) cookie: Option<ServerCookie>,
    /// The last event.
    pub(super) touched_at: u64,
}

impl Server {
    pub(super) fn new(now: u64) -> Self {
        Self { touched_at: now, ..Self::default() }
    }

    /// Whether nothing happened for so long that the entry means nothing.
    pub(super) const fn is_expired(&self, now: u64) -> bool {
        now.saturating_sub(self.touched_at) >= EXPIRY_MS
    }

    pub(super) fn copies_case(&self, now: u64) -> bool {
        !holds(self.changed_case_at, now)
    }

    pub(super) fn requires_tcp(&self, now: u64) -> bool {
        holds(self.required_tcp_at, now)
    }

    /// Whether the next query goes over TCP.
    pub(super) fn prefers_tcp(&self, now: u64) -> bool {
        self.requires_tcp(now) || self.tcp_at_once > 0
    }

    /// Counts a query that goes over TCP at once.
    pub(super) const fn use_tcp_at_once(&mut self) {
        self.tcp_at_once = self.tcp_at_once.saturating_sub(1);
    }

    /// Records a response over TCP. `fits`: a datagram could have had it. `was_at_once`: no response over UDP
    /// was truncated before.
    ///
    /// Only a response that is too large leads to further queries over TCP: anyone can forge TC, and a server
    /// may set it to test the address of its client.
    pub(super) const fn record_tcp_response(&mut self, fits: bool, was_at_once: bool) {
        if fits {
            self.tcp_at_once = 0;
        } else if !was_at_once {
            self.tcp_at_once = TCP_AT_ONCE;
        }
    }

    /// Records that the server did not answer over TCP.
    pub(super) const fn record_tcp_silence(&mut self) {
        self.tcp_at_once = 0;
    }

    pub(super) fn lacks_edns(&self, now: u64) -> bool {
        matches!(self.edns, EdnsSupport::Unsupported(at) if holds(Some(at), now))
    }

    pub(super) fn has_edns(&self, now: u64) -> bool {
        matches!(self.edns, EdnsSupport::Supported(at) if holds(Some(at), now))
    }
}

/// Timeouts of a server that answers no query of some sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Silence {
    /// Number of timeouts in succession.
    count: u8,
    /// From [`SILENT_MAX`] timeouts on: when the next query is permitted.
    probe_at: u64,
}

impl Silence {
    /// Whether the server is not queried at present.
    pub(super) const fn is_barred(&self, now: u64) -> bool {
        self.count >= SILENT_MAX && now < self.probe_at
    }

    pub(super) const fn count(&self) -> u8 {
        self.count
    }

    /// Counts a timeout of a query that began after `began` timeouts. Queries that were in flight
    /// together count once, as in Unbound (`util/rtt.c`, `rtt_lost`).
    fn record(&mut self, began: u8, now: u64) {
        self.count = count_round(self.count, began);
        if self.count >= SILENT_MAX {
            self.probe_at = now.saturating_add(self.probe_interval());
        }
    }

    /// Prevents further queries until the probe that begins at `now` has ended, and for a time after
    /// its timeout. If the probe ends without a result, the next one is due then.
    fn begin_probe(&mut self, timeout: Duration, now: u64) {
        if self.count >= SILENT_MAX {
            let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            self.probe_at = now.saturating_add(timeout).saturating_add(self.probe_interval());
        }
    }

    /// Returns the milliseconds until the next probe.
    const fn probe_interval(&self) -> u64 {
        let doublings = self.count.saturating_sub(SILENT_MAX);
        PROBE_MS << if doublings > PROBE_DOUBLINGS_MAX { PROBE_DOUBLINGS_MAX } else { doublings }
    }
}

/// Returns the number of rounds of timeouts after a timeout of a query that began after `began`.
pub(super) const fn count_round(count: u8, began: u8) -> u8 {
    // `began` is lower for a query whose round was counted already, and higher for a query that began
    // before the last response.
    if began >= count { count.saturating_add(1) } else { count }
}

/// A server of a zone: the key of a [`Path`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PathKey {
    pub(super) server: AddressKey,
    pub(super) zone: ZoneKey,
}

/// The faults of a server as a server of one zone.
///
/// Timeouts are counted for each zone, because a server may serve one zone and drop queries for
/// others. Otherwise anyone could keep a server from being queried for its zones, by delegating
/// another zone to it.
#[derive(Clone, Default)]
pub(super) struct Path {
    /// The server does not serve the zone: until when this is assumed.
    lame_until: u64,
    silences: [Silence; 3],
    touched_at: u64,
}

impl Path {
    /// Returns the silence that queries of a kind over a transport count for. Some servers drop
    /// queries for unusual types, and some are not reachable over TCP. Anyone can cause such queries,
    /// so they must not keep the server from other queries.
    const fn index(kind: QueryKind, transport: Transport) -> usize {
        match (transport, kind) {
            (Transport::Udp, QueryKind::Common) => 0,
            (Transport::Udp, QueryKind::Other) => 1,
            (Transport::Tcp | Transport::Tls, _) => 2,
        }
    }

    pub(super) const fn silence(&self, kind: QueryKind, transport: Transport) -> Silence {
        self.silences[Self::index(kind, transport)]
    }

    pub(super) const fn is_lame(&self, now: u64) -> bool {
        now < self.lame_until
    }

    pub(super) const fn is_expired(&self, now: u64) -> bool {
        !self.is_lame(now) && now.saturating_sub(self.touched_at) >= EXPIRY_MS
    }

    pub(super) const fn mark_lame(&mut self, now: u64) {
        self.lame_until = now.saturating_add(LAME_MS);
        self.touched_at = now;
    }

    pub(super) fn begin_probe(&mut self, kind: QueryKind, transport: Transport, timeout: Duration, now: u64) {
        self.silences[Self::index(kind, transport)].begin_probe(timeout, now);
    }

    pub(super) fn record_timeout(&mut self, kind: QueryKind, transport: Transport, began: u8, now: u64) {
        self.silences[Self::index(kind, transport)].record(began, now);
        self.touched_at = now;
    }

    /// Records a response: the server is not silent over this transport, whatever the type was.
    pub(super) fn record_response(&mut self, transport: Transport) {
        match transport {
            Transport::Udp => self.silences[..2].fill(Silence::default()),
            Transport::Tcp | Transport::Tls => self.silences[2] = Silence::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_in_flight_together_count_as_one_timeout() {
        let mut silence = Silence::default();
        (0..50).for_each(|_| silence.record(0, 0));
        assert_eq!(silence.count(), 1);
        (0..50).for_each(|_| silence.record(1, 0));
        assert_eq!(silence.count(), 2);
        // A query from before the last response.
        let mut silence = Silence::default();
        silence.record(3, 0);
        assert_eq!(silence.count(), 1);
    }

    #[test]
    fn a_silent_server_is_probed_after_a_growing_time() {
        let mut silence = Silence::default();
        (0..4).for_each(|began| silence.record(began, 1000));
        assert!(silence.is_barred(1000) && silence.is_barred(1999) && !silence.is_barred(2000));
        silence.begin_probe(Duration::from_millis(300), 2000);
        // The probe lasts 300 ms, and ends without a result.
        assert!(silence.is_barred(3299) && !silence.is_barred(3300));
        let intervals = (4..12).map(|began| {
            silence.record(began, 10_000);
            silence.probe_at - 10_000
        });
        let expected = [2000, 4000, 8000, 16_000, 32_000, 64_000, 64_000, 64_000];
        assert!(intervals.eq(expected));
        silence.count = u8::MAX;
        silence.record(u8::MAX, 0);
        assert_eq!(silence.probe_at, 64_000);
    }

    #[test]
    fn a_response_ends_silence_over_its_transport_only() {
        let mut path = Path::default();
        for transport in [Transport::Udp, Transport::Tcp] {
            for kind in [QueryKind::Common, QueryKind::Other] {
                path.record_timeout(kind, transport, 0, 0);
            }
        }
        path.record_response(Transport::Udp);
        let count = |path: &Path, kind, transport| path.silence(kind, transport).count();
        assert_eq!(count(&path, QueryKind::Common, Transport::Udp), 0);
        assert_eq!(count(&path, QueryKind::Other, Transport::Udp), 0);
        assert_eq!(count(&path, QueryKind::Common, Transport::Tcp), 1);
        path.record_response(Transport::Tls);
        assert_eq!(count(&path, QueryKind::Other, Transport::Tcp), 0);
    }

    #[test]
    fn lameness_and_properties_expire() {
        let mut path = Path::default();
        path.mark_lame(1000);
        assert!(path.is_lame(1000 + LAME_MS - 1) && !path.is_lame(1000 + LAME_MS));
        assert!(!path.is_expired(1000 + EXPIRY_MS - 1) && path.is_expired(1000 + EXPIRY_MS));
        let mut server = Server::new(0);
        assert!(server.copies_case(0) && !server.requires_tcp(0) && !server.lacks_edns(0));
        server.changed_case_at = Some(0);
        server.required_tcp_at = Some(0);
        server.edns = EdnsSupport::Unsupported(0);
        assert!(!server.copies_case(1) && server.requires_tcp(1) && server.lacks_edns(1));
        let later = PROPERTY_MS;
        assert!(server.copies_case(later) && !server.requires_tcp(later) && !server.lacks_edns(later));
    }
}
