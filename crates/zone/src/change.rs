//! Change sets: the records that one version of a zone has and the next has not, and the other way round.
//!
//! A change set holds two sides in the form of [`Contents`], so that whoever walks a zone walks a change set too.
//! RRsets are the unit: one whose TTL changes is removed and added as a whole (RFC 2181 §5.2: an RRset has one TTL).
//! Records are compared octet by octet, so that applying the set gives the new version with its letter case; a name
//! whose own case changes is removed and added.

mod apply;
mod text;

pub use apply::{ChangeError, ChangeFault, SerialRule, TouchedName};
pub use text::ChangeReadError;
pub(crate) use text::read_part;

use crate::contents::{Contents, Node, NodesBuilder, Rrset};
use nonesuch_proto::{Name, Rtype, rdata};
use std::cmp::Ordering;

/// What is removed from a zone and what is added to it.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    removed: Contents,
    added: Contents,
    /// For each record of the side, in its order, the line that it was read from; empty where it was not read.
    removed_lines: Vec<u32>,
    added_lines: Vec<u32>,
}

impl ChangeSet {
    /// What turns `old` into `new`, as far as RRsets are concerned that `takes` says yes to. Both are walked once,
    /// side by side.
    #[must_use]
    pub fn between(old: &Contents, new: &Contents, takes: impl Fn(Rrset<'_>) -> bool) -> Self {
        Self::between_nodes(old, new, |_, rrset| takes(rrset))
    }

    /// As [`ChangeSet::between`], for a choice that depends on the owner too.
    #[must_use]
    pub fn between_nodes(
        old: &Contents,
        new: &Contents,
        takes: impl Fn(Node<'_>, Rrset<'_>) -> bool,
    ) -> Self {
        let (mut removed, mut added) = (Side::default(), Side::default());
        for (a, b) in pairs(old, new) {
            match (a, b) {
                (Some(a), Some(b)) if a.name().wire() == b.name().wire() => {
                    compare_nodes(a, b, &takes, &mut removed, &mut added);
                }
                (a, b) => {
                    a.into_iter().for_each(|node| removed.push_node(node, &takes));
                    b.into_iter().for_each(|node| added.push_node(node, &takes));
                }
            }
        }
        Self::from_sides(new.apex(), removed.run, added.run)
    }

    /// The change set of these two sides, each with its names in canonical order.
    #[must_use]
    pub fn from_sides(apex: &Name, removed: NodesBuilder, added: NodesBuilder) -> Self {
        Self {
            removed: Contents::from_parts(apex, vec![removed]),
            added: Contents::from_parts(apex, vec![added]),
            removed_lines: Vec::new(),
            added_lines: Vec::new(),
        }
    }

    /// The zone.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        self.added.apex()
    }

    /// The records that are removed. No zone: most names and the SOA record are missing.
    #[must_use]
    pub const fn removed(&self) -> &Contents {
        &self.removed
    }

    /// The records that are added. No zone: most names and the SOA record are missing.
    #[must_use]
    pub const fn added(&self) -> &Contents {
        &self.added
    }

    /// Whether nothing changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.removed.node_count() == 0 && self.added.node_count() == 0
    }

    /// The names at which something changes, in canonical order.
    pub fn touched(&self) -> impl Iterator<Item = TouchedName<'_>> {
        pairs(&self.removed, &self.added).map(|(removed, added)| TouchedName { set: self, removed, added })
    }
}

/// The names of two zones in canonical order, each with its node in the one and in the other; a name in two cases is
/// one name.
pub fn pairs<'a, 'b>(
    old: &'a Contents,
    new: &'b Contents,
) -> impl Iterator<Item = (Option<Node<'a>>, Option<Node<'b>>)> {
    let (mut left, mut right) = (old.nodes().peekable(), new.nodes().peekable());
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => cmp_nodes(*a, *b),
        };
        let a = if order.is_le() { left.next() } else { None };
        let b = if order.is_ge() { right.next() } else { None };
        Some((a, b))
    })
}

