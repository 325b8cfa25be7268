//! Signed zones, what exists in them by their data alone, and the validation of denials by a client.

use super::super::{Denied, Wildcard};
use super::*;
use crate::record::{RecordData, Security};
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, ProveOptions, prove_chain};
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_dnssec::validate::{Budget, ProvedAnswer, Question, SecurityStatus, validate};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_proto::message::{self, Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, NameRef};
use nonesuch_zone::{Contents, read};
use std::collections::{BTreeMap, BTreeSet};

const NOW: u32 = 1_750_000_000;
/// A key of 32 octets.
const SECRET: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

/// What exists for a name and type, by the data of the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    /// The zone does not answer: the name is outside of it, or at or below a zone cut, or below a
    /// DNAME record.
    Elsewhere,
    /// The type or an alias exists.
    Data,
    NoData,
    NxDomain {
        encloser: Name,
    },
    /// As `NxDomain`, and the wildcard exists as a zone cut or has a DNAME record.
    UnusualWildcard {
        encloser: Name,
    },
    WildcardData {
        encloser: Name,
    },
    WildcardNoData {
        encloser: Name,
    },
}

/// The zone `example.`, signed.
pub(super) struct SignedZone {
    pub(super) apex: Name,
    pub(super) keys: TrustedKeys,
    contents: Contents,
    /// All names and their types, without glue, occluded names and denial records.
    pub(super) names: BTreeMap<Name, BTreeSet<Rtype>>,
    vrf: VrfPrivateKey,
}

