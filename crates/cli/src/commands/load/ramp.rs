//! `nonesuch load --ramp`.

use super::{Failure, to_json};
use crate::arguments::LoadArguments;
use crate::files::print_line;
use crate::outcome::CommandOutcome;
use nonesuch_lab::load::{LoadOptions, RampOptions, RampStep, ramp};
use nonesuch_lab::record::RunRecord;

/// Default rate of the first step, in queries per second.
const DEFAULT_START_RATE: f64 = 1000.0;

/// Prints each step when it ends, and then the highest rate without loss.
pub(super) fn run(
    arguments: &LoadArguments,
    record: &RunRecord,
    options: &LoadOptions,
) -> Result<CommandOutcome, Failure> {
    let settings = RampOptions {
        start_rate: arguments.rate.unwrap_or(DEFAULT_START_RATE),
        max_loss: arguments.ramp_loss / 100.0,
        step_seconds: arguments.ramp_seconds,
    };
    let mut printed = Ok(());
    let mut print = |line: &str| {
        if !arguments.json && printed.is_ok() {
            printed = print_line(line);
        }
    };
    print("   queries/s    answers/s    lost %    p50 µs    p99 µs  result  limited by");
    let found = ramp(options, &settings, |step| print(&step_line(step)))?;
    printed?;
    let text = match found.rate {
        _ if arguments.json => to_json(record, &found),
        Some(rate) => format!("highest rate without loss: {rate:.0} queries/s"),
        None => "no rate without loss: the server lost queries at one query per second".to_owned(),
    };
    print_line(&text)?;
    Ok(if found.rate.is_some() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

fn step_line(step: &RampStep) -> String {
    let latency = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
    format!(
        "{:12.0} {:12.0} {:9.3} {:>9} {:>9}  {}  {}",
        step.rate,
        step.qps,
        step.lost_share * 100.0,
        latency(step.latency_p50_us),
        latency(step.latency_p99_us),
        if step.passed { "passed" } else { "failed" },
        step.limited_by.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
    )
}
