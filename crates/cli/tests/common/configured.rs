//! A server with a configuration, and queries to it.

use super::{Ended, events, nonesuch, run, text};
use nonesuch_proto::message::{Message, Rcode, Section, push_query};
use nonesuch_proto::{Rtype, edns};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Time limit for responses and for conditions.
const LIMIT: Duration = Duration::from_secs(20);

/// A running server. It ends on drop.
pub struct Configured {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The JSON line that it printed when it was ready.
    pub ready: Value,
    pub address: SocketAddr,
    pub configuration: PathBuf,
    pub log: PathBuf,
}

impl Drop for Configured {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first lines of each configuration: an unused port of loopback, the state directory and the
/// control socket.
pub fn head(folder: &Path) -> String {
    fs::create_dir_all(folder.join("state")).expect("a directory");
    "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nstate-dir = \"state\"\ncontrol-socket = \"control\"\n".to_owned()
}

/// Writes the configuration of `folder`: the head and `zones`.
pub fn configure(folder: &Path, zones: &str) -> PathBuf {
    let path = folder.join("c.toml");
    write_beside(&path, &format!("{}{zones}", head(folder)));
    path
}

/// Writes a temporary file and renames it, as files of a running server should be written.
pub fn write_beside(path: &Path, text: &str) {
    let beside = path.with_extension("beside");
    fs::write(&beside, text).expect("written");
    fs::rename(&beside, path).expect("renamed");
}

/// An unsigned zone with this serial, and a TXT record with the serial.
pub fn plain_zone(origin: &str, serial: u32) -> String {
    format!(
        "$ORIGIN {origin}\n@ 60 SOA ns h {serial} 60 60 3600 60\n@ 60 NS ns\nns 60 A 192.0.2.1\nt 60 TXT \"{serial}\"\n"
    )
}

impl Configured {
    /// Starts a server with the configuration at `path`, and waits until it is ready.
    #[track_caller]
    pub fn start(path: &Path) -> Self {
        Self::start_with(&["--config", text(path)], path, Stdio::inherit())
    }

    /// Starts `nonesuch serve` with these arguments and this input, and waits until it is ready.
    /// Its log is next to `path`.
    #[track_caller]
    pub fn start_with(arguments: &[&str], path: &Path, input: Stdio) -> Self {
        Self::start_command("serve", arguments, path, input)
    }

    /// As [`start_with`](Self::start_with), with another command: `nonesuch resolve`.
    #[track_caller]
    pub fn start_command(command: &str, arguments: &[&str], path: &Path, input: Stdio) -> Self {
        let log = path.with_extension("log");
        let mut child = nonesuch([&[command, "--json"], arguments].concat())
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(fs::File::options().create(true).append(true).open(&log).expect("a log"))
            .spawn()
            .expect("nonesuch starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let ready: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line} {}", said()));
        let ready = ready["ready"].clone();
        let address = ready["address"].as_str().expect("an address").parse().expect("an address");
        Self { child, stdout, ready, address, configuration: path.to_path_buf(), log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server (SIGKILL), as the system does when memory is exhausted.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Waits until it ends; returns its exit status.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it; returns its last line.
    #[track_caller]
    pub fn stop(mut self) -> Value {
        self.signal("-TERM");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        assert_eq!(self.wait(), 0, "{line} {}", self.logged());
        serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("{line}"))["stopped"].clone()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().expect("kill").success());
    }

    /// Runs `ctl` with these arguments.
    #[track_caller]
    pub fn ctl(&self, arguments: &[&str]) -> Ended {
        run(&mut nonesuch([&["ctl", "--config", text(&self.configuration)], arguments].concat()))
    }

    /// Like `ctl`, with a response in JSON.
    #[track_caller]
    pub fn ctl_json(&self, arguments: &[&str]) -> Value {
        let ended = self.ctl(&[arguments, &["--json"]].concat());
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {}", ended.text()))
    }

    /// The log so far.
    pub fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The lines of the event `name` in the log so far, with these fields, each as `name=value`.
    pub fn events(&self, name: &str, fields: &[&str]) -> Vec<String> {
        events(&self.logged(), name, fields).into_iter().map(str::to_owned).collect()
    }

    /// Waits until the log has the event `name` with these fields; returns its first line.
    #[track_caller]
    pub fn wait_for_event(&self, name: &str, fields: &[&str]) -> String {
        self.wait_until(&format!("{name} {fields:?}"), || !self.events(name, fields).is_empty());
        self.events(name, fields).swap_remove(0)
    }

    /// The served serial; `None` if the response code is not NOERROR.
    #[track_caller]
    pub fn serial(&self, zone: &str) -> Option<u32> {
        let message = ask(self.address, zone, Rtype::SOA);
        if message.rcode() != Rcode::NOERROR {
            return None;
        }
        let soa = message.section(Section::Answer).find(|record| record.rtype == Rtype::SOA)?;
        let serial = soa.rdata.len().checked_sub(20).and_then(|at| soa.rdata[at..].first_chunk())?;
        Some(u32::from_be_bytes(*serial))
    }

    /// Waits until a zone is served with this serial.
    #[track_caller]
    pub fn wait_for(&self, zone: &str, serial: u32) {
        self.wait_until(&format!("{zone} {serial}"), || self.serial(zone) == Some(serial));
    }

    /// Waits until a condition holds.
    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + LIMIT;
        while !holds() {
            assert!(Instant::now() < end, "{what} does not come about: {}", self.logged());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Sends a query with RD over UDP, and repeats it if no response arrives.
#[track_caller]
pub fn ask(server: SocketAddr, name: &str, rtype: Rtype) -> Message {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a limit");
    let mut query = Vec::new();
    push_query(&name.parse().expect("a name"), rtype, 0x1234, 0, &mut query);
    edns::push_opt(1232, 0, edns::DO, &mut query);
    query[2] |= 1; // RD
    query[nonesuch_proto::message::HEADER - 1] = 1;
    let mut response = [0; 4096];
    for _ in 0..10 {
        socket.send_to(&query, server).expect("sent");
        if let Ok((length, _)) = socket.recv_from(&mut response) {
            return Message::parse(&response[..length]).expect("a message");
        }
    }
    panic!("{server} does not answer");
}
