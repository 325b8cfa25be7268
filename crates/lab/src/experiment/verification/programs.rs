//! Programs of the benchmark: `nonesuch` at each instruction level, and `openssl`.

use super::Parameters;
use crate::experiment::error::RunError;
use crate::experiment::parameters::deduplicate;
use crate::experiment::run::{Findings, RunOptions};
use crate::measure::Subject;
use crate::measure::level::{Environment, Level};
use crate::measure::openssl::{self, Scheme};
use crate::measure::probe::{self, SubjectInfo};
use crate::measure::prober::Prober;
use serde::Serialize;

/// All programs and their subjects.
#[derive(Default)]
pub(super) struct Programs {
    /// `nonesuch` at each level.
    pub(super) probers: Vec<(Level, Prober)>,
    pub(super) measured: Vec<Subject>,
    pub(super) openssl: Vec<Scheme>,
    /// Levels at which `openssl` is measured.
    pub(super) openssl_levels: Vec<Level>,
    /// All programs, in the order of columns and bars.
    pub(super) backends: Vec<Backend>,
    /// Properties of the subjects, from the first program that reports them.
    pub(super) subjects: Vec<SubjectInfo>,
    /// Octets of each signed message; 0 if the subjects are only VRFs.
    pub(super) message_octets: u64,
}

/// A program that measures at one instruction level.
#[derive(Serialize)]
pub(super) struct Backend {
    /// Name: `nonesuch` or `openssl`.
    name: &'static str,
    level: &'static str,
    /// Version that the program reports.
    version: String,
    environment: Environment,
    /// CPU features above the architecture's baseline that the compiler could use in the whole
    /// program.
    compiled_for: Vec<String>,
}

impl Programs {
    pub(super) fn prepare(
        parameters: &Parameters,
        options: &RunOptions<'_>,
        findings: &mut Findings,
    ) -> Result<Self, RunError> {
        let mut measured = Subject::list(&parameters.algorithms, parameters.batch, parameters.vrf_batch);
        measured.retain(|subject| parameters.operations.iter().any(|operation| subject.has(*operation)));
        options.begin(0, 1, "generating keys");
        let mut programs = Self::default();
        let keys = findings.make_keys(&measured);
        programs.measured = measured;
        let levels = deduplicate(parameters.levels.iter().copied());
        for level in &levels {
            programs.add_level(*level, &keys, options, findings)?;
        }
        if parameters.openssl_iterations > 0 {
            programs.add_openssl(&levels, findings);
        }
        if programs.backends.is_empty() || (programs.subjects.is_empty() && programs.openssl.is_empty()) {
            let reason = match findings.notes.is_empty() {
                true => "set at least one operation, and one level or iterations of openssl".to_owned(),
                false => findings.notes.join(" "),
            };
            return Err(RunError::Nothing { reason });
        }
        Ok(programs)
    }

    fn add_level(
        &mut self,
        level: Level,
        keys: &[(Subject, String)],
        options: &RunOptions<'_>,
        findings: &mut Findings,
    ) -> Result<(), RunError> {
        let Some(found) = findings.level_or_note(options, level.find(options.program))? else {
            return Ok(());
        };
        let program = found.as_ref().map_or(options.program, |found| &found.program);
        let (prober, ready) = Prober::prepare(found.as_ref(), keys, options.seed)
            .map_err(|source| RunError::Prober { program: program.to_path_buf(), source })?;
        findings.check_version(level, &ready.version);
        for (subject, reason) in &ready.failed {
            findings.note(format!("Left out: {subject} at level {}: {reason}.", level.name()));
        }
        for facts in &ready.subjects {
            if !self.subjects.iter().any(|known| known.subject == facts.subject) {
                self.subjects.push(facts.clone());
            }
        }
        self.message_octets = self.message_octets.max(ready.message_octets);
        self.backends.push(Backend {
            name: probe::NAME,
            level: level.name(),
            version: format!("Nonesuch {}", ready.version),
            environment: found.map(|program| program.environment).unwrap_or_default(),
            compiled_for: ready.compiled_for,
        });
        self.probers.push((level, prober));
        Ok(())
    }

    /// Adds `openssl` at each level. It is built for the baseline of x86-64. The mask for aws-lc
    /// also limits the code that it selects at run time.
    fn add_openssl(&mut self, levels: &[Level], findings: &mut Findings) {
        let version = match openssl::version() {
            Ok(version) => version,
            Err(reason) => return findings.note(format!("Left out: {reason}.")),
        };
        self.openssl = openssl::chosen(&self.measured).collect();
        if self.openssl.is_empty() {
            return;
        }
        for level in levels {
            // The machine does not support the level. The notes already contain this reason for
            // `nonesuch`.
            let Ok(environment) = level.environment() else { continue };
            self.backends.push(Backend {
                name: openssl::NAME,
                level: level.name(),
                version: version.clone(),
                environment,
                compiled_for: Vec::new(),
            });
            self.openssl_levels.push(*level);
        }
    }
}
