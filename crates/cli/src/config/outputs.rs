//! The tables `[log]` and `[dnstap]`: outputs of the server for its operator.

use super::keys::{Row, Table, default, example, key};
use super::section::Section;
use super::server::socket_path_error;
use super::sources::FileRole;
use super::values::{bytes, choice, file, list, path, text};
use crate::logging::Format;
use std::path::PathBuf;
use tracing::Level;

const LEVELS: [(&str, Level); 5] = [
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
];
const FORMATS: [(&str, Format); 4] =
    [("auto", Format::Auto), ("text", Format::Text), ("journal", Format::Journal), ("json", Format::Json)];
const MESSAGES: [(&str, DnstapMessage); 2] =
    [("queries", DnstapMessage::Query), ("responses", DnstapMessage::Response)];

/// The log: its minimum level and its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) level: Level,
    pub(crate) format: Format,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: Level::INFO, format: Format::Auto }
    }
}

impl Log {
    pub(super) fn read(root: &Section<'_>) -> Self {
        root.subtable("log").map_or_else(|| log_table().defaults(), |section| log_table().read_all(&section))
    }
}

pub(super) fn log_table() -> Table<Log> {
    Table::new(vec![
        Row::Text(
            "
[log]
# Log events of this level and above: error, warn, info, debug or trace.",
        ),
        key("level", choice(LEVELS), default("info"), |l, v| l.level = v),
        Row::Text(
            "# Format: text, journal (of systemd), json, or auto: journal if standard error is connected to the
# journal, else text.",
        ),
        key("format", choice(FORMATS), default("auto"), |l, v| l.format = v),
    ])
}

/// The destination and the content of dnstap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dnstap {
    pub(crate) destination: DnstapDestination,
    pub(crate) identity: Option<String>,
    pub(crate) queries: bool,
    pub(crate) responses: bool,
    /// Size of the queue of each thread, in bytes.
    pub(crate) queue: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnstapDestination {
    Socket(PathBuf),
    File(PathBuf),
}

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DnstapMessage {
    Query,
    Response,
}

/// The fields that the keys of `[dnstap]` set.
#[derive(Default)]
pub(super) struct DnstapFields {
    socket: Option<PathBuf>,
    file: Option<PathBuf>,
    identity: Option<String>,
    messages: Vec<DnstapMessage>,
    queue: u64,
}

pub(super) fn dnstap_table() -> Table<DnstapFields> {
    Table::new(vec![
        Row::Text(
            "
# dnstap: copies of queries and responses. Without this table, dnstap is off. Every setting needs a
# restart.
#[dnstap]  # example
# Socket on which a collector listens. Set either socket or file.",
        ),
        key("socket", path, example("/run/dnstap/collector.sock"), |d, v| d.socket = Some(v)),
        Row::Text("# Output file."),
        key("file", file(FileRole::Dnstap), example("/var/log/nonesuch/queries.dnstap"), |d, v| {
            d.file = Some(v)
        }),
        Row::Text("# Name of this server in the copies. Default: the name of the host."),
        key("identity", text, example("ns1"), |d, v| d.identity = Some(v)),
        Row::Text("# Messages to copy. Default: both."),
        key(
            "messages",
            list("\"queries\" and \"responses\"", choice(MESSAGES)),
            default(r#"["queries", "responses"]"#),
            |d, v| d.messages = v,
        ),
        Row::Text("# Size of the queue of each thread: 64KiB to 1GiB. Default: 1MiB."),
        key("queue", bytes(64 << 10..=1 << 30), default("1MiB"), |d, v| d.queue = v),
    ])
}

impl Dnstap {
    /// Reads `[dnstap]`, if it is present.
    pub(super) fn read(root: &Section<'_>) -> Option<Self> {
        let section = root.subtable("dnstap")?;
        let keys = dnstap_table().read_all(&section);
        let (queries, responses) =
            (keys.messages.contains(&DnstapMessage::Query), keys.messages.contains(&DnstapMessage::Response));
        let destination = match (keys.socket, keys.file) {
            (Some(_), Some(_)) => {
                let message = "socket is set too: dnstap writes either to a socket or to a file; leave \
                    one out";
                section.report_fault("file", message);
                return None;
            }
            (Some(socket), None) => {
                if let Some(message) = socket_path_error(&socket) {
                    section.report_fault("socket", message);
                }
                DnstapDestination::Socket(socket)
            }
            (None, Some(file)) => DnstapDestination::File(file),
            (None, None) => {
                if !section.has("socket") && !section.has("file") {
                    let message = "missing: set socket (a collector listens on it) or file";
                    section.report_fault("socket", message);
                }
                return None;
            }
        };
        Some(Self { destination, identity: keys.identity, queries, responses, queue: keys.queue })
    }
}
