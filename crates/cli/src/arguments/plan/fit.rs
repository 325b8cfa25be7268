//! Arguments of `plan fit`, of which `plan predict` shares some.

use crate::arguments::values::{ArgumentError, parse_time};
use clap::Args;
use nonesuch_lab::cost_model::IntervalChoice;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PlanFitArguments {
    /// Directories that `plan record` has written, each with an optional name before it.
    ///
    /// The names of resolver and client population appear in the report: unbound/campus=DIR, or
    /// unbound=DIR. For a directory whose path contains an equals sign, write =DIR.
    #[arg(required = true, value_name = "[RESOLVER[/POPULATION]=]DIRECTORY", value_parser = parse_recording)]
    pub(crate) recordings: Vec<RecordingArgument>,
    #[command(flatten)]
    pub(crate) intervals: IntervalArguments,
    #[command(flatten)]
    pub(crate) output: PlanOutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct IntervalArguments {
    /// Set how confidence intervals are computed: auto, ols, hac or hac:LAGS.
    ///
    /// auto: ols if the residuals are independent and have equal variance, otherwise hac. ols: ordinary
    /// least squares. hac: the covariance of Newey and West with this number of lags; default: 1.3
    /// times the square root of the number of windows.
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = parse_intervals)]
    pub(crate) intervals: IntervalChoice,
}

#[derive(Debug, Args)]
pub(crate) struct PlanOutputArguments {
    /// Write report.html and a JSON file to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Set the time in the report.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A recording, with the names of its resolver and clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingArgument {
    pub(crate) resolver: Option<String>,
    pub(crate) population: Option<String>,
    pub(crate) directory: PathBuf,
}

fn parse_intervals(text: &str) -> Result<IntervalChoice, ArgumentError> {
    match text {
        "auto" => Ok(IntervalChoice::Automatic),
        "ols" => Ok(IntervalChoice::LeastSquares),
        "hac" => Ok(IntervalChoice::NeweyWest(None)),
        _ => {
            let lags = text.strip_prefix("hac:").and_then(|lags| lags.parse().ok());
            lags.map(|lags| IntervalChoice::NeweyWest(Some(lags)))
                .ok_or(ArgumentError::Expected("auto, ols, hac, or hac:LAGS such as hac:20"))
        }
    }
}

pub(super) fn parse_recording(text: &str) -> Result<RecordingArgument, ArgumentError> {
    let (label, directory) = text.split_once('=').unwrap_or(("", text));
    if directory.is_empty() {
        return Err(ArgumentError::Expected("a directory, for example unbound/campus=recording"));
    }
    let (resolver, population) = label.split_once('/').unwrap_or((label, ""));
    let name = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(RecordingArgument {
        resolver: name(resolver),
        population: name(population),
        directory: directory.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_have_optional_names() {
        let parsed = |text: &str| {
            parse_recording(text).map(|found| (found.resolver, found.population, found.directory))
        };
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(parsed("a/b"), Ok((None, None, "a/b".into())));
        assert_eq!(parsed("unbound=a/b"), Ok((name("unbound"), None, "a/b".into())));
        assert_eq!(parsed("bind/campus=a"), Ok((name("bind"), name("campus"), "a".into())));
        assert_eq!(parsed("/campus=a"), Ok((None, name("campus"), "a".into())));
        assert_eq!(parsed("=a=b"), Ok((None, None, "a=b".into())));
        assert!(parsed("bind=").is_err());
    }

    #[test]
    fn methods_of_intervals_are_parsed() {
        assert_eq!(parse_intervals("hac:20"), Ok(IntervalChoice::NeweyWest(Some(20))));
        for wrong in ["", "hac:", "hac:-1", "hac:70000", "HAC"] {
            assert!(parse_intervals(wrong).is_err(), "{wrong}");
        }
    }
}
