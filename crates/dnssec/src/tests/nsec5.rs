//! NSEC5: sound chains with every VRF, an independent oracle, and faults of the chain, keys and
//! stored proofs.

mod oracle;

use super::*;
use crate::denial::nsec5::{
    Nsec5Error, ProofEntry, ProofsFileError, ProveOptions, ProveStatistics, chain, check_nsec5_requirements,
    prove_chain,
};
use crate::keys::{Nsec5Key, SEP, ZONE_KEY};
use crate::sign::SignError;
use crate::verify::VerifyWarning;
use nonesuch_crypto::DigestType;
use nonesuch_crypto::vrf::{
    SecretForm, VRF_ALGORITHMS, VrfAlgorithm, VrfPrivateKey, VrfPublicKey, proof_to_hash,
};

const BOTH: [Mechanism; 2] = [Mechanism::Nsec5, Mechanism::Nsec5OptOut];

/// Wildcards, one of which is an empty non-terminal; empty non-terminals, of which `lone` exists
/// only for an insecure delegation; a secure delegation, insecure delegations, glue; a DNAME with
/// data below it.
const RECORDS: &str = "ns A 192.0.2.1\nb A 192.0.2.1\n*.w A 192.0.2.1\nx.ent A 192.0.2.1\na.*.wild TXT \"t\"\n\
    d NS ns.d\nns.d A 192.0.2.9\nthrough NS ns.elsewhere.test.\nsub.lone NS ns.elsewhere.test.\n\
    s NS ns.elsewhere.test.\ns DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n\
    dn DNAME target.test.\nbelow.dn A 192.0.2.3\nMixed.Case TXT \"t\"\n";

fn alias() -> Algorithm {
    Algorithm::ED25519.nsec5_alias().unwrap()
}

/// A CSK with the alias algorithm number.
fn nsec5_keys(zone: &str) -> KeySet {
    KeySet::new(&name(zone), vec![key(zone, ZONE_KEY | SEP, alias(), 1)]).unwrap()
}

pub(super) fn vrf_of(algorithm: VrfAlgorithm, seed: u8) -> VrfPrivateKey {
    match algorithm.entry().unwrap().secret {
        SecretForm::RsaPrivateKey => VrfPrivateKey::generate(algorithm).unwrap(),
        _ => VrfPrivateKey::from_secret(algorithm, &[seed; 32]).unwrap(),
    }
}

/// The VRF key of the tests.
pub(super) fn vrf() -> VrfPrivateKey {
    vrf_of(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, 7)
}

/// The VRF hash of `owner` under [`vrf`].
pub(super) fn hash(owner: &str) -> [u8; 32] {
    let mut canonical = Vec::new();
    name(owner).view().push_canonical(&mut canonical);
    vrf().prove(&canonical, &mut Vec::new()).unwrap()
}

/// Owner of the NSEC5 record for `owner` in the zone `example.`.
pub(super) fn hashed(owner: &str) -> String {
    format!("{}.example.", String::from_utf8_lossy(&chain::label(&hash(owner))))
}

pub(super) fn prove(contents: &Contents, vrf: &VrfPrivateKey, mechanism: Mechanism) -> Proofs {
    prove_chain(contents, vrf, &ProveOptions::new(mechanism)).unwrap().0
}

fn sign_with(
    contents: &Contents,
    mechanism: Mechanism,
    chain: Nsec5Chain<'_>,
) -> Result<Contents, SignError> {
    let keys = nsec5_keys(&contents.apex().to_string());
    let options = SignOptions { nsec5: Some(chain), ..options(mechanism) };
    sign(contents, &keys, &options).map(crate::Signed::into_contents)
}

fn sign_nsec5(contents: &Contents, mechanism: Mechanism, proofs: &Proofs) -> Contents {
    sign_with(contents, mechanism, Nsec5Chain { proofs, keep_other_keys: false }).unwrap()
}

