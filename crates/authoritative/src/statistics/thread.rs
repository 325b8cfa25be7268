//! The counters of one thread.

use super::Carrier;
use super::cells::{LatencyCells, QuerySizes, ResponseSizes, add, zeros};
use crate::Query;
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::Opt;
use nonesuch_proto::message::{Rcode, flags};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// Types with a counter of their own: 0 to 257 (CAA). All others share one.
const TYPES: usize = 258;
/// Response codes that are told apart; those above count as the last.
pub(super) const RCODES: usize = 32;
/// Values of an opcode.
const OPCODES: usize = 16;

/// What a query and its response had beside the response code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen(pub(super) u8);

impl Seen {
    /// The response was truncated.
    pub const TRUNCATED: Self = Self(1);
    /// The query had an OPT record.
    pub const EDNS: Self = Self(2);
    /// The query had the flag DO.
    pub const DNSSEC_OK: Self = Self(4);
    /// Combinations of the above.
    pub(super) const VALUES: usize = 8;

    /// This, and `other` where `holds`.
    #[must_use]
    pub const fn with(self, other: Self, holds: bool) -> Self {
        Self(self.0 | if holds { other.0 } else { 0 })
    }

    /// Whether all of `other` is in this.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A query that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Type asked for.
    pub qtype: Rtype,
    /// Response code, its upper bits in OPT included.
    pub rcode: Rcode,
    /// Octets of the query.
    pub query_octets: usize,
    /// Octets of the response.
    pub response_octets: usize,
    /// What else is counted.
    pub seen: Seen,
}

/// Why a message was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Response rate limiting.
    RateLimited,
    /// It is a response, or has no whole header.
    NotAQuery,
    /// No answer could be made.
    Failed,
}

impl Dropped {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 3] = [Self::RateLimited, Self::NotAQuery, Self::Failed];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::NotAQuery => "not_a_query",
            Self::Failed => "failed",
        }
    }
}

/// A cookie option of a query (RFC 7873).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookie {
    /// A client cookie alone.
    Client,
    /// With a server cookie that is ours and recent.
    Valid,
    /// With a server cookie that is not ours, or old.
    Invalid,
    /// Of no length that a cookie has.
    Malformed,
}

impl Cookie {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 4] = [Self::Client, Self::Valid, Self::Invalid, Self::Malformed];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Malformed => "malformed",
        }
    }
}

/// What came of a message's TSIG record (RFC 8945 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tsig {
    /// It holds.
    Valid,
    /// BADKEY: no such key.
    BadKey,
    /// BADSIG: the MAC is wrong.
    BadSignature,
    /// BADTIME: the clocks differ.
    BadTime,
    /// BADTRUNC: the MAC is shorter than is taken.
    BadTruncation,
    /// FORMERR.
    Malformed,
}

impl Tsig {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 6] =
        [Self::Valid, Self::BadKey, Self::BadSignature, Self::BadTime, Self::BadTruncation, Self::Malformed];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::BadKey => "bad_key",
            Self::BadSignature => "bad_signature",
            Self::BadTime => "bad_time",
            Self::BadTruncation => "bad_truncation",
            Self::Malformed => "malformed",
        }
    }
}

/// What one thread has counted. In cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Counters {
    pub(super) carrier: Carrier,
    /// By type.
    pub(super) types: [AtomicU64; TYPES],
    /// Of all types without a counter of their own.
    pub(super) other_types: AtomicU64,
    /// By what was [`Seen`], and in it by response code.
    pub(super) outcomes: [AtomicU64; Seen::VALUES * RCODES],
    pub(super) query_sizes: QuerySizes,
    pub(super) response_sizes: ResponseSizes,
    pub(super) latencies: LatencyCells,
    /// Answered, but no query that could be read: by opcode, and in it by response code.
    pub(super) refused: [AtomicU64; OPCODES * RCODES],
    pub(super) drops: [AtomicU64; Dropped::ALL.len()],
    pub(super) cookies: [AtomicU64; Cookie::ALL.len()],
    pub(super) tsig: [AtomicU64; Tsig::ALL.len()],
    pub(super) slips: AtomicU64,
    pub(super) over_budget: AtomicU64,
}

