//! The end of recording: a signal, or the end of the duration.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Whether recording must end.
pub(super) struct Stop {
    signal: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Installs handlers for SIGINT and SIGTERM. `duration`: seconds until the end.
    pub(super) fn install(duration: Option<f64>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(entered);
        let received = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&received);
        thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            set.store(true, Ordering::Relaxed);
            // Further signals have no effect: the files are being written.
            runtime.block_on(std::future::pending::<()>());
        })?;
        let end = |seconds: f64| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?);
        Ok(Self { signal: received, deadline: duration.and_then(end) })
    }

    /// Whether recording must end now.
    pub(super) fn is_requested(&self) -> bool {
        self.signal.load(Ordering::Relaxed) || self.deadline.is_some_and(|end| Instant::now() >= end)
    }

    /// Waits for a time, or until recording must end.
    pub(super) fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_requested() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let until_deadline =
                self.deadline.map_or(left, |end| end.saturating_duration_since(Instant::now()));
            thread::sleep(left.min(until_deadline).min(CHECK_INTERVAL));
        }
    }
}
