//! The primaries and secondaries of a zone.

use super::{AccessError, DNS_PORT, TLS_PORT, read_key_name};
use nonesuch_proto::Name;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// How the certificate of a TLS server is verified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TlsName {
    /// Not verified: the connection is encrypted and not authenticated (RFC 7858 §4.1).
    Any,
    /// The certificate must be valid for this name (RFC 8310 §8.1).
    Named(String),
}

/// Another server, and how to connect to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    /// Address and port.
    pub address: SocketAddr,
    /// The TSIG key that signs messages to the server.
    pub key: Option<Name>,
    /// TLS settings; `None` for UDP and TCP without encryption.
    pub tls: Option<TlsName>,
    /// The source address; `None` lets the system choose.
    pub source: Option<IpAddr>,
}

impl Remote {
    /// Returns a server for unencrypted and unsigned UDP and TCP.
    #[must_use]
    pub const fn plain(address: SocketAddr) -> Self {
        Self { address, key: None, tls: None, source: None }
    }
}

impl FromStr for Remote {
    type Err = AccessError;

    /// Reads an address with or without a port, followed by `key:NAME`, `tls` or `tls:HOSTNAME`,
    /// and `source:ADDRESS` in any order.
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
        let port = if tls.is_some() { TLS_PORT } else { DNS_PORT };
        let without_port =
            |server: &str| server.parse().ok().map(|address: IpAddr| SocketAddr::new(address, port));
        let address = server.parse().ok().or_else(|| without_port(server));
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
