//! Comparison of the resolver with the installed resolvers on a local tree of a root, a top-level domain
//! and 50 zones of 2,000 names each, signed with P-256: `just bench-resolve`. With `--validate true`,
//! all resolvers validate.
//!
//! Every resolver runs with one thread on CPU 0; the load generator and the authoritative servers of
//! the tree run on CPU 1. In each round, every resolver starts with an empty cache and learns the
//! delegations; then each query of the load has a new name. For the column of cache hits, the same
//! 1,000 queries are repeated, also against `nonesuch serve` with the same zones. CPU time is that of
//! the resolver's processes with all threads.
//!
//! The authoritative servers use port 53 of 127.53.0.0/16, so that the benchmark runs as root.
//! Options: `--runs`, `--queries` of a load, `--seconds` of cache hits, `--outstanding` queries, `--column`
//! (`existing`, `nsec`, `hits` or `nsec3`) for one column only, `--validate`.

#[allow(dead_code)] // each benchmark uses its own part
mod common;
#[allow(dead_code)] // each benchmark uses its own part
mod servers;

use common::{OURS, argument, machine, ratio, run, spread};
use nonesuch_lab::load::{LoadOptions, LoadReport, QueryList, run as run_load};
use nonesuch_lab::peers::{Peer, PeerServer, ResolverSetup, RootServer, Setup, TrustAnchor, Upstream};
use servers::{Server, start_and_read};
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Zones below the top-level domain, and names of each.
const ZONES: u64 = 50;
const NAMES: u64 = 2_000;
/// Names of the load of cache hits.
const HIT_NAMES: u64 = 1_000;
/// Sockets of the load generator.
const CLIENTS: u64 = 4;
/// Outstanding queries of all sockets.
const OUTSTANDING: u64 = 100;
/// The resolvers; the first is this project's.
const RESOLVERS: [Resolver; 5] = [
    Resolver { name: "nonesuch", peer: None },
    Resolver { name: "unbound", peer: Some(Peer::Unbound) },
    Resolver { name: "knot resolver", peer: Some(Peer::KnotResolver) },
    Resolver { name: "powerdns recursor", peer: Some(Peer::PowerDnsRecursor) },
    Resolver { name: "bind", peer: Some(Peer::BindResolver) },
];

struct Resolver {
    name: &'static str,
    /// `None`: this project's resolver.
    peer: Option<Peer>,
}

/// A tree whose servers run.
struct RunningTree {
    dir: PathBuf,
    /// Whether the resolvers validate.
    validates: bool,
    /// Outstanding queries of the load generator.
    outstanding: u64,
    _servers: Vec<Server>,
}

/// Names of a load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Existing,
    Denied,
    Hits,
}

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let runs = argument("--runs", 5);
    let count = argument("--queries", 50_000).min(ZONES * NAMES);
    let column = argument("--column", String::new());
    let has = |name: &str| column.is_empty() || column == name;
    println!("{}; {count} queries, DO set, {runs} rounds", machine());
    println!("CPU µs per query; ratios: median (least-greatest) of the rounds\n");
    let columns = [
        ("existing", "existing names", Kind::Existing, count),
        ("nsec", "denied names, NSEC", Kind::Denied, count),
        ("hits", "cache hits", Kind::Hits, argument("--seconds", 3)),
    ];
    if columns.iter().any(|(name, ..)| has(name)) {
        let nsec = start_tree(&dir.path().join("nsec"), "nsec");
        for (_, title, kind, amount) in columns.into_iter().filter(|(name, ..)| has(name)) {
            measure(title, &nsec, kind, runs, amount);
        }
    }
    if has("nsec3") {
        let nsec3 = start_tree(&dir.path().join("nsec3"), "nsec3");
        measure("denied names, NSEC3", &nsec3, Kind::Denied, runs, count);
    }
}

impl RunningTree {
    /// The trust anchor of the tree for peers; none if they do not validate.
    fn anchors(&self) -> Vec<TrustAnchor> {
        if !self.validates {
            return Vec::new();
        }
        let text = fs::read_to_string(self.dir.join("anchor.ds")).expect("the trust anchor");
        let ds = text.lines().filter_map(|line| line.split_once(" DS "));
        ds.map(|(_, ds)| TrustAnchor { zone: ".".to_owned(), ds: ds.to_owned() }).collect()
    }
}

