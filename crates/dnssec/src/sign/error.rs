//! Why a zone cannot be signed, and what the signer warns of.

use super::policy::SerialPolicy;
use crate::denial::Mechanism;
use crate::denial::nsec3::MAX_ITERATIONS;
use crate::denial::nsec5::Nsec5Error;
use crate::keys::describe_keys;
use crate::transition::{TransitionFault, list_faults};
use crate::verify::FaultReason;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::{Name, Rtype};
use std::fmt;

/// Why a signature of an absent key is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbsentSignature {
    /// The zone has none.
    Missing,
    /// It is not valid at the time of signing.
    NotValid,
    /// It was made for other records, another TTL or another key.
    DoesNotFit,
}

impl fmt::Display for AbsentSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Missing => "the zone has no RRSIG record by it",
            Self::NotValid => "its RRSIG record is not valid at this time",
            Self::DoesNotFit => "its RRSIG record does not fit the RRset as it would be published",
        })
    }
}

/// What was done otherwise than asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignWarning {
    /// The serial that the policy asks for would not move forward.
    #[error("serial {wanted} ({policy}) does not come after {old} (RFC 1982): {used} was taken")]
    SerialBehind {
        /// The policy.
        policy: SerialPolicy,
        /// Serial of the unsigned zone.
        old: u32,
        /// Serial by the policy.
        wanted: u32,
        /// Serial taken.
        used: u32,
    },
    /// No key has the SEP flag. It is a hint to people alone (RFC 4034 §2.1.1), and the zone is sound without.
    #[error(
        "no key has the SEP flag: sound by RFC 4034, but the verifiers of BIND and Knot refuse such a zone; make the key \
         with --csk, or a second one with --ksk"
    )]
    NoSecureEntryPoint,
    /// The zone has a signature over its key set by a key that was not given, and it is not published.
    #[error(
        "{rtype}: the signature by key {tag}, whose private key was not given, is dropped: {reason}; other keys sign the RRset"
    )]
    SignatureDropped {
        /// The type that it covers.
        rtype: Rtype,
        /// The key's tag.
        tag: u16,
        /// Why it is dropped.
        reason: AbsentSignature,
    },
    /// Validators that hold the previous version's keys take the new version for bogus.
    #[error("unsafe transition, which is allowed here: {0}")]
    UnsafeTransition(TransitionFault),
    /// A ZONEMD record of the zone is of a scheme or hash algorithm that is not supported, and its digest does not fit
    /// the signed zone.
    #[error(
        "the ZONEMD record of scheme {scheme} and hash algorithm {hash} is dropped: digests of scheme 1 by SHA-384 (1) \
         and SHA-512 (2) are made"
    )]
    ZonemdDropped {
        /// Its scheme.
        scheme: u8,
        /// Its hash algorithm.
        hash: u8,
    },
    /// The zone has records that verifying takes for a fault of the signed zone: they are signed as they stand.
    #[error(
        "{owner} {rtype}: {}; it is signed as it stands, but `zone verify` refuses such a zone: remove or correct it",
        Rule(*rtype, reason)
    )]
    WillNotVerify {
        /// Owner of the RRset.
        owner: Name,
        /// Its type.
        rtype: Rtype,
        /// What is wrong, with the rule.
        reason: FaultReason,
    },
}

