//! Automated update of the trust anchors of one zone (RFC 5011).
//!
//! [`ManagedAnchor`] is a state machine without clock and I/O. The caller queries the DNSKEY RRset of
//! the zone at the time of [`ManagedAnchor::next_query`] and passes it to [`ManagedAnchor::observe`],
//! which verifies the signatures itself. After each call, the caller logs the changes, replaces the
//! trust anchors of the resolver by [`ManagedAnchor::anchors`], and writes
//! [`ManagedAnchor::to_text`] to a file (a temporary file, fsync, rename).
//!
//! # States (RFC 5011 §4)
//!
//! | event | transition |
//! | --- | --- |
//! | a key of the configured anchors is in the RRset | any state but Revoked and Removed → Valid |
//! | a new key with the SEP flag is in the RRset | Start → AddPend |
//! | the key is not in the RRset | AddPend → Start, Valid → Missing |
//! | the keys that signed the RRset at the begin of the hold-down time are all revoked (§2.2) | AddPend → Start |
//! | the hold-down time is over, and the key is in the RRset | AddPend → Valid |
//! | the key is in the RRset again | Missing → Valid |
//! | the key has the REVOKE flag and signs the RRset (§2.1) | any state → Revoked |
//! | the key was not in the RRset for 30 days | Revoked → Removed |
//!
//! Valid and Missing keys are trust anchors. All events but a revocation need an RRset that a trust
//! anchor signs which is not revoked in the same RRset. A revocation needs only the signature of the
//! revoked key, except for a key that is not known: the RRset must then be signed by a trust anchor, so
//! that others cannot fill the memory with keys.
//!
//! # Deletion (RFC 5011 §5)
//!
//! If all trust anchors of a zone are revoked, the zone has no trust anchor anymore:
//! [`ManagedAnchor::anchors`] is empty, and the resolver must treat the zone as if it had never been
//! configured. It validates the zone from a trust anchor above it, or regards it as insecure.
//! [`Change::AllRevoked`] reports this event. The state file preserves it: the configured records of
//! revoked keys are not used again. Unless an operator deletes the file or configures another key, the
//! zone stays without trust anchor. No other event removes a trust anchor.
//!
//! # Configuration and state file
//!
//! [`ManagedAnchor::parse`] merges a state file with the configured trust anchors of today:
//!
//! - Configured records of which the file has no key are added as trust anchors. If the key of the
//!   record is in state AddPend, it becomes Valid at once.
//! - Configured records of revoked and removed keys are ignored. Keys stay in the file as Removed, the
//!   newest at least, so that an outdated configuration does not make them trust anchors again.
//! - Keys in the file that are not configured anymore stay in their state, because most keys are learned
//!   and never configured. To trust only configured anchors, delete the file.

mod change;
mod key;
mod refresh;
mod rrset;
mod state_file;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use change::{Change, KeyEvent, ObservationFault, Outcome};
pub use key::{KeyState, ManagedKey};
pub use rrset::{MAX_DNSKEYS, MAX_VERIFICATIONS, Observation};
pub use state_file::{StateError, StateFault};

use super::file::{RecordFault, check};
use super::{AnchorRecord, ZoneAnchor, distinct_tags};
use key::without_revoke;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, NameRef, Rtype};
use refresh::Refresh;
use rrset::{KeyRrset, SignatureTimes, Work};

/// Maximum number of keys that are known and not configured. RFC 5011 §2.4.3 requires at least five.
pub const MAX_LEARNED_KEYS: usize = 16;
/// Maximum number of configured records of a zone.
pub const MAX_CONFIGURED_RECORDS: usize = 16;
/// The add hold-down time (RFC 5011 §2.4.1), in seconds. If the original TTL of the RRset is greater,
/// it is the hold-down time.
pub const ADD_HOLD_DOWN: u64 = 30 * 86_400;
/// The remove hold-down time (RFC 5011 §2.4.2), in seconds.
pub const REMOVE_HOLD_DOWN: u64 = 30 * 86_400;

/// The trust anchors of one zone, which follow its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedAnchor {
    /// In lower case.
    apex: Name,
    configured: Vec<AnchorRecord>,
    /// Each key occurs once.
    keys: Vec<ManagedKey>,
    refresh: Refresh,
}

