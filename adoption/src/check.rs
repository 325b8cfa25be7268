//! Checks all rows of the input before they are counted, in one pass and in bounded memory: one batch
//! of rows for each thread, and a few facts for each snapshot.
//!
//! A file that cannot be used is an error. A snapshot with rows that are invalid or repeated is skipped
//! as a whole: its shares would be wrong.

mod file;
mod gaps;
mod row;

pub(crate) use file::FileFault;
pub(crate) use gaps::{Gap, gaps};
pub(crate) use row::{RowChecker, Values};

use crate::error::AdoptionError;
use crate::parallel;
use crate::snapshot::{Day, date_text};
use indicatif::ProgressBar;
use row::RowFault;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Source and day of a snapshot.
pub(crate) type SnapshotKey = (String, Day);

/// Examples of faults that a report has for each snapshot.
const MAX_EXAMPLES: usize = 3;

/// What the check of the rows has found in a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) rows: u64,
    /// Whether its rows are not in the order of their domains, or are in several files. Repeated
    /// domains are then found only by a search.
    pub(crate) is_unordered: bool,
    pub(crate) faults: Faults,
}

/// Faults of the rows of a snapshot: their number, and some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) count: u64,
    pub(crate) examples: Vec<String>,
}

impl Faults {
    fn add(&mut self, row: u64, domain: &str, fault: &RowFault<'_>) {
        self.count += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(format!("row {row}, domain {}: {fault}", row::shortened(domain)));
        }
    }
}

/// A snapshot that is not counted, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Skipped {
    pub(crate) source: String,
    pub(crate) date: String,
    pub(crate) reason: String,
    /// Days since 1970.
    #[serde(skip)]
    pub(crate) day: Day,
}

/// All snapshots of the input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inspection {
    pub(crate) snapshots: BTreeMap<SnapshotKey, Snapshot>,
}

impl Inspection {
    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.snapshots.values().map(|snapshot| snapshot.rows).sum()
    }

    /// Whether repeated domains must be searched for.
    pub(crate) fn is_unordered(&self) -> bool {
        self.snapshots.values().any(|snapshot| snapshot.is_unordered)
    }

    /// Returns the snapshots with faults. `repeated` is the result of the search: snapshot,
    /// number of repeated domains, and one of them.
    pub(crate) fn skipped(&self, repeated: &[(SnapshotKey, i64, String)]) -> Vec<Skipped> {
        let faulty = self.snapshots.iter().filter(|(_, snapshot)| snapshot.faults.count > 0);
        let faulty = faulty.map(|(key, snapshot)| {
            let Faults { count, examples } = &snapshot.faults;
            (key, format!("{count} invalid or repeated rows: {}", examples.join("; ")))
        });
        let mut reasons: BTreeMap<&SnapshotKey, String> = faulty.collect();
        for (key, domains, example) in repeated {
            let reason = format!("{domains} domains are more than once, such as {}", row::shortened(example));
            reasons.entry(key).or_insert(reason);
        }
        let skipped = reasons.into_iter().map(|((source, day), reason)| Skipped {
            source: source.clone(),
            date: date_text(*day),
            reason,
            day: *day,
        });
        skipped.collect()
    }
}

/// Reads and checks all rows of these files.
///
/// # Errors
/// [`AdoptionError::Files`] with all files that cannot be used.
pub(crate) fn inspect(
    files: &[PathBuf],
    threads: usize,
    progress: &ProgressBar,
) -> Result<Inspection, AdoptionError> {
    let results = parallel::map(files, threads, |path| {
        let result = file::inspect(path);
        progress.inc(1);
        result
    });
    let mut inspection = Inspection::default();
    let mut faults = Vec::new();
    for (path, result) in files.iter().zip(results) {
        match result {
            Ok(snapshots) => inspection.add(snapshots),
            Err(fault) => faults.push((path.clone(), fault)),
        }
    }
    if faults.is_empty() { Ok(inspection) } else { Err(AdoptionError::Files(faults)) }
}

impl Inspection {
    fn add(&mut self, snapshots: BTreeMap<SnapshotKey, Snapshot>) {
        for (key, snapshot) in snapshots {
            let known = self.snapshots.entry(key).or_default();
            known.is_unordered |= snapshot.is_unordered || known.rows > 0;
            known.rows += snapshot.rows;
            known.faults.count += snapshot.faults.count;
            known.faults.examples.extend(snapshot.faults.examples);
            known.faults.examples.truncate(MAX_EXAMPLES);
        }
    }
}
