//! Further properties of a report: warnings, modes, order, and unsigned zones.

use super::*;
use crate::keys::{KeyTimes, ds_rdata};
use crate::verify::{Mode, into_verified};
use nonesuch_crypto::{DigestType, KeyError};

/// A sound zone, signed with one key of Ed25519.
fn bench(mechanism: Mechanism) -> Bench {
    control(number_for(Algorithm::ED25519, mechanism), mechanism)
}

#[test]
fn the_control_is_sound_in_every_mechanism() {
    for mechanism in ALL_MECHANISMS {
        let report = bench(mechanism).report();
        assert_eq!((report.faults, report.warnings), (vec![], vec![]));
        assert_eq!(report.mechanism, Some(mechanism));
    }
}

#[test]
fn signing_again_by_hand_is_sound() {
    let mut bench = bench(Mechanism::Nsec);
    bench.sign_again("b.example.", Rtype::A, untouched);
    bench.sign_again("*.w.example.", Rtype::NSEC, untouched);
    bench.assert_faults(&[]);
}

#[test]
fn spare_signatures_are_warned_of() {
    let mut bench = bench(Mechanism::Nsec);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.tag ^= 1);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.expiration = NOW - 1);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.inception = NOW + 1);
    let report = report(&bench.contents());
    assert_eq!(report.faults, []);
    let spare = |warning: &&VerifyWarning| matches!(warning, VerifyWarning::SurplusSignature { .. });
    assert_eq!((report.warnings.len(), report.warnings.iter().filter(spare).count()), (3, 3));
}

#[test]
fn chain_ttl_is_a_warning() {
    for mechanism in ALL_MECHANISMS {
        let mut bench = bench(mechanism);
        let rtype = bench.chain_type();
        let owners: Vec<String> = bench
            .contents()
            .nodes()
            .filter(|node| node.has(rtype))
            .map(|node| node.name().to_string())
            .collect();
        for owner in &owners {
            let ours = |line: &String| Bench::is(line, owner, &rtype.to_string());
            for line in bench.lines.iter_mut().filter(|line| ours(line)) {
                *line = line.replacen("\t900\t", "\t3600\t", 1);
            }
            bench.sign_again(owner, rtype, untouched);
        }
        let report = bench.report();
        assert_eq!(report.faults, []);
        let first = name(&owners[0]);
        let count = owners.len() as u64;
        assert_eq!(
            report.warnings,
            [VerifyWarning::ChainTtl { rtype, expected: 900, found: 3600, count, first }]
        );
    }
}

#[test]
fn salt_and_iterations_are_warned_of() {
    let mut options = options(Mechanism::Nsec3);
    options.nsec3 = Nsec3Params { salt: vec![1, 2, 3], iterations: 5 };
    let signed = sign(&zone(RECORDS), &csk_of("example."), &options).unwrap();
    let report = report(signed.contents());
    assert_eq!(report.faults, []);
    assert_eq!(report.warnings, [VerifyWarning::Nsec3Parameters { iterations: 5, salt: 3 }]);
}

#[test]
fn an_unsigned_zone_is_sound_unless_an_anchor_says_otherwise() {
    let contents = zone(RECORDS);
    let verified = into_verified(contents.clone(), &VerifyOptions::default()).unwrap();
    assert_eq!((verified.mechanism(), verified.report().signatures_verified), (None, 0));
    let anchors = vec![Anchor::Dnskey(csk_of("example.").keys()[0].dnskey_rdata())];
    let faulty = into_verified(contents, &VerifyOptions { anchors, ..VerifyOptions::default() }).unwrap_err();
    assert_eq!(faulty.report.faults[0].reason, FaultReason::NoDnskey);
}

#[test]
fn an_unknown_algorithm_beside_a_known_one_is_a_warning() {
    let mut bench = bench(Mechanism::Nsec);
    bench.add("example. 3600 IN DNSKEY 256 3 5 AwEAAQ==");
    bench.sign_again("example.", Rtype::DNSKEY, untouched);
    let report = report(&bench.contents());
    assert_eq!(report.faults, []);
    assert!(matches!(
        report.warnings[..],
        [VerifyWarning::UnusableKey { error: KeyError::UnknownAlgorithm(Algorithm(5)), .. }]
    ));
}

