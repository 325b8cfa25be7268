//! Prepares a zone, signed or unsigned, and its keys for serving with online denial.
//!
//! A signed zone is verified first. Then all records of denial chains are removed, because the
//! server generates its own denial records. NSEC3PARAM is removed too, because it announces a chain
//! (RFC 5155 §4). Signatures over data remain.

use super::keys::{OnlineKeyError, OnlineKeys};
use crate::denial::{DenialGeneration, Mechanism, NameHash, is_generated_by_signing};
use crate::inspect::{CDS_TYPES, KEY_SET, has_only_key_set, is_signed};
use crate::keys::{CdsSchedule, KeyPair, KeyRecord};
use crate::verify::{
    FaultyZone, Report, Verified, VerifyInputs, VerifyOptions, into_verified_with, verify_key_set,
};
use nonesuch_proto::{MAX_NAME, Name, Rtype, rdata};
use nonesuch_zone::{Contents, Node, NodesBuilder, Rrset, ZoneFault, check_rrset};
use std::collections::BTreeMap;

/// Octets of RRSIG RDATA before the signer's name (RFC 4034 §3.1).
const RRSIG_FIXED_OCTETS: usize = 18;
/// Octets of the first label of an NSEC3 owner name, with its length octet.
const NSEC3_LABEL_OCTETS: usize = 33;

/// Keys and options for a zone that is signed online.
#[derive(Debug)]
pub struct OnlineOptions {
    /// A mechanism that generates its records online.
    pub mechanism: Mechanism,
    /// DNSKEY records to publish if the zone has no DNSKEY RRset; otherwise ignored.
    pub records: Vec<KeyRecord>,
    /// The private keys on the server.
    pub pairs: Vec<KeyPair>,
    /// Validity of signatures, in seconds ([`SignaturePeriod::at`](super::SignaturePeriod::at)).
    pub validity: u32,
    /// Keys with CDS and CDNSKEY records that are published or withdrawn, for a DNSKEY RRset
    /// without signatures.
    pub sync: CdsSchedule,
}

/// The reason why a zone cannot be served with online denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The keys are not suitable for the zone.
    #[error(transparent)]
    Keys(#[from] OnlineKeyError),
    /// The zone is signed and has faults, or its key set has faults.
    #[error(
        "verification found {}, first: {}; `nonesuch zone verify FILE` lists all faults; correct the zone, or sign it again with `nonesuch zone sign`",
        .0.format_fault_count(), first_fault(.0)
    )]
    Faulty(Box<Report>),
    /// The signer generates the records of the mechanism, not the server.
    #[error(
        "{0} records are generated when the zone is signed, not online: sign the zone with {0} and serve the signed zone"
    )]
    NotOnline(Mechanism),
    /// A zone with NSEC5 must not use another denial mechanism.
    #[error(
        "the zone {0} is signed with NSEC5, so it cannot use another denial mechanism: serve it with --nsec5-keys"
    )]
    Nsec5(Name),
    /// NSEC3 owner names do not fit below the apex.
    #[error(
        "the zone name {0} is too long for NSEC3, which prepends a hash of 33 octets to it: use another mechanism"
    )]
    ApexTooLong(Name),
    /// With the signatures generated online, an RRset does not fit in a message.
    #[error(transparent)]
    Zone(#[from] ZoneFault),
}

fn first_fault(report: &Report) -> String {
    report.faults.first().map_or_else(String::new, ToString::to_string)
}

/// A zone that is ready for serving with online denial: its existing signatures are verified, it
/// has no denial chain, and it has a DNSKEY RRset. Only the functions [`prepare`] and
/// [`prepare_unverified`] create it; the latter skips the verification.
#[derive(Debug)]
pub struct PreparedZone {
    contents: Contents,
    keys: OnlineKeys,
}

