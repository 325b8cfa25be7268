//! What the log is told of messages that are refused or limited.

use super::{Batch, Thread};
use crate::limits::{Class, Limits};
use crate::tsig::Refused;
use std::net::SocketAddr;

impl Thread {
    /// Tells that a message with a TSIG record was refused: who sent it may be one of ours with a wrong key.
    pub(super) fn tell_refused_signature(
        &self,
        batch: &Batch,
        refused: &Refused,
        message: &[u8],
        sender: SocketAddr,
    ) {
        self.statistics.tell_refused_signature(refused, message, sender, batch.now);
    }

    /// Tells that responses are limited.
    #[cold]
    pub(super) fn tell_limited(&mut self, batch: &Batch, limits: &Limits, class: Class, sender: SocketAddr) {
        if self.statistics.may_tell_limited(batch.milliseconds)
            && let Some(network) = limits.network_of(sender.ip())
        {
            self.statistics.tell_limited(network, class, batch.now);
        }
    }
}
