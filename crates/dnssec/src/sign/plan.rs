//! The plan of the signed zone: its names in order, with the RRsets of each, including those of the
//! chain.

use super::{SignError, SignOptions};
use crate::denial::names::{ChainName, chain_names, complete_types, is_kept};
use crate::denial::nsec3::chain::{self, HashedName};
use crate::denial::nsec5::{self, Nsec5Error};
use crate::denial::{self, Mapping, Nsec3Params, nsec};
use nonesuch_proto::{MAX_NAME, NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset, name_statuses};
use std::cmp::Ordering;

/// No node, or no record of the chain.
const NONE: u32 = u32::MAX;

/// A name of the signed zone: a node of the unsigned zone, the owner of a chain record, or both. An
/// index that does not apply is [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Index of the node.
    node: u32,
    /// Index of the chain record in the chain.
    link: u32,
}

impl Item {
    pub(super) const fn is_apex(self) -> bool {
        self.node == 0
    }
}

/// The denial chain, in its order.
enum Chain {
    /// Indexes of nodes.
    Nsec(Vec<u32>),
    /// The contents already have the chain records, which remain unchanged.
    Stored,
    /// Hashed names.
    Nsec3 { names: Vec<HashedName>, params: Nsec3Params, opt_out: bool },
    /// Names with VRF hashes by the key with this key tag.
    Nsec5 { names: Vec<nsec5::chain::HashedName>, tag: u16, opt_out: bool },
}

/// An RRset of the signed zone.
#[derive(Clone, Copy)]
pub(super) struct PlannedRrset<'p> {
    pub(super) rtype: Rtype,
    pub(super) ttl: u32,
    pub(super) records: PlannedRecords<'p>,
    /// Whether the RRset gets signatures.
    pub(super) signed: bool,
}

impl PlannedRrset<'_> {
    /// Whether the RRset is a record of the chain.
    pub(super) const fn is_of_chain(&self) -> bool {
        matches!(self.records, PlannedRecords::Generated(_))
            || matches!(self.rtype, Rtype::NSEC | Rtype::NSEC3)
    }
}

/// The records of an RRset.
#[derive(Clone, Copy)]
pub(super) enum PlannedRecords<'p> {
    /// The records of the zone.
    Stored(Rrset<'p>),
    /// RDATA of the only record, generated for the chain.
    Generated(&'p [u8]),
}

impl PlannedRecords<'_> {
    pub(super) const fn count(self) -> u64 {
        match self {
            Self::Stored(rrset) => rrset.count() as u64,
            Self::Generated(_) => 1,
        }
    }
}

/// Buffers that are reused for each name. Each chunk of names is visited twice, for signing and for
/// writing: the second visit uses the chain records that the first one generated.
#[derive(Default)]
pub(super) struct VisitBuffers {
    types: Vec<Rtype>,
    /// RDATA of the generated records, one after the other.
    rdata: Vec<u8>,
    /// The generated records, in the order of the visits.
    generated: Vec<ChainRecord>,
    /// The number of generated records that the second visit has used.
    used: usize,
    owner: Vec<u8>,
}

/// A record of the chain.
#[derive(Clone)]
struct ChainRecord {
    link: u32,
    rtype: Rtype,
    rdata: std::ops::Range<usize>,
}

impl VisitBuffers {
    /// Clears the generated records; visits of other names follow.
    pub(super) fn clear(&mut self) {
        self.rdata.clear();
        self.generated.clear();
        self.used = 0;
    }

    /// Prepares the second visit of the same names in the same order.
    pub(super) const fn rewind(&mut self) {
        self.used = 0;
    }
}

/// The names of the signed zone in canonical order, and the chain.
pub(super) struct Plan<'z> {
    contents: &'z Contents,
    /// The apex of the signed zone, which replaces that of `contents`.
    apex: &'z Contents,
    statuses: Vec<NameStatus>,
    chain: Chain,
    chain_ttl: u32,
    items: Vec<Item>,
}

