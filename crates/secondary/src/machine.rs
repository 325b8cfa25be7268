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

/// Milliseconds until the next round after the first failed round, while there is no local version
/// and so no RETRY field.
const FIRST_RETRY_MS: u64 = 5_000;
/// Maximum milliseconds between rounds while there is no local version. Also the maximum time for
/// which a failing primary is queried after the others.
const RETRY_MAX_MS: u64 = 3_600_000;
/// Minimum milliseconds between rounds that a NOTIFY causes, if it has no serial, or if the last
/// NOTIFY with a serial was false (no primary had the version that it named). Without this limit, a
/// permitted sender of NOTIFY could cause an unlimited number of queries.
const NOTIFY_INTERVAL_MS: u64 = 200;

/// The current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Probing { primary: usize },
    Transferring { primary: usize, is_ixfr: bool },
}

/// The state of a primary.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    /// Number of failures of this primary since its last success.
    failures: u32,
    /// Until this time, the primary is queried after primaries without a recent failure.
    queried_last_until: u64,
    /// The last rejected version of this primary. Another primary may have a valid version with the
    /// same serial.
    rejected: Option<Rejected>,
}

/// A NOTIFY or a request of an operator, which may cause a round.
#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    /// The serial in the NOTIFY.
    serial: Option<u32>,
    /// The index of the primary that sent the NOTIFY.
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
    /// Time from which the whole zone may be transferred again. Set if the version came from an
    /// incremental transfer, which may be the cause, or if the rejection depends on the clock.
    /// `None`: the version was rejected as a whole zone, until its serial changes.
    whole_at: Option<u64>,
}

/// The state machine of one zone. Times are in milliseconds since 1970, from a monotonic clock.
#[derive(Debug)]
pub struct Machine {
    timing: Timing,
    /// Whether to request IXFR if there is a local version.
    uses_ixfr: bool,
    /// The state of each primary.
    health: Vec<Health>,
    /// The SOA record of the local version.
    local_soa: Option<LocalSoa>,
    refreshed: Option<LastRefresh>,
    is_expired: bool,
    state: State,
    /// The primaries that are not queried yet in this round, in the order of the queries.
    remaining: VecDeque<usize>,
    /// The cause of this round.
    hint: Hint,
    /// Milliseconds until expiry: the maximum of the values that the primaries with the local
    /// version have reported in this round. `None`: no primary has confirmed the local version.
    confirmed_left: Option<u64>,
    /// The combination of the hints that arrived during this round.
    pending_hint: Option<Hint>,
    /// Time of the next round.
    next_round_at: Option<u64>,
    /// Start of the last round.
    round_start: u64,
    /// Until this time, no NOTIFY begins a round, because the last NOTIFY with a serial was false.
    notify_ignored_until: u64,
    /// Whether a version was rejected in this round. If so, the NOTIFY that began the round named a
    /// version that a primary has.
    has_rejected: bool,
    /// Number of failed rounds since the last successful one.
    failed_rounds: u32,
    /// Whether the next transfer requests the whole zone, because a version was rejected and an
    /// incremental transfer may be the cause.
    wants_whole: bool,
    /// The index of the primary that last answered.
    preferred: usize,
    /// State of the generator in [`apply_jitter`](Self::apply_jitter).
    jitter_state: u64,
    actions: VecDeque<Action>,
}

impl Machine {
    /// Returns the machine of a zone. `local_soa` describes the local version, and `refreshed` the
    /// last refresh of this version; `uses_ixfr`: whether to request IXFR if there is a local
    /// version; `primaries`: number of primaries (at least one); `seed`: any number that differs
    /// between zones, so that their rounds are distributed over time.
    #[must_use]
    pub fn new(
        timing: Timing,
        uses_ixfr: bool,
        primaries: usize,
        local_soa: Option<LocalSoa>,
        refreshed: Option<LastRefresh>,
        seed: u64,
        now: u64,
    ) -> Self {
        let mut machine = Self {
            timing,
            uses_ixfr,
            health: vec![Health::default(); primaries.max(1)],
            local_soa,
            // A time in the future was stored while the clock was wrong.
            refreshed: local_soa.map(|_| {
                let LastRefresh { at, left } = refreshed.unwrap_or(LastRefresh { at: now, left: None });
                LastRefresh { at: at.min(now), left }
            }),
            is_expired: false,
            state: State::Idle,
            remaining: VecDeque::new(),
            hint: Hint::default(),
            confirmed_left: None,
            pending_hint: None,
            next_round_at: Some(now),
            round_start: 0,
            notify_ignored_until: 0,
            has_rejected: false,
            failed_rounds: 0,
            wants_whole: false,
            preferred: 0,
            jitter_state: seed,
            actions: VecDeque::new(),
        };
        if let (Some(local_soa), Some(LastRefresh { at, left })) = (local_soa, refreshed) {
            let wait = machine.refresh_wait(local_soa, left);
            machine.next_round_at = Some((at.min(now) + machine.apply_jitter(wait)).max(now));
        }
        machine
    }

