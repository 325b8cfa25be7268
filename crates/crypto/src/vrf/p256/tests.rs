//! The examples of RFC 9381 with intermediate values, and invalid keys and proofs.

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use data_encoding::HEXLOWER;

use super::*;
use crate::der;
use crate::freed::{assert_wiped, memory_freed_by, octets_of};
use crate::limbs;
use crate::p256::{Comb, ORDER, PRIME, with_portable_arithmetic};
use crate::vrf::tests::examples;

#[test]
fn intermediate_values_of_the_examples() {
    for example in examples(ALGORITHM) {
        let key = Private::from_secret(&example.octets("secret")).unwrap();
        assert_eq!(key.compressed.as_slice(), example.octets("public"));
        let (point, h) = hash_to_curve(&key.compressed, &example.octets("alpha")).unwrap();
        assert_eq!(h.as_slice(), example.octets("H"));
        let nonce = nonce(&key.scalar, &h).unwrap();
        assert_eq!(nonce.to_octets().as_slice(), example.octets("k"));
        let combs = Comb::prepare_all(&[point]);
        let encoded = Jacobian::encode_all(&[multiply_base(&nonce), combs[0].multiply(&nonce)]);
        assert_eq!(encoded[0].as_slice(), example.octets("U"));
        assert_eq!(encoded[1].as_slice(), example.octets("V"));
        let public = Public::parse(key.public_key()).unwrap();
        let proof = Proof::parse(&example.octets("pi")).unwrap();
        assert_eq!(public.commitments(&point, &proof), [encoded[0], encoded[1]]);
        let hash = hash_point(&example.octets("pi")[..COMPRESSED_OCTETS]);
        assert_eq!(hash.as_slice(), example.octets("beta"));
    }
}

/// RFC 6979, appendix A.2.5: the nonce of a signature over "sample" is derived from
/// SHA-256("sample").
#[test]
fn rfc6979_appendix_a_2_5() {
    let octets = |text: &str| -> [u8; 32] { HEXLOWER.decode(text.as_bytes()).unwrap().try_into().unwrap() };
    let secret = octets("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
    let secret = Scalar::from_octets(&secret).unwrap();
    let expected = octets("a6e3c57dd01abe90086538398355dd4c3b17aa873382b0f24d6129493d8aad60");
    // `nonce` takes the octets of a point, and hashes them whatever they are.
    let mut message = [0; COMPRESSED_OCTETS];
    message[..6].copy_from_slice(b"sample");
    assert_ne!(nonce(&secret, &message).unwrap().to_octets(), expected);
    assert_eq!(
        nonce_of_digest(&secret, Scalar::from_octets_reduced(&sha256(b"sample")), &[]).unwrap().to_octets(),
        expected
    );
}

#[test]
fn public_keys_are_those_of_the_library() {
    for scalar in [[1; 32], [0x7f; 32], [0xee; 32]] {
        let key = Private::from_secret(&scalar).unwrap();
        let der = der::write_ec_private_key(&scalar);
        let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).unwrap();
        assert_eq!(pair.private_key().as_be_bytes().unwrap().as_ref(), &scalar);
        assert_eq!(&pair.public_key().as_ref()[1..], key.public_key());
        assert_eq!(*key.secret(), scalar);
    }
}

#[test]
fn scalars_out_of_range_are_no_keys() {
    let invalid = Some(VrfKeyError::InvalidPrivateKey(ALGORITHM));
    let mut below = ORDER;
    below[31] -= 1;
    assert!(Private::from_secret(&below).is_ok());
    let bad: [&[u8]; 6] = [&[], &[1; 31], &[1; 33], &[0; 32], &ORDER, &[0xff; 32]];
    for secret in bad {
        assert_eq!(Private::from_secret(secret).err(), invalid, "{secret:?}");
    }
}

#[test]
fn points_off_the_curve_and_coordinates_from_p_on_are_no_keys() {
    let off = Some(VrfKeyError::NotOnCurve(ALGORITHM));
    let good = Private::from_secret(&[9; 32]).unwrap();
    let mut octets = good.public_key;
    octets[63] ^= 1;
    assert_eq!(Public::parse(&octets).err(), off);
    assert_eq!(Public::parse(&[0; 64]).err(), off);
    assert_eq!(Public::parse(&[0xff; 64]).err(), off);
    for found in [0, 1, 32, 33, 63, 65, 96] {
        let error = VrfKeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 64, found };
        assert_eq!(Public::parse(&vec![4; found]).err(), Some(error));
    }
    // There is a point with x = 5. x = 5 + p is the same number in other octets.
    let mut compressed = [2; COMPRESSED_OCTETS];
    compressed[1..].fill(0);
    compressed[COMPRESSED_OCTETS - 1] = 5;
    let point = Affine::from_compressed(&compressed).unwrap();
    let mut coordinates = point.to_coordinates();
    assert!(Public::parse(&coordinates).is_ok());
    coordinates[..32].copy_from_slice(&limbs::to_octets(&[4, 1 << 32, 0, PRIME[3]]));
    assert_eq!(Public::parse(&coordinates).err(), off);
}

