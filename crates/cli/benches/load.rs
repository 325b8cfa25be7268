//! Comparison of the load generator with dnsperf, alternately, against the same servers: `just
//! bench-load`.
//!
//! The server runs on CPU 0, the generator on CPU 1. The rate shows the capacity of a generator
//! only if the generator, not the server, is the bottleneck; the CPU time per query shows it
//! always. The figures of a generator are those of its whole process.

#[allow(dead_code)] // each benchmark uses its own part
mod common;

use common::{ORIGIN, OURS, argument, generate, prepare, ratio, run, spread};
use nonesuch_lab::peers::find_program;
use nonesuch_net::wait_with_usage;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A generator with its options.
struct Generator {
    name: &'static str,
    command: fn(SocketAddr, &Path, u64) -> Command,
    /// Parses the response rate per second from the output.
    rate: fn(&str) -> Option<f64>,
    /// Parses the number of queries sent from the output.
    sent: fn(&str) -> Option<f64>,
}

const GENERATORS: &[Generator] = &[
    Generator {
        name: "nonesuch load",
        command: |server, queries, seconds| ours(server, queries, seconds, 1),
        rate: |text| json(text, "qps"),
        sent: |text| json(text, "sent"),
    },
    Generator {
        name: "nonesuch load, 16 sockets",
        command: |server, queries, seconds| ours(server, queries, seconds, 16),
        rate: |text| json(text, "qps"),
        sent: |text| json(text, "sent"),
    },
    Generator {
        name: "dnsperf",
        command: |server, queries, seconds| dnsperf(server, queries, seconds, 1),
        rate: |text| line(text, "Queries per second:"),
        sent: |text| line(text, "Queries sent:"),
    },
    Generator {
        name: "dnsperf, 16 clients",
        command: |server, queries, seconds| dnsperf(server, queries, seconds, 16),
        rate: |text| line(text, "Queries per second:"),
        sent: |text| line(text, "Queries sent:"),
    },
];

fn ours(server: SocketAddr, queries: &Path, seconds: u64, sockets: u32) -> Command {
    let mut command = Command::new("taskset");
    command.args([
        "-c",
        "1",
        OURS,
        "load",
        "--do",
        "--json",
        "--outstanding",
        "256",
        "--sockets",
        &sockets.to_string(),
    ]);
    command
        .args(["--server", &server.to_string(), "--seconds", &seconds.to_string(), "--queries"])
        .arg(queries);
    command
}

fn dnsperf(server: SocketAddr, queries: &Path, seconds: u64, clients: u32) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "dnsperf", "-D", "-q", "256", "-T", "1", "-c", &clients.to_string()]);
    command.args(["-s", &server.ip().to_string(), "-p", &server.port().to_string()]);
    command.args(["-l", &seconds.to_string(), "-d"]).arg(queries);
    command
}

fn json(text: &str, key: &str) -> Option<f64> {
    serde_json::from_str::<serde_json::Value>(text).ok()?.get(key)?.as_f64()
}

fn line(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn main() {
    if find_program("taskset").is_none() {
        println!("left out: taskset is not installed");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (names, runs, seconds) = (argument("--names", 1000), argument("--runs", 5), argument("--seconds", 3));
    let (zone, _) = prepare(dir.path(), names);
    let (signed, queries) = (dir.path().join("signed"), dir.path().join("queries"));
    let mut command = Command::new(OURS);
    command.args(["zone", "sign", "-o", ORIGIN, "--denial", "nsec", "--keys"]).arg(dir.path());
    run(command.arg("-f").arg(&signed).arg(&zone));
    let mut command = generate(names);
    run(command.arg("--queries").arg(&queries).arg("-f").arg(dir.path().join("again")));
    println!("{}; {runs} rounds of {seconds} s, 256 queries outstanding, DO set", common::machine());
    println!("ratio: nonesuch load / this, median (least-greatest) of the rounds\n");
    let echo = ["lab", "echo", "--octets", "160"].map(PathBuf::from).to_vec();
    let serve =
        ["serve", "--listen", "127.0.0.1:0", "-o", ORIGIN].map(PathBuf::from).into_iter().chain([signed]);
    for (title, words) in [("an echo of 160 octets", echo), ("a signed zone", serve.collect())] {
        let server = Server::start(&words);
        race(title, server.address, &queries, (runs, seconds));
    }
}

fn race(title: &str, server: SocketAddr, queries: &Path, (runs, seconds): (u64, u64)) {
    let installed =
        |generator: &&Generator| !generator.name.starts_with("dnsperf") || find_program("dnsperf").is_some();
    let generators: Vec<&Generator> = GENERATORS.iter().filter(installed).collect();
    let mut figures: Vec<[Vec<f64>; 3]> = generators.iter().map(|_| Default::default()).collect();
    for _ in 0..runs {
        for (generator, [rates, cpu, busy]) in generators.iter().zip(&mut figures) {
            let (rate, us, share) = measure(generator, &mut (generator.command)(server, queries, seconds));
            rates.push(rate);
            cpu.push(us);
            busy.push(share);
        }
    }
    println!(
        "{title:32} {:>9} {:>8} {:>5}   {:20} ratio of CPU",
        "queries/s", "µs/query", "busy", "ratio of queries/s"
    );
    let ours = &figures[0];
    for (generator, [rates, cpu, busy]) in generators.iter().zip(&figures) {
        println!(
            "  {:30} {:9.0} {:8.2} {:5.2}   {:20} {}",
            generator.name,
            spread(rates).0,
            spread(cpu).0,
            spread(busy).0,
            ratio(&ours[0], rates),
            ratio(&ours[1], cpu)
        );
    }
    println!();
}

/// Responses per second, CPU µs per query sent, and the fraction of the time that the generator
/// used the CPU.
fn measure(generator: &Generator, command: &mut Command) -> (f64, f64, f64) {
    let begun = std::time::Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut text = String::new();
    child.stdout.take().expect("its output").read_to_string(&mut text).expect("text");
    let (status, usage) = wait_with_usage(child).expect("waited for");
    assert!(status.success(), "{}: {status}: {text}", generator.name);
    let spent = (usage.user + usage.system).as_secs_f64();
    let number =
        |read: fn(&str) -> Option<f64>| read(&text).unwrap_or_else(|| panic!("{}: {text}", generator.name));
    (
        number(generator.rate),
        spent * 1e6 / number(generator.sent).max(1.0),
        spent / begun.elapsed().as_secs_f64(),
    )
}

/// A server of this project on CPU 0. It ends on drop.
struct Server {
    child: Child,
    address: SocketAddr,
    _output: BufReader<ChildStdout>,
}

impl Server {
    fn start(words: &[PathBuf]) -> Self {
        let mut command = Command::new(OURS);
        command.args(words).args(["--workers", "1", "--cpus", "0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let address = line.split_whitespace().find_map(|word| word.parse().ok()).expect("an address");
        Self { child, address, _output: output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
