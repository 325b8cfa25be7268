//! The octets of cached values. Only this module writes and reads them. Reading checks lengths all
//! the same: a value that cannot be read counts as missing.
//!
//! - An RRset: rank and security (1 octet), its records as a set, and the RRsets of a proof (RRsets
//!   that were expanded from a wildcard have one), as in a negative answer but without flags.
//! - A negative answer: security and flags (1 octet), number of RRsets (1), then for each: owner in
//!   wire form, type (2), and the records as a set.
//! - A failure: extended error code (2), number of consecutive failures (1), extended error text.
//!
//! If the security has a reason for which the data are insecure, the number of NSEC3 iterations (2) is at
//! the end.
//!
//! A set: TTL (4), octets of the records (2), octets of the signatures (2), records, signatures.
//! Numbers are big-endian.

use super::Rank;
use super::ring::VALUE_MAX;
use crate::record::{RecordData, Rrset, Security};
use nonesuch_dnssec::validate::InsecureReason;
use nonesuch_proto::{Class, Name, NameRef, Rtype};

/// The value of an RRset, without key and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RrsetValue {
    pub(super) rank: Rank,
    pub(super) security: Security,
    pub(super) insecure: Option<InsecureReason>,
    /// The TTL with which the RRset was inserted, in seconds.
    pub(super) ttl: u32,
    pub(super) records: RecordData,
    pub(super) signatures: RecordData,
    /// The RRsets of the authority section that prove the RRset.
    pub(super) proofs: Vec<Rrset>,
}

/// The value of a negative answer, without key and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NegativeValue {
    pub(super) is_unsigned_delegation: bool,
    pub(super) authority: Vec<Rrset>,
}

/// Position of the security in the first octet of a value.
const SECURITY_SHIFT: u32 = 4;
/// Flag in the first octet of a negative answer: it proves that the name is an unsigned delegation.
const UNSIGNED_DELEGATION: u8 = 1;

/// The stored reasons. Their numbers follow those of [`Security`].
const REASONS: [InsecureReason; 4] = [
    InsecureReason::UnsupportedAlgorithms,
    InsecureReason::UnsupportedDigests,
    InsecureReason::NegativeTrustAnchor,
    InsecureReason::TooManyIterations(0),
];
const FIRST_REASON: u8 = Security::Secure as u8 + 1;
const LAST_REASON: u8 = FIRST_REASON + REASONS.len() as u8 - 1;
/// Maximum octets of the text of a failure.
pub(super) const FAILURE_TEXT_MAX: usize = 255;

/// The value of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailureValue {
    /// The extended error code (RFC 8914).
    pub(super) code: u16,
    /// Number of consecutive failures, at least one.
    pub(super) failures: u8,
    /// The text of the extended error.
    pub(super) text: String,
}

/// Encodes an RRset with this TTL; `None` if it is too large.
pub(super) fn encode_rrset(rrset: &Rrset, proofs: &[Rrset], rank: Rank, ttl: u32) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(11 + rrset.records.octets().len() + rrset.signatures.octets().len());
    octets.push(rank as u8 | security_number(rrset.security, rrset.insecure) << SECURITY_SHIFT);
    push_set(rrset, ttl, &mut octets)?;
    if !proofs.is_empty() {
        push_rrsets(proofs, &mut octets)?;
    }
    push_iterations(rrset.security, rrset.insecure, &mut octets);
    (octets.len() <= VALUE_MAX).then_some(octets)
}

/// Decodes an RRset. The RRsets of its proof have TTLs of at most `ttl`.
pub(super) fn decode_rrset(octets: &[u8], class: Class, ttl: u32) -> Option<RrsetValue> {
    let (rest, insecure) = split_reason(octets)?;
    let (set, rest) = split_set(rest)?;
    let security = (decode_security(octets)?, insecure);
    Some(RrsetValue {
        rank: decode_rank(octets)?,
        security: security.0,
        insecure,
        ttl: set.ttl,
        records: RecordData::from_octets(set.records.to_vec()),
        signatures: RecordData::from_octets(set.signatures.to_vec()),
        proofs: if rest.is_empty() { Vec::new() } else { decode_rrsets(rest, class, ttl, security)? },
    })
}

/// The parts of an encoded RRset without a proof, for a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedRrset<'o> {
    pub(crate) security: Security,
    /// The records and the signatures, each with its length before it.
    pub(crate) records: &'o [u8],
    pub(crate) signatures: &'o [u8],
}

