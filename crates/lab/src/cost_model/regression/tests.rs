//! Lines against certified values of NIST, against a second computation from the definition, and
//! against statsmodels.

use super::*;
use crate::cost_model::distribution::student_quantile;
use crate::cost_model::residuals::ResidualTests;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// NIST Statistical Reference Datasets, linear regression, data set Norris: positions and values.
const NORRIS: [(f64, f64); 36] = [
    (0.2, 0.1),
    (337.4, 338.8),
    (118.2, 118.1),
    (884.6, 888.0),
    (10.1, 9.2),
    (226.5, 228.1),
    (666.3, 668.5),
    (996.3, 998.5),
    (448.6, 449.1),
    (777.0, 778.9),
    (558.2, 559.2),
    (0.4, 0.3),
    (0.6, 0.1),
    (775.5, 778.1),
    (666.9, 668.8),
    (338.0, 339.3),
    (447.5, 448.9),
    (11.6, 10.8),
    (556.0, 557.7),
    (228.1, 228.3),
    (995.8, 998.0),
    (887.6, 888.8),
    (120.2, 119.6),
    (0.3, 0.3),
    (0.3, 0.6),
    (556.8, 557.6),
    (339.1, 339.3),
    (887.2, 888.0),
    (999.0, 998.5),
    (779.0, 778.9),
    (11.1, 10.2),
    (118.3, 117.6),
    (229.2, 228.9),
    (669.1, 668.4),
    (448.9, 449.2),
    (0.5, 0.2),
];

fn norris() -> (Vec<f64>, Vec<f64>) {
    NORRIS.into_iter().unzip()
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "found {found:e}, expected {expected:e}");
}

/// The certified values have 15 digits.
#[test]
fn the_line_has_the_certified_values_of_nist() {
    let (x, y) = norris();
    let line = Line::fit(&x, &y).expect("a line");
    near(line.intercept, -0.262323073774029, 1e-12);
    near(line.slope, 1.00211681802045, 1e-13);
    near(line.r_squared, 0.999993745883712, 1e-14);
    near((dot(&line.residuals, &line.residuals) / line.freedom()).sqrt(), 0.884796396144373, 1e-12);
    let covariance = covariance(&[&line], Estimator::Independent);
    near(covariance[0][0].sqrt(), 0.429796848199937e-3, 1e-12);
    near(covariance[1][1].sqrt(), 0.232818234301152, 1e-12);
}

/// Points with autocorrelated residuals whose deviation grows with the position.
fn points(count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut error = 0.0;
    let point = |index: usize| {
        let x = 100.0 + 40.0 * (index as f64 / 30.0).sin() + random.random::<f64>();
        error = 0.6 * error + x / 50.0 * (random.random::<f64>() - 0.5);
        (x, 3.0 + 0.7 * x + error)
    };
    (0..count).map(point).unzip()
}

/// (X'X)⁻¹ S (X'X)⁻¹ with S as the sum over all pairs of windows, from the definition.
#[test]
fn the_covariance_of_newey_and_west_is_that_of_its_definition() {
    let (x, y) = points(90);
    let (line, lags) = (Line::fit(&x, &y).expect("a line"), 6);
    let count = x.len() as f64;
    let (sum, squares) = (x.iter().sum::<f64>(), dot(&x, &x));
    let determinant = count * squares - sum * sum;
    // Rows and columns: slope, intercept.
    let inverse = [[count / determinant, -sum / determinant], [-sum / determinant, squares / determinant]];
    let row = |index: usize| [x[index], 1.0];
    let mut middle = [[0.0; 2]; 2];
    for one in 0..x.len() {
        for other in 0..x.len() {
            let weight = 1.0 - one.abs_diff(other) as f64 / (lags + 1) as f64;
            for (place, entry) in middle.iter_mut().flatten().enumerate() {
                let product = row(one)[place / 2] * row(other)[place % 2];
                *entry += weight.max(0.0) * line.residuals[one] * line.residuals[other] * product;
            }
        }
    }
    let multiply = |a: [[f64; 2]; 2], b: [[f64; 2]; 2]| {
        [0, 1].map(|row| [0, 1].map(|column| a[row][0] * b[0][column] + a[row][1] * b[1][column]))
    };
    let expected = multiply(multiply(inverse, middle), inverse);
    let found = covariance(&[&line], Estimator::NeweyWest(lags));
    for place in 0..4 {
        near(found[place / 2][place % 2], expected[place / 2][place % 2] * count / (count - 2.0), 1e-9);
    }
}

/// With the same line twice, the covariance between both is that of the line.
#[test]
fn covariances_between_lines_are_those_of_their_parameters() {
    let (x, y) = points(60);
    let line = Line::fit(&x, &y).expect("a line");
    for estimator in [Estimator::Independent, Estimator::NeweyWest(4)] {
        let (one, two) = (covariance(&[&line], estimator), covariance(&[&line, &line], estimator));
        for place in 0..16 {
            let (row, column) = (place / 4, place % 4);
            near(two[row][column], one[row % 2][column % 2], 1e-12);
        }
        // The difference of both slopes has no variance.
        assert!(variance_of(&[1.0, 0.0, -1.0, 0.0], &two).abs() < 1e-12 * two[0][0]);
    }
}

