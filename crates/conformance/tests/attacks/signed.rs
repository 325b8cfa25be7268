//! The hostile signed zone `evil.`: its key is a trust anchor, and its server can send many forged
//! signatures, keys with the same tag, and expensive denials.

use super::network::*;
use nonesuch_conformance::simulator::{Options, Simulator};
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey, key_tag};
use nonesuch_dnssec::keys::{SEP, ZONE_KEY, ds_rdata};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_dnssec::validate::{AlgorithmPolicy, ValidationLimits};
use nonesuch_lab::tree::with_key_tag;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Record, Section, flags};
use nonesuch_resolver::Shared;
use nonesuch_resolver::trust_anchors::AnchorRecord;
use std::net::Ipv4Addr;
use std::sync::Arc;

const APEX: &str = "evil.";
const ALGORITHM: Algorithm = Algorithm::ECDSAP256SHA256;
const DAY: u32 = 86_400;

/// The limits of validation of the resolver in these tests.
pub(crate) fn limits() -> ValidationLimits {
    ValidationLimits::default()
}

/// A zone with one key.
pub(crate) struct Zone {
    apex: String,
    algorithm: Algorithm,
    private: PrivateKey,
}

fn private_key(octet: u8) -> PrivateKey {
    let secret = data_encoding::BASE64.encode(&[octet; 32]);
    let text = format!("Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: {secret}\n");
    PrivateKey::from_bind(&text).expect("a key")
}

fn dnskey(flags: u16, algorithm: Algorithm, public: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &[3, algorithm.0], public].concat()
}

impl Zone {
    pub(crate) fn new() -> Self {
        Self::at(APEX, ALGORITHM)
    }

    /// A zone with another apex. `algorithm` has the keys of P-256.
    pub(crate) fn at(apex: &str, algorithm: Algorithm) -> Self {
        Self { apex: apex.to_owned(), algorithm, private: private_key(1) }
    }

    pub(crate) fn dnskey(&self) -> Vec<u8> {
        dnskey(ZONE_KEY | SEP, self.algorithm, self.private.public_key())
    }

    /// Returns the DNSKEY RRset.
    pub(crate) fn keys(&self) -> Vec<Record> {
        vec![record(&self.apex, Rtype::DNSKEY, self.dnskey())]
    }

    pub(crate) fn tag(&self) -> u16 {
        key_tag(&self.dnskey())
    }

    pub(crate) fn ds(&self) -> Vec<u8> {
        ds_rdata(name(&self.apex).view(), &self.dnskey(), DigestType::SHA256).expect("a digest")
    }

    /// Returns other keys with the tag of the key: a validator ignores unknown flags (RFC 4034 §2.1.1),
    /// so an attacker sets the tag with them.
    pub(crate) fn colliding_keys(&self, count: usize) -> Vec<Vec<u8>> {
        let with_tag = |octet: u8| {
            let public = private_key(octet).public_key().to_vec();
            with_key_tag(dnskey(0, self.algorithm, &public), self.tag())
        };
        (2..=u8::MAX).filter_map(with_tag).take(count).collect()
    }

    fn fields(&self, records: &[Record]) -> (Vec<u8>, Vec<u8>) {
        let now = Options::default().unix as u32;
        let (apex, first) = (name(&self.apex), &records[0]);
        let fields = Rrsig {
            covered: first.rtype,
            algorithm: self.algorithm,
            labels: first.owner.view().rrsig_labels(),
            original_ttl: first.ttl,
            expiration: now + 14 * DAY,
            inception: now - DAY,
            tag: self.tag(),
            signer: apex.view(),
            signature: &[],
        };
        let mut sorted: Vec<&[u8]> = records.iter().map(|record| record.rdata.as_slice()).collect();
        sorted.sort_unstable();
        let (mut message, mut rdata) = (Vec::new(), Vec::new());
        push_signed_data(&fields, first.owner.view(), sorted.iter().copied(), &mut message);
        fields.push_fields(&mut rdata);
        (rdata, message)
    }

    /// Returns the records with a valid signature.
    pub(crate) fn sign(&self, mut records: Vec<Record>) -> Vec<Record> {
        let (mut rdata, message) = self.fields(&records);
        self.private.sign(&message, &mut rdata).expect("a signature");
        records.push(Record { rtype: Rtype::RRSIG, rdata, ..records[0].clone() });
        records
    }

    /// Returns the records with `count` different signatures that do not verify.
    pub(crate) fn forge(&self, mut records: Vec<Record>, count: u8) -> Vec<Record> {
        let (fields, _) = self.fields(&records);
        let forged = |number: u8| Record {
            rtype: Rtype::RRSIG,
            rdata: [&fields[..], &[number; 64]].concat(),
            ..records[0].clone()
        };
        let signatures: Vec<Record> = (1..=count).map(forged).collect();
        records.extend(signatures);
        records
    }

    /// Returns the records with three signatures that do not verify, and then a valid one.
    pub(crate) fn sign_late(&self, records: Vec<Record>) -> Vec<Record> {
        let count = records.len();
        let mut all = self.forge(records.clone(), 3);
        all.extend(self.sign(records).split_off(count));
        all
    }

