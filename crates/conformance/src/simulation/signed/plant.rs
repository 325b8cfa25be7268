//! Changes correct responses according to the fault of the world.

use super::chain::{CHAIN_TYPES, Denied};
use super::fault::{Fault, FaultKind, Target};
use super::respond::{Part, Response};
use super::world::World;
use super::zone::{RecordSet, Zone};
use crate::simulation::name_below;
use crate::simulation::world::HOSTILE;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::message::{Rcode, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

/// TTL of forged records, in seconds.
const FORGED_TTL: u32 = 60;
/// TTL that is higher than those of all zones, in seconds.
const HIGH_TTL: u32 = 200_000;
/// A month, in seconds.
const MONTH: u32 = 30 * 86_400;

impl Fault {
    /// Changes the response to a question.
    pub(super) fn apply(&self, world: &World, name: &Name, rtype: Rtype, response: &mut Response) {
        if response.zone != self.zone {
            return;
        }
        match self.kind {
            kind if kind.is_of_signatures() => self.change_signatures(world, response),
            FaultKind::ChangedRecord | FaultKind::AddedRecord | FaultKind::RemovedRecord => {
                self.change_records(response);
            }
            kind if kind.is_of_answers() && !self.spares(rtype) => {
                self.replace_answer(world, name, rtype, response);
            }
            FaultKind::ForgedReferral => self.refer(&world.zones[self.zone], name, rtype, response),
            FaultKind::MissingDs | FaultKind::DsDeniedByChild => self.remove_ds(world, name, rtype, response),
            FaultKind::MissingProof => response.parts.retain(|part| !is_proof(part)),
            FaultKind::OtherProof => replace_proof(&world.zones[self.zone], response),
            FaultKind::ForeignProof => self.replace_by_foreign_proof(world, name, response),
            FaultKind::ChangedBitmap => change_bitmaps(response),
            FaultKind::MissingWildcardProof if response.parts.iter().any(is_expanded) => {
                response.parts.retain(|part| !is_proof(part));
            }
            FaultKind::AdFlag => response.has_ad = true,
            FaultKind::RaisedTtls => response.parts.iter_mut().for_each(|part| part.set.ttl = HIGH_TTL),
            // The response is not affected.
            _ => {}
        }
    }

    fn is_target(&self, part: &Part) -> bool {
        match &self.target {
            Target::Rrset(owner, rtype) => part.source == *owner && part.rtype == *rtype,
            Target::Denials => CHAIN_TYPES.contains(&part.rtype),
            _ => false,
        }
    }

    fn change_signatures(&self, world: &World, response: &mut Response) {
        for part in &mut response.parts {
            if !self.is_target(part) {
                continue;
            }
            if self.kind == FaultKind::MissingSignature {
                part.set.signatures.clear();
            }
            let signatures = std::mem::take(&mut part.set.signatures);
            let changed = signatures.iter().map(|signature| self.change_signature(world, part, signature));
            part.set.signatures = changed.collect();
        }
    }

    /// Returns a signature with the fault.
    fn change_signature(&self, world: &World, part: &Part, rdata: &[u8]) -> Vec<u8> {
        let Some(mut fields) = Rrsig::parse(rdata) else { return rdata.to_vec() };
        let zone = &world.zones[self.zone];
        let mut key = zone.keys.iter().flat_map(|keys| keys.keys()).find(|key| key.tag() == fields.tag);
        let signer;
        match self.kind {
            FaultKind::CorruptSignature => {
                let mut changed = rdata.to_vec();
                changed.last_mut().into_iter().for_each(|octet| *octet ^= 1);
                return changed;
            }
            FaultKind::ExpiredSignature => {
                (fields.inception, fields.expiration) = (fields.inception - MONTH, fields.inception + 3600);
            }
            FaultKind::EarlySignature => {
                (fields.inception, fields.expiration) = (fields.expiration, fields.expiration + MONTH);
            }
            FaultKind::ForeignKey => {
                let other = self.other.map(|other| &world.zones[other]);
                key = other.and_then(|other| signing_key(other, part.rtype));
                signer = other.map_or_else(Name::root, |other| other.apex.clone());
                fields.signer = signer.view();
                key.into_iter().for_each(|key| (fields.tag, fields.algorithm) = (key.tag(), key.algorithm()));
            }
            FaultKind::WrongLabels => {
                // With more labels, the signature of a wildcard would be one of the expanded name.
                let is_wildcard = part.source.view().is_wildcard();
                fields.labels = if is_wildcard { fields.labels - 1 } else { fields.labels + 1 };
            }
            FaultKind::WrongType => {
                fields.covered = if fields.covered == Rtype::TXT { Rtype::A } else { Rtype::TXT };
            }
            FaultKind::WrongSigner => {
                signer = wrong_signer(world, zone, part);
                fields.signer = signer.view();
            }
            FaultKind::WrongTag => {
                let is_used = |tag| zone.keys.iter().flat_map(|keys| keys.keys()).any(|key| key.tag() == tag);
                let mut tags = (1..).map(|step| fields.tag.wrapping_add(step));
                fields.tag = tags.find(|tag| !is_used(*tag)).unwrap_or(fields.tag);
            }
            _ => {}
        }
        key.map_or_else(Vec::new, |key| sign(part, &fields, key))
    }

    fn change_records(&self, response: &mut Response) {
        for part in response.parts.iter_mut().filter(|part| self.is_target(part)) {
            let RecordSet { rdatas, .. } = &mut part.set;
            match self.kind {
                FaultKind::RemovedRecord => drop(rdatas.pop()),
                FaultKind::AddedRecord => {
                    let added = rdatas.first().map(|first| changed(part.rtype, first));
                    rdatas.extend(added);
                }
                _ => {
                    if let Some(last) = rdatas.last_mut() {
                        *last = changed(part.rtype, last);
                    }
                }
            }
        }
    }

    /// Replaces an answer with the RRset by false data.
    fn replace_answer(&self, world: &World, name: &Name, rtype: Rtype, response: &mut Response) {
        let is_target = |part: &Part| part.section == Section::Answer && self.is_target(part);
        let Some(index) = response.parts.iter().position(is_target) else { return };
        // The name of a DNAME RRset is not that of the question.
        let owner = match &response.parts[index] {
            part if part.rtype == Rtype::DNAME && part.owner != *name => {
                let cname = response.parts.get(index + 1).map(|cname| cname.owner.clone());
                cname.unwrap_or_else(|| name.clone())
            }
            part => part.owner.clone(),
        };
        let source = response.parts[index].source.clone();
        response.parts.truncate(index);
        response.rcode = Rcode::NOERROR;
        let forged = |rtype| {
            let set =
                RecordSet { ttl: FORGED_TTL, rdatas: vec![forged_rdata(rtype)], signatures: Vec::new() };
            Part::new(Section::Answer, &owner, rtype, set)
        };
        match self.kind {
            FaultKind::ForgedAnswer => response.parts.push(forged(rtype)),
            FaultKind::ForgedAlias => response.parts.push(forged(Rtype::CNAME)),
            FaultKind::DeniedByParent => self.deny_by_parent(world, response),
            _ => {
                let is_name = self.kind == FaultKind::DeniedName;
                response.rcode = if is_name { Rcode::NXDOMAIN } else { Rcode::NOERROR };
                self.deny_with_other_records(world, &owner, &source, response);
            }
        }
    }

    /// Adds all records of the chain but the one that matches, and those that a query for a missing
    /// name gets.
    fn deny_with_other_records(&self, world: &World, owner: &Name, source: &Name, response: &mut Response) {
        let zone = &world.zones[self.zone];
        push_soa(zone, response);
        let missing = name_below("missing", &zone.apex);
        world.add_proof(response, Denied::Name(&missing, &zone.apex));
        for record in zone.chain.records.iter().take(6) {
            if response.parts.iter().all(|part| part.owner != record.owner || part.rtype == Rtype::SOA) {
                let part = Part::new(Section::Authority, &record.owner, zone.chain.rtype, record.set.clone());
                response.parts.push(part);
            }
        }
        if let Some(matching) = zone.chain.matching(source) {
            let matching = &zone.chain.records[matching].owner;
            response.parts.retain(|part| part.rtype != zone.chain.rtype || part.owner != *matching);
        }
        if let Some(proof) = zone.chain.nsec5_proof(owner) {
            let set = RecordSet { ttl: FORGED_TTL, rdatas: vec![proof], signatures: Vec::new() };
            response.parts.push(Part::new(Section::Authority, owner, Rtype::NSEC5PROOF, set));
        }
    }

    /// Denies the answer with the record of the parent zone at the zone cut (RFC 6840 §4.1).
    fn deny_by_parent(&self, world: &World, response: &mut Response) {
        let (Some(parent), zone) = (self.other, &world.zones[self.zone]) else { return };
        response.rcode = if zone.servers.len() > 1 { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        push_soa(&world.zones[parent], response);
        let mut of_parent = Response::empty(parent, Rcode::NOERROR);
        world.add_proof(&mut of_parent, Denied::Type(&zone.apex));
        response.parts.extend(of_parent.parts);
    }

    /// Delegates a name to the servers of an attacker.
    fn refer(&self, zone: &Zone, name: &Name, rtype: Rtype, response: &mut Response) {
        let Target::Tree(cut) = &self.target else { return };
        if !name.view().is_at_or_below(cut.view()) {
            return;
        }
        let is_cut = zone.set(cut, Rtype::NS).is_some();
        if rtype == Rtype::DS && name == cut {
            // The response for a genuine cut is left alone.
            response.parts.retain(|part| is_cut || !is_proof(part));
            return;
        }
        // The DS RRset of a genuine cut stays, or its denial.
        response.parts.retain(|part| is_cut && part.section == Section::Authority && part.rtype != Rtype::NS);
        (response.rcode, response.is_authoritative) = (Rcode::NOERROR, false);
        let server = name_below("evil", cut);
        let set = |rdata| RecordSet { ttl: FORGED_TTL, rdatas: vec![rdata], signatures: Vec::new() };
        response.parts.push(Part::new(Section::Authority, cut, Rtype::NS, set(server.wire().to_vec())));
        let address = [HOSTILE.as_slice(), &[1]].concat();
        response.parts.push(Part::new(Section::Additional, &server, Rtype::A, set(address)));
    }

    /// Removes the DS RRset. The answer to a query for it denies it with unsuitable records.
    fn remove_ds(&self, world: &World, name: &Name, rtype: Rtype, response: &mut Response) {
        let Target::Rrset(cut, _) = &self.target else { return };
        let count = response.parts.len();
        response.parts.retain(|part| part.rtype != Rtype::DS || part.owner != *cut);
        if response.parts.len() == count {
            return;
        }
        let is_question = rtype == Rtype::DS && name == cut;
        if self.kind == FaultKind::MissingDs {
            if is_question {
                self.deny_with_other_records(world, cut, cut, response);
            }
            return;
        }
        let Some(child) = self.other else { return };
        let mut of_child = Response::empty(child, Rcode::NOERROR);
        world.add_proof(&mut of_child, Denied::Type(cut));
        if is_question {
            push_soa(&world.zones[child], &mut of_child);
        }
        response.parts.extend(of_child.parts);
    }

    /// Replaces the proof by one of another zone.
    fn replace_by_foreign_proof(&self, world: &World, name: &Name, response: &mut Response) {
        let count = response.parts.len();
        response.parts.retain(|part| !is_proof(part));
        if let Some(other) = self.other.filter(|_| response.parts.len() < count) {
            let mut foreign = Response::empty(other, Rcode::NOERROR);
            let apex = &world.zones[other].apex;
            let is_inside = name.view().is_below(apex.view());
            let missing = if is_inside { name.clone() } else { name_below("missing", apex) };
            let denied = match world.zones[other].chain.matching(&missing) {
                Some(_) => Denied::Type(&missing),
                None => Denied::Name(&missing, apex),
            };
            world.add_proof(&mut foreign, denied);
            response.parts.extend(foreign.parts);
        }
    }
}

/// Whether the RRset was expanded from a wildcard.
fn is_expanded(part: &Part) -> bool {
    part.owner != part.source
}

/// Whether the RRset belongs to a denial.
fn is_proof(part: &Part) -> bool {
    CHAIN_TYPES.contains(&part.rtype) || part.rtype == Rtype::NSEC5PROOF
}

fn push_soa(zone: &Zone, response: &mut Response) {
    if let Some(soa) = zone.set(&zone.apex, Rtype::SOA) {
        response.parts.push(Part::new(Section::Authority, &zone.apex, Rtype::SOA, soa.clone()));
    }
}

/// Replaces the records of the proof by another one of the chain, if it has others.
fn replace_proof(zone: &Zone, response: &mut Response) {
    let is_used = |owner: &Name| {
        response.parts.iter().any(|part| CHAIN_TYPES.contains(&part.rtype) && part.owner == *owner)
    };
    let other = zone.chain.records.iter().find(|record| !is_used(&record.owner));
    let other =
        other.map(|other| Part::new(Section::Authority, &other.owner, zone.chain.rtype, other.set.clone()));
    let count = response.parts.len();
    response.parts.retain(|part| !CHAIN_TYPES.contains(&part.rtype));
    response.parts.extend(other.filter(|_| response.parts.len() < count));
}

/// Changes the last octet of type bit maps.
fn change_bitmaps(response: &mut Response) {
    for part in response.parts.iter_mut().filter(|part| CHAIN_TYPES.contains(&part.rtype)) {
        for last in part.set.rdatas.iter_mut().filter_map(|rdata| rdata.last_mut()) {
            *last ^= 0x10;
            // The last octet of a bit map is not zero (RFC 4034 §4.1.2).
            *last |= u8::from(*last == 0);
        }
    }
}

/// The key that signs RRsets of the type.
fn signing_key(zone: &Zone, rtype: Rtype) -> Option<&KeyPair> {
    let keys = zone.keys.as_ref()?;
    keys.keys().get(*keys.signers(rtype).first()?)
}

/// A name that is not the apex of the zone: the owner, or for the apex a name above or below it.
fn wrong_signer(world: &World, zone: &Zone, part: &Part) -> Name {
    if part.owner != zone.apex {
        return part.owner.clone();
    }
    // Nothing in a response shows that the servers of a zone also serve one below it.
    let is_seen = zone.parent.is_some_and(|parent| world.zones[parent].servers != zone.servers);
    let above = zone.apex.view().parent().filter(|_| is_seen);
    above.map_or_else(|| name_below("x", &zone.apex), NameRef::to_name)
}

/// Returns RDATA of a signature.
fn sign(part: &Part, fields: &Rrsig<'_>, key: &KeyPair) -> Vec<u8> {
    let rdatas = part.set.rdatas.iter().map(Vec::as_slice);
    let signed = fields.sign(part.owner.view(), rdatas, key.private());
    signed.unwrap_or_else(|error| unreachable!("{error}"))
}

/// Returns other RDATA of the type.
fn changed(rtype: Rtype, rdata: &[u8]) -> Vec<u8> {
    let mut changed = rdata.to_vec();
    let has_name = matches!(rtype, Rtype::NS | Rtype::CNAME | Rtype::DNAME | Rtype::SOA);
    let octet = if has_name { changed.get_mut(1) } else { changed.last_mut() };
    match octet {
        Some(octet) => *octet ^= 1,
        // The target is the root.
        None => changed = b"\x04evil\x00".to_vec(),
    }
    changed
}

/// Returns forged RDATA of the type.
pub(super) fn forged_rdata(rtype: Rtype) -> Vec<u8> {
    match rtype {
        Rtype::A => [HOSTILE.as_slice(), &[7]].concat(),
        Rtype::AAAA => vec![6; 16],
        Rtype::TXT => b"\x04evil".to_vec(),
        Rtype::DNSKEY => [&[1, 1, 3, 15][..], &[6; 32]].concat(),
        Rtype::DS => [&[6, 6, 15, 2][..], &[6; 32]].concat(),
        Rtype::SOA => crate::simulation::world::soa(&name_below("evil", &Name::root())),
        _ => b"\x04evil\x00".to_vec(),
    }
}
