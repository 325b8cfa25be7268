//! `nonesuch serve --config`: a server of many zones, as its configuration has it.
//!
//! Sockets are bound first, then privileges are dropped, then zones are read. Answering begins at once: with SERVFAIL for
//! zones that are not there yet.

use super::serve_check;
use super::serve_control::ControlSocket;
use super::serve_node::{Node, answer_settings, set_log, tap_options, tcp_options};
use super::serve_online::{self, load_available};
use super::serve_system::{
    Notifier, abort_on_panic, check_root, drop_privileges, raise_open_files, watchdog_interval,
};
use crate::Outcome;
use crate::arguments::ServeArguments;
use crate::config::{self, Configuration, Effect, Eyes, Problems, Sources};
use crate::error::Failure;
use crate::files::{counted, print_line};
use crate::metrics::{self, MetricsServer};
use arc_swap::ArcSwap;
use nonesuch_authoritative::secondary::{Transfers, TransfersOptions};
use nonesuch_authoritative::server::{Bound, ServerOptions};
use nonesuch_authoritative::service::{KeyFiles, Link, Service, Settled, ZoneStanding, ZoneStatus, follow};
use nonesuch_authoritative::statistics::{Direction, Statistics, TransferKind, TransferResult};
use nonesuch_authoritative::tap::Tap;
use nonesuch_authoritative::transfer::outbound::{self, Outgoing, TransferOutcome, TransferStatus};
use nonesuch_authoritative::zones::Zones;
use nonesuch_authoritative::{Shared, seconds_now};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::online::{Nsec5Prover, Nsec5Zone};
use nonesuch_net::tls::IdentitySlot;
use nonesuch_proto::Name;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Zones that are said one by one when the server is ready.
const MOST_SAID: usize = 20;
/// Time between two looks at when signatures expire.
const LOOK: Duration = Duration::from_secs(600);
/// How many of them are made in a day.
const LOOKS_A_DAY: u64 = 144;

pub(super) const KEY_FILES: KeyFiles = KeyFiles { signing: load_signing, prover: load_prover };

pub(super) fn run(arguments: &ServeArguments, path: &Path) -> Result<Outcome, Failure> {
    if let Some(scope) = arguments.check {
        return serve_check::run(path, scope, arguments.json);
    }
    let read = config::load(path)?;
    for warning in &read.warnings {
        tracing::warn!("{warning}");
    }
    serve(read.configuration, &read.sources, path, arguments.json)
}

fn serve(
    configuration: Configuration,
    sources: &Sources,
    path: &Path,
    is_json: bool,
) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    set_log(&configuration);
    abort_on_panic();
    let problems = config::check_start(&configuration, sources);
    if !problems.is_empty() {
        return Err(Problems(problems).into());
    }
    let notifier = Notifier::from_environment();
    let server = configuration.server.clone();
    check_root(server.user.as_deref(), server.listen.iter().chain(&server.listen_tls).copied())?;
    let connections = configuration.limits.tcp_connections * (server.listen.len() + server.listen_tls.len());
    raise_open_files(connections as u64);
    let identity = config::load_identity(&configuration, sources)?.map(IdentitySlot::new);
    let bound = Bound::bind(&server_options(&configuration, identity.clone())).map_err(Failure::Bind)?;
    let control = server
        .control_socket
        .as_deref()
        .map(|socket| ControlSocket::bind(socket, server.user.as_deref(), server.control_group.as_deref()));
    let control = control.transpose()?;
    drop_privileges(server.user.as_deref())?;
    warn_of_reloads(sources);

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
    // Before anybody can know that the server runs: a signal that comes while it loads must not end it in its default way.
    let (runtime, signals) = Signals::install().map_err(Failure::Thread)?;
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
        reloading: Mutex::new(()),
        begun,
    });
    if let Some(control) = &control {
        control.serve(Arc::clone(&node)).map_err(Failure::Thread)?;
    }
    let metrics = metrics_listen.map(|listen| start_metrics(&node, listen)).transpose()?;
    let ready = Arc::clone(&node);
    run_until_stopped(&node, runtime, signals, move || announce(&ready, workers, is_json))?;
    node.notifier.stopping();
    drop((metrics, control));
    stop(&node, is_json)
}

/// Warns of what was read as root, and could not be read again.
fn warn_of_reloads(sources: &Sources) {
    let Ok(eyes) = Eyes::of(None) else { return };
    for problem in config::read_by_reload(sources, &eyes) {
        tracing::warn!("{problem}; {}", Effect::Reload);
    }
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
        tls_authorities: configuration.server.tls_authorities.clone(),
        time_limit: Duration::from_secs(limits.transfer_in_time),
        idle_limit: Duration::from_secs(limits.transfer_in_idle),
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
pub(super) fn zone_line(zone: &ZoneStatus) -> String {
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

/// The signals that a server acts on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Takes the signals from here on, in a runtime of this thread.
    fn install() -> std::io::Result<(Runtime, Self)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        // Other servers do something when they get these, and tools send them: none is to end this one.
        for kind in [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::alarm()] {
            drop(signal(kind)?);
        }
        let signals = Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
        };
        drop(entered);
        Ok((runtime, signals))
    }
}

/// Has `announce` say when all zones have been loaded, and reloads on SIGHUP; returns on SIGTERM, SIGINT, SIGQUIT, or when the
/// control socket says so, also before that.
fn run_until_stopped(
    node: &Arc<Node>,
    runtime: Runtime,
    mut signals: Signals,
    announce: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let outcome = runtime.block_on(async {
        let mut look = tokio::time::interval(LOOK);
        let mut alive = tokio::time::interval(watchdog_interval().unwrap_or(LOOK));
        let mut announcing = tokio::task::spawn_blocking(announce);
        let mut is_announced = false;
        let mut looks = 0_u64;
        let mut reloading: Option<JoinHandle<()>> = None;
        // Signals that come while a reload goes on ask for one more, however many they are.
        let mut is_asked = false;
        loop {
            tokio::select! {
                _ = signals.terminate.recv() => return Ok(()),
                _ = signals.interrupt.recv() => return Ok(()),
                _ = signals.quit.recv() => return Ok(()),
                () = node.stop.notified() => return Ok(()),
                said = &mut announcing, if !is_announced => {
                    is_announced = true;
                    said.unwrap_or_else(|error| Err(Failure::Thread(error.into())))?;
                }
                _ = look.tick() => {
                    node.service.warn_of_expiry();
                    if looks.is_multiple_of(LOOKS_A_DAY) {
                        node.warn_of_certificate();
                    }
                    looks += 1;
                }
                _ = alive.tick() => node.notifier.alive(),
                _ = signals.hang_up.recv() => is_asked = true,
                () = end_of(&mut reloading) => reloading = None,
            }
            if is_asked && reloading.is_none() {
                is_asked = false;
                let node = Arc::clone(node);
                // What came of it stands in the log.
                reloading = Some(tokio::task::spawn_blocking(move || drop(node.reload())));
            }
        }
    });
    // A reload that goes on is not waited for: what it has published is kept, and nothing else is lost.
    runtime.shutdown_background();
    outcome
}

/// Waits for the end of what goes on; for ever where nothing does.
async fn end_of(task: &mut Option<JoinHandle<()>>) {
    match task {
        // Whether it ended well stands in the log.
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
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

fn load_prover(dir: &Path, file: Option<&Path>, zone: &Nsec5Zone) -> Result<Nsec5Prover, String> {
    serve_online::load_prover(dir, file, zone).map_err(|failure| failure.to_string())
}
