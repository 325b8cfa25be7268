//! The DNSKEY record of a `.key` file (RFC 4034 §2). A DS record can be generated from it without
//! the private key (§5).

use super::{KeyFileError, KeyPair, PROTOCOL, REVOKE, SEP, ZONE_KEY, base_name, check_base_name, ds_rdata};
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey, PublicKey, key_tag};
use nonesuch_proto::text::{Token, parse_ttl};
use nonesuch_proto::{Class, Name, NameRef, Rtype, rdata};

/// A DNSKEY record of a zone key. The algorithm number may be unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    owner: Name,
    flags: u16,
    algorithm: Algorithm,
    rdata: Vec<u8>,
}

impl KeyRecord {
    /// Parses the text of a `.key` file.
    ///
    /// # Errors
    /// If the text is not exactly one well-formed DNSKEY record of a zone key.
    pub fn parse(key_file: &str) -> Result<Self, KeyFileError> {
        let (owner, rdata) = read_key_file(key_file.as_bytes())?;
        let [high, low, protocol, algorithm, ..] = *rdata.as_slice() else {
            return Err(KeyFileError::NoRecord);
        };
        let flags = u16::from_be_bytes([high, low]);
        if flags & ZONE_KEY == 0 || protocol != PROTOCOL {
            return Err(KeyFileError::NotAZoneKey { flags, protocol });
        }
        Ok(Self { owner, flags, algorithm: Algorithm(algorithm), rdata })
    }

    /// The DNSKEY record of a key pair.
    #[must_use]
    pub fn of(pair: &KeyPair) -> Self {
        let (owner, flags, algorithm) = (pair.owner.clone(), pair.flags, pair.algorithm());
        Self { owner, flags, algorithm, rdata: pair.dnskey_rdata() }
    }

    /// The zone that the key belongs to.
    #[must_use]
    pub const fn owner(&self) -> &Name {
        &self.owner
    }

    /// The DNSKEY flags.
    #[must_use]
    pub const fn flags(&self) -> u16 {
        self.flags
    }

    /// The algorithm number, which may be unknown.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// RDATA of the DNSKEY record.
    #[must_use]
    pub fn rdata(&self) -> &[u8] {
        &self.rdata
    }

    /// The public key field.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.rdata.get(4..).unwrap_or_default()
    }

    /// Length of the key in bits, as [`PublicKey::bits`]; `None` if the key cannot be used.
    #[must_use]
    pub fn bits(&self) -> Option<u32> {
        PublicKey::parse(self.algorithm, self.public_key()).ok().map(|key| key.bits())
    }

    /// Checks that the public key can verify signatures, as [`PublicKey::parse`].
    ///
    /// # Errors
    /// [`KeyFileError::Public`] with the reason.
    pub fn check_public(&self) -> Result<(), KeyFileError> {
        PublicKey::parse(self.algorithm, self.public_key()).map(drop).map_err(KeyFileError::Public)
    }

    /// The key tag (RFC 4034, appendix B).
    #[must_use]
    pub fn tag(&self) -> u16 {
        key_tag(&self.rdata)
    }

    /// Whether the key has the SEP flag, that is, is a KSK or CSK.
    #[must_use]
    pub const fn is_sep(&self) -> bool {
        self.flags & SEP != 0
    }

    /// Whether the key is revoked (RFC 5011 §2.1).
    #[must_use]
    pub const fn is_revoked(&self) -> bool {
        self.flags & REVOKE != 0
    }

    /// Revokes the key, as [`KeyPair::revoke`].
    pub fn revoke(&mut self) {
        self.flags |= REVOKE;
        if let Some(flags_field) = self.rdata.first_chunk_mut() {
            *flags_field = self.flags.to_be_bytes();
        }
    }

    /// RDATA of the DNSKEY record without and with the REVOKE flag.
    #[must_use]
    pub fn rdata_without_and_with_revoke(&self) -> [Vec<u8>; 2] {
        [self.flags & !REVOKE, self.flags | REVOKE].map(|flags| {
            let mut rdata = self.rdata.clone();
            if let Some(flags_field) = rdata.first_chunk_mut() {
                *flags_field = flags.to_be_bytes();
            }
            rdata
        })
    }

    /// As [`KeyPair::base_name`].
    #[must_use]
    pub fn base_name(&self) -> String {
        base_name(&self.owner, self.algorithm, self.tag())
    }

    /// As [`KeyPair::check_base_name`].
    ///
    /// # Errors
    /// [`KeyFileError::BaseName`] if `found` is the name of another key.
    pub fn check_base_name(&self, found: &str) -> Result<(), KeyFileError> {
        check_base_name(self.base_name(), found)
    }

    /// RDATA of the DS record of the key; `None` if the digest type is unknown.
    #[must_use]
    pub fn ds_rdata(&self, digest_type: DigestType) -> Option<Vec<u8>> {
        ds_rdata(self.owner.view(), &self.rdata, digest_type)
    }

    /// The key pair of this record and its private key.
    ///
    /// # Errors
    /// [`KeyFileError::Algorithm`] or [`KeyFileError::PublicKey`] if `private` is not the private key
    /// of this record.
    pub fn into_key_pair(self, private: PrivateKey) -> Result<KeyPair, KeyFileError> {
        if self.algorithm != private.algorithm() {
            return Err(KeyFileError::Algorithm { public: self.algorithm, private: private.algorithm() });
        }
        let (tag, matches) = (self.tag(), self.public_key() == private.public_key());
        let pair = KeyPair::new(self.owner, self.flags, private);
        if !matches {
            return Err(KeyFileError::PublicKey { public: tag, private: pair.tag() });
        }
        Ok(pair)
    }
}

/// Owner and RDATA of the only record in the text, a DNSKEY record. TTL and class are optional and
/// in any order.
fn read_key_file(text: &[u8]) -> Result<(Name, Vec<u8>), KeyFileError> {
    let tokens = tokenize(text);
    let (owner, mut rest) = tokens.split_first().ok_or(KeyFileError::NoRecord)?;
    // Some tools write an owner without the final dot. A key file has no origin, so the owner is
    // absolute.
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

/// RDATA of a DNSKEY record from the tokens after the type.
fn read_rdata(tokens: &[Token<'_>]) -> Result<Vec<u8>, KeyFileError> {
    // `DNSKEY` as a token cannot be part of the Base64 text: a second record begins here.
    if tokens.iter().any(|token| token.octets.eq_ignore_ascii_case(b"DNSKEY")) {
        return Err(KeyFileError::SecondRecord);
    }
    let mut out = Vec::new();
    rdata::push_from_tokens(Rtype::DNSKEY, tokens, None, &mut out)
        .map_err(|error| KeyFileError::Record(error.fault))?;
    Ok(out)
}

/// Splits the text at blanks, line ends and parentheses, and omits comments. A backslash makes the
/// next octet part of the token.
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