#[test]
fn without_variation_or_with_invalid_numbers_there_is_no_line() {
    assert!(Line::fit(&[1.0, 2.0], &[1.0, 2.0]).is_none());
    assert!(Line::fit(&[3e9; 10], &[1.0; 10]).is_none());
    assert!(Line::fit(&[0.0; 10], &[1.0; 10]).is_none());
    assert!(Line::fit(&[1.0, 2.0, f64::NAN], &[1.0; 3]).is_none());
    assert!(Line::fit(&[1.0, 2.0, 3.0], &[1.0, f64::INFINITY, 2.0]).is_none());
    let exact = Line::fit(&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0]).expect("a line");
    assert!((exact.slope - 2.0).abs() < 1e-15 && exact.r_squared > 1.0 - 1e-15);
}

#[test]
fn critical_values_grow_with_the_share_of_lags() {
    assert_eq!(recommended_lags(400), 25);
    assert!((fixed_b_critical(0, 1_000_000) - 1.96).abs() < 1e-5);
    // b = 0.065: Kiefer and Vogelsang's polynomial.
    assert!((fixed_b_critical(25, 400) - 2.154_622_39).abs() < 1e-6);
    assert!(fixed_b_critical(9, 100) > fixed_b_critical(4, 100));
}

/// The program that computes the same figures with statsmodels. It reads the lags and the points.
const STATSMODELS: &str = r#"
import json, sys
import numpy as np, statsmodels.api as sm
from scipy import stats
from statsmodels.stats.diagnostic import acorr_ljungbox, het_breuschpagan
from statsmodels.stats.stattools import durbin_watson, jarque_bera
data = json.load(sys.stdin)
x, y, lags = np.array(data["x"]), np.array(data["y"]), data["lags"]
design = sm.add_constant(x)
plain = sm.OLS(y, design).fit()
robust = sm.OLS(y, design).fit(cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": True})
box = acorr_ljungbox(plain.resid, lags=[10])
pagan = het_breuschpagan(plain.resid, design)
bera = jarque_bera(plain.resid)
ends = plain.conf_int(0.05)
print(json.dumps([plain.params[1], plain.params[0], plain.rsquared, plain.bse[1], plain.bse[0],
    ends[1][0], ends[1][1], ends[0][0], ends[0][1],
    robust.bse[1], robust.bse[0], robust.cov_params()[0][1],
    float(box["lb_stat"].iloc[0]), float(box["lb_pvalue"].iloc[0]), durbin_watson(plain.resid),
    pagan[0], pagan[1], bera[0], bera[1]]))
"#;

#[test]
fn statsmodels_finds_the_same_figures() {
    let imported = Command::new("python3").args(["-c", "import statsmodels"]).stderr(Stdio::null()).status();
    if !imported.is_ok_and(|status| status.success()) {
        nonesuch_testing::record_skip("statsmodels (Python) is not installed");
        return;
    }
    let lags = 8;
    for (x, y) in [points(200), points(1000), norris()] {
        let mut child = Command::new("python3")
            .args(["-c", STATSMODELS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let input = serde_json::json!({ "x": x, "y": y, "lags": lags }).to_string();
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success());
        let expected: Vec<f64> = serde_json::from_slice(&output.stdout).expect("numbers");
        let line = Line::fit(&x, &y).expect("a line");
        let plain = covariance(&[&line], Estimator::Independent);
        let robust = covariance(&[&line], Estimator::NeweyWest(lags));
        let (slope_error, intercept_error) = (plain[0][0].sqrt(), plain[1][1].sqrt());
        let t = student_quantile(0.05, line.freedom());
        let tests = ResidualTests::of(&x, &line);
        let box_lags = tests.ljung_box.freedom;
        let mut found = vec![
            line.slope,
            line.intercept,
            line.r_squared,
            slope_error,
            intercept_error,
            line.slope - t * slope_error,
            line.slope + t * slope_error,
            line.intercept - t * intercept_error,
            line.intercept + t * intercept_error,
            robust[0][0].sqrt(),
            robust[1][1].sqrt(),
            robust[0][1],
            tests.ljung_box.statistic,
            tests.ljung_box.p_value,
            tests.durbin_watson,
            tests.breusch_pagan.statistic,
            tests.breusch_pagan.p_value,
            tests.jarque_bera.statistic,
            tests.jarque_bera.p_value,
        ];
        assert_eq!(found.len(), expected.len());
        if box_lags != 10.0 {
            found[12..14].copy_from_slice(&expected[12..14]);
        }
        for (index, (found, expected)) in zip(&found, &expected).enumerate() {
            let tolerance = 1e-9 * expected.abs() + 1e-12;
            assert!(
                (found - expected).abs() <= tolerance,
                "figure {index}: {found:e}, statsmodels {expected:e}"
            );
        }
    }
}