/// Good and bad proofs have the same results with lanes and with portable code.
#[test]
fn single_verifications_with_and_without_lanes_agree() {
    let key = Private::from_secret(&[7; SECRET_OCTETS]).unwrap();
    let public = Public::parse(key.public_key()).unwrap();
    for number in 0..PROOF_OCTETS as u8 {
        let (mut proof, mut hashes) = (Vec::new(), Vec::new());
        prove_with_key(&key, &[&[number]], &mut proof, &mut hashes).unwrap();
        assert_eq!(public.verify(&[number], &proof), Ok(hashes[0]));
        assert_eq!(with_portable_arithmetic(|| public.verify(&[number], &proof)), Ok(hashes[0]));
        let place = usize::from(number);
        proof[place] ^= 4;
        assert_eq!(public.verify(&[number], &proof), Err(BadProof), "octet {place}");
        assert_eq!(
            with_portable_arithmetic(|| public.verify(&[number], &proof)),
            Err(BadProof),
            "octet {place}"
        );
    }
}

/// s + order is the same scalar in other octets, if it fits into 32 octets.
#[test]
fn s_from_the_order_on_is_rejected() {
    let key = Private::from_secret(&[3; 32]).unwrap();
    let public = Public::parse(key.public_key()).unwrap();
    let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
    prove_with_key(&key, &[b"name"], &mut proofs, &mut hashes).unwrap();
    assert!(public.verify(b"name", &proofs).is_ok());
    assert_eq!(hash_of_valid_proof(&proofs), Ok(hashes[0]));
    assert_eq!(hash_of_valid_proof(&proofs[1..]), Err(BadProof));
    for s in [ORDER, [0xff; 32]] {
        proofs[COMPRESSED_OCTETS + CHALLENGE_OCTETS..].copy_from_slice(&s);
        assert!(Proof::parse(&proofs).is_none());
        assert_eq!(public.verify(b"name", &proofs), Err(BadProof));
        assert_eq!(proof_to_hash(&proofs), Err(BadProof));
    }
    let mut below = ORDER;
    below[31] -= 1;
    proofs[COMPRESSED_OCTETS + CHALLENGE_OCTETS..].copy_from_slice(&below);
    assert!(Proof::parse(&proofs).is_some());
}

/// Like [`prove_batch`], for inputs of one key.
pub(super) fn prove_with_key(
    key: &Private,
    alphas: &[&[u8]],
    proofs: &mut Vec<u8>,
    hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
) -> Result<(), ProveError> {
    let items: Vec<ProveItem<'_>> = alphas.iter().map(|alpha| (key, *alpha)).collect();
    prove_batch(&items, proofs, hashes)
}

/// Returns the proofs of all inputs, computed with the fastest arithmetic and with the portable
/// code.
fn prove_both_ways(key: &Private, alphas: &[&[u8]]) -> (Vec<u8>, Vec<[u8; VRF_HASH_OCTETS]>) {
    let prove = || {
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        prove_with_key(key, alphas, &mut proofs, &mut hashes).unwrap();
        (proofs, hashes)
    };
    let (found, expected) = (prove(), with_portable_arithmetic(prove));
    assert_eq!(found, expected, "{} inputs", alphas.len());
    found
}

/// Checks that a batch has the same results as single verifications. Returns how many proofs are
/// good.
fn verify_both_ways(public: &Public, items: &[(&[u8], &[u8])]) -> usize {
    let expected: Vec<VerifyResult> =
        items.iter().map(|(alpha, proof)| public.verify(alpha, proof)).collect();
    let items: Vec<Item<'_>> = items.iter().map(|(alpha, proof)| (public, *alpha, *proof)).collect();
    verify_items_both_ways(&items);
    expected.iter().flatten().count()
}

