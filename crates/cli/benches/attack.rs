//! The cost of hostile zones for the resolver and for Unbound, and the latency of other clients during an
//! attack: `just bench-attack`, as root.
//!
//! Columns (`--column NAME` selects one; `hostile::COLUMNS` has the zones):
//! - `keytrap-*`: an answer with 24 RRSIG records, which have the tag of 12 keys (CVE-2023-50387).
//! - `signatures-*`: an answer with 24 RRSIG records of one key.
//! - `ds`: 32 DS records and 13 DNSKEY records with one tag.
//! - `encloser-*`: a deep name in a zone with expensive NSEC3 hashes (CVE-2023-50868).
//! - `nsec5`: a deep name in a zone with NSEC5; without Unbound.
//!
//! CPU time of single queries: each query starts when the resolver is idle, so signatures of several queries
//! never share a batch. "cache hit" is a query for a cached name, for comparison; "new zone" the first query
//! for a zone, "new name" a query for a new name in a known zone, "repeated" the same query again. "greatest"
//! is the greatest time of a query in a round.
//!
//! Latency: 1,000 queries/s for cached names from four clients, alone, during an attack with a fixed rate
//! (`--rate`), and during an attack with 100 outstanding queries. Attackers use other source addresses.
//!
//! Other options: `--runs`, `--seconds` of each load, `--zones` for single queries, `--json FILE`. The exit
//! status does not depend on the figures.

#[allow(dead_code)] // each benchmark uses its own part
mod common;
mod hostile;
#[allow(dead_code)] // each benchmark uses its own part
mod resolvers;
#[allow(dead_code)] // each benchmark uses its own part
mod servers;

use common::{argument, machine, ratio, spread};
use hostile::{COLUMNS, Column, GOOD_NAMES, Probe};
use nonesuch_lab::load::{Latency, LoadOptions, LoadReport, QueryList, run as run_load};
use nonesuch_net::pin_current_thread;
use resolvers::{OUTSTANDING, RESOLVERS, ResolverOptions, Running, Tree};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// This project's resolver, and Unbound.
const MEASURED: usize = 2;
/// Greatest ratio of the CPU time to that of Unbound.
const RATIO: f64 = 0.5;
/// Greatest CPU time of a query in µs.
const GREATEST: f64 = 3_000.0;
/// Greatest p99 of the other clients in µs.
const P99: f64 = 5_000.0;
/// Queries per second of the other clients.
const GOOD_RATE: f64 = 1_000.0;
const WARM_UP: Duration = Duration::from_millis(500);
const OPTIONS: ResolverOptions = ResolverOptions { validates: true, aggressive: false, cache_mib: 64 };

const COSTS: [&str; 3] = ["new zone", "new name", "repeated"];
const LOADS: [&str; 3] = ["alone", "fixed rate", "saturated"];

/// The figures of a resolver by name, with one value for each round, and the response codes.
#[derive(Default)]
struct Row {
    figures: BTreeMap<String, Vec<f64>>,
    rcodes: BTreeMap<String, u64>,
    error: Option<String>,
}

struct Bench {
    runs: u64,
    seconds: f64,
    zones: u64,
    rate: f64,
    good: Arc<QueryList>,
}

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let good = (0..GOOD_NAMES).map(|number| format!("host{number}.good.example. A\n"));
    let bench = Bench {
        runs: argument("--runs", 5),
        seconds: argument("--seconds", 3.0),
        zones: argument("--zones", 100),
        rate: argument("--rate", 200.0),
        good: list(good),
    };
    let (wanted, file) = (argument("--column", String::new()), argument("--json", PathBuf::new()));
    println!("{}; {}; {} rounds", machine(), unbound_version(), bench.runs);
    println!("median (least-greatest) of the rounds; ratios: nonesuch / unbound\n");
    pin_current_thread(1).expect("two CPUs");
    let mut results = Vec::new();
    for column in COLUMNS.iter().filter(|column| wanted.is_empty() || column.name == wanted) {
        let rows = bench.measure(column, &dir.path().join(column.name));
        print_costs(column, &rows);
        print_latencies(&rows, bench.rate);
        results.push(json!({ "column": column.name, "resolvers": rows.map(|row| row.json()) }));
    }
    if !file.as_os_str().is_empty() {
        let aims = json!({ "ratio": RATIO, "greatest_us": GREATEST, "p99_us": P99 });
        let all = json!({ "machine": machine(), "unbound": unbound_version(), "rate": bench.rate, "aims": aims, "columns": results });
        fs::write(&file, format!("{all:#}\n")).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The version of Unbound, and that of its Debian package.
fn unbound_version() -> String {
    let first = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
    };
    let version = first("unbound", &["-V"]).unwrap_or_else(|| "not installed".to_owned());
    let package = first("dpkg-query", &["-W", "-f", "${Version}\n", "unbound"]);
    let package = package.map(|package| format!(", Debian package {package}")).unwrap_or_default();
    format!("unbound: {version}{package}")
}

