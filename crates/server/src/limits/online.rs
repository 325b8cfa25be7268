//! The online share: the part of a worker's time for answers that are signed or proven online.
//!
//! A denial of a new name costs a signature or a proof, which is a hundred times the cost of any
//! other answer. Without a limit, a flood of such names would take the time of all other answers.
//! The limit is a percentage of each worker's time. The worker measures time instead of counting
//! operations, so the limit holds for every algorithm and batch size: a single operation takes
//! longer than an operation in a large batch. The limit covers all additional time of such answers:
//! generating the signatures, building the answers again, and sending them separately. Signatures
//! from the cache cost nothing and are not limited.
//!
//! While the share is not spent, no single client is limited. From the moment it is spent, and
//! until clients want less than the share again, each prefix gets an equal part of it (`fair`).
//!
//! On a worker with spare time, online work may use the time that other work leaves, up to an upper
//! limit. On a worker without spare time, it may use only a small percentage, because answers from
//! ready data have precedence. The spare time is computed from all work except online work, and
//! only while some time is left. Otherwise online work could displace other work once and then keep
//! the time.

use super::fair::FairShare;
use super::settings::OnlineSettings;
use nix::time::{ClockId, clock_gettime};
use std::net::IpAddr;

/// Maximum burst of online work beyond its percentage, in nanoseconds. Answers from ready data wait
/// no longer than this.
const BURST_NS: i64 = 10_000_000;
/// Number of operations for which a worker without spare time saves its balance, as far as
/// [`BURST_NS`] allows.
/// Operations of one batch share vector lanes and inversions, so each costs a fraction of a single
/// operation. A higher number would delay other answers, which then looks like a lack of time.
const SAVED_OPERATIONS: i64 = 8;
/// Interval in which the load of the worker is measured, in nanoseconds.
const WINDOW_NS: u64 = 10_000_000;
/// Number of past windows that count. The spare time is the minimum over these windows, because
/// clients that wait for their answers pause now and then and still have queries to send.
const WINDOW_COUNT: usize = 8;
/// Percent of its time that a worker keeps free. With no time left, clients that wait for their
/// answers would send fewer queries, which looks like spare time.
const FREE_PERCENT: i64 = 10;
/// Estimated time of one operation before the first measurement, in nanoseconds.
const INITIAL_OPERATION_NS: i64 = 50_000;

/// While the balance is below half of [`BURST_NS`], a quarter of the credit is not divided among
/// the prefixes. So a prefix that has not used up its part finds time whenever it sends a query.
const HELD_BACK_DIVISOR: i64 = 4;

/// The online share of one worker. Each thread has its own.
#[derive(Debug)]
pub struct WorkerShare {
    /// Maximum percentage of the thread's time for online work.
    percent: i64,
    /// Percentage of the thread's time for online work without spare time.
    busy_percent: i64,
    /// Percentage of each of the last windows that the thread spent on other work, or 100 if no
    /// time was left in the window. The oldest window is at index `oldest`.
    other_percent: [i64; WINDOW_COUNT],
    oldest: usize,
    /// End of the last window, and the processor time of the thread at that moment, both in
    /// nanoseconds. `None`: no window has ended yet.
    last_window_end: Option<(u64, u64)>,
    /// Nanoseconds of online work in the current window.
    spent: i64,
    /// Nanoseconds that online work may use. Below zero after a batch that took longer than
    /// expected.
    balance_ns: i64,
    /// Whether no online work is admitted: the balance was spent, and is not enough yet for
    /// [`SAVED_OPERATIONS`] operations.
    is_saving: bool,
    /// Whether each prefix gets an equal part: the balance was spent, and answers were refused in
    /// the last [`WINDOW_COUNT`] windows.
    is_divided: bool,
    /// Whether an answer was refused in this window.
    has_refused: bool,
    /// Number of windows since the last refusal.
    windows_since_refusal: usize,
    /// Divides the share among the prefixes.
    pub(super) fair: FairShare,
    /// Nanoseconds of `balance_ns` reserved for the operations of this batch.
    reserved_ns: i64,
    /// Number of operations of this batch that are charged to the balance.
    charged_operations: usize,
    /// Moving average of the nanoseconds per operation.
    operation_ns: i64,
    /// Time of the last credit to the balance, in nanoseconds.
    last_credit: Option<u64>,
}

