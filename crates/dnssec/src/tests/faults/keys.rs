//! Faults of the DNSKEY RRset (RFC 4034 §2, RFC 4035 §2.1 and §2.2, RFC 5011) and of misplaced key
//! records.

use super::*;
use crate::keys::{KeyTimes, REVOKE};
use nonesuch_crypto::KeyError;

pub(super) const ROWS: &[Row] = &[
    row("no DNSKEY", "RFC 4035 §2.1", Scope::Every, no_dnskey),
    row("no usable key", "RFC 4035 §5.2", Scope::Every, no_usable_key),
    row("malformed key", "RFC 4034 §2.1.4", Scope::Every, malformed_key),
    row("key altered", "RFC 4035 §5.3.1", Scope::Every, key_altered),
    row("signed with a key that is published nowhere", "RFC 4035 §2.1", Scope::Every, key_withdrawn),
    row("key of an algorithm that signs nothing", "RFC 4035 §2.2", Scope::Every, algorithm_signs_nothing),
    row("algorithm signs the keys alone", "RFC 4035 §2.2", Scope::Every, algorithm_signs_the_keys_alone),
    row("signed with a key that is no zone key", "RFC 4034 §2.1.1", Scope::Every, no_zone_key_signs),
    row("signed with a key of another protocol", "RFC 4034 §2.1.2", Scope::Every, other_protocol_signs),
    row("keys signed with a revoked key alone", "RFC 5011 §2.1", Scope::Every, revoked_key_alone),
    row("data signed with a revoked key alone", "RFC 5011 §2.1", Scope::Every, revoked_key_signs_data),
    row("zone key away from the apex", "RFC 4034 §2.1.1", Scope::Every, key_away_from_the_apex),
    row("DS at the apex", "RFC 4035 §2.4", Scope::Every, ds_at_the_apex),
];

#[test]
fn faults_of_keys() {
    plant_all(ROWS);
}

const APEX: &str = "example.";

/// Owner and type of every signed RRset.
fn signed_rrsets(contents: &Contents) -> Vec<(String, Rtype)> {
    let mut out = Vec::new();
    for node in contents.nodes() {
        let signatures = node.rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG);
        out.extend(signatures.map(|rrset| (node.name().to_string(), rrset.covered())));
    }
    out
}

/// The fault `reason` at every signed RRset that `which` selects.
fn found_at(contents: &Contents, reason: &FaultReason, which: impl Fn(Rtype) -> bool) -> Found {
    let rrsets = signed_rrsets(contents).into_iter().filter(|(_, rtype)| which(*rtype));
    rrsets.fold(Found::default(), |all, (owner, rtype)| all.and(&owner, Some(rtype), reason.clone()))
}

fn no_dnskey(bench: &mut Bench) -> Found {
    bench.remove(APEX, "DNSKEY");
    bench.remove_signatures(APEX, "DNSKEY");
    found(APEX, DNSKEY, FaultReason::NoDnskey)
}

/// The algorithm of the only key is not supported, and therefore no signature can be verified.
fn no_usable_key(bench: &mut Bench) -> Found {
    let (_, algorithm) = key_of(bench);
    let (from, to) = (format!(" 3 {} ", algorithm.0), " 3 5 ");
    bench.edit(APEX, "DNSKEY", |rdata| rdata.replacen(&from, to, 1));
    let contents = bench.contents();
    let rdata = contents.apex_rrset(Rtype::DNSKEY).unwrap().rdatas().next().unwrap();
    let tag = nonesuch_crypto::key_tag(rdata);
    let (old, _) = key_of(bench);
    for line in &mut bench.lines {
        *line = line.replacen(&format!(" {} ", algorithm.0), " 5 ", usize::from(line.contains("\tRRSIG\t")));
        *line = line.replace(&format!(" {old} {APEX} "), &format!(" {tag} {APEX} "));
    }
    let error = KeyError::UnknownAlgorithm(Algorithm(5));
    let mut expected =
        found(APEX, DNSKEY, FaultReason::NoUsableKey).warned(VerifyWarning::UnusableKey { tag, error });
    if bench.is_nsec5() {
        let signatures = bench.lines.iter().filter(|line| Bench::fields(line)[3] == "RRSIG").count() as u64;
        for (rtype, count) in [(Rtype::RRSIG, signatures), (Rtype::DNSKEY, 1)] {
            expected = expected.and(
                APEX,
                Some(rtype),
                FaultReason::NotAliasAlgorithm { algorithm: Algorithm(5), count },
            );
        }
    }
    expected
}

