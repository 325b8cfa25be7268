//! Verifies the digests in the ZONEMD records of a zone (RFC 8976 §4).
//!
//! One record that verifies is sufficient; problems of other records are then warnings. If no
//! record verifies, the problems are faults. Records of unsupported schemes and hash algorithms are
//! ignored: a zone with only such records is treated like a zone without digests.

use super::{FaultReason, Findings, VerifyWarning};
use nonesuch_proto::Rtype;
use nonesuch_zone::zonemd::{MIN_DIGEST_OCTETS, Zonemd, ZonemdHash, digest};
use nonesuch_zone::{Contents, Rrset};

/// A record whose digest can be compared with that of the zone.
struct Candidate<'z> {
    hash: ZonemdHash,
    digest: &'z [u8],
}

/// Checks the ZONEMD RRset at the apex; `serial` is the serial of the SOA record.
pub(crate) fn check(contents: &Contents, serial: u32, findings: &mut Findings) {
    warn_of_strays(contents, findings);
    let Some(rrset) = contents.apex_rrset(Rtype::ZONEMD) else { return };
    let mut wrong = Vec::new();
    let candidates = candidates(rrset, serial, &mut wrong, findings);
    let hashes: Vec<ZonemdHash> = candidates.iter().map(|candidate| candidate.hash).collect();
    let computed = if hashes.is_empty() { Vec::new() } else { digest(contents, &hashes) };
    for (candidate, (hash, octets)) in candidates.iter().zip(computed) {
        if candidate.digest == octets {
            findings.zonemd.push(hash);
        } else if contents.has_mixed_ttls() {
            // The digest of the published records cannot be computed, because each RRset is stored
            // with its lowest TTL.
            wrong.push(FaultReason::ZonemdMixedTtls { hash });
        } else {
            wrong.push(FaultReason::ZonemdMismatch { hash });
        }
    }
    let verified = !findings.zonemd.is_empty();
    for reason in wrong {
        if verified {
            findings.warn(VerifyWarning::SpareZonemd { reason });
        } else {
            findings.fault(contents.apex().view(), Some(Rtype::ZONEMD), reason);
        }
    }
}

/// Returns the records whose digests must be computed. Faults of other records are added to
/// `wrong`.
fn candidates<'z>(
    rrset: Rrset<'z>,
    serial: u32,
    wrong: &mut Vec<FaultReason>,
    findings: &mut Findings,
) -> Vec<Candidate<'z>> {
    let records: Vec<Zonemd<'z>> = rrset.rdatas().filter_map(Zonemd::parse).collect();
    if records.len() < rrset.count() {
        wrong.push(FaultReason::MalformedRecord);
    }
    let mut candidates = Vec::new();
    let mut duplicates = Vec::new();
    for record in &records {
        let (scheme, number) = (record.scheme, record.hash);
        let Some(hash) = record.supported_hash() else {
            findings.warn(VerifyWarning::UnsupportedZonemd { scheme, hash: number });
            continue;
        };
        // RFC 8976 §2.2: if several records have the same scheme and hash algorithm, none of them
        // is used.
        if records.iter().filter(|other| (other.scheme, other.hash) == (scheme, number)).count() > 1 {
            if !duplicates.contains(&hash) {
                duplicates.push(hash);
                wrong.push(FaultReason::ZonemdDuplicate { hash });
            }
        } else if record.serial != serial {
            wrong.push(FaultReason::ZonemdSerial { found: record.serial, expected: serial });
        } else if record.digest.len() != hash.octets() || record.digest.len() < MIN_DIGEST_OCTETS {
            wrong.push(FaultReason::ZonemdLength { hash, found: record.digest.len() });
        } else {
            candidates.push(Candidate { hash, digest: record.digest });
        }
    }
    candidates
}

/// RFC 8976 §2: away from the apex ZONEMD has no meaning. Such a record is ordinary data.
fn warn_of_strays(contents: &Contents, findings: &mut Findings) {
    let mut strays = contents.nodes().skip(1).filter(|node| node.has(Rtype::ZONEMD));
    if let Some(first) = strays.next() {
        let first = first.name().to_name();
        findings.warn(VerifyWarning::StrayZonemd { first, count: 1 + strays.count() as u64 });
    }
}
