//! The budget of answers that are signed or proven when asked.
//!
//! A denial of a name that nobody asked for before costs a signature or a proof, a hundred times what any other answer costs.
//! Without bounds a flood of such names takes the time of all other answers. Two bounds hold: operations a second for each
//! client, and a part of each worker's time for all clients together. The second is measured, not counted, so that it holds
//! for every algorithm; of a worker that has no time left it is a smaller one, so that answers that are ready go before. What
//! the cache has costs nothing and is not limited.

use super::buckets::{Buckets, Meter, Taken};
use super::number_of;
use super::settings::{LimitError, OnlineSettings};
use nix::time::{ClockId, clock_gettime};
use std::net::IpAddr;

/// What a worker may spend at once beyond its part, nanoseconds: answers that are ready wait for no longer.
const AT_ONCE: i64 = 10_000_000;
/// How often it is looked how busy the worker is, nanoseconds.
const WINDOW: u64 = 10_000_000;
/// Guess at one operation before any was measured, nanoseconds.
const FIRST_GUESS: i64 = 50_000;

/// The part of each client.
#[derive(Debug)]
pub struct OnlineBudget {
    buckets: Buckets,
    meter: Option<Meter>,
    proven: Option<Meter>,
    ipv4_prefix: u8,
    ipv6_prefix: u8,
}

impl OnlineBudget {
    pub(super) fn new(settings: &OnlineSettings) -> Result<Self, LimitError> {
        Ok(Self {
            buckets: Buckets::new(settings.table_octets)?,
            meter: Meter::per_second(settings.operations),
            proven: Meter::per_second(settings.operations.saturating_mul(settings.proven_factor)),
            ipv4_prefix: settings.ipv4_prefix,
            ipv6_prefix: settings.ipv6_prefix,
        })
    }

    /// Takes `operations` of a client's part, or all of it where an answer needs more.
    pub(super) fn admit(&self, now_ms: u64, client: IpAddr, is_proven: bool, operations: usize) -> bool {
        let Some(meter) = (if is_proven { self.proven } else { self.meter }) else { return true };
        let client = number_of(client, self.ipv4_prefix, self.ipv6_prefix);
        let tokens = u32::try_from(operations).unwrap_or(u32::MAX);
        // A forged address takes nothing of what is kept for the proven one.
        let key = [client, u64::from(is_proven)];
        self.buckets.take(key, now_ms.wrapping_mul(1000), meter, tokens, 0) == Taken::Yes
    }
}

/// The part of one worker's time; each thread has its own.
#[derive(Clone, Debug)]
pub struct WorkerShare {
    percent: i64,
    busy_percent: i64,
    /// Percent of the last window in which the thread had nothing to do.
    idle_percent: i64,
    /// When that window ended, and the thread's time on a processor then, nanoseconds.
    window: Option<(u64, u64)>,
    /// Nanoseconds that may be spent; below zero after a batch that took longer than it should.
    balance: i64,
    /// Nanoseconds of `balance` that operations on the list are expected to take.
    reserved: i64,
    /// Operations on the list that were charged.
    charged: usize,
    /// Nanoseconds of one operation, as measured.
    each: i64,
    last: Option<u64>,
}

impl WorkerShare {
    /// The part of a worker that has spent nothing.
    #[must_use]
    pub fn new(settings: &OnlineSettings) -> Self {
        Self {
            percent: settings.share.into(),
            busy_percent: settings.busy_share.into(),
            idle_percent: 100,
            window: None,
            balance: AT_ONCE,
            reserved: 0,
            charged: 0,
            each: FIRST_GUESS,
            last: None,
        }
    }

    /// Begins a batch at `now_ns`, nanoseconds from any start. `is_behind`: more messages wait than a batch has. To be called by
    /// the thread whose time this is.
    pub fn begin(&mut self, now_ns: u64, is_behind: bool) {
        let is_due = self.window.is_none_or(|(then, _)| now_ns.saturating_sub(then) >= WINDOW);
        let busy_ns = if is_due { thread_time() } else { None };
        self.begin_at(now_ns, is_behind, busy_ns);
    }

