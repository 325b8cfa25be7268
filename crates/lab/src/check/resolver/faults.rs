//! Items about the planted faults of the zones.

use super::super::texts::{listed, push_new};
use super::super::{Evidence, Outcome};
use super::context::{ResolverCheck, Status, describe};
use crate::tree::{Expectation, Fault, Outcome as Expected, TreeZone};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_proto::Name;
use nonesuch_proto::message::{Rcode, Section};
use std::collections::BTreeMap;

/// Whether the zone has NSEC5, which only experimental resolvers know.
pub(super) fn has_nsec5(zone: &TreeZone) -> bool {
    zone.description.denial.name_hash() == NameHash::Vrf
}

/// Maximum number of questions about a zone with a fault.
const QUESTIONS: usize = 2;

/// Whether the NSEC record of the delegation does not belong to a delegation. A secure answer, such as that to a
/// query for DS, puts the record into the cache, and then it may deny the names of the child (RFC 8198 §5.1).
/// An answer must not be secure.
const fn denies_child(fault: Fault) -> bool {
    matches!(fault, Fault::NoNsBit | Fault::SoaBitAtDelegation)
}

/// The results of an item with several questions.
#[derive(Debug, Default)]
pub(in crate::check) struct Findings {
    failures: Vec<String>,
    notes: Vec<String>,
}

/// Maximum number of failures that a result lists.
const LISTED: usize = 4;

impl Findings {
    /// Adds a result.
    pub(in crate::check) fn add(&mut self, result: Result<(), String>) {
        self.failures.extend(result.err());
    }

    /// Adds an observation that is no failure.
    pub(in crate::check) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            push_new(&mut self.notes, text);
        }
    }

    /// A failure if this is not true.
    pub(in crate::check) fn require(&mut self, is_true: bool, failure: impl FnOnce() -> String) {
        if !is_true {
            self.failures.push(failure());
        }
    }

    /// The outcome: a failure if there is one, else a pass with the notes.
    pub(in crate::check) fn outcome(self) -> Outcome {
        let Self { failures, notes } = self;
        if failures.is_empty() {
            return Outcome::Pass(notes.join("; "));
        }
        Outcome::Fail(listed(&failures, LISTED))
    }
}

/// The statuses that the rules permit for an answer with a fault; the first is that of the table of faults.
fn permitted(fault: Fault) -> Vec<Status> {
    use Status::{Fails, Insecure, Secure};
    let expected = match fault.entry().outcome {
        Expected::Secure => Secure,
        Expected::Insecure => Insecure,
        _ => Fails,
    };
    let also: &[Status] = match fault {
        // RFC 9276 §3.2: the validator chooses both limits, or has none.
        Fault::Nsec3Iterations51 | Fault::Nsec3Iterations | Fault::Nsec3Iterations500 => &[Secure, Fails],
        Fault::Nsec3Iterations501 | Fault::ExcessiveNsec3Iterations => &[Secure, Insecure],
        // A limit for the work of a validator is local policy.
        Fault::DeepNsec3 => &[Secure, Insecure],
        Fault::LargeRrset => &[Fails],
        // RFC 6840 §4.1 forbids that the record denies the name, and it states an unsigned delegation.
        Fault::DelegationBitAboveName => &[Insecure],
        // RFC 5155 §7.2 replaces NSEC records in responses; §8 does not forbid a second proof.
        Fault::MixedDenial => &[Secure],
        // RFC 4034 §4.1.1 forbids the record in a zone; RFC 4035 §5.4 compares only the order of names.
        Fault::NextNameOutsideZone => &[Secure],
        // RFC 6672 §3.4: the resolver generates the CNAME record from the DNAME record. The item compares
        // the target.
        Fault::ForgedCname => &[Secure],
        _ => &[],
    };
    [expected].into_iter().chain(also.iter().copied()).collect()
}

