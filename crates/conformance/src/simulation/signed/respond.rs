//! The correct responses of the servers (RFC 1034 §4.3.2, RFC 4035 §3.1), in a form that faults can
//! change.

use super::chain::Denied;
use super::lookup::{Found, Place};
use super::world::World;
use super::zone::{APEX_TTL, RecordSet};
use nonesuch_proto::message::{Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use std::net::Ipv4Addr;

/// Maximum number of aliases in one response.
const ALIASES_MAX: usize = 8;
const YXDOMAIN: Rcode = Rcode(6);

/// An RRset in a response.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) section: Section,
    pub(super) owner: Name,
    /// The owner in the zone, which is a wildcard if the RRset was expanded from it.
    pub(super) source: Name,
    pub(super) rtype: Rtype,
    pub(super) set: RecordSet,
}

impl Part {
    /// Returns an RRset with its own owner.
    pub(super) fn new(section: Section, owner: &Name, rtype: Rtype, set: RecordSet) -> Self {
        Self { section, owner: owner.clone(), source: owner.clone(), rtype, set }
    }
}

/// A response of the servers of a zone.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) zone: usize,
    pub(super) rcode: Rcode,
    pub(super) is_authoritative: bool,
    pub(super) has_ad: bool,
    pub(super) parts: Vec<Part>,
}

impl Response {
    /// Returns a response without records.
    pub(super) const fn empty(zone: usize, rcode: Rcode) -> Self {
        Self { zone, rcode, is_authoritative: true, has_ad: false, parts: Vec::new() }
    }

    /// Returns the message; signatures are added if the query has the DO flag.
    pub(super) fn message(&self, asked: &Message, dnssec_ok: bool) -> Message {
        let mut bits = flags::QR | asked.header.flags & flags::RD | self.rcode.0 & 0x0f;
        bits |= if self.is_authoritative { flags::AA } else { 0 };
        bits |= if self.has_ad { flags::AD } else { 0 };
        let header = Header { flags: bits, ..asked.header };
        let mut records = Vec::new();
        for part in &self.parts {
            let record = |rtype, rdata: &Vec<u8>| Record {
                section: part.section,
                owner: part.owner.clone(),
                rtype,
                class: Class::IN,
                ttl: part.set.ttl,
                rdata: rdata.clone(),
            };
            records.extend(part.set.rdatas.iter().map(|rdata| record(part.rtype, rdata)));
            let signatures = part.set.signatures.iter().filter(|_| dnssec_ok);
            records.extend(signatures.map(|rdata| record(Rtype::RRSIG, rdata)));
        }
        Message { header, questions: asked.questions.clone(), records }
    }

    fn push(&mut self, section: Section, place: &Place, rtype: Rtype, set: &RecordSet) {
        let (owner, source) = (place.name.clone(), place.source.clone());
        self.parts.push(Part { section, owner, source, rtype, set: set.clone() });
    }
}

impl World {
    /// Returns the correct response of the server at an address.
    pub(super) fn respond(&self, server: Ipv4Addr, name: &Name, rtype: Rtype, dnssec_ok: bool) -> Response {
        let served = |zone: &usize| {
            let zone = &self.zones[*zone];
            zone.servers.contains(&server) && name.view().is_at_or_below(zone.apex.view())
        };
        let is_parent_side =
            |zone: &usize| rtype != Rtype::DS || *name != self.zones[*zone].apex || name.view().is_root();
        let labels = |zone: &usize| self.zones[*zone].apex.view().label_count();
        let zones = || (0..self.zones.len()).filter(served);
        // A server of the child only answers for the child (RFC 4035 §3.1.4.1).
        let zone = zones().filter(is_parent_side).max_by_key(labels).or_else(|| zones().max_by_key(labels));
        match zone {
            Some(zone) => self.respond_from(zone, name, rtype, dnssec_ok),
            None => Response { is_authoritative: false, ..Response::empty(0, Rcode::REFUSED) },
        }
    }

    /// Returns the correct response from a zone.
    pub(super) fn respond_from(&self, zone: usize, name: &Name, rtype: Rtype, dnssec_ok: bool) -> Response {
        let mut response = Response::empty(zone, Rcode::NOERROR);
        let mut next = Some(name.clone());
        let mut names: Vec<Name> = Vec::new();
        while let Some(name) = next.take().filter(|name| names.len() < ALIASES_MAX && !names.contains(name)) {
            next = self.add_answer(&mut response, &name, rtype, dnssec_ok);
            names.push(name);
        }
        response
    }

