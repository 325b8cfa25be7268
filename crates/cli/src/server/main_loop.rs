//! The main loop of a running server: periodic work, signals and stop.

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

/// Maximum time between two checks of signature expiration. The limit is needed because the clock
/// may be set or the machine may sleep.
const LOOK: Duration = Duration::from_secs(60);
/// Time between two checks of certificate expiration.
const DAY: Duration = Duration::from_secs(86_400);
/// Time between two checks for the end of rate limiting and for key times that are due.
const SECOND: Duration = Duration::from_secs(1);

/// A server that has not loaded zones and does not answer yet.
pub(crate) struct MainLoop {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) runtime: Runtime,
    pub(crate) signals: Signals,
    pub(crate) watchdog: Watchdog,
}

impl MainLoop {
    /// Calls `announce` to report that the zones have been loaded, and reloads on SIGHUP. Returns
    /// on SIGTERM, SIGINT, SIGQUIT or a stop request at the control socket, even before the zones
    /// have been loaded.
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
        // Does not wait for a reload in progress: the versions that it has published are stored,
        // and nothing else is lost.
        runtime.shutdown_background();
        node.notifier.stopping();
        outcome
    }
}

/// State of the main loop.
struct MainLoopState {
    node: Arc<Daemon>,
    watchdog: Watchdog,
    /// Time of the next check of signature expiration.
    next_look: Instant,
    /// The reload or key change in progress.
    task: Option<JoinHandle<()>>,
    /// Any number of signals during a reload causes one more reload.
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
        // Delayed checks must not follow each other directly: a thread needs the time between two
        // checks to report.
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

    /// Warns of signatures that expire soon, and schedules the next check.
    fn look_at_expiry(&mut self) {
        let seconds = self.node.service.warn_of_expiry();
        let next = seconds.map_or(LOOK, |seconds| Duration::from_secs(seconds.into()).min(LOOK));
        self.next_look = Instant::now() + next;
    }

    /// The work of each second: logs the end of rate limiting, and applies key times that are due.
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
            // The reload logs its outcome.
            self.task = Some(spawn_blocking(move || drop(node.reload())));
        }
    }
}

/// Waits for the end of the task. Without a task, it waits forever.
async fn end_of(task: &mut Option<JoinHandle<()>>) {
    match task {
        // The task has logged its outcome.
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

/// Stops a server, and reports its counters.
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
        tracing::info!(name: "online-work", "online work: {}", online_summary(online));
    }
    if is_json || !logging::is_quiet() {
        print(&stopped_line(&counters, online.as_ref(), is_json));
    }
    Ok(CommandOutcome::Done)
}