impl WorkerShare {
    /// Returns the share of a worker that has done no online work yet. `key` makes the positions of
    /// prefixes in its table unpredictable.
    #[must_use]
    pub fn new(settings: &OnlineSettings, key: [u8; 16]) -> Self {
        Self {
            percent: settings.share.into(),
            busy_percent: settings.busy_share.into(),
            other_percent: [0; WINDOW_COUNT],
            oldest: 0,
            last_window_end: None,
            spent: 0,
            balance_ns: BURST_NS,
            is_saving: false,
            is_divided: false,
            has_refused: false,
            windows_since_refusal: 0,
            fair: FairShare::new(key),
            reserved_ns: 0,
            charged_operations: 0,
            operation_ns: INITIAL_OPERATION_NS,
            last_credit: None,
        }
    }

    /// Begins a batch at `now_ns`, in nanoseconds from an arbitrary start. `is_behind`: more
    /// messages are waiting than a batch holds. `processor_time` returns the processor time of the
    /// thread in nanoseconds; it is called once for each window.
    #[inline]
    pub fn begin(&mut self, now_ns: u64, is_behind: bool, processor_time: impl FnOnce() -> Option<u64>) {
        let busy_ns = if self.is_window_over(now_ns) { processor_time() } else { None };
        self.begin_at(now_ns, is_behind, busy_ns);
    }

    /// Whether the current window ends at `now_ns`.
    pub(super) const fn is_window_over(&self, now_ns: u64) -> bool {
        match self.last_window_end {
            None => true,
            Some((window_start, _)) => now_ns.saturating_sub(window_start) >= WINDOW_NS,
        }
    }

