//! The run: every iteration goes over all subjects, operations and programs in turn.

use super::bench::{Key, PrepareError, make_key};
use super::foreign;
use super::openssl;
use super::parameters::{Cpu, Parameters};
use super::probe::{Answer, Benches, Counted, Order, Ready, push_line};
use super::subject::{Operation, Subject};
use super::{About, Backend, summary};
use crate::experiment::data::{DataTable, Value};
use crate::experiment::error::RunError;
use crate::experiment::level::{Level, LevelProgram};
use crate::experiment::method;
use crate::experiment::run::{Found, RunOptions, Step};
use crate::machine;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What our own rows are called.
pub(super) const NAME: &str = "nonesuch";

/// Beside the seconds that were asked for: reading keys, making signatures.
const SPARE: Duration = Duration::from_secs(120);

/// Runs the benchmark in a thread of its own, so that the caller's is not bound to a CPU.
pub(in crate::experiment) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
) -> Result<Found, RunError> {
    let measured = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let cpu = pin(parameters.cpu)?;
            Runner::prepare(parameters, options, cpu)?.measure()
        });
        work.join()
    });
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Programs that this thread starts keep to its CPU too.
pub(in crate::experiment) fn pin(cpu: Cpu) -> Result<Option<u64>, RunError> {
    let number = match cpu {
        Cpu::None => return Ok(None),
        Cpu::Number(number) => number as usize,
        Cpu::Last => match machine::allowed_cpus().last() {
            Some(last) => *last,
            None => return Ok(None),
        },
    };
    nonesuch_net::pin_current_thread(number).map_err(|source| RunError::Pin { cpu: number, source })?;
    Ok(Some(number as u64))
}

struct Runner<'a> {
    parameters: &'a Parameters,
    options: &'a RunOptions<'a>,
    subjects: Vec<Subject>,
    operations: Vec<Operation>,
    probes: Vec<Probe>,
    about: About,
    /// Name there and scheme of what `openssl` is to time.
    openssl: Vec<(&'static str, &'static str)>,
    /// The levels at which it does, with its environment.
    openssl_levels: Vec<(Level, Vec<(String, String)>)>,
    data: DataTable,
    notes: Vec<String>,
    step: u64,
}

/// What is named twice is measured once.
fn each_once<T: Copy + PartialEq>(named: &[T]) -> Vec<T> {
    let mut kept = Vec::new();
    for item in named {
        if !kept.contains(item) {
            kept.push(*item);
        }
    }
    kept
}

impl<'a> Runner<'a> {
    fn prepare(
        parameters: &'a Parameters,
        options: &'a RunOptions<'a>,
        cpu: Option<u64>,
    ) -> Result<Self, RunError> {
        let mut runner = Self {
            parameters,
            options,
            subjects: Subject::list(&parameters.algorithms, parameters.batch, parameters.vrf_batch),
            operations: each_once(&parameters.operations),
            probes: Vec::new(),
            about: About { cpu, ..About::default() },
            openssl: Vec::new(),
            openssl_levels: Vec::new(),
            data: DataTable::new(summary::columns()),
            notes: Vec::new(),
            step: 0,
        };
        if !parameters.foreign.is_empty() {
            runner.add_foreign(Path::new(&parameters.foreign))?;
        }
        let operations = runner.operations.clone();
        runner.subjects.retain(|subject| operations.iter().any(|operation| subject.has(*operation)));
        (options.progress)(Step { index: 0, steps: 1, what: "making keys" });
        let keys = runner.make_keys();
        for level in each_once(&parameters.levels) {
            runner.add_level(level, &keys)?;
        }
        if parameters.openssl_iterations > 0 {
            runner.add_openssl();
        }
        if runner.about.backends.is_empty() || (runner.about.subjects.is_empty() && runner.openssl.is_empty())
        {
            let reason = match runner.notes.is_empty() {
                true => "name at least one operation, and one level or iterations of openssl".to_owned(),
                false => runner.notes.join(" "),
            };
            return Err(RunError::Nothing { reason });
        }
        Ok(runner)
    }

    /// Takes in what was counted elsewhere, so that the results hold it.
    fn add_foreign(&mut self, path: &Path) -> Result<(), RunError> {
        let found = foreign::read(path)?;
        for count in &found.counts {
            self.data.push(count.cells())?;
        }
        self.about.foreign = Some(found.facts);
        Ok(())
    }

    /// The same keys are used at every level.
    fn make_keys(&mut self) -> Vec<(Subject, Key)> {
        let mut keys: Vec<(Subject, Key)> = Vec::new();
        for subject in &self.subjects {
            match make_key(*subject) {
                Ok(key) => keys.push((*subject, key)),
                Err(error) => self.notes.push(format!("Left out: {subject}: {error}.")),
            }
        }
        keys
    }

