//! Validation of arbitrary messages: never panics, stays within the budget, and no result is Secure
//! that the zone does not confirm.
//!
//! The first octets select the zone (NSEC, NSEC3, opt-out, NSEC5), a question for a name that
//! exists or does not exist, and a correct response to another question, whose records are added.
//! The rest changes octets of the correct response, or replaces it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::{Request, answer};
use nonesuch_crypto::PrivateKey;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, ProveOptions, prove_chain};
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_dnssec::validate::{
    Budget, PendingValidation, ProvedAnswer, Question, SecurityStatus, TrustedKeys, ValidSignatures,
    Validation, ValidationLimits, validate, validate_octets, verify_jobs,
};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_net::Transport;
use nonesuch_proto::message::{Header, Message, Record, Section, flags, push_query};
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype, edns};
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::{Contents, Image, Node, read::read_text};
use std::path::Path;
use std::sync::LazyLock;

const INCEPTION: u32 = 1_700_000_000;
const NOW: u32 = INCEPTION + 1;

struct Zone {
    contents: Contents,
    keys: TrustedKeys,
    /// Questions, each with a correct response.
    exchanges: Vec<(Name, Rtype, Vec<u8>)>,
}

static ZONES: LazyLock<Vec<Zone>> = LazyLock::new(|| {
    let served = [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut].map(zone);
    served.into_iter().chain([nsec5_zone()]).collect()
});

/// Returns the zone in `zone.txt`, signed with a key that is the same in every run.
fn zone(mechanism: Mechanism) -> Zone {
    let reading = read_text(include_bytes!("zone.txt"), Path::new("zone.txt"), None);
    let contents = reading.unwrap_or_else(|error| panic!("{error}")).contents;
    let apex = contents.apex();
    let private =
        PrivateKey::from_bind(include_str!("key.private")).unwrap_or_else(|error| panic!("{error}"));
    let pair = KeyPair::new(apex.clone(), 257, private);
    let dnskey = pair.dnskey_rdata();
    let set = KeySet::new(apex, vec![pair]).unwrap_or_else(|error| panic!("{error}"));
    let options = SignOptions::new(mechanism, INCEPTION, INCEPTION + 100_000_000);
    let signed = sign(&contents, &set, &options).unwrap_or_else(|error| panic!("{error}"));
    let image = Image::compile(signed.contents()).unwrap_or_else(|error| panic!("{error}"));
    let keys = TrustedKeys::new(apex, [dnskey.as_slice()], &ValidationLimits::default());
    let mut exchanges = Vec::new();
    for name in names(&contents) {
        for rtype in [Rtype::A, Rtype::TXT, Rtype::DS, Rtype::NS] {
            let (mut message, mut out, mut room) = (Vec::new(), Vec::new(), [0; MAX_NAME]);
            push_query(&name, rtype, 0, 0, &mut message);
            edns::push_opt(4096, 0, edns::DO, &mut message);
            message[11] = 1;
            let query = Query::parse(&message).unwrap_or_else(|fault| panic!("{fault:?}"));
            let request = Request::new(&query, &mut room, Transport::Tcp, &Trailer::PLAIN);
            answer(&image, &request, &mut out);
            exchanges.push((name.clone(), rtype, out));
        }
    }
    Zone { contents, keys, exchanges }
}

/// Returns the same zone with NSEC5, and denials of all names that its records allow, correct or
/// not.
fn nsec5_zone() -> Zone {
    let reading = read_text(include_bytes!("zone.txt"), Path::new("zone.txt"), None);
    let contents = reading.unwrap_or_else(|error| panic!("{error}")).contents;
    let apex = contents.apex();
    let text =
        include_str!("key.private").replace("Algorithm: 15 (ED25519)", "Algorithm: 231 (NSEC5-ED25519)");
    let private = PrivateKey::from_bind(&text).unwrap_or_else(|error| panic!("{error}"));
    let pair = KeyPair::new(apex.clone(), 257, private);
    let dnskey = pair.dnskey_rdata();
    let set = KeySet::new(apex, vec![pair]).unwrap_or_else(|error| panic!("{error}"));
    let vrf = VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, &[7; 32])
        .unwrap_or_else(|error| panic!("{error}"));
    let (proofs, _) = prove_chain(&contents, &vrf, &ProveOptions::new(Mechanism::Nsec5))
        .unwrap_or_else(|error| panic!("{error}"));
    let options = SignOptions {
        nsec5: Some(Nsec5Chain { proofs: &proofs, keep_other_keys: false }),
        ..SignOptions::new(Mechanism::Nsec5, INCEPTION, INCEPTION + 100_000_000)
    };
    let signed = sign(&contents, &set, &options).unwrap_or_else(|error| panic!("{error}"));
    let key = Nsec5Key::of(&vrf);
    let mut keys = TrustedKeys::new(apex, [dnskey.as_slice()], &ValidationLimits::default());
    keys.set_nsec5_keys([key.rdata()], &ValidationLimits::default());
    let prover = Prover { signed: signed.contents(), vrf, tag: key.tag() };
    let exchanges = names(&contents).into_iter().map(|name| prover.exchange(name)).collect();
    Zone { contents, keys, exchanges }
}

