//! Faults planted in otherwise sound zones: each is found, and nothing else is.

use super::*;
use crate::keys::{REVOKE, ds_rdata};
use crate::verify::{Anchor, Mode, VerifyWarning, into_verified};
use nonesuch_crypto::{DigestType, KeyError};
use nonesuch_proto::NameRef;

const A: Option<Rtype> = Some(Rtype::A);
const NSEC: Option<Rtype> = Some(Rtype::NSEC);
const NSEC3: Option<Rtype> = Some(Rtype::NSEC3);
const DNSKEY: Option<Rtype> = Some(Rtype::DNSKEY);
const RECORDS: &str = "a A 192.0.2.1\nb A 192.0.2.1\nb TXT \"t\"\nd NS ns.d\nns.d A 192.0.2.9\n\
    s NS ns.elsewhere.test.\ns DS 1 13 2 00\n*.w A 192.0.2.1\nx.ent A 192.0.2.1";

/// A sound zone, signed with one key.
fn bench(mechanism: Mechanism) -> Bench {
    Bench::new(&zone(RECORDS), csk_of("example."), mechanism)
}

fn key_of(bench: &Bench) -> (u16, Algorithm) {
    let key = &bench.keys.keys()[0];
    (key.tag(), key.algorithm())
}

fn untouched(_: &mut Rrsig<'_>) {}

#[test]
fn the_control_is_sound_in_every_mechanism() {
    for mechanism in ALL {
        let bench = bench(mechanism);
        bench.assert_faults(&[]);
        let report = report(&bench.contents());
        assert_eq!((report.mechanism, report.warnings), (Some(mechanism), vec![]));
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
fn no_signature() {
    let mut bench = bench(Mechanism::Nsec);
    bench.remove_signatures("b.example.", "A");
    bench.assert_faults(&[("b.example.", A, Reason::NoSignature)]);
}

#[test]
fn bad_signature() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, algorithm) = key_of(&bench);
    bench.edit("b.example.", "A", |_| "192.0.2.2".to_owned());
    bench.edit("*.w.example.", "A", |_| "192.0.2.2".to_owned());
    let bad = Reason::BadSignature { tag, algorithm };
    bench.assert_faults(&[("b.example.", A, bad.clone()), ("*.w.example.", A, bad)]);
}

#[test]
fn expired() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.expiration = NOW - 1);
    bench.assert_faults(&[("b.example.", A, Reason::Expired { tag, expiration: NOW - 1 })]);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.expiration = NOW);
    bench.assert_faults(&[]);
}

#[test]
fn not_yet_valid() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.inception = NOW + 1);
    bench.assert_faults(&[("b.example.", A, Reason::NotYetValid { tag, inception: NOW + 1 })]);
    // Without a time, neither is looked at.
    assert!(verify(&bench.contents(), &VerifyOptions::default()).is_sound());
}

#[test]
fn empty_period() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.inception = EXPIRATION + 1);
    bench.assert_faults(&[("b.example.", A, Reason::EmptyPeriod { tag })]);
}

#[test]
fn wrong_signer() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    // Signed rightly, but in the name of another zone.
    bench.sign_again("b.example.", Rtype::A, |fields| fields.signer = NameRef::from_checked(b"\x05other\0"));
    bench.assert_faults(&[("b.example.", A, Reason::WrongSigner { tag, signer: name("other.") })]);
}

#[test]
fn wrong_labels() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    bench.sign_again("x.ent.example.", Rtype::A, |fields| fields.labels = 2);
    bench.assert_faults(&[("x.ent.example.", A, Reason::WrongLabels { tag, expected: 3, found: 2 })]);
    bench.sign_again("x.ent.example.", Rtype::A, |fields| fields.labels = 4);
    bench.assert_faults(&[("x.ent.example.", A, Reason::WrongLabels { tag, expected: 3, found: 4 })]);
}

#[test]
fn wrong_original_ttl() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.original_ttl = 3601);
    bench.assert_faults(&[("b.example.", A, Reason::WrongOriginalTtl { tag, original: 3601, ttl: 3600 })]);
}

