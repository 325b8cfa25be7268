//! The part of a thread that does not depend on the transport: when queries are due, how long the
//! thread waits, and what its responses count as.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::BATCH;

use super::frame::Frame;
use super::inspector::Inspector;
use super::schedule::{Part, Schedule};
use super::slots::{Slots, Times};
use super::tally::Tally;
use super::{LoadError, LoadOptions};

/// Length of the header of a message in octets.
const HEADER: usize = 12;
/// Maximum time to wait for a response before the thread checks the clock.
pub(super) const MAX_WAIT: Duration = Duration::from_millis(5);
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
pub(super) const fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Returns share `index` of `count` of `limit`. The sum of all shares is `limit`.
pub(super) fn share(limit: u64, index: usize, count: usize) -> u64 {
    let (index, count) = (index as u64, count as u64);
    limit / count + u64::from(index < limit % count)
}

/// Schedule, clock and counters of a thread.
pub(super) struct Pacer<'a> {
    pub(super) options: &'a LoadOptions,
    /// Number of outstanding queries of all sockets.
    pub(super) outstanding: usize,
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
    pub(super) stop_sending: u64,
    /// Time after sending until a query counts as lost, in ns.
    timeout: u64,
    /// Time of the last search for lost queries, in ns since `origin`.
    last_expiry: u64,
    /// Time of the last sent batch or response, in ns since `origin`.
    pub(super) last_event: u64,
    /// Whether the machine has enough CPUs to let this thread poll.
    may_spin: bool,
    /// Number of messages in the last receive step.
    pub(super) last_received: usize,
    /// Whether the last receive step has emptied the sockets.
    pub(super) is_drained: bool,
    /// Whether any response has arrived, including during the warm-up.
    pub(super) answered: bool,
    pub(super) tally: Tally,
    /// Reads options and takes samples of responses; `None` if only the headers are read.
    pub(super) inspector: Option<Box<Inspector>>,
}

impl<'a> Pacer<'a> {
    /// Creates the pacer of thread `index`.
    pub(super) fn new(
        options: &'a LoadOptions,
        order: Option<&'a [u32]>,
        index: usize,
        origin: Instant,
    ) -> Self {
        let part = Part { index, threads: options.threads };
        let usable = thread::available_parallelism().map_or(1, usize::from);
        Self {
            options,
            outstanding: 0,
            schedule: options.rate.map(|rate| Schedule::new(options.arrivals, rate, part, options.seed)),
            order,
            next: index % order.map_or(options.queries.len(), <[u32]>::len),
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
            inspector: Inspector::new(options, index),
        }
    }

    /// Starts the load, and returns the time.
    pub(super) fn begin(&mut self) -> u64 {
        self.began = self.clock();
        let measured_from = self.began + ns(self.options.warm_up);
        self.stop_sending = measured_from + (self.options.seconds * 1e9) as u64;
        self.tally = Tally::new(measured_from);
        self.began
    }

    /// Returns the current time, in ns since `origin`.
    pub(super) fn clock(&self) -> u64 {
        ns(self.origin.elapsed())
    }

    /// Returns the time since the end of the warm-up in ns; 0 during the warm-up.
    pub(super) const fn elapsed(&self, now: u64) -> u64 {
        now.saturating_sub(self.began + ns(self.options.warm_up))
    }

    /// Whether queries have scheduled send times.
    pub(super) const fn is_open_loop(&self) -> bool {
        self.schedule.is_some()
    }

