//! The command `nonesuch`: parses the arguments, runs a command and returns the exit status. Other
//! crates contain the functionality.
//!
//! Exit status: 0 success, 1 negative answer (for example, a verification failed), 2 usage or input
//! error, 3 the system prevents the start of a server or of a thread.
#![forbid(unsafe_code)]

mod access;
mod arguments;
mod atomic_file;
mod certificate;
mod commands;
mod config;
mod control_protocol;
mod error;
mod files;
mod hints;
mod keys;
mod logging;
mod metrics;
mod nsec5;
mod outcome;
mod progress;
mod root;
mod server;
#[cfg(test)]
#[path = "../tests/common/snapshot.rs"]
#[allow(unreachable_pub)]
mod snapshot;
mod trust_anchors;
mod zones;

use arguments::{Arguments, Command, ZoneCommand};
use clap::Parser as _;
use error::CommandError;
use outcome::CommandOutcome;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logging::start(arguments.verbose, arguments.quiet);
    let status = match run(arguments.command) {
        Ok(CommandOutcome::Done) => 0,
        Ok(CommandOutcome::Negative) => 1,
        Ok(CommandOutcome::ChildExited(status)) => status,
        Err(failure) => report(&failure),
    };
    logging::flush();
    ExitCode::from(status)
}

/// Reports why the command failed, unless the reader of its output has closed it, and returns the
/// exit status.
fn report(failure: &CommandError) -> u8 {
    let status = failure.exit_status();
    match status {
        0 => {}
        _ if logging::is_json() => tracing::error!(name: "command-failed", "nonesuch: error: {failure}"),
        _ => files::print_to_stderr(&format!("nonesuch: error: {failure}")),
    }
    status
}

fn run(command: Command) -> Result<CommandOutcome, CommandError> {
    match command {
        Command::Compare(arguments) => Ok(commands::compare::run(&arguments)?),
        Command::Zone(ZoneCommand::Sign(arguments)) => Ok(commands::sign::run(&arguments)?),
        Command::Zone(ZoneCommand::Verify(arguments)) => Ok(commands::verify::run(&arguments)?),
        Command::Zone(ZoneCommand::Compile(arguments)) => Ok(commands::compile::run(&arguments)?),
        Command::Zone(ZoneCommand::Diff(arguments)) => Ok(commands::diff::run(&arguments)?),
        Command::Zone(ZoneCommand::Stat(arguments)) => Ok(commands::stat::run(&arguments)?),
        Command::Zone(ZoneCommand::Print(arguments)) => Ok(commands::print::run(&arguments)?),
        Command::Zone(ZoneCommand::Generate(arguments)) => Ok(commands::generate::run(&arguments)?),
        Command::Key(command) => Ok(commands::key::run(&command)?),
        Command::Serve(arguments) => Ok(commands::serve::run(&arguments)?),
        Command::Resolve(arguments) => Ok(commands::resolve::run(&arguments)?),
        Command::Query(arguments) => Ok(commands::query::run(&arguments)?),
        Command::Validate(arguments) => Ok(commands::validate::run(&arguments)?),
        Command::Load(arguments) => Ok(commands::load::run(&arguments)?),
        Command::Check(command) => Ok(commands::check::run(&command)?),
        Command::Enumerate(arguments) => Ok(commands::enumerate::run(&arguments)?),
        Command::Proxy(arguments) => Ok(commands::proxy::run(&arguments)?),
        Command::Lab(command) => Ok(commands::lab::run(&command)?),
        Command::Plan(command) => Ok(commands::plan::run(&command)?),
        Command::Adoption(arguments) => Ok(commands::adoption::run(&arguments)?),
        Command::Ctl(arguments) => Ok(commands::ctl::run(&arguments)?),
        Command::Manual(arguments) => Ok(commands::manual::run(&arguments)?),
    }
}
