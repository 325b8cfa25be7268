//! Commands to the transfer thread.

use super::SecondaryZone;
use crate::notify::{NotifyReason, SoaRecord};
use nonesuch_proto::Name;
use nonesuch_server::acl::Remote;

/// A command to the transfer thread.
pub(super) enum Command {
    Set(Box<SecondaryZone>),
    Remove(Name),
    Retire(Name),
    Refresh(Name),
    Retransfer(Name),
    Reconsider,
    Retain { apex: Name, to: Vec<Remote> },
    Announce { apex: Name, soa: SoaRecord, to: Vec<Remote>, occasion: NotifyReason },
    Stop,
}
