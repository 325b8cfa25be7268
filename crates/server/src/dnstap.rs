//! dnstap (dnstap.info): exports queries and responses as protocol buffers in Frame Streams, to a
//! Unix socket or a file.
//!
//! Each thread encodes frames into its own buffer of bounded size. A writer thread takes the
//! buffers twenty times per second. Threads that answer queries never wait for the writer: if a
//! buffer is full, frames are dropped and counted. The writer reconnects after a broken connection.

mod frames;
mod queue;
mod writer;

pub use queue::DnstapSender;

use nonesuch_net::Transport;
use nonesuch_proto::dnstap::Dnstap;
use queue::{FrameQueue, QueueOptions};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use writer::Writer;

/// Default of [`DnstapOptions::queue_octets`].
pub const DEFAULT_QUEUE_OCTETS: usize = 1 << 20;
/// Maximum time for writing the queued frames when the export ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The destination of the frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A Unix socket on which a reader listens.
    Socket(PathBuf),
    /// A file. An existing file that is not empty is renamed first: its modification time is
    /// appended to its name.
    File(PathBuf),
}

/// The exported messages and their destination.
#[derive(Clone, Debug)]
pub struct DnstapOptions {
    /// The destination of the frames.
    pub destination: Destination,
    /// The identity of the server, usually the host name. Omitted if empty.
    pub identity: Vec<u8>,
    /// Name and version of the program. Omitted if empty.
    pub version: Vec<u8>,
    /// Whether queries are exported.
    pub queries: bool,
    /// Whether responses are exported.
    pub responses: bool,
    /// Maximum octets of queued frames, for each thread.
    pub queue_octets: usize,
}

impl DnstapOptions {
    /// Returns options for queries and responses, with the default queue size.
    #[must_use]
    pub const fn new(destination: Destination) -> Self {
        Self {
            destination,
            identity: Vec::new(),
            version: Vec::new(),
            queries: true,
            responses: true,
            queue_octets: DEFAULT_QUEUE_OCTETS,
        }
    }
}

/// Why the export cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DnstapError {
    /// The file is not writable.
    #[error("{}: cannot open the dnstap file: {source}: make the file, or its directory, writable for the server's user", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system cannot start another thread.
    #[error("cannot start the dnstap writer thread: {0}")]
    Thread(io::Error),
}

/// Counters of the export since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnstapCounters {
    /// Number of frames written.
    pub written: u64,
    /// Octets of the frames written.
    pub octets: u64,
    /// Number of frames dropped because the queue of a thread was full.
    pub dropped: u64,
    /// Number of frames lost because a connection broke or a file could not be written.
    pub lost: u64,
    /// Number of successful connections to the socket, or of files opened.
    pub opened: u64,
    /// Number of failures to connect or open, and of connections and files that failed later.
    pub failures: u64,
}

/// State shared by [`DnstapOutput`], its threads and its writer.
#[derive(Debug, Default)]
struct DnstapState {
    queues: Mutex<Vec<Arc<FrameQueue>>>,
    stop: AtomicBool,
    reopen: AtomicBool,
    written: AtomicU64,
    octets: AtomicU64,
    lost: AtomicU64,
    opened: AtomicU64,
    failures: AtomicU64,
}

impl DnstapState {
    fn queues(&self) -> Vec<Arc<FrameQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A running dnstap export. Dropping it calls [`finish`](DnstapOutput::finish).
#[derive(Debug)]
pub struct DnstapOutput {
    state: Arc<DnstapState>,
    queue_options: QueueOptions,
    frame: Dnstap,
    writer: Thread,
    /// Receives a message when the writer has ended.
    ended: Mutex<Receiver<()>>,
}

impl DnstapOutput {
    /// Starts the writer. It opens a file immediately, and connects to a socket as soon as there is
    /// a reader.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if the thread cannot start.
    pub fn start(options: DnstapOptions) -> Result<Self, DnstapError> {
        let state = Arc::<DnstapState>::default();
        let DnstapOptions { destination, identity, version, queries, responses, queue_octets } = options;
        let writer = Writer::new(destination, Arc::clone(&state))?;
        let (ended_sender, ended) = sync_channel(1);
        let body = move || {
            writer.run();
            // Sending fails only if no receiver is waiting any more.
            let _ = ended_sender.send(());
        };
        let thread =
            thread::Builder::new().name("dnstap".to_owned()).spawn(body).map_err(DnstapError::Thread)?;
        Ok(Self {
            state,
            queue_options: QueueOptions { queries, responses, queue_octets },
            frame: Dnstap::new(&identity, &version),
            writer: thread.thread().clone(),
            ended: Mutex::new(ended),
        })
    }

    /// Returns the sender for one more thread, which answers messages over `transport` on `local`.
    #[must_use]
    pub fn thread(&self, transport: Transport, local: SocketAddr) -> DnstapSender {
        let queue = Arc::<FrameQueue>::default();
        self.state.queues.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&queue));
        DnstapSender::new(queue, self.queue_options.clone(), self.frame.clone(), transport, local)
    }

    /// If the file was moved away, closes it and opens a new file under the original name.
    /// Otherwise does nothing.
    pub fn reopen(&self) {
        self.state.reopen.store(true, Relaxed);
        self.writer.unpark();
    }

    /// Writes queued frames for up to two seconds, and then ends the export. Later frames are lost.
    /// If the process ends without dropping this value, the server must call this function after
    /// its workers have ended.
    pub fn finish(&self) {
        self.state.stop.store(true, Relaxed);
        self.writer.unpark();
        // A reader that does not read must not prevent the server from stopping.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(STOP_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(name: "dnstap-frames-lost", "dnstap: the reader did not accept the queued frames in time");
        }
    }

    /// The current counters.
    #[must_use]
    pub fn counters(&self) -> DnstapCounters {
        let state = &self.state;
        DnstapCounters {
            written: state.written.load(Relaxed),
            octets: state.octets.load(Relaxed),
            dropped: state.queues().iter().map(|queue| queue.dropped.load(Relaxed)).sum(),
            lost: state.lost.load(Relaxed),
            opened: state.opened.load(Relaxed),
            failures: state.failures.load(Relaxed),
        }
    }
}

impl Drop for DnstapOutput {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests;
