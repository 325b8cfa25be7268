//! Statistics of repeated measurements.

/// Mean, standard deviation, median, minimum and maximum of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Statistics {
    pub count: usize,
    pub mean: f64,
    /// Sample standard deviation (divisor: count minus 1); 0 for one value.
    pub deviation: f64,
    /// Median; for an even count, the mean of the two middle values.
    pub median: f64,
    #[serde(rename = "least")]
    pub minimum: f64,
    #[serde(rename = "most")]
    pub maximum: f64,
}

impl Statistics {
    /// Computes the statistics of `values`, which are in any order. Returns `None` if there are no
    /// values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (minimum, maximum) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        // Two passes: with large values that differ little, the difference of sums of squares would
        // lose all significant digits.
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let median = sorted[(count - 1) / 2].midpoint(sorted[count / 2]);
        Some(Self { count, mean, deviation, median, minimum, maximum })
    }
}

/// Median or mean of repeated measurements, with their range. The field that has this type states
/// whether `value` is the median or the mean. `least` is the minimum and `most` the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct ValueRange {
    pub(crate) value: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl ValueRange {
    /// Returns the median, minimum and maximum of `values`, or `None` if there are no values.
    pub(crate) fn median(values: &[f64]) -> Option<Self> {
        let Statistics { median: value, minimum: least, maximum: most, .. } = Statistics::of(values)?;
        Some(Self { value, least, most })
    }

    /// Returns the range of a figure without spread.
    pub(crate) const fn exact(value: f64) -> Self {
        Self { value, least: value, most: value }
    }

    /// Whether the ranges have a value in common. Then the figures do not differ measurably.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_known_numbers() {
        let statistics = Statistics::of(&[9.0, 2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0]).expect("values");
        assert_eq!((statistics.count, statistics.mean, statistics.median), (8, 5.0, 4.5));
        assert_eq!((statistics.minimum, statistics.maximum), (2.0, 9.0));
        // The sum of the squared differences is 32.
        assert!((statistics.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn of_few_and_of_large_numbers() {
        assert_eq!(Statistics::of(&[]), None);
        let one = Statistics::of(&[3.0]).expect("a value");
        assert_eq!((one.deviation, one.median), (0.0, 3.0));
        let large = Statistics::of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]).expect("values");
        assert!((large.deviation - 30f64.sqrt()).abs() < 1e-6);
    }
}
