//! Claims of publications: a published figure, the figure that an experiment measured, and whether
//! they agree.
//!
//! The expressions of a claim can use the names of the report of its experiment, in addition
//! `theirs` for the published figure, `value` for the measured one, and `quotient` for the measured
//! figure divided by the published one.

use super::render::RenderResult;
use super::{Definition, Evaluator, Scope};
use minijinja::value::{Value, ValueKind};
use serde::{Deserialize, Serialize};

/// Condition of a claim without its own: both figures agree within 30 %, as in the reports.
const AGREES: &str = "quotient >= 0.7 and quotient <= 1.3";
/// Description of [`AGREES`].
const RULE: &str = "agrees within 30 %";

/// A claim in `experiments/overview.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimForm {
    /// Short name.
    pub(crate) name: String,
    /// The claim, as a sentence.
    pub(crate) text: String,
    /// Page, section, figure or slide of the publication.
    pub(crate) place: String,
    /// Name of the experiment that measures the claim; empty: none.
    #[serde(default)]
    pub(crate) experiment: String,
    /// Definitions for the following expressions.
    #[serde(default)]
    define: Vec<Definition>,
    /// Expression for the published figure.
    #[serde(default)]
    theirs: String,
    /// Template of the published figure as text.
    published: String,
    /// Expression for the measured figure, or a list of figures. The claim is not measured if it is
    /// missing, or if an item of the list is.
    #[serde(default)]
    value: String,
    /// Template of the measured figure as text.
    #[serde(default)]
    measured: String,
    /// Condition under which the claim agrees with the measurement. Default: [`AGREES`].
    #[serde(default)]
    agrees: String,
    /// Description of the condition.
    #[serde(default)]
    rule: String,
    /// Template of the likely reason, if the claim differs from the measurement.
    #[serde(default)]
    reason: String,
    /// Why no experiment measures the claim.
    #[serde(default)]
    pub(crate) unmeasured: String,
}

/// Whether a claim agrees with what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Agrees,
    Differs,
    NotMeasured,
}

/// A claim compared with the results of its experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) published: String,
    /// The measured figure as text; empty if it is missing.
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
    /// Reason of a difference, or why nothing was measured; empty otherwise.
    pub(crate) reason: String,
}

impl ClaimForm {
    /// Whether an experiment measures the claim.
    pub(crate) fn is_bound(&self) -> bool {
        !self.value.is_empty()
    }

    /// Describes the condition under which the claim agrees; empty if no experiment measures the
    /// claim.
    pub(crate) fn rule(&self) -> &str {
        if !self.is_bound() {
            ""
        } else if self.rule.is_empty() {
            RULE
        } else {
            &self.rule
        }
    }

    /// Returns the published figure as text, which depends on no results.
    pub(crate) fn published(&self) -> RenderResult<String> {
        let evaluator = Evaluator::default();
        let mut scope = Scope::new();
        scope.insert("theirs".to_owned(), evaluator.value(&self.theirs, &scope)?);
        evaluator.trimmed(&self.published, &scope)
    }

    /// Compares the claim with results, whose names are in `scope`. The result of a failing
    /// expression is a claim that is not measured, with the error as the reason.
    pub(crate) fn judge(&self, scope: &Scope) -> Judgement {
        let unmeasured = |reason: String| Judgement {
            published: self.published().unwrap_or_default(),
            measured: String::new(),
            verdict: Verdict::NotMeasured,
            reason,
        };
        match self.compare(scope) {
            Ok(Some(judgement)) => judgement,
            Ok(None) => unmeasured("The results do not contain the figure.".to_owned()),
            Err(error) => unmeasured(format!("The figure cannot be computed: {error}.")),
        }
    }

    /// Returns `None` if a figure is missing.
    fn compare(&self, scope: &Scope) -> RenderResult<Option<Judgement>> {
        let evaluator = Evaluator::default();
        let scope = self.figures(&evaluator, scope)?;
        if scope.get("value").is_none_or(is_missing) {
            return Ok(None);
        }
        let agrees = evaluator.value(self.condition(), &scope)?;
        if is_missing(&agrees) {
            return Ok(None);
        }
        let verdict = if agrees.is_true() { Verdict::Agrees } else { Verdict::Differs };
        let reason = if verdict == Verdict::Differs {
            evaluator.trimmed(&self.reason, &scope)?
        } else {
            String::new()
        };
        let measured = evaluator.trimmed(&self.measured, &scope)?;
        Ok(Some(Judgement { published: self.published()?, measured, verdict, reason }))
    }

    /// Returns `scope` with the definitions and the figures of the claim.
    fn figures(&self, evaluator: &Evaluator, scope: &Scope) -> RenderResult<Scope> {
        let mut scope = scope.clone();
        for definition in &self.define {
            let value = evaluator.define(definition, &scope)?;
            scope.insert(definition.name.clone(), value);
        }
        for (name, text) in [("theirs", &self.theirs), ("value", &self.value)] {
            let value = evaluator.value(text, &scope)?;
            scope.insert(name.to_owned(), value);
        }
        let quotient =
            evaluator.value("value|over(theirs) if value is number and theirs is number", &scope)?;
        scope.insert("quotient".to_owned(), quotient);
        Ok(scope)
    }

