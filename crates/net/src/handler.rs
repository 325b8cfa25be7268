//! The interface of message handlers. A handler is a closure, or a type that can also defer answers
//! to generate parts of many answers together, and that can answer with a stream of messages. This
//! crate calls the steps of the handler and does not interpret messages.

use std::net::SocketAddr;
use std::time::Duration;

/// The result of handling a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The buffer contains a response to send.
    Ready,
    /// There is no response to send.
    Nothing,
    /// The answer is incomplete. The caller calls
    /// [`generate_deferred`](Handler::generate_deferred), and then
    /// [`answer_again`](Handler::answer_again).
    Deferred,
    /// The answer consists of many messages, from [`stream`](Handler::stream). Over UDP, nothing is
    /// sent.
    Stream,
}

/// The properties of a TLS connection that answers may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// Whether the version is TLS 1.3.
    pub is_tls13: bool,
    /// Whether the client offered the ALPN protocol `dot`.
    pub is_dot: bool,
}

/// Answers messages, in one thread. Messages arrive in batches. For each batch, the caller calls
/// [`begin_batch`](Handler::begin_batch), [`answer`](Handler::answer) for each message, and
/// [`end_batch`](Handler::end_batch). If any answer was deferred, it then calls
/// [`generate_deferred`](Handler::generate_deferred), [`answer_again`](Handler::answer_again) for
/// each deferred message, and [`end_batch`](Handler::end_batch) again. Batches do not overlap.
pub trait Handler {
    /// Begins a batch.
    fn begin_batch(&mut self) {}

    /// Sets the TLS properties of the connection of the next batch. Called before
    /// [`begin_batch`](Self::begin_batch), only over TLS.
    fn set_session(&mut self, _session: TlsSession) {}

    /// Answers a message of `sender` into `response`, which is empty.
    fn answer(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> Answer;

    /// Generates the missing parts of the deferred answers.
    fn generate_deferred(&mut self) {}

    /// Answers a deferred message into `response`, which is empty. Returns whether there is a
    /// response to send.
    fn answer_again(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> bool {
        self.answer(message, sender, response) == Answer::Ready
    }

    /// Reports that all answers of the batch so far are sent (UDP) or in the output buffer of the
    /// connection. Called a second time after deferred answers.
    fn end_batch(&mut self) {}

    /// Returns the messages of the answer for which [`answer`](Self::answer) just returned
    /// [`Answer::Stream`]. `None` closes the connection.
    fn stream(&mut self) -> Option<Box<dyn ResponseStream>> {
        None
    }

    /// Sets how long connections may wait for their next message from now on. Called at the start,
    /// and when the timeout changes with the number of connections. A server sends this value to
    /// its clients (edns-tcp-keepalive, RFC 7828). Not called over UDP.
    fn set_idle_timeout(&mut self, _timeout: Duration) {}
}

/// Maximum capacity of a response buffer between batches, in octets: the size of the largest
/// message (RFC 1035 section 4.2.2).
pub(crate) const RESPONSE_BUFFER_MAX: usize = 1 << 16;

/// Frees the capacity of a response buffer above [`RESPONSE_BUFFER_MAX`]. Otherwise, one large
/// response would hold its memory forever.
pub(crate) fn trim_response_buffer(buffer: &mut Vec<u8>) {
    if buffer.capacity() > RESPONSE_BUFFER_MAX {
        buffer.clear();
        buffer.shrink_to(RESPONSE_BUFFER_MAX);
    }
}

impl<F: FnMut(&[u8], SocketAddr, &mut Vec<u8>) -> bool> Handler for F {
    fn answer(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if self(message, sender, response) { Answer::Ready } else { Answer::Nothing }
    }
}

/// An answer of many messages. Each message is generated after the peer has accepted the previous
/// ones. The stream is dropped at its end, or when its connection ends.
pub trait ResponseStream {
    /// Writes the next message to `message`, which is empty: 1 to 65,535 octets, without the length
    /// prefix. Returns `false` at the end.
    ///
    /// # Errors
    /// Fails if the stream cannot continue. The server then closes the connection. Otherwise, the
    /// peer could treat the incomplete answer as complete.
    fn next(&mut self, message: &mut Vec<u8>) -> Result<bool, StreamError>;
}

/// The stream cannot continue. The implementation of the stream logs the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response cannot be continued")]
pub struct StreamError;
