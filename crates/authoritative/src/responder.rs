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
//!    expired, and REFUSED if `allow-query` denies the client. The flag `is_plain` marks zones that
//!    need no access check and are not signed online.
//! 6. `answer` builds the response from the zone image. Before the server generates signatures and
//!    proofs, `limits` charges them to the client's prefix. The worker's online share is charged
//!    with the time until the responses are sent (`online`).
//! 7. `limits` decides whether a UDP response is sent, dropped or truncated.
//! 8. `count` counts, `logging` logs with a rate limit, and `dnstap` receives copies. None of them
//!    delays a response.
//!
//! A query without TSIG, transfer or online work takes a direct path from [`Responder::answer`] to
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

use crate::answer::{ErrorResponse, Request, answer, answer_from, check_answerable, error_response};
use crate::online::OnlineContext;
use crate::settings::AnswerSettings;
use crate::transfer::outbound::OutgoingTransfers;
use crate::zones::{ServedZone, View, ZoneDatabase, ZoneEntry, ZoneState};
use arc_swap::{ArcSwap, Cache};
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_net::{Answer, BATCH, Handler, ResponseStream, TlsSession};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class as DnsClass, MAX_NAME, NameRef, Rtype};
use nonesuch_secondary::notify::Secondaries;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::dnstap::DnstapSender;
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::online::thread_time;
use nonesuch_server::limits::{LimitAction, ResponseCategory, WorkerShare, hash_name};
use nonesuch_server::query::{Query, QueryFault};
use nonesuch_server::reply_options::{MalformedOption, ReplyOptions, ReplySettings};
use nonesuch_server::statistics::{self, ThreadStatistics};
use nonesuch_server::trailer::{Trailer, Transport, push_bare};
use nonesuch_server::tsig::{ResponseSigner, VerifiedRequest};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use transfers::trailer_with_expiry;
use tsig_and_opcodes::push_opt_if_requested;

/// Answers the messages that one thread receives on one address.
pub struct Responder {
    view: View,
    settings: Cache<Arc<ArcSwap<AnswerSettings>>, Arc<AnswerSettings>>,
    /// Zones and settings for all messages of the current batch.
    batch: Batch,
    thread: Thread,
}

/// Data that is the same for all messages of a batch.
struct Batch {
    database: Arc<ZoneDatabase>,
    settings: Arc<AnswerSettings>,
    /// Options of responses, with the current idle timeout of connections.
    reply: ReplySettings,
    /// The current time, in seconds since 1970.
    now: u64,
    /// Milliseconds since the start of the thread.
    milliseconds: u64,
    /// Seconds added to the clock for the times of online signatures, modulo 2^32.
    clock_shift: u32,
}

impl Batch {
    /// Returns the time for signatures, in seconds since 1970 modulo 2^32.
    const fn signing_time(&self) -> u32 {
        (self.now as u32).wrapping_add(self.clock_shift)
    }
}

/// State of one thread.
struct Thread {
    transport: Transport,
    begun: Instant,
    online_signer: OnlineSigner,
    share: WorkerShare,
    statistics: ThreadStatistics,
    tap: Option<DnstapSender>,
    outgoing: Arc<OutgoingTransfers>,
    notify_sink: Option<NotifySink>,
    secondaries: Arc<Secondaries>,
    /// Zones with deferred answers in the batch.
    deferred_zones: Vec<Arc<ServedZone>>,
    stream: Option<Box<dyn ResponseStream>>,
    idle_timeout: Option<Duration>,
    /// TLS parameters of the connection that the batch comes from.
    session: Option<TlsSession>,
    /// Number of messages in the batch so far.
    messages: usize,
    /// Whether messages are answered for the second time; they are counted only the first time.
    is_second_pass: bool,
    /// Work on deferred answers of the batch.
    deferred: Option<DeferredWork>,
}

/// Work on signatures and proofs for the deferred answers of a batch.
struct DeferredWork {
    begun: Instant,
    operations: usize,
}

/// Category and name under which rate limiting counts a response.
struct Limited {
    class: ResponseCategory,
    /// Hash of the name in the zone that the response comes from.
    name: u64,
}

impl Limited {
    const ERROR: Self = Self { class: ResponseCategory::Error, name: 0 };
}

