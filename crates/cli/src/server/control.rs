//! The control socket: receives one line of JSON and responds with lines of JSON, for `nonesuch
//! ctl` and other programs.
//!
//! [`control_protocol`](crate::control_protocol) defines the messages. Every process that may open
//! the socket may send all requests. The socket belongs to the server's user and, if the
//! configuration names one, to a group.
//!
//! While the server works on a request, it sends a progress line each second. A progress line has
//! the member `working`, which lists the activities of the server.

pub(crate) mod error;
mod export;
pub(crate) mod socket;
mod status;
mod zones;

use crate::control_protocol::{Activity, Line, Request, ZoneReport};
use crate::server::daemon::Daemon;
use crate::server::resolver::daemon::ResolverDaemon;
use error::ControlError;
use nonesuch_proto::Name;
use serde::Serialize;
use socket::ControlSocket;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Maximum length of a request, in octets.
const MAX_REQUEST_OCTETS: u64 = 4096;
/// Maximum number of simultaneous connections.
const MAX_CONNECTIONS: usize = 16;
/// Maximum time from the start of a connection to the end of the request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for each write of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for each write of an exported zone. It is long because a person may read the output page
/// by page.
const EXPORT_WRITE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Pause after the system could not accept a connection because of a lack of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time between two progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The server that the requests are for.
#[derive(Clone)]
pub(crate) enum ControlledServer {
    Authoritative(Arc<Daemon>),
    Resolver(Arc<ResolverDaemon>),
}

impl ControlledServer {
    fn activities(&self) -> Vec<Activity> {
        match self {
            Self::Authoritative(daemon) => daemon.activities(),
            Self::Resolver(_) => Vec::new(),
        }
    }

    fn request_stop(&self) {
        match self {
            Self::Authoritative(daemon) => daemon.request_stop(),
            Self::Resolver(daemon) => daemon.request_stop(),
        }
    }

    /// Executes a request and returns the lines of the response.
    fn execute(&self, request: Request) -> Vec<Line> {
        let lines = match self {
            Self::Authoritative(daemon) => execute(request, daemon),
            Self::Resolver(daemon) => execute_in_resolver(&request, daemon),
        };
        lines.unwrap_or_else(|error| vec![error_line(&error)])
    }
}

/// Answers requests at `socket` in separate threads until the process ends.
///
/// # Errors
/// The listener cannot be duplicated, or the thread that accepts connections cannot be started.
pub(crate) fn serve(socket: &ControlSocket, server: ControlledServer) -> io::Result<()> {
    let listener = socket.listener()?;
    std::thread::Builder::new().name("control".to_owned()).spawn(move || accept(&listener, &server)).map(drop)
}

/// Accepts connections without end, and handles each in a separate thread.
fn accept(listener: &UnixListener, server: &ControlledServer) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        if open.fetch_add(1, Relaxed) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Relaxed);
            // The send buffer of a new socket has room for this line. If it does not, the client
            // sees only the end of the connection.
            let _ = stream.set_nonblocking(true);
            let _ = write_line(&stream, &error_line(&ControlError::TooManyConnections));
            continue;
        }
        let (server, open_connections) = (server.clone(), Arc::clone(&open));
        let body = move || {
            // An error means that the client has disconnected or is too slow, and gets no response.
            let _ = handle_connection(&stream, &server);
            // Without a drop guard, because a panic in `handle_connection` ends the process
            // (`abort_on_panic`).
            open_connections.fetch_sub(1, Relaxed);
        };
        if std::thread::Builder::new().name("control".to_owned()).spawn(body).is_err() {
            open.fetch_sub(1, Relaxed);
        }
    }
}

/// Reads one request and sends the response.
///
/// # Errors
/// The client does not send a complete request in time, or does not read the response.
fn handle_connection(mut stream: &UnixStream, server: &ControlledServer) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let line = read_request(stream, REQUEST_TIMEOUT)?;
    if line.len() as u64 == MAX_REQUEST_OCTETS && !line.ends_with(b"\n") {
        return write_line(stream, &error_line(&ControlError::RequestTooLong { max: MAX_REQUEST_OCTETS }));
    }
    let request = serde_json::from_slice::<Request>(&line);
    if let (Ok(Request::ZoneExport { zone }), ControlledServer::Authoritative(daemon)) = (&request, server) {
        return export(stream, zone, daemon);
    }
    let stops_server = matches!(request, Ok(Request::Stop {}));
    let lines = match request {
        Ok(request) => with_progress_lines(stream, || server.activities(), || server.execute(request)),
        Err(error) => vec![error_line(&ControlError::Request(error))],
    };
    let mut text = Vec::new();
    let written = lines.iter().try_for_each(|line| write_line(&mut text, line));
    let written = written.and_then(|()| stream.write_all(&text));
    if stops_server {
        // After the response, because all threads end with the process.
        server.request_stop();
    }
    written
}

