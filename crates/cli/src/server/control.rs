//! The control socket: receives one line of JSON and responds with lines of JSON, for `nonesuch
//! ctl` and other programs.
//!
//! [`control_protocol`](crate::control_protocol) defines the messages. Every process that may open
//! the socket may send all requests. The socket belongs to the server's user and, if the
//! configuration names one, to a group.
//!
//! For a request that takes longer than a second, a line with the member `working` precedes the
//! response each second. It lists the activities of the server.

mod error;
mod export;
pub(crate) mod socket;
mod status;
mod zones;

use crate::control_protocol::{Line, Request, ZoneReport};
use crate::server::daemon::Daemon;
use error::ControlError;
use nonesuch_proto::Name;
use serde::Serialize;
use socket::ControlSocket;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Maximum length of a request, in octets.
const REQUEST_OCTETS: u64 = 4096;
/// Maximum number of simultaneous connections.
const CONNECTIONS: usize = 16;
/// Timeout for the receipt of a request and for each write of a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout for each write of an exported zone. It is long because a person may read the output page
/// by page.
const EXPORT_PATIENCE: Duration = Duration::from_secs(3600);

/// Time between two progress lines.
const SIGN_OF_LIFE_INTERVAL: Duration = Duration::from_secs(1);

/// Answers requests at `socket` in separate threads until the process ends.
pub(crate) fn serve(socket: &ControlSocket, node: Arc<Daemon>) -> io::Result<()> {
    let listener = socket.listener()?;
    std::thread::Builder::new().name("control".to_owned()).spawn(move || accept(&listener, &node)).map(drop)
}

fn accept(listener: &UnixListener, node: &Arc<Daemon>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if open.fetch_add(1, Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Relaxed);
            // The send buffer of a new socket has room for this line. If it does not, the client
            // sees only the end of the connection.
            let _ = stream.set_nonblocking(true);
            let _ = write_line(&stream, &failed(&ControlError::TooManyConnections));
            continue;
        }
        let (node, counted) = (Arc::clone(node), Arc::clone(&open));
        let body = move || {
            // A write error means that the client has disconnected, and needs no response.
            let _ = answer(&stream, &node);
            counted.fetch_sub(1, Relaxed);
        };
        if std::thread::Builder::new().name("control".to_owned()).spawn(body).is_err() {
            open.fetch_sub(1, Relaxed);
        }
    }
}

fn answer(mut stream: &UnixStream, node: &Daemon) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(REQUEST_OCTETS)).read_until(b'\n', &mut line)?;
    if line.len() as u64 == REQUEST_OCTETS && !line.ends_with(b"\n") {
        return write_line(stream, &failed(&ControlError::RequestTooLong { most: REQUEST_OCTETS }));
    }
    let request = serde_json::from_slice::<Request>(&line);
    if let Ok(Request::ZoneExport { zone }) = &request {
        return export(stream, zone, node);
    }
    let is_last = matches!(request, Ok(Request::Stop {}));
    let lines = match request {
        Ok(request) => with_signs_of_life(stream, node, || carry_out(request, node)),
        Err(error) => vec![failed(&ControlError::Request(error))],
    };
    let mut text = Vec::new();
    let written = lines.iter().try_for_each(|line| write_line(&mut text, line));
    let written = written.and_then(|()| stream.write_all(&text));
    if is_last {
        // After the response, because all threads end with the process.
        node.ask_to_stop();
    }
    written
}

/// Sends a zone. If reading the zone fails, the response ends without the final line.
fn export(stream: &UnixStream, zone: &str, node: &Daemon) -> io::Result<()> {
    let found = parse(zone).and_then(|apex| Ok((node.export(&apex)?, apex)));
    let (zone, apex) = match found {
        Ok(found) => found,
        Err(error) => return write_line(stream, &failed(&error)),
    };
    stream.set_write_timeout(Some(EXPORT_PATIENCE))?;
    let sent = zone.send(&apex, io::BufWriter::with_capacity(128 << 10, stream));
    if let Err(error) = &sent {
        let why = match error.kind() {
            ErrorKind::WouldBlock => format!("the client read nothing for {} s", EXPORT_PATIENCE.as_secs()),
            _ => error.to_string(),
        };
        tracing::warn!(name: "export-incomplete", zone = apex.to_string(), "zone {apex}: export incomplete: {why}");
    }
    sent
}

