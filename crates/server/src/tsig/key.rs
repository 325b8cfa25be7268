//! TSIG keys: a name, an algorithm and a secret that two servers share.

use super::record::record_octets;
use data_encoding::BASE64;
use nonesuch_crypto::hmac::{Mac, MacAlgorithm, MacKey};
use nonesuch_proto::{Name, NameError, NameRef};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A TSIG algorithm (RFC 8945 §6). HMAC-MD5 and HMAC-SHA1 are not supported because they are too
/// weak; GSS-TSIG is a different protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TsigAlgorithm {
    /// hmac-sha256.
    HmacSha256,
    /// hmac-sha384.
    HmacSha384,
    /// hmac-sha512.
    HmacSha512,
}

impl TsigAlgorithm {
    /// All supported algorithms.
    pub const ALL: [Self; 3] = [Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    /// The name of the algorithm in the TSIG record.
    #[must_use]
    pub const fn name(self) -> NameRef<'static> {
        NameRef::from_wire_unchecked(match self {
            Self::HmacSha256 => b"\x0bhmac-sha256\0",
            Self::HmacSha384 => b"\x0bhmac-sha384\0",
            Self::HmacSha512 => b"\x0bhmac-sha512\0",
        })
    }

    /// Length of a full MAC in octets.
    #[must_use]
    pub const fn mac_length(self) -> usize {
        self.mac().octets()
    }

    /// Minimum length of a truncated MAC in octets (RFC 8945 §5.2.2.1): half of a full MAC, but at
    /// least 10.
    #[must_use]
    pub const fn min_mac_length(self) -> usize {
        let half = self.mac_length() / 2;
        if half < 10 { 10 } else { half }
    }

    const fn mac(self) -> MacAlgorithm {
        match self {
            Self::HmacSha256 => MacAlgorithm::Sha256,
            Self::HmacSha384 => MacAlgorithm::Sha384,
            Self::HmacSha512 => MacAlgorithm::Sha512,
        }
    }
}

impl fmt::Display for TsigAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha384 => "hmac-sha384",
            Self::HmacSha512 => "hmac-sha512",
        })
    }
}

impl FromStr for TsigAlgorithm {
    type Err = TsigKeyError;

    fn from_str(text: &str) -> Result<Self, TsigKeyError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.to_string().eq_ignore_ascii_case(name));
        found.ok_or_else(|| TsigKeyError::Algorithm(text.to_owned()))
    }
}

/// Why a key is invalid. The messages never contain a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsigKeyError {
    /// The algorithm is unknown or not supported.
    #[error(
        "the TSIG algorithm '{0}' is not supported: use hmac-sha256, hmac-sha384 or hmac-sha512 on both sides"
    )]
    Algorithm(String),
    /// The name is not a domain name.
    #[error("'{name}' is not the name of a TSIG key: {error}")]
    Name {
        /// The name as given.
        name: String,
        /// Why the name is invalid.
        error: NameError,
    },
    /// The secret is not valid Base64.
    #[error(
        "the secret of the TSIG key {0} is not Base64: use the output of 'openssl rand -base64 32', or the secret of the peer"
    )]
    Secret(Name),
    /// The secret is empty.
    #[error("the secret of the TSIG key {0} is empty: generate one with 'openssl rand -base64 32'")]
    EmptySecret(Name),
    /// Two keys have the same name.
    #[error("two TSIG keys have the name {0}: rename one of them, on both sides")]
    Duplicate(Name),
    /// The argument does not consist of two or three parts.
    #[error("the format of a TSIG key is [ALGORITHM:]NAME:SECRET, with the secret in Base64")]
    Argument,
}

/// A TSIG key that two servers share.
pub struct TsigKey {
    name: Name,
    algorithm: TsigAlgorithm,
    mac: MacKey,
    /// Whether the secret is shorter than a full MAC.
    is_short: bool,
    /// Minimum length of the MAC of a received message, in octets.
    min_mac_octets: usize,
}

impl TsigKey {
    /// Returns a key. The name is converted to lower case.
    ///
    /// # Errors
    /// [`TsigKeyError::EmptySecret`].
    pub fn new(name: &Name, algorithm: TsigAlgorithm, secret: &[u8]) -> Result<Self, TsigKeyError> {
        if secret.is_empty() {
            return Err(TsigKeyError::EmptySecret(name.clone()));
        }
        Ok(Self {
            name: name.view().to_canonical(),
            algorithm,
            mac: MacKey::new(algorithm.mac(), secret),
            is_short: secret.len() < algorithm.mac_length(),
            min_mac_octets: algorithm.min_mac_length(),
        })
    }

