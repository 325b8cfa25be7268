//! What an item finds at several servers, and the outcome that follows.

use crate::check::Outcome;
use crate::check::texts::{listed, push_new};

/// Maximum number of faults in the text of an outcome.
const FAULTS_SHOWN: usize = 6;

/// The observations of an item.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    faults: Vec<String>,
    notes: Vec<String>,
    /// Why something was not tested.
    skipped: Vec<String>,
    /// Number of servers, records or names that were tested.
    tested: usize,
}

impl Findings {
    /// A violation of the rule.
    pub(super) fn fault(&mut self, text: impl Into<String>) {
        self.tested += 1;
        push_new(&mut self.faults, text.into());
    }

    /// An observation that violates no rule.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        push_new(&mut self.notes, text.into());
    }

    /// Something that obeys the rule.
    pub(super) const fn good(&mut self) {
        self.tested += 1;
    }

    /// Something that could not be tested; completes the sentence "could not verify this because …".
    pub(super) fn skip(&mut self, text: impl Into<String>) {
        push_new(&mut self.skipped, text.into());
    }

    /// A fault if `fault` is some, otherwise something that obeys the rule.
    pub(super) fn check(&mut self, fault: Option<String>) {
        match fault {
            Some(text) => self.fault(text),
            None => self.good(),
        }
    }

    /// As [`outcome`](Self::outcome), without notes about skipped tests.
    pub(super) fn outcome_without_skips(mut self) -> Outcome {
        if self.tested > 0 {
            self.skipped.clear();
        }
        self.outcome()
    }

    pub(super) fn outcome(self) -> Outcome {
        if !self.faults.is_empty() {
            return Outcome::Fail(listed(&self.faults, FAULTS_SHOWN));
        }
        if self.tested == 0 {
            let reason = listed(&self.skipped, FAULTS_SHOWN);
            return Outcome::NotTestable(if reason.is_empty() {
                "there is nothing to test".to_owned()
            } else {
                reason
            });
        }
        let skipped = self.skipped.into_iter().map(|text| format!("not tested: {text}"));
        let notes: Vec<String> = self.notes.into_iter().chain(skipped).collect();
        Outcome::Pass(listed(&notes, FAULTS_SHOWN))
    }
}
