//! Outdated primaries: primaries with an older serial than the local one (RFC 1982). The server
//! transfers nothing from them. A warning names them, because an operator who has decreased a
//! serial needs to know why the zone is not transferred.

use nonesuch_proto::{Name, serial};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The outdated primaries of a zone.
#[derive(Debug, Default)]
pub(super) struct OutdatedPrimaries {
    /// The serial of each outdated primary, and the local serial at that time.
    serials: BTreeMap<SocketAddr, (u32, u32)>,
}

impl OutdatedPrimaries {
    /// Compares `primary_serial`, the serial of a primary, with the local serial `local_serial`.
    /// Returns a warning if the primary is outdated, once for each pair of serials.
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
            self.serials.remove(&primary);
            return None;
        }
        let is_new = self.serials.insert(primary, (primary_serial, local_serial))
            != Some((primary_serial, local_serial));
        is_new.then(|| describe(apex, primary, primary_serial, local_serial))
    }

    /// Removes entries for another local serial than `local_serial`, and for servers that are not
    /// primaries any more.
    pub(super) fn retain(&mut self, local_serial: Option<u32>, is_primary: impl Fn(SocketAddr) -> bool) {
        self.serials.retain(|primary, (_, recorded_local_serial)| {
            Some(*recorded_local_serial) == local_serial && is_primary(*primary)
        });
    }

    /// Returns the warning for each outdated primary.
    pub(super) fn warnings(&self, apex: &Name) -> Vec<String> {
        let serials = self.serials.iter();
        serials
            .map(|(primary, (primary_serial, local_serial))| {
                describe(apex, *primary, *primary_serial, *local_serial)
            })
            .collect()
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
}
