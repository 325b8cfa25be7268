//! Notification of systemd about the state of the server (sd_notify(3), sd_watchdog_enabled(3)).
//!
//! The crate `sd-notify` 0.5 is not suitable: it does not connect to abstract sockets and it sends
//! without a time limit, so a service manager that hangs would block the loop that handles signals.

use nix::time::{ClockId, clock_gettime};
use nonesuch_net::Heartbeats;
use std::env;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Time limit for systemd to accept a notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends notifications to systemd (sd_notify(3)). Without a socket, nothing is sent.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
}

impl Notifier {
    /// Uses the socket in the environment variable `NOTIFY_SOCKET`; `@` begins an abstract address.
    pub(crate) fn from_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|path| {
            let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
            let address = match bytes.strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&path),
            };
            let socket = UnixDatagram::unbound().ok()?;
            // The main loop sends the notifications and also handles signals, so it must not block.
            socket.set_write_timeout(Some(NOTIFY_TIMEOUT)).ok()?;
            Some((socket, address.ok()?))
        });
        Self { socket }
    }

    fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(state.as_bytes(), address)
        {
            tracing::warn!(name: "systemd-not-notified", %error, "systemd: cannot send the notification: {error}");
        }
    }

    /// Reports that the server answers.
    pub(crate) fn notify_ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", join_lines(status)));
    }

    /// Reports that the server reads its configuration again.
    pub(crate) fn notify_reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    /// Reports that the server stops.
    pub(crate) fn notify_stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Reports that the server is alive.
    pub(crate) fn notify_alive(&self) {
        self.send("WATCHDOG=1");
    }
}

/// Replaces line ends with spaces, because a line end would begin another assignment.
fn join_lines(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The watchdog of systemd (sd_watchdog_enabled(3)). The server notifies systemd as long as every
/// loop of the server reports within half of the watchdog interval.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Half of the watchdog interval; `None` without a watchdog.
    limit: Option<Duration>,
    heartbeats: Heartbeats,
    /// The loops that had not reported at the last check.
    late_loops: Vec<String>,
}

impl Watchdog {
    /// Reads the environment variables `WATCHDOG_USEC` and `WATCHDOG_PID`.
    pub(crate) fn from_environment() -> Self {
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_for_this_process =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit = number("WATCHDOG_USEC")
            .filter(|_| is_for_this_process)
            .map(|interval| Duration::from_micros(interval / 2));
        // The main loop checks each `limit / 2`; a timer needs an interval above zero.
        let limit = limit.filter(|limit| *limit > Duration::from_millis(1));
        Self {
            limit,
            heartbeats: limit.map_or_else(Heartbeats::default, Heartbeats::new),
            late_loops: Vec::new(),
        }
    }

    /// The handle with which loops report.
    pub(crate) fn heartbeats(&self) -> Heartbeats {
        self.heartbeats.clone()
    }

    /// Time between two checks: a quarter of the watchdog interval.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.limit.map(|limit| limit / 2)
    }

    /// Notifies systemd, unless a loop hangs.
    pub(crate) fn check(&mut self, notifier: &Notifier) {
        let Some(limit) = self.limit else { return };
        let late_loops = self.heartbeats.overdue_loops(Instant::now());
        if late_loops.is_empty() {
            notifier.notify_alive();
        }
        if late_loops != self.late_loops {
            let seconds = limit.as_secs_f64();
            match late_loops.is_empty() {
                true => tracing::warn!(name: "watchdog-recovered", "watchdog: all loops report again"),
                false => tracing::error!(
                    name: "watchdog-late",
                    loops = late_loops.join(","),
                    seconds,
                    "watchdog: not notified, a loop has not reported in time"
                ),
            }
            self.late_loops = late_loops;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_notification_is_one_datagram() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_pathname(&path).unwrap();
        let notifier = Notifier { socket: Some((UnixDatagram::unbound().unwrap(), address)) };
        let next = || {
            let mut octets = [0; 512];
            let length = systemd.recv(&mut octets).unwrap();
            String::from_utf8_lossy(&octets[..length]).into_owned()
        };
        notifier.notify_ready("2 zones\nserved");
        assert_eq!(next(), "READY=1\nSTATUS=2 zones served");
        notifier.notify_reloading();
        let state = next();
        let microseconds = state.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("the time");
        assert!(microseconds.parse::<u64>().unwrap() > 0);
        notifier.notify_stopping();
        assert_eq!(next(), "STOPPING=1");
        Notifier::default().notify_alive();
    }
}
