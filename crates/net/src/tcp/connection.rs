//! One connection: reads, answers all complete messages, and writes, until either side ends it.
//!
//! The connection repeats one step as long as the step makes progress. A step writes what the
//! transport accepts, requests more messages from streams when the peer has accepted the previous
//! ones, and reads messages while there is room for their answers. No part waits for another. So
//! queries are answered during a stream, and the server does not read from a peer that does not
//! read.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::server_state::{ConnectionGuard, ServerState};
use super::service::HandlerState;
use super::table::{ConnectionCommand, EndReason, Phase};
use crate::framing::{self, PREFIX_OCTETS, announced_length, first_message};
use crate::handler::{Answer, Handler, ResponseStream, TlsSession, trim_response_buffer};

/// Maximum octets of one read.
const READ_SIZE: usize = 1 << 14;

/// Maximum octets of answers that wait for the peer. Above it, the server answers no further
/// message. Otherwise, it would collect answers for a peer that does not read.
const OUTPUT_MAX: usize = 1 << 15;
/// Streams generate more messages only while fewer octets than this wait for the peer. It is much
/// less than [`OUTPUT_MAX`], which leaves room for other answers.
const STREAM_OUTPUT_MAX: usize = 1 << 13;
/// Maximum unused octets of an answer buffer while the connection waits.
const UNUSED_MAX: usize = 1 << 13;
/// Octets that a peer must acknowledge within the write timeout, or within the idle timeout of a
/// stream.
const PROGRESS_OCTETS: u64 = 1 << 14;
/// Maximum number of concurrent streams of one connection. When it is reached, no further message
/// is read.
const STREAMS_MAX: usize = 8;
/// Maximum number of steps of one connection before other connections continue.
const STEPS_MAX: usize = 4;

/// The transport of a connection: a socket, or TLS over a socket.
pub(super) trait ConnectionIo: AsyncRead + AsyncWrite + Unpin {
    /// Permits more unsent octets in the system. Otherwise, a stream to a distant peer would be
    /// slow.
    fn permit_more_unsent(&self);

    /// Octets that the peer has acknowledged so far; `None` if the system does not count them.
    fn acknowledged_octets(&self) -> Option<u64>;

    /// Octets in the buffers of the transport itself; 0 if it has none.
    fn buffered(&mut self) -> usize {
        0
    }

    /// Records that all octets read so far were delivered to the connection. They no longer count
    /// as buffered in the transport.
    fn mark_delivered(&mut self) {}

    /// The properties of the TLS session; `None` without TLS.
    fn session(&self) -> Option<TlsSession> {
        None
    }

