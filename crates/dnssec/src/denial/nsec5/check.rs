//! Checks the NSEC5 chain of a signed zone: its keys, records and links. Also checks that the zone
//! has no algorithm number that resolvers without NSEC5 know. `matching` matches names with
//! records.

use super::matching::{self, Chain, Record, ZoneVrfKey, hashed_name};
use super::requirements::{is_alias_algorithm, tag_and_algorithm};
use super::{Hash, Nsec5, Nsec5Evidence, OPT_OUT_FLAG, WILDCARD_FLAG, decode_owner, is_chain_owner};
use crate::denial::Mechanism;
use crate::keys::Nsec5Key;
use crate::rrsig::Rrsig;
use crate::verify::{FaultReason, Findings, Mode, VerifyWarning, Zone};
use nonesuch_crypto::Algorithm;
use nonesuch_proto::{Rtype, bitmap};
use nonesuch_zone::{Contents, Node};
use std::collections::BTreeMap;

/// Checks the chain. `mode` determines whether stored proofs are verified.
pub(crate) fn check(
    zone: &Zone<'_>,
    evidence: &Nsec5Evidence<'_>,
    mode: Mode,
    findings: &mut Findings,
) -> Mechanism {
    check_algorithm_numbers(zone, findings);
    check_misplaced_records(zone.contents, findings);
    let keys = read_keys(zone, findings);
    let records = read_records(zone, findings);
    let tag = check_key_tags(&records, &keys, findings);
    let opt_out = check_opt_out(&records, findings);
    check_links(zone, &records, findings);
    let key = tag.and_then(|tag| keys.iter().find(|key| key.nsec5key.tag() == tag));
    matching::check(&Chain { zone, records: &records, key, opt_out, mode }, evidence, findings);
    if opt_out { Mechanism::Nsec5OptOut } else { Mechanism::Nsec5 }
}

/// Checks that every DNSKEY, CDS, CDNSKEY and RRSIG record has an alias algorithm number. Reports
/// one fault for each type and number, at the first node.
fn check_algorithm_numbers(zone: &Zone<'_>, findings: &mut Findings) {
    let mut without_alias: BTreeMap<(Rtype, Algorithm), (u64, Node<'_>)> = BTreeMap::new();
    for node in zone.contents.nodes() {
        for rrset in node.rrsets() {
            let rtype = rrset.rtype();
            for rdata in rrset.rdatas() {
                let algorithm = match rtype {
                    Rtype::RRSIG => Rrsig::parse(rdata).map(|fields| fields.algorithm),
                    _ if node.index() == 0 => tag_and_algorithm(rtype, rdata).map(|(_, algorithm)| algorithm),
                    _ => None,
                };
                if let Some(algorithm) = algorithm.filter(|algorithm| !is_alias_algorithm(*algorithm)) {
                    without_alias.entry((rtype, algorithm)).or_insert((0, node)).0 += 1;
                }
            }
        }
    }
    for ((rtype, algorithm), (count, node)) in without_alias {
        findings.fault(node.name(), Some(rtype), FaultReason::NotAliasAlgorithm { algorithm, count });
    }
}

/// Reports NSEC5, NSEC5KEY and NSEC5PROOF records in the wrong place. The numbers of these types
/// are for private use, so records that do not have the form of NSEC5 may be data of the zone.
pub(crate) fn check_misplaced_records(contents: &Contents, findings: &mut Findings) {
    let apex = contents.apex().view();
    let is_nsec5key = |rdata: &[u8]| Nsec5Key::from_rdata(rdata).is_some_and(|key| key.public_key().is_ok());
    let is_nsec5 = |rdata: &[u8]| {
        Nsec5::parse(rdata)
            .is_some_and(|fields| fields.next.len() == size_of::<Hash>() && bitmap::is_valid(fields.bitmap))
    };
    let proof_rdata_lengths: Vec<usize> =
        nonesuch_crypto::vrf::VRF_ALGORITHMS.iter().map(|entry| 2 + entry.proof_octets).collect();
    for node in contents.nodes() {
        for rrset in node.rrsets() {
            let reason = match rrset.rtype() {
                Rtype::NSEC5 if !is_chain_owner(node.name(), apex) && rrset.rdatas().any(is_nsec5) => {
                    FaultReason::ChainExtra
                }
                Rtype::NSEC5KEY if node.index() > 0 && rrset.rdatas().any(is_nsec5key) => {
                    FaultReason::UnexpectedRecords
                }
                // Proofs occur only in responses.
                Rtype::NSEC5PROOF
                    if rrset.rdatas().any(|rdata| proof_rdata_lengths.contains(&rdata.len())) =>
                {
                    FaultReason::UnexpectedRecords
                }
                _ => continue,
            };
            findings.fault(node.name(), Some(rrset.rtype()), reason);
        }
    }
}

/// Returns the usable keys. Reports two keys with the same tag, even if the algorithm of one is
/// unknown: every denial of the zone is then bogus.
fn read_keys(zone: &Zone<'_>, findings: &mut Findings) -> Vec<ZoneVrfKey> {
    let apex = zone.contents.apex().view();
    let Some(rrset) = zone.contents.apex_rrset(Rtype::NSEC5KEY) else {
        findings.fault(apex, Some(Rtype::NSEC5KEY), FaultReason::NoNsec5Key);
        return Vec::new();
    };
    let (mut keys, mut tags, mut malformed) = (Vec::new(), Vec::new(), false);
    for rdata in rrset.rdatas() {
        let Some(key) = Nsec5Key::from_rdata(rdata) else {
            findings.fault(apex, Some(Rtype::NSEC5KEY), FaultReason::MalformedRecord);
            malformed = true;
            continue;
        };
        let tag = key.tag();
        if tags.contains(&tag) {
            findings.fault(apex, Some(Rtype::NSEC5KEY), FaultReason::SameNsec5Tag { tag });
        }
        tags.push(tag);
        match key.public_key() {
            Ok(public) => keys.push(ZoneVrfKey { nsec5key: key, public }),
            Err(_) if key.algorithm().entry().is_none() => {
                findings.warn(VerifyWarning::UnusableNsec5Key { tag, algorithm: key.algorithm() });
            }
            Err(error) => {
                findings.fault(apex, Some(Rtype::NSEC5KEY), FaultReason::MalformedNsec5Key { tag, error });
                malformed = true;
            }
        }
    }
    if keys.is_empty() && !malformed {
        findings.fault(apex, Some(Rtype::NSEC5KEY), FaultReason::NoUsableNsec5Key);
    }
    keys
}

/// The records of the chain, sorted by hash, one for each owner.
fn read_records<'z>(zone: &Zone<'z>, findings: &mut Findings) -> Vec<Record<'z>> {
    let mut records = Vec::new();
    for node in zone.contents.nodes() {
        let Some(rrset) = node.rrset(Rtype::NSEC5) else { continue };
        let Some(hash) = decode_owner(node.name(), zone.contents.apex().view()) else { continue };
        findings.check_chain_ttl(node.name(), Rtype::NSEC5, zone.chain_ttl, rrset.ttl());
        if rrset.count() > 1 {
            findings.fault(node.name(), Some(Rtype::NSEC5), FaultReason::MultipleRecords);
        }
        let Some(rdata) = rrset.rdatas().next() else { continue };
        let fields = Nsec5::parse(rdata).filter(|fields| bitmap::is_valid(fields.bitmap));
        let reason = match &fields {
            None => Some(FaultReason::MalformedRecord),
            Some(fields) if fields.next.len() != size_of::<Hash>() => {
                Some(FaultReason::Nsec5NextLength(fields.next.len() as u8))
            }
            Some(fields) if fields.flags & !(OPT_OUT_FLAG | WILDCARD_FLAG) != 0 => {
                Some(FaultReason::UnknownNsec5Flags(fields.flags))
            }
            Some(_) => None,
        };
        if let Some(reason) = reason {
            findings.fault(node.name(), Some(Rtype::NSEC5), reason);
        }
        records.push(Record { hash, node, fields });
    }
    // Base32hex keeps the order of octets (RFC 4648 §7), so the records are already sorted, except
    // where the order of upper and lower case differs.
    records.sort_by_key(|record| record.hash);
    records
}

