//! Status of a running server and of its zones, for `nonesuch ctl` and for the first line of the
//! server.

use crate::control_protocol::{
    Refresh, RefreshFailure, RefreshFailures, Secondary, ServerStatus, TransferIn, TransferOut, VERSION,
    ZoneReport,
};
use crate::server::daemon::Daemon;
use nonesuch_authoritative::server::Server;
use nonesuch_proto::Name;
use nonesuch_secondary::{RefreshState, ZoneStatus};
use std::collections::HashMap;
use std::sync::PoisonError;

impl Daemon {
    /// The status of the server.
    pub(crate) fn status(&self) -> ServerStatus {
        let configuration = self.configuration();
        let (listen, control_socket) =
            (configuration.server.listen.clone(), configuration.server.control_socket.clone());
        let restart = self.reloads.settings_needing_restart(&configuration);
        drop(configuration);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let (listen, listen_tls) = server.as_ref().map_or((listen, Vec::new()), |server| {
            (server.addresses().to_vec(), server.tls_addresses().to_vec())
        });
        let counters = server.as_ref().map(Server::udp_counters).unwrap_or_default();
        drop(server);
        let secondaries = self.transfers.status();
        ServerStatus {
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            up_seconds: self.started_at.elapsed().as_secs(),
            configuration: self.source.path().map(Into::into),
            control_socket,
            listen,
            listen_tls,
            datagrams_in: counters.datagrams_in,
            datagrams_out: counters.datagrams_out,
            needs_restart: restart.into_iter().map(str::to_owned).collect(),
            refused_configuration: self.reloads.history.rejected_configuration(),
            refresh_failures: refresh_failures(&secondaries),
            transfers_in: transfers_in(&secondaries),
            transfers_out: self.transfers_out(),
            service: self.service.status(),
        }
    }

    /// Outgoing transfers in progress.
    fn transfers_out(&self) -> Vec<TransferOut> {
        let transfers = self.context.outgoing_transfers.status();
        let reports = transfers.iter().map(|transfer| TransferOut {
            zone: transfer.zone.to_string(),
            client: transfer.client.to_string(),
            octets: transfer.octets,
            messages: transfer.messages,
            records: transfer.records,
        });
        reports.collect()
    }

    /// The status of one zone, or of all zones if `apex` is `None`.
    pub(crate) fn zone_status(&self, apex: Option<&Name>) -> Vec<ZoneReport> {
        let transfers = self.transfers.status();
        let transfers: HashMap<String, _> =
            transfers.iter().map(|zone| (zone.apex.to_string(), zone)).collect();
        let statuses = self.service.zone_status(apex);
        let reports = statuses.into_iter().map(|status| ZoneReport {
            secondaries: self.secondaries(&status.zone),
            refresh: transfers.get(&status.zone).map(|zone| Refresh::from(*zone)),
            status,
        });
        reports.collect()
    }

    /// The secondaries that the server notifies about a zone.
    fn secondaries(&self, zone: &str) -> Vec<Secondary> {
        let of_zone = |apex: Name| self.context.secondary_statuses.of_zone(&apex.view().to_canonical());
        zone.parse().map(of_zone).unwrap_or_default().into_iter().map(Secondary::from).collect()
    }
}

/// Maximum number of zones for which the status gives the reason of failed refreshes.
const MAX_LISTED_FAILURES: usize = 20;

/// The zones with a failing primary or failing refreshes, and the expired zones: their number, and
/// the first
/// [`MAX_LISTED_FAILURES`] in the order of expiry.
fn refresh_failures(zones: &[ZoneStatus]) -> RefreshFailures {
    let is_failing = |zone: &&ZoneStatus| {
        !zone.failing.is_empty() || matches!(zone.state, RefreshState::Failing | RefreshState::Expired)
    };
    let mut failing: Vec<&ZoneStatus> = zones.iter().filter(is_failing).collect();
    failing.sort_by_key(|zone| zone.expires.unwrap_or(u64::MAX));
    let first = failing.iter().take(MAX_LISTED_FAILURES).map(|zone| {
        let primary = zone.failing.iter().min_by_key(|primary| primary.since);
        RefreshFailure {
            zone: zone.apex.to_string(),
            state: zone.state,
            primary: primary.map(|primary| primary.address),
            since: primary.map(|primary| primary.since),
            error: primary.map(|primary| &primary.error).or(zone.last_error.as_ref()).cloned(),
            next_refresh: zone.next,
            expires: zone.expires,
        }
    });
    RefreshFailures { count: failing.len(), zones: first.collect() }
}

/// Incoming transfers in progress.
fn transfers_in(zones: &[ZoneStatus]) -> Vec<TransferIn> {
    let transfers = zones.iter().filter_map(|zone| {
        let transfer = zone.transfer.as_ref()?;
        Some(TransferIn {
            zone: zone.apex.to_string(),
            primary: zone.primary.clone(),
            octets: transfer.octets,
            records: transfer.records,
            since: transfer.since,
        })
    });
    transfers.collect()
}
