//! The log: one line for each event, on standard error, as text, for the journal, or as JSON.
//!
//! It begins with the command, at the level that `-v` asks for; a configuration changes level and form while it runs.
//! A command writes each line at once. A server has a [queue] and a [throttle] between: no reader of the log holds it up, and no peer fills
//! the log.
//!
//! Names, addresses and errors may hold octets that strangers sent: control characters are escaped in every form, so that
//! nobody writes lines of his own or moves a terminal's cursor.

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

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// [`Format::Journal`] where standard error leads to the journal, else [`Format::Text`].
    #[default]
    Auto,
    /// Time, level, message, fields.
    Text,
    /// The level as the journal reads it, message, fields; the journal adds the time.
    Journal,
    /// One object for each event.
    Json,
}

/// What is changed while the log is written.
struct Handle {
    level: reload::Handle<LevelFilter, Registry>,
    style: Mutex<Style>,
    /// Whether only warnings, errors and requested data are printed.
    is_quiet: bool,
    /// Between the threads of a server and standard error.
    queue: OnceLock<Arc<Queue>>,
}

/// How long the end of a server waits for the reader of its log.
pub(crate) const END_LIMIT: Duration = Duration::from_secs(2);

static LOG: OnceLock<Handle> = OnceLock::new();

/// Starts the log, for a command with this many `-v`, or with `-q`.
pub(crate) fn start(verbose: u8, is_quiet: bool) {
    let level = match verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(level));
    let style = Mutex::new(style_of(Format::Auto));
    if LOG.set(Handle { level: handle, style, is_quiet, queue: OnceLock::new() }).is_ok() {
        let log = Log {
            direct: Mutex::new(Box::new(std::io::stderr())),
            style: current_style,
            queue: current_queue,
        };
        tracing_subscriber::registry().with(filter).with(log).init();
    }
}

/// Changes level and form, as a configuration has it.
pub(crate) fn configure(level: Level, format: Format) {
    let Some(handle) = LOG.get() else { return };
    *handle.style.lock().unwrap_or_else(PoisonError::into_inner) = style_of(format);
    let level = if handle.is_quiet { level.min(Level::WARN) } else { level };
    // It fails only when the log is gone, which lasts as long as the process.
    let _ = handle.level.reload(LevelFilter::from_level(level));
}

/// Whether only warnings, errors and requested data are printed (`-q`).
pub(crate) fn is_quiet() -> bool {
    LOG.get().is_some_and(|handle| handle.is_quiet)
}

/// Whether lines are JSON.
pub(crate) fn is_json() -> bool {
    current_style() == Style::Json
}

/// Queues all further lines for a writer thread: logging waits for no reader.
pub(crate) fn start_queue() -> std::io::Result<()> {
    let Some(handle) = LOG.get() else { return Ok(()) };
    let queue = Queue::start(current_style, Box::new(queue::write_to_standard))?;
    // A process has one server.
    let _ = handle.queue.set(queue);
    Ok(())
}

/// Prints a line that is no event, after the lines in the queue; `None` where the queue is not started.
pub(crate) fn print_queued(stream: Stream, line: &str) -> Option<()> {
    // On standard error: why a command fails.
    let level = if stream == Stream::Error { Level::ERROR } else { Level::INFO };
    current_queue()?.push(stream, level, format!("{line}\n"));
    Some(())
}

/// Waits until all that was logged is written, but for no reader longer than [`END_LIMIT`].
pub(crate) fn flush() {
    if let Some(queue) = current_queue() {
        queue.flush(END_LIMIT);
    }
}

/// Lines that were not written.
pub(crate) fn counters() -> LogCounters {
    current_queue().map_or_else(LogCounters::default, Queue::counters)
}

fn current_queue() -> Option<&'static Queue> {
    LOG.get()?.queue.get().map(|queue| &**queue)
}

fn current_style() -> Style {
    LOG.get().map_or(Style::Text { colours: false }, |handle| {
        *handle.style.lock().unwrap_or_else(PoisonError::into_inner)
    })
}

fn style_of(format: Format) -> Style {
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match format {
        Format::Auto if leads_to_journal() => Style::Journal,
        Format::Auto | Format::Text => Style::Text { colours },
        Format::Journal => Style::Journal,
        Format::Json => Style::Json,
    }
}

/// Whether standard error is the socket that systemd says leads to the journal (systemd.exec(5), `JOURNAL_STREAM`).
fn leads_to_journal() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let Ok(metadata) = std::fs::metadata("/proc/self/fd/2") else { return false };
    stream.to_str() == Some(&format!("{}:{}", metadata.dev(), metadata.ino()))
}

/// Writes events as lines, in the style that is asked for at each.
struct Log {
    /// Where lines go while there is no queue.
    direct: Mutex<Box<dyn Write + Send>>,
    style: fn() -> Style,
    queue: fn() -> Option<&'static Queue>,
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = *event.metadata().level();
        let queue = (self.queue)();
        if let Some((queue, key)) = queue.zip(throttle::Key::of(event.metadata(), &fields)) {
            let Some(suppressed) = queue.admit(&key, level, &fields) else { return };
            fields.note_suppressed(suppressed);
        }
        let line = render((self.style)(), jiff::Timestamp::now(), level, &fields);
        if let Some(queue) = queue {
            return queue.push(Stream::Error, level, line);
        }
        // No one is left to report to where the log cannot be written.
        let _ = self.direct.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests;
