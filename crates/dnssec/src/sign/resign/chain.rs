//! Updates the chain of NSEC or NSEC3 records: determines the next name of each planned name, and
//! finds the names whose next name changes because a name after them joins or leaves the chain.
//!
//! For both mechanisms, the canonical order of the owners is the order of the chain, because the
//! canonical order of NSEC3 owners is the order of their hashes.

use super::affected::ChainLink;
use super::view::View;
use crate::denial::Mechanism;
use crate::denial::nsec3::chain::decode_owner;
use crate::denial::nsec3::{Nsec3, Nsec3Params, OPT_OUT_FLAG};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{FoundNode, NameStatus, Node};
use std::borrow::Cow;

/// A name of the signed zone that is planned again.
pub(super) struct PlannedEntry<'z> {
    pub(super) name: NameRef<'z>,
    /// Its index in the previous zone, or the index at which it would be inserted.
    pub(super) position: usize,
    /// Whether the previous zone has the name.
    pub(super) in_previous: bool,
    /// The node with its data in the new zone; `None` if it has no data.
    pub(super) data: Option<Node<'z>>,
    pub(super) status: NameStatus,
    /// Bit map of its chain record in the new zone; `None` if it has no chain record.
    pub(super) bitmap: Option<Cow<'z, [u8]>>,
    /// Whether it has a chain record in the previous zone.
    had_chain_record: bool,
}

/// A name with a chain record in the new zone.
#[derive(Clone, Copy)]
enum Member {
    /// A node of the previous zone that is not planned again, by its index in that zone.
    Unchanged(usize),
    /// A name that is planned again, by its index in [`ChainUpdate::entries`].
    Planned(usize),
}

/// The chain of the new zone around the names that are planned again.
pub(super) struct ChainUpdate<'v, 'z> {
    pub(super) view: &'v View<'z>,
    /// Type of the chain records.
    pub(super) rtype: Rtype,
    /// Sorted in canonical order; the apex is first.
    pub(super) entries: Vec<PlannedEntry<'z>>,
}

impl<'v, 'z> ChainUpdate<'v, 'z> {
    /// Combines the `affected` names, the changed `links` of the chain, and the nodes with `stale`
    /// signatures (indexes in the previous zone), and adds the names whose chain records change
    /// with them. `affected` and `links` must be in canonical order; `stale` need not be.
    pub(super) fn new(
        view: &'v View<'z>,
        rtype: Rtype,
        affected: &[NameRef<'z>],
        links: &'z [ChainLink],
        stale: &[u32],
    ) -> Self {
        let mut update = Self { view, rtype, entries: Vec::with_capacity(affected.len() * 2 + stale.len()) };
        let mut changed_owners = view.changed_owners.iter().zip(view.old_positions).peekable();
        for &name in affected {
            // All changed owners are in `affected`, so `next_if` finds each of them in turn.
            let known = changed_owners.next_if(|(other, _)| **other == name);
            let found = known.map_or_else(|| view.old.find(name), |(_, found)| *found);
            let entry = update.entry(name, found);
            update.entries.push(entry);
        }
        for link in links {
            let owner = link.owner.view();
            let mut entry = update.entry(owner, view.old.find(owner));
            entry.bitmap = link.bitmap.as_deref().map(Cow::Borrowed);
            update.entries.push(entry);
        }
        update.sort(links);
        update.add_nodes(stale.iter().map(|index| *index as usize).collect());
        let predecessors = update.find_predecessors();
        update.add_nodes(predecessors);
        update
    }

    /// The entry of a name with its data in the new zone, and with the bit map of its chain record
    /// in the previous zone. `found` is the result of a lookup in the previous zone.
    fn entry(&self, name: NameRef<'z>, found: Result<FoundNode<'z>, usize>) -> PlannedEntry<'z> {
        let (position, old) = match found {
            Ok(found) => (found.index, Some(found.node)),
            Err(insert_at) => (insert_at, None),
        };
        let chain_rdata = old.and_then(|node| node.rrset(self.rtype)).and_then(|rrset| rrset.rdatas().next());
        let bitmap = chain_rdata.map(|rdata| Cow::Borrowed(bitmap_of(self.rtype, rdata)));
        let data = self.view.data_or_previous(name, || old);
        let status = data.map_or(NameStatus::Authoritative, |node| self.view.status(name, node));
        let had_chain_record = bitmap.is_some();
        PlannedEntry { name, position, in_previous: old.is_some(), data, status, bitmap, had_chain_record }
    }

