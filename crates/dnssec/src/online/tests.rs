//! Tests of key roles, prepared zones, stored proofs and the online signer.

use super::stored_proofs::StoredProofs;
use super::*;
use crate::denial::Mechanism;
use crate::denial::nsec5::{Nsec5Chain, Proofs, ProveOptions, prove_chain};
use crate::keys::{CdsSchedule, KeyPair, KeyRecord, KeySet, Nsec5Key};
use crate::rrsig::{Rrsig, push_signed_data};
use crate::sign::{SignOptions, sign};
use crate::verify::VerifyOptions;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, PrivateKey, PublicKey};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::{Contents, Image, ZoneFault, read};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const NOW: u32 = 1_750_000_000;
const RECORDS: &str =
    "host A 192.0.2.1\n*.w A 192.0.2.2\nx.y.z A 192.0.2.3\ncut NS ns.cut\nns.cut A 192.0.2.4";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn zone(records: &str) -> Contents {
    let text = format!(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n{records}\n"
    );
    read::read_text(text.as_bytes(), Path::new("test"), Some(&name("example."))).unwrap().contents
}

fn pair(flags: u16, algorithm: Algorithm, seed: u8) -> KeyPair {
    let secret = data_encoding::BASE64.encode(&[seed; 32]);
    let text = format!("Private-key-format: v1.3\nAlgorithm: {} (X)\nPrivateKey: {secret}\n", algorithm.0);
    KeyPair::new(name("example."), flags, PrivateKey::from_bind(&text).unwrap())
}

fn record(pair: &KeyPair) -> KeyRecord {
    KeyRecord::of(pair)
}

fn options(mechanism: Mechanism, all: &[&KeyPair], pairs: Vec<KeyPair>) -> OnlineOptions {
    let records = all.iter().map(|pair| record(pair)).collect();
    OnlineOptions { mechanism, records, pairs, validity: DEFAULT_VALIDITY, sync: CdsSchedule::default() }
}

fn at(now: u32) -> VerifyOptions {
    VerifyOptions { now: Some(now), ..VerifyOptions::default() }
}

fn key_set_options(all: &[&KeyPair], pairs: Vec<KeyPair>) -> KeySetOptions {
    KeySetOptions {
        records: all.iter().map(|pair| record(pair)).collect(),
        pairs,
        inception: NOW - 3600,
        expiration: NOW + 86_400,
        ttl: None,
        publish_cds: true,
        drop_other_dnskeys: false,
        withdrawn: Vec::new(),
        sync: CdsSchedule::default(),
    }
}

fn ksk() -> KeyPair {
    pair(257, Algorithm::ED25519, 1)
}

fn zsk() -> KeyPair {
    pair(256, Algorithm::ED25519, 2)
}

#[test]
fn the_key_set_may_be_signed_elsewhere() {
    let plain = zone(RECORDS);
    let signed = sign_key_set(&plain, &key_set_options(&[&ksk(), &zsk()], vec![ksk()])).unwrap();
    let apex = signed.nodes().next().unwrap();
    let types: Vec<Rtype> = apex.rrsets().map(|rrset| rrset.covered()).collect();
    let keys = [Rtype::DNSKEY, Rtype::DNSKEY, Rtype::CDS, Rtype::CDS, Rtype::CDNSKEY, Rtype::CDNSKEY];
    assert_eq!(types, [&[Rtype::NS, Rtype::SOA][..], &keys].concat());
    assert_eq!(signed.record_count(), plain.record_count() + 2 + 1 + 1 + 3);
    let with_zsk = || options(Mechanism::Compact, &[], vec![zsk()]);
    let prepared = prepare(signed.clone(), with_zsk(), &at(NOW)).unwrap();
    assert_eq!(prepared.contents().record_count(), signed.record_count());
    assert_eq!(prepared.keys().key_signing_tags().count(), 0);
    // An expired zone, and an altered zone.
    assert!(matches!(prepare(signed, with_zsk(), &at(NOW + 86_401)), Err(PrepareError::Faulty(_))));
    let other = sign_key_set(&plain, &key_set_options(&[&ksk(), &zsk()], vec![ksk()])).unwrap();
    let mut text = Vec::new();
    nonesuch_zone::write::push_part(&other, &mut text);
    let altered = String::from_utf8(text).unwrap().replace("3600\tIN\tCDS", "7200\tIN\tCDS");
    let altered = read::read_text(altered.as_bytes(), Path::new("test"), None).unwrap().contents;
    assert!(matches!(prepare(altered, with_zsk(), &at(NOW)), Err(PrepareError::Faulty(_))));
}

