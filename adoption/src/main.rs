//! `nonesuch adoption`: the adoption of DNSSEC over time, from daily snapshots of domains.
//!
//! [`import`] and [`generate`] write snapshots, whose columns [`snapshot`] defines. [`check`] reads and checks
//! all rows. [`report`] counts them with the queries of [`queries`], which [`engine`] runs with DataFusion,
//! and writes tables and a page.
#![forbid(unsafe_code)]

mod arguments;
mod check;
mod engine;
mod error;
mod generate;
mod import;
mod output;
mod parallel;
mod progress;
mod queries;
mod report;
mod snapshot;
mod table;

use arguments::{Arguments, Command};
use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Import(arguments) => import::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Sql(arguments) => queries::write(&arguments.out),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nonesuch: error: {error}");
            ExitCode::from(2)
        }
    }
}
