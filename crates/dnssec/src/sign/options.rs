//! The options of signing, and the check whether a zone can be signed with them.

use super::SignError;
use super::policy::SerialPolicy;
use crate::denial::nsec3::{HASH_LABEL_OCTETS, MAX_ITERATIONS};
use crate::denial::nsec5::{Nsec5Chain, Nsec5Error, check_nsec5_requirements};
use crate::denial::{DenialGeneration, Mechanism, NameHash, Nsec3Params};
use crate::keys::KeySet;
use nonesuch_proto::{MAX_NAME, Name, NameRef, serial};
use nonesuch_zone::Contents;
use nonesuch_zone::zonemd::ZonemdHash;
use std::fmt;

/// The options of signing. Times are in seconds since 1970 modulo 2^32.
#[derive(Clone)]
pub struct SignOptions<'a> {
    /// The denial mechanism of the signed zone.
    pub mechanism: Mechanism,
    /// Salt and iterations of an NSEC3 chain.
    pub nsec3: Nsec3Params,
    /// The proofs from which an NSEC5 chain is generated; required for a mechanism with NSEC5.
    pub nsec5: Option<Nsec5Chain<'a>>,
    /// First second of validity of generated signatures.
    pub inception: u32,
    /// Last second of validity of generated signatures, before the reduction by the jitter.
    pub expiration: u32,
    /// Maximum random reduction of the expiration in seconds, so that not all signatures expire at
    /// once. It must be less than the validity period after `now`.
    pub jitter: u32,
    /// Seed of the jitter. With the same seed and the same `now`, an RRset gets the same
    /// expiration.
    pub seed: u64,
    /// Policy for the SOA serial.
    pub serial: SerialPolicy,
    /// The time of signing, for the serial, the jitter, and the reuse of signatures of a previous
    /// zone.
    pub now: u32,
    /// Whether to publish CDS (SHA-256) and CDNSKEY records of the keys that sign the DNSKEY RRset
    /// (RFC 7344). They replace those of the zone.
    pub publish_cds: bool,
    /// TTL of DNSKEY, CDS and CDNSKEY in seconds; `None` selects the TTL of the RRset in the zone,
    /// or of the SOA record.
    pub dnskey_ttl: Option<u32>,
    /// Whether to remove DNSKEY records of the zone that are not in the key set.
    pub drop_foreign_dnskeys: bool,
    /// Hash algorithms of the ZONEMD records to generate (RFC 8976), with the scheme SIMPLE; an
    /// empty list generates none. `None` selects those of the ZONEMD records in the zone.
    pub zonemd: Option<Vec<ZonemdHash>>,
    /// The previous signed zone. Its signatures are reused where possible, and the new serial
    /// follows its serial. `None` signs everything.
    pub previous: Option<PreviousZone<'a>>,
    /// Whether the new version may break validators that have cached data of the previous version
    /// ([`transition`](crate::transition::transition)). If `true`, such a version causes a warning,
    /// otherwise an error.
    pub allow_unsafe_transition: bool,
    /// Called with the progress after each part of the zone, from the thread that called the
    /// signer.
    pub progress: Option<&'a (dyn Fn(SignProgress) + Sync)>,
}

/// The previous signed zone, and the rules for the reuse of its signatures.
#[derive(Clone, Copy, Debug)]
pub struct PreviousZone<'a> {
    /// The signed zone.
    pub contents: &'a Contents,
    /// Refresh window: signatures that expire within this many seconds after the time of signing
    /// are replaced.
    pub refresh: u32,
    /// Whether every reused signature is verified cryptographically, instead of a sample.
    pub verify: bool,
}

impl<'a> PreviousZone<'a> {
    /// Reuses signatures of `contents`. The refresh window is a quarter of `period`, the validity
    /// period of the signatures in seconds, as by default in `dnssec-signzone`. With 14 days, the
    /// window is 3.5 days: a weekend and a working day to notice that signing fails.
    #[must_use]
    pub const fn new(contents: &'a Contents, period: u32) -> Self {
        Self { contents, refresh: period / 4, verify: false }
    }
}

/// The progress of signing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignProgress {
    /// Number of RRsets that are signed and written.
    pub rrsets: u64,
    /// Number of RRsets that will be signed.
    pub total_rrsets: u64,
    /// Number of signatures generated for these RRsets.
    pub signatures: u64,
    /// Number of records that are written, including signatures.
    pub records: u64,
}

impl SignOptions<'_> {
    /// Options for signatures from `inception` to `expiration`. The time of signing is `inception`.
    /// Without jitter, CDS records, salt and previous zone; the serial remains unchanged.
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

/// Checks before signing that keys, mechanism, times, jitter, previous zone and chain parameters
/// permit to sign the zone `contents`.
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
    // A signature that expires before `now` would be useless, so only the time after `now` counts.
    let period = period.min(options.expiration.wrapping_sub(options.now));
    if options.jitter > 0 && options.jitter >= period {
        return Err(SignError::Jitter { jitter: options.jitter, period });
    }
    check_previous(zone.view(), options)?;
    match options.mechanism.name_hash() {
        NameHash::Unhashed => Ok(()),
        NameHash::Sha1 => check_nsec3(zone, options),
        NameHash::Vrf if options.nsec5.is_none() => Err(Nsec5Error::NoProofs.into()),
        NameHash::Vrf => Ok(check_nsec5_requirements(zone, keys)?),
    }
}

/// Checks the NSEC3 parameters, and that hashed owner names fit below the apex.
fn check_nsec3(zone: &Name, options: &SignOptions<'_>) -> Result<(), SignError> {
    let params = &options.nsec3;
    if params.iterations > MAX_ITERATIONS {
        return Err(SignError::Iterations { iterations: params.iterations });
    }
    if params.salt.len() > usize::from(u8::MAX) {
        return Err(SignError::Salt { octets: params.salt.len() });
    }
    if zone.view().len() + 1 + HASH_LABEL_OCTETS > MAX_NAME {
        return Err(SignError::ApexTooLong { zone: zone.clone() });
    }
    Ok(())
}

/// Checks that the previous zone can be used with these options.
fn check_previous(apex: NameRef<'_>, options: &SignOptions<'_>) -> Result<(), SignError> {
    let Some(previous) = options.previous else { return Ok(()) };
    let zone = previous.contents.apex();
    if zone.view() != apex {
        return Err(SignError::PreviousOfOtherZone { zone: apex.to_name(), previous: zone.clone() });
    }
    // Signatures with the maximum jitter must expire after the refresh window. Otherwise the next
    // signing would replace them at once.
    let seconds = options.expiration.wrapping_sub(options.now);
    let remaining = if serial::is_before(options.now, options.expiration) { seconds } else { 0 };
    let min_validity = remaining.saturating_sub(options.jitter);
    if previous.refresh >= min_validity {
        return Err(SignError::Refresh { refresh: previous.refresh, min_validity });
    }
    Ok(())
}