/// Splits an encoded RRset; `None` if it has a proof, or a reason for which it is insecure.
pub(super) fn split_rrset(octets: &[u8]) -> Option<EncodedRrset<'_>> {
    let (rest, insecure) = split_reason(octets)?;
    if insecure.is_some() {
        return None;
    }
    let (Set { records, signatures, .. }, rest) = split_set(rest)?;
    let security = decode_security(octets)?;
    rest.is_empty().then_some(EncodedRrset { security, records, signatures })
}

/// Decodes the rank of an RRset.
pub(super) fn decode_rank(octets: &[u8]) -> Option<Rank> {
    octets.first().and_then(|first| Rank::from_number(first & ((1 << SECURITY_SHIFT) - 1)))
}

/// Decodes the security of an RRset or a negative answer.
pub(super) fn decode_security(octets: &[u8]) -> Option<Security> {
    match octets.first()? >> SECURITY_SHIFT {
        FIRST_REASON..=LAST_REASON => Some(Security::Insecure),
        number => Security::from_number(number),
    }
}

/// Returns the number of a security and a reason. The reason counts only for insecure data.
fn security_number(security: Security, insecure: Option<InsecureReason>) -> u8 {
    let reason = insecure.filter(|_| security == Security::Insecure).and_then(|insecure| {
        let is_same = |reason| std::mem::discriminant(reason) == std::mem::discriminant(&insecure);
        (FIRST_REASON..).zip(&REASONS).find(|(_, reason)| is_same(*reason))
    });
    reason.map_or(security as u8, |(number, _)| number)
}

/// Appends the number of NSEC3 iterations, if the security has a reason.
fn push_iterations(security: Security, insecure: Option<InsecureReason>, octets: &mut Vec<u8>) {
    if security_number(security, insecure) >= FIRST_REASON {
        let iterations =
            if let Some(InsecureReason::TooManyIterations(count)) = insecure { count } else { 0 };
        octets.extend_from_slice(&iterations.to_be_bytes());
    }
}

/// Splits a value into the octets after the first one, and the reason.
fn split_reason(octets: &[u8]) -> Option<(&[u8], Option<InsecureReason>)> {
    let (&first, rest) = octets.split_first()?;
    let Some(index) = (first >> SECURITY_SHIFT).checked_sub(FIRST_REASON) else {
        return Some((rest, None));
    };
    let (rest, iterations) = rest.split_last_chunk()?;
    let reason = match *REASONS.get(usize::from(index))? {
        InsecureReason::TooManyIterations(_) => {
            InsecureReason::TooManyIterations(u16::from_be_bytes(*iterations))
        }
        reason => reason,
    };
    Some((rest, Some(reason)))
}

/// Encodes a negative answer with the RRsets of its authority section, which all have the same security;
/// `None` if they are too large. The class is not encoded.
pub(super) fn encode_negative(authority: &[Rrset], is_unsigned_delegation: bool) -> Option<Vec<u8>> {
    let size = |rrset: &Rrset| {
        let records = rrset.records.octets().len() + rrset.signatures.octets().len();
        rrset.owner.wire().len() + records + 10
    };
    let security = authority.iter().map(|rrset| rrset.security).min().unwrap_or_default();
    let insecure = authority.iter().find_map(|rrset| rrset.insecure);
    let mut octets = Vec::with_capacity(4 + authority.iter().map(size).sum::<usize>());
    let flags = if is_unsigned_delegation { UNSIGNED_DELEGATION } else { 0 };
    octets.push(security_number(security, insecure) << SECURITY_SHIFT | flags);
    push_rrsets(authority, &mut octets)?;
    push_iterations(security, insecure, &mut octets);
    Some(octets)
}

/// Appends the number of RRsets, and the RRsets.
fn push_rrsets(authority: &[Rrset], octets: &mut Vec<u8>) -> Option<()> {
    octets.push(u8::try_from(authority.len()).ok()?);
    for rrset in authority {
        octets.extend_from_slice(rrset.owner.wire());
        octets.extend_from_slice(&rrset.rtype.0.to_be_bytes());
        push_set(rrset, rrset.ttl, octets)?;
        if octets.len() > VALUE_MAX {
            return None;
        }
    }
    Some(())
}

