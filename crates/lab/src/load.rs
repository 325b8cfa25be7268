//! Load: queries sent to a server over UDP, and what came of them.
//!
//! Without a rate the loop is closed: each thread keeps a number of queries outstanding and sends a new one for each that
//! is answered or given up, so that the server has as much to do as it can. With a rate it is open: a schedule says when
//! each query is to be sent, whatever the server does, and latency is counted from then. Queries and answers move in
//! batches, and of an answer only the header is read (RFC 1035 section 4.1.1), so that the generator costs less than the
//! server that it measures.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::NetError;

use crate::process;

mod frame;
mod histogram;
mod queries;
mod report;
mod schedule;
mod slots;
mod sources;
mod tally;
mod worker;

pub use queries::{QueryList, QueryListError, SkipReason, SkippedLine};
pub use report::{Latency, LoadReport};
pub use schedule::{Arrivals, ArrivalsError};
pub use sources::{Sources, SourcesError};

use tally::Tally;
use worker::Worker;

/// Queries that one socket can have outstanding.
pub const OUTSTANDING_MAX: usize = slots::SLOTS_MAX;
/// The highest rate, queries a second.
const RATE_MAX: f64 = 1e7;
/// Queries that a closed loop orders by their length.
const ORDERED: usize = 1024;
/// Octets that the options of EDNS may take.
const EDNS_OPTIONS_MAX: usize = 512;

/// What to send, where to, and for how long.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The server.
    pub server: SocketAddr,
    /// The queries, sent in their order and again from the first when all are sent; with several threads each
    /// takes every so-many-th. In a closed loop each thousand of them are sent by length.
    pub queries: Arc<QueryList>,
    /// How long to send before anything counts.
    pub warm_up: Duration,
    /// How long to send then, seconds.
    pub seconds: f64,
    /// Queries outstanding at most, over all threads.
    pub outstanding: usize,
    /// Threads.
    pub threads: usize,
    /// Sockets of each thread. A server that spreads senders over its workers (`SO_REUSEPORT`) sees as many senders: with
    /// several workers, take several times as many sockets.
    pub sockets: usize,
    /// Addresses of this machine that the sockets are bound to, spread over all of them; by default what the system chooses.
    pub sources: Option<Sources>,
    /// Whether to ask for DNSSEC records (DO, RFC 3225).
    pub dnssec_ok: bool,
    /// Whether to take compact denials with their own response code (CO, RFC 9824 section 5.1).
    pub compact_ok: bool,
    /// The UDP payload size that the queries tell (RFC 6891 section 6.2.3); 0 sends them without EDNS.
    pub edns_size: u16,
    /// Options of EDNS: code and value.
    pub edns_options: Vec<(u16, Vec<u8>)>,
    /// Whether to put a random label before each name, another one each time: no cache knows the answer.
    pub random_prefix: bool,
    /// Queries a second over all threads, in an open loop; without it as many as the server answers, in a closed loop.
    pub rate: Option<f64>,
    /// How the queries of an open loop follow each other.
    pub arrivals: Arrivals,
    /// What random distances and labels are drawn from.
    pub seed: u64,
    /// Whether a thread of an open loop that waits for less than a tenth of a millisecond, or for answers, may keep its CPU
    /// busy: it then takes them when they come. Otherwise it sleeps, and is woken late.
    pub spin: bool,
    /// When a query counts as lost, from when it was sent.
    pub timeout: Duration,
    /// Stop after so many queries, if the time is not over before.
    pub limit: Option<u64>,
    /// The server's process on this machine, to measure what it spends.
    pub server_pid: Option<u32>,
    /// CPUs to pin threads to: thread `i` runs on `cpus[i % cpus.len()]`.
    pub cpus: Option<Vec<usize>>,
}