fn list(names: impl Iterator<Item = String>) -> Arc<QueryList> {
    Arc::new(QueryList::parse(Path::new("queries"), names.collect::<String>().as_bytes()).expect("queries"))
}

impl Bench {
    fn measure(&self, column: &Column, dir: &Path) -> [Row; MEASURED] {
        column.write(dir);
        let tree = Tree::start_servers(dir, |_| true);
        let mut rows: [Row; MEASURED] = Default::default();
        for _ in 0..self.runs {
            for (resolver, row) in RESOLVERS.iter().zip(&mut rows) {
                if resolver.is_peer() && !column.is_known_to_peers() {
                    continue;
                }
                match Running::start(resolver, &tree, OPTIONS) {
                    Ok(running) => self.round(column, &running, resolver.is_peer(), row),
                    Err(error) => row.error = Some(error),
                }
            }
        }
        rows
    }

    fn round(&self, column: &Column, running: &Running, is_peer: bool, row: &mut Row) {
        running.ask_all(&self.good, GOOD_NAMES, OUTSTANDING);
        self.measure_costs(column, running, is_peer, row);
        row.push_load(LOADS[0], &self.load_good(running));
        let fixed = (self.rate * (self.seconds + WARM_UP.as_secs_f64())).ceil() as u64;
        // The rest of the new zones, if the attack needs them, or as many names as no resolver answers.
        let rest = column.zones.saturating_sub(self.zones + fixed).max(1);
        let many = if column.needs_new_zones() { rest } else { 100_000 };
        let attacks = [(LOADS[1], 0, fixed, Some(self.rate)), (LOADS[2], fixed, many, None)];
        for (name, start, count, rate) in attacks {
            let names = (start..start + count).map(|number| self.hostile_name(column, number));
            let hostile = list(names.map(|name| name + " A\n"));
            let (good, hostile) = thread::scope(|scope| {
                let attack = scope.spawn(|| self.load_hostile(running, &hostile, rate));
                (self.load_good(running), attack.join().expect("a load"))
            });
            row.push_load(name, &good);
            row.push(format!("{name} hostile/s"), hostile.qps);
            row.push(format!("{name} attack s"), hostile.seconds);
        }
    }

    /// A name that no query had before: those of single queries have the numbers 0 and 1.
    fn hostile_name(&self, column: &Column, number: u64) -> String {
        let zones = self.zones.min(column.zones);
        let zone = if column.needs_new_zones() { zones + number } else { number % zones };
        column.question(zone % column.zones, number + 2)
    }

    /// CPU time of single queries.
    fn measure_costs(&self, column: &Column, running: &Running, is_peer: bool, row: &mut Row) {
        let mut probe = Probe::new(running);
        let zones = self.zones.min(column.zones);
        let hits = (0..zones).map(|number| probe.ask(&format!("host{number}.good.example.")));
        row.push("cache hit".to_owned(), hits.sum::<f64>() / zones as f64);
        probe.rcodes.clear();
        let is_single = !(is_peer && column.is_interrupted_by_peers());
        let mut greatest: f64 = 0.0;
        // The numbers of the names of each kind of query.
        for (cost, number) in COSTS.into_iter().zip([0, 1, 1]) {
            let names: Vec<String> = (0..zones).map(|zone| column.question(zone, number)).collect();
            let times: Vec<f64> = match is_single {
                true => names.iter().map(|name| probe.ask(name)).collect(),
                false => vec![probe.ask_at_once(&names)],
            };
            row.push(cost.to_owned(), times.iter().sum::<f64>() / times.len() as f64);
            greatest = times.into_iter().fold(greatest, f64::max);
        }
        if is_single {
            row.push("greatest".to_owned(), greatest);
        }
        for (rcode, count) in probe.rcodes {
            *row.rcodes.entry(rcode).or_default() += count;
        }
    }

    /// The other clients.
    fn load_good(&self, running: &Running) -> LoadReport {
        let options = self.options(running, &self.good, "127.2.0.0/24");
        run_load(&LoadOptions { rate: Some(GOOD_RATE), sockets: 4, outstanding: 4_000, ..options })
            .expect("a load")
    }

    /// The attackers: at a rate, or with as many queries as are answered.
    fn load_hostile(&self, running: &Running, queries: &Arc<QueryList>, rate: Option<f64>) -> LoadReport {
        let options = self.options(running, queries, "127.1.7.0/24");
        let outstanding = if rate.is_some() { 4_000 } else { OUTSTANDING as usize };
        // The attack begins before the latency counts, and no name is repeated, which would be cheap.
        let (warm_up, seconds) = (Duration::ZERO, self.seconds + WARM_UP.as_secs_f64());
        let limit = Some(queries.len() as u64);
        run_load(&LoadOptions { rate, warm_up, seconds, limit, sockets: 4, outstanding, ..options })
            .expect("a load")
    }

