//! Helpers for presentation form that several types use.

use super::table::entry;
use crate::Rtype;
use data_encoding::Encoding;
use std::io::Write as _;

pub(super) fn push_encoded(encoding: &Encoding, octets: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + encoding.encode_len(octets.len()), 0);
    encoding.encode_mut(octets, &mut out[start..]);
}

pub(super) fn push_display(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = write!(out, "{value}");
}

/// Appends a type as [`Rtype::in_zone_text`] displays it, without a formatter for types in the
/// table.
pub(super) fn push_type(rtype: Rtype, out: &mut Vec<u8>) {
    match entry(rtype) {
        Some(entry) if !rtype.is_private_use() => out.extend_from_slice(entry.mnemonic.as_bytes()),
        _ => push_display(rtype.in_zone_text(), out),
    }
}

pub(super) fn push_types(types: impl Iterator<Item = Rtype>, out: &mut Vec<u8>) {
    for (index, rtype) in types.enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        push_type(rtype, out);
    }
}
