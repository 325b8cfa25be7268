//! What verifying found.

use crate::denial::Mechanism;
use crate::keys::describe_keys;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError};
use nonesuch_crypto::{Algorithm, KeyError};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::zonemd::ZonemdHash;
use std::fmt;

/// A fault of a zone: where, and what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{owner} {}: {reason}", TypeOrNone(*rtype))]
pub struct Fault {
    /// Owner of the RRset; of a name that lacks an NSEC3 record, the name itself.
    pub owner: Name,
    /// Type of the RRset, where it is about one.
    pub rtype: Option<Rtype>,
    /// What is wrong.
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

/// A number, or from one number to another.
struct Range(u64, u64);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 { write!(f, "{}", self.0) } else { write!(f, "{} to {}", self.0, self.1) }
    }
}

/// Types, or that there are none.
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

/// What is wrong with an RRset or a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultReason {
    /// There is no SOA record.
    #[error("there is no well-formed SOA record at the apex")]
    NoSoa,
    /// There is no NS RRset at the apex (RFC 2181 §6.1).
    #[error("there is no NS record at the apex: every zone has name servers (RFC 2181 section 6.1)")]
    NoNs,
    /// Records of one RRset have different TTLs in the zone file or transfer (RFC 2181 §5.2).
    #[error("the records have different TTLs: give all of them one TTL (RFC 2181 section 5.2)")]
    MixedTtls,
    /// Signatures over one RRset have different TTLs; all have that of the RRset (RFC 4034 §3).
    #[error("the signatures have different TTLs: all of them have the TTL of the RRset (RFC 4034 section 3)")]
    MixedSignatureTtls,
    /// There is no DNSKEY record: the zone is not signed, or has lost its keys.
    #[error("there is no DNSKEY record at the apex: the zone is not signed, or has lost its keys")]
    NoDnskey,
    /// No DNSKEY record can verify anything.
    #[error("no DNSKEY record is a zone key of an algorithm that is supported")]
    NoUsableKey,
    /// A DNSKEY record of a known algorithm holds no key.
    #[error("the DNSKEY {tag} does not hold a public key of algorithm {algorithm}: {error}")]
    MalformedKey {
        /// The key's tag.
        tag: u16,
        /// The key's algorithm.
        algorithm: Algorithm,
        /// What is wrong with it.
        error: KeyError,
    },
    /// No trust anchor or DS record matches a key that signs the DNSKEY RRset.
    #[error("no given DS record or trust anchor matches a key that signs the DNSKEY RRset")]
    AnchorMismatch,
    /// The RRset has no signature.
    #[error("there is no signature")]
    NoSignature,
    /// The RRset has no signature of an algorithm that the DNSKEY RRset has (RFC 4035 §2.2).
    #[error(
        "there is no signature of algorithm {algorithm}, which the DNSKEY RRset has (RFC 4035 section 2.2)"
    )]
    MissingAlgorithm {
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The signature does not fit the key and the records.
    #[error("the signature by key {tag} ({algorithm}) does not fit the records")]
    BadSignature {
        /// The key's tag.
        tag: u16,
        /// The key's algorithm.
        algorithm: Algorithm,
    },
    /// The signature is not valid any more.
    #[error("the signature by key {tag} expired at {}", Rfc3339(u64::from(*expiration)))]
    Expired {
        /// The key's tag.
        tag: u16,
        /// Its last second of validity.
        expiration: u32,
    },
    /// The signature is not valid yet.
    #[error("the signature by key {tag} is not valid before {}", Rfc3339(u64::from(*inception)))]
    NotYetValid {
        /// The key's tag.
        tag: u16,
        /// Its first second of validity.
        inception: u32,
    },
    /// The signature expires before it begins to be valid.
    #[error("the signature by key {tag} is never valid: its expiration comes before its inception")]
    EmptyPeriod {
        /// The key's tag.
        tag: u16,
    },
    /// The signer is not the zone.
    #[error("the signature by key {tag} names {signer} as its signer, not the zone")]
    WrongSigner {
        /// The key's tag.
        tag: u16,
        /// The signer named.
        signer: Name,
    },
    /// The Labels field does not fit the owner.
    #[error("the signature by key {tag} says {found} labels, the owner has {expected}")]
    WrongLabels {
        /// The key's tag.
        tag: u16,
        /// Labels of the owner.
        expected: u8,
        /// Labels in the signature.
        found: u8,
    },
    /// The RRset's TTL is less than the signature says.
    #[error("the signature by key {tag} says a TTL of {original}, the RRset has {ttl}")]
    WrongOriginalTtl {
        /// The key's tag.
        tag: u16,
        /// TTL in the signature.
        original: u32,
        /// TTL of the RRset.
        ttl: u32,
    },
    /// The RRset's TTL is more than the signature allows.
    #[error("the RRset's TTL {ttl} is above the {original} that the signature by key {tag} allows")]
    TtlAboveOriginal {
        /// The key's tag.
        tag: u16,
        /// TTL in the signature.
        original: u32,
        /// TTL of the RRset.
        ttl: u32,
    },
    /// The signatures' TTL is not the RRset's (RFC 4034 §3).
    #[error("the signatures have TTL {found}, the RRset has {expected} (RFC 4034 section 3)")]
    WrongSignatureTtl {
        /// TTL of the RRset.
        expected: u32,
        /// TTL of its signatures.
        found: u32,
    },
    /// The signature is by a key that is not in the DNSKEY RRset.
    #[error("the signature is by key {tag} ({algorithm}), which is not in the DNSKEY RRset")]
    UnknownKey {
        /// The key's tag.
        tag: u16,
        /// The key's algorithm.
        algorithm: Algorithm,
    },
    /// RRSIG, NSEC, NSEC3 or NSEC3PARAM RDATA is malformed.
    #[error("the record is malformed")]
    MalformedRecord,
    /// There is a signature over what the zone has no authority over, or over nothing.
    #[error("there is a signature where none belongs: over glue, a delegation, occluded data or no data")]
    UnexpectedSignature,
    /// There are records of the chain at an occluded name; NSEC3PARAM, DNSKEY, CDS or CDNSKEY away from the apex; or
    /// DS at the apex.
    #[error(
        "there is a DNSSEC record where none belongs: below a zone cut or DNAME, away from the apex, or DS at the apex"
    )]
    UnexpectedRecords,
    /// A CDS or CDNSKEY record with algorithm 0 has other fields than RFC 8078 §4 gives it, or does not stand alone.
    #[error(
        "a record with algorithm 0 asks to remove all DS records, but is not alone or not as RFC 8078 section 4 has it"
    )]
    ChildDelete,
    /// The CDS and the CDNSKEY RRset name different keys (RFC 7344 §4).
    #[error("the CDS and CDNSKEY records name different keys (RFC 7344 section 4)")]
    ChildMismatch,
    /// A parent that takes the CDS or CDNSKEY RRset over leaves an algorithm without a DS record for a key that signs
    /// the DNSKEY RRset (RFC 7344 §4.1).
    #[error(
        "a parent that follows these records breaks the delegation: of some algorithm, none names a key that signs the DNSKEY RRset (RFC 7344 section 4.1)"
    )]
    ChildBreaksDelegation,
    /// There is more than one NSEC record, or NSEC3 record of one chain, at a name.
    #[error("there is more than one record of the chain at this name")]
    MultipleRecords,
    /// A type in the bit map is not there.
    #[error("the bit map has {0}, the name has not")]
    BitmapExtra(Rtype),
    /// A type that is there is not in the bit map.
    #[error("the name has {0}, the bit map has not")]
    BitmapMissing(Rtype),
    /// A record of the chain does not point to the next one.
    #[error("the chain is broken: the next name is {expected}, the record says {found}")]
    ChainBroken {
        /// Owner of the next record.
        expected: Name,
        /// What the record says.
        found: Name,
    },
    /// A name of the zone has no NSEC record.
    #[error("the name has no NSEC record")]
    ChainMissing,
    /// There is a record of the chain for a name that is not in the zone.
    #[error("the chain has a record here, but the zone has no such name")]
    ChainExtra,
    /// A name of the zone has no NSEC3 record.
    #[error("the name has no NSEC3 record (it would be at {hashed})")]
    Nsec3Missing {
        /// Where the record would stand.
        hashed: Name,
    },
    /// An opt-out record covers a name that is no insecure delegation (RFC 5155 §6).
    #[error(
        "the name has no record in the chain (it would be at {hashed}), and opt-out is for insecure delegations only"
    )]
    OptOutOverSecure {
        /// Where the record would stand.
        hashed: Name,
    },
    /// An NSEC3 record has parameters that no NSEC3PARAM record has.
    #[error("no usable NSEC3PARAM record at the apex has the parameters of this NSEC3 record")]
    Nsec3ParamMismatch,
    /// There are NSEC3 records and no NSEC3PARAM record that can be used.
    #[error("there is no NSEC3PARAM record with flags 0 and hash algorithm 1 at the apex")]
    NoNsec3Param,
    /// An NSEC3 record has flags that are not defined (RFC 5155 §8.2).
    #[error("the NSEC3 record has unknown flags ({0}): validators ignore it")]
    UnknownNsec3Flags(u8),
    /// So many iterations that no validator would follow (RFC 9276 §3.2).
    #[error("{0} NSEC3 iterations: validators take such a zone for insecure (RFC 9276 section 3.2)")]
    TooManyIterations(u16),
    /// There are records of more than one mechanism.
    #[error("the zone has records of more than one of NSEC, NSEC3 and NSEC5")]
    MixedDenial,
    /// The zone is signed and has neither NSEC nor NSEC3 nor NSEC5 records.
    #[error("the zone is signed, but has neither NSEC nor NSEC3 nor NSEC5 records")]
    NoDenial,
    /// The serial of a ZONEMD record is not that of the SOA record (RFC 8976 §4).
    #[error(
        "the serial of the ZONEMD record is {found}, that of the SOA record {expected} (RFC 8976 section 4)"
    )]
    ZonemdSerial {
        /// Serial of the ZONEMD record.
        found: u32,
        /// Serial of the SOA record.
        expected: u32,
    },
    /// Several ZONEMD records have the same scheme and hash algorithm, and none of them is used (RFC 8976 §2.2).
    #[error(
        "there is more than one ZONEMD record of scheme 1 and hash algorithm {hash}: none of them is used"
    )]
    ZonemdDuplicate {
        /// The hash algorithm.
        hash: ZonemdHash,
    },
    /// The digest of a ZONEMD record has not the length that its hash algorithm gives (RFC 8976 §2.2.4).
    #[error("the {hash} digest of the ZONEMD record has {found} octets, not {}", hash.octets())]
    ZonemdLength {
        /// The hash algorithm.
        hash: ZonemdHash,
        /// Octets of the digest.
        found: usize,
    },
    /// The digest of a ZONEMD record cannot be compared with that of the zone: its publisher digested each record with a TTL of its
    /// own, and RRsets are held with the lowest one (RFC 8976 §3.3, RFC 2181 §5.2).
    #[error(
        "the {hash} digest of the ZONEMD record cannot be checked: the zone has RRsets whose records have different TTLs (RFC 2181 section 5.2)"
    )]
    ZonemdMixedTtls {
        /// The hash algorithm.
        hash: ZonemdHash,
    },
    /// The digest of a ZONEMD record is not that of the zone (RFC 8976 §4).
    #[error("the {hash} digest of the ZONEMD record does not fit the zone's records")]
    ZonemdMismatch {
        /// The hash algorithm.
        hash: ZonemdHash,
    },
    /// There are NSEC5 records and no NSEC5KEY record.
    #[error("there is no NSEC5KEY record at the apex: nobody can verify proofs")]
    NoNsec5Key,
    /// No NSEC5KEY record is of an algorithm that is supported.
    #[error("no NSEC5KEY record holds a key of an algorithm that is supported")]
    NoUsableNsec5Key,
    /// An NSEC5KEY record of a known algorithm holds no key.
    #[error("the NSEC5KEY {tag} does not hold a public key: {error}")]
    MalformedNsec5Key {
        /// The key's tag.
        tag: u16,
        /// What is wrong with it.
        error: VrfKeyError,
    },
    /// Two NSEC5KEY records have one tag.
    #[error("two NSEC5KEY records have tag {tag}: the zone's denials prove nothing; make another VRF key")]
    SameNsec5Tag {
        /// The tag.
        tag: u16,
    },
    /// An NSEC5KEY record holds a key of the zone that signs.
    #[error(
        "the NSEC5KEY {tag} is also the DNSKEY {dnskey}: a thief of the server's VRF key could sign the zone; make another VRF key"
    )]
    SigningVrfKey {
        /// Tag of the NSEC5KEY record.
        tag: u16,
        /// Tag of the DNSKEY or CDNSKEY record.
        dnskey: u16,
    },
    /// Keys or signatures of a zone with NSEC5 have a number that resolvers without NSEC5 know.
    #[error(
        "{count} records have algorithm {algorithm}, the first here: with NSEC5 all have numbers of their own, so that \
         resolvers without NSEC5 take the zone for insecure and not for bogus"
    )]
    NotAnAlias {
        /// The algorithm.
        algorithm: Algorithm,
        /// How many records of this type have it.
        count: u64,
    },
    /// An NSEC5 record has flags that are not defined.
    #[error("the NSEC5 record has unknown flags ({0}): validators ignore it")]
    UnknownNsec5Flags(u8),
    /// The next hashed owner name of an NSEC5 record is no hash.
    #[error("the next hashed owner name of the NSEC5 record has {0} octets, not 32: validators ignore it")]
    Nsec5NextLength(u8),
    /// An NSEC5 record is of a key that the zone does not publish.
    #[error("the NSEC5 record is of the key {tag}, and no usable NSEC5KEY has that tag")]
    UnknownNsec5Key {
        /// Tag in the record.
        tag: u16,
    },
    /// An NSEC5 record is of another key than the rest of the chain: a chain is replaced as a whole.
    #[error("the NSEC5 record is of the key {tag}, the chain is of {chain}: no proof fits it")]
    OtherNsec5Key {
        /// Tag in the record.
        tag: u16,
        /// Tag in most records.
        chain: u16,
    },
    /// The opt-out flag of an NSEC5 record is not that of most records.
    #[error("the opt-out flag of this NSEC5 record is not that of the rest of the chain")]
    UnevenOptOut,
    /// The wildcard flag is clear where a wildcard stands below the name.
    #[error(
        "a wildcard stands below {name}, but the wildcard flag of its NSEC5 record is clear: NXDOMAIN can be forged"
    )]
    WildcardFlagClear {
        /// The name that the record is of.
        name: Name,
    },
    /// The wildcard flag is set where none stands below the name.
    #[error("no wildcard stands below {name}, but the wildcard flag of its NSEC5 record is set")]
    WildcardFlagSet {
        /// The name that the record is of.
        name: Name,
    },
    /// A name of the zone has no NSEC5 record.
    #[error("the name has no NSEC5 record (it would be at {hashed})")]
    Nsec5Missing {
        /// Where the record would stand.
        hashed: Name,
    },
    /// The chain has more or fewer records than the zone has names for it.
    #[error("the NSEC5 chain has {records} records, the names of the zone ask for {}", Range(*least, *most))]
    ChainCount {
        /// Records of the chain.
        records: u64,
        /// Names that must be in it.
        least: u64,
        /// Names that may be in it.
        most: u64,
    },
    /// Of one kind, the chain has more or fewer records than the zone has names.
    #[error(
        "{records} NSEC5 records show the types {} {}, which {} names of the zone have",
        Types(types), if *wildcard { "and a wildcard" } else { "and no wildcard" }, Range(*least, *most)
    )]
    ChainKind {
        /// The types that records show.
        types: Vec<Rtype>,
        /// Whether their wildcard flag is set.
        wildcard: bool,
        /// Records that show them.
        records: u64,
        /// Names of the kind that must be in the chain.
        least: u64,
        /// Names of the kind that may be in the chain.
        most: u64,
    },
    /// The stored proofs are another zone's.
    #[error("the stored proofs are those of {zone}: none of this zone's is looked at")]
    ProofsOfOtherZone {
        /// The zone that they are of.
        zone: Name,
    },
    /// The stored proofs are of another key than the chain.
    #[error(
        "the stored proofs are of the key {tag}, which is not the chain's: sign the zone again to make them anew"
    )]
    ProofsOfOtherKey {
        /// Tag of the key.
        tag: u16,
    },
    /// A name of the chain has no stored proof.
    #[error("the name has no stored proof: sign the zone again to make it")]
    ProofMissing,
    /// There is a stored proof for a name that the chain has not.
    #[error("there is a stored proof for a name that is not in the chain")]
    ProofExtra,
    /// A stored proof is that of another name of the chain.
    #[error("the stored proof is not this name's but that of the name whose record stands at {hashed}")]
    ProofOfOtherName {
        /// The record of the name that it proves.
        hashed: Name,
    },
    /// A stored proof does not fit the key and the name.
    #[error("the stored proof does not fit the key and the name")]
    BadProof,
    /// The hash stored beside a proof is not the one that it proves.
    #[error("the hash that is stored beside the proof is not the one that it proves")]
    StoredHash,
}

