//! The folder in which published zones are kept: what is there was published, and is served after a restart.
//!
//! Each file is written beside its place, made to last and renamed, so that a reader meets the old one or the whole new
//! one, whenever the process ends.

use nonesuch_proto::Name;
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::hash::Hasher as _;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Ends of the names of files: the published zone, what is known of the file it came from, its journal, its timers.
pub(super) const ZONE: &str = "zone";
/// What is known of the file that the published zone was read from.
pub(super) const ORIGIN: &str = "origin";
/// The journal of a zone.
pub(super) const JOURNAL: &str = "journal";
/// The timers of a secondary.
pub(super) const TIMERS: &str = "timers";
const SUFFIXES: [&str; 4] = [ZONE, ORIGIN, JOURNAL, TIMERS];
/// How files begin that are not whole yet.
const PART: &str = ".part-";
/// Letters of a file's name up to which a zone's name stands in it; longer ones are cut and hashed.
const MOST_LETTERS: usize = 180;

/// The folder; no other process has it open.
#[derive(Debug)]
pub struct StateFolder {
    zones: PathBuf,
    /// Locked as long as the folder is used.
    _lock: File,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The system refuses.
    #[error("state-dir {}: {source}: make it a folder that this user may write to", dir.display())]
    Open {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another server has it.
    #[error("state-dir {} is in use by another process: stop that, or give each server a folder of its own", dir.display())]
    Locked {
        /// The folder.
        dir: PathBuf,
    },
}

impl StateFolder {
    /// Opens the folder `dir` and makes in it what is missing; what a run left that was killed is removed.
    ///
    /// # Errors
    /// Where it cannot be written to, or another process uses it.
    pub fn open(dir: &Path) -> Result<Self, StateError> {
        let failed = |source| StateError::Open { dir: dir.to_path_buf(), source };
        let zones = dir.join("zones");
        DirBuilder::new().recursive(true).mode(0o750).create(&zones).map_err(failed)?;
        let lock = File::options().create(true).append(true).open(dir.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::Locked { dir: dir.to_path_buf() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        for entry in fs::read_dir(&zones).map_err(failed)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PART) {
                // What cannot be removed does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { zones, _lock: lock })
    }

    /// Where what `suffix` says of a zone is kept.
    #[must_use]
    pub fn path(&self, apex: &Name, suffix: &str) -> PathBuf {
        self.zones.join(format!("{}.{suffix}", file_stem(apex)))
    }

    /// Writes what `suffix` says of a zone; it is there to stay when this returns.
    ///
    /// # Errors
    /// Those of writing; what was there before stays then.
    pub fn write(
        &self,
        apex: &Name,
        suffix: &str,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let part = tempfile::Builder::new()
            .prefix(PART)
            .permissions(Permissions::from_mode(0o640))
            .tempfile_in(&self.zones)?;
        let mut out = BufWriter::with_capacity(1 << 20, part.as_file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        part.as_file().sync_all()?;
        part.persist(self.path(apex, suffix)).map_err(|error| error.error)?;
        File::open(&self.zones)?.sync_all()
    }

    /// Removes all that is kept of a zone.
    pub fn remove(&self, apex: &Name) {
        for suffix in SUFFIXES {
            // What was never there need not go.
            let _ = fs::remove_file(self.path(apex, suffix));
        }
    }
}

/// The name of a zone's files: letters, digits and hyphens as they are, other octets as `%` and two digits.
fn file_stem(apex: &Name) -> String {
    if apex.view().is_root() {
        return "@".to_owned();
    }
    let canonical = apex.view().to_canonical();
    let mut stem = String::new();
    for octet in canonical.to_string().trim_end_matches('.').bytes() {
        match octet {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' if !(stem.is_empty() && octet == b'.') => {
                stem.push(char::from(octet));
            }
            _ => stem.push_str(&format!("%{octet:02x}")),
        }
    }
    if stem.len() > MOST_LETTERS {
        let mut hasher = SipHasher24::new();
        hasher.write(canonical.wire());
        let hash = hasher.finish128().as_u128();
        // All of it is ASCII.
        stem.truncate(MOST_LETTERS);
        stem.push_str(&format!("~{hash:032x}"));
    }
    stem
}

/// What tells that a file is the one that it was: when it was changed, its size and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    modified: (i64, i64),
    octets: u64,
    inode: u64,
    device: u64,
}

impl Fingerprint {
    /// That of the file or folder at `path`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            octets: metadata.len(),
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    fn words(&self) -> String {
        let Self { modified, octets, inode, device } = self;
        format!("{} {} {octets} {inode} {device}", modified.0, modified.1)
    }
}

impl StateFolder {
    /// Notes that the published zone of `apex` was read from files of these fingerprints.
    pub(super) fn write_origin(&self, apex: &Name, origin: &[Fingerprint]) -> io::Result<()> {
        let zone = Fingerprint::of(&self.path(apex, ZONE))?;
        self.write(apex, ORIGIN, |out| {
            [zone].iter().chain(origin).try_for_each(|fingerprint| writeln!(out, "{}", fingerprint.words()))
        })
    }

