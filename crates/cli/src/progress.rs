//! Progress of long work: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;

/// A bar of `total` steps named `what`; hidden where standard error is no terminal.
pub(crate) fn bar(total: u64, what: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template("{msg:30} {wide_bar} {pos}/{len} {per_sec} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}
