//! Signing and verifying a TLD-like zone with P-256, beside the installed peers, in turn: `just bench-sign`.
//!
//! Every program signs the same zone file with two threads and writes a zone file; CPU and wall seconds are those
//! of the whole process, memory the most that it had resident. Each round runs every program once; ratios are taken
//! round by round. What ours takes beside the signatures is its CPU time less that of as many signatures, made by
//! as many threads in the same round.

#[allow(dead_code)] // each benchmark uses its own part
mod peers;

use nonesuch_crypto::{Algorithm, PrivateKey, sign_batch};
use peers::{MODES, Mode, ORIGIN, OURS, argument, find, prepare, ratio, spread};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Octets of signed data of an NSEC RRset, about.
const MESSAGE: usize = 80;
/// Signatures that a thread makes to measure the rate.
const SIGNATURES: usize = 20_000;

/// One program doing one job.
struct Contestant {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    cpu: Vec<f64>,
    wall: Vec<f64>,
    /// The most that was resident, MiB.
    memory: Vec<f64>,
}

impl Contestant {
    fn new(name: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        Self { name, command: Box::new(command), cpu: Vec::new(), wall: Vec::new(), memory: Vec::new() }
    }
}

fn main() {
    let (names, runs) = (argument("--names", 100_000), argument("--runs", 5));
    // `--alone 1`: without the peers, for zones that would take them hours.
    let most = if argument("--alone", 0) == 1 { 1 } else { usize::MAX };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (zone, keys) = prepare(dir.path(), names);
    println!("{}; {names} delegations, ECDSAP256SHA256, KSK and ZSK, {runs} rounds", peers::machine());
    println!("ratio: ours / theirs, median (least-greatest) of the rounds\n");
    for mode in MODES {
        let mut signers = signers(mode, &zone, &keys, dir.path());
        signers.truncate(most);
        let rates = race(&mut signers, runs, true);
        print(&format!("sign, {}", mode.name()), &signers);
        let signed = dir.path().join("ours.signed");
        print_beside(&signers, &signed, &rates);
        let mut verifiers = verifiers(&signed, &keys, dir.path());
        verifiers.truncate(most);
        race(&mut verifiers, runs, false);
        print(&format!("verify, {}", mode.name()), &verifiers);
    }
}

/// Runs all in turn; returns the CPU seconds of a signature in each round, where they are wanted.
fn race(contestants: &mut [Contestant], runs: u64, signing: bool) -> Vec<f64> {
    let mut rates = Vec::new();
    for _ in 0..runs {
        for contestant in contestants.iter_mut() {
            let (cpu, wall, memory) = measure(&mut (contestant.command)());
            contestant.cpu.push(cpu);
            contestant.wall.push(wall);
            contestant.memory.push(memory);
        }
        rates.extend(signing.then(seconds_per_signature));
    }
    rates
}

/// CPU seconds of a P-256 signature while every core makes some.
fn seconds_per_signature() -> f64 {
    let key = PrivateKey::generate(Algorithm::ECDSAP256SHA256, None).expect("a key");
    let messages: Vec<Vec<u8>> = (0..SIGNATURES).map(|number| vec![number as u8; MESSAGE]).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let before = cpu_of(&["utime", "stime"]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| sign_batch(&key, &messages, &mut Vec::new()).expect("signatures"));
        }
    });
    (cpu_of(&["utime", "stime"]) - before) / (threads * SIGNATURES) as f64
}

