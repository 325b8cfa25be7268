//! What follows from an observed DNSKEY RRset: the transitions of its keys (RFC 5011 §4).

use super::key::without_revoke;
use super::rrset::{self, KeyRrset, SignatureTimes, Work};
use super::{
    ADD_HOLD_DOWN, Change, KeyEvent, KeyState, MAX_LEARNED_KEYS, ManagedAnchor, ManagedKey, Observation,
    ObservationFault, Outcome, REMOVE_HOLD_DOWN, clamp,
};

impl ManagedAnchor {
    /// Processes the DNSKEY RRset of the zone. It verifies at most
    /// [`MAX_VERIFICATIONS`](super::MAX_VERIFICATIONS) signatures. If no trust anchor signs the RRset,
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
