//! Programs of the benchmark: `nonesuch` at each instruction level, and `openssl`.

use super::Parameters;
use crate::experiment::error::RunError;
use crate::experiment::parameters::deduplicate;
use crate::experiment::run::{Findings, RunOptions};
use crate::measure::bench::make_key;
use crate::measure::child::KillOnDrop;
use crate::measure::level::{Environment, Level, LevelProgram};
use crate::measure::openssl::{self, Scheme};
use crate::measure::probe::{self, Answer, Benches, CountResult, Order, Ready, SubjectInfo, push_line};
use crate::measure::{Operation, Subject};
use serde::Serialize;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time limit in addition to the duration of a measurement: for reading keys and generating
/// signatures.
const SPARE: Duration = Duration::from_secs(120);

/// All programs and their subjects.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) probes: Vec<Probe>,
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
        let keys = make_keys(&measured, findings);
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
        let (form, ready) = match &found {
            None => Form::here(keys, options.seed),
            Some(program) => Form::start(program, keys, options.seed)?,
        };
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
        let subjects = ready.subjects.into_iter().map(|facts| facts.subject).collect();
        self.probes.push(Probe { level, subjects, form });
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

/// Generates the keys of the subjects. All levels use the same keys.
fn make_keys(subjects: &[Subject], findings: &mut Findings) -> Vec<(Subject, String)> {
    let mut keys = Vec::new();
    for subject in subjects {
        match make_key(*subject) {
            Ok(key) => keys.push((*subject, key)),
            Err(error) => findings.note(format!("Left out: {subject}: {error}.")),
        }
    }
    keys
}

/// The program `nonesuch` at one level.
pub(super) struct Probe {
    pub(super) level: Level,
    /// Names of the subjects that it can measure.
    subjects: Vec<String>,
    form: Form,
}

enum Form {
    Here(Benches),
    Child(ProbeProcess),
}

impl Form {
    fn here(keys: &[(Subject, String)], seed: u64) -> (Self, Ready) {
        let keys = keys.iter().cloned().map(|(subject, key)| (subject, Ok(key)));
        let (benches, ready) = Benches::prepare(keys, seed);
        (Self::Here(benches), ready)
    }

    fn start(
        program: &LevelProgram,
        keys: &[(Subject, String)],
        seed: u64,
    ) -> Result<(Self, Ready), RunError> {
        let mut follower = ProbeProcess::start(program)?;
        // These keys protect no data: they are not stored after the run.
        let answer = follower.ask(&Order::Prepare { keys: keys.to_vec(), seed }, 0.0)?;
        let Answer::Ready(ready) = answer else { return Err(follower.fault("answers in the wrong order")) };
        Ok((Self::Child(follower), ready))
    }
}

impl Probe {
    pub(super) fn has(&self, subject: Subject) -> bool {
        self.subjects.contains(&subject.to_string())
    }

    pub(super) fn count(
        &mut self,
        subject: Subject,
        operation: Operation,
        seconds: f64,
    ) -> Result<CountResult, RunError> {
        match &mut self.form {
            Form::Here(benches) => benches.count(subject, operation, seconds).map_err(|_| {
                RunError::Operation { subject: subject.to_string(), operation: operation.name() }
            }),
            Form::Child(follower) => {
                match follower.ask(&Order::Count { subject, operation, seconds }, seconds)? {
                    Answer::Counted(counted) => Ok(counted),
                    Answer::Failed(reason) => Err(follower.fault(&reason)),
                    Answer::Ready(_) => Err(follower.fault("answers in the wrong order")),
                }
            }
        }
    }
}

/// A child process that executes orders.
struct ProbeProcess {
    program: String,
    child: KillOnDrop,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl ProbeProcess {
    fn start(program: &LevelProgram) -> Result<Self, RunError> {
        let name = program.program.display().to_string();
        let fault = |reason: String| RunError::Probe { program: name.clone(), reason };
        let mut command = program.command();
        command.args(["lab", "measure", "--follow"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| fault(format!("cannot be started: {error}")))?;
        let mut child = KillOnDrop(child);
        let orders = child.0.stdin.take().ok_or_else(|| fault("has no standard input".to_owned()))?;
        let answers = child.lines();
        Ok(Self { program: name, child, orders, answers })
    }

    fn ask(&mut self, order: &Order, seconds: f64) -> Result<Answer, RunError> {
        // An error is ignored here: if the child has ended, reading its output returns its last
        // answer or the end of the output.
        let _ = push_line(order, &mut self.orders);
        let limit = SPARE + Duration::try_from_secs_f64(seconds * 2.0).unwrap_or_default();
        match self.answers.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).map_err(|_| {
                self.fault("does not answer like this version: build it again from the same sources")
            }),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.fault(&format!("did not answer within {} s", limit.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn fault(&self, reason: &str) -> RunError {
        RunError::Probe { program: self.program.clone(), reason: reason.to_owned() }
    }

    /// Returns an error with the exit status or signal of the child, for example after an illegal
    /// instruction.
    fn ended(&mut self) -> RunError {
        match self.child.end_within(Duration::from_secs(2)) {
            Some(status) => self.fault(&format!("ended with {status}")),
            None => self.fault("closed its output"),
        }
    }
}
