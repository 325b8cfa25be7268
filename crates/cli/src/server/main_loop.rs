//! A server while it runs: what it does by itself, on signals, and when it stops.

use crate::logging;
use crate::outcome::CommandOutcome;
use crate::server::daemon::Daemon;
use crate::server::error::ServerError;
use crate::server::output::{online_summary, print, stopped_line};
use crate::server::signals::{SignalAction, Signals};
use crate::server::systemd::Watchdog;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// Most time between two looks at when signatures expire: the clock may be set meanwhile, or the machine may sleep.
const LOOK: Duration = Duration::from_secs(60);
/// Time between two looks at when the certificate expires.
const DAY: Duration = Duration::from_secs(86_400);
/// Time between two looks at whether clients are limited still.
const SECOND: Duration = Duration::from_secs(1);

/// A server that neither has zones nor answers yet.
pub(crate) struct MainLoop {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) runtime: Runtime,
    pub(crate) signals: Signals,
    pub(crate) watchdog: Watchdog,
}

impl MainLoop {
    /// Has `announce` report that the zones have been loaded, and reloads on SIGHUP; returns on SIGTERM, SIGINT, SIGQUIT, or when
    /// the control socket says so, also before that.
    pub(crate) fn run(
        self,
        announce: impl FnOnce() -> Result<(), ServerError> + Send + 'static,
    ) -> Result<(), ServerError> {
        let Self { daemon: node, runtime, signals, watchdog } = self;
        let outcome = runtime.block_on(async {
            let duties = MainLoopState {
                node: Arc::clone(&node),
                watchdog,
                next_look: Instant::now(),
                task: None,
                is_reload_asked: false,
            };
            duties.attend(signals, announce).await
        });
        // A reload that goes on is not waited for: what it has published is kept, and nothing else is lost.
        runtime.shutdown_background();
        node.notifier.stopping();
        outcome
    }
}

/// What a running server attends to.
struct MainLoopState {
    node: Arc<Daemon>,
    watchdog: Watchdog,
    /// When to look next at when signatures expire.
    next_look: Instant,
    /// The reload, or the change of keys, that goes on.
    task: Option<JoinHandle<()>>,
    /// Signals that come while a reload goes on ask for one more, however many they are.
    is_reload_asked: bool,
}

impl MainLoopState {
    async fn attend(
        mut self,
        mut signals: Signals,
        announce: impl FnOnce() -> Result<(), ServerError> + Send + 'static,
    ) -> Result<(), ServerError> {
        let mut day = interval(DAY);
        let mut alive = interval(self.watchdog.interval().unwrap_or(LOOK));
        // Two checks in a row are no two checks: a loop reports between them.
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut second = interval(SECOND);
        let mut announcing = spawn_blocking(announce);
        let mut is_announced = false;
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    SignalAction::Stop => return Ok(()),
                    SignalAction::Reload => self.is_reload_asked = true,
                },
                () = self.node.stop.notified() => return Ok(()),
                outcome = &mut announcing, if !is_announced => {
                    is_announced = true;
                    outcome.unwrap_or_else(|error| Err(ServerError::Thread(error.into())))?;
                    self.next_look = Instant::now();
                }
                () = sleep_until(self.next_look) => self.look_at_expiry(),
                _ = day.tick() => self.node.warn_of_certificate(),
                _ = alive.tick() => self.watchdog.check(&self.node.notifier),
                _ = second.tick() => self.tick(),
                () = end_of(&mut self.task) => {
                    self.task = None;
                    self.next_look = Instant::now();
                }
            }
            self.reload_if_asked();
        }
    }

    /// Warns of signatures that expire.
    fn look_at_expiry(&mut self) {
        let seconds = self.node.service.warn_of_expiry();
        let next = seconds.map_or(LOOK, |seconds| Duration::from_secs(seconds.into()).min(LOOK));
        self.next_look = Instant::now() + next;
    }

    /// What is done each second.
    fn tick(&mut self) {
        self.node.shared.statistics.log_unlimited();
        if self.task.is_none() && self.node.service.is_key_event_due() {
            let service = Arc::clone(&self.node.service);
            self.task = Some(spawn_blocking(move || service.apply_key_times()));
        }
    }

    fn reload_if_asked(&mut self) {
        if self.is_reload_asked && self.task.is_none() {
            self.is_reload_asked = false;
            let node = Arc::clone(&self.node);
            // Its outcome is in the log.
            self.task = Some(spawn_blocking(move || drop(node.reload())));
        }
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
pub(crate) fn stop(node: &Daemon, is_json: bool) -> Result<CommandOutcome, ServerError> {
    node.service.stop();
    let server = node.server.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(server) = server else { return Ok(CommandOutcome::Done) };
    let counters = server.udp_counters();
    let online = node.service.is_online().then(|| server.online_counters());
    server.stop()?;
    if let Some(tap) = &node.shared.tap {
        tap.finish();
    }
    if let Some(online) = &online {
        tracing::info!("{}", online_summary(online));
    }
    if is_json || !logging::is_quiet() {
        print(&stopped_line(&counters, online.as_ref(), is_json));
    }
    Ok(CommandOutcome::Done)
}
