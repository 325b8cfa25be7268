//! The comparison: the cost of each algorithm and denial mechanism on one zone, from signing to
//! responses, and a decision.
//!
//! For each [`Combination`], the comparison generates keys, signs and verifies the zone, writes it
//! to a file, and starts a child process that serves it. It validates a sample of the responses, and
//! then measures the server under queries for existing and for non-existent names. Each combination
//! is a row of the [`Comparison`]. `experiments/compare.toml` describes the terminal table and the
//! HTML page.

mod combinations;
mod decision;
mod figures;
mod measure;
mod prepare;
mod summary;
mod zone;

pub use combinations::{Combination, DEFAULT_ALGORITHMS, DEFAULT_MECHANISMS, combinations};
pub use decision::{Need, NeedError};
pub use figures::Comparison;
pub use zone::{ComparedZone, ComparedZoneError};

use super::parameters::QueriedNames;
use super::run::Step;
use crate::load::LoadError;
use crate::machine::{self, CpuPlacement};
use crate::measure::key_files::WriteError;
use crate::measure::zone_preparation::ZonePreparationError;
use crate::measure::{ServedZone, ServerError};
use crate::presentation::PresentationError;
use crate::record::{Invocation, RecordError, RunRecord};
use figures::{FORMAT, Row, ZoneInfo};
use measure::Measurement;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the file with the results in JSON.
pub const JSON_FILE: &str = "compare.json";
/// Name of the file with the HTML page.
pub const PAGE_FILE: &str = "report.html";
/// Default number of names in the generated zone. With this number, the default cells take less
/// than two minutes on two CPUs.
pub const DEFAULT_NAMES: u64 = 20_000;
/// Default duration of each load (queries that are sent for some time), in seconds.
pub const DEFAULT_SECONDS_PER_LOAD: f64 = 0.5;
/// Number of rounds for each cell. A round sends one load of queries for existing names, then one
/// of queries for names that do not exist.
const ROUNDS: u32 = 3;

/// Options of a comparison.
pub struct CompareOptions<'a> {
    /// The zone and its queries.
    pub zone: &'a ComparedZone,
    /// The combinations, in the order of the rows.
    pub combinations: &'a [Combination],
    /// The properties that the zone owner needs.
    pub required_properties: &'a [Need],
    /// Returns the command that serves a zone. The server must listen on a free port of a loopback
    /// address, and then print a line with the word "ready" and this address.
    pub server: &'a dyn Fn(&ServedZone) -> Command,
    /// Duration of each load, in seconds. Each combination has three loads with queries for existing
    /// names and three with denied names.
    pub seconds_per_load: f64,
    /// Existing directory for the temporary zone and key files.
    pub work_dir: &'a Path,
    /// Current time, in seconds since 1970. Signatures are valid from one hour before this time
    /// until 30 days after it.
    pub now: u32,
    /// Command line, for the report.
    pub command: String,
    /// Seed of the queries, and of a generated zone, for the report.
    pub seed: u64,
    /// Commit of this program for the report; `unknown` if it is not known.
    pub commit: &'a str,
    /// Called before each step.
    pub progress: &'a dyn Fn(Step<'_>),
}

/// Reasons why a comparison fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CompareError {
    #[error("there is nothing to compare: choose at least one algorithm and denial mechanism")]
    NoCombinations,
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{0}: {1}")]
    Combination(Combination, #[source] CombinationFault),
    #[error(
        "{combination}, {names} names: {wrong} of {all} queries were {}; measurements of such a server are meaningless",
        rcode.as_ref().map_or_else(|| "lost".to_owned(), |rcode| format!("answered with {rcode}"))
    )]
    NotAnswered { combination: Combination, names: QueriedNames, wrong: u64, all: u64, rcode: Option<String> },
    #[error(
        "{combination}: {invalid} of {all} sampled responses do not validate, the first: {reason}; \
         figures of such a server are meaningless. This is a bug in nonesuch, please report it"
    )]
    NotValidated { combination: Combination, invalid: u64, all: u64, reason: String },
    #[error("cannot write the results as JSON: {0}; this is a bug in nonesuch, please report it")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Report(#[from] PresentationError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl From<WriteError> for CompareError {
    fn from(WriteError { path, source }: WriteError) -> Self {
        Self::Write { path, source }
    }
}

