//! Turns of the workers, and the way of messages through the network.

use super::queue::Scheduled;
use super::{
    Delivery, DiscardReason, Exchange, Fault, Loss, Network, Path, Reaction, Reply, ServerQuery, Simulator,
    TraceEvent,
};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientQuery, ClientToken, Event, ExchangeId, Output, SendFailure, Upstream};
use nonesuch_proto::Name;
use nonesuch_proto::message::{HEADER, Header, flags};
use rand::Rng as _;
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of events that are passed to the machines at once, as in the real driver.
const EVENTS_AT_ONCE: usize = 64;

impl<N: Network> Simulator<'_, N> {
    /// Passes all events of the current time to the workers. Each worker with an event or a due
    /// timeout takes one turn.
    pub(super) fn run_turns(&mut self) -> Result<(), Fault> {
        let mut events: Vec<Vec<Scheduled>> = self.workers.iter().map(|_| Vec::new()).collect();
        for _ in 0..EVENTS_AT_ONCE {
            let Some(event) = self.queue.pop_due(self.clock.offset()) else { break };
            self.sort_event(event, &mut events);
        }
        // Threads of workers run in no fixed order.
        let count = self.workers.len();
        let first = if count > 1 { self.random.random_range(0..count) } else { 0 };
        for index in (0..count).map(|index| (first + index) % count) {
            let timeout = self.workers[index].machine.poll_timeout();
            let is_due = timeout.is_some_and(|at| self.clock.offset_of(at) <= self.clock.offset());
            let of_worker = std::mem::take(&mut events[index]);
            if is_due || !of_worker.is_empty() {
                self.run_turn(index, of_worker)?;
            }
        }
        Ok(())
    }

    /// Executes events of the network, and adds events of workers to `events`.
    fn sort_event(&mut self, event: Scheduled, events: &mut [Vec<Scheduled>]) {
        let worker = match &event {
            Scheduled::Query { worker, .. }
            | Scheduled::Response { worker, .. }
            | Scheduled::Failure { worker, .. }
            | Scheduled::Wake { worker } => *worker,
            Scheduled::Arrival { .. } => return self.arrive(event),
            Scheduled::ClockChange { seconds } => {
                self.clock.change_unix(*seconds);
                return self.trace.push(self.clock.offset(), None, TraceEvent::ClockChange(*seconds));
            }
        };
        if let Some(events) = events.get_mut(worker) {
            events.push(event);
        }
    }

    fn run_turn(&mut self, index: usize, events: Vec<Scheduled>) -> Result<(), Fault> {
        self.statistics.turns += 1;
        if self.statistics.turns > self.options.turn_limit {
            return Err(Fault::TooManyTurns { turns: self.options.turn_limit, at: self.time() });
        }
        let now = self.clock.now();
        for event in events {
            self.pass_event(index, event);
        }
        let machine = &mut self.workers[index].machine;
        if machine.poll_timeout().is_some_and(|at| at <= now.instant) {
            machine.handle_timeout(now);
            self.record(index, TraceEvent::Timeout);
        }
        self.workers[index].machine.end_turn(now);
        for _ in 0..self.options.output_limit {
            let Some(output) = self.workers[index].machine.poll_output() else { return Ok(()) };
            self.execute(index, output)?;
        }
        Err(Fault::TooManyOutputs { worker: index, at: self.time() })
    }

    fn pass_event(&mut self, index: usize, event: Scheduled) {
        let now = self.clock.now();
        match event {
            Scheduled::Query { token, client, transport, message, .. } => {
                if let Some(client) = self.clients.get_mut(&token) {
                    client.is_asked = true;
                }
                let query = ClientQuery { token, client, transport, message: &message };
                self.workers[index].machine.handle_event(Event::Query(query), now);
                self.record(index, TraceEvent::Query(token, client, transport, message));
            }
            Scheduled::Response { exchange, from, message, .. } => {
                if let Some(reason) = self.discard_reason(index, exchange, from) {
                    return self.record(index, TraceEvent::Discarded(exchange, from, reason));
                }
                self.statistics.received += 1;
                self.statistics.received_octets += message.len() as u64;
                self.workers[index].machine.handle_event(Event::Response(exchange, &message), now);
                self.record(index, TraceEvent::Response(exchange, from, message));
            }
            Scheduled::Failure { exchange, failure, .. } => {
                if self.end_exchange(index, exchange) {
                    self.workers[index].machine.handle_event(Event::Failed(exchange, failure), now);
                    self.record(index, TraceEvent::Failed(exchange, failure));
                }
            }
            Scheduled::Wake { .. } => {
                self.workers[index].machine.handle_event(Event::Wake, now);
                self.record(index, TraceEvent::Woken);
            }
            // `sort_event` executes these.
            Scheduled::Arrival { .. } | Scheduled::ClockChange { .. } => {}
        }
    }

    /// Returns the reason why the driver does not pass a message to the machine.
    fn discard_reason(&self, index: usize, exchange: ExchangeId, from: SocketAddr) -> Option<DiscardReason> {
        match self.workers[index].exchanges.get(&exchange) {
            Some(Some(open)) if open.transport == Transport::Udp && open.server != from => {
                Some(DiscardReason::OtherSender)
            }
            Some(Some(_)) => None,
            _ => Some(DiscardReason::ExchangeEnded),
        }
    }

    fn execute(&mut self, index: usize, output: Output) -> Result<(), Fault> {
        match output {
            Output::Send(upstream) => self.send(index, upstream),
            Output::Close(exchange) => {
                if !self.workers[index].exchanges.contains_key(&exchange) {
                    return Err(Fault::UnknownExchange { worker: index, exchange });
                }
                self.end_exchange(index, exchange);
                self.network.handle_close(index, exchange);
                self.record(index, TraceEvent::Closed(exchange));
                Ok(())
            }
            Output::Reply(token, message) => {
                self.answer(index, token, Some(message.clone()))?;
                self.record(index, TraceEvent::Reply(token, message));
                Ok(())
            }
            Output::Drop(token) => {
                self.answer(index, token, None)?;
                self.record(index, TraceEvent::Dropped(token));
                Ok(())
            }
            Output::Wake(workers) => self.wake(index, &workers),
        }
    }

    fn answer(&mut self, worker: usize, token: ClientToken, message: Option<Vec<u8>>) -> Result<(), Fault> {
        let at = self.clock.offset();
        let client = self.clients.get_mut(&token);
        let client = client.filter(|client| client.worker == worker && client.is_asked);
        let client = client.filter(|client| client.reply.is_none());
        client.ok_or(Fault::UnknownToken { worker, token })?.reply = Some(Reply { at, message });
        Ok(())
    }

    fn wake(&mut self, worker: usize, woken: &[usize]) -> Result<(), Fault> {
        for &woken in woken {
            if woken >= self.workers.len() {
                return Err(Fault::UnknownWorker { worker, woken });
            }
            self.queue.push(self.clock.offset(), Scheduled::Wake { worker: woken });
        }
        Ok(())
    }

    /// Ends an exchange. Returns whether it was open.
    fn end_exchange(&mut self, index: usize, exchange: ExchangeId) -> bool {
        let worker = &mut self.workers[index];
        let was_open = worker.exchanges.get_mut(&exchange).and_then(Option::take).is_some();
        worker.open -= usize::from(was_open);
        was_open
    }

    fn send(&mut self, index: usize, upstream: Upstream) -> Result<(), Fault> {
        let Upstream { exchange, server, transport, message } = upstream;
        let worker = &mut self.workers[index];
        if worker.exchanges.insert(exchange, Some(Exchange { server, transport })).is_some() {
            return Err(Fault::ExchangeReused { worker: index, exchange });
        }
        worker.open += 1;
        let open = worker.open;
        self.record(index, TraceEvent::Send(exchange, server, transport, message.clone()));
        if open > self.options.exchange_limit {
            self.inject_failure(index, exchange, SendFailure::Local);
            return Ok(());
        }
        self.statistics.sent += 1;
        self.statistics.sent_octets += message.len() as u64;
        self.statistics.open_maximum = self.statistics.open_maximum.max(open);
        for (delay, message) in self.pass_path(index, exchange, (server, transport), Loss::Query, message) {
            // A connection is opened first: SYN and SYN-ACK.
            let handshakes = if transport == Transport::Udp { 0 } else { 2 };
            let arrival = self.clock.offset() + delay + self.options.path(server.ip()).delay * handshakes;
            let event = Scheduled::Arrival { worker: index, exchange, server, transport, message };
            self.queue.push(arrival, event);
        }
        Ok(())
    }

    /// Passes a query to the network, and schedules the messages of the server.
    fn arrive(&mut self, event: Scheduled) {
        let Scheduled::Arrival { worker, exchange, server, transport, message } = event else { return };
        let query = ServerQuery { worker, exchange, server, transport, message: &message };
        let deliveries = match self.network.handle_query(&query, self.clock.now()) {
            Reaction::Messages(deliveries) => deliveries,
            Reaction::Failure(failure) => {
                let at = self.clock.offset() + self.options.path(server.ip()).delay;
                return self.queue.push(at, Scheduled::Failure { worker, exchange, failure });
            }
        };
        for Delivery { delay, from, message } in deliveries {
            let target = (server, transport);
            for (on_path, message) in self.pass_path(worker, exchange, target, Loss::Response, message) {
                let at = self.clock.offset() + delay + on_path;
                self.queue.push(at, Scheduled::Response { worker, exchange, from, message });
            }
        }
    }

    /// Returns the copies of a message that arrive after the path, with the time that each takes.
    fn pass_path(
        &mut self,
        worker: usize,
        exchange: ExchangeId,
        (server, transport): (SocketAddr, Transport),
        direction: Loss,
        message: Vec<u8>,
    ) -> Vec<(Duration, Vec<u8>)> {
        let path = self.options.path(server.ip());
        if transport != Transport::Udp {
            return vec![(self.draw_delay(path), message)];
        }
        if message.len() > path.datagram_limit || self.draw(path.loss) {
            self.record(worker, TraceEvent::Lost(exchange, direction));
            return Vec::new();
        }
        let copies = if self.draw(path.duplication) { 2 } else { 1 };
        (0..copies)
            .map(|_| (self.draw_delay(path), self.change_message(path, direction, message.clone())))
            .collect()
    }

    fn change_message(&mut self, path: Path, direction: Loss, mut message: Vec<u8>) -> Vec<u8> {
        if direction == Loss::Response && self.draw(path.truncation) {
            truncate(&mut message);
        }
        if !message.is_empty() && self.draw(path.corruption) {
            let at = self.random.random_range(0..message.len());
            message[at] ^= self.random.random_range(1..=u8::MAX);
        }
        message
    }

    fn draw_delay(&mut self, path: Path) -> Duration {
        let jitter = u64::try_from(path.jitter.as_nanos()).unwrap_or(u64::MAX);
        let added = if jitter == 0 { 0 } else { self.random.random_range(0..=jitter) };
        path.delay + Duration::from_nanos(added)
    }

    /// Returns `true` with the given probability.
    fn draw(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.random_bool(probability.min(1.0))
    }

    fn record(&mut self, worker: usize, event: TraceEvent) {
        self.trace.push(self.clock.offset(), Some(worker), event);
    }
}

/// Sets the TC flag and removes all records, as a server does if the response exceeds the payload
/// size of the client. A message without a well-formed question becomes a header.
fn truncate(message: &mut Vec<u8>) {
    let Some(header) = Header::read(message) else { return };
    let question_end = match header.counts[0] {
        1 => Name::from_message(message, HEADER).ok().map(|(_, end)| end + 4),
        _ => None,
    };
    let question_end = question_end.filter(|end| *end <= message.len());
    let counts = [u16::from(question_end.is_some()), 0, 0, 0];
    message.truncate(question_end.unwrap_or(HEADER));
    message[..HEADER]
        .copy_from_slice(&Header { flags: header.flags | flags::TC, counts, ..header }.to_octets());
}
