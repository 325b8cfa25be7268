//! Rendering of the blocks of consecutive names.

use super::chain::decode;
use super::index::key_prefix;
use super::node::{BLOCK_UNIT, Head, NodeKind, RRSET_HEAD_OCTETS, Role, push_block};
use super::render::{Rendered, Renderer};
use super::signature::{self, ValidityPeriod};
use super::{Nsec3Parameters, Nsec5Key};
use crate::name_status::NameStatus;
use crate::{Contents, Node, Rrset};
use nonesuch_proto::{NameRef, Rtype};
use std::collections::HashMap;

/// Maximum number of glue templates at a zone cut. Each takes at least 16 octets, so more do not
/// fit in a message.
const MAX_GLUE_TEMPLATES: usize = 4096;
/// Octets of the hash in an NSEC5 record. The hash follows key tag, flags and this length.
const NSEC5_HASH_OCTETS: u8 = 32;

/// A name of the image: a name in the contents, or an empty non-terminal.
pub(super) struct ImageName<'z> {
    pub(super) name: NameRef<'z>,
    /// `None` for an empty non-terminal.
    pub(super) node: Option<Node<'z>>,
    pub(super) status: NameStatus,
}

/// The zone to render, and the parameters of its hash chains.
pub(super) struct SourceZone<'z> {
    pub(super) contents: &'z Contents,
    /// TTL of negative answers, in seconds.
    pub(super) negative_ttl: u32,
    /// Parameters of the NSEC3 chain; `None` without a usable chain.
    pub(super) nsec3: Option<Nsec3Parameters>,
    /// Key of the NSEC5 chain; `None` without a chain.
    pub(super) nsec5: Option<Nsec5Key>,
    /// Whether there is an NSEC record at the apex. Signers add this record last and remove it
    /// first, so the chain is complete while it exists.
    pub(super) has_nsec: bool,
    /// Whether the zone has no denial chain. Then the image lists all names in canonical order, for
    /// denial records that are generated online.
    pub(super) has_no_chain: bool,
}

/// An index: the sort keys of blocks, and the positions of the blocks in units of [`BLOCK_UNIT`]
/// octets.
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
pub(super) struct ImagePart {
    pub(super) blocks: Vec<u8>,
    /// Positions of the blocks that queries find by name, in units of [`BLOCK_UNIT`] octets. Blocks
    /// of kind [`NodeKind::HashChainOwner`] are omitted.
    pub(super) names: Vec<u32>,
    /// Names in canonical order.
    pub(super) order: Index,
    /// Owners of the NSEC3 chain.
    pub(super) nsec3: Index,
    /// Owners of the NSEC5 chain.
    pub(super) nsec5: Index,
    /// Forms of the RRSIG records in this part.
    pub(super) forms: Vec<Vec<u8>>,
    /// Offsets in `blocks` of form numbers (indexes in `forms`). The caller replaces each number by
    /// the offset of the form in the image.
    pub(super) form_references: Vec<usize>,
    /// Period in which each RRset of this part has a valid signature; `None` without signatures.
    pub(super) period: Option<ValidityPeriod>,
    /// Number of signatures.
    pub(super) signatures: u64,
    /// Index of the SOA RRset of negative answers, in the part with the apex.
    pub(super) negative_soa: u16,
}

/// Buffers that are reused for each block.
#[derive(Default)]
pub(super) struct Buffers {
    /// The records of the current template.
    rendered: Rendered,
    /// Heads of the RRsets of the current block.
    heads: Vec<u8>,
    /// Octets of the RRsets of the current block.
    bodies: Vec<u8>,
    /// Offsets of form numbers in `bodies`.
    form_references: Vec<usize>,
    /// The number of each form in [`ImagePart::forms`].
    form_numbers: HashMap<Vec<u8>, u32>,
}

