//! The state directory: the stored versions of zones, which a restart serves, with their journals
//! and state files.
//!
//! The server writes each file under a temporary name, syncs it to disk and renames it. Therefore a
//! reader finds either the previous or the complete new file, even after a crash.

mod file;
mod legacy;
mod member;

pub(super) use file::StateFile;
pub(super) use member::Membership;

use nonesuch_proto::Name;
use nonesuch_zone::Journal;
use nonesuch_zone::image::file::is_image;
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::hash::Hasher as _;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Suffix of the stored version of a zone. Operators are unlikely to choose it for a zone file.
pub(super) const ZONE_SUFFIX: &str = "kept";
/// Suffix of the journal of a zone.
pub(super) const JOURNAL_SUFFIX: &str = "journal";
/// Suffix of the state file of a zone.
pub(super) const STATE_SUFFIX: &str = "state";
/// Suffix of a new journal until it replaces the previous one.
pub(super) const NEW_JOURNAL_SUFFIX: &str = "journal.new";
/// Suffixes of all files of a zone, except legacy state files.
const SUFFIXES: [&str; 4] = [ZONE_SUFFIX, JOURNAL_SUFFIX, STATE_SUFFIX, NEW_JOURNAL_SUFFIX];
/// Number of bytes at the start of a file that [`is_written_by_server`] reads to identify its type.
const MAGIC_OCTETS: usize = 16;
/// Prefix of the names of temporary files.
const TEMPORARY_PREFIX: &str = ".part-";
/// Number of locks for state files.
const STATE_LOCK_COUNT: usize = 64;
/// Maximum length of a zone name in a file name, in bytes. A longer name is truncated, and a hash
/// is appended.
const MAX_STEM_BYTES: usize = 180;

/// The state directory. Only one process opens it at a time.
#[derive(Debug)]
pub struct StateDirectory {
    /// The subdirectory for the files of zones.
    zones: PathBuf,
    /// One of them is held while a state file is changed ([`StateDirectory::lock_state`]). Several
    /// zones share a lock.
    state_locks: [Mutex<()>; STATE_LOCK_COUNT],
    /// Whether legacy state files ([`legacy`]) could not be replaced. They are then read together
    /// with the state files.
    has_legacy_files: bool,
    /// Locked while the directory is in use.
    lock_file: File,
}

/// Errors of opening the state directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The operating system reports an error.
    #[error("cannot open state-dir {}: {source}: use a directory that this user may write to", dir.display())]
    Open {
        /// Path of the directory.
        dir: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("state-dir {} is in use by another process: stop that process, or use a separate directory for each server", dir.display())]
    Locked {
        /// Path of the directory.
        dir: PathBuf,
    },
}

impl Drop for StateDirectory {
    /// Releases the lock explicitly. Closing the file is not sufficient, because a child process
    /// has a copy of the file descriptor until it executes another program.
    fn drop(&mut self) {
        // If this fails, the lock ends with the last copy.
        let _ = self.lock_file.unlock();
    }
}

impl StateDirectory {
    /// Opens the state directory `dir`, and creates missing parts of it. Removes temporary files of
    /// a process that was killed, and replaces legacy state files.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created, read or written, or if another process
    /// uses it.
    pub fn open(dir: &Path) -> Result<Self, StateError> {
        let failed = |source| StateError::Open { dir: dir.to_path_buf(), source };
        let zones = Self::zones_directory(dir);
        DirBuilder::new().recursive(true).mode(0o750).create(&zones).map_err(failed)?;
        let lock_file = File::options()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(Self::lock_path(dir))
            .map_err(failed)?;
        match lock_file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::Locked { dir: dir.to_path_buf() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        for entry in fs::read_dir(&zones).map_err(failed)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_new_journal = name.ends_with(&format!(".{NEW_JOURNAL_SUFFIX}"))
                && is_written_by_server(&entry.path(), NEW_JOURNAL_SUFFIX);
            if name.starts_with(TEMPORARY_PREFIX) || is_new_journal {
                // A file that cannot be removed is harmless.
                let _ = fs::remove_file(entry.path());
            }
        }
        let mut directory = Self {
            zones,
            state_locks: [const { Mutex::new(()) }; STATE_LOCK_COUNT],
            has_legacy_files: false,
            lock_file,
        };
        directory.replace_legacy();
        Ok(directory)
    }

