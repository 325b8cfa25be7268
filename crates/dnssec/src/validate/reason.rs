//! Why an answer is bogus, insecure or left undecided.

use super::budget::Limit;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::message::{MessageError, Rcode};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, Rtype};

/// Why an answer is bogus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BogusReason {
    // Keys.
    /// More DNSKEY records than are looked at.
    #[error("the zone has {0} DNSKEY records, more than are looked at")]
    TooManyKeys(usize),
    /// No zone key that can be used, and not for its algorithm alone.
    #[error("no DNSKEY record is a well-formed zone key of a supported algorithm")]
    NoUsableKey,

    // Signatures (RFC 4035 §5.3.1).
    /// An RRset has no signature.
    #[error("the {rtype} RRset at {owner} has no signature")]
    NoSignature {
        /// Its owner.
        owner: Name,
        /// Its type.
        rtype: Rtype,
    },
    /// An RRSIG record is malformed.
    #[error("a signature over {0} is malformed")]
    MalformedSignature(Rtype),
    /// The signer is not the zone.
    #[error("a signature over {covered} names {signer} as its signer, which is not the zone")]
    WrongSigner {
        /// The type that it covers.
        covered: Rtype,
        /// The signer that it names.
        signer: Name,
    },
    /// More labels than the owner has, or fewer than the apex.
    #[error(
        "a signature over {covered} has {labels} labels, which fits neither the owner nor a wildcard of the zone"
    )]
    WrongLabels {
        /// The type that it covers.
        covered: Rtype,
        /// Its Labels field.
        labels: u8,
    },
    /// The time of validity ends before it begins.
    #[error("a signature over {0} ends before it begins")]
    EmptyPeriod(Rtype),
    /// The signature has expired.
    #[error("the signature over {covered} expired at {}", Rfc3339(u64::from(*expiration)))]
    Expired {
        /// The type that it covers.
        covered: Rtype,
        /// Its last second.
        expiration: u32,
    },
    /// The signature is not valid yet.
    #[error("the signature over {covered} is valid from {} on only", Rfc3339(u64::from(*inception)))]
    NotYetValid {
        /// The type that it covers.
        covered: Rtype,
        /// Its first second.
        inception: u32,
    },
    /// No trusted key has tag and algorithm.
    #[error("the signature over {covered} is by key {tag} of algorithm {algorithm}, which the zone has not")]
    UnknownKey {
        /// The type that it covers.
        covered: Rtype,
        /// The key tag.
        tag: u16,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The signature does not fit.
    #[error("the signature over {covered} by key {tag} does not fit")]
    BadSignature {
        /// The type that it covers.
        covered: Rtype,
        /// The key tag.
        tag: u16,
    },
    /// The owner of an RRset that is needed is not in the zone.
    #[error("{0} is not in the zone")]
    OutsideZone(Name),
    /// A DS RRset at the apex, which the parent alone can vouch for (RFC 4035 §5.2).
    #[error("a DS RRset at the apex is the parent's to sign")]
    ApexDs,
    /// An RRset that may not come from a wildcard does (NSEC, NSEC3, NSEC5, SOA, DS of a referral, DNAME of an alias).
    #[error("the {rtype} RRset at {owner} was expanded from a wildcard")]
    Expanded {
        /// Its owner.
        owner: Name,
        /// Its type.
        rtype: Rtype,
    },

    // Aliases (RFC 6672 §5.3.1).
    /// More than one CNAME or DNAME record at a name.
    #[error("{0} has more than one alias")]
    SeveralAliases(Name),
    /// An alias with a malformed target.
    #[error("the alias at {0} is malformed")]
    MalformedAlias(Name),
    /// An unsigned CNAME record is not what the DNAME record makes.
    #[error("the CNAME record at {0} is not what the DNAME record above it makes")]
    ForgedAlias(Name),
    /// The response code is not what the records prove.
    #[error("the response code {0} is not what the records prove")]
    RcodeNotProved(Rcode),

    // Denials: which records were there.
    /// There is no record that denies anything.
    #[error("the answer has no record that denies existence")]
    NoDenial,
    /// Records of two mechanisms.
    #[error("the answer denies existence by two mechanisms at once")]
    MixedDenial,
    /// A record of a chain is malformed.
    #[error("a {0} record is malformed")]
    MalformedDenial(Rtype),
    /// More than one record of a chain at one owner.
    #[error("more than one {0} record has one owner")]
    SeveralDenials(Rtype),
    /// The owner of an NSEC3 or NSEC5 record is no hash directly below the apex.
    #[error("the owner of a {0} record is no hash directly below the apex")]
    NotAHash(Rtype),
    /// The next name of an NSEC record is outside the zone, or does not come after its owner and is not the apex.
    #[error("the NSEC record at {0} leads out of the zone or backwards")]
    BadNextName(Name),
    /// The hash algorithm of an NSEC3 record is unknown (RFC 5155 §8.1).
    #[error("NSEC3 hash algorithm {0} is unknown")]
    UnknownHash(u8),
    /// Unknown flags of an NSEC3 (RFC 5155 §8.2) or NSEC5 record.
    #[error("a {rtype} record has unknown flags ({flags})")]
    UnknownFlags {
        /// The type of the record.
        rtype: Rtype,
        /// All its flags.
        flags: u8,
    },
    /// The next hash has not the length of the hash.
    #[error("the next hash of a {rtype} record has {octets} octets")]
    NextLength {
        /// The type of the record.
        rtype: Rtype,
        /// Octets found.
        octets: usize,
    },
    /// NSEC3 records of several parameters (RFC 5155 §8.2).
    #[error("the NSEC3 records differ in their parameters")]
    MixedParameters,
    /// More NSEC3 records than are looked at.
    #[error("{0} NSEC3 records, more than are looked at")]
    TooManyNsec3(usize),
    /// More NSEC3 iterations than can be taken even for insecure (RFC 9276 §3.2).
    #[error("{0} NSEC3 iterations, far too many")]
    Iterations(u16),

    // Denials: what they say.
    /// The name exists.
    #[error("{0} exists")]
    NameExists(Name),
    /// No record covers the name, or next closer name.
    #[error("no record covers {0}")]
    NotCovered(Name),
    /// No record matches the name whose types are denied.
    #[error("no record matches {0}")]
    NotMatched(Name),
    /// No record matches a name above the one denied (RFC 5155 §8.3).
    #[error("no record matches a closest encloser of {0}")]
    NoEncloser(Name),
    /// The wildcard that would match is not shown to be absent.
    #[error("the wildcard {0} is not denied")]
    WildcardNotDenied(Name),
    /// The wildcard that would match exists.
    #[error("the wildcard {0} exists")]
    WildcardExists(Name),
    /// The Wildcard flag of the closest encloser's NSEC5 record is set.
    #[error("the closest encloser {0} has a wildcard below it")]
    WildcardFlag(Name),
    /// The type asked for exists.
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
    /// A record of the parent's side of a cut says nothing of what is at or below it (RFC 6840 §4.1).
    #[error("the record of {0} is that of a delegation and says nothing of what is there or below")]
    ParentSide(Name),
    /// A record of the child's side of a cut says nothing of DS (RFC 6840 §4.1).
    #[error("the record of {0} is that of the zone's own apex and says nothing of DS")]
    ChildSide(Name),
    /// A DNAME stands above (RFC 6672 §5.3.4.1).
    #[error("{0} has a DNAME record: nothing below it can be denied")]
    BelowDname(Name),
    /// No NS bit where a delegation is said to be.
    #[error("{0} is no delegation")]
    NotADelegation(Name),
    /// The DS bit is set where a delegation is said to be unsigned.
    #[error("the delegation {0} is signed")]
    SignedDelegation(Name),
    /// The record that covers has not the Opt-Out flag.
    #[error("the record that covers {0} is not opt-out")]
    NotOptOut(Name),
    /// NXNAME beside other types (RFC 9824 §2).
    #[error("{0} has types beside NXNAME")]
    NxnameWithTypes(Name),

    // NSEC5.
    /// The zone has no NSEC5KEY record.
    #[error("the zone has no NSEC5 key")]
    NoNsec5Key,
    /// No NSEC5KEY record can be used.
    #[error("no NSEC5 key of the zone is of a known algorithm and well formed")]
    NoUsableNsec5Key,
    /// Two NSEC5KEY records have one tag.
    #[error("two NSEC5 keys of the zone have tag {0}")]
    SameNsec5Tag(u16),
    /// More NSEC5KEY records than are looked at.
    #[error("the zone has {0} NSEC5 keys, more than are looked at")]
    TooManyNsec5Keys(usize),
    /// An NSEC5 record is signed under a number that resolvers without NSEC5 know.
    #[error("an NSEC5 record is signed under algorithm {0}, which is no alias")]
    NotAnAlias(Algorithm),
    /// There is no proof for a name.
    #[error("there is no NSEC5 proof for {0}")]
    NoProof(Name),
    /// A proof names a key that the zone has not.
    #[error("an NSEC5 proof names key {0}, which the zone has not")]
    UnknownProofKey(u16),
    /// A proof does not fit its owner.
    #[error("the NSEC5 proof for {0} does not fit")]
    BadProof(Name),
    /// Proof and record are under different keys.
    #[error("the NSEC5 proof for {0} is under another key than the records")]
    OtherProofKey(Name),
}

