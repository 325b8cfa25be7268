//! `nonesuch zone sign`.

use super::{only_keys, resign};
use crate::Outcome;
use crate::arguments::SignArguments;
use crate::commands::nsec5;
use crate::error::Failure;
use crate::files::{check_output, is_standard, output_beside, print_line, write_failure, write_output};
use crate::progress::Rates;
use crate::{keys, zones};
use data_encoding::HEXLOWER_PERMISSIVE;
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::denial::nsec3::MAX_ITERATIONS;
use nonesuch_dnssec::facts::{denial, is_signed};
use nonesuch_dnssec::sign::{
    SerialPolicy, SignError, SignProgress, SignSummary, SignWarning, sign_streaming,
};
use nonesuch_dnssec::{KeySet, Nsec3Params, SignOptions};
use nonesuch_zone::Contents;
use nonesuch_zone::write::push_part;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds by which signatures are valid before now, for validators whose clocks are late.
const BEFORE: u32 = 3600;
/// Seconds of validity from now: 14 days.
const VALIDITY: u32 = 14 * 86_400;

pub(crate) fn run(arguments: &SignArguments) -> Result<Outcome, Failure> {
    if arguments.only_keys {
        return only_keys::run(arguments);
    }
    let Some(file) = resign::plain_file(arguments) else { return resign::run(arguments) };
    let begun = Instant::now();
    let output = output(arguments);
    check_output(&output, file)?;
    let contents = zones::read_zone(file, arguments.origin.as_ref())?;
    let arguments = &with_denial_of(arguments, &contents);
    let mut keys = keys::load(&arguments.keys, contents.apex())?;
    if arguments.hedged {
        keys.hedge();
    }
    let mut options = options(arguments)?;
    let mut proved = nsec5::prepare(arguments, &output, &contents, &keys)?;
    let bar = Rates::new("signing");
    let tell = |at| tell_progress(&bar, at);
    options.nsec5 = proved.as_ref().map(|proved| proved.chain(arguments.keep_nsec5key));
    options.progress = bar.is_seen().then_some(&tell);
    let signing = Instant::now();
    let summary = write_signed(&contents, &keys, &options, &output)?;
    let signing = signing.elapsed();
    bar.end();
    tell_warnings(&summary.warnings);
    if let Some(proved) = &mut proved {
        proved.store(summary.statistics.serial, &keys)?;
        nsec5::warn_of_signing_keys(&output);
    }
    if !is_standard(&output) {
        let seconds = (signing.as_secs_f64(), begun.elapsed().as_secs_f64());
        report(arguments, &contents, &summary, &output, proved.as_ref(), seconds)?;
    }
    Ok(Outcome::Done)
}

/// Shows how far signing has come.
pub(super) fn tell_progress(bar: &Rates, at: SignProgress) {
    bar.tell(at.rrsets, at.total_rrsets, &[(at.signatures, "signatures"), (at.records, "records")]);
}

/// Says what was done otherwise than asked. That the serial moves although the policy is to keep it is the rule where a
/// zone is signed again, and the report has the serial: it is for those who want to know more.
pub(super) fn tell_warnings(warnings: &[SignWarning]) {
    for warning in warnings {
        match warning {
            SignWarning::SerialBehind { policy: SerialPolicy::Keep, .. } => tracing::info!("{warning}"),
            _ => tracing::warn!("{warning}"),
        }
    }
}

/// Writes the signed zone as it is made: text goes out while signing goes on.
pub(super) fn write_signed(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
    output: &Path,
) -> Result<SignSummary, Failure> {
    let mut summary = None;
    write_output(output, 0o644, |out| {
        let render = |part: &Contents, text: &mut Vec<u8>| {
            text.clear();
            push_part(part, text);
        };
        let take = |text: &mut Vec<u8>| out.write_all(text).map_err(|error| write_failure(output)(error));
        summary = Some(sign_streaming(contents, keys, options, render, take)?);
        Ok(())
    })?;
    Ok(summary.unwrap_or_default())
}

