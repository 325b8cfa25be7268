//! Programs that count operations at an instruction level: `nonesuch` and `openssl`. Both describe
//! their results in the same form.

use super::level::{Environment, Level, LevelProgram};
use super::openssl::{self, OpensslError, Scheme};
use super::probe::{self, CountResult, ImplementationInfo, Ready, SubjectInfo};
use super::prober::{Prober, ProberError};
use super::subject::{Operation, Subject};
use crate::conditions::{Conditions, Limit, OthersCpu};
use nonesuch_crypto::AT_RUN_TIME;
use serde::Serialize;
use std::collections::BTreeMap;

/// Description of a program at a level.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BackendInfo {
    /// Name: `nonesuch` or `openssl`.
    name: &'static str,
    pub(crate) level: &'static str,
    /// Version that the program reports.
    pub(crate) version: String,
    environment: Environment,
    /// CPU features above the architecture's baseline that the compiler could use in the whole
    /// program.
    compiled_for: Vec<String>,
}

/// Result of one measurement: cells of a row. Texts are empty and figures `None` if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct MeasurementRow {
    /// Name of the program: `nonesuch` or `openssl`.
    pub(crate) backend: &'static str,
    /// Instruction level, or the processor for counted instructions.
    pub(crate) level: String,
    /// Algorithm or VRF, and key length if it has several.
    pub(crate) subject: String,
    /// Name of the signature scheme or VRF.
    pub(crate) scheme: String,
    #[serde(flatten)]
    pub(crate) code: ImplementationInfo,
    pub(crate) operation: &'static str,
    /// Number of operations. In a batch, each signature or proof counts.
    pub(crate) operations: u64,
    /// Wall time; `None` for counted instructions.
    pub(crate) seconds: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
    /// Mean number of instructions for an operation; `None` for measured times.
    pub(crate) instructions: Option<u64>,
    /// Lowest mean of a round of the instruction count.
    pub(crate) instructions_least: Option<u64>,
    /// Highest mean of a round of the instruction count.
    pub(crate) instructions_most: Option<u64>,
    #[serde(flatten)]
    pub(crate) conditions: Conditions,
}

/// Returns the properties of the subjects, from the first program that reports them, without their
/// code: each program has other code, which the rows name.
pub(crate) fn merge_subjects<'b>(programs: impl IntoIterator<Item = &'b Ready>) -> Vec<SubjectInfo> {
    let mut found: Vec<SubjectInfo> = Vec::new();
    for info in programs.into_iter().flat_map(|ready| &ready.subjects) {
        if found.iter().all(|known| known.subject != info.subject) {
            found.push(SubjectInfo { implementations: BTreeMap::new(), ..info.clone() });
        }
    }
    found
}

impl MeasurementRow {
    /// Adds the counted operations. `others_cpu` is the share of the CPU time that others used.
    fn with_count(self, operation: Operation, counted: &CountResult, others_cpu: Option<f64>) -> Self {
        let limited_by = Limit::of_program(counted.cpu_seconds, counted.seconds);
        Self {
            conditions: Conditions { others_cpu, limited_by },
            operation: operation.name(),
            operations: counted.operations,
            seconds: Some(counted.seconds),
            cpu_seconds: counted.cpu_seconds,
            ..self
        }
    }
}

/// `nonesuch` at a level, with prepared subjects.
pub(crate) struct ProberBackend {
    level: Level,
    /// `None` for this process.
    pub(crate) program: Option<LevelProgram>,
    pub(crate) prober: Prober,
}

impl ProberBackend {
    /// Prepares the subjects of `keys` in the program of a level, or in this process if `program`
    /// is `None`. `commit` is the commit of this process.
    pub(crate) fn prepare(
        level: Level,
        program: Option<LevelProgram>,
        keys: &[(Subject, String)],
        seed: u64,
        commit: &str,
    ) -> Result<Self, ProberError> {
        let prober = Prober::prepare(program.as_ref(), keys, seed, commit)?;
        Ok(Self { level, program, prober })
    }

    /// Returns the description of the program.
    pub(crate) fn info(&self) -> BackendInfo {
        BackendInfo {
            name: probe::NAME,
            level: self.level.name(),
            version: format!("Nonesuch {}", self.prober.ready.version),
            environment: self.program.as_ref().map(|program| program.environment).unwrap_or_default(),
            compiled_for: self.prober.ready.compiled_for.clone(),
        }
    }