/// What is odd about a zone without being a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyWarning {
    /// A key that cannot be used: of an algorithm that is not supported, or out of the range that is used. Its
    /// signatures are not verified, as if its algorithm were unknown.
    #[error("key {tag} cannot be used: {error}; its signatures are not verified")]
    UnusableKey {
        /// The key's tag.
        tag: u16,
        /// Why it cannot be used; [`KeyError::is_unusable`] holds.
        error: KeyError,
    },
    /// A DNSKEY record without zone key flag or of another protocol than 3; it is left out (RFC 4034 §2.1).
    #[error("DNSKEY {tag} is no zone key (flags {flags}) and is left out")]
    NotAZoneKey {
        /// The key's tag.
        tag: u16,
        /// The key's flags.
        flags: u16,
    },
    /// A revoked key does not sign the DNSKEY RRset, and so is not seen as revoked (RFC 5011 §2.1).
    #[error("key {tag} is revoked but does not sign the DNSKEY RRset: nobody will take note")]
    RevokedNotSigning {
        /// The key's tag.
        tag: u16,
    },
    /// Keys with the SEP flag are published, and none of them signs the DNSKEY RRset.
    #[error(
        "no key with the SEP flag signs the DNSKEY RRset (published: {}): where the parent's DS records name such a key, the zone \
         is bogus",
        describe_keys(tags)
    )]
    SepKeysNotSigning {
        /// Their tags.
        tags: Vec<u16>,
    },
    /// A signature that cannot be used stands beside enough that can.
    #[error("{owner} {rtype}: {reason}; other signatures are good")]
    SpareSignature {
        /// Owner of the RRset.
        owner: Name,
        /// Type of the RRset.
        rtype: Rtype,
        /// Why it cannot be used.
        reason: FaultReason,
    },
    /// A DS record or trust anchor matches no key that signs the DNSKEY RRset.
    #[error("DS record or trust anchor {tag} ({algorithm}) matches no key that signs the DNSKEY RRset")]
    AnchorUnused {
        /// Tag of the key that it names.
        tag: u16,
        /// Algorithm of the key that it names.
        algorithm: Algorithm,
    },
    /// A key has a number of zones with NSEC5, and the zone has another chain.
    #[error(
        "key {tag} ({algorithm}) has a number for zones with NSEC5, and this zone denies by {mechanism}: resolvers without NSEC5 \
         take it for insecure; make a key without --nsec5, or sign with --denial nsec5"
    )]
    AliasWithoutNsec5 {
        /// The key's tag.
        tag: u16,
        /// The key's algorithm.
        algorithm: Algorithm,
        /// How the zone denies existence.
        mechanism: Mechanism,
    },
    /// Records of the chain have another TTL than RFC 9077 §3 wants; older signers write the SOA minimum.
    #[error("{count} {rtype} records have TTL {found} where RFC 9077 wants {expected}, the first at {first}")]
    ChainTtl {
        /// NSEC, NSEC3 or NSEC5.
        rtype: Rtype,
        /// TTL that RFC 9077 wants.
        expected: u32,
        /// TTL found.
        found: u32,
        /// How many records.
        count: u64,
        /// Owner of the first one.
        first: Name,
    },
    /// The NSEC3 chain has iterations or a salt (RFC 9276 §3.1).
    #[error("NSEC3 with {iterations} iterations and {salt} octets of salt: RFC 9276 section 3.1 wants none")]
    Nsec3Parameters {
        /// Additional iterations.
        iterations: u16,
        /// Octets of the salt.
        salt: u8,
    },
    /// An NSEC5KEY record that cannot be used: of an algorithm that is not supported.
    #[error("the NSEC5KEY {tag} is of NSEC5 algorithm {algorithm}, which is not supported, and is not used")]
    UnusableNsec5Key {
        /// The key's tag.
        tag: u16,
        /// Its algorithm.
        algorithm: VrfAlgorithm,
    },
    /// There was nothing to find the NSEC5 records of names by.
    #[error(
        "names were not matched to NSEC5 records: that takes the stored proofs or the VRF key; numbers, types and flags of \
         records were compared"
    )]
    NamesNotMatched,
    /// The stored proofs were made for another version of the zone.
    #[error("the stored proofs were made for serial {stored}, the zone has {zone}")]
    ProofsSerial {
        /// Serial that they were made for.
        stored: u32,
        /// Serial of the zone.
        zone: u32,
    },
    /// An NSEC3PARAM record with flags other than 0 or another hash algorithm is not used (RFC 5155 §4.1).
    #[error("an NSEC3PARAM record with hash algorithm {algorithm} and flags {flags} is not used")]
    UnusedNsec3Param {
        /// The hash algorithm.
        algorithm: u8,
        /// The flags.
        flags: u8,
    },
    /// A ZONEMD record of a scheme or hash algorithm that is not supported (RFC 8976 §4); it says nothing.
    #[error(
        "the ZONEMD record of scheme {scheme} and hash algorithm {hash} is not supported and is not checked"
    )]
    UnsupportedZonemd {
        /// Its scheme.
        scheme: u8,
        /// Its hash algorithm.
        hash: u8,
    },
    /// A ZONEMD record that is of no use stands beside one that verifies.
    #[error("ZONEMD: {reason}; another ZONEMD record verifies")]
    SpareZonemd {
        /// Why it is of no use.
        reason: FaultReason,
    },
    /// ZONEMD records away from the apex have no meaning (RFC 8976 §2).
    #[error(
        "{count} names other than the apex have ZONEMD records, which are not checked, the first {first}"
    )]
    StrayZonemd {
        /// The first one.
        first: Name,
        /// How many names.
        count: u64,
    },
}

