//! Queue of NOTIFY messages to send. For each zone and secondary, at most one message is pending:
//! the newest.

use nonesuch_proto::message::{HEADER, Header, Message, Question, Rcode, flags, opcode};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_server::acl::Remote;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of attempts for each secondary (RFC 1996 §3.6 sets no number).
const ATTEMPTS_MAX: u32 = 5;
/// Milliseconds from the first attempt to the first repetition. Each further wait is twice as long.
/// RFC 1996 §3.6 proposes a minute, which is long if only a datagram was lost.
const FIRST_WAIT_MS: u64 = 2_000;

/// The SOA record in a NOTIFY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoaRecord {
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA with uncompressed names.
    pub rdata: Vec<u8>,
}

/// Why secondaries are notified about a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyReason {
    /// The version is new.
    Change,
    /// The server has started with this version, and most secondaries already have it.
    Start,
}

/// A NOTIFY to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingNotify {
    /// The apex of the zone.
    pub apex: Name,
    /// The secondary.
    pub remote: Remote,
    /// The message, without ID and TSIG.
    pub message: Vec<u8>,
    /// Milliseconds to wait for the response.
    pub timeout_ms: u64,
    /// Distinguishes this attempt from earlier ones.
    pub ticket: u64,
    /// Whether the secondary did not respond to the previous attempt.
    pub is_repeated: bool,
}

/// The result of an attempt to notify a secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyAttemptResult {
    /// The secondary acknowledged the NOTIFY.
    Acknowledged,
    /// The secondary responded with this error. There is no further attempt.
    Rejected(Rcode),
    /// The secondary did not respond. Another attempt follows.
    WillRepeat,
    /// The secondary did not respond to the last attempt. There is no further attempt.
    Unanswered,
}

/// A message that is queued, or that waits for its response.
#[derive(Debug)]
struct Pending {
    soa: SoaRecord,
    attempts: u32,
    ticket: u64,
    /// Time of the next attempt in milliseconds; `None` during an attempt.
    due: Option<u64>,
    /// Time in milliseconds until which the current attempt waits for its response.
    response_deadline: u64,
}

/// The zone and the secondary of a message.
type Target = (Name, Remote);
/// The send time and the ticket of a message.
type Due = BTreeSet<(u64, u64)>;

/// The messages to send. Times are in milliseconds from an arbitrary start.
#[derive(Debug)]
pub struct NotifyQueue {
    pending: HashMap<Name, HashMap<Remote, Pending>>,
    /// First attempts for new versions.
    first: Due,
    /// First attempts after a start of the server. There may be many of them, and they must not
    /// delay messages about new versions.
    startup: Due,
    /// Repeated attempts. They come last, because their secondaries may be down.
    repeated: Due,
    /// The target of each ticket in `pending`.
    targets: HashMap<u64, Target>,
    /// The ticket of the newest message.
    last_ticket: u64,
    /// Maximum number of messages per second, and of messages in a burst.
    rate: u32,
    /// Number of messages that the rate permits now, in thousandths.
    credit: u64,
    /// Time of the last update of `credit`.
    credit_at: u64,
}

