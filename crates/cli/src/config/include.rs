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
const MOST_FILES: usize = 100_000;

/// A path or pattern of included files, and the location where it is named.
#[derive(Debug)]
pub(super) struct Include {
    pub(super) path: PathBuf,
    pub(super) place: ConfigLocation,
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
    let mut reader = Reader { root, seen, documents: Vec::new(), left: MAX_BYTES };
    for include in includes {
        for file in reader.find(include) {
            reader.take(&file, include, Role::Included, None);
        }
    }
    if let Some(added) = added {
        reader.take(&added.path, &added, Role::AddedZones, candidate);
    }
    reader.documents
}

/// State of the reader.
struct Reader<'r, 't> {
    root: &'r Section<'t>,
    /// Resolved paths with the locations that name them; `None` for the main file.
    seen: HashMap<PathBuf, Option<ConfigLocation>>,
    documents: Vec<Document>,
    /// Remaining size for further files, in bytes.
    left: u64,
}

impl Reader<'_, '_> {
    fn fault(&self, include: &Include, message: String) {
        self.root.findings.fault(&include.place, message);
    }

    /// The files that match `include`, in the order of their names.
    fn find(&self, include: &Include) -> Vec<PathBuf> {
        let has_wildcard = |text: &str| text.contains(['*', '?']);
        let folder = include.path.parent().unwrap_or_else(|| Path::new(""));
        if folder.to_str().is_some_and(has_wildcard) {
            let place = include.path.display();
            self.fault(
                include,
                format!("{place}: * and ? are allowed only in the file name, not in the directory"),
            );
            return Vec::new();
        }
        let pattern =
            include.path.file_name().and_then(|name| name.to_str()).filter(|name| has_wildcard(name));
        let Some(pattern) = pattern else { return vec![include.path.clone()] };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match list(folder, pattern) {
            Ok(files) => {
                self.root.findings.note_file(include.place.clone(), folder, Role::IncludedDirectory);
                files
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message =
                    format!("{}: the directory does not exist; nothing is included", folder.display());
                self.root.findings.warn(&include.place, message);
                Vec::new()
            }
            Err(error) => {
                let (place, remedy) = (folder.display(), read_remedy(&error));
                self.fault(include, format!("{place}: cannot be read: {error}{remedy}"));
                Vec::new()
            }
        }
    }

    fn take(&mut self, file: &Path, include: &Include, role: Role, candidate: Option<String>) {
        let place = file.display();
        if self.seen.len() > MOST_FILES {
            return self.fault(include, format!("more than {MOST_FILES} included files: join some of them"));
        }
        // If the file does not exist, reading reports it.
        let resolved = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
        match self.seen.get(&resolved) {
            None => {}
            Some(None) => {
                let message = "the file includes itself: name other files, or a separate directory";
                return self.fault(include, format!("{place}: {message}"));
            }
            Some(Some(earlier)) => {
                return self
                    .fault(include, format!("{place}: is already included ({earlier}): leave one out"));
            }
        }
        self.seen.insert(resolved, Some(include.place.clone()));
        let has_added_zones = role == Role::AddedZones;
        self.root.findings.note_file(include.place.clone(), file, role);
        match candidate.map_or_else(|| read_regular(file, self.left), |text| bounded(text, self.left)) {
            Ok(text) => {
                self.left -= text.len() as u64;
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
                self.fault(include, format!("{place}: cannot be read: {error}{remedy}"));
            }
        }
    }
}

/// Returns `text` if it has at most `most` octets.
fn bounded(text: String, most: u64) -> io::Result<Zeroizing<String>> {
    if text.len() as u64 > most { Err(too_long()) } else { Ok(text.into()) }
}

/// Reads a regular file. The server's user could place a pipe at a path that root reads, and a pipe
/// would delay a reload.
pub(super) fn read_regular(path: &Path, max: u64) -> io::Result<Zeroizing<String>> {
    match open_regular(path)? {
        Some(file) => read_text(file, max),
        None if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        None => Err(io::Error::other("not a regular file")),
    }
}

/// The files in `folder` with names that match `pattern`, in the order of their names.
fn list(folder: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let letters: Vec<char> = name.to_string_lossy().chars().collect();
        // As in a shell, hidden files (for example of editors) match only a pattern that begins
        // with a dot.
        if (letters.first() != Some(&'.') || pattern.first() == Some(&'.')) && fits(&letters, &pattern) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Whether `name` matches `pattern`. `*` matches any number of characters, `?` matches one.
fn fits(name: &[char], pattern: &[char]) -> bool {
    let (mut at, mut of_pattern) = (0, 0);
    // Position after the last `*` in the pattern, and the end of its current match in the name.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match (pattern.get(of_pattern), star) {
            (Some('*'), _) => {
                of_pattern += 1;
                star = Some((of_pattern, at));
            }
            (Some(letter), _) if *letter == '?' || *letter == name[at] => {
                at += 1;
                of_pattern += 1;
            }
            (_, Some((behind, up_to))) => {
                (of_pattern, at) = (behind, up_to + 1);
                star = Some((behind, up_to + 1));
            }
            (_, None) => return false,
        }
    }
    pattern[of_pattern..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests;