    /// Whether the published zone of `apex` is what files of these fingerprints hold.
    pub(super) fn is_of(&self, apex: &Name, origin: &[Fingerprint]) -> bool {
        let Ok(zone) = Fingerprint::of(&self.path(apex, ZONE)) else { return false };
        let expected: Vec<String> = [zone].iter().chain(origin).map(Fingerprint::words).collect();
        fs::read_to_string(self.path(apex, ORIGIN)).is_ok_and(|text| text.lines().eq(expected.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_files_are_safe_and_differ() {
        let long = format!("{0}.{0}.{0}.", "\\255".repeat(60));
        let other = format!("{0}.{0}.{1}.", "\\255".repeat(60), "\\255".repeat(59));
        let names = [
            ".",
            "example.",
            "EXAMPLE.org.",
            "a/b.",
            "..example.",
            "\\.example.",
            "%2e.",
            "\\000.x.",
            &long,
            &other,
        ];
        let stems: Vec<String> =
            names.iter().filter_map(|name| name.parse().ok()).map(|name| file_stem(&name)).collect();
        assert!(stems.len() >= names.len() - 1);
        assert_eq!(stems.iter().collect::<BTreeSet<_>>().len(), stems.len(), "{stems:?}");
        for stem in &stems {
            assert!(!stem.contains('/') && !stem.starts_with('.') && stem.len() < 230, "{stem}");
        }
        assert_eq!(file_stem(&"EXAMPLE.org.".parse().unwrap()), "example.org");
    }

    #[test]
    fn a_folder_has_one_user_and_keeps_what_was_there_where_writing_fails() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(dir.path()).unwrap();
        assert!(matches!(StateFolder::open(dir.path()), Err(StateError::Locked { .. })));
        let apex: Name = "example.".parse().unwrap();
        folder.write(&apex, ZONE, |out| out.write_all(b"one")).unwrap();
        let failed = folder
            .write(&apex, ZONE, |out| out.write_all(b"tw").and_then(|()| Err(io::Error::other("full"))));
        assert!(failed.is_err());
        assert_eq!(fs::read(folder.path(&apex, ZONE)).unwrap(), b"one");
        fs::write(dir.path().join("zones/.part-left"), "left").unwrap();
        drop(folder);
        let folder = StateFolder::open(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("zones")).unwrap().count(), 1, "what was left is gone");
        folder.remove(&apex);
        assert!(!folder.path(&apex, ZONE).exists());
    }

    #[test]
    fn origins_fit_the_files_that_they_were_noted_of() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(dir.path()).unwrap();
        let apex: Name = "example.".parse().unwrap();
        let source = dir.path().join("source");
        fs::write(&source, "first").unwrap();
        let origin = [Fingerprint::of(&source).unwrap()];
        assert!(!folder.is_of(&apex, &origin));
        folder.write(&apex, ZONE, |out| out.write_all(b"one")).unwrap();
        folder.write_origin(&apex, &origin).unwrap();
        assert!(folder.is_of(&apex, &origin));
        assert!(!folder.is_of(&apex, &[origin[0], origin[0]]));
        fs::write(&source, "second").unwrap();
        assert!(!folder.is_of(&apex, &[Fingerprint::of(&source).unwrap()]));
        // A zone that was published after the note is not what the note says.
        folder.write(&apex, ZONE, |out| out.write_all(b"two")).unwrap();
        assert!(!folder.is_of(&apex, &origin));
    }
}
