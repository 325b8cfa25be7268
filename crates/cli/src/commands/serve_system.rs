//! What a server asks of the system around it: to be another user, more open files, to tell systemd how it stands.

use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Gid, Uid, User, getgrouplist, setgid, setgroups, setuid};
use nonesuch_net::Heartbeats;
use std::env;
use std::ffi::CString;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Open files that a server needs beside its connections: sockets, zones being read, its log.
const FILES: u64 = 512;
/// Open files that it may have where the system allows as many: what each of many zones takes for a while is in no sum.
const ROOM: u64 = 65_536;

/// How long systemd may take to accept a notification.
const NOTIFY_LIMIT: Duration = Duration::from_secs(1);

/// Why privileges are not as the configuration has them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivilegeError {
    #[error("user {0:?} does not exist: make it (`adduser --system --group {0}`), or name another")]
    NoUser(String),
    #[error("user {user:?}: only root may become another user: start as root, as {user}, or leave user out")]
    NotRoot { user: String },
    #[error(
        "this runs as root, and would listen on {address}, which the network reaches, with all rights: name a user in the \
         configuration (serve --config, user = \"nonesuch\"), or user = \"root\" where that is wanted"
    )]
    Root { address: std::net::SocketAddr },
    #[error("user {user:?}: {what} failed: {source}")]
    System { user: String, what: &'static str, source: nix::Error },
    #[error("user {user:?}: root's rights could be had back: this must not run so")]
    Kept { user: String },
}

/// Refuses to serve the network as root, where nobody has said so.
pub(crate) fn check_root(
    user: Option<&str>,
    addresses: impl IntoIterator<Item = std::net::SocketAddr>,
) -> Result<(), PrivilegeError> {
    let exposed = addresses.into_iter().find(|address| !address.ip().is_loopback());
    match exposed {
        Some(address) if user.is_none() && Uid::effective().is_root() => {
            Err(PrivilegeError::Root { address })
        }
        _ => Ok(()),
    }
}

/// The user that the server becomes, with its groups.
#[derive(Debug)]
pub(crate) struct Account {
    name: String,
    pub(crate) uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Account {
    /// Looks up `user`; `None` where the server stays the user that it is.
    pub(crate) fn find(user: Option<&str>) -> Result<Option<Self>, PrivilegeError> {
        let Some(name) = user else { return Ok(None) };
        let failed = |what| move |source| PrivilegeError::System { user: name.to_owned(), what, source };
        let found = User::from_name(name).map_err(failed("looking it up"))?;
        let found = found.ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))?;
        let c_name = CString::new(name).map_err(|_| PrivilegeError::NoUser(name.to_owned()))?;
        let groups = getgrouplist(&c_name, found.gid).map_err(failed("looking up its groups"))?;
        Ok(Some(Self { name: name.to_owned(), uid: found.uid, gid: found.gid, groups }))
    }
}

/// Becomes the user `account`, for good, with that user's groups; to be called before threads are started that matter.
pub(crate) fn drop_privileges(account: Option<&Account>) -> Result<(), PrivilegeError> {
    // What is run from here on gets no more rights than this has. Where the system cannot promise that, nothing is run.
    let _ = set_no_new_privs();
    let Some(Account { name, uid, gid, groups }) = account.filter(|account| account.uid != Uid::effective())
    else {
        return Ok(());
    };
    if !Uid::effective().is_root() {
        return Err(PrivilegeError::NotRoot { user: name.clone() });
    }
    let failed = |what| move |source| PrivilegeError::System { user: name.clone(), what, source };
    setgroups(groups).map_err(failed("taking its groups"))?;
    setgid(*gid).map_err(failed("taking its group"))?;
    setuid(*uid).map_err(failed("becoming it"))?;
    if setuid(Uid::from_raw(0)).is_ok() {
        return Err(PrivilegeError::Kept { user: name.clone() });
    }
    Ok(())
}