impl<'z> Plan<'z> {
    pub(super) fn new(
        contents: &'z Contents,
        apex: &'z Contents,
        options: &SignOptions<'_>,
    ) -> Result<Self, SignError> {
        let soa = contents.soa().ok_or_else(|| SignError::NoSoa(contents.apex().clone()))?;
        let statuses = name_statuses(contents);
        let kept: Vec<u32> = contents
            .nodes()
            .filter(|node| is_kept(contents, *node))
            .map(|node| node.index() as u32)
            .collect();
        let in_zone = |index: &&u32| statuses[**index as usize].is_in_chain();
        let chained: Vec<u32> = kept.iter().filter(in_zone).copied().collect();
        let opt_out = options.mechanism.is_opt_out();
        let (chain, items) = match options.mechanism.mapping() {
            Mapping::Itself => (Chain::Nsec(chained), link_nodes(&kept, &statuses)),
            Mapping::Sha1 => {
                let names = hashed_names(contents, &statuses, &chained, options)?;
                let items = merge_hashed(contents, &kept, &names, |entry| chain::label(&entry.hash));
                (Chain::Nsec3 { names, params: options.nsec3.clone(), opt_out }, items)
            }
            Mapping::Vrf => {
                let (names, tag) = proved_names(contents, &statuses, &chained, options)?;
                let items = merge_hashed(contents, &kept, &names, |entry| nsec5::chain::label(&entry.hash));
                (Chain::Nsec5 { names, tag, opt_out }, items)
            }
        };
        // Contents have 32-bit offsets for names.
        let octets =
            || contents.nodes().map(|node| node.name().len()).sum::<usize>() + chain.owner_octets(contents);
        if items.len() > u32::MAX as usize / MAX_NAME && octets() > u32::MAX as usize {
            return Err(SignError::TooLarge);
        }
        // RFC 9077 §3: the minimum of the TTL of the SOA record and its MINIMUM field.
        Ok(Self { contents, apex, statuses, chain, chain_ttl: soa.negative_ttl(), items })
    }

    /// A plan of `contents` unchanged, including its chain records.
    pub(super) fn of_all(contents: &'z Contents, statuses: Vec<NameStatus>) -> Self {
        let items = (0..contents.node_count() as u32).map(|node| Item { node, link: NONE }).collect();
        Self { contents, apex: contents, statuses, chain: Chain::Stored, chain_ttl: 0, items }
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn zone(&self) -> NameRef<'_> {
        self.contents.apex().view()
    }

    /// Number of RRsets of the signed zone that get signatures.
    pub(super) fn count_signed(&self) -> u64 {
        let of_chain = self.items.iter().filter(|item| item.link != NONE).count() as u64;
        let of_node = |index: usize| {
            let Some(node) = self.node(index as u32) else { return 0 };
            let signed = |rrset: &Rrset<'_>| denial::is_signed(rrset.rtype(), self.statuses[index]);
            self.remaining_rrsets(node).filter(signed).count() as u64
        };
        (0..self.contents.node_count()).map(of_node).sum::<u64>() + of_chain
    }

    /// The name of `item`.
    pub(super) fn owner<'r>(&'r self, item: Item, buffer: &'r mut Vec<u8>) -> NameRef<'r> {
        match (self.node(item.node), &self.chain) {
            (None, Chain::Nsec3 { names, .. }) => {
                buffer.clear();
                chain::push_owner(&names[item.link as usize].hash, self.zone(), buffer);
                NameRef::from_checked(buffer)
            }
            (None, Chain::Nsec5 { names, .. }) => {
                buffer.clear();
                nsec5::chain::push_owner(&names[item.link as usize].hash, self.zone(), buffer);
                NameRef::from_checked(buffer)
            }
            (node, _) => node.map_or(NameRef::ROOT, Node::name),
        }
    }

    /// Passes every RRset of `item` to `visit`, in the order of types, with its owner.
    pub(super) fn visit(
        &self,
        item: Item,
        buffers: &mut VisitBuffers,
        mut visit: impl FnMut(NameRef<'_>, PlannedRrset<'_>),
    ) {
        let chain_record = self.chain_record(item.link, buffers);
        let mut chain_rtype = chain_record.as_ref().map(|record| record.rtype);
        let chain_rdata = chain_record.map_or(0..0, |record| record.rdata);
        let mut owner = std::mem::take(&mut buffers.owner);
        let name = self.owner(item, &mut owner);
        let status = self.statuses.get(item.node as usize).copied().unwrap_or(NameStatus::Authoritative);
        let records = PlannedRecords::Generated(&buffers.rdata[chain_rdata]);
        let chain_rrset = |rtype| PlannedRrset { rtype, ttl: self.chain_ttl, records, signed: true };
        for rrset in self.node(item.node).into_iter().flat_map(|node| self.remaining_rrsets(node)) {
            if let Some(rtype) = chain_rtype.take_if(|rtype| *rtype < rrset.rtype()) {
                visit(name, chain_rrset(rtype));
            }
            let (rtype, ttl) = (rrset.rtype(), rrset.ttl());
            let signed = denial::is_signed(rtype, status);
            visit(name, PlannedRrset { rtype, ttl, records: PlannedRecords::Stored(rrset), signed });
        }
        if let Some(rtype) = chain_rtype {
            visit(name, chain_rrset(rtype));
        }
        buffers.owner = owner;
    }

