//! The rules that an answer violates, for messages to people.

use super::reason::{BogusReason, IndeterminateReason, InsecureReason};

impl BogusReason {
    /// Returns the rule that is violated: RFC and section, or the limit.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::TooManyKeys(_) | Self::TooManyNsec3(_) | Self::TooManyNsec5Keys(_) => {
                "limit of the validator"
            }
            Self::NoUsableKey | Self::NoMatchingKey | Self::ApexDs => "RFC 4035 §5.2",
            Self::NoZoneKeyFlag => "RFC 4034 §2.1.1",
            Self::NoSignature { .. } => "RFC 4035 §5.3",
            Self::MalformedSignature(_) => "RFC 4034 §3.1",
            Self::WrongSigner { .. }
            | Self::WrongLabels { .. }
            | Self::EmptyPeriod(_)
            | Self::Expired { .. }
            | Self::NotYetValid { .. }
            | Self::UnknownKey { .. }
            | Self::OutsideZone(_) => "RFC 4035 §5.3.1",
            Self::BadSignature { .. } => "RFC 4035 §5.3.3",
            Self::ExpandedFromWildcard { .. } => "RFC 4035 §5.3.4",
            Self::SeveralAliases(_) => "RFC 2181 §10.1",
            Self::MalformedAlias(_) => "RFC 1035 §3.3.1",
            Self::ForgedAlias(_) => "RFC 6672 §5.3.1",
            Self::BelowDname(_) => "RFC 6672 §5.3.4",
            Self::UnknownHash(_) => "RFC 5155 §8.1",
            Self::UnknownFlags { .. } | Self::MixedParameters => "RFC 5155 §8.2",
            Self::OwnerNotAHash(_) | Self::NextHashLength { .. } => "RFC 5155 §3",
            Self::NoEncloser(_) => "RFC 5155 §8.3",
            Self::NotOptOut(_) => "RFC 5155 §8.9",
            Self::TooManyIterations(_) => "RFC 9276 §3.2",
            Self::ParentSideRecord(_) | Self::ChildSideRecord(_) => "RFC 6840 §4.1",
            Self::NxnameWithTypes(_) => "RFC 9824 §2",
            Self::MalformedDenial(_) | Self::BadNextName(_) => "RFC 4034 §4",
            Self::RcodeNotProved(_)
            | Self::NoDenial
            | Self::MixedDenial
            | Self::SeveralDenials(_)
            | Self::NameExists(_)
            | Self::NotCovered(_)
            | Self::NotMatched(_)
            | Self::WildcardNotDenied(_)
            | Self::WildcardExists(_)
            | Self::TypeExists { .. }
            | Self::AliasExists(_)
            | Self::NotADelegation(_)
            | Self::SignedDelegation(_) => "RFC 4035 §5.4",
            Self::WildcardFlag(_)
            | Self::NoNsec5Key
            | Self::NoUsableNsec5Key
            | Self::SameNsec5Tag(_)
            | Self::NotAliasAlgorithm(_)
            | Self::NoProof(_)
            | Self::UnknownProofKey(_)
            | Self::BadProof(_)
            | Self::ProofKeyMismatch(_) => "draft-vcelak-nsec5",
        }
    }
}

impl InsecureReason {
    /// Returns the rule by which the answer is insecure.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        match self {
            Self::UnsupportedAlgorithms | Self::UnsupportedDigests => "RFC 6840 §5.2",
            Self::OptOut => "RFC 5155 §9.2",
            Self::TooManyIterations(_) => "RFC 9276 §3.2",
            Self::UnsignedDelegation => "RFC 4035 §5.2",
            Self::NoTrustAnchor => "RFC 4035 §4.3",
            Self::NegativeTrustAnchor => "RFC 7646 §2",
        }
    }
}

impl IndeterminateReason {
    /// Returns the rule by which nothing can be decided.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Limit(_) => "limit of the validator",
            Self::RrsigQuestion => "RFC 4035 §2.2",
            Self::Malformed(_) => "RFC 1035 §4.1",
            Self::NoKeys
            | Self::OutsideZone
            | Self::NotAResponse
            | Self::Truncated
            | Self::OtherQuestion
            | Self::Rcode(_)
            | Self::MetaType(_) => "RFC 4035 §4.3",
        }
    }
}