/// Decodes a negative answer. Each RRset has a TTL of at most `ttl`.
pub(super) fn decode_negative(octets: &[u8], class: Class, ttl: u32) -> Option<NegativeValue> {
    let (&first, _) = octets.split_first()?;
    let (rest, insecure) = split_reason(octets)?;
    let authority = decode_rrsets(rest, class, ttl, (decode_security(octets)?, insecure))?;
    Some(NegativeValue { is_unsigned_delegation: first & UNSIGNED_DELEGATION != 0, authority })
}

/// The security of all RRsets of a value, with its reason.
type ValueSecurity = (Security, Option<InsecureReason>);

fn decode_rrsets(octets: &[u8], class: Class, ttl: u32, security: ValueSecurity) -> Option<Vec<Rrset>> {
    let (&count, mut rest) = octets.split_first()?;
    let mut authority = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (rrset, after) = split_authority_rrset(rest, class, ttl, security)?;
        authority.push(rrset);
        rest = after;
    }
    rest.is_empty().then_some(authority)
}

fn split_authority_rrset(
    octets: &[u8],
    class: Class,
    ttl: u32,
    (security, insecure): ValueSecurity,
) -> Option<(Rrset, &[u8])> {
    let (owner, rest) = NameRef::split_from(octets).ok()?;
    let (rtype, rest) = rest.split_first_chunk()?;
    let (set, rest) = split_set(rest)?;
    let rrset = Rrset {
        owner: owner.to_name(),
        rtype: Rtype(u16::from_be_bytes(*rtype)),
        class,
        ttl: set.ttl.min(ttl),
        records: RecordData::from_octets(set.records.to_vec()),
        signatures: RecordData::from_octets(set.signatures.to_vec()),
        security,
        insecure,
    };
    Some((rrset, rest))
}

/// Encodes a failure.
pub(super) fn encode_failure(failure: &FailureValue) -> Vec<u8> {
    let [high, low] = failure.code.to_be_bytes();
    let end = failure.text.floor_char_boundary(FAILURE_TEXT_MAX);
    [&[high, low, failure.failures], &failure.text.as_bytes()[..end]].concat()
}

/// Decodes a failure.
pub(super) fn decode_failure(octets: &[u8]) -> Option<FailureValue> {
    let (&[high, low, failures], text) = octets.split_first_chunk()?;
    let text = std::str::from_utf8(text).ok()?.to_owned();
    Some(FailureValue { code: u16::from_be_bytes([high, low]), failures, text })
}

/// A borrowed set.
struct Set<'o> {
    ttl: u32,
    records: &'o [u8],
    signatures: &'o [u8],
}

fn push_set(rrset: &Rrset, ttl: u32, octets: &mut Vec<u8>) -> Option<()> {
    let (records, signatures) = (rrset.records.octets(), rrset.signatures.octets());
    octets.extend_from_slice(&ttl.to_be_bytes());
    for part in [records, signatures] {
        octets.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
    }
    octets.extend_from_slice(records);
    octets.extend_from_slice(signatures);
    Some(())
}

fn split_set(octets: &[u8]) -> Option<(Set<'_>, &[u8])> {
    let (ttl, rest) = octets.split_first_chunk()?;
    let (records_length, rest) = rest.split_first_chunk()?;
    let (signatures_length, rest) = rest.split_first_chunk()?;
    let (records, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*records_length)))?;
    let (signatures, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*signatures_length)))?;
    Some((Set { ttl: u32::from_be_bytes(*ttl), records, signatures }, rest))
}

/// Returns the last field of an SOA record: the maximum TTL of negative answers (RFC 2308 §4).
pub(super) fn soa_minimum(rdata: &[u8]) -> Option<u32> {
    // Two names of at least one octet, then five numbers.
    rdata.last_chunk().filter(|_| rdata.len() >= 22).map(|minimum| u32::from_be_bytes(*minimum))
}

