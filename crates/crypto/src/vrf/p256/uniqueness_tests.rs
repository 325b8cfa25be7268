//! Each input has only one hash. These tests cover the flaw that "Making NSEC5 Practical for
//! DNSSEC", section 4.3, found in an earlier VRF: its challenge did not cover every point of the
//! proof. A prover with the key could then choose Γ last.

use super::tests::prove_with_key;
use super::*;
use crate::p256::Comb;

/// The flawed challenge: it covers Y, H, U and V, but not Γ.
fn flawed_challenge(
    key: &[u8; COMPRESSED_OCTETS],
    h: &[u8; COMPRESSED_OCTETS],
    u: &EncodedPoint,
    v: &EncodedPoint,
) -> u128 {
    challenge(key, h, &[], u, v)
}

/// The verification of the flawed VRF.
fn flawed_verify(public: &Public, alpha: &[u8], octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    let proof = Proof::parse(octets).ok_or(BadProof)?;
    let (h, h_octets) = hash_to_curve(&public.compressed, alpha).ok_or(BadProof)?;
    let [u, v] = public.commitments(&h, &proof);
    match flawed_challenge(&public.compressed, &h_octets, &u, &v) == proof.challenge {
        true => Ok(hash_point(&octets[..COMPRESSED_OCTETS])),
        false => Err(BadProof),
    }
}

/// Returns a⁻¹ as a power with the order minus 2 as exponent.
fn invert(a: Scalar) -> Scalar {
    let exponent = Scalar::from_short(2).negate();
    (0..256).rev().fold(Scalar::from_short(1), |power, at| {
        let square = power.multiply(power);
        if exponent.bit(at) == 1 { square.multiply(a) } else { square }
    })
}

/// The proof of a prover with the key and two nonces: U = k·B and V = l·H, a challenge over the
/// values known so far, and s = k + c·x. Γ is computed last, so that V = s·H − c·Γ: Γ = (s −
/// l)/c·H. With k = l, this is Γ = x·H.
fn forge(
    key: &Private,
    alpha: &[u8],
    [k, l]: [u128; 2],
    challenge: impl Fn(&[u8; COMPRESSED_OCTETS], &EncodedPoint, &EncodedPoint) -> u128,
) -> Vec<u8> {
    let (h, h_octets) = hash_to_curve(&key.compressed, alpha).unwrap();
    let comb = &Comb::prepare_all(&[h])[0];
    let [k, l] = [k, l].map(Scalar::from_short);
    let commitments = Jacobian::encode_all(&[multiply_base(&k), comb.multiply(&l)]);
    let c = challenge(&h_octets, &commitments[0], &commitments[1]);
    let s = k.add(Scalar::from_short(c).multiply(*key.scalar));
    let logarithm = s.add(l.negate()).multiply(invert(Scalar::from_short(c)));
    let gamma = Jacobian::encode_all(&[comb.multiply(&logarithm)])[0];
    [gamma.as_slice(), &c.to_be_bytes(), &s.to_octets()].concat()
}

#[test]
fn a_challenge_without_gamma_has_two_hashes_for_one_input() {
    let key = Private::from_secret(&[5; 32]).unwrap();
    let public = Public::parse(key.public_key()).unwrap();
    let flawed = |h: &[u8; COMPRESSED_OCTETS], u: &EncodedPoint, v: &EncodedPoint| {
        flawed_challenge(&key.compressed, h, u, v)
    };
    let honest = forge(&key, b"name", [11, 11], flawed);
    let forged = forge(&key, b"name", [11, 12], flawed);
    let (mut proof, mut hashes) = (Vec::new(), Vec::new());
    prove_with_key(&key, &[b"name"], &mut proof, &mut hashes).unwrap();
    // The flawed VRF accepts both proofs, and the second proves a hash that is not that of the
    // input.
    assert_eq!(flawed_verify(&public, b"name", &honest), Ok(hashes[0]));
    let other = flawed_verify(&public, b"name", &forged).unwrap();
    assert_ne!(other, hashes[0]);
    // The VRF of this crate accepts only its own proof.
    assert_eq!(public.verify(b"name", &honest), Err(BadProof));
    assert_eq!(public.verify(b"name", &forged), Err(BadProof));
    assert_eq!(public.verify(b"name", &proof), Ok(hashes[0]));
}

/// The same prover against the complete challenge: it must choose Γ before it knows c, and then the
/// result is a different Γ.
#[test]
fn the_whole_challenge_binds_gamma() {
    let key = Private::from_secret(&[5; 32]).unwrap();
    let public = Public::parse(key.public_key()).unwrap();
    let (mut proof, mut hashes) = (Vec::new(), Vec::new());
    prove_with_key(&key, &[b"name"], &mut proof, &mut hashes).unwrap();
    let gamma = &proof[..COMPRESSED_OCTETS];
    let whole = |h: &[u8; COMPRESSED_OCTETS], u: &EncodedPoint, v: &EncodedPoint| {
        challenge(&key.compressed, h, gamma, u, v)
    };
    // With one nonce and the right Γ, the prover is honest except that it chooses the nonce:
    // another proof, the same hash.
    let honest = forge(&key, b"name", [11, 11], whole);
    assert_ne!(honest, proof);
    assert_eq!(public.verify(b"name", &honest), Ok(hashes[0]));
    for l in 12..44 {
        let forged = forge(&key, b"name", [11, l], whole);
        assert_ne!(forged[..COMPRESSED_OCTETS], proof[..COMPRESSED_OCTETS]);
        assert_eq!(public.verify(b"name", &forged), Err(BadProof));
        // The Γ that was chosen is not valid with the rest either.
        let named = [gamma, &forged[COMPRESSED_OCTETS..]].concat();
        assert_eq!(public.verify(b"name", &named), Err(BadProof));
    }
}
