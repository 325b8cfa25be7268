//! Files that the configuration includes: `include = ["zones.d/*.toml"]`.
//!
//! Included files contain only keys, templates and zones. Settings of the server as a whole are in
//! the main file. An included file cannot include other files. The patterns are expanded on each
//! read of the configuration, so that a reload finds new files. The file of added zones (`ctl zone
//! add`) is the last included file and may be missing.

use super::problem::{ConfigLocation, Document};
use super::section::Section;
use super::sources::Role;
use super::{MAX_BYTES, read_remedy, read_text, too_long};
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

/// Reads the files that the main file with the keys `root` includes, and reports their problems.
/// The last file is the file of added zones; `candidate` is its text if that text is not written
/// yet.
pub(super) fn read(
    root: &Section<'_>,
    includes: &[Include],
    added: Option<Include>,
    candidate: Option<String>,
) -> Vec<Document> {
    let main = fs::canonicalize(&root.document.path).ok();
    let seen = main.into_iter().map(|main| (main, None)).collect();
    let mut reader = Reader { root, seen, documents: Vec::new(), remaining_bytes: MAX_BYTES };
    for include in includes {
        for file in reader.matching_files(include) {
            reader.read_file(&file, include, Role::Included, None);
        }
    }
    if let Some(added) = added {
        reader.read_file(&added.path, &added, Role::AddedZones, candidate);
    }
    reader.documents
}

/// State of the reader.
struct Reader<'r, 't> {
    root: &'r Section<'t>,
    /// Resolved paths with the locations that name them; `None` for the main file.
    seen: HashMap<PathBuf, Option<ConfigLocation>>,
    documents: Vec<Document>,
    /// Maximum total size of the further files, in bytes.
    remaining_bytes: u64,
}

impl Reader<'_, '_> {
    fn fault(&self, include: &Include, message: String) {
        self.root.findings.fault(&include.location, message);
    }

    /// The files that match `include`, in the order of their names.
    fn matching_files(&self, include: &Include) -> Vec<PathBuf> {
        let has_wildcard = |text: &str| text.contains(['*', '?']);
        let folder = include.path.parent().unwrap_or_else(|| Path::new(""));
        if folder.to_str().is_some_and(has_wildcard) {
            let shown = include.path.display();
            self.fault(
                include,
                format!("{shown}: * and ? are allowed only in the file name, not in the directory"),
            );
            return Vec::new();
        }
        let pattern =
            include.path.file_name().and_then(|name| name.to_str()).filter(|name| has_wildcard(name));
        let Some(pattern) = pattern else { return vec![include.path.clone()] };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match list_matching(folder, pattern) {
            Ok(files) => {
                self.root.findings.note_file(include.location.clone(), folder, Role::IncludedDirectory);
                files
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message =
                    format!("{}: the directory does not exist; nothing is included", folder.display());
                self.root.findings.warn(&include.location, message);
                Vec::new()
            }
            Err(error) => {
                let (shown, remedy) = (folder.display(), read_remedy(&error));
                self.fault(include, format!("{shown}: cannot be read: {error}{remedy}"));
                Vec::new()
            }
        }
    }

    /// Reads `file`, which `include` names, and adds it to the documents. Reports faults.
    /// `candidate` replaces the content of the file.
    fn read_file(&mut self, file: &Path, include: &Include, role: Role, candidate: Option<String>) {
        let shown = file.display();
        if self.seen.len() > MAX_FILES {
            return self.fault(include, format!("more than {MAX_FILES} included files: join some of them"));
        }
        // If the file does not exist, reading reports it.
        let resolved = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
        match self.seen.get(&resolved) {
            None => {}
            Some(None) => {
                let message = "the file includes itself: name other files, or a separate directory";
                return self.fault(include, format!("{shown}: {message}"));
            }
            Some(Some(earlier)) => {
                return self
                    .fault(include, format!("{shown}: is already included ({earlier}): leave one out"));
            }
        }
        self.seen.insert(resolved, Some(include.location.clone()));
        let has_added_zones = role == Role::AddedZones;
        self.root.findings.note_file(include.location.clone(), file, role);
        match candidate.map_or_else(
            || read_regular(file, self.remaining_bytes),
            |text| check_size(text, self.remaining_bytes),
        ) {
            Ok(text) => {
                self.remaining_bytes -= text.len() as u64;
                let mut document = Document::new(self.documents.len() + 1, file, text);
                document.has_added_zones = has_added_zones;
                self.documents.push(document);
            }
            // No zone has been added yet.
            Err(error) if has_added_zones && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let remedy = match error.kind() {
                    io::ErrorKind::NotFound => ": create the file, or remove it from include",
                    _ => read_remedy(&error),
                };
                self.fault(include, format!("{shown}: cannot be read: {error}{remedy}"));
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

/// The files in `folder` with names that match `pattern`, in the order of their names.
fn list_matching(folder: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let letters: Vec<char> = name.to_string_lossy().chars().collect();
        // As in a shell, hidden files (for example of editors) match only a pattern that begins
        // with a dot.
        if (letters.first() != Some(&'.') || pattern.first() == Some(&'.'))
            && matches_pattern(&letters, &pattern)
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
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
