//! The signals of a server.

use std::io;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that do not end a server, taken: sent to one that reads its zone still, they do not end it either. Those that end
/// it do so at once until [`Signals::install`] takes them.
pub(crate) struct HarmlessSignals {
    runtime: Runtime,
    hang_up: Signal,
}

impl HarmlessSignals {
    /// Takes the signals from here on, in a runtime of this thread.
    pub(crate) fn install() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        // Other servers do something when they get these, and tools send them.
        for kind in [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::alarm()] {
            drop(signal(kind)?);
        }
        let hang_up = signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Self { runtime, hang_up })
    }
}

/// The signals that a server acts on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
pub(crate) enum SignalAction {
    /// SIGTERM, SIGINT or SIGQUIT.
    Stop,
    /// SIGHUP.
    Reload,
}

impl Signals {
    /// Takes the others too.
    pub(crate) fn install(harmless: HarmlessSignals) -> io::Result<(Runtime, Self)> {
        let HarmlessSignals { runtime, hang_up } = harmless;
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

    /// Waits for the next signal; no signal is lost where the future is dropped.
    pub(crate) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Stop,
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.quit.recv() => SignalAction::Stop,
            _ = self.hang_up.recv() => SignalAction::Reload,
        }
    }
}