impl ResolverCheck {
    /// Checks the answers with these faults.
    pub(super) fn check_faults(&mut self, evidence: &mut Evidence, faults: &[Fault]) -> Outcome {
        let mut findings = Findings::default();
        for fault in faults {
            self.add_fault(evidence, *fault, &mut findings);
        }
        findings.outcome()
    }

    /// Asks the questions that show a fault, and adds the results.
    pub(super) fn add_fault(&mut self, evidence: &mut Evidence, fault: Fault, findings: &mut Findings) {
        let questions = self.questions(fault, |zone| !has_nsec5(zone));
        self.add_questions(evidence, fault, questions, findings);
    }

    /// As [`ResolverCheck::add_fault`], in the zones with NSEC5.
    pub(super) fn add_nsec5_fault(&mut self, evidence: &mut Evidence, fault: Fault, findings: &mut Findings) {
        let questions = self.questions(fault, has_nsec5);
        self.add_questions(evidence, fault, questions, findings);
    }

    fn add_questions(
        &mut self,
        evidence: &mut Evidence,
        fault: Fault,
        questions: Vec<Expectation>,
        findings: &mut Findings,
    ) {
        let permitted = permitted(fault);
        findings
            .require(!questions.is_empty(), || format!("{fault}: the check has no question for this fault"));
        for question in questions {
            match self.result_of(evidence, &question) {
                Err(fault) => findings.add(Err(fault)),
                Ok(found) if !permitted.contains(&found) => {
                    let (name, rtype) = (&question.name, question.rtype);
                    let expected = permitted[0].name();
                    findings.add(Err(format!(
                        "{fault}: {name} {rtype}: expected {expected}, observed {}",
                        found.name()
                    )));
                }
                Ok(found) if permitted.len() > 1 => findings.note(format!("{fault}: {}", found.name())),
                Ok(_) => {}
            }
        }
    }

    /// The status of an answer, which must have the RCODE of the zone's servers unless it fails.
    pub(super) fn result_of(
        &mut self,
        evidence: &mut Evidence,
        question: &Expectation,
    ) -> Result<Status, String> {
        let (name, rtype) = (&question.name, question.rtype);
        let asked = self.lookup(evidence, name, rtype);
        let found = asked.status().map_err(|fault| format!("{name} {rtype}: {fault}"))?;
        let response = asked.ok()?;
        let rcode = response.message.rcode();
        let has_answer = response.message.section(Section::Answer).next().is_some();
        if found == Status::Secure && !has_answer && question.fault.is_some_and(denies_child) {
            return Ok(Status::Fails);
        }
        if found != Status::Fails && rcode != question.rcode {
            return Err(format!(
                "{name} {rtype}: expected {}, observed {}",
                question.rcode,
                describe(found, rcode)
            ));
        }
        Ok(found)
    }

    /// The questions that show a fault: at most [`QUESTIONS`] about each zone, the denials of names first.
    pub(super) fn questions(&self, fault: Fault, is_wanted: impl Fn(&TreeZone) -> bool) -> Vec<Expectation> {
        let domain = self.domain();
        let mut by_zone: BTreeMap<Name, Vec<Expectation>> = BTreeMap::new();
        for expected in self.expectations().iter().filter(|expected| expected.fault == Some(fault)) {
            if let Some(zone) = self.tree().zone_of(expected.name.view()) {
                // The resolver knows the address of the nameserver from the referral.
                if expected.name != zone.nameserver
                    && expected.name.view().is_below(domain.view())
                    && is_wanted(zone)
                {
                    by_zone.entry(zone.origin.clone()).or_default().push(expected.clone());
                }
            }
        }
        let of_zone = |mut questions: Vec<Expectation>| {
            questions.sort_by_key(|question| question.rcode != Rcode::NXDOMAIN);
            // The first and the last one differ most.
            if questions.len() > QUESTIONS {
                questions.drain(1..questions.len() - 1);
            }
            questions
        };
        by_zone.into_values().flat_map(of_zone).collect()
    }
}
