//! Reads recordings.

use super::columns::{window_columns, window_of};
use super::error::{RecordingError, WindowFault};
use super::files::{WINDOWS_MAX, csv_path, part_name, read_domains, read_metadata, read_table};
use super::{Recording, Window};
use std::path::Path;

impl Recording {
    /// Reads the recording in a directory. It may still be written: windows that were written until
    /// now are read.
    ///
    /// # Errors
    /// Fails if a file is missing, damaged or of another version, if windows overlap or contradict
    /// themselves, or if there is no window.
    pub fn read(directory: &Path) -> Result<Self, RecordingError> {
        let metadata = read_metadata(directory)?;
        let mut windows = Vec::new();
        let mut number = 1;
        while read_part(directory, number, metadata.parts, &mut windows)? {
            number += 1;
        }
        if windows.is_empty() {
            return Err(RecordingError::Empty { path: directory.to_path_buf() });
        }
        let mut domains = read_domains(directory)?;
        domains.sort_by(|a, b| b.at_least().cmp(&a.at_least()).then_with(|| a.domain.cmp(&b.domain)));
        Ok(Self {
            name: metadata.name,
            verified_by: metadata.verified_by,
            windows,
            domains: domains.into_iter().map(Into::into).collect(),
        })
    }
}

/// Appends the windows of a part. Returns false if it does not exist and is not among the first
/// `parts` ones. After a crash there may be one more part than the description states.
pub(super) fn read_part(
    directory: &Path,
    number: u32,
    parts: u32,
    windows: &mut Vec<Window>,
) -> Result<bool, RecordingError> {
    let name = part_name(number);
    let path = || csv_path(directory, &name);
    let Some(table) = read_table(directory, &name, &window_columns())? else {
        // The description may count a part before its first window is written.
        let is_missing = number < parts;
        return if is_missing { Err(RecordingError::MissingPart { path: path(), parts }) } else { Ok(false) };
    };
    if windows.len() + table.rows().len() > WINDOWS_MAX {
        return Err(RecordingError::TooMany { path: path(), what: "windows", limit: WINDOWS_MAX });
    }
    for (index, row) in table.rows().iter().enumerate() {
        let window = window_of(row).and_then(|window| {
            let end = windows.last().map_or(0, Window::end);
            if window.start < end { Err(WindowFault::Order) } else { Ok(window) }
        });
        // Line 1 has the names of the columns.
        windows.push(window.map_err(|fault| RecordingError::Window {
            path: path(),
            line: index + 2,
            fault,
        })?);
    }
    Ok(true)
}
