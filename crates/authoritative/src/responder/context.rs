//! The context that all threads of a server share.

use crate::settings::AnswerSettings;
use crate::transfer::outbound::{self, OutgoingTransfers};
use crate::zones::Zones;
use arc_swap::ArcSwap;
use nonesuch_net::Heartbeats;
use nonesuch_secondary::notify::{ReceivedNotify, SecondaryStatuses};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::dnstap::DnstapOutput;
use nonesuch_server::statistics::Statistics;
use std::sync::Arc;

/// Receives NOTIFY messages from primaries. It never blocks, and returns `false` if it cannot
/// accept more.
pub type NotifySink = Arc<dyn Fn(ReceivedNotify) -> bool + Send + Sync>;

/// The context that all threads of a server share.
#[derive(Clone)]
pub struct ServerContext {
    /// The zones of the server.
    pub zones: Arc<Zones>,
    /// Settings that a reload can change.
    pub settings: Arc<ArcSwap<AnswerSettings>>,
    /// Counters of queries and responses.
    pub statistics: Arc<Statistics>,
    /// The dnstap output that receives copies of messages; `None` if dnstap is off.
    pub dnstap: Option<Arc<DnstapOutput>>,
    /// Outgoing transfers in progress.
    pub outgoing_transfers: Arc<OutgoingTransfers>,
    /// Receives NOTIFY messages. With `None`, this server is not a secondary, and NOTIFY has no
    /// effect.
    pub notify_sink: Option<NotifySink>,
    /// The last NOTIFY, query and transfer of each notified secondary; only for display.
    pub secondary_statuses: Arc<SecondaryStatuses>,
    /// Registry in which each thread that answers queries reports that it runs, for the watchdog of
    /// systemd.
    pub heartbeats: Heartbeats,
}

impl ServerContext {
    /// Creates a context for a server of `zones` without TSIG keys, limits, dnstap or incoming
    /// transfers.
    #[must_use]
    pub fn new(zones: Arc<Zones>) -> Self {
        Self {
            zones,
            settings: Arc::default(),
            statistics: Statistics::new(),
            dnstap: None,
            outgoing_transfers: Arc::new(OutgoingTransfers::new(
                outbound::DEFAULT_MAX_TRANSFERS,
                seconds_now,
            )),
            notify_sink: None,
            secondary_statuses: Arc::default(),
            heartbeats: Heartbeats::default(),
        }
    }
}

impl std::fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerContext").field("zones", &self.zones).finish_non_exhaustive()
    }
}
