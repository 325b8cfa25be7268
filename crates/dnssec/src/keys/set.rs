//! The keys of one zone, and the RRsets that each of them signs.

use super::{CdsSchedule, KeyPair, KeyPhase, KeyRecord, Role, SEP, ZONE_KEY, describe_keys, roles};
use nonesuch_crypto::Algorithm;
use nonesuch_proto::{Name, Rtype};

/// The reason why keys cannot sign a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetError {
    /// The set has no key.
    #[error("there is no key for the zone {0}: generate one with `nonesuch key generate {0}`")]
    NoKey(Name),
    /// A key belongs to another zone.
    #[error("key {tag} belongs to the zone {owner}, not to {zone}: use only keys of {zone}")]
    WrongZone {
        /// The zone to be signed.
        zone: Name,
        /// The key's owner.
        owner: Name,
        /// The key's tag.
        tag: u16,
    },
    /// A key does not have the Zone Key flag (RFC 4034 §2.1.1).
    #[error("key {tag} of {zone} is not a zone key (flags {flags}): its flags must be 256 or 257")]
    NotAZoneKey {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The key's tag.
        tag: u16,
        /// The key's flags.
        flags: u16,
    },
    /// All keys of an algorithm are revoked.
    #[error(
        "all keys of algorithm {algorithm} of {zone} are revoked: add a key of this algorithm that is not revoked, or remove all keys of this algorithm"
    )]
    NoUsableKey {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The same key has two algorithm numbers: an algorithm and its alias for NSEC5.
    #[error(
        "the same key of {zone} is used with two algorithm numbers, {first} and {second}: generate another key for one of them"
    )]
    TwoAlgorithmNumbers {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The lower number.
        first: Algorithm,
        /// The higher number.
        second: Algorithm,
    },
    /// Keys are published, and no active key signs the RRsets that these keys would sign.
    #[error(
        "{} of {zone}, of algorithm {algorithm}, {} published but not active at this time, and no active key \
        of the algorithm {function} (`nonesuch key list` shows the times): activate a key with dnssec-settime, \
        generate one with `nonesuch key generate`, or ignore the times with --ignore-key-times",
        describe_keys(tags), if tags.len() == 1 { "is" } else { "are" }
    )]
    NotActive {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
        /// Tags of the published keys.
        tags: Vec<u16>,
        /// What no active key does: `signs the DNSKEY RRset` or `signs the zone`.
        function: &'static str,
    },
    /// Two keys have the same algorithm and key tag.
    #[error("two keys of {zone} have algorithm {algorithm} and tag {tag}: remove one of them")]
    SameTag {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
        /// The tag.
        tag: u16,
    },
}

/// A key that is published and does not sign.
#[derive(Clone, Debug)]
pub struct PassiveKey {
    /// Its DNSKEY record.
    pub record: KeyRecord,
    /// Its phase.
    pub phase: KeyPhase,
}

/// What follows from the times in key files for the keys that do not sign, and for the CDS and
/// CDNSKEY records.
#[derive(Clone, Debug, Default)]
pub struct KeyTiming {
    /// Keys that are published and do not sign.
    pub passive: Vec<PassiveKey>,
    /// RDATA of DNSKEY records that the signer removes from the zone: those of deleted keys with
    /// and without the REVOKE flag, and those of revoked keys without the flag.
    pub withdrawn: Vec<Vec<u8>>,
    /// Keys with times for the publication or withdrawal of their CDS and CDNSKEY records.
    pub cds: CdsSchedule,
}

/// The keys of one zone. At least one key signs.
#[derive(Debug)]
pub struct KeySet {
    zone: Name,
    /// The keys that sign, sorted by algorithm, then keys with the SEP flag first, then by key tag.
    keys: Vec<KeyPair>,
    /// Keys that are published, without a private key.
    offline: Vec<KeyRecord>,
    timing: KeyTiming,
    /// Indexes of the keys that sign DNSKEY, CDS and CDNSKEY RRsets.
    key_set_signers: Vec<usize>,
    /// Indexes of the keys that sign all other RRsets.
    data_signers: Vec<usize>,
}

