//! What is told of a running server: to `nonesuch ctl`, to whoever reads metrics, and in its first line.

use super::serve_node::Node;
use crate::files::counted;
use crate::logging;
use crate::metrics::{Snapshot, ZoneRow};
use crate::zones::now_or;
use nonesuch_authoritative::notify;
use nonesuch_authoritative::secondary::Counts;
use nonesuch_authoritative::server::Server;
use nonesuch_authoritative::statistics::{Direction, TransferKind, TransferResult, TransferSum};
use nonesuch_proto::Name;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::PoisonError;

impl Node {
    /// What is told of the server.
    pub(super) fn status(&self) -> Value {
        let configuration = self.configuration();
        let (listen, socket) =
            (configuration.server.listen.clone(), configuration.server.control_socket.clone());
        let restart = self.reloads.needs_restart(&configuration);
        drop(configuration);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let (addresses, tls) = server.as_ref().map_or((listen, Vec::new()), |server| {
            (server.addresses().to_vec(), server.tls_addresses().to_vec())
        });
        let counters = server.as_ref().map(Server::udp_counters).unwrap_or_default();
        drop(server);
        let mut status = serde_json::to_value(self.service.status()).unwrap_or_default();
        status["version"] = json!(env!("CARGO_PKG_VERSION"));
        status["pid"] = json!(std::process::id());
        status["up_seconds"] = json!(self.begun.elapsed().as_secs());
        status["configuration"] = json!(self.origin.path());
        status["control_socket"] = json!(socket);
        status["listen"] = json!(addresses);
        status["listen_tls"] = json!(tls);
        status["datagrams_in"] = json!(counters.datagrams_in);
        status["datagrams_out"] = json!(counters.datagrams_out);
        status["needs_restart"] = json!(restart);
        status["refused_configuration"] = self.reloads.refused();
        status["transfers_in"] = self.transfers_in();
        status["transfers_out"] = self.transfers_out();
        status
    }

    /// Transfers from primaries that are under way.
    fn transfers_in(&self) -> Value {
        let zones = self.transfers.status();
        let under_way = zones.iter().filter_map(|zone| {
            let transfer = zone.transfer.as_ref()?;
            Some(json!({
                "zone": zone.apex.to_string(), "primary": zone.primary, "octets": transfer.octets,
                "records": transfer.records, "since": transfer.since,
            }))
        });
        Value::Array(under_way.collect())
    }

    /// Transfers to secondaries that are under way.
    fn transfers_out(&self) -> Value {
        let under_way = self.shared.outgoing.status();
        let shown = under_way.iter().map(|transfer| {
            json!({
                "zone": transfer.zone.to_string(), "client": transfer.client.to_string(), "octets": transfer.octets,
                "messages": transfer.messages, "records": transfer.records,
            })
        });
        Value::Array(shown.collect())
    }

    /// What is told of one zone, or of all.
    pub(super) fn zone_status(&self, apex: Option<&Name>) -> Vec<Value> {
        let transfers = self.transfers.status();
        let transfers: HashMap<String, _> =
            transfers.iter().map(|zone| (zone.apex.to_string(), zone)).collect();
        let statuses = self.service.zone_status(apex);
        let shown = statuses.into_iter().map(|status| {
            let transfer = transfers.get(&status.zone);
            let mut shown = serde_json::to_value(status).unwrap_or_default();
            if let Some(zone) = transfer {
                shown["primary"] = json!(zone.primary);
                shown["refreshed"] = json!(zone.refreshed);
                shown["next_refresh"] = json!(zone.next);
                shown["expires"] = json!(zone.expires);
                shown["transfer_error"] = json!(zone.last_error);
                shown["rejected_serial"] = json!(zone.rejected);
                shown["behind"] = json!(zone.behind);
            }
            shown
        });
        shown.collect()
    }

    /// The state of the server in a line.
    pub(super) fn words(&self) -> String {
        let status = self.service.status();
        format!(
            "{} served, {} waiting, {} failed",
            counted(status.serving, "zone"),
            status.not_ready + status.expired,
            status.failed
        )
    }

    /// The numbers for the metrics.
    pub(super) fn snapshot(&self) -> Snapshot {
        let zones = self.service.zone_status(None);
        let rows = zones.into_iter().map(|status| ZoneRow {
            state: status.state.word(),
            serial: status.serial,
            loaded_at: status.loaded_at,
            nearest_expiration: status.nearest_expiration.map(u64::from),
            records: status.records,
            is_refused: status.error.is_some(),
            zone: status.zone,
        });
        let mut statistics = self.shared.statistics.sum();
        add_incoming(&self.transfers.counts(), &mut statistics.transfers);
        let refused = statistics.refused(notify::OPCODE);
        statistics.transfers.add_notifies(Direction::In, false, refused);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let server = server.as_ref();
        Snapshot {
            statistics,
            online: server.map(Server::online_counters).unwrap_or_default(),
            udp: server.map(Server::udp_counters).unwrap_or_default(),
            tcp: server.map(Server::tcp_counters).unwrap_or_default(),
            tls: server.and_then(Server::tls_counters),
            tap: self.shared.tap.as_ref().map(|tap| tap.counters()),
            zones: rows.collect(),
            most_zones: self.configuration().server.metrics_zones,
            reloads: self.reloads.numbers(),
            log: logging::counters(),
            now: u64::from(now_or(None)),
        }
    }
}

/// Adds what came of transfers from primaries, and of NOTIFY.
fn add_incoming(counts: &Counts, sum: &mut TransferSum) {
    for (kind, result, times) in [
        (TransferKind::Axfr, TransferResult::Done, counts.axfr),
        (TransferKind::Ixfr, TransferResult::Done, counts.ixfr),
        (TransferKind::Any, TransferResult::UpToDate, counts.up_to_date),
        (TransferKind::Any, TransferResult::Refused, counts.refused),
        (TransferKind::Any, TransferResult::Failed, counts.failed),
    ] {
        sum.add(Direction::In, kind, result, times);
    }
    if counts.octets > 0 {
        sum.messages.insert(Direction::In, counts.messages);
        sum.octets.insert(Direction::In, counts.octets);
    }
    sum.add_notifies(Direction::In, true, counts.notified);
    sum.add_notifies(Direction::Out, true, counts.acknowledged);
    sum.add_notifies(Direction::Out, false, counts.unheard);
}
