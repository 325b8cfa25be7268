//! Compiling contents into an image.

use super::index::{NameTable, key_prefix};
use super::template::Renderer;
use super::{Image, NONE, NodeEntry, NodeKind, Nsec3Chain, Patch, Role, RrsetEntry};
use crate::standing::{Standing, standings};
use crate::{Contents, Node, Rrset};
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_proto::{NameRef, Rtype};
use rayon::prelude::*;

/// Nodes rendered at once by one thread.
const CHUNK: usize = 4096;

/// Why contents cannot be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no SOA record.
    #[error("the zone has no SOA record at its apex")]
    NoSoa,
    /// Templates or names exceed what the image can address.
    #[error("the zone is too large for one image")]
    TooLarge,
    /// The NSEC3 records at the apex use a hash algorithm that is not known (RFC 5155 §11 knows 1, SHA-1).
    #[error("the NSEC3PARAM record names hash algorithm {0}; only 1 (SHA-1) exists")]
    UnknownHash(u8),
}

/// A node in the order of the image: one of the contents', or an empty non-terminal.
struct Place<'z> {
    name: NameRef<'z>,
    node: Option<Node<'z>>,
    standing: Standing,
    cover: u32,
}

/// Templates of consecutive nodes.
#[derive(Default)]
struct Part {
    blob: Vec<u8>,
    patches: Vec<Patch>,
    rrsets: Vec<RrsetEntry>,
    /// RRsets of each node.
    counts: Vec<u32>,
}

impl Image {
    /// Compiles `contents`.
    pub fn compile(contents: &Contents) -> Result<Self, CompileError> {
        let soa = contents.soa().ok_or(CompileError::NoSoa)?;
        let places = places(contents);
        let parts: Vec<Part> = places.par_chunks(CHUNK).map(|chunk| render_part(contents, chunk)).collect();
        let mut image = Self {
            apex: contents.apex().view().to_canonical(),
            names: Vec::new(),
            nodes: Vec::with_capacity(places.len()),
            rrsets: Vec::new(),
            blob: Vec::new(),
            patches: Vec::new(),
            table: NameTable::build(0, std::iter::empty()),
            prefixes: Vec::with_capacity(places.len()),
            negative_soa: 0,
            nsec3: Nsec3Chain::default(),
            nsec5: Vec::new(),
            serial: soa.serial,
            is_signed: false,
        };
        image.join(&places, parts)?;
        image.add_negative_soa(contents, soa.negative_ttl())?;
        image.table = image.build_table();
        image.nsec3 = image.gather_nsec3(contents)?;
        image.nsec5 = image.gather_nsec5();
        let apex = image.node(0);
        image.is_signed = apex.template(Rtype::DNSKEY).is_some()
            && (apex.template(Rtype::NSEC).is_some()
                || !image.nsec3.hashes.is_empty()
                || !image.nsec5.is_empty());
        Ok(image)
    }

