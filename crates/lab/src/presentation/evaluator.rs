//! Evaluation of expressions and templates: filters, functions, and the steps of `each`.
//!
//! If an operand of `over`, `times` or `plus` is missing, the result is missing. A missing figure
//! is printed as a dash.

use super::PresentationError;
use crate::measure::subject::experimental;
use crate::process::CPU_STEP_US;
use crate::published;
use crate::report::{self, figure, grouped, ratio};
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, Error, UndefinedBehavior};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::MECHANISMS;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Maximum number of evaluation steps of one expression or template, so that a file cannot cause an
/// endless loop.
const FUEL: u64 = 50_000_000;

/// Maximum number of iterations of the steps of all `each` of one evaluator.
const ITERATIONS_MAX: u64 = 200_000;
/// Maximum number of steps of one `each`.
const STEPS_MAX: usize = 64;
/// Maximum number of decimals of a figure.
const DECIMALS_MAX: usize = 20;

/// Variables by name.
pub(crate) type Scope = BTreeMap<String, Value>;

/// Evaluator of expressions and templates.
pub(crate) struct Evaluator {
    environment: Environment<'static>,
    /// Number of iterations that are still permitted.
    iterations: Cell<u64>,
}

impl Default for Evaluator {
    fn default() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_fuel(Some(FUEL));
        add_filters(&mut environment);
        environment.add_function("find", |list: Value, wanted: Kwargs| -> Result<Value, Error> {
            Ok(matches(&list, &wanted)?.next().map(|(_, item)| item).unwrap_or_default())
        });
        environment.add_function("place", |list: Value, wanted: Kwargs| -> Result<Value, Error> {
            Ok(matches(&list, &wanted)?.next().map(|(place, _)| place).into())
        });
        environment.add_function("every", |list: Value, wanted: Kwargs| -> Result<Value, Error> {
            Ok(matches(&list, &wanted)?.map(|(_, item)| item).collect::<Vec<_>>().into())
        });
        environment.add_function("leaders", |list: Value, name: String| leaders(&list, &name));
        environment.add_function("exact", |value: f64| {
            Value::from(Serde(BTreeMap::from([("value", value), ("least", value), ("most", value)])))
        });
        environment.add_function("published", |id: String| Value::from(Serde(published::table(&id))));
        let entries =
            MECHANISMS.iter().map(|entry| BTreeMap::from([("name", entry.name), ("title", entry.title)]));
        environment.add_global("mechanisms", entries.collect::<Vec<_>>());
        Self { environment, iterations: Cell::new(ITERATIONS_MAX) }
    }
}

/// Returns the items whose attributes have the given values, with their indices.
fn matches(list: &Value, wanted: &Kwargs) -> Result<impl Iterator<Item = (usize, Value)> + use<>, Error> {
    let wanted: Vec<(String, Value)> =
        wanted.args().map(|name| Ok((name.to_owned(), wanted.get(name)?))).collect::<Result<_, Error>>()?;
    let is_it = move |item: &Value| {
        wanted.iter().all(|(name, value)| item.get_attr(name).is_ok_and(|found| found == *value))
    };
    Ok(list.try_iter()?.enumerate().filter(move |(_, item)| is_it(item)))
}

/// Returns the items with the lowest figure, sorted by it: the lowest, and those whose range of
/// `least` to `most` overlaps that of the lowest. `name` is the attribute with the range. Items
/// without the attribute are omitted.
fn leaders(list: &Value, name: &str) -> Result<Value, Error> {
    let end = |range: &Value, end: &str| range.get_attr(end).ok().and_then(|value| f64::try_from(value).ok());
    let mut items = Vec::new();
    for item in list.try_iter()? {
        let range = item.get_attr(name)?;
        if let (Some(value), Some(least), Some(most)) =
            (end(&range, "value"), end(&range, "least"), end(&range, "most"))
        {
            items.push((value, least, most, item));
        }
    }
    items.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, lowest, highest, _)) = items.first() else { return Ok(Value::from(())) };
    let (lowest, highest) = (*lowest, *highest);
    items.retain(|(_, least, most, _)| *least <= highest && lowest <= *most);
    Ok(items.into_iter().map(|(.., item)| item).collect::<Vec<_>>().into())
}

