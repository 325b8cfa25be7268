//! Reader for the records of a change. It uses bounded memory: a window of each part of the entry
//! (heads of names, heads of RRsets, names, records).
//!
//! With each read of a part, the same number of octets is hashed, from the start of the entry on.
//! So no step takes long, and the digest is complete with the last record. Only the end shows
//! whether the entry is valid, so a caller must not rely on the records before that.

use super::entry::{self, Entry, HEAD, NODE, RRSET, SEALED, SIZES, word};
use super::{Changes, JournalError};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype, rdata};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of octets of a part that are read at once. One record may need the same number of octets
/// again.
const WINDOW: usize = 1 << 16;
/// Maximum octets of a record, including its length.
const RECORD_MOST: u32 = 2 + u16::MAX as u32;

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
    /// Whether it is the first record of its owner. The SOA record, which is the first record of
    /// its side, and the first record after it both count as the first.
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
    is_added: bool,
    is_over: bool,
}

impl Changes {
    /// Starts to read the change at `index`. Returns `None` if there is no such change.
    ///
    /// # Errors
    /// [`JournalError::Altered`]; errors of the system.
    pub fn open(&self, index: usize) -> Option<Result<ChangeReader, JournalError>> {
        self.entries.get(index).map(|entry| ChangeReader::new(self, *entry))
    }
}

/// Reason why reading stops.
enum Stop {
    Altered,
    System(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl ChangeReader {
    fn new(changes: &Changes, entry: Entry) -> Result<Self, JournalError> {
        let begin = || {
            let mut source = Source::open(Arc::clone(&changes.file), entry)?;
            let start = entry.offset + HEAD as u64;
            let side = Side::open(&mut source, start, entry.from, changes.apex.view())?;
            Ok((source, side))
        };
        let (source, side) = begin().map_err(|stop| error_of(stop, &changes.path, entry))?;
        let (path, apex) = (changes.path.clone(), changes.apex.clone());
        Ok(Self { path, apex, entry, source, side, is_added: false, is_over: false })
    }

    /// Moves to the next record; the first call moves to the first record. Returns `false` after
    /// the last record if the digest of the entry is correct.
    ///
    /// # Errors
    /// [`JournalError::Altered`], at the latest after the last record; errors of the system.
    pub fn advance(&mut self) -> Result<bool, JournalError> {
        self.try_advance().map_err(|stop| error_of(stop, &self.path, self.entry))
    }

    fn try_advance(&mut self) -> Result<bool, Stop> {
        loop {
            if self.is_over {
                return Ok(false);
            }
            if self.side.advance(&mut self.source, self.apex.view())? {
                return Ok(true);
            }
            let end = self.side.end;
            if self.is_added {
                self.is_over = true;
                return if end == self.entry.end() {
                    self.source.finish().map(|()| false)
                } else {
                    Err(Stop::Altered)
                };
            }
            self.is_added = true;
            self.side = Side::open(&mut self.source, end, self.entry.to, self.apex.view())?;
        }
    }

    /// Returns the current record.
    #[must_use]
    pub fn record(&self) -> ChangeRecord<'_> {
        let side = &self.side;
        let (rtype, ttl) = (side.rrset.rtype, side.rrset.ttl);
        let owner = NameRef::from_checked(&side.owner);
        let rdata = side.soa.as_deref().unwrap_or_else(|| &side.records.buffer[side.record.clone()]);
        ChangeRecord { owner, rtype, ttl, rdata, is_added: self.is_added, begins_owner: side.begins_owner }
    }

    /// Octets of memory that the reader uses for the entry.
    #[must_use]
    pub fn held(&self) -> usize {
        let side = &self.side;
        let parts = [&side.nodes, &side.rrsets, &side.names, &side.records];
        parts.iter().map(|part| part.buffer.capacity()).sum::<usize>() + self.source.window.capacity()
    }
}

fn error_of(stop: Stop, path: &std::path::Path, entry: Entry) -> JournalError {
    match stop {
        Stop::Altered => JournalError::Altered { path: path.to_owned(), from: entry.from },
        Stop::System(source) => JournalError::Io { path: path.to_owned(), action: "read", source },
    }
}

/// The file, and the range of the entry that is not hashed yet.
#[derive(Debug)]
struct Source {
    file: Arc<File>,
    hasher: blake3::Hasher,
    expected: [u8; 32],
    hashed: Range<u64>,
    window: Vec<u8>,
}

impl Source {
    fn open(file: Arc<File>, entry: Entry) -> Result<Self, Stop> {
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, entry.offset)?;
        let body = entry.octets.saturating_sub(HEAD as u64);
        if entry::read_head(&head) != Some((entry.from, entry.to, body)) {
            return Err(Stop::Altered);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head[..SEALED]);
        let expected = std::array::from_fn(|at| head[SEALED + at]);
        let hashed = entry.offset + HEAD as u64..entry.end();
        Ok(Self { file, hasher, expected, hashed, window: Vec::new() })
    }

