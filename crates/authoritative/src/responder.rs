//! The way of one message through the server, in one thread: what it is, who sent it, which zone it is about, what it may
//! cost, what is sent back and what is counted.
//!
//! A query that wants neither signature, transfer nor work goes straight from [`Responder::answer`] to the image and back.
//! All else branches off in functions of its own, marked cold.

use crate::answer::{Asked, answer_from, decline, push_bare, refuse};
use crate::clock::seconds_now;
use crate::cookies::CookieStatus;
use crate::extended_errors::ExtendedError;
use crate::limits::{Action, Class, WorkerShare, hash_name};
use crate::notify::{self, Notified, Standing};
use crate::online::Online;
use crate::query::{Malformed, Query};
use crate::reply_options::{ReplyOptions, ReplySettings};
use crate::response::{Ending, Transport, UDP_PAYLOAD};
use crate::settings::Settings;
use crate::statistics::{self, Carrier, Statistics, ThreadStatistics, Tsig};
use crate::tap::{Tap, TapThread};
use crate::transfer::outbound::{self, Outgoing, Transfer, ZoneToSend};
use crate::tsig::{self, Signer, Verified};
use crate::zones::{ServedZone, Slot, Table, View, ZoneState, Zones};
use arc_swap::{ArcSwap, Cache};
use nonesuch_dnssec::online::{Counters, Mark, Workshop};
use nonesuch_net::{Answer, BATCH, Handler, Stream};
use nonesuch_proto::message::{HEADER, Header, Rcode};
use nonesuch_proto::{Class as DnsClass, MAX_NAME, NameRef, Rtype, edns};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The opcode (RFC 2136 §1.3).
const UPDATE: u8 = 5;

/// Takes news of zones that changed at their primaries, and never waits; `false` where it cannot take more.
pub type TakeNotify = Arc<dyn Fn(Notified) -> bool + Send + Sync>;

/// What all threads of a server work with.
#[derive(Clone)]
pub struct Shared {
    /// The zones.
    pub zones: Arc<Zones>,
    /// What a reload may change.
    pub settings: Arc<ArcSwap<Settings>>,
    /// Where it is counted what was done.
    pub statistics: Arc<Statistics>,
    /// Where messages are copied to.
    pub tap: Option<Arc<Tap>>,
    /// The transfers under way.
    pub outgoing: Arc<Outgoing>,
    /// Who is told of NOTIFY messages; nobody: zones are not transferred to here.
    pub notified: Option<TakeNotify>,
}

impl Shared {
    /// Answers from `zones`, without keys, limits and transfers to here.
    #[must_use]
    pub fn new(zones: Arc<Zones>) -> Self {
        Self {
            zones,
            settings: Arc::default(),
            statistics: Statistics::new(),
            tap: None,
            outgoing: Arc::new(Outgoing::new(outbound::DEFAULT_MOST, seconds_now)),
            notified: None,
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("zones", &self.zones).finish_non_exhaustive()
    }
}

/// One thread's answerer, behind one address.
pub struct Responder {
    view: View,
    settings: Cache<Arc<ArcSwap<Settings>>, Arc<Settings>>,
    /// What the current batch is answered from, to its end.
    batch: Batch,
    thread: Thread,
}

/// What holds for all messages of a batch.
struct Batch {
    table: Arc<Table>,
    settings: Arc<Settings>,
    /// Options of responses, with the idle time that connections get at present.
    reply: ReplySettings,
    /// Seconds since 1970.
    now: u64,
    /// Milliseconds since the thread began.
    milliseconds: u64,
    /// What signatures are made ahead of the clock.
    clock_shift: u32,
}

impl Batch {
    /// The time of signatures: seconds since 1970 modulo 2^32.
    const fn signing_time(&self) -> u32 {
        (self.now as u32).wrapping_add(self.clock_shift)
    }
}

/// What one thread has of its own.
struct Thread {
    transport: Transport,
    begun: Instant,
    workshop: Workshop,
    share: WorkerShare,
    statistics: ThreadStatistics,
    tap: Option<TapThread>,
    outgoing: Arc<Outgoing>,
    notified: Option<TakeNotify>,
    /// Zones that answers of the batch want something of.
    wanting: Vec<Arc<ServedZone>>,
    stream: Option<Box<dyn Stream>>,
    idle_timeout: Option<Duration>,
    /// Messages of the batch so far.
    messages: usize,
    /// Whether messages are answered for the second time: what they are is counted already.
    again: bool,
}

/// How a message is answered.
enum Outcome {
    Ready,
    Nothing,
    Wanting,
    Stream,
}

impl Responder {
    /// A responder for messages that come over `transport` to the address `local`. `workshop` says how many octets its cache of
    /// signatures and proofs takes, and where those are counted; signatures are made `clock_shift` seconds ahead of the clock.
    #[must_use]
    pub fn new(
        shared: &Shared,
        transport: Transport,
        local: SocketAddr,
        workshop: (usize, Arc<Counters>),
        clock_shift: u32,
    ) -> Self {
        let mut view = View::new(Arc::clone(&shared.zones));
        let mut settings = Cache::new(Arc::clone(&shared.settings));
        let current = Arc::clone(settings.load());
        let online = current.limits.as_ref().map(|limits| limits.settings().online.clone());
        let thread = Thread {
            transport,
            begun: Instant::now(),
            workshop: Workshop::new(workshop.0, workshop.1),
            share: WorkerShare::new(&online.unwrap_or_default()),
            statistics: shared.statistics.thread(carrier(transport)),
            tap: shared.tap.as_ref().map(|tap| tap.thread(carrier(transport), local)),
            outgoing: Arc::clone(&shared.outgoing),
            notified: shared.notified.clone(),
            wanting: Vec::new(),
            stream: None,
            idle_timeout: None,
            messages: 0,
            again: false,
        };
        let batch = Batch {
            table: Arc::clone(view.table()),
            reply: current.reply.clone(),
            settings: current,
            now: 0,
            milliseconds: 0,
            clock_shift,
        };
        Self { view, settings, batch, thread }
    }

