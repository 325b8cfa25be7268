//! Processes the messages of one thread: parses a message, authenticates its sender, finds the
//! zone, applies limits, builds the response and counts it. Each thread has a [`Responder`] for
//! each address that it listens on.
//!
//! 1. `Query::parse` parses the parts of the message that the answer depends on. NOTIFY, UPDATE,
//!    other opcodes and malformed messages continue in `tsig_and_opcodes` and `malformed`.
//! 2. `tsig_and_opcodes` verifies a TSIG record. The response is signed at the end.
//! 3. `reply_options` and `cookies` read the EDNS options and reserve room for them in the
//!    response.
//! 4. `transfers` handles AXFR and IXFR, and returns a stream of messages. Over TLS, it sends zones
//!    only with TLS 1.3 and ALPN `dot` (RFC 9103).
//! 5. `chaos` answers class CH. For other queries, the zone database finds the closest enclosing
//!    zone. The server answers SERVFAIL with an extended error if the zone is not loaded or has
//!    expired, and REFUSED if `allow-query` denies the client. The flag `has_fast_path` marks zones
//!    that need no access check and no online work.
//! 6. `answer` builds the response from the zone image. Before the server generates signatures and
//!    proofs, `limits` charges them to the client's prefix. The worker's online share is charged
//!    with the time until the responses are sent (`online`).
//! 7. `limits` decides whether a UDP response is sent, dropped or truncated.
//! 8. `count` counts, `logging` logs with a rate limit, and `dnstap` receives copies. None of them
//!    delays a response.
//!
//! A query without TSIG, transfer or online work takes the fast path from [`Responder::answer`] to
//! the image and back. All other cases are handled in separate functions with the attribute `cold`.
//!
//! Only the zone database and [`AnswerSettings`] (keys, cookies, limits, options) change while the
//! server runs. A thread reads both once for each batch of messages.

mod context;
mod count;
mod logging;
mod malformed;
mod online;
mod start;
mod transfers;
mod tsig_and_opcodes;

pub use context::{NotifySink, ServerContext};

use crate::answer::{
    ErrorResponse, Request, answer, answer_with_online, error_response, reject_unanswerable,
};
use crate::chaos;
use crate::online::OnlineContext;
use crate::settings::AnswerSettings;
use crate::transfer::outbound::OutgoingTransfers;
use crate::zones::{DatabaseCache, ServedZone, ZoneDatabase, ZoneEntry, ZoneState};
use arc_swap::{ArcSwap, Cache};
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_net::Transport;
use nonesuch_net::{Answer, BATCH, Handler, ResponseStream, TlsSession};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, MAX_NAME, NameRef, Rtype};
use nonesuch_secondary::notify::SecondaryStatuses;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::dnstap::DnstapSender;
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::online::thread_time;
use nonesuch_server::limits::{LimitAction, ResponseCategory, WorkerShare, hash_name};
use nonesuch_server::query::{Query, QueryFault};
use nonesuch_server::reply_options::{MalformedCookie, ReplyOptions, ReplySettings};
use nonesuch_server::statistics::{self, ThreadStatistics};
use nonesuch_server::trailer::{Trailer, push_header_only};
use nonesuch_server::tsig::{ResponseSigner, VerifiedRequest};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use transfers::trailer_with_expiry;
use tsig_and_opcodes::push_opt_if_requested;

/// Answers the messages that one thread receives on one address.
pub struct Responder {
    database_cache: DatabaseCache,
    settings: Cache<Arc<ArcSwap<AnswerSettings>>, Arc<AnswerSettings>>,
    /// Zones and settings for all messages of the current batch.
    batch: Batch,
    thread: ThreadState,
}

/// Data that is the same for all messages of a batch.
struct Batch {
    database: Arc<ZoneDatabase>,
    settings: Arc<AnswerSettings>,
    /// Settings for the EDNS options of responses, with the current idle timeout of connections.
    reply_settings: ReplySettings,
    /// The current time, in seconds since 1970.
    now: u64,
    /// Milliseconds from the start of the thread to the start of the batch.
    elapsed_ms: u64,
    /// Seconds added to the clock for the times of online signatures, modulo 2^32.
    clock_shift: u32,
}

