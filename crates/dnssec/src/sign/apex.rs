//! Prepares the apex of the signed zone: SOA serial, DNSKEY, CDS, CDNSKEY, NSEC3PARAM and NSEC5KEY.

use super::rrsets::TtlAndRdatas;
use super::signers::{Signers, has_entry_point};
use super::{SignError, SignOptions, SignWarning, stray_records, zonemd};
use crate::denial::{Mapping, nsec5};
use crate::inspect::{KEY_SET, SYNC};
use crate::keys::{KeyPair, KeySet, Nsec5Key};
use crate::transition::{DataSigners, KeyState, SignedVersion, TransitionFault, transition};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Rtype, rdata};
use nonesuch_zone::{Contents, Node, NodesBuilder, ZoneRef};
use std::collections::BTreeMap;

/// The prepared apex of the signed zone, without signatures.
pub(super) struct Prepared<'k> {
    /// The apex node without the records that signing generates later, as contents with one node.
    pub(super) apex: Contents,
    /// The serial of the signed zone.
    pub(super) serial: u32,
    pub(super) signers: Signers<'k>,
    pub(super) warnings: Vec<SignWarning>,
}

/// Prepares the apex of the zone `contents` for a signed zone with the serial `serial`. Signatures
/// of keys that are not in `keys` are copied from the zones `signed`, which begin with the zone to
/// be signed.
pub(super) fn prepare<'k>(
    contents: &Contents,
    serial: u32,
    keys: &'k KeySet,
    options: &SignOptions<'_>,
    signed: &[&Contents],
) -> Result<Prepared<'k>, SignError> {
    let no_soa = || SignError::NoSoa(contents.apex().clone());
    let soa = contents.soa().ok_or_else(no_soa)?;
    let apex = contents.nodes().next().ok_or_else(no_soa)?;
    let mut rrsets = kept_rrsets(apex);
    let mut warnings = Vec::new();
    let soa_rdatas = rrsets.get_mut(&Rtype::SOA).map(|(_, rdatas)| rdatas);
    soa_rdatas.into_iter().flatten().for_each(|rdata| set_serial(rdata, serial));
    zonemd::prepare(&mut rrsets, options, soa.ttl, serial, &mut warnings);
    let key_ttl = |rrsets: &BTreeMap<Rtype, TtlAndRdatas>, rtype| {
        let in_zone = rrsets.get(&rtype).map(|(ttl, _)| *ttl);
        options.dnskey_ttl.or(in_zone).unwrap_or(soa.ttl)
    };
    let dnskeys = published(rrsets.get(&Rtype::DNSKEY), keys, options)?;
    let previous = options.previous.and_then(|previous| KeyState::of(previous.contents));
    let mut signers = Signers::new(keys, &dnskeys, &previous.map(|state| state.signing).unwrap_or_default());
    rrsets.insert(Rtype::DNSKEY, (key_ttl(&rrsets, Rtype::DNSKEY), dnskeys));
    let alone = Contents::from_parts(contents.apex(), vec![render(apex, key_set(&rrsets))]);
    warnings.extend(signers.copy_signatures(&alone, Rtype::DNSKEY, signed, options.now)?);
    let sync = &keys.timing().sync;
    if options.publish_cds || !sync.is_empty() {
        let entry_points = options.publish_cds.then(|| signers.entry_points());
        let present =
            SYNC.map(|rtype| rrsets.get(&rtype).map(|(_, rdatas)| rdatas.clone()).unwrap_or_default());
        let records = sync.records(contents.apex().view(), present, entry_points.as_deref());
        for (rtype, rdatas) in SYNC.into_iter().zip(records) {
            let ttl = key_ttl(&rrsets, rtype);
            if rdatas.is_empty() {
                rrsets.remove(&rtype)
            } else {
                rrsets.insert(rtype, (ttl, rdatas))
            };
        }
    }
    match options.mechanism.mapping() {
        Mapping::Itself => drop_nsec5_keys(&mut rrsets),
        Mapping::Sha1 => {
            drop_nsec5_keys(&mut rrsets);
            let mut rdata = Vec::new();
            options.nsec3.push_param_rdata(&mut rdata);
            // Only servers of the zone use NSEC3PARAM. BIND, Knot and ldns write it with a TTL of
            // 0.
            rrsets.insert(Rtype::NSEC3PARAM, (0, vec![rdata]));
        }
        Mapping::Vrf => insert_nsec5_keys(contents, &mut rrsets, options)?,
    }
    let apex = Contents::from_parts(contents.apex(), vec![render(apex, rrsets)]);
    for rtype in KEY_SET.into_iter().filter(|rtype| *rtype != Rtype::DNSKEY) {
        warnings.extend(signers.copy_signatures(&apex, rtype, signed, options.now)?);
    }
    if !has_entry_point(apex.apex_rrset(Rtype::DNSKEY)) {
        warnings.push(SignWarning::NoSecureEntryPoint);
    }
    warnings.extend(stray_records::check_apex(&apex, &signers.dnskey_signers()));
    Ok(Prepared { apex, serial, signers, warnings })
}

