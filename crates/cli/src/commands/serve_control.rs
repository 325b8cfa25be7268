//! The control socket: a line of JSON in, lines of JSON out, for `nonesuch ctl` and programs.
//!
//! A request is `{"command": "status"}`, `{"command": "reload"}` or `{"command": "reload", "zone": "example."}`,
//! `{"command": "zone-status"}`, `{"command": "zone-refresh", "zone": …}`, `{"command": "zone-retransfer", "zone": …}`,
//! `{"command": "zone-purge", "zone": …}`, `{"command": "zone-export", "zone": …}` (lines with the member `text` come before the
//! last), `{"command": "purge"}`, `{"command": "stop"}`. The answer's last line has the member `done` or `error`. Whoever may open
//! the socket may do all of it: it is its owner's, and its group's where the configuration names one.
//!
//! What takes longer than a second has lines with the member `working` before the answer, one each second: what goes on.

use super::serve_node::Node;
use nonesuch_proto::Name;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Octets that a request may have.
const REQUEST_OCTETS: u64 = 4096;
/// Connections at once.
const CONNECTIONS: usize = 16;
const TOO_MANY: &str = "too many ask at once: ask again when others have their answers";
/// How long a request may take to come, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long whoever takes a zone may pause: a person reads it page by page.
const EXPORT_PATIENCE: Duration = Duration::from_secs(3600);

/// The member of lines that come before the answer, while what was asked is worked on: what goes on.
pub(super) const SIGN_OF_LIFE: &str = "working";
/// Time between two of them.
const SIGN_OF_LIFE_INTERVAL: Duration = Duration::from_secs(1);

/// What is asked of the server.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    // With braces, so that members that they do not have are refused: `{"command": "purge", "zone": …}` means no purge of all.
    Status {},
    Reload { zone: Option<String> },
    ZoneStatus { zone: Option<String> },
    ZoneRefresh { zone: String },
    ZoneRetransfer { zone: String },
    ZonePurge { zone: String },
    ZoneExport { zone: String },
    Purge {},
    Stop {},
}

/// Answers requests at `listener` in threads of their own, as long as the process runs.
pub(super) fn serve(listener: UnixListener, node: Arc<Node>) -> io::Result<()> {
    std::thread::Builder::new().name("control".to_owned()).spawn(move || accept(&listener, &node)).map(drop)
}

fn accept(listener: &UnixListener, node: &Arc<Node>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if open.fetch_add(1, Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Relaxed);
            // A socket that is new has room for it; where not, its end says that something is wrong.
            let _ = stream.set_nonblocking(true);
            let _ = writeln!(&stream, "{}", json!({ "error": TOO_MANY }));
            continue;
        }
        let (node, counted) = (Arc::clone(node), Arc::clone(&open));
        let body = move || {
            // A client that goes away needs no answer.
            let _ = answer(&stream, &node);
            counted.fetch_sub(1, Relaxed);
        };
        if std::thread::Builder::new().name("control".to_owned()).spawn(body).is_err() {
            open.fetch_sub(1, Relaxed);
        }
    }
}

fn answer(mut stream: &UnixStream, node: &Node) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(REQUEST_OCTETS)).read_until(b'\n', &mut line)?;
    let request = serde_json::from_slice::<Request>(&line);
    if let Ok(Request::ZoneExport { zone }) = &request {
        return export(stream, zone, node);
    }
    let is_last = matches!(request, Ok(Request::Stop {}));
    let lines = match request {
        Ok(request) => with_signs_of_life(stream, node, || carry_out(request, node)),
        Err(error) => vec![json!({ "error": format!("no request: {error}") })],
    };
    let mut text = String::new();
    for line in &lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let written = stream.write_all(text.as_bytes());
    if is_last {
        // Behind the answer: with the process its threads end.
        node.ask_to_stop();
    }
    written
}

