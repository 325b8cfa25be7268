//! Prepares the apex of the signed zone: SOA serial, DNSKEY, CDS, CDNSKEY, NSEC3PARAM and NSEC5KEY.

use super::key_assignment::{KeyAssignment, has_entry_point};
use super::rrsets::TtlAndRdatas;
use super::{SignError, SignOptions, SignWarning, stray_records, zonemd};
use crate::denial::{NameHash, nsec5};
use crate::inspect::{CDS_TYPES, KEY_SET};
use crate::keys::{KeyPair, KeySet, Nsec5Key};
use crate::transition::{DataSigners, KeyState, SignedVersion, TransitionFault, transition};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Rtype, rdata};
use nonesuch_zone::{Contents, Node, NodesBuilder, ZoneRef};
use std::collections::BTreeMap;

/// The prepared apex of the signed zone, and what was determined with it.
pub(super) struct PreparedApex<'k> {
    /// Contents with one node: the apex without RRSIG, NSEC, NSEC3 and NSEC5 records, which signing
    /// adds. ZONEMD records have a digest of zeros.
    pub(super) apex: Contents,
    /// The serial of the signed zone.
    pub(super) serial: u32,
    pub(super) assignment: KeyAssignment<'k>,
    pub(super) warnings: Vec<SignWarning>,
}

/// Prepares the apex of the zone `contents` for a signed zone with the serial `serial`. Signatures
/// over the key set by keys without private keys are copied from the zones `signature_sources`, of
/// which the first is the zone to be signed.
pub(super) fn prepare<'k>(
    contents: &Contents,
    serial: u32,
    keys: &'k KeySet,
    options: &SignOptions<'_>,
    signature_sources: &[&Contents],
) -> Result<PreparedApex<'k>, SignError> {
    let no_soa = || SignError::NoSoa(contents.apex().clone());
    let soa = contents.soa().ok_or_else(no_soa)?;
    let apex = contents.nodes().next().ok_or_else(no_soa)?;
    let mut rrsets = data_rrsets(apex);
    let mut warnings = Vec::new();
    let soa_rdatas = rrsets.get_mut(&Rtype::SOA).map(|(_, rdatas)| rdatas);
    soa_rdatas.into_iter().flatten().for_each(|rdata| set_serial(rdata, serial));
    zonemd::prepare(&mut rrsets, options, soa.ttl, serial, &mut warnings);
    let key_ttl = |rrsets: &BTreeMap<Rtype, TtlAndRdatas>, rtype| {
        let in_zone = rrsets.get(&rtype).map(|(ttl, _)| *ttl);
        options.dnskey_ttl.or(in_zone).unwrap_or(soa.ttl)
    };
    let dnskeys = published_dnskeys(rrsets.get(&Rtype::DNSKEY), keys, options)?;
    let previous = options.previous.and_then(|previous| KeyState::of(previous.contents));
    let mut assignment =
        KeyAssignment::new(keys, &dnskeys, &previous.map(|state| state.signing).unwrap_or_default());
    rrsets.insert(Rtype::DNSKEY, (key_ttl(&rrsets, Rtype::DNSKEY), dnskeys));
    let key_set_only = Contents::from_parts(contents.apex(), vec![build_node(apex, key_set_rrsets(&rrsets))]);
    warnings.extend(assignment.copy_signatures(
        &key_set_only,
        Rtype::DNSKEY,
        signature_sources,
        options.now,
    )?);
    let cds_schedule = &keys.timing().cds;
    if options.publish_cds || !cds_schedule.is_empty() {
        let entry_points = options.publish_cds.then(|| assignment.entry_points());
        let present =
            CDS_TYPES.map(|rtype| rrsets.get(&rtype).map(|(_, rdatas)| rdatas.clone()).unwrap_or_default());
        let records = cds_schedule.records(contents.apex().view(), present, entry_points.as_deref());
        for (rtype, rdatas) in CDS_TYPES.into_iter().zip(records) {
            let ttl = key_ttl(&rrsets, rtype);
            if rdatas.is_empty() {
                rrsets.remove(&rtype)
            } else {
                rrsets.insert(rtype, (ttl, rdatas))
            };
        }
    }
    match options.mechanism.name_hash() {
        NameHash::Unhashed => drop_nsec5_keys(&mut rrsets),
        NameHash::Sha1 => {
            drop_nsec5_keys(&mut rrsets);
            let mut rdata = Vec::new();
            options.nsec3.push_param_rdata(&mut rdata);
            // Only authoritative servers use NSEC3PARAM, so caches need not keep it. BIND, Knot DNS
            // and ldns write it with a TTL of 0 too.
            rrsets.insert(Rtype::NSEC3PARAM, (0, vec![rdata]));
        }
        NameHash::Vrf => insert_nsec5_keys(contents, &mut rrsets, options)?,
    }
    let apex = Contents::from_parts(contents.apex(), vec![build_node(apex, rrsets)]);
    for rtype in KEY_SET.into_iter().filter(|rtype| *rtype != Rtype::DNSKEY) {
        warnings.extend(assignment.copy_signatures(&apex, rtype, signature_sources, options.now)?);
    }
    if !has_entry_point(apex.apex_rrset(Rtype::DNSKEY)) {
        warnings.push(SignWarning::NoSecureEntryPoint);
    }
    warnings.extend(stray_records::check_apex(&apex, &assignment.dnskey_signer_rdatas()));
    Ok(PreparedApex { apex, serial, assignment, warnings })
}

