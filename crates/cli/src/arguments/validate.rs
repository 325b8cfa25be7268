//! Arguments of `validate`.

use super::values::parse_time;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// File with the responses, one on each line; - for standard input.
    ///
    /// A line is a DNS message in hexadecimal, or a JSON object: the output of nonesuch query --json,
    /// or an object with the member messageOctetsHEX (RFC 8427) or response (Base64 or hexadecimal).
    /// Optional members: id, which is copied to the output; question, an object with name and type,
    /// if it differs from the question of the message; zone, dnskey, nsec5key and now, the apex, lists
    /// of RDATA in Base64 and the time in seconds since 1970, to validate this response with these
    /// keys and not from a trust anchor. Empty lines and lines that begin with # or ; are skipped. A
    /// line has at most 1 MiB, the input 256 MiB.
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Read the trust anchors from this file.
    ///
    /// DS or DNSKEY records in zone file format, a root.key of Unbound, or root-anchors.xml of IANA.
    /// The responses for DNSKEY, DS and NSEC5KEY and the referrals that lead from these zones to the
    /// others must be in the input, in any order. DNSKEY records validate the responses of their zone
    /// also without a response for DNSKEY. Default: the keys of the root zone of the Internet.
    #[arg(long, value_name = "FILE")]
    pub(crate) anchor: Option<PathBuf>,
    /// Set the time at which the signatures must be valid.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print a JSON object for each line.
    ///
    /// The members: line; id; question; zone, whose keys validate the response; rcode, the proved
    /// response code or that of the message; status; proved; reason; rule; info_code, the code of the extended DNS error (RFC
    /// 8914); signatures, hashes and vrf, the number of verified signatures, NSEC3 hashes and NSEC5
    /// proofs. For an invalid line, the status is error, and error has the reason.
    #[arg(long)]
    pub(crate) json: bool,
}
