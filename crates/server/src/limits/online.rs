//! The online share: how much of a worker's time answers may take that are signed or proven online.
//!
//! A denial of a name that nobody asked for before costs a signature or a proof, a hundred times what any other answer costs.
//! Without a bound a flood of such names takes the time of all other answers. The bound is a part of each worker's time. It is
//! measured, not counted, so that it holds for every algorithm, and for a few operations at once, of which each takes more than
//! one of many. It covers all the additional time of such answers: making them, building them again, sending them apart. Signatures
//! from the cache cost nothing and are not limited.
//!
//! No client has a limit of its own until the share is spent. From then on, and until clients want less than the share again,
//! each prefix has an equal share of it (`fair`).
//!
//! Of a worker with time to spare the part is as much as all else leaves, up to a limit. Of one that has none it is a small
//! one, so that answers that are ready go before. What is to spare is judged by all that is not online work, and only while some time
//! is left: otherwise such work would take the time from others once, and keep it.

use super::fair::FairShare;
use super::settings::OnlineSettings;
use nix::time::{ClockId, clock_gettime};
use std::net::IpAddr;

/// What a worker may spend at once beyond its part, nanoseconds: answers that are ready wait for no longer.
const AT_ONCE: i64 = 10_000_000;
/// Operations that a worker without time saves for, as far as [`AT_ONCE`] allows: made at once they share lanes and inversions, and each
/// costs a fraction of one made alone. More would make others wait for long, which looks like a lack of time.
const WORTHWHILE: i64 = 8;
/// How often it is looked how busy the worker is, nanoseconds.
const WINDOW: u64 = 10_000_000;
/// Windows that are looked back at: only what each of them left is to spare. Clients that wait for their answers pause now and then
/// without having less to ask.
const WINDOWS: usize = 8;
/// Percent of its time that a worker is to keep free: with none left, those who wait for their answers would ask less, which
/// looks like time to spare.
const KEPT_FREE: i64 = 10;
/// Guess at one operation before any was measured, nanoseconds.
const FIRST_GUESS: i64 = 50_000;

/// The fraction of the share (1 in this many) that is kept back while it is divided among prefixes, until half of [`AT_ONCE`] is saved: a prefix
/// that has not used up its share then finds time, whenever it asks.
const KEPT_BACK: i64 = 4;

/// The part of one worker's time; each thread has its own.
#[derive(Debug)]
pub struct WorkerShare {
    percent: i64,
    busy_percent: i64,
    /// Percent of each of the last windows in which the thread did anything else, or 100 where nothing of it was left; the oldest
    /// stands at `oldest`.
    others: [i64; WINDOWS],
    oldest: usize,
    /// When the last window ended, and the thread's time on a processor then, nanoseconds.
    window: Option<(u64, u64)>,
    /// Nanoseconds that went to online work since.
    spent: i64,
    /// Nanoseconds that may be spent; below zero after a batch that took longer than it should.
    balance: i64,
    /// All was spent, and there is not enough yet for [`WORTHWHILE`] operations.
    is_saving: bool,
    /// All was spent, and answers were refused in the last [`WINDOWS`] windows: each prefix has an equal share.
    is_divided: bool,
    /// Whether an answer was refused in this window, and windows since the last in which one was.
    has_refused: bool,
    calm: usize,
    pub(super) fair: FairShare,
    /// Nanoseconds of `balance` that operations on the list are expected to take.
    reserved: i64,
    /// Operations on the list that were charged.
    charged: usize,
    /// Nanoseconds of one operation, as measured.
    each: i64,
    last: Option<u64>,
}

impl WorkerShare {
    /// The part of a worker that has spent nothing. `key` makes the places of prefixes in its table unpredictable.
    #[must_use]
    pub fn new(settings: &OnlineSettings, key: [u8; 16]) -> Self {
        Self {
            percent: settings.share.into(),
            busy_percent: settings.busy_share.into(),
            others: [0; WINDOWS],
            oldest: 0,
            window: None,
            spent: 0,
            balance: AT_ONCE,
            is_saving: false,
            is_divided: false,
            has_refused: false,
            calm: 0,
            fair: FairShare::new(key),
            reserved: 0,
            charged: 0,
            each: FIRST_GUESS,
            last: None,
        }
    }

