//! Equal shares of a worker's online share, by prefix, once clients want more of it than there is.
//!
//! Virtual time runs as fast as the online share divided by the number of prefixes that are being served, as in generalized
//! processor sharing (Parekh and Gallager, 1993). Each prefix has a bucket that fills with virtual time, so a prefix that wants
//! less than an equal share gets all that it wants, and the others divide the rest equally.
//!
//! A client whose address is proven (TCP, TLS, a valid cookie) has another bucket than datagrams that claim its prefix: forged
//! datagrams take nothing of its share. The table of buckets has a fixed size; prefixes beyond it share buckets.

use super::Networks;
use super::buckets::{Buckets, Meter, Taken};
use std::net::IpAddr;

/// Bits of an address that make a prefix.
const IPV4_PREFIX: u8 = 24;
const IPV6_PREFIX: u8 = 48;
/// Bytes of the table of one worker: 1,024 prefixes. The table is read as a whole each [`PERIOD`].
const TABLE_BYTES: usize = 8 << 10;
/// Nanoseconds of work that all prefixes together may want at once before each has to wait for its share.
const AT_ONCE: u64 = 5_000_000;
/// How often time is divided among the prefixes, nanoseconds.
const PERIOD: u64 = 1_000_000;
/// Virtual time, nanoseconds, at which the table begins again: half of what its words tell apart. Later, words that were never
/// written would look owed.
const RESTART_AT: u64 = (1 << 39) * 1000;
/// How many prefixes may have been served in full while time is divided; the others are counted once more then.
const ROUNDS: u32 = 8;

/// The shares of one worker.
#[derive(Debug)]
pub(super) struct FairShare {
    key: [u8; 16],
    networks: Networks,
    /// Made when the first signature or proof is wanted: most workers never need it.
    buckets: Option<Buckets>,
    /// Virtual time, nanoseconds.
    time: u64,
    /// Nanoseconds of work that were not divided yet.
    pending: u64,
    /// When time was divided last, nanoseconds.
    divided: u64,
    /// Prefixes that were being served then.
    active: u64,
}

impl FairShare {
    /// Shares of a worker that has served no client; `key` makes the places in the table unpredictable.
    pub(super) fn new(key: [u8; 16]) -> Self {
        let networks = Networks::new(IPV4_PREFIX, IPV6_PREFIX);
        Self { key, networks, buckets: None, time: 0, pending: 0, divided: 0, active: 1 }
    }

    /// Divides `credit` nanoseconds of work, with those that were not divided yet, among the prefixes that are being served:
    /// those whose work the virtual time has not paid for. Waits until there are `enough`, and until [`PERIOD`] has passed.
    #[inline]
    pub(super) fn divide(&mut self, now_ns: u64, credit: u64, enough: u64) {
        self.pending += credit;
        if self.pending >= enough && now_ns.saturating_sub(self.divided) >= PERIOD {
            self.divided = now_ns;
            let pending = std::mem::take(&mut self.pending);
            self.divide_among_active(pending);
        }
    }

    fn divide_among_active(&mut self, mut pending: u64) {
        if self.time >= RESTART_AT {
            (self.time, self.active, self.buckets) = (0, 1, None);
        }
        let Some(buckets) = &self.buckets else { return };
        for round in 1..=ROUNDS {
            let (active, first_full) = buckets.taken(self.time / 1000);
            self.active = active.max(1);
            let each = pending / self.active;
            let step = if round < ROUNDS && active > 0 { each.min(first_full * 1000) } else { each };
            self.time += step;
            pending -= step * self.active;
            if step == each {
                return;
            }
        }
    }

    /// Takes `cost` nanoseconds from the share of the client's prefix; `false` where it has used up its share.
    pub(super) fn take(&mut self, client: IpAddr, is_proven: bool, cost: u64) -> bool {
        let micros = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX).max(1);
        let cost = micros(cost);
        let meter = Meter::of_micros(cost.max(micros(AT_ONCE / self.active)));
        let key = [self.networks.number_of(client), u64::from(is_proven)];
        let buckets = self.buckets.get_or_insert_with(|| Buckets::with_key(TABLE_BYTES, &self.key));
        buckets.take(key, self.time / 1000, meter, cost, 0) == Taken::Yes
    }
}

#[cfg(test)]
mod tests;