/// Reads a request line of at most [`MAX_REQUEST_OCTETS`] octets. A longer line has no line end.
///
/// # Errors
/// Reading fails, or the line does not end within `time`.
fn read_request(stream: &UnixStream, time: Duration) -> io::Result<Vec<u8>> {
    let reader = DeadlineReader { stream, deadline: Instant::now() + time };
    let mut line = Vec::new();
    BufReader::new(reader.take(MAX_REQUEST_OCTETS)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Reads from a stream until `deadline`. A read timeout alone would start again with each octet, so
/// slow clients could occupy all connections.
struct DeadlineReader<'s> {
    stream: &'s UnixStream,
    deadline: Instant,
}

impl io::Read for DeadlineReader<'_> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(remaining))?;
        self.stream.read(octets)
    }
}

/// Sends a zone. If reading the zone fails, the response ends without the final line.
fn export(stream: &UnixStream, zone: &str, daemon: &Daemon) -> io::Result<()> {
    let found = parse_zone_name(zone).and_then(|apex| Ok((daemon.export(&apex)?, apex)));
    let (zone, apex) = match found {
        Ok(found) => found,
        Err(error) => return write_line(stream, &error_line(&error)),
    };
    stream.set_write_timeout(Some(EXPORT_WRITE_TIMEOUT))?;
    let outcome = zone.send(&apex, io::BufWriter::with_capacity(128 << 10, stream));
    if let Err(error) = &outcome {
        let why = match error.kind() {
            ErrorKind::WouldBlock => {
                format!("the client read nothing for {} s", EXPORT_WRITE_TIMEOUT.as_secs())
            }
            _ => error.to_string(),
        };
        tracing::warn!(name: "export-incomplete", zone = apex.to_string(), "zone {apex}: export incomplete: {why}");
    }
    outcome
}

/// Runs `action` and returns its result. Each second until it returns, sends a line with the
/// `activities` of the server. The line shows the client that the request is still executed, so it
/// is also sent without activities.
fn with_progress_lines<T: Send>(
    stream: &UnixStream,
    activities: impl Fn() -> Vec<Activity> + Send,
    action: impl FnOnce() -> T + Send,
) -> T {
    let (sender, finished) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let body = move || {
            while finished.recv_timeout(PROGRESS_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // If the client has disconnected, the lines end, but the request is still executed.
                if write_line(stream, &Line::working(&activities())).is_err() {
                    break;
                }
            }
        };
        let progress = std::thread::Builder::new().name("control".to_owned()).spawn_scoped(scope, body);
        let outcome = action();
        drop(sender);
        // The response must follow the progress lines. If the thread could not be started, there
        // are no progress lines.
        let _ = progress.map(std::thread::ScopedJoinHandle::join);
        outcome
    })
}

/// Executes a request of a resolver.
fn execute_in_resolver(request: &Request, daemon: &ResolverDaemon) -> Result<Vec<Line>, ControlError> {
    match request {
        Request::Status {} => Ok(vec![Line::done(&daemon.status())]),
        Request::Reload { zone: None } => Ok(vec![Line::done(&daemon.reload()?)]),
        Request::NegativeAnchorAdd { zone, lifetime, recheck } => {
            respond_for_zone(zone, |zone| daemon.add_negative_anchor(zone, *lifetime, *recheck))
        }
        Request::NegativeAnchorRemove { zone } => {
            respond_for_zone(zone, |zone| daemon.remove_negative_anchor(zone))
        }
        Request::NegativeAnchorList {} => Ok(vec![Line::done(&daemon.negative_anchors())]),
        Request::CacheFlush { name } => {
            respond_for_zone(name.as_deref().unwrap_or("."), |name| Ok(daemon.flush_cache(name)))
        }
        Request::Stop {} => Ok(vec![Line::done(&"stopping")]),
        _ => Err(ControlError::NotForResolver),
    }
}

