//! From a zone, signed or not, and keys to what is served with denial made online.
//!
//! What is signed is verified first, as everywhere. Then all records of a chain are dropped: the server denies by records
//! of its own making, and NSEC3PARAM speaks of a chain that is not there (RFC 5155 §4). Signatures over data stay.

use super::keys::{OnlineKeyError, OnlineKeys};
use crate::denial::{DenialGeneration, Mapping, Mechanism, is_generated_by_signing};
use crate::inspect::{KEY_SET, SYNC, has_only_key_set, is_signed};
use crate::keys::{KeyPair, KeyRecord, SyncKeys};
use crate::verify::{
    FaultyZone, Report, Verified, VerifyInputs, VerifyOptions, into_verified_with, verify_key_set,
};
use nonesuch_proto::{MAX_NAME, Name, Rtype, rdata};
use nonesuch_zone::{Contents, Node, NodesBuilder, Rrset, ZoneFault, check_rrset};
use std::collections::BTreeMap;

/// Octets of RRSIG RDATA in front of the signer's name (RFC 4034 §3.1).
const RRSIG_FIXED: usize = 18;
/// Octets that the owner of an NSEC3 record has in front of the apex.
const NSEC3_LABEL: usize = 33;

/// Keys and choices for a zone that is signed when asked.
#[derive(Debug)]
pub struct OnlineOptions {
    /// A mechanism whose records are made when asked.
    pub mechanism: Mechanism,
    /// DNSKEY records to publish where the zone has none.
    pub records: Vec<KeyRecord>,
    /// The private keys that the server has.
    pub pairs: Vec<KeyPair>,
    /// Validity of signatures, in seconds.
    pub validity: u32,
    /// Keys whose CDS and CDNSKEY records are published or withdrawn, where the DNSKEY RRset comes without signatures.
    pub sync: SyncKeys,
}

/// Why a zone cannot be served with denial made online.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// Keys do not fit.
    #[error(transparent)]
    Keys(#[from] OnlineKeyError),
    /// The zone is signed, and not soundly; or its key set is.
    #[error(
        "the zone is not fit to be served: {}, the first: {}; `nonesuch zone verify FILE` lists all; mend the \
         zone, or sign it again with `nonesuch zone sign`",
        .0.fault_count(), first(.0)
    )]
    Unsound(Box<Report>),
    /// The mechanism makes its records when the zone is signed.
    #[error(
        "{0} makes its records when the zone is signed, not online: sign the zone with it and serve that"
    )]
    NotOnline(Mechanism),
    /// A zone with NSEC5 never denies by anything else.
    #[error(
        "the zone {0} is signed with NSEC5, and such a zone has no other denial: serve it with --nsec5-keys"
    )]
    Nsec5(Name),
    /// Hashed owner names do not fit below the apex.
    #[error(
        "the name {0} is too long for NSEC3, whose hashes take 33 octets in front of it: use another mechanism"
    )]
    ApexTooLong(Name),
    /// With the signatures that are generated online, an RRset fits no message.
    #[error(transparent)]
    Zone(#[from] ZoneFault),
}

fn first(report: &Report) -> String {
    report.faults.first().map_or_else(String::new, ToString::to_string)
}

/// A zone ready to be served with denial made online: verified as far as it is signed, without a chain, with its DNSKEY
/// RRset. Made by [`prepare`] alone.
#[derive(Debug)]
pub struct PreparedZone {
    contents: Contents,
    keys: OnlineKeys,
}

impl PreparedZone {
    /// The zone.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The keys.
    #[must_use]
    pub const fn keys(&self) -> &OnlineKeys {
        &self.keys
    }

    /// Whether the DNSKEY RRset came with signatures.
    #[must_use]
    pub fn has_signed_keys(&self) -> bool {
        has_signed_keys(&self.contents)
    }

    /// Gives away what answering needs.
    #[must_use]
    pub fn into_parts(self) -> (Contents, OnlineKeys) {
        (self.contents, self.keys)
    }
}

/// Prepares `contents`: a signed zone, which is verified; an unsigned one; or an unsigned one with a signed key set.
///
/// # Errors
/// Where the zone is not sound, keys do not fit it, nobody signs its DNSKEY RRset, or the mechanism cannot serve it.
pub fn prepare(
    contents: Contents,
    options: OnlineOptions,
    verify: &VerifyOptions,
) -> Result<PreparedZone, PrepareError> {
    check_mechanism(&contents, options.mechanism)?;
    let verified = verify_as_it_is(contents, verify, &VerifyInputs::default());
    let contents = verified.map_err(|faulty| PrepareError::Unsound(Box::new(faulty.report)))?;
    prepare_unverified(&contents, options)
}

