//! Faults of NSEC5, each alone in a zone that is sound otherwise: found with stored proofs, and as far as that can be
//! without them.

use super::*;
use crate::denial::nsec5::chain;
use data_encoding::HEXLOWER;

const NSEC5: Option<Rtype> = Some(Rtype::NSEC5);
const NSEC5KEY: Option<Rtype> = Some(Rtype::NSEC5KEY);
const NSEC5PROOF: Option<Rtype> = Some(Rtype::NSEC5PROOF);
/// Octets of RDATA in front of the next hashed owner name, and with it.
const NEXT: std::ops::Range<usize> = 4..36;

/// A signed zone as lines of text, with its proofs.
struct Nsec5Bench {
    bench: Bench,
    proofs: Proofs,
}

impl Nsec5Bench {
    fn new(mechanism: Mechanism) -> Self {
        let contents = zone(RECORDS);
        let proofs = prove(&contents, &vrf(), mechanism);
        let signed = sign_nsec5(&contents, mechanism, &proofs);
        let lines = text(&signed).lines().map(str::to_owned).collect();
        let keys = nsec5_keys("example.").into();
        let bench = Bench { keys, apex: contents.apex().clone(), mechanism, lines };
        let new = Self { bench, proofs };
        new.assert_faults(&[]);
        new
    }

    /// RDATA of the NSEC5 record at `hashed`.
    fn rdata(&self, hashed: &str) -> Vec<u8> {
        let contents = self.bench.contents();
        node(&contents, hashed).rrset(Rtype::NSEC5).unwrap().rdatas().next().unwrap().to_vec()
    }

    fn generic(rdata: &[u8]) -> String {
        format!("\\# {} {}", rdata.len(), HEXLOWER.encode(rdata))
    }

    fn sign_again(&mut self, owner: &str, rtype: Rtype) {
        self.bench.remove_signatures(owner, &rtype.in_zone_text().to_string());
        self.bench.sign_more(owner, rtype, |_| {});
    }

    /// Changes the record at `hashed` and signs it again.
    fn edit_at(&mut self, hashed: &str, change: impl Fn(&mut Vec<u8>)) {
        let mut rdata = self.rdata(hashed);
        change(&mut rdata);
        self.bench.edit(hashed, "TYPE65280", |_| Self::generic(&rdata));
        self.sign_again(hashed, Rtype::NSEC5);
    }

    /// Changes the record of the name `owner`.
    fn edit(&mut self, owner: &str, change: impl Fn(&mut Vec<u8>)) {
        self.edit_at(&hashed(owner), change);
    }

    /// The record before the one at `hashed`.
    fn before(&self, hashed: &str) -> String {
        let contents = self.bench.contents();
        let owners: Vec<String> = contents
            .nodes()
            .filter(|node| node.has(Rtype::NSEC5))
            .map(|node| node.name().to_name().to_string())
            .collect();
        let place = owners.iter().position(|owner| owner == hashed).unwrap();
        owners[(place + owners.len() - 1) % owners.len()].clone()
    }

    /// Takes the record of `owner` out of the chain, which closes over the gap.
    fn take_out(&mut self, owner: &str) {
        let hashed = hashed(owner);
        let (before, next) = (self.before(&hashed), self.rdata(&hashed)[NEXT].to_vec());
        self.bench.lines.retain(|line| name(Bench::fields(line)[0]) != name(&hashed));
        self.edit_at(&before, |rdata| rdata[NEXT].copy_from_slice(&next));
    }

    /// Puts a record for `owner` into the chain, with the rest of that of `like`.
    fn put_in(&mut self, owner: &str, like: &str) {
        let (hashed, like) = (hashed(owner), self.rdata(&hashed(like)));
        self.bench.add(&format!("{hashed} 900 IN TYPE65280 {}", Self::generic(&like)));
        let before = self.before(&hashed);
        let next = self.rdata(&before)[NEXT].to_vec();
        self.edit_at(&hashed, |rdata| rdata[NEXT].copy_from_slice(&next));
        self.edit_at(&before, |rdata| rdata[NEXT].copy_from_slice(&hash(owner)));
    }

