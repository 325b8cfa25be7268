//! CDS and CDNSKEY records that would mislead the parent (RFC 7344 §4, RFC 8078 §4).

use super::*;
use crate::keys::ds_rdata;
use nonesuch_crypto::DigestType;

pub(super) const ROWS: &[Row] = &[
    row("CDS of another key", "RFC 7344 §4.1", Scope::Every, cds_of_another_key),
    row("CDNSKEY of another key", "RFC 7344 §4.1", Scope::Every, cdnskey_of_another_key),
    row("CDS of a key that does not sign the keys", "RFC 7344 §4.1", Scope::Every, cds_of_the_zsk),
    row("CDS of an algorithm without keys", "RFC 6840 §5.11", Scope::Every, cds_of_an_algorithm_without_keys),
    row("CDS and CDNSKEY of different keys", "RFC 7344 §4", Scope::Every, cds_and_cdnskey_differ),
    row("CDS asks for removal, CDNSKEY does not", "RFC 7344 §4", Scope::Every, removal_in_one),
    row("removal next to another record", "RFC 8078 §4", Scope::Every, removal_beside_another),
    row("removal with other fields", "RFC 8078 §4", Scope::Every, removal_with_other_fields),
    row("CDS away from the apex", "RFC 7344 §4.1", Scope::Every, |bench| {
        let text = cds_text(&bench.keys.keys()[0], DigestType::SHA256);
        with(bench, &[&format!("b CDS {text}")]);
        found("b.example.", Some(Rtype::CDS), FaultReason::UnexpectedRecords)
    }),
    row("CDNSKEY away from the apex", "RFC 7344 §4.1", Scope::Every, |bench| {
        let text = cdnskey_text(&bench.keys.keys()[0]);
        with(bench, &[&format!("b CDNSKEY {text}")]);
        found("b.example.", Some(Rtype::CDNSKEY), FaultReason::UnexpectedRecords)
    }),
];

#[test]
fn faults_of_what_the_parent_is_told() {
    plant_all(ROWS);
}

fn in_text(rtype: Rtype, octets: &[u8]) -> String {
    let mut out = Vec::new();
    rdata::push_text(rtype, octets, &mut out);
    String::from_utf8(out).unwrap()
}

fn cds_text(key: &KeyPair, digest: DigestType) -> String {
    in_text(Rtype::CDS, &ds_rdata(name("example.").view(), &key.dnskey_rdata(), digest).unwrap())
}

fn cdnskey_text(key: &KeyPair) -> String {
    in_text(Rtype::CDNSKEY, &key.dnskey_rdata())
}

fn stranger(bench: &Bench) -> KeyPair {
    key("example.", 257, key_of(bench).1, 3)
}

/// Signs the zone again with these records.
fn with(bench: &mut Bench, records: &[&str]) {
    let contents = zone(&format!("{RECORDS}\n{}", records.join("\n")));
    bench.sign_anew(&contents);
}

fn breaks(rtype: Rtype) -> Found {
    found("example.", Some(rtype), FaultReason::CdsBreaksDelegation)
}

fn cds_of_another_key(bench: &mut Bench) -> Found {
    let text = cds_text(&stranger(bench), DigestType::SHA256);
    with(bench, &[&format!("@ CDS {text}")]);
    breaks(Rtype::CDS)
}

fn cdnskey_of_another_key(bench: &mut Bench) -> Found {
    let text = cdnskey_text(&stranger(bench));
    with(bench, &[&format!("@ CDNSKEY {text}")]);
    breaks(Rtype::CDNSKEY)
}

fn cds_of_the_zsk(bench: &mut Bench) -> Found {
    with_keys(bench, [257, 256]);
    let zsk = bench.keys.keys().iter().find(|key| !key.is_sep()).unwrap();
    let text = cds_text(zsk, DigestType::SHA256);
    with(bench, &[&format!("@ CDS {text}")]);
    breaks(Rtype::CDS)
}

/// Validators would require signatures of that algorithm.
fn cds_of_an_algorithm_without_keys(bench: &mut Bench) -> Found {
    let other = key("example.", 257, bench.other_algorithm(), 3);
    let (ours, theirs) =
        (cds_text(&bench.keys.keys()[0], DigestType::SHA256), cds_text(&other, DigestType::SHA256));
    with(bench, &[&format!("@ CDS {ours}"), &format!("@ CDS {theirs}")]);
    breaks(Rtype::CDS)
}

/// Both RRsets have a key that signs; one of them has an additional key.
fn cds_and_cdnskey_differ(bench: &mut Bench) -> Found {
    let cds = cds_text(&bench.keys.keys()[0], DigestType::SHA256);
    let (key, other) = (cdnskey_text(&bench.keys.keys()[0]), cdnskey_text(&stranger(bench)));
    with(bench, &[&format!("@ CDS {cds}"), &format!("@ CDNSKEY {key}"), &format!("@ CDNSKEY {other}")]);
    found("example.", Some(Rtype::CDS), FaultReason::CdsCdnskeyMismatch)
}

fn removal_in_one(bench: &mut Bench) -> Found {
    let key = cdnskey_text(&bench.keys.keys()[0]);
    with(bench, &["@ CDS 0 0 0 00", &format!("@ CDNSKEY {key}")]);
    found("example.", Some(Rtype::CDS), FaultReason::CdsCdnskeyMismatch)
}

fn removal_beside_another(bench: &mut Bench) -> Found {
    let text = cds_text(&bench.keys.keys()[0], DigestType::SHA256);
    with(bench, &["@ CDS 0 0 0 00", &format!("@ CDS {text}")]);
    found("example.", Some(Rtype::CDS), FaultReason::InvalidDsDeletion)
}

fn removal_with_other_fields(bench: &mut Bench) -> Found {
    with(bench, &["@ CDNSKEY 257 3 0 AA=="]);
    found("example.", Some(Rtype::CDNSKEY), FaultReason::InvalidDsDeletion)
}
