//! Indexes to find a node: a hash table of names with open addressing, and prefixes of sort keys to
//! find predecessors.
//!
//! A slot of the table has 8 octets: the lower half of the hash of the name, and the position of
//! its block. With the hash, most failed lookups need not compare names. The upper half of the hash
//! determines the first slot of the search. The key of the hash function precedes the slots.

use nonesuch_proto::NameRef;

/// Octets of a slot, and of the key before the slots.
pub(super) const SLOT_OCTETS: usize = 8;
/// Position that marks an empty slot.
const EMPTY_SLOT: u32 = u32::MAX;

/// Builds a table of names with the positions of their blocks. The names must be in lower case. The
/// table is at most two thirds full.
pub(super) fn build_table<'n>(
    key: [u8; SLOT_OCTETS],
    names: impl ExactSizeIterator<Item = (u32, &'n [u8])>,
) -> Vec<u8> {
    let size = (names.len() + names.len() / 2).max(4);
    let mut table = vec![[0xff; SLOT_OCTETS]; 1 + size];
    table[0] = key;
    let slots = &mut table[1..];
    for (node, name) in names {
        let hash = hash(key, name);
        let mut at = first_slot(hash, size);
        while node_of(&slots[at]) != EMPTY_SLOT {
            at = if at + 1 == size { 0 } else { at + 1 };
        }
        let [a, b, c, d] = (hash as u32).to_le_bytes();
        let [e, f, g, h] = node.to_le_bytes();
        slots[at] = [a, b, c, d, e, f, g, h];
    }
    table.into_flattened()
}

/// Finds the block of `name`. `name_of` returns the name of a block.
#[inline]
pub(super) fn find<'n>(table: &[u8], name: &[u8], name_of: impl Fn(u32) -> &'n [u8]) -> Option<u32> {
    let (key, slots) = table.as_chunks::<SLOT_OCTETS>().0.split_first()?;
    let hash = hash(*key, name);
    let tag = hash as u32;
    let (up_to_first, from_first) = slots.split_at_checked(first_slot(hash, slots.len()))?;
    // `build_table` never fills a table. The search must also end for a full table from a file.
    let mut taken = from_first.iter().chain(up_to_first).take_while(|slot| node_of(slot) != EMPTY_SLOT);
    taken.find(|slot| tag_of(slot) == tag && name_of(node_of(slot)) == name).map(node_of)
}

/// Iterates over the block positions in all used slots.
pub(super) fn nodes(table: &[u8]) -> impl Iterator<Item = u32> {
    table.as_chunks::<SLOT_OCTETS>().0.iter().skip(1).map(node_of).filter(|node| *node != EMPTY_SLOT)
}

/// Returns the index of the first slot of the search in a table with `size` slots.
const fn first_slot(hash: u64, size: usize) -> usize {
    (((hash >> 32) * size as u64) >> 32) as usize
}

/// Returns the lower half of the hash in a slot.
const fn tag_of(slot: &[u8; SLOT_OCTETS]) -> u32 {
    u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]])
}

/// Returns the position of the block in a slot.
const fn node_of(slot: &[u8; SLOT_OCTETS]) -> u32 {
    u32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]])
}

/// Hashes the octets, eight at a time. The key prevents the author of a zone from choosing names
/// with equal hashes.
fn hash(key: [u8; SLOT_OCTETS], octets: &[u8]) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd6e8_feb8_6659_fd93;
    let mut state = u64::from_le_bytes(key) ^ octets.len() as u64;
    let (words, rest) = octets.as_chunks();
    for word in words {
        state = mix(state ^ u64::from_le_bytes(*word), B);
    }
    mix(mix(state ^ last_word(octets, rest.len()), B), A)
}

/// Returns the last `count` octets, fewer than eight, as a little-endian number. It does not copy
/// them, because the copy would be a function call that takes longer than the rest of this
/// function.
fn last_word(octets: &[u8], count: usize) -> u64 {
    match octets.last_chunk() {
        Some(last) => u64::from_le_bytes(*last).checked_shr(64 - 8 * count as u32).unwrap_or(0),
        None => octets.iter().rev().fold(0, |word, octet| word << 8 | u64::from(*octet)),
    }
}

