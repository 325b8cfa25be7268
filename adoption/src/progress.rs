//! Progress of long work: a bar on a terminal, nothing otherwise.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, stderr};

/// A bar with `total` steps of this name.
pub(crate) fn bar(total: usize, name: &'static str) -> ProgressBar {
    let is_shown = stderr().is_terminal();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(total as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{msg:20} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(name);
    bar
}
