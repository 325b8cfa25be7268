//! The files of a recording: their names, limits and contents.
//!
//! | file | contents |
//! | --- | --- |
//! | `recording.json` | description: name, source, gaps ([`Metadata`]) |
//! | `windows-000001.csv` and so on | windows, at most [`WINDOWS_PER_PART`] in each file |
//! | `windows-000001.parquet` and so on | the same, for other tools |
//! | `domains.csv`, `domains.parquet` | domains |
//! | `lock` | locked by the process that records |

use super::VerificationSource;
use super::columns::{domain_columns, domain_of};
use super::error::RecordingError;
use crate::cost_model::record::{CountedDomain, Gap};
use crate::data::{DataColumn, DataTable};
use crate::experiment::{csv, parquet_file};
use crate::files::{read_bounded, replace_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Version of the format of the files.
pub(super) const FORMAT: u32 = 1;
/// The description.
pub(super) const METADATA: &str = "recording.json";
/// The domains, without extension.
pub(super) const DOMAINS: &str = "domains";
/// The file that the process that records locks.
pub(super) const LOCK: &str = "lock";
/// Maximum windows in a part.
pub(super) const WINDOWS_PER_PART: usize = 1000;
/// Maximum windows of a recording: half a year of windows of a second.
pub(super) const WINDOWS_MAX: usize = 16_000_000;
/// Maximum domains of a recording.
pub(super) const DOMAINS_MAX: usize = 1_000_000;

/// Maximum octets of the description, of a part and of the domains.
const METADATA_OCTETS: u64 = 1 << 20;
const PART_OCTETS: u64 = 4 << 20;
const DOMAINS_OCTETS: u64 = 512 << 20;

/// The contents of `recording.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Metadata {
    pub(super) format: u32,
    /// Version of the program that wrote the recording.
    pub(super) version: String,
    pub(super) name: String,
    /// The recorded source: the control socket, dnstap or packets, with their place.
    pub(super) source: String,
    pub(super) verified_by: VerificationSource,
    /// Length of full windows, in microseconds.
    pub(super) window_us: u64,
    /// Number of parts that are complete or being written.
    pub(super) parts: u32,
    /// Number of gaps, by reason.
    pub(super) gaps: BTreeMap<String, u64>,
    /// The last gaps.
    pub(super) last_gaps: Vec<Gap>,
    /// Remarks on how the numbers were found.
    pub(super) notes: Vec<String>,
}

/// Name of the part with this number, without extension.
pub(super) fn part_name(number: u32) -> String {
    format!("windows-{number:06}")
}

pub(super) fn csv_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.csv"))
}

pub(super) fn read_metadata(directory: &Path) -> Result<Metadata, RecordingError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let path = directory.join(METADATA);
    let text = read_bounded(&path, METADATA_OCTETS).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RecordingError::NotARecording { path: directory.to_path_buf() },
        _ => RecordingError::Read { path: path.clone(), source },
    })?;
    let fault = |source| RecordingError::Metadata { path: path.clone(), source };
    // A later format may have other members.
    let Version { format } = serde_json::from_slice(&text).map_err(fault)?;
    if format != FORMAT {
        return Err(RecordingError::Format { path, found: format, known: FORMAT });
    }
    serde_json::from_slice(&text).map_err(fault)
}

pub(super) fn write_metadata(directory: &Path, metadata: &Metadata) -> Result<(), RecordingError> {
    let path = || directory.join(METADATA);
    let text = serde_json::to_string_pretty(metadata);
    let text = text.map_err(|source| RecordingError::Metadata { path: path(), source })? + "\n";
    replace_file(directory, METADATA, text.as_bytes())
        .map_err(|source| RecordingError::Write { path: path(), source })
}

/// Reads a table from its CSV file; `None` if the file does not exist.
pub(super) fn read_table(
    directory: &Path,
    name: &str,
    columns: &[DataColumn],
) -> Result<Option<DataTable>, RecordingError> {
    let path = csv_path(directory, name);
    let limit = if name == DOMAINS { DOMAINS_OCTETS } else { PART_OCTETS };
    match read_bounded(&path, limit) {
        Ok(text) => {
            csv::read(&text, columns).map(Some).map_err(|source| RecordingError::Csv { path, source })
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordingError::Read { path, source }),
    }
}

/// Writes a table as Parquet, and then as CSV, which this program reads: the reader of the Parquet
/// library may panic on a damaged file.
pub(super) fn write_table(directory: &Path, name: &str, table: &DataTable) -> Result<(), RecordingError> {
    let (text_file, parquet_file) = (format!("{name}.csv"), format!("{name}.parquet"));
    let path = |file: &str| directory.join(file);
    let octets = parquet_file::write(table, &[])
        .map_err(|source| RecordingError::Parquet { path: path(&parquet_file), source })?;
    let text = csv::write(table).map_err(|source| RecordingError::Csv { path: path(&text_file), source })?;
    for (file, octets) in [(&parquet_file, &octets), (&text_file, &text)] {
        replace_file(directory, file, octets)
            .map_err(|source| RecordingError::Write { path: path(file), source })?;
    }
    Ok(())
}

/// Reads the domains; none if the recording has no file of them.
pub(super) fn read_domains(directory: &Path) -> Result<Vec<CountedDomain>, RecordingError> {
    let Some(table) = read_table(directory, DOMAINS, &domain_columns())? else { return Ok(Vec::new()) };
    let path = csv_path(directory, DOMAINS);
    if table.rows().len() > DOMAINS_MAX {
        return Err(RecordingError::TooMany { path, what: "domains", limit: DOMAINS_MAX });
    }
    let domain = |(index, row): (usize, &Vec<serde_json::Value>)| {
        // Line 1 has the names of the columns.
        domain_of(row).ok_or_else(|| RecordingError::Domain { path: path.clone(), line: index + 2 })
    };
    table.rows().iter().enumerate().map(domain).collect()
}
