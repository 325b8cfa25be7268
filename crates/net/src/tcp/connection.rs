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

use super::server_state::{ConnectionSlot, ServerState};
use super::table::{ConnectionCommand, End, Phase};
use crate::handler::{Answer, Handler, ResponseStream, TlsSession, trim};

/// Maximum octets of one read.
const READ_SIZE: usize = 1 << 14;

/// Octets of the length prefix of a message (RFC 1035 section 4.2.2).
const PREFIX: usize = 2;
/// Maximum octets of answers that wait for the peer. Above it, the server answers no further
/// message. Otherwise, it would collect answers for a peer that does not read.
const WAITING_MAX: usize = 1 << 15;
/// Streams deliver more messages only while fewer octets than this wait. It is much less than
/// [`WAITING_MAX`], which leaves room for other answers.
const STREAM_MARK: usize = 1 << 13;
/// Maximum unused octets of an answer buffer.
const SPARE_MAX: usize = 1 << 13;
/// Octets that a peer must acknowledge within the write timeout, or within the idle timeout of a
/// stream.
const WRITE_SHARE: u64 = 1 << 14;
/// Maximum number of concurrent streams of one connection. When it is reached, no further message
/// is read.
const STREAMS_MAX: usize = 8;
/// Number of steps of one connection before other connections continue.
const STEPS: usize = 4;

/// The transport of a connection: a socket, or TLS over a socket.
pub(super) trait ConnectionIo: AsyncRead + AsyncWrite + Unpin {
    /// Permits more unsent octets in the system, for a stream to a distant peer.
    fn widen(&self);

    /// Octets that the peer has acknowledged so far; `None` if the system does not count them.
    fn acknowledged(&self) -> Option<u64>;

    /// Octets in the buffers of the transport itself.
    fn held(&mut self) -> usize {
        0
    }

    /// Records that all octets read so far were passed on. They do not count as held any more.
    fn forget_read(&mut self) {}

    /// The properties of the TLS session, if there is one.
    fn session(&self) -> Option<TlsSession> {
        None
    }

