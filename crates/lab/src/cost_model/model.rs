//! The model: four lines f1 to f4 and their composition f, with confidence intervals.

use super::columns::{Columns, Symbol};
use super::distribution::student_quantile;
use super::regression::{
    Estimator, LINE_PARAMETERS, Line, covariance, fixed_b_critical, recommended_lags, variance_of,
};
use super::residuals::{LEVEL, ResidualTests};
use serde::Serialize;

/// Number of parameters of the four lines.
pub(crate) const PARAMETERS: usize = 8;

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimated value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    fn of(value: f64, variance: f64, critical: f64) -> Self {
        let half = critical * variance.max(0.0).sqrt();
        Self { value, low: value - half, high: value + half }
    }

    /// Whether the interval contains a value.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of the length of the interval.
    pub(crate) fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// How the user wants confidence intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalChoice {
    /// Least squares where the tests of the residuals permit it, otherwise Newey and West.
    #[default]
    Automatic,
    /// Least squares, whatever the residuals are.
    LeastSquares,
    /// Newey and West, with this number of lags; `None`: 1.3 √n.
    NeweyWest(Option<u16>),
}

/// How confidence intervals were computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// For independent residuals of equal variance, with quantiles of Student's t distribution.
    LeastSquares,
    /// Newey and West, prewhitened, with the critical values of Kiefer and Vogelsang for this ratio of
    /// lags to windows.
    NeweyWest {
        /// The last lag with a positive weight.
        lags: usize,
    },
}

impl IntervalMethod {
    fn choose(choice: IntervalChoice, permits_least_squares: bool, windows: usize) -> Self {
        let most = windows / 2;
        match choice {
            IntervalChoice::LeastSquares => Self::LeastSquares,
            IntervalChoice::Automatic if permits_least_squares => Self::LeastSquares,
            IntervalChoice::NeweyWest(Some(lags)) => Self::NeweyWest { lags: usize::from(lags).min(most) },
            IntervalChoice::Automatic | IntervalChoice::NeweyWest(None) => {
                Self::NeweyWest { lags: recommended_lags(windows).min(most) }
            }
        }
    }

    const fn estimator(self) -> Estimator {
        match self {
            Self::LeastSquares => Estimator::Independent,
            Self::NeweyWest { lags } => Estimator::Prewhitened(lags),
        }
    }

    /// Returns the factor from the standard error to half of the interval.
    fn critical(self, windows: usize) -> f64 {
        match self {
            Self::LeastSquares => student_quantile(LEVEL, (windows - LINE_PARAMETERS) as f64),
            Self::NeweyWest { lags } => fixed_b_critical(lags, windows),
        }
    }

    /// Returns the name for tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::LeastSquares => "least squares".to_owned(),
            Self::NeweyWest { lags } => format!("HAC (Newey-West, prewhitened, {lags} lags)"),
        }
    }
}

/// One of the lines f1 to f4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the names are those of document 000
pub enum LineName {
    F1,
    F2,
    F3,
    F4,
}

impl LineName {
    /// All lines.
    pub const ALL: [Self; 4] = [Self::F1, Self::F2, Self::F3, Self::F4];

    /// Returns the symbols at the axes: from which one the line predicts which one.
    #[must_use]
    pub const fn symbols(self) -> (Symbol, Symbol) {
        let place = self as usize;
        (Symbol::ALL[place], Symbol::ALL[place + 1])
    }

    /// Returns the names of slope and intercept in document 000.
    #[must_use]
    pub const fn parameters(self) -> (&'static str, &'static str) {
        [("r", "β1"), ("α_s", "β2"), ("s", "β3"), ("α_v", "β4")][self as usize]
    }

    /// Returns the meaning of the slope.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        [
            "responses for each query",
            "share of responses with signatures",
            "signatures in each response with signatures",
            "share of signatures that is verified",
        ][self as usize]
    }

    /// Returns the name and the equation: `f1: R = r·Q + β1`.
    #[must_use]
    pub fn equation(self) -> String {
        let (from, to) = self.symbols();
        let (slope, intercept) = self.parameters();
        format!("f{}: {} = {slope}·{} + {intercept}", self as usize + 1, to.letter(), from.letter())
    }
}

