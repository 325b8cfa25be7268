//! A linear axis from zero with round ticks.

/// Intervals between ticks, at most.
const INTERVALS: f64 = 5.0;

/// An axis from zero to a round number at or above everything shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    step: f64,
    intervals: u32,
}

impl Scale {
    /// An axis for values up to `most`. Where that is zero, negative or no number, it goes to one.
    #[must_use]
    pub fn up_to(most: f64) -> Self {
        // The bounds keep steps and positions finite and normal.
        let most = if most.is_finite() && most > 0.0 { most.clamp(1e-200, 1e200) } else { 1.0 };
        let least_step = most / INTERVALS;
        let power = 10f64.powf(least_step.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= least_step)
            .unwrap_or(20.0 * power);
        let intervals = ((most / step).ceil() as u32).max(1);
        // Rounding may leave the end a hair below the largest value.
        let intervals = if step * f64::from(intervals) < most { intervals + 1 } else { intervals };
        Self { step, intervals }
    }

    /// The value at the end of the axis.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.step * f64::from(self.intervals)
    }

    /// Values that have a tick, from zero to the end.
    pub fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let step = self.step;
        (0..=self.intervals).map(move |index| step * f64::from(index))
    }

    /// Where `value` stands, from 0 at the start to 1 at the end; what lies outside is drawn at the nearer end, what is
    /// no number at the start.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        if value.is_nan() { 0.0 } else { (value / self.end()).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticks(most: f64) -> Vec<f64> {
        Scale::up_to(most).ticks().collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(11.0), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!(ticks(1232.0), [0.0, 500.0, 1000.0, 1500.0]);
        assert_eq!(ticks(0.4), [0.0, 0.1, 0.2, 0.300_000_000_000_000_04, 0.4]);
    }

    #[test]
    fn odd_values_have_an_axis_too() {
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX] {
            let scale = Scale::up_to(odd);
            assert!(scale.end() > 0.0 && scale.end().is_finite());
            for value in [odd, 0.0, f64::NAN, f64::INFINITY] {
                assert!((0.0..=1.0).contains(&scale.position(value)));
            }
        }
    }

    proptest! {
        #[test]
        fn the_axis_holds_all_and_wastes_little(most in 1e-9f64..1e15) {
            let scale = Scale::up_to(most);
            let ticks: Vec<f64> = scale.ticks().collect();
            prop_assert!(scale.end() >= most);
            prop_assert!(scale.end() <= most * 2.0 * (1.0 + 1e-9));
            prop_assert!((2..=7).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(ticks.first().copied(), Some(0.0));
            prop_assert_eq!(ticks.last().copied(), Some(scale.end()));
        }

        #[test]
        fn positions_keep_the_order(most in 1e-9f64..1e15, a in 0.0f64..1.0, b in 0.0f64..1.0) {
            let scale = Scale::up_to(most);
            let (low, high) = (most * a.min(b), most * a.max(b));
            prop_assert!(scale.position(low) <= scale.position(high));
            prop_assert!((0.0..=1.0).contains(&scale.position(high)));
        }
    }
}
