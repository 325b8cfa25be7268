//! The sources of messages: files, and a socket to which resolvers connect. Threads read them.

use super::RecordError;
use crate::arguments::PlanRecordArguments;
use crate::files::is_standard_stream;
use nonesuch_lab::capture::{
    CaptureError, CaptureOptions, CaptureReader, CapturedMessage, DnstapConnection, SkipCounts,
};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Maximum messages that wait to be counted. Then the source waits.
const MESSAGES_MAX: usize = 8192;
/// Maximum connections of resolvers.
const CONNECTIONS_MAX: usize = 16;

/// What happens at a source.
pub(super) enum Event {
    /// A resolver has connected.
    Connected,
    Message(CapturedMessage),
    /// Packets and frames that were skipped.
    Skipped(SkipCounts),
    /// A resolver has closed its connection. `is_complete`: it has sent all its messages.
    Disconnected {
        is_complete: bool,
    },
    /// A file has ended, or cannot be read further.
    Ended(Result<(), CaptureError>),
}

/// An open source.
pub(super) struct Source {
    pub(super) events: Receiver<Event>,
    /// Whether resolvers connect, and do so again after a restart.
    pub(super) is_live: bool,
    pub(super) name: String,
    _socket: Option<SocketFile>,
}

/// Removes the file of a socket on drop.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Source {
    pub(super) fn open(arguments: &PlanRecordArguments) -> Result<Self, RecordError> {
        match (&arguments.dnstap, &arguments.pcap) {
            (Some(path), _) if is_file(path) => Self::file(path, "dnstap", &arguments.port),
            (Some(path), _) => Self::socket(path),
            (None, Some(path)) => Self::file(path, "packets of", &arguments.port),
            // The parser of the command line requires a source.
            (None, None) => Self::file(Path::new(""), "", &arguments.port),
        }
    }

    /// Opens a capture; `-` is standard input.
    fn file(path: &Path, what: &str, ports: &[u16]) -> Result<Self, RecordError> {
        let mut options = CaptureOptions::default();
        if !ports.is_empty() {
            ports.clone_into(&mut options.ports);
        }
        let reader = if is_standard_stream(path) {
            CaptureReader::new(Path::new("standard input"), Box::new(io::stdin()), &options)?
        } else {
            CaptureReader::open(path, &options)?
        };
        let (sender, events) = sync_channel(MESSAGES_MAX);
        spawn(move || read_file(reader, &sender))?;
        let name = format!("{what} {}", path.display());
        Ok(Self { events, is_live: false, name, _socket: None })
    }

    /// Listens on a socket for resolvers.
    fn socket(path: &Path) -> Result<Self, RecordError> {
        let is_abandoned = match UnixStream::connect(path) {
            Ok(_) => return Err(RecordError::SocketInUse { path: path.to_path_buf() }),
            // A process that was killed left it. Sockets of another kind have other errors.
            Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        };
        let failed = |source| RecordError::Listen { path: path.to_path_buf(), source };
        if is_abandoned && fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let socket = SocketFile(path.to_path_buf());
        let (sender, events) = sync_channel(MESSAGES_MAX);
        let own_path = path.to_path_buf();
        spawn(move || accept(&listener, &own_path, &sender))?;
        let name = format!("dnstap socket {}", path.display());
        Ok(Self { events, is_live: true, name, _socket: Some(socket) })
    }
}

/// Whether a path names something to read, and not a socket or nothing.
fn is_file(path: &Path) -> bool {
    is_standard_stream(path) || fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket())
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), RecordError> {
    thread::Builder::new().spawn(work).map(drop).map_err(RecordError::Start)
}

/// Sends the messages of a file. Sending fails only if recording has ended.
fn read_file(mut reader: CaptureReader, sender: &SyncSender<Event>) {
    let mut ended = Ok(());
    for message in reader.by_ref() {
        match message {
            Ok(message) => {
                if sender.send(Event::Message(message)).is_err() {
                    return;
                }
            }
            Err(error) => ended = Err(error),
        }
    }
    let _ = sender.send(Event::Skipped(*reader.skipped()));
    let _ = sender.send(Event::Ended(ended));
}

/// Accepts connections until the process ends.
fn accept(listener: &UnixListener, path: &Path, sender: &SyncSender<Event>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        // Without a descriptor, the resolver tries again.
        let Ok(stream) = stream else {
            thread::sleep(std::time::Duration::from_millis(100));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (path, sender, own) = (path.to_path_buf(), sender.clone(), Arc::clone(&open));
        let read = move || {
            read_connection(stream, &path, &sender);
            own.fetch_sub(1, Ordering::Relaxed);
        };
        if spawn(read).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Sends the messages of a connection. A connection that is not one of a dnstap writer is closed.
fn read_connection(stream: UnixStream, path: &Path, sender: &SyncSender<Event>) {
    let Ok(mut connection) = DnstapConnection::accept(stream, path) else { return };
    if sender.send(Event::Connected).is_err() {
        return;
    }
    let mut is_readable = true;
    for message in connection.by_ref() {
        match message {
            Ok(message) => {
                if sender.send(Event::Message(message)).is_err() {
                    return;
                }
            }
            Err(_) => is_readable = false,
        }
    }
    let is_complete = is_readable && connection.has_stopped();
    let _ = sender.send(Event::Skipped(*connection.skipped()));
    drop(connection);
    let _ = sender.send(Event::Disconnected { is_complete });
}
