//! Load generation: sends queries to a server over UDP, TCP or TLS and measures the responses.
//!
//! - Without a rate, the loop is closed. Each thread keeps a number of queries outstanding. It
//!   sends a new query for each query that is answered or lost, so that the server is fully loaded.
//! - With a rate, the loop is open. A schedule determines the send time of each query, independent
//!   of the server. Latency is measured from the scheduled time.
//!
//! To cost less than the measured server, the generator sends and receives in batches, and reads
//! only the header of a response (RFC 1035 §4.1.1).
//!
//! A thread is a [`Worker`](worker::Worker): a [`Pacer`](pacer::Pacer), which decides when to send
//! and what responses count as, and the sockets of one transport.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::tls::ClientTls;
use nonesuch_net::{ClientError, NetError, Transport};
use nonesuch_proto::Name;

use crate::process;

mod connections;
mod follow;
mod frame;
mod framing;
mod histogram;
mod inspector;
mod order;
mod pacer;
mod progress;
mod queries;
mod ramp;
mod report;
mod schedule;
mod slots;
mod sources;
mod tally;
mod udp;
mod validation;
mod worker;

pub use progress::Progress;
pub use queries::{QueryList, QueryListError, SkipReason, SkippedLine};
pub use ramp::{Ramp, RampOptions, RampStep, ramp};
pub use report::{Latency, LoadReport};
pub use schedule::{Arrivals, ArrivalsError};
pub use sources::{Sources, SourcesError};
pub use validation::{ValidationCounts, ValidationOptions, validate_samples};

use progress::Reporter;
use tally::Tally;
use worker::Worker;

/// Maximum number of outstanding queries of one socket.
pub const OUTSTANDING_MAX: usize = slots::SLOTS_MAX;
/// Maximum rate, in queries per second.
const RATE_MAX: f64 = 1e7;
/// Minimum length of an interval of [`run_with_progress`].
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Maximum number of sampled responses. With the maximum size of a response, they take 650 MB.
const SAMPLES_MAX: usize = 10_000;
/// Maximum octets of all EDNS options together.
const EDNS_OPTIONS_MAX: usize = 512;

/// Options of a load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Address of the server.
    pub server: SocketAddr,
    /// The queries, in the order of sending; after the last one, the list starts again. With `n`
    /// threads, each thread sends every `n`-th query. A closed loop sorts each group of 1024
    /// queries by length.
    pub queries: Arc<QueryList>,
    /// Exponent of Zipf's law, with which the queries are drawn from the list: the query at
    /// position `n`, from 1, has the weight `n^-zipf`. `seed` determines the queries. After at
    /// least 2^20 queries, the load repeats them. `None`: the queries are sent in the order of the
    /// list.
    pub zipf: Option<f64>,
    /// Duration of the warm-up, which the report does not count.
    pub warm_up: Duration,
    /// Duration of the load after the warm-up, in seconds.
    pub seconds: f64,
    /// Maximum number of outstanding queries of all threads together.
    pub outstanding: usize,
    /// Number of threads.
    pub threads: usize,
    /// Number of sockets of each thread. A server that distributes clients to its workers by
    /// address and port (`SO_REUSEPORT`) sees each socket as a client. For a server with several
    /// workers, use several times as many sockets as workers.
    pub sockets: usize,
    /// Transport of the queries. With TCP and TLS, the queries are pipelined (RFC 7766 §6.2.1.1).
    pub transport: Transport,
    /// TLS settings; required with [`Transport::Tls`].
    pub tls: Option<ClientTls>,
    /// Number of connections of each thread, with TCP, TLS or `follow_truncated`. They are opened
    /// when their first queries are due.
    pub connections: usize,
    /// Number of queries on a connection, after which it is closed and the next one opened; 0: no
    /// limit. The latency of the first query of a connection includes opening the connection.
    pub queries_per_connection: u64,
    /// Whether to repeat a query over TCP after a truncated response over UDP. The latency of the
    /// query ends with the response over TCP.
    pub follow_truncated: bool,
    /// Source addresses of the sockets: the sockets are distributed evenly over this prefix. By
    /// default the system selects the address.
    pub sources: Option<Sources>,
    /// Whether to set the DO flag (DNSSEC OK, RFC 3225).
    pub dnssec_ok: bool,
    /// Whether to set the CO flag (Compact Answers OK, RFC 9824 §5.1).
    pub compact_ok: bool,
    /// Whether to set the CD flag (Checking Disabled, RFC 4035 §3.2.2).
    pub checking_disabled: bool,
    /// Whether to request the identifier of the name server (RFC 5001), which the report counts.
    pub nsid: bool,
    /// Whether to send a cookie (RFC 7873): the client cookie of the socket or connection, and the
    /// last server cookie that it received.
    pub cookies: bool,
    /// Number of responses, selected at random with `seed`, that the report contains as samples.
    /// Truncated responses that are followed are not selected.
    pub samples: usize,
    /// UDP payload size in the queries (RFC 6891 §6.2.3), in octets; 0 sends queries without EDNS.
    pub edns_size: u16,
    /// EDNS options: code and value.
    pub edns_options: Vec<(u16, Vec<u8>)>,
    /// Whether to add a different random label at the start of each name, so that no cache has a
    /// response.
    pub random_prefix: bool,
    /// Whether to add a random label of six characters at the start of each name: the queries for
    /// names that do not exist in the evaluation of NSEC5 (ePrint 2017/099 §7).
    pub random_label: bool,
    /// Whether the random labels depend only on `seed`. Otherwise, each load has other labels: a
    /// cache of the server has responses of earlier loads with the same labels.
    pub repeatable: bool,
    /// Rate of an open loop, in queries per second of all threads together; `None` selects a closed
    /// loop.
    pub rate: Option<f64>,
    /// Distribution of the send times in an open loop.
    pub arrivals: Arrivals,
    /// Seed of random send times and labels.
    pub seed: u64,
    /// Whether a thread of an open loop may poll instead of sleeping: if the next query is due
    /// within 120 µs, or while it waits for responses. A sleeping thread wakes up late, and then
    /// sends or receives late.
    pub spin: bool,
    /// Time after sending until a query counts as lost.
    pub timeout: Duration,
    /// Maximum number of queries after the warm-up; the load ends earlier if its duration is over.
    /// `None`: only the duration limits the load.
    pub limit: Option<u64>,
    /// Process ID of the server, if it runs on this machine, to measure its CPU time and memory.
    /// `None`: they are not measured.
    pub server_pid: Option<u32>,
    /// CPUs to which the threads are bound: thread `i` runs on `cpus[i % cpus.len()]`. `None` or an
    /// empty list: the threads are not bound.
    pub cpus: Option<Vec<usize>>,
}

