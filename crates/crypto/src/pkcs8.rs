//! Reads private keys in PKCS#8 (RFC 5208, RFC 5958) and its PEM form (RFC 7468), as OpenSSL and
//! Knot DNS write them: RSA (RFC 8017), P-256 and P-384 (RFC 5915), Ed25519 and Ed448 (RFC 8410).
//! This crate does not write PKCS#8.

use data_encoding::BASE64;
use pkcs8::der::Decode as _;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use sec1::EcPrivateKey;
use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::bind_format::{self, PRIVATE_KEY};
use crate::der;
use crate::error::KeyError;
use crate::key::PrivateKey;
use crate::rsa::RSA_FIELDS;

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// The format of the private key inside a `PrivateKeyInfo`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyFormat {
    /// `RSAPrivateKey` (RFC 8017, appendix A.1.2).
    Rsa,
    /// `ECPrivateKey` (RFC 5915, section 3).
    Ec,
    /// `CurvePrivateKey` (RFC 8410, section 7).
    Edwards,
}

/// A kind of key: its identifiers, and the algorithms with such keys.
struct KeyKind {
    oid: ObjectIdentifier,
    /// The named curve, if the identifier requires one.
    curve: Option<ObjectIdentifier>,
    format: KeyFormat,
    algorithms: &'static [Algorithm],
}

/// id-ecPublicKey (RFC 5480, section 2.1.1).
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");

static KEY_KINDS: [KeyKind; 5] = [
    // rsaEncryption (RFC 8017, appendix A.1).
    KeyKind {
        oid: ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1"),
        curve: None,
        format: KeyFormat::Rsa,
        algorithms: &[Algorithm::RSASHA256, Algorithm::RSASHA512],
    },
    // secp256r1.
    KeyKind {
        oid: EC_PUBLIC_KEY,
        curve: Some(ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7")),
        format: KeyFormat::Ec,
        algorithms: &[Algorithm::ECDSAP256SHA256],
    },
    // secp384r1.
    KeyKind {
        oid: EC_PUBLIC_KEY,
        curve: Some(ObjectIdentifier::new_unwrap("1.3.132.0.34")),
        format: KeyFormat::Ec,
        algorithms: &[Algorithm::ECDSAP384SHA384],
    },
    // id-Ed25519 (RFC 8410, section 3).
    KeyKind {
        oid: ObjectIdentifier::new_unwrap("1.3.101.112"),
        curve: None,
        format: KeyFormat::Edwards,
        algorithms: &[Algorithm::ED25519],
    },
    // id-Ed448.
    KeyKind {
        oid: ObjectIdentifier::new_unwrap("1.3.101.113"),
        curve: None,
        format: KeyFormat::Edwards,
        algorithms: &[Algorithm::ED448],
    },
];

/// A `PrivateKeyInfo` or `OneAsymmetricKey` of a supported kind.
struct ParsedKey<'a> {
    kind: &'static KeyKind,
    fields: PrivateKeyInfoRef<'a>,
}

impl<'a> ParsedKey<'a> {
    fn parse(der: &'a [u8]) -> Result<Self, KeyError> {
        let fields = PrivateKeyInfoRef::from_der(der).map_err(|_| KeyError::NotPkcs8)?;
        let curve = fields.algorithm.parameters_oid().ok();
        let is_match = |kind: &&KeyKind| {
            kind.oid == fields.algorithm.oid && (kind.curve.is_none() || kind.curve == curve)
        };
        let kind = KEY_KINDS.iter().find(is_match).ok_or(KeyError::Pkcs8Kind)?;
        Ok(Self { kind, fields })
    }

