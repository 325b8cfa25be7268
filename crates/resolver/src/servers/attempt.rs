//! Queries to servers from the view of the table.

use super::cookie::{ClientCookies, Cookie};
use super::entry::{Path, SILENT_MAX, Server};
use super::in_flight::Slot;
use super::{NoServer, Place, Repeat, ServerTable, ZoneKey};
use nonesuch_net::Transport;
use nonesuch_net::machine::Now;
use nonesuch_proto::Rtype;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A TCP query takes this number of round trips: connection, query, and one spare, because the kernel
/// repeats lost segments.
const TCP_ROUND_TRIPS: u32 = 3;
/// Lower bound of the timeout of a TCP query: the kernel repeats a SYN after a second (RFC 6298 §2.1).
const TCP_TIMEOUT_MIN: Duration = Duration::from_secs(2);
/// Upper bound of the timeout of a TCP query.
const TCP_TIMEOUT_MAX: Duration = Duration::from_secs(12);
/// Number of timeouts in succession after which queries have the smallest payload size. Where a path
/// loses large responses, the server then truncates them, and TCP follows.
const SMALL_PAYLOAD_AFTER: u8 = 2;
/// The payload size of a client without EDNS (RFC 6891 §6.2.3).
pub(super) const PAYLOAD_MIN: u16 = 512;

/// How usual the type of a query is. Servers that drop queries for unusual types exist; their silence
/// does not count for usual types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryKind {
    /// A type that every server answers, such as A and NS.
    Common,
    /// Any other type.
    Other,
}

impl QueryKind {
    /// Returns the kind of queries for `rtype`.
    #[must_use]
    pub const fn of(rtype: Rtype) -> Self {
        match rtype {
            Rtype::A
            | Rtype::NS
            | Rtype::CNAME
            | Rtype::SOA
            | Rtype::PTR
            | Rtype::MX
            | Rtype::TXT
            | Rtype::AAAA
            | Rtype::SRV
            | Rtype::DS
            | Rtype::DNSKEY => Self::Common,
            _ => Self::Other,
        }
    }
}

/// What a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// The zone that the server is asked as a server of.
    pub zone: ZoneKey,
    /// The kind of the query type.
    pub kind: QueryKind,
    /// The transport that the query needs at least. With UDP, the table may select TCP.
    pub transport: Transport,
}

impl Purpose {
    /// Returns the purpose of the query that is sent, if the server is to be asked over TCP.
    pub(super) fn adapt(self, uses_tcp: bool) -> Self {
        let is_changed = uses_tcp && self.transport == Transport::Udp;
        if is_changed { Self { transport: Transport::Tcp, ..self } } else { self }
    }
}

/// A query to a server, which is counted as in flight. Build the message as the public fields say.
#[must_use = "the attempt ends when it is dropped"]
pub struct Attempt {
    /// The server.
    pub server: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// Time after which the query has [timed out](ServerTable::timed_out), if it is not over before:
    /// 50 ms to 12 s.
    pub timeout: Duration,
    /// The payload size in the OPT record, in octets; `None`: the query has no OPT record.
    pub payload: Option<u16>,
    /// The cookie in the OPT record.
    pub cookie: Option<Cookie>,
    /// Whether the server is assumed to copy the case of the query name, so that a response with
    /// another case is not its response.
    pub copies_case: bool,
    pub(super) purpose: Purpose,
    pub(super) repeat: Option<Repeat>,
    pub(super) place: Place,
    pub(super) begun: Instant,
    /// Rounds of timeouts before the query: of the server for this zone, and of the server.
    pub(super) silent: [u8; 2],
    /// The day of the client cookie.
    pub(super) day: u32,
    /// Whether the table selected TCP because responses of the server were too large for UDP.
    pub(super) is_tcp_at_once: bool,
    _slot: Slot,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("server", &self.server)
            .field("transport", &self.transport)
            .field("timeout", &self.timeout)
            .field("payload", &self.payload)
            .field("repeat", &self.repeat)
            .finish_non_exhaustive()
    }
}

impl Attempt {
    /// Whether the query can be sent over UDP if it fails: the server was asked over TCP because its last
    /// responses were truncated.
    #[must_use]
    pub const fn can_use_udp(&self) -> bool {
        self.is_tcp_at_once
    }

