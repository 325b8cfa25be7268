//! Tail probabilities and quantiles of the distributions that the tests of the fit need.

use statrs::function::beta::beta_reg;
use statrs::function::gamma::{gamma_ur, ln_gamma};
use std::f64::consts::PI;

/// Maximum number of terms of the series of the Kolmogorov distribution.
const KOLMOGOROV_TERMS: i32 = 200;
/// Maximum number of Newton steps for a quantile. Six are sufficient.
const NEWTON_STEPS: u32 = 60;

/// Returns the probability that a value of Student's t distribution is further from 0 than `t`.
/// NaN if `t` is NaN or `freedom` is not positive.
pub(super) fn student_two_sided(t: f64, freedom: f64) -> f64 {
    let is_valid = !t.is_nan() && freedom.is_finite() && freedom > 0.0;
    if !is_valid {
        return f64::NAN;
    }
    // Abramowitz and Stegun 26.7.1 and 26.5.27.
    beta_reg(freedom / 2.0, 0.5, (freedom / (freedom + t * t)).clamp(0.0, 1.0))
}

/// Returns the positive value that a value of Student's t distribution exceeds in size with the
/// `probability`, which is below 0.3.
pub(super) fn student_quantile(probability: f64, freedom: f64) -> f64 {
    let scale = (ln_gamma((freedom + 1.0) / 2.0) - ln_gamma(freedom / 2.0)).exp() / (freedom * PI).sqrt();
    let density = |t: f64| scale * (1.0 + t * t / freedom).powf(-(freedom + 1.0) / 2.0);
    // The tail is convex, so Newton's method approaches the quantile from below.
    let mut t = 1.0;
    for _ in 0..NEWTON_STEPS {
        let step = (student_two_sided(t, freedom) - probability) / (2.0 * density(t));
        t += step;
        if step.abs() <= 1e-15 * t {
            break;
        }
    }
    t
}

/// Returns the probability that a value of the chi-squared distribution exceeds `value`.
pub(super) fn chi_squared_upper(value: f64, freedom: f64) -> f64 {
    let is_valid = !value.is_nan() && freedom.is_finite() && freedom > 0.0;
    match value {
        _ if !is_valid => f64::NAN,
        _ if value <= 0.0 => 1.0,
        _ if value.is_infinite() => 0.0,
        _ => gamma_ur(freedom / 2.0, value / 2.0),
    }
}

/// Returns the probability that a value of the Kolmogorov distribution exceeds `lambda`.
pub(super) fn kolmogorov_upper(lambda: f64) -> f64 {
    if lambda.is_nan() {
        return f64::NAN;
    }
    // The probability differs from 1 by less than 1e-12, and the series converges slowly.
    if lambda < 0.2 {
        return 1.0;
    }
    let term = |index: i32| {
        let sign = if index % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(index).powi(2) * lambda * lambda).exp()
    };
    (1..=KOLMOGOROV_TERMS).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-11 * expected.abs().max(1e-3), "{found} {expected}");
    }

    /// t(0.975) with 1 and 2 degrees of freedom has a closed form; the others are tabulated values
    /// (NIST/SEMATECH e-Handbook, section 1.3.6.7.2), with three decimals.
    #[test]
    fn quantiles_of_student() {
        near(student_quantile(0.05, 1.0), (PI * 0.475).tan());
        near(student_quantile(0.05, 2.0), 0.95 * (2.0_f64 / (1.0 - 0.95 * 0.95)).sqrt());
        for (freedom, expected) in [(5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (100.0, 1.984)] {
            assert!((student_quantile(0.05, freedom) - expected).abs() < 5e-4, "{freedom}");
        }
        for freedom in [1.0, 3.0, 34.0, 500.0, 100_000.0] {
            near(student_two_sided(student_quantile(0.05, freedom), freedom), 0.05);
            near(student_two_sided(student_quantile(0.01, freedom), freedom), 0.01);
        }
    }

    /// With 2 degrees of freedom, the tail is exp(-x/2); with 4, (1 + x/2) exp(-x/2).
    #[test]
    fn tails_of_chi_squared() {
        for value in [0.1, 1.0, 5.991_464_547_107_979, 30.0] {
            near(chi_squared_upper(value, 2.0), (-value / 2.0).exp());
            near(chi_squared_upper(value, 4.0), (1.0 + value / 2.0) * (-value / 2.0).exp());
        }
        near(chi_squared_upper(3.841_458_820_694_124, 1.0), 0.05);
        assert_eq!(chi_squared_upper(0.0, 1.0), 1.0);
        assert_eq!(chi_squared_upper(f64::INFINITY, 1.0), 0.0);
        assert!(chi_squared_upper(f64::NAN, 1.0).is_nan() && student_two_sided(f64::NAN, 3.0).is_nan());
    }

    #[test]
    fn known_values_of_the_kolmogorov_distribution() {
        // Smirnov's table (1948): K(1.36) = 0.950514, K(1.63) = 0.990154, K(0.50) = 0.036055.
        for (lambda, expected) in [(1.36, 0.049_486), (1.63, 0.009_846), (0.5, 0.963_945)] {
            assert!((kolmogorov_upper(lambda) - expected).abs() < 1e-6, "{lambda}");
        }
        assert_eq!((kolmogorov_upper(0.0), kolmogorov_upper(f64::INFINITY)), (1.0, 0.0));
    }
}
