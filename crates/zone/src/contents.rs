//! Immutable contents of a zone: nodes in canonical order, each with its RRsets.
//!
//! Owner names and RDATA are stored in two arenas; nodes and RRsets are views into them. The RRSIG
//! records that cover one type form an RRset, which directly follows the RRset that they cover.
//!
//! The signer and the verifier work on contents. [`Image`](crate::Image) is compiled from contents
//! to answer queries.

use nonesuch_proto::{Name, NameRef, Rtype};

/// The records of a zone: all names with their RRsets, in canonical order (RFC 4034 §6.1).
#[derive(Clone, Debug)]
pub struct Contents {
    pub(crate) apex: Name,
    /// Names in wire format, in the order of the nodes.
    pub(crate) names: Vec<u8>,
    /// For each record, the length in two octets and the RDATA.
    pub(crate) rdata: Vec<u8>,
    pub(crate) nodes: Vec<NodeEntry>,
    pub(crate) rrsets: Vec<RrsetEntry>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeEntry {
    /// Offset of the name in `names`.
    pub(crate) name: u32,
    /// Index in `rrsets`. The RRsets of the node end where those of the next node begin.
    pub(crate) first_rrset: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RrsetEntry {
    /// Offset of the first record in the RDATA arena.
    pub(crate) start: u64,
    pub(crate) ttl: u32,
    pub(crate) rtype: Rtype,
    /// The covered type if `rtype` is RRSIG, otherwise `rtype`.
    pub(crate) covered: Rtype,
    pub(crate) count: u32,
    /// Whether the records were read with different TTLs; `ttl` is then the lowest.
    pub(crate) mixed_ttls: bool,
}

impl Contents {
    /// Apex of the zone.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// Number of names that own records.
    #[must_use]
    pub const fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Number of records.
    #[must_use]
    pub fn record_count(&self) -> u64 {
        self.rrsets.iter().map(|rrset| u64::from(rrset.count)).sum()
    }

    /// Whether an RRset was read with different TTLs ([`Rrset::has_mixed_ttls`]).
    #[must_use]
    pub fn has_mixed_ttls(&self) -> bool {
        self.rrsets.iter().any(|rrset| rrset.mixed_ttls && rrset.count > 1)
    }

    /// Approximate size in octets of an uncompressed transfer of the zone. Each owner name counts
    /// once, and each RRset counts 10 octets for type, class, TTL and length.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        (self.names.len() + self.rdata.len() + self.rrsets.len() * 10) as u64
    }

    /// Returns the node at `index` in canonical order. The index must be less than
    /// [`Contents::node_count`]; otherwise the methods of the node panic.
    #[must_use]
    pub const fn node(&self, index: usize) -> Node<'_> {
        Node { contents: self, index }
    }

    /// Iterates over all nodes in canonical order. The first node is the apex.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node<'_>> + Clone {
        (0..self.nodes.len()).map(|index| self.node(index))
    }

    /// Returns the offset of the name and the index of the first RRset of the node at `index`. For
    /// the index after the last node, returns the ends of `names` and `rrsets`.
    fn arena_offsets(&self, index: usize) -> NodeEntry {
        let end = NodeEntry { name: self.names.len() as u32, first_rrset: self.rrsets.len() as u32 };
        self.nodes.get(index).copied().unwrap_or(end)
    }

    /// Returns the offset in the RDATA arena at which the records of `node` begin.
    fn rdata_start(&self, node: NodeEntry) -> usize {
        self.rrsets.get(node.first_rrset as usize).map_or(self.rdata.len(), |rrset| rrset.start as usize)
    }

    /// Finds the node of `name`, in any letter case, by binary search.
    ///
    /// # Errors
    /// The index at which the node would be inserted.
    pub fn find(&self, name: NameRef<'_>) -> Result<Node<'_>, usize> {
        self.find_in_range(0..self.nodes.len(), name)
    }

    /// Same as [`Contents::find`], for a name that does not precede the node at `from`. The step of
    /// the search doubles from node to node, so the search is fast for near and for distant names.
    ///
    /// # Errors
    /// As [`Contents::find`].
    pub fn find_from(&self, from: usize, name: NameRef<'_>) -> Result<Node<'_>, usize> {
        let (mut low, mut high, mut step) = (from, from, 1);
        while high < self.nodes.len() {
            let node = self.node(high);
            if node.name().wire() == name.wire() {
                return Ok(node);
            }
            if node.name().cmp_canonical(name).is_ge() {
                break;
            }
            low = high + 1;
            high += step;
            step *= 2;
        }
        // The node at `high` may be the name in another letter case.
        self.find_in_range(low..(high + 1).min(self.nodes.len()), name)
    }

    fn find_in_range(&self, range: std::ops::Range<usize>, name: NameRef<'_>) -> Result<Node<'_>, usize> {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            match self.node(middle).name().cmp_canonical(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(self.node(middle)),
            }
        }
        Err(low)
    }

    /// Returns the RRset of `rtype` at the apex.
    #[must_use]
    pub fn apex_rrset(&self, rtype: Rtype) -> Option<Rrset<'_>> {
        self.nodes().next().and_then(|apex| apex.rrset(rtype))
    }

    /// Returns the fields of the SOA record at the apex; `None` if the zone has none or it is
    /// malformed.
    #[must_use]
    pub fn soa(&self) -> Option<Soa> {
        let rrset = self.apex_rrset(Rtype::SOA)?;
        let rdata = rrset.rdatas().next()?;
        let numbers: &[u8; 20] = rdata.get(rdata.len().checked_sub(20)?..)?.try_into().ok()?;
        let u32_at =
            |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        Some(Soa {
            ttl: rrset.ttl(),
            serial: u32_at(0),
            refresh: u32_at(4),
            retry: u32_at(8),
            expire: u32_at(12),
            minimum: u32_at(16),
        })
    }
}

