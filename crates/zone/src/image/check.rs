//! Checks of the invariants of an image that is read from a file. The compiler of images maintains
//! these invariants itself.
//!
//! All offsets and counts are followed once, from start to end. The correctness of the data is not
//! checked, because this requires a new compilation. Names out of order, or records that are
//! malformed or of another type, cause wrong answers but no other harm.

use super::file::ImageFileError::{self, Malformed};
use super::node::{BLOCK_HEAD_OCTETS, BLOCK_UNIT, Head, NodeKind, RRSET_HEAD_OCTETS, bounds, split_block};
use super::signature::{SIGNATURE_HEAD_OCTETS, check_forms};
use super::template::{is_glue, patch_positions};
use super::{Image, index};
use crate::size::MAX_MESSAGE;
use nonesuch_proto::NameRef;
use std::collections::HashMap;

/// Octets of a compression pointer.
const POINTER_OCTETS: usize = 2;
/// Octets of the type, class, TTL and RDATA length of a record.
const FIXED_OCTETS: usize = 10;

/// Checks the sections of an image.
pub(super) fn check(image: &Image) -> Result<(), ImageFileError> {
    let forms = check_forms(&image.sections.forms).ok_or(Malformed("table of signature forms"))?;
    let starts = check_blocks(image, &forms)?;
    check_indexes(image, &starts)?;
    let (name, heads, _) = split_block(&image.sections.blocks);
    if NameRef::from_wire_unchecked(name) != image.apex() {
        return Err(Malformed("apex"));
    }
    if heads.len() <= usize::from(image.summary.negative_soa) {
        Err(Malformed("SOA record for negative responses"))
    } else {
        Ok(())
    }
}

/// Bit set of the positions at which blocks begin, in units of [`BLOCK_UNIT`]
/// octets.
struct BlockStarts(Vec<u64>);

impl BlockStarts {
    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn contains(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// Checks the blocks from the first to the last. Returns the positions at which they begin.
fn check_blocks(image: &Image, forms: &HashMap<u32, usize>) -> Result<BlockStarts, ImageFileError> {
    let blocks = &image.sections.blocks;
    let units = blocks.len() / BLOCK_UNIT;
    if blocks.is_empty() || !blocks.len().is_multiple_of(BLOCK_UNIT) || units >= u32::MAX as usize {
        return Err(Malformed("blocks"));
    }
    let mut starts = BlockStarts(vec![0; units.div_ceil(64)]);
    let mut at = 0;
    while at < blocks.len() {
        starts.insert(at / BLOCK_UNIT);
        at += check_block(image, &blocks[at..], forms).ok_or(Malformed("block"))?;
    }
    Ok(starts)
}

/// Returns the octets of the block at the start of `octets`; `None` if it is malformed.
fn check_block(image: &Image, octets: &[u8], forms: &HashMap<u32, usize>) -> Option<usize> {
    let [kind, name_length, low, high, rest @ ..] = octets else { return None };
    NodeKind::of_code(*kind)?;
    let heads_octets = usize::from(u16::from_le_bytes([*low, *high])) * RRSET_HEAD_OCTETS;
    let bodies_offset = usize::from(*name_length) + heads_octets;
    let name = NameRef::from_wire(rest.get(..usize::from(*name_length))?).ok()?;
    // Lookups use lower case. A length octet is never an upper-case letter.
    let has_capitals = name.wire().iter().any(u8::is_ascii_uppercase);
    if rest.len() < bodies_offset || has_capitals || !name.is_at_or_below(image.apex()) {
        return None;
    }
    let (_, heads, bodies) = split_block(octets);
    let mut length = 0;
    for (index, head) in heads.iter().enumerate() {
        let (start, end) = bounds(heads, index);
        check_rrset(head, bodies.get(start..end)?, forms)?;
        length = end;
    }
    let length = (BLOCK_HEAD_OCTETS + bodies_offset + length).next_multiple_of(BLOCK_UNIT);
    (length <= octets.len()).then_some(length)
}

/// Checks an RRset: patches, records and signatures fill its octets exactly and fit in a message,
/// and each patch refers to octets of the records. Glue may have any size, because a response omits
/// addresses that do not fit.
fn check_rrset(head: &[u8; RRSET_HEAD_OCTETS], body: &[u8], forms: &HashMap<u32, usize>) -> Option<()> {
    let (head, body) = Head::read(head, body)?;
    let (patches, rest) = body.split_at_checked(head.patches.checked_mul(2)?)?;
    let (records, mut signatures) = rest.split_at_checked(head.length)?;
    for (at, _) in patch_positions(patches.as_chunks().0) {
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
        let (start, tail) = signatures.split_first_chunk::<SIGNATURE_HEAD_OCTETS>()?;
        let form = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
        signatures = tail.get(*forms.get(&form)?..)?;
    }
    (rest.is_empty() && signatures.is_empty()).then_some(())
}

/// Returns the octets after the record at the start of `octets`.
fn check_record(octets: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    // An owner ends with the root label or with a pointer.
    let owner_end = loop {
        match *octets.get(at)? {
            0 => break at + 1,
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => break at + POINTER_OCTETS,
            _ => return None,
        }
    };
    let fixed = octets.get(owner_end..)?.first_chunk::<FIXED_OCTETS>()?;
    octets.get(owner_end + FIXED_OCTETS + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]))..)
}

/// Checks that each entry of an index is the position of a block.
fn check_indexes(image: &Image, starts: &BlockStarts) -> Result<(), ImageFileError> {
    let sections = &image.sections;
    let has_remainder = |octets: &[u8], each: usize| !octets.len().is_multiple_of(each);
    if has_remainder(&sections.name_table, index::SLOT_OCTETS)
        || !index::nodes(&sections.name_table).all(|at| starts.contains(at))
    {
        return Err(Malformed("hash table of names"));
    }
    let lists = [
        (&sections.order_keys, 8, &sections.order_nodes),
        (&sections.nsec3_hashes, 20, &sections.nsec3_nodes),
        (&sections.nsec5_hashes, 32, &sections.nsec5_nodes),
    ];
    for (keys, each, nodes) in lists {
        let (nodes, remainder) = nodes.as_chunks::<4>();
        let is_paired = keys.len() == nodes.len() * each && remainder.is_empty();
        if !is_paired || !nodes.iter().all(|at| starts.contains(u32::from_le_bytes(*at))) {
            return Err(Malformed("index"));
        }
    }
    Ok(())
}
