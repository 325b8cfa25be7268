//! The compiled image of a zone: every RRset rendered as it goes into a response, and the indexes that find it.
//!
//! An image never changes once made; the server swaps whole images.
//!
//! # Templates
//! A *template* is an RRset with its RRSIGs in wire form. It is rendered for one base case: the question is
//! the owner name itself (records of a chain of denial: the apex), and the template stands directly behind the question.
//! Every compression pointer is right in the base case. Elsewhere a pointer needs one addition, since each
//! leads either into a suffix of the question name (it moves with the length of the question name) or into
//! the template itself (it moves with the template). `template::Patch` lists them. So adding an RRset to a response is one
//! copy and a few additions. Where a pointer would lead nowhere (behind an alias to a name with other suffixes, or beyond
//! offset 2^14), the name is written out in full.
//!
//! Templates are in this crate rather than in `proto`, because the base case depends on the zone: who owns the RRset, what
//! occludes it, which glue belongs to it.
//!
//! # Sections
//! An image is a few runs of octets (`Sections`), the same in memory and in a file ([`mod@file`]): a file is mapped and
//! answered from as it is. Numbers in them are little-endian and need no alignment. The largest section has a *block*
//! for each name, in canonical order (`node`); the others are indexes of blocks. Names that a zone cut or a DNAME occludes
//! have none: queries for them find what occludes them. A generated zone of 100,000 delegations with NSEC and P-256 takes
//! 342 octets for each delegation.
//!
//! Names are found by a hash table and predecessors (for NSEC) by the first octets of a sort key whose octet order is the
//! canonical order (`index`); owners of hashes (NSEC3, NSEC5) by interpolation among the first octets of the hashes
//! (`chain`). Compiling also determines which addresses belong to a referral, and which of them it needs (RFC 9471).

mod chain;
mod check;
mod compile;
mod counts;
pub mod file;
mod index;
mod node;
mod part;
mod render;
mod signature;
mod template;

pub use compile::CompileError;
pub use counts::Largest;
pub use file::{ImageFile, ImageFileError, VerificationRecord};
pub use node::{Glue, ImageNode, NodeKind, Template};
pub(crate) use render::rendered_octets;
pub use signature::{SignatureFields, ValidityPeriod};
pub use template::{OwnerForm, Position, TO_QUESTION, push_fixed};

use bytes::Bytes;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::cmp::Ordering;
use std::fmt;

/// A zone compiled for answering.
#[derive(Clone)]
pub struct Image {
    facts: ZoneSummary,
    sections: Sections,
    /// Whether verification found the chain of denial to fit the zone; in no file.
    is_chain_verified: bool,
}

/// What an image says of the whole zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ZoneSummary {
    /// In lower case.
    apex: Name,
    serial: u32,
    is_signed: bool,
    /// Place of the SOA RRset with the TTL of negative answers, among the RRsets of the apex.
    negative_soa: u16,
    nsec3: Option<Nsec3Facts>,
    nsec5: Option<Nsec5Key>,
    /// When all signatures are valid; `None` where there are none.
    period: Option<ValidityPeriod>,
    signatures: u64,
}

/// Most NSEC3 iterations of a chain that is signed, verified or answered from; RFC 9276 §3.1 wants none at all.
pub const MAX_NSEC3_ITERATIONS: u16 = 500;

/// Parameters of the NSEC3 chain (RFC 5155 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nsec3Facts {
    iterations: u16,
    salt: Vec<u8>,
}

/// The key that the names of the NSEC5 chain are hashed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nsec5Key {
    tag: u16,
    algorithm: u8,
}

/// The octets of an image.
#[derive(Clone, Default)]
struct Sections {
    /// A block for each name (`node`), each from a multiple of [`node::UNIT`] on.
    blocks: Bytes,
    /// The table of names (`index`).
    table: Bytes,
    /// Names that own records, where the zone has an NSEC chain, or all names where it has no chain of denial, in canonical order: the first
    /// octets of their sort keys, 8 each ...
    order_keys: Bytes,
    /// ... and where their blocks are, 4 octets each.
    order_nodes: Bytes,
    /// Owners of the NSEC3 chain, in the order of hashes: 20 octets of each hash ...
    nsec3_hashes: Bytes,
    /// ... and where their blocks are, 4 octets each.
    nsec3_nodes: Bytes,
    /// The same of the NSEC5 chain, whose hashes have 32 octets.
    nsec5_hashes: Bytes,
    nsec5_nodes: Bytes,
    /// What RRSIG records have in common ([`signature`]).
    forms: Bytes,
}

