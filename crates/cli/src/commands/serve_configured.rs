//! `nonesuch serve --config`: a server of many zones, as its configuration has it.
//!
//! Sockets are bound first, then privileges are dropped, then zones are read. Answering begins at once: with SERVFAIL for
//! zones that are not there yet.

use super::nsec5;
use super::serve_control::ControlSocket;
use super::serve_node::{Node, answer_settings, set_log, tap_options, tcp_options};
use super::serve_online::{find_signing_key, load_available};
use super::serve_system::{Notifier, check_root, drop_privileges, raise_open_files, watchdog_interval};
use crate::Outcome;
use crate::arguments::{CheckScope, ServeArguments};
use crate::config::{self, Configuration};
use crate::error::Failure;
use crate::files::{folder_of, print_line};
use crate::metrics::{self, MetricsServer};
use arc_swap::ArcSwap;
use nonesuch_authoritative::secondary::{Transfers, TransfersOptions};
use nonesuch_authoritative::server::{Bound, ServerOptions};
use nonesuch_authoritative::service::{
    KeyFiles, Link, Service, Settled, Source, ZoneStanding, ZoneStatus, follow,
};
use nonesuch_authoritative::statistics::{Direction, Statistics, TransferKind, TransferResult};
use nonesuch_authoritative::tap::Tap;
use nonesuch_authoritative::transfer::outbound::{self, Outgoing, TransferOutcome, TransferStatus};
use nonesuch_authoritative::zones::Zones;
use nonesuch_authoritative::{Shared, seconds_now};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::online::{Nsec5Prover, Nsec5Zone};
use nonesuch_net::tls::{IdentitySlot, ServerIdentity};
use nonesuch_proto::Name;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Zones that are said one by one when the server is ready.
const MOST_SAID: usize = 20;
/// Time between two looks at when signatures expire.
const LOOK: Duration = Duration::from_secs(600);

const KEY_FILES: KeyFiles = KeyFiles { signing: load_signing, prover: load_prover };

pub(super) fn run(arguments: &ServeArguments, path: &Path) -> Result<Outcome, Failure> {
    let read = config::load(path)?;
    for warning in &read.warnings {
        tracing::warn!("{warning}");
    }
    let configuration = read.configuration;
    match arguments.check {
        Some(scope) => check(&configuration, path, scope, arguments.json),
        None => serve(configuration, path, arguments.json),
    }
}

/// Says what is wrong with the files that the configuration names, and with its zones where that is asked for.
fn check(
    configuration: &Configuration,
    path: &Path,
    scope: CheckScope,
    is_json: bool,
) -> Result<Outcome, Failure> {
    let mut faults = config::check_files(configuration);
    if let Some(files) = &configuration.server.tls {
        let identity = ServerIdentity::load(&files.certificate, &files.key);
        faults.extend(identity.err().map(|error| error.to_string()));
    }
    faults.extend(answer_settings(configuration, None).err());
    let mut refused = 0;
    if scope == CheckScope::Zones && faults.is_empty() {
        let zones = check_zones(configuration)?;
        let is_bad = |zone: &&ZoneStatus| zone.error.is_some();
        refused = zones.iter().filter(is_bad).count();
        let said = zones
            .iter()
            .filter(is_bad)
            .map(|zone| format!("zone {}: {}", zone.zone, zone.error.as_deref().unwrap_or_default()));
        faults.extend(said);
        for zone in zones.iter().filter(|zone| zone.error.is_none() && !is_json) {
            print_line(&zone_line(zone))?;
        }
    }
    let zones = configuration.zones.len();
    if is_json {
        print_line(&json!({ "sound": faults.is_empty(), "zones": zones, "faults": faults }).to_string())?;
    } else {
        for fault in &faults {
            print_line(&format!("fault: {fault}"))?;
        }
        let verdict = if faults.is_empty() { "sound" } else { "not sound" };
        print_line(&format!("{}: {verdict}: {}", path.display(), counted(zones, "zone")))?;
    }
    match faults.len() {
        0 => Ok(Outcome::Done),
        // What is wrong with zones alone is an answer; all else keeps the server from starting.
        count if count == refused => Ok(Outcome::No),
        _ => Err(Failure::NotStartable { path: path.to_path_buf() }),
    }
}

/// Loads and verifies all zones that have files; nothing is kept.
fn check_zones(configuration: &Configuration) -> Result<Vec<ZoneStatus>, Failure> {
    let mut settings = configuration.service_settings();
    settings.state_dir = None;
    settings.zones.retain(|zone| matches!(zone.source, Source::File(_)));
    let service = Service::open(settings, KEY_FILES, Arc::new(Zones::new()))?;
    service.begin().map_err(Failure::Thread)?;
    let _ = service.wait();
    Ok(service.zone_status(None))
}