    fn faults(&self, evidence: &Nsec5Evidence<'_>) -> Vec<(String, Option<Rtype>, Reason)> {
        let faults = report_with(&self.bench.contents(), evidence).faults;
        faults.into_iter().map(|fault| (fault.owner.to_string(), fault.rtype, fault.reason)).collect()
    }

    /// The faults that are found with stored proofs, and those with the VRF key, are `expected`.
    #[track_caller]
    fn assert_faults(&self, expected: &[(&str, Option<Rtype>, Reason)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(owner, rtype, reason)| ((*owner).to_owned(), *rtype, reason.clone()))
            .collect();
        assert_eq!(self.faults(&by_proofs(&self.proofs)), expected);
        assert_eq!(self.faults(&by_key(&vrf())), expected, "with the key");
    }

    /// The faults that are found without proofs and key.
    #[track_caller]
    fn assert_public_faults(&self, expected: &[(&str, Option<Rtype>, Reason)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(owner, rtype, reason)| ((*owner).to_owned(), *rtype, reason.clone()))
            .collect();
        assert_eq!(self.faults(&Nsec5Evidence::default()), expected);
    }

    fn records(&self) -> u64 {
        self.bench.contents().nodes().filter(|node| node.has(Rtype::NSEC5)).count() as u64
    }
}

fn nsec5() -> Nsec5Bench {
    Nsec5Bench::new(Mechanism::Nsec5)
}

fn opt_out() -> Nsec5Bench {
    Nsec5Bench::new(Mechanism::Nsec5OptOut)
}

#[test]
fn missing_record() {
    let mut bench = nsec5();
    let before = bench.records();
    bench.take_out("b.example.");
    bench.assert_faults(&[(
        "b.example.",
        NSEC5,
        Reason::Nsec5Missing { hashed: name(&hashed("b.example.")) },
    )]);
    let count = Reason::ChainCount { records: before - 1, least: before, most: before };
    bench.assert_public_faults(&[("example.", NSEC5, count)]);
}

#[test]
fn missing_record_of_an_empty_non_terminal() {
    for mechanism in BOTH {
        for owner in ["ent.example.", "*.wild.example.", "lone.example."] {
            let mut bench = Nsec5Bench::new(mechanism);
            bench.take_out(owner);
            let hashed = name(&hashed(owner));
            let reason = if mechanism.is_opt_out() {
                Reason::OptOutOverSecure { hashed }
            } else {
                Reason::Nsec5Missing { hashed }
            };
            bench.assert_faults(&[(owner, NSEC5, reason)]);
            // In an opt-out chain the record of an insecure delegation could stand in its place, but for its kind.
            let public = bench.faults(&Nsec5Evidence::default());
            assert!(
                matches!(public[..], [(_, NSEC5, Reason::ChainCount { .. } | Reason::ChainKind { .. })]),
                "{public:?}"
            );
        }
    }
}

#[test]
fn extra_record() {
    let mut bench = nsec5();
    bench.put_in("nope.example.", "b.example.");
    bench.assert_faults(&[(&hashed("nope.example."), NSEC5, Reason::ChainExtra)]);
    let records = bench.records();
    let count = Reason::ChainCount { records, least: records - 1, most: records - 1 };
    bench.assert_public_faults(&[("example.", NSEC5, count)]);
}

#[test]
fn broken_link() {
    let mut bench = nsec5();
    let hashed = hashed("b.example.");
    let (next, wrong) = (bench.rdata(&hashed)[NEXT].to_vec(), [7; 32]);
    bench.edit("b.example.", |rdata| rdata[NEXT].copy_from_slice(&wrong));
    let owner_of = |hash: &[u8]| {
        name(&format!("{}.example.", String::from_utf8_lossy(&chain::label(hash.try_into().unwrap()))))
    };
    let broken =
        [(&*hashed, NSEC5, Reason::ChainBroken { expected: owner_of(&next), found: owner_of(&wrong) })];
    bench.assert_faults(&broken);
    bench.assert_public_faults(&broken);
}

