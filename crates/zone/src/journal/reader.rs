//! Reader for the records of a change. It uses bounded memory: a window of each part of the entry
//! (heads of names, heads of RRsets, names, records).
//!
//! Each read of a part also hashes the same number of octets of the entry, from its start on. So
//! the work is distributed over all reads, and the digest is complete after the last record. Only
//! then does the reader know whether the entry is valid. A caller must not use the records before
//! that.

use super::entry::{
    self, DIGEST_OFFSET, Entry, HEAD_OCTETS, NODE_ENTRY_OCTETS, RRSET_ENTRY_OCTETS, SIZES_OCTETS, u32_le,
};
use super::{Changes, JournalError};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype, rdata};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of octets of a part that are read at once. The window of a part can be twice as long if a
/// record does not fit.
const WINDOW_OCTETS: usize = 1 << 16;
/// Maximum octets of a record, including its length.
const MAX_RECORD_OCTETS: u32 = 2 + u16::MAX as u32;

/// A record that a change removes or adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRecord<'r> {
    /// Owner of the record.
    pub owner: NameRef<'r>,
    /// Type of the record.
    pub rtype: Rtype,
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA with uncompressed names.
    pub rdata: &'r [u8],
    /// Whether the record is added; otherwise it is removed.
    pub is_added: bool,
    /// Whether it is the first record of its owner. The SOA record is the first record of its side;
    /// the record after it counts as a first record too.
    pub begins_owner: bool,
}

/// Reads the records of a change in the order of an incremental transfer (RFC 1995 §4): the removed
/// SOA record, the other removed records, the added SOA record, the other added records.
#[derive(Debug)]
pub struct ChangeReader {
    path: PathBuf,
    apex: Name,
    entry: Entry,
    source: Source,
    side: Side,
    /// Whether the side is that with the added records.
    is_added: bool,
    is_finished: bool,
}

impl Changes {
    /// Starts to read the change at `index`. Returns `None` if there is no such change.
    ///
    /// # Errors
    /// [`JournalError::Altered`]; [`JournalError::Io`].
    pub fn open(&self, index: usize) -> Option<Result<ChangeReader, JournalError>> {
        self.entries.get(index).map(|entry| ChangeReader::new(self, *entry))
    }
}

/// The reason why an entry cannot be read.
enum EntryError {
    /// The entry is not in the format of a journal, or its digest is wrong.
    Altered,
    /// The system reports an error.
    System(io::Error),
}

impl From<io::Error> for EntryError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl ChangeReader {
    fn new(changes: &Changes, entry: Entry) -> Result<Self, JournalError> {
        let begin = || {
            let mut source = Source::open(Arc::clone(&changes.file), entry)?;
            let start = entry.offset + HEAD_OCTETS as u64;
            let side = Side::open(&mut source, start, entry.from, changes.apex.view())?;
            Ok((source, side))
        };
        let (source, side) = begin().map_err(|error| journal_error(error, &changes.path, entry))?;
        let (path, apex) = (changes.path.clone(), changes.apex.clone());
        Ok(Self { path, apex, entry, source, side, is_added: false, is_finished: false })
    }

    /// Moves to the next record; the first call moves to the first record. Returns `false` after
    /// the last record if the digest of the entry is correct.
    ///
    /// # Errors
    /// [`JournalError::Altered`], at the latest after the last record; [`JournalError::Io`].
    pub fn advance(&mut self) -> Result<bool, JournalError> {
        self.try_advance().map_err(|error| journal_error(error, &self.path, self.entry))
    }

    fn try_advance(&mut self) -> Result<bool, EntryError> {
        loop {
            if self.is_finished {
                return Ok(false);
            }
            if self.side.advance(&mut self.source, self.apex.view())? {
                return Ok(true);
            }
            let end = self.side.end;
            if self.is_added {
                self.is_finished = true;
                return if end == self.entry.end() {
                    self.source.finish().map(|()| false)
                } else {
                    Err(EntryError::Altered)
                };
            }
            self.is_added = true;
            self.side = Side::open(&mut self.source, end, self.entry.to, self.apex.view())?;
        }
    }

