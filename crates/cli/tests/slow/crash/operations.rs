//! What a server does when it is killed: reads files again, or has a zone transferred, by steps or as a whole.

use super::common::configured::{Configured, configure, plain_zone, write_beside};
use super::common::{done, generate_key, made, text};
use nonesuch_zone::{Contents, load};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Names in the zones that are transferred: enough that a transfer takes its time.
const HOSTS: u32 = 2000;
/// Of them, one in so many changes with each version.
const TURNS: u32 = 4;
/// Uninterrupted runs that tell how long an operation takes.
const RUNS: u32 = 5;
/// Longest wait for the end of one of them.
const LIMIT: Duration = Duration::from_secs(20);

/// What the server is killed in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Reload,
    Ixfr,
    Axfr,
}

impl Kind {
    /// The zones that it is about.
    pub(crate) const fn zones(self) -> &'static [&'static str] {
        match self {
            Self::Reload => &["a.example.", "b.example.", "c.example."],
            Self::Ixfr => &["steps.example."],
            Self::Axfr => &["whole.example."],
        }
    }
}

/// An operation, its newest version, and how long it takes.
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) serial: u32,
    pub(crate) span: Duration,
}

/// The server that is killed, its primary, and all versions of their zones.
pub(crate) struct Scene {
    dir: PathBuf,
    theirs: PathBuf,
    versions: PathBuf,
    primary: Configured,
}

impl Scene {
    /// Starts the primary; all zones have version 1.
    pub(crate) fn new(home: &Path) -> Self {
        let [dir, theirs, versions] = ["server", "primary", "versions"].map(|name| made(home, name));
        generate_key(&theirs.join("keys"), "steps.example.", "ecdsap256sha256", &["--csk"]);
        let zone = |name: &str, more: &str| {
            format!("[zone.\"{name}\"]\nfile = \"{name}\"\ntransfer = [\"127.0.0.1\"]\n{more}")
        };
        // Without a journal there are no steps.
        let zones = zone("steps.example.", "") + &zone("whole.example.", "journal-size = \"0B\"\n");
        for kind in [Kind::Ixfr, Kind::Axfr] {
            write_version(kind, &versions, &theirs, 1);
            put(kind, &versions, &theirs, 1);
        }
        write_version(Kind::Reload, &versions, &theirs, 1);
        put(Kind::Reload, &versions, &dir, 1);
        let primary = Configured::start(&configure(&theirs, &zones));
        Self { dir, theirs, versions, primary }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.join("state/zones")
    }

    /// Writes the server's configuration. Where its primary is not to be reached, nobody listens at the address that is named.
    pub(crate) fn configure(&self, is_reachable: bool) -> PathBuf {
        let port = self.primary.address.port();
        let host = if is_reachable { "127.0.0.1" } else { "127.0.0.2" };
        let zone =
            |name: &&str, source: &str| format!("[zone.\"{name}\"]\n{source}transfer = [\"127.0.0.1\"]\n");
        let files = Kind::Reload.zones().iter().map(|name| zone(name, &format!("file = \"{name}\"\n")));
        let transferred = Kind::Ixfr.zones().iter().chain(Kind::Axfr.zones());
        let transferred = transferred.map(|name| zone(name, &format!("primaries = [\"{host}:{port}\"]\n")));
        configure(&self.dir, &files.chain(transferred).collect::<String>())
    }

    /// Makes the next version, and puts it where the server finds it.
    pub(crate) fn make_next(&self, operation: &mut Operation) {
        operation.serial += 1;
        write_version(operation.kind, &self.versions, &self.theirs, operation.serial);
        self.put(operation);
    }

    /// Puts the newest version where the server finds it.
    pub(crate) fn put(&self, operation: &Operation) {
        let to = if operation.kind == Kind::Reload { &self.dir } else { &self.theirs };
        put(operation.kind, &self.versions, to, operation.serial);
        if operation.kind != Kind::Reload {
            self.primary.ctl(&["reload"]).expect_done("reload of the primary");
        }
    }

    /// As an operator might leave them: files that are no zones, so that only what was kept counts.
    pub(crate) fn spoil_files(&self) {
        for name in Kind::Reload.zones() {
            write_beside(&self.dir.join(name), "@ SOA this is no zone\n");
        }
    }

    /// A version as it was written.
    #[track_caller]
    pub(crate) fn version(&self, zone: &str, serial: u32) -> Contents {
        load(&version(&self.versions, zone, serial), None).expect("a zone").contents
    }