    /// Begins a batch at `now_ns`, nanoseconds from any start. `is_behind`: more messages wait than a batch has. `busy` returns
    /// the processor time of the thread, nanoseconds; it is called once for each window.
    #[inline]
    pub fn begin(&mut self, now_ns: u64, is_behind: bool, busy: impl FnOnce() -> Option<u64>) {
        let busy_ns = if self.is_window_over(now_ns) { busy() } else { None };
        self.begin_at(now_ns, is_behind, busy_ns);
    }

    pub(super) const fn is_window_over(&self, now_ns: u64) -> bool {
        match self.window {
            None => true,
            Some((then, _)) => now_ns.saturating_sub(then) >= WINDOW,
        }
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
        let percent = if is_behind { self.busy_percent } else { self.percent_at_present() };
        let credit = elapsed * percent / 100;
        self.balance = (self.balance + credit).min(AT_ONCE);
        let enough = if percent > self.busy_percent { 1 } else { self.each.saturating_mul(WORTHWHILE) };
        let enough = enough.min(AT_ONCE / 2);
        self.is_saving &= self.balance < enough;
        let kept_back = if self.balance < AT_ONCE / 2 { credit / KEPT_BACK } else { 0 };
        self.fair.divide(now_ns, (credit - kept_back).unsigned_abs(), enough.unsigned_abs());
        self.last = Some(now_ns);
    }

    /// What all else leaves of the thread's time, within the two limits.
    fn percent_at_present(&self) -> i64 {
        let others = self.others.iter().copied().fold(0, i64::max);
        (100 - KEPT_FREE - others).max(self.busy_percent).min(self.percent)
    }

    /// Ends a window.
    fn look(&mut self, now_ns: u64, busy_ns: u64) {
        let spent = u64::try_from(std::mem::take(&mut self.spent)).unwrap_or(0);
        self.calm = if std::mem::take(&mut self.has_refused) { 0 } else { self.calm + 1 };
        self.is_divided &= self.calm < WINDOWS;
        if let Some((then, busy_then)) = self.window.replace((now_ns, busy_ns)) {
            let elapsed = now_ns.saturating_sub(then).max(1);
            let busy = busy_ns.saturating_sub(busy_then);
            let percent =
                |ns: u64| i64::try_from(ns.min(elapsed).saturating_mul(100) / elapsed).unwrap_or(100);
            // With no time left nobody knows how much others would have taken.
            let is_full = 100 - percent(busy) < KEPT_FREE / 2;
            self.others[self.oldest] = if is_full { 100 } else { percent(busy.saturating_sub(spent)) };
            self.oldest = (self.oldest + 1) % WINDOWS;
        }
    }

    /// Whether `operations` may be made for the client in this batch. An answer that needs more than there is may be made: the
    /// next ones wait then.
    pub(super) fn admit(&mut self, client: IpAddr, is_proven: bool, operations: usize) -> bool {
        if self.is_saving {
            self.has_refused = true;
            return false;
        }
        let cost = self.each.saturating_mul(i64::try_from(operations).unwrap_or(i64::MAX)).min(1_000_000_000);
        let has_share = self.fair.take(client, is_proven, cost.unsigned_abs());
        if self.is_divided && !has_share {
            self.has_refused = true;
            return false;
        }
        self.balance -= cost;
        self.note_spent();
        self.reserved += cost;
        self.charged += operations;
        true
    }

    const fn note_spent(&mut self) {
        if self.balance <= 0 {
            self.is_saving = true;
            self.is_divided = true;
        }
    }

    /// What was on the list, all `operations` of it, has been made, and the answers have been sent, in `ns` nanoseconds. Those of
    /// exempt clients are not charged.
    pub fn spent(&mut self, ns: u64, operations: usize) {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX).min(1_000_000_000_000);
        let Some(count) = i64::try_from(operations).ok().filter(|count| *count > 0) else { return };
        let charged = i64::try_from(self.charged).unwrap_or(i64::MAX).min(count);
        // An average over some batches: the first operations of a batch cost more than the others.
        self.each = (self.each * 7 + ns / count) / 8;
        let part = i128::from(ns) * i128::from(charged) / i128::from(count);
        let part = i64::try_from(part).unwrap_or(i64::MAX);
        self.spent = self.spent.saturating_add(part);
        self.settle(part);
    }

    /// Replaces what was reserved by what was spent.
    const fn settle(&mut self, spent: i64) {
        self.balance = (self.balance + self.reserved).saturating_sub(spent);
        (self.reserved, self.charged) = (0, 0);
        self.note_spent();
    }
}