impl BogusReason {
    /// Whether something is missing, rather than there and wrong: where a record was passed over, that is the better reason.
    pub(crate) const fn is_missing(&self) -> bool {
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

    /// The extended DNS error (RFC 8914 §4, RFC 9276 §3.2).
    #[must_use]
    pub const fn extended_error(&self) -> u16 {
        match self {
            Self::Expired { .. } => 7,
            Self::NotYetValid { .. } => 8,
            Self::UnknownKey { .. } | Self::NoUsableKey => 9,
            Self::NoSignature { .. } => 10,
            Self::Iterations(_) => 27,
            _ if self.is_missing() => 12,
            _ => 6,
        }
    }
}

/// Why an answer is insecure: proved to be of a part of the tree that is not signed, or not proved in full by design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsecureReason {
    /// All keys are of algorithms that are not supported (RFC 4035 §5.2, RFC 6840 §5.2).
    #[error("the zone is signed with algorithms alone that are not supported")]
    UnsupportedAlgorithms,
    /// An opt-out record covers the name: an unsigned delegation may be there (RFC 5155 §9.2).
    #[error("an opt-out record covers the name")]
    OptOut,
    /// More NSEC3 iterations than are computed (RFC 9276 §3.2).
    #[error("{0} NSEC3 iterations, more than are computed")]
    Iterations(u16),
    /// The answer is a referral to a zone that is not signed.
    #[error("the delegation is not signed")]
    UnsignedDelegation,
}