fn report_with(contents: &Contents, evidence: &Nsec5Evidence<'_>) -> Report {
    verify_with(contents, &VerifyOptions { now: Some(NOW), ..VerifyOptions::default() }, evidence)
}

fn by_proofs(proofs: &Proofs) -> Nsec5Evidence<'_> {
    Nsec5Evidence { proofs: Some(proofs), key: None }
}

fn by_key(key: &VrfPrivateKey) -> Nsec5Evidence<'_> {
    Nsec5Evidence { proofs: None, key: Some(key) }
}

/// Asserts that the zone is sound: with stored proofs, with the key, with both, and with neither.
#[track_caller]
fn assert_sound_in_all_ways(contents: &Contents, vrf: &VrfPrivateKey, proofs: &Proofs, mechanism: Mechanism) {
    let both = Nsec5Evidence { proofs: Some(proofs), key: Some(vrf) };
    for evidence in [by_proofs(proofs), by_key(vrf), both] {
        let report = report_with(contents, &evidence);
        assert_eq!((report.faults, report.warnings), (vec![], vec![]), "{}", text(contents));
        assert_eq!(report.mechanism, Some(mechanism));
    }
    let report = report(contents);
    assert_eq!((report.faults, report.warnings), (vec![], vec![VerifyWarning::NamesNotMatched]));
}

#[test]
fn every_vrf_makes_sound_chains() {
    let contents = zone(RECORDS);
    for entry in &VRF_ALGORITHMS {
        let vrf = vrf_of(entry.algorithm, 9);
        for mechanism in BOTH {
            let proofs = prove(&contents, &vrf, mechanism);
            let signed = sign_nsec5(&contents, mechanism, &proofs);
            assert_sound_in_all_ways(&signed, &vrf, &proofs, mechanism);
            // The zone is the same after it is written and read. Signing it again generates the
            // same chain.
            let again = read_zone(&text(&signed), contents.apex());
            assert_eq!(text(&again), text(&signed));
            let proved = prove(&again, &vrf, mechanism);
            assert_eq!(text(&sign_nsec5(&again, mechanism, &proved)), text(&signed));
        }
    }
}

/// Zone files contain the form of RFC 3597, with the mnemonic form as a comment. The reader accepts
/// both.
#[test]
fn zone_text_is_read_by_others() {
    let contents = zone(RECORDS);
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let signed = text(&sign_nsec5(&contents, Mechanism::Nsec5, &proofs));
    let of_type =
        |rtype: &str| signed.lines().filter(|line| line.contains(&format!("\tIN\t{rtype}\t"))).count();
    assert_eq!((of_type("TYPE65280"), of_type("NSEC5"), of_type("TYPE65281")), (proofs.len(), 0, 1));
    let record = signed.lines().find(|line| line.contains("\tIN\tTYPE65280\t")).unwrap();
    let (fields, comment) = record.split_once(" ; NSEC5 ").unwrap();
    assert!(fields.contains("\\# "), "{record}");
    // The zone is the same if the mnemonic form replaces the generic one.
    let owner_and_ttl = fields.split('\t').take(3).collect::<Vec<_>>().join("\t");
    let mnemonic = signed.replace(record, &format!("{owner_and_ttl}\tNSEC5\t{comment}"));
    assert_ne!(mnemonic, signed);
    assert_eq!(text(&read_zone(&mnemonic, contents.apex())), signed);
}

#[test]
fn the_key_stands_at_the_apex_with_the_ttl_of_the_dnskeys() {
    let contents = zone("");
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let chain = Nsec5Chain { proofs: &proofs, keep_other_keys: false };
    let wanted = SignOptions { nsec5: Some(chain), dnskey_ttl: Some(77), ..options(Mechanism::Nsec5) };
    let signed = sign(&contents, &nsec5_keys("example."), &wanted).unwrap().into_contents();
    let rrset = signed.apex_rrset(Rtype::NSEC5KEY).unwrap();
    assert_eq!((rrset.ttl(), rrset.rdatas().next()), (77, Some(Nsec5Key::of(&vrf()).rdata())));
    assert!(signed_types(&signed, "example.").contains(&Rtype::NSEC5KEY));
    let chain_ttls = signed.nodes().filter_map(|node| node.rrset(Rtype::NSEC5)).map(|rrset| rrset.ttl());
    assert_eq!(chain_ttls.collect::<Vec<_>>(), [900]);
}

