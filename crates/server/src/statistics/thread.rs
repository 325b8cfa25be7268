//! The counters of one thread.

use super::TransportKind;
use super::cells::{LatencyCells, SizeCells, add, zeros};
use super::log_throttle::{KnownSender, LogThrottle};
use crate::limits::ResponseCategory;
use crate::query::Query;
use crate::tsig::TsigRejection;
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{DO, Opt};
use nonesuch_proto::message::{Rcode, flags};
use std::net::{IpAddr, SocketAddr};
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
pub struct QueryFlags(pub(super) u8);

impl QueryFlags {
    /// The response was truncated.
    pub const TRUNCATED: Self = Self(1);
    /// The query had an OPT record.
    pub const EDNS: Self = Self(2);
    /// The query had the flag DO.
    pub const DNSSEC_OK: Self = Self(4);
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

/// What came of a query, as a number: the response code and TC where they stand in a header's flags (RFC 1035 §4.1.1), and
/// between them, where the flags have RA and others that are the same in all responses, what the query's OPT record said.
#[derive(Clone, Copy)]
pub(super) struct OutcomeIndex(u16);

impl OutcomeIndex {
    const RCODE: u16 = 0x000f;
    const EDNS: u16 = 0x0010;
    const DNSSEC_OK: u16 = 0x0020;
    /// The fifth bit of a response code, whose upper bits stand in OPT.
    const RCODE_ABOVE: u16 = 0x0040;
    /// Numbers that there are.
    pub(super) const COUNT: usize = 0x0280;

    /// Of a header's flags and of the query's OPT record.
    #[inline]
    const fn of_flags(word: u16, opt: Option<&Opt<'_>>) -> Self {
        let edns = match opt {
            None => 0,
            // DO is moved to its place here.
            Some(opt) => Self::EDNS | ((opt.flags & DO) / (DO / Self::DNSSEC_OK)),
        };
        Self(word & (flags::TC | Self::RCODE) | edns)
    }

    /// Of a response code below [`RCODES`].
    const fn of_seen(rcode: u16, seen: QueryFlags) -> Self {
        let mut index = rcode & Self::RCODE | if rcode > Self::RCODE { Self::RCODE_ABOVE } else { 0 };
        index |= if seen.has(QueryFlags::TRUNCATED) { flags::TC } else { 0 };
        index |= if seen.has(QueryFlags::EDNS) { Self::EDNS } else { 0 };
        index |= if seen.has(QueryFlags::DNSSEC_OK) { Self::DNSSEC_OK } else { 0 };
        Self(index)
    }

    /// The outcome with this number.
    pub(super) const fn read(index: usize) -> (Rcode, QueryFlags) {
        let index = index as u16;
        let above = if index & Self::RCODE_ABOVE != 0 { Self::RCODE + 1 } else { 0 };
        let seen = QueryFlags(0)
            .with(QueryFlags::TRUNCATED, index & flags::TC != 0)
            .with(QueryFlags::EDNS, index & Self::EDNS != 0)
            .with(QueryFlags::DNSSEC_OK, index & Self::DNSSEC_OK != 0);
        (Rcode(index & Self::RCODE | above), seen)
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
    pub flags: QueryFlags,
}

/// Why a message was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Response rate limiting.
    RateLimited,
    /// It is a response, or has no whole header.
    NotAQuery,
    /// No answer could be made.
    Failed,
}

impl DropReason {
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
pub enum CookieResult {
    /// A client cookie alone.
    Client,
    /// With a server cookie that is ours and recent.
    Valid,
    /// With a server cookie that is not ours, or old.
    Invalid,
    /// Of no length that a cookie has.
    Malformed,
}

impl CookieResult {
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
pub enum TsigResult {
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

impl TsigResult {
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
    pub(super) carrier: TransportKind,
    /// By type.
    pub(super) types: [AtomicU64; TYPES],
    /// Of all types without a counter of their own.
    pub(super) other_types: AtomicU64,
    /// By [`OutcomeIndex`].
    pub(super) outcomes: [AtomicU64; OutcomeIndex::COUNT],
    pub(super) query_sizes: SizeCells,
    pub(super) response_sizes: SizeCells,
    pub(super) latencies: LatencyCells,
    /// Answered, but no query that could be read: by opcode, and in it by response code.
    pub(super) refused: [AtomicU64; OPCODES * RCODES],
    pub(super) drops: [AtomicU64; DropReason::ALL.len()],
    pub(super) cookies: [AtomicU64; CookieResult::ALL.len()],
    pub(super) tsig: [AtomicU64; TsigResult::ALL.len()],
    pub(super) slips: AtomicU64,
    pub(super) over_budget: AtomicU64,
    pub(super) prohibited: AtomicU64,
}

impl Counters {
    pub(super) fn new(carrier: TransportKind) -> Self {
        Self {
            carrier,
            types: zeros(),
            other_types: AtomicU64::new(0),
            outcomes: zeros(),
            query_sizes: SizeCells::new(),
            response_sizes: SizeCells::new(),
            latencies: LatencyCells::new(),
            refused: zeros(),
            drops: zeros(),
            cookies: zeros(),
            tsig: zeros(),
            slips: AtomicU64::new(0),
            over_budget: AtomicU64::new(0),
            prohibited: AtomicU64::new(0),
        }
    }
}

/// One thread's hand at its counters. There is one for each set of counters, so that nobody else writes them.
#[derive(Debug)]
pub struct ThreadStatistics {
    counters: Arc<Counters>,
    /// When the batch was received.
    begun: Option<Instant>,
    /// Answers since then that are not sent yet.
    unsent: u64,
    told: Arc<LogThrottle>,
    /// The millisecond from which on it is looked at a response that is limited.
    look: u64,
}

/// Milliseconds between two of them: a flood costs nothing more, and is seen all the same.
const LOOK: u64 = 10;

impl ThreadStatistics {
    pub(super) const fn new(counters: Arc<Counters>, told: Arc<LogThrottle>) -> Self {
        Self { counters, begun: None, unsent: 0, told, look: 0 }
    }