impl SourceZone<'_> {
    /// Returns the hash of the owner if the record belongs to the NSEC3 chain.
    fn nsec3_hash(&self, owner: NameRef<'_>, rdata: &[u8]) -> Option<[u8; 20]> {
        let parameters = self.nsec3.as_ref()?;
        let [1, _, high, low, length, rest @ ..] = rdata else { return None };
        let is_of_chain = u16::from_be_bytes([*high, *low]) == parameters.iterations
            && usize::from(*length) == parameters.salt.len()
            && rest.starts_with(&parameters.salt);
        is_of_chain.then(|| self.hash_of(owner)).flatten()
    }

    /// Returns the hash of the owner if the record belongs to the NSEC5 chain.
    fn nsec5_hash(&self, owner: NameRef<'_>, rdata: &[u8]) -> Option<[u8; 32]> {
        let key = self.nsec5?;
        is_nsec5(key.tag, rdata).then(|| self.hash_of(owner)).flatten()
    }

    /// Returns the hash in the first label of `owner`; `None` if `owner` is not directly below the
    /// apex or the label is not a hash of `N` octets.
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
    pub(super) fn owns_only_chain_records(&self, node: Node<'_>) -> bool {
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
    matches!(rdata, [high, low, _, NSEC5_HASH_OCTETS, ..] if u16::from_be_bytes([*high, *low]) == tag)
}

/// Returns the sort key of a name in [`Index`].
fn sort_key(zone: &SourceZone<'_>, name: NameRef<'_>) -> [u8; 8] {
    key_prefix(name, zone.contents.apex().view()).to_le_bytes()
}

impl ImagePart {
    /// Empties the part for reuse.
    fn clear(&mut self) {
        let Self { blocks, names, order, nsec3, nsec5, forms, form_references, period, .. } = self;
        blocks.clear();
        names.clear();
        [order, nsec3, nsec5].into_iter().for_each(Index::clear);
        forms.clear();
        form_references.clear();
        *period = None;
        self.signatures = 0;
        self.negative_soa = 0;
    }

