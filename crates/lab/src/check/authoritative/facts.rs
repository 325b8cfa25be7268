//! What the check learned about the server and the zone.

use super::{Authoritative, ZoneKeys};
use crate::enumerate::Recognised;

impl Authoritative {
    /// Terms and values: the zone, its signatures, its denial mechanism, the announced UDP payload size.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let signatures = match &self.keys {
            ZoneKeys::Unsigned => "none: the zone is unsigned".to_owned(),
            ZoneKeys::Untrusted(reason) => format!("not trusted: {reason}"),
            ZoneKeys::Trusted(keys) => {
                let tags = keys.tags().map(|(tag, algorithm)| format!("{tag} ({algorithm})"));
                let mut tags: Vec<String> = tags.collect();
                let omitted = tags.len().saturating_sub(LISTED_KEYS);
                tags.truncate(LISTED_KEYS);
                let trust = if self.anchors.is_empty() {
                    "trusted as the server sends them"
                } else {
                    "validated from the trust anchor"
                };
                let more = if omitted > 0 { format!(" and {omitted} more") } else { String::new() };
                format!("keys {}{more}, {trust}", tags.join(", "))
            }
        };
        let denial = match self.recognised {
            None => "not recognised",
            Some(Recognised::Unsigned) => "none",
            Some(Recognised::SignedWithoutDenial) => "none, although the zone is signed",
            Some(Recognised::Mechanism(mechanism)) => mechanism.entry().title,
        };
        let announced =
            self.announced.map_or_else(|| "no EDNS".to_owned(), |octets| format!("{octets} octets"));
        let test_zone = if self.is_test_zone { "yes" } else { "no" };
        [
            ("zone", self.zone.to_string()),
            ("signatures", signatures),
            ("denial of existence", denial.to_owned()),
            ("announced UDP payload size", announced),
            ("test zone", test_zone.to_owned()),
        ]
        .map(|(term, value)| (term.to_owned(), value))
        .into()
    }
}

/// Maximum number of keys that the facts list.
const LISTED_KEYS: usize = 4;
