//! Serving a signed TLD-like zone beside the installed peers, in turn: `just bench-serve`.
//!
//! Every server runs with one worker on CPU 0, the load generator with one thread on CPU 1. CPU time is that of
//! the server's processes, all threads; each round loads every server once, so that a change of the machine's
//! speed meets all of them alike.

mod peers;

use nonesuch_lab::load::{LoadOptions, QueryList, run as run_load};
use nonesuch_lab::process;
use peers::{MODES, Mode, ORIGIN, OURS, argument, find, prepare, ratio, run, spread};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Server {
    name: &'static str,
    child: Child,
    address: SocketAddr,
    /// Kept open, so that the server's last words have somewhere to go.
    _output: Option<BufReader<ChildStdout>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        for pid in tree(self.child.id()) {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        let _ = self.child.wait();
    }
}

fn main() {
    let (names, runs, seconds) =
        (argument("--names", 100_000), argument("--runs", 5), argument("--seconds", 3));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (zone, _) = prepare(dir.path(), names);
    let queries = [("existing", "0"), ("denied", "100")]
        .map(|(name, denied)| (name, queries(dir.path(), names, name, denied)));
    println!(
        "{}; {names} delegations, ECDSAP256SHA256, DO set, {runs} rounds of {seconds} s",
        peers::machine()
    );
    println!("ratio of CPU a query: ours / theirs, median (least-greatest) of the rounds\n");
    println!(
        "{:32} {:>8} {:>6} {:>6} {:>9} {:>7} {:>8}   ratio of CPU",
        "", "µs/query", "user", "system", "queries/s", "octets", "PSS MiB"
    );
    for mode in MODES {
        let signed = sign(dir.path(), &zone, mode);
        let servers = start_all(dir.path(), &signed, mode);
        for (kind, list) in &queries {
            race(&servers, mode, kind, list, (runs, seconds));
        }
    }
}

fn queries(dir: &Path, names: u64, name: &str, denied: &str) -> Arc<QueryList> {
    let path = dir.join(format!("queries-{name}"));
    let mut command = Command::new(OURS);
    command.args([
        "zone",
        "generate",
        "--like",
        "tld",
        "--seed",
        "1",
        "-o",
        ORIGIN,
        "--query-count",
        "200000",
    ]);
    command.arg("--names").arg(names.to_string()).args(["--denied", denied, "--queries"]).arg(&path);
    // The zone is there already; of this one only the queries are wanted.
    run(command.arg("-f").arg(dir.join("again")));
    Arc::new(QueryList::from_file(&path).expect("queries"))
}

fn sign(dir: &Path, zone: &Path, mode: Mode) -> PathBuf {
    let signed = dir.join(format!("{}.signed", mode.name()));
    let mut command = Command::new(OURS);
    command.args(["zone", "sign", "-o", ORIGIN, "--denial", mode.name(), "--keys"]).arg(dir);
    run(command.arg("-f").arg(&signed).arg(zone));
    signed
}

#[derive(Default)]
struct Figures {
    cpu: Vec<f64>,
    user: Vec<f64>,
    system: Vec<f64>,
    rate: Vec<f64>,
    octets: f64,
}

fn race(servers: &[Server], mode: Mode, kind: &str, list: &Arc<QueryList>, (runs, seconds): (u64, u64)) {
    let mut figures: Vec<Figures> = servers.iter().map(|_| Figures::default()).collect();
    for _ in 0..runs {
        for (server, figures) in servers.iter().zip(&mut figures) {
            load(server, list, seconds, figures);
        }
    }
    let Some(ours) = figures.first() else { return };
    for (server, figure) in servers.iter().zip(&figures) {
        let title = format!("{}, {kind}, {}", mode.name(), server.name);
        let compared = if server.name == "nonesuch" { String::new() } else { ratio(&ours.cpu, &figure.cpu) };
        let memory: u64 = tree(server.child.id())
            .into_iter()
            .filter_map(process::memory)
            .map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib))
            .sum();
        println!(
            "{title:32} {:8.2} {:6.2} {:6.2} {:9.0} {:7.1} {:8.1}   {compared}",
            spread(&figure.cpu).0,
            spread(&figure.user).0,
            spread(&figure.system).0,
            spread(&figure.rate).0,
            figure.octets,
            memory as f64 / 1024.0
        );
    }
    println!();
}