/// The number of NSEC5 is for private use: other data of the zone with this number remain
/// unchanged.
#[test]
fn private_data_under_the_same_numbers_stay() {
    let contents =
        zone("p TYPE65280 \\# 3 010203\np TYPE65281 \\# 0\nq TYPE65282 \\# 1 00\n@ TYPE65281 \\# 1 63");
    for mechanism in NSEC_AND_NSEC3 {
        let again = signed(&signed(&contents, mechanism), mechanism);
        for (owner, rtype) in [("p", 65280), ("p", 65281), ("q", 65282), ("@", 65281)] {
            let owner = if owner == "@" { "example.".to_owned() } else { format!("{owner}.example.") };
            assert!(node(&again, &owner).has(Rtype(rtype)), "{mechanism} {owner} {rtype}");
        }
    }
    let contents = zone("p TYPE65280 \\# 3 010203\np TYPE65281 \\# 0\nq TYPE65282 \\# 1 00");
    for mechanism in BOTH {
        let proofs = prove(&contents, &vrf(), mechanism);
        let signed = sign_nsec5(&contents, mechanism, &proofs);
        assert_sound_in_all_ways(&signed, &vrf(), &proofs, mechanism);
    }
}

/// A change from NSEC5 to NSEC and back leaves nothing of the other chain.
#[test]
fn chains_are_swapped() {
    let contents = zone(RECORDS);
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let by_nsec5 = sign_nsec5(&contents, Mechanism::Nsec5, &proofs);
    let sign_plainly = |contents: &Contents, mechanism| {
        sign(contents, &nsec5_keys("example."), &options(mechanism)).unwrap().into_contents()
    };
    for mechanism in NSEC_AND_NSEC3 {
        let other = sign_plainly(&by_nsec5, mechanism);
        assert_sound_with_aliases(&other, &nsec5_keys("example."), mechanism);
        assert_eq!(text(&other), text(&sign_plainly(&contents, mechanism)));
        let proofs = prove(&other, &vrf(), Mechanism::Nsec5);
        assert_eq!(text(&sign_nsec5(&other, Mechanism::Nsec5, &proofs)), text(&by_nsec5));
    }
}

/// A DNAME at the apex occludes everything but the chain.
#[test]
fn a_dname_at_the_apex() {
    let contents = zone("@ DNAME target.test.\nbelow A 192.0.2.1");
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let signed = sign_nsec5(&contents, Mechanism::Nsec5, &proofs);
    assert_eq!(proofs.len(), 1);
    assert_sound_in_all_ways(&signed, &vrf(), &proofs, Mechanism::Nsec5);
    nonesuch_zone::Image::compile(&signed).unwrap();
}

#[test]
fn images_are_compiled_of_such_zones() {
    let contents = zone(RECORDS);
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let image = nonesuch_zone::Image::compile(&sign_nsec5(&contents, Mechanism::Nsec5, &proofs)).unwrap();
    assert_eq!(image.serial(), 7);
}

