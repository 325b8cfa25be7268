//! Validates responses: proves or rejects a response with the trusted keys of its zone (RFC 4035
//! §5, RFC 6840, RFC 5155 §8, RFC 9824; for NSEC5 draft-vcelak-nsec5-07 and docs/nsec5.md).
//!
//! [`validate`] is pure: it has no I/O, no clock and no cache. [`PendingValidation`] is the same in
//! steps, so that signatures and NSEC5 proofs of many responses are verified in one batch. The caller handles trust anchors and
//! DS records between zones. A resolver validates one response of one zone at a time, with one
//! [`Budget`] for all work of one client query.
//!
//! The validation follows the aliases from the question name to an answer, a referral or a denial
//! (`walk`). It verifies only the RRsets that the walk needs (`signature`). Each denial mechanism
//! evaluates its own records (`denial/*/validate.rs`). [`aggressive`] evaluates records that were
//! valid in earlier responses.

pub mod aggressive;
mod budget;
pub(crate) mod claim;
mod entry_points;
mod error;
mod evidence;
mod keys;
mod outcome;
mod pending;
mod policy;
pub(crate) mod proofs;
mod reason;
mod rrsets;
mod rule;
mod signature;
mod walk;

pub use budget::{Budget, Limit, ValidationLimits, Work};
pub use claim::{Claim, DenialKind};
pub use entry_points::{EntryPoints, NoEntryPoint};
pub(crate) use error::ValidationError;
pub use keys::TrustedKeys;
pub use outcome::{Alias, ProvedAnswer, Question, RrsetOutcome, RrsetStatus, SecurityStatus, Validation};
pub use pending::{JobAlgorithm, PendingValidation, ValidSignatures, verify_jobs};
pub use policy::AlgorithmPolicy;
pub use reason::{BogusReason, IndeterminateReason, InsecureReason};

use keys::KeySetStatus;
use nonesuch_proto::message::{self, Message, Rcode, Section, flags};
use nonesuch_proto::{Class, Rtype};
use signature::Verification;
use walk::{Progress, Walk};

/// Validates a response to `question` with the trusted `keys` of its zone. `now` is in seconds
/// since 1970 modulo 2^32. The work is deducted from `budget`.
#[must_use]
pub fn validate(
    question: Question<'_>,
    response: &Message,
    keys: &TrustedKeys,
    now: u32,
    budget: &mut Budget,
) -> Validation {
    budget.continue_response(0);
    let before = budget.spent();
    let preconditions = check_preconditions(question, response, keys);
    let progress = Progress::new(question);
    let context = (question, response, keys, now);
    let ended = conclude(context, preconditions, progress, Verification::Immediate, budget);
    let validation =
        ended.unwrap_or_else(|_| unreachable!("all signatures and proofs were verified at once"));
    Validation { work: budget.spent().since(before), ..validation }
}

/// What a validation is about: the question, the response, the trusted keys, and the time.
type Context<'v> = (Question<'v>, &'v Message, &'v TrustedKeys, u32);

/// Continues a validation to its end. The result has no work.
///
/// # Errors
/// The progress so far, if signatures or proofs must be verified first.
fn conclude(
    context: Context<'_>,
    preconditions: Result<(), SecurityStatus>,
    progress: Progress,
    verification: Verification<'_>,
    budget: &mut Budget,
) -> Result<Validation, Progress> {
    let (_, response, ..) = context;
    let mut walk = Walk::new(context, progress, verification, budget);
    let outcome = match preconditions {
        Err(status) => Err(status),
        Ok(()) => match walk.run() {
            Ok(proved) => Ok(proved),
            Err(ValidationError::Bogus(reason)) => Err(SecurityStatus::Bogus(reason)),
            Err(ValidationError::Indeterminate(reason)) => Err(SecurityStatus::Indeterminate(reason)),
            Err(ValidationError::Pending) => return Err(walk.into_progress()),
        },
    };
    let is_unsigned_delegation = walk.is_unsigned_delegation();
    let (aliases, insecure_reason, rrsets) = walk.finish();
    let (status, proved) = match outcome {
        Ok(proved) => {
            (insecure_reason.map_or(SecurityStatus::Secure, SecurityStatus::Insecure), Some(proved))
        }
        Err(status) => (status, None),
    };
    let rcode = match &proved {
        Some(ProvedAnswer::NxDomain) => Rcode::NXDOMAIN,
        Some(ProvedAnswer::DnameTooLong) => Rcode::YXDOMAIN,
        Some(_) => Rcode::NOERROR,
        None => response.rcode(),
    };
    let work = Work::default();
    Ok(Validation { status, proved, aliases, rcode, rrsets, insecure_reason, is_unsigned_delegation, work })
}

