//! The counters of one thread.

use super::histograms::{LatencyHistogram, SizeHistogram, add, zeros};
use super::log_throttle::{KnownSender, LogThrottle};
use crate::cookies::CookieStatus;
use crate::limits::ResponseCategory;
use crate::query::Query;
use crate::tsig::TsigRejection;
use nonesuch_net::Transport;
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{DO, Opt};
use nonesuch_proto::message::{HEADER, Header, Rcode, flags};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Number of types with a separate counter: 0 to 257 (CAA). All other types share one counter.
const TYPES: usize = 258;
/// Number of response codes with a separate counter. Higher codes count as the last one.
pub(super) const RCODES: usize = 32;
/// Number of opcodes.
const OPCODES: usize = 16;

/// Properties of a query and its response, in addition to the response code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryFlags(pub(super) u8);

impl QueryFlags {
    /// The response was truncated.
    pub const TRUNCATED: Self = Self(1);
    /// The query had an OPT record.
    pub const EDNS: Self = Self(2);
    /// The query had the DO flag.
    pub const DNSSEC_OK: Self = Self(4);

    /// Returns these flags, with the flags of `other` added if `is_set` is true.
    #[must_use]
    pub const fn with(self, other: Self, is_set: bool) -> Self {
        Self(self.0 | if is_set { other.0 } else { 0 })
    }

    /// Whether these flags contain all flags of `other`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Index of the counter for a query's result. The response code and TC have the same bits as in the
/// flags of the header (RFC 1035 §4.1.1). The bits of RA and of other flags that are equal in all
/// responses hold the properties of the query's OPT record.
#[derive(Clone, Copy)]
pub(super) struct OutcomeIndex(u16);

impl OutcomeIndex {
    const RCODE: u16 = 0x000f;
    const EDNS: u16 = 0x0010;
    const DNSSEC_OK: u16 = 0x0020;
    /// Bit 4 of the response code. The header has only bits 0 to 3; the upper bits are in OPT.
    const RCODE_BIT_4: u16 = 0x0040;
    /// Number of possible indexes.
    pub(super) const COUNT: usize = 0x0280;

    /// Returns the index for the flags of a response header and the OPT record of the query.
    #[inline]
    const fn from_header_flags(word: u16, opt: Option<&Opt<'_>>) -> Self {
        let edns = match opt {
            None => 0,
            // Shifts the DO bit to the position of `DNSSEC_OK`.
            Some(opt) => Self::EDNS | ((opt.flags & DO) / (DO / Self::DNSSEC_OK)),
        };
        Self(word & (flags::TC | Self::RCODE) | edns)
    }

    /// Returns the index for a response code below [`RCODES`] and the properties `query_flags`.
    const fn from_rcode(rcode: u16, query_flags: QueryFlags) -> Self {
        let mut index = rcode & Self::RCODE | if rcode > Self::RCODE { Self::RCODE_BIT_4 } else { 0 };
        index |= if query_flags.has(QueryFlags::TRUNCATED) { flags::TC } else { 0 };
        index |= if query_flags.has(QueryFlags::EDNS) { Self::EDNS } else { 0 };
        index |= if query_flags.has(QueryFlags::DNSSEC_OK) { Self::DNSSEC_OK } else { 0 };
        Self(index)
    }

    /// Returns the response code and the properties for this index.
    pub(super) const fn decode(index: usize) -> (Rcode, QueryFlags) {
        let index = index as u16;
        let upper_bits = if index & Self::RCODE_BIT_4 != 0 { Self::RCODE + 1 } else { 0 };
        let query_flags = QueryFlags(0)
            .with(QueryFlags::TRUNCATED, index & flags::TC != 0)
            .with(QueryFlags::EDNS, index & Self::EDNS != 0)
            .with(QueryFlags::DNSSEC_OK, index & Self::DNSSEC_OK != 0);
        (Rcode(index & Self::RCODE | upper_bits), query_flags)
    }
}

/// An answered query.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The query type.
    pub qtype: Rtype,
    /// The response code, including its upper bits from OPT.
    pub rcode: Rcode,
    /// Octets of the query.
    pub query_octets: usize,
    /// Octets of the response.
    pub response_octets: usize,
    /// Further properties of the query and the response.
    pub flags: QueryFlags,
}

