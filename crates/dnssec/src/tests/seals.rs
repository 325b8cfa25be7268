//! The seal over stored proofs: its signer and its content.

use super::*;
use crate::denial::nsec5::{Proofs, ProveOptions, prove_chain};
use nonesuch_crypto::DigestType;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};

fn proofs() -> Proofs {
    let vrf = VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_TAI, &[9; 32]).unwrap();
    let zone = zone("a A 192.0.2.1\nb A 192.0.2.2");
    prove_chain(&zone, &vrf, &ProveOptions::new(Mechanism::Nsec5)).unwrap().0
}

fn octets(proofs: &Proofs) -> Vec<u8> {
    let mut out = Vec::new();
    proofs.write_to(&mut out).unwrap();
    out
}

#[test]
fn a_seal_is_read_back_and_is_of_that_key_alone() {
    let keys = ksk_and_zsk_of("example.");
    let mut proofs = proofs();
    assert!(!proofs.is_sealed_by(&keys), "nobody has sealed them");
    proofs.add_seal(&keys).unwrap();
    let read = Proofs::read(&octets(&proofs)).unwrap();
    assert!(read == proofs && read.is_sealed_by(&keys));
    assert!(!read.is_sealed_by(&csk_of("example.")), "the seal is the ZSK's");
    // The seal also covers the serial.
    proofs.set_serial(8);
    assert!(!proofs.is_sealed_by(&keys));
}

#[test]
fn proofs_altered_under_a_right_digest_are_not_sealed() {
    let keys = ksk_and_zsk_of("example.");
    let mut proofs = proofs();
    proofs.add_seal(&keys).unwrap();
    let good = octets(&proofs);
    let body = good.len() - 32;
    let mut sealed = 0;
    for place in 0..body {
        let mut bad = good[..body].to_vec();
        bad[place] ^= 1;
        let digest = DigestType::SHA256.digest(&[&bad]).unwrap();
        bad.extend_from_slice(&digest);
        if let Ok(read) = Proofs::read(&bad) {
            sealed += 1;
            assert!(!read.is_sealed_by(&keys), "octet {place}");
        }
    }
    assert!(sealed > 300, "most octets are of hashes and proofs, and any will do for reading: {sealed}");
}
