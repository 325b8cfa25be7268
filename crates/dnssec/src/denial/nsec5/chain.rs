//! The records of an NSEC5 chain.

use super::{HASH_LABEL_OCTETS, Hash, OPT_OUT_FLAG, Proofs, WILDCARD_FLAG};
use crate::denial::names::ChainName;
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_proto::{NameRef, Rtype, bitmap};
use nonesuch_zone::Contents;
use rayon::prelude::*;

/// A name of the chain with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedName {
    pub(crate) hash: Hash,
    pub(crate) name: ChainName,
}

/// Returns `names`, which must be in canonical order, with their hashes, sorted by hash. `None` if
/// `proofs` are not exactly the proofs of these names, or if two names have the same hash.
pub(crate) fn build_chain(
    contents: &Contents,
    names: &[ChainName],
    proofs: &Proofs,
) -> Option<Vec<HashedName>> {
    if names.len() != proofs.len() || proofs.zone() != contents.apex() {
        return None;
    }
    let mut relative = Vec::new();
    let mut chain = Vec::with_capacity(names.len());
    for (name, entry) in names.iter().zip(proofs.entries()) {
        super::proofs::relative_name(name.name(contents), contents.apex().view(), &mut relative);
        if entry.name.wire() != relative {
            return None;
        }
        chain.push(HashedName { hash: *entry.hash, name: *name });
    }
    chain.par_sort_unstable_by_key(|entry| entry.hash);
    // Equal hashes of two names are expected only with about 2^128 names.
    chain.is_sorted_by(|a, b| a.hash < b.hash).then_some(chain)
}

/// The hash as a label: base32hex without padding, in lower case.
pub(crate) fn label(hash: &Hash) -> [u8; HASH_LABEL_OCTETS] {
    let mut label = [0; HASH_LABEL_OCTETS];
    BASE32HEX_NOPAD.encode_mut(hash, &mut label);
    label.make_ascii_lowercase();
    label
}

/// Appends the owner of a record: the label of the hash, then the apex.
pub(crate) fn push_owner(hash: &Hash, apex: NameRef<'_>, out: &mut Vec<u8>) {
    out.push(HASH_LABEL_OCTETS as u8);
    out.extend_from_slice(&label(hash));
    out.extend_from_slice(apex.wire());
}

/// Appends NSEC5 RDATA. `types` is the complete list of the bit map.
pub(crate) fn push_rdata(
    tag: u16,
    opt_out: bool,
    name: ChainName,
    next: &Hash,
    types: &[Rtype],
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&tag.to_be_bytes());
    let opt_out = if opt_out { OPT_OUT_FLAG } else { 0 };
    let wildcard = if name.has_wildcard { WILDCARD_FLAG } else { 0 };
    out.extend_from_slice(&[opt_out | wildcard, next.len() as u8]);
    out.extend_from_slice(next);
    bitmap::push(types, out);
}
