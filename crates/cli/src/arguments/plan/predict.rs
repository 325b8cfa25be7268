//! Arguments of `plan predict`.

use super::fit::{IntervalArguments, PlanOutputArguments, RecordingArgument, parse_recording};
use crate::arguments::values::{ArgumentError, parse_seconds};
use clap::Args;
use nonesuch_lab::measure::AlgorithmChoice;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PlanPredictArguments {
    /// Directories that `plan record` has written, each with an optional name before it.
    ///
    /// The names of resolver and client population appear in the report: unbound/campus=DIR, or
    /// unbound=DIR. For a directory whose path contains an equals sign, write =DIR.
    #[arg(value_name = "[RESOLVER[/POPULATION]=]DIRECTORY", value_parser = parse_recording,
        conflicts_with_all = ["validations", "queries", "signed_share"])]
    pub(crate) recordings: Vec<RecordingArgument>,
    /// Predict for a resolver that verifies this number of signatures per second. Default: 150.
    #[arg(long, value_name = "RATE", value_parser = parse_positive)]
    pub(crate) validations: Option<f64>,
    /// Predict for a resolver that sends this number of queries to authoritative servers per second.
    ///
    /// Default: 1800, an assumption.
    #[arg(long, value_name = "RATE", value_parser = parse_positive)]
    pub(crate) queries: Option<f64>,
    /// Set the share of responses with signatures today, from 0 to 1. Default: unknown.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) signed_share: Option<f64>,
    /// Use these verification rates of one core: measured, published, or a TOML file.
    ///
    /// measured: rates of this machine, for all algorithms, single signatures and batches. published:
    /// the five benchmarks of the study. A file has tables named rate with name, algorithm and
    /// per-second.
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', default_values = ["measured", "published"])]
    pub(crate) rates: Vec<RatesArgument>,
    /// Set the time for measuring each rate, in seconds.
    #[arg(long, default_value_t = 0.25, value_parser = parse_seconds)]
    pub(crate) seconds: f64,
    /// Set the number of cores that validate. Default: the CPUs of this machine.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) cores: Option<u32>,
    /// Read the order in which domains are signed from this file: a domain on each line.
    ///
    /// The most popular domain is the first. A line can start with a rank and a comma. Default: the
    /// order of the recording.
    #[arg(long, value_name = "FILE", requires = "recordings")]
    pub(crate) ranking: Option<PathBuf>,
    /// Set the algorithm of today's signatures, for the sizes of responses.
    ///
    /// Default: ECDSAP256SHA256, an assumption.
    #[arg(long, value_name = "ALGORITHM")]
    pub(crate) current_algorithm: Option<AlgorithmChoice>,
    /// Set the share of the signed responses that have the keys of a zone, from 0 to 1.
    ///
    /// Default: 0.02, an assumption.
    #[arg(long, value_name = "SHARE", value_parser = parse_share_or_zero)]
    pub(crate) dnskey_share: Option<f64>,
    /// Home router: set the share of client queries that its cache answers, from 0 to 1.
    ///
    /// Default: 0.5, an assumption.
    #[arg(long, value_name = "SHARE", value_parser = parse_share_or_zero)]
    pub(crate) cache_hit_rate: Option<f64>,
    /// Home router: set the number of queries that it sends for each other client query.
    ///
    /// Default: 1.5, an assumption.
    #[arg(long, value_name = "NUMBER", value_parser = parse_positive)]
    pub(crate) queries_per_miss: Option<f64>,
    #[command(flatten)]
    pub(crate) intervals: IntervalArguments,
    #[command(flatten)]
    pub(crate) output: PlanOutputArguments,
}

/// A source of verification rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RatesArgument {
    Measured,
    Published,
    File(PathBuf),
}

impl From<&str> for RatesArgument {
    fn from(text: &str) -> Self {
        match text {
            "measured" => Self::Measured,
            "published" => Self::Published,
            path => Self::File(path.into()),
        }
    }
}

fn parse_number(
    text: &str,
    is_valid: impl Fn(f64) -> bool,
    form: &'static str,
) -> Result<f64, ArgumentError> {
    text.parse().ok().filter(|number: &f64| is_valid(*number)).ok_or(ArgumentError::Expected(form))
}

fn parse_positive(text: &str) -> Result<f64, ArgumentError> {
    parse_number(text, |number| number.is_finite() && number > 0.0, "a number above 0")
}

fn parse_share(text: &str) -> Result<f64, ArgumentError> {
    parse_number(text, |number| number > 0.0 && number <= 1.0, "a number above 0 and at most 1")
}

fn parse_share_or_zero(text: &str) -> Result<f64, ArgumentError> {
    parse_number(text, |number| (0.0..=1.0).contains(&number), "a number from 0 to 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_checked() {
        assert_eq!(parse_positive("150"), Ok(150.0));
        for wrong in ["0", "-1", "inf", "NaN", "x", ""] {
            assert!(parse_positive(wrong).is_err(), "{wrong}");
        }
        assert!(parse_share("0").is_err() && parse_share("1.1").is_err() && parse_share("nan").is_err());
        assert_eq!((parse_share("1"), parse_share_or_zero("0")), (Ok(1.0), Ok(0.0)));
    }
}