impl PreparedZone {
    /// The records of the zone as served, without the records that are generated online.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The keys that sign the zone online.
    #[must_use]
    pub const fn keys(&self) -> &OnlineKeys {
        &self.keys
    }

    /// Whether the zone has signatures over the DNSKEY RRset. If not, the server generates them
    /// online.
    #[must_use]
    pub fn has_signed_keys(&self) -> bool {
        has_signed_keys(&self.contents)
    }

    /// The zone and the keys.
    #[must_use]
    pub fn into_parts(self) -> (Contents, OnlineKeys) {
        (self.contents, self.keys)
    }
}

/// Prepares `contents`: a signed zone, which is verified; an unsigned zone; or an unsigned zone
/// with a signed key set.
///
/// # Errors
/// All variants of [`PrepareError`].
pub fn prepare(
    contents: Contents,
    options: OnlineOptions,
    verify: &VerifyOptions,
) -> Result<PreparedZone, PrepareError> {
    check_mechanism(&contents, options.mechanism)?;
    let verified = verify_signed_part(contents, verify, &VerifyInputs::default());
    let contents = verified.map_err(|faulty| PrepareError::Faulty(Box::new(faulty.report)))?;
    prepare_unverified(&contents, options)
}

/// As [`prepare`], without verification, for a zone that is already verified or is served despite
/// faults.
///
/// # Errors
/// All variants of [`PrepareError`] except [`PrepareError::Faulty`].
pub fn prepare_unverified(contents: &Contents, options: OnlineOptions) -> Result<PreparedZone, PrepareError> {
    let OnlineOptions { mechanism, records, pairs, validity, sync } = options;
    check_mechanism(contents, mechanism)?;
    let apex = contents.apex().clone();
    let (ttl, dnskeys) = dnskeys(contents, &records);
    if dnskeys.is_empty() {
        return Err(OnlineKeyError::NoKey(apex).into());
    }
    let keys = prepare_keys(&apex, &dnskeys, has_signed_keys(contents), pairs, mechanism, validity)?;
    let contents = if has_signed_keys(contents) || sync.is_empty() {
        remove_chain_add_dnskeys(contents, ttl, &dnskeys)
    } else {
        remove_chain_add_dnskeys(&with_sync_records(contents, ttl, &sync), ttl, &dnskeys)
    };
    check_sizes(&contents, &keys)?;
    Ok(PreparedZone { contents, keys })
}

/// Returns the keys of a zone that is already prepared. `dnskeys` is the RDATA of its DNSKEY RRset.
/// `is_key_set_signed` states whether the zone has signatures of this RRset. `validity` is in
/// seconds.
///
/// # Errors
/// [`PrepareError::Keys`].
pub fn prepare_keys(
    apex: &Name,
    dnskeys: &[Vec<u8>],
    is_key_set_signed: bool,
    pairs: Vec<KeyPair>,
    mechanism: Mechanism,
    validity: u32,
) -> Result<OnlineKeys, PrepareError> {
    let keys = OnlineKeys::new(apex, pairs, dnskeys, mechanism, validity)?;
    if !is_key_set_signed && !keys.can_sign_key_set() {
        return Err(OnlineKeyError::KeysNotSigned { zone: apex.clone() }.into());
    }
    if let Some(algorithm) = keys.unsigned_algorithm(dnskeys).filter(|_| !is_key_set_signed) {
        return Err(OnlineKeyError::KeysNotSignedBy { zone: apex.clone(), algorithm }.into());
    }
    keys.test_all().map_err(PrepareError::Keys)?;
    Ok(keys)
}

