//! Rendering of the blocks of consecutive names.

use super::chain::decode;
use super::index::key_prefix;
use super::node::{HEAD, Head, NodeKind, Role, UNIT, push_block};
use super::render::{Rendered, Renderer};
use super::signature::{self, ValidityPeriod};
use super::{Nsec3Facts, Nsec5Key};
use crate::name_status::NameStatus;
use crate::{Contents, Node, Rrset};
use nonesuch_proto::{NameRef, Rtype};
use std::collections::HashMap;

/// Maximum number of glue templates at a zone cut. Each takes at least 16 octets, so more do not
/// fit in a message.
const MOST_GLUE: usize = 4096;
/// Octets of the hash in an NSEC5 record. The hash follows key tag, flags and this length.
const NSEC5_HASH: u8 = 32;

/// A name of the image: a name in the contents, or an empty non-terminal.
pub(super) struct ImageName<'z> {
    pub(super) name: NameRef<'z>,
    pub(super) node: Option<Node<'z>>,
    pub(super) status: NameStatus,
}

/// The zone to render, and the parameters of its hash chains.
pub(super) struct Zone<'z> {
    pub(super) contents: &'z Contents,
    pub(super) negative_ttl: u32,
    pub(super) nsec3: Option<Nsec3Facts>,
    pub(super) nsec5: Option<Nsec5Key>,
    /// Whether there is an NSEC record at the apex. Signers add this record last and remove it
    /// first, so the chain is complete while it exists.
    pub(super) has_nsec: bool,
    /// Whether the zone has no denial chain. Then the image lists all names in canonical order, for
    /// denial records that are generated online.
    pub(super) is_unchained: bool,
}

/// An index: the sort keys of blocks, and the positions of the blocks in units of [`UNIT`] octets.
#[derive(Default)]
pub(super) struct Index {
    pub(super) keys: Vec<u8>,
    pub(super) nodes: Vec<u32>,
}

impl Index {
    fn push(&mut self, key: &[u8], at: u32) {
        self.keys.extend_from_slice(key);
        self.nodes.push(at);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.nodes.clear();
    }
}

/// The blocks of consecutive names, and their entries in the indexes.
#[derive(Default)]
pub(super) struct Part {
    pub(super) blocks: Vec<u8>,
    /// Blocks that queries find by name.
    pub(super) names: Vec<u32>,
    pub(super) order: Index,
    pub(super) nsec3: Index,
    pub(super) nsec5: Index,
    /// Forms of the RRSIG records in this part, and the offsets in `blocks` at which the number of
    /// a form must be replaced by its offset in the image.
    pub(super) forms: Vec<Vec<u8>>,
    pub(super) form_places: Vec<usize>,
    /// Period in which each RRset of this part has a valid signature, and the number of signatures.
    pub(super) period: Option<ValidityPeriod>,
    pub(super) signatures: u64,
    /// Index of the SOA RRset of negative answers, in the part with the apex.
    pub(super) negative_soa: u16,
}

/// Buffers that are reused for each block.
#[derive(Default)]
pub(super) struct Room {
    rendered: Rendered,
    heads: Vec<u8>,
    bodies: Vec<u8>,
    /// Offsets of form numbers in `bodies`.
    form_places: Vec<usize>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Zone<'_> {
    /// Returns the hash of the owner if the record belongs to the NSEC3 chain.
    fn nsec3_hash(&self, owner: NameRef<'_>, rdata: &[u8]) -> Option<[u8; 20]> {
        let facts = self.nsec3.as_ref()?;
        let [1, _, high, low, length, rest @ ..] = rdata else { return None };
        let is_of_chain = u16::from_be_bytes([*high, *low]) == facts.iterations
            && usize::from(*length) == facts.salt.len()
            && rest.starts_with(&facts.salt);
        is_of_chain.then(|| self.hash_of(owner)).flatten()
    }