    /// Takes what is newest for the batch that begins. A clone for each batch would have the threads contend for the count of
    /// references.
    fn renew(&mut self) {
        let table = self.view.table();
        if !Arc::ptr_eq(table, &self.batch.table) {
            self.batch.table = Arc::clone(table);
        }
        let settings = self.settings.load();
        if !Arc::ptr_eq(settings, &self.batch.settings) {
            self.batch.settings = Arc::clone(settings);
            self.renew_reply();
            if let Some(limits) = &self.batch.settings.limits {
                self.thread.share = WorkerShare::new(&limits.settings().online);
            }
        }
    }

    fn renew_reply(&mut self) {
        self.batch.reply = self.batch.settings.reply.clone();
        if let Some(timeout) = self.thread.idle_timeout {
            // RFC 7828 §3.1: in units of 100 milliseconds.
            self.batch.reply.keepalive = u16::try_from(timeout.as_millis() / 100).unwrap_or(u16::MAX);
        }
    }
}

impl Handler for Responder {
    fn begin(&mut self) {
        self.renew();
        let instant = Instant::now();
        let thread = &mut self.thread;
        let elapsed = instant.duration_since(thread.begun);
        self.batch.milliseconds = elapsed.as_millis() as u64;
        self.batch.now = seconds_now();
        thread.statistics.begin(instant);
        if let Some(tap) = &mut thread.tap {
            tap.begin();
        }
        thread.workshop.begin();
        thread.wanting.clear();
        // A full batch: more was waiting than one batch takes.
        thread.share.begin(elapsed.as_nanos() as u64, thread.messages >= BATCH);
        thread.messages = 0;
        thread.again = false;
    }

