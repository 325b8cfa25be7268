//! What a validation comes to.

use super::budget::Work;
use super::reason::{BogusReason, IndeterminateReason, InsecureReason};
use nonesuch_proto::message::{Rcode, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

/// What was asked; the class is IN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'q> {
    /// The name, in any case.
    pub name: NameRef<'q>,
    /// The type.
    pub rtype: Rtype,
}

/// The status of an answer (RFC 4033 §5, RFC 4035 §4.3): that of its weakest step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityStatus {
    /// Proved by the trusted keys.
    Secure,
    /// Proved to be what nobody can prove: not signed, or of an opt-out span.
    Insecure(InsecureReason),
    /// It should be proved and is not.
    Bogus(BogusReason),
    /// Nothing can be said of it.
    Indeterminate(IndeterminateReason),
}

impl SecurityStatus {
    /// The word for it, as RFC 4033 §5 has it, in lower case.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::Insecure(_) => "insecure",
            Self::Bogus(_) => "bogus",
            Self::Indeterminate(_) => "indeterminate",
        }
    }
}

/// What an answer proves of the last name of its aliases, which is the question name where there are none. An insecure
/// answer says it and does not prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvedAnswer {
    /// These are the records asked for.
    Answer,
    /// These are the records of a wildcard, and nothing closer matches.
    WildcardAnswer,
    /// The name exists, or is an empty non-terminal, without the type.
    NoData,
    /// The name does not exist, and the wildcard that matches has not the type.
    WildcardNoData,
    /// Neither the name exists nor a wildcard that matches it.
    NxDomain,
    /// The name is at or below a zone cut.
    Referral {
        /// The cut.
        child: Name,
        /// Whether it has a DS RRset, which is then Secure; else there is proof that it has none.
        signed: bool,
    },
    /// The answer ends with an alias; the target is to be asked for.
    Alias {
        /// The target; it may be outside the zone, or a name that came before.
        target: Name,
    },
    /// A DNAME record makes a name of more than 255 octets (RFC 6672 §2.2, YXDOMAIN).
    DnameTooLong,
}

/// An alias that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: Name,
    /// What it is an alias of.
    pub target: Name,
    /// Whether a DNAME record above the name makes it so.
    pub by_dname: bool,
}

/// What is known of one RRset of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrsetOutcome {
    /// Where it stands.
    pub section: Section,
    /// Its owner.
    pub owner: Name,
    /// Its type.
    pub rtype: Rtype,
    /// What is known of it.
    pub status: RrsetStatus,
    /// How long it may be kept, in seconds: for a Secure one bounded by its signature (RFC 4035 §5.3.3), for one that is
    /// not signed by what vouches for it.
    pub ttl: u32,
}

/// What is known of an RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RrsetStatus {
    /// A trusted key signed it.
    Secure,
    /// A CNAME record that a Secure DNAME record makes (RFC 6672 §5.3.1).
    Synthesised,
    /// NSEC5PROOF records, one of which a trusted VRF key verifies; they are not signed.
    Proven,
    /// The NS RRset of a referral, which the child alone can sign.
    Unsigned,
    /// It should be signed by a trusted key and is not.
    Bogus(BogusReason),
    /// It was not needed and not looked at: nobody vouches for it, and it is to be dropped.
    Unused,
}

/// The outcome of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validation {
    /// The status of the whole.
    pub status: SecurityStatus,
    /// What is proved; `None` where it is Bogus or Indeterminate, or of a zone without supported keys.
    pub proved: Option<ProvedAnswer>,
    /// The aliases on the way, in order.
    pub aliases: Vec<Alias>,
    /// The response code that is proved: NXDOMAIN for compact denial too, which may come with NOERROR (RFC 9824 §4). Of a
    /// response that is not proved its own.
    pub rcode: Rcode,
    /// Each RRset of the response, in order.
    pub rrsets: Vec<RrsetOutcome>,
    /// What validating this response took.
    pub work: Work,
}
