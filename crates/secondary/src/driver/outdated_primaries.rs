//! Outdated primaries: primaries with an older serial than the local one (RFC 1982). The server
//! transfers nothing from them unless the operator requests it (`zone retransfer`). A warning names
//! them, because an operator who has decreased a serial needs to know why the zone is not
//! transferred.

use nonesuch_proto::{Name, serial};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Maximum number of serials of one primary for which the warnings are remembered.
const MAX_WARNED_SERIALS: usize = 16;

/// The outdated primaries of a zone.
#[derive(Debug, Default)]
pub(super) struct OutdatedPrimaries {
    /// The primaries that have been outdated since the local serial changed.
    entries: BTreeMap<SocketAddr, Entry>,
}

/// A primary that is or was outdated.
#[derive(Debug)]
struct Entry {
    /// The local serial with which the serials of the primary were compared.
    local_serial: u32,
    /// The serial of the primary, if it is outdated now.
    outdated_serial: Option<u32>,
    /// The outdated serials that caused a warning, in order of time. Several servers can have the
    /// address of one primary, so that its serial alternates.
    warned_serials: Vec<u32>,
}

impl OutdatedPrimaries {
    /// Compares `primary_serial`, the serial of a primary, with the local serial `local_serial`.
    /// Returns a warning if the primary is outdated, once for each pair of serials of the primary
    /// and of this server. A warning is repeated only after [`MAX_WARNED_SERIALS`] warnings about
    /// other serials of this primary.
    pub(super) fn check_serial(
        &mut self,
        apex: &Name,
        primary: SocketAddr,
        primary_serial: u32,
        local_serial: u32,
    ) -> Option<String> {
        // RFC 1982 defines no order for serials that differ by 2^31. Such a primary counts as
        // outdated too, because its version is not transferred either.
        if matches!(serial::compare(primary_serial, local_serial), Some(Ordering::Equal | Ordering::Greater))
        {
            if let Some(entry) = self.entries.get_mut(&primary) {
                entry.outdated_serial = None;
            }
            return None;
        }
        let new_entry = || Entry { local_serial, outdated_serial: None, warned_serials: Vec::new() };
        let entry = self.entries.entry(primary).or_insert_with(new_entry);
        if entry.local_serial != local_serial {
            *entry = new_entry();
        }
        entry.outdated_serial = Some(primary_serial);
        if entry.warned_serials.contains(&primary_serial) {
            return None;
        }
        if entry.warned_serials.len() == MAX_WARNED_SERIALS {
            entry.warned_serials.remove(0);
        }
        entry.warned_serials.push(primary_serial);
        Some(describe(apex, primary, primary_serial, local_serial))
    }

    /// Keeps an entry only if it was recorded with the current local serial `local_serial` and its
    /// server is still a primary. `None` (no local version) removes all entries.
    pub(super) fn retain(&mut self, local_serial: Option<u32>, is_primary: impl Fn(SocketAddr) -> bool) {
        self.entries
            .retain(|primary, entry| Some(entry.local_serial) == local_serial && is_primary(*primary));
    }

    /// Returns the warning for each outdated primary.
    pub(super) fn warnings(&self, apex: &Name) -> Vec<String> {
        let outdated = self.entries.iter().filter_map(|(primary, entry)| {
            Some(describe(apex, *primary, entry.outdated_serial?, entry.local_serial))
        });
        outdated.collect()
    }
}

/// Returns the text of the warning.
fn describe(apex: &Name, primary: SocketAddr, primary_serial: u32, local_serial: u32) -> String {
    format!(
        "primary {primary} has serial {primary_serial}, which is not higher than the local serial {local_serial} (RFC 1982): not transferring this version; \
         increase the serial on the primary, or transfer the version with `nonesuch ctl zone retransfer {apex}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outdated_primary_causes_one_warning_and_is_listed_until_it_is_current() {
        let apex: Name = "example.".parse().unwrap();
        let [one, other]: [SocketAddr; 2] =
            ["192.0.2.1:53".parse().unwrap(), "192.0.2.2:53".parse().unwrap()];
        let mut outdated = OutdatedPrimaries::default();
        assert_eq!(outdated.check_serial(&apex, other, 20, 20), None);
        let warning = outdated.check_serial(&apex, one, 7, 20).unwrap();
        assert_eq!(warning, describe(&apex, one, 7, 20));
        for part in ["primary 192.0.2.1:53 ", "serial 7,", "serial 20 ", "zone retransfer example.`"] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        assert_eq!(outdated.check_serial(&apex, one, 7, 20), None, "only one warning");
        assert!(
            outdated.check_serial(&apex, one, 20u32.wrapping_add(1 << 31), 20).is_some(),
            "neither before nor after"
        );
        assert_eq!(outdated.warnings(&apex).len(), 1);
        outdated.retain(Some(20), |_| true);
        assert_eq!(outdated.warnings(&apex).len(), 1);
        outdated.check_serial(&apex, one, 21, 20);
        assert!(outdated.warnings(&apex).is_empty());
        for (local_serial, primary) in [(Some(7), one), (Some(20), other), (None, one)] {
            outdated.check_serial(&apex, one, 7, 20);
            outdated.retain(local_serial, |found| found == primary);
            assert!(outdated.warnings(&apex).is_empty());
        }
    }

    /// Several servers have the address of the primary; they answer in turn.
    #[test]
    fn a_primary_whose_serial_alternates_causes_one_warning_for_each_outdated_serial() {
        let apex: Name = "example.".parse().unwrap();
        let primary: SocketAddr = "192.0.2.1:53".parse().unwrap();
        let mut outdated = OutdatedPrimaries::default();
        let mut count_warnings = |serials: &[u32], local_serial: u32| {
            let warnings = serials.iter().filter_map(|serial| {
                outdated.retain(Some(local_serial), |_| true);
                outdated.check_serial(&apex, primary, *serial, local_serial)
            });
            warnings.count()
        };
        assert_eq!(count_warnings(&[7, 9, 7, 9, 20, 7, 20, 9], 20), 2);
        assert_eq!(count_warnings(&[7, 9, 7, 9], 21), 2, "the pairs with another local serial are new");
        // The memory is bounded.
        let serials: Vec<u32> = (100..200).chain(100..200).collect();
        assert_eq!(count_warnings(&serials, 1000), 200);
        assert_eq!(outdated.entries[&primary].warned_serials.len(), MAX_WARNED_SERIALS);
        assert_eq!(outdated.warnings(&apex).len(), 1);
        outdated.check_serial(&apex, primary, 1000, 1000);
        assert!(outdated.warnings(&apex).is_empty());
    }
}
