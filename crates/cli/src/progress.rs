//! Progress of long work: a bar on a terminal, nothing in a pipe.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Seconds before which a rate says little.
const SETTLED: f64 = 0.2;
/// Time between two drawings of what has no steps.
const TICK: Duration = Duration::from_millis(100);

/// A bar of `total` steps named `what`; hidden where standard error is no terminal.
pub(crate) fn bar(total: u64, what: &str) -> ProgressBar {
    styled(total, what, "{msg:30} {wide_bar} {pos}/{len} {per_sec} {eta}")
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
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// A bar whose message says how many of several things are done in a second; time left is by its steps.
pub(crate) struct Rates {
    bar: ProgressBar,
    what: &'static str,
    begun: Instant,
}

impl Rates {
    /// A bar named `what`; its length is told with each step.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = styled(1, what, "{msg} {wide_bar} {percent} %, {eta} left");
        Self { bar, what, begun: Instant::now() }
    }

    /// Whether anybody sees it.
    pub(crate) fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// `done` steps of `total` are done, and of each of `counts` so many.
    pub(crate) fn tell(&self, done: u64, total: u64, counts: [(u64, &str); 2]) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let seconds = self.begun.elapsed().as_secs_f64();
        if seconds > SETTLED {
            let [first, second] = counts.map(|(count, name)| format!("{} {name}/s", rate(count, seconds)));
            self.bar.set_message(format!("{}: {first}, {second}", self.what));
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// How many of `count` there were in each of `seconds`.
pub(crate) fn rate(count: u64, seconds: f64) -> HumanCount {
    HumanCount((count as f64 / seconds.max(1e-6)) as u64)
}