/// As [`prepare`], of a zone that was not verified, or has faults and is to be served nevertheless.
///
/// # Errors
/// As [`prepare`], but for faults of the zone.
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
        strip(contents, ttl, &dnskeys)
    } else {
        strip(&with_sync_records(contents, ttl, &sync), ttl, &dnskeys)
    };
    check_sizes(&contents, &keys)?;
    Ok(PreparedZone { contents, keys })
}

/// The keys of a zone, as [`prepare`] takes them, of a zone that was prepared before: `dnskeys` is the RDATA of its DNSKEY
/// RRset, and `is_key_set_signed` says whether that came with signatures. `validity` is in seconds.
///
/// # Errors
/// Where keys do not fit the zone, cannot sign, or nobody signs its DNSKEY RRset.
pub fn prepare_keys(
    apex: &Name,
    dnskeys: &[Vec<u8>],
    is_key_set_signed: bool,
    pairs: Vec<KeyPair>,
    mechanism: Mechanism,
    validity: u32,
) -> Result<OnlineKeys, PrepareError> {
    let keys = OnlineKeys::new(apex, pairs, dnskeys, mechanism, validity)?;
    if !is_key_set_signed && !keys.signs_keys() {
        return Err(OnlineKeyError::KeysNotSigned { zone: apex.clone() }.into());
    }
    if let Some(algorithm) = keys.unsigned_algorithm(dnskeys).filter(|_| !is_key_set_signed) {
        return Err(OnlineKeyError::KeysNotSignedBy { zone: apex.clone(), algorithm }.into());
    }
    keys.try_all().map_err(PrepareError::Keys)?;
    Ok(keys)
}