    /// Returns an NXDOMAIN response with these records of the zone, each with its signature, and the SOA record.
    pub(crate) fn deny(&self, asked: &Message, records: Vec<Record>) -> Message {
        self.deny_with(asked, Rcode::NXDOMAIN, records)
    }

    /// As [`deny`](Self::deny), for the type of the question.
    pub(crate) fn deny_type(&self, asked: &Message, records: Vec<Record>) -> Message {
        self.deny_with(asked, Rcode::NOERROR, records)
    }

    fn deny_with(&self, asked: &Message, rcode: Rcode, records: Vec<Record>) -> Message {
        let mut response = denial(asked, &self.apex, rcode);
        let soa = std::mem::take(&mut response.records);
        let all = [soa].into_iter().chain(records.into_iter().map(|record| vec![record]));
        response.records = all.flat_map(|rrset| self.sign(rrset)).collect();
        response
    }
}

pub(crate) fn keys(keys: Vec<Vec<u8>>) -> Vec<Record> {
    keys.into_iter().map(|rdata| record(APEX, Rtype::DNSKEY, rdata)).collect()
}

/// Returns an NSEC3 record of the authority section. It covers all hashes but one, or matches `owner`.
pub(crate) fn nsec3(owner: Option<&str>, number: u8, iterations: u16, salt: &[u8]) -> Record {
    let hash =
        owner.map_or([number; 20], |owner| nonesuch_crypto::nsec3_hash(name(owner).wire(), salt, iterations));
    nsec3_span([hash, hash], iterations, salt, &[0, 1, 0x40])
}

/// Returns an NSEC3 record of the authority section that matches `owner`, which has a type other than A, and covers few other hashes.
pub(crate) fn narrow_nsec3(owner: &str, iterations: u16) -> Record {
    let hash = nonesuch_crypto::nsec3_hash(name(owner).wire(), &[], iterations);
    // A span of a record that was generated for one name is not above 2^97 hashes: those are not cached.
    let high = u64::from_be_bytes(hash[..8].try_into().expect("8 octets")).wrapping_add(3);
    let next = [&high.to_be_bytes()[..], &hash[8..]].concat().try_into().expect("20 octets");
    // TXT.
    nsec3_span([hash, next], iterations, &[], &[0, 3, 0, 0, 0x80])
}

fn nsec3_span([hash, next]: [[u8; 20]; 2], iterations: u16, salt: &[u8], types: &[u8]) -> Record {
    let [high, low] = iterations.to_be_bytes();
    let fields = [&[1, 0, high, low, salt.len() as u8][..], salt, &[20], &next, types].concat();
    let label = data_encoding::BASE32HEX_NOPAD.encode(&hash).to_lowercase();
    within(Section::Authority, record(&format!("{label}.{APEX}"), Rtype::NSEC3, fields))
}

/// A simulator whose resolver has these DS records as trust anchor of `evil.`
pub(crate) fn simulate_signed(
    anchors: &[Vec<u8>],
    hostile: impl FnMut(&Message, Ipv4Addr) -> Option<Message> + 'static,
) -> (Simulator<'static, Servers>, Arc<Shared>) {
    simulate_shared(Servers::new(Box::new(hostile)), 1, |options| {
        options.validation.policy = AlgorithmPolicy::ALL;
        for rdata in anchors {
            options.validation.anchors.insert(name(APEX).view(), AnchorRecord::Ds(rdata.clone()));
        }
    })
}

/// As [`simulate_signed`], with a server that responds with `keys` to queries for DNSKEY, and with the records that
/// `others` returns for the name to all other queries.
pub(crate) fn simulate_zone(
    anchors: &[Vec<u8>],
    keys: Vec<Record>,
    others: impl Fn(&str) -> Vec<Record> + 'static,
) -> (Simulator<'static, Servers>, Arc<Shared>) {
    simulate_signed(anchors, move |asked: &Message, _: Ipv4Addr| {
        let question = &asked.questions[0];
        let is_for_keys = question.rtype == Rtype::DNSKEY;
        let records = if is_for_keys { keys.clone() } else { others(&question.name.to_string()) };
        Some(answer(asked, records))
    })
}

/// Asks for an address with EDNS, and for `www.good.` at the same time, which must be answered. The answer is
/// not secure. Returns the response code and the code of the extended error.
pub(crate) fn attack(simulator: &mut Simulator<'_, Servers>, asked: &str) -> (Rcode, Option<u16>) {
    let reply = ask_both(simulator, asked);
    assert_eq!(reply.header.flags & flags::AD, 0);
    (reply.rcode(), reply.extended_error().map(|(code, _)| code))
}

/// As [`attack`], for any answer. Returns the reply.
pub(crate) fn ask_both(simulator: &mut Simulator<'_, Servers>, asked: &str) -> Message {
    let start = simulator.time().as_millis() as u64;
    let hostile = ask_with_edns(simulator, start, asked);
    let good = ask_at(simulator, start, 0, "www.good.");
    simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}\n{}", simulator.trace()));
    assert_eq!(addresses(&reply(simulator, good)), [WEB]);
    reply(simulator, hostile)
}