    /// Begins a batch; `busy_ns`: what the thread has had of a processor, where it was looked at.
    pub(super) fn begin_at(&mut self, now_ns: u64, is_behind: bool, busy_ns: Option<u64>) {
        self.settle(0);
        if let Some(busy_ns) = busy_ns {
            self.look(now_ns, busy_ns);
        }
        let elapsed = self.last.map_or(0, |last| now_ns.saturating_sub(last));
        // The balance is full long before: so nothing overflows.
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX).min(1_000_000_000);
        let spare = if is_behind { 0 } else { self.idle_percent };
        let percent = self.percent.min(self.busy_percent + spare);
        self.balance = (self.balance + elapsed * percent / 100).min(AT_ONCE);
        self.last = Some(now_ns);
    }

    /// Ends a window.
    fn look(&mut self, now_ns: u64, busy_ns: u64) {
        if let Some((then, busy_then)) = self.window.replace((now_ns, busy_ns)) {
            let elapsed = now_ns.saturating_sub(then).max(1);
            let busy = busy_ns.saturating_sub(busy_then).min(elapsed);
            self.idle_percent = 100 - i64::try_from(busy.saturating_mul(100) / elapsed).unwrap_or(100);
        }
    }

    /// Whether another answer may be made in this batch. One that needs more than there is may: the next ones wait then.
    pub(super) const fn has_time(&self) -> bool {
        self.balance > 0
    }

    pub(super) fn reserve(&mut self, operations: usize) {
        let cost = self.each.saturating_mul(i64::try_from(operations).unwrap_or(i64::MAX)).min(1_000_000_000);
        self.balance -= cost;
        self.reserved += cost;
        self.charged += operations;
    }

    /// What was on the list has been made, all `operations` of it, in `ns` nanoseconds. Those of exempt clients are not charged.
    pub fn spent(&mut self, ns: u64, operations: usize) {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX).min(1_000_000_000_000);
        let Some(count) = i64::try_from(operations).ok().filter(|count| *count > 0) else { return };
        let charged = i64::try_from(self.charged).unwrap_or(i64::MAX).min(count);
        // An average over some batches: the first operations of a batch cost more than the others.
        self.each = (self.each * 7 + ns / count) / 8;
        let part = i128::from(ns) * i128::from(charged) / i128::from(count);
        self.settle(i64::try_from(part).unwrap_or(i64::MAX));
    }

    /// Replaces what was reserved by what was spent.
    const fn settle(&mut self, spent: i64) {
        self.balance = (self.balance + self.reserved).saturating_sub(spent);
        (self.reserved, self.charged) = (0, 0);
    }
}

/// What this thread has had of a processor, nanoseconds, where the system tells.
fn thread_time() -> Option<u64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    let (seconds, ns) = (u64::try_from(time.tv_sec()).ok()?, u64::try_from(time.tv_nsec()).ok()?);
    Some(seconds * 1_000_000_000 + ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_thread_goes_on_while_it_works() {
        let before = thread_time().expect("a time");
        let mut last = before;
        while last < before + 1_000_000 {
            let now = thread_time().expect("a time");
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_worker_with_time_to_spare_may_make_more() {
        let settings = OnlineSettings::default();
        let mut share = WorkerShare::new(&settings);
        // Percent of time on the processor, and what of 100 ms may be spent.
        for (busy, expected) in [(100, 15), (90, 25), (70, 45), (60, 50), (0, 50)] {
            share.window = None;
            share.begin_at(0, false, Some(0));
            share.begin_at(WINDOW, false, Some(WINDOW * busy / 100));
            (share.balance, share.last) = (-100_000_000, Some(WINDOW));
            share.begin_at(WINDOW + 100_000_000, false, None);
            assert_eq!(share.balance, -100_000_000 + expected * 1_000_000, "{busy} %");
            (share.balance, share.last) = (-100_000_000, Some(WINDOW));
            share.begin_at(WINDOW + 100_000_000, true, None);
            assert_eq!(share.balance, -85_000_000);
        }
    }
}
