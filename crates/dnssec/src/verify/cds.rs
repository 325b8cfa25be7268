//! Checks the CDS and CDNSKEY RRsets, with which the zone informs its parent (RFC 7344 §4, RFC 8078
//! §4), and finds DNSSEC records of the apex or of the parent in the wrong place.

use super::keys::ZoneKeys;
use super::{FaultReason, Findings};
use crate::keys::{DELETE_CDNSKEY, DELETE_CDS, ZONE_KEY, ds_rdata};
use nonesuch_crypto::DigestType;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset};

/// Whether an RRset is at a name where it must not be.
///
/// - DS: never at the apex (RFC 4035 §2.4).
/// - DNSKEY: a zone key is at the apex of a zone (RFC 4034 §2.1.1).
/// - CDS and CDNSKEY: at the apex (RFC 7344 §4.1) or at a signalling name (RFC 9615 §2).
pub(crate) fn is_stray(node: Node<'_>, status: NameStatus, rrset: Rrset<'_>) -> bool {
    let away = node.index() > 0 && status == NameStatus::Authoritative;
    match rrset.rtype() {
        Rtype::DS => node.index() == 0,
        Rtype::DNSKEY => away && rrset.rdatas().any(is_zone_key),
        Rtype::CDS | Rtype::CDNSKEY => away && !is_signalling_name(node.name()),
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
    let mut is_plain = true;
    for (rtype, records, delete) in
        [(Rtype::CDS, &cds, DELETE_CDS), (Rtype::CDNSKEY, &cdnskeys, DELETE_CDNSKEY)]
    {
        match read_delete(records, delete) {
            Delete::No => {}
            Delete::Alone => is_plain = false,
            Delete::Faulty => {
                is_plain = false;
                findings.fault(apex, Some(rtype), FaultReason::ChildDelete);
            }
        }
    }
    let both = !cds.is_empty() && !cdnskeys.is_empty();
    if both && !agree(apex, &cds, &cdnskeys) {
        findings.fault(apex, Some(Rtype::CDS), FaultReason::ChildMismatch);
    }
    // If no key signs the DNSKEY RRset, only that fault is reported.
    if is_plain && !signing.is_empty() {
        check_named_keys(apex, keys, signing, &cds, &cdnskeys, findings);
    }
}

/// Like [`check`], before the zone is signed. `contents` has at least the apex of the zone.
/// `signers` contains the RDATA of the keys that sign its DNSKEY RRset.
pub(crate) fn check_unsigned(contents: &Contents, signers: &[Vec<u8>], findings: &mut Findings) {
    if contents.apex_rrset(Rtype::CDS).is_none() && contents.apex_rrset(Rtype::CDNSKEY).is_none() {
        return;
    }
    // Faults of the keys are not part of this check.
    let keys = ZoneKeys::read(contents, &mut Findings::default());
    let is_signer = |place: &usize| signers.iter().any(|rdata| rdata == keys.keys[*place].rdata);
    let signing: Vec<usize> = (0..keys.keys.len()).filter(is_signer).collect();
    check(contents, &keys, &signing, findings);
}

/// Checks that both RRsets refer to keys that sign the DNSKEY RRset.
fn check_named_keys(
    apex: NameRef<'_>,
    keys: &ZoneKeys<'_>,
    signing: &[usize],
    cds: &[&[u8]],
    cdnskeys: &[&[u8]],
    findings: &mut Findings,
) {
    // Signatures of an unusable key cannot be verified. Assume that such a key signs.
    let signs = |place: &usize| keys.keys[*place].public.is_none() || signing.contains(place);
    let places = (0..keys.keys.len()).filter(|place| signs(place) && !keys.keys[*place].revoked);
    let usable: Vec<&[u8]> = places.map(|place| keys.keys[place].rdata).collect();
    let judged = cds.iter().filter_map(|rdata| Some((*rdata.get(2)?, judge_cds(apex, rdata, &usable)?)));
    check_continuity(apex, Rtype::CDS, &judged.collect::<Vec<_>>(), findings);
    let judged = cdnskeys.iter().filter_map(|rdata| Some((*rdata.get(3)?, usable.contains(rdata))));
    check_continuity(apex, Rtype::CDNSKEY, &judged.collect::<Vec<_>>(), findings);
}

/// Whether an RRset requests the removal of all DS records.
enum Delete {
    No,
    Alone,
    Faulty,
}

/// RFC 8078 §4: the record with algorithm 0 is the only record of its RRset and has exactly these
/// fields.
fn read_delete(records: &[&[u8]], delete: [u8; 5]) -> Delete {
    let algorithm_at = if delete == DELETE_CDS { 2 } else { 3 };
    match records {
        [only] if **only == delete => Delete::Alone,
        _ if records.iter().any(|rdata| rdata.get(algorithm_at) == Some(&0)) => Delete::Faulty,
        _ => Delete::No,
    }
}

/// RFC 7344 §4: both RRsets refer to the same keys. If the digest type of a CDS record is unknown,
/// its tag and algorithm are compared.
fn agree(apex: NameRef<'_>, cds: &[&[u8]], cdnskeys: &[&[u8]]) -> bool {
    let names = |cds: &[u8], key: &[u8]| match (cds, key) {
        (cds, key) if *cds == DELETE_CDS || *key == DELETE_CDNSKEY => {
            *cds == DELETE_CDS && *key == DELETE_CDNSKEY
        }
        ([high, low, algorithm, digest_type, ..], key) => {
            match ds_rdata(apex, key, DigestType(*digest_type)) {
                Some(made) => made == cds,
                None => {
                    let tag = nonesuch_crypto::key_tag(key);
                    tag == u16::from_be_bytes([*high, *low]) && key.get(3) == Some(algorithm)
                }
            }
        }
        _ => false,
    };
    cds.iter().all(|record| cdnskeys.iter().any(|key| names(record, key)))
        && cdnskeys.iter().all(|key| cds.iter().any(|record| names(record, key)))
}

/// Whether a CDS record refers to one of the `usable` keys; `None` if its digest type is unknown.
fn judge_cds(apex: NameRef<'_>, cds: &[u8], usable: &[&[u8]]) -> Option<bool> {
    let digest_type = DigestType(*cds.get(3)?);
    let mut made = usable.iter().map(|key| ds_rdata(apex, key, digest_type)).peekable();
    made.peek()?.as_ref()?;
    Some(made.any(|made| made.as_deref() == Some(cds)))
}

/// RFC 7344 §4.1: a parent that applies the RRset must not break the delegation. Therefore at least
/// one record of each algorithm in it (RFC 6840 §5.11) must refer to a key that signs the DNSKEY
/// RRset. `named` has for each record its algorithm and whether it refers to such a key.
fn check_continuity(apex: NameRef<'_>, rtype: Rtype, named: &[(u8, bool)], findings: &mut Findings) {
    let is_broken = |(algorithm, _): &(u8, bool)| !named.contains(&(*algorithm, true));
    if named.iter().any(is_broken) {
        findings.fault(apex, Some(rtype), FaultReason::ChildBreaksDelegation);
    }
}
