//! The methods of experiments. To add a method, add it here.
//!
//! A method is a module with parameters and a `run` function that returns rows. The TOML file of
//! its experiment contains everything else.

use super::error::RunError;
use super::run::{Findings, RunOptions};
use super::{
    echo, properties, resolver_load, resolver_model, server_load, signing, validation_attacks, verification,
    zone_programs,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A method with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "parameters", rename_all = "kebab-case")]
pub enum Method {
    /// Counts operations on signatures and VRF proofs.
    VerificationBenchmark(verification::Parameters),
    /// Signs and verifies complete zones.
    ZoneSigning(signing::Parameters),
    /// Compares an echo server with `nonesuch serve`.
    EchoFloor(echo::Parameters),
    /// Loads servers with zones of several algorithms and denial mechanisms.
    ServerLoad(server_load::Parameters),
    /// Loads resolvers in front of a local tree.
    ResolverLoad(resolver_load::Parameters),
    /// Attacks zones with each denial mechanism.
    Properties(properties::Parameters),
    /// Records resolvers, fits the cost model, and checks its prediction.
    ResolverModel(resolver_model::Parameters),
    /// Sends queries for hostile zones to resolvers.
    ValidationAttacks(validation_attacks::Parameters),
    /// Runs programs that sign and verify zones.
    ZonePrograms(zone_programs::Parameters),
}

/// Names of the methods.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MethodName {
    VerificationBenchmark,
    ZoneSigning,
    EchoFloor,
    ServerLoad,
    ResolverLoad,
    Properties,
    ResolverModel,
    ValidationAttacks,
    ZonePrograms,
}

impl Method {
    /// Returns the name of the method in experiment files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::VerificationBenchmark(_) => "verification-benchmark",
            Self::ZoneSigning(_) => "zone-signing",
            Self::EchoFloor(_) => "echo-floor",
            Self::ServerLoad(_) => "server-load",
            Self::ResolverLoad(_) => "resolver-load",
            Self::Properties(_) => "properties",
            Self::ResolverModel(_) => "resolver-model",
            Self::ValidationAttacks(_) => "validation-attacks",
            Self::ZonePrograms(_) => "zone-programs",
        }
    }

    /// Returns the approximate duration, if nothing is omitted.
    pub fn duration(&self) -> Duration {
        match self {
            Self::VerificationBenchmark(parameters) => parameters.duration(),
            Self::ZoneSigning(parameters) => parameters.duration(),
            Self::EchoFloor(parameters) => parameters.duration(),
            Self::ServerLoad(parameters) => parameters.duration(),
            Self::ResolverLoad(parameters) => parameters.duration(),
            Self::Properties(parameters) => parameters.duration(),
            Self::ResolverModel(parameters) => parameters.duration(),
            Self::ValidationAttacks(parameters) => parameters.duration(),
            Self::ZonePrograms(parameters) => parameters.duration(),
        }
    }

    /// Runs the method. Returns a description of the measured programs and zones for the record.
    pub(super) fn run(
        &self,
        options: &RunOptions<'_>,
        findings: &mut Findings,
    ) -> Result<serde_json::Value, RunError> {
        match self {
            Self::VerificationBenchmark(parameters) => verification::run(parameters, options, findings),
            Self::ZoneSigning(parameters) => signing::run(parameters, options, findings),
            Self::EchoFloor(parameters) => echo::run(parameters, options, findings),
            Self::ServerLoad(parameters) => server_load::run(parameters, options, findings),
            Self::ResolverLoad(parameters) => resolver_load::run(parameters, options, findings),
            Self::Properties(parameters) => properties::run(parameters, options, findings),
            Self::ResolverModel(parameters) => resolver_model::run(parameters, options, findings),
            Self::ValidationAttacks(parameters) => validation_attacks::run(parameters, options, findings),
            Self::ZonePrograms(parameters) => zone_programs::run(parameters, options, findings),
        }
    }
}
