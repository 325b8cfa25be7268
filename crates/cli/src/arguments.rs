//! The command line. Help, manual pages and completions are generated from this definition.

mod ctl;
mod key;
mod lab;
mod load;
mod query;
mod serve;
mod sign;
mod values;
mod zone;

pub(crate) use ctl::{CONFIGURATION, ControlArguments, ControlCommand, ControlZoneCommand, SOCKET};
pub(crate) use key::{
    KeyCommand, KeyDsArguments, KeyGenerateArguments, KeyImportArguments, KeyListArguments, KeyTsigArguments,
    TsigForm, TsigOutput,
};
pub(crate) use lab::{
    CompareArguments, LabCommand, LabListArguments, LabMeasureArguments, LabReportArguments, LabRunArguments,
    LabZoneArguments,
};
pub(crate) use load::{LabEchoArguments, LoadArguments};
pub(crate) use query::{QueryArguments, QueryMessage, QueryTransport};
pub(crate) use serve::{CheckScope, ServeArguments, VerifyMode};
pub(crate) use sign::{SignArguments, ZonemdHashes};
pub(crate) use values::TimeArgument;
pub(crate) use zone::{
    CompileArguments, CompileVerify, DiffArguments, DiffScope, GenerateArguments, PrintArguments,
    StatArguments, VerifyArguments, ZoneCommand,
};

use clap::{ArgAction, Args, Parser, Subcommand};
use std::path::PathBuf;

/// DNSSEC suite: signs, verifies and serves zones, and measures what each choice costs.
#[derive(Debug, Parser)]
#[command(name = "nonesuch", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Arguments {
    /// Say more on standard error; twice for everything.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    /// Print only warnings, errors, and the data asked for: no summary, and no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure every algorithm and denial mechanism on a zone: one table, one report.
    Compare(CompareArguments),
    /// Sign, verify, compile, compare, count and generate zones.
    #[command(subcommand)]
    Zone(ZoneCommand),
    /// Make, list and import keys, and print their DS records; make TSIG keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Serve zones as an authoritative nameserver: one from a file, or those of a configuration.
    Serve(ServeArguments),
    /// Ask a nameserver one question and print the answer.
    ///
    /// Every record is readable, those of NSEC5 and of post-quantum algorithms too. Exit status: 0 where the answer is
    /// NOERROR or NXDOMAIN, or the transfer is whole; 1 where the server refused or failed, or its signature (TSIG) is not
    /// right; 2 where there is no answer, or the question cannot be asked.
    Query(Box<QueryArguments>),
    /// Send queries to a nameserver and measure what comes back.
    Load(LoadArguments),
    /// Run the laboratory's experiments.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Ask a running server how it stands, have it reload or stop.
    Ctl(ControlArguments),
    /// Write the manual pages and shell completions.
    Manual(ManualArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// Folder that the pages and completions are written to.
    #[arg(long, default_value = "manual")]
    pub(crate) dir: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
