//! The log: one line for each event, on standard error, as text, for the journal, or as JSON.
//!
//! It begins with the command, at the level that `-v` asks for; a configuration changes level and form while it runs.
//! Names, addresses and errors may hold octets that strangers sent: control characters are escaped in every form, so that
//! nobody writes lines of his own or moves a terminal's cursor.

mod line;

use line::{Fields, Style, render};
use std::io::{IsTerminal as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, OnceLock, PoisonError};
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
}

static LOG: OnceLock<Handle> = OnceLock::new();

/// Starts the log, for a command with this many `-v`.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(level));
    let style = Mutex::new(style_of(Format::Auto));
    if LOG.set(Handle { level: handle, style }).is_ok() {
        let log = Log(Mutex::new(Box::new(std::io::stderr())), current_style);
        tracing_subscriber::registry().with(filter).with(log).init();
    }
}

/// Changes level and form, as a configuration has it.
pub(crate) fn configure(level: Level, format: Format) {
    let Some(handle) = LOG.get() else { return };
    *handle.style.lock().unwrap_or_else(PoisonError::into_inner) = style_of(format);
    // It fails only when the log is gone, which lasts as long as the process.
    let _ = handle.level.reload(LevelFilter::from_level(level));
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
struct Log(Mutex<Box<dyn Write + Send>>, fn() -> Style);

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = render((self.1)(), jiff::Timestamp::now(), *event.metadata().level(), &fields);
        // Nobody is left to be told that the log cannot be written.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests;
