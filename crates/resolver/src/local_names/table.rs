//! The table of local zones.
//!
//! These special-use names are not in it, because a resolver resolves them as any others:
//! - `example.`, `example.com.`, `example.net.` and `example.org.` (RFC 6761 §6.5).
//! - `ipv4only.arpa.` and its reverse zones `170.0.0.192.in-addr.arpa.` and
//!   `171.0.0.192.in-addr.arpa.`: only a resolver with DNS64 answers them itself (RFC 8880 §7).
//! - `6tisch.arpa.` (RFC 9031) and `eap-noob.arpa.` (RFC 9140): identifiers of other protocols.

use std::ops::RangeInclusive;

/// How the names of a local zone are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The zone of RFC 6303 §3: the apex has an SOA and an NS record, no other name exists.
    Empty,
    /// As `Empty`, and the apex also has a PTR record with `localhost.`
    Pointer,
    /// No name exists, the apex included.
    Absent,
    /// As `Empty`, but all names exist.
    NoData,
    /// All names exist and have the loopback addresses, the apex included.
    Loopback,
}

/// The apexes of a row.
#[derive(Clone, Debug)]
pub(super) enum Apexes {
    /// One name.
    One(&'static str),
    /// The names whose first label is a number of this range, before this name.
    Numbers(RangeInclusive<u8>, &'static str),
}

/// A row: one zone, or several of the same kind.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) apexes: Apexes,
    pub(super) content: Content,
    /// The RFC that reserves the name, with the section on caching servers if it has one.
    pub(super) source: &'static str,
}

const fn one(apex: &'static str, content: Content, source: &'static str) -> Row {
    Row { apexes: Apexes::One(apex), content, source }
}

const fn numbers(first: u8, last: u8, parent: &'static str, content: Content, source: &'static str) -> Row {
    Row { apexes: Apexes::Numbers(first..=last, parent), content, source }
}

/// All local zones.
#[rustfmt::skip]
pub(super) static ROWS: [Row; 28] = [
    // Top-level names that are not in the DNS.
    one("localhost.", Content::Loopback, "RFC 6761 §6.3"),
    one("test.", Content::Absent, "RFC 6761 §6.2"),
    one("invalid.", Content::Absent, "RFC 6761 §6.4"),
    one("local.", Content::Absent, "RFC 6762 §22.1"),
    one("onion.", Content::Absent, "RFC 7686 §2"),
    // RFC 9476 §2: resolvers do not need to look up these names. §3.2 recommends to cache the NXDOMAIN
    // of the root zone instead; with this row, the names do not leak even without QNAME minimisation.
    one("alt.", Content::Absent, "RFC 9476 §2"),
    // Zones that have a meaning in one network, or for one resolver.
    one("home.arpa.", Content::Empty, "RFC 8375 §4"),
    one("service.arpa.", Content::Empty, "RFC 9665 §8.4"),
    one("resolver.arpa.", Content::NoData, "RFC 9462 §6.4"),
    // Reverse zones of IPv4 addresses.
    one("10.in-addr.arpa.", Content::Empty, "RFC 6303 §4.1"),
    numbers(16, 31, "172.in-addr.arpa.", Content::Empty, "RFC 6303 §4.1"),
    one("168.192.in-addr.arpa.", Content::Empty, "RFC 6303 §4.1"),
    one("0.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2"),
    one("127.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2"),
    one("254.169.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2, RFC 6762 §12"),
    one("2.0.192.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2"),
    one("100.51.198.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2"),
    one("113.0.203.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2"),
    one("255.255.255.255.in-addr.arpa.", Content::Empty, "RFC 6303 §4.2"),
    numbers(64, 127, "100.in-addr.arpa.", Content::Empty, "RFC 7793"),
    // Reverse zones of IPv6 addresses.
    one("0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.", Content::Empty, "RFC 6303 §4.3"),
    one(LOOPBACK_IPV6, Content::Pointer, "RFC 6303 §4.3"),
    one("d.f.ip6.arpa.", Content::Empty, "RFC 6303 §4.4"),
    one("8.e.f.ip6.arpa.", Content::Empty, "RFC 6303 §4.5, RFC 6762 §12"),
    one("9.e.f.ip6.arpa.", Content::Empty, "RFC 6303 §4.5, RFC 6762 §12"),
    one("a.e.f.ip6.arpa.", Content::Empty, "RFC 6303 §4.5, RFC 6762 §12"),
    one("b.e.f.ip6.arpa.", Content::Empty, "RFC 6303 §4.5, RFC 6762 §12"),
    one("8.b.d.0.1.0.0.2.ip6.arpa.", Content::Empty, "RFC 6303 §4.6"),
];

/// The reverse name of ::1.
const LOOPBACK_IPV6: &str = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.";
/// The reverse name of 127.0.0.1: a name below an apex that has a PTR record with `localhost.`
///
/// RFC 6303 §4 permits data in these zones. Programs expect a name for their own addresses, and
/// other resolvers give this one.
pub(super) const LOOPBACK_IPV4: &str = "1.0.0.127.in-addr.arpa.";
