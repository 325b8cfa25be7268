//! The names of a chain of hashes, empty non-terminals among them, and the types that it shows of them (RFC 5155 §7.1;
//! draft-vcelak-nsec5 takes the same).

use super::{insert_type, is_generated_by_signing};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node};

/// A name that a chain of hashes shows: a node, or an empty non-terminal above one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainName {
    /// The node; for an empty non-terminal the first node below it.
    pub(crate) node: u32,
    /// Labels of an empty non-terminal; 0 for a node itself.
    pub(crate) empty_labels: u8,
    /// Whether an NSEC3 opt-out chain must have it too: it is no insecure delegation, and not there for such alone
    /// (RFC 5155 §7.1).
    pub(crate) required: bool,
    /// Whether a wildcard stands directly below it, be it an empty non-terminal.
    pub(crate) has_wildcard: bool,
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

/// Whether anything is left of a node without what signing makes. The apex always stays.
pub(crate) fn is_kept(contents: &Contents, node: Node<'_>) -> bool {
    let made = |rtype| is_generated_by_signing(rtype, node.name(), contents.apex().view());
    node.index() == 0 || node.rrsets().any(|rrset| !made(rrset.rtype()))
}

/// Whether `hash` lies between `owner` and `next` of a record (RFC 5155 §1.3); the last record leads back to the first.
pub(crate) fn covers<H: Ord>(owner: &H, next: &H, hash: &H) -> bool {
    if owner < next { owner < hash && hash < next } else { hash > owner || hash < next }
}

/// A delegation without DS (RFC 5155 §6).
pub(crate) fn is_insecure_delegation(node: Node<'_>, standing: NameStatus) -> bool {
    standing == NameStatus::Delegation && !node.has(Rtype::DS)
}

/// The names of a chain over `nodes` (of the zone, in canonical order, the apex first) and the empty non-terminals
/// between them, in canonical order.
pub(crate) fn chain_names(contents: &Contents, standings: &[NameStatus], nodes: &[u32]) -> Vec<ChainName> {
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
        // A node above this one stands before it, with nothing but names below that node between: an ancestor that is
        // not one of the previous name is empty.
        for depth in common + 1..labels {
            let empty_labels = depth as u8;
            names.push(index, empty_labels, false, name.suffix(depth), depth);
        }
        let required = !is_insecure_delegation(node, standings[index as usize]);
        names.push(index, 0, required, name, labels);
        previous = name;
    }
    names.list
}

/// Names in the making.
struct Names {
    list: Vec<ChainName>,
    /// The names above the current one, from the apex on: labels, and place in `list`.
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

/// How many labels two names share, from the right.
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

/// Adds RRSIG to the `types` shown of a name, where anything is signed there: an insecure delegation has no
/// signature, and an empty non-terminal nothing at all (RFC 5155 §7.1).
pub(crate) fn complete_types(types: &mut Vec<Rtype>, standing: NameStatus) {
    let signed = match standing {
        NameStatus::Delegation => types.contains(&Rtype::DS),
        _ => !types.is_empty(),
    };
    if signed {
        insert_type(types, Rtype::RRSIG);
    }
}

/// The name one label below `encloser` that `name` is or is below (RFC 5155 §1.3).
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

/// `*.encloser`, where that is a name: below an encloser of more than 253 octets nothing stands.
pub(crate) fn wildcard_below(encloser: NameRef<'_>) -> Option<Name> {
    Name::wildcard_below(encloser).ok()
}