    /// Whether a response with the cookie option `data` can belong to the query. If not, it is
    /// forged: discard it, and wait for the response (RFC 7873 §5.3).
    #[must_use]
    pub fn matches_cookie(&self, data: Option<&[u8]>) -> bool {
        self.cookie.is_none_or(|cookie| cookie.matches(data))
    }
}

impl ServerTable {
    /// Begins a query to `server`, which [`select`](Self::select) returned. `repeat`: what
    /// [`answered`](Self::answered) returned for the previous query, if this query repeats it.
    ///
    /// # Errors
    /// [`NoServer::Busy`] if too many queries to the server are in flight, and [`NoServer::Silent`]
    /// if another worker just began to probe the server. Select another server.
    pub fn begin(
        &self,
        server: SocketAddr,
        purpose: Purpose,
        repeat: Option<Repeat>,
        now: Now,
    ) -> Result<Attempt, NoServer> {
        let (place, now_ms) = (self.place(server), self.milliseconds(now.instant));
        let mut shard = self.lock(&place);
        let entry = shard.server_mut(&place, now_ms).clone();
        let limit = self.in_flight_limit(Some(&entry), now_ms);
        let slot = self.in_flight.acquire(place.hash, limit).ok_or(NoServer::Busy)?;
        let requires_tcp = repeat == Some(Repeat::OverTcp) || entry.requires_tcp(now_ms);
        let is_tcp_at_once =
            purpose.transport == Transport::Udp && !requires_tcp && entry.prefers_tcp(now_ms);
        let purpose = purpose.adapt(requires_tcp || is_tcp_at_once);
        let transport = purpose.transport;
        let path = if entry.has_paths { shard.path(&place, purpose.zone, now_ms) } else { None };
        let silence = path.map(|path| path.silence(purpose.kind, transport)).unwrap_or_default();
        // A repeated query follows a response.
        if silence.is_barred(now_ms) && repeat.is_none() {
            return Err(NoServer::Silent);
        }
        let silent = count_silent(Some(&entry), path, purpose, now_ms);
        let timeout = timeout(&entry, transport, is_tcp_at_once, silent, now_ms);
        if is_tcp_at_once {
            shard.server_mut(&place, now_ms).use_tcp_at_once();
        }
        if silence.count() >= SILENT_MAX {
            shard.path_mut(&place, purpose.zone, now_ms).begin_probe(
                purpose.kind,
                transport,
                timeout,
                now_ms,
            );
        }
        drop(shard);
        let has_edns = repeat != Some(Repeat::WithoutEdns) && !entry.lacks_edns(now_ms);
        let day = ClientCookies::day(now.unix);
        Ok(Attempt {
            server,
            transport,
            timeout,
            payload: has_edns.then(|| self.payload(silent)),
            cookie: has_edns.then(|| self.cookies.cookie(&place.key, day, entry.cookie.as_ref())),
            copies_case: entry.copies_case(now_ms),
            purpose,
            repeat,
            place,
            begun: now.instant,
            silent: [silence.count(), entry.silent],
            day,
            is_tcp_at_once,
            _slot: slot,
        })
    }

    fn payload(&self, silent: u8) -> u16 {
        if silent >= SMALL_PAYLOAD_AFTER { PAYLOAD_MIN } else { self.options.payload.max(PAYLOAD_MIN) }
    }
}

/// Returns the number of timeouts in succession that queries for a purpose expect to continue.
///
/// As long as a server answers for any zone, only silence for this zone counts. Silence of a server
/// that never answered counts for all zones.
pub(super) fn count_silent(server: Option<&Server>, path: Option<&Path>, purpose: Purpose, now: u64) -> u8 {
    let of_zone = path.map_or(0, |path| path.silence(purpose.kind, purpose.transport).count());
    match server {
        Some(server) if !server.rtt.is_known(now) => of_zone.max(server.silent),
        _ => of_zone,
    }
}

fn timeout(server: &Server, transport: Transport, is_tcp_at_once: bool, silent: u8, now: u64) -> Duration {
    let timeout = server.rtt.timeout(silent, now);
    match transport {
        Transport::Udp => timeout,
        // Without the lower bound: the connection probably exists, and UDP is left.
        Transport::Tcp | Transport::Tls if is_tcp_at_once => (timeout * TCP_ROUND_TRIPS).min(TCP_TIMEOUT_MAX),
        Transport::Tcp | Transport::Tls => {
            (timeout * TCP_ROUND_TRIPS).clamp(TCP_TIMEOUT_MIN, TCP_TIMEOUT_MAX)
        }
    }
}