/// RSA keys of 512 bits are treated like an unknown algorithm: there is no fault if the zone also
/// has a usable key.
#[test]
fn a_short_rsa_key_beside_a_good_one_is_a_warning() {
    let mut bench = bench(Mechanism::Nsec);
    let public = [&[3, 1, 0, 1][..], &[0xff; 64]].concat();
    bench.add(&format!("example. 3600 IN DNSKEY 256 3 8 {}", data_encoding::BASE64.encode(&public)));
    bench.sign_again("example.", Rtype::DNSKEY, untouched);
    let report = report(&bench.contents());
    assert_eq!(report.faults, []);
    let expected = KeyError::ModulusBits { bits: 512 };
    assert!(
        matches!(&report.warnings[..], [VerifyWarning::UnusableKey { error, .. }] if *error == expected),
        "{:?}",
        report.warnings
    );
}

#[test]
fn a_key_that_is_no_zone_key_is_left_out() {
    let mut bench = bench(Mechanism::Nsec);
    let host = key("example.", 0, Algorithm::ECDSAP256SHA256, 8);
    bench.add(&host.key_file_text(&KeyTimes::default()).lines().last().unwrap().replace("\t", " "));
    bench.sign_again("example.", Rtype::DNSKEY, untouched);
    let report = report(&bench.contents());
    assert_eq!(report.faults, []);
    assert_eq!(report.warnings, [VerifyWarning::NotAZoneKey { tag: host.tag(), flags: 0 }]);
}

#[test]
fn structural_mode_leaves_the_mathematics_out_and_nothing_else() {
    let structural = |contents: &Contents| {
        verify(
            contents,
            &VerifyOptions { now: Some(NOW), mode: Mode::Structural, ..VerifyOptions::default() },
        )
    };
    let mut bench = bench(Mechanism::Nsec3);
    bench.edit("b.example.", "A", |_| "192.0.2.2".to_owned());
    let report = structural(&bench.contents());
    assert_eq!((report.has_no_faults(), report.signatures_verified), (true, 0));
    bench.remove_signatures("b.example.", "A");
    let owner = hashed("a.example.");
    bench.edit(&owner, "NSEC3", |rdata| rdata.replace(" A ", " A MX "));
    let reasons: Vec<FaultReason> =
        structural(&bench.contents()).faults.into_iter().map(|fault| fault.reason).collect();
    assert!(
        reasons.contains(&FaultReason::NoSignature) && reasons.contains(&FaultReason::BitmapExtra(Rtype::MX))
    );
}

#[test]
fn all_faults_are_reported_in_canonical_order() {
    let mut bench = bench(Mechanism::Nsec);
    for owner in ["x.ent.example.", "a.example.", "*.w.example.", "b.example."] {
        bench.remove_signatures(owner, "A");
    }
    bench.assert_faults(&[
        ("a.example.", A, FaultReason::NoSignature),
        ("b.example.", A, FaultReason::NoSignature),
        ("x.ent.example.", A, FaultReason::NoSignature),
        ("*.w.example.", A, FaultReason::NoSignature),
    ]);
    let shown: Vec<String> = bench.faults().iter().map(Fault::to_string).collect();
    assert_eq!(shown[0], format!("a.example. A: {}", FaultReason::NoSignature));
}

#[test]
fn no_soa() {
    let run = || {
        let mut run = NodesBuilder::default();
        run.begin_node(name("example.").view());
        run.begin_rrset(Rtype::NS, Rtype::NS, 1);
        run.push_record(|out| out.push(0));
        run
    };
    let contents = Contents::from_parts(&name("example."), vec![run()]);
    assert_eq!(report(&contents).faults[0].reason, FaultReason::NoSoa);
    let error = sign(&contents, &csk_of("example."), &options(Mechanism::Nsec)).unwrap_err();
    assert_eq!(error, SignError::NoSoa(name("example.")));
}

