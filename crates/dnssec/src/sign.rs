//! Signing a zone (RFC 4035 §2): the apex is prepared (`apex`), the chain laid out (`plan`), and all RRsets are
//! signed on all cores (`chunk`) and handed on in canonical order while signing goes on (`stream`). The digest of the
//! zone (`zonemd`) comes last.

mod apex;
mod chunk;
mod error;
mod options;
mod plan;
mod policy;
mod resign;
mod reuse;
mod rrsets;
mod serial;
mod signers;
mod statistics;
mod stray_records;
mod stream;
mod zonemd;

pub use error::{AbsentSignature, SignError, SignWarning};
pub use options::{PreviousZone, SignOptions, SignProgress};
pub use policy::SerialPolicy;
pub use resign::{
    IncrementalResult, ResignedZone, is_current, resign, resign_changes, resign_compared, resign_stored,
};
pub use statistics::SignStatistics;
pub use stream::{SignSummary, sign_streaming};

use crate::keys::KeySet;
use nonesuch_zone::Contents;

/// A signed zone, made by [`sign`].
#[derive(Debug)]
pub struct Signed {
    contents: Contents,
    statistics: SignStatistics,
    warnings: Vec<SignWarning>,
}

impl Signed {
    /// The zone with its signatures.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The zone with its signatures.
    #[must_use]
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// What signing did.
    #[must_use]
    pub const fn statistics(&self) -> SignStatistics {
        self.statistics
    }

    /// What was done otherwise than asked.
    #[must_use]
    pub fn warnings(&self) -> &[SignWarning] {
        &self.warnings
    }
}

/// Signs `contents` with all of `keys`.
///
/// RRSIG, NSEC, NSEC3, NSEC3PARAM, NSEC5 and NSEC5KEY records of the input are dropped and made anew. DNSKEY records that are not in
/// the key set are kept, as multi-signer set-ups and roll-overs need.
///
/// # Errors
/// Where keys, options or contents do not allow a sound zone; nothing is signed then.
pub fn sign(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<Signed, SignError> {
    let job = stream::Job::prepare(contents, keys, options)?;
    let mut signed = Contents::empty(contents.apex());
    // A part that was appended goes back to the signer, to be filled anew.
    let swap = |part: &mut Contents, out: &mut Option<Contents>| {
        let spent = out.take().unwrap_or_else(|| Contents::empty(contents.apex()));
        *out = Some(std::mem::replace(part, spent));
    };
    let gather = |part: &mut Option<Contents>| {
        part.iter().for_each(|part| signed.append(part));
        Ok::<(), SignError>(())
    };
    let (summary, digests) = job.run(options, chunk::ZonemdPlacement::Apex, swap, gather)?;
    if let Some(part) = digests {
        signed.overwrite_apex(&part);
    }
    signed.shrink_to_fit();
    Ok(Signed { contents: signed, statistics: summary.statistics, warnings: summary.warnings })
}
