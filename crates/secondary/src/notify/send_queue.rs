//! NOTIFY messages to be sent: for each zone and secondary at most one is under way, and it is the newest.

use nonesuch_proto::message::{HEADER, Header, Message, Question, Rcode, flags, opcode};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_server::acl::Remote;
use std::collections::{BTreeSet, HashMap};

/// Times that a secondary is asked before it is given up (RFC 1996 §3.6 leaves the number open).
const ATTEMPTS: u32 = 5;
/// Milliseconds until the first repetition; each further one waits twice as long. RFC 1996 §3.6 proposes a minute, which is
/// long for a secondary that merely lost a datagram.
const FIRST_WAIT: u64 = 2_000;

/// The SOA record that a NOTIFY carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoaRecord {
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA, names uncompressed.
    pub rdata: Vec<u8>,
}

/// Why secondaries are told of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyReason {
    /// It is new.
    Change,
    /// The server has begun with it: most of the secondaries have it.
    Start,
}

/// A NOTIFY to be sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingNotify {
    /// The zone.
    pub apex: Name,
    /// Who is told.
    pub remote: Remote,
    /// The message, without identifier and TSIG.
    pub message: Vec<u8>,
    /// Milliseconds to wait for the answer.
    pub timeout_ms: u64,
    /// Tells this attempt from those before.
    pub ticket: u64,
    /// Whether the secondary did not answer the one before.
    pub is_repeated: bool,
}

/// What came of the NOTIFY messages for a zone at a secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyOutcome {
    /// The secondary knows.
    Acknowledged,
    /// It answered with an error, and will not be asked again.
    Refused(Rcode),
    /// It did not answer; it is asked again.
    Waiting,
    /// It never answered, and is given up.
    GivenUp,
}

#[derive(Debug)]
struct Pending {
    soa: SoaRecord,
    attempts: u32,
    ticket: u64,
    /// Milliseconds of the next attempt; none while one is under way.
    due: Option<u64>,
    /// Milliseconds until which the attempt under way waits for its answer.
    until: u64,
}

type Target = (Name, Remote);
/// When a message is to be sent, and its ticket.
type Due = BTreeSet<(u64, u64)>;

/// The messages that are to be sent. Time is in milliseconds, from any beginning.
#[derive(Debug)]
pub struct NotifyQueue {
    pending: HashMap<Name, HashMap<Remote, Pending>>,
    /// First attempts for versions that are new.
    first: Due,
    /// First attempts of a start: there may be many of them, and whoever is told of a change is not to wait for them.
    begun: Due,
    /// Repeated ones: those who may be down come behind those who may not.
    repeated: Due,
    targets: HashMap<u64, Target>,
    tickets: u64,
    /// Messages that may be sent in a second, and at once.
    rate: u32,
    /// What is left of them, in thousandths, and since when.
    room: u64,
    counted: u64,
}

