//! A row of the data.

use super::bench::Recorded;
use crate::cost_model::{Estimate, Recording, RecordingFit, Window};
use serde::Serialize;

/// A resolver with one population in one slice of time: the recording with today's share of signed zones, the
/// model that is fitted to it, its prediction, and the recording with all zones signed.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    population: String,
    slice: u32,
    resolver: String,
    windows: usize,
    windows_all: usize,
    #[serde(flatten)]
    today: Rates,
    r: f64,
    alpha_s: f64,
    s: f64,
    alpha_v: f64,
    a: f64,
    a_low: f64,
    a_high: f64,
    b: f64,
    r_squared: f64,
    intervals: String,
    held_out_bias: f64,
    predicted: f64,
    predicted_low: f64,
    predicted_high: f64,
    predicted_at_queries: f64,
    queries_all: f64,
    responses_all: f64,
    signed_responses_all: f64,
    signatures_all: f64,
    verified_all: f64,
}

/// The numbers of the model, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Rates {
    queries: f64,
    responses: f64,
    signed_responses: f64,
    signatures: f64,
    verified: f64,
}

impl Rates {
    fn of(recording: &Recording) -> Self {
        let windows = &recording.windows;
        let seconds: f64 = windows.iter().map(|window| window.length as f64 * 1e-6).sum();
        let rate = |count: fn(&Window) -> u64| {
            windows.iter().map(count).sum::<u64>() as f64 / seconds.max(f64::MIN_POSITIVE)
        };
        Self {
            queries: rate(|window| window.queries),
            responses: rate(|window| window.responses),
            signed_responses: rate(|window| window.signed_responses),
            signatures: rate(|window| window.signatures),
            verified: rate(|window| window.verified),
        }
    }
}

impl Row {
    /// `fit` is that of `today`; `after` is the same slice with all zones signed.
    pub(super) fn new(fit: &RecordingFit, today: &Recording, after: &Recorded) -> Self {
        let (now, all) = (Rates::of(today), Rates::of(&after.recording));
        let slope = |place: usize| fit.model.lines.get(place).map_or(f64::NAN, |line| line.slope.value);
        let Estimate { value: predicted, low, high } = fit.model.predict(now.queries, Some(1.0));
        let composed = &fit.model.composed;
        Self {
            population: after.population.clone(),
            slice: after.slice,
            resolver: after.resolver.to_string(),
            windows: today.windows.len(),
            windows_all: after.recording.windows.len(),
            today: now,
            r: slope(0),
            alpha_s: slope(1),
            s: slope(2),
            alpha_v: slope(3),
            a: composed.slope.value,
            a_low: composed.slope.low,
            a_high: composed.slope.high,
            b: composed.intercept.value,
            r_squared: composed.r_squared,
            intervals: composed.intervals.name(),
            held_out_bias: fit.held_out.relative_bias,
            predicted,
            predicted_low: low,
            predicted_high: high,
            predicted_at_queries: fit.model.predict(all.queries, Some(1.0)).value,
            queries_all: all.queries,
            responses_all: all.responses,
            signed_responses_all: all.signed_responses,
            signatures_all: all.signatures,
            verified_all: all.verified,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::VerificationSource;

    #[test]
    fn rates_are_per_second() {
        let window = Window { length: 500_000, queries: 7, verified: 2, ..Window::default() };
        let recording = Recording {
            name: "r".to_owned(),
            verified_by: VerificationSource::Counters,
            windows: vec![window.clone(), window],
            domains: Vec::new(),
        };
        let expected = Rates { queries: 14.0, verified: 4.0, ..Rates::default() };
        assert_eq!(Rates::of(&recording), expected);
    }
}
