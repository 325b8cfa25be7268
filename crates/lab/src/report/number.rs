//! Formatting of figures: about three significant digits, with commas between thousands.

/// Maximum number of decimals of a figure.
const DECIMALS_MAX: f64 = 15.0;

/// Formats a figure with three decimals below 1, two below 10, one below 100, and none above:
/// `0.123`, `1.23`, `12.3`, `123`, `12,345`. The measurements do not justify more digits. A figure
/// below 0.001 has two significant digits. Zero is `0`; infinite values and NaN are `–`.
#[must_use]
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        // Rounding reaches the next power of ten at these bounds.
        _ if size == 0.0 => 0,
        _ if size < 0.000_95 => (1.0 - size.log10().floor()).min(DECIMALS_MAX) as usize,
        _ if size < 0.999_5 => 3,
        _ if size < 9.995 => 2,
        _ if size < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if decimals > 0 { text } else { grouped(value.round() as i64) }
}

/// Formats a ratio: from 10 upwards as [`figure`] does, with two decimals from 0.1, three from
/// 0.01, and four below.
pub(crate) fn ratio(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !value.is_finite() || size >= 9.995 => return figure(value),
        // Rounding reaches the next power of ten at these bounds.
        _ if size == 0.0 || size >= 0.0995 => 2,
        _ if size >= 0.009_95 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// Formats a time: in seconds below two minutes, in minutes below two hours, otherwise in hours.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 7200.0 => format!("{} h", figure(seconds / 3600.0)),
        _ if seconds >= 120.0 => format!("{} min", figure(seconds / 60.0)),
        _ => format!("{} s", figure(seconds)),
    }
}

/// Formats an integer with commas between thousands.
#[must_use]
pub fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_have_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.012_3, "0.012"),
            (0.000_96, "0.001"),
            (0.000_42, "0.00042"),
            (1e-300, "0.000000000000000"),
            (0.999_6, "1.00"),
            (9.996, "10.0"),
            (1.0, "1.00"),
            (99.96, "100"),
            (12_345.6, "12,346"),
            (-1234.0, "-1,234"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn ratios_have_two_digits_that_say_something() {
        let cases = [
            (12.34, "12.3"),
            (9.996, "10.0"),
            (1.0, "1.00"),
            (0.5, "0.50"),
            (0.1, "0.10"),
            (0.076_4, "0.076"),
            (0.009_96, "0.010"),
            (0.004_21, "0.0042"),
            (0.0, "0.00"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn times_are_told_in_their_unit() {
        let cases = [
            (7.14, "7.14 s"),
            (119.4, "119 s"),
            (120.0, "2.00 min"),
            (7199.0, "120 min"),
            (9000.0, "2.50 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }

    proptest! {
        #[test]
        fn a_figure_is_near_its_value(value in 0.1f64..1e12) {
            let read: f64 = figure(value).replace(',', "").parse().expect("a number");
            prop_assert!((read - value).abs() <= value * 0.005 + 0.000_5);
        }
    }
}
