//! `nonesuch plan record` as a child process.

use crate::cost_model::Recording;
use crate::measure::child::KillOnDrop;
use crate::measure::server::log_end;
use crate::testbed::TestbedError;
use nonesuch_net::{ProcessSignal, signal_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Time limit for the recorder to be ready, and to end.
const LIMIT: Duration = Duration::from_secs(60);
/// Length of a window, in seconds.
const WINDOW: &str = "1";

/// A running recorder. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Recorder {
    child: KillOnDrop,
    lines: Receiver<String>,
    directory: PathBuf,
    log: PathBuf,
}

impl Recorder {
    /// Starts a recorder that writes to `directory`. `source`: the arguments that name the resolver.
    pub(super) fn start(
        program: &Path,
        source: &[(&str, &Path)],
        directory: &Path,
    ) -> Result<Self, TestbedError> {
        let log = directory.with_extension("log");
        let file = File::create(&log).map_err(|source| TestbedError::Write { path: log.clone(), source })?;
        let mut command = Command::new(program);
        command.args(["plan", "record", "--json", "--window", WINDOW, "--out"]).arg(directory);
        source.iter().for_each(|(option, path)| {
            command.arg(option).arg(path);
        });
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn();
        let child = child.map_err(|error| TestbedError::Record(format!("cannot be started: {error}")))?;
        let mut child = KillOnDrop(child);
        let recorder = Self { lines: child.lines(), child, directory: directory.to_owned(), log };
        recorder.wait_for("ready")?;
        Ok(recorder)
    }

    /// Waits for a line with this member.
    pub(super) fn wait_for(&self, member: &str) -> Result<(), TestbedError> {
        let end = Instant::now() + LIMIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let log = log_end(&self.log);
                return Err(TestbedError::Record(format!("no line with {member}; output: {log}")));
            };
            if line.contains(&format!("\"{member}\"")) {
                return Ok(());
            }
        }
    }

    /// Ends the recording and reads it.
    pub(super) fn stop(mut self) -> Result<Recording, TestbedError> {
        let fault = |error: std::io::Error| TestbedError::Record(error.to_string());
        signal_process(self.child.0.id(), ProcessSignal::Terminate).map_err(fault)?;
        self.wait_for("recorded")?;
        let status = self.child.0.wait().map_err(fault)?;
        if !status.success() {
            return Err(TestbedError::Record(format!("{status}; output: {}", log_end(&self.log))));
        }
        Ok(Recording::read(&self.directory)?)
    }
}
