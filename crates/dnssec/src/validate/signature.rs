//! Verifies the signatures over one RRset of a response (RFC 4035 §5.3).

use super::budget::{Budget, Failures, failure_cost};
use super::error::ValidationError;
use super::keys::{TrustedKeys, ZoneKey};
use super::pending::{Job, JobId, Verdicts};
use super::proofs::ProofVerdicts;
use super::reason::BogusReason;
use super::rrsets::Rrset;
use crate::rrsig::{Rrsig, Validity, push_signed_data};
use nonesuch_crypto::Algorithm;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Record;

/// The properties of an RRset that a valid signature shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValidSignature {
    /// The Labels field. If it is less than the number of labels of the owner, the RRset was
    /// expanded from a wildcard.
    pub(super) labels: u8,
    /// The minimum, in seconds, of the TTL of the RRset, the TTL of the signature, the original TTL
    /// and the time to expiration (RFC 4035 §5.3.3).
    pub(super) ttl: u32,
}

/// The algorithm numbers that a signature may have. A trusted key must have the number too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedAlgorithms {
    /// All numbers.
    Any,
    /// Only alias algorithm numbers, which resolvers without NSEC5 do not know. Signatures over
    /// NSEC5 records must have them.
    AliasNumbers,
}

/// When signatures and proofs are verified.
#[derive(Debug)]
pub(super) enum Verification<'v> {
    /// At once.
    Immediate,
    /// Later, in a batch. Until a signature or a proof has a verdict, the result is
    /// [`ValidationError::Pending`].
    Deferred(&'v mut Verdicts),
}

impl Verification<'_> {
    /// The verdicts on the NSEC5 proofs; `None` if they are verified at once.
    pub(super) const fn proof_verdicts(&mut self) -> Option<&mut ProofVerdicts> {
        match self {
            Self::Immediate => None,
            Self::Deferred(verdicts) => Some(&mut verdicts.proofs),
        }
    }
}

