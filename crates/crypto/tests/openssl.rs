//! Cross-checks with the `openssl` command, version 3: it signs with keys of this crate and this
//! crate verifies, and the reverse.
//!
//! This test encodes keys in DER: PKCS#1 and SEC 1 private keys, PKCS#8 for the Edwards curves (RFC
//! 8410), and `SubjectPublicKeyInfo` (RFC 5280, section 4.1.2.7).

use data_encoding::{BASE64, BASE64_MIME};
use nonesuch_crypto::{Algorithm, BadSignature, PrivateKey, PublicKey};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// Object identifiers with tag and length.
const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
const EC: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[6, 5, 0x2b, 0x81, 4, 0, 34];
const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];
const ED448: &[u8] = &[6, 3, 0x2b, 0x65, 0x71];

fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match content.len() {
        length @ 0..0x80 => out.push(length as u8),
        length @ 0x80..0x100 => out.extend([0x81, length as u8]),
        length => out.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend(content);
    out
}

fn integer(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|octet| **octet == 0).count();
    let number = &number[zeros..];
    let sign: &[u8] = if number.first().is_none_or(|first| *first >= 0x80) { &[0] } else { &[] };
    element(INTEGER, &[sign, number])
}

/// Returns the content of the first element, and the octets after it. Only for lengths below 128,
/// which signatures have.
fn split_element(tag: u8, der: &[u8]) -> (&[u8], &[u8]) {
    assert_eq!(der[0], tag);
    assert!(der[1] < 0x80);
    der[2..].split_at(usize::from(der[1]))
}

/// Converts the two numbers of an ECDSA signature from DER to their fixed length.
fn to_fixed_length(der: &[u8], octets: usize) -> Vec<u8> {
    let (numbers, rest) = split_element(SEQUENCE, der);
    assert!(rest.is_empty());
    let (r, rest) = split_element(INTEGER, numbers);
    let (s, rest) = split_element(INTEGER, rest);
    assert!(rest.is_empty());
    let mut out = vec![0; 2 * octets];
    for (half, number) in out.chunks_mut(octets).zip([r, s]) {
        let number = number.strip_prefix(&[0]).unwrap_or(number);
        half[octets - number.len()..].copy_from_slice(number);
    }
    out
}

