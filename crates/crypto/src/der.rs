//! Private keys in DER, as they cross into and out of aws-lc: `RSAPrivateKey` (RFC 8017, appendix A.1.2) and `ECPrivateKey`
//! (RFC 5915).

use pkcs1::RsaPrivateKeyRef;
use pkcs8::der::asn1::UintRef;
use pkcs8::der::{Decode as _, Encode as _};
use sec1::EcPrivateKey;
use zeroize::Zeroizing;

/// Numbers in an `RSAPrivateKey`: n, e, d, p, q, d mod (p-1), d mod (q-1), q⁻¹ mod p.
pub(crate) const RSA_NUMBERS: usize = 8;

/// The numbers of an RSA private key, big-endian without leading zeros, in the order of `RSAPrivateKey`.
pub(crate) type RsaNumbers = [Zeroizing<Vec<u8>>; RSA_NUMBERS];

/// Encodes an `RSAPrivateKey`. `None` where a number is too long for DER.
pub(crate) fn write_rsa_private_key(numbers: &RsaNumbers) -> Option<Zeroizing<Vec<u8>>> {
    let mut fields = [None; RSA_NUMBERS];
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
    // It takes room for all of it from the start: a vector that grew would leave pieces of the key behind.
    key.to_der().ok().map(Zeroizing::new)
}

/// Encodes an `ECPrivateKey` with neither curve nor public key.
pub(crate) fn write_ec_private_key(scalar: &[u8]) -> Zeroizing<Vec<u8>> {
    let key = EcPrivateKey { private_key: scalar, parameters: None, public_key: None };
    // A scalar has some dozen octets: that does not fail.
    Zeroizing::new(key.to_der().unwrap_or_default())
}

/// The numbers of an `RSAPrivateKey` of two primes.
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
        #![proptest_config(crate::rfc_tests::seeded(3))]

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
            // Eight integers and a version do not fit by chance.
            prop_assert_eq!(read_rsa_private_key(&der), None);
            prop_assert_eq!(read_rsa_private_key(&sequence), None);
        }
    }
}
