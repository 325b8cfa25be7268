//! Checks the CDS and CDNSKEY RRsets, with which the zone informs its parent (RFC 7344 §4, RFC 8078
//! §4), and finds DNSSEC records of the apex or of the parent in the wrong place.

use super::keys::ZoneKeys;
use super::{FaultReason, Findings};
use crate::keys::{DELETE_CDNSKEY, DELETE_CDS, ZONE_KEY, ds_rdata};
use nonesuch_crypto::DigestType;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset};

/// Whether `rrset` is at a name where it must not be:
///
/// - DS at the apex (RFC 4035 §2.4);
/// - DNSKEY with a zone key at another name than the apex (RFC 4034 §2.1.1);
/// - CDS or CDNSKEY at a name that is neither the apex (RFC 7344 §4.1) nor a signalling name (RFC
///   9615 §2).
///
/// The last two apply only if the zone is authoritative for the name: records at or below a zone
/// cut or below a DNAME record are not reported. `status` is the status of `node`.
pub(crate) fn is_misplaced(node: Node<'_>, status: NameStatus, rrset: Rrset<'_>) -> bool {
    let is_below_apex = node.index() > 0 && status == NameStatus::Authoritative;
    match rrset.rtype() {
        Rtype::DS => node.index() == 0,
        Rtype::DNSKEY => is_below_apex && rrset.rdatas().any(is_zone_key),
        Rtype::CDS | Rtype::CDNSKEY => is_below_apex && !is_signalling_name(node.name()),
        _ => false,
    }
}

fn is_zone_key(rdata: &[u8]) -> bool {
    rdata.first_chunk().is_some_and(|flags| u16::from_be_bytes(*flags) & ZONE_KEY != 0)
}

/// Whether the name has the form `_dsboot.<child>._signal.<nameserver>` (RFC 9615 §4.1).
fn is_signalling_name(name: NameRef<'_>) -> bool {
    let mut labels = name.labels();
    labels.next().is_some_and(|label| label.eq_ignore_ascii_case(b"_dsboot"))
        && labels.any(|label| label.eq_ignore_ascii_case(b"_signal"))
}

/// Checks the CDS and CDNSKEY RRsets of the apex. `signing` contains the indices of the keys that
/// sign the DNSKEY RRset.
pub(super) fn check(contents: &Contents, keys: &ZoneKeys<'_>, signing: &[usize], findings: &mut Findings) {
    let rdatas = |rtype| -> Vec<&[u8]> {
        contents.apex_rrset(rtype).map_or_else(Vec::new, |rrset| rrset.rdatas().collect())
    };
    let (cds, cdnskeys) = (rdatas(Rtype::CDS), rdatas(Rtype::CDNSKEY));
    let apex = contents.apex().view();
    let mut has_deletion = false;
    for (rtype, records, deletion) in
        [(Rtype::CDS, &cds, DELETE_CDS), (Rtype::CDNSKEY, &cdnskeys, DELETE_CDNSKEY)]
    {
        match read_deletion(records, deletion) {
            DsDeletion::Absent => {}
            DsDeletion::Valid => has_deletion = true,
            DsDeletion::Invalid => {
                has_deletion = true;
                findings.fault(apex, Some(rtype), FaultReason::InvalidDsDeletion);
            }
        }
    }
    let both = !cds.is_empty() && !cdnskeys.is_empty();
    if both && !name_same_keys(apex, &cds, &cdnskeys) {
        findings.fault(apex, Some(Rtype::CDS), FaultReason::CdsCdnskeyMismatch);
    }
    // If no key signs the DNSKEY RRset, only that fault is reported.
    if !has_deletion && !signing.is_empty() {
        check_named_keys(apex, keys, signing, &cds, &cdnskeys, findings);
    }
}

/// Like [`check`], before the zone is signed. `contents` has at least the apex of the zone.
/// `signing_dnskeys` contains the RDATA of the keys that sign its DNSKEY RRset.
pub(crate) fn check_unsigned(contents: &Contents, signing_dnskeys: &[Vec<u8>], findings: &mut Findings) {
    if contents.apex_rrset(Rtype::CDS).is_none() && contents.apex_rrset(Rtype::CDNSKEY).is_none() {
        return;
    }
    // Faults of the keys are not part of this check.
    let keys = ZoneKeys::read(contents, &mut Findings::default());
    let is_signer = |index: &usize| signing_dnskeys.iter().any(|rdata| rdata == keys.keys[*index].rdata);
    let signing: Vec<usize> = (0..keys.keys.len()).filter(is_signer).collect();
    check(contents, &keys, &signing, findings);
}