/// Fields of the SOA record that signing, serving and semantic checks need. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soa {
    /// TTL of the record.
    pub ttl: u32,
    /// Serial number.
    pub serial: u32,
    /// Time after which a secondary checks for a new version.
    pub refresh: u32,
    /// Time after which a secondary repeats a failed check.
    pub retry: u32,
    /// Time after which a secondary stops serving the zone if no check succeeds.
    pub expire: u32,
    /// The minimum field, which limits the TTL of negative answers (RFC 2308 §4).
    pub minimum: u32,
}

impl Soa {
    /// TTL of NSEC and NSEC3 records and of negative answers: the lower of the TTL and the minimum
    /// field of the SOA record (RFC 9077 §3, RFC 2308 §5).
    #[must_use]
    pub fn negative_ttl(&self) -> u32 {
        self.ttl.min(self.minimum)
    }
}

/// A name of a zone with its RRsets.
#[derive(Clone, Copy, Debug)]
pub struct Node<'z> {
    contents: &'z Contents,
    index: usize,
}

impl<'z> Node<'z> {
    /// Index of the node in canonical order.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index
    }

    /// The owner name, in the letter case of the zone file.
    #[must_use]
    pub fn name(self) -> NameRef<'z> {
        let names = &self.contents.names;
        let start = self.contents.nodes[self.index].name as usize;
        let end = self.contents.nodes.get(self.index + 1).map_or(names.len(), |next| next.name as usize);
        NameRef::from_wire_unchecked(&names[start..end])
    }

    /// Iterates over the RRsets by type. The signatures of an RRset directly follow it.
    pub fn rrsets(self) -> impl ExactSizeIterator<Item = Rrset<'z>> + Clone {
        let contents = self.contents;
        self.entries().iter().map(move |entry| Rrset { contents, entry })
    }

    pub(crate) fn entries(self) -> &'z [RrsetEntry] {
        let contents = self.contents;
        let start = contents.nodes[self.index].first_rrset as usize;
        let end = contents
            .nodes
            .get(self.index + 1)
            .map_or(contents.rrsets.len(), |next| next.first_rrset as usize);
        &contents.rrsets[start..end]
    }

    /// Octets of the RDATA of all records, with two octets for the length of each.
    pub(crate) fn rdata_octets(self) -> usize {
        let start = |index| self.contents.rdata_start(self.contents.arena_offsets(index));
        start(self.index + 1) - start(self.index)
    }

    /// Number of records.
    pub(crate) fn record_count(self) -> usize {
        self.entries().iter().map(|entry| entry.count as usize).sum()
    }

    /// Returns the RRset of `rtype`. For RRSIG records, use [`Node::signatures`].
    #[must_use]
    pub fn rrset(self, rtype: Rtype) -> Option<Rrset<'z>> {
        self.rrsets().find(|rrset| rrset.rtype() == rtype)
    }

    /// Returns the RRSIG records that cover `rtype`.
    #[must_use]
    pub fn signatures(self, rtype: Rtype) -> Option<Rrset<'z>> {
        self.rrsets().find(|rrset| rrset.rtype() == Rtype::RRSIG && rrset.covered() == rtype)
    }

    /// Whether the node has an RRset of `rtype`.
    #[must_use]
    pub fn has(self, rtype: Rtype) -> bool {
        self.rrset(rtype).is_some()
    }

    /// Returns the next node in canonical order.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        (self.index + 1 < self.contents.nodes.len()).then(|| self.contents.node(self.index + 1))
    }
}

