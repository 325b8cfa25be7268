//! The command line. Help, manual pages and completions are generated from this definition.

mod adoption;
mod check;
mod ctl;
mod enumerate;
mod key;
mod lab;
mod load;
mod plan;
mod proxy;
mod query;
mod replay;
mod resolve;
mod serve;
mod sign;
mod validate;
mod values;
mod zone;

pub(crate) use adoption::AdoptionArguments;
pub(crate) use check::{
    CheckAuthoritativeArguments, CheckCommand, CheckOptions, CheckProxyArguments, CheckResolverArguments,
    CheckZoneArguments,
};
pub(crate) use ctl::{
    CacheCommand, ControlArguments, ControlCommand, ControlZoneCommand, DEFAULT_CONFIGURATION,
    DEFAULT_SOCKET, NegativeAnchorCommand,
};
pub(crate) use enumerate::{EnumerateArguments, ExportFormat};
pub(crate) use key::{
    KeyCommand, KeyDsArguments, KeyGenerateArguments, KeyImportArguments, KeyListArguments, KeyTsigArguments,
    TsigKeyFormat, TsigOutput,
};
pub(crate) use lab::{
    CompareArguments, LabCaptureArguments, LabCommand, LabListArguments, LabMeasureArguments,
    LabMergeArguments, LabReportArguments, LabRunArguments, LabTreeArguments, LabZoneArguments,
};
pub(crate) use load::{LabEchoArguments, LoadArguments};
pub(crate) use plan::{
    PlanCommand, PlanFitArguments, PlanOutputArguments, PlanPredictArguments, PlanRecordArguments,
    RatesArgument, RecordingArgument,
};
pub(crate) use proxy::ProxyArguments;
pub(crate) use query::{QueryArguments, QueryMessage, QueryTransport};
pub(crate) use resolve::ResolveArguments;
pub(crate) use serve::{CheckScope, ServeArguments, VerifyMode};
pub(crate) use sign::{SignArguments, ZonemdHashes};
pub(crate) use validate::ValidateArguments;
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
    /// Print more messages on standard error; repeat for all messages.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    /// Print only warnings, errors and the requested data.
    ///
    /// Omits the summary and the progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare all algorithms and denial mechanisms on one zone.
    ///
    /// Prints a table and writes a report.
    Compare(CompareArguments),
    /// Sign, verify, compile, compare, count and generate zones.
    #[command(subcommand)]
    Zone(ZoneCommand),
    /// Generate, list and import keys; print DS records; generate TSIG keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Serve zones as an authoritative name server.
    ///
    /// Serves one zone from a file, or the zones of a configuration.
    Serve(ServeArguments),
    /// Resolve names for clients: a recursive resolver, without validation.
    ///
    /// Starts at the servers of the root zone, and caches what it finds. Permits only clients on this
    /// host.
    Resolve(ResolveArguments),
    /// Send a query to a name server and print the response.
    ///
    /// Prints all record types in readable form, including those of NSEC5 and of post-quantum
    /// algorithms. Exit status: 0 if the response code is NOERROR or NXDOMAIN, or the transfer is
    /// complete; 1 if the server returns another response code, or its TSIG signature does not
    /// verify; 2 if there is no response, or the query cannot be sent.
    Query(Box<QueryArguments>),
    /// Validate recorded responses from trust anchors, without queries.
    ///
    /// Reads one response from each line, and prints its status: secure, insecure, bogus or
    /// indeterminate (RFC 4033), with the reason and the rule. The input has the responses of the
    /// chain of trust, too. Exit status: 0 if all responses are secure or insecure; 1 if one is bogus
    /// or indeterminate; 2 if a line is invalid, or there is no response.
    Validate(ValidateArguments),
    /// Send queries to a name server and measure the responses.
    Load(Box<LoadArguments>),
    /// Check a server or a zone, item by item.
    ///
    /// Each item is a rule of an RFC with a stable number. The items of the verification report of JPRS
    /// have its numbers.
    #[command(subcommand)]
    Check(CheckCommand),
    /// List what an attacker can learn about a zone from the denials of its server.
    ///
    /// Recognises the denial mechanism. Walks the chain of NSEC; collects the hashes of NSEC3 and searches
    /// for their names; guesses names online if the mechanism prevents enumeration. For zones and
    /// servers of your own. Exit status: 0 if the enumeration is complete; 1 if a limit or the server
    /// ended it early; 2 if it cannot start.
    Enumerate(Box<EnumerateArguments>),
    /// Forward queries to a server: a transparent DNS proxy (RFC 5625), without a cache.
    ///
    /// Forwards all messages unchanged except for their ID: UDP to UDP with a random ID and port, TCP to
    /// TCP. With --fault, the proxy has a known fault of such devices, for tests.
    Proxy(ProxyArguments),
    /// Run the experiments of the laboratory.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Record a resolver, and predict what other signature algorithms would cost it.
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Report who signs with what, over time: algorithms, denial mechanisms, operators.
    ///
    /// Runs the program nonesuch-adoption, which must be in the directory of nonesuch or in PATH. It
    /// is built separately (`just adoption`), because it takes minutes to compile.
    Adoption(AdoptionArguments),
    /// Show status; reload or stop a running server.
    Ctl(ControlArguments),
    /// Write the manual pages and shell completions.
    Manual(ManualArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// Write the pages and completions to this directory.
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