impl LoadOptions {
    /// Creates options with default values: ten seconds, one thread, 128 outstanding queries, EDNS
    /// with 1232 octets, DO set.
    #[must_use]
    pub fn new(server: SocketAddr, queries: Arc<QueryList>) -> Self {
        Self {
            server,
            queries,
            zipf: None,
            warm_up: Duration::ZERO,
            seconds: 10.0,
            // With the usual default size (208 KiB), the receive buffer of a server's socket holds
            // about 200 queries.
            outstanding: 128,
            threads: 1,
            sockets: 1,
            transport: Transport::Udp,
            tls: None,
            connections: 1,
            queries_per_connection: 0,
            follow_truncated: false,
            sources: None,
            dnssec_ok: true,
            compact_ok: false,
            checking_disabled: false,
            nsid: false,
            cookies: false,
            samples: 0,
            edns_size: 1232,
            edns_options: Vec::new(),
            random_prefix: false,
            random_label: false,
            repeatable: false,
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

    /// Returns the number of sockets or connections of each thread.
    const fn sockets_per_thread(&self) -> usize {
        if matches!(self.transport, Transport::Udp) { self.sockets } else { self.connections }
    }

    fn check(&self) -> Result<(), LoadError> {
        let hour = Duration::from_secs(3600);
        let per_thread = self.sockets_per_thread();
        let sockets = self.threads.saturating_mul(per_thread);
        // The first socket of the first thread gets the largest share.
        let share = self.outstanding.div_ceil(self.threads.max(1)).div_ceil(per_thread.max(1));
        let is_full = self.outstanding >= sockets && share <= OUTSTANDING_MAX;
        let has_tls = self.transport != Transport::Tls || self.tls.is_some();
        let options: usize = self.edns_options.iter().map(|(_, value)| 4 + value.len()).sum();
        let has_edns = self.edns_size > 0;
        // Whether the value is valid, the option of `nonesuch load`, and the permitted values.
        let rules = [
            (!self.queries.is_empty(), "--queries", "at least one query"),
            (self.threads > 0, "--threads", "1 or more"),
            ((1..=4096).contains(&self.sockets), "--sockets", "1 to 4096"),
            ((1..=4096).contains(&self.connections), "--connections", "1 to 4096"),
            (has_tls, "--tls", "given with TLS settings"),
            (is_full, "--outstanding", "1 to 16384 for each socket or connection of each thread"),
            (
                self.sources.is_none_or(|sources| sources.fits(self.server.ip())),
                "--source",
                "of the same family as the server's address",
            ),
            (self.samples <= SAMPLES_MAX, "--validate", "at most 10000"),
            (self.zipf.is_none_or(|zipf| (0.0..=10.0).contains(&zipf)), "--zipf", "0 to 10"),
            (!(self.random_prefix && self.random_label), "--random-label", "used without --random-prefix"),
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
                "greater than 0 with DO or CO, which need EDNS",
            ),
            (has_edns || !(self.nsid || self.cookies), "--edns-size", "greater than 0 with NSID or cookies"),
            (
                !self.follow_truncated || self.transport == Transport::Udp,
                "--follow-truncated",
                "used with UDP only",
            ),
            (
                options == 0 || (has_edns && options <= EDNS_OPTIONS_MAX),
                "--edns-option",
                "at most 512 octets in total, and empty without EDNS",
            ),
            (
                !(self.random_prefix || self.random_label)
                    || self.queries.longest_name() + frame::PREFIX <= 255,
                if self.random_label { "--random-label" } else { "--random-prefix" },
                "off, unless all names of the query list have at most 242 octets",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, option, wanted)) => Err(LoadError::Misconfigured { option, wanted }),
            None => Ok(()),
        }
    }
}

