//! The image of a zone: the RRsets in the form in which responses contain them, and indexes to find
//! them.
//!
//! An image is immutable. To publish a new version of a zone, the server replaces the whole image.
//!
//! # Templates
//!
//! A *template* is an RRset with its RRSIG records in wire format. It is rendered for one base
//! case: the question name is the owner name (for NSEC, NSEC3 and NSEC5 records: the apex), and the
//! template directly follows the question. Every compression pointer is correct in the base case.
//! In any other case, a pointer needs one addition: a pointer to a suffix of the question name
//! moves with the length of the question name, and a pointer into the template moves with the
//! template. `template::Patch` lists the pointers. So to add an RRset to a response takes one copy
//! and a few additions. Where a pointer would be wrong (after an alias to a name with other
//! suffixes, or with an offset of 2^14 or more), the name is written in full.
//!
//! Templates are in this crate and not in `proto`, because the base case depends on the zone: the
//! owner of the RRset, the names that occlude it, and the glue that belongs to it.
//!
//! # Sections
//!
//! An image consists of a few sections (`Sections`), which have the same format in memory and in a
//! file ([`mod@file`]). So the server maps a file and answers from it directly. Numbers in the
//! sections are little-endian and unaligned. The largest section has a *block* for each name, in
//! canonical order (`node`). One section has the common parts of RRSIG records (`signature`). The
//! other sections are indexes of blocks. Names that a zone cut or a DNAME record occludes have no
//! block: the lookup finds the cut or the DNAME record. A generated zone of 100,000 delegations
//! with NSEC and P-256 takes 342 octets for each delegation.
//!
//! A hash table finds names (`index`). For NSEC, predecessors are found by the first octets of a
//! sort key whose octet order is the canonical order (`index`). The owners of NSEC3 and NSEC5
//! records are found by interpolation on the first octets of the hashes (`chain`). The compilation
//! also determines the addresses that a referral contains, and which of them it requires
//! (RFC 9471).

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
pub use counts::{LargestCounts, RrsetCount, TypeCount};
pub use file::{ImageFile, ImageFileError, VerificationRecord};
pub use node::{Glue, ImageNode, NodeKind, Template};
pub(crate) use render::rendered_octets;
pub use signature::{SignatureFields, ValidityPeriod};
pub use template::{OwnerForm, Position, QUESTION_POINTER, push_record_fields};

use bytes::Bytes;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::cmp::Ordering;
use std::fmt;

/// A zone compiled for answering queries.
#[derive(Clone)]
pub struct Image {
    summary: ZoneSummary,
    sections: Sections,
    /// Whether the denial chain was verified to match the zone. Image files do not store this.
    is_chain_verified: bool,
}

/// Properties of the whole zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ZoneSummary {
    /// Apex in lower case.
    apex: Name,
    serial: u32,
    is_signed: bool,
    /// Index of the SOA RRset with the TTL of negative answers, among the RRsets of the apex.
    negative_soa: u16,
    nsec3: Option<Nsec3Parameters>,
    nsec5: Option<Nsec5Key>,
    /// Period in which each RRset has a valid signature; `None` if there are no signatures.
    period: Option<ValidityPeriod>,
    signatures: u64,
}

/// Maximum number of NSEC3 iterations of a chain that is signed, verified or used for answers.
/// RFC 9276 §3.1 requires 0.
pub const MAX_NSEC3_ITERATIONS: u16 = 500;

/// Parameters of the NSEC3 chain (RFC 5155 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nsec3Parameters {
    iterations: u16,
    salt: Vec<u8>,
}

/// Key with which the names of the NSEC5 chain are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nsec5Key {
    tag: u16,
    algorithm: u8,
}

/// The sections of an image.
#[derive(Clone, Default)]
struct Sections {
    /// A block for each name (`node`). The offset of each block is a multiple of
    /// [`node::BLOCK_UNIT`].
    blocks: Bytes,
    /// The hash table of names (`index`).
    name_table: Bytes,
    /// First octets of the sort keys of names in canonical order, 8 octets each. With an NSEC
    /// chain: the names that own records. Without any denial chain: all names.
    order_keys: Bytes,
    /// Offsets of the blocks of these names in units of [`node::BLOCK_UNIT`], 4 octets each.
    order_nodes: Bytes,
    /// Hashes of the owners in the NSEC3 chain, in order, 20 octets each.
    nsec3_hashes: Bytes,
    /// Offsets of the blocks of these owners, 4 octets each.
    nsec3_nodes: Bytes,
    /// Hashes of the owners in the NSEC5 chain, in order, 32 octets each.
    nsec5_hashes: Bytes,
    /// Offsets of the blocks of these owners, 4 octets each.
    nsec5_nodes: Bytes,
    /// Forms: the common parts of RRSIG records ([`signature`]).
    forms: Bytes,
}

