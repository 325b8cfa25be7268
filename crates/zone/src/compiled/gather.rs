//! Builder for chunks and their properties in the directory.

use super::directory::{
    ChunkProperties, Counts, MIXED_PATTERNS, NO_PATTERN, Patterns, Size, TimeRange, chain_pattern,
};
use super::{MIXED_TTLS_BIT, RRSET_ENTRY_SIZE};
use crate::contents::{Node, Rrset};
use nonesuch_proto::Rtype;
use std::io;

/// Range of times. `min` and `max` are differences from `base`, the first time that was added, in
/// seconds.
#[derive(Clone, Copy, Debug, Default)]
struct TimeSpread {
    base: u32,
    min: i32,
    max: i32,
}

impl TimeSpread {
    const fn new(base: u32) -> Self {
        Self { base, min: 0, max: 0 }
    }

    fn add(&mut self, time: u32) {
        let difference = time.wrapping_sub(self.base).cast_signed();
        self.min = self.min.min(difference);
        self.max = self.max.max(difference);
    }

    /// Returns the range; `None` if the times are too far apart for an order.
    fn to_range(self) -> Option<TimeRange> {
        self.max.checked_sub(self.min)?;
        let at = |difference: i32| self.base.wrapping_add(difference.cast_unsigned());
        Some(TimeRange { first: at(self.min), last: at(self.max) })
    }
}

/// The pattern of the records of one kind that were added.
#[derive(Clone, Debug, Default)]
enum CommonPattern {
    #[default]
    Absent,
    Uniform(Vec<u8>),
    Mixed,
}

impl CommonPattern {
    fn add(&mut self, pattern: &[u8]) {
        match self {
            Self::Absent => *self = Self::Uniform(pattern.to_vec()),
            Self::Uniform(known) if known == pattern => {}
            Self::Uniform(_) | Self::Mixed => *self = Self::Mixed,
        }
    }

    /// Returns the number of the pattern. Adds the pattern to `patterns` if it is new.
    fn number(&self, patterns: &mut Patterns) -> u16 {
        match self {
            Self::Absent => NO_PATTERN,
            Self::Uniform(pattern) => patterns.intern(pattern),
            Self::Mixed => MIXED_PATTERNS,
        }
    }

    /// Whether a directory may state `number` for this pattern. [`MIXED_PATTERNS`] is always
    /// correct, except without records.
    fn permits(&self, number: u16, patterns: &Patterns) -> bool {
        match self {
            Self::Absent => number == NO_PATTERN,
            Self::Uniform(pattern) => number == MIXED_PATTERNS || patterns.find(number) == Some(pattern),
            Self::Mixed => number == MIXED_PATTERNS,
        }
    }
}

/// Fields of a signature that the directory needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignatureFields {
    pub(super) algorithm: u8,
    /// Whether the original TTL is the TTL of the RRset.
    pub(super) has_ttl: bool,
    pub(super) expiration: u32,
    pub(super) inception: u32,
    pub(super) tag: u16,
}

/// Computes the properties of a chunk from its nodes, or from signatures and chain records that are
/// added one by one.
#[derive(Debug, Default)]
pub(super) struct ChunkPropertiesBuilder {
    counts: Counts,
    expirations: Option<TimeSpread>,
    inceptions: Option<TimeSpread>,
    signers: CommonPattern,
    chain: CommonPattern,
    /// The signers pattern of the current RRset; also a buffer for a chain pattern.
    pattern: Vec<u8>,
}

impl ChunkPropertiesBuilder {
    /// Adds all records of a node.
    pub(super) fn add(&mut self, node: Node<'_>) {
        // Type of the last NSEC or NSEC3 RRset whose signatures have not been found.
        let mut chain_record_type = None;
        for rrset in node.rrsets() {
            self.counts.records += rrset.count() as u32;
            match rrset.rtype() {
                Rtype::RRSIG => {
                    if chain_record_type == Some(rrset.covered()) {
                        chain_record_type = None;
                    }
                    self.add_signatures(rrset);
                }
                Rtype::NSEC | Rtype::NSEC3 => {
                    if chain_record_type.replace(rrset.rtype()).is_some() {
                        self.chain = CommonPattern::Mixed;
                    }
                    self.add_chain_record(rrset);
                }
                _ => {}
            }
        }
        if chain_record_type.is_some() {
            self.chain = CommonPattern::Mixed;
        }
    }