/// Number of sections.
const SECTIONS: usize = 9;

impl Sections {
    const fn all(&self) -> [&Bytes; SECTIONS] {
        [
            &self.blocks,
            &self.table,
            &self.order_keys,
            &self.order_nodes,
            &self.nsec3_hashes,
            &self.nsec3_nodes,
            &self.nsec5_hashes,
            &self.nsec5_nodes,
            &self.forms,
        ]
    }

    fn from_all(all: [Bytes; SECTIONS]) -> Self {
        let [
            blocks,
            table,
            order_keys,
            order_nodes,
            nsec3_hashes,
            nsec3_nodes,
            nsec5_hashes,
            nsec5_nodes,
            forms,
        ] = all;
        Self {
            blocks,
            table,
            order_keys,
            order_nodes,
            nsec3_hashes,
            nsec3_nodes,
            nsec5_hashes,
            nsec5_nodes,
            forms,
        }
    }
}

/// What a look-up found.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'i> {
    /// The name exists, or is an empty non-terminal.
    Exact(ImageNode<'i>),
    /// It does not, or is occluded; this is its closest encloser (RFC 4592 §3.3.1), or the zone cut or DNAME above it.
    Encloser(ImageNode<'i>),
}

impl Image {
    /// The zone's apex, in lower case.
    #[must_use]
    pub const fn apex(&self) -> NameRef<'_> {
        self.facts.apex.view()
    }

    /// The SOA serial.
    #[must_use]
    pub const fn serial(&self) -> u32 {
        self.facts.serial
    }

    /// Whether there is a DNSKEY RRset at the apex and denial records to go with it.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.facts.is_signed
    }

    /// The image of a zone whose chain of denial was verified: its records prove what they are used for.
    #[must_use]
    pub fn with_verified_chain(self) -> Self {
        Self { is_chain_verified: true, ..self }
    }

    /// Whether the chain of denial was verified ([`Image::with_verified_chain`]).
    #[must_use]
    pub const fn is_chain_verified(&self) -> bool {
        self.is_chain_verified
    }

    /// Octets of the image.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.sections.all().iter().map(|section| section.len()).sum()
    }

    /// Whether both images have the same octets, and so give the same answers.
    #[must_use]
    pub fn has_octets_of(&self, other: &Self) -> bool {
        self.facts == other.facts && self.sections.all() == other.sections.all()
    }

    /// When all signatures are valid, so that for every RRset one is; `None` where there are none.
    #[must_use]
    pub const fn period(&self) -> Option<ValidityPeriod> {
        self.facts.period
    }

    /// Number of signatures.
    #[must_use]
    pub const fn signatures(&self) -> u64 {
        self.facts.signatures
    }

    /// RDATA of the records of `rtype` at the apex; none where there is no such RRset.
    #[must_use]
    pub fn apex_rdatas(&self, rtype: Rtype) -> Vec<Vec<u8>> {
        let records = self.node(0).template(rtype).map(Template::expand).unwrap_or_default();
        records.into_iter().filter(|record| record.rtype == rtype).map(|record| record.rdata).collect()
    }

    /// Finds `name`, given in lower case and at or below the apex, or its closest encloser.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Lookup<'_> {
        if let Some(node) = self.find_exact(name) {
            return Lookup::Exact(node);
        }
        let mut ancestor = name;
        while let Some(parent) = ancestor.parent() {
            if parent.len() < self.apex().len() {
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
        debug_assert!(!name.wire().iter().any(u8::is_ascii_uppercase), "names are looked up in lower case");
        let found = index::find(&self.sections.table, name.wire(), |at| self.node(at).name().wire())?;
        Some(self.node(found))
    }

    /// The SOA RRset with the TTL of negative answers (RFC 2308 §5).
    #[must_use]
    pub fn negative_soa(&self) -> Template<'_> {
        self.node(0).template_at(self.facts.negative_soa)
    }

    /// The NSEC RRset that matches `name` or covers it: its owner is the last one at or before `name` in
    /// canonical order. `None` where the zone has no NSEC chain, or that owner no NSEC record. `name` is in lower case and in the
    /// zone.
    #[must_use]
    pub fn nsec_at_or_before(&self, name: NameRef<'_>) -> Option<Template<'_>> {
        let last = self.first_after(name).checked_sub(1)?;
        self.ordered(last)?.template(Rtype::NSEC)
    }

    /// The last name from `from` on and before `before`, in canonical order, in the image of a zone that has no chain of
    /// denial; both are names of the zone in lower case. Occluded names do not count.
    #[must_use]
    pub fn last_name_in(&self, from: NameRef<'_>, before: NameRef<'_>) -> Option<ImageNode<'_>> {
        let after = self.first_after(before);
        let is_before = |node: &ImageNode<'_>| node.name() != before;
        let last = (0..after).rev().take(2).filter_map(|place| self.ordered(place)).find(is_before)?;
        (last.name().cmp_canonical(from) != Ordering::Less).then_some(last)
    }

    /// The name at `place` of those that are listed in canonical order.
    fn ordered(&self, place: usize) -> Option<ImageNode<'_>> {
        let at = self.sections.order_nodes.as_chunks::<4>().0.get(place)?;
        Some(self.node(u32::from_le_bytes(*at)))
    }

    /// Place of the first name after `name` among those that are listed in canonical order.
    fn first_after(&self, name: NameRef<'_>) -> usize {
        let prefix = index::key_prefix(name, self.apex());
        let keys = self.sections.order_keys.as_chunks::<8>().0;
        let nodes = self.sections.order_nodes.as_chunks::<4>().0;
        let low = keys.partition_point(|key| u64::from_le_bytes(*key) < prefix);
        let is_tie = |key: &[u8; 8]| u64::from_le_bytes(*key) == prefix;
        // Mostly there is none, which one look tells.
        let ties = if keys.get(low).is_some_and(is_tie) { keys[low..].partition_point(is_tie) } else { 0 };
        let at_or_before =
            |at: &[u8; 4]| self.node(u32::from_le_bytes(*at)).name().cmp_canonical(name) != Ordering::Greater;
        low + nodes.get(low..low + ties).map_or(0, |ties| ties.partition_point(at_or_before))
    }

    /// Salt and iterations of the NSEC3 chain, where there is one that can be answered from: more than
    /// [`MAX_NSEC3_ITERATIONS`] would let each query cost milliseconds.
    #[must_use]
    pub fn nsec3_parameters(&self) -> Option<(&[u8], u16)> {
        let facts = self.facts.nsec3.as_ref()?;
        (facts.iterations <= MAX_NSEC3_ITERATIONS).then_some((&facts.salt, facts.iterations))
    }

    /// The NSEC3 RRset whose owner is `hash`.
    #[must_use]
    pub fn nsec3_matching(&self, hash: &[u8; 20]) -> Option<Template<'_>> {
        self.nsec3_chain().matching(hash)?.template(Rtype::NSEC3)
    }

    /// The NSEC3 RRset that covers `hash`, which no owner equals; the last one covers what wraps around.
    #[must_use]
    pub fn nsec3_covering(&self, hash: &[u8; 20]) -> Option<Template<'_>> {
        self.nsec3_chain().covering(hash)?.template(Rtype::NSEC3)
    }

    /// Key tag and algorithm of the VRF key that the names of the NSEC5 chain are hashed with, where there is one.
    #[must_use]
    pub fn nsec5_key(&self) -> Option<(u16, u8)> {
        self.facts.nsec5.map(|key| (key.tag, key.algorithm))
    }

    /// The NSEC5 RRset whose owner is `hash`.
    #[must_use]
    pub fn nsec5_matching(&self, hash: &[u8; 32]) -> Option<Template<'_>> {
        self.nsec5_chain().matching(hash)?.template(Rtype::NSEC5)
    }

    /// The NSEC5 RRset that covers `hash`, which no owner equals; the last one covers what wraps around.
    #[must_use]
    pub fn nsec5_covering(&self, hash: &[u8; 32]) -> Option<Template<'_>> {
        self.nsec5_chain().covering(hash)?.template(Rtype::NSEC5)
    }

    fn nsec3_chain(&self) -> chain::HashChain<'_, 20> {
        chain::HashChain::new(self, &self.sections.nsec3_hashes, &self.sections.nsec3_nodes)
    }

    fn nsec5_chain(&self) -> chain::HashChain<'_, 32> {
        chain::HashChain::new(self, &self.sections.nsec5_hashes, &self.sections.nsec5_nodes)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("facts", &self.facts)
            .field("octets", &self.octets())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
