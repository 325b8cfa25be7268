//! Canonical form and canonical order of RDATA (RFC 4034 §6.2 and §6.3, RFC 6840 §5.1).

use super::Field;
use super::fields::names;
use super::table::entry;
use crate::Rtype;
use std::cmp::Ordering;

/// Appends the canonical form of uncompressed RDATA: names are lower-cased in the types that RFC
/// 4034 §6.2 lists, except NSEC and HINFO (RFC 6840 §5.1).
pub fn push_canonical(rtype: Rtype, rdata: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(rdata);
    for name in names(rtype, rdata).filter(|name| name.lower) {
        if let Some(octets) = out[start..].get_mut(name.range) {
            octets.make_ascii_lowercase();
        }
    }
}

/// Compares two RDATA by their canonical form, as left-justified octet strings (RFC 4034 §6.3).
#[must_use]
pub fn cmp_canonical(rtype: Rtype, a: &[u8], b: &[u8]) -> Ordering {
    // The canonical form changes only upper-case letters in names.
    if !has_lowercase_names(rtype) || !(has_uppercase(a) || has_uppercase(b)) {
        return a.cmp(b);
    }
    // Both RDATA are canonicalised even if only one has names: the order must be consistent for
    // malformed RDATA too, whichever argument it is.
    let has_names = |rdata| names(rtype, rdata).any(|name| name.lower);
    if !has_names(a) && !has_names(b) {
        return a.cmp(b);
    }
    let (mut x, mut y) = (Vec::with_capacity(a.len()), Vec::with_capacity(b.len()));
    push_canonical(rtype, a, &mut x);
    push_canonical(rtype, b, &mut y);
    x.cmp(&y)
}

fn has_lowercase_names(rtype: Rtype) -> bool {
    let fields = entry(rtype).map_or(&[][..], |entry| entry.fields);
    fields.iter().any(|field| matches!(field, Field::Name { lower: true, .. } | Field::A6Address))
}

fn has_uppercase(octets: &[u8]) -> bool {
    // A loop without early exit lets the compiler compare many octets at once.
    octets.iter().fold(false, |any, octet| any | octet.is_ascii_uppercase())
}