    fn condition(&self) -> &str {
        if self.agrees.is_empty() { AGREES } else { &self.agrees }
    }
}

/// Whether a value, or an item of a list, is missing.
fn is_missing(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => true,
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().is_ok_and(|mut items| items.any(|item| is_missing(&item)))
        }
        _ => false,
    }
}

#[cfg(test)]
impl ClaimForm {
    /// Evaluates all expressions, also those that need a figure, and returns the names that they
    /// use but do not define.
    pub(crate) fn try_out(&self, scope: &Scope) -> RenderResult<std::collections::BTreeSet<String>> {
        let evaluator = Evaluator::default();
        let scope = self.figures(&evaluator, scope)?;
        let texts = [&self.published, &self.measured, &self.reason];
        for text in texts {
            evaluator.text(text, &scope)?;
        }
        evaluator.value(self.condition(), &scope)?;
        self.published()?;
        let steps = |definition: &Definition| definition.each.iter().any(|step| !step.is_empty());
        assert!(!self.define.iter().any(steps), "{}: use a list in `value` instead of steps", self.name);
        let expressions = self.define.iter().map(|definition| definition.value.as_str());
        let expressions = expressions.chain([&self.theirs, &self.value, self.condition()].map(|text| text));
        let mut names =
            evaluator.names(expressions.filter(|text| !text.is_empty()), &texts.map(String::as_str))?;
        names.retain(|name| !scope.contains_key(name));
        Ok(names)
    }

    /// Whether the claim states all that a bound claim needs.
    pub(crate) fn is_complete(&self) -> bool {
        let has_rule = self.agrees.is_empty() == self.rule.is_empty();
        !self.is_bound() || (!self.measured.is_empty() && !self.reason.is_empty() && has_rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str = r#"
        name = "twice"
        text = "One is twice as fast as the other."
        place = "page 3"
        experiment = "speed"
        define = [{ name = "one", value = "find(lines, name='one')" }]
        theirs = "2"
        published = "{{ theirs }} times"
        value = "one.rate|over(find(lines, name='other').rate)"
        measured = "{{ value|ratio }} times"
        reason = "{{ quotient|ratio }} of the publication."
    "#;

    fn judge(claim: &str, rates: &[(&str, f64)]) -> Judgement {
        let claim: ClaimForm = toml::from_str(claim).expect("a claim");
        let line = |(name, rate): &(&str, f64)| {
            Scope::from([("name".to_owned(), Value::from(*name)), ("rate".to_owned(), Value::from(*rate))])
        };
        let lines: Vec<Scope> = rates.iter().map(line).collect();
        claim.judge(&Scope::from([("lines".to_owned(), lines.into())]))
    }

    fn judgement(measured: &str, verdict: Verdict, reason: &str) -> Judgement {
        let text = str::to_owned;
        Judgement { published: text("2 times"), measured: text(measured), verdict, reason: text(reason) }
    }

    #[test]
    fn figures_within_30_percent_agree() {
        for (rate, expected) in [
            (24.0, judgement("2.40 times", Verdict::Agrees, "")),
            (14.5, judgement("1.45 times", Verdict::Agrees, "")),
            (30.0, judgement("3.00 times", Verdict::Differs, "1.50 of the publication.")),
            (13.0, judgement("1.30 times", Verdict::Differs, "0.65 of the publication.")),
        ] {
            assert_eq!(judge(CLAIM, &[("one", rate), ("other", 10.0)]), expected);
        }
    }

    #[test]
    fn a_claim_without_its_figure_is_not_measured() {
        for rates in [&[("one", 1.0)][..], &[("one", 1.0), ("other", 0.0)], &[]] {
            let found = judge(CLAIM, rates);
            assert_eq!((found.verdict, found.published.as_str()), (Verdict::NotMeasured, "2 times"));
            assert!(found.measured.is_empty() && found.reason.contains("do not contain"), "{found:?}");
        }
        // A list needs all its figures.
        let list = format!("agrees = \"true\"\n{CLAIM}");
        let list = list.replace("\"one.rate|", "\"[1, one.rate|").replace("rate)\"", "rate)]\"");
        let list = list.replace("{{ value|ratio }}", "{{ value|length }}");
        assert_eq!(judge(&list, &[("one", 1.0)]).verdict, Verdict::NotMeasured);
        assert_eq!(judge(&list, &[("one", 1.0), ("other", 1.0)]).verdict, Verdict::Agrees);
    }

    #[test]
    fn a_claim_with_a_failing_expression_is_not_measured() {
        for (old, new) in
            [("one.rate|over", "one.rate|none_such"), ("{{ value|ratio }}", "{{ value|none_such }}")]
        {
            let found = judge(&CLAIM.replace(old, new), &[("one", 1.0), ("other", 1.0)]);
            assert_eq!((found.verdict, found.published.as_str()), (Verdict::NotMeasured, "2 times"));
            assert!(found.reason.contains("none_such"), "{found:?}");
        }
    }
}