    /// Returns the next action. The caller repeats the call until it returns `None`.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the time at which the caller must call [`Machine::handle_timeout`] next; `None` if
    /// only an event can cause an action.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let round = self.next_round_at.filter(|_| self.state == State::Idle);
        let expiry = self.expires_at().filter(|_| !self.is_expired);
        round.into_iter().chain(expiry).min()
    }

    /// The time at which the zone expires or expired; `None` if it has no local version.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        Some(self.refreshed?.expires_at(self.expire_limit()?))
    }

    /// The time in the middle between the last success and the expiry; `None` if the zone has
    /// expired, or has no local version.
    #[must_use]
    pub fn half_expired_at(&self) -> Option<u64> {
        let (refreshed, expires) = (self.refreshed?.at, self.expires_at()?);
        (!self.is_expired).then(|| refreshed + expires.saturating_sub(refreshed) / 2)
    }

    /// The time of the next round; `None` during a round.
    #[must_use]
    pub fn next_round(&self) -> Option<u64> {
        self.next_round_at.filter(|_| self.state == State::Idle)
    }

    /// The last time at which a primary confirmed the local version.
    #[must_use]
    pub const fn refreshed(&self) -> Option<LastRefresh> {
        self.refreshed
    }

    /// Milliseconds from a success to the expiry, according to the SOA record and the settings.
    fn expire_limit(&self) -> Option<u64> {
        self.local_soa.map(|local_soa| self.timing.expire.milliseconds(local_soa.expire))
    }

    /// Returns the milliseconds until expiry if a primary with the local version reports `expire`
    /// seconds, or nothing (`None`).
    fn time_until_expiry(&self, expire: Option<u32>) -> u64 {
        let (Some(local_soa), Some(limit)) = (self.local_soa, self.expire_limit()) else { return 0 };
        match expire {
            // The configured bounds apply to SOA records. They do not extend the reported time.
            Some(seconds) if seconds < local_soa.expire => limit.min(u64::from(seconds) * 1000),
            // RFC 7314 §4: a value is used only if it is less than the time in the SOA record.
            _ => limit,
        }
    }

    /// The SOA record of the local version.
    #[must_use]
    pub const fn local_soa(&self) -> Option<LocalSoa> {
        self.local_soa
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
    pub fn reconfigure(&mut self, timing: Timing, uses_ixfr: bool, primaries: usize, now: u64) {
        (self.timing, self.uses_ixfr) = (timing, uses_ixfr);
        self.health = vec![Health::default(); primaries.max(1)];
        self.remaining.retain(|primary| *primary < primaries);
        self.preferred = 0;
        self.handle_event(Event::Refresh, now);
    }

    /// Whether the active transfer may replace the local version by a version with any serial.
    #[must_use]
    pub const fn accepts_any_serial(&self) -> bool {
        self.local_soa.is_none() || self.hint.is_whole
    }

    /// Handles a timeout. The caller calls this at the time of [`Machine::poll_timeout`].
    pub fn handle_timeout(&mut self, now: u64) {
        if !self.is_expired && self.expires_at().is_some_and(|at| at <= now) {
            self.is_expired = true;
            self.actions.push_back(Action::Expire);
        }
        if self.state == State::Idle && self.next_round_at.is_some_and(|at| at <= now) {
            self.begin_round(now);
        }
    }

    /// Handles an event at `now`, in the time unit of [`handle_timeout`](Self::handle_timeout). The
    /// resulting actions are returned by [`poll_action`](Self::poll_action).
    pub fn handle_event(&mut self, event: Event, now: u64) {
        match (event, self.state) {
            (Event::Notified { serial, primary }, _) => {
                self.handle_hint(Hint { serial, primary, ..Hint::default() }, now);
            }
            (Event::Refresh | Event::Retransfer, _) => {
                self.clear_rejected();
                let is_whole = event == Event::Retransfer;
                self.handle_hint(Hint { is_forced: true, is_whole, ..Hint::default() }, now);
            }
            (Event::Reconsider, _) => {
                if self.rejected().is_some() {
                    self.clear_rejected();
                    self.handle_hint(Hint { is_forced: true, ..Hint::default() }, now);
                }
            }
            (Event::Serial { serial, expire }, State::Probing { primary }) => {
                self.handle_serial(primary, serial, expire, now);
            }
            (Event::ProbeFailed, State::Probing { primary }) => {
                self.record_failure(primary, now);
                self.query_next_primary(now);
            }
            (Event::Transferred { outcome, expire }, State::Transferring { primary, is_ixfr }) => {
                self.handle_transfer(primary, is_ixfr, outcome, expire, now);
            }
            // The event belongs to an activity that has ended.
            (Event::Serial { .. } | Event::ProbeFailed | Event::Transferred { .. }, _) => {}
        }
    }

    /// Handles a hint: combines it with other hints during a round. Otherwise, schedules a round if
    /// the hint needs one.
    fn handle_hint(&mut self, hint: Hint, now: u64) {
        if self.state != State::Idle {
            let previous = self.pending_hint.unwrap_or(hint);
            let is_forced = previous.is_forced || hint.is_forced;
            // A hint without a serial may refer to any version.
            let serial = match (previous.serial, hint.serial) {
                (Some(a), Some(b)) => Some(if serial::is_before(a, b) { b } else { a }),
                _ => None,
            };
            let is_whole = previous.is_whole || hint.is_whole;
            self.pending_hint =
                Some(Hint { serial, primary: hint.primary.or(previous.primary), is_forced, is_whole });
        } else if self.needs_round(hint, now) {
            self.hint = hint;
            let at = if hint.is_forced || hint.serial.is_some() {
                if hint.is_forced { now } else { now.max(self.notify_ignored_until) }
            } else {
                now.max(self.round_start + NOTIFY_INTERVAL_MS)
            };
            self.next_round_at = Some(self.next_round_at.map_or(at, |next| next.min(at)));
            self.handle_timeout(now);
        }
    }

    /// Whether a hint needs a round. A NOTIFY needs none if its serial is known or rejected (RFC
    /// 1996 §4.3).
    fn needs_round(&self, hint: Hint, now: u64) -> bool {
        if hint.is_forced || self.is_expired {
            return true;
        }
        let Some(serial) = hint.serial else { return true };
        let is_rejected = match hint.primary {
            Some(primary) => self.is_rejected(primary, serial, now),
            None => (0..self.health.len()).all(|primary| self.is_rejected(primary, serial, now)),
        };
        self.local_soa.is_none_or(|local_soa| serial::is_before(local_soa.serial, serial)) && !is_rejected
    }

    fn rejected_version_of(&self, primary: usize) -> Option<Rejected> {
        self.health.get(primary)?.rejected
    }

    /// Whether the version with this serial from this primary was rejected and must not be
    /// transferred again now.
    fn is_rejected(&self, primary: usize, serial: u32, now: u64) -> bool {
        self.rejected_version_of(primary).is_some_and(|rejected| {
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
    pub fn rejected_whole_zones(&self) -> impl Iterator<Item = (usize, u32)> {
        let rejected = self.health.iter().map(|health| health.rejected).enumerate();
        rejected.filter_map(|(primary, rejected)| {
            rejected.filter(|rejected| rejected.whole_at.is_none()).map(|rejected| (primary, rejected.serial))
        })
    }

    fn clear_rejected(&mut self) {
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
        self.round_start = now;
        self.next_round_at = None;
        (self.confirmed_left, self.has_rejected) = (None, false);
        self.remaining = self.rank_primaries(now);
        self.query_next_primary(now);
    }

    /// Orders the primaries: first the sender of the NOTIFY, then primaries without a recent
    /// failure, then primaries with a recent failure. In each group, the primary that last answered
    /// comes first, and the others follow in configuration order.
    fn rank_primaries(&self, now: u64) -> VecDeque<usize> {
        let mut order: Vec<usize> = (0..self.health.len()).collect();
        let rank = |primary: &usize| {
            let is_notifier = self.hint.primary == Some(*primary);
            let is_avoided = self.health[*primary].queried_last_until > now;
            (!is_notifier, is_avoided, *primary != self.preferred)
        };
        order.sort_by_key(rank);
        order.into()
    }

    /// Queries the next primary of this round, or ends the round if there is none.
    fn query_next_primary(&mut self, now: u64) {
        let Some(primary) = self.remaining.pop_front() else {
            if self.hint.serial.is_some() && !self.has_rejected {
                self.notify_ignored_until = now + NOTIFY_INTERVAL_MS;
            }
            match self.confirmed_left {
                Some(left) => self.end_successful_round(left, now),
                None => self.end_failed_round(now),
            }
            return;
        };
        // After a rejection, check the serial first, because the zone may be large.
        if self.hint.is_whole || (self.local_soa.is_none() && self.rejected_version_of(primary).is_none()) {
            self.transfer(primary, false);
        } else {
            self.state = State::Probing { primary };
            self.actions.push_back(Action::Probe { primary });
        }
    }

    fn transfer(&mut self, primary: usize, is_ixfr: bool) {
        self.state = State::Transferring { primary, is_ixfr };
        self.actions.push_back(Action::Transfer { primary, is_ixfr });
    }

    fn handle_serial(&mut self, primary: usize, serial: u32, expire: Option<u32>, now: u64) {
        self.record_success(primary);
        if self.local_soa.is_some_and(|local_soa| local_soa.serial == serial) {
            return self.handle_up_to_date(expire, now);
        }
        let is_newer = self.local_soa.is_none_or(|local_soa| serial::is_before(local_soa.serial, serial));
        if is_newer && !self.is_rejected(primary, serial, now) {
            self.transfer(primary, self.local_soa.is_some() && self.uses_ixfr && !self.wants_whole);
        } else {
            self.query_next_primary(now);
        }
    }

    /// Handles a primary that has the local version. If a NOTIFY named a newer version, queries the
    /// next primary, which may have that version.
    fn handle_up_to_date(&mut self, expire: Option<u32>, now: u64) {
        // RFC 7314 §4: a previous, higher value stays valid.
        let previous = self.expires_at().map_or(0, |at| at.saturating_sub(now));
        let left = self.time_until_expiry(expire).max(previous).max(self.confirmed_left.unwrap_or(0));
        self.confirmed_left = Some(left);
        let is_newer_known = self
            .hint
            .serial
            .zip(self.local_soa)
            .is_some_and(|(serial, local_soa)| serial::is_before(local_soa.serial, serial));
        if is_newer_known {
            self.query_next_primary(now);
        } else {
            self.end_successful_round(left, now);
        }
    }

    fn handle_transfer(
        &mut self,
        primary: usize,
        is_ixfr: bool,
        outcome: InboundOutcome,
        expire: Option<u32>,
        now: u64,
    ) {
        match outcome {
            InboundOutcome::Published(local_soa) => {
                self.record_success(primary);
                self.local_soa = Some(local_soa);
                self.wants_whole = false;
                self.clear_rejected();
                let left = self.time_until_expiry(expire);
                // A published version is served. If no time is left, the zone expires again.
                self.is_expired &= left > 0;
                self.end_successful_round(left, now);
            }
            InboundOutcome::UpToDate { serial }
                if self.local_soa.is_some_and(|local_soa| local_soa.serial == serial) =>
            {
                self.record_success(primary);
                self.handle_up_to_date(expire, now);
            }
            InboundOutcome::UpToDate { .. } => self.query_next_primary(now),
            InboundOutcome::IxfrFailed if is_ixfr => self.transfer(primary, false),
            InboundOutcome::IxfrFailed | InboundOutcome::Failed => {
                self.record_failure(primary, now);
                self.query_next_primary(now);
            }
            // The settings are being changed, or the zone was removed. Neither the version nor a
            // primary is the cause.
            InboundOutcome::NoLongerWanted => {
                if self.hint.is_whole {
                    // The request for the whole zone stays valid, with the new primaries.
                    let pending = self.pending_hint.get_or_insert_with(Hint::default);
                    (pending.is_forced, pending.is_whole) = (true, true);
                }
                let wait = self.retry_wait();
                self.end_round(now + wait, now);
            }
            InboundOutcome::Rejected { serial, verdict } => {
                let retry = self.retry_at(now);
                let whole_at = match verdict {
                    RejectionPeriod::Final => is_ixfr.then_some(retry),
                    RejectionPeriod::For { seconds } => {
                        // Limit the wait, because the clock may be wrong and be corrected.
                        let wait = (u64::from(seconds) * 1000).min(RETRY_MAX_MS);
                        Some(retry.max(now + wait))
                    }
                };
                if let Some(health) = self.health.get_mut(primary) {
                    health.rejected = Some(Rejected { serial, whole_at });
                }
                // The incremental transfer may be the cause of the faulty version, so the next
                // transfer requests the whole zone.
                (self.wants_whole, self.has_rejected) = (true, true);
                self.query_next_primary(now);
            }
            InboundOutcome::PublishFailed { serial } => {
                // The failure applies to the versions of all primaries. Keep the entry of a version
                // that stays rejected until its serial changes.
                let rejected = Some(Rejected { serial, whole_at: Some(self.retry_at(now)) });
                let is_retryable =
                    |health: &&mut Health| health.rejected.is_none_or(|old| old.whole_at.is_some());
                self.health.iter_mut().filter(is_retryable).for_each(|health| health.rejected = rejected);
                self.end_failed_round(now);
            }
        }
    }

    fn record_success(&mut self, primary: usize) {
        if let Some(health) = self.health.get_mut(primary) {
            *health = Health { rejected: health.rejected, ..Health::default() };
            self.preferred = primary;
        }
    }

    fn record_failure(&mut self, primary: usize, now: u64) {
        let wait = self.retry_wait();
        if let Some(health) = self.health.get_mut(primary) {
            let doubled = wait.saturating_mul(1 << health.failures.min(16));
            health.queried_last_until = now + doubled.min(RETRY_MAX_MS.max(wait));
            health.failures = health.failures.saturating_add(1);
        }
    }

    /// Ends a round in which a primary has the local version. `left`: milliseconds until expiry.
    fn end_successful_round(&mut self, left: u64, now: u64) {
        let left = Some(left).filter(|left| self.expire_limit().is_none_or(|limit| *left < limit));
        self.refreshed = Some(LastRefresh { at: now, left });
        self.failed_rounds = 0;
        if self.is_expired && left != Some(0) {
            self.is_expired = false;
            self.actions.push_back(Action::Restore);
        }
        self.actions.push_back(Action::Store);
        let wait = self.local_soa.map_or(FIRST_RETRY_MS, |local_soa| self.refresh_wait(local_soa, left));
        let wait = self.apply_jitter(wait);
        self.end_round(now + wait, now);
    }

    /// Returns the milliseconds until the next round after a success: REFRESH, or half of the time
    /// until expiry if that is less. By then, the primary may have been refreshed itself.
    fn refresh_wait(&self, local_soa: LocalSoa, left: Option<u64>) -> u64 {
        let refresh = self.timing.refresh.milliseconds(local_soa.refresh);
        let wait_min = u64::from(self.timing.retry.min) * 1000;
        left.map_or(refresh, |left| refresh.min((left / 2).max(wait_min)))
    }

    /// Ends a round in which no primary confirmed the local version or had a new one.
    fn end_failed_round(&mut self, now: u64) {
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        let wait = self.retry_wait();
        let wait = self.apply_jitter(wait);
        self.end_round(now + wait, now);
    }

    /// The time at which a failure at `now` is retried. The next round begins no earlier, because
    /// [`apply_jitter`](Self::apply_jitter) shortens the wait by at most a tenth.
    fn retry_at(&self, now: u64) -> u64 {
        let wait = self.retry_wait();
        now + wait - wait / 10
    }

    /// Returns the milliseconds until the next round after a failure: RETRY if there is a local
    /// version. Otherwise the wait doubles after each failed round.
    fn retry_wait(&self) -> u64 {
        match self.local_soa {
            Some(local_soa) => self.timing.retry.milliseconds(local_soa.retry),
            None => {
                let doublings = self.failed_rounds.saturating_sub(1).min(16);
                (FIRST_RETRY_MS << doublings).min(RETRY_MAX_MS)
            }
        }
    }

    /// Ends the round. The next one begins at `next`, or earlier if a hint has arrived meanwhile.
    fn end_round(&mut self, next: u64, now: u64) {
        self.state = State::Idle;
        self.remaining.clear();
        self.hint = Hint::default();
        self.next_round_at = Some(next);
        if let Some(hint) = self.pending_hint.take() {
            self.handle_hint(hint, now);
        }
    }

    /// Returns `wait` reduced by up to 10 percent, at random. Otherwise, zones that were loaded
    /// together would always be refreshed at the same time.
    fn apply_jitter(&mut self, wait: u64) -> u64 {
        // SplitMix64; any uniform distribution is sufficient.
        self.jitter_state = self.jitter_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.jitter_state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = wait / 10;
        wait - (mixed ^ mixed >> 31) % (part + 1)
    }
}
