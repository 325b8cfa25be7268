//! Arguments of `check authoritative`.

use super::super::values::parse_time;
use super::CheckOptions;
use clap::Args;
use nonesuch_proto::Name;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CheckAuthoritativeArguments {
    /// Query this server: ADDRESS, ADDRESS:PORT, [IPv6 ADDRESS]:PORT or HOST.
    #[allow(rustdoc::broken_intra_doc_links, reason = "text of --help, not a link")]
    #[arg(required_unless_present_any = ["list", "write_test_zones"])]
    pub(crate) server: Option<String>,
    /// The apex of a zone that the server serves.
    #[arg(long, required_unless_present_any = ["list", "write_test_zones"])]
    pub(crate) zone: Option<Name>,
    /// Write test zones to this directory, one for each denial mechanism, and exit.
    ///
    /// Load one of them on the server, and check it with --zone: the check recognises a test zone, and
    /// tests more items with its names. The directory must be empty or not exist.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server", "list"])]
    pub(crate) write_test_zones: Option<PathBuf>,
    /// Set the apex of the test zones. Each zone is one label below it.
    #[arg(long, value_name = "NAME", requires = "write_test_zones", default_value = "check.example")]
    pub(crate) origin: Name,
    /// Validate the responses from the trust anchors in this file: DS or DNSKEY records.
    ///
    /// Default: the DNSKEY records of the server.
    #[arg(long, value_name = "FILE")]
    pub(crate) anchor: Option<PathBuf>,
    /// Transfer the zone with the TSIG key in this file, or this key. Forms: as --tsig-key of `query`.
    #[arg(long, value_name = "FILE|NAME:FILE|NAME:ALGORITHM:SECRET")]
    pub(crate) tsig_key: Option<String>,
    /// Set the time at which signatures must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    #[command(flatten)]
    pub(crate) options: CheckOptions,
}