#[test]
fn wrong_next_length() {
    let mut bench = nsec5();
    bench.edit("b.example.", |rdata| {
        rdata[3] = 31;
        rdata.remove(4);
    });
    let faults = [(&*hashed("b.example."), NSEC5, Reason::Nsec5NextLength(31))];
    bench.assert_faults(&faults);
    bench.assert_public_faults(&faults);
}

#[test]
fn malformed_record() {
    let mut bench = nsec5();
    bench.edit("b.example.", |rdata| rdata.push(1));
    let faults = [(&*hashed("b.example."), NSEC5, Reason::MalformedRecord)];
    bench.assert_faults(&faults);
    bench.assert_public_faults(&faults);
}

#[test]
fn unknown_flags() {
    let mut bench = nsec5();
    bench.edit("b.example.", |rdata| rdata[2] |= 4);
    let faults = [(&*hashed("b.example."), NSEC5, Reason::UnknownNsec5Flags(4))];
    bench.assert_faults(&faults);
    bench.assert_public_faults(&faults);
}

#[test]
fn wildcard_flag() {
    // The wildcard below `wild` is an empty non-terminal.
    for owner in ["w.example.", "wild.example."] {
        let mut bench = nsec5();
        bench.edit(owner, |rdata| rdata[2] = 0);
        bench.assert_faults(&[(&hashed(owner), NSEC5, Reason::WildcardFlagClear { name: name(owner) })]);
        let public = bench.faults(&Nsec5Evidence::default());
        assert!(
            public.len() == 2 && public.iter().all(|fault| matches!(fault.2, Reason::ChainKind { .. })),
            "{public:?}"
        );
    }
    let mut bench = nsec5();
    bench.edit("b.example.", |rdata| rdata[2] = 2);
    bench.assert_faults(&[(
        &hashed("b.example."),
        NSEC5,
        Reason::WildcardFlagSet { name: name("b.example.") },
    )]);
}

#[test]
fn uneven_opt_out() {
    let mut bench = nsec5();
    bench.edit("b.example.", |rdata| rdata[2] |= 1);
    bench.assert_faults(&[(&hashed("b.example."), NSEC5, Reason::UnevenOptOut)]);
    bench.assert_public_faults(&[(&hashed("b.example."), NSEC5, Reason::UnevenOptOut)]);
    let mut bench = opt_out();
    bench.edit("b.example.", |rdata| rdata[2] &= 2);
    let faults = bench.faults(&by_proofs(&bench.proofs));
    assert!(faults.contains(&(hashed("b.example."), NSEC5, Reason::UnevenOptOut)), "{faults:?}");
}

#[test]
fn opt_out_over_a_signed_child() {
    let mut bench = opt_out();
    let records = bench.records();
    bench.take_out("s.example.");
    let reason = Reason::OptOutOverSecure { hashed: name(&hashed("s.example.")) };
    bench.assert_faults(&[("s.example.", NSEC5, reason)]);
    // An insecure delegation in its place makes up the number, not the kind.
    bench.put_in("d.example.", "b.example.");
    assert_eq!(bench.records(), records);
    let public = bench.faults(&Nsec5Evidence::default());
    assert!(public.iter().any(|fault| matches!(fault.2, Reason::ChainKind { .. })), "{public:?}");
}

#[test]
fn bitmap() {
    let mut bench = nsec5();
    let map = |types: &[Rtype]| {
        let mut map = Vec::new();
        nonesuch_proto::bitmap::push(types, &mut map);
        map
    };
    let hashed = hashed("b.example.");
    let with = |types: &[Rtype]| {
        let map = map(types);
        move |rdata: &mut Vec<u8>| {
            rdata.truncate(NEXT.end);
            rdata.extend_from_slice(&map);
        }
    };
    bench.edit("b.example.", with(&[Rtype::A, Rtype::MX, Rtype::RRSIG]));
    bench.assert_faults(&[(&hashed, NSEC5, Reason::BitmapExtra(Rtype::MX))]);
    bench.edit("b.example.", with(&[Rtype::RRSIG]));
    bench.assert_faults(&[(&hashed, NSEC5, Reason::BitmapMissing(Rtype::A))]);
    let public = bench.faults(&Nsec5Evidence::default());
    assert!(
        public.iter().all(|fault| matches!(fault.2, Reason::ChainKind { .. })) && public.len() == 2,
        "{public:?}"
    );
    bench.edit("b.example.", with(&[Rtype::A, Rtype::RRSIG]));
    bench.assert_faults(&[]);
}

