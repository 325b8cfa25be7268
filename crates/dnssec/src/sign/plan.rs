//! The plan of the signed zone: its names in canonical order, and the RRsets of each name,
//! including the chain records.

use super::{SignError, SignOptions};
use crate::denial::names::{ChainName, chain_names, has_source_records, insert_rrsig};
use crate::denial::nsec3::chain::{self, HashedName};
use crate::denial::nsec5::{self, Nsec5Error};
use crate::denial::{self, NameHash, Nsec3Params, nsec};
use nonesuch_proto::{MAX_NAME, NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset, name_statuses};
use std::cmp::Ordering;

/// In place of an index in a [`PlanItem`]: the name has no node, or no chain record.
const NO_INDEX: u32 = u32::MAX;

/// A name of the signed zone: a node of the unsigned zone, the owner of a chain record, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanItem {
    /// Index of the node in the contents, or [`NO_INDEX`].
    node: u32,
    /// Index of the chain record in the [`Chain`], or [`NO_INDEX`].
    chain_index: u32,
}

impl PlanItem {
    /// Whether the name is the apex, which is always node 0.
    pub(super) const fn is_apex(self) -> bool {
        self.node == 0
    }
}

/// The names of the denial chain, in the order of the chain.
enum Chain {
    /// Indexes of the nodes with NSEC records.
    Nsec(Vec<u32>),
    /// The contents already have the chain records, which remain unchanged.
    Stored,
    /// Names with their NSEC3 hashes.
    Nsec3 { names: Vec<HashedName>, params: Nsec3Params, opt_out: bool },
    /// Names with their VRF hashes. `tag` is the key tag of the VRF key.
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
    /// Whether the RRset is a chain record: generated, or stored in the contents. The contents of
    /// [`Chain::Stored`] have only NSEC or NSEC3 records as chain records. A stored RRset with the
    /// type number of NSEC5, which is for private use, is data of the zone.
    pub(super) const fn is_chain_record(&self) -> bool {
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

/// Buffers for [`Plan::visit`]. Each chunk of names is visited twice, for signing and for writing.
/// The second visit uses the chain records that the first one generated.
#[derive(Default)]
pub(super) struct VisitBuffers {
    types: Vec<Rtype>,
    /// RDATA of the generated records, one after the other.
    rdata: Vec<u8>,
    /// The generated records, in the order of the visits.
    generated: Vec<ChainRecord>,
    /// The number of records in `generated` that the current visit of the chunk has passed.
    used: usize,
    owner: Vec<u8>,
}

/// A generated chain record.
#[derive(Clone)]
struct ChainRecord {
    chain_index: u32,
    rtype: Rtype,
    /// Its range in [`VisitBuffers::rdata`].
    rdata: std::ops::Range<usize>,
}

impl VisitBuffers {
    /// Prepares the first visit of another chunk: clears the generated records.
    pub(super) fn clear(&mut self) {
        self.rdata.clear();
        self.generated.clear();
        self.used = 0;
    }

    /// Prepares the second visit of the same chunk, which uses the generated records. It must visit
    /// the same names in the same order.
    pub(super) const fn rewind(&mut self) {
        self.used = 0;
    }
}

/// The names of the signed zone in canonical order, and the chain.
pub(super) struct Plan<'z> {
    contents: &'z Contents,
    /// Contents whose node 0 is the apex of the signed zone: the prepared apex, which replaces node
    /// 0 of `contents`, or `contents` itself with a stored chain.
    apex: &'z Contents,
    /// Status of each node of `contents`.
    statuses: Vec<NameStatus>,
    chain: Chain,
    /// TTL of the generated chain records in seconds.
    chain_ttl: u32,
    items: Vec<PlanItem>,
}

impl<'z> Plan<'z> {
    /// Plans the signed zone of the unsigned `contents`. Node 0 of `apex`, the prepared apex
    /// ([`PreparedApex`](super::apex::PreparedApex)), replaces the apex of `contents`.
    ///
    /// # Errors
    /// If the contents have no SOA record, the chain cannot be generated, or the names of the signed
    /// zone exceed 4 GiB.
    pub(super) fn new(
        contents: &'z Contents,
        apex: &'z Contents,
        options: &SignOptions<'_>,
    ) -> Result<Self, SignError> {
        let soa = contents.soa().ok_or_else(|| SignError::NoSoa(contents.apex().clone()))?;
        let statuses = name_statuses(contents);
        let source_nodes: Vec<u32> = contents
            .nodes()
            .filter(|node| has_source_records(contents, *node))
            .map(|node| node.index() as u32)
            .collect();
        let is_in_chain = |index: &&u32| statuses[**index as usize].is_in_chain();
        let chain_nodes: Vec<u32> = source_nodes.iter().filter(is_in_chain).copied().collect();
        let opt_out = options.mechanism.is_opt_out();
        let (chain, items) = match options.mechanism.name_hash() {
            NameHash::Unhashed => (Chain::Nsec(chain_nodes), assign_nsec_records(&source_nodes, &statuses)),
            NameHash::Sha1 => {
                let names = hashed_names(contents, &statuses, &chain_nodes, options)?;
                let items = merge_hashed(contents, &source_nodes, &names, |entry| chain::label(&entry.hash));
                (Chain::Nsec3 { names, params: options.nsec3.clone(), opt_out }, items)
            }
            NameHash::Vrf => {
                let (names, tag) = nsec5_names(contents, &statuses, &chain_nodes, options)?;
                let items =
                    merge_hashed(contents, &source_nodes, &names, |entry| nsec5::chain::label(&entry.hash));
                (Chain::Nsec5 { names, tag, opt_out }, items)
            }
        };
        // Contents refer to their names by offsets of 32 bits. The octets are counted only if names
        // of the maximum length would exceed these.
        let name_octets =
            || contents.nodes().map(|node| node.name().len()).sum::<usize>() + chain.owner_octets(contents);
        if items.len() > u32::MAX as usize / MAX_NAME && name_octets() > u32::MAX as usize {
            return Err(SignError::TooLarge);
        }
        // RFC 9077 §3: the minimum of the TTL of the SOA record and its MINIMUM field.
        Ok(Self { contents, apex, statuses, chain, chain_ttl: soa.negative_ttl(), items })
    }

