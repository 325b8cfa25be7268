//! Faults and warnings of a verification.

use crate::denial::Mechanism;
use crate::keys::describe_keys;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError};
use nonesuch_crypto::{Algorithm, KeyError};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::zonemd::ZonemdHash;
use std::fmt;

/// A fault of a zone: the name and type that it concerns, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{owner} {}: {reason}", TypeOrNone(*rtype))]
pub struct Fault {
    /// Owner of the RRset. If a name lacks an NSEC3 record, this is the name itself.
    pub owner: Name,
    /// Type of the RRset; `None` if the fault does not concern one RRset.
    pub rtype: Option<Rtype>,
    /// Description of the fault.
    pub reason: FaultReason,
}

struct TypeOrNone(Option<Rtype>);

impl fmt::Display for TypeOrNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rtype) => fmt::Display::fmt(&rtype, f),
            None => f.write_str("(zone)"),
        }
    }
}

/// Minimum and maximum of a count. Displays one number, or a range if they differ.
struct CountRange(u64, u64);

impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 { write!(f, "{}", self.0) } else { write!(f, "{} to {}", self.0, self.1) }
    }
}

/// Displays a list of types, or `(none)`.
struct Types<'t>(&'t [Rtype]);

impl fmt::Display for Types<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(none)");
        }
        let types: Vec<String> = self.0.iter().map(Rtype::to_string).collect();
        f.write_str(&types.join(" "))
    }
}

/// Why the zone must not have a signature (RFC 4035 §2.2, RFC 6672 §2.4): the data that it covers
/// must not be signed, or do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsignedData {
    /// The name has no records of the covered type.
    #[error("there is a signature over records of this type, but the name has no such records")]
    Missing,
    /// The covered records are signatures.
    #[error("there is a signature over RRSIG records, which are never signed")]
    Signatures,
    /// The name is a zone cut, where the parent has authority only over DS and denial records.
    #[error("there is a signature at a delegation, where only DS and denial records are signed")]
    Delegation,
    /// The name is below a zone cut.
    #[error("there is a signature below a zone cut, over glue or occluded data")]
    BelowCut,
    /// The name is below a DNAME record.
    #[error("there is a signature below a DNAME record, over occluded data")]
    BelowDname,
}

