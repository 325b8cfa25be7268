//! The watchdog of systemd. It is notified while the loop of every worker runs, idle or not, and
//! not while one of them hangs.

use crate::common;
use common::configured::{configure, plain_zone, write_beside};
use common::{folder, nonesuch, text};
use nonesuch_testing::require_peer;
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The watchdog interval of systemd.
const INTERVAL: Duration = Duration::from_millis(400);
/// Time limit for each operation.
const LIMIT: Duration = Duration::from_secs(20);

/// A server that sends notifications to a socket of the test.
struct Notifying {
    child: Child,
    notified: UnixDatagram,
    log: std::path::PathBuf,
}

impl Notifying {
    fn start(dir: &Path) -> Self {
        write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
        let path = configure(dir, "[zone.\"a.example.\"]\nfile = \"a\"\n[log]\nformat = \"json\"\n");
        let notified = UnixDatagram::bind(dir.join("notify")).expect("a socket");
        notified.set_read_timeout(Some(LIMIT)).expect("a limit");
        let log = dir.join("log");
        let child = nonesuch(["serve", "--config", text(&path)])
            .env("NOTIFY_SOCKET", dir.join("notify"))
            .env("WATCHDOG_USEC", INTERVAL.as_micros().to_string())
            .stdout(Stdio::null())
            .stderr(fs::File::options().create(true).append(true).open(&log).expect("a log"))
            .spawn()
            .expect("nonesuch starts");
        Self { child, notified, log }
    }

    fn next(&self) -> Option<String> {
        let mut octets = [0; 1024];
        let length = self.notified.recv(&mut octets).ok()?;
        Some(String::from_utf8_lossy(&octets[..length]).into_owned())
    }

    #[track_caller]
    fn expect(&self, wanted: &str) {
        while !self
            .next()
            .unwrap_or_else(|| panic!("{wanted} does not come: {}", self.logged()))
            .contains(wanted)
        {}
    }

    fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The events of the watchdog in the log so far.
    fn watchdog_events(&self) -> Vec<Value> {
        let log = self.logged();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_of_watchdog =
            |line: &Value| line["event"].as_str().is_some_and(|event| event.starts_with("watchdog-"));
        events.filter(is_of_watchdog).collect()
    }

    /// Whether the last event of the watchdog names exactly these loops as late.
    fn is_silent(&self, name: &str) -> bool {
        let last = self.watchdog_events().pop();
        last.is_some_and(|line| line["event"] == "watchdog-late" && line["loops"] == name)
    }

    /// Number of received notifications, without waiting.
    fn drain(&self) -> usize {
        self.notified.set_nonblocking(true).expect("set");
        let notifications = std::iter::from_fn(|| self.next()).count();
        self.notified.set_nonblocking(false).expect("set");
        notifications
    }

    /// The thread with this name.
    fn thread(&self, name: &str) -> String {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("a process");
        let mut paths = threads.flatten().map(|entry| entry.path());
        let is_named = |path: &std::path::PathBuf| {
            fs::read_to_string(path.join("comm")).is_ok_and(|found| found.trim() == name)
        };
        let path = paths.find(is_named).unwrap_or_else(|| panic!("no thread {name}"));
        path.file_name().expect("a number").to_string_lossy().into_owned()
    }
}

impl Drop for Notifying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what} does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_watchdog_is_notified_while_no_worker_hangs() {
    let home = folder();
    let server = Notifying::start(home.path());
    server.expect("READY=1");
    // Idle.
    let began = Instant::now();
    for _ in 0..8 {
        server.expect("WATCHDOG=1");
    }
    let most = INTERVAL * 8;
    assert!(began.elapsed() < most, "{:?}: {}", began.elapsed(), server.logged());
    require_peer!("strace");
    for name in ["udp-0", "tcp", "transfers"] {
        let calls = "recvmmsg,epoll_wait,epoll_pwait";
        let mut hold = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "-p", &server.thread(name), "-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={calls}:delay_enter=60000000")])
            .stderr(Stdio::null())
            .spawn()
            .expect("strace starts");
        wait_until(name, || {
            server.is_silent(name)
                || hold.try_wait().expect("a child").is_some_and(|ended| {
                    nonesuch_testing::record_skip(&format!("strace may not attach: {ended}"));
                    true
                })
        });
        if hold.try_wait().expect("a child").is_some() {
            return;
        }
        server.drain();
        // The other loops continue, and for a whole interval there is no notification, so that
        // systemd would end the server.
        server.notified.set_read_timeout(Some(INTERVAL)).expect("a limit");
        assert_eq!(server.next(), None, "{name}: {}", server.logged());
        server.notified.set_read_timeout(Some(LIMIT)).expect("a limit");
        hold.kill().expect("killed");
        hold.wait().expect("ended");
        server.expect("WATCHDOG=1");
        wait_until("its recovery", || {
            server.watchdog_events().iter().any(|line| line["event"] == "watchdog-recovered")
        });
        fs::File::options().write(true).truncate(true).open(&server.log).expect("a log");
    }
}
