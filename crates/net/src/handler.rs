//! What answers messages: a closure, or a handler that puts answers off to make many of their parts together.

use std::net::SocketAddr;

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The buffer holds an answer to send.
    Ready,
    /// Nothing is to be sent.
    Nothing,
    /// The answer lacks something: the handler is to [make](Handler::make) it, and is then asked again.
    Later,
}

/// Answers messages, in one thread. Messages come in batches: [`begin`](Handler::begin), [`answer`](Handler::answer) for
/// each; where any was put off, [`make`](Handler::make), and [`answer_again`](Handler::answer_again) for those.
pub trait Handler {
    /// Begins a batch.
    fn begin(&mut self) {}

    /// Answers a message of `sender` into `response`, which is empty.
    fn answer(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> Answer;

    /// Makes what the answers lack that were put off.
    fn make(&mut self) {}

    /// Answers a message that was put off into `response`, which is empty; returns whether there is an answer to send.
    fn answer_again(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> bool {
        self.answer(message, sender, response) == Answer::Ready
    }
}

impl<F: FnMut(&[u8], SocketAddr, &mut Vec<u8>) -> bool> Handler for F {
    fn answer(&mut self, message: &[u8], sender: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if self(message, sender, response) { Answer::Ready } else { Answer::Nothing }
    }
}
