//! Least-squares lines, and the covariance of their parameters: under independent residuals of equal
//! variance, or by the estimator of Newey and West (1987).
//!
//! A parameter of a line is a weighted sum of the observations, so its error is the same sum of the
//! residuals. The products of weights and residuals are the contributions of the windows. All
//! covariances, also those between the parameters of several lines, follow from the weights and the
//! contributions.

use std::iter::zip;

/// Number of parameters of a line.
pub(super) const LINE_PARAMETERS: usize = 2;

/// The least-squares line through points.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) intercept: f64,
    /// Coefficient of determination; NaN if all values are equal.
    pub(super) r_squared: f64,
    pub(super) residuals: Vec<f64>,
    /// Weights of the values in the slope and in the intercept.
    weights: [Vec<f64>; LINE_PARAMETERS],
}

impl Line {
    /// Fits the line. Returns `None` for fewer than three points, if all positions are equal, or if a
    /// number is not finite.
    pub(super) fn fit(positions: &[f64], values: &[f64]) -> Option<Self> {
        let is_finite = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        if positions.len() != values.len()
            || positions.len() < 3
            || !is_finite(positions)
            || !is_finite(values)
        {
            return None;
        }
        let count = positions.len() as f64;
        let (x_mean, y_mean) = (mean(positions), mean(values));
        // Sums of centred numbers keep the digits that sums of squares of large numbers lose.
        let x: Vec<f64> = positions.iter().map(|x| x - x_mean).collect();
        let y: Vec<f64> = values.iter().map(|y| y - y_mean).collect();
        let x_squares = dot(&x, &x);
        if x_squares.sqrt() <= f64::EPSILON * 16.0 * x_mean.abs() * count.sqrt() {
            return None;
        }
        let slope = dot(&x, &y) / x_squares;
        let residuals: Vec<f64> = zip(&x, &y).map(|(x, y)| y - slope * x).collect();
        let slope_weights: Vec<f64> = x.iter().map(|x| x / x_squares).collect();
        let intercept_weights = slope_weights.iter().map(|weight| 1.0 / count - x_mean * weight).collect();
        Some(Self {
            slope,
            intercept: y_mean - slope * x_mean,
            r_squared: 1.0 - dot(&residuals, &residuals) / dot(&y, &y),
            residuals,
            weights: [slope_weights, intercept_weights],
        })
    }

    /// Degrees of freedom of the residuals.
    pub(super) fn freedom(&self) -> f64 {
        (self.residuals.len() - LINE_PARAMETERS) as f64
    }

    /// Returns the contributions of the windows to the error of a parameter: 0 the slope, 1 the
    /// intercept.
    fn contributions(&self, parameter: usize) -> Vec<f64> {
        zip(&self.weights[parameter], &self.residuals).map(|(weight, residual)| weight * residual).collect()
    }
}

/// The estimator of the covariance of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimator {
    /// For independent residuals of equal variance.
    Independent,
    /// Newey and West, with this number of lags.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests compare it with statsmodels"))]
    NeweyWest(usize),
    /// The same, of contributions without their autocorrelation at lag 1, which is then restored (Andrews
    /// and Monahan, Econometrica 60(4), 1992). It is less biased if the autocorrelation is positive.
    Prewhitened(usize),
}

