//! Load: queries sent to a server over UDP as fast as it answers, or at a fixed rate, and what came of them.
//!
//! The loop is closed: each thread keeps a number of queries outstanding on a connected socket and sends a new
//! one for each that is answered or given up. Queries and answers move in batches, and of an answer only the
//! header is read (RFC 1035 section 4.1.1), so that the generator costs less than the server that it measures.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::NetError;
use serde::Serialize;

use crate::process::{self, CpuTime};

mod histogram;
mod queries;
mod slots;
mod worker;

pub use queries::{QueryList, QueryListError, SkipReason, SkippedLine};

use worker::{Tally, Worker};

/// What to send, where to, and for how long.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The server.
    pub server: SocketAddr,
    /// The queries, sent in their order and again from the first when all are sent; with several threads each
    /// takes every so-many-th.
    pub queries: Arc<QueryList>,
    /// How long to send, seconds.
    pub seconds: f64,
    /// Queries outstanding at most, over all threads.
    pub outstanding: usize,
    /// Threads, each with its own socket. A server that spreads senders over its workers sees as many senders.
    pub threads: usize,
    /// Whether to ask for DNSSEC records (DO, RFC 3225).
    pub dnssec_ok: bool,
    /// Whether to take compact denials with their own response code (CO, RFC 9824 section 5.1).
    pub compact_ok: bool,
    /// The UDP payload size that the queries tell (RFC 6891 section 6.2.3); 0 sends them without EDNS.
    pub edns_size: u16,
    /// Queries a second over all threads, evenly paced; without it as many as the server answers.
    pub rate: Option<f64>,
    /// When a query counts as lost.
    pub timeout: Duration,
    /// Stop after so many queries, if the time is not over before.
    pub limit: Option<u64>,
    /// The server's process on this machine, to measure what it spends.
    pub server_pid: Option<u32>,
    /// CPUs to pin threads to: thread `i` runs on `cpus[i % cpus.len()]`.
    pub cpus: Option<Vec<usize>>,
}

