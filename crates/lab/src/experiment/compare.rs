//! The comparison: what each algorithm and denial mechanism costs on one zone, from signing to the answered query.
//!
//! Each [`Cell`] is gone through in the same way: keys are made, the zone is signed and verified, written to a file
//! and served by a child process, which is asked for names that exist and names that do not. Each cell is a row of the
//! [`Comparison`]; `experiments/compare.toml` makes the table for the terminal and the page of them.

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
use crate::machine::{self, Machine};
use crate::measure::ServerError;
use crate::presentation::PresentationError;
use figures::{FORMAT, ZoneInfo};
use measure::Measuring;
use nonesuch_crypto::KeyError;
use nonesuch_dnssec::keys::KeySetError;
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::verify::Fault;
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the file for machines.
pub const JSON_FILE: &str = "compare.json";
/// Name of the file for people.
pub const PAGE_FILE: &str = "report.html";
/// Names of the generated zone that is compared on where there is no other: with it the default cells take less than
/// two minutes on two CPUs.
pub const DEFAULT_NAMES: u64 = 20_000;
/// Seconds of each load, where nothing else is wanted.
pub const DEFAULT_SECONDS_PER_LOAD: f64 = 0.5;
/// How often each kind of load is repeated, in turn with the other kind.
const ROUNDS: u32 = 3;

/// What is compared, and how.
pub struct CompareOptions<'a> {
    /// The zone and the queries for it.
    pub subject: &'a Subject,
    /// The cells, in the order of the rows to be.
    pub cells: &'a [Cell],
    /// How a server of the zone file given, with the origin given, is started. It is to listen on a free port of the
    /// loopback address, and then to print a line with the word "ready" and that address.
    pub server: &'a dyn Fn(&Path, &Name) -> Command,
    /// Seconds of each load; there are three for existing and as many for denied names in each cell.
    pub seconds_per_load: f64,
    /// An existing folder for zone files; they are removed again.
    pub work_dir: &'a Path,
    /// The time, in seconds since 1970: signatures are valid from an hour before it for 30 days.
    pub now: u32,
    /// The command line, for the reader of the report.
    pub command: String,
    /// Called before each step of a cell.
    pub progress: &'a dyn Fn(Step<'_>),
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum CompareError {
    #[error("there are no cells to compare: choose at least one algorithm and denial mechanism")]
    NoCells,
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{0}: {1}")]
    Cell(Cell, #[source] CellFault),
    #[error(
        "{cell}, {asked} names: {wrong} of {all} queries were {}; figures of such a server say nothing",
        rcode.as_ref().map_or_else(|| "lost".to_owned(), |rcode| format!("answered with {rcode}"))
    )]
    Refused { cell: Cell, asked: QueriedNames, wrong: u64, all: u64, rcode: Option<String> },
    #[error("this is no comparison as `nonesuch compare` writes it: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Report(#[from] PresentationError),
}

/// What fails in a cell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum CellFault {
    #[error("cannot make keys: {0}")]
    Keys(#[from] KeyError),
    #[error(transparent)]
    KeySet(#[from] KeySetError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("the signed zone has {0} faults, the first: {1}")]
    Unsound(usize, Box<Fault>),
    #[error("the server does not serve: {0}")]
    Server(#[from] ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Compares, cell by cell.
///
/// # Errors
/// The first cell that cannot be signed, verified, served or asked ends the comparison. What is odd but may be is a
/// note of its row. No server is left running, and no zone file behind.
pub fn compare(options: &CompareOptions<'_>) -> Result<Comparison, CompareError> {
    if options.cells.is_empty() {
        return Err(CompareError::NoCells);
    }
    let places = machine::choose_cpus();
    let cells = options.cells.iter().enumerate();
    let rows = cells.map(|(index, cell)| Measuring { options, index, cell: *cell, places }.measure());
    let rows = rows.collect::<Result<_, _>>()?;
    let machine = Machine::here(places);
    let mut notes: Vec<String> = machine.note_of_debug_build().into_iter().collect();
    if places.is_none() {
        let effect = "server and load generator took turns on it, and queries/s say little";
        notes.push(format!("There is one CPU only: {effect}."));
    }
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

#[cfg(test)]
mod tests;