    /// As [`TsigKey::new`], with a secret in Base64. White space in the secret is ignored.
    ///
    /// # Errors
    /// [`TsigKeyError::Secret`], [`TsigKeyError::EmptySecret`].
    pub fn from_base64(name: &Name, algorithm: TsigAlgorithm, secret: &str) -> Result<Self, TsigKeyError> {
        let text = secret.bytes().filter(|octet| !octet.is_ascii_whitespace());
        let text: Zeroizing<Vec<u8>> = Zeroizing::new(text.collect());
        let secret =
            BASE64.decode(&text).map(Zeroizing::new).map_err(|_| TsigKeyError::Secret(name.clone()))?;
        Self::new(name, algorithm, &secret)
    }

    /// Reads a key in the form of the option `-y` of `dig` and `kdig`: `[ALGORITHM:]NAME:SECRET`.
    /// `NAME:ALGORITHM:SECRET` is accepted too. The default algorithm is hmac-sha256. Users who can
    /// list the processes of the machine can see the argument.
    ///
    /// # Errors
    /// Fails if the number of parts, the name, the algorithm or the secret is invalid.
    pub fn from_argument(text: &str) -> Result<Self, TsigKeyError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (name, algorithm, secret) = match parts[..] {
            [name, secret] => (name, TsigAlgorithm::HmacSha256, secret),
            [first, second, secret] => match (first.parse(), second.parse()) {
                (Ok(algorithm), _) => (second, algorithm, secret),
                (Err(_), Ok(algorithm)) => (first, algorithm, secret),
                (Err(error), Err(_)) if first.starts_with("hmac-") => return Err(error),
                (Err(_), Err(error)) => return Err(error),
            },
            _ => return Err(TsigKeyError::Argument),
        };
        Self::from_base64(&read_name(name)?, algorithm, secret)
    }

    /// Sets the minimum MAC length in octets. Requests with a shorter MAC are rejected with
    /// BADTRUNC (RFC 8945 §5.2.4). `octets` is raised to the minimum of the RFC if it is lower, and
    /// reduced to a full MAC if it is higher.
    #[must_use]
    pub fn with_min_mac(mut self, octets: usize) -> Self {
        self.min_mac_octets = octets.clamp(self.algorithm.min_mac_length(), self.algorithm.mac_length());
        self
    }

    /// The name, in lower case.
    #[must_use]
    pub const fn name(&self) -> NameRef<'_> {
        self.name.view()
    }

    /// The algorithm of the key.
    #[must_use]
    pub const fn algorithm(&self) -> TsigAlgorithm {
        self.algorithm
    }

    /// Whether the secret is shorter than a full MAC, which RFC 8945 §8 advises against.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Octets that signing with this key adds to a message: the length of a TSIG record with a full
    /// MAC and without Other Data.
    #[must_use]
    pub fn record_octets(&self) -> usize {
        record_octets(self)
    }

    pub(super) const fn min_mac_octets(&self) -> usize {
        self.min_mac_octets
    }

    pub(super) fn begin(&self) -> Mac {
        self.mac.begin()
    }
}

/// Reads the name of a key. The root name is invalid.
pub(super) fn read_name(text: &str) -> Result<Name, TsigKeyError> {
    let name = if matches!(text, "" | ".") { Err(NameError::EmptyLabel) } else { text.parse() };
    name.map_err(|error| TsigKeyError::Name { name: text.to_owned(), error })
}

impl fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TsigKey")
            .field("name", &self.name)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// The keys of a server, indexed by name. Clones share the keys.
#[derive(Clone, Debug, Default)]
pub struct TsigKeys {
    keys: Arc<HashMap<Name, Arc<TsigKey>>>,
}

impl TsigKeys {
    /// Returns a set of `keys`.
    ///
    /// # Errors
    /// [`TsigKeyError::Duplicate`] if two keys have the same name.
    pub fn new(keys: impl IntoIterator<Item = TsigKey>) -> Result<Self, TsigKeyError> {
        let mut all = HashMap::new();
        for key in keys {
            let name = key.name.clone();
            if let Some(earlier) = all.insert(name, Arc::new(key)) {
                return Err(TsigKeyError::Duplicate(earlier.name.clone()));
            }
        }
        Ok(Self { keys: Arc::new(all) })
    }

    /// Returns the key with this name, which must be in lower case.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<&Arc<TsigKey>> {
        self.keys.get(name)
    }

    /// The keys, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TsigKey>> {
        self.keys.values()
    }

    /// Whether the set has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
