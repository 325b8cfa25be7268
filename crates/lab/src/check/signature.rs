//! Verifies single signatures, so that a check can name each one that is wrong. A validator stops at the
//! first valid signature of an RRset.

use nonesuch_crypto::{PublicKey, key_tag};
use nonesuch_dnssec::rrsig::{Rrsig, Validity, push_signed_data};
use nonesuch_proto::message::{Message, Record};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Class, Name, Rtype, rdata};

/// Maximum number of keys with the tag of a signature that are tried (KeyTrap, CVE-2023-50387).
const KEYS_MAX: usize = 2;

/// An RRset of a message: the RDATA in canonical order without duplicates (RFC 4034 §6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageRrset {
    pub(super) owner: Name,
    pub(super) rtype: Rtype,
    /// TTL of the first record, in seconds.
    pub(super) ttl: u32,
    pub(super) rdatas: Vec<Vec<u8>>,
    /// RDATA of the RRSIG records that cover the RRset.
    pub(super) signatures: Vec<Vec<u8>>,
}

impl MessageRrset {
    /// The RRset of this owner and type, from any section; `None` if the message has none.
    pub(super) fn find(message: &Message, owner: &Name, rtype: Rtype) -> Option<Self> {
        let is_of = |record: &&Record, rtype: Rtype| {
            record.owner == *owner && record.rtype == rtype && record.class == Class::IN
        };
        let records: Vec<&Record> = message.records.iter().filter(|record| is_of(record, rtype)).collect();
        let ttl = records.first()?.ttl;
        let mut rdatas: Vec<Vec<u8>> = records.into_iter().map(|record| record.rdata.clone()).collect();
        rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        rdatas.dedup();
        let signatures = message.records.iter().filter(|record| is_of(record, Rtype::RRSIG));
        let signatures = signatures.map(|record| &record.rdata);
        let signatures =
            signatures.filter(|rdata| Rrsig::parse(rdata).is_some_and(|rrsig| rrsig.covered == rtype));
        let signatures = signatures.cloned().collect();
        Some(Self { owner: owner.clone(), rtype, ttl, rdatas, signatures })
    }

    /// The signatures that can be parsed.
    pub(super) fn rrsigs(&self) -> impl Iterator<Item = Rrsig<'_>> {
        self.signatures.iter().filter_map(|rdata| Rrsig::parse(rdata))
    }
}

/// Why a signature over an RRset is not valid (RFC 4035 §5.3.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureFault {
    #[error("expired at {}", Rfc3339(u64::from(*.0)))]
    Expired(u32),
    #[error("not valid before {}", Rfc3339(u64::from(*.0)))]
    NotYetValid(u32),
    #[error("expires before its inception")]
    EmptyPeriod,
    #[error("names the signer {0}, which is not the zone")]
    Signer(Name),
    #[error("names a key that the DNSKEY RRset does not have")]
    NoKey,
    #[error("is by a key whose algorithm is not supported here")]
    UnsupportedKey,
    #[error("does not verify")]
    Wrong,
}

/// Verifies a signature with the key that it names, one of `dnskeys` of the zone at `apex`. `now` is in
/// seconds since 1970 modulo 2^32.
pub(super) fn verify_signature(
    rrsig: &Rrsig<'_>,
    rrset: &MessageRrset,
    apex: &Name,
    dnskeys: &[Vec<u8>],
    now: u32,
) -> Result<(), SignatureFault> {
    match rrsig.validity(now) {
        Validity::Valid => {}
        Validity::Expired => return Err(SignatureFault::Expired(rrsig.expiration)),
        Validity::NotYetValid => return Err(SignatureFault::NotYetValid(rrsig.inception)),
        Validity::Empty => return Err(SignatureFault::EmptyPeriod),
    }
    if rrsig.signer != apex.view() {
        return Err(SignatureFault::Signer(rrsig.signer.to_name()));
    }
    if rrsig.labels > rrset.owner.view().rrsig_labels() {
        return Err(SignatureFault::Wrong);
    }
    let is_named = |key: &&Vec<u8>| key.get(3) == Some(&rrsig.algorithm.0) && key_tag(key) == rrsig.tag;
    let mut keys = dnskeys.iter().filter(is_named).take(KEYS_MAX).peekable();
    if keys.peek().is_none() {
        return Err(SignatureFault::NoKey);
    }
    let mut signed = Vec::new();
    push_signed_data(rrsig, rrset.owner.view(), rrset.rdatas.iter().map(Vec::as_slice), &mut signed);
    let mut fault = SignatureFault::UnsupportedKey;
    for key in keys {
        let Ok(key) = PublicKey::parse(rrsig.algorithm, &key[4..]) else { continue };
        match key.verify(&signed, rrsig.signature) {
            Ok(()) => return Ok(()),
            Err(_) => fault = SignatureFault::Wrong,
        }
    }
    Err(fault)
}