    /// Signals an intended end to the peer, if the transport supports it. Does not wait.
    fn signal_end(&mut self, cx: &mut Context<'_>);
}

pub(super) struct Connection<C, H> {
    io: C,
    peer: SocketAddr,
    guard: ConnectionGuard,
    shared: Rc<HandlerState<H>>,
    /// Octets that are received and not answered yet.
    input: Vec<u8>,
    /// Answers with their length prefixes.
    output: Vec<u8>,
    /// Number of octets at the start of `output` that the transport has accepted.
    written_octets: usize,
    /// Whether the transport may hold accepted octets that are not written yet.
    unflushed: bool,
    /// Number of messages in `output`.
    unsent_messages: u64,
    /// Octets of `output` that the transport has accepted since the start of the connection.
    accepted_octets: u64,
    /// The value of `accepted_octets` at which the transport has accepted all messages that streams
    /// have generated so far.
    stream_end_octets: u64,
    /// Value of [`progress`](Self::progress) when the time of the table entry was last restarted.
    last_progress: u64,
    /// Streams with their start times.
    streams: VecDeque<(Instant, Box<dyn ResponseStream>)>,
    /// Whether the peer has closed its sending side.
    has_peer_closed: bool,
    /// Why the connection ends after the remaining output is sent. If it is set, nothing more is
    /// read.
    pending_end: Option<EndReason>,
    /// Whether a complete message has arrived since the start of the connection.
    has_message: bool,
    /// Whether a complete message has arrived since the connection last waited.
    has_new_message: bool,
}

impl<C, H> Connection<C, H>
where
    C: ConnectionIo,
    H: Handler,
{
    pub(super) const fn new(
        io: C,
        peer: SocketAddr,
        guard: ConnectionGuard,
        shared: Rc<HandlerState<H>>,
    ) -> Self {
        Self {
            io,
            peer,
            guard,
            shared,
            input: Vec::new(),
            output: Vec::new(),
            written_octets: 0,
            unflushed: false,
            unsent_messages: 0,
            accepted_octets: 0,
            stream_end_octets: 0,
            last_progress: 0,
            streams: VecDeque::new(),
            has_peer_closed: false,
            pending_end: None,
            has_message: false,
            has_new_message: false,
        }
    }

    /// Executes the command for the connection. Otherwise, repeats steps until there is no
    /// progress, or until other connections must continue.
    fn run_steps(&mut self, cx: &mut Context<'_>) -> Poll<EndReason> {
        match self.guard.entry.poll_command(cx.waker()) {
            Some(ConnectionCommand::End(end)) => return Poll::Ready(end),
            Some(ConnectionCommand::Finish) => {
                self.pending_end = self.pending_end.or(Some(EndReason::Orderly));
                self.streams.clear();
            }
            None => {}
        }
        for _ in 0..STEPS_MAX {
            match self.step(cx) {
                Ok(true) => {}
                Ok(false) => {
                    self.update_entry();
                    return Poll::Pending;
                }
                Err(end) => return Poll::Ready(end),
            }
        }
        self.update_entry();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes, reads and answers, and continues streams. Returns whether another step may make
    /// progress.
    ///
    /// # Errors
    /// Returns why the connection ends. All output is written in this case, except after
    /// [`EndReason::Broken`].
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, EndReason> {
        self.write(cx)?;
        let read = self.read(cx)?;
        let has_streamed = self.continue_streams()?;
        if self.unwritten() == 0 && !self.unflushed && self.streams.is_empty() {
            if let Some(end) = self.pending_end {
                return Err(end);
            }
            // The rest of the input is then an incomplete message.
            if self.has_peer_closed && first_message(&self.input).is_none() {
                return Err(if self.input.is_empty() { EndReason::Orderly } else { EndReason::Broken });
            }
        }
        Ok(has_streamed || read)
    }

    /// Octets that the transport has not accepted yet.
    const fn unwritten(&self) -> usize {
        self.output.len() - self.written_octets
    }

    /// Whether the connection may read and answer another message.
    fn has_room(&self) -> bool {
        self.unwritten() < OUTPUT_MAX && self.streams.len() < STREAMS_MAX && self.pending_end.is_none()
    }

    /// Writes as many octets as the transport accepts. Length prefixes and messages are written
    /// together (RFC 7766 section 8).
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), EndReason> {
        while self.unwritten() > 0 {
            match Pin::new(&mut self.io).poll_write(cx, &self.output[self.written_octets..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_) | Ok(0)) => return Err(EndReason::Broken),
                Poll::Ready(Ok(octets)) => {
                    self.written_octets += octets;
                    self.accepted_octets += octets as u64;
                    self.unflushed = true;
                }
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_)) => return Err(EndReason::Broken),
                Poll::Ready(Ok(())) => self.unflushed = false,
            }
            let counters = &self.guard.state.counters;
            counters.messages_out.fetch_add(std::mem::take(&mut self.unsent_messages), Relaxed);
        }
        self.written_octets = 0;
        self.output.clear();
        Ok(())
    }

    /// Requests a message from each stream in turn while fewer than [`STREAM_OUTPUT_MAX`] octets
    /// wait for the peer. Returns whether it called any stream.
    fn continue_streams(&mut self) -> Result<bool, EndReason> {
        if self.streams.is_empty() || self.unwritten() >= STREAM_OUTPUT_MAX {
            return Ok(false);
        }
        self.output.drain(..std::mem::take(&mut self.written_octets));
        let (_, message) = &mut *self.shared.handler.borrow_mut();
        while self.output.len() < STREAM_OUTPUT_MAX
            && let Some((since, mut stream)) = self.streams.pop_front()
        {
            message.clear();
            match stream.next(message) {
                Ok(true) if message.is_empty() => return Err(EndReason::Broken),
                Ok(true) => append_message(message, &mut self.output, &mut self.unsent_messages)?,
                Ok(false) => continue,
                Err(_) => return Err(EndReason::Broken),
            }
            self.streams.push_back((since, stream));
            self.stream_end_octets = self.accepted_octets + self.output.len() as u64;
        }
        trim_response_buffer(message);
        Ok(true)
    }

    /// Answers messages that were read before and for which there was no room. If there are none,
    /// reads and answers. Returns whether there was any input.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, EndReason> {
        if !self.has_room() {
            return Ok(false);
        }
        if first_message(&self.input).is_some() {
            self.answer_input(cx)?;
            return Ok(true);
        }
        if self.has_peer_closed {
            return Ok(false);
        }
        // All connections share this buffer, so a waiting connection needs none. If a handler
        // panics, the buffer is lost, and the next read allocates another one.
        let mut buffer = std::mem::take(&mut *self.shared.read_buffer.borrow_mut());
        buffer.resize(READ_SIZE, 0);
        let answered = self.read_into(&mut buffer, cx);
        *self.shared.read_buffer.borrow_mut() = buffer;
        answered
    }

    fn read_into(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Result<bool, EndReason> {
        let mut read_buf = ReadBuf::new(buffer);
        match Pin::new(&mut self.io).poll_read(cx, &mut read_buf) {
            Poll::Pending => return Ok(false),
            // Many peers close TLS without a close_notify alert. Between messages, no data is lost.
            Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                self.has_peer_closed = true;
            }
            Poll::Ready(Err(_)) => return Err(EndReason::Broken),
            Poll::Ready(Ok(())) => {}
        }
        let octets = read_buf.filled();
        if !octets.is_empty() {
            self.io.mark_delivered();
        }
        self.has_peer_closed |= octets.is_empty();
        if !self.input.is_empty() {
            self.input.extend_from_slice(octets);
            self.answer_input(cx)?;
        } else {
            let consumed = self.answer(octets, cx)?;
            self.input.extend_from_slice(&octets[consumed..]);
        }
        Ok(true)
    }

    fn answer_input(&mut self, cx: &mut Context<'_>) -> Result<(), EndReason> {
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.answer(&input, cx)?;
        if consumed < input.len() {
            input.drain(..consumed);
            self.input = input;
        }
        Ok(())
    }

    /// Answers the complete messages of `input` in batches while there is room. Returns the number
    /// of octets consumed.
    fn answer(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<usize, EndReason> {
        let (shared, state) = (Rc::clone(&self.shared), Rc::clone(&self.guard.state));
        let (handler, response) = &mut *shared.handler.borrow_mut();
        let mut consumed = 0;
        let mut deferred = Vec::new();
        while self.has_room() && first_message(&input[consumed..]).is_some() {
            if let Some(session) = self.io.session() {
                handler.set_session(session);
            }
            handler.begin_batch();
            consumed = self.answer_batch(input, consumed, &state, handler, response, &mut deferred)?;
            handler.end_batch();
            if deferred.is_empty() {
                continue;
            }
            // Answers that are ready do not wait for deferred ones (RFC 7766 section 6.2.1.1).
            self.write(cx)?;
            handler.generate_deferred();
            for range in deferred.drain(..) {
                response.clear();
                if handler.answer_again(&input[range], self.peer, response) {
                    append_message(response, &mut self.output, &mut self.unsent_messages)?;
                }
            }
            handler.end_batch();
        }
        trim_response_buffer(response);
        // Either the framing of the peer is wrong, or its message is longer than permitted.
        if announced_length(&input[consumed..]).is_some_and(|length| length > state.options.message_max) {
            self.pending_end = self.pending_end.or(Some(EndReason::Broken));
        }
        Ok(consumed)
    }

    /// Answers messages from offset `consumed` on, and records the ranges of messages with deferred
    /// answers. Returns the new offset.
    fn answer_batch(
        &mut self,
        input: &[u8],
        mut consumed: usize,
        state: &ServerState,
        handler: &mut H,
        response: &mut Vec<u8>,
        deferred: &mut Vec<Range<usize>>,
    ) -> Result<usize, EndReason> {
        while self.has_room()
            && deferred.len() < state.options.in_flight_max
            && let Some(message) = first_message(&input[consumed..])
        {
            // An empty message has not even a header, so the framing of the peer is wrong.
            if message.is_empty() || message.len() > state.options.message_max {
                self.pending_end = Some(EndReason::Broken);
                break;
            }
            let range = consumed + PREFIX_OCTETS..consumed + PREFIX_OCTETS + message.len();
            consumed = range.end;
            state.counters.messages_in.fetch_add(1, Relaxed);
            (self.has_message, self.has_new_message) = (true, true);
            response.clear();
            match handler.answer(message, self.peer, response) {
                Answer::Ready => append_message(response, &mut self.output, &mut self.unsent_messages)?,
                Answer::Nothing => {}
                Answer::Deferred => deferred.push(range),
                Answer::Stream => {
                    self.streams.push_back((Instant::now(), handler.stream().ok_or(EndReason::Broken)?));
                    state.counters.streams.fetch_add(1, Relaxed);
                    self.io.permit_more_unsent();
                }
            }
        }
        Ok(consumed)
    }

    /// Called before the connection waits or yields to other connections. Frees unused buffers, and
    /// records the phase of the connection and its start time.
    fn update_entry(&mut self) {
        let unused_max = if self.unwritten() == 0 { 0 } else { UNUSED_MAX };
        if self.streams.is_empty() && self.output.capacity() > self.unwritten() + unused_max {
            self.output.drain(..std::mem::take(&mut self.written_octets));
            self.output.shrink_to_fit();
        }
        let phase = match () {
            () if self.is_streaming() => Phase::Streaming,
            () if self.unwritten() > 0 || self.unflushed => Phase::Writing,
            () if !self.has_message => Phase::FirstMessage,
            () if !self.input.is_empty() => Phase::Message,
            () => Phase::Idle,
        };
        let entry = &self.guard.entry;
        let progress = if matches!(phase, Phase::Writing | Phase::Streaming) { self.progress() } else { 0 };
        // Only complete messages, or a fixed amount of acknowledged answers, extend the time limit.
        // Otherwise, a peer could prolong the connection octet by octet. If less than this amount
        // is left, the phase ends when the transport has accepted it.
        let has_progressed = match phase {
            Phase::Writing | Phase::Streaming => progress >= self.last_progress + PROGRESS_OCTETS,
            _ => self.has_new_message,
        };
        if has_progressed || entry.phase.get() != phase {
            entry.begin_phase(phase);
            self.last_progress = progress;
        }
        let oldest = self.streams.iter().map(|(since, _)| *since).min();
        entry.stream_since.set(if phase == Phase::Streaming {
            oldest.or_else(|| entry.stream_since.get())
        } else {
            None
        });
        self.has_new_message = false;
        let buffered = self.input.capacity() + self.output.capacity() + self.io.buffered();
        self.guard.set_buffered(buffered);
    }

    /// Whether messages of a stream are missing, or not accepted by the transport yet.
    fn is_streaming(&self) -> bool {
        !self.streams.is_empty() || self.accepted_octets < self.stream_end_octets
    }

    /// Octets that the peer has acknowledged, or, if the system does not count them, octets that
    /// the transport has accepted. The latter are less exact: the system accepts octets in portions
    /// of up to half of its limit for unsent octets, and a slow peer may need longer for one
    /// portion than its time limit.
    fn progress(&self) -> u64 {
        self.io.acknowledged_octets().unwrap_or(self.accepted_octets)
    }
}

/// Serves the connection until its end.
impl<C, H> Future for Connection<C, H>
where
    C: ConnectionIo,
    H: Handler,
{
    type Output = EndReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<EndReason> {
        let poll = self.run_steps(cx);
        if let Poll::Ready(end) = poll
            && end != EndReason::Broken
        {
            self.io.signal_end(cx);
        }
        poll
    }
}

/// Appends a message with its length prefix to `output`, and counts it in `unsent_messages`. Fails
/// if the message is longer than 65,535 octets.
fn append_message(message: &[u8], output: &mut Vec<u8>, unsent_messages: &mut u64) -> Result<(), EndReason> {
    framing::append_message(message, output).map_err(|_| EndReason::Broken)?;
    *unsent_messages += 1;
    Ok(())
}
