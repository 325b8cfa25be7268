//! The charts of the page: a group for each algorithm, a bar for each denial mechanism.

use super::super::figures::{Comparison, LoadFigures, Measured, Row};
use super::{MEGA, whole_octets};
use crate::report::{Axis, Bar, Chart, Reference, Series};

/// Time of signing and of verifying.
pub(super) fn work(comparison: &Comparison) -> Vec<Chart> {
    vec![
        chart(comparison, "Signing", "s", |row| row.signing.map(|work| spread(work.wall_s, 1.0))),
        chart(comparison, "Verifying", "s", |row| row.verification.map(|work| spread(work.wall_s, 1.0))),
    ]
}

/// Zone file and memory.
pub(super) fn size(comparison: &Comparison) -> Vec<Chart> {
    vec![
        chart(comparison, "Zone file", "MB", |row| Some(Bar::plain(row.zone_octets as f64 / MEGA))),
        chart(comparison, "Resident memory of the server", "MiB", |row| row.memory_mib().map(Bar::plain)),
    ]
}

/// Octets of responses.
pub(super) fn responses(comparison: &Comparison) -> Vec<Chart> {
    both(comparison, "Response", "octets, mean", |load| whole_octets(load).map(Bar::plain))
}

/// CPU time for a query, and queries a second.
pub(super) fn server(comparison: &Comparison) -> Vec<Chart> {
    let mut charts = both(comparison, "CPU of the server", "µs for each query", |load| {
        load.server_cpu_us_per_query.map(|cpu| spread(cpu, 1.0))
    });
    charts.extend(both(comparison, "Queries", "1000 a second", |load| Some(spread(load.qps, 1e-3))));
    charts
}

fn spread(measured: Measured, factor: f64) -> Bar {
    let Measured { value, least, most } = measured;
    let ends = (least < most).then_some((least * factor, most * factor));
    Bar { value: value * factor, spread: ends }
}

/// Two charts with one axis: existing names and denied ones.
fn both(
    comparison: &Comparison,
    title: &str,
    unit: &str,
    bar: fn(&LoadFigures) -> Option<Bar>,
) -> Vec<Chart> {
    let existing = chart(comparison, &format!("{title}, existing names"), unit, |row| bar(&row.existing));
    let denied = chart(comparison, &format!("{title}, denied names"), unit, |row| bar(&row.denied));
    let at_least = existing.scale().end().max(denied.scale().end());
    vec![Chart { at_least, ..existing }, Chart { at_least, ..denied }]
}

/// The unsigned zone is a line across.
fn chart(comparison: &Comparison, title: &str, unit: &str, bar: impl Fn(&Row) -> Option<Bar>) -> Chart {
    let signed = || comparison.rows.iter().filter(|row| row.algorithm.is_some());
    let groups = distinct(signed().map(Row::algorithm_label));
    let names = distinct(signed().map(Row::denial_label));
    let find = |group: &str, name: &str| {
        signed().find(|row| row.algorithm_label() == group && row.denial_label() == name)
    };
    let series = names.into_iter().map(|name| {
        let bars = groups.iter().map(|group| find(group, &name).and_then(&bar)).collect();
        Series { name, bars }
    });
    let unsigned = comparison.rows.iter().find(|row| row.algorithm.is_none());
    let reference =
        unsigned.and_then(&bar).map(|bar| Reference { name: "unsigned".to_owned(), value: bar.value });
    Chart {
        title: title.to_owned(),
        unit: unit.to_owned(),
        series: series.collect(),
        groups,
        reference,
        at_least: 0.0,
        axis: Axis::Linear,
    }
}

/// Each once, in the order of first occurrence.
fn distinct(labels: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for label in labels {
        if !found.contains(&label) {
            found.push(label);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::tests::sample;
    use super::*;

    #[test]
    fn every_signed_row_has_its_bar() {
        let sample = sample();
        let all = [work(&sample), size(&sample), responses(&sample), server(&sample)].concat();
        assert_eq!(all.len(), 10);
        for chart in &all {
            assert_eq!(chart.groups, ["RSASHA256/2048", "ECDSAP256SHA256"]);
            let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
            assert_eq!(names, ["NSEC", "NSEC3", "NSEC3 opt-out"]);
            let bars = chart.series.iter().flat_map(|series| series.bars.iter().flatten()).count();
            // One row has only truncated denials, whose size says nothing.
            let missing = usize::from(chart.title == "Response, denied names");
            assert_eq!(bars, sample.rows.len() - 1 - missing, "{}", chart.title);
        }
        assert!(all[0].reference.is_none(), "nothing is signed in the unsigned zone");
        assert!(all[2..].iter().all(|chart| chart.reference.is_some()));
    }

    #[test]
    fn existing_and_denied_share_their_axis() {
        for pair in server(&sample()).chunks(2) {
            assert_eq!(pair[0].scale(), pair[1].scale());
        }
    }

    #[test]
    fn rows_may_be_missing() {
        let mut sample = sample();
        sample.rows.remove(2);
        let charts = size(&sample);
        assert_eq!(charts[0].series[0].bars.iter().flatten().count(), 2);
        assert_eq!(charts[0].series.iter().map(|series| series.bars.len()).collect::<Vec<_>>(), [2, 2, 2]);
        sample.rows.clear();
        assert!(size(&sample)[0].groups.is_empty());
    }
}