/// Returns both halves of the 128-bit product of `a` and `b`, combined by XOR.
const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Returns the first eight octets of the sort key of `name` after the key of `apex`. If two
/// prefixes differ, their order is the canonical order.
pub(super) fn key_prefix(name: NameRef<'_>, apex: NameRef<'_>) -> u64 {
    let mut starts = [0u8; 128];
    let mut count = 0;
    let mut at = 0;
    let wire = name.wire();
    let end = wire.len().saturating_sub(apex.len());
    while at < end {
        starts[count] = at as u8;
        count += 1;
        at += 1 + usize::from(wire[at]);
    }
    let mut key = [0u8; 8];
    let mut filled = 0;
    let mut push = |octet: u8| {
        if let Some(slot) = key.get_mut(filled) {
            *slot = octet;
            filled += 1;
        }
        filled < 8
    };
    'labels: for start in starts[..count].iter().rev() {
        let start = usize::from(*start);
        for &octet in &wire[start + 1..=start + usize::from(wire[start])] {
            // These are the escapes of `NameRef::push_sort_key`.
            let more = match octet {
                0 => push(1) && push(1),
                1 => push(1) && push(2),
                _ => push(octet.to_ascii_lowercase()),
            };
            if !more {
                break 'labels;
            }
        }
        if !push(0) {
            break;
        }
    }
    u64::from_be_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    #[test]
    fn prefixes_follow_canonical_order() {
        let apex: Name = "example.".parse().unwrap();
        let names = [
            "example.",
            "a.example.",
            "\\000.a.example.",
            "\\001.a.example.",
            "a.a.example.",
            "a\\000.example.",
            "a\\001.example.",
            "aa.example.",
            "abcdefghi.example.",
            "abcdefghj.example.",
            "b.example.",
        ];
        let prefixes: Vec<u64> =
            names.iter().map(|name| key_prefix(name.parse::<Name>().unwrap().view(), apex.view())).collect();
        assert!(prefixes.is_sorted(), "{prefixes:x?}");
    }

    #[test]
    fn the_table_finds_its_names_and_no_others() {
        let names: Vec<Vec<u8>> = (0..1000u32).map(|n| n.to_string().into_bytes()).collect();
        let table = build_table(
            *b"some key",
            names.iter().enumerate().map(|(node, name)| (node as u32, name.as_slice())),
        );
        let name_of = |node: u32| names[node as usize].as_slice();
        for (node, name) in names.iter().enumerate() {
            assert_eq!(find(&table, name, name_of), Some(node as u32));
        }
        assert_eq!(find(&table, b"1000", name_of), None);
        assert_eq!(nodes(&table).count(), names.len());
    }

    #[test]
    fn another_key_gives_other_hashes() {
        let names: Vec<Vec<u8>> = (0..1000u32).map(|n| n.to_string().into_bytes()).collect();
        let tags =
            |key: &[u8; SLOT_OCTETS]| names.iter().map(|name| hash(*key, name) as u32).collect::<Vec<_>>();
        let (these, those) = (tags(b"some key"), tags(b"some kez"));
        assert!(these.iter().zip(&those).all(|(one, other)| one != other));
    }

    #[test]
    fn the_last_word_has_the_octets_after_whole_words() {
        let octets: Vec<u8> = (1..=255).collect();
        for length in 0..=octets.len() {
            let count = length % 8;
            let mut word = [0; 8];
            word[..count].copy_from_slice(&octets[length - count..length]);
            assert_eq!(last_word(&octets[..length], count), u64::from_le_bytes(word), "{length}");
        }
    }

    #[test]
    fn the_search_in_a_full_table_ends() {
        let name: &[u8] = b"\x01a\x00";
        let full = [[1, 2, 3, 4, 0, 0, 0, 0]; 6];
        assert_eq!(find(full.as_flattened(), name, |_| name), None);
        assert_eq!(find(&[], name, |_| name), None);
    }
}
