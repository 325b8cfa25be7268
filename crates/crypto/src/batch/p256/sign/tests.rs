//! Signatures of batches: without randomness they are those of RFC 6979, and aws-lc always accepts
//! them.

use aws_lc_rs::hmac;
use data_encoding::HEXUPPER;
use proptest::prelude::*;

use super::*;
use crate::freed::{assert_wiped, memory_freed_by, octets_of};
use crate::p256::{ORDER, multiply_base, with_portable_arithmetic};
use crate::{Algorithm, BadSignature, PrivateKey, PublicKey, sign_batch};

const ALGORITHM: Algorithm = Algorithm::ECDSAP256SHA256;

/// The key of RFC 6979, appendix A.2.5.
const KEY: &str = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721";

fn octets(hex: &str) -> Vec<u8> {
    HEXUPPER.decode(hex.as_bytes()).unwrap()
}

fn private(scalar: &[u8]) -> PrivateKey {
    let scalar = data_encoding::BASE64.encode(scalar);
    PrivateKey::from_bind(&format!("Private-key-format: v1.3\nAlgorithm: 13\nPrivateKey: {scalar}\n"))
        .unwrap()
}

#[test]
fn rfc6979_appendix_a_2_5() {
    let key = BatchKey::new(&octets(KEY)).unwrap();
    let expected = [
        "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
        "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
        "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
        "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083",
    ];
    let mut out = vec![7];
    let mut workspace = SecretWorkspace::default();
    sign_with(&[(&key, b"sample"), (&key, b"test")], &[&[], &[]], &mut workspace, &mut out).unwrap();
    assert_eq!(HEXUPPER.encode(&out[1..]), expected.concat());
    // The same signature in another batch.
    out.clear();
    sign_with(&[(&key, b"test")], &[&[]], &mut workspace, &mut out).unwrap();
    assert_eq!(HEXUPPER.encode(&out), expected[2..].concat());
}

/// Section 3.2 with section 3.6, step by step.
fn nonce(secret: &[u8], digest: &[u8], extra: &[u8]) -> Vec<u8> {
    let hmac = |key: &[u8], message: &[u8]| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
    };
    let (mut k, mut v) = (vec![0; 32], vec![1; 32]);
    for octet in [0, 1] {
        k = hmac(&k, &[&v, &[octet][..], secret, digest, extra].concat());
        v = hmac(&k, &v);
    }
    hmac(&k, &v)
}

#[test]
fn extra_input_makes_other_nonces() {
    let secret = octets(KEY);
    let scalar = Scalar::from_octets(&secret.clone().try_into().unwrap()).unwrap();
    let digest = Scalar::from_octets_reduced(&sha256(b"sample"));
    for extra in [&[][..], &[1], &[0; 32], &[0xff; 32]] {
        let found = nonce_of_digest(&scalar, digest, extra).unwrap();
        assert_eq!(found.to_octets().as_slice(), nonce(&secret, &digest.to_octets(), extra));
    }
    assert!(nonce_of_digest(&scalar, digest, &[0; 33]).is_none());
}

/// With the same additional input, batches of every size have the same signatures as the scalar
/// code and as single signatures, octet for octet, with one key and with many.
#[test]
fn batches_sign_alike_with_and_without_lanes() {
    let key = BatchKey::new(&octets(KEY)).unwrap();
    let others: Vec<BatchKey> = (1..=40_u8).filter_map(|octet| BatchKey::new(&[octet; 32])).collect();
    let messages: Vec<[u8; 2]> = (0..40).map(|index| [index, 1]).collect();
    let messages: Vec<KeyedMessage<'_>> = messages
        .iter()
        .zip(&others)
        .map(|(message, other)| (if message[0] < 20 { &key } else { other }, &message[..]))
        .collect();
    for size in 1..=messages.len() {
        let sign = || {
            let mut out = Vec::new();
            let (messages, mut workspace) = (&messages[..size], SecretWorkspace::default());
            sign_with(messages, &vec![&[9; 32][..]; size], &mut workspace, &mut out).unwrap();
            out
        };
        let found = sign();
        assert_eq!(found, with_portable_arithmetic(sign));
        let mut last = Vec::new();
        let workspace = &mut SecretWorkspace::default();
        sign_with(&messages[size - 1..size], &[&[9; 32]], workspace, &mut last).unwrap();
        assert_eq!(found[(size - 1) * SIGNATURE_OCTETS..], last);
    }
}

