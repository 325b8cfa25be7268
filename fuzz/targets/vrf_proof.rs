//! VRF keys and proofs of arbitrary octets: never panics, and accepted input has only one encoding.
//!
//! The first octet selects the algorithm. The second is the length of the key in the rest, and the
//! third the length of the input after it. The remainder is the proof. A key of length 0 selects a
//! key of this target, so that proofs are checked too. An empty proof selects the proof that this
//! key generates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm, VrfPrivateKey, VrfPublicKey, proof_to_hash};
use std::sync::LazyLock;

/// A key of each algorithm on a curve, the same in every run. RSA proofs have no structure to
/// check.
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
    // An RSA key is longer than the second octet can express.
    let longer = if entry.public_key_octets.is_none() { 5 } else { 0 };
    let (key, rest) = rest.split_at((usize::from(*key) + longer * usize::from(*key != 0)).min(rest.len()));
    let (alpha, proof) = rest.split_at(usize::from(*alpha).min(rest.len()));
    let known = KEYS.iter().find(|known| known.algorithm() == entry.algorithm);
    match known {
        Some(known) if key.is_empty() => check_proof(known, alpha, proof),
        _ => check_key(entry.algorithm, key, alpha, proof),
    }
});

/// Checks that an accepted key has the same octets after parsing.
fn check_key(algorithm: VrfAlgorithm, key: &[u8], alpha: &[u8], proof: &[u8]) {
    let Ok(public) = VrfPublicKey::parse(algorithm, key) else { return };
    assert_eq!(public.to_octets(), key);
    let verified = public.verify(alpha, proof);
    assert!(verified.is_err() || verified == proof_to_hash(algorithm, proof));
}

/// Checks that an accepted proof has the hash that the key computes, and that any change to the
/// proof of the key makes it invalid.
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
    // XOR the octets of the proof into the correct proof: any change is detected.
    let change = proof.iter().chain(std::iter::repeat(&0));
    let changed: Vec<u8> = made.iter().zip(change).map(|(octet, change)| octet ^ change).collect();
    assert_eq!(public.verify(alpha, &changed).is_ok(), changed == made);
}

/// Checks that a key file that was read is written in a form that can be read again.
fn read_key_file(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(key) = VrfPrivateKey::from_text(text) {
        let again = VrfPrivateKey::from_text(&key.to_text()).map(|again| again.to_text());
        assert_eq!(again, Ok(key.to_text()));
    }
}
