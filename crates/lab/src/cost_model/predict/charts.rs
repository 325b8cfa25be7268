//! Charts of a prediction, as on the slides of document 000: S_v and the highest Q over α_s, with the
//! verification rates; and α_s while popular domains are signed.

use super::{AllSigned, CurvePoint, PredictedResolver, Prediction, Rate, RateSource, max_queries};
use crate::report::{Axis, LineChart, LineSeries, Point};

/// The sources of rates, with the words of titles. Each has charts of its own, because a chart with all
/// rates would not be readable.
const SOURCES: [(RateSource, &str); 3] = [
    (RateSource::Published, "published rates"),
    (RateSource::Measured, "rates of this machine"),
    (RateSource::File, "given rates"),
];

/// Returns the charts of a resolver.
pub(super) fn of(prediction: &Prediction, resolver: &PredictedResolver) -> Vec<LineChart> {
    let Some(all_signed) = &resolver.all_signed else { return Vec::new() };
    let mut charts = Vec::new();
    for (source, title) in SOURCES {
        let rates: Vec<&Rate> = prediction.rates.iter().filter(|rate| rate.source == source).collect();
        if !rates.is_empty() {
            charts.push(validations(all_signed, &rates, title));
            charts.push(highest_queries(resolver, all_signed, &rates, title));
        }
    }
    charts.extend(growth(all_signed));
    charts
}

/// Returns the name of a rate in legends.
fn name(rate: &Rate) -> String {
    format!("{}, {}", rate.name(), rate.implementation)
}

fn over_share(title: String, unit: &str, series: Vec<LineSeries>) -> LineChart {
    LineChart {
        title,
        x_title: "α_s: share of responses with signatures".to_owned(),
        unit: unit.to_owned(),
        axis: Axis::Logarithmic,
        series,
        ..LineChart::default()
    }
}

fn point(x: f64, value: f64) -> Point {
    Point { x, value, spread: None }
}

/// S_v over α_s, with a horizontal line for each rate.
fn validations(all_signed: &AllSigned, rates: &[&Rate], title: &str) -> LineChart {
    let curve = &all_signed.curve;
    let mean = |at: &CurvePoint| Point {
        x: at.signed_share,
        value: at.mean.value,
        spread: (at.mean.low < at.mean.high).then_some((at.mean.low, at.mean.high)),
    };
    let line = |name: &str, points| LineSeries { name: name.to_owned(), points };
    let mut series = vec![line("S_v at the mean of Q", curve.iter().map(mean).collect())];
    if curve.iter().any(|at| at.peak > at.mean.value) {
        series.push(line(
            "S_v at the highest Q",
            curve.iter().map(|at| point(at.signed_share, at.peak)).collect(),
        ));
    }
    let ends = [curve.first(), curve.last()];
    series.extend(rates.iter().map(|rate| {
        let points = ends.iter().flatten().map(|at| point(at.signed_share, rate.per_second));
        line(&name(rate), points.collect())
    }));
    over_share(format!("Verified signatures, with {title}"), "signatures/s", series)
}

/// The highest Q that one core validates over α_s, for each rate, and the highest Q of today.
fn highest_queries(
    resolver: &PredictedResolver,
    all_signed: &AllSigned,
    rates: &[&Rate],
    title: &str,
) -> LineChart {
    let curve = &all_signed.curve;
    let highest = |rate: &&Rate| {
        let points = curve.iter().filter_map(|at| {
            let chain = resolver.chain.with_signed_share(at.signed_share);
            Some(point(at.signed_share, max_queries(&chain, rate.per_second)?))
        });
        LineSeries { name: name(rate), points: points.collect() }
    };
    let mut series: Vec<LineSeries> = rates.iter().map(highest).collect();
    let today = curve.iter().map(|at| point(at.signed_share, resolver.queries.peak));
    series.push(LineSeries { name: "highest Q today".to_owned(), points: today.collect() });
    over_share(format!("Highest Q of one core, with {title}"), "queries/s", series)
}

/// α_s over the number of the most popular domains that are signed.
fn growth(all_signed: &AllSigned) -> Option<LineChart> {
    let points: Vec<Point> = all_signed
        .growth
        .iter()
        .filter(|at| at.domains > 0)
        .map(|at| point(at.domains as f64, at.signed_share))
        .collect();
    (!points.is_empty()).then(|| LineChart {
        title: "Popular domains first".to_owned(),
        x_title: "most popular domains that are signed".to_owned(),
        unit: "α_s".to_owned(),
        x_axis: Axis::Logarithmic,
        series: vec![LineSeries { name: "α_s".to_owned(), points }],
        ..LineChart::default()
    })
}