    /// Returns the octets of the private key, in the format of its kind.
    fn key(&self) -> &'a [u8] {
        self.fields.private_key.as_bytes()
    }

    /// Returns the scalar or seed of a key on a curve, and the public key, if the structure
    /// contains one.
    fn scalar(&self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let public = match &self.fields.public_key {
            // A public key consists of whole octets.
            Some(bits) => Some(bits.as_bytes()?),
            None => None,
        };
        if self.kind.format == KeyFormat::Edwards {
            let seed = <&OctetStringRef>::from_der(self.key()).ok()?;
            return Some((seed.as_bytes(), public));
        }
        let key = EcPrivateKey::from_der(self.key()).ok()?;
        Some((key.private_key, key.public_key.or(public)))
    }
}

/// Returns the algorithms that the PKCS#8 key `der` may belong to. There may be several, because an
/// RSA key does not state its hash function.
///
/// # Errors
/// If `der` is not such a key, or if no algorithm supports its kind.
pub fn pkcs8_algorithms(der: &[u8]) -> Result<&'static [Algorithm], KeyError> {
    Ok(ParsedKey::parse(der)?.kind.algorithms)
}

/// Returns the octets of the first `PRIVATE KEY` in a PEM text (RFC 7468, section 10). They are
/// wiped from memory on drop.
///
/// The PEM decoder of `pkcs8` is not used, because it is stricter than the parsers that RFC 7468,
/// section 3, requires: it only accepts lines of 64 characters without surrounding white space, and
/// only reads the first block of a file.
///
/// # Errors
/// [`KeyError::NotPkcs8`] if there is no such block, if the key is encrypted, or if its Base64 is
/// malformed.
pub fn decode_pem(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != PEM_BEGIN).skip(1);
    // Reserve the full capacity: a string that grows leaves copies in freed memory that are not
    // wiped.
    let mut base64 = Zeroizing::new(String::with_capacity(text.len()));
    loop {
        match lines.next() {
            Some(PEM_END) => break,
            Some(line) => base64.push_str(line),
            None => return Err(KeyError::NotPkcs8),
        }
    }
    let capacity = BASE64.decode_len(base64.len()).map_err(|_| KeyError::NotPkcs8)?;
    let mut der = Zeroizing::new(vec![0; capacity]);
    let length = BASE64.decode_mut(base64.as_bytes(), &mut der).map_err(|_| KeyError::NotPkcs8)?;
    der.truncate(length);
    Ok(der)
}

impl PrivateKey {
    /// Reads a private key in PKCS#8 as a key of `algorithm`, which may be an alias. It derives the
    /// public key. If `der` contains a public key, both must be the same.
    ///
    /// # Errors
    /// If the octets are not such a key, the key is not a key of the algorithm, its values do not
    /// form a key, or the public key in `der` is a different one.
    pub fn from_pkcs8(algorithm: Algorithm, der: &[u8]) -> Result<Self, KeyError> {
        let entry = algorithm.require()?;
        let parsed = ParsedKey::parse(der)?;
        if !parsed.kind.algorithms.contains(&algorithm.without_alias()) {
            return Err(KeyError::Pkcs8Algorithm(algorithm));
        }
        let invalid = || KeyError::InvalidPrivateKey(algorithm);
        if parsed.kind.format == KeyFormat::Rsa {
            let numbers = der::read_rsa_private_key(parsed.key()).ok_or_else(invalid)?;
            let fields: Vec<(&str, &[u8])> =
                RSA_FIELDS.into_iter().zip(numbers.iter().map(|number| number.as_slice())).collect();
            return Self::from_bind(&bind_format::render(entry, &fields));
        }
        let (scalar, public) = parsed.scalar().ok_or_else(invalid)?;
        // GnuTLS, and therefore Knot DNS, writes an ECDSA scalar as an INTEGER: with a leading zero
        // octet if its first bit is set.
        let scalar =
            scalar.strip_prefix(&[0]).filter(|_| parsed.kind.format == KeyFormat::Ec).unwrap_or(scalar);
        let key = Self::from_bind(&bind_format::render(entry, &[(PRIVATE_KEY, scalar)]))?;
        if public.is_some_and(|public| !is_public_key(parsed.kind.format, public, key.public_key())) {
            return Err(KeyError::PublicKeyMismatch(algorithm));
        }
        Ok(key)
    }
}

