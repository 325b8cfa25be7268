//! One thread of load: the closed loop.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use nonesuch_net::client::UdpClientSocket;
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch, pin_current_thread};
use nonesuch_proto::edns;
use nonesuch_proto::message::Rcode;

use super::histogram::Histogram;
use super::slots::Slots;
use super::{Latency, LoadError, LoadOptions};

const HEADER: usize = 12;
/// The longest query: header, name, type, class and an OPT record without options.
const QUERY_SIZE: usize = HEADER + 255 + 4 + edns::OPT_OCTETS;
/// Room for an answer, octets. Longer ones are cut, which their header does not mind; EDNS asks for less.
const RESPONSE_SIZE: usize = 4096;
/// How long to wait for an answer before looking at the clock.
const TICK: Duration = Duration::from_millis(5);

/// What one thread, or all, have counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) unexpected: u64,
    pub(super) refused: u64,
    pub(super) truncated: u64,
    pub(super) octets: u64,
    pub(super) octets_max: u64,
    by_rcode: [u64; 16],
    latencies: Histogram,
    /// ns since the start of the run.
    first_send: Option<u64>,
    last_receive: Option<u64>,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.unexpected += other.unexpected;
        self.refused += other.refused;
        self.truncated += other.truncated;
        self.octets += other.octets;
        self.octets_max = self.octets_max.max(other.octets_max);
        self.by_rcode.iter_mut().zip(other.by_rcode).for_each(|(mine, theirs)| *mine += theirs);
        self.latencies.add(&other.latencies);
        self.first_send = self.first_send.into_iter().chain(other.first_send).min();
        self.last_receive = self.last_receive.max(other.last_receive);
    }

    /// Queries answered.
    pub(super) fn received(&self) -> u64 {
        self.latencies.count()
    }

    /// From the first query sent to the last answer received.
    pub(super) fn duration(&self) -> Duration {
        let ends = self.first_send.zip(self.last_receive);
        ends.map_or(Duration::ZERO, |(first, last)| Duration::from_nanos(last.saturating_sub(first)))
    }

    pub(super) fn rcodes(&self) -> BTreeMap<String, u64> {
        let counted = (0..).zip(self.by_rcode).filter(|&(_, count)| count > 0);
        counted.map(|(rcode, count)| (Rcode(rcode).to_string(), count)).collect()
    }

    pub(super) fn latency(&self) -> Option<Latency> {
        let us = |ns: u64| ns as f64 / 1000.0;
        Some(Latency {
            min: us(self.latencies.min()?),
            mean: self.latencies.mean()? / 1000.0,
            p50: us(self.latencies.percentile(50)?),
            p90: us(self.latencies.percentile(90)?),
            p99: us(self.latencies.percentile(99)?),
            max: us(self.latencies.max()?),
        })
    }

    fn count_answer(&mut self, flags: [u8; 2], octets: u64, latency: u64) {
        self.truncated += u64::from(flags[0] & 0x02 != 0);
        self.by_rcode[usize::from(flags[1] & 0x0f)] += 1;
        self.octets += octets;
        self.octets_max = self.octets_max.max(octets);
        self.latencies.record(latency);
    }
}

/// The part of a query that all have: flags and counts before the question, the OPT record after it.
struct Frame {
    /// Octets 2 to 12 of the header.
    header: [u8; HEADER - 2],
    opt: Vec<u8>,
}

impl Frame {
    fn new(options: &LoadOptions) -> Self {
        let mut opt = Vec::new();
        if options.edns_size > 0 {
            let dnssec_ok = if options.dnssec_ok { edns::DO } else { 0 };
            let compact_ok = if options.compact_ok { edns::CO } else { 0 };
            edns::push_opt(options.edns_size, 0, dnssec_ok | compact_ok, &mut opt);
        }
        // RD as dnsperf sets it, one question, and OPT as the one additional record.
        let header = [0x01, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(!opt.is_empty())];
        Self { header, opt }
    }

