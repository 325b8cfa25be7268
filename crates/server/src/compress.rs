//! Writes records into a message with name compression (RFC 1035 §4.1.4).
//!
//! Compression compares names octet by octet, including letter case, so that a transferred zone
//! retains its letter case.

use nonesuch_proto::{NameRef, Rtype, rdata};

/// Number of slots in the hash table for names; a power of two.
const TABLE_SIZE: usize = 4096;
/// Maximum number of names in the table, so that it remains sparse.
const MAX_NAMES: usize = TABLE_SIZE / 2;
/// Number of offsets that a compression pointer can express; its offset has 14 bits.
const POINTER_RANGE: usize = 0x4000;
/// The upper two bits of a compression pointer.
const POINTER_FLAGS: u16 = 0xc000;
const CLASS_IN: [u8; 2] = [0, 1];

/// Writes records with name compression. It knows the positions of the names in a message.
#[derive(Debug)]
pub struct Compressor {
    table: Vec<SuffixPosition>,
    /// The slots of the table that are in use.
    used_slots: Vec<u16>,
    /// Offset of the last owner name in the message; 0 for none.
    owner_offset: usize,
}

/// A slot of the table: the position of a name in the message.
#[derive(Clone, Copy, Debug, Default)]
struct SuffixPosition {
    hash: u32,
    /// Offset of the name in the message; 0 marks a free slot, because offset 0 of a message is the
    /// header and never a name.
    offset: u16,
}

impl Default for Compressor {
    fn default() -> Self {
        Self::new()
    }
}

impl Compressor {
    /// Returns a compressor for an empty message.
    #[must_use]
    pub fn new() -> Self {
        Self { table: vec![SuffixPosition::default(); TABLE_SIZE], used_slots: Vec::new(), owner_offset: 0 }
    }

    /// Removes all names, for the next message.
    pub fn clear(&mut self) {
        for slot in self.used_slots.drain(..) {
            self.table[usize::from(slot)] = SuffixPosition::default();
        }
        self.owner_offset = 0;
    }

    /// Begins a sequence of records whose owner is the name at `offset` of the message.
    pub const fn begin_owner_at(&mut self, offset: usize) {
        self.owner_offset = offset;
    }

    /// Ends a sequence of records with the same owner.
    pub const fn end_owner(&mut self) {
        self.owner_offset = 0;
    }