fn add_filters(environment: &mut Environment<'_>) {
    environment.add_filter("figure", |value: Option<f64>| print(value, figure));
    environment.add_filter("ratio", |value: Option<f64>| print(value, ratio));
    environment.add_filter("duration", |value: Option<f64>| print(value, report::duration));
    environment
        .add_filter("grouped", |value: Option<f64>| print(value, |value| grouped(value.round() as i64)));
    environment.add_filter("fixed", |value: Option<f64>, digits: usize| {
        let digits = digits.min(DECIMALS_MAX);
        print(value, |value| format!("{value:.digits$}"))
    });
    environment.add_filter("plain", |value: Option<f64>| print(value, |value| value.to_string()));
    environment.add_filter("over", |value: Option<f64>, by: Option<f64>| {
        value.zip(by).filter(|(_, by)| *by != 0.0).map(|(value, by)| value / by)
    });
    environment.add_filter("times", |value: Option<f64>, by: Option<f64>| {
        value.zip(by).map(|(value, by)| value * by)
    });
    environment.add_filter("plus", |value: Option<f64>, more: Option<f64>| {
        value.zip(more).map(|(value, more)| value + more)
    });
    environment.add_filter("steps", |total: Option<f64>, count: Option<f64>, unit: f64| {
        print(total.zip(count), |(total, count)| in_steps(total, count, unit))
    });
    environment.add_filter("mechanism", |name: String| {
        name.parse::<Mechanism>().map_or(name, |mechanism| mechanism.entry().title.to_owned())
    });
    environment.add_filter("fold", |text: String, width: usize| fold(&text, width, "  "));
    environment.add_filter("experimental", |name: String| experimental(&name));
    environment.add_filter("marked", |name: String| published::marked(&name));
    environment.add_filter("glance", |value: Option<f64>| {
        value.filter(|value| *value > 0.0).map_or_else(String::new, at_a_glance)
    });
}

/// Formats a ratio with one decimal, or two below one, for a quick overview.
fn at_a_glance(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.995 => format!("{ratio:.2}"),
        _ if ratio < 99.95 => format!("{ratio:.1}"),
        _ => figure(ratio),
    }
}

fn print<T>(value: Option<T>, form: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), form)
}

/// Formats the CPU time for each of `count` operations. `total` is in µs. If `total` is 0, the time
/// is less than one step of the kernel's clock; the result is then this upper bound with `<`.
fn in_steps(total: f64, count: f64, unit_us: f64) -> String {
    let count = count.max(1.0);
    if total > 0.0 {
        return figure(total / count / unit_us);
    }
    format!("<{}", figure(CPU_STEP_US as f64 / count / unit_us))
}

