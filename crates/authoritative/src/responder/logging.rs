//! Logs rejected messages and rate limiting.

use super::{Batch, Thread};
use nonesuch_proto::NameRef;
use nonesuch_proto::message::HEADER;
use nonesuch_server::limits::{Limits, ResponseCategory};
use nonesuch_server::statistics::KnownSender;
use nonesuch_server::tsig::TsigRejection;
use std::net::{IpAddr, SocketAddr};

impl Thread {
    /// Logs that TSIG verification failed. The sender may be a known server with a wrong key.
    pub(super) fn log_tsig_rejection(
        &self,
        batch: &Batch,
        refused: &TsigRejection,
        message: &[u8],
        sender: SocketAddr,
    ) {
        let known = known_sender(batch, refused, message, sender.ip());
        self.statistics.log_tsig_rejection(refused, message, (sender, known), batch.now);
    }

    /// Logs that response rate limiting applies.
    #[cold]
    pub(super) fn log_limited(
        &mut self,
        batch: &Batch,
        limits: &Limits,
        class: ResponseCategory,
        sender: SocketAddr,
    ) {
        if self.statistics.may_log_limited(batch.milliseconds)
            && let Some(network) = limits.network_of(sender.ip())
        {
            self.statistics.log_limited(network, class, batch.now);
        }
    }
}

/// Returns how the configuration knows the sender of a message with a rejected TSIG record: its
/// address is in an access list of the zone that the message names, or its key name is configured.
fn known_sender(
    batch: &Batch,
    refused: &TsigRejection,
    message: &[u8],
    sender: IpAddr,
) -> Option<KnownSender> {
    let entry = || {
        let (name, _) = NameRef::split_from(message.get(HEADER..)?).ok()?;
        let entry = batch.database.find(name.to_canonical().view())?;
        entry.state().policy().entry_of(sender).map(KnownSender::Entry)
    };
    let key = || {
        let name = refused.key()?.to_name();
        batch.settings.keys.find(&name).is_some().then_some(KnownSender::Key(name))
    };
    entry().or_else(key)
}
