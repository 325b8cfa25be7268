//! Each input has only one hash. These tests cover the flaw that "Making NSEC5 Practical for
//! DNSSEC", section 4.3, found in an earlier VRF, and possible effects of points of small order on
//! a curve with a cofactor (appendix B of the paper, uniqueness without trusting the key).

use super::tests::small_order;
use super::*;

const SUITES: [Suite; 2] = [Suite::TryAndIncrement, Suite::Elligator];

/// The flawed challenge: it covers Y, H, U and V, but not Γ.
fn flawed_challenge(suite: Suite, [y, h, _, u, v]: [&[u8; 32]; 5]) -> [u8; CHALLENGE_OCTETS] {
    challenge(suite, [y, h, &[0; 32], u, v])
}

/// Verifies with the given challenge function. Returns the point to be hashed.
fn verify_with(
    public: &Public,
    alpha: &[u8],
    octets: &[u8],
    challenge: impl Fn(Suite, [&[u8; 32]; 5]) -> [u8; CHALLENGE_OCTETS],
) -> Result<EdwardsPoint, BadProof> {
    let proof = Proof::parse(octets).ok_or(BadProof)?;
    let h = hash_to_curve(public.suite, &public.octets, alpha).ok_or(BadProof)?;
    let [u, v] = public.commitments(&h, &proof);
    let [h, gamma, u, v] = EdwardsPoint::compress_batch(&[h, proof.gamma, u, v]);
    let expected = challenge(public.suite, [&public.octets, &h.0, &gamma.0, &u.0, &v.0]);
    if octets[32..32 + CHALLENGE_OCTETS] == expected { Ok(proof.gamma) } else { Err(BadProof) }
}

fn hash_of(suite: Suite, gamma: &EdwardsPoint) -> [u8; VRF_HASH_OCTETS] {
    truncate(&hash_point(suite, &gamma.mul_by_cofactor().compress().0))
}

fn prove(key: &Private, alpha: &[u8]) -> (Vec<u8>, [u8; VRF_HASH_OCTETS]) {
    let (mut proof, mut hashes) = (Vec::new(), Vec::new());
    key.prove_batch(&[alpha], &mut proof, &mut hashes).unwrap();
    (proof, hashes[0])
}

#[test]
fn a_challenge_without_gamma_has_two_hashes_for_one_input() {
    for suite in SUITES {
        let key = Private::from_secret(suite, &[5; 32]).unwrap();
        let public = Public::parse(suite, &key.public_key).unwrap();
        let h = hash_to_curve(suite, &key.public_key, b"name").unwrap();
        let [k, l] = [11_u128, 12].map(Scalar::from);
        let [h_octets, u, v] = EdwardsPoint::compress_batch(&[h, EdwardsPoint::mul_base(&k), h * l]);
        let c = flawed_challenge(suite, [&key.public_key, &h_octets.0, &[0; 32], &u.0, &v.0]);
        let s = k + scalar_of_challenge(c) * *key.scalar;
        // Γ is computed last, so that V = s·H − c·Γ.
        let gamma = h * ((s - l) * scalar_of_challenge(c).invert());
        let forged = [gamma.compress().as_bytes(), &c[..], s.as_bytes()].concat();
        let (proof, hash) = prove(&key, b"name");
        assert_eq!(verify_with(&public, b"name", &forged, flawed_challenge), Ok(gamma));
        assert_ne!(hash_of(suite, &gamma), hash);
        assert_eq!(public.verify(b"name", &forged), Err(BadProof));
        assert_eq!(public.verify(b"name", &proof), Ok(hash));
        assert_eq!(
            verify_with(&public, b"name", &proof, challenge).map(|gamma| hash_of(suite, &gamma)),
            Ok(hash)
        );
    }
}

/// Returns a proof with Γ = x·H + `shift`, for a key that may have a component of small order.
/// Nonces are tried until the challenge is a multiple of 8, so that the shifts vanish from U and V.
fn prove_shifted(key: &Private, public: &Public, shift: &EdwardsPoint, alpha: &[u8]) -> Vec<u8> {
    let h = hash_to_curve(public.suite, &public.octets, alpha).unwrap();
    let gamma = h * *key.scalar + shift;
    (1_u128..)
        .find_map(|k| {
            let k = Scalar::from(k);
            let points = [h, gamma, EdwardsPoint::mul_base(&k), h * k];
            let [h, gamma, u, v] = EdwardsPoint::compress_batch(&points);
            let c = challenge(public.suite, [&public.octets, &h.0, &gamma.0, &u.0, &v.0]);
            let s = k + scalar_of_challenge(c) * *key.scalar;
            c[0].is_multiple_of(8).then(|| [gamma.as_bytes(), &c[..], s.as_bytes()].concat())
        })
        .unwrap()
}

/// A prover can add a point of small order to Γ. The proof verifies, as RFC 9381 specifies, but the
/// hash is over 8·Γ and is therefore the same. Without the cofactor, there would be eight hashes.
#[test]
fn small_order_in_gamma_does_not_change_the_hash() {
    for suite in SUITES {
        let key = Private::from_secret(suite, &[6; 32]).unwrap();
        let public = Public::parse(suite, &key.public_key).unwrap();
        let (_, hash) = prove(&key, b"name");
        let mut without_cofactor = Vec::new();
        for shift in small_order() {
            let proof = prove_shifted(&key, &public, &shift, b"name");
            assert_eq!(public.verify(b"name", &proof), Ok(hash));
            assert_eq!(proof_to_hash(suite, &proof), Ok(hash));
            let gamma: [u8; 32] = proof[..32].try_into().unwrap();
            without_cofactor.push(hash_point(suite, &gamma));
        }
        without_cofactor.sort_unstable();
        without_cofactor.dedup();
        assert_eq!(without_cofactor.len(), 8);
    }
}

/// A key with a component of small order in addition to the component of large order is accepted,
/// and has only one hash for each input.
#[test]
fn keys_of_mixed_order_are_harmless() {
    for suite in SUITES {
        let key = Private::from_secret(suite, &[7; 32]).unwrap();
        let honest = decode(&key.public_key).unwrap();
        for key_shift in &small_order()[1..] {
            let mixed = honest + key_shift;
            assert!(!mixed.is_torsion_free());
            let public = Public::parse(suite, &mixed.compress().0).unwrap();
            let proofs = small_order().map(|shift| prove_shifted(&key, &public, &shift, b"name"));
            let hashes = proofs.map(|proof| public.verify(b"name", &proof).unwrap());
            assert!(hashes.iter().all(|hash| *hash == hashes[0]));
        }
    }
}

/// The reason why keys of small order are rejected: anyone can prove with them, and all inputs have
/// the same hash.
#[test]
fn a_key_of_small_order_would_hash_all_inputs_alike() {
    for suite in SUITES {
        for point in small_order() {
            let octets = point.compress().0;
            assert!(Public::parse(suite, &octets).is_err());
            let public = Public { suite, negated_key: -point, octets };
            let anyone = Private {
                scalar: Zeroizing::new(Scalar::ZERO),
                ..Private::from_secret(suite, &[1; 32]).unwrap()
            };
            let identity = &small_order()[0];
            let hashes = [&b"one"[..], b"two"].map(|alpha| {
                public.verify(alpha, &prove_shifted(&anyone, &public, identity, alpha)).unwrap()
            });
            assert_eq!(hashes[0], hashes[1]);
        }
    }
}
