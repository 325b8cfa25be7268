//! Finding a node: an open-addressed table of names, and sort-key prefixes for predecessors.

use nonesuch_proto::NameRef;

/// Name → node index; open addressing with linear probing, at most half full.
#[derive(Debug)]
pub(super) struct NameTable {
    slots: Vec<Slot>,
    mask: usize,
}

/// Upper bits of the hash, so that most misses need no look at the name, and the node.
#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: u32,
    node: u32,
}

const EMPTY: u32 = u32::MAX;

impl NameTable {
    /// A table of `count` nodes with their names, each in lower case.
    pub(super) fn build<'n>(count: usize, names: impl Iterator<Item = (u32, &'n [u8])>) -> Self {
        let size = (count * 2).next_power_of_two().max(16);
        let mut slots = vec![Slot { tag: 0, node: EMPTY }; size];
        let mask = size - 1;
        for (node, name) in names {
            let hash = hash(name);
            let mut at = hash as usize & mask;
            while slots[at].node != EMPTY {
                at = (at + 1) & mask;
            }
            slots[at] = Slot { tag: (hash >> 32) as u32, node };
        }
        Self { slots, mask }
    }

    /// The node of `name`; `name_of` gives the name of a node.
    pub(super) fn find<'n>(&self, name: &[u8], name_of: impl Fn(u32) -> &'n [u8]) -> Option<u32> {
        let hash = hash(name);
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & self.mask;
        loop {
            let slot = self.slots[at];
            if slot.node == EMPTY {
                return None;
            }
            if slot.tag == tag && name_of(slot.node) == name {
                return Some(slot.node);
            }
            at = (at + 1) & self.mask;
        }
    }

    pub(super) fn octets(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }
}

/// A hash of the octets, eight at a time. The names in the table are the zone's own: no sender of queries
/// can choose them, so the hash needs no key.
fn hash(octets: &[u8]) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd6e8_feb8_6659_fd93;
    let mut state = A ^ octets.len() as u64;
    let mut chunks = octets.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        state = fold(state ^ word, B);
    }
    let mut tail = [0; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    fold(fold(state ^ u64::from_le_bytes(tail), B), A)
}

/// Both halves of a 128-bit product, mixed.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// The first eight octets of `name`'s sort key behind the key of `apex`: comparing them agrees with canonical
/// order wherever they differ.
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
            // The same escapes as in `NameRef::push_sort_key`.
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
    fn table_finds_what_it_holds() {
        let names: Vec<Vec<u8>> = (0..1000u32).map(|n| n.to_string().into_bytes()).collect();
        let nodes = names.iter().enumerate().map(|(node, name)| (node as u32, name.as_slice()));
        let table = NameTable::build(names.len(), nodes);
        let name_of = |node: u32| names[node as usize].as_slice();
        for (node, name) in names.iter().enumerate() {
            assert_eq!(table.find(name, name_of), Some(node as u32));
        }
        assert_eq!(table.find(b"1000", name_of), None);
    }
}
