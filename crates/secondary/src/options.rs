//! Limits of transfers and NOTIFY messages.

use crate::notify::SecondaryStatuses;
use nonesuch_net::Heartbeats;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Limits of incoming transfers and outgoing NOTIFY messages.
#[derive(Clone, Debug)]
pub struct TransfersOptions {
    /// Maximum number of concurrent transfers.
    pub transfers: usize,
    /// Maximum number of concurrent transfers from one primary.
    pub transfers_per_primary: usize,
    /// Maximum number of concurrent SOA queries to primaries.
    pub probes: usize,
    /// Maximum duration of a transfer, without verification.
    pub time_limit: Duration,
    /// Maximum time without data from the primary during a transfer.
    pub idle_limit: Duration,
    /// Maximum number of NOTIFY messages sent per second.
    pub notify_rate: u32,
    /// File with the certificates of the authorities for primaries over TLS, in PEM. Without it, a
    /// primary with a TLS host name cannot be authenticated, and is not queried.
    pub tls_authorities: Option<PathBuf>,
    /// Records the results of NOTIFY messages.
    pub secondary_statuses: Arc<SecondaryStatuses>,
    /// Receives the heartbeat of the thread. The default discards it.
    pub heartbeats: Heartbeats,
}

impl Default for TransfersOptions {
    /// 10 transfers, 2 of them from one primary; 100 SOA queries; 2 hours for a transfer, and 30
    /// seconds without data; 100 NOTIFY messages per second.
    fn default() -> Self {
        Self {
            transfers: 10,
            transfers_per_primary: 2,
            probes: 100,
            time_limit: Duration::from_secs(7200),
            idle_limit: Duration::from_secs(30),
            notify_rate: 100,
            tls_authorities: None,
            secondary_statuses: Arc::default(),
            heartbeats: Heartbeats::default(),
        }
    }
}
