//! Keys that are malformed, out of range or hostile: each has a distinct error, and the work has a
//! limit.

use data_encoding::BASE64;
use nonesuch_crypto::{ALGORITHMS, Algorithm, BadSignature, KeyError, PrivateKey, PublicKey};

/// Length of the longest public key field that fits into a DNSKEY record.
const MAX_KEY_OCTETS: usize = 65_535 - 4;

/// Returns an RSA public key field (RFC 3110, section 2) with a modulus of this many bits, of which
/// the highest and the lowest are set.
fn rsa_public_key(exponent: &[u8], modulus_bits: usize) -> Vec<u8> {
    let mut modulus = vec![0x5a; modulus_bits.div_ceil(8)];
    modulus[0] = match modulus_bits % 8 {
        0 => 0x80,
        bits => 1 << (bits - 1),
    };
    *modulus.last_mut().unwrap() |= 1;
    let length = u16::try_from(exponent.len()).unwrap().to_be_bytes();
    let length = if length[0] == 0 { vec![length[1]] } else { vec![0, length[0], length[1]] };
    [&length[..], exponent, &modulus].concat()
}

fn parse_error(algorithm: Algorithm, field: &[u8]) -> KeyError {
    match PublicKey::parse(algorithm, field) {
        Err(error) => error,
        Ok(key) => panic!("{key:?} is taken"),
    }
}

fn algorithms() -> impl Iterator<Item = Algorithm> {
    let algorithms = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none());
    algorithms.map(|entry| entry.algorithm)
}

#[test]
fn length_errors_name_both_lengths() {
    let mut checked = 0;
    for algorithm in algorithms() {
        let Some(expected) = algorithm.entry().unwrap().scheme.public_key_octets else { continue };
        for found in [0, 1, expected - 1, expected + 1, 2 * expected, MAX_KEY_OCTETS] {
            let error = KeyError::PublicKeyLength { algorithm, expected, found };
            assert_eq!(parse_error(algorithm, &vec![1; found]), error);
            assert!(!error.is_unusable());
            let text = error.to_string();
            assert!([expected, found].iter().all(|octets| text.contains(&octets.to_string())), "{text}");
            assert!(text.contains(&algorithm.to_string()), "{text}");
        }
        checked += 1;
    }
    assert!(checked >= 3, "{checked}");
}

#[test]
fn points_off_the_curve() {
    for (algorithm, octets) in [(Algorithm::ECDSAP256SHA256, 64), (Algorithm::ECDSAP384SHA384, 96)] {
        let good = PrivateKey::generate(algorithm, None).unwrap().public_key().to_vec();
        let mut fields = vec![vec![0; octets], vec![0xff; octets], vec![1; octets]];
        // The lowest bit of each coordinate.
        for index in [octets / 2 - 1, octets - 1] {
            let mut field = good.clone();
            field[index] ^= 1;
            fields.push(field);
        }
        for field in fields {
            let error = parse_error(algorithm, &field);
            assert_eq!(error, KeyError::NotOnCurve(algorithm));
            assert!(!error.is_unusable());
        }
    }
}

/// No point of Edwards25519 has y = 2. The library may detect this when it parses the key or later,
/// but every signature is invalid.
#[test]
fn an_ed25519_key_that_is_no_point_verifies_nothing() {
    let mut field = [0; 32];
    field[0] = 2;
    match PublicKey::parse(Algorithm::ED25519, &field) {
        Err(error) => assert_eq!(error, KeyError::NotOnCurve(Algorithm::ED25519)),
        Ok(key) => {
            let signature = [&[1][..], &[0; 63]].concat();
            let items = [nonesuch_crypto::VerifyItem { key: &key, message: b"", signature: &signature }; 64];
            let mut outcome = Vec::new();
            nonesuch_crypto::verify_batch(&items, &mut outcome);
            assert_eq!(outcome, [Err(BadSignature); 64]);
            assert_eq!(key.verify(b"", &signature), Err(BadSignature));
        }
    }
}