/// Generates denials with NSEC5.
struct Prover<'z> {
    signed: &'z Contents,
    vrf: VrfPrivateKey,
    tag: u16,
}

impl<'z> Prover<'z> {
    fn prove(&self, name: NameRef<'_>) -> (Vec<u8>, [u8; 32]) {
        let (mut canonical, mut rdata) = (Vec::new(), self.tag.to_be_bytes().to_vec());
        name.push_canonical(&mut canonical);
        let hash = self.vrf.prove(&canonical, &mut rdata).unwrap_or_else(|error| panic!("{error}"));
        (rdata, hash)
    }

    /// Returns the record that matches or covers a hash, and whether it matches. base32hex
    /// preserves the order of the octets.
    fn find(&self, hash: [u8; 32]) -> (Node<'z>, bool) {
        let chain = || self.signed.nodes().filter(|node| node.has(Rtype::NSEC5));
        let hash_of = |node: &Node<'_>| node.name().labels().next().map(decode);
        if let Some(node) = chain().find(|node| hash_of(node) == Some(hash)) {
            return (node, true);
        }
        let before = chain().filter(|node| hash_of(node) < Some(hash)).last();
        let Some(node) = before.or_else(|| chain().last()) else { panic!("there is no chain") };
        (node, false)
    }

    /// Returns a question for which the zone has no data, and its denial.
    fn exchange(&self, name: Name) -> (Name, Rtype, Vec<u8>) {
        let apex = self.signed.apex().view();
        let is_there = |name: NameRef<'_>| self.find(self.prove(name).1).1;
        if is_there(name.view()) {
            let response = self.response(&name, 0, std::slice::from_ref(&name));
            return (name, Rtype::NS, response);
        }
        let mut next = name.view();
        while let Some(parent) =
            next.parent().filter(|parent| parent.len() >= apex.len() && !is_there(*parent))
        {
            next = parent;
        }
        let encloser = next.parent().unwrap_or(next);
        let wildcard = Name::wildcard_below(encloser).ok().filter(|wildcard| is_there(wildcard.view()));
        let (rcode, proved) = match wildcard {
            Some(wildcard) => (0, [wildcard, next.to_name()]),
            None => (3, [encloser.to_name(), next.to_name()]),
        };
        let response = self.response(&name, rcode, &proved);
        (name, Rtype::NS, response)
    }

    fn response(&self, name: &Name, rcode: u16, proved: &[Name]) -> Vec<u8> {
        let mut records: Vec<(Name, Rtype, Vec<u8>)> = Vec::new();
        for name in proved {
            let (rdata, hash) = self.prove(name.view());
            let (node, _) = self.find(hash);
            records.push((name.clone(), Rtype::NSEC5PROOF, rdata));
            let rrsets = [node.rrset(Rtype::NSEC5), node.signatures(Rtype::NSEC5)];
            for rrset in rrsets.into_iter().flatten() {
                let all = rrset.rdatas().map(|rdata| (node.name().to_name(), rrset.rtype(), rdata.to_vec()));
                records.extend(all.filter(|record| !records.contains(record)).collect::<Vec<_>>());
            }
        }
        let header = Header { id: 0, flags: flags::QR | rcode, counts: [1, 0, records.len() as u16, 0] };
        let mut out = header.to_octets().to_vec();
        let fixed = |rtype: Rtype| [rtype.0.to_be_bytes(), [0, 1]].concat();
        out.extend([name.wire(), &fixed(Rtype::NS)].concat());
        for (owner, rtype, rdata) in records {
            out.extend([owner.wire(), &fixed(rtype), &[0, 0, 3, 132]].concat());
            out.extend((rdata.len() as u16).to_be_bytes());
            out.extend(rdata);
        }
        out
    }
}

