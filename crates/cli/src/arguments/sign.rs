//! Arguments of `zone sign`.

use super::values::{ArgumentError, TimeArgument, parse_duration, parse_time};
use clap::Args;
use data_encoding::HEXUPPER;
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::inspect::DenialInfo;
use nonesuch_dnssec::sign::SerialPolicy;
use nonesuch_proto::Name;
use nonesuch_zone::zonemd::{UnknownHash, ZonemdHash};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, Args)]
pub(crate) struct SignArguments {
    /// Zone file or compiled zone; - for standard input.
    #[arg(required_unless_present = "changes")]
    pub(crate) file: Option<PathBuf>,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Read the key files of the zone in this directory.
    #[arg(long, default_value = ".")]
    pub(crate) keys: PathBuf,
    /// Ignore the times in the key files (Publish, Activate, Inactive and others).
    ///
    /// Every key is published and signs.
    #[arg(long)]
    pub(crate) ignore_key_times: bool,
    /// Select the denial mechanism: nsec, nsec3, nsec3-opt-out, nsec5, nsec5-opt-out.
    ///
    /// Default: the mechanism of the previous zone, else of the input if it is signed, else nsec.
    #[arg(long)]
    pub(crate) denial: Option<Mechanism>,
    /// Store the VRF key and proofs of NSEC5 in this directory.
    ///
    /// Default: nsec5 in the directory of the output. If there is no key, one is generated. The
    /// directory must not contain signing keys.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Select the VRF of a new NSEC5 key: p256, ed25519-tai, ed25519 or rsa. Default: p256.
    #[arg(long, value_parser = parse_vrf)]
    pub(crate) vrf: Option<VrfAlgorithm>,
    /// Keep NSEC5KEY records of other keys in the zone file, for a rollover.
    #[arg(long)]
    pub(crate) keep_nsec5key: bool,
    /// Write to this file; - for standard output.
    ///
    /// Default: FILE.signed (with --only-keys FILE.keys), or standard output if the zone comes from
    /// standard input.
    #[arg(long = "output", short = 'f', required_unless_present = "file")]
    pub(crate) output: Option<PathBuf>,
    /// Set the start of the validity of signatures. Default: now-1h.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the time of signing (+3600,
    /// -1h, now-1h).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) inception: Option<TimeArgument>,
    /// Set the end of the validity of signatures. Default: now+14d.
    ///
    /// A time as for --inception; 30d and +2592000 count from the inception, now+30d from the time
    /// of signing.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) expiration: Option<TimeArgument>,
    /// Set the maximum random reduction of the expiration: seconds, or a duration such as 3d.
    ///
    /// It distributes the expiration of the signatures over this time.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    pub(crate) jitter: u32,
    /// Set the serial policy: keep, increment, unixtime or date.
    #[arg(long, default_value = "keep")]
    pub(crate) serial: SerialPolicy,
    /// Set the NSEC3 salt in hexadecimal digits, two for each octet; - for no salt.
    ///
    /// RFC 9276 advises against a salt. Default: the salt of the previous zone, or of the input if
    /// it has the same mechanism, else none.
    #[arg(long, value_name = "HEX")]
    pub(crate) nsec3_salt: Option<String>,
    /// Set the number of NSEC3 iterations: 0 to 500.
    ///
    /// RFC 9276 requires 0. Default: the number of the previous zone, or of the input if it has the
    /// same mechanism, else 0.
    #[arg(long)]
    pub(crate) nsec3_iterations: Option<u16>,
    /// Publish CDS and CDNSKEY records of the keys with the SEP flag.
    #[arg(long)]
    pub(crate) cds: bool,
    /// Set the TTL of the DNSKEY RRset: seconds, or a duration such as 1d.
    #[arg(long, value_name = "TTL", value_parser = parse_duration)]
    pub(crate) dnskey_ttl: Option<u32>,
    /// Generate ZONEMD records (RFC 8976): sha384, sha512, both as sha384,sha512, or none.
    ///
    /// Default: the hash algorithms of the ZONEMD records in the zone file. The records are the
    /// last lines of the output, because the digest covers all others.
    #[arg(long, value_name = "HASHES")]
    pub(crate) zonemd: Option<ZonemdHashes>,
    /// Remove DNSKEY records in the zone file that belong to no given key.
    #[arg(long)]
    pub(crate) drop_foreign_dnskeys: bool,
    /// Use fresh randomness for each signature, if the algorithm permits it (ML-DSA: "hedged").
    ///
    /// This protects against fault attacks during signing, but signing twice does not generate the
    /// same zone.
    #[arg(long)]
    pub(crate) hedged: bool,
    /// Set the time of signing.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Set the seed of the jitter, in addition to the time.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Sign only the key set at the apex (DNSKEY, CDS, CDNSKEY), for online signing.
    ///
    /// For zone-signing keys, the .key files are sufficient. The default output is FILE.keys. The
    /// serial does not change.
    #[arg(long, conflicts_with_all = ["denial", "nsec5_keys", "vrf", "keep_nsec5key", "zonemd", "previous", "compiled",
        "serial", "jitter", "seed", "hedged", "nsec3_salt", "nsec3_iterations"])]
    pub(crate) only_keys: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    // Must be the last field: options after it would appear under its help heading.
    #[command(flatten)]
    pub(crate) resign: ResignArguments,
}

