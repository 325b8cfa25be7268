//! Checks the NSEC3 chains of a signed zone (RFC 5155 §7.1).

use super::chain::{self, ChainName, HashedName};
use super::{Hash, MAX_ITERATIONS, Nsec3, Nsec3Params, OPT_OUT_FLAG, SHA1};
use crate::denial::{Mechanism, push_bitmap_types};
use crate::verify::{FaultReason, Findings, VerifyWarning, Zone, check_bitmap};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::Node;
use std::cmp::Ordering;

/// An NSEC3 record.
struct Record<'z> {
    hash: Hash,
    node: Node<'z>,
    fields: Nsec3<'z>,
}

/// Checks the chain of each NSEC3PARAM record.
pub(crate) fn check(zone: &Zone<'_>, findings: &mut Findings) -> Mechanism {
    let apex = zone.contents.apex().view();
    let chains = read_parameters(zone, findings);
    let records = read_records(zone, &chains, findings);
    if chains.is_empty() {
        findings.fault(apex, Some(Rtype::NSEC3PARAM), FaultReason::NoNsec3Param);
    }
    let names = chain::chain_names(zone.contents, &zone.statuses, &zone.chain_nodes());
    for params in &chains {
        if params.iterations > MAX_ITERATIONS {
            findings.fault(apex, Some(Rtype::NSEC3PARAM), FaultReason::TooManyIterations(params.iterations));
            continue;
        }
        let chain_records: Vec<&Record<'_>> =
            records.iter().filter(|record| record.fields.has_params(params)).collect();
        let chain_records = check_links(zone, chain_records, findings);
        let expected = chain::hash_names(zone.contents, &names, params);
        compare_names(zone, &expected, &chain_records, findings);
    }
    let opt_out = records.iter().any(|record| record.fields.flags & OPT_OUT_FLAG != 0);
    if opt_out { Mechanism::Nsec3OptOut } else { Mechanism::Nsec3 }
}

/// The parameters of the chains. RFC 5155 §4.1.2: NSEC3PARAM records with flags are ignored.
fn read_parameters(zone: &Zone<'_>, findings: &mut Findings) -> Vec<Nsec3Params> {
    let mut chains = Vec::new();
    let rrset = zone.contents.apex_rrset(Rtype::NSEC3PARAM);
    for rdata in rrset.into_iter().flat_map(|rrset| rrset.rdatas()) {
        let Some((fields, [])) = Nsec3::parse_param(rdata) else {
            findings.fault(
                zone.contents.apex().view(),
                Some(Rtype::NSEC3PARAM),
                FaultReason::MalformedRecord,
            );
            continue;
        };
        let (algorithm, flags, iterations) = (fields.algorithm, fields.flags, fields.iterations);
        if algorithm != SHA1 || flags != 0 {
            findings.warn(VerifyWarning::UnusedNsec3Param { algorithm, flags });
            continue;
        }
        if iterations > 0 || !fields.salt.is_empty() {
            findings.warn(VerifyWarning::Nsec3Parameters { iterations, salt: fields.salt.len() as u8 });
        }
        chains.push(Nsec3Params { salt: fields.salt.to_vec(), iterations });
    }
    chains
}

/// All NSEC3 records of the zone, sorted by hash. Reports records that belong to no chain.
fn read_records<'z>(zone: &Zone<'z>, chains: &[Nsec3Params], findings: &mut Findings) -> Vec<Record<'z>> {
    let mut records = Vec::new();
    for node in zone.contents.nodes() {
        let Some(rrset) = node.rrset(Rtype::NSEC3) else { continue };
        findings.check_chain_ttl(node.name(), Rtype::NSEC3, zone.chain_ttl, rrset.ttl());
        let Some(hash) = chain::decode_owner(node.name(), zone.contents.apex().view()) else {
            findings.fault(node.name(), Some(Rtype::NSEC3), FaultReason::ChainExtra);
            continue;
        };
        for rdata in rrset.rdatas() {
            match check_record(rdata, chains) {
                Ok(fields) => records.push(Record { hash, node, fields }),
                Err(reason) => findings.fault(node.name(), Some(Rtype::NSEC3), reason),
            }
        }
    }
    // Base32hex keeps the order of the hashes, so the records are already sorted, except where the
    // order of upper and lower case differs.
    records.sort_by_key(|record| record.hash);
    records
}

