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
//! Each thread runs a `Worker`. It has the sockets of one transport and a
//! `Pacer`, which decides when to send, and counts each response as received, late
//! or unexpected.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nonesuch_net::{ClientError, NetError, Transport};
use nonesuch_proto::Name;

use crate::process;

mod connection;
mod connections;
mod encoder;
mod histogram;
mod inspector;
mod length_prefix;
mod options;
mod order;
mod pacer;
mod progress;
mod queries;
mod ramp;
mod replay;
mod report;
mod schedule;
mod slots;
mod source_prefix;
mod tally;
mod tcp_retry;
mod udp;
mod usage;
mod validation;
mod worker;

pub(crate) use encoder::{LABEL_OCTETS, SHORT_LABEL_OCTETS};
pub use options::LoadOptions;
pub(crate) use order::SORT_GROUP;
pub use progress::Progress;
pub use queries::{QueryList, QueryListError, SkipReason, SkippedLine};
pub use ramp::{Ramp, RampOptions, RampStep, ramp};
pub use replay::{REPLAY_SOCKETS_DEFAULT, ReplayError, ReplayQueries, ReplaySpeed, ReplaySpeedError, replay};
pub use report::{Latency, LoadReport};
pub use schedule::{Arrivals, ArrivalsError};
pub use source_prefix::{SourcePrefix, SourcePrefixError};
pub(crate) use validation::is_trusted;
pub use validation::{ValidationCounts, ValidationOptions, validate_samples};

use progress::IntervalReporter;
use tally::Tally;
use usage::CpuClocks;
use worker::Worker;

/// Maximum number of outstanding queries of one socket.
pub const OUTSTANDING_MAX: usize = slots::SLOTS_MAX;
/// Maximum rate of an open loop, in queries per second.
const RATE_MAX: f64 = 1e7;
/// Minimum length of an interval of [`run_with_progress`].
const INTERVAL_MIN: Duration = Duration::from_millis(100);

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

fn run_in_intervals(options: &LoadOptions, progress: Option<Intervals<'_>>) -> Result<LoadReport, LoadError> {
    options.check()?;
    if let Some(pid) = options.server_pid.filter(|pid| process::cpu_time(*pid).is_none()) {
        return Err(LoadError::NoProcess { pid });
    }
    let origin = Instant::now();
    let order = order::send_order(options);
    let (sender, receiver) = channel();
    let interval = progress.as_ref().map(|(interval, _)| *interval);
    let start = |thread| {
        let mut worker = Worker::new(options, order.as_deref(), thread, origin)?;
        worker.reporter = interval.map(|interval| IntervalReporter::new(sender.clone(), interval));
        Ok(worker)
    };
    let workers = (0..options.threads).map(start).collect::<Result<Vec<_>, NetError>>()?;
    // The threads have the only senders, so that the receiver ends with them.
    drop(sender);
    let early = CpuClocks::read(options);
    let (tally, clocks) = run_workers(workers, || {
        let clocks = if options.warm_up.is_zero() {
            early
        } else {
            thread::sleep(options.warm_up);
            CpuClocks::read(options)
        };
        if let Some((interval, report)) = progress {
            progress::receive(&receiver, options.threads, interval, report);
        }
        clocks
    })?;
    // Between the two measurements, the server only handles the load. Waiting for lost queries
    // costs it no CPU time.
    Ok(report::build_report(options, &tally, &clocks.elapsed(), options.rate.is_some()))
}

/// Runs the threads until they end. Calls `meanwhile` after the start of the threads, and returns
/// its result with the sum of the counters.
fn run_workers<T>(workers: Vec<Worker<'_>>, meanwhile: impl FnOnce() -> T) -> Result<(Tally, T), LoadError> {
    thread::scope(|scope| {
        let threads = workers
            .into_iter()
            .map(|worker| {
                let builder = thread::Builder::new().name("load".to_owned());
                builder.spawn_scoped(scope, || worker.run()).map_err(|source| LoadError::Start { source })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let result = meanwhile();
        let mut total = Tally::default();
        for thread in threads {
            total.add(&thread.join().map_err(|_| LoadError::Panicked)??);
        }
        Ok((total, result))
    })
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
