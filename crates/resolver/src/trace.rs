//! The steps in which a resolver validates answers, for programs that show the chain of trust. A server
//! records none.

use crate::task::ErrorDetail;
use crate::validation::Checking;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::validate::{InsecureReason, Validation};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, Rtype};
use std::sync::Arc;

/// Maximum number of steps between two calls of [`Resolver::take_trace`](crate::Resolver::take_trace);
/// further ones are not recorded.
const MAX_STEPS: usize = 1024;

/// One response, and what the validation decides about it.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// Name of the question, in lower case.
    pub name: Name,
    /// Type of the question.
    pub rtype: Rtype,
    /// The response.
    pub message: Arc<Message>,
    /// The decision.
    pub decision: Decision,
}

/// What a validation decides about a response.
#[derive(Clone, Debug)]
pub enum Decision {
    /// The keys of a zone have validated the response.
    Validated {
        /// The zone.
        zone: Name,
        /// Key tags and algorithms of its trusted keys. For a DNSKEY RRset, a DS RRset or trust anchor names
        /// them; otherwise, they are the keys of its DNSKEY RRset.
        keys: Vec<(u16, Algorithm)>,
        /// The result.
        validation: Box<Validation>,
    },
    /// The response is at or below this zone cut, outside the chain of trust.
    Insecure(Name, InsecureReason),
    /// The keys for the response are unknown: code (RFC 8914) and text of the extended error.
    NoKeys(u16, Box<str>),
}

/// The recorded steps; none unless recording is on.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    steps: Option<Vec<TraceStep>>,
}

impl Trace {
    pub(crate) fn start(&mut self) {
        self.steps.get_or_insert_default();
    }

    pub(crate) fn take(&mut self) -> Vec<TraceStep> {
        self.steps.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn validated(&mut self, checking: &Checking, validation: &Validation) {
        let Some(pending) = &checking.pending else { return };
        self.push(checking, || {
            let (zone, keys) = (pending.keys().apex().to_name(), pending.keys().tags().collect());
            Decision::Validated { zone, keys, validation: Box::new(validation.clone()) }
        });
    }

    pub(crate) fn insecure(&mut self, checking: &Checking, cut: &Name, reason: InsecureReason) {
        self.push(checking, || Decision::Insecure(cut.clone(), reason));
    }

    pub(crate) fn without_keys(&mut self, checking: &Checking, error: &ErrorDetail) {
        self.push(checking, || Decision::NoKeys(error.code, error.text.to_string().into()));
    }

    fn push(&mut self, checking: &Checking, decision: impl FnOnce() -> Decision) {
        let Some(steps) = self.steps.as_mut().filter(|steps| steps.len() < MAX_STEPS) else { return };
        let received = &checking.received;
        let (name, rtype, message) = (received.name.clone(), received.rtype, Arc::clone(&received.message));
        steps.push(TraceStep { name, rtype, message, decision: decision() });
    }
}