/// A fitted line.
#[derive(Clone, Debug, Serialize)]
pub struct FittedLine {
    /// Name.
    pub line: LineName,
    /// r, α_s, s or α_v.
    pub slope: Estimate,
    /// β1 to β4, in events per second.
    pub intercept: Estimate,
    /// Share of the variance that the line explains.
    pub r_squared: f64,
    /// Tests of the residuals.
    pub tests: ResidualTests,
    /// How the intervals were computed.
    pub intervals: IntervalMethod,
    /// Observed minus fitted values, in events per second, in the order of the windows.
    #[serde(skip)]
    pub(crate) residuals: Vec<f64>,
}

/// The composed line f: S_v = a·Q + b.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ComposedLine {
    /// a: verified signatures for each query. The interval is that of the delta method, with the
    /// covariances of all parameters.
    pub slope: Estimate,
    /// b: verified signatures per second without queries.
    pub intercept: Estimate,
    /// How the covariances of the parameters were computed.
    pub intervals: IntervalMethod,
    /// Slope of a line that is fitted to S_v and Q directly, for comparison.
    pub direct_slope: f64,
    /// Intercept of this line.
    pub direct_intercept: f64,
    /// Share of the variance of S_v that the composed line explains.
    pub r_squared: f64,
}

/// The fitted model of a resolver.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// f1 to f4.
    pub lines: Vec<FittedLine>,
    /// f.
    pub composed: ComposedLine,
    /// Number of windows.
    pub windows: usize,
    #[serde(skip)]
    pub(crate) chain: Chain,
    #[serde(skip)]
    pub(crate) covariance: Vec<Vec<f64>>,
    #[serde(skip)]
    critical: f64,
}

/// The parameters of the four lines: r, β1, α_s, β2, s, β3, α_v, β4.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Chain(pub(crate) [f64; PARAMETERS]);

impl Chain {
    /// Returns a and b of f.
    pub(crate) fn compose(&self) -> (f64, f64) {
        let [r, beta1, alpha_s, beta2, s, beta3, alpha_v, beta4] = self.0;
        (alpha_v * s * alpha_s * r, alpha_v * (s * (alpha_s * beta1 + beta2) + beta3) + beta4)
    }

    /// Returns the derivatives of a and of b with respect to the parameters.
    fn gradients(&self) -> [[f64; PARAMETERS]; 2] {
        let [r, beta1, alpha_s, beta2, s, beta3, alpha_v, _] = self.0;
        let signed = alpha_s * beta1 + beta2;
        let slope = [
            alpha_v * s * alpha_s,
            0.0,
            alpha_v * s * r,
            0.0,
            alpha_v * alpha_s * r,
            0.0,
            s * alpha_s * r,
            0.0,
        ];
        let intercept = [
            0.0,
            alpha_v * s * alpha_s,
            alpha_v * s * beta1,
            alpha_v * s,
            alpha_v * signed,
            alpha_v,
            s * signed + beta3,
            1.0,
        ];
        [slope, intercept]
    }

    /// Returns the chain with another share of signed responses.
    pub(crate) fn with_signed_share(mut self, alpha_s: f64) -> Self {
        self.0[2] = alpha_s;
        self
    }

    /// α_s.
    pub(crate) const fn signed_share(&self) -> f64 {
        self.0[2]
    }
}