#[test]
fn apexes_of_202_octets_fit_and_longer_ones_are_refused() {
    let apex = |octets: usize| {
        // Three labels of 63 octets, one with the remaining octets, and the root.
        let rest = octets - 3 * 64 - 1 - 1;
        format!("{0}.{0}.{0}.{1}.", "a".repeat(63), "b".repeat(rest))
    };
    let text = "@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.\n";
    let contents = read_zone(text, &name(&apex(202)));
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let signed = sign_nsec5(&contents, Mechanism::Nsec5, &proofs);
    assert_sound_in_all_ways(&signed, &vrf(), &proofs, Mechanism::Nsec5);
    let contents = read_zone(text, &name(&apex(203)));
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let chain = Nsec5Chain { proofs: &proofs, keep_other_keys: false };
    let expected = Nsec5Error::ApexTooLong { zone: contents.apex().clone() };
    assert_eq!(sign_with(&contents, Mechanism::Nsec5, chain).unwrap_err(), SignError::Nsec5(expected));
}

#[test]
fn plain_numbers_are_refused() {
    let contents = zone("");
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let wanted = SignOptions {
        nsec5: Some(Nsec5Chain { proofs: &proofs, keep_other_keys: false }),
        ..options(Mechanism::Nsec5)
    };
    let error = sign(&contents, &csk_of("example."), &wanted).unwrap_err();
    assert!(
        matches!(&error, SignError::Nsec5(Nsec5Error::NotAliasAlgorithm { rtype: Rtype::DNSKEY, .. })),
        "{error}"
    );
    assert!(error.to_string().contains("nonesuch key generate example. --nsec5"), "{error}");
    assert!(check_nsec5_requirements(contents.apex(), &csk_of("example.")).is_err());
    let cases = [("CDS 1 13 2 00", Some(Rtype::CDS)), ("CDNSKEY 257 3 15 AAAA", Some(Rtype::CDNSKEY))];
    // RFC 8078 §4: the request to delete the DS records has no algorithm.
    for (record, expected) in cases.into_iter().chain([("CDS 0 0 0 00", None), ("CDNSKEY 0 3 0 AA==", None)])
    {
        let contents = zone(&format!("@ {record}"));
        let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
        let outcome =
            sign_with(&contents, Mechanism::Nsec5, Nsec5Chain { proofs: &proofs, keep_other_keys: false });
        match (outcome, expected) {
            (Ok(signed), None) => assert_sound_in_all_ways(&signed, &vrf(), &proofs, Mechanism::Nsec5),
            (Err(SignError::Nsec5(Nsec5Error::NotAliasAlgorithm { rtype, .. })), Some(expected))
                if rtype == expected => {}
            (outcome, _) => panic!("{record}: {outcome:?}"),
        }
    }
}

/// A P-256 signing key and VRF key with the same scalar.
const ONE_SCALAR: u8 = 21;

fn p256_keys(seed: u8) -> KeySet {
    let alias = Algorithm::ECDSAP256SHA256.nsec5_alias().unwrap();
    KeySet::new(&name("example."), vec![key("example.", ZONE_KEY | SEP, alias, seed)]).unwrap()
}

#[test]
fn a_vrf_key_that_signs_is_refused_by_the_signer() {
    let contents = zone(RECORDS);
    let twin = vrf_of(VrfAlgorithm::P256_SHA256_TAI, ONE_SCALAR);
    let proofs = prove(&contents, &twin, Mechanism::Nsec5);
    let sign_by = |keys: &KeySet, contents: &Contents, proofs: &Proofs| {
        let nsec5 = Some(Nsec5Chain { proofs, keep_other_keys: true });
        sign(contents, keys, &SignOptions { nsec5, ..options(Mechanism::Nsec5) })
    };
    assert!(sign_by(&p256_keys(22), &contents, &proofs).is_ok());
    let keys = p256_keys(ONE_SCALAR);
    let (tag, dnskey) = (Nsec5Key::of(&twin).tag(), keys.keys()[0].tag());
    let expected = SignError::Nsec5(Nsec5Error::SigningKey { zone: name("example."), tag, dnskey });
    assert_eq!(sign_by(&keys, &contents, &proofs).unwrap_err(), expected);
    // A key of the zone that is stored next to the VRF key of the chain, and one with a private
    // half elsewhere.
    let public = data_encoding::BASE64.encode(keys.keys()[0].private().public_key());
    let kept =
        zone(&format!("{RECORDS}@ TYPE65281 \\# 65 01{}", data_encoding::HEXUPPER.encode(twin.public_key())));
    let others = prove(&kept, &vrf(), Mechanism::Nsec5);
    let kept_beside = sign_by(&keys, &kept, &others);
    assert!(kept.apex_rrset(Rtype::NSEC5KEY).is_some());
    assert_eq!(kept_beside.unwrap_err(), expected);
    let foreign = zone(&format!("{RECORDS}@ DNSKEY 257 3 229 {public}"));
    let proofs = prove(&foreign, &twin, Mechanism::Nsec5);
    assert_eq!(sign_by(&p256_keys(22), &foreign, &proofs).unwrap_err(), expected);
}