/// Why the server did not answer a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Response rate limiting dropped the response.
    RateLimited,
    /// The message is a response, or has no complete header.
    NotAQuery,
    /// The server could not build a response.
    Failed,
}

impl DropReason {
    /// All reasons, in the order of the counters.
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

/// The cookie option of a query (RFC 7873).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieResult {
    /// Only a client cookie.
    Client,
    /// A valid and recent server cookie.
    Valid,
    /// A server cookie that is not valid, or too old.
    Invalid,
    /// The option has a length that RFC 7873 does not permit.
    Malformed,
}

impl CookieResult {
    /// All results, in the order of the counters.
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

/// The result of verifying the TSIG record of a message (RFC 8945 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TsigResult {
    /// The TSIG record is valid.
    Valid,
    /// BADKEY: the key is unknown.
    BadKey,
    /// BADSIG: the MAC is wrong.
    BadSignature,
    /// BADTIME: the clocks differ.
    BadTime,
    /// BADTRUNC: the MAC is shorter than the configured minimum.
    BadTruncation,
    /// FORMERR: the TSIG record is malformed.
    Malformed,
}

impl TsigResult {
    /// All results, in the order of the counters.
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

/// The counters of one thread. The alignment keeps them in separate cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Counters {
    pub(super) transport: Transport,
    /// Queries by type.
    pub(super) types: [AtomicU64; TYPES],
    /// Queries of all types without a separate counter.
    pub(super) other_types: AtomicU64,
    /// Queries by [`OutcomeIndex`].
    pub(super) outcomes: [AtomicU64; OutcomeIndex::COUNT],
    pub(super) query_sizes: SizeHistogram,
    pub(super) response_sizes: SizeHistogram,
    pub(super) latencies: LatencyHistogram,
    /// Answered messages that are not readable queries, by opcode and then response code.
    pub(super) other_messages: [AtomicU64; OPCODES * RCODES],
    pub(super) drops: [AtomicU64; DropReason::ALL.len()],
    pub(super) cookies: [AtomicU64; CookieResult::ALL.len()],
    pub(super) tsig: [AtomicU64; TsigResult::ALL.len()],
    pub(super) slips: AtomicU64,
    pub(super) over_budget: AtomicU64,
    pub(super) prohibited: AtomicU64,
}

impl Counters {
    pub(super) fn new(transport: Transport) -> Self {
        Self {
            transport,
            types: zeros(),
            other_types: AtomicU64::new(0),
            outcomes: zeros(),
            query_sizes: SizeHistogram::new(),
            response_sizes: SizeHistogram::new(),
            latencies: LatencyHistogram::new(),
            other_messages: zeros(),
            drops: zeros(),
            cookies: zeros(),
            tsig: zeros(),
            slips: AtomicU64::new(0),
            over_budget: AtomicU64::new(0),
            prohibited: AtomicU64::new(0),
        }
    }
}

/// Write access of one thread to its counters. There is exactly one for each set of
/// counters, so no other thread writes them.
#[derive(Debug)]
pub struct ThreadStatistics {
    counters: Arc<Counters>,
    /// Time at which the current batch was received; `None` before the first batch.
    batch_start: Option<Instant>,
    /// Number of answers of the current batch that are not sent yet.
    unsent: u64,
    log_throttle: Arc<LogThrottle>,
    /// The earliest time at which the next rate-limited response is considered for the log, in
    /// milliseconds since the thread began.
    next_sample_ms: u64,
}

/// Minimum time between two rate-limited responses that are considered for the log, in
/// milliseconds. It bounds the cost during a flood, and the log still reports the flood.
const SAMPLE_INTERVAL_MS: u64 = 10;

impl ThreadStatistics {
    pub(super) const fn new(counters: Arc<Counters>, log_throttle: Arc<LogThrottle>) -> Self {
        Self { counters, batch_start: None, unsent: 0, log_throttle, next_sample_ms: 0 }
    }

