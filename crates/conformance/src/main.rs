//! Judges the resolver: scenarios in the format `.rpl`, and random simulations.
#![forbid(unsafe_code)]

use clap::{Args, Parser, ValueEnum};
use nonesuch_conformance::resolver;
use nonesuch_conformance::rpl::Dialect;
use nonesuch_conformance::runner::{Counts, Exceptions, RunOptions, Suite, Verdict, find_scenarios};
use nonesuch_conformance::simulation::{self, Results};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Judge the resolver without a network
#[derive(Debug, Parser)]
enum Command {
    Run(RunArguments),
    Simulate(SimulateArguments),
}

/// Run scenarios in the format .rpl of Deckard or Unbound
#[derive(Debug, Args)]
struct RunArguments {
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

/// Run random simulations: trees with faulty and hostile servers, and bad paths
#[derive(Debug, Args)]
struct SimulateArguments {
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Continue with further seeds until this time has passed, in seconds
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Print the trace of the simulation that fails, or of a single one
    #[arg(long)]
    trace: bool,
    /// Simulate validation: trees of signed zones with one fault
    #[arg(long)]
    signed: bool,
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
    let result = match Command::parse() {
        Command::Run(arguments) => run(&arguments),
        Command::Simulate(arguments) => Ok(simulate(&arguments)),
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs simulations until one fails. Returns the number of failures.
fn simulate(arguments: &SimulateArguments) -> usize {
    let start = Instant::now();
    let (mut seed, mut results) = (arguments.seed, Results::default());
    let run = if arguments.signed { simulation::signed::run } else { simulation::run };
    let signed = if arguments.signed { " --signed" } else { "" };
    loop {
        let (result, trace) = run(seed);
        let is_single = arguments.seconds == 0 && arguments.seeds == 1;
        if arguments.trace && (result.is_err() || is_single) {
            print!("{trace}");
        }
        match result {
            Ok(of_seed) => results += of_seed,
            Err(violation) => {
                println!(
                    "seed {seed}: {violation}\nrun it again: conformance simulate{signed} --seed {seed} --trace"
                );
                return 1;
            }
        }
        seed += 1;
        let count = seed - arguments.seed;
        if count >= arguments.seeds && start.elapsed() >= Duration::from_secs(arguments.seconds) {
            let Results { replies, failures, compared, secure, bogus, sent } = results;
            println!(
                "{count} seeds from {}: passed; {replies} replies, of which {failures} SERVFAIL ({bogus} because \
                bogus), {secure} with AD and {compared} compared with the zones; {sent} queries to servers",
                arguments.seed
            );
            return 0;
        }
    }
}

/// Runs all scenarios and returns the number of failures, or a message if they could not be run.
fn run(arguments: &RunArguments) -> Result<usize, String> {
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

fn read_exceptions(arguments: &RunArguments) -> Result<Exceptions, String> {
    let Some(file) = &arguments.exceptions else {
        return Exceptions::built_in().map_err(|error| format!("exceptions.txt: {error}"));
    };
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Exceptions::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
}
