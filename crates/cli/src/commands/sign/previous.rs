//! The previous signed zone: reuse of its signatures, and defaults from it for missing arguments.

use super::error::Failure;
use crate::arguments::{SignArguments, ZonemdHashes};
use crate::files::input_name;
use crate::zones::verify_with_progress;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::inspect::{DenialInfo, denial};
use nonesuch_dnssec::sign::PreviousZone;
use nonesuch_dnssec::{SignOptions, VerifyOptions};
use nonesuch_zone::{Contents, zonemd};
use std::path::Path;

/// The option for the reuse of signatures of the previous zone `contents`, from the arguments.
pub(super) fn previous_zone<'a>(
    arguments: &SignArguments,
    contents: &'a Contents,
    options: &SignOptions<'_>,
) -> PreviousZone<'a> {
    let resign = &arguments.resign;
    let refresh =
        resign.refresh.unwrap_or_else(|| PreviousZone::new(contents, seconds_to_expiration(options)).refresh);
    PreviousZone { refresh, verify: resign.verify_previous, contents }
}

/// Seconds from the time of signing to the expiration of new signatures.
const fn seconds_to_expiration(options: &SignOptions<'_>) -> u32 {
    options.expiration.wrapping_sub(options.now)
}

/// The arguments, completed from the previous zone: the mechanism, the NSEC3 parameters and, if the
/// arguments do not select ZONEMD, its ZONEMD hash algorithms.
pub(super) fn with_previous(arguments: &SignArguments, previous: Option<&Contents>) -> SignArguments {
    match previous {
        Some(previous) => with_denial_info(arguments, denial(previous), previous),
        None => arguments.clone(),
    }
}

/// The arguments, completed in the same way from a previous zone. `denial_info` describes its
/// denial mechanism, and `apex` contains at least its records at the apex.
pub(super) fn with_denial_info(
    arguments: &SignArguments,
    denial_info: Option<DenialInfo>,
    apex: &Contents,
) -> SignArguments {
    let mut arguments = arguments.clone();
    arguments.set_default_denial(denial_info);
    let hashes = zonemd::hashes(apex);
    if arguments.zonemd.is_none() && !hashes.is_empty() {
        arguments.zonemd = Some(ZonemdHashes(hashes));
    }
    arguments
}

/// Verifies the complete previous zone. Expired signatures are not a fault here, because they are
/// replaced.
pub(super) fn verify_previous(path: &Path, previous: &Contents) -> Result<(), Failure> {
    let report = verify_with_progress(previous, &VerifyOptions::default(), &Nsec5Evidence::default());
    let count = report.faults.len();
    match report.faults.into_iter().next() {
        Some(first) => Err(Failure::PreviousInvalid { path: input_name(path).to_path_buf(), count, first }),
        None => Ok(()),
    }
}
