//! Criterion II: whether the parameters are stable over time. The windows are divided into slices, and
//! the model is fitted to each.

use crate::cost_model::columns::Columns;
use crate::cost_model::model::{Estimate, IntervalChoice, Model};
use crate::cost_model::residuals::TestResult;
use serde::Serialize;

/// Minimum number of windows of a slice. With fewer, Cochran's Q rejects equal values too often if
/// residuals are autocorrelated.
const MIN_SLICE_WINDOWS: usize = 120;
/// Maximum number of slices.
const MAX_SLICES: usize = 6;
/// Half of the length of a 95 % interval of a normal value, in standard errors.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// The model in slices of the time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stability {
    /// The slices, in the order of time; empty if there are too few windows for two.
    pub slices: Vec<Slice>,
    /// The drift of each parameter between slices.
    pub drifts: Vec<Drift>,
}

/// A slice of the time.
#[derive(Clone, Debug, Serialize)]
pub struct Slice {
    /// Start of the first window, in microseconds since 1970.
    pub start: u64,
    /// Number of windows.
    pub windows: usize,
    /// r, α_s, s, α_v and a.
    pub parameters: Vec<Estimate>,
}

/// The drift of a parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    /// r, α_s, s, α_v or a.
    pub parameter: &'static str,
    /// Minimum of the slices.
    pub minimum: f64,
    /// Maximum of the slices.
    pub maximum: f64,
    /// Difference of maximum and minimum, as a share of the mean of the slices.
    pub relative: f64,
    /// Cochran's Q: all slices have the same value.
    pub test: TestResult,
}

impl Stability {
    pub(super) fn of(columns: &Columns, choice: IntervalChoice) -> Self {
        let count = (columns.len() / MIN_SLICE_WINDOWS).min(MAX_SLICES);
        if count < 2 {
            return Self::default();
        }
        let bounds = |index: usize| columns.len() * index / count;
        let parts = (0..count).map(|index| columns.slice(bounds(index)..bounds(index + 1)));
        let models: Option<Vec<(Columns, Model)>> = parts
            .map(|part| {
                let model = Model::fit(&part, choice)?;
                Some((part, model))
            })
            .collect();
        // A slice can be without variation, for example without queries at night.
        let Some(models) = models else { return Self::default() };
        let slice = |(part, model): &(Columns, Model)| Slice {
            start: part.starts[0],
            windows: part.len(),
            parameters: model.slopes().map(|(_, estimate)| estimate).collect(),
        };
        let slices: Vec<Slice> = models.iter().map(slice).collect();
        let names = models[0].1.slopes().map(|(name, _)| name).enumerate();
        let drifts = names.map(|(place, parameter)| drift(parameter, &values(&slices, place))).collect();
        Self { slices, drifts }
    }
}

fn values(slices: &[Slice], place: usize) -> Vec<Estimate> {
    slices.iter().map(|slice| slice.parameters[place]).collect()
}

fn drift(parameter: &'static str, values: &[Estimate]) -> Drift {
    let numbers = || values.iter().map(|estimate| estimate.value);
    let (minimum, maximum) =
        (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
    let mean = numbers().sum::<f64>() / values.len() as f64;
    Drift { parameter, minimum, maximum, relative: (maximum - minimum) / mean.abs(), test: cochran(values) }
}

/// Cochran's Q (Biometrics 10, 1954): the sum of the squared differences from the weighted mean, in
/// standard errors. It has a chi-squared distribution if all values are equal.
///
/// The standard error is that of the interval, so it contains the correction for few windows.
pub(super) fn cochran(values: &[Estimate]) -> TestResult {
    let weights: Vec<f64> =
        values.iter().map(|estimate| (NORMAL_QUANTILE / estimate.half()).powi(2)).collect();
    let weighted: f64 = weights.iter().zip(values).map(|(weight, estimate)| weight * estimate.value).sum();
    let mean = weighted / weights.iter().sum::<f64>();
    let squares =
        weights.iter().zip(values).map(|(weight, estimate)| weight * (estimate.value - mean).powi(2));
    TestResult::chi_squared(squares.sum(), values.len().saturating_sub(1) as f64)
}
