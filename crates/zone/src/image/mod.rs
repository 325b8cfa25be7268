//! The compiled image of a zone: every RRset rendered as it goes into a response, and the indexes that find it.
//!
//! A *template* is an RRset with its RRSIGs in wire form. It is rendered for one base case: the question is
//! the owner name itself (NSEC and NSEC3: the apex), and the template stands directly behind the question.
//! Every compression pointer is right in the base case. Elsewhere a pointer needs one addition, since each
//! leads either into a suffix of the question name (it moves with the length of the question name) or into
//! the template itself (it moves with the template). [`template::Patch`] lists them.
//!
//! An image never changes once compiled; the server swaps whole images.

mod compile;
mod index;
mod template;

pub use compile::CompileError;
pub use template::{Owner, Patch, Position, TO_QUESTION, push_fixed};

use index::NameTable;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::cmp::Ordering;

/// No node, no RRset.
const NONE: u32 = u32::MAX;

/// A zone compiled for answering.
#[derive(Debug)]
pub struct Image {
    apex: Name,
    names: Vec<u8>,
    nodes: Vec<NodeEntry>,
    rrsets: Vec<RrsetEntry>,
    blob: Vec<u8>,
    patches: Vec<Patch>,
    table: NameTable,
    /// The first octets of each node's sort key behind the apex's: the order that predecessors are sought in.
    prefixes: Vec<u64>,
    negative_soa: u32,
    nsec3: Nsec3Chain,
    /// NSEC5 RRsets by hash.
    nsec5: Vec<([u8; 32], u32)>,
    serial: u32,
    is_signed: bool,
}

/// NSEC3 records by hash, with the parameters of the chain.
#[derive(Debug, Default)]
struct Nsec3Chain {
    salt: Vec<u8>,
    iterations: u16,
    hashes: Vec<[u8; 20]>,
    rrsets: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct NodeEntry {
    name: u32,
    first_rrset: u32,
    /// The delegation or DNAME node above, where this node is occluded.
    cover: u32,
    /// The node itself or the last one before it that owns an NSEC record.
    nsec_node: u32,
    kind: NodeKind,
}

/// What a node is to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Its records are answers; an empty non-terminal has none.
    Authoritative,
    /// A zone cut.
    Delegation,
    /// Occluded by the delegation or the DNAME above.
    Occluded,
    /// Owns NSEC3 records only: to queries it does not exist (RFC 5155 §7.2.8).
    Hash,
}

/// Entry of an RRset's template; 32 octets.
#[derive(Clone, Copy, Debug)]
struct RrsetEntry {
    /// Offset in the blob in units of 4 octets.
    start: u32,
    first_patch: u32,
    /// Octets of the records, and of the signatures behind them.
    length: u32,
    signature_length: u32,
    rtype: Rtype,
    records: u16,
    signatures: u16,
    patches: u16,
    signature_patches: u16,
    /// Octets of the question name in the base case.
    base: u8,
    role: Role,
}

/// What a template is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An RRset of the node.
    Data,
    /// The addresses that belong to the NS RRset before it, in a referral.
    Glue,
    /// Addresses in a referral of servers below the cut itself, which the referral is useless without.
    RequiredGlue,
}

/// A node of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageNode<'i> {
    image: &'i Image,
    index: u32,
}

/// A template of an image.
#[derive(Clone, Copy, Debug)]
pub struct Template<'i> {
    image: &'i Image,
    entry: &'i RrsetEntry,
    index: u32,
}

