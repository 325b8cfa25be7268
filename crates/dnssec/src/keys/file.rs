//! Key files as BIND and ldns write them: `.key` with the DNSKEY record, `.private` with the private key.

use super::{KeyPair, PROTOCOL, ZONE_KEY};
use data_encoding::BASE64;
use nonesuch_crypto::{Algorithm, KeyError, PrivateKey, key_tag};
use nonesuch_proto::text::{Token, parse_ttl};
use nonesuch_proto::{Class, Name, NameError, NameRef, Rtype, rdata, timestamp};
use zeroize::Zeroizing;

/// TTL written in `.key` files, in seconds.
const TTL: u32 = 3600;

/// Why two files are no key pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The `.key` file holds no DNSKEY record.
    #[error("the .key file holds no DNSKEY record (expected: \"example. IN DNSKEY 257 3 13 BASE64\")")]
    NoRecord,
    /// The `.key` file holds more than one record.
    #[error("the .key file holds more than one record: write each key to files of its own")]
    SecondRecord,
    /// The owner is no name.
    #[error("the owner in the .key file is no domain name: {0}")]
    Owner(NameError),
    /// The fields of the DNSKEY record are malformed.
    #[error("the DNSKEY record in the .key file is malformed: {0}")]
    Record(rdata::RdataFault),
    /// The flags or the protocol are not those of a zone's key.
    #[error(
        "the .key file has flags {flags} and protocol {protocol}: a zone key has flags 256 or 257 and protocol 3"
    )]
    NotAZoneKey {
        /// The flags.
        flags: u16,
        /// The protocol.
        protocol: u8,
    },
    /// The private key is unusable.
    #[error("the .private file: {0}")]
    Private(#[from] KeyError),
    /// The two files are of different algorithms.
    #[error(
        "the .key file is of algorithm {public}, the .private file of {private}: they are not of one key"
    )]
    Algorithm {
        /// In the `.key` file.
        public: Algorithm,
        /// In the `.private` file.
        private: Algorithm,
    },
    /// The two files hold different public keys.
    #[error(
        "the .key file holds the public key {public}, but the .private file belongs to {private}: they are not of one key"
    )]
    PublicKey {
        /// Tag of the key in the `.key` file.
        public: u16,
        /// Tag of the public key that belongs to the `.private` file.
        private: u16,
    },
    /// The files' name says another key.
    #[error("the files are named {found}, but hold the key {expected}: rename them")]
    BaseName {
        /// Base name of the key that the files hold.
        expected: String,
        /// Base name of the files.
        found: String,
    },
}

impl KeyPair {
    /// Text of the `.key` file: BIND's comment line and the DNSKEY record.
    #[must_use]
    pub fn key_file_text(&self) -> String {
        let kind = match (self.is_revoked(), self.is_sep()) {
            (true, _) => "revoked key-signing",
            (false, true) => "key-signing",
            (false, false) => "zone-signing",
        };
        let (owner, flags, algorithm) = (&self.owner, self.flags, self.algorithm().0);
        let key = BASE64.encode(self.private.public_key());
        format!(
            "; This is a {kind} key, keyid {}, for {owner}\n\
             {owner} {TTL} IN DNSKEY {flags} {PROTOCOL} {algorithm} {key}\n",
            self.tag()
        )
    }

    /// Text of the `.private` file; wiped from memory when dropped.
    ///
    /// `since` is the time, in seconds since 1970, from which BIND's tools take the key to be published and to
    /// sign: without such times `dnssec-signzone -S` and `named` leave a key alone.
    #[must_use]
    pub fn private_file_text(&self, since: u32) -> Zeroizing<String> {
        let mut time = Vec::with_capacity(14);
        timestamp::push(since, &mut time);
        let time = String::from_utf8_lossy(&time);
        let key = self.private.to_bind();
        // Room for all of it: a string that grows leaves a copy behind that nobody wipes.
        let mut text = Zeroizing::new(String::with_capacity(key.len() + 96));
        text.push_str(&key);
        for event in ["Created", "Publish", "Activate"] {
            for part in [event, ": ", &time, "\n"] {
                text.push_str(part);
            }
        }
        text
    }