/// An RRset: the records of one owner and type. RRSIG records are grouped by the covered type.
#[derive(Clone, Copy, Debug)]
pub struct Rrset<'z> {
    contents: &'z Contents,
    entry: &'z RrsetEntry,
}

impl<'z> Rrset<'z> {
    /// Type of the RRset.
    #[must_use]
    pub const fn rtype(self) -> Rtype {
        self.entry.rtype
    }

    /// The covered type for RRSIG records, otherwise the type itself.
    #[must_use]
    pub const fn covered(self) -> Rtype {
        self.entry.covered
    }

    /// TTL in seconds.
    #[must_use]
    pub const fn ttl(self) -> u32 {
        self.entry.ttl
    }

    /// Whether the zone file or transfer contains different TTLs for the records of this RRset
    /// (RFC 2181 §5.2). [`Rrset::ttl`] is the lowest of them.
    #[must_use]
    pub const fn has_mixed_ttls(self) -> bool {
        self.entry.mixed_ttls && self.entry.count > 1
    }

    /// Number of records, at least one.
    #[must_use]
    pub const fn count(self) -> usize {
        self.entry.count as usize
    }

    /// The records as stored in the arena: for each, its length in two octets and its RDATA.
    pub(crate) fn stored_records(self) -> &'z [u8] {
        let rdata = &self.contents.rdata[self.entry.start as usize..];
        let length = self.rdatas().map(|record| record.len() + 2).sum();
        &rdata[..length]
    }

    /// Iterates over the RDATA of the records, with uncompressed names, in canonical order
    /// (RFC 4034 §6.3) and without duplicates.
    pub fn rdatas(self) -> impl Iterator<Item = &'z [u8]> + Clone {
        let mut rest = &self.contents.rdata[self.entry.start as usize..];
        (0..self.entry.count).map(move |_| {
            let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
            let (rdata, tail) = rest[2..].split_at(length);
            rest = tail;
            rdata
        })
    }
}

/// Consecutive nodes under construction. Builders that are filled in parallel can be joined into
/// contents.
#[derive(Debug, Default)]
pub struct NodesBuilder {
    names: Vec<u8>,
    rdata: Vec<u8>,
    nodes: Vec<NodeEntry>,
    rrsets: Vec<RrsetEntry>,
}

impl NodesBuilder {
    /// Creates an empty builder with the given capacity.
    pub(crate) fn with_capacity(capacity: Capacity) -> Self {
        Self {
            names: Vec::with_capacity(capacity.names),
            rdata: Vec::with_capacity(capacity.rdata),
            nodes: Vec::with_capacity(capacity.nodes),
            rrsets: Vec::with_capacity(capacity.rrsets),
        }
    }

    /// Begins the next node, which must follow the last one in canonical order.
    pub fn begin_node(&mut self, name: NameRef<'_>) {
        self.nodes.push(NodeEntry { name: self.names.len() as u32, first_rrset: self.rrsets.len() as u32 });
        self.names.extend_from_slice(name.wire());
    }

    /// Begins the next RRset of the current node, with the TTL `ttl` in seconds. The RRsets of a
    /// node must be in the order of their types, each followed by its signatures. `covered` is the
    /// type that signatures cover, otherwise equal to `rtype`.
    pub fn begin_rrset(&mut self, rtype: Rtype, covered: Rtype, ttl: u32) {
        let start = self.rdata.len() as u64;
        self.rrsets.push(RrsetEntry { start, ttl, rtype, covered, count: 0, mixed_ttls: false });
    }

    /// Sets whether the records of the current RRset were read with different TTLs
    /// ([`Rrset::has_mixed_ttls`]).
    pub(crate) fn mark_mixed_ttls(&mut self, are_mixed: bool) {
        if let Some(rrset) = self.rrsets.last_mut() {
            rrset.mixed_ttls = are_mixed;
        }
    }

