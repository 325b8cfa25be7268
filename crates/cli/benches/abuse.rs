//! Floods and idle connections against the server, and their effect on other clients: `just
//! bench-abuse`.
//!
//! The server runs with one worker on CPU 0, and all generators run on CPU 1. Sources are addresses
//! of 127.0.0.0/8, which this configuration does not exempt. The rate of each flood is limited. The
//! output has the median, minimum and maximum of each figure over the rounds, and the required
//! bound of the median. The exit status is 1 if a median violates its bound.
//!
//! `--section reflected`, `connections` or `subdomains` measures only one part. Other options:
//! `--names`, `--runs`, `--seconds`, `--connections`.

#[allow(dead_code)] // each benchmark uses its own part
mod common;
mod connections;
mod networks;
#[allow(dead_code)]
mod servers;

use common::{ORIGIN, OURS, argument, prepare, queries, run, spread};
use connections::Holder;
use networks::{Flood, Networks};
use nonesuch_lab::load::{Latency, LoadOptions, LoadReport, QueryList, run as run_load};
use servers::{Server, sign_nsec5, start_and_read};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Source addresses of legitimate clients: 64 addresses, each in its own network.
const GOOD: &str = "127.2.0.0/16";
const GOOD_CLIENTS: usize = 64;
/// The spoofed source address of a reflected flood.
const VICTIM: &str = "127.1.7.7/32";
/// Permitted responses per second of one category to the victim.
const RATE: f64 = 200.0;
/// Permitted responses per second of all categories to the victim.
const CLIENT_RATE: f64 = 2000.0;
/// Queries per second of each flood.
const FLOOD: f64 = 20_000.0;
/// Queries per second of a flood of unknown names; far more than the server can generate denials
/// for.
const SUBDOMAINS: f64 = 5000.0;
/// Maximum memory of the server for one idle connection, in KiB.
const CONNECTION_KIB: f64 = 4.0;
const WARM_UP: Duration = Duration::from_millis(500);

struct Bench {
    dir: PathBuf,
    zone: PathBuf,
    runs: u64,
    seconds: f64,
    existing: Arc<QueryList>,
}

fn main() -> ExitCode {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let names = argument("--names", 20_000);
    let (zone, _) = prepare(dir.path(), names);
    let bench = Bench {
        dir: dir.path().to_owned(),
        zone,
        runs: argument("--runs", 5),
        seconds: argument("--seconds", 4) as f64,
        existing: queries(dir.path(), names, "existing", "0"),
    };
    println!("{}; {names} delegations, ECDSAP256SHA256, DO set", common::machine());
    println!("{} rounds of {} s: median (least-greatest)\n", bench.runs, bench.seconds);
    let section = std::env::args().skip_while(|word| word != "--section").nth(1);
    let wanted = |name: &str| section.as_deref().is_none_or(|section| section == name);
    let mut missed = 0;
    if wanted("reflected") {
        missed += bench.reflected();
    }
    if wanted("connections") {
        missed += bench.connections(argument("--connections", 5000) as usize);
    }
    if wanted("subdomains") {
        missed += bench.subdomains();
    }
    println!("{missed} figures miss their targets");
    ExitCode::from(u8::from(missed > 0))
}

/// A command restricted to CPU 0.
fn on_cpu_0(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(program);
    command
}

fn list(text: &str) -> Arc<QueryList> {
    Arc::new(QueryList::parse(Path::new("list"), text.as_bytes()).expect("a query"))
}

/// The queries of a load, and the rate in an open loop.
struct Load<'a> {
    queries: &'a Arc<QueryList>,
    sources: &'a str,
    sockets: usize,
    rate: Option<f64>,
    is_random: bool,
}

impl Bench {
    /// A zone signed with NSEC, for which the server generates nothing.
    fn signed(&self) -> PathBuf {
        let signed = self.dir.join("signed");
        let mut command = Command::new(OURS);
        command.args(["zone", "sign", "-o", ORIGIN, "--denial", "nsec", "--keys"]).arg(&self.dir);
        run(command.arg("-f").arg(&signed).arg(&self.zone));
        signed
    }