#[test]
fn rsa_moduli_out_of_range_cannot_be_used() {
    for algorithm in [Algorithm::RSASHA256, Algorithm::RSASHA512] {
        for bits in [1024, 1025, 4095, 4096] {
            let key = PublicKey::parse(algorithm, &rsa_public_key(&[1, 0, 1], bits)).unwrap();
            assert_eq!(key.bits() as usize, bits);
            assert_eq!(key.verify(b"message", &vec![1; bits.div_ceil(8)]), Err(BadSignature));
        }
        for bits in [1, 8, 512, 1023, 4097, 8192, 16_384, (MAX_KEY_OCTETS - 4) * 8] {
            let error = parse_error(algorithm, &rsa_public_key(&[1, 0, 1], bits));
            assert_eq!(error, KeyError::ModulusBits { bits: bits as u32 });
            assert!(error.is_unusable());
        }
    }
}

#[test]
fn rsa_exponents_out_of_range() {
    let algorithm = Algorithm::RSASHA256;
    let none = [&[0, 0, 0][..], &rsa_public_key(&[3], 2048)[2..]].concat();
    assert_eq!(parse_error(algorithm, &none), KeyError::Exponent);
    for exponent in [&[0][..], &[1], &[2], &[1, 0, 0], &[0xfe; 8], &[0xfe; 300], &[2; 65_000]] {
        let error = parse_error(algorithm, &rsa_public_key(exponent, 2048));
        assert_eq!(error, KeyError::Exponent, "{} octets", exponent.len());
        assert!(!error.is_unusable());
    }
    for exponent in [&[1, 0, 0, 0, 0, 0, 0, 0, 1][..], &[1; 256], &[1; 512], &[1; 65_000]] {
        let error = parse_error(algorithm, &rsa_public_key(exponent, 2048));
        let bits = exponent.len() as u32 * 8 - 7;
        assert_eq!(error, KeyError::ExponentBits { bits, maximum: 64 });
        assert!(error.is_unusable());
    }
}

#[test]
fn malformed_rsa_fields() {
    let algorithm = Algorithm::RSASHA512;
    let good = rsa_public_key(&[1, 0, 1], 2048);
    let mut even = good.clone();
    *even.last_mut().unwrap() &= 0xfe;
    let mut zero_first = good;
    zero_first.insert(4, 0);
    let cut_short = [&[0, 0xff, 0xff][..], &[1; 65_000]].concat();
    let fields: [&[u8]; 9] =
        [&[], &[0], &[0, 1], &[0, 0, 1], &[1, 3], &[255, 3, 3], &even, &zero_first, &cut_short];
    for field in fields {
        let error = parse_error(algorithm, field);
        assert_eq!(error, KeyError::MalformedRsa, "{} octets", field.len());
        assert!(!error.is_unusable());
    }
    // Only zeros or only ones, of the maximum length: each gives an error immediately.
    for octet in [0, 1, 0xff] {
        parse_error(algorithm, &vec![octet; MAX_KEY_OCTETS]);
    }
}

#[test]
fn unknown_numbers_cannot_be_used() {
    let mut unknown = 0;
    for number in 0..=255 {
        let algorithm = Algorithm(number);
        if algorithm.entry().is_some() {
            continue;
        }
        for field in [&[][..], &[1; 64], &[1; MAX_KEY_OCTETS]] {
            let error = parse_error(algorithm, field);
            assert_eq!(error, KeyError::UnknownAlgorithm(algorithm));
            assert!(error.is_unusable());
        }
        let text = format!("Private-key-format: v1.3\nAlgorithm: {number}\nPrivateKey: AAAA\n");
        assert_eq!(PrivateKey::from_bind(&text).err(), Some(KeyError::UnknownAlgorithm(algorithm)));
        unknown += 1;
    }
    assert_eq!(unknown, 256 - ALGORITHMS.len());
}