    /// Begins a batch. `busy_ns` is the processor time of the thread, if it was measured.
    pub(super) fn begin_at(&mut self, now_ns: u64, is_behind: bool, busy_ns: Option<u64>) {
        self.replace_reserved(0);
        if let Some(busy_ns) = busy_ns {
            self.end_window(now_ns, busy_ns);
        }
        let elapsed = self.last_credit.map_or(0, |last| now_ns.saturating_sub(last));
        // The balance is full after much less than a second, so this limit only prevents an
        // overflow.
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX).min(1_000_000_000);
        let percent = if is_behind { self.busy_percent } else { self.current_percent() };
        let credit = elapsed * percent / 100;
        self.balance_ns = (self.balance_ns + credit).min(BURST_NS);
        let required =
            if percent > self.busy_percent { 1 } else { self.operation_ns.saturating_mul(SAVED_OPERATIONS) };
        let required = required.min(BURST_NS / 2);
        self.is_saving &= self.balance_ns < required;
        let held_back = if self.balance_ns < BURST_NS / 2 { credit / HELD_BACK_DIVISOR } else { 0 };
        self.fair.divide(now_ns, (credit - held_back).unsigned_abs(), required.unsigned_abs());
        self.last_credit = Some(now_ns);
    }

    /// Returns the percentage of the thread's time that other work leaves, within the two
    /// configured limits.
    fn current_percent(&self) -> i64 {
        let busiest_window = self.other_percent.iter().copied().fold(0, i64::max);
        (100 - FREE_PERCENT - busiest_window).max(self.busy_percent).min(self.percent)
    }

    /// Ends a window, and records the percentage of other work in it.
    fn end_window(&mut self, now_ns: u64, busy_ns: u64) {
        let spent = u64::try_from(std::mem::take(&mut self.spent)).unwrap_or(0);
        self.windows_since_refusal =
            if std::mem::take(&mut self.has_refused) { 0 } else { self.windows_since_refusal + 1 };
        self.is_divided &= self.windows_since_refusal < WINDOW_COUNT;
        if let Some((window_start, busy_then)) = self.last_window_end.replace((now_ns, busy_ns)) {
            let elapsed = now_ns.saturating_sub(window_start).max(1);
            let busy = busy_ns.saturating_sub(busy_then);
            let percent =
                |ns: u64| i64::try_from(ns.min(elapsed).saturating_mul(100) / elapsed).unwrap_or(100);
            // If no time is left, the demand of other work is unknown.
            let is_full = 100 - percent(busy) < FREE_PERCENT / 2;
            self.other_percent[self.oldest] = if is_full { 100 } else { percent(busy.saturating_sub(spent)) };
            self.oldest = (self.oldest + 1) % WINDOW_COUNT;
        }
    }

    /// Whether this batch may contain `operations` for the client. If so, reserves time for them.
    /// An answer that needs more than the balance is admitted; the balance is then below zero, and
    /// the following answers are refused until it is paid back.
    pub(super) fn admit(&mut self, client: IpAddr, is_proven: bool, operations: usize) -> bool {
        if self.is_saving {
            self.has_refused = true;
            return false;
        }
        let cost = self
            .operation_ns
            .saturating_mul(i64::try_from(operations).unwrap_or(i64::MAX))
            .min(1_000_000_000);
        let has_share = self.fair.take(client, is_proven, cost.unsigned_abs());
        if self.is_divided && !has_share {
            self.has_refused = true;
            return false;
        }
        self.balance_ns -= cost;
        self.check_balance();
        self.reserved_ns += cost;
        self.charged_operations += operations;
        true
    }

    /// Begins saving and dividing if the balance is spent.
    const fn check_balance(&mut self) {
        if self.balance_ns <= 0 {
            self.is_saving = true;
            self.is_divided = true;
        }
    }

    /// Records that all `operations` of the batch took `ns` nanoseconds, including sending the
    /// answers. The worker calls it once for each batch with operations. The operations of exempt
    /// clients are not charged.
    pub fn record_work(&mut self, ns: u64, operations: usize) {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX).min(1_000_000_000_000);
        let Some(count) = i64::try_from(operations).ok().filter(|count| *count > 0) else { return };
        let charged_operations = i64::try_from(self.charged_operations).unwrap_or(i64::MAX).min(count);
        // An average over several batches, because the first operations of a batch cost more than
        // the others.
        self.operation_ns = (self.operation_ns * 7 + ns / count) / 8;
        let part = i128::from(ns) * i128::from(charged_operations) / i128::from(count);
        let part = i64::try_from(part).unwrap_or(i64::MAX);
        self.spent = self.spent.saturating_add(part);
        self.replace_reserved(part);
    }

    /// Replaces the reserved time by `spent`, the nanoseconds that were used.
    const fn replace_reserved(&mut self, spent: i64) {
        self.balance_ns = (self.balance_ns + self.reserved_ns).saturating_sub(spent);
        (self.reserved_ns, self.charged_operations) = (0, 0);
        self.check_balance();
    }
}