    /// Starts the server with limits that exempt no client. `zone` contains the lines of the zone's
    /// section.
    fn start(&self, name: &str, limits: &str, zone: &str) -> Server {
        let text = format!(
            "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\n\n[limits]\nexempt = []\n{limits}\n\n[zone.\"{ORIGIN}\"]\n\
             verify = \"structural\"\n{zone}\n"
        );
        let path = self.dir.join(format!("{name}.toml"));
        fs::write(&path, text).expect("a configuration");
        let mut command = on_cpu_0(OURS);
        start_and_read(command.args(["serve", "--config"]).arg(path))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Generates load from CPU 1. It leaves the CPU to other processes while it waits.
    fn load(&self, server: &Server, load: &Load<'_>) -> LoadReport {
        let options = LoadOptions {
            warm_up: WARM_UP,
            seconds: self.seconds,
            sockets: load.sockets,
            sources: Some(load.sources.parse().expect("a prefix")),
            // Twice the number of queries within the timeout, so that a server that drops queries
            // does not slow down the flood.
            outstanding: load
                .rate
                .map_or_else(|| 128.max(load.sockets), |rate| (rate as usize).max(64 * load.sockets)),
            rate: load.rate,
            random_prefix: load.is_random,
            may_poll: false,
            timeout: Duration::from_millis(500),
            cpus: Some(vec![1]),
            ..LoadOptions::new(server.address, Arc::clone(load.queries))
        };
        run_load(&options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Legitimate clients during a flood.
    fn beside(&self, server: &Server, good: &Load<'_>, flood: &Load<'_>) -> (LoadReport, LoadReport) {
        thread::scope(|scope| {
            let flood = scope.spawn(|| self.load(server, flood));
            (self.load(server, good), flood.join().expect("a load"))
        })
    }

    /// Legitimate clients: different names, far below every limit.
    fn good(&self, rate: Option<f64>) -> Load<'_> {
        Load { queries: &self.existing, sources: GOOD, sockets: GOOD_CLIENTS, rate, is_random: false }
    }

    /// A reflected flood. Queries with the victim's address ask for one name or for many names, and
    /// the victim gets no more responses than configured.
    fn reflected(&self) -> usize {
        let limits =
            format!("responses-per-second = {RATE}\nclient-responses-per-second = {CLIENT_RATE}\nslip = 2");
        let zone = format!("file = {:?}", self.signed());
        let server = self.start("reflected", &limits, &zone);
        let one = list("example. DNSKEY");
        let missing = list("example. A");
        let mut missed = 0;
        println!("reflected flood of {FLOOD:.0} queries/s, good clients with 6400/s");
        for (title, queries, is_random, limit) in [
            ("one question", &one, false, RATE),
            ("names that do not exist", &missing, true, RATE),
            ("many names", &self.existing, false, CLIENT_RATE),
        ] {
            let flood = Load { queries, sources: VICTIM, sockets: 8, rate: Some(FLOOD), is_random };
            let mut rows = Rows::default();
            for _ in 0..self.runs {
                let (good, flood) = self.beside(&server, &self.good(Some(6400.0)), &flood);
                // The flood uses up the burst before the measurement starts.
                rows.push(
                    "answers/s to the victim",
                    (flood.received - flood.truncated) as f64 / self.seconds,
                );
                rows.push("truncated/s to the victim", flood.truncated as f64 / self.seconds);
                rows.push("octets to the victim per octet of the flood", amplification(&flood));
                rows.push(
                    "answered of the good clients, %",
                    percent(good.received - good.truncated, good.sent),
                );
                rows.push_latency("p99 of the good clients, µs", good.latency_us);
            }
            let wanted = [
                // If the measurement starts between two intervals, there is one more response.
                ("answers/s to the victim", Wanted::AtMost(limit + 1.0 / self.seconds)),
                ("answered of the good clients, %", Wanted::AtLeast(95.0)),
            ];
            missed += rows.print(title, &wanted);
        }
        missed
    }

    /// Connections that stay open: half are idle, half send one octet per second.
    fn connections(&self, count: usize) -> usize {
        let limits = format!(
            "tcp-connections = {}\ntcp-connections-each = 128\n\
             tcp-first-message = \"10m\"",
            count + 100
        );
        let zone = format!("file = {:?}", self.signed());
        let server = self.start("connections", &limits, &zone);
        let good = self.good(Some(20_000.0));
        let mut rows = Rows::default();
        println!("{count} TCP connections, idle and slow, over 20,000 UDP queries/s");
        self.load(&server, &good);
        // Before the first round, because memory that one round uses must not reduce the difference
        // of the next.
        let memory = server.memory_mib();
        for _ in 0..self.runs {
            let alone = self.load(&server, &good);
            let holder = Holder::start(server.address, count);
            holder.wait_until_open(count * 95 / 100);
            let (made, begun) = (holder.made(), Instant::now());
            let held = self.load(&server, &good);
            let made = (holder.made() - made) as f64 / begun.elapsed().as_secs_f64();
            rows.push("connections open", holder.open() as f64);
            rows.push("connections made again a second", made);
            rows.push("memory without, MiB", memory);
            rows.push(
                "memory with them, KiB for each",
                (server.memory_mib() - memory) * 1024.0 / count as f64,
            );
            rows.push_latency("p99 without, µs", alone.latency_us);
            rows.push_latency("p99 with them, µs", held.latency_us);
            if let (Some(alone), Some(held)) = (alone.latency_us, held.latency_us) {
                rows.push("p50 with them, to that without", held.p50 / alone.p50);
                rows.push("p99 with them, to that without", held.p99 / alone.p99);
            }
            rows.push("answered with them, %", percent(held.received, held.sent));
            drop(holder);
        }
        let wanted = [
            ("connections open", Wanted::AtLeast(count as f64)),
            ("memory with them, KiB for each", Wanted::AtMost(CONNECTION_KIB)),
            // Two runs of the same load differ by up to a factor of 2 on a machine with other work.
            ("p50 with them, to that without", Wanted::AtMost(2.0)),
            ("p99 with them, to that without", Wanted::AtMost(2.0)),
            ("answered with them, %", Wanted::AtLeast(99.9)),
        ];
        rows.print("idle and slow connections", &wanted)
    }

    /// Random names below an existing name, for which the server must generate each denial.
    fn subdomains(&self) -> usize {
        let white_lies =
            format!("file = {:?}\nkeys = {:?}\ndenial = \"white-lies\"", self.signed(), self.dir);
        let (zone, vrf) = sign_nsec5(&self.dir.join("nsec5-p256"), &self.zone, "ecdsap256sha256", "p256");
        let nsec5 = format!("file = {zone:?}\nnsec5-keys = {vrf:?}");
        let unbounded = "online-share = 100\nonline-busy-share = 100";
        let mut missed = 0;
        println!(
            "{SUBDOMAINS:.0} unknown names/s in addition to clients that query as fast as they are answered"
        );
        for (name, zone) in [("white-lies", &white_lies), ("nsec5-p256", &nsec5)] {
            // The measurement without limits is for comparison and has no bounds.
            for (title, limits, kept) in [("default limits", "", Some(80.0)), ("no limits", unbounded, None)]
            {
                let server = self.start(&format!("{name}-{}", title.replace(' ', "-")), limits, zone);
                for networks in [1, 256, 1024] {
                    let from =
                        if networks == 1 { "one network".to_owned() } else { format!("{networks} networks") };
                    let title = format!("{name}, {title}, from {from}");
                    missed += self.subdomains_of(&server, &title, networks, kept);
                }
            }
        }
        missed
    }

    fn subdomains_of(&self, server: &Server, title: &str, networks: usize, kept: Option<f64>) -> usize {
        let good = self.good(None);
        let mut networks = Networks::open(server.address, networks);
        let mut rows = Rows::default();
        for _ in 0..self.runs {
            let alone = self.load(server, &good);
            let (held, flood) = thread::scope(|scope| {
                let flood = scope.spawn(|| networks.flood(ORIGIN, SUBDOMAINS, WARM_UP, self.seconds));
                (self.load(server, &good), flood.join().expect("a flood"))
            });
            let Flood { sent, received, truncated } = flood;
            rows.push("positive answers/s alone", alone.qps);
            rows.push("positive answers/s during the flood", held.qps);
            rows.push("kept, %", 100.0 * held.qps / alone.qps);
            rows.push("answered of the flood, %", percent(received, sent));
            rows.push("denials made/s", (received - truncated) as f64 / self.seconds);
            rows.push("truncated/s", truncated as f64 / self.seconds);
        }
        let wanted: Vec<_> = kept.map(|kept| ("kept, %", Wanted::AtLeast(kept))).into_iter().collect();
        rows.print(title, &wanted)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Octets of DNS messages received per octet sent.
fn amplification(report: &LoadReport) -> f64 {
    // Header, the name with a random label, type, class and OPT: 12, 9 or 22, 4 and 11 octets.
    let query = 45.0;
    report.response_octets_mean * report.received as f64 / (query * report.sent.max(1) as f64)
}

/// The bound of a median.
#[derive(Clone, Copy)]
enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

impl Wanted {
    fn is_met(self, median: f64) -> bool {
        match self {
            Self::AtMost(most) => median <= most,
            Self::AtLeast(least) => median >= least,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "at most {most:.1}"),
            Self::AtLeast(least) => write!(f, "at least {least:.1}"),
        }
    }
}

/// Figures by name, with one value for each round.
#[derive(Default)]
struct Rows {
    rows: Vec<(&'static str, Vec<f64>)>,
}

impl Rows {
    fn push(&mut self, name: &'static str, value: f64) {
        match self.rows.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.rows.push((name, vec![value])),
        }
    }

    fn push_latency(&mut self, name: &'static str, latency: Option<Latency>) {
        if let Some(latency) = latency {
            self.push(name, latency.p99);
        }
    }

    /// Prints the figures, and returns the number of figures that violate their bound.
    fn print(&self, title: &str, wanted: &[(&str, Wanted)]) -> usize {
        println!("  {title}");
        let mut missed = 0;
        for (name, values) in &self.rows {
            let (median, least, greatest) = spread(values);
            let mut line = format!("    {name:45} {median:10.1} ({least:.1}-{greatest:.1})");
            if let Some((_, wanted)) = wanted.iter().find(|(row, _)| row == name) {
                let is_met = wanted.is_met(median);
                missed += usize::from(!is_met);
                let _ = write!(line, "   {wanted}{}", if is_met { "" } else { ": missed" });
            }
            println!("{line}");
        }
        println!();
        missed
    }
}
