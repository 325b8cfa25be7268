//! Validation of responses. Each test has a sound response, and responses with one error that are
//! derived from it and signed again if necessary, so that only one check can reject them.

mod aliases;
mod compact;
mod everything;
mod limits;
mod nsec;
mod nsec3;
mod nsec5;
mod octets;
mod pending;
mod signatures;

use super::{EXPIRATION, INCEPTION, NOW, key, name};
use crate::keys::KeyPair;
use crate::rrsig::{Rrsig, push_signed_data};
use crate::validate::{
    BogusReason, Budget, IndeterminateReason, InsecureReason, PendingValidation, ProvedAnswer, Question,
    SecurityStatus, TrustedKeys, ValidSignatures, Validation, ValidationLimits, validate, verify_jobs,
};
use nonesuch_crypto::Algorithm;
use nonesuch_proto::message::{self, Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::text::Token;
use nonesuch_proto::{Class, Name, Rtype, bitmap, rdata};
use std::sync::Arc;

const TTL: u32 = 3600;
const SOA: &str = "ns.test. h.test. 7 3600 300 3600000 900";
const DS: &str = "1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF";
const YXDOMAIN: Rcode = Rcode(6);

/// A response that a test builds, and the key that signs its records.
#[derive(Clone)]
struct Reply {
    name: Name,
    rtype: Rtype,
    rcode: Rcode,
    flags: u16,
    records: Vec<Record>,
    signer: Arc<KeyPair>,
    /// RDATA of the trusted NSEC5 keys.
    nsec5_keys: Vec<Vec<u8>>,
}

/// The key of the zone `example.`; with NSEC5 it has an alias algorithm number.
fn signer(algorithm: Algorithm) -> Arc<KeyPair> {
    Arc::new(key("example.", 257, algorithm, 1))
}

/// RDATA in wire form.
fn octets(rtype: Rtype, text: &str) -> Vec<u8> {
    let tokens: Vec<Token<'_>> =
        text.split(' ').map(|word| Token { octets: word.as_bytes(), quoted: false, at: 0 }).collect();
    let mut out = Vec::new();
    rdata::push_from_tokens(rtype, &tokens, None, &mut out)
        .unwrap_or_else(|error| panic!("{rtype} {text}: {error}"));
    out
}

/// A type bit map.
fn map(types: &str) -> Vec<u8> {
    let mut types: Vec<Rtype> = types.split_whitespace().map(|word| word.parse().unwrap()).collect();
    types.sort_unstable();
    let mut out = Vec::new();
    bitmap::push(&types, &mut out);
    out
}

/// Verifies signatures until the validation ends.
fn finish(pending: &mut PendingValidation, budget: &mut Budget) -> Validation {
    loop {
        if let Some(validation) = pending.step(budget) {
            return validation;
        }
        assert!(pending.job_count() > 0, "a validation that waits for nothing");
        verify_jobs([&mut *pending], &mut ValidSignatures::new(16, &[7; 16]), |_, _| {});
    }
}

impl Reply {
    /// An empty response of the zone `example.`.
    fn to(name: &str, rtype: Rtype) -> Self {
        let signer = signer(Algorithm::ED25519);
        let (rcode, flags) = (Rcode::NOERROR, flags::QR | flags::AA);
        let (records, nsec5_keys) = (Vec::new(), Vec::new());
        Self { name: super::name(name), rtype, rcode, flags, records, signer, nsec5_keys }
    }

    fn by(self, signer: &Arc<KeyPair>) -> Self {
        Self { signer: Arc::clone(signer), ..self }
    }

    fn rcode(self, rcode: Rcode) -> Self {
        Self { rcode, ..self }
    }

    /// Adds records in wire form, unsigned.
    fn raw(mut self, section: Section, owner: &Name, rtype: Rtype, rdatas: &[Vec<u8>]) -> Self {
        self.records.extend(rdatas.iter().map(|rdata| Record {
            section,
            owner: owner.clone(),
            rtype,
            class: Class::IN,
            ttl: TTL,
            rdata: rdata.clone(),
        }));
        self
    }

    /// Adds an RRset in wire form with a signature. `change` may modify its fields before.
    fn raw_signed(
        self,
        section: Section,
        owner: &Name,
        rtype: Rtype,
        rdatas: &[Vec<u8>],
        change: impl Fn(&mut Rrsig<'_>),
    ) -> Self {
        let signature = self.sign(owner, rtype, rdatas, change);
        self.raw(section, owner, rtype, rdatas).raw(section, owner, Rtype::RRSIG, &[signature])
    }

    /// RDATA of a signature.
    fn sign(
        &self,
        owner: &Name,
        rtype: Rtype,
        rdatas: &[Vec<u8>],
        change: impl Fn(&mut Rrsig<'_>),
    ) -> Vec<u8> {
        sign_by(&self.signer, owner, rtype, rdatas, change)
    }

    /// Adds an RRset with a signature. Line ends separate its records.
    fn signed_as(
        self,
        section: Section,
        owner: &str,
        rtype: Rtype,
        text: &str,
        change: impl Fn(&mut Rrsig<'_>),
    ) -> Self {
        let rdatas: Vec<Vec<u8>> = text.lines().map(|line| octets(rtype, line)).collect();
        self.raw_signed(section, &name(owner), rtype, &rdatas, change)
    }

    fn unsigned(self, section: Section, owner: &str, rtype: Rtype, text: &str) -> Self {
        let rdatas: Vec<Vec<u8>> = text.lines().map(|line| octets(rtype, line)).collect();
        self.raw(section, &name(owner), rtype, &rdatas)
    }

    fn answer(self, owner: &str, rtype: Rtype, text: &str) -> Self {
        self.signed_as(Section::Answer, owner, rtype, text, |_| {})
    }

    /// Adds a response that was expanded from a wildcard: the Labels field of its RRSIG is
    /// `labels`.
    fn expanded(self, owner: &str, rtype: Rtype, text: &str, labels: u8) -> Self {
        self.signed_as(Section::Answer, owner, rtype, text, |fields| fields.labels = labels)
    }

    fn authority(self, owner: &str, rtype: Rtype, text: &str) -> Self {
        self.signed_as(Section::Authority, owner, rtype, text, |_| {})
    }

    fn soa(self) -> Self {
        self.authority("example.", Rtype::SOA, SOA)
    }

    /// Removes the records that `is_unwanted` selects.
    fn without(mut self, is_unwanted: impl Fn(&Record) -> bool) -> Self {
        let before = self.records.len();
        self.records.retain(|record| !is_unwanted(record));
        assert!(self.records.len() < before, "there is no such record");
        self
    }

    /// Modifies the records that `is_wanted` selects.
    fn altered(mut self, is_wanted: impl Fn(&Record) -> bool, alter: impl Fn(&mut Record)) -> Self {
        let mut altered = 0;
        for record in self.records.iter_mut().filter(|record| is_wanted(record)) {
            alter(record);
            altered += 1;
        }
        assert!(altered > 0, "there is no such record");
        self
    }

    fn message(&self) -> Message {
        let count = |section| self.records.iter().filter(|record| record.section == section).count() as u16;
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        let [answer, authority, additional] = sections.map(count);
        Message {
            header: Header {
                id: 7,
                flags: self.flags | self.rcode.0,
                counts: [1, answer, authority, additional],
            },
            questions: vec![message::Question {
                name: self.name.clone(),
                rtype: self.rtype,
                class: Class::IN,
            }],
            records: self.records.clone(),
        }
    }

    /// Validates, and compares the result with that of a [`PendingValidation`].
    fn validate_with(&self, keys: &TrustedKeys, now: u32, budget: &mut Budget) -> Validation {
        let question = Question { name: self.name.view(), rtype: self.rtype };
        let (response, mut deferred_budget) = (self.message(), *budget);
        let mut deferred =
            PendingValidation::new(question, response.clone().into(), keys.clone().into(), now);
        let validation = validate(question, &response, keys, now, budget);
        let in_batches = finish(&mut deferred, &mut deferred_budget);
        // In a Bogus response, a proof may be invalid. Others are then verified with it.
        let is_bogus = matches!(validation.status, SecurityStatus::Bogus(_));
        if validation.work.signature_failures == 0 && !is_bogus {
            assert_eq!((&in_batches, deferred_budget), (&validation, *budget));
        }
        assert!((validation.work.proofs..=4).contains(&in_batches.work.proofs), "{in_batches:?}");
        assert_eq!(Validation { work: validation.work, ..in_batches }, validation);
        validation
    }

    /// Validates with the signing key and the NSEC5 keys.
    fn validate(&self) -> Validation {
        let mut keys = trust(&self.signer);
        keys.set_nsec5_keys(self.nsec5_keys.iter().map(Vec::as_slice), &ValidationLimits::default());
        self.validate_with(&keys, NOW, &mut Budget::default())
    }

    #[track_caller]
    fn assert_secure(&self, proved: &ProvedAnswer) -> Validation {
        let validation = self.validate();
        assert_eq!((&validation.status, validation.proved.as_ref()), (&SecurityStatus::Secure, Some(proved)));
        validation
    }

    #[track_caller]
    fn assert_insecure(&self, insecurity: InsecureReason, proved: &ProvedAnswer) -> Validation {
        let validation = self.validate();
        let status = SecurityStatus::Insecure(insecurity);
        assert_eq!((&validation.status, validation.proved.as_ref()), (&status, Some(proved)));
        validation
    }

    #[track_caller]
    fn assert_bogus(&self, reason: BogusReason) {
        let validation = self.validate();
        assert_eq!((validation.status, validation.proved), (SecurityStatus::Bogus(reason), None));
    }

    #[track_caller]
    fn assert_undecided(&self, undecided: IndeterminateReason) {
        let validation = self.validate();
        assert_eq!((validation.status, validation.proved), (SecurityStatus::Indeterminate(undecided), None));
    }
}

/// RDATA of a signature by `signer` over an RRset.
fn sign_by(
    signer: &KeyPair,
    owner: &Name,
    rtype: Rtype,
    rdatas: &[Vec<u8>],
    change: impl Fn(&mut Rrsig<'_>),
) -> Vec<u8> {
    let mut fields = Rrsig {
        covered: rtype,
        algorithm: signer.algorithm(),
        labels: owner.view().rrsig_labels(),
        original_ttl: TTL,
        expiration: EXPIRATION,
        inception: INCEPTION,
        tag: signer.tag(),
        signer: signer.owner.view(),
        signature: &[],
    };
    change(&mut fields);
    let mut sorted: Vec<&[u8]> = rdatas.iter().map(Vec::as_slice).collect();
    sorted.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
    let (mut message, mut out) = (Vec::new(), Vec::new());
    push_signed_data(&fields, owner.view(), sorted.into_iter(), &mut message);
    fields.push_fields(&mut out);
    signer.private().sign(&message, &mut out).unwrap();
    out
}

/// The trusted keys of `example.`: one key, and no NSEC5 key.
fn trust(signer: &KeyPair) -> TrustedKeys {
    TrustedKeys::new(&signer.owner, [signer.dnskey_rdata().as_slice()], &ValidationLimits::default())
}

fn is(owner: &'static str, rtype: Rtype) -> impl Fn(&Record) -> bool {
    move |record| record.rtype == rtype && record.owner == name(owner)
}

/// Whether a record is a signature over `covered` at `owner`.
fn is_signature(owner: &'static str, covered: Rtype) -> impl Fn(&Record) -> bool {
    move |record| {
        let fields = Rrsig::parse(&record.rdata).filter(|_| record.rtype == Rtype::RRSIG);
        fields.is_some_and(|fields| fields.covered == covered) && record.owner == name(owner)
    }
}