    /// Sorts the entries and joins those with the same name. The joined entry gets the bit map in
    /// `links`, which has all names whose chain record may change.
    fn sort(&mut self, links: &[ChainLink]) {
        let key = |entry: &PlannedEntry<'_>| (entry.position, entry.in_previous);
        self.entries.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp_canonical(b.name)));
        let is_hashed = self.rtype == Rtype::NSEC3;
        self.entries.dedup_by(|later, first| {
            let is_same = key(later) == key(first) && (first.in_previous || later.name == first.name);
            if is_same {
                let at = links.binary_search_by(|link| link.owner.view().cmp_canonical(first.name));
                if let Ok(at) = at {
                    first.bitmap = links[at].bitmap.clone().map(Cow::Owned);
                }
            }
            is_same
        });
        debug_assert!(is_hashed || self.entries.len() == links.len());
    }

    /// Adds nodes of the previous zone, by their indexes, to the entries with unchanged data.
    fn add_nodes(&mut self, mut nodes: Vec<usize>) {
        nodes.retain(|node| {
            let found = self
                .entries
                .binary_search_by_key(&(*node, true), |entry| (entry.position, entry.in_previous));
            found.is_err()
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
        // New names with the same position keep their canonical order, because the sort is stable.
        self.entries.sort_by_key(|entry| (entry.position, entry.in_previous));
    }

    /// The nodes of the previous zone between entry `index - 1` and entry `index`, or the end of
    /// the zone.
    fn nodes_before_entry(&self, index: usize) -> std::ops::Range<usize> {
        let start = match index.checked_sub(1).map(|before| &self.entries[before]) {
            Some(before) => before.position + usize::from(before.in_previous),
            None => 0,
        };
        let end = self.entries.get(index).map_or_else(|| self.view.old.node_count(), |entry| entry.position);
        start..end
    }

    /// The first member of the chain among the nodes between entry `index - 1` and entry `index`.
    fn first_member_before(&self, index: usize) -> Option<Member> {
        self.view.old.first_chain_node(self.nodes_before_entry(index), self.rtype).map(Member::Unchanged)
    }

    /// The last member of the chain among the nodes between entry `index - 1` and entry `index`.
    fn last_member_before(&self, index: usize) -> Option<Member> {
        self.view.old.last_chain_node(self.nodes_before_entry(index), self.rtype).map(Member::Unchanged)
    }

    /// Unchanged nodes whose chain record gets another next name, because the name after them joins
    /// or leaves the chain.
    fn find_predecessors(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let mut last = None;
        // The next name of the last member is the first one. So a change before all members affects
        // the last member.
        let mut wraps = false;
        for (index, entry) in self.entries.iter().enumerate() {
            last = self.last_member_before(index).or(last);
            if entry.had_chain_record != entry.bitmap.is_some() {
                match last {
                    Some(Member::Unchanged(node)) => found.push(node),
                    Some(Member::Planned(_)) => {}
                    None => wraps = true,
                }
            }
            if entry.bitmap.is_some() {
                last = Some(Member::Planned(index));
            }
        }
        last = self.last_member_before(self.entries.len()).or(last);
        if let (true, Some(Member::Unchanged(node))) = (wraps, last) {
            found.push(node);
        }
        found
    }

    /// For each entry, the next member of the chain.
    fn successors(&self) -> Vec<Option<Member>> {
        let count = self.entries.len();
        let planned_member =
            |index: usize| self.entries[index].bitmap.is_some().then_some(Member::Planned(index));
        // The next name of the last member is the first member.
        let first =
            (0..count).find_map(|index| self.first_member_before(index).or_else(|| planned_member(index)));
        let mut next = self.first_member_before(count).or(first);
        let mut successors = vec![None; count];
        for index in (0..count).rev() {
            successors[index] = next;
            next = self.first_member_before(index).or_else(|| planned_member(index)).or(next);
        }
        successors
    }

    fn name_of(&self, member: Member) -> Option<NameRef<'z>> {
        match member {
            Member::Unchanged(index) => self.view.old.node(index).map(Node::name),
            Member::Planned(index) => Some(self.entries[index].name),
        }
    }

    /// RDATA of the chain record of each entry, empty if it has no chain record. `None` if the
    /// first label of an NSEC3 owner of the previous zone is not a hash.
    pub(super) fn chain_rdatas(&self, mechanism: Mechanism, params: &Nsec3Params) -> Option<Vec<Vec<u8>>> {
        let rdata = |(entry, next): (&PlannedEntry<'_>, Option<Member>)| {
            let mut rdata = Vec::new();
            let (Some(bitmap), Some(next)) = (&entry.bitmap, next) else { return Some(rdata) };
            let next = self.name_of(next)?;
            if self.rtype == Rtype::NSEC {
                next.push_canonical(&mut rdata);
            } else {
                params.push_fields(if mechanism.is_opt_out() { OPT_OUT_FLAG } else { 0 }, &mut rdata);
                let hash = decode_owner(next, self.view.old.apex().view())?;
                rdata.push(hash.len() as u8);
                rdata.extend_from_slice(&hash);
            }
            rdata.extend_from_slice(bitmap);
            Some(rdata)
        };
        self.entries.iter().zip(self.successors()).map(rdata).collect()
    }
}

/// The bit map of a chain record; empty if the record is malformed.
fn bitmap_of(rtype: Rtype, rdata: &[u8]) -> &[u8] {
    match rtype {
        Rtype::NSEC => NameRef::split_from(rdata).map_or(&[][..], |(_, bitmap)| bitmap),
        _ => Nsec3::parse(rdata).map_or(&[][..], |fields| fields.bitmap),
    }
}