impl NotifyQueue {
    /// Returns an empty queue that releases at most `rate` messages per second.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        let rate = rate.max(1);
        Self {
            pending: HashMap::new(),
            first: Due::new(),
            startup: Due::new(),
            repeated: Due::new(),
            targets: HashMap::new(),
            last_ticket: 0,
            rate,
            credit: u64::from(rate) * 1000,
            credit_at: 0,
        }
    }

    /// Queues messages to `remotes` about the version with this SOA record. They replace messages
    /// about older versions.
    pub fn push(&mut self, apex: &Name, soa: &SoaRecord, remotes: &[Remote], reason: NotifyReason, now: u64) {
        for remote in remotes {
            let target = (apex.clone(), remote.clone());
            let reason = if self.is_queued_as_change(&target, soa) { NotifyReason::Change } else { reason };
            self.forget(&target);
            self.last_ticket += 1;
            let pending = Pending {
                soa: soa.clone(),
                attempts: 0,
                ticket: self.last_ticket,
                due: Some(now),
                response_deadline: now,
            };
            let queue = match reason {
                NotifyReason::Change => &mut self.first,
                NotifyReason::Start => &mut self.startup,
            };
            queue.insert((now, self.last_ticket));
            self.pending.entry(target.0.clone()).or_default().insert(target.1.clone(), pending);
            self.targets.insert(self.last_ticket, target);
        }
    }

    /// Whether a message about this version is already queued for the reason
    /// [`NotifyReason::Change`].
    fn is_queued_as_change(&self, (apex, remote): &Target, soa: &SoaRecord) -> bool {
        let pending = self.pending.get(apex).and_then(|of_zone| of_zone.get(remote));
        pending.is_some_and(|pending| {
            pending.soa == *soa && pending.due.is_some_and(|due| self.first.contains(&(due, pending.ticket)))
        })
    }

    /// Removes all messages about a zone.
    pub fn forget_zone(&mut self, apex: &Name) {
        for old in self.pending.remove(apex).unwrap_or_default().into_values() {
            self.remove_pending(&old);
        }
    }

    /// Removes all messages about a zone except those to `remotes`.
    pub fn retain(&mut self, apex: &Name, remotes: &[Remote]) {
        let known = self.pending.get(apex).into_iter().flat_map(|of_zone| of_zone.keys());
        let removed = known.filter(|remote| !remotes.contains(remote));
        let removed: Vec<Target> = removed.map(|remote| (apex.clone(), remote.clone())).collect();
        removed.iter().for_each(|target| self.forget(target));
    }

    fn forget(&mut self, (apex, remote): &Target) {
        let Some(of_zone) = self.pending.get_mut(apex) else { return };
        let old = of_zone.remove(remote);
        if of_zone.is_empty() {
            self.pending.remove(apex);
        }
        if let Some(old) = old {
            self.remove_pending(&old);
        }
    }

    fn remove_pending(&mut self, old: &Pending) {
        self.targets.remove(&old.ticket);
        if let Some(due) = old.due {
            self.remove_from_queues(due, old.ticket);
        }
    }

    /// Removes a message from its queue.
    fn remove_from_queues(&mut self, due: u64, ticket: u64) {
        for queue in [&mut self.first, &mut self.startup, &mut self.repeated] {
            queue.remove(&(due, ticket));
        }
    }

    /// Returns the next message that is due and that the rate permits. Repeated messages are
    /// considered only if `may_repeat` is true.
    pub fn poll(&mut self, now: u64, may_repeat: bool) -> Option<OutgoingNotify> {
        self.refill(now);
        if self.credit < 1000 {
            return None;
        }
        let (is_repeated, (due, ticket)) = self.next(may_repeat).filter(|(_, (due, _))| *due <= now)?;
        self.remove_from_queues(due, ticket);
        let target = self.targets.get(&ticket)?.clone();
        let pending = self.pending.get_mut(&target.0)?.get_mut(&target.1)?;
        self.credit -= 1000;
        pending.due = None;
        pending.attempts += 1;
        let timeout_ms = FIRST_WAIT_MS << (pending.attempts - 1).min(ATTEMPTS_MAX);
        // If nothing listens at the secondary's port, the error arrives immediately. The next
        // attempt still waits.
        pending.response_deadline = now + timeout_ms;
        let message = build_message(&target.0, &pending.soa);
        Some(OutgoingNotify { apex: target.0, remote: target.1, message, timeout_ms, ticket, is_repeated })
    }

    /// Returns the next message, and whether it is a repetition. First attempts are due immediately
    /// and precede repetitions. Among them, changes come first.
    fn next(&self, may_repeat: bool) -> Option<(bool, (u64, u64))> {
        let repeated = || self.repeated.first().filter(|_| may_repeat).map(|due| (true, *due));
        self.first.first().or_else(|| self.startup.first()).map(|due| (false, *due)).or_else(repeated)
    }

    fn refill(&mut self, now: u64) {
        let rate = u64::from(self.rate);
        let gained = now.saturating_sub(self.credit_at).saturating_mul(rate);
        self.credit = self.credit.saturating_add(gained).min(rate * 1000);
        self.credit_at = now.max(self.credit_at);
    }

    /// Returns the time at which [`NotifyQueue::poll`] can return the next message; `None` if
    /// no message may be sent. `may_repeat` has the same meaning as there.
    #[must_use]
    pub fn poll_timeout(&self, may_repeat: bool) -> Option<u64> {
        let (_, (due, _)) = self.next(may_repeat)?;
        let wait_ms = 1000u64.saturating_sub(self.credit).div_ceil(u64::from(self.rate));
        Some(due.max(self.credit_at + wait_ms))
    }

    /// Handles the result of an attempt: the complete response, or `None` after the timeout.
    /// Returns `None` if a message about a newer version has replaced this one.
    pub fn handle_response(
        &mut self,
        ticket: u64,
        answer: Option<&[u8]>,
        now: u64,
    ) -> Option<NotifyAttemptResult> {
        let target = self.targets.get(&ticket)?.clone();
        let rcode = answer.and_then(|octets| parse_response(octets, &target.0));
        let outcome = match rcode {
            Some(Rcode::NOERROR) => NotifyAttemptResult::Acknowledged,
            Some(rcode) => NotifyAttemptResult::Rejected(rcode),
            None => {
                let pending = self.pending.get_mut(&target.0)?.get_mut(&target.1)?;
                if pending.attempts < ATTEMPTS_MAX {
                    let due = now.max(pending.response_deadline);
                    pending.due = Some(due);
                    self.repeated.insert((due, ticket));
                    return Some(NotifyAttemptResult::WillRepeat);
                }
                NotifyAttemptResult::Unanswered
            }
        };
        self.forget(&target);
        Some(outcome)
    }
}

