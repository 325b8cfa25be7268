//! The entries of a journal.
//!
//! | octets | content |
//! | --- | --- |
//! | 4 | mark `NSCE` |
//! | 4, 4 | serial before the change, serial after the change |
//! | 4 | reserved, zeros |
//! | 8 | number of octets of the two sides |
//! | 32 | BLAKE3 digest of all fields above and of the two sides |
//! | … | side with the removed records, side with the added records |
//!
//! A side has this format:
//!
//! - Number of names, number of RRsets, total length of the names (4 octets each), total length of
//!   the records (8 octets).
//! - For each name, 4 octets: its length in the lowest octet, its number of RRsets in the upper
//!   three.
//! - For each RRset: type and covered type (2 octets each), TTL, number of records, total length of
//!   the records (4 octets each).
//! - The names.
//! - The records, each preceded by its length in two octets (big-endian).
//!
//! The names and RRsets have the same format as in the chunks of [`compiled`](crate::compiled)
//! zones.

use crate::change::ChangeSet;
use crate::contents::Contents;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

const MARK: [u8; 4] = *b"NSCE";
/// Offset of the digest in the head of an entry; the digest covers the head before it and the
/// sides.
pub(super) const DIGEST_OFFSET: usize = 24;
/// Octets of the head of an entry.
pub(super) const HEAD_OCTETS: usize = DIGEST_OFFSET + 32;
/// Octets of the numbers at the start of a side.
pub(super) const SIZES_OCTETS: usize = 20;
/// Octets of the numbers of a name.
pub(super) const NODE_ENTRY_OCTETS: usize = 4;
/// Octets of the numbers of an RRset.
pub(super) const RRSET_ENTRY_OCTETS: usize = 16;
/// Number of octets that are read at once when a journal is opened.
const WINDOW_OCTETS: usize = 1 << 20;

/// Location of an entry in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Serial before the change.
    pub(super) from: u32,
    /// Serial after the change.
    pub(super) to: u32,
    /// Offset of the entry in the file.
    pub(super) offset: u64,
    /// Size of the entry in octets, including the head.
    pub(super) octets: u64,
}

impl Entry {
    /// Offset of the end of the entry in the file.
    pub(super) const fn end(&self) -> u64 {
        self.offset + self.octets
    }
}

/// Encodes a change from serial `from` to serial `to` as an entry.
pub(super) fn encode(change: &ChangeSet, from: u32, to: u32) -> Vec<u8> {
    let mut out = vec![0; HEAD_OCTETS];
    push_side(change.removed(), &mut out);
    push_side(change.added(), &mut out);
    out[..4].copy_from_slice(&MARK);
    out[4..8].copy_from_slice(&from.to_le_bytes());
    out[8..12].copy_from_slice(&to.to_le_bytes());
    finish_entry(&mut out);
    out
}

/// Writes the length and the digest of an entry into its head.
pub(super) fn finish_entry(out: &mut [u8]) {
    let body = (out.len() - HEAD_OCTETS) as u64;
    out[16..DIGEST_OFFSET].copy_from_slice(&body.to_le_bytes());
    let digest = blake3::Hasher::new().update(&out[..DIGEST_OFFSET]).update(&out[HEAD_OCTETS..]).finalize();
    out[DIGEST_OFFSET..HEAD_OCTETS].copy_from_slice(digest.as_bytes());
}

/// Appends a side of a change.
fn push_side(side: &Contents, out: &mut Vec<u8>) {
    out.extend_from_slice(&(side.nodes.len() as u32).to_le_bytes());
    out.extend_from_slice(&(side.rrsets.len() as u32).to_le_bytes());
    out.extend_from_slice(&(side.names.len() as u32).to_le_bytes());
    out.extend_from_slice(&(side.rdata.len() as u64).to_le_bytes());
    for node in side.nodes() {
        let lengths = node.name().len() as u32 | (node.entries().len() as u32) << 8;
        out.extend_from_slice(&lengths.to_le_bytes());
    }
    let ends = side.rrsets.iter().skip(1).map(|rrset| rrset.start).chain([side.rdata.len() as u64]);
    for (rrset, end) in side.rrsets.iter().zip(ends) {
        out.extend_from_slice(&rrset.rtype.0.to_le_bytes());
        out.extend_from_slice(&rrset.covered.0.to_le_bytes());
        for number in [rrset.ttl, rrset.count, (end - rrset.start) as u32] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    out.extend_from_slice(&side.names);
    out.extend_from_slice(&side.rdata);
}

/// Returns the consecutive valid entries from `start` on, and the offset of their end. `octets` is
/// the size of the file. An entry is invalid if its digest is wrong or it does not continue from
/// the serial of the previous entry.
pub(super) fn scan(file: &File, start: u64, octets: u64) -> io::Result<(Vec<Entry>, u64)> {
    let (mut entries, mut at) = (Vec::<Entry>::new(), start);
    let mut window = Vec::new();
    while let Some(entry) = scan_entry(file, at, octets, &mut window)? {
        if entries.last().is_some_and(|last| last.to != entry.from) {
            break;
        }
        at = entry.end();
        entries.push(entry);
    }
    Ok((entries, at))
}

/// Reads the entry at `at`; `None` if it is invalid.
fn scan_entry(file: &File, at: u64, octets: u64, window: &mut Vec<u8>) -> io::Result<Option<Entry>> {
    if octets - at < HEAD_OCTETS as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD_OCTETS];
    file.read_exact_at(&mut head, at)?;
    let Some((from, to, body)) = read_head(&head).filter(|head| head.2 <= octets - at - HEAD_OCTETS as u64)
    else {
        return Ok(None);
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&head[..DIGEST_OFFSET]);
    let (mut next, end) = (at + HEAD_OCTETS as u64, at + HEAD_OCTETS as u64 + body);
    while next < end {
        window.resize(WINDOW_OCTETS.min((end - next) as usize), 0);
        file.read_exact_at(window, next)?;
        hasher.update(window);
        next += window.len() as u64;
    }
    let is_valid = *hasher.finalize().as_bytes() == head[DIGEST_OFFSET..];
    Ok(is_valid.then_some(Entry { from, to, offset: at, octets: HEAD_OCTETS as u64 + body }))
}

/// Returns the serials before and after the change, and the number of octets after the head; `None`
/// without the mark of an entry.
pub(super) fn read_head(head: &[u8; HEAD_OCTETS]) -> Option<(u32, u32, u64)> {
    let body: [u8; 8] = head[16..DIGEST_OFFSET].try_into().ok()?;
    (head[..4] == MARK).then(|| (u32_le(head, 4), u32_le(head, 8), u64::from_le_bytes(body)))
}

/// Returns the little-endian number of four octets at `at`; 0 beyond the end.
pub(super) fn u32_le(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |number| u32::from_le_bytes(*number))
}
