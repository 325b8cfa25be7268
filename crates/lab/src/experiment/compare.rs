//! The comparison: the cost of each algorithm and denial mechanism on one zone, from signing to
//! responses.
//!
//! For each [`Cell`], the comparison generates keys, signs and verifies the zone, writes it to a
//! file, and starts a child process that serves it. It then sends queries for existing and for
//! names that do not exist. Each cell is a combination of an algorithm and a denial mechanism; its
//! results are a row of the [`Comparison`]. `experiments/compare.toml` describes the terminal table
//! and the HTML page.

mod cells;
mod figures;
mod measure;
mod subject;

pub use cells::{Cell, USUAL, cells};
pub use figures::Comparison;
pub use subject::{Subject, SubjectError};

use super::parameters::QueriedNames;
use super::run::Step;
use crate::load::LoadError;
use crate::machine::{self, CpuPlacement, Machine};
use crate::measure::ServerError;
use crate::presentation::PresentationError;
use figures::{FORMAT, ZoneInfo};
use measure::CellMeasurement;
use nonesuch_crypto::KeyError;
use nonesuch_dnssec::keys::KeySetError;
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::verify::Fault;
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
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
    pub subject: &'a Subject,
    /// The cells, in the order of the rows.
    pub cells: &'a [Cell],
    /// Returns the command that serves a zone file with the given origin. The server must listen on
    /// a free port of a loopback address, and then print to standard output a line that contains
    /// the word "ready" and the address with port, for example `ready 127.0.0.1:40001`.
    pub server: &'a dyn Fn(&Path, &Name) -> Command,
    /// Duration of each load, in seconds. A load sends queries during this time. Each cell has
    /// three loads with queries for existing names and three with queries for names that do not
    /// exist. Before them, each kind has a shorter load that warms up the server and is not
    /// measured.
    pub seconds_per_load: f64,
    /// Existing directory for the temporary zone files.
    pub work_dir: &'a Path,
    /// Current time, in seconds since 1970. Signatures are valid from one hour before this time
    /// until 30 days after it.
    pub now: u32,
    /// Command line, for the report.
    pub command: String,
    /// Called before each step of a cell.
    pub progress: &'a dyn Fn(Step<'_>),
}

/// Reasons why a comparison fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CompareError {
    #[error("there are no cells to compare: choose at least one algorithm and denial mechanism")]
    NoCells,
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{0}: {1}")]
    Cell(Cell, #[source] CellFault),
    #[error(
        "{cell}, {asked} names: {wrong} of {all} queries were {}; measurements of such a server are meaningless",
        rcode.as_ref().map_or_else(|| "lost".to_owned(), |rcode| format!("answered with {rcode}"))
    )]
    Refused { cell: Cell, asked: QueriedNames, wrong: u64, all: u64, rcode: Option<String> },
    #[error("cannot write the results as JSON: {0}; this is a bug in nonesuch, please report it")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Report(#[from] PresentationError),
}

/// Reasons why a cell fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CellFault {
    #[error("cannot make keys: {0}")]
    Keys(#[from] KeyError),
    #[error(transparent)]
    KeySet(#[from] KeySetError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("the signed zone has {0} faults, the first: {1}")]
    Unsound(usize, Box<Fault>),
    #[error("the server does not start: {0}")]
    Server(#[from] ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Runs a comparison, cell by cell.
///
/// # Errors
/// Fails with [`CompareError::NoCells`] if there are no cells. Otherwise fails at the first cell
/// whose zone cannot be signed, verified, written or served, or whose server cannot be queried,
/// loses at least half of the queries, or answers more than 1 % of them with another response code
/// than NOERROR or NXDOMAIN ([`CompareError::Cell`], [`CompareError::Write`],
/// [`CompareError::Refused`]). Unusual results that are not errors become notes of the row. The
/// server is stopped and the zone file is removed, even after an error.
pub fn compare(options: &CompareOptions<'_>) -> Result<Comparison, CompareError> {
    if options.cells.is_empty() {
        return Err(CompareError::NoCells);
    }
    let cpus = machine::choose_cpus();
    let cells = options.cells.iter().enumerate();
    let rows = cells.map(|(index, cell)| CellMeasurement { options, index, cell: *cell, cpus }.measure());
    let rows = rows.collect::<Result<_, _>>()?;
    let machine = Machine::describe(cpus);
    let mut notes: Vec<String> = machine.debug_build_note().into_iter().collect();
    notes.extend(placement_note(cpus));
    Ok(Comparison {
        format: FORMAT,
        date: Rfc3339(options.now.into()).to_string(),
        command: options.command.clone(),
        seconds_per_load: options.seconds_per_load,
        rounds: ROUNDS,
        machine,
        zone: ZoneInfo::of(options.subject),
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

#[cfg(test)]
mod tests;