    /// The chain record with the index `link`: from the first visit, or generated now. `None` if
    /// there is no such record.
    fn chain_record(&self, link: u32, buffers: &mut VisitBuffers) -> Option<ChainRecord> {
        if let Some(record) = buffers.generated.get(buffers.used).filter(|record| record.link == link) {
            buffers.used += 1;
            return Some(record.clone());
        }
        let start = buffers.rdata.len();
        let rtype = self.generate_record(link, buffers)?;
        let record = ChainRecord { link, rtype, rdata: start..buffers.rdata.len() };
        buffers.generated.push(record.clone());
        buffers.used = buffers.generated.len();
        Some(record)
    }

    /// Appends the RDATA of the chain record with the index `link`; returns its type.
    fn generate_record(&self, link: u32, buffers: &mut VisitBuffers) -> Option<Rtype> {
        if link == NONE {
            return None;
        }
        let link = link as usize;
        match &self.chain {
            Chain::Stored => None,
            Chain::Nsec(nodes) => {
                let next = nodes[(link + 1) % nodes.len()];
                self.collect_types(nodes[link], &mut buffers.types);
                let next = self.contents.node(next as usize).name();
                nsec::chain::push_rdata(next, &mut buffers.types, &mut buffers.rdata);
                Some(Rtype::NSEC)
            }
            Chain::Nsec3 { names, params, opt_out } => {
                let next = &names[(link + 1) % names.len()].hash;
                self.collect_complete_types(names[link].name, &mut buffers.types);
                chain::push_rdata(params, *opt_out, next, &buffers.types, &mut buffers.rdata);
                Some(Rtype::NSEC3)
            }
            Chain::Nsec5 { names, tag, opt_out } => {
                let next = &names[(link + 1) % names.len()].hash;
                let name = names[link].name;
                self.collect_complete_types(name, &mut buffers.types);
                nsec5::chain::push_rdata(*tag, *opt_out, name, next, &buffers.types, &mut buffers.rdata);
                Some(Rtype::NSEC5)
            }
        }
    }

    /// The types that a chain of hashes lists for a name.
    fn collect_complete_types(&self, name: ChainName, types: &mut Vec<Rtype>) {
        types.clear();
        if !name.is_empty() {
            self.collect_types(name.node, types);
            complete_types(types, self.statuses[name.node as usize]);
        }
    }

    /// The types that the bit map of a chain record lists for a node; the mechanism adds its own.
    fn collect_types(&self, index: u32, types: &mut Vec<Rtype>) {
        types.clear();
        let status = self.statuses[index as usize];
        if let Some(node) = self.node(index) {
            denial::push_bitmap_types(self.remaining_rrsets(node).map(Rrset::rtype), status, types);
        }
    }

    /// The node at `index`, for the apex that of the signed zone; `None` for [`NONE`].
    fn node(&self, index: u32) -> Option<Node<'z>> {
        match index {
            NONE => None,
            0 => Some(self.apex.node(0)),
            _ => Some(self.contents.node(index as usize)),
        }
    }

    /// The RRsets of a node that remain in the signed zone. The apex is already prepared.
    fn remaining_rrsets(&self, node: Node<'z>) -> impl Iterator<Item = Rrset<'z>> {
        let (is_apex, apex) = (node.index() == 0, self.contents.apex().view());
        let is_all = is_apex || matches!(self.chain, Chain::Stored);
        let is_generated = move |rtype| denial::is_generated_by_signing(rtype, node.name(), apex);
        node.rrsets().filter(move |rrset| is_all || !is_generated(rrset.rtype()))
    }
}

