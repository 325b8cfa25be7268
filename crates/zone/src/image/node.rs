//! The block of a name: the kind of the name, and the templates of its RRsets.
//!
//! | octets | content |
//! | --- | --- |
//! | 1 | kind: 0 authoritative, 1 delegation, 2 hash |
//! | 1 | octets of the name |
//! | 2 | number of RRsets |
//! | … | the name in wire format, lower case |
//! | 12 each | heads of the RRsets: type (2), role (1), records (1), signatures (1), patches (1), octets of the records (2), end of the RRset's octets (4), counted from the end of the heads |
//! | … | for each RRset: patches (2 each), records, signatures |
//! | 0 to 3 | zeros up to the next multiple of 4 |
//!
//! If a number of an RRset does not fit in its field, a bit of the role is set, and the RRset's
//! octets begin with four numbers of 4 octets each: records, signatures, patches, octets of the
//! records.

use super::Image;
use nonesuch_proto::{NameRef, Rtype};
use std::fmt;

/// The offset of a block is a multiple of this number, so 32 bits address 16 GiB.
pub(super) const BLOCK_UNIT: usize = 4;
/// Octets before the name in a block.
pub(super) const BLOCK_HEAD_OCTETS: usize = 4;
/// Octets of the head of an RRset.
pub(super) const RRSET_HEAD_OCTETS: usize = 12;
/// Upper limit of [`Template::record_count`] and [`Template::signature_count`]. No message can
/// contain more records, and the sum of a few such counts does not overflow 16 bits.
const MAX_COUNT: usize = 8192;
/// Octets of the four numbers that precede the octets of an RRset if they do not fit in its head.
pub(super) const WIDE_OCTETS: usize = 16;

/// Meaning of a node for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The records of the node are answers. An empty non-terminal has no records.
    Authoritative,
    /// A zone cut.
    Delegation,
    /// The node owns only records of a hash chain. For queries it does not exist (RFC 5155 §7.2.8).
    HashChainOwner,
}

/// Use of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An RRset of the node.
    Data,
    /// A denial record. It proves something about other names, so its owner is written in full.
    Chain,
    /// Addresses of a server in the NS RRset of the node that are useful in a referral, but not
    /// required.
    Glue,
    /// Addresses of a server at or below the zone cut, without which the referral is useless.
    RequiredGlue,
    /// The SOA RRset of the apex with the TTL of negative answers.
    NegativeSoa,
}

// The codes of the roles, as constants for patterns.
const DATA: u8 = Role::Data.code();
const CHAIN: u8 = Role::Chain.code();
const GLUE: u8 = Role::Glue.code();
const REQUIRED_GLUE: u8 = Role::RequiredGlue.code();
const NEGATIVE_SOA: u8 = Role::NegativeSoa.code();

impl Role {
    /// Flag in the third octet of a head: the numbers of the RRset precede its octets.
    const WIDE_FLAG: u8 = 0x80;

    const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the role for the third octet of a head.
    const fn of_code(code: u8) -> Option<Self> {
        match code & !Self::WIDE_FLAG {
            DATA => Some(Self::Data),
            CHAIN => Some(Self::Chain),
            GLUE => Some(Self::Glue),
            REQUIRED_GLUE => Some(Self::RequiredGlue),
            NEGATIVE_SOA => Some(Self::NegativeSoa),
            _ => None,
        }
    }
}

impl NodeKind {
    const fn code(self) -> u8 {
        self as u8
    }

    pub(super) const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Authoritative),
            1 => Some(Self::Delegation),
            2 => Some(Self::HashChainOwner),
            _ => None,
        }
    }
}

/// A node of an image.
#[derive(Clone, Copy)]
pub struct ImageNode<'i> {
    image: &'i Image,
    /// The block of the node and all following octets.
    block: &'i [u8],
}

/// A template of an image.
#[derive(Clone, Copy)]
pub struct Template<'i> {
    pub(super) image: &'i Image,
    /// The block that contains the template, and all following octets.
    block: &'i [u8],
    head: &'i [u8; RRSET_HEAD_OCTETS],
    /// The octets of the RRset.
    body: &'i [u8],
}

/// The parts of a template.
#[derive(Clone, Copy)]
pub(super) struct Parts<'i> {
    pub(super) role: Role,
    pub(super) record_count: u16,
    pub(super) signature_count: u16,
    pub(super) patches: &'i [[u8; 2]],
    pub(super) records: &'i [u8],
    /// The signatures in the format of [`super::signature`].
    pub(super) signatures: &'i [u8],
}

