//! Axes with round ticks: linear from zero or from a negative value, or logarithmic from a power of
//! ten.

use super::{dates, figure};

/// Maximum number of intervals between the ticks of a linear axis; rounding can add one.
const INTERVALS_MAX: f64 = 5.0;

/// Scaling of values to lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Proportional, from zero.
    #[default]
    Linear,
    /// Logarithmic, for values of several orders of magnitude.
    Logarithmic,
    /// Proportional, from the smallest negative value.
    Signed,
    /// Dates, whose positions [`day_position`](super::day_position) returns.
    Dates,
}

/// An axis that ends at a round number, which is at least the maximum shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: Kind,
    intervals: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `step` is the distance between ticks. Starts at `first` steps, which is 0 or negative.
    Linear { first: i32, step: f64 },
    /// Starts at ten to the power of `first`. Each tick is ten times the previous one.
    Logarithmic { first: i32 },
    /// `months` is the distance between ticks. Starts at `first` times this distance.
    Dates { first: i32, months: u32 },
}

impl Scale {
    /// Returns a linear axis from 0 for values up to `maximum`. If `maximum` is not a positive
    /// finite number, the axis ends at one.
    pub(crate) fn linear(maximum: f64) -> Self {
        let maximum = valid_length(maximum);
        let step = round_step(maximum);
        Self { kind: Kind::Linear { first: 0, step }, intervals: steps(maximum, step).max(1) }
    }

    /// Returns a linear axis for values that can be negative. It contains zero.
    fn signed(values: impl Iterator<Item = f64>) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (minimum, maximum) = finite.fold((0.0, 0.0), |(minimum, maximum): (f64, f64), value| {
            (minimum.min(value), maximum.max(value))
        });
        if minimum >= 0.0 {
            return Self::linear(maximum);
        }
        let (minimum, maximum) = (minimum.max(-LENGTH_MAX / 2.0), maximum.min(LENGTH_MAX / 2.0));
        let step = round_step(valid_length(maximum - minimum));
        let below = steps(-minimum, step);
        Self {
            kind: Kind::Linear { first: -(below as i32), step },
            intervals: below + steps(maximum, step).max(1),
        }
    }

    /// Returns an axis for points with these values.
    pub(crate) fn of_points(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        match axis {
            Axis::Linear => Self::linear(values.filter(|value| value.is_finite()).fold(0.0, f64::max)),
            Axis::Logarithmic => Self::decades(values, 0.0),
            Axis::Signed => Self::signed(values),
            Axis::Dates => Self::dates(values),
        }
    }

    /// Returns a logarithmic axis for the positive numbers in `values`; without such numbers, from
    /// 1 to 10. The axis begins below the minimum, because the bar of a value at its start would
    /// have length 0.
    pub(crate) fn logarithmic(values: impl Iterator<Item = f64>) -> Self {
        Self::decades(values, BAR_LENGTH_MIN)
    }

    /// Returns a logarithmic axis that begins at least `margin` decades below the minimum of the
    /// positive numbers in `values`.
    fn decades(values: impl Iterator<Item = f64>, margin: f64) -> Self {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let powers = positive.map(|value| value.clamp(1e-200, 1e200).log10());
        let (minimum, maximum) = powers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(minimum, maximum), power| {
                (minimum.min(power), maximum.max(power))
            });
        // There is no positive number.
        if minimum > maximum {
            return Self { kind: Kind::Logarithmic { first: 0 }, intervals: 1 };
        }
        // A power of ten needs no further decade.
        let first = (minimum - margin + 1e-9).floor() as i32;
        let last = (maximum - 1e-9).ceil() as i32;
        Self { kind: Kind::Logarithmic { first }, intervals: last.saturating_sub(first).max(1) as u32 }
    }

    /// Returns an axis of dates. Without values, it is that of the year 1970.
    fn dates(values: impl Iterator<Item = f64>) -> Self {
        let months = values.filter(|value| value.is_finite()).map(|value| value.clamp(1970.0, 9999.0) * 12.0);
        let (from, to) = months
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), month| (from.min(month), to.max(month)));
        let (from, to) = if from > to { (1970.0 * 12.0, 1970.0 * 12.0) } else { (from, to) };
        // The label of a year is shorter than that of a month.
        let intervals_max = |step: u32| if step < 12 { MONTH_INTERVALS_MAX } else { YEAR_INTERVALS_MAX };
        let is_sufficient = |step: &u32| (to - from) / f64::from(*step) <= intervals_max(*step);
        let months = DATE_STEPS.into_iter().find(is_sufficient).unwrap_or(DATE_STEP_MAX);
        let first = (from / f64::from(months) + 1e-6).floor() as i32;
        let last = (to / f64::from(months) - 1e-6).ceil() as i32;
        Self { kind: Kind::Dates { first, months }, intervals: (last - first).max(1) as u32 }
    }

    /// Returns the label of a tick.
    pub(super) fn tick_label(&self, tick: f64) -> String {
        if matches!(self.kind, Kind::Dates { .. }) { dates::tick_label(tick) } else { tick_label(tick) }
    }

    /// Returns the label of a point's position, which is more precise than a tick if it is a date.
    pub(super) fn position_label(&self, value: f64) -> String {
        if matches!(self.kind, Kind::Dates { .. }) { dates::date_label(value) } else { tick_label(value) }
    }

    /// Returns the value at the start of the axis.
    pub(crate) fn start(&self) -> f64 {
        self.tick(0)
    }

    /// Returns the value at the end of the axis.
    pub(crate) fn end(&self) -> f64 {
        self.tick(self.intervals)
    }

    /// Returns the values with ticks, from start to end.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let scale = *self;
        (0..=self.intervals).map(move |index| scale.tick(index))
    }

    fn tick(&self, index: u32) -> f64 {
        match self.kind {
            Kind::Linear { first, step } => step * f64::from(first.saturating_add_unsigned(index)),
            Kind::Logarithmic { first } => 10f64.powi(first.saturating_add_unsigned(index)),
            Kind::Dates { first, months } => {
                f64::from(first.saturating_add_unsigned(index)) * f64::from(months) / 12.0
            }
        }
    }

    /// Returns the position of `value`, from 0 at the start to 1 at the end. The position of a
    /// value outside the axis is that of the nearest end. The position of NaN is 0.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let position = match self.kind {
            Kind::Linear { .. } | Kind::Dates { .. } => (value - self.start()) / (self.end() - self.start()),
            Kind::Logarithmic { first } => (value.log10() - f64::from(first)) / f64::from(self.intervals),
        };
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
    }
}