    fn answer(&mut self, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> Answer {
        self.thread.messages += 1;
        if let Some(tap) = &mut self.thread.tap {
            tap.query(sender, message);
        }
        match self.thread.answer(&self.batch, message, sender, out) {
            Outcome::Ready => {
                self.thread.tap_response(sender, message, out);
                Answer::Ready
            }
            Outcome::Nothing => Answer::Nothing,
            Outcome::Wanting => Answer::Later,
            Outcome::Stream => Answer::Stream,
        }
    }

    fn make(&mut self) {
        self.thread.make(self.batch.signing_time());
    }

    /// All that was wanted is there, but where the batch was full, a zone was replaced meanwhile, or the library failed: it is
    /// made once more, and then the answer is SERVFAIL, so that a batch takes bounded time.
    fn answer_again(&mut self, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> bool {
        let mut outcome = self.thread.answer(&self.batch, message, sender, out);
        if matches!(outcome, Outcome::Wanting) {
            self.thread.make(self.batch.signing_time());
            out.clear();
            outcome = self.thread.answer(&self.batch, message, sender, out);
        }
        let is_answered = match outcome {
            Outcome::Ready => true,
            Outcome::Nothing | Outcome::Stream => false,
            Outcome::Wanting => self.thread.fail(&self.batch, message, out),
        };
        if is_answered {
            self.thread.tap_response(sender, message, out);
        }
        is_answered
    }

    fn stream(&mut self) -> Option<Box<dyn Stream>> {
        self.thread.stream.take()
    }

    fn set_idle_timeout(&mut self, timeout: Duration) {
        self.thread.idle_timeout = Some(timeout);
        self.renew_reply();
    }

    fn end(&mut self) {
        self.thread.statistics.sent(Instant::now());
        if let Some(tap) = &mut self.thread.tap {
            tap.end();
        }
    }
}

impl Thread {
    fn answer(&mut self, batch: &Batch, message: &[u8], sender: SocketAddr, out: &mut Vec<u8>) -> Outcome {
        match Query::parse(message) {
            Ok(query) if query.tsig.is_none() => self.answer_query(batch, message, &query, None, sender, out),
            Ok(query) => self.answer_signed(batch, message, &query, sender, out),
            Err(Malformed::Ignore) => {
                self.statistics.drop(statistics::Dropped::NotAQuery);
                Outcome::Nothing
            }
            Err(Malformed::Opcode(header)) => self.answer_opcode(batch, header, message, sender, out),
            Err(Malformed::Form(header)) => {
                push_bare(header, Rcode::FORMERR, out);
                self.refuse_bare(batch, header, Rcode::FORMERR, sender, out)
            }
        }
    }

    /// Answers a query with a TSIG record (RFC 8945 §5.2).
    #[cold]
    fn answer_signed(
        &mut self,
        batch: &Batch,
        message: &[u8],
        query: &Query<'_>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Outcome {
        match self.verify(batch, message, query.opt.is_some(), out) {
            Ok(verified) => self.answer_query(batch, message, query, verified.as_ref(), sender, out),
            Err(rcode) => self.refuse_bare(batch, query.header, rcode, sender, out),
        }
    }

    /// Verifies who signed a message; where nobody or the wrong one did, `out` is the answer.
    fn verify(
        &mut self,
        batch: &Batch,
        message: &[u8],
        has_opt: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Verified>, Rcode> {
        match batch.settings.keys.verify(message, batch.now) {
            Ok(verified) => {
                if verified.is_some() && !self.again {
                    self.statistics.tsig(Tsig::Valid);
                }
                Ok(verified)
            }
            Err(refused) => {
                let error = refused.error();
                self.statistics.tsig(count_as(error));
                tracing::debug!(%error, "message with a TSIG record refused");
                let mut opt = Vec::new();
                if has_opt {
                    edns::push_opt(UDP_PAYLOAD, 0, 0, &mut opt);
                }
                refused.answer(message, &opt, batch.now, out);
                Err(if error == tsig::Error::Form { Rcode::FORMERR } else { Rcode::NOTAUTH })
            }
        }
    }

    fn answer_query(
        &mut self,
        batch: &Batch,
        message: &[u8],
        query: &Query<'_>,
        verified: Option<&Verified>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let Some(reply) = self.read_options(batch, query, sender) else {
            push_bare(query.header, Rcode::FORMERR, out);
            return self.refuse_bare(batch, query.header, Rcode::FORMERR, sender, out);
        };
        let mut signer = verified.map(Verified::signer);
        let tsig = signer.as_ref().map_or(0, Signer::octets);
        let mut room = [0; MAX_NAME];
        let ending = Ending { reply, settings: &batch.reply, tsig };
        let asked = Asked::new(query, &mut room, self.transport, &ending);
        if matches!(query.qtype, Rtype::AXFR | Rtype::IXFR) {
            return self.transfer(batch, message, &asked, verified, sender, out);
        }
        let limited = match self.answer_asked(batch, &asked, sender, out) {
            Ok(limited) => limited,
            Err(outcome) => return outcome,
        };
        if self.transport == Transport::Udp
            && verified.is_none()
            && !self.admit(batch, &asked, limited, sender, out)
        {
            return Outcome::Nothing;
        }
        if let Some(signer) = &mut signer {
            signer.sign(out, batch.now);
        }
        self.statistics.query(query, message, out);
        Outcome::Ready
    }

    /// Reads the options of a query; `None` where one is malformed.
    fn read_options(&mut self, batch: &Batch, query: &Query<'_>, sender: SocketAddr) -> Option<ReplyOptions> {
        let Some(opt) = &query.opt else { return Some(ReplyOptions::NONE) };
        let cookies = batch.settings.cookies.as_ref();
        let reply =
            ReplyOptions::read(opt, self.transport, &batch.reply, cookies, sender.ip(), batch.now as u32);
        let status = reply.as_ref().map_or(CookieStatus::Malformed, ReplyOptions::cookie);
        if status != CookieStatus::Absent && !self.again {
            self.count_cookie(status);
        }
        reply.ok()
    }

    fn count_cookie(&mut self, status: CookieStatus) {
        self.statistics.cookie(match status {
            CookieStatus::Absent => return,
            CookieStatus::ClientOnly => statistics::Cookie::Client,
            CookieStatus::Valid => statistics::Cookie::Valid,
            CookieStatus::Invalid => statistics::Cookie::Invalid,
            CookieStatus::Malformed => statistics::Cookie::Malformed,
        });
    }

    /// Answers from the zone that the name is in. The answer is of a class and a name, by which it is limited.
    fn answer_asked(
        &mut self,
        batch: &Batch,
        asked: &Asked<'_>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Result<(Class, u64), Outcome> {
        const ERROR: (Class, u64) = (Class::Error, 0);
        if let Some((rcode, error)) = refuse(asked.query) {
            decline(asked, rcode, error, false, out);
            return Ok(ERROR);
        }
        let Some(slot) = find_slot(&batch.table, asked) else {
            decline(asked, Rcode::REFUSED, Some(ExtendedError::NOT_AUTHORITATIVE), false, out);
            return Ok(ERROR);
        };
        let state = slot.state();
        let zone = match &**state {
            ZoneState::Serving(zone) => zone,
            ZoneState::NotReady(_) => {
                decline(asked, Rcode::SERVFAIL, Some(ExtendedError::NOT_READY), false, out);
                return Ok(ERROR);
            }
            ZoneState::Expired(_) => {
                decline(asked, Rcode::SERVFAIL, Some(ExtendedError::INVALID_DATA), false, out);
                return Ok(ERROR);
            }
        };
        let published = zone.published();
        if !published.is_online() {
            let answered = answer_from(published.image(), None, asked, out);
            return Ok((answered.class, self.hash(batch, answered.source)));
        }
        let before = self.workshop.mark();
        let mut online = Online::new(published, &mut self.workshop, batch.signing_time());
        let answered = answer_from(published.image(), Some(&mut online), asked, out);
        if !answered.wants {
            return Ok((answered.class, self.hash(batch, answered.source)));
        }
        if !self.may_work(batch, asked, sender.ip(), before, out) {
            return Ok(ERROR);
        }
        if !self.wanting.iter().any(|other| Arc::ptr_eq(other, zone)) {
            self.wanting.push(Arc::clone(zone));
        }
        Err(Outcome::Wanting)
    }

    /// Whether the client may have made what its answer wants; where not, `out` says so.
    fn may_work(
        &mut self,
        batch: &Batch,
        asked: &Asked<'_>,
        client: IpAddr,
        before: Mark,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(limits) = &batch.settings.limits else { return true };
        let operations = self.workshop.wanted().saturating_sub(before.wanted());
        let is_proven =
            self.transport != Transport::Udp || asked.ending.reply.cookie() == CookieStatus::Valid;
        if limits.online(&mut self.share, batch.milliseconds, client, is_proven, operations) {
            return true;
        }
        self.workshop.take_back(before);
        self.statistics.over_budget();
        let truncate = matches!(limits.over_budget(self.transport), Action::Truncate);
        let rcode = if truncate { Rcode::NOERROR } else { Rcode::REFUSED };
        decline(asked, rcode, Some(ExtendedError::OVER_BUDGET), truncate, out);
        false
    }

    /// What a name is counted under, where anything is limited.
    fn hash(&self, batch: &Batch, name: NameRef<'_>) -> u64 {
        let is_limited = self.transport == Transport::Udp && batch.settings.limits.is_some();
        if is_limited { hash_name(name) } else { 0 }
    }

    /// Whether a response goes out under the limit of the rates of responses; it may be another one then.
    fn admit(
        &mut self,
        batch: &Batch,
        asked: &Asked<'_>,
        (class, name): (Class, u64),
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(limits) = &batch.settings.limits else { return true };
        let cookie = asked.ending.reply.cookie();
        match limits.response(batch.milliseconds, sender.ip(), class, name, cookie) {
            Action::Send => return true,
            Action::Drop => {
                self.statistics.drop(statistics::Dropped::RateLimited);
                return false;
            }
            Action::Truncate | Action::Refuse => decline(asked, Rcode::NOERROR, None, true, out),
            Action::BadCookie => decline(asked, Rcode::BADCOOKIE, None, false, out),
        }
        self.statistics.slip();
        true
    }

    /// Ends an answer that is a header or little more, to a message that is no readable query.
    #[cold]
    fn refuse_bare(
        &mut self,
        batch: &Batch,
        header: Header,
        rcode: Rcode,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let limits = batch.settings.limits.as_ref().filter(|_| self.transport == Transport::Udp);
        if let Some(limits) = limits {
            let cookie = CookieStatus::Absent;
            let action = limits.response(batch.milliseconds, sender.ip(), Class::Error, 0, cookie);
            // There is nothing that could be asked again over TCP.
            if !matches!(action, Action::Send) {
                self.statistics.drop(statistics::Dropped::RateLimited);
                out.clear();
                return Outcome::Nothing;
            }
        }
        self.statistics.refuse(header.opcode(), rcode);
        Outcome::Ready
    }

    /// Answers what is no query: NOTIFY, UPDATE, and what is not implemented.
    #[cold]
    fn answer_opcode(
        &mut self,
        batch: &Batch,
        header: Header,
        message: &[u8],
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if !matches!(header.opcode(), notify::OPCODE | UPDATE) {
            push_bare(header, Rcode::NOTIMP, out);
            return self.refuse_bare(batch, header, Rcode::NOTIMP, sender, out);
        }
        let verified = match self.verify(batch, message, false, out) {
            Ok(verified) => verified,
            Err(rcode) => return self.refuse_bare(batch, header, rcode, sender, out),
        };
        if header.opcode() == UPDATE {
            refuse_update(&batch.table, header, message, out);
        } else if !self.take_notify(batch, message, verified.as_ref(), sender, out) {
            self.statistics.drop(statistics::Dropped::Failed);
            out.clear();
            return Outcome::Nothing;
        }
        let rcode = Header::read(out).map_or(Rcode::SERVFAIL, Header::rcode);
        if let Some(verified) = &verified {
            verified.signer().sign(out, batch.now);
        }
        if rcode == Rcode::NOERROR {
            // A primary of many zones, which may tell us of all of them at once.
            self.statistics.refuse(header.opcode(), rcode);
            return Outcome::Ready;
        }
        self.refuse_bare(batch, header, rcode, sender, out)
    }

    /// Answers NOTIFY (RFC 1996) and passes on what it says; `false` where that cannot be taken, and nothing is answered, so
    /// that the primary sends it again.
    fn take_notify(
        &mut self,
        batch: &Batch,
        message: &[u8],
        verified: Option<&Verified>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> bool {
        let key = verified.map(Verified::name);
        let ask = |apex: NameRef<'_>| {
            let Some(slot) = batch.table.slot(apex) else { return Standing::NotOurs };
            let state = slot.state();
            let policy = state.policy();
            if !policy.is_secondary {
                return Standing::Primary;
            }
            let allows = policy.notify_from.allows(sender.ip(), key);
            Standing::Secondary { allows }
        };
        match (notify::handle(message, sender.ip(), ask, out), &self.notified) {
            (Some(notified), Some(take)) => take(notified),
            _ => true,
        }
    }

    /// Answers AXFR and IXFR.
    #[cold]
    fn transfer(
        &mut self,
        batch: &Batch,
        message: &[u8],
        asked: &Asked<'_>,
        verified: Option<&Verified>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let slot = batch.table.slot(asked.name).filter(|_| asked.query.class == DnsClass::IN);
        let state = slot.map(|slot| slot.state());
        let state = state.as_deref().map(|state| &**state);
        if let Some(ZoneState::NotReady(_) | ZoneState::Expired(_)) = state {
            return self.refuse_transfer(
                batch,
                message,
                asked,
                verified,
                (Rcode::SERVFAIL, Some(ExtendedError::NOT_READY)),
                out,
            );
        }
        let zone = state.and_then(ZoneState::serving).map(|zone| ZoneToSend {
            contents: zone.contents(),
            journal: zone.journal().map(|journal| &**journal),
            access: &zone.policy().transfer,
            is_online: zone.published().is_signed_when_asked(),
        });
        let mut opt = Vec::new();
        asked.push_opt_alone(&mut opt);
        let request = outbound::Asked {
            message,
            query: asked.query,
            is_datagram: self.transport == Transport::Udp,
            client: sender,
            tsig: verified,
            opt: &opt,
            limit: asked.datagram_octets(),
        };
        match outbound::begin(&request, zone.as_ref(), &self.outgoing, out) {
            Transfer::Stream(stream) => {
                self.stream = Some(stream);
                Outcome::Stream
            }
            Transfer::Single => {
                self.statistics.query(asked.query, message, out);
                Outcome::Ready
            }
            Transfer::Refuse(refusal) => {
                let error = refusal.extended_error();
                self.refuse_transfer(batch, message, asked, verified, (refusal.rcode(), error), out)
            }
        }
    }

    fn refuse_transfer(
        &mut self,
        batch: &Batch,
        message: &[u8],
        asked: &Asked<'_>,
        verified: Option<&Verified>,
        (rcode, error): (Rcode, Option<ExtendedError>),
        out: &mut Vec<u8>,
    ) -> Outcome {
        decline(asked, rcode, error, false, out);
        if let Some(verified) = verified {
            verified.signer().sign(out, batch.now);
        }
        self.statistics.query(asked.query, message, out);
        Outcome::Ready
    }

    /// Makes what answers of the batch want, and takes note of what it took.
    fn make(&mut self, now: u32) {
        self.again = true;
        let (begun, operations) = (Instant::now(), self.workshop.wanted());
        for zone in std::mem::take(&mut self.wanting) {
            zone.published().make(&mut self.workshop, now);
        }
        self.share.spent(begun.elapsed().as_nanos() as u64, operations);
    }

    /// Answers with SERVFAIL: what the answer needs could not be made. `false` where nothing is to be sent.
    fn fail(&mut self, batch: &Batch, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(query) = Query::parse(message) else { return false };
        let mut room = [0; MAX_NAME];
        let ending = Ending { settings: &batch.reply, ..Ending::PLAIN };
        let asked = Asked::new(&query, &mut room, self.transport, &ending);
        decline(&asked, Rcode::SERVFAIL, None, false, out);
        self.statistics.query(&query, message, out);
        true
    }

    fn tap_response(&mut self, sender: SocketAddr, message: &[u8], response: &[u8]) {
        if let Some(tap) = &mut self.tap {
            tap.response(sender, message, response);
        }
    }
}

/// The zone that a query is answered from. RFC 4035 §3.1.4.1: DS records are in the zone above the cut.
fn find_slot<'t>(table: &'t Table, asked: &Asked<'_>) -> Option<&'t Arc<Slot>> {
    let slot = table.find(asked.name)?;
    if asked.query.qtype != Rtype::DS || slot.apex().view() != asked.name {
        return Some(slot);
    }
    asked.name.parent().and_then(|parent| table.find(parent)).or(Some(slot))
}

/// Answers UPDATE (RFC 2136 §3): it is refused. The zone section is repeated where it can be read.
fn refuse_update(table: &Table, header: Header, message: &[u8], out: &mut Vec<u8>) {
    let zone = NameRef::split_from(&message[HEADER..]).ok().filter(|_| header.counts[0] == 1);
    let zone = zone.and_then(|(name, _)| Some((name, message.get(HEADER..HEADER + name.len() + 4)?)));
    let Some((name, section)) = zone else {
        return push_bare(header, Rcode::FORMERR, out);
    };
    let is_ours = table.find(name.to_canonical().view()).is_some();
    push_bare(header, if is_ours { Rcode::REFUSED } else { Rcode::NOTAUTH }, out);
    out[4..6].copy_from_slice(&1u16.to_be_bytes());
    out.extend_from_slice(section);
}

const fn carrier(transport: Transport) -> Carrier {
    match transport {
        Transport::Udp => Carrier::Udp,
        Transport::Tcp => Carrier::Tcp,
        Transport::Tls => Carrier::Tls,
    }
}

const fn count_as(error: tsig::Error) -> Tsig {
    match error {
        tsig::Error::Form => Tsig::Malformed,
        tsig::Error::BadKey => Tsig::BadKey,
        tsig::Error::BadSig => Tsig::BadSignature,
        tsig::Error::BadTime => Tsig::BadTime,
        tsig::Error::BadTrunc => Tsig::BadTruncation,
    }
}
