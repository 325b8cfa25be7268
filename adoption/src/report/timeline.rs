//! The days that charts show: all, or the first of each month or longer time if there are many.

use super::Report;
use crate::snapshot::{Day, date_text};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of points of a line.
const MAX_POINTS: usize = 66;
/// Maximum number of sources with charts.
const MAX_SOURCES: usize = 8;

/// The sources and days of charts.
pub(super) struct Timelines {
    /// Sources with their days: those with the most domains, at most [`MAX_SOURCES`], by name.
    pub(super) sources: BTreeMap<String, BTreeSet<Day>>,
    /// Gaps of each source.
    gaps: BTreeMap<String, Vec<(Day, Day)>>,
}

impl Timelines {
    pub(super) fn of(report: &Report) -> Self {
        let mut all: BTreeMap<&str, (i64, Vec<Day>)> = BTreeMap::new();
        for row in report.rows("status") {
            let (domains, days) = all.entry(row.text("source")).or_default();
            *domains = row.integer("domains").max(*domains);
            days.push(row.day("date"));
        }
        let mut largest: Vec<_> = all.into_iter().collect();
        largest.sort_by_key(|(_, (domains, _))| std::cmp::Reverse(*domains));
        largest.truncate(MAX_SOURCES);
        let sources = largest.into_iter().map(|(source, (_, days))| (source.to_owned(), thinned(&days)));
        let mut gaps: BTreeMap<String, Vec<(Day, Day)>> = BTreeMap::new();
        for gap in &report.input.gaps {
            gaps.entry(gap.source.clone()).or_default().push(gap.days);
        }
        Self { sources: sources.collect(), gaps }
    }

    /// Whether a chart shows this day of a source.
    pub(super) fn contains(&self, source: &str, day: Day) -> bool {
        self.sources.get(source).is_some_and(|days| days.contains(&day))
    }

    /// Whether the line between two adjacent shown days is interrupted: at a gap of at least half of the
    /// time between them.
    pub(super) fn is_interrupted(&self, source: &str, from: Day, to: Day) -> bool {
        let gaps = self.gaps.get(source).into_iter().flatten();
        gaps.copied().any(|(after, before)| {
            let length = before.min(to) - after.max(from);
            2 * length >= to - from && length > 0
        })
    }
}

/// Returns the first days of months, of two or more months, of years or of decades if there are many days, and the last day.
fn thinned(days: &[Day]) -> BTreeSet<Day> {
    if days.len() <= MAX_POINTS {
        return days.iter().copied().collect();
    }
    for months in [1, 2, 3, 6, 12] {
        let chosen = first_days(days, months);
        if chosen.len() <= MAX_POINTS {
            return chosen;
        }
    }
    first_days(days, 120)
}

fn first_days(days: &[Day], months: i32) -> BTreeSet<Day> {
    let mut last_period = None;
    let mut chosen: BTreeSet<Day> = BTreeSet::new();
    for day in days {
        let text = date_text(*day);
        let part = |range: std::ops::Range<usize>| {
            text.get(range).and_then(|part| part.parse::<i32>().ok()).unwrap_or(0)
        };
        let period = Some((part(0..4) * 12 + part(5..7) - 1).div_euclid(months));
        if period != last_period {
            chosen.insert(*day);
            last_period = period;
        }
    }
    chosen.extend(days.last());
    chosen
}

/// Returns the last day of each source.
pub(super) fn last_days(report: &Report) -> BTreeMap<String, Day> {
    let days = report.rows("status").map(|row| (row.text("source").to_owned(), row.day("date")));
    // Rows are in the order of the dates, so that the last one remains.
    days.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::day_of;

    fn day(text: &str) -> Day {
        day_of(text.parse().expect("a date"))
    }

    #[test]
    fn few_days_are_all_shown_and_many_by_month() {
        let days: Vec<Day> = (0..66).collect();
        assert_eq!(thinned(&days).len(), 66);
        let ten_years: Vec<Day> = (day("2015-01-01")..=day("2024-12-31")).collect();
        let shown = thinned(&ten_years);
        assert_eq!(shown.len(), 61);
        assert!(shown.contains(&day("2016-03-01")) && shown.contains(&day("2024-12-31")));
        let fifty_years: Vec<Day> = (0..50 * 365).collect();
        assert_eq!(thinned(&fifty_years).len(), 51);
    }

    #[test]
    fn lines_are_interrupted_at_long_gaps() {
        let gaps = [("com".to_owned(), vec![(10, 40), (60, 62)])].into();
        let timelines = Timelines { sources: BTreeMap::new(), gaps };
        assert!(timelines.is_interrupted("com", 10, 40));
        assert!(timelines.is_interrupted("com", 0, 31));
        assert!(!timelines.is_interrupted("com", 50, 80));
        assert!(!timelines.is_interrupted("com", 0, 10));
        assert!(!timelines.is_interrupted("net", 10, 40));
    }
}
