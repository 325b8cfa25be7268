//! The kinds of fields, and how many octets each takes on the wire.

use super::special;
use super::table::entry;
use crate::{NameRef, Rtype, bitmap};
use std::ops::Range;

/// A kind of field in RDATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A domain name.
    Name {
        /// Whether it may be compressed in messages (RFC 3597 §4).
        compress: bool,
        /// Whether canonical form lower-cases it (RFC 4034 §6.2, RFC 6840 §5.1).
        lower: bool,
    },
    /// A number of 8 bits.
    U8,
    /// A number of 16 bits.
    U16,
    /// A number of 32 bits.
    U32,
    /// A number of seconds, 32 bits, written plainly and read with units too.
    Ttl,
    /// A time (RFC 4034 §3.2), 32 bits.
    Time,
    /// A DNSSEC algorithm, 8 bits; mnemonics are read, numbers are written.
    AlgorithmNumber,
    /// A certificate type (RFC 4398 §2.1), 16 bits.
    CertificateType,
    /// A record type, 16 bits.
    TypeNumber,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// One character string: length octet and octets.
    Text,
    /// One or more character strings, to the end.
    Texts,
    /// Octets to the end, written as one quoted string without a length limit.
    LongText,
    /// A CAA property tag (RFC 8659 §4.1): length octet and letters or digits, unquoted.
    Tag,
    /// Base64 to the end, at least one octet.
    Base64,
    /// Base64 to the end, nothing too.
    Base64OrNone,
    /// Hexadecimal digits to the end.
    Hex,
    /// Length octet and octets; hexadecimal, `-` for none (RFC 5155 §3.3).
    Salt,
    /// Length octet and octets; base32hex without padding (RFC 5155 §3.3).
    HashedName,
    /// Type bit maps to the end (RFC 4034 §4.1.2).
    Bitmap,
    /// The bit map of NXT (RFC 2535 §5.2): types 0 to 127, one plain bit string.
    OldBitmap,
    /// Octets as pairs of hexadecimal digits joined by hyphens (RFC 7043).
    HexPairs(u8),
    /// 64 bits as four groups of hexadecimal digits joined by colons (RFC 6742).
    Groups64,
    /// A location (RFC 1876).
    Location,
    /// Address prefixes (RFC 3123).
    AddressPrefixes,
    /// Service parameters to the end (RFC 9460 §2.2).
    ServiceParameters,
    /// The gateway type of IPSECKEY (RFC 4025 §2.3), 8 bits.
    GatewayType,
    /// Discovery bit and relay type of AMTRELAY (RFC 8777 §4.2), 8 bits.
    RelayType,
    /// What the gateway type before it says: nothing, an address or a name.
    Gateway,
    /// Prefix length, address suffix and prefix name of A6 (RFC 2874 §3.1).
    Ipv6Chain,
    /// HIP (RFC 8005 §5): identity, key and rendezvous servers.
    HostIdentity,
}

/// A name inside RDATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameField {
    /// Where its octets are.
    pub range: Range<usize>,
    /// Whether it may be compressed in messages.
    pub compress: bool,
    /// Whether canonical form lower-cases it.
    pub lower: bool,
}

impl Field {
    /// Octets that this field takes at the front of `rest`, where they are well formed. `before` is the
    /// RDATA in front of it, which says what a gateway is.
    pub(super) fn measure(self, before: &[u8], rest: &[u8]) -> Option<usize> {
        let fixed = |length: usize| (rest.len() >= length).then_some(length);
        match self {
            Self::Name { .. } => NameRef::split_from(rest).ok().map(|(name, _)| name.len()),
            Self::U8 | Self::AlgorithmNumber => fixed(1),
            Self::U16 | Self::CertificateType | Self::TypeNumber => fixed(2),
            Self::U32 | Self::Ttl | Self::Time | Self::Ipv4 => fixed(4),
            Self::Ipv6 => fixed(16),
            Self::Groups64 => fixed(8),
            Self::HexPairs(count) => fixed(usize::from(count)),
            Self::Text | Self::Salt => fixed(1 + usize::from(*rest.first()?)),
            Self::HashedName => {
                let length = usize::from(*rest.first()?);
                (length > 0).then(|| fixed(1 + length)).flatten()
            }
            Self::Tag => measure_tag(rest),
            Self::Texts => measure_texts(rest),
            Self::LongText | Self::Base64OrNone => Some(rest.len()),
            Self::Base64 | Self::Hex => (!rest.is_empty()).then_some(rest.len()),
            Self::Bitmap => bitmap::is_valid(rest).then_some(rest.len()),
            _ => special::measure(self, before, rest),
        }
    }
}

/// RFC 8659 §4.1: a tag has at least one octet, and letters and digits alone.
fn measure_tag(rest: &[u8]) -> Option<usize> {
    let (length, tail) = rest.split_first()?;
    let tag = tail.get(..usize::from(*length))?;
    (!tag.is_empty() && tag.iter().all(u8::is_ascii_alphanumeric)).then_some(1 + tag.len())
}

fn measure_texts(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < rest.len() {
        at += 1 + usize::from(rest[at]);
    }
    (at == rest.len() && at > 0).then_some(at)
}

/// Octets that `field` takes at the front of `rest`, where they are well formed; `before` is the RDATA in
/// front of it.
#[must_use]
pub fn measure_field(field: Field, before: &[u8], rest: &[u8]) -> Option<usize> {
    field.measure(before, rest)
}

/// Splits well-formed RDATA into its fields; `None` where a field is malformed or octets are left over.
pub fn fields_of(fields: &'static [Field], rdata: &[u8]) -> Option<Vec<(Field, Range<usize>)>> {
    let mut out = Vec::with_capacity(fields.len());
    let mut at = 0;
    for &field in fields {
        let length = field.measure(&rdata[..at], &rdata[at..])?;
        out.push((field, at..at + length));
        at += length;
    }
    (at == rdata.len()).then_some(out)
}

/// Whether `rdata` has the form that `rtype` asks for; types outside the table always do, and those of private use, which
/// may be somebody else's.
#[must_use]
pub fn is_well_formed(rtype: Rtype, rdata: &[u8]) -> bool {
    let Some(entry) = entry(rtype).filter(|_| !rtype.is_private_use()) else { return true };
    let mut at = 0;
    for field in entry.fields {
        match field.measure(&rdata[..at], &rdata[at..]) {
            Some(length) => at += length,
            None => return false,
        }
    }
    at == rdata.len()
}

/// The names inside well-formed RDATA, for compression and canonical form.
///
/// A6's name is given too: it is never compressed and is lower-cased (RFC 4034 §6.2). Names of gateways and
/// of HIP's servers, which are neither compressed nor lower-cased, are not.
pub fn names(rtype: Rtype, rdata: &[u8]) -> impl Iterator<Item = NameField> + '_ {
    let fields = entry(rtype).map_or(&[][..], |entry| entry.fields);
    let mut at = 0;
    let mut broken = false;
    fields.iter().filter_map(move |field| {
        if broken {
            return None;
        }
        let Some(length) = field.measure(&rdata[..at], &rdata[at..]) else {
            broken = true;
            return None;
        };
        let start = at;
        at += length;
        match *field {
            Field::Name { compress, lower } => Some(NameField { range: start..at, compress, lower }),
            Field::Ipv6Chain => {
                let from = start + special::chain_name_start(&rdata[start..at])?;
                (from < at).then_some(NameField { range: from..at, compress: false, lower: true })
            }
            _ => None,
        }
    })
}
