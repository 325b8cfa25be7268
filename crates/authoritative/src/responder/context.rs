//! What all threads of a server work with.

use crate::settings::AnswerSettings;
use crate::transfer::outbound::{self, OutgoingTransfers};
use crate::zones::Zones;
use arc_swap::ArcSwap;
use nonesuch_net::Heartbeats;
use nonesuch_secondary::notify::{ReceivedNotify, Secondaries};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::dnstap::DnstapOutput;
use nonesuch_server::statistics::Statistics;
use std::sync::Arc;

/// Takes news of zones that changed at their primaries, and never waits; `false` where it cannot take more.
pub type NotifySink = Arc<dyn Fn(ReceivedNotify) -> bool + Send + Sync>;

/// What all threads of a server work with.
#[derive(Clone)]
pub struct ServerContext {
    /// The zones.
    pub zones: Arc<Zones>,
    /// What a reload may change.
    pub settings: Arc<ArcSwap<AnswerSettings>>,
    /// Where it is counted what was done.
    pub statistics: Arc<Statistics>,
    /// Where messages are copied to.
    pub tap: Option<Arc<DnstapOutput>>,
    /// The transfers under way.
    pub outgoing: Arc<OutgoingTransfers>,
    /// Who is told of NOTIFY messages; nobody: zones are not transferred to here.
    pub notify_sink: Option<NotifySink>,
    /// The secondaries that are notified.
    pub secondaries: Arc<Secondaries>,
    /// Where the loop of each thread that answers reports.
    pub heartbeats: Heartbeats,
}

impl ServerContext {
    /// Answers from `zones`, without keys, limits and transfers to here.
    #[must_use]
    pub fn new(zones: Arc<Zones>) -> Self {
        Self {
            zones,
            settings: Arc::default(),
            statistics: Statistics::new(),
            tap: None,
            outgoing: Arc::new(OutgoingTransfers::new(outbound::DEFAULT_MOST, seconds_now)),
            notify_sink: None,
            secondaries: Arc::default(),
            heartbeats: Heartbeats::default(),
        }
    }
}

impl std::fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerContext").field("zones", &self.zones).finish_non_exhaustive()
    }
}