/// The encoding of the keys of an algorithm, and the matching calls of openssl.
#[derive(Clone, Copy)]
enum Kind {
    Rsa,
    Curve(&'static [u8]),
    Edwards(&'static [u8]),
}

struct Case {
    algorithm: Algorithm,
    kind: Kind,
    /// Option of `openssl dgst`.
    digest: &'static str,
    bits: Option<u16>,
}

impl Case {
    const fn new(algorithm: Algorithm, kind: Kind, digest: &'static str, bits: Option<u16>) -> Self {
        Self { algorithm, kind, digest, bits }
    }

    /// Returns the private key in PEM.
    fn private_pem(&self, key: &PrivateKey) -> String {
        let text = key.to_bind();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            BASE64.decode(line.unwrap().as_bytes()).unwrap()
        };
        match self.kind {
            Kind::Rsa => {
                let names = ["Modulus", "PublicExponent", "PrivateExponent", "Prime1", "Prime2"];
                let names = names.into_iter().chain(["Exponent1", "Exponent2", "Coefficient"]);
                let numbers: Vec<u8> = names.flat_map(|name| integer(&field(name))).collect();
                pem("RSA PRIVATE KEY", &element(SEQUENCE, &[&integer(&[]), &numbers]))
            }
            Kind::Curve(curve) => {
                let scalar = element(OCTET_STRING, &[&field("PrivateKey")]);
                let curve = element(0xa0, &[curve]);
                pem("EC PRIVATE KEY", &element(SEQUENCE, &[&integer(&[1]), &scalar, &curve]))
            }
            Kind::Edwards(curve) => {
                let seed = element(OCTET_STRING, &[&field("PrivateKey")]);
                let parts: [&[u8]; 3] =
                    [&integer(&[]), &element(SEQUENCE, &[curve]), &element(OCTET_STRING, &[&seed])];
                pem("PRIVATE KEY", &element(SEQUENCE, &parts))
            }
        }
    }

    /// Returns the public key in PEM, from the DNSKEY field.
    fn public_pem(&self, field: &[u8]) -> String {
        let (algorithm, key) = match self.kind {
            Kind::Rsa => {
                let (exponent, modulus) = field[1..].split_at(usize::from(field[0]));
                let numbers = [integer(modulus), integer(exponent)].concat();
                (RSA.to_vec(), element(SEQUENCE, &[&numbers]))
            }
            Kind::Curve(curve) => ([EC, curve].concat(), [&[4], field].concat()),
            Kind::Edwards(curve) => (curve.to_vec(), field.to_vec()),
        };
        let parts = [element(SEQUENCE, &[&algorithm]), element(BIT_STRING, &[&[0], &key])];
        pem("PUBLIC KEY", &element(SEQUENCE, &[&parts.concat()]))
    }

    /// Converts a signature of openssl to the format of the RRSIG field.
    fn to_field(&self, key: &PrivateKey, signature: &[u8]) -> Vec<u8> {
        match self.kind {
            Kind::Curve(_) => to_fixed_length(signature, key.signature_octets() / 2),
            _ => signature.to_vec(),
        }
    }

    /// Converts a signature from the format of the RRSIG field to that of openssl.
    fn to_openssl(&self, signature: &[u8]) -> Vec<u8> {
        match self.kind {
            Kind::Curve(_) => {
                let (r, s) = signature.split_at(signature.len() / 2);
                element(SEQUENCE, &[&integer(r), &integer(s)])
            }
            _ => signature.to_vec(),
        }
    }

    fn sign(&self, files: &Files) -> Output {
        let mut command = Command::new("openssl");
        match self.kind {
            Kind::Edwards(_) => command.args(["pkeyutl", "-sign", "-rawin", "-inkey"]).arg(&files.private),
            _ => command.args(["dgst", self.digest, "-sign"]).arg(&files.private),
        };
        command.arg("-out").arg(&files.signature);
        if matches!(self.kind, Kind::Edwards(_)) {
            command.arg("-in");
        }
        command.arg(&files.message).output().unwrap()
    }

    fn verify(&self, files: &Files) -> Output {
        let mut command = Command::new("openssl");
        match self.kind {
            Kind::Edwards(_) => {
                command.args(["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey"]).arg(&files.public);
                command.arg("-sigfile").arg(&files.signature).arg("-in");
            }
            _ => {
                command.args(["dgst", self.digest, "-verify"]).arg(&files.public);
                command.arg("-signature").arg(&files.signature);
            }
        }
        command.arg(&files.message).output().unwrap()
    }

    fn check(&self, files: &Files) {
        let name = format!("{} with {:?} bits", self.algorithm, self.bits);
        let key = PrivateKey::generate(self.algorithm, self.bits).unwrap();
        let public = PublicKey::parse(self.algorithm, key.public_key()).unwrap();
        fs::write(&files.private, self.private_pem(&key)).unwrap();
        fs::write(&files.public, self.public_pem(key.public_key())).unwrap();
        for length in [1, 120, 5000] {
            let message: Vec<u8> = (0..length).map(|index| (index * 7) as u8).collect();
            fs::write(&files.message, &message).unwrap();
            // openssl signs, this crate verifies.
            let done = self.sign(files);
            assert!(done.status.success(), "{name}: {done:?}");
            let mut signature = self.to_field(&key, &fs::read(&files.signature).unwrap());
            assert_eq!(public.verify(&message, &signature), Ok(()), "{name}");
            signature[length % 60] ^= 1;
            assert_eq!(public.verify(&message, &signature), Err(BadSignature), "{name}");
            // This crate signs, openssl verifies.
            signature.clear();
            key.sign(&message, &mut signature).unwrap();
            fs::write(&files.signature, self.to_openssl(&signature)).unwrap();
            let done = self.verify(files);
            assert!(done.status.success(), "{name}: {done:?}");
            signature[length % 60] ^= 1;
            fs::write(&files.signature, self.to_openssl(&signature)).unwrap();
            assert!(!self.verify(files).status.success(), "{name}");
        }
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_MIME.encode(der).replace('\r', "");
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", text.trim_end())
}

struct Files {
    private: PathBuf,
    public: PathBuf,
    message: PathBuf,
    signature: PathBuf,
    _folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| Path::join(folder.path(), name);
        let [private, public] = ["private.pem", "public.pem"].map(file);
        let [message, signature] = ["message", "signature"].map(file);
        Self { private, public, message, signature, _folder: folder }
    }
}

/// Returns whether the test must be skipped because openssl is missing or older than version 3. If
/// so, records a skip.
fn must_skip(test: &str) -> bool {
    let version = Command::new("openssl").arg("version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let major = version.ok().and_then(|text| text.strip_prefix("OpenSSL ")?.split('.').next()?.parse().ok());
    let is_old = major.is_none_or(|major: u32| major < 3);
    if is_old {
        nonesuch_testing::record_skip(&format!("{test}: no openssl 3 is installed"));
    }
    is_old
}

fn check(test: &str, cases: &[Case]) {
    if must_skip(test) {
        return;
    }
    let files = Files::new();
    cases.iter().for_each(|case| case.check(&files));
}

#[test]
fn ecdsa_crosses() {
    let p256 = Case::new(Algorithm::ECDSAP256SHA256, Kind::Curve(P256), "-sha256", None);
    let p384 = Case::new(Algorithm::ECDSAP384SHA384, Kind::Curve(P384), "-sha384", None);
    check("ecdsa_crosses", &[p256, p384]);
}

#[test]
fn ed25519_crosses() {
    check("ed25519_crosses", &[Case::new(Algorithm::ED25519, Kind::Edwards(ED25519), "", None)]);
}

#[test]
fn ed448_crosses() {
    check("ed448_crosses", &[Case::new(Algorithm::ED448, Kind::Edwards(ED448), "", None)]);
}

#[test]
fn rsa_crosses() {
    let cases: Vec<_> = [(Algorithm::RSASHA256, "-sha256"), (Algorithm::RSASHA512, "-sha512")]
        .into_iter()
        .flat_map(|(algorithm, digest)| {
            [1280, 2048, 3072, 4096].map(|bits| Case::new(algorithm, Kind::Rsa, digest, Some(bits)))
        })
        .collect();
    check("rsa_crosses", &cases);
}
