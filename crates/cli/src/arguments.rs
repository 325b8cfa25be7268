//! The command line: the one set of commands, from which help, manual pages and completions are made.

mod ctl;
mod load;
mod query;
mod zone;

pub(crate) use ctl::{CONFIGURATION, ControlArguments, ControlCommand, ControlZoneCommand, SOCKET};
pub(crate) use load::{LabEchoArguments, LoadArguments};
pub(crate) use query::{QueryArguments, QueryMessage, QueryTransport};
pub(crate) use zone::{CompileArguments, CompileVerify, DiffArguments, DiffScope, StatArguments};

use clap::{ArgAction, Args, Parser, Subcommand};
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm};
use nonesuch_crypto::{ALGORITHMS, Algorithm, DigestType};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::online::{DEFAULT_VALIDITY, LEAST_VALIDITY, MOST_VALIDITY};
use nonesuch_dnssec::sign::SerialPolicy;
use nonesuch_lab::compare::{DEFAULT_NAMES, DEFAULT_SECONDS_PER_LOAD, KeyKind};
use nonesuch_lab::experiment::verification::{Operation, Subject};
use nonesuch_lab::generate::Like;
use nonesuch_proto::{Name, timestamp};
use nonesuch_zone::zonemd::{UnknownHash, ZonemdHash};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// DNSSEC suite: signs, verifies and serves zones, and measures what each choice costs.
#[derive(Debug, Parser)]
#[command(name = "nonesuch", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Arguments {
    /// Say more on standard error; twice for everything.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure every algorithm and denial mechanism on a zone: one table, one report.
    Compare(CompareArguments),
    /// Sign, verify, compile, compare, count and generate zones.
    #[command(subcommand)]
    Zone(ZoneCommand),
    /// Make, list and import keys, and print their DS records.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Serve zones as an authoritative nameserver: one from a file, or those of a configuration.
    Serve(ServeArguments),
    /// Ask a nameserver one question and print the answer.
    ///
    /// Every record is readable, those of NSEC5 and of post-quantum algorithms too. Exit status: 0 where the answer is
    /// NOERROR or NXDOMAIN, or the transfer is whole; 1 where the server refused or failed, or its signature (TSIG) is not
    /// right; 2 where there is no answer, or the question cannot be asked.
    Query(Box<QueryArguments>),
    /// Send queries to a nameserver and measure what comes back.
    Load(LoadArguments),
    /// Run the laboratory's experiments.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Ask a running server how it stands, have it reload or stop.
    Ctl(ControlArguments),
    /// Write the manual pages and shell completions.
    Manual(ManualArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ZoneCommand {
    /// Sign a zone.
    Sign(Box<SignArguments>),
    /// Verify a signed zone: every signature, every bitmap, the whole chain.
    Verify(VerifyArguments),
    /// Write a zone, verified first, in the form that is loaded without reading text.
    Compile(CompileArguments),
    /// Say what differs between two versions of a zone.
    Diff(DiffArguments),
    /// Say what a zone is made of: names, records, delegations, octets, keys, signatures.
    Stat(StatArguments),
    /// Make a realistic zone.
    Generate(GenerateArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key pair; prints the base name of its two files.
    Generate(KeyGenerateArguments),
    /// List the keys of a folder, and whether their files are sound.
    List(KeyListArguments),
    /// Print the DS records that the parent zone is to publish.
    Ds(KeyDsArguments),
    /// Take over keys of BIND, ldns, PowerDNS (.private) or Knot DNS (PEM); prints the base names of their files.
    Import(KeyImportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct KeyGenerateArguments {
    /// The zone that the key is for.
    pub(crate) zone: Name,
    /// Algorithm: mnemonic or number; --help lists them.
    #[arg(long, short, default_value = "ecdsap256sha256", long_help = list_algorithms())]
    pub(crate) algorithm: Algorithm,
    /// Take the algorithm's number for zones with NSEC5, which resolvers without NSEC5 do not know.
    #[arg(long)]
    pub(crate) nsec5: bool,
    /// Make a key-signing key.
    #[arg(long, conflicts_with = "csk")]
    pub(crate) ksk: bool,
    /// Make a combined signing key: a key-signing key that signs all of the zone where there is no other.
    #[arg(long)]
    pub(crate) csk: bool,
    /// Length of an RSA key: 1280, 2048, 3072 or 4096; with --force also 1024.
    #[arg(long)]
    pub(crate) bits: Option<u16>,
    /// Make a key of a length that is known to be weak too, for experiments.
    #[arg(long)]
    pub(crate) force: bool,
    /// Folder that the files are written to.
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Time from which other tools may take the key to be in use: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
    #[arg(long, value_parser = parse_time)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyListArguments {
    /// The zone; without it keys of all zones are listed.
    pub(crate) zone: Option<Name>,
    /// Folder with key files.
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyDsArguments {
    /// Zones, whose keys are looked for in the folder, or paths of .key files.
    #[arg(required = true, value_name = "ZONE|FILE.key")]
    pub(crate) keys: Vec<String>,
    /// Folder with the key files of the zones.
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Digest types, by name or number: sha256, sha384; more than one as sha256,sha384.
    #[arg(long, default_value = "sha256", value_delimiter = ',', value_parser = parse_digest)]
    pub(crate) digest: Vec<DigestType>,
    /// Of zone-signing keys too, not of those with the SEP flag alone.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyImportArguments {
    /// Private keys: .private files, or PKCS#8 in PEM; a .key file of the same name beside one is read too.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Folder that the files are written to.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// The zone that the keys are for, where there is no .key file that says it.
    #[arg(long)]
    pub(crate) zone: Option<Name>,
    /// Algorithm of PEM keys: needed for RSA, whose keys do not tell 8 (RSASHA256) from 10 (RSASHA512).
    #[arg(long, short)]
    pub(crate) algorithm: Option<Algorithm>,
    /// They are key-signing keys.
    #[arg(long, group = "role")]
    pub(crate) ksk: bool,
    /// They are combined signing keys.
    #[arg(long, group = "role")]
    pub(crate) csk: bool,
    /// They are zone-signing keys.
    #[arg(long, group = "role")]
    pub(crate) zsk: bool,
    /// Time from which other tools may take keys without times of their own to be in use.
    #[arg(long, value_parser = parse_time)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

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
    /// Denial mechanism: nsec, nsec3, nsec3-opt-out, nsec5, nsec5-opt-out; default that of the previous zone, else nsec.
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
    /// First second of validity; default one hour ago.
    #[arg(long, value_parser = parse_time)]
    pub(crate) inception: Option<u32>,
    /// Last second of validity; default 14 days from now.
    #[arg(long, value_parser = parse_time)]
    pub(crate) expiration: Option<u32>,
    /// Most seconds that are taken off the expiration, so that signatures expire one after the other.
    #[arg(long, default_value_t = 0)]
    pub(crate) jitter: u32,
    /// What becomes of the serial: keep, increment, unixtime, date.
    #[arg(long, default_value = "keep")]
    pub(crate) serial: SerialPolicy,
    /// NSEC3 salt in hexadecimal digits, two for each octet; - for none, as RFC 9276 wants. Default that of the previous
    /// zone, else none.
    #[arg(long, value_name = "HEX")]
    pub(crate) nsec3_salt: Option<String>,
    /// NSEC3 iterations, at most 500; RFC 9276 wants 0. Default those of the previous zone, else 0.
    #[arg(long)]
    pub(crate) nsec3_iterations: Option<u16>,
    /// Publish CDS and CDNSKEY records of the keys that the parent's DS records are to name.
    #[arg(long)]
    pub(crate) cds: bool,
    /// TTL of the DNSKEY RRset.
    #[arg(long)]
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
    /// Time of signing: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
    #[arg(long, value_parser = parse_time)]
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
    // Last: what comes behind it stands under its heading.
    #[command(flatten)]
    pub(crate) again: AgainArguments,
}

impl SignArguments {
    /// How the zone is to deny existence.
    pub(crate) fn mechanism(&self) -> Mechanism {
        self.denial.unwrap_or(Mechanism::Nsec)
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
pub(crate) struct AgainArguments {
    /// The zone as it was signed last: a zone file or a compiled zone. Its signatures are kept where the records are the
    /// same, the keys are, and they do not expire soon; the serial comes after its serial.
    #[arg(long, value_name = "SIGNED")]
    pub(crate) previous: Option<PathBuf>,
    /// Changes of the unsigned zone since then, as `nonesuch zone diff --changes` prints them, in place of a zone file; -
    /// for standard input.
    #[arg(long, requires = "previous", conflicts_with = "file")]
    pub(crate) changes: Option<PathBuf>,
    /// Make signatures anew that expire within so many seconds; default: a quarter of the validity.
    #[arg(long, requires = "previous", value_name = "SECONDS")]
    pub(crate) refresh: Option<u32>,
    /// Verify the previous zone as a whole first, and refuse it where it is not sound; else a sample of its signatures.
    #[arg(long, requires = "previous")]
    pub(crate) verify_previous: bool,
    /// Write what differs from the previous signed zone, signatures included, as a change set.
    #[arg(long, requires = "previous", value_name = "FILE")]
    pub(crate) changes_out: Option<PathBuf>,
    /// Write a compiled zone in place of a zone file.
    #[arg(long)]
    pub(crate) compiled: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Zone file, or a compiled zone; - for standard input.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Time at which the signatures must be valid: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
    #[arg(long, value_parser = parse_time)]
    pub(crate) now: Option<u32>,
    /// File of DS or DNSKEY records, of which one must lead to the zone's DNSKEY RRset.
    #[arg(long)]
    pub(crate) anchor: Option<PathBuf>,
    /// Folder of the stored proofs or the VRF key of a zone with NSEC5, by which names are matched to records; default
    /// nsec5 beside the zone file, where there is one.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// What the zone is like: tld (any top-level domain), nl, se, nu, or sld (an organisation's zone).
    #[arg(long, default_value = "tld")]
    pub(crate) like: Like,
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
pub(crate) struct ServeArguments {
    /// Zone file, or a compiled zone; - for standard input.
    #[arg(
        required = false,
        required_unless_present = "config",
        default_value_if("config", clap::builder::ArgPredicate::IsPresent, "-")
    )]
    pub(crate) file: PathBuf,
    /// Serve the zones of a configuration; of the other options --check and --json alone go with it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "origin", "listen", "workers", "cpus", "verify", "now", "denial", "keys",
        "nsec5_keys", "signature_cache", "signature_validity"])]
    pub(crate) config: Option<PathBuf>,
    /// Check the configuration, and the files and folders that it names, and do not serve; with --check=zones, verify
    /// all zones that have files too.
    #[arg(long, value_name = "SCOPE", num_args = 0..=1, require_equals = true, default_missing_value = "files")]
    pub(crate) check: Option<CheckScope>,
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
    /// How a signed zone is verified before it is served: full, structural (chain and bitmaps without
    /// signatures), or auto: full up to 100,000 signatures, structural for a compiled zone that was verified in full.
    /// Except with full, a compiled zone of which as much was verified is served from its image at once.
    #[arg(long, default_value = "auto")]
    pub(crate) verify: VerifyMode,
    /// Print the "ready" and "stopped" lines as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Time at which the signatures must be valid: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
    #[arg(long, value_parser = parse_time)]
    pub(crate) now: Option<u32>,
    // Last: what comes behind it stands under its heading.
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
    /// Folder of the VRF key and the stored proofs of a zone with NSEC5; default nsec5 beside the zone file. No signing key
    /// may be there, nor beside the zone file.
    #[arg(long, value_name = "DIR")]
    pub(crate) nsec5_keys: Option<PathBuf>,
    /// Memory for signatures and proofs made before, in MiB, all threads together.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) signature_cache: u32,
    /// Seconds that a signature is valid; it is made anew when a quarter of that is left.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_VALIDITY,
        value_parser = clap::value_parser!(u32).range(i64::from(LEAST_VALIDITY)..=i64::from(MOST_VALIDITY)))]
    pub(crate) signature_validity: u32,
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

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Zone file; without one a TLD-like zone is generated.
    pub(crate) file: Option<PathBuf>,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// What the generated zone is like: tld, nl, se, nu or sld.
    #[arg(long, default_value = "tld", conflicts_with = "file")]
    pub(crate) like: Like,
    /// Number of names of the generated zone.
    #[arg(long, default_value_t = DEFAULT_NAMES, conflicts_with = "file")]
    pub(crate) names: u64,
    /// What the generated zone and the queries are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Every algorithm with every key length and every mechanism, not the default subset.
    #[arg(long)]
    pub(crate) all: bool,
    /// These algorithms, as ed25519,rsasha256/1280: mnemonics or numbers, for RSA with the length of the keys.
    #[arg(long, value_delimiter = ',', conflicts_with = "all")]
    pub(crate) algorithms: Vec<KeyKind>,
    /// These denial mechanisms alone, as nsec,nsec3-opt-out.
    #[arg(long, value_delimiter = ',')]
    pub(crate) denial: Vec<Mechanism>,
    /// Seconds of each measurement of the server.
    #[arg(long, default_value_t = DEFAULT_SECONDS_PER_LOAD)]
    pub(crate) seconds: f64,
    /// Time of signing: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
    #[arg(long, value_parser = parse_time)]
    pub(crate) now: Option<u32>,
    /// Folder that compare.json and report.html are left in.
    #[arg(long, default_value = "nonesuch-compare")]
    pub(crate) out: PathBuf,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the experiments that are built in.
    List(LabListArguments),
    /// Run an experiment; leaves its data and report.html in a folder.
    Run(LabRunArguments),
    /// Make the report again, from the data alone.
    Report(LabReportArguments),
    /// Measure raw rates of operations; prints one JSON document.
    #[command(hide = true)]
    Measure(LabMeasureArguments),
    /// Count, strip, change and pack a zone on behalf of `lab run`; prints one JSON document.
    #[command(hide = true)]
    Zone(LabZoneArguments),
    /// Send queries back, on behalf of `lab run`, until it is ended.
    #[command(hide = true)]
    Echo(LabEchoArguments),
}

#[derive(Debug, Args)]
pub(crate) struct LabListArguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// An experiment of `lab list`, or a TOML file with one.
    #[arg(required_unless_present = "experiment")]
    pub(crate) name: Option<String>,
    /// A TOML file with the experiment, whatever its name looks like.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) experiment: Option<PathBuf>,
    /// Folder that the data and the report are left in. Default: nonesuch-lab/NAME
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Measure as long as the experiment's [full] says; `lab list` tells how long that is.
    #[arg(long)]
    pub(crate) full: bool,
    /// A zone file of your own, in place of the experiment's zones. Short for --set zones=ORIGIN=FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) zone: Option<PathBuf>,
    /// The apex of --zone; else the owner of the file's SOA record.
    #[arg(long, short, requires = "zone")]
    pub(crate) origin: Option<Name>,
    /// Set a parameter of the experiment; lists with commas. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,
    /// The CPU that everything is kept on: a number, last or none. Short for --set cpu=CPU.
    #[arg(long)]
    pub(crate) cpu: Option<String>,
    /// What is random is drawn from this, but keys.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Overwrite the results of another experiment.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Time for the record: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
    #[arg(long, value_parser = parse_time)]
    pub(crate) now: Option<u32>,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArguments {
    /// Folder that `lab run` left.
    pub(crate) dir: PathBuf,
    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabMeasureArguments {
    /// What is measured, as ED25519,RSASHA256/2048,ED25519*64,vrf-p256,vrf-p256*32; default: everything.
    #[arg(long, value_delimiter = ',')]
    pub(crate) subjects: Vec<Subject>,
    /// Operations.
    #[arg(long, value_delimiter = ',', default_value = "verify,sign,prove")]
    pub(crate) operations: Vec<Operation>,
    /// Iterations.
    #[arg(long, default_value_t = 1)]
    pub(crate) iterations: u32,
    /// Seconds in each.
    #[arg(long, default_value_t = 0.2)]
    pub(crate) seconds: f64,
    /// What messages are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Follow orders on standard input, as `lab run` gives them.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabZoneArguments {
    /// Zone file.
    pub(crate) file: PathBuf,
    /// The zone's apex; else the owner of the file's SOA record.
    #[arg(long, short)]
    pub(crate) origin: Option<Name>,
    /// Write the zone without what signing made in it.
    #[arg(long, value_name = "FILE")]
    pub(crate) unsigned: Option<PathBuf>,
    /// Write a changed form of that.
    #[arg(long, value_name = "FILE")]
    pub(crate) changed: Option<PathBuf>,
    /// Share of the records that change.
    #[arg(long, default_value_t = 0.01)]
    pub(crate) share: f64,
    /// What the changes are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Compute what a transfer of the zone comes to.
    #[arg(long)]
    pub(crate) transfer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// Folder that the pages and completions are written to.
    #[arg(long, default_value = "manual")]
    pub(crate) dir: PathBuf,
}

/// Reads `key=value`.
fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "expected KEY=VALUE".to_owned())?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Reads an address with a port.
fn parse_socket_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "expected an address and a port, as 127.0.0.1:5300 or [::1]:5300";
    text.parse().map_err(|_| wrong.to_owned())
}

