//! Forged responses, and the verdict of the validator.

use super::{Attempt, Scene, StolenFiles};
use nonesuch_crypto::{Algorithm, PrivateKey, key_tag};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::{Budget, Question, SecurityStatus, ValidationLimits, validate};
use nonesuch_proto::message::{self, Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype, bitmap};

/// TTL of forged records, in seconds.
const TTL: u32 = 3600;
/// Validity of forged signatures before and after the present, in seconds.
const VALIDITY: u32 = 3600;
/// The address of forged records, for documentation (RFC 5737).
const ADDRESS: [u8; 4] = [192, 0, 2, 66];

/// Forges an answer and a denial with each method that the files permit, and without any file.
pub(super) fn attempts(scene: &Scene<'_>, files: &StolenFiles) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    if scene.keys.is_none() {
        let claim = answer_claim(scene);
        let reason = Some("the zone is unsigned: a resolver accepts every answer".to_owned());
        return vec![Attempt {
            claim,
            method: "without a signature",
            status: "insecure",
            reason,
            accepted: true,
        }];
    }
    let mut judge = |claim: String, method, response: &Message| {
        attempts.push(judge(scene, claim, method, response));
    };
    for key in &files.signing_keys {
        if let Some(response) = signed_answer(scene, Signer::of(key)) {
            judge(answer_claim(scene), "signed with a stolen key", &response);
        }
        if let Some(response) = signed_denial(scene, Signer::of(key)) {
            judge(denial_claim(scene), "with an NSEC record signed with a stolen key", &response);
        }
    }
    judge(answer_claim(scene), "without a signature", &forged_answer(scene, Vec::new()));
    let replayed = genuine_signatures(scene);
    if !replayed.is_empty() {
        judge(
            answer_claim(scene),
            "with the signature of the genuine records",
            &forged_answer(scene, replayed),
        );
    }
    if let Some((key, tag)) = other_key(scene) {
        let signer = Signer { private: &key, tag };
        if let Some(response) = signed_answer(scene, signer) {
            judge(
                answer_claim(scene),
                "signed with a new key that has the tag of a published key",
                &response,
            );
        }
    }
    judge(denial_claim(scene), "with the denial of another name", &replayed_denial(scene, Vec::new()));
    for key in &files.vrf_keys {
        let mut canonical = Vec::new();
        scene.victim.view().push_canonical(&mut canonical);
        let mut rdata = Nsec5Key::of(key).tag().to_be_bytes().to_vec();
        if key.prove(&canonical, &mut rdata).is_ok() {
            let proof = record(Section::Authority, &scene.victim, Rtype::NSEC5PROOF, rdata);
            let response = replayed_denial(scene, vec![proof]);
            judge(
                denial_claim(scene),
                "with the denial of another name and a proof by the stolen VRF key",
                &response,
            );
        }
    }
    attempts
}

fn answer_claim(scene: &Scene<'_>) -> String {
    format!("{} A {}", scene.victim, std::net::Ipv4Addr::from(ADDRESS))
}

fn denial_claim(scene: &Scene<'_>) -> String {
    if scene.victim == *scene.zone {
        format!("no {} record at {}", scene.victim_type, scene.victim)
    } else {
        format!("NXDOMAIN for {}", scene.victim)
    }
}

/// Validates a response to the question that it has.
fn judge(scene: &Scene<'_>, claim: String, method: &'static str, response: &Message) -> Attempt {
    let status = match (&scene.keys, response.questions.first()) {
        (Some(keys), Some(asked)) => {
            let question = Question { name: asked.name.view(), rtype: asked.rtype };
            let mut budget = Budget::new(ValidationLimits::default());
            validate(question, response, keys, scene.now, &mut budget).status
        }
        _ => return Attempt { claim, method, status: "indeterminate", reason: None, accepted: false },
    };
    let reason = match &status {
        SecurityStatus::Secure => None,
        SecurityStatus::Insecure(reason) => Some(reason.to_string()),
        SecurityStatus::Bogus(reason) => Some(reason.to_string()),
        SecurityStatus::Indeterminate(reason) => Some(reason.to_string()),
    };
    let accepted = matches!(status, SecurityStatus::Secure | SecurityStatus::Insecure(_));
    Attempt { claim, method, status: status.name(), reason, accepted }
}

fn record(section: Section, owner: &Name, rtype: Rtype, rdata: Vec<u8>) -> Record {
    Record { section, owner: owner.clone(), rtype, class: Class::IN, ttl: TTL, rdata }
}

fn response(name: &Name, rtype: Rtype, rcode: Rcode, records: Vec<Record>) -> Message {
    let of = |section| records.iter().filter(|record| record.section == section).count() as u16;
    let counts = [1, of(Section::Answer), of(Section::Authority), of(Section::Additional)];
    let header = Header { id: 0, flags: flags::QR | flags::AA | rcode.0, counts };
    let questions = vec![message::Question { name: name.clone(), rtype, class: Class::IN }];
    Message { header, questions, records }
}

