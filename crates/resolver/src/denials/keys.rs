//! Keys of entries. Their octet order is the order of the chain of the zone.
//!
//! - NSEC: the sort key of the owner ([`NameRef::push_sort_key`]).
//! - NSEC3: the hash.
//! - NSEC5: for a record the octet 0, the key tag and the hash; for a proof the octet 1 and the sort
//!   key of its name.

use nonesuch_dnssec::validate::aggressive::{Span, VrfHash};
use nonesuch_proto::NameRef;

/// First octet of the keys of NSEC5 records.
const NSEC5_RECORD: u8 = 0;
/// First octet of the keys of NSEC5 proofs.
const NSEC5_PROOF: u8 = 1;
/// Octets of a key of an NSEC5 record before the hash.
const NSEC5_PREFIX: usize = 3;

/// Returns the sort key of a name.
pub(super) fn name_key(name: NameRef<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 2);
    name.push_sort_key(&mut key);
    key
}

/// Returns the keys of the owner and of the next name of a record.
pub(super) fn span_keys(span: &Span<'_>) -> (Vec<u8>, Vec<u8>) {
    match span {
        Span::Names { owner, next } => (name_key(*owner), name_key(*next)),
        Span::Sha1 { hash, next, .. } => (hash.to_vec(), next.to_vec()),
        Span::Vrf { tag, hash, next } => (nsec5_record_key(*tag, hash), nsec5_record_key(*tag, next)),
    }
}

/// Returns the key of an NSEC5 record.
pub(super) fn nsec5_record_key(tag: u16, hash: &VrfHash) -> Vec<u8> {
    let mut key = vec![NSEC5_RECORD];
    key.extend_from_slice(&tag.to_be_bytes());
    key.extend_from_slice(hash);
    key
}

/// Returns the key tag and the hash in the key of an NSEC5 record.
pub(super) fn split_nsec5_record_key(key: &[u8]) -> Option<(u16, VrfHash)> {
    let [NSEC5_RECORD, high, low, hash @ ..] = key else { return None };
    Some((u16::from_be_bytes([*high, *low]), hash.try_into().ok()?))
}

/// Returns the first octets that the key of an NSEC5 record has in common with those of all records
/// of its chain.
pub(super) fn nsec5_prefix(key: &[u8]) -> &[u8] {
    key.get(..NSEC5_PREFIX).unwrap_or(key)
}

/// Returns the key of an NSEC5 proof. Its suffixes of labels are the keys of the names above it.
pub(super) fn nsec5_proof_key(name: NameRef<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 3);
    key.push(NSEC5_PROOF);
    name.push_sort_key(&mut key);
    key
}

/// Returns the octets of the sort key of a name that its last `labels` labels have. In a sort key, the
/// octet 0 ends each label and is nowhere else.
pub(super) fn suffix_octets(key: &[u8], labels: usize) -> usize {
    match labels.checked_sub(1) {
        None => 0,
        Some(last) => key
            .iter()
            .enumerate()
            .filter(|(_, octet)| **octet == 0)
            .nth(last)
            .map_or(key.len(), |(at, _)| at + 1),
    }
}

/// Returns the number of labels that two names have in common, from their sort keys.
pub(super) fn common_labels(key: &[u8], other: &[u8]) -> usize {
    key.iter().zip(other).take_while(|(a, b)| a == b).filter(|(octet, _)| **octet == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    #[test]
    fn labels_are_counted_in_sort_keys() {
        let key = |text: &str| name_key(name(text).view());
        assert_eq!(common_labels(&key("a.b.example."), &key("x.B.example.")), 2);
        assert_eq!(common_labels(&key("bb.example."), &key("b.example.")), 1);
        assert_eq!(common_labels(&key("b\\000.example."), &key("b.example.")), 1);
        assert_eq!(common_labels(&key("a.test."), &key(".")), 0);
        let full = key("x.\\000y.example.");
        for (labels, suffix) in [(0, "."), (1, "example."), (2, "\\000y.example."), (3, "x.\\000y.example.")]
        {
            assert_eq!(full[..suffix_octets(&full, labels)], key(suffix));
        }
    }

    #[test]
    fn keys_of_nsec5_records_have_tag_and_hash() {
        let key = nsec5_record_key(0x1234, &[7; 32]);
        assert_eq!(split_nsec5_record_key(&key), Some((0x1234, [7; 32])));
        assert_eq!(nsec5_prefix(&key), [0, 0x12, 0x34]);
        assert_eq!(split_nsec5_record_key(&nsec5_proof_key(name("a.").view())), None);
        assert_eq!(split_nsec5_record_key(&key[1..]), None);
    }
}