fn check_record<'z>(rdata: &'z [u8], chains: &[Nsec3Params]) -> Result<Nsec3<'z>, FaultReason> {
    let fields = Nsec3::parse(rdata).ok_or(FaultReason::MalformedRecord)?;
    if fields.next.len() != size_of::<Hash>() {
        return Err(FaultReason::MalformedRecord);
    }
    if fields.flags & !OPT_OUT_FLAG != 0 {
        return Err(FaultReason::UnknownNsec3Flags(fields.flags));
    }
    if !chains.iter().any(|params| fields.has_params(params)) {
        return Err(FaultReason::Nsec3ParamMismatch);
    }
    Ok(fields)
}

/// Checks that each record has the next hash, and that the last record has the first hash. Returns
/// one record for each hash.
fn check_links<'r, 'z>(
    zone: &Zone<'z>,
    records: Vec<&'r Record<'z>>,
    findings: &mut Findings,
) -> Vec<&'r Record<'z>> {
    let mut unique: Vec<&Record<'z>> = Vec::with_capacity(records.len());
    for record in records {
        if unique.last().is_some_and(|last| last.hash == record.hash) {
            findings.fault(record.node.name(), Some(Rtype::NSEC3), FaultReason::MultipleRecords);
        } else {
            unique.push(record);
        }
    }
    for (position, record) in unique.iter().enumerate() {
        let next = unique[(position + 1) % unique.len()].hash;
        if record.fields.next != next {
            // An earlier check has verified the length.
            let found = record.fields.next.try_into().unwrap_or_default();
            let reason = FaultReason::ChainBroken {
                expected: hashed_name(zone, &next),
                found: hashed_name(zone, &found),
            };
            findings.fault(record.node.name(), Some(Rtype::NSEC3), reason);
        }
    }
    unique
}

/// The owner of the NSEC3 record for `hash`. If the apex is too long for NSEC3 records, the result
/// is the apex.
fn hashed_name(zone: &Zone<'_>, hash: &Hash) -> Name {
    let apex = zone.contents.apex();
    Name::prepend(&chain::label(hash), apex.view()).unwrap_or_else(|_| apex.clone())
}

/// Compares the names that should be in the chain with its records; both are sorted by hash.
fn compare_names(zone: &Zone<'_>, expected: &[HashedName], records: &[&Record<'_>], findings: &mut Findings) {
    let (mut next_name, mut next_record) = (0, 0);
    let mut types = Vec::new();
    loop {
        let order = match (expected.get(next_name), records.get(next_record)) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(name), Some(record)) => name.hash.cmp(&record.hash),
        };
        match order {
            Ordering::Less => {
                // The record before the hash covers the name. If no record precedes the hash, the
                // last record covers it.
                let covering =
                    next_record.checked_sub(1).map_or_else(|| records.last(), |before| records.get(before));
                report_missing(zone, &expected[next_name], covering.copied(), findings);
                next_name += 1;
            }
            Ordering::Equal => {
                check_types(zone, expected[next_name].name, records[next_record], &mut types, findings);
                next_name += 1;
                next_record += 1;
            }
            Ordering::Greater => {
                findings.fault(records[next_record].node.name(), Some(Rtype::NSEC3), FaultReason::ChainExtra);
                next_record += 1;
            }
        }
    }
}

/// Reports a name without a record. RFC 5155 §7.1: a chain may omit only insecure delegations and
/// the empty non-terminals that exist only because of them, and only if an opt-out record covers
/// them.
fn report_missing(
    zone: &Zone<'_>,
    missing: &HashedName,
    covering: Option<&Record<'_>>,
    findings: &mut Findings,
) {
    let is_covered_by_opt_out = covering.is_some_and(|record| record.fields.flags & OPT_OUT_FLAG != 0);
    let hashed = hashed_name(zone, &missing.hash);
    let reason = match (missing.name.is_required, is_covered_by_opt_out) {
        (false, true) => return,
        (true, true) => FaultReason::OptOutOverSecure { hashed },
        (_, false) => FaultReason::Nsec3Missing { hashed },
    };
    findings.fault(missing.name.name(zone.contents), Some(Rtype::NSEC3), reason);
}

fn check_types(
    zone: &Zone<'_>,
    name: ChainName,
    record: &Record<'_>,
    types: &mut Vec<Rtype>,
    findings: &mut Findings,
) {
    types.clear();
    if !name.is_empty_non_terminal() {
        let status = zone.statuses[name.node as usize];
        let node = zone.contents.node(name.node as usize);
        push_bitmap_types(zone.rtypes(node), status, types);
        chain::insert_rrsig(types, status);
    }
    check_bitmap(record.node, Rtype::NSEC3, types, record.fields.bitmap, findings);
}
