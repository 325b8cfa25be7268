//! Tests of the residuals of a line: whether they are independent, have equal variance, and are
//! normal.

use super::distribution::chi_squared_upper;
use super::regression::{Line, dot, mean};
use serde::Serialize;

/// Level below which a test rejects its hypothesis.
pub(super) const LEVEL: f64 = 0.05;
/// Maximum number of autocorrelations in the test of Ljung and Box.
const MAX_AUTOCORRELATIONS: usize = 10;

/// The result of a statistical test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TestResult {
    /// The test statistic.
    pub statistic: f64,
    /// Degrees of freedom of its distribution under the hypothesis.
    pub freedom: f64,
    /// Probability of a statistic at least as extreme under the hypothesis; NaN if there are no
    /// residuals to test, because all points are on the line.
    pub p_value: f64,
}

impl TestResult {
    /// The result of a statistic with the chi-squared distribution.
    pub(super) fn chi_squared(statistic: f64, freedom: f64) -> Self {
        Self { statistic, freedom, p_value: chi_squared_upper(statistic, freedom) }
    }

    /// Whether the test rejects its hypothesis at 5 %.
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.p_value < LEVEL
    }
}

/// Tests of the residuals of a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResidualTests {
    /// Ljung and Box: the residuals have no autocorrelation, at lags up to 10 or a fifth of the windows.
    pub ljung_box: TestResult,
    /// The statistic of Durbin and Watson: about 2 without autocorrelation at lag 1.
    pub durbin_watson: f64,
    /// Breusch and Pagan, in the form of Koenker: the variance does not depend on the position.
    pub breusch_pagan: TestResult,
    /// Jarque and Bera: the residuals are normal.
    pub jarque_bera: TestResult,
}

impl ResidualTests {
    pub(super) fn of(positions: &[f64], line: &Line) -> Self {
        Self {
            ljung_box: ljung_box(&line.residuals),
            durbin_watson: durbin_watson(&line.residuals),
            breusch_pagan: breusch_pagan(positions, &line.residuals),
            jarque_bera: jarque_bera(&line.residuals),
        }
    }

    /// Whether the residuals are independent and have equal variance, as far as the tests show.
    pub(super) fn permit_least_squares(&self) -> bool {
        !self.ljung_box.rejects() && !self.breusch_pagan.rejects()
    }
}

/// Returns the autocorrelation of residuals, which have mean 0.
pub(super) fn autocorrelation(residuals: &[f64], lag: usize) -> f64 {
    dot(residuals.get(lag..).unwrap_or_default(), residuals) / dot(residuals, residuals)
}

fn ljung_box(residuals: &[f64]) -> TestResult {
    let count = residuals.len() as f64;
    let lags = MAX_AUTOCORRELATIONS.min(residuals.len() / 5).max(1);
    let terms = (1..=lags).map(|lag| autocorrelation(residuals, lag).powi(2) / (count - lag as f64));
    TestResult::chi_squared(count * (count + 2.0) * terms.sum::<f64>(), lags as f64)
}

fn durbin_watson(residuals: &[f64]) -> f64 {
    let steps: f64 = residuals.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    steps / dot(residuals, residuals)
}

fn breusch_pagan(positions: &[f64], residuals: &[f64]) -> TestResult {
    let squares: Vec<f64> = residuals.iter().map(|residual| residual * residual).collect();
    let r_squared = Line::fit(positions, &squares).map_or(f64::NAN, |line| line.r_squared);
    TestResult::chi_squared(residuals.len() as f64 * r_squared, 1.0)
}

fn jarque_bera(residuals: &[f64]) -> TestResult {
    let moment =
        |power: i32| mean(&residuals.iter().map(|residual| residual.powi(power)).collect::<Vec<_>>());
    let variance = moment(2);
    let (skewness, kurtosis) = (moment(3) / variance.powf(1.5), moment(4) / (variance * variance));
    let statistic = residuals.len() as f64 / 6.0 * (skewness.powi(2) + (kurtosis - 3.0).powi(2) / 4.0);
    TestResult::chi_squared(statistic, 2.0)
}