#[test]
fn a_key_set_needs_a_key_signing_key() {
    let plain = zone(RECORDS);
    let outcome = sign_key_set(&plain, &key_set_options(&[&ksk(), &zsk()], vec![zsk()]));
    let zone = name("example.");
    assert_eq!(outcome.unwrap_err(), KeySetSignError::NoSigner { zone, algorithm: Algorithm::ED25519 });
    let mut options = key_set_options(&[&ksk()], vec![ksk()]);
    options.expiration = options.inception;
    assert_eq!(sign_key_set(&plain, &options).unwrap_err(), KeySetSignError::Period);
}

#[test]
fn key_roles_depend_on_all_published_keys() {
    let plain = || zone(RECORDS);
    let error_of = |options: OnlineOptions| match prepare(plain(), options, &at(NOW)) {
        Err(PrepareError::Keys(error)) => error,
        other => panic!("{other:?}"),
    };
    let apex = name("example.");
    let compact = Mechanism::Compact;
    assert_eq!(error_of(options(compact, &[], vec![])), OnlineKeyError::NoKey(apex.clone()));
    let only_ksk = error_of(options(compact, &[&ksk(), &zsk()], vec![ksk()]));
    assert_eq!(only_ksk, OnlineKeyError::NoSigner { zone: apex.clone(), algorithm: Algorithm::ED25519 });
    let only_zsk = error_of(options(compact, &[&ksk(), &zsk()], vec![zsk()]));
    assert_eq!(only_zsk, OnlineKeyError::KeysNotSigned { zone: apex.clone() });
    let unpublished = error_of(options(compact, &[&ksk()], vec![ksk(), zsk()]));
    assert_eq!(unpublished, OnlineKeyError::NotPublished { zone: apex.clone(), tag: zsk().tag() });
    // RFC 4035 §2.2: the DNSKEY RRset is signed with each of its algorithms.
    let p256 = || pair(257, Algorithm::ECDSAP256SHA256, 3);
    let half = error_of(options(compact, &[&ksk(), &zsk(), &p256()], vec![zsk(), p256()]));
    assert_eq!(half, OnlineKeyError::KeysNotSignedBy { zone: apex.clone(), algorithm: Algorithm::ED25519 });
    // The server has no private key of this algorithm.
    let other = pair(256, Algorithm::ECDSAP256SHA256, 3);
    let missing = error_of(options(compact, &[&ksk(), &zsk(), &other], vec![ksk(), zsk()]));
    assert_eq!(missing, OnlineKeyError::NoSigner { zone: apex, algorithm: Algorithm::ECDSAP256SHA256 });
    let prepared =
        prepare(plain(), options(compact, &[&ksk(), &zsk()], vec![ksk(), zsk()]), &at(NOW)).unwrap();
    assert_eq!(prepared.keys().key_signing_tags().collect::<Vec<_>>(), [ksk().tag()]);
    let csk = prepare(plain(), options(compact, &[&zsk()], vec![zsk()]), &at(NOW)).unwrap();
    assert_eq!(csk.keys().key_signing_tags().count(), 0);
}