impl SignedZone {
    pub(super) fn new(records: &str, mechanism: Mechanism) -> Self {
        let text = format!(
            "$ORIGIN example.\n$TTL 3600\n@ SOA ns h 7 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n{records}\n"
        );
        let apex = name("example.");
        let source = read::read_text(text.as_bytes(), "test".as_ref(), Some(&apex)).unwrap().contents;
        let vrf = VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, &[7; 32]).unwrap();
        let mut options = SignOptions::new(mechanism, NOW - 3600, NOW + 86_400);
        let is_nsec5 = mechanism.name_hash() == NameHash::Vrf;
        let proofs = is_nsec5.then(|| prove_chain(&source, &vrf, &ProveOptions::new(mechanism)).unwrap().0);
        options.nsec5 = proofs.as_ref().map(|proofs| Nsec5Chain { proofs, keep_other_keys: false });
        let algorithm = if is_nsec5 { Algorithm::ED25519.nsec5_alias().unwrap() } else { Algorithm::ED25519 };
        let secret =
            format!("Private-key-format: v1.3\nAlgorithm: {} (X)\nPrivateKey: {SECRET}\n", algorithm.0);
        let key = KeyPair::new(apex.clone(), 257, PrivateKey::from_bind(&secret).unwrap());
        let keys = KeySet::new(&apex, vec![key]).unwrap();
        let contents = sign(&source, &keys, &options).unwrap().into_contents();
        let limits = ValidationLimits::default();
        let mut keys = TrustedKeys::new(&apex, contents.apex_rrset(Rtype::DNSKEY).unwrap().rdatas(), &limits);
        if is_nsec5 {
            keys.set_nsec5_keys([Nsec5Key::of(&vrf).rdata()], &limits);
        }
        let names = existing_names(&contents, apex.view());
        Self { apex, keys, contents, names, vrf }
    }

    fn types(&self, owner: NameRef<'_>) -> Option<&BTreeSet<Rtype>> {
        self.names.get(&owner.to_name())
    }

    fn has(&self, owner: NameRef<'_>, rtype: Rtype) -> bool {
        self.types(owner).is_some_and(|types| types.contains(&rtype))
    }

    fn is_cut(&self, owner: NameRef<'_>) -> bool {
        owner != self.apex.view() && self.has(owner, Rtype::NS)
    }

    /// What exists, according to RFC 1034 §4.3.2, RFC 4592 and RFC 6672.
    pub(super) fn truth(&self, owner: NameRef<'_>, rtype: Rtype) -> Truth {
        let (labels, apex_labels) = (owner.label_count(), self.apex.view().label_count());
        if !owner.is_below(self.apex.view()) && (owner != self.apex.view() || rtype == Rtype::DS) {
            return Truth::Elsewhere;
        }
        for depth in apex_labels..=labels {
            let ancestor = owner.suffix(depth);
            let is_hidden = depth < labels && self.has(ancestor, Rtype::DNAME);
            if is_hidden || self.is_cut(ancestor) && (depth < labels || rtype != Rtype::DS) {
                return Truth::Elsewhere;
            }
        }
        let has_data = |types: &BTreeSet<Rtype>| match rtype {
            Rtype::ANY => !types.is_empty(),
            _ => types.contains(&rtype) || types.contains(&Rtype::CNAME),
        };
        if let Some(types) = self.types(owner) {
            return if has_data(types) { Truth::Data } else { Truth::NoData };
        }
        let depth = (apex_labels..labels).rev().find(|depth| self.types(owner.suffix(*depth)).is_some());
        let encloser = owner.suffix(depth.unwrap()).to_name();
        let wildcard = Name::wildcard_below(encloser.view()).unwrap();
        match self.types(wildcard.view()) {
            None => Truth::NxDomain { encloser },
            Some(types) if types.contains(&Rtype::NS) || types.contains(&Rtype::DNAME) => {
                Truth::UnusualWildcard { encloser }
            }
            Some(types) if has_data(types) => Truth::WildcardData { encloser },
            Some(_) => Truth::WildcardNoData { encloser },
        }
    }

    fn rrset(&self, owner: NameRef<'_>, rtype: Rtype) -> Option<Rrset> {
        let node = self.contents.find(owner).ok()?;
        let found = node.rrset(rtype)?;
        Some(Rrset {
            owner: owner.to_name(),
            rtype,
            class: Class::IN,
            ttl: found.ttl(),
            records: found.rdatas().collect(),
            signatures: node
                .signatures(rtype)
                .map(|signatures| signatures.rdatas().collect())
                .unwrap_or_default(),
            security: Security::Secure,
            insecure: None,
        })
    }

    pub(super) fn soa(&self) -> Rrset {
        self.rrset(self.apex.view(), Rtype::SOA).unwrap()
    }

    /// All records of the chain.
    pub(super) fn chain(&self) -> Vec<Rrset> {
        let types = [Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC5];
        let at_node = |owner| types.into_iter().filter_map(move |rtype| self.rrset(owner, rtype));
        self.contents.nodes().flat_map(|node| at_node(node.name())).collect()
    }

    /// The proof of a name with NSEC5.
    pub(super) fn proof(&self, owner: &Name) -> Rrset {
        let mut rdata = Nsec5Key::of(&self.vrf).tag().to_be_bytes().to_vec();
        let mut proof = Vec::new();
        self.vrf.prove(owner.view().to_canonical().wire(), &mut proof).unwrap();
        rdata.extend(proof);
        let (records, signatures) = ([rdata.as_slice()].into_iter().collect(), RecordData::default());
        Rrset {
            owner: owner.clone(),
            rtype: Rtype::NSEC5PROOF,
            class: Class::IN,
            ttl: 900,
            records,
            signatures,
            security: Security::Secure,
            insecure: None,
        }
    }

    /// Asserts that a client validates the denial.
    pub(super) fn assert_validates_denial(&self, owner: NameRef<'_>, rtype: Rtype, denied: &Denied) {
        let (rcode, expected) = match denied.kind {
            NegativeKind::NxDomain => (Rcode::NXDOMAIN, [ProvedAnswer::NxDomain].as_slice()),
            NegativeKind::NoData(_) => {
                (Rcode::NOERROR, [ProvedAnswer::NoData, ProvedAnswer::WildcardNoData].as_slice())
            }
        };
        assert_eq!(denied.authority[0].rtype, Rtype::SOA);
        let proved = self.validate((owner, rtype), rcode, &[], &denied.authority);
        assert!(expected.contains(&proved), "{owner} {rtype}: {proved:?}");
    }

    /// Asserts that a client validates the answer from the wildcard, if the zone has it.
    pub(super) fn assert_validates_wildcard(&self, owner: NameRef<'_>, rtype: Rtype, found: &Wildcard) {
        let Some(answer) = self.rrset(found.source.view(), rtype) else { return };
        let answer = Rrset { owner: owner.to_name(), ..answer };
        let proved = self.validate((owner, rtype), Rcode::NOERROR, &[answer], &found.authority);
        assert_eq!(proved, ProvedAnswer::WildcardAnswer, "{owner} {rtype}");
    }

    fn validate(
        &self,
        (owner, rtype): (NameRef<'_>, Rtype),
        rcode: Rcode,
        answer: &[Rrset],
        authority: &[Rrset],
    ) -> ProvedAnswer {
        let sections = [(Section::Answer, answer), (Section::Authority, authority)];
        let records = sections
            .into_iter()
            .flat_map(|(section, rrsets)| rrsets.iter().flat_map(move |rrset| records_of(rrset, section)));
        let asked = message::Question { name: owner.to_name(), rtype, class: Class::IN };
        let header = Header { id: 1, flags: flags::QR | flags::AA | rcode.0, counts: [0; 4] };
        let response = Message { header, questions: vec![asked], records: records.collect() };
        let mut budget = Budget::new(ValidationLimits::default());
        let validation = validate(Question { name: owner, rtype }, &response, &self.keys, NOW, &mut budget);
        assert_eq!(validation.status, SecurityStatus::Secure, "{owner} {rtype}");
        validation.proved.unwrap()
    }
}

