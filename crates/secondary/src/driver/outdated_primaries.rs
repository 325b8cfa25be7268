//! Outdated primaries: primaries with an older serial than the local one (RFC 1982). The server
//! transfers nothing from them. A warning names them, because an operator who set back a serial
//! needs to know the reason.

use nonesuch_proto::{Name, serial};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The outdated primaries of a zone.
#[derive(Debug, Default)]
pub(super) struct OutdatedPrimaries {
    /// The serial of each primary, and the local serial at that time.
    known: BTreeMap<SocketAddr, (u32, u32)>,
}

impl OutdatedPrimaries {
    /// Compares the serial of a primary with the local serial `held`. Returns a warning, once for
    /// each pair of serials.
    pub(super) fn note_serial(
        &mut self,
        apex: &Name,
        primary: SocketAddr,
        theirs: u32,
        held: u32,
    ) -> Option<String> {
        // Serials that cannot be compared count as older, because that version is not transferred
        // either.
        if matches!(serial::compare(theirs, held), Some(Ordering::Equal | Ordering::Greater)) {
            self.known.remove(&primary);
            return None;
        }
        let is_new = self.known.insert(primary, (theirs, held)) != Some((theirs, held));
        is_new.then(|| words(apex, primary, theirs, held))
    }

    /// Removes entries for another local serial than `held`, and for servers that are not primaries
    /// any more.
    pub(super) fn retain(&mut self, held: Option<u32>, is_primary: impl Fn(SocketAddr) -> bool) {
        self.known.retain(|primary, (_, ours)| Some(*ours) == held && is_primary(*primary));
    }

    /// Returns the warning for each outdated primary.
    pub(super) fn warnings(&self, apex: &Name) -> Vec<String> {
        let known = self.known.iter();
        known.map(|(primary, (theirs, held))| words(apex, *primary, *theirs, *held)).collect()
    }
}

fn words(apex: &Name, primary: SocketAddr, theirs: u32, held: u32) -> String {
    format!(
        "primary {primary} has serial {theirs}, which is not higher than the local serial {held} (RFC 1982): not transferring this version; \
         increase the serial on the primary, or transfer the version with `nonesuch ctl zone retransfer {apex}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_that_is_behind_is_told_of_once_and_shown_until_it_is_not() {
        let apex: Name = "example.".parse().unwrap();
        let [one, other]: [SocketAddr; 2] =
            ["192.0.2.1:53".parse().unwrap(), "192.0.2.2:53".parse().unwrap()];
        let mut behind = OutdatedPrimaries::default();
        assert_eq!(behind.note_serial(&apex, other, 20, 20), None);
        let said = behind.note_serial(&apex, one, 7, 20).unwrap();
        assert_eq!(said, words(&apex, one, 7, 20));
        for part in ["primary 192.0.2.1:53 ", "serial 7,", "serial 20 ", "zone retransfer example.`"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(behind.note_serial(&apex, one, 7, 20), None, "said");
        assert!(
            behind.note_serial(&apex, one, 20u32.wrapping_add(1 << 31), 20).is_some(),
            "neither before nor after"
        );
        assert_eq!(behind.warnings(&apex).len(), 1);
        behind.retain(Some(20), |_| true);
        assert_eq!(behind.warnings(&apex).len(), 1);
        behind.note_serial(&apex, one, 21, 20);
        assert!(behind.warnings(&apex).is_empty());
        for (held, primary) in [(Some(7), one), (Some(20), other), (None, one)] {
            behind.note_serial(&apex, one, 7, 20);
            behind.retain(held, |found| found == primary);
            assert!(behind.warnings(&apex).is_empty());
        }
    }
}