fn serve(configuration: Configuration, path: &Path, is_json: bool) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    set_log(&configuration);
    let notifier = Notifier::from_environment();
    let server = configuration.server.clone();
    check_root(server.user.as_deref(), server.listen.iter().chain(&server.listen_tls).copied())?;
    let connections = configuration.limits.tcp_connections * (server.listen.len() + server.listen_tls.len());
    raise_open_files(connections as u64);
    let identity = server.tls.as_ref().map(|files| ServerIdentity::load(&files.certificate, &files.key));
    let identity = identity.transpose()?.map(IdentitySlot::new);
    let bound = Bound::bind(&server_options(&configuration, identity.clone()))?;
    let control = server
        .control_socket
        .as_deref()
        .map(|socket| ControlSocket::bind(socket, server.user.as_deref(), server.control_group.as_deref()));
    let control = control.transpose()?;
    drop_privileges(server.user.as_deref())?;

    let zones = Arc::new(Zones::new());
    let settings = answer_settings(&configuration, None).map_err(Failure::Settings)?;
    let tap = tap_options(&configuration).map(Tap::start).transpose()?.map(Arc::new);
    let mut shared = Shared { tap, ..Shared::new(Arc::clone(&zones)) };
    let statistics = Arc::clone(&shared.statistics);
    let outgoing = Outgoing::new(configuration.limits.transfers_out, seconds_now);
    shared.outgoing = Arc::new(outgoing.with_observer(move |ended| count_outgoing(&statistics, ended)));
    shared.settings = Arc::new(ArcSwap::from_pointee(settings));
    let service = Service::open(configuration.service_settings(), KEY_FILES, zones)?;
    let events = service.events();
    let link = Link { service: Arc::clone(&service), settings: Arc::clone(&shared.settings) };
    let transfers =
        Transfers::start(transfers_options(&configuration), Arc::new(link)).map_err(Failure::Thread)?;
    let transfers = Arc::new(transfers);
    let taker = Arc::clone(&transfers);
    shared.notified = Some(Arc::new(move |notified| taker.notified(notified)));
    follow(&service, events, Arc::clone(&transfers)).map_err(Failure::Thread)?;
    service.begin().map_err(Failure::Thread)?;
    let running = bound.start(&shared)?;
    let (workers, metrics_listen) = (workers(&configuration), server.metrics_listen);
    let node = Arc::new(Node {
        path: path.to_path_buf(),
        configuration: Mutex::new(configuration),
        service,
        shared,
        transfers,
        identity,
        server: Mutex::new(Some(running)),
        notifier,
        stop: Notify::new(),
        begun,
    });
    if let Some(control) = &control {
        control.serve(Arc::clone(&node)).map_err(Failure::Thread)?;
    }
    let metrics = metrics_listen.map(|listen| start_metrics(&node, listen)).transpose()?;
    announce(&node, workers, is_json)?;
    run_until_stopped(&node).map_err(Failure::Output)?;
    node.notifier.stopping();
    drop((metrics, control));
    stop(&node, is_json)
}

/// Counts a transfer to a secondary that has ended.
fn count_outgoing(statistics: &Statistics, ended: &TransferStatus) {
    let kind = match ended.kind {
        outbound::TransferKind::Ixfr => TransferKind::Ixfr,
        outbound::TransferKind::Axfr | outbound::TransferKind::IxfrAsAxfr => TransferKind::Axfr,
    };
    let result = match ended.outcome {
        TransferOutcome::Sent => TransferResult::Done,
        TransferOutcome::UpToDate => TransferResult::UpToDate,
        TransferOutcome::Refused => TransferResult::Refused,
        TransferOutcome::UnderWay | TransferOutcome::BrokenOff => TransferResult::Failed,
    };
    statistics.transfers().record(Direction::Out, kind, result, ended.messages, ended.octets);
}

fn server_options(configuration: &Configuration, identity: Option<IdentitySlot>) -> ServerOptions {
    let server = &configuration.server;
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    ServerOptions {
        listen: server.listen.clone(),
        listen_tls: server.listen_tls.clone(),
        identity,
        workers: workers(configuration),
        cpus: server.cpus.clone(),
        tcp: tcp_options(&configuration.limits),
        signature_cache: usize::try_from(server.signature_cache).unwrap_or(usize::MAX),
        ..ServerOptions::new(any)
    }
}

fn workers(configuration: &Configuration) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    configuration.server.workers.unwrap_or_else(cores)
}

fn transfers_options(configuration: &Configuration) -> TransfersOptions {
    let limits = &configuration.limits;
    TransfersOptions {
        transfers: limits.transfers_in,
        transfers_each: limits.transfers_in_each,
        ..TransfersOptions::default()
    }
}

fn start_metrics(node: &Arc<Node>, listen: std::net::SocketAddr) -> Result<MetricsServer, Failure> {
    let source = Arc::clone(node);
    Ok(metrics::start(listen, move || source.snapshot())?)
}