impl KeySet {
    /// The key set of `zone` with `keys`, all of which sign.
    ///
    /// # Errors
    /// [`KeySetError`] except [`KeySetError::NotActive`].
    pub fn new(zone: &Name, mut keys: Vec<KeyPair>) -> Result<Self, KeySetError> {
        if keys.is_empty() {
            return Err(KeySetError::NoKey(zone.clone()));
        }
        for key in &keys {
            check_key(zone, key)?;
        }
        keys.sort_by_key(|key| (key.algorithm(), !key.is_sep(), key.tag()));
        check_unique_tags(zone, &keys)?;
        check_algorithm_numbers(zone, &keys)?;
        let (key_set_signers, data_signers) = assign_roles(zone, &keys)?;
        Ok(Self {
            zone: zone.clone(),
            keys,
            offline: Vec::new(),
            timing: KeyTiming::default(),
            key_set_signers,
            data_signers,
        })
    }

    /// Adds published keys without private keys, which are elsewhere. They are KSKs whose
    /// signatures must be part of the zone to be signed.
    ///
    /// # Errors
    /// [`KeySetError::WrongZone`] if a key belongs to another zone.
    pub fn with_offline(mut self, records: Vec<KeyRecord>) -> Result<Self, KeySetError> {
        if let Some(record) = records.iter().find(|record| *record.owner() != self.zone) {
            let (zone, owner, tag) = (self.zone, record.owner().clone(), record.tag());
            return Err(KeySetError::WrongZone { zone, owner, tag });
        }
        self.offline = records;
        Ok(self)
    }

    /// Adds `timing`, which follows from the times in the key files. Call it after
    /// [`KeySet::with_offline`].
    ///
    /// # Errors
    /// [`KeySetError::NotActive`] if keys are published and no active key signs the RRsets that
    /// they would sign.
    pub fn with_key_timing(mut self, timing: KeyTiming) -> Result<Self, KeySetError> {
        for key in &timing.passive {
            self.check_passive(key.record.algorithm(), &timing)?;
        }
        self.timing = timing;
        Ok(self)
    }

    /// Checks that active or offline keys of `algorithm` sign the RRsets that its passive keys
    /// would sign.
    fn check_passive(&self, algorithm: Algorithm, timing: &KeyTiming) -> Result<(), KeySetError> {
        let active = || self.keys.iter().filter(|key| key.algorithm() == algorithm && !key.is_revoked());
        let offline = || self.offline.iter().filter(|key| key.algorithm() == algorithm);
        let passive = || timing.passive.iter().filter(|key| key.record.algorithm() == algorithm);
        let sep = passive().filter(|key| key.record.flags() & SEP != 0);
        // Keys that do not sign yet do not change the role of a combined signing key.
        let others = passive().filter(|key| {
            key.record.flags() & SEP == 0 && (key.phase == KeyPhase::Inactive || active().next().is_none())
        });
        let tags = |keys: &mut dyn Iterator<Item = &PassiveKey>| -> Vec<u16> {
            keys.map(|key| key.record.tag()).collect()
        };
        let has_sep = active().any(KeyPair::is_sep) || offline().any(KeyRecord::is_sep);
        let has_other = active().any(|key| !key.is_sep());
        let functions = [
            (has_sep, tags(&mut { sep }), "signs the DNSKEY RRset"),
            (has_other, tags(&mut { others }), "signs the zone"),
        ];
        match functions.into_iter().find(|(has_signer, tags, _)| !has_signer && !tags.is_empty()) {
            Some((_, tags, function)) => {
                Err(KeySetError::NotActive { zone: self.zone.clone(), algorithm, tags, function })
            }
            None => Ok(()),
        }
    }

    /// What follows from the times in the key files, as in [`KeySet::with_key_timing`].
    #[must_use]
    pub const fn timing(&self) -> &KeyTiming {
        &self.timing
    }

    /// The published keys without private keys, as in [`KeySet::with_offline`].
    #[must_use]
    pub fn offline(&self) -> &[KeyRecord] {
        &self.offline
    }

    /// Adds fresh randomness to all further signatures, as [`KeyPair::hedge`].
    pub fn hedge(&mut self) {
        self.keys.iter_mut().for_each(KeyPair::hedge);
    }