/// Why a zone cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// There is no well-formed SOA record at the apex.
    #[error("the zone {0} has no well-formed SOA record at its apex")]
    NoSoa(Name),
    /// The keys are another zone's.
    #[error("the keys are those of {keys}, but the zone is {zone}: give the keys of {zone}")]
    KeysOfOtherZone {
        /// The zone.
        zone: Name,
        /// Owner of the keys.
        keys: Name,
    },
    /// No records of the mechanism stand in a zone.
    #[error(
        "the records of {mechanism} are made when asked, none stand in the zone: start `nonesuch serve --denial {mechanism} \
         --keys DIR` with the zone as it is, or sign with nsec, nsec3 or nsec5"
    )]
    OnlineMechanism {
        /// The mechanism.
        mechanism: Mechanism,
    },
    /// The period of validity is empty or longer than 2^31 seconds.
    #[error(
        "the signatures would never be valid: the expiration must come after the inception, by less than 68 years"
    )]
    Period,
    /// The signatures would have expired when they are made.
    #[error(
        "the signatures would have expired before now: give a later expiration, or the time of signing (now)"
    )]
    Expired,
    /// The key set needs a signature by a key that was not given.
    #[error(
        "the {rtype} RRset needs a signature by the key-signing {}, whose private key was not given: {reason}; sign the key set \
         where that key is (`nonesuch zone sign --only-keys`) and sign that output here, give the key, or remove its DNSKEY \
         record",
        describe_keys(tags)
    )]
    AbsentKey {
        /// The type of the RRset.
        rtype: Rtype,
        /// Tags of the keys, of which one must sign.
        tags: Vec<u16>,
        /// Why there is no signature of the first one.
        reason: AbsentSignature,
    },
    /// Validators that hold the previous version's keys would take the new version for bogus.
    #[error(
        "the new version breaks validators that hold the previous one: {}; sign with the keys that the previous version has, or \
         allow it (--allow-unsafe-transition)",
        list_faults(.0)
    )]
    UnsafeTransition(Vec<TransitionFault>),
    /// The jitter would leave no period of validity.
    #[error("a jitter of {jitter} s leaves nothing of a validity of {period} s: give less")]
    Jitter {
        /// Seconds of jitter.
        jitter: u32,
        /// Seconds of validity.
        period: u32,
    },
    /// Too many NSEC3 iterations.
    #[error(
        "{iterations} NSEC3 iterations: at most {MAX_ITERATIONS} are signed with, and RFC 9276 section 3.1 wants 0"
    )]
    Iterations {
        /// Iterations asked for.
        iterations: u16,
    },
    /// The NSEC3 salt is too long.
    #[error("an NSEC3 salt of {octets} octets: at most 255 fit, and RFC 9276 section 3.1 wants none")]
    Salt {
        /// Octets of the salt.
        octets: usize,
    },
    /// Hashed owner names do not fit below the apex.
    #[error("the name {zone} is too long for NSEC3, whose hashes take 33 octets in front of it: use NSEC")]
    ApexTooLong {
        /// The zone.
        zone: Name,
    },
    /// Two names have the same hash (RFC 5155 §7.1).
    #[error("{first} and {second} have the same NSEC3 hash: sign with another salt")]
    HashCollision {
        /// One name.
        first: Name,
        /// The other.
        second: Name,
    },
    /// A DNSKEY record of the zone has an algorithm that no key signs with (RFC 4035 §2.2).
    #[error(
        "the zone holds the DNSKEY {tag} of algorithm {algorithm}, with which no given key signs: give a key of \
         that algorithm, remove the record, or drop foreign keys"
    )]
    ForeignKey {
        /// The key's tag.
        tag: u16,
        /// The key's algorithm.
        algorithm: Algorithm,
    },
    /// A DNSKEY record of the zone is too short.
    #[error("the zone holds a malformed DNSKEY record: remove it")]
    MalformedDnskey,
    /// With its signatures an RRset fits no message.
    #[error(transparent)]
    Zone(#[from] nonesuch_zone::ZoneFault),
    /// Signed, the zone would hold more than can be addressed.
    #[error("the signed zone would be too large: names take more than 4 GiB")]
    TooLarge,
    /// The zone cannot be signed with NSEC5.
    #[error(transparent)]
    Nsec5(#[from] Nsec5Error),
    /// The previous zone is another one.
    #[error("the previous zone is {previous}, but the zone is {zone}: give the zone that was signed last")]
    PreviousOfOtherZone {
        /// The zone to be signed.
        zone: Name,
        /// Apex of the previous zone.
        previous: Name,
    },
    /// Signatures made would be within the refresh window from the start.
    #[error(
        "signatures that expire within {refresh} s are made anew, but some made now would expire in {least} s: lower \
         the refresh window or the jitter, or sign for longer"
    )]
    Refresh {
        /// Seconds of the refresh window.
        refresh: u32,
        /// Least seconds from the time of signing to an expiration.
        least: u32,
    },
    /// A signature of the previous zone does not verify.
    #[error(
        "the previous zone is not sound: the signature of {owner} {rtype} by key {tag} does not verify; sign without \
         it, or verify it to see what else is wrong"
    )]
    BadPrevious {
        /// Owner of the RRset.
        owner: Name,
        /// Its type.
        rtype: Rtype,
        /// Tag of the key.
        tag: u16,
    },
    /// Changes are changes of a previous zone, and there is none.
    #[error("changes are given without the zone that they change: give the zone that was signed last")]
    NoPrevious,
    /// A part of the previous zone cannot be loaded.
    #[error("the zone that was signed last: {0}")]
    Previous(#[from] nonesuch_zone::CompiledError),
    /// A change does not fit the zone that it is to be made in.
    #[error(transparent)]
    Change(#[from] nonesuch_zone::change::ChangeError),
    /// A signature could not be made.
    #[error(transparent)]
    Crypto(#[from] nonesuch_crypto::SignError),
}

/// What is wrong with an RRset, with the rule.
struct Rule<'r>(Rtype, &'r FaultReason);

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.0 {
            Rtype::DS => "a DS record has no place at the apex (RFC 4035 section 2.4)",
            Rtype::DNSKEY => {
                "a zone key has no place away from the apex of its zone (RFC 4034 section 2.1.1)"
            }
            Rtype::CDS | Rtype::CDNSKEY => {
                "the record has no place away from the apex but at a signalling name (RFC 7344 section 4.1, RFC 9615 section 4.1)"
            }
            Rtype::NSEC5KEY => "an NSEC5 key has no place away from the apex (draft-vcelak-nsec5 section 5)",
            Rtype::NSEC5PROOF => "proofs are in answers alone (draft-vcelak-nsec5 section 7)",
            _ => return self.1.fmt(f),
        };
        match self.1 {
            FaultReason::UnexpectedRecords => f.write_str(place),
            reason => reason.fmt(f),
        }
    }
}
