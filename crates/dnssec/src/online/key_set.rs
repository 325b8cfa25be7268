//! Signs only the key set of a zone: DNSKEY, CDS and CDNSKEY at the apex. This runs on the host
//! that has the KSK. The server, which signs all other RRsets online, then needs no KSK.

use super::prepare::replace_apex;
use super::signer::{RrsetToSign, SigningJob, sign_rrsets};
use crate::inspect::{CDS_TYPES, KEY_SET};
use crate::keys::{CdsSchedule, KeyPair, KeyRecord, Role, published_keys};
use crate::transition::KeyState;
use nonesuch_crypto::{Algorithm, SignError};
use nonesuch_proto::{Name, Rtype, rdata, serial};
use nonesuch_zone::{Contents, NodesBuilder, Rrset};
use std::collections::BTreeMap;

/// The records and keys of a key set, and the options for its signatures.
#[derive(Debug)]
pub struct KeySetOptions {
    /// The DNSKEY records of all keys of the zone, including keys whose private key is on another
    /// host.
    pub records: Vec<KeyRecord>,
    /// The available private keys. For each algorithm, at least one must be a KSK or CSK, or a key
    /// that signed the existing key set.
    pub pairs: Vec<KeyPair>,
    /// First second of validity, in seconds since 1970 modulo 2^32.
    pub inception: u32,
    /// Last second of validity, in seconds since 1970 modulo 2^32.
    pub expiration: u32,
    /// TTL of the three RRsets in seconds. `None` selects the TTL of the existing RRset, or of the
    /// SOA record.
    pub ttl: Option<u32>,
    /// Whether to publish CDS and CDNSKEY records of the keys that sign (RFC 7344).
    pub publish_cds: bool,
    /// Whether to remove existing DNSKEY records of the zone that are not in `records`.
    pub drop_other_dnskeys: bool,
    /// RDATA of DNSKEY records of the zone that the times in the key files withdraw.
    pub withdrawn: Vec<Vec<u8>>,
    /// Keys with CDS and CDNSKEY records that the times in the key files publish or withdraw.
    pub sync: CdsSchedule,
}