    /// A plan of `contents` that adds only signatures: the contents already have the chain records.
    pub(super) fn with_stored_chain(contents: &'z Contents, statuses: Vec<NameStatus>) -> Self {
        let items =
            (0..contents.node_count() as u32).map(|node| PlanItem { node, chain_index: NO_INDEX }).collect();
        Self { contents, apex: contents, statuses, chain: Chain::Stored, chain_ttl: 0, items }
    }

    pub(super) fn items(&self) -> &[PlanItem] {
        &self.items
    }

    pub(super) fn zone(&self) -> NameRef<'_> {
        self.contents.apex().view()
    }

    /// Number of RRsets of the signed zone that get signatures.
    pub(super) fn count_signed(&self) -> u64 {
        let chain_records = self.items.iter().filter(|item| item.chain_index != NO_INDEX).count() as u64;
        let of_node = |index: usize| {
            let Some(node) = self.node(index as u32) else { return 0 };
            let signed = |rrset: &Rrset<'_>| denial::is_signed(rrset.rtype(), self.statuses[index]);
            self.remaining_rrsets(node).filter(signed).count() as u64
        };
        (0..self.contents.node_count()).map(of_node).sum::<u64>() + chain_records
    }

    /// The name of `item`. `buffer` is used for the owner of a chain record without a node.
    pub(super) fn owner<'r>(&'r self, item: PlanItem, buffer: &'r mut Vec<u8>) -> NameRef<'r> {
        match (self.node(item.node), &self.chain) {
            (None, Chain::Nsec3 { names, .. }) => {
                buffer.clear();
                chain::push_owner(&names[item.chain_index as usize].hash, self.zone(), buffer);
                NameRef::from_wire_unchecked(buffer)
            }
            (None, Chain::Nsec5 { names, .. }) => {
                buffer.clear();
                nsec5::chain::push_owner(&names[item.chain_index as usize].hash, self.zone(), buffer);
                NameRef::from_wire_unchecked(buffer)
            }
            // An item without a node is the owner of an NSEC3 or NSEC5 record, so the root is never
            // returned.
            (node, _) => node.map_or(NameRef::ROOT, Node::name),
        }
    }