/// Checks that each RRset with the signatures that the server adds to it fits in a message.
fn check_sizes(contents: &Contents, keys: &OnlineKeys) -> Result<(), ZoneFault> {
    let apex = contents.apex().view();
    for node in contents.nodes() {
        // RFC 4035 §2.2: the NS RRset at a zone cut has no signature.
        let is_unsigned = |rrset: &Rrset<'_>| rrset.rtype() == Rtype::NS && node.index() > 0;
        let is_signed = |rrset: &Rrset<'_>| node.signatures(rrset.rtype()).is_some();
        for rrset in node.rrsets().filter(|rrset| rrset.rtype() != Rtype::RRSIG && !is_signed(rrset)) {
            let signers = keys.signers(node.name(), rrset.rtype()).iter().filter(|_| !is_unsigned(&rrset));
            let octets =
                signers.map(|signer| RRSIG_FIXED_OCTETS + apex.len() + keys.signature_octets(*signer));
            check_rrset(node.name(), apex, rrset.rtype(), rrset.rdatas(), octets)?;
        }
    }
    Ok(())
}

fn has_signed_keys(contents: &Contents) -> bool {
    contents.nodes().next().is_some_and(|apex| apex.signatures(Rtype::DNSKEY).is_some())
}

fn check_mechanism(contents: &Contents, mechanism: Mechanism) -> Result<(), PrepareError> {
    if mechanism.entry().generation != DenialGeneration::Online {
        return Err(PrepareError::NotOnline(mechanism));
    }
    let apex = contents.apex();
    if crate::inspect::denial(contents).is_some_and(|denial| denial.mechanism.name_hash() == NameHash::Vrf) {
        return Err(PrepareError::Nsec5(apex.clone()));
    }
    if mechanism.name_hash() == NameHash::Sha1 && apex.view().len() + NSEC3_LABEL_OCTETS > MAX_NAME {
        return Err(PrepareError::ApexTooLong(apex.clone()));
    }
    Ok(())
}

/// Verifies a zone before [`prepare_unverified`]: only the key set if nothing else is signed,
/// otherwise the whole zone with `inputs`. A predecessor is not used for a key set. Returns the
/// zone.
///
/// # Errors
/// The zone with its report, if it has faults.
pub fn verify_signed_part(
    contents: Contents,
    options: &VerifyOptions,
    inputs: &VerifyInputs<'_>,
) -> Result<Contents, Box<FaultyZone>> {
    if is_signed(&contents) || !has_only_key_set(&contents) {
        return into_verified_with(contents, options, inputs).map(Verified::into_contents);
    }
    let report = verify_key_set(&contents, &key_set(&contents), options);
    if report.has_no_faults() { Ok(contents) } else { Err(Box::new(FaultyZone { contents, report })) }
}

/// The apex with only its key set. Without nodes if the key set has no signatures.
fn key_set(contents: &Contents) -> Contents {
    let mut builder = NodesBuilder::default();
    let apex = contents.nodes().next().filter(|apex| apex.signatures(Rtype::DNSKEY).is_some());
    if let Some(apex) = apex {
        builder.begin_node(apex.name());
        apex.rrsets()
            .filter(|rrset| KEY_SET.contains(&rrset.covered()))
            .for_each(|rrset| builder.push_rrset(rrset));
    }
    builder.into_contents(contents.apex())
}

/// Returns TTL and RDATA of the DNSKEY RRset of the zone. If the zone has none, returns all of
/// `records` with the TTL of the SOA record.
fn dnskeys(contents: &Contents, records: &[KeyRecord]) -> (u32, Vec<Vec<u8>>) {
    if let Some(rrset) = contents.apex_rrset(Rtype::DNSKEY) {
        return (rrset.ttl(), rrset.rdatas().map(<[u8]>::to_vec).collect());
    }
    let mut rdatas: Vec<Vec<u8>> = records.iter().map(|record| record.rdata().to_vec()).collect();
    rdatas.sort_by(|a, b| rdata::cmp_canonical(Rtype::DNSKEY, a, b));
    rdatas.dedup();
    (contents.soa().map_or(0, |soa| soa.ttl), rdatas)
}