/// Why trust anchors of a zone cannot be updated automatically.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedAnchorError {
    /// The zone has too many configured records.
    #[error("zone {apex}: more than {MAX_CONFIGURED_RECORDS} trust anchors: remove some")]
    TooManyRecords {
        /// The apex of the zone.
        apex: Name,
    },
    /// A configured record cannot be a trust anchor.
    #[error("trust anchor of {apex}: {fault}")]
    Record {
        /// The apex of the zone.
        apex: Name,
        /// Why the record cannot be a trust anchor.
        fault: RecordFault,
    },
}

impl ManagedAnchor {
    /// Returns the state without any observation: the configured records are the trust anchors. `now`
    /// is in seconds since 1970, like all times.
    ///
    /// # Errors
    /// There are more than [`MAX_CONFIGURED_RECORDS`], or a record cannot be a trust anchor: it is
    /// malformed or of a revoked key.
    pub fn new(configured: &ZoneAnchor, now: u64) -> Result<Self, ManagedAnchorError> {
        Self::with_keys(configured, Vec::new(), Refresh::new(clamp(now)), clamp(now))
    }

    /// Returns the state with other configured records, as [`ManagedAnchor::parse`] does.
    ///
    /// # Errors
    /// As [`ManagedAnchor::new`].
    pub(crate) fn with_configured(
        &self,
        configured: &ZoneAnchor,
        now: u64,
    ) -> Result<Self, ManagedAnchorError> {
        Self::with_keys(configured, self.keys.clone(), self.refresh, clamp(now))
    }

    /// Merges known keys with the configured records.
    fn with_keys(
        configured: &ZoneAnchor,
        keys: Vec<ManagedKey>,
        refresh: Refresh,
        now: u64,
    ) -> Result<Self, ManagedAnchorError> {
        let apex = configured.apex.view().to_canonical();
        if configured.records.len() > MAX_CONFIGURED_RECORDS {
            return Err(ManagedAnchorError::TooManyRecords { apex });
        }
        for record in &configured.records {
            let (rtype, rdata) = match record {
                AnchorRecord::Ds(rdata) => (Rtype::DS, rdata),
                AnchorRecord::Dnskey(rdata) => (Rtype::DNSKEY, rdata),
            };
            if let Err(fault) = check(rtype, rdata.clone()) {
                return Err(ManagedAnchorError::Record { apex, fault });
            }
        }
        let mut anchor = Self { apex, configured: configured.records.clone(), keys, refresh };
        anchor.trust_configured_keys(now);
        Ok(anchor)
    }

    /// Makes all configured keys Valid that are known without an observation.
    fn trust_configured_keys(&mut self, now: u64) {
        let of_dnskey_records = self.configured.iter().filter_map(|record| match record {
            AnchorRecord::Dnskey(rdata) => Some(rdata.clone()),
            AnchorRecord::Ds(_) => None,
        });
        let known = self.keys.iter().map(|key| key.rdata().to_vec());
        let configured: Vec<Vec<u8>> =
            of_dnskey_records.chain(known.filter(|rdata| self.configured_matches(rdata))).collect();
        for rdata in configured {
            self.trust_configured(&rdata, now);
        }
    }