    /// Fills `buffer` with the octets at `at`. Hashes the same number of octets from the end of the
    /// hashed range.
    fn read(&mut self, buffer: &mut [u8], at: u64) -> Result<(), Stop> {
        self.file.read_exact_at(buffer, at)?;
        self.hash(buffer.len() as u64)
    }

    fn hash(&mut self, octets: u64) -> Result<(), Stop> {
        let end = (self.hashed.start + octets).min(self.hashed.end);
        while self.hashed.start < end {
            self.window.resize((end - self.hashed.start).min(WINDOW as u64) as usize, 0);
            self.file.read_exact_at(&mut self.window, self.hashed.start)?;
            self.hasher.update(&self.window);
            self.hashed.start += self.window.len() as u64;
        }
        Ok(())
    }

    /// Hashes the rest and compares the digest. If all parts were read, the rest is only a few
    /// numbers.
    fn finish(&mut self) -> Result<(), Stop> {
        self.hash(self.hashed.end - self.hashed.start)?;
        if *self.hasher.finalize().as_bytes() == self.expected { Ok(()) } else { Err(Stop::Altered) }
    }
}

/// A part of a side, with a window of it in memory.
#[derive(Debug)]
struct Part {
    /// Range in the file that has not been read.
    unread: Range<u64>,
    buffer: Vec<u8>,
    /// Octets of the window that have been consumed.
    taken: usize,
}

impl Part {
    const fn new(start: u64, octets: u64) -> Self {
        Self { unread: start..start.saturating_add(octets), buffer: Vec::new(), taken: 0 }
    }

    /// Consumes `octets` octets. Returns their range in the window, which is valid until the next
    /// call.
    fn take(&mut self, octets: usize, source: &mut Source) -> Result<Range<usize>, Stop> {
        if self.buffer.len() - self.taken < octets {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            let start = self.buffer.len();
            let more = ((octets - start).max(WINDOW) as u64).min(self.unread.end - self.unread.start);
            self.buffer.resize(start + more as usize, 0);
            source.read(&mut self.buffer[start..], self.unread.start)?;
            self.unread.start += more;
            if self.buffer.len() < octets {
                return Err(Stop::Altered);
            }
        }
        self.taken += octets;
        Ok(self.taken - octets..self.taken)
    }

    /// Whether the part is completely consumed.
    fn is_over(&self) -> bool {
        self.unread.is_empty() && self.taken == self.buffer.len()
    }
}

/// The rest of the current RRset.
#[derive(Clone, Copy, Debug)]
struct RrsetLeft {
    rtype: Rtype,
    ttl: u32,
    /// Number of remaining records, and of their octets.
    count: u32,
    octets: u32,
}

impl RrsetLeft {
    const NONE: Self = Self { rtype: Rtype(0), ttl: 0, count: 0, octets: 0 };

    fn read(head: &[u8]) -> Self {
        let rtype = Rtype(u16::from_le_bytes([head[0], head[1]]));
        Self { rtype, ttl: word(head, 4), count: word(head, 8), octets: word(head, 12) }
    }
}

/// One side of a change, in the format that [`entry`] describes.
#[derive(Debug)]
struct Side {
    nodes: Part,
    rrsets: Part,
    names: Part,
    records: Part,
    /// Offset of the end of the side in the file.
    end: u64,
    /// RDATA of the SOA record; `None` after the reader has moved beyond this record.
    soa: Option<Vec<u8>>,
    is_begun: bool,
    owner: Vec<u8>,
    begins_owner: bool,
    rrsets_left: u32,
    rrset: RrsetLeft,
    /// Range of the RDATA of the current record in the window.
    record: Range<usize>,
}

impl Side {
    /// Opens the side that begins at `start`. Its SOA record must have this serial.
    fn open(source: &mut Source, start: u64, serial: u32, apex: NameRef<'_>) -> Result<Self, Stop> {
        let mut sizes = [0; SIZES];
        if source.hashed.end.saturating_sub(start) < SIZES as u64 {
            return Err(Stop::Altered);
        }
        source.file.read_exact_at(&mut sizes, start)?;
        let (low, high) = (u64::from(word(&sizes, 12)), u64::from(word(&sizes, 16)));
        let octets = [
            u64::from(word(&sizes, 0)) * NODE as u64,
            u64::from(word(&sizes, 4)) * RRSET as u64,
            word(&sizes, 8).into(),
            high << 32 | low,
        ];
        let mut at = start + SIZES as u64;
        let parts = octets.map(|octets| {
            let part = Part::new(at, octets);
            at = part.unread.end;
            part
        });
        if at > source.hashed.end {
            return Err(Stop::Altered);
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
            is_begun: false,
            owner: Vec::with_capacity(MAX_NAME),
            begins_owner: true,
            rrsets_left: 0,
            rrset,
            record: 0..0,
        };
        // The first name must be the apex, which owns the SOA record.
        side.next_owner(source, apex)?;
        if NameRef::from_checked(&side.owner) == apex { Ok(side) } else { Err(Stop::Altered) }
    }