/// How a message is answered.
enum AnswerKind {
    /// The response is complete.
    Ready,
    /// The server sends no response.
    Nothing,
    /// The response lacks signatures or proofs, and is built again after they are generated.
    Deferred,
    /// The response is the stream in [`Thread::stream`].
    Stream,
}

impl Responder {
    /// Takes the current zones and settings for the next batch. Clones an `Arc` only if the zones
    /// or settings were replaced. Otherwise the threads would contend for its reference count.
    fn refresh_batch(&mut self) {
        let database = self.view.database();
        if !Arc::ptr_eq(database, &self.batch.database) {
            self.batch.database = Arc::clone(database);
        }
        let settings = self.settings.load();
        if !Arc::ptr_eq(settings, &self.batch.settings) {
            self.batch.settings = Arc::clone(settings);
            self.refresh_reply();
            if let Some(limits) = &self.batch.settings.limits {
                self.thread.share = limits.worker_share();
            }
        }
    }

    /// Begins a batch at `instant`; `now` is the time in seconds since 1970. `busy` returns the CPU
    /// time of the thread in nanoseconds, and is called only if the online share needs it.
    pub(crate) fn begin_at(&mut self, instant: Instant, now: u64, busy: impl FnOnce() -> Option<u64>) {
        self.refresh_batch();
        let thread = &mut self.thread;
        let elapsed = instant.duration_since(thread.begun);
        self.batch.milliseconds = elapsed.as_millis() as u64;
        self.batch.now = now;
        thread.statistics.begin(instant);
        if let Some(tap) = &mut thread.tap {
            tap.begin();
        }
        thread.online_signer.begin();
        thread.deferred_zones.clear();
        // A full batch means that more messages may be waiting.
        thread.share.begin(elapsed.as_nanos() as u64, thread.messages >= BATCH, busy);
        thread.messages = 0;
        thread.is_second_pass = false;
    }

    /// Ends a batch at `instant`.
    pub(crate) fn end_at(&mut self, instant: Instant) {
        self.thread.statistics.sent(instant);
        if let Some(DeferredWork { begun, operations }) = self.thread.deferred.take() {
            self.thread.share.spent(instant.saturating_duration_since(begun).as_nanos() as u64, operations);
        }
        if let Some(tap) = &mut self.thread.tap {
            tap.end();
        }
    }

    /// Generates signatures and proofs for the deferred answers of the batch, beginning at
    /// `instant`.
    pub(crate) fn generate_at(&mut self, instant: Instant) {
        self.thread.generate_deferred(self.batch.signing_time(), instant);
    }

    fn refresh_reply(&mut self) {
        self.batch.reply = self.batch.settings.reply.clone();
        if let Some(timeout) = self.thread.idle_timeout {
            // RFC 7828 §3.1: in units of 100 milliseconds.
            self.batch.reply.keepalive = u16::try_from(timeout.as_millis() / 100).unwrap_or(u16::MAX);
        }
    }
}

impl Handler for Responder {
    fn begin(&mut self) {
        self.begin_at(Instant::now(), seconds_now(), thread_time);
    }

    fn answer(&mut self, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> Answer {
        self.thread.messages += 1;
        if let Some(tap) = &mut self.thread.tap {
            tap.query(sender, message);
        }
        match self.thread.answer(&self.batch, message, sender, out) {
            AnswerKind::Ready => {
                self.thread.tap_response(sender, message, out);
                Answer::Ready
            }
            AnswerKind::Nothing => Answer::Nothing,
            AnswerKind::Deferred => Answer::Deferred,
            AnswerKind::Stream => Answer::Stream,
        }
    }

    fn make(&mut self) {
        self.generate_at(Instant::now());
    }

    /// Builds a deferred answer again. A signature or proof can still be missing if the batch was
    /// full, the zone was replaced in the meantime or the cryptographic library failed. Then the
    /// server generates once more; if that does not suffice, it answers SERVFAIL. This bounds the
    /// time of a batch.
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
            self.thread.tap_response(sender, message, out);
        }
        is_answered
    }

    fn stream(&mut self) -> Option<Box<dyn ResponseStream>> {
        self.thread.stream.take()
    }

    fn set_idle_timeout(&mut self, timeout: Duration) {
        self.thread.idle_timeout = Some(timeout);
        self.refresh_reply();
    }

    fn set_session(&mut self, session: TlsSession) {
        self.thread.session = Some(session);
    }

    fn end(&mut self) {
        self.end_at(Instant::now());
    }
}

