//! Signs a zone (RFC 4035 §2). `apex` prepares the apex, and `plan` determines the denial chain.
//! `chunk` signs parts of the zone on all cores, and `stream` passes them on in canonical order.
//! `zonemd` computes the digest of the zone at the end. `resign` updates a signed zone.

mod apex;
mod chunk;
mod error;
mod key_assignment;
mod options;
mod plan;
mod policy;
mod resign;
mod reuse;
mod rrsets;
mod serial;
mod statistics;
mod stray_records;
mod stream;
mod zonemd;

pub use error::{AbsentSignature, SignError, SignWarning};
pub use options::{PreviousZone, SignOptions, SignProgress};
pub use policy::SerialPolicy;
pub use resign::{
    IncrementalResult, ResignedZone, is_current, resign, resign_changes, resign_stored,
    resign_stored_with_contents,
};
pub use statistics::SignStatistics;
pub use stream::{SignSummary, sign_streaming};

use crate::keys::KeySet;
use nonesuch_zone::Contents;

/// A signed zone, created by [`sign`].
#[derive(Debug)]
pub struct Signed {
    contents: Contents,
    statistics: SignStatistics,
    warnings: Vec<SignWarning>,
}

impl Signed {
    /// The zone with its signatures and denial chain.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// As [`Signed::contents`], by value.
    #[must_use]
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// Numbers of signatures and records, and the serial.
    #[must_use]
    pub const fn statistics(&self) -> SignStatistics {
        self.statistics
    }

    /// Deviations from the options, and records that verification will report as faults.
    #[must_use]
    pub fn warnings(&self) -> &[SignWarning] {
        &self.warnings
    }
}

/// Signs `contents` with all of `keys`.
///
/// Replaces RRSIG, NSEC, NSEC3, NSEC3PARAM, NSEC5 and NSEC5KEY records of `contents`. Keeps DNSKEY
/// records that are not in the key set, as multi-signer configurations and rollovers require,
/// unless [`SignOptions::drop_foreign_dnskeys`] is set.
///
/// # Errors
/// If keys, options or contents do not permit a valid zone, or if a signature cannot be generated.
pub fn sign(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<Signed, SignError> {
    let job = stream::SignJob::prepare(contents, keys, options)?;
    let mut signed = Contents::empty(contents.apex());
    // `append` gets the part, and the signer gets back an appended part, so that it reuses its
    // memory.
    let pass_on = |part: &mut Contents, out: &mut Option<Contents>| {
        let appended = out.take().unwrap_or_else(|| Contents::empty(contents.apex()));
        *out = Some(std::mem::replace(part, appended));
    };
    let append = |part: &mut Option<Contents>| {
        part.iter().for_each(|part| signed.append(part));
        Ok::<(), SignError>(())
    };
    let (summary, zonemd) = job.run(options, chunk::ZonemdPlacement::Apex, pass_on, append)?;
    if let Some(part) = zonemd {
        signed.overwrite_apex(&part);
    }
    signed.shrink_to_fit();
    Ok(Signed { contents: signed, statistics: summary.statistics, warnings: summary.warnings })
}