#[test]
fn two_nsec3_chains_are_checked_each_by_itself() {
    let mut bench = bench(Mechanism::Nsec3);
    let mut options = options(Mechanism::Nsec3);
    options.nsec3 = Nsec3Params { salt: vec![0xab], iterations: 2 };
    let other = sign(&zone(RECORDS), &bench.keys, &options).unwrap();
    let other = text(other.contents());
    let of_chain = |line: &&str| Bench::fields(line)[3] == "NSEC3" || line.contains("\tRRSIG\tNSEC3 ");
    let chain: Vec<String> = other.lines().filter(of_chain).map(str::to_owned).collect();
    bench.lines.extend(chain.iter().cloned());
    bench.add("example. 0 IN NSEC3PARAM 1 0 2 AB");
    bench.sign_again("example.", Rtype::NSEC3PARAM, untouched);
    bench.assert_faults(&[]);
    // A missing record of the second chain is reported, although the first chain is complete.
    let dropped = Bench::fields(&chain[0])[0].to_owned();
    bench.remove(&dropped, "NSEC3");
    bench.remove_signatures(&dropped, "NSEC3");
    let reasons: Vec<FaultReason> = bench.faults().into_iter().map(|fault| fault.reason).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().any(|reason| matches!(reason, FaultReason::ChainBroken { .. })), "{reasons:?}");
    let missing = FaultReason::Nsec3Missing { hashed: name(&dropped) };
    assert!(reasons.contains(&missing), "{reasons:?}");
}

#[test]
fn anchors() {
    let bench = bench(Mechanism::Nsec);
    let rdata = bench.keys.keys()[0].dnskey_rdata();
    let apex = name("example.");
    let ds = |digest_type| Anchor::Ds(ds_rdata(apex.view(), &rdata, digest_type).unwrap());
    let with = |anchors| {
        let options = VerifyOptions { now: Some(NOW), anchors, ..VerifyOptions::default() };
        verify(&bench.contents(), &options)
    };
    for anchor in
        [ds(DigestType::SHA1), ds(DigestType::SHA256), ds(DigestType::SHA384), Anchor::Dnskey(rdata.clone())]
    {
        let report = with(vec![anchor]);
        assert_eq!((report.faults, report.warnings), (vec![], vec![]));
    }
    let stranger = key("example.", 257, Algorithm::ED25519, 77);
    let other = Anchor::Ds(ds_rdata(apex.view(), &stranger.dnskey_rdata(), DigestType::SHA256).unwrap());
    let unused = VerifyWarning::AnchorUnused { tag: stranger.tag(), algorithm: stranger.algorithm() };
    let report = with(vec![other.clone(), ds(DigestType::SHA256)]);
    assert_eq!((report.faults, report.warnings), (vec![], vec![unused]));
    for anchor in [other, Anchor::Ds(vec![1, 2]), Anchor::Ds(vec![0, 0, 15, 99, 1]), Anchor::Dnskey(vec![])] {
        let report = with(vec![anchor]);
        let expected = Fault { owner: apex.clone(), rtype: DNSKEY, reason: FaultReason::AnchorMismatch };
        assert_eq!(report.faults, [expected]);
    }
}

#[test]
fn nsec3_chain_extra() {
    let mut bench = bench(Mechanism::Nsec3);
    bench.remove("b.example.", "A");
    bench.remove("b.example.", "TXT");
    bench.remove("b.example.", "RRSIG");
    bench.assert_faults(&[(&hashed("b.example."), NSEC3, FaultReason::ChainExtra)]);
    let mut bench = self::bench(Mechanism::Nsec3);
    bench.add("short.example. 900 IN NSEC3 1 0 0 - 00000000000000000000000000000000");
    bench.sign_more("short.example.", Rtype::NSEC3, untouched);
    bench.assert_faults(&[("short.example.", NSEC3, FaultReason::ChainExtra)]);
}
