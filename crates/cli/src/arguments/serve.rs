//! Arguments of `serve`.

use super::values::{ArgumentError, parse_duration_in, parse_socket_address, parse_time};
use clap::Args;
use nonesuch_authoritative::server::DEFAULT_SIGNATURE_CACHE_OCTETS;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::online::{DEFAULT_VALIDITY, MAX_VALIDITY, MIN_VALIDITY};
use nonesuch_proto::Name;
use nonesuch_server::reply_options::{DEFAULT_UDP_SIZE, UDP_SIZE_RANGE};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    override_usage = "nonesuch serve [OPTIONS] <FILE>\n       nonesuch serve --config <FILE> [--check[=zones] [--strict]] [--background] [--json]"
)]
pub(crate) struct ServeArguments {
    /// Zone file or compiled zone; - for standard input.
    #[arg(
        required = false,
        required_unless_present = "config",
        default_value_if("config", clap::builder::ArgPredicate::IsPresent, "-")
    )]
    pub(crate) file: PathBuf,
    /// Serve the zones of this configuration.
    ///
    /// Only --check, --strict, --background and --json can be combined with it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "origin", "listen", "workers", "cpus", "max_udp_size", "verify", "allow_unsafe_transition", "now", "denial", "keys",
        "ignore_key_times", "nsec5_keys", "signature_cache", "signature_validity"])]
    pub(crate) config: Option<PathBuf>,
    /// Check the configuration and the files that it names, and do not serve.
    ///
    /// --check=zones also verifies all zones from files.
    #[arg(long, value_name = "SCOPE", num_args = 0..=1, require_equals = true, default_missing_value = "files")]
    pub(crate) check: Option<CheckScope>,
    /// Start the server in the background, and return when it is ready.
    ///
    /// Prints only the process ID of the server on standard output; messages of the server go to
    /// standard error. If the server does not start, the exit status is that of the server:
    /// `server=$(nonesuch serve FILE --background) || exit`.
    #[arg(long, conflicts_with = "check")]
    pub(crate) background: bool,
    /// With --check: also check zones, and treat findings of the semantic checks as faults.
    #[arg(long, requires = "check")]
    pub(crate) strict: bool,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Listen on this address and port; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5300", value_parser = parse_socket_address)]
    pub(crate) listen: SocketAddr,
    /// Set the number of UDP threads. Default: one for each core.
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Bind the workers to these CPUs, for example 0,1,2.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cpus: Vec<usize>,
    /// Set the maximum size of a response over UDP, in octets: 512 to 4096.
    ///
    /// Longer responses are truncated, and clients repeat the query over TCP.
    #[arg(long, value_name = "OCTETS", default_value_t = DEFAULT_UDP_SIZE,
        value_parser = clap::value_parser!(u16).range(i64::from(*UDP_SIZE_RANGE.start())..=i64::from(*UDP_SIZE_RANGE.end())))]
    pub(crate) max_udp_size: u16,
    /// Select how much of a signed zone to verify before serving it: full, structural or auto.
    ///
    /// structural: chain and bit maps, without signatures. auto: full up to 100,000 signatures, and
    /// structural for a compiled zone that was verified in full. Except with full, a compiled zone
    /// that was already verified to the same extent is served from its image immediately.
    #[arg(long, default_value = "auto")]
    pub(crate) verify: VerifyMode,
    /// At a reload, serve a version that is bogus for validators with the previous keys.
    ///
    /// The server logs a warning.
    #[arg(long)]
    pub(crate) allow_unsafe_transition: bool,
    /// Print the lines "ready" and "stopped" as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Set the time at which the signatures must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    // Must be the last field: options after it would appear under its help heading.
    #[command(flatten)]
    pub(crate) online: OnlineArguments,
}

/// Options of online signing.
#[derive(Debug, Args)]
#[command(next_help_heading = "Records generated online")]
pub(crate) struct OnlineArguments {
    /// Generate denial records and missing signatures online: minimal-nsec, compact, white-lies.
    #[arg(long, value_name = "MECHANISM", requires = "keys")]
    pub(crate) denial: Option<Mechanism>,
    /// Read the key files of the zone in this directory.
    ///
    /// The zone-signing keys sign. For key-signing keys, the .key files are sufficient if the key
    /// set is signed (`nonesuch zone sign --only-keys`).
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: Option<PathBuf>,
    /// Ignore the times in the key files (Publish, Activate, Inactive and others).
    ///
    /// Every key is published and signs.
    #[arg(long, requires = "keys")]
    pub(crate) ignore_key_times: bool,
    /// Read the VRF key and stored proofs of a zone with NSEC5 in this directory.
    ///
    /// Default: nsec5 in the directory of the zone file. Neither directory may contain a signing
    /// key.
    #[arg(long, value_name = "DIR", conflicts_with = "denial")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Set the size of the cache of signatures and proofs of all threads, in MiB: 1 to 1048576.
    #[arg(long, value_name = "MIB", default_value_t = (DEFAULT_SIGNATURE_CACHE_OCTETS >> 20) as u32,
        value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) signature_cache: u32,
    /// Set the validity of a signature: seconds, or a duration such as 7d.
    ///
    /// The server replaces a signature when a quarter of its validity is left.
    #[arg(long, value_name = "DURATION", default_value_t = DEFAULT_VALIDITY, value_parser = parse_validity)]
    pub(crate) signature_validity: u32,
}

fn parse_validity(text: &str) -> Result<u32, ArgumentError> {
    parse_duration_in(text, MIN_VALIDITY..=MAX_VALIDITY)
}

/// What `--check` checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CheckScope {
    /// The configuration, files and directories.
    Files,
    /// Also zones.
    Zones,
}

/// How much of a zone is verified before it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum VerifyMode {
    Auto,
    Full,
    Structural,
}
