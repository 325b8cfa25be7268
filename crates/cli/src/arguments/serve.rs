//! Arguments of `serve`.

use super::values::{ArgumentError, parse_duration_in, parse_socket_address, parse_time};
use clap::Args;
use nonesuch_authoritative::server::DEFAULT_SIGNATURE_CACHE;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::online::{DEFAULT_VALIDITY, MAX_VALIDITY, MIN_VALIDITY};
use nonesuch_proto::Name;
use nonesuch_server::reply_options::{DEFAULT_UDP_SIZE, UDP_SIZES};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    override_usage = "nonesuch serve [OPTIONS] <FILE>\n       nonesuch serve --config <FILE> [--check[=zones] [--strict]] [--background] [--json]"
)]
pub(crate) struct ServeArguments {
    /// Zone file, or a compiled zone; - for standard input.
    #[arg(
        required = false,
        required_unless_present = "config",
        default_value_if("config", clap::builder::ArgPredicate::IsPresent, "-")
    )]
    pub(crate) file: PathBuf,
    /// Serve the zones of a configuration; of the other options --check, --strict, --background and --json alone go with it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "origin", "listen", "workers", "cpus", "max_udp_size", "verify", "allow_unsafe_transition", "now", "denial", "keys",
        "ignore_key_times", "nsec5_keys", "signature_cache", "signature_validity"])]
    pub(crate) config: Option<PathBuf>,
    /// Check the configuration, and the files and folders that it names, and do not serve; with --check=zones, verify
    /// all zones that have files too.
    #[arg(long, value_name = "SCOPE", num_args = 0..=1, require_equals = true, default_missing_value = "files")]
    pub(crate) check: Option<CheckScope>,
    /// Start the server as a process of its own, and return when it answers.
    ///
    /// Prints the server's process ID alone on standard output; the server's messages go to standard error. Where the server does not
    /// start, the exit status is the server's: `server=$(nonesuch serve FILE --background) || exit`.
    #[arg(long, conflicts_with = "check")]
    pub(crate) background: bool,
    /// With --check: check zones too, and make faults of the findings of the semantic checks.
    #[arg(long, requires = "check")]
    pub(crate) strict: bool,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Address and port; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5300", value_parser = parse_socket_address)]
    pub(crate) listen: SocketAddr,
    /// UDP threads; default one for each core.
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// CPUs that the workers are bound to, as 0,1,2.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cpus: Vec<usize>,
    /// Maximum size of a response over UDP, in octets: 512 to 4096. Longer responses are truncated, and clients ask again over TCP.
    #[arg(long, value_name = "OCTETS", default_value_t = DEFAULT_UDP_SIZE,
        value_parser = clap::value_parser!(u16).range(i64::from(*UDP_SIZES.start())..=i64::from(*UDP_SIZES.end())))]
    pub(crate) max_udp_size: u16,
    /// How a signed zone is verified before it is served: full, structural (chain and bitmaps without
    /// signatures), or auto: full up to 100,000 signatures, structural for a compiled zone that was verified in full.
    /// Except with full, a compiled zone of which as much was verified is served from its image at once.
    #[arg(long, default_value = "auto")]
    pub(crate) verify: VerifyMode,
    /// At a reload, serve a version that breaks validators which hold the keys of the version before, with a warning.
    #[arg(long)]
    pub(crate) allow_unsafe_transition: bool,
    /// Print the "ready" and "stopped" lines as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Time at which the signatures must be valid: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    // Must be the last field: options after it would appear under its help heading.
    #[command(flatten)]
    pub(crate) online: OnlineArguments,
}

/// Answers made when asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Answers made when asked")]
pub(crate) struct OnlineArguments {
    /// Make the records of denials when asked, and all signatures that the zone has not: minimal-nsec, compact, white-lies.
    #[arg(long, value_name = "MECHANISM", requires = "keys")]
    pub(crate) denial: Option<Mechanism>,
    /// Folder with the zone's key files. The zone-signing keys sign; of key-signing keys the .key files are enough where
    /// the key set is signed (`nonesuch zone sign --only-keys`).
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: Option<PathBuf>,
    /// Ignore the times in the key files (Publish, Activate, Inactive and so on): every key is published and signs.
    #[arg(long, requires = "keys")]
    pub(crate) ignore_key_times: bool,
    /// Folder of the VRF key and the stored proofs of a zone with NSEC5; default nsec5 beside the zone file. No signing key
    /// may be there, nor beside the zone file.
    #[arg(long, value_name = "DIR", conflicts_with = "denial")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Memory for signatures and proofs made before, in MiB, all threads together.
    #[arg(long, value_name = "MIB", default_value_t = (DEFAULT_SIGNATURE_CACHE >> 20) as u32,
        value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) signature_cache: u32,
    /// Validity of a signature, in seconds or as a duration (7d); it is replaced when a quarter of that is left.
    #[arg(long, value_name = "DURATION", default_value_t = DEFAULT_VALIDITY, value_parser = parse_validity)]
    pub(crate) signature_validity: u32,
}

fn parse_validity(text: &str) -> Result<u32, ArgumentError> {
    parse_duration_in(text, MIN_VALIDITY..=MAX_VALIDITY)
}

/// What is checked of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CheckScope {
    /// The configuration, files and folders.
    Files,
    /// Zones too.
    Zones,
}

/// How thoroughly a zone is verified before it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum VerifyMode {
    Auto,
    Full,
    Structural,
}
