//! Errors and warnings of the signer.

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

/// The reason why the signature of an absent key, whose private key was not given, is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbsentSignature {
    /// The zone has no signature by the key.
    Missing,
    /// The signature is not valid at the time of signing.
    NotValid,
    /// The signature does not verify: it is over other records or with another TTL, or another key
    /// with the same key tag generated it.
    DoesNotVerify,
}

impl fmt::Display for AbsentSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Missing => "the zone has no RRSIG record by this key",
            Self::NotValid => "its RRSIG record is not valid at this time",
            Self::DoesNotVerify => "its RRSIG record does not verify for the RRset that would be published",
        })
    }
}

/// A warning of the signer: a deviation from the options, or records that verification will report
/// as faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignWarning {
    /// The serial according to the policy does not follow the previous one. Another serial is used.
    #[error("{}", describe_serial(*policy, *old, *wanted, *used))]
    SerialNotIncreased {
        /// The policy.
        policy: SerialPolicy,
        /// Serial that the new one must follow.
        old: u32,
        /// Serial according to the policy.
        wanted: u32,
        /// Serial of the signed zone.
        used: u32,
    },
    /// No key has the SEP flag. The zone is valid, because validators ignore the flag (RFC 4034
    /// §2.1.1).
    #[error(
        "no key has the SEP flag: valid by RFC 4034, but the verifiers of BIND and Knot reject such a zone; \
        generate the key with --csk, or a second key with --ksk"
    )]
    NoSecureEntryPoint,
    /// The zone has a signature over its key set by an absent key. The signed zone does not contain
    /// the signature.
    #[error(
        "{rtype}: removed the signature by key {tag}, whose private key was not given: {reason}; other keys sign the RRset"
    )]
    SignatureDropped {
        /// The type that the signature covers.
        rtype: Rtype,
        /// The key's tag.
        tag: u16,
        /// The reason.
        reason: AbsentSignature,
    },
    /// The new version may be bogus for validators that have cached data of the previous version,
    /// but the options allow the transition.
    #[error(
        "validating resolvers that have cached the previous version may treat the new one as bogus, which the \
        options permit: {0}"
    )]
    UnsafeTransition(TransitionFault),
    /// A ZONEMD record of the zone has an unsupported scheme or hash algorithm, and its digest does
    /// not match the signed zone.
    #[error(
        "removed the ZONEMD record of scheme {scheme} and hash algorithm {hash}: only scheme 1 with SHA-384 (1) and SHA-512 (2) is supported"
    )]
    ZonemdDropped {
        /// The scheme of the record.
        scheme: u8,
        /// The hash algorithm of the record.
        hash: u8,
    },
    /// The zone has records that verification reports as a fault of the signed zone. They are
    /// signed unchanged.
    #[error(
        "{owner} {rtype}: {}; the record is signed unchanged, but `zone verify` rejects such a zone: remove or correct the record",
        DescribeFault(*rtype, reason)
    )]
    WillNotVerify {
        /// Owner of the RRset.
        owner: Name,
        /// Its type.
        rtype: Rtype,
        /// The fault. The message names the violated rule.
        reason: FaultReason,
    },
}