/// Decodes a label of 52 characters in base32hex.
fn decode(label: &[u8]) -> [u8; 32] {
    let mut bits = label.iter().flat_map(|letter| {
        let value = match letter {
            b'0'..=b'9' => letter - b'0',
            _ => (letter | 0x20).wrapping_sub(b'a').wrapping_add(10),
        };
        (0..5).rev().map(move |bit| value >> bit & 1)
    });
    std::array::from_fn(|_| bits.by_ref().take(8).fold(0, |octet, bit| octet << 1 | bit))
}

/// Returns the names of the zone, and one name below each of them.
fn names(contents: &Contents) -> Vec<Name> {
    let own = contents.nodes().map(|node| node.name().to_name());
    own.flat_map(|name| [Name::prepend(b"m", name.view()).unwrap_or_else(|_| name.clone()), name]).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((head, rest)) = data.split_first_chunk::<4>() else { return };
    let zones = &*ZONES;
    let zone = &zones[usize::from(head[0]) % zones.len()];
    let place = |octet: u8| usize::from(octet) * zone.exchanges.len() / 256;
    let (name, rtype, response) = &zone.exchanges[place(head[1])];
    // Add correct records of another response to those of this response, or replace them. Change
    // octets as the rest of the input specifies.
    let (_, _, other) = &zone.exchanges[place(head[2])];
    let mut octets = response.clone();
    if head[3] & 2 != 0 {
        octets = rest.to_vec();
    } else {
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % octets.len();
            octets[at] = change[2];
        }
    }
    let question = Question { name: name.view(), rtype: *rtype };
    let mut budget = Budget::default();
    let Ok(mut message) = Message::parse(&octets) else {
        let outcome = validate_octets(question, &octets, &zone.keys, NOW, &mut budget);
        assert!(matches!(outcome.status, SecurityStatus::Indeterminate(_)));
        return;
    };
    if head[3] & 4 != 0 {
        message.records.clear();
    }
    if head[3] & 1 != 0 {
        let more = Message::parse(other).unwrap_or_else(|error| panic!("{error}"));
        message.records.extend(more.records);
    }
    let outcome = validate(question, &message, &zone.keys, NOW, &mut budget);
    assert_eq!(in_batches(question, &message, &zone.keys).status, outcome.status);
    let (work, limits) = (outcome.work, budget.limits());
    // The last signature may be tried with several keys.
    let failures_max = limits.signature_failures + limits.keys_per_signature as u32;
    assert!(work.signatures <= limits.signatures && work.signature_failures < failures_max);
    assert!(work.hash_blocks <= limits.hash_blocks && work.proofs <= limits.proofs_per_response);
    if outcome.status == SecurityStatus::Secure {
        check(zone, name, *rtype, &message, &outcome.proved);
    }
});

/// Validates with signatures that are verified in batches.
fn in_batches(question: Question<'_>, message: &Message, keys: &TrustedKeys) -> Validation {
    let mut pending = PendingValidation::new(question, message.clone().into(), keys.clone().into(), NOW);
    let mut budget = Budget::default();
    loop {
        if let Some(validation) = pending.step(&mut budget) {
            return validation;
        }
        let mut valid = ValidSignatures::new(16, &[7; 16]);
        assert!(pending.job_nanoseconds(&valid) > 0, "a validation that waits for nothing");
        verify_jobs([&mut pending], &mut valid, |_, _| {});
    }
}

/// Checks that a Secure result agrees with the zone.
fn check(zone: &Zone, name: &Name, rtype: Rtype, message: &Message, proved: &Option<ProvedAnswer>) {
    let node = zone.contents.nodes().find(|node| node.name() == name.view());
    let exists = zone.contents.nodes().any(|node| node.name().is_at_or_below(name.view()));
    match proved {
        Some(ProvedAnswer::Answer)
            if message.section(Section::Answer).all(|record| record.rtype != Rtype::CNAME) =>
        {
            let Some(rrset) = node.and_then(|node| node.rrset(rtype)) else { panic!("{name} {rtype}") };
            // Records of another class do not belong to the queried RRset.
            let is_asked = |r: &&Record| r.owner == *name && r.rtype == rtype && r.class == Class::IN;
            let answers = message.section(Section::Answer).filter(is_asked);
            for record in answers {
                assert!(
                    rrset.rdatas().any(|rdata| rdata.eq_ignore_ascii_case(&record.rdata)),
                    "{name} {rtype}"
                );
            }
        }
        Some(ProvedAnswer::NxDomain) if message.section(Section::Answer).next().is_none() => {
            assert!(!exists, "{name} exists");
        }
        Some(ProvedAnswer::NoData) if message.section(Section::Answer).next().is_none() => {
            assert!(exists && node.is_none_or(|node| !node.has(rtype)), "{name} {rtype}");
        }
        _ => {}
    }
}
