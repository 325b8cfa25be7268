//! Public keys: an algorithm number, and arbitrary octets as the public key field. A parsed key has
//! a supported size, and gives the same results singly and in a batch. Other fields give the right
//! kind of error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_crypto::{Algorithm, KeyError, PublicKey, VerifyItem, verify_batch};

/// Number of items for which a batch builds the table of the key.
const ITEMS: usize = 32;

/// Length of the longest signature of fixed length in octets, which is also longer than an RSA
/// modulus.
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

/// Checks the error. An RSA key with the error "cannot be used" was read to its end.
fn check_error(error: &KeyError, field: &[u8]) {
    match *error {
        KeyError::ModulusBits { bits } => {
            assert!(!(1024..=4096).contains(&bits) && bits.div_ceil(8) as usize <= field.len());
        }
        KeyError::ExponentBits { bits, maximum } => {
            assert!(bits > maximum && bits.div_ceil(8) as usize <= field.len());
        }
        KeyError::PublicKeyLength { expected, found, .. } => {
            assert!(found == field.len() && found != expected);
        }
        _ => {}
    }
    assert!(!error.to_string().is_empty());
}

/// Verifies two constant signatures of the right length and an empty signature. All items of a
/// batch must have the result of the single check.
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
