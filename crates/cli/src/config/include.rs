//! Files that the configuration includes: `include = ["zones.d/*.toml"]`.
//!
//! Included files contain only keys, templates and zones. Settings of the server as a whole are in
//! the main file. An included file cannot include other files. The patterns are expanded on each
//! read of the configuration, so that a reload finds new files. The file of added zones (`ctl zone
//! add`) is the last included file and may be missing.

use super::problem::{ConfigLocation, Document};
use super::section::Section;
use super::sources::FileRole;
use super::{MAX_CONFIGURATION_BYTES, read_remedy, read_text, too_long};
use crate::files::open_regular;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Maximum number of files that a configuration may include, for example one for each zone.
const MAX_FILES: usize = 100_000;

/// A path or pattern of included files, and the location where it is named.
#[derive(Debug)]
pub(super) struct Include {
    pub(super) path: PathBuf,
    pub(super) location: ConfigLocation,
}

/// Reads the files that the main file with the root table `root` includes, and reports their
/// problems. The last file is `added`, the file of added zones; `added_zones_text` is its text if
/// that text is not written yet.
pub(super) fn read(
    root: &Section<'_>,
    includes: &[Include],
    added: Option<Include>,
    added_zones_text: Option<String>,
) -> Vec<Document> {
    let main = fs::canonicalize(&root.document.path).ok();
    let included_paths = main.into_iter().map(|main| (main, None)).collect();
    let mut reader =
        Reader { root, included_paths, documents: Vec::new(), remaining_bytes: MAX_CONFIGURATION_BYTES };
    for include in includes {
        for file in reader.matching_files(include) {
            reader.read_file(&file, include, FileRole::Included, None);
        }
    }
    if let Some(added) = added {
        reader.read_file(&added.path, &added, FileRole::AddedZones, added_zones_text);
    }
    reader.documents
}

/// The state of reading the included files.
struct Reader<'r, 't> {
    root: &'r Section<'t>,
    /// Resolved paths with the locations that name them; `None` for the main file.
    included_paths: HashMap<PathBuf, Option<ConfigLocation>>,
    documents: Vec<Document>,
    /// Maximum total size of the files that are not read yet, in bytes.
    remaining_bytes: u64,
}

impl Reader<'_, '_> {
    fn report_fault(&self, include: &Include, message: String) {
        self.root.diagnostics.report_fault(&include.location, message);
    }

    /// The files that match `include`, in the order of their names.
    fn matching_files(&self, include: &Include) -> Vec<PathBuf> {
        let has_wildcard = |text: &str| text.contains(['*', '?']);
        let directory = include.path.parent().unwrap_or_else(|| Path::new(""));
        if directory.to_str().is_some_and(has_wildcard) {
            let shown = include.path.display();
            self.report_fault(
                include,
                format!("{shown}: * and ? are allowed only in the file name, not in the directory"),
            );
            return Vec::new();
        }
        let pattern =
            include.path.file_name().and_then(|name| name.to_str()).filter(|name| has_wildcard(name));
        let Some(pattern) = pattern else { return vec![include.path.clone()] };
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        match list_matching(directory, pattern) {
            Ok(files) => {
                self.root.diagnostics.record_file(
                    include.location.clone(),
                    directory,
                    FileRole::IncludedDirectory,
                );
                files
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message =
                    format!("{}: the directory does not exist; nothing is included", directory.display());
                self.root.diagnostics.warn(&include.location, message);
                Vec::new()
            }
            Err(error) => {
                let (shown, remedy) = (directory.display(), read_remedy(&error));
                self.report_fault(include, format!("{shown}: cannot be read: {error}{remedy}"));
                Vec::new()
            }
        }
    }

    /// Reads `file`, which `include` names, and adds it to the documents. Reports faults.
    /// `added_zones_text` replaces the content of the file.
    fn read_file(
        &mut self,
        file: &Path,
        include: &Include,
        role: FileRole,
        added_zones_text: Option<String>,
    ) {
        let shown = file.display();
        if self.included_paths.len() > MAX_FILES {
            return self
                .report_fault(include, format!("more than {MAX_FILES} included files: join some of them"));
        }
        // If the file does not exist, reading reports it.
        let resolved = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
        match self.included_paths.get(&resolved) {
            None => {}
            Some(None) => {
                let message = "the file includes itself: name other files, or a separate directory";
                return self.report_fault(include, format!("{shown}: {message}"));
            }
            Some(Some(earlier)) => {
                return self.report_fault(
                    include,
                    format!("{shown}: is already included ({earlier}): leave one out"),
                );
            }
        }
        self.included_paths.insert(resolved, Some(include.location.clone()));
        let is_added_zones_file = role == FileRole::AddedZones;
        self.root.diagnostics.record_file(include.location.clone(), file, role);
        match added_zones_text.map_or_else(
            || read_regular(file, self.remaining_bytes),
            |text| check_size(text, self.remaining_bytes),
        ) {
            Ok(text) => {
                self.remaining_bytes -= text.len() as u64;
                let mut document = Document::new(self.documents.len() + 1, file, text);
                document.is_added_zones_file = is_added_zones_file;
                self.documents.push(document);
            }
            // No zone has been added yet.
            Err(error) if is_added_zones_file && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let remedy = match error.kind() {
                    io::ErrorKind::NotFound => ": create the file, or remove it from include",
                    _ => read_remedy(&error),
                };
                self.report_fault(include, format!("{shown}: cannot be read: {error}{remedy}"));
            }
        }
    }
}

/// Returns `text` if it has at most `max` octets.
fn check_size(text: String, max: u64) -> io::Result<Zeroizing<String>> {
    if text.len() as u64 > max { Err(too_long()) } else { Ok(text.into()) }
}

/// Reads a regular file. The server's user could create a pipe at a path that root reads, and a
/// pipe would delay a reload.
pub(super) fn read_regular(path: &Path, max: u64) -> io::Result<Zeroizing<String>> {
    match open_regular(path)? {
        Some(file) => read_text(file, max),
        None if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        None => Err(io::Error::other("not a regular file")),
    }
}

/// The files in `directory` with names that match `pattern`, in the order of their names.
fn list_matching(directory: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let characters: Vec<char> = name.to_string_lossy().chars().collect();
        // As in a shell, hidden files (for example of editors) match only a pattern that begins
        // with a dot.
        if (characters.first() != Some(&'.') || pattern.first() == Some(&'.'))
            && matches_pattern(&characters, &pattern)
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// Whether `name` matches `pattern`. `*` matches any number of characters, `?` matches one.
fn matches_pattern(name: &[char], pattern: &[char]) -> bool {
    let (mut name_index, mut pattern_index) = (0, 0);
    // Position after the last `*` in the pattern, and the end of its current match in the name.
    let mut star: Option<(usize, usize)> = None;
    while name_index < name.len() {
        match (pattern.get(pattern_index), star) {
            (Some('*'), _) => {
                pattern_index += 1;
                star = Some((pattern_index, name_index));
            }
            (Some(letter), _) if *letter == '?' || *letter == name[name_index] => {
                name_index += 1;
                pattern_index += 1;
            }
            (_, Some((after_star, match_end))) => {
                (pattern_index, name_index) = (after_star, match_end + 1);
                star = Some((after_star, match_end + 1));
            }
            (_, None) => return false,
        }
    }
    pattern[pattern_index..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests;