    /// Replaces the content of the part by the blocks of `names`.
    pub(super) fn render(&mut self, zone: &SourceZone<'_>, names: &[ImageName<'_>], buffers: &mut Buffers) {
        self.clear();
        buffers.form_numbers.clear();
        for image_name in names {
            self.add_block(zone, image_name, buffers);
        }
    }

    fn add_block(&mut self, zone: &SourceZone<'_>, image_name: &ImageName<'_>, buffers: &mut Buffers) {
        let at = (self.blocks.len() / BLOCK_UNIT) as u32;
        let kind = kind_of(zone, image_name);
        buffers.heads.clear();
        buffers.bodies.clear();
        buffers.form_references.clear();
        if let Some(node) = image_name.node {
            if kind == NodeKind::Delegation {
                // RFC 4035 §2.2: at a zone cut, only the DS and denial records are authoritative.
                self.add_referral(zone, node, buffers);
                self.add_data(zone, node, buffers, |rtype| matches!(rtype, Rtype::DS | Rtype::NSEC));
            } else {
                self.add_data(zone, node, buffers, |_| true);
            }
            if node.index() == 0 {
                self.add_negative_soa(zone, node, buffers);
            }
            self.add_to_indexes(zone, node, kind, at);
        }
        if kind != NodeKind::HashChainOwner {
            self.names.push(at);
            if zone.has_no_chain {
                self.order.push(&sort_key(zone, image_name.name), at);
            }
        }
        let bodies_offset =
            push_block(kind, image_name.name, &buffers.heads, &buffers.bodies, &mut self.blocks);
        self.form_references.extend(buffers.form_references.iter().map(|offset| bodies_offset + offset));
    }

    /// Adds the node at `at` to the indexes of its chains.
    fn add_to_indexes(&mut self, zone: &SourceZone<'_>, node: Node<'_>, kind: NodeKind, at: u32) {
        let name = node.name();
        // A name without an NSEC record is also listed: the NSEC record of its predecessor does not
        // cover the names after it.
        if zone.has_nsec && kind != NodeKind::HashChainOwner {
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

    fn add_data(
        &mut self,
        zone: &SourceZone<'_>,
        node: Node<'_>,
        buffers: &mut Buffers,
        is_selected: impl Fn(Rtype) -> bool,
    ) {
        let apex = zone.contents.apex().view();
        let mut renderer = Renderer::new(node.name(), apex, false);
        let own = node.rrsets().filter(|rrset| rrset.rtype() != Rtype::RRSIG && is_selected(rrset.rtype()));
        for rrset in own {
            if zone.is_chain(node, rrset) {
                self.add_chain_record(apex, node, rrset, buffers);
            } else {
                self.add_rrset(&mut renderer, node, rrset, buffers);
            }
        }
    }

    /// Adds an RRset. The owner of its records is a pointer to the question name.
    fn add_rrset(
        &mut self,
        renderer: &mut Renderer,
        node: Node<'_>,
        rrset: Rrset<'_>,
        buffers: &mut Buffers,
    ) {
        renderer.begin(&mut buffers.rendered);
        for rdata in rrset.rdatas() {
            renderer.push_record(rrset.rtype(), rrset.ttl(), rdata, &mut buffers.rendered);
        }
        self.finish_template(Role::Data, rrset, signatures(node, rrset), buffers);
    }

    /// Adds denial records. They prove something about other names, so their owner is written in
    /// full, and their signatures point to it.
    fn add_chain_record(
        &mut self,
        apex: NameRef<'_>,
        node: Node<'_>,
        rrset: Rrset<'_>,
        buffers: &mut Buffers,
    ) {
        let mut renderer = Renderer::new(apex, apex, false);
        renderer.begin(&mut buffers.rendered);
        for rdata in rrset.rdatas() {
            renderer.push_record_of(node.name(), rrset.rtype(), rrset.ttl(), rdata, &mut buffers.rendered);
        }
        let signatures = signatures(node, rrset).map(|(signatures, _)| (signatures, rrset.ttl()));
        self.finish_template(Role::Chain, rrset, signatures, buffers);
    }

    /// Adds the SOA RRset with the TTL of negative answers (RFC 2308 §5).
    fn add_negative_soa(&mut self, zone: &SourceZone<'_>, apex: Node<'_>, buffers: &mut Buffers) {
        let Some(soa) = apex.rrset(Rtype::SOA) else { return };
        self.negative_soa = (buffers.heads.len() / RRSET_HEAD_OCTETS) as u16;
        let mut renderer = Renderer::new(apex.name(), apex.name(), false);
        renderer.begin(&mut buffers.rendered);
        for rdata in soa.rdatas() {
            renderer.push_record(Rtype::SOA, zone.negative_ttl, rdata, &mut buffers.rendered);
        }
        let signatures = signatures(apex, soa).map(|(signatures, _)| (signatures, zone.negative_ttl));
        self.finish_template(Role::NegativeSoa, soa, signatures, buffers);
    }

    /// Adds the NS RRset of a zone cut, and the addresses of its servers that the zone has.
    fn add_referral(&mut self, zone: &SourceZone<'_>, cut: Node<'_>, buffers: &mut Buffers) {
        let Some(servers) = cut.rrset(Rtype::NS) else { return };
        let mut renderer = Renderer::new(cut.name(), zone.contents.apex().view(), true);
        renderer.begin(&mut buffers.rendered);
        for rdata in servers.rdatas() {
            renderer.push_record(Rtype::NS, servers.ttl(), rdata, &mut buffers.rendered);
        }
        self.finish_template(Role::Data, servers, None, buffers);
        renderer.keep_suffixes();
        for role in [Role::RequiredGlue, Role::Glue] {
            for rdata in servers.rdatas() {
                self.add_glue(
                    zone.contents,
                    cut,
                    NameRef::from_wire_unchecked(rdata),
                    role,
                    &mut renderer,
                    buffers,
                );
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
        buffers: &mut Buffers,
    ) {
        let is_required = server.is_at_or_below(cut.name());
        if is_required != (role == Role::RequiredGlue) || !server.is_at_or_below(contents.apex().view()) {
            return;
        }
        let Ok(host) = contents.find(server) else { return };
        for rtype in [Rtype::A, Rtype::AAAA] {
            let Some(addresses) = host.rrset(rtype) else { continue };
            if buffers.heads.len() / RRSET_HEAD_OCTETS > MAX_GLUE_TEMPLATES {
                return;
            }
            renderer.begin(&mut buffers.rendered);
            for rdata in addresses.rdatas() {
                renderer.push_record_of(server, rtype, addresses.ttl(), rdata, &mut buffers.rendered);
            }
            // RFC 4035 §3.1.1: authoritative addresses have signatures; glue has none.
            self.finish_template(role, addresses, signatures(host, addresses), buffers);
        }
    }

    /// Ends the template of `rrset`, whose records are rendered. Adds its signatures, which have
    /// their own TTL.
    fn finish_template(
        &mut self,
        role: Role,
        rrset: Rrset<'_>,
        signatures: Option<(Rrset<'_>, u32)>,
        buffers: &mut Buffers,
    ) {
        let rrsigs = signatures.iter().flat_map(|(signatures, ttl)| {
            signatures.rdatas().filter_map(|rdata| signature::split_rrsig(*ttl, rdata))
        });
        let rrsigs: Vec<_> = rrsigs.collect();
        let period = rrsigs.iter().map(|rrsig| signature::period(rrsig.times)).reduce(ValidityPeriod::union);
        if let Some(period) = period {
            self.period = Some(self.period.map_or(period, |whole| whole.intersect(period)));
        }
        // The signatures of the negative SOA RRset and of addresses in a referral are counted at
        // their own RRset.
        if matches!(role, Role::Data | Role::Chain) {
            self.signatures += rrsigs.len() as u64;
        }
        let Buffers { rendered, heads, bodies, form_references, form_numbers } = buffers;
        let head = Head {
            rtype: rrset.rtype(),
            role,
            records: rrset.count(),
            signatures: rrsigs.len(),
            patches: rendered.patches.len(),
            length: rendered.records.len(),
        };
        head.push(heads, bodies, |bodies| {
            rendered.patches.iter().for_each(|patch| bodies.extend_from_slice(&patch.octets()));
            bodies.extend_from_slice(&rendered.records);
            for rrsig in rrsigs {
                form_references.push(bodies.len());
                let number = form_number(rrsig.form, &mut self.forms, form_numbers);
                bodies.extend_from_slice(&number.to_le_bytes());
                bodies.extend_from_slice(&rrsig.times);
                bodies.extend_from_slice(rrsig.signature);
            }
        });
    }
}

/// Returns the signatures of an RRset, and their TTL.
fn signatures<'z>(node: Node<'z>, rrset: Rrset<'z>) -> Option<(Rrset<'z>, u32)> {
    node.signatures(rrset.rtype()).map(|signatures| (signatures, signatures.ttl()))
}

/// Returns the number of a form in `forms` and adds it if it is new. `form_numbers` contains the
/// known forms.
fn form_number(form: Vec<u8>, forms: &mut Vec<Vec<u8>>, form_numbers: &mut HashMap<Vec<u8>, u32>) -> u32 {
    if let Some(number) = form_numbers.get(&form) {
        return *number;
    }
    let number = forms.len() as u32;
    forms.push(form.clone());
    form_numbers.insert(form, number);
    number
}

/// Returns the kind of the block of a name.
fn kind_of(zone: &SourceZone<'_>, image_name: &ImageName<'_>) -> NodeKind {
    match (image_name.status, image_name.node) {
        (NameStatus::Delegation, _) => NodeKind::Delegation,
        (_, Some(node)) if zone.owns_only_chain_records(node) => NodeKind::HashChainOwner,
        _ => NodeKind::Authoritative,
    }
}
