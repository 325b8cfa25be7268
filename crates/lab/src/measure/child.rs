//! Child processes that end when their handle is dropped.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of an output line, in octets. Longer lines are split.
const LINE_MAX: u64 = 1 << 20;

/// Handle of a child process. Dropping it kills the process and waits for its end.
#[derive(Debug)]
pub(crate) struct KillOnDrop(pub(crate) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl KillOnDrop {
    /// Returns the lines of standard output. A separate thread reads all output, so that the child
    /// never blocks on a full pipe.
    pub(crate) fn lines(&mut self) -> Receiver<String> {
        let (sender, lines) = channel();
        if let Some(output) = self.0.stdout.take() {
            thread::spawn(move || {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while matches!(output.by_ref().take(LINE_MAX).read_until(b'\n', &mut line), Ok(read) if read > 0)
                {
                    // An error means that the receiver is dropped. Continue to read for the child.
                    let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
                    line.clear();
                }
            });
        }
        lines
    }

    /// Waits for the end of the process for at most `limit`. Returns `None` if the process is still
    /// running, or its status cannot be read.
    pub(crate) fn end_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}
