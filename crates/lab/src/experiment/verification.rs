//! The verification benchmark: number of signatures that one core verifies and generates in a
//! second, and number of NSEC5 VRF proofs.
//!
//! The method is that of "The Performance Impact of Elliptic Curve Cryptography on DNSSEC
//! Validation" (IEEE/ACM Transactions on Networking 25(2), 2017): iterations of continuous
//! operation for some seconds, in which the operations are counted, and ratios to RSA and ECDSA.
//! Each iteration measures all algorithms, operations and instruction levels in turn, so that a
//! disturbance of the machine affects all of them.

mod parameters;
mod programs;

pub(crate) use parameters::Parameters;

use self::programs::Programs;
use super::error::RunError;
use super::parameters::deduplicate;
use super::run::{Findings, RunOptions};
use crate::measure::probe::NAME;
use crate::measure::{CountResult, Operation, foreign, openssl};
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// Share of the measured wall time in which the thread does not have the CPU. Above it, the report
/// contains a warning.
const MAX_LOST_CPU_SHARE: f64 = 0.02;

/// A row of the data: a measurement, or instructions that `tools/foreign` counted.
#[derive(Default, Serialize)]
struct Row<'r> {
    /// Number of the iteration, starting at 0; `None` for counted instructions.
    iteration: Option<u32>,
    /// Program that measured: `nonesuch` or `openssl`.
    backend: &'r str,
    /// Instruction level, or the processor for counted instructions.
    level: &'r str,
    /// Algorithm or VRF, and key length if it has several.
    subject: String,
    /// Name of the signature scheme or VRF.
    scheme: String,
    library: &'r str,
    operation: &'static str,
    /// Number of operations. In a batch, each signature or proof counts.
    operations: u64,
    /// Wall time; `None` for counted instructions.
    seconds: Option<f64>,
    /// CPU time; `None` if the system or program does not provide it.
    cpu_seconds: Option<f64>,
    /// Mean number of instructions for an operation; `None` for measured times.
    instructions: Option<u64>,
    /// Lowest mean of a round of the instruction count.
    instructions_least: Option<u64>,
    /// Highest mean of a round of the instruction count.
    instructions_most: Option<u64>,
}

impl Row<'_> {
    /// Adds the result of a measurement to the row.
    fn with_count(self, operation: Operation, counted: &CountResult) -> Self {
        Self {
            operation: operation.name(),
            operations: counted.operations,
            seconds: Some(counted.seconds),
            cpu_seconds: counted.cpu_seconds,
            ..self
        }
    }
}

/// Runs the benchmark and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    parameters.cpu.run_bound(|cpu| {
        let foreign = match parameters.foreign.as_str() {
            "" => None,
            path => Some(add_foreign(Path::new(path), findings)?),
        };
        let mut runner = Runner {
            parameters,
            options,
            programs: Programs::prepare(parameters, options, findings)?,
            operations: deduplicate(parameters.operations.iter().copied()),
            step: 0,
            wall: 0.0,
            cpu: 0.0,
        };
        runner.measure(findings)?;
        findings.notes.extend(disturbance(runner.wall, runner.cpu));
        let Programs { backends, subjects, message_octets, .. } = &runner.programs;
        let mut about =
            json!({ "backends": backends, "subjects": subjects, "message_octets": message_octets, "cpu": cpu });
        if let Some(foreign) = foreign {
            about["foreign"] = json!(foreign);
        }
        Ok(about)
    })
}

/// Adds the rows of a file of instruction counts to the data, so that the results contain them.
fn add_foreign(path: &Path, findings: &mut Findings) -> Result<foreign::ForeignCountsInfo, RunError> {
    let found = foreign::read(path)?;
    for count in &found.counts {
        let library = if count.backend == NAME { count.subject.library() } else { openssl::NAME };
        findings.push(&Row {
            backend: count.backend,
            level: &count.processor,
            subject: count.subject.to_string(),
            scheme: count.subject.scheme(),
            library,
            operation: count.operation.name(),
            operations: count.operations,
            instructions: Some(count.instructions),
            instructions_least: Some(count.least),
            instructions_most: Some(count.most),
            ..Row::default()
        })?;
    }
    Ok(found.facts)
}