    /// Reads a key pair from the texts of its two files.
    ///
    /// # Errors
    /// Where either text is malformed, or they are not of one key.
    pub fn parse(key_file: &str, private_file: &str) -> Result<Self, KeyFileError> {
        let (owner, dnskey) = read_key_file(key_file.as_bytes())?;
        let [high, low, protocol, algorithm, public @ ..] = dnskey.as_slice() else {
            return Err(KeyFileError::NoRecord);
        };
        let (flags, protocol) = (u16::from_be_bytes([*high, *low]), *protocol);
        if flags & ZONE_KEY == 0 || protocol != PROTOCOL {
            return Err(KeyFileError::NotAZoneKey { flags, protocol });
        }
        let pair = Self::new(owner, flags, PrivateKey::from_bind(private_file)?);
        let public_algorithm = Algorithm(*algorithm);
        if public_algorithm != pair.algorithm() {
            return Err(KeyFileError::Algorithm { public: public_algorithm, private: pair.algorithm() });
        }
        if public != pair.private.public_key() {
            return Err(KeyFileError::PublicKey { public: key_tag(&dnskey), private: pair.tag() });
        }
        Ok(pair)
    }

    /// Checks that files of this key are named `base_name`, as [`KeyPair::base_name`] has it.
    ///
    /// # Errors
    /// [`KeyFileError::BaseName`] where they belong to another key.
    pub fn check_base_name(&self, base_name: &str) -> Result<(), KeyFileError> {
        let expected = self.base_name();
        if expected.eq_ignore_ascii_case(base_name) {
            return Ok(());
        }
        Err(KeyFileError::BaseName { expected, found: base_name.to_owned() })
    }
}

/// Owner and RDATA of the one DNSKEY record; TTL and class may be missing, in either order.
fn read_key_file(text: &[u8]) -> Result<(Name, Vec<u8>), KeyFileError> {
    let tokens = tokenize(text);
    let (owner, mut rest) = tokens.split_first().ok_or(KeyFileError::NoRecord)?;
    // A tool may write a relative owner without the final dot: key files have no origin other than the root.
    let owner = Name::from_text(owner.octets, Some(NameRef::ROOT)).map_err(KeyFileError::Owner)?;
    while let [token, tail @ ..] = rest {
        rest = tail;
        if token.octets.eq_ignore_ascii_case(b"DNSKEY") {
            return read_rdata(rest).map(|rdata| (owner, rdata));
        }
        let is_ttl = parse_ttl(token.octets).is_some();
        if !is_ttl && Class::from_mnemonic(token.octets) != Some(Class::IN) {
            break;
        }
    }
    Err(KeyFileError::NoRecord)
}

fn read_rdata(tokens: &[Token<'_>]) -> Result<Vec<u8>, KeyFileError> {
    // Base64 has no such word: a second record begins here.
    if tokens.iter().any(|token| token.octets.eq_ignore_ascii_case(b"DNSKEY")) {
        return Err(KeyFileError::SecondRecord);
    }
    let mut out = Vec::new();
    rdata::push_from_tokens(Rtype::DNSKEY, tokens, None, &mut out)
        .map_err(|error| KeyFileError::Record(error.fault))?;
    Ok(out)
}

/// Splits at blanks, line ends and parentheses; leaves comments out. A backslash takes the next octet's meaning.
fn tokenize(text: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&octet) = text.get(at) {
        match octet {
            b';' => at += text[at..].iter().position(|o| *o == b'\n').unwrap_or(text.len() - at),
            b'(' | b')' | b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            _ => {
                let start = at;
                while let Some(&octet) = text.get(at) {
                    match octet {
                        b'\\' => at += 2,
                        b';' | b'(' | b')' | b' ' | b'\t' | b'\r' | b'\n' => break,
                        _ => at += 1,
                    }
                }
                at = at.min(text.len());
                tokens.push(Token { octets: &text[start..at], quoted: false, at: start });
            }
        }
    }
    tokens
}