    /// Logs `message`, whose TSIG record was refused at `now`, in seconds since 1970; `known`: its sender, where the
    /// configuration knows it.
    pub fn log_tsig_rejection(
        &self,
        refused: &TsigRejection,
        message: &[u8],
        (peer, known): (SocketAddr, Option<KnownSender>),
        now: u64,
    ) {
        self.told.log_tsig_rejection(refused, message, (peer, known), now);
    }

    /// Whether a response that is limited, `milliseconds` since the thread began, is one of those that the log may be told of.
    pub const fn may_log_limited(&mut self, milliseconds: u64) -> bool {
        let is_due = milliseconds >= self.look;
        if is_due {
            self.look = milliseconds + LOOK;
        }
        is_due
    }

    /// Tells in the log of a response that was limited at `now`, in seconds since 1970.
    pub fn log_limited(&self, network: (IpAddr, u8), class: ResponseCategory, now: u64) {
        self.told.log_limited(network, class, now);
    }

    /// Counts `message`, read as `query`, which is answered with `response`. Response codes above 15 stand in OPT, which is
    /// not read here: they are for [`ThreadStatistics::record`].
    #[inline]
    pub fn query(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        // The flags' two octets (RFC 1035 §4.1.1).
        let [_, _, upper, lower, ..] = *response else { return };
        let outcome = OutcomeIndex::of_flags(u16::from_be_bytes([upper, lower]), query.opt.as_ref());
        self.count(query.qtype, outcome, message.len(), response.len());
    }

    /// Counts a query that is answered.
    pub fn record(&mut self, observation: &Observation) {
        let Observation { qtype, rcode, query_octets, response_octets, flags: seen } = *observation;
        let outcome = OutcomeIndex::of_seen(rcode.0.min(RCODES as u16 - 1), seen);
        self.count(qtype, outcome, query_octets, response_octets);
    }

    /// Counts a query that is answered with a stream of messages: it is one response without errors, and has no size.
    pub fn stream(&mut self, query: &Query<'_>, message: &[u8]) {
        let seen = QueryFlags::default()
            .with(QueryFlags::EDNS, query.opt.is_some())
            .with(QueryFlags::DNSSEC_OK, query.opt.is_some_and(|opt| opt.dnssec_ok()));
        let outcome = OutcomeIndex::of_seen(0, seen);
        let counters = &*self.counters;
        add(counters.types.get(usize::from(query.qtype.0)).unwrap_or(&counters.other_types), 1);
        add(&counters.outcomes[usize::from(outcome.0)], 1);
        counters.query_sizes.count(message.len());
    }

    #[inline]
    fn count(&mut self, qtype: Rtype, outcome: OutcomeIndex, query_octets: usize, response_octets: usize) {
        let counters = &*self.counters;
        match counters.types.get(usize::from(qtype.0)) {
            Some(counter) => add(counter, 1),
            None => add(&counters.other_types, 1),
        }
        add(&counters.outcomes[usize::from(outcome.0)], 1);
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
    pub fn drop(&mut self, reason: DropReason) {
        add(&self.counters.drops[reason as usize], 1);
    }

    /// Counts a response that the rate limit made a truncated one, besides the query.
    pub fn slip(&mut self) {
        add(&self.counters.slips, 1);
    }

    /// Counts a query whose online work the budget refused, besides the query.
    pub fn count_over_budget(&mut self) {
        add(&self.counters.over_budget, 1);
    }

    /// Counts a query that its sender may not ask, besides the query.
    pub fn prohibit(&mut self) {
        add(&self.counters.prohibited, 1);
    }

    /// Counts a query's cookie option.
    #[inline]
    pub fn cookie(&mut self, cookie: CookieResult) {
        add(&self.counters.cookies[cookie as usize], 1);
    }

    /// Counts a message's TSIG record.
    pub fn tsig(&mut self, outcome: TsigResult) {
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