/// Reasons why a load fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum LoadError {
    #[error("the option {option} must be {wanted}")]
    Misconfigured { option: &'static str, wanted: &'static str },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("no server listens on {transport} address {server}: start the server, or correct the address")]
    NotListening { server: SocketAddr, transport: Transport },
    #[error(
        "--server-pid {pid}: no such process on this machine: set the process ID of the server, or omit the option"
    )]
    NoProcess { pid: u32 },
    #[error("cannot exchange datagrams with {server}: {source}")]
    Exchange { server: SocketAddr, source: io::Error },
    #[error("cannot start a thread: {source}; increase the limit on threads, or use fewer threads")]
    Start { source: io::Error },
    #[error(
        "cannot validate: {server} has no DNSKEY RRset of {zone} that an anchor proves: {reason}; compare the anchor file with the zone"
    )]
    Untrusted { zone: Name, server: SocketAddr, reason: String },
    #[error("a thread of the load generator panicked: this is a bug in nonesuch, please report it")]
    Panicked,
}

/// Runs a load. It ends when the duration is over or the limit is reached, and every query is
/// answered or lost.
///
/// # Errors
/// Fails if an option is invalid, the process of the server does not exist, a socket or thread
/// cannot be created or bound to its CPU, or the first exchange with the server fails, for example
/// because nothing listens on its address. Lost queries are not an error.
pub fn run(options: &LoadOptions) -> Result<LoadReport, LoadError> {
    run_in_intervals(options, None)
}

/// As [`run`], and calls `report` for each complete `interval` after the warm-up, which must be at
/// least 0.1 s. Lost queries are counted in the interval in which their timeout ends.
///
/// # Errors
/// The errors of [`run`].
pub fn run_with_progress(
    options: &LoadOptions,
    interval: Duration,
    mut report: impl FnMut(&Progress),
) -> Result<LoadReport, LoadError> {
    if interval < INTERVAL_MIN {
        return Err(LoadError::Misconfigured { option: "--interval", wanted: "0, or at least 0.1 s" });
    }
    run_in_intervals(options, Some((interval, &mut report)))
}

/// Length of the intervals, and the function that is called after each of them.
type Intervals<'p> = (Duration, &'p mut dyn FnMut(&Progress));

fn run_in_intervals(
    options: &LoadOptions,
    progress: Option<Intervals<'_>>,
) -> Result<LoadReport, LoadError> {
    options.check()?;
    if let Some(pid) = options.server_pid.filter(|pid| process::cpu_time(*pid).is_none()) {
        return Err(LoadError::NoProcess { pid });
    }
    let origin = Instant::now();
    let order = order::order(options);
    let (sender, receiver) = channel();
    let interval = progress.as_ref().map(|(interval, _)| *interval);
    let start = |thread| {
        let mut worker = Worker::new(options, order.as_deref(), thread, origin)?;
        worker.reporter = interval.map(|interval| Reporter::new(sender.clone(), interval));
        Ok(worker)
    };
    let workers = (0..options.threads).map(start).collect::<Result<Vec<_>, NetError>>()?;
    // The threads have the only senders, so that the receiver ends with them.
    drop(sender);
    let server_cpu = || options.server_pid.and_then(process::cpu_time);
    let early = server_cpu();
    let (tally, before) = run_workers(workers, || {
        let before = if options.warm_up.is_zero() {
            early
        } else {
            thread::sleep(options.warm_up);
            server_cpu()
        };
        if let Some((interval, report)) = progress {
            progress::receive(&receiver, options.threads, interval, report);
        }
        before
    })?;
    // Between the two measurements, the server only handles the load. Waiting for lost queries
    // costs it no CPU time.
    let spent = before.zip(server_cpu()).map(|(before, after)| after.since(before));
    Ok(report::report(options, &tally, spent))
}

/// Runs the threads until they end. Calls `meanwhile` after the start of the threads.
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
mod stream_tests;
#[cfg(test)]
mod tests;