/// Executes a request of an authoritative server.
fn execute(request: Request, daemon: &Daemon) -> Result<Vec<Line>, ControlError> {
    match request {
        Request::Status {} => Ok(vec![Line::done(&daemon.status())]),
        Request::Reload { zone: None } => {
            daemon.reload().map(|done| vec![Line::done(&done)]).map_err(Into::into)
        }
        Request::Reload { zone: Some(zone) } => respond_for_zone(&zone, |apex| daemon.reload_zone(apex)),
        Request::ZoneStatus { zone: None } => Ok(zone_lines(&daemon.zone_status(None))),
        Request::ZoneStatus { zone: Some(zone) } => status_of_zone(&zone, daemon),
        Request::ZoneRefresh { zone } => respond_for_zone(&zone, |apex| daemon.refresh(apex, false)),
        Request::ZoneRetransfer { zone } => respond_for_zone(&zone, |apex| daemon.refresh(apex, true)),
        Request::ZoneNotify { zone } => respond_for_zone(&zone, |apex| daemon.notify_zone(apex)),
        Request::ZoneAdd { zone, settings } => {
            respond_for_zone(&zone, |apex| daemon.add_zone(apex, settings))
        }
        Request::ZoneRemove { zone } => respond_for_zone(&zone, |apex| daemon.remove_zone(apex)),
        Request::ZonePurge { zone } => respond_for_zone(&zone, |apex| daemon.purge_zone(apex)),
        // `handle_connection` sends an export piece by piece.
        Request::ZoneExport { .. } => Ok(Vec::new()),
        Request::NegativeAnchorAdd { .. }
        | Request::NegativeAnchorRemove { .. }
        | Request::NegativeAnchorList {}
        | Request::CacheFlush { .. } => Err(ControlError::OnlyForResolver),
        Request::Purge {} => daemon.purge_all().map(|done| vec![Line::done(&done)]),
        Request::Stop {} => Ok(vec![Line::done(&"stopping")]),
    }
}

/// The last line of the response to a request that failed.
fn error_line(error: &ControlError) -> Line {
    Line::Error(error.to_string())
}

/// Writes one line of a response.
fn write_line(mut out: impl io::Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    out.write_all(text.as_bytes())
}

fn status_of_zone(zone: &str, daemon: &Daemon) -> Result<Vec<Line>, ControlError> {
    let apex = parse_zone_name(zone)?;
    let found = daemon.zone_status(Some(&apex));
    if found.is_empty() { Err(ControlError::NoZone(apex)) } else { Ok(zone_lines(&found)) }
}

/// One line for each zone, and a final line with the number of zones.
fn zone_lines(reports: &[ZoneReport]) -> Vec<Line> {
    let end = Line::done(&reports.len());
    reports.iter().map(Line::zone).chain([end]).collect()
}

/// Performs `action` for the zone with the name `zone`, and returns its result as a line.
fn respond_for_zone<T: Serialize>(
    zone: &str,
    action: impl FnOnce(&Name) -> Result<T, ControlError>,
) -> Result<Vec<Line>, ControlError> {
    let done = parse_zone_name(zone).and_then(|apex| action(&apex))?;
    Ok(vec![Line::done(&done)])
}

fn parse_zone_name(zone: &str) -> Result<Name, ControlError> {
    let name = zone.parse::<Name>();
    let name = name.map_err(|source| ControlError::Name { text: zone.to_owned(), source })?;
    Ok(name.view().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_of_a_slow_client_do_not_extend_the_time_for_a_request() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let (sender, received) = mpsc::channel::<()>();
        let line = std::thread::scope(|scope| {
            scope.spawn(move || {
                // With one octet each millisecond, the maximum length takes seconds.
                let pause = Duration::from_millis(1);
                while received.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    client.write_all(b" ").unwrap();
                }
            });
            let line = read_request(&server, Duration::from_millis(100));
            drop(sender);
            line
        });
        let error = line.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
    }

    #[test]
    fn a_request_ends_with_its_line() {
        let (server, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"{}\nmore").unwrap();
        assert_eq!(read_request(&server, REQUEST_TIMEOUT).unwrap(), b"{}\n");
    }

    #[test]
    fn progress_is_sent_without_activities() {
        let (server, client) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let receive_line = || {
            let mut line = String::new();
            BufReader::new(&client).read_line(&mut line).unwrap();
            line
        };
        let line = with_progress_lines(&server, Vec::new, receive_line);
        let line: Line = serde_json::from_str(&line).unwrap();
        assert!(matches!(line, Line::Working(_)), "{line:?}");
    }
}
