//! The secondaries that the server notifies: results of NOTIFY, the last transfer and the last
//! query.
//!
//! Only servers that zones notify are recorded, so the configuration bounds the size. The addresses
//! of datagrams can be forged. The times and serials are only for display, and no decision depends
//! on them.

use nonesuch_proto::Name;
use nonesuch_proto::message::Rcode;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Maximum number of recorded pairs of a zone and a secondary.
const ENTRIES_MAX: usize = 65_536;

/// The result of the last NOTIFY to a secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyStatus {
    /// No response yet.
    Waiting,
    /// The secondary acknowledged it.
    Acknowledged,
    /// The secondary responded with this error.
    Rejected(Rcode),
    /// No response after all attempts.
    Unanswered,
}

impl fmt::Display for NotifyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Acknowledged => f.write_str("acknowledged"),
            Self::Rejected(rcode) => write!(f, "refused with {rcode}"),
            Self::Unanswered => f.write_str("no answer"),
        }
    }
}

/// The last NOTIFY to a secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastNotify {
    /// The result.
    pub result: NotifyStatus,
    /// The serial in the NOTIFY.
    pub serial: Option<u32>,
    /// Time at which the NOTIFY was queued, acknowledged or abandoned, in seconds since 1970.
    pub at: u64,
}

/// The last query of a secondary for SOA, IXFR or AXFR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastQuery {
    /// The serial of the secondary, from its IXFR query (RFC 1995 §3).
    pub serial: Option<u32>,
    /// Time of the query, in seconds since 1970.
    pub at: u64,
}

/// The last complete transfer to a secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTransfer {
    /// The transferred serial.
    pub serial: u32,
    /// End of the transfer, in seconds since 1970.
    pub at: u64,
}

/// A secondary that is notified about a zone. Queries and transfers are matched by IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondaryStatus {
    /// The destination of NOTIFY messages.
    pub address: SocketAddr,
    /// The last NOTIFY.
    pub notify: LastNotify,
    /// The last query.
    pub query: Option<LastQuery>,
    /// The last transfer.
    pub transfer: Option<LastTransfer>,
}

/// The last NOTIFY, query and transfer of each secondary that a zone notifies; only for display.
#[derive(Debug, Default)]
pub struct SecondaryStatuses {
    zones: Mutex<Zones>,
}

#[derive(Debug, Default)]
struct Zones {
    by_apex: HashMap<Name, Vec<SecondaryStatus>>,
    /// Number of entries over all zones.
    entries: usize,
}

impl Zones {
    fn remove(&mut self, apex: &Name) -> Vec<SecondaryStatus> {
        let removed = self.by_apex.remove(apex).unwrap_or_default();
        self.entries -= removed.len();
        removed
    }

    fn entries_of(&mut self, apex: &Name, address: IpAddr) -> impl Iterator<Item = &mut SecondaryStatus> {
        let address = address.to_canonical();
        let of_zone = self.by_apex.get_mut(apex).map_or(&mut [][..], Vec::as_mut_slice);
        of_zone.iter_mut().filter(move |entry| entry.address.ip().to_canonical() == address)
    }
}

impl SecondaryStatuses {
    fn lock(&self) -> MutexGuard<'_, Zones> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that NOTIFY messages for this serial are sent to `addresses`, and removes all other
    /// secondaries of the zone. The recorded queries and transfers of `addresses` are kept. `at` is
    /// the time in seconds since 1970, also in the other functions.
    pub fn record_notify(&self, apex: &Name, addresses: &[SocketAddr], serial: Option<u32>, at: u64) {
        let mut zones = self.lock();
        let known = zones.remove(apex);
        let free_entries = ENTRIES_MAX.saturating_sub(zones.entries);
        let notify = LastNotify { result: NotifyStatus::Waiting, serial, at };
        let entries = addresses.iter().take(free_entries).map(|address| {
            let known = known.iter().find(|entry| entry.address == *address);
            let new = SecondaryStatus { address: *address, notify, query: None, transfer: None };
            known.map_or(new, |known| SecondaryStatus { notify, ..*known })
        });
        let entries: Vec<SecondaryStatus> = entries.collect();
        zones.entries += entries.len();
        zones.by_apex.insert(apex.clone(), entries);
    }

    /// Records the result of the last NOTIFY to one secondary.
    pub fn record_result(&self, apex: &Name, address: SocketAddr, result: NotifyStatus, at: u64) {
        let mut zones = self.lock();
        let entries = zones.by_apex.get_mut(apex).map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(entry) = entries.iter_mut().find(|entry| entry.address == address) {
            entry.notify = LastNotify { result, at, ..entry.notify };
        }
    }

