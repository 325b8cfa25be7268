//! The responses of the servers of a tree: what the zones contain, faults included.
//!
//! `nonesuch serve` omits denial records that a validator would reject. The servers here do not:
//! for a denial they send the records that a server with a sound chain would send, or in place of a
//! missing record its predecessor. They sign nothing, so the responses of zones with online
//! signing are not signed.

use super::chain::Chain;
use super::fault::Fault;
use super::{Tree, TreeZone};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use nonesuch_zone::{Node, Rrset};
use std::net::Ipv4Addr;

/// Maximum number of aliases that a response follows.
const ALIASES: usize = 8;

impl Tree {
    /// The response of the server at `server` to a question, with ID 0: from the closest enclosing
    /// zone that is served there, and for DS from the zone above it. `None` if no zone at this
    /// server encloses the name.
    #[must_use]
    pub fn respond(&self, server: Ipv4Addr, name: NameRef<'_>, rtype: Rtype) -> Option<Message> {
        let zones = self.zones.iter().filter(|zone| zone.server == server && zone.is_served());
        let enclosing = zones.filter(|zone| name.is_at_or_below(zone.origin.view()));
        // RFC 4035 §3.1.4.1: a server of both zones answers DS from the parent.
        let has_priority = |zone: &TreeZone| rtype != Rtype::DS || zone.origin.view() != name;
        let best = enclosing.max_by_key(|zone| (has_priority(zone), zone.origin.view().label_count()))?;
        Some(best.respond(name, rtype))
    }
}

impl TreeZone {
    /// The response of a server of this zone to a question, with ID 0.
    #[must_use]
    pub fn respond(&self, name: NameRef<'_>, rtype: Rtype) -> Message {
        let mut reply = Reply { zone: self, records: Vec::new(), rcode: Rcode::NOERROR, is_referral: false };
        let mut next = Some(name.to_name());
        for _ in 0..ALIASES {
            let Some(owner) = next.take() else { break };
            next = reply.answer(&owner, rtype);
        }
        let aa = if reply.is_referral { 0 } else { flags::AA };
        let of = |section| reply.records.iter().filter(|record| record.section == section).count() as u16;
        let counts = [1, of(Section::Answer), of(Section::Authority), of(Section::Additional)];
        let header = Header { id: 0, flags: flags::QR | aa | reply.rcode.0, counts };
        let questions = vec![Question { name: name.to_name(), rtype, class: Class::IN }];
        Message { header, questions, records: reply.records }
    }
}

struct Reply<'z> {
    zone: &'z TreeZone,
    records: Vec<Record>,
    rcode: Rcode,
    is_referral: bool,
}

impl<'z> Reply<'z> {
    fn node(&self, name: NameRef<'_>) -> Option<Node<'z>> {
        self.zone.contents.find(name).ok()
    }

    fn exists(&self, name: NameRef<'_>) -> bool {
        match self.zone.contents.find(name) {
            Ok(_) => true,
            // The names below a name follow it in canonical order.
            Err(next) => {
                next < self.zone.contents.node_count()
                    && self.zone.contents.node(next).name().is_at_or_below(name)
            }
        }
    }

    /// The names from `name` up to the apex.
    fn ancestors<'n>(&self, name: NameRef<'n>) -> impl Iterator<Item = NameRef<'n>> + use<'n> {
        let apex_labels = self.zone.origin.view().label_count();
        std::iter::successors(Some(name), |name| name.parent())
            .take_while(move |name| name.label_count() >= apex_labels)
    }

    /// Answers for one name; returns the target of an alias in the zone.
    fn answer(&mut self, owner: &Name, rtype: Rtype) -> Option<Name> {
        if let Some(cut) = self.cut_above(owner.view(), rtype) {
            self.refer(cut);
            return None;
        }
        if let Some(dname) = self.dname_above(owner.view()) {
            return self.substitute(owner, dname);
        }
        if let Some(node) = self.node(owner.view()) {
            return self.answer_from(owner, node, rtype);
        }
        if self.exists(owner.view()) {
            self.deny_type(owner);
            return None;
        }
        let closer = self.ancestors(owner.view()).take_while(|name| !self.exists(*name)).last()?.to_name();
        let encloser = closer.view().parent()?.to_name();
        let wildcard = Name::wildcard_below(encloser.view()).ok()?;
        match self.node(wildcard.view()) {
            Some(node) if node.has(rtype) || node.has(Rtype::CNAME) => {
                let target = self.answer_from(owner, node, rtype);
                self.prove(&[], &[&closer]);
                target
            }
            Some(_) => {
                self.push_soa();
                self.prove(&[&encloser, &wildcard], &[&closer]);
                None
            }
            None => {
                self.rcode = Rcode::NXDOMAIN;
                self.push_soa();
                self.prove(&[&encloser], &[&closer, &wildcard]);
                None
            }
        }
    }

