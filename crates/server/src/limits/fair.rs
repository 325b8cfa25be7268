//! Equal shares of a worker's online share, by prefix, once clients want more of it than there is.
//!
//! Virtual time runs as fast as the online share divided by the number of prefixes that are being served, as in generalized
//! processor sharing (Parekh and Gallager, 1993). Each prefix has a bucket that fills with virtual time, so a prefix that wants
//! less than an equal share gets all that it wants, and the others divide the rest equally.
//!
//! Clients whose address is proven (TCP, TLS, a valid cookie) and all others are two classes, each with a table and a virtual time of
//! its own. While both want more than they get, each class has half of the online share; what one of them leaves goes to the other.
//! So datagrams with forged addresses, of however many prefixes, take no more than half, and no bucket of a proven prefix. A table
//! has a fixed size; prefixes beyond it share buckets.

use super::ClientPrefixes;
use super::buckets::{Buckets, Meter, TakeResult};
use std::net::IpAddr;

/// Bits of an address that make a prefix.
const IPV4_PREFIX: u8 = 24;
const IPV6_PREFIX: u8 = 48;
/// Bytes of the table of one class of one worker: 1,024 prefixes. The table is read as a whole each [`PERIOD`].
const TABLE_BYTES: usize = 8 << 10;
/// Nanoseconds of work that all prefixes of a class together may want at once before each has to wait for its share.
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
    networks: ClientPrefixes,
    /// Prefixes that datagrams claim, and proven ones.
    classes: [Class; 2],
    /// Nanoseconds of work that were not divided yet.
    pending: u64,
    /// When time was divided last, nanoseconds.
    divided: u64,
}

/// The prefixes that share a table and a virtual time.
#[derive(Debug)]
struct Class {
    key: [u8; 16],
    /// Allocated for the first signature or proof: most workers never need it.
    buckets: Option<Buckets>,
    /// Virtual time, nanoseconds.
    time: u64,
    /// Prefixes that were being served when time was divided last.
    active: u64,
}

impl FairShare {
    /// Shares of a worker that has served no client; `key` makes the places in the table unpredictable.
    pub(super) fn new(key: [u8; 16]) -> Self {
        let networks = ClientPrefixes::new(IPV4_PREFIX, IPV6_PREFIX);
        let class = || Class { key, buckets: None, time: 0, active: 1 };
        Self { networks, classes: [class(), class()], pending: 0, divided: 0 }
    }

    /// Divides `credit` nanoseconds of work, with those that were not divided yet, among the prefixes that are being served:
    /// those whose work the virtual time has not paid for. Waits until there are `enough`, and until [`PERIOD`] has passed.
    #[inline]
    pub(super) fn divide(&mut self, now_ns: u64, credit: u64, enough: u64) {
        self.pending += credit;
        if self.pending >= enough && now_ns.saturating_sub(self.divided) >= PERIOD {
            self.divided = now_ns;
            let pending = std::mem::take(&mut self.pending);
            let [claimed, proven] = &mut self.classes;
            let left = proven.divide(pending - pending / 2);
            let left = claimed.divide(pending / 2 + left);
            proven.divide(left);
        }
    }

    /// Takes `cost` nanoseconds from the share of the client's prefix; `false` where it has used up its share.
    pub(super) fn take(&mut self, client: IpAddr, is_proven: bool, cost: u64) -> bool {
        self.classes[usize::from(is_proven)].take(self.networks.number_of(client), cost)
    }
}

impl Class {
    /// Divides `pending` nanoseconds among the prefixes that are being served; returns what they do not need.
    fn divide(&mut self, mut pending: u64) -> u64 {
        if self.time >= RESTART_AT {
            (self.time, self.active, self.buckets) = (0, 1, None);
        }
        let Some(buckets) = &self.buckets else { return pending };
        for round in 1..=ROUNDS {
            let (active, first_full) = buckets.taken(self.time / 1000);
            self.active = active.max(1);
            if active == 0 {
                break;
            }
            let each = pending / active;
            let step = if round < ROUNDS { each.min(first_full * 1000) } else { each };
            self.time += step;
            pending -= step * active;
            if step == each {
                return 0;
            }
        }
        pending
    }

    fn take(&mut self, prefix: u64, cost: u64) -> bool {
        let micros = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX).max(1);
        let cost = micros(cost);
        let meter = Meter::of_micros(cost.max(micros(AT_ONCE / self.active)));
        let buckets = self.buckets.get_or_insert_with(|| Buckets::with_key(TABLE_BYTES, &self.key));
        buckets.take([prefix, 0], self.time / 1000, meter, cost, 0) == TakeResult::Yes
    }
}

#[cfg(test)]
mod tests;