impl LoadOptions {
    /// Ten seconds from one thread with 256 outstanding queries, EDNS with 1232 octets, DO set.
    #[must_use]
    pub fn new(server: SocketAddr, queries: Arc<QueryList>) -> Self {
        Self {
            server,
            queries,
            seconds: 10.0,
            outstanding: 256,
            threads: 1,
            dnssec_ok: true,
            compact_ok: false,
            edns_size: 1232,
            rate: None,
            timeout: Duration::from_secs(1),
            limit: None,
            server_pid: None,
            cpus: None,
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        let wrong = |option, wanted| Err(LoadError::Misconfigured { option, wanted });
        if self.queries.is_empty() {
            return wrong("queries", "at least one query");
        }
        if self.threads == 0 {
            return wrong("threads", "1 or more");
        }
        if self.outstanding < self.threads || self.outstanding.div_ceil(self.threads) > slots::SLOTS_MAX {
            return wrong("outstanding", "1 to 16384 for each thread");
        }
        if !(self.seconds > 0.0 && self.seconds <= 1e9) {
            return wrong("seconds", "more than 0, at most 1000000000");
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return wrong("rate", "more than 0, at most 1000000000");
        }
        if self.timeout.is_zero() || self.timeout > Duration::from_secs(3600) {
            return wrong("timeout", "more than 0, at most an hour");
        }
        if self.limit == Some(0) {
            return wrong("limit", "1 or more");
        }
        if self.edns_size == 0 && (self.dnssec_ok || self.compact_ok) {
            return wrong("edns_size", "not 0 with DO or CO, which are part of EDNS");
        }
        Ok(())
    }
}

/// Why load could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// An option's value makes no sense.
    #[error("the option {option} must be {wanted}")]
    Misconfigured {
        /// The field of [`LoadOptions`].
        option: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// A socket or a thread's CPU.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The server's machine says that nobody listens.
    #[error("nobody listens on UDP address {server}: start the server, or correct the address")]
    NotListening {
        /// The address asked.
        server: SocketAddr,
    },
    /// Nothing can be sent or received.
    #[error("cannot exchange datagrams with {server}: {source}")]
    Exchange {
        /// The address asked.
        server: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {source}; raise the limit on threads or use fewer")]
    Start {
        /// What the system said.
        source: io::Error,
    },
    /// A thread ended by a panic.
    #[error("a thread that sends load ended by a panic: this is an error of the program, please report it")]
    Panicked,
}

/// Latencies in µs, from handing a batch of queries to the kernel to taking the answer from it. Percentiles are
/// at most 1 % too high.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// The shortest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// Half of the answers took no longer.
    pub p50: f64,
    /// Nine of ten answers took no longer.
    pub p90: f64,
    /// 99 of 100 answers took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// What came of the load. `sent` is `received` and `lost` together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadReport {
    /// Queries sent.
    pub sent: u64,
    /// Queries answered in time.
    pub received: u64,
    /// Queries not answered in time.
    pub lost: u64,
    /// Datagrams that answered no outstanding query: late, doubled, or no answers at all. They count nowhere else.
    pub unexpected: u64,
    /// Times that the system refused to send a query, or told that nobody listened, after answers had come.
    pub refused: u64,
    /// From the first query sent to the last answer received.
    pub seconds: f64,
    /// Answers a second.
    pub qps: f64,
    /// Answers by response code, as the header has it (without EDNS's upper bits).
    pub rcodes: BTreeMap<String, u64>,
    /// Answers with TC set.
    pub truncated: u64,
    /// Mean size of an answer, octets of DNS message.
    pub response_octets_mean: f64,
    /// Size of the largest answer, octets.
    pub response_octets_max: u64,
    /// Latencies; nothing without an answer.
    pub latency_us: Option<Latency>,
    /// CPU time of the server for each answer, µs.
    pub server_cpu_us_per_query: Option<f64>,
    /// The part of it in the program.
    pub server_user_us_per_query: Option<f64>,
    /// The part of it in the kernel.
    pub server_system_us_per_query: Option<f64>,
    /// The server's resident memory after the load, KiB.
    pub server_resident_kib: Option<u64>,
    /// The same with shared pages by their share, KiB.
    pub server_proportional_kib: Option<u64>,
}

/// Sends the load and waits for its end: until the time or the limit is over and every query is answered or lost.
///
/// # Errors
/// When an option makes no sense, the server cannot be reached, or nobody listens there. Lost queries are no error.
pub fn run(options: &LoadOptions) -> Result<LoadReport, LoadError> {
    options.check()?;
    let origin = Instant::now();
    let workers = (0..options.threads)
        .map(|thread| Worker::new(options, thread, origin))
        .collect::<Result<Vec<_>, _>>()?;
    let before = options.server_pid.and_then(process::cpu_time);
    let tally = run_workers(workers)?;
    let after = options.server_pid.and_then(process::cpu_time);
    // Between the two readings the server is idle but for the load; waiting for lost queries costs it nothing.
    let spent = before.zip(after).map(|(before, after)| after.since(before));
    Ok(report(options, &tally, spent))
}

fn run_workers(workers: Vec<Worker<'_>>) -> Result<Tally, LoadError> {
    thread::scope(|scope| {
        let threads = workers
            .into_iter()
            .map(|worker| {
                let builder = thread::Builder::new().name("load".to_owned());
                builder.spawn_scoped(scope, || worker.run()).map_err(|source| LoadError::Start { source })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut total = Tally::default();
        for thread in threads {
            total.add(&thread.join().map_err(|_| LoadError::Panicked)??);
        }
        Ok(total)
    })
}

fn report(options: &LoadOptions, tally: &Tally, spent: Option<CpuTime>) -> LoadReport {
    let received = tally.received();
    let seconds = tally.duration().as_secs_f64();
    let per_answer = |total: f64| if received == 0 { 0.0 } else { total / received as f64 };
    let cpu =
        |part: fn(CpuTime) -> u64| spent.filter(|_| received > 0).map(|spent| per_answer(part(spent) as f64));
    let memory = options.server_pid.and_then(process::memory);
    LoadReport {
        sent: tally.sent,
        received,
        lost: tally.lost,
        unexpected: tally.unexpected,
        refused: tally.refused,
        seconds,
        qps: if seconds > 0.0 { received as f64 / seconds } else { 0.0 },
        rcodes: tally.rcodes(),
        truncated: tally.truncated,
        response_octets_mean: per_answer(tally.octets as f64),
        response_octets_max: tally.octets_max,
        latency_us: tally.latency(),
        server_cpu_us_per_query: cpu(|time| time.user_us + time.system_us),
        server_user_us_per_query: cpu(|time| time.user_us),
        server_system_us_per_query: cpu(|time| time.system_us),
        server_resident_kib: memory.map(|memory| memory.resident_kib),
        server_proportional_kib: memory.and_then(|memory| memory.proportional_kib),
    }
}

#[cfg(test)]
mod tests;