impl LoadOptions {
    /// Ten seconds from one thread with 128 outstanding queries, EDNS with 1232 octets, DO set.
    #[must_use]
    pub fn new(server: SocketAddr, queries: Arc<QueryList>) -> Self {
        Self {
            server,
            queries,
            warm_up: Duration::ZERO,
            seconds: 10.0,
            // A server's socket with the system's usual room (208 KiB) holds some 200 queries.
            outstanding: 128,
            threads: 1,
            sockets: 1,
            sources: None,
            dnssec_ok: true,
            compact_ok: false,
            edns_size: 1232,
            edns_options: Vec::new(),
            random_prefix: false,
            rate: None,
            arrivals: Arrivals::Even,
            seed: 1,
            spin: true,
            timeout: Duration::from_secs(1),
            limit: None,
            server_pid: None,
            cpus: None,
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        let hour = Duration::from_secs(3600);
        let sockets = self.threads.saturating_mul(self.sockets);
        // The first socket of the first thread has the largest share.
        let share = self.outstanding.div_ceil(self.threads.max(1)).div_ceil(self.sockets.max(1));
        let is_full = self.outstanding >= sockets && share <= OUTSTANDING_MAX;
        let options: usize = self.edns_options.iter().map(|(_, value)| 4 + value.len()).sum();
        let has_edns = self.edns_size > 0;
        // Whether an option makes sense, what `nonesuch load` calls it, and what it must be.
        let rules = [
            (!self.queries.is_empty(), "--queries", "at least one query"),
            (self.threads > 0, "--threads", "1 or more"),
            ((1..=4096).contains(&self.sockets), "--sockets", "1 to 4096"),
            (is_full, "--outstanding", "1 to 16384 for each socket of each thread"),
            (
                self.sources.is_none_or(|sources| sources.fits(self.server.ip())),
                "--source",
                "of the same family as the server's address",
            ),
            (self.warm_up <= hour, "--warm-up", "at most an hour"),
            (self.seconds > 0.0 && self.seconds <= 1e9, "--seconds", "more than 0, at most 1000000000"),
            (
                self.rate.is_none_or(|rate| rate > 0.0 && rate <= RATE_MAX),
                "--rate",
                "more than 0, at most 10000000",
            ),
            (!self.timeout.is_zero() && self.timeout <= hour, "--timeout", "more than 0, at most an hour"),
            (self.limit != Some(0), "--limit", "1 or more"),
            (
                has_edns || !(self.dnssec_ok || self.compact_ok),
                "--edns-size",
                "not 0 with DO or CO, which are part of EDNS",
            ),
            (
                options == 0 || (has_edns && options <= EDNS_OPTIONS_MAX),
                "--edns-option",
                "at most 512 octets together, and none without EDNS",
            ),
            (
                !self.random_prefix || self.queries.longest_name() + frame::PREFIX <= 255,
                "--random-prefix",
                "off, or the names of the query list shorter: 242 octets at most",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, option, wanted)) => Err(LoadError::Misconfigured { option, wanted }),
            None => Ok(()),
        }
    }
}

/// Why load could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum LoadError {
    #[error("the option {option} must be {wanted}")]
    Misconfigured { option: &'static str, wanted: &'static str },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("nobody listens on UDP address {server}: start the server, or correct the address")]
    NotListening { server: SocketAddr },
    #[error(
        "--server-pid {pid}: no such process on this machine: give the server's, or leave the option out"
    )]
    NoProcess { pid: u32 },
    #[error("cannot exchange datagrams with {server}: {source}")]
    Exchange { server: SocketAddr, source: io::Error },
    #[error("cannot start a thread: {source}; raise the limit on threads or use fewer")]
    Start { source: io::Error },
    #[error("a thread that sends load ended by a panic: this is an error of the program, please report it")]
    Panicked,
}

/// Sends the load and waits for its end: until the time or the limit is over and every query is answered or lost.
///
/// # Errors
/// When an option makes no sense, the server cannot be reached, or nobody listens there. Lost queries are no error.
pub fn run(options: &LoadOptions) -> Result<LoadReport, LoadError> {
    options.check()?;
    if let Some(pid) = options.server_pid.filter(|pid| process::cpu_time(*pid).is_none()) {
        return Err(LoadError::NoProcess { pid });
    }
    let origin = Instant::now();
    let order = order_by_length(options);
    let workers = (0..options.threads)
        .map(|thread| Worker::new(options, order.as_deref(), thread, origin))
        .collect::<Result<Vec<_>, _>>()?;
    let server_cpu = || options.server_pid.and_then(process::cpu_time);
    let early = server_cpu();
    let (tally, before) = run_workers(workers, || {
        if options.warm_up.is_zero() {
            return early;
        }
        thread::sleep(options.warm_up);
        server_cpu()
    })?;
    // Between the two readings the server is idle but for the load; waiting for lost queries costs it nothing.
    let spent = before.zip(server_cpu()).map(|(before, after)| after.since(before));
    Ok(report::report(options, &tally, spent))
}

/// The order in which a closed loop sends: each [`ORDERED`] queries by their length, since neighbours of one length go
/// through the kernel together (UDP_SEGMENT). Whoever sends as fast as it can sends in bursts; their inner order is nobody's.
/// An open loop, where each query has its time, keeps the list's.
fn order_by_length(options: &LoadOptions) -> Option<Vec<u32>> {
    let count = u32::try_from(options.queries.len()).ok().filter(|_| options.rate.is_none())?;
    let mut order: Vec<u32> = (0..count).collect();
    let length = |number: &u32| options.queries.question(*number as usize).map_or(0, <[u8]>::len);
    order.chunks_mut(ORDERED).for_each(|chunk| chunk.sort_by_key(length));
    Some(order)
}

/// Runs the threads to their end; does `meanwhile` as soon as they are started.
fn run_workers<T>(workers: Vec<Worker<'_>>, meanwhile: impl FnOnce() -> T) -> Result<(Tally, T), LoadError> {
    thread::scope(|scope| {
        let threads = workers
            .into_iter()
            .map(|worker| {
                let builder = thread::Builder::new().name("load".to_owned());
                builder.spawn_scoped(scope, || worker.run()).map_err(|source| LoadError::Start { source })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let found = meanwhile();
        let mut total = Tally::default();
        for thread in threads {
            total.add(&thread.join().map_err(|_| LoadError::Panicked)??);
        }
        Ok((total, found))
    })
}

#[cfg(test)]
mod tests;
