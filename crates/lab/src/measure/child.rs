//! Child processes that end with the value that holds them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest line of a child that is passed on whole, octets.
const LINE_MAX: u64 = 1 << 20;

/// A child process. It is killed, and waited for, when this is dropped.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// The lines of its standard output, read by a thread of its own to their end: a child must never wait for its reader.
    pub(crate) fn lines(&mut self) -> Receiver<String> {
        let (sender, lines) = channel();
        if let Some(output) = self.0.stdout.take() {
            thread::spawn(move || {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while matches!(output.by_ref().take(LINE_MAX).read_until(b'\n', &mut line), Ok(read) if read > 0)
                {
                    // Nobody may listen any more.
                    let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
                    line.clear();
                }
            });
        }
        lines
    }

    /// How it ended; nothing where it has not within `limit`.
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
