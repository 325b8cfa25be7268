//! Who may do what: lists of address prefixes and TSIG keys, and the other servers that a zone is shared with.

use nonesuch_proto::{Name, NameError, NameRef};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Port of DNS (RFC 1035 §4.2).
pub const PORT: u16 = 53;
/// Port of DNS over TLS (RFC 7858 §3.1).
pub const TLS_PORT: u16 = 853;

/// The addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    first: First,
    bits: u8,
}

/// The first address of a prefix, and a mask of the bits that all share: who is limited is looked up for each response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum First {
    V4 { address: u32, mask: u32 },
    V6 { address: u128, mask: u128 },
}

impl Prefix {
    /// The addresses that share the first `bits` of `address`; `None` where it has no such bits, or has others set.
    #[must_use]
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        Self::around(address, bits).filter(|prefix| prefix.address() == address)
    }

    /// The prefix that `address` is in; `None` where it has not so many bits.
    fn around(address: IpAddr, bits: u8) -> Option<Self> {
        if bits > width_of(address) {
            return None;
        }
        let first = match address {
            IpAddr::V4(address) => {
                let mask = !u32::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                First::V4 { address: address.to_bits() & mask, mask }
            }
            IpAddr::V6(address) => {
                let mask = !u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                First::V6 { address: address.to_bits() & mask, mask }
            }
        };
        Some(Self { first, bits })
    }

    /// Its first address.
    const fn address(&self) -> IpAddr {
        match self.first {
            First::V4 { address, .. } => IpAddr::V4(Ipv4Addr::from_bits(address)),
            First::V6 { address, .. } => IpAddr::V6(Ipv6Addr::from_bits(address)),
        }
    }

    /// Whether `address` is one of them. An IPv4 address in IPv6 form (RFC 4291 §2.5.5.2) is an IPv4 address.
    #[inline]
    #[must_use]
    pub const fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (First::V4 { address: first, mask }, IpAddr::V4(address)) => address.to_bits() & mask == first,
            (First::V6 { address: first, mask }, IpAddr::V6(address)) => address.to_bits() & mask == first,
            _ => false,
        }
    }
}

const fn width_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address();
        if self.bits == width_of(address) {
            return fmt::Display::fmt(&address, f);
        }
        write!(f, "{address}/{}", self.bits)
    }
}

impl FromStr for Prefix {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let wrong = || AccessError::Prefix(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = width_of(address);
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| wrong()))?;
        let meant = Self::around(address, bits).ok_or_else(wrong)?;
        if meant.address() != address {
            return Err(AccessError::HostBits { given: text.to_owned(), meant });
        }
        Ok(meant)
    }
}

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

/// How the certificate of a server that is spoken to over TLS is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TlsName {
    /// Not at all: encrypted, and not authenticated (RFC 7858 §4.1).
    Any,
    /// It must be one of this name (RFC 8310 §8.1).
    Named(String),
}

/// Another server, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    /// Address and port.
    pub address: SocketAddr,
    /// The key that what is sent to it is signed with.
    pub key: Option<Name>,
    /// TLS; `None` for plain UDP and TCP.
    pub tls: Option<TlsName>,
    /// The address to send from; the system's choice where there is none.
    pub source: Option<IpAddr>,
}

impl Remote {
    /// A server that is spoken to over plain UDP and TCP, unsigned.
    #[must_use]
    pub const fn plain(address: SocketAddr) -> Self {
        Self { address, key: None, tls: None, source: None }
    }
}

impl FromStr for Remote {
    type Err = AccessError;