    fn add_level(&mut self, level: Level, keys: &[(Subject, Key)]) -> Result<(), RunError> {
        let found = match level.find(self.options.program) {
            Ok(found) => found,
            Err(reason) if self.options.levels_chosen => return Err(RunError::Level { reason }),
            Err(reason) => {
                self.notes.push(format!("Left out: {reason}."));
                return Ok(());
            }
        };
        let environment = found.as_ref().map(|program| program.environment.clone()).unwrap_or_default();
        let (form, ready) = match &found {
            None => Form::here(keys, self.options.seed),
            Some(program) => Form::start(program, keys, self.options.seed)?,
        };
        if ready.version != env!("CARGO_PKG_VERSION") {
            self.notes.push(format!(
                "The program of level {} is of version {}.",
                level.name(),
                ready.version
            ));
        }
        for (subject, reason) in &ready.failed {
            self.notes.push(format!("Left out: {subject} at level {}: {reason}.", level.name()));
        }
        self.about.add_subjects(&ready);
        self.about.backends.push(Backend {
            name: NAME.to_owned(),
            level: level.name().to_owned(),
            version: format!("Nonesuch {}", ready.version),
            environment,
            compiled_for: ready.compiled_for.clone(),
        });
        self.probes.push(Probe { level, ready, form });
        Ok(())
    }

    /// Its own instructions are those of every x86-64; what it chooses when it starts heeds the same mask as aws-lc.
    fn add_openssl(&mut self) {
        let version = match openssl::version() {
            Ok(version) => version,
            Err(reason) => return self.notes.push(format!("Left out: {reason}.")),
        };
        self.openssl = openssl::chosen(&self.subjects).collect();
        if self.openssl.is_empty() {
            return;
        }
        for level in each_once(&self.parameters.levels) {
            // Why a level is left out was said of our own programs.
            let Ok(environment) = level.environment() else { continue };
            self.about.backends.push(Backend {
                name: openssl::NAME.to_owned(),
                level: level.name().to_owned(),
                version: version.clone(),
                environment: environment.clone(),
                ..Backend::default()
            });
            self.openssl_levels.push((level, environment));
        }
    }

    fn measure(mut self) -> Result<Found, RunError> {
        let rounds = self.parameters.iterations.value().max(self.parameters.openssl_iterations);
        for iteration in 0..rounds {
            if iteration < self.parameters.iterations.value() {
                self.measure_ours(iteration)?;
            }
            if iteration < self.parameters.openssl_iterations {
                self.measure_openssl(iteration)?;
            }
        }
        self.notes.extend(summary::disturbance(&self.data));
        let about = method::About::VerificationBenchmark(self.about);
        Ok(Found { about, data: self.data, notes: self.notes })
    }

    fn measure_ours(&mut self, iteration: u32) -> Result<(), RunError> {
        for subject in self.subjects.clone() {
            for operation in self.operations.clone().into_iter().filter(|operation| subject.has(*operation)) {
                for place in 0..self.probes.len() {
                    self.tell(&subject.to_string());
                    let probe = &mut self.probes[place];
                    if !probe.has(subject) {
                        continue;
                    }
                    let counted = probe.count(subject, operation, self.parameters.seconds.value())?;
                    let level = self.probes[place].level.name();
                    let row = Row {
                        iteration,
                        backend: NAME,
                        level,
                        subject: &subject.to_string(),
                        scheme: &subject.scheme(),
                        library: subject.library(),
                        operation,
                    };
                    self.data.push(row.cells(counted))?;
                }
            }
        }
        Ok(())
    }