/// Number of sections.
const SECTION_COUNT: usize = 9;

impl Sections {
    const fn all(&self) -> [&Bytes; SECTION_COUNT] {
        [
            &self.blocks,
            &self.name_table,
            &self.order_keys,
            &self.order_nodes,
            &self.nsec3_hashes,
            &self.nsec3_nodes,
            &self.nsec5_hashes,
            &self.nsec5_nodes,
            &self.forms,
        ]
    }

    fn from_all(all: [Bytes; SECTION_COUNT]) -> Self {
        let [
            blocks,
            name_table,
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
            name_table,
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

/// Result of a lookup.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'i> {
    /// The name exists, possibly as an empty non-terminal.
    Exact(ImageNode<'i>),
    /// The name does not exist or is occluded. The node is the closest encloser (RFC 4592 §3.3.1),
    /// or the zone cut or DNAME owner above the name.
    Encloser(ImageNode<'i>),
}

impl Image {
    /// Apex of the zone, in lower case.
    #[must_use]
    pub const fn apex(&self) -> NameRef<'_> {
        self.summary.apex.view()
    }

    /// Serial in the SOA record.
    #[must_use]
    pub const fn serial(&self) -> u32 {
        self.summary.serial
    }

    /// Whether the apex has a DNSKEY RRset and the zone has a denial chain.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.summary.is_signed
    }

    /// Marks the denial chain as verified: its records prove what the server uses them for.
    #[must_use]
    pub fn with_verified_chain(self) -> Self {
        Self { is_chain_verified: true, ..self }
    }

    /// Whether the denial chain was verified ([`Image::with_verified_chain`]).
    #[must_use]
    pub const fn is_chain_verified(&self) -> bool {
        self.is_chain_verified
    }

    /// Octets of all sections.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.sections.all().iter().map(|section| section.len()).sum()
    }

    /// Whether both images have the same zone properties and the same sections, and therefore give
    /// the same answers.
    #[must_use]
    pub fn has_same_octets(&self, other: &Self) -> bool {
        self.summary == other.summary && self.sections.all() == other.sections.all()
    }

    /// Period in which each RRset has a valid signature; `None` if there are no signatures.
    #[must_use]
    pub const fn period(&self) -> Option<ValidityPeriod> {
        self.summary.period
    }

    /// Number of RRSIG records over the RRsets of the image.
    #[must_use]
    pub const fn signatures(&self) -> u64 {
        self.summary.signatures
    }

    /// Returns the RDATA of the records of `rtype` at the apex; empty if this RRset does not exist.
    #[must_use]
    pub fn apex_rdatas(&self, rtype: Rtype) -> Vec<Vec<u8>> {
        let records = self.node(0).template(rtype).map(Template::expand).unwrap_or_default();
        records.into_iter().filter(|record| record.rtype == rtype).map(|record| record.rdata).collect()
    }

    /// Finds `name` or its closest encloser. `name` must be in lower case and at or below the apex.
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

    /// Returns the node of `name`, which must be in lower case.
    #[must_use]
    pub fn find_exact(&self, name: NameRef<'_>) -> Option<ImageNode<'_>> {
        debug_assert!(
            !name.wire().iter().any(u8::is_ascii_uppercase),
            "the caller must convert the name to lower case"
        );
        let found = index::find(&self.sections.name_table, name.wire(), |at| self.node(at).name().wire())?;
        Some(self.node(found))
    }

    /// The SOA RRset with the TTL of negative answers (RFC 2308 §5).
    #[must_use]
    pub fn negative_soa(&self) -> Template<'_> {
        self.node(0).template_at(self.summary.negative_soa)
    }

    /// Returns the NSEC RRset that matches or covers `name`: its owner is the last one at or before
    /// `name` in canonical order. Returns `None` if the zone has no NSEC chain, or if this owner
    /// has no NSEC record. `name` must be in lower case and in the zone.
    #[must_use]
    pub fn nsec_at_or_before(&self, name: NameRef<'_>) -> Option<Template<'_>> {
        let last = self.index_after(name).checked_sub(1)?;
        self.ordered_node(last)?.template(Rtype::NSEC)
    }

    /// Returns the last name in the range from `from` (included) to `before` (excluded), in
    /// canonical order. Only for the image of a zone without a denial chain. Both names must be in
    /// the zone and in lower case. Occluded names are ignored.
    #[must_use]
    pub fn last_name_in(&self, from: NameRef<'_>, before: NameRef<'_>) -> Option<ImageNode<'_>> {
        let after = self.index_after(before);
        let is_before = |node: &ImageNode<'_>| node.name() != before;
        let last = (0..after).rev().take(2).filter_map(|index| self.ordered_node(index)).find(is_before)?;
        (last.name().cmp_canonical(from) != Ordering::Less).then_some(last)
    }

    /// Returns the node at `index` of the list in canonical order.
    fn ordered_node(&self, index: usize) -> Option<ImageNode<'_>> {
        let at = self.sections.order_nodes.as_chunks::<4>().0.get(index)?;
        Some(self.node(u32::from_le_bytes(*at)))
    }

