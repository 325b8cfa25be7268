//! The log of a server: a bounded queue, and a thread that writes it.
//!
//! Logging never waits: while the reader of standard error takes nothing, lines are queued, and dropped and counted when the queue is
//! full. When writing resumes, one line reports how many. What the server prints on standard output goes the same way, in order.

use super::line::{Fields, Style, render};
use super::throttle::{Key, Throttle, Verdict, is_important};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::Level;

/// Lines that may wait.
const LINES: usize = 8192;
/// Bytes of them; one line may always wait.
const BYTES: usize = 2 << 20;
/// One part in `RESERVE` of both is for warnings and errors alone.
const RESERVE: usize = 4;
/// Time between two reports of lines that were dropped.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// A pause where another process made the output non-blocking, and it takes nothing.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Lines that were not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogCounters {
    /// Lines dropped because the queue was full, or because they could not be written.
    pub(crate) dropped: u64,
    /// Lines that the log throttle suppressed.
    pub(crate) suppressed: u64,
}

/// What the writer writes into.
pub(super) type Outputs = Box<dyn FnMut(Stream, &[u8]) -> io::Result<()> + Send>;

#[derive(Debug)]
struct State {
    lines: VecDeque<(Stream, String)>,
    bytes: usize,
    throttle: Throttle,
    /// Whether the writer has taken a line that is not written yet.
    is_writing: bool,
    /// Whether the last line could not be written.
    is_failing: bool,
    /// Whether someone waits for the end.
    is_ending: bool,
    /// Dropped lines that are not reported yet, and when they are.
    unreported: u64,
    report_at: Instant,
}

impl State {
    fn take(&mut self) -> Option<(Stream, String)> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.1.len();
        Some(line)
    }

    /// Whether dropped lines are to be reported: not while nothing can be written.
    fn is_report_due(&self, now: Instant) -> bool {
        self.unreported > 0 && !self.is_failing && (self.is_ending || now >= self.report_at)
    }

    fn is_summary_due(&self, now: Instant) -> bool {
        self.throttle.summary_at().is_some_and(|at| self.is_ending || now >= at)
    }

    /// When the writer has work without a further line.
    fn next_timeout(&self) -> Option<Instant> {
        let report = (self.unreported > 0 && !self.is_failing).then_some(self.report_at);
        report.into_iter().chain(self.throttle.summary_at()).min()
    }

    fn is_idle(&self) -> bool {
        let is_reported = self.unreported == 0 || self.is_failing;
        self.lines.is_empty() && !self.is_writing && is_reported && self.throttle.summary_at().is_none()
    }
}

/// The queue, with its counters.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Notified when a line was added, and when the writer has written one.
    changed: Condvar,
    written: Condvar,
    dropped: AtomicU64,
    suppressed: AtomicU64,
}

impl Queue {
    /// Starts a writer. It takes the style from `style` for the lines that it adds itself.
    pub(super) fn start(style: fn() -> Style, outputs: Outputs) -> io::Result<Arc<Self>> {
        let now = Instant::now();
        let state = State {
            lines: VecDeque::new(),
            bytes: 0,
            throttle: Throttle::new(now),
            is_writing: false,
            is_failing: false,
            is_ending: false,
            unreported: 0,
            report_at: now,
        };
        let queue = Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        });
        let writer = Writer { queue: Arc::clone(&queue), style, outputs };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writer.run())?;
        Ok(queue)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counters(&self) -> LogCounters {
        LogCounters { dropped: self.dropped.load(Relaxed), suppressed: self.suppressed.load(Relaxed) }
    }

    /// Whether an event may be logged; how many like it were suppressed before.
    pub(super) fn admit(&self, key: &Key, level: Level, fields: &Fields) -> Option<u64> {
        match self.state().throttle.admit(key, level, fields, Instant::now()) {
            Verdict::Admitted { suppressed } => return Some(suppressed),
            // The writer waited for lines alone, and is to wait for the time of the summary too.
            Verdict::Suppressed { is_first: true } => self.changed.notify_one(),
            Verdict::Suppressed { is_first: false } => {}
        }
        self.suppressed.fetch_add(1, Relaxed);
        None
    }

    /// Adds a line of this level, with its end, or drops it; never waits for the output.
    pub(super) fn push(&self, stream: Stream, level: Level, line: String) {
        let part = |all: usize| if is_important(level) { all } else { all - all / RESERVE };
        let mut state = self.state();
        let is_full = state.lines.len() >= part(LINES) || state.bytes + line.len() > part(BYTES);
        if is_full && !state.lines.is_empty() {
            state.unreported += 1;
            self.dropped.fetch_add(1, Relaxed);
            return;
        }
        state.bytes += line.len();
        state.lines.push_back((stream, line));
        drop(state);
        self.changed.notify_one();
    }

    /// Waits until all is written, at most for `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let mut state = self.state();
        state.is_ending = true;
        self.changed.notify_one();
        let waited = self.written.wait_timeout_while(state, limit, |state| !state.is_idle());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_ending = false;
    }
}

