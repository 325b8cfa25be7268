//! Runs jobs as child processes and measures their cost.

use crate::conditions::{Conditions, Limit, OthersCpu};
use nonesuch_net::wait_with_usage;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Maximum number of octets read from each output of a job.
const OUTPUT_MAX: u64 = 1 << 20;
/// Maximum number of characters of a job's message in an error.
const MESSAGE_MAX: usize = 400;

/// Cost and output of a job that has ended successfully.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FinishedJob {
    pub(crate) wall_seconds: f64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    /// Maximum resident memory, in KiB.
    pub(crate) peak_kib: u64,
    pub(crate) output: String,
    pub(crate) conditions: Conditions,
}

/// Reasons why a job has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    #[error("cannot run {}: {source}; build it again", program.display())]
    Run { program: PathBuf, source: io::Error },
    #[error("cannot store the output of a job: {0}; set TMPDIR to another directory")]
    Store(io::Error),
    #[error("{status}; output: {message}")]
    Failed { status: ExitStatus, message: String },
}

impl JobError {
    /// Returns the error of a command that cannot run.
    pub(crate) fn run(command: &Command, source: io::Error) -> Self {
        Self::Run { program: command.get_program().into(), source }
    }
}

impl FinishedJob {
    /// Returns an unsigned integer from the JSON document that the job printed. Returns `None` if
    /// it does not exist.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let document: serde_json::Value = serde_json::from_str(self.output.trim()).ok()?;
        document.get(key)?.as_u64()
    }
}

/// Runs `command` until it ends. Its outputs go to temporary files, so that it never blocks on a
/// full pipe.
pub(crate) fn run(command: &mut Command) -> Result<FinishedJob, JobError> {
    let ((mut out, stdout), (mut err, stderr)) =
        (output_file().map_err(JobError::Store)?, output_file().map_err(JobError::Store)?);
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let others = OthersCpu::begin(None);
    let begun = Instant::now();
    let ended = command.spawn().and_then(wait_with_usage);
    let (status, usage) = ended.map_err(|source| JobError::run(command, source))?;
    let wall_seconds = begun.elapsed().as_secs_f64();
    let others_cpu = others.share();
    let output = text(&mut out).map_err(JobError::Store)?;
    if !status.success() {
        let message = fault_of(&text(&mut err).map_err(JobError::Store)?, &output);
        return Err(JobError::Failed { status, message });
    }
    let [user_seconds, system_seconds] = [usage.user, usage.system].map(|time| time.as_secs_f64());
    let limited_by = Limit::of_program(Some(user_seconds + system_seconds), wall_seconds);
    Ok(FinishedJob {
        wall_seconds,
        user_seconds,
        system_seconds,
        conditions: Conditions { others_cpu, limited_by },
        peak_kib: usage.peak_resident_kib,
        output,
    })
}

/// Returns the line that describes the failure: the first line that contains `error: `, otherwise
/// the last line. Warnings can precede that line, and a usage message can follow it.
fn fault_of(errors: &str, output: &str) -> String {
    let text = if errors.trim().is_empty() { output } else { errors };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.contains("error: ")).or_else(|| lines.next_back());
    line.unwrap_or("nothing").chars().take(MESSAGE_MAX).collect()
}

/// Returns a temporary file, and a handle with which a job writes to it.
fn output_file() -> io::Result<(File, File)> {
    let file = tempfile::tempfile()?;
    let handle = file.try_clone()?;
    Ok((file, handle))
}

fn text(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut octets = Vec::new();
    file.take(OUTPUT_MAX).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    fn shell(script: &str) -> FinishedJob {
        run(Command::new("sh").args(["-c", script])).expect("started")
    }

    #[test]
    fn what_a_job_costs_is_told() {
        // The shell stores a string of 64 MiB, which also needs CPU time.
        let ended = shell("x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo \"{\\\"n\\\": ${#x}}\"");
        assert_eq!(ended.number("n"), Some(67_108_864));
        assert!(ended.peak_kib >= 65_536, "{ended:?}");
        let cpu = ended.user_seconds + ended.system_seconds;
        assert!(cpu > 0.0 && ended.wall_seconds > 0.0, "{ended:?}");
        assert_eq!((ended.number("m"), shell("echo no").number("n")), (None, None));
    }

    #[test]
    fn failure_is_told_in_one_line() {
        let fault = |script: &str| match run(Command::new("sh").args(["-c", script])) {
            Err(JobError::Failed { status, message }) => (status, message),
            other => panic!("{other:?}"),
        };
        for (script, code, line) in [
            ("echo one >&2; echo two >&2; exit 3", 3, "two"),
            ("echo out; exit 1", 1, "out"),
            ("printf 'one\\nx: error: two\\nthree\\n' >&2; exit 2", 2, "x: error: two"),
        ] {
            let (status, message) = fault(script);
            assert_eq!((status.code(), message.as_str()), (Some(code), line));
        }
        assert_eq!(fault("kill -9 $$").0.signal(), Some(9));
        let program = PathBuf::from("/nonexistent/program");
        let error = run(&mut Command::new(&program)).expect_err("no such program");
        assert!(matches!(&error, JobError::Run { program: found, .. } if *found == program), "{error}");
    }
}
