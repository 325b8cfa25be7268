//! The methods that experiments are made of: the one place where a method is added.
//!
//! A method has a module with its parameters, with `run` (from parameters to what was found) and with its part of the
//! report, made of what was found alone.

use super::definition::{MethodName, Raw};
use super::error::{DefinitionError, RunError};
use super::results::{Results, UnreadableColumn};
use super::run::{Found, RunOptions};
use super::{echo, signing, verification};
use crate::report::Section;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A method with the parameters that it is used with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "parameters", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Operations on signatures, counted.
    VerificationBenchmark(verification::Parameters),
    /// Whole zones, signed and verified.
    ZoneSigning(signing::Parameters),
    /// A server that only receives and sends, beside ours.
    EchoFloor(echo::Parameters),
}

/// What a method found out beside its data, for the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum About {
    /// What was measured with what.
    VerificationBenchmark(verification::About),
    /// What was measured with what.
    ZoneSigning(signing::About),
    /// What was measured with what.
    EchoFloor(echo::About),
}

/// A report's parts that are a method's own.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What the figures mean, in a paragraph below the title.
    pub lead: String,
    /// Facts beside those that every report has.
    pub facts: Vec<(String, String)>,
    /// The sections.
    pub sections: Vec<Section>,
    /// What a terminal shows.
    pub text: String,
    /// What `--json` prints beside the record.
    pub summary: serde_json::Value,
}

impl Method {
    pub(super) fn of(name: MethodName, raw: &Raw<'_>) -> Result<Self, DefinitionError> {
        match name {
            MethodName::VerificationBenchmark => raw.parameters().map(Self::VerificationBenchmark),
            MethodName::ZoneSigning => raw.parameters().map(Self::ZoneSigning),
            MethodName::EchoFloor => raw.parameters().map(Self::EchoFloor),
        }
    }

    /// The name, as files have it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::VerificationBenchmark(_) => "verification-benchmark",
            Self::ZoneSigning(_) => "zone-signing",
            Self::EchoFloor(_) => "echo-floor",
        }
    }

    /// How long it takes, about, where all that is asked for is there.
    #[must_use]
    pub fn duration(&self) -> Duration {
        match self {
            Self::VerificationBenchmark(parameters) => parameters.duration(),
            Self::ZoneSigning(parameters) => parameters.duration(),
            Self::EchoFloor(parameters) => parameters.duration(),
        }
    }

    pub(super) fn run(&self, options: &RunOptions<'_>) -> Result<Found, RunError> {
        match self {
            Self::VerificationBenchmark(parameters) => verification::run(parameters, options),
            Self::ZoneSigning(parameters) => signing::run(parameters, options),
            Self::EchoFloor(parameters) => echo::run(parameters, options),
        }
    }

    pub(super) fn report(results: &Results) -> Result<Report, UnreadableColumn> {
        match (&results.record.experiment.method, &results.record.about) {
            (Self::VerificationBenchmark(parameters), About::VerificationBenchmark(about)) => {
                verification::report(about, parameters, results)
            }
            (Self::ZoneSigning(parameters), About::ZoneSigning(about)) => {
                signing::report(about, parameters, results)
            }
            (Self::EchoFloor(parameters), About::EchoFloor(about)) => {
                echo::report(about, parameters, results)
            }
            // A record that says two things was not written by this program.
            _ => Err(UnreadableColumn("method".to_owned())),
        }
    }
}
