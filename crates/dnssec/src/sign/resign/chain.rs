//! Updates the chain: determines the next name of each planned name, and the names whose next name
//! changes because a name after them joins or leaves the chain.
//!
//! For both mechanisms, the records in canonical order are in the order of the chain: the canonical
//! order of NSEC3 owners is the order of the hashes.

use super::affected::ChainLink;
use super::view::View;
use crate::denial::Mechanism;
use crate::denial::nsec3::chain::hash_of;
use crate::denial::nsec3::{Nsec3, Nsec3Params, OPT_OUT};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{FoundNode, NameStatus, Node};
use std::borrow::Cow;

/// A name of the signed zone that is planned again.
pub(super) struct Entry<'z> {
    pub(super) name: NameRef<'z>,
    /// Its index in the previous zone, or the index at which it would be inserted.
    pub(super) place: usize,
    /// Whether the previous zone has the name.
    pub(super) found: bool,
    /// Its data in the new zone; `None` if it has none.
    pub(super) data: Option<Node<'z>>,
    pub(super) status: NameStatus,
    /// Bit map of its chain record in the new zone; `None` if it has no record.
    pub(super) link: Option<Cow<'z, [u8]>>,
    /// Whether the previous zone has a chain record here.
    was_linked: bool,
}

/// A member of the chain.
#[derive(Clone, Copy)]
enum Member {
    /// A node of the previous zone that is not planned again.
    Old(usize),
    Entry(usize),
}

/// The chain of the new zone around the names that are planned again.
pub(super) struct ChainUpdate<'v, 'z> {
    pub(super) view: &'v View<'z>,
    /// Type of the chain records.
    pub(super) rtype: Rtype,
    /// Sorted in canonical order; the apex is first.
    pub(super) entries: Vec<Entry<'z>>,
}

impl<'v, 'z> ChainUpdate<'v, 'z> {
    /// Combines the `changed` names, the changed `links` of the chain, and the nodes with `stale`
    /// signatures, and finds the chain records that change with them. `changed` and `links` must be
    /// in canonical order; `stale` need not be.
    pub(super) fn new(
        view: &'v View<'z>,
        rtype: Rtype,
        changed: &[NameRef<'z>],
        links: &'z [ChainLink],
        stale: &[u32],
    ) -> Self {
        let mut mending = Self { view, rtype, entries: Vec::with_capacity(changed.len() * 2 + stale.len()) };
        let mut touched = view.touched.iter().zip(view.places).peekable();
        for &name in changed {
            // All names of the change set are in `changed`.
            let known = touched.next_if(|(other, _)| **other == name);
            let found = known.map_or_else(|| view.old.find(name), |(_, found)| *found);
            let entry = mending.entry(name, found);
            mending.entries.push(entry);
        }
        for link in links {
            let owner = link.owner.view();
            let mut entry = mending.entry(owner, view.old.find(owner));
            entry.link = link.types.as_deref().map(Cow::Borrowed);
            mending.entries.push(entry);
        }
        mending.sort(links);
        mending.add_nodes(stale.iter().map(|index| *index as usize).collect());
        let before = mending.find_predecessors();
        mending.add_nodes(before);
        mending
    }

    /// A name with its data in the new zone and its chain record of the previous zone.
    fn entry(&self, name: NameRef<'z>, found: Result<FoundNode<'z>, usize>) -> Entry<'z> {
        let (place, old) = match found {
            Ok(found) => (found.index, Some(found.node)),
            Err(place) => (place, None),
        };
        let link = old.and_then(|node| node.rrset(self.rtype)).and_then(|rrset| rrset.rdatas().next());
        let link = link.map(|rdata| Cow::Borrowed(bitmap_of(self.rtype, rdata)));
        let data = self.view.data_over(name, || old);
        let status = data.map_or(NameStatus::Authoritative, |node| self.view.status(name, node));
        let was_linked = link.is_some();
        Entry { name, place, found: old.is_some(), data, status, link, was_linked }
    }

