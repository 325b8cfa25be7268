//! Keys: a name, an algorithm and a secret that two servers share.

use data_encoding::BASE64;
use nonesuch_crypto::hmac::{Mac, MacAlgorithm, MacKey};
use nonesuch_proto::{Name, NameError, NameRef};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// An algorithm of TSIG (RFC 8945 §6). HMAC-MD5 and HMAC-SHA1 are too weak, and GSS-TSIG is another protocol.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    /// The name of the algorithm as it stands in the record.
    #[must_use]
    pub const fn name(self) -> NameRef<'static> {
        NameRef::from_checked(match self {
            Self::HmacSha256 => b"\x0bhmac-sha256\0",
            Self::HmacSha384 => b"\x0bhmac-sha384\0",
            Self::HmacSha512 => b"\x0bhmac-sha512\0",
        })
    }

    /// Octets of a whole MAC.
    #[must_use]
    pub const fn octets(self) -> usize {
        self.mac().octets()
    }

    /// Octets that a truncated MAC has at least (RFC 8945 §5.2.2.1): half of a whole one, and 10.
    #[must_use]
    pub const fn min_octets(self) -> usize {
        let half = self.octets() / 2;
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

/// Why there is no key. Secrets are never shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsigKeyError {
    /// The algorithm is none of ours.
    #[error(
        "the TSIG algorithm '{0}' is not supported: use hmac-sha256, hmac-sha384 or hmac-sha512 on both sides"
    )]
    Algorithm(String),
    /// The name is no domain name.
    #[error("'{name}' is no name of a TSIG key: {error}")]
    Name {
        /// What was given.
        name: String,
        /// Why.
        error: NameError,
    },
    /// The secret cannot be decoded.
    #[error(
        "the secret of the TSIG key {0} is no Base64: give what 'openssl rand -base64 32' writes, or the peer's"
    )]
    Secret(Name),
    /// The secret has no octets.
    #[error("the secret of the TSIG key {0} is empty: make one with 'openssl rand -base64 32'")]
    EmptySecret(Name),
    /// Two keys have one name.
    #[error("there are two TSIG keys with the name {0}: give one of them another name, on both sides")]
    Twice(Name),
    /// The three parts are not there.
    #[error("a TSIG key is written [ALGORITHM:]NAME:SECRET, the secret in Base64")]
    Argument,
}

/// A key that two servers share.
pub struct TsigKey {
    name: Name,
    algorithm: TsigAlgorithm,
    mac: MacKey,
    is_short: bool,
    least_mac: usize,
}

impl TsigKey {
    /// A key; its name is taken in lower case.
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
            is_short: secret.len() < algorithm.octets(),
            least_mac: algorithm.min_octets(),
        })
    }

    /// As [`TsigKey::new`], of a secret in Base64; white space in it is passed over.
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

    /// A key as `dig` and `kdig` take it with `-y`: `[ALGORITHM:]NAME:SECRET`; `NAME:ALGORITHM:SECRET` too. The algorithm is
    /// hmac-sha256 where none is given. Whoever lists the machine's processes sees it.
    ///
    /// # Errors
    /// What does not fit.
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

    /// Refuses MACs of fewer octets with BADTRUNC (RFC 8945 §5.2.4), where that is more than the RFC asks for.
    #[must_use]
    pub fn with_min_mac(mut self, octets: usize) -> Self {
        self.least_mac = octets.clamp(self.algorithm.min_octets(), self.algorithm.octets());
        self
    }

    /// The name, in lower case.
    #[must_use]
    pub const fn name(&self) -> NameRef<'_> {
        self.name.view()
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> TsigAlgorithm {
        self.algorithm
    }

    /// Whether the secret is shorter than a MAC, which RFC 8945 §8 advises against.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.is_short
    }

    pub(super) const fn min_mac(&self) -> usize {
        self.least_mac
    }

    pub(super) fn begin(&self) -> Mac {
        self.mac.begin()
    }
}

/// A key's name: any but the root.
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

/// The keys of a server, by their names. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TsigKeys {
    keys: Arc<HashMap<Name, Arc<TsigKey>>>,
}

impl TsigKeys {
    /// These keys.
    ///
    /// # Errors
    /// [`TsigKeyError::Twice`].
    pub fn new(keys: impl IntoIterator<Item = TsigKey>) -> Result<Self, TsigKeyError> {
        let mut all = HashMap::new();
        for key in keys {
            let name = key.name.clone();
            if let Some(earlier) = all.insert(name, Arc::new(key)) {
                return Err(TsigKeyError::Twice(earlier.name.clone()));
            }
        }
        Ok(Self { keys: Arc::new(all) })
    }

    /// The key of this name.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<&Arc<TsigKey>> {
        self.keys.get(name)
    }

    /// The keys, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TsigKey>> {
        self.keys.values()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