/// The reason of a fault of an RRset or a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultReason {
    /// The apex has no well-formed SOA record.
    #[error("there is no well-formed SOA record at the apex")]
    NoSoa,
    /// The apex has no NS RRset (RFC 2181 §6.1).
    #[error("there is no NS record at the apex: add the name servers of the zone (RFC 2181 section 6.1)")]
    NoNs,
    /// The records of one RRset have different TTLs in the zone file or transfer (RFC 2181 §5.2).
    #[error(
        "the records of the RRset have different TTLs: use one TTL for all of them (RFC 2181 section 5.2)"
    )]
    MixedTtls,
    /// The signatures over one RRset have different TTLs. All must have the TTL of the RRset (RFC
    /// 4034 §3).
    #[error(
        "the signatures have different TTLs: all of them must have the TTL of the RRset (RFC 4034 section 3)"
    )]
    MixedSignatureTtls,
    /// The apex has no DNSKEY record: the zone is not signed, or has lost its keys.
    #[error(
        "there is no DNSKEY record at the apex: the zone is not signed, or its DNSKEY records are missing"
    )]
    NoDnskey,
    /// No DNSKEY record is usable for verification.
    #[error("no DNSKEY record is a zone key of a supported algorithm")]
    NoUsableKey,
    /// A DNSKEY record of a known algorithm does not contain a valid public key.
    #[error("the DNSKEY {tag} has no valid public key of algorithm {algorithm}: {error}")]
    MalformedKey {
        /// Tag of the key.
        tag: u16,
        /// Algorithm of the key.
        algorithm: Algorithm,
        /// Error of the public key.
        error: KeyError,
    },
    /// No trust anchor or DS record matches a key that signs the DNSKEY RRset.
    #[error("no given DS record or trust anchor matches a key that signs the DNSKEY RRset")]
    AnchorMismatch,
    /// The RRset has no signature.
    #[error("there is no signature")]
    NoSignature,
    /// The RRset has no signature of an algorithm of the DNSKEY RRset (RFC 4035 §2.2).
    #[error(
        "there is no signature of algorithm {algorithm}, which is in the DNSKEY RRset (RFC 4035 section 2.2)"
    )]
    MissingAlgorithm {
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The signature does not verify with the key and the records.
    #[error("the signature by key {tag} ({algorithm}) does not verify")]
    BadSignature {
        /// Tag of the key.
        tag: u16,
        /// Algorithm of the key.
        algorithm: Algorithm,
    },
    /// The signature has expired.
    #[error("the signature by key {tag} expired at {}", Rfc3339(u64::from(*expiration)))]
    Expired {
        /// Tag of the key.
        tag: u16,
        /// Last second of validity, in seconds since 1970 modulo 2^32.
        expiration: u32,
    },
    /// The signature is not valid yet.
    #[error("the signature by key {tag} is not valid before {}", Rfc3339(u64::from(*inception)))]
    NotYetValid {
        /// Tag of the key.
        tag: u16,
        /// First second of validity, in seconds since 1970 modulo 2^32.
        inception: u32,
    },
    /// The expiration of the signature precedes its inception.
    #[error("the signature by key {tag} is never valid: its expiration is earlier than its inception")]
    EmptyPeriod {
        /// Tag of the key.
        tag: u16,
    },
    /// The signer of the signature is not the zone.
    #[error("the signature by key {tag} has the signer {signer}, which is not the zone")]
    WrongSigner {
        /// Tag of the key.
        tag: u16,
        /// Signer field of the signature.
        signer: Name,
    },
    /// The Labels field of the signature does not match the owner.
    #[error("the signature by key {tag} has the label count {found}, but the owner has {expected} labels")]
    WrongLabels {
        /// Tag of the key.
        tag: u16,
        /// Number of labels of the owner.
        expected: u8,
        /// Labels field of the signature.
        found: u8,
    },
    /// The TTL of the RRset is less than the Original TTL field of the signature.
    #[error("the signature by key {tag} has the original TTL {original}, but the RRset has the TTL {ttl}")]
    TtlBelowOriginal {
        /// Tag of the key.
        tag: u16,
        /// Original TTL field of the signature, in seconds.
        original: u32,
        /// TTL of the RRset, in seconds.
        ttl: u32,
    },
    /// The TTL of the RRset is greater than the Original TTL field of the signature.
    #[error(
        "the TTL {ttl} of the RRset is greater than the original TTL {original} in the signature by key {tag}"
    )]
    TtlAboveOriginal {
        /// Tag of the key.
        tag: u16,
        /// Original TTL field of the signature, in seconds.
        original: u32,
        /// TTL of the RRset, in seconds.
        ttl: u32,
    },
    /// The TTL of the signatures differs from the TTL of the RRset (RFC 4034 §3).
    #[error("the signatures have the TTL {found}, but the RRset has the TTL {expected} (RFC 4034 section 3)")]
    WrongSignatureTtl {
        /// TTL of the RRset, in seconds.
        expected: u32,
        /// TTL of its signatures, in seconds.
        found: u32,
    },
    /// The key that made the signature is not in the DNSKEY RRset.
    #[error("the signature is by key {tag} ({algorithm}), which is not in the DNSKEY RRset")]
    UnknownKey {
        /// Tag of the key.
        tag: u16,
        /// Algorithm of the key.
        algorithm: Algorithm,
    },
    /// The RDATA of a DNSKEY, RRSIG, NSEC, NSEC3, NSEC3PARAM, NSEC5, NSEC5KEY or ZONEMD record is
    /// malformed.
    #[error("the record is malformed")]
    MalformedRecord,
    /// A signature covers data for which the zone is not authoritative, or no data at all.
    #[error("{0}")]
    UnexpectedSignature(UnsignedData),
    /// A DNSSEC record is in the wrong place: a record of the chain at an occluded name;
    /// NSEC3PARAM, DNSKEY, CDS, CDNSKEY or NSEC5KEY away from the apex; DS at the apex; or
    /// NSEC5PROOF, which belongs only in responses.
    #[error(
        "DNSSEC record where none is allowed: below a zone cut or DNAME, outside the apex, or DS at the apex"
    )]
    UnexpectedRecords,
    /// A CDS or CDNSKEY record with algorithm 0, which requests the removal of all DS records, has
    /// other fields than RFC 8078 §4 specifies, or is not the only record of its RRset.
    #[error(
        "a record with algorithm 0 requests the removal of all DS records, but is not the only record or does not have the form of RFC 8078 section 4"
    )]
    InvalidDsDeletion,
    /// The CDS RRset and the CDNSKEY RRset refer to different keys (RFC 7344 §4).
    #[error("the CDS and CDNSKEY records name different keys (RFC 7344 section 4)")]
    CdsCdnskeyMismatch,
    /// If the parent applies the CDS or CDNSKEY RRset, an algorithm has no DS record for a key that
    /// signs the DNSKEY RRset (RFC 7344 §4.1).
    #[error(
        "a parent that uses these records breaks the delegation: for at least one algorithm, no record \
        refers to a key that signs the DNSKEY RRset (RFC 7344 section 4.1)"
    )]
    CdsBreaksDelegation,
    /// A name has more than one NSEC record, more than one NSEC3 record of one chain, or more than
    /// one NSEC5 record.
    #[error("there is more than one record of the chain at this name")]
    MultipleRecords,
    /// The name does not have a type that the bit map has.
    #[error("the bit map has {0}, but the name does not have this type")]
    BitmapExtra(Rtype),
    /// The bit map does not have a type that the name has.
    #[error("the name has {0}, but the bit map does not have this type")]
    BitmapMissing(Rtype),
    /// A record of the chain does not have the owner of the next record, or its hash, as next name.
    #[error("the chain is broken: the next name is {expected}, but the record has {found}")]
    ChainBroken {
        /// Owner of the next record.
        expected: Name,
        /// Next name in the record.
        found: Name,
    },
    /// A name of the zone has no NSEC record.
    #[error("the name has no NSEC record")]
    ChainMissing,
    /// A record of the chain exists for a name that is not in the zone, or an NSEC5 record is at a
    /// name that cannot be in the chain.
    #[error("the chain has a record here, but the zone has no such name")]
    ChainExtra,
    /// A name of the zone has no NSEC3 record.
    #[error("the name has no NSEC3 record (it would be at {hashed})")]
    Nsec3Missing {
        /// Owner name of the missing record.
        hashed: Name,
    },
    /// An opt-out record covers a name that is not an insecure delegation (RFC 5155 §6).
    #[error(
        "the name has no record in the chain (it would be at {hashed}), and opt-out applies only to insecure delegations"
    )]
    OptOutOverSecure {
        /// Owner name of the missing record.
        hashed: Name,
    },
    /// An NSEC3 record has parameters that no NSEC3PARAM record has.
    #[error("no usable NSEC3PARAM record at the apex has the parameters of this NSEC3 record")]
    Nsec3ParamMismatch,
    /// The zone has NSEC3 records and no usable NSEC3PARAM record.
    #[error("there is no NSEC3PARAM record with flags 0 and hash algorithm 1 at the apex")]
    NoNsec3Param,
    /// An NSEC3 record has undefined flags (RFC 5155 §8.2).
    #[error("the NSEC3 record has unknown flags ({0}): validators ignore it")]
    UnknownNsec3Flags(u8),
    /// The number of iterations is so high that validators treat the zone as insecure (RFC 9276
    /// §3.2).
    #[error("{0} NSEC3 iterations: validators treat such a zone as insecure (RFC 9276 section 3.2)")]
    TooManyIterations(u16),
    /// The zone has records of more than one denial mechanism.
    #[error("the zone has records of more than one of NSEC, NSEC3 and NSEC5")]
    MixedDenial,
    /// The zone is signed and has no NSEC, NSEC3 or NSEC5 records.
    #[error("the zone is signed, but has neither NSEC nor NSEC3 nor NSEC5 records")]
    NoDenial,
    /// The serial of a ZONEMD record differs from the serial of the SOA record (RFC 8976 §4).
    #[error(
        "the serial of the ZONEMD record is {found}, but the serial of the SOA record is {expected} (RFC 8976 section 4)"
    )]
    ZonemdSerial {
        /// Serial of the ZONEMD record.
        found: u32,
        /// Serial of the SOA record.
        expected: u32,
    },
    /// Several ZONEMD records have the same scheme and hash algorithm. None of them is used (RFC
    /// 8976 §2.2).
    #[error(
        "there is more than one ZONEMD record of scheme 1 and hash algorithm {hash}: all of them are ignored"
    )]
    ZonemdDuplicate {
        /// Hash algorithm of the records.
        hash: ZonemdHash,
    },
    /// The digest of a ZONEMD record does not have the length that its hash algorithm requires (RFC
    /// 8976 §2.2.4).
    #[error("the {hash} digest of the ZONEMD record has {found} octets, not {}", hash.octets())]
    ZonemdLength {
        /// Hash algorithm of the record.
        hash: ZonemdHash,
        /// Length of the digest in octets.
        found: usize,
    },
    /// The digest of a ZONEMD record cannot be compared with that of the zone. The publisher
    /// computed it over records with different TTLs in one RRset. This program stores each RRset
    /// with the lowest of these TTLs (RFC 8976 §3.3, RFC 2181 §5.2).
    #[error(
        "the {hash} digest of the ZONEMD record cannot be checked: the zone has RRsets whose records have different TTLs (RFC 2181 section 5.2)"
    )]
    ZonemdMixedTtls {
        /// Hash algorithm of the record.
        hash: ZonemdHash,
    },
    /// The digest of a ZONEMD record differs from the digest of the zone (RFC 8976 §4).
    #[error("the {hash} digest of the ZONEMD record does not match the records of the zone")]
    ZonemdMismatch {
        /// Hash algorithm of the record.
        hash: ZonemdHash,
    },
    /// The zone has NSEC5 records and no NSEC5KEY record.
    #[error("there is no NSEC5KEY record at the apex: validators cannot verify proofs")]
    NoNsec5Key,
    /// No NSEC5KEY record has a supported algorithm.
    #[error("no NSEC5KEY record has a key of a supported algorithm")]
    NoUsableNsec5Key,
    /// An NSEC5KEY record of a known algorithm does not contain a valid public key.
    #[error("the NSEC5KEY {tag} has no valid public key: {error}")]
    MalformedNsec5Key {
        /// Tag of the key.
        tag: u16,
        /// Error of the public key.
        error: VrfKeyError,
    },
    /// Two NSEC5KEY records have the same tag.
    #[error(
        "two NSEC5KEY records have tag {tag}: the denials of the zone prove nothing; generate another VRF key"
    )]
    SameNsec5Tag {
        /// The common tag.
        tag: u16,
    },
    /// An NSEC5KEY record contains the key of a DNSKEY or CDNSKEY record, with which the zone can
    /// be signed.
    #[error(
        "the NSEC5KEY {tag} is also the DNSKEY {dnskey}: anyone who obtains the VRF key of the server could sign the zone; generate another VRF key"
    )]
    SigningVrfKey {
        /// Tag of the NSEC5KEY record.
        tag: u16,
        /// Tag of the DNSKEY or CDNSKEY record.
        dnskey: u16,
    },
    /// Keys or signatures of a zone with NSEC5 have an algorithm number that resolvers without
    /// NSEC5 know.
    #[error(
        "{count} records have algorithm {algorithm}, the first of them here: with NSEC5, all records need \
        alias algorithm numbers, so that resolvers without NSEC5 treat the zone as insecure and not as bogus"
    )]
    NotAliasAlgorithm {
        /// The algorithm.
        algorithm: Algorithm,
        /// Number of records of this type with the algorithm.
        count: u64,
    },
    /// An NSEC5 record has undefined flags.
    #[error("the NSEC5 record has unknown flags ({0}): validators ignore it")]
    UnknownNsec5Flags(u8),
    /// The Next Hashed Owner Name field of an NSEC5 record does not have the length of a hash. The
    /// value is its length in octets.
    #[error("the next hashed owner name of the NSEC5 record has {0} octets, not 32: validators ignore it")]
    Nsec5NextLength(u8),
    /// An NSEC5 record has a key tag that no usable NSEC5KEY record of the zone has.
    #[error("the NSEC5 record has the key tag {tag}, but no usable NSEC5KEY has that tag")]
    UnknownNsec5Key {
        /// Key tag of the record.
        tag: u16,
    },
    /// An NSEC5 record has another key than the rest of the chain. All records of a chain must have
    /// the same key.
    #[error(
        "the NSEC5 record has the key tag {tag}, but the chain has {chain}: no proof matches this record"
    )]
    OtherNsec5Key {
        /// Key tag of the record.
        tag: u16,
        /// Key tag of the chain: the tag that most records have.
        chain: u16,
    },
    /// The opt-out flag of an NSEC5 record differs from that of the majority of the records.
    #[error("the opt-out flag of this NSEC5 record differs from the rest of the chain")]
    MixedOptOut,
    /// The wildcard flag is clear, and the name has a wildcard directly below it.
    #[error(
        "a wildcard exists below {name}, but the Wildcard flag of its NSEC5 record is clear: an attacker can forge NXDOMAIN"
    )]
    WildcardFlagClear {
        /// The name to which the record belongs.
        name: Name,
    },
    /// The wildcard flag is set, and the name has no wildcard directly below it.
    #[error("no wildcard exists below {name}, but the Wildcard flag of its NSEC5 record is set")]
    WildcardFlagSet {
        /// The name to which the record belongs.
        name: Name,
    },
    /// A name of the zone has no NSEC5 record.
    #[error("the name has no NSEC5 record (it would be at {hashed})")]
    Nsec5Missing {
        /// Owner name of the missing record.
        hashed: Name,
    },
    /// The number of NSEC5 records does not match the number of names that the chain must have.
    #[error("the NSEC5 chain has {records} records, but the names of the zone require {}", CountRange(*min_names, *max_names))]
    ChainCount {
        /// Number of chain records.
        records: u64,
        /// Number of names that must be in the chain.
        min_names: u64,
        /// Number of names that may be in the chain.
        max_names: u64,
    },
    /// The number of NSEC5 records of one kind does not match the number of names of that kind. A
    /// kind is a set of types together with the value of the Wildcard flag.
    #[error(
        "{records} NSEC5 records have the types {} {}, but {} names of the zone have them",
        Types(types), if *wildcard { "and a wildcard" } else { "and no wildcard" }, CountRange(*min_names, *max_names)
    )]
    ChainKindCount {
        /// Types in the bit maps of these records.
        types: Vec<Rtype>,
        /// Whether the wildcard flag of these records is set.
        wildcard: bool,
        /// Number of these records.
        records: u64,
        /// Number of names of this kind that must be in the chain.
        min_names: u64,
        /// Number of names of this kind that may be in the chain.
        max_names: u64,
    },
    /// The stored proofs belong to another zone.
    #[error("the stored proofs belong to the zone {zone}: no stored proof is checked")]
    ProofsOfOtherZone {
        /// Apex of that other zone.
        zone: Name,
    },
    /// The stored proofs belong to another key than the chain.
    #[error(
        "the stored proofs belong to the key {tag}, which is not the key of the chain: sign the zone again, which regenerates the proofs"
    )]
    ProofsOfOtherKey {
        /// Tag of the key of the proofs.
        tag: u16,
    },
    /// A name of the chain has no stored proof.
    #[error("the name has no stored proof: sign the zone again, which generates it")]
    ProofMissing,
    /// A stored proof exists for a name that is not in the chain.
    #[error("there is a stored proof for a name that is not in the chain")]
    ProofExtra,
    /// A stored proof proves another name of the chain.
    #[error("the stored proof does not belong to this name, but to the name whose record is at {hashed}")]
    ProofOfOtherName {
        /// Owner of the NSEC5 record of the name that it proves.
        hashed: Name,
    },
    /// A stored proof does not verify with the key and the name.
    #[error("the stored proof does not verify for this key and name")]
    BadProof,
    /// The hash that is stored with a proof differs from the hash that the proof proves.
    #[error("the hash that is stored with the proof is not the output of the proof")]
    StoredHashMismatch,
}

