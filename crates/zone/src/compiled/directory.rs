//! The directory of a compiled zone: location and content of each chunk, and the properties that
//! let a signer copy a chunk without reading it.

use super::header::Envelope;
use super::source::{u16_le, u32_le};
use super::*;
use nonesuch_proto::{NameRef, Rtype};

/// Pattern number of a chunk without such records.
pub(super) const NO_PATTERN: u16 = 0xffff;
/// Pattern number of a chunk that has several patterns, or whose pattern is unknown.
pub(super) const MIXED_PATTERNS: u16 = 0xfffe;
/// Maximum number of patterns. A zone usually has a few. With more patterns, the search for a
/// pattern would cost more than it saves.
const MAX_PATTERNS: usize = 1024;
/// Octets of an entry of the directory, without its name.
const ENTRY_FIXED_OCTETS: usize = 85;

/// Appends to `out` the pattern of RRsets that have exactly one signature by each key in `keys`,
/// whose original TTL is the TTL of the RRset. A key is an algorithm number and a key tag. Sorts
/// `keys`.
pub fn signers_pattern(keys: &mut [(u8, u16)], out: &mut Vec<u8>) {
    keys.sort_unstable();
    for (algorithm, tag) in keys {
        out.push(*algorithm);
        out.extend_from_slice(&tag.to_be_bytes());
    }
}

/// Appends to `out` the pattern of signed NSEC or NSEC3 records with the TTL `ttl`, one for each
/// owner. `fields` is the start of their RDATA: for NSEC3, hash algorithm, flags, iterations and
/// salt (RFC 5155 §3.2); for NSEC, nothing.
pub fn chain_pattern(rtype: Rtype, ttl: u32, fields: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&rtype.0.to_be_bytes());
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(fields);
}

/// Sizes of a chunk. `names` and `rdata` are octets in the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) nodes: u32,
    pub(super) rrsets: u32,
    pub(super) names: u32,
    pub(super) rdata: u32,
}

impl Size {
    /// Octets of the chunk.
    pub(super) fn octets(&self) -> u64 {
        let of = |count: u32, each: usize| u64::from(count) * each as u64;
        of(self.nodes, NODE_ENTRY_SIZE)
            + of(self.rrsets, RRSET_ENTRY_SIZE)
            + of(self.names, 1)
            + of(self.rdata, 1)
    }
}

/// Numbers of records and RRsets in a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) records: u32,
    /// RRSIG records.
    pub(super) signatures: u32,
    /// RRsets that have RRSIG records.
    pub(super) signed_rrsets: u32,
    /// NSEC and NSEC3 records.
    pub(super) chain_records: u32,
}

/// The first and the last of several times in serial number arithmetic (RFC 1982). They are less
/// than 2^31 seconds apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time, in seconds since 1970 modulo 2^32.
    pub first: u32,
    /// The last time, in seconds since 1970 modulo 2^32.
    pub last: u32,
}

/// Properties of a chunk in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkProperties {
    pub(super) counts: Counts,
    pub(super) expirations: TimeRange,
    pub(super) inceptions: TimeRange,
    /// Number of the [`signers_pattern`].
    pub(super) signers: u16,
    /// Number of the [`chain_pattern`].
    pub(super) chain: u16,
}

/// Patterns, without duplicates.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(Vec<Vec<u8>>);

impl Patterns {
    /// Returns the number of `pattern` and adds it if it is new. Returns [`MIXED_PATTERNS`] if it
    /// cannot be added: it is too long, or there are [`MAX_PATTERNS`] patterns.
    pub(super) fn intern(&mut self, pattern: &[u8]) -> u16 {
        let known = self.0.iter().position(|known| known == pattern);
        match known.unwrap_or(self.0.len()) {
            index if index >= MAX_PATTERNS || pattern.len() > usize::from(u16::MAX) => MIXED_PATTERNS,
            index => {
                if known.is_none() {
                    self.0.push(pattern.to_vec());
                }
                index as u16
            }
        }
    }

    /// Returns the pattern with this number; `None` for [`NO_PATTERN`] and [`MIXED_PATTERNS`].
    pub(super) fn find(&self, number: u16) -> Option<&Vec<u8>> {
        self.0.get(usize::from(number))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// A chunk in the directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) size: Size,
    pub(super) properties: ChunkProperties,
    pub(super) digest: [u8; DIGEST_OCTETS],
    /// Offset of the chunk in the file.
    pub(super) offset: u64,
    /// Octets of the chunk in the file.
    pub(super) octets: u64,
    /// Index of its first name in the zone.
    pub(super) first_node: u32,
    /// Offset of its first name in `names` of the directory.
    name: u32,
    /// Octets of its first name.
    name_octets: u8,
}

/// All chunks in order.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) entries: Vec<Entry>,
    pub(super) patterns: Patterns,
    /// The first names of all chunks in wire format.
    names: Vec<u8>,
    /// Totals over all chunks. A chunk that would exceed their range is an error.
    pub(super) total: Total,
    /// Offset of the first chunk in the file.
    pub(super) start: u64,
}