    /// The apex of the zone that the keys sign.
    #[must_use]
    pub const fn zone(&self) -> &Name {
        &self.zone
    }

    /// All keys that sign, sorted by algorithm, then keys with the SEP flag first, then by key tag.
    #[must_use]
    pub fn keys(&self) -> &[KeyPair] {
        &self.keys
    }

    /// Indexes in [`KeySet::keys`] of the keys that sign RRsets of `rtype`, at least one for each
    /// algorithm (RFC 4035 §2.2; RFC 7344 §4.1 for CDS and CDNSKEY).
    #[must_use]
    pub fn signers(&self, rtype: Rtype) -> &[usize] {
        match rtype {
            Rtype::DNSKEY | Rtype::CDS | Rtype::CDNSKEY => &self.key_set_signers,
            _ => &self.data_signers,
        }
    }

    /// The keys for the DS RRset in the parent: the keys that sign the DNSKEY RRset, without
    /// revoked keys.
    pub fn secure_entry_points(&self) -> impl Iterator<Item = &KeyPair> {
        self.key_set_signers.iter().map(|index| &self.keys[*index]).filter(|key| !key.is_revoked())
    }

    /// Whether a key of `algorithm` signs.
    #[must_use]
    pub fn has_algorithm(&self, algorithm: Algorithm) -> bool {
        self.keys.iter().any(|key| key.algorithm() == algorithm)
    }
}

/// Checks that no key occurs with both an alias number and the original algorithm number.
fn check_algorithm_numbers(zone: &Name, keys: &[KeyPair]) -> Result<(), KeySetError> {
    for (index, key) in keys.iter().enumerate() {
        let (first, public) = (key.algorithm(), key.private().public_key());
        let twin = keys[index + 1..].iter().find(|other| {
            let second = other.algorithm();
            second != first
                && second.without_alias() == first.without_alias()
                && other.private().public_key() == public
        });
        if let Some(twin) = twin {
            return Err(KeySetError::TwoAlgorithmNumbers {
                zone: zone.clone(),
                first,
                second: twin.algorithm(),
            });
        }
    }
    Ok(())
}

/// Checks the owner and the Zone Key flag of a key.
fn check_key(zone: &Name, key: &KeyPair) -> Result<(), KeySetError> {
    if key.owner != *zone {
        return Err(KeySetError::WrongZone { zone: zone.clone(), owner: key.owner.clone(), tag: key.tag() });
    }
    if key.flags & ZONE_KEY == 0 {
        return Err(KeySetError::NotAZoneKey { zone: zone.clone(), tag: key.tag(), flags: key.flags });
    }
    Ok(())
}

/// Checks that no two keys have the same algorithm and key tag.
fn check_unique_tags(zone: &Name, keys: &[KeyPair]) -> Result<(), KeySetError> {
    for (index, key) in keys.iter().enumerate() {
        let (algorithm, tag) = (key.algorithm(), key.tag());
        if keys[..index].iter().any(|other| other.algorithm() == algorithm && other.tag() == tag) {
            return Err(KeySetError::SameTag { zone: zone.clone(), algorithm, tag });
        }
    }
    Ok(())
}

/// Indexes of the keys that sign DNSKEY, CDS and CDNSKEY RRsets, and of the keys that sign all
/// other RRsets. An error if all keys of an algorithm are revoked.
fn assign_roles(zone: &Name, keys: &[KeyPair]) -> Result<(Vec<usize>, Vec<usize>), KeySetError> {
    for key in keys {
        let algorithm = key.algorithm();
        if !keys.iter().any(|other| other.algorithm() == algorithm && !other.is_revoked()) {
            return Err(KeySetError::NoUsableKey { zone: zone.clone(), algorithm });
        }
    }
    let roles = roles(&keys.iter().map(|key| (key.algorithm(), key.flags)).collect::<Vec<_>>());
    let all_except = |role| (0..keys.len()).filter(|index| roles[*index] != role).collect();
    Ok((all_except(Role::Zsk), all_except(Role::Ksk)))
}