/// Two signatures over one message have different nonces, and therefore different values of r.
#[test]
fn signatures_are_random() {
    let key = private(&octets(KEY));
    let mut out = Vec::new();
    sign_batch(&key, &[&b"sample"[..]; 64], &mut out).unwrap();
    let mut all: Vec<_> = out.chunks_exact(SIGNATURE_OCTETS).map(|signature| &signature[..32]).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 64);
}

#[test]
fn scalars_out_of_range_are_no_keys() {
    let mut below = ORDER;
    below[31] -= 1;
    assert!(BatchKey::new(&below).is_some());
    let bad: [&[u8]; 5] = [&[], &[1; 31], &[1; 33], &[0; 32], &ORDER];
    for octets in bad {
        assert!(BatchKey::new(octets).is_none(), "{octets:?}");
    }
}

/// Private keys of P-384 have 48 octets; their batches are signed one by one.
#[test]
fn other_curves_have_no_batch_key() {
    let key = PrivateKey::generate(Algorithm::ECDSAP384SHA384, None).unwrap();
    let public = PublicKey::parse(key.algorithm(), key.public_key()).unwrap();
    let mut out = Vec::new();
    sign_batch(&key, &[&b"sample"[..]; 20], &mut out).unwrap();
    assert_eq!(out.len(), 20 * 96);
    assert!(out.chunks_exact(96).all(|signature| public.verify(b"sample", signature).is_ok()));
}

fn scalars() -> impl Strategy<Value = [u8; 32]> {
    let mut largest = ORDER;
    largest[31] -= 1;
    let mut smallest = [0; 32];
    smallest[31] = 1;
    let random =
        any::<[u8; 32]>().prop_filter("not below the order", |octets| *octets < ORDER && *octets != [0; 32]);
    prop_oneof![8 => random, 1 => Just(smallest), 1 => Just(largest)]
}

proptest! {
    #![proptest_config(crate::rfc_tests::seeded_config(9))]

    #[test]
    fn every_signature_is_good_for_the_library(
        scalar in scalars(),
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..150),
    ) {
        let key = private(&scalar);
        let public = PublicKey::parse(ALGORITHM, key.public_key()).unwrap();
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut out = vec![5, 6];
        sign_batch(&key, &messages, &mut out).unwrap();
        prop_assert_eq!(out.len(), 2 + messages.len() * SIGNATURE_OCTETS);
        prop_assert_eq!(&out[..2], &[5, 6]);
        for (message, signature) in messages.iter().zip(out[2..].chunks_exact(SIGNATURE_OCTETS)) {
            prop_assert_eq!(public.verify(message, signature), Ok(()));
            prop_assert_eq!(public.verify(&[message, &b"."[..]].concat(), signature), Err(BadSignature));
        }
    }
}

#[test]
fn signing_wipes_its_secrets() {
    let key = BatchKey::new(&octets(KEY)).unwrap();
    let messages: Vec<Vec<u8>> = (0..20_u8).map(|octet| vec![octet; 40]).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let extra = vec![&[][..]; messages.len()];
    let mut secrets = vec![("the private scalar".to_owned(), octets_of(&*key.0))];
    for message in &messages {
        let nonce = nonce_of_digest(&key.0, Scalar::from_octets_reduced(&sha256(message)), &[]).unwrap();
        secrets.push(("a nonce".to_owned(), octets_of(&*nonce)));
        secrets.push(("a nonce in octets".to_owned(), nonce.to_octets().to_vec()));
        let mut inverse = [MontgomeryScalar::new(*nonce)];
        secrets.push(("a nonce in Montgomery form".to_owned(), octets_of(&inverse[0])));
        MontgomeryScalar::invert_all(&mut inverse);
        secrets.push(("an inverse of a nonce".to_owned(), octets_of(&inverse[0])));
        secrets.extend(multiply_base(&nonce).secrets());
    }
    let sign = || {
        let mut out = Vec::new();
        let keyed: Vec<KeyedMessage<'_>> = messages.iter().map(|message| (&key, *message)).collect();
        sign_with(&keyed, &extra, &mut SecretWorkspace::default(), &mut out).unwrap();
    };
    assert_wiped(&memory_freed_by(|| with_portable_arithmetic(sign)), &secrets);
    assert_wiped(&memory_freed_by(sign), &secrets);
}