/// Writes a tree and starts its servers on CPU 1.
fn start_tree(dir: &Path, denial: &str) -> RunningTree {
    let description = dir.with_extension("toml");
    let text = format!(
        "[[zone]]\norigin = \".\"\n\n[[zone]]\norigin = \"example.\"\n\n[[zone]]\norigin = \"z#.example.\"\n\
         count = {ZONES}\nnames = {NAMES}\ndenial = \"{denial}\"\nserver = \"127.53.1.1\"\n"
    );
    fs::write(&description, text).expect("a file");
    run(Command::new(OURS).args(["lab", "tree"]).arg(&description).arg("--out").arg(dir));
    let files = fs::read_dir(dir.join("servers")).expect("configurations of servers");
    let servers = files.map(|file| {
        let file = file.expect("a configuration").path();
        let mut command = pinned(1);
        command.args([OURS, "serve", "--config"]).arg(&file);
        start_and_read(&mut command).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    });
    RunningTree {
        _servers: servers.collect(),
        dir: dir.to_owned(),
        validates: argument("--validate", false),
        outstanding: argument("--outstanding", OUTSTANDING),
    }
}

/// A command that runs on one CPU.
fn pinned(cpu: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string()]);
    command
}

/// A running resolver or authoritative server.
enum Running {
    Ours(Server),
    Peer(PeerServer),
}

impl Running {
    fn start(resolver: &Resolver, tree: &RunningTree) -> Result<Self, String> {
        let hints = tree.dir.join("root.hints");
        let Some(peer) = resolver.peer else {
            let mut command = pinned(0);
            command
                .args([OURS, "resolve", "--listen", "127.0.0.1:0", "--workers", "1", "--hints"])
                .arg(hints);
            if tree.validates {
                command.arg("--anchor").arg(tree.dir.join("anchor.ds"));
            }
            return start_and_read(&mut command).map(Self::Ours).map_err(|error| error.to_string());
        };
        let root = RootServer { name: root_server_name(&hints), address: Ipv4Addr::new(127, 53, 0, 1) };
        let upstream = Upstream::Roots { servers: vec![root], port: 53 };
        let setup = Setup {
            cpus: vec![0],
            resolver: ResolverSetup { upstream, anchors: tree.anchors(), ..ResolverSetup::default() },
            ..Setup::new(&tree.dir.join("peers"))
        };
        PeerServer::start(peer, &setup).map(Self::Peer).map_err(|error| error.to_string())
    }

    /// `nonesuch serve` with the zones of the tree, on CPU 0.
    fn start_serve(tree: &RunningTree) -> Self {
        let served = tree.dir.join("servers/127.53.1.1.toml");
        let text = fs::read_to_string(&served).expect("a configuration");
        let file = served.with_file_name("serve.toml");
        let text = text.replacen("listen =", "workers = 1\nlisten =", 1);
        fs::write(&file, text.replacen("127.53.1.1:53", "127.0.0.1:0", 1)).expect("a file");
        let mut command = pinned(0);
        command.args([OURS, "serve", "--config"]).arg(file);
        Self::Ours(start_and_read(&mut command).expect("a server"))
    }

    /// User and system time in µs.
    fn cpu(&self) -> (f64, f64) {
        match self {
            Self::Ours(server) => server.cpu(),
            Self::Peer(server) => (server.cpu_time().user_us as f64, server.cpu_time().system_us as f64),
        }
    }

    fn load(
        &self,
        queries: &Arc<QueryList>,
        outstanding: u64,
        seconds: f64,
        limit: Option<u64>,
    ) -> LoadReport {
        let server = match self {
            Self::Ours(server) => server.address,
            Self::Peer(server) => server.address,
        };
        let options = LoadOptions {
            seconds,
            limit,
            sockets: CLIENTS.min(outstanding) as usize,
            outstanding: outstanding as usize,
            cpus: Some(vec![1]),
            may_poll: false,
            ..LoadOptions::new(server, Arc::clone(queries))
        };
        run_load(&options).unwrap_or_else(|error| panic!("load: {error}"))
    }
}