    /// Returns the current record. The caller has called [`advance`](Self::advance), and it has
    /// returned `true`.
    #[must_use]
    pub fn record(&self) -> ChangeRecord<'_> {
        let side = &self.side;
        let (rtype, ttl) = (side.rrset.rtype, side.rrset.ttl);
        let owner = NameRef::from_wire_unchecked(&side.owner);
        let rdata = side.soa.as_deref().unwrap_or_else(|| &side.records.buffer[side.record.clone()]);
        ChangeRecord { owner, rtype, ttl, rdata, is_added: self.is_added, begins_owner: side.begins_owner }
    }

    /// Size in octets of the buffers that the reader uses for the entry.
    #[must_use]
    pub fn buffer_octets(&self) -> usize {
        let side = &self.side;
        let parts = [&side.nodes, &side.rrsets, &side.names, &side.records];
        parts.iter().map(|part| part.buffer.capacity()).sum::<usize>() + self.source.window.capacity()
    }
}

/// Adds the path and the serial to an error.
fn journal_error(error: EntryError, path: &std::path::Path, entry: Entry) -> JournalError {
    match error {
        EntryError::Altered => JournalError::Altered { path: path.to_owned(), from: entry.from },
        EntryError::System(source) => JournalError::Io { path: path.to_owned(), action: "read", source },
    }
}

/// The file, and the digest of the part of the entry that is hashed so far.
#[derive(Debug)]
struct Source {
    file: Arc<File>,
    hasher: blake3::Hasher,
    /// The digest in the head of the entry.
    expected: [u8; 32],
    /// Range of the entry in the file that is not hashed yet.
    unhashed: Range<u64>,
    window: Vec<u8>,
}

impl Source {
    fn open(file: Arc<File>, entry: Entry) -> Result<Self, EntryError> {
        let mut head = [0; HEAD_OCTETS];
        file.read_exact_at(&mut head, entry.offset)?;
        let body = entry.octets.saturating_sub(HEAD_OCTETS as u64);
        if entry::read_head(&head) != Some((entry.from, entry.to, body)) {
            return Err(EntryError::Altered);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head[..DIGEST_OFFSET]);
        let expected = std::array::from_fn(|at| head[DIGEST_OFFSET + at]);
        let unhashed = entry.offset + HEAD_OCTETS as u64..entry.end();
        Ok(Self { file, hasher, expected, unhashed, window: Vec::new() })
    }

    /// Fills `buffer` with the octets of the file at `at`. Hashes the same number of octets from
    /// the start of the unhashed range.
    fn read(&mut self, buffer: &mut [u8], at: u64) -> Result<(), EntryError> {
        self.file.read_exact_at(buffer, at)?;
        self.hash(buffer.len() as u64)
    }

    fn hash(&mut self, octets: u64) -> Result<(), EntryError> {
        let end = (self.unhashed.start + octets).min(self.unhashed.end);
        while self.unhashed.start < end {
            self.window.resize((end - self.unhashed.start).min(WINDOW_OCTETS as u64) as usize, 0);
            self.file.read_exact_at(&mut self.window, self.unhashed.start)?;
            self.hasher.update(&self.window);
            self.unhashed.start += self.window.len() as u64;
        }
        Ok(())
    }

    /// Hashes the rest of the entry and compares the digest. After all parts were read, the rest
    /// has only the octets of the numbers at the start of each side.
    fn finish(&mut self) -> Result<(), EntryError> {
        self.hash(self.unhashed.end - self.unhashed.start)?;
        if *self.hasher.finalize().as_bytes() == self.expected { Ok(()) } else { Err(EntryError::Altered) }
    }
}

/// One of the four parts of a side: names, RRsets, octets of the names, or records. A window of it
/// is in memory.
#[derive(Debug)]
struct SidePart {
    /// Range in the file that has not been read.
    unread: Range<u64>,
    /// The window: octets that were read.
    buffer: Vec<u8>,
    /// Octets of the window that have been consumed.
    consumed: usize,
}

impl SidePart {
    const fn new(start: u64, octets: u64) -> Self {
        Self { unread: start..start.saturating_add(octets), buffer: Vec::new(), consumed: 0 }
    }

    /// Consumes `octets` octets. Returns their range in the window, which is valid until the next
    /// call.
    fn take(&mut self, octets: usize, source: &mut Source) -> Result<Range<usize>, EntryError> {
        if self.buffer.len() - self.consumed < octets {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
            let start = self.buffer.len();
            let read_octets =
                ((octets - start).max(WINDOW_OCTETS) as u64).min(self.unread.end - self.unread.start);
            self.buffer.resize(start + read_octets as usize, 0);
            source.read(&mut self.buffer[start..], self.unread.start)?;
            self.unread.start += read_octets;
            if self.buffer.len() < octets {
                return Err(EntryError::Altered);
            }
        }
        self.consumed += octets;
        Ok(self.consumed - octets..self.consumed)
    }