/// An anomaly of a zone that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyWarning {
    /// A key cannot be used: its algorithm is not supported, or its RSA modulus or exponent is
    /// outside the supported range. Its signatures are not verified, as if its algorithm were
    /// unknown.
    #[error("key {tag} cannot be used: {error}; its signatures are not verified")]
    UnusableKey {
        /// Tag of the key.
        tag: u16,
        /// Why the key cannot be used; [`KeyError::is_unusable`] holds.
        error: KeyError,
    },
    /// A DNSKEY record does not have the zone key flag, or its protocol is not 3. It is ignored
    /// (RFC 4034 §2.1).
    #[error("DNSKEY {tag} is not a zone key (flags {flags}) and is ignored")]
    NotAZoneKey {
        /// Tag of the key.
        tag: u16,
        /// Flags of the key.
        flags: u16,
    },
    /// A revoked key does not sign the DNSKEY RRset. Validators therefore do not treat it as
    /// revoked (RFC 5011 §2.1).
    #[error("key {tag} is revoked but does not sign the DNSKEY RRset: validators ignore the revocation")]
    RevokedNotSigning {
        /// Tag of the key.
        tag: u16,
    },
    /// Keys with the SEP flag are published, and none of them signs the DNSKEY RRset.
    #[error(
        "no key with the SEP flag signs the DNSKEY RRset (published: {}): if the DS records of the parent refer to such a key, the zone is bogus",
        describe_keys(tags)
    )]
    SepKeysNotSigning {
        /// Tags of these keys.
        tags: Vec<u16>,
    },
    /// A signature cannot be used, and the other signatures over the RRset are sufficient.
    #[error("{owner} {rtype}: {reason}; other signatures are valid")]
    SurplusSignature {
        /// Owner of the RRset.
        owner: Name,
        /// Type of the RRset.
        rtype: Rtype,
        /// Why the signature cannot be used.
        reason: FaultReason,
    },
    /// A DS record or trust anchor matches no key that signs the DNSKEY RRset.
    #[error("DS record or trust anchor {tag} ({algorithm}) matches no key that signs the DNSKEY RRset")]
    AnchorUnused {
        /// Tag of the key to which it refers.
        tag: u16,
        /// Algorithm of the key to which it refers.
        algorithm: Algorithm,
    },
    /// A key has an alias algorithm number, which is only for zones with NSEC5, and the zone has
    /// another chain.
    #[error(
        "key {tag} ({algorithm}) has an algorithm number for zones with NSEC5, but the denial mechanism of \
        this zone is {mechanism}: resolvers without NSEC5 treat the zone as insecure; generate a key without \
        --nsec5, or sign with --denial nsec5"
    )]
    AliasAlgorithmWithoutNsec5 {
        /// Tag of the key.
        tag: u16,
        /// Algorithm of the key.
        algorithm: Algorithm,
        /// Denial mechanism of the zone.
        mechanism: Mechanism,
    },
    /// The TTL of chain records differs from the TTL that RFC 9077 §3 requires. Signers that
    /// predate RFC 9077 use the MINIMUM field of the SOA record.
    #[error(
        "{count} {rtype} records have the TTL {found}, but RFC 9077 requires {expected}; the first is at {first}"
    )]
    ChainTtl {
        /// NSEC, NSEC3 or NSEC5.
        rtype: Rtype,
        /// TTL that RFC 9077 requires, in seconds.
        expected: u32,
        /// TTL of the records, in seconds.
        found: u32,
        /// Number of records with this TTL.
        count: u64,
        /// Owner of the first of these records.
        first: Name,
    },
    /// The NSEC3 chain has additional iterations or a salt (RFC 9276 §3.1).
    #[error(
        "NSEC3 with {iterations} iterations and {salt} octets of salt: RFC 9276 section 3.1 requires 0 iterations and recommends no salt"
    )]
    Nsec3Parameters {
        /// Number of additional iterations.
        iterations: u16,
        /// Length of the salt in octets.
        salt: u8,
    },
    /// An NSEC5KEY record has an unsupported algorithm and cannot be used.
    #[error("the NSEC5KEY {tag} has the unsupported NSEC5 algorithm {algorithm} and is not used")]
    UnusableNsec5Key {
        /// Tag of the key.
        tag: u16,
        /// Algorithm of the key.
        algorithm: VrfAlgorithm,
    },
    /// Names were not matched to NSEC5 records, because neither stored proofs nor the VRF key were
    /// available.
    #[error(
        "names were not matched to NSEC5 records, because this needs the stored proofs or the VRF key; only \
        the numbers, types and flags of the records were compared"
    )]
    NamesNotMatched,
    /// The stored proofs were generated for another version of the zone.
    #[error("the stored proofs were generated for serial {stored}, but the zone has serial {zone}")]
    ProofsSerial {
        /// Serial for which they were generated.
        stored: u32,
        /// Serial of the zone.
        zone: u32,
    },
    /// An NSEC3PARAM record with flags other than 0 or another hash algorithm than 1 is ignored
    /// (RFC 5155 §4.1).
    #[error("an NSEC3PARAM record with hash algorithm {algorithm} and flags {flags} is not used")]
    UnusedNsec3Param {
        /// Hash algorithm of the record.
        algorithm: u8,
        /// Flags of the record.
        flags: u8,
    },
    /// A ZONEMD record has an unsupported scheme or hash algorithm and is not verified (RFC 8976
    /// §4).
    #[error(
        "the ZONEMD record of scheme {scheme} and hash algorithm {hash} is not supported and is not checked"
    )]
    UnsupportedZonemd {
        /// Scheme of the record.
        scheme: u8,
        /// Hash algorithm of the record.
        hash: u8,
    },
    /// A ZONEMD record is not usable, and another one verifies.
    #[error("ZONEMD: {reason}; another ZONEMD record verifies")]
    UnusableZonemd {
        /// Why the record is not usable.
        reason: FaultReason,
    },
    /// ZONEMD records away from the apex have no meaning (RFC 8976 §2).
    #[error(
        "{count} names other than the apex have ZONEMD records, which are not checked; the first is at {first}"
    )]
    MisplacedZonemd {
        /// The first owner of such a record.
        first: Name,
        /// Number of owners of such records.
        count: u64,
    },
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// All faults, in canonical order of owners, then by type.
    pub faults: Vec<Fault>,
    /// All warnings.
    pub warnings: Vec<VerifyWarning>,
    /// Number of signatures that were verified and are valid.
    pub signatures_verified: u64,
    /// Number of signatures that were not verified again, because the previous verified version of
    /// the zone has the same signatures over the same records.
    pub signatures_kept: u64,
    /// Whether the DNSKEY RRset differs from that of the previous version; all signatures were then
    /// verified. `false` if no previous version was given.
    pub keys_changed: bool,
    /// Number of RRsets for which the zone is authoritative.
    pub rrsets: u64,
    /// Denial mechanism of the zone; `None` if it is unsigned or has no chain.
    pub mechanism: Option<Mechanism>,
    /// Hash algorithms of the ZONEMD records that verify.
    pub zonemd: Vec<ZonemdHash>,
}

