//! Options of validation: trust anchors, algorithms, use of denial records.

use crate::trust_anchors::TrustAnchors;
use nonesuch_dnssec::validate::AlgorithmPolicy;
use nonesuch_proto::{Name, NameRef};
use std::time::Duration;

/// Options of validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationOptions {
    /// The trust anchors. Without any, nothing is validated.
    pub anchors: TrustAnchors,
    /// Names whose zones are not validated (RFC 7646).
    pub negative_anchors: Vec<NegativeAnchor>,
    /// Time between two checks whether these zones validate again (RFC 7646 §4); zero: never.
    pub negative_anchor_recheck: Duration,
    /// The algorithms that the resolver knows.
    pub policy: AlgorithmPolicy,
    /// Whether validated denial records and wildcards answer queries for other names (RFC 8198).
    pub aggressive: bool,
    /// Whether zones get signals of the keys that are trusted (RFC 8145 §5), if their trust anchors are
    /// updated automatically.
    pub signals_tags: bool,
}

/// A name at and below which nothing is validated, unless a trust anchor is below it (RFC 7646).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegativeAnchor {
    /// The name.
    pub name: Name,
    /// Seconds since 1970 at which it ends; `None`: never.
    pub expires: Option<u64>,
    /// Whether it also ends when the zone validates again. The check is of the DNSKEY and SOA RRsets only.
    pub is_rechecked: bool,
}

impl NegativeAnchor {
    /// Whether its time is over at `unix`.
    pub(crate) fn has_expired(&self, unix: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= unix)
    }
}

impl Default for ValidationOptions {
    /// No trust anchor, and the algorithms with an assigned number except those with SHA-1.
    fn default() -> Self {
        let (anchors, policy) = (TrustAnchors::default(), AlgorithmPolicy::ASSIGNED);
        Self {
            anchors,
            negative_anchors: Vec::new(),
            negative_anchor_recheck: Duration::from_secs(300),
            policy,
            aggressive: true,
            signals_tags: true,
        }
    }
}

impl ValidationOptions {
    /// Returns a negative trust anchor at or above `name` that holds at `unix`. One with fewer labels
    /// than the closest trust anchor does not.
    pub(crate) fn negative_anchor(
        &self,
        name: NameRef<'_>,
        anchor_labels: usize,
        unix: u64,
    ) -> Option<&NegativeAnchor> {
        self.negative_anchors.iter().find(|negative| {
            !negative.has_expired(unix)
                && negative.name.view().label_count() >= anchor_labels
                && name.is_at_or_below(negative.name.view())
        })
    }

    /// Whether a trust anchor is below `cut` and at or above `name`.
    pub(crate) fn has_anchor_between(&self, cut: NameRef<'_>, name: NameRef<'_>) -> bool {
        self.anchors.closest(name).is_some_and(|anchor| anchor.apex.view().is_below(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;
    use crate::trust_anchors::AnchorRecord;

    #[test]
    fn a_negative_anchor_holds_until_its_end_and_not_below_a_closer_trust_anchor() {
        let mut options = ValidationOptions::default();
        for apex in [".", "b.a."] {
            options.anchors.insert(name(apex).view(), AnchorRecord::Dnskey(vec![0; 4]));
        }
        options.negative_anchors.push(NegativeAnchor {
            name: name("a."),
            expires: Some(100),
            is_rechecked: true,
        });
        let holds = |text: &str, unix| {
            let name = name(text);
            let anchor = options.anchors.closest(name.view()).unwrap();
            options.negative_anchor(name.view(), anchor.apex.view().label_count(), unix).is_some()
        };
        assert!(holds("a.", 99) && holds("x.A.", 99));
        assert!(!holds("a.", 100) && !holds("c.", 99) && !holds(".", 99));
        assert!(!holds("b.a.", 99) && !holds("x.b.a.", 99));
        assert!(options.has_anchor_between(name("a.").view(), name("x.b.a.").view()));
        assert!(!options.has_anchor_between(name("a.").view(), name("x.a.").view()));
    }
}
