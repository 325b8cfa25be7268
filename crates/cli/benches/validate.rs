//! What validation costs the resolver: cold keys, memory, post-quantum algorithms, and NSEC5 against other
//! online denial: `just bench-validate`. `just bench-resolve --validate true` has the common cases.
//!
//! Columns (`--column NAME` selects one):
//! - `cold-keys`: 20,000 zones of 5 names each, so that the first query for each zone validates a new key. The
//!   CPU time is that of all 100,000 queries.
//! - `memory`: growth of the memory of a resolver for each signed RRset in its cache: 100,000 existing names of
//!   50 zones.
//! - `algorithms`: trees with ML-DSA-44, Falcon-512 and MAYO-2 against the tree with P-256, existing names, with one
//!   and with 100 outstanding queries.
//! - `nsec5`: denied names, with one and with 100 outstanding queries. CPU time is the sum of the resolver and the
//!   authoritative server of the zones: an NSEC5 zone with P-256, white lies by this project, and white lies by
//!   PowerDNS behind Unbound.
//!
//! Options: `--runs`, `--queries`, `--zones` of `cold-keys`.

#[allow(dead_code)] // each benchmark uses its own part
mod common;
#[allow(dead_code)] // each benchmark uses its own part
mod resolvers;
#[allow(dead_code)] // each benchmark uses its own part
mod servers;

use common::{argument, machine, ratio, spread};
use nonesuch_lab::peers::{OnlineDenial, Peer, PeerServer, PeerZone, Serving, Setup};
use resolvers::{
    OUTSTANDING, RESOLVERS, ResolverOptions, Row, Running, Tree, ZONE_SERVER, cost_of, learn_delegations,
    print_rows, queries, zones_section,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Zones below the top-level domain, and names of each, where the column does not say otherwise.
const ZONES: u64 = 50;
const NAMES: u64 = 2_000;
/// Names of each zone with cold keys.
const COLD_NAMES: u64 = 5;
const P256: &str = "ecdsap256sha256";
const OPTIONS: ResolverOptions = ResolverOptions { validates: true, aggressive: false, cache_mib: 64 };

/// Measures a column in the given directory and number of rounds, and prints its table.
type Measure = fn(&Path, u64);

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let runs = argument("--runs", 5);
    let column = argument("--column", String::new());
    println!("{}; DO set, all resolvers validate, {runs} rounds", machine());
    println!("ratios: median (least-greatest) of the rounds\n");
    let columns: [(&str, Measure); 4] = [
        ("cold-keys", measure_cold_keys),
        ("memory", measure_memory),
        ("algorithms", measure_algorithms),
        ("nsec5", measure_nsec5),
    ];
    for (name, measure) in columns {
        if column.is_empty() || column == name {
            let dir = dir.path().join(name);
            fs::create_dir(&dir).expect("a directory");
            measure(&dir, runs);
        }
    }
}

fn measure_cold_keys(dir: &Path, runs: u64) {
    let count: u64 = argument("--zones", 20_000);
    let tree = Tree::start(&dir.join("tree"), P256, &zones_section(count, COLD_NAMES, "nsec"));
    let list = queries(false, count, count * COLD_NAMES);
    let mut rows: Vec<Row> = RESOLVERS.iter().map(|resolver| Row::new(resolver.name)).collect();
    for _ in 0..runs {
        for (resolver, row) in RESOLVERS.iter().zip(&mut rows) {
            row.add_round(Running::start(resolver, &tree, OPTIONS), |running| {
                let load = || running.ask_all(&list, count * COLD_NAMES, OUTSTANDING);
                cost_of(|| running.cpu(), load)
            });
        }
    }
    print_rows("cold keys", &rows);
}

fn measure_memory(dir: &Path, runs: u64) {
    let tree = Tree::start(&dir.join("tree"), P256, &zones_section(ZONES, NAMES, "nsec"));
    let list = queries(false, ZONES, ZONES * NAMES);
    // No entry is removed.
    let options = ResolverOptions { cache_mib: 512, ..OPTIONS };
    let mut octets: Vec<Vec<f64>> = vec![Vec::new(); RESOLVERS.len()];
    for _ in 0..runs {
        for (resolver, octets) in RESOLVERS.iter().zip(&mut octets) {
            let Ok(running) = Running::start(resolver, &tree, options) else { continue };
            learn_delegations(&running, ZONES);
            let before = running.memory();
            let report = running.ask_all(&list, ZONES * NAMES, OUTSTANDING);
            octets.push((running.memory() - before) / report.received.max(1) as f64);
        }
    }
    println!("{:28} {:>8}   first / this", "memory of an RRset", "octets");
    for (resolver, values) in RESOLVERS.iter().zip(&octets).filter(|(_, values)| !values.is_empty()) {
        println!("  {:26} {:8.0}   {}", resolver.name, spread(values).0, ratio(&octets[0], values));
    }
    println!();
}