    /// Returns the subdirectory of `dir` for stored zones. Other files do not belong there.
    #[must_use]
    pub fn zones_directory(dir: &Path) -> PathBuf {
        dir.join("zones")
    }

    /// Returns the path in `dir` of the stored version of a zone.
    #[must_use]
    pub fn version_path(dir: &Path, apex: &Name) -> PathBuf {
        Self::zones_directory(dir).join(format!("{}.{ZONE_SUFFIX}", file_stem(apex)))
    }

    /// Returns the path in `dir` of the file that a process locks to use the directory exclusively.
    #[must_use]
    pub fn lock_path(dir: &Path) -> PathBuf {
        dir.join("lock")
    }

    /// Returns the path of the file of a zone with this suffix.
    #[must_use]
    pub fn path(&self, apex: &Name, suffix: &str) -> PathBuf {
        self.zones.join(format!("{}.{suffix}", file_stem(apex)))
    }

    /// Returns whether the file of a zone with this suffix exists, and a server wrote it
    /// ([`is_written_by_server`]).
    pub(super) fn has_file(&self, apex: &Name, suffix: &str) -> bool {
        let path = self.path(apex, suffix);
        fs::symlink_metadata(&path).is_ok() && is_written_by_server(&path, suffix)
    }

    /// Returns whether the server may write the file of a zone with this suffix. It may not if a
    /// file that no server wrote has this name.
    pub(super) fn may_write(&self, apex: &Name, suffix: &str) -> bool {
        is_written_by_server(&self.path(apex, suffix), suffix)
    }

    /// Writes the file of a zone with this suffix. The file is durable when this returns.
    ///
    /// # Errors
    /// Returns an error if writing fails, or [`io::ErrorKind::AlreadyExists`] if no server wrote the
    /// previous file. The previous file then remains.
    pub fn write(
        &self,
        apex: &Name,
        suffix: &str,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.write_checked(apex, suffix, write, |_| true).map(drop)
    }

    /// Writes a file as [`write`](Self::write) does, but replaces the previous file only if `check`
    /// returns `true` for the path of the new one. Returns the result of `check`.
    ///
    /// # Errors
    /// Returns the errors of [`write`](Self::write).
    pub(super) fn write_checked(
        &self,
        apex: &Name,
        suffix: &str,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
        check: impl FnOnce(&Path) -> bool,
    ) -> io::Result<bool> {
        let temporary = self.write_temporary(write)?;
        temporary.as_file().sync_all()?;
        if !check(temporary.path()) {
            return Ok(false);
        }
        Self::rename_temporary(temporary, &self.path(apex, suffix), suffix)?;
        self.sync_names()?;
        Ok(true)
    }

