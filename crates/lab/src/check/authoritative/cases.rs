//! The cases of an item: an item passes if all its cases pass.

use super::super::Outcome;
use super::super::texts::push_new;
use super::Fault;

/// The results of cases so far.
#[derive(Debug, Default)]
pub(super) struct Cases {
    passed: usize,
    /// Cases that failed, and why. Cases with the same fault are together.
    failed: Vec<(String, Fault)>,
    failures: usize,
    notes: Vec<String>,
    /// Why cases were not run.
    skipped: Vec<String>,
}

impl Cases {
    /// Adds the result of a case.
    pub(super) fn add(&mut self, case: &str, result: Result<(), Fault>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(fault) => {
                self.failures += 1;
                match self.failed.iter_mut().find(|(_, known)| *known == fault) {
                    Some((cases, _)) => *cases = format!("{cases}, {case}"),
                    None => self.failed.push((case.to_owned(), fault)),
                }
            }
        }
    }

    /// Whether a case has passed.
    pub(super) const fn has_passed(&self) -> bool {
        self.passed > 0
    }

    /// Adds an observation to the text of a pass. Equal observations count once.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        push_new(&mut self.notes, note.into());
    }

    /// Adds the reason for which a case was not run; completes the sentence "could not verify this
    /// because …".
    pub(super) fn skip(&mut self, reason: impl Into<String>) {
        push_new(&mut self.skipped, reason.into());
    }

    /// The result of the item.
    pub(super) fn outcome(self) -> Outcome {
        let Self { passed, failed, failures, notes, skipped } = self;
        if !failed.is_empty() {
            let texts: Vec<String> =
                failed.into_iter().map(|(cases, fault)| format!("{cases}: {fault}")).collect();
            return Outcome::Fail(format!("{failures} of {} cases: {}", passed + failures, texts.join("; ")));
        }
        if passed == 0 {
            return Outcome::NotTestable(skipped.join("; "));
        }
        let skipped = skipped.into_iter().map(|reason| format!("partly not verified because {reason}"));
        Outcome::Pass(notes.into_iter().chain(skipped).collect::<Vec<_>>().join("; "))
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
        cases.add("c", Err("silence".to_owned()));
        cases.add("d", Err("expected TC".to_owned()));
        let text = "3 of 4 cases: b, d: expected TC; c: silence";
        assert_eq!(cases.outcome(), Outcome::Fail(text.to_owned()));
    }
}