struct Runner<'a> {
    parameters: &'a Parameters,
    options: &'a RunOptions<'a>,
    programs: Programs,
    operations: Vec<Operation>,
    step: usize,
    /// Wall time of all measurements with known CPU time, and this CPU time, in seconds.
    wall: f64,
    cpu: f64,
}

impl Runner<'_> {
    fn measure(&mut self, findings: &mut Findings) -> Result<(), RunError> {
        let Parameters { iterations, openssl_iterations, .. } = *self.parameters;
        for iteration in 0..iterations.value().max(openssl_iterations) {
            if iteration < iterations.value() {
                self.measure_ours(iteration, findings)?;
            }
            if iteration < openssl_iterations {
                self.measure_openssl(iteration, findings)?;
            }
        }
        Ok(())
    }

    fn measure_ours(&mut self, iteration: u32, findings: &mut Findings) -> Result<(), RunError> {
        for subject in self.programs.measured.clone() {
            for operation in self.operations.clone().into_iter().filter(|operation| subject.has(*operation)) {
                for place in 0..self.programs.probes.len() {
                    self.begin(&subject.to_string());
                    let probe = &mut self.programs.probes[place];
                    if !probe.has(subject) {
                        continue;
                    }
                    let counted = probe.count(subject, operation, self.parameters.seconds.value())?;
                    if let Some(cpu_seconds) = counted.cpu_seconds {
                        self.wall += counted.seconds;
                        self.cpu += cpu_seconds;
                    }
                    let row = Row {
                        iteration: Some(iteration),
                        backend: NAME,
                        level: probe.level.name(),
                        subject: subject.to_string(),
                        scheme: subject.scheme(),
                        library: subject.library(),
                        ..Row::default()
                    };
                    findings.push(&row.with_count(operation, &counted))?;
                }
            }
        }
        Ok(())
    }

    fn measure_openssl(&mut self, iteration: u32, findings: &mut Findings) -> Result<(), RunError> {
        for scheme in self.programs.openssl.clone() {
            for place in 0..self.programs.openssl_levels.len() {
                self.begin(&format!("openssl {}", scheme.openssl_name));
                let level = self.programs.openssl_levels[place];
                let environment = level.environment().unwrap_or_default();
                let seconds = self.parameters.openssl_seconds.value();
                let counts = match openssl::speed(scheme.openssl_name, seconds, environment) {
                    Ok(counts) => counts,
                    Err(reason) => {
                        // The run omits a scheme after its first failure.
                        findings.note(format!("Left out: openssl {}: {reason}.", scheme.openssl_name));
                        self.programs.openssl.retain(|other| other.openssl_name != scheme.openssl_name);
                        break;
                    }
                };
                for count in counts.iter().filter(|count| self.operations.contains(&count.operation)) {
                    let row = Row {
                        iteration: Some(iteration),
                        backend: openssl::NAME,
                        level: level.name(),
                        subject: scheme.openssl_name.to_owned(),
                        scheme: scheme.label.to_owned(),
                        library: openssl::NAME,
                        ..Row::default()
                    };
                    findings.push(&row.with_count(count.operation, &count.measured))?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, what: &str) {
        let pairs = |operation: &Operation| {
            self.programs.measured.iter().filter(|subject| subject.has(*operation)).count()
        };
        let pairs: usize = self.operations.iter().map(pairs).sum();
        let Parameters { iterations, openssl_iterations, .. } = self.parameters;
        let ours = pairs * self.programs.probes.len() * iterations.value() as usize;
        let rounds = self.programs.openssl_levels.len() * *openssl_iterations as usize;
        self.options.begin(self.step, ours + self.programs.openssl.len() * rounds, what);
        self.step += 1;
    }
}

/// Returns a warning if other programs used the CPU during the measurement. `wall` and `cpu` are in
/// seconds.
fn disturbance(wall: f64, cpu: f64) -> Option<String> {
    let lost = 1.0 - cpu / wall;
    (wall > 0.0 && lost > MAX_LOST_CPU_SHARE).then(|| {
        format!(
            "Other programs used the processor for {:.0} % of the time: on average, the rates are too low by \
            this percentage, and they vary more than on an idle machine.",
            100.0 * lost
        )
    })
}

#[cfg(test)]
pub(crate) mod tests;