fn malformed_key(bench: &mut Bench) -> Found {
    let algorithm = bench.other_algorithm();
    bench.add(&format!("example. 3600 IN DNSKEY 256 3 {} AAAA", algorithm.0));
    bench.sign_again(APEX, Rtype::DNSKEY, untouched);
    let tag = nonesuch_crypto::key_tag(&[1, 0, 3, algorithm.0, 0, 0, 0]);
    let error = nonesuch_crypto::PublicKey::parse(algorithm, &[0; 3]).unwrap_err();
    found(APEX, DNSKEY, FaultReason::MalformedKey { tag, algorithm, error })
}

/// Another key replaces the key that signed. The signature is unchanged.
fn key_altered(bench: &mut Bench) -> Found {
    with_keys(bench, [257, 257]);
    let (tag, algorithm) = key_of(bench);
    let other = key(APEX, 256, algorithm, 3);
    let second = bench.keys.keys()[1].tag();
    // Both keys sign everything. The second key is replaced after signing.
    let line = other.key_file_text(&KeyTimes::default()).lines().last().unwrap().to_owned();
    let rdata = line.split_once("DNSKEY").unwrap().1.trim().to_owned();
    let public = rdatas(&bench.contents(), APEX, Rtype::DNSKEY);
    let of_second = public.iter().find(|text| *text != &text_of_key(&bench.keys.keys()[0])).unwrap().clone();
    bench.edit(APEX, "DNSKEY", |text| if text == of_second { rdata.clone() } else { text.to_owned() });
    let mut expected = found(APEX, DNSKEY, FaultReason::BadSignature { tag, algorithm }).and(
        APEX,
        DNSKEY,
        FaultReason::UnknownKey { tag: second, algorithm },
    );
    for (owner, rtype) in signed_rrsets(&bench.contents()) {
        if rtype != Rtype::DNSKEY {
            let reason = FaultReason::UnknownKey { tag: second, algorithm };
            expected =
                expected.warned(VerifyWarning::SurplusSignature { owner: name(&owner), rtype, reason });
        }
    }
    expected
}

fn text_of_key(key: &KeyPair) -> String {
    let mut out = Vec::new();
    rdata::push_text(Rtype::DNSKEY, &key.dnskey_rdata(), &mut out);
    String::from_utf8(out).unwrap()
}

/// The ZSK that signs all data is not in the DNSKEY RRset.
fn key_withdrawn(bench: &mut Bench) -> Found {
    with_keys(bench, [257, 256]);
    let zsk = bench.keys.keys().iter().find(|key| !key.is_sep()).unwrap();
    let (tag, algorithm, gone) = (zsk.tag(), zsk.algorithm(), text_of_key(zsk));
    bench.lines.retain(|line| !line.ends_with(&gone));
    bench.sign_again(APEX, Rtype::DNSKEY, untouched);
    found_at(&bench.contents(), &FaultReason::UnknownKey { tag, algorithm }, |rtype| rtype != Rtype::DNSKEY)
}

/// A key is published before any signature of its algorithm exists.
fn algorithm_signs_nothing(bench: &mut Bench) -> Found {
    let algorithm = bench.other_algorithm();
    let text = text_of_key(&key(APEX, 256, algorithm, 3));
    bench.add(&format!("example. 3600 IN DNSKEY {text}"));
    bench.sign_again(APEX, Rtype::DNSKEY, untouched);
    found_at(&bench.contents(), &FaultReason::MissingAlgorithm { algorithm }, |_| true)
}

