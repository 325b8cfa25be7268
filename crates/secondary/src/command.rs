//! Commands to the transfer thread.

use super::SecondaryZone;
use crate::notify::{NotifyReason, SoaRecord};
use nonesuch_proto::Name;
use nonesuch_server::acl::Remote;

/// A command to the transfer thread.
pub(super) enum Command {
    /// Add a zone, or change its settings.
    SetZone(Box<SecondaryZone>),
    /// Remove a zone and its stored state.
    RemoveZone(Name),
    /// Remove a zone, and keep its stored state.
    RemoveZoneKeepState(Name),
    /// Query the primaries of the zone now.
    Refresh(Name),
    /// Transfer the whole zone now.
    Retransfer(Name),
    /// Refresh all zones with a rejected version.
    RefreshRejected,
    /// Forget all secondaries of a zone except `to`: their statuses, and the NOTIFY messages that
    /// are queued for them.
    RetainSecondaries { apex: Name, to: Vec<Remote> },
    /// Send NOTIFY messages to `to`.
    Notify { apex: Name, soa: SoaRecord, to: Vec<Remote>, reason: NotifyReason },
    /// End the thread: abort all SOA queries and transfers, and wait for active writes.
    Stop,
}