/// Checks that all records have the same key, and that the zone has this key. Returns the tag of
/// the usable key that most records have; `None` if no record has the tag of a usable key.
fn check_key_tags(records: &[Record<'_>], keys: &[ZoneVrfKey], findings: &mut Findings) -> Option<u16> {
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    let tags = || records.iter().filter_map(|record| Some((record, record.fields?.tag)));
    for (_, tag) in tags() {
        *counts.entry(tag).or_default() += 1;
    }
    let has_key = |tag: u16| keys.iter().any(|key| key.nsec5key.tag() == tag);
    let chain_tag = counts.iter().filter(|(tag, _)| has_key(**tag)).max_by_key(|(_, count)| **count);
    let chain_tag = chain_tag.map(|(tag, _)| *tag);
    // If the zone has no usable key, another fault already reports this.
    for (record, tag) in tags().filter(|(_, tag)| !keys.is_empty() && Some(*tag) != chain_tag) {
        let reason = match chain_tag.filter(|_| has_key(tag)) {
            Some(chain) => FaultReason::OtherNsec5Key { tag, chain },
            None => FaultReason::UnknownNsec5Key { tag },
        };
        findings.fault(record.node.name(), Some(Rtype::NSEC5), reason);
    }
    chain_tag
}

/// Checks that all records of the chain or none have the opt-out flag; returns the value of the
/// majority, and `true` if both values are equally frequent.
fn check_opt_out(records: &[Record<'_>], findings: &mut Findings) -> bool {
    let flagged = records.iter().filter(|record| record.has_flag(OPT_OUT_FLAG)).count();
    let readable = records.iter().filter(|record| record.fields.is_some());
    let opt_out = flagged > 0 && 2 * flagged >= readable.clone().count();
    for record in readable.filter(|record| record.has_flag(OPT_OUT_FLAG) != opt_out) {
        findings.fault(record.node.name(), Some(Rtype::NSEC5), FaultReason::MixedOptOut);
    }
    opt_out
}

/// Checks that each record has the next hash, and that the last record has the first hash.
fn check_links(zone: &Zone<'_>, records: &[Record<'_>], findings: &mut Findings) {
    let nexts = records.iter().cycle().skip(1);
    for (record, next) in records.iter().zip(nexts) {
        let Some(found) = record.fields.and_then(|fields| Hash::try_from(fields.next).ok()) else { continue };
        if found != next.hash {
            let (expected, found) = (hashed_name(zone, &next.hash), hashed_name(zone, &found));
            findings.fault(
                record.node.name(),
                Some(Rtype::NSEC5),
                FaultReason::ChainBroken { expected, found },
            );
        }
    }
}
