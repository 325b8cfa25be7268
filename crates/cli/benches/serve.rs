//! Comparison of the server with the installed peers and the echo floor on a zone like that of a
//! TLD, alternately: `just bench-serve`.
//!
//! Every server runs with one worker on CPU 0, the load generator with one thread on CPU 1. CPU
//! time is that of the server's processes with all threads. Each round loads every server once, so
//! that a change of the machine's speed affects all of them, and ratios are computed for each
//! round. The servers are the rows of `servers`.
//!
//! `--section presigned`, `online`, `latency`, `workers` or `loading` measures only one part. The
//! last two do not pin CPUs. Other options: `--names`, `--runs`, `--seconds`, `--sockets`.

mod common;
mod servers;

use common::{MODES, Mode, ORIGIN, OURS, argument, prepare, queries, ratio, run, spread};
use nonesuch_lab::load::{LoadOptions, LoadReport, QueryList, run as run_load};
use servers::{Cpus, ONLINE, PRESIGNED, Server, WORKERS, start_all, start_echo};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Duration of each load before the measurement.
const WARM_UP: Duration = Duration::from_millis(200);
/// New names with the same closest encloser and wildcard: the apex and the names directly below it.
const FRESH: &str = "example. A";
/// Rate of online denials during the measurement of the latency of other queries, in queries per
/// second.
const BESIDE: f64 = 1000.0;

/// The inputs of every section.
struct Bench {
    dir: PathBuf,
    zone: PathBuf,
    keys: [String; 2],
    runs: u64,
    seconds: f64,
    sockets: usize,
    existing: Arc<QueryList>,
    denied: Arc<QueryList>,
    fresh: Arc<QueryList>,
    /// Number of loads so far.
    loads: AtomicU64,
}

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let names = argument("--names", 100_000);
    let (zone, keys) = prepare(dir.path(), names);
    let fresh = QueryList::parse(Path::new("fresh"), FRESH.as_bytes()).expect("a query");
    let bench = Bench {
        dir: dir.path().to_owned(),
        zone,
        keys,
        runs: argument("--runs", 5),
        seconds: argument("--seconds", 3) as f64,
        sockets: argument("--sockets", 1) as usize,
        existing: queries(dir.path(), names, "existing", "0"),
        denied: queries(dir.path(), names, "denied", "100"),
        fresh: Arc::new(fresh),
        loads: AtomicU64::new(1),
    };
    println!("{}; {names} delegations, ECDSAP256SHA256, DO set", common::machine());
    println!(
        "{} rounds of {} s; ratios of CPU a query: median (least-greatest) of the rounds\n",
        bench.runs, bench.seconds
    );
    let section = std::env::args().skip_while(|word| word != "--section").nth(1);
    let wanted = |name: &str| section.as_deref().is_none_or(|section| section == name);
    if wanted("presigned") {
        bench.presigned();
    }
    if wanted("online") {
        bench.online();
    }
    if wanted("latency") {
        bench.latency();
    }
    if wanted("workers") {
        bench.workers();
    }
    if wanted("loading") {
        bench.loading();
    }
}

/// The figures of a server, one value for each round.
#[derive(Default)]
struct Figures {
    cpu: Vec<f64>,
    user: Vec<f64>,
    system: Vec<f64>,
    rate: Vec<f64>,
    octets: f64,
    lost: u64,
}

impl Bench {
    fn keys(&self) -> (&Path, &[String; 2]) {
        (&self.dir, &self.keys)
    }

    fn sign(&self, mode: Mode) -> PathBuf {
        let signed = self.dir.join(format!("{}.signed", mode.name()));
        let mut command = Command::new(OURS);
        command.args(["zone", "sign", "-o", ORIGIN, "--denial", mode.name(), "--keys"]).arg(&self.dir);
        run(command.arg("-f").arg(&signed).arg(&self.zone));
        signed
    }

    /// A signed zone, every mode, existing names and names that do not exist.
    fn presigned(&self) {
        for mode in MODES {
            let servers = start_all(PRESIGNED, &self.dir, &self.sign(mode), self.keys(), Cpus::First);
            for (kind, list) in [("existing", &self.existing), ("denied", &self.denied)] {
                let options = self.options(list);
                // The echo floor uses responses with the same size as those of this server.
                let ours = servers.first().map(|ours| self.load(ours, &options, 0.2));
                let echo = ours.and_then(|report| start_echo(report.response_octets_mean).ok());
                let all: Vec<&Server> = servers.iter().chain(&echo).collect();
                let figures = self.race(&all, &options);
                heading(&format!("{}, {kind}", mode.name()));
                table(&all, &figures);
                verdict(&all, &figures);
            }
        }
    }

