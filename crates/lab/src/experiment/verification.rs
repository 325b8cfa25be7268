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
use crate::measure::{CountResult, Operation, Subject, foreign, openssl};
use nonesuch_crypto::AT_RUN_TIME;
use serde::Serialize;
use serde_json::json;
use std::path::Path;

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
    /// Form of the library's arithmetic and its instruction set; empty if unknown.
    kernel: &'r str,
    instruction_set: &'r str,
    /// Number of operations that are performed together; `None` if unknown.
    batch: Option<u16>,
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
        findings.check_disturbance(runner.wall, runner.cpu);
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
        let ours = count.subject.implementation(count.operation).filter(|_| count.backend == NAME);
        let library = ours.map_or(openssl::NAME, |found| found.library);
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
                for place in 0..self.programs.probers.len() {
                    self.begin(&subject.to_string());
                    self.measure_subject(place, subject, operation, iteration, findings)?;
                }
            }
        }
        Ok(())
    }

    /// Measures an operation of a subject in the program at `place`. Does nothing if this program
    /// cannot measure the subject.
    fn measure_subject(
        &mut self,
        place: usize,
        subject: Subject,
        operation: Operation,
        iteration: u32,
        findings: &mut Findings,
    ) -> Result<(), RunError> {
        let (level, prober) = &mut self.programs.probers[place];
        let Some(info) = prober.info(subject).cloned() else { return Ok(()) };
        let counted = prober
            .count(subject, operation, self.parameters.seconds.value())
            .map_err(|source| RunError::Prober { program: self.options.program.to_path_buf(), source })?;
        if let Some(cpu_seconds) = counted.cpu_seconds {
            self.wall += counted.seconds;
            self.cpu += cpu_seconds;
        }
        let implementation = info.implementations.get(operation.name());
        let row = Row {
            iteration: Some(iteration),
            backend: NAME,
            level: level.name(),
            subject: info.subject.clone(),
            scheme: info.scheme.clone(),
            library: implementation.map_or("", |found| &found.library),
            kernel: implementation.map_or("", |found| &found.kernel),
            instruction_set: implementation.map_or("", |found| &found.instruction_set),
            batch: implementation.map(|found| found.batch),
            ..Row::default()
        };
        findings.push(&row.with_count(operation, &counted))
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
                        kernel: AT_RUN_TIME,
                        instruction_set: AT_RUN_TIME,
                        batch: Some(1),
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
        let ours = pairs * self.programs.probers.len() * iterations.value() as usize;
        let rounds = self.programs.openssl_levels.len() * *openssl_iterations as usize;
        self.options.begin(self.step, ours + self.programs.openssl.len() * rounds, what);
        self.step += 1;
    }
}

#[cfg(test)]
pub(crate) mod tests;
