//! Arguments of `zone sign`.

use super::values::{ArgumentError, TimeArgument, parse_duration, parse_time};
use clap::Args;
use data_encoding::HEXUPPER;
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::inspect::DenialInfo;
use nonesuch_dnssec::sign::SerialPolicy;
use nonesuch_proto::Name;
use nonesuch_zone::zonemd::{UnknownHash, ZonemdHash};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, Args)]
pub(crate) struct SignArguments {
    /// Zone file, or a compiled zone; - for standard input.
    #[arg(required_unless_present = "changes")]
    pub(crate) file: Option<PathBuf>,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Folder with the zone's key files.
    #[arg(long, default_value = ".")]
    pub(crate) keys: PathBuf,
    /// Ignore the times in the key files (Publish, Activate, Inactive and so on): every key is published and signs.
    #[arg(long)]
    pub(crate) ignore_key_times: bool,
    /// Denial mechanism: nsec, nsec3, nsec3-opt-out, nsec5, nsec5-opt-out; default that of the previous
    /// zone, else that of the input where it is signed, else nsec.
    #[arg(long)]
    pub(crate) denial: Option<Mechanism>,
    /// Folder of the VRF key and of the proofs, for NSEC5; default nsec5 beside the output. A key is made where there is
    /// none. Signing keys do not belong there.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// VRF that a key is made of, for NSEC5: p256, ed25519-tai, ed25519, rsa; default p256.
    #[arg(long, value_parser = parse_vrf)]
    pub(crate) vrf: Option<VrfAlgorithm>,
    /// Keep NSEC5KEY records of other keys that the zone file holds, as a roll-over needs.
    #[arg(long)]
    pub(crate) keep_nsec5key: bool,
    /// Output file; - for standard output. Default: FILE.signed (with --only-keys FILE.keys), or standard output where the
    /// zone comes from standard input.
    #[arg(long = "output", short = 'f', required_unless_present = "file")]
    pub(crate) output: Option<PathBuf>,
    /// First second of validity: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the time of signing (+3600,
    /// -1h, now-1h); default now-1h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) inception: Option<TimeArgument>,
    /// Last second of validity: a time as for --inception; 30d and +2592000 count from the inception, now+30d from the time
    /// of signing. Default now+14d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) expiration: Option<TimeArgument>,
    /// Maximum random reduction of the expiration, so that signatures expire one after the other: seconds, or a duration as 3d.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    pub(crate) jitter: u32,
    /// What becomes of the serial: keep, increment, unixtime, date.
    #[arg(long, default_value = "keep")]
    pub(crate) serial: SerialPolicy,
    /// NSEC3 salt in hexadecimal digits, two for each octet; - for none, as RFC 9276 wants. Default that of the previous
    /// zone, or of the input with its mechanism, else none.
    #[arg(long, value_name = "HEX")]
    pub(crate) nsec3_salt: Option<String>,
    /// NSEC3 iterations, at most 500; RFC 9276 wants 0. Default those of the previous zone, or of the input with its
    /// mechanism, else 0.
    #[arg(long)]
    pub(crate) nsec3_iterations: Option<u16>,
    /// Publish CDS and CDNSKEY records of the keys that the parent's DS records are to name.
    #[arg(long)]
    pub(crate) cds: bool,
    /// TTL of the DNSKEY RRset: seconds, or a duration as 1d.
    #[arg(long, value_name = "TTL", value_parser = parse_duration)]
    pub(crate) dnskey_ttl: Option<u32>,
    /// Hash algorithms of the ZONEMD records (RFC 8976): sha384, sha512, both as sha384,sha512, or none. Default: those of
    /// the ZONEMD records that the zone file has. They are the last lines of the output, as the digest is over all others.
    #[arg(long, value_name = "HASHES")]
    pub(crate) zonemd: Option<ZonemdHashes>,
    /// Drop DNSKEY records of the zone file that no given key belongs to.
    #[arg(long)]
    pub(crate) drop_foreign_dnskeys: bool,
    /// Draw fresh randomness for every signature where the algorithm leaves the choice, as ML-DSA does ("hedged"): it
    /// guards against faults that are induced while signing, but signing twice does not make the same zone.
    #[arg(long)]
    pub(crate) hedged: bool,
    /// Time of signing: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// What the jitter is drawn from, beside the time.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Sign the key set at the apex alone (DNSKEY, CDS, CDNSKEY), for a server that signs all else when asked: of
    /// zone-signing keys the .key files are enough. The output is FILE.keys by default. The serial stays as it is.
    #[arg(long, conflicts_with_all = ["denial", "nsec5_keys", "vrf", "keep_nsec5key", "zonemd", "previous", "compiled",
        "serial", "jitter", "seed", "hedged", "nsec3_salt", "nsec3_iterations"])]
    pub(crate) only_keys: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    // Must be the last field: options after it would appear under its help heading.
    #[command(flatten)]
    pub(crate) again: ResignArguments,
}

