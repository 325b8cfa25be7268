//! Measures the fields of RDATA in wire form, and finds the names in them.

use super::Field;
use super::special;
use super::table::entry;
use crate::{NameRef, Rtype, bitmap};
use std::ops::Range;

/// A name inside RDATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameField {
    /// Position of the name in the RDATA.
    pub range: Range<usize>,
    /// Whether the name may be compressed in messages.
    pub compress: bool,
    /// Whether the canonical form has the name in lower case.
    pub lower: bool,
}

impl Field {
    /// Returns the length of this field at the start of `rest` in octets, or `None` if it is
    /// malformed. `before` is the RDATA before the field, which contains the type of a gateway.
    pub(super) fn measure(self, before: &[u8], rest: &[u8]) -> Option<usize> {
        let fixed = |length: usize| (rest.len() >= length).then_some(length);
        match self {
            Self::Name { .. } => NameRef::split_from(rest).ok().map(|(name, _)| name.len()),
            Self::U8 | Self::AlgorithmNumber => fixed(1),
            Self::U16 | Self::CertificateType | Self::TypeNumber => fixed(2),
            Self::U32 | Self::Ttl | Self::Timestamp | Self::Ipv4 => fixed(4),
            Self::Ipv6 => fixed(16),
            Self::HexGroups64 => fixed(8),
            Self::HexPairs(count) => fixed(usize::from(count)),
            Self::CharacterString | Self::Salt => fixed(1 + usize::from(*rest.first()?)),
            Self::HashedName => {
                let length = usize::from(*rest.first()?);
                (length > 0).then(|| fixed(1 + length)).flatten()
            }
            Self::Tag => measure_tag(rest),
            Self::CharacterStrings => measure_texts(rest),
            Self::QuotedText | Self::Base64OrEmpty => Some(rest.len()),
            Self::Base64 | Self::Hex => (!rest.is_empty()).then_some(rest.len()),
            Self::Bitmap => bitmap::is_valid(rest).then_some(rest.len()),
            _ => special::measure(self, before, rest),
        }
    }
}

/// RFC 8659 §4.1: a tag has at least one octet and consists of letters and digits.
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

/// Returns the length of `field` at the start of `rest` in octets, or `None` if it is malformed.
/// `before` is the RDATA before the field.
#[must_use]
pub fn measure_field(field: Field, before: &[u8], rest: &[u8]) -> Option<usize> {
    field.measure(before, rest)
}

/// Returns whether `rdata` has the format of the type `rtype`. It returns true for types outside
/// the table, and for types of private use, because other programs may use these numbers for other
/// types.
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

/// Whether RDATA of this type has names that may be compressed in messages (RFC 3597 §4).
#[must_use]
pub fn has_compressed_names(rtype: Rtype) -> bool {
    let fields = entry(rtype).map_or(&[][..], |entry| entry.fields);
    fields.iter().any(|field| matches!(field, Field::Name { compress: true, .. }))
}

/// Returns the names inside well-formed RDATA, for compression and canonical form.
///
/// This includes the name in A6, which is never compressed and is lower-cased (RFC 4034 §6.2). It
/// excludes the names of gateways and of HIP rendezvous servers, which are neither compressed nor
/// lower-cased.
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
            Field::A6Address => {
                let from = start + special::a6_name_start(&rdata[start..at])?;
                (from < at).then_some(NameField { range: from..at, compress: false, lower: true })
            }
            _ => None,
        }
    })
}
