//! Arguments of `enumerate`.

use super::values::{ArgumentError, parse_seconds, parse_time};
use clap::Args;
use nonesuch_lab::enumerate::crack::pattern::Mask;
use nonesuch_proto::Name;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct EnumerateArguments {
    /// The apex of the zone.
    pub(crate) zone: Name,
    /// Query this server: @ADDRESS, @ADDRESS:PORT, @[IPv6 ADDRESS]:PORT or @HOST.
    ///
    /// For your own servers, for example @127.0.0.1:5300. Without a server, the hashes of --state are
    /// searched offline.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(value_name = "@SERVER", required_unless_present = "state")]
    pub(crate) server: Option<String>,
    /// Save the results in this file, and continue from it.
    ///
    /// The file is replaced every ten seconds and at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) names: EnumeratedNames,
    #[command(flatten)]
    pub(crate) limits: EnumerateLimits,
    /// Write the hashes whose names are unknown to --export-file for this program: hashcat (mode 8300).
    #[arg(long, value_name = "PROGRAM", requires = "export_file")]
    pub(crate) export: Option<ExportFormat>,
    /// Write the export to this file; - for standard output.
    #[arg(long, value_name = "FILE", requires = "export")]
    pub(crate) export_file: Option<PathBuf>,
    /// Attack the zone with the files of a stolen server in this directory; may be repeated.
    ///
    /// Name the state directory, the key directory, or the directory of the VRF key. The command forges
    /// responses, which the validator of nonesuch judges, and searches for names without queries.
    #[arg(long, value_name = "DIR")]
    pub(crate) stolen_server: Vec<PathBuf>,
    /// Set the seed of the random names. Default: random.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Set the time of forged signatures, and at which they must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names that are tested.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names")]
pub(crate) struct EnumeratedNames {
    /// Test the words in this file, one on each line; may be repeated.
    ///
    /// Default: about 200 common labels, without --mask.
    #[arg(long, value_name = "FILE")]
    pub(crate) words: Vec<PathBuf>,
    /// Test the names of this mask; may be repeated.
    ///
    /// ?l: a to z; ?d: 0 to 9; ?h: 0 to 9 and a to f; ?a: letters, digits and hyphen; [abc0-9]: one of
    /// these; other characters stand for themselves. For example ?l?l?l?d.
    #[arg(long)]
    pub(crate) mask: Vec<Mask>,
    /// Test each word also with this mask before it; may be repeated.
    #[arg(long, value_name = "MASK")]
    pub(crate) prefix: Vec<Mask>,
    /// Test each word also with this mask after it; may be repeated. For example ?d?d.
    #[arg(long, value_name = "MASK")]
    pub(crate) suffix: Vec<Mask>,
    /// Test names below the apex (1), and also below names found so far (2 to 5).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) depth: u8,
    /// Collect the hashes, and do not search for their names.
    #[arg(long)]
    pub(crate) no_crack: bool,
    /// Set the number of threads of the search. Default: one for each core.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Guess at most this number of names online, if the zone resists enumeration.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) guesses: u64,
}

/// Limits of the queries and of the search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct EnumerateLimits {
    /// Send at most this number of queries per second: 0.01 to 100000.
    #[arg(long, value_name = "QPS", default_value_t = 100.0, value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// Send at most this number of queries.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) max_queries: u64,
    /// End the queries, and then the search, after this time each: seconds, or a duration such as 2h.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_seconds)]
    pub(crate) time_limit: f64,
    /// Set the time limit for a response: seconds, or a duration such as 1m.
    #[arg(long, value_name = "DURATION", default_value_t = 2.0, value_parser = parse_seconds)]
    pub(crate) timeout: f64,
    /// Repeat a query this number of times if there is no response.
    #[arg(long, default_value_t = 2)]
    pub(crate) retries: u32,
    /// Send the queries over TCP.
    #[arg(long)]
    pub(crate) tcp: bool,
}

/// A program that reads an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// One line for each hash: HASH:.ZONE:SALT:ITERATIONS.
    Hashcat,
}

fn parse_rate(text: &str) -> Result<f64, ArgumentError> {
    match text.parse() {
        Ok(rate) if (0.01..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err(ArgumentError::Expected("0.01 to 100000 queries per second")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bounded() {
        assert_eq!((parse_rate("0.5"), parse_rate("100000")), (Ok(0.5), Ok(100_000.0)));
        for wrong in ["0", "-1", "inf", "nan", "1e9", "x"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
