//! Charts of shares over time, as on the slides of document 000.

use super::Report;
use super::timeline::Timelines;
use crate::snapshot::Day;
use crate::table::TableRow;
use nonesuch_lab::report::{Axis, LineChart, LineSeries, Point, day_position};
use std::collections::BTreeMap;

/// Maximum number of lines of a chart; the others are one line.
const MAX_LINES: usize = 7;
/// Name of the line of all others.
const OTHERS: &str = "(others)";

/// Values by day.
type Values = BTreeMap<Day, f64>;
/// Lines of each source: values by name and day.
pub(super) type Lines = BTreeMap<String, BTreeMap<String, Values>>;

/// Collects the rows of a table that charts show. `name` is the name of the line, `None` to omit the row.
/// Rows with the same name and day are added.
pub(super) fn lines<'r>(
    report: &'r Report,
    timelines: &Timelines,
    table: &str,
    name: impl Fn(TableRow<'r>) -> Option<String>,
    value: impl Fn(TableRow<'r>) -> f64,
) -> Lines {
    let mut lines = Lines::new();
    for row in report.rows(table) {
        let (source, day) = (row.text("source"), row.day("date"));
        let Some(name) = timelines.contains(source, day).then(|| name(row)).flatten() else { continue };
        let of_source = lines.entry(source.to_owned()).or_default();
        *of_source.entry(name).or_default().entry(day).or_default() += value(row);
    }
    lines
}

/// Returns the share in percent of a column.
pub(super) fn percent(row: TableRow<'_>, column: &str) -> f64 {
    row.number(column) * 100.0
}

/// Returns a chart for each source.
pub(super) fn by_source(timelines: &Timelines, lines: &Lines, title: &str, unit: &str) -> Vec<LineChart> {
    let charts = lines.iter().map(|(source, of_source)| {
        let series = largest(of_source);
        let series = series.iter().map(|(name, values)| line(timelines, source, name, values));
        chart(format!("{title}, {}", source_name(source)), unit, series.collect())
    });
    charts.collect()
}

/// Returns one chart with a line for each source: the line of this name.
pub(super) fn all_sources(
    timelines: &Timelines,
    lines: &Lines,
    name: &str,
    title: &str,
    unit: &str,
) -> LineChart {
    let of_name = lines.iter().filter_map(|(source, of_source)| Some((source, of_source.get(name)?)));
    let series = of_name.map(|(source, values)| line(timelines, source, source_name(source), values));
    chart(title.to_owned(), unit, series.collect())
}

/// Returns the name of a source in titles.
pub(super) fn source_name(source: &str) -> &str {
    if source == "." { "root zone" } else { source }
}

/// Whether a chart has a value above 0.
pub(super) fn has_values(chart: &LineChart) -> bool {
    chart.series.iter().flat_map(|series| &series.points).any(|point| point.value > 0.0)
}

fn chart(title: String, unit: &str, series: Vec<LineSeries>) -> LineChart {
    LineChart {
        title,
        x_title: "date".to_owned(),
        unit: unit.to_owned(),
        x_axis: Axis::Dates,
        series,
        ..LineChart::default()
    }
}

/// Returns a line over all shown days of the source; a day without a row has the value 0. The line is
/// interrupted at gaps.
fn line(timelines: &Timelines, source: &str, name: &str, values: &Values) -> LineSeries {
    let mut points: Vec<Point> = Vec::new();
    let mut last = None;
    for &day in timelines.sources.get(source).into_iter().flatten() {
        if last.is_some_and(|last| timelines.is_interrupted(source, last, day)) {
            points.push(Point { x: day_position(day.into()), value: f64::NAN, spread: None });
        }
        let value = values.get(&day).copied().unwrap_or(0.0);
        points.push(Point { x: day_position(day.into()), value, spread: None });
        last = Some(day);
    }
    LineSeries { name: name.to_owned(), points }
}

/// Returns the lines with the largest values, the largest first, and the sum of the others. Omits lines that
/// are always 0.
fn largest(lines: &BTreeMap<String, Values>) -> Vec<(String, Values)> {
    let maximum = |values: &Values| values.values().copied().fold(0.0, f64::max);
    let (mut others, mut named): (Vec<_>, Vec<_>) = lines
        .iter()
        .map(|(name, values)| (name.clone(), values.clone()))
        .partition(|(name, _)| name == OTHERS);
    named.sort_by(|(_, a), (_, b)| maximum(b).total_cmp(&maximum(a)));
    if named.len() > MAX_LINES {
        others.extend(named.split_off(MAX_LINES));
    }
    let mut sum = Values::new();
    for (day, value) in others.iter().flat_map(|(_, values)| values) {
        *sum.entry(*day).or_default() += value;
    }
    named.retain(|(_, values)| maximum(values) > 0.0);
    if maximum(&sum) > 0.0 {
        named.push((OTHERS.to_owned(), sum));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_always_zero_are_omitted() {
        let zero = Values::from([(0, 0.0), (1, 0.0)]);
        let lines = BTreeMap::from([("a".to_owned(), zero.clone()), (OTHERS.to_owned(), zero)]);
        assert!(largest(&lines).is_empty());
    }

    #[test]
    fn the_largest_lines_have_names_and_the_rest_is_one_line() {
        let mut lines: BTreeMap<String, Values> = (1..=10)
            .map(|size| (format!("line {size:02}"), Values::from([(0, f64::from(size)), (1, 0.5)])))
            .collect();
        lines.insert(OTHERS.to_owned(), Values::from([(0, 100.0)]));
        let found = largest(&lines);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names.len(), names[0], names[7]), (8, "line 10", OTHERS));
        assert_eq!(found[7].1, Values::from([(0, 106.0), (1, 1.5)]));
    }
}