impl Thread {
    fn answer(&mut self, batch: &Batch, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> AnswerKind {
        match &Query::parse(message) {
            Ok(query) if query.tsig.is_none() => self.answer_query(batch, message, query, None, sender, out),
            Ok(query) => self.answer_signed(batch, message, query, sender, out),
            Err(QueryFault::Ignore) => {
                self.statistics.drop(statistics::DropReason::NotAQuery);
                AnswerKind::Nothing
            }
            Err(QueryFault::Opcode(header)) => self.answer_opcode(batch, *header, message, sender, out),
            Err(QueryFault::Form(header)) => self.answer_malformed(batch, *header, message, sender, out),
        }
    }

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
            push_bare(query.header, Rcode::FORMERR, out);
            push_opt_if_requested(batch, message, Rcode::FORMERR, None, out);
            if let Some(verified) = verified {
                verified.signer().sign(out, batch.now);
            }
            return self.finish_bare(batch, query.header, Rcode::FORMERR, sender, out);
        };
        let mut signer = verified.map(VerifiedRequest::signer);
        let tsig = signer.as_ref().map_or(0, ResponseSigner::octets);
        let mut room = [0; MAX_NAME];
        let trailer = Trailer { reply, settings: &batch.reply, tsig };
        let request = Request::new(query, &mut room, self.transport, &trailer);
        let is_known_edns = query.opt.is_none_or(|opt| opt.version == 0);
        if matches!(query.qtype, Rtype::AXFR | Rtype::IXFR) && is_known_edns {
            return self.transfer(batch, message, &request, verified, sender, out);
        }
        let limited = match self.answer_from_zone(batch, &request, verified, sender, out) {
            Ok(limited) => limited,
            Err(outcome) => return outcome,
        };
        if self.transport == Transport::Udp
            && verified.is_none()
            && !self.apply_rate_limit(batch, &request, limited, sender, out)
        {
            return AnswerKind::Nothing;
        }
        if let Some(signer) = &mut signer {
            signer.sign(out, batch.now);
        }
        self.count(query, message, out);
        AnswerKind::Ready
    }

    /// Reads the EDNS options of a query.
    fn read_options(
        &mut self,
        batch: &Batch,
        query: &Query<'_>,
        sender: SocketAddr,
    ) -> Result<ReplyOptions, MalformedOption> {
        let Some(opt) = &query.opt else { return Ok(ReplyOptions::NONE) };
        let cookies = batch.settings.cookies.as_ref();
        let reply =
            ReplyOptions::read(opt, self.transport, &batch.reply, cookies, sender.ip(), batch.now as u32);
        let status = reply.as_ref().map_or(CookieStatus::Malformed, ReplyOptions::cookie);
        if status != CookieStatus::Absent && !self.is_second_pass {
            self.count_cookie(status);
        }
        reply
    }

    /// Answers from the closest enclosing zone. Returns the category and name for rate limiting.
    fn answer_from_zone(
        &mut self,
        batch: &Batch,
        request: &Request<'_>,
        verified: Option<&VerifiedRequest>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Result<Limited, AnswerKind> {
        if let Some(ErrorResponse { rcode, error }) = check_answerable(request.query) {
            if rcode == Rcode::REFUSED && request.query.class == DnsClass::CH {
                let is_answered = batch.settings.chaos.answer(request, out);
                let limited = self.limited(batch, ResponseCategory::Positive, request.name);
                return Ok(if is_answered { limited } else { Limited::ERROR });
            }
            error_response(request, rcode, error, false, out);
            return Ok(Limited::ERROR);
        }
        let Some(entry) = find_entry(&batch.database, request) else {
            error_response(request, Rcode::REFUSED, Some(ExtendedError::NOT_AUTHORITATIVE), false, out);
            return Ok(Limited::ERROR);
        };
        if batch.settings.counts_zone_queries {
            self.count_zone_query(entry);
        }
        let state = entry.state();
        let zone = match &**state {
            ZoneState::Serving(zone) => zone,
            other if !self.is_query_allowed(other.policy(), request, verified, sender.ip(), out) => {
                return Ok(Limited::ERROR);
            }
            ZoneState::NotReady(_) => {
                error_response(request, Rcode::SERVFAIL, Some(ExtendedError::NOT_READY), false, out);
                return Ok(Limited::ERROR);
            }
            ZoneState::Failed(_) | ZoneState::Expired(_) => {
                error_response(request, Rcode::SERVFAIL, Some(ExtendedError::INVALID_DATA), false, out);
                return Ok(Limited::ERROR);
            }
        };
        let (published, is_plain) = (zone.published(), zone.is_plain());
        if !is_plain && !self.is_query_allowed(zone.policy(), request, verified, sender.ip(), out) {
            return Ok(Limited::ERROR);
        }
        if request.query.qtype == Rtype::SOA {
            self.note_secondary(batch, entry, zone.policy(), request, sender.ip(), None);
        }
        let trailer;
        let with_expiry;
        let mut request = request;
        if request.trailer.reply.wants_expire() {
            trailer = trailer_with_expiry(entry, request);
            with_expiry = Request { trailer: &trailer, ..*request };
            request = &with_expiry;
        }
        if is_plain || !published.is_online() {
            let answered = answer(published.image(), request, out);
            return Ok(self.limited(batch, answered.class, answered.source));
        }
        let before = self.online_signer.mark();
        let mut online = OnlineContext::new(published, &mut self.online_signer, batch.signing_time());
        let answered = answer_from(published.image(), Some(&mut online), request, out);
        if !answered.is_deferred {
            return Ok(self.limited(batch, answered.class, answered.source));
        }
        if !self.may_generate(batch, request, sender.ip(), before, out) {
            return Ok(Limited::ERROR);
        }
        if !self.deferred_zones.iter().any(|other| Arc::ptr_eq(other, zone)) {
            self.deferred_zones.push(Arc::clone(zone));
        }
        Err(AnswerKind::Deferred)
    }

    /// Returns the category and the hashed name of a response for rate limiting. Computes no hash
    /// if there are no rate limits.
    fn limited(&self, batch: &Batch, class: ResponseCategory, name: NameRef<'_>) -> Limited {
        let limits = batch.settings.limits.as_ref().filter(|_| self.transport == Transport::Udp);
        let name = if limits.is_some_and(|limits| limits.has_rates()) { hash_name(name) } else { 0 };
        Limited { class, name }
    }

    /// Applies response rate limiting. Returns whether a response is sent; it may replace the
    /// response.
    fn apply_rate_limit(
        &mut self,
        batch: &Batch,
        request: &Request<'_>,
        Limited { class, name }: Limited,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(limits) = &batch.settings.limits else { return true };
        let cookie = request.trailer.reply.cookie();
        let action = limits.response(batch.milliseconds, sender.ip(), class, name, cookie);
        if action != LimitAction::Send {
            self.log_limited(batch, limits, class, sender);
        }
        match action {
            LimitAction::Send => return true,
            LimitAction::Drop => {
                self.statistics.drop(statistics::DropReason::RateLimited);
                return false;
            }
            LimitAction::Truncate | LimitAction::Refuse => {
                error_response(request, Rcode::NOERROR, None, true, out)
            }
            LimitAction::BadCookie => error_response(request, Rcode::BADCOOKIE, None, false, out),
        }
        self.statistics.slip();
        true
    }

    fn tap_response(&mut self, sender: SocketAddr, message: &[u8], response: &[u8]) {
        if let Some(tap) = &mut self.tap {
            tap.response(sender, message, response);
        }
    }
}

/// Returns the zone that answers a query. DS records belong to the parent zone (RFC 4035 §3.1.4.1).
fn find_entry<'t>(database: &'t ZoneDatabase, request: &Request<'_>) -> Option<&'t Arc<ZoneEntry>> {
    let entry = database.find(request.name)?;
    if request.query.qtype != Rtype::DS || entry.apex().view() != request.name {
        return Some(entry);
    }
    request.name.parent().and_then(|parent| database.find(parent)).or(Some(entry))
}