/// Wraps `text` between words, in lines of at most `width` characters. Lines after the first begin
/// with `indent`.
pub(crate) fn fold(text: &str, width: usize, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

impl Evaluator {
    /// Evaluates an expression. The value of an empty expression is missing.
    pub(super) fn value(&self, text: &str, scope: &Scope) -> Result<Value, PresentationError> {
        if text.is_empty() {
            return Ok(Value::from(()));
        }
        let fault = |source| PresentationError::Expression { text: text.to_owned(), source };
        let expression = self.environment.compile_expression_owned(text.to_owned()).map_err(fault)?;
        expression.eval(scope).map_err(fault)
    }

    /// Evaluates an expression as a number. Returns `None` if the value is not a finite number.
    pub(super) fn number(&self, text: &str, scope: &Scope) -> Result<Option<f64>, PresentationError> {
        Ok(f64::try_from(self.value(text, scope)?).ok().filter(|number| number.is_finite()))
    }

    pub(super) fn text(&self, text: &str, scope: &Scope) -> Result<String, PresentationError> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        let fault = |source| PresentationError::Expression { text: text.to_owned(), source };
        self.environment.render_str(text, scope).map_err(fault)
    }

    /// Evaluates an expression or a template as text. A missing value is a dash.
    pub(super) fn cell(&self, text: &str, scope: &Scope) -> Result<String, PresentationError> {
        if text.contains("{{") {
            return self.text(text, scope);
        }
        let value = self.value(text, scope)?;
        Ok(if value.is_none() || value.is_undefined() { "–".to_owned() } else { value.to_string() })
    }

    /// Executes steps and calls `take` with each resulting scope: `NAME in LIST` iterates over a
    /// list, `NAME = VALUE` defines a name, `if CONDITION` continues only if the condition is true.
    pub(super) fn each(
        &self,
        steps: &[String],
        scope: &Scope,
        take: &mut dyn FnMut(&Scope) -> Result<(), PresentationError>,
    ) -> Result<(), PresentationError> {
        let left = self.iterations.get().checked_sub(1).filter(|_| steps.len() <= STEPS_MAX);
        self.iterations.set(left.ok_or(PresentationError::TooManySteps)?);
        let Some((step, rest)) = steps.split_first() else { return take(scope) };
        if let Some(condition) = step.strip_prefix("if ") {
            return if self.value(condition, scope)?.is_true() {
                self.each(rest, scope, take)
            } else {
                Ok(())
            };
        }
        let is_name = |name: &str| name.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'_');
        let named = |mark: &str| step.split_once(mark).filter(|(name, _)| is_name(name));
        let mut inner = scope.clone();
        if let Some((name, list)) = named(" in ") {
            let fault = |source| PresentationError::Expression { text: step.clone(), source };
            for item in self.value(list, scope)?.try_iter().map_err(fault)? {
                inner.insert(name.to_owned(), item);
                self.each(rest, &inner, take)?;
            }
            return Ok(());
        }
        let (name, value) = named(" = ").ok_or_else(|| PresentationError::Step(step.clone()))?;
        inner.insert(name.to_owned(), self.value(value, scope)?);
        self.each(rest, &inner, take)
    }

    /// Returns a value for each scope that the steps generate.
    pub(super) fn list<T>(
        &self,
        steps: &[String],
        scope: &Scope,
        item: impl Fn(&Scope) -> Result<T, PresentationError>,
    ) -> Result<Vec<T>, PresentationError> {
        let mut items = Vec::new();
        self.each(steps, scope, &mut |scope| {
            items.push(item(scope)?);
            Ok(())
        })?;
        Ok(items)
    }

    pub(super) fn define(
        &self,
        definition: &super::Definition,
        scope: &Scope,
    ) -> Result<Value, PresentationError> {
        let value = |scope: &Scope| self.value(&definition.value, scope);
        if definition.each.is_empty() {
            value(scope)
        } else {
            Ok(self.list(&definition.each, scope, value)?.into())
        }
    }
}

#[cfg(test)]
impl Evaluator {
    /// Returns the names that expressions and templates use but do not define, without functions.
    pub(super) fn names<'t>(
        &self,
        expressions: impl Iterator<Item = &'t str>,
        templates: &[&str],
    ) -> Result<std::collections::BTreeSet<String>, PresentationError> {
        let fault = |text: &str| {
            let text = text.to_owned();
            move |source| PresentationError::Expression { text, source }
        };
        let mut names = std::collections::BTreeSet::new();
        for text in expressions {
            let expression = self.environment.compile_expression(text).map_err(fault(text))?;
            names.extend(expression.undeclared_variables(false));
        }
        for text in templates {
            let template = self.environment.template_from_str(text).map_err(fault(text))?;
            names.extend(template.undeclared_variables(false));
        }
        names.retain(|name| self.environment.globals().all(|(global, _)| global != name));
        Ok(names)
    }
}
