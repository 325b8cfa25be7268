//! What the server counts: by transport, type, response code, size and time, for the metrics.
//!
//! Each handler has [`ThreadStatistics`] of its own. It alone writes them, so that counting takes plain loads and stores
//! and no locked instruction; who reads them sees each number as it was a moment ago. [`Statistics::sum`] adds up all
//! threads by transport.

mod cells;
mod log_throttle;
mod sum;
mod thread;
mod transfers;

pub use cells::{LATENCY_BOUNDS, Latencies, Sizes};
pub use log_throttle::KnownSender;
pub use sum::{StatisticsTotals, TransportTotals};
pub use thread::{CookieResult, DropReason, Observation, QueryFlags, ThreadStatistics, TsigResult};
pub use transfers::{Direction, NotifyCount, TransferCounters, TransferKind, TransferResult, TransferTotals};

use log_throttle::LogThrottle;
use std::sync::{Arc, Mutex, PoisonError};
use thread::Counters;

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportKind {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP (RFC 7858).
    Tls,
}

impl TransportKind {
    /// All of them, in the order in which [`StatisticsTotals::carriers`] has them.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Tls];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}

/// The counters of all threads of a server.
#[derive(Debug, Default)]
pub struct Statistics {
    threads: Mutex<Vec<Arc<Counters>>>,
    transfers: TransferCounters,
    told: Arc<LogThrottle>,
}

impl Statistics {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Counters for one more thread that answers what `carrier` brings. They keep counting for the sums when the thread
    /// has ended.
    #[must_use]
    pub fn thread(&self, carrier: TransportKind) -> ThreadStatistics {
        let counters = Arc::new(Counters::new(carrier));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(Arc::clone(&counters));
        ThreadStatistics::new(counters, Arc::clone(&self.told))
    }

    /// Tells in the log of a client whose responses are limited no longer; to be called every second.
    pub fn log_unlimited(&self) {
        self.told.log_unlimited(crate::clock::seconds_now());
    }

    /// Transfers and NOTIFY, which are counted from any thread.
    #[must_use]
    pub const fn transfers(&self) -> &TransferCounters {
        &self.transfers
    }

    /// The numbers as they are now.
    #[must_use]
    pub fn sum(&self) -> StatisticsTotals {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sum = StatisticsTotals { transfers: self.transfers.read(), ..StatisticsTotals::default() };
        for counters in threads {
            sum.carriers[counters.carrier as usize].add(&counters);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
