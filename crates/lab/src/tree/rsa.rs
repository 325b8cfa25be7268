//! RSA keys from a stream of random octets (FIPS 186-5, appendix A.1.3, without its checks against
//! attacks on secret keys: the keys of a tree are no secrets). aws-lc generates keys only from its
//! own random numbers.

use nonesuch_crypto::DigestType;
use num_bigint::BigUint;
use rand::RngCore as _;
use rand_chacha::ChaCha20Rng;

/// The public exponent.
const EXPONENT: u32 = 65_537;
/// Rounds of the Miller-Rabin test; sufficient for random candidates of 512 bits and more.
const MILLER_RABIN_ROUNDS: u32 = 8;
/// Candidates are first divided by the odd primes below this number.
const SMALL_PRIME_LIMIT: u32 = 2_000;
/// Tags of DER elements.
const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
/// `DigestInfo` of SHA-1 before the digest (RFC 8017 §9.2, note 1).
const SHA1_INFO: &[u8] =
    &[0x30, 0x21, 0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00, 0x04, 0x14];
/// Permitted lengths of the modulus, in bits.
const MODULUS_BITS: std::ops::RangeInclusive<u16> = 1024..=4096;

/// The fields of a private key file, for a modulus of `bits` bits; `None` if `bits` is not
/// a multiple of 16 from 1024 to 4096.
pub(super) fn private_key_fields(
    bits: u16,
    random: &mut ChaCha20Rng,
) -> Option<Vec<(&'static str, Vec<u8>)>> {
    if !MODULUS_BITS.contains(&bits) || !bits.is_multiple_of(16) {
        return None;
    }
    let exponent = BigUint::from(EXPONENT);
    let small = small_primes();
    loop {
        let (p, q) = (prime(bits / 2, &small, random), prime(bits / 2, &small, random));
        let (p, q) = if p > q { (p, q) } else { (q, p) };
        let one = BigUint::from(1_u32);
        let (p_minus_1, q_minus_1) = (&p - &one, &q - &one);
        let (Some(private), Some(coefficient)) = (exponent.modinv(&(&p_minus_1 * &q_minus_1)), q.modinv(&p))
        else {
            continue;
        };
        let numbers = [
            ("Modulus", &p * &q),
            ("PublicExponent", exponent),
            ("PrivateExponent", private.clone()),
            ("Prime1", p),
            ("Prime2", q),
            ("Exponent1", &private % &p_minus_1),
            ("Exponent2", &private % &q_minus_1),
            ("Coefficient", coefficient),
        ];
        return Some(numbers.map(|(name, number)| (name, number.to_bytes_be())).to_vec());
    }
}

/// The key as `RSAPrivateKey` in DER (RFC 8017 appendix A.1.2); `None` as [`private_key_fields`].
pub(super) fn private_key_der(bits: u16, random: &mut ChaCha20Rng) -> Option<Vec<u8>> {
    let fields = private_key_fields(bits, random)?;
    let version = der_element(INTEGER, &[0]);
    let numbers = fields.iter().map(|(_, number)| {
        // An integer is signed: a zero octet comes before one whose highest bit is set.
        let sign: &[u8] = if number.first().is_some_and(|octet| octet & 0x80 != 0) { &[0] } else { &[] };
        der_element(INTEGER, &[sign, number].concat())
    });
    Some(der_element(SEQUENCE, &[version].into_iter().chain(numbers).collect::<Vec<_>>().concat()))
}

/// A signature of PKCS#1 v1.5 with SHA-1 (RFC 8017 §8.2.1, RFC 3110 §3). `None` if the modulus is too short. The crate
/// `crypto` signs nothing with SHA-1.
pub(super) fn sign_with_sha1(modulus: &[u8], exponent: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let digest = DigestType::SHA1.digest(&[message])?;
    // EMSA-PKCS1-v1_5 (RFC 8017 §9.2): 0, 1, octets 255, 0, DigestInfo. The first octet is not part of the number.
    let padding = modulus.len().checked_sub(3 + SHA1_INFO.len() + digest.len())?;
    let encoded = [&[1], vec![0xff; padding].as_slice(), &[0], SHA1_INFO, &digest].concat();
    let number = BigUint::from_bytes_be(&encoded);
    let power =
        number.modpow(&BigUint::from_bytes_be(exponent), &BigUint::from_bytes_be(modulus)).to_bytes_be();
    let mut signature = vec![0; modulus.len().checked_sub(power.len())?];
    signature.extend(power);
    Some(signature)
}

/// An element of DER with at most 65,535 octets (X.690 §8.1.3).
fn der_element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let head = match (high, low) {
        (0, 0..=0x7f) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [&head, content].concat()
}

fn small_primes() -> Vec<u32> {
    let is_prime = |number: &u32| (2..).take_while(|d| d * d <= *number).all(|d| !number.is_multiple_of(d));
    (3..SMALL_PRIME_LIMIT).filter(is_prime).collect()
}

/// A prime of `bits` bits whose two highest bits are set, so that the product of two has twice as
/// many bits.
fn prime(bits: u16, small: &[u32], random: &mut ChaCha20Rng) -> BigUint {
    let mut octets = vec![0; usize::from(bits / 8)];
    loop {
        random.fill_bytes(&mut octets);
        octets[0] |= 0xc0;
        let last = octets.len() - 1;
        octets[last] |= 1;
        let candidate = BigUint::from_bytes_be(&octets);
        let zero = BigUint::default();
        if small.iter().all(|prime| &candidate % *prime != zero) && is_prime(&candidate, random) {
            return candidate;
        }
    }
}

/// The Miller-Rabin test of an odd number (FIPS 186-5, appendix B.3.1).
fn is_prime(number: &BigUint, random: &mut ChaCha20Rng) -> bool {
    let one = BigUint::from(1_u32);
    let number_minus_1 = number - &one;
    let twos = number_minus_1.trailing_zeros().unwrap_or_default();
    let odd = &number_minus_1 >> twos;
    (0..MILLER_RABIN_ROUNDS).all(|_| {
        let base = BigUint::from(random.next_u64() | 2);
        let mut power = base.modpow(&odd, number);
        if power == one || power == number_minus_1 {
            return true;
        }
        (1..twos).any(|_| {
            power = &power * &power % number;
            power == number_minus_1
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn primes_are_told_from_pseudoprimes() {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        // 2^127 - 1 and 2^89 - 1 are prime. 561 and 825265 are Carmichael numbers.
        let mersenne = |bits: u32| (BigUint::from(1_u32) << bits) - BigUint::from(1_u32);
        assert!(is_prime(&mersenne(127), &mut random) && is_prime(&mersenne(89), &mut random));
        assert!(!is_prime(&mersenne(83), &mut random));
        for composite in [561_u32, 825_265] {
            assert!(!is_prime(&BigUint::from(composite), &mut random), "{composite}");
        }
    }

    #[test]
    fn lengths_out_of_range_have_no_key() {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        for bits in [0, 512, 1025, 4112, u16::MAX] {
            assert!(private_key_fields(bits, &mut random).is_none(), "{bits}");
        }
        let modulus = &private_key_fields(1280, &mut random).unwrap()[0].1;
        assert_eq!((modulus.len(), modulus[0] >> 7), (160, 1));
    }
}