#[test]
fn wrong_tag() {
    let mut bench = nsec5();
    let chain = Nsec5Key::of(&vrf()).tag();
    let wrong = (chain ^ 1).to_be_bytes();
    bench.edit("b.example.", |rdata| rdata[..2].copy_from_slice(&wrong));
    bench.assert_faults(&[(&hashed("b.example."), NSEC5, Reason::UnknownNsec5Key { tag: chain ^ 1 })]);
    // The key of another chain.
    let other = Nsec5Key::of(&vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5));
    bench.bench.add(&format!("example. 3600 IN TYPE65281 {}", Nsec5Bench::generic(other.rdata())));
    bench.sign_again("example.", Rtype::NSEC5KEY);
    bench.edit("b.example.", |rdata| rdata[..2].copy_from_slice(&other.tag().to_be_bytes()));
    let reason = Reason::OtherNsec5Key { tag: other.tag(), chain };
    bench.assert_faults(&[(&hashed("b.example."), NSEC5, reason)]);
}

#[test]
fn two_keys_of_one_tag() {
    let mut bench = nsec5();
    let tag = Nsec5Key::of(&vrf()).tag();
    bench.bench.add(&format!("example. 3600 IN TYPE65281 {}", Nsec5Bench::generic(&twin_of(tag))));
    bench.sign_again("example.", Rtype::NSEC5KEY);
    bench.assert_faults(&[("example.", NSEC5KEY, Reason::SameNsec5Tag { tag })]);
    let warnings = report_with(&bench.bench.contents(), &by_proofs(&bench.proofs)).warnings;
    assert_eq!(warnings, [VerifyWarning::UnusableNsec5Key { tag, algorithm: VrfAlgorithm(99) }]);
}

#[test]
fn keys_that_are_none() {
    let mut bench = nsec5();
    // y = 2 is on no point of the curve.
    let mut rdata = vec![3, 2];
    rdata.resize(33, 0);
    bench.bench.edit("example.", "TYPE65281", |_| Nsec5Bench::generic(&rdata));
    bench.sign_again("example.", Rtype::NSEC5KEY);
    let public = bench.faults(&Nsec5Evidence::default());
    assert!(matches!(&public[..], [(_, NSEC5KEY, Reason::MalformedNsec5Key { .. })]), "{public:?}");
    rdata[0] = 99;
    bench.bench.edit("example.", "TYPE65281", |_| Nsec5Bench::generic(&rdata));
    bench.sign_again("example.", Rtype::NSEC5KEY);
    bench.assert_public_faults(&[("example.", NSEC5KEY, Reason::NoUsableNsec5Key)]);
    bench.bench.remove("example.", "TYPE65281");
    bench.bench.remove_signatures("example.", "TYPE65281");
    let public = bench.faults(&Nsec5Evidence::default());
    assert!(public.contains(&("example.".to_owned(), NSEC5KEY, Reason::NoNsec5Key)), "{public:?}");
}

#[test]
fn plain_numbers() {
    let algorithm = Algorithm::ED25519;
    let mut bench = nsec5();
    // No zone key: it signs nothing, but the number stands there.
    let plain = data_encoding::BASE64.encode(&[9; 32]);
    bench.bench.add(&format!("example. 3600 IN DNSKEY 0 3 15 {plain}"));
    bench.sign_again("example.", Rtype::DNSKEY);
    let fault = Reason::NotAnAlias { algorithm, count: 1 };
    bench.assert_faults(&[("example.", Some(Rtype::DNSKEY), fault.clone())]);
    bench.assert_public_faults(&[("example.", Some(Rtype::DNSKEY), fault)]);
    let mut bench = nsec5();
    bench.bench.sign_more("b.example.", Rtype::A, |fields| fields.algorithm = algorithm);
    bench.bench.sign_more("ns.example.", Rtype::A, |fields| fields.algorithm = algorithm);
    // Signatures by unknown keys are spare otherwise.
    let fault = Reason::NotAnAlias { algorithm, count: 2 };
    bench.assert_faults(&[("b.example.", Some(Rtype::RRSIG), fault)]);
}