    fn join(&mut self, places: &[Place<'_>], parts: Vec<Part>) -> Result<(), CompileError> {
        self.names.reserve_exact(places.iter().map(|place| place.name.len()).sum());
        self.blob.reserve_exact(parts.iter().map(|part| part.blob.len()).sum());
        self.rrsets.reserve_exact(parts.iter().map(|part| part.rrsets.len() + 1).sum());
        let mut places = places.iter();
        let mut last_nsec = NONE;
        for part in parts {
            let mut next = 0;
            for count in &part.counts {
                let Some(place) = places.next() else { break };
                let index = self.nodes.len() as u32;
                if place.node.is_some_and(|node| place.standing.is_in_zone() && node.has(Rtype::NSEC)) {
                    last_nsec = index;
                }
                self.nodes.push(NodeEntry {
                    name: u32::try_from(self.names.len()).map_err(|_| CompileError::TooLarge)?,
                    first_rrset: (self.rrsets.len() + next) as u32,
                    cover: place.cover,
                    nsec_node: last_nsec,
                    kind: kind_of(place),
                });
                place.name.push_canonical(&mut self.names);
                self.prefixes.push(key_prefix(place.name, self.apex.view()));
                next += *count as usize;
            }
            self.add_part(&part)?;
        }
        Ok(())
    }

    fn build_table(&self) -> NameTable {
        let visible = |node: &(usize, &NodeEntry)| node.1.kind != NodeKind::Hash;
        let nodes: Vec<u32> =
            self.nodes.iter().enumerate().filter(visible).map(|(index, _)| index as u32).collect();
        NameTable::build(nodes.len(), nodes.into_iter().map(|node| (node, self.wire_name(node))))
    }

    fn add_part(&mut self, part: &Part) -> Result<(), CompileError> {
        let start = u32::try_from(self.blob.len() / 4).map_err(|_| CompileError::TooLarge)?;
        let first_patch = u32::try_from(self.patches.len()).map_err(|_| CompileError::TooLarge)?;
        self.rrsets.extend(part.rrsets.iter().map(|entry| RrsetEntry {
            start: entry.start + start,
            first_patch: entry.first_patch + first_patch,
            ..*entry
        }));
        self.blob.extend_from_slice(&part.blob);
        self.patches.extend_from_slice(&part.patches);
        Ok(())
    }

    fn add_negative_soa(&mut self, contents: &Contents, ttl: u32) -> Result<(), CompileError> {
        let apex = contents.node(0);
        let mut part = Part::default();
        let mut renderer = Renderer::new(apex.name(), apex.name(), false);
        if let Some(soa) = apex.rrset(Rtype::SOA) {
            part.add_rrset(&mut renderer, apex, soa, Some(ttl));
        }
        self.negative_soa = self.rrsets.len() as u32;
        self.add_part(&part)
    }

    fn gather_nsec5(&self) -> Vec<([u8; 32], u32)> {
        let nodes = (0..self.nodes.len() as u32).map(|index| self.node(index));
        let hashes = nodes.filter(|node| node.kind() == NodeKind::Hash).filter_map(|node| {
            let label = node.name().labels().next()?.to_ascii_uppercase();
            let hash = BASE32HEX_NOPAD.decode(&label).ok()?.try_into().ok()?;
            Some((hash, node.template(Rtype::NSEC5)?.index))
        });
        hashes.collect()
    }

    fn gather_nsec3(&self, contents: &Contents) -> Result<Nsec3Chain, CompileError> {
        let Some(parameters) = contents.apex_rrset(Rtype::NSEC3PARAM) else {
            return Ok(Nsec3Chain::default());
        };
        // RFC 5155 §4.1.2: records with flags other than zero are ignored.
        let usable = parameters.rdatas().find(|rdata| rdata.get(1) == Some(&0));
        let Some(&[algorithm, _, high, low, _, ref salt @ ..]) = usable else {
            return Ok(Nsec3Chain::default());
        };
        if algorithm != 1 {
            return Err(CompileError::UnknownHash(algorithm));
        }
        let mut chain = Nsec3Chain {
            salt: salt.to_vec(),
            iterations: u16::from_be_bytes([high, low]),
            ..Nsec3Chain::default()
        };
        for (index, _) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| matches!(node.kind, NodeKind::Authoritative | NodeKind::Hash))
        {
            let node = self.node(index as u32);
            let Some(template) = node.template(Rtype::NSEC3) else { continue };
            let label = node.name().labels().next().unwrap_or_default().to_ascii_uppercase();
            let hash = BASE32HEX_NOPAD.decode(&label).ok().and_then(|hash| hash.try_into().ok());
            if let Some(hash) = hash {
                chain.hashes.push(hash);
                chain.rrsets.push(template.index);
            }
        }
        // Base32hex keeps the order of octets (RFC 4648 §7), so the canonical order of owners is that of hashes.
        debug_assert!(chain.hashes.is_sorted());
        Ok(chain)
    }
}

/// Whether the node owns NSEC3 records and their signatures alone, or those of an NSEC5 chain.
fn is_hash(node: Node<'_>) -> bool {
    let owns = |rtype| node.has(rtype) && node.rrsets().all(|rrset| rrset.covered() == rtype);
    owns(Rtype::NSEC3)
        || owns(Rtype::NSEC5) && node.name().labels().next().is_some_and(|label| label.len() == 52)
}

fn kind_of(place: &Place<'_>) -> NodeKind {
    match place.standing {
        Standing::Authoritative if place.node.is_some_and(is_hash) => NodeKind::Hash,
        Standing::Authoritative => NodeKind::Authoritative,
        Standing::Delegation => NodeKind::Delegation,
        Standing::BelowCut | Standing::BelowDname => NodeKind::Occluded,
    }
}

