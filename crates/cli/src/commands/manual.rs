//! `nonesuch manual`: manual pages and completions from the one definition of the command line.

use crate::Outcome;
use crate::arguments::{Arguments, ManualArguments};
use crate::error::Failure;
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
    Ok(Outcome::Done)
}