#[test]
fn a_vrf_key_that_signs_is_a_fault() {
    let contents = zone(RECORDS);
    let vrf = vrf_of(VrfAlgorithm::P256_SHA256_TAI, ONE_SCALAR);
    let mut bench = Bench::new(&contents, p256_keys(ONE_SCALAR), Mechanism::Nsec5);
    let hex = data_encoding::HEXUPPER.encode(vrf.public_key());
    bench.add(&format!("example. 3600 IN TYPE{} \\# 65 01{hex}", Rtype::NSEC5KEY.0));
    bench.sign_again("example.", Rtype::NSEC5KEY, |_| {});
    let (tag, dnskey) = (Nsec5Key::of(&vrf).tag(), bench.keys.keys()[0].tag());
    let reason = FaultReason::SigningVrfKey { tag, dnskey };
    bench.assert_faults(&[("example.", Some(Rtype::NSEC5KEY), reason)]);
}

#[test]
fn proofs_of_other_names_make_no_chain() {
    let contents = zone(RECORDS);
    let foreign = SignError::Nsec5(Nsec5Error::ForeignProofs { zone: name("example.") });
    let none = sign(&contents, &nsec5_keys("example."), &options(Mechanism::Nsec5)).unwrap_err();
    assert_eq!(none, SignError::Nsec5(Nsec5Error::NoProofs));
    for other in ["", "b A 192.0.2.1", &RECORDS.replace("b A", "c A"), &format!("{RECORDS}zz A 192.0.2.1")] {
        let proofs = prove(&zone(other), &vrf(), Mechanism::Nsec5);
        let chain = Nsec5Chain { proofs: &proofs, keep_other_keys: false };
        assert_eq!(sign_with(&contents, Mechanism::Nsec5, chain).unwrap_err(), foreign);
    }
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5OptOut);
    let chain = Nsec5Chain { proofs: &proofs, keep_other_keys: false };
    assert_eq!(sign_with(&contents, Mechanism::Nsec5, chain).unwrap_err(), foreign);
}

#[test]
fn stored_proofs_serve_again() {
    let contents = zone(RECORDS);
    let stored = prove(&contents, &vrf(), Mechanism::Nsec5);
    let changed = zone(&format!("{}new.ent A 192.0.2.1\n", RECORDS.replace("b A 192.0.2.1\n", "")));
    let again = |vrf: &VrfPrivateKey, stored: &Proofs, mechanism: Mechanism| {
        let options = ProveOptions { stored: Some(stored), ..ProveOptions::new(mechanism) };
        let (proofs, statistics) = prove_chain(&changed, vrf, &options).unwrap();
        assert_eq!(proofs, prove(&changed, vrf, mechanism));
        statistics
    };
    let names = stored.len() as u64;
    assert_eq!(again(&vrf(), &stored, Mechanism::Nsec5), ProveStatistics { generated: 1, reused: names - 1 });
    // The three insecure delegations are omitted.
    assert_eq!(
        again(&vrf(), &stored, Mechanism::Nsec5OptOut),
        ProveStatistics { generated: 1, reused: names - 4 }
    );
    let other = vrf_of(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, 8);
    assert_eq!(again(&other, &stored, Mechanism::Nsec5), ProveStatistics { generated: names, reused: 0 });
    // The same secret in the other suite of the curve is another key.
    let other = vrf_of(VrfAlgorithm::EDWARDS25519_SHA512_TAI, 7);
    assert_eq!(again(&other, &stored, Mechanism::Nsec5), ProveStatistics { generated: names, reused: 0 });
}

