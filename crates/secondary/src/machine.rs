//! What to do for one secondary zone, and when: a state machine.
//!
//! A *round* asks the primaries in turn for the serial of their version, until one has the version that is here (the zone is
//! refreshed) or a newer one (it is transferred). Rounds begin REFRESH seconds after a successful one, RETRY seconds after one
//! that failed, and when a NOTIFY comes. The zone expires EXPIRE seconds after the last success, or as soon as it does at the primary
//! that was asked, which may have it of another (RFC 7314 §4).

use super::event::{Action, Event, InboundOutcome, RejectionPeriod};
use super::timing::{LastRefresh, LocalSoa, Timing};
use nonesuch_proto::serial;
use std::collections::VecDeque;

/// Milliseconds until the first repetition where there is no zone yet, and so no RETRY.
const FIRST_RETRY: u64 = 5_000;
/// Milliseconds between repetitions at most, where there is no zone yet; and for which a primary that fails is asked last.
const LONGEST_RETRY: u64 = 3_600_000;
/// Milliseconds from one round to the next where a NOTIFY names no serial, or the last one that did told what was not so: anyone who
/// may notify could have us ask for ever.
const NOTIFY_GAP: u64 = 200;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Probing { primary: usize },
    Transferring { primary: usize, by_steps: bool },
}

/// How a primary did.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    failures: u32,
    /// Until then it is asked last.
    avoided_until: u64,
    /// The version of this primary that was rejected last. Another primary may have a sound version with the same serial.
    rejected: Option<Rejected>,
}

/// A NOTIFY that is to be followed up.
#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    serial: Option<u32>,
    primary: Option<usize>,
    /// Whether it is followed whatever the serial.
    is_forced: bool,
    /// Whether the whole zone is wanted.
    is_whole: bool,
}

/// A version that was rejected. It is not transferred again from this primary before the serial changes, unless verification may
/// find otherwise at a later time.
#[derive(Clone, Copy, Debug)]
struct Rejected {
    serial: u32,
    /// When the whole zone is asked for: where steps led to the version, which may have gone wrong on the way, or where the rejection
    /// depends on the clock.
    whole_at: Option<u64>,
}

/// The state machine of one zone. Times are in milliseconds since 1970, by a clock that never goes back.
#[derive(Debug)]
pub struct Machine {
    timing: Timing,
    uses_steps: bool,
    health: Vec<Health>,
    held: Option<LocalSoa>,
    refreshed: Option<LastRefresh>,
    is_expired: bool,
    state: State,
    /// Primaries that are still to be asked in this round.
    order: VecDeque<usize>,
    /// What began this round.
    hint: Hint,
    /// Milliseconds that the zone has at a primary which has the version that is here: the most that one told in this round.
    current: Option<u64>,
    /// What came during this round.
    again: Option<Hint>,
    next: Option<u64>,
    round_began: u64,
    /// Until then no NOTIFY begins a round, since the last one told what was not so.
    quiet_until: u64,
    /// Whether a version was rejected in this round: the NOTIFY that began it named a version that a primary has.
    has_rejected: bool,
    failed_rounds: u32,
    /// The next transfer is one of the whole zone.
    wants_whole: bool,
    preferred: usize,
    noise: u64,
    actions: VecDeque<Action>,
}

impl Machine {
    /// A zone of which the version `held` is here, last refreshed at `refreshed`, with so many primaries (at least one).
    /// `noise` is any number, another for each zone: it spreads the rounds of many zones.
    #[must_use]
    pub fn new(
        timing: Timing,
        uses_steps: bool,
        primaries: usize,
        held: Option<LocalSoa>,
        refreshed: Option<LastRefresh>,
        noise: u64,
        now: u64,
    ) -> Self {
        let mut machine = Self {
            timing,
            uses_steps,
            health: vec![Health::default(); primaries.max(1)],
            held,
            // A time to come is the word of a clock that was wrong.
            refreshed: held.map(|_| {
                let LastRefresh { at, left } = refreshed.unwrap_or(LastRefresh { at: now, left: None });
                LastRefresh { at: at.min(now), left }
            }),
            is_expired: false,
            state: State::Idle,
            order: VecDeque::new(),
            hint: Hint::default(),
            current: None,
            again: None,
            next: Some(now),
            round_began: 0,
            quiet_until: 0,
            has_rejected: false,
            failed_rounds: 0,
            wants_whole: false,
            preferred: 0,
            noise,
            actions: VecDeque::new(),
        };
        if let (Some(held), Some(LastRefresh { at, left })) = (held, refreshed) {
            let wait = machine.refresh_wait(held, left);
            machine.next = Some((at.min(now) + machine.spread(wait)).max(now));
        }
        machine
    }