    /// Online denials of names that were never queried before.
    fn online(&self) {
        let servers = start_all(ONLINE, &self.dir, &self.zone, self.keys(), Cpus::First);
        let all: Vec<&Server> = servers.iter().collect();
        let options = LoadOptions { random_prefix: true, ..self.options(&self.fresh) };
        let figures = self.race(&all, &options);
        heading("denied online, every name new");
        table(&all, &figures);
        for (ours, theirs) in [
            ("nonesuch white-lies", "powerdns narrow"),
            ("nonesuch compact", "coredns black lies"),
            ("nonesuch compact", "knot onlinesign"),
            ("nonesuch nsec5-p256", "powerdns narrow"),
        ] {
            let of = |name: &str| Some(&figures[all.iter().position(|server| server.name == name)?].cpu);
            if let (Some(left), Some(right)) = (of(ours), of(theirs)) {
                println!("  {ours} / {theirs}: {}", ratio(left, right));
            }
        }
        println!();
    }

    /// The cost of a second worker.
    fn workers(&self) {
        let servers = start_all(WORKERS, &self.dir, &self.sign(Mode::Nsec3), self.keys(), Cpus::All);
        let all: Vec<&Server> = servers.iter().collect();
        for (kind, list) in [("existing", &self.existing), ("denied", &self.denied)] {
            let options = LoadOptions { cpus: None, sockets: 16, outstanding: 512, ..self.options(list) };
            let figures = self.race(&all, &options);
            heading(&format!("nsec3, {kind}, on all CPUs"));
            table(&all, &figures);
            if let [one, two] = figures.as_slice() {
                println!("  two workers / one: {}\n", ratio(&two.cpu, &one.cpu));
            }
        }
    }

    /// Time of a server from its start to its first response.
    fn loading(&self) {
        for mode in MODES {
            let zone = self.sign(mode);
            let mut figures = vec![(Vec::new(), Vec::new()); PRESIGNED.len()];
            for round in 0..self.runs {
                for (row, (wall, cpu)) in PRESIGNED.iter().zip(&mut figures) {
                    let folder = self.dir.join(format!("loading-{round}"));
                    let begun = Instant::now();
                    let servers =
                        start_all(std::slice::from_ref(row), &folder, &zone, self.keys(), Cpus::All);
                    let Some(server) = servers.first() else { continue };
                    wall.push(begun.elapsed().as_secs_f64());
                    let (user, system) = server.cpu();
                    cpu.push((user + system) / 1e6);
                }
            }
            println!(
                "{:32} {:>8} {:>8}   ours / theirs: seconds, CPU",
                format!("{}, loading", mode.name()),
                "seconds",
                "CPU s"
            );
            for (row, (wall, cpu)) in PRESIGNED.iter().zip(&figures).filter(|(_, (wall, _))| !wall.is_empty())
            {
                let (our_wall, our_cpu) = &figures[0];
                let compared = format!("{}  {}", ratio(our_wall, wall), ratio(our_cpu, cpu));
                println!("  {:30} {:8.3} {:8.3}   {compared}", row.name, spread(wall).0, spread(cpu).0);
            }
            println!();
        }
    }

    /// Latency at half of the highest rate, measured from the scheduled time of each query: alone,
    /// and during online denials.
    fn latency(&self) {
        let signed = self.sign(Mode::Nsec3);
        heading_of_latency();
        for row in PRESIGNED {
            let servers = start_all(std::slice::from_ref(row), &self.dir, &signed, self.keys(), Cpus::First);
            self.latency_of(servers.first(), &format!("presigned, {}", row.name), false);
        }
        for row in ONLINE {
            // The presigned zone: its records are served as they are, and only denials are
            // generated.
            let zone = if row.name.contains("nsec5") || !row.name.starts_with("nonesuch") {
                &self.zone
            } else {
                &signed
            };
            let servers = start_all(
                std::slice::from_ref(row),
                &self.dir.join("latency"),
                zone,
                self.keys(),
                Cpus::First,
            );
            self.latency_of(servers.first(), &format!("{BESIDE} denials/s in addition, {}", row.name), true);
        }
    }

    fn latency_of(&self, server: Option<&Server>, title: &str, online: bool) {
        let Some(server) = server else { return };
        let highest: Vec<f64> =
            (0..3).map(|_| self.load(server, &self.options(&self.existing), self.seconds).qps).collect();
        let highest = spread(&highest).0;
        // A slow server, too, has enough time for the denials.
        let rate = highest / 2.0;
        let open = LoadOptions {
            rate: Some(rate),
            outstanding: 16_384,
            seconds: self.seconds,
            ..self.options(&self.existing)
        };
        let beside = LoadOptions {
            rate: Some(BESIDE),
            random_prefix: true,
            outstanding: 4096,
            // It shares the CPU with the measuring thread.
            may_poll: false,
            ..self.options(&self.fresh)
        };
        for _ in 0..self.runs {
            let (report, made) = std::thread::scope(|scope| {
                let made = online.then(|| scope.spawn(|| self.load(server, &beside, self.seconds)));
                let report = self.load(server, &open, self.seconds);
                (report, made.map(|made| made.join().expect("a load")))
            });
            print_latency(title, highest, &report, made.as_ref());
        }
    }