    /// Repeats an operation of a subject for `seconds`. Returns `None` if the program cannot
    /// measure the subject.
    pub(crate) fn count(
        &mut self,
        subject: Subject,
        operation: Operation,
        seconds: f64,
    ) -> Result<Option<MeasurementRow>, ProberError> {
        let Some(info) = self.prober.info(subject).cloned() else { return Ok(None) };
        let others = OthersCpu::begin(None);
        let counted = self.prober.count(subject, operation, seconds)?;
        let others = others.share();
        let measured = MeasurementRow {
            backend: probe::NAME,
            level: self.level.name().to_owned(),
            subject: info.subject,
            scheme: info.scheme,
            code: info.implementations.get(operation.name()).cloned().unwrap_or_default(),
            ..MeasurementRow::default()
        };
        Ok(Some(measured.with_count(operation, &counted, others)))
    }
}

/// `openssl` at the levels that this machine supports. It is built for the baseline of x86-64. The
/// mask for aws-lc also limits the code that it selects at run time.
#[derive(Default)]
pub(crate) struct OpensslBackend {
    pub(crate) schemes: Vec<Scheme>,
    pub(crate) levels: Vec<(Level, Environment)>,
    /// Version that the program reports; empty if no schemes are measured.
    pub(crate) version: String,
}

impl OpensslBackend {
    /// Finds the schemes that `openssl` and `subjects` have in common.
    pub(crate) fn find(subjects: &[Subject], levels: &[Level]) -> Result<Self, OpensslError> {
        let version = openssl::version()?;
        let environment = |level: &Level| level.environment().ok().map(|environment| (*level, environment));
        let schemes: Vec<Scheme> = openssl::chosen(subjects).collect();
        let levels: Vec<_> = levels.iter().filter_map(environment).collect();
        if schemes.is_empty() || levels.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self { schemes, levels, version })
    }

    /// Returns the description of the program at each level.
    pub(crate) fn infos(&self) -> impl Iterator<Item = BackendInfo> {
        self.levels.iter().map(|(level, environment)| BackendInfo {
            name: openssl::NAME,
            level: level.name(),
            version: self.version.clone(),
            environment,
            compiled_for: Vec::new(),
        })
    }

    /// Measures both operations of a scheme for `seconds` each.
    pub(crate) fn count(
        scheme: Scheme,
        (level, environment): (Level, Environment),
        seconds: u32,
    ) -> Result<Vec<(Operation, MeasurementRow)>, OpensslError> {
        let others = OthersCpu::begin(None);
        let counts = openssl::speed(scheme.openssl_name, seconds, environment)?;
        // One call of `openssl speed` measures all operations of a scheme.
        let others = others.share();
        let measured = |count: &openssl::OperationTiming| {
            let measured = MeasurementRow {
                backend: openssl::NAME,
                level: level.name().to_owned(),
                subject: scheme.openssl_name.to_owned(),
                scheme: scheme.label.to_owned(),
                code: ImplementationInfo {
                    library: openssl::NAME.to_owned(),
                    kernel: AT_RUN_TIME.to_owned(),
                    instruction_set: AT_RUN_TIME.to_owned(),
                    batch: Some(1),
                },
                ..MeasurementRow::default()
            };
            (count.operation, measured.with_count(count.operation, &count.measured, others))
        };
        Ok(counts.iter().map(measured).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::make_key;
    use super::*;
    use serde_json::json;

    #[test]
    fn measurements_name_the_program_and_its_code() {
        let subject: Subject = "ED25519*64".parse().expect("a subject");
        let keys = [(subject, make_key(subject).expect("a key"))];
        let mut backend = ProberBackend::prepare(Level::Native, None, &keys, 1, "abc").expect("prepared");
        assert_eq!((backend.info().name, backend.info().level), ("nonesuch", "native"));
        let ready = &backend.prober.ready;
        let merged = merge_subjects([ready, ready]);
        // The subject occurs once, without the code of the first program.
        assert_eq!((ready.subjects[0].implementations.len(), merged.len()), (1, 1));
        assert!(json!(merged[0]).get("implementations").is_none());
        let measured = backend.count(subject, Operation::Verify, 1e-4).expect("counted").expect("prepared");
        assert_eq!((measured.subject.as_str(), measured.operation), ("ED25519*64", "verify"));
        assert_eq!((measured.code.library.as_str(), measured.code.batch), ("nonesuch + crrl", Some(64)));
        assert!(measured.operations > 0 && measured.seconds.is_some());
        let other: Subject = "ED448".parse().expect("a subject");
        assert_eq!(backend.count(other, Operation::Verify, 1e-4).expect("not an error"), None);
    }
}