    /// An address with or without a port; behind it `key:NAME`, `tls` or `tls:HOSTNAME`, `source:ADDRESS`, in any order.
    fn from_str(text: &str) -> Result<Self, AccessError> {
        let mut words = text.split_ascii_whitespace();
        let server = words.next().ok_or(AccessError::Empty)?;
        let (mut key, mut tls, mut source) = (None, None, None);
        for word in words {
            let unknown = || AccessError::ServerWord(word.to_owned());
            let is_first = match word.split_once(':') {
                None if word == "tls" => tls.replace(TlsName::Any).is_none(),
                Some(("tls", host)) if !host.is_empty() => {
                    tls.replace(TlsName::Named(host.to_owned())).is_none()
                }
                Some(("key", name)) => key.replace(read_key_name(name)?).is_none(),
                Some(("source", address)) => {
                    source.replace(address.parse().map_err(|_| unknown())?).is_none()
                }
                _ => false,
            };
            is_first.then_some(()).ok_or_else(unknown)?;
        }
        let port = if tls.is_some() { TLS_PORT } else { PORT };
        let alone = |server: &str| server.parse().ok().map(|address: IpAddr| SocketAddr::new(address, port));
        let address = server.parse().ok().or_else(|| alone(server));
        let address: SocketAddr = address.ok_or_else(|| AccessError::Server(server.to_owned()))?;
        match source {
            Some(from) if address.is_ipv4() != IpAddr::is_ipv4(&from) => {
                Err(AccessError::Families { server: address.ip(), from })
            }
            _ => Ok(Self { address, key, tls, source }),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.address, f)?;
        if let Some(key) = &self.key {
            write!(f, " key:{key}")?;
        }
        match &self.tls {
            None => {}
            Some(TlsName::Any) => f.write_str(" tls")?,
            Some(TlsName::Named(host)) => write!(f, " tls:{host}")?,
        }
        self.source.map_or(Ok(()), |source| write!(f, " source:{source}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(entries: &[&str]) -> AccessList {
        AccessList::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    fn allows(list: &AccessList, address: &str, key: Option<&str>) -> bool {
        let key = key.map(|key| key.parse::<Name>().unwrap());
        list.allows(address.parse().unwrap(), key.as_ref().map(Name::view))
    }

    #[test]
    fn the_first_entry_that_fits_says() {
        let nobody = AccessList::default();
        assert!(!allows(&nobody, "127.0.0.1", None) && !allows(&nobody, "::1", Some("a")));
        let list =
            list(&["!192.0.2.7", "192.0.2.0/24", "2001:db8::/32 key:Both.example", "!key:bad", "key:good"]);
        let cases = [
            ("192.0.2.7", None, false),
            ("192.0.2.7", Some("good"), false),
            ("192.0.2.8", None, true),
            ("::ffff:192.0.2.8", None, true),
            ("192.0.2.8", Some("bad"), true),
            ("192.0.3.8", None, false),
            ("192.0.3.8", Some("GOOD"), true),
            ("192.0.3.8", Some("bad"), false),
            ("2001:db8:ffff::1", None, false),
            ("2001:db8:ffff::1", Some("both.EXAMPLE"), true),
            ("2001:db9::1", Some("both.example"), false),
        ];
        for (address, key, expected) in cases {
            assert_eq!(allows(&list, address, key), expected, "{address} {key:?}");
        }
        assert_eq!(list.keys().count(), 3);
        assert!(allows(&AccessList::anybody(), "::1", None));
    }

    #[test]
    fn an_entry_may_want_encryption() {
        let list = list(&["192.0.2.0/24 tls", "key:k tls", "198.51.100.1"]);
        let cases = [
            ("192.0.2.1", None, [false, true]),
            ("203.0.113.1", Some("k"), [false, true]),
            ("203.0.113.1", None, [false, false]),
            ("198.51.100.1", None, [true, true]),
        ];
        for (address, key, expected) in cases {
            let key = key.map(|key| key.parse::<Name>().unwrap());
            let key = key.as_ref().map(Name::view);
            let found =
                [false, true].map(|over_tls| list.allows_over(address.parse().unwrap(), key, over_tls));
            assert_eq!(found, expected, "{address}");
        }
    }

    #[test]
    fn entries_are_read_and_written() {
        for text in [
            "any",
            "!any",
            "192.0.2.0/24",
            "0.0.0.0/0",
            "::/0",
            "!2001:db8::1",
            "key:a.b.",
            "10.0.0.0/8 key:k.",
            "tls",
            "!10.0.0.0/8 key:k. tls",
        ] {
            assert_eq!(text.parse::<AccessEntry>().unwrap().to_string(), text);
        }
        let cases = [
            ("", "an entry is empty"),
            ("!", "an entry is empty"),
            ("192.0.2.1/24", "'192.0.2.1/24' has bits set behind its prefix: write 192.0.2.0/24"),
            ("192.0.2.0/33", "'192.0.2.0/33' is no address or prefix"),
            ("2001:db8::/129", "'2001:db8::/129' is no address or prefix"),
            ("192.0.2.0/", "'192.0.2.0/' is no address or prefix"),
            ("everybody", "'everybody' is no address or prefix"),
            ("who", "'who' means nothing here"),
            ("any any", "'any' means nothing here"),
            ("tls tls", "'tls' means nothing here"),
            ("any 10.0.0.0/8", "'10.0.0.0/8' means nothing here"),
            ("key:a key:b", "'key:b' means nothing here"),
            ("key:", "'' is no name of a key"),
            ("key:a..b", "'a..b' is no name of a key: the name has an empty label"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<AccessEntry>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn servers_are_read_and_written() {
        let cases = [
            ("192.0.2.1", "192.0.2.1:53"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("192.0.2.1 tls", "192.0.2.1:853 tls"),
            ("[::1]:5353 tls:ns.example key:K", "[::1]:5353 key:k. tls:ns.example"),
            ("192.0.2.1:5353 source:192.0.2.9", "192.0.2.1:5353 source:192.0.2.9"),
        ];
        for (text, expected) in cases {
            let remote: Remote = text.parse().unwrap();
            assert_eq!(remote.to_string(), expected);
            assert_eq!(expected.parse::<Remote>().unwrap(), remote);
        }
        let wrong = [
            "",
            "ns.example",
            "192.0.2.1:x",
            "192.0.2.1 dot",
            "192.0.2.1 tls tls",
            "192.0.2.1 key:a key:b",
            "192.0.2.1 source:x",
            "192.0.2.1 source:::1",
            "192.0.2.1 tls:",
        ];
        for text in wrong {
            assert!(text.parse::<Remote>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_prefix_contains_what_shares_its_bits(bits in 0u8..=128, shared in 0u32..=128, a: u128, b: u128) {
            let mask = !u128::MAX.checked_shr(shared).unwrap_or(0);
            let b = a & mask | b & !mask;
            let prefix = Prefix::around(IpAddr::V6(Ipv6Addr::from_bits(a)), bits).unwrap();
            let other = Ipv6Addr::from_bits(b);
            let same = (0..bits).all(|bit| (a ^ b) >> (127 - bit) & 1 == 0);
            // An address in IPv4 form is another family.
            prop_assert_eq!(prefix.contains(IpAddr::V6(other)), same && other.to_ipv4_mapped().is_none());
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
            let (bits, a, b) = (bits % 33, (a >> 96) as u32, (b >> 96) as u32);
            let prefix = Prefix::around(IpAddr::V4(Ipv4Addr::from_bits(a)), bits).unwrap();
            let other = Ipv4Addr::from_bits(b);
            let same = (0..bits).all(|bit| (a ^ b) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(prefix.contains(IpAddr::V4(other)), same);
            prop_assert_eq!(prefix.contains(IpAddr::V6(other.to_ipv6_mapped())), same);
            prop_assert!(!prefix.contains(IpAddr::V6(Ipv6Addr::LOCALHOST)));
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<AccessEntry>();
            let _ = text.parse::<Remote>();
        }
    }
}