/// Content of the head of an RRset, including numbers that precede its octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) rtype: Rtype,
    pub(super) role: Role,
    pub(super) records: usize,
    pub(super) signatures: usize,
    pub(super) patches: usize,
    /// Octets of the records.
    pub(super) length: usize,
}

impl Head {
    /// Appends the head to `heads`. `write` appends the octets of the RRset to `bodies`.
    pub(super) fn push(self, heads: &mut Vec<u8>, bodies: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let numbers = [self.records, self.signatures, self.patches];
        let fits = numbers.iter().all(|number| *number <= 0xff) && self.length <= 0xffff;
        let [records, signatures, patches] = if fits { numbers.map(|number| number as u8) } else { [0; 3] };
        let role = if fits { self.role.code() } else { self.role.code() | Role::WIDE_FLAG };
        if !fits {
            for number in [self.records, self.signatures, self.patches, self.length] {
                bodies.extend_from_slice(&(number as u32).to_le_bytes());
            }
        }
        write(bodies);
        heads.extend_from_slice(&self.rtype.0.to_le_bytes());
        heads.extend_from_slice(&[role, records, signatures, patches]);
        heads.extend_from_slice(&(if fits { self.length as u16 } else { 0 }).to_le_bytes());
        heads.extend_from_slice(&(bodies.len() as u32).to_le_bytes());
    }

    /// Reads a head, and the numbers at the start of `body` if they do not fit in the head. Returns
    /// the rest of `body` without these numbers.
    #[inline]
    pub(super) fn read<'i>(head: &[u8; RRSET_HEAD_OCTETS], body: &'i [u8]) -> Option<(Self, &'i [u8])> {
        let [t, u, role, records, signatures, patches, l, m, ..] = *head;
        let rtype = Rtype(u16::from_le_bytes([t, u]));
        let is_wide = role & Role::WIDE_FLAG != 0;
        let role = Role::of_code(role)?;
        if is_wide {
            return Self::read_wide(rtype, role, body);
        }
        let [records, signatures, patches] = [records, signatures, patches].map(usize::from);
        let length = usize::from(u16::from_le_bytes([l, m]));
        Some((Self { rtype, role, records, signatures, patches, length }, body))
    }

    #[cold]
    fn read_wide(rtype: Rtype, role: Role, body: &[u8]) -> Option<(Self, &[u8])> {
        let (numbers, body) = body.split_first_chunk::<WIDE_OCTETS>()?;
        let number = |at: usize| u32_le(numbers, at) as usize;
        let (records, signatures, patches, length) = (number(0), number(4), number(8), number(12));
        Some((Self { rtype, role, records, signatures, patches, length }, body))
    }
}

/// Appends a block to `blocks`, whose length is a multiple of [`BLOCK_UNIT`] before and after.
/// Converts `name` to lower case. Returns the offset of `bodies` in `blocks`.
pub(super) fn push_block(
    kind: NodeKind,
    name: NameRef<'_>,
    heads: &[u8],
    bodies: &[u8],
    blocks: &mut Vec<u8>,
) -> usize {
    let count = (heads.len() / RRSET_HEAD_OCTETS) as u16;
    blocks.extend_from_slice(&[kind.code(), name.len() as u8]);
    blocks.extend_from_slice(&count.to_le_bytes());
    name.push_canonical(blocks);
    blocks.extend_from_slice(heads);
    let start = blocks.len();
    blocks.extend_from_slice(bodies);
    blocks.resize(blocks.len().next_multiple_of(BLOCK_UNIT), 0);
    start
}

/// Returns the little-endian number of four octets at `at`; 0 beyond the end.
pub(super) fn u32_le(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(|octets| octets.first_chunk()).map_or(0, |number| u32::from_le_bytes(*number))
}

/// Splits the block at the start of `block` into name, heads of the RRsets, and all following
/// octets.
#[inline]
pub(super) fn split_block(block: &[u8]) -> (&[u8], &[[u8; RRSET_HEAD_OCTETS]], &[u8]) {
    let count = usize::from(u16::from_le_bytes([block[2], block[3]]));
    let (name, rest) = block[BLOCK_HEAD_OCTETS..].split_at(usize::from(block[1]));
    let (heads, bodies) = rest.split_at(count * RRSET_HEAD_OCTETS);
    (name, heads.as_chunks().0, bodies)
}

/// Returns the start and the end of the octets of the RRset at `index`, as offsets in `bodies` of
/// [`split_block`].
#[inline]
pub(super) fn bounds(heads: &[[u8; RRSET_HEAD_OCTETS]], index: usize) -> (usize, usize) {
    let end =
        |head: &[u8; RRSET_HEAD_OCTETS]| u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    let start = if index == 0 { 0 } else { end(&heads[index - 1]) };
    (start, end(&heads[index]))
}

