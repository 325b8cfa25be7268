//! The format of BIND's `.private` files: one line for each field, with octets in Base64.
//!
//! ```text
//! Private-key-format: v1.3
//! Algorithm: 13 (ECDSAP256SHA256)
//! PrivateKey: <Base64>
//! ```

use std::fmt::Write;

use data_encoding::BASE64;
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, AlgorithmEntry};
use crate::error::KeyError;

/// The field with the scalar or seed of an elliptic curve key.
pub(crate) const PRIVATE_KEY: &str = "PrivateKey";

/// The field with the name of the encoding, for keys of algorithms that are not standardised yet.
const DIALECT: &str = "Dialect";

/// The undecoded fields of a private key file. It borrows the text, so that there is no copy to
/// wipe.
pub(crate) struct PrivateFile<'a> {
    algorithm: Algorithm,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> PrivateFile<'a> {
    /// Splits the text into fields and reads the format version and the algorithm.
    pub(crate) fn parse(text: &'a str) -> Result<Self, KeyError> {
        let mut fields = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(';') {
                continue;
            }
            let (name, value) = line.split_once(':').ok_or(match fields.len() {
                0 => KeyError::NotAPrivateKeyFile,
                _ => KeyError::MalformedLine { line: index + 1 },
            })?;
            fields.push((name.trim_end(), value.trim_start()));
        }
        match fields.first() {
            Some((name, "v1.2" | "v1.3")) if name.eq_ignore_ascii_case("Private-key-format") => {}
            Some((name, _)) if name.eq_ignore_ascii_case("Private-key-format") => {
                return Err(KeyError::FormatVersion);
            }
            _ => return Err(KeyError::NotAPrivateKeyFile),
        }
        let mut file = Self { algorithm: Algorithm(0), fields };
        // The number is followed by a mnemonic, as in "8 (RSASHA256)". The mnemonic is for human
        // readers and differs between programs.
        let number = file.field("Algorithm")?.split_ascii_whitespace().next().unwrap_or_default();
        file.algorithm = Algorithm(parse_number(number).ok_or(KeyError::AlgorithmField)?);
        Ok(file)
    }

    /// Returns the algorithm of the key, which may be unknown.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn field(&self, name: &'static str) -> Result<&'a str, KeyError> {
        let mut found = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let (_, value) = found.next().ok_or(KeyError::MissingField(name))?;
        match found.next() {
            Some(_) => Err(KeyError::RepeatedField(name)),
            None => Ok(value),
        }
    }

    /// Returns an error if the field `Dialect` does not have the expected value. Algorithms without
    /// dialects ignore the field, like all unknown fields.
    pub(crate) fn require_dialect(&self, expected: Option<&'static str>) -> Result<(), KeyError> {
        let Some(expected) = expected else { return Ok(()) };
        match self.field(DIALECT)? {
            found if found == expected => Ok(()),
            _ => Err(KeyError::Dialect { algorithm: self.algorithm, expected }),
        }
    }

    /// Returns the decoded octets of a field.
    pub(crate) fn octets(&self, name: &'static str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let text = self.field(name)?.as_bytes();
        let capacity = BASE64.decode_len(text.len()).map_err(|_| KeyError::NotBase64(name))?;
        let mut octets = Zeroizing::new(vec![0; capacity]);
        let length = BASE64.decode_mut(text, &mut octets).map_err(|_| KeyError::NotBase64(name))?;
        octets.truncate(length);
        Ok(octets)
    }

    /// Returns the decoded octets of the field [`PRIVATE_KEY`], which must have the length
    /// `expected`.
    pub(crate) fn private_key(&self, expected: usize) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let octets = self.octets(PRIVATE_KEY)?;
        if octets.len() != expected {
            let algorithm = self.algorithm;
            return Err(KeyError::PrivateKeyLength { algorithm, expected, found: octets.len() });
        }
        Ok(octets)
    }
}

