//! Copies of zones from primaries: when a primary is asked, what is transferred, when a zone expires (RFC 1034 §4.3.5, RFC 1996,
//! RFC 1995, RFC 5936).
//!
//! [`Machine`] decides for one zone, without I/O and without a clock: it gets events and the time, and returns actions.
//! [`Transfers`] carries them out, for all zones in one thread; it needs a [`ZoneStore`], the server around it. The host may be an
//! authoritative server, or a resolver with response policy zones.
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

/// What a transfer brought: a version of the zone that is to be verified and published.
#[derive(Debug)]
pub struct ReceivedVersion {
    /// Who gave it: the zone may be had from others by the time that it is here.
    pub primary: Remote,
    /// The whole zone.
    pub contents: Contents,
    /// What led to it from the version that was here, one for each serial, in order; empty where the whole zone was
    /// transferred.
    pub steps: Vec<ChangeSet>,
}

/// Why a version was not published. The zone that was there stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The version is not fit to be served.
    #[error("{reason}")]
    Rejected {
        /// Why.
        reason: String,
        /// How long that holds.
        verdict: RejectionPeriod,
    },
    /// This server lacks what publishing it takes, whatever version it is: keys, or a state directory that can be written to.
    #[error("{0}")]
    Failed(String),
    /// Nobody wants it: the zone is gone, or is had from others by now.
    #[error("{0}")]
    NoLongerWanted(String),
}

/// What transfers need of the server around them. [`publish`](ZoneStore::publish) and [`store`](ZoneStore::store) are called on threads that may block, the others in the
/// one thread of all transfers: they are to return at once, whatever is being done with the zone.
pub trait ZoneStore: Send + Sync + 'static {
    /// What is here of the zone, whether it is served or has expired.
    fn contents(&self, apex: &Name) -> Option<Arc<Contents>>;

    /// Verifies what was received as the zone's settings say, stores it and serves it.
    ///
    /// # Errors
    /// Why it is refused.
    fn publish(&self, apex: &Name, received: ReceivedVersion) -> Result<(), PublishError>;

    /// Answers SERVFAIL for the zone: no primary has been reached for too long (RFC 1035 §3.3.13, EXPIRE).
    fn expire(&self, apex: &Name);

    /// Serves again what is here of the zone: a primary has said that it is the newest version.
    fn restore(&self, apex: &Name);

    /// Stores the served version where storing it failed at publication. Returns whether it is stored. Called on threads that may
    /// block.
    fn store(&self, _apex: &Name) -> bool {
        true
    }

    /// Returns what is stored of the zone.
    fn load_state(&self, _apex: &Name) -> StoredState {
        StoredState::default()
    }

    /// Stores when the zone was refreshed. Called on threads that may block.
    fn store_timers(&self, _apex: &Name, _timers: Timers) {}

    /// Stores which versions were rejected; without serials, that none was. Called on threads that may block.
    fn store_rejected(&self, _apex: &Name, _rejected: RejectedVersions) {}

    /// Removes what is stored of the zone.
    fn forget(&self, _apex: &Name) {}

    /// Says when the zone expires as things stand, for secondaries that ask (RFC 7314 §3.2); to begin with, and when that changes.
    fn set_expiry(&self, _apex: &Name, _expires: Option<Instant>) {}

    /// The TSIG keys.
    fn keys(&self) -> nonesuch_server::tsig::TsigKeys;
}

/// A zone that is to be had from primaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondaryZone {
    /// The zone.
    pub apex: Name,
    /// Where it is had from, the preferred ones first. At least one.
    pub primaries: Vec<Remote>,
    /// A digest of the settings that versions are verified by; without it, rejected versions are not stored and are transferred
    /// again after each start.
    pub judged_by: Option<String>,
    /// Bounds of what the zone's SOA record asks for.
    pub timing: Timing,
    /// Bounds of one transfer.
    pub bounds: TransferBounds,
    /// Whether steps are asked for where a version is here.
    pub request_ixfr: bool,
}
