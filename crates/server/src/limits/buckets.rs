//! Token buckets for any number of keys in bounded memory. All threads share them without a lock.
//!
//! A bucket is one 64-bit word: a part of the hash of its key (the tag), a count of refusals, and
//! the time at which the bucket is full again. This time is the "theoretical arrival time" of the
//! generic cell rate algorithm (ITU-T I.371). A full bucket needs no memory, so another key can use
//! its word. So the table serves all keys as long as it has room for the buckets that are not full.
//! If all eight buckets of a line are in use, another key continues with the fullest of them. So
//! the tokens taken from one line stay bounded. A key is refused wrongly only if all eight buckets
//! are empty.
//!
//! The hash has a random key, so a client cannot choose addresses or names that share a line with
//! another key.

use siphasher::sip::SipHasher13;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of words, and so of buckets, in a line: a cache line of the processor.
const BUCKETS_PER_LINE: usize = 8;
/// Bytes of a line.
pub(super) const LINE_OCTETS: usize = 8 * BUCKETS_PER_LINE;
/// Bits of the time in microseconds: a range of 12 days.
const TIME_BITS: u32 = 40;
/// Mask of the time in a word.
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// Bits of the count of refusals.
const REFUSAL_BITS: u32 = 4;
/// Number of bits below the tag: time and count. The tag takes the upper 20 bits and distinguishes
/// the keys of one line.
const TAG_SHIFT: u32 = TIME_BITS + REFUSAL_BITS;
/// Upper bound for the time that a bucket needs to fill, in microseconds. Buckets with a rate need
/// at most two seconds. A word with a longer time was written days ago.
const FULL_WITHIN_US: u64 = 1 << 22;
/// The highest rate, in tokens per second.
const RATE_MAX: u32 = 1_000_000;
/// Maximum number of attempts to change a word that other threads change at the same time.
const EXCHANGE_ATTEMPTS: usize = 16;

/// The rate at which a bucket is filled with tokens, and its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meter {
    /// Microseconds per token.
    period_us: u64,
    /// Microseconds in which an empty bucket becomes full.
    fill_us: u64,
    /// The capacity in tokens.
    capacity: u32,
}

impl Meter {
    /// Returns a meter of `rate` tokens per second, with a capacity of `rate` tokens. Returns
    /// `None` for a rate of 0, which sets no limit. The period is rounded up to a microsecond, so
    /// the real rate is lower: by up to 1 % from 10,000 tokens per second on, and by up to half
    /// from 100,000 on. The maximum is one million.
    pub(super) const fn per_second(rate: u32) -> Option<Self> {
        if rate == 0 {
            return None;
        }
        let rate = if rate > RATE_MAX { RATE_MAX } else { rate };
        let period_us = 1_000_000u64.div_ceil(rate as u64);
        Some(Self { period_us, fill_us: period_us * rate as u64, capacity: rate })
    }

    /// Returns a meter of one token per microsecond, with a capacity of `tokens`, at most
    /// [`FULL_WITHIN_US`] - 1.
    pub(super) const fn of_micros(tokens: u32) -> Self {
        let max = FULL_WITHIN_US as u32 - 1;
        let tokens = if tokens > max { max } else { tokens };
        Self { period_us: 1, fill_us: tokens as u64, capacity: tokens }
    }
}

/// The result of taking tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeResult {
    /// The bucket had enough tokens.
    Granted,
    /// The bucket had too few tokens, and none was taken.
    Refused {
        /// Whether this refusal is marked (see [`Buckets::take`]).
        is_marked: bool,
    },
}

#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; BUCKETS_PER_LINE]);

