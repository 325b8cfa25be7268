//! The checks of signatures (RFC 4035 §5.3) and of their keys.

use super::*;
use crate::validate::RrsetStatus;

const HOST: &str = "host.example.";
const ADDRESS: &str = "192.0.2.1";

fn host() -> Reply {
    Reply::to(HOST, Rtype::A)
}

fn with(change: impl Fn(&mut Rrsig<'_>)) -> Reply {
    host().signed_as(Section::Answer, HOST, Rtype::A, ADDRESS, change)
}

#[test]
fn an_answer_with_a_good_signature_is_secure() {
    let reply = host().answer(HOST, Rtype::A, "192.0.2.2\n192.0.2.1\n192.0.2.3");
    let validation = reply.assert_secure(&ProvedAnswer::Answer);
    assert_eq!((validation.work.signatures, validation.rrsets.len()), (1, 1));
    assert_eq!(validation.rrsets[0].status, RrsetStatus::Secure);
    // Letter case, order and repetition are not signed.
    let upper = reply.clone().altered(is(HOST, Rtype::A), |record| record.owner = name("HOST.Example."));
    upper
        .altered(|record| record.rtype == Rtype::RRSIG, |record| record.owner = name("hOSt.example."))
        .assert_secure(&ProvedAnswer::Answer);
    let mut turned = reply;
    turned.records.reverse();
    turned.records.push(turned.records[1].clone());
    turned.assert_secure(&ProvedAnswer::Answer);
}

#[test]
fn each_field_of_a_signature_is_checked() {
    let covered = Rtype::A;
    with(|_| {}).assert_secure(&ProvedAnswer::Answer);
    host()
        .unsigned(Section::Answer, HOST, covered, ADDRESS)
        .assert_bogus(BogusReason::NoSignature { owner: name(HOST), rtype: covered });
    for signer in ["test.", "host.example.", "."] {
        let wrong = name(signer);
        let rdata = {
            let rdatas = [octets(covered, ADDRESS)];
            let key = key(signer, 257, Algorithm::ED25519, 1);
            sign_by(&key, &name(HOST), covered, &rdatas, |_| {})
        };
        host()
            .unsigned(Section::Answer, HOST, covered, ADDRESS)
            .raw(Section::Answer, &name(HOST), Rtype::RRSIG, &[rdata])
            .assert_bogus(BogusReason::WrongSigner { covered, signer: wrong });
    }
    // More labels than the owner has; the wildcard of a parent zone.
    for labels in [3, 0] {
        with(|fields| fields.labels = labels).assert_bogus(BogusReason::WrongLabels { covered, labels });
    }
    let tag = host().signer.tag();
    with(|fields| fields.tag = tag.wrapping_add(1)).assert_bogus(BogusReason::UnknownKey {
        covered,
        tag: tag.wrapping_add(1),
        algorithm: Algorithm::ED25519,
    });
    // The algorithm of another key, an alias number, and an unknown number.
    for algorithm in [Algorithm::ECDSAP256SHA256, Algorithm(231), Algorithm(99)] {
        with(|fields| fields.algorithm = algorithm).assert_bogus(BogusReason::UnknownKey {
            covered,
            tag,
            algorithm,
        });
    }
}

#[test]
fn times_are_compared_in_serial_arithmetic() {
    let covered = Rtype::A;
    let at = |inception, expiration| {
        with(move |fields| (fields.inception, fields.expiration) = (inception, expiration))
    };
    at(NOW, NOW).assert_secure(&ProvedAnswer::Answer);
    at(NOW + 1, NOW + 9).assert_bogus(BogusReason::NotYetValid { covered, inception: NOW + 1 });
    at(NOW - 9, NOW - 1).assert_bogus(BogusReason::Expired { covered, expiration: NOW - 1 });
    at(NOW + 9, NOW - 9).assert_bogus(BogusReason::EmptyPeriod(covered));
    let half = NOW.wrapping_add(0x8000_0000);
    at(NOW, half).assert_bogus(BogusReason::Expired { covered, expiration: half });
    let around = at(0xffff_ff00, 0x100);
    for (now, is_good) in [(0, true), (0xffff_ff80, true), (0x101, false), (0xffff_feff, false)] {
        let outcome = around.validate_with(&trust(&around.signer), now, &mut Budget::default());
        assert_eq!(outcome.status == SecurityStatus::Secure, is_good, "{now:x}");
    }
}

#[test]
fn every_octet_of_records_and_signatures_counts() {
    let reply = with(|_| {});
    let bad = || BogusReason::BadSignature { covered: Rtype::A, tag: reply.signer.tag() };
    for place in 0..4 {
        reply.clone().altered(is(HOST, Rtype::A), |record| record.rdata[place] ^= 1).assert_bogus(bad());
    }
    let signature = |record: &Record| record.rtype == Rtype::RRSIG;
    let length = reply.records[1].rdata.len();
    // Changes of the times (still valid), of the original TTL, and of the signature itself.
    for place in [7, 11, 15, length - 64, length - 1] {
        reply.clone().altered(signature, |record| record.rdata[place] ^= 1).assert_bogus(bad());
    }
    reply.clone().altered(signature, |record| record.rdata.truncate(length - 1)).assert_bogus(bad());
    reply.clone().unsigned(Section::Answer, HOST, Rtype::A, "192.0.2.9").assert_bogus(bad());
    let lone = reply.altered(signature, |record| record.rdata.truncate(17));
    lone.assert_bogus(BogusReason::NoSignature { owner: name(HOST), rtype: Rtype::A });
}

/// RFC 4035 §5.3.3.
#[test]
fn the_ttl_is_the_least_of_four() {
    let ttl = |reply: &Reply| reply.assert_secure(&ProvedAnswer::Answer).rrsets[0].ttl;
    assert_eq!(ttl(&with(|_| {})), TTL);
    assert_eq!(ttl(&with(|fields| fields.original_ttl = 60)), 60);
    assert_eq!(ttl(&with(|fields| fields.expiration = NOW + 5)), 5);
    assert_eq!(ttl(&with(|_| {}).altered(is(HOST, Rtype::A), |record| record.ttl = 30)), 30);
    assert_eq!(ttl(&with(|_| {}).altered(is(HOST, Rtype::RRSIG), |record| record.ttl = 20)), 20);
}

/// RFC 6840 §5.4 and §5.11: any valid signature is sufficient. The validator tries eight.
#[test]
fn one_good_signature_among_others_suffices() {
    let (covered, rdatas) = (Rtype::A, [octets(Rtype::A, ADDRESS)]);
    let base = host().unsigned(Section::Answer, HOST, covered, ADDRESS);
    let owner = name(HOST);
    let old = base.sign(&owner, covered, &rdatas, |fields| fields.expiration = NOW - 1);
    let good = base.sign(&owner, covered, &rdatas, |_| {});
    let behind = |count| {
        let reply = base.clone().raw(Section::Answer, &owner, Rtype::RRSIG, &vec![old.clone(); count]);
        reply.raw(Section::Answer, &owner, Rtype::RRSIG, std::slice::from_ref(&good))
    };
    behind(1).assert_secure(&ProvedAnswer::Answer);
    behind(7).assert_secure(&ProvedAnswer::Answer);
    behind(8).assert_bogus(BogusReason::Expired { covered, expiration: NOW - 1 });
}

/// DNSKEY RDATA with the same tag as `rdata`: the tag is a sum of words in any order.
fn same_tag(rdata: &[u8], first: usize) -> Vec<u8> {
    let mut other = rdata.to_vec();
    let (a, b) = (4 + 2 * first, 6 + 2 * first);
    (other[a], other[a + 1], other[b], other[b + 1]) = (rdata[b], rdata[b + 1], rdata[a], rdata[a + 1]);
    assert_ne!(other, rdata);
    other
}

fn status_with(reply: &Reply, keys: &[&[u8]]) -> SecurityStatus {
    let keys = TrustedKeys::new(&name("example."), keys.iter().copied(), &ValidationLimits::default());
    reply.validate_with(&keys, NOW, &mut Budget::default()).status
}

/// KeyTrap: of keys with the same tag, the validator tries two.
#[test]
fn two_keys_of_one_tag_are_tried() {
    let reply = with(|_| {});
    let real = reply.signer.dnskey_rdata();
    let (one, two) = (same_tag(&real, 0), same_tag(&real, 2));
    assert_eq!(status_with(&reply, &[&one, &real]), SecurityStatus::Secure);
    let bad = BogusReason::BadSignature { covered: Rtype::A, tag: reply.signer.tag() };
    assert_eq!(status_with(&reply, &[&one, &two, &real]), SecurityStatus::Bogus(bad));
}

/// RFC 4034 §2.1, RFC 5011 §2.1, RFC 4035 §5.2.
#[test]
fn keys_that_may_not_be_used_are_not() {
    let reply = with(|_| {});
    let real = reply.signer.dnskey_rdata();
    let altered = |place: usize, value: u8| {
        let mut rdata = real.clone();
        rdata[place] = value;
        rdata
    };
    let signed_by = |rdata: &[u8]| {
        let tag = nonesuch_crypto::key_tag(rdata);
        with(move |fields| fields.tag = tag)
    };
    assert_eq!(status_with(&reply, &[&real]), SecurityStatus::Secure);
    // A ZSK, and a key with reserved flags.
    for rdata in [altered(1, 0), altered(1, 0x03)] {
        assert_eq!(status_with(&signed_by(&rdata), &[&rdata]), SecurityStatus::Secure);
    }
    // Revoked; another protocol; not a zone key.
    let other = key("example.", 256, Algorithm::ED25519, 2).dnskey_rdata();
    for rdata in [altered(1, 0x81), altered(2, 2)] {
        let reply = signed_by(&rdata);
        assert_eq!(status_with(&reply, &[&rdata]), SecurityStatus::Bogus(BogusReason::NoUsableKey));
        let status = status_with(&reply, &[&rdata, &other]);
        assert!(matches!(status, SecurityStatus::Bogus(BogusReason::UnknownKey { .. })), "{status:?}");
    }
    let rdata = altered(0, 0);
    for keys in [&[rdata.as_slice()][..], &[&rdata, &other]] {
        let status = status_with(&signed_by(&rdata), keys);
        assert_eq!(status, SecurityStatus::Bogus(BogusReason::NoZoneKeyFlag));
    }
    assert_eq!(status_with(&reply, &[]), SecurityStatus::Indeterminate(IndeterminateReason::NoKeys));
    let unknown = altered(3, 99);
    let insecure = SecurityStatus::Insecure(InsecureReason::UnsupportedAlgorithms);
    assert_eq!(status_with(&reply, &[&unknown]), insecure);
    assert_eq!(status_with(&reply, &[&unknown, &real]), SecurityStatus::Secure);
    assert_eq!(
        status_with(&reply, &[&unknown, &real[..20]]),
        SecurityStatus::Bogus(BogusReason::NoUsableKey)
    );
}

#[test]
fn a_zone_of_more_than_32_keys_is_bogus() {
    let reply = with(|_| {});
    let real = reply.signer.dnskey_rdata();
    let others: Vec<Vec<u8>> = (0..32).map(|seed| [&[1, 0, 3, 15][..], &[seed; 32]].concat()).collect();
    let mut keys: Vec<&[u8]> = others.iter().take(31).map(Vec::as_slice).collect();
    keys.push(&real);
    assert_eq!(status_with(&reply, &keys), SecurityStatus::Secure);
    // A repeated record counts once.
    keys.push(&real);
    assert_eq!(status_with(&reply, &keys), SecurityStatus::Secure);
    keys.push(&others[31]);
    assert_eq!(status_with(&reply, &keys), SecurityStatus::Bogus(BogusReason::TooManyKeys(33)));
}

#[test]
fn every_algorithm_of_the_table_validates() {
    for entry in nonesuch_crypto::ALGORITHMS {
        let signer = Arc::new(KeyPair::generate(&name("example."), 257, entry.algorithm, None).unwrap());
        let reply = host().by(&signer).answer(HOST, Rtype::A, ADDRESS);
        reply.assert_secure(&ProvedAnswer::Answer);
        let forged = reply.altered(is(HOST, Rtype::A), |record| record.rdata[3] = 9);
        forged.assert_bogus(BogusReason::BadSignature { covered: Rtype::A, tag: signer.tag() });
    }
}

/// RFC 4035 §5.2: DS belongs to the parent side of the zone cut. The root has no parent.
#[test]
fn a_ds_rrset_at_the_apex_is_not_the_zones_to_sign() {
    Reply::to("s.example.", Rtype::DS)
        .answer("s.example.", Rtype::DS, DS)
        .assert_secure(&ProvedAnswer::Answer);
    Reply::to("example.", Rtype::DS).answer("example.", Rtype::DS, DS).assert_bogus(BogusReason::ApexDs);
}
