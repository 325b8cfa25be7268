//! Formats an event as a line.

use serde_json::Value;
use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

/// The format of a line. Unlike [`Format`](super::Format), it has no automatic choice, and it
/// includes the decision about colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Text { colours: bool },
    Journal,
    Json,
}

/// The content of an event: its message and its fields. The field `event` is the name of the event.
#[derive(Debug, Default)]
pub(super) struct Fields {
    message: String,
    /// The fields other than the message, by name.
    named: Vec<(&'static str, Value)>,
}

impl Fields {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let name = event_name(event.metadata());
        let named = name.map(|name| ("event", Value::from(name))).into_iter().collect();
        let mut fields = Self { message: String::new(), named };
        event.record(&mut fields);
        fields
    }

    /// The content of an event that the log itself reports.
    pub(super) const fn new(message: String, named: Vec<(&'static str, Value)>) -> Self {
        Self { message, named }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The text in the field `name`.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.named.iter().find(|(found, _)| *found == name)?.1.as_str()
    }

    /// Adds the number of similar lines that were suppressed before this one.
    pub(super) fn note_suppressed(&mut self, lines: u64) {
        if lines > 0 {
            self.named.push(("suppressed", lines.into()));
        }
    }

    fn push(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            // Fields of the crate `log` with the source location of a library's record.
            (name, _) if name.starts_with("log.") => {}
            (name, value) => self.named.push((name, value)),
        }
    }
}

/// The name of an event. Libraries do not name their events: `tracing` then names an event
/// `event FILE:LINE`, and `log` names all of them `log event`.
fn event_name(metadata: &Metadata<'static>) -> Option<&'static str> {
    Some(metadata.name()).filter(|name| !name.contains(' '))
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, Value::String(value.to_owned()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.push(field, Value::String(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, value.into());
    }
}

/// The line of an event, including the line end.
pub(super) fn render(style: Style, time: jiff::Timestamp, level: Level, fields: &Fields) -> String {
    let mut line = match style {
        Style::Json => return render_json(time, level, fields),
        Style::Journal => format!("<{}>", priority(level)),
        Style::Text { colours } => format!("{time:.3} {} ", level_word(level, colours)),
    };
    push_escaped(&mut line, &fields.message);
    for (name, value) in &fields.named {
        let text = match value {
            Value::String(text) => quoted(text),
            other => other.to_string().into(),
        };
        // Writing to a string does not fail.
        let _ = write!(line, " {name}={text}");
    }
    line.push('\n');
    line
}

/// A JSON object in one line. The JSON encoder escapes ASCII control characters; this function
/// escapes the others.
fn render_json(time: jiff::Timestamp, level: Level, fields: &Fields) -> String {
    let mut object = serde_json::Map::new();
    object.insert("time".to_owned(), format!("{time:.3}").into());
    object.insert("level".to_owned(), level.as_str().to_ascii_lowercase().into());
    object.insert("message".to_owned(), fields.message.as_str().into());
    for (name, value) in &fields.named {
        // A field of the event must not replace time, level or message.
        let name = if object.contains_key(*name) { format!("field_{name}") } else { (*name).to_owned() };
        object.insert(name, value.clone());
    }
    let text = Value::Object(object).to_string();
    let mut line = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if needs_escape(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

/// The priority of a level in the journal (sd-daemon(3)).
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

fn level_word(level: Level, colours: bool) -> Cow<'static, str> {
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        _ => 35,
    };
    if colours { format!("\x1b[{colour}m{level:>5}\x1b[0m").into() } else { format!("{level:>5}").into() }
}

/// The value of a field, as it appears after `=`. It is quoted if it contains characters that could
/// be read as the end of the value or as another field.
fn quoted(text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| {
        !matches!(character, ' ' | '"' | '=') && !character.is_whitespace() && !needs_escape(character)
    };
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            _ => push_character(&mut out, character),
        }
    }
    out.push('"');
    out.into()
}

fn push_escaped(out: &mut String, text: &str) {
    text.chars().for_each(|character| push_character(out, character));
}

fn push_character(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if needs_escape(character) => out.extend(character.escape_unicode()),
        _ => out.push(character),
    }
}

/// Whether a character ends a line, moves the cursor, or changes the direction or order of the
/// displayed text.
const fn needs_escape(character: char) -> bool {
    matches!(
        character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}
