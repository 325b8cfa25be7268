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
    /// Generate a key pair and print the base name of its two files.
    Generate(KeyGenerateArguments),
    /// List the keys in a directory and check their files.
    List(KeyListArguments),
    /// Print the DS records for the parent zone.
    Ds(KeyDsArguments),
    /// Import keys of BIND, ldns, PowerDNS (.private) or Knot DNS (PEM).
    ///
    /// Prints the base names of the new files.
    Import(KeyImportArguments),
    /// Generate a TSIG key for two servers, in the format of each.
    ///
    /// The secret comes from the random generator of the system and is as long as the hash. Without
    /// --form, prints the key as a table for the configuration of nonesuch. For example, --form
    /// nonesuch=FILE1 --form knot=FILE2 writes the same key for both servers. New files have mode
    /// 0600; existing files are not overwritten.
    Tsig(KeyTsigArguments),
}

#[derive(Debug, Args)]
pub(crate) struct KeyGenerateArguments {
    /// Name of the zone.
    pub(crate) zone: Name,
    /// Select the algorithm by mnemonic or number; --help lists them.
    #[arg(long, short, default_value = "ecdsap256sha256", long_help = list_algorithms())]
    pub(crate) algorithm: Algorithm,
    /// Use the alias number of the algorithm, for a zone with NSEC5.
    ///
    /// Resolvers without NSEC5 do not know this number.
    #[arg(long)]
    pub(crate) nsec5: bool,
    /// Generate a key-signing key.
    #[arg(long, conflicts_with = "csk")]
    pub(crate) ksk: bool,
    /// Generate a combined signing key.
    ///
    /// It is a key-signing key that signs the whole zone if there is no zone-signing key.
    #[arg(long)]
    pub(crate) csk: bool,
    /// Set the length of an RSA key, in bits: 1280, 2048, 3072 or 4096.
    ///
    /// With --force also 1024.
    #[arg(long)]
    pub(crate) bits: Option<u16>,
    /// Allow the weak RSA key length 1024, for experiments.
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the files to this directory.
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Set the time from which the key is published and active.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyListArguments {
    /// List only the keys of this zone. Default: all zones.
    pub(crate) zone: Option<Name>,
    /// Read the key files in this directory.
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Show the state of the keys at this time.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Ignore the times in the key files (Publish, Activate, Inactive and others).
    ///
    /// Every key is published and signs.
    #[arg(long)]
    pub(crate) ignore_key_times: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyDsArguments {
    /// Zones whose keys are in the directory, or paths of .key files.
    #[arg(required = true, value_name = "ZONE|FILE.key")]
    pub(crate) keys: Vec<String>,
    /// Read the key files of the zones in this directory.
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Select digest types by name or number: sha256, sha384, or both as sha256,sha384.
    #[arg(long, default_value = "sha256", value_delimiter = ',', value_parser = parse_digest)]
    pub(crate) digest: Vec<DigestType>,
    /// Include zone-signing keys.
    ///
    /// Default: only keys with the SEP flag.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyImportArguments {
    /// Private keys: .private files, or PKCS#8 in PEM.
    ///
    /// A .key file with the same name in the same directory is read too.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Write the files to this directory.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Set the zone of keys that have no .key file.
    #[arg(long)]
    pub(crate) zone: Option<Name>,
    /// Set the algorithm of PEM keys.
    ///
    /// RSA keys need it, because the file does not distinguish 8 (RSASHA256) from 10 (RSASHA512).
    #[arg(long, short)]
    pub(crate) algorithm: Option<Algorithm>,
    /// Import the keys as key-signing keys.
    #[arg(long, group = "role")]
    pub(crate) ksk: bool,
    /// Import the keys as combined signing keys.
    #[arg(long, group = "role")]
    pub(crate) csk: bool,
    /// Import the keys as zone-signing keys.
    #[arg(long, group = "role")]
    pub(crate) zsk: bool,
    /// Set the time from which keys without times are published and active.
    ///
    /// RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or relative to the present (30d, +3600,
    /// now-1h). Default: the present.
    #[arg(long, value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) now: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyTsigArguments {
    /// Name of the key, the same on both servers, for example transfer.example.
    pub(crate) name: Name,
    /// Select the algorithm: hmac-sha256, hmac-sha384 or hmac-sha512.
    #[arg(long, short, default_value = "hmac-sha256")]
    pub(crate) algorithm: TsigAlgorithm,
    /// Print the key in this format, or write it to a file. May be repeated.
    ///
    /// Formats: nonesuch ([key."NAME"], for a configuration or an included file), bind (key "NAME"
    /// { … };, also for secret-file of nonesuch), knot, nsd, and dig (for the option -y of dig and
    /// kdig).
    #[arg(long = "form", value_name = "FORM[=FILE]", default_value = "nonesuch")]
    pub(crate) outputs: Vec<TsigOutput>,
}

/// A TSIG key format of a server or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TsigKeyFormat {
    Nonesuch,
    Bind,
    Knot,
    Nsd,
    Dig,
}

/// A format and its output file; `None` for standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TsigOutput {
    pub(crate) format: TsigKeyFormat,
    pub(crate) file: Option<PathBuf>,
}

impl FromStr for TsigOutput {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let (format, file) = text.split_once('=').map_or((text, None), |(format, file)| (format, Some(file)));
        let format = match format {
            "nonesuch" => TsigKeyFormat::Nonesuch,
            "bind" => TsigKeyFormat::Bind,
            "knot" => TsigKeyFormat::Knot,
            "nsd" => TsigKeyFormat::Nsd,
            "dig" => TsigKeyFormat::Dig,
            _ => return Err(ArgumentError::Expected("nonesuch, bind, knot, nsd or dig, perhaps with =FILE")),
        };
        match file {
            Some("") => Err(ArgumentError::Expected("the name of a file after the =")),
            file => Ok(Self { format, file: file.map(PathBuf::from) }),
        }
    }
}

/// Reads a digest type that new DS records may have.
fn parse_digest(text: &str) -> Result<DigestType, ArgumentError> {
    match text.to_ascii_lowercase().as_str() {
        "sha256" | "sha-256" | "2" => Ok(DigestType::SHA256),
        "sha384" | "sha-384" | "4" => Ok(DigestType::SHA384),
        "sha1" | "sha-1" | "1" => Err(ArgumentError::Sha1),
        _ => Err(ArgumentError::Expected("sha256 (2) or sha384 (4)")),
    }
}

/// The table of algorithms for `--help`: number, mnemonic and, for an experimental algorithm, the
/// reason.
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
    fn digest_types_are_parsed_and_sha1_is_rejected() {
        for (text, expected) in [("sha256", 2), ("SHA-256", 2), ("2", 2), ("sha384", 4), ("4", 4)] {
            assert_eq!(parse_digest(text), Ok(DigestType(expected)));
        }
        for text in ["1", "sha1", "SHA-1"] {
            assert_eq!(parse_digest(text), Err(ArgumentError::Sha1), "{text}");
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
