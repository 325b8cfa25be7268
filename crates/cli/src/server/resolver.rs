//! A running resolver: the workers of `nonesuch_net::event_loop`, each with a state machine of
//! `nonesuch_resolver`.

use crate::arguments::ResolveArguments;
use crate::config::Problems;
use crate::config::resolver::{self, ResolverConfiguration};
use crate::files::{FileError, count_text, print_line};
use crate::hints::{HintsFileError, read_hints};
use crate::logging;
use crate::outcome::CommandOutcome;
use crate::root::{RootError, check_root};
use crate::server::open_files::raise_open_files;
use crate::server::output::{print, stopped_line};
use crate::server::panics::abort_on_panic;
use crate::server::privileges::{Account, PrivilegeError, drop_privileges};
use crate::server::signals::{NonFatalSignals, SignalAction, Signals};
use crate::server::systemd::{Notifier, Watchdog};
use nonesuch_net::event_loop::{EventLoopOptions, EventLoopServer, serve};
use nonesuch_net::machine::Now;
use nonesuch_net::{Heartbeats, Listeners, NetError, bind};
use nonesuch_resolver::local_names::UnknownLocalZone;
use nonesuch_resolver::options::{OptionsError, ResolverOptions};
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::cookies::Cookies;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Memory of a client query in progress: its tasks, exchanges and messages, in bytes.
const QUERY_MEMORY: u64 = 3 << 10;
/// Time between two checks of the workers without a watchdog of systemd.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Why a resolver does not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ResolveError {
    #[error("the configuration is rejected:\n{0}")]
    Configuration(#[from] Problems),
    File(#[from] FileError),
    Hints(#[from] HintsFileError),
    Options(#[from] OptionsError),
    LocalNames(#[from] UnknownLocalZone),
    Root(#[from] RootError),
    Privilege(#[from] PrivilegeError),
    Bind(NetError),
    Net(#[from] NetError),
    #[error("cannot generate random secrets: {0}")]
    Random(getrandom::Error),
    #[error("cannot start a thread: {0}: raise the limits on threads and open files")]
    Thread(io::Error),
}

impl ResolveError {
    /// Whether the system prevented the start and a later attempt may succeed.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        matches!(self, Self::Bind(_) | Self::Random(_) | Self::Thread(_))
    }
}

/// Resolves names for clients until it is stopped, or checks a configuration.
pub(crate) fn run(arguments: &ResolveArguments) -> Result<CommandOutcome, ResolveError> {
    let Some(path) = &arguments.config else { return resolve(from_arguments(arguments)?, arguments.json) };
    let (configuration, warnings) = resolver::load(path)?;
    logging::configure(configuration.log.level, configuration.log.format);
    for warning in &warnings {
        tracing::warn!(name: "configuration-warning", "{warning}");
    }
    if arguments.check {
        find_account(&configuration)?;
        print_line(&format!("{}: valid", path.display()))?;
        return Ok(CommandOutcome::Done);
    }
    resolve(configuration, arguments.json)
}

fn from_arguments(arguments: &ResolveArguments) -> Result<ResolverConfiguration, ResolveError> {
    let mut configuration = ResolverConfiguration {
        listen: arguments.listen.clone(),
        workers: arguments.workers.map(usize::from),
        hints: arguments.hints.clone(),
        ..ResolverConfiguration::default()
    };
    if let Some(file) = &configuration.hints {
        configuration.options.hints = read_hints(file)?;
    }
    Ok(configuration)
}

/// The account that the resolver becomes.
fn find_account(configuration: &ResolverConfiguration) -> Result<Option<Account>, ResolveError> {
    let user = configuration.user.as_deref();
    check_root(user, configuration.listen.iter().copied())?;
    Ok(Account::find(user)?)
}

fn resolve(configuration: ResolverConfiguration, is_json: bool) -> Result<CommandOutcome, ResolveError> {
    let early_signals = NonFatalSignals::install().map_err(ResolveError::Thread)?;
    let account = find_account(&configuration)?;
    let ResolverConfiguration { listen, workers, nsid, options, .. } = configuration;
    abort_on_panic();
    let workers = workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = within_memory(options, workers)?;
    tracing::info!(name: "started", version = env!("CARGO_PKG_VERSION"), "nonesuch: started");
    let watchdog = Watchdog::from_environment();
    let loop_options = loop_options(&options, workers, watchdog.heartbeats());
    raise_open_files(files_of(&loop_options, workers));
    let bound: Result<Vec<Listeners>, NetError> =
        listen.iter().map(|address| bind(*address, workers)).collect();
    let bound = bound.map_err(ResolveError::Bind)?;
    drop_privileges(account.as_ref())?;
    logging::start_queue().map_err(ResolveError::Thread)?;
    let addresses: Vec<SocketAddr> = bound.iter().map(|listeners| listeners.local_addr).collect();
    let mut shared = shared(options)?;
    shared.reply.nsid = nsid.unwrap_or_default();
    let server = start(shared, bound, &loop_options, workers)?;
    let (runtime, signals) = Signals::install(early_signals).map_err(ResolveError::Thread)?;
    let notifier = Notifier::from_environment();
    print_ready(&addresses, workers, is_json);
    notifier.notify_ready(&format!("resolving with {}", count_text(workers, "worker")));
    runtime.block_on(wait_for_stop(signals, watchdog, &notifier));
    notifier.notify_stopping();
    let statistics = server.statistics();
    server.stop()?;
    if is_json || !logging::is_quiet() {
        print(&stopped_line(&statistics.total().udp, None, is_json));
    }
    Ok(CommandOutcome::Done)
}

/// Adapts the options to the memory. Half of it is for the cache, a quarter for client queries in
/// progress, and a quarter for the buffers of connections.
fn within_memory(mut options: ResolverOptions, workers: usize) -> Result<ResolverOptions, ResolveError> {
    let queries = options.memory / 4 / workers as u64 / QUERY_MEMORY;
    options.clients.queries = options.clients.queries.min(u32::try_from(queries).unwrap_or(u32::MAX));
    options.clients.queries_each = options.clients.queries_each.min(options.clients.queries);
    options.check()?;
    Ok(options)
}

fn loop_options(options: &ResolverOptions, workers: usize, heartbeats: Heartbeats) -> EventLoopOptions {
    let mut loop_options = EventLoopOptions { heartbeats, ..EventLoopOptions::default() };
    loop_options.queries_max = options.clients.queries as usize;
    let buffers = usize::try_from(options.memory / 4).unwrap_or(usize::MAX) / workers;
    loop_options.tcp.memory_max = loop_options.tcp.memory_max.min(buffers);
    loop_options
}

/// Number of files that the workers may open.
fn files_of(options: &EventLoopOptions, workers: usize) -> u64 {
    let upstream = &options.upstream;
    let each = options.tcp.connections_max + upstream.sockets_max + upstream.connections_max;
    (each * workers) as u64
}

/// Starts the workers.
fn start(
    shared: Shared,
    listeners: Vec<Listeners>,
    loop_options: &EventLoopOptions,
    workers: usize,
) -> Result<EventLoopServer, ResolveError> {
    let seeds = (0..workers).map(|_| random()).collect::<Result<Vec<[u8; 32]>, _>>()?;
    let shared = Arc::new(shared);
    let make_machine = move |worker: usize| Resolver::new(Arc::clone(&shared), worker, seeds[worker]);
    Ok(serve(listeners, loop_options, make_machine)?)
}

/// The data that all workers share.
pub(crate) fn shared(options: ResolverOptions) -> Result<Shared, ResolveError> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let now = Now { instant: Instant::now(), unix };
    let mut shared = Shared::new(options, random()?, &random()?, now)?;
    shared.cookies = Some(Cookies::random().map_err(ResolveError::Random)?);
    Ok(shared)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], ResolveError> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(ResolveError::Random)?;
    Ok(octets)
}

fn print_ready(addresses: &[SocketAddr], workers: usize, is_json: bool) {
    if is_json {
        let ready = json!({ "address": addresses.first(), "addresses": addresses, "workers": workers });
        return print(&json!({ "ready": ready }).to_string());
    }
    if logging::is_quiet() {
        return;
    }
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    print(&format!(
        "ready: listening on {} (udp, tcp), resolver, {}",
        texts.join(" "),
        count_text(workers, "worker")
    ));
}

/// Waits for a signal that stops the resolver. Notifies the watchdog of systemd meanwhile.
async fn wait_for_stop(mut signals: Signals, mut watchdog: Watchdog, notifier: &Notifier) {
    let mut check = tokio::time::interval(watchdog.interval().unwrap_or(CHECK_INTERVAL));
    check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            action = signals.next() => match action {
                SignalAction::Stop => return,
                SignalAction::Reload => tracing::warn!(
                    name: "reload-without-configuration",
                    "reload: a resolver reads its settings only when it starts: start it again"
                ),
            },
            _ = check.tick() => watchdog.check(notifier),
        }
    }
}
