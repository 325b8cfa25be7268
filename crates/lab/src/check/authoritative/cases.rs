//! The cases of an item: an item passes if all its cases pass.

use super::super::Outcome;
use super::Fault;

/// The results of cases so far.
#[derive(Debug, Default)]
pub(super) struct Cases {
    passed: usize,
    failed: Vec<String>,
    notes: Vec<String>,
    /// Why cases were not run.
    skipped: Vec<String>,
}

impl Cases {
    /// Adds the result of a case.
    pub(super) fn add(&mut self, case: &str, result: Result<(), Fault>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(fault) => self.failed.push(format!("{case}: {fault}")),
        }
    }

    /// Adds an observation to the text of a pass. Equal observations count once.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        push_once(&mut self.notes, note.into());
    }

    /// Adds the reason for which a case was not run; completes the sentence "could not verify this
    /// because …".
    pub(super) fn skip(&mut self, reason: impl Into<String>) {
        push_once(&mut self.skipped, reason.into());
    }

    /// The result of the item.
    pub(super) fn outcome(self) -> Outcome {
        let Self { passed, failed, notes, skipped } = self;
        if !failed.is_empty() {
            let count = passed + failed.len();
            return Outcome::Fail(format!("{} of {count} cases: {}", failed.len(), failed.join("; ")));
        }
        if passed == 0 {
            return Outcome::NotTestable(skipped.join("; "));
        }
        let skipped = skipped.into_iter().map(|reason| format!("partly not verified because {reason}"));
        Outcome::Pass(notes.into_iter().chain(skipped).collect::<Vec<_>>().join("; "))
    }
}

fn push_once(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_passes_if_no_case_fails_and_one_was_run() {
        let mut cases = Cases::default();
        cases.skip("the zone is unsigned");
        assert_eq!(cases.outcome(), Outcome::NotTestable("the zone is unsigned".to_owned()));
        let mut cases = Cases::default();
        cases.add("a", Ok(()));
        cases.note("a note");
        cases.note("a note");
        cases.skip("the zone is unsigned");
        let text = "a note; partly not verified because the zone is unsigned";
        assert_eq!(cases.outcome(), Outcome::Pass(text.to_owned()));
        let mut cases = Cases::default();
        cases.add("a", Ok(()));
        cases.add("b", Err("expected TC".to_owned()));
        assert_eq!(cases.outcome(), Outcome::Fail("1 of 2 cases: b: expected TC".to_owned()));
    }
}