    /// Whether the thread sends no more queries.
    pub(super) fn is_over(&self, now: u64) -> bool {
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

    /// Whether a query is due now.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let due = self.schedule.as_ref().is_none_or(|schedule| {
            let due = self.began + schedule.due();
            due <= now && due < self.stop_sending
        });
        due && self.tally.sent < self.limit
    }

    /// Returns the number of queries that may be sent together, at most `room` and one batch.
    pub(super) fn batch_size(&self, room: usize) -> usize {
        (room.min(BATCH) as u64).min(self.limit - self.tally.sent) as usize
    }

    /// Returns the next question and its times, if one is due.
    pub(super) fn next_due(&mut self, now: u64) -> Option<(&'a [u8], Times)> {
        if !self.is_due(now) {
            return None;
        }
        let number = self.order.map_or(self.next, |order| order[self.next] as usize);
        let question = self.options.queries.question(number)?;
        let mut due = now;
        if let Some(schedule) = &mut self.schedule {
            due = self.began + schedule.due();
            schedule.advance();
        }
        let length = self.order.map_or(self.options.queries.len(), <[u32]>::len);
        self.next += self.options.threads;
        if self.next >= length {
            self.next %= length;
        }
        Some((question, Times { due, sent: now }))
    }

    /// Returns how long to wait for responses, if a query can be sent (`has_room`) or not; `None`
    /// if the thread must not wait.
    pub(super) fn wait(&self, now: u64, has_room: bool) -> Option<Duration> {
        match &self.schedule {
            Some(schedule) if !self.is_over(now) => self.open_wait(schedule, now, has_room),
            None if has_room && !self.is_over(now) => None,
            _ => Some(MAX_WAIT),
        }
    }

    /// Returns how long an open loop waits for responses: until shortly before the next query is
    /// due. `None` means that it does not wait.
    fn open_wait(&self, schedule: &Schedule, now: u64, has_room: bool) -> Option<Duration> {
        let until_due = Duration::from_nanos((self.began + schedule.due()).saturating_sub(now));
        if !has_room {
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

    /// Sleeps briefly in a closed loop, if the last receive step returned few responses and the
    /// server has enough outstanding queries.
    pub(super) fn nap(&self, last_received: usize) {
        let is_slow = last_received < BATCH / 2 && self.outstanding >= NAP_MIN_OUTSTANDING;
        if is_slow && self.schedule.is_none() {
            thread::sleep(NAP);
        }
    }

    /// Handles an error of sending or receiving datagrams. An error before the first response ends
    /// the run; later errors are counted. Returns whether the error concerns the current message.
    /// It does not if the call was interrupted, or if the system reports that the server rejected
    /// an earlier message.
    pub(super) fn handle_io_error(&mut self, source: io::Error) -> Result<bool, LoadError> {
        let (server, transport) = (self.options.server, self.options.transport);
        match source.kind() {
            io::ErrorKind::Interrupted => return Ok(false),
            io::ErrorKind::ConnectionRefused if !self.answered => {
                return Err(LoadError::NotListening { server, transport });
            }
            _ if !self.answered => return Err(LoadError::Exchange { server, source }),
            _ => self.tally.refused += 1,
        }
        Ok(source.kind() != io::ErrorKind::ConnectionRefused)
    }

    /// Frees the slot of the query that a message answers, and returns the times of the query.
    /// Returns `None` for other messages, which are counted as late or unexpected.
    pub(super) fn match_response(&mut self, slots: &mut Slots, message: &[u8], now: u64) -> Option<Times> {
        // In a response, QR is set (RFC 1035 §4.1.1).
        let header = message.first_chunk::<HEADER>().filter(|header| header[2] & 0x80 != 0);
        let Some(header) = header else {
            self.tally.count_unexpected(now);
            return None;
        };
        let id = u16::from_be_bytes([header[0], header[1]]);
        if let Some(times) = slots.release(id) {
            self.answered = true;
            self.outstanding -= 1;
            return Some(times);
        }
        if let Some(times) = slots.take_late(id) {
            self.answered = true;
            self.tally.count_late(times);
        } else {
            self.tally.count_unexpected(now);
        }
        None
    }

    /// Counts the response to a query of the socket `place`, and reads its options if required.
    pub(super) fn count_answer(
        &mut self,
        place: usize,
        times: Times,
        now: u64,
        message: &[u8],
        frame: &mut Frame,
    ) {
        self.tally.count_answer(times, now, message);
        if let Some(inspector) = &mut self.inspector {
            inspector.inspect(place, message, self.tally.counts(times.due), frame);
        }
    }

    /// Returns whether lost queries must be searched for now: about 20 times per timeout, but at
    /// intervals of 1 ms to 50 ms.
    pub(super) fn is_expiry_due(&mut self, now: u64) -> bool {
        let interval = (self.timeout / 20).clamp(ns(Duration::from_millis(1)), ns(Duration::from_millis(50)));
        let is_due = now.saturating_sub(self.last_expiry) >= interval;
        if is_due {
            self.last_expiry = now;
        }
        is_due
    }

    /// Whether a query without a response is lost.
    pub(super) const fn is_expired(&self, times: Times, now: u64) -> bool {
        times.sent < now.saturating_sub(self.timeout)
    }

    /// Counts the queries of a socket as lost that have no response after the timeout.
    pub(super) fn expire(&mut self, slots: &mut Slots, now: u64) {
        self.give_up_before(slots, now.saturating_sub(self.timeout));
    }

    /// Counts the queries of a socket as lost that were sent before `limit`, in ns since `origin`.
    pub(super) fn give_up_before(&mut self, slots: &mut Slots, limit: u64) {
        let before = slots.outstanding();
        slots.give_up_before(limit, |times| self.tally.count_lost(times));
        self.outstanding -= before - slots.outstanding();
    }

    /// Counts the queries that were due before the end but not sent, because no slot was free.
    pub(super) fn count_unsent(&mut self) {
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
    use super::*;

    #[test]
    fn shares_sum_up_to_the_limit() {
        for (limit, count) in [(10, 3), (2, 4), (0, 2), (16, 16)] {
            let shares: Vec<u64> = (0..count).map(|index| share(limit, index, count)).collect();
            assert_eq!(shares.iter().sum::<u64>(), limit);
            assert!(shares.iter().max().expect("some") - shares.iter().min().expect("some") <= 1);
        }
    }
}