    /// Adds the answer for one name. Returns the target of an alias in the zone.
    fn add_answer(
        &self,
        response: &mut Response,
        name: &Name,
        rtype: Rtype,
        dnssec_ok: bool,
    ) -> Option<Name> {
        let index = response.zone;
        let zone = &self.zones[index];
        match self.find(index, name, rtype) {
            Found::Cut(child) if response.parts.is_empty() => self.add_referral(response, child, dnssec_ok),
            Found::Cut(_) => {}
            Found::Rrset(place) => {
                response.push(Section::Answer, &place, rtype, zone.set(&place.source, rtype)?);
                self.add_closer_match(response, &place, dnssec_ok);
                if rtype == Rtype::NS {
                    self.add_addresses(response);
                }
            }
            Found::Cname(place, target) => {
                response.push(Section::Answer, &place, Rtype::CNAME, zone.set(&place.source, Rtype::CNAME)?);
                self.add_closer_match(response, &place, dnssec_ok);
                return Some(target).filter(|target| target.view().is_at_or_below(zone.apex.view()));
            }
            Found::Dname(owner, target) => {
                let dname = zone.set(&owner, Rtype::DNAME)?;
                response.parts.push(Part::new(Section::Answer, &owner, Rtype::DNAME, dname.clone()));
                let Some(target) = target else {
                    response.rcode = YXDOMAIN;
                    return None;
                };
                let rdatas = vec![target.wire().to_vec()];
                let cname = RecordSet { ttl: dname.ttl, rdatas, signatures: Vec::new() };
                response.parts.push(Part::new(Section::Answer, name, Rtype::CNAME, cname));
                let is_followed = rtype != Rtype::CNAME && target.view().is_at_or_below(zone.apex.view());
                return Some(target).filter(|_| is_followed);
            }
            Found::NoData(place) => self.add_denial(response, &Found::NoData(place), name, dnssec_ok),
            Found::NameError(encloser) => {
                response.rcode = Rcode::NXDOMAIN;
                self.add_denial(response, &Found::NameError(encloser), name, dnssec_ok);
            }
        }
        None
    }

    /// Adds the SOA record and the proof that the name or type does not exist.
    fn add_denial(&self, response: &mut Response, found: &Found, name: &Name, dnssec_ok: bool) {
        let apex = &self.zones[response.zone].apex;
        if let Some(soa) = self.zones[response.zone].set(apex, Rtype::SOA) {
            response.parts.push(Part::new(Section::Authority, apex, Rtype::SOA, soa.clone()));
        }
        if dnssec_ok && let Some(denied) = denied(found, name) {
            self.add_proof(response, denied);
        }
    }

    /// Adds the proof that no closer name matches than a wildcard.
    fn add_closer_match(&self, response: &mut Response, place: &Place, dnssec_ok: bool) {
        if dnssec_ok && let Some(encloser) = &place.encloser {
            self.add_proof(response, Denied::CloserMatch(&place.name, encloser));
        }
    }

    /// Adds records of the denial chain, each once.
    pub(super) fn add_proof(&self, response: &mut Response, denied: Denied<'_>) {
        let chain = &self.zones[response.zone].chain;
        let proof = chain.prove(denied);
        let ttl = proof.records.first().map_or(APEX_TTL, |index| chain.records[*index].set.ttl);
        let records = proof.records.iter().map(|index| &chain.records[*index]);
        let mut parts: Vec<Part> = records
            .map(|record| Part::new(Section::Authority, &record.owner, chain.rtype, record.set.clone()))
            .collect();
        for name in &proof.names {
            let rdatas = chain.nsec5_proof(name).into_iter().collect();
            let set = RecordSet { ttl, rdatas, signatures: Vec::new() };
            parts.push(Part::new(Section::Authority, name, Rtype::NSEC5PROOF, set));
        }
        let is_new = |part: &Part| {
            !response.parts.iter().any(|other| other.rtype == part.rtype && other.owner == part.owner)
        };
        let new: Vec<Part> = parts.into_iter().filter(is_new).collect();
        response.parts.extend(new);
    }

    /// Adds the addresses of the nameservers of the zone, which resolvers need after priming (RFC 8109).
    fn add_addresses(&self, response: &mut Response) {
        let zone = &self.zones[response.zone];
        for (name, _) in zone.nameservers() {
            let set = zone.set(&name, Rtype::A).cloned().unwrap_or_default();
            response.parts.push(Part::new(Section::Additional, &name, Rtype::A, set));
        }
    }

    fn add_referral(&self, response: &mut Response, child: usize, dnssec_ok: bool) {
        response.is_authoritative = false;
        let (zone, cut) = (&self.zones[response.zone], &self.zones[child].apex);
        if let Some(ns) = zone.set(cut, Rtype::NS) {
            let ns = RecordSet { signatures: Vec::new(), ..ns.clone() };
            response.parts.push(Part::new(Section::Authority, cut, Rtype::NS, ns));
        }
        if dnssec_ok {
            match zone.set(cut, Rtype::DS) {
                Some(ds) => {
                    response.parts.push(Part::new(Section::Authority, cut, Rtype::DS, ds.clone()));
                }
                None => self.add_proof(response, Denied::Type(cut)),
            }
        }
        for (name, sets) in zone.glue.iter().filter(|(name, _)| name.view().is_at_or_below(cut.view())) {
            for (rtype, set) in sets {
                response.parts.push(Part::new(Section::Additional, name, *rtype, set.clone()));
            }
        }
    }
}

/// Returns what a negative answer must prove.
pub(super) fn denied<'n>(found: &'n Found, name: &'n Name) -> Option<Denied<'n>> {
    match found {
        Found::NoData(Place { encloser: None, .. }) => Some(Denied::Type(name)),
        Found::NoData(Place { encloser: Some(encloser), .. }) => Some(Denied::WildcardType(name, encloser)),
        Found::NameError(encloser) => Some(Denied::Name(name, encloser)),
        _ => None,
    }
}
