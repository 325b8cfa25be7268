//! Telling systemd how the server stands (sd_notify(3), sd_watchdog_enabled(3)).
//!
//! The crate `sd-notify` 0.5 does not serve: it connects to no abstract socket, and sends without a time limit, so that a manager
//! that hangs would stop the loop that acts on signals.

use nix::time::{ClockId, clock_gettime};
use nonesuch_net::Heartbeats;
use std::env;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// How long systemd may take to accept a notification.
const NOTIFY_LIMIT: Duration = Duration::from_secs(1);

/// The socket at which systemd wants to be told how the server stands (sd_notify(3)); nothing is told where there is none.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
}

impl Notifier {
    /// By the environment that systemd has set.
    pub(crate) fn from_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|path| {
            let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
            let address = match bytes.strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&path),
            };
            let socket = UnixDatagram::unbound().ok()?;
            // The loop that notifies also acts on signals.
            socket.set_write_timeout(Some(NOTIFY_LIMIT)).ok()?;
            Some((socket, address.ok()?))
        });
        Self { socket }
    }

    fn tell(&self, state: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(state.as_bytes(), address)
        {
            tracing::warn!(%error, "systemd cannot be told: {error}");
        }
    }

    /// The server answers.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The server reads its configuration again.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    /// The server ends.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// The server is alive.
    pub(crate) fn alive(&self) {
        self.tell("WATCHDOG=1");
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The watchdog of systemd (sd_watchdog_enabled(3)): it is notified as long as every loop of the server reports within half of the
/// interval that it asks for.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Half of the interval; `None` where systemd watches nothing.
    limit: Option<Duration>,
    heartbeats: Heartbeats,
    /// The loops that did not report when they were checked last.
    silent: Vec<String>,
}

impl Watchdog {
    /// By the environment that systemd has set.
    pub(crate) fn from_environment() -> Self {
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit =
            number("WATCHDOG_USEC").filter(|_| is_ours).map(|interval| Duration::from_micros(interval / 2));
        let limit = limit.filter(|limit| *limit > Duration::from_millis(1));
        Self {
            limit,
            heartbeats: limit.map_or_else(Heartbeats::default, Heartbeats::new),
            silent: Vec::new(),
        }
    }

    /// Where loops report.
    pub(crate) fn heartbeats(&self) -> Heartbeats {
        self.heartbeats.clone()
    }

    /// Time between two checks: a quarter of the interval that systemd asks for.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.limit.map(|limit| limit / 2)
    }

    /// Notifies systemd, unless a loop hangs.
    pub(crate) fn check(&mut self, notifier: &Notifier) {
        let Some(limit) = self.limit else { return };
        let silent = self.heartbeats.silent(Instant::now());
        if silent.is_empty() {
            notifier.alive();
        }
        if silent != self.silent {
            let seconds = limit.as_secs_f64();
            match silent.is_empty() {
                true => tracing::warn!("watchdog: all loops report again"),
                false => tracing::error!(
                    loops = silent.join(","),
                    seconds,
                    "watchdog: not notified, a loop has not reported in time"
                ),
            }
            self.silent = silent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_is_told_in_datagrams() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_pathname(&path).unwrap();
        let notifier = Notifier { socket: Some((UnixDatagram::unbound().unwrap(), address)) };
        let next = || {
            let mut octets = [0; 512];
            let length = systemd.recv(&mut octets).unwrap();
            String::from_utf8_lossy(&octets[..length]).into_owned()
        };
        notifier.ready("2 zones\nserved");
        assert_eq!(next(), "READY=1\nSTATUS=2 zones served");
        notifier.reloading();
        let told = next();
        let microseconds = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("the time");
        assert!(microseconds.parse::<u64>().unwrap() > 0);
        notifier.stopping();
        assert_eq!(next(), "STOPPING=1");
        Notifier::default().alive();
    }
}
