//! A small machine for tests: a forwarder.

use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, Event, ExchangeId, Machine, Now, Output, Upstream};
use nonesuch_proto::message::{Header, Message, flags};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The server of [`Forwarder::boxed`].
pub(crate) const SERVER: &str = "192.0.2.1:53";
/// Time until a query is sent again.
pub(crate) const RETRY: Duration = Duration::from_millis(400);

/// Forwards each query to one server, again after a timeout, at most `attempts` times; then replies
/// with SERVFAIL. Replies have the RA flag.
pub(crate) struct Forwarder {
    server: SocketAddr,
    attempts: u32,
    waiting: Vec<Waiting>,
    next: u64,
    outputs: VecDeque<Output>,
}

struct Waiting {
    token: ClientToken,
    message: Vec<u8>,
    exchange: ExchangeId,
    attempts: u32,
    transport: Transport,
    timeout: Instant,
}

impl Forwarder {
    /// Returns a forwarder to [`SERVER`].
    pub(crate) fn boxed(attempts: u32) -> Box<dyn Machine> {
        Self::to(SERVER.parse().unwrap(), attempts)
    }

    /// Returns a forwarder to `server`.
    pub(crate) fn to(server: SocketAddr, attempts: u32) -> Box<dyn Machine> {
        Box::new(Self { server, attempts, waiting: Vec::new(), next: 1, outputs: VecDeque::new() })
    }

    fn reply(&mut self, token: ClientToken, mut message: Vec<u8>) {
        if let Some(octet) = message.get_mut(3) {
            *octet |= flags::RA as u8;
        }
        self.outputs.push_back(Output::Reply(token, message));
    }

    fn send(&mut self, waiting: Waiting, now: Now) {
        let exchange = ExchangeId(self.next);
        self.next += 1;
        self.outputs.push_back(Output::Send(Upstream {
            exchange,
            server: self.server,
            transport: waiting.transport,
            message: waiting.message.clone(),
        }));
        self.waiting.push(Waiting { exchange, timeout: now.instant + RETRY, ..waiting });
    }

    fn retry(&mut self, waiting: Waiting, now: Now) {
        self.outputs.push_back(Output::Close(waiting.exchange));
        if waiting.attempts >= self.attempts {
            let mut message = waiting.message;
            message[2] |= 0x80;
            message[3] |= 2;
            self.reply(waiting.token, message);
        } else {
            self.send(Waiting { attempts: waiting.attempts + 1, ..waiting }, now);
        }
    }

    fn remove(&mut self, exchange: ExchangeId) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.exchange == exchange)?;
        Some(self.waiting.remove(at))
    }
}

impl Machine for Forwarder {
    fn handle_event(&mut self, event: Event<'_>, now: Now) {
        match event {
            Event::Query(query) => {
                let (token, message) = (query.token, query.message.to_vec());
                if Message::parse(&message).is_err() {
                    return self.outputs.push_back(Output::Drop(token));
                }
                let (exchange, timeout) = (ExchangeId(0), now.instant);
                let transport = Transport::Udp;
                self.send(Waiting { token, message, exchange, attempts: 1, transport, timeout }, now);
            }
            Event::Response(exchange, message) => {
                let Some(waiting) = self.remove(exchange) else { return };
                let header = Header::read(message).unwrap();
                if header.id != Header::read(&waiting.message).unwrap().id {
                    return self.waiting.push(waiting);
                }
                if header.flags & flags::TC != 0 {
                    return self.retry(Waiting { transport: Transport::Tcp, ..waiting }, now);
                }
                self.outputs.push_back(Output::Close(exchange));
                self.reply(waiting.token, message.to_vec());
            }
            Event::Failed(exchange, _) => {
                if let Some(waiting) = self.remove(exchange) {
                    self.retry(waiting, now);
                }
            }
            Event::Wake => {}
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        while let Some(at) = self.waiting.iter().position(|waiting| waiting.timeout <= now.instant) {
            let waiting = self.waiting.remove(at);
            self.retry(waiting, now);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.timeout).min()
    }
}
