//! Secondary zones: when to query a primary, what to transfer, and when a zone expires (RFC 1034
//! §4.3.5, RFC 1996, RFC 1995, RFC 5936).
//!
//! [`Machine`] decides for one zone, without I/O and without a clock. It takes events and the time,
//! and returns actions. [`Transfers`] executes the actions for all zones in one thread. It needs a
//! [`ZoneStore`], which the server implements. The server may be an authoritative server, or a
//! resolver with response policy zones.
#![forbid(unsafe_code)]

mod command;
mod driver;
mod error;
mod event;
mod exchange;
pub mod inbound;
mod machine;
pub mod notify;
mod options;
mod queue;
mod status;
mod stored;
mod task;
mod timing;
mod transfers;
mod write_order;

#[cfg(test)]
mod tests;

pub use event::{Action, Event, InboundOutcome, RejectionPeriod};
pub use machine::Machine;
pub use options::TransfersOptions;
pub use status::{
    Counts, FailingPrimary, IxfrOutcomes, Phase, RefreshState, TransferKind, TransferProgress, ZoneStatus,
};
pub use stored::{RejectedSerials, RejectedVersions, StoredState, Timers};
pub use timing::{LastRefresh, LocalSoa, TimeBounds, Timing, is_expired};
pub use transfers::Transfers;

use crate::inbound::TransferBounds;
use nonesuch_proto::Name;
use nonesuch_server::acl::Remote;
use nonesuch_zone::{ChangeSet, Contents};
use std::sync::Arc;
use std::time::Instant;

/// A version from a transfer, which the server must verify and publish.
#[derive(Debug)]
pub struct ReceivedVersion {
    /// The primary that sent the version. The configuration may have changed since the transfer
    /// began, and no longer contain this primary.
    pub primary: Remote,
    /// The whole zone.
    pub contents: Contents,
    /// The changes from the previous version, one set for each serial, in order. Empty after a
    /// transfer of the whole zone.
    pub steps: Vec<ChangeSet>,
}

/// Why a version was not published. The previous version is still served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The version was rejected.
    #[error("{reason}")]
    Rejected {
        /// Why it was rejected.
        reason: String,
        /// The period of the rejection.
        verdict: RejectionPeriod,
    },
    /// The server cannot publish any version, because it lacks keys or cannot write to the state
    /// directory.
    #[error("{0}")]
    Failed(String),
    /// The version is not needed any more, because the zone was removed or its primaries were
    /// changed.
    #[error("{0}")]
    NoLongerWanted(String),
}

/// The operations that transfers need from the server. [`publish`](ZoneStore::publish),
/// [`store`](ZoneStore::store), [`store_timers`](ZoneStore::store_timers) and
/// [`store_rejected`](ZoneStore::store_rejected) are called on threads that may block. All other
/// functions are called in the single thread of all transfers, and must return immediately even
/// while the zone is in use.
pub trait ZoneStore: Send + Sync + 'static {
    /// Returns the local version of the zone, even if the zone has expired.
    fn contents(&self, apex: &Name) -> Option<Arc<Contents>>;

    /// Verifies the received version according to the settings of the zone, stores it and serves
    /// it.
    ///
    /// # Errors
    /// Returns why the version was not published.
    fn publish(&self, apex: &Name, received: ReceivedVersion) -> Result<(), PublishError>;

    /// Answers SERVFAIL for the zone, because no primary confirmed it within the expire time (RFC
    /// 1035 §3.3.13, EXPIRE).
    fn expire(&self, apex: &Name);

    /// Serves the local version of the zone again, because a primary confirmed that it is the
    /// newest version.
    fn restore(&self, apex: &Name);

    /// Stores the served version if storing it failed when it was published. Returns whether the
    /// version is stored. Called on threads that may block.
    fn store(&self, _apex: &Name) -> bool {
        true
    }

    /// Returns the stored state of the zone.
    fn load_state(&self, _apex: &Name) -> StoredState {
        StoredState::default()
    }

    /// Stores the time of the last refresh. Called on threads that may block.
    fn store_timers(&self, _apex: &Name, _timers: Timers) {}

    /// Stores which versions were rejected. With an empty list, removes the stored list. Called on
    /// threads that may block.
    fn store_rejected(&self, _apex: &Name, _rejected: RejectedVersions) {}

    /// Removes the stored state of the zone.
    fn forget(&self, _apex: &Name) {}

    /// Sets the time at which the zone expires, for secondaries that request it (RFC 7314 §3.2).
    /// `None`: the zone has no local version. Called after each change, and when a zone with
    /// a local version is added.
    fn set_expiry(&self, _apex: &Name, _expires: Option<Instant>) {}

    /// Returns the TSIG keys.
    fn keys(&self) -> nonesuch_server::tsig::TsigKeys;
}

/// A zone that is transferred from primaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondaryZone {
    /// The apex of the zone.
    pub apex: Name,
    /// The primaries, in order of preference. At least one.
    pub primaries: Vec<Remote>,
    /// A digest of the settings for the verification of versions. `None`: rejected versions are not
    /// stored, and are transferred again after each start.
    pub judged_by: Option<String>,
    /// Bounds for the times in the zone's SOA record.
    pub timing: Timing,
    /// Limits of one transfer.
    pub bounds: TransferBounds,
    /// Whether to request IXFR if there is a local version.
    pub request_ixfr: bool,
}
