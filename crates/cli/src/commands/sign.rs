//! `nonesuch zone sign`.

use super::resign;
use crate::Outcome;
use crate::arguments::SignArguments;
use crate::error::Failure;
use crate::files::{print_line, write_failure, write_output};
use crate::{keys, progress, zones};
use data_encoding::HEXLOWER_PERMISSIVE;
use nonesuch_dnssec::{Nsec3Params, SignOptions, Signed, sign};
use nonesuch_zone::write::write_zone;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds by which signatures are valid before now, for validators whose clocks are late.
const BEFORE: u32 = 3600;
/// Seconds of validity from now: 14 days.
const VALIDITY: u32 = 14 * 86_400;

pub(crate) fn run(arguments: &SignArguments) -> Result<Outcome, Failure> {
    let Some(file) = resign::plain_file(arguments) else { return resign::run(arguments) };
    let begun = Instant::now();
    let contents = zones::read_zone(file, arguments.origin.as_ref())?;
    let mut keys = keys::load(&arguments.keys, contents.apex())?;
    if arguments.hedged {
        keys.hedge();
    }
    let bar = progress::bar(contents.record_count(), "signing");
    let update = |done| bar.set_position(done);
    let mut options = options(arguments)?;
    options.progress = Some(&update);
    let signing = Instant::now();
    let signed = sign(&contents, &keys, &options)?;
    let signing = signing.elapsed();
    bar.finish_and_clear();
    drop(contents);
    for warning in signed.warnings() {
        tracing::warn!("{warning}");
    }
    let output = output(arguments);
    write_output(&output, 0o644, |mut out| {
        write_zone(signed.contents(), &mut out).map_err(write_failure(&output))
    })?;
    if output != Path::new("-") {
        report(arguments, &signed, &output, (signing.as_secs_f64(), begun.elapsed().as_secs_f64()))?;
    }
    Ok(Outcome::Done)
}

pub(super) fn output(arguments: &SignArguments) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| {
        let mut name = arguments.file.clone().unwrap_or_default().into_os_string();
        name.push(".signed");
        name.into()
    })
}

pub(super) fn options<'a>(arguments: &SignArguments) -> Result<SignOptions<'a>, Failure> {
    let now = zones::now_or(arguments.now);
    let inception = arguments.inception.unwrap_or_else(|| now.wrapping_sub(BEFORE));
    let expiration = arguments.expiration.unwrap_or_else(|| now.wrapping_add(VALIDITY));
    let mut options = SignOptions::new(arguments.denial, inception, expiration);
    options.nsec3 =
        Nsec3Params { salt: parse_salt(&arguments.nsec3_salt)?, iterations: arguments.nsec3_iterations };
    options.jitter = arguments.jitter;
    options.seed = arguments.seed;
    options.serial = arguments.serial;
    options.now = now;
    options.publish_cds = arguments.cds;
    options.dnskey_ttl = arguments.dnskey_ttl;
    options.drop_foreign_dnskeys = arguments.drop_foreign_dnskeys;
    Ok(options)
}

fn parse_salt(text: &str) -> Result<Vec<u8>, Failure> {
    if text == "-" {
        return Ok(Vec::new());
    }
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| Failure::Salt(text.to_owned()))
}

fn report(
    arguments: &SignArguments,
    signed: &Signed,
    output: &Path,
    (signing, all): (f64, f64),
) -> Result<(), Failure> {
    let statistics = signed.statistics();
    let contents = signed.contents();
    if arguments.json {
        let report = serde_json::json!({
            "zone": contents.apex().to_string(), "output": output, "denial": arguments.denial.to_string(),
            "serial": statistics.serial, "records": contents.record_count(), "rrsets_signed": statistics.rrsets_signed,
            "signatures": statistics.signatures, "chain_records": statistics.chain_records,
            "signing_seconds": signing, "seconds": all,
        });
        print_line(&report.to_string())
    } else {
        print_line(&format!(
            "{}: zone {} signed with {}: serial {}, {} records, {} signatures, {} denial records; {signing:.2} s of {all:.2} s signing",
            output.display(),
            contents.apex(),
            arguments.denial.entry().title,
            statistics.serial,
            contents.record_count(),
            statistics.signatures,
            statistics.chain_records,
        ))
    }
}