/// Returns the covariance matrix of the parameters of lines over the same windows: slope and
/// intercept of the first line, of the second, and so on.
///
/// Newey and West: the Bartlett kernel with weights 1 - l / (lags + 1), and the correction n / (n - 2)
/// for the degrees of freedom (`statsmodels`: `cov_type="HAC"`, `use_correction=True`).
pub(super) fn covariance(lines: &[&Line], estimator: Estimator) -> Vec<Vec<f64>> {
    let parameters: Vec<(&Line, usize)> =
        lines.iter().flat_map(|line| (0..LINE_PARAMETERS).map(move |parameter| (*line, parameter))).collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let freedom = first.freedom();
    let entry: Box<dyn Fn(usize, usize) -> f64> = match estimator {
        Estimator::Independent => Box::new(|row: usize, column: usize| {
            let ((one, of_one), (other, of_other)) = (parameters[row], parameters[column]);
            let residual_covariance = dot(&one.residuals, &other.residuals) / freedom;
            residual_covariance * dot(&one.weights[of_one], &other.weights[of_other])
        }),
        Estimator::NeweyWest(lags) | Estimator::Prewhitened(lags) => {
            let is_prewhitened = matches!(estimator, Estimator::Prewhitened(_));
            let sums: Vec<Vec<f64>> = parameters
                .iter()
                .map(|(line, parameter)| {
                    let contributions = line.contributions(*parameter);
                    let series = if is_prewhitened { prewhitened(&contributions) } else { contributions };
                    block_sums(&series, lags + 1)
                })
                .collect();
            let correction = (freedom + LINE_PARAMETERS as f64) / freedom / (lags + 1) as f64;
            Box::new(move |row: usize, column: usize| dot(&sums[row], &sums[column]) * correction)
        }
    };
    (0..parameters.len())
        .map(|row| (0..parameters.len()).map(|column| entry(row, column)).collect())
        .collect()
}

/// Maximum autocorrelation at lag 1 that prewhitening removes, as Andrews and Monahan recommend.
const MAX_CORRELATION: f64 = 0.97;

/// Returns a series without its autocorrelation at lag 1, scaled so that its long-run variance is that
/// of the series.
fn prewhitened(series: &[f64]) -> Vec<f64> {
    let correlation = dot(series.get(1..).unwrap_or_default(), series) / dot(series, series);
    // All contributions are 0 if all points are on the line.
    let correlation =
        if correlation.is_nan() { 0.0 } else { correlation.clamp(-MAX_CORRELATION, MAX_CORRELATION) };
    let first = series.iter().take(1).map(|value| value * (1.0 - correlation * correlation).sqrt());
    let others = series.windows(2).map(|pair| pair[1] - correlation * pair[0]);
    first.chain(others).map(|value| value / (1.0 - correlation)).collect()
}

/// Returns the variance of the sum of a series by Newey and West, without correction for degrees of
/// freedom.
pub(super) fn long_run_variance(series: &[f64], lags: usize) -> f64 {
    let sums = block_sums(series, lags + 1);
    dot(&sums, &sums) / (lags + 1) as f64
}

/// Returns the sums of all blocks of adjacent numbers of this length. Blocks that overlap only the
/// start or the end of the series are included.
///
/// The sum of their squares, divided by the length, is the sum of the autocovariances with the weights
/// of the Bartlett kernel. This takes time that does not depend on the number of lags.
fn block_sums(series: &[f64], length: usize) -> Vec<f64> {
    let mut totals = Vec::with_capacity(series.len() + 1);
    totals.push(0.0);
    let mut total = 0.0;
    totals.extend(series.iter().map(|number| {
        total += number;
        total
    }));
    let count = series.len();
    (1..count + length).map(|end| totals[end.min(count)] - totals[end.saturating_sub(length)]).collect()
}

/// Number of lags that Lazarus, Lewis, Stock and Watson recommend (Journal of Business and Economic
/// Statistics 36(4), 2018): a truncation parameter of 1.3 √n, which is one more than the last lag with
/// a positive weight.
pub(super) fn recommended_lags(windows: usize) -> usize {
    (1.3 * (windows as f64).sqrt()).ceil() as usize - 1
}

/// Returns the critical value of a two-sided test at 5 % with a variance by Newey and West.
///
/// It takes the ratio of lags to windows into account, as Kiefer and Vogelsang found (Econometric
/// Theory 21(6), 2005, table 1, Bartlett kernel). With the value of the normal distribution, 1.96,
/// intervals would hold the truth too rarely.
pub(super) fn fixed_b_critical(lags: usize, windows: usize) -> f64 {
    let b = ((lags + 1) as f64 / windows as f64).min(1.0);
    1.9600 + b * (2.9694 + b * (0.4160 - 0.5324 * b))
}

/// Returns the variance of a weighted sum of parameters.
pub(super) fn variance_of(weights: &[f64], covariance: &[Vec<f64>]) -> f64 {
    zip(weights, covariance).map(|(weight, row)| weight * dot(row, weights)).sum()
}

pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    zip(one, other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests;
