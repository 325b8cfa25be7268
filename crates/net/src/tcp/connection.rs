//! One TCP connection: read, answer every whole message that is there, write, until either side ends it.

use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Place, Shared};
use crate::handler::{Answer, Handler};

/// Octets of the length before a message (RFC 1035 section 4.2.2).
const PREFIX: usize = 2;
/// Octets to make room for when reading, at least.
const READ_SIZE: usize = 2048;
/// Answers are written when they come to this many octets, before further messages are answered: a peer that
/// does not read does not make the server collect answers for it.
const WRITE_SIZE: usize = 1 << 16;

/// Answers that are put off at most before they are made: a batch is bounded.
const PUT_OFF_MAX: usize = 64;

/// Why a connection ends.
enum End {
    /// The peer closed it between messages, it had to make room, or the server stops.
    Orderly,
    TimedOut,
    Broken,
}

/// Serves the connection to its end and gives its place back.
pub(super) async fn serve<H>(
    stream: TcpStream,
    peer: SocketAddr,
    id: u64,
    place: Rc<Place>,
    shared: Rc<Shared<H>>,
) where
    H: Handler,
{
    // Answers are collected here; the kernel need not wait for more (and if it does, only time is lost).
    let _ = stream.set_nodelay(true);
    let counters = Rc::clone(&shared);
    let mut connection = Connection {
        stream,
        peer,
        place,
        shared,
        input: Vec::new(),
        output: Vec::new(),
        unsent: 0,
        put_off: Vec::new(),
    };
    let ended = connection.run().await;
    match ended {
        End::Orderly => {}
        End::TimedOut => _ = counters.counters.timed_out.fetch_add(1, Relaxed),
        End::Broken => _ = counters.counters.broken.fetch_add(1, Relaxed),
    }
    counters.table.borrow_mut().places.remove(&id);
}

struct Connection<H> {
    stream: TcpStream,
    peer: SocketAddr,
    place: Rc<Place>,
    shared: Rc<Shared<H>>,
    /// Received and not yet answered; after answering, less than one message.
    input: Vec<u8>,
    /// Answers with their lengths, to be sent.
    output: Vec<u8>,
    /// How many answers `output` holds.
    unsent: u64,
    /// Places in `input` of the messages whose answers were put off.
    put_off: Vec<Range<usize>>,
}

impl<H> Connection<H>
where
    H: Handler,
{
    async fn run(&mut self) -> End {
        let mut stopping = self.shared.stopping.clone();
        let mut deadline = Instant::now() + self.shared.options.idle_timeout;
        loop {
            self.input.reserve(missing(&self.input).max(READ_SIZE));
            let read = tokio::select! {
                biased;
                _ = stopping.wait_for(|&stop| stop) => return End::Orderly,
                () = self.place.close.notified() => return End::Orderly,
                read = timeout_at(deadline, self.stream.read_buf(&mut self.input)) => read,
            };
            match read {
                Err(_) => return End::TimedOut,
                Ok(Err(_)) => return End::Broken,
                Ok(Ok(0)) if self.input.is_empty() => return End::Orderly,
                Ok(Ok(0)) => return End::Broken,
                Ok(Ok(_)) => {}
            }
            match self.answer_all().await {
                // Only whole messages give a peer more time: octet by octet it cannot hold the connection.
                Ok(true) => {
                    deadline = Instant::now() + self.shared.options.idle_timeout;
                    self.place.waiting_since.set(Some(Instant::now()));
                }
                Ok(false) => {}
                Err(end) => return end,
            }
        }
    }

    /// Answers each whole message of the input; returns whether there was one.
    async fn answer_all(&mut self) -> Result<bool, End> {
        let mut consumed = 0;
        self.shared.handler.borrow_mut().0.begin();
        while let Some(message) = first_message(&self.input[consumed..]) {
            // A message has a header at least; the peer has lost count of its octets.
            if message.is_empty() {
                self.answer_again().await?;
                self.flush().await?;
                return Err(End::Broken);
            }
            let place = consumed + PREFIX..consumed + PREFIX + message.len();
            consumed = place.end;
            self.shared.counters.messages_in.fetch_add(1, Relaxed);
            self.answer(place)?;
            if self.put_off.len() >= PUT_OFF_MAX {
                self.answer_again().await?;
            }
            if self.output.len() >= WRITE_SIZE {
                // Another connection may be served meanwhile: nothing is left put off in its batch.
                self.answer_again().await?;
                self.flush().await?;
            }
        }
        self.answer_again().await?;
        self.input.drain(..consumed);
        self.flush().await?;
        Ok(consumed > 0)
    }

    /// Has the handler answer the message at `place` of the input and adds the answer to the output, or puts it off.
    fn answer(&mut self, place: Range<usize>) -> Result<(), End> {
        let (handler, response) = &mut *self.shared.handler.borrow_mut();
        response.clear();
        match handler.answer(&self.input[place.clone()], self.peer, response) {
            Answer::Ready => add(response, &mut self.output, &mut self.unsent)?,
            Answer::Nothing => {}
            Answer::Later => self.put_off.push(place),
        }
        Ok(())
    }

    /// Has the handler make what the answers lack that were put off, and adds them to the output.
    async fn answer_again(&mut self) -> Result<(), End> {
        if self.put_off.is_empty() {
            return Ok(());
        }
        let places = std::mem::take(&mut self.put_off);
        self.shared.handler.borrow_mut().0.make();
        for place in places {
            {
                let (handler, response) = &mut *self.shared.handler.borrow_mut();
                response.clear();
                if handler.answer_again(&self.input[place], self.peer, response) {
                    add(response, &mut self.output, &mut self.unsent)?;
                }
            }
            if self.output.len() >= WRITE_SIZE {
                self.flush().await?;
            }
        }
        self.shared.handler.borrow_mut().0.begin();
        Ok(())
    }

    /// Sends the answers collected, lengths and messages together (RFC 7766 section 8).
    async fn flush(&mut self) -> Result<(), End> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.place.waiting_since.set(None);
        let limit = self.shared.options.write_timeout;
        match timeout(limit, self.stream.write_all(&self.output)).await {
            Err(_) => return Err(End::TimedOut),
            Ok(Err(_)) => return Err(End::Broken),
            Ok(Ok(())) => {}
        }
        self.shared.counters.messages_out.fetch_add(self.unsent, Relaxed);
        self.unsent = 0;
        self.output.clear();
        self.place.waiting_since.set(Some(Instant::now()));
        Ok(())
    }
}

/// Adds an answer with its length to `output`.
fn add(response: &[u8], output: &mut Vec<u8>, unsent: &mut u64) -> Result<(), End> {
    let length = u16::try_from(response.len()).map_err(|_| End::Broken)?;
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(response);
    *unsent += 1;
    Ok(())
}

/// The first message of `input` without its length; nothing when it is not whole.
fn first_message(input: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = input.split_first_chunk::<PREFIX>()?;
    rest.get(..usize::from(u16::from_be_bytes(*prefix)))
}

/// How many octets the message that `input` begins still lacks, as far as is known.
fn missing(input: &[u8]) -> usize {
    match input.split_first_chunk::<PREFIX>() {
        Some((prefix, rest)) => usize::from(u16::from_be_bytes(*prefix)).saturating_sub(rest.len()),
        None => PREFIX - input.len(),
    }
}
