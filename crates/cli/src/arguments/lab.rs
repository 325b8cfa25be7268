//! Arguments of the laboratory: `compare` and `lab`.

use super::load::LabEchoArguments;
use super::values::{ArgumentError, parse_seconds, parse_time};
use clap::{Args, Subcommand};
use nonesuch_dnssec::Mechanism;
use nonesuch_lab::experiment::compare::{DEFAULT_NAMES, DEFAULT_SECONDS_PER_LOAD};
use nonesuch_lab::generate::ZoneModel;
use nonesuch_lab::measure::{Choice, Operation, Subject};
use nonesuch_proto::Name;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Zone file; without one a TLD-like zone is generated.
    pub(crate) file: Option<PathBuf>,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// What the generated zone is like: tld, nl, se, nu or sld.
    #[arg(long, default_value = "tld", conflicts_with = "file")]
    pub(crate) like: ZoneModel,
    /// Number of names of the generated zone.
    #[arg(long, default_value_t = DEFAULT_NAMES, conflicts_with = "file")]
    pub(crate) names: u64,
    /// What the generated zone and the queries are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Every algorithm with every key length and every mechanism, not the default subset.
    #[arg(long)]
    pub(crate) all: bool,
    /// These algorithms, as ed25519,rsasha256/1280: mnemonics or numbers, for RSA with the length of the keys.
    #[arg(long, value_delimiter = ',', conflicts_with = "all")]
    pub(crate) algorithms: Vec<Choice>,
    /// These denial mechanisms alone, as nsec,nsec3-opt-out.
    #[arg(long, value_delimiter = ',')]
    pub(crate) denial: Vec<Mechanism>,
    /// Seconds of each measurement of the server.
    #[arg(long, default_value_t = DEFAULT_SECONDS_PER_LOAD, value_parser = parse_seconds)]
    pub(crate) seconds: f64,
    /// Time of signing: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Folder that compare.json and report.html are left in.
    #[arg(long, default_value = "nonesuch-compare")]
    pub(crate) out: PathBuf,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the experiments that are built in.
    List(LabListArguments),
    /// Run an experiment; leaves its data and report.html in a folder.
    Run(LabRunArguments),
    /// Make the report again, from the data alone.
    Report(LabReportArguments),
    /// Measure raw rates of operations; prints one JSON document.
    #[command(hide = true)]
    Measure(LabMeasureArguments),
    /// Count, strip, change and pack a zone on behalf of `lab run`; prints one JSON document.
    #[command(hide = true)]
    Zone(LabZoneArguments),
    /// Send queries back, on behalf of `lab run`, until it is ended.
    #[command(hide = true)]
    Echo(LabEchoArguments),
}

#[derive(Debug, Args)]
pub(crate) struct LabListArguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// An experiment of `lab list`, or a TOML file with one.
    #[arg(required_unless_present = "experiment")]
    pub(crate) name: Option<String>,
    /// A TOML file with the experiment, whatever its name looks like.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) experiment: Option<PathBuf>,
    /// Folder that the data and the report are left in. Default: nonesuch-lab/NAME
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Measure as long as the experiment's [full] says; `lab list` tells how long that is.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(long)]
    pub(crate) full: bool,
    /// A zone file of your own, in place of the experiment's zones. Short for --set zones=ORIGIN=FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) zone: Option<PathBuf>,
    /// The apex of --zone; else the owner of the file's SOA record.
    #[arg(long, short, requires = "zone")]
    pub(crate) origin: Option<Name>,
    /// Set a parameter of the experiment; lists with commas. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,
    /// The CPU that everything is kept on: a number, last or none. Short for --set cpu=CPU.
    #[arg(long)]
    pub(crate) cpu: Option<String>,
    /// What is random is drawn from this, but keys.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Overwrite the results of another experiment.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Time for the record: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArguments {
    /// Folder that `lab run` left.
    pub(crate) dir: PathBuf,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabMeasureArguments {
    /// What is measured, as ED25519,RSASHA256/2048,ED25519*64,vrf-p256,vrf-p256*32; default: everything.
    #[arg(long, value_delimiter = ',')]
    pub(crate) subjects: Vec<Subject>,
    /// Operations.
    #[arg(long, value_delimiter = ',', default_value = "verify,sign,prove")]
    pub(crate) operations: Vec<Operation>,
    /// Iterations.
    #[arg(long, default_value_t = 1)]
    pub(crate) iterations: u32,
    /// Seconds in each.
    #[arg(long, default_value_t = 0.2)]
    pub(crate) seconds: f64,
    /// What messages are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Follow orders on standard input, as `lab run` gives them.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabZoneArguments {
    /// Zone file.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Write the zone without what signing made in it.
    #[arg(long, value_name = "FILE")]
    pub(crate) unsigned: Option<PathBuf>,
    /// Write a changed form of that.
    #[arg(long, value_name = "FILE")]
    pub(crate) changed: Option<PathBuf>,
    /// Share of the records that change.
    #[arg(long, default_value_t = 0.01)]
    pub(crate) share: f64,
    /// What the changes are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Compute what a transfer of the zone comes to.
    #[arg(long)]
    pub(crate) transfer: bool,
}

/// Reads `key=value`.
fn parse_setting(text: &str) -> Result<(String, String), ArgumentError> {
    let (key, value) = text.split_once('=').ok_or(ArgumentError::Expected("KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