    /// Clears the mark for different TTLs on all RRsets: writers then write all records of an RRset
    /// with the TTL of the RRset.
    pub(crate) fn equalize_ttls(&mut self) {
        self.rrsets.iter_mut().for_each(|rrset| rrset.mixed_ttls = false);
    }

    /// Adds a record to the current RRset. `write` appends its RDATA; its result is returned. The
    /// records must be in canonical order without duplicates.
    pub fn push_record<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = self.rdata.len();
        self.rdata.extend_from_slice(&[0, 0]);
        let result = write(&mut self.rdata);
        let length = (self.rdata.len() - start - 2) as u16;
        self.rdata[start..start + 2].copy_from_slice(&length.to_be_bytes());
        if let Some(rrset) = self.rrsets.last_mut() {
            rrset.count += 1;
        }
        result
    }

    /// Returns the RRset that was begun last.
    pub(crate) fn current_rrset(&mut self) -> Option<&mut RrsetEntry> {
        self.rrsets.last_mut()
    }

    /// Appends a copy of the nodes `range` of `contents`. They must follow the existing nodes in
    /// canonical order. An empty range, or one beyond the end of `contents`, is ignored.
    pub fn push_nodes(&mut self, contents: &Contents, range: std::ops::Range<usize>) {
        if range.is_empty() || range.end > contents.nodes.len() {
            return;
        }
        let (start, end) = (contents.arena_offsets(range.start), contents.arena_offsets(range.end));
        let (names_offset, rrsets_offset) = (self.names.len() as u32, self.rrsets.len() as u32);
        let rdata_offset = self.rdata.len() as u64;
        self.nodes.extend(contents.nodes[range].iter().map(|entry| NodeEntry {
            name: entry.name - start.name + names_offset,
            first_rrset: entry.first_rrset - start.first_rrset + rrsets_offset,
        }));
        let rrsets = &contents.rrsets[start.first_rrset as usize..end.first_rrset as usize];
        let rdata = contents.rdata_start(start)..contents.rdata_start(end);
        let relocate = |entry: &RrsetEntry| RrsetEntry {
            start: entry.start - rdata.start as u64 + rdata_offset,
            ..*entry
        };
        self.rrsets.extend(rrsets.iter().map(relocate));
        self.names.extend_from_slice(&contents.names[start.name as usize..end.name as usize]);
        self.rdata.extend_from_slice(&contents.rdata[rdata]);
    }

    /// Appends a copy of `node` with all its RRsets.
    pub fn push_node(&mut self, node: Node<'_>) {
        self.push_nodes(node.contents, node.index..node.index + 1);
    }

    /// Appends a copy of an RRset to the current node.
    pub fn push_rrset(&mut self, rrset: Rrset<'_>) {
        self.begin_rrset(rrset.rtype(), rrset.covered(), rrset.ttl());
        self.mark_mixed_ttls(rrset.has_mixed_ttls());
        for rdata in rrset.rdatas() {
            self.push_record(|out| out.extend_from_slice(rdata));
        }
    }
}

/// Capacity of contents or of a builder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacity {
    /// Octets of names.
    pub(crate) names: usize,
    /// Octets of RDATA, with two octets for the length of each record.
    pub(crate) rdata: usize,
    pub(crate) nodes: usize,
    pub(crate) rrsets: usize,
}

impl Contents {
    /// Creates the contents of the zone at `apex` from one builder, without a copy. A debug build
    /// checks the order of the nodes.
    #[must_use]
    pub fn from_nodes(apex: &Name, builder: NodesBuilder) -> Self {
        let contents = builder.into_contents(apex);
        debug_assert!(contents.nodes().zip(contents.nodes().skip(1)).all(|(a, b)| a.name() < b.name()));
        contents
    }

    /// Joins builders into the contents of the zone at `apex`. The builders must be in canonical
    /// order. Each builder is freed after it is copied.
    #[must_use]
    pub fn from_parts(apex: &Name, mut builders: Vec<NodesBuilder>) -> Self {
        let only = if builders.len() == 1 { builders.pop() } else { None };
        let mut all = if let Some(builder) = only {
            let NodesBuilder { names, rdata, nodes, rrsets } = builder;
            let mut all = Self { apex: apex.clone(), names, rdata, nodes, rrsets };
            all.shrink_to_fit();
            all
        } else {
            let sum = |size: fn(&NodesBuilder) -> usize| builders.iter().map(size).sum();
            let capacity = Capacity {
                names: sum(|builder| builder.names.len()),
                rdata: sum(|builder| builder.rdata.len()),
                nodes: sum(|builder| builder.nodes.len()),
                rrsets: sum(|builder| builder.rrsets.len()),
            };
            Self::with_capacity(apex, capacity)
        };
        for builder in builders {
            all.append_nodes(&builder);
        }
        debug_assert!(all.nodes().zip(all.nodes().skip(1)).all(|(a, b)| a.name() < b.name()));
        all
    }