#[test]
fn offline_mechanisms_are_rejected_and_chains_are_removed() {
    let keys = KeySet::new(&name("example."), vec![ksk()]).unwrap();
    for stored_mechanism in [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let signed =
            sign(&zone(RECORDS), &keys, &SignOptions::new(stored_mechanism, NOW - 3600, NOW + 86_400))
                .unwrap();
        let rejected =
            prepare(signed.contents().clone(), options(stored_mechanism, &[], vec![ksk()]), &at(NOW));
        assert!(matches!(rejected, Err(PrepareError::NotOnline(_))));
        let prepared =
            prepare(signed.contents().clone(), options(Mechanism::WhiteLies, &[], vec![ksk()]), &at(NOW));
        let contents = prepared.unwrap().into_parts().0;
        let types: Vec<Rtype> =
            contents.nodes().flat_map(|node| node.rrsets()).map(|rrset| rrset.covered()).collect();
        assert!(!types.iter().any(|rtype| rtype.is_signature_or_chain()), "{types:?}");
        assert!(types.contains(&Rtype::DNSKEY));
        // The stored signatures of the data remain.
        let host = contents.find(name("host.example.").view()).unwrap();
        assert!(host.signatures(Rtype::A).is_some());
    }
}

#[test]
fn stored_proofs_are_found_by_name() {
    let records: Vec<String> =
        (0..40).map(|number| format!("n{number}.e{} A 192.0.2.1", number % 7)).collect();
    let contents = zone(&records.join("\n"));
    let key = VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, &[9; 32]).unwrap();
    let proofs = prove_chain(&contents, &key, &ProveOptions::new(Mechanism::Nsec5)).unwrap().0;
    let stored = StoredProofs::new(proofs.clone()).unwrap();
    assert_eq!(proofs.len(), 1 + 7 + 40);
    for entry in proofs.entries() {
        let full = entry.full_name(contents.apex().view());
        assert_eq!(stored.find(full.view()), Some((entry.hash, entry.proof)), "{full}");
    }
    for absent in ["a.example.", "zz.example.", "host.host.example.", "w.w.example."] {
        assert_eq!(stored.find(name(absent).view()), None, "{absent}");
    }
}

#[test]
fn a_prover_needs_the_key_and_proofs_of_its_zone() {
    let plain = zone(RECORDS);
    let key = |seed: u8| VrfPrivateKey::from_secret(VrfAlgorithm::P256_SHA256_TAI, &[seed; 32]).unwrap();
    let prove = |contents: &Contents, seed| {
        prove_chain(contents, &key(seed), &ProveOptions::new(Mechanism::Nsec5)).unwrap().0
    };
    let proofs = prove(&plain, 9);
    let alias = Algorithm::ED25519.nsec5_alias().unwrap();
    let keys = KeySet::new(&name("example."), vec![pair(257, alias, 1)]).unwrap();
    let options = SignOptions {
        nsec5: Some(Nsec5Chain { proofs: &proofs, keep_other_keys: false }),
        ..SignOptions::new(Mechanism::Nsec5, NOW - 3600, NOW + 86_400)
    };
    let signed = sign(&plain, &keys, &options).unwrap().into_contents();
    // The result is the same from the image as from the records.
    let new = |zone: &Contents, seed: u8, proofs: Option<Proofs>| {
        let by_image = Nsec5Zone::of_image(&Image::compile(zone).unwrap());
        let by_image = Nsec5Prover::for_zone(&by_image, key(seed), proofs.clone());
        let by_records = Nsec5Prover::new(zone, key(seed), proofs);
        assert_eq!(format!("{by_image:?}"), format!("{by_records:?}"));
        by_image
    };
    let prover = new(&signed, 9, Some(proofs.clone())).unwrap();
    assert_eq!(prover.stored_count(), proofs.len());
    assert!(matches!(new(&signed, 8, None), Err(ProverError::KeyNotInZone { .. })));
    // During a rollover both keys are published; the chain is of one of them.
    let kept = SignOptions {
        nsec5: Some(Nsec5Chain { proofs: &prove(&signed, 8), keep_other_keys: true }),
        ..SignOptions::new(Mechanism::Nsec5, NOW - 3600, NOW + 86_400)
    };
    let rolled = sign(&signed, &keys, &kept).unwrap().into_contents();
    assert!(new(&rolled, 8, None).is_ok());
    assert!(matches!(new(&rolled, 9, None), Err(ProverError::KeyNotOfChain { .. })));
    let foreign = prove(&plain, 8);
    assert!(matches!(new(&signed, 9, Some(foreign)), Err(ProverError::ForeignProofs { .. })));
    assert!(!format!("{prover:?}").contains('9'.to_string().repeat(2).as_str()));
}