    /// Whether the part is completely consumed.
    fn is_consumed(&self) -> bool {
        self.unread.is_empty() && self.consumed == self.buffer.len()
    }
}

/// The records of the current RRset that follow the current record.
#[derive(Clone, Copy, Debug)]
struct RemainingRrset {
    rtype: Rtype,
    ttl: u32,
    /// Number of remaining records.
    count: u32,
    /// Octets of the remaining records, with the length before each record.
    octets: u32,
}

impl RemainingRrset {
    const NONE: Self = Self { rtype: Rtype(0), ttl: 0, count: 0, octets: 0 };

    fn read(head: &[u8]) -> Self {
        let rtype = Rtype(u16::from_le_bytes([head[0], head[1]]));
        Self { rtype, ttl: u32_le(head, 4), count: u32_le(head, 8), octets: u32_le(head, 12) }
    }
}

/// One side of a change, in the format that [`entry`] describes.
#[derive(Debug)]
struct Side {
    nodes: SidePart,
    rrsets: SidePart,
    names: SidePart,
    records: SidePart,
    /// Offset of the end of the side in the file.
    end: u64,
    /// RDATA of the SOA record; `None` after the reader has moved beyond this record.
    soa: Option<Vec<u8>>,
    /// Whether the reader is at the SOA record or beyond it.
    has_begun: bool,
    owner: Vec<u8>,
    begins_owner: bool,
    /// Number of RRsets of the owner after the current one.
    remaining_rrsets: u32,
    rrset: RemainingRrset,
    /// Range of the RDATA of the current record in the window.
    record: Range<usize>,
}

impl Side {
    /// Opens the side that begins at `start`. Its SOA record must have this serial.
    fn open(source: &mut Source, start: u64, serial: u32, apex: NameRef<'_>) -> Result<Self, EntryError> {
        let mut sizes = [0; SIZES_OCTETS];
        if source.unhashed.end.saturating_sub(start) < SIZES_OCTETS as u64 {
            return Err(EntryError::Altered);
        }
        source.file.read_exact_at(&mut sizes, start)?;
        let (low, high) = (u64::from(u32_le(&sizes, 12)), u64::from(u32_le(&sizes, 16)));
        let octets = [
            u64::from(u32_le(&sizes, 0)) * NODE_ENTRY_OCTETS as u64,
            u64::from(u32_le(&sizes, 4)) * RRSET_ENTRY_OCTETS as u64,
            u32_le(&sizes, 8).into(),
            high << 32 | low,
        ];
        let mut at = start + SIZES_OCTETS as u64;
        let parts = octets.map(|octets| {
            let part = SidePart::new(at, octets);
            at = part.unread.end;
            part
        });
        if at > source.unhashed.end {
            return Err(EntryError::Altered);
        }
        let [nodes, rrsets, names, records] = parts;
        let (rrset, soa) = find_soa([&nodes, &rrsets, &records], serial, source)?;
        let mut side = Self {
            nodes,
            rrsets,
            names,
            records,
            end: at,
            soa: Some(soa),
            has_begun: false,
            owner: Vec::with_capacity(MAX_NAME),
            begins_owner: true,
            remaining_rrsets: 0,
            rrset,
            record: 0..0,
        };
        // The first name must be the apex, which owns the SOA record.
        side.next_owner(source, apex)?;
        if NameRef::from_wire_unchecked(&side.owner) == apex { Ok(side) } else { Err(EntryError::Altered) }
    }

    /// Moves to the next record; the first call moves to the SOA record. Returns `false` after the
    /// last record.
    fn advance(&mut self, source: &mut Source, apex: NameRef<'_>) -> Result<bool, EntryError> {
        if !self.has_begun {
            self.has_begun = true;
            return Ok(true);
        }
        if self.soa.take().is_some() {
            self.rrset = RemainingRrset::NONE;
            self.begins_owner = true;
        } else {
            self.begins_owner = false;
        }
        while self.rrset.count == 0 {
            if self.rrset.octets > 0 {
                return Err(EntryError::Altered);
            }
            if !self.next_rrset(source, apex)? {
                return Ok(false);
            }
        }
        self.next_record(source)?;
        Ok(true)
    }