impl SignArguments {
    /// How the zone is to deny existence.
    pub(crate) fn mechanism(&self) -> Mechanism {
        self.denial.unwrap_or(Mechanism::Nsec)
    }

    /// Sets the mechanism and, for NSEC3, the parameters to those of a signed zone, unless they are given.
    pub(crate) fn set_denial(&mut self, facts: Option<DenialInfo>) {
        let Some(facts) = facts else { return };
        let mechanism = *self.denial.get_or_insert(facts.mechanism);
        if let Some(parameters) = facts.parameters.filter(|_| mechanism.mapping() == Mapping::Sha1) {
            self.nsec3_iterations.get_or_insert(parameters.iterations);
            self.nsec3_salt.get_or_insert_with(|| match parameters.salt.as_slice() {
                [] => "-".to_owned(),
                salt => HEXUPPER.encode(salt),
            });
        }
    }
}

/// Hash algorithms of ZONEMD records, each once; none where none are to be made.
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

/// Signing what was signed before.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Incremental signing")]
pub(crate) struct ResignArguments {
    /// The zone as it was signed last: a zone file or a compiled zone. Its signatures are kept where the records are the
    /// same, the keys are, and they do not expire soon; the serial comes after its serial. Where it is the output file and
    /// does not exist yet, the zone is signed from scratch.
    #[arg(long, value_name = "SIGNED")]
    pub(crate) previous: Option<PathBuf>,
    /// Changes of the unsigned zone since then, as `nonesuch zone diff --changes` prints them, in place of a zone file; -
    /// for standard input.
    #[arg(long, requires = "previous", conflicts_with = "file")]
    pub(crate) changes: Option<PathBuf>,
    /// Replace signatures that expire within this time: seconds, or a duration as 5d; default a quarter of the validity.
    #[arg(long, requires = "previous", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) refresh: Option<u32>,
    /// Verify the previous zone as a whole first, and refuse it where it is not sound; else a sample of its signatures.
    #[arg(long, requires = "previous")]
    pub(crate) verify_previous: bool,
    /// With --previous or --only-keys: sign although validators that hold the previous version's keys take the new version for
    /// bogus, as a Double-DS roll-over needs; warn of it, and do not fail.
    #[arg(long)]
    pub(crate) allow_unsafe_transition: bool,
    /// Write what differs from the previous signed zone, signatures included, as a change set.
    #[arg(long, requires = "previous", value_name = "FILE")]
    pub(crate) changes_out: Option<PathBuf>,
    /// Write a compiled zone in place of a zone file.
    #[arg(long)]
    pub(crate) compiled: bool,
}

/// Reads the name or number of a VRF.
fn parse_vrf(text: &str) -> Result<VrfAlgorithm, ArgumentError> {
    let names = || VRF_ALGORITHMS.iter().map(|entry| entry.name).collect();
    VrfAlgorithm::from_name(text).ok_or_else(|| ArgumentError::ExpectedOneOf(names()))
}