impl Batch {
    /// Returns the time for signatures, in seconds since 1970 modulo 2^32.
    const fn signing_time(&self) -> u32 {
        (self.now as u32).wrapping_add(self.clock_shift)
    }
}

/// State of a [`Responder`], for one thread and one address. [`Batch`] is separate, because it is
/// borrowed while this state changes.
struct ThreadState {
    transport: Transport,
    started_at: Instant,
    online_signer: OnlineSigner,
    /// Part of the thread's time that online work may use.
    online_share: WorkerShare,
    statistics: ThreadStatistics,
    /// Sends copies of messages to dnstap; `None` if dnstap is off.
    dnstap: Option<DnstapSender>,
    outgoing_transfers: Arc<OutgoingTransfers>,
    notify_sink: Option<NotifySink>,
    secondary_statuses: Arc<SecondaryStatuses>,
    /// Zones with deferred answers in the batch, without duplicates.
    deferred_zones: Vec<Arc<ServedZone>>,
    /// The response to the last message, if it is a stream that the connection has not taken yet.
    response_stream: Option<Box<dyn ResponseStream>>,
    /// Idle timeout of TCP and TLS connections; `None` for UDP.
    idle_timeout: Option<Duration>,
    /// TLS parameters of the connection that the batch comes from.
    tls_session: Option<TlsSession>,
    /// Number of messages in the batch so far.
    message_count: usize,
    /// Whether messages are answered for the second time; they are counted only the first time.
    is_second_pass: bool,
    /// Work on deferred answers of the batch; `None` if the batch has none.
    deferred_work: Option<DeferredWork>,
}

/// Work on signatures and proofs for the deferred answers of a batch.
struct DeferredWork {
    started_at: Instant,
    /// Number of signatures, hashes and proofs.
    operations: usize,
}

/// Category and name under which rate limiting counts a response.
struct RateLimitKey {
    category: ResponseCategory,
    /// Hash of the name in the zone that the response comes from; 0 for errors.
    name_hash: u64,
}

impl RateLimitKey {
    const ERROR: Self = Self { category: ResponseCategory::Error, name_hash: 0 };
}

/// How a message is answered.
enum AnswerKind {
    /// The response is complete.
    Ready,
    /// The server sends no response.
    Nothing,
    /// The response lacks signatures or proofs, and is built again after they are generated.
    Deferred,
    /// The response is the stream in [`ThreadState::response_stream`].
    Stream,
}

impl Responder {
    /// Uses the current zones and settings for the next batch. Clones an `Arc` only if the zones or
    /// settings were replaced: if every batch cloned it, the threads would contend for its
    /// reference count.
    fn refresh_batch(&mut self) {
        let database = self.database_cache.database();
        if !Arc::ptr_eq(database, &self.batch.database) {
            self.batch.database = Arc::clone(database);
        }
        let settings = self.settings.load();
        if !Arc::ptr_eq(settings, &self.batch.settings) {
            self.batch.settings = Arc::clone(settings);
            self.refresh_reply_settings();
            if let Some(limits) = &self.batch.settings.limits {
                self.thread.online_share = limits.worker_share();
            }
        }
    }

    /// Begins a batch at `instant`; `now` is the time in seconds since 1970. `cpu_time` returns the
    /// CPU time of the thread in nanoseconds, and is called only if the online share needs it.
    pub(crate) fn begin_batch_at(
        &mut self,
        instant: Instant,
        now: u64,
        cpu_time: impl FnOnce() -> Option<u64>,
    ) {
        self.refresh_batch();
        let thread = &mut self.thread;
        let elapsed = instant.duration_since(thread.started_at);
        self.batch.elapsed_ms = elapsed.as_millis() as u64;
        self.batch.now = now;
        thread.statistics.begin_batch(instant);
        if let Some(dnstap) = &mut thread.dnstap {
            dnstap.begin();
        }
        thread.online_signer.begin_batch();
        thread.deferred_zones.clear();
        // A full batch means that more messages may be waiting.
        thread.online_share.begin(elapsed.as_nanos() as u64, thread.message_count >= BATCH, cpu_time);
        thread.message_count = 0;
        thread.is_second_pass = false;
    }