#[test]
fn ttl_above_original() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, _) = key_of(&bench);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.original_ttl = 3599);
    bench.assert_faults(&[("b.example.", A, Reason::TtlAboveOriginal { tag, original: 3599, ttl: 3600 })]);
}

#[test]
fn wrong_signature_ttl() {
    let mut bench = bench(Mechanism::Nsec);
    for line in bench.lines.iter_mut().filter(|line| Bench::is_signature(line, "b.example.", "A")) {
        *line = line.replacen("\t3600\t", "\t60\t", 1);
    }
    bench.assert_faults(&[("b.example.", A, Reason::WrongSignatureTtl { expected: 3600, found: 60 })]);
}

#[test]
fn unknown_key() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, algorithm) = key_of(&bench);
    bench.sign_again("b.example.", Rtype::A, |fields| fields.tag ^= 1);
    bench.assert_faults(&[("b.example.", A, Reason::UnknownKey { tag: tag ^ 1, algorithm })]);
}

#[test]
fn spare_signatures_are_warned_of() {
    let mut bench = bench(Mechanism::Nsec);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.tag ^= 1);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.expiration = NOW - 1);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.inception = NOW + 1);
    let report = report(&bench.contents());
    assert_eq!(report.faults, []);
    let spare = |warning: &&VerifyWarning| matches!(warning, VerifyWarning::SpareSignature { .. });
    assert_eq!((report.warnings.len(), report.warnings.iter().filter(spare).count()), (3, 3));
}

#[test]
fn a_bad_signature_beside_a_good_one_is_a_fault() {
    let mut bench = bench(Mechanism::Nsec);
    let (tag, algorithm) = key_of(&bench);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.expiration = EXPIRATION - 1);
    bench.assert_faults(&[]);
    // A digit in the middle of the signature.
    let last = bench.lines.last_mut().unwrap();
    let at = last.len() - 20;
    let digit = if last.as_bytes()[at] == b'A' { "B" } else { "A" };
    last.replace_range(at..=at, digit);
    bench.assert_faults(&[("b.example.", A, Reason::BadSignature { tag, algorithm })]);
}

#[test]
fn missing_algorithm() {
    let p256 = Algorithm::ECDSAP256SHA256;
    let keys = vec![key("example.", 257, Algorithm::ED25519, 1), key("example.", 257, p256, 3)];
    let keys = KeySet::new(&name("example."), keys).unwrap();
    let mut bench = Bench::new(&zone(RECORDS), keys, Mechanism::Nsec);
    bench.lines.retain(|line| !(Bench::is_signature(line, "b.example.", "A") && line.contains("\tA 13 ")));
    bench.assert_faults(&[("b.example.", A, Reason::MissingAlgorithm { algorithm: p256 })]);
}

#[test]
fn malformed_signature() {
    let contents = bench(Mechanism::Nsec).contents();
    let damaged = rewrite(&contents, |node, rtype, covered, rdata| {
        if node.name() == name("b.example.").view() && (rtype, covered) == (Rtype::RRSIG, Rtype::A) {
            rdata.truncate(17);
        }
    });
    let faults = report(&damaged).faults;
    let expected = Fault { owner: name("b.example."), rtype: A, reason: Reason::MalformedRecord };
    assert_eq!(faults, [expected]);
}

#[test]
fn signed_glue_and_signed_delegation() {
    let mut bench = bench(Mechanism::Nsec);
    bench.sign_more("ns.d.example.", Rtype::A, untouched);
    bench.sign_more("d.example.", Rtype::NS, untouched);
    bench.assert_faults(&[
        ("d.example.", Some(Rtype::NS), Reason::UnexpectedSignature),
        ("ns.d.example.", A, Reason::UnexpectedSignature),
    ]);
}

#[test]
fn signature_over_nothing() {
    let mut bench = bench(Mechanism::Nsec);
    let line = bench.lines.iter().find(|line| Bench::is_signature(line, "b.example.", "A")).unwrap();
    let line = line.replace("\tA ", "\tMX ");
    bench.lines.push(line);
    bench.assert_faults(&[("b.example.", Some(Rtype::MX), Reason::UnexpectedSignature)]);
}

