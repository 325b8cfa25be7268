//! The names of an NSEC3 chain, their hashes, and the records.

use super::{Hash, LABEL, Nsec3Params, OPT_OUT};
use crate::denial::insert_type;
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_proto::{NameRef, Rtype, bitmap};
use nonesuch_zone::{Contents, Node, Standing};
use rayon::prelude::*;

/// Names hashed at once by one thread.
const CHUNK: usize = 2048;

/// A name that an NSEC3 chain shows: a node, or an empty non-terminal above one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainName {
    /// The node; for an empty non-terminal the first node below it.
    pub(crate) node: u32,
    /// Labels of an empty non-terminal; 0 for a node itself.
    pub(crate) empty_labels: u8,
    /// Whether an opt-out chain must have it too: it is no insecure delegation, and not there for such alone
    /// (RFC 5155 §7.1).
    pub(crate) required: bool,
}

impl ChainName {
    pub(crate) fn name<'z>(&self, contents: &'z Contents) -> NameRef<'z> {
        let name = contents.node(self.node as usize).name();
        if self.is_empty() { name.suffix(usize::from(self.empty_labels)) } else { name }
    }

    /// Whether it is an empty non-terminal.
    pub(crate) const fn is_empty(&self) -> bool {
        self.empty_labels > 0
    }
}

/// A delegation without DS (RFC 5155 §6).
pub(crate) fn is_insecure_delegation(node: Node<'_>, standing: Standing) -> bool {
    standing == Standing::Delegation && !node.has(Rtype::DS)
}

/// The names of a chain over `nodes` (of the zone, in canonical order, the apex first) and the empty non-terminals
/// between them.
pub(crate) fn chain_names(contents: &Contents, standings: &[Standing], nodes: &[u32]) -> Vec<ChainName> {
    let apex_labels = contents.apex().view().label_count();
    let mut names: Vec<ChainName> = Vec::with_capacity(nodes.len());
    // Empty non-terminals above the current node: places in `names`.
    let mut open: Vec<usize> = Vec::new();
    let mut previous = contents.apex().view();
    for &index in nodes {
        let node = contents.node(index as usize);
        let name = node.name();
        let labels = name.label_count();
        if labels <= apex_labels + 1 {
            open.clear();
        } else {
            let common = common_labels(previous, name);
            open.retain(|place| usize::from(names[*place].empty_labels) <= common);
            // A node above this one stands before it, with nothing but names below that node between: an ancestor
            // that is not one of the previous name is empty.
            for empty_labels in (common.max(apex_labels) + 1)..labels {
                open.push(names.len());
                names.push(ChainName { node: index, empty_labels: empty_labels as u8, required: false });
            }
        }
        let required = !is_insecure_delegation(node, standings[index as usize]);
        if required {
            for &place in &open {
                names[place].required = true;
            }
        }
        names.push(ChainName { node: index, empty_labels: 0, required });
        previous = name;
    }
    names
}

/// How many labels two names share, from the right.
fn common_labels(a: NameRef<'_>, b: NameRef<'_>) -> usize {
    let (a_labels, b_labels) = (a.label_count(), b.label_count());
    let mut common = a_labels.min(b_labels);
    let (mut a, mut b) = (a.suffix(common), b.suffix(common));
    while a != b {
        let (Some(x), Some(y)) = (a.parent(), b.parent()) else { break };
        (a, b) = (x, y);
        common -= 1;
    }
    common
}

/// A name of the chain with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed {
    pub(crate) hash: Hash,
    pub(crate) name: ChainName,
}

/// Hashes all names and sorts them by hash.
pub(crate) fn hash_names(contents: &Contents, names: &[ChainName], params: &Nsec3Params) -> Vec<Hashed> {
    let mut hashed: Vec<Hashed> = names
        .par_iter()
        .with_min_len(CHUNK)
        .map_init(Vec::new, |canonical, name| Hashed {
            hash: params.hash(name.name(contents), canonical),
            name: *name,
        })
        .collect();
    hashed.par_sort_unstable_by_key(|entry| (entry.hash, entry.name.node, entry.name.empty_labels));
    hashed
}

/// The hash as a label: base32hex without padding, in lower case (RFC 5155 §3.3).
pub(crate) fn label(hash: &Hash) -> [u8; LABEL] {
    let mut label = [0; LABEL];
    BASE32HEX_NOPAD.encode_mut(hash, &mut label);
    label.make_ascii_lowercase();
    label
}

/// Appends the owner of an NSEC3 record (RFC 5155 §3): the hash's label in front of the apex.
pub(crate) fn push_owner(hash: &Hash, apex: NameRef<'_>, out: &mut Vec<u8>) {
    out.push(LABEL as u8);
    out.extend_from_slice(&label(hash));
    out.extend_from_slice(apex.wire());
}

/// Adds RRSIG to the `types` shown of a name, where anything is signed there: an insecure delegation has no
/// signature, and an empty non-terminal nothing at all (RFC 5155 §7.1).
pub(crate) fn complete_types(types: &mut Vec<Rtype>, standing: Standing) {
    let signed = match standing {
        Standing::Delegation => types.contains(&Rtype::DS),
        _ => !types.is_empty(),
    };
    if signed {
        insert_type(types, Rtype::RRSIG);
    }
}

/// Appends NSEC3 RDATA (RFC 5155 §3.2) for a name of complete `types`.
pub(crate) fn push_rdata(
    params: &Nsec3Params,
    opt_out: bool,
    next: &Hash,
    types: &[Rtype],
    out: &mut Vec<u8>,
) {
    params.push_fields(if opt_out { OPT_OUT } else { 0 }, out);
    out.push(next.len() as u8);
    out.extend_from_slice(next);
    bitmap::push(types, out);
}
