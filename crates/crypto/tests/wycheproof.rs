//! Every case of the Wycheproof files in the public test data, only through the public interface.
//!
//! The expected result of each case is compared with the actual result, and the number of cases of
//! each kind with the number in this file. If a file changes, or a new one is added, the test fails
//! until a developer has reviewed it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64, HEXLOWER};
use nonesuch_crypto::{Algorithm, BadSignature, KeyError, PrivateKey, PublicKey};
use serde_json::Value;

/// Number of cases of each kind in a file.
#[derive(Default, Debug, PartialEq, Eq)]
struct Counts {
    /// Must be accepted, and is accepted. For signing: the signature is the expected one.
    valid: usize,
    /// Must be rejected, and is rejected.
    invalid: usize,
    /// "Acceptable": both results are allowed. [`expected_for_acceptable`] defines the result of
    /// this crate.
    acceptable: usize,
    /// Cases that need features that DNSSEC does not have, by reason.
    not_applicable: BTreeMap<&'static str, usize>,
}

/// The operation that the cases of a file test.
enum Operation {
    Verify(Algorithm),
    /// Deterministic ML-DSA signatures from a seed.
    SignSeed,
}

/// One file: valid, invalid, acceptable, and not applicable cases.
struct VectorFile {
    name: &'static str,
    operation: Operation,
    counts: (usize, usize, usize, &'static [(&'static str, usize)]),
}

const NEEDS_CONTEXT: &str = "a context, which DNSSEC leaves empty";
const NEEDS_DIGEST_INPUT: &str = "a message given as its digest mu alone";
const NEEDS_RANDOMNESS: &str = "randomness given by the caller";

const VECTOR_FILES: &[VectorFile] = &[
    verify("ecdsa_secp256r1_sha256_p1363_test.json", Algorithm::ECDSAP256SHA256, (173, 89, 0, &[])),
    verify("ecdsa_secp384r1_sha384_p1363_test.json", Algorithm::ECDSAP384SHA384, (193, 87, 0, &[])),
    verify("ed25519_test.json", Algorithm::ED25519, (88, 63, 0, &[])),
    verify("ed448_test.json", Algorithm::ED448, (17, 70, 0, &[])),
    VectorFile {
        name: "mldsa_44_sign_seed_test.json",
        operation: Operation::SignSeed,
        counts: (70, 3, 0, &[(NEEDS_CONTEXT, 4), (NEEDS_DIGEST_INPUT, 8), (NEEDS_RANDOMNESS, 1)]),
    },
    verify("mldsa_44_verify_test.json", Algorithm::MLDSA44, (75, 98, 0, &[(NEEDS_CONTEXT, 7)])),
    verify("rsa_signature_2048_sha256_test.json", Algorithm::RSASHA256, (9, 249, 1, &[])),
    verify("rsa_signature_2048_sha512_test.json", Algorithm::RSASHA512, (8, 250, 1, &[])),
    verify("rsa_signature_3072_sha256_test.json", Algorithm::RSASHA256, (8, 250, 1, &[])),
    verify("rsa_signature_4096_sha256_test.json", Algorithm::RSASHA256, (7, 250, 1, &[])),
];

const fn verify(
    name: &'static str,
    algorithm: Algorithm,
    counts: (usize, usize, usize, &'static [(&'static str, usize)]),
) -> VectorFile {
    VectorFile { name, operation: Operation::Verify(algorithm), counts }
}

/// Returns the directory of the files.
fn directory() -> Option<PathBuf> {
    nonesuch_testing::public_data("wycheproof/testvectors_v1")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field:?} in {value}"))
}

fn octets(value: &Value, field: &str) -> Vec<u8> {
    HEXLOWER.decode(text(value, field).as_bytes()).unwrap()
}

fn flags(case: &Value) -> Vec<&str> {
    case["flags"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()).collect()
}

