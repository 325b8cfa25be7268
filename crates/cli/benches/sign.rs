//! Signing and verifying a TLD-like zone with P-256, beside the installed peers, in turn: `just bench-sign`.
//!
//! Every program signs the same zone file with two threads and writes a zone file; CPU and wall seconds are those
//! of the whole process. Each round runs every program once; ratios are taken round by round.

mod peers;

use peers::{MODES, Mode, ORIGIN, OURS, argument, find, prepare, ratio, run, spread};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// One program doing one job.
struct Contestant {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Contestant {
    fn new(name: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        Self { name, command: Box::new(command), cpu: Vec::new(), wall: Vec::new() }
    }
}

fn main() {
    let (names, runs) = (argument("--names", 100_000), argument("--runs", 5));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (zone, keys) = prepare(dir.path(), names);
    println!("{}; {names} delegations, ECDSAP256SHA256, KSK and ZSK, {runs} rounds", peers::machine());
    println!("ratio: ours / theirs, median (least-greatest) of the rounds\n");
    for mode in MODES {
        let mut signers = signers(mode, &zone, &keys, dir.path());
        race(&mut signers, runs);
        print(&format!("sign, {}", mode.name()), &signers);
        let signed = dir.path().join("ours.signed");
        let mut verifiers = verifiers(&signed, &keys, dir.path());
        race(&mut verifiers, runs);
        print(&format!("verify, {}", mode.name()), &verifiers);
    }
}

fn race(contestants: &mut [Contestant], runs: u64) {
    for _ in 0..runs {
        for contestant in contestants.iter_mut() {
            let (cpu, wall) = measure(&mut (contestant.command)());
            contestant.cpu.push(cpu);
            contestant.wall.push(wall);
        }
    }
}

/// CPU and wall seconds of a command that runs to the end.
fn measure(command: &mut Command) -> (f64, f64) {
    let (begun, before) = (Instant::now(), children_cpu());
    run(command);
    (children_cpu() - before, begun.elapsed().as_secs_f64())
}

/// CPU seconds of all children that have ended: fields cutime and cstime of proc(5), in ticks of 10 ms.
fn children_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / 100.0
}

fn print(job: &str, contestants: &[Contestant]) {
    println!("{job:24} {:>8} {:>8}   {:18} ratio of wall", "CPU s", "wall s", "ratio of CPU");
    let Some(ours) = contestants.first() else { return };
    for contestant in contestants {
        let (cpu, wall) = (spread(&contestant.cpu).0, spread(&contestant.wall).0);
        let ratios = if contestant.name == ours.name {
            (String::new(), String::new())
        } else {
            (ratio(&ours.cpu, &contestant.cpu), ratio(&ours.wall, &contestant.wall))
        };
        println!("  {:22} {cpu:8.2} {wall:8.2}   {:18} {}", contestant.name, ratios.0, ratios.1);
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
        verifiers.push(Contestant::new("ldns-verify-zone", move || {
            let mut command = Command::new(&program);
            command.arg("-V1").arg("-k").arg(&key).arg(&signed);
            command
        }));
    }
    verifiers
}
