//! Storage for records in the order in which they were added. Names and RDATA of consecutive
//! records are in one arena.
//!
//! Consecutive records of one owner form a group: the name of the owner once, then the records. A
//! part is immutable, with one exception: `set_leading_ttls` fills in TTLs that the reader of a
//! block does not know, because they are in the text before the block.

use super::fault::SourceLocation;
use nonesuch_proto::{NameRef, Rtype};

/// Size of the header before each RDATA, in octets: type 2, TTL 4, line 4, length 2.
const RECORD_HEADER_OCTETS: usize = 12;

/// A [`Part`] under construction: a buffer to which records are added.
#[derive(Debug, Default)]
pub(crate) struct RecordBuffer {
    data: Vec<u8>,
    /// Offset of each group in `data`.
    groups: Vec<u32>,
    counts: Counts,
    soa: Option<FirstSoa>,
}

/// Sizes in a part, for exact reservation of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) records: usize,
    /// Octets of the names of the groups.
    pub(super) names: usize,
    /// Octets of the RDATA, with two octets for the length of each.
    pub(super) rdata: usize,
}

/// The first SOA record: its group, and its line in the part.
#[derive(Clone, Copy, Debug)]
struct FirstSoa {
    group: u32,
    line: u32,
}

impl RecordBuffer {
    /// Adds one record. `write` appends its RDATA. If `write` fails, no record is added.
    pub(crate) fn push<E>(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        line: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (start, new_group) = (self.data.len(), !self.last_owner_is(owner));
        if new_group {
            self.data.extend_from_slice(owner.wire());
        }
        let header = self.data.len();
        self.data.extend_from_slice(&record_header(rtype, ttl, line));
        if let Err(error) = write(&mut self.data) {
            self.data.truncate(start);
            return Err(error);
        }
        let length = self.data.len() - header - RECORD_HEADER_OCTETS;
        self.data[header + RECORD_HEADER_OCTETS - 2..header + RECORD_HEADER_OCTETS]
            .copy_from_slice(&(length as u16).to_be_bytes());
        if new_group {
            self.groups.push(start as u32);
            self.counts.names += owner.len();
        }
        self.counts.records += 1;
        self.counts.rdata += 2 + length;
        if rtype == Rtype::SOA && self.soa.is_none() {
            self.soa = Some(FirstSoa { group: self.groups.len() as u32 - 1, line });
        }
        Ok(())
    }

    fn last_owner_is(&self, owner: NameRef<'_>) -> bool {
        self.groups.last().is_some_and(|start| self.data[*start as usize..].starts_with(owner.wire()))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Size of the stored records in octets.
    pub(crate) const fn len(&self) -> usize {
        self.data.len()
    }

    /// Moves the records into a part without spare capacity. `self` is then empty and keeps its
    /// memory.
    pub(crate) fn take_part(&mut self) -> Part {
        let part = Part {
            data: self.data.as_slice().into(),
            groups: self.groups.as_slice().into(),
            counts: self.counts,
            soa: self.soa,
            start: SourceLocation::default(),
        };
        self.clear();
        part
    }

    /// Removes all records and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.groups.clear();
        self.counts = Counts::default();
        self.soa = None;
    }
}

fn record_header(rtype: Rtype, ttl: u32, line: u32) -> [u8; RECORD_HEADER_OCTETS] {
    let mut header = [0; RECORD_HEADER_OCTETS];
    header[..2].copy_from_slice(&rtype.0.to_be_bytes());
    header[2..6].copy_from_slice(&ttl.to_be_bytes());
    header[6..10].copy_from_slice(&line.to_be_bytes());
    header
}

/// Consecutive records of one file.
#[derive(Debug)]
pub(crate) struct Part {
    data: Box<[u8]>,
    /// Offset of each group in `data`.
    groups: Box<[u32]>,
    counts: Counts,
    soa: Option<FirstSoa>,
    /// The file, and the number of its lines before the first line of the part.
    start: SourceLocation,
}

