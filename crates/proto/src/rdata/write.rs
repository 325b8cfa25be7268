//! Writes RDATA in presentation form.

use super::Field;
use super::output::{push_display, push_encoded, push_type, push_types};
use super::special;
use super::table::entry;
use crate::text::{push_decimal, push_name, push_quoted};
use crate::{NameRef, Rtype, bitmap, timestamp};
use data_encoding::{BASE32HEX_NOPAD, BASE64, HEXLOWER, HEXUPPER};

/// Appends the presentation form of RDATA. It uses the generic form (RFC 3597 §5) if the type is
/// not in the table or is for private use, if the RDATA is malformed, or if the presentation form
/// of the type cannot represent it.
pub fn push_text(rtype: Rtype, rdata: &[u8], out: &mut Vec<u8>) {
    if rtype.is_private_use() || !push_fields(rtype, rdata, out) {
        push_generic(rdata, out);
    }
}

/// Appends a comment with the mnemonic form of a record of private use, which zone files contain in
/// the generic form. For other records it appends nothing.
pub fn push_comment(rtype: Rtype, rdata: &[u8], out: &mut Vec<u8>) {
    if !rtype.is_private_use() {
        return;
    }
    let Some(entry) = entry(rtype) else { return };
    let start = out.len();
    out.extend_from_slice(b" ; ");
    out.extend_from_slice(entry.mnemonic.as_bytes());
    out.push(b' ');
    if !push_fields(rtype, rdata, out) {
        out.truncate(start);
    }
}

/// Appends the fields of RDATA in presentation form. Returns `false` and appends nothing if the
/// RDATA has no presentation form.
fn push_fields(rtype: Rtype, rdata: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let fields = entry(rtype).map_or(&[][..], |entry| entry.fields);
    if fields.is_empty() || push_separated_fields(fields, rdata, out).is_none() {
        out.truncate(start);
        return false;
    }
    true
}

/// Appends the fields, separated by spaces. Returns `None` if a field is malformed or has no
/// presentation form, or if octets follow the last field. The caller then discards the partial
/// output.
fn push_separated_fields(fields: &[Field], rdata: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let mut at = 0;
    for &field in fields {
        let (before, rest) = rdata.split_at(at);
        let octets = &rest[..field.measure(before, rest)?];
        at += octets.len();
        if !special::has_presentation_form(field, octets) {
            return None;
        }
        // A field without octets is omitted, except a gateway (`.`) and a long text (`""`).
        if octets.is_empty() && !matches!(field, Field::Gateway | Field::QuotedText) {
            continue;
        }
        if out.len() > start {
            out.push(b' ');
        }
        push_field(field, before, octets, out);
    }
    (at == rdata.len()).then_some(())
}

fn push_generic(rdata: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\# ");
    push_decimal(rdata.len() as u32, out);
    if !rdata.is_empty() {
        out.push(b' ');
        push_encoded(&HEXLOWER, rdata, out);
    }
}

fn push_field(field: Field, before: &[u8], octets: &[u8], out: &mut Vec<u8>) {
    match (field, octets) {
        (Field::Name { .. }, _) => push_name(NameRef::from_wire_unchecked(octets), out),
        (Field::U8 | Field::AlgorithmNumber | Field::GatewayType, [value]) => {
            push_decimal(u32::from(*value), out);
        }
        (Field::U16 | Field::CertificateType, [a, b]) => {
            push_decimal(u32::from(u16::from_be_bytes([*a, *b])), out);
        }
        (Field::U32 | Field::Ttl, [a, b, c, d]) => push_decimal(u32::from_be_bytes([*a, *b, *c, *d]), out),
        (Field::Timestamp, [a, b, c, d]) => timestamp::push(u32::from_be_bytes([*a, *b, *c, *d]), out),
        (Field::TypeNumber, [a, b]) => push_type(Rtype(u16::from_be_bytes([*a, *b])), out),
        (Field::Ipv4, [a, b, c, d]) => push_display(std::net::Ipv4Addr::new(*a, *b, *c, *d), out),
        (Field::Ipv6, _) => {
            if let Ok(octets) = <[u8; 16]>::try_from(octets) {
                push_display(std::net::Ipv6Addr::from(octets), out);
            }
        }
        (Field::CharacterString, [_, text @ ..]) => push_quoted(text, out),
        (Field::CharacterStrings, _) => push_texts(octets, out),
        (Field::QuotedText, _) => push_quoted(octets, out),
        (Field::Tag, [_, tag @ ..]) => out.extend_from_slice(tag),
        (Field::Base64 | Field::Base64OrEmpty, _) => push_encoded(&BASE64, octets, out),
        (Field::Hex, _) => push_encoded(&HEXUPPER, octets, out),
        (Field::Salt, [0]) => out.push(b'-'),
        (Field::Salt, [_, salt @ ..]) => push_encoded(&HEXUPPER, salt, out),
        (Field::HashedName, [_, hash @ ..]) => {
            let start = out.len();
            push_encoded(&BASE32HEX_NOPAD, hash, out);
            out[start..].make_ascii_lowercase();
        }
        (Field::Bitmap, _) => push_types(bitmap::types(octets), out),
        _ => special::write(field, before, octets, out),
    }
}

fn push_texts(octets: &[u8], out: &mut Vec<u8>) {
    let mut rest = octets;
    while let Some((&length, tail)) = rest.split_first() {
        let Some((text, after)) = tail.split_at_checked(usize::from(length)) else { return };
        if rest.len() < octets.len() {
            out.push(b' ');
        }
        push_quoted(text, out);
        rest = after;
    }
}