    /// What is to be done; to be called until there is nothing.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Machine::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let round = self.next.filter(|_| self.state == State::Idle);
        let expiry = self.expires_at().filter(|_| !self.is_expired);
        round.into_iter().chain(expiry).min()
    }

    /// When the zone expires or expired.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        Some(self.refreshed?.expires_at(self.expire_limit()?))
    }

    /// When half of the time from the last success to the zone's expiry is over; none where it has expired.
    #[must_use]
    pub fn half_expired_at(&self) -> Option<u64> {
        let (refreshed, expires) = (self.refreshed?.at, self.expires_at()?);
        (!self.is_expired).then(|| refreshed + expires.saturating_sub(refreshed) / 2)
    }

    /// When the next round begins; none while one is under way.
    #[must_use]
    pub fn next_round(&self) -> Option<u64> {
        self.next.filter(|_| self.state == State::Idle)
    }

    /// When a primary last had the version that is here.
    #[must_use]
    pub const fn refreshed(&self) -> Option<LastRefresh> {
        self.refreshed
    }

    /// Milliseconds from a success to the zone's expiry, as its SOA record and the settings say.
    fn expire_limit(&self) -> Option<u64> {
        self.held.map(|held| self.timing.expire.milliseconds(held.expire))
    }

    /// Milliseconds that a zone has of which a primary says that so many seconds are left.
    fn left_by(&self, expire: Option<u32>) -> u64 {
        let (Some(held), Some(limit)) = (self.held, self.expire_limit()) else { return 0 };
        match expire {
            // The bounds are for what SOA records say: they do not lengthen what is left.
            Some(seconds) if seconds < held.expire => limit.min(u64::from(seconds) * 1000),
            // RFC 7314 §4: no more than the SOA record says.
            _ => limit,
        }
    }

    /// The version that is here.
    #[must_use]
    pub const fn local_soa(&self) -> Option<LocalSoa> {
        self.held
    }

    /// Whether the zone has expired.
    #[must_use]
    pub const fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// Whether a transfer is due or under way.
    #[must_use]
    pub const fn is_transferring(&self) -> bool {
        matches!(self.state, State::Transferring { .. })
    }

    /// Rounds that failed since the last one that did not.
    #[must_use]
    pub const fn failed_rounds(&self) -> u32 {
        self.failed_rounds
    }

    /// The primary that is being asked, or that was reached last.
    #[must_use]
    pub const fn primary(&self) -> usize {
        match self.state {
            State::Probing { primary } | State::Transferring { primary, .. } => primary,
            State::Idle => self.preferred,
        }
    }

    /// Takes other settings; what is under way goes on.
    pub fn reconfigure(&mut self, timing: Timing, uses_steps: bool, primaries: usize, now: u64) {
        (self.timing, self.uses_steps) = (timing, uses_steps);
        self.health = vec![Health::default(); primaries.max(1)];
        self.order.retain(|primary| *primary < primaries);
        self.preferred = 0;
        self.handle_event(Event::Refresh, now);
    }

    /// Whether the transfer that is under way is wanted whatever its serial.
    #[must_use]
    pub const fn takes_any_serial(&self) -> bool {
        self.held.is_none() || self.hint.is_whole
    }

    /// To be called at the time of [`Machine::poll_timeout`].
    pub fn handle_timeout(&mut self, now: u64) {
        if !self.is_expired && self.expires_at().is_some_and(|at| at <= now) {
            self.is_expired = true;
            self.actions.push_back(Action::Expire);
        }
        if self.state == State::Idle && self.next.is_some_and(|at| at <= now) {
            self.begin_round(now);
        }
    }

    /// Takes what happened.
    pub fn handle_event(&mut self, event: Event, now: u64) {
        match (event, self.state) {
            (Event::Notified { serial, primary }, _) => {
                self.take_hint(Hint { serial, primary, ..Hint::default() }, now);
            }
            (Event::Refresh | Event::Retransfer, _) => {
                self.forget_rejected();
                let is_whole = event == Event::Retransfer;
                self.take_hint(Hint { is_forced: true, is_whole, ..Hint::default() }, now);
            }
            (Event::Reconsider, _) => {
                if self.rejected().is_some() {
                    self.forget_rejected();
                    self.take_hint(Hint { is_forced: true, ..Hint::default() }, now);
                }
            }
            (Event::Serial { serial, expire }, State::Probing { primary }) => {
                self.take_serial(primary, serial, expire, now);
            }
            (Event::ProbeFailed, State::Probing { primary }) => {
                self.note_failure(primary, now);
                self.ask_next(now);
            }
            (Event::Transferred { ended, expire }, State::Transferring { primary, by_steps }) => {
                self.take_transfer(primary, by_steps, ended, expire, now);
            }
            // What is told of something that is not under way is out of date.
            (Event::Serial { .. } | Event::ProbeFailed | Event::Transferred { .. }, _) => {}
        }
    }

    fn take_hint(&mut self, hint: Hint, now: u64) {
        if self.state != State::Idle {
            let before = self.again.unwrap_or(hint);
            let is_forced = before.is_forced || hint.is_forced;
            // A hint without a serial is about any version.
            let serial = match (before.serial, hint.serial) {
                (Some(a), Some(b)) => Some(if serial::is_before(a, b) { b } else { a }),
                _ => None,
            };
            let is_whole = before.is_whole || hint.is_whole;
            self.again = Some(Hint { serial, primary: hint.primary.or(before.primary), is_forced, is_whole });
        } else if self.is_worth_a_round(hint, now) {
            self.hint = hint;
            let at = if hint.is_forced || hint.serial.is_some() {
                if hint.is_forced { now } else { now.max(self.quiet_until) }
            } else {
                now.max(self.round_began + NOTIFY_GAP)
            };
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
            self.handle_timeout(now);
        }
    }

    /// Whether a NOTIFY tells anything new (RFC 1996 §4.3).
    fn is_worth_a_round(&self, hint: Hint, now: u64) -> bool {
        if hint.is_forced || self.is_expired {
            return true;
        }
        let Some(serial) = hint.serial else { return true };
        let is_rejected = match hint.primary {
            Some(primary) => self.is_rejected(primary, serial, now),
            None => (0..self.health.len()).all(|primary| self.is_rejected(primary, serial, now)),
        };
        self.held.is_none_or(|held| serial::is_before(held.serial, serial)) && !is_rejected
    }

    fn rejected_of(&self, primary: usize) -> Option<Rejected> {
        self.health.get(primary)?.rejected
    }

    /// Whether the version with this serial was rejected when it came from this primary, and is not to be transferred from it again.
    fn is_rejected(&self, primary: usize, serial: u32, now: u64) -> bool {
        self.rejected_of(primary).is_some_and(|rejected| {
            rejected.serial == serial && rejected.whole_at.is_none_or(|whole_at| now < whole_at)
        })
    }

    /// Takes up that the version with this serial was rejected as a whole when it came from this primary, before a restart.
    pub fn restore_rejected(&mut self, primary: usize, serial: u32) {
        if let Some(health) = self.health.get_mut(primary) {
            health.rejected = Some(Rejected { serial, whole_at: None });
        }
    }

    /// The versions that were rejected as a whole: the place of each primary that sent one, and its serial.
    pub fn rejected_wholes(&self) -> impl Iterator<Item = (usize, u32)> {
        let rejected = self.health.iter().map(|health| health.rejected).enumerate();
        rejected.filter_map(|(primary, rejected)| {
            rejected.filter(|rejected| rejected.whole_at.is_none()).map(|rejected| (primary, rejected.serial))
        })
    }

    fn forget_rejected(&mut self) {
        self.health.iter_mut().for_each(|health| health.rejected = None);
    }

    /// The serial of the version that was rejected, the newest of those of all primaries, until another one is published.
    #[must_use]
    pub fn rejected(&self) -> Option<u32> {
        let serials = self.health.iter().filter_map(|health| Some(health.rejected?.serial));
        serials.reduce(|a, b| if serial::is_before(a, b) { b } else { a })
    }

    fn begin_round(&mut self, now: u64) {
        self.round_began = now;
        self.next = None;
        (self.current, self.has_rejected) = (None, false);
        self.order = self.order_of_primaries(now);
        self.ask_next(now);
    }

    /// First the one that notified, then the one that was reached last, then the others in their order; those that failed
    /// lately come last.
    fn order_of_primaries(&self, now: u64) -> VecDeque<usize> {
        let mut order: Vec<usize> = (0..self.health.len()).collect();
        let rank = |primary: &usize| {
            let is_notifier = self.hint.primary == Some(*primary);
            let is_avoided = self.health[*primary].avoided_until > now;
            (!is_notifier, is_avoided, *primary != self.preferred)
        };
        order.sort_by_key(rank);
        order.into()
    }

    fn ask_next(&mut self, now: u64) {
        let Some(primary) = self.order.pop_front() else {
            if self.hint.serial.is_some() && !self.has_rejected {
                self.quiet_until = now + NOTIFY_GAP;
            }
            match self.current {
                Some(left) => self.end_refreshed(left, now),
                None => self.end_failed(now),
            }
            return;
        };
        // After a rejection the serial is checked first: the zone may be large.
        if self.hint.is_whole || (self.held.is_none() && self.rejected_of(primary).is_none()) {
            self.transfer(primary, false);
        } else {
            self.state = State::Probing { primary };
            self.actions.push_back(Action::Probe { primary });
        }
    }

    fn transfer(&mut self, primary: usize, by_steps: bool) {
        self.state = State::Transferring { primary, by_steps };
        self.actions.push_back(Action::Transfer { primary, by_steps });
    }

    fn take_serial(&mut self, primary: usize, serial: u32, expire: Option<u32>, now: u64) {
        self.note_success(primary);
        if self.held.is_some_and(|held| held.serial == serial) {
            return self.take_current(expire, now);
        }
        let is_newer = self.held.is_none_or(|held| serial::is_before(held.serial, serial));
        if is_newer && !self.is_rejected(primary, serial, now) {
            self.transfer(primary, self.held.is_some() && self.uses_steps && !self.wants_whole);
        } else {
            self.ask_next(now);
        }
    }

    /// A primary has the version that is here. Where a NOTIFY named a newer one, another primary may have it.
    fn take_current(&mut self, expire: Option<u32>, now: u64) {
        // RFC 7314 §4: what another one said before stands where it is more.
        let before = self.expires_at().map_or(0, |at| at.saturating_sub(now));
        let left = self.left_by(expire).max(before).max(self.current.unwrap_or(0));
        self.current = Some(left);
        let is_newer_known = self
            .hint
            .serial
            .zip(self.held)
            .is_some_and(|(serial, held)| serial::is_before(held.serial, serial));
        if is_newer_known {
            self.ask_next(now);
        } else {
            self.end_refreshed(left, now);
        }
    }

    fn take_transfer(
        &mut self,
        primary: usize,
        by_steps: bool,
        ended: InboundOutcome,
        expire: Option<u32>,
        now: u64,
    ) {
        match ended {
            InboundOutcome::Published(held) => {
                self.note_success(primary);
                self.held = Some(held);
                self.wants_whole = false;
                self.forget_rejected();
                let left = self.left_by(expire);
                // What was published is served: where nothing is left to it, it expires anew.
                self.is_expired &= left > 0;
                self.end_refreshed(left, now);
            }
            InboundOutcome::UpToDate { serial } if self.held.is_some_and(|held| held.serial == serial) => {
                self.note_success(primary);
                self.take_current(expire, now);
            }
            InboundOutcome::UpToDate { .. } => self.ask_next(now),
            InboundOutcome::IxfrFailed if by_steps => self.transfer(primary, false),
            InboundOutcome::IxfrFailed | InboundOutcome::Failed => {
                self.note_failure(primary, now);
                self.ask_next(now);
            }
            // Other settings are under way, or the zone is gone: neither the version nor a primary is to blame.
            InboundOutcome::NoLongerWanted => {
                if self.hint.is_whole {
                    // Whoever asked for it gets it, from whom it is had.
                    let again = self.again.get_or_insert_with(Hint::default);
                    (again.is_forced, again.is_whole) = (true, true);
                }
                let wait = self.retry_wait();
                self.end(now + wait, now);
            }
            InboundOutcome::Rejected { serial, verdict } => {
                let retry = self.retry_at(now);
                let whole_at = match verdict {
                    RejectionPeriod::Final => by_steps.then_some(retry),
                    RejectionPeriod::For { seconds } => {
                        // No later: the clock that says so may be wrong, and be set.
                        let wait = (u64::from(seconds) * 1000).min(LONGEST_RETRY);
                        Some(retry.max(now + wait))
                    }
                };
                if let Some(health) = self.health.get_mut(primary) {
                    health.rejected = Some(Rejected { serial, whole_at });
                }
                // Steps that lead to a faulty version may have gone wrong on the way: the whole zone is the cure.
                (self.wants_whole, self.has_rejected) = (true, true);
                self.ask_next(now);
            }
            InboundOutcome::PublishFailed { serial } => {
                // From whichever primary it comes; what was rejected for good stays rejected.
                let rejected = Some(Rejected { serial, whole_at: Some(self.retry_at(now)) });
                let is_open = |health: &&mut Health| health.rejected.is_none_or(|old| old.whole_at.is_some());
                self.health.iter_mut().filter(is_open).for_each(|health| health.rejected = rejected);
                self.end_failed(now);
            }
        }
    }

    fn note_success(&mut self, primary: usize) {
        if let Some(health) = self.health.get_mut(primary) {
            *health = Health { rejected: health.rejected, ..Health::default() };
            self.preferred = primary;
        }
    }

    fn note_failure(&mut self, primary: usize, now: u64) {
        let wait = self.retry_wait();
        if let Some(health) = self.health.get_mut(primary) {
            let doubled = wait.saturating_mul(1 << health.failures.min(16));
            health.avoided_until = now + doubled.min(LONGEST_RETRY.max(wait));
            health.failures = health.failures.saturating_add(1);
        }
    }

    /// A primary has the version that is here, and the zone has so many milliseconds.
    fn end_refreshed(&mut self, left: u64, now: u64) {
        let left = Some(left).filter(|left| self.expire_limit().is_none_or(|limit| *left < limit));
        self.refreshed = Some(LastRefresh { at: now, left });
        self.failed_rounds = 0;
        if self.is_expired && left != Some(0) {
            self.is_expired = false;
            self.actions.push_back(Action::Restore);
        }
        self.actions.push_back(Action::Store);
        let wait = self.held.map_or(FIRST_RETRY, |held| self.refresh_wait(held, left));
        let wait = self.spread(wait);
        self.end(now + wait, now);
    }

    /// REFRESH, or sooner where that little is left to the zone: the primary may have reached its own meanwhile.
    fn refresh_wait(&self, held: LocalSoa, left: Option<u64>) -> u64 {
        let refresh = self.timing.refresh.milliseconds(held.refresh);
        let least = u64::from(self.timing.retry.min) * 1000;
        left.map_or(refresh, |left| refresh.min((left / 2).max(least)))
    }

    fn end_failed(&mut self, now: u64) {
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        let wait = self.retry_wait();
        let wait = self.spread(wait);
        self.end(now + wait, now);
    }

    /// When what failed at `now` is tried again: the next round after a failure begins no sooner (see `spread`).
    fn retry_at(&self, now: u64) -> u64 {
        let wait = self.retry_wait();
        now + wait - wait / 10
    }

    /// RETRY where there is a zone; without one, each failure doubles the wait.
    fn retry_wait(&self) -> u64 {
        match self.held {
            Some(held) => self.timing.retry.milliseconds(held.retry),
            None => {
                let doublings = self.failed_rounds.saturating_sub(1).min(16);
                (FIRST_RETRY << doublings).min(LONGEST_RETRY)
            }
        }
    }

    fn end(&mut self, next: u64, now: u64) {
        self.state = State::Idle;
        self.order.clear();
        self.hint = Hint::default();
        self.next = Some(next);
        if let Some(hint) = self.again.take() {
            self.take_hint(hint, now);
        }
    }

    /// Between 90 and 100 percent of `wait`: zones that were loaded together do not ask together for ever.
    fn spread(&mut self, wait: u64) -> u64 {
        // SplitMix64: any even spread will do.
        self.noise = self.noise.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.noise;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = wait / 10;
        wait - (mixed ^ mixed >> 31) % (part + 1)
    }
}
