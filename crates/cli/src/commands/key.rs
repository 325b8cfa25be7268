//! `nonesuch key`: generates, lists and imports keys, and prints DS records.

mod ds;
mod error;
mod generate;
mod import;
mod list;
mod tsig;

pub(crate) use error::Failure;

use crate::arguments::KeyCommand;
use crate::files::{FileError, print_line};
use crate::outcome::CommandOutcome;
use nonesuch_dnssec::KeyPair;

pub(crate) fn run(command: &KeyCommand) -> Result<CommandOutcome, Failure> {
    match command {
        KeyCommand::Generate(arguments) => generate::run(arguments),
        KeyCommand::List(arguments) => list::run(arguments),
        KeyCommand::Ds(arguments) => ds::run(arguments),
        KeyCommand::Import(arguments) => import::run(arguments),
        KeyCommand::Tsig(arguments) => tsig::run(arguments),
    }
}

/// Prints the base name of the key files or, with `json`, the properties of the key.
fn print_key(key: &KeyPair, json: bool) -> Result<(), FileError> {
    if !json {
        return print_line(&key.base_name());
    }
    let report = serde_json::json!({
        "base_name": key.base_name(), "zone": key.owner.to_string(), "algorithm": key.algorithm().to_string(),
        "algorithm_number": key.algorithm().0, "bits": key.private().bits(), "tag": key.tag(), "flags": key.flags,
    });
    print_line(&report.to_string())
}