    /// Logs the rejection of `message` because of its TSIG record, unless the log throttle
    /// suppresses the line. `peer` is the sender; `known` is its entry if the configuration
    /// contains it. `now` is in seconds since 1970.
    pub fn log_tsig_rejection(
        &self,
        rejection: &TsigRejection,
        message: &[u8],
        (peer, known): (SocketAddr, Option<KnownSender>),
        now: u64,
    ) {
        self.log_throttle.log_tsig_rejection(rejection, message, (peer, known), now);
    }

    /// Whether the caller must pass a response that is rate limited now to
    /// [`ThreadStatistics::log_limited`]. `milliseconds` is the time since the thread began.
    pub const fn may_log_limited(&mut self, milliseconds: u64) -> bool {
        let is_due = milliseconds >= self.next_sample_ms;
        if is_due {
            self.next_sample_ms = milliseconds + SAMPLE_INTERVAL_MS;
        }
        is_due
    }

    /// Records that a response to `network` was rate limited at `now`, in seconds since 1970. Logs
    /// the start of rate limiting for the network, unless it is logged already or the log throttle
    /// suppresses the line. `network` is the first address of the client network and its prefix
    /// length in bits.
    pub fn log_limited(&self, network: (IpAddr, u8), category: ResponseCategory, now: u64) {
        self.log_throttle.log_limited(network, category, now);
    }

    /// Counts `message`, which is the readable `query`, and its `response`. The upper bits of the
    /// response code are in the OPT record (RFC 6891 §6.1.3). Only responses without answer and
    /// authority records can have such bits, so only those are searched for an OPT record.
    #[inline]
    pub fn count_response(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        let has_records = response.get(6..10).is_some_and(|counts| counts != [0; 4]);
        if has_records {
            self.count_query(query, message, response);
        } else {
            self.count_without_records(query, message, response);
        }
    }

    /// Counts a query and its response, which has no answer or authority records.
    #[cold]
    fn count_without_records(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        let Some(header) = Header::read(response) else { return };
        let observed_flags = QueryFlags::default()
            .with(QueryFlags::TRUNCATED, header.flags & flags::TC != 0)
            .with(QueryFlags::EDNS, query.opt.is_some())
            .with(QueryFlags::DNSSEC_OK, query.opt.is_some_and(|opt| opt.dnssec_ok()));
        self.count_observation(&Observation {
            qtype: query.qtype,
            rcode: extended_rcode(response, HEADER + query.question.len()),
            query_octets: message.len(),
            response_octets: response.len(),
            flags: observed_flags,
        });
    }

    /// Counts `message`, which is the readable `query`, and its `response`. This function does not
    /// read the upper bits of the response code from OPT.
    #[inline]
    fn count_query(&mut self, query: &Query<'_>, message: &[u8], response: &[u8]) {
        // The two octets of the flags (RFC 1035 §4.1.1).
        let [_, _, upper, lower, ..] = *response else { return };
        let outcome = OutcomeIndex::from_header_flags(u16::from_be_bytes([upper, lower]), query.opt.as_ref());
        self.count(query.qtype, outcome, message.len(), response.len());
    }

    /// Counts an answered query with a response code of any value.
    pub fn count_observation(&mut self, observation: &Observation) {
        let Observation { qtype, rcode, query_octets, response_octets, flags: query_flags } = *observation;
        let outcome = OutcomeIndex::from_rcode(rcode.0.min(RCODES as u16 - 1), query_flags);
        self.count(qtype, outcome, query_octets, response_octets);
    }

    /// Counts a query with a stream of messages as its answer. The stream counts as one response
    /// with NOERROR and without a size.
    pub fn count_stream(&mut self, query: &Query<'_>, message: &[u8]) {
        let query_flags = QueryFlags::default()
            .with(QueryFlags::EDNS, query.opt.is_some())
            .with(QueryFlags::DNSSEC_OK, query.opt.is_some_and(|opt| opt.dnssec_ok()));
        let outcome = OutcomeIndex::from_rcode(0, query_flags);
        let counters = &*self.counters;
        add(counters.types.get(usize::from(query.qtype.0)).unwrap_or(&counters.other_types), 1);
        add(&counters.outcomes[usize::from(outcome.0)], 1);
        counters.query_sizes.record(message.len());
    }

