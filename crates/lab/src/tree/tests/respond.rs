//! A nameserver that answers from a zone as it is, faults included. A denial has all records of the
//! denial chain.

use super::super::TreeZone;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use nonesuch_zone::{Node, Rrset};

struct Reply<'z> {
    zone: &'z TreeZone,
    records: Vec<Record>,
    rcode: Rcode,
}

/// The response of the zone to a question.
pub(super) fn respond(zone: &TreeZone, name: &Name, rtype: Rtype) -> Message {
    let mut reply = Reply { zone, records: Vec::new(), rcode: Rcode::NOERROR };
    let mut seen = Vec::new();
    let mut next = Some(name.clone());
    while let Some(owner) = next.take().filter(|owner| !seen.contains(owner)) {
        next = reply.answer(&owner, rtype);
        seen.push(owner);
    }
    let of = |section| reply.records.iter().filter(|record| record.section == section).count() as u16;
    let counts = [1, of(Section::Answer), of(Section::Authority), 0];
    let header = Header { id: 1, flags: flags::QR | flags::AA | reply.rcode.0, counts };
    let questions = vec![Question { name: name.clone(), rtype, class: Class::IN }];
    Message { header, questions, records: reply.records }
}

impl<'z> Reply<'z> {
    fn node(&self, name: NameRef<'_>) -> Option<Node<'z>> {
        self.zone.contents.find(name).ok()
    }

    fn exists(&self, name: NameRef<'_>) -> bool {
        self.zone.contents.nodes().any(|node| node.name().is_at_or_below(name))
    }

    /// Answers for one name; returns the target of an alias in the zone.
    fn answer(&mut self, owner: &Name, rtype: Rtype) -> Option<Name> {
        if let Some(node) = self.node(owner.view()) {
            if let Some(rrset) = node.rrset(rtype) {
                self.push(Section::Answer, owner, node, rrset);
                return None;
            }
            if let Some(alias) = node.rrset(Rtype::CNAME) {
                self.push(Section::Answer, owner, node, alias);
                let target = NameRef::from_wire(alias.rdatas().next()?).ok()?.to_name();
                return Some(target).filter(|target| target.view().is_at_or_below(self.zone.origin.view()));
            }
        }
        if self.exists(owner.view()) {
            match self.omitted(owner) {
                Some([encloser, closer]) => self.deny(&[&encloser, &closer]),
                None => self.deny(&[owner]),
            }
            return None;
        }
        let ancestors = std::iter::successors(Some(owner.view()), |name| name.parent());
        let closer = ancestors.take_while(|name| !self.exists(*name)).last()?.to_name();
        let encloser = closer.view().parent()?.to_name();
        let wildcard = Name::wildcard_below(encloser.view()).ok()?;
        let node = self.node(wildcard.view());
        match node.and_then(|node| Some((node, node.rrset(rtype)?))) {
            Some((node, rrset)) => {
                self.push(Section::Answer, owner, node, rrset);
                self.push_chain(&[&closer]);
            }
            None => {
                self.rcode = Rcode::NXDOMAIN;
                self.deny(&[&encloser, &closer]);
            }
        }
        None
    }

    /// For a name that an NSEC5 opt-out chain omits: the closest provable encloser, and the name
    /// below it.
    fn omitted(&self, owner: &Name) -> Option<[Name; 2]> {
        let (_, proofs) = self.zone.nsec5.as_ref()?;
        let apex = self.zone.origin.view();
        let in_chain = |name: NameRef<'_>| proofs.entries().any(|entry| entry.full_name(apex).view() == name);
        let ancestors = std::iter::successors(Some(owner.view()), |name| name.parent());
        let closer = ancestors.take_while(|name| !in_chain(*name)).last()?;
        Some([closer.parent()?.to_name(), closer.to_name()])
    }

    fn deny(&mut self, proved: &[&Name]) {
        let zone = self.zone;
        if let Some((apex, soa)) =
            zone.contents.nodes().next().and_then(|apex| Some((apex, apex.rrset(Rtype::SOA)?)))
        {
            self.push(Section::Authority, &zone.origin, apex, soa);
        }
        self.push_chain(proved);
    }

    /// All records of the denial chain, and the NSEC5 proofs of some names.
    fn push_chain(&mut self, proved: &[&Name]) {
        let is_chain = |rrset: &Rrset<'_>| matches!(rrset.rtype(), Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5);
        for node in self.zone.contents.nodes() {
            for rrset in node.rrsets().filter(is_chain) {
                self.push(Section::Authority, &node.name().to_name(), node, rrset);
            }
        }
        let Some((key, _)) = self.zone.nsec5.as_ref() else { return };
        assert_eq!(self.zone.description.denial.name_hash(), NameHash::Vrf);
        for owner in proved {
            let (mut canonical, mut rdata) = (Vec::new(), Nsec5Key::of(key).tag().to_be_bytes().to_vec());
            owner.view().push_canonical(&mut canonical);
            key.prove(&canonical, &mut rdata).unwrap();
            self.push_record(Section::Authority, owner, Rtype::NSEC5PROOF, 900, &rdata);
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