#[test]
fn unexpected_records() {
    let mut bench = bench(Mechanism::Nsec);
    bench.add("ns.d.example. 900 IN NSEC example. A");
    bench.assert_faults(&[("ns.d.example.", NSEC, Reason::UnexpectedRecords)]);
}

#[test]
fn nsec3param_away_from_the_apex() {
    let mut bench = bench(Mechanism::Nsec3);
    bench.add("ns.d.example. 900 IN NSEC3PARAM 1 0 0 -");
    bench.assert_faults(&[("ns.d.example.", Some(Rtype::NSEC3PARAM), Reason::UnexpectedRecords)]);
}

#[test]
fn nsec_bitmap_extra_and_missing() {
    let mut bench = bench(Mechanism::Nsec);
    bench.edit("b.example.", "NSEC", |rdata| rdata.replace(" A TXT ", " A MX "));
    bench.sign_again("b.example.", Rtype::NSEC, untouched);
    bench.assert_faults(&[
        ("b.example.", NSEC, Reason::BitmapMissing(Rtype::TXT)),
        ("b.example.", NSEC, Reason::BitmapExtra(Rtype::MX)),
    ]);
}

#[test]
fn nsec_bitmap_of_a_delegation_shows_no_glue() {
    let mut bench = Bench::new(&zone("d NS d\nd A 192.0.2.1"), csk_of("example."), Mechanism::Nsec);
    bench.edit("d.example.", "NSEC", |rdata| rdata.replace(" NS ", " A NS "));
    bench.sign_again("d.example.", Rtype::NSEC, untouched);
    bench.assert_faults(&[("d.example.", NSEC, Reason::BitmapExtra(Rtype::A))]);
}

#[test]
fn nsec_chain_broken() {
    let mut bench = bench(Mechanism::Nsec);
    bench.edit("a.example.", "NSEC", |rdata| rdata.replace("b.example.", "d.example."));
    bench.sign_again("a.example.", Rtype::NSEC, untouched);
    let reason = Reason::ChainBroken { expected: name("b.example."), found: name("d.example.") };
    bench.assert_faults(&[("a.example.", NSEC, reason)]);
}

#[test]
fn nsec_chain_missing() {
    let mut bench = bench(Mechanism::Nsec);
    bench.remove("b.example.", "NSEC");
    bench.remove_signatures("b.example.", "NSEC");
    bench.assert_faults(&[("b.example.", NSEC, Reason::ChainMissing)]);
}

#[test]
fn nsec_chain_extra() {
    let mut bench = bench(Mechanism::Nsec);
    bench.add("c.example. 900 IN NSEC d.example. RRSIG NSEC");
    bench.sign_more("c.example.", Rtype::NSEC, untouched);
    bench.assert_faults(&[("c.example.", NSEC, Reason::ChainExtra)]);
}

#[test]
fn nsec_twice() {
    let mut bench = bench(Mechanism::Nsec);
    bench.add("b.example. 900 IN NSEC d.example. A TXT MX RRSIG NSEC");
    bench.sign_again("b.example.", Rtype::NSEC, untouched);
    bench.assert_faults(&[
        ("b.example.", NSEC, Reason::MultipleRecords),
        ("b.example.", NSEC, Reason::BitmapExtra(Rtype::MX)),
    ]);
}

#[test]
fn no_denial() {
    let mut bench = bench(Mechanism::Nsec);
    bench.lines.retain(|line| Bench::fields(line)[3] != "NSEC" && !line.contains("\tNSEC "));
    bench.assert_faults(&[("example.", None, Reason::NoDenial)]);
}

#[test]
fn mixed_denial() {
    let mut bench = bench(Mechanism::Nsec3);
    bench.add("a.example. 900 IN NSEC b.example. A RRSIG NSEC");
    bench.sign_more("a.example.", Rtype::NSEC, untouched);
    bench.assert_faults(&[("a.example.", NSEC, Reason::MixedDenial)]);
    let mut bench = self::bench(Mechanism::Nsec);
    bench.add("example. 0 IN NSEC3PARAM 1 0 0 -");
    bench.sign_more("example.", Rtype::NSEC3PARAM, untouched);
    bench.assert_faults(&[
        ("example.", NSEC, Reason::BitmapMissing(Rtype::NSEC3PARAM)),
        ("example.", Some(Rtype::NSEC3PARAM), Reason::MixedDenial),
    ]);
}