/// The zone with the CDS and CDNSKEY records according to the times of its keys. New RRsets have
/// the TTL of the DNSKEY RRset.
fn with_sync_records(contents: &Contents, key_ttl: u32, sync: &CdsSchedule) -> Contents {
    let rdatas = |rrset: Rrset<'_>| rrset.rdatas().map(<[u8]>::to_vec).collect();
    let present = CDS_TYPES.map(|rtype| contents.apex_rrset(rtype).map(rdatas).unwrap_or_default());
    let mut builder = NodesBuilder::default();
    builder.begin_node(contents.apex().view());
    for (rtype, mut rdatas) in CDS_TYPES.into_iter().zip(sync.records(contents.apex().view(), present, None))
    {
        if !rdatas.is_empty() {
            rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
            builder.begin_rrset(
                rtype,
                rtype,
                contents.apex_rrset(rtype).map_or(key_ttl, |rrset| rrset.ttl()),
            );
            rdatas.iter().for_each(|rdata| builder.push_record(|out| out.extend_from_slice(rdata)));
        }
    }
    replace_apex(contents, &builder.into_contents(contents.apex()), |covered, _| {
        !CDS_TYPES.contains(&covered)
    })
}

/// Returns the zone without denial chains and ZONEMD records, whose digest would no longer match,
/// and without their signatures. If the zone has no DNSKEY RRset, adds `dnskeys` (RDATA) with the
/// TTL `key_ttl`.
pub(crate) fn remove_chain_add_dnskeys(contents: &Contents, key_ttl: u32, dnskeys: &[Vec<u8>]) -> Contents {
    let mut builder = NodesBuilder::default();
    builder.begin_node(contents.apex().view());
    if contents.apex_rrset(Rtype::DNSKEY).is_none() {
        builder.begin_rrset(Rtype::DNSKEY, Rtype::DNSKEY, key_ttl);
        dnskeys.iter().for_each(|rdata| builder.push_record(|out| out.extend_from_slice(rdata)));
    }
    replace_apex(contents, &builder.into_contents(contents.apex()), |covered, _| covered != Rtype::ZONEMD)
}

/// Returns the zone without the records of denial chains and their signatures, and with the RRsets
/// of the only node of `new_apex` at the apex. `keep` selects which other RRsets remain. It is
/// called for each RRset at the apex, and for each RRSIG RRset at another name; data at other names
/// remain. Its arguments are the type of the RRset (for RRSIG, the covered type), and whether the
/// RRset is RRSIG.
pub(super) fn replace_apex(
    contents: &Contents,
    new_apex: &Contents,
    keep: impl Fn(Rtype, bool) -> bool,
) -> Contents {
    let apex = contents.apex().view();
    let mut builder = NodesBuilder::default();
    for node in contents.nodes() {
        let is_chain = |rtype| rtype != Rtype::RRSIG && is_generated_by_signing(rtype, node.name(), apex);
        let remains = |rrset: &Rrset<'_>| {
            let (covered, is_signature) = (rrset.covered(), rrset.rtype() == Rtype::RRSIG);
            !is_chain(covered)
                && (node.index() > 0 || keep(covered, is_signature))
                && (!is_signature || keep(covered, true))
        };
        let mut rrsets: BTreeMap<(Rtype, bool), Rrset<'_>> = BTreeMap::new();
        let key = |rrset: Rrset<'_>| (rrset.covered(), rrset.rtype() == Rtype::RRSIG);
        rrsets.extend(node.rrsets().filter(remains).map(|rrset| (key(rrset), rrset)));
        let added = new_apex.nodes().next().filter(|_| node.index() == 0);
        rrsets.extend(added.into_iter().flat_map(Node::rrsets).map(|rrset| (key(rrset), rrset)));
        if !rrsets.is_empty() {
            builder.begin_node(node.name());
            rrsets.into_values().for_each(|rrset| builder.push_rrset(rrset));
        }
    }
    Contents::from_parts(contents.apex(), vec![builder])
}
