//! What answers messages: a closure, or a handler that defers answers to make many of their parts together, and that
//! answers with a stream of messages where one is not enough. This crate calls its steps and knows nothing of their meaning.

use std::net::SocketAddr;
use std::time::Duration;

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The buffer holds an answer to send.
    Ready,
    /// Nothing is to be sent.
    Nothing,
    /// The answer lacks something: the handler is to [make](Handler::make) it, and is then asked again.
    Deferred,
    /// The answer is many messages, which the handler's [stream](Handler::stream) gives. Over UDP nothing is sent.
    Stream,
}

/// What TLS agreed on for a connection, as far as answers may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// Whether it is TLS 1.3.
    pub is_tls13: bool,
    /// Whether the client asked for the ALPN protocol `dot`.
    pub is_dot: bool,
}

/// Answers messages, in one thread. Messages come in batches: [`begin`](Handler::begin), [`answer`](Handler::answer) for
/// each; where any was put off, [`make`](Handler::make), and [`answer_again`](Handler::answer_again) for those. Nothing of
/// another batch comes between.
pub trait Handler {
    /// Begins a batch.
    fn begin(&mut self) {}

    /// What TLS agreed on for the connection of the batch that begins next; not said without TLS.
    fn set_session(&mut self, _session: TlsSession) {}

    /// Answers a message of `sender` into `response`, which is empty.
    fn answer(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> Answer;

    /// Makes what the answers lack that were put off.
    fn make(&mut self) {}

    /// Answers a message that was put off into `response`, which is empty; returns whether there is an answer to send.
    fn answer_again(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> bool {
        self.answer(message, sender, response) == Answer::Ready
    }

    /// What was answered so far in this batch has been sent, or handed to the connection.
    fn end(&mut self) {}

    /// The messages that answer the one for which [`Answer::Stream`] has just been returned; none closes the connection.
    fn stream(&mut self) -> Option<Box<dyn ResponseStream>> {
        None
    }

    /// How long connections may wait for their next message from now on: said at the start, and when it changes as
    /// connections become many. It is what a server tells its clients (edns-tcp-keepalive, RFC 7828). Not said over UDP.
    fn set_idle_timeout(&mut self, _timeout: Duration) {}
}

/// Octets that a buffer for responses keeps at most: those of the largest message (RFC 1035 section 4.2.2).
pub(crate) const BUFFER_MAX: usize = 1 << 16;

/// Gives back what a buffer for responses has beyond [`BUFFER_MAX`]: one large response is not to hold its memory for ever.
pub(crate) fn trim(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_MAX {
        buffer.clear();
        buffer.shrink_to(BUFFER_MAX);
    }
}

impl<F: FnMut(&[u8], SocketAddr, &mut Vec<u8>) -> bool> Handler for F {
    fn answer(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if self(message, sender, response) { Answer::Ready } else { Answer::Nothing }
    }
}

/// An answer of many messages, each made when the peer has taken those before it. It is dropped at its end, and when its
/// connection ends before.
pub trait ResponseStream {
    /// Writes the next message, without its length, into `message`, which is empty: 1 to 65,535 octets. False at the end.
    ///
    /// # Errors
    /// Where the messages cannot be continued; the connection is closed, so that the peer does not take what it has for all.
    fn next(&mut self, message: &mut Vec<u8>) -> Result<bool, StreamError>;
}

/// A stream cannot be continued. Its maker knows and logs why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer cannot be continued")]
pub struct StreamError;
