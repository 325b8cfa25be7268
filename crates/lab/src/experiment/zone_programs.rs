//! Programs that sign and verify zones: nonesuch and programs of other projects.
//!
//! Each signer signs the same zone file with a KSK and a ZSK of the same algorithm, and writes a
//! zone file. Each verifier verifies the zone that nonesuch signed. A round runs each program once
//! for each algorithm and denial mechanism; all rounds of one combination run before the next. CPU
//! time, wall time and memory are those of the whole process.

mod programs;

use super::error::{RunError, temporary_directory};
use super::parameters::{Count, PresignedMechanism, deduplicate};
use super::run::{Findings, RunOptions};
use crate::conditions::Conditions;
use crate::generate::{GenerateOptions, ZoneModel};
use crate::measure::AlgorithmChoice;
use crate::measure::job;
use crate::measure::key_files::{WriteError, write_signing_keys};
use crate::measure::prepare::write_generated;
use crate::measure::zone_preparation::{ZonePreparationError, generate_keys};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::keys::KeyTimes;
use programs::{PROGRAMS, Program, Task, Work};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Apex of the zone.
const ORIGIN: &str = "example.";

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of measured rounds. A round runs each program once for each algorithm and denial
    /// mechanism; all rounds of one combination run before the next.
    pub rounds: Count,
    /// Number of delegations of the generated zone.
    pub names: Count,
    /// Algorithms of the keys.
    pub algorithms: Vec<AlgorithmChoice>,
    /// Denial mechanisms.
    pub denial: Vec<PresignedMechanism>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            rounds: Count::of(2),
            names: Count::of(4000),
            algorithms: vec![AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None }],
            denial: [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut]
                .map(PresignedMechanism)
                .to_vec(),
        }
    }
}

impl Parameters {
    /// Returns the approximate duration. A program needs about 100 µs for each name, and 300 µs with
    /// RSA, because most programs sign slowly with it.
    pub fn duration(&self) -> Duration {
        let each = |choice: &AlgorithmChoice| if choice.bits.is_some() { 3e-4 } else { 1e-4 };
        let each_name: f64 = self.algorithms.iter().map(each).sum();
        let runs = self.denial.len() * PROGRAMS.len() * (self.rounds.value() as usize + 1);
        let seconds = f64::from(self.names.value()) * each_name * runs as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// A row of the data: one run of a program.
#[derive(Serialize)]
struct Row<'r> {
    /// Number of the round, starting at 0.
    round: u32,
    task: Task,
    program: &'r str,
    scheme: &'r str,
    denial: &'r str,
    user_s: f64,
    system_s: f64,
    wall_s: f64,
    /// Maximum resident memory, in KiB.
    peak_kib: u64,
    #[serde(flatten)]
    conditions: Conditions,
}

/// Runs the experiment and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    if parameters.algorithms.is_empty() || parameters.denial.is_empty() {
        return Err(findings.nothing_to_measure("set algorithms and denial"));
    }
    let temporary = temporary_directory(&std::env::temp_dir())?;
    options.begin(0, 1, "generating the zone");
    let zone = temporary.path().join("zone");
    let names = parameters.names.value().into();
    let like = ZoneModel::Tld;
    write_generated(&GenerateOptions { like, names, seed: options.seed, origin: ORIGIN }, &zone)?;
    let installed: Vec<&Program> =
        PROGRAMS.iter().filter(|program| findings.found_or_note(program.find()).is_some()).collect();
    for program in &installed {
        if let Some(version) = program.version() {
            findings.peers.insert(program.name.to_owned(), version);
        }
    }
    let algorithms = deduplicate(parameters.algorithms.iter().map(|choice| choice.with_default_key_length()));
    let denial = deduplicate(parameters.denial.clone());
    let steps = algorithms.len() * denial.len();
    for (index, (choice, denial)) in
        algorithms.iter().flat_map(|choice| denial.iter().map(move |denial| (choice, denial.0))).enumerate()
    {
        let directory = temporary.path().join(index.to_string());
        let work = Work::prepare(options.program, &zone, &directory, *choice, denial, options.now)?;
        let step = StepProgress { options, index, steps, rounds: parameters.rounds.value() };
        measure(&work, &installed, &step, findings)?;
    }
    findings.note_failures();
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "names": parameters.names.value(),
    }))
}

fn write_error(path: &Path, source: std::io::Error) -> RunError {
    ZonePreparationError::from(WriteError { path: path.to_owned(), source }).into()
}

/// The position of a combination of algorithm and denial mechanism in the experiment, for the
/// progress.
struct StepProgress<'p, 'a> {
    options: &'p RunOptions<'a>,
    index: usize,
    steps: usize,
    rounds: u32,
}

/// Runs each program in each round, after a round that is not measured. A program that fails is not
/// run again.
fn measure(
    work: &Work<'_>,
    programs: &[&Program],
    step: &StepProgress<'_, '_>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let mut programs = programs.to_vec();
    let (scheme, denial) = (work.choice.scheme(), work.denial.to_string());
    for round in 0..=step.rounds {
        let mut failed = Vec::new();
        for program in &programs {
            let what = format!("{scheme} {denial}: {}", program.name);
            step.options.begin(step.index, step.steps, &what);
            match job::run(&mut program.command(work)?) {
                Ok(finished) if round > 0 => findings.push(&Row {
                    round: round - 1,
                    task: program.task,
                    program: program.name,
                    scheme: &scheme,
                    denial: &denial,
                    user_s: finished.user_seconds,
                    system_s: finished.system_seconds,
                    wall_s: finished.wall_seconds,
                    peak_kib: finished.peak_kib,
                    conditions: finished.conditions,
                })?,
                Ok(_) => {}
                Err(reason) => {
                    findings.record_failure(program.name, format!("{scheme} {denial}"), &reason);
                    failed.push(program.name);
                }
            }
        }
        programs.retain(|program| !failed.contains(&program.name));
    }
    Ok(())
}

impl<'a> Work<'a> {
    /// Generates keys in `directory`, which is created. They are active since `now`.
    fn prepare(
        program: &'a Path,
        zone: &'a Path,
        directory: &Path,
        choice: AlgorithmChoice,
        denial: Mechanism,
        now: u32,
    ) -> Result<Self, RunError> {
        let apex = ORIGIN.parse().map_err(|fault| {
            RunError::from(super::server_load::ZoneSourceError::Origin(ORIGIN.to_owned(), fault))
        })?;
        let keys = generate_keys(&apex, &[choice], false)?;
        write_signing_keys(directory, &keys, &KeyTimes::active_since(now))
            .map_err(ZonePreparationError::from)?;
        let key_names = keys.keys().iter().map(|key| key.base_name()).collect();
        Ok(Self { program, zone, directory: directory.to_owned(), key_names, choice, denial })
    }
}

#[cfg(test)]
mod tests;
