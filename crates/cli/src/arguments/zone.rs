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
    /// Verify the signatures, bit maps and chain of a signed zone, and run semantic checks.
    Verify(VerifyArguments),
    /// Verify a zone and write it in binary form, which loads without parsing text.
    Compile(CompileArguments),
    /// Show the differences between two versions of a zone.
    Diff(DiffArguments),
    /// Show statistics of a zone: names, records, delegations, octets, keys, signatures.
    Stat(StatArguments),
    /// Write a compiled or stored zone as a zone file.
    ///
    /// Stored zones of a server are zones/*.kept in its state-dir.
    Print(PrintArguments),
    /// Generate a realistic zone.
    Generate(GenerateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Zone file or compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Set the time at which the signatures must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Require that a DS or DNSKEY record in this file authenticates the DNSKEY RRset.
    #[arg(long)]
    pub(crate) anchor: Option<PathBuf>,
    /// Read the stored proofs or the VRF key of a zone with NSEC5 in this directory.
    ///
    /// They match names to NSEC5 records. Default: nsec5 in the directory of the zone file, if it
    /// exists.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Treat findings of the semantic checks as faults, for example missing glue or occluded
    /// records.
    #[arg(long)]
    pub(crate) strict: bool,
    /// List all faults, warnings and findings. Default: the first 20 of each kind.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PrintArguments {
    /// Compiled zone, stored zone or zone file; - for standard input.
    pub(crate) file: PathBuf,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Write to this file, which must not exist. Default: standard output.
    #[arg(long = "output", short = 'f')]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// Set the model: tld (any top-level domain), nl, se, nu, or sld (zone of an organisation).
    #[arg(long, default_value = "tld")]
    pub(crate) like: ZoneModel,
    /// Set the number of names: delegations of a top-level domain, owner names of an sld.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) names: u64,
    /// Set the seed; the same seed generates the same zone.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Set the apex of the zone.
    #[arg(long, short, default_value = "example.")]
    pub(crate) origin: Name,
    /// Write to this file. Default: standard output.
    #[arg(long = "output", short = 'f')]
    pub(crate) output: Option<PathBuf>,
    /// Write a query file for the zone to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
    /// Set the number of queries.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) query_count: u64,
    /// Set the percentage of queries for names that do not exist: 0 to 100.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) denied: u8,
    /// Print a summary of the output as JSON. Requires --output.
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArguments {
    /// Zone file or compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Write to this file; - for standard output.
    ///
    /// Default: FILE.image, or standard output if the zone comes from standard input.
    #[arg(long = "output", short = 'f')]
    pub(crate) output: Option<PathBuf>,
    /// Select how much of a signed zone to verify: full, structural or none.
    ///
    /// structural: chain and bit maps, without signatures. The image records the verification. A
    /// zone with faults is not compiled.
    #[arg(long, default_value = "full")]
    pub(crate) verify: CompileVerify,
    /// Read the stored proofs or the VRF key of a zone with NSEC5 in this directory.
    ///
    /// They match names to NSEC5 records. Default: nsec5 in the directory of the zone file, if it
    /// exists. Without them, the image records a weaker verification.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Set the time at which the signatures must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much of a zone is verified before it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompileVerify {
    Full,
    Structural,
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "Lines begin with - for removed records, + for added records, ; for the summary. \
    Exit status: 0 no differences, 1 differences, 2 a zone cannot be read.")]
pub(crate) struct DiffArguments {
    /// Old version: zone file or compiled zone; - for standard input.
    pub(crate) old: PathBuf,
    /// New version: zone file or compiled zone; - for standard input.
    pub(crate) new: PathBuf,
    /// Set the apex of the zones. Default: the owner of the SOA records in the files.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Select the output of DNSSEC records: summary, data, only or all.
    ///
    /// summary: count them. data: omit them. only: list only these records. all: list them with the
    /// data. DNSSEC records are RRSIG, NSEC, NSEC3 and NSEC3PARAM records and, if a version is
    /// signed, DNSKEY, CDS, CDNSKEY and ZONEMD records at the apex.
    #[arg(long, default_value = "summary", value_name = "WHAT")]
    pub(crate) dnssec: DiffScope,
    /// List every record. Short for --dnssec all.
    #[arg(long, conflicts_with = "dnssec")]
    pub(crate) all: bool,
    /// Print only the change set, without a summary, for `nonesuch zone sign --changes`.
    ///
    /// It contains the data, or the records that --dnssec selects.
    #[arg(long, conflicts_with = "json")]
    pub(crate) changes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How `zone diff` treats DNSSEC records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiffScope {
    Summary,
    Data,
    Only,
    All,
}

#[derive(Debug, Args)]
pub(crate) struct StatArguments {
    /// Zone file or compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Set the time for the count of expired signatures.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