/// Reasons why a combination cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CombinationFault {
    #[error(transparent)]
    ZonePreparation(#[from] ZonePreparationError),
    #[error("the server does not start: {0}")]
    Server(#[from] ServerError),
    #[error("the server did not answer the query for the keys of the zone (DNSKEY) over UDP")]
    NoKeyResponse,
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Runs a comparison.
///
/// Several servers run at the same time, as far as their memory permits. The rounds of their loads
/// alternate, so that a slow change of the machine affects all combinations.
///
/// # Errors
/// Fails with [`CompareError::NoCombinations`] if there are no combinations. Otherwise fails at the
/// first combination whose zone cannot be signed, verified, written or served, or whose server
/// cannot be loaded with queries, does not answer them, or sends responses that do not validate
/// ([`CompareError::Combination`], [`CompareError::Write`], [`CompareError::NotAnswered`],
/// [`CompareError::NotValidated`]). Unusual results that are not errors
/// become notes of the row. After an error too, the servers are stopped and the files removed.
pub fn compare(options: &CompareOptions<'_>) -> Result<Comparison, CompareError> {
    if options.combinations.is_empty() {
        return Err(CompareError::NoCombinations);
    }
    let cpus = machine::choose_cpus();
    let CompareOptions { now, seed, commit, command, .. } = options;
    let run = RunRecord::begin_on(Invocation { now: *now, command, seed: *seed, commit }, cpus)?;
    let rows = measure_all(options, cpus, run.machine.memory_kib / 2)?;
    let mut notes: Vec<String> = run.machine.debug_build_note().into_iter().collect();
    notes.extend(placement_note(cpus));
    Ok(Comparison {
        format: FORMAT,
        run,
        seconds_per_load: options.seconds_per_load,
        rounds: ROUNDS,
        zone: ZoneInfo::of(options.zone),
        decision: decision::decide(options.required_properties, options.combinations, &rows),
        alternatives: decision::alternatives(options.required_properties, options.combinations, &rows),
        rows,
        notes,
    })
}

/// Returns a note for the results if server and load generator had no CPUs of their own.
fn placement_note(cpus: Option<CpuPlacement>) -> Option<String> {
    let effect = "server and load generator can have shared a CPU, so the queries/s are not reliable";
    let note = || format!("No two CPUs were available to this process: {effect}.");
    cpus.is_none().then(note)
}

/// Measures all combinations. The servers that run at the same time together have at most about
/// `memory_kib` of resident memory.
fn measure_all(
    options: &CompareOptions<'_>,
    cpus: Option<CpuPlacement>,
    memory_kib: u64,
) -> Result<Vec<Row>, CompareError> {
    let steps = options.combinations.len() as u64;
    let mut rows = Vec::new();
    let mut running: Vec<Measurement<'_>> = Vec::new();
    for (index, combination) in options.combinations.iter().enumerate() {
        let report = |what: &str| {
            let what = format!("{combination}: {what}");
            (options.progress)(Step { index: index as u64, steps, what: &what });
        };
        running.push(Measurement::start(options, *combination, cpus, &report)?);
        let used: u64 = running.iter().filter_map(Measurement::resident_kib).sum();
        if used < memory_kib && index + 1 < options.combinations.len() {
            continue;
        }
        for round in 1..=ROUNDS {
            let (count, s) = (running.len(), if running.len() == 1 { "" } else { "s" });
            let what = format!("sending queries to {count} server{s}, round {round} of {ROUNDS}");
            (options.progress)(Step { index: index as u64, steps, what: &what });
            for measurement in &mut running {
                measurement.run_round(round)?;
            }
        }
        for measurement in running.drain(..) {
            rows.push(measurement.finish()?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
