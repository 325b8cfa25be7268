//! The main loop of a running server: periodic work, signals and stop.

use crate::certificate;
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

/// Maximum time between two checks of signature expiration. The next expiration alone does not
/// determine the time, because the clock may be set or the machine may sleep.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two checks for the end of rate limiting and for key times that are due.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

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
        let Self { daemon, runtime, signals, watchdog } = self;
        let outcome = runtime.block_on(async {
            let state = MainLoopState {
                daemon: Arc::clone(&daemon),
                watchdog,
                next_expiry_check: Instant::now(),
                task: None,
                is_reload_requested: false,
            };
            state.run(signals, announce).await
        });
        // Does not wait for a reload in progress: the versions that it has published are stored,
        // and nothing else is lost.
        runtime.shutdown_background();
        daemon.notifier.notify_stopping();
        outcome
    }
}

/// The data that the main loop changes.
struct MainLoopState {
    daemon: Arc<Daemon>,
    watchdog: Watchdog,
    /// Time of the next check of signature expiration.
    next_expiry_check: Instant,
    /// The reload or key change in progress.
    task: Option<JoinHandle<()>>,
    /// Whether a signal has requested a reload that is not started yet. Several signals during a
    /// reload cause one more reload.
    is_reload_requested: bool,
}

impl MainLoopState {
    async fn run(
        mut self,
        mut signals: Signals,
        announce: impl FnOnce() -> Result<(), ServerError> + Send + 'static,
    ) -> Result<(), ServerError> {
        let mut certificate_check = interval(certificate::CHECK_INTERVAL);
        let mut watchdog_check = interval(self.watchdog.interval().unwrap_or(EXPIRY_CHECK_INTERVAL));
        // Delayed checks must not follow each other directly: a thread needs the time between two
        // checks to report.
        watchdog_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = interval(TICK_INTERVAL);
        let mut announcing = spawn_blocking(announce);
        let mut is_announced = false;
        loop {
            tokio::select! {
                action = signals.next() => match action {
                    SignalAction::Stop => return Ok(()),
                    SignalAction::Reload => self.is_reload_requested = true,
                },
                () = self.daemon.stop_request.notified() => return Ok(()),
                outcome = &mut announcing, if !is_announced => {
                    is_announced = true;
                    outcome.unwrap_or_else(|error| Err(ServerError::Thread(error.into())))?;
                    self.next_expiry_check = Instant::now();
                }
                () = sleep_until(self.next_expiry_check) => self.check_expiry(),
                _ = certificate_check.tick() => self.daemon.warn_of_certificate(),
                _ = watchdog_check.tick() => self.watchdog.check(&self.daemon.notifier),
                _ = tick.tick() => self.tick(),
                () = wait_for_end(&mut self.task) => {
                    self.task = None;
                    self.next_expiry_check = Instant::now();
                }
            }
            self.reload_if_requested();
        }
    }

    /// Warns of signatures that expire soon, and schedules the next check.
    fn check_expiry(&mut self) {
        let seconds = self.daemon.service.warn_of_expiry();
        let next = seconds.map_or(EXPIRY_CHECK_INTERVAL, |seconds| {
            Duration::from_secs(seconds.into()).min(EXPIRY_CHECK_INTERVAL)
        });
        self.next_expiry_check = Instant::now() + next;
    }

    /// The work of each second: logs the end of rate limiting, and applies key times that are due.
    fn tick(&mut self) {
        self.daemon.context.statistics.log_limiting_ended();
        if self.task.is_none() && self.daemon.service.is_key_event_due() {
            let service = Arc::clone(&self.daemon.service);
            self.task = Some(spawn_blocking(move || service.apply_key_times()));
        }
    }

    /// Starts a requested reload, unless a reload or key change is in progress.
    fn reload_if_requested(&mut self) {
        if self.is_reload_requested && self.task.is_none() {
            self.is_reload_requested = false;
            let daemon = Arc::clone(&self.daemon);
            // The reload logs its outcome.
            self.task = Some(spawn_blocking(move || drop(daemon.reload())));
        }
    }
}

/// Waits for the end of the task. Without a task, it waits forever.
async fn wait_for_end(task: &mut Option<JoinHandle<()>>) {
    match task {
        // The task has logged its outcome.
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

/// Stops a server, and reports its counters.
pub(crate) fn stop(daemon: &Daemon, is_json: bool) -> Result<CommandOutcome, ServerError> {
    daemon.service.stop();
    let server = daemon.server.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(server) = server else { return Ok(CommandOutcome::Done) };
    let counters = server.udp_counters();
    let online = daemon.service.needs_online_work().then(|| server.online_counters());
    server.stop()?;
    if let Some(tap) = &daemon.context.dnstap {
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