/// Runs `act`. Each second until it returns, sends a line with the activities of the server, if
/// there are any.
fn with_signs_of_life<T: Send>(stream: &UnixStream, node: &Daemon, act: impl FnOnce() -> T + Send) -> T {
    let (sender, done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let teller = std::thread::Builder::new().name("control".to_owned()).spawn_scoped(scope, move || {
            while done.recv_timeout(SIGN_OF_LIFE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let activities = node.activities();
                // If the client has disconnected, the lines end, but the request is still carried
                // out.
                if !activities.is_empty() && write_line(stream, &Line::working(&activities)).is_err() {
                    break;
                }
            }
        });
        let outcome = act();
        drop(sender);
        // The response must follow the progress lines. If the thread could not be started, there
        // are no progress lines.
        let _ = teller.map(std::thread::ScopedJoinHandle::join);
        outcome
    })
}

fn carry_out(request: Request, node: &Daemon) -> Vec<Line> {
    let lines = match request {
        Request::Status {} => Ok(vec![Line::done(&node.status())]),
        Request::Reload { zone: None } => {
            node.reload().map(|done| vec![Line::done(&done)]).map_err(Into::into)
        }
        Request::Reload { zone: Some(zone) } => of_zone(&zone, |apex| node.reload_zone(apex)),
        Request::ZoneStatus { zone: None } => Ok(zone_lines(&node.zone_status(None))),
        Request::ZoneStatus { zone: Some(zone) } => status_of_zone(&zone, node),
        Request::ZoneRefresh { zone } => of_zone(&zone, |apex| node.refresh(apex, false)),
        Request::ZoneRetransfer { zone } => of_zone(&zone, |apex| node.refresh(apex, true)),
        Request::ZoneNotify { zone } => of_zone(&zone, |apex| node.notify_zone(apex)),
        Request::ZoneAdd { zone, settings } => of_zone(&zone, |apex| node.add_zone(apex, settings)),
        Request::ZoneRemove { zone } => of_zone(&zone, |apex| node.remove_zone(apex)),
        Request::ZonePurge { zone } => of_zone(&zone, |apex| node.purge_zone(apex)),
        // `answer` sends an export piece by piece.
        Request::ZoneExport { .. } => Ok(Vec::new()),
        Request::Purge {} => node.purge_all().map(|done| vec![Line::done(&done)]),
        Request::Stop {} => Ok(vec![Line::done(&"stopping")]),
    };
    lines.unwrap_or_else(|error| vec![failed(&error)])
}

fn failed(error: &ControlError) -> Line {
    Line::Error(error.to_string())
}

/// Writes one line of a response.
fn write_line(mut out: impl io::Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    out.write_all(text.as_bytes())
}

fn status_of_zone(zone: &str, node: &Daemon) -> Result<Vec<Line>, ControlError> {
    let apex = parse(zone)?;
    let found = node.zone_status(Some(&apex));
    if found.is_empty() { Err(ControlError::NoZone(apex)) } else { Ok(zone_lines(&found)) }
}

/// One line for each zone, and a final line with the number of zones.
fn zone_lines(reports: &[ZoneReport]) -> Vec<Line> {
    let end = Line::done(&reports.len());
    reports.iter().map(Line::zone).chain([end]).collect()
}

fn of_zone<T: Serialize>(
    zone: &str,
    act: impl FnOnce(&Name) -> Result<T, ControlError>,
) -> Result<Vec<Line>, ControlError> {
    let done = parse(zone).and_then(|apex| act(&apex))?;
    Ok(vec![Line::done(&done)])
}

fn parse(zone: &str) -> Result<Name, ControlError> {
    let name = zone.parse::<Name>();
    let name = name.map_err(|source| ControlError::Name { text: zone.to_owned(), source })?;
    Ok(name.view().to_canonical())
}
