//! Where a configuration names files, users and CPUs: what is found wrong with these later is said with file, line and key
//! too.

use super::findings::{Document, Findings, Problem, locate};
use super::reader::Section;
use nonesuch_authoritative::service::{Making, Source, StateFolder, ZoneSettings};
use nonesuch_proto::Name;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// What a file or folder is that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Certificates or key of DNS over TLS.
    Tls,
    /// Certificates of those who vouch for other servers.
    Authorities,
    /// A secret of TSIG or of cookies.
    Secret,
    /// A zone's file.
    Zone(Name),
    /// The folder of the keys that sign when asked.
    SigningKeys(Name),
    /// The folder of a VRF key, and the zone's file where it has one.
    VrfKeys(Name, Option<PathBuf>),
    /// A file or folder of zones that are made after a template.
    Template,
    /// A file that the configuration includes.
    Included,
    /// A folder that files are included from, whatever there is of them.
    IncludedFolder,
    /// Where dnstap goes.
    Dnstap,
    /// The control socket.
    Control,
}

impl Role {
    /// Whether it is read, not written.
    const fn is_input(&self) -> bool {
        !matches!(self, Self::Dnstap | Self::Control)
    }
}

/// Where something begins: the number of the file, of which the main one is the first, and the octet in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) file: usize,
    pub(super) start: usize,
}

/// A place in the text, and the key that stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) spot: Spot,
    pub(super) key: String,
}

/// A file or folder, and where it is named.
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    pub(crate) role: Role,
    pub(crate) place: Place,
}

/// All that was noted of a text.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The configuration's file.
    pub(crate) path: PathBuf,
    documents: Vec<Arc<Document>>,
    pub(crate) files: Vec<NamedFile>,
    /// Places of keys of no table.
    top: BTreeMap<&'static str, Place>,
}

impl Sources {
    pub(super) fn new(
        documents: Vec<Arc<Document>>,
        files: Vec<NamedFile>,
        top: BTreeMap<&'static str, Place>,
    ) -> Self {
        let path = documents.first().map(|main| main.path.clone()).unwrap_or_default();
        Self { path, documents, files, top }
    }

    /// Whether this key of no table is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.top.contains_key(key)
    }

    /// A fault of what stands at `place`.
    pub(crate) fn problem(&self, place: &Place, message: impl Into<String>) -> Problem {
        // There is no place in another file.
        let Document { path, text } = &*self.documents[place.spot.file];
        let (line, column) = locate(text, place.spot.start);
        Problem { path: path.clone(), line, column, key: place.key.clone(), message: message.into() }
    }

    /// A fault of a key of no table, or of the file as a whole where that is not there.
    pub(crate) fn problem_of(&self, key: &str, message: impl Into<String>) -> Problem {
        match self.top.get(key) {
            Some(place) => self.problem(place, message),
            None => Problem { message: message.into(), ..Problem::of_file(&self.path) },
        }
    }
}

/// Notes the files that a zone or a template names.
pub(super) fn note_files(settings: &ZoneSettings, section: &Section<'_, '_>, is_template: bool) {
    let role = |role: Role| if is_template { Role::Template } else { role };
    let apex = || settings.apex.clone();
    let file = if let Source::File(file) = &settings.source { Some(file) } else { None };
    if let Some(file) = file {
        section.note_file("file", file, role(Role::Zone(apex())));
    }
    match &settings.making {
        Making::AsItIs => {}
        Making::Online { keys, .. } => section.note_file("keys", keys, role(Role::SigningKeys(apex()))),
        Making::Nsec5 { keys } => {
            section.note_file("nsec5-keys", keys, role(Role::VrfKeys(apex(), file.cloned())));
        }
    }
}

/// Refuses what would do harm before anything is served: files of the operator in the folder where the server keeps its own,
/// which would be written over, and something else in the control socket's place.
pub(super) fn check_places(findings: &Findings, state_dir: Option<&Path>) {
    let mut folders = Folders::default();
    let kept = state_dir.map(|dir| (dir, folders.resolve(&StateFolder::zones_in(dir))));
    for file in findings.files().iter() {
        let fault = |message: String| findings.fault(file.place.spot, &file.place.key, message);
        let place = file.path.display();
        if let Some((dir, kept)) = kept.as_ref().filter(|_| file.role.is_input())
            && folders.resolve(&file.path).starts_with(kept)
        {
            let dir = dir.display();
            fault(format!(
                "{place}: lies where the server keeps versions of its own ({dir}/zones), and would be written over or removed: \
                 move it to another folder"
            ));
        }
        if file.role == Role::Control
            && fs::symlink_metadata(&file.path).is_ok_and(|found| !found.file_type().is_socket())
        {
            fault(format!("{place}: is there, and no socket: name another path, or move it away"));
        }
    }
}

/// Paths without links, as far as they are there; of each folder it is looked up once.
#[derive(Debug, Default)]
struct Folders(HashMap<PathBuf, PathBuf>);

impl Folders {
    fn resolve(&mut self, path: &Path) -> PathBuf {
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink());
        let (Some(folder), Some(name), false) = (path.parent(), path.file_name(), is_link) else {
            return resolve(path);
        };
        if let Some(known) = self.0.get(folder) {
            return known.join(name);
        }
        let known = resolve(folder);
        self.0.insert(folder.to_path_buf(), known.clone());
        known.join(name)
    }
}

/// The path from the root, links followed as far as it is there; what is not there stays as it is written.
fn resolve(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut rest = Vec::new();
    let mut there = path.as_path();
    let mut resolved = loop {
        match (fs::canonicalize(there), there.parent()) {
            (Ok(found), _) => break found,
            (Err(_), Some(parent)) => {
                rest.extend(there.components().next_back());
                there = parent;
            }
            (Err(_), None) => break there.to_path_buf(),
        }
    };
    for component in rest.into_iter().rev() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            other => resolved.push(other),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_are_resolved_as_far_as_they_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(dir.join("a")).unwrap();
        symlink("a", dir.join("link")).unwrap();
        fs::write(dir.join("a/file"), "").unwrap();
        symlink("a/file", dir.join("other")).unwrap();
        let mut folders = Folders::default();
        for (path, expected) in [
            ("a/file", "a/file"),
            ("link/file", "a/file"),
            ("link/none/x", "a/none/x"),
            ("link/none/../y", "a/y"),
            ("other", "a/file"),
            // What is not there is no link.
            ("none/../link/./z", "link/z"),
            ("", ""),
        ] {
            // Twice: from the folder's own path, and from what is known of it.
            for _ in 0..2 {
                assert_eq!(folders.resolve(&dir.join(path)), dir.join(expected), "{path}");
            }
        }
    }
}
