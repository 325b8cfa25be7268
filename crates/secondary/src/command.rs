//! Commands to the transfer thread.

use super::SecondaryZone;
use crate::notify::{NotifyReason, SoaRecord};
use nonesuch_proto::Name;
use nonesuch_server::acl::Remote;

/// A command to the transfer thread.
pub(super) enum Command {
    /// Add a zone, or change its settings.
    Set(Box<SecondaryZone>),
    /// Remove a zone and its stored state.
    Remove(Name),
    /// Remove a zone, and keep its stored state.
    Retire(Name),
    /// Query the primaries of the zone now.
    Refresh(Name),
    /// Transfer the whole zone now.
    Retransfer(Name),
    /// Refresh all zones with a rejected version.
    Reconsider,
    /// Remove all secondaries of a zone except `to`.
    Retain {
        apex: Name,
        to: Vec<Remote>,
    },
    /// Send NOTIFY messages to `to`.
    Announce {
        apex: Name,
        soa: SoaRecord,
        to: Vec<Remote>,
        reason: NotifyReason,
    },
    Stop,
}