    /// Returns the apex of the zone, in lower case.
    #[must_use]
    pub fn apex(&self) -> NameRef<'_> {
        self.apex.view()
    }

    /// Returns the known keys, in the order in which they became known.
    #[must_use]
    pub fn keys(&self) -> &[ManagedKey] {
        &self.keys
    }

    /// Returns the current trust anchors: the DNSKEY records of the keys that are Valid or Missing, and
    /// the configured DS records of which no key is known. The list is empty if all keys are revoked;
    /// the zone is then to be treated as if it had no trust anchor configured (RFC 5011 §5).
    #[must_use]
    pub fn anchors(&self) -> Vec<AnchorRecord> {
        let keys = self.keys.iter().filter(|key| key.is_anchor());
        let keys = keys.map(|key| AnchorRecord::Dnskey(key.rdata().to_vec()));
        let is_open = |record: &&AnchorRecord| {
            !self.keys.iter().any(|key| record.matches(self.apex.view(), key.rdata()))
        };
        keys.chain(self.configured.iter().filter(is_open).cloned()).collect()
    }

    /// Returns the key tags of the current trust anchors, in ascending order without duplicates, for
    /// [`signal_query_name`](super::signal_query_name) and [`sentinel_action`](super::sentinel_action).
    #[must_use]
    pub fn tags(&self) -> Vec<u16> {
        distinct_tags(&self.anchors())
    }

    /// Returns the time of the next query for the DNSKEY RRset (RFC 5011 §2.3), at most 15 days after
    /// `now`. Returns `None` if there is no trust anchor.
    #[must_use]
    pub fn next_query(&self, now: u64) -> Option<u64> {
        if self.anchors().is_empty() { None } else { Some(self.refresh.next(clamp(now))) }
    }

    /// Records that a query for the DNSKEY RRset got no response. The next query follows after the
    /// retry time (RFC 5011 §2.3).
    pub fn record_failure(&mut self, now: u64) {
        self.refresh.fail(clamp(now));
    }

    /// Processes the DNSKEY RRset of the zone. It verifies at most
    /// [`MAX_VERIFICATIONS`] signatures. If no trust anchor signs the RRset,
    /// only revocations take effect, and the next query follows after the retry time.
    pub fn observe(&mut self, observation: Observation<'_>, now: u64) -> Outcome {
        let now = clamp(now);
        let mut outcome = Outcome::default();
        let apex = self.apex.clone();
        let validated = KeyRrset::new(apex.view(), observation, now).and_then(|rrset| {
            let mut work = Work::default();
            self.revoke_known(&rrset, &mut work, now, &mut outcome.changes);
            let (signers, times) = self.find_signers(&rrset, &mut work)?;
            self.promote_configured(&rrset, now, &mut outcome.changes);
            self.update_known(&rrset, now, &mut outcome.changes);
            self.add_revoked(&rrset, &mut work, now, &mut outcome.changes);
            self.add_new(&rrset, &signers, times, now, &mut outcome.changes);
            Ok(times)
        });
        match validated {
            Ok(times) => self.refresh.succeed(times, now),
            Err(fault) => {
                self.refresh.fail(now);
                outcome.fault = Some(fault);
            }
        }
        outcome
    }

    fn position(&self, rdata: &[u8]) -> Option<usize> {
        self.keys.iter().position(|key| key.rdata() == rdata)
    }

    fn configured_matches(&self, rdata: &[u8]) -> bool {
        self.configured.iter().any(|record| record.matches(self.apex.view(), rdata))
    }

    /// Makes a configured key Valid, unless it is revoked. Returns whether its state changed.
    fn trust_configured(&mut self, rdata: &[u8], now: u64) -> bool {
        match self.position(rdata) {
            None => {
                self.keys.push(ManagedKey::new(rdata.to_vec(), KeyState::Valid, now));
                true
            }
            Some(index) if matches!(self.keys[index].state(), KeyState::AddPend { .. }) => {
                self.keys[index].enter(KeyState::Valid, now);
                true
            }
            Some(_) => false,
        }
    }

    /// Revokes the keys that are known or configured, and sign the RRset with the REVOKE flag (RFC 5011
    /// §2.1).
    fn revoke_known(&mut self, rrset: &KeyRrset<'_>, work: &mut Work, now: u64, changes: &mut Vec<Change>) {
        let mut is_any_revoked = false;
        for revoked in rrset.revoked_keys() {
            let rdata = without_revoke(revoked);
            let known = self.position(&rdata);
            let is_done = known.is_some_and(|index| self.keys[index].is_revoked());
            let is_unknown = known.is_none() && !self.configured_matches(&rdata);
            if is_done || is_unknown || rrset.verify(revoked, work).is_none() {
                continue;
            }
            let state = KeyState::Revoked { until: now + REMOVE_HOLD_DOWN };
            let index = known.unwrap_or(self.keys.len());
            match known {
                Some(index) => self.keys[index].enter(state, now),
                None => self.keys.push(ManagedKey::new(rdata, state, now)),
            }
            changes.push(Change::of(&self.keys[index], KeyEvent::Revoked));
            is_any_revoked = true;
        }
        if is_any_revoked {
            self.end_orphaned(changes);
            if self.anchors().is_empty() {
                changes.push(Change::AllRevoked);
            }
        }
    }

    /// Ends the acceptance of keys if all keys that signed their first RRset are revoked (RFC 5011
    /// §2.2).
    fn end_orphaned(&mut self, changes: &mut Vec<Change>) {
        let tags: Vec<u16> = self.keys.iter().filter(|key| key.is_anchor()).map(ManagedKey::tag).collect();
        self.keys.retain(|key| {
            let KeyState::AddPend { signers, .. } = key.state() else { return true };
            let has_signer = signers.iter().any(|signer| tags.contains(signer));
            if !has_signer {
                changes.push(Change::of(key, KeyEvent::SignersRevoked));
            }
            has_signer
        });
    }

    /// Returns the tags of the trust anchors that sign the RRset, and the times of their signatures.
    fn find_signers(
        &self,
        rrset: &KeyRrset<'_>,
        work: &mut Work,
    ) -> Result<(Vec<u16>, SignatureTimes), ObservationFault> {
        let is_trusted = |rdata: &[u8]| match self.position(rdata) {
            Some(index) => self.keys[index].is_anchor(),
            None => self.configured_matches(rdata),
        };
        let (mut has_anchor, mut signers, mut times) = (false, Vec::new(), None);
        for rdata in rrset.usable_keys().filter(|rdata| is_trusted(rdata)) {
            has_anchor = true;
            if let Some(signature) = rrset.verify(rdata, work) {
                signers.push(nonesuch_crypto::key_tag(rdata));
                times = Some(times.map_or(signature, |times: SignatureTimes| times.least(signature)));
            }
        }
        match times {
            Some(times) => Ok((signers, times)),
            None if has_anchor => Err(ObservationFault::NoSignature),
            None => Err(ObservationFault::NoAnchor),
        }
    }

    /// Makes keys of configured DS records Valid when they are in the RRset.
    fn promote_configured(&mut self, rrset: &KeyRrset<'_>, now: u64, changes: &mut Vec<Change>) {
        for rdata in rrset.usable_keys() {
            if self.configured_matches(rdata) && self.trust_configured(rdata, now) {
                let key = self.position(rdata).and_then(|index| self.keys.get(index));
                changes.extend(key.map(|key| Change::of(key, KeyEvent::Trusted)));
            }
        }
    }

    /// Applies the presence and absence of known keys (RFC 5011 §4.1).
    fn update_known(&mut self, rrset: &KeyRrset<'_>, now: u64, changes: &mut Vec<Change>) {
        self.keys.retain_mut(|key| {
            let (is_retained, event) = key.update(rrset.shows(key), now);
            changes.extend(event.map(|event| Change::of(key, event)));
            is_retained
        });
    }

    /// Stores unknown keys that revoke themselves, so that they are never accepted.
    fn add_revoked(&mut self, rrset: &KeyRrset<'_>, work: &mut Work, now: u64, changes: &mut Vec<Change>) {
        for revoked in rrset.revoked_keys().filter(|rdata| rrset::is_sep(rdata)) {
            let rdata = without_revoke(revoked);
            if self.position(&rdata).is_some() || rrset.verify(revoked, work).is_none() {
                continue;
            }
            let state = KeyState::Revoked { until: now + REMOVE_HOLD_DOWN };
            self.learn(ManagedKey::new(rdata, state, now), KeyEvent::Revoked, changes);
        }
    }

    /// Begins the hold-down time of new keys with the SEP flag (RFC 5011 §2.2). Keys of unsupported
    /// algorithms are ignored: they verify nothing, and no revocation of them could be verified.
    fn add_new(
        &mut self,
        rrset: &KeyRrset<'_>,
        signers: &[u16],
        times: SignatureTimes,
        now: u64,
        changes: &mut Vec<Change>,
    ) {
        let until = now + ADD_HOLD_DOWN.max(u64::from(times.original_ttl));
        for rdata in rrset.usable_keys().filter(|rdata| rrset::is_sep(rdata)) {
            if self.position(rdata).is_none() && rrset::is_supported(rdata) {
                let state = KeyState::AddPend { until, signers: signers.to_vec() };
                let key = ManagedKey::new(rdata.to_vec(), state, now);
                self.learn(key, KeyEvent::Pending { until }, changes);
            }
        }
    }

    /// Adds a key that is not configured. If there are [`MAX_LEARNED_KEYS`], it replaces the key that
    /// was removed first, or is ignored.
    fn learn(&mut self, key: ManagedKey, event: KeyEvent, changes: &mut Vec<Change>) {
        let learned = |anchor: &Self, index: &usize| !anchor.configured_matches(anchor.keys[*index].rdata());
        let count = (0..self.keys.len()).filter(|index| learned(self, index)).count();
        if count >= MAX_LEARNED_KEYS {
            let removed = (0..self.keys.len())
                .filter(|index| *self.keys[*index].state() == KeyState::Removed && learned(self, index));
            let Some(oldest) = removed.min_by_key(|index| self.keys[*index].since()) else {
                changes.push(Change::of(&key, KeyEvent::Ignored));
                return;
            };
            self.keys.remove(oldest);
        }
        changes.push(Change::of(&key, event));
        self.keys.push(key);
    }
}

/// Limits a time to the range of the state file.
fn clamp(now: u64) -> u64 {
    now.min(Rfc3339::MAX.0 - 2 * u64::from(u32::MAX))
}