    /// Returns the hash of the owner if the record belongs to the NSEC5 chain.
    fn nsec5_hash(&self, owner: NameRef<'_>, rdata: &[u8]) -> Option<[u8; 32]> {
        let key = self.nsec5?;
        is_nsec5(key.tag, rdata).then(|| self.hash_of(owner)).flatten()
    }

    fn hash_of<const N: usize>(&self, owner: NameRef<'_>) -> Option<[u8; N]> {
        let is_below_apex = owner.parent().is_some_and(|parent| parent == self.contents.apex().view());
        is_below_apex.then(|| decode(owner.labels().next().unwrap_or_default())).flatten()
    }

    /// Whether an RRset belongs to a denial chain. NSEC and NSEC3 always do. NSEC5 does if the
    /// records belong to the NSEC5 chain and are not other data with this private-use type number.
    fn is_chain(&self, node: Node<'_>, rrset: Rrset<'_>) -> bool {
        match rrset.rtype() {
            Rtype::NSEC | Rtype::NSEC3 => true,
            Rtype::NSEC5 => rrset.rdatas().any(|rdata| self.nsec5_hash(node.name(), rdata).is_some()),
            _ => false,
        }
    }

    /// Whether the node owns only records of a hash chain and their signatures.
    pub(super) fn is_hash(&self, node: Node<'_>) -> bool {
        let is_nsec5 =
            |node: Node<'_>| node.rrset(Rtype::NSEC5).is_some_and(|rrset| self.is_chain(node, rrset));
        let is_hashed = |covered: Rtype| match covered {
            Rtype::NSEC3 => node.has(Rtype::NSEC3),
            Rtype::NSEC5 => is_nsec5(node),
            _ => false,
        };
        node.rrsets().all(|rrset| is_hashed(rrset.covered()))
    }
}

/// Whether the RDATA is that of an NSEC5 record in the chain of the key with the tag `tag`.
pub(super) fn is_nsec5(tag: u16, rdata: &[u8]) -> bool {
    matches!(rdata, [high, low, _, NSEC5_HASH, ..] if u16::from_be_bytes([*high, *low]) == tag)
}

/// Returns the sort key of a name in [`Index`].
fn sort_key(zone: &Zone<'_>, name: NameRef<'_>) -> [u8; 8] {
    key_prefix(name, zone.contents.apex().view()).to_le_bytes()
}

impl Part {
    /// Empties the part for reuse.
    fn clear(&mut self) {
        let Self { blocks, names, order, nsec3, nsec5, forms, form_places, period, .. } = self;
        blocks.clear();
        names.clear();
        [order, nsec3, nsec5].into_iter().for_each(Index::clear);
        forms.clear();
        form_places.clear();
        *period = None;
        self.signatures = 0;
        self.negative_soa = 0;
    }