    /// Has the server begin. What it answers is not waited for, as long as the value is kept.
    pub(crate) fn begin(&self, kind: Kind) -> UnixStream {
        let request = match kind {
            Kind::Reload => json!({ "command": "reload" }),
            Kind::Ixfr | Kind::Axfr => json!({ "command": "zone-refresh", "zone": kind.zones()[0] }),
        };
        self.tell(&request)
    }

    fn tell(&self, request: &Value) -> UnixStream {
        let mut stream = UnixStream::connect(self.dir.join("control")).expect("a control socket");
        stream.write_all(format!("{request}\n").as_bytes()).expect("sent");
        stream
    }

    /// What goes on in the server: the phases of zones that are loaded and published, and transfers.
    pub(crate) fn under_way(&self) -> Vec<String> {
        let mut line = String::new();
        BufReader::new(self.tell(&json!({ "command": "status" }))).read_line(&mut line).expect("an answer");
        let status: Value = serde_json::from_str(&line).expect("JSON");
        let list = |key: &str| status["done"][key].as_array().cloned().unwrap_or_default();
        let phases = list("activities").into_iter().filter(|activity| activity["kind"] != "reload");
        let phases: Vec<String> =
            phases.filter_map(|activity| Some(activity["phase"].as_str()?.to_owned())).collect();
        let is_receiving = phases.is_empty() && !list("transfers_in").is_empty();
        phases.into_iter().chain(is_receiving.then(|| "receive".to_owned())).collect()
    }

    /// Runs an operation a few times to its end, and notes how long it takes, in the median.
    pub(crate) fn measure(&self, server: &Configured, operation: &mut Operation) {
        let mut spans = Vec::new();
        for _ in 0..RUNS {
            self.make_next(operation);
            let (begun, zones) = (Instant::now(), operation.kind.zones());
            let _asked = self.begin(operation.kind);
            while zones.iter().any(|zone| server.serial(zone) != Some(operation.serial)) {
                assert!(begun.elapsed() < LIMIT, "{zones:?}: {}", server.logged());
                std::thread::sleep(Duration::from_micros(300));
            }
            spans.push(begun.elapsed());
        }
        spans.sort_unstable();
        operation.span = spans[spans.len() / 2];
    }
}

fn version(versions: &Path, zone: &str, serial: u32) -> PathBuf {
    versions.join(format!("{zone}{serial}"))
}

fn write_version(kind: Kind, versions: &Path, theirs: &Path, serial: u32) {
    for zone in kind.zones() {
        let file = version(versions, zone, serial);
        match kind {
            Kind::Reload => fs::write(&file, large(zone, serial, 500)).expect("written"),
            Kind::Axfr => fs::write(&file, large(zone, serial, HOSTS * 5)).expect("written"),
            Kind::Ixfr => sign_version(zone, (versions, theirs), serial, &file),
        }
        // Two versions back nobody looks.
        if let Some(old) = serial.checked_sub(3) {
            let _ = fs::remove_file(version(versions, zone, old));
        }
    }
}

fn sign_version(zone: &str, (versions, theirs): (&Path, &Path), serial: u32, file: &Path) {
    let (plain, keys) = (theirs.join("plain"), theirs.join("keys"));
    let previous = version(versions, zone, serial - 1);
    fs::write(&plain, large(zone, serial, HOSTS)).expect("written");
    let fixed = ["zone", "sign", text(&plain), "-o", zone, "--keys", text(&keys), "-f", text(file)];
    let more = match serial {
        1 => ["--denial", "nsec"].to_vec(),
        _ => ["--previous", text(&previous), "--serial", "keep"].to_vec(),
    };
    done([&fixed[..], &more].concat());
}

/// A zone with so many addresses, some of which change with each version.
pub(crate) fn large(zone: &str, serial: u32, hosts: u32) -> String {
    let mut text = plain_zone(zone, serial);
    for host in 0..hosts {
        let turn = if host % TURNS == serial % TURNS { serial } else { host };
        text.push_str(&format!("h{host} 60 A 192.0.2.{}\n", turn % 250));
    }
    text
}

fn put(kind: Kind, versions: &Path, to: &Path, serial: u32) {
    for zone in kind.zones() {
        let beside = to.join(format!("{zone}beside"));
        fs::copy(version(versions, zone, serial), &beside).expect("copied");
        fs::rename(&beside, to.join(zone)).expect("renamed");
    }
}