    /// Creates contents without records, with the given capacity.
    pub(crate) fn with_capacity(apex: &Name, capacity: Capacity) -> Self {
        let NodesBuilder { names, rdata, nodes, rrsets } = NodesBuilder::with_capacity(capacity);
        Self { apex: apex.clone(), names, rdata, nodes, rrsets }
    }

    /// Appends nodes that all follow the existing nodes in canonical order.
    pub(crate) fn append_nodes(&mut self, builder: &NodesBuilder) {
        self.append_arenas(&builder.names, &builder.rdata, &builder.nodes, &builder.rrsets);
    }

    fn append_arenas(&mut self, names: &[u8], rdata: &[u8], nodes: &[NodeEntry], rrsets: &[RrsetEntry]) {
        let (names_offset, rrsets_offset) = (self.names.len() as u32, self.rrsets.len() as u32);
        let rdata_offset = self.rdata.len() as u64;
        let relocate = |node: &NodeEntry| NodeEntry {
            name: node.name + names_offset,
            first_rrset: node.first_rrset + rrsets_offset,
        };
        self.nodes.extend(nodes.iter().map(relocate));
        self.rrsets
            .extend(rrsets.iter().map(|rrset| RrsetEntry { start: rrset.start + rdata_offset, ..*rrset }));
        self.names.extend_from_slice(names);
        self.rdata.extend_from_slice(rdata);
    }
}

/// Construction of contents piece by piece.
impl Contents {
    /// Creates a zone without records at `apex`.
    #[must_use]
    pub fn empty(apex: &Name) -> Self {
        Self { apex: apex.clone(), names: vec![], rdata: vec![], nodes: vec![], rrsets: vec![] }
    }

    /// Appends a copy of all nodes of `other`, which must follow the existing nodes in canonical
    /// order.
    pub fn append(&mut self, other: &Self) {
        self.append_arenas(&other.names, &other.rdata, &other.nodes, &other.rrsets);
    }

    /// Releases unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.names.shrink_to_fit();
        self.rdata.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.rrsets.shrink_to_fit();
    }

    /// Overwrites the RDATA of RRsets at the apex with that of the same RRsets in `replacement`,
    /// whose only node is the apex. Ignores RRsets of `replacement` that the apex does not have.
    ///
    /// # Panics
    /// If a new record does not have the length of the record that it overwrites. The caller must
    /// have reserved a record of this length.
    pub fn overwrite_apex(&mut self, replacement: &Self) {
        for new in &replacement.rrsets {
            let apex_end = self.nodes.get(1).map_or(self.rrsets.len(), |node| node.first_rrset as usize);
            let is_same = |rrset: &&RrsetEntry| (rrset.rtype, rrset.covered) == (new.rtype, new.covered);
            let Some(old) = self.rrsets[..apex_end].iter().find(is_same) else { continue };
            let mut at = old.start as usize;
            for rdata in (Rrset { contents: replacement, entry: new }).rdatas() {
                let length = u16::from_be_bytes([self.rdata[at], self.rdata[at + 1]]);
                assert_eq!(
                    usize::from(length),
                    rdata.len(),
                    "the record has another length than the reserved space"
                );
                self.rdata[at + 2..at + 2 + rdata.len()].copy_from_slice(rdata);
                at += 2 + rdata.len();
            }
        }
    }

    /// Removes all nodes and returns the memory as an empty builder.
    #[must_use]
    pub fn into_empty_builder(mut self) -> NodesBuilder {
        self.names.clear();
        self.rdata.clear();
        self.nodes.clear();
        self.rrsets.clear();
        NodesBuilder { names: self.names, rdata: self.rdata, nodes: self.nodes, rrsets: self.rrsets }
    }
}

impl NodesBuilder {
    /// Turns the builder into contents of the zone at `apex`. These may be a part of the zone
    /// without the apex.
    #[must_use]
    pub fn into_contents(self, apex: &Name) -> Contents {
        Contents {
            apex: apex.clone(),
            names: self.names,
            rdata: self.rdata,
            nodes: self.nodes,
            rrsets: self.rrsets,
        }
    }
}
