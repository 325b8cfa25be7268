//! A running resolver: the workers of `nonesuch_net::event_loop`, each with a state machine of
//! `nonesuch_resolver`.

pub(crate) mod anchor_state;
mod cost_model;
pub(crate) mod daemon;
mod error;
mod negative_anchors;
pub(crate) mod reload;
mod tls;

pub(crate) use error::ResolveError;

use crate::access::FileUser;
use crate::arguments::ResolveArguments;
use crate::certificate;
use crate::config::resolver::{self, LoadedResolver, ResolverConfiguration};
use crate::config::{Problems, Sources};
use crate::control_protocol::addresses_text;
use crate::files::{count_text, parent_directory, print_line};
use crate::hints::read_hints;
use crate::logging;
use crate::metrics;
use crate::outcome::CommandOutcome;
use crate::root::check_root;
use crate::server::control::socket::{ControlSocket, SocketError, SocketOwner};
use crate::server::control::{self, ControlledServer};
use crate::server::open_files::raise_open_files;
use crate::server::output::{print, stopped_line};
use crate::server::panics::abort_on_panic;
use crate::server::preflight;
use crate::server::privileges::{Account, drop_privileges};
use crate::server::reload_status::ReloadHistory;
use crate::server::signals::{NonFatalSignals, SignalAction, Signals};
use crate::server::systemd::{Notifier, Watchdog};
use anchor_state::{AnchorFiles, AnchorStateError};
use cost_model::CostModelHistory;
use daemon::ResolverDaemon;
use nonesuch_net::event_loop::{EventLoopOptions, EventLoopServer, EventLoopSockets, serve};
use nonesuch_net::machine::Now;
use nonesuch_net::{Heartbeats, Listeners, NetError, bind};
use nonesuch_resolver::options::{OptionsError, ResolverOptions};
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::cookies::Cookies;
use nonesuch_server::listen::warn_of_missing_addresses;
use serde_json::json;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tls::TlsService;
use tokio::sync::Notify;

/// Memory of a client query in progress: its tasks, exchanges and messages, in bytes.
const QUERY_MEMORY: u64 = 3 << 10;
/// Time between two checks of the workers without a watchdog of systemd.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Resolves names for clients until it is stopped, or checks a configuration.
pub(crate) fn run(arguments: &ResolveArguments) -> Result<CommandOutcome, ResolveError> {
    let Some(path) = &arguments.config else {
        return resolve(from_arguments(arguments)?, None, arguments.json);
    };
    let LoadedResolver { configuration, warnings, sources } = resolver::load(path)?;
    logging::configure(configuration.log.level, configuration.log.format);
    for warning in &warnings {
        tracing::warn!(name: "configuration-warning", "{warning}");
    }
    if arguments.check {
        check(&configuration, &sources)?;
        print_line(&format!("{}: valid", path.display()))?;
        return Ok(CommandOutcome::Done);
    }
    resolve(configuration, Some(&sources), arguments.json)
}

/// Finds what prevents a start, and what prevents a reload later.
fn check(configuration: &ResolverConfiguration, sources: &Sources) -> Result<(), ResolveError> {
    check_start(configuration)?;
    preflight::load_identity(&configuration.tls, sources)?;
    if let Some(problem) = certificate::problem(&configuration.tls, sources) {
        tracing::warn!(name: "configuration-warning", "{problem}");
    }
    let Ok(user) = FileUser::find(configuration.user.as_deref()) else { return Ok(()) };
    let unreadable = preflight::unreadable_at_reload(sources, &user);
    if unreadable.is_empty() { Ok(()) } else { Err(ResolveError::NotReloadable(Problems(unreadable))) }
}

fn from_arguments(arguments: &ResolveArguments) -> Result<ResolverConfiguration, ResolveError> {
    let mut configuration = ResolverConfiguration {
        listen: arguments.listen.clone(),
        workers: arguments.workers.map(usize::from),
        hints: arguments.hints.clone(),
        trust_anchors: arguments.anchor.clone(),
        anchor_state: arguments.anchor_state.clone(),
        ..ResolverConfiguration::default()
    };
    if let Some(file) = &configuration.hints {
        configuration.options.hints = read_hints(file)?;
    }
    configuration.read_trust_anchors()?;
    Ok(configuration)
}

