//! Detects whether the transition from one version of a signed zone to the next breaks validation
//! in validators that have cached data of the previous version: its DNSKEY RRset, RRsets with their
//! signatures, or the DS records of the keys that sign it (RFC 6781 §4.1, RFC 7583 §3).
//!
//! The signer, `zone diff` and the server call [`transition`]. It compares only the two versions,
//! and does not know how long ago the previous one was published. Therefore it does not report a
//! transition that is safe after some time. An example is the removal of a key whose signatures the
//! previous version has already replaced by those of another key.

use crate::denial::NameHash;
use crate::inspect::has_only_signed_key_set;
use crate::keys::{REVOKE, Role, SEP, describe_keys, published_keys};
use crate::rrsig::Rrsig;
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Name, NameRef, Rtype, serial};
use nonesuch_zone::compiled::{ChunkSummary, Uniformity};
use nonesuch_zone::image::SignatureFields;
use nonesuch_zone::{Contents, FoundNode, Image, Rrset, ZoneRef};

/// The keys of one version of a signed zone, and the kind of its denial chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Serial number.
    pub serial: u32,
    /// RDATA of the DNSKEY records.
    pub dnskeys: Vec<Vec<u8>>,
    /// RDATA of the keys that sign the DNSKEY RRset; empty if they are unknown.
    pub signing: Vec<Vec<u8>>,
    /// The kind of the denial chain: how names are mapped to its records. `None` if the zone has no
    /// chain.
    pub denial: Option<NameHash>,
    /// The latest expiration of the RRSIG records over the DNSKEY RRset, in seconds since 1970
    /// modulo 2^32 (serial number arithmetic); `None` if these records are unknown.
    pub expires: Option<u32>,
}

impl KeyState {
    /// Reads the apex of a zone. Returns `None` if the zone has no SOA record or no signed DNSKEY
    /// RRset.
    #[must_use]
    pub fn of(zone: &Contents) -> Option<Self> {
        let apex = zone.nodes().next()?;
        let (dnskeys, signatures) = (apex.rrset(Rtype::DNSKEY)?, apex.signatures(Rtype::DNSKEY)?);
        let serial = zone.soa()?.serial;
        let has = |rtype| apex.has(rtype);
        let denial = denial_kind(has(Rtype::NSEC), has(Rtype::NSEC3PARAM), has(Rtype::NSEC5KEY));
        let dnskeys = dnskeys.rdatas().map(<[u8]>::to_vec).collect();
        Some(Self::of_records(serial, dnskeys, signatures.rdatas(), denial))
    }

    /// Creates the state of a version from its DNSKEY records and the RRSIG records over them, both
    /// as RDATA.
    #[must_use]
    pub fn of_records<'r>(
        serial: u32,
        dnskeys: Vec<Vec<u8>>,
        signatures: impl Iterator<Item = &'r [u8]>,
        denial: Option<NameHash>,
    ) -> Self {
        let signatures: Vec<Rrsig<'_>> = signatures.filter_map(Rrsig::parse).collect();
        let signers: Vec<SignerId> = signatures.iter().map(SignerId::of_fields).collect();
        let later_of = |a, b| if serial::is_before(a, b) { b } else { a };
        let expires = signatures.iter().map(|fields| fields.expiration).reduce(later_of);
        let signs = |rdata: &&Vec<u8>| SignerId::of_key(rdata).is_some_and(|key| signers.contains(&key));
        let signing = dnskeys.iter().filter(signs).cloned().collect();
        Self { serial, dnskeys, signing, denial, expires }
    }

    /// Whether the signatures over the DNSKEY RRset have expired at `now`, in seconds since 1970
    /// modulo 2^32. Validators no longer cache that RRset then (RFC 4035 §5.3.3).
    #[must_use]
    pub fn is_expired(&self, now: u32) -> bool {
        self.expires.is_some_and(|expires| serial::is_before(expires, now))
    }

    /// Returns the RDATA of the keys that may sign data, according to their roles. Some of them may
    /// be unused.
    #[must_use]
    pub fn data_keys(&self) -> Vec<Vec<u8>> {
        let keys = published_keys(&self.dnskeys).into_iter().filter(|key| key.role != Role::Ksk);
        keys.map(|key| key.rdata.to_vec()).collect()
    }

    /// Returns the keys to which the DS records of the parent may refer: the signers of the DNSKEY
    /// RRset that are not revoked, or all keys if the signers are unknown. If any of them has the
    /// SEP flag, returns only those with the flag.
    fn entry_points(&self) -> Vec<&[u8]> {
        let candidates = if self.signing.is_empty() { &self.dnskeys } else { &self.signing };
        let usable = || candidates.iter().map(Vec::as_slice).filter(|key| flags(key) & REVOKE == 0);
        let with_flag: Vec<&[u8]> = usable().filter(|key| flags(key) & SEP != 0).collect();
        if with_flag.is_empty() { usable().collect() } else { with_flag }
    }

    /// Returns the keys that sign the DNSKEY RRset, or all keys if the signers are unknown.
    fn signing_keys(&self) -> Vec<&[u8]> {
        let signing = if self.signing.is_empty() { &self.dnskeys } else { &self.signing };
        signing.iter().map(Vec::as_slice).collect()
    }
}

