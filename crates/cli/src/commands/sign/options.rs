//! Converts the arguments to options of the signer: keys, times, denial of existence, output file.

use super::error::Failure;
use crate::arguments::{SignArguments, TimeArgument};
use crate::files::default_output;
use crate::{keys, zones};
use data_encoding::HEXLOWER_PERMISSIVE;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::nsec3::MAX_ITERATIONS;
use nonesuch_dnssec::inspect::{denial, is_signed};
use nonesuch_dnssec::sign::{SerialPolicy, SignError};
use nonesuch_dnssec::{KeySet, Nsec3Params, SignOptions};
use nonesuch_proto::Name;
use nonesuch_zone::Contents;
use std::path::{Path, PathBuf};

/// Default time from the inception to now, in seconds. It is above 0, so that validators with slow
/// clocks accept new signatures.
const INCEPTION_AGE: i64 = 3600;
/// Default validity from now, in seconds: 14 days.
const DEFAULT_VALIDITY: i64 = 14 * 86_400;

/// The keys of the zone. The times in the key files apply at the time of signing, unless they are
/// ignored.
pub(super) fn load_keys(arguments: &SignArguments, zone: &Name) -> Result<KeySet, Failure> {
    let mut keys = keys::read_directory(&arguments.keys, zone)?.key_set(key_time(arguments))?;
    if arguments.hedged {
        keys.hedge();
    }
    Ok(keys)
}

/// The time at which the times in key files are evaluated; `None` if they are ignored.
pub(super) fn key_time(arguments: &SignArguments) -> Option<u32> {
    (!arguments.ignore_key_times).then(|| zones::time_or_now(arguments.now))
}

/// The output file.
pub(super) fn output_path(arguments: &SignArguments) -> PathBuf {
    // A partially signed zone must not replace a signed one.
    let suffix = if arguments.only_keys { ".keys" } else { ".signed" };
    let default = || default_output(arguments.file.as_deref().unwrap_or_else(|| Path::new("")), suffix);
    arguments.output.clone().unwrap_or_else(default)
}

/// The arguments. If the zone is already signed and they contain no mechanism, they are completed
/// with its mechanism and NSEC3 parameters. Warns if the zone gets a chain of another mechanism
/// with the same serial.
pub(super) fn with_denial_of_zone(arguments: &SignArguments, contents: &Contents) -> SignArguments {
    let mut arguments = arguments.clone();
    let Some(denial_info) = is_signed(contents).then(|| denial(contents)).flatten() else { return arguments };
    if arguments.denial.is_none() {
        arguments.set_default_denial(Some(denial_info));
    } else if arguments.mechanism().name_hash() != denial_info.mechanism.name_hash()
        && (arguments.serial, &arguments.resign.previous) == (SerialPolicy::Keep, &None)
    {
        tracing::warn!(
            name: "serial-not-changed",
            "the denial chain changes from {} to {}, but the serial stays {}, so secondaries keep the \
                previous version: increase the serial with --serial increment",
            denial_info.mechanism.entry().title,
            arguments.mechanism().entry().title,
            contents.soa().map_or(0, |soa| soa.serial)
        );
    }
    arguments
}

/// The options of the signer.
pub(super) fn sign_options<'a>(arguments: &SignArguments) -> Result<SignOptions<'a>, Failure> {
    let now = zones::time_or_now(arguments.now);
    let (before, validity) = (TimeArgument::FromNow(-INCEPTION_AGE), TimeArgument::FromNow(DEFAULT_VALIDITY));
    let inception = arguments.inception.unwrap_or(before).resolve(now, now);
    let expiration = arguments.expiration.unwrap_or(validity).resolve(now, inception);
    // Serial number arithmetic would interpret an inception far in the future as one in the
    // previous century.
    if inception > expiration {
        return Err(SignError::Period.into());
    }
    if expiration < now {
        return Err(SignError::Expired.into());
    }
    let mut options = SignOptions::new(arguments.mechanism(), inception, expiration);
    options.nsec3 = nsec3_params(arguments)?;
    options.jitter = arguments.jitter;
    options.seed = arguments.seed;
    options.serial = arguments.serial;
    options.now = now;
    options.publish_cds = arguments.cds;
    options.dnskey_ttl = arguments.dnskey_ttl;
    options.drop_foreign_dnskeys = arguments.drop_foreign_dnskeys;
    options.allow_unsafe_transition = arguments.resign.allow_unsafe_transition;
    options.zonemd = arguments.zonemd.as_ref().map(|hashes| hashes.0.clone());
    Ok(options)
}

/// The NSEC3 parameters. Warns of parameters that have no effect or that resolvers may reject.
fn nsec3_params(arguments: &SignArguments) -> Result<Nsec3Params, Failure> {
    let has_nsec3_options = arguments.nsec3_salt.is_some() || arguments.nsec3_iterations.is_some();
    let is_nsec3 = arguments.mechanism().name_hash() == NameHash::Sha1;
    if has_nsec3_options && !is_nsec3 {
        tracing::warn!(name: "option-without-effect", "--nsec3-salt and --nsec3-iterations apply only to NSEC3: no effect");
    }
    let salt = arguments.nsec3_salt.as_deref().map_or_else(|| Ok(Vec::new()), parse_salt)?;
    let iterations = arguments.nsec3_iterations.unwrap_or(0);
    // The signer reports an error for a larger number.
    if is_nsec3 && (1..=MAX_ITERATIONS).contains(&iterations) {
        tracing::warn!(
            name: "nsec3-iterations",
            "{iterations} NSEC3 iterations: resolvers may treat the zone as insecure, and many do above \
                100; RFC 9276 section 3.1 requires 0"
        );
    }
    Ok(Nsec3Params { salt, iterations })
}

fn parse_salt(text: &str) -> Result<Vec<u8>, Failure> {
    if text == "-" {
        return Ok(Vec::new());
    }
    let is_odd = text.len() % 2 == 1 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| match is_odd {
        true => Failure::OddSalt(text.to_owned()),
        false => Failure::Salt(text.to_owned()),
    })
}