#[test]
fn chain_ttl_is_a_warning() {
    for (mechanism, rtype) in [(Mechanism::Nsec, Rtype::NSEC), (Mechanism::Nsec3, Rtype::NSEC3)] {
        let mut bench = bench(mechanism);
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
        let report = report(&bench.contents());
        assert_eq!(report.faults, []);
        let first = name(&owners[0]);
        let count = owners.len() as u64;
        assert_eq!(
            report.warnings,
            [VerifyWarning::ChainTtl { rtype, expected: 900, found: 3600, count, first }]
        );
    }
}

/// The NSEC3 record of `owner`, its signature too, is taken out and the one before it linked to the one behind.
fn unlink(bench: &mut Bench, owner: &str) {
    let hashed_owner = hashed(owner);
    let label = hashed_owner.split('.').next().unwrap().to_owned();
    let next =
        rdatas(&bench.contents(), &hashed_owner, Rtype::NSEC3)[0].split(' ').nth(4).unwrap().to_owned();
    bench.remove(&hashed_owner, "NSEC3");
    bench.remove_signatures(&hashed_owner, "NSEC3");
    let before =
        bench.lines.iter().find(|line| Bench::fields(line)[3] == "NSEC3" && line.contains(&label)).unwrap();
    let before = Bench::fields(before)[0].to_owned();
    bench.edit(&before, "NSEC3", |rdata| rdata.replace(&label, &next));
    bench.sign_again(&before, Rtype::NSEC3, untouched);
}

#[test]
fn nsec3_missing() {
    for owner in ["b.example.", "ent.example.", "d.example."] {
        let mut bench = bench(Mechanism::Nsec3);
        unlink(&mut bench, owner);
        bench.assert_faults(&[(owner, NSEC3, Reason::Nsec3Missing { hashed: name(&hashed(owner)) })]);
    }
}

#[test]
fn opt_out_over_secure() {
    for owner in ["b.example.", "s.example.", "ent.example."] {
        let mut bench = bench(Mechanism::Nsec3OptOut);
        unlink(&mut bench, owner);
        bench.assert_faults(&[(owner, NSEC3, Reason::OptOutOverSecure { hashed: name(&hashed(owner)) })]);
    }
}

#[test]
fn a_record_without_opt_out_covers_no_insecure_delegation() {
    let mut bench = bench(Mechanism::Nsec3OptOut);
    let all: Vec<String> = bench
        .contents()
        .nodes()
        .filter(|node| node.has(Rtype::NSEC3))
        .map(|node| node.name().to_string())
        .collect();
    let missing = hashed("d.example.");
    // The last of those before the hash, or the last of all.
    let covering = all.iter().filter(|owner| **owner < missing).max().or_else(|| all.iter().max()).unwrap();
    bench.edit(covering, "NSEC3", |rdata| rdata.replacen("1 1 ", "1 0 ", 1));
    bench.sign_again(covering, Rtype::NSEC3, untouched);
    bench.assert_faults(&[("d.example.", NSEC3, Reason::Nsec3Missing { hashed: name(&missing) })]);
    // Elsewhere the flag may be missing: opt-out is a matter of each record.
    let mut bench = self::bench(Mechanism::Nsec3OptOut);
    let other = all.iter().find(|owner| *owner != covering).unwrap();
    bench.edit(other, "NSEC3", |rdata| rdata.replacen("1 1 ", "1 0 ", 1));
    bench.sign_again(other, Rtype::NSEC3, untouched);
    bench.assert_faults(&[]);
}

