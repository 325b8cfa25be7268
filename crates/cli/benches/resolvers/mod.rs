//! Local trees with their servers, and the measured resolvers: this project's and the installed peers.
//!
//! Every resolver runs with one thread on CPU 0; the load generator and the authoritative servers of
//! the tree run on CPU 1. The authoritative servers use port 53 of 127.53.0.0/16, so that the benchmarks
//! run as root. CPU time is that of a server's processes with all threads.

use crate::common::{OURS, ratio, run, spread};
use crate::servers::{Server, start_and_read};
use nonesuch_lab::load::{LoadOptions, LoadReport, QueryList, run as run_load};
use nonesuch_lab::peers::{Peer, PeerServer, ResolverSetup, RootServer, Setup, TrustAnchor, Upstream};
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Sockets of the load generator.
const CLIENTS: u64 = 4;
/// Outstanding queries of all sockets.
pub(crate) const OUTSTANDING: u64 = 100;
/// Address of the server of all zones below the top-level domain.
pub(crate) const ZONE_SERVER: Ipv4Addr = Ipv4Addr::new(127, 53, 1, 1);

/// The resolvers; the first is this project's.
pub(crate) const RESOLVERS: [Resolver; 5] = [
    Resolver { name: "nonesuch", peer: None },
    Resolver { name: "unbound", peer: Some(Peer::Unbound) },
    Resolver { name: "knot resolver", peer: Some(Peer::KnotResolver) },
    Resolver { name: "powerdns recursor", peer: Some(Peer::PowerDnsRecursor) },
    Resolver { name: "bind", peer: Some(Peer::BindResolver) },
];

pub(crate) struct Resolver {
    pub(crate) name: &'static str,
    /// `None`: this project's resolver.
    peer: Option<Peer>,
}

/// What all resolvers of a measurement have in common.
#[derive(Clone, Copy)]
pub(crate) struct ResolverOptions {
    pub(crate) validates: bool,
    /// Whether they answer from cached denials (RFC 8198). Knot Resolver always does.
    pub(crate) aggressive: bool,
    pub(crate) cache_mib: u32,
}

/// A tree whose servers run.
pub(crate) struct Tree {
    pub(crate) dir: PathBuf,
    servers: Vec<Server>,
}

impl Tree {
    /// Writes a tree with a root, `example.` and the given zones below, and starts its servers on CPU 1.
    /// `algorithm` is that of all zones.
    pub(crate) fn start(dir: &Path, algorithm: &str, zones: &str) -> Self {
        Self::write(dir, algorithm, zones);
        Self::start_servers(dir, |_| true)
    }

    /// Writes the tree, and starts no server.
    pub(crate) fn write(dir: &Path, algorithm: &str, zones: &str) {
        let description = dir.with_extension("toml");
        let text =
            [".", "example."].map(|origin| zone(&format!("origin = \"{origin}\""), algorithm)).concat();
        fs::write(&description, text + &zone(zones, algorithm)).expect("a file");
        run(Command::new(OURS).args(["lab", "tree"]).arg(&description).arg("--out").arg(dir));
    }

    /// Starts the servers whose address `is_started` selects.
    pub(crate) fn start_servers(dir: &Path, is_started: impl Fn(&str) -> bool) -> Self {
        let files = fs::read_dir(dir.join("servers")).expect("configurations of servers");
        let files = files.map(|file| file.expect("a configuration").path());
        let servers =
            files.filter(|file| is_started(&file.file_stem().unwrap_or_default().to_string_lossy()));
        let servers = servers.map(|file| {
            let mut command = pinned(1);
            command.args([OURS, "serve", "--config"]).arg(&file);
            start_and_read(&mut command).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        });
        Self { servers: servers.collect(), dir: dir.to_owned() }
    }

    /// The server of the zones below the top-level domain, if it is one of this project.
    pub(crate) fn zone_server(&self) -> Option<&Server> {
        self.servers.iter().find(|server| server.address.ip() == IpAddr::V4(ZONE_SERVER))
    }