/// The nodes with the empty non-terminals between them, in canonical order.
fn places(contents: &Contents) -> Vec<Place<'_>> {
    let standings = standings(contents);
    let mut places: Vec<Place<'_>> = Vec::with_capacity(contents.node_count());
    let mut cover: Option<(NameRef<'_>, u32)> = None;
    let mut previous = contents.apex().view();
    for (node, &standing) in contents.nodes().zip(&standings) {
        let name = node.name();
        cover = cover.filter(|(above, _)| name.is_below(*above));
        // A DNAME at the apex occludes every name but those of the NSEC3 chain, which are no names of queries.
        let is_chain = standing == Standing::BelowDname
            && is_hash(node)
            && name.parent().is_some_and(|parent| parent == contents.apex().view());
        let standing = if is_chain { Standing::Authoritative } else { standing };
        let cover_index = cover.filter(|_| !is_chain).map_or(NONE, |(_, index)| index);
        // The ancestors that do not yet exist: those that the name before this one is not below.
        let mut missing = Vec::new();
        let mut ancestor = name.parent();
        while let Some(above) = ancestor.filter(|above| !previous.is_at_or_below(*above)) {
            missing.push(above);
            ancestor = above.parent();
        }
        let between = if standing.is_in_zone() { Standing::Authoritative } else { standing };
        places.extend(missing.into_iter().rev().map(|name| Place {
            name,
            node: None,
            standing: between,
            cover: cover_index,
        }));
        if standing == Standing::Delegation || (standing == Standing::Authoritative && node.has(Rtype::DNAME))
        {
            cover = Some((name, places.len() as u32));
        }
        places.push(Place { name, node: Some(node), standing, cover: cover_index });
        previous = name;
    }
    places
}

