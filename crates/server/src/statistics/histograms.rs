//! Histograms of message sizes and latencies, and their totals.

use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Adds `by` to a counter. Only one thread writes the counter, so no locked instruction is needed.
#[inline]
pub(super) fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Returns counters at zero.
pub(super) fn zeros<const N: usize>() -> [AtomicU64; N] {
    array::from_fn(|_| AtomicU64::new(0))
}

/// Number of buckets for sizes above 4096 octets: up to 8192, 16384, 32768 and 65536.
const LARGE_BUCKETS: usize = 4;
/// The largest size with a separate bucket.
const MAX_EXACT_SIZE: usize = 4096;

/// Counts messages by size. Each size up to [`MAX_EXACT_SIZE`] has a bucket. So counting needs no
/// arithmetic, and the sum of the octets follows from the counts. The 4097 counters take 32 KiB,
/// but only the few that are used occupy the CPU cache. Larger sizes use the [`LARGE_BUCKETS`]
/// buckets.
#[derive(Debug)]
pub(super) struct SizeHistogram {
    buckets: [AtomicU64; MAX_EXACT_SIZE + 1],
    large: [AtomicU64; LARGE_BUCKETS],
    /// Octets of the messages in `large`.
    large_octets: AtomicU64,
}

impl SizeHistogram {
    pub(super) fn new() -> Self {
        Self { buckets: zeros(), large: zeros(), large_octets: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn record(&self, octets: usize) {
        match self.buckets.get(octets) {
            Some(bucket) => add(bucket, 1),
            None => self.record_large(octets),
        }
    }

    #[cold]
    fn record_large(&self, octets: usize) {
        add(&self.large[large_bucket(octets)], 1);
        add(&self.large_octets, octets as u64);
    }
}

/// Returns the bucket for a size above 4096.
fn large_bucket(octets: usize) -> usize {
    let upper_ends = [2 * MAX_EXACT_SIZE, 4 * MAX_EXACT_SIZE, 8 * MAX_EXACT_SIZE];
    upper_ends.iter().position(|upper_bound| octets <= *upper_bound).unwrap_or(LARGE_BUCKETS - 1)
}

/// Numbers of messages by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Number of messages by the upper bound of each bucket that is not empty. All sizes above
    /// 32768 have the upper bound 65536.
    buckets: BTreeMap<usize, u64>,
    /// Sum of the octets of all messages.
    pub octets: u64,
}

impl Sizes {
    pub(super) fn add(&mut self, sizes: &SizeHistogram) {
        let fine = sizes.buckets.iter().enumerate();
        let large =
            sizes.large.iter().enumerate().map(|(index, bucket)| ((2 * MAX_EXACT_SIZE) << index, bucket));
        for (upper_bound, bucket) in fine.chain(large) {
            let messages = bucket.load(Relaxed);
            if messages > 0 {
                *self.buckets.entry(upper_bound).or_default() += messages;
                self.octets += if upper_bound <= MAX_EXACT_SIZE { messages * upper_bound as u64 } else { 0 };
            }
        }
        self.octets = self.octets.wrapping_add(sizes.large_octets.load(Relaxed));
    }

    /// Returns the number of messages with at most `octets`. Exact for values up to 4096, and for
    /// 8192, 16384, 32768 and 65536. For other values below 65536 it can be too low: it omits all
    /// messages of the bucket that contains the value.
    #[must_use]
    pub fn up_to(&self, octets: usize) -> u64 {
        self.buckets.range(..=octets).map(|(_, messages)| messages).sum()
    }

    /// The number of all messages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.buckets.values().sum()
    }
}

/// Upper bounds of the latency buckets in nanoseconds: 1, 2 and 5 in each decade from a microsecond
/// to 10 s. One more bucket counts longer latencies.
pub const LATENCY_BOUNDS_NS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Counts messages by latency.
#[derive(Debug)]
pub(super) struct LatencyHistogram {
    buckets: [AtomicU64; LATENCY_BOUNDS_NS.len() + 1],
    nanoseconds: AtomicU64,
}

impl LatencyHistogram {
    pub(super) fn new() -> Self {
        Self { buckets: zeros(), nanoseconds: AtomicU64::new(0) }
    }

    /// Counts `messages` with a latency of `nanoseconds` each.
    pub(super) fn record(&self, nanoseconds: u64, messages: u64) {
        let bucket = LATENCY_BOUNDS_NS.partition_point(|bound| *bound < nanoseconds);
        add(&self.buckets[bucket], messages);
        add(&self.nanoseconds, nanoseconds.saturating_mul(messages));
    }
}

/// Numbers of messages by latency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Number of messages in each bucket. A bucket counts latencies up to its bound in
    /// [`LATENCY_BOUNDS_NS`] and above the previous bound; the last bucket counts longer ones.
    pub buckets: [u64; LATENCY_BOUNDS_NS.len() + 1],
    /// Sum of the latencies of all messages, in nanoseconds.
    pub nanoseconds: u64,
}

impl Latencies {
    pub(super) fn add(&mut self, histogram: &LatencyHistogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += bucket.load(Relaxed);
        }
        self.nanoseconds += histogram.nanoseconds.load(Relaxed);
    }
}