    /// Appends a record of class IN. The records of one owner must be consecutive, and the caller
    /// calls [`Compressor::end_owner`] between owners.
    pub fn push_record(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        rdata: &[u8],
        message: &mut Vec<u8>,
    ) {
        if (1..POINTER_RANGE).contains(&self.owner_offset) && !owner.is_root() {
            message.extend_from_slice(&(POINTER_FLAGS | self.owner_offset as u16).to_be_bytes());
        } else {
            self.owner_offset = message.len();
            self.push_name(owner, message);
        }
        let [a, b] = rtype.0.to_be_bytes();
        let [c, d, e, f] = ttl.to_be_bytes();
        let [g, h] = (rdata.len() as u16).to_be_bytes();
        message.extend_from_slice(&[a, b, CLASS_IN[0], CLASS_IN[1], c, d, e, f, g, h]);
        let start = message.len();
        self.push_rdata(rtype, rdata, message);
        let length = (message.len() - start) as u16;
        message[start - 2..start].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends RDATA. Compresses the names that may be compressed in this type (RFC 3597 §4).
    fn push_rdata(&mut self, rtype: Rtype, octets: &[u8], message: &mut Vec<u8>) {
        if !rdata::has_compressed_names(rtype) {
            return message.extend_from_slice(octets);
        }
        let mut at = 0;
        for name in rdata::names(rtype, octets).filter(|name| name.compress) {
            message.extend_from_slice(&octets[at..name.range.start]);
            at = name.range.end;
            self.push_name(NameRef::from_wire_unchecked(&octets[name.range]), message);
        }
        message.extend_from_slice(&octets[at..]);
    }

    /// Appends a name: its first labels, then a pointer to the longest suffix that the message
    /// already contains.
    pub fn push_name(&mut self, name: NameRef<'_>, message: &mut Vec<u8>) {
        let (suffixes, count) = suffixes_of(name);
        let wire = name.wire();
        // The number of labels to write in front of the pointer, and the offset for the pointer.
        let (mut written_labels, mut pointer) = (count, None);
        for (index, suffix) in suffixes[..count].iter().enumerate() {
            if let Some(found) = self.find(suffix.hash, &wire[usize::from(suffix.start)..], message) {
                (written_labels, pointer) = (index, Some(found));
                break;
            }
        }
        let start = message.len();
        for suffix in &suffixes[..written_labels] {
            self.insert(suffix.hash, start + usize::from(suffix.start));
        }
        match pointer {
            Some(pointer) => {
                message.extend_from_slice(&wire[..usize::from(suffixes[written_labels].start)]);
                message.extend_from_slice(&(POINTER_FLAGS | pointer).to_be_bytes());
            }
            None => message.extend_from_slice(wire),
        }
    }

    /// Returns the offset of the name `suffix` in the message, if the table contains it.
    fn find(&self, hash: u32, suffix: &[u8], message: &[u8]) -> Option<u16> {
        let mut at = hash as usize % TABLE_SIZE;
        loop {
            let slot = self.table[at];
            if slot.offset == 0 {
                return None;
            }
            if slot.hash == hash && is_name_at(message, usize::from(slot.offset), suffix) {
                return Some(slot.offset);
            }
            at = (at + 1) % TABLE_SIZE;
        }
    }

    /// Adds the name at `offset` to the table, if a pointer can express the offset and the table is
    /// not full.
    fn insert(&mut self, hash: u32, offset: usize) {
        if offset >= POINTER_RANGE || self.used_slots.len() >= MAX_NAMES {
            return;
        }
        let mut at = hash as usize % TABLE_SIZE;
        while self.table[at].offset != 0 {
            at = (at + 1) % TABLE_SIZE;
        }
        self.table[at] = SuffixPosition { hash, offset: offset as u16 };
        self.used_slots.push(at as u16);
    }
}

/// A suffix of a name that begins at a label.
#[derive(Clone, Copy, Default)]
struct Suffix {
    hash: u32,
    /// Offset of the suffix in the name, in octets.
    start: u8,
}

/// Returns all suffixes of a name except the root, the longest first, and their number.
fn suffixes_of(name: NameRef<'_>) -> ([Suffix; 128], usize) {
    let mut suffixes = [Suffix::default(); 128];
    let (mut count, mut start) = (0, 0);
    for label in name.labels() {
        suffixes[count].start = start;
        start += 1 + label.len() as u8;
        count += 1;
    }
    // From right to left, so that each hash extends the previous one. The hash is FNV-1a; at the
    // end, its high half is folded into its low half.
    let (mut hash, mut end) = (0xcbf2_9ce4_8422_2325_u64, usize::from(start));
    for suffix in suffixes[..count].iter_mut().rev() {
        for octet in &name.wire()[usize::from(suffix.start)..end] {
            hash = (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        end = usize::from(suffix.start);
        suffix.hash = (hash ^ hash >> 32) as u32;
    }
    (suffixes, count)
}

/// Returns whether the name at offset `at` of a message has the octets `suffix`. The message must
/// come from this compressor.
fn is_name_at(message: &[u8], mut at: usize, mut suffix: &[u8]) -> bool {
    loop {
        let Some(&length) = message.get(at) else { return false };
        if length >= 0xc0 {
            let Some(&low) = message.get(at + 1) else { return false };
            at = usize::from(length & 0x3f) << 8 | usize::from(low);
            continue;
        }
        let size = 1 + usize::from(length);
        let (Some(here), Some((wanted, rest))) = (message.get(at..at + size), suffix.split_at_checked(size))
        else {
            return false;
        };
        if here != wanted {
            return false;
        }
        if length == 0 {
            return rest.is_empty();
        }
        (at, suffix) = (at + size, rest);
    }
}