    /// The trust anchor of the tree for peers.
    fn anchors(&self) -> Vec<TrustAnchor> {
        let text = fs::read_to_string(self.dir.join("anchor.ds")).expect("the trust anchor");
        let ds = text.lines().filter_map(|line| line.split_once(" DS "));
        ds.map(|(_, ds)| TrustAnchor { zone: ".".to_owned(), ds: ds.to_owned() }).collect()
    }
}

/// A section of the description of a tree.
fn zone(lines: &str, algorithm: &str) -> String {
    format!("[[zone]]\n{lines}\nalgorithm = \"{algorithm}\"\n\n")
}

/// A command that runs on one CPU.
fn pinned(cpu: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string()]);
    command
}

/// A running resolver or authoritative server.
pub(crate) enum Running {
    Ours(Server),
    Peer(PeerServer),
}

impl Running {
    /// Starts a resolver with an empty cache.
    pub(crate) fn start(resolver: &Resolver, tree: &Tree, options: ResolverOptions) -> Result<Self, String> {
        let Some(peer) = resolver.peer else {
            return Self::start_ours(tree, options).map_err(|error| error.to_string());
        };
        let hints = tree.dir.join("root.hints");
        let root = RootServer { name: root_server_name(&hints), address: Ipv4Addr::new(127, 53, 0, 1) };
        let anchors = if options.validates { tree.anchors() } else { Vec::new() };
        let setup = Setup {
            cpus: vec![0],
            resolver: ResolverSetup {
                upstream: Upstream::Roots { servers: vec![root], port: 53 },
                anchors,
                cache_mib: options.cache_mib,
                aggressive: options.aggressive,
                ..ResolverSetup::default()
            },
            ..Setup::new(&tree.dir.join("peers"))
        };
        PeerServer::start(peer, &setup).map(Self::Peer).map_err(|error| error.to_string())
    }

    fn start_ours(tree: &Tree, options: ResolverOptions) -> std::io::Result<Self> {
        let (dir, file) = (tree.dir.display(), tree.dir.join("resolver.toml"));
        let ResolverOptions { validates, aggressive, cache_mib } = options;
        // Half of the memory is for the cache.
        let memory = 2 * cache_mib;
        let mut text = format!(
            "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nhints = \"{dir}/root.hints\"\n\
             memory = \"{memory}MiB\"\nvalidation = {validates}\naggressive-denial = {aggressive}\n\
             experimental-algorithms = true\n"
        );
        if validates {
            let _ = writeln!(text, "trust-anchors = \"{dir}/anchor.ds\"");
        }
        fs::write(&file, text)?;
        start_and_read(pinned(0).args([OURS, "resolve", "--config"]).arg(file)).map(Self::Ours)
    }

    /// `nonesuch serve` with the zones of the tree, on CPU 0.
    pub(crate) fn start_serve(tree: &Tree) -> Self {
        let served = tree.dir.join(format!("servers/{ZONE_SERVER}.toml"));
        let text = fs::read_to_string(&served).expect("a configuration");
        let file = served.with_file_name("serve.conf");
        let text = text.replacen("listen =", "workers = 1\nlisten =", 1);
        fs::write(&file, text.replacen("127.53.1.1:53", "127.0.0.1:0", 1)).expect("a file");
        let mut command = pinned(0);
        command.args([OURS, "serve", "--config"]).arg(file);
        Self::Ours(start_and_read(&mut command).expect("a server"))
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Ours(server) => server.address,
            Self::Peer(server) => server.address,
        }
    }

    /// User and system time in µs.
    pub(crate) fn cpu(&self) -> (f64, f64) {
        match self {
            Self::Ours(server) => server.cpu(),
            Self::Peer(server) => {
                let time = server.cpu_time();
                (time.user_us as f64, time.system_us as f64)
            }
        }
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> f64 {
        match self {
            Self::Ours(server) => server.memory_mib() * 1024.0 * 1024.0,
            Self::Peer(server) => server.memory_kib() as f64 * 1024.0,
        }
    }

    /// Sends the queries in turn for the given time, or until `limit` queries are answered.
    pub(crate) fn load(
        &self,
        queries: &Arc<QueryList>,
        outstanding: u64,
        seconds: f64,
        limit: Option<u64>,
    ) -> LoadReport {
        let options = LoadOptions {
            seconds,
            limit,
            sockets: CLIENTS.min(outstanding) as usize,
            outstanding: outstanding as usize,
            cpus: Some(vec![1]),
            may_poll: false,
            ..LoadOptions::new(self.address(), Arc::clone(queries))
        };
        run_load(&options).unwrap_or_else(|error| panic!("load: {error}"))
    }

    /// Sends each query of `list` once.
    pub(crate) fn ask_all(&self, list: &Arc<QueryList>, count: u64, outstanding: u64) -> LoadReport {
        // The load ends when all queries are answered; the duration is only a bound.
        self.load(list, outstanding, 300.0, Some(count))
    }
}

