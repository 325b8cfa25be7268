//! Signing a zone (RFC 4035 §2): the apex is prepared (`apex`), the chain laid out (`plan`), and all RRsets are
//! signed on all cores (`chunk`) and handed on in canonical order while signing goes on (`stream`). The digest of the
//! zone (`zonemd`) comes last.

mod apex;
mod chunk;
mod options;
mod plan;
mod refused;
mod resign;
mod reuse;
mod serial;
mod signers;
mod stream;
mod zonemd;

pub use options::{SerialPolicy, SignError, SignOptions, SignProgress, SignWarning};
pub use resign::{Mending, Resigned, is_current, resign, resign_changes, resign_compared, resign_stored};
pub use reuse::Previous;
pub use signers::AbsentSignature;
pub use stream::{SignSummary, sign_streaming};

use crate::denial::nsec3::MAX_ITERATIONS;
use crate::denial::nsec5::{Nsec5Error, check_signing};
use crate::denial::{Made, Mapping};
use crate::keys::KeySet;
use nonesuch_proto::{MAX_NAME, Name, Rtype, serial as arithmetic};
use nonesuch_zone::Contents;

/// What signing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignStatistics {
    /// RRsets that are signed.
    pub rrsets_signed: u64,
    /// Signatures made: with two algorithms two for each RRset.
    pub signatures: u64,
    /// Signatures kept of the previous zone.
    pub signatures_kept: u64,
    /// NSEC, NSEC3 or NSEC5 records made.
    pub chain_records: u64,
    /// Records of the signed zone.
    pub records: u64,
    /// Serial number of the signed zone.
    pub serial: u32,
}

impl SignStatistics {
    const fn add(&mut self, other: &Self) {
        self.rrsets_signed += other.rrsets_signed;
        self.signatures += other.signatures;
        self.signatures_kept += other.signatures_kept;
        self.chain_records += other.chain_records;
        self.records += other.records;
    }
}

/// A signed zone: made by [`sign`], or read as one.
#[derive(Debug)]
pub struct Signed {
    contents: Contents,
    statistics: SignStatistics,
    warnings: Vec<SignWarning>,
}

impl Signed {
    /// Takes contents that were read from a signed zone: there is a DNSKEY RRset at the apex, and the SOA RRset has
    /// signatures. Nothing is verified.
    ///
    /// # Errors
    /// The contents, where they are not signed.
    pub fn from_contents(contents: Contents) -> Result<Self, Box<Contents>> {
        let apex = contents.nodes().next();
        let signed =
            apex.is_some_and(|apex| apex.has(Rtype::DNSKEY) && apex.signatures(Rtype::SOA).is_some());
        match contents.soa() {
            Some(soa) if signed => {
                let statistics = SignStatistics { serial: soa.serial, ..SignStatistics::default() };
                Ok(Self { contents, statistics, warnings: Vec::new() })
            }
            _ => Err(Box::new(contents)),
        }
    }

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

    /// What signing did; all zero but the serial for a zone that was read.
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
    let (summary, digests) = job.run(options, zonemd::Place::Apex, swap, gather)?;
    if let Some(part) = digests {
        signed.overwrite_apex(&part);
    }
    signed.shrink_to_fit();
    Ok(Signed { contents: signed, statistics: summary.statistics, warnings: summary.warnings })
}

fn check(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<(), SignError> {
    let zone = contents.apex();
    if keys.zone() != zone {
        return Err(SignError::KeysOfOtherZone { zone: zone.clone(), keys: keys.zone().clone() });
    }
    if options.mechanism.made() == Made::WhenAsked {
        return Err(SignError::MadeWhenAsked { mechanism: options.mechanism });
    }
    let period = options.expiration.wrapping_sub(options.inception);
    if !arithmetic::is_before(options.inception, options.expiration) {
        return Err(SignError::Period);
    }
    if arithmetic::is_before(options.expiration, options.now) {
        return Err(SignError::Expired);
    }
    if options.jitter >= period {
        return Err(SignError::Jitter { jitter: options.jitter, period });
    }
    reuse::check(zone.view(), options)?;
    match options.mechanism.mapping() {
        Mapping::Itself => Ok(()),
        Mapping::Sha1 => check_nsec3(zone, options),
        Mapping::Vrf if options.nsec5.is_none() => Err(Nsec5Error::NoProofs.into()),
        Mapping::Vrf => Ok(check_signing(zone, keys)?),
    }
}

fn check_nsec3(zone: &Name, options: &SignOptions<'_>) -> Result<(), SignError> {
    let params = &options.nsec3;
    if params.iterations > MAX_ITERATIONS {
        return Err(SignError::Iterations { iterations: params.iterations });
    }
    if params.salt.len() > usize::from(u8::MAX) {
        return Err(SignError::Salt { octets: params.salt.len() });
    }
    if zone.view().len() + 1 + crate::denial::nsec3::LABEL > MAX_NAME {
        return Err(SignError::ApexTooLong { zone: zone.clone() });
    }
    Ok(())
}
