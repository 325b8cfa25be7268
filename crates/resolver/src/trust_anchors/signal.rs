//! Key tag queries: a resolver reports to a zone which keys it trusts (RFC 8145 §5).

use nonesuch_proto::{Name, NameRef};
use std::fmt::Write as _;

/// Maximum number of key tags in a signal: with more, the label would exceed 63 octets.
pub const MAX_SIGNALLED_TAGS: usize = 12;

/// Returns the name of the query (type NULL) that signals the key tags of the trust anchors of `zone`
/// (RFC 8145 §5.1): the label `_ta-4a5c-9728` and the zone. The tags are in ascending order, in four
/// hexadecimal digits each, without duplicates; tags after the first [`MAX_SIGNALLED_TAGS`] are
/// omitted.
///
/// Returns `None` if there is no tag, or if the name would have more than 255 octets.
#[must_use]
pub fn signal_query_name(zone: NameRef<'_>, tags: &[u16]) -> Option<Name> {
    let mut tags = tags.to_vec();
    tags.sort_unstable();
    tags.dedup();
    let mut label = String::from("_ta");
    for tag in tags.iter().take(MAX_SIGNALLED_TAGS) {
        // Writing to a `String` cannot fail.
        let _ = write!(label, "-{tag:04x}");
    }
    if tags.is_empty() { None } else { Name::prepend(label.as_bytes(), zone).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(zone: &str, tags: &[u16]) -> Option<String> {
        let zone: Name = zone.parse().unwrap();
        signal_query_name(zone.view(), tags).map(|name| name.to_string())
    }

    #[test]
    fn tags_are_ascending_with_four_hexadecimal_digits() {
        assert_eq!(signal(".", &[38696, 19036]).as_deref(), Some("_ta-4a5c-9728."));
        assert_eq!(signal("example.", &[10, 0, 10]).as_deref(), Some("_ta-0000-000a.example."));
        assert_eq!(signal(".", &[]), None);
    }

    #[test]
    fn a_label_has_at_most_63_octets_and_a_name_255() {
        let tags: Vec<u16> = (0..20).rev().collect();
        let name = signal(".", &tags).unwrap();
        assert!(name.starts_with("_ta-0000-0001-") && name.ends_with("-000b."), "{name}");
        let long = vec!["a".repeat(63); 3].join(".");
        assert!(signal(&format!("{long}.{}", "a".repeat(52)), &[1]).is_some());
        assert_eq!(signal(&format!("{long}.{}", "a".repeat(53)), &[1]), None);
    }
}