    /// Syncs the names of all files to disk.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn sync_names(&self) -> io::Result<()> {
        File::open(&self.zones)?.sync_all()
    }

    /// Syncs the file of a zone with this suffix to disk, if it exists.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn sync(&self, apex: &Name, suffix: &str) -> io::Result<()> {
        match File::open(self.path(apex, suffix)) {
            Ok(file) => file.sync_all(),
            // The zone was removed in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes a temporary file in the directory. It is removed if it is dropped.
    fn write_temporary(
        &self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<tempfile::NamedTempFile> {
        let temporary = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .permissions(Permissions::from_mode(0o640))
            .tempfile_in(&self.zones)?;
        let mut out = BufWriter::with_capacity(1 << 20, temporary.as_file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        Ok(temporary)
    }

    /// Renames a temporary file to `path`, the path of a file with this suffix.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::AlreadyExists`] if no server wrote the existing file at `path`, or
    /// the error of the operating system.
    fn rename_temporary(temporary: tempfile::NamedTempFile, path: &Path, suffix: &str) -> io::Result<()> {
        if !is_written_by_server(path, suffix) {
            let reason = "the server did not write the existing file and does not overwrite it; move it to another directory";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
        }
        temporary.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Removes all stored files of a zone. Returns whether any existed.
    pub fn remove(&self, apex: &Name) -> bool {
        self.remove_stem(&file_stem(apex))
    }

    /// Removes the stored version and the journal of a zone, and the state that belongs only to
    /// them.
    pub(super) fn remove_versions(&self, apex: &Name) {
        let stem = file_stem(apex);
        for suffix in [ZONE_SUFFIX, JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX] {
            self.remove_file(&stem, suffix);
        }
        // An error is harmless: the remaining state belongs to an image that no longer exists.
        let _ = self.update(apex, |state| (state.image, state.reused_serial) = (None, None));
    }

    /// Removes all files with this stem. Returns whether any existed.
    pub(super) fn remove_stem(&self, stem: &str) -> bool {
        let _lock = self.lock_state(stem);
        let suffixes = SUFFIXES.iter().chain(&legacy::SUFFIXES);
        suffixes.filter(|suffix| self.remove_file(stem, suffix)).count() > 0
    }

    /// Removes the file with this stem and suffix, if a server wrote it. Returns whether it was
    /// removed.
    fn remove_file(&self, stem: &str, suffix: &str) -> bool {
        let path = self.zones.join(format!("{stem}.{suffix}"));
        is_written_by_server(&path, suffix) && fs::remove_file(path).is_ok()
    }

    /// Returns the stems of all stored files ([`file_stem`]).
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub(super) fn stems(&self) -> io::Result<BTreeSet<String>> {
        let mut stems = BTreeSet::new();
        for entry in fs::read_dir(&self.zones)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let stem = name
                .rsplit_once('.')
                .filter(|(_, suffix)| SUFFIXES.contains(suffix) || legacy::SUFFIXES.contains(suffix));
            stems.extend(stem.filter(|(stem, _)| !stem.is_empty()).map(|(stem, _)| stem.to_owned()));
        }
        Ok(stems)
    }
}

/// Returns whether a server wrote the file at `path`, according to its first bytes. Also returns
/// `true` if the file does not exist, or if a crash of the machine left it empty.
fn is_written_by_server(path: &Path, suffix: &str) -> bool {
    let mut first_bytes = Vec::with_capacity(MAGIC_OCTETS);
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return false,
        // A file without readable metadata cannot be replaced either; the later operation reports
        // the error.
        Err(_) => return true,
    }
    if File::open(path).and_then(|file| file.take(MAGIC_OCTETS as u64).read_to_end(&mut first_bytes)).is_err()
    {
        return false;
    }
    first_bytes.is_empty()
        || match suffix {
            ZONE_SUFFIX => is_image(&first_bytes),
            JOURNAL_SUFFIX | NEW_JOURNAL_SUFFIX => Journal::is_journal(&first_bytes),
            STATE_SUFFIX => first_bytes.starts_with(file::MAGIC),
            _ => first_bytes.starts_with(legacy::MAGIC),
        }
}

/// Returns the stem of the names of a zone's files: letters, digits, hyphens, underscores and dots
/// unchanged, other octets as `%` and two hexadecimal digits. The root zone is `@`, and a long name
/// is truncated and ends with a hash.
pub(super) fn file_stem(apex: &Name) -> String {
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
    if stem.len() > MAX_STEM_BYTES {
        let mut hasher = SipHasher24::new();
        hasher.write(canonical.wire());
        let hash = hasher.finish128().as_u128();
        // The text is ASCII, so that truncation is safe at every byte.
        stem.truncate(MAX_STEM_BYTES);
        stem.push_str(&format!("~{hash:032x}"));
    }
    stem
}

/// Identifies a version of a file: modification time, size, inode and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    /// Modification time: seconds since 1970, and nanoseconds.
    modified: (i64, i64),
    octets: u64,
    inode: u64,
    device: u64,
}