#[test]
fn nsec3_chain_broken() {
    let mut bench = bench(Mechanism::Nsec3);
    let owner = hashed("b.example.");
    let next = rdatas(&bench.contents(), &owner, Rtype::NSEC3)[0].split(' ').nth(4).unwrap().to_owned();
    let wrong = "0".repeat(32);
    bench.edit(&owner, "NSEC3", |rdata| rdata.replace(&next, &wrong));
    bench.sign_again(&owner, Rtype::NSEC3, untouched);
    let expected = name(&format!("{next}.example."));
    let reason = Reason::ChainBroken { expected, found: name(&format!("{wrong}.example.")) };
    bench.assert_faults(&[(&owner, NSEC3, reason)]);
}

#[test]
fn nsec3_bitmap_extra_and_missing() {
    let mut bench = bench(Mechanism::Nsec3);
    let owner = hashed("b.example.");
    bench.edit(&owner, "NSEC3", |rdata| rdata.replace(" A TXT ", " A MX "));
    bench.sign_again(&owner, Rtype::NSEC3, untouched);
    bench.assert_faults(&[
        (&owner, NSEC3, Reason::BitmapMissing(Rtype::TXT)),
        (&owner, NSEC3, Reason::BitmapExtra(Rtype::MX)),
    ]);
}

#[test]
fn nsec3_chain_extra() {
    let mut bench = bench(Mechanism::Nsec3);
    bench.remove("b.example.", "A");
    bench.remove("b.example.", "TXT");
    bench.remove("b.example.", "RRSIG");
    bench.assert_faults(&[(&hashed("b.example."), NSEC3, Reason::ChainExtra)]);
    let mut bench = self::bench(Mechanism::Nsec3);
    bench.add("short.example. 900 IN NSEC3 1 0 0 - 00000000000000000000000000000000");
    bench.sign_more("short.example.", Rtype::NSEC3, untouched);
    bench.assert_faults(&[("short.example.", NSEC3, Reason::ChainExtra)]);
}

#[test]
fn nsec3_parameters_that_do_not_match() {
    let mut bench = bench(Mechanism::Nsec3);
    let owner = hashed("b.example.");
    let line = bench
        .lines
        .iter()
        .find(|line| Bench::is(line, &owner, "NSEC3"))
        .unwrap()
        .replace("1 0 0 -", "1 0 7 AB");
    bench.lines.push(line);
    bench.sign_again(&owner, Rtype::NSEC3, untouched);
    bench.assert_faults(&[(&owner, NSEC3, Reason::Nsec3ParamMismatch)]);
}

#[test]
fn nsec3_twice() {
    let mut bench = bench(Mechanism::Nsec3);
    let owner = hashed("b.example.");
    let line = bench
        .lines
        .iter()
        .find(|line| Bench::is(line, &owner, "NSEC3"))
        .unwrap()
        .replace(" TXT ", " TXT MX ");
    bench.lines.push(line);
    bench.sign_again(&owner, Rtype::NSEC3, untouched);
    let faults = bench.faults();
    assert!(faults.iter().any(|fault| fault.reason == Reason::MultipleRecords), "{faults:?}");
}

#[test]
fn unknown_nsec3_flags() {
    let mut bench = bench(Mechanism::Nsec3);
    let owner = hashed("b.example.");
    bench.edit(&owner, "NSEC3", |rdata| rdata.replacen("1 0 ", "1 2 ", 1));
    bench.sign_again(&owner, Rtype::NSEC3, untouched);
    let faults = bench.faults();
    assert!(faults.iter().any(|fault| fault.reason == Reason::UnknownNsec3Flags(2)), "{faults:?}");
    assert!(faults.iter().any(|fault| matches!(fault.reason, Reason::Nsec3Missing { .. })), "{faults:?}");
}

#[test]
fn no_nsec3param() {
    let mut bench = bench(Mechanism::Nsec3);
    bench.edit("example.", "NSEC3PARAM", |rdata| rdata.replacen("1 0 ", "1 1 ", 1));
    bench.sign_again("example.", Rtype::NSEC3PARAM, untouched);
    let report = report(&bench.contents());
    assert!(report.faults.iter().any(|fault| fault.reason == Reason::NoNsec3Param));
    assert_eq!(report.warnings, [VerifyWarning::UnusedNsec3Param { algorithm: 1, flags: 1 }]);
}

