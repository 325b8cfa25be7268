//! The counters of the server: messages by transport, type, response code, size and latency, for
//! the metrics.
//!
//! Each handler has its own [`ThreadStatistics`], and only this handler writes them. So counting
//! needs only plain loads and stores, and no locked instruction. A reader may see values that are
//! slightly old. [`Statistics::sum`] adds up the counters of all threads for each transport.

mod histograms;
mod log_throttle;
mod sum;
mod thread;
mod transfers;

pub use histograms::{LATENCY_BOUNDS_NS, Latencies, Sizes};
pub use log_throttle::KnownSender;
pub use sum::{StatisticsTotals, TransportTotals};
pub use thread::{CookieResult, DropReason, Observation, QueryFlags, ThreadStatistics, TsigResult};
pub use transfers::{Direction, NotifyCount, TransferCounters, TransferKind, TransferResult, TransferTotals};

use log_throttle::LogThrottle;
use nonesuch_net::Transport;
use std::sync::{Arc, Mutex, PoisonError};
use thread::Counters;

/// The counters of all threads of a server.
#[derive(Debug, Default)]
pub struct Statistics {
    threads: Mutex<Vec<Arc<Counters>>>,
    transfers: TransferCounters,
    log_throttle: Arc<LogThrottle>,
}

impl Statistics {
    /// Returns counters at zero.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns counters for one more thread that answers messages over `transport`. The sums still
    /// include the counters after the thread has ended.
    #[must_use]
    pub fn thread(&self, transport: Transport) -> ThreadStatistics {
        let counters = Arc::new(Counters::new(transport));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(Arc::clone(&counters));
        ThreadStatistics::new(counters, Arc::clone(&self.log_throttle))
    }

    /// Logs the end of rate limiting for one network, if there is such a network. The caller calls
    /// this every second.
    pub fn log_limiting_ended(&self) {
        self.log_throttle.log_limiting_ended(crate::clock::seconds_now());
    }

    /// The counters of transfers and NOTIFY, which any thread may use.
    #[must_use]
    pub const fn transfers(&self) -> &TransferCounters {
        &self.transfers
    }

    /// Returns the current totals.
    #[must_use]
    pub fn sum(&self) -> StatisticsTotals {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sum = StatisticsTotals { transfers: self.transfers.read(), ..StatisticsTotals::default() };
        for counters in threads {
            sum.transports[counters.transport as usize].add(&counters);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
