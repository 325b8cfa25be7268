//! Files that are accepted, and damaged files with the error for each damage.

use proptest::prelude::*;

use super::*;
use crate::rfc_tests::seeded_config;
use crate::vrf::VRF_ALGORITHMS;
use crate::vrf::tests::keys;

/// The key of RFC 9381, example 18.
const TEXT: &str = "Nonesuch-VRF-key-format: v1\nAlgorithm: 2 (ECVRF-EDWARDS25519-SHA512-TAI)\n\
                    PublicKey: /FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU=\n\
                    PrivateKey: xaqN9D+fg3vtt0QvMdy3sWbThTUHbwlLhc46LgtEWPc=\n";

fn error(text: &str) -> VrfKeyError {
    VrfPrivateKey::from_text(text).map(|_| ()).unwrap_err()
}

#[test]
fn files_keep_the_key() {
    assert_eq!(*VrfPrivateKey::from_text(TEXT).unwrap().to_text(), TEXT);
    for (private, public) in keys() {
        let text = private.to_text();
        // The string never grew.
        assert!(text.len() <= text.capacity() && text.capacity() < text.len() + 160);
        let read = VrfPrivateKey::from_text(&text).unwrap();
        assert_eq!(read.to_text(), text);
        assert_eq!((read.algorithm(), read.public_key()), (private.algorithm(), private.public_key()));
        let mut proof = Vec::new();
        let hash = read.prove(b"name", &mut proof).unwrap();
        assert_eq!(public.verify(b"name", &proof), Ok(hash));
    }
}

#[test]
fn comments_blank_lines_and_crlf_are_ignored() {
    let text = format!("; a comment\n\n{TEXT}\n; another\n");
    assert!(VrfPrivateKey::from_text(&text).is_ok());
    assert!(VrfPrivateKey::from_text(&text.replace('\n', "\r\n")).is_ok());
}

#[test]
fn each_damage_has_its_own_error() {
    let algorithm = VrfAlgorithm::EDWARDS25519_SHA512_TAI;
    for text in ["", "no colon", "-----BEGIN PRIVATE KEY-----", "Private-key-format: v1.3\nAlgorithm: 13\n"] {
        assert_eq!(error(text), VrfKeyError::NotAKeyFile);
    }
    assert_eq!(error(TEXT.split_once('\n').unwrap().1), VrfKeyError::NotAKeyFile);
    assert_eq!(error(&TEXT.replace("v1", "v2")), VrfKeyError::FormatVersion);
    assert_eq!(error(&TEXT.replace("2 (", "(")), VrfKeyError::AlgorithmField);
    assert_eq!(error(&TEXT.replace("2 (", "258 (")), VrfKeyError::AlgorithmField);
    assert_eq!(error(&TEXT.replace("2 (", "99 (")), VrfKeyError::UnknownAlgorithm(VrfAlgorithm(99)));
    for name in ["Algorithm", "PublicKey", "PrivateKey"] {
        assert_eq!(error(&TEXT.replace(name, "; ")), VrfKeyError::MissingField(name));
        let line = TEXT.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(error(&format!("{TEXT}{line}\n")), VrfKeyError::RepeatedField(name));
    }
    assert_eq!(error(&TEXT.replace("PublicKey", "Other")), VrfKeyError::UnknownField { line: 3 });
    assert_eq!(error(&format!("{TEXT}no colon\n")), VrfKeyError::MalformedLine { line: 5 });
    assert_eq!(error(&TEXT.replace("gCU=", "gCU")), VrfKeyError::NotBase64("PublicKey"));
    assert_eq!(error(&TEXT.replace("WPc=", "WPc")), VrfKeyError::NotBase64("PrivateKey"));
    assert_eq!(error(&TEXT.replace("xaqN", "")), VrfKeyError::InvalidPrivateKey(algorithm));
    assert_eq!(error(&TEXT.replace("/FHN", "/FHO")), VrfKeyError::PublicKeyMismatch(algorithm));
    assert_eq!(error(&TEXT.replace("xaqN", "xaqO")), VrfKeyError::PublicKeyMismatch(algorithm));
}

/// The file of each algorithm, with the number of each other algorithm.
#[test]
fn keys_of_other_algorithms_are_rejected() {
    for (key, _) in keys() {
        for entry in &VRF_ALGORITHMS {
            let number = format!("Algorithm: {} (", entry.algorithm.0);
            let text = key.to_text().replace(&format!("Algorithm: {} (", key.algorithm().0), &number);
            let read = VrfPrivateKey::from_text(&text);
            // The two suites of one curve have the same keys.
            let same_curve = [2, 3].contains(&key.algorithm().0) && [2, 3].contains(&entry.algorithm.0);
            assert_eq!(read.is_ok(), entry.algorithm == key.algorithm() || same_curve, "{key:?}");
        }
    }
}

/// No error message contains a part of the secret.
#[test]
fn errors_show_no_secret() {
    let secret = TEXT.lines().last().unwrap().split_once(": ").unwrap().1;
    let damages = [("WPc=", "WPc"), ("xaqN", "xaqO"), ("PublicKey", "x"), ("2 (", "1 ("), ("2 (", "128 (")];
    for (from, to) in damages {
        let damaged = error(&TEXT.replace(from, to));
        assert!(!format!("{damaged} {damaged:?}").contains(&secret[5..12]));
    }
}

proptest! {
    #![proptest_config(seeded_config(32))]

    #[test]
    fn damaged_text_does_not_panic(position in any::<prop::sample::Index>(), octet in 0_u8..128, cut in any::<bool>()) {
        let mut text = TEXT.as_bytes().to_vec();
        let position = position.index(text.len());
        if cut { text.truncate(position) } else { text[position] = octet }
        let text = String::from_utf8(text).unwrap();
        if let Ok(key) = VrfPrivateKey::from_text(&text) {
            prop_assert_eq!(VrfPrivateKey::from_text(&key.to_text()).unwrap().to_text(), key.to_text());
        }
    }
}