/// Rollover: the next key is published together with the chain of the old key.
#[test]
fn other_keys_are_kept_when_asked() {
    let next = vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5);
    let hex = data_encoding::HEXLOWER.encode(Nsec5Key::of(&next).rdata());
    let contents = zone(&format!("{RECORDS}@ TYPE65281 \\# 65 {hex}"));
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let keys = |keep_other_keys| {
        let signed =
            sign_with(&contents, Mechanism::Nsec5, Nsec5Chain { proofs: &proofs, keep_other_keys }).unwrap();
        assert_sound_in_all_ways(&signed, &vrf(), &proofs, Mechanism::Nsec5);
        signed.apex_rrset(Rtype::NSEC5KEY).unwrap().count()
    };
    assert_eq!((keys(false), keys(true)), (1, 2));
    // A key with the same tag as the key of the chain. It has an unknown algorithm, and its other
    // octets supply the rest of the sum.
    let tag = Nsec5Key::of(&vrf()).tag();
    let twin = twin_of(tag);
    let contents = zone(&format!("@ TYPE65281 \\# 4 {}", data_encoding::HEXLOWER.encode(&twin)));
    let proofs = prove(&contents, &vrf(), Mechanism::Nsec5);
    let error = sign_with(&contents, Mechanism::Nsec5, Nsec5Chain { proofs: &proofs, keep_other_keys: true })
        .unwrap_err();
    assert_eq!(error, SignError::Nsec5(Nsec5Error::SameTag { tag }));
}

/// NSEC5KEY RDATA of the unknown algorithm 99 with this tag.
pub(super) fn twin_of(tag: u16) -> [u8; 4] {
    let [high, low] = [0x63, 0];
    // The sum of two words, plus the carry.
    let first = u16::from_be_bytes([high, low]);
    let second = if tag >= first { tag - first } else { tag.wrapping_sub(first).wrapping_sub(1) };
    let [a, b] = second.to_be_bytes();
    let rdata = [high, low, a, b];
    assert_eq!(Nsec5Key::from_rdata(&rdata).unwrap().tag(), tag);
    rdata
}

pub(super) fn octets(proofs: &Proofs) -> Vec<u8> {
    let mut octets = Vec::new();
    proofs.write_to(&mut octets).unwrap();
    octets
}

/// Appends the correct digest to changed octets.
pub(super) fn digested(mut octets: Vec<u8>) -> Vec<u8> {
    octets.truncate(octets.len() - 32);
    let digest = DigestType::SHA256.digest(&[&octets]).unwrap();
    octets.extend_from_slice(&digest);
    octets
}

/// The file of proofs with other hashes and proofs.
pub(super) fn altered(proofs: &Proofs, change: impl FnOnce(&mut [[u8; 32]], &mut [Vec<u8>])) -> Proofs {
    let mut whole = octets(proofs);
    let octets_of_proof = proofs.entries().next().unwrap().proof.len();
    // After the proofs follow the five octets for a missing seal, and the digest.
    let proofs_at = whole.len() - 32 - 5 - proofs.len() * octets_of_proof;
    let hashes_at = proofs_at - proofs.len() * 32;
    let mut hashes: Vec<[u8; 32]> = proofs.entries().map(|entry| *entry.hash).collect();
    let mut list: Vec<Vec<u8>> = proofs.entries().map(|entry| entry.proof.to_vec()).collect();
    change(&mut hashes, &mut list);
    whole[hashes_at..proofs_at].copy_from_slice(hashes.as_flattened());
    whole[proofs_at..proofs_at + list.len() * octets_of_proof].copy_from_slice(&list.concat());
    Proofs::read(&digested(whole)).unwrap()
}