/// Returns an RRset from its parts. `ttl`: seconds that remain.
pub(super) fn rrset(owner: &[u8], rtype: Rtype, class: Class, ttl: u32, value: RrsetValue) -> Rrset {
    let owner: Name = NameRef::from_wire_unchecked(owner).to_name();
    let RrsetValue { records, signatures, security, insecure, .. } = value;
    Rrset { owner, rtype, class, ttl, records, signatures, security, insecure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn any_records() -> impl Strategy<Value = RecordData> {
        vec(vec(any::<u8>(), 0..40), 0..5).prop_map(|records| records.iter().map(Vec::as_slice).collect())
    }

    fn any_rrset() -> impl Strategy<Value = Rrset> {
        let owner = "([a-zA-Z]{1,9}[.]){0,4}".prop_map(|text| match text.as_str() {
            "" => Name::root(),
            text => text.parse().unwrap(),
        });
        (owner, any::<u16>(), any::<u32>(), any_records(), any_records()).prop_map(
            |(owner, rtype, ttl, records, signatures)| Rrset {
                owner,
                rtype: Rtype(rtype),
                class: Class::IN,
                ttl,
                records,
                signatures,
                security: Security::Secure,
                insecure: None,
            },
        )
    }

    proptest! {
        #[test]
        fn rrset_round_trip(
            original in any_rrset(),
            proofs in vec(any_rrset(), 0..3),
            rank in 1u8..=5,
            security in 0u8..=2,
            reason in 0usize..=4,
            iterations: u16,
        ) {
            let (rank, security) = (Rank::from_number(rank).unwrap(), Security::from_number(security).unwrap());
            let insecure = REASONS.get(reason).map(|reason| match reason {
                InsecureReason::TooManyIterations(_) => InsecureReason::TooManyIterations(iterations),
                reason => *reason,
            });
            let insecure = insecure.filter(|_| security == Security::Insecure);
            let original = Rrset { security, insecure, ..original };
            let proofs: Vec<Rrset> =
                proofs.into_iter().map(|proof| Rrset { security, insecure, ..proof }).collect();
            let octets = encode_rrset(&original, &proofs, rank, original.ttl).unwrap();
            let value = decode_rrset(&octets, Class::IN, u32::MAX).unwrap();
            prop_assert_eq!((value.rank, decode_rank(&octets)), (rank, Some(rank)));
            prop_assert_eq!((value.security, decode_security(&octets)), (security, Some(security)));
            prop_assert_eq!(&value.proofs, &proofs);
            let again = rrset(original.owner.wire(), original.rtype, Class::IN, value.ttl, value);
            prop_assert_eq!(again.owner.wire(), original.owner.wire());
            prop_assert_eq!(again, original);
        }

        #[test]
        fn negative_round_trip(original in vec(any_rrset(), 0..6), is_unsigned: bool, ttl: u32) {
            let octets = encode_negative(&original, is_unsigned).unwrap();
            let NegativeValue { is_unsigned_delegation, authority: decoded } =
                decode_negative(&octets, Class::IN, ttl).unwrap();
            prop_assert_eq!(is_unsigned_delegation, is_unsigned);
            let expected: Vec<Rrset> =
                original.into_iter().map(|rrset| Rrset { ttl: rrset.ttl.min(ttl), ..rrset }).collect();
            prop_assert_eq!(decoded, expected);
        }

        #[test]
        fn failure_round_trip(code: u16, failures: u8, text in "\\PC{0,90}") {
            let failure = FailureValue { code, failures, text };
            let decoded = decode_failure(&encode_failure(&failure)).unwrap();
            prop_assert!(failure.text.starts_with(&decoded.text));
            prop_assert!(decoded.text.len() > FAILURE_TEXT_MAX - 4 || decoded == failure);
        }

        #[test]
        fn arbitrary_octets_never_panic(octets in vec(any::<u8>(), 0..120)) {
            let _ = decode_rrset(&octets, Class::IN, 1);
            let _ = decode_negative(&octets, Class::IN, 1);
            let _ = decode_failure(&octets);
            let _ = soa_minimum(&octets);
        }
    }

    #[test]
    fn values_that_are_too_large_are_not_encoded() {
        let rrset = |octets: usize| Rrset {
            owner: Name::root(),
            rtype: Rtype::TXT,
            class: Class::IN,
            ttl: 1,
            records: [vec![0; octets].as_slice()].into_iter().collect(),
            signatures: RecordData::default(),
            security: Security::Unchecked,
            insecure: None,
        };
        let fits = |octets| encode_rrset(&rrset(octets), &[], Rank::AnswerAa, 1).is_some();
        assert_eq!([VALUE_MAX - 11, VALUE_MAX - 10, 65_535].map(fits), [true, false, false]);
        let half = VALUE_MAX / 2;
        assert!(encode_negative(&[rrset(half - 20), rrset(half - 20)], false).is_some());
        assert!(encode_negative(&[rrset(half), rrset(half)], false).is_none());
        assert!(encode_negative(&vec![rrset(0); 256], false).is_none());
    }
}