#[test]
fn too_many_iterations() {
    let mut bench = bench(Mechanism::Nsec3);
    bench.edit("example.", "NSEC3PARAM", |_| "1 0 501 -".to_owned());
    bench.sign_again("example.", Rtype::NSEC3PARAM, untouched);
    let faults = bench.faults();
    let expected = Reason::TooManyIterations(501);
    assert!(faults.iter().any(|fault| fault.reason == expected), "{faults:?}");
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
fn malformed_bitmap() {
    for (mechanism, rtype) in [(Mechanism::Nsec, Rtype::NSEC), (Mechanism::Nsec3, Rtype::NSEC3)] {
        let contents = bench(mechanism).contents();
        let mut done = false;
        let damaged = rewrite(&contents, |_, of, _, rdata| {
            if of == rtype && !done {
                rdata.push(0);
                done = true;
            }
        });
        let faults = report(&damaged).faults;
        assert!(faults.iter().any(|fault| fault.reason == Reason::MalformedRecord), "{faults:?}");
    }
}

#[test]
fn no_dnskey() {
    let mut bench = bench(Mechanism::Nsec);
    bench.remove("example.", "DNSKEY");
    bench.assert_faults(&[("example.", DNSKEY, Reason::NoDnskey)]);
    assert!(into_verified(bench.contents(), &VerifyOptions::default()).is_err());
}

#[test]
fn an_unsigned_zone_is_sound_unless_an_anchor_says_otherwise() {
    let contents = zone(RECORDS);
    let verified = into_verified(contents.clone(), &VerifyOptions::default()).unwrap();
    assert_eq!((verified.mechanism(), verified.report().signatures_verified), (None, 0));
    let anchors = vec![Anchor::Dnskey(csk_of("example.").keys()[0].dnskey_rdata())];
    let (_, report) =
        *into_verified(contents, &VerifyOptions { anchors, ..VerifyOptions::default() }).unwrap_err();
    assert_eq!(report.faults[0].reason, Reason::NoDnskey);
}

#[test]
fn no_usable_key_and_unknown_algorithms() {
    let mut bench = bench(Mechanism::Nsec);
    bench.edit("example.", "DNSKEY", |rdata| rdata.replace(" 15 ", " 5 "));
    let report = report(&bench.contents());
    assert!(report.faults.iter().any(|fault| fault.reason == Reason::NoUsableKey));
    assert!(matches!(
        report.warnings[..],
        [VerifyWarning::UnusableKey { error: KeyError::UnknownAlgorithm(Algorithm(5)), .. }]
    ));
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

/// RSA of 512 bits is as an algorithm that is not known: no fault beside a key that can be used.
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
    bench.add(&host.key_file_text().lines().last().unwrap().replace("\t", " "));
    bench.sign_again("example.", Rtype::DNSKEY, untouched);
    let report = report(&bench.contents());
    assert_eq!(report.faults, []);
    assert_eq!(report.warnings, [VerifyWarning::NotAZoneKey { tag: host.tag(), flags: 0 }]);
}

#[test]
fn malformed_key() {
    let mut bench = bench(Mechanism::Nsec);
    bench.add("example. 3600 IN DNSKEY 256 3 13 AAAA");
    bench.sign_again("example.", Rtype::DNSKEY, untouched);
    let faults = bench.faults();
    let expected = |reason: &Reason| matches!(reason, Reason::MalformedKey { algorithm: Algorithm(13), .. });
    assert!(matches!(&faults[..], [fault] if expected(&fault.reason)), "{faults:?}");
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
        let expected = Fault { owner: apex.clone(), rtype: DNSKEY, reason: Reason::AnchorMismatch };
        assert_eq!(report.faults, [expected]);
    }
}

#[test]
fn an_anchor_must_match_a_key_that_signs_the_keys() {
    let keys = pair_of("example.");
    let zsk = keys.keys()[1].dnskey_rdata();
    let bench = Bench::new(&zone(""), keys, Mechanism::Nsec);
    let options =
        VerifyOptions { now: Some(NOW), anchors: vec![Anchor::Dnskey(zsk)], ..VerifyOptions::default() };
    let report = verify(&bench.contents(), &options);
    assert_eq!(report.faults[0].reason, Reason::AnchorMismatch);
}