/// The reason why a key set cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetSignError {
    /// The zone has no well-formed SOA record.
    #[error("the zone {0} has no well-formed SOA record at its apex")]
    NoSoa(Name),
    /// The zone would have no DNSKEY record.
    #[error("there is no key for the zone {0}: generate one with `nonesuch key generate {0}`")]
    NoKey(Name),
    /// No private key of an algorithm signs the key set.
    #[error(
        "no active private key of algorithm {algorithm} can sign the DNSKEY RRset of {zone}: provide its \
        key-signing key (K*.private; `nonesuch key list` shows which keys are active)"
    )]
    NoSigner {
        /// The zone.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The expiration does not follow the inception.
    #[error("the expiration must be later than the inception, by less than 68 years")]
    Period,
    /// The cryptographic library failed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// Returns `contents` with the key set and its signatures, and without all other signatures, denial
/// chains, and ZONEMD records, whose digest would no longer match. Other records do not change.
///
/// # Errors
/// All variants of [`KeySetSignError`].
pub fn sign_key_set(contents: &Contents, options: &KeySetOptions) -> Result<Contents, KeySetSignError> {
    let zone = contents.apex();
    let soa = contents.soa().ok_or_else(|| KeySetSignError::NoSoa(zone.clone()))?;
    if !serial::is_before(options.inception, options.expiration) {
        return Err(KeySetSignError::Period);
    }
    let dnskeys = collect_dnskeys(contents, options);
    // A DS record in the parent may refer to a key that signed the key set before, in any role.
    let previous = KeyState::of(contents).map(|state| state.signing).unwrap_or_default();
    let signers = signers(zone, &dnskeys, &previous, options)?;
    let mut sets: BTreeMap<Rtype, Vec<Vec<u8>>> = BTreeMap::new();
    let rdatas = |rrset: Rrset<'_>| rrset.rdatas().map(<[u8]>::to_vec).collect();
    let present = CDS_TYPES.map(|rtype| contents.apex_rrset(rtype).map(rdatas).unwrap_or_default());
    let entry_points: Option<Vec<Vec<u8>>> = options.publish_cds.then(|| {
        let usable = signers.iter().filter(|key| !key.is_revoked());
        usable.map(|key| key.dnskey_rdata()).collect()
    });
    let records = options.sync.records(zone.view(), present, entry_points.as_deref());
    sets.extend(CDS_TYPES.into_iter().zip(records).filter(|(_, rdatas)| !rdatas.is_empty()));
    sets.insert(Rtype::DNSKEY, dnskeys);
    let mut builder = NodesBuilder::default();
    builder.begin_node(zone.view());
    for (rtype, mut rdatas) in sets {
        rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        let existing_ttl = contents.apex_rrset(rtype).map(|rrset| rrset.ttl());
        let ttl = options.ttl.or(existing_ttl).unwrap_or(soa.ttl);
        push_signed(&mut builder, zone, rtype, ttl, &rdatas, &signers, options)?;
    }
    let keys = builder.into_contents(zone);
    let is_replaced = |rtype| KEY_SET.contains(&rtype) || rtype == Rtype::ZONEMD;
    Ok(replace_apex(contents, &keys, |covered, is_signature| !is_signature && !is_replaced(covered)))
}

/// RDATA of all DNSKEY records of the new key set, sorted.
fn collect_dnskeys(contents: &Contents, options: &KeySetOptions) -> Vec<Vec<u8>> {
    let mut dnskeys: Vec<Vec<u8>> = options.records.iter().map(|record| record.rdata().to_vec()).collect();
    if !options.drop_other_dnskeys {
        let present = contents.apex_rrset(Rtype::DNSKEY).into_iter().flat_map(|rrset| rrset.rdatas());
        let is_published = |rdata: &&[u8]| !options.withdrawn.iter().any(|withdrawn| withdrawn == rdata);
        dnskeys.extend(present.filter(is_published).map(<[u8]>::to_vec));
    }
    dnskeys.sort_by(|a, b| rdata::cmp_canonical(Rtype::DNSKEY, a, b));
    dnskeys.dedup();
    dnskeys
}

/// The keys that sign the key set, at least one for each algorithm (RFC 4035 §2.2): those with a
/// suitable role, and those in `previous`.
fn signers<'o>(
    zone: &Name,
    dnskeys: &[Vec<u8>],
    previous: &[Vec<u8>],
    options: &'o KeySetOptions,
) -> Result<Vec<&'o KeyPair>, KeySetSignError> {
    if dnskeys.is_empty() {
        return Err(KeySetSignError::NoKey(zone.clone()));
    }
    let keys = published_keys(dnskeys);
    let signs = |pair: &&KeyPair| {
        let rdata = pair.dnskey_rdata();
        keys.iter().any(|key| key.rdata == rdata && (key.role != Role::Zsk || previous.contains(&rdata)))
    };
    let signers: Vec<&KeyPair> = options.pairs.iter().filter(signs).collect();
    let is_missing = |algorithm: Algorithm| !signers.iter().any(|key| key.algorithm() == algorithm);
    match keys.iter().find(|key| is_missing(key.algorithm)) {
        Some(key) => Err(KeySetSignError::NoSigner { zone: zone.clone(), algorithm: key.algorithm }),
        None => Ok(signers),
    }
}

fn push_signed(
    builder: &mut NodesBuilder,
    zone: &Name,
    rtype: Rtype,
    ttl: u32,
    rdatas: &[Vec<u8>],
    signers: &[&KeyPair],
    options: &KeySetOptions,
) -> Result<(), SignError> {
    builder.begin_rrset(rtype, rtype, ttl);
    rdatas.iter().for_each(|rdata| builder.push_record(|out| out.extend_from_slice(rdata)));
    let rrset = RrsetToSign { owner: zone.clone(), rtype, ttl, rdatas: rdatas.to_vec(), generated_for: None };
    let KeySetOptions { inception, expiration, .. } = *options;
    let job = |pair| SigningJob { pair, zone: zone.view(), rrset: &rrset, inception, expiration };
    let jobs: Vec<SigningJob<'_>> = signers.iter().copied().map(job).collect();
    let mut signatures: Vec<Vec<u8>> = sign_rrsets(&jobs).into_iter().collect::<Result<_, _>>()?;
    signatures.sort_by(|a, b| rdata::cmp_canonical(Rtype::RRSIG, a, b));
    builder.begin_rrset(Rtype::RRSIG, rtype, ttl);
    signatures.iter().for_each(|rdata| builder.push_record(|out| out.extend_from_slice(rdata)));
    Ok(())
}