/// Returns the account that the resolver becomes, and the owner of its control socket. Finds what
/// prevents a start before sockets are bound.
fn check_start(
    configuration: &ResolverConfiguration,
) -> Result<(Option<Account>, SocketOwner), ResolveError> {
    let user = configuration.user.as_deref();
    check_root(user, configuration.listen.iter().chain(&configuration.tls.listen).copied())?;
    let account = Account::find(user)?;
    let owner = SocketOwner::new(account.as_ref(), configuration.control_group.as_deref())?;
    if let Some(path) = &configuration.control_socket {
        fs::metadata(parent_directory(path))
            .map_err(|source| SocketError::Create { path: path.clone(), source })?;
    }
    if let Some(directory) = &configuration.anchor_state {
        AnchorFiles::new(directory).read(&configuration.options.validation.anchors, unix_time())?;
    }
    Ok((account, owner))
}

fn resolve(
    configuration: ResolverConfiguration,
    sources: Option<&Sources>,
    is_json: bool,
) -> Result<CommandOutcome, ResolveError> {
    let started_at = Instant::now();
    let early_signals = NonFatalSignals::install().map_err(ResolveError::Thread)?;
    let (account, socket_owner) = check_start(&configuration)?;
    let identity =
        sources.map_or(Ok(None), |sources| preflight::load_identity(&configuration.tls, sources))?;
    abort_on_panic();
    let workers =
        configuration.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = within_memory(configuration.options.clone(), workers)?;
    tracing::info!(name: "started", version = env!("CARGO_PKG_VERSION"), "nonesuch: started");
    let watchdog = Watchdog::from_environment();
    let loop_options = loop_options(&configuration, &options, workers, watchdog.heartbeats());
    raise_open_files(loop_options.open_files(workers, configuration.tls.listen.len()));
    warn_of_missing_addresses(configuration.listen.iter().chain(&configuration.tls.listen));
    let bound: Result<Vec<Listeners>, NetError> =
        configuration.listen.iter().map(|address| bind(*address, workers)).collect();
    let bound = bound.map_err(ResolveError::Bind)?;
    let tls = identity.map(|identity| TlsService::bind(&configuration.tls, identity)).transpose();
    let (tls, tls_listeners) = tls.map_err(ResolveError::Bind)?.unzip();
    let control_path = configuration.control_socket.as_deref();
    let control = control_path.map(|path| ControlSocket::bind(path, socket_owner)).transpose()?;
    let metrics = configuration.metrics_listen.map(metrics::bind).transpose()?;
    drop_privileges(account.as_ref())?;
    logging::start_queue().map_err(ResolveError::Thread)?;
    sources.into_iter().for_each(preflight::warn_of_files_unreadable_later);
    let addresses: Vec<SocketAddr> = bound.iter().map(|listeners| listeners.local_addr).collect();
    let shared = Arc::new(shared(options)?);
    let anchor_files = configuration.anchor_state.as_deref().map(AnchorFiles::new);
    if let Some(files) = &anchor_files {
        manage_anchors(files, &shared, &configuration)?;
    }
    let tls_sockets = tls_listeners.zip(tls.as_ref().map(|tls| tls.identity.clone()));
    let sockets = EventLoopSockets { plain: bound, tls: tls_sockets, workers };
    let server = start(Arc::clone(&shared), sockets, &loop_options)?;
    let (runtime, signals) = Signals::install(early_signals).map_err(ResolveError::Thread)?;
    let daemon = Arc::new(ResolverDaemon {
        path: sources.map(|sources| sources.path.clone()),
        at_start: configuration,
        workers,
        needs_restart: Mutex::default(),
        reloads: ReloadHistory::begin(),
        cost_model: CostModelHistory::default(),
        anchor_files,
        shared,
        addresses,
        tls,
        statistics: server.statistics(),
        server: Mutex::new(Some(server)),
        notifier: Notifier::from_environment(),
        stop_request: Notify::new(),
        started_at,
    });
    if let Some(control) = &control {
        let controlled = ControlledServer::Resolver(Arc::clone(&daemon));
        control::serve(control, controlled).map_err(ResolveError::Thread)?;
    }
    let source = Arc::clone(&daemon);
    let metrics = metrics.map(|listener| metrics::start(listener, move || source.snapshot())).transpose()?;
    print_ready(&daemon, is_json);
    daemon.notifier.notify_ready(&daemon.status_line());
    runtime.block_on(wait_for_stop(signals, watchdog, &daemon));
    // Does not wait for a reload in progress: it writes nothing.
    runtime.shutdown_background();
    daemon.notifier.notify_stopping();
    drop((metrics, control));
    let counters = daemon.counters();
    daemon.stop()?;
    daemon.store_anchors();
    if is_json || !logging::is_quiet() {
        print(&stopped_line(&counters.udp, None, is_json));
    }
    Ok(CommandOutcome::Done)
}

