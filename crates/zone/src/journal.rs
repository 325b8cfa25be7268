//! Journals: files with the changes between the versions of a zone, from which the server answers
//! incremental transfers (RFC 1995). A journal survives a crash.
//!
//! All numbers are little-endian. The file has this format:
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 4a 0d 0a 1a`: no text begins with it, and a transfer in text mode alters it |
//! | 4 | version of the format, 1 |
//! | 4 | byte order mark, 0x01020304 |
//! | 256 | apex in wire format, padded with zeros |
//! | 16 | 0 |
//! | 32 | BLAKE3 digest of all fields above |
//! | … | entries (`entry`), each with the serial before and after the change, and a digest |
//!
//! [`Journal::append`] synchronises the new entry before it returns. When a journal is opened,
//! everything from the first invalid entry on is removed, for example an entry that a crash
//! interrupted. The remaining entries are the first of the appended changes. If they do not suffice
//! for an incremental transfer, the server transfers the whole zone.
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
/// Octets of the header before its digest.
const SEALED: usize = 288;
/// Octets of a BLAKE3 digest.
const DIGEST: usize = 32;
/// Octets of the file before the entries.
const HEADER: usize = SEALED + DIGEST;
/// When the journal reaches its maximum size, it is rewritten with at most this number of quarters
/// of the maximum, unless the new change alone is larger. The free quarter avoids a rewrite for
/// each change.
const KEPT_QUARTERS: u64 = 3;

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
    /// A change does not replace one SOA record by another with a different serial, or belongs to
    /// another zone.
    #[error(
        "the change of {0} does not remove one SOA record and add another: it cannot be transferred incrementally"
    )]
    NoSerials(Name),
    /// An entry was altered after it was written.
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
    /// The change does not follow the last change in the journal. All earlier changes were removed.
    Restarted,
    /// The change exceeds the maximum size of the journal. The journal is now empty.
    TooLarge,
}

/// The journal of a zone. Several threads can use it concurrently.
pub struct Journal {
    path: PathBuf,
    apex: Name,
    most: u64,
    state: Mutex<State>,
}

struct State {
    /// The open file, while a reader or [`Journal::append_all`] uses it.
    open: Weak<File>,
    /// Device and inode number of the file.
    identity: (u64, u64),
    entries: Vec<Entry>,
    end: u64,
}

impl State {
    fn new(file: &File, entries: Vec<Entry>, end: u64) -> io::Result<Self> {
        Ok(Self { open: Weak::new(), identity: identity_of(file)?, entries, end })
    }

    /// Opens the file and checks that it is the file that contains the entries.
    fn file(&mut self, path: &Path) -> io::Result<Arc<File>> {
        if let Some(file) = self.open.upgrade() {
            return Ok(file);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if identity_of(&file)? != self.identity {
            return Err(io::Error::other("the file was replaced"));
        }
        let file = Arc::new(file);
        self.open = Arc::downgrade(&file);
        Ok(file)
    }
}

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
    /// exist. `most` is the maximum size in octets.
    ///
    /// # Errors
    /// [`JournalError::Broken`] and [`JournalError::OtherZone`], in which case the caller can use
    /// [`Journal::replace`]; errors of the system.
    pub fn open(path: &Path, apex: &Name, most: u64) -> Result<(Self, OpenOutcome), JournalError> {
        let error = |action, source| JournalError::Io { path: path.to_owned(), action, source };
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                return Ok((Self::replace(path, apex, most)?, OpenOutcome::New));
            }
            Err(source) => return Err(error("open", source)),
        };
        let octets = file.metadata().map_err(|source| error("read", source))?.len();
        check_header(&file, octets, path, apex)?;
        let (entries, end) =
            entry::scan(&file, HEADER as u64, octets).map_err(|source| error("read", source))?;
        if end < octets {
            let cut = file.set_len(end).and_then(|()| file.sync_data());
            cut.map_err(|source| error("truncate", source))?;
        }
        let opened =
            if end < octets { OpenOutcome::CutOff { octets: octets - end } } else { OpenOutcome::Whole };
        let state = State::new(&file, entries, end).map_err(|source| error("read", source))?;
        Ok((Self { path: path.to_owned(), apex: apex.clone(), most, state: Mutex::new(state) }, opened))
    }

    /// Creates an empty journal at `path` and replaces any existing file.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn replace(path: &Path, apex: &Name, most: u64) -> Result<Self, JournalError> {
        let written = write_file(path, apex, &[]).and_then(Written::synchronised);
        let state = written.and_then(|(file, end)| State::new(&file, Vec::new(), end));
        let state =
            state.map_err(|source| JournalError::Io { path: path.to_owned(), action: "write", source })?;
        Ok(Self { path: path.to_owned(), apex: apex.clone(), most, state: Mutex::new(state) })
    }

    /// Appends a change and synchronises it to disk. The change must remove the previous SOA record
    /// and add the new one.
    ///
    /// # Errors
    /// [`JournalError::NoSerials`]; errors of the system. After an error of the system, the journal
    /// is unchanged.
    pub fn append(&self, change: &ChangeSet) -> Result<AppendOutcome, JournalError> {
        self.append_change(change, true)
    }

    /// Appends consecutive changes, each as [`append`](Self::append) does, and synchronises them to
    /// disk. If there is room for all of them, it synchronises once. A crash in between leaves the
    /// first of them.
    ///
    /// # Errors
    /// As for [`append`](Self::append). The changes before the faulty one may have been appended.
    pub fn append_all(&self, changes: &[ChangeSet]) -> Result<(), JournalError> {
        // Keeps the file open until the last change is synchronised. An error of opening it is
        // reported by the first append.
        let _open = self.state().file(&self.path);
        let last = changes.len();
        (1..).zip(changes).try_for_each(|(place, change)| self.append_change(change, place == last).map(drop))
    }

    /// Appends a change, and synchronises it to disk if `is_synchronised` is `true`.
    fn append_change(
        &self,
        change: &ChangeSet,
        is_synchronised: bool,
    ) -> Result<AppendOutcome, JournalError> {
        let serials = change.removed().soa().zip(change.added().soa());
        let serials = serials.map(|(old, new)| (old.serial, new.serial)).filter(|(from, to)| from != to);
        let serials = serials.filter(|_| *change.apex() == self.apex);
        let (from, to) = serials.ok_or_else(|| JournalError::NoSerials(change.apex().clone()))?;
        let octets = entry::encode(change, from, to);
        let mut state = self.state();
        let outcome = self.append_octets(&mut state, (from, to), &octets, is_synchronised);
        outcome.map_err(|source| JournalError::Io { path: self.path.clone(), action: "write", source })
    }

    fn append_octets(
        &self,
        state: &mut State,
        serials: (u32, u32),
        octets: &[u8],
        is_synchronised: bool,
    ) -> io::Result<AppendOutcome> {
        let length = octets.len() as u64;
        if HEADER as u64 + length > self.most {
            self.rewrite(state, state.entries.len(), None)?;
            return Ok(AppendOutcome::TooLarge);
        }
        let follows = state.entries.last().is_none_or(|last| last.to == serials.0);
        let new = (serials, octets);
        if !follows {
            self.rewrite(state, state.entries.len(), Some(new))?;
            return Ok(AppendOutcome::Restarted);
        }
        if state.end + length > self.most {
            let kept = (self.most / 4 * KEPT_QUARTERS).max(HEADER as u64 + length);
            let over = (state.end + length).saturating_sub(kept);
            let dropped = state.entries.partition_point(|entry| entry.end() - (HEADER as u64) < over);
            self.rewrite(state, (dropped + 1).min(state.entries.len()), Some(new))?;
            return Ok(AppendOutcome::Appended);
        }
        let file = state.file(&self.path)?;
        let synchronise = || if is_synchronised { file.sync_data() } else { Ok(()) };
        let written = file.write_all_at(octets, state.end).and_then(|()| synchronise());
        if let Err(error) = written {
            // If this fails too, the next entry overwrites the remains, or the next opening cuts
            // them off.
            let _ = file.set_len(state.end);
            return Err(error);
        }
        state.entries.push(Entry { from: serials.0, to: serials.1, offset: state.end, octets: length });
        state.end += length;
        Ok(AppendOutcome::Appended)
    }

    /// Replaces the file by a new one without the first `dropped` entries and with the entry `new`,
    /// if given.
    fn rewrite(&self, state: &mut State, dropped: usize, new: Option<((u32, u32), &[u8])>) -> io::Result<()> {
        let start = state.entries.get(dropped).map_or(state.end, |entry| entry.offset);
        let mut octets = vec![0; (state.end - start) as usize];
        if !octets.is_empty() {
            state.file(&self.path)?.read_exact_at(&mut octets, start)?;
        }
        let kept = state.entries.get(dropped..).unwrap_or_default();
        let moved = |entry: &Entry| Entry { offset: entry.offset - start + HEADER as u64, ..*entry };
        let mut entries: Vec<Entry> = kept.iter().map(moved).collect();
        if let Some(((from, to), added)) = new {
            let offset = (HEADER + octets.len()) as u64;
            entries.push(Entry { from, to, offset, octets: added.len() as u64 });
            octets.extend_from_slice(added);
        }
        let Written { file, end, synchronised } = write_file(&self.path, &self.apex, &octets)?;
        // The rename has happened, even if the directory was not synchronised. From now on the
        // state must refer to the new file, because data appended to the old one would be lost.
        *state = State::new(&file, entries, end)?;
        synchronised
    }

    /// Returns the changes between two serials. Returns `None` if the journal does not contain them
    /// or the file cannot be opened; the caller then transfers the whole zone.
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> Option<Changes> {
        let mut state = self.state();
        let last = state.entries.iter().rposition(|entry| entry.to == to)?;
        let first = state.entries[..=last].iter().rposition(|entry| entry.from == from)?;
        Some(Changes {
            path: self.path.clone(),
            apex: self.apex.clone(),
            file: state.file(&self.path).ok()?,
            entries: state.entries[first..=last].to_vec(),
        })
    }

    /// Returns the serial before the first change and the serial after the last change.
    #[must_use]
    pub fn serials(&self) -> Option<(u32, u32)> {
        let state = self.state();
        state.entries.first().map(|entry| entry.from).zip(state.entries.last().map(|entry| entry.to))
    }

    /// Removes all changes.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn clear(&self) -> Result<(), JournalError> {
        let mut state = self.state();
        let all = state.entries.len();
        let outcome = self.rewrite(&mut state, all, None);
        outcome.map_err(|source| JournalError::Io { path: self.path.clone(), action: "write", source })
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

fn check_header(file: &File, octets: u64, path: &Path, apex: &Name) -> Result<(), JournalError> {
    let broken = |flaw| Err(JournalError::Broken { path: path.to_owned(), flaw });
    let mut header = [0; HEADER];
    if octets < HEADER as u64 {
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
    if *blake3::hash(&header[..SEALED]).as_bytes() != header[SEALED..] {
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

fn header_of(apex: &Name) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
    header[16..16 + apex.wire().len()].copy_from_slice(apex.wire());
    let digest = blake3::hash(&header[..SEALED]);
    header[SEALED..].copy_from_slice(digest.as_bytes());
    header
}

/// A new journal file that was renamed to its final name.
struct Written {
    file: File,
    /// Size of the file in octets.
    end: u64,
    /// Result of synchronising the directory.
    synchronised: io::Result<()>,
}

impl Written {
    fn synchronised(self) -> io::Result<(File, u64)> {
        self.synchronised.map(|()| (self.file, self.end))
    }
}

/// Writes a journal with these entries to a temporary file, synchronises it and renames it to
/// `path`.
fn write_file(path: &Path, apex: &Name, entries: &[u8]) -> io::Result<Written> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut options = OpenOptions::new();
    // The file contains records of the zone, which not every user may read.
    options.read(true).write(true).create(true).truncate(true).mode(0o640);
    let mut file = options.open(&beside)?;
    let written = file.write_all(&header_of(apex)).and_then(|()| file.write_all(entries));
    let moved = written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = moved {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let synchronised = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(Written { file, end: (HEADER + entries.len()) as u64, synchronised })
}

#[cfg(test)]
mod tests;
