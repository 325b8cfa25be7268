//! The names in a chain of hashes, including empty non-terminals, and the types in the bit maps
//! (RFC 5155 §7.1; draft-vcelak-nsec5 uses the same rules).

use super::{insert_type, is_generated_by_signing};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node};

/// A name in a chain of hashes: a node or an empty non-terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainName {
    /// The node; for an empty non-terminal, the first node below it.
    pub(crate) node: u32,
    /// The number of labels of an empty non-terminal; 0 for a node.
    pub(crate) empty_labels: u8,
    /// Whether even a chain with opt-out must contain the name (RFC 5155 §7.1). Such a chain may
    /// omit insecure delegations, and empty non-terminals that exist only because of them.
    pub(crate) required: bool,
    /// Whether a wildcard exists directly below the name; the wildcard may be an empty
    /// non-terminal.
    pub(crate) has_wildcard: bool,
}

impl ChainName {
    pub(crate) fn name<'z>(&self, contents: &'z Contents) -> NameRef<'z> {
        let name = contents.node(self.node as usize).name();
        if self.is_empty() { name.suffix(usize::from(self.empty_labels)) } else { name }
    }

    /// Whether the name is an empty non-terminal.
    pub(crate) const fn is_empty(&self) -> bool {
        self.empty_labels > 0
    }
}

/// Whether the node has records that the signer does not generate. Always true for the apex.
pub(crate) fn is_kept(contents: &Contents, node: Node<'_>) -> bool {
    let is_generated = |rtype| is_generated_by_signing(rtype, node.name(), contents.apex().view());
    node.index() == 0 || node.rrsets().any(|rrset| !is_generated(rrset.rtype()))
}

/// Whether `hash` is between the hashes `owner` and `next` of a record (RFC 5155 §1.3). The next
/// hash of the last record is the first hash.
pub(crate) fn covers<H: Ord>(owner: &H, next: &H, hash: &H) -> bool {
    if owner < next { owner < hash && hash < next } else { hash > owner || hash < next }
}

/// Whether the node is a delegation without DS records (RFC 5155 §6).
pub(crate) fn is_insecure_delegation(node: Node<'_>, status: NameStatus) -> bool {
    status == NameStatus::Delegation && !node.has(Rtype::DS)
}

/// The names of a chain over `nodes` and the empty non-terminals between them, in canonical order.
/// `nodes` are indexes of nodes of the zone in canonical order and begin with the apex.
pub(crate) fn chain_names(contents: &Contents, statuses: &[NameStatus], nodes: &[u32]) -> Vec<ChainName> {
    let mut names = Names { list: Vec::with_capacity(nodes.len()), above: Vec::new() };
    let apex_labels = contents.apex().view().label_count();
    let mut previous = contents.apex().view();
    for &index in nodes {
        let node = contents.node(index as usize);
        let name = node.name();
        let labels = name.label_count();
        let common = if labels <= apex_labels + 1 {
            apex_labels
        } else {
            common_labels(previous, name).max(apex_labels)
        };
        names.above.retain(|(depth, _)| *depth <= common);
        // A node that is an ancestor of this node precedes it, and only names below the ancestor
        // are between them. An ancestor that is not also an ancestor of the previous name is
        // therefore empty.
        for depth in common + 1..labels {
            let empty_labels = depth as u8;
            names.push(index, empty_labels, false, name.suffix(depth), depth);
        }
        let required = !is_insecure_delegation(node, statuses[index as usize]);
        names.push(index, 0, required, name, labels);
        previous = name;
    }
    names.list
}

/// The list of names under construction.
struct Names {
    list: Vec<ChainName>,
    /// The ancestors of the current name, from the apex down: number of labels, and index in
    /// `list`.
    above: Vec<(usize, usize)>,
}

impl Names {
    fn push(&mut self, node: u32, empty_labels: u8, required: bool, name: NameRef<'_>, labels: usize) {
        if let Some((_, parent)) = self.above.last().filter(|_| name.is_wildcard()) {
            self.list[*parent].has_wildcard = true;
        }
        if required {
            for (_, place) in &self.above {
                self.list[*place].required = true;
            }
        }
        self.above.push((labels, self.list.len()));
        self.list.push(ChainName { node, empty_labels, required, has_wildcard: false });
    }
}

/// The number of labels that two names have in common, counted from the right.
pub(crate) fn common_labels(a: NameRef<'_>, b: NameRef<'_>) -> usize {
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

/// Adds RRSIG to the `types` of a name if the name has signatures. An insecure delegation and an
/// empty non-terminal have none (RFC 5155 §7.1).
pub(crate) fn complete_types(types: &mut Vec<Rtype>, status: NameStatus) {
    let signed = match status {
        NameStatus::Delegation => types.contains(&Rtype::DS),
        _ => !types.is_empty(),
    };
    if signed {
        insert_type(types, Rtype::RRSIG);
    }
}

/// The next closer name: the name one label longer than `encloser` that is `name` or an ancestor of
/// it (RFC 5155 §1.3).
pub(crate) fn next_closer<'q>(name: NameRef<'q>, encloser: NameRef<'_>) -> NameRef<'q> {
    let mut next = name;
    while let Some(parent) = next.parent() {
        if parent.len() <= encloser.len() {
            break;
        }
        next = parent;
    }
    next
}

/// The name `*.encloser`, or `None` if `encloser` has more than 253 octets: no name fits below it.
pub(crate) fn wildcard_below(encloser: NameRef<'_>) -> Option<Name> {
    Name::wildcard_below(encloser).ok()
}
