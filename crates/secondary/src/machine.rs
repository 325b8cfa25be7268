//! The state machine of one secondary zone: decides which action follows, and when.
//!
//! In a *round*, the machine queries the primaries in turn for their serial. The round ends when a
//! primary has the local version (the zone is refreshed) or a newer one (it is transferred). A
//! round begins REFRESH seconds after a successful round, RETRY seconds after a failed round, and
//! when a NOTIFY arrives. The zone expires EXPIRE seconds after the last success. It expires
//! earlier if the queried primary, which may itself be a secondary, reports an earlier expiry (RFC
//! 7314 §4).

use super::event::{Action, Event, InboundOutcome, RejectionPeriod};
use super::timing::{LastRefresh, LocalSoa, Timing};
use nonesuch_proto::serial;
use std::collections::VecDeque;

/// Milliseconds until the first repetition while there is no local version, and so no RETRY field.
const FIRST_RETRY: u64 = 5_000;
/// Maximum milliseconds between repetitions while there is no local version. Also the maximum time
/// for which a failing primary is queried last.
const LONGEST_RETRY: u64 = 3_600_000;
/// Minimum milliseconds between rounds if a NOTIFY has no serial, or if the last NOTIFY with a
/// serial was false: no primary had the version that it named. Otherwise, a permitted sender of
/// NOTIFY could cause an unlimited number of queries.
const NOTIFY_GAP: u64 = 200;

/// The current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Probing { primary: usize },
    Transferring { primary: usize, by_steps: bool },
}

/// The state of a primary.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    failures: u32,
    /// Until this time, the primary is queried last.
    avoided_until: u64,
    /// The last rejected version of this primary. Another primary may have a valid version with the
    /// same serial.
    rejected: Option<Rejected>,
}

/// A NOTIFY or request that needs a round.
#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    serial: Option<u32>,
    primary: Option<usize>,
    /// Whether to begin a round regardless of the serial.
    is_forced: bool,
    /// Whether to transfer the whole zone.
    is_whole: bool,
}

/// A rejected version. It is not transferred again from this primary before the serial changes,
/// unless a later verification may have another result.
#[derive(Clone, Copy, Debug)]
struct Rejected {
    serial: u32,
    /// Time at which the whole zone is transferred again. Set if the version came from an
    /// incremental transfer, which may be the cause, or if the rejection depends on the clock.
    whole_at: Option<u64>,
}

/// The state machine of one zone. Times are in milliseconds since 1970, from a monotonic clock.
#[derive(Debug)]
pub struct Machine {
    timing: Timing,
    uses_steps: bool,
    health: Vec<Health>,
    held: Option<LocalSoa>,
    refreshed: Option<LastRefresh>,
    is_expired: bool,
    state: State,
    /// The remaining primaries of this round.
    order: VecDeque<usize>,
    /// The cause of this round.
    hint: Hint,
    /// Milliseconds until expiry, from the primaries with the local version. The maximum of the
    /// values reported in this round.
    current: Option<u64>,
    /// Hints that arrived during this round.
    again: Option<Hint>,
    next: Option<u64>,
    round_began: u64,
    /// Until this time, no NOTIFY begins a round, because the last NOTIFY was false.
    quiet_until: u64,
    /// Whether a version was rejected in this round. If so, the NOTIFY that began the round named a
    /// version that a primary has.
    has_rejected: bool,
    failed_rounds: u32,
    /// Whether the next transfer requests the whole zone.
    wants_whole: bool,
    preferred: usize,
    noise: u64,
    actions: VecDeque<Action>,
}

impl Machine {
    /// Returns the machine of a zone with the local version `held`, last refreshed at `refreshed`.
    /// `primaries`: number of primaries (at least one). `noise`: any number that differs between
    /// zones; it distributes the rounds of many zones over time.
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
            // A time in the future comes from a clock that was wrong.
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