/// Whether an RRset is data, and no record that signing makes. DNSKEY, CDS, CDNSKEY and ZONEMD records may stand in an
/// unsigned zone and are data here.
#[must_use]
pub fn is_data(rrset: Rrset<'_>) -> bool {
    !rrset.rtype().is_signature_or_chain()
}

fn cmp_nodes(a: Node<'_>, b: Node<'_>) -> Ordering {
    let (a, b) = (a.name(), b.name());
    if a.wire() == b.wire() { Ordering::Equal } else { a.cmp_canonical(b) }
}

/// The order of RRsets within a node.
fn rank(rrset: Rrset<'_>) -> (Rtype, bool) {
    (rrset.covered(), rrset.rtype() == Rtype::RRSIG)
}

/// One side of a change set under construction: names are begun when the first of their records comes.
#[derive(Default)]
struct Side {
    run: NodesBuilder,
    node: Option<usize>,
    rrset: Option<(Rtype, Rtype)>,
}

impl Side {
    fn push_node(&mut self, node: Node<'_>, takes: &impl Fn(Node<'_>, Rrset<'_>) -> bool) {
        for rrset in node.rrsets().filter(|rrset| takes(node, *rrset)) {
            self.push_rrset(node, rrset);
        }
    }

    fn push_rrset(&mut self, node: Node<'_>, rrset: Rrset<'_>) {
        for rdata in rrset.rdatas() {
            self.push_record(node, rrset, rdata);
        }
    }

    fn push_record(&mut self, node: Node<'_>, rrset: Rrset<'_>, rdata: &[u8]) {
        if self.node != Some(node.index()) {
            self.run.begin_node(node.name());
            (self.node, self.rrset) = (Some(node.index()), None);
        }
        let types = (rrset.rtype(), rrset.covered());
        if self.rrset != Some(types) {
            self.run.begin_rrset(types.0, types.1, rrset.ttl());
            self.rrset = Some(types);
        }
        self.run.push_record(|out| out.extend_from_slice(rdata));
    }
}

fn compare_nodes(
    a: Node<'_>,
    b: Node<'_>,
    takes: &impl Fn(Node<'_>, Rrset<'_>) -> bool,
    removed: &mut Side,
    added: &mut Side,
) {
    let mut left = a.rrsets().filter(|rrset| takes(a, *rrset)).peekable();
    let mut right = b.rrsets().filter(|rrset| takes(b, *rrset)).peekable();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(x), Some(y)) => rank(*x).cmp(&rank(*y)),
        };
        let x = if order.is_le() { left.next() } else { None };
        let y = if order.is_ge() { right.next() } else { None };
        match (x, y) {
            (Some(x), Some(y)) if x.ttl() == y.ttl() => {
                compare_rrsets(Placed { node: a, rrset: x }, Placed { node: b, rrset: y }, removed, added)
            }
            (x, y) => {
                x.into_iter().for_each(|rrset| removed.push_rrset(a, rrset));
                y.into_iter().for_each(|rrset| added.push_rrset(b, rrset));
            }
        }
    }
}

/// An RRset and its node.
#[derive(Clone, Copy)]
struct Placed<'z> {
    node: Node<'z>,
    rrset: Rrset<'z>,
}

fn compare_rrsets(before: Placed<'_>, after: Placed<'_>, removed: &mut Side, added: &mut Side) {
    let (mut left, mut right) = (before.rrset.rdatas().peekable(), after.rrset.rdatas().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) if old == new => Ordering::Equal,
            (Some(old), Some(new)) => rdata::cmp_canonical(before.rrset.rtype(), old, new),
        };
        let old = if order.is_le() { left.next() } else { None };
        let new = if order.is_ge() { right.next() } else { None };
        if old != new {
            old.into_iter().for_each(|rdata| removed.push_record(before.node, before.rrset, rdata));
            new.into_iter().for_each(|rdata| added.push_record(after.node, after.rrset, rdata));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