/// Builds the message: one question, and the SOA record as a hint (RFC 1996 §3.7).
fn build_message(apex: &Name, soa: &SoaRecord) -> Vec<u8> {
    let notify_flags = u16::from(opcode::NOTIFY) << 11 | flags::AA;
    let mut out = Vec::with_capacity(HEADER + apex.wire().len() + soa.rdata.len() + 16);
    out.extend_from_slice(&Header { id: 0, flags: notify_flags, counts: [1, 1, 0, 0] }.to_octets());
    out.extend_from_slice(apex.wire());
    out.extend_from_slice(&Rtype::SOA.0.to_be_bytes());
    out.extend_from_slice(&Class::IN.0.to_be_bytes());
    out.extend_from_slice(&[0xc0, HEADER as u8]);
    out.extend_from_slice(&Rtype::SOA.0.to_be_bytes());
    out.extend_from_slice(&Class::IN.0.to_be_bytes());
    out.extend_from_slice(&soa.ttl.to_be_bytes());
    out.extend_from_slice(&(soa.rdata.len() as u16).to_be_bytes());
    out.extend_from_slice(&soa.rdata);
    out
}

/// Returns the response code of a response to a NOTIFY for this zone. Some servers omit the
/// question in an error response.
fn parse_response(octets: &[u8], apex: &Name) -> Option<Rcode> {
    let header = Header::read(octets)?;
    if header.flags & flags::QR == 0 || header.opcode() != opcode::NOTIFY {
        return None;
    }
    if header.counts[0] == 0 {
        return (header.rcode() != Rcode::NOERROR).then(|| header.rcode());
    }
    let message = Message::parse(octets).ok()?;
    let [Question { name, rtype, class }] = &message.questions[..] else { return None };
    (name == apex && *rtype == Rtype::SOA && *class == Class::IN).then(|| message.header.rcode())
}
