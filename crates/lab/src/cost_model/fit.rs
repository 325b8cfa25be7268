//! Fits the model to recordings, and examines the four criteria of document 000: it holds for several
//! resolvers, its parameters are stable, it holds for several client populations, and it predicts.

mod charts;
mod held_out;
mod page;
mod stability;

pub use held_out::{BiasTest, DistributionTest, HeldOut};
pub use stability::{Drift, Slice, Stability};

use super::columns::{Columns, FitError};
use super::model::{IntervalChoice, Model};
use super::residuals::TestResult;
use super::{Recording, VerificationSource};
use crate::record::RunRecord;
use crate::report::PageError;
use serde::Serialize;

/// Version of the JSON form of [`Fits`].
const FORMAT: u32 = 1;

/// A recording, and the names of the resolver and of the clients that it is of.
#[derive(Clone, Debug)]
pub struct LabelledRecording {
    /// Name of the resolver program, for example `unbound`; `None` if unknown.
    pub resolver: Option<String>,
    /// Name of the client population, for example `campus`; `None` if unknown.
    pub population: Option<String>,
    /// The recording.
    pub recording: Recording,
}

impl LabelledRecording {
    /// Returns the name for reports: resolver, population and name of the recording.
    #[must_use]
    pub fn name(&self) -> String {
        label(self.resolver.as_deref(), self.population.as_deref(), &self.recording.name)
    }
}

/// Returns the name of a recording with those of its resolver and population.
fn label(resolver: Option<&str>, population: Option<&str>, recording: &str) -> String {
    match (resolver, population) {
        (Some(resolver), Some(population)) => format!("{resolver}, {population}: {recording}"),
        (Some(one), None) | (None, Some(one)) => format!("{one}: {recording}"),
        (None, None) => recording.to_owned(),
    }
}

/// Options of a fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct FitOptions {
    /// How to compute confidence intervals.
    pub intervals: IntervalChoice,
}

/// The fitted models of several recordings, and their comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Fits {
    /// Version of this form.
    format: u32,
    /// One for each recording, in their order.
    pub fits: Vec<RecordingFit>,
    /// Tests whether the recordings have the same parameters; empty for one recording.
    pub equality: Vec<Equality>,
    /// Place of the recording with the greatest upper end of the interval of a: the worst case.
    pub worst_case: usize,
}

/// The fitted model of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordingFit {
    /// Name of the recording.
    pub name: String,
    /// Name of the resolver program, if known.
    pub resolver: Option<String>,
    /// Name of the client population, if known.
    pub population: Option<String>,
    /// Whether S_v is an estimate instead of a count.
    pub is_estimated: bool,
    /// Median length of the windows, in seconds.
    pub window_seconds: f64,
    /// Number of windows of another length, which are not used.
    pub omitted_windows: usize,
    /// Number of times between windows without a window.
    pub gaps: usize,
    /// Start of the first window, in microseconds since 1970.
    pub start: u64,
    /// Start of the last window, in microseconds since 1970.
    pub last_start: u64,
    /// The model, fitted to all windows.
    pub model: Model,
    /// Criterion II: the model fitted to slices of the time.
    pub stability: Stability,
    /// Criterion IV: predictions of windows that were not used for the fit.
    pub held_out: HeldOut,
    #[serde(skip)]
    columns: Columns,
}

/// Whether several recordings have the same value of a parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Equality {
    /// r, α_s, s, α_v or a.
    pub parameter: &'static str,
    /// Cochran's Q: the recordings have the same value.
    pub test: TestResult,
}

/// Fits the model to each recording and compares them.
///
/// # Errors
/// Fails without recordings, and if the windows of a recording cannot be used: too few, without
/// variation, or with counts that contradict each other.
pub fn fit(recordings: &[LabelledRecording], options: &FitOptions) -> Result<Fits, FitError> {
    let fits: Vec<RecordingFit> =
        recordings.iter().map(|recording| fit_one(recording, options)).collect::<Result<_, _>>()?;
    let upper = |fit: &RecordingFit| fit.model.composed.slope.high;
    let worst_case = (0..fits.len()).max_by(|one, other| upper(&fits[*one]).total_cmp(&upper(&fits[*other])));
    let worst_case = worst_case.ok_or(FitError::NoRecordings)?;
    Ok(Fits { format: FORMAT, equality: equality(&fits), worst_case, fits })
}

fn fit_one(labelled: &LabelledRecording, options: &FitOptions) -> Result<RecordingFit, FitError> {
    let LabelledRecording { resolver, population, recording } = labelled;
    let columns = Columns::of(recording)?;
    let too_few = || FitError::TooFewWindows { recording: recording.name.clone(), found: columns.len() };
    let model = Model::fit(&columns, options.intervals).ok_or_else(too_few)?;
    let held_out = HeldOut::of(&columns, options.intervals).ok_or_else(too_few)?;
    Ok(RecordingFit {
        name: recording.name.clone(),
        resolver: resolver.clone(),
        population: population.clone(),
        is_estimated: recording.verified_by == VerificationSource::Estimated,
        window_seconds: columns.window_seconds,
        omitted_windows: columns.omitted,
        gaps: columns.gaps(),
        start: columns.starts.first().copied().unwrap_or_default(),
        last_start: columns.starts.last().copied().unwrap_or_default(),
        stability: Stability::of(&columns, options.intervals),
        held_out,
        model,
        columns,
    })
}

/// Tests for each parameter whether all recordings have the same value.
fn equality(fits: &[RecordingFit]) -> Vec<Equality> {
    let Some(first) = fits.first().filter(|_| fits.len() > 1) else { return Vec::new() };
    let test = |(place, (parameter, _))| {
        let values = fits.iter().filter_map(|fit| fit.model.slopes().nth(place));
        let values: Vec<_> = values.map(|(_, estimate)| estimate).collect();
        Equality { parameter, test: stability::cochran(&values) }
    };
    first.model.slopes().enumerate().map(test).collect()
}

impl Fits {
    /// Returns the report as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        super::text::to_text(&page::sections(self))
    }

    /// Returns the report as an HTML page.
    ///
    /// # Errors
    /// Fails if the page cannot be rendered; no input is known to cause this error.
    pub fn page(&self, record: &RunRecord) -> Result<String, PageError> {
        page::page(self, record).to_html()
    }
}

#[cfg(test)]
mod tests;