impl Report {
    /// Whether the report has no fault. It may have warnings.
    #[must_use]
    pub const fn has_no_faults(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns the first fault of the ZONEMD digest if the zone has ZONEMD records and none of them
    /// verifies (RFC 8976 §4); `None` otherwise. A digest that cannot be checked because of
    /// different TTLs is such a fault, because an attacker who modifies a transfer could add such a
    /// TTL.
    #[must_use]
    pub fn digest_fault(&self) -> Option<&Fault> {
        let concerns_digest = |fault: &&Fault| {
            matches!(
                fault.reason,
                FaultReason::ZonemdSerial { .. }
                    | FaultReason::ZonemdDuplicate { .. }
                    | FaultReason::ZonemdLength { .. }
                    | FaultReason::ZonemdMixedTtls { .. }
                    | FaultReason::ZonemdMismatch { .. }
            )
        };
        self.faults.iter().find(concerns_digest)
    }

    /// Formats the number of faults: `1 fault`, `2 faults`.
    #[must_use]
    pub fn format_fault_count(&self) -> String {
        format_fault_count(self.faults.len())
    }
}

/// Formats a number of faults: `1 fault`, `2 faults`.
#[must_use]
pub fn format_fault_count(count: usize) -> String {
    if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") }
}

/// Collects the faults, warnings and counts of a [`Report`].
#[derive(Debug, Default)]
pub(crate) struct Findings {
    faults: Vec<Fault>,
    warnings: Vec<VerifyWarning>,
    pub(super) signatures_verified: u64,
    pub(super) signatures_kept: u64,
    pub(super) keys_changed: bool,
    pub(super) rrsets: u64,
    pub(super) zonemd: Vec<ZonemdHash>,
}

impl Findings {
    pub(crate) fn fault(&mut self, owner: NameRef<'_>, rtype: Option<Rtype>, reason: FaultReason) {
        self.faults.push(Fault { owner: owner.to_name(), rtype, reason });
    }

