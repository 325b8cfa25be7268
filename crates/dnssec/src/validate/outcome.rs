//! The result of a validation.

use super::budget::Work;
use super::reason::{BogusReason, IndeterminateReason, InsecureReason};
use nonesuch_proto::message::{Rcode, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

/// The question of a query; the class is IN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'q> {
    /// The name. Upper and lower case are equal.
    pub name: NameRef<'q>,
    /// The type.
    pub rtype: Rtype,
}

/// The status of an answer (RFC 4033 §5, RFC 4035 §4.3): the status of the weakest step of its
/// validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityStatus {
    /// The trusted keys prove the answer.
    Secure,
    /// The data are proved to be outside the chain of trust, for example in an unsigned zone or in
    /// an opt-out span.
    Insecure(InsecureReason),
    /// The trusted keys should prove the answer, and they do not.
    Bogus(BogusReason),
    /// The validator cannot decide.
    Indeterminate(IndeterminateReason),
}

impl SecurityStatus {
    /// Returns the name of the status in RFC 4033 §5, in lower case.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::Insecure(_) => "insecure",
            Self::Bogus(_) => "bogus",
            Self::Indeterminate(_) => "indeterminate",
        }
    }
}

/// The content of an answer for the last name of its chain of aliases, which is the question name
/// if the answer has no alias.
///
/// If the status is Insecure, the proof has a gap that depends on the reason. With
/// [`InsecureReason::OptOut`], an unsigned delegation may exist at the name. With
/// [`InsecureReason::TooManyIterations`], the validator did not compute the NSEC3 hashes, so
/// nothing proves that the records belong to the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvedAnswer {
    /// The response has the queried records.
    Answer,
    /// The response has the records of a wildcard, and no closer match exists.
    WildcardAnswer,
    /// The name exists, possibly as an empty non-terminal, and does not have the type.
    NoData,
    /// The name does not exist, and the wildcard that matches it does not have the type.
    WildcardNoData,
    /// Neither the name nor a wildcard that matches it exists.
    NxDomain,
    /// The name is at or below a zone cut, and the response refers to the child zone.
    Referral {
        /// The zone cut.
        child: Name,
        /// Whether the zone cut has a DS RRset. If `true`, this RRset is Secure. If `false`, the
        /// response proves that the zone cut has none, and the status is Insecure.
        has_ds: bool,
    },
    /// The answer ends with an alias. The resolver must query the target.
    Alias {
        /// The target. It may be outside the zone, or an earlier name of the chain of aliases.
        target: Name,
    },
    /// The target of a DNAME record would have more than 255 octets (RFC 6672 §2.2, YXDOMAIN).
    DnameTooLong,
}

/// An alias that the validation followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name that is an alias.
    pub name: Name,
    /// The target of the alias.
    pub target: Name,
    /// Whether the alias is from a DNAME record above the name.
    pub by_dname: bool,
}

/// The result for one RRset of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrsetOutcome {
    /// Section of the RRset.
    pub section: Section,
    /// Owner of the RRset.
    pub owner: Name,
    /// Type of the RRset.
    pub rtype: Rtype,
    /// Status of the RRset.
    pub status: RrsetStatus,
    /// Maximum time to cache the RRset, in seconds. For a Secure RRset, its signature limits the
    /// time (RFC 4035 §5.3.3). For a synthesised CNAME record, the DNAME record limits it; for
    /// NSEC5PROOF records, the NSEC5 records. For other RRsets it is the TTL in the response.
    pub ttl: u32,
}

/// The status of one RRset of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RrsetStatus {
    /// A trusted key signed it.
    Secure,
    /// A CNAME record that was synthesised from a Secure DNAME record (RFC 6672 §5.3.1).
    Synthesised,
    /// NSEC5PROOF records. A trusted VRF key verifies one of them. They are not signed.
    Proven,
    /// The NS RRset of a referral, which only the child zone can sign.
    Unsigned,
    /// No signature over it by a trusted key is valid, or its content is not permitted here.
    Bogus(BogusReason),
    /// The validation did not need it and did not verify it. The resolver must drop it.
    Unused,
}

/// The result of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validation {
    /// Status of the answer.
    pub status: SecurityStatus,
    /// The proved content. `Some` if the status is Secure, or Insecure for another reason than
    /// [`InsecureReason::UnsupportedAlgorithms`]; otherwise `None`.
    pub proved: Option<ProvedAnswer>,
    /// The aliases from the question name, in order.
    pub aliases: Vec<Alias>,
    /// The response code that follows from `proved`. It is NXDOMAIN if the name does not exist,
    /// even if the message has compact denial with NOERROR (RFC 9824 §4). If `proved` is `None`,
    /// this is the response code of the message, or SERVFAIL if the message is malformed.
    pub rcode: Rcode,
    /// Each RRset of the response, in order.
    pub rrsets: Vec<RrsetOutcome>,
    /// Why the proved part is only Insecure, also if the status is Bogus for a later part.
    pub insecure_reason: Option<InsecureReason>,
    /// Whether the response denies the DS RRset of a name and proves that this name is an unsigned
    /// delegation (RFC 4035 §5.2, RFC 5155 §8.9).
    pub is_unsigned_delegation: bool,
    /// The work for this response alone.
    pub work: Work,
}
