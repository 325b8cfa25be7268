//! What is validated.

use crate::trust_anchors::TrustAnchors;
use nonesuch_dnssec::validate::AlgorithmPolicy;
use nonesuch_proto::{Name, NameRef};

/// Options of validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationOptions {
    /// The trust anchors. Without any, nothing is validated.
    pub anchors: TrustAnchors,
    /// Names whose zones are not validated (RFC 7646).
    pub negative_anchors: Vec<NegativeAnchor>,
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
}

impl Default for ValidationOptions {
    /// No trust anchor, and the algorithms with an assigned number except those with SHA-1.
    fn default() -> Self {
        let (anchors, policy) = (TrustAnchors::default(), AlgorithmPolicy::ASSIGNED);
        Self { anchors, negative_anchors: Vec::new(), policy, aggressive: true, signals_tags: true }
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
            negative.expires.is_none_or(|expires| unix < expires)
                && negative.name.view().label_count() >= anchor_labels
                && name.is_at_or_below(negative.name.view())
        })
    }

    /// Whether a trust anchor is below `cut` and at or above `name`.
    pub(crate) fn has_anchor_between(&self, cut: NameRef<'_>, name: NameRef<'_>) -> bool {
        self.anchors.closest(name).is_some_and(|anchor| anchor.apex.view().is_below(cut))
    }
}
