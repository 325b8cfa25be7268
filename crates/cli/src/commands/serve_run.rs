//! A server from its parts to its end: what it is put together of, the signals that it acts on, its last words.

use super::serve_keys::KEY_FILES;
use super::serve_node::{Node, Origin};
use super::serve_reloads::Reloads;
use super::serve_settings::{answer_settings, tap_options, transfers_options};
use super::serve_system::{Notifier, Watchdog};
use super::serve_words::{last_words, online_words, say};
use crate::Outcome;
use crate::config::Configuration;
use crate::error::Failure;
use arc_swap::ArcSwap;
use nonesuch_authoritative::secondary::Transfers;
use nonesuch_authoritative::service::{Link, Service, Settings, follow};
use nonesuch_authoritative::statistics::{Direction, Statistics, TransferKind, TransferResult};
use nonesuch_authoritative::tap::Tap;
use nonesuch_authoritative::transfer::outbound::{self, Outgoing, TransferOutcome, TransferStatus};
use nonesuch_authoritative::zones::Zones;
use nonesuch_authoritative::{Shared, seconds_now};
use nonesuch_net::tls::IdentitySlot;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// Most time between two looks at when signatures expire: the clock may be set meanwhile, or the machine may sleep.
const LOOK: Duration = Duration::from_secs(60);
/// Time between two looks at when the certificate expires.
const DAY: Duration = Duration::from_secs(86_400);
/// Time between two looks at whether clients are limited still.
const SECOND: Duration = Duration::from_secs(1);

/// A server that neither has zones nor answers yet.
pub(super) struct Assembled {
    pub(super) node: Arc<Node>,
    runtime: Runtime,
    signals: Signals,
    watchdog: Watchdog,
}

impl Assembled {
    /// Puts together what `configuration` says. Signatures are made, and judged, `clock_shift` seconds ahead of the clock.
    pub(super) fn new(
        harmless: HarmlessSignals,
        configuration: Configuration,
        origin: Origin,
        identity: Option<IdentitySlot>,
        clock_shift: u32,
        begun: Instant,
    ) -> Result<Self, Failure> {
        let zones = Arc::new(Zones::new());
        let settings = answer_settings(&configuration, None).map_err(Failure::Settings)?;
        let tap = tap_options(&configuration).map(Tap::start).transpose()?.map(Arc::new);
        let watchdog = Watchdog::from_environment();
        let heartbeats = watchdog.heartbeats();
        let mut shared = Shared { tap, heartbeats: heartbeats.clone(), ..Shared::new(Arc::clone(&zones)) };
        let statistics = Arc::clone(&shared.statistics);
        let limits = &configuration.limits;
        let outgoing = Outgoing::new(limits.transfers_out, seconds_now)
            .with_each(limits.transfers_out_each, limits.exempt.clone());
        shared.outgoing = Arc::new(outgoing.with_observer(move |ended| count_outgoing(&statistics, ended)));
        shared.settings = Arc::new(ArcSwap::from_pointee(settings));
        let service_settings = Settings { clock_shift, ..configuration.service_settings() };
        let service = Service::open(service_settings, KEY_FILES, zones)?;
        let events = service.events();
        let link = Link { service: Arc::clone(&service), settings: Arc::clone(&shared.settings) };
        let transfers = Transfers::start(transfers_options(&configuration, heartbeats), Arc::new(link))
            .map_err(Failure::Thread)?;
        let transfers = Arc::new(transfers);
        let taker = Arc::clone(&transfers);
        shared.notified = Some(Arc::new(move |notified| taker.notified(notified)));
        follow(&service, events, Arc::clone(&transfers)).map_err(Failure::Thread)?;
        let (runtime, signals) = Signals::install(harmless).map_err(Failure::Thread)?;
        let node = Arc::new(Node {
            origin,
            reloads: Reloads::new(&configuration),
            configuration: Mutex::new(configuration),
            service,
            shared,
            transfers,
            identity,
            server: Mutex::new(None),
            notifier: Notifier::from_environment(),
            stop: Notify::new(),
            reloading: Mutex::new(()),
            begun,
        });
        Ok(Self { node, runtime, signals, watchdog })
    }

