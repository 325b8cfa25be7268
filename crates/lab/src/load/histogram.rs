//! Histogram of durations, with buckets that grow with the value (HdrHistogram). Recording takes
//! constant time. The error is at most 0.1 % of the value. The range is 1 ns to 1 h.

use hdrhistogram::Histogram;

use super::Latency;

/// Maximum duration, in ns: one hour.
const DURATION_MAX_NS: u64 = 3600 * 1_000_000_000;
/// Significant decimal digits of a value.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Histogram of durations in ns.
#[derive(Debug, Clone)]
pub(super) struct DurationHistogram(Histogram<u64>);

impl Default for DurationHistogram {
    fn default() -> Self {
        Self(
            Histogram::new_with_bounds(1, DURATION_MAX_NS, SIGNIFICANT_DIGITS)
                .expect("bounds and digits are in the range of the crate"),
        )
    }
}

impl DurationHistogram {
    /// Records a duration. A duration above one hour counts as one hour.
    pub(super) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds all durations of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// Returns the durations that were recorded after the copy `earlier` was made.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        since.0.subtract(&earlier.0).expect("the earlier durations are among them");
        since
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the statistics of the durations, or `None` without durations.
    pub(super) fn summary(&self) -> Option<Latency> {
        let us = |ns: u64| ns as f64 / 1000.0;
        let quantile = |quantile: f64| us(self.0.value_at_quantile(quantile));
        (self.count() > 0).then(|| Latency {
            min: us(self.0.min()),
            mean: self.0.mean() / 1000.0,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            p99_99: quantile(0.9999),
            max: us(self.0.max()),
        })
    }

    /// Returns the non-empty buckets in ascending order: the maximum duration of the bucket, in ns,
    /// and the number of durations.
    pub(super) fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(values: &[u64]) -> DurationHistogram {
        let mut durations = DurationHistogram::default();
        values.iter().for_each(|&value| durations.record(value));
        durations
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let values: Vec<u64> = (1..=20_000).map(|value| value * 1000).collect();
        let summary = counted(&values).summary().expect("has values");
        let expected = [1.0, 10_000.5, 10_000.0, 18_000.0, 19_800.0, 19_980.0, 19_998.0, 20_000.0];
        let found = [
            summary.min,
            summary.mean,
            summary.p50,
            summary.p90,
            summary.p99,
            summary.p99_9,
            summary.p99_99,
            summary.max,
        ];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() <= expected / 1000.0, "{found} is not {expected}");
        }
    }

    #[test]
    fn nothing_counted_has_no_summary() {
        let durations = DurationHistogram::default();
        assert_eq!((durations.summary(), durations.count(), durations.buckets()), (None, 0, Vec::new()));
    }

    #[test]
    fn one_slow_answer_in_ten_thousand_is_seen() {
        let mut values = vec![20_000; 9_998];
        values.extend([5_000_000, 7_000_000]);
        let summary = counted(&values).summary().expect("has values");
        assert!((summary.p99_9 - 20.0).abs() < 0.02 && (summary.p99_99 - 5000.0).abs() < 5.0, "{summary:?}");
        assert!((summary.max - 7000.0).abs() < 7.0, "{summary:?}");
    }

    #[test]
    fn what_is_beyond_the_range_is_counted_at_its_end() {
        let durations = counted(&[0, u64::MAX]);
        let summary = durations.summary().expect("has values");
        assert_eq!((durations.count(), summary.min), (2, 0.0));
        assert!(summary.max >= 3.6e9 && summary.max < 3.7e9, "{summary:?}");
    }

    proptest! {
        #[test]
        fn buckets_hold_every_value_within_a_thousandth(values in proptest::collection::vec(0..DURATION_MAX_NS, 1..60)) {
            let buckets = counted(&values).buckets();
            prop_assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
            prop_assert!(buckets.is_sorted_by(|(left, _), (right, _)| left < right));
            for value in values {
                let (end, _) = buckets.iter().find(|(end, _)| *end >= value).expect("a bucket");
                prop_assert!(end - value <= value / 1000, "{} for {}", end, value);
            }
        }

        #[test]
        fn a_sum_counts_both(left in proptest::collection::vec(0..DURATION_MAX_NS, 0..50),
                             right in proptest::collection::vec(0..DURATION_MAX_NS, 1..50)) {
            let mut sum = counted(&left);
            sum.add(&counted(&right));
            let both = counted(&[left, right].concat());
            prop_assert_eq!(sum.buckets(), both.buckets());
            prop_assert_eq!(sum.summary(), both.summary());
        }
    }
}
