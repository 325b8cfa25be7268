//! Progress display for long operations: a progress bar on a terminal, nothing otherwise.

use crate::logging;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use nonesuch_lab::experiment::Step;
use std::io::IsTerminal as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Minimum time before a rate is shown, in seconds, because a rate over a shorter time is
/// inaccurate.
const MIN_RATE_SECONDS: f64 = 0.2;
/// Time between two updates of the elapsed time of a [`spinner`].
const TICK: Duration = Duration::from_millis(100);

/// A progress bar with `total` steps and the name `label`. It is hidden if standard error is not a
/// terminal.
pub(crate) fn bar(total: u64, label: &str) -> ProgressBar {
    styled(total, label, "{msg:30} {wide_bar} {pos}/{len} {per_sec} {eta}")
}

/// Shows a step of an experiment on `bar`.
pub(crate) fn show_step(bar: &ProgressBar, step: Step<'_>) {
    bar.set_length(step.steps);
    bar.set_position(step.index);
    bar.set_message(step.what.to_owned());
}

/// A line with the elapsed time of `label`, for work of unknown duration. It is hidden like
/// [`bar`].
pub(crate) fn spinner(label: &str) -> ProgressBar {
    let line = styled(0, label, "{spinner} {msg} {elapsed}");
    if !line.is_hidden() {
        line.enable_steady_tick(TICK);
    }
    line
}

fn styled(total: u64, label: &str, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !logging::is_quiet() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    set_template(&bar, template);
    bar.set_message(label.to_owned());
    bar
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// A count of completed items of one kind.
#[derive(Clone, Copy)]
pub(crate) struct ProgressCount {
    pub(crate) done: u64,
    /// The plural name of the kind.
    pub(crate) name: &'static str,
}

/// A line that shows the elapsed time. From the first step on, it is a progress bar with the rates
/// per second of several counts, and with the remaining time, which is estimated from the steps.
pub(crate) struct RateBar {
    bar: ProgressBar,
    label: &'static str,
    /// Time and counts at the first step, from which the rates are computed. Earlier work, for
    /// example reading, is not included.
    first: OnceLock<(Instant, Vec<u64>)>,
}

impl RateBar {
    /// A line with the name `label`. Each step sets the length of the bar.
    pub(crate) fn new(label: &'static str) -> Self {
        Self { bar: spinner(label), label, first: OnceLock::new() }
    }

    /// Whether the line is visible.
    pub(crate) fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows that `done` of `total` steps are completed, and the rates of `counts`.
    pub(crate) fn show(&self, done: u64, total: u64, counts: &[ProgressCount]) {
        let (started_at, before) = self.first.get_or_init(|| {
            set_template(&self.bar, "{msg} {wide_bar} {percent} %, {eta} left");
            self.bar.reset_eta();
            (Instant::now(), counts.iter().map(|count| count.done).collect())
        });
        self.bar.set_length(total);
        self.bar.set_position(done);
        let seconds = started_at.elapsed().as_secs_f64();
        if seconds > MIN_RATE_SECONDS {
            self.bar.set_message(format!("{}: {}", self.label, rates(counts, before, seconds)));
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The rates of `counts` as text: the increase since `before`, per second, during `seconds`.
fn rates(counts: &[ProgressCount], before: &[u64], seconds: f64) -> String {
    let each = counts.iter().zip(before).map(|(count, before)| {
        format!("{} {}/s", rate(count.done.saturating_sub(*before), seconds), count.name)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The rate of `count` items in `seconds`, per second.
pub(crate) fn rate(count: u64, seconds: f64) -> HumanCount {
    HumanCount((count as f64 / seconds.max(1e-6)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_exclude_work_before_the_first_step() {
        let counts = [
            ProgressCount { done: 1_500, name: "signatures" },
            ProgressCount { done: 2_000_100, name: "records" },
        ];
        assert_eq!(rates(&counts, &[500, 100], 2.0), "500 signatures/s, 1,000,000 records/s");
        assert_eq!(rates(&[ProgressCount { done: 7, name: "names" }], &[7], 1.0), "0 names/s");
    }
}