impl NotifyQueue {
    /// An empty one that lets out at most `rate` messages a second.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        let rate = rate.max(1);
        Self {
            pending: HashMap::new(),
            first: Due::new(),
            begun: Due::new(),
            repeated: Due::new(),
            targets: HashMap::new(),
            tickets: 0,
            rate,
            room: u64::from(rate) * 1000,
            counted: 0,
        }
    }

    /// Tells `remotes` of the version with this SOA record. What was to be told of an older version is dropped.
    pub fn push(
        &mut self,
        apex: &Name,
        soa: &SoaRecord,
        remotes: &[Remote],
        occasion: NotifyReason,
        now: u64,
    ) {
        for remote in remotes {
            let target = (apex.clone(), remote.clone());
            let occasion = if self.tells_change(&target, soa) { NotifyReason::Change } else { occasion };
            self.forget(&target);
            self.tickets += 1;
            let pending =
                Pending { soa: soa.clone(), attempts: 0, ticket: self.tickets, due: Some(now), until: now };
            let queue = match occasion {
                NotifyReason::Change => &mut self.first,
                NotifyReason::Start => &mut self.begun,
            };
            queue.insert((now, self.tickets));
            self.pending.entry(target.0.clone()).or_default().insert(target.1.clone(), pending);
            self.targets.insert(self.tickets, target);
        }
    }

    /// Whether this version is to be told of as a change already.
    fn tells_change(&self, (apex, remote): &Target, soa: &SoaRecord) -> bool {
        let pending = self.pending.get(apex).and_then(|of_zone| of_zone.get(remote));
        pending.is_some_and(|pending| {
            pending.soa == *soa && pending.due.is_some_and(|due| self.first.contains(&(due, pending.ticket)))
        })
    }

    /// Drops what was to be told of a zone.
    pub fn forget_zone(&mut self, apex: &Name) {
        for old in self.pending.remove(apex).unwrap_or_default().into_values() {
            self.drop_due(&old);
        }
    }

    /// Sends no message about a zone that is not for one of `remotes`.
    pub fn retain(&mut self, apex: &Name, remotes: &[Remote]) {
        let known = self.pending.get(apex).into_iter().flat_map(|of_zone| of_zone.keys());
        let gone = known.filter(|remote| !remotes.contains(remote));
        let gone: Vec<Target> = gone.map(|remote| (apex.clone(), remote.clone())).collect();
        gone.iter().for_each(|target| self.forget(target));
    }

    fn forget(&mut self, (apex, remote): &Target) {
        let Some(of_zone) = self.pending.get_mut(apex) else { return };
        let old = of_zone.remove(remote);
        if of_zone.is_empty() {
            self.pending.remove(apex);
        }
        if let Some(old) = old {
            self.drop_due(&old);
        }
    }

    fn drop_due(&mut self, old: &Pending) {
        self.targets.remove(&old.ticket);
        if let Some(due) = old.due {
            self.unqueue(due, old.ticket);
        }
    }

    /// Takes a message out of the queue that it is in.
    fn unqueue(&mut self, due: u64, ticket: u64) {
        for queue in [&mut self.first, &mut self.begun, &mut self.repeated] {
            queue.remove(&(due, ticket));
        }
    }

    /// The next message that is due and that the rate has room for; one that is repeated only where `may_repeat`.
    pub fn poll(&mut self, now: u64, may_repeat: bool) -> Option<OutgoingNotify> {
        self.refill(now);
        if self.room < 1000 {
            return None;
        }
        let (is_repeated, (due, ticket)) = self.next(may_repeat).filter(|(_, (due, _))| *due <= now)?;
        self.unqueue(due, ticket);
        let target = self.targets.get(&ticket)?.clone();
        let pending = self.pending.get_mut(&target.0)?.get_mut(&target.1)?;
        self.room -= 1000;
        pending.due = None;
        pending.attempts += 1;
        let patience = FIRST_WAIT << (pending.attempts - 1).min(ATTEMPTS);
        // Where the answer is that nobody listens there, it comes at once: the next attempt waits all the same.
        pending.until = now + patience;
        let message = compose(&target.0, &pending.soa);
        Some(OutgoingNotify {
            apex: target.0,
            remote: target.1,
            message,
            timeout_ms: patience,
            ticket,
            is_repeated,
        })
    }

    /// The next one, and whether it is repeated: first attempts are due at once, and come first, those of changes before all.
    fn next(&self, may_repeat: bool) -> Option<(bool, (u64, u64))> {
        let repeated = || self.repeated.first().filter(|_| may_repeat).map(|due| (true, *due));
        self.first.first().or_else(|| self.begun.first()).map(|due| (false, *due)).or_else(repeated)
    }

    fn refill(&mut self, now: u64) {
        let rate = u64::from(self.rate);
        let gained = now.saturating_sub(self.counted).saturating_mul(rate);
        self.room = self.room.saturating_add(gained).min(rate * 1000);
        self.counted = now.max(self.counted);
    }

    /// When to poll next.
    #[must_use]
    pub fn poll_timeout(&self, may_repeat: bool) -> Option<u64> {
        let (_, (due, _)) = self.next(may_repeat)?;
        let missing = 1000u64.saturating_sub(self.room).div_ceil(u64::from(self.rate));
        Some(due.max(self.counted + missing))
    }

    /// Takes what came of an attempt: the whole answer, or none in the time that there was. `None` where a newer version has
    /// taken its place meanwhile.
    pub fn handle_response(&mut self, ticket: u64, answer: Option<&[u8]>, now: u64) -> Option<NotifyOutcome> {
        let target = self.targets.get(&ticket)?.clone();
        let rcode = answer.and_then(|octets| read_answer(octets, &target.0));
        let outcome = match rcode {
            Some(Rcode::NOERROR) => NotifyOutcome::Acknowledged,
            Some(rcode) => NotifyOutcome::Refused(rcode),
            None => {
                let pending = self.pending.get_mut(&target.0)?.get_mut(&target.1)?;
                if pending.attempts < ATTEMPTS {
                    let due = now.max(pending.until);
                    pending.due = Some(due);
                    self.repeated.insert((due, ticket));
                    return Some(NotifyOutcome::Waiting);
                }
                NotifyOutcome::GivenUp
            }
        };
        self.forget(&target);
        Some(outcome)
    }
}

/// The message: one question, the SOA record as a hint (RFC 1996 §3.7).
fn compose(apex: &Name, soa: &SoaRecord) -> Vec<u8> {
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

/// The response code of an answer to a NOTIFY for this zone. Some servers leave out the question of an error.
fn read_answer(octets: &[u8], apex: &Name) -> Option<Rcode> {
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
