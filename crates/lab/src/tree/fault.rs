//! The faults that a tree can contain, each with the result that a validator should report.

mod table;

pub use table::{FAULTS, FaultEntry};

use std::fmt;
use std::str::FromStr;

/// A planted fault. [`FAULTS`] has its name, its meaning and the expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The signatures expired a week before the time of the tree.
    ExpiredSignature,
    /// The signatures become valid a week after the time of the tree.
    SignatureNotYetValid,
    /// The signatures expire before their inception.
    ReversedValidity,
    /// The last octet of each signature is wrong.
    WrongSignature,
    /// The second half of each signature is missing.
    MalformedSignature,
    /// The RRsets have no signatures.
    MissingSignature,
    /// The Labels field of the signatures exceeds the number of labels of the owner.
    WrongLabels,
    /// The Labels field of the signatures is one less than the number of labels of the owner, as in an
    /// answer from a wildcard; the apex is not affected.
    TooFewLabels,
    /// The Signer's Name field of the signatures is not the apex.
    WrongSigner,
    /// The Signer's Name field of the signatures is the name above the apex.
    SignerIsParent,
    /// The Type Covered field of the signatures is not the type of the RRset.
    WrongTypeCovered,
    /// The signatures are valid for the same records at another name.
    SignatureOfOtherName,
    /// The Original TTL field of the signatures was changed after signing.
    ChangedOriginalTtl,
    /// The TTL of the RRsets exceeds the Original TTL of their signatures, which only limits the time
    /// in caches.
    TtlAboveOriginal,
    /// The signatures have the unknown algorithm number 200, which no DNSKEY record has.
    UnknownSignatureAlgorithm,
    /// The signatures have a key tag that no DNSKEY record has.
    UnknownKeyTag,
    /// Each RRset has four signatures: one with a wrong octet, one that has expired, one with a key
    /// tag that no DNSKEY record has, and a valid one.
    OneValidSignature,
    /// KeyTrap (CVE-2023-50387): many DNSKEY records with the key tag of the signing key, and many
    /// signatures with this tag, none of which is valid.
    CollidingKeyTags,
    /// The zone has no DNSKEY RRset.
    MissingDnskey,
    /// The DNSKEY RRset has no signature.
    UnsignedDnskey,
    /// The DNSKEY RRset is signed only by the key that signs the data, which no DS record matches.
    DnskeySignedByZsk,
    /// The DNSKEY records do not have the Zone Key flag; the DS records match them.
    NoZoneKeyFlag,
    /// The Protocol field of the DNSKEY records is 4; the DS records match them.
    WrongProtocol,
    /// The keys with the SEP flag are revoked (RFC 5011); the DS records match the revoked form.
    RevokedKey,
    /// No DNSKEY record has the SEP flag, which validators ignore; the DS records match them.
    NoSepFlag,
    /// The DNSKEY records have a reserved flag, which validators ignore; the DS records match them.
    ReservedKeyFlags,
    /// The key that the DS records match signs all RRsets.
    DataSignedByKsk,
    /// Another DNSKEY record has the key tag of the key that signs the data.
    CollidingKeyTag,
    /// The zone also has a DNSKEY record with the unknown algorithm number 200, which signs nothing.
    UnknownAlgorithmKey,
    /// The zone is not signed, and the parent has DS records for it.
    DsForUnsignedZone,
    /// The DS records are for a key that the zone does not publish.
    DsMatchesNoKey,
    /// The DS records match the key that signs the data, which does not sign the DNSKEY RRset.
    DsForZsk,
    /// The parent also has a DS record for a key that the zone does not publish.
    StandbyDs,
    /// The DS records have the tag of the key, and a wrong digest.
    WrongDsDigest,
    /// The DS records have a wrong key tag, and the digest of the key.
    WrongDsTag,
    /// The DS records have another known algorithm number than the key, and the digest of the key.
    DsAlgorithmMismatch,
    /// The DS records have SHA-1 digests only.
    Sha1Ds,
    /// The DS records have SHA-384 digests only.
    Sha384Ds,
    /// The DS records with SHA-1 are wrong, and those with SHA-256 are right.
    WrongSha1Ds,
    /// The DS records with SHA-256 are wrong, and those with SHA-1 are right.
    WrongSha256Ds,
    /// The DS records have the unknown algorithm number 200.
    UnknownDsAlgorithm,
    /// The DS records have the unknown digest type 200.
    UnknownDsDigest,
    /// The parent also has a DS record with the unknown algorithm number 200.
    KnownAndUnknownDsAlgorithm,
    /// The parent also has a DS record with the unknown digest type 200.
    KnownAndUnknownDsDigest,
    /// The DS records with SHA-256 are wrong; the others have the unknown digest type 200.
    WrongAndUnknownDsDigest,
    /// Six DS records with the tag of the key, five of which have wrong digests.
    ManyDs,
    /// Many DS records with the tag of the key, all with wrong digests.
    CollidingDs,
    /// The DS RRset has no signature.
    UnsignedDs,
    /// The signatures over the DS RRset expired a week before the time of the tree.
    ExpiredDs,
    /// The parent has neither DS records nor a denial of them.
    MissingDsDenial,
    /// The parent has no DS records, and the bit map of the delegation lists DS.
    DsBitWithoutDs,
    /// The parent has no DS records, and the bit map of the delegation does not list NS.
    NoNsBit,
    /// The parent has no DS records, and the bit map of the delegation lists SOA, as the record of the
    /// apex of the child does.
    SoaBitAtDelegation,
    /// The NSEC, NSEC3 or NSEC5 records are missing.
    MissingDenial,
    /// The NSEC, NSEC3 or NSEC5 records have no signatures.
    UnsignedDenial,
    /// The signatures over the NSEC, NSEC3 or NSEC5 records expired a week before the time of the
    /// tree.
    ExpiredDenial,
    /// The next name or next hash of each NSEC, NSEC3 or NSEC5 record is the first one after the
    /// owner, so that no record covers a name.
    WrongNextName,
    /// The next name of each NSEC record is outside the zone.
    NextNameOutsideZone,
    /// The record that denies the wildcard below the apex is missing.
    MissingWildcardDenial,
    /// Only the records of the apex and of the denied wildcard below it exist, so that no record
    /// covers the name.
    MissingNextCloser,
    /// The NSEC3 record of the apex is missing.
    MissingClosestEncloser,
    /// The bit map of one NSEC, NSEC3 or NSEC5 record lists a type that the name does not have.
    LyingBitmap,
    /// The data of `mail` and of the generated names are missing; their NSEC, NSEC3 or NSEC5 records
    /// exist.
    RemovedData,
    /// The denial of names below `www` comes from a record that lists NS and not SOA, as the record of
    /// a delegation does.
    DelegationBitAboveName,
    /// The denial of names below `www` comes from a record that lists DNAME.
    DnameBitAboveName,
    /// The NSEC3 records have the unknown hash algorithm 2.
    UnknownNsec3Hash,
    /// The NSEC3 records have unknown flags.
    UnknownNsec3Flags,
    /// The NSEC3 record of the apex has another number of iterations than the others.
    MixedNsec3Parameters,
    /// The zone has 51 NSEC3 iterations.
    Nsec3Iterations51,
    /// The zone has 200 NSEC3 iterations: more than validators compute (RFC 9276 §3.2).
    Nsec3Iterations,
    /// The zone has 500 NSEC3 iterations.
    Nsec3Iterations500,
    /// The NSEC3 records have 501 iterations.
    Nsec3Iterations501,
    /// The NSEC3 records have 2,500 iterations.
    ExcessiveNsec3Iterations,
    /// Closest encloser proofs of names with many labels, at 50 iterations (CVE-2023-50868).
    DeepNsec3,
    /// Answers from a wildcard come without the proof that no closer match exists.
    WildcardWithoutProof,
    /// The Labels field of the signatures over `*.wild` is that of a wildcard below the apex, and the
    /// name `wild` exists.
    WildcardTooHigh,
    /// The nameserver of the zone, according to the parent, is the server of the parent.
    LameDelegation,
    /// No server listens on the address of the nameserver.
    UnreachableServer,
    /// The parent has no address of the nameserver, whose name is in the zone.
    MissingGlue,
    /// The CNAME record at `alias` has no signature.
    UnsignedCname,
    /// A DNAME record and the CNAME record that follows from it, which is not a fault.
    Dname,
    /// The DNAME record has no signature.
    UnsignedDname,
    /// The unsigned CNAME record next to the DNAME record has another target than the DNAME record
    /// gives it.
    ForgedCname,
    /// Denials have an NSEC record in addition to the NSEC3 records.
    MixedDenial,
    /// Two CNAME records refer to each other.
    CnameLoop,
    /// An RRset of 150 records, which is not a fault: validators have limits near 100.
    LargeRrset,
}