fn load(server: &Server, list: &Arc<QueryList>, seconds: u64, figures: &mut Figures) {
    let mut options = LoadOptions::new(server.address, Arc::clone(list));
    options.seconds = seconds as f64;
    options.dnssec_ok = true;
    options.cpus = Some(vec![1]);
    let before = cpu(server);
    let report = run_load(&options).expect("a load");
    let after = cpu(server);
    let queries = report.received.max(1) as f64;
    assert!(report.lost * 100 <= report.sent, "{}: {} of {} lost", server.name, report.lost, report.sent);
    figures.user.push((after.0 - before.0) / queries);
    figures.system.push((after.1 - before.1) / queries);
    figures.cpu.push((after.0 - before.0 + after.1 - before.1) / queries);
    figures.rate.push(report.qps);
    figures.octets = report.response_octets_mean;
}

/// User and system microseconds of the server's processes.
fn cpu(server: &Server) -> (f64, f64) {
    let times = tree(server.child.id()).into_iter().filter_map(process::cpu_time);
    times.fold((0.0, 0.0), |sum, time| (sum.0 + time.user_us as f64, sum.1 + time.system_us as f64))
}

/// A process and its descendants.
fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        next += 1;
    }
    all
}

fn start_all(dir: &Path, signed: &Path, mode: Mode) -> Vec<Server> {
    let mut servers = vec![start_ours(signed)];
    servers.extend(find("nsd").map(|program| start_nsd(&program, dir, signed, mode)));
    servers.extend(find("knotd").map(|program| start_knot(&program, dir, signed, mode)));
    servers
}

fn start_ours(signed: &Path) -> Server {
    let mut command = Command::new(OURS);
    command.args([
        "serve",
        "--workers",
        "1",
        "--cpus",
        "0",
        "--listen",
        "127.0.0.1:0",
        "--verify",
        "structural",
    ]);
    let mut child =
        command.args(["-o", ORIGIN]).arg(signed).stdout(Stdio::piped()).spawn().expect("nonesuch starts");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    output.read_line(&mut line).expect("a line");
    let address = line.split_whitespace().find_map(|word| word.parse().ok()).expect("an address");
    Server { name: "nonesuch", child, address, _output: Some(output) }
}

/// An address with a port that was free a moment ago.
fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port")
}

fn start_nsd(program: &Path, dir: &Path, signed: &Path, mode: Mode) -> Server {
    let address = free_address();
    let folder = dir.join(format!("nsd-{}", mode.name()));
    fs::create_dir_all(&folder).expect("a folder for nsd");
    let text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  zonesdir: \"{dir}\"\n  database: \"\"\n  \
         pidfile: \"{dir}/nsd.pid\"\n  xfrdfile: \"{dir}/xfrd.state\"\n  zonelistfile: \"{dir}/zone.list\"\n  minimal-responses: yes\n  \
         cpu-affinity: 0\n  server-1-cpu-affinity: 0\n  rrl-ratelimit: 0\nremote-control:\n  control-enable: no\nzone:\n  name: {ORIGIN}\n  \
         zonefile: \"{zone}\"\n",
        port = address.port(),
        dir = folder.display(),
        zone = signed.display()
    );
    let config = folder.join("nsd.conf");
    fs::write(&config, text).expect("a configuration for nsd");
    start("nsd", Command::new(program).arg("-d").arg("-c").arg(&config), address)
}

fn start_knot(program: &Path, dir: &Path, signed: &Path, mode: Mode) -> Server {
    let address = free_address();
    let folder = dir.join(format!("knotd-{}", mode.name()));
    fs::create_dir_all(&folder).expect("a folder for knotd");
    let text = format!(
        "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\ndatabase:\n  \
         storage: {dir}\nzone:\n  - domain: {ORIGIN}\n    file: {zone}\n    journal-content: none\n",
        port = address.port(),
        dir = folder.display(),
        zone = signed.display()
    );
    let config = folder.join("knot.conf");
    fs::write(&config, text).expect("a configuration for knotd");
    // Knot chooses its threads' CPUs itself; it is given CPU 0 alone, as the others.
    start("knot", Command::new("taskset").args(["-c", "0"]).arg(program).arg("-c").arg(&config), address)
}

fn start(name: &'static str, command: &mut Command, address: SocketAddr) -> Server {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Server {
        name,
        child: child.unwrap_or_else(|error| panic!("{name}: {error}")),
        address,
        _output: None,
    };
    wait_until_ready(&server);
    server
}

/// Asks for the SOA record until it comes.
fn wait_until_ready(server: &Server) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(server.address).expect("an address");
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
    let query = b"\0\x07\0\0\0\x01\0\0\0\0\0\0\x07example\0\0\x06\0\x01";
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let mut answer = [0; 512];
        let sent = socket.send(query).is_ok();
        if sent && socket.recv(&mut answer).is_ok_and(|length| length > 12 && answer[3] & 0x0f == 0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} does not answer at {}", server.name, server.address);
}
