//! Charts of a fit: residuals of each line, observed and predicted S_v, parameters of slices.

use super::RecordingFit;
use crate::cost_model::columns::Symbol;
use crate::cost_model::model::{Estimate, FittedLine};
use crate::report::{Axis, LineChart, LineSeries, Point};

/// Maximum number of points of a chart. With more windows, the chart shows some of them at equal
/// distances.
pub(super) const MAX_POINTS: usize = 400;

/// Returns a chart of the residuals of each line.
pub(super) fn residuals(fit: &RecordingFit) -> Vec<LineChart> {
    let chart = |line: &FittedLine| {
        let (from, to) = line.line.symbols();
        let points = fit.columns.rates(from).iter().copied().zip(line.residuals.iter().copied());
        scatter(
            &line.line.equation(),
            (from.letter(), "1/s"),
            &format!("residual of {}, 1/s", to.letter()),
            points,
        )
    };
    fit.model.lines.iter().map(chart).collect()
}

fn scatter(
    title: &str,
    (x_title, x_unit): (&str, &str),
    unit: &str,
    points: impl ExactSizeIterator<Item = (f64, f64)>,
) -> LineChart {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let point = |(x, value)| Point { x, value, spread: None };
    LineChart {
        title: title.to_owned(),
        x_title: x_title.to_owned(),
        x_unit: x_unit.to_owned(),
        unit: unit.to_owned(),
        axis: Axis::Signed,
        series: vec![LineSeries { name: String::new(), points: points.step_by(step).map(point).collect() }],
        is_scatter: true,
        ..LineChart::default()
    }
}

/// Returns a chart of S_v over Q, with f, and a chart of observed over predicted S_v of the held-out
/// windows.
pub(super) fn predictions(fit: &RecordingFit) -> Vec<LineChart> {
    let (queries, verified) = (fit.columns.rates(Symbol::Queries), fit.columns.rates(Symbol::Verified));
    let observed = queries.iter().copied().zip(verified.iter().copied());
    let mut whole = scatter("S_v over Q", ("Q", "1/s"), "S_v, 1/s", observed);
    whole.axis = Axis::Linear;
    whole.series[0].name = "observed".to_owned();
    let (low, high) =
        queries.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    let on_line = |step: u32| {
        let x = low + (high - low) * f64::from(step) / 40.0;
        let Estimate { value, .. } = fit.model.predict(x, None);
        Point { x, value, spread: None }
    };
    whole.series.push(LineSeries { name: "f".to_owned(), points: (0..=40).map(on_line).collect() });
    let pairs = fit.held_out.pairs.iter().copied();
    let mut held_out = scatter("Held-out windows", ("predicted S_v", "1/s"), "observed S_v, 1/s", pairs);
    held_out.axis = Axis::Linear;
    held_out.diagonal = "prediction = observation".to_owned();
    vec![whole, held_out]
}

/// Returns a chart of each parameter over the slices of time, with intervals.
pub(super) fn slices(fit: &RecordingFit) -> Vec<LineChart> {
    let stability = &fit.stability;
    let chart = |(place, drift): (usize, &super::Drift)| {
        let points = stability.slices.iter().map(|slice| {
            let estimate = slice.parameters[place];
            let x = slice.start.saturating_sub(fit.start) as f64 / 3.6e9;
            Point { x, value: estimate.value, spread: Some((estimate.low, estimate.high)) }
        });
        LineChart {
            title: format!("{} of slices", drift.parameter),
            x_title: "start of the slice".to_owned(),
            x_unit: "h".to_owned(),
            series: vec![LineSeries { name: drift.parameter.to_owned(), points: points.collect() }],
            ..LineChart::default()
        }
    };
    stability.drifts.iter().enumerate().map(chart).collect()
}
