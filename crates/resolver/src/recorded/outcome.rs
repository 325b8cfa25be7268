//! The result of the validation of a recorded response.

use nonesuch_dnssec::validate::{
    BogusReason, IndeterminateReason, InsecureReason, ProvedAnswer, SecurityStatus, Validation, Work,
};
use nonesuch_proto::{Name, Rtype};

/// The result for one recorded response.
#[derive(Clone, Debug)]
pub struct RecordedValidation {
    /// The zone whose keys have validated the last part of the response; `None` if its keys are unknown.
    pub zone: Option<Name>,
    /// The result.
    pub result: RecordedResult,
    /// The work for this response, without that for the chain of trust.
    pub work: Work,
}

/// What the validation of a recorded response decides.
#[derive(Clone, Debug)]
pub enum RecordedResult {
    /// The keys of its zone have validated the response, or it does not answer its question.
    Validated(Box<Validation>),
    /// The response is at or below this zone cut, outside the chain of trust.
    Insecure(Name, InsecureReason),
    /// The keys for the response are unknown.
    Broken(ChainFault),
}

/// Why the keys for a response are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainFault {
    /// No trust anchor is at or above the name.
    #[error("no trust anchor is at or above {name}: give one of its zone or of a zone above it")]
    NoAnchor {
        /// The name.
        name: Name,
    },
    /// No recorded response has an RRset of the chain of trust.
    #[error("the input has no response for {name} {rtype}: add the response to this question")]
    Missing {
        /// Name of the missing RRset.
        name: Name,
        /// Type of the missing RRset.
        rtype: Rtype,
    },
    /// The response has no signature. Nothing shows whether it is of the secure zone or of an unsigned
    /// zone below it.
    #[error(
        "{name} {rtype} has no signature, and the input has no response for {unknown} DS, which shows whether an \
         unsigned zone begins there or {zone} must sign it: add this response"
    )]
    Unsigned {
        /// Name of the question.
        name: Name,
        /// Type of the question.
        rtype: Rtype,
        /// The closest known zone, which is secure.
        zone: Name,
        /// The first name below the zone that may be a zone cut.
        unknown: Name,
    },
    /// An RRset of the chain of trust is bogus.
    #[error("{name} {rtype}: {reason}")]
    Bogus {
        /// Name of the RRset.
        name: Name,
        /// Type of the RRset.
        rtype: Rtype,
        /// Why it is bogus.
        reason: BogusReason,
    },
    /// An RRset of the chain of trust cannot be validated.
    #[error("{name} {rtype}: {reason}")]
    Indeterminate {
        /// Name of the RRset.
        name: Name,
        /// Type of the RRset.
        rtype: Rtype,
        /// Why it cannot be validated.
        reason: IndeterminateReason,
    },
}

impl ChainFault {
    pub(super) fn missing(name: &Name, rtype: Rtype) -> Self {
        Self::Missing { name: name.clone(), rtype }
    }

    /// Returns the rule that is violated, or by which nothing can be decided.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Bogus { reason, .. } => reason.rule(),
            Self::Indeterminate { reason, .. } => reason.rule(),
            Self::NoAnchor { .. } | Self::Missing { .. } | Self::Unsigned { .. } => "RFC 4035 §4.3",
        }
    }

    /// Returns the code of the extended DNS error (RFC 8914 §4): 5 is DNSSEC Indeterminate, 9 is DNSKEY
    /// Missing.
    #[must_use]
    pub const fn extended_error(&self) -> u16 {
        match self {
            Self::Bogus { reason, .. } => reason.extended_error(),
            Self::Missing { rtype: Rtype::DNSKEY, .. } => 9,
            _ => 5,
        }
    }
}

impl RecordedValidation {
    pub(super) fn new(zone: Option<Name>, result: RecordedResult) -> Self {
        Self { zone, result, work: Work::default() }
    }

    /// Returns the name of the status in RFC 4033 §5, in lower case.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match &self.result {
            RecordedResult::Validated(validation) => validation.status.name(),
            RecordedResult::Insecure(..) => "insecure",
            RecordedResult::Broken(ChainFault::Bogus { .. }) => "bogus",
            RecordedResult::Broken(_) => "indeterminate",
        }
    }

    /// Returns the content that is proved, if the status is Secure or Insecure.
    #[must_use]
    pub fn proved(&self) -> Option<&ProvedAnswer> {
        match &self.result {
            RecordedResult::Validated(validation) => validation.proved.as_ref(),
            RecordedResult::Insecure(..) | RecordedResult::Broken(_) => None,
        }
    }

    /// Returns why the response is not Secure, and the rule.
    #[must_use]
    pub fn reason(&self) -> Option<(String, &'static str)> {
        Some(match &self.result {
            RecordedResult::Validated(validation) => match &validation.status {
                SecurityStatus::Secure => return None,
                SecurityStatus::Insecure(reason) => (reason.to_string(), reason.rule()),
                SecurityStatus::Bogus(reason) => (self.locate(validation, reason), reason.rule()),
                SecurityStatus::Indeterminate(reason) => (reason.to_string(), reason.rule()),
            },
            RecordedResult::Insecure(cut, reason) => (format!("at and below {cut}: {reason}"), reason.rule()),
            RecordedResult::Broken(fault) => (fault.to_string(), fault.rule()),
        })
    }

    /// The reason with the zone and, if an RRset is at fault, with its owner and type.
    fn locate(&self, validation: &Validation, reason: &BogusReason) -> String {
        use nonesuch_dnssec::validate::RrsetStatus::Bogus;
        let zone = self.zone.as_ref().map(|zone| format!("zone {zone}: ")).unwrap_or_default();
        let is_at_fault = |status: &_| matches!(status, Bogus(found) if found == reason);
        match validation.rrsets.iter().find(|rrset| is_at_fault(&rrset.status)) {
            Some(rrset) => format!("{zone}{} {}: {reason}", rrset.owner, rrset.rtype),
            None => format!("{zone}{reason}"),
        }
    }

    /// Returns the code of the extended DNS error (RFC 8914 §4) with which a resolver would report the
    /// status; `None` if there is no suitable one.
    #[must_use]
    pub fn extended_error(&self) -> Option<u16> {
        match &self.result {
            RecordedResult::Validated(validation) => match &validation.status {
                SecurityStatus::Secure => None,
                SecurityStatus::Insecure(reason) => reason.extended_error(),
                SecurityStatus::Bogus(reason) => Some(reason.extended_error()),
                SecurityStatus::Indeterminate(_) => Some(5),
            },
            RecordedResult::Insecure(_, reason) => reason.extended_error(),
            RecordedResult::Broken(fault) => Some(fault.extended_error()),
        }
    }

    /// Returns the result of a response that begins with this part and continues with `rest` after an
    /// alias. The status is the weaker one.
    pub(super) fn followed_by(self, rest: Self) -> Self {
        let RecordedResult::Validated(first) = self.result else { return rest };
        let RecordedResult::Validated(mut last) = rest.result else { return rest };
        if let (SecurityStatus::Insecure(_), SecurityStatus::Secure) = (&first.status, &last.status) {
            last.status = first.status;
        }
        let aliases = std::mem::take(&mut last.aliases);
        last.aliases = first.aliases.into_iter().chain(aliases).collect();
        Self { result: RecordedResult::Validated(last), ..rest }
    }
}
