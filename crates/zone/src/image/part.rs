//! Rendering the blocks of consecutive names.

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

/// Most templates of glue at a zone cut. Each takes at least 16 octets, so that more fit no message.
const MOST_GLUE: usize = 4096;
/// Octets of a hash in an NSEC5 record; they stand behind key tag, flags and this length.
const NSEC5_HASH: u8 = 32;

/// A name in the order of the image: one of the contents', or an empty non-terminal.
pub(super) struct ImageName<'z> {
    pub(super) name: NameRef<'z>,
    pub(super) node: Option<Node<'z>>,
    pub(super) standing: NameStatus,
}

/// The zone that is rendered, and its chains of hashes.
pub(super) struct Zone<'z> {
    pub(super) contents: &'z Contents,
    pub(super) negative_ttl: u32,
    pub(super) nsec3: Option<Nsec3Facts>,
    pub(super) nsec5: Option<Nsec5Key>,
    /// Whether there is an NSEC record at the apex. Signers add that one last and remove it first, so that a chain is whole
    /// where it is.
    pub(super) has_nsec: bool,
    /// Whether the zone has no chain of denial: all its names are listed in canonical order then, for the mechanisms that
    /// make their records when asked.
    pub(super) is_unchained: bool,
}

/// An index: the keys that blocks are sorted by, and where the blocks are, in units of [`UNIT`] octets.
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

/// The blocks of consecutive names, and which indexes they are in.
#[derive(Default)]
pub(super) struct Part {
    pub(super) blocks: Vec<u8>,
    /// Blocks that queries find by name.
    pub(super) names: Vec<u32>,
    pub(super) order: Index,
    pub(super) nsec3: Index,
    pub(super) nsec5: Index,
    /// Forms of RRSIG records in this part, and where their numbers here stand in the blocks, in place of where they will
    /// be in the image.
    pub(super) forms: Vec<Vec<u8>>,
    pub(super) form_places: Vec<usize>,
    /// When all signatures of this part are valid, and how many there are.
    pub(super) period: Option<ValidityPeriod>,
    pub(super) signatures: u64,
    /// Place of that RRset at the apex, in the part that has it.
    pub(super) negative_soa: u16,
}

/// Room that is used again for one block after the other.
#[derive(Default)]
pub(super) struct Room {
    rendered: Rendered,
    heads: Vec<u8>,
    bodies: Vec<u8>,
    /// Where the numbers of forms stand in `bodies`.
    form_places: Vec<usize>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Zone<'_> {
    /// Whether the record is of the NSEC3 chain, with the hash that its owner stands for.
    fn nsec3_hash(&self, owner: NameRef<'_>, rdata: &[u8]) -> Option<[u8; 20]> {
        let facts = self.nsec3.as_ref()?;
        let [1, _, high, low, length, rest @ ..] = rdata else { return None };
        let is_of_chain = u16::from_be_bytes([*high, *low]) == facts.iterations
            && usize::from(*length) == facts.salt.len()
            && rest.starts_with(&facts.salt);
        is_of_chain.then(|| self.hash_of(owner)).flatten()
    }

    /// As [`Zone::nsec3_hash`], of the NSEC5 chain.
    fn nsec5_hash(&self, owner: NameRef<'_>, rdata: &[u8]) -> Option<[u8; 32]> {
        let key = self.nsec5?;
        is_nsec5(key.tag, rdata).then(|| self.hash_of(owner)).flatten()
    }

    fn hash_of<const N: usize>(&self, owner: NameRef<'_>) -> Option<[u8; N]> {
        let is_below_apex = owner.parent().is_some_and(|parent| parent == self.contents.apex().view());
        is_below_apex.then(|| decode(owner.labels().next().unwrap_or_default())).flatten()
    }

    /// Whether an RRset is one of a chain of denial: NSEC and NSEC3 always, NSEC5 where it is no data under a number of
    /// private use.
    fn is_chain(&self, node: Node<'_>, rrset: Rrset<'_>) -> bool {
        match rrset.rtype() {
            Rtype::NSEC | Rtype::NSEC3 => true,
            Rtype::NSEC5 => rrset.rdatas().any(|rdata| self.nsec5_hash(node.name(), rdata).is_some()),
            _ => false,
        }
    }

