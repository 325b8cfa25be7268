//! Journals: files with the changes between the versions of a zone, from which the server answers
//! incremental transfers (RFC 1995). A journal survives a crash.
//!
//! Numbers are little-endian, except in names and records, which are in wire format. The file has
//! this format:
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 4a 0d 0a 1a`: no text begins with it, and a transfer in text mode alters it |
//! | 4 | version of the format, 1 |
//! | 4 | byte order mark 0x01020304: the octets `04 03 02 01`; a file with other octets is rejected |
//! | 256 | apex in wire format, padded with zeros |
//! | 16 | reserved, zeros |
//! | 32 | BLAKE3 digest of all fields above |
//! | … | entries (`entry`), each with the serial before and after the change, and a digest |
//!
//! [`Journal::append`] synchronises the new entry to disk before it returns. [`Journal::open`]
//! removes everything from the first invalid entry on, for example an entry that was incomplete
//! after a crash. The entries before it remain. If they do not suffice for an incremental transfer,
//! the server transfers the whole zone.
//!
//! A journal has a maximum size. If a change would exceed it, the journal is replaced by a new file
//! without the oldest changes. Readers of the old file can continue.
//!
//! A server may have a hundred thousand journals. Therefore the file is open only while changes are
//! appended or read.

mod entry;
mod reader;

pub use reader::{ChangeReader, ChangeRecord};

use crate::change::ChangeSet;
use entry::Entry;
use nonesuch_proto::Name;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const MAGIC: [u8; 8] = *b"\x89NSCJ\r\n\x1a";
const VERSION: u32 = 1;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Offset of the digest in the header; the digest covers all octets before it.
const DIGEST_OFFSET: usize = 288;
/// Octets of a BLAKE3 digest.
const DIGEST_OCTETS: usize = 32;
/// Octets of the file before the entries.
const HEADER_OCTETS: usize = DIGEST_OFFSET + DIGEST_OCTETS;
/// Maximum size of a rewritten journal, in quarters of the maximum size of the journal: 3/4. The
/// free quarter avoids a rewrite for each change. If the new change alone is larger, the rewritten
/// journal has only this change.
const REWRITTEN_QUARTERS: u64 = 3;

/// Error of a journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file or its directory cannot be read or written.
    #[error("{}: cannot {action} the journal: {source}: check the permissions of the directory and the free space of the file system", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a journal, or its header is unusable.
    #[error("{}: {flaw}: remove the file; a new journal is then created, and until it contains changes, clients get the whole zone (AXFR)", path.display())]
    Broken {
        /// Path of the file.
        path: PathBuf,
        /// The fault.
        flaw: &'static str,
    },
    /// The journal belongs to another zone.
    #[error("{}: journal of the zone {found}, expected {wanted}: remove the file, or configure a separate file for each zone", path.display())]
    OtherZone {
        /// Path of the file.
        path: PathBuf,
        /// The zone of the file.
        found: Name,
        /// The zone that the caller requested.
        wanted: Name,
    },
    /// A change does not replace the SOA record by another one.
    #[error(
        "the change of {0} does not remove one SOA record and add another: it cannot be transferred incrementally; increase the serial with each change"
    )]
    NoSerials(Name),
    /// A change replaces the SOA record by another one with the same serial.
    #[error(
        "the change of {apex} does not change the serial {serial}: it cannot be transferred incrementally; increase the serial with each change"
    )]
    SameSerial {
        /// The zone.
        apex: Name,
        /// The serial of both SOA records.
        serial: u32,
    },
    /// A change belongs to another zone than the journal.
    #[error("{}: change of the zone {found}, expected {wanted}: append it to the journal of {found}", path.display())]
    OtherZoneChange {
        /// Path of the file.
        path: PathBuf,
        /// The zone of the change.
        found: Name,
        /// The zone of the journal.
        wanted: Name,
    },
    /// Since the journal was opened, another program has replaced the file. The changes in the new
    /// file are unknown.
    #[error("{}: another program has replaced the journal: let only one server use this file", path.display())]
    Replaced {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file no longer has the octets of an entry that was valid when it was written or the
    /// journal was opened.
    #[error("{}: the change from serial {from} was altered after it was written: remove the file; a new journal is then created", path.display())]
    Altered {
        /// Path of the file.
        path: PathBuf,
        /// Serial before the change.
        from: u32,
    },
}

/// Result of opening a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenOutcome {
    /// The file did not exist; an empty journal was created.
    New,
    /// The whole file is valid.
    Whole,
    /// The end of the file was invalid and was removed.
    CutOff {
        /// Number of octets that were removed.
        octets: u64,
    },
}

/// Result of appending a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The change was appended. The oldest changes may have been removed.
    Appended,
    /// The change does not begin at the serial where the last change in the journal ends. The
    /// journal now has only the new change.
    Restarted,
    /// The change alone exceeds the maximum size of the journal. It was not appended, and the
    /// journal is now empty.
    TooLarge,
}

/// The journal of a zone. Several threads can use it concurrently.
pub struct Journal {
    path: PathBuf,
    apex: Name,
    /// Maximum size of the file in octets.
    max_octets: u64,
    state: Mutex<State>,
}

/// The content of the file, as of the last change by this process.
struct State {
    /// The open file, while a reader or [`Journal::append_all`] uses it.
    shared_file: Weak<File>,
    /// Device and inode number of the file.
    identity: (u64, u64),
    entries: Vec<Entry>,
    /// Size of the file in octets, where the next entry begins.
    end: u64,
}

impl State {
    fn new(file: &File, entries: Vec<Entry>, end: u64) -> io::Result<Self> {
        Ok(Self { shared_file: Weak::new(), identity: identity_of(file)?, entries, end })
    }

    /// Returns the open file. If no user has it open, opens it and checks that it is the file with
    /// the entries.
    fn open_file(&mut self, path: &Path) -> Result<Arc<File>, FileError> {
        if let Some(file) = self.shared_file.upgrade() {
            return Ok(file);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if identity_of(&file)? != self.identity {
            return Err(FileError::Replaced);
        }
        let file = Arc::new(file);
        self.shared_file = Arc::downgrade(&file);
        Ok(file)
    }
}

/// The reason why the file of a journal cannot be used.
enum FileError {
    /// The system reports an error.
    System(io::Error),
    /// Another file is at the path.
    Replaced,
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl FileError {
    /// The error of writing the journal at `path`.
    fn of_write(self, path: &Path) -> JournalError {
        let path = path.to_owned();
        match self {
            Self::System(source) => JournalError::Io { path, action: "write", source },
            Self::Replaced => JournalError::Replaced { path },
        }
    }
}

/// Device and inode number.
fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Journal {
    /// Whether `octets` begin with the magic of a journal.
    #[must_use]
    pub fn is_journal(octets: &[u8]) -> bool {
        octets.starts_with(&MAGIC)
    }

    /// Opens the journal of the zone `apex` at `path`, or creates an empty one if the file does not
    /// exist. `max_octets` is the maximum size of the file in octets.
    ///
    /// # Errors
    /// [`JournalError::Broken`] and [`JournalError::OtherZone`]; the caller can then discard the
    /// file with [`Journal::replace`]. [`JournalError::Io`].
    pub fn open(path: &Path, apex: &Name, max_octets: u64) -> Result<(Self, OpenOutcome), JournalError> {
        let error = |action, source| JournalError::Io { path: path.to_owned(), action, source };
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                return Ok((Self::replace(path, apex, max_octets)?, OpenOutcome::New));
            }
            Err(source) => return Err(error("open", source)),
        };
        let octets = file.metadata().map_err(|source| error("read", source))?.len();
        check_header(&file, octets, path, apex)?;
        let (entries, end) =
            entry::scan(&file, HEADER_OCTETS as u64, octets).map_err(|source| error("read", source))?;
        if end < octets {
            let truncated = file.set_len(end).and_then(|()| file.sync_data());
            truncated.map_err(|source| error("truncate", source))?;
        }
        let outcome =
            if end < octets { OpenOutcome::CutOff { octets: octets - end } } else { OpenOutcome::Whole };
        let state = State::new(&file, entries, end).map_err(|source| error("read", source))?;
        Ok((
            Self { path: path.to_owned(), apex: apex.clone(), max_octets, state: Mutex::new(state) },
            outcome,
        ))
    }

    /// Creates an empty journal at `path` and replaces any existing file. `max_octets` is as for
    /// [`Journal::open`].
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn replace(path: &Path, apex: &Name, max_octets: u64) -> Result<Self, JournalError> {
        let written = write_file(path, apex, &[]).and_then(NewFile::into_synchronised);
        let state = written.and_then(|(file, end)| State::new(&file, Vec::new(), end));
        let state =
            state.map_err(|source| JournalError::Io { path: path.to_owned(), action: "write", source })?;
        Ok(Self { path: path.to_owned(), apex: apex.clone(), max_octets, state: Mutex::new(state) })
    }

    /// Appends a change and synchronises it to disk. The change must remove the previous SOA record
    /// and add the new one. If the journal would exceed its maximum size, it is rewritten without
    /// the oldest changes.
    ///
    /// # Errors
    /// [`JournalError::NoSerials`], [`JournalError::SameSerial`],
    /// [`JournalError::OtherZoneChange`], [`JournalError::Replaced`]: the journal is unchanged.
    ///
    /// [`JournalError::Io`]: the journal is unchanged, unless it was rewritten and only the
    /// synchronisation of its directory failed. It then has the change, but may be the previous
    /// file again after a crash.
    pub fn append(&self, change: &ChangeSet) -> Result<AppendOutcome, JournalError> {
        self.append_change(change, true)
    }

    /// Appends consecutive changes, each as [`append`](Self::append) does, and synchronises them to
    /// disk. If no change requires a rewrite, it synchronises only after the last one. After a
    /// crash before that, the journal can have only the first of the changes.
    ///
    /// The outcome of each change is not returned. After [`AppendOutcome::TooLarge`] or
    /// [`AppendOutcome::Restarted`], the journal lacks all earlier changes, and transfers from
    /// their serials become full transfers.
    ///
    /// # Errors
    /// As for [`append`](Self::append), for the first change that fails. The changes before it may
    /// have been appended.
    pub fn append_all(&self, changes: &[ChangeSet]) -> Result<(), JournalError> {
        // Keeps the file open until the last change is synchronised. If it cannot be opened, the
        // first append returns the error.
        let _open = self.state().open_file(&self.path);
        let last = changes.len();
        (1..)
            .zip(changes)
            .try_for_each(|(number, change)| self.append_change(change, number == last).map(drop))
    }

    /// Appends a change, and synchronises it to disk if `is_synchronised` is `true`.
    fn append_change(
        &self,
        change: &ChangeSet,
        is_synchronised: bool,
    ) -> Result<AppendOutcome, JournalError> {
        let (from, to) = self.serials_of(change)?;
        let octets = entry::encode(change, from, to);
        let mut state = self.state();
        let outcome = self.append_octets(&mut state, (from, to), &octets, is_synchronised);
        outcome.map_err(|error| error.of_write(&self.path))
    }

    /// Returns the serials before and after a change, if the journal can contain it.
    fn serials_of(&self, change: &ChangeSet) -> Result<(u32, u32), JournalError> {
        let apex = change.apex();
        if *apex != self.apex {
            let (path, wanted) = (self.path.clone(), self.apex.clone());
            return Err(JournalError::OtherZoneChange { path, found: apex.clone(), wanted });
        }
        let Some((old, new)) = change.removed().soa().zip(change.added().soa()) else {
            return Err(JournalError::NoSerials(apex.clone()));
        };
        if old.serial == new.serial {
            return Err(JournalError::SameSerial { apex: apex.clone(), serial: new.serial });
        }
        Ok((old.serial, new.serial))
    }

    /// Appends the entry `octets` of a change between these serials.
    fn append_octets(
        &self,
        state: &mut State,
        serials: (u32, u32),
        octets: &[u8],
        is_synchronised: bool,
    ) -> Result<AppendOutcome, FileError> {
        let length = octets.len() as u64;
        if HEADER_OCTETS as u64 + length > self.max_octets {
            self.rewrite(state, state.entries.len(), None)?;
            return Ok(AppendOutcome::TooLarge);
        }
        let follows = state.entries.last().is_none_or(|last| last.to == serials.0);
        let new = (serials, octets);
        if !follows {
            self.rewrite(state, state.entries.len(), Some(new))?;
            return Ok(AppendOutcome::Restarted);
        }
        if state.end + length > self.max_octets {
            let rewritten = (self.max_octets / 4 * REWRITTEN_QUARTERS).max(HEADER_OCTETS as u64 + length);
            let excess = (state.end + length).saturating_sub(rewritten);
            // The entries that are too few to free `excess` octets; one more is sufficient.
            let too_few =
                state.entries.partition_point(|entry| entry.end() - (HEADER_OCTETS as u64) < excess);
            self.rewrite(state, (too_few + 1).min(state.entries.len()), Some(new))?;
            return Ok(AppendOutcome::Appended);
        }
        let file = state.open_file(&self.path)?;
        let synchronise = || if is_synchronised { file.sync_data() } else { Ok(()) };
        let written = file.write_all_at(octets, state.end).and_then(|()| synchronise());
        if let Err(error) = written {
            // If this fails too, the next append overwrites the incomplete entry, or the next
            // opening removes it.
            let _ = file.set_len(state.end);
            return Err(error.into());
        }
        state.entries.push(Entry { from: serials.0, to: serials.1, offset: state.end, octets: length });
        state.end += length;
        Ok(AppendOutcome::Appended)
    }

    /// Replaces the file by a new one without the first `removed_count` entries and with the entry
    /// `new`, if given: its serials and octets.
    fn rewrite(
        &self,
        state: &mut State,
        removed_count: usize,
        new: Option<((u32, u32), &[u8])>,
    ) -> Result<(), FileError> {
        let start = state.entries.get(removed_count).map_or(state.end, |entry| entry.offset);
        let mut octets = vec![0; (state.end - start) as usize];
        if !octets.is_empty() {
            state.open_file(&self.path)?.read_exact_at(&mut octets, start)?;
        }
        let kept = state.entries.get(removed_count..).unwrap_or_default();
        let moved = |entry: &Entry| Entry { offset: entry.offset - start + HEADER_OCTETS as u64, ..*entry };
        let mut entries: Vec<Entry> = kept.iter().map(moved).collect();
        if let Some(((from, to), added)) = new {
            let offset = (HEADER_OCTETS + octets.len()) as u64;
            entries.push(Entry { from, to, offset, octets: added.len() as u64 });
            octets.extend_from_slice(added);
        }
        let NewFile { file, end, directory_sync } = write_file(&self.path, &self.apex, &octets)?;
        // The rename has happened, even if the directory was not synchronised. From now on the
        // state must refer to the new file, because data appended to the old one would be lost.
        *state = State::new(&file, entries, end)?;
        Ok(directory_sync?)
    }

    /// Returns the changes that lead from serial `from` to serial `to`, in order. Returns `None` if
    /// the journal does not contain them, or if the file cannot be opened or was replaced; the
    /// caller then transfers the whole zone.
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> Option<Changes> {
        let mut state = self.state();
        let last = state.entries.iter().rposition(|entry| entry.to == to)?;
        let first = state.entries[..=last].iter().rposition(|entry| entry.from == from)?;
        Some(Changes {
            path: self.path.clone(),
            apex: self.apex.clone(),
            file: state.open_file(&self.path).ok()?,
            entries: state.entries[first..=last].to_vec(),
        })
    }

    /// Returns the serial before the first change and the serial after the last change; `None` if
    /// the journal is empty.
    #[must_use]
    pub fn serials(&self) -> Option<(u32, u32)> {
        let state = self.state();
        state.entries.first().map(|entry| entry.from).zip(state.entries.last().map(|entry| entry.to))
    }

    /// Removes all changes. If the file was replaced, an empty journal replaces it again.
    ///
    /// # Errors
    /// [`JournalError::Io`]. If only the synchronisation of the directory failed, the journal is
    /// empty, but may be the previous file again after a crash.
    pub fn clear(&self) -> Result<(), JournalError> {
        let mut state = self.state();
        let all = state.entries.len();
        let outcome = self.rewrite(&mut state, all, None);
        outcome.map_err(|error| error.of_write(&self.path))
    }

    /// Locks the state. The state is modified only by plain assignments after the last step that
    /// can fail, so it is consistent even after a panic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.path).field("apex", &self.apex).finish_non_exhaustive()
    }
}

/// Consecutive changes that can be read one by one. They stay readable when the journal is modified
/// or replaced.
#[derive(Debug)]
pub struct Changes {
    path: PathBuf,
    apex: Name,
    file: Arc<File>,
    entries: Vec<Entry>,
}

impl Changes {
    /// Size of the changes in the journal, in octets: uncompressed names and RDATA, and a small
    /// overhead for each name and RRset.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.entries.iter().map(|entry| entry.octets).sum()
    }
}

/// Checks the header of a file with `octets` octets.
fn check_header(file: &File, octets: u64, path: &Path, apex: &Name) -> Result<(), JournalError> {
    let broken = |flaw| Err(JournalError::Broken { path: path.to_owned(), flaw });
    let mut header = [0; HEADER_OCTETS];
    if octets < HEADER_OCTETS as u64 {
        return broken("not a journal, or truncated in its header");
    }
    let read = file.read_exact_at(&mut header, 0);
    read.map_err(|source| JournalError::Io { path: path.to_owned(), action: "read", source })?;
    let expected = header_of(apex);
    if header == expected {
        return Ok(());
    }
    if header[..8] != MAGIC {
        return broken("not a journal");
    }
    if header[8..16] != expected[8..16] {
        return broken("journal of another format version or byte order");
    }
    if *blake3::hash(&header[..DIGEST_OFFSET]).as_bytes() != header[DIGEST_OFFSET..] {
        return broken("the header of the journal was altered (digest mismatch)");
    }
    match nonesuch_proto::NameRef::split_from(&header[16..272]) {
        // The letter case of the apex may have changed.
        Ok((found, _)) if found == apex.view() => Ok(()),
        Ok((found, _)) => Err(JournalError::OtherZone {
            path: path.to_owned(),
            found: found.to_name(),
            wanted: apex.clone(),
        }),
        Err(_) => broken("the header of the journal has no valid zone name"),
    }
}

/// Returns the header of the journal of the zone `apex`.
fn header_of(apex: &Name) -> [u8; HEADER_OCTETS] {
    let mut header = [0; HEADER_OCTETS];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
    header[16..16 + apex.wire().len()].copy_from_slice(apex.wire());
    let digest = blake3::hash(&header[..DIGEST_OFFSET]);
    header[DIGEST_OFFSET..].copy_from_slice(digest.as_bytes());
    header
}

/// A new journal file that was renamed to its final name.
struct NewFile {
    file: File,
    /// Size of the file in octets.
    end: u64,
    /// Result of synchronising the directory, without which a crash can undo the renaming.
    directory_sync: io::Result<()>,
}

impl NewFile {
    /// Returns the file and its size, or the error of synchronising the directory.
    fn into_synchronised(self) -> io::Result<(File, u64)> {
        self.directory_sync.map(|()| (self.file, self.end))
    }
}

/// Writes a journal with these entries to a temporary file, synchronises it and renames it to
/// `path`. After an error, the file at `path` is unchanged.
fn write_file(path: &Path, apex: &Name, entries: &[u8]) -> io::Result<NewFile> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let mut options = OpenOptions::new();
    // The file contains records of the zone, which not every user may read.
    options.read(true).write(true).create(true).truncate(true).mode(0o640);
    let mut file = options.open(&temporary)?;
    let written = file.write_all(&header_of(apex)).and_then(|()| file.write_all(entries));
    let moved = written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = moved {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory_sync =
        File::open(parent.unwrap_or_else(|| Path::new("."))).and_then(|directory| directory.sync_all());
    Ok(NewFile { file, end: (HEADER_OCTETS + entries.len()) as u64, directory_sync })
}

#[cfg(test)]
mod tests;
