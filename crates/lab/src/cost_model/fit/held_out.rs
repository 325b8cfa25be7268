//! Criterion IV: the model predicts. It is fitted to the first two thirds of the windows, and predicts
//! S_v of the last third from Q.

use crate::cost_model::columns::{Columns, Symbol};
use crate::cost_model::distribution::kolmogorov_upper;
use crate::cost_model::model::{IntervalChoice, Model, explained_share};
use crate::cost_model::regression::{fixed_b_critical, long_run_variance, mean, recommended_lags};
use crate::cost_model::residuals::{LEVEL, autocorrelation};
use serde::Serialize;

/// Predictions of windows that were not used for the fit. Rates are in events per second.
#[derive(Clone, Debug, Serialize)]
pub struct HeldOut {
    /// Number of windows of the fit: the first two thirds.
    pub fitted_windows: usize,
    /// Number of predicted windows: the last third.
    pub predicted_windows: usize,
    /// Mean of the observed S_v.
    pub observed_mean: f64,
    /// Mean of the predicted S_v.
    pub predicted_mean: f64,
    /// Mean error (observed minus predicted), as a share of the observed mean.
    pub relative_bias: f64,
    /// Mean absolute error, as a share of the observed mean.
    pub relative_error: f64,
    /// Share of the variance of the observed S_v that the predictions explain.
    pub r_squared: f64,
    /// Test 1: the predictions have no bias.
    pub bias_test: BiasTest,
    /// Test 2: the errors have the distribution of those of the fit.
    pub distribution_test: DistributionTest,
    /// Pairs of predicted and observed S_v.
    #[serde(skip)]
    pub(super) pairs: Vec<(f64, f64)>,
}

/// A paired test of predicted against observed S_v: the mean of the errors is 0.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BiasTest {
    /// Mean error divided by its standard error.
    pub statistic: f64,
    /// The test rejects at 5 % if the statistic is further from 0.
    pub critical: f64,
    /// Lags of the variance of the mean error by Newey and West.
    pub lags: usize,
    /// Whether the test rejects its hypothesis.
    pub rejects: bool,
}

/// The test of Kolmogorov and Smirnov for two samples: the errors of the predicted windows and those of
/// the fitted windows. An error is divided by the square root of the prediction, because the variance
/// of a count grows with its mean.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DistributionTest {
    /// Maximum difference of the empirical distribution functions.
    pub statistic: f64,
    /// Number of independent windows in both samples, as far as the autocorrelation shows.
    pub effective_windows: [f64; 2],
    /// Probability of such a difference if the distributions are equal.
    pub p_value: f64,
    /// Whether the test rejects its hypothesis at 5 %.
    pub rejects: bool,
}

impl HeldOut {
    /// Returns `None` if a column does not vary in the windows of the fit.
    pub(super) fn of(columns: &Columns, choice: IntervalChoice) -> Option<Self> {
        let fitted_windows = columns.len() * 2 / 3;
        let (fitted, held_out) =
            (columns.slice(0..fitted_windows), columns.slice(fitted_windows..columns.len()));
        let model = Model::fit(&fitted, choice)?;
        let (queries, observed) = (held_out.rates(Symbol::Queries), held_out.rates(Symbol::Verified));
        let errors = Errors::of(&model, &held_out);
        let observed_mean = mean(observed);
        let (a, b) = model.chain.compose();
        Some(Self {
            fitted_windows,
            predicted_windows: held_out.len(),
            observed_mean,
            predicted_mean: mean(&errors.predictions),
            relative_bias: mean(&errors.errors) / observed_mean,
            relative_error: mean(&errors.errors.iter().map(|error| error.abs()).collect::<Vec<_>>())
                / observed_mean,
            r_squared: explained_share(queries, observed, a, b),
            bias_test: BiasTest::of(&errors.errors, model.prediction_variance(mean(queries))),
            distribution_test: DistributionTest::of(&Errors::of(&model, &fitted), &errors),
            pairs: errors.predictions.iter().copied().zip(observed.iter().copied()).collect(),
        })
    }

    /// Returns the results of both tests in words, and whether they disagree.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.bias_test.rejects, self.distribution_test.rejects) {
            (false, false) => "Neither test finds a difference between predictions and observations.",
            (true, true) => "Both tests find a difference between predictions and observations.",
            (true, false) => {
                "The tests disagree: the predictions have a bias, but the distribution of their errors is like that of the fit."
            }
            (false, true) => {
                "The tests disagree: the predictions have no bias, but the distribution of their errors differs from that of the fit."
            }
        }
    }
}