    /// Passes every RRset of `item` to `visit`, in the order of types, with the name of `item`.
    pub(super) fn visit(
        &self,
        item: PlanItem,
        buffers: &mut VisitBuffers,
        mut visit: impl FnMut(NameRef<'_>, PlannedRrset<'_>),
    ) {
        let chain_record = self.chain_record(item.chain_index, buffers);
        let mut chain_rtype = chain_record.as_ref().map(|record| record.rtype);
        let chain_rdata = chain_record.map_or(0..0, |record| record.rdata);
        let mut owner = std::mem::take(&mut buffers.owner);
        let name = self.owner(item, &mut owner);
        // Only nodes have a status; the owner of a chain record without a node is authoritative.
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

    /// The chain record of the next name of a visit. The first visit of a chunk generates the
    /// record, and the second visit finds it in `buffers`. `None` if `chain_index` is [`NO_INDEX`]
    /// or the chain is stored.
    fn chain_record(&self, chain_index: u32, buffers: &mut VisitBuffers) -> Option<ChainRecord> {
        // In the first visit, `used` is the number of generated records, so there is none at this
        // index.
        if let Some(record) =
            buffers.generated.get(buffers.used).filter(|record| record.chain_index == chain_index)
        {
            buffers.used += 1;
            return Some(record.clone());
        }
        let start = buffers.rdata.len();
        let rtype = self.generate_record(chain_index, buffers)?;
        let record = ChainRecord { chain_index, rtype, rdata: start..buffers.rdata.len() };
        buffers.generated.push(record.clone());
        buffers.used = buffers.generated.len();
        Some(record)
    }

    /// Appends the RDATA of the chain record with the index `chain_index` to `buffers.rdata`;
    /// returns its type. `None` if there is no record to generate.
    fn generate_record(&self, chain_index: u32, buffers: &mut VisitBuffers) -> Option<Rtype> {
        if chain_index == NO_INDEX {
            return None;
        }
        let chain_index = chain_index as usize;
        match &self.chain {
            Chain::Stored => None,
            Chain::Nsec(nodes) => {
                let next = nodes[(chain_index + 1) % nodes.len()];
                self.collect_types(nodes[chain_index], &mut buffers.types);
                let next = self.contents.node(next as usize).name();
                nsec::chain::push_rdata(next, &mut buffers.types, &mut buffers.rdata);
                Some(Rtype::NSEC)
            }
            Chain::Nsec3 { names, params, opt_out } => {
                let next = &names[(chain_index + 1) % names.len()].hash;
                self.collect_nsec3_types(names[chain_index].name, &mut buffers.types);
                chain::push_rdata(params, *opt_out, next, &buffers.types, &mut buffers.rdata);
                Some(Rtype::NSEC3)
            }
            Chain::Nsec5 { names, tag, opt_out } => {
                let next = &names[(chain_index + 1) % names.len()].hash;
                let name = names[chain_index].name;
                self.collect_nsec3_types(name, &mut buffers.types);
                nsec5::chain::push_rdata(*tag, *opt_out, name, next, &buffers.types, &mut buffers.rdata);
                Some(Rtype::NSEC5)
            }
        }
    }

    /// Replaces `types` by the types in the bit map of the NSEC3 or NSEC5 record of a name: those
    /// of [`Plan::collect_types`], and RRSIG if the name has signatures. An empty non-terminal has
    /// none.
    fn collect_nsec3_types(&self, name: ChainName, types: &mut Vec<Rtype>) {
        types.clear();
        if !name.is_empty_non_terminal() {
            self.collect_types(name.node, types);
            insert_rrsig(types, self.statuses[name.node as usize]);
        }
    }

    /// Replaces `types` by the types that the bit map of a chain record lists for a node, without
    /// those that the mechanism adds.
    fn collect_types(&self, index: u32, types: &mut Vec<Rtype>) {
        types.clear();
        let status = self.statuses[index as usize];
        if let Some(node) = self.node(index) {
            denial::push_bitmap_types(self.remaining_rrsets(node).map(Rrset::rtype), status, types);
        }
    }

    /// The node of `contents` at `index`; for the apex, node 0 of [`Plan::apex`] instead. `None`
    /// for [`NO_INDEX`].
    fn node(&self, index: u32) -> Option<Node<'z>> {
        match index {
            NO_INDEX => None,
            0 => Some(self.apex.node(0)),
            _ => Some(self.contents.node(index as usize)),
        }
    }

