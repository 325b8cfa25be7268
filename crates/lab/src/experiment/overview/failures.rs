//! Experiments that failed in the last run of all: `report/failures.json`. With this file, the page
//! can be generated again.

use super::super::error::StoreError;
use super::super::store::write_file;
use crate::files::read_bounded;
use nonesuch_proto::timestamp::Rfc3339;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

const FILE: &str = "failures.json";

/// Maximum octets of the file that are read.
const FILE_MAX: u64 = 1 << 20;

/// A failed run of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Name of the experiment.
    pub experiment: String,
    /// Time of the failure, in RFC 3339 format. Later results replace it.
    pub date: String,
    /// The error.
    pub reason: String,
}

impl Failure {
    /// Creates the failure of an experiment at `now`, in seconds since 1970.
    #[must_use]
    pub fn new(experiment: &str, now: u32, reason: &impl Display) -> Self {
        let date = Rfc3339(now.into()).to_string();
        Self { experiment: experiment.to_owned(), date, reason: reason.to_string() }
    }
}

/// Writes the failures of the last run of all.
pub(super) fn write(dir: &Path, failures: &[Failure]) -> Result<(), StoreError> {
    let text = serde_json::to_string_pretty(failures)
        .map_err(|source| StoreError::Record { path: dir.join(FILE), source })?;
    write_file(dir, FILE, format!("{text}\n").as_bytes())
}

/// Reads the failures. Without a file, there are none.
pub(super) fn read(dir: &Path) -> Result<Vec<Failure>, StoreError> {
    let path = dir.join(FILE);
    match read_bounded(&path, FILE_MAX) {
        Ok(text) => serde_json::from_slice(&text).map_err(|source| StoreError::Record { path, source }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(StoreError::Read { path, source }),
    }
}
