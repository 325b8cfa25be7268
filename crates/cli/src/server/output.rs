//! Output of a server: one line for each zone when the server is ready, and a last line when it
//! stops.

use crate::control_protocol::addresses_text;
use crate::files::{count_text, print_line};
use crate::logging::{self, Stream};
use crate::server::daemon::Daemon;
use nonesuch_authoritative::service::{ServingState, StartupSummary, ZoneStatus};
use nonesuch_dnssec::online::OnlineCounters;
use nonesuch_net::udp::UdpCounters;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Maximum number of zones that are listed when the server is ready.
const MAX_LISTED_ZONES: usize = 20;

/// Prints a line to standard output. If the log has a queue, the line goes to that queue, so that a
/// slow reader does not block the server. If printing fails, for example because the disk is full,
/// the line is lost and the server continues.
pub(crate) fn print(line: &str) {
    if logging::print_queued(Stream::Output, line).is_none()
        && let Err(error) = print_line(line)
    {
        tracing::warn!(name: "output-failed", line, "cannot print to {error}");
    }
}

/// Logs the start of a server: its version and the path of its input file (`input_kind`:
/// `configuration` or `file`).
pub(crate) fn log_start(input_kind: &'static str, path: &Path) {
    let (version, path) = (env!("CARGO_PKG_VERSION"), path.display().to_string());
    match input_kind {
        "configuration" => {
            tracing::info!(name: "started", version, configuration = path, "nonesuch: started")
        }
        _ => tracing::info!(name: "started", version, file = path, "nonesuch: started"),
    }
}

/// Reports the state of the configured zones, each loaded or rejected, and that the server is
/// ready.
pub(crate) fn print_ready(daemon: &Daemon, summary: StartupSummary, is_json: bool) {
    let zones = daemon.service.zone_status(None);
    let (status, workers) = (daemon.status(), daemon.workers());
    let seconds = daemon.started_at.elapsed().as_secs_f64();
    if is_json {
        let StartupSummary { serving, waiting, failed } = summary;
        let ready = json!({
            "addresses": status.listen, "tls_addresses": status.listen_tls, "address": status.listen.first(),
            "workers": workers, "serving": serving, "waiting": waiting, "failed": failed, "seconds": seconds,
            "zones": zones.iter().take(MAX_LISTED_ZONES).collect::<Vec<_>>(),
        });
        return print(&json!({ "ready": ready }).to_string());
    }
    if logging::is_quiet() {
        return;
    }
    for zone in zones.iter().take(MAX_LISTED_ZONES) {
        print(&zone_line(zone));
    }
    if zones.len() > MAX_LISTED_ZONES {
        print(&format!(
            "and {} more: `nonesuch ctl zone status` lists all zones",
            zones.len() - MAX_LISTED_ZONES
        ));
    }
    print(&format!(
        "ready: listening on {}; {}; {} in {seconds:.2} s",
        addresses_text(&status.listen, &status.listen_tls),
        daemon.status_line(),
        count_text(workers, "worker"),
    ));
}

/// Reports how the zone of a single file is served, and that the server is ready.
pub(crate) fn print_zone_ready(daemon: &Daemon, zone: &ZoneStatus, is_json: bool) {
    let status = daemon.status();
    let (address, workers) = (status.listen.first(), daemon.workers());
    let (name, serial) = (&zone.zone, zone.serial.unwrap_or_default());
    let served = zone.served.as_deref().unwrap_or_default();
    if is_json {
        let ready = json!({
            "address": address, "zone": name, "serial": serial, "workers": workers, "served": served,
        });
        return print(&json!({ "ready": ready }).to_string());
    }
    if logging::is_quiet() {
        return;
    }
    let address = address.map_or_else(String::new, ToString::to_string);
    let workers = count_text(workers, "worker");
    print(&format!(
        "ready: listening on {address} (udp, tcp), zone {name} serial {serial}, {served}, {workers}"
    ));
}

/// The state of one zone in one line.
pub(crate) fn zone_line(zone: &ZoneStatus) -> String {
    match (zone.state, zone.serial) {
        (ServingState::Serving, Some(serial)) => {
            let served = zone.served.as_deref().unwrap_or_default();
            let verified = zone.verified.as_deref().unwrap_or_default();
            format!("zone {}: serial {serial}, {served}; verified: {verified}", zone.zone)
        }
        (state, _) => {
            let error = zone.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            format!("zone {}: {}{error}", zone.zone, state.as_str())
        }
    }
}

/// The last line of a server: its counters. `online` is `Some` if a zone was signed online or has
/// NSEC5.
pub(crate) fn stopped_line(counters: &UdpCounters, online: Option<&OnlineCounters>, is_json: bool) -> String {
    let errors = counters.receive_errors + counters.send_errors;
    let UdpCounters { datagrams_in, datagrams_out, system_calls, oversized, .. } = counters;
    if is_json {
        let stopped = json!({
            "datagrams_in": datagrams_in, "datagrams_out": datagrams_out, "system_calls": system_calls,
            "oversized": oversized, "errors": errors, "online": online.map(online_json),
        });
        return json!({ "stopped": stopped }).to_string();
    }
    let calls_per_datagram = *system_calls as f64 / (*datagrams_in).max(1) as f64;
    format!(
        "stopped: {} in, {datagrams_out} out, {} ({calls_per_datagram:.3} per datagram), {oversized} oversized, {}",
        count_text(*datagrams_in, "datagram"),
        count_text(*system_calls, "system call"),
        count_text(errors, "error"),
    )
}

/// The counters of online work, for the log.
pub(crate) fn online_summary(online: &OnlineCounters) -> String {
    let operations: Vec<String> =
        online.operations.iter().map(|(operation, times)| format!("{operation}: {times}")).collect();
    format!(
        "signatures: {} hits, {} misses; proofs: {} stored, {} hits, {} misses; {} batches, {} refused, {} failed; cache {} \
         octets; operations: {}",
        online.signature_hits,
        online.signature_misses,
        online.proofs_stored,
        online.proof_hits,
        online.proof_misses,
        online.batches,
        online.rejected,
        online.failed,
        online.cache_octets,
        operations.join(", ")
    )
}

fn online_json(online: &OnlineCounters) -> Value {
    let operations: Map<String, Value> =
        online.operations.iter().map(|(operation, times)| (operation.to_string(), (*times).into())).collect();
    json!({
        "signature_hits": online.signature_hits, "signature_misses": online.signature_misses,
        "proofs_stored": online.proofs_stored, "proof_hits": online.proof_hits, "proof_misses": online.proof_misses,
        "batches": online.batches, "refused": online.rejected, "failed": online.failed,
        "cache_octets": online.cache_octets, "operations": operations,
    })
}
