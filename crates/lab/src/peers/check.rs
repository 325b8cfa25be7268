//! Checks of a setup: values that the peer cannot have, and text that would break its configuration
//! file.

use super::error::PeerError;
use super::info::{Peer, PeerRole};
use super::setup::{PeerZone, PrimaryTls, ResolverSetup, Serving, Setup, TlsIdentity, Upstream, is_local};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// Limits of the UDP payload size that all peers accept, in octets.
const UDP_SIZE_RANGE: std::ops::RangeInclusive<u16> = 512..=4096;

/// Description of a server's address in errors.
const SERVER_ADDRESS: &str = "address of a server";

impl Setup {
    /// Checks the setup for this peer.
    ///
    /// # Errors
    /// [`PeerError::Unsupported`] if the peer cannot do what the setup requires,
    /// [`PeerError::Setup`] if a value is invalid for all peers.
    pub(super) fn check(&self, peer: Peer) -> Result<(), PeerError> {
        let info = peer.info();
        let unsupported = |what| Err(PeerError::Unsupported { peer: info.title, what });
        check_local(self.ip.into(), "address")?;
        let is_bind = matches!(peer, Peer::Bind | Peer::BindResolver);
        if is_bind && self.ip.is_loopback() && self.ip != Ipv4Addr::LOCALHOST {
            return unsupported("listen on another loopback address than 127.0.0.1");
        }
        if !UDP_SIZE_RANGE.contains(&self.udp_octets) {
            return invalid("UDP payload size", &self.udp_octets, "not between 512 and 4096 octets");
        }
        if self.workers == 0 {
            return invalid("number of workers", &0, "at least one is necessary");
        }
        if self.tls.is_some() && !info.tls {
            return unsupported("answer over TLS");
        }
        if !self.sections.is_empty() && !info.transfers {
            return unsupported("have more sections in its configuration file");
        }
        if let Some(TlsIdentity { certificate, key }) = &self.tls {
            check_path(certificate)?;
            check_path(key)?;
        }
        if let Some(key) = &self.transfer_key {
            check_name(&key.name)?;
            check_word("algorithm of the TSIG key", &key.algorithm)?;
            check_word("secret of the TSIG key", &key.secret)?;
        }
        match info.role {
            PeerRole::Authoritative => self.zones.iter().try_for_each(|zone| zone.check(peer)),
            PeerRole::Resolver if !self.zones.is_empty() => unsupported("serve zones"),
            PeerRole::Resolver => self.resolver.check(peer),
        }
    }
}

impl PeerZone {
    fn check(&self, peer: Peer) -> Result<(), PeerError> {
        let info = peer.info();
        let unsupported = |what| Err(PeerError::Unsupported { peer: info.title, what });
        check_name(&self.origin)?;
        check_path(&self.file)?;
        match &self.serving {
            Serving::Online { denial, .. } if !info.online.contains(denial) => {
                unsupported("sign online with this denial of existence")
            }
            Serving::Online { keys, .. } if keys.is_empty() && peer == Peer::CoreDns => {
                unsupported("sign online without given keys")
            }
            Serving::Online { keys, .. } => keys.iter().try_for_each(|key| check_path(key)),
            Serving::Secondary { .. } if !info.transfers => unsupported("be a secondary"),
            Serving::Secondary { tls: Some(_), .. } if peer == Peer::Knot => {
                unsupported("transfer zones over TLS")
            }
            Serving::Secondary { tls: Some(PrimaryTls { authorities, name }), .. } => {
                check_path(authorities).and_then(|()| check_name(name))
            }
            _ if self.notify.is_some() && !info.transfers => unsupported("send NOTIFY"),
            _ => Ok(()),
        }
    }
}

impl ResolverSetup {
    fn check(&self, peer: Peer) -> Result<(), PeerError> {
        let info = peer.info();
        if self.cache_mib < 10 {
            return invalid("cache size", &self.cache_mib, "at least 10 MiB are necessary");
        }
        check_local(self.source.into(), "source address")?;
        self.negative_anchors.iter().try_for_each(|zone| check_name(zone))?;
        for anchor in &self.anchors {
            check_name(&anchor.zone)?;
            let is_field =
                |field: &str| !field.is_empty() && field.bytes().all(|octet| octet.is_ascii_hexdigit());
            if anchor.ds.split(' ').count() != 4 || !anchor.ds.split(' ').all(is_field) {
                return invalid("trust anchor", &anchor.ds, "not the four fields of a DS record");
            }
        }
        match &self.upstream {
            Upstream::Roots { port, .. } if *port != 53 && !info.iterates_on_any_port => {
                Err(PeerError::Unsupported {
                    peer: info.title,
                    what: "iterate over servers on a port other than 53",
                })
            }
            Upstream::Roots { servers, .. } => servers.iter().try_for_each(|server| {
                check_local(server.address.into(), SERVER_ADDRESS).and_then(|()| check_name(&server.name))
            }),
            Upstream::Stubs(zones) => zones.iter().try_for_each(|stub| {
                check_local(stub.server.ip(), SERVER_ADDRESS).and_then(|()| check_name(&stub.zone))
            }),
        }
    }
}

fn invalid<T>(
    what: &'static str,
    value: &dyn std::fmt::Display,
    reason: &'static str,
) -> Result<T, PeerError> {
    Err(PeerError::Setup { what, value: value.to_string(), reason })
}

/// Checks that an address is not on the Internet.
fn check_local(ip: IpAddr, what: &'static str) -> Result<(), PeerError> {
    match ip {
        IpAddr::V4(ip) if is_local(ip) => Ok(()),
        _ => invalid(what, &ip, "not in 127.0.0.0/8, 198.18.0.0/15 or 192.0.2.0/24"),
    }
}

/// Checks a domain name in a configuration file: it may have only letters, digits, hyphens,
/// underscores and dots, which have no special meaning in any of the syntaxes.
fn check_name(name: &str) -> Result<(), PeerError> {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return invalid("domain name", &name, "use letters, digits, hyphens, underscores and dots");
    }
    Ok(())
}

/// Checks a word in a configuration file. The error does not contain the word, because it can be a
/// secret.
fn check_word(what: &'static str, word: &str) -> Result<(), PeerError> {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-.+/=".contains(&octet);
    if word.is_empty() || !word.bytes().all(is_plain) {
        return invalid(what, &"...", "a character that is not allowed");
    }
    Ok(())
}

/// Checks a path in a configuration file: it must not have characters with a special meaning in one
/// of the syntaxes.
pub(super) fn check_path(path: &Path) -> Result<(), PeerError> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=@:~".contains(letter);
    match path.to_str() {
        Some(text) if text.chars().all(is_plain) => Ok(()),
        _ => invalid(
            "path",
            &path.display(),
            "use letters, digits and ._-+=@:~ only, because it is written to configuration files",
        ),
    }
}