/// One record of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'p> {
    pub(super) rtype: Rtype,
    pub(super) ttl: u32,
    pub(super) rdata: &'p [u8],
    line: u32,
}

impl Record<'_> {
    /// The type that determines the RRset: the covered type for an RRSIG record, otherwise the type
    /// itself.
    pub(super) const fn covered(&self) -> Rtype {
        match (self.rtype, self.rdata) {
            (Rtype::RRSIG, [high, low, ..]) => Rtype(u16::from_be_bytes([*high, *low])),
            (rtype, _) => rtype,
        }
    }
}

impl Part {
    /// Sets the source location of the part: in the file with index `file`, after `lines` lines.
    pub(crate) const fn set_start(&mut self, file: u16, lines: u32) {
        self.start = SourceLocation { file, line: lines };
    }

    /// Sets the TTL of the first `count` records.
    pub(crate) fn set_leading_ttls(&mut self, count: usize, ttl: u32) {
        let (mut at, mut group) = (0, 0);
        for _ in 0..count {
            if self.groups.get(group).is_some_and(|start| *start as usize == at) {
                at += name_at(&self.data, at).len();
                group += 1;
            }
            self.data[at + 2..at + 6].copy_from_slice(&ttl.to_be_bytes());
            at += RECORD_HEADER_OCTETS
                + usize::from(u16::from_be_bytes([self.data[at + 10], self.data[at + 11]]));
        }
    }

    pub(super) const fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    /// Owner and source location of the first SOA record.
    pub(super) fn soa(&self) -> Option<(NameRef<'_>, SourceLocation)> {
        self.soa.map(|soa| (self.name(soa.group as usize), self.location_of_line(soa.line)))
    }

    /// The owner of a group.
    pub(super) fn name(&self, group: usize) -> NameRef<'_> {
        name_at(&self.data, self.groups[group] as usize)
    }

    /// Reads one octet of each of the first three cache lines of a group. Combines them in the
    /// result, so that the compiler keeps the reads.
    pub(super) fn prefetch(&self, group: usize) -> u8 {
        const CACHE_LINE_OCTETS: usize = 64;
        let start = self.groups[group] as usize;
        let last = self.data.len() - 1;
        let octet = |line: usize| self.data[(start + line * CACHE_LINE_OCTETS).min(last)];
        octet(0) ^ octet(1) ^ octet(2)
    }

    /// Owner and records of a group, in the order in which they were added.
    pub(super) fn group(&self, group: usize) -> (NameRef<'_>, GroupRecords<'_>) {
        let end = self.groups.get(group + 1).map_or(self.data.len(), |end| *end as usize);
        let octets = &self.data[self.groups[group] as usize..end];
        let name = name_at(octets, 0);
        (name, GroupRecords(&octets[name.len()..]))
    }

    /// Source location of a record of this part.
    pub(super) fn location_of(&self, record: &Record<'_>) -> SourceLocation {
        self.location_of_line(record.line)
    }

    const fn location_of_line(&self, line: u32) -> SourceLocation {
        SourceLocation { file: self.start.file, line: self.start.line.saturating_add(line) }
    }
}

fn name_at(data: &[u8], start: usize) -> NameRef<'_> {
    let mut end = start;
    while data[end] != 0 {
        end += 1 + usize::from(data[end]);
    }
    NameRef::from_wire_unchecked(&data[start..=end])
}

/// Iterator over the records of a group.
#[derive(Clone, Debug)]
pub(super) struct GroupRecords<'p>(&'p [u8]);

impl<'p> Iterator for GroupRecords<'p> {
    type Item = Record<'p>;

    fn next(&mut self) -> Option<Record<'p>> {
        let (header, rest) = self.0.split_first_chunk::<RECORD_HEADER_OCTETS>()?;
        let u32_at =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (rdata, rest) = rest.split_at(usize::from(u16::from_be_bytes([header[10], header[11]])));
        self.0 = rest;
        let rtype = Rtype(u16::from_be_bytes([header[0], header[1]]));
        Some(Record { rtype, ttl: u32_at(2), line: u32_at(6), rdata })
    }
}
