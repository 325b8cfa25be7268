//! One key of a zone and its state.

use super::{KeyEvent, REMOVE_HOLD_DOWN};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_dnssec::keys::REVOKE;

/// The state of a key (RFC 5011 §4.2). A key in state Start is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The key is in its hold-down time. It is no trust anchor.
    AddPend {
        /// The end of the hold-down time, in seconds since 1970.
        until: u64,
        /// The key tags of the trust anchors that signed the first RRset with this key.
        signers: Vec<u16>,
    },
    /// The key is a trust anchor.
    Valid,
    /// The key is a trust anchor, but was not in the last RRset.
    Missing,
    /// The key is revoked. It is no trust anchor.
    Revoked {
        /// The time at which the key becomes Removed if it is not seen before, in seconds since 1970.
        until: u64,
    },
    /// The key is revoked and gone. It is no trust anchor.
    Removed,
}

impl KeyState {
    /// Returns the name of the state in state files and in the status.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AddPend { .. } => "addpend",
            Self::Valid => "valid",
            Self::Missing => "missing",
            Self::Revoked { .. } => "revoked",
            Self::Removed => "removed",
        }
    }
}

/// One key of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedKey {
    rdata: Vec<u8>,
    tag: u16,
    state: KeyState,
    since: u64,
}

impl ManagedKey {
    /// Returns a key that is in `state` since `since`. `rdata` has at least four octets and no REVOKE
    /// flag.
    pub(super) fn new(rdata: Vec<u8>, state: KeyState, since: u64) -> Self {
        let tag = key_tag(&rdata);
        Self { rdata, tag, state, since }
    }

    /// Returns the RDATA of the DNSKEY record, without the REVOKE flag.
    #[must_use]
    pub fn rdata(&self) -> &[u8] {
        &self.rdata
    }

    /// Returns the key tag of the DNSKEY record without the REVOKE flag.
    #[must_use]
    pub const fn tag(&self) -> u16 {
        self.tag
    }

    /// Returns the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        Algorithm(self.rdata.get(3).copied().unwrap_or_default())
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> &KeyState {
        &self.state
    }

    /// Returns the time at which the key entered its state, in seconds since 1970.
    #[must_use]
    pub const fn since(&self) -> u64 {
        self.since
    }

    /// Returns whether the key is a trust anchor.
    #[must_use]
    pub const fn is_anchor(&self) -> bool {
        matches!(self.state, KeyState::Valid | KeyState::Missing)
    }

    /// Returns whether the key is revoked.
    #[must_use]
    pub const fn is_revoked(&self) -> bool {
        matches!(self.state, KeyState::Revoked { .. } | KeyState::Removed)
    }

    pub(super) fn enter(&mut self, state: KeyState, now: u64) {
        (self.state, self.since) = (state, now);
    }

    /// Applies an RRset that a trust anchor signs. Returns whether the key is still known, and the
    /// event.
    pub(super) fn update(&mut self, is_present: bool, now: u64) -> (bool, Option<KeyEvent>) {
        let (state, event) = match (&mut self.state, is_present) {
            (KeyState::AddPend { .. }, false) => return (false, Some(KeyEvent::Disappeared)),
            (KeyState::AddPend { until, .. }, true) if *until <= now => (KeyState::Valid, KeyEvent::Trusted),
            (KeyState::Valid, false) => (KeyState::Missing, KeyEvent::Missing),
            (KeyState::Missing, true) => (KeyState::Valid, KeyEvent::Returned),
            (KeyState::Revoked { until }, true) => {
                *until = now + REMOVE_HOLD_DOWN;
                return (true, None);
            }
            (KeyState::Revoked { until }, false) if *until <= now => (KeyState::Removed, KeyEvent::Removed),
            _ => return (true, None),
        };
        self.enter(state, now);
        (true, Some(event))
    }
}

/// Returns the RDATA of a DNSKEY record without the REVOKE flag.
pub(super) fn without_revoke(rdata: &[u8]) -> Vec<u8> {
    let mut rdata = rdata.to_vec();
    if let Some(flags) = rdata.first_chunk_mut() {
        *flags = (u16::from_be_bytes(*flags) & !REVOKE).to_be_bytes();
    }
    rdata
}