fn algorithm_signs_the_keys_alone(bench: &mut Bench) -> Found {
    let algorithm = bench.other_algorithm();
    let other = key(APEX, 257, algorithm, 3);
    bench.add(&format!("example. 3600 IN DNSKEY {}", text_of_key(&other)));
    bench.sign_again(APEX, Rtype::DNSKEY, untouched);
    bench.sign_by(APEX, Rtype::DNSKEY, &other);
    found_at(&bench.contents(), &FaultReason::MissingAlgorithm { algorithm }, |rtype| rtype != Rtype::DNSKEY)
}

/// A key that must not sign is in the DNSKEY RRset and signs one RRset instead of the proper key.
fn unfit_key_signs(bench: &mut Bench, head: [u8; 3], flags: u16) -> Found {
    let (_, algorithm) = key_of(bench);
    let unfit = key(APEX, flags, algorithm, 2);
    let mut rdata = unfit.dnskey_rdata();
    rdata[..3].copy_from_slice(&head);
    let mut text = Vec::new();
    rdata::push_text(Rtype::DNSKEY, &rdata, &mut text);
    bench.add(&format!("example. 3600 IN DNSKEY {}", String::from_utf8(text).unwrap()));
    bench.sign_again(APEX, Rtype::DNSKEY, untouched);
    bench.remove_signatures("b.example.", "A");
    let tag = nonesuch_crypto::key_tag(&rdata);
    let contents = bench.contents();
    bench.sign_with(&contents, "b.example.", Rtype::A, &unfit, |fields| fields.tag = tag);
    found("b.example.", A, FaultReason::UnknownKey { tag, algorithm })
        .warned(VerifyWarning::NotAZoneKey { tag, flags })
}

fn no_zone_key_signs(bench: &mut Bench) -> Found {
    unfit_key_signs(bench, [0, 0, 3], 0)
}

fn other_protocol_signs(bench: &mut Bench) -> Found {
    unfit_key_signs(bench, [1, 0, 4], 256)
}

/// A zone with the revoked key 1 and with key 2.
fn with_revoked_key(bench: &mut Bench) -> KeyPair {
    with_keys(bench, [257 | REVOKE, 257]);
    key(APEX, 257 | REVOKE, key_of(bench).1, 1)
}

fn revoked_key_alone(bench: &mut Bench) -> Found {
    let revoked = with_revoked_key(bench);
    bench.remove_signatures(APEX, "DNSKEY");
    bench.sign_by(APEX, Rtype::DNSKEY, &revoked);
    found(APEX, DNSKEY, FaultReason::MissingAlgorithm { algorithm: revoked.algorithm() })
}

fn revoked_key_signs_data(bench: &mut Bench) -> Found {
    let revoked = with_revoked_key(bench);
    bench.remove_signatures("b.example.", "A");
    bench.sign_by("b.example.", Rtype::A, &revoked);
    found("b.example.", A, FaultReason::MissingAlgorithm { algorithm: revoked.algorithm() })
}

/// The zone with one more record, completely signed: only the place of the record is wrong.
fn misplaced(bench: &mut Bench, record: &str, owner: &str, rtype: Rtype) -> Found {
    let contents = zone(&format!("{RECORDS}\n{record}"));
    bench.sign_anew(&contents);
    found(owner, Some(rtype), FaultReason::UnexpectedRecords)
}

fn key_away_from_the_apex(bench: &mut Bench) -> Found {
    let record = format!("b DNSKEY {}", text_of_key(&bench.keys.keys()[0]));
    misplaced(bench, &record, "b.example.", Rtype::DNSKEY)
}

fn ds_at_the_apex(bench: &mut Bench) -> Found {
    let record = format!("@ DS 1 13 2 {}", "00".repeat(32));
    misplaced(bench, &record, APEX, Rtype::DS)
}
