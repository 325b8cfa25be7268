//! Arguments of `adoption`, which another program reads.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct AdoptionArguments {
    /// Command and its arguments: import, generate, report or sql.
    ///
    /// import converts zone files and lists of delegations to snapshots. generate writes snapshots of a
    /// model with known counts. report counts the domains of snapshots, and writes tables and a page. sql
    /// writes the queries, which also run on Spark. The program nonesuch-adoption reads the arguments;
    /// --help after a command describes them.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}