    fn measure_openssl(&mut self, iteration: u32) -> Result<(), RunError> {
        for (name, scheme) in self.openssl.clone() {
            for (level, environment) in self.openssl_levels.clone() {
                self.tell(&format!("openssl {name}"));
                match openssl::speed(name, self.parameters.openssl_seconds.value(), &environment) {
                    Ok(counts) => self.keep_openssl(iteration, (name, scheme), level, counts)?,
                    Err(reason) => {
                        // What fails once is left out from there on.
                        self.notes.push(format!("Left out: openssl {name}: {reason}."));
                        self.openssl.retain(|(other, _)| *other != name);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn keep_openssl(
        &mut self,
        iteration: u32,
        (subject, scheme): (&str, &str),
        level: Level,
        counts: Vec<(Operation, Counted)>,
    ) -> Result<(), RunError> {
        let (backend, library, level) = (openssl::NAME, openssl::NAME, level.name());
        for (operation, counted) in counts {
            if self.operations.contains(&operation) {
                let row = Row { iteration, backend, level, subject, scheme, library, operation };
                self.data.push(row.cells(counted))?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, what: &str) {
        let pairs =
            |operation: &Operation| self.subjects.iter().filter(|subject| subject.has(*operation)).count();
        let pairs: usize = self.operations.iter().map(pairs).sum();
        let ours = pairs as u64 * self.probes.len() as u64 * u64::from(self.parameters.iterations.value());
        let rounds = self.openssl_levels.len() as u64 * u64::from(self.parameters.openssl_iterations);
        let theirs = self.openssl.len() as u64 * rounds;
        (self.options.progress)(Step { index: self.step, steps: ours + theirs, what });
        self.step += 1;
    }
}

/// What a row of the data is of.
struct Row<'r> {
    iteration: u32,
    backend: &'static str,
    level: &'static str,
    subject: &'r str,
    scheme: &'r str,
    library: &'static str,
    operation: Operation,
}

impl Row<'_> {
    /// In the order of [`summary::columns`].
    fn cells(&self, counted: Counted) -> Vec<Value> {
        vec![
            Value::Integer(i64::from(self.iteration)),
            Value::text(self.backend),
            Value::text(self.level),
            Value::text(self.subject),
            Value::text(self.scheme),
            Value::text(self.library),
            Value::text(self.operation.name()),
            Value::count(counted.operations),
            Value::Number(counted.seconds),
            Value::number(counted.cpu_seconds),
            // Instructions are counted elsewhere.
            Value::Missing,
            Value::Missing,
            Value::Missing,
        ]
    }
}

/// A program that measures.
struct Probe {
    level: Level,
    ready: Ready,
    form: Form,
}

enum Form {
    /// This one.
    Here(Benches),
    /// Another one.
    Child(Follower),
}

impl Form {
    fn here(keys: &[(Subject, Key)], seed: u64) -> (Self, Ready) {
        let read =
            |subject: Subject, key: &Key| -> Result<Key, PrepareError> { Key::read(subject, &key.to_text()) };
        let keys = keys.iter().map(|(subject, key)| (*subject, read(*subject, key)));
        let (benches, ready) = Benches::prepare(keys, seed);
        (Self::Here(benches), ready)
    }

    fn start(program: &LevelProgram, keys: &[(Subject, Key)], seed: u64) -> Result<(Self, Ready), RunError> {
        let mut follower = Follower::start(program)?;
        // These keys protect nothing: they are forgotten after the run.
        let keys = keys.iter().map(|(subject, key)| (*subject, key.to_text())).collect();
        let answer = follower.ask(&Order::Prepare { keys, seed }, 0.0)?;
        let Answer::Ready(ready) = answer else { return Err(follower.fault("answers out of turn")) };
        Ok((Self::Child(follower), ready))
    }
}

impl Probe {
    fn has(&self, subject: Subject) -> bool {
        let name = subject.to_string();
        self.ready.subjects.iter().any(|facts| facts.subject == name)
    }

    fn count(&mut self, subject: Subject, operation: Operation, seconds: f64) -> Result<Counted, RunError> {
        match &mut self.form {
            Form::Here(benches) => benches.count(subject, operation, seconds).map_err(|_| {
                RunError::Operation { subject: subject.to_string(), operation: operation.name() }
            }),
            Form::Child(follower) => {
                match follower.ask(&Order::Count { subject, operation, seconds }, seconds)? {
                    Answer::Counted(counted) => Ok(counted),
                    Answer::Failed(reason) => Err(follower.fault(&reason)),
                    Answer::Ready(_) => Err(follower.fault("answers out of turn")),
                }
            }
        }
    }
}

/// A child process that follows orders. It is ended with this value.
struct Follower {
    program: String,
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Follower {
    fn start(program: &LevelProgram) -> Result<Self, RunError> {
        let name = program.program.display().to_string();
        let fault = |reason: String| RunError::Probe { program: name.clone(), reason };
        let mut child = program
            .command()
            .args(["lab", "measure", "--follow"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| fault(format!("cannot be started: {error}")))?;
        let (Some(orders), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fault("has no standard input and output".to_owned()));
        };
        let (sender, answers) = channel();
        // It ends with the child's output.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { program: name, child, orders, answers })
    }

    fn ask(&mut self, order: &Order, seconds: f64) -> Result<Answer, RunError> {
        // One that has ended may have said something before, and else its output is at its end.
        let _ = push_line(order, &mut self.orders);
        let limit = SPARE + Duration::try_from_secs_f64(seconds * 2.0).unwrap_or_default();
        match self.answers.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).map_err(|_| {
                self.fault("does not answer as this version does: build it anew from the same sources")
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

    /// An illegal instruction shows as its signal.
    fn ended(&mut self) -> RunError {
        let end = Instant::now() + Duration::from_secs(2);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return self.fault(&format!("ended with {status}")),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                _ => return self.fault("closed its output"),
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