/// Checks that the CDS RRset and the CDNSKEY RRset refer to keys that sign the DNSKEY RRset.
fn check_named_keys(
    apex: NameRef<'_>,
    keys: &ZoneKeys<'_>,
    signing: &[usize],
    cds: &[&[u8]],
    cdnskeys: &[&[u8]],
    findings: &mut Findings,
) {
    // Signatures of an unusable key cannot be verified. Assume that such a key signs.
    let signs = |index: &usize| keys.keys[*index].public.is_none() || signing.contains(index);
    let indexes = (0..keys.keys.len()).filter(|index| signs(index) && !keys.keys[*index].revoked);
    let signing_keys: Vec<&[u8]> = indexes.map(|index| keys.keys[index].rdata).collect();
    let records = cds
        .iter()
        .filter_map(|rdata| Some((*rdata.get(2)?, refers_to_signing_key(apex, rdata, &signing_keys)?)));
    check_continuity(apex, Rtype::CDS, &records.collect::<Vec<_>>(), findings);
    let records = cdnskeys.iter().filter_map(|rdata| Some((*rdata.get(3)?, signing_keys.contains(rdata))));
    check_continuity(apex, Rtype::CDNSKEY, &records.collect::<Vec<_>>(), findings);
}

/// Whether an RRset requests the removal of all DS records.
enum DsDeletion {
    /// No record has algorithm 0.
    Absent,
    /// The only record is the one that RFC 8078 §4 specifies.
    Valid,
    /// A record has algorithm 0, and the RRset is not as RFC 8078 §4 requires.
    Invalid,
}

/// RFC 8078 §4: the record with algorithm 0 is the only record of its RRset, and its RDATA is
/// exactly `deletion`.
fn read_deletion(records: &[&[u8]], deletion: [u8; 5]) -> DsDeletion {
    let algorithm_index = if deletion == DELETE_CDS { 2 } else { 3 };
    match records {
        [only] if **only == deletion => DsDeletion::Valid,
        _ if records.iter().any(|rdata| rdata.get(algorithm_index) == Some(&0)) => DsDeletion::Invalid,
        _ => DsDeletion::Absent,
    }
}

/// RFC 7344 §4: both RRsets refer to the same keys. If the digest type of a CDS record is unknown,
/// its tag and algorithm are compared.
fn name_same_keys(apex: NameRef<'_>, cds: &[&[u8]], cdnskeys: &[&[u8]]) -> bool {
    let matches = |cds: &[u8], key: &[u8]| match (cds, key) {
        (cds, key) if *cds == DELETE_CDS || *key == DELETE_CDNSKEY => {
            *cds == DELETE_CDS && *key == DELETE_CDNSKEY
        }
        ([high, low, algorithm, digest_type, ..], key) => {
            match ds_rdata(apex, key, DigestType(*digest_type)) {
                Some(expected) => expected == cds,
                None => {
                    let tag = nonesuch_crypto::key_tag(key);
                    tag == u16::from_be_bytes([*high, *low]) && key.get(3) == Some(algorithm)
                }
            }
        }
        _ => false,
    };
    cds.iter().all(|record| cdnskeys.iter().any(|key| matches(record, key)))
        && cdnskeys.iter().all(|key| cds.iter().any(|record| matches(record, key)))
}

/// Whether a CDS record refers to one of `signing_keys` (RDATA of DNSKEY records). `None` if its
/// digest type is unknown.
fn refers_to_signing_key(apex: NameRef<'_>, cds: &[u8], signing_keys: &[&[u8]]) -> Option<bool> {
    let digest_type = DigestType(*cds.get(3)?);
    let mut expected = signing_keys.iter().map(|key| ds_rdata(apex, key, digest_type)).peekable();
    expected.peek()?.as_ref()?;
    Some(expected.any(|expected| expected.as_deref() == Some(cds)))
}

/// RFC 7344 §4.1: a parent that applies the RRset must not break the delegation. Therefore at least
/// one record of each algorithm in it (RFC 6840 §5.11) must refer to a key that signs the DNSKEY
/// RRset. For each record, `records` has its algorithm and whether it refers to such a key.
fn check_continuity(apex: NameRef<'_>, rtype: Rtype, records: &[(u8, bool)], findings: &mut Findings) {
    let is_broken = |(algorithm, _): &(u8, bool)| !records.contains(&(*algorithm, true));
    if records.iter().any(is_broken) {
        findings.fault(apex, Some(rtype), FaultReason::CdsBreaksDelegation);
    }
}
