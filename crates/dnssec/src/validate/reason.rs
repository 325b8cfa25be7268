//! The reasons for which an answer is Bogus, Insecure or Indeterminate.

use super::budget::Limit;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::message::{MessageError, Rcode};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, Rtype};

/// The reason for which an answer is Bogus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BogusReason {
    // Keys.
    /// The number of DNSKEY records exceeds
    /// [`ValidationLimits::dnskeys`](super::ValidationLimits::dnskeys).
    #[error("the zone has {0} DNSKEY records, which is more than the limit")]
    TooManyKeys(usize),
    /// No DNSKEY record is a usable zone key. If all zone keys have unsupported algorithms, the
    /// zone is Insecure instead.
    #[error("no DNSKEY record is a well-formed zone key of a supported algorithm")]
    NoUsableKey,

    /// The DNSKEY record that a DS record or a signature names has no zone key flag (RFC 4034 §2.1.1).
    #[error("the DNSKEY record that would match has no zone key flag")]
    NoZoneKeyFlag,
    /// No DNSKEY record matches a DS record of the zone, or its trust anchor.
    #[error("no DNSKEY record matches a DS record of the zone or its trust anchor")]
    NoMatchingKey,

    // Signatures (RFC 4035 §5.3.1).
    /// An RRset has no signature.
    #[error("the {rtype} RRset at {owner} has no signature")]
    NoSignature {
        /// Owner of the RRset.
        owner: Name,
        /// Type of the RRset.
        rtype: Rtype,
    },
    /// An RRSIG record is malformed.
    #[error("a signature over {0} is malformed")]
    MalformedSignature(Rtype),
    /// The signer of the signature is not the zone.
    #[error("a signature over {covered} names {signer} as its signer, which is not the zone")]
    WrongSigner {
        /// Type that the signature covers.
        covered: Rtype,
        /// Signer field of the signature.
        signer: Name,
    },
    /// The signature has more labels than the owner, or fewer than the apex.
    #[error(
        "a signature over {covered} has {labels} labels, which matches neither the owner nor a wildcard of the zone"
    )]
    WrongLabels {
        /// Type that the signature covers.
        covered: Rtype,
        /// Labels field of the signature.
        labels: u8,
    },
    /// The expiration of the signature precedes its inception.
    #[error("a signature over {0} expires before its inception")]
    EmptyPeriod(Rtype),
    /// The signature has expired.
    #[error("the signature over {covered} expired at {}", Rfc3339(u64::from(*expiration)))]
    Expired {
        /// Type that the signature covers.
        covered: Rtype,
        /// Last second of validity, in seconds since 1970 modulo 2^32.
        expiration: u32,
    },
    /// The signature is not valid yet.
    #[error("the signature over {covered} is not valid before {}", Rfc3339(u64::from(*inception)))]
    NotYetValid {
        /// Type that the signature covers.
        covered: Rtype,
        /// First second of validity, in seconds since 1970 modulo 2^32.
        inception: u32,
    },
    /// No trusted key has the key tag and algorithm of the signature.
    #[error(
        "the signature over {covered} is by key {tag} of algorithm {algorithm}, which is not in the DNSKEY RRset"
    )]
    UnknownKey {
        /// Type that the signature covers.
        covered: Rtype,
        /// Key tag of the signature.
        tag: u16,
        /// Algorithm of the signature.
        algorithm: Algorithm,
    },
    /// The signature does not verify with the key and the records.
    #[error("the signature over {covered} by key {tag} does not verify")]
    BadSignature {
        /// Type that the signature covers.
        covered: Rtype,
        /// Key tag of the signature.
        tag: u16,
    },
    /// The owner of a required RRset is not in the zone.
    #[error("{0} is not in the zone")]
    OutsideZone(Name),
    /// The RRset is a DS RRset at the apex, which only the parent zone can sign (RFC 4035 §5.2).
    #[error("the answer has a DS RRset at the apex, which belongs to the parent zone")]
    ApexDs,
    /// An RRset was expanded from a wildcard, and its type or use does not permit this (NSEC,
    /// NSEC3, NSEC5, SOA, DS of a referral, DNAME of an alias).
    #[error("the {rtype} RRset at {owner} was expanded from a wildcard, which is not allowed here")]
    ExpandedFromWildcard {
        /// Owner of the RRset.
        owner: Name,
        /// Type of the RRset.
        rtype: Rtype,
    },

    // Aliases (RFC 6672 §5.3.1).
    /// A name has more than one CNAME or DNAME record.
    #[error("{0} has more than one CNAME or DNAME record")]
    SeveralAliases(Name),
    /// An alias has a malformed target.
    #[error("the CNAME or DNAME record at {0} is malformed")]
    MalformedAlias(Name),
    /// An unsigned CNAME record differs from the record that the DNAME record synthesises.
    #[error("the CNAME record at {0} does not match the DNAME record above it")]
    ForgedAlias(Name),
    /// The records do not prove the response code.
    #[error("the response code {0} contradicts the records")]
    RcodeNotProved(Rcode),

    // Denials: selection of the records.
    /// The response has no record that denies existence.
    #[error("the answer has no record that denies existence")]
    NoDenial,
    /// The response has denial records of two mechanisms, other than NSEC3 and NSEC5.
    #[error("the answer has denial records of two mechanisms")]
    MixedDenial,
    /// A chain record or NSEC5PROOF record is malformed.
    #[error("a {0} record is malformed")]
    MalformedDenial(Rtype),
    /// An owner has more than one NSEC, NSEC3 or NSEC5 record.
    #[error("more than one {0} record has the same owner")]
    SeveralDenials(Rtype),
    /// The owner of an NSEC3 or NSEC5 record is not a hash directly below the apex.
    #[error("the owner of a {0} record is not a hash directly below the apex")]
    OwnerNotAHash(Rtype),
    /// The next name of an NSEC record is outside the zone, or does not follow its owner and is not
    /// the apex.
    #[error("the next name of the NSEC record at {0} is outside the zone or precedes the owner")]
    BadNextName(Name),
    /// The hash algorithm of an NSEC3 record is unknown (RFC 5155 §8.1).
    #[error("NSEC3 hash algorithm {0} is unknown")]
    UnknownHash(u8),
    /// An NSEC3 (RFC 5155 §8.2) or NSEC5 record has unknown flags.
    #[error("a {rtype} record has unknown flags ({flags})")]
    UnknownFlags {
        /// Type of the record.
        rtype: Rtype,
        /// Flags field of the record, including the known flags.
        flags: u8,
    },
    /// The next hash of a record does not have the length of the hash.
    #[error("the next hash of a {rtype} record has {octets} octets")]
    NextHashLength {
        /// Type of the record.
        rtype: Rtype,
        /// Length of the next hash in octets.
        octets: usize,
    },
    /// The NSEC3 records have different parameters (RFC 5155 §8.2).
    #[error("the NSEC3 records differ in their parameters")]
    MixedParameters,
    /// The number of NSEC3 records exceeds
    /// [`ValidationLimits::nsec3_records`](super::ValidationLimits::nsec3_records).
    #[error("{0} NSEC3 records, which is more than the limit")]
    TooManyNsec3(usize),
    /// The number of NSEC3 iterations exceeds
    /// [`ValidationLimits::max_iterations_insecure`](super::ValidationLimits::max_iterations_insecure)
    /// (RFC 9276 §3.2).
    #[error("{0} NSEC3 iterations, which is above the limit for the status insecure")]
    TooManyIterations(u16),

    // Denials: content of the records.
    /// The denied name exists.
    #[error("{0} exists")]
    NameExists(Name),
    /// No record covers the name or the next closer name.
    #[error("no record covers {0}")]
    NotCovered(Name),
    /// No record matches the name for which the response denies a type.
    #[error("no record matches {0}")]
    NotMatched(Name),
    /// No record matches an ancestor of the denied name (RFC 5155 §8.3).
    #[error("no record matches a closest encloser of {0}")]
    NoEncloser(Name),
    /// The response does not deny the wildcard that would match.
    #[error("the wildcard {0} is not denied")]
    WildcardNotDenied(Name),
    /// The wildcard that would match exists.
    #[error("the wildcard {0} exists")]
    WildcardExists(Name),
    /// The Wildcard flag of the closest encloser's NSEC5 record is set.
    #[error("the closest encloser {0} has a wildcard below it")]
    WildcardFlag(Name),
    /// The queried type exists.
    #[error("{name} has {rtype} records")]
    TypeExists {
        /// The name.
        name: Name,
        /// The type.
        rtype: Rtype,
    },
    /// The name is an alias.
    #[error("{0} is an alias")]
    AliasExists(Name),
    /// A record from the parent side of a zone cut proves nothing about types other than DS at the
    /// zone cut, or about names below it (RFC 6840 §4.1).
    #[error(
        "the record of {0} belongs to a delegation and proves nothing about other types at this name or about names below it"
    )]
    ParentSideRecord(Name),
    /// A record from the child side of a zone cut proves nothing about DS (RFC 6840 §4.1).
    #[error(
        "the record of {0} belongs to the apex of this zone and proves nothing about DS records, which are in the parent zone"
    )]
    ChildSideRecord(Name),
    /// An ancestor of the name has a DNAME record (RFC 6672 §5.3.4.1).
    #[error("{0} has a DNAME record: the denial of names below it is not valid")]
    BelowDname(Name),
    /// The NS bit of the owner of an alleged delegation is clear.
    #[error("{0} is not a delegation")]
    NotADelegation(Name),
    /// The DS bit of an allegedly unsigned delegation is set.
    #[error("the delegation {0} is signed")]
    SignedDelegation(Name),
    /// The covering record does not have the Opt-Out flag.
    #[error("the record that covers {0} is not opt-out")]
    NotOptOut(Name),
    /// The bit map has NXNAME together with other types (RFC 9824 §2).
    #[error("{0} has other types in addition to NXNAME")]
    NxnameWithTypes(Name),

    // NSEC5.
    /// The zone has no NSEC5KEY record.
    #[error("the zone has no NSEC5 key")]
    NoNsec5Key,
    /// No NSEC5KEY record is usable.
    #[error("no NSEC5 key of the zone has a supported algorithm and is well-formed")]
    NoUsableNsec5Key,
    /// Two NSEC5KEY records have the same tag.
    #[error("two NSEC5 keys of the zone have tag {0}")]
    SameNsec5Tag(u16),
    /// The number of NSEC5KEY records exceeds
    /// [`ValidationLimits::nsec5_keys`](super::ValidationLimits::nsec5_keys).
    #[error("the zone has {0} NSEC5 keys, which is more than the limit")]
    TooManyNsec5Keys(usize),
    /// An NSEC5 record has a signature with an algorithm number that resolvers without NSEC5 know.
    #[error("an NSEC5 record is signed with algorithm {0}, which is not an alias algorithm number")]
    NotAliasAlgorithm(Algorithm),
    /// The response has no NSEC5 proof for a name.
    #[error("there is no NSEC5 proof for {0}")]
    NoProof(Name),
    /// An NSEC5 proof has a key tag that no key of the zone has.
    #[error("an NSEC5 proof has key tag {0}, but the zone has no such NSEC5 key")]
    UnknownProofKey(u16),
    /// An NSEC5 proof does not verify for its owner.
    #[error("the NSEC5 proof for {0} does not verify")]
    BadProof(Name),
    /// The proof and the NSEC5 record have different keys.
    #[error("the NSEC5 proof for {0} and the NSEC5 records have different keys")]
    ProofKeyMismatch(Name),
}