    /// Returns the next action. The caller repeats the call until it returns `None`.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the time of the next call to [`Machine::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let round = self.next.filter(|_| self.state == State::Idle);
        let expiry = self.expires_at().filter(|_| !self.is_expired);
        round.into_iter().chain(expiry).min()
    }

    /// The time at which the zone expires or expired.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        Some(self.refreshed?.expires_at(self.expire_limit()?))
    }

    /// The time in the middle between the last success and the expiry; `None` if the zone has
    /// expired.
    #[must_use]
    pub fn half_expired_at(&self) -> Option<u64> {
        let (refreshed, expires) = (self.refreshed?.at, self.expires_at()?);
        (!self.is_expired).then(|| refreshed + expires.saturating_sub(refreshed) / 2)
    }

    /// The time of the next round; `None` during a round.
    #[must_use]
    pub fn next_round(&self) -> Option<u64> {
        self.next.filter(|_| self.state == State::Idle)
    }

    /// The last time at which a primary confirmed the local version.
    #[must_use]
    pub const fn refreshed(&self) -> Option<LastRefresh> {
        self.refreshed
    }

    /// Milliseconds from a success to the expiry, according to the SOA record and the settings.
    fn expire_limit(&self) -> Option<u64> {
        self.held.map(|held| self.timing.expire.milliseconds(held.expire))
    }

    /// Returns the milliseconds until expiry, if a primary reports `expire` seconds.
    fn left_by(&self, expire: Option<u32>) -> u64 {
        let (Some(held), Some(limit)) = (self.held, self.expire_limit()) else { return 0 };
        match expire {
            // The configured bounds apply to SOA records. They do not extend the reported time.
            Some(seconds) if seconds < held.expire => limit.min(u64::from(seconds) * 1000),
            // RFC 7314 §4: at most the time in the SOA record.
            _ => limit,
        }
    }

    /// The SOA record of the local version.
    #[must_use]
    pub const fn local_soa(&self) -> Option<LocalSoa> {
        self.held
    }

    /// Whether the zone has expired.
    #[must_use]
    pub const fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// Whether a transfer is queued or active.
    #[must_use]
    pub const fn is_transferring(&self) -> bool {
        matches!(self.state, State::Transferring { .. })
    }

    /// Number of failed rounds since the last successful one.
    #[must_use]
    pub const fn failed_rounds(&self) -> u32 {
        self.failed_rounds
    }

    /// The index of the primary that is being queried, or of the last one that answered.
    #[must_use]
    pub const fn primary(&self) -> usize {
        match self.state {
            State::Probing { primary } | State::Transferring { primary, .. } => primary,
            State::Idle => self.preferred,
        }
    }

    /// Applies new settings, and begins a refresh. The current activity continues.
    pub fn reconfigure(&mut self, timing: Timing, uses_steps: bool, primaries: usize, now: u64) {
        (self.timing, self.uses_steps) = (timing, uses_steps);
        self.health = vec![Health::default(); primaries.max(1)];
        self.order.retain(|primary| *primary < primaries);
        self.preferred = 0;
        self.handle_event(Event::Refresh, now);
    }

    /// Whether the active transfer may have any serial.
    #[must_use]
    pub const fn takes_any_serial(&self) -> bool {
        self.held.is_none() || self.hint.is_whole
    }

    /// Handles a timeout. The caller calls this at the time of [`Machine::poll_timeout`].
    pub fn handle_timeout(&mut self, now: u64) {
        if !self.is_expired && self.expires_at().is_some_and(|at| at <= now) {
            self.is_expired = true;
            self.actions.push_back(Action::Expire);
        }
        if self.state == State::Idle && self.next.is_some_and(|at| at <= now) {
            self.begin_round(now);
        }
    }

    /// Handles an event at `now`, in the time unit of [`handle_timeout`](Self::handle_timeout). The
    /// resulting actions are returned by [`poll_action`](Self::poll_action).
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
            // The event belongs to an activity that has ended.
            (Event::Serial { .. } | Event::ProbeFailed | Event::Transferred { .. }, _) => {}
        }
    }

    fn take_hint(&mut self, hint: Hint, now: u64) {
        if self.state != State::Idle {
            let before = self.again.unwrap_or(hint);
            let is_forced = before.is_forced || hint.is_forced;
            // A hint without a serial may refer to any version.
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

    /// Whether a NOTIFY contains new information (RFC 1996 §4.3).
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

    /// Whether the version with this serial from this primary was rejected and must not be
    /// transferred again now.
    fn is_rejected(&self, primary: usize, serial: u32, now: u64) -> bool {
        self.rejected_of(primary).is_some_and(|rejected| {
            rejected.serial == serial && rejected.whole_at.is_none_or(|whole_at| now < whole_at)
        })
    }

    /// Restores, after a restart, that the version with this serial from this primary was rejected
    /// as a whole zone.
    pub fn restore_rejected(&mut self, primary: usize, serial: u32) {
        if let Some(health) = self.health.get_mut(primary) {
            health.rejected = Some(Rejected { serial, whole_at: None });
        }
    }

    /// Returns the versions that were rejected as whole zones: the index of each primary, and the
    /// serial.
    pub fn rejected_wholes(&self) -> impl Iterator<Item = (usize, u32)> {
        let rejected = self.health.iter().map(|health| health.rejected).enumerate();
        rejected.filter_map(|(primary, rejected)| {
            rejected.filter(|rejected| rejected.whole_at.is_none()).map(|rejected| (primary, rejected.serial))
        })
    }

    fn forget_rejected(&mut self) {
        self.health.iter_mut().for_each(|health| health.rejected = None);
    }

    /// The newest serial of the rejected versions of all primaries; `None` after another version
    /// was published.
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

    /// Orders the primaries: first the sender of the NOTIFY, then primaries without a recent
    /// failure, then primaries with a recent failure. In each group, the primary that last answered
    /// comes first, and the others follow in configuration order.
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
        // After a rejection, check the serial first, because the zone may be large.
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

    /// Handles a primary with the local version. If a NOTIFY had a newer serial, another primary
    /// may have that version.
    fn take_current(&mut self, expire: Option<u32>, now: u64) {
        // RFC 7314 §4: an earlier, higher value stays valid.
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
                // A published version is served. If no time is left, the zone expires again.
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
            // The settings are being changed, or the zone was removed. Neither the version nor a
            // primary is the cause.
            InboundOutcome::NoLongerWanted => {
                if self.hint.is_whole {
                    // The request for the whole zone stays valid, with the new primaries.
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
                        // Limit the wait, because the clock may be wrong and be corrected.
                        let wait = (u64::from(seconds) * 1000).min(LONGEST_RETRY);
                        Some(retry.max(now + wait))
                    }
                };
                if let Some(health) = self.health.get_mut(primary) {
                    health.rejected = Some(Rejected { serial, whole_at });
                }
                // The incremental transfer may be the cause of the faulty version, so the next
                // transfer requests the whole zone.
                (self.wants_whole, self.has_rejected) = (true, true);
                self.ask_next(now);
            }
            InboundOutcome::PublishFailed { serial } => {
                // This applies to all primaries. A version that was rejected until its serial
                // changes stays so.
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

    /// Ends a round in which a primary has the local version. `left`: milliseconds until expiry.
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

    /// REFRESH, or less if little time is left until expiry: the primary may have been refreshed
    /// meanwhile.
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

    /// The time at which a failure at `now` is retried. The next round begins no earlier (see
    /// `spread`).
    fn retry_at(&self, now: u64) -> u64 {
        let wait = self.retry_wait();
        now + wait - wait / 10
    }

    /// RETRY if there is a local version. Otherwise the wait doubles after each failure.
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

    /// Returns 90 to 100 percent of `wait`. Otherwise, zones that were loaded together would always
    /// be refreshed at the same time.
    fn spread(&mut self, wait: u64) -> u64 {
        // SplitMix64; any uniform distribution is sufficient.
        self.noise = self.noise.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.noise;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = wait / 10;
        wait - (mixed ^ mixed >> 31) % (part + 1)
    }
}
