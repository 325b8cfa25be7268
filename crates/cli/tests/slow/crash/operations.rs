//! Operations during which the server is killed: it reads files again, or transfers a zone,
//! incrementally or completely.

use super::common::configured::{Configured, configure, plain_zone, write_beside};
use super::common::{done, generate_key, made, text};
use nonesuch_zone::{Contents, load};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of names in the transferred zones, large enough for a transfer of measurable duration.
const HOSTS: u32 = 2000;
/// One of this number of names changes with each version.
const TURNS: u32 = 4;
/// Number of uninterrupted runs to measure the duration of an operation.
const RUNS: u32 = 5;
/// Time limit for each of them.
const LIMIT: Duration = Duration::from_secs(20);

/// The operation during which the server is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Reload,
    Ixfr,
    Axfr,
}

impl Kind {
    /// The zones of the operation.
    pub(crate) const fn zones(self) -> &'static [&'static str] {
        match self {
            Self::Reload => &["a.example.", "b.example.", "c.example."],
            Self::Ixfr => &["steps.example."],
            Self::Axfr => &["whole.example."],
        }
    }
}

/// An operation, its newest version and its duration.
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
        // Without a journal, there are no incremental transfers.
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

    /// Writes the server's configuration. If the primary must not be reachable, the configuration
    /// names an address without a listener.
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

    /// Creates the next version, and puts it where the server finds it.
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

    /// Overwrites the files with text that is not a zone, so that the server can use only stored
    /// versions.
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

    /// Starts the operation. The server's response is not awaited while the returned value exists.
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

    /// The activities of the server: the phases of zones that are loaded and published, and
    /// transfers.
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

    /// Runs an operation to its end several times, and records the median duration.
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
        // Versions older than the previous one are not used any more.
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

/// A zone with `hosts` addresses, some of which change with each version.
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