/// Errors of predictions, in the order of the windows.
struct Errors {
    predictions: Vec<f64>,
    /// Observed minus predicted S_v.
    errors: Vec<f64>,
}

impl Errors {
    fn of(model: &Model, columns: &Columns) -> Self {
        let (a, b) = model.chain.compose();
        let predictions: Vec<f64> =
            columns.rates(Symbol::Queries).iter().map(|queries| a * queries + b).collect();
        let observed = columns.rates(Symbol::Verified);
        let errors =
            observed.iter().zip(&predictions).map(|(observed, predicted)| observed - predicted).collect();
        Self { predictions, errors }
    }

    /// Errors divided by the square root of the prediction. A prediction that is not positive has no
    /// such error.
    fn scaled(&self) -> Vec<f64> {
        let pairs = self.errors.iter().zip(&self.predictions).filter(|(_, predicted)| **predicted > 0.0);
        pairs.map(|(error, predicted)| error / predicted.sqrt()).collect()
    }
}

impl BiasTest {
    /// `model_variance`: the variance of the mean prediction that the errors of the parameters cause.
    fn of(errors: &[f64], model_variance: f64) -> Self {
        let (count, bias) = (errors.len() as f64, mean(errors));
        let lags = recommended_lags(errors.len());
        let centred: Vec<f64> = errors.iter().map(|error| error - bias).collect();
        let variance = long_run_variance(&centred, lags) / (count * (count - 1.0)) + model_variance;
        let (statistic, critical) = (bias / variance.sqrt(), fixed_b_critical(lags, errors.len()));
        Self { statistic, critical, lags, rejects: statistic.abs() > critical }
    }
}

impl DistributionTest {
    fn of(fitted: &Errors, predicted: &Errors) -> Self {
        let samples = [fitted.scaled(), predicted.scaled()];
        let effective_windows = [effective_count(&samples[0]), effective_count(&samples[1])];
        let statistic = greatest_difference(&samples[0], &samples[1]);
        let [one, other] = effective_windows;
        let root = (one * other / (one + other)).sqrt();
        // The correction of Stephens (Journal of the Royal Statistical Society B 32, 1970) for few
        // values.
        let p_value = kolmogorov_upper((root + 0.12 + 0.11 / root) * statistic);
        Self { statistic, effective_windows, p_value, rejects: p_value < LEVEL }
    }
}

/// Returns the number of independent values with the same information about the mean as a
/// series with this autocorrelation at lag 1.
fn effective_count(series: &[f64]) -> f64 {
    let middle = mean(series);
    let centred: Vec<f64> = series.iter().map(|value| value - middle).collect();
    let correlation = autocorrelation(&centred, 1);
    let correlation = if correlation.is_nan() { 0.0 } else { correlation.clamp(0.0, 0.99) };
    series.len() as f64 * (1.0 - correlation) / (1.0 + correlation)
}

/// Returns the maximum difference of the empirical distribution functions of two samples.
fn greatest_difference(one: &[f64], other: &[f64]) -> f64 {
    let mut values: Vec<(f64, bool)> =
        one.iter().map(|value| (*value, true)).chain(other.iter().map(|value| (*value, false))).collect();
    values.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut below, mut greatest) = ([0.0, 0.0], 0.0_f64);
    for (place, (value, is_first)) in values.iter().enumerate() {
        if *is_first {
            below[0] += 1.0 / one.len() as f64;
        } else {
            below[1] += 1.0 / other.len() as f64;
        }
        // Between equal values, the functions have no difference that counts.
        if values.get(place + 1).is_none_or(|(next, _)| next > value) {
            greatest = greatest.max((below[0] - below[1]).abs());
        }
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_distributions_is_the_greatest() {
        assert_eq!(greatest_difference(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 4.0]), 0.0);
        assert_eq!(greatest_difference(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert!((greatest_difference(&[1.0, 2.0, 3.0, 4.0], &[2.0, 2.0, 5.0, 6.0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn autocorrelated_values_count_less() {
        let alternating: Vec<f64> = (0..100).map(|index| f64::from(index % 2)).collect();
        assert_eq!(effective_count(&alternating), 100.0);
        let trend: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(effective_count(&trend) < 5.0);
        assert_eq!(effective_count(&[3.0; 10]), 10.0);
    }
}