/// Lets the resolver update its trust anchors. Writes the state files, so that a directory without write
/// permission prevents the start.
fn manage_anchors(
    files: &AnchorFiles,
    shared: &Shared,
    configuration: &ResolverConfiguration,
) -> Result<(), AnchorStateError> {
    let now = Now { instant: Instant::now(), unix: unix_time() };
    let configured = &configuration.options.validation.anchors;
    shared.manage_anchors(files.read(configured, now.unix)?, now);
    files.log_unused(configured);
    Ok(files.write(shared)?)
}

/// Returns the time in seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Adapts the options to the memory. Half of it is for the cache, a quarter for client queries in
/// progress, and a quarter for the buffers of connections.
fn within_memory(mut options: ResolverOptions, workers: usize) -> Result<ResolverOptions, OptionsError> {
    let queries = options.memory / 4 / workers as u64 / QUERY_MEMORY;
    options.clients.queries = options.clients.queries.min(u32::try_from(queries).unwrap_or(u32::MAX));
    options.clients.queries_each = options.clients.queries_each.min(options.clients.queries);
    options.check()?;
    Ok(options)
}

/// The workers and the threads for TLS handshakes have equal parts of the memory for buffers.
fn loop_options(
    configuration: &ResolverConfiguration,
    options: &ResolverOptions,
    workers: usize,
    heartbeats: Heartbeats,
) -> EventLoopOptions {
    let mut loop_options = EventLoopOptions { heartbeats, ..EventLoopOptions::default() };
    loop_options.queries_max = options.clients.queries as usize;
    let buffers = usize::try_from(options.memory / 4).unwrap_or(usize::MAX);
    let tcp = &mut loop_options.tcp;
    tcp.memory_max = tcp.memory_max.min(buffers / (workers + configuration.tls.listen.len()));
    tcp.handshake_timeout = configuration.tls_handshake.unwrap_or(tcp.handshake_timeout);
    loop_options
}

/// Starts the workers.
fn start(
    shared: Arc<Shared>,
    sockets: EventLoopSockets,
    loop_options: &EventLoopOptions,
) -> Result<EventLoopServer, ResolveError> {
    let seeds = (0..sockets.workers).map(|_| random()).collect::<Result<Vec<[u8; 32]>, _>>()?;
    let make_machine = move |worker: usize| Resolver::new(Arc::clone(&shared), worker, seeds[worker]);
    Ok(serve(sockets, loop_options, make_machine)?)
}

/// The data that all workers share.
pub(crate) fn shared(options: ResolverOptions) -> Result<Shared, ResolveError> {
    let now = Now { instant: Instant::now(), unix: unix_time() };
    let mut shared = Shared::new(options, random()?, &random()?, now)?;
    shared.cookies = Some(Cookies::random().map_err(ResolveError::Random)?);
    Ok(shared)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], ResolveError> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(ResolveError::Random)?;
    Ok(octets)
}

fn print_ready(daemon: &ResolverDaemon, is_json: bool) {
    let (addresses, tls_addresses, workers) = (&daemon.addresses, daemon.tls_addresses(), daemon.workers);
    let anchors: Vec<String> = daemon.shared.anchor_apexes().iter().map(ToString::to_string).collect();
    if is_json {
        let ready = json!({
            "address": addresses.first(), "addresses": addresses, "tls_addresses": tls_addresses,
            "workers": workers, "trust_anchors": anchors,
        });
        return print(&json!({ "ready": ready }).to_string());
    }
    if logging::is_quiet() {
        return;
    }
    let validation = if anchors.is_empty() {
        "without validation: no trust anchor".to_owned()
    } else {
        format!("validating from {}", anchors.join(" "))
    };
    print(&format!(
        "ready: listening on {}, resolver, {}, {validation}",
        addresses_text(addresses, tls_addresses),
        count_text(workers, "worker")
    ));
}

/// Waits for a signal or request that stops the resolver. Meanwhile it reloads the configuration at a
/// signal, and notifies the watchdog of systemd.
async fn wait_for_stop(mut signals: Signals, mut watchdog: Watchdog, daemon: &Arc<ResolverDaemon>) {
    let mut check = tokio::time::interval(watchdog.interval().unwrap_or(CHECK_INTERVAL));
    check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut certificate_check = tokio::time::interval(certificate::CHECK_INTERVAL);
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            action = signals.next() => match action {
                SignalAction::Stop => return,
                SignalAction::Reload => {
                    let daemon = Arc::clone(daemon);
                    // The reload logs its outcome.
                    drop(tokio::task::spawn_blocking(move || daemon.reload()));
                }
            },
            () = daemon.stop_request.notified() => return,
            _ = check.tick() => watchdog.check(&daemon.notifier),
            _ = certificate_check.tick() => daemon.warn_of_certificate(),
            _ = second.tick() => {
                daemon.sample_cost_model();
                daemon.store_anchors();
                daemon.log_negative_anchors();
            }
        }
    }
}
