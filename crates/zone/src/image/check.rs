//! Checks of the invariants of an image that is read from a file. The compiler of images maintains
//! these invariants itself.
//!
//! All offsets and counts are followed once, from start to end. The correctness of the data is not
//! checked, because this requires a new compilation. Names out of order, or records that are
//! malformed or of another type, cause wrong answers but no other harm.

use super::file::ImageFileError::{self, Malformed};
use super::node::{BLOCK_HEAD, HEAD, Head, NodeKind, UNIT, bounds, split_block};
use super::signature::{SIGNATURE_HEAD, check_forms};
use super::template::{is_glue, places};
use super::{Image, index};
use crate::size::MAX_MESSAGE;
use nonesuch_proto::NameRef;
use std::collections::HashMap;

/// Minimum octets of the owner of a record, and octets of its type, class, TTL and length.
const POINTER_OCTETS: usize = 2;
const FIXED: usize = 10;

/// Checks the sections of an image.
pub(super) fn check(image: &Image) -> Result<(), ImageFileError> {
    let forms = check_forms(&image.sections.forms).ok_or(Malformed("table of signature forms"))?;
    let starts = check_blocks(image, &forms)?;
    check_indexes(image, &starts)?;
    let (name, heads, _) = split_block(&image.sections.blocks);
    if NameRef::from_checked(name) != image.apex() {
        return Err(Malformed("apex"));
    }
    if heads.len() <= usize::from(image.facts.negative_soa) {
        Err(Malformed("SOA record for negative responses"))
    } else {
        Ok(())
    }
}

/// Bit set of the positions at which blocks begin, in units of [`UNIT`] octets.
struct Starts(Vec<u64>);

impl Starts {
    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn has(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// Checks the blocks from the first to the last. Returns the positions at which they begin.
fn check_blocks(image: &Image, forms: &HashMap<u32, usize>) -> Result<Starts, ImageFileError> {
    let blocks = &image.sections.blocks;
    let units = blocks.len() / UNIT;
    if blocks.is_empty() || !blocks.len().is_multiple_of(UNIT) || units >= u32::MAX as usize {
        return Err(Malformed("blocks"));
    }
    let mut starts = Starts(vec![0; units.div_ceil(64)]);
    let mut at = 0;
    while at < blocks.len() {
        starts.insert(at / UNIT);
        at += check_block(image, &blocks[at..], forms).ok_or(Malformed("block"))?;
    }
    Ok(starts)
}

/// Returns the octets of the block at the start of `octets`; `None` if it is malformed.
fn check_block(image: &Image, octets: &[u8], forms: &HashMap<u32, usize>) -> Option<usize> {
    let [kind, name_length, low, high, rest @ ..] = octets else { return None };
    NodeKind::of_code(*kind)?;
    let heads = usize::from(u16::from_le_bytes([*low, *high])) * HEAD;
    let before = usize::from(*name_length) + heads;
    let name = NameRef::from_wire(rest.get(..usize::from(*name_length))?).ok()?;
    // Lookups use lower case. A length octet is never an upper-case letter.
    let has_capitals = name.wire().iter().any(u8::is_ascii_uppercase);
    if rest.len() < before || has_capitals || !name.is_at_or_below(image.apex()) {
        return None;
    }
    let (_, heads, bodies) = split_block(octets);
    let mut length = 0;
    for (place, head) in heads.iter().enumerate() {
        let (start, end) = bounds(heads, place);
        check_rrset(head, bodies.get(start..end)?, forms)?;
        length = end;
    }
    let length = (BLOCK_HEAD + before + length).next_multiple_of(UNIT);
    (length <= octets.len()).then_some(length)
}

/// Checks an RRset: patches, records and signatures fill its octets exactly and fit in a message,
/// and each patch refers to octets of the records. Glue may have any size, because a response omits
/// addresses that do not fit.
fn check_rrset(head: &[u8; HEAD], body: &[u8], forms: &HashMap<u32, usize>) -> Option<()> {
    let (head, body) = Head::read(head, body)?;
    let (patches, rest) = body.split_at_checked(head.patches.checked_mul(2)?)?;
    let (records, mut signatures) = rest.split_at_checked(head.length)?;
    for (at, _) in places(patches.as_chunks().0) {
        records.get(at..)?.first_chunk::<2>()?;
    }
    let mut rest = records;
    for _ in 0..head.records {
        rest = check_record(rest)?;
    }
    if head.length + signatures.len() > MAX_MESSAGE && !is_glue(head.role) {
        return None;
    }
    for _ in 0..head.signatures {
        let (start, tail) = signatures.split_first_chunk::<SIGNATURE_HEAD>()?;
        let form = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
        signatures = tail.get(*forms.get(&form)?..)?;
    }
    (rest.is_empty() && signatures.is_empty()).then_some(())
}

/// Returns the octets after the record at the start of `octets`.
fn check_record(octets: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    // An owner ends with the root label or with a pointer.
    let owner = loop {
        match *octets.get(at)? {
            0 => break at + 1,
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => break at + POINTER_OCTETS,
            _ => return None,
        }
    };
    let fixed = octets.get(owner..)?.first_chunk::<FIXED>()?;
    octets.get(owner + FIXED + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]))..)
}

/// Checks that each entry of an index is the position of a block.
fn check_indexes(image: &Image, starts: &Starts) -> Result<(), ImageFileError> {
    let sections = &image.sections;
    let is_odd = |octets: &[u8], each: usize| !octets.len().is_multiple_of(each);
    if is_odd(&sections.table, index::SLOT) || !index::nodes(&sections.table).all(|at| starts.has(at)) {
        return Err(Malformed("hash table of names"));
    }
    let lists = [
        (&sections.order_keys, 8, &sections.order_nodes),
        (&sections.nsec3_hashes, 20, &sections.nsec3_nodes),
        (&sections.nsec5_hashes, 32, &sections.nsec5_nodes),
    ];
    for (keys, each, nodes) in lists {
        let (nodes, odd) = nodes.as_chunks::<4>();
        let is_paired = keys.len() == nodes.len() * each && odd.is_empty();
        if !is_paired || !nodes.iter().all(|at| starts.has(u32::from_le_bytes(*at))) {
            return Err(Malformed("index"));
        }
    }
    Ok(())
}