    /// Ends a batch at `instant`.
    pub(crate) fn end_batch_at(&mut self, instant: Instant) {
        self.thread.statistics.record_sent(instant);
        if let Some(DeferredWork { started_at, operations }) = self.thread.deferred_work.take() {
            let nanoseconds = instant.saturating_duration_since(started_at).as_nanos() as u64;
            self.thread.online_share.record_work(nanoseconds, operations);
        }
        if let Some(dnstap) = &mut self.thread.dnstap {
            dnstap.end();
        }
    }

    /// Generates signatures and proofs for the deferred answers of the batch, beginning at
    /// `instant`.
    pub(crate) fn generate_deferred_at(&mut self, instant: Instant) {
        self.thread.generate_deferred(self.batch.signing_time(), instant);
    }

    /// Sets the settings for EDNS options from the settings of the server and the idle timeout.
    fn refresh_reply_settings(&mut self) {
        self.batch.reply_settings = self.batch.settings.reply.clone();
        if let Some(timeout) = self.thread.idle_timeout {
            // RFC 7828 §3.1: in units of 100 milliseconds.
            self.batch.reply_settings.keepalive =
                u16::try_from(timeout.as_millis() / 100).unwrap_or(u16::MAX);
        }
    }
}

impl Handler for Responder {
    fn begin_batch(&mut self) {
        self.begin_batch_at(Instant::now(), seconds_now(), thread_time);
    }