/// What verifying a zone found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// All faults, in canonical order of owners, then by type.
    pub faults: Vec<Fault>,
    /// What is odd.
    pub warnings: Vec<VerifyWarning>,
    /// Signatures that were verified and are good.
    pub signatures_verified: u64,
    /// Signatures that stand as they did in the earlier version of the zone, and are good since they were then.
    pub signatures_kept: u64,
    /// Whether the DNSKEY RRset is another one than in the earlier version, so that all signatures were verified.
    pub keys_changed: bool,
    /// RRsets that the zone has authority over.
    pub rrsets: u64,
    /// How the zone denies existence; `None` where it is unsigned or has no chain.
    pub mechanism: Option<Mechanism>,
    /// Hash algorithms of the ZONEMD records whose digests fit the zone.
    pub zonemd: Vec<ZonemdHash>,
}

impl Report {
    /// Whether there is no fault.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// The first fault of the zone's digest, where it has ZONEMD records and none of them verifies (RFC 8976 §4). A digest that
    /// different TTLs keep from being checked is one too: whoever alters a transfer could add such a TTL.
    #[must_use]
    pub fn wrong_digest(&self) -> Option<&Fault> {
        let is_of_digest = |fault: &&Fault| {
            matches!(
                fault.reason,
                FaultReason::ZonemdSerial { .. }
                    | FaultReason::ZonemdDuplicate { .. }
                    | FaultReason::ZonemdLength { .. }
                    | FaultReason::ZonemdMixedTtls { .. }
                    | FaultReason::ZonemdMismatch { .. }
            )
        };
        self.faults.iter().find(is_of_digest)
    }

    /// How many faults there are, for readers: `1 fault`, `2 faults`.
    #[must_use]
    pub fn fault_count(&self) -> String {
        count_faults(self.faults.len())
    }
}

/// A number of faults, for readers.
#[must_use]
pub fn count_faults(count: usize) -> String {
    if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") }
}

/// A report in the making.
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

    pub(crate) const fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Counts a record of the chain whose TTL is not `expected`: one warning for each TTL found.
    pub(crate) fn check_chain_ttl(&mut self, owner: NameRef<'_>, rtype: Rtype, expected: u32, found: u32) {
        if found == expected {
            return;
        }
        for warning in &mut self.warnings {
            match warning {
                VerifyWarning::ChainTtl { rtype: of, found: known, count, .. }
                    if *of == rtype && *known == found =>
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

    pub(super) fn append(&mut self, mut other: Self) {
        self.faults.append(&mut other.faults);
        self.warnings.append(&mut other.warnings);
        self.signatures_verified += other.signatures_verified;
        self.signatures_kept += other.signatures_kept;
        self.rrsets += other.rrsets;
    }

    pub(crate) fn into_report(mut self, mechanism: Option<Mechanism>) -> Report {
        // Stable: faults of one RRset stay in the order in which its parts were looked at.
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
