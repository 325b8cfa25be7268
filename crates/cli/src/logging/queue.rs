//! The log queue of a server, and the thread that writes it.
//!
//! Logging never blocks. While the reader of standard error does not read, lines are queued. If the
//! queue is full, lines are dropped and counted, and a line reports their number when writing
//! resumes. The server's lines on standard output use the same queue, so that the order is
//! preserved.

use super::line::{Fields, Style, render};
use super::throttle::{Throttle, ThrottleKey, Verdict, is_warning_or_error};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::Level;

/// Maximum number of queued lines.
const MAX_LINES: usize = 8192;
/// Maximum size of the queued lines, in bytes. A single line is always accepted.
const MAX_BYTES: usize = 2 << 20;
/// Both limits, divided by this number, give the part that is reserved for warnings and errors.
const RESERVED_DIVISOR: usize = 4;
/// Minimum time between two reports of dropped lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before a retry if another process has made the output non-blocking and the output is full.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// The output stream of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// The numbers of lines that were not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogCounters {
    /// Lines dropped because the queue was full, or because they could not be written.
    pub(crate) dropped: u64,
    /// Lines that the log throttle suppressed.
    pub(crate) suppressed: u64,
}

/// The function with which the writer writes octets to a stream. It blocks until all are written.
pub(super) type WriteOctets = Box<dyn FnMut(Stream, &[u8]) -> io::Result<()> + Send>;

/// The part of the queue that its lock protects.
#[derive(Debug)]
struct QueueState {
    lines: VecDeque<(Stream, String)>,
    bytes: usize,
    throttle: Throttle,
    /// Whether the writer has taken a line that is not written yet.
    is_writing: bool,
    /// Whether the last line could not be written.
    is_failing: bool,
    /// Whether a caller of [`Queue::flush`] waits.
    is_flushing: bool,
    /// Number of dropped lines that are not reported yet.
    unreported_drops: u64,
    /// Earliest time of the next report of dropped lines.
    next_report_at: Instant,
}

impl QueueState {
    fn take(&mut self) -> Option<(Stream, String)> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.1.len();
        Some(line)
    }

    /// Whether dropped lines must be reported now. While writing fails, they are not reported.
    fn is_drop_report_due(&self, now: Instant) -> bool {
        self.unreported_drops > 0 && !self.is_failing && (self.is_flushing || now >= self.next_report_at)
    }

    /// Whether suppressed lines must be reported now.
    fn is_summary_due(&self, now: Instant) -> bool {
        self.throttle.summary_at().is_some_and(|at| self.is_flushing || now >= at)
    }

    /// The next time at which the writer has work even without a new line.
    fn next_timeout(&self) -> Option<Instant> {
        let report = (self.unreported_drops > 0 && !self.is_failing).then_some(self.next_report_at);
        report.into_iter().chain(self.throttle.summary_at()).min()
    }

    /// Whether all lines are written, and all dropped and suppressed lines reported. While writing
    /// fails, dropped lines count as reported.
    fn is_idle(&self) -> bool {
        let is_reported = self.unreported_drops == 0 || self.is_failing;
        self.lines.is_empty() && !self.is_writing && is_reported && self.throttle.summary_at().is_none()
    }
}

/// The queue with its counters.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Notified when the writer may have new work.
    work_available: Condvar,
    /// Notified when the writer has written a line.
    line_written: Condvar,
    dropped: AtomicU64,
    suppressed: AtomicU64,
}

impl Queue {
    /// Starts a writer. It formats its own lines in the format that `style` returns.
    pub(super) fn start(style: fn() -> Style, write_octets: WriteOctets) -> io::Result<Arc<Self>> {
        let now = Instant::now();
        let state = QueueState {
            lines: VecDeque::new(),
            bytes: 0,
            throttle: Throttle::new(now),
            is_writing: false,
            is_failing: false,
            is_flushing: false,
            unreported_drops: 0,
            next_report_at: now,
        };
        let queue = Arc::new(Self {
            state: Mutex::new(state),
            work_available: Condvar::new(),
            line_written: Condvar::new(),
            dropped: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        });
        let writer = Writer { queue: Arc::clone(&queue), style, write_octets };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writer.run())?;
        Ok(queue)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counters(&self) -> LogCounters {
        LogCounters { dropped: self.dropped.load(Relaxed), suppressed: self.suppressed.load(Relaxed) }
    }

    /// Whether an event may be logged. Returns the number of similar events that were suppressed
    /// before it, or `None` if the event is suppressed.
    pub(super) fn admit(&self, key: &ThrottleKey, level: Level, fields: &Fields) -> Option<u64> {
        match self.state().throttle.admit(key, level, fields, Instant::now()) {
            Verdict::Admitted { suppressed } => return Some(suppressed),
            // So far, the writer waits only for lines. Wake it, so that it also waits for the time
            // of the summary.
            Verdict::Suppressed { is_first: true } => self.work_available.notify_one(),
            Verdict::Suppressed { is_first: false } => {}
        }
        self.suppressed.fetch_add(1, Relaxed);
        None
    }

