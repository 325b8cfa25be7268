//! Falcon-512 compared with the reference implementation (PQClean's `falcon-padded-512`) in both
//! directions: keys, signatures, and rejected input. Neither implementation accepts a seed, so keys
//! and signatures differ in every run.

use data_encoding::BASE64;
use nonesuch_crypto::{Algorithm, BadSignature, PrivateKey, PublicKey};
use pqcrypto_falcon::{falcon512 as compressed, falconpadded512 as padded};
use pqcrypto_traits::sign::{DetachedSignature as _, PublicKey as _, SecretKey as _};

const KEY_COUNT: usize = 6;
const MESSAGES: [&[u8]; 4] = [b"", b"a", b"example.com. MX 10 mail.example.com.", &[0xa5; 5000]];

/// Converts a private key of the reference implementation to the format of this crate.
fn import(secret: &padded::SecretKey) -> PrivateKey {
    let encoded = BASE64.encode(secret.as_bytes());
    let text = format!(
        "Private-key-format: v1.3\nAlgorithm: 251 (FALCON512)\nDialect: falcon-round3-padded\nPrivateKey: {encoded}\n"
    );
    PrivateKey::from_bind(&text).unwrap()
}

/// Converts a private key of this crate to the format of the reference implementation.
fn export(key: &PrivateKey) -> padded::SecretKey {
    let text = key.to_bind();
    let encoded = text.lines().find_map(|line| line.strip_prefix("PrivateKey: ")).unwrap();
    padded::SecretKey::from_bytes(&BASE64.decode(encoded.as_bytes()).unwrap()).unwrap()
}

fn sign(key: &PrivateKey, message: &[u8]) -> Vec<u8> {
    let mut signature = Vec::new();
    key.sign(message, &mut signature).unwrap();
    signature
}

fn they_verify(key: &padded::PublicKey, message: &[u8], signature: &[u8]) -> bool {
    let signature = padded::DetachedSignature::from_bytes(signature).unwrap();
    padded::verify_detached_signature(&signature, message, key).is_ok()
}

/// Both implementations sign and verify every message.
fn check(ours: &PrivateKey, public: &padded::PublicKey, theirs: &padded::SecretKey) {
    assert_eq!(ours.public_key(), public.as_bytes());
    let parsed = PublicKey::parse(Algorithm::FALCON512, public.as_bytes()).unwrap();
    for message in MESSAGES {
        let by_them = padded::detached_sign(message, theirs);
        for signature in [&sign(ours, message), by_them.as_bytes()] {
            assert_eq!((signature.len(), signature[0]), (666, 0x39));
            assert_eq!(parsed.verify(message, signature), Ok(()));
            assert!(they_verify(public, message, signature));
            for index in [0, 1, 40, 41, 300, 665] {
                let mut other = signature.to_vec();
                other[index] ^= 1;
                assert_eq!(parsed.verify(message, &other), Err(BadSignature), "octet {index}");
                assert!(!they_verify(public, message, &other), "octet {index}");
            }
        }
    }
}

#[test]
fn their_keys_work_here() {
    for _ in 0..KEY_COUNT {
        let (public, secret) = padded::keypair();
        check(&import(&secret), &public, &secret);
    }
}

#[test]
fn our_keys_work_there() {
    for _ in 0..KEY_COUNT {
        let key = PrivateKey::generate(Algorithm::FALCON512, None).unwrap();
        let public = padded::PublicKey::from_bytes(key.public_key()).unwrap();
        check(&key, &public, &export(&key));
    }
}

/// The compressed format has the same first octet and no padding, so its length differs. This crate
/// rejects it.
#[test]
fn signatures_without_padding_are_rejected() {
    let (public, secret) = compressed::keypair();
    let parsed = PublicKey::parse(Algorithm::FALCON512, public.as_bytes()).unwrap();
    for message in MESSAGES {
        let signature = compressed::detached_sign(message, &secret);
        let mut octets = signature.as_bytes().to_vec();
        assert_eq!(octets[0], 0x39);
        if octets.len() > 666 {
            continue;
        }
        assert!(octets.len() == 666 || parsed.verify(message, &octets).is_err());
        octets.resize(666, 0);
        assert_eq!(parsed.verify(message, &octets), Ok(()));
    }
}
