//! dnstap (dnstap.info): what was asked and answered, as protocol buffers in Frame Streams, to a Unix socket or a file.
//!
//! Each thread encodes into a buffer of its own, of bounded size; a writer's thread takes the buffers away twenty times a
//! second. Answering never waits for it: what there is no room for is dropped and counted. A connection that breaks is
//! made again.

mod frames;
mod message;
mod queue;
mod writer;

pub use queue::DnstapSender;

use crate::statistics::TransportKind;
use message::Dnstap;
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

/// Octets of frames that wait for the writer at most, for each thread, by default.
pub const DEFAULT_QUEUE: usize = 1 << 20;
/// How long the end of a tap waits for what is queued to be written.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// Where frames go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A Unix socket that a reader listens on.
    Socket(PathBuf),
    /// A file. One that is there and not empty is renamed first: its time of last change is added to its name.
    File(PathBuf),
}

/// What is tapped, and where it goes.
#[derive(Clone, Debug)]
pub struct DnstapOptions {
    /// Where frames go.
    pub destination: Destination,
    /// Who says it: usually the host's name. Left out where empty.
    pub identity: Vec<u8>,
    /// Program and version. Left out where empty.
    pub version: Vec<u8>,
    /// Whether queries are tapped.
    pub queries: bool,
    /// Whether responses are tapped.
    pub responses: bool,
    /// Octets of frames that wait for the writer at most, for each thread.
    pub queue_octets: usize,
}

impl DnstapOptions {
    /// Queries and responses, with the default queue.
    #[must_use]
    pub const fn new(destination: Destination) -> Self {
        Self {
            destination,
            identity: Vec::new(),
            version: Vec::new(),
            queries: true,
            responses: true,
            queue_octets: DEFAULT_QUEUE,
        }
    }
}

/// Why a tap cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DnstapError {
    /// The file cannot be written.
    #[error("{}: {source}: the file for dnstap, or its folder, must be writable for the user that the server runs as", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system has no thread left.
    #[error("the thread that writes dnstap cannot be started: {0}")]
    Thread(io::Error),
}

/// What a tap has done since it was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DnstapCounters {
    /// Frames written.
    pub written: u64,
    /// Their octets.
    pub octets: u64,
    /// Frames dropped because a thread's queue was full.
    pub dropped: u64,
    /// Frames lost with a connection that broke, or because a file could not be written.
    pub lost: u64,
    /// Times that the socket was connected to, or a file begun.
    pub opened: u64,
    /// Times that this failed, or that what was open broke.
    pub failures: u64,
}

/// What the tap, its threads and its writer share.
#[derive(Debug, Default)]
struct DnstapState {
    lanes: Mutex<Vec<Arc<FrameQueue>>>,
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
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A running tap. Dropping it [finishes](DnstapOutput::finish) it.
#[derive(Debug)]
pub struct DnstapOutput {
    shared: Arc<DnstapState>,
    wanted: QueueOptions,
    frame: Dnstap,
    writer: Thread,
    /// Tells that the writer has ended.
    ended: Mutex<Receiver<()>>,
}

impl DnstapOutput {
    /// Starts the writer. A file is begun at once; a socket is connected to when there is a reader.
    pub fn start(options: DnstapOptions) -> Result<Self, DnstapError> {
        let shared = Arc::<DnstapState>::default();
        let DnstapOptions { destination, identity, version, queries, responses, queue_octets } = options;
        let writer = Writer::new(destination, Arc::clone(&shared))?;
        let (tell_ended, ended) = sync_channel(1);
        let body = move || {
            writer.run();
            // Nobody waits any more where this fails.
            let _ = tell_ended.send(());
        };
        let thread =
            thread::Builder::new().name("dnstap".to_owned()).spawn(body).map_err(DnstapError::Thread)?;
        Ok(Self {
            shared,
            wanted: QueueOptions { queries, responses, queue_octets },
            frame: Dnstap::new(&identity, &version),
            writer: thread.thread().clone(),
            ended: Mutex::new(ended),
        })
    }

    /// The tap of one more thread, that answers on `local` what `carrier` brings.
    #[must_use]
    pub fn thread(&self, carrier: TransportKind, local: SocketAddr) -> DnstapSender {
        let lane = Arc::<FrameQueue>::default();
        self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&lane));
        DnstapSender::new(lane, self.wanted.clone(), self.frame.clone(), carrier, local)
    }

    /// Has a file that was moved away ended, and another one begun under its name; else nothing happens.
    pub fn reopen(&self) {
        self.shared.reopen.store(true, Relaxed);
        self.writer.unpark();
    }

    /// Writes what is queued, within two seconds, and ends; what is tapped from then on is lost. For servers that end with the
    /// process, where nothing is dropped: to be called when those who answer have ended.
    pub fn finish(&self) {
        self.shared.stop.store(true, Relaxed);
        self.writer.unpark();
        // A reader that takes nothing does not keep the server from stopping.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(STOP_PATIENCE) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("dnstap: the reader did not take what was queued in time");
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> DnstapCounters {
        let shared = &self.shared;
        DnstapCounters {
            written: shared.written.load(Relaxed),
            octets: shared.octets.load(Relaxed),
            dropped: shared.queues().iter().map(|lane| lane.dropped.load(Relaxed)).sum(),
            lost: shared.lost.load(Relaxed),
            opened: shared.opened.load(Relaxed),
            failures: shared.failures.load(Relaxed),
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
