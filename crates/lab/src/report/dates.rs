//! Dates on a horizontal axis: the position of a day is its year, with the days since 1 January as a
//! fraction of the year.

use nonesuch_proto::timestamp::Rfc3339;

const DAY_SECONDS: u64 = 86_400;
/// Days from 1970-01-01 to 9999-12-31.
const MAX_DAY: u64 = Rfc3339::MAX.0 / DAY_SECONDS;

/// Returns the position of a day, given as days since 1970-01-01. The position of a day before 1970
/// or after 9999 is that of the nearest day within.
#[must_use]
pub fn day_position(day: i64) -> f64 {
    let day = u64::try_from(day).unwrap_or(0).min(MAX_DAY);
    let year = date(day)[..4].parse().unwrap_or(1970);
    let (first, length) = days_of_year(year);
    f64::from(year) + (day - first) as f64 / length as f64
}

/// Returns the date at a position, as `YYYY-MM-DD`.
pub(super) fn date_label(position: f64) -> String {
    if !position.is_finite() {
        return "–".to_owned();
    }
    let year = position.clamp(1970.0, 9999.0).floor();
    let (first, length) = days_of_year(year as u32);
    let fraction = (position - year).clamp(0.0, 1.0);
    date((first + (fraction * length as f64).round() as u64).min(MAX_DAY))
}

/// Returns the label of a tick: the year, or the year and the month.
pub(super) fn tick_label(tick: f64) -> String {
    let months = (tick * 12.0).round() as i64;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    if month == 1 { year.to_string() } else { format!("{year}-{month:02}") }
}

/// Returns the days from 1970 to 1 January of a year, and the number of days of the year.
fn days_of_year(year: u32) -> (u64, u64) {
    let january = |year: u32| {
        let time = Rfc3339::parse(format!("{year:04}-01-01T00:00:00Z").as_bytes());
        time.map_or(MAX_DAY + 1, |time| time.0 / DAY_SECONDS)
    };
    (january(year), january(year + 1) - january(year))
}

fn date(day: u64) -> String {
    Rfc3339(day * DAY_SECONDS).to_string()[..10].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_position_of_a_day_is_its_part_of_the_year() {
        assert_eq!((day_position(0), day_position(-5)), (1970.0, 1970.0));
        // 1972 is a leap year: 1 July is day 182 of 366.
        assert!((day_position(730 + 182) - (1972.0 + 182.0 / 366.0)).abs() < 1e-9);
        assert_eq!(day_position(i64::MAX), day_position(MAX_DAY as i64));
    }

    #[test]
    fn ticks_have_the_month_unless_it_is_january() {
        assert_eq!([2016.0, 2016.0 + 1.0 / 12.0, 2016.75].map(tick_label), ["2016", "2016-02", "2016-10"]);
        assert_eq!(date_label(f64::NAN), "–");
    }

    proptest! {
        #[test]
        fn the_label_of_a_position_is_the_date(day in 0..MAX_DAY) {
            prop_assert_eq!(date_label(day_position(day as i64)), date(day));
        }
    }
}
