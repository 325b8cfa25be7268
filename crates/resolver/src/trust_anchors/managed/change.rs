//! What an observation changed, for log events.

use super::ManagedKey;
use super::rrset::MAX_DNSKEYS;
use nonesuch_crypto::Algorithm;

/// The result of an observation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Why the RRset was not accepted; `None` if a trust anchor signs it. Revocations may take effect
    /// nevertheless.
    pub fault: Option<ObservationFault>,
}

/// A change of the trust anchors of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key changed its state.
    Key {
        /// The key tag, of the DNSKEY without the REVOKE flag.
        tag: u16,
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// The event.
        event: KeyEvent,
    },
    /// All trust anchors are revoked: the zone has no trust anchor anymore (RFC 5011 §5).
    AllRevoked,
}

impl Change {
    pub(super) fn of(key: &ManagedKey, event: KeyEvent) -> Self {
        Self::Key { tag: key.tag(), algorithm: key.algorithm(), event }
    }
}

/// An event of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEvent {
    /// The key is new. It becomes a trust anchor after the hold-down time (Start → AddPend).
    Pending {
        /// The end of the hold-down time, in seconds since 1970.
        until: u64,
    },
    /// The key disappeared in the hold-down time, which restarts if it returns (AddPend → Start).
    Disappeared,
    /// All keys that signed the first RRset with this key are revoked; the hold-down time restarts
    /// (AddPend → Start).
    SignersRevoked,
    /// The key is a trust anchor (AddPend → Valid, or a key of a configured DS record).
    Trusted,
    /// The key is not in the RRset. It is still a trust anchor (Valid → Missing).
    Missing,
    /// The key is in the RRset again (Missing → Valid).
    Returned,
    /// The key is revoked. It is never a trust anchor again (any state → Revoked).
    Revoked,
    /// The revoked key was not in the RRset for 30 days (Revoked → Removed).
    Removed,
    /// The key is new and is not stored, because too many keys are known.
    Ignored,
}

impl KeyEvent {
    /// Returns the name of the event in log messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Disappeared => "disappeared",
            Self::SignersRevoked => "signers-revoked",
            Self::Trusted => "trusted",
            Self::Missing => "missing",
            Self::Returned => "returned",
            Self::Revoked => "revoked",
            Self::Removed => "removed",
            Self::Ignored => "ignored",
        }
    }
}

/// Why a DNSKEY RRset is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObservationFault {
    /// The RRset has too many keys.
    #[error("the DNSKEY RRset has more than {MAX_DNSKEYS} records")]
    TooManyKeys,
    /// The RRset has no key that is a trust anchor.
    #[error("the DNSKEY RRset has no key that is a trust anchor")]
    NoAnchor,
    /// No trust anchor signs the RRset.
    #[error("the DNSKEY RRset has no valid signature by a trust anchor")]
    NoSignature,
}