    #[inline]
    fn count(&mut self, qtype: Rtype, outcome: OutcomeIndex, query_octets: usize, response_octets: usize) {
        let counters = &*self.counters;
        match counters.types.get(usize::from(qtype.0)) {
            Some(counter) => add(counter, 1),
            None => add(&counters.other_types, 1),
        }
        add(&counters.outcomes[usize::from(outcome.0)], 1);
        counters.query_sizes.record(query_octets);
        counters.response_sizes.record(response_octets);
        self.unsent += 1;
    }

    /// Counts an answered message that is not a readable query: it has another opcode or is
    /// malformed.
    pub fn count_other_message(&mut self, opcode: u8, rcode: Rcode) {
        let rcode = usize::from(rcode.0).min(RCODES - 1);
        add(&self.counters.other_messages[usize::from(opcode) % OPCODES * RCODES + rcode], 1);
        self.unsent += 1;
    }

    /// Counts a message that is not answered.
    pub fn count_drop(&mut self, reason: DropReason) {
        add(&self.counters.drops[reason as usize], 1);
    }

    /// Counts a response that rate limiting truncated, in addition to the query.
    pub fn count_slip(&mut self) {
        add(&self.counters.slips, 1);
    }

    /// Counts a query whose online work exceeded the budget, in addition to the query.
    pub fn count_over_budget(&mut self) {
        add(&self.counters.over_budget, 1);
    }

    /// Counts a query that an access list denied, in addition to the query.
    pub fn count_prohibited(&mut self) {
        add(&self.counters.prohibited, 1);
    }

    /// Counts the cookie option of a query.
    #[inline]
    pub fn count_cookie(&mut self, status: CookieStatus) {
        let result = match status {
            CookieStatus::Absent => return,
            CookieStatus::ClientOnly => CookieResult::Client,
            CookieStatus::Valid => CookieResult::Valid,
            CookieStatus::Invalid => CookieResult::Invalid,
            CookieStatus::Malformed => CookieResult::Malformed,
        };
        add(&self.counters.cookies[result as usize], 1);
    }

    /// Counts the TSIG record of a message.
    pub fn count_tsig(&mut self, outcome: TsigResult) {
        add(&self.counters.tsig[outcome as usize], 1);
    }

    /// Begins a batch that was received at `now`.
    #[inline]
    pub const fn begin_batch(&mut self, now: Instant) {
        self.batch_start = Some(now);
        self.unsent = 0;
    }

    /// Records that all answers of the batch so far were sent at `now`. Each answer has the same
    /// latency: the time since the beginning of the batch.
    #[inline]
    pub fn record_sent(&mut self, now: Instant) {
        let unsent = std::mem::take(&mut self.unsent);
        let Some(start) = self.batch_start else { return };
        if unsent > 0 {
            let elapsed = now.saturating_duration_since(start).as_nanos();
            self.counters.latencies.record(u64::try_from(elapsed).unwrap_or(u64::MAX), unsent);
        }
    }

    /// Records that one client got its answer this time after its query.
    pub fn record_latency(&mut self, elapsed: Duration) {
        self.counters.latencies.record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), 1);
    }
}

/// Returns the response code, with its upper bits if the record at `offset` is an OPT record.
fn extended_rcode(response: &[u8], offset: usize) -> Rcode {
    let lower = Header::read(response).map_or(0, |header| header.flags & 0x0f);
    // The root name, two octets for the type, two for the class, and the first octet of the TTL.
    match response.get(offset..offset + 6) {
        Some(&[0, a, b, _, _, upper]) if Rtype(u16::from_be_bytes([a, b])) == Rtype::OPT => {
            Rcode(u16::from(upper) << 4 | lower)
        }
        _ => Rcode(lower),
    }
}