/// Stored proofs are verified in batches: the report names exactly the modified proofs, each with
/// its own fault.
#[test]
fn many_stored_proofs_are_judged_as_each_alone() {
    let records: String = (0..600).map(|number| format!("n{number} A 192.0.2.1\n")).collect();
    let contents = zone(&records);
    for algorithm in [VrfAlgorithm::P256_SHA256_TAI, VrfAlgorithm::EDWARDS25519_SHA512_ELL2] {
        let vrf = vrf_of(algorithm, 9);
        let public = VrfPublicKey::parse(algorithm, vrf.public_key()).unwrap();
        let proofs = prove(&contents, &vrf, Mechanism::Nsec5);
        let signed = sign_nsec5(&contents, Mechanism::Nsec5, &proofs);
        let proofs = altered(&proofs, |hashes, proofs| {
            for place in (0..proofs.len()).step_by(7) {
                match place % 4 {
                    0 => hashes[place][5] ^= 1,
                    1 => proofs[place][place % 80] ^= 4,
                    2 => proofs[place].fill(0xff),
                    _ => (hashes[place], proofs[place]) = (hashes[place + 1], proofs[place + 1].clone()),
                }
            }
        });
        let good = |hash: &[u8; 32]| {
            proofs.entries().any(|entry| entry.hash == hash && judge(&public, entry).is_none())
        };
        let expected: Vec<Fault> = proofs
            .entries()
            .filter_map(|entry| {
                let reason = match judge(&public, entry)? {
                    FaultReason::BadProof => match proof_to_hash(algorithm, entry.proof) {
                        Ok(hash) if good(&hash) => {
                            let owner = format!("{}.example.", String::from_utf8_lossy(&chain::label(&hash)));
                            FaultReason::ProofOfOtherName { hashed: name(&owner) }
                        }
                        _ => FaultReason::BadProof,
                    },
                    other => other,
                };
                let owner = entry.full_name(contents.apex().view());
                Some(Fault { owner, rtype: Some(Rtype::NSEC5PROOF), reason })
            })
            .collect();
        assert!(expected.len() > 80);
        let report = report_with(&signed, &by_proofs(&proofs));
        let found: Vec<Fault> =
            report.faults.into_iter().filter(|fault| fault.rtype == Some(Rtype::NSEC5PROOF)).collect();
        assert_eq!(found, expected);
    }
}

/// The fault of one stored proof, which is verified separately; `None` if it is valid.
fn judge(public: &VrfPublicKey, entry: ProofEntry<'_>) -> Option<FaultReason> {
    let mut canonical = Vec::new();
    entry.full_name(name("example.").view()).view().push_canonical(&mut canonical);
    match public.verify(&canonical, entry.proof) {
        Ok(hash) => (hash != *entry.hash).then_some(FaultReason::StoredHashMismatch),
        Err(_) => Some(FaultReason::BadProof),
    }
}

#[test]
fn files_of_proofs_keep_everything() {
    for entry in &VRF_ALGORITHMS {
        let mut proofs = prove(&zone(RECORDS), &vrf_of(entry.algorithm, 3), Mechanism::Nsec5);
        proofs.set_serial(0xfedc_ba98);
        let read = Proofs::read(&octets(&proofs)).unwrap();
        assert_eq!((read.serial(), &read), (0xfedc_ba98, &proofs));
        assert_eq!(read.entries().count(), read.len());
        let first = read.entries().next().unwrap();
        assert!(first.name.is_root() && first.proof.len() == entry.proof_octets);
    }
}

