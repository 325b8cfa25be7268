//! One thread's way to the tap: frames are encoded into a buffer of bounded size that the writer takes away.

use super::frames::push_data;
use super::message::{AUTH_QUERY, AUTH_RESPONSE, Dnstap, INET, INET6, Message, protocol};
use crate::statistics::TransportKind;
use prost::Message as _;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole frames, to be written.
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

/// What one thread and the writer share.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    frames: Mutex<FrameBuffer>,
    /// Frames for which there was no room.
    pub(super) dropped: AtomicU64,
}

impl FrameQueue {
    /// Takes what is there, and leaves the empty buffer in `frames` to be filled.
    pub(super) fn swap(&self, frames: &mut FrameBuffer) {
        mem::swap(&mut *self.frames.lock().unwrap_or_else(PoisonError::into_inner), frames);
    }
}

/// What is tapped, and how much of it may wait.
#[derive(Clone, Debug)]
pub(super) struct QueueOptions {
    pub(super) queries: bool,
    pub(super) responses: bool,
    pub(super) queue_octets: usize,
}

/// One thread's tap. It never waits: where the writer does not keep up, frames are dropped and counted.
#[derive(Debug)]
pub struct DnstapSender {
    lane: Arc<FrameQueue>,
    wanted: QueueOptions,
    /// What every frame of this thread has.
    frame: Dnstap,
    /// The last message; its buffers are used again.
    message: Message,
    /// Frames that the lane was not free for: the writer was swapping buffers just then.
    pending: FrameBuffer,
    /// When the batch was received.
    begun: Duration,
}

impl DnstapSender {
    pub(super) fn new(
        lane: Arc<FrameQueue>,
        wanted: QueueOptions,
        frame: Dnstap,
        carrier: TransportKind,
        local: SocketAddr,
    ) -> Self {
        let mut message = Message { socket_protocol: Some(protocol(carrier)), ..Message::default() };
        message.response_port = Some(u32::from(local.port()));
        // Of a socket for all addresses it is not known which of them was asked.
        message.response_address = (!local.ip().is_unspecified()).then(|| octets_of(local.ip()));
        Self { lane, wanted, frame, message, pending: FrameBuffer::default(), begun: Duration::ZERO }
    }

    /// Begins a batch: what comes was received now.
    pub fn begin(&mut self) {
        self.begun = now();
    }

    /// Taps a query.
    pub fn query(&mut self, sender: SocketAddr, message: &[u8]) {
        if self.wanted.queries {
            self.describe(AUTH_QUERY, sender);
            fill(&mut self.message.query_message, Some(message));
            fill(&mut self.message.response_message, None);
            self.message.response_time_sec = None;
            self.message.response_time_nsec = None;
            self.push();
        }
    }

    /// Taps the response to `message`, which is in the frame only where queries have no frames of their own.
    pub fn response(&mut self, sender: SocketAddr, message: &[u8], response: &[u8]) {
        if self.wanted.responses {
            self.describe(AUTH_RESPONSE, sender);
            fill(&mut self.message.query_message, (!self.wanted.queries).then_some(message));
            fill(&mut self.message.response_message, Some(response));
            let sent = now();
            self.message.response_time_sec = Some(sent.as_secs());
            self.message.response_time_nsec = Some(sent.subsec_nanos());
            self.push();
        }
    }

    /// Ends a batch: hands over what could not be handed over so far.
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

    /// Encodes the message as a frame. The lane is the writer's only while it swaps two buffers; this thread does not wait
    /// even for that.
    fn push(&mut self) {
        self.frame.message = Some(mem::take(&mut self.message));
        let octets = self.frame.encoded_len();
        if self.pending.octets.len() + octets > self.wanted.queue_octets {
            self.lane.dropped.fetch_add(1, Relaxed);
        } else {
            let frame = &self.frame;
            // Encoding fails only where there is no room, and a vector grows.
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

/// Puts `octets` into `field`, whose buffer is used again.
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

fn octets_of(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Since 1970; a clock before that is taken as 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