    /// Moves to the next RRset of the same owner or of the next one. Skips the SOA record. Returns
    /// `false` after the last RRset.
    fn next_rrset(&mut self, source: &mut Source, apex: NameRef<'_>) -> Result<bool, EntryError> {
        if self.remaining_rrsets == 0 {
            if self.nodes.is_consumed() {
                let parts = [&self.rrsets, &self.names, &self.records];
                return if parts.iter().all(|part| part.is_consumed()) {
                    Ok(false)
                } else {
                    Err(EntryError::Altered)
                };
            }
            self.next_owner(source, apex)?;
            self.begins_owner = true;
        }
        self.remaining_rrsets -= 1;
        let head = self.rrsets.take(RRSET_ENTRY_OCTETS, source)?;
        self.rrset = RemainingRrset::read(&self.rrsets.buffer[head]);
        if self.rrset.count == 0 {
            return Err(EntryError::Altered);
        }
        if self.rrset.rtype == Rtype::SOA {
            if self.rrset.octets > MAX_RECORD_OCTETS {
                return Err(EntryError::Altered);
            }
            self.records.take(self.rrset.octets as usize, source)?;
            self.rrset = RemainingRrset::NONE;
        }
        Ok(true)
    }

    /// Moves to the next name, which must be in the zone and have RRsets.
    fn next_owner(&mut self, source: &mut Source, apex: NameRef<'_>) -> Result<(), EntryError> {
        let head = self.nodes.take(NODE_ENTRY_OCTETS, source)?;
        let head = u32_le(&self.nodes.buffer[head], 0);
        let name = self.names.take((head & 0xff) as usize, source)?;
        self.owner.clear();
        self.owner.extend_from_slice(&self.names.buffer[name]);
        self.remaining_rrsets = head >> 8;
        let is_valid = NameRef::from_wire(&self.owner).is_ok_and(|name| name.is_at_or_below(apex));
        if is_valid && self.remaining_rrsets > 0 { Ok(()) } else { Err(EntryError::Altered) }
    }

    /// Moves to the next record of the current RRset.
    fn next_record(&mut self, source: &mut Source) -> Result<(), EntryError> {
        let length = self.records.take(2, source)?;
        let length = &self.records.buffer[length];
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        self.record = self.records.take(length, source)?;
        let rrset = &mut self.rrset;
        rrset.count -= 1;
        rrset.octets = rrset.octets.checked_sub(2 + length as u32).ok_or(EntryError::Altered)?;
        let is_valid = rdata::is_well_formed(rrset.rtype, &self.records.buffer[self.record.clone()]);
        if is_valid { Ok(()) } else { Err(EntryError::Altered) }
    }
}

/// Finds the SOA RRset of the first name, and returns its head and its RDATA. Does not consume
/// octets of the parts.
///
/// # Errors
/// [`EntryError::Altered`] if there is no SOA record or it does not have the serial `serial`.
fn find_soa(
    [nodes, rrsets, records]: [&SidePart; 3],
    serial: u32,
    source: &mut Source,
) -> Result<(RemainingRrset, Vec<u8>), EntryError> {
    let unread_copy = |part: &SidePart| SidePart::new(part.unread.start, part.unread.end - part.unread.start);
    let (mut heads, mut at) = (unread_copy(rrsets), records.unread.start);
    let mut head = [0; NODE_ENTRY_OCTETS];
    if nodes.unread.end - nodes.unread.start < NODE_ENTRY_OCTETS as u64 {
        return Err(EntryError::Altered);
    }
    source.file.read_exact_at(&mut head, nodes.unread.start)?;
    for _ in 0..u32_le(&head, 0) >> 8 {
        let head = heads.take(RRSET_ENTRY_OCTETS, source)?;
        let rrset = RemainingRrset::read(&heads.buffer[head]);
        if rrset.rtype == Rtype::SOA {
            let mut octets = vec![0; rrset.octets.min(MAX_RECORD_OCTETS) as usize];
            let mut record = SidePart::new(at, records.unread.end.saturating_sub(at));
            let range = record.take(octets.len(), source)?;
            octets.copy_from_slice(&record.buffer[range]);
            let soa = octets.split_off(octets.len().min(2));
            let found = soa.len().checked_sub(20).and_then(|at| soa.get(at..at + 4)).unwrap_or_default();
            let is_valid = octets == (soa.len() as u16).to_be_bytes()
                && rdata::is_well_formed(Rtype::SOA, &soa)
                && found == serial.to_be_bytes();
            return if is_valid && rrset.count == 1 { Ok((rrset, soa)) } else { Err(EntryError::Altered) };
        }
        at += u64::from(rrset.octets);
    }
    Err(EntryError::Altered)
}