/// What the writer does next.
enum Work {
    Line(Stream, String),
    /// Lines of its own on standard error; with the number of dropped lines that they report.
    Report(Vec<String>, u64),
}

struct Writer {
    queue: Arc<Queue>,
    style: fn() -> Style,
    outputs: Outputs,
}

impl Writer {
    fn run(mut self) {
        loop {
            match self.next() {
                Work::Line(stream, line) => {
                    let written = self.write(stream, &line);
                    if let Err(error) = &written
                        && stream == Stream::Output
                    {
                        let message = format!("cannot print to standard output: {error}");
                        let report = self.render(Level::WARN, message, &[("line", line.trim_end().into())]);
                        let _ = self.write(Stream::Error, &report);
                    }
                    self.settle(written.is_err(), u64::from(written.is_err()), 0);
                }
                Work::Report(lines, dropped) => {
                    let is_failing = lines.iter().any(|line| self.write(Stream::Error, line).is_err());
                    self.settle(is_failing, 0, if is_failing { dropped } else { 0 });
                }
            }
        }
    }

    /// Waits for something to do.
    fn next(&self) -> Work {
        let mut state = self.queue.state();
        loop {
            let now = Instant::now();
            if state.is_report_due(now) {
                let lines = std::mem::take(&mut state.unreported);
                (state.report_at, state.is_writing) = (now + REPORT_INTERVAL, true);
                drop(state);
                let fields = [("dropped", lines.into()), ("total", self.queue.counters().dropped.into())];
                let message = "log: lines dropped, standard error did not accept them in time".to_owned();
                return Work::Report(vec![self.render(Level::WARN, message, &fields)], lines);
            }
            if state.is_summary_due(now) {
                let is_ending = state.is_ending;
                let summaries = state.throttle.summaries(is_ending, now);
                state.is_writing = true;
                drop(state);
                return Work::Report(self.render_summaries(&summaries), 0);
            }
            if let Some((stream, line)) = state.take() {
                state.is_writing = true;
                return Work::Line(stream, line);
            }
            let wait = state.next_timeout().map_or(Duration::MAX, |at| at.saturating_duration_since(now));
            let waited = self.queue.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes how writing went: lines that were lost, and reports to be repeated.
    fn settle(&self, is_failing: bool, lost: u64, repeated: u64) {
        self.queue.dropped.fetch_add(lost, Relaxed);
        let mut state = self.queue.state();
        (state.is_writing, state.is_failing) = (false, is_failing);
        state.unreported += lost + repeated;
        drop(state);
        self.queue.written.notify_all();
    }

    fn render(&self, level: Level, message: String, fields: &[(&'static str, serde_json::Value)]) -> String {
        let fields = Fields::new(message, fields.to_vec());
        render((self.style)(), jiff::Timestamp::now(), level, &fields)
    }

    fn render_summaries(&self, summaries: &[super::throttle::Suppressed]) -> Vec<String> {
        let summaries = summaries.iter().map(|summary| {
            let mut fields = vec![("event", summary.event.as_str().into())];
            fields.extend(summary.source.as_deref().map(|source| ("source", source.into())));
            fields.push(("suppressed", summary.lines.into()));
            self.render(summary.level, "log: lines suppressed".to_owned(), &fields)
        });
        summaries.collect()
    }

    /// Writes all of a line. Standard error may have been made non-blocking by a process that shares it.
    fn write(&mut self, stream: Stream, line: &str) -> io::Result<()> {
        (self.outputs)(stream, line.as_bytes())
    }
}

/// Writes to the standard streams of this process.
pub(super) fn write_to_standard(stream: Stream, octets: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Output => {
            let mut output = io::stdout().lock();
            write_waiting(&mut output, octets)?;
            output.flush()
        }
        Stream::Error => write_waiting(&mut io::stderr().lock(), octets),
    }
}

fn write_waiting(output: &mut impl Write, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match output.write(octets) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => octets = &octets[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