#[test]
fn other_mechanisms_beside() {
    let mut bench = nsec5();
    bench.bench.add("b.example. 900 IN NSEC d.example. A RRSIG NSEC");
    bench.sign_again("b.example.", Rtype::NSEC);
    bench.assert_faults(&[("b.example.", Some(Rtype::NSEC), Reason::MixedDenial)]);
    // And a record of NSEC5 in a zone with NSEC.
    let contents = zone(RECORDS);
    let keys = nsec5_keys("example.");
    let signed = sign(&contents, &keys, &options(Mechanism::Nsec)).unwrap().into_contents();
    let lines = text(&signed).lines().map(str::to_owned).collect();
    let mechanism = Mechanism::Nsec;
    let mut plain = Bench { keys: keys.into(), apex: contents.apex().clone(), mechanism, lines };
    let stray = hashed("b.example.");
    let rdata = bench.rdata(&stray);
    plain.add(&format!("{stray} 900 IN TYPE65280 {}", Nsec5Bench::generic(&rdata)));
    plain.sign_more(&stray, Rtype::NSEC5, |_| {});
    plain.assert_faults(&[(&stray, NSEC5, Reason::MixedDenial)]);
}

#[test]
fn records_away_from_their_place() {
    let mut bench = nsec5();
    let rdata = bench.rdata(&hashed("b.example."));
    let key = Nsec5Key::of(&vrf());
    let proof = [&key.tag().to_be_bytes()[..], bench.proofs.entries().next().unwrap().proof].concat();
    bench.bench.add(&format!("b.example. 3600 IN TYPE65280 {}", Nsec5Bench::generic(&rdata)));
    bench.bench.add(&format!("b.example. 3600 IN TYPE65281 {}", Nsec5Bench::generic(key.rdata())));
    bench.bench.add(&format!("b.example. 3600 IN TYPE65282 {}", Nsec5Bench::generic(&proof)));
    let faults = bench.faults(&by_proofs(&bench.proofs));
    for expected in [
        ("b.example.".to_owned(), NSEC5, Reason::ChainExtra),
        ("b.example.".to_owned(), NSEC5KEY, Reason::UnexpectedRecords),
        ("b.example.".to_owned(), NSEC5PROOF, Reason::UnexpectedRecords),
    ] {
        assert!(faults.contains(&expected), "{faults:?}");
    }
}

/// Proofs with the octets of the file changed: `change` gets each name's place, hash and proof.
fn damaged(proofs: &Proofs, change: impl Fn(usize, &mut [[u8; 32]], &mut [Vec<u8>])) -> Proofs {
    let mut whole = octets(proofs);
    let octets_of_proof = proofs.entries().next().unwrap().proof.len();
    let proofs_at = whole.len() - 32 - proofs.len() * octets_of_proof;
    let hashes_at = proofs_at - proofs.len() * 32;
    let mut hashes: Vec<[u8; 32]> = proofs.entries().map(|entry| *entry.hash).collect();
    let mut list: Vec<Vec<u8>> = proofs.entries().map(|entry| entry.proof.to_vec()).collect();
    let b = proofs.entries().position(|entry| entry.name == name("b.").view()).unwrap();
    change(b, &mut hashes, &mut list);
    whole[hashes_at..proofs_at].copy_from_slice(hashes.as_flattened());
    whole[proofs_at..proofs_at + list.len() * octets_of_proof].copy_from_slice(&list.concat());
    Proofs::read(&digested(whole)).unwrap()
}

