//! The part of a thread that does not depend on the transport: when queries are due, how long the
//! thread waits, and what its responses count as.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::BATCH;

use super::encoder::QueryEncoder;
use super::inspector::Inspector;
use super::schedule::{Schedule, ThreadShare};
use super::slots::{QueryTimes, Slots};
use super::tally::Tally;
use super::{LoadError, LoadOptions};

/// Length of the header of a message in octets.
const HEADER_SIZE: usize = 12;
/// Maximum time to wait for a response before the thread checks the clock.
pub(super) const MAX_WAIT: Duration = Duration::from_millis(5);
/// Time for which a closed loop sleeps if the last receive call returned few responses. More
/// responses then arrive before the next call. Waking up for each response would cost the generator
/// and the server CPU time.
const NAP_TIME: Duration = Duration::from_micros(50);
/// Minimum number of outstanding queries for such a sleep. The server works on them during the
/// sleep.
const NAP_MIN_OUTSTANDING: usize = BATCH;
/// Time before a due query during which the thread polls the clock, because the system wakes a
/// sleeping thread about 50 µs late.
pub(super) const POLL_BEFORE_DUE: Duration = Duration::from_micros(120);
/// Time after the last sent batch or response during which an open loop polls for responses. A
/// sleeping thread would receive them late.
const POLL_AFTER_EVENT: Duration = Duration::from_millis(2);

/// Returns the duration in ns.
pub(super) const fn to_ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Divides `total` into `count` integers that differ by at most 1, and returns number `index` of
/// them.
pub(super) fn equal_share(total: u64, index: usize, count: usize) -> u64 {
    let (index, count) = (index as u64, count as u64);
    total / count + u64::from(index < total % count)
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
    next_question: usize,
    /// Maximum number of queries of this thread after the warm-up.
    limit: u64,
    /// Start of the run, common to all threads.
    pub(super) origin: Instant,
    /// Start of this thread, in ns since `origin`.
    started_at: u64,
    /// Time from which no query is due, in ns since `origin`.
    pub(super) stop_sending_at: u64,
    /// Time after sending until a query counts as lost, in ns.
    timeout: u64,
    /// Time of the last search for lost queries, in ns since `origin`.
    last_expiry: u64,
    /// Time of the last sent batch or response, in ns since `origin`.
    pub(super) last_event: u64,
    /// Whether this thread polls: [`LoadOptions::polls`].
    may_poll: bool,
    /// Number of messages that the last receive step returned.
    pub(super) last_received: usize,
    /// Whether the last receive step has emptied the sockets.
    pub(super) is_drained: bool,
    /// Whether any response has arrived, including during the warm-up.
    pub(super) has_response: bool,
    pub(super) tally: Tally,
    /// Reads options and takes samples of responses; `None` if only the headers are read.
    pub(super) inspector: Option<Box<Inspector>>,
}

impl<'a> Pacer<'a> {
    /// Creates the pacer of thread `thread`. `origin` is the start of the run.
    pub(super) fn new(
        options: &'a LoadOptions,
        order: Option<&'a [u32]>,
        thread: usize,
        origin: Instant,
    ) -> Self {
        let share = ThreadShare { thread, threads: options.threads };
        Self {
            options,
            outstanding: 0,
            schedule: options.rate.map(|rate| Schedule::new(options.arrivals, rate, share, options.seed)),
            order,
            // A replay has no list of queries.
            next_question: thread % order.map_or(options.queries.len(), <[u32]>::len).max(1),
            limit: options.limit.map_or(u64::MAX, |limit| equal_share(limit, thread, options.threads)),
            origin,
            started_at: 0,
            stop_sending_at: 0,
            timeout: to_ns(options.timeout),
            last_expiry: 0,
            last_event: 0,
            may_poll: options.polls(),
            last_received: 0,
            is_drained: false,
            has_response: false,
            tally: Tally::default(),
            inspector: Inspector::new(options, thread),
        }
    }

    /// Starts the load of this thread, and returns the current time in ns since `origin`.
    pub(super) fn start(&mut self) -> u64 {
        self.started_at = self.clock();
        let measured_from = self.started_at + to_ns(self.options.warm_up);
        self.stop_sending_at = measured_from + (self.options.seconds * 1e9) as u64;
        self.tally = Tally::new(measured_from);
        self.started_at
    }

