//! The files of a configuration, locations in them, and the problems that are reported there.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Maximum number of listed problems; further problems are only counted.
const MAX_LISTED: usize = 50;

/// A location in a configuration, and the key at that location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConfigLocation {
    /// Index of the file; 0 is the main file. Problems are sorted by it.
    file_index: usize,
    pub(crate) path: Arc<Path>,
    /// Counted from 1; 0 refers to the whole file.
    pub(crate) line: usize,
    /// In characters, counted from 1.
    pub(crate) column: usize,
    /// The key with the names of its tables as prefix; empty if there is no key.
    pub(crate) key: String,
}

impl ConfigLocation {
    /// The whole file.
    pub(crate) fn of_file(path: &Path) -> Self {
        Self { file_index: 0, path: path.into(), line: 0, column: 0, key: String::new() }
    }

    /// A problem at this location.
    pub(crate) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem { location: self.clone(), message: message.into() }
    }

    /// The order of problems: by file, line and column.
    const fn sort_key(&self) -> (usize, usize, usize) {
        (self.file_index, self.line, self.column)
    }
}

/// Formats file, line and column.
impl fmt::Display for ConfigLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 { write!(f, ":{}:{}", self.line, self.column) } else { Ok(()) }
    }
}

/// One fault of, or warning about, a configuration. The message includes the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) location: ConfigLocation,
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.location)?;
        if !self.location.key.is_empty() {
            write!(f, " {}:", self.location.key)?;
        }
        write!(f, " {}", self.message)
    }
}

/// Why a configuration is rejected: all its problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    /// A single problem that concerns a whole file.
    pub(super) fn of_file(path: &Path, message: impl Into<String>) -> Self {
        Self(vec![ConfigLocation::of_file(path).problem(message)])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MAX_LISTED).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

/// Sorts problems by location and removes duplicates.
pub(super) fn sort_problems(problems: &mut Vec<Problem>) {
    problems.sort_by_key(|problem| problem.location.sort_key());
    problems.dedup();
}

/// The text of one of the files of a configuration.
pub(super) struct Document {
    file_index: usize,
    pub(super) path: Arc<Path>,
    /// May contain secrets.
    text: Zeroizing<String>,
    /// Offsets of the beginnings of lines.
    line_starts: Vec<usize>,
    /// Whether this is the file of added zones (`ctl zone add`).
    pub(super) is_added_zones_file: bool,
}

impl Document {
    /// The file with the index `file_index`; 0 is the main file.
    pub(super) fn new(file_index: usize, path: &Path, text: Zeroizing<String>) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        Self { file_index, path: path.into(), text, line_starts, is_added_zones_file: false }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The directory to which paths in the text are relative.
    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new(""))
    }

    /// Whether another file includes this file.
    pub(super) const fn is_included(&self) -> bool {
        self.file_index > 0
    }

    /// The location of the octet at `start`, with `key`.
    pub(super) fn location(&self, start: usize, key: impl Into<String>) -> ConfigLocation {
        let line = self.line_starts.partition_point(|begin| *begin <= start);
        let before = self.text.get(self.line_starts[line - 1]..start).unwrap_or_default();
        let (file_index, path) = (self.file_index, self.path.clone());
        ConfigLocation { file_index, path, line, column: before.chars().count() + 1, key: key.into() }
    }
}

#[cfg(test)]
mod tests;
