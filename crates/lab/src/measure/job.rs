//! Jobs as processes: run to the end, with what they cost.

use nonesuch_net::wait_with_usage;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Octets of what a job writes that are kept.
const OUTPUT_MAX: u64 = 1 << 20;
/// Characters of what a job said that a fault shows.
const SAID_MAX: usize = 400;

/// A job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FinishedJob {
    pub(crate) wall_seconds: f64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    /// Most resident memory, KiB.
    pub(crate) peak_kib: u64,
    pub(crate) output: String,
}

/// Why a job has no figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    #[error(transparent)]
    Start(#[from] io::Error),
    #[error("{status}; it said: {said}")]
    Failed { status: ExitStatus, said: String },
}

impl FinishedJob {
    /// A whole number of the JSON document that it printed.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let document: serde_json::Value = serde_json::from_str(self.output.trim()).ok()?;
        document.get(key)?.as_u64()
    }
}

/// Runs `command` to its end. Its outputs go to files, so that it never waits for a reader.
pub(crate) fn run(command: &mut Command) -> Result<FinishedJob, JobError> {
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let begun = Instant::now();
    let (status, usage) = wait_with_usage(command.spawn()?)?;
    let wall_seconds = begun.elapsed().as_secs_f64();
    let output = text(&mut out)?;
    if !status.success() {
        return Err(JobError::Failed { status, said: fault_of(&text(&mut err)?, &output) });
    }
    Ok(FinishedJob {
        wall_seconds,
        user_seconds: usage.user.as_secs_f64(),
        system_seconds: usage.system.as_secs_f64(),
        peak_kib: usage.peak_resident_kib,
        output,
    })
}

/// The line that says how a job failed: one that says so, else the last. Warnings come before, usage after.
fn fault_of(said: &str, output: &str) -> String {
    let text = if said.trim().is_empty() { output } else { said };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.contains("error: ")).or_else(|| lines.next_back());
    line.unwrap_or("nothing").chars().take(SAID_MAX).collect()
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

    fn shell(script: &str) -> FinishedJob {
        run(Command::new("sh").args(["-c", script])).expect("started")
    }

    #[test]
    fn what_a_job_costs_is_told() {
        // A string of 64 MiB in the shell; it works for a moment too.
        let ended = shell("x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo \"{\\\"n\\\": ${#x}}\"");
        assert_eq!(ended.number("n"), Some(67_108_864));
        assert!(ended.peak_kib >= 65_536, "{ended:?}");
        let cpu = ended.user_seconds + ended.system_seconds;
        assert!(cpu > 0.0 && ended.wall_seconds > 0.0, "{ended:?}");
        assert_eq!((ended.number("m"), shell("echo no").number("n")), (None, None));
    }

    #[test]
    fn failure_is_told_in_one_line() {
        let fault =
            |script: &str| run(Command::new("sh").args(["-c", script])).expect_err("a fault").to_string();
        assert_eq!(fault("echo one >&2; echo two >&2; exit 3"), "exit status: 3; it said: two");
        assert_eq!(fault("echo out; exit 1"), "exit status: 1; it said: out");
        assert_eq!(
            fault("printf 'one\\nx: error: two\\nthree\\n' >&2; exit 2"),
            "exit status: 2; it said: x: error: two"
        );
        assert!(fault("kill -9 $$").starts_with("signal: 9 (SIGKILL)"));
        assert!(run(&mut Command::new("/nonexistent/program")).is_err());
    }
}
