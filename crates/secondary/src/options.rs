//! Limits of transfers.

use crate::notify::Secondaries;
use nonesuch_net::Heartbeats;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Limits of transfers in and of NOTIFY messages out.
#[derive(Clone, Debug)]
pub struct TransfersOptions {
    /// Transfers at once.
    pub transfers: usize,
    /// Transfers at once from one primary.
    pub transfers_each: usize,
    /// Primaries that are asked for serials at once.
    pub probes: usize,
    /// A transfer takes no longer than this, verification aside.
    pub time_limit: Duration,
    /// A primary keeps silent no longer than this in a transfer.
    pub idle_limit: Duration,
    /// NOTIFY messages sent in a second.
    pub notify_rate: u32,
    /// Certificates of those that may vouch for primaries over TLS, in PEM; without it a primary that is named cannot be
    /// authenticated, and is not asked.
    pub tls_authorities: Option<PathBuf>,
    /// Where the results of NOTIFY messages are noted.
    pub secondaries: Arc<Secondaries>,
    /// Where the thread's loop reports. By default nowhere.
    pub heartbeats: Heartbeats,
}

impl Default for TransfersOptions {
    /// 10 transfers, 2 from one primary, 100 probes; 2 hours, 30 seconds; 100 messages a second.
    fn default() -> Self {
        Self {
            transfers: 10,
            transfers_each: 2,
            probes: 100,
            time_limit: Duration::from_secs(7200),
            idle_limit: Duration::from_secs(30),
            notify_rate: 100,
            tls_authorities: None,
            secondaries: Arc::default(),
            heartbeats: Heartbeats::default(),
        }
    }
}