impl Fingerprint {
    /// Returns the fingerprint of the file or directory at `path`.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            octets: metadata.len(),
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[u8] = b"\x89NSCI\r\n\x1aone";
    const TWO: &[u8] = b"\x89NSCI\r\n\x1atwo";

    #[test]
    fn file_stems_are_safe_and_differ() {
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
    fn a_directory_has_one_user_and_keeps_the_previous_file_if_writing_fails() {
        let dir = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(dir.path()).unwrap();
        assert!(matches!(StateDirectory::open(dir.path()), Err(StateError::Locked { .. })));
        let apex: Name = "example.".parse().unwrap();
        directory.write(&apex, ZONE_SUFFIX, |out| out.write_all(ONE)).unwrap();
        let failed = directory
            .write(&apex, ZONE_SUFFIX, |out| out.write_all(TWO).and_then(|()| Err(io::Error::other("full"))));
        assert!(failed.is_err());
        assert!(!directory.write_checked(&apex, ZONE_SUFFIX, |out| out.write_all(TWO), |_| false).unwrap());
        assert_eq!(fs::read(directory.path(&apex, ZONE_SUFFIX)).unwrap(), ONE);
        fs::write(dir.path().join("zones/.part-left"), "left").unwrap();
        fs::write(dir.path().join("zones/example.journal.new"), "").unwrap();
        // Simulates a child process that has just been created.
        let copy = directory.lock_file.try_clone().unwrap();
        drop(directory);
        let directory = StateDirectory::open(dir.path()).unwrap();
        drop(copy);
        assert_eq!(fs::read_dir(dir.path().join("zones")).unwrap().count(), 1, "leftover files are removed");
        assert_eq!(directory.stems().unwrap(), BTreeSet::from(["example".to_owned()]));
        assert!(directory.remove(&apex));
        assert!(!directory.path(&apex, ZONE_SUFFIX).exists() && !directory.remove(&apex));
        assert!(directory.stems().unwrap().is_empty());
    }

    #[test]
    fn foreign_files_are_neither_overwritten_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(dir.path()).unwrap();
        let apex: Name = "example.".parse().unwrap();
        for suffix in SUFFIXES.into_iter().chain(legacy::SUFFIXES) {
            let path = directory.path(&apex, suffix);
            fs::write(&path, "precious").unwrap();
            assert!(directory.write(&apex, suffix, |out| out.write_all(ONE)).is_err(), "{suffix}");
            assert!(!directory.remove(&apex) && !directory.has_file(&apex, suffix), "{suffix}");
            assert_eq!(fs::read(&path).unwrap(), b"precious", "{suffix}");
            fs::write(&path, "").unwrap();
            directory.write(&apex, suffix, |out| out.write_all(b"any text")).unwrap();
            fs::remove_file(&path).unwrap();
            let precious = dir.path().join("precious");
            fs::write(&precious, "precious").unwrap();
            std::os::unix::fs::symlink(&precious, &path).unwrap();
            assert!(directory.write(&apex, suffix, |out| out.write_all(ONE)).is_err(), "{suffix}");
            assert!(!directory.remove(&apex) && precious.exists(), "{suffix}");
            fs::remove_file(&path).unwrap();
        }
        // The server did not write a file with a name that an operator might choose.
        fs::write(dir.path().join("zones/example.zone"), "precious").unwrap();
        assert!(directory.stems().unwrap().is_empty() && !directory.remove(&apex));
    }
}
