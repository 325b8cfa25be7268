//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::civil::Date;
use nonesuch_proto::Name;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::thread;

/// Report the adoption of DNSSEC: who signs with what, over time.
///
/// Reads daily snapshots of domains as Parquet files. Exit status: 0 if the command is done, 2 if an
/// argument or the input is invalid.
#[derive(Debug, Parser)]
#[command(name = "nonesuch adoption", bin_name = "nonesuch adoption", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert zone files and lists of delegations to snapshots.
    ///
    /// Writes a file SOURCE-DATE.parquet for each input. A zone file has the delegations with their DS
    /// records. A list has a domain on each line: DOMAIN ALGORITHMS [DIGEST-TYPES] [NAME-SERVER]. A CSV
    /// file has a header.
    Import(ImportArguments),
    /// Generate snapshots of a model with known counts, for tests.
    ///
    /// Writes a file for each month, and truth.json with the counts that a report must find.
    Generate(GenerateArguments),
    /// Count the domains of snapshots, and write tables and a page with charts.
    ///
    /// Writes report.html, report.json, and each table as CSV and Parquet.
    Report(ReportArguments),
    /// Write the SQL of the report, and a script that runs it on Spark.
    Sql(SqlArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Read these files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the snapshots to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Set the format of the input.
    ///
    /// Default: zone for *.zone, csv for *.csv, list for *.txt and *.list.
    #[arg(long)]
    pub(crate) format: Option<InputFormat>,
    /// Set the name of the source. Default: the apex of a zone.
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Set the date of the snapshot.
    ///
    /// Default: the date in the serial number of a zone, if it has the form YYYYMMDDnn.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) date: Option<Date>,
    /// Set the origin of zone files. Default: the owner of the SOA record.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) origin: Option<Name>,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Format of an input of `import`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Zone,
    List,
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// Write the snapshots to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Set the number of domains at the end of the period.
    ///
    /// 70 % of them exist at its start. The default for ten years of days results in 100 million rows.
    #[arg(long, value_name = "NUMBER", default_value_t = 32_500, value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    pub(crate) domains: u32,
    /// Set the first day.
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2015-01-01")]
    pub(crate) from: Date,
    /// Set the last day.
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2024-12-31")]
    pub(crate) to: Date,
    /// Set the number of days from one snapshot to the next.
    #[arg(long, value_name = "DAYS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) every: u16,
    /// Set the seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgument,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Read these Parquet files, or all files *.parquet in these directories.
    #[arg(required = true, value_name = "SNAPSHOTS")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Write the report to this directory.
    #[arg(long, value_name = "DIR", default_value = "adoption-report")]
    pub(crate) out: PathBuf,
    /// Limit the memory of queries. Beyond it, they use temporary files.
    ///
    /// A number with MiB or GiB. The program needs up to 1 GiB in addition, for buffers of files.
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size)]
    pub(crate) memory: usize,
    /// Write temporary files to this directory, which is created. Default: that of the system.
    #[arg(long, value_name = "DIR")]
    pub(crate) spill: Option<PathBuf>,
    /// Print report.json instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgument,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArguments {
    /// Write the files to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadsArgument {
    /// Set the number of threads. Default: the number of CPUs.
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZeroU16>,
}

impl ThreadsArgument {
    /// Returns the number of threads, at least 1.
    pub(crate) fn count(&self) -> usize {
        let cpus = || thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cpus, |threads| threads.get().into())
    }
}

/// Smallest limit of memory: that of one sorted batch for each thread, and space to merge.
const MIN_MEMORY_MIB: usize = 64;

/// A size is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a size of at least {MIN_MEMORY_MIB} MiB, such as 512MiB or 2GiB")]
struct InvalidSize;

fn parse_size(text: &str) -> Result<usize, InvalidSize> {
    let mebibytes = match (text.strip_suffix("GiB"), text.strip_suffix("MiB")) {
        (Some(number), _) => number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(1024)),
        (_, Some(number)) => number.trim().parse().ok(),
        _ => None,
    };
    let size = mebibytes.filter(|size| *size >= MIN_MEMORY_MIB).and_then(|size| size.checked_mul(1 << 20));
    size.ok_or(InvalidSize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes_have_a_unit_and_a_minimum() {
        assert_eq!((parse_size("2GiB"), parse_size("64 MiB")), (Ok(2 << 30), Ok(64 << 20)));
        for invalid in ["2", "63MiB", "-1GiB", "GiB", "99999999999999999GiB", "2GB"] {
            assert_eq!(parse_size(invalid), Err(InvalidSize), "{invalid}");
        }
    }
}
