//! Journals: the changes of a zone, one behind the other, in a file that survives a crash. Incremental transfers (RFC 1995)
//! are made of them.
//!
//! All numbers are little-endian. The file is
//!
//! | octets | what |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 4a 0d 0a 1a`: no text begins so, and a transfer as text spoils it |
//! | 4 | version of the format, 1 |
//! | 4 | mark of the byte order, 0x01020304 |
//! | 256 | apex in wire form, filled up with zeros |
//! | 16 | 0 |
//! | 32 | BLAKE3 digest of all that |
//! | … | entries (`entry`), each with the serial that it leads from and the one that it leads to, and a digest |
//!
//! An entry is appended and synchronised before [`Journal::append`] returns. What a crash leaves of one that was being written
//! is cut off when the journal is opened, and so is all from the first entry on that is not as it was written: what is left are the first
//! of the changes that were appended. Where that is not enough for an incremental transfer, the zone is transferred whole.
//!
//! A journal has a greatest size. When it is reached, the oldest changes are left out of a new file that takes the old one's
//! place; readers of the old one go on reading it.
//!
//! A server may have a hundred thousand journals: the file is open while changes are appended or read, and not in between.

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
/// Octets of the header in front of its digest.
const SEALED: usize = 288;
/// Octets of a BLAKE3 digest.
const DIGEST: usize = 32;
/// Octets in front of the entries.
const HEADER: usize = SEALED + DIGEST;
/// Of the greatest size, so much is kept in quarters when a journal is written anew: not every change is to do that.
const KEPT_QUARTERS: u64 = 3;

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file, or its folder, cannot be read or written.
    #[error("{}: cannot {action} the journal: {source}: see to the folder's rights and to the room on its disk", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no journal that can be used.
    #[error("{}: {flaw}: remove the file, a new one is begun; until it has changes, the zone is transferred whole", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// The journal is that of another zone.
    #[error("{}: the journal of the zone {found}, and not of {wanted}: remove the file, or give each zone its own", path.display())]
    OtherZone {
        /// The file.
        path: PathBuf,
        /// The zone of the file.
        found: Name,
        /// The zone that was asked for.
        wanted: Name,
    },
    /// A change does not lead from one serial to another.
    #[error(
        "the change of {0} does not remove one SOA record and add another: nothing can be transferred incrementally by it"
    )]
    NoSerials(Name),
    /// An entry is not as it was written.
    #[error("{}: the change from serial {from} was altered since it was written: remove the file, a new one is begun", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// The serial that it leads from.
        from: u32,
    },
}

/// What was found when a journal was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenOutcome {
    /// Nothing: an empty one was made.
    New,
    /// A whole journal.
    Whole,
    /// Entries that were not, or not wholly, as they were written: these octets were cut off.
    CutOff {
        /// How many.
        octets: u64,
    },
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It stands behind the others.
    Appended,
    /// It does not follow on the last one: it stands alone, the others are gone.
    Restarted,
    /// It is larger than the journal may be: the journal is empty.
    TooLarge,
}

/// The journal of a zone. Several threads may use it at once.
pub struct Journal {
    path: PathBuf,
    apex: Name,
    most: u64,
    state: Mutex<State>,
}

struct State {
    /// The file, while somebody reads it.
    open: Weak<File>,
    /// Device and number of the file.
    identity: (u64, u64),
    entries: Vec<Entry>,
    end: u64,
}

impl State {
    fn new(file: &File, entries: Vec<Entry>, end: u64) -> io::Result<Self> {
        Ok(Self { open: Weak::new(), identity: identity_of(file)?, entries, end })
    }

    /// Opens the file, which must be the one that the entries are of.
    fn file(&mut self, path: &Path) -> io::Result<Arc<File>> {
        if let Some(file) = self.open.upgrade() {
            return Ok(file);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if identity_of(&file)? != self.identity {
            return Err(io::Error::other("another file has taken its place"));
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
    /// Whether octets begin as a journal does.
    #[must_use]
    pub fn is_journal(octets: &[u8]) -> bool {
        octets.starts_with(&MAGIC)
    }

    /// Opens the journal of the zone `apex` at `path`, or makes an empty one where there is none. It is kept to `most` octets.
    ///
    /// # Errors
    /// [`JournalError::Broken`] and [`JournalError::OtherZone`], where [`Journal::replace`] helps; those of the system.
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
            cut.map_err(|source| error("cut off the end of", source))?;
        }
        let opened =
            if end < octets { OpenOutcome::CutOff { octets: octets - end } } else { OpenOutcome::Whole };
        let state = State::new(&file, entries, end).map_err(|source| error("read", source))?;
        Ok((Self { path: path.to_owned(), apex: apex.clone(), most, state: Mutex::new(state) }, opened))
    }

    /// Makes an empty journal in the place of whatever is there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn replace(path: &Path, apex: &Name, most: u64) -> Result<Self, JournalError> {
        let written = write_file(path, apex, &[]).and_then(Written::synchronised);
        let state = written.and_then(|(file, end)| State::new(&file, Vec::new(), end));
        let state =
            state.map_err(|source| JournalError::Io { path: path.to_owned(), action: "write", source })?;
        Ok(Self { path: path.to_owned(), apex: apex.clone(), most, state: Mutex::new(state) })
    }