    /// The RRsets of a node without those that the signer generates. All RRsets remain at the apex,
    /// which was prepared without generated ones, and if the chain is stored.
    fn remaining_rrsets(&self, node: Node<'z>) -> impl Iterator<Item = Rrset<'z>> {
        let (is_apex, apex) = (node.index() == 0, self.contents.apex().view());
        let keeps_all = is_apex || matches!(self.chain, Chain::Stored);
        let is_generated = move |rtype| denial::is_generated_by_signing(rtype, node.name(), apex);
        node.rrsets().filter(move |rrset| keeps_all || !is_generated(rrset.rtype()))
    }
}

impl Chain {
    /// Octets of the owner names that the chain can add to the zone.
    fn owner_octets(&self, contents: &Contents) -> usize {
        match self {
            Self::Nsec(_) | Self::Stored => 0,
            Self::Nsec3 { names, .. } => {
                names.len() * (1 + denial::nsec3::HASH_LABEL_OCTETS + contents.apex().view().len())
            }
            Self::Nsec5 { names, .. } => {
                names.len() * (1 + nsec5::HASH_LABEL_OCTETS + contents.apex().view().len())
            }
        }
    }
}

/// Returns an item for each of `source_nodes`. The names of the chain get NSEC records, in the
/// order of the nodes (RFC 4035 §2.3).
fn assign_nsec_records(source_nodes: &[u32], statuses: &[NameStatus]) -> Vec<PlanItem> {
    let mut next = 0;
    source_nodes
        .iter()
        .map(|&node| {
            if !statuses[node as usize].is_in_chain() {
                return PlanItem { node, chain_index: NO_INDEX };
            }
            next += 1;
            PlanItem { node, chain_index: next - 1 }
        })
        .collect()
}

/// The names of an NSEC3 chain, sorted by hash.
fn hashed_names(
    contents: &Contents,
    statuses: &[NameStatus],
    chain_nodes: &[u32],
    options: &SignOptions<'_>,
) -> Result<Vec<HashedName>, SignError> {
    let mut names: Vec<ChainName> = chain_names(contents, statuses, chain_nodes);
    if options.mechanism.is_opt_out() {
        names.retain(|name| name.is_required);
    }
    let hashed = chain::hash_names(contents, &names, &options.nsec3);
    let collision = hashed.iter().zip(hashed.iter().skip(1)).find(|(a, b)| a.hash == b.hash);
    if let Some((a, b)) = collision {
        let (first, second) = (a.name.name(contents).to_name(), b.name.name(contents).to_name());
        return Err(SignError::HashCollision { first, second });
    }
    Ok(hashed)
}

/// The names of an NSEC5 chain with their hashes from the proofs, and the key tag of the VRF key.
fn nsec5_names(
    contents: &Contents,
    statuses: &[NameStatus],
    chain_nodes: &[u32],
    options: &SignOptions<'_>,
) -> Result<(Vec<nsec5::chain::HashedName>, u16), SignError> {
    let proofs = options.nsec5.ok_or(Nsec5Error::NoProofs)?.proofs;
    let names = nsec5::select_chain_names(
        chain_names(contents, statuses, chain_nodes),
        options.mechanism.is_opt_out(),
    );
    let hashed = nsec5::chain::build_chain(contents, &names, proofs);
    let mismatch = || Nsec5Error::ForeignProofs { zone: contents.apex().clone() };
    Ok((hashed.ok_or_else(mismatch)?, proofs.key().tag()))
}

/// Merges `source_nodes` with the owners of the chain records of `hashed` to items in canonical
/// order. `source_nodes` are in canonical order. The owners are directly below the apex and sorted
/// by their first label, which `label` returns.
fn merge_hashed<T, const OCTETS: usize>(
    contents: &Contents,
    source_nodes: &[u32],
    hashed: &[T],
    label: impl Fn(&T) -> [u8; OCTETS],
) -> Vec<PlanItem> {
    let mut items = Vec::with_capacity(source_nodes.len() + hashed.len());
    let mut chain_index = 0;
    for &node in source_nodes {
        let mut own_record = NO_INDEX;
        while let Some(entry) = hashed.get(chain_index) {
            match cmp_hashed(contents, &label(entry), node) {
                Ordering::Less => items.push(PlanItem { node: NO_INDEX, chain_index: chain_index as u32 }),
                Ordering::Equal => own_record = chain_index as u32,
                Ordering::Greater => break,
            }
            chain_index += 1;
        }
        items.push(PlanItem { node, chain_index: own_record });
    }
    items.extend(
        (chain_index..hashed.len())
            .map(|chain_index| PlanItem { node: NO_INDEX, chain_index: chain_index as u32 }),
    );
    items
}

/// Compares the name with the label `label` directly below the apex to the name of a node, in
/// canonical order. `label` is in lower case.
fn cmp_hashed(contents: &Contents, label: &[u8], node: u32) -> Ordering {
    let apex_len = contents.apex().view().len();
    let mut name = contents.node(node as usize).name();
    if name.len() == apex_len {
        return Ordering::Greater;
    }
    let node_len = name.len();
    while let Some(parent) = name.parent().filter(|parent| parent.len() > apex_len) {
        name = parent;
    }
    let node_label = name.labels().next().unwrap_or_default();
    let order = label.iter().copied().cmp(node_label.iter().map(u8::to_ascii_lowercase));
    // With equal labels, a node below the name follows it.
    order.then(if name.len() < node_len { Ordering::Less } else { Ordering::Equal })
}
