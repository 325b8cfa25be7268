//! The format of VRF private key files. It is specific to this project, so that no other program
//! mistakes such a file for a signing key. [`VrfPrivateKey::from_text`] shows it.

use std::fmt::Write;

use data_encoding::BASE64;
use zeroize::Zeroizing;

use super::{VrfAlgorithm, VrfKeyError, VrfPrivateKey};
use crate::bind_format::parse_number;

const FORMAT: &str = "Nonesuch-VRF-key-format";
const VERSION: &str = "v1";
const ALGORITHM: &str = "Algorithm";
const PUBLIC_KEY: &str = "PublicKey";
const PRIVATE_KEY: &str = "PrivateKey";

/// The values of a file. They borrow the text, so that there is no copy to wipe.
#[derive(Default)]
struct Fields<'a> {
    algorithm: Option<&'a str>,
    public_key: Option<&'a str>,
    private_key: Option<&'a str>,
}

pub(super) fn read(text: &str) -> Result<VrfPrivateKey, VrfKeyError> {
    let fields = Fields::parse(text)?;
    // The number is followed by a mnemonic for human readers, as in "1 (ECVRF-P256-SHA256-TAI)".
    let number = fields.algorithm.ok_or(VrfKeyError::MissingField(ALGORITHM))?;
    let number = number.split_ascii_whitespace().next().unwrap_or_default();
    let algorithm = VrfAlgorithm(parse_number(number).ok_or(VrfKeyError::AlgorithmField)?);
    algorithm.require()?;
    let public_key = decode(PUBLIC_KEY, fields.public_key)?;
    let key = VrfPrivateKey::from_secret(algorithm, &decode(PRIVATE_KEY, fields.private_key)?)?;
    if key.public_key() != public_key.as_slice() {
        return Err(VrfKeyError::PublicKeyMismatch(algorithm));
    }
    Ok(key)
}

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Self, VrfKeyError> {
        let mut lines = text.lines().zip(1..).filter_map(|(line, number)| {
            let line = line.trim();
            (!line.is_empty() && !line.starts_with(';')).then_some((line, number))
        });
        let first = lines.next().and_then(|(line, _)| line.split_once(':'));
        match first.map(|(name, value)| (name.trim_end(), value.trim_start())) {
            Some((FORMAT, VERSION)) => {}
            Some((FORMAT, _)) => return Err(VrfKeyError::FormatVersion),
            _ => return Err(VrfKeyError::NotAKeyFile),
        }
        let mut fields = Self::default();
        for (text, line) in lines {
            let (name, value) = text.split_once(':').ok_or(VrfKeyError::MalformedLine { line })?;
            fields.set(name.trim_end(), value.trim_start(), line)?;
        }
        Ok(fields)
    }

    fn set(&mut self, name: &str, value: &'a str, line: usize) -> Result<(), VrfKeyError> {
        let (name, stored) = match name {
            ALGORITHM => (ALGORITHM, &mut self.algorithm),
            PUBLIC_KEY => (PUBLIC_KEY, &mut self.public_key),
            PRIVATE_KEY => (PRIVATE_KEY, &mut self.private_key),
            _ => return Err(VrfKeyError::UnknownField { line }),
        };
        match stored.replace(value) {
            Some(_) => Err(VrfKeyError::RepeatedField(name)),
            None => Ok(()),
        }
    }
}

fn decode(name: &'static str, value: Option<&str>) -> Result<Zeroizing<Vec<u8>>, VrfKeyError> {
    let value = value.ok_or(VrfKeyError::MissingField(name))?.as_bytes();
    let capacity = BASE64.decode_len(value.len()).map_err(|_| VrfKeyError::NotBase64(name))?;
    let mut octets = Zeroizing::new(vec![0; capacity]);
    let length = BASE64.decode_mut(value, &mut octets).map_err(|_| VrfKeyError::NotBase64(name))?;
    octets.truncate(length);
    Ok(octets)
}

pub(super) fn write(key: &VrfPrivateKey) -> Zeroizing<String> {
    let secret = key.secret();
    // Reserve the capacity for the whole text: a string that grows would leave parts of the key in
    // freed memory.
    let octets = BASE64.encode_len(secret.len()) + BASE64.encode_len(key.public_key().len());
    let mut text = Zeroizing::new(String::with_capacity(octets + 160));
    let (number, mnemonic) = (key.algorithm().0, key.entry.mnemonic);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{FORMAT}: {VERSION}\n{ALGORITHM}: {number} ({mnemonic})");
    for (name, octets) in [(PUBLIC_KEY, key.public_key()), (PRIVATE_KEY, &secret)] {
        text.push_str(name);
        text.push_str(": ");
        BASE64.encode_append(octets, &mut text);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