#[test]
fn a_vrf_key_that_can_sign_the_zone_is_rejected() {
    let key = |seed: u8| VrfPrivateKey::from_secret(VrfAlgorithm::P256_SHA256_TAI, &[seed; 32]).unwrap();
    // The DNSKEY and a second VRF key of the zone have the same scalar; the chain is of a third
    // key.
    let pair = pair(257, Algorithm::ECDSAP256SHA256.nsec5_alias().unwrap(), 5);
    let hex = |octets: &[u8]| data_encoding::HEXUPPER.encode(octets);
    let dnskey = pair.dnskey_rdata();
    let mut text = String::from("$ORIGIN example.\n$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns.elsewhere.test.\n");
    for seed in [5, 9] {
        let rdata = Nsec5Key::of(&key(seed)).rdata().to_vec();
        text.push_str(&format!("@ TYPE{} \\# {} {}\n", Rtype::NSEC5KEY.0, rdata.len(), hex(&rdata)));
    }
    let mut expected = vec![];
    for (rtype, is_there) in [(Rtype::DNSKEY, false), (Rtype::DNSKEY, true), (Rtype::CDNSKEY, true)] {
        let record = format!("@ TYPE{} \\# {} {}\n", rtype.0, dnskey.len(), hex(&dnskey));
        let text = if is_there { format!("{text}{record}") } else { text.clone() };
        let zone = read::read_text(text.as_bytes(), Path::new("z"), None).unwrap();
        let by_image = Nsec5Zone::of_image(&Image::compile(&zone.contents).unwrap());
        for seed in [5, 9] {
            let outcomes = [
                Nsec5Prover::new(&zone.contents, key(seed), None).err(),
                Nsec5Prover::for_zone(&by_image, key(seed), None).err(),
            ];
            expected.clear();
            expected.resize(
                2,
                is_there.then(|| ProverError::SigningKey {
                    zone: "example.".parse().unwrap(),
                    tag: Nsec5Key::of(&key(5)).tag(),
                    dnskey: pair.tag(),
                }),
            );
            assert_eq!(outcomes.as_slice(), expected, "{rtype} {is_there} {seed}");
        }
    }
}

/// Signatures of the online signer verify under each key, with the labels of the owner.
#[test]
fn every_key_for_an_rrset_signs_it() {
    let other = pair(256, Algorithm::ECDSAP256SHA256, 3);
    let other_ksk = pair(257, Algorithm::ECDSAP256SHA256, 4);
    let all = [&ksk(), &zsk(), &other, &other_ksk];
    let pairs = vec![
        ksk(),
        zsk(),
        pair(256, Algorithm::ECDSAP256SHA256, 3),
        pair(257, Algorithm::ECDSAP256SHA256, 4),
    ];
    let prepared = prepare(zone(RECORDS), options(Mechanism::Compact, &all, pairs), &at(NOW)).unwrap();
    let keys = prepared.keys();
    let counters = Arc::new(SignerCounters::default());
    let mut signer = OnlineSigner::new(1 << 16, Arc::clone(&counters));
    for (owner, rtype, signers) in [
        ("host.example.", Rtype::A, [&all[1], &all[2]]),
        ("*.w.example.", Rtype::A, [&all[1], &all[2]]),
        ("example.", Rtype::DNSKEY, [&all[0], &all[3]]),
        ("host.example.", Rtype::DNSKEY, [&all[1], &all[2]]),
    ] {
        let rrset = RrsetToSign {
            owner: name(owner),
            rtype,
            ttl: 300,
            rdatas: vec![vec![192, 0, 2, 1], vec![192, 0, 2, 2]],
            generated_for: None,
        };
        let identity = [owner.as_bytes(), &rtype.0.to_be_bytes()];
        signer.begin_batch();
        assert_eq!(signer.signatures(keys, None, &identity, NOW, || rrset.clone()), None);
        signer.generate_pending(&[ZoneSigner { keys: Some(keys), prover: None }], NOW);
        let list = signer.signatures(keys, None, &identity, NOW, || unreachable!()).unwrap().to_vec();
        let mut rest = list.as_slice();
        for key in signers {
            let (length, tail) = rest.split_first_chunk().unwrap();
            let (rdata, tail) = tail.split_at(usize::from(u16::from_be_bytes(*length)));
            rest = tail;
            let fields = Rrsig::parse(rdata).unwrap();
            assert_eq!((fields.tag, fields.labels), (key.tag(), name(owner).view().rrsig_labels()));
            let mut data = Vec::new();
            push_signed_data(&fields, name(owner).view(), rrset.rdatas.iter().map(Vec::as_slice), &mut data);
            let public = PublicKey::parse(key.algorithm(), key.private().public_key()).unwrap();
            assert_eq!(public.verify(&data, fields.signature), Ok(()), "{owner} {rtype}");
        }
        assert!(rest.is_empty());
    }
    let counters = counters.read();
    assert_eq!(counters.operations.values().sum::<u64>(), 8);
    // Each was looked up once and generated; the second pass counts nothing.
    let of_first = Operation::SignData(all[1].algorithm());
    assert_eq!((counters.hits.len(), counters.misses), (0, BTreeMap::from([(of_first, 4)])));
}