/// Reads a time: RFC 3339, YYYYMMDDHHmmSS or seconds since 1970.
fn parse_time(text: &str) -> Result<u32, String> {
    if let Some(seconds) = timestamp::parse(text.as_bytes()) {
        return Ok(seconds);
    }
    let time: jiff::Timestamp =
        text.parse().map_err(|_| "expected RFC 3339, YYYYMMDDHHmmSS or seconds since 1970".to_owned())?;
    // RFC 4034 §3.1.5: DNSSEC's times are modulo 2^32.
    Ok(time.as_second() as u32)
}

/// Reads the name or number of a VRF.
fn parse_vrf(text: &str) -> Result<VrfAlgorithm, String> {
    VrfAlgorithm::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = VRF_ALGORITHMS.iter().map(|entry| entry.name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Reads a digest type that DS records are made with.
fn parse_digest(text: &str) -> Result<DigestType, String> {
    match text.to_ascii_lowercase().as_str() {
        "sha256" | "sha-256" | "2" => Ok(DigestType::SHA256),
        "sha384" | "sha-384" | "4" => Ok(DigestType::SHA384),
        "sha1" | "sha-1" | "1" => {
            Err("SHA-1 digests are read, never made (RFC 8624 section 3.3): take sha256 or sha384".to_owned())
        }
        _ => Err("expected sha256 (2) or sha384 (4)".to_owned()),
    }
}

/// The table of algorithms for `--help`: numbers, mnemonics, and the reason where one is experimental.
fn list_algorithms() -> String {
    let mut text = String::from("Algorithm: mnemonic or number, one of");
    for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
        let reason =
            entry.scheme.experimental.map(|reason| format!("; EXPERIMENTAL: {reason}")).unwrap_or_default();
        let alias = entry
            .algorithm
            .nsec5_alias()
            .map(|alias| format!(" (for NSEC5: {})", alias.0))
            .unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(text, "\n- {} {}{alias}{reason}", entry.algorithm.0, entry.mnemonic);
    }
    text
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
    fn times_in_all_forms() {
        for text in ["2017-08-22T00:00:00Z", "20170822000000", "1503360000", "2017-08-22T02:00:00+02:00"] {
            assert_eq!(parse_time(text), Ok(1_503_360_000), "{text}");
        }
        assert!(parse_time("yesterday").is_err());
    }

    #[test]
    fn digest_types_are_read_and_sha1_is_refused_with_the_reason() {
        for (text, expected) in [("sha256", 2), ("SHA-256", 2), ("2", 2), ("sha384", 4), ("4", 4)] {
            assert_eq!(parse_digest(text), Ok(DigestType(expected)));
        }
        for text in ["1", "sha1", "SHA-1"] {
            assert!(parse_digest(text).is_err_and(|reason| reason.contains("read, never made")));
        }
        for text in ["", "3", "sha512", "256"] {
            assert!(parse_digest(text).is_err());
        }
    }

    #[test]
    fn help_lists_every_algorithm_and_why_some_are_experimental() {
        let mut command = Arguments::command();
        let generate = command.find_subcommand_mut("key").and_then(|key| key.find_subcommand_mut("generate"));
        let help = generate.expect("a command").render_long_help().to_string();
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for entry in ALGORITHMS {
            let Some(alias) = entry.algorithm.nsec5_alias() else { continue };
            let start = format!("- {} {} (for NSEC5: {})", entry.algorithm.0, entry.mnemonic, alias.0);
            let reason = entry.scheme.experimental.map(|reason| format!("; EXPERIMENTAL: {reason}"));
            assert!(words.contains(&(start + &reason.unwrap_or_default())), "{help}");
        }
    }
}