#[test]
fn damaged_files_of_proofs_are_refused() {
    let whole = octets(&prove(&zone(RECORDS), &vrf(), Mechanism::Nsec5));
    assert_eq!(Proofs::read(&[]), Err(ProofsFileError::NotProofs));
    assert_eq!(Proofs::read(b"NSEC5PRE"), Err(ProofsFileError::NotProofs));
    let changed = |at: usize, octet: u8| {
        let mut octets = whole.clone();
        octets[at] = octet;
        octets
    };
    assert_eq!(Proofs::read(&changed(9, 2)), Err(ProofsFileError::Version(2)));
    for length in 8..whole.len() {
        assert_eq!(Proofs::read(&whole[..length]), Err(ProofsFileError::Damaged), "{length}");
    }
    for (at, octet) in whole.iter().enumerate().skip(10) {
        assert_eq!(Proofs::read(&changed(at, octet ^ 4)), Err(ProofsFileError::Damaged), "{at}");
    }
    // With the correct digest: name of the zone, key, numbers and names are checked all the same.
    let key_at = 11 + usize::from(whole[10]);
    let unknown = Err(ProofsFileError::Algorithm(VrfAlgorithm(77)));
    assert_eq!(Proofs::read(&digested(changed(key_at + 2, 77))), unknown);
    for at in [10, 11, key_at, key_at + 1, key_at + 2 + 33 + 5, key_at + 2 + 33 + 9, key_at + 2 + 33 + 17] {
        for octet in [0, 1, b'Z', 0xff] {
            let read = Proofs::read(&digested(changed(at, octet)));
            assert!(read.is_err() || octet == whole[at], "{at} {octet}");
        }
    }
}

/// Information about a zone without verification, and the differences after a rollover of the VRF
/// key.
#[test]
fn facts_statistics_and_differences() {
    use crate::difference::{data_changes, difference};
    use crate::statistics::Statistics;
    let contents = zone(RECORDS);
    let next = vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5);
    for mechanism in BOTH {
        let proofs = prove(&contents, &vrf(), mechanism);
        let signed = sign_nsec5(&contents, mechanism, &proofs);
        let found = Statistics::count(&signed, NOW);
        let denial = found.denial.clone().unwrap();
        let (tag, records) = (Nsec5Key::of(&vrf()).tag(), proofs.len() as u64);
        assert_eq!((denial.mechanism, denial.records), (mechanism, records));
        assert_eq!(denial.opt_out_records, if mechanism.is_opt_out() { records } else { 0 });
        // `w` and `wild`.
        assert_eq!(denial.wildcard_records, 2);
        let key = denial.vrf_key().unwrap();
        let expected = (tag, VrfAlgorithm::EDWARDS25519_SHA512_ELL2, records);
        assert_eq!((key.tag, key.algorithm, key.records), expected);
        let title = mechanism.entry().title;
        assert_eq!(denial.to_string(), format!("{title}, key {tag} {}", key.algorithm));
        // Hashed owners are not names of the zone.
        let plain = Statistics::count(&contents, NOW).names;
        let names = found.names;
        assert_eq!((names.hashed, names.owners), (records, plain.owners + records));
        assert_eq!((names.authoritative, names.wildcards), (plain.authoritative, plain.wildcards));
        assert_eq!(names.empty_non_terminals, plain.empty_non_terminals);
        assert_eq!(found.chain_octets, found.octets_of(|rtype| rtype == Rtype::NSEC5));

        let proofs = prove(&contents, &next, mechanism);
        let rolled = sign_nsec5(&contents, mechanism, &proofs);
        assert!(data_changes(&signed, &rolled).is_empty());
        let differences = difference(&signed, &rolled);
        assert_eq!((differences.chain.removed, differences.chain.added), (records, records));
        assert_eq!(differences.apex_types, [Rtype::NSEC5KEY]);
        let tags = differences.denial.map(|denial| denial.unwrap().vrf_key().unwrap().tag);
        assert_eq!(tags, [tag, Nsec5Key::of(&next).tag()]);
        assert!(difference(&signed, &signed).is_empty());
    }
}