impl Chain {
    /// Octets of the owner names that the chain adds to the zone.
    fn owner_octets(&self, contents: &Contents) -> usize {
        match self {
            Self::Nsec(_) | Self::Stored => 0,
            Self::Nsec3 { names, .. } => {
                names.len() * (1 + denial::nsec3::LABEL + contents.apex().view().len())
            }
            Self::Nsec5 { names, .. } => names.len() * (1 + nsec5::LABEL + contents.apex().view().len()),
        }
    }
}

/// Assigns NSEC records to the names of the zone (RFC 4035 §2.3).
fn link_nodes(kept: &[u32], statuses: &[NameStatus]) -> Vec<Item> {
    let mut next = 0;
    kept.iter()
        .map(|&node| {
            if !statuses[node as usize].is_in_chain() {
                return Item { node, link: NONE };
            }
            next += 1;
            Item { node, link: next - 1 }
        })
        .collect()
}

/// The names of an NSEC3 chain, sorted by hash.
fn hashed_names(
    contents: &Contents,
    statuses: &[NameStatus],
    chained: &[u32],
    options: &SignOptions<'_>,
) -> Result<Vec<HashedName>, SignError> {
    let mut names: Vec<ChainName> = chain_names(contents, statuses, chained);
    if options.mechanism.is_opt_out() {
        names.retain(|name| name.required);
    }
    let hashed = chain::hash_names(contents, &names, &options.nsec3);
    let collision = hashed.iter().zip(hashed.iter().skip(1)).find(|(a, b)| a.hash == b.hash);
    if let Some((a, b)) = collision {
        let (first, second) = (a.name.name(contents).to_name(), b.name.name(contents).to_name());
        return Err(SignError::HashCollision { first, second });
    }
    Ok(hashed)
}

/// The names of an NSEC5 chain with their hashes from the proofs, and the key tag.
fn proved_names(
    contents: &Contents,
    statuses: &[NameStatus],
    chained: &[u32],
    options: &SignOptions<'_>,
) -> Result<(Vec<nsec5::chain::HashedName>, u16), SignError> {
    let proofs = options.nsec5.ok_or(Nsec5Error::NoProofs)?.proofs;
    let names =
        nsec5::names_of_chain(chain_names(contents, statuses, chained), options.mechanism.is_opt_out());
    let hashed = nsec5::chain::link(contents, &names, proofs);
    let foreign = || Nsec5Error::ForeignProofs { zone: contents.apex().clone() };
    Ok((hashed.ok_or_else(foreign)?, proofs.key().tag()))
}

/// Merges the owners of the records of `hashed`, sorted by label and all directly below the apex,
/// with the nodes in canonical order.
fn merge_hashed<T, const OCTETS: usize>(
    contents: &Contents,
    kept: &[u32],
    hashed: &[T],
    label: impl Fn(&T) -> [u8; OCTETS],
) -> Vec<Item> {
    let mut items = Vec::with_capacity(kept.len() + hashed.len());
    let mut link = 0;
    for &node in kept {
        let mut here = NONE;
        while let Some(entry) = hashed.get(link) {
            match cmp_hashed(contents, &label(entry), node) {
                Ordering::Less => items.push(Item { node: NONE, link: link as u32 }),
                Ordering::Equal => here = link as u32,
                Ordering::Greater => break,
            }
            link += 1;
        }
        items.push(Item { node, link: here });
    }
    items.extend((link..hashed.len()).map(|link| Item { node: NONE, link: link as u32 }));
    items
}

/// Canonical order of a hashed owner and a node, by the labels directly below the apex.
fn cmp_hashed(contents: &Contents, hashed: &[u8], node: u32) -> Ordering {
    let apex_octets = contents.apex().view().len();
    let mut name = contents.node(node as usize).name();
    if name.len() == apex_octets {
        return Ordering::Greater;
    }
    let whole = name.len();
    while let Some(parent) = name.parent().filter(|parent| parent.len() > apex_octets) {
        name = parent;
    }
    let label = name.labels().next().unwrap_or_default();
    let order = hashed.iter().copied().cmp(label.iter().map(u8::to_ascii_lowercase));
    // A node follows the name that it is below.
    order.then(if name.len() < whole { Ordering::Less } else { Ordering::Equal })
}
