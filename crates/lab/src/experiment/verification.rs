//! The verification benchmark: number of signatures that one core verifies and generates in a
//! second, and number of NSEC5 VRF proofs.
//!
//! The method is that of "The Performance Impact of Elliptic Curve Cryptography on DNSSEC
//! Validation" (IEEE/ACM Transactions on Networking 25(2), 2017): iterations of continuous
//! operation for some seconds, in which the operations are counted, and ratios to RSA and ECDSA.
//! Each iteration measures all algorithms, operations and instruction levels in turn, so that a
//! disturbance of the machine affects all of them.

mod parameters;

pub(crate) use parameters::Parameters;

use super::error::RunError;
use super::parameters::deduplicate;
use super::run::{Findings, RunOptions};
use crate::measure::backend::{BackendInfo, MeasurementRow, OpensslBackend, ProberBackend, merge_subjects};
use crate::measure::probe::Ready;
use crate::measure::{Operation, Subject, foreign, openssl};
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// A row of the data: a measurement, or instructions that `tools/foreign` counted.
#[derive(Serialize)]
struct Row {
    /// Number of the iteration, starting at 0; `None` for counted instructions.
    iteration: Option<u32>,
    #[serde(flatten)]
    measured: MeasurementRow,
}

/// Runs the benchmark and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    parameters.cpu.run_bound(|cpu| {
        let foreign = Some(Path::new(&parameters.foreign)).filter(|path| !path.as_os_str().is_empty());
        let foreign = foreign.map(|path| add_foreign(path, findings)).transpose()?;
        let mut runner = Runner::prepare(parameters, options, findings)?;
        runner.measure(findings)?;
        findings.check_disturbance();
        Ok(json!({
            "backends": runner.backends(),
            "subjects": merge_subjects(runner.ready()),
            // 0 if the subjects are only VRFs.
            "message_octets": runner.ready().map(|ready| ready.message_octets).max().unwrap_or_default(),
            "cpu": cpu,
            "foreign": foreign,
        }))
    })
}

/// Adds the rows of a file of instruction counts to the data, so that the results contain them.
fn add_foreign(path: &Path, findings: &mut Findings) -> Result<foreign::ForeignCountsInfo, RunError> {
    let found = foreign::read(path)?;
    for count in found.counts {
        findings.push(&Row { iteration: None, measured: count.into() })?;
    }
    Ok(found.info)
}

struct Runner<'a> {
    parameters: &'a Parameters,
    options: &'a RunOptions<'a>,
    subjects: Vec<Subject>,
    operations: Vec<Operation>,
    /// `nonesuch` at each level.
    ours: Vec<ProberBackend>,
    openssl: OpensslBackend,
    /// Number of started steps.
    step: usize,
}

impl<'a> Runner<'a> {
    fn prepare(
        parameters: &'a Parameters,
        options: &'a RunOptions<'a>,
        findings: &mut Findings,
    ) -> Result<Self, RunError> {
        let mut runner = Self {
            parameters,
            options,
            subjects: Subject::list(&parameters.algorithms, parameters.batch, parameters.vrf_batch),
            operations: deduplicate(parameters.operations.iter().copied()),
            ours: Vec::new(),
            openssl: OpensslBackend::default(),
            step: 0,
        };
        runner.subjects.retain(|subject| runner.operations.iter().any(|operation| subject.has(*operation)));
        options.begin(0, 1, "generating keys");
        let keys = findings.make_keys(&runner.subjects);
        let levels = deduplicate(parameters.levels.iter().copied());
        for level in &levels {
            runner.ours.extend(findings.prepare_level(options, *level, &keys)?);
        }
        if parameters.openssl_iterations > 0 {
            let found = OpensslBackend::find(&runner.subjects, &levels);
            runner.openssl = findings.found_or_note(found).unwrap_or_default();
            if !runner.openssl.schemes.is_empty() {
                findings.peers.insert(openssl::NAME.to_owned(), runner.openssl.version.clone());
            }
        }
        let has_subjects = runner.ready().any(|ready| !ready.subjects.is_empty());
        if has_subjects || !runner.openssl.schemes.is_empty() {
            return Ok(runner);
        }
        Err(findings.nothing_to_measure("set at least one operation, and one level or iterations of openssl"))
    }

    /// Returns what `nonesuch` reports at each level.
    fn ready(&self) -> impl Iterator<Item = &Ready> {
        self.ours.iter().map(|backend| &backend.prober.ready)
    }

    /// Returns all programs, in the order of columns and bars.
    fn backends(&self) -> Vec<BackendInfo> {
        self.ours.iter().map(ProberBackend::info).chain(self.openssl.infos()).collect()
    }

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
        for subject in self.subjects.clone() {
            for operation in self.operations.clone().into_iter().filter(|operation| subject.has(*operation)) {
                for place in 0..self.ours.len() {
                    self.begin(&subject.to_string());
                    let counted = self.ours[place].count(subject, operation, self.parameters.seconds.value());
                    let counted = counted.map_err(|source| {
                        self.options.prober_fault(self.ours[place].program.as_ref(), source)
                    })?;
                    let Some(measured) = counted else { continue };
                    findings.add_times(measured.seconds, measured.cpu_seconds);
                    findings.push(&Row { iteration: Some(iteration), measured })?;
                }
            }
        }
        Ok(())
    }

    fn measure_openssl(&mut self, iteration: u32, findings: &mut Findings) -> Result<(), RunError> {
        for scheme in self.openssl.schemes.clone() {
            for level in self.openssl.levels.clone() {
                self.begin(&format!("openssl {}", scheme.openssl_name));
                let counts =
                    match OpensslBackend::count(scheme, level, self.parameters.openssl_seconds.value()) {
                        Ok(counts) => counts,
                        Err(reason) => {
                            // The run omits a scheme after its first failure.
                            findings.note(format!("Left out: openssl {}: {reason}.", scheme.openssl_name));
                            self.openssl.schemes.retain(|other| *other != scheme);
                            break;
                        }
                    };
                for (_, measured) in counts.into_iter().filter(|(found, _)| self.operations.contains(found)) {
                    findings.push(&Row { iteration: Some(iteration), measured })?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, what: &str) {
        let pairs = Subject::count_pairs(&self.subjects, &self.operations);
        let Parameters { iterations, openssl_iterations, .. } = self.parameters;
        let ours = pairs * self.ours.len() * iterations.value() as usize;
        let rounds = self.openssl.levels.len() * *openssl_iterations as usize;
        self.options.begin(self.step, ours + self.openssl.schemes.len() * rounds, what);
        self.step += 1;
    }
}

#[cfg(test)]
pub(crate) mod tests;
