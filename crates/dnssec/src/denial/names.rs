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
    pub(crate) is_required: bool,
    /// Whether a wildcard exists directly below the name; the wildcard may be an empty
    /// non-terminal.
    pub(crate) has_wildcard: bool,
}

impl ChainName {
    pub(crate) fn name<'z>(&self, contents: &'z Contents) -> NameRef<'z> {
        let name = contents.node(self.node as usize).name();
        if self.is_empty_non_terminal() { name.suffix(usize::from(self.empty_labels)) } else { name }
    }

    /// Whether the name is an empty non-terminal.
    pub(crate) const fn is_empty_non_terminal(&self) -> bool {
        self.empty_labels > 0
    }
}

/// Whether the node has records that the signer does not generate, and therefore remains when the
/// signer removes the old chain. Always true for the apex.
pub(crate) fn has_source_records(contents: &Contents, node: Node<'_>) -> bool {
    let is_generated = |rtype| is_generated_by_signing(rtype, node.name(), contents.apex().view());
    node.index() == 0 || node.rrsets().any(|rrset| !is_generated(rrset.rtype()))
}

/// Whether `hash` is between the hashes `owner` and `next` of a record (RFC 5155 §1.3). The next
/// hash of the last record is the first hash.
pub(crate) fn covers_hash<H: Ord>(owner: &H, next: &H, hash: &H) -> bool {
    if owner < next { owner < hash && hash < next } else { hash > owner || hash < next }
}

/// Whether the node is a delegation without DS records (RFC 5155 §6).
pub(crate) fn is_insecure_delegation(node: Node<'_>, status: NameStatus) -> bool {
    status == NameStatus::Delegation && !node.has(Rtype::DS)
}

/// The names of a chain over `nodes` and the empty non-terminals between them, in canonical order.
/// `nodes` are indexes of nodes of the zone in canonical order and begin with the apex.
pub(crate) fn chain_names(contents: &Contents, statuses: &[NameStatus], nodes: &[u32]) -> Vec<ChainName> {
    let mut builder = ChainNamesBuilder { list: Vec::with_capacity(nodes.len()), ancestors: Vec::new() };
    let apex_labels = contents.apex().view().label_count();
    let mut previous = contents.apex().view();
    for &index in nodes {
        let node = contents.node(index as usize);
        let name = node.name();
        let labels = name.label_count();
        let common = if labels <= apex_labels + 1 {
            apex_labels
        } else {
            common_label_count(previous, name).max(apex_labels)
        };
        builder.ancestors.retain(|(depth, _)| *depth <= common);
        // A node that is an ancestor of this node precedes it, and only names below the ancestor
        // are between them. An ancestor that is not also an ancestor of the previous name is
        // therefore empty.
        for depth in common + 1..labels {
            let empty_labels = depth as u8;
            builder.push(index, empty_labels, false, name.suffix(depth), depth);
        }
        let is_required = !is_insecure_delegation(node, statuses[index as usize]);
        builder.push(index, 0, is_required, name, labels);
        previous = name;
    }
    builder.list
}

/// The list of names under construction.
struct ChainNamesBuilder {
    list: Vec<ChainName>,
    /// The ancestors of the current name, from the apex down: number of labels, and index in
    /// `list`.
    ancestors: Vec<(usize, usize)>,
}

impl ChainNamesBuilder {
    fn push(&mut self, node: u32, empty_labels: u8, is_required: bool, name: NameRef<'_>, labels: usize) {
        if let Some((_, parent)) = self.ancestors.last().filter(|_| name.is_wildcard()) {
            self.list[*parent].has_wildcard = true;
        }
        if is_required {
            for (_, index) in &self.ancestors {
                self.list[*index].is_required = true;
            }
        }
        self.ancestors.push((labels, self.list.len()));
        self.list.push(ChainName { node, empty_labels, is_required, has_wildcard: false });
    }
}

/// The number of labels that two names have in common, counted from the right.
pub(crate) fn common_label_count(a: NameRef<'_>, b: NameRef<'_>) -> usize {
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
pub(crate) fn insert_rrsig(types: &mut Vec<Rtype>, status: NameStatus) {
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
