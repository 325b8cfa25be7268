//! One thread of the load generator, with one or more sockets.
//!
//! Without a rate, the loop is closed: the thread sends a query for each query that is answered or
//! lost. With a rate, the loop is open: the thread sends each query when it is due, and receives
//! responses in between.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::client::{ReadySockets, UdpClientSocket};
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch, pin_current_thread};

use super::frame::Frame;
use super::schedule::{Part, Schedule};
use super::slots::{Slots, Times};
use super::tally::Tally;
use super::{LoadError, LoadOptions};
use crate::process;

const HEADER: usize = 12;
/// Octets of a receive buffer. Longer responses are truncated, but their header is complete. The
/// payload size in EDNS is usually smaller.
const RESPONSE_SIZE: usize = 4096;
/// Maximum time to wait for a response before the thread checks the clock.
const MAX_WAIT: Duration = Duration::from_millis(5);
/// Time for which a closed loop sleeps if only few responses arrive, so that more of them arrive
/// before the next receive call. Waking up for each response would cost both sides CPU time.
const NAP: Duration = Duration::from_micros(50);
/// Minimum number of outstanding queries for such a sleep. They keep the server busy in the
/// meantime.
const NAP_MIN_OUTSTANDING: usize = BATCH;
/// Time before a due query during which the thread polls the clock, because the system wakes a
/// sleeping thread about 50 µs late.
const POLL_BEFORE_DUE: Duration = Duration::from_micros(120);
/// Time after the last sent batch or response during which an open loop polls for responses. A
/// sleeping thread would receive them late.
const POLL_AFTER_EVENT: Duration = Duration::from_millis(2);

/// Returns the duration in ns.
const fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Returns share `index` of `count` of `limit`. The sum of all shares is `limit`.
fn share(limit: u64, index: usize, count: usize) -> u64 {
    let (index, count) = (index as u64, count as u64);
    limit / count + u64::from(index < limit % count)
}

/// One thread: its sockets, its share of the outstanding queries, and its counters.
pub(super) struct Worker<'a> {
    options: &'a LoadOptions,
    /// CPU to which the thread is bound; `None` if it is not bound.
    cpu: Option<usize>,
    sockets: Vec<UdpClientSocket>,
    /// Outstanding queries of each socket.
    slots: Vec<Slots>,
    /// Number of outstanding queries of all sockets.
    outstanding: usize,
    /// Index of the socket for the next batch.
    next_socket: usize,
    ready: ReadySockets,
    outgoing: SendBatch,
    incoming: ReceiveBatch,
    /// Message ID and times of each query in the outgoing batch.
    batch: Vec<(u16, Times)>,
    /// Questions and times of the queries that are due, before they have a message ID.
    questions: Vec<&'a [u8]>,
    times: Vec<Times>,
    frame: Frame,
    /// Due times of an open loop; `None` in a closed loop.
    schedule: Option<Schedule>,
    /// Order in which the queries are sent, as indices into the list; `None` for the order of the
    /// list.
    order: Option<&'a [u32]>,
    /// Position of the next question in this order.
    next: usize,
    /// Maximum number of queries of this thread after the warm-up.
    limit: u64,
    /// Start of the run, common to all threads.
    origin: Instant,
    /// Start of this thread, in ns since `origin`.
    began: u64,
    /// Time from which no query is due, in ns since `origin`.
    stop_sending: u64,
    /// Time after sending until a query counts as lost, in ns.
    timeout: u64,
    /// Time of the last search for lost queries, in ns since `origin`.
    last_expiry: u64,
    /// Time of the last sent batch or response, in ns since `origin`.
    last_event: u64,
    /// Whether the machine has enough CPUs to let this thread poll.
    may_spin: bool,
    /// Number of datagrams in the last receive step.
    last_received: usize,
    /// Whether the last receive step has emptied the sockets.
    is_drained: bool,
    /// Whether any response has arrived, including during the warm-up.
    answered: bool,
    tally: Tally,
}

