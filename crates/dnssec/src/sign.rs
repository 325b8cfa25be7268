//! Signing a zone (RFC 4035 §2): the apex is prepared (`apex`), the chain laid out (`plan`), and all RRsets are
//! signed on all cores (`chunk`).

mod apex;
mod chunk;
mod options;
mod plan;
mod resign;
mod reuse;
mod serial;

pub use options::{SerialPolicy, SignError, SignOptions, SignWarning};
pub use resign::{Resigned, is_current, resign, resign_changes};
pub use reuse::Previous;

use crate::denial::nsec3::MAX_ITERATIONS;
use crate::keys::{KeyPair, KeySet};
use nonesuch_proto::{MAX_NAME, Rtype, serial as arithmetic};
use nonesuch_zone::{Contents, Run};
use plan::Plan;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nodes signed at once by one thread.
const CHUNK: usize = 512;

/// What signing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignStatistics {
    /// RRsets that are signed.
    pub rrsets_signed: u64,
    /// Signatures made: with two algorithms two for each RRset.
    pub signatures: u64,
    /// Signatures kept of the previous zone.
    pub signatures_kept: u64,
    /// NSEC or NSEC3 records made.
    pub chain_records: u64,
    /// Serial number of the signed zone.
    pub serial: u32,
}

impl SignStatistics {
    const fn add(&mut self, other: &Self) {
        self.rrsets_signed += other.rrsets_signed;
        self.signatures += other.signatures;
        self.signatures_kept += other.signatures_kept;
        self.chain_records += other.chain_records;
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
/// RRSIG, NSEC, NSEC3 and NSEC3PARAM records of the input are dropped and made anew. DNSKEY records that are not in
/// the key set are kept, as multi-signer set-ups and roll-overs need.
///
/// # Errors
/// Where keys, options or contents do not allow a sound zone; nothing is signed then.
pub fn sign(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<Signed, SignError> {
    check(contents, keys, options)?;
    let (apex, serial, mut warnings) = apex::prepare(contents, keys, options)?;
    if !keys.keys().iter().any(KeyPair::is_sep) {
        warnings.push(SignWarning::NoSecureEntryPoint);
    }
    let plan = Plan::new(contents, &apex, options)?;
    let (runs, mut statistics) = sign_items(&plan, keys, options)?;
    statistics.serial = serial;
    Ok(Signed { contents: Contents::from_runs(contents.apex(), runs), statistics, warnings })
}

fn check(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<(), SignError> {
    let zone = contents.apex();
    if keys.zone() != zone {
        return Err(SignError::KeysOfOtherZone { zone: zone.clone(), keys: keys.zone().clone() });
    }
    let period = options.expiration.wrapping_sub(options.inception);
    if !arithmetic::is_before(options.inception, options.expiration) {
        return Err(SignError::Period);
    }
    if options.jitter >= period {
        return Err(SignError::Jitter { jitter: options.jitter, period });
    }
    reuse::check(zone.view(), options)?;
    if !options.mechanism.is_hashed() {
        return Ok(());
    }
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

fn sign_items(
    plan: &Plan<'_>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<(Vec<Run>, SignStatistics), SignError> {
    let signer = chunk::Signer::new(plan, keys, options);
    let done = AtomicU64::new(0);
    let outcomes: Result<Vec<(Run, SignStatistics)>, SignError> = plan
        .items()
        .par_chunks(CHUNK)
        .map_init(chunk::Scratch::default, |scratch, items| {
            let outcome = signer.sign_chunk(items, scratch)?;
            if let Some(progress) = options.progress {
                let made = outcome.1.signatures;
                progress(done.fetch_add(made, Ordering::Relaxed) + made);
            }
            Ok(outcome)
        })
        .collect();
    let mut statistics = SignStatistics::default();
    let runs = outcomes?.into_iter().map(|(run, part)| {
        statistics.add(&part);
        run
    });
    let runs = runs.collect();
    Ok((runs, statistics))
}
