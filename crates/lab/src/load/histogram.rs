//! A histogram of durations with buckets that grow with the value, as HdrHistogram's: constant time to record,
//! and a bounded relative error.

/// Each power of two is split into so many buckets: values are at most 1/128 too high.
const SPLIT_BITS: u32 = 7;
const SPLIT: u64 = 1 << SPLIT_BITS;
/// Buckets for every 64-bit value.
const BUCKETS: usize = ((64 - SPLIT_BITS as usize) + 1) << SPLIT_BITS;

/// Durations in ns, counted.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

/// The bucket of `value`: exact below 128, then 128 buckets for each doubling.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - SPLIT_BITS - 1).saturating_sub(value.leading_zeros());
    (u64::from(shift) * SPLIT + (value >> shift)) as usize
}

/// The largest value of a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / SPLIT).saturating_sub(1);
    let head = bucket - shift * SPLIT;
    (head << shift) | ((1 << shift) - 1)
}

impl Histogram {
    pub(super) fn record(&mut self, value: u64) {
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    pub(super) fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// A value that `percent` of the values do not exceed.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank
        });
        found.map(|bucket| upper_bound(bucket).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.percentile(50), Some(50));
        assert_eq!(histogram.percentile(99), Some(99));
        assert_eq!(histogram.percentile(100), Some(100));
        assert_eq!((histogram.min(), histogram.max(), histogram.mean()), (Some(1), Some(100), Some(50.5)));
    }

    #[test]
    fn nothing_recorded_has_no_percentiles() {
        let histogram = Histogram::default();
        assert_eq!((histogram.percentile(50), histogram.min(), histogram.mean()), (None, None, None));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_within_one_percent(value: u64) {
            let bucket = bucket(value);
            prop_assert!(bucket < BUCKETS);
            let bound = upper_bound(bucket);
            prop_assert!(bound >= value);
            prop_assert!(bound - value <= value / 100);
        }

        #[test]
        fn buckets_keep_the_order(low: u64, high: u64) {
            prop_assert_eq!(bucket(low) <= bucket(high) || low > high, true);
        }

        #[test]
        fn a_sum_counts_both(left in proptest::collection::vec(0..1u64 << 40, 0..50),
                             right in proptest::collection::vec(0..1u64 << 40, 1..50)) {
            let record = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|&value| histogram.record(value));
                histogram
            };
            let mut sum = record(&left);
            sum.add(&record(&right));
            let both = record(&[left, right].concat());
            prop_assert_eq!(sum.count(), both.count());
            prop_assert_eq!(sum.percentile(90), both.percentile(90));
            prop_assert_eq!((sum.min(), sum.max(), sum.mean()), (both.min(), both.max(), both.mean()));
        }
    }
}