impl<'a> Worker<'a> {
    /// Creates the worker of thread `index` and opens its sockets.
    pub(super) fn new(
        options: &'a LoadOptions,
        order: Option<&'a [u32]>,
        index: usize,
        origin: Instant,
    ) -> Result<Self, NetError> {
        let count = options.sockets;
        let connect = |socket| match options.sources {
            None => UdpClientSocket::connect(options.server, MAX_WAIT),
            Some(sources) => {
                let source = sources.address(index * count + socket, options.threads * count);
                UdpClientSocket::connect_from(source, options.server, MAX_WAIT)
            }
        };
        let sockets = (0..count).map(connect).collect::<Result<Vec<_>, _>>()?;
        let window = share(options.outstanding as u64, index, options.threads);
        let slots = (0..count).map(|socket| Slots::new(share(window, socket, count) as usize)).collect();
        let frame = Frame::new(options, index);
        let part = Part { index, threads: options.threads };
        let usable = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            options,
            cpu: options.cpus.as_ref().filter(|cpus| !cpus.is_empty()).map(|cpus| cpus[index % cpus.len()]),
            sockets,
            slots,
            outstanding: 0,
            next_socket: 0,
            ready: ReadySockets::default(),
            outgoing: SendBatch::new(BATCH, frame.size()),
            incoming: ReceiveBatch::new(BATCH, RESPONSE_SIZE),
            batch: Vec::with_capacity(BATCH),
            questions: Vec::with_capacity(BATCH),
            times: Vec::with_capacity(BATCH),
            frame,
            schedule: options.rate.map(|rate| Schedule::new(options.arrivals, rate, part, options.seed)),
            order,
            next: index % options.queries.len(),
            limit: options.limit.map_or(u64::MAX, |limit| share(limit, index, options.threads)),
            origin,
            began: 0,
            stop_sending: 0,
            timeout: ns(options.timeout),
            last_expiry: 0,
            last_event: 0,
            may_spin: options.spin && usable > options.threads,
            last_received: 0,
            is_drained: false,
            answered: false,
            tally: Tally::default(),
        })
    }

    /// Sends and receives until the load ends, and returns the counters.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        if let Some(cpu) = self.cpu {
            pin_current_thread(cpu).map_err(|source| NetError::Pin { cpu, source })?;
        }
        let before = process::own_thread_cpu_time();
        self.began = self.clock();
        let measured_from = self.began + ns(self.options.warm_up);
        self.stop_sending = measured_from + (self.options.seconds * 1e9) as u64;
        self.tally = Tally::new(measured_from);
        let mut now = self.began;
        while !(self.is_over(now) && self.outstanding == 0) {
            if !self.is_over(now) {
                self.send_due(now)?;
            }
            now = self.receive_and_expire(now)?;
        }
        self.count_unsent();
        let spent =
            before.zip(process::own_thread_cpu_time()).map(|(before, after)| after.saturating_sub(before));
        self.tally.own_cpu = spent.unwrap_or_default();
        Ok(self.tally)
    }

    /// Returns the current time, in ns since `origin`.
    fn clock(&self) -> u64 {
        ns(self.origin.elapsed())
    }

    /// Whether the worker sends no more queries.
    fn is_over(&self, now: u64) -> bool {
        let over = match &self.schedule {
            // A query that was due in time but found no free slot is still sent if a slot becomes
            // free before the timeout.
            Some(schedule) => {
                self.began + schedule.due() >= self.stop_sending || now >= self.stop_sending + self.timeout
            }
            None => now >= self.stop_sending,
        };
        over || self.tally.sent >= self.limit
    }

    /// Sends the queries that are due, at most one batch on each socket. The worker then receives
    /// responses before it sends more.
    fn send_due(&mut self, now: u64) -> Result<(), LoadError> {
        for _ in 0..self.sockets.len() {
            if !self.is_due(now) {
                break;
            }
            let place = self.next_socket;
            self.next_socket = (place + 1) % self.sockets.len();
            self.fill_batch(place, now);
            if !self.batch.is_empty() {
                self.last_event = now;
                self.send(place)?;
            }
        }
        Ok(())
    }

    /// Whether a query is due now.
    fn is_due(&self, now: u64) -> bool {
        let due = self.schedule.as_ref().is_none_or(|schedule| {
            let due = self.began + schedule.due();
            due <= now && due < self.stop_sending
        });
        due && self.tally.sent < self.limit
    }

    /// Fills the batch for a socket with the queries that are due.
    fn fill_batch(&mut self, place: usize, now: u64) {
        self.batch.clear();
        let maximum = self.slots[place].free_count().min(BATCH) as u64;
        let maximum = maximum.min(self.limit - self.tally.sent) as usize;
        self.collect_due(maximum, now);
        for (question, times) in self.questions.iter().zip(&self.times) {
            let Some(id) = self.slots[place].take(*times) else { break };
            self.batch.push((id, *times));
            self.outgoing.push_with(|slot| self.frame.write(id, question, slot));
        }
        self.outstanding += self.batch.len();
    }

    /// Collects the next due questions and their times, at most `maximum`.
    fn collect_due(&mut self, maximum: usize, now: u64) {
        let queries = &self.options.queries;
        self.questions.clear();
        self.times.clear();
        while self.questions.len() < maximum && self.is_due(now) {
            let number = self.order.map_or(self.next, |order| order[self.next] as usize);
            let Some(question) = queries.question(number) else { break };
            let due = self.schedule.as_ref().map_or(now, |schedule| self.began + schedule.due());
            if let Some(schedule) = &mut self.schedule {
                schedule.advance();
            }
            self.next += self.options.threads;
            if self.next >= queries.len() {
                self.next %= queries.len();
            }
            self.questions.push(question);
            self.times.push(Times { due, sent: now });
        }
    }

    /// Sends the batch. If the system rejects a query, its slot is freed.
    fn send(&mut self, place: usize) -> Result<(), LoadError> {
        let scheduled = self.schedule.is_some();
        while self.outgoing.pending() > 0 {
            let first = self.batch.len() - self.outgoing.pending();
            match self.sockets[place].send(&mut self.outgoing) {
                Ok(sent) => {
                    for (_, times) in &self.batch[first..first + sent] {
                        self.tally.count_sent(*times, scheduled);
                    }
                }
                Err(error) => {
                    if self.handle_io_error(error)? {
                        self.outstanding -=
                            usize::from(self.slots[place].release(self.batch[first].0).is_some());
                        self.outgoing.skip_first();
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles an error of sending or receiving. An error before the first response ends the run;
    /// later errors are counted. Returns whether the error concerns the current message. It does
    /// not if the call was interrupted, or if the system reports that the server rejected an
    /// earlier message.
    fn handle_io_error(&mut self, source: io::Error) -> Result<bool, LoadError> {
        let server = self.options.server;
        match source.kind() {
            io::ErrorKind::Interrupted => return Ok(false),
            io::ErrorKind::ConnectionRefused if !self.answered => {
                return Err(LoadError::NotListening { server });
            }
            _ if !self.answered => return Err(LoadError::Exchange { server, source }),
            _ => self.tally.refused += 1,
        }
        Ok(source.kind() != io::ErrorKind::ConnectionRefused)
    }

    /// Receives the available responses, and counts queries as lost after the timeout. Returns the
    /// current time.
    fn receive_and_expire(&mut self, before: u64) -> Result<u64, LoadError> {
        self.is_drained = true;
        let now = self.receive(before)?;
        // If the thread was suspended, more responses may be queued than one receive step takes,
        // and they may have arrived in time. Therefore queries only count as lost after a step that
        // empties the sockets. The timeout is then compared with the start of this step.
        if self.is_drained {
            self.expire(before);
        }
        Ok(now)
    }

    /// Receives the available responses. Waits for responses if no query can be sent in the
    /// meantime. Returns the current time.
    fn receive(&mut self, now: u64) -> Result<u64, LoadError> {
        let wait = if self.schedule.is_some() { self.open_wait(now) } else { self.closed_wait(now) };
        let last_received = std::mem::take(&mut self.last_received);
        if self.sockets.len() == 1 {
            // In a closed loop, wait in the receive call itself, which saves a system call.
            let result = match wait {
                None if self.outstanding == 0 => return Ok(self.clock()),
                None => self.sockets[0].receive_now(&mut self.incoming),
                Some(_) if self.schedule.is_none() => {
                    self.nap(last_received);
                    self.sockets[0].receive(&mut self.incoming)
                }
                Some(limit) => {
                    self.wait_all(limit).and_then(|()| self.sockets[0].receive_now(&mut self.incoming))
                }
            };
            return self.count_received(0, result);
        }
        match wait {
            None if self.outstanding == 0 => return Ok(self.clock()),
            None => self.wait_all(Duration::ZERO),
            Some(limit) => {
                if self.schedule.is_none() {
                    self.nap(last_received);
                }
                self.wait_all(limit)
            }
        }
        .map_err(|source| LoadError::Exchange { server: self.options.server, source })?;
        let mut now = self.clock();
        let ready = std::mem::take(&mut self.ready);
        for place in ready.indexes() {
            let result = self.sockets[place].receive_now(&mut self.incoming);
            now = self.count_received(place, result)?;
        }
        self.ready = ready;
        Ok(now)
    }

    /// Waits until a socket has a response, at most `limit`.
    fn wait_all(&mut self, limit: Duration) -> io::Result<()> {
        self.ready.wait(&self.sockets, limit)
    }

    /// Sleeps briefly if the last receive step returned few responses and the server has enough
    /// outstanding queries.
    fn nap(&self, last_received: usize) {
        if last_received < BATCH / 2 && self.outstanding >= NAP_MIN_OUTSTANDING {
            thread::sleep(NAP);
        }
    }

    /// Returns how long a closed loop waits for responses; `None` if it can send now.
    fn closed_wait(&self, now: u64) -> Option<Duration> {
        let has_room = self.slots.iter().any(|slots| slots.free_count() > 0);
        if has_room && !self.is_over(now) { None } else { Some(MAX_WAIT) }
    }

    /// Returns how long an open loop waits for responses: until shortly before the next query is
    /// due. `None` means that it does not wait.
    fn open_wait(&self, now: u64) -> Option<Duration> {
        let Some(schedule) = self.schedule.as_ref().filter(|_| !self.is_over(now)) else {
            return Some(MAX_WAIT);
        };
        let until_due = Duration::from_nanos((self.began + schedule.due()).saturating_sub(now));
        let is_full = self.slots.iter().all(|slots| slots.free_count() == 0);
        if is_full {
            return Some(MAX_WAIT);
        }
        if !self.may_spin {
            return if until_due.is_zero() { None } else { Some(until_due.min(MAX_WAIT)) };
        }
        let is_awake = self.outstanding > 0 && now.saturating_sub(self.last_event) < ns(POLL_AFTER_EVENT);
        if is_awake || until_due <= POLL_BEFORE_DUE {
            None
        } else {
            Some((until_due - POLL_BEFORE_DUE / 2).min(MAX_WAIT))
        }
    }

    /// Counts the responses of a receive call on a socket. Returns the current time.
    fn count_received(&mut self, place: usize, result: io::Result<usize>) -> Result<u64, LoadError> {
        let now = self.clock();
        match result {
            Ok(found) => {
                self.is_drained &= found < BATCH;
                self.last_received += found;
                self.last_event = now;
                self.count_answers(place, now);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Responses may follow the error in the queue.
                self.is_drained = false;
                let _ = self.handle_io_error(error)?;
            }
        }
        Ok(now)
    }

    /// Counts the received datagrams of a socket, and frees the slots of the answered queries.
    fn count_answers(&mut self, place: usize, now: u64) {
        for message in self.incoming.messages() {
            // In a response, QR is set (RFC 1035 §4.1.1).
            let header = message.first_chunk::<HEADER>().filter(|header| header[2] & 0x80 != 0);
            let Some(header) = header else {
                self.tally.count_unexpected(now);
                continue;
            };
            let (slots, id) = (&mut self.slots[place], u16::from_be_bytes([header[0], header[1]]));
            if let Some(times) = slots.release(id) {
                self.answered = true;
                self.outstanding -= 1;
                self.tally.count_answer(times, now, [header[2], header[3]], message.len() as u64);
            } else if let Some(times) = slots.take_late(id) {
                self.answered = true;
                self.tally.count_late(times);
            } else {
                self.tally.count_unexpected(now);
            }
        }
    }

    /// Counts queries as lost after the timeout. The check runs about 20 times per timeout, but at
    /// intervals of 1 ms to 50 ms.
    fn expire(&mut self, now: u64) {
        let interval = (self.timeout / 20).clamp(ns(Duration::from_millis(1)), ns(Duration::from_millis(50)));
        if now.saturating_sub(self.last_expiry) < interval {
            return;
        }
        self.last_expiry = now;
        for slots in &mut self.slots {
            let before = slots.outstanding();
            slots.give_up_before(now.saturating_sub(self.timeout), |times| self.tally.count_lost(times));
            self.outstanding -= before - slots.outstanding();
        }
    }

    /// Counts the queries that were due before the end but not sent, because no slot was free.
    fn count_unsent(&mut self) {
        let Some(schedule) = &mut self.schedule else { return };
        while self.tally.sent + self.tally.unsent < self.limit
            && self.began + schedule.due() < self.stop_sending
        {
            self.tally.count_unsent(self.began + schedule.due());
            schedule.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueryList;
    use super::*;
    use std::net::UdpSocket;
    use std::path::Path;
    use std::sync::Arc;

    /// Answers `count` queries.
    fn answer(server: &UdpSocket, count: usize) {
        let mut octets = [0; 512];
        for _ in 0..count {
            let (length, peer) = server.recv_from(&mut octets).expect("a query");
            octets[2] |= 0x80;
            server.send_to(&octets[..length], peer).expect("sent");
        }
    }

    #[test]
    fn answers_that_came_while_the_thread_stood_still_are_not_lost() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("bound");
        server.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let queries = QueryList::parse(Path::new("list"), b"a.example A\n").expect("a query");
        let address = server.local_addr().expect("an address");
        for sockets in [1, 2] {
            // All queries are outstanding at the same time. They are more than one receive step
            // takes.
            let all = 2 * BATCH + BATCH / 2;
            let timeout = Duration::from_millis(50);
            let options = LoadOptions {
                sockets,
                timeout,
                outstanding: all,
                limit: Some(all as u64 + 1),
                ..LoadOptions::new(address, Arc::new(queries.clone()))
            };
            let mut worker = Worker::new(&options, None, 0, Instant::now()).expect("a worker");
            worker.stop_sending = u64::MAX;
            let mut now = worker.clock();
            worker.tally = Tally::new(now);
            (0..3).for_each(|_| worker.send_due(now).expect("sent"));
            assert_eq!(worker.outstanding, all);
            answer(&server, all);
            thread::sleep(2 * timeout);
            for _ in 0..4 {
                now = worker.receive_and_expire(now).expect("received");
            }
            assert_eq!((worker.outstanding, worker.tally.lost), (0, 0), "{sockets} sockets");
            // A query without a response counts as lost.
            worker.send_due(now).expect("sent");
            assert_eq!(worker.outstanding, 1);
            let end = Instant::now() + Duration::from_secs(20);
            while worker.outstanding > 0 {
                assert!(Instant::now() < end, "it is waited for");
                now = worker.receive_and_expire(now).expect("received");
            }
            assert_eq!(worker.tally.lost, 1);
            server.recv_from(&mut [0; 512]).expect("the query");
        }
    }

    #[test]
    fn shares_sum_up_to_the_limit() {
        for (limit, count) in [(10, 3), (2, 4), (0, 2), (16, 16)] {
            let shares: Vec<u64> = (0..count).map(|index| share(limit, index, count)).collect();
            assert_eq!(shares.iter().sum::<u64>(), limit);
            assert!(shares.iter().max().expect("some") - shares.iter().min().expect("some") <= 1);
        }
    }
}