/// Returns the octets of the block at the start of `block`.
fn block_octets(block: &[u8]) -> usize {
    let (name, heads, _) = split_block(block);
    let bodies = heads.len().checked_sub(1).map_or(0, |last| bounds(heads, last).1);
    (BLOCK_HEAD_OCTETS + name.len() + heads.len() * RRSET_HEAD_OCTETS + bodies).next_multiple_of(BLOCK_UNIT)
}

const fn rtype_of(head: &[u8; RRSET_HEAD_OCTETS]) -> Rtype {
    Rtype(u16::from_le_bytes([head[0], head[1]]))
}

/// Whether the RRset belongs to the node, and is not glue or the SOA RRset of negative answers.
const fn is_own(head: &[u8; RRSET_HEAD_OCTETS]) -> bool {
    matches!(head[2] & !Role::WIDE_FLAG, DATA | CHAIN)
}

const fn is_glue(head: &[u8; RRSET_HEAD_OCTETS]) -> bool {
    matches!(head[2] & !Role::WIDE_FLAG, GLUE | REQUIRED_GLUE)
}

impl Image {
    /// Returns the node whose block is at `at`, in units of [`BLOCK_UNIT`] octets.
    #[inline]
    pub(super) fn node(&self, at: u32) -> ImageNode<'_> {
        ImageNode { image: self, block: &self.sections.blocks[at as usize * BLOCK_UNIT..] }
    }

    /// Iterates over all nodes in canonical order.
    pub fn nodes(&self) -> impl Iterator<Item = ImageNode<'_>> {
        let mut blocks: &[u8] = &self.sections.blocks;
        std::iter::from_fn(move || {
            let node = (!blocks.is_empty()).then_some(ImageNode { image: self, block: blocks })?;
            blocks = blocks.get(block_octets(blocks)..).unwrap_or_default();
            Some(node)
        })
    }
}

/// Addresses for a referral.
#[derive(Clone, Copy)]
pub struct Glue<'i> {
    /// The addresses.
    pub addresses: Template<'i>,
    /// Whether the referral is useless without them (RFC 9471 §3.1).
    pub is_required: bool,
}

impl<'i> ImageNode<'i> {
    /// The name, in lower case.
    #[must_use]
    #[inline]
    pub fn name(self) -> NameRef<'i> {
        NameRef::from_wire_unchecked(
            &self.block[BLOCK_HEAD_OCTETS..BLOCK_HEAD_OCTETS + usize::from(self.block[1])],
        )
    }

    /// The meaning of the node for an answer.
    #[must_use]
    pub fn kind(self) -> NodeKind {
        // The kinds of all blocks were checked when the image was compiled or opened.
        NodeKind::of_code(self.block[0]).unwrap_or(NodeKind::HashChainOwner)
    }

    /// Whether this is the apex.
    #[must_use]
    pub fn is_apex(self) -> bool {
        self.block.len() == self.image.sections.blocks.len()
    }

    /// Returns the template at `index`. `heads` and `bodies` must be those of the block.
    #[inline]
    fn template_from(
        self,
        heads: &'i [[u8; RRSET_HEAD_OCTETS]],
        bodies: &'i [u8],
        index: usize,
    ) -> Template<'i> {
        let (start, end) = bounds(heads, index);
        Template { image: self.image, block: self.block, head: &heads[index], body: &bodies[start..end] }
    }

    #[inline]
    fn templates_where(
        self,
        is_selected: fn(&[u8; RRSET_HEAD_OCTETS]) -> bool,
    ) -> impl Iterator<Item = Template<'i>> + Clone {
        let (_, heads, bodies) = split_block(self.block);
        let indexes = (0..heads.len()).filter(move |index| is_selected(&heads[*index]));
        indexes.map(move |index| self.template_from(heads, bodies, index))
    }

    /// Iterates over the templates of the RRsets that the node owns, by type. An empty non-terminal
    /// has none.
    #[inline]
    pub fn templates(self) -> impl Iterator<Item = Template<'i>> + Clone {
        self.templates_where(is_own)
    }

    /// Returns the template of the RRset of `rtype`.
    #[must_use]
    #[inline]
    pub fn template(self, rtype: Rtype) -> Option<Template<'i>> {
        let (_, heads, bodies) = split_block(self.block);
        let index = heads.iter().position(|head| rtype_of(head) == rtype && is_own(head))?;
        Some(self.template_from(heads, bodies, index))
    }

    /// Returns the template at `index` among the RRsets of the block, which must exist.
    pub(super) fn template_at(self, index: u16) -> Template<'i> {
        let (_, heads, bodies) = split_block(self.block);
        self.template_from(heads, bodies, usize::from(index))
    }

    /// Iterates over the addresses for a referral: first the required ones (RFC 9471 §3.1), then
    /// the others.
    #[inline]
    pub fn glue(self) -> impl Iterator<Item = Glue<'i>> {
        // The block contains them in this order.
        self.templates_where(is_glue).map(|addresses| {
            let is_required = addresses.head[2] & !Role::WIDE_FLAG == REQUIRED_GLUE;
            Glue { addresses, is_required }
        })
    }

    /// Returns the NSEC RRset that matches this node or, for an empty non-terminal, covers it.
    #[must_use]
    pub fn nsec(self) -> Option<Template<'i>> {
        self.template(Rtype::NSEC).or_else(|| self.image.nsec_at_or_before(self.name()))
    }
}

