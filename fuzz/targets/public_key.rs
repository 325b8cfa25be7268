//! Public keys: an algorithm number and any octets as the public key field. What is parsed has a size in range, and
//! verifies alike singly and in a batch; what is not has an error of the right kind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_crypto::{Algorithm, KeyError, PublicKey, VerifyItem, verify_batch};

/// As many items as make a batch prepare the key.
const ITEMS: usize = 32;

/// Octets of the longest signature of fixed length, and more than an RSA modulus has.
const LONGEST: usize = 2420;

fuzz_target!(|data: &[u8]| {
    let Some((&number, field)) = data.split_first() else { return };
    let algorithm = Algorithm(number);
    let key = match PublicKey::parse(algorithm, field) {
        Ok(key) => key,
        Err(error) => {
            assert_eq!(matches!(error, KeyError::UnknownAlgorithm(_)), algorithm.entry().is_none());
            return check_error(&error, field);
        }
    };
    let Some(entry) = algorithm.entry() else { panic!("{key:?} of an unknown algorithm") };
    let octets = match entry.scheme.public_key_octets {
        Some(octets) => {
            assert_eq!(field.len(), octets);
            entry.scheme.signature_octets.unwrap_or_default()
        }
        None => {
            assert!((1024..=4096).contains(&key.bits()), "{key:?}");
            key.bits().div_ceil(8) as usize
        }
    };
    verify(&key, octets);
});

/// An RSA key that "cannot be used" was read to its end.
fn check_error(error: &KeyError, field: &[u8]) {
    match *error {
        KeyError::ModulusBits { bits } => {
            assert!(!(1024..=4096).contains(&bits) && bits.div_ceil(8) as usize <= field.len());
        }
        KeyError::ExponentBits { bits, most } => {
            assert!(bits > most && bits.div_ceil(8) as usize <= field.len());
        }
        KeyError::PublicKeyLength { expected, found, .. } => {
            assert!(found == field.len() && found != expected);
        }
        _ => {}
    }
    assert!(!error.to_string().is_empty());
}

/// Two fixed signatures of the right length, and one of none, each with one outcome.
fn verify(key: &PublicKey, octets: usize) {
    let signature = [1; LONGEST];
    let zero = [0; LONGEST];
    for signature in [&signature[..octets.min(LONGEST)], &zero[..octets.min(LONGEST)], &[]] {
        let single = key.verify(b"message", signature);
        let items = [VerifyItem { key, message: b"message", signature }; ITEMS];
        let mut outcome = Vec::new();
        verify_batch(&items, &mut outcome);
        assert_eq!(outcome, [single; ITEMS], "{key:?}");
    }
}