    /// Renders the blocks of `places`.
    pub(super) fn render(&mut self, zone: &Zone<'_>, places: &[ImageName<'_>], room: &mut Room) {
        self.clear();
        room.numbers.clear();
        for place in places {
            self.add_block(zone, place, room);
        }
    }

    fn add_block(&mut self, zone: &Zone<'_>, place: &ImageName<'_>, room: &mut Room) {
        let at = (self.blocks.len() / UNIT) as u32;
        let kind = kind_of(zone, place);
        room.heads.clear();
        room.bodies.clear();
        room.form_places.clear();
        if let Some(node) = place.node {
            if kind == NodeKind::Delegation {
                // RFC 4035 §2.2: at a zone cut, only the DS and denial records are authoritative.
                self.add_referral(zone, node, room);
                self.add_data(zone, node, room, |rtype| matches!(rtype, Rtype::DS | Rtype::NSEC));
            } else {
                self.add_data(zone, node, room, |_| true);
            }
            if node.index() == 0 {
                self.add_negative_soa(zone, node, room);
            }
            self.list(zone, node, kind, at);
        }
        if kind != NodeKind::Hash {
            self.names.push(at);
            if zone.is_unchained {
                self.order.push(&sort_key(zone, place.name), at);
            }
        }
        let bodies = push_block(kind, place.name, &room.heads, &room.bodies, &mut self.blocks);
        self.form_places.extend(room.form_places.iter().map(|place| bodies + place));
    }

    /// Adds the node at `at` to the indexes of its chains.
    fn list(&mut self, zone: &Zone<'_>, node: Node<'_>, kind: NodeKind, at: u32) {
        let name = node.name();
        // A name without an NSEC record is also listed: the NSEC record of its predecessor does not
        // cover the names after it.
        if zone.has_nsec && kind != NodeKind::Hash {
            self.order.push(&sort_key(zone, name), at);
        }
        let records = |rtype| node.rrset(rtype).into_iter().flat_map(|rrset| rrset.rdatas());
        if let Some(hash) = records(Rtype::NSEC3).find_map(|rdata| zone.nsec3_hash(name, rdata)) {
            self.nsec3.push(&hash, at);
        }
        if let Some(hash) = records(Rtype::NSEC5).find_map(|rdata| zone.nsec5_hash(name, rdata)) {
            self.nsec5.push(&hash, at);
        }
    }

    fn add_data(&mut self, zone: &Zone<'_>, node: Node<'_>, room: &mut Room, wanted: impl Fn(Rtype) -> bool) {
        let apex = zone.contents.apex().view();
        let mut renderer = Renderer::new(node.name(), apex, false);
        let own = node.rrsets().filter(|rrset| rrset.rtype() != Rtype::RRSIG && wanted(rrset.rtype()));
        for rrset in own {
            if zone.is_chain(node, rrset) {
                self.add_chain_record(apex, node, rrset, room);
            } else {
                self.add_rrset(&mut renderer, node, rrset, room);
            }
        }
    }

    /// Adds an RRset. The owner of its records is a pointer to the question name.
    fn add_rrset(&mut self, renderer: &mut Renderer, node: Node<'_>, rrset: Rrset<'_>, room: &mut Room) {
        renderer.begin(&mut room.rendered);
        for rdata in rrset.rdatas() {
            renderer.push_record(rrset.rtype(), rrset.ttl(), rdata, &mut room.rendered);
        }
        self.end(Role::Data, rrset, signatures(node, rrset), room);
    }

    /// Adds denial records. They prove something about other names, so their owner is written in
    /// full, and their signatures point to it.
    fn add_chain_record(&mut self, apex: NameRef<'_>, node: Node<'_>, rrset: Rrset<'_>, room: &mut Room) {
        let mut renderer = Renderer::new(apex, apex, false);
        renderer.begin(&mut room.rendered);
        for rdata in rrset.rdatas() {
            renderer.push_record_of(node.name(), rrset.rtype(), rrset.ttl(), rdata, &mut room.rendered);
        }
        let signatures = signatures(node, rrset).map(|(signatures, _)| (signatures, rrset.ttl()));
        self.end(Role::Chain, rrset, signatures, room);
    }

    /// Adds the SOA RRset with the TTL of negative answers (RFC 2308 §5).
    fn add_negative_soa(&mut self, zone: &Zone<'_>, apex: Node<'_>, room: &mut Room) {
        let Some(soa) = apex.rrset(Rtype::SOA) else { return };
        self.negative_soa = (room.heads.len() / HEAD) as u16;
        let mut renderer = Renderer::new(apex.name(), apex.name(), false);
        renderer.begin(&mut room.rendered);
        for rdata in soa.rdatas() {
            renderer.push_record(Rtype::SOA, zone.negative_ttl, rdata, &mut room.rendered);
        }
        let signatures = signatures(apex, soa).map(|(signatures, _)| (signatures, zone.negative_ttl));
        self.end(Role::NegativeSoa, soa, signatures, room);
    }

    /// Adds the NS RRset of a zone cut, and the addresses of its servers that the zone has.
    fn add_referral(&mut self, zone: &Zone<'_>, cut: Node<'_>, room: &mut Room) {
        let Some(servers) = cut.rrset(Rtype::NS) else { return };
        let mut renderer = Renderer::new(cut.name(), zone.contents.apex().view(), true);
        renderer.begin(&mut room.rendered);
        for rdata in servers.rdatas() {
            renderer.push_record(Rtype::NS, servers.ttl(), rdata, &mut room.rendered);
        }
        self.end(Role::Data, servers, None, room);
        renderer.keep_suffixes();
        for role in [Role::RequiredGlue, Role::Glue] {
            for rdata in servers.rdatas() {
                self.add_glue(zone.contents, cut, NameRef::from_checked(rdata), role, &mut renderer, room);
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
        room: &mut Room,
    ) {
        let is_required = server.is_at_or_below(cut.name());
        if is_required != (role == Role::RequiredGlue) || !server.is_at_or_below(contents.apex().view()) {
            return;
        }
        let Ok(host) = contents.find(server) else { return };
        for rtype in [Rtype::A, Rtype::AAAA] {
            let Some(addresses) = host.rrset(rtype) else { continue };
            if room.heads.len() / HEAD > MOST_GLUE {
                return;
            }
            renderer.begin(&mut room.rendered);
            for rdata in addresses.rdatas() {
                renderer.push_record_of(server, rtype, addresses.ttl(), rdata, &mut room.rendered);
            }
            // RFC 4035 §3.1.1: authoritative addresses have signatures; glue has none.
            self.end(role, addresses, signatures(host, addresses), room);
        }
    }

    /// Ends the template of `rrset`, whose records are rendered. Adds its signatures, which have
    /// their own TTL.
    fn end(&mut self, role: Role, rrset: Rrset<'_>, signatures: Option<(Rrset<'_>, u32)>, room: &mut Room) {
        let splits = signatures.iter().flat_map(|(signatures, ttl)| {
            signatures.rdatas().filter_map(|rdata| signature::split(*ttl, rdata))
        });
        let splits: Vec<_> = splits.collect();
        let period = splits.iter().map(|split| signature::period(split.times)).reduce(ValidityPeriod::or);
        if let Some(period) = period {
            self.period = Some(self.period.map_or(period, |whole| whole.and(period)));
        }
        // The signatures of the negative SOA RRset and of addresses in a referral are counted at
        // their own RRset.
        if matches!(role, Role::Data | Role::Chain) {
            self.signatures += splits.len() as u64;
        }
        let Room { rendered, heads, bodies, form_places, numbers } = room;
        let head = Head {
            rtype: rrset.rtype(),
            role,
            records: rrset.count(),
            signatures: splits.len(),
            patches: rendered.patches.len(),
            length: rendered.records.len(),
        };
        head.push(heads, bodies, |bodies| {
            rendered.patches.iter().for_each(|patch| bodies.extend_from_slice(&patch.octets()));
            bodies.extend_from_slice(&rendered.records);
            for split in splits {
                form_places.push(bodies.len());
                let number = number_of(split.form, &mut self.forms, numbers);
                bodies.extend_from_slice(&number.to_le_bytes());
                bodies.extend_from_slice(&split.times);
                bodies.extend_from_slice(split.signature);
            }
        });
    }
}

/// Returns the signatures of an RRset, and their TTL.
fn signatures<'z>(node: Node<'z>, rrset: Rrset<'z>) -> Option<(Rrset<'z>, u32)> {
    node.signatures(rrset.rtype()).map(|signatures| (signatures, signatures.ttl()))
}

/// Returns the number of a form in `forms` and adds it if it is new. `numbers` contains the known
/// forms.
fn number_of(form: Vec<u8>, forms: &mut Vec<Vec<u8>>, numbers: &mut HashMap<Vec<u8>, u32>) -> u32 {
    if let Some(number) = numbers.get(&form) {
        return *number;
    }
    let number = forms.len() as u32;
    forms.push(form.clone());
    numbers.insert(form, number);
    number
}

fn kind_of(zone: &Zone<'_>, place: &ImageName<'_>) -> NodeKind {
    match (place.status, place.node) {
        (NameStatus::Delegation, _) => NodeKind::Delegation,
        (_, Some(node)) if zone.is_hash(node) => NodeKind::Hash,
        _ => NodeKind::Authoritative,
    }
}