impl Prepared<'_> {
    /// Sets another serial. Not permitted for a zone with ZONEMD records, which contain the serial.
    pub(super) fn set_serial(&mut self, serial: u32) {
        self.apex = with_serial(&self.apex, serial);
        self.serial = serial;
    }

    /// Checks the transition from the zone `previous`, with the options `options`. Returns an error
    /// if it breaks validators, or warnings if the options allow that.
    pub(super) fn check_transition(
        &self,
        previous: ZoneRef<'_>,
        options: &SignOptions<'_>,
    ) -> Result<Vec<SignWarning>, SignError> {
        let state = KeyState::of(previous.head()).filter(|state| !state.is_expired(options.now));
        let Some(state) = state else { return Ok(Vec::new()) };
        let dnskeys = self.apex.apex_rrset(Rtype::DNSKEY).into_iter().flat_map(|rrset| rrset.rdatas());
        let next = KeyState {
            serial: self.serial,
            dnskeys: dnskeys.map(<[u8]>::to_vec).collect(),
            signing: self.signers.dnskey_signers(),
            denial: Some(options.mechanism.mapping()),
            expires: Some(options.expiration),
        };
        let data = DataSigners::Keys { apex: self.apex.apex(), keys: &self.signers.data_signers() };
        let before = SignedVersion { keys: &state, data: DataSigners::Zone(previous) };
        judge(transition(before, SignedVersion { keys: &next, data }, Some(options.now)), options)
    }
}

fn judge(faults: Vec<TransitionFault>, options: &SignOptions<'_>) -> Result<Vec<SignWarning>, SignError> {
    match faults.as_slice() {
        [] => Ok(Vec::new()),
        _ if options.allow_unsafe_transition => {
            Ok(faults.into_iter().map(SignWarning::UnsafeTransition).collect())
        }
        _ => Err(SignError::UnsafeTransition(faults)),
    }
}

/// The RRsets that KSKs sign.
fn key_set(rrsets: &BTreeMap<Rtype, TtlAndRdatas>) -> BTreeMap<Rtype, TtlAndRdatas> {
    rrsets.iter().filter(|(rtype, _)| KEY_SET.contains(rtype)).map(|(a, b)| (*a, b.clone())).collect()
}

/// RDATA of all DNSKEY records of the signed zone: those of the keys and those of the zone file.
fn published(
    present: Option<&TtlAndRdatas>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<Vec<Vec<u8>>, SignError> {
    let mut dnskeys: Vec<_> = keys.keys().iter().map(KeyPair::dnskey_rdata).collect();
    let timing = keys.timing();
    let passive = timing.passive.iter().map(|key| &key.record);
    let silent = keys.offline().iter().chain(passive).map(|record| record.rdata().to_vec());
    add_foreign(&silent.collect::<Vec<_>>(), keys, &mut dnskeys)?;
    if let Some((_, present)) = present.filter(|_| !options.drop_foreign_dnskeys) {
        let present = present.iter().filter(|rdata| !timing.withdrawn.contains(rdata)).cloned();
        add_foreign(&present.collect::<Vec<_>>(), keys, &mut dnskeys)?;
    }
    Ok(dnskeys)
}

fn kept_rrsets(apex: Node<'_>) -> BTreeMap<Rtype, TtlAndRdatas> {
    apex.rrsets()
        .filter(|rrset| !rrset.rtype().is_signature_or_chain())
        .map(|rrset| (rrset.rtype(), (rrset.ttl(), rrset.rdatas().map(<[u8]>::to_vec).collect())))
        .collect()
}

/// Sets the serial in SOA RDATA, the fifth field from the end (RFC 1035 §3.3.13). The caller has
/// checked the form of the RDATA.
fn set_serial(rdata: &mut [u8], serial: u32) {
    if let Some(place) = rdata.last_chunk_mut::<20>() {
        place[..4].copy_from_slice(&serial.to_be_bytes());
    }
}

/// The apex node with another serial.
fn with_serial(apex: &Contents, serial: u32) -> Contents {
    let mut run = NodesBuilder::default();
    run.begin_node(apex.node(0).name());
    for rrset in apex.node(0).rrsets() {
        if rrset.rtype() != Rtype::SOA {
            run.push_rrset(rrset);
            continue;
        }
        run.begin_rrset(Rtype::SOA, Rtype::SOA, rrset.ttl());
        for rdata in rrset.rdatas() {
            let mut rdata = rdata.to_vec();
            set_serial(&mut rdata, serial);
            run.push_record(|out| out.extend_from_slice(&rdata));
        }
    }
    Contents::from_nodes(apex.apex(), run)
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
    let keys = nsec5::prepare_apex(contents.apex(), chain, records)?;
    let ttl = rrsets.get(&Rtype::DNSKEY).map_or(0, |(ttl, _)| *ttl);
    rrsets.insert(Rtype::NSEC5KEY, (ttl, keys));
    Ok(())
}

/// Adds DNSKEY records of keys that are not in the key set. A key of the set must have the same
/// algorithm: RFC 4035 §2.2 requires signatures of every algorithm in the DNSKEY RRset.
fn add_foreign(present: &[Vec<u8>], keys: &KeySet, dnskeys: &mut Vec<Vec<u8>>) -> Result<(), SignError> {
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

fn render(apex: Node<'_>, rrsets: BTreeMap<Rtype, TtlAndRdatas>) -> NodesBuilder {
    let mut run = NodesBuilder::default();
    run.begin_node(apex.name());
    for (rtype, (ttl, mut rdatas)) in rrsets {
        rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        run.begin_rrset(rtype, rtype, ttl);
        for rdata in rdatas {
            run.push_record(|out| out.extend_from_slice(&rdata));
        }
    }
    run
}