fn measure_algorithms(dir: &Path, runs: u64) {
    let algorithms = [P256, "mldsa44", "falcon512", "mayo2"];
    let count: u64 = argument("--queries", 20_000).min(ZONES * NAMES);
    let list = queries(false, ZONES, count);
    for outstanding in [1, OUTSTANDING] {
        let mut rows: Vec<Row> = algorithms.map(Row::new).into();
        for run in 0..runs {
            for (algorithm, row) in algorithms.iter().zip(&mut rows) {
                let place = dir.join(algorithm);
                if run == 0 && outstanding == 1 {
                    Tree::write(&place, algorithm, &zones_section(ZONES, NAMES, "nsec"));
                }
                // The trees have the same addresses.
                let tree = Tree::start_servers(&place, |_| true);
                row.add_round(Running::start(&RESOLVERS[0], &tree, OPTIONS), |running| {
                    learn_delegations(running, ZONES);
                    cost_of(|| running.cpu(), || running.ask_all(&list, count, outstanding))
                });
            }
        }
        for other in &rows[1..] {
            print_rows(&format!("{outstanding} outstanding"), &[other.clone(), rows[0].clone()]);
        }
    }
}

/// Starts the servers of a column of denied names, with trees in the given directory.
type Start = fn(&Path) -> Result<Pair, String>;

/// The resolver and the authoritative server of the zones.
struct Pair {
    resolver: Running,
    tree: Tree,
    /// The server of the zones, if it is PowerDNS.
    powerdns: Option<Running>,
}

impl Pair {
    fn cpu(&self) -> (f64, f64) {
        let (user, system) = self.resolver.cpu();
        let server = match &self.powerdns {
            Some(server) => server.cpu(),
            None => self.tree.zone_server().expect("the server of the zones").cpu(),
        };
        (user + server.0, system + server.1)
    }
}

fn measure_nsec5(dir: &Path, runs: u64) {
    let starts: [(&str, Start); 3] = [
        ("nsec5 p256", |dir| start_pair(&dir.join("nsec5"))),
        ("white lies", |dir| start_pair(&dir.join("white-lies"))),
        ("powerdns, unbound", |dir| start_powerdns(&dir.join("white-lies"))),
    ];
    for denial in ["nsec5", "white-lies"] {
        Tree::write(&dir.join(denial), P256, &zones_section(ZONES, NAMES, denial));
    }
    let count: u64 = argument("--queries", 20_000).min(ZONES * NAMES);
    let list = queries(true, ZONES, count);
    for outstanding in [1, OUTSTANDING] {
        let mut rows: Vec<Row> = starts.iter().map(|(name, _)| Row::new(name)).collect();
        for _ in 0..runs {
            for ((_, start), row) in starts.iter().zip(&mut rows) {
                row.add_round(start(dir), |pair| {
                    learn_delegations(&pair.resolver, ZONES);
                    cost_of(|| pair.cpu(), || pair.resolver.ask_all(&list, count, outstanding))
                });
            }
        }
        print_rows(&format!("denied names, {outstanding} outstanding"), &rows);
    }
}

fn start_pair(tree: &Path) -> Result<Pair, String> {
    let tree = Tree::start_servers(tree, |_| true);
    let resolver = Running::start(&RESOLVERS[0], &tree, OPTIONS)?;
    Ok(Pair { resolver, tree, powerdns: None })
}

/// Unbound, and PowerDNS for the zones of a tree with white lies.
fn start_powerdns(tree: &Path) -> Result<Pair, String> {
    let zones = (0..ZONES).map(|number| {
        let origin = format!("z{number}.example.");
        let keys = key_files(&tree.join("keys").join(origin.trim_end_matches('.')));
        let serving = Serving::Online { denial: OnlineDenial::WhiteLies, keys };
        PeerZone::new(&origin, &tree.join("zones").join(origin.trim_end_matches('.')), serving)
    });
    let setup = Setup {
        ip: ZONE_SERVER,
        port: Some(53),
        cpus: vec![1],
        zones: zones.collect(),
        ..Setup::new(&tree.join("peers"))
    };
    let powerdns = PeerServer::start(Peer::PowerDns, &setup).map_err(|error| error.to_string())?;
    let tree = Tree::start_servers(tree, |address| address != ZONE_SERVER.to_string());
    let resolver = Running::start(&RESOLVERS[1], &tree, OPTIONS)?;
    Ok(Pair { resolver, tree, powerdns: Some(Running::Peer(powerdns)) })
}

/// The keys of a zone, without the suffix of their files.
fn key_files(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).expect("a directory of keys").filter_map(|file| Some(file.ok()?.path()));
    files
        .filter(|file| file.extension().is_some_and(|end| end == "key"))
        .map(|file| file.with_extension(""))
        .collect()
}