/// User and system time of a load in µs for each answer, and the number of lost queries. `cpu` returns the time
/// of all measured processes.
pub(crate) fn cost_of(cpu: impl Fn() -> (f64, f64), load: impl FnOnce() -> LoadReport) -> (f64, f64, u64) {
    let before = cpu();
    let report = load();
    let after = cpu();
    let answered = report.received.max(1) as f64;
    ((after.0 - before.0) / answered, (after.1 - before.1) / answered, report.lost)
}

/// The section of the description of a tree for `count` zones of `names` names each.
pub(crate) fn zones_section(count: u64, names: u64, denial: &str) -> String {
    format!(
        "origin = \"z#.example.\"\ncount = {count}\nnames = {names}\ndenial = \"{denial}\"\n\
         server = \"{ZONE_SERVER}\""
    )
}

/// Name of the first root server in a hints file.
fn root_server_name(hints: &Path) -> String {
    let text = fs::read_to_string(hints).expect("root hints");
    let line = text.lines().find(|line| line.contains(" NS ")).expect("an NS record");
    line.split_whitespace().last().expect("a name").to_owned()
}

/// `count` queries, evenly from all zones: the query `n` is for host `n / zones` of zone `n % zones`. Denied
/// names have an existing name as predecessor, each another one, so that each denial has a new NSEC record.
pub(crate) fn queries(is_denied: bool, zones: u64, count: u64) -> Arc<QueryList> {
    let suffix = if is_denied { "-no" } else { "" };
    let text = (0..count).fold(String::new(), |mut text, number| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "host{}{suffix}.z{}.example. A", number / zones, number % zones);
        text
    });
    Arc::new(QueryList::parse(Path::new("queries"), text.as_bytes()).expect("queries"))
}

/// One query for each zone, so that the resolver learns the delegations.
pub(crate) fn learn_delegations(running: &Running, zones: u64) {
    let text: String = (0..zones).map(|zone| format!("z{zone}.example. SOA\n")).collect();
    let list = QueryList::parse(Path::new("delegations"), text.as_bytes()).expect("queries");
    running.ask_all(&Arc::new(list), zones, OUTSTANDING);
}

/// The figures of a resolver, one value for each round.
#[derive(Clone)]
pub(crate) struct Row {
    name: String,
    cpu: Vec<f64>,
    user: Vec<f64>,
    system: Vec<f64>,
    lost: u64,
    error: Option<String>,
}

impl Row {
    pub(crate) fn new(name: &str) -> Self {
        let (cpu, user, system) = (Vec::new(), Vec::new(), Vec::new());
        Self { name: name.to_owned(), cpu, user, system, lost: 0, error: None }
    }

    /// Adds a round with what `measure` returns for the started programs, as [`cost_of`] does.
    pub(crate) fn add_round<T>(
        &mut self,
        started: Result<T, String>,
        measure: impl FnOnce(&T) -> (f64, f64, u64),
    ) {
        match started {
            Ok(started) => self.push(measure(&started)),
            Err(error) => self.error = Some(error),
        }
    }

    fn push(&mut self, (user, system, lost): (f64, f64, u64)) {
        self.cpu.push(user + system);
        self.user.push(user);
        self.system.push(system);
        self.lost += lost;
    }

    /// Prints medians, and the ratios of `ours` to this row.
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

/// Prints rows with CPU times, and the ratios of the first row to the others.
pub(crate) fn print_rows(title: &str, rows: &[Row]) {
    println!("{title:28} {:>8} {:>8} {:>8}   first / this", "µs/query", "user", "system");
    for row in rows {
        row.print(&rows[0]);
    }
    println!();
}