/// A batch is bounded: further operations are rejected, and the next batch has capacity again.
#[test]
fn a_full_batch_rejects_further_operations() {
    let prepared =
        prepare(zone(RECORDS), options(Mechanism::Compact, &[&ksk()], vec![ksk()]), &at(NOW)).unwrap();
    let counters = Arc::new(SignerCounters::default());
    let mut signer = OnlineSigner::new(1 << 24, Arc::clone(&counters));
    let rrset = || RrsetToSign {
        owner: name("x.example."),
        rtype: Rtype::A,
        ttl: 1,
        rdatas: vec![vec![1; 4]],
        generated_for: None,
    };
    let count_found = |signer: &mut OnlineSigner| {
        let numbers = 0..MAX_PENDING as u32 + 3;
        let found = numbers.filter(|number| {
            signer.signatures(prepared.keys(), None, &[&number.to_be_bytes()], NOW, rrset).is_some()
        });
        found.count()
    };
    let zones = [ZoneSigner { keys: Some(prepared.keys()), prover: None }];
    signer.begin_batch();
    assert_eq!(count_found(&mut signer), 0);
    assert!(!signer.has_capacity());
    signer.generate_pending(&zones, NOW);
    assert_eq!(count_found(&mut signer), MAX_PENDING);
    signer.generate_pending(&zones, NOW);
    assert_eq!(count_found(&mut signer), MAX_PENDING + 3);
    let counters = counters.read();
    assert_eq!((counters.rejected, counters.batches), (3, 2));
    assert_eq!(counters.operations.values().sum::<u64>(), MAX_PENDING as u64 + 3);
}

/// The records fit in a message, but not together with the signature that is generated online.
#[test]
fn an_rrset_that_is_too_large_with_online_signatures_is_rejected() {
    let record = |number: usize| format!("t TXT \"{number:05}{}\"\n", "x".repeat(239));
    let all: String = (0..254).map(record).collect();
    let key = ksk();
    for (octets, is_taken) in [(90, true), (137, false)] {
        let zone = zone(&format!("{all}t TXT \"{}\"\n", "y".repeat(octets)));
        let options = options(Mechanism::Compact, &[&key], vec![ksk()]);
        let prepared = prepare(zone, options, &at(NOW));
        assert_eq!(prepared.is_ok(), is_taken);
        if let Err(error) = prepared {
            let PrepareError::Zone(ZoneFault::RrsetTooLarge {
                owner,
                rtype: Rtype::TXT,
                is_signed: true,
                ..
            }) = &error
            else {
                panic!("{error:?}")
            };
            assert_eq!(*owner, name("t.example."));
        }
    }
}
