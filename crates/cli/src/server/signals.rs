//! Signal handling of a server.

use std::io;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers for the signals that must not end a server, even while it still reads its zone. Signals
/// that end a server end it immediately until [`Signals::install`] runs.
pub(crate) struct NonFatalSignals {
    runtime: Runtime,
    hang_up: Signal,
}

impl NonFatalSignals {
    /// Installs the handlers in a runtime of this thread.
    pub(crate) fn install() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        // The server ignores these signals. Other servers react to them, so tools send them.
        for kind in [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::alarm()] {
            drop(signal(kind)?);
        }
        let hang_up = signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Self { runtime, hang_up })
    }
}

/// The signals that a server handles.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

/// The action that a signal requests.
pub(crate) enum SignalAction {
    /// SIGTERM, SIGINT or SIGQUIT.
    Stop,
    /// SIGHUP.
    Reload,
}

impl Signals {
    /// Installs the handlers for the remaining signals.
    pub(crate) fn install(early_signals: NonFatalSignals) -> io::Result<(Runtime, Self)> {
        let NonFatalSignals { runtime, hang_up } = early_signals;
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

    /// Waits for the next signal. Cancel safe: no signal is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Stop,
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.quit.recv() => SignalAction::Stop,
            _ = self.hang_up.recv() => SignalAction::Reload,
        }
    }
}