/// Sends a zone. Where it cannot be read to its end, the answer has none either.
fn export(mut stream: &UnixStream, zone: &str, node: &Node) -> io::Result<()> {
    let found = parse(zone).and_then(|apex| Ok((node.export(&apex)?, apex)));
    let (zone, apex) = match found {
        Ok(found) => found,
        Err(message) => return writeln!(stream, "{}", json!({ "error": message })),
    };
    stream.set_write_timeout(Some(EXPORT_PATIENCE))?;
    let sent = zone.send(&apex, io::BufWriter::with_capacity(128 << 10, stream));
    if let Err(error) = &sent {
        let why = match error.kind() {
            ErrorKind::WouldBlock => format!("nothing was taken for {} s", EXPORT_PATIENCE.as_secs()),
            _ => error.to_string(),
        };
        tracing::warn!(zone = apex.to_string(), "zone {apex}: not exported to the end: {why}");
    }
    sent
}

/// Carries out `act`, and tells whoever waits for it, every second, that something goes on; nothing, where nothing does.
fn with_signs_of_life<T: Send>(mut stream: &UnixStream, node: &Node, act: impl FnOnce() -> T + Send) -> T {
    let (sender, done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let teller = std::thread::Builder::new().name("control".to_owned()).spawn_scoped(scope, move || {
            while done.recv_timeout(SIGN_OF_LIFE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let activities = node.activities();
                let line = json!({ SIGN_OF_LIFE: activities });
                // Who has gone away is told nothing; what was asked is carried out all the same.
                if !activities.is_empty() && writeln!(stream, "{line}").is_err() {
                    break;
                }
            }
        });
        let outcome = act();
        drop(sender);
        // Lines of the answer come behind those of the teller. Without a thread nothing is told.
        let _ = teller.map(std::thread::ScopedJoinHandle::join);
        outcome
    })
}

fn carry_out(request: Request, node: &Node) -> Vec<Value> {
    let done = |what: Value| json!({ "done": what });
    match request {
        Request::Status {} => vec![done(node.status())],
        Request::Reload { zone: None } => vec![match node.reload() {
            Ok(report) => done(report),
            Err(problems) => json!({ "error": problems }),
        }],
        Request::Reload { zone: Some(zone) } => vec![of_zone(&zone, |apex| node.reload_zone(apex))],
        Request::ZoneStatus { zone: None } => with_end(node.zone_status(None)),
        Request::ZoneStatus { zone: Some(zone) } => match parse(&zone) {
            Ok(apex) => match node.zone_status(Some(&apex)) {
                found if found.is_empty() => vec![json!({ "error": no_zone(&apex) })],
                found => with_end(found),
            },
            Err(message) => vec![json!({ "error": message })],
        },
        Request::ZoneRefresh { zone } => vec![of_zone(&zone, |apex| node.refresh(apex, false))],
        Request::ZoneRetransfer { zone } => vec![of_zone(&zone, |apex| node.refresh(apex, true))],
        Request::ZonePurge { zone } => vec![of_zone(&zone, |apex| node.purge_zone(apex))],
        // That is sent piece by piece.
        Request::ZoneExport { .. } => Vec::new(),
        Request::Purge {} => vec![match node.purge_all() {
            Ok(purged) => done(purged),
            Err(message) => json!({ "error": message }),
        }],
        Request::Stop {} => vec![done(json!("stopping"))],
    }
}

fn with_end(mut lines: Vec<Value>) -> Vec<Value> {
    lines.push(json!({ "done": lines.len() }));
    lines
}

fn of_zone(zone: &str, act: impl FnOnce(&Name) -> Result<Value, String>) -> Value {
    match parse(zone).and_then(|apex| act(&apex)) {
        Ok(done) => json!({ "done": done }),
        Err(message) => json!({ "error": message }),
    }
}

fn parse(zone: &str) -> Result<Name, String> {
    let name = zone.parse::<Name>().map_err(|error| format!("{zone:?} is no domain name: {error}"))?;
    Ok(name.view().to_canonical())
}

/// What is said of a zone that is not there.
pub(super) fn no_zone(apex: &Name) -> String {
    format!("there is no zone {apex} here: `nonesuch ctl zone status` lists those that are")
}