fn render_part(contents: &Contents, places: &[Place<'_>]) -> Part {
    let mut part = Part::default();
    for place in places {
        let before = part.rrsets.len();
        if let Some(node) = place.node {
            match place.standing {
                Standing::Authoritative => part.add_data(contents, node, |_| true),
                Standing::Delegation => {
                    // RFC 4035 §2.2: of the records at a cut only DS and the denial records are the zone's own.
                    part.add_referral(contents, node);
                    part.add_data(contents, node, |rtype| matches!(rtype, Rtype::DS | Rtype::NSEC));
                }
                Standing::BelowCut | Standing::BelowDname => {}
            }
        }
        part.counts.push((part.rrsets.len() - before) as u32);
    }
    part
}

impl Part {
    fn add_data(&mut self, contents: &Contents, node: Node<'_>, wanted: impl Fn(Rtype) -> bool) {
        let mut renderer = Renderer::new(node.name(), contents.apex().view(), false);
        let own = node.rrsets().filter(|rrset| rrset.rtype() != Rtype::RRSIG && wanted(rrset.rtype()));
        for rrset in own {
            if matches!(rrset.rtype(), Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5) {
                self.add_floating(contents, node, rrset);
            } else {
                self.add_rrset(&mut renderer, node, rrset, None);
            }
        }
    }

    /// An RRset whose records point to the question name as their owner.
    fn add_rrset(&mut self, renderer: &mut Renderer, node: Node<'_>, rrset: Rrset<'_>, ttl: Option<u32>) {
        let mut entry = self.begin(renderer, false, node.name().len(), rrset.rtype(), Role::Data);
        for rdata in rrset.rdatas() {
            let fixed = (rrset.rtype(), ttl.unwrap_or_else(|| rrset.ttl()));
            renderer.push_record(fixed, rdata, &mut self.blob, &mut self.patches);
        }
        self.end_records(&mut entry, rrset.count());
        let signatures = node.signatures(rrset.rtype());
        for rdata in signatures.iter().flat_map(|signatures| signatures.rdatas()) {
            let signature_ttl = signatures.map_or(0, |signatures| signatures.ttl());
            let fixed = (Rtype::RRSIG, ttl.unwrap_or(signature_ttl));
            renderer.push_record(fixed, rdata, &mut self.blob, &mut self.patches);
        }
        self.end(entry, signatures.map_or(0, |signatures| signatures.count()));
    }

    /// An NSEC or NSEC3 RRset: it proves things about other names, so its owner is written out and its
    /// signatures point to that.
    fn add_floating(&mut self, contents: &Contents, node: Node<'_>, rrset: Rrset<'_>) {
        let apex = contents.apex().view();
        let mut renderer = Renderer::new(apex, apex, false);
        let mut entry = self.begin(&mut renderer, false, apex.len(), rrset.rtype(), Role::Data);
        for rdata in rrset.rdatas() {
            let fixed = (rrset.rtype(), rrset.ttl());
            renderer.push_record_of(node.name(), fixed, rdata, &mut self.blob, &mut self.patches);
        }
        self.end_records(&mut entry, rrset.count());
        let signatures = node.signatures(rrset.rtype());
        for rdata in signatures.iter().flat_map(|signatures| signatures.rdatas()) {
            let fixed = (Rtype::RRSIG, rrset.ttl());
            renderer.push_record_of(node.name(), fixed, rdata, &mut self.blob, &mut self.patches);
        }
        self.end(entry, signatures.map_or(0, |signatures| signatures.count()));
    }

    /// The NS RRset of a cut and the addresses of the servers that it names, as far as the zone has them.
    fn add_referral(&mut self, contents: &Contents, cut: Node<'_>) {
        let Some(servers) = cut.rrset(Rtype::NS) else { return };
        let mut renderer = Renderer::new(cut.name(), contents.apex().view(), true);
        let mut entry = self.begin(&mut renderer, false, cut.name().len(), Rtype::NS, Role::Data);
        for rdata in servers.rdatas() {
            let fixed = (Rtype::NS, servers.ttl());
            renderer.push_record(fixed, rdata, &mut self.blob, &mut self.patches);
        }
        self.end_records(&mut entry, servers.count());
        self.end(entry, 0);
        renderer.begin(true, &self.blob);
        for role in [Role::RequiredGlue, Role::Glue] {
            for rdata in servers.rdatas() {
                self.add_glue(contents, cut, NameRef::from_checked(rdata), role, &mut renderer);
            }
        }
    }

    fn add_glue(
        &mut self,
        contents: &Contents,
        cut: Node<'_>,
        server: NameRef<'_>,
        role: Role,
        renderer: &mut Renderer,
    ) {
        let is_required = server.is_at_or_below(cut.name());
        if is_required != (role == Role::RequiredGlue) || !server.is_at_or_below(contents.apex().view()) {
            return;
        }
        let Ok(host) = contents.find(server) else { return };
        for rtype in [Rtype::A, Rtype::AAAA] {
            let Some(addresses) = host.rrset(rtype) else { continue };
            let mut entry = self.begin(renderer, true, cut.name().len(), rtype, role);
            for rdata in addresses.rdatas() {
                let fixed = (rtype, addresses.ttl());
                renderer.push_record_of(server, fixed, rdata, &mut self.blob, &mut self.patches);
            }
            self.end_records(&mut entry, addresses.count());
            // RFC 4035 §3.1.1: addresses that are the zone's own carry their signatures; glue has none.
            let signatures = host.signatures(rtype);
            for rdata in signatures.iter().flat_map(|signatures| signatures.rdatas()) {
                let fixed = (Rtype::RRSIG, signatures.map_or(0, |signatures| signatures.ttl()));
                renderer.push_record_of(server, fixed, rdata, &mut self.blob, &mut self.patches);
            }
            self.end(entry, signatures.map_or(0, |signatures| signatures.count()));
        }
    }

    fn begin(
        &mut self,
        renderer: &mut Renderer,
        keep: bool,
        base: usize,
        rtype: Rtype,
        role: Role,
    ) -> RrsetEntry {
        self.blob.resize(self.blob.len().next_multiple_of(4), 0);
        renderer.begin(keep, &self.blob);
        RrsetEntry {
            start: (self.blob.len() / 4) as u32,
            first_patch: self.patches.len() as u32,
            length: 0,
            signature_length: 0,
            rtype,
            records: 0,
            signatures: 0,
            patches: 0,
            signature_patches: 0,
            base: base as u8,
            role,
        }
    }

    fn end_records(&self, entry: &mut RrsetEntry, count: usize) {
        entry.length = (self.blob.len() - entry.start as usize * 4) as u32;
        entry.records = count as u16;
        entry.patches = (self.patches.len() - entry.first_patch as usize) as u16;
    }

    fn end(&mut self, mut entry: RrsetEntry, signatures: usize) {
        entry.signature_length = (self.blob.len() - entry.start as usize * 4) as u32 - entry.length;
        entry.signatures = signatures as u16;
        let patches = self.patches.len() - entry.first_patch as usize;
        entry.signature_patches = patches as u16 - entry.patches;
        self.rrsets.push(entry);
        self.blob.resize(self.blob.len().next_multiple_of(4), 0);
    }
}
