//! Runs the scenarios of directories.

use super::exceptions::{Exception, ExceptionKind, Exceptions};
use super::failure::Failed;
use super::{MakeMachine, Outcome, RunOptions, run};
use crate::rpl::{Dialect, RplError, Scenario};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Maximum depth of directories.
const MAX_DEPTH: u32 = 16;

/// What is run, and how.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// The scenarios that are known not to pass.
    pub exceptions: Exceptions,
    /// The dialect of all files; `None`: it is detected for each file.
    pub dialect: Option<Dialect>,
    /// Options of each run.
    pub options: RunOptions,
}

/// Judgement of a scenario, with the list of exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes, as it must.
    Passed,
    /// It fails, and is not listed.
    Failed(Box<Failed>),
    /// It is not applicable, listed or not; the text is the reason.
    NotApplicable(String),
    /// It fails, and is listed as a deviation.
    Listed(ExceptionKind, String),
    /// It passes, although it is listed: the list must be changed. The line of the list is given.
    ListedButPasses(u32),
    /// The file is malformed.
    Malformed(RplError),
    /// The machine panicked. The text is its message.
    Panicked(String),
}

impl Verdict {
    /// Returns whether the verdict makes a run fail.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::Passed | Self::NotApplicable(_) | Self::Listed(..))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => write!(f, "passed"),
            Self::Failed(failed) => write!(f, "failed: {failed}"),
            Self::NotApplicable(reason) => write!(f, "not applicable: {reason}"),
            Self::Listed(kind, reason) => write!(f, "{kind}: {reason}"),
            Self::ListedButPasses(line) => {
                write!(f, "failed: passes, but line {line} of the exceptions lists it; remove the line")
            }
            Self::Malformed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "failed: the machine panicked: {message}"),
        }
    }
}

/// Numbers of scenarios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed.
    pub passed: usize,
    /// Failed, for any reason.
    pub failed: usize,
    /// Not applicable.
    pub not_applicable: usize,
    /// Listed as a deviation.
    pub deviations: usize,
}

impl Counts {
    /// Adds a scenario.
    pub const fn add(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::NotApplicable(_) | Verdict::Listed(ExceptionKind::NotApplicable, _) => {
                &mut self.not_applicable
            }
            Verdict::Listed(ExceptionKind::Deviation, _) => &mut self.deviations,
            _ => &mut self.failed,
        } += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, not_applicable, deviations } = self;
        write!(
            f,
            "{passed} passed, {failed} failed, {not_applicable} not applicable, {deviations} deviations"
        )
    }
}

impl Suite {
    /// Runs one scenario and compares the outcome with the list of exceptions. A panic of the machine
    /// is a verdict.
    #[must_use]
    pub fn judge(&self, file: &Path, make_machine: &MakeMachine<'_>) -> Verdict {
        let scenario = match Scenario::read(file, self.dialect) {
            Ok(scenario) => scenario,
            Err(error) => return Verdict::Malformed(error),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&scenario, make_machine, self.options)));
        match (outcome, self.exceptions.find(file)) {
            (Err(panic), _) => Verdict::Panicked(panic_message(&*panic)),
            (Ok(Outcome::NotApplicable(reason)), _) => Verdict::NotApplicable(reason),
            (Ok(Outcome::Passed), None) => Verdict::Passed,
            (Ok(Outcome::Passed), Some(exception)) => Verdict::ListedButPasses(exception.line),
            (Ok(Outcome::Failed(failed)), None) => Verdict::Failed(failed),
            (Ok(Outcome::Failed(_)), Some(exception)) => judge_listed(exception),
        }
    }
}

fn judge_listed(exception: &Exception) -> Verdict {
    let reason = exception.reason.clone();
    match exception.kind {
        ExceptionKind::NotApplicable => Verdict::NotApplicable(reason),
        kind => Verdict::Listed(kind, reason),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Returns all scenarios in `paths`, which are files, or directories with files `*.rpl` at any depth.
/// The files of each path are sorted.
///
/// # Errors
/// If a directory cannot be read; the path is given.
pub fn find_scenarios(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        let start = found.len();
        add_scenarios(path, MAX_DEPTH, &mut found)?;
        found[start..].sort_unstable();
    }
    Ok(found)
}

fn add_scenarios(path: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let fail = |error| (path.to_owned(), error);
    if !std::fs::metadata(path).map_err(fail)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?.path();
        if entry.is_dir() && depth > 0 {
            add_scenarios(&entry, depth - 1, found)?;
        } else if entry.is_file() && entry.extension().is_some_and(|extension| extension == "rpl") {
            found.push(entry);
        }
    }
    Ok(())
}