pub(super) fn output(arguments: &SignArguments) -> PathBuf {
    // A zone that is signed in part must not take the place of one that is signed.
    let suffix = if arguments.only_keys { ".keys" } else { ".signed" };
    let beside = || output_beside(arguments.file.as_deref().unwrap_or_else(|| Path::new("")), suffix);
    arguments.output.clone().unwrap_or_else(beside)
}

/// The arguments with the mechanism of the zone to be signed and its NSEC3 parameters, where it is signed already and the arguments
/// name no mechanism.
pub(super) fn with_denial_of(arguments: &SignArguments, contents: &Contents) -> SignArguments {
    let mut arguments = arguments.clone();
    let Some(facts) = is_signed(contents).then(|| denial(contents)).flatten() else { return arguments };
    if arguments.denial.is_none() {
        arguments.set_denial(Some(facts));
    } else if arguments.mechanism().mapping() != facts.mechanism.mapping()
        && (arguments.serial, &arguments.again.previous) == (SerialPolicy::Keep, &None)
    {
        tracing::warn!(
            "the input has the denial chain {facts}, and its serial stays: raise it with --serial, or secondaries keep that chain"
        );
    }
    arguments
}

pub(super) fn options<'a>(arguments: &SignArguments) -> Result<SignOptions<'a>, Failure> {
    let now = zones::now_or(arguments.now);
    let inception = arguments.inception.unwrap_or_else(|| now.wrapping_sub(BEFORE));
    let expiration = arguments.expiration.unwrap_or_else(|| now.wrapping_add(VALIDITY));
    // Serial arithmetic would take a far inception for one of the century before.
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
    options.allow_unsafe_transition = arguments.again.allow_unsafe_transition;
    options.zonemd = arguments.zonemd.as_ref().map(|hashes| hashes.0.clone());
    Ok(options)
}

fn nsec3_params(arguments: &SignArguments) -> Result<Nsec3Params, Failure> {
    let given = arguments.nsec3_salt.is_some() || arguments.nsec3_iterations.is_some();
    let is_nsec3 = arguments.mechanism().mapping() == Mapping::Sha1;
    if given && !is_nsec3 {
        tracing::warn!("--nsec3-salt and --nsec3-iterations are for NSEC3 alone and mean nothing here");
    }
    let salt = arguments.nsec3_salt.as_deref().map_or_else(|| Ok(Vec::new()), parse_salt)?;
    let iterations = arguments.nsec3_iterations.unwrap_or(0);
    // More than the signer takes is an error, which is told then.
    if is_nsec3 && (1..=MAX_ITERATIONS).contains(&iterations) {
        tracing::warn!(
            "{iterations} NSEC3 iterations: resolvers may take the zone for insecure, and many do above 100; RFC 9276 \
             section 3.1 wants 0"
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

fn report(
    arguments: &SignArguments,
    contents: &Contents,
    summary: &SignSummary,
    output: &Path,
    proved: Option<&nsec5::Proved>,
    (signing, all): (f64, f64),
) -> Result<(), Failure> {
    let statistics = summary.statistics;
    if arguments.json {
        let report = serde_json::json!({
            "zone": contents.apex().to_string(), "output": output, "denial": arguments.mechanism().to_string(),
            "serial": statistics.serial, "records": statistics.records, "rrsets_signed": statistics.rrsets_signed,
            "signatures": statistics.signatures, "chain_records": statistics.chain_records,
            "signing_seconds": signing, "seconds": all, "nsec5": proved.map(nsec5::Proved::to_json),
        });
        print_line(&report.to_string())
    } else {
        print_line(&format!(
            "{}: zone {} signed with {}: serial {}, {} records, {} signatures, {} denial records; {signing:.2} s of \
             {all:.2} s signing and writing",
            output.display(),
            contents.apex(),
            arguments.mechanism().entry().title,
            statistics.serial,
            statistics.records,
            statistics.signatures,
            statistics.chain_records,
        ))?;
        proved.map_or(Ok(()), |proved| print_line(&proved.to_string()))
    }
}
