//! `nonesuch manual`: manual pages and completions from the one definition of the command line, the page of the metrics
//! from their table, and that of the configuration from its example.

use crate::Outcome;
use crate::arguments::{Arguments, ManualArguments};
use crate::config;
use crate::error::Failure;
use crate::metrics;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::fs;

pub(crate) fn run(arguments: &ManualArguments) -> Result<Outcome, Failure> {
    let dir = &arguments.dir;
    let failed = |source| Failure::Write { path: dir.clone(), source };
    fs::create_dir_all(dir).map_err(failed)?;
    let mut command = Arguments::command();
    clap_mangen::generate_to(command.clone(), dir).map_err(failed)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "nonesuch", dir).map_err(failed)?;
    }
    fs::write(dir.join("nonesuch-metrics.7"), metrics::manual::page()).map_err(failed)?;
    fs::write(dir.join("nonesuch.toml.5"), config::manual::page()).map_err(failed)?;
    Ok(Outcome::Done)
}