/// Returns whether `found`, a public key in PKCS#8, is the DNSKEY public key field `expected`. For
/// ECDSA, `found` is a point in either form of SEC 1, section 2.3.3.
fn is_public_key(format: KeyFormat, found: &[u8], expected: &[u8]) -> bool {
    let (x, y) = expected.split_at(expected.len() / 2);
    match (format, found) {
        (KeyFormat::Ec, [0x04, point @ ..]) => point == expected,
        (KeyFormat::Ec, [sign @ (0x02 | 0x03), point @ ..]) => {
            point == x && y.last().is_some_and(|last| last & 1 == sign & 1)
        }
        (KeyFormat::Ec, _) => false,
        (KeyFormat::Rsa | KeyFormat::Edwards, _) => found == expected,
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use proptest::prelude::*;

    use super::*;
    use crate::{ALGORITHMS, BadSignature, PublicKey};

    /// RFC 8410, section 10.3: without and with attributes and public key.
    const ED25519: &str = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC";
    const ED25519_BOTH: &str = "MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\
                                oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\
                                Z9w7lshQhqowtrbLDFw4rXAxZuE=";
    const ED25519_PUBLIC: &str = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

    fn octets(base64: &str) -> Vec<u8> {
        BASE64.decode(base64.as_bytes()).unwrap()
    }

    const INTEGER: u8 = 0x02;
    const BIT_STRING: u8 = 0x03;
    const OCTET_STRING: u8 = 0x04;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    const SEQUENCE: u8 = 0x30;
    /// `publicKey [1] IMPLICIT BIT STRING` of `OneAsymmetricKey`.
    const CONTEXT_1_PRIMITIVE: u8 = 0x81;
    /// `publicKey [1]` of `ECPrivateKey`, with an explicit tag.
    const CONTEXT_1: u8 = 0xa1;

    /// Encodes an element of less than 65,536 octets.
    fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
        let length = match content.len() {
            0..=0x7f => vec![low],
            0x80..=0xff => vec![0x81, low],
            _ => vec![0x82, high, low],
        };
        [&[tag], length.as_slice(), content.as_slice()].concat()
    }

    /// Encodes `key` in PKCS#8, with a public key if the format allows one. If `public` is given,
    /// an ECDSA scalar gets a leading zero octet, as GnuTLS writes it.
    fn write(kind: &KeyKind, key: &PrivateKey, public: Option<&[u8]>) -> Vec<u8> {
        let text = key.to_bind();
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            octets(value.unwrap())
        };
        let bits = |octets: &[u8]| [&[0], octets].concat();
        let inner = match kind.format {
            KeyFormat::Rsa => der::write_rsa_private_key(&RSA_FIELDS.map(|name| Zeroizing::new(field(name))))
                .unwrap()
                .to_vec(),
            KeyFormat::Edwards => element(OCTET_STRING, &[&field(PRIVATE_KEY)]),
            KeyFormat::Ec => {
                let public = public.map(|key| element(CONTEXT_1, &[&element(BIT_STRING, &[&bits(key)])]));
                let zero: &[u8] = if public.is_some() { &[0] } else { &[] };
                let scalar = element(OCTET_STRING, &[zero, &field(PRIVATE_KEY)]);
                element(SEQUENCE, &[&[INTEGER, 1, 1], &scalar, &public.unwrap_or_default()])
            }
        };
        let curve =
            kind.curve.map(|curve| element(OBJECT_IDENTIFIER, &[curve.as_bytes()])).unwrap_or_default();
        let identifier = element(SEQUENCE, &[&element(OBJECT_IDENTIFIER, &[kind.oid.as_bytes()]), &curve]);
        let outer = public.filter(|_| kind.format == KeyFormat::Edwards);
        let outer = outer.map(|key| element(CONTEXT_1_PRIMITIVE, &[&bits(key)])).unwrap_or_default();
        element(
            SEQUENCE,
            &[
                &[INTEGER, 1, u8::from(!outer.is_empty())],
                &identifier,
                &element(OCTET_STRING, &[&inner]),
                &outer,
            ],
        )
    }

    /// Returns the public key in the format of PKCS#8.
    fn public_of(kind: &KeyKind, key: &PrivateKey) -> Vec<u8> {
        let prefix: &[u8] = if kind.format == KeyFormat::Ec { &[4] } else { &[] };
        [prefix, key.public_key()].concat()
    }

    /// Returns every kind, with a key of each of its algorithms and their aliases.
    fn keys() -> Vec<(&'static KeyKind, PrivateKey)> {
        let of_kind = |kind: &'static KeyKind| {
            let is_match = |algorithm: Algorithm| kind.algorithms.contains(&algorithm.without_alias());
            let rows =
                ALGORITHMS.iter().map(|entry| entry.algorithm).filter(move |algorithm| is_match(*algorithm));
            rows.map(move |algorithm| (kind, PrivateKey::generate(algorithm, None).unwrap()))
        };
        KEY_KINDS.iter().flat_map(of_kind).collect()
    }

    #[test]
    fn rfc8410_keys_are_read() {
        for text in [ED25519, ED25519_BOTH] {
            let key = PrivateKey::from_pkcs8(Algorithm::ED25519, &octets(text)).unwrap();
            assert_eq!(HEXLOWER.encode(key.public_key()), ED25519_PUBLIC);
            assert_eq!(pkcs8_algorithms(&octets(text)), Ok(&[Algorithm::ED25519][..]));
        }
        let mut other = octets(ED25519_BOTH);
        *other.last_mut().unwrap() ^= 1;
        let error = PrivateKey::from_pkcs8(Algorithm::ED25519, &other).err();
        assert_eq!(error, Some(KeyError::PublicKeyMismatch(Algorithm::ED25519)));
    }

    #[test]
    fn keys_of_every_kind_are_read() {
        for (kind, key) in keys() {
            for public in [None, Some(public_of(kind, &key))] {
                let der = write(kind, &key, public.as_deref());
                assert_eq!(pkcs8_algorithms(&der), Ok(kind.algorithms));
                let read = PrivateKey::from_pkcs8(key.algorithm(), &der).unwrap();
                assert_eq!((read.algorithm(), read.to_bind()), (key.algorithm(), key.to_bind()));
            }
        }
    }

    #[test]
    fn a_mismatched_public_key_is_rejected() {
        for (kind, key) in keys().into_iter().filter(|(kind, _)| kind.format != KeyFormat::Rsa) {
            let mismatch = Some(KeyError::PublicKeyMismatch(key.algorithm()));
            let good = public_of(kind, &key);
            for position in [1, good.len() / 2, good.len() - 1] {
                let mut other = good.clone();
                other[position] ^= 0x10;
                let der = write(kind, &key, Some(&other));
                assert_eq!(PrivateKey::from_pkcs8(key.algorithm(), &der).err(), mismatch, "{key:?}");
            }
            if kind.format == KeyFormat::Ec {
                let (x, sign) = (&good[1..=good.len() / 2], 2 | (good[good.len() - 1] & 1));
                let read = |sign| {
                    PrivateKey::from_pkcs8(key.algorithm(), &write(kind, &key, Some(&[&[sign], x].concat())))
                };
                assert!(read(sign).is_ok());
                assert_eq!(read(sign ^ 1).err(), mismatch);
                assert_eq!(read(6).err(), mismatch);
            }
        }
    }

    #[test]
    fn other_algorithms_and_kinds_are_rejected() {
        for (kind, key) in keys() {
            let der = write(kind, &key, None);
            for entry in ALGORITHMS {
                let read = PrivateKey::from_pkcs8(entry.algorithm, &der);
                if kind.algorithms.contains(&entry.algorithm.without_alias()) {
                    assert_eq!(read.unwrap().algorithm(), entry.algorithm);
                } else {
                    assert_eq!(read.err(), Some(KeyError::Pkcs8Algorithm(entry.algorithm)));
                }
            }
            assert_eq!(
                PrivateKey::from_pkcs8(Algorithm(99), &der).err(),
                Some(KeyError::UnknownAlgorithm(Algorithm(99)))
            );
        }
        // X25519, 1.3.101.110, is not a signature algorithm.
        let mut other = octets(ED25519);
        other[11] = 0x6e;
        assert_eq!(pkcs8_algorithms(&other), Err(KeyError::Pkcs8Kind));
        assert_eq!(PrivateKey::from_pkcs8(Algorithm::ED25519, &other).err(), Some(KeyError::Pkcs8Kind));
    }

    #[test]
    fn damaged_keys_are_rejected() {
        for (kind, key) in keys() {
            let der = write(kind, &key, None);
            for end in [0, 1, 4, der.len() / 2, der.len() - 1] {
                assert_eq!(
                    PrivateKey::from_pkcs8(key.algorithm(), &der[..end]).err(),
                    Some(KeyError::NotPkcs8)
                );
            }
            let longer = [der.as_slice(), &[0]].concat();
            assert_eq!(PrivateKey::from_pkcs8(key.algorithm(), &longer).err(), Some(KeyError::NotPkcs8));
            let identifier = element(
                SEQUENCE,
                &[
                    &element(OBJECT_IDENTIFIER, &[kind.oid.as_bytes()]),
                    &kind
                        .curve
                        .map(|curve| element(OBJECT_IDENTIFIER, &[curve.as_bytes()]))
                        .unwrap_or_default(),
                ],
            );
            for inner in [&[][..], &[OCTET_STRING, 1, 1], &[SEQUENCE, 0], &[7; 40]] {
                let der =
                    element(SEQUENCE, &[&[INTEGER, 1, 0], &identifier, &element(OCTET_STRING, &[inner])]);
                let error = PrivateKey::from_pkcs8(key.algorithm(), &der).map(|_| ()).unwrap_err();
                let expected =
                    matches!(error, KeyError::InvalidPrivateKey(_) | KeyError::PrivateKeyLength { .. });
                assert!(expected, "{inner:?}: {error:?}");
            }
        }
    }

    #[test]
    fn pem_is_decoded() {
        let pem = format!("a comment\n{PEM_BEGIN}\r\n{}\r\n{}\n{PEM_END}\n", &ED25519[..40], &ED25519[40..]);
        assert_eq!(*decode_pem(&pem).unwrap(), octets(ED25519));
        let damaged = [
            String::new(),
            pem.replace(PEM_END, ""),
            pem.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"),
            pem.replace("BEGIN PRIVATE", "BEGIN EC PRIVATE"),
            pem.replace("MC4", "M!4"),
            pem.replace("MC4", "MC"),
        ];
        for text in damaged {
            assert_eq!(decode_pem(&text), Err(KeyError::NotPkcs8), "{text}");
        }
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(8))]

        #[test]
        fn damage_does_not_panic(position in any::<prop::sample::Index>(), octet: u8, cut: bool) {
            let mut der = octets(ED25519_BOTH);
            let position = position.index(der.len());
            if cut { der.truncate(position) } else { der[position] = octet }
            for algorithm in [Algorithm::ED25519, Algorithm::RSASHA256, Algorithm::ECDSAP256SHA256] {
                if let Ok(key) = PrivateKey::from_pkcs8(algorithm, &der) {
                    let public = PublicKey::parse(algorithm, key.public_key()).unwrap();
                    prop_assert_eq!(public.verify(b"", &[0; 64]), Err(BadSignature));
                }
            }
        }
    }
}
