//! The recommendations for algorithms and digests in the IANA registries "DNS Security Algorithm Numbers" and
//! "Digest Algorithms", columns "Use for DNSSEC Signing" and "Use for DNSSEC Delegation" (RFC 9904 §3 and §4,
//! with the changes of RFC 9905 and RFC 9906).

/// A recommendation for the use of a number in a zone (RFC 9904 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Recommended,
    May,
    NotRecommended,
    MustNot,
    /// The registry has no entry that zones can use.
    Unassigned,
}

impl Use {
    /// The term of the registry.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Recommended => "RECOMMENDED",
            Self::May => "MAY",
            Self::NotRecommended => "NOT RECOMMENDED",
            Self::MustNot => "MUST NOT",
            Self::Unassigned => "not assigned",
        }
    }

    /// Whether a zone with this number violates the rule. RFC 9904 §1.3: RECOMMENDED and NOT RECOMMENDED are
    /// SHOULD and SHOULD NOT.
    pub(super) const fn is_violation(self) -> bool {
        matches!(self, Self::NotRecommended | Self::MustNot | Self::Unassigned)
    }
}

/// "Use for DNSSEC Signing" of an algorithm number.
pub(super) const fn signing(algorithm: u8) -> Use {
    match algorithm {
        8 | 13 | 15 => Use::Recommended,
        // 18 was registered with "Specification Required", so its value is MAY (RFC 9904 §2.2).
        14 | 16 | 17 | 18 | 23 | 253 | 254 => Use::May,
        10 => Use::NotRecommended,
        // RFC 9905 §5 for 5 and 7.
        1 | 3 | 5 | 6 | 7 | 12 => Use::MustNot,
        _ => Use::Unassigned,
    }
}

/// "Use for DNSSEC Delegation" of a digest type.
pub(super) const fn delegation(digest_type: u8) -> Use {
    match digest_type {
        2 => Use::Recommended,
        // 253 and 254 are for private use (RFC 9904 §7.2).
        4..=6 | 253 | 254 => Use::May,
        0 | 1 | 3 => Use::MustNot,
        _ => Use::Unassigned,
    }
}
