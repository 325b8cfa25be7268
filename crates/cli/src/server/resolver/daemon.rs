//! A running resolver with all its parts; signals and the control socket act on it.

use super::anchor_state::AnchorFiles;
use super::cost_model::CostModelHistory;
use super::tls::TlsService;
use crate::config::resolver::ResolverConfiguration;
use crate::control_protocol::{
    CacheFlushed, CacheStatus, ManagedKeyStatus, ResolverStatus, UpstreamStatus, VERSION, ValidationStatus,
};
use crate::files::count_text;
use crate::logging;
use crate::metrics::{ResolverCounters, Snapshot};
use crate::server::reload_status::ReloadHistory;
use crate::server::systemd::Notifier;
use crate::zones::time_or_now;
use nonesuch_net::NetError;
use nonesuch_net::event_loop::{EventLoopCounters, EventLoopServer, EventLoopStatistics};
use nonesuch_proto::Name;
use nonesuch_resolver::Shared;
use nonesuch_resolver::trust_anchors::managed::{ManagedAnchor, ManagedKey};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The parts of a running resolver.
pub(crate) struct ResolverDaemon {
    /// The file that a reload reads; `None` if the settings are those of the command line.
    pub(super) path: Option<PathBuf>,
    /// The configuration at the start.
    pub(super) at_start: ResolverConfiguration,
    pub(super) workers: usize,
    /// Names of the settings that changed and take effect at the next start. Locked during a reload.
    pub(super) needs_restart: Mutex<Vec<&'static str>>,
    pub(super) reloads: ReloadHistory,
    pub(super) cost_model: CostModelHistory,
    /// The state files of trust anchors; `None` if these are static.
    pub(super) anchor_files: Option<AnchorFiles>,
    pub(super) shared: Arc<Shared>,
    /// The addresses that it listens on for UDP and TCP.
    pub(super) addresses: Vec<SocketAddr>,
    /// DNS over TLS; `None` without a certificate.
    pub(super) tls: Option<TlsService>,
    pub(super) statistics: EventLoopStatistics,
    /// The sockets and workers; `None` after they stopped.
    pub(super) server: Mutex<Option<EventLoopServer>>,
    /// Notifies systemd.
    pub(super) notifier: Notifier,
    /// Notified when a client of the control socket requests to stop the resolver.
    pub(super) stop_request: Notify,
    /// Start of the resolver, for the uptime.
    pub(super) started_at: Instant,
}

impl ResolverDaemon {
    /// Lets the workers use new options.
    pub(super) fn wake(&self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.iter().for_each(EventLoopServer::wake);
    }

    pub(super) fn stop(&self) -> Result<(), NetError> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        server.map_or(Ok(()), EventLoopServer::stop)
    }

    /// Requests the main loop to stop the resolver.
    pub(crate) fn request_stop(&self) {
        self.stop_request.notify_one();
    }

    pub(super) fn counters(&self) -> EventLoopCounters {
        self.statistics.total()
    }

    /// The addresses that it listens on for TLS.
    pub(super) fn tls_addresses(&self) -> &[SocketAddr] {
        self.tls.as_ref().map_or(&[], |tls| &tls.addresses)
    }

    /// Warns of a certificate that has expired or expires soon.
    pub(super) fn warn_of_certificate(&self) {
        self.tls.iter().for_each(TlsService::warn_of_certificate);
    }

    /// Removes the cached data at and below a name.
    pub(crate) fn flush_cache(&self, name: &Name) -> CacheFlushed {
        let entries = self.shared.flush_below(name.view()) as u64;
        let name = name.to_string();
        tracing::info!(name: "cache-flushed", name, entries, "cache: entries at and below {name} removed");
        CacheFlushed { name, entries }
    }

    /// Adds the work of the last second.
    pub(super) fn sample_cost_model(&self) {
        self.cost_model.sample(self.shared.model.totals(), time_or_now(None).into());
    }

    fn validation_status(&self) -> ValidationStatus {
        let (zones, octets) = self.shared.trust.size();
        let denials = self.shared.denials.statistics();
        ValidationStatus {
            anchors: self.shared.anchor_apexes().iter().map(ToString::to_string).collect(),
            keys: self.managed_keys(),
            negative_anchors: self.negative_anchors(),
            zones: zones as u64,
            octets: octets as u64,
            denials: denials.entries as u64,
            denial_answers: denials.hits,
        }
    }

    /// The known keys of zones whose trust anchors are updated automatically.
    fn managed_keys(&self) -> Vec<ManagedKeyStatus> {
        let of_zone = |zone: &ManagedAnchor| {
            let status = |key: &ManagedKey| ManagedKeyStatus {
                zone: zone.apex().to_name().to_string(),
                tag: key.tag(),
                algorithm: key.algorithm().0,
                state: key.state().name().to_owned(),
                since: key.since(),
            };
            zone.keys().iter().map(status).collect::<Vec<_>>()
        };
        self.shared.managed_anchors().iter().flat_map(of_zone).collect()
    }

    /// The state in one line, for systemd.
    pub(super) fn status_line(&self) -> String {
        let addresses = self.addresses.len() + self.tls_addresses().len();
        format!("resolving on {}", count_text(addresses, "address"))
    }

    /// The status of the resolver.
    pub(crate) fn status(&self) -> ResolverStatus {
        let (counters, cache) = (self.counters(), self.shared.cache.statistics());
        let upstream = counters.upstream;
        let needs_restart = self.needs_restart.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ResolverStatus {
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            up_seconds: self.started_at.elapsed().as_secs(),
            configuration: self.path.clone(),
            control_socket: self.at_start.control_socket.clone(),
            listen: self.addresses.clone(),
            listen_tls: self.tls_addresses().to_vec(),
            datagrams_in: counters.udp.datagrams_in,
            datagrams_out: counters.udp.datagrams_out,
            needs_restart: needs_restart.into_iter().map(str::to_owned).collect(),
            refused_configuration: self.reloads.rejected_configuration(),
            cache: CacheStatus {
                entries: cache.entries,
                octets: cache.octets,
                octets_max: self.shared.cache.options().octets as u64,
                hits: cache.hits,
                misses: cache.misses,
            },
            upstream: UpstreamStatus {
                queries: upstream.datagrams_out + upstream.messages_out,
                responses: upstream.datagrams_in + upstream.messages_in,
                open: upstream.open_sockets + upstream.open_connections,
            },
            validation: self.validation_status(),
            cost_model: self.cost_model.status(&self.shared.model.totals(), time_or_now(None).into()),
        }
    }

    /// The values for the metrics.
    pub(super) fn snapshot(&self) -> Snapshot {
        let counters = self.counters();
        Snapshot {
            statistics: self.shared.statistics.sum(),
            udp: counters.udp,
            tcp: counters.tcp,
            tls: (!self.tls_addresses().is_empty()).then_some(counters.tls),
            reloads: self.reloads.counters(),
            resolver: Some(ResolverCounters {
                cache: self.shared.cache.statistics(),
                servers: self.shared.servers.statistics(),
                upstream: counters.upstream,
                model: self.shared.model.totals(),
                denials: self.shared.denials.statistics(),
                negative_anchors: self.shared.negative_anchors().len() as u64,
                secure_zones: self.shared.trust.size().0 as u64,
                discarded_queries: counters.discarded_queries,
            }),
            log: logging::counters(),
            now: u64::from(time_or_now(None)),
            ..Snapshot::default()
        }
    }
}
