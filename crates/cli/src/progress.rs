//! Progress of long work: a bar on a terminal, nothing in a pipe.

use crate::logging;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use nonesuch_lab::experiment::Step;
use std::io::IsTerminal as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Seconds before which a rate says little.
const SETTLED: f64 = 0.2;
/// Time between two drawings of what has no steps.
const TICK: Duration = Duration::from_millis(100);

/// A bar of `total` steps named `what`; hidden where standard error is no terminal.
pub(crate) fn bar(total: u64, what: &str) -> ProgressBar {
    styled(total, what, "{msg:30} {wide_bar} {pos}/{len} {per_sec} {eta}")
}

/// Shows the step of an experiment.
pub(crate) fn show(bar: &ProgressBar, step: Step<'_>) {
    bar.set_length(step.steps);
    bar.set_position(step.index);
    bar.set_message(step.what.to_owned());
}

/// A line that says since when `what` goes on, for work whose end cannot be foretold; hidden as [`bar`].
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let line = styled(0, what, "{spinner} {msg} {elapsed}");
    if !line.is_hidden() {
        line.enable_steady_tick(TICK);
    }
    line
}

fn styled(total: u64, what: &str, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !logging::is_quiet() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    set_template(&bar, template);
    bar.set_message(what.to_owned());
    bar
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// How many of a kind of things are done.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    pub(crate) done: u64,
    /// The name of the kind, in the plural.
    pub(crate) name: &'static str,
}

/// A line that says since when something goes on, and from its first step on a bar whose message says how many of several
/// things are done in a second; time left is by the steps.
pub(crate) struct Rates {
    bar: ProgressBar,
    what: &'static str,
    /// When the first step was told, and what was done then: what comes before the steps is not in the rates.
    first: OnceLock<(Instant, Vec<u64>)>,
}

impl Rates {
    /// A line named `what`; the length of the bar is told with each step.
    pub(crate) fn new(what: &'static str) -> Self {
        Self { bar: spinner(what), what, first: OnceLock::new() }
    }

    /// Whether anybody sees it.
    pub(crate) fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows that `done` steps of `total` are done, and how far each of `counts` is.
    pub(crate) fn show(&self, done: u64, total: u64, counts: &[Count]) {
        let (begun, before) = self.first.get_or_init(|| {
            set_template(&self.bar, "{msg} {wide_bar} {percent} %, {eta} left");
            self.bar.reset_eta();
            (Instant::now(), counts.iter().map(|count| count.done).collect())
        });
        self.bar.set_length(total);
        self.bar.set_position(done);
        let seconds = begun.elapsed().as_secs_f64();
        if seconds > SETTLED {
            self.bar.set_message(format!("{}: {}", self.what, rates(counts, before, seconds)));
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// How many of each of `counts` came in each of `seconds`, to what was there `before`.
fn rates(counts: &[Count], before: &[u64], seconds: f64) -> String {
    let each = counts.iter().zip(before).map(|(count, before)| {
        format!("{} {}/s", rate(count.done.saturating_sub(*before), seconds), count.name)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// How many of `count` there were in each of `seconds`.
pub(crate) fn rate(count: u64, seconds: f64) -> HumanCount {
    HumanCount((count as f64 / seconds.max(1e-6)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_leave_out_what_was_done_before_the_first_step() {
        let counts = [Count { done: 1_500, name: "signatures" }, Count { done: 2_000_100, name: "records" }];
        assert_eq!(rates(&counts, &[500, 100], 2.0), "500 signatures/s, 1,000,000 records/s");
        assert_eq!(rates(&[Count { done: 7, name: "names" }], &[7], 1.0), "0 names/s");
    }
}
