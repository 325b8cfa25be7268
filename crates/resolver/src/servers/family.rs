//! Whether IPv4 or IPv6 as a whole seems to be unreachable.
//!
//! A host without IPv6 has either no route, and sending fails at once, or a route that leads
//! nowhere, and servers are silent. A family is suspected
//! - after several failed sends without a response over the family in between, or
//! - after silence of servers in several networks that never answered, without a response over the
//!   family in between (as Knot Resolver detects broken IPv6, `lib/selection.c`).
//!
//! Anyone can delegate a zone to addresses that are unreachable or silent. So a suspected family is
//! not excluded: its servers are selected if no other server is left, and any response over it ends
//! the suspicion.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Number of failed sends after which a family is suspected.
const FAILED_SENDS: u32 = 4;
/// Number of networks with silent servers after which a family is suspected.
const SILENT_NETWORKS: u32 = 6;
/// Milliseconds of the first suspicion. Each following one is twice as long.
const SUSPICION_MS: u64 = 2000;
/// Maximum number of times that this time is doubled: the longest suspicion takes 64 s.
const DOUBLINGS_MAX: u32 = 5;

/// The state of one family.
#[derive(Default)]
pub(super) struct Family {
    /// Failed sends since the last response.
    failed_sends: AtomicU32,
    /// Networks of servers that were silent since the last response: a bit for each hash.
    silent_networks: AtomicU64,
    /// Suspicions since the last response.
    suspicions: AtomicU32,
    /// Time in milliseconds until which the family is suspected.
    suspected_until: AtomicU64,
}

impl Family {
    /// Whether servers of the other family are preferred at present.
    pub(super) fn is_suspected(&self, now: u64) -> bool {
        now < self.suspected_until.load(Relaxed)
    }

    /// Records a response. The counters change rarely, so workers only read the shared memory.
    pub(super) fn record_response(&self) {
        if self.failed_sends.load(Relaxed) != 0 {
            self.failed_sends.store(0, Relaxed);
        }
        if self.silent_networks.load(Relaxed) != 0 {
            self.silent_networks.store(0, Relaxed);
        }
        if self.suspicions.load(Relaxed) != 0 {
            self.suspicions.store(0, Relaxed);
            self.suspected_until.store(0, Relaxed);
        }
    }

    /// Records that a query could not be sent because there is no route.
    pub(super) fn record_failed_send(&self, now: u64) {
        // The counter cannot wrap around in practice; if it did, suspicion would only start later.
        if self.failed_sends.fetch_add(1, Relaxed) + 1 >= FAILED_SENDS {
            self.suspect(now);
        }
    }

    /// Records a timeout of a server that never answered. `network`: a hash of its network.
    pub(super) fn record_silence(&self, network: u64, now: u64) {
        let bit = 1 << (network % 64);
        let networks = self.silent_networks.fetch_or(bit, Relaxed) | bit;
        if networks.count_ones() >= SILENT_NETWORKS {
            self.suspect(now);
        }
    }

    /// Starts a suspicion, unless one lasts. After it, the next query over the family is a probe: one
    /// more failure starts the next suspicion.
    fn suspect(&self, now: u64) {
        let until = self.suspected_until.load(Relaxed);
        if now < until {
            return;
        }
        let doublings = self.suspicions.load(Relaxed).min(DOUBLINGS_MAX);
        let next = now.saturating_add(SUSPICION_MS << doublings);
        // Only one of several workers starts it.
        if self.suspected_until.compare_exchange(until, next, Relaxed, Relaxed).is_ok() {
            self.suspicions.store(doublings + 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sends_without_a_response_in_between_raise_suspicion() {
        let family = Family::default();
        (0..3).for_each(|_| family.record_failed_send(10));
        family.record_response();
        (0..3).for_each(|_| family.record_failed_send(10));
        assert!(!family.is_suspected(10));
        family.record_failed_send(10);
        assert!(family.is_suspected(10) && family.is_suspected(2009) && !family.is_suspected(2010));
    }

    #[test]
    fn a_family_that_stays_unreachable_is_probed_less_and_less() {
        let family = Family::default();
        let (mut now, mut durations) = (0, Vec::new());
        (0..3).for_each(|_| family.record_failed_send(0));
        for _ in 0..8 {
            family.record_failed_send(now);
            // Failures while the suspicion lasts do not extend it.
            (0..100).for_each(|_| family.record_failed_send(now + 1));
            let end = (now..).find(|time| !family.is_suspected(*time)).expect("an end");
            durations.push(end - now);
            now = end;
        }
        assert_eq!(durations, [2000, 4000, 8000, 16_000, 32_000, 64_000, 64_000, 64_000]);
        family.record_response();
        assert!(!family.is_suspected(now));
        family.record_failed_send(now);
        assert!(!family.is_suspected(now));
    }

    #[test]
    fn silence_counts_networks_not_servers() {
        let family = Family::default();
        (0..100).for_each(|_| family.record_silence(3, 0));
        (0..5).for_each(|network| family.record_silence(network, 0));
        assert!(!family.is_suspected(0));
        family.record_silence(5, 0);
        assert!(family.is_suspected(0));
        family.record_response();
        assert!(!family.is_suspected(0));
    }
}