    /// Records a query, with the serial that it contains. Does not wait: if another thread uses the
    /// table, the query is not recorded.
    pub fn record_query(&self, apex: &Name, client: IpAddr, serial: Option<u32>, at: u64) {
        let mut zones = match self.zones.try_lock() {
            Ok(zones) => zones,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        for entry in zones.entries_of(apex, client) {
            // An SOA query contains no serial, so the last known serial is kept.
            let serial = serial.or_else(|| entry.query.and_then(|query| query.serial));
            entry.query = Some(LastQuery { serial, at });
        }
    }

    /// Records a complete transfer of this serial.
    pub fn record_transfer(&self, apex: &Name, client: IpAddr, serial: u32, at: u64) {
        for entry in self.lock().entries_of(apex, client) {
            entry.transfer = Some(LastTransfer { serial, at });
        }
    }

    /// Removes all secondaries of a zone except `addresses`.
    pub fn retain(&self, apex: &Name, addresses: &[SocketAddr]) {
        let mut zones = self.lock();
        let mut known = zones.remove(apex);
        known.retain(|entry| addresses.contains(&entry.address));
        if !known.is_empty() {
            zones.entries += known.len();
            zones.by_apex.insert(apex.clone(), known);
        }
    }

    /// Returns the secondaries of a zone, in configuration order.
    #[must_use]
    pub fn of_zone(&self, apex: &Name) -> Vec<SecondaryStatus> {
        self.lock().by_apex.get(apex).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn address(number: usize) -> SocketAddr {
        SocketAddr::new(IpAddr::from([192, 0, (number >> 8) as u8, number as u8]), 53)
    }

    #[test]
    fn what_a_notified_secondary_does_is_shown_and_what_others_do_is_not() {
        let (secondaries, apex) = (SecondaryStatuses::default(), name("example."));
        secondaries.record_notify(&apex, &[address(1), address(2)], Some(7), 100);
        secondaries.record_result(&apex, address(1), NotifyStatus::Acknowledged, 101);
        secondaries.record_result(&apex, address(3), NotifyStatus::Acknowledged, 101);
        // As IPv4-mapped IPv6 address too (RFC 4291 §2.5.5.2).
        let IpAddr::V4(one) = address(1).ip() else { unreachable!() };
        secondaries.record_query(&apex, one.to_ipv6_mapped().into(), Some(6), 102);
        secondaries.record_query(&apex, address(1).ip(), None, 103);
        secondaries.record_transfer(&apex, address(1).ip(), 7, 104);
        secondaries.record_transfer(&apex, address(3).ip(), 7, 104);
        secondaries.record_query(&name("other."), address(1).ip(), None, 103);
        let [first, second] = secondaries.of_zone(&apex)[..] else { panic!("two") };
        let notify = LastNotify { result: NotifyStatus::Acknowledged, serial: Some(7), at: 101 };
        assert_eq!(
            first,
            SecondaryStatus {
                address: address(1),
                notify,
                query: Some(LastQuery { serial: Some(6), at: 103 }),
                transfer: Some(LastTransfer { serial: 7, at: 104 }),
            }
        );
        let notify = LastNotify { result: NotifyStatus::Waiting, serial: Some(7), at: 100 };
        assert_eq!((second.notify, second.query, second.transfer), (notify, None, None));
        // At the next version, queries and transfers are kept, and a secondary that is not
        // configured any more is removed.
        secondaries.record_notify(&apex, &[address(1)], Some(8), 200);
        let [first] = secondaries.of_zone(&apex)[..] else { panic!("one") };
        assert_eq!((first.notify.serial, first.transfer.map(|transfer| transfer.serial)), (Some(8), Some(7)));
        secondaries.retain(&apex, &[]);
        assert!(secondaries.of_zone(&apex).is_empty() && secondaries.lock().entries == 0);
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let secondaries = SecondaryStatuses::default();
        let addresses: Vec<SocketAddr> = (0..ENTRIES_MAX / 2 + 1).map(address).collect();
        for zone in ["a.", "b.", "c.", "b."] {
            secondaries.record_notify(&name(zone), &addresses, None, 1);
            assert!(secondaries.lock().entries <= ENTRIES_MAX);
        }
        assert_eq!(secondaries.lock().entries, ENTRIES_MAX);
    }
}
