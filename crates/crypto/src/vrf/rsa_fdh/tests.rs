//! The examples of RFC 9381, including those of longer moduli, and rejected input.

use data_encoding::HEXLOWER;
use serde_json::Value;

use super::*;
use crate::vrf::tests::{examples, rsa_secret};

#[test]
fn intermediate_values_of_the_examples() {
    for example in examples(ALGORITHM) {
        let bits = example.bits();
        let key = Private::load(&example.octets("secret"), bits).unwrap();
        assert_eq!(key.public_key, example.octets("public"));
        let alpha = example.octets("alpha");
        let encoded = encode(&key.salt, &alpha);
        assert_eq!(encoded.len(), usize::from(bits) / 8);
        assert_eq!(encoded[0], 0);
        assert_eq!(encoded[1..], example.octets("EM"));
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        key.prove(&alpha, &mut proofs, &mut hashes).unwrap();
        assert_eq!(proofs, example.octets("pi"));
        assert_eq!(hashes[0].as_slice(), example.octets("beta"));
        let public = Public::load(&key.public_key, bits).unwrap();
        assert_eq!(public.verify(&alpha, &proofs), Ok(hashes[0]));
        assert_eq!(public.verify(b"other", &proofs), Err(BadProof));
    }
}

#[test]
fn other_lengths_than_2048_bits_are_rejected() {
    let examples = examples(ALGORITHM);
    for (example, bits) in examples[1..].iter().zip([3072, 4096]) {
        let error = Some(VrfKeyError::ModulusBits { bits });
        assert_eq!(Private::from_secret(&example.octets("secret")).err(), error);
        assert_eq!(Public::parse(&example.octets("public")).err(), error);
    }
    for bits in [8_usize, 1024, 2040, 2047, 2049] {
        let mut modulus = vec![0xff; bits.div_ceil(8)];
        if bits % 8 != 0 {
            modulus[0] = (1 << (bits % 8)) - 1;
        }
        let error = Some(VrfKeyError::ModulusBits { bits: bits as u32 });
        assert_eq!(Public::parse(&encode_public_key(&[1, 0, 1], &modulus)).err(), error);
    }
}

#[test]
fn invalid_exponents_are_rejected() {
    let modulus = vec![0xff; PROOF_OCTETS];
    for exponent in [&[3][..], &[1, 0, 1], &[0xff; 8]] {
        assert!(Public::parse(&encode_public_key(exponent, &modulus)).is_ok(), "{exponent:?}");
    }
    let bad: [&[u8]; 7] =
        [&[0], &[1], &[2], &[1, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 1], &[0xff; 255], &modulus];
    for exponent in bad {
        let key = match exponent.len() {
            ..=255 => encode_public_key(exponent, &modulus),
            length => [&[0], &(length as u16).to_be_bytes()[..], exponent, &modulus].concat(),
        };
        assert_eq!(Public::parse(&key).err(), Some(VrfKeyError::Exponent), "{exponent:?}");
    }
}

#[test]
fn malformed_keys_are_rejected() {
    let good = encode_public_key(&[1, 0, 1], &[0xff; PROOF_OCTETS]);
    assert!(Public::parse(&good).is_ok());
    let mut even = good.clone();
    *even.last_mut().unwrap() = 0xfe;
    let mut zero_in_modulus = good.clone();
    zero_in_modulus.insert(4, 0);
    // The long form of a length that fits into the short form.
    let long = [&[0, 0], good.as_slice()].concat();
    let zero_in_exponent = encode_public_key(&[0, 1, 0, 1], &[0xff; PROOF_OCTETS]);
    let bad: [&[u8]; 10] = [
        &[],
        &[0],
        &[0, 0],
        &[0, 1, 0],
        &[3, 1, 0],
        &[3, 1, 0, 1],
        &even,
        &zero_in_modulus,
        &long,
        &zero_in_exponent,
    ];
    for key in bad {
        assert_eq!(Public::parse(key).err(), Some(VrfKeyError::MalformedRsa), "{key:?}");
    }
}

/// The proof plus the modulus is the same number modulo the modulus. It has the same length if it
/// fits.
#[test]
fn proofs_from_the_modulus_on_are_rejected() {
    let key = Private::from_secret(&rsa_secret()).unwrap();
    let public = Public::parse(&key.public_key).unwrap();
    let modulus = &key.salt[4..];
    let mut fitting = 0;
    for count in 0..8_u8 {
        let (mut proof, mut hashes) = (Vec::new(), Vec::new());
        key.prove(&[count], &mut proof, &mut hashes).unwrap();
        assert!(public.verify(&[count], &proof).is_ok());
        let mut carry = 0;
        for (octet, other) in proof.iter_mut().zip(modulus).rev() {
            let sum = u16::from(*octet) + u16::from(*other) + carry;
            *octet = sum as u8;
            carry = sum >> 8;
        }
        fitting += u32::from(carry == 0);
        assert_eq!(public.verify(&[count], &proof), Err(BadProof));
    }
    assert!(fitting > 0, "another input is needed");
    assert_eq!(public.verify(b"", modulus), Err(BadProof));
}

/// Replaces each number of a key in turn: by a wrong one, by zero, and by nothing.
#[test]
fn damaged_private_keys_are_rejected() {
    let good = der::read_rsa_private_key(&rsa_secret()).unwrap();
    for index in 0..good.len() {
        for wrong in [vec![5], vec![], vec![4], vec![0xff; 300]] {
            let mut numbers = good.clone();
            *numbers[index] = wrong;
            let der = der::write_rsa_private_key(&numbers).unwrap();
            assert!(Private::from_secret(&der).is_err(), "number {index}");
        }
    }
    let invalid = Some(VrfKeyError::InvalidPrivateKey(ALGORITHM));
    let secret = rsa_secret();
    for damaged in [&[][..], &[1; 32], &secret[1..], &secret[..secret.len() - 1]] {
        assert_eq!(Private::from_secret(damaged).err(), invalid);
    }
}

/// If e divides p − 1, an input with a proof has e proofs, and each verifies with a different hash.
/// Therefore, with RSA, the generator of the key must be trusted (RFC 9381, section 7.1.1). Such a
/// private key is rejected.
#[test]
fn a_key_whose_exponent_has_no_inverse_is_no_private_key() {
    let read: Value = serde_json::from_str(include_str!("../../../tests/vrf-hostile-rsa.json")).unwrap();
    let octets = |text: &Value| HEXLOWER.decode(text.as_str().unwrap().as_bytes()).unwrap();
    let public = Public::parse(&octets(&read["public"])).unwrap();
    let alpha = octets(&read["alpha"]);
    let proofs = read["proofs"].as_array().unwrap().iter();
    let mut hashes: Vec<_> = proofs.map(|proof| public.verify(&alpha, &octets(proof)).unwrap()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 3);
    let invalid = Some(VrfKeyError::InvalidPrivateKey(ALGORITHM));
    assert_eq!(Private::from_secret(&octets(&read["secret"])).err(), invalid);
}