    /// Answers with the records of a node for `owner`; returns the target of an alias in the zone.
    fn answer_from(&mut self, owner: &Name, node: Node<'z>, rtype: Rtype) -> Option<Name> {
        if let Some(rrset) = node.rrset(rtype) {
            self.push(Section::Answer, owner, node, rrset);
            return None;
        }
        let Some(alias) = node.rrset(Rtype::CNAME) else {
            self.deny_type(owner);
            return None;
        };
        self.push(Section::Answer, owner, node, alias);
        self.in_zone(NameRef::from_wire(alias.rdatas().next()?).ok()?.to_name())
    }

    fn in_zone(&self, target: Name) -> Option<Name> {
        Some(target).filter(|target| target.view().is_at_or_below(self.zone.origin.view()))
    }

    /// The highest zone cut at or above the name. DS at a cut belongs to this zone.
    fn cut_above(&self, name: NameRef<'_>, rtype: Rtype) -> Option<Node<'z>> {
        let below_apex = self.ancestors(name).filter(|ancestor| *ancestor != self.zone.origin.view());
        let cuts = below_apex.filter_map(|ancestor| self.node(ancestor)).filter(|node| node.has(Rtype::NS));
        cuts.last().filter(|cut| rtype != Rtype::DS || cut.name() != name)
    }

    fn dname_above(&self, name: NameRef<'_>) -> Option<Node<'z>> {
        let mut above = self.ancestors(name).skip(1).filter_map(|ancestor| self.node(ancestor));
        above.find(|node| node.has(Rtype::DNAME))
    }

    /// Adds a DNAME record and the CNAME record that follows from it (RFC 6672 §3.2), or that of
    /// [`Fault::ForgedCname`].
    fn substitute(&mut self, owner: &Name, node: Node<'z>) -> Option<Name> {
        let dname = node.rrset(Rtype::DNAME)?;
        let mut wire = owner.wire()[..owner.wire().len() - node.name().len()].to_vec();
        wire.extend_from_slice(dname.rdatas().next()?);
        let mut target = NameRef::from_wire(&wire).ok()?.to_name();
        if self.zone.description.has(Fault::ForgedCname) {
            target = Name::prepend(b"www", self.zone.origin.view()).ok()?;
        }
        self.push(Section::Answer, &node.name().to_name(), node, dname);
        self.push_record(Section::Answer, owner, Rtype::CNAME, dname.ttl(), target.wire());
        self.in_zone(target)
    }

    /// Adds a referral: NS, DS or their denial, and the addresses in the zone.
    fn refer(&mut self, cut: Node<'z>) {
        let owner = cut.name().to_name();
        self.is_referral = true;
        for rtype in [Rtype::NS, Rtype::DS] {
            let rrset = cut.rrset(rtype);
            rrset.into_iter().for_each(|rrset| self.push(Section::Authority, &owner, cut, rrset));
        }
        if !cut.has(Rtype::DS) {
            self.prove_type(&owner);
        }
        let servers = cut.rrset(Rtype::NS);
        for server in servers.into_iter().flat_map(Rrset::rdatas).filter_map(|ns| NameRef::from_wire(ns).ok())
        {
            let addresses = self.node(server).and_then(|node| Some((node, node.rrset(Rtype::A)?)));
            if let Some((node, rrset)) = addresses {
                self.push(Section::Additional, &server.to_name(), node, rrset);
            }
        }
    }

    /// Adds the denial of a type at a name that exists.
    fn deny_type(&mut self, owner: &Name) {
        self.push_soa();
        self.prove_type(owner);
    }

    /// Adds the proof that a name exists without the type, or in a chain with opt-out that the
    /// name is in a gap.
    fn prove_type(&mut self, owner: &Name) {
        let is_in_gap = self.zone.description.denial.is_opt_out() && !self.has_chain_record(owner);
        if !is_in_gap {
            return self.prove(&[owner], &[]);
        }
        let above = self.ancestors(owner.view()).map(NameRef::to_name);
        let names: Vec<Name> = above.take_while(|name| !self.has_chain_record(name)).collect();
        if let Some(closer) = names.last() {
            let encloser = closer.view().parent().map(NameRef::to_name);
            self.prove(&encloser.iter().collect::<Vec<_>>(), &[closer]);
        }
    }

    fn has_chain_record(&self, name: &Name) -> bool {
        let apex = self.zone.origin.view();
        match &self.zone.nsec5 {
            Some((_, proofs)) => proofs.entries().any(|entry| entry.full_name(apex).view() == name.view()),
            None => {
                let chain = Chain::new(apex, &self.zone.description);
                let owner = chain.owner_of(name.view());
                owner.is_some_and(|owner| self.node(owner.view()).is_some_and(|node| node.has(chain.rtype())))
            }
        }
    }

    fn push_soa(&mut self) {
        let soa = self.node(self.zone.origin.view()).and_then(|apex| Some((apex, apex.rrset(Rtype::SOA)?)));
        if let Some((apex, soa)) = soa {
            self.push(Section::Authority, &self.zone.origin, apex, soa);
        }
    }

    /// Adds the records that match `matched` and cover `covered`. With NSEC5: all records of the
    /// chain, and the proofs of these names.
    fn prove(&mut self, matched: &[&Name], covered: &[&Name]) {
        let zone = self.zone;
        if zone.description.denial.name_hash() == NameHash::Vrf {
            return self.prove_with_nsec5(matched.iter().chain(covered));
        }
        let chain = Chain::new(zone.origin.view(), &zone.description);
        let is_hashed = chain.rtype() == Rtype::NSEC3;
        let has_record = |node: &Node<'_>| node.has(chain.rtype());
        let owners = || zone.contents.nodes().filter(has_record).map(Node::name);
        // An empty non-terminal has no NSEC record: its predecessor covers the name. No record
        // matches the closest encloser, which the covering record shows (RFC 4035 §3.1.3.2).
        let matched = matched.iter().filter_map(|name| match is_hashed {
            true => chain.owner_of(name.view()).filter(|owner| self.node(owner.view()).is_some()),
            false if covered.is_empty() || name.view().is_wildcard() => {
                chain.at_or_before(owners(), name.view()).map(NameRef::to_name)
            }
            false => None,
        });
        let covering = covered.iter().filter_map(|name| chain.at_or_before(owners(), name.view()));
        let mut selected: Vec<Name> = matched.chain(covering.map(NameRef::to_name)).collect();
        selected.sort();
        selected.dedup();
        let mut selected: Vec<(Name, Rtype)> =
            selected.into_iter().map(|owner| (owner, chain.rtype())).collect();
        if zone.description.has(Fault::MixedDenial) {
            selected.push((zone.origin.clone(), Rtype::NSEC));
        }
        for (owner, rtype) in selected {
            let node = self.node(owner.view()).and_then(|node| Some((node, node.rrset(rtype)?)));
            if let Some((node, rrset)) = node {
                self.push(Section::Authority, &owner, node, rrset);
            }
        }
    }

    fn prove_with_nsec5<'n>(&mut self, names: impl Iterator<Item = &'n &'n Name>) {
        let zone = self.zone;
        for node in zone.contents.nodes() {
            if let Some(rrset) = node.rrset(Rtype::NSEC5) {
                self.push(Section::Authority, &node.name().to_name(), node, rrset);
            }
        }
        let Some((key, _)) = &zone.nsec5 else { return };
        for owner in names {
            let (mut canonical, mut rdata) = (Vec::new(), Nsec5Key::of(key).tag().to_be_bytes().to_vec());
            owner.view().push_canonical(&mut canonical);
            if key.prove(&canonical, &mut rdata).is_ok() {
                self.push_record(Section::Authority, owner, Rtype::NSEC5PROOF, 900, &rdata);
            }
        }
    }

    /// Adds an RRset with its signatures, with another owner for a wildcard.
    fn push(&mut self, section: Section, owner: &Name, node: Node<'_>, rrset: Rrset<'_>) {
        let both = [Some(rrset), node.signatures(rrset.rtype())];
        for set in both.into_iter().flatten() {
            set.rdatas().for_each(|rdata| self.push_record(section, owner, set.rtype(), set.ttl(), rdata));
        }
    }

    fn push_record(&mut self, section: Section, owner: &Name, rtype: Rtype, ttl: u32, rdata: &[u8]) {
        let (owner, rdata) = (owner.clone(), rdata.to_vec());
        self.records.push(Record { section, owner, rtype, class: Class::IN, ttl, rdata });
    }
}