    /// Returns the index of the first name after `name` in the list in canonical order.
    fn index_after(&self, name: NameRef<'_>) -> usize {
        let prefix = index::key_prefix(name, self.apex());
        let keys = self.sections.order_keys.as_chunks::<8>().0;
        let nodes = self.sections.order_nodes.as_chunks::<4>().0;
        let first_tie = keys.partition_point(|key| u64::from_le_bytes(*key) < prefix);
        let is_tie = |key: &[u8; 8]| u64::from_le_bytes(*key) == prefix;
        // Fast path: usually no key is equal to the prefix.
        let ties = if keys.get(first_tie).is_some_and(is_tie) {
            keys[first_tie..].partition_point(is_tie)
        } else {
            0
        };
        let at_or_before =
            |at: &[u8; 4]| self.node(u32::from_le_bytes(*at)).name().cmp_canonical(name) != Ordering::Greater;
        first_tie
            + nodes.get(first_tie..first_tie + ties).map_or(0, |ties| ties.partition_point(at_or_before))
    }

    /// Salt and iterations of the NSEC3 chain; `None` if there is no chain that the server can use.
    /// With more than [`MAX_NSEC3_ITERATIONS`] iterations, each query would cost milliseconds.
    #[must_use]
    pub fn nsec3_parameters(&self) -> Option<(&[u8], u16)> {
        let parameters = self.summary.nsec3.as_ref()?;
        (parameters.iterations <= MAX_NSEC3_ITERATIONS).then_some((&parameters.salt, parameters.iterations))
    }

    /// Returns the NSEC3 RRset whose owner is `hash`.
    #[must_use]
    pub fn nsec3_matching(&self, hash: &[u8; 20]) -> Option<Template<'_>> {
        self.nsec3_chain().matching(hash)?.template(Rtype::NSEC3)
    }

    /// Returns the NSEC3 RRset that covers `hash`; `None` if an owner matches `hash`. The last
    /// RRset covers the hashes that wrap around.
    #[must_use]
    pub fn nsec3_covering(&self, hash: &[u8; 20]) -> Option<Template<'_>> {
        self.nsec3_chain().covering(hash)?.template(Rtype::NSEC3)
    }

    /// Key tag and algorithm of the VRF key with which the names of the NSEC5 chain are hashed;
    /// `None` if there is no chain.
    #[must_use]
    pub fn nsec5_key(&self) -> Option<(u16, u8)> {
        self.summary.nsec5.map(|key| (key.tag, key.algorithm))
    }

    /// Returns the NSEC5 RRset whose owner is `hash`.
    #[must_use]
    pub fn nsec5_matching(&self, hash: &[u8; 32]) -> Option<Template<'_>> {
        self.nsec5_chain().matching(hash)?.template(Rtype::NSEC5)
    }

    /// Returns the NSEC5 RRset that covers `hash`; `None` if an owner matches `hash`. The last
    /// RRset covers the hashes that wrap around.
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
            .field("summary", &self.summary)
            .field("octets", &self.octets())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
