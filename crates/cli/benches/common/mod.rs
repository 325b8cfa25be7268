//! Functions that the benchmarks share: the zone and keys, programs, medians and ratios.

use nonesuch_lab::load::QueryList;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The measured program.
pub(crate) const OURS: &str = env!("CARGO_BIN_EXE_nonesuch");
/// Apex of the generated zone.
pub(crate) const ORIGIN: &str = "example.";

/// A denial mode, and the options that select it in each program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Nsec,
    Nsec3,
    OptOut,
}

pub(crate) const MODES: [Mode; 3] = [Mode::Nsec, Mode::Nsec3, Mode::OptOut];

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nsec => "nsec",
            Self::Nsec3 => "nsec3",
            Self::OptOut => "nsec3-opt-out",
        }
    }
}

/// The options `--names N --runs N --seconds S`, for a shorter measurement than the default.
pub(crate) fn argument<T: std::str::FromStr>(name: &str, default: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let value = arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
    value.and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs a command to its end, and panics with its output if it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {}{text}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Generates a zone with P-256 keys in `dir`. Returns the zone file and the base names of KSK and
/// ZSK.
pub(crate) fn prepare(dir: &Path, names: u64) -> (PathBuf, [String; 2]) {
    let zone = dir.join("zone");
    run(generate(names).arg("-f").arg(&zone));
    let key = |flag: &[&str]| {
        let made = run(Command::new(OURS).args(["key", "generate", ORIGIN]).args(flag).arg("--dir").arg(dir));
        made.trim().to_owned()
    };
    (zone, [key(&["--ksk"]), key(&[])])
}

/// The command that generates the zone.
pub(crate) fn generate(names: u64) -> Command {
    let mut command = Command::new(OURS);
    command.args(["zone", "generate", "--like", "tld", "--seed", "1", "-o", ORIGIN, "--names"]);
    command.arg(names.to_string());
    command
}

/// Queries for the zone. `denied` is the percentage of queries for names that do not exist.
pub(crate) fn queries(dir: &Path, names: u64, name: &str, denied: &str) -> Arc<QueryList> {
    let path = dir.join(format!("queries-{name}"));
    let mut command = generate(names);
    command.args(["--query-count", "200000", "--denied", denied, "--queries"]).arg(&path);
    // The zone file already exists, so this one goes to another file.
    run(command.arg("-f").arg(dir.join("again")));
    Arc::new(QueryList::from_file(&path).expect("queries"))
}

/// Median, minimum and maximum.
pub(crate) fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    (middle, sorted[0], sorted[sorted.len() - 1])
}

/// Median, minimum and maximum of the ratios of two columns, by run.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> String {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let (median, least, greatest) = spread(&ratios);
    format!("{median:.2} ({least:.2}-{greatest:.2})")
}

/// A description of the machine in one line.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    format!("{}, {cores} cores", model.unwrap_or("unknown CPU"))
}
