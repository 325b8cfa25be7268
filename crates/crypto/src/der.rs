//! Private keys in DER, the format that aws-lc reads and writes: `RSAPrivateKey` (RFC 8017,
//! appendix A.1.2) and `ECPrivateKey` (RFC 5915).

use pkcs1::RsaPrivateKeyRef;
use pkcs8::der::asn1::UintRef;
use pkcs8::der::{Decode as _, Encode as _};
use sec1::EcPrivateKey;
use zeroize::Zeroizing;

/// Count of numbers in an `RSAPrivateKey`: n, e, d, p, q, d mod (p-1), d mod (q-1), q⁻¹ mod p.
pub(crate) const RSA_NUMBER_COUNT: usize = 8;

/// The numbers of an RSA private key, big-endian without leading zeros, in the order of
/// `RSAPrivateKey`.
pub(crate) type RsaNumbers = [Zeroizing<Vec<u8>>; RSA_NUMBER_COUNT];

/// Encodes an `RSAPrivateKey`. Returns `None` if a number is too long for DER.
pub(crate) fn write_rsa_private_key(numbers: &RsaNumbers) -> Option<Zeroizing<Vec<u8>>> {
    let mut fields = [None; RSA_NUMBER_COUNT];
    for (field, number) in fields.iter_mut().zip(numbers) {
        let octets = if number.is_empty() { &[0] } else { number.as_slice() };
        *field = UintRef::new(octets).ok();
    }
    let [n, e, d, p, q, exponent1, exponent2, coefficient] = fields;
    let key = RsaPrivateKeyRef {
        modulus: n?,
        public_exponent: e?,
        private_exponent: d?,
        prime1: p?,
        prime2: q?,
        exponent1: exponent1?,
        exponent2: exponent2?,
        coefficient: coefficient?,
        other_prime_infos: None,
    };
    // `to_der` reserves the capacity for the whole key: a vector that grows would leave parts of
    // the key in freed memory.
    key.to_der().ok().map(Zeroizing::new)
}

/// Encodes an `ECPrivateKey` without curve and public key.
pub(crate) fn write_ec_private_key(scalar: &[u8]) -> Zeroizing<Vec<u8>> {
    let key = EcPrivateKey { private_key: scalar, parameters: None, public_key: None };
    // Encoding does not fail, because a scalar has at most a few dozen octets.
    Zeroizing::new(key.to_der().unwrap_or_default())
}

/// Returns the numbers of an `RSAPrivateKey` with two primes, or `None` if `der` is not such a key.
pub(crate) fn read_rsa_private_key(der: &[u8]) -> Option<RsaNumbers> {
    let key = RsaPrivateKeyRef::from_der(der).ok().filter(|key| key.other_prime_infos.is_none())?;
    let fields = [
        key.modulus,
        key.public_exponent,
        key.private_exponent,
        key.prime1,
        key.prime2,
        key.exponent1,
        key.exponent2,
        key.coefficient,
    ];
    let without_zero = |octets: &[u8]| octets.strip_prefix(&[0]).unwrap_or(octets).to_vec();
    Some(fields.map(|number| Zeroizing::new(without_zero(number.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEQUENCE: u8 = 0x30;

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(3))]

        #[test]
        fn rsa_numbers_survive(lengths in proptest::array::uniform8(1_usize..520), fill in 1_u8..=255) {
            let numbers = lengths.map(|length| Zeroizing::new(vec![fill; length]));
            let der = write_rsa_private_key(&numbers).unwrap();
            prop_assert_eq!(der.capacity() - der.len() <= 4, true);
            prop_assert_eq!(read_rsa_private_key(&der), Some(numbers));
            for end in [0, 1, der.len() / 2, der.len() - 1] {
                prop_assert_eq!(read_rsa_private_key(&der[..end]), None);
            }
        }

        #[test]
        fn any_octets_are_read_without_panic(der in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut sequence = der.clone();
            sequence.splice(..0, [SEQUENCE, 0x81, u8::try_from(der.len()).unwrap()]);
            // Random octets do not contain a version and eight integers by chance.
            prop_assert_eq!(read_rsa_private_key(&der), None);
            prop_assert_eq!(read_rsa_private_key(&sequence), None);
        }
    }
}