/// What a look-up found.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'i> {
    /// The name exists, or is an empty non-terminal.
    Exact(ImageNode<'i>),
    /// It does not; this is its closest encloser (RFC 4592 §3.3.1), with the octets of the name in front of it.
    Encloser(ImageNode<'i>),
}

impl Image {
    /// The zone's apex, in lower case.
    #[must_use]
    pub const fn apex(&self) -> NameRef<'_> {
        self.apex.view()
    }

    /// The SOA serial.
    #[must_use]
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// Whether there is a DNSKEY RRset at the apex and denial records to go with it.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Octets that the image takes in memory.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.names.len()
            + self.blob.len()
            + size_of_val(self.nodes.as_slice())
            + size_of_val(self.rrsets.as_slice())
            + size_of_val(self.patches.as_slice())
            + size_of_val(self.prefixes.as_slice())
            + self.table.octets()
            + self.nsec3.hashes.len() * 24
    }

    /// Finds `name`, given in lower case and at or below the apex, or its closest encloser.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Lookup<'_> {
        if let Some(node) = self.find_exact(name) {
            return Lookup::Exact(node);
        }
        let mut ancestor = name;
        while let Some(parent) = ancestor.parent() {
            if parent.len() < self.apex.wire().len() {
                break;
            }
            if let Some(node) = self.find_exact(parent) {
                return Lookup::Encloser(node);
            }
            ancestor = parent;
        }
        Lookup::Encloser(self.node(0))
    }

    /// The node of `name`, given in lower case.
    #[must_use]
    pub fn find_exact(&self, name: NameRef<'_>) -> Option<ImageNode<'_>> {
        let index = self.table.find(name.wire(), |node| self.wire_name(node))?;
        Some(self.node(index))
    }

    const fn node(&self, index: u32) -> ImageNode<'_> {
        ImageNode { image: self, index }
    }

    fn wire_name(&self, index: u32) -> &[u8] {
        let start = self.nodes[index as usize].name as usize;
        let end = self.nodes.get(index as usize + 1).map_or(self.names.len(), |next| next.name as usize);
        &self.names[start..end]
    }

    const fn template(&self, index: u32) -> Template<'_> {
        Template { image: self, entry: &self.rrsets.as_slice()[index as usize], index }
    }

    /// The SOA RRset with the TTL of negative answers (RFC 2308 §5).
    #[must_use]
    pub const fn negative_soa(&self) -> Template<'_> {
        self.template(self.negative_soa)
    }

    /// The NSEC RRset that matches `name` or covers it: its owner is the last one at or before `name` in
    /// canonical order. `None` where the zone has no NSEC chain. `name` is in lower case and in the zone.
    #[must_use]
    pub fn nsec_at_or_before(&self, name: NameRef<'_>) -> Option<Template<'_>> {
        let after = self.first_after(name);
        let node = self.nodes.get(after.checked_sub(1)?)?.nsec_node;
        self.node_nsec(node)
    }

    fn node_nsec(&self, node: u32) -> Option<Template<'_>> {
        if node == NONE {
            return None;
        }
        self.node(node).template(Rtype::NSEC)
    }

    /// The last node from `from` on and before `before`, in canonical order, that a query finds; both are names of the
    /// zone in lower case.
    #[must_use]
    pub fn last_name_in(&self, from: NameRef<'_>, before: NameRef<'_>) -> Option<ImageNode<'_>> {
        let nodes = self.first_from(from)..self.first_from(before);
        let found =
            |node: &ImageNode<'_>| matches!(node.kind(), NodeKind::Authoritative | NodeKind::Delegation);
        nodes.rev().map(|index| self.node(index as u32)).find(found)
    }

    /// Index of the first node that is not before `name` in canonical order.
    fn first_from(&self, name: NameRef<'_>) -> usize {
        let after = self.first_after(name);
        match after.checked_sub(1) {
            Some(last) if self.wire_name(last as u32) == name.wire() => last,
            _ => after,
        }
    }

    /// Index of the first node after `name` in canonical order.
    fn first_after(&self, name: NameRef<'_>) -> usize {
        let prefix = index::key_prefix(name, self.apex.view());
        let low = self.prefixes.partition_point(|other| *other < prefix);
        let ties = self.prefixes[low..].partition_point(|other| *other == prefix);
        let (mut low, mut high) = (low, low + ties);
        while low < high {
            let middle = low.midpoint(high);
            let other = NameRef::from_checked(self.wire_name(middle as u32));
            if other.cmp_canonical(name) == Ordering::Greater {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Salt and iterations of the NSEC3 chain, where there is one.
    #[must_use]
    pub fn nsec3_parameters(&self) -> Option<(&[u8], u16)> {
        (!self.nsec3.hashes.is_empty()).then_some((&self.nsec3.salt, self.nsec3.iterations))
    }

    /// The NSEC3 RRset whose owner is `hash`.
    #[must_use]
    pub fn nsec3_matching(&self, hash: &[u8; 20]) -> Option<Template<'_>> {
        let position = self.nsec3.position_at_or_before(hash)?;
        (self.nsec3.hashes[position] == *hash).then(|| self.template(self.nsec3.rrsets[position]))
    }

    /// The NSEC3 RRset that covers `hash`, which no owner equals; the last one covers what wraps around.
    #[must_use]
    pub fn nsec3_covering(&self, hash: &[u8; 20]) -> Option<Template<'_>> {
        let last = self.nsec3.hashes.len().checked_sub(1)?;
        let position = self.nsec3.position_at_or_before(hash).unwrap_or(last);
        (self.nsec3.hashes[position] != *hash).then(|| self.template(self.nsec3.rrsets[position]))
    }

    /// The NSEC5 RRset whose owner is `hash`.
    #[must_use]
    pub fn nsec5_matching(&self, hash: &[u8; 32]) -> Option<Template<'_>> {
        let place = self.nsec5.binary_search_by(|(other, _)| other.cmp(hash)).ok()?;
        Some(self.template(self.nsec5[place].1))
    }

    /// The NSEC5 RRset that covers `hash`, which no owner equals; the last one covers what wraps around.
    #[must_use]
    pub fn nsec5_covering(&self, hash: &[u8; 32]) -> Option<Template<'_>> {
        let after = self.nsec5.binary_search_by(|(other, _)| other.cmp(hash)).err()?;
        let covering = if after == 0 { self.nsec5.last()? } else { &self.nsec5[after - 1] };
        Some(self.template(covering.1))
    }
}

