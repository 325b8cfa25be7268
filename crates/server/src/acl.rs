//! Access control: lists of address prefixes and TSIG keys, and the primaries and secondaries of a
//! zone.

mod prefix;
mod remote;

pub use prefix::Prefix;
pub use remote::{Remote, TlsName};

use nonesuch_proto::{Name, NameError, NameRef};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Port of DNS (RFC 1035 §4.2).
pub const DNS_PORT: u16 = 53;
/// Port of DNS over TLS (RFC 7858 §3.1).
pub const TLS_PORT: u16 = 853;

/// Why an entry of an access list, or a remote server, is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The text is not an address or prefix.
    #[error("'{0}' is not an address or prefix (write 192.0.2.0/24, 2001:db8::/32 or one address)")]
    Prefix(String),
    /// The address has bits set after the prefix.
    #[error("'{given}' has bits set after the prefix: write {meant}")]
    HostBits {
        /// The prefix as given.
        given: String,
        /// The prefix that contains the address.
        meant: Prefix,
    },
    /// The name of a key is not a domain name.
    #[error("'{name}' is not the name of a key: {error}")]
    KeyName {
        /// The name as given.
        name: String,
        /// Why the name is invalid.
        error: NameError,
    },
    /// The word is unknown or repeated.
    #[error(
        "'{0}' is not valid here (write an address, a prefix, key:NAME, tls, or any, with a leading ! to deny)"
    )]
    Word(String),
    /// The entry is empty.
    #[error("an entry is empty (write an address, a prefix, key:NAME, tls, or any)")]
    Empty,
    /// The text is not the address of a server.
    #[error(
        "'{0}' is not a server address (write 192.0.2.1, 192.0.2.1:5353, 2001:db8::1 or [2001:db8::1]:853)"
    )]
    Server(String),
    /// The word is unknown or repeated after a server address.
    #[error(
        "'{0}' is not valid for a server (write key:NAME, tls, tls:HOSTNAME or source:ADDRESS after its address)"
    )]
    ServerWord(String),
    /// The addresses of the server and the source are of different families.
    #[error("{server} cannot be reached from {from}: both must be IPv4, or both IPv6")]
    Families {
        /// The address of the server.
        server: IpAddr,
        /// The source address.
        from: IpAddr,
    },
}

/// One entry of an [`AccessList`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AccessEntry {
    /// The permitted or denied addresses; `None` for all addresses.
    pub prefix: Option<Prefix>,
    /// The TSIG key that the request must be signed with; `None` if no signature is required.
    pub key: Option<Name>,
    /// Whether the entry matches only requests over TLS.
    pub requires_tls: bool,
    /// Whether the entry denies the requests that it matches.
    pub denies: bool,
}

impl AccessEntry {
    /// Whether this entry matches all requests that `other` matches. If so, `other` has no effect
    /// after this entry in a list.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let covers_addresses = match (&self.prefix, &other.prefix) {
            (None, _) => true,
            (Some(own), Some(other)) => own.covers(other),
            (Some(_), None) => false,
        };
        covers_addresses
            && (self.key.is_none() || self.key == other.key)
            && (other.requires_tls || !self.requires_tls)
    }

    /// Whether the entry matches a request from `address` with the TSIG key `key`.
    fn matches(&self, address: IpAddr, key: Option<NameRef<'_>>, over_tls: bool) -> bool {
        let has_key = self.key.as_ref().is_none_or(|wanted| key == Some(wanted.view()));
        has_key
            && (over_tls || !self.requires_tls)
            && self.prefix.is_none_or(|prefix| prefix.contains(address))
    }
}

impl FromStr for AccessEntry {
    type Err = AccessError;

    /// Reads a combination of `192.0.2.0/24`, `key:NAME` and `tls`, separated by spaces, or `any`.
    /// If the text begins with `!`, the entry denies access.
    fn from_str(text: &str) -> Result<Self, AccessError> {
        let (denies, rest) = text.trim().strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mut entry = Self { denies, ..Self::default() };
        let mut is_any = false;
        for word in rest.split_ascii_whitespace() {
            let invalid_word = || AccessError::Word(word.to_owned());
            if let Some(name) = word.strip_prefix("key:") {
                let earlier = entry.key.replace(read_key_name(name)?);
                earlier.map_or(Ok(()), |_| Err(invalid_word()))?;
            } else if word == "tls" && !entry.requires_tls {
                entry.requires_tls = true;
            } else if word == "any" && entry.prefix.is_none() && !is_any {
                is_any = true;
            } else if word.starts_with(|first: char| first.is_ascii_hexdigit() || first == ':') && !is_any {
                let earlier = entry.prefix.replace(word.parse()?);
                earlier.map_or(Ok(()), |_| Err(invalid_word()))?;
            } else {
                return Err(invalid_word());
            }
        }
        if !is_any && entry.prefix.is_none() && entry.key.is_none() && !entry.requires_tls {
            return Err(AccessError::Empty);
        }
        Ok(entry)
    }
}

fn read_key_name(text: &str) -> Result<Name, AccessError> {
    let name = if text.is_empty() { Err(NameError::EmptyLabel) } else { text.parse::<Name>() };
    name.map(|name| name.view().to_canonical())
        .map_err(|error| AccessError::KeyName { name: text.to_owned(), error })
}

impl fmt::Display for AccessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.prefix.map(|prefix| prefix.to_string());
        let key = self.key.as_ref().map(|key| format!("key:{key}"));
        let tls = self.requires_tls.then(|| "tls".to_owned());
        let words: Vec<String> = [prefix, key, tls].into_iter().flatten().collect();
        f.write_str(if self.denies { "!" } else { "" })?;
        if words.is_empty() { f.write_str("any") } else { f.write_str(&words.join(" ")) }
    }
}

/// A list of permitted and denied requests. The first matching entry decides. If no entry matches,
/// access is denied. The default list is empty and denies all requests.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AccessList {
    entries: Vec<AccessEntry>,
}

impl AccessList {
    /// Returns a list of these entries, in this order.
    #[must_use]
    pub const fn new(entries: Vec<AccessEntry>) -> Self {
        Self { entries }
    }

    /// Returns a list that permits all requests: `any`.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::new(vec![AccessEntry::default()])
    }

    /// Whether the list permits all requests, because its first entry is `any`.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        self.entries.first() == Some(&AccessEntry::default())
    }

    /// Whether an unencrypted request from `address` is permitted. `key` is the key of its verified
    /// TSIG record; `None`: the request is not signed.
    #[must_use]
    pub fn allows(&self, address: IpAddr, key: Option<NameRef<'_>>) -> bool {
        self.allows_request(address, key, false)
    }

    /// As [`allows`](Self::allows), for a request over TLS if `over_tls` is true.
    #[must_use]
    pub fn allows_request(&self, address: IpAddr, key: Option<NameRef<'_>>, over_tls: bool) -> bool {
        let first = self.entries.iter().find(|entry| entry.matches(address, key, over_tls));
        first.is_some_and(|entry| !entry.denies)
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[AccessEntry] {
        &self.entries
    }

    /// The names of all keys in the entries.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.entries.iter().filter_map(|entry| entry.key.as_ref())
    }
}

#[cfg(test)]
mod tests;