    /// Signals an intended end to the peer, if the transport supports it. Does not wait.
    fn say_end(&mut self, cx: &mut Context<'_>);
}

pub(super) struct Connection<C, H> {
    carrier: C,
    peer: SocketAddr,
    seat: ConnectionSlot<H>,
    /// Octets that are received and not answered yet.
    input: Vec<u8>,
    /// Answers with their length prefixes; those before `sent` are sent.
    output: Vec<u8>,
    sent: usize,
    /// Whether the transport may hold accepted octets that are not written yet.
    unflushed: bool,
    /// Number of messages in `output`.
    unsent: u64,
    /// Octets that the transport has accepted so far, and the position in them at which the last
    /// message of a stream ends.
    taken: u64,
    streamed: u64,
    /// Value of [`progress`](Self::progress) when the time of the entry was set.
    mark: u64,
    /// Streams with their start times.
    streams: VecDeque<(Instant, Box<dyn ResponseStream>)>,
    /// The peer has closed its sending side.
    ended: bool,
    /// The result of the connection after the remaining output is sent. If it is set, nothing more
    /// is read.
    last: Option<End>,
    /// Whether a complete message has arrived, ever and in this turn.
    spoken: bool,
    spoke: bool,
}

impl<C, H> Connection<C, H>
where
    C: ConnectionIo,
    H: Handler,
{
    pub(super) const fn new(carrier: C, peer: SocketAddr, seat: ConnectionSlot<H>) -> Self {
        Self {
            carrier,
            peer,
            seat,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            unflushed: false,
            unsent: 0,
            taken: 0,
            streamed: 0,
            mark: 0,
            streams: VecDeque::new(),
            ended: false,
            last: None,
            spoken: false,
            spoke: false,
        }
    }

    /// Repeats steps until there is no progress, or until other connections must continue.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.seat.place.order(cx.waker()) {
            Some(ConnectionCommand::End(end)) => return Poll::Ready(end),
            Some(ConnectionCommand::Finish) => {
                self.last = self.last.or(Some(End::Orderly));
                self.streams.clear();
            }
            None => {}
        }
        for _ in 0..STEPS {
            match self.step(cx) {
                Ok(true) => {}
                Ok(false) => {
                    self.settle();
                    return Poll::Pending;
                }
                Err(end) => return Poll::Ready(end),
            }
        }
        self.settle();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes, continues streams, reads and answers. Returns whether another step may make
    /// progress.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.write(cx)?;
        let read = self.read(cx)?;
        let drawn = self.draw()?;
        if self.waiting() == 0 && !self.unflushed && self.streams.is_empty() {
            if let Some(last) = self.last {
                return Err(last);
            }
            // The rest of the input is then an incomplete message.
            if self.ended && first_message(&self.input).is_none() {
                return Err(if self.input.is_empty() { End::Orderly } else { End::Broken });
            }
        }
        Ok(drawn || read)
    }

    /// Octets that the transport has not accepted yet.
    const fn waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    fn has_room(&self) -> bool {
        self.waiting() < WAITING_MAX && self.streams.len() < STREAMS_MAX && self.last.is_none()
    }

    /// Writes as many octets as the transport accepts. Length prefixes and messages are written
    /// together (RFC 7766 section 8).
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        while self.waiting() > 0 {
            match Pin::new(&mut self.carrier).poll_write(cx, &self.output[self.sent..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_) | Ok(0)) => return Err(End::Broken),
                Poll::Ready(Ok(octets)) => {
                    self.sent += octets;
                    self.taken += octets as u64;
                    self.unflushed = true;
                }
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.carrier).poll_flush(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_)) => return Err(End::Broken),
                Poll::Ready(Ok(())) => self.unflushed = false,
            }
            let counters = &self.seat.shared.counters;
            counters.messages_out.fetch_add(std::mem::take(&mut self.unsent), Relaxed);
        }
        self.sent = 0;
        self.output.clear();
        Ok(())
    }

    /// Requests a message from each stream in turn while few octets wait. Returns whether there is
    /// anything to write.
    fn draw(&mut self) -> Result<bool, End> {
        if self.streams.is_empty() || self.waiting() >= STREAM_MARK {
            return Ok(false);
        }
        self.output.drain(..std::mem::take(&mut self.sent));
        let (_, message) = &mut *self.seat.shared.handler.borrow_mut();
        while self.output.len() < STREAM_MARK
            && let Some((since, mut stream)) = self.streams.pop_front()
        {
            message.clear();
            match stream.next(message) {
                Ok(true) if message.is_empty() => return Err(End::Broken),
                Ok(true) => add(message, &mut self.output, &mut self.unsent)?,
                Ok(false) => continue,
                Err(_) => return Err(End::Broken),
            }
            self.streams.push_back((since, stream));
            self.streamed = self.taken + self.output.len() as u64;
        }
        trim(message);
        Ok(true)
    }

    /// Answers remaining messages for which there was no room before, or reads and answers. Returns
    /// whether there was any input.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if !self.has_room() {
            return Ok(false);
        }
        if first_message(&self.input).is_some() {
            self.answer_input(cx)?;
            return Ok(true);
        }
        if self.ended {
            return Ok(false);
        }
        // All connections share this buffer, so a waiting connection needs none. It is lost if a
        // handler panics.
        let mut buffer = std::mem::take(&mut *self.seat.shared.scratch.borrow_mut());
        buffer.resize(READ_SIZE, 0);
        let answered = self.read_into(&mut buffer, cx);
        *self.seat.shared.scratch.borrow_mut() = buffer;
        answered
    }

    fn read_into(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Result<bool, End> {
        let mut room = ReadBuf::new(buffer);
        match Pin::new(&mut self.carrier).poll_read(cx, &mut room) {
            Poll::Pending => return Ok(false),
            // Many peers close TLS without a close_notify alert. Between messages, no data is lost.
            Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => self.ended = true,
            Poll::Ready(Err(_)) => return Err(End::Broken),
            Poll::Ready(Ok(())) => {}
        }
        let octets = room.filled();
        if !octets.is_empty() {
            self.carrier.forget_read();
        }
        self.ended |= octets.is_empty();
        if !self.input.is_empty() {
            self.input.extend_from_slice(octets);
            self.answer_input(cx)?;
        } else {
            let consumed = self.answer(octets, cx)?;
            self.input.extend_from_slice(&octets[consumed..]);
        }
        Ok(true)
    }

    fn answer_input(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
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
    fn answer(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<usize, End> {
        let shared = Rc::clone(&self.seat.shared);
        let (handler, response) = &mut *shared.handler.borrow_mut();
        let mut consumed = 0;
        let mut put_off = Vec::new();
        while self.has_room() && first_message(&input[consumed..]).is_some() {
            if let Some(session) = self.carrier.session() {
                handler.set_session(session);
            }
            handler.begin();
            consumed = self.answer_batch(input, consumed, &shared, handler, response, &mut put_off)?;
            handler.end();
            if put_off.is_empty() {
                continue;
            }
            // Answers that are ready do not wait for deferred ones (RFC 7766 section 6.2.1.1).
            self.write(cx)?;
            handler.make();
            for place in put_off.drain(..) {
                response.clear();
                if handler.answer_again(&input[place], self.peer, response) {
                    add(response, &mut self.output, &mut self.unsent)?;
                }
            }
            handler.end();
        }
        trim(response);
        // The framing of the peer is wrong, or its message is longer than permitted.
        if announced(&input[consumed..]).is_some_and(|length| length > shared.options.message_max) {
            self.last = self.last.or(Some(End::Broken));
        }
        Ok(consumed)
    }

    /// Answers messages from offset `consumed` on, and records the ranges of messages with deferred
    /// answers. Returns the new offset.
    fn answer_batch(
        &mut self,
        input: &[u8],
        mut consumed: usize,
        shared: &ServerState<H>,
        handler: &mut H,
        response: &mut Vec<u8>,
        put_off: &mut Vec<Range<usize>>,
    ) -> Result<usize, End> {
        while self.has_room()
            && put_off.len() < shared.options.in_flight_max
            && let Some(message) = first_message(&input[consumed..])
        {
            // A message has at least a header, so the framing of the peer is wrong.
            if message.is_empty() || message.len() > shared.options.message_max {
                self.last = Some(End::Broken);
                break;
            }
            let place = consumed + PREFIX..consumed + PREFIX + message.len();
            consumed = place.end;
            shared.counters.messages_in.fetch_add(1, Relaxed);
            (self.spoken, self.spoke) = (true, true);
            response.clear();
            match handler.answer(message, self.peer, response) {
                Answer::Ready => add(response, &mut self.output, &mut self.unsent)?,
                Answer::Nothing => {}
                Answer::Deferred => put_off.push(place),
                Answer::Stream => {
                    self.streams.push_back((Instant::now(), handler.stream().ok_or(End::Broken)?));
                    shared.counters.streams.fetch_add(1, Relaxed);
                    self.carrier.widen();
                }
            }
        }
        Ok(consumed)
    }

    /// Called before the connection waits: frees unused buffers, and records the phase of the
    /// connection and its start time.
    fn settle(&mut self) {
        let spare = if self.waiting() == 0 { 0 } else { SPARE_MAX };
        if self.streams.is_empty() && self.output.capacity() > self.waiting() + spare {
            self.output.drain(..std::mem::take(&mut self.sent));
            self.output.shrink_to_fit();
        }
        let phase = match () {
            () if self.is_streaming() => Phase::Streaming,
            () if self.waiting() > 0 || self.unflushed => Phase::Writing,
            () if !self.spoken => Phase::First,
            () if !self.input.is_empty() => Phase::Message,
            () => Phase::Idle,
        };
        let place = &self.seat.place;
        let progress = if matches!(phase, Phase::Writing | Phase::Streaming) { self.progress() } else { 0 };
        // Only complete messages, or a fixed amount of acknowledged answers, extend the time limit.
        // Otherwise, a peer could prolong the connection octet by octet. If less than this amount
        // is left, the phase ends when the transport has accepted it.
        let moves = match phase {
            Phase::Writing | Phase::Streaming => progress >= self.mark + WRITE_SHARE,
            _ => self.spoke,
        };
        if moves || place.phase.get() != phase {
            place.enter(phase);
            self.mark = progress;
        }
        let oldest = self.streams.iter().map(|(since, _)| *since).min();
        place.stream_since.set(if phase == Phase::Streaming {
            oldest.or_else(|| place.stream_since.get())
        } else {
            None
        });
        self.spoke = false;
        let held = self.input.capacity() + self.output.capacity() + self.carrier.held();
        self.seat.hold(held);
    }

    /// Whether messages of a stream are missing, or not accepted by the transport yet.
    fn is_streaming(&self) -> bool {
        !self.streams.is_empty() || self.taken < self.streamed
    }

    /// Octets that the peer has acknowledged. The system accepts octets in portions of up to half
    /// of its limit for unsent octets, and a slow peer may need longer for one portion than its
    /// idle timeout. If the system does not count acknowledged octets, these portions are the only
    /// measure.
    fn progress(&self) -> u64 {
        self.carrier.acknowledged().unwrap_or(self.taken)
    }
}

/// Serves the connection until its end.
impl<C, H> Future for Connection<C, H>
where
    C: ConnectionIo,
    H: Handler,
{
    type Output = End;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let turn = self.turn(cx);
        if let Poll::Ready(end) = turn
            && end != End::Broken
        {
            self.carrier.say_end(cx);
        }
        turn
    }
}

/// Appends an answer with its length prefix to `output`.
fn add(response: &[u8], output: &mut Vec<u8>, unsent: &mut u64) -> Result<(), End> {
    let length = u16::try_from(response.len()).map_err(|_| End::Broken)?;
    output.reserve(PREFIX + response.len());
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(response);
    *unsent += 1;
    Ok(())
}

/// Returns the length in the prefix of the first message of `input`.
fn announced(input: &[u8]) -> Option<usize> {
    let (prefix, _) = input.split_first_chunk::<PREFIX>()?;
    Some(usize::from(u16::from_be_bytes(*prefix)))
}

/// Returns the first message of `input` without its length prefix; `None` if it is incomplete.
fn first_message(input: &[u8]) -> Option<&[u8]> {
    input.get(PREFIX..PREFIX + announced(input)?)
}