/// Has a panic of any thread end the process, which systemd starts again then: without one of its threads a server would seem to run,
/// and answer nothing, or never load a zone again. What it has published is on the disk.
pub(crate) fn abort_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        if IS_TOLD.swap(true, Relaxed) {
            // The one who came first is still telling.
            std::thread::sleep(Duration::from_secs(1));
        } else {
            let thread = std::thread::current();
            let payload = info.payload();
            let words = payload.downcast_ref::<&str>().copied();
            let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
            tracing::error!(
                thread = thread.name().unwrap_or("?"),
                "the server ends: a thread panicked{place}, which is a fault in nonesuch: {}",
                words.unwrap_or("no reason is given")
            );
            crate::logging::flush();
        }
        std::process::abort();
    }));
}

/// Raises the limit on open files as far as `connections` need it and the system allows.
pub(crate) fn raise_open_files(connections: u64) {
    let wanted = connections.saturating_add(FILES);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let raised = room_for(wanted, soft, hard);
    if raised <= soft && soft >= wanted {
        return;
    }
    if setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_err() || raised < wanted {
        tracing::warn!(
            "{raised} files may be open, and {connections} connections want {wanted}: raise the limit (LimitNOFILE=), or lower \
             tcp-connections"
        );
    }
}

/// The soft limit on open files for a server that wants so many, where these are the limits.
fn room_for(wanted: u64, soft: u64, hard: u64) -> u64 {
    wanted.max(ROOM).min(hard).max(soft)
}

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

    /// Set for the process that panics.
    const PANICS: &str = "NONESUCH_TEST_PANICS";

    /// Does nothing but in the process that the test after it starts.
    #[test]
    fn a_thread_panics_where_that_is_wanted() {
        if env::var_os(PANICS).is_none() {
            return;
        }
        crate::logging::start(0);
        abort_on_panic();
        let body = || panic!("the {}\nis broken", "zone");
        // Joined or not: the process does not come to its end in good order.
        let _ = std::thread::Builder::new().name("loader".to_owned()).spawn(body).unwrap().join();
        println!("it went on");
    }

    #[test]
    fn a_panic_is_logged_and_ends_the_process() {
        use std::os::unix::process::ExitStatusExt as _;
        let test = "commands::serve_system::tests::a_thread_panics_where_that_is_wanted";
        let ended = std::process::Command::new(env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(PANICS, "1")
            .output()
            .unwrap();
        let (told, printed) =
            (String::from_utf8_lossy(&ended.stderr), String::from_utf8_lossy(&ended.stdout));
        assert!(printed.contains("running 1 test"), "{printed}");
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{told}");
        assert!(!printed.contains("it went on"), "{printed}");
        let line = told.lines().find(|line| line.contains("ERROR")).unwrap_or_else(|| panic!("{told}"));
        for words in ["a thread panicked at ", "serve_system.rs:", "the zone", "is broken", "thread=loader"] {
            assert!(line.contains(words), "{words}: {line}");
        }
    }

    #[test]
    fn root_does_not_serve_the_network_unasked() {
        let (outer, inner) = ("192.0.2.1:53".parse().unwrap(), "127.0.0.1:53".parse().unwrap());
        assert!(check_root(None, [inner]).is_ok());
        assert!(check_root(Some("nonesuch"), [outer]).is_ok());
        assert_eq!(check_root(None, [inner, outer]).is_err(), Uid::effective().is_root());
    }

    #[test]
    fn open_files_are_allowed_as_far_as_the_system_does() {
        for (wanted, soft, hard, expected) in [
            (8_704, 1_024, 524_288, 65_536),
            (100_000, 1_024, 524_288, 100_000),
            (8_704, 1_024, 4_096, 4_096),
            (8_704, 200_000, 524_288, 200_000),
            (8_704, 524_288, 524_288, 524_288),
        ] {
            assert_eq!(room_for(wanted, soft, hard), expected, "{wanted} {soft} {hard}");
        }
    }

    #[test]
    fn a_user_that_is_not_there_is_named() {
        let error = Account::find(Some("nobody-of-this-name")).unwrap_err();
        assert!(error.to_string().contains("adduser"), "{error}");
    }
}