/// Returns the DNSKEY public key field of the key of a group.
fn public_key(algorithm: Algorithm, group: &Value) -> Vec<u8> {
    let key = &group["publicKey"];
    match algorithm {
        // RFC 6605, section 4: both coordinates, without the octet 4 of SEC 1.
        Algorithm::ECDSAP256SHA256 | Algorithm::ECDSAP384SHA384 => {
            let point = octets(key, "uncompressed");
            assert_eq!(point[0], 4);
            point[1..].to_vec()
        }
        Algorithm::ED25519 | Algorithm::ED448 => octets(key, "pk"),
        Algorithm::MLDSA44 => octets(group, "publicKey"),
        // RFC 3110, section 2: the exponent with its length, and the modulus without leading zeros.
        _ => {
            let (exponent, modulus) = (octets(key, "publicExponent"), octets(key, "modulus"));
            let modulus = &modulus[modulus.iter().position(|octet| *octet != 0).unwrap()..];
            [&[u8::try_from(exponent.len()).unwrap()], &exponent[..], modulus].concat()
        }
    }
}

/// Returns the result of this crate for an "acceptable" case, by its flags.
fn expected_for_acceptable(flags: &[&str]) -> Result<(), BadSignature> {
    match flags {
        // A DigestInfo whose hash has no parameters. RFC 8017, appendix B.1, requires parameters
        // with the value NULL, and the prefix in RFC 5702, section 3.1, has them. This crate
        // rejects it, like every library that compares the complete prefix.
        ["MissingNull"] => Err(BadSignature),
        other => panic!("acceptable with the flags {other:?}: decide what we do"),
    }
}

/// Returns whether the case has a non-empty context.
fn has_context(case: &Value) -> bool {
    case["ctx"].as_str().is_some_and(|context| !context.is_empty())
}

/// Verifies a signature twice with a key that was not used before. The code of the first verification with a key
/// can differ from that of later ones.
fn verify_with_new_key(
    algorithm: Algorithm,
    field: &[u8],
    message: &[u8],
    signature: &[u8],
) -> [Result<(), BadSignature>; 2] {
    let key = PublicKey::parse(algorithm, field).unwrap();
    [key.verify(message, signature), key.verify(message, signature)]
}

fn run_verify(algorithm: Algorithm, group: &Value, counts: &mut Counts) {
    let field = public_key(algorithm, group);
    let key = PublicKey::parse(algorithm, &field);
    for case in group["tests"].as_array().unwrap() {
        let (message, signature) = (octets(case, "msg"), octets(case, "sig"));
        let flags = flags(case);
        let found = match &key {
            Ok(key) => {
                let found = key.verify(&message, &signature);
                assert_eq!(
                    verify_with_new_key(algorithm, &field, &message, &signature),
                    [found; 2],
                    "{case}"
                );
                found
            }
            // An invalid key verifies nothing. The files have such keys only for ML-DSA.
            Err(error) => {
                let expected = KeyError::PublicKeyLength { algorithm, expected: 1312, found: field.len() };
                assert_eq!((error, &flags[..]), (&expected, &["IncorrectPublicKeyLength"][..]), "{case}");
                Err(BadSignature)
            }
        };
        if has_context(case) {
            assert_eq!(found, Err(BadSignature), "{case}");
            *counts.not_applicable.entry(NEEDS_CONTEXT).or_default() += 1;
            continue;
        }
        let (expected, counter) = match text(case, "result") {
            "valid" => (Ok(()), &mut counts.valid),
            "invalid" => (Err(BadSignature), &mut counts.invalid),
            "acceptable" => (expected_for_acceptable(&flags), &mut counts.acceptable),
            other => panic!("result {other:?}"),
        };
        assert_eq!(found, expected, "{case}");
        *counter += 1;
    }
}

/// Returns the reason why a signing case needs a feature that this crate does not have, or `None`
/// if it does not.
fn why_not_applicable(case: &Value) -> Option<&'static str> {
    if has_context(case) {
        Some(NEEDS_CONTEXT)
    } else if case["msg"].is_null() {
        Some(NEEDS_DIGEST_INPUT)
    } else if !case["rnd"].is_null() {
        Some(NEEDS_RANDOMNESS)
    } else {
        None
    }
}