/// CPU and wall seconds of a command that runs to the end, and the most MiB that it had resident.
fn measure(command: &mut Command) -> (f64, f64, f64) {
    let (begun, before) = (Instant::now(), cpu_of(&["cutime", "cstime"]));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (status, mut memory) = (format!("/proc/{}/status", child.id()), 0.0);
    // The kernel keeps the maximum: only what grows in the last milliseconds is missed.
    let wall = loop {
        if let Some(ended) = child.try_wait().expect("a child") {
            let wall = begun.elapsed().as_secs_f64();
            assert!(ended.success(), "{command:?} failed");
            break wall;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        memory = kib.map_or(memory, |kib: f64| kib / 1024.0);
        std::thread::sleep(Duration::from_millis(5));
    };
    (cpu_of(&["cutime", "cstime"]) - before, wall, memory)
}

/// CPU seconds of this process or of all children that have ended: fields of proc_pid_stat(5), in ticks of 10 ms.
fn cpu_of(fields: &[&str]) -> f64 {
    const BEHIND_NAME: [(&str, usize); 4] = [("utime", 11), ("stime", 12), ("cutime", 13), ("cstime", 14)];
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let values: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| values.get(at).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
    BEHIND_NAME.iter().filter(|(name, _)| fields.contains(name)).map(|(_, at)| ticks(*at)).sum::<f64>()
        / 100.0
}

/// What signing takes beside the signatures, against the signatures.
fn print_beside(signers: &[Contestant], signed: &Path, rates: &[f64]) {
    let text = fs::read_to_string(signed).expect("our signed zone");
    let signatures = text.lines().filter(|line| line.contains("\tRRSIG\t")).count() as f64;
    let Some(ours) = signers.first() else { return };
    let shares: Vec<f64> =
        ours.cpu.iter().zip(rates).map(|(cpu, rate)| 100.0 * (cpu / (rate * signatures) - 1.0)).collect();
    let micros: Vec<f64> = ours.cpu.iter().map(|cpu| cpu / signatures * 1e6).collect();
    let ((share, least, greatest), micros, rate) = (spread(&shares), spread(&micros).0, spread(rates).0);
    println!(
        "  {signatures} signatures of {:.1} us CPU; ours {micros:.1} us in all: {share:.0} % ({least:.0}-{greatest:.0}) \
         beside them; wall {:.2} x CPU\n",
        rate * 1e6,
        spread(&ours.wall).0 / spread(&ours.cpu).0
    );
}

fn print(job: &str, contestants: &[Contestant]) {
    println!(
        "{job:24} {:>8} {:>8} {:>9}   {:18} ratio of wall",
        "CPU s", "wall s", "peak MiB", "ratio of CPU"
    );
    let Some(ours) = contestants.first() else { return };
    for contestant in contestants {
        let (cpu, wall) = (spread(&contestant.cpu).0, spread(&contestant.wall).0);
        let memory = spread(&contestant.memory).0;
        let ratios = if contestant.name == ours.name {
            (String::new(), String::new())
        } else {
            (ratio(&ours.cpu, &contestant.cpu), ratio(&ours.wall, &contestant.wall))
        };
        println!("  {:22} {cpu:8.2} {wall:8.2} {memory:9.0}   {:18} {}", contestant.name, ratios.0, ratios.1);
    }
    println!();
}

fn signers(mode: Mode, zone: &Path, keys: &[String; 2], dir: &Path) -> Vec<Contestant> {
    let (zone, dir, keys) = (zone.to_path_buf(), dir.to_path_buf(), keys.clone());
    let mut signers = vec![{
        let (zone, dir) = (zone.clone(), dir.clone());
        Contestant::new("nonesuch zone sign", move || {
            let mut command = Command::new(OURS);
            command.args(["zone", "sign", "-o", ORIGIN, "--denial", mode.name(), "--keys"]).arg(&dir);
            command.arg("-f").arg(dir.join("ours.signed")).arg(&zone);
            command
        })
    }];
    if let Some(program) = find("kzonesign") {
        let config = knot_config(mode, &zone, &dir);
        signers.push(Contestant::new("kzonesign", move || {
            let mut command = Command::new(&program);
            command.arg("-c").arg(&config).arg("-o").arg(config.with_extension("out")).arg(ORIGIN);
            command
        }));
    }
    if let Some(program) = find("ldns-signzone") {
        let (zone, dir, keys) = (zone.clone(), dir.clone(), keys);
        signers.push(Contestant::new("ldns-signzone", move || {
            let mut command = Command::new(&program);
            command.current_dir(&dir).args(["-o", ORIGIN, "-f"]).arg(dir.join("ldns.signed"));
            match mode {
                Mode::Nsec => {}
                Mode::Nsec3 => {
                    command.args(["-n", "-t", "0"]);
                }
                Mode::OptOut => {
                    command.args(["-n", "-p", "-t", "0"]);
                }
            }
            command.arg(&zone).args(&keys);
            command
        }));
    }
    if let Some(program) = find("dnssec-signzone") {
        signers.push(Contestant::new("dnssec-signzone", move || {
            let mut command = Command::new(&program);
            command.current_dir(&dir).args(["-q", "-n", "2", "-o", ORIGIN, "-f", "bind.signed", "-S", "-K"]);
            command.arg(&dir);
            match mode {
                Mode::Nsec => {}
                Mode::Nsec3 => {
                    command.args(["-3", "-", "-H", "0"]);
                }
                Mode::OptOut => {
                    command.args(["-3", "-", "-H", "0", "-A"]);
                }
            }
            // -P: without the verification that other programs leave to their verifiers.
            command.arg("-P").arg(&zone);
            command
        }));
    }
    signers
}

/// A configuration of its own with keys of its own for each mode.
fn knot_config(mode: Mode, zone: &Path, dir: &Path) -> PathBuf {
    let folder = dir.join(format!("knot-{}", mode.name()));
    let config = folder.join("knot.conf");
    fs::create_dir_all(config.with_extension("out")).expect("a folder for kzonesign");
    let (nsec3, opt_out) = match mode {
        Mode::Nsec => ("off", "off"),
        Mode::Nsec3 => ("on", "off"),
        Mode::OptOut => ("on", "on"),
    };
    let text = format!(
        "server:\n  rundir: {folder}\n  background-workers: 2\ndatabase:\n  storage: {folder}\npolicy:\n  - id: p\n    algorithm: \
         ecdsap256sha256\n    signing-threads: 2\n    nsec3: {nsec3}\n    nsec3-opt-out: {opt_out}\n    nsec3-iterations: 0\n    \
         nsec3-salt-length: 0\ntemplate:\n  - id: default\n    dnssec-policy: p\n    dnssec-signing: on\n    \
         journal-content: none\n    zonefile-load: whole\nzone:\n  - domain: {ORIGIN}\n    file: {zone}\n",
        folder = folder.display(),
        zone = zone.display()
    );
    fs::write(&config, text).expect("a configuration for kzonesign");
    config
}

fn verifiers(signed: &Path, keys: &[String; 2], dir: &Path) -> Vec<Contestant> {
    let (signed, key) = (signed.to_path_buf(), dir.join(format!("{}.key", keys[0])));
    let mut verifiers = vec![{
        let signed = signed.clone();
        Contestant::new("nonesuch zone verify", move || {
            let mut command = Command::new(OURS);
            command.args(["zone", "verify", "-o", ORIGIN]).arg(&signed);
            command
        })
    }];
    if let Some(program) = find("dnssec-verify") {
        let signed = signed.clone();
        verifiers.push(Contestant::new("dnssec-verify", move || {
            let mut command = Command::new(&program);
            command.args(["-q", "-o", ORIGIN]).arg(&signed);
            command
        }));
    }
    if let Some(program) = find("ldns-verify-zone") {
        let signed = signed.clone();
        verifiers.push(Contestant::new("ldns-verify-zone", move || {
            let mut command = Command::new(&program);
            command.arg("-V1").arg("-k").arg(&key).arg(&signed);
            command
        }));
    }
    if let Some(program) = find("kzonecheck") {
        verifiers.push(Contestant::new("kzonecheck", move || {
            let mut command = Command::new(&program);
            command.args(["-d", "on", "-o", ORIGIN]).arg(&signed);
            command
        }));
    }
    verifiers
}