    /// Writes a whole query into `slot`, which has room for the longest; returns its length.
    fn write(&self, id: u16, question: &[u8], slot: &mut [u8]) -> usize {
        let parts = [&id.to_be_bytes()[..], &self.header, question, &self.opt];
        let mut length = 0;
        for part in parts {
            slot[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        length
    }
}

/// When queries are due.
struct Pace {
    per_ns: f64,
}

impl Pace {
    /// How many queries are due at `now`, ns since the start.
    fn due(&self, now: u64) -> u64 {
        (now as f64 * self.per_ns) as u64 + 1
    }

    /// When query number `count` (from 0) is due.
    fn due_at(&self, count: u64) -> u64 {
        (count as f64 / self.per_ns).ceil() as u64
    }
}

/// A share of `limit` for thread `index` of `threads`; all shares together are the limit.
fn share(limit: u64, index: usize, threads: usize) -> u64 {
    let (index, threads) = (index as u64, threads as u64);
    limit / threads + u64::from(index < limit % threads)
}

pub(super) struct Worker<'a> {
    options: &'a LoadOptions,
    cpu: Option<usize>,
    socket: UdpClientSocket,
    outgoing: SendBatch,
    /// The identifiers of the queries in `outgoing`.
    ids: Vec<u16>,
    incoming: ReceiveBatch,
    slots: Slots,
    frame: Frame,
    pace: Option<Pace>,
    /// The next query of the list.
    next: usize,
    limit: u64,
    origin: Instant,
    /// When this thread began, stops sending, and last looked for lost queries, ns since `origin`.
    began: u64,
    stop_sending: u64,
    last_expiry: u64,
    timeout: u64,
    tally: Tally,
}

impl<'a> Worker<'a> {
    pub(super) fn new(options: &'a LoadOptions, index: usize, origin: Instant) -> Result<Self, LoadError> {
        let cpus = options.cpus.as_deref().unwrap_or_default();
        let outstanding = share(options.outstanding as u64, index, options.threads) as usize;
        Ok(Self {
            options,
            cpu: cpus.get(index % cpus.len().max(1)).copied(),
            socket: UdpClientSocket::connect(options.server, TICK)?,
            outgoing: SendBatch::new(BATCH, QUERY_SIZE),
            ids: Vec::with_capacity(BATCH),
            incoming: ReceiveBatch::new(BATCH, RESPONSE_SIZE),
            slots: Slots::new(outstanding),
            frame: Frame::new(options),
            pace: options.rate.map(|rate| Pace { per_ns: rate / options.threads as f64 / 1e9 }),
            next: index % options.queries.len(),
            limit: options.limit.map_or(u64::MAX, |limit| share(limit, index, options.threads)),
            origin,
            began: 0,
            stop_sending: 0,
            last_expiry: 0,
            timeout: options.timeout.as_nanos() as u64,
            tally: Tally::default(),
        })
    }