/// What this thread has had of a processor, nanoseconds, where the system tells.
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

    /// How many answers of `wanted` may be made, for as many of these prefixes in turn.
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
        // Percent of its time that goes to other work, and what of 100 ms may be spent.
        for (others, expected) in [(100, 8), (90, 8), (80, 10), (60, 30), (40, 50), (0, 50)] {
            let mut share = share();
            share.begin_at(0, false, Some(0));
            share.begin_at(WINDOW, false, Some(WINDOW * others / 100));
            for (is_behind, expected) in [(false, expected), (true, 8)] {
                (share.balance, share.last) = (-100_000_000, Some(WINDOW));
                share.begin_at(WINDOW + 100_000_000, is_behind, None);
                assert_eq!(share.balance, -100_000_000 + expected * 1_000_000, "{others} %, {is_behind}");
            }
        }
    }

    #[test]
    fn a_window_counts_until_as_many_came_behind_it() {
        let mut share = share();
        share.begin_at(0, false, Some(0));
        share.begin_at(WINDOW, false, Some(WINDOW));
        for window in 2..12 {
            let expected = if window <= WINDOWS as u64 + 1 { 8 } else { 50 };
            assert_eq!(share.percent_at_present(), expected, "{window}");
            share.begin_at(window * WINDOW, false, Some(WINDOW));
        }
    }

    /// A worker for two seconds, in batches: what all else takes of each, in nanoseconds, from when on the next batch is there,
    /// and how many answers to be made come with it, of 50 µs each. Returns percent of the time for the one and the other.
    fn simulate(mut batch: impl FnMut(u64) -> (u64, u64, usize)) -> (u64, u64) {
        let mut share = share();
        let (mut now, mut busy, mut others, mut made) = (0, 0, 0, 0);
        while now < 2_000_000_000 {
            let looked = share.is_window_over(now).then_some(busy);
            share.begin_at(now, false, looked);
            let (work, next, wanted) = batch(now);
            let operations = admit(&mut share, 4, wanted);
            let cost = 50_000 * operations as u64;
            share.spent(cost, operations);
            (others, made, busy) = (others + work, made + cost, busy + work + cost);
            now = next.max(now + work + cost);
        }
        (others * 100 / now, made * 100 / now)
    }

    #[test]
    fn what_clients_without_end_want_made_takes_little_from_others() {
        // Others ask as fast as they are answered: there is no time to spare.
        let (others, made) = simulate(|_| (300_000, 0, 8));
        assert!(others >= 91 && made <= 8, "{others} {made}");
        // And where they pause for 4 ms of each 30.
        let pauses = |now: u64| {
            if now % 30_000_000 < 26_000_000 { 0 } else { now / 30_000_000 * 30_000_000 + 30_000_000 }
        };
        let (others, made) = simulate(|now| (300_000, pauses(now), 8));
        assert!(others >= 76 && made <= 9, "{others} {made}");
    }

    #[test]
    fn a_worker_that_others_leave_time_makes_as_much_as_that() {
        // Percent of each millisecond that others want, and what is made then.
        for (wanted, expected) in [(0, 48..=51), (30, 48..=51), (50, 37..=41), (70, 18..=21), (95, 4..=9)] {
            // What came while the batch before was made is there too.
            let mut taken = 0;
            let (others, made) = simulate(|now| {
                let next = now + 1_000_000;
                let came = next - std::mem::replace(&mut taken, next);
                (came * wanted / 100, next, 20)
            });
            assert!(expected.contains(&made), "{wanted}: {made}");
            // With what the busy share takes, 95 percent are more than there is.
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
            share.spent(cost, operations);
            // The first batches spend the balance that the worker begins with.
            batches.extend((operations > 0 && now > 100_000_000).then_some(operations));
            now += 200_000 + cost;
        }
        let few = batches.iter().min();
        assert!(batches.len() > 100 && few >= Some(&(WORTHWHILE as usize)), "{batches:?}");
    }

    #[test]
    fn time_that_others_want_again_is_theirs() {
        // Nobody else for a second, then as fast as they are answered.
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
        // 50 of 100 percent of both seconds, less an eighth of a second at most until the windows tell.
        assert!(others >= 43, "{others}");
    }
}
