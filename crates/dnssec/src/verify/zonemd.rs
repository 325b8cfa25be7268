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
    warn_of_misplaced(contents, findings);
    let Some(rrset) = contents.apex_rrset(Rtype::ZONEMD) else { return };
    let mut reasons = Vec::new();
    let candidates = candidates(rrset, serial, &mut reasons, findings);
    let hashes: Vec<ZonemdHash> = candidates.iter().map(|candidate| candidate.hash).collect();
    let computed = if hashes.is_empty() { Vec::new() } else { digest(contents, &hashes) };
    for (candidate, (hash, octets)) in candidates.iter().zip(computed) {
        if candidate.digest == octets {
            findings.zonemd.push(hash);
        } else if contents.has_mixed_ttls() {
            // The digest of the published records cannot be computed, because each RRset is stored
            // with its lowest TTL.
            reasons.push(FaultReason::ZonemdMixedTtls { hash });
        } else {
            reasons.push(FaultReason::ZonemdMismatch { hash });
        }
    }
    let verified = !findings.zonemd.is_empty();
    for reason in reasons {
        if verified {
            findings.warn(VerifyWarning::UnusableZonemd { reason });
        } else {
            findings.fault(contents.apex().view(), Some(Rtype::ZONEMD), reason);
        }
    }
}

/// Returns the records whose digests must be compared with that of the zone. Adds the faults of
/// other records to `reasons`, and warnings of unsupported records to `findings`.
fn candidates<'z>(
    rrset: Rrset<'z>,
    serial: u32,
    reasons: &mut Vec<FaultReason>,
    findings: &mut Findings,
) -> Vec<Candidate<'z>> {
    let records: Vec<Zonemd<'z>> = rrset.rdatas().filter_map(Zonemd::parse).collect();
    if records.len() < rrset.count() {
        reasons.push(FaultReason::MalformedRecord);
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
                reasons.push(FaultReason::ZonemdDuplicate { hash });
            }
        } else if record.serial != serial {
            reasons.push(FaultReason::ZonemdSerial { found: record.serial, expected: serial });
        } else if record.digest.len() != hash.octets() || record.digest.len() < MIN_DIGEST_OCTETS {
            reasons.push(FaultReason::ZonemdLength { hash, found: record.digest.len() });
        } else {
            candidates.push(Candidate { hash, digest: record.digest });
        }
    }
    candidates
}

/// Warns of ZONEMD records at other names than the apex. RFC 8976 §2: they have no meaning, and are
/// ordinary data.
fn warn_of_misplaced(contents: &Contents, findings: &mut Findings) {
    let mut misplaced = contents.nodes().skip(1).filter(|node| node.has(Rtype::ZONEMD));
    if let Some(first) = misplaced.next() {
        let first = first.name().to_name();
        findings.warn(VerifyWarning::MisplacedZonemd { first, count: 1 + misplaced.count() as u64 });
    }
}