/// An address of the victim, with these RRSIG RDATA.
fn forged_answer(scene: &Scene<'_>, signatures: Vec<Vec<u8>>) -> Message {
    let mut records = vec![record(Section::Answer, &scene.victim, Rtype::A, ADDRESS.to_vec())];
    records.extend(
        signatures.into_iter().map(|rdata| record(Section::Answer, &scene.victim, Rtype::RRSIG, rdata)),
    );
    response(&scene.victim, Rtype::A, Rcode::NOERROR, records)
}

/// The signatures of the genuine address records.
fn genuine_signatures(scene: &Scene<'_>) -> Vec<Vec<u8>> {
    let is_signature = |record: &&Record| {
        record.rtype == Rtype::RRSIG
            && record.owner == scene.victim
            && Rrsig::parse(&record.rdata).is_some_and(|fields| fields.covered == Rtype::A)
    };
    scene.genuine.section(Section::Answer).filter(is_signature).map(|record| record.rdata.clone()).collect()
}

/// A private key with the key tag that its signatures name.
#[derive(Clone, Copy)]
struct Signer<'k> {
    private: &'k PrivateKey,
    tag: u16,
}

impl<'k> Signer<'k> {
    fn of(key: &'k KeyPair) -> Self {
        Self { private: key.private(), tag: key.tag() }
    }

    /// Signs one record; returns RRSIG RDATA.
    fn sign(self, scene: &Scene<'_>, owner: &Name, rtype: Rtype, rdata: &[u8]) -> Option<Vec<u8>> {
        let fields = Rrsig {
            covered: rtype,
            algorithm: self.private.algorithm(),
            labels: owner.view().rrsig_labels(),
            original_ttl: TTL,
            expiration: scene.now.wrapping_add(VALIDITY),
            inception: scene.now.wrapping_sub(VALIDITY),
            tag: self.tag,
            signer: scene.zone.view(),
            signature: &[],
        };
        fields.sign(owner.view(), [rdata], self.private).ok()
    }
}

fn signed_answer(scene: &Scene<'_>, signer: Signer<'_>) -> Option<Message> {
    let rrsig = signer.sign(scene, &scene.victim, Rtype::A, &ADDRESS)?;
    Some(forged_answer(scene, vec![rrsig]))
}

/// The denial of the victim: an NSEC record at the apex whose next name is the apex covers all names of
/// the zone. If the victim is the apex, the record denies its type.
fn signed_denial(scene: &Scene<'_>, signer: Signer<'_>) -> Option<Message> {
    let is_apex = scene.victim == *scene.zone;
    let mut rdata = scene.zone.view().to_canonical().wire().to_vec();
    let mut types = vec![Rtype::NS, Rtype::SOA, Rtype::RRSIG, Rtype::NSEC, Rtype::DNSKEY];
    types.retain(|rtype| !is_apex || *rtype != scene.victim_type);
    bitmap::push(&types, &mut rdata);
    let rrsig = signer.sign(scene, scene.zone, Rtype::NSEC, &rdata)?;
    let mut records: Vec<Record> = soa_records(scene);
    records.push(record(Section::Authority, scene.zone, Rtype::NSEC, rdata));
    records.push(record(Section::Authority, scene.zone, Rtype::RRSIG, rrsig));
    let rcode = if is_apex { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    Some(response(&scene.victim, scene.victim_type, rcode, records))
}

/// The genuine SOA record of a denial with its signatures.
fn soa_records(scene: &Scene<'_>) -> Vec<Record> {
    let is_soa = |record: &&Record| match record.rtype {
        Rtype::SOA => true,
        Rtype::RRSIG => Rrsig::parse(&record.rdata).is_some_and(|fields| fields.covered == Rtype::SOA),
        _ => false,
    };
    scene.denial.section(Section::Authority).filter(is_soa).cloned().collect()
}

/// The denial of a random name as that of the victim, with more records.
fn replayed_denial(scene: &Scene<'_>, more: Vec<Record>) -> Message {
    let genuine = scene.denial.section(Section::Authority).cloned();
    let records = genuine.chain(more).collect();
    let rcode = if scene.victim == *scene.zone { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    response(&scene.victim, scene.victim_type, rcode, records)
}

/// A new key of the algorithm of a published key, with its tag.
fn other_key(scene: &Scene<'_>) -> Option<(PrivateKey, u16)> {
    let rdata = scene.dnskeys.first()?;
    let key = PrivateKey::generate(Algorithm(*rdata.get(3)?), None).ok()?;
    Some((key, key_tag(rdata)))
}