impl Default for Directory {
    fn default() -> Self {
        let (entries, patterns, names) = (Vec::new(), Patterns::default(), Vec::new());
        Self { entries, patterns, names, total: Total::default(), start: HEADER_OCTETS as u64 }
    }
}

/// Totals over all chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    pub(super) nodes: u32,
    pub(super) rrsets: u32,
    pub(super) names: u32,
    pub(super) rdata: u64,
    pub(super) records: u64,
    /// Octets of all chunks.
    pub(super) octets: u64,
}

impl Total {
    /// Returns the totals with another chunk; `None` if contents cannot hold so much data.
    fn with(&self, size: &Size, octets: u64, records: u32) -> Option<Self> {
        Some(Self {
            nodes: self.nodes.checked_add(size.nodes)?,
            rrsets: self.rrsets.checked_add(size.rrsets)?,
            names: self.names.checked_add(size.names)?,
            rdata: self.rdata.checked_add(u64::from(size.rdata))?,
            records: self.records + u64::from(records),
            octets: self.octets.checked_add(octets)?,
        })
    }
}

impl Directory {
    /// Creates the directory of a zone file. Its entries have no digests, and of their sizes only
    /// the number of names.
    pub(super) fn of_text() -> Self {
        Self { start: 0, ..Self::default() }
    }

    /// Appends a chunk of a compiled zone. Returns `None` if contents cannot hold so much data.
    pub(super) fn push(
        &mut self,
        first_name: &[u8],
        size: Size,
        properties: ChunkProperties,
        digest: [u8; DIGEST_OCTETS],
    ) -> Option<()> {
        self.push_octets(first_name, size, size.octets(), properties, digest)
    }

    /// Same as [`Self::push`], for a chunk that takes `octets` octets in the file.
    pub(super) fn push_octets(
        &mut self,
        first_name: &[u8],
        size: Size,
        octets: u64,
        properties: ChunkProperties,
        digest: [u8; DIGEST_OCTETS],
    ) -> Option<()> {
        let total = self.total.with(&size, octets, properties.counts.records)?;
        let name = u32::try_from(self.names.len()).ok()?;
        self.names.extend_from_slice(first_name);
        let (offset, first_node) = (self.start + self.total.octets, self.total.nodes);
        let name_octets = first_name.len() as u8;
        self.entries.push(Entry { size, properties, digest, offset, octets, first_node, name, name_octets });
        self.total = total;
        Some(())
    }

    /// Returns the first name of a chunk.
    pub(super) fn name(&self, chunk: usize) -> NameRef<'_> {
        let Entry { name, name_octets, .. } = self.entries[chunk];
        NameRef::from_wire_unchecked(&self.names[name as usize..][..usize::from(name_octets)])
    }

    /// Returns the summary of a chunk.
    pub(super) fn summary(&self, chunk: usize) -> ChunkSummary<'_> {
        ChunkSummary { entry: &self.entries[chunk], patterns: &self.patterns }
    }

    /// Returns the chunk that contains the node at `index` of the zone. For an index after the last
    /// node, returns the last chunk.
    pub(super) fn chunk_of_node(&self, index: usize) -> usize {
        self.entries.partition_point(|entry| entry.first_node as usize <= index).saturating_sub(1)
    }

    /// Returns the chunk that contains `name` if the zone has it: the last chunk with a first name
    /// at or before `name`.
    pub(super) fn chunk_of_name(&self, name: NameRef<'_>) -> usize {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.name(middle).cmp_canonical(name).is_le() { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// Returns the directory in the format of the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * ENTRY_FIXED_OCTETS + self.names.len());
        for pattern in &self.patterns.0 {
            out.extend_from_slice(&(pattern.len() as u16).to_le_bytes());
            out.extend_from_slice(pattern);
        }
        for (chunk, Entry { size, properties, digest, .. }) in self.entries.iter().enumerate() {
            let ChunkProperties { counts, expirations, inceptions, signers, chain } = properties;
            let words = [
                [size.nodes, size.rrsets, size.names, size.rdata],
                [counts.records, counts.signatures, counts.signed_rrsets, counts.chain_records],
                [expirations.first, expirations.last, inceptions.first, inceptions.last],
            ];
            words.as_flattened().iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            out.extend_from_slice(&signers.to_le_bytes());
            out.extend_from_slice(&chain.to_le_bytes());
            out.extend_from_slice(digest);
            let name = self.name(chunk).wire();
            out.push(name.len() as u8);
            out.extend_from_slice(name);
        }
        out
    }

    /// Reads a directory. The chunks must fill the file between the header and the directory, and
    /// their first names must be in order.
    pub(super) fn read(envelope: &Envelope) -> Result<Self, CompiledError> {
        let malformed = || CompiledError::Layout("directory");
        let mut rest = &envelope.directory[..];
        let mut all = Self::default();
        if envelope.patterns as usize > MAX_PATTERNS {
            return Err(malformed());
        }
        for _ in 0..envelope.patterns {
            let (length, tail) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
            let (pattern, tail) =
                tail.split_at_checked(usize::from(u16::from_le_bytes(*length))).ok_or_else(malformed)?;
            all.patterns.0.push(pattern.to_vec());
            rest = tail;
        }
        for chunk in 0..envelope.chunks as usize {
            let (entry, tail) = rest.split_first_chunk::<ENTRY_FIXED_OCTETS>().ok_or_else(malformed)?;
            let (name, tail) =
                tail.split_at_checked(usize::from(entry[ENTRY_FIXED_OCTETS - 1])).ok_or_else(malformed)?;
            let name = NameRef::from_wire(name).map_err(|_| malformed())?;
            let previous = chunk.checked_sub(1).map(|previous| all.name(previous));
            if !check::is_next_name(name, previous, envelope.apex.view()) {
                return Err(malformed());
            }
            let (size, properties, digest) = read_entry(entry, all.patterns.count()).ok_or_else(malformed)?;
            all.push(name.wire(), size, properties, digest).ok_or_else(malformed)?;
            rest = tail;
        }
        let fits = rest.is_empty() && envelope.offset == HEADER_OCTETS as u64 + all.total.octets;
        if fits { Ok(all) } else { Err(malformed()) }
    }
}