impl<'i> Template<'i> {
    /// Type of the RRset.
    #[must_use]
    pub const fn rtype(self) -> Rtype {
        rtype_of(self.head)
    }

    /// Number of records without signatures, at most 8192.
    #[must_use]
    pub fn record_count(self) -> u16 {
        self.parts().record_count
    }

    /// Number of signatures, at most 8192.
    #[must_use]
    pub fn signature_count(self) -> u16 {
        self.parts().signature_count
    }

    /// Number of records and of signatures, not limited to [`MAX_COUNT`].
    pub(super) fn counts(self) -> (usize, usize) {
        Head::read(self.head, self.body).map_or((0, 0), |(head, _)| (head.records, head.signatures))
    }

    /// Whether `self` and `other` are the same template of the same image.
    #[must_use]
    pub fn is_same(self, other: Template<'_>) -> bool {
        std::ptr::eq(self.head, other.head)
    }

    /// Returns a number that identifies the template in its image: the offset of its head in the
    /// blocks.
    #[must_use]
    pub fn id(self) -> u64 {
        let blocks = self.image.sections.blocks.as_ptr().addr();
        (self.head.as_ptr().addr() - blocks) as u64
    }

    /// TTL of the RRset in seconds.
    #[must_use]
    pub fn ttl(self) -> u32 {
        let mut octets = self.parts().records;
        // The owner ends with a pointer or with the root label; type and class follow.
        while let [length @ 1..=63, rest @ ..] = octets {
            octets = rest.get(usize::from(*length)..).unwrap_or_default();
        }
        let owner_end = if octets.first() == Some(&0) { 1 } else { 2 };
        let ttl = octets.get(owner_end + 4..).and_then(|rest| rest.first_chunk());
        ttl.map_or(0, |ttl| u32::from_be_bytes(*ttl))
    }

    /// Returns the node whose block contains the template.
    pub(super) const fn node(self) -> ImageNode<'i> {
        ImageNode { image: self.image, block: self.block }
    }

    /// Octets of the name of the node whose block contains the template.
    #[inline]
    pub(super) fn name_length(self) -> usize {
        usize::from(self.block[1])
    }

    #[inline]
    pub(super) fn parts(self) -> Parts<'i> {
        // All heads were checked when the image was compiled or opened.
        let Some((head, body)) = Head::read(self.head, self.body) else { return Parts::NONE };
        let (patches, rest) = body.split_at(head.patches * 2);
        let (records, signatures) = rest.split_at(head.length);
        Parts {
            role: head.role,
            record_count: head.records.min(MAX_COUNT) as u16,
            signature_count: head.signatures.min(MAX_COUNT) as u16,
            patches: patches.as_chunks().0,
            records,
            signatures,
        }
    }
}

impl Parts<'_> {
    /// Returns a lower limit of the octets that the records take in a response with the owner as
    /// rendered. Includes their signatures if `with_signatures` is set.
    #[inline]
    pub(super) fn min_octets(&self, with_signatures: bool) -> usize {
        // Names in full are longer than rendered names. A signature also gets type, class, TTL,
        // length and signer.
        self.records.len() + if with_signatures { self.signatures.len() } else { 0 }
    }

    /// An RRset without records.
    const NONE: Self = Self {
        role: Role::Data,
        record_count: 0,
        signature_count: 0,
        patches: &[],
        records: &[],
        signatures: &[],
    };
}

impl fmt::Debug for ImageNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().to_name().to_string();
        f.debug_struct("ImageNode").field("name", &name).field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Template<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("node", &self.node())
            .field("rtype", &self.rtype())
            .finish_non_exhaustive()
    }
}
