//! A running server with all its parts; signals and the control socket act on it.

use crate::certificate;
use crate::config::Configuration;
use crate::files::count_text;
use crate::server::reload_status::ReloadStatus;
use crate::server::settings::workers;
use crate::server::systemd::Notifier;
use nonesuch_authoritative::ServerContext;
use nonesuch_authoritative::server::{BoundSockets, Server};
use nonesuch_authoritative::service::{ActivityStatus, Service};
use nonesuch_net::NetError;
use nonesuch_net::tls::IdentitySlot;
use nonesuch_secondary::Transfers;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The source of the configuration of a server.
pub(crate) enum ConfigurationSource {
    /// A file. A reload reads it again.
    File(PathBuf),
    /// The command line. A reload reads only the zone file again.
    Arguments,
}

impl ConfigurationSource {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Arguments => None,
        }
    }
}

/// The parts of a running server.
pub(crate) struct Daemon {
    pub(crate) source: ConfigurationSource,
    /// The current configuration.
    pub(crate) configuration: Mutex<Configuration>,
    /// The zones and their versions.
    pub(crate) service: Arc<Service>,
    /// The data that the workers and connections share.
    pub(crate) context: ServerContext,
    /// The transfers from primaries, and NOTIFY messages to secondaries.
    pub(crate) transfers: Arc<Transfers>,
    /// Certificate and key of the TLS listeners; `None` without TLS.
    pub(crate) tls_identity: Option<IdentitySlot>,
    /// The sockets and workers; `None` before they start and after they stop.
    pub(crate) server: Mutex<Option<Server>>,
    /// Notifies systemd.
    pub(crate) notifier: Notifier,
    /// Notified when a client of the control socket requests to stop the server.
    pub(crate) stop_request: Notify,
    /// Held during a reload and during a change of the file of added zones. The next reload waits
    /// before it reads the configuration, so that the newest configuration is applied last.
    pub(crate) reload_lock: Mutex<()>,
    /// The settings at the start, and the outcomes of the reloads so far.
    pub(crate) reloads: ReloadStatus,
    /// Start of the server, for the uptime.
    pub(crate) started_at: Instant,
}

impl Daemon {
    pub(crate) fn configuration(&self) -> MutexGuard<'_, Configuration> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to answer queries at bound sockets.
    pub(crate) fn start(&self, bound: BoundSockets) -> Result<(), NetError> {
        let server = bound.start(&self.context)?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// Number of UDP workers of each address.
    pub(crate) fn workers(&self) -> usize {
        workers(&self.configuration())
    }

    /// Requests the main loop to stop the server.
    pub(crate) fn request_stop(&self) {
        self.stop_request.notify_one();
    }

    /// The current activities.
    pub(crate) fn activities(&self) -> Vec<ActivityStatus> {
        self.service.activities().list()
    }

    /// Warns of a certificate that has expired or expires soon.
    pub(crate) fn warn_of_certificate(&self) {
        let tls = self.configuration().server.tls.clone();
        certificate::warn_of_expiry(&tls);
    }

    /// The numbers of served, waiting and failed zones in one line, for systemd and the line
    /// "ready".
    pub(crate) fn status_line(&self) -> String {
        let status = self.service.status();
        format!(
            "{} served, {} waiting, {} failed",
            count_text(status.serving, "zone"),
            status.not_ready + status.expired,
            status.failed
        )
    }
}