impl PreparedApex<'_> {
    /// Sets another serial. The zone must not have ZONEMD records, which contain the serial.
    pub(super) fn set_serial(&mut self, serial: u32) {
        self.apex = with_serial(&self.apex, serial);
        self.serial = serial;
    }

    /// Checks whether the transition from the zone `previous` breaks validators that have cached
    /// its data. If it does, returns an error, or warnings if
    /// [`SignOptions::allow_unsafe_transition`] is set.
    pub(super) fn check_transition(
        &self,
        previous: ZoneRef<'_>,
        options: &SignOptions<'_>,
    ) -> Result<Vec<SignWarning>, SignError> {
        let old_keys = KeyState::of(previous.head()).filter(|state| !state.is_expired(options.now));
        let Some(old_keys) = old_keys else { return Ok(Vec::new()) };
        let dnskeys = self.apex.apex_rrset(Rtype::DNSKEY).into_iter().flat_map(|rrset| rrset.rdatas());
        let new_keys = KeyState {
            serial: self.serial,
            dnskeys: dnskeys.map(<[u8]>::to_vec).collect(),
            signing: self.assignment.dnskey_signer_rdatas(),
            denial: Some(options.mechanism.name_hash()),
            expires: Some(options.expiration),
        };
        let data = DataSigners::Keys { apex: self.apex.apex(), keys: &self.assignment.data_signer_rdatas() };
        let before = SignedVersion { keys: &old_keys, data: DataSigners::Zone(previous) };
        let after = SignedVersion { keys: &new_keys, data };
        faults_to_result(transition(before, after, Some(options.now)), options)
    }
}

/// An error if there are faults, or warnings if [`SignOptions::allow_unsafe_transition`] is set.
fn faults_to_result(
    faults: Vec<TransitionFault>,
    options: &SignOptions<'_>,
) -> Result<Vec<SignWarning>, SignError> {
    match faults.as_slice() {
        [] => Ok(Vec::new()),
        _ if options.allow_unsafe_transition => {
            Ok(faults.into_iter().map(SignWarning::UnsafeTransition).collect())
        }
        _ => Err(SignError::UnsafeTransition(faults)),
    }
}

/// The RRsets of the key set, which KSKs sign.
fn key_set_rrsets(rrsets: &BTreeMap<Rtype, TtlAndRdatas>) -> BTreeMap<Rtype, TtlAndRdatas> {
    rrsets
        .iter()
        .filter(|(rtype, _)| KEY_SET.contains(rtype))
        .map(|(rtype, rrset)| (*rtype, rrset.clone()))
        .collect()
}