    pub(crate) fn warn(&mut self, warning: VerifyWarning) {
        self.warnings.push(warning);
    }

    pub(crate) const fn has_no_faults(&self) -> bool {
        self.faults.is_empty()
    }

    /// Warns if `found`, the TTL of a chain record, differs from `expected`. All records of one
    /// type with the same TTL share one warning, which counts them.
    pub(crate) fn check_chain_ttl(&mut self, owner: NameRef<'_>, rtype: Rtype, expected: u32, found: u32) {
        if found == expected {
            return;
        }
        for warning in &mut self.warnings {
            match warning {
                VerifyWarning::ChainTtl { rtype: warned_type, found: warned_ttl, count, .. }
                    if *warned_type == rtype && *warned_ttl == found =>
                {
                    *count += 1;
                    return;
                }
                _ => {}
            }
        }
        let first = owner.to_name();
        self.warn(VerifyWarning::ChainTtl { rtype, expected, found, count: 1, first });
    }

    /// Adds the findings of a part of the zone. `keys_changed` and `zonemd` concern the whole zone;
    /// they are not taken from `other`.
    pub(super) fn append(&mut self, mut other: Self) {
        self.faults.append(&mut other.faults);
        self.warnings.append(&mut other.warnings);
        self.signatures_verified += other.signatures_verified;
        self.signatures_kept += other.signatures_kept;
        self.rrsets += other.rrsets;
    }

    pub(crate) fn into_report(mut self, mechanism: Option<Mechanism>) -> Report {
        // The sort is stable: the faults of one RRset stay in the order in which the checks found
        // them.
        self.faults.sort_by(|a, b| a.owner.cmp(&b.owner).then(a.rtype.cmp(&b.rtype)));
        Report {
            faults: self.faults,
            warnings: self.warnings,
            signatures_verified: self.signatures_verified,
            signatures_kept: self.signatures_kept,
            keys_changed: self.keys_changed,
            rrsets: self.rrsets,
            mechanism,
            zonemd: self.zonemd,
        }
    }
}
