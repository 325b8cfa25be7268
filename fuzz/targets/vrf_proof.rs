//! VRF keys and proofs of any octets: never a panic, and what is accepted has one form only.
//!
//! The first octet chooses the algorithm, the second how much of the rest is the key, the third how much of what is left
//! is the input; the remainder is the proof. A key of length 0 stands for one that the target knows, so that proofs are
//! looked at too, and an empty proof for the one that this key makes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm, VrfPrivateKey, VrfPublicKey, proof_to_hash};
use std::sync::LazyLock;

/// A key of each algorithm on a curve, the same in every run. (RSA proofs have no form of their own to look into.)
static KEYS: LazyLock<Vec<VrfPrivateKey>> = LazyLock::new(|| {
    let on_curves = VRF_ALGORITHMS.iter().filter(|entry| entry.public_key_octets.is_some());
    let key = |algorithm| match VrfPrivateKey::from_secret(algorithm, &[0x42; 32]) {
        Ok(key) => key,
        Err(error) => panic!("{error}"),
    };
    on_curves.map(|entry| key(entry.algorithm)).collect()
});

fuzz_target!(|data: &[u8]| {
    read_key_file(data);
    let [choice, key, alpha, rest @ ..] = data else { return };
    let entry = &VRF_ALGORITHMS[usize::from(*choice) % VRF_ALGORITHMS.len()];
    // An RSA key has more octets than the second octet can tell.
    let longer = if entry.public_key_octets.is_none() { 5 } else { 0 };
    let (key, rest) = rest.split_at((usize::from(*key) + longer * usize::from(*key != 0)).min(rest.len()));
    let (alpha, proof) = rest.split_at(usize::from(*alpha).min(rest.len()));
    let known = KEYS.iter().find(|known| known.algorithm() == entry.algorithm);
    match known {
        Some(known) if key.is_empty() => check_proof(known, alpha, proof),
        _ => check_key(entry.algorithm, key, alpha, proof),
    }
});

/// A key that is taken has the octets that it was read from.
fn check_key(algorithm: VrfAlgorithm, key: &[u8], alpha: &[u8], proof: &[u8]) {
    let Ok(public) = VrfPublicKey::parse(algorithm, key) else { return };
    assert_eq!(public.to_octets(), key);
    let verified = public.verify(alpha, proof);
    assert!(verified.is_err() || verified == proof_to_hash(algorithm, proof));
}

/// What verifies has the hash that the key gives; an octet more or less and it does not; and the proof for other octets
/// that were accepted is none for these.
fn check_proof(known: &VrfPrivateKey, alpha: &[u8], proof: &[u8]) {
    let algorithm = known.algorithm();
    let Ok(public) = VrfPublicKey::parse(algorithm, known.public_key()) else { panic!("a key of our own") };
    let mut made = Vec::new();
    let Ok(hash) = known.prove(alpha, &mut made) else { panic!("a key of our own") };
    assert_eq!(public.verify(alpha, &made), Ok(hash));
    assert_eq!(proof_to_hash(algorithm, &made), Ok(hash));
    if proof.is_empty() {
        return;
    }
    if let Ok(verified) = public.verify(alpha, proof) {
        assert_eq!(verified, hash, "one input, one hash");
        assert_eq!(proof_to_hash(algorithm, proof), Ok(hash));
    }
    // The octets of the proof as a change to the one that is right: any change at all is seen.
    let change = proof.iter().chain(std::iter::repeat(&0));
    let changed: Vec<u8> = made.iter().zip(change).map(|(octet, change)| octet ^ change).collect();
    assert_eq!(public.verify(alpha, &changed).is_ok(), changed == made);
}

/// A key file that is read is written so that it is read again.
fn read_key_file(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(key) = VrfPrivateKey::from_text(text) {
        let again = VrfPrivateKey::from_text(&key.to_text()).map(|again| again.to_text());
        assert_eq!(again, Ok(key.to_text()));
    }
}