impl Counters {
    pub(super) fn new(carrier: Carrier) -> Self {
        Self {
            carrier,
            types: zeros(),
            other_types: AtomicU64::new(0),
            outcomes: zeros(),
            query_sizes: QuerySizes::new(),
            response_sizes: ResponseSizes::new(),
            latencies: LatencyCells::new(),
            refused: zeros(),
            drops: zeros(),
            cookies: zeros(),
            tsig: zeros(),
            slips: AtomicU64::new(0),
            over_budget: AtomicU64::new(0),
        }
    }
}

/// TC in the upper octet of a header's flags.
const TRUNCATED_IN_UPPER: u8 = (flags::TC >> 8) as u8;

/// What a query's OPT record adds to [`Seen`].
#[inline]
fn edns_seen(opt: Option<&Opt<'_>>) -> u8 {
    opt.map_or(0, |opt| Seen::EDNS.0 | if opt.dnssec_ok() { Seen::DNSSEC_OK.0 } else { 0 })
}

/// One thread's hand at its counters. There is one for each set of counters, so that nobody else writes them.
#[derive(Debug)]
pub struct ThreadStatistics {
    counters: Arc<Counters>,
    /// When the batch was received.
    begun: Option<Instant>,
    /// Answers since then that are not sent yet.
    unsent: u64,
}

impl ThreadStatistics {
    pub(super) const fn new(counters: Arc<Counters>) -> Self {
        Self { counters, begun: None, unsent: 0 }
    }

    /// Counts `message`, read as `query`, which is answered with `response`. Response codes above 15 stand in OPT, which is
    /// not read here: they are for [`ThreadStatistics::record`].
    #[inline]
    pub fn query(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        // The flags' two octets (RFC 1035 §4.1.1).
        let [_, _, upper, lower, ..] = *response else { return };
        let seen = (upper & TRUNCATED_IN_UPPER) >> 1 | edns_seen(query.opt.as_ref());
        self.count(query.qtype, lower & 0x0f, seen, message.len(), response.len());
    }

    /// Counts a query that is answered.
    #[inline]
    pub fn record(&mut self, observation: &Observation) {
        let rcode = observation.rcode.0.min(RCODES as u16 - 1) as u8;
        let Observation { qtype, query_octets, response_octets, seen, .. } = *observation;
        self.count(qtype, rcode, seen.0, query_octets, response_octets);
    }

    #[inline]
    fn count(&mut self, qtype: Rtype, rcode: u8, seen: u8, query_octets: usize, response_octets: usize) {
        let counters = &*self.counters;
        match counters.types.get(usize::from(qtype.0)) {
            Some(counter) => add(counter, 1),
            None => add(&counters.other_types, 1),
        }
        add(&counters.outcomes[usize::from(seen << 5 | rcode)], 1);
        counters.query_sizes.count(query_octets);
        counters.response_sizes.count(response_octets);
        self.unsent += 1;
    }

    /// Counts a message that is answered, but is no query that could be read: of another opcode, or malformed.
    pub fn refuse(&mut self, opcode: u8, rcode: Rcode) {
        let rcode = usize::from(rcode.0).min(RCODES - 1);
        add(&self.counters.refused[usize::from(opcode) % OPCODES * RCODES + rcode], 1);
        self.unsent += 1;
    }

    /// Counts a message that is not answered.
    pub fn drop(&mut self, reason: Dropped) {
        add(&self.counters.drops[reason as usize], 1);
    }

    /// Counts a response that the rate limit made a truncated one, besides the query.
    pub fn slip(&mut self) {
        add(&self.counters.slips, 1);
    }

    /// Counts a query whose online work the budget refused, besides the query.
    pub fn over_budget(&mut self) {
        add(&self.counters.over_budget, 1);
    }

    /// Counts a query's cookie option.
    #[inline]
    pub fn cookie(&mut self, cookie: Cookie) {
        add(&self.counters.cookies[cookie as usize], 1);
    }

    /// Counts a message's TSIG record.
    pub fn tsig(&mut self, outcome: Tsig) {
        add(&self.counters.tsig[outcome as usize], 1);
    }

    /// Begins a batch that was received at `now`.
    #[inline]
    pub const fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
        self.unsent = 0;
    }

    /// The answers of the batch so far were sent by `now`: each of them took from the beginning of the batch until then.
    #[inline]
    pub fn sent(&mut self, now: Instant) {
        let unsent = std::mem::take(&mut self.unsent);
        let Some(begun) = self.begun else { return };
        if unsent > 0 {
            let elapsed = now.saturating_duration_since(begun).as_nanos();
            self.counters.latencies.count(u64::try_from(elapsed).unwrap_or(u64::MAX), unsent);
        }
    }
}