fn records_of(rrset: &Rrset, section: Section) -> Vec<Record> {
    let record = |rtype, rdata: &[u8]| Record {
        section,
        owner: rrset.owner.clone(),
        rtype,
        class: rrset.class,
        ttl: rrset.ttl,
        rdata: rdata.to_vec(),
    };
    let data = rrset.records.iter().map(|rdata| record(rrset.rtype, rdata));
    data.chain(rrset.signatures.iter().map(|rdata| record(Rtype::RRSIG, rdata))).collect()
}

/// The names of a zone, including empty non-terminals (RFC 4592 §2.2, RFC 6672 §2.4).
fn existing_names(contents: &Contents, apex: NameRef<'_>) -> BTreeMap<Name, BTreeSet<Rtype>> {
    let has = |owner: NameRef<'_>, rtype| contents.find(owner).is_ok_and(|node| node.has(rtype));
    let mut all: BTreeMap<Name, BTreeSet<Rtype>> = BTreeMap::new();
    for node in contents.nodes() {
        let depths = apex.label_count()..node.name().label_count();
        let above: Vec<NameRef<'_>> = depths.map(|depth| node.name().suffix(depth)).collect();
        let is_hidden =
            |owner: &&NameRef<'_>| has(**owner, Rtype::DNAME) || **owner != apex && has(**owner, Rtype::NS);
        let types: BTreeSet<Rtype> = node.rrsets().map(|rrset| rrset.rtype()).collect();
        let is_chain_owner = types.contains(&Rtype::NSEC3) || types.contains(&Rtype::NSEC5);
        if above.iter().any(|owner| is_hidden(&owner)) || is_chain_owner {
            continue;
        }
        for owner in above {
            all.entry(owner.to_canonical()).or_default();
        }
        let is_data = |rtype: &Rtype| !matches!(*rtype, Rtype::RRSIG | Rtype::NSEC);
        all.entry(node.name().to_canonical()).or_default().extend(types.into_iter().filter(is_data));
    }
    all
}
