//! The log: one line for each event, on standard error, as text, for the journal, or as JSON.
//!
//! At the start, the level depends on `-v`. A configuration changes the level and the format while
//! the process runs. A command writes each line immediately. A server has a [queue] and a
//! [throttle], so that a slow reader of the log does not block the server and a peer cannot fill
//! the log.
//!
//! Names, addresses and errors may contain octets that clients or other servers sent. Control
//! characters are escaped in each format, so that a peer cannot add log lines or control a
//! terminal.

mod line;
mod queue;
mod throttle;

pub(crate) use queue::{LogCounters, Stream};

use line::{Fields, Style, render};
use queue::Queue;
use std::io::{IsTerminal as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, reload};

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// [`Format::Journal`] if standard error is connected to the journal, otherwise
    /// [`Format::Text`].
    #[default]
    Auto,
    /// Time, level, message, fields.
    Text,
    /// The level in the syntax of the journal, message, fields; the journal adds the time.
    Journal,
    /// One JSON object for each event.
    Json,
}

/// The state of the log, which changes while the log is in use.
struct LogState {
    level: reload::Handle<LevelFilter, Registry>,
    style: Mutex<Style>,
    /// Whether only warnings, errors and requested data are printed.
    is_quiet: bool,
    /// The queue of a server in front of standard error.
    queue: OnceLock<Arc<Queue>>,
}

/// Maximum time that a server waits for the reader of its log when it ends.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

static LOG: OnceLock<LogState> = OnceLock::new();

/// Starts the log. `verbose` is the number of `-v` options, `is_quiet` means `-q`.
pub(crate) fn start(verbose: u8, is_quiet: bool) {
    let level = match verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(level));
    let style = Mutex::new(style_for(Format::Auto));
    if LOG.set(LogState { level: handle, style, is_quiet, queue: OnceLock::new() }).is_ok() {
        let log = Log {
            direct: Mutex::new(Box::new(std::io::stderr())),
            style: current_style,
            queue: current_queue,
        };
        tracing_subscriber::registry().with(filter).with(log).init();
    }
}

/// Sets the level and the format from a configuration. With `-q`, the level is at most `warn`.
pub(crate) fn configure(level: Level, format: Format) {
    let Some(handle) = LOG.get() else { return };
    *handle.style.lock().unwrap_or_else(PoisonError::into_inner) = style_for(format);
    let level = if handle.is_quiet { level.min(Level::WARN) } else { level };
    // Fails only if the log does not exist, but it exists until the process ends.
    let _ = handle.level.reload(LevelFilter::from_level(level));
}

/// Whether only warnings, errors and requested data are printed (`-q`).
pub(crate) fn is_quiet() -> bool {
    LOG.get().is_some_and(|handle| handle.is_quiet)
}

/// Whether the format is JSON.
pub(crate) fn is_json() -> bool {
    current_style() == Style::Json
}

/// Starts a writer thread and its queue. From then on, logging does not wait for the reader.
pub(crate) fn start_queue() -> std::io::Result<()> {
    let Some(handle) = LOG.get() else { return Ok(()) };
    let queue = Queue::start(current_style, Box::new(queue::write_to_standard))?;
    // Cannot fail, because a process has only one server.
    let _ = handle.queue.set(queue);
    Ok(())
}

/// Queues a line that is not an event, for the output `stream`. Returns `None` if the queue is not
/// started; the caller then prints the line.
pub(crate) fn print_queued(stream: Stream, line: &str) -> Option<()> {
    // Lines on standard error are the reasons of failures, so they use the reserved part of the
    // queue.
    let level = if stream == Stream::Error { Level::ERROR } else { Level::INFO };
    current_queue()?.push(stream, level, format!("{line}\n"));
    Some(())
}

/// Waits until all lines are written, at most for [`FLUSH_TIMEOUT`]. Without a queue, does nothing.
pub(crate) fn flush() {
    if let Some(queue) = current_queue() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// The numbers of lines that were not written.
pub(crate) fn counters() -> LogCounters {
    current_queue().map_or_else(LogCounters::default, Queue::counters)
}

fn current_queue() -> Option<&'static Queue> {
    LOG.get()?.queue.get().map(|queue| &**queue)
}

/// The current format. Before the log is started, text without colours.
fn current_style() -> Style {
    LOG.get().map_or(Style::Text { colours: false }, |handle| {
        *handle.style.lock().unwrap_or_else(PoisonError::into_inner)
    })
}

/// The format of lines in the log format `format`.
fn style_for(format: Format) -> Style {
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match format {
        Format::Auto if is_connected_to_journal() => Style::Journal,
        Format::Auto | Format::Text => Style::Text { colours },
        Format::Journal => Style::Journal,
        Format::Json => Style::Json,
    }
}

/// Whether standard error is the socket of the journal according to systemd (systemd.exec(5),
/// `JOURNAL_STREAM`).
fn is_connected_to_journal() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let Ok(metadata) = std::fs::metadata("/proc/self/fd/2") else { return false };
    stream.to_str() == Some(&format!("{}:{}", metadata.dev(), metadata.ino()))
}

/// Subscriber that writes events as lines in the current format.
struct Log {
    /// The output without a queue.
    direct: Mutex<Box<dyn Write + Send>>,
    style: fn() -> Style,
    queue: fn() -> Option<&'static Queue>,
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::of(event);
        let level = *event.metadata().level();
        let queue = (self.queue)();
        if let Some((queue, key)) = queue.zip(throttle::ThrottleKey::of(event.metadata(), &fields)) {
            let Some(suppressed) = queue.admit(&key, level, &fields) else { return };
            fields.note_suppressed(suppressed);
        }
        let line = render((self.style)(), jiff::Timestamp::now(), level, &fields);
        if let Some(queue) = queue {
            return queue.push(Stream::Error, level, line);
        }
        // If the log cannot be written, the error cannot be reported.
        let _ = self.direct.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests;