impl Nsec3Chain {
    /// Hashes are spread evenly, so the place of one is guessed from its first octets and then sought nearby.
    fn position_at_or_before(&self, hash: &[u8; 20]) -> Option<usize> {
        let count = self.hashes.len();
        let head =
            u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]]);
        let guess = ((u128::from(head) * count as u128) >> 64) as usize;
        let (mut low, mut high) = (0, count);
        let mut step = 8;
        // Invariant: everything before `low` is at or before `hash`, everything from `high` on is after it.
        if count > 0 && self.hashes[guess] <= *hash {
            low = guess + 1;
            while low < count && self.hashes[(low + step).min(count) - 1] <= *hash {
                low = (low + step).min(count);
                step *= 2;
            }
            high = (low + step).min(count);
        } else if count > 0 {
            high = guess;
            while high > 0 && self.hashes[high.saturating_sub(step)] > *hash {
                high = high.saturating_sub(step);
                step *= 2;
            }
            low = high.saturating_sub(step);
        }
        let after = low + self.hashes[low..high].partition_point(|other| other <= hash);
        after.checked_sub(1)
    }
}

impl<'i> ImageNode<'i> {
    const fn entry(self) -> &'i NodeEntry {
        &self.image.nodes.as_slice()[self.index as usize]
    }

    /// The name, in lower case.
    #[must_use]
    pub fn name(self) -> NameRef<'i> {
        NameRef::from_checked(self.image.wire_name(self.index))
    }

    /// What the node is to an answer.
    #[must_use]
    pub const fn kind(self) -> NodeKind {
        self.entry().kind
    }

    /// Whether this is the apex.
    #[must_use]
    pub const fn is_apex(self) -> bool {
        self.index == 0
    }

    /// The delegation or DNAME node that occludes this one.
    #[must_use]
    pub fn cover(self) -> Option<Self> {
        let cover = self.entry().cover;
        (cover != NONE).then(|| self.image.node(cover))
    }

    fn all_templates(self) -> impl Iterator<Item = Template<'i>> + Clone {
        let image = self.image;
        let next = image.nodes.get(self.index as usize + 1);
        let end = next.map_or(image.negative_soa, |next| next.first_rrset);
        (self.entry().first_rrset..end).map(move |index| image.template(index))
    }

    /// The templates of the node's RRsets, by type; none for an empty non-terminal.
    pub fn templates(self) -> impl Iterator<Item = Template<'i>> + Clone {
        self.all_templates().filter(|template| template.entry.role == Role::Data)
    }

    /// The template of the RRset of `rtype`.
    #[must_use]
    pub fn template(self, rtype: Rtype) -> Option<Template<'i>> {
        self.templates().find(|template| template.entry.rtype == rtype)
    }

    /// Addresses for a referral: those that it is useless without (RFC 9471 §3.1), then the others.
    pub fn glue(self) -> impl Iterator<Item = (Template<'i>, bool)> {
        let glue = self.all_templates().filter(|template| template.entry.role != Role::Data);
        glue.map(|template| (template, template.entry.role == Role::RequiredGlue))
    }

    /// The NSEC RRset that matches this node or, at an empty non-terminal, covers it.
    #[must_use]
    pub fn nsec(self) -> Option<Template<'i>> {
        self.image.node_nsec(self.entry().nsec_node)
    }
}

impl<'i> Template<'i> {
    /// The RRset's type.
    #[must_use]
    pub const fn rtype(self) -> Rtype {
        self.entry.rtype
    }

    /// Number of the template in its image: what is made of its RRset is kept under it.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Number of records without signatures.
    #[must_use]
    pub const fn record_count(self) -> u16 {
        self.entry.records
    }

    /// Number of signatures.
    #[must_use]
    pub const fn signature_count(self) -> u16 {
        self.entry.signatures
    }

    /// Whether `self` and `other` are the same template.
    #[must_use]
    pub fn is(self, other: Template<'_>) -> bool {
        self.index == other.index
    }

    fn octets(self) -> (&'i [u8], &'i [u8]) {
        let start = self.entry.start as usize * 4;
        let middle = start + self.entry.length as usize;
        let end = middle + self.entry.signature_length as usize;
        (&self.image.blob[start..middle], &self.image.blob[middle..end])
    }

    fn patches(self) -> (&'i [Patch], &'i [Patch]) {
        let start = self.entry.first_patch as usize;
        let middle = start + usize::from(self.entry.patches);
        let end = middle + usize::from(self.entry.signature_patches);
        (&self.image.patches[start..middle], &self.image.patches[middle..end])
    }
}
