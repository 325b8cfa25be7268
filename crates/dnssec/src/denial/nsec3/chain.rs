//! The hashes of the names in an NSEC3 chain, and the records of the chain.

use super::{HASH_LABEL_OCTETS, Hash, Nsec3Params, OPT_OUT_FLAG};
pub(crate) use crate::denial::names::{ChainName, chain_names, insert_rrsig};
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_proto::{NameRef, Rtype, bitmap};
use nonesuch_zone::Contents;
use rayon::prelude::*;

/// Minimum number of names that a thread hashes as one unit of work.
const CHUNK_NAMES: usize = 2048;

/// A name of the chain with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedName {
    pub(crate) hash: Hash,
    pub(crate) name: ChainName,
}

/// Hashes all names and sorts them by hash.
pub(crate) fn hash_names(contents: &Contents, names: &[ChainName], params: &Nsec3Params) -> Vec<HashedName> {
    let mut hashed: Vec<HashedName> = names
        .par_iter()
        .with_min_len(CHUNK_NAMES)
        .map_init(Vec::new, |canonical, name| HashedName {
            hash: params.hash(name.name(contents), canonical),
            name: *name,
        })
        .collect();
    hashed.par_sort_unstable_by_key(|entry| (entry.hash, entry.name.node, entry.name.empty_labels));
    hashed
}

/// The hash as a label: base32hex without padding, in lower case (RFC 5155 §3.3).
#[must_use]
pub fn label(hash: &Hash) -> [u8; HASH_LABEL_OCTETS] {
    let mut label = [0; HASH_LABEL_OCTETS];
    BASE32HEX_NOPAD.encode_mut(hash, &mut label);
    label.make_ascii_lowercase();
    label
}

/// The hash that the first label of `owner` encodes; `None` if `owner` is not the name of an NSEC3
/// record of the zone at `apex`.
#[must_use]
pub fn decode_owner(owner: NameRef<'_>, apex: NameRef<'_>) -> Option<Hash> {
    let label = owner.labels().next().filter(|label| label.len() == HASH_LABEL_OCTETS)?;
    if owner.parent()? != apex {
        return None;
    }
    let mut hash = Hash::default();
    BASE32HEX_NOPAD.decode_mut(&label.to_ascii_uppercase(), &mut hash).ok()?;
    Some(hash)
}

/// Appends the owner of an NSEC3 record (RFC 5155 §3): the label of the hash, then the apex.
pub(crate) fn push_owner(hash: &Hash, apex: NameRef<'_>, out: &mut Vec<u8>) {
    out.push(HASH_LABEL_OCTETS as u8);
    out.extend_from_slice(&label(hash));
    out.extend_from_slice(apex.wire());
}

/// Appends NSEC3 RDATA (RFC 5155 §3.2). `types` is the complete list of the bit map.
pub(crate) fn push_rdata(
    params: &Nsec3Params,
    opt_out: bool,
    next: &Hash,
    types: &[Rtype],
    out: &mut Vec<u8>,
) {
    params.push_fields(if opt_out { OPT_OUT_FLAG } else { 0 }, out);
    out.push(next.len() as u8);
    out.extend_from_slice(next);
    bitmap::push(types, out);
}