pub(super) struct Buckets {
    hasher: SipHasher13,
    lines: Box<[Line]>,
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buckets").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

impl Buckets {
    /// Returns a table of at most `octets` bytes, but at least one line.
    ///
    /// # Errors
    /// Fails if the system provides no random octets.
    pub(super) fn new(octets: usize) -> Result<Self, getrandom::Error> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Self::with_key(octets, &key))
    }

    /// As [`Buckets::new`], with a given key for the hash of the bucket keys.
    pub(super) fn with_key(octets: usize, key: &[u8; 16]) -> Self {
        let lines_max = (octets / LINE_OCTETS).max(1);
        // A power of two, because a mask selects the line.
        let lines = 1 << lines_max.ilog2();
        Self { hasher: SipHasher13::new_with_key(key), lines: (0..lines).map(|_| Line::default()).collect() }
    }

    /// Size of the table in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Returns the number of buckets that are not full at `now`, and the microseconds until the
    /// first of them is full (`u64::MAX` if all are full).
    pub(super) fn count_not_full(&self, now: u64) -> (u64, u64) {
        let words = self.lines.iter().flat_map(|line| &line.0);
        let debts = words.map(|word| debt(word.load(Relaxed), now)).filter(|debt| *debt > 0);
        debts.fold((0, u64::MAX), |(count, min_debt), debt| (count + 1, min_debt.min(debt)))
    }

    /// Takes `tokens` from the bucket of `key` at `now`, in microseconds from an arbitrary start. A
    /// number above the capacity counts as the capacity. Each `mark_every`-th refusal of a bucket
    /// is marked; `mark_every` is at most 15, and 0 marks none.
    pub(super) fn take(
        &self,
        key: [u64; 2],
        now: u64,
        meter: Meter,
        tokens: u32,
        mark_every: u8,
    ) -> TakeResult {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&key[0].to_le_bytes());
        octets[8..].copy_from_slice(&key[1].to_le_bytes());
        let hash = self.hasher.hash(&octets);
        let line = &self.lines[hash as usize & (self.lines.len() - 1)];
        let tag = hash >> TAG_SHIFT;
        let cost = meter.period_us * u64::from(tokens.min(meter.capacity));
        for _ in 0..EXCHANGE_ATTEMPTS {
            let (word, found) = line.choose(tag, now);
            let (refusals, debt) = if found >> TAG_SHIFT == tag {
                ((found >> TIME_BITS) as u8 & ((1 << REFUSAL_BITS) - 1), debt(found, now))
            } else {
                (0, debt(found, now))
            };
            let has_tokens = debt + cost <= meter.fill_us;
            let (refusals, debt) = match (has_tokens, mark_every) {
                (true, _) => (refusals, debt + cost),
                (false, 0) => return TakeResult::Refused { is_marked: false },
                (false, _) => ((refusals + 1) % mark_every, debt),
            };
            let full_at = now.wrapping_add(debt) & TIME_MASK;
            let new_word = tag << TAG_SHIFT | u64::from(refusals) << TIME_BITS | full_at;
            if word.compare_exchange_weak(found, new_word, Relaxed, Relaxed).is_ok() {
                return if has_tokens {
                    TakeResult::Granted
                } else {
                    TakeResult::Refused { is_marked: refusals == 0 }
                };
            }
        }
        // Other threads change this word constantly, because many queries use this key. So refuse
        // the tokens.
        TakeResult::Refused { is_marked: false }
    }
}

impl Line {
    /// Returns the word with `tag`, or else the word of the fullest bucket, and its value.
    fn choose(&self, tag: u64, now: u64) -> (&AtomicU64, u64) {
        let found = self.0.each_ref().map(|word| word.load(Relaxed));
        let index = found.iter().position(|word| word >> TAG_SHIFT == tag);
        let index = index.unwrap_or_else(|| find_fullest(&found, now));
        (&self.0[index], found[index])
    }
}

/// Returns the position of the fullest bucket; if several are full, the first of them.
fn find_fullest(words: &[u64; BUCKETS_PER_LINE], now: u64) -> usize {
    let (mut fullest, mut min_debt) = (0, u64::MAX);
    for (index, word) in words.iter().enumerate() {
        let debt = debt(*word, now);
        if debt < min_debt {
            (fullest, min_debt) = (index, debt);
        }
        if debt == 0 {
            break;
        }
    }
    fullest
}