/// What a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultScope {
    /// The signatures over the selected RRsets, or over all RRsets if none is selected.
    Signatures,
    /// The DNSKEY records of the zone.
    Keys,
    /// The DS records in the parent.
    Ds,
    /// The signatures over the DS records in the parent, or the denial of DS records there.
    Delegation,
    /// The NS or address records in the parent, or the server.
    Servers,
    /// The chain of denial records.
    Denial,
    /// Records that the fault adds.
    Data,
    /// The responses of [`Tree::respond`](super::Tree::respond). Other servers respond correctly.
    Responses,
}

/// The expected result of the resolution of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The answer is Secure.
    Secure,
    /// The answer is Insecure.
    Insecure,
    /// The answer is Bogus; a resolver returns SERVFAIL.
    Bogus,
    /// The name cannot be resolved, or only with more work than a validator does; a resolver
    /// returns SERVFAIL.
    Failure,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Secure => "secure",
            Self::Insecure => "insecure",
            Self::Bogus => "bogus",
            Self::Failure => "failure",
        })
    }
}

impl Fault {
    /// The row of [`FAULTS`].
    #[must_use]
    pub fn entry(self) -> &'static FaultEntry {
        // A test checks that the rows have the order of the variants.
        &FAULTS[self as usize]
    }

    /// What the fault changes.
    #[must_use]
    pub fn scope(self) -> FaultScope {
        self.entry().scope
    }
}

impl fmt::Display for Fault {
    /// Writes the name in descriptions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().name)
    }
}

/// The text is not the name of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault '{text}': known are {}", FAULTS.iter().map(|row| row.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownFault {
    text: String,
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let found = FAULTS.iter().find(|row| row.name.eq_ignore_ascii_case(text));
        found.map(|row| row.fault).ok_or_else(|| UnknownFault { text: text.to_owned() })
    }
}