fn run_sign(group: &Value, counts: &mut Counts) {
    let seed = BASE64.encode(&octets(group, "privateSeed"));
    let file = format!("Private-key-format: v1.3\nAlgorithm: 18 (MLDSA44)\nPrivateKey: {seed}\n");
    let key = PrivateKey::from_bind(&file);
    for case in group["tests"].as_array().unwrap() {
        let key = match &key {
            Ok(key) => key,
            Err(error) => {
                assert!(matches!(error, KeyError::PrivateKeyLength { expected: 32, .. }), "{case}: {error}");
                assert_eq!(
                    (text(case, "result"), &flags(case)[..]),
                    ("invalid", &["IncorrectPrivateKeyLength"][..])
                );
                counts.invalid += 1;
                continue;
            }
        };
        assert_eq!(key.public_key(), octets(group, "publicKey"), "{case}");
        let public = PublicKey::parse(Algorithm::MLDSA44, key.public_key()).unwrap();
        if let Some(reason) = why_not_applicable(case) {
            // The signature is valid, whatever its randomness.
            if reason == NEEDS_RANDOMNESS {
                assert_eq!(public.verify(&octets(case, "msg"), &octets(case, "sig")), Ok(()), "{case}");
            }
            *counts.not_applicable.entry(reason).or_default() += 1;
            continue;
        }
        assert_eq!(text(case, "result"), "valid", "{case}");
        let (message, expected) = (octets(case, "msg"), octets(case, "sig"));
        let mut signature = Vec::new();
        key.sign(&message, &mut signature).unwrap();
        assert_eq!(signature, expected, "{case}");
        assert_eq!(public.verify(&message, &signature), Ok(()), "{case}");
        counts.valid += 1;
    }
}

fn run(file: &VectorFile, directory: &Path) {
    let content = fs::read_to_string(directory.join(file.name)).unwrap();
    let content: Value = serde_json::from_str(&content).unwrap();
    let mut counts = Counts::default();
    for group in content["testGroups"].as_array().unwrap() {
        match file.operation {
            Operation::Verify(algorithm) => {
                // The group must have the hash function of the algorithm. If not, the file is for
                // another algorithm.
                let hash = group["sha"].as_str();
                let expected = match algorithm {
                    Algorithm::RSASHA256 | Algorithm::ECDSAP256SHA256 => Some("SHA-256"),
                    Algorithm::ECDSAP384SHA384 => Some("SHA-384"),
                    Algorithm::RSASHA512 => Some("SHA-512"),
                    _ => None,
                };
                assert_eq!(hash, expected);
                run_verify(algorithm, group, &mut counts);
            }
            Operation::SignSeed => run_sign(group, &mut counts),
        }
    }
    let others: usize = counts.not_applicable.values().sum();
    let total = counts.valid + counts.invalid + counts.acceptable + others;
    println!(
        "{}: {total} cases: {} valid, {} invalid, {} acceptable, {others} not applicable {:?}",
        file.name, counts.valid, counts.invalid, counts.acceptable, counts.not_applicable
    );
    assert_eq!(content["numberOfTests"], total, "{}", file.name);
    let (valid, invalid, acceptable, not_applicable) = file.counts;
    let expected =
        Counts { valid, invalid, acceptable, not_applicable: not_applicable.iter().copied().collect() };
    assert_eq!(counts, expected, "{}", file.name);
}

#[test]
fn every_case_of_every_file() {
    let Some(directory) = directory() else { return };
    for file in VECTOR_FILES {
        run(file, &directory);
    }
}

#[test]
fn every_file_of_the_directory_is_listed() {
    let Some(directory) = directory() else { return };
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    found.sort();
    let handled: Vec<_> = VECTOR_FILES.iter().map(|file| file.name).collect();
    assert_eq!(found, handled);
}
