//! Writes recordings.

use super::columns::{DomainRow, WindowRow, domain_columns, window_columns};
use super::error::RecordingError;
use super::files::{
    DOMAINS, FORMAT, LOCK, METADATA, Metadata, WINDOWS_PER_PART, part_name, read_domains, read_metadata,
    write_metadata, write_table,
};
use super::read::read_part;
use super::{VerificationSource, Window};
use crate::cost_model::record::{CountedDomain, DomainCounter, Gap};
use crate::data::DataTable;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum gaps that the description lists one by one.
const GAPS_LISTED: usize = 100;

/// Source and method of a recording. A recording that is continued must have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSetup {
    /// Name for reports; `None` for that of the recording that is continued, or of the directory.
    pub name: Option<String>,
    /// The recorded source, for example `control socket /run/nonesuch/control`.
    pub source: String,
    /// What counts the verified signatures.
    pub verified_by: VerificationSource,
    /// Length of full windows, in microseconds.
    pub window: u64,
}

/// Writes a recording to a directory: windows in parts of bounded size. A part is replaced at each
/// [`flush`](Self::flush), so that a crash loses only the windows since the last one.
#[derive(Debug)]
pub struct RecordingWriter {
    directory: PathBuf,
    metadata: Metadata,
    /// The windows of the current part.
    part: Vec<Window>,
    /// Whether the part has windows that are not written.
    is_changed: bool,
    /// Number of windows of earlier parts.
    earlier: usize,
    /// End of the last window.
    end: u64,
    /// Locked until the writer is dropped.
    _lock: File,
}

impl RecordingWriter {
    /// Opens a directory, which is created if it does not exist. The recording in it is continued
    /// with a new part.
    ///
    /// # Errors
    /// Fails if another process records there, if the recording is of another source or damaged, if
    /// the directory has other files, or if it cannot be written.
    pub fn open(directory: &Path, setup: &RecordingSetup) -> Result<Self, RecordingError> {
        let failed = |source| RecordingError::Write { path: directory.to_path_buf(), source };
        fs::create_dir_all(directory).map_err(failed)?;
        let is_new = || !directory.join(METADATA).exists();
        if is_new()
            && fs::read_dir(directory).map_err(failed)?.flatten().any(|entry| entry.file_name() != LOCK)
        {
            return Err(RecordingError::Occupied { path: directory.to_path_buf() });
        }
        let lock = lock(directory)?;
        // Again: another process can have written it before.
        let mut writer = Self {
            directory: directory.to_path_buf(),
            metadata: if is_new() { new_metadata(directory, setup) } else { continued(directory, setup)? },
            part: Vec::new(),
            is_changed: false,
            earlier: 0,
            end: 0,
            _lock: lock,
        };
        writer.skip_parts()?;
        write_metadata(directory, &writer.metadata)?;
        Ok(writer)
    }

    /// Reads the parts of a recording that is continued, to check them and to find its end.
    fn skip_parts(&mut self) -> Result<(), RecordingError> {
        let (mut number, mut windows) = (1, Vec::new());
        while read_part(&self.directory, number, self.metadata.parts, &mut windows)? {
            number += 1;
            self.earlier += windows.len();
            // The order of windows is checked across parts; only the last one is needed.
            windows.drain(..windows.len().saturating_sub(1));
            self.earlier -= windows.len();
        }
        self.earlier += windows.len();
        self.end = windows.last().map_or(0, Window::end);
        self.metadata.parts = number;
        Ok(())
    }

    /// Returns the domains of the recording that is continued.
    ///
    /// # Errors
    /// Fails if the file of the domains cannot be read or is damaged.
    pub fn domains(&self) -> Result<Vec<CountedDomain>, RecordingError> {
        read_domains(&self.directory)
    }

    /// End of the last window, in microseconds since 1970; 0 without one.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Number of windows, those of earlier parts included.
    #[must_use]
    pub fn window_count(&self) -> usize {
        self.earlier + self.part.len()
    }