    fn add_chain_record(&mut self, rrset: Rrset<'_>) {
        self.counts.chain_records += rrset.count() as u32;
        for rdata in rrset.rdatas() {
            let fields = match rrset.rtype() {
                // Hash algorithm, flags, iterations and salt (RFC 5155 §3.2).
                Rtype::NSEC3 => rdata.get(4).and_then(|salt| rdata.get(..5 + usize::from(*salt))),
                _ => Some(&[][..]),
            };
            let Some(fields) = fields.filter(|_| rrset.count() == 1) else {
                self.chain = CommonPattern::Mixed;
                return;
            };
            self.pattern.clear();
            chain_pattern(rrset.rtype(), rrset.ttl(), fields, &mut self.pattern);
            self.chain.add(&self.pattern);
            self.pattern.clear();
        }
    }

    fn add_signatures(&mut self, rrset: Rrset<'_>) {
        for rdata in rrset.rdatas() {
            // Covered type, algorithm, labels, original TTL, expiration, inception, key tag
            // (RFC 4034 §3.1).
            let Some(fields) = rdata.first_chunk::<18>() else {
                self.counts.signatures += 1;
                self.signers = CommonPattern::Mixed;
                continue;
            };
            let u32_at =
                |at: usize| u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
            self.add_signature(&SignatureFields {
                algorithm: fields[2],
                has_ttl: u32_at(4) == rrset.ttl(),
                expiration: u32_at(8),
                inception: u32_at(12),
                tag: u16::from_be_bytes([fields[16], fields[17]]),
            });
        }
        self.end_signatures();
    }

    /// Adds a signature of the current RRset.
    pub(super) fn add_signature(&mut self, fields: &SignatureFields) {
        let SignatureFields { algorithm, has_ttl, expiration, inception, tag } = *fields;
        self.counts.signatures += 1;
        self.expirations.get_or_insert_with(|| TimeSpread::new(expiration)).add(expiration);
        self.inceptions.get_or_insert_with(|| TimeSpread::new(inception)).add(inception);
        if !has_ttl {
            self.signers = CommonPattern::Mixed;
        }
        let [high, low] = tag.to_be_bytes();
        self.pattern.extend_from_slice(&[algorithm, high, low]);
    }

    /// Ends the signatures of the current RRset.
    pub(super) fn end_signatures(&mut self) {
        self.counts.signed_rrsets += 1;
        // The order of the signatures of several keys also depends on their times, so the pattern
        // is sorted.
        if self.pattern.len() > 3 {
            self.pattern.as_chunks_mut::<3>().0.sort_unstable();
        }
        self.signers.add(&self.pattern);
        self.pattern.clear();
    }

    /// Adds to the number of records.
    pub(super) const fn add_records(&mut self, count: u32) {
        self.counts.records += count;
    }

    /// Adds a signed NSEC or NSEC3 record with this pattern.
    pub(super) fn add_chain_pattern(&mut self, pattern: &[u8]) {
        self.counts.chain_records += 1;
        self.chain.add(pattern);
    }

    /// Resets all properties.
    pub(super) fn clear(&mut self) {
        *self = Self { pattern: std::mem::take(&mut self.pattern), ..Self::default() };
    }

    /// Returns the properties for the directory. New patterns are added to `patterns`.
    pub(super) fn build(&self, patterns: &mut Patterns) -> ChunkProperties {
        let range = |spread: Option<TimeSpread>| spread.unwrap_or_default().to_range();
        let (expirations, inceptions) = (range(self.expirations), range(self.inceptions));
        let is_ordered = expirations.is_some() && inceptions.is_some();
        ChunkProperties {
            counts: self.counts,
            expirations: expirations.unwrap_or_default(),
            inceptions: inceptions.unwrap_or_default(),
            signers: if is_ordered { self.signers.number(patterns) } else { MIXED_PATTERNS },
            chain: self.chain.number(patterns),
        }
    }

    /// Whether `properties` are correct for the nodes. [`MIXED_PATTERNS`] is also correct for a
    /// uniform pattern.
    pub(super) fn matches(&self, properties: &ChunkProperties, patterns: &Patterns) -> bool {
        let range = |spread: Option<TimeSpread>| spread.unwrap_or_default().to_range();
        let (expirations, inceptions) = (range(self.expirations), range(self.inceptions));
        let is_ordered = expirations.is_some() && inceptions.is_some();
        self.counts == properties.counts
            && expirations.unwrap_or_default() == properties.expirations
            && inceptions.unwrap_or_default() == properties.inceptions
            && (is_ordered || properties.signers == MIXED_PATTERNS)
            && self.signers.permits(properties.signers, patterns)
            && self.chain.permits(properties.chain, patterns)
    }
}

