//! The kinds of fields, and how many octets each takes on the wire.

use super::Field;
use super::special;
use super::table::entry;
use crate::{NameRef, Rtype, bitmap};
use std::ops::Range;

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
