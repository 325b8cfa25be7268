//! The study's three figures.

use super::super::rows::Job;
use super::super::summary::View;
use super::super::{AlgorithmFacts, ZoneFacts};
use super::{marked, title};
use crate::report::{Axis, Bar, Block, Chart, Reference, Series};

/// Octets in a megabyte.
const MEGA: f64 = 1e6;

/// Times of signing, against ECDSA P-256.
pub(super) fn signing(view: &View<'_>) -> Vec<Block> {
    increases(view, Job::Sign, "Signing")
}

/// Times of validation, against ECDSA P-256.
pub(super) fn validation(view: &View<'_>) -> Vec<Block> {
    increases(view, Job::Verify, "Validation")
}

/// A chart for each zone and level; all share their axis.
fn increases(view: &View<'_>, job: Job, noun: &str) -> Vec<Block> {
    let mut charts: Vec<Chart> = Vec::new();
    for zone in view.zones() {
        charts.extend(view.levels().into_iter().filter_map(|level| increase(view, job, noun, zone, level)));
    }
    let most = charts.iter().map(|chart| chart.scale().end()).fold(0.0, f64::max);
    charts.iter_mut().for_each(|chart| chart.at_least = most);
    // A row for each zone, so that levels stand side by side.
    charts.chunks(view.levels().len().max(1)).map(|row| Block::Charts(row.to_vec())).collect()
}

fn increase(view: &View<'_>, job: Job, noun: &str, zone: &ZoneFacts, level: &str) -> Option<Chart> {
    let bar = |algorithm: &AlgorithmFacts, denial: &str| {
        let line = view.find(job, &zone.zone, level, &algorithm.algorithm, denial)?;
        let base = view.find(job, &zone.zone, level, &view.base, denial)?.cpu?.median;
        let cpu = line.cpu.filter(|_| line.cpu_times.is_some())?;
        let spread = (cpu.count > 1).then(|| (cpu.least / base, cpu.most / base));
        Some(Bar { value: line.cpu_times?, spread })
    };
    let others: Vec<&AlgorithmFacts> =
        view.algorithms().into_iter().filter(|facts| facts.algorithm != view.base).collect();
    let reference = Reference { name: "ECDSA P-256".to_owned(), value: 1.0 };
    let unit = "CPU time in times of ECDSA P-256".to_owned();
    let heading = format!("{noun}, {}: {level}", title(zone));
    let chart = Chart { reference: Some(reference), unit, ..chart(view, &heading, &others, &bar) };
    (!chart.groups.is_empty()).then_some(chart)
}

/// Octets of the zone file, a chart for each zone.
pub(super) fn sizes(view: &View<'_>) -> Vec<Block> {
    let charts: Vec<Chart> = view.zones().into_iter().filter_map(|zone| size(view, zone)).collect();
    if charts.is_empty() { Vec::new() } else { vec![Block::Charts(charts)] }
}

fn size(view: &View<'_>, zone: &ZoneFacts) -> Option<Chart> {
    let bar = |algorithm: &AlgorithmFacts, denial: &str| {
        let line = view.find_any(Job::Sign, &zone.zone, &algorithm.algorithm, denial)?;
        Some(Bar::plain(line.octets? as f64 / MEGA))
    };
    let reference = Reference { name: "unsigned".to_owned(), value: zone.octets as f64 / MEGA };
    let chart = chart(view, &format!("Zone file, {}", title(zone)), &view.algorithms(), &bar);
    let unit = "MB, logarithmic".to_owned();
    let chart = Chart { reference: Some(reference), unit, axis: Axis::Logarithmic, ..chart };
    (!chart.groups.is_empty()).then_some(chart)
}

/// A group for each algorithm of which there is a bar, a bar for each mechanism.
fn chart(
    view: &View<'_>,
    heading: &str,
    algorithms: &[&AlgorithmFacts],
    bar: &dyn Fn(&AlgorithmFacts, &str) -> Option<Bar>,
) -> Chart {
    let denials = view.denials();
    let has_bar = |facts: &&&AlgorithmFacts| denials.iter().any(|(denial, _)| bar(facts, denial).is_some());
    let shown: Vec<&AlgorithmFacts> = algorithms.iter().filter(has_bar).copied().collect();
    let label = |facts: &&AlgorithmFacts| match facts.post_quantum {
        true => format!("{} (PQC)", marked(facts)),
        false => marked(facts),
    };
    let series = denials.iter().map(|(denial, title)| Series {
        name: title.clone(),
        bars: shown.iter().map(|facts| bar(facts, denial)).collect(),
    });
    Chart {
        title: heading.to_owned(),
        series: series.collect(),
        groups: shown.iter().map(label).collect(),
        ..Chart::default()
    }
}