    /// Whether the node owns records of a chain of hashes and their signatures alone.
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

/// Whether the RDATA is that of an NSEC5 record of the chain of `tag`.
pub(super) fn is_nsec5(tag: u16, rdata: &[u8]) -> bool {
    matches!(rdata, [high, low, _, NSEC5_HASH, ..] if u16::from_be_bytes([*high, *low]) == tag)
}

/// What [`Index`] sorts a name by.
fn sort_key(zone: &Zone<'_>, name: NameRef<'_>) -> [u8; 8] {
    key_prefix(name, zone.contents.apex().view()).to_le_bytes()
}

impl Part {
    /// Makes the part empty, to be made anew.
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
                // RFC 4035 §2.2: of the records at a cut only DS and the denial records are the zone's own.
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

    /// Enters the node at `at` into the indexes of the chains that it is in.
    fn list(&mut self, zone: &Zone<'_>, node: Node<'_>, kind: NodeKind, at: u32) {
        let name = node.name();
        // A name whose NSEC record is missing is listed too: the record of its predecessor does not cover what follows.
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

    /// An RRset whose records point to the question name as their owner.
    fn add_rrset(&mut self, renderer: &mut Renderer, node: Node<'_>, rrset: Rrset<'_>, room: &mut Room) {
        renderer.begin(&mut room.rendered);
        for rdata in rrset.rdatas() {
            renderer.push_record(rrset.rtype(), rrset.ttl(), rdata, &mut room.rendered);
        }
        self.end(Role::Data, rrset, signatures(node, rrset), room);
    }

    /// Records of a chain prove things about other names, so their owner is written out and their signatures point to
    /// that.
    fn add_chain_record(&mut self, apex: NameRef<'_>, node: Node<'_>, rrset: Rrset<'_>, room: &mut Room) {
        let mut renderer = Renderer::new(apex, apex, false);
        renderer.begin(&mut room.rendered);
        for rdata in rrset.rdatas() {
            renderer.push_record_of(node.name(), rrset.rtype(), rrset.ttl(), rdata, &mut room.rendered);
        }
        let signatures = signatures(node, rrset).map(|(signatures, _)| (signatures, rrset.ttl()));
        self.end(Role::Chain, rrset, signatures, room);
    }

    /// The SOA RRset with the TTL of negative answers (RFC 2308 §5).
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

    /// The NS RRset of a cut and the addresses of the servers that it names, as far as the zone has them.
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
            // RFC 4035 §3.1.1: addresses that are the zone's own carry their signatures; glue has none.
            self.end(role, addresses, signatures(host, addresses), room);
        }
    }

    /// Ends the template of `rrset`, whose records are rendered, with its signatures, which have a TTL.
    fn end(&mut self, role: Role, rrset: Rrset<'_>, signatures: Option<(Rrset<'_>, u32)>, room: &mut Room) {
        let splits = signatures.iter().flat_map(|(signatures, ttl)| {
            signatures.rdatas().filter_map(|rdata| signature::split(*ttl, rdata))
        });
        let splits: Vec<_> = splits.collect();
        let period = splits.iter().map(|split| signature::period(split.times)).reduce(ValidityPeriod::or);
        if let Some(period) = period {
            self.period = Some(self.period.map_or(period, |whole| whole.and(period)));
        }
        // Those of the negative SOA RRset and of addresses beside a referral are counted where they belong.
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

/// The signatures of an RRset, and their TTL.
fn signatures<'z>(node: Node<'z>, rrset: Rrset<'z>) -> Option<(Rrset<'z>, u32)> {
    node.signatures(rrset.rtype()).map(|signatures| (signatures, signatures.ttl()))
}

/// The number of a form in `forms`, where it is entered if it is not there; `numbers` has those that are.
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
    match (place.standing, place.node) {
        (NameStatus::Delegation, _) => NodeKind::Delegation,
        (_, Some(node)) if zone.is_hash(node) => NodeKind::Hash,
        _ => NodeKind::Authoritative,
    }
}