    /// Has `announce` say when the zones have been loaded, and reloads on SIGHUP; returns on SIGTERM, SIGINT, SIGQUIT, or when
    /// the control socket says so, also before that.
    pub(super) fn run(
        self,
        announce: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let Self { node, runtime, mut signals, mut watchdog } = self;
        let outcome = runtime.block_on(async {
            let mut next_look = tokio::time::Instant::now();
            let mut day = tokio::time::interval(DAY);
            let mut alive = tokio::time::interval(watchdog.interval().unwrap_or(LOOK));
            // Two checks in a row are no two checks: a loop reports between them.
            alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut second = tokio::time::interval(SECOND);
            let mut announcing = tokio::task::spawn_blocking(announce);
            let mut is_announced = false;
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
                        next_look = tokio::time::Instant::now();
                    }
                    () = tokio::time::sleep_until(next_look) => {
                        let seconds = node.service.warn_of_expiry();
                        let next = seconds.map_or(LOOK, |seconds| Duration::from_secs(seconds.into()).min(LOOK));
                        next_look = tokio::time::Instant::now() + next;
                    }
                    _ = day.tick() => node.warn_of_certificate(),
                    _ = alive.tick() => watchdog.check(&node.notifier),
                    _ = second.tick() => node.shared.statistics.tell_unlimited(),
                    _ = signals.hang_up.recv() => is_asked = true,
                    () = end_of(&mut reloading) => {
                        reloading = None;
                        next_look = tokio::time::Instant::now();
                    }
                }
                if is_asked && reloading.is_none() {
                    is_asked = false;
                    let node = Arc::clone(&node);
                    // What came of it stands in the log.
                    reloading = Some(tokio::task::spawn_blocking(move || drop(node.reload())));
                }
            }
        });
        // A reload that goes on is not waited for: what it has published is kept, and nothing else is lost.
        runtime.shutdown_background();
        node.notifier.stopping();
        outcome
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
        TransferOutcome::Refused(refusal) => {
            statistics.transfers().refuse(refusal.name());
            TransferResult::Refused
        }
        TransferOutcome::UnderWay | TransferOutcome::BrokenOff => TransferResult::Failed,
    };
    statistics.transfers().record(Direction::Out, kind, result, ended.messages, ended.octets);
}

/// The signals that do not end a server, taken: sent to one that reads its zone still, they do not end it either. Those that end
/// it do so at once until [`Assembled::new`] takes them.
pub(super) struct HarmlessSignals {
    runtime: Runtime,
    hang_up: Signal,
}

impl HarmlessSignals {
    /// Takes the signals from here on, in a runtime of this thread.
    pub(super) fn install() -> Result<Self, Failure> {
        let install = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let entered = runtime.enter();
            // Other servers do something when they get these, and tools send them.
            for kind in [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::alarm()] {
                drop(signal(kind)?);
            }
            let hang_up = signal(SignalKind::hangup())?;
            drop(entered);
            Ok(Self { runtime, hang_up })
        };
        install().map_err(Failure::Thread)
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
    /// Takes the others too.
    fn install(HarmlessSignals { runtime, hang_up }: HarmlessSignals) -> std::io::Result<(Runtime, Self)> {
        let entered = runtime.enter();
        let signals = Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up,
        };
        drop(entered);
        Ok((runtime, signals))
    }
}

/// Waits for the end of what goes on; for ever where nothing does.
async fn end_of(task: &mut Option<JoinHandle<()>>) {
    match task {
        // Whether it ended well stands in the log.
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

/// Ends a server, and says what it has done.
pub(super) fn stop(node: &Node, is_json: bool) -> Result<Outcome, Failure> {
    node.service.stop();
    let server = node.server.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(server) = server else { return Ok(Outcome::Done) };
    let counters = server.udp_counters();
    let online = node.service.is_online().then(|| server.online_counters());
    server.stop()?;
    if let Some(tap) = &node.shared.tap {
        tap.finish();
    }
    if let Some(online) = &online {
        tracing::info!("{}", online_words(online));
    }
    say(&last_words(&counters, online.as_ref(), is_json));
    Ok(Outcome::Done)
}
