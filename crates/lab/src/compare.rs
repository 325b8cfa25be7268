//! The comparison: what each algorithm and denial mechanism costs on one zone, from signing to the answered query.
//!
//! Each [`Cell`] is gone through in the same way: keys are made, the zone is signed and verified, written to a file
//! and served by a child process, which is asked for names that exist and names that do not. Servers are met over the
//! wire only: the caller says how one is started. The outcome is a [`Comparison`]: a table for the terminal, a file for
//! machines, a page for people.

mod cells;
mod figures;
mod measure;
mod report;
mod subject;

pub use crate::machine::Machine;
pub use crate::measure::ServerError;
pub use cells::{Cell, KeyKind, KeyKindError, Selection, cells};
pub use figures::{Comparison, FORMAT, LoadFigures, Measured, Row, Work};
pub use subject::{QUERIES, Subject, SubjectError, ZoneFacts, strip};

use crate::load::LoadError;
use crate::machine::{self, Places};
use crate::presentation::PresentationError;
use nonesuch_crypto::KeyError;
use nonesuch_dnssec::keys::KeySetError;
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::verify::Fault;
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
use std::fmt;
use std::fs;
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
pub const ROUNDS: u32 = 3;

/// What is compared, and how.
pub struct CompareOptions<'a> {
    /// The zone and the queries for it.
    pub subject: &'a Subject,
    /// The cells, in the order of the rows to be.
    pub cells: &'a [Cell],
    /// How a server of the zone file given, with the origin given, is started. It is to listen on a free port of the
    /// loopback address, and then to print a line with the word "ready" and that address.
    pub server: &'a dyn Fn(&Path, &Name) -> Command,
    /// Seconds of each load; there are [`ROUNDS`] for existing and as many for denied names in each cell.
    pub seconds_per_load: f64,
    /// Whether server and load generator are kept on CPUs of their own, where there are two.
    pub pin: bool,
    /// An existing folder for zone files; they are removed again.
    pub work_dir: &'a Path,
    /// The time, in seconds since 1970: signatures are valid from an hour before it for 30 days.
    pub now: u32,
    /// The command line, for the reader of the report.
    pub command: String,
    /// Called before each step.
    pub progress: &'a dyn Fn(Progress),
}

/// Where a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of the cell, from 0.
    pub index: usize,
    /// Number of cells.
    pub cells: usize,
    /// The cell.
    pub cell: Cell,
    /// What begins.
    pub stage: Stage,
}

/// A step of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Keys are made.
    Keys,
    /// The zone is signed.
    Signing,
    /// The zone is verified.
    Verification,
    /// The zone file is written.
    Writing,
    /// The server is started.
    Start,
    /// The server is asked.
    Load,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Keys => "making keys",
            Self::Signing => "signing",
            Self::Verification => "verifying",
            Self::Writing => "writing the zone file",
            Self::Start => "starting the server",
            Self::Load => "sending queries",
        })
    }
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// There is nothing to compare.
    #[error("there are no cells to compare: choose at least one algorithm and denial mechanism")]
    NoCells,
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Keys cannot be made.
    #[error("{cell}: cannot make keys: {source}")]
    Keys {
        /// The cell.
        cell: Cell,
        /// Why.
        source: KeyError,
    },
    /// Keys cannot be used.
    #[error("{cell}: {source}")]
    KeySet {
        /// The cell.
        cell: Cell,
        /// Why.
        source: KeySetError,
    },
    /// The zone cannot be signed.
    #[error("{cell}: {source}")]
    Sign {
        /// The cell.
        cell: Cell,
        /// Why.
        source: SignError,
    },
    /// The signed zone has faults.
    #[error("{cell}: the signed zone has {count} faults, the first: {first}")]
    Unsound {
        /// The cell.
        cell: Cell,
        /// Number of faults.
        count: usize,
        /// The first of them.
        first: Box<Fault>,
    },
    /// The server does not serve.
    #[error("{cell}: the server does not serve: {source}")]
    Server {
        /// The cell.
        cell: Cell,
        /// Why.
        source: ServerError,
    },
    /// Load cannot be sent, or the server died from it.
    #[error("{cell}: {source}")]
    Load {
        /// The cell.
        cell: Cell,
        /// Why.
        source: LoadError,
    },
    /// The server does not do what is measured.
    #[error(
        "{cell}, {kind} names: {wrong} of {all} queries were {how}; figures of such a server say nothing"
    )]
    Refused {
        /// The cell.
        cell: Cell,
        /// Which names were asked for.
        kind: LoadKind,
        /// Queries that were not served.
        wrong: u64,
        /// Queries sent.
        all: u64,
        /// What became of them.
        how: Refusal,
    },
    /// The text is no comparison.
    #[error("this is no comparison as `nonesuch compare` writes it: {0}")]
    Json(serde_json::Error),
    /// There is no report of it.
    #[error(transparent)]
    Report(#[from] PresentationError),
    /// The text is a comparison of another version.
    #[error(
        "this comparison has format {found}, but format {FORMAT} is read: make it anew with this version"
    )]
    Format {
        /// The version found.
        found: u32,
    },
}

/// Which names are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadKind {
    /// Names that exist.
    Existing,
    /// Names that do not exist.
    Denied,
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Existing => "existing",
            Self::Denied => "denied",
        })
    }
}

/// How queries were not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No answer came in time.
    #[error("lost")]
    Lost,
    /// The answer was an error.
    #[error("answered with {0}")]
    Rcode(String),
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
    let places = if options.pin { machine::choose_places() } else { None };
    let mut rows = Vec::with_capacity(options.cells.len());
    for index in 0..options.cells.len() {
        rows.push(measure::measure(options, index, places)?);
    }
    let machine = Machine::here(places);
    Ok(Comparison {
        format: FORMAT,
        date: Rfc3339(options.now.into()).to_string(),
        command: options.command.clone(),
        seconds_per_load: options.seconds_per_load,
        rounds: ROUNDS,
        notes: notes(&machine, options.pin, places),
        zone: ZoneFacts::of(options.subject),
        machine,
        rows,
    })
}

fn notes(machine: &Machine, pin: bool, places: Option<Places>) -> Vec<String> {
    let mut notes: Vec<String> = machine.note_of_debug_build().into_iter().collect();
    if pin && places.is_none() {
        let effect = "server and load generator took turns on it, and queries/s say little";
        notes.push(format!("There is one CPU only: {effect}."));
    }
    notes
}

/// A file that is removed when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