    /// Returns the current time, in ns since `origin`.
    pub(super) fn clock(&self) -> u64 {
        to_ns(self.origin.elapsed())
    }

    /// Returns the time since the end of the warm-up in ns; 0 during the warm-up.
    pub(super) const fn elapsed(&self, now: u64) -> u64 {
        now.saturating_sub(self.started_at + to_ns(self.options.warm_up))
    }

    /// Whether queries have scheduled send times.
    pub(super) const fn is_open_loop(&self) -> bool {
        self.schedule.is_some()
    }

    /// Whether the thread sends no more queries. Responses may still be outstanding.
    pub(super) fn is_over(&self, now: u64) -> bool {
        let over = match &self.schedule {
            // A query that was due in time but found no free slot is still sent if a slot becomes
            // free before the timeout.
            Some(schedule) => {
                self.started_at + schedule.due() >= self.stop_sending_at
                    || now >= self.stop_sending_at + self.timeout
            }
            None => now >= self.stop_sending_at,
        };
        over || self.tally.sent >= self.limit
    }

    /// Whether a query is due now.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let due = self.schedule.as_ref().is_none_or(|schedule| {
            let due = self.started_at + schedule.due();
            due <= now && due < self.stop_sending_at
        });
        due && self.tally.sent < self.limit
    }

    /// Returns the number of queries that may be sent together: at most `free_slots` and one batch.
    pub(super) fn batch_size(&self, free_slots: usize) -> usize {
        (free_slots.min(BATCH) as u64).min(self.limit - self.tally.sent) as usize
    }

    /// Returns the next question and its times, if one is due.
    pub(super) fn next_due(&mut self, now: u64) -> Option<(&'a [u8], QueryTimes)> {
        if !self.is_due(now) {
            return None;
        }
        let number = self.order.map_or(self.next_question, |order| order[self.next_question] as usize);
        let question = self.options.queries.question(number)?;
        let mut due = now;
        if let Some(schedule) = &mut self.schedule {
            due = self.started_at + schedule.due();
            schedule.advance();
        }
        let length = self.order.map_or(self.options.queries.len(), <[u32]>::len);
        self.next_question += self.options.threads;
        if self.next_question >= length {
            self.next_question %= length;
        }
        Some((question, QueryTimes { due, sent: now }))
    }

    /// Returns how long to wait for responses; `None` if the thread must not wait, because it can
    /// send queries or polls. `has_free_slot` states whether a slot for another query is free.
    pub(super) fn wait_time(&self, now: u64, has_free_slot: bool) -> Option<Duration> {
        match &self.schedule {
            Some(schedule) if !self.is_over(now) => self.open_loop_wait_time(schedule, now, has_free_slot),
            None if has_free_slot && !self.is_over(now) => None,
            _ => Some(MAX_WAIT),
        }
    }

    /// Returns how long an open loop waits for responses: until shortly before the next query is
    /// due. `None` means that it does not wait.
    fn open_loop_wait_time(&self, schedule: &Schedule, now: u64, has_free_slot: bool) -> Option<Duration> {
        let until_due = Duration::from_nanos((self.started_at + schedule.due()).saturating_sub(now));
        if !has_free_slot {
            return Some(MAX_WAIT);
        }
        if !self.may_poll {
            return if until_due.is_zero() { None } else { Some(until_due.min(MAX_WAIT)) };
        }
        let is_active = self.outstanding > 0 && now.saturating_sub(self.last_event) < to_ns(POLL_AFTER_EVENT);
        if is_active || until_due <= POLL_BEFORE_DUE {
            None
        } else {
            Some((until_due - POLL_BEFORE_DUE / 2).min(MAX_WAIT))
        }
    }

    /// Sleeps briefly in a closed loop, if the last receive step returned few responses and the
    /// server has enough outstanding queries.
    pub(super) fn nap_if_quiet(&self, last_received: usize) {
        let is_quiet = last_received < BATCH / 2 && self.outstanding >= NAP_MIN_OUTSTANDING;
        if is_quiet && self.schedule.is_none() {
            thread::sleep(NAP_TIME);
        }
    }

    /// Handles an error of sending or receiving datagrams. An error before the first response ends
    /// the run; later errors are counted. Returns true if the system rejected the current message,
    /// which the caller then skips. Returns false if the call was interrupted, or reported that an
    /// earlier message reached a closed port; the caller then tries the current message again.
    pub(super) fn handle_io_error(&mut self, source: io::Error) -> Result<bool, LoadError> {
        let (server, transport) = (self.options.server, self.options.transport);
        match source.kind() {
            io::ErrorKind::Interrupted => return Ok(false),
            io::ErrorKind::ConnectionRefused if !self.has_response => {
                return Err(LoadError::NotListening { server, transport });
            }
            _ if !self.has_response => return Err(LoadError::Exchange { server, source }),
            _ => self.tally.refused += 1,
        }
        Ok(source.kind() != io::ErrorKind::ConnectionRefused)
    }

    /// Frees the slot of the query that a message answers, and returns the times of the query.
    /// Counts any other message as late or unexpected, and returns `None`.
    pub(super) fn match_response(
        &mut self,
        slots: &mut Slots,
        message: &[u8],
        now: u64,
    ) -> Option<QueryTimes> {
        // In a response, QR is set (RFC 1035 §4.1.1).
        let header = message.first_chunk::<HEADER_SIZE>().filter(|header| header[2] & 0x80 != 0);
        let Some(header) = header else {
            self.tally.count_unexpected(now);
            return None;
        };
        let id = u16::from_be_bytes([header[0], header[1]]);
        if let Some(times) = slots.release(id) {
            self.has_response = true;
            self.outstanding -= 1;
            return Some(times);
        }
        if let Some(times) = slots.match_late(id) {
            self.has_response = true;
            self.tally.count_late(times);
        } else {
            self.tally.count_unexpected(now);
        }
        None
    }

    /// Counts the response to a query of `socket` (the index of a socket or connection), and reads
    /// its options if required.
    pub(super) fn count_answer(
        &mut self,
        socket: usize,
        times: QueryTimes,
        now: u64,
        message: &[u8],
        encoder: &mut QueryEncoder,
    ) {
        self.tally.count_answer(times, now, message);
        if let Some(inspector) = &mut self.inspector {
            inspector.inspect(socket, message, self.tally.is_measured(times.due), encoder);
        }
    }

    /// Returns whether a search for lost queries is due, and then records it as done. Searches are
    /// due about 20 times per timeout, but at intervals of 1 ms to 50 ms.
    pub(super) fn start_expiry_if_due(&mut self, now: u64) -> bool {
        let interval =
            (self.timeout / 20).clamp(to_ns(Duration::from_millis(1)), to_ns(Duration::from_millis(50)));
        let is_due = now.saturating_sub(self.last_expiry) >= interval;
        if is_due {
            self.last_expiry = now;
        }
        is_due
    }

    /// Whether a query without a response is lost: its timeout is over.
    pub(super) const fn is_expired(&self, times: QueryTimes, now: u64) -> bool {
        times.sent < now.saturating_sub(self.timeout)
    }

    /// Counts the queries of a socket as lost that have no response after the timeout.
    pub(super) fn expire(&mut self, slots: &mut Slots, now: u64) {
        self.count_lost_before(slots, now.saturating_sub(self.timeout));
    }

    /// Counts the queries of a socket as lost that were sent before `limit`, in ns since `origin`.
    pub(super) fn count_lost_before(&mut self, slots: &mut Slots, limit: u64) {
        let before = slots.outstanding();
        slots.release_sent_before(limit, |times| self.tally.count_lost(times));
        self.outstanding -= before - slots.outstanding();
    }

    /// Counts the queries that were due before the end but not sent, because no slot was free.
    pub(super) fn count_unsent(&mut self) {
        let Some(schedule) = &mut self.schedule else { return };
        while self.tally.sent + self.tally.unsent < self.limit
            && self.started_at + schedule.due() < self.stop_sending_at
        {
            self.tally.count_unsent(self.started_at + schedule.due());
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
            let shares: Vec<u64> = (0..count).map(|index| equal_share(limit, index, count)).collect();
            assert_eq!(shares.iter().sum::<u64>(), limit);
            assert!(shares.iter().max().expect("some") - shares.iter().min().expect("some") <= 1);
        }
    }
}