/// Waits for the zones, and says how the server stands.
fn announce(node: &Node, workers: usize, is_json: bool) -> Result<(), Failure> {
    let settled = node.service.wait();
    let zones = node.service.zone_status(None);
    let status = node.status();
    let seconds = node.begun.elapsed().as_secs_f64();
    if is_json {
        let Settled { serving, waiting, failed } = settled;
        let ready = json!({
            "addresses": status["listen"], "tls_addresses": status["listen_tls"], "address": status["listen"][0],
            "workers": workers, "serving": serving, "waiting": waiting, "failed": failed, "seconds": seconds,
            "zones": zones.iter().take(MOST_SAID).collect::<Vec<_>>(),
        });
        print_line(&json!({ "ready": ready }).to_string())?;
    } else {
        for zone in zones.iter().take(MOST_SAID) {
            print_line(&zone_line(zone))?;
        }
        if zones.len() > MOST_SAID {
            print_line(&format!(
                "and {} more: `nonesuch ctl zone status` lists all",
                zones.len() - MOST_SAID
            ))?;
        }
        let list = |addresses: &serde_json::Value| {
            let texts = addresses.as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
            texts.collect::<Vec<_>>().join(", ")
        };
        let (plain, tls) = (list(&status["listen"]), list(&status["listen_tls"]));
        let tls = if tls.is_empty() { tls } else { format!(", {tls} (tls)") };
        print_line(&format!(
            "ready: listening on {plain} (udp, tcp){tls}; {}; {} in {seconds:.2} s",
            node.words(),
            counted(workers, "worker"),
        ))?;
    }
    node.notifier.ready(&node.words());
    Ok(())
}

/// One zone in one line.
fn zone_line(zone: &ZoneStatus) -> String {
    match (zone.state, zone.serial) {
        (ZoneStanding::Serving, Some(serial)) => {
            let served = zone.served.as_deref().unwrap_or_default();
            let verified = zone.verified.as_deref().unwrap_or_default();
            format!("zone {}: serial {serial}, {served}; verified: {verified}", zone.zone)
        }
        (state, _) => {
            let error = zone.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            format!("zone {}: {}{error}", zone.zone, state.word())
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Reloads on SIGHUP; returns on SIGTERM, SIGINT, or when the control socket says so.
fn run_until_stopped(node: &Arc<Node>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut look = tokio::time::interval(LOOK);
        let mut alive = tokio::time::interval(watchdog_interval().unwrap_or(LOOK));
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                () = node.stop.notified() => return Ok(()),
                _ = look.tick() => node.service.warn_of_expiry(),
                _ = alive.tick() => node.notifier.alive(),
                _ = hang_up.recv() => {
                    let node = Arc::clone(node);
                    // What came of it stands in the log.
                    tokio::task::spawn_blocking(move || drop(node.reload()));
                }
            }
        }
    });
    // A reload that goes on is not waited for: what it has published is kept, and nothing else is lost.
    runtime.shutdown_background();
    outcome
}

fn stop(node: &Node, is_json: bool) -> Result<Outcome, Failure> {
    node.service.stop();
    let server = node.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let Some(server) = server else { return Ok(Outcome::Done) };
    let counters = server.udp_counters();
    server.stop()?;
    if let Some(tap) = &node.shared.tap {
        tap.finish();
    }
    let (received, sent) = (counters.datagrams_in, counters.datagrams_out);
    let errors = counters.receive_errors + counters.send_errors;
    print_line(&if is_json {
        json!({ "stopped": { "datagrams_in": received, "datagrams_out": sent, "errors": errors } })
            .to_string()
    } else {
        format!("stopped: {received} datagrams in, {sent} out, {errors} errors")
    })?;
    Ok(Outcome::Done)
}

fn load_signing(dir: &Path, zone: &Name) -> Result<(Vec<KeyRecord>, Vec<KeyPair>), String> {
    load_available(dir, zone).map_err(|failure| failure.to_string())
}

/// Neither the folder of the VRF key nor that of the zone file may hold a signing key: what a server cannot read, nobody
/// takes from it.
fn load_prover(dir: &Path, file: Option<&Path>, zone: &Nsec5Zone) -> Result<Nsec5Prover, String> {
    let load = || {
        for folder in file.map(folder_of).into_iter().chain([dir]) {
            if let Some(path) = find_signing_key(folder)? {
                return Err(Failure::SigningKeyAtServer { path, zone: zone.apex().clone() });
            }
        }
        let (key, proofs) = nsec5::load_for_server(dir, zone)?;
        if proofs.is_none() {
            tracing::warn!("{}: no stored proofs of {}: all are made when asked", dir.display(), zone.apex());
        }
        Nsec5Prover::of(zone, key, proofs)
            .map_err(|source| Failure::Prover { dir: dir.to_path_buf(), source })
    };
    load().map_err(|failure| failure.to_string())
}
