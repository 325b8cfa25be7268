//! One connection: read, answer every whole message that is there, write, until either side ends it.
//!
//! All of it is one step that is repeated while something moves: what can be written is written, streams are asked for more
//! when the peer has taken what they gave, and messages are read while there is room for their answers. Nothing waits for
//! anything else, so that queries are answered while a stream is on its way, and a peer that does not read is not read from.

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

/// Octets that one read takes at most.
const READ_SIZE: usize = 1 << 14;

/// Octets of the length before a message (RFC 1035 section 4.2.2).
const PREFIX: usize = 2;
/// No further message is answered while this many octets wait to be taken by the peer: a peer that does not read does not
/// make the server collect answers for it.
const WAITING_MAX: usize = 1 << 15;
/// Streams are asked for more while fewer octets wait than these: far fewer, so that there is room for answers beside them.
const STREAM_MARK: usize = 1 << 13;
/// Octets that a buffer of answers may have beyond what waits in it.
const SPARE_MAX: usize = 1 << 13;
/// Octets that a peer has to acknowledge within the write timeout, or the idle timeout of a stream.
const WRITE_SHARE: u64 = 1 << 14;
/// Streams of one connection at once; while there are so many, no further message is read.
const STREAMS_MAX: usize = 8;
/// Steps of one connection before others have their turn.
const STEPS: usize = 4;

/// What carries a connection: a socket, or TLS over one.
pub(super) trait ConnectionIo: AsyncRead + AsyncWrite + Unpin {
    /// Octets may wait in the system for a peer far away that takes many.
    fn widen(&self);

    /// Octets that the peer has acknowledged so far; none where the system does not count them.
    fn acknowledged(&self) -> Option<u64>;

    /// Octets that it holds in buffers of its own.
    fn held(&mut self) -> usize {
        0
    }

    /// All that was read has been handed on: none of it is held any more.
    fn forget_read(&mut self) {}

    /// What TLS agreed on, where there is TLS.
    fn session(&self) -> Option<TlsSession> {
        None
    }

    /// Tells the peer that the end is meant, where the carrier can; does not wait.
    fn say_end(&mut self, cx: &mut Context<'_>);
}

pub(super) struct Connection<C, H> {
    carrier: C,
    peer: SocketAddr,
    seat: ConnectionSlot<H>,
    /// Received and not yet answered.
    input: Vec<u8>,
    /// Answers with their lengths; those before `sent` are sent.
    output: Vec<u8>,
    sent: usize,
    /// Whether the carrier may hold back octets that it has taken.
    unflushed: bool,
    /// How many messages `output` holds.
    unsent: u64,
    /// Octets that the carrier has taken so far, and up to which of them they are of streams.
    taken: u64,
    streamed: u64,
    /// What [`progress`](Self::progress) was when the place's time was set.
    mark: u64,
    /// Streams, each with the time when it began.
    streams: VecDeque<(Instant, Box<dyn ResponseStream>)>,
    /// The peer sends nothing more.
    ended: bool,
    /// How it ends when what waits is sent; nothing more is read.
    last: Option<End>,
    /// Whether it has brought a whole message, ever and in this turn.
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

    /// Steps until nothing moves, or others are to have their turn.
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

    /// Writes, has streams continue, reads and answers; returns whether another step may move something.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.write(cx)?;
        let read = self.read(cx)?;
        let drawn = self.draw()?;
        if self.waiting() == 0 && !self.unflushed && self.streams.is_empty() {
            if let Some(last) = self.last {
                return Err(last);
            }
            // What is left of the input then is a part of a message.
            if self.ended && first_message(&self.input).is_none() {
                return Err(if self.input.is_empty() { End::Orderly } else { End::Broken });
            }
        }
        Ok(drawn || read)
    }

    /// Octets that the carrier has not taken yet.
    const fn waiting(&self) -> usize {
        self.output.len() - self.sent
    }

    fn has_room(&self) -> bool {
        self.waiting() < WAITING_MAX && self.streams.len() < STREAMS_MAX && self.last.is_none()
    }

    /// Writes what the carrier takes, lengths and messages together (RFC 7766 section 8).
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

    /// Has each stream in turn give a message while few octets wait; returns whether there is something to write.
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

    /// Answers messages that were left for want of room, or reads and answers; returns whether there was anything.
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
        // A buffer of all connections: one that waits has none. A handler that panics has lost it.
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
            // Many peers close TLS without saying so; between messages nothing is lost by it.
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

    /// Answers the whole messages of `input`, in batches, while there is room; returns how many octets they were.
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
            // What is ready does not wait for what is to be made (RFC 7766 section 6.2.1.1).
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
        // The peer has lost count of its octets, or wants more than is for it.
        if announced(&input[consumed..]).is_some_and(|length| length > shared.options.message_max) {
            self.last = self.last.or(Some(End::Broken));
        }
        Ok(consumed)
    }

    /// Answers messages from `consumed` on, notes the places of those whose answers were put off, and returns where it ended.
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
            // A message has a header at least; the peer has lost count of its octets.
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

    /// Before it waits: gives back what buffers do not need, and notes what it waits for and since when.
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
        // Only whole messages give a peer more time, and only a share of its answers: octet by octet it cannot hold on.
        // Where less than a share is left, the phase ends when the carrier has taken it.
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

    /// Whether messages of a stream are still to be made, or to be taken by the carrier.
    fn is_streaming(&self) -> bool {
        !self.streams.is_empty() || self.taken < self.streamed
    }

    /// Octets that the peer has acknowledged. The system takes octets from us in pieces of up to half of its limit for unsent ones,
    /// and a slow peer needs longer for one piece than it may be idle. Where the system does not count acknowledged octets, these
    /// pieces are the only measure.
    fn progress(&self) -> u64 {
        self.carrier.acknowledged().unwrap_or(self.taken)
    }
}

/// Serves the connection to its end.
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

/// Adds an answer with its length to `output`.
fn add(response: &[u8], output: &mut Vec<u8>, unsent: &mut u64) -> Result<(), End> {
    let length = u16::try_from(response.len()).map_err(|_| End::Broken)?;
    output.reserve(PREFIX + response.len());
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(response);
    *unsent += 1;
    Ok(())
}

/// The length that the first message of `input` announces.
fn announced(input: &[u8]) -> Option<usize> {
    let (prefix, _) = input.split_first_chunk::<PREFIX>()?;
    Some(usize::from(u16::from_be_bytes(*prefix)))
}

/// The first message of `input` without its length; nothing when it is not whole.
fn first_message(input: &[u8]) -> Option<&[u8]> {
    input.get(PREFIX..PREFIX + announced(input)?)
}
