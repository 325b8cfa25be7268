//! Divides a worker's online share equally among prefixes when clients want more than the share.
//!
//! The scheme is generalized processor sharing (Parekh and Gallager, 1993). The speed of virtual
//! time is the online share divided by the number of active prefixes. Each prefix has a bucket that
//! fills with virtual time. A prefix that wants less than an equal part gets all that it wants, and
//! the other prefixes divide the rest equally.
//!
//! There are two classes: clients with a proven address (TCP, TLS, a valid cookie), and all other
//! clients. Each class has its own table and its own virtual time. While both classes want more
//! than they get, each gets half of the online share. The time that one class does not use goes to
//! the other. So datagrams with forged addresses get at most half of the share, however many
//! prefixes they claim, and they never use a bucket of a proven prefix. A table has a fixed size;
//! if it is full, prefixes share buckets.

use super::ClientPrefixes;
use super::buckets::{Buckets, Meter, TakeResult};
use std::net::IpAddr;

/// Length of an IPv4 prefix in bits.
const IPV4_PREFIX: u8 = 24;
/// Length of an IPv6 prefix in bits.
const IPV6_PREFIX: u8 = 48;
/// Bytes of the table of one class of one worker: 1,024 prefixes. The whole table is read once in
/// each [`DIVISION_INTERVAL_NS`].
const TABLE_BYTES: usize = 8 << 10;
/// Burst of all prefixes of a class together, in nanoseconds of work. Beyond it, each prefix waits
/// for its part of the share.
const BURST_NS: u64 = 5_000_000;
/// Minimum interval between two divisions of time among the prefixes, in nanoseconds.
const DIVISION_INTERVAL_NS: u64 = 1_000_000;
/// Virtual time in nanoseconds at which the table is cleared: half of the range of a table word.
/// Beyond it, words that were never written would count as debt.
const RESTART_AT_NS: u64 = (1 << 39) * 1000;
/// Maximum number of rounds in one division of time. After each round in which a bucket became
/// full, the active prefixes are counted again.
const ROUNDS_MAX: u32 = 8;

/// The state of one worker.
#[derive(Debug)]
pub(super) struct FairShare {
    prefix_lengths: ClientPrefixes,
    /// Prefixes with an unproven address, then prefixes with a proven address.
    classes: [Class; 2],
    /// Nanoseconds of work that are granted and not divided among the prefixes yet.
    pending: u64,
    /// Time of the last division, in nanoseconds.
    last_division: u64,
}

/// Prefixes that share a table and a virtual time.
#[derive(Debug)]
struct Class {
    key: [u8; 16],
    /// Allocated for the first signature or proof, because most workers never need it.
    buckets: Option<Buckets>,
    /// Virtual time in nanoseconds.
    virtual_time: u64,
    /// Number of active prefixes at the last division.
    active_prefixes: u64,
}

impl FairShare {
    /// Returns the state of a worker that has served no client. `key` makes the positions in the
    /// table unpredictable.
    pub(super) fn new(key: [u8; 16]) -> Self {
        let prefix_lengths = ClientPrefixes::new(IPV4_PREFIX, IPV6_PREFIX);
        let class = || Class { key, buckets: None, virtual_time: 0, active_prefixes: 1 };
        Self { prefix_lengths, classes: [class(), class()], pending: 0, last_division: 0 }
    }

    /// Divides `credit` nanoseconds of work, plus the nanoseconds that are not divided yet, among
    /// the active prefixes. A prefix is active while virtual time has not paid for its work. The
    /// division waits until at least `min_pending` nanoseconds are pending and
    /// [`DIVISION_INTERVAL_NS`] has passed.
    #[inline]
    pub(super) fn divide(&mut self, now_ns: u64, credit: u64, min_pending: u64) {
        self.pending += credit;
        if self.pending >= min_pending && now_ns.saturating_sub(self.last_division) >= DIVISION_INTERVAL_NS {
            self.last_division = now_ns;
            let pending = std::mem::take(&mut self.pending);
            let [unproven, proven] = &mut self.classes;
            let unused = proven.divide(pending - pending / 2);
            let unused = unproven.divide(pending / 2 + unused);
            proven.divide(unused);
        }
    }

    /// Takes `cost` nanoseconds from the part of the client's prefix. Returns `false` if the prefix
    /// has used up its part.
    pub(super) fn take(&mut self, client: IpAddr, is_proven: bool, cost: u64) -> bool {
        self.classes[usize::from(is_proven)].take(self.prefix_lengths.prefix_of(client), cost)
    }
}

impl Class {
    /// Divides `pending` nanoseconds among the active prefixes, and returns the nanoseconds that
    /// they do not need.
    fn divide(&mut self, mut pending: u64) -> u64 {
        if self.virtual_time >= RESTART_AT_NS {
            (self.virtual_time, self.active_prefixes, self.buckets) = (0, 1, None);
        }
        let Some(buckets) = &self.buckets else { return pending };
        for round in 1..=ROUNDS_MAX {
            let (active_prefixes, first_full) = buckets.count_not_full(self.virtual_time / 1000);
            self.active_prefixes = active_prefixes.max(1);
            if active_prefixes == 0 {
                break;
            }
            let each = pending / active_prefixes;
            let step = if round < ROUNDS_MAX { each.min(first_full * 1000) } else { each };
            self.virtual_time += step;
            pending -= step * active_prefixes;
            if step == each {
                return 0;
            }
        }
        pending
    }

    /// Takes `cost` nanoseconds from the bucket of the prefix. Returns `false` if it has too
    /// little.
    fn take(&mut self, prefix: u64, cost: u64) -> bool {
        let micros = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX).max(1);
        let cost = micros(cost);
        let meter = Meter::of_micros(cost.max(micros(BURST_NS / self.active_prefixes)));
        let buckets = self.buckets.get_or_insert_with(|| Buckets::with_key(TABLE_BYTES, &self.key));
        buckets.take([prefix, 0], self.virtual_time / 1000, meter, cost, 0) == TakeResult::Granted
    }
}

#[cfg(test)]
mod tests;