impl BogusReason {
    /// Whether a required record is missing, as opposed to invalid. If a record was ignored, the
    /// reason for ignoring it is more informative.
    pub(crate) const fn is_missing_record(&self) -> bool {
        matches!(
            self,
            Self::NoDenial
                | Self::NotCovered(_)
                | Self::NotMatched(_)
                | Self::NoEncloser(_)
                | Self::WildcardNotDenied(_)
                | Self::NoProof(_)
        )
    }

    /// Returns the code of the extended DNS error (RFC 8914 §4, RFC 9276 §3.2, the IANA registry of
    /// extended DNS errors for 25).
    #[must_use]
    pub const fn extended_error(&self) -> u16 {
        match self {
            Self::EmptyPeriod(_) => 25,
            Self::Expired { .. } => 7,
            Self::NotYetValid { .. } => 8,
            Self::UnknownKey { .. } | Self::NoUsableKey | Self::NoMatchingKey => 9,
            Self::NoSignature { .. } => 10,
            Self::NoZoneKeyFlag => 11,
            Self::TooManyIterations(_) => 27,
            _ if self.is_missing_record() => 12,
            _ => 6,
        }
    }
}

/// The reason for which an answer is Insecure: no supported key can verify it, it is a referral to
/// an unsigned zone, or its denial is not a full proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsecureReason {
    /// All keys have unsupported algorithms (RFC 4035 §5.2, RFC 6840 §5.2).
    #[error("the zone is signed only with unsupported algorithms")]
    UnsupportedAlgorithms,
    /// All DS records have unsupported digests (RFC 4509 §3, RFC 6840 §5.2).
    #[error("the DS records of the zone have only unsupported digests")]
    UnsupportedDigests,
    /// An opt-out record covers the name. An unsigned delegation may exist there (RFC 5155 §9.2).
    #[error("an opt-out record covers the name")]
    OptOut,
    /// The number of NSEC3 iterations exceeds
    /// [`ValidationLimits::max_iterations_secure`](super::ValidationLimits::max_iterations_secure)
    /// (RFC 9276 §3.2).
    #[error("{0} NSEC3 iterations, which is above the limit for validation")]
    TooManyIterations(u16),
    /// The zone is below an unsigned delegation, or the answer is a referral to such a zone.
    #[error("the delegation is not signed")]
    UnsignedDelegation,
    /// No trust anchor is at or above the name (RFC 4035 §4.3).
    #[error("no trust anchor is above the name")]
    NoTrustAnchor,
    /// A negative trust anchor is at or above the name (RFC 7646).
    #[error("a negative trust anchor ends the validation")]
    NegativeTrustAnchor,
}