/// Name of the first root server in a hints file.
fn root_server_name(hints: &Path) -> String {
    let text = fs::read_to_string(hints).expect("root hints");
    let line = text.lines().find(|line| line.contains(" NS ")).expect("an NS record");
    line.split_whitespace().last().expect("a name").to_owned()
}

/// `count` queries, evenly from all zones: the query `n` is for host `n / ZONES` of zone `n % ZONES`.
fn queries(kind: Kind, count: u64) -> Arc<QueryList> {
    let label = if kind == Kind::Denied { "no" } else { "host" };
    let text = (0..count).fold(String::new(), |mut text, number| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{label}{}.z{}.example. A", number / ZONES, number % ZONES);
        text
    });
    Arc::new(QueryList::parse(Path::new("queries"), text.as_bytes()).expect("queries"))
}

/// One query for each zone, so that the resolver learns the delegations.
fn delegations() -> Arc<QueryList> {
    let text: String = (0..ZONES).map(|zone| format!("z{zone}.example. SOA\n")).collect();
    Arc::new(QueryList::parse(Path::new("delegations"), text.as_bytes()).expect("queries"))
}

/// CPU time in µs for each query of a load: user and system.
fn cpu_per_query(running: &Running, kind: Kind, outstanding: u64, amount: u64) -> (f64, f64, u64) {
    // A load ends early when all of its queries are answered; the duration is only a bound.
    running.load(&delegations(), OUTSTANDING, 30.0, Some(ZONES));
    let list = queries(kind, if kind == Kind::Hits { HIT_NAMES } else { amount });
    let (seconds, limit) = if kind == Kind::Hits {
        running.load(&list, OUTSTANDING, 30.0, Some(2 * HIT_NAMES));
        (amount as f64, None)
    } else {
        (120.0, Some(amount))
    };
    let before = running.cpu();
    let report = running.load(&list, outstanding, seconds, limit);
    let after = running.cpu();
    let answered = report.received.max(1) as f64;
    ((after.0 - before.0) / answered, (after.1 - before.1) / answered, report.lost)
}

/// One column: all resolvers in turn, in each round.
fn measure(title: &str, tree: &RunningTree, kind: Kind, runs: u64, amount: u64) {
    let mut rows: Vec<Row> = RESOLVERS.iter().map(|resolver| Row::new(resolver.name)).collect();
    if kind == Kind::Hits {
        rows.push(Row::new("nonesuch serve"));
    }
    for _ in 0..runs {
        for (place, row) in rows.iter_mut().enumerate() {
            let started = RESOLVERS.get(place).map(|resolver| Running::start(resolver, tree));
            match started.unwrap_or_else(|| Ok(Running::start_serve(tree))) {
                Ok(running) => row.push(cpu_per_query(&running, kind, tree.outstanding, amount)),
                Err(error) => row.error = Some(error),
            }
        }
    }
    println!("{title:28} {:>8} {:>8} {:>8}   ours / theirs", "µs/query", "user", "system");
    for row in &rows {
        row.print(&rows[0]);
    }
    println!();
}

/// The figures of a resolver, one value for each round.
struct Row {
    name: &'static str,
    cpu: Vec<f64>,
    user: Vec<f64>,
    system: Vec<f64>,
    lost: u64,
    error: Option<String>,
}

impl Row {
    const fn new(name: &'static str) -> Self {
        Self { name, cpu: Vec::new(), user: Vec::new(), system: Vec::new(), lost: 0, error: None }
    }

    fn push(&mut self, (user, system, lost): (f64, f64, u64)) {
        self.cpu.push(user + system);
        self.user.push(user);
        self.system.push(system);
        self.lost += lost;
    }

    fn print(&self, ours: &Self) {
        if self.cpu.is_empty() {
            println!("  left out: {}: {}", self.name, self.error.as_deref().unwrap_or("no round"));
            return;
        }
        let compared = if self.name == ours.name { String::new() } else { ratio(&ours.cpu, &self.cpu) };
        let lost = if self.lost == 0 { String::new() } else { format!("   {} lost", self.lost) };
        let [cpu, user, system] = [&self.cpu, &self.user, &self.system].map(|values| spread(values).0);
        println!("  {:26} {cpu:8.2} {user:8.2} {system:8.2}   {compared}{lost}", self.name);
    }
}
