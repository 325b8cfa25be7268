//! Arguments of the laboratory: `compare` and `lab`.

use super::load::LabEchoArguments;
use super::values::{ArgumentError, parse_seconds, parse_time};
use clap::{Args, Subcommand};
use nonesuch_dnssec::Mechanism;
use nonesuch_lab::experiment::compare::{DEFAULT_NAMES, DEFAULT_SECONDS_PER_LOAD, Need};
use nonesuch_lab::generate::ZoneModel;
use nonesuch_lab::measure::{AlgorithmChoice, Operation, Subject};
use nonesuch_proto::Name;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Zone file. Default: a generated zone like that of a top-level domain.
    pub(crate) file: Option<PathBuf>,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Set the model of the generated zone: tld, nl, se, nu or sld.
    #[arg(long, default_value = "tld", conflicts_with = "file")]
    pub(crate) like: ZoneModel,
    /// Set the number of names of the generated zone.
    #[arg(long, default_value_t = DEFAULT_NAMES, conflicts_with = "file")]
    pub(crate) names: u64,
    /// Set the seed of the generated zone and queries.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Compare all algorithms, key lengths and mechanisms instead of the default subset.
    ///
    /// Except algorithms whose signatures take more than 10 ms each (SLHDSA128S), with which a
    /// comparison takes hours: name these with --algorithms, and set a small number of --names.
    #[arg(long)]
    pub(crate) all: bool,
    /// Compare only these algorithms, for example ed25519,rsasha256/1280.
    ///
    /// Mnemonics or numbers; for RSA with the key length.
    #[arg(long, value_delimiter = ',', conflicts_with = "all")]
    pub(crate) algorithms: Vec<AlgorithmChoice>,
    /// Compare only these denial mechanisms, for example nsec,nsec3-opt-out.
    #[arg(long, value_delimiter = ',')]
    pub(crate) denial: Vec<Mechanism>,
    /// Recommend only combinations with these properties.
    ///
    /// no-enumeration: clients cannot enumerate the names of the zone. stolen-server: an attacker
    /// with all data of a server cannot forge data of the zone. post-quantum: quantum computers
    /// cannot forge signatures. udp-1232: no response is longer than 1232 octets, including that with
    /// the keys of the zone.
    #[arg(long = "need", value_name = "PROPERTY", value_delimiter = ',')]
    pub(crate) needs: Vec<Need>,
    /// Set the duration of each measurement of the server, in seconds.
    #[arg(long, default_value_t = DEFAULT_SECONDS_PER_LOAD, value_parser = parse_seconds)]
    pub(crate) seconds: f64,
    /// Set the time of signing.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Write compare.json and report.html to this directory.
    #[arg(long, default_value = "nonesuch-compare")]
    pub(crate) out: PathBuf,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the built-in experiments, and other DNS servers with their versions.
    List(LabListArguments),
    /// Run an experiment and write its data and report.html to a directory.
    Run(LabRunArguments),
    /// Generate the report again from existing data.
    Report(LabReportArguments),
    /// Write a signed local DNS tree with planted faults, for tests of resolvers.
    Tree(LabTreeArguments),
    /// Convert a capture of DNS traffic, anonymise it, or list its queries.
    ///
    /// Reads pcap, pcapng and dnstap files, and writes pcap or dnstap files.
    Capture(LabCaptureArguments),
    /// Join results of one experiment, for example of several machines.
    Merge(LabMergeArguments),
    /// Measure the rates of operations and print one JSON document.
    #[command(hide = true)]
    Measure(LabMeasureArguments),
    /// Count, strip, change and pack a zone for `lab run`; print one JSON document.
    #[command(hide = true)]
    Zone(LabZoneArguments),
    /// Return queries to the sender, for `lab run`, until the process is terminated.
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
    /// Name of a built-in experiment (`lab list`), TOML file with an experiment, or `all`.
    ///
    /// `all` runs all built-in experiments, each with the directory OUT/NAME, and writes the overview
    /// OUT/report/index.html.
    #[arg(required_unless_present = "experiment")]
    pub(crate) name: Option<String>,
    /// Read the experiment from this TOML file, even if a built-in experiment has this name.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) experiment: Option<PathBuf>,
    /// Write the data and the report to this directory. Default: nonesuch-lab/NAME
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Measure for the durations in the table [full] of the experiment.
    ///
    /// `lab list` shows the total duration.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(long)]
    pub(crate) full: bool,
    /// Measure for the durations in the table [parameters] of the experiment. This is the default.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Use this zone file instead of the zones of the experiment.
    ///
    /// Short for --set zones=ORIGIN=FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) zone: Option<PathBuf>,
    /// Set the apex of --zone. Default: the owner of the SOA record in the file.
    #[arg(long, short, requires = "zone")]
    pub(crate) origin: Option<Name>,
    /// Set a parameter of the experiment. May be repeated.
    ///
    /// Separate the items of a list with commas.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_parameter)]
    pub(crate) set: Vec<(String, String)>,
    /// Run all processes on this CPU: a number, last or none.
    ///
    /// Short for --set cpu=CPU.
    #[arg(long)]
    pub(crate) cpu: Option<String>,
    /// Set the seed of all random data except keys.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Overwrite the results of another experiment, or merged results.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Set the time in the results.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArguments {
    /// Output directory of `lab run`, also of `lab run all`, or of `lab merge`.
    pub(crate) dir: PathBuf,
    /// Print title, question, answer, command and table of each run as a section in Markdown.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabTreeArguments {
    /// TOML file with the description of the tree.
    pub(crate) description: PathBuf,
    /// Write zones, keys, server configurations, hints, anchors and expected results to this
    /// directory, which must not exist or be empty.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Set the seed of all keys.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Set the time of the tree: signatures are valid from a day before to 30 days after it.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabCaptureArguments {
    /// Capture to read: a pcap, pcapng or dnstap file.
    pub(crate) input: PathBuf,
    /// Write to this file.
    ///
    /// The suffix selects the format: .pcap, or .dnstap, .tap or .fstrm. With --queries, - writes
    /// to standard output.
    #[arg(long, short = 'f')]
    pub(crate) output: PathBuf,
    /// Replace addresses. Addresses with a common prefix have replacements with a common prefix.
    ///
    /// Crypto-PAn with AES-128, also in EDNS client subnets. EDNS options that may identify a
    /// client become zeros.
    #[arg(long)]
    pub(crate) anonymize: bool,
    /// Read the secret key of the replacements from this file. If it is missing, create it.
    ///
    /// With the same key, equal addresses and names have equal replacements in all outputs.
    /// Default: a random key that is not stored.
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    pub(crate) key: Option<PathBuf>,
    /// Replace each label of a name, except the last, with letters of the same number.
    ///
    /// Also replaces addresses in records. Texts, keys and signatures become zeros.
    #[arg(long, requires = "anonymize")]
    pub(crate) names: bool,
    /// Keep the labels of this zone in names at or below it.
    #[arg(long, requires = "names")]
    pub(crate) zone: Option<Name>,
    /// Write the names and types of the queries, as `load --queries` reads them.
    #[arg(long)]
    pub(crate) queries: bool,
    /// Read packets to and from these server ports. Default: 53.
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub(crate) port: Vec<u16>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabMergeArguments {
    /// Output directories of `lab run` or `lab merge`.
    #[arg(required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Write the joined data and the report to this directory.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Overwrite results of a single run, of another experiment, or of runs that are not merged.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print JSON instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabMeasureArguments {
    /// Measure only these subjects, for example
    /// ED25519,RSASHA256/2048,ED25519*64,vrf-p256,vrf-p256*32. Default: all.
    #[arg(long, value_delimiter = ',')]
    pub(crate) subjects: Vec<Subject>,
    /// Measure these operations.
    #[arg(long, value_delimiter = ',', default_value = "verify,sign,prove")]
    pub(crate) operations: Vec<Operation>,
    /// Set the number of iterations.
    #[arg(long, default_value_t = 1)]
    pub(crate) iterations: u32,
    /// Set the duration of each iteration, in seconds.
    #[arg(long, default_value_t = 0.2)]
    pub(crate) seconds: f64,
    /// Set the seed of the messages.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Read commands of `lab run` from standard input.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabZoneArguments {
    /// Zone file.
    pub(crate) file: PathBuf,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Write the zone without the records of signing.
    #[arg(long, value_name = "FILE")]
    pub(crate) unsigned: Option<PathBuf>,
    /// Write a changed version of the unsigned zone.
    #[arg(long, value_name = "FILE")]
    pub(crate) changed: Option<PathBuf>,
    /// Set the share of the records that change.
    #[arg(long, default_value_t = 0.01)]
    pub(crate) share: f64,
    /// Set the seed of the changes.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Compute the size of a transfer of the zone.
    #[arg(long)]
    pub(crate) transfer: bool,
}

/// Reads a parameter of an experiment and its value.
fn parse_parameter(text: &str) -> Result<(String, String), ArgumentError> {
    let (key, value) = text.split_once('=').ok_or(ArgumentError::Expected("KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