/// Encodes nodes as a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkBuilder {
    properties: ChunkPropertiesBuilder,
    size: Size,
    /// The encoded entries of the names.
    nodes: Vec<u8>,
    /// The encoded entries of the RRsets.
    rrsets: Vec<u8>,
    names: Vec<u8>,
    rdata: Vec<u8>,
    /// Octets of the first name.
    first_name_octets: usize,
    /// Target size of the chunk in octets.
    target_octets: usize,
    /// Whether [`MIXED_TTLS_BIT`] is set for RRsets with records of different TTLs.
    marks_mixed_ttls: bool,
}

impl ChunkBuilder {
    pub(super) fn new(target_octets: u32, marks_mixed_ttls: bool) -> Self {
        Self { target_octets: target_octets as usize, marks_mixed_ttls, ..Self::default() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.size.nodes == 0
    }

    /// Size of the chunk in octets.
    fn octets(&self) -> usize {
        self.nodes.len() + self.rrsets.len() + self.names.len() + self.rdata.len()
    }

    /// Whether the chunk has its target size.
    pub(super) fn is_full(&self) -> bool {
        self.octets() >= self.target_octets
    }

    /// Whether the chunk must end in a file with copied chunks. The limit is twice the target size,
    /// so that a chunk can absorb a few additional names. With a lower limit, the rest of a full
    /// chunk would move into the next chunk, and so on through all chunks.
    pub(super) fn is_overfull(&self) -> bool {
        self.octets() >= self.target_octets * 2
    }

    /// Whether the chunk is large enough to end before an unchanged chunk.
    pub(super) fn is_half_full(&self) -> bool {
        self.octets() >= self.target_octets / 2
    }

    /// Adds a node, which must follow the existing nodes in canonical order.
    ///
    /// # Errors
    /// A name has records of 4 GiB or more.
    pub(super) fn push(&mut self, node: Node<'_>) -> io::Result<()> {
        let (name, entries) = (node.name().wire(), node.entries());
        if self.is_empty() {
            self.first_name_octets = name.len();
        }
        let entry = name.len() as u32 | (entries.len() as u32) << 8;
        self.nodes.extend_from_slice(&entry.to_le_bytes());
        self.names.extend_from_slice(name);
        for rrset in node.rrsets() {
            let octets = rrset.stored_records();
            let length = u32::try_from(octets.len()).map_err(|_| too_large())?;
            let mut entry = [0; RRSET_ENTRY_SIZE];
            entry[..2].copy_from_slice(&rrset.rtype().0.to_le_bytes());
            entry[2..4].copy_from_slice(&rrset.covered().0.to_le_bytes());
            entry[4..8].copy_from_slice(&rrset.ttl().to_le_bytes());
            let mixed = if self.marks_mixed_ttls && rrset.has_mixed_ttls() { MIXED_TTLS_BIT } else { 0 };
            entry[8..12].copy_from_slice(&(rrset.count() as u32 | mixed).to_le_bytes());
            entry[12..].copy_from_slice(&length.to_le_bytes());
            self.rrsets.extend_from_slice(&entry);
            self.rdata.extend_from_slice(octets);
        }
        self.size.nodes += 1;
        self.size.rrsets += entries.len() as u32;
        self.size.names += name.len() as u32;
        self.size.rdata = u32::try_from(self.rdata.len()).map_err(|_| too_large())?;
        self.properties.add(node);
        Ok(())
    }

    pub(super) const fn size(&self) -> Size {
        self.size
    }

    pub(super) fn first_name(&self) -> &[u8] {
        &self.names[..self.first_name_octets]
    }

    /// Returns the properties for the directory; see [`ChunkPropertiesBuilder::build`].
    pub(super) fn properties(&self, patterns: &mut Patterns) -> ChunkProperties {
        self.properties.build(patterns)
    }

    /// Passes the octets of the chunk to `put` in order, and resets the builder.
    pub(super) fn drain(&mut self, mut put: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        for octets in [&mut self.nodes, &mut self.rrsets, &mut self.names, &mut self.rdata] {
            put(octets)?;
            octets.clear();
        }
        self.size = Size::default();
        self.properties.clear();
        Ok(())
    }
}

fn too_large() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        "a name has records of 4 GiB or more: a compiled zone cannot contain them",
    )
}