/// Parses a decimal number from 0 to 255 that consists only of digits. The parser of the standard
/// library would also accept a sign.
pub(crate) fn parse_number(text: &str) -> Option<u8> {
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the text of a private key file.
pub(crate) fn render(entry: &AlgorithmEntry, fields: &[(&'static str, &[u8])]) -> Zeroizing<String> {
    // Reserve the capacity for the whole text: a string that grows would leave parts of the key in
    // freed memory.
    let line = |(name, octets): &(&str, &[u8])| name.len() + BASE64.encode_len(octets.len()) + 3;
    let head = 96 + entry.mnemonic.len();
    let mut text = Zeroizing::new(String::with_capacity(head + fields.iter().map(line).sum::<usize>()));
    let number = entry.algorithm.0;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Private-key-format: v1.3\nAlgorithm: {number} ({})", entry.mnemonic);
    if let Some(dialect) = entry.scheme.dialect {
        let _ = writeln!(text, "{DIALECT}: {dialect}");
    }
    for (name, octets) in fields {
        text.push_str(name);
        text.push_str(": ");
        BASE64.encode_append(octets, &mut text);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PrivateKey;

    const ED25519: &str = "Private-key-format: v1.2\nAlgorithm: 15 (ED25519)\n\
                           PrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=\n";

    fn error(text: &str) -> KeyError {
        PrivateKey::from_bind(text).map(|_| ()).unwrap_err()
    }

    #[test]
    fn text_is_as_bind_writes_it() {
        let key = PrivateKey::from_bind(ED25519).unwrap();
        assert_eq!(*key.to_bind(), ED25519.replace("v1.2", "v1.3"));
    }

    #[test]
    fn times_comments_blank_lines_and_crlf_are_ignored() {
        let text = format!(
            "; a comment\n\n{}Created: 20260101000000\nPublish: 20260101000000\nActivate: 20260101000000\n",
            ED25519.replace("v1.2", "v1.3")
        );
        assert!(PrivateKey::from_bind(&text).is_ok());
        assert!(PrivateKey::from_bind(&text.replace('\n', "\r\n")).is_ok());
    }

    #[test]
    fn each_damage_has_its_own_error() {
        assert_eq!(error(""), KeyError::NotAPrivateKeyFile);
        assert_eq!(error("-----BEGIN PRIVATE KEY-----"), KeyError::NotAPrivateKeyFile);
        assert_eq!(error("Algorithm: 15 (ED25519)\n"), KeyError::NotAPrivateKeyFile);
        assert_eq!(error(&ED25519.replace("v1.2", "v2.0")), KeyError::FormatVersion);
        assert_eq!(error(&ED25519.replace("15 (ED25519)", "ED25519")), KeyError::AlgorithmField);
        assert_eq!(error(&ED25519.replace("15 (ED25519)", "256")), KeyError::AlgorithmField);
        assert_eq!(error(&ED25519.replace("15 (ED25519)", "+15")), KeyError::AlgorithmField);
        assert_eq!(error(&ED25519.replace("15 ", "99 ")), KeyError::UnknownAlgorithm(Algorithm(99)));
        assert_eq!(error(&ED25519.replace("PrivateKey", "Other")), KeyError::MissingField("PrivateKey"));
        assert_eq!(error(&ED25519.replace("jI=", "jI")), KeyError::NotBase64("PrivateKey"));
        assert_eq!(error(&format!("{ED25519}PrivateKey: AA==\n")), KeyError::RepeatedField("PrivateKey"));
        assert_eq!(error(&format!("{ED25519}no colon\n")), KeyError::MalformedLine { line: 4 });
        let short = ED25519.replace("ODIyNjAz", "");
        let algorithm = Algorithm::ED25519;
        assert_eq!(error(&short), KeyError::PrivateKeyLength { algorithm, expected: 32, found: 26 });
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(2))]

        #[test]
        fn damaged_text_does_not_panic(position in any::<prop::sample::Index>(), octet in 0_u8..128, cut in any::<bool>()) {
            let mut text = ED25519.as_bytes().to_vec();
            let position = position.index(text.len());
            if cut { text.truncate(position) } else { text[position] = octet }
            let text = String::from_utf8(text).unwrap();
            if let Ok(key) = PrivateKey::from_bind(&text) {
                prop_assert_eq!(PrivateKey::from_bind(&key.to_bind()).unwrap().to_bind(), key.to_bind());
            }
        }
    }
}