    /// Sends and receives until the end; returns what was counted.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        if let Some(cpu) = self.cpu {
            pin_current_thread(cpu).map_err(|source| NetError::Pin { cpu, source })?;
        }
        self.began = self.clock();
        self.stop_sending = self.began + (self.options.seconds * 1e9) as u64;
        loop {
            let now = self.clock();
            let allowed = self.allowed(now);
            if allowed == 0 && self.slots.outstanding() == 0 && self.is_over(now) {
                return Ok(self.tally);
            }
            let filled = self.fill(now, allowed);
            self.send()?;
            self.receive(now, allowed > filled)?;
        }
    }

    fn clock(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn is_over(&self, now: u64) -> bool {
        now >= self.stop_sending || self.tally.sent >= self.limit
    }

    /// How many queries may be sent now.
    fn allowed(&self, now: u64) -> u64 {
        if self.is_over(now) {
            return 0;
        }
        let due = self.pace.as_ref().map_or(u64::MAX, |pace| pace.due(now - self.began));
        let open = due.saturating_sub(self.tally.sent).min(self.limit - self.tally.sent);
        open.min(self.slots.free() as u64)
    }

    /// Fills the batch; returns how many queries it holds.
    fn fill(&mut self, now: u64, allowed: u64) -> u64 {
        self.ids.clear();
        let queries = &self.options.queries;
        for _ in 0..allowed.min(BATCH as u64) {
            let (Some(question), Some(id)) = (queries.question(self.next), self.slots.take(now)) else {
                break;
            };
            self.next = (self.next + self.options.threads) % queries.len();
            self.ids.push(id);
            let frame = &self.frame;
            self.outgoing.push_with(|slot| frame.write(id, question, slot));
        }
        if !self.ids.is_empty() {
            self.tally.first_send.get_or_insert(now);
        }
        self.ids.len() as u64
    }

    /// Sends the batch. A query that the system refuses is taken back.
    fn send(&mut self) -> Result<(), LoadError> {
        while self.outgoing.pending() > 0 {
            match self.socket.send(&mut self.outgoing) {
                Ok(sent) => self.tally.sent += sent as u64,
                Err(error) => {
                    let first = self.ids.len() - self.outgoing.pending();
                    if self.bear(error)? {
                        self.slots.release(self.ids[first]);
                        self.outgoing.skip_first();
                    }
                }
            }
        }
        Ok(())
    }

    /// Judges an error of sending or receiving: one that comes before any answer ends the run. Returns whether
    /// it concerns the message at hand and not an earlier one.
    fn bear(&mut self, source: io::Error) -> Result<bool, LoadError> {
        let server = self.options.server;
        match source.kind() {
            io::ErrorKind::Interrupted => return Ok(false),
            io::ErrorKind::ConnectionRefused if self.tally.received() == 0 => {
                return Err(LoadError::NotListening { server });
            }
            _ if self.tally.received() == 0 => return Err(LoadError::Exchange { server, source }),
            _ => self.tally.refused += 1,
        }
        Ok(source.kind() != io::ErrorKind::ConnectionRefused)
    }

    /// Takes the answers that are there; waits for one unless there is more to send at once.
    fn receive(&mut self, now: u64, more: bool) -> Result<(), LoadError> {
        let result = if more {
            self.socket.receive_now(&mut self.incoming)
        } else if let Some(wait) = self.until_due(now) {
            self.socket.wait_readable(wait).and_then(|_| self.socket.receive_now(&mut self.incoming))
        } else {
            self.socket.receive(&mut self.incoming)
        };
        let now = self.clock();
        match result {
            Ok(_) => self.count_answers(now),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => _ = self.bear(error)?,
        }
        if now - self.last_expiry >= TICK.as_nanos() as u64 {
            self.last_expiry = now;
            self.tally.lost += self.slots.give_up_before(now.saturating_sub(self.timeout));
        }
        Ok(())
    }

    /// How long until the next query is due; nothing when an answer must come first.
    fn until_due(&self, now: u64) -> Option<Duration> {
        let pace = self.pace.as_ref()?;
        if self.slots.free() == 0 || self.is_over(now) {
            return None;
        }
        let due_at = self.began + pace.due_at(self.tally.sent);
        Some(Duration::from_nanos(due_at.saturating_sub(self.clock())).min(TICK))
    }

    fn count_answers(&mut self, now: u64) {
        for message in self.incoming.messages() {
            // A response has QR set (RFC 1035 section 4.1.1).
            let header = message.first_chunk::<HEADER>().filter(|header| header[2] & 0x80 != 0);
            let answered = header.and_then(|header| {
                let sent_at = self.slots.release(u16::from_be_bytes([header[0], header[1]]))?;
                Some(([header[2], header[3]], sent_at))
            });
            match answered {
                Some((flags, sent_at)) => {
                    self.tally.count_answer(flags, message.len() as u64, now.saturating_sub(sent_at));
                    self.tally.last_receive = Some(now);
                }
                None => self.tally.unexpected += 1,
            }
        }
    }
}
