//! A running server with all that belongs to it: what signals and the control socket act on.

use crate::certificate::warn_of_expiry;
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

/// Where the configuration of a server comes from.
pub(crate) enum Origin {
    /// A file, which a reload reads again.
    File(PathBuf),
    /// The command line: a reload looks at the zone's file alone.
    Arguments,
}

impl Origin {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Arguments => None,
        }
    }
}

/// What a running server is made of.
pub(crate) struct Daemon {
    pub(crate) origin: Origin,
    /// The configuration that is in force.
    pub(crate) configuration: Mutex<Configuration>,
    pub(crate) service: Arc<Service>,
    pub(crate) shared: ServerContext,
    pub(crate) transfers: Arc<Transfers>,
    pub(crate) identity: Option<IdentitySlot>,
    /// What answers; `None` before it does, and when it has ended.
    pub(crate) server: Mutex<Option<Server>>,
    pub(crate) notifier: Notifier,
    pub(crate) stop: Notify,
    /// Held by the reload that goes on: the next one reads the configuration after it, so that the newest one stays.
    pub(crate) reloading: Mutex<()>,
    /// The outcome of the reloads so far.
    pub(crate) reloads: ReloadStatus,
    pub(crate) begun: Instant,
}

impl Daemon {
    pub(crate) fn configuration(&self) -> MutexGuard<'_, Configuration> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts answering at sockets that are bound.
    pub(crate) fn start(&self, bound: BoundSockets) -> Result<(), NetError> {
        let server = bound.start(&self.shared)?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// UDP threads of each address.
    pub(crate) fn workers(&self) -> usize {
        workers(&self.configuration())
    }

    /// Has the server stop.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.notify_one();
    }

    /// What goes on.
    pub(crate) fn activities(&self) -> Vec<ActivityStatus> {
        self.service.activities().list()
    }

    /// Warns of a certificate that has expired, or soon will.
    pub(crate) fn warn_of_certificate(&self) {
        let files = self.configuration().server.tls.clone();
        if let Some(said) = files.and_then(|files| warn_of_expiry(&files.certificate, jiff::Timestamp::now()))
        {
            tracing::warn!("{said}");
        }
    }

    /// The state of the server in a line.
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