    /// Appends a change, which is on the disk when this returns. It has the SOA record that the zone had before and the one
    /// that it has then.
    ///
    /// # Errors
    /// [`JournalError::NoSerials`]; those of the system, and then the journal is as it was before.
    pub fn append(&self, change: &ChangeSet) -> Result<AppendOutcome, JournalError> {
        self.append_change(change, true)
    }

    /// Appends changes that follow on each other, as [`append`](Self::append) each of them; they are on the disk when this returns,
    /// and are synchronised once where there is room for all. A crash meanwhile leaves the first of them.
    ///
    /// # Errors
    /// As [`append`](Self::append); changes in front of the faulty one may have been appended.
    pub fn append_all(&self, changes: &[ChangeSet]) -> Result<(), JournalError> {
        // Open until the last of them is synchronised; where that fails, the first one says so.
        let _open = self.state().file(&self.path);
        let last = changes.len();
        (1..).zip(changes).try_for_each(|(place, change)| self.append_change(change, place == last).map(drop))
    }

    /// Appends a change, which is on the disk when this returns, or not yet, as `is_synchronised` has it.
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
            // What is left of it is overwritten by the next one, or cut off when the journal is opened.
            let _ = file.set_len(state.end);
            return Err(error);
        }
        state.entries.push(Entry { from: serials.0, to: serials.1, offset: state.end, octets: length });
        state.end += length;
        Ok(AppendOutcome::Appended)
    }

    /// Writes the journal anew, without its first `dropped` entries and with a further one, and puts it in its place.
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
        // It is in its place, whether that lasts or not: what is appended to the old one is lost.
        *state = State::new(&file, entries, end)?;
        synchronised
    }

    /// The changes that lead from one serial to another; `None` where there are none, and where the file cannot be opened: then the zone is
    /// transferred whole.
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

    /// The serial that the first change leads from, and the one that the last one leads to.
    #[must_use]
    pub fn serials(&self) -> Option<(u32, u32)> {
        let state = self.state();
        state.entries.first().map(|entry| entry.from).zip(state.entries.last().map(|entry| entry.to))
    }

    /// Takes all changes out.
    ///
    /// # Errors
    /// Those of the system.
    pub fn clear(&self) -> Result<(), JournalError> {
        let mut state = self.state();
        let all = state.entries.len();
        let outcome = self.rewrite(&mut state, all, None);
        outcome.map_err(|source| JournalError::Io { path: self.path.clone(), action: "write", source })
    }

    /// The state is changed by plain assignments behind the last thing that can fail: it is whole after a panic too.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.path).field("apex", &self.apex).finish_non_exhaustive()
    }
}

/// Changes that follow on each other, read one by one. They can be read whatever becomes of the journal.
#[derive(Debug)]
pub struct Changes {
    path: PathBuf,
    apex: Name,
    file: Arc<File>,
    entries: Vec<Entry>,
}

impl Changes {
    /// Octets that they take in the journal: names and RDATA uncompressed, and a little for each name and RRset.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.entries.iter().map(|entry| entry.octets).sum()
    }
}

fn check_header(file: &File, octets: u64, path: &Path, apex: &Name) -> Result<(), JournalError> {
    let broken = |flaw| Err(JournalError::Broken { path: path.to_owned(), flaw });
    let mut header = [0; HEADER];
    if octets < HEADER as u64 {
        return broken("no journal, or cut off within its header");
    }
    let read = file.read_exact_at(&mut header, 0);
    read.map_err(|source| JournalError::Io { path: path.to_owned(), action: "read", source })?;
    let expected = header_of(apex);
    if header == expected {
        return Ok(());
    }
    if header[..8] != MAGIC {
        return broken("no journal");
    }
    if header[8..16] != expected[8..16] {
        return broken("a journal of another version or byte order");
    }
    if *blake3::hash(&header[..SEALED]).as_bytes() != header[SEALED..] {
        return broken("the journal's header was altered (its digest does not fit)");
    }
    match nonesuch_proto::NameRef::split_from(&header[16..272]) {
        // The case of the apex may have changed.
        Ok((found, _)) if found == apex.view() => Ok(()),
        Ok((found, _)) => Err(JournalError::OtherZone {
            path: path.to_owned(),
            found: found.to_name(),
            wanted: apex.clone(),
        }),
        Err(_) => broken("the journal's header names no zone"),
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

/// A journal that was moved into its place.
struct Written {
    file: File,
    /// Its octets.
    end: u64,
    /// Whether the folder was made to last.
    synchronised: io::Result<()>,
}

impl Written {
    fn synchronised(self) -> io::Result<(File, u64)> {
        self.synchronised.map(|()| (self.file, self.end))
    }
}

/// Writes a journal with these entries beside `path`, synchronises it and moves it there.
fn write_file(path: &Path, apex: &Name, entries: &[u8]) -> io::Result<Written> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut options = OpenOptions::new();
    // It holds records of the zone, which not everybody may transfer.
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