#[test]
fn stored_proofs_that_prove_nothing() {
    let bench = nsec5();
    let faults = |proofs: &Proofs| bench.faults(&by_proofs(proofs));
    let fault = |reason| vec![("b.example.".to_owned(), NSEC5PROOF, reason)];
    let altered = damaged(&bench.proofs, |b, _, proofs| proofs[b][70] ^= 1);
    // Its hash is still that of the name itself.
    assert_eq!(faults(&altered), fault(Reason::BadProof));
    let garbage = damaged(&bench.proofs, |b, _, proofs| proofs[b].fill(0xff));
    assert_eq!(faults(&garbage), fault(Reason::BadProof));
    let swapped = damaged(&bench.proofs, |b, hashes, proofs| {
        (hashes[b], proofs[b]) = (hashes[0], proofs[0].clone());
    });
    assert_eq!(faults(&swapped), fault(Reason::ProofOfOtherName { hashed: name(&hashed("example.")) }));
    let hash = damaged(&bench.proofs, |b, hashes, _| hashes[b][0] ^= 1);
    assert_eq!(faults(&hash), fault(Reason::StoredHash));
    // With the key, the hash is computed: the rest is matched all the same.
    let both = Nsec5Evidence { proofs: Some(&garbage), key: Some(&vrf()) };
    assert_eq!(bench.faults(&both), fault(Reason::BadProof));
}

#[test]
fn stale_proofs() {
    let bench = nsec5();
    let stale = prove(&zone(&RECORDS.replace("b A", "older A")), &vrf(), Mechanism::Nsec5);
    let faults = bench.faults(&by_proofs(&stale));
    let expected = [
        ("b.example.".to_owned(), NSEC5PROOF, Reason::ProofMissing),
        ("older.example.".to_owned(), NSEC5PROOF, Reason::ProofExtra),
    ];
    assert_eq!(faults, expected);
    // Proofs of insecure delegations beside an opt-out chain that has no records of them.
    let opt_out = opt_out();
    let faults = opt_out.faults(&by_proofs(&bench.proofs));
    let owners: Vec<&str> = faults.iter().map(|fault| &*fault.0).collect();
    assert_eq!(owners, ["d.example.", "sub.lone.example.", "through.example."]);
    assert!(faults.iter().all(|fault| (fault.1, &fault.2) == (NSEC5PROOF, &Reason::ProofExtra)));
    let mut other_serial = bench.proofs.clone();
    other_serial.set_serial(6);
    let report = report_with(&bench.bench.contents(), &by_proofs(&other_serial));
    let expected = vec![VerifyWarning::ProofsSerial { stored: 6, zone: 7 }];
    assert_eq!((report.faults, report.warnings), (vec![], expected));
}

#[test]
fn proofs_of_other_keys_and_zones() {
    let bench = nsec5();
    let other = vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5);
    let proofs = prove(&zone(RECORDS), &other, Mechanism::Nsec5);
    let reason = Reason::ProofsOfOtherKey { tag: Nsec5Key::of(&other).tag() };
    assert_eq!(bench.faults(&by_proofs(&proofs)), [("example.".to_owned(), NSEC5PROOF, reason)]);
    let contents = read_zone("@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.\n", &name("other."));
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let reason = Reason::ProofsOfOtherZone { zone: name("other.") };
    assert_eq!(bench.faults(&by_proofs(&proofs)), [("example.".to_owned(), NSEC5PROOF, reason)]);
    // A VRF key that is not the chain's tells nothing.
    let report = report_with(&bench.bench.contents(), &by_key(&other));
    assert_eq!((report.faults, report.warnings), (vec![], vec![VerifyWarning::NamesNotMatched]));
}

/// A record that was left out of chain and proofs alike is missed by number.
#[test]
fn a_name_forgotten_by_chain_and_proofs() {
    let contents = zone(&RECORDS.replace("b A 192.0.2.1\n", ""));
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let mut bench = nsec5();
    bench.take_out("b.example.");
    let faults = bench.faults(&by_proofs(&proofs));
    let records = bench.records();
    let count = Reason::ChainCount { records, least: records + 1, most: records + 1 };
    let expected =
        [("example.".to_owned(), NSEC5, count), ("b.example.".to_owned(), NSEC5PROOF, Reason::ProofMissing)];
    assert_eq!(faults, expected);
}
