//! How a zone is to be signed, and whether it can be signed so.

use super::SignError;
use super::policy::SerialPolicy;
use crate::denial::nsec3::{LABEL, MAX_ITERATIONS};
use crate::denial::nsec5::{Nsec5Chain, Nsec5Error, check_signing};
use crate::denial::{DenialGeneration, Mapping, Mechanism, Nsec3Params};
use crate::keys::KeySet;
use nonesuch_proto::{MAX_NAME, Name, NameRef, serial};
use nonesuch_zone::Contents;
use nonesuch_zone::zonemd::ZonemdHash;
use std::fmt;

/// How a zone is to be signed. Times are seconds since 1970 modulo 2^32.
#[derive(Clone)]
pub struct SignOptions<'a> {
    /// How the zone denies existence.
    pub mechanism: Mechanism,
    /// Salt and iterations, for NSEC3.
    pub nsec3: Nsec3Params,
    /// The proofs that the chain is made of, for NSEC5.
    pub nsec5: Option<Nsec5Chain<'a>>,
    /// First second of validity.
    pub inception: u32,
    /// Last second of validity.
    pub expiration: u32,
    /// Most seconds taken off the expiration, so that not all signatures expire at once; less than the period.
    pub jitter: u32,
    /// What the jitter is drawn from, beside the time: the same of both gives each RRset the same expiration.
    pub seed: u64,
    /// What becomes of the SOA serial number.
    pub serial: SerialPolicy,
    /// The time of signing, for the serial number, the jitter, and what is kept of a previous zone.
    pub now: u32,
    /// Whether CDS (SHA-256) and CDNSKEY records of the keys that sign DNSKEY are published (RFC 7344), in place of
    /// those that the zone has.
    pub publish_cds: bool,
    /// TTL of DNSKEY, CDS and CDNSKEY; else that of the RRset in the zone, else that of the SOA record.
    pub dnskey_ttl: Option<u32>,
    /// Whether DNSKEY records that are not in the key set are dropped.
    pub drop_foreign_dnskeys: bool,
    /// Hash algorithms of the ZONEMD records that are made (RFC 8976), of scheme SIMPLE: those given, none where there
    /// are none; with `None` those of the ZONEMD records that the zone has.
    pub zonemd: Option<Vec<ZonemdHash>>,
    /// The zone as it was signed last, whose signatures are kept where they may, and behind whose serial the new one
    /// comes.
    pub previous: Option<PreviousZone<'a>>,
    /// Whether a version is made that breaks validators which hold the previous version's keys
    /// ([`transition`](crate::transition::transition)): a warning then, and an error otherwise.
    pub allow_unsafe_transition: bool,
    /// Called now and then with what is done so far, from the calling thread.
    pub progress: Option<&'a (dyn Fn(SignProgress) + Sync)>,
}

/// The zone as it was signed last, and when its signatures are too old to be kept.
#[derive(Clone, Copy, Debug)]
pub struct PreviousZone<'a> {
    /// The signed zone.
    pub contents: &'a Contents,
    /// Signatures that expire within as many seconds from the time of signing are made anew.
    pub refresh: u32,
    /// Whether the mathematics of every signature kept is verified, not of a sample alone.
    pub verify: bool,
}

impl<'a> PreviousZone<'a> {
    /// Keeps signatures of `contents`, but for those in the last quarter of a validity of `period` seconds: the share
    /// that `dnssec-signzone` takes. Of 14 days it leaves a weekend and a working day to notice that no run succeeds.
    #[must_use]
    pub const fn new(contents: &'a Contents, period: u32) -> Self {
        Self { contents, refresh: period / 4, verify: false }
    }
}

/// How far signing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignProgress {
    /// RRsets signed and handed on.
    pub rrsets: u64,
    /// RRsets that are to be signed.
    pub total_rrsets: u64,
    /// Signatures of those RRsets.
    pub signatures: u64,
    /// Records handed on, signatures among them.
    pub records: u64,
}

impl SignOptions<'_> {
    /// Options for signatures from `inception` to `expiration`: no jitter, the serial kept, no CDS, no salt.
    #[must_use]
    pub fn new(mechanism: Mechanism, inception: u32, expiration: u32) -> Self {
        Self {
            mechanism,
            nsec3: Nsec3Params::default(),
            nsec5: None,
            inception,
            expiration,
            jitter: 0,
            seed: 0,
            serial: SerialPolicy::Keep,
            now: inception,
            publish_cds: false,
            dnskey_ttl: None,
            drop_foreign_dnskeys: false,
            zonemd: None,
            previous: None,
            allow_unsafe_transition: false,
            progress: None,
        }
    }
}

impl fmt::Debug for SignOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignOptions")
            .field("mechanism", &self.mechanism)
            .field("nsec3", &self.nsec3)
            .field("inception", &self.inception)
            .field("expiration", &self.expiration)
            .field("jitter", &self.jitter)
            .field("serial", &self.serial)
            .field("zonemd", &self.zonemd)
            .finish_non_exhaustive()
    }
}

/// Checks that `contents` can be signed with `keys` by these options.
pub(super) fn check(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<(), SignError> {
    let zone = contents.apex();
    if keys.zone() != zone {
        return Err(SignError::KeysOfOtherZone { zone: zone.clone(), keys: keys.zone().clone() });
    }
    if options.mechanism.generation() == DenialGeneration::Online {
        return Err(SignError::OnlineMechanism { mechanism: options.mechanism });
    }
    let period = options.expiration.wrapping_sub(options.inception);
    if !serial::is_before(options.inception, options.expiration) {
        return Err(SignError::Period);
    }
    if serial::is_before(options.expiration, options.now) {
        return Err(SignError::Expired);
    }
    // Of the period, what has passed is of no use.
    let period = period.min(options.expiration.wrapping_sub(options.now));
    if options.jitter > 0 && options.jitter >= period {
        return Err(SignError::Jitter { jitter: options.jitter, period });
    }
    check_previous(zone.view(), options)?;
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
    if zone.view().len() + 1 + LABEL > MAX_NAME {
        return Err(SignError::ApexTooLong { zone: zone.clone() });
    }
    Ok(())
}

/// Whether a previous zone can be used with these options at all.
fn check_previous(apex: NameRef<'_>, options: &SignOptions<'_>) -> Result<(), SignError> {
    let Some(previous) = options.previous else { return Ok(()) };
    let zone = previous.contents.apex();
    if zone.view() != apex {
        return Err(SignError::PreviousOfOtherZone { zone: apex.to_name(), previous: zone.clone() });
    }
    // What is signed with the most jitter must outlast the window, or it is signed anew each time.
    let valid = options.expiration.wrapping_sub(options.now);
    let left = if serial::is_before(options.now, options.expiration) { valid } else { 0 };
    let least = left.saturating_sub(options.jitter);
    if previous.refresh >= least {
        return Err(SignError::Refresh { refresh: previous.refresh, least });
    }
    Ok(())
}
