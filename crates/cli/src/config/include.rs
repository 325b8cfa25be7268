//! Files that the configuration includes: `include = ["zones.d/*.toml"]`.
//!
//! They hold tables that repeat (keys, templates, zones); what is of the server as a whole stands in the main file alone, and
//! none of them includes others. They are looked for whenever the configuration is read, so that a reload finds those that
//! came.

use super::reader::Section;
use super::sources::{Role, Spot};
use super::values::path;
use super::{MOST_OCTETS, read_remedy, read_text};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Files that one configuration may include: each of them holds a zone, say.
const MOST_FILES: usize = 100_000;

/// One path of the list, and where it stands.
struct Entry {
    path: PathBuf,
    span: Range<usize>,
}

/// Reads the files that `root`, that of the main file, names; what is wrong with them is reported.
pub(super) fn read(root: &Section<'_, '_>) {
    let context = root.context();
    let entries = root.take_items("include", "paths", |item, key| {
        let path = path(context.folder())(item.get_ref());
        let path = path.map_err(|message| context.fault(item.span(), key, message)).ok()?;
        Some(Entry { path, span: item.span() })
    });
    let mut reader = Reader { root, seen: HashMap::new(), left: MOST_OCTETS };
    reader.seen.extend(fs::canonicalize(context.path()).ok().map(|main| (main, None)));
    for entry in entries.unwrap_or_default() {
        for file in reader.find(&entry) {
            reader.take(&file, &entry);
        }
    }
}

/// What was included so far.
struct Reader<'r, 'c, 't> {
    root: &'r Section<'c, 't>,
    /// Files without links, and where they are named; the main file is not named.
    seen: HashMap<PathBuf, Option<Spot>>,
    /// Octets that more files may have.
    left: u64,
}

impl Reader<'_, '_, '_> {
    fn fault(&self, entry: &Entry, message: String) {
        self.root.context().fault(entry.span.clone(), "include", message);
    }

    /// The files that an entry stands for, in the order of their names.
    fn find(&self, entry: &Entry) -> Vec<PathBuf> {
        let has_wildcard = |text: &str| text.contains(['*', '?']);
        let folder = entry.path.parent().unwrap_or_else(|| Path::new(""));
        if folder.to_str().is_some_and(has_wildcard) {
            let place = entry.path.display();
            self.fault(
                entry,
                format!("{place}: * and ? stand for letters of a file's name, not of a folder's"),
            );
            return Vec::new();
        }
        let pattern = entry.path.file_name().and_then(|name| name.to_str()).filter(|name| has_wildcard(name));
        let Some(pattern) = pattern else { return vec![entry.path.clone()] };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match list(folder, pattern) {
            Ok(files) => {
                self.root.note_file_at(&entry.span, "include", folder, Role::IncludedFolder);
                files
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message =
                    format!("{}: there is no such folder, and nothing is included", folder.display());
                self.root.context().warn(entry.span.clone(), "include", message);
                Vec::new()
            }
            Err(error) => {
                let (place, remedy) = (folder.display(), read_remedy(&error));
                self.fault(entry, format!("{place}: cannot be read: {error}{remedy}"));
                Vec::new()
            }
        }
    }

    fn take(&mut self, file: &Path, entry: &Entry) {
        let (context, place) = (self.root.context(), file.display());
        if self.seen.len() > MOST_FILES {
            return self
                .fault(entry, format!("more than {MOST_FILES} files are included: join some of them"));
        }
        // Where it is not there, reading says so.
        let resolved = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
        match self.seen.get(&resolved) {
            None => {}
            Some(None) => {
                let message = "is the file that includes: name others, or a folder of their own";
                return self.fault(entry, format!("{place}: {message}"));
            }
            Some(Some(earlier)) => {
                let earlier = context.findings().locate(*earlier);
                return self.fault(entry, format!("{place}: is included already ({earlier}): leave one out"));
            }
        }
        self.seen.insert(resolved, Some(context.spot(&entry.span)));
        self.root.note_file_at(&entry.span, "include", file, Role::Included);
        match read_regular(file, self.left) {
            Ok(text) => {
                self.left -= text.len() as u64;
                context.findings().add(file, text);
            }
            Err(error) => {
                let remedy = match error.kind() {
                    io::ErrorKind::NotFound => ": put it there, or leave it out here",
                    _ => read_remedy(&error),
                };
                self.fault(entry, format!("{place}: cannot be read: {error}{remedy}"));
            }
        }
    }
}

/// Reads a file; a pipe would hold a reload up.
fn read_regular(file: &Path, most: u64) -> io::Result<String> {
    let metadata = fs::metadata(file)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(io::Error::other("not a regular file"));
    }
    read_text(file, most)
}

/// The files in `folder` whose names fit `pattern`, in the order of their names.
fn list(folder: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let letters: Vec<char> = name.to_string_lossy().chars().collect();
        // As in a shell: what is hidden, as the files of editors are, is meant only where it is written.
        if (letters.first() != Some(&'.') || pattern.first() == Some(&'.')) && fits(&letters, &pattern) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Whether `*`, which stands for any letters, and `?`, which stands for one, make `name` of `pattern`.
fn fits(name: &[char], pattern: &[char]) -> bool {
    let (mut at, mut of_pattern) = (0, 0);
    // Behind the last `*`: there in the pattern, and up to there in the name.
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
