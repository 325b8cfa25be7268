//! What the server counts: by transport, type, response code, size and time, for the metrics.
//!
//! Each handler has [`ThreadStatistics`] of its own. It alone writes them, so that counting takes plain loads and stores
//! and no locked instruction; who reads them sees each number as it was a moment ago. [`Statistics::sum`] adds up all
//! threads by transport.

mod cells;
mod sum;
mod thread;
mod told;
mod transfers;

pub use cells::{LATENCY_BOUNDS, Latencies, Sizes};
pub use sum::{CarrierSum, Sum};
pub use thread::{Cookie, Dropped, Observation, Seen, ThreadStatistics, Tsig};
pub use told::KnownSender;
pub use transfers::{Direction, NotifyCount, TransferKind, TransferResult, TransferSum, Transfers};

use std::sync::{Arc, Mutex, PoisonError};
use thread::Counters;
use told::Told;

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP (RFC 7858).
    Tls,
}

impl Carrier {
    /// All of them, in the order in which [`Sum::carriers`] has them.
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
    transfers: Transfers,
    told: Arc<Told>,
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
    pub fn thread(&self, carrier: Carrier) -> ThreadStatistics {
        let counters = Arc::new(Counters::new(carrier));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(Arc::clone(&counters));
        ThreadStatistics::new(counters, Arc::clone(&self.told))
    }

    /// Tells in the log of a client whose responses are limited no longer; to be called every second.
    pub fn tell_unlimited(&self) {
        self.told.unlimited(crate::clock::seconds_now());
    }

    /// Transfers and NOTIFY, which are counted from any thread.
    #[must_use]
    pub const fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// The numbers as they are now.
    #[must_use]
    pub fn sum(&self) -> Sum {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sum = Sum { transfers: self.transfers.read(), ..Sum::default() };
        for counters in threads {
            sum.carriers[counters.carrier as usize].add(&counters);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