impl TrustedKeys {
    /// Validates a response to the question for the NSEC5KEY RRset of the zone. If the RRset is
    /// Secure, its keys replace the trusted NSEC5 keys ([`TrustedKeys::set_nsec5_keys`]); otherwise
    /// these do not change. Denials by NSEC5 are Bogus until a call succeeds. `now` and `budget`
    /// are as for [`validate`].
    pub fn learn_nsec5_keys(&mut self, response: &Message, now: u32, budget: &mut Budget) -> Validation {
        let apex = self.apex().to_name();
        let question = Question { name: apex.view(), rtype: Rtype::NSEC5KEY };
        let validation = validate(question, response, self, now, budget);
        if validation.status == SecurityStatus::Secure && validation.proved == Some(ProvedAnswer::Answer) {
            let keys = response.section(Section::Answer).filter(|record| {
                (record.rtype, record.class) == (Rtype::NSEC5KEY, Class::IN) && record.owner == apex
            });
            self.set_nsec5_keys(keys.map(|record| record.rdata.as_slice()), budget.limits());
        }
        validation
    }
}

/// Like [`validate`], for a message in wire format. If the message is malformed, the status is
/// Indeterminate and `budget` does not change.
#[must_use]
pub fn validate_octets(
    question: Question<'_>,
    response: &[u8],
    keys: &TrustedKeys,
    now: u32,
    budget: &mut Budget,
) -> Validation {
    match Message::parse(response) {
        Ok(message) => validate(question, &message, keys, now, budget),
        Err(error) => Validation {
            status: SecurityStatus::Indeterminate(IndeterminateReason::Malformed(error)),
            proved: None,
            aliases: Vec::new(),
            rcode: Rcode::SERVFAIL,
            rrsets: Vec::new(),
            insecure_reason: None,
            is_unsigned_delegation: false,
            work: Work::default(),
        },
    }
}

/// Checks that the message is a complete response to the question, that the question is in the
/// zone, and that the DNSKEY RRset is usable.
///
/// # Errors
/// The status of a response that does not meet these conditions.
fn check_preconditions(
    question: Question<'_>,
    response: &Message,
    keys: &TrustedKeys,
) -> Result<(), SecurityStatus> {
    let indeterminate = |reason| Err(SecurityStatus::Indeterminate(reason));
    let header = response.header;
    if header.flags & flags::QR == 0 || header.opcode() != 0 {
        return indeterminate(IndeterminateReason::NotAResponse);
    }
    if header.flags & flags::TC != 0 {
        return indeterminate(IndeterminateReason::Truncated);
    }
    if !is_response_to(question, response) {
        return indeterminate(IndeterminateReason::OtherQuestion);
    }
    if !matches!(response.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
        return indeterminate(IndeterminateReason::Rcode(response.rcode()));
    }
    if question.rtype != Rtype::ANY && question.rtype.is_meta() {
        return indeterminate(IndeterminateReason::MetaType(question.rtype));
    }
    if !question.name.is_at_or_below(keys.apex()) {
        return indeterminate(IndeterminateReason::OutsideZone);
    }
    match keys.key_set_status() {
        KeySetStatus::Usable => Ok(()),
        KeySetStatus::Empty => indeterminate(IndeterminateReason::NoKeys),
        KeySetStatus::Unsupported => Err(SecurityStatus::Insecure(InsecureReason::UnsupportedAlgorithms)),
        KeySetStatus::Bogus(reason) => Err(SecurityStatus::Bogus(reason.clone())),
    }
}

/// Whether the question section of the response is empty or has only this question.
fn is_response_to(question: Question<'_>, response: &Message) -> bool {
    let is_same = |other: &message::Question| {
        other.name.view() == question.name && other.rtype == question.rtype && other.class == Class::IN
    };
    response.questions.len() <= 1 && response.questions.iter().all(is_same)
}
