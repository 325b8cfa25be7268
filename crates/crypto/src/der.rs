//! The few DER structures that keys cross into and out of aws-lc in: `RSAPrivateKey` (RFC 8017, appendix A.1.2),
//! the `PrivateKeyInfo` around it (RFC 5208), and `ECPrivateKey` (RFC 5915).

use zeroize::Zeroizing;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const SEQUENCE: u8 = 0x30;

/// Numbers in an `RSAPrivateKey`: n, e, d, p, q, d mod (p-1), d mod (q-1), q⁻¹ mod p.
pub(crate) const RSA_NUMBERS: usize = 8;

/// The numbers of an RSA private key, big-endian without leading zeros, in the order of `RSAPrivateKey`.
pub(crate) type RsaNumbers = [Zeroizing<Vec<u8>>; RSA_NUMBERS];

/// Encodes an `RSAPrivateKey`. `None` where the numbers together take more than 65,000 octets.
pub(crate) fn write_rsa_private_key(numbers: &RsaNumbers) -> Option<Zeroizing<Vec<u8>>> {
    let content = 3 + numbers.iter().map(|number| integer_octets(number)).sum::<usize>();
    if content > 65_000 {
        return None;
    }
    // Room for all of it from the start: a vector that grew would leave pieces of the key behind.
    let mut out = Zeroizing::new(Vec::with_capacity(content + 4));
    write_header(&mut out, SEQUENCE, content);
    // Version 0: two primes.
    out.extend_from_slice(&[INTEGER, 1, 0]);
    for number in numbers {
        write_header(&mut out, INTEGER, integer_content(number));
        if needs_zero(number) {
            out.push(0);
        }
        out.extend_from_slice(number);
    }
    Some(out)
}

/// Encodes an `ECPrivateKey` with neither curve nor public key; `scalar` has at most 100 octets.
pub(crate) fn write_ec_private_key(scalar: &[u8]) -> Zeroizing<Vec<u8>> {
    let content = 3 + 2 + scalar.len();
    let mut out = Zeroizing::new(Vec::with_capacity(content + 4));
    write_header(&mut out, SEQUENCE, content);
    // Version 1, the only one.
    out.extend_from_slice(&[INTEGER, 1, 1]);
    write_header(&mut out, OCTET_STRING, scalar.len());
    out.extend_from_slice(scalar);
    out
}

/// A non-negative integer has a zero in front where its first bit is set, or where it has no octet at all.
fn needs_zero(number: &[u8]) -> bool {
    number.first().is_none_or(|first| first & 0x80 != 0)
}

fn integer_content(number: &[u8]) -> usize {
    number.len() + usize::from(needs_zero(number))
}

fn integer_octets(number: &[u8]) -> usize {
    let content = integer_content(number);
    1 + length_octets(content) + content
}

fn length_octets(length: usize) -> usize {
    match length {
        0..=0x7f => 1,
        0x80..=0xff => 2,
        _ => 3,
    }
}

/// Writes a tag and a length below 65,536.
fn write_header(out: &mut Vec<u8>, tag: u8, length: usize) {
    let [.., high, low] = length.to_be_bytes();
    out.push(tag);
    match length_octets(length) {
        1 => out.push(low),
        2 => out.extend_from_slice(&[0x81, low]),
        _ => out.extend_from_slice(&[0x82, high, low]),
    }
}

/// The numbers of an `RSAPrivateKey`.
pub(crate) fn read_rsa_private_key(der: &[u8]) -> Option<RsaNumbers> {
    let mut outer = Reader(der);
    let mut fields = Reader(outer.value(SEQUENCE)?);
    fields.value(INTEGER)?;
    let mut numbers = RsaNumbers::default();
    for number in &mut numbers {
        let octets = fields.value(INTEGER)?;
        *number = Zeroizing::new(octets.strip_prefix(&[0]).unwrap_or(octets).to_vec());
    }
    (outer.0.is_empty() && fields.0.is_empty()).then_some(numbers)
}

/// The octets of the key inside a `PrivateKeyInfo`.
pub(crate) fn read_pkcs8(der: &[u8]) -> Option<&[u8]> {
    let mut fields = Reader(Reader(der).value(SEQUENCE)?);
    fields.value(INTEGER)?;
    fields.value(SEQUENCE)?;
    fields.value(OCTET_STRING)
}

/// What is left to read.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next element, which must have this tag.
    pub(crate) fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (length, rest) = match *self.0 {
            [found, ..] if found != tag => return None,
            [_, 0x82, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
            [_, 0x81, length, ref rest @ ..] => (usize::from(length), rest),
            [_, length @ ..=0x7f, ref rest @ ..] => (usize::from(length), rest),
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let inner = read_pkcs8(&sequence);
            prop_assert!(inner.is_none_or(|inner| inner.len() < der.len()));
        }
    }

    #[test]
    fn oversized_numbers_are_refused() {
        let numbers = [(); RSA_NUMBERS].map(|()| Zeroizing::new(vec![1; 9000]));
        assert_eq!(write_rsa_private_key(&numbers), None);
    }
}