/// Searches for one valid signature over `rrset`; any is sufficient (RFC 6840 §5.4, §5.11).
///
/// # Errors
/// [`ValidationError::Bogus`] with the reason of the first signature if none is valid.
/// [`ValidationError::Indeterminate`] if the work exceeds `budget`. [`ValidationError::Pending`] if a
/// signature must be verified first.
pub(super) fn verify(
    (index, rrset): (usize, &Rrset<'_>),
    allowed: AllowedAlgorithms,
    (keys, now): (&TrustedKeys, u32),
    verification: &mut Verification<'_>,
    budget: &mut Budget,
) -> Result<ValidSignature, ValidationError> {
    if !rrset.owner.is_at_or_below(keys.apex()) {
        return Err(BogusReason::OutsideZone(rrset.owner.to_name()).into());
    }
    // RFC 4035 §5.2: DS at the apex belongs to the parent side of the zone cut.
    if rrset.rtype == Rtype::DS && rrset.owner == keys.apex() {
        return Err(BogusReason::ApexDs.into());
    }
    let mut first_reason = None;
    for (position, record) in rrset.signatures.iter().enumerate().take(budget.limits().signatures_per_rrset) {
        let place = (index, position);
        match verify_signature(rrset, (place, record), allowed, (keys, now), verification, budget) {
            Ok(valid) => return Ok(valid),
            Err(ValidationError::Bogus(reason)) => first_reason = first_reason.or(Some(reason)),
            Err(error) => return Err(error),
        }
    }
    let no_signature = || BogusReason::NoSignature { owner: rrset.owner.to_name(), rtype: rrset.rtype };
    Err(first_reason.unwrap_or_else(no_signature).into())
}

fn verify_signature(
    rrset: &Rrset<'_>,
    ((index, position), record): ((usize, usize), &Record),
    allowed: AllowedAlgorithms,
    (keys, now): (&TrustedKeys, u32),
    verification: &mut Verification<'_>,
    budget: &mut Budget,
) -> Result<ValidSignature, ValidationError> {
    let covered = rrset.rtype;
    let fields = Rrsig::parse(&record.rdata).ok_or(BogusReason::MalformedSignature(covered))?;
    check_fields(rrset, &fields, allowed, keys)?;
    check_times(&fields, now)?;
    let max_keys = budget.limits().keys_per_signature;
    let candidates = || keys.candidates(fields.tag, fields.algorithm, max_keys);
    let (mut message, mut failures) = (Vec::new(), Failures::default());
    let mut has_key = false;
    for (candidate, key) in candidates().enumerate() {
        has_key = true;
        let is_valid = match verification {
            Verification::Immediate => {
                let octets = rrset.rdata_octets();
                budget.take_signature(octets)?;
                if message.is_empty() {
                    push_signed_data(&fields, rrset.owner, rrset.rdatas.iter().copied(), &mut message);
                }
                failures.add(Failures { verifications: 1, cost: failure_cost(&key.public, octets) });
                key.public.verify(&message, fields.signature).is_ok()
            }
            Verification::Deferred(verdicts) => {
                let id = (index, position, candidate);
                match verdicts.get(id) {
                    Some(is_valid) => is_valid,
                    None => {
                        defer(id, rrset, &fields, candidates(), verdicts, budget)?;
                        return Err(ValidationError::Pending);
                    }
                }
            }
        };
        if is_valid {
            let remaining = fields.expiration.wrapping_sub(now);
            let ttl = rrset.ttl.min(record.ttl).min(fields.original_ttl).min(remaining);
            return Ok(ValidSignature { labels: fields.labels, ttl });
        }
    }
    budget.count_failures(failures);
    let (tag, algorithm) = (fields.tag, fields.algorithm);
    Err(if has_key {
        BogusReason::BadSignature { covered, tag }
    } else if keys.lacks_zone_flag(tag) {
        BogusReason::NoZoneKeyFlag
    } else {
        BogusReason::UnknownKey { covered, tag, algorithm }
    }
    .into())
}

/// Records the verification with one of the keys with the tag of the signature, unless it is recorded.
/// Waits if the recorded ones could exceed the limit of failures, so that no more signatures are verified
/// than without a batch.
fn defer<'k>(
    id: JobId,
    rrset: &Rrset<'_>,
    fields: &Rrsig<'_>,
    mut candidates: impl Iterator<Item = &'k ZoneKey>,
    verdicts: &mut Verdicts,
    budget: &mut Budget,
) -> Result<(), ValidationError> {
    let is_full = verdicts.recorded() > 0 && budget.is_near_failure_limit(verdicts.recorded_cost());
    if verdicts.is_recorded(id) || is_full {
        return Ok(());
    }
    let (_, _, candidate) = id;
    let (octets, mut failures) = (rrset.rdata_octets(), Failures::default());
    let cost = |key: &ZoneKey| failure_cost(&key.public, octets);
    for earlier in candidates.by_ref().take(candidate) {
        failures.add(Failures { verifications: 1, cost: cost(earlier) });
    }
    let Some(key) = candidates.next() else { return Ok(()) };
    failures.add(Failures { verifications: 1, cost: cost(key) });
    budget.take_signature(octets)?;
    let mut message = Vec::new();
    push_signed_data(fields, rrset.owner, rrset.rdatas.iter().copied(), &mut message);
    let is_last = candidates.next().is_none();
    verdicts.record(Job::new(id, key, message, fields.signature, (failures, is_last)));
    Ok(())
}

/// Checks the fields of a signature (RFC 4035 §5.3.1), except times and keys.
fn check_fields(
    rrset: &Rrset<'_>,
    fields: &Rrsig<'_>,
    allowed: AllowedAlgorithms,
    keys: &TrustedKeys,
) -> Result<(), BogusReason> {
    let covered = rrset.rtype;
    if fields.signer != keys.apex() {
        return Err(BogusReason::WrongSigner { covered, signer: fields.signer.to_name() });
    }
    // A wildcard above the apex would belong to another zone.
    let is_in_zone = usize::from(fields.labels) >= keys.apex().label_count();
    if !is_in_zone || fields.labels > rrset.owner.rrsig_labels() {
        return Err(BogusReason::WrongLabels { covered, labels: fields.labels });
    }
    if allowed == AllowedAlgorithms::AliasNumbers && !is_alias_number(fields.algorithm) {
        return Err(BogusReason::NotAliasAlgorithm(fields.algorithm));
    }
    Ok(())
}

fn is_alias_number(algorithm: Algorithm) -> bool {
    algorithm.without_alias() != algorithm
}

/// Checks the period of validity (RFC 4034 §3.1.5).
fn check_times(fields: &Rrsig<'_>, now: u32) -> Result<(), BogusReason> {
    let (covered, inception, expiration) = (fields.covered, fields.inception, fields.expiration);
    match fields.validity(now) {
        Validity::Valid => Ok(()),
        Validity::Empty => Err(BogusReason::EmptyPeriod(covered)),
        Validity::Expired => Err(BogusReason::Expired { covered, expiration }),
        Validity::NotYetValid => Err(BogusReason::NotYetValid { covered, inception }),
    }
}
