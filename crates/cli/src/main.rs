//! The command `nonesuch`: arguments in, exit status out. What it does stands in the other crates.
//!
//! Exit status: 0 done, 1 the answer is "no" (a verification failed), 2 usage or input error, 3 the system does not let a server
//! start.
#![forbid(unsafe_code)]

mod arguments;
mod beside;
mod commands;
mod config;
mod error;
mod files;
mod keys;
mod logging;
mod metrics;
mod progress;
mod zones;

use arguments::{Arguments, Command, ZoneCommand};
use clap::Parser as _;
use error::Failure;
use std::process::ExitCode;

/// How a command ended.
enum Outcome {
    Done,
    /// The answer is "no".
    No,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logging::start(arguments.verbose);
    let status = match run(arguments.command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        // A reader that has seen enough, as `head` has, is no error.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            files::say(&format!("nonesuch: error: {failure}"));
            ExitCode::from(match failure.is_no() {
                true => 1,
                false if failure.is_of_system() => 3,
                false => 2,
            })
        }
    };
    logging::flush();
    status
}

fn run(command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Zone(ZoneCommand::Sign(arguments)) => commands::sign::run(&arguments),
        Command::Zone(ZoneCommand::Verify(arguments)) => commands::verify::run(&arguments),
        Command::Zone(ZoneCommand::Compile(arguments)) => commands::compile::run(&arguments),
        Command::Zone(ZoneCommand::Diff(arguments)) => commands::diff::run(&arguments),
        Command::Zone(ZoneCommand::Stat(arguments)) => commands::stat::run(&arguments),
        Command::Zone(ZoneCommand::Print(arguments)) => commands::print::run(&arguments),
        Command::Zone(ZoneCommand::Generate(arguments)) => commands::generate::run(&arguments),
        Command::Key(command) => commands::key::run(&command),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Query(arguments) => commands::query::run(&arguments),
        Command::Load(arguments) => commands::load::run(&arguments),
        Command::Lab(command) => commands::lab::run(&command),
        Command::Ctl(arguments) => commands::ctl::run(&arguments),
        Command::Manual(arguments) => commands::manual::run(&arguments),
    }
}