#[test]
fn a_mismatched_public_key_is_an_error() {
    for algorithm in algorithms() {
        let (one, other) = (PrivateKey::generate(algorithm, None), PrivateKey::generate(algorithm, None));
        let (one, other) = (one.unwrap(), other.unwrap());
        let mismatch = KeyError::PublicKeyMismatch(algorithm);
        assert_eq!(one.check_public(one.public_key()), Ok(()));
        assert_eq!(one.check_public(other.public_key()), Err(mismatch.clone()));
        assert_eq!(one.check_public(&[]), Err(mismatch.clone()));
        let mut field = one.public_key().to_vec();
        *field.last_mut().unwrap() ^= 1;
        assert_eq!(one.check_public(&field), Err(mismatch.clone()));
        assert!(mismatch.to_string().contains(&algorithm.to_string()), "{mismatch}");
    }
}

/// A file with the fields of one key and a public number of another key.
#[test]
fn an_rsa_file_with_another_modulus_is_damaged() {
    let algorithm = Algorithm::RSASHA256;
    for bits in [1280, 2048] {
        let make = || PrivateKey::generate(algorithm, Some(bits)).unwrap();
        let (one, other) = (make().to_bind(), make().to_bind());
        let modulus = |text: &str| text.lines().find(|line| line.starts_with("Modulus")).unwrap().to_owned();
        let mixed = one.replace(&modulus(&one), &modulus(&other));
        assert_eq!(PrivateKey::from_bind(&mixed).err(), Some(KeyError::InvalidPrivateKey(algorithm)));
    }
}

#[test]
fn private_keys_of_other_lengths_are_rejected() {
    for algorithm in algorithms().filter(|algorithm| algorithm.entry().unwrap().scheme.key_lengths.is_none())
    {
        let text = PrivateKey::generate(algorithm, None).unwrap().to_bind();
        let (head, value) = text.split_once("PrivateKey: ").unwrap();
        let octets = BASE64.decode(value.trim_end().as_bytes()).unwrap();
        let longer = [&octets[..], &[1]].concat();
        for octets in [&[][..], &longer, &vec![1; 65_535], &vec![0; 65_535]] {
            let text = format!("{head}PrivateKey: {}\n", BASE64.encode(octets));
            let error = PrivateKey::from_bind(&text).map(|_| ()).unwrap_err();
            let matches = matches!(error, KeyError::PrivateKeyLength { found, .. } if found == octets.len());
            assert!(matches, "{error:?}, {} octets", octets.len());
        }
    }
}

/// The errors of a received key also have different texts.
#[test]
fn error_messages_differ() {
    let algorithm = Algorithm::RSASHA256;
    let texts: Vec<String> = [
        parse_error(Algorithm(99), &[1; 64]),
        parse_error(Algorithm::ED25519, &[1; 31]),
        parse_error(Algorithm::ECDSAP256SHA256, &[1; 64]),
        parse_error(algorithm, &[0]),
        parse_error(algorithm, &rsa_public_key(&[3], 1023)),
        parse_error(algorithm, &rsa_public_key(&[3], 4097)),
        parse_error(algorithm, &rsa_public_key(&[1], 2048)),
        parse_error(algorithm, &rsa_public_key(&[1; 9], 2048)),
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    for (index, text) in texts.iter().enumerate() {
        assert!(!texts[..index].contains(text), "{text}");
    }
}

/// The maximum work for one signature: the longest modulus with the longest exponent, all bits set.
/// The limit is about ten times the time of a slow machine. Without the limits on keys, the work
/// would be about a thousand times larger.
#[test]
fn the_most_expensive_rsa_key_is_fast_enough() {
    let field = [&[8][..], &[0xff; 8], &[0xff; 512]].concat();
    let key = PublicKey::parse(Algorithm::RSASHA512, &field).unwrap();
    let signature = [&[0x7f][..], &[0xff; 511]].concat();
    let verify_once = || {
        let start = std::time::Instant::now();
        assert_eq!(key.verify(b"message", &signature), Err(BadSignature));
        start.elapsed()
    };
    let minimum = (0..10).map(|_| verify_once()).min().unwrap();
    println!("the_most_expensive_rsa_key_is_fast_enough: {minimum:?}");
    assert!(minimum.as_millis() < 20, "{minimum:?}");
}
