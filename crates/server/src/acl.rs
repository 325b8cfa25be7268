//! Who may do what: lists of address prefixes and TSIG keys, and the other servers that a zone is shared with.

mod prefix;
mod remote;

pub use prefix::Prefix;
pub use remote::{Remote, TlsName};

use nonesuch_proto::{Name, NameError, NameRef};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Port of DNS (RFC 1035 §4.2).
pub const PORT: u16 = 53;
/// Port of DNS over TLS (RFC 7858 §3.1).
pub const TLS_PORT: u16 = 853;

/// Why an entry of an access list, or a remote server, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// No address or prefix.
    #[error("'{0}' is no address or prefix (write 192.0.2.0/24, 2001:db8::/32 or one address)")]
    Prefix(String),
    /// The address has bits behind the prefix.
    #[error("'{given}' has bits set behind its prefix: write {meant}")]
    HostBits {
        /// What was given.
        given: String,
        /// The prefix that it is in.
        meant: Prefix,
    },
    /// A key's name is no domain name.
    #[error("'{name}' is no name of a key: {error}")]
    KeyName {
        /// What was given.
        name: String,
        /// Why.
        error: NameError,
    },
    /// A word that means nothing here.
    #[error(
        "'{0}' means nothing here (write an address, a prefix, key:NAME, tls, or any, with ! in front to refuse)"
    )]
    Word(String),
    /// There is nothing.
    #[error("an entry is empty (write an address, a prefix, key:NAME, tls, or any)")]
    Empty,
    /// No address of a server.
    #[error(
        "'{0}' is no server's address (write 192.0.2.1, 192.0.2.1:5353, 2001:db8::1 or [2001:db8::1]:853)"
    )]
    Server(String),
    /// A word that means nothing for a server.
    #[error(
        "'{0}' means nothing for a server (write key:NAME, tls, tls:HOSTNAME or source:ADDRESS behind its address)"
    )]
    ServerWord(String),
    /// Server and source have addresses of different families.
    #[error("{server} cannot be reached from {from}: both must be IPv4, or both IPv6")]
    Families {
        /// The server.
        server: IpAddr,
        /// The address to send from.
        from: IpAddr,
    },
}

/// One entry of an [`AccessList`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AccessEntry {
    /// The addresses; `None` for all.
    pub prefix: Option<Prefix>,
    /// The key that the request is signed with; `None` where it need not be signed.
    pub key: Option<Name>,
    /// Whether the request must come over TLS.
    pub over_tls: bool,
    /// Whether those are refused.
    pub is_denied: bool,
}

impl AccessEntry {
    /// Whether it fits whatever `other` fits: behind it in a list, that is never reached.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let addresses = match (&self.prefix, &other.prefix) {
            (None, _) => true,
            (Some(own), Some(other)) => own.covers(other),
            (Some(_), None) => false,
        };
        addresses && (self.key.is_none() || self.key == other.key) && (other.over_tls || !self.over_tls)
    }

    fn fits(&self, address: IpAddr, key: Option<NameRef<'_>>, over_tls: bool) -> bool {
        let of_key = self.key.as_ref().is_none_or(|wanted| key == Some(wanted.view()));
        of_key && (over_tls || !self.over_tls) && self.prefix.is_none_or(|prefix| prefix.contains(address))
    }
}

impl FromStr for AccessEntry {
    type Err = AccessError;

    /// `192.0.2.0/24`, `key:NAME`, `tls`, some of them with spaces between, or `any`; with `!` in front those are refused.
    fn from_str(text: &str) -> Result<Self, AccessError> {
        let (is_denied, rest) = text.trim().strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mut entry = Self { is_denied, ..Self::default() };
        let mut is_any = false;
        for word in rest.split_ascii_whitespace() {
            let twice = || AccessError::Word(word.to_owned());
            if let Some(name) = word.strip_prefix("key:") {
                let earlier = entry.key.replace(read_key_name(name)?);
                earlier.map_or(Ok(()), |_| Err(twice()))?;
            } else if word == "tls" && !entry.over_tls {
                entry.over_tls = true;
            } else if word == "any" && entry.prefix.is_none() && !is_any {
                is_any = true;
            } else if word.starts_with(|first: char| first.is_ascii_hexdigit() || first == ':') && !is_any {
                let earlier = entry.prefix.replace(word.parse()?);
                earlier.map_or(Ok(()), |_| Err(twice()))?;
            } else {
                return Err(twice());
            }
        }
        if !is_any && entry.prefix.is_none() && entry.key.is_none() && !entry.over_tls {
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
        let tls = self.over_tls.then(|| "tls".to_owned());
        let words: Vec<String> = [prefix, key, tls].into_iter().flatten().collect();
        f.write_str(if self.is_denied { "!" } else { "" })?;
        if words.is_empty() { f.write_str("any") } else { f.write_str(&words.join(" ")) }
    }
}

/// Who may do something: the first entry that fits says; where none does, the answer is no. The default is nobody.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AccessList {
    entries: Vec<AccessEntry>,
}

impl AccessList {
    /// A list of these entries, in this order.
    #[must_use]
    pub const fn new(entries: Vec<AccessEntry>) -> Self {
        Self { entries }
    }

    /// Everybody may.
    #[must_use]
    pub fn anybody() -> Self {
        Self::new(vec![AccessEntry::default()])
    }

    /// Whether everybody may, whoever asks.
    #[must_use]
    pub fn is_anybody(&self) -> bool {
        self.entries.first() == Some(&AccessEntry::default())
    }

    /// Whether a request from `address` that came unencrypted, signed with `key` and verified, is allowed.
    #[must_use]
    pub fn allows(&self, address: IpAddr, key: Option<NameRef<'_>>) -> bool {
        self.allows_over(address, key, false)
    }

    /// As [`allows`](Self::allows), of a request that came `over_tls` or not.
    #[must_use]
    pub fn allows_over(&self, address: IpAddr, key: Option<NameRef<'_>>, over_tls: bool) -> bool {
        let first = self.entries.iter().find(|entry| entry.fits(address, key, over_tls));
        first.is_some_and(|entry| !entry.is_denied)
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[AccessEntry] {
        &self.entries
    }

    /// The names of all keys that it speaks of.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.entries.iter().filter_map(|entry| entry.key.as_ref())
    }
}

#[cfg(test)]
mod tests;
