//! Counts operations in a program: in this process, or in a child process that executes orders.
//! Thus a run can alternate between programs for different instruction levels.

use super::child::KillOnDrop;
use super::level::LevelProgram;
use super::probe::{
    Answer, Benches, CountError, CountResult, FORMAT, ImplementationInfo, Order, Ready, SubjectInfo,
    push_line,
};
use super::subject::{AlgorithmChoice, Operation, Selection, Subject};
use std::io;
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time limit in addition to the duration of a measurement: for reading keys and generating
/// signatures.
const SPARE: Duration = Duration::from_secs(120);
/// Time limit for the end of a process that has closed its output.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Reasons why a program does not measure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProberError {
    #[error("cannot be started: {0}; build it again with `tools/build-level`")]
    Start(#[from] io::Error),
    #[error("has no standard input; run the experiment again")]
    Input,
    #[error("answers in the wrong order; build it again from the same sources")]
    Order,
    #[error("does not answer like this version: build it again from the same sources")]
    Form,
    #[error("did not answer within {seconds} s; end other programs and run the experiment again")]
    Late { seconds: u64 },
    #[error("ended with {0}; build it again with `tools/build-level`")]
    Ended(ExitStatus),
    #[error("closed its output; build it again with `tools/build-level`")]
    Closed,
    #[error("{0}; omit it with `--set algorithms=`")]
    Failed(String),
    #[error("{0}; omit it with `--set algorithms=`")]
    Operation(#[from] CountError),
}

/// A program with prepared subjects. Dropping it ends a child process.
pub(crate) struct Prober {
    /// Description of the program and of the subjects that it can measure.
    pub(crate) ready: Ready,
    form: Form,
}

enum Form {
    Here(Benches),
    Child(Follower),
}

impl Prober {
    /// Prepares the subjects with their keys. `program` is `None` for this process. `seed`
    /// determines messages and VRF inputs. `commit` is the commit of this process.
    pub(crate) fn prepare(
        program: Option<&LevelProgram>,
        keys: &[(Subject, String)],
        seed: u64,
        commit: &str,
    ) -> Result<Self, ProberError> {
        let (form, ready) = match program {
            None => {
                let keys = keys.iter().cloned().map(|(subject, key)| (subject, Ok(key)));
                let (benches, ready) = Benches::prepare(keys, seed, commit);
                (Form::Here(benches), ready)
            }
            Some(program) => {
                let mut follower = Follower::start(program)?;
                // These keys protect no data: they are not stored after the run.
                let Answer::Ready(ready) =
                    follower.ask(&Order::Prepare { keys: keys.to_vec(), seed }, 0.0)?
                else {
                    return Err(ProberError::Order);
                };
                (Form::Child(follower), ready)
            }
        };
        require_format(&ready)?;
        Ok(Self { ready, form })
    }

    /// Returns the properties of a subject, or `None` if the program cannot measure it.
    pub(crate) fn info(&self, subject: Subject) -> Option<&SubjectInfo> {
        let name = subject.to_string();
        self.ready.subjects.iter().find(|info| info.subject == name)
    }

    /// Returns the code with which the program performs an operation for many signatures of one
    /// key: that of batches if the subject has batches of `batch` signatures, otherwise that of
    /// single signatures. `None` if the subject is not prepared.
    pub(crate) fn implementation(
        &self,
        choice: AlgorithmChoice,
        batch: u16,
        operation: Operation,
    ) -> Option<&ImplementationInfo> {
        let selection = Selection::Signatures(choice);
        [Some(batch), None]
            .into_iter()
            .filter_map(|batch| self.info(Subject { selection, batch }))
            .find_map(|info| info.implementations.get(operation.name()))
    }

    /// Repeats an operation of a subject for `seconds` and counts the operations.
    pub(crate) fn count(
        &mut self,
        subject: Subject,
        operation: Operation,
        seconds: f64,
    ) -> Result<CountResult, ProberError> {
        match &mut self.form {
            Form::Here(benches) => Ok(benches.count(subject, operation, seconds)?),
            Form::Child(follower) => {
                match follower.ask(&Order::Count { subject, operation, seconds }, seconds)? {
                    Answer::Counted(counted) => Ok(counted),
                    Answer::Failed(reason) => Err(ProberError::Failed(reason)),
                    Answer::Ready(_) => Err(ProberError::Order),
                }
            }
        }
    }
}

/// Fails if the program has another version of the JSON format.
fn require_format(ready: &Ready) -> Result<(), ProberError> {
    if ready.format == FORMAT { Ok(()) } else { Err(ProberError::Form) }
}

/// A child process that executes orders.
struct Follower {
    child: KillOnDrop,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Follower {
    fn start(program: &LevelProgram) -> Result<Self, ProberError> {
        let mut command = program.command();
        command.args(["lab", "measure", "--follow"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = KillOnDrop(command.spawn()?);
        let orders = child.0.stdin.take().ok_or(ProberError::Input)?;
        let answers = child.lines();
        Ok(Self { child, orders, answers })
    }

    fn ask(&mut self, order: &Order, seconds: f64) -> Result<Answer, ProberError> {
        // An error is ignored here: if the child has ended, reading its output returns its last
        // answer or the end of the output.
        let _ = push_line(order, &mut self.orders);
        let limit = SPARE + Duration::try_from_secs_f64(seconds * 2.0).unwrap_or_default();
        match self.answers.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).map_err(|_| ProberError::Form),
            Err(RecvTimeoutError::Timeout) => Err(ProberError::Late { seconds: limit.as_secs() }),
            // The status can be a signal, for example after an illegal instruction.
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.child.end_within(END_LIMIT).map_or(ProberError::Closed, ProberError::Ended))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::make_key;
    use super::*;
    use std::path::Path;

    fn subject(name: &str) -> Subject {
        name.parse().expect("a subject")
    }

    #[test]
    fn this_process_measures_and_describes_its_code() {
        let keys = ["ED25519", "ED25519*64"].map(|name| {
            let subject = subject(name);
            (subject, make_key(subject).expect("a key"))
        });
        let mut prober = Prober::prepare(None, &keys, 1, "abc").expect("prepared");
        assert_eq!((prober.ready.subjects.len(), prober.ready.commit.as_str()), (2, "abc"));
        let counted = prober.count(subject("ED25519*64"), Operation::Verify, 1e-4).expect("counted");
        assert!(counted.operations > 0, "{counted:?}");
        let lost = prober.count(subject("ED448"), Operation::Verify, 1e-4).expect_err("not prepared");
        assert!(matches!(lost, ProberError::Operation(CountError::Unprepared(_))), "{lost}");
        // Only verification has batches.
        let choice = subject("ED25519").choice().expect("a choice");
        let of = |operation| prober.implementation(choice, 64, operation).expect("known");
        assert_eq!(
            (of(Operation::Verify).library.as_str(), of(Operation::Verify).batch),
            ("nonesuch + crrl", Some(64))
        );
        assert_eq!((of(Operation::Sign).library.as_str(), of(Operation::Sign).batch), ("aws-lc", Some(1)));
        assert_eq!(prober.implementation(choice, 64, Operation::Prove), None);
    }

    #[test]
    fn programs_that_do_not_follow_are_told() {
        let fault = |program: &str| {
            let program = LevelProgram::native(Path::new(program));
            Prober::prepare(Some(&program), &[], 1, "abc").err().expect("a fault")
        };
        assert!(matches!(fault("/nonexistent/nonesuch"), ProberError::Start(_)));
        let ProberError::Ended(status) = fault("/bin/false") else { panic!("it ended") };
        assert_eq!(status.code(), Some(1));
        // `echo` prints its arguments, which are no answer.
        assert!(matches!(fault("/bin/echo"), ProberError::Form));
        let older = Ready { format: FORMAT - 1, ..Ready::default() };
        assert!(matches!(require_format(&older), Err(ProberError::Form)));
    }
}