/// Returns the processor time of this thread in nanoseconds, or `None` if the system does not
/// report it.
pub fn thread_time() -> Option<u64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    let (seconds, ns) = (u64::try_from(time.tv_sec()).ok()?, u64::try_from(time.tv_nsec()).ok()?);
    Some(seconds * 1_000_000_000 + ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share() -> WorkerShare {
        WorkerShare::new(&OnlineSettings::default(), [7; 16])
    }

    /// Returns how many of `wanted` answers are admitted. The clients are in `prefixes` prefixes,
    /// in turn.
    fn admit(share: &mut WorkerShare, prefixes: u8, wanted: usize) -> usize {
        let clients = (0..prefixes).cycle().map(|number| IpAddr::from([192, 0, number, 1]));
        clients.take(wanted).filter(|client| share.admit(*client, false, 1)).count()
    }

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
        // Percentage of other work, and the percentage of 100 ms that online work may use.
        for (others, expected) in [(100, 8), (90, 8), (80, 10), (60, 30), (40, 50), (0, 50)] {
            let mut share = share();
            share.begin_at(0, false, Some(0));
            share.begin_at(WINDOW_NS, false, Some(WINDOW_NS * others / 100));
            for (is_behind, expected) in [(false, expected), (true, 8)] {
                (share.balance_ns, share.last_credit) = (-100_000_000, Some(WINDOW_NS));
                share.begin_at(WINDOW_NS + 100_000_000, is_behind, None);
                assert_eq!(share.balance_ns, -100_000_000 + expected * 1_000_000, "{others} %, {is_behind}");
            }
        }
    }

    #[test]
    fn a_window_counts_until_as_many_came_behind_it() {
        let mut share = share();
        share.begin_at(0, false, Some(0));
        share.begin_at(WINDOW_NS, false, Some(WINDOW_NS));
        for window in 2..12 {
            let expected = if window <= WINDOW_COUNT as u64 + 1 { 8 } else { 50 };
            assert_eq!(share.current_percent(), expected, "{window}");
            share.begin_at(window * WINDOW_NS, false, Some(WINDOW_NS));
        }
    }

    /// Simulates a worker for two seconds, in batches. `batch` returns the nanoseconds of other
    /// work in the batch, the time at which the next batch is available, and the number of answers
    /// to generate, at 50 µs each. Returns the percentages of time for other work and for online
    /// work.
    fn simulate(mut batch: impl FnMut(u64) -> (u64, u64, usize)) -> (u64, u64) {
        let mut share = share();
        let (mut now, mut busy, mut others, mut made) = (0, 0, 0, 0);
        while now < 2_000_000_000 {
            let looked = share.is_window_over(now).then_some(busy);
            share.begin_at(now, false, looked);
            let (work, next, wanted) = batch(now);
            let operations = admit(&mut share, 4, wanted);
            let cost = 50_000 * operations as u64;
            share.record_work(cost, operations);
            (others, made, busy) = (others + work, made + cost, busy + work + cost);
            now = next.max(now + work + cost);
        }
        (others * 100 / now, made * 100 / now)
    }

    #[test]
    fn what_clients_without_end_want_made_takes_little_from_others() {
        // Other clients send a query as soon as they have an answer: there is no spare time.
        let (others, made) = simulate(|_| (300_000, 0, 8));
        assert!(others >= 91 && made <= 8, "{others} {made}");
        // The same with a pause of 4 ms in every 30 ms.
        let pauses = |now: u64| {
            if now % 30_000_000 < 26_000_000 { 0 } else { now / 30_000_000 * 30_000_000 + 30_000_000 }
        };
        let (others, made) = simulate(|now| (300_000, pauses(now), 8));
        assert!(others >= 76 && made <= 9, "{others} {made}");
    }

    #[test]
    fn a_worker_that_others_leave_time_makes_as_much_as_that() {
        // Percentage of each millisecond that other work wants, and the expected percentage of
        // online work.
        for (wanted, expected) in [(0, 48..=51), (30, 48..=51), (50, 37..=41), (70, 18..=21), (95, 4..=9)] {
            // Includes the queries that arrived during the online work of the previous batch.
            let mut taken = 0;
            let (others, made) = simulate(|now| {
                let next = now + 1_000_000;
                let came = next - std::mem::replace(&mut taken, next);
                (came * wanted / 100, next, 20)
            });
            assert!(expected.contains(&made), "{wanted}: {made}");
            // Together with the busy share, 95 percent are more than the available time.
            assert!(others + 2 >= wanted.min(92), "{wanted}: {others}");
        }
    }

    #[test]
    fn a_worker_without_time_makes_many_at_once() {
        let mut batches = Vec::new();
        let mut share = share();
        let mut now = 0;
        while now < 1_000_000_000 {
            share.begin_at(now, true, None);
            let operations = admit(&mut share, 4, 64);
            let cost = if operations > 0 { 40_000 + 10_000 * operations as u64 } else { 0 };
            share.record_work(cost, operations);
            // The first batches spend the initial balance.
            batches.extend((operations > 0 && now > 100_000_000).then_some(operations));
            now += 200_000 + cost;
        }
        let few = batches.iter().min();
        assert!(batches.len() > 100 && few >= Some(&(SAVED_OPERATIONS as usize)), "{batches:?}");
    }

    #[test]
    fn time_that_others_want_again_is_theirs() {
        // No other work for one second, then other work without a pause.
        let (mut made_late, mut begun) = (0, 0);
        let (others, _) = simulate(|now| {
            if now < 1_000_000_000 {
                return (0, now + 1_000_000, 20);
            }
            begun += 1;
            made_late = now;
            (300_000, 0, 8)
        });
        assert!(begun > 0 && made_late > 1_900_000_000);
        // 50 of 100 percent over both seconds, less at most an eighth of a second until the windows
        // show the load.
        assert!(others >= 43, "{others}");
    }
}