    /// Moves to the next record; the first call moves to the SOA record. Returns `false` after the
    /// last record.
    fn advance(&mut self, source: &mut Source, apex: NameRef<'_>) -> Result<bool, Stop> {
        if !self.is_begun {
            self.is_begun = true;
            return Ok(true);
        }
        if self.soa.take().is_some() {
            self.rrset = RrsetLeft::NONE;
            self.begins_owner = true;
        } else {
            self.begins_owner = false;
        }
        while self.rrset.count == 0 {
            if self.rrset.octets > 0 {
                return Err(Stop::Altered);
            }
            if !self.next_rrset(source, apex)? {
                return Ok(false);
            }
        }
        self.next_record(source)?;
        Ok(true)
    }

    /// Moves to the next RRset of the same owner or of the next one. Skips the SOA record.
    fn next_rrset(&mut self, source: &mut Source, apex: NameRef<'_>) -> Result<bool, Stop> {
        if self.rrsets_left == 0 {
            if self.nodes.is_over() {
                let parts = [&self.rrsets, &self.names, &self.records];
                return if parts.iter().all(|part| part.is_over()) { Ok(false) } else { Err(Stop::Altered) };
            }
            self.next_owner(source, apex)?;
            self.begins_owner = true;
        }
        self.rrsets_left -= 1;
        let head = self.rrsets.take(RRSET, source)?;
        self.rrset = RrsetLeft::read(&self.rrsets.buffer[head]);
        if self.rrset.count == 0 {
            return Err(Stop::Altered);
        }
        if self.rrset.rtype == Rtype::SOA {
            if self.rrset.octets > RECORD_MOST {
                return Err(Stop::Altered);
            }
            self.records.take(self.rrset.octets as usize, source)?;
            self.rrset = RrsetLeft::NONE;
        }
        Ok(true)
    }

    fn next_owner(&mut self, source: &mut Source, apex: NameRef<'_>) -> Result<(), Stop> {
        let head = self.nodes.take(NODE, source)?;
        let head = word(&self.nodes.buffer[head], 0);
        let name = self.names.take((head & 0xff) as usize, source)?;
        self.owner.clear();
        self.owner.extend_from_slice(&self.names.buffer[name]);
        self.rrsets_left = head >> 8;
        let is_right = NameRef::from_wire(&self.owner).is_ok_and(|name| name.is_at_or_below(apex));
        if is_right && self.rrsets_left > 0 { Ok(()) } else { Err(Stop::Altered) }
    }

    fn next_record(&mut self, source: &mut Source) -> Result<(), Stop> {
        let length = self.records.take(2, source)?;
        let length = &self.records.buffer[length];
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        self.record = self.records.take(length, source)?;
        let rrset = &mut self.rrset;
        rrset.count -= 1;
        rrset.octets = rrset.octets.checked_sub(2 + length as u32).ok_or(Stop::Altered)?;
        let is_right = rdata::is_well_formed(rrset.rtype, &self.records.buffer[self.record.clone()]);
        if is_right { Ok(()) } else { Err(Stop::Altered) }
    }
}

/// Finds the SOA record with `serial` among the RRsets of the first name.
fn find_soa(
    [nodes, rrsets, records]: [&Part; 3],
    serial: u32,
    source: &mut Source,
) -> Result<(RrsetLeft, Vec<u8>), Stop> {
    let part = |part: &Part| Part::new(part.unread.start, part.unread.end - part.unread.start);
    let (mut heads, mut at) = (part(rrsets), records.unread.start);
    let mut head = [0; NODE];
    if nodes.unread.end - nodes.unread.start < NODE as u64 {
        return Err(Stop::Altered);
    }
    source.file.read_exact_at(&mut head, nodes.unread.start)?;
    for _ in 0..word(&head, 0) >> 8 {
        let head = heads.take(RRSET, source)?;
        let rrset = RrsetLeft::read(&heads.buffer[head]);
        if rrset.rtype == Rtype::SOA {
            let mut octets = vec![0; rrset.octets.min(RECORD_MOST) as usize];
            let mut record = Part::new(at, records.unread.end.saturating_sub(at));
            let range = record.take(octets.len(), source)?;
            octets.copy_from_slice(&record.buffer[range]);
            let soa = octets.split_off(octets.len().min(2));
            let found = soa.len().checked_sub(20).and_then(|at| soa.get(at..at + 4)).unwrap_or_default();
            let is_right = octets == (soa.len() as u16).to_be_bytes()
                && rdata::is_well_formed(Rtype::SOA, &soa)
                && found == serial.to_be_bytes();
            return if is_right && rrset.count == 1 { Ok((rrset, soa)) } else { Err(Stop::Altered) };
        }
        at += u64::from(rrset.octets);
    }
    Err(Stop::Altered)
}