/// Determines the kind of a denial chain from the types at the apex. An NSEC3 chain is in use if
/// the apex has NSEC3PARAM (RFC 5155 §4).
#[must_use]
pub const fn denial_kind(has_nsec: bool, has_nsec3param: bool, has_nsec5key: bool) -> Option<NameHash> {
    match (has_nsec3param, has_nsec, has_nsec5key) {
        (true, _, _) => Some(NameHash::Sha1),
        (false, true, _) => Some(NameHash::Unhashed),
        (false, false, true) => Some(NameHash::Vrf),
        (false, false, false) => None,
    }
}

/// The signers of the data of one version.
#[derive(Clone, Copy, Debug)]
pub enum DataSigners<'d> {
    /// Each RRset has signatures by all of these keys. If `keys` is empty, the signers are unknown,
    /// and no fault is reported for them.
    Keys {
        /// Apex of the zone.
        apex: &'d Name,
        /// RDATA of the DNSKEY records of the keys.
        keys: &'d [Vec<u8>],
    },
    /// The signers are read from the RRSIG records of the zone.
    Zone(ZoneRef<'d>),
    /// The signers are read from the RRSIG records of an image.
    Image {
        /// The image.
        image: &'d Image,
        /// RDATA of the keys that sign all other RRsets online; empty if nothing is signed online.
        online: &'d [Vec<u8>],
    },
}

/// One version of a signed zone.
#[derive(Clone, Copy, Debug)]
pub struct SignedVersion<'v> {
    /// Its keys.
    pub keys: &'v KeyState,
    /// The signers of its data.
    pub data: DataSigners<'v>,
}

/// A change that breaks validation in validators that have cached data of the previous version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransitionFault {
    /// No key that signed the previous DNSKEY RRset signs the next one.
    #[error(
        "no key that signed the previous DNSKEY RRset ({}) signs the new one ({}), and the DS records of the parent \
        may refer only to the previous keys",
        describe_keys(previous),
        describe_keys(next)
    )]
    DnskeySigners {
        /// Tags of the keys that signed the previous DNSKEY RRset.
        previous: Vec<u16>,
        /// Tags of the keys that sign the next DNSKEY RRset.
        next: Vec<u16>,
    },
    /// An RRset of the next version is signed only by keys that are not in the previous DNSKEY
    /// RRset.
    #[error(
        "{owner} {rtype} of the new version is signed only by {}, absent from the previous DNSKEY RRset",
        describe_keys(tags)
    )]
    NewDataSigners {
        /// Owner of the first such RRset in canonical order.
        owner: Name,
        /// Type of that RRset.
        rtype: Rtype,
        /// Tags of the keys that sign it.
        tags: Vec<u16>,
    },
    /// An RRset of the previous version is signed only by keys that are not in the next DNSKEY
    /// RRset.
    #[error(
        "{owner} {rtype} of the previous version is signed only by {}, absent from the new DNSKEY RRset",
        describe_keys(tags)
    )]
    OldDataSigners {
        /// Owner of the first such RRset in canonical order.
        owner: Name,
        /// Type of that RRset.
        rtype: Rtype,
        /// Tags of the keys that sign it.
        tags: Vec<u16>,
    },
    /// The kind of the denial chain changes and the serial does not. Secondaries keep the previous
    /// version, so validators receive proofs of both chains.
    #[error(
        "the denial chain changes from {} to {}, but the serial stays {serial}, so secondaries keep the previous \
        version: sign with --serial increment",
        chain_name(*previous),
        chain_name(*next)
    )]
    DenialKind {
        /// The serial of both versions.
        serial: u32,
        /// Kind of the previous chain.
        previous: NameHash,
        /// Kind of the next chain.
        next: NameHash,
    },
}

/// The name of a kind of denial chain in messages.
const fn chain_name(name_hash: NameHash) -> &'static str {
    match name_hash {
        NameHash::Unhashed => "NSEC",
        NameHash::Sha1 => "NSEC3",
        NameHash::Vrf => "NSEC5",
    }
}

