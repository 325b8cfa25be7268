//! Logs rejected messages and rate limiting.

use super::{Batch, ThreadState};
use nonesuch_proto::NameRef;
use nonesuch_proto::message::HEADER;
use nonesuch_server::limits::{Limits, ResponseCategory};
use nonesuch_server::statistics::KnownSender;
use nonesuch_server::tsig::TsigRejection;
use std::net::{IpAddr, SocketAddr};

impl ThreadState {
    /// Logs that TSIG verification failed. The line names how the configuration knows the sender,
    /// because it may be a known server with a wrong key.
    pub(super) fn log_tsig_rejection(
        &self,
        batch: &Batch,
        rejection: &TsigRejection,
        message: &[u8],
        sender: SocketAddr,
    ) {
        let known = known_sender(batch, rejection, message, sender.ip());
        self.statistics.log_tsig_rejection(rejection, message, (sender, known), batch.now);
    }

    /// Logs that response rate limiting applies to the network of the sender, unless such a line
    /// was logged a short time before.
    #[cold]
    pub(super) fn log_rate_limiting(
        &mut self,
        batch: &Batch,
        limits: &Limits,
        category: ResponseCategory,
        sender: SocketAddr,
    ) {
        if self.statistics.may_log_limited(batch.elapsed_ms)
            && let Some(network) = limits.network_of(sender.ip())
        {
            self.statistics.log_limited(network, category, batch.now);
        }
    }
}

/// Returns how the configuration knows the sender of a message with a rejected TSIG record: its
/// address is in an access list of the zone that the message names, or its key name is configured.
fn known_sender(
    batch: &Batch,
    rejection: &TsigRejection,
    message: &[u8],
    sender: IpAddr,
) -> Option<KnownSender> {
    let by_address = || {
        let (name, _) = NameRef::split_from(message.get(HEADER..)?).ok()?;
        let entry = batch.database.find_enclosing(name.to_canonical().view())?;
        entry.state().policy().matching_prefix(sender).map(KnownSender::Entry)
    };
    let by_key = || {
        let name = rejection.key()?.to_name();
        batch.settings.tsig_keys.find(&name).is_some().then_some(KnownSender::Key(name))
    };
    by_address().or_else(by_key)
}