/// Whether a message can hold each RRset with the signatures that the server adds to it.
fn check_sizes(contents: &Contents, keys: &OnlineKeys) -> Result<(), ZoneFault> {
    let apex = contents.apex().view();
    for node in contents.nodes() {
        // RFC 4035 §2.2: the NS RRset of a zone cut has no signature.
        let is_unsigned = |rrset: &Rrset<'_>| rrset.rtype() == Rtype::NS && node.index() > 0;
        let is_signed = |rrset: &Rrset<'_>| node.signatures(rrset.rtype()).is_some();
        for rrset in node.rrsets().filter(|rrset| rrset.rtype() != Rtype::RRSIG && !is_signed(rrset)) {
            let signers = keys.signers(node.name(), rrset.rtype()).iter().filter(|_| !is_unsigned(&rrset));
            let octets = signers.map(|signer| RRSIG_FIXED + apex.len() + keys.signature_octets(*signer));
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
    if crate::inspect::denial(contents).is_some_and(|denial| denial.mechanism.mapping() == Mapping::Vrf) {
        return Err(PrepareError::Nsec5(apex.clone()));
    }
    if mechanism.mapping() == Mapping::Sha1 && apex.view().len() + NSEC3_LABEL > MAX_NAME {
        return Err(PrepareError::ApexTooLong(apex.clone()));
    }
    Ok(())
}

/// Verifies a zone before [`prepare_unverified`]: the whole zone, or the key set alone where nothing else is signed.
///
/// # Errors
/// The zone where it has faults.
pub fn verify_as_it_is(
    contents: Contents,
    options: &VerifyOptions,
    aids: &VerifyInputs<'_>,
) -> Result<Contents, Box<FaultyZone>> {
    if is_signed(&contents) || !has_only_key_set(&contents) {
        return into_verified_with(contents, options, aids).map(Verified::into_contents);
    }
    let report = verify_key_set(&contents, &key_set(&contents), options);
    if report.is_sound() { Ok(contents) } else { Err(Box::new(FaultyZone { contents, report })) }
}

/// The apex with its key set alone; empty where that has no signatures.
fn key_set(contents: &Contents) -> Contents {
    let mut run = NodesBuilder::default();
    let apex = contents.nodes().next().filter(|apex| apex.signatures(Rtype::DNSKEY).is_some());
    if let Some(apex) = apex {
        run.begin_node(apex.name());
        apex.rrsets()
            .filter(|rrset| KEY_SET.contains(&rrset.covered()))
            .for_each(|rrset| run.push_rrset(rrset));
    }
    run.into_contents(contents.apex())
}

/// TTL and RDATA of the DNSKEY RRset: that of the zone, or else all of `records`, with the TTL of the SOA record.
fn dnskeys(contents: &Contents, records: &[KeyRecord]) -> (u32, Vec<Vec<u8>>) {
    if let Some(rrset) = contents.apex_rrset(Rtype::DNSKEY) {
        return (rrset.ttl(), rrset.rdatas().map(<[u8]>::to_vec).collect());
    }
    let mut rdatas: Vec<Vec<u8>> = records.iter().map(|record| record.rdata().to_vec()).collect();
    rdatas.sort_by(|a, b| rdata::cmp_canonical(Rtype::DNSKEY, a, b));
    rdatas.dedup();
    (contents.soa().map_or(0, |soa| soa.ttl), rdatas)
}

/// The zone with the CDS and CDNSKEY records that the times of its keys ask for, of the TTL of the DNSKEY RRset where it has none.
fn with_sync_records(contents: &Contents, key_ttl: u32, sync: &SyncKeys) -> Contents {
    let rdatas = |rrset: Rrset<'_>| rrset.rdatas().map(<[u8]>::to_vec).collect();
    let present = SYNC.map(|rtype| contents.apex_rrset(rtype).map(rdatas).unwrap_or_default());
    let mut run = NodesBuilder::default();
    run.begin_node(contents.apex().view());
    for (rtype, mut rdatas) in SYNC.into_iter().zip(sync.records(contents.apex().view(), present, None)) {
        if !rdatas.is_empty() {
            rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
            run.begin_rrset(rtype, rtype, contents.apex_rrset(rtype).map_or(key_ttl, |rrset| rrset.ttl()));
            rdatas.iter().for_each(|rdata| run.push_record(|out| out.extend_from_slice(rdata)));
        }
    }
    replace_apex(contents, &run.into_contents(contents.apex()), |covered, _| !SYNC.contains(&covered))
}

/// The zone without the records of a chain, without ZONEMD, whose digest would not fit, and without their signatures; with
/// the DNSKEY RRset.
pub(crate) fn strip(contents: &Contents, key_ttl: u32, dnskeys: &[Vec<u8>]) -> Contents {
    let mut run = NodesBuilder::default();
    run.begin_node(contents.apex().view());
    if contents.apex_rrset(Rtype::DNSKEY).is_none() {
        run.begin_rrset(Rtype::DNSKEY, Rtype::DNSKEY, key_ttl);
        dnskeys.iter().for_each(|rdata| run.push_record(|out| out.extend_from_slice(rdata)));
    }
    replace_apex(contents, &run.into_contents(contents.apex()), |covered, _| covered != Rtype::ZONEMD)
}

/// The zone without the records of a chain and their signatures; of its other RRsets those that `keep` wants, by type covered
/// and whether they are signatures; with the RRsets of `part`'s one node, the apex.
pub(super) fn replace_apex(
    contents: &Contents,
    part: &Contents,
    keep: impl Fn(Rtype, bool) -> bool,
) -> Contents {
    let apex = contents.apex().view();
    let mut run = NodesBuilder::default();
    for node in contents.nodes() {
        let is_chain = |rtype| rtype != Rtype::RRSIG && is_generated_by_signing(rtype, node.name(), apex);
        let wanted = |rrset: &Rrset<'_>| {
            let (covered, is_signature) = (rrset.covered(), rrset.rtype() == Rtype::RRSIG);
            !is_chain(covered)
                && (node.index() > 0 || keep(covered, is_signature))
                && (!is_signature || keep(covered, true))
        };
        let mut rrsets: BTreeMap<(Rtype, bool), Rrset<'_>> = BTreeMap::new();
        let key = |rrset: Rrset<'_>| (rrset.covered(), rrset.rtype() == Rtype::RRSIG);
        rrsets.extend(node.rrsets().filter(wanted).map(|rrset| (key(rrset), rrset)));
        let added = part.nodes().next().filter(|_| node.index() == 0);
        rrsets.extend(added.into_iter().flat_map(Node::rrsets).map(|rrset| (key(rrset), rrset)));
        if !rrsets.is_empty() {
            run.begin_node(node.name());
            rrsets.into_values().for_each(|rrset| run.push_rrset(rrset));
        }
    }
    Contents::from_parts(contents.apex(), vec![run])
}