impl SignArguments {
    /// The denial mechanism of the signed zone.
    pub(crate) fn mechanism(&self) -> Mechanism {
        self.denial.unwrap_or(Mechanism::Nsec)
    }

    /// Sets the mechanism and, for NSEC3, the parameters to those of a signed zone, unless they are
    /// given.
    pub(crate) fn set_default_denial(&mut self, denial_info: Option<DenialInfo>) {
        let Some(denial_info) = denial_info else { return };
        let mechanism = *self.denial.get_or_insert(denial_info.mechanism);
        if let Some(parameters) = denial_info.parameters.filter(|_| mechanism.name_hash() == NameHash::Sha1) {
            self.nsec3_iterations.get_or_insert(parameters.iterations);
            self.nsec3_salt.get_or_insert_with(|| match parameters.salt.as_slice() {
                [] => "-".to_owned(),
                salt => HEXUPPER.encode(salt),
            });
        }
    }
}

/// Hash algorithms of ZONEMD records, without duplicates; empty for no ZONEMD records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZonemdHashes(pub(crate) Vec<ZonemdHash>);

impl FromStr for ZonemdHashes {
    type Err = UnknownHash;

    fn from_str(text: &str) -> Result<Self, UnknownHash> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(Vec::new()));
        }
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Options of incremental signing.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Incremental signing")]
pub(crate) struct ResignArguments {
    /// Reuse signatures of this previous signed zone, a zone file or compiled zone.
    ///
    /// A signature is reused if its records and key are unchanged and it does not expire soon. The
    /// new serial follows the serial of this zone. If this is the output file and does not exist
    /// yet, the zone is signed from scratch.
    #[arg(long, value_name = "SIGNED")]
    pub(crate) previous: Option<PathBuf>,
    /// Read changes of the unsigned zone instead of a zone file; - for standard input.
    ///
    /// In the format of `nonesuch zone diff --changes`.
    #[arg(long, requires = "previous", conflicts_with = "file")]
    pub(crate) changes: Option<PathBuf>,
    /// Re-sign RRSIGs that expire within this time: seconds, or a duration such as 5d.
    ///
    /// Default: a quarter of the validity.
    #[arg(long, requires = "previous", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) refresh: Option<u32>,
    /// Verify the whole previous zone first, and reject it if it is invalid.
    ///
    /// Default: verify a sample of its signatures.
    #[arg(long, requires = "previous")]
    pub(crate) verify_previous: bool,
    /// Sign a version that is bogus for validators with the previous keys.
    ///
    /// With --previous or --only-keys, for example for a Double-DS rollover. Logs a warning instead
    /// of failing.
    #[arg(long)]
    pub(crate) allow_unsafe_transition: bool,
    /// Write the changes from the previous signed zone, including signatures, as a change set.
    #[arg(long, requires = "previous", value_name = "FILE")]
    pub(crate) changes_out: Option<PathBuf>,
    /// Write a compiled zone instead of a zone file.
    #[arg(long)]
    pub(crate) compiled: bool,
}

/// Reads the name or number of a VRF.
fn parse_vrf(text: &str) -> Result<VrfAlgorithm, ArgumentError> {
    let names = || VRF_ALGORITHMS.iter().map(|entry| entry.name).collect();
    VrfAlgorithm::from_name(text).ok_or_else(|| ArgumentError::ExpectedOneOf(names()))
}