/// Returns the debt of a bucket: the microseconds until it is full, 0 if it is full.
const fn debt(word: u64, now: u64) -> u64 {
    let debt = word.wrapping_sub(now) & TIME_MASK;
    if debt > FULL_WITHIN_US { 0 } else { debt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::atomic::AtomicUsize;

    fn buckets(lines: usize) -> Buckets {
        Buckets::with_key(lines * LINE_OCTETS, &[5; 16])
    }

    fn meter(rate: u32) -> Meter {
        Meter::per_second(rate).expect("a rate")
    }

    #[test]
    fn a_bucket_holds_a_second_and_fills_at_its_rate() {
        let table = buckets(1);
        let take = |now| table.take([1, 2], now, meter(5), 1, 0) == TakeResult::Granted;
        let count = |now| (0..20).filter(|_| take(now)).count();
        assert_eq!([count(0), count(0), count(199_999), count(200_000)], [5, 0, 0, 1]);
        // The capacity does not grow after a long time, nor after the bits of the clock wrap
        // around.
        assert_eq!(count(60_000_000), 5);
        for days in [6, 7, 12, 13, 25, 26, 1000] {
            assert_eq!(count(60_000_000 + days * 86_400_000_000), 5, "{days}");
        }
    }

    #[test]
    fn many_tokens_are_taken_together_or_not_at_all() {
        let table = buckets(1);
        let take = |tokens| table.take([1, 2], 0, meter(20), tokens, 0) == TakeResult::Granted;
        assert_eq!([take(15), take(6), take(5), take(1)], [true, false, true, false]);
        // A number above the capacity is granted when the bucket is full.
        let table = buckets(1);
        let take = |now| table.take([1, 2], now, meter(20), 300, 0) == TakeResult::Granted;
        assert_eq!([take(0), take(999_999), take(1_000_000)], [true, false, true]);
    }

    #[test]
    fn some_refusals_are_marked() {
        for (mark_every, expected) in
            [(0, "......"), (1, "xxxxxx"), (2, ".x.x.x"), (3, "..x..x"), (15, "......")]
        {
            let table = buckets(1);
            assert_eq!(table.take([1, 2], 0, meter(1), 1, mark_every), TakeResult::Granted);
            let mark = |_| match table.take([1, 2], 0, meter(1), 1, mark_every) {
                TakeResult::Refused { is_marked: true } => 'x',
                TakeResult::Refused { is_marked: false } => '.',
                TakeResult::Granted => '!',
            };
            assert_eq!((0..6).map(mark).collect::<String>(), expected, "{mark_every}");
        }
    }

    #[test]
    fn rates_of_zero_limit_nothing_and_high_ones_are_never_exceeded() {
        assert_eq!(Meter::per_second(0), None);
        for rate in [1, 3, 7, 200, 9_999, 10_000, 99_999, 1_000_000, u32::MAX] {
            let meter = meter(rate);
            assert!(meter.period_us * u64::from(rate) >= 1_000_000);
            assert!(rate > 10_000 || meter.period_us * u64::from(rate) < 1_010_000, "{rate}");
            assert!(meter.fill_us < FULL_WITHIN_US);
        }
    }

    #[test]
    fn buckets_that_are_not_full_are_counted() {
        let table = buckets(64);
        for key in 0..40 {
            assert_eq!(
                table.take([key, 0], 0, Meter::of_micros(100), 1 + key as u32, 0),
                TakeResult::Granted
            );
        }
        assert_eq!([0, 10, 39].map(|now| table.count_not_full(now)), [(40, 1), (30, 1), (1, 1)]);
        assert_eq!(table.count_not_full(40).0, 0);
    }

    #[test]
    fn threads_together_take_what_there_is() {
        let table = buckets(4);
        let taken: Vec<AtomicUsize> = (0..8).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..4000u64 {
                        let key = (round % 8) as usize;
                        if table.take([key as u64, 0], 0, meter(200), 1, 2) == TakeResult::Granted {
                            taken[key].fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        for taken in &taken {
            assert_eq!(taken.load(Relaxed), 200);
        }
    }

    /// There are many more keys than words in the table. No key takes more than its rate, and no
    /// key is refused.
    #[test]
    fn keys_that_share_words_are_not_hindered() {
        let table = buckets(64);
        let (mut flood, mut quiet, mut asked) = (0, 0, 0);
        for ms in 0..2000u64 {
            // 80,000 per second from 10,000 keys, which is 8 per second and key: twenty keys for
            // each word of the table.
            for turn in 0..80 {
                let key = (ms * 80 + turn) % 10_000;
                flood += u64::from(
                    table.take([1000 + key, 0], ms * 1000, meter(200), 1, 2) == TakeResult::Granted,
                );
            }
            if ms % 20 == 0 {
                asked += 1;
                quiet += u64::from(table.take([1, 0], ms * 1000, meter(200), 1, 2) == TakeResult::Granted);
            }
        }
        assert!(quiet * 100 >= asked * 95, "{quiet} of {asked}");
        assert!(flood >= 80 * 2000 * 95 / 100, "{flood}");
    }

    proptest! {
        /// In every time window, a key gets at most its rate times the length of the window plus
        /// one bucket. While the line has room, a key also gets no less.
        #[test]
        fn takes_are_those_of_a_model(
            rate in 1u32..2000,
            steps in proptest::collection::vec((0u64..4, 1u32..6, 0u64..50_000), 1..300),
        ) {
            let table = buckets(1024);
            let meter = meter(rate);
            let mut now = 0;
            let mut model: HashMap<u64, u64> = HashMap::new();
            let mut taken: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
            for (key, tokens, pause) in steps {
                now += pause;
                let tokens = tokens.min(rate);
                let full_at = model.entry(key).or_insert(0);
                let debt = full_at.saturating_sub(now) + meter.period_us * u64::from(tokens);
                let expected = debt <= meter.period_us * u64::from(rate);
                if expected {
                    *full_at = now + debt;
                    taken.entry(key).or_default().push((now, u64::from(tokens)));
                }
                let found = table.take([key, 7], now, meter, tokens, 2);
                prop_assert_eq!(found == TakeResult::Granted, expected);
            }
            for times in taken.values() {
                for (start, (from, _)) in times.iter().enumerate() {
                    let mut sum = 0;
                    for (at, tokens) in &times[start..] {
                        sum += tokens;
                        prop_assert!(sum * 1_000_000 <= u64::from(rate) * (at - from) + u64::from(rate) * 1_000_000);
                    }
                }
            }
        }

        /// If many keys share one line, the tokens taken from the line are bounded by its words.
        #[test]
        fn one_line_gives_a_bounded_amount(seed: u64, rate in 1u32..50) {
            let table = buckets(1);
            let mut taken = 0u64;
            let mut state = seed;
            for _ in 0..2000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let found = table.take([state >> 40, 0], 0, meter(rate), 1, 2);
                taken += u64::from(found == TakeResult::Granted);
            }
            prop_assert_eq!(taken, 8 * u64::from(rate));
        }
    }
}