    fn options(&self, list: &Arc<QueryList>) -> LoadOptions {
        LoadOptions {
            warm_up: WARM_UP,
            dnssec_ok: true,
            sockets: self.sockets,
            outstanding: 128.max(8 * self.sockets),
            cpus: Some(vec![1]),
            // Each server replaces the address.
            ..LoadOptions::new(([127, 0, 0, 1], 0).into(), Arc::clone(list))
        }
    }

    fn load(&self, server: &Server, options: &LoadOptions, seconds: f64) -> LoadReport {
        // A name from an earlier load would not be new, so each load has its own seed.
        let seed = self.loads.fetch_add(1, Relaxed);
        let options = LoadOptions { server: server.address, seconds, seed, ..options.clone() };
        run_load(&options).unwrap_or_else(|error| panic!("{}: {error}", server.name))
    }

    /// Loads all servers in turn.
    fn race(&self, servers: &[&Server], options: &LoadOptions) -> Vec<Figures> {
        let mut figures: Vec<Figures> = servers.iter().map(|_| Figures::default()).collect();
        for _ in 0..self.runs {
            for (server, figures) in servers.iter().zip(&mut figures) {
                self.load(server, options, 0.1);
                // No other load runs between these two readings.
                let before = server.cpu();
                let report = self.load(
                    server,
                    &LoadOptions { warm_up: Duration::ZERO, ..options.clone() },
                    self.seconds,
                );
                figures.push(before, server.cpu(), &report);
            }
        }
        figures
    }
}

impl Figures {
    fn push(&mut self, before: (f64, f64), after: (f64, f64), report: &LoadReport) {
        let queries = report.received.max(1) as f64;
        let (user, system) = ((after.0 - before.0) / queries, (after.1 - before.1) / queries);
        self.user.push(user);
        self.system.push(system);
        self.cpu.push(user + system);
        self.rate.push(report.qps);
        self.octets = report.response_octets_mean;
        self.lost += report.lost;
    }
}

fn heading(title: &str) {
    println!(
        "{title:32} {:>8} {:>6} {:>6} {:>9} {:>5} {:>7} {:>8}   ours / theirs",
        "µs/query", "user", "system", "queries/s", "busy", "octets", "PSS MiB"
    );
}

fn table(servers: &[&Server], figures: &[Figures]) {
    let Some(ours) = figures.first() else { return };
    for (place, (server, figure)) in servers.iter().zip(figures).enumerate() {
        let is_ours = servers[0].name.starts_with("nonesuch");
        let compared = if place > 0 && is_ours { ratio(&ours.cpu, &figure.cpu) } else { String::new() };
        let busy: Vec<f64> =
            figure.cpu.iter().zip(&figure.rate).map(|(cpu, rate)| cpu * rate / 1e6).collect();
        let lost = if figure.lost == 0 { String::new() } else { format!("   {} lost", figure.lost) };
        println!(
            "  {:30} {:8.2} {:6.2} {:6.2} {:9.0} {:5.2} {:7.1} {:8.1}   {compared}{lost}",
            server.name,
            spread(&figure.cpu).0,
            spread(&figure.user).0,
            spread(&figure.system).0,
            spread(&figure.rate).0,
            spread(&busy).0,
            figure.octets,
            server.memory_mib()
        );
    }
}

/// This server compared with the faster of Knot and NSD in each round, and with the echo floor.
fn verdict(servers: &[&Server], figures: &[Figures]) {
    let of = |name: &str| {
        servers.iter().zip(figures).find(|(server, _)| server.name == name).map(|(_, figure)| &figure.cpu)
    };
    let Some(ours) = of("nonesuch") else { return };
    let mut parts = Vec::new();
    let peers: Vec<&Vec<f64>> = ["knot", "nsd"].into_iter().filter_map(of).collect();
    if let [first, rest @ ..] = peers.as_slice() {
        let better = |round: usize| rest.iter().fold(first[round], |least, other| least.min(other[round]));
        let better: Vec<f64> = (0..first.len()).map(better).collect();
        parts.push(format!("{} of the better of Knot and NSD", ratio(ours, &better)));
    }
    if let Some(echo) = of("echo") {
        parts.push(format!("{} of the echo floor", ratio(ours, echo)));
    }
    println!("  ours: {}\n", parts.join(", "));
}

fn heading_of_latency() {
    println!(
        "{:56} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6}",
        "latency from the time at which a query was due, µs",
        "highest/s",
        "sent/s",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "lost"
    );
}

fn print_latency(title: &str, highest: f64, report: &LoadReport, made: Option<&LoadReport>) {
    let Some(latency) = report.latency_us else { return };
    let beside = made.map_or_else(String::new, |made| {
        let p99 = made.latency_us.map_or(0.0, |latency| latency.p99);
        format!("   denials: {:.0}/s, p99 {p99:.0}", made.qps)
    });
    println!(
        "  {title:54} {highest:9.0} {:9.0} {:7.0} {:7.0} {:7.0} {:7.0} {:7.0} {:6}{beside}",
        report.qps,
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.max,
        report.lost + report.unsent
    );
}