/// The reason why a zone cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The zone has no well-formed SOA record at the apex.
    #[error("the zone {0} has no well-formed SOA record at its apex")]
    NoSoa(Name),
    /// The keys belong to another zone.
    #[error("the keys belong to {keys}, but the zone is {zone}: use keys of {zone}")]
    KeysOfOtherZone {
        /// The zone.
        zone: Name,
        /// The zone of the keys.
        keys: Name,
    },
    /// The mechanism needs a server that generates its records online; a zone file cannot contain
    /// them.
    #[error(
        "{mechanism} records are generated online and are not part of a zone file: start `nonesuch serve \
        --denial {mechanism} --keys DIR` with the zone as it is, or sign with nsec, nsec3 or nsec5"
    )]
    OnlineMechanism {
        /// The mechanism.
        mechanism: Mechanism,
    },
    /// The validity period is empty or 2^31 seconds or more.
    #[error(
        "the signatures would never be valid: the expiration must be later than the inception, by less than 68 years"
    )]
    Period,
    /// The signatures would be expired at the time of signing.
    #[error(
        "the signatures would already be expired: set a later --expiration, or correct the time of signing (--now or the clock)"
    )]
    Expired,
    /// The key set needs a signature by a key whose private key was not given.
    #[error(
        "the {rtype} RRset needs a signature by the key-signing {}, whose private key was not given: \
        {reason}; sign the key set on the host that has this key (`nonesuch zone sign --only-keys`) and use \
        its output as the input here, provide the key, or remove its DNSKEY record",
        describe_keys(tags)
    )]
    AbsentKey {
        /// The type of the RRset.
        rtype: Rtype,
        /// Tags of the absent keys; a signature by one of them is required.
        tags: Vec<u16>,
        /// The reason why the signature of the first key is not used.
        reason: AbsentSignature,
    },
    /// The new version may be bogus for validators that have cached data of the previous version.
    #[error(
        "validating resolvers that have cached the previous version would treat the new version as bogus: \
        {}; add the keys of the previous version to the directory of --keys, or permit this with \
        --allow-unsafe-transition",
        list_faults(.0)
    )]
    UnsafeTransition(Vec<TransitionFault>),
    /// The jitter is not shorter than the remaining validity period.
    #[error("the jitter of {jitter} s is not less than the validity period of {period} s: reduce the jitter")]
    Jitter {
        /// The jitter in seconds.
        jitter: u32,
        /// Seconds of the validity period after the time of signing.
        period: u32,
    },
    /// The number of NSEC3 iterations is too high.
    #[error(
        "{iterations} NSEC3 iterations: at most {MAX_ITERATIONS} are supported, and RFC 9276 section 3.1 requires 0"
    )]
    Iterations {
        /// Number of iterations in the options.
        iterations: u16,
    },
    /// The NSEC3 salt is too long.
    #[error(
        "an NSEC3 salt of {octets} octets: at most 255 are possible, and RFC 9276 section 3.1 recommends no salt"
    )]
    Salt {
        /// Length of the salt in octets.
        octets: usize,
    },
    /// NSEC3 owner names do not fit below the apex.
    #[error("the zone name {zone} is too long for NSEC3, which prepends a hash of 33 octets to it: use NSEC")]
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
    /// A DNSKEY record of the zone has an algorithm with which no key signs (RFC 4035 §2.2).
    #[error(
        "the zone has the DNSKEY {tag} of algorithm {algorithm}, but no given key signs with this algorithm: \
        provide a key of this algorithm, remove the record, or remove foreign keys"
    )]
    ForeignKey {
        /// The key's tag.
        tag: u16,
        /// The key's algorithm.
        algorithm: Algorithm,
    },
    /// A DNSKEY record of the zone is too short.
    #[error("the zone has a malformed DNSKEY record: remove it")]
    MalformedDnskey,
    /// An RRset with its signatures does not fit in a message.
    #[error(transparent)]
    Zone(#[from] nonesuch_zone::ZoneFault),
    /// The names of the signed zone need more than 4 GiB, which 32-bit offsets do not permit.
    #[error("the signed zone would be too large: its names need more than 4 GiB")]
    TooLarge,
    /// The zone cannot be signed with NSEC5.
    #[error(transparent)]
    Nsec5(#[from] Nsec5Error),
    /// The previous zone has another apex.
    #[error(
        "the previous signed zone is {previous}, but the zone is {zone}: name the previous signed version of \
        {zone} with --previous"
    )]
    PreviousOfOtherZone {
        /// The zone to be signed.
        zone: Name,
        /// Apex of the previous zone.
        previous: Name,
    },
    /// New signatures would already be within the refresh window.
    #[error(
        "signatures that expire within {refresh} s are replaced, but some new signatures would already \
        expire in {min_validity} s: reduce the refresh window or the jitter, or increase the validity period"
    )]
    Refresh {
        /// The refresh window in seconds.
        refresh: u32,
        /// Minimum time from signing to the expiration of a new signature, in seconds.
        min_validity: u32,
    },
    /// A signature of the previous zone does not verify.
    #[error(
        "the previous signed zone is invalid (the first fault: {owner} {rtype}: the signature by key {tag} \
        does not verify): name another version with --previous, or sign without --previous; `nonesuch zone \
        verify` lists all faults"
    )]
    BadPrevious {
        /// Owner of the RRset.
        owner: Name,
        /// Its type.
        rtype: Rtype,
        /// Tag of the key.
        tag: u16,
    },
    /// The caller passed a change set without the previous zone.
    #[error("a change set needs the zone that it changes: name the previous signed zone with --previous")]
    NoPrevious,
    /// A part of the previous zone cannot be loaded.
    #[error("the previous signed zone (--previous): {0}")]
    Previous(#[from] nonesuch_zone::CompiledError),
    /// A change does not match the zone that it changes.
    #[error(transparent)]
    Change(#[from] nonesuch_zone::change::ChangeError),
    /// A signature could not be generated.
    #[error(transparent)]
    Crypto(#[from] nonesuch_crypto::SignError),
}

/// The message of [`SignWarning::SerialNotIncreased`].
fn describe_serial(policy: SerialPolicy, old: u32, wanted: u32, used: u32) -> String {
    if policy == SerialPolicy::Keep {
        format!(
            "this version differs from the previous signed zone, but its serial {wanted} does not come after \
            {old} (RFC 1982): using serial {used}; increase the serial in the zone file, or sign with \
            --serial increment"
        )
    } else {
        format!(
            "the serial {wanted} of the policy {policy} does not come after the serial {old} of the zone (RFC \
            1982): using serial {used}"
        )
    }
}

/// Formats the fault of an RRset of this type, with the violated rule.
struct DescribeFault<'r>(Rtype, &'r FaultReason);

impl fmt::Display for DescribeFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let misplaced = match self.0 {
            Rtype::DS => "a DS record is not allowed at the apex (RFC 4035 section 2.4)",
            Rtype::DNSKEY => "a zone key is allowed only at the apex of its zone (RFC 4034 section 2.1.1)",
            Rtype::CDS | Rtype::CDNSKEY => {
                "the record is allowed only at the apex or at a signalling name (RFC 7344 section 4.1, RFC 9615 section 4.1)"
            }
            Rtype::NSEC5KEY => "an NSEC5 key is allowed only at the apex (draft-vcelak-nsec5 section 5)",
            Rtype::NSEC5PROOF => {
                "proofs are allowed only in responses, not in a zone (draft-vcelak-nsec5 section 7)"
            }
            _ => return self.1.fmt(f),
        };
        match self.1 {
            FaultReason::UnexpectedRecords => f.write_str(misplaced),
            reason => reason.fmt(f),
        }
    }
}
