//! The queue between one thread and the dnstap writer. The thread encodes frames into a buffer of
//! bounded size, which the writer takes.

use nonesuch_net::Transport;
use nonesuch_proto::dnstap::family::{INET, INET6};
use nonesuch_proto::dnstap::{Dnstap, Message, MessageKind, protocol, push_data};
use prost::Message as _;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A buffer of complete frames.
#[derive(Debug, Default)]
pub(super) struct FrameBuffer {
    pub(super) octets: Vec<u8>,
    pub(super) count: u64,
}

impl FrameBuffer {
    fn append(&mut self, other: &mut Self) {
        self.octets.append(&mut other.octets);
        self.count += mem::take(&mut other.count);
    }
}

/// The state that one thread shares with the writer.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    frames: Mutex<FrameBuffer>,
    /// Number of frames dropped because the queue was full.
    pub(super) dropped: AtomicU64,
}

impl FrameQueue {
    /// Takes the queued frames, and leaves the empty buffer from `frames` in the queue.
    pub(super) fn swap(&self, frames: &mut FrameBuffer) {
        mem::swap(&mut *self.frames.lock().unwrap_or_else(PoisonError::into_inner), frames);
    }
}

/// The exported messages, and the maximum size of the queue.
#[derive(Clone, Debug)]
pub(super) struct QueueOptions {
    pub(super) queries: bool,
    pub(super) responses: bool,
    pub(super) queue_octets: usize,
}

/// Exports the messages of one thread. It never waits: if the writer is too slow, frames are
/// dropped and counted.
#[derive(Debug)]
pub struct DnstapSender {
    lane: Arc<FrameQueue>,
    wanted: QueueOptions,
    /// The fields that are equal in all frames of this thread.
    frame: Dnstap,
    /// The last message. Its buffers are reused.
    message: Message,
    /// Frames that are not in the queue yet, because the writer was swapping buffers.
    pending: FrameBuffer,
    /// Time at which the batch was received, since 1970.
    begun: Duration,
}

impl DnstapSender {
    pub(super) fn new(
        lane: Arc<FrameQueue>,
        wanted: QueueOptions,
        frame: Dnstap,
        carrier: Transport,
        local: SocketAddr,
    ) -> Self {
        let mut message = Message { socket_protocol: Some(protocol_of(carrier)), ..Message::default() };
        message.response_port = Some(u32::from(local.port()));
        // For a socket with an unspecified address, the destination address of the query is
        // unknown.
        message.response_address = (!local.ip().is_unspecified()).then(|| octets_of(local.ip()));
        Self { lane, wanted, frame, message, pending: FrameBuffer::default(), begun: Duration::ZERO }
    }

    /// Begins a batch. The following messages have the current time as time of receipt.
    pub fn begin(&mut self) {
        self.begun = now();
    }

    /// Adds a frame with a query from `sender` to the queue, if queries are exported. Drops it if
    /// the queue is full.
    pub fn query(&mut self, sender: SocketAddr, message: &[u8]) {
        if self.wanted.queries {
            self.describe(MessageKind::Auth.number(false), sender);
            fill(&mut self.message.query_message, Some(message));
            fill(&mut self.message.response_message, None);
            self.message.response_time_sec = None;
            self.message.response_time_nsec = None;
            self.push();
        }
    }

    /// Exports the response to `message`. The frame contains the query only if queries are not
    /// exported separately.
    pub fn response(&mut self, sender: SocketAddr, message: &[u8], response: &[u8]) {
        if self.wanted.responses {
            self.describe(MessageKind::Auth.number(true), sender);
            fill(&mut self.message.query_message, (!self.wanted.queries).then_some(message));
            fill(&mut self.message.response_message, Some(response));
            let sent = now();
            self.message.response_time_sec = Some(sent.as_secs());
            self.message.response_time_nsec = Some(sent.subsec_nanos());
            self.push();
        }
    }

    /// Ends a batch: moves the remaining frames to the queue.
    pub fn end(&mut self) {
        if self.pending.count > 0 {
            self.hand_over();
        }
    }

    fn describe(&mut self, kind: u32, sender: SocketAddr) {
        let message = &mut self.message;
        message.kind = kind;
        let ip = sender.ip().to_canonical();
        message.socket_family = Some(if ip.is_ipv4() { INET } else { INET6 });
        let address = message.query_address.get_or_insert_default();
        address.clear();
        match ip {
            IpAddr::V4(ip) => address.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => address.extend_from_slice(&ip.octets()),
        }
        message.query_port = Some(u32::from(sender.port()));
        message.query_time_sec = Some(self.begun.as_secs());
        message.query_time_nsec = Some(self.begun.subsec_nanos());
    }

    /// Encodes the message as a frame. The writer locks the queue only while it swaps two buffers,
    /// and this thread does not wait even for that.
    fn push(&mut self) {
        self.frame.message = Some(mem::take(&mut self.message));
        let octets = self.frame.encoded_len();
        if self.pending.octets.len() + octets > self.wanted.queue_octets {
            self.lane.dropped.fetch_add(1, Relaxed);
        } else {
            let frame = &self.frame;
            // Encoding fails only if the output has no room, and a vector grows.
            push_data(octets, &mut self.pending.octets, |out| _ = frame.encode(out));
            self.pending.count += 1;
        }
        self.message = self.frame.message.take().unwrap_or_default();
        self.hand_over();
    }

    fn hand_over(&mut self) {
        let Ok(mut frames) = self.lane.frames.try_lock() else { return };
        if frames.octets.len() + self.pending.octets.len() > self.wanted.queue_octets {
            drop(frames);
            self.lane.dropped.fetch_add(mem::take(&mut self.pending.count), Relaxed);
            self.pending.octets.clear();
            return;
        }
        frames.append(&mut self.pending);
    }
}

impl Drop for DnstapSender {
    fn drop(&mut self) {
        self.end();
    }
}

/// Copies `octets` into `field`, and reuses its buffer.
fn fill(field: &mut Option<Vec<u8>>, octets: Option<&[u8]>) {
    match octets {
        None => *field = None,
        Some(octets) => {
            let buffer = field.get_or_insert_default();
            buffer.clear();
            buffer.extend_from_slice(octets);
        }
    }
}

const fn protocol_of(carrier: Transport) -> u32 {
    match carrier {
        Transport::Udp => protocol::UDP,
        Transport::Tcp => protocol::TCP,
        Transport::Tls => protocol::TLS,
    }
}

fn octets_of(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Returns the time since 1970, or zero if the clock is before 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