fn read_entry(
    octets: &[u8; ENTRY_FIXED_OCTETS],
    patterns: usize,
) -> Option<(Size, ChunkProperties, [u8; DIGEST_OCTETS])> {
    let [nodes, rrsets, names, rdata] = [0, 4, 8, 12].map(|at| u32_le(octets, at));
    let [records, signatures, signed_rrsets, chain_records] = [16, 20, 24, 28].map(|at| u32_le(octets, at));
    let [signers, chain] = [48, 50].map(|at| u16_le(octets, at));
    let is_known = |number: u16| number >= MIXED_PATTERNS || usize::from(number) < patterns;
    let properties = ChunkProperties {
        counts: Counts { records, signatures, signed_rrsets, chain_records },
        expirations: TimeRange { first: u32_le(octets, 32), last: u32_le(octets, 36) },
        inceptions: TimeRange { first: u32_le(octets, 40), last: u32_le(octets, 44) },
        signers,
        chain,
    };
    let digest = octets[52..].first_chunk::<DIGEST_OCTETS>()?;
    (nodes > 0 && is_known(signers) && is_known(chain)).then_some((
        Size { nodes, rrsets, names, rdata },
        properties,
        *digest,
    ))
}

/// Property that the records of one kind in a chunk may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniformity<'a> {
    /// The chunk has no such records.
    Absent,
    /// All such records have this pattern.
    Uniform(&'a [u8]),
    /// The records have different patterns, or only reading the chunk can tell.
    Mixed,
}

/// Summary of a chunk from the directory of a compiled zone.
#[derive(Clone, Copy, Debug)]
pub struct ChunkSummary<'a> {
    entry: &'a Entry,
    patterns: &'a Patterns,
}

impl<'a> ChunkSummary<'a> {
    /// Range of the indexes of the nodes in the zone.
    #[must_use]
    pub const fn node_range(self) -> std::ops::Range<usize> {
        let start = self.entry.first_node as usize;
        start..start + self.entry.size.nodes as usize
    }

    /// Number of records.
    #[must_use]
    pub fn records(self) -> u64 {
        self.entry.properties.counts.records.into()
    }

    /// Number of RRSIG records.
    #[must_use]
    pub fn signatures(self) -> u64 {
        self.entry.properties.counts.signatures.into()
    }

    /// Number of RRsets that have RRSIG records.
    #[must_use]
    pub fn signed_rrsets(self) -> u64 {
        self.entry.properties.counts.signed_rrsets.into()
    }

    /// Number of NSEC and NSEC3 records.
    #[must_use]
    pub fn chain_records(self) -> u64 {
        self.entry.properties.counts.chain_records.into()
    }

    /// First and last expiration of the signatures in serial number arithmetic. Not meaningful if
    /// [`Self::signers`] is [`Uniformity::Mixed`].
    #[must_use]
    pub const fn expirations(self) -> TimeRange {
        self.entry.properties.expirations
    }

    /// First and last inception of the signatures; see [`Self::expirations`].
    #[must_use]
    pub const fn inceptions(self) -> TimeRange {
        self.entry.properties.inceptions
    }

    /// The keys that sign the RRsets, as a [`signers_pattern`].
    #[must_use]
    pub fn signers(self) -> Uniformity<'a> {
        self.uniformity(self.entry.properties.signers)
    }

    /// The common properties of the NSEC or NSEC3 records, as a [`chain_pattern`].
    #[must_use]
    pub fn chain(self) -> Uniformity<'a> {
        self.uniformity(self.entry.properties.chain)
    }

    fn uniformity(self, number: u16) -> Uniformity<'a> {
        match number {
            NO_PATTERN => Uniformity::Absent,
            number => {
                self.patterns.find(number).map_or(Uniformity::Mixed, |pattern| Uniformity::Uniform(pattern))
            }
        }
    }
}