    fn answer(&mut self, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> Answer {
        self.thread.message_count += 1;
        if let Some(dnstap) = &mut self.thread.dnstap {
            dnstap.query(sender, message);
        }
        match self.thread.answer(&self.batch, message, sender, out) {
            AnswerKind::Ready => {
                self.thread.send_to_dnstap(sender, message, out);
                Answer::Ready
            }
            AnswerKind::Nothing => Answer::Nothing,
            AnswerKind::Deferred => Answer::Deferred,
            AnswerKind::Stream => Answer::Stream,
        }
    }

    fn generate_deferred(&mut self) {
        self.generate_deferred_at(Instant::now());
    }

    /// Builds a deferred answer again. Returns whether a response is sent. A signature or proof can
    /// still be missing if the batch was full, the zone was replaced in the meantime or the
    /// cryptographic library failed. Then the server generates once more; if that does not suffice,
    /// it answers SERVFAIL. Two attempts at most limit the duration of a batch.
    fn answer_again(&mut self, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> bool {
        let mut outcome = self.thread.answer(&self.batch, message, sender, out);
        if matches!(outcome, AnswerKind::Deferred) {
            self.thread.generate_deferred(self.batch.signing_time(), Instant::now());
            out.clear();
            outcome = self.thread.answer(&self.batch, message, sender, out);
        }
        let is_answered = match outcome {
            AnswerKind::Ready => true,
            AnswerKind::Nothing | AnswerKind::Stream => false,
            AnswerKind::Deferred => self.thread.answer_servfail(&self.batch, message, out),
        };
        if is_answered {
            self.thread.send_to_dnstap(sender, message, out);
        }
        is_answered
    }

    fn stream(&mut self) -> Option<Box<dyn ResponseStream>> {
        self.thread.response_stream.take()
    }

    fn set_idle_timeout(&mut self, timeout: Duration) {
        self.thread.idle_timeout = Some(timeout);
        self.refresh_reply_settings();
    }

    fn set_session(&mut self, session: TlsSession) {
        self.thread.tls_session = Some(session);
    }

    fn end_batch(&mut self) {
        self.end_batch_at(Instant::now());
    }
}

impl ThreadState {
    /// Answers one message. Writes the response to `out`.
    fn answer(&mut self, batch: &Batch, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> AnswerKind {
        match &Query::parse(message) {
            Ok(query) if query.tsig_offset.is_none() => {
                self.answer_query(batch, message, query, None, sender, out)
            }
            Ok(query) => self.answer_signed(batch, message, query, sender, out),
            Err(QueryFault::Ignore) => {
                self.statistics.count_drop(statistics::DropReason::NotAQuery);
                AnswerKind::Nothing
            }
            Err(QueryFault::Opcode(header)) => self.answer_opcode(batch, *header, message, sender, out),
            Err(QueryFault::Malformed(header)) => self.answer_malformed(batch, *header, message, sender, out),
        }
    }

    /// Answers a query whose TSIG record, if it has one, is verified (`verified`).
    fn answer_query(
        &mut self,
        batch: &Batch,
        message: &[u8],
        query: &Query<'_>,
        verified: Option<&VerifiedRequest>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        let Ok(reply) = self.read_options(batch, query, sender) else {
            push_header_only(query.header, Rcode::FORMERR, out);
            push_opt_if_requested(batch, message, Rcode::FORMERR, None, out);
            if let Some(verified) = verified {
                verified.signer().sign(out, batch.now);
            }
            return self.finish_bare(batch, query.header, Rcode::FORMERR, sender, out);
        };
        let mut signer = verified.map(VerifiedRequest::signer);
        let tsig_octets = signer.as_ref().map_or(0, ResponseSigner::octets);
        let mut name_buffer = [0; MAX_NAME];
        let trailer = Trailer { reply, settings: &batch.reply_settings, tsig_octets };
        let request = Request::new(query, &mut name_buffer, self.transport, &trailer);
        let is_known_edns_version = query.opt.is_none_or(|opt| opt.version == 0);
        if matches!(query.qtype, Rtype::AXFR | Rtype::IXFR) && is_known_edns_version {
            return self.answer_transfer(batch, message, &request, verified, sender, out);
        }
        let limit_key = match self.answer_from_zone(batch, &request, verified, sender, out) {
            Ok(limit_key) => limit_key,
            Err(outcome) => return outcome,
        };
        if self.transport == Transport::Udp
            && verified.is_none()
            && !self.apply_rate_limit(batch, &request, limit_key, sender, out)
        {
            return AnswerKind::Nothing;
        }
        if let Some(signer) = &mut signer {
            signer.sign(out, batch.now);
        }
        self.statistics.count_response(query, message, out);
        AnswerKind::Ready
    }

    /// Reads the EDNS options of a query, and counts its cookie. Returns an error if an option is
    /// malformed; the server then answers FORMERR.
    fn read_options(
        &mut self,
        batch: &Batch,
        query: &Query<'_>,
        sender: SocketAddr,
    ) -> Result<ReplyOptions, MalformedCookie> {
        let Some(opt) = &query.opt else { return Ok(ReplyOptions::NONE) };
        let (settings, cookies) = (&batch.reply_settings, batch.settings.cookies.as_ref());
        let now = batch.now as u32;
        let reply = ReplyOptions::read(opt, self.transport, settings, cookies, sender.ip(), now);
        let status = reply.as_ref().map_or(CookieStatus::Malformed, ReplyOptions::cookie_status);
        if status != CookieStatus::Absent && !self.is_second_pass {
            self.statistics.count_cookie(status);
        }
        reply
    }

    /// Answers from the closest enclosing zone, or with an error. Returns the key for rate
    /// limiting, or `Err(AnswerKind::Deferred)` if the response is deferred; rate limiting then
    /// applies when the response is built again.
    fn answer_from_zone(
        &mut self,
        batch: &Batch,
        request: &Request<'_>,
        verified: Option<&VerifiedRequest>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Result<RateLimitKey, AnswerKind> {
        if let Some(ErrorResponse { rcode, error }) = reject_unanswerable(request.query) {
            if rcode == Rcode::REFUSED && request.query.class == Class::CH {
                let is_answered = chaos::answer(&batch.settings.chaos, request, out);
                let limit_key = self.rate_limit_key(batch, ResponseCategory::Positive, request.name);
                return Ok(if is_answered { limit_key } else { RateLimitKey::ERROR });
            }
            error_response(request, rcode, error, false, out);
            return Ok(RateLimitKey::ERROR);
        }
        let Some(entry) = find_entry(&batch.database, request) else {
            error_response(request, Rcode::REFUSED, Some(ExtendedError::NOT_AUTHORITATIVE), false, out);
            return Ok(RateLimitKey::ERROR);
        };
        if batch.settings.counts_zone_queries {
            self.count_zone_query(entry);
        }
        let state = entry.state();
        let zone = match &**state {
            ZoneState::Serving(zone) => zone,
            // An access list also applies to a zone that is not served.
            other if !self.check_query_access(other.policy(), request, verified, sender.ip(), out) => {
                return Ok(RateLimitKey::ERROR);
            }
            ZoneState::NotReady(_) => {
                error_response(request, Rcode::SERVFAIL, Some(ExtendedError::NOT_READY), false, out);
                return Ok(RateLimitKey::ERROR);
            }
            ZoneState::Failed(_) | ZoneState::Expired(_) => {
                error_response(request, Rcode::SERVFAIL, Some(ExtendedError::INVALID_DATA), false, out);
                return Ok(RateLimitKey::ERROR);
            }
        };
        let (published, has_fast_path) = (zone.published(), zone.has_fast_path());
        if !has_fast_path && !self.check_query_access(zone.policy(), request, verified, sender.ip(), out) {
            return Ok(RateLimitKey::ERROR);
        }
        if request.query.qtype == Rtype::SOA {
            self.record_secondary_query(batch, entry, zone.policy(), request, sender.ip(), None);
        }
        let trailer;
        let request_with_expiry;
        let mut request = request;
        if request.trailer.reply.wants_expire() {
            trailer = trailer_with_expiry(entry, request);
            request_with_expiry = Request { trailer: &trailer, ..*request };
            request = &request_with_expiry;
        }
        if has_fast_path || !published.needs_online_work() {
            let answered = answer(published.image(), request, out);
            return Ok(self.rate_limit_key(batch, answered.category, answered.source_name));
        }
        let checkpoint = self.online_signer.checkpoint();
        let mut online = OnlineContext::new(published, &mut self.online_signer, batch.signing_time());
        let answered = answer_with_online(published.image(), Some(&mut online), request, out);
        if !answered.is_deferred {
            return Ok(self.rate_limit_key(batch, answered.category, answered.source_name));
        }
        if !self.admit_online_work(batch, request, sender.ip(), checkpoint, out) {
            return Ok(RateLimitKey::ERROR);
        }
        if !self.deferred_zones.iter().any(|other| Arc::ptr_eq(other, zone)) {
            self.deferred_zones.push(Arc::clone(zone));
        }
        Err(AnswerKind::Deferred)
    }

    /// Returns the key under which rate limiting counts a response. `name` is the name in the zone
    /// that the response comes from. Computes its hash only if there are rate limits.
    fn rate_limit_key(&self, batch: &Batch, category: ResponseCategory, name: NameRef<'_>) -> RateLimitKey {
        let limits = batch.settings.limits.as_ref().filter(|_| self.transport == Transport::Udp);
        let name_hash = if limits.is_some_and(|limits| limits.has_rates()) { hash_name(name) } else { 0 };
        RateLimitKey { category, name_hash }
    }

    /// Applies response rate limiting: keeps the response in `out`, replaces it or drops it.
    /// Returns whether a response is sent.
    fn apply_rate_limit(
        &mut self,
        batch: &Batch,
        request: &Request<'_>,
        RateLimitKey { category, name_hash }: RateLimitKey,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(limits) = &batch.settings.limits else { return true };
        let cookie = request.trailer.reply.cookie_status();
        let action = limits.check_response(batch.elapsed_ms, sender.ip(), category, name_hash, cookie);
        if action != LimitAction::Send {
            self.log_rate_limiting(batch, limits, category, sender);
        }
        match action {
            LimitAction::Send => return true,
            LimitAction::Drop => {
                self.statistics.count_drop(statistics::DropReason::RateLimited);
                return false;
            }
            LimitAction::Truncate | LimitAction::Refuse => {
                error_response(request, Rcode::NOERROR, None, true, out)
            }
            LimitAction::BadCookie => error_response(request, Rcode::BADCOOKIE, None, false, out),
        }
        self.statistics.count_slip();
        true
    }

    /// Sends a copy of the response to dnstap.
    fn send_to_dnstap(&mut self, sender: SocketAddr, message: &[u8], response: &[u8]) {
        if let Some(dnstap) = &mut self.dnstap {
            dnstap.response(sender, message, response);
        }
    }
}

/// Returns the zone that answers a query; `None` if the server has no such zone. DS records belong
/// to the parent zone (RFC 4035 §3.1.4.1), if this server has it.
fn find_entry<'d>(database: &'d ZoneDatabase, request: &Request<'_>) -> Option<&'d Arc<ZoneEntry>> {
    let entry = database.find_enclosing(request.name)?;
    if request.query.qtype != Rtype::DS || entry.apex().view() != request.name {
        return Some(entry);
    }
    request.name.parent().and_then(|parent| database.find_enclosing(parent)).or(Some(entry))
}