/// RDATA of all DNSKEY records of the signed zone: those of `keys`, and those of the zone
/// (`present`) unless the options or the times of the keys remove them.
fn published_dnskeys(
    present: Option<&TtlAndRdatas>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<Vec<Vec<u8>>, SignError> {
    let mut dnskeys: Vec<_> = keys.keys().iter().map(KeyPair::dnskey_rdata).collect();
    let timing = keys.timing();
    let passive = timing.passive.iter().map(|key| &key.record);
    let not_signing = keys.offline().iter().chain(passive).map(|record| record.rdata().to_vec());
    add_dnskeys(&not_signing.collect::<Vec<_>>(), keys, &mut dnskeys)?;
    if let Some((_, present)) = present.filter(|_| !options.drop_foreign_dnskeys) {
        let present = present.iter().filter(|rdata| !timing.withdrawn.contains(rdata)).cloned();
        add_dnskeys(&present.collect::<Vec<_>>(), keys, &mut dnskeys)?;
    }
    Ok(dnskeys)
}

/// The RRsets of the apex that are not generated by signing: data, DNSKEY, CDS, CDNSKEY, ZONEMD and
/// NSEC5KEY.
fn data_rrsets(apex: Node<'_>) -> BTreeMap<Rtype, TtlAndRdatas> {
    apex.rrsets()
        .filter(|rrset| !rrset.rtype().is_signature_or_chain())
        .map(|rrset| (rrset.rtype(), (rrset.ttl(), rrset.rdatas().map(<[u8]>::to_vec).collect())))
        .collect()
}

/// Sets the serial in SOA RDATA, the fifth field from the end (RFC 1035 §3.3.13). The caller has
/// checked the form of the RDATA.
fn set_serial(rdata: &mut [u8], serial: u32) {
    if let Some(numbers) = rdata.last_chunk_mut::<20>() {
        numbers[..4].copy_from_slice(&serial.to_be_bytes());
    }
}

/// The apex node with another serial.
fn with_serial(apex: &Contents, serial: u32) -> Contents {
    let mut builder = NodesBuilder::default();
    builder.begin_node(apex.node(0).name());
    for rrset in apex.node(0).rrsets() {
        if rrset.rtype() != Rtype::SOA {
            builder.push_rrset(rrset);
            continue;
        }
        builder.begin_rrset(Rtype::SOA, Rtype::SOA, rrset.ttl());
        for rdata in rrset.rdatas() {
            let mut rdata = rdata.to_vec();
            set_serial(&mut rdata, serial);
            builder.push_record(|out| out.extend_from_slice(&rdata));
        }
    }
    Contents::from_nodes(apex.apex(), builder)
}

/// Removes NSEC5KEY records, as the signer removes all records of previous chains. The type number
/// is for private use, so records that are not valid keys are data of the zone and remain.
fn drop_nsec5_keys(rrsets: &mut BTreeMap<Rtype, TtlAndRdatas>) {
    let Some((_, rdatas)) = rrsets.get_mut(&Rtype::NSEC5KEY) else { return };
    let is_key = |rdata: &Vec<u8>| Nsec5Key::from_rdata(rdata).is_some_and(|key| key.public_key().is_ok());
    rdatas.retain(|rdata| !is_key(rdata));
    if rdatas.is_empty() {
        rrsets.remove(&Rtype::NSEC5KEY);
    }
}

/// Adds the NSEC5KEY RRset, with the TTL of the DNSKEY RRset.
fn insert_nsec5_keys(
    contents: &Contents,
    rrsets: &mut BTreeMap<Rtype, TtlAndRdatas>,
    options: &SignOptions<'_>,
) -> Result<(), SignError> {
    let Some(chain) = &options.nsec5 else { return Ok(()) };
    let records =
        rrsets.iter().flat_map(|(rtype, (_, rdatas))| rdatas.iter().map(|rdata| (*rtype, &**rdata)));
    let keys = nsec5::nsec5key_records(contents.apex(), chain, records)?;
    let ttl = rrsets.get(&Rtype::DNSKEY).map_or(0, |(ttl, _)| *ttl);
    rrsets.insert(Rtype::NSEC5KEY, (ttl, keys));
    Ok(())
}

/// Adds the DNSKEY records `present` of keys that do not sign to `dnskeys`. An error if no key of
/// `keys` has the same algorithm: RFC 4035 §2.2 requires signatures of every algorithm in the
/// DNSKEY RRset.
fn add_dnskeys(present: &[Vec<u8>], keys: &KeySet, dnskeys: &mut Vec<Vec<u8>>) -> Result<(), SignError> {
    for rdata in present {
        let algorithm = Algorithm(*rdata.get(3).ok_or(SignError::MalformedDnskey)?);
        if !keys.has_algorithm(algorithm) {
            return Err(SignError::ForeignKey { tag: key_tag(rdata), algorithm });
        }
        if !dnskeys.contains(rdata) {
            dnskeys.push(rdata.clone());
        }
    }
    Ok(())
}

/// Builds the apex node with these RRsets.
fn build_node(apex: Node<'_>, rrsets: BTreeMap<Rtype, TtlAndRdatas>) -> NodesBuilder {
    let mut builder = NodesBuilder::default();
    builder.begin_node(apex.name());
    for (rtype, (ttl, mut rdatas)) in rrsets {
        rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        builder.begin_rrset(rtype, rtype, ttl);
        for rdata in rdatas {
            builder.push_record(|out| out.extend_from_slice(&rdata));
        }
    }
    builder
}
