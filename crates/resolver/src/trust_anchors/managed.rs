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
mod transitions;

pub use change::{Change, KeyEvent, ObservationFault, Outcome};
pub use key::{KeyState, ManagedKey};
pub use rrset::{MAX_DNSKEYS, MAX_VERIFICATIONS, Observation};
pub use state_file::{StateError, StateFault};

use super::file::{RecordFault, check};
use super::{AnchorRecord, ZoneAnchor, distinct_tags};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, NameRef, Rtype};
use refresh::Refresh;

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
}

/// Limits a time to the range of the state file.
fn clamp(now: u64) -> u64 {
    now.min(Rfc3339::MAX.0 - 2 * u64::from(u32::MAX))
}
