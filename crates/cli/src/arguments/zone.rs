//! Arguments of `zone`, except those of signing.

use super::sign::SignArguments;
use super::values::parse_time;
use clap::{Args, Subcommand};
use nonesuch_lab::generate::ZoneModel;
use nonesuch_proto::Name;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ZoneCommand {
    /// Sign a zone.
    Sign(Box<SignArguments>),
    /// Verify a signed zone: every signature, every bitmap, the whole chain; and run semantic checks.
    Verify(VerifyArguments),
    /// Write a zone, verified first, in the form that is loaded without reading text.
    Compile(CompileArguments),
    /// Say what differs between two versions of a zone.
    Diff(DiffArguments),
    /// Say what a zone is made of: names, records, delegations, octets, keys, signatures.
    Stat(StatArguments),
    /// Write a zone as a zone file: a compiled zone, or what a server keeps of one in its state-dir (zones/*.kept).
    Print(PrintArguments),
    /// Make a realistic zone.
    Generate(GenerateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Zone file, or a compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Time at which the signatures must be valid: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// File of DS or DNSKEY records, of which one must lead to the zone's DNSKEY RRset.
    #[arg(long)]
    pub(crate) anchor: Option<PathBuf>,
    /// Folder of the stored proofs or the VRF key of a zone with NSEC5, by which names are matched to records; default
    /// nsec5 beside the zone file, where there is one.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Make faults of the findings of the semantic checks: missing glue, occluded records and the like.
    #[arg(long)]
    pub(crate) strict: bool,
    /// List all faults, warnings and findings; without it, the first 20 of each kind.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PrintArguments {
    /// Compiled zone, or a zone file; - for standard input.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Output file, which must not be there yet; without it standard output.
    #[arg(long = "output", short = 'f')]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// What the zone is like: tld (any top-level domain), nl, se, nu, or sld (an organisation's zone).
    #[arg(long, default_value = "tld")]
    pub(crate) like: ZoneModel,
    /// Number of names: delegations of a top-level domain, owner names of an sld.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) names: u64,
    /// What the zone is drawn from: the same seed makes the same zone.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The zone's apex.
    #[arg(long, short, default_value = "example.")]
    pub(crate) origin: Name,
    /// Output file; without it standard output.
    #[arg(long = "output", short = 'f')]
    pub(crate) output: Option<PathBuf>,
    /// Write a query file that fits the zone too.
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
    /// Number of queries.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) query_count: u64,
    /// Share of the queries that ask for names that do not exist, in percent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) denied: u8,
    /// Print what was made as JSON; not with the zone on standard output.
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArguments {
    /// Zone file, or a compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Output file; - for standard output. Default: FILE.image, or standard output where the zone comes from standard input
    #[arg(long = "output", short = 'f')]
    pub(crate) output: Option<PathBuf>,
    /// What of a signed zone is verified first, and noted in the image: full, structural (chain and bitmaps without
    /// signatures), or none. A zone with faults is not compiled.
    #[arg(long, default_value = "full")]
    pub(crate) verify: CompileVerify,
    /// Folder of the stored proofs or the VRF key of a zone with NSEC5, by which names are matched to records; default
    /// nsec5 beside the zone file, where there is one. Without it, the image says that less was verified.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Time at which the signatures must be valid: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is verified before a zone is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompileVerify {
    Full,
    Structural,
    None,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Lines begin with - for a record that is removed, + for one that is added, ; for the summary. \
    Exit status: 0 nothing differs, 1 something differs, 2 a zone cannot be read."
)]
pub(crate) struct DiffArguments {
    /// The old version: zone file or compiled zone; - for standard input.
    pub(crate) old: PathBuf,
    /// The new version: zone file or compiled zone; - for standard input.
    pub(crate) new: PathBuf,
    /// The zone's apex; else the owner of the files' SOA records.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// What becomes of RRSIG, NSEC, NSEC3 and NSEC3PARAM records and, where a version is signed, of DNSKEY, CDS, CDNSKEY
    /// and ZONEMD records at the apex: summary counts them, data leaves them out, only lists them alone, all lists them
    /// with the data.
    #[arg(long, default_value = "summary", value_name = "WHAT")]
    pub(crate) dnssec: DiffScope,
    /// List every record. Short for --dnssec all.
    #[arg(long, conflicts_with = "dnssec")]
    pub(crate) all: bool,
    /// Print the change set alone, without a summary, as zone sign takes it: of the data, or what --dnssec says.
    #[arg(long, conflicts_with = "json")]
    pub(crate) changes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `zone diff` does with the records of DNSSEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiffScope {
    Summary,
    Data,
    Only,
    All,
}

#[derive(Debug, Args)]
pub(crate) struct StatArguments {
    /// Zone file, or a compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Time at which signatures count as expired or not: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