/// Formats faults for a message in one line, separated by semicolons.
#[must_use]
pub fn list_faults(faults: &[TransitionFault]) -> String {
    faults.iter().map(TransitionFault::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the faults of the transition from `previous` to `next`, at most one of each kind. `now`
/// is in seconds since 1970 modulo 2^32. Signatures over data of the previous version that have
/// expired at `now` are ignored; with `None`, no signature is treated as expired.
#[must_use]
pub fn transition(
    previous: SignedVersion<'_>,
    next: SignedVersion<'_>,
    now: Option<u32>,
) -> Vec<TransitionFault> {
    let mut faults = Vec::new();
    let (before, after) = (previous.keys.entry_points(), next.keys.signing_keys());
    if !before.iter().any(|key| after.contains(key)) {
        faults.push(TransitionFault::DnskeySigners { previous: tags(&before), next: tags(&after) });
    }
    if let Some((owner, rtype, tags)) = find_rrset_without_shared_signer(next, previous.keys, None) {
        faults.push(TransitionFault::NewDataSigners { owner, rtype, tags });
    }
    if let Some((owner, rtype, tags)) = find_rrset_without_shared_signer(previous, next.keys, now) {
        faults.push(TransitionFault::OldDataSigners { owner, rtype, tags });
    }
    let serial = next.keys.serial;
    if let (Some(old), Some(new)) = (previous.keys.denial, next.keys.denial)
        && old != new
        && previous.keys.serial == serial
    {
        faults.push(TransitionFault::DenialKind { serial, previous: old, next: new });
    }
    faults
}

/// Like [`transition`], for two zones. Returns no faults if the DNSKEY RRset of one of them is not
/// signed. No signature is treated as expired.
#[must_use]
pub fn transition_between(previous: &Contents, next: &Contents) -> Vec<TransitionFault> {
    let (Some(before), Some(after)) = (KeyState::of(previous), KeyState::of(next)) else { return Vec::new() };
    // A server signs the data of such a zone online.
    let online = before.data_keys();
    let data = if has_only_signed_key_set(previous) {
        DataSigners::Keys { apex: previous.apex(), keys: &online }
    } else {
        DataSigners::Zone(previous.into())
    };
    let next = SignedVersion { keys: &after, data: DataSigners::Zone(next.into()) };
    transition(SignedVersion { keys: &before, data }, next, None)
}

/// Owner and type of an RRset, and the tags of the keys that sign it.
type SignedRrset = (Name, Rtype, Vec<u16>);

/// Returns the first RRset of `version` that is signed only by keys that the DNSKEY RRset of
/// `other` does not have.
fn find_rrset_without_shared_signer(
    version: SignedVersion<'_>,
    other: &KeyState,
    now: Option<u32>,
) -> Option<SignedRrset> {
    let is_shared = |key: &Vec<u8>| other.dnskeys.contains(key);
    // If `other` has all keys of the version, it has the key of each signature: verification
    // rejects a version with signatures only by keys that are not in its DNSKEY RRset.
    if version.keys.dnskeys.iter().all(is_shared) {
        return None;
    }
    let by_keys = |apex: NameRef<'_>, keys: &[Vec<u8>]| {
        let has_no_shared_key = !keys.is_empty() && !keys.iter().any(is_shared);
        has_no_shared_key.then(|| (apex.to_name(), Rtype::SOA, keys.iter().map(|key| key_tag(key)).collect()))
    };
    let search = Search { shared: shared_signers(&version.keys.dnskeys, &other.dnskeys), now };
    match version.data {
        DataSigners::Keys { apex, keys } => by_keys(apex.view(), keys),
        DataSigners::Zone(zone) => search.find_in_zone(zone),
        DataSigners::Image { image, online } => {
            by_keys(image.apex(), online).or_else(|| search.find_in_image(image))
        }
    }
}

/// Returns the identifiers (tag and algorithm) of the keys of `other` that can have generated
/// signatures of the version with the keys `own`: keys that `own` has too, and keys whose
/// identifier no key of `own` has.
fn shared_signers(own: &[Vec<u8>], other: &[Vec<u8>]) -> Vec<SignerId> {
    let signers = other.iter().filter_map(|key| Some((key, SignerId::of_key(key)?)));
    let is_shared = |(key, signer): &(&Vec<u8>, SignerId)| {
        own.contains(key) || !own.iter().any(|own| SignerId::of_key(own) == Some(*signer))
    };
    signers.filter(is_shared).map(|(_, signer)| signer).collect()
}

/// A search for an RRset of one version that is not signed by a key of the other version. It skips
/// the DNSKEY RRset: [`transition`] compares the signers of that RRset separately.
struct Search {
    /// The result of [`shared_signers`].
    shared: Vec<SignerId>,
    /// Time in seconds since 1970 modulo 2^32 at which expired signatures are ignored; with `None`,
    /// no signature is treated as expired.
    now: Option<u32>,
}

impl Search {
    fn find_in_zone(&self, zone: ZoneRef<'_>) -> Option<SignedRrset> {
        let in_nodes = |places| {
            let mut sets =
                zone.nodes(places).flat_map(|found| found.node.rrsets().map(move |rrset| (found, rrset)));
            sets.find_map(|(found, rrset)| self.check_rrset(found, rrset))
        };
        match zone {
            ZoneRef::Contents(contents) => in_nodes(0..contents.node_count()),
            ZoneRef::Stored(stored) => {
                let mut chunks = stored.chunks().filter(|chunk| !self.is_chunk_shared(*chunk));
                chunks.find_map(|chunk| in_nodes(chunk.node_range()))
            }
        }
    }

    /// Whether a shared key signs each RRset of a chunk, according to the directory of the compiled
    /// zone. If `false`, the names of the chunk must be searched.
    fn is_chunk_shared(&self, chunk: ChunkSummary<'_>) -> bool {
        match chunk.signers() {
            Uniformity::Absent => true,
            Uniformity::Uniform(pattern) => {
                let is_shared = |[algorithm, tag @ ..]: &[u8; 3]| {
                    let (algorithm, tag) = (Algorithm(*algorithm), u16::from_be_bytes(*tag));
                    self.shared.contains(&SignerId { tag, algorithm })
                };
                !self.has_expired(chunk.expirations().first) && pattern.as_chunks().0.iter().any(is_shared)
            }
            Uniformity::Mixed => false,
        }
    }

    /// Returns the signed RRset if `rrset` is an RRSIG RRset without a signature by a shared key.
    fn check_rrset(&self, found: FoundNode<'_>, rrset: Rrset<'_>) -> Option<SignedRrset> {
        let is_dnskey = found.index == 0 && rrset.covered() == Rtype::DNSKEY;
        if rrset.rtype() != Rtype::RRSIG || is_dnskey {
            return None;
        }
        let fields = rrset.rdatas().filter_map(Rrsig::parse);
        let tags =
            self.tags_if_unshared(fields.map(|fields| (SignerId::of_fields(&fields), fields.expiration)))?;
        Some((found.node.name().to_name(), rrset.covered(), tags))
    }

    fn find_in_image(&self, image: &Image) -> Option<SignedRrset> {
        let mut sets = image.nodes().flat_map(|node| node.templates().map(move |template| (node, template)));
        sets.find_map(|(node, template)| {
            let is_dnskey = node.is_apex() && template.rtype() == Rtype::DNSKEY;
            let tags = self.tags_if_unshared(
                template.signatures().map(|fields| (SignerId::of_image(fields), fields.expiration)),
            );
            tags.filter(|_| !is_dnskey).map(|tags| (node.name().to_name(), template.rtype(), tags))
        })
    }

    /// Returns the key tags of `signatures` over one RRset, if there is at least one and none is by
    /// a shared key. Each signature is a signer and an expiration. Expired signatures are ignored.
    fn tags_if_unshared(&self, signatures: impl Iterator<Item = (SignerId, u32)>) -> Option<Vec<u16>> {
        let mut tags = Vec::new();
        for (signer, _) in signatures.filter(|(_, expiration)| !self.has_expired(*expiration)) {
            if self.shared.contains(&signer) {
                return None;
            }
            tags.push(signer.tag);
        }
        tags.sort_unstable();
        tags.dedup();
        (!tags.is_empty()).then_some(tags)
    }

    fn has_expired(&self, expiration: u32) -> bool {
        self.now.is_some_and(|now| serial::is_before(expiration, now))
    }
}

/// Tag and algorithm of a key, which identify it in an RRSIG record.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SignerId {
    tag: u16,
    algorithm: Algorithm,
}

impl SignerId {
    fn of_key(dnskey: &[u8]) -> Option<Self> {
        Some(Self { tag: key_tag(dnskey), algorithm: Algorithm(*dnskey.get(3)?) })
    }

    const fn of_fields(fields: &Rrsig<'_>) -> Self {
        Self { tag: fields.tag, algorithm: fields.algorithm }
    }

    const fn of_image(fields: SignatureFields) -> Self {
        Self { tag: fields.tag, algorithm: Algorithm(fields.algorithm) }
    }
}

fn flags(dnskey: &[u8]) -> u16 {
    dnskey.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags))
}

fn tags(keys: &[&[u8]]) -> Vec<u16> {
    keys.iter().map(|key| key_tag(key)).collect()
}
