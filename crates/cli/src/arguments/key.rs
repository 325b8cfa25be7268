//! Arguments of `key`.

use super::values::{ArgumentError, parse_time};
use clap::{Args, Subcommand};
use nonesuch_crypto::{ALGORITHMS, Algorithm, DigestType};
use nonesuch_proto::Name;
use nonesuch_server::tsig::TsigAlgorithm;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

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
    /// Make a TSIG key, which two servers share, in the forms that both take.
    ///
    /// The secret comes from the system's random generator and is as long as the hash. Without --form the key is printed as a
    /// table of our configuration; with --form nonesuch=FILE1 --form knot=FILE2, as an example, both ends get the same key
    /// from one command. Files are made with mode 0600, and none is written over.
    Tsig(KeyTsigArguments),
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
    /// Time of generation, from which the key is published and active: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
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
    /// Time at which the state of the keys is shown: RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present
    /// (30d, +3600, now-1h).
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Ignore the times in the key files (Publish, Activate, Inactive and so on): every key is published and signs.
    #[arg(long)]
    pub(crate) ignore_key_times: bool,
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
    /// Time from which keys without times of their own are published and active.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyTsigArguments {
    /// The key's name, the same on both servers, as transfer.example.
    pub(crate) name: Name,
    /// Algorithm: hmac-sha256, hmac-sha384 or hmac-sha512.
    #[arg(long, short, default_value = "hmac-sha256")]
    pub(crate) algorithm: TsigAlgorithm,
    /// Print the key in this form, or write it to a file; may be repeated. Forms: nonesuch ([key."NAME"], for a configuration
    /// or a file that it includes), bind (key "NAME" { … };, which our secret-file takes too), knot, nsd, and dig (for the
    /// option -y of dig and kdig).
    #[arg(long = "form", value_name = "FORM[=FILE]", default_value = "nonesuch")]
    pub(crate) forms: Vec<TsigOutput>,
}

/// A form in which servers and clients take a TSIG key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TsigForm {
    Nonesuch,
    Bind,
    Knot,
    Nsd,
    Dig,
}

/// A form, and the file that it goes to; standard output where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TsigOutput {
    pub(crate) form: TsigForm,
    pub(crate) file: Option<PathBuf>,
}

impl FromStr for TsigOutput {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let (form, file) = text.split_once('=').map_or((text, None), |(form, file)| (form, Some(file)));
        let form = match form {
            "nonesuch" => TsigForm::Nonesuch,
            "bind" => TsigForm::Bind,
            "knot" => TsigForm::Knot,
            "nsd" => TsigForm::Nsd,
            "dig" => TsigForm::Dig,
            _ => return Err(ArgumentError::Expected("nonesuch, bind, knot, nsd or dig, perhaps with =FILE")),
        };
        match file {
            Some("") => Err(ArgumentError::Expected("the name of a file behind the =")),
            file => Ok(Self { form, file: file.map(PathBuf::from) }),
        }
    }
}

/// Reads a digest type that DS records are made with.
fn parse_digest(text: &str) -> Result<DigestType, ArgumentError> {
    match text.to_ascii_lowercase().as_str() {
        "sha256" | "sha-256" | "2" => Ok(DigestType::SHA256),
        "sha384" | "sha-384" | "4" => Ok(DigestType::SHA384),
        "sha1" | "sha-1" | "1" => Err(ArgumentError::Sha1),
        _ => Err(ArgumentError::Expected("sha256 (2) or sha384 (4)")),
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
    use crate::arguments::Arguments;
    use clap::CommandFactory as _;

    #[test]
    fn digest_types_are_read_and_sha1_is_refused_with_the_reason() {
        for (text, expected) in [("sha256", 2), ("SHA-256", 2), ("2", 2), ("sha384", 4), ("4", 4)] {
            assert_eq!(parse_digest(text), Ok(DigestType(expected)));
        }
        for text in ["1", "sha1", "SHA-1"] {
            assert!(parse_digest(text).is_err_and(|reason| reason.to_string().contains("read, never made")));
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