    /// Sorts the entries and joins those with the same name. The chain record is that in `links`,
    /// which has all names with a possible change of the chain.
    fn sort(&mut self, links: &[ChainLink]) {
        let key = |entry: &Entry<'_>| (entry.place, entry.found);
        self.entries.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp_canonical(b.name)));
        let hashed = self.rtype == Rtype::NSEC3;
        self.entries.dedup_by(|later, first| {
            let same = key(later) == key(first) && (first.found || later.name == first.name);
            if same {
                let at = links.binary_search_by(|link| link.owner.view().cmp_canonical(first.name));
                if let Ok(at) = at {
                    first.link = links[at].types.clone().map(Cow::Owned);
                }
            }
            same
        });
        debug_assert!(hashed || self.entries.len() == links.len());
    }

    /// Adds nodes of the previous zone to the entries, without changes.
    fn add_nodes(&mut self, mut nodes: Vec<usize>) {
        nodes.retain(|node| {
            let here = self.entries.binary_search_by_key(&(*node, true), |entry| (entry.place, entry.found));
            here.is_err()
        });
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.is_empty() {
            return;
        }
        for place in nodes {
            let Some(node) = self.view.old.node(place) else { continue };
            let entry = self.entry(node.name(), Ok(FoundNode { index: place, node }));
            self.entries.push(entry);
        }
        // The sort is stable: names with the same insertion index keep their order.
        self.entries.sort_by_key(|entry| (entry.place, entry.found));
    }

    /// The nodes between entry `index - 1` and entry `index`.
    fn gap(&self, index: usize) -> std::ops::Range<usize> {
        let start = match index.checked_sub(1).map(|before| &self.entries[before]) {
            Some(before) => before.place + usize::from(before.found),
            None => 0,
        };
        let end = self.entries.get(index).map_or_else(|| self.view.old.node_count(), |entry| entry.place);
        start..end
    }

    /// The first chain member among the nodes between entry `index - 1` and entry `index`.
    fn first_between(&self, index: usize) -> Option<Member> {
        self.view.old.first_chain_node(self.gap(index), self.rtype).map(Member::Old)
    }

    /// The last chain member among these nodes.
    fn last_between(&self, index: usize) -> Option<Member> {
        self.view.old.last_chain_node(self.gap(index), self.rtype).map(Member::Old)
    }

    /// Nodes of the previous zone with a new next name, because names after them join or leave the
    /// chain.
    fn find_predecessors(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let mut last = None;
        // A change before all members affects the last member.
        let mut wraps = false;
        for (index, entry) in self.entries.iter().enumerate() {
            last = self.last_between(index).or(last);
            if entry.was_linked != entry.link.is_some() {
                match last {
                    Some(Member::Old(node)) => found.push(node),
                    Some(Member::Entry(_)) => {}
                    None => wraps = true,
                }
            }
            if entry.link.is_some() {
                last = Some(Member::Entry(index));
            }
        }
        last = self.last_between(self.entries.len()).or(last);
        if let (true, Some(Member::Old(node))) = (wraps, last) {
            found.push(node);
        }
        found
    }

    /// For each entry, the next member of the chain.
    fn successors(&self) -> Vec<Option<Member>> {
        let count = self.entries.len();
        let linked = |index: usize| self.entries[index].link.is_some().then_some(Member::Entry(index));
        // The next name of the last member is the first member.
        let first = (0..count).find_map(|index| self.first_between(index).or_else(|| linked(index)));
        let mut next = self.first_between(count).or(first);
        let mut successors = vec![None; count];
        for index in (0..count).rev() {
            successors[index] = next;
            next = self.first_between(index).or_else(|| linked(index)).or(next);
        }
        successors
    }

    fn name_of(&self, member: Member) -> Option<NameRef<'z>> {
        match member {
            Member::Old(place) => self.view.old.node(place).map(Node::name),
            Member::Entry(index) => Some(self.entries[index].name),
        }
    }

    /// RDATA of the chain record of each entry, empty if it has none. `None` if an owner of the
    /// previous chain is not a hash.
    pub(super) fn rdatas(&self, mechanism: Mechanism, params: &Nsec3Params) -> Option<Vec<Vec<u8>>> {
        let rdata = |(entry, next): (&Entry<'_>, Option<Member>)| {
            let mut rdata = Vec::new();
            let (Some(types), Some(next)) = (&entry.link, next) else { return Some(rdata) };
            let next = self.name_of(next)?;
            if self.rtype == Rtype::NSEC {
                next.push_canonical(&mut rdata);
            } else {
                params.push_fields(if mechanism.is_opt_out() { OPT_OUT } else { 0 }, &mut rdata);
                let hash = hash_of(next, self.view.old.apex().view())?;
                rdata.push(hash.len() as u8);
                rdata.extend_from_slice(&hash);
            }
            rdata.extend_from_slice(types);
            Some(rdata)
        };
        self.entries.iter().zip(self.successors()).map(rdata).collect()
    }
}

/// The bit map of a chain record; empty if the record is malformed.
fn bitmap_of(rtype: Rtype, rdata: &[u8]) -> &[u8] {
    match rtype {
        Rtype::NSEC => NameRef::split_from(rdata).map_or(&[][..], |(_, map)| map),
        _ => Nsec3::parse(rdata).map_or(&[][..], |fields| fields.bitmap),
    }
}
