//! The apex of the signed zone: SOA serial, DNSKEY, CDS, CDNSKEY, NSEC3PARAM and NSEC5KEY.

use super::{SignError, SignOptions, SignWarning, refused, serial, zonemd};
use crate::denial::{Mapping, nsec5};
use crate::keys::{KeyPair, KeySet, Nsec5Key, cds_rdata};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Rtype, rdata};
use nonesuch_zone::{Contents, Node, Run};
use std::collections::BTreeMap;

/// TTL and RDATA of an RRset.
pub(super) type Records = (u32, Vec<Vec<u8>>);

/// The apex node with all that is not made while signing, as contents of one node; the serial of the signed zone.
pub(super) fn prepare(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<(Contents, u32, Vec<SignWarning>), SignError> {
    let no_soa = || SignError::NoSoa(contents.apex().clone());
    let soa = contents.soa().ok_or_else(no_soa)?;
    let apex = contents.nodes().next().ok_or_else(no_soa)?;
    let mut rrsets = kept_rrsets(apex);
    let (serial, warning) = serial::choose(options, soa.serial);
    let mut warnings: Vec<SignWarning> = warning.into_iter().collect();
    set_serial(&mut rrsets, serial);
    zonemd::prepare(&mut rrsets, options, (soa.ttl, serial), &mut warnings);
    let key_ttl = |rrsets: &BTreeMap<Rtype, Records>, rtype| {
        let in_zone = rrsets.get(&rtype).map(|(ttl, _)| *ttl);
        options.dnskey_ttl.or(in_zone).unwrap_or(soa.ttl)
    };
    let mut dnskeys: Vec<_> = keys.keys().iter().map(KeyPair::dnskey_rdata).collect();
    if let Some((_, present)) = rrsets.get(&Rtype::DNSKEY) {
        keep_foreign(present, keys, options, &mut dnskeys)?;
    }
    let mut made = vec![(Rtype::DNSKEY, dnskeys)];
    if options.publish_cds {
        made.push((Rtype::CDS, keys.entry_points().filter_map(cds_rdata).collect()));
        made.push((Rtype::CDNSKEY, keys.entry_points().map(KeyPair::dnskey_rdata).collect()));
    }
    for (rtype, rdatas) in made {
        let ttl = key_ttl(&rrsets, rtype);
        rrsets.insert(rtype, (ttl, rdatas));
    }
    match options.mechanism.mapping() {
        Mapping::Itself => drop_nsec5_keys(&mut rrsets),
        Mapping::Sha1 => {
            drop_nsec5_keys(&mut rrsets);
            let mut rdata = Vec::new();
            options.nsec3.push_param_rdata(&mut rdata);
            // Nobody but the zone's own servers asks for it: BIND, Knot and ldns write a TTL of 0.
            rrsets.insert(Rtype::NSEC3PARAM, (0, vec![rdata]));
        }
        Mapping::Vrf => insert_nsec5_keys(contents, &mut rrsets, options)?,
    }
    let contents = Contents::from_runs(contents.apex(), vec![render(apex, rrsets)]);
    warnings.extend(refused::at_apex(&contents, keys));
    Ok((contents, serial, warnings))
}

fn kept_rrsets(apex: Node<'_>) -> BTreeMap<Rtype, Records> {
    apex.rrsets()
        .filter(|rrset| !rrset.rtype().is_signature_or_chain())
        .map(|rrset| (rrset.rtype(), (rrset.ttl(), rrset.rdatas().map(<[u8]>::to_vec).collect())))
        .collect()
}

/// The serial stands in front of the last four fields (RFC 1035 §3.3.13); the form was checked before.
fn set_serial(rrsets: &mut BTreeMap<Rtype, Records>, serial: u32) {
    let soa = rrsets.get_mut(&Rtype::SOA).and_then(|(_, rdatas)| rdatas.first_mut());
    if let Some(place) = soa.and_then(|rdata| rdata.last_chunk_mut::<20>()) {
        place[..4].copy_from_slice(&serial.to_be_bytes());
    }
}

/// Drops NSEC5KEY records, as those of every chain are dropped. Their number is of private use: what is no such key is the
/// zone's own.
fn drop_nsec5_keys(rrsets: &mut BTreeMap<Rtype, Records>) {
    let Some((_, rdatas)) = rrsets.get_mut(&Rtype::NSEC5KEY) else { return };
    let is_key = |rdata: &Vec<u8>| Nsec5Key::from_rdata(rdata).is_some_and(|key| key.public_key().is_ok());
    rdatas.retain(|rdata| !is_key(rdata));
    if rdatas.is_empty() {
        rrsets.remove(&Rtype::NSEC5KEY);
    }
}

/// The NSEC5KEY RRset has the TTL of the DNSKEY RRset.
fn insert_nsec5_keys(
    contents: &Contents,
    rrsets: &mut BTreeMap<Rtype, Records>,
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

/// Keeps the zone's DNSKEY records that are not in the key set, where their algorithms sign: RFC 4035 §2.2 wants
/// signatures of every algorithm in the DNSKEY RRset.
fn keep_foreign(
    present: &[Vec<u8>],
    keys: &KeySet,
    options: &SignOptions<'_>,
    dnskeys: &mut Vec<Vec<u8>>,
) -> Result<(), SignError> {
    if options.drop_foreign_dnskeys {
        return Ok(());
    }
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

fn render(apex: Node<'_>, rrsets: BTreeMap<Rtype, Records>) -> Run {
    let mut run = Run::default();
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