impl InsecureReason {
    /// Returns the code of the extended DNS error (RFC 8914 §4, RFC 9276 §3.2); `None` if there is
    /// no suitable code.
    #[must_use]
    pub const fn extended_error(self) -> Option<u16> {
        match self {
            Self::UnsupportedAlgorithms => Some(1),
            Self::UnsupportedDigests => Some(2),
            Self::TooManyIterations(_) => Some(27),
            // IANA registry of extended DNS errors.
            Self::NegativeTrustAnchor => Some(33),
            Self::OptOut | Self::UnsignedDelegation | Self::NoTrustAnchor => None,
        }
    }
}

/// The reason for which an answer is Indeterminate: the message is not an answer to the question,
/// cannot be validated, or requires too much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndeterminateReason {
    /// The caller has given no DNSKEY record of the zone.
    #[error("no trusted key of the zone")]
    NoKeys,
    /// The question name is not in the zone.
    #[error("the question name is not in the zone")]
    OutsideZone,
    /// The message is malformed.
    #[error("{0}")]
    Malformed(MessageError),
    /// The message is not a response.
    #[error("the message is not a response")]
    NotAResponse,
    /// The message is truncated.
    #[error("the message is truncated: repeat the query over TCP")]
    Truncated,
    /// The message answers another question.
    #[error("the message answers another question")]
    OtherQuestion,
    /// The response code is neither NOERROR nor NXDOMAIN nor YXDOMAIN.
    #[error("the response code is {0}")]
    Rcode(Rcode),
    /// The type is a meta-type, which no zone has.
    #[error("{0} is a meta type and cannot be validated")]
    MetaType(Rtype),
    /// The question is for RRSIG records, which are not signed themselves.
    #[error("the question is for RRSIG records, which are not signed themselves")]
    RrsigQuestion,
    /// The work for the client query exceeds a limit.
    #[error("validation exceeds the limit for {0}")]
    Limit(Limit),
}