/// Distances between the ticks of an axis of dates, in months.
const DATE_STEPS: [u32; 9] = [1, 2, 3, 6, 12, 24, 60, 120, DATE_STEP_MAX];
const DATE_STEP_MAX: u32 = 1200;
/// Maximum number of intervals between the ticks of an axis of dates, if they are not years, and if they
/// are; rounding can add two.
const MONTH_INTERVALS_MAX: f64 = 6.0;
const YEAR_INTERVALS_MAX: f64 = 11.0;

/// Maximum length of a linear axis. It keeps steps and positions finite.
const LENGTH_MAX: f64 = 1e200;

/// Returns a positive finite length that steps can divide; 1 in place of other numbers.
fn valid_length(length: f64) -> f64 {
    if length.is_finite() && length > 0.0 { length.clamp(1.0 / LENGTH_MAX, LENGTH_MAX) } else { 1.0 }
}

/// Returns the distance between the ticks of a linear axis: 1, 2 or 5 times a power of ten.
fn round_step(length: f64) -> f64 {
    let min_step = length / INTERVALS_MAX;
    let power = 10f64.powf(min_step.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= min_step).unwrap_or(20.0 * power)
}

/// Returns the number of steps from zero that contain `length`.
fn steps(length: f64, step: f64) -> u32 {
    let count = (length / step).ceil() as u32;
    // Because of rounding, the end can be slightly below the largest value.
    if step * f64::from(count) < length { count + 1 } else { count }
}