impl InsecureReason {
    /// The extended DNS error (RFC 8914 §4, RFC 9276 §3.2), where there is one.
    #[must_use]
    pub const fn extended_error(self) -> Option<u16> {
        match self {
            Self::UnsupportedAlgorithms => Some(1),
            Self::Iterations(_) => Some(27),
            Self::OptOut | Self::UnsignedDelegation => None,
        }
    }
}

/// Why nothing was decided: what came is no answer to the question, cannot be validated at all, or would take too much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndeterminateReason {
    /// There is no trusted key.
    #[error("there is no trusted key of the zone")]
    NoKeys,
    /// The question is not of the zone.
    #[error("the question name is not in the zone")]
    OutsideZone,
    /// The message cannot be read.
    #[error("{0}")]
    Malformed(MessageError),
    /// The message is no response.
    #[error("the message is no response")]
    NotAResponse,
    /// The message is cut off.
    #[error("the message is truncated: ask again over TCP")]
    Truncated,
    /// The message answers another question.
    #[error("the message answers another question")]
    OtherQuestion,
    /// The response code says neither that there is an answer nor that there is none.
    #[error("the response code is {0}")]
    Rcode(Rcode),
    /// The type is one that no zone has.
    #[error("{0} is no type of data")]
    MetaType(Rtype),
    /// Signatures are not signed.
    #[error("signatures were asked for, which nothing signs")]
    Signatures,
    /// The work for one query is bounded.
    #[error("validating takes too much work: {0}")]
    Limit(Limit),
}

/// What ends a validation before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Bogus(BogusReason),
    Undecided(IndeterminateReason),
}

impl From<BogusReason> for Refusal {
    fn from(reason: BogusReason) -> Self {
        Self::Bogus(reason)
    }
}

impl From<IndeterminateReason> for Refusal {
    fn from(undecided: IndeterminateReason) -> Self {
        Self::Undecided(undecided)
    }
}

impl From<Limit> for Refusal {
    fn from(limit: Limit) -> Self {
        Self::Undecided(IndeterminateReason::Limit(limit))
    }
}