    /// Adds a line of this level, which includes its line end, or drops it. Never waits for the
    /// output.
    pub(super) fn push(&self, stream: Stream, level: Level, line: String) {
        let limit = |all: usize| if is_warning_or_error(level) { all } else { all - all / RESERVED_DIVISOR };
        let mut state = self.state();
        let is_full = state.lines.len() >= limit(MAX_LINES) || state.bytes + line.len() > limit(MAX_BYTES);
        if is_full && !state.lines.is_empty() {
            state.unreported_drops += 1;
            self.dropped.fetch_add(1, Relaxed);
            return;
        }
        state.bytes += line.len();
        state.lines.push_back((stream, line));
        drop(state);
        self.work_available.notify_one();
    }

    /// Waits until all lines are written, at most for `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let mut state = self.state();
        state.is_flushing = true;
        self.work_available.notify_one();
        let waited = self.line_written.wait_timeout_while(state, limit, |state| !state.is_idle());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_flushing = false;
    }
}

/// The next work of the writer.
enum Work {
    Line(Stream, String),
    /// Lines of the writer for standard error, with the number of dropped lines that they report.
    Report(Vec<String>, u64),
}

struct Writer {
    queue: Arc<Queue>,
    style: fn() -> Style,
    write_octets: WriteOctets,
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
                        let fields = [("event", "output-failed".into()), ("line", line.trim_end().into())];
                        let report = self.render(Level::WARN, message, &fields);
                        let _ = self.write(Stream::Error, &report);
                    }
                    self.record_outcome(written.is_err(), u64::from(written.is_err()), 0);
                }
                Work::Report(lines, dropped) => {
                    let is_failing = lines.iter().any(|line| self.write(Stream::Error, line).is_err());
                    self.record_outcome(is_failing, 0, if is_failing { dropped } else { 0 });
                }
            }
        }
    }

    /// Waits for work.
    fn next(&self) -> Work {
        let mut state = self.queue.state();
        loop {
            let now = Instant::now();
            if state.is_drop_report_due(now) {
                let lines = std::mem::take(&mut state.unreported_drops);
                (state.next_report_at, state.is_writing) = (now + REPORT_INTERVAL, true);
                drop(state);
                let total = self.queue.counters().dropped.into();
                let fields =
                    [("event", "log-lines-dropped".into()), ("dropped", lines.into()), ("total", total)];
                let message = "log: lines dropped, standard error did not accept them in time".to_owned();
                return Work::Report(vec![self.render(Level::WARN, message, &fields)], lines);
            }
            if state.is_summary_due(now) {
                let is_flushing = state.is_flushing;
                let summaries = state.throttle.summaries(is_flushing, now);
                state.is_writing = true;
                drop(state);
                return Work::Report(self.render_summaries(&summaries), 0);
            }
            if let Some((stream, line)) = state.take() {
                state.is_writing = true;
                return Work::Line(stream, line);
            }
            let wait = state.next_timeout().map_or(Duration::MAX, |at| at.saturating_duration_since(now));
            let waited = self.queue.work_available.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Records the result of writing: the number of lines that were `lost`, and the number of
    /// dropped lines in a report that must be `repeated`.
    fn record_outcome(&self, is_failing: bool, lost: u64, repeated: u64) {
        self.queue.dropped.fetch_add(lost, Relaxed);
        let mut state = self.queue.state();
        (state.is_writing, state.is_failing) = (false, is_failing);
        state.unreported_drops += lost + repeated;
        drop(state);
        self.queue.line_written.notify_all();
    }

    fn render(&self, level: Level, message: String, fields: &[(&'static str, serde_json::Value)]) -> String {
        let fields = Fields::new(message, fields.to_vec());
        render((self.style)(), jiff::Timestamp::now(), level, &fields)
    }

    fn render_summaries(&self, summaries: &[super::throttle::Suppressed]) -> Vec<String> {
        let summaries = summaries.iter().map(|summary| {
            let suppressed = summary.event.as_str().into();
            let mut fields = vec![("event", "log-lines-suppressed".into()), ("suppressed_event", suppressed)];
            fields.extend(summary.source.as_deref().map(|source| ("source", source.into())));
            fields.push(("suppressed", summary.lines.into()));
            self.render(summary.level, "log: lines suppressed".to_owned(), &fields)
        });
        summaries.collect()
    }

    /// Writes a complete line.
    fn write(&mut self, stream: Stream, line: &str) -> io::Result<()> {
        (self.write_octets)(stream, line.as_bytes())
    }
}

/// Writes to the standard streams of this process, and waits until the stream accepts all octets.
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

/// Writes all octets. Also waits for a non-blocking output: another process that shares standard
/// error may have made it non-blocking.
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
