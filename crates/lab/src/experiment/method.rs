//! The methods that experiments are made of: the one place where a method is added.
//!
//! A method is a module with parameters and a run that yields rows; the TOML file of its experiment has all else.

use super::error::RunError;
use super::run::{Findings, RunOptions};
use super::{echo, signing, verification};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A method with the parameters that it is used with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "parameters", rename_all = "kebab-case")]
pub enum Method {
    /// Operations on signatures, counted.
    VerificationBenchmark(verification::Parameters),
    /// Whole zones, signed and verified.
    ZoneSigning(signing::Parameters),
    /// A server that only receives and sends, beside ours.
    EchoFloor(echo::Parameters),
}

/// The methods' names.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MethodName {
    VerificationBenchmark,
    ZoneSigning,
    EchoFloor,
}

impl Method {
    /// The name, as files have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::VerificationBenchmark(_) => "verification-benchmark",
            Self::ZoneSigning(_) => "zone-signing",
            Self::EchoFloor(_) => "echo-floor",
        }
    }

    /// How long it takes, about, where all that is asked for is there.
    pub fn duration(&self) -> Duration {
        match self {
            Self::VerificationBenchmark(parameters) => parameters.duration(),
            Self::ZoneSigning(parameters) => parameters.duration(),
            Self::EchoFloor(parameters) => parameters.duration(),
        }
    }

    /// Runs it; gives what was measured with what, for the record.
    pub(super) fn run(
        &self,
        options: &RunOptions<'_>,
        findings: &mut Findings,
    ) -> Result<serde_json::Value, RunError> {
        match self {
            Self::VerificationBenchmark(parameters) => verification::run(parameters, options, findings),
            Self::ZoneSigning(parameters) => signing::run(parameters, options, findings),
            Self::EchoFloor(parameters) => echo::run(parameters, options, findings),
        }
    }
}
