//! Runs scenarios in the format `.rpl` against the resolver, and prints the verdict of each.
#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use nonesuch_conformance::resolver;
use nonesuch_conformance::rpl::Dialect;
use nonesuch_conformance::runner::{Counts, Exceptions, RunOptions, Suite, Verdict, find_scenarios};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run scenarios in the format .rpl of Deckard or Unbound against the resolver
#[derive(Debug, Parser)]
struct Arguments {
    /// Directories with scenarios, or single files
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// List of scenarios that are known not to pass [default: the list for Deckard's scenarios]
    #[arg(long, value_name = "FILE")]
    exceptions: Option<PathBuf>,
    /// Dialect of all scenarios [default: detected for each file]
    #[arg(long, value_enum)]
    dialect: Option<DialectName>,
    /// Seed of the simulator
    #[arg(long, default_value_t = RunOptions::default().seed)]
    seed: u64,
    /// Print the trace of each failed scenario
    #[arg(long)]
    trace: bool,
    /// Print only failed scenarios and the numbers
    #[arg(long)]
    quiet: bool,
}

/// The program that scenarios were written for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DialectName {
    /// Deckard of CZ.NIC
    Deckard,
    /// Unbound's testbound
    Unbound,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs all scenarios and returns the number of failures, or a message if they could not be run.
fn run(arguments: &Arguments) -> Result<usize, String> {
    let suite = Suite {
        exceptions: read_exceptions(arguments)?,
        dialect: arguments.dialect.map(|dialect| match dialect {
            DialectName::Deckard => Dialect::Deckard,
            DialectName::Unbound => Dialect::Unbound,
        }),
        options: RunOptions { seed: arguments.seed, ..RunOptions::default() },
    };
    let files = find_scenarios(&arguments.paths)
        .map_err(|(path, error)| format!("cannot read {}: {error}", path.display()))?;
    if files.is_empty() {
        return Err("no scenario (*.rpl) in the given paths".to_owned());
    }
    let mut counts = Counts::default();
    for file in &files {
        let verdict = suite.judge(file, &resolver::make);
        counts.add(&verdict);
        if verdict.is_failure() || !arguments.quiet {
            println!("{}: {verdict}", file.display());
        }
        if let (Verdict::Failed(failed), true) = (&verdict, arguments.trace) {
            println!("{}", failed.trace);
        }
    }
    println!("{} scenarios: {counts}", files.len());
    Ok(counts.failed)
}

fn read_exceptions(arguments: &Arguments) -> Result<Exceptions, String> {
    let Some(file) = &arguments.exceptions else {
        return Exceptions::built_in().map_err(|error| format!("exceptions.txt: {error}"));
    };
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Exceptions::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
}
