//! Gaps in the days of a source.

use super::SnapshotKey;
use crate::snapshot::{Day, date_text};
use serde::Serialize;
use std::collections::BTreeMap;

/// Two snapshots of a source that are further apart than usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Gap {
    pub(crate) source: String,
    /// Date of the snapshot before the gap.
    pub(crate) after: String,
    /// Date of the snapshot after the gap.
    pub(crate) before: String,
    /// Usual number of days between two snapshots of the source: the median.
    pub(crate) usual_days: Day,
    /// Days since 1970 of both snapshots.
    #[serde(skip)]
    pub(crate) days: (Day, Day),
}

/// Returns the gaps: distances of more than 1.5 times the median distance of the source. Two
/// snapshots have no gap, because nothing shows the usual distance.
pub(crate) fn gaps<'k>(keys: impl Iterator<Item = &'k SnapshotKey>) -> Vec<Gap> {
    let mut days: BTreeMap<&str, Vec<Day>> = BTreeMap::new();
    for (source, day) in keys {
        days.entry(source).or_default().push(*day);
    }
    days.into_iter().flat_map(|(source, days)| gaps_of(source, &days)).collect()
}

/// `days` are in ascending order.
fn gaps_of(source: &str, days: &[Day]) -> Vec<Gap> {
    let steps = days.windows(2).map(|pair| (pair[0], pair[1], i64::from(pair[1]) - i64::from(pair[0])));
    let mut lengths: Vec<i64> = steps.clone().map(|(_, _, length)| length).collect();
    if lengths.len() < 2 {
        return Vec::new();
    }
    let middle = (lengths.len() - 1) / 2;
    let usual = *lengths.select_nth_unstable(middle).1;
    let large = steps.filter(|(_, _, length)| 2 * length > 3 * usual);
    let gap = |(from, to, _)| Gap {
        source: source.to_owned(),
        after: date_text(from),
        before: date_text(to),
        usual_days: usual.try_into().unwrap_or(Day::MAX),
        days: (from, to),
    };
    large.map(gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(days: &[Day]) -> Vec<(Day, Day)> {
        let keys: Vec<SnapshotKey> = days.iter().map(|day| ("com".to_owned(), *day)).collect();
        gaps(keys.iter()).into_iter().map(|gap| gap.days).collect()
    }

    #[test]
    fn a_missing_day_is_a_gap() {
        assert_eq!(found(&[1, 2, 3, 5, 6, 10]), [(3, 5), (6, 10)]);
        assert_eq!(found(&[1, 2, 3, 4]), []);
    }

    #[test]
    fn months_of_different_length_are_no_gap() {
        assert_eq!(found(&[0, 31, 59, 90, 120, 151]), []);
        assert_eq!(found(&[0, 31, 59, 120, 151]), [(59, 120)]);
    }

    #[test]
    fn two_snapshots_have_no_usual_distance() {
        assert_eq!(found(&[0, 1153]), []);
        assert_eq!(found(&[]), []);
    }
}