/// As [`verify_both_ways`], with a key for each proof.
fn verify_items_both_ways(items: &[Item<'_>]) -> Vec<VerifyResult> {
    let expected: Vec<VerifyResult> =
        items.iter().map(|(key, alpha, proof)| key.verify(alpha, proof)).collect();
    let mut found = Vec::new();
    verify_batch(items, &mut found);
    assert_eq!(found, expected);
    found.clear();
    with_portable_arithmetic(|| verify_batch(items, &mut found));
    assert_eq!(found, expected);
    expected
}

/// Batches of every size with proofs of several keys; every third proof is that of another key, or
/// has a changed bit.
#[test]
fn proofs_of_different_keys_are_verified_together() {
    let keys: Vec<Private> =
        (1..=5_u8).map(|octet| Private::from_secret(&[octet; SECRET_OCTETS]).unwrap()).collect();
    let publics: Vec<Public> = keys.iter().map(|key| Public::parse(key.public_key()).unwrap()).collect();
    let mut draws = (0_u32..).map(|index| sha256(&index.to_be_bytes()));
    let mut below = |limit: usize| usize::from(draws.next().unwrap()[0]) % limit;
    let (mut names, mut proofs, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..40_usize {
        let (key, name) = (below(keys.len()), vec![index as u8; below(60)]);
        let (mut proof, mut hashes) = (Vec::new(), Vec::new());
        prove_with_key(&keys[key], &[&name], &mut proof, &mut hashes).unwrap();
        let kind = below(6);
        if kind == 0 {
            proof[below(PROOF_OCTETS)] ^= 1 << below(8);
        }
        used.push(if kind == 1 { (key + 1) % keys.len() } else { key });
        names.push(name);
        proofs.push(proof);
    }
    let items: Vec<Item<'_>> = used
        .iter()
        .zip(names.iter().zip(&proofs))
        .map(|(key, (name, proof))| (&publics[*key], name.as_slice(), proof.as_slice()))
        .collect();
    for size in 0..=items.len() {
        let start = items.len() - size;
        let results = verify_items_both_ways(&items[start..]);
        assert!(size < 20 || results.iter().any(Result::is_ok) && results.iter().any(Result::is_err));
    }
}

#[test]
fn batches_of_every_size_have_the_same_proofs() {
    let mut largest = ORDER;
    largest[31] -= 1;
    let mut smallest = [0; SECRET_OCTETS];
    smallest[31] = 1;
    let names: Vec<Vec<u8>> = (0..40_u8).map(|index| vec![index; usize::from(index)]).collect();
    let alphas: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    for (secret, sizes) in [([0x5a; 32], 0..=40), (largest, 7..=9), (smallest, 7..=9)] {
        let key = Private::from_secret(&secret).unwrap();
        let public = Public::parse(key.public_key()).unwrap();
        let (proofs, hashes) = prove_both_ways(&key, &alphas);
        let items: Vec<(&[u8], &[u8])> =
            alphas.iter().copied().zip(proofs.chunks_exact(PROOF_OCTETS)).collect();
        for size in sizes {
            let (some, some_hashes) = prove_both_ways(&key, &alphas[..size]);
            assert_eq!((&some[..], &some_hashes[..]), (&proofs[..size * PROOF_OCTETS], &hashes[..size]));
            assert_eq!(verify_both_ways(&public, &items[..size]), size);
        }
    }
}

#[test]
fn the_examples_are_verified_in_batches() {
    for example in examples(ALGORITHM) {
        let key = Private::from_secret(&example.octets("secret")).unwrap();
        let public = Public::parse(key.public_key()).unwrap();
        let (alpha, proof) = (example.octets("alpha"), example.octets("pi"));
        let (proofs, hashes) = prove_both_ways(&key, &[alpha.as_slice(); 9]);
        assert_eq!(proofs, proof.repeat(9));
        assert!(hashes.iter().all(|hash| hash.as_slice() == example.octets("beta")));
        assert_eq!(verify_both_ways(&public, &[(alpha.as_slice(), proof.as_slice()); 9]), 9);
    }
}

/// Among good proofs: a changed bit in every part of a proof, every length near the right one,
/// invalid points and invalid scalars.
#[test]
fn a_bad_proof_in_a_batch_does_not_affect_others() {
    let key = Private::from_secret(&[0x77; 32]).unwrap();
    let public = Public::parse(key.public_key()).unwrap();
    let (good, _) = prove_both_ways(&key, &[b"name"]);
    let mut proofs = vec![good.clone()];
    for bit in (0..PROOF_OCTETS * 8).step_by(23) {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        proofs.extend([bad, good.clone()]);
    }
    for length in [0, 1, PROOF_OCTETS - 1, PROOF_OCTETS + 1] {
        proofs.push([&good[..], &[0]].concat()[..length].to_vec());
    }
    for s in [ORDER, [0; 32], [0xff; 32]] {
        proofs.push([&good[..PROOF_OCTETS - 32], &s[..]].concat());
    }
    for x in [[0xff; 32], [0; 32]] {
        proofs.push([&[EVEN_Y_PREFIX][..], &x, &good[COMPRESSED_OCTETS..]].concat());
    }
    let count = proofs.iter().filter(|proof| **proof == good).count();
    let items: Vec<(&[u8], &[u8])> = proofs.iter().map(|proof| (&b"name"[..], proof.as_slice())).collect();
    assert_eq!(verify_both_ways(&public, &items), count);
    assert_eq!(verify_both_ways(&public, &items[1..2]), 0);
}

/// Proofs in which sums meet: U is infinity if s = c·x, and V is infinity if Γ is s/c·H. The key is
/// the base point, Γ is H or −H, and challenges are 0, even and odd. All these proofs are invalid.
#[test]
fn proofs_that_lead_to_infinity_are_rejected() {
    for secret in [Scalar::from_short(1), Scalar::from_short(5), Scalar::from_short(1).negate()] {
        let key = Private::from_secret(&secret.to_octets()).unwrap();
        let public = Public::parse(key.public_key()).unwrap();
        let (h, _) = hash_to_curve(&key.compressed, b"name").unwrap();
        let mut proofs = Vec::new();
        for challenge in [0, 1, 2, 3, 31, 32, u128::MAX, u128::MAX - 1] {
            let product = Scalar::from_short(challenge).multiply(secret);
            for s in [product, product.negate(), Scalar::from_short(challenge), Scalar::ZERO] {
                for gamma in [h, h.negate(), Affine::BASE] {
                    let challenge = challenge.to_be_bytes();
                    proofs.push([&gamma.to_compressed()[..], &challenge, &s.to_octets()].concat());
                }
            }
        }
        let (good, _) = prove_both_ways(&key, &[b"name"]);
        proofs.push(good);
        let items: Vec<(&[u8], &[u8])> =
            proofs.iter().map(|proof| (&b"name"[..], proof.as_slice())).collect();
        assert_eq!(verify_both_ways(&public, &items), 1);
    }
}

/// Returns a scalar in the form that it has in memory, and as octets.
fn secret_forms(name: &str, scalar: &Scalar) -> Vec<(String, Vec<u8>)> {
    vec![(name.to_owned(), octets_of(scalar)), (format!("{name} in octets"), scalar.to_octets().to_vec())]
}

/// The projective coordinates of a secret multiple reveal bits of its scalar.
#[test]
fn proving_wipes_its_secrets() {
    let key = Private::from_secret(&[0x42; SECRET_OCTETS]).unwrap();
    let alphas: Vec<Vec<u8>> = (0..11_u8).map(|octet| vec![octet; 9]).collect();
    let alphas: Vec<&[u8]> = alphas.iter().map(Vec::as_slice).collect();
    let salted: Vec<SaltedInput<'_>> = alphas.iter().map(|alpha| (&key.compressed, *alpha)).collect();
    let mut secrets = secret_forms("the private scalar", &key.scalar);
    for (point, h) in hash_all_to_curve(Engine::Portable, &salted, &[]).unwrap().0 {
        let nonce = nonce(&key.scalar, &h).unwrap();
        secrets.extend(secret_forms("a nonce", &nonce));
        let comb = &Comb::prepare_all(&[point])[0];
        for product in [comb.multiply(&key.scalar), multiply_base(&nonce), comb.multiply(&nonce)] {
            secrets.extend(product.secrets());
        }
    }
    // One input, as many as fit into one vector, and more.
    for count in [1, 3, alphas.len()] {
        let prove = || {
            let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
            prove_with_key(&key, &alphas[..count], &mut proofs, &mut hashes).unwrap();
        };
        assert_wiped(&memory_freed_by(|| with_portable_arithmetic(prove)), &secrets);
        assert_wiped(&memory_freed_by(prove), &secrets);
    }
    let product = multiply_base(&key.scalar).secrets();
    assert_wiped(&memory_freed_by(|| Private::from_secret(&[0x42; SECRET_OCTETS])), &product);
}