#[test]
fn revoked_keys() {
    let revoked = || key("example.", 257 | REVOKE, Algorithm::ED25519, 1);
    let keys =
        KeySet::new(&name("example."), vec![revoked(), key("example.", 257, Algorithm::ED25519, 2)]).unwrap();
    let tag = revoked().tag();
    let mut bench = Bench::new(&zone(RECORDS), keys, Mechanism::Nsec);
    // A revoked key is no anchor any more.
    let anchors = vec![Anchor::Dnskey(revoked().dnskey_rdata())];
    let options = VerifyOptions { now: Some(NOW), anchors, ..VerifyOptions::default() };
    assert_eq!(verify(&bench.contents(), &options).faults[0].reason, Reason::AnchorMismatch);
    // What it alone signs is not signed.
    let signs_keys = |line: &str| Bench::is_signature(line, "example.", "DNSKEY");
    let by_revoked = |line: &str| line.contains(&format!(" {tag} example."));
    bench.lines.retain(|line| !signs_keys(line) || by_revoked(line));
    let algorithm = Algorithm::ED25519;
    bench.assert_faults(&[("example.", DNSKEY, Reason::MissingAlgorithm { algorithm })]);
    // And where it does not sign the keys, nobody sees that it is revoked.
    bench.sign_again("example.", Rtype::DNSKEY, untouched);
    bench.lines.retain(|line| !signs_keys(line) || !by_revoked(line));
    let report = report(&bench.contents());
    assert_eq!((report.faults, report.warnings), (vec![], vec![VerifyWarning::RevokedSilently { tag }]));
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
    assert_eq!((report.is_sound(), report.signatures_verified), (true, 0));
    bench.remove_signatures("b.example.", "A");
    let owner = hashed("a.example.");
    bench.edit(&owner, "NSEC3", |rdata| rdata.replace(" A ", " A MX "));
    let reasons: Vec<Reason> =
        structural(&bench.contents()).faults.into_iter().map(|fault| fault.reason).collect();
    assert!(reasons.contains(&Reason::NoSignature) && reasons.contains(&Reason::BitmapExtra(Rtype::MX)));
}

#[test]
fn all_faults_are_reported_in_canonical_order() {
    let mut bench = bench(Mechanism::Nsec);
    for owner in ["x.ent.example.", "a.example.", "*.w.example.", "b.example."] {
        bench.remove_signatures(owner, "A");
    }
    bench.assert_faults(&[
        ("a.example.", A, Reason::NoSignature),
        ("b.example.", A, Reason::NoSignature),
        ("x.ent.example.", A, Reason::NoSignature),
        ("*.w.example.", A, Reason::NoSignature),
    ]);
    let shown: Vec<String> = bench.faults().iter().map(Fault::to_string).collect();
    assert_eq!(shown[0], "a.example. A: there is no signature");
}

#[test]
fn no_soa() {
    let run = || {
        let mut run = Run::default();
        run.begin_node(name("example.").view());
        run.begin_rrset(Rtype::NS, Rtype::NS, 1);
        run.push_record(|out| out.push(0));
        run
    };
    let contents = Contents::from_runs(&name("example."), vec![run()]);
    assert_eq!(report(&contents).faults[0].reason, Reason::NoSoa);
    let error = sign(&contents, &csk_of("example."), &options(Mechanism::Nsec)).unwrap_err();
    assert_eq!(error, crate::sign::SignError::NoSoa(name("example.")));
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
    // A record of the second chain is missed though the first one is whole.
    let dropped = Bench::fields(&chain[0])[0].to_owned();
    bench.remove(&dropped, "NSEC3");
    bench.remove_signatures(&dropped, "NSEC3");
    let reasons: Vec<Reason> = bench.faults().into_iter().map(|fault| fault.reason).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().any(|reason| matches!(reason, Reason::ChainBroken { .. })), "{reasons:?}");
    let missing = Reason::Nsec3Missing { hashed: name(&dropped) };
    assert!(reasons.contains(&missing), "{reasons:?}");
}