/// Formats a tick or a position on an axis: with six significant digits, without trailing zeros and
/// without rounding errors of binary fractions.
pub(super) fn tick_label(tick: f64) -> String {
    if tick.abs() >= 1000.0 || !tick.is_finite() {
        return figure(tick);
    }
    let decimals = (5.0 - tick.abs().log10().floor()).clamp(0.0, DECIMALS_MAX) as usize;
    let text = format!("{tick:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Maximum number of decimals of a tick.
const DECIMALS_MAX: f64 = 12.0;

/// Minimum length of the bar of the smallest value on a logarithmic axis, in decades.
const BAR_LENGTH_MIN: f64 = 0.15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticks(most: f64) -> Vec<f64> {
        Scale::linear(most).ticks().collect()
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
            let scale = Scale::linear(odd);
            assert!(scale.end() > 0.0 && scale.end().is_finite());
            for value in [odd, 0.0, f64::NAN, f64::INFINITY] {
                assert!((0.0..=1.0).contains(&scale.position(value)));
            }
        }
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten() {
        let ticks = |values: &[f64]| Scale::logarithmic(values.iter().copied()).ticks().collect::<Vec<_>>();
        assert_eq!(ticks(&[150.0, 99_000.0]), [100.0, 1000.0, 10_000.0, 100_000.0]);
        // The smallest bar is visible, and the axis needs no further decade if it ends at a power
        // of ten.
        assert_eq!(ticks(&[100.0, 1000.0]), [10.0, 100.0, 1000.0]);
        for none in [&[][..], &[0.0, -1.0, f64::NAN, f64::INFINITY]] {
            assert_eq!(ticks(none), [1.0, 10.0]);
        }
        let scale = Scale::logarithmic([20.0, 2000.0].into_iter());
        assert_eq!((scale.tick(0), scale.end()), (10.0, 10_000.0));
        assert!((scale.position(1000.0) - 2.0 / 3.0).abs() < 1e-12);
        for low in [0.0, -5.0, f64::NAN, 1.0] {
            assert_eq!(scale.position(low), 0.0);
        }
        assert_eq!(scale.position(f64::INFINITY), 1.0);
    }

    #[test]
    fn an_axis_of_dates_has_a_tick_for_each_year_or_month() {
        let labels = |from: f64, to: f64| {
            let scale = Scale::of_points(Axis::Dates, [to, from, f64::NAN].into_iter());
            assert!(scale.start() <= from && to <= scale.end(), "{scale:?}");
            scale.ticks().map(|tick| scale.tick_label(tick)).collect::<Vec<_>>()
        };
        assert_eq!(labels(2015.0, 2021.9).len(), 8);
        assert_eq!(labels(2009.5, 2020.99), ["2008", "2010", "2012", "2014", "2016", "2018", "2020", "2022"]);
        assert_eq!(labels(2016.01, 2016.2), ["2016", "2016-02", "2016-03", "2016-04"]);
        assert_eq!(labels(2016.0, 2016.0), ["2016", "2016-02"]);
        let none = Scale::of_points(Axis::Dates, std::iter::empty());
        assert_eq!(none.ticks().count(), 2);
        let scale = Scale::of_points(Axis::Dates, [2016.0, 2017.0].into_iter());
        assert_eq!(scale.position_label(2016.5), "2016-07-02");
    }

    #[test]
    fn an_axis_of_points_begins_at_the_first_power_of_ten() {
        let ticks = |values: &[f64]| {
            Scale::of_points(Axis::Logarithmic, values.iter().copied()).ticks().collect::<Vec<_>>()
        };
        assert_eq!(ticks(&[100.0, 6113.0]), [100.0, 1000.0, 10_000.0]);
        assert_eq!(ticks(&[0.001, 0.002]), [0.001, 0.01]);
        assert_eq!(ticks(&[10.0]), [10.0, 100.0]);
        assert_eq!(Scale::of_points(Axis::Linear, [3.0, f64::NAN, -1.0].into_iter()), Scale::linear(3.0));
    }

    #[test]
    fn a_signed_axis_contains_zero_and_both_ends() {
        let ticks = |values: &[f64]| {
            Scale::of_points(Axis::Signed, values.iter().copied()).ticks().collect::<Vec<_>>()
        };
        assert_eq!(ticks(&[-30.0, 50.0]), [-40.0, -20.0, 0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ticks(&[-3.0, -1.0]), [-3.0, -2.0, -1.0, 0.0, 1.0]);
        assert_eq!(ticks(&[10.0, f64::NAN]), ticks(&[0.0, 10.0]));
        let scale = Scale::of_points(Axis::Signed, [-30.0, 50.0].into_iter());
        assert_eq!([-40.0, 10.0, 60.0].map(|value| scale.position(value)), [0.0, 0.5, 1.0]);
        let wide = Scale::of_points(Axis::Signed, [f64::MIN, f64::MAX].into_iter());
        assert!(wide.end().is_finite() && (0.0..=1.0).contains(&wide.position(f64::MIN)));
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick_label(0.0), "0");
        assert_eq!(tick_label(0.1 + 0.2), "0.3");
        assert_eq!(tick_label(2.5), "2.5");
        assert_eq!(tick_label(1e-6), "0.000001");
        assert_eq!(tick_label(283.451_955_606), "283.452");
        assert_eq!(tick_label(99.99), "99.99");
        assert_eq!(tick_label(f64::NAN), "–");
        assert_eq!(tick_label(100.0), "100");
        assert_eq!(tick_label(150_000.0), "150,000");
    }

    proptest! {
        #[test]
        fn a_logarithmic_axis_holds_all(values in proptest::collection::vec(1e-9f64..1e15, 1..5)) {
            let scale = Scale::logarithmic(values.iter().copied());
            for value in &values {
                prop_assert!(scale.tick(0) < *value && *value <= scale.end() * (1.0 + 1e-8));
            }
            prop_assert!(scale.ticks().count() <= 26);
        }

        #[test]
        fn the_axis_holds_all_and_wastes_little(most in 1e-9f64..1e15) {
            let scale = Scale::linear(most);
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
            let scale = Scale::linear(most);
            let (low, high) = (most * a.min(b), most * a.max(b));
            prop_assert!(scale.position(low) <= scale.position(high));
            prop_assert!((0.0..=1.0).contains(&scale.position(high)));
        }
    }
}