impl Model {
    /// Fits the four lines and composes them.
    ///
    /// Returns `None` if a column does not vary in these windows.
    pub(crate) fn fit(columns: &Columns, choice: IntervalChoice) -> Option<Self> {
        let windows = columns.len();
        let mut lines = Vec::new();
        let mut fitted = Vec::new();
        for name in LineName::ALL {
            let (from, to) = name.symbols();
            let line = Line::fit(columns.rates(from), columns.rates(to))?;
            fitted.push(fitted_line(name, &line, columns.rates(from), choice, windows));
            lines.push(line);
        }
        let permits_least_squares = fitted.iter().all(|line| line.tests.permit_least_squares());
        let intervals = IntervalMethod::choose(choice, permits_least_squares, windows);
        let covariance = covariance(&lines.iter().collect::<Vec<_>>(), intervals.estimator());
        let mut parameters = [0.0; PARAMETERS];
        for (place, line) in lines.iter().enumerate() {
            (parameters[2 * place], parameters[2 * place + 1]) = (line.slope, line.intercept);
        }
        let (chain, critical) = (Chain(parameters), intervals.critical(windows));
        let (a, b) = chain.compose();
        let [slope, intercept] = chain.gradients().map(|weights| variance_of(&weights, &covariance));
        let (queries, verified) = (columns.rates(Symbol::Queries), columns.rates(Symbol::Verified));
        let direct = Line::fit(queries, verified)?;
        let composed = ComposedLine {
            slope: Estimate::of(a, slope, critical),
            intercept: Estimate::of(b, intercept, critical),
            intervals,
            direct_slope: direct.slope,
            direct_intercept: direct.intercept,
            r_squared: explained_share(queries, verified, a, b),
        };
        Some(Self { lines: fitted, composed, windows, chain, covariance, critical })
    }

    /// Returns the slopes r, α_s, s, α_v of the lines, and a of f, with their names.
    pub(crate) fn slopes(&self) -> impl Iterator<Item = (&'static str, Estimate)> {
        let lines = self.lines.iter().map(|line| (line.line.parameters().0, line.slope));
        lines.chain([("a", self.composed.slope)])
    }

    /// Returns S_v for Q queries per second, with the interval of its expected value. With a
    /// `signed_share`, it replaces α_s; this number has no error then.
    pub(crate) fn predict(&self, queries: f64, signed_share: Option<f64>) -> Estimate {
        let chain = signed_share.map_or(self.chain, |share| self.chain.with_signed_share(share));
        let (a, b) = chain.compose();
        let mut weights = self.prediction_weights(&chain, queries);
        if signed_share.is_some() {
            weights[2] = 0.0;
        }
        Estimate::of(a * queries + b, variance_of(&weights, &self.covariance), self.critical)
    }

    /// Returns the variance of the prediction for Q queries per second that the errors of the
    /// parameters cause.
    pub(crate) fn prediction_variance(&self, queries: f64) -> f64 {
        variance_of(&self.prediction_weights(&self.chain, queries), &self.covariance)
    }

    fn prediction_weights(&self, chain: &Chain, queries: f64) -> [f64; PARAMETERS] {
        let [slope, intercept] = chain.gradients();
        std::array::from_fn(|place| queries * slope[place] + intercept[place])
    }
}

fn fitted_line(
    name: LineName,
    line: &Line,
    positions: &[f64],
    choice: IntervalChoice,
    windows: usize,
) -> FittedLine {
    let tests = ResidualTests::of(positions, line);
    let intervals = IntervalMethod::choose(choice, tests.permit_least_squares(), windows);
    let covariance = covariance(&[line], intervals.estimator());
    let critical = intervals.critical(windows);
    FittedLine {
        line: name,
        slope: Estimate::of(line.slope, covariance[0][0], critical),
        intercept: Estimate::of(line.intercept, covariance[1][1], critical),
        r_squared: line.r_squared,
        tests,
        intervals,
        residuals: line.residuals.clone(),
    }
}

/// Returns the share of the variance of `values` that the line a·x + b explains.
pub(super) fn explained_share(positions: &[f64], values: &[f64], a: f64, b: f64) -> f64 {
    let mean = super::regression::mean(values);
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let left: f64 = positions.iter().zip(values).map(|(x, value)| (value - a * x - b).powi(2)).sum();
    1.0 - left / all
}

#[cfg(test)]
mod tests;