    /// Adds a window. A window that begins before the end of the last one is left out, and returned
    /// as false: the clock went back since the recording was interrupted.
    ///
    /// # Errors
    /// Fails if a complete part cannot be written.
    pub fn push(&mut self, window: Window) -> Result<bool, RecordingError> {
        if window.start < self.end {
            return Ok(false);
        }
        self.end = window.end();
        self.part.push(window);
        self.is_changed = true;
        if self.part.len() >= WINDOWS_PER_PART {
            self.write_part()?;
            self.earlier += self.part.len();
            self.part.clear();
            self.metadata.parts += 1;
            write_metadata(&self.directory, &self.metadata)?;
        }
        Ok(true)
    }

    /// Adds a gap to the description.
    pub fn note_gap(&mut self, gap: Gap) {
        *self.metadata.gaps.entry(gap.reason.name().to_owned()).or_default() += 1;
        if self.metadata.last_gaps.len() == GAPS_LISTED {
            self.metadata.last_gaps.remove(0);
        }
        self.metadata.last_gaps.push(gap);
    }

    /// Returns the number of gaps, by reason.
    #[must_use]
    pub const fn gaps(&self) -> &BTreeMap<String, u64> {
        &self.metadata.gaps
    }

    /// Adds a remark on how the numbers were found, once.
    pub fn note(&mut self, remark: &str) {
        if !self.metadata.notes.iter().any(|known| known == remark) {
            self.metadata.notes.push(remark.to_owned());
        }
    }

    /// Writes all windows, the domains if they are given, and the description.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn flush(&mut self, domains: Option<&DomainCounter>) -> Result<(), RecordingError> {
        if self.is_changed {
            self.write_part()?;
        }
        if let Some(domains) = domains.filter(|domains| !domains.is_empty()) {
            let mut table = DataTable::new(domain_columns());
            for domain in domains.counted() {
                table.push_row(&DomainRow::from(domain))?;
            }
            write_table(&self.directory, DOMAINS, &table)?;
        }
        write_metadata(&self.directory, &self.metadata)
    }

    fn write_part(&mut self) -> Result<(), RecordingError> {
        let mut table = DataTable::new(window_columns());
        for window in &self.part {
            table.push_row(&WindowRow::from(window))?;
        }
        write_table(&self.directory, &part_name(self.metadata.parts), &table)?;
        self.is_changed = false;
        Ok(())
    }
}

fn lock(directory: &Path) -> Result<File, RecordingError> {
    let path = directory.join(LOCK);
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|source| RecordingError::Write { path: path.clone(), source })?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(RecordingError::InUse { path: directory.to_path_buf() }),
        Err(TryLockError::Error(source)) if source.kind() != io::ErrorKind::Unsupported => {
            Err(RecordingError::Write { path, source })
        }
        _ => Ok(file),
    }
}

fn new_metadata(directory: &Path, setup: &RecordingSetup) -> Metadata {
    let of_directory =
        || directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    Metadata {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: setup.name.clone().unwrap_or_else(of_directory),
        source: setup.source.clone(),
        verified_by: setup.verified_by,
        window_us: setup.window,
        parts: 1,
        gaps: BTreeMap::new(),
        last_gaps: Vec::new(),
        notes: Vec::new(),
    }
}

/// Reads the description of a recording that is continued, and compares it with the setup.
fn continued(directory: &Path, setup: &RecordingSetup) -> Result<Metadata, RecordingError> {
    let found = read_metadata(directory)?;
    let wanted = new_metadata(directory, setup);
    let name = setup.name.as_ref().unwrap_or(&found.name);
    let seconds = |micros: u64| format!("{} s", micros as f64 / 1e6);
    let pairs = [
        ("name", found.name.clone(), name.clone()),
        ("source", found.source.clone(), wanted.source),
        ("counter of verified signatures", found.verified_by.to_string(), wanted.verified_by.to_string()),
        ("window", seconds(found.window_us), seconds(wanted.window_us)),
    ];
    match pairs.into_iter().find(|(_, found, wanted)| found != wanted) {
        Some((what, found, wanted)) => {
            Err(RecordingError::Differs { path: directory.to_path_buf(), what, found, wanted })
        }
        None => Ok(found),
    }
}