    fn options(&self, running: &Running, queries: &Arc<QueryList>, sources: &str) -> LoadOptions {
        LoadOptions {
            warm_up: WARM_UP,
            seconds: self.seconds,
            sources: Some(sources.parse().expect("a prefix")),
            timeout: Duration::from_secs(2),
            may_poll: false,
            cpus: Some(vec![1]),
            ..LoadOptions::new(running.address(), Arc::clone(queries))
        }
    }
}

impl Row {
    fn push(&mut self, name: String, value: f64) {
        self.figures.entry(name).or_default().push(value);
    }

    fn push_load(&mut self, name: &str, report: &LoadReport) {
        // Lost queries have no latency.
        let lost = 100.0 * (report.lost + report.late) as f64 / report.sent.max(1) as f64;
        self.push(format!("{name} lost %"), lost);
        if let Some(Latency { p50, p99, .. }) = report.latency_us {
            self.push(format!("{name} p50"), p50);
            self.push(format!("{name} p99"), p99);
        }
    }

    fn values(&self, name: &str) -> &[f64] {
        self.figures.get(name).map_or(&[], Vec::as_slice)
    }

    /// Median and range of a figure.
    fn text(&self, name: &str) -> String {
        if self.values(name).is_empty() {
            return "-".to_owned();
        }
        let (median, least, greatest) = spread(self.values(name));
        format!("{median:.0} ({least:.0}-{greatest:.0})")
    }

    fn json(self) -> Value {
        let figure = |(name, values): (String, Vec<f64>)| {
            let (median, least, greatest) = spread(&values);
            (name, json!({ "median": median, "least": least, "greatest": greatest, "rounds": values }))
        };
        let figures: serde_json::Map<String, Value> = self.figures.into_iter().map(figure).collect();
        json!({ "figures": figures, "rcodes": self.rcodes, "error": self.error })
    }
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn print_costs(column: &Column, rows: &[Row; MEASURED]) {
    println!("{}: {}; CPU µs of a query", column.name, column.title);
    let names = ["cache hit"].into_iter().chain(COSTS).chain(["greatest"]);
    let head = names.clone().fold(String::new(), |text, name| text + &format!(" {name:>22}"));
    println!("  {:12}{head}   responses", "");
    for (resolver, row) in RESOLVERS.iter().zip(rows).filter(|(_, row)| !row.rcodes.is_empty()) {
        let figures =
            names.clone().fold(String::new(), |text, name| text + &format!(" {:>22}", row.text(name)));
        let rcodes =
            row.rcodes.iter().fold(String::new(), |text, (code, count)| text + &format!(" {count} {code}"));
        println!("  {:12}{figures}  {rcodes}", resolver.name);
    }
    for (resolver, row) in RESOLVERS.iter().zip(rows) {
        row.error.iter().for_each(|error| println!("  left out: {}: {error}", resolver.name));
    }
    let [ours, theirs] = rows;
    for name in COSTS.into_iter().filter(|name| !theirs.values(name).is_empty()) {
        let median = ratios_median(ours.values(name), theirs.values(name));
        let text = ratio(ours.values(name), theirs.values(name));
        println!("  ratio, {name}: {text}; aim {RATIO}: {}", verdict(median <= RATIO));
    }
    let greatest = ours.values("greatest").iter().copied().fold(0.0, f64::max);
    println!("  greatest: {greatest:.0} µs; aim {GREATEST:.0}: {}", verdict(greatest <= GREATEST));
}

fn ratios_median(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    spread(&ratios).0
}

fn print_latencies(rows: &[Row; MEASURED], rate: f64) {
    println!("  latency of cache hits at {GOOD_RATE:.0}/s, µs; attack at {rate:.0}/s, or saturated");
    for (resolver, row) in RESOLVERS.iter().zip(rows).filter(|(_, row)| !row.figures.is_empty()) {
        for load in LOADS {
            let [p50, p99, lost, hostile] =
                ["p50", "p99", "lost %", "hostile/s"].map(|figure| row.text(&format!("{load} {figure}")));
            let mut line =
                format!("    {:12} {load:11} p50 {p50:>18}  p99 {p99:>24}  lost % {lost}", resolver.name);
            if load != LOADS[0] {
                let (median, ..) = spread(row.values(&format!("{load} p99")));
                // Writing to a `String` cannot fail.
                let _ = write!(line, "  hostile/s {hostile}; aim {P99:.0}: {}", verdict(median <= P99));
            }
            println!("{line}");
        }
    }
    println!();
}
