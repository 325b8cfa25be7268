//! Reads RDATA from presentation form.

use super::Field;
use super::input::{Input, RdataError, RdataFault, push_character_string, push_ipv4, push_ipv6};
use super::special;
use super::table::entry;
use crate::text::{Token, parse_ttl, parse_u32, push_unescaped};
use crate::{NameRef, Rtype, bitmap, name, timestamp};
use data_encoding::{BASE32HEX_NOPAD, BASE64, Encoding, HEXLOWER_PERMISSIVE};

/// Appends the wire form of the RDATA in `tokens`, which may be in the generic form (RFC 3597 §5).
/// `origin` completes relative names; `None` makes them errors.
///
/// # Errors
/// The first fault and the index of its token. `out` is then unchanged.
pub fn push_from_tokens(
    rtype: Rtype,
    tokens: &[Token<'_>],
    origin: Option<NameRef<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), RdataError> {
    let mut input = Input { tokens, next: 0, origin };
    let start = out.len();
    let outcome = read(rtype, &mut input, out).and_then(|()| {
        if input.next < tokens.len() {
            input.next += 1;
            return Err(RdataFault::TrailingToken);
        }
        if out.len() - start > usize::from(u16::MAX) { Err(RdataFault::TooLong) } else { Ok(()) }
    });
    outcome.map_err(|fault| {
        out.truncate(start);
        let token = if fault == RdataFault::Missing { tokens.len() } else { input.next.saturating_sub(1) };
        RdataError { fault, token }
    })
}

fn read(rtype: Rtype, input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    if input.tokens.first().is_some_and(|token| token.octets == b"\\#" && !token.quoted) {
        return read_generic(rtype, input, out);
    }
    let Some(entry) = entry(rtype) else { return Err(RdataFault::NeedsGeneric) };
    let start = out.len();
    for &field in entry.fields {
        read_field(field, input, start, out)?;
    }
    Ok(())
}

fn read_generic(rtype: Rtype, input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    input.take()?;
    let length = input.take_number(16)? as usize;
    let octets = HEXLOWER_PERMISSIVE
        .decode(&input.take_joined())
        .map_err(|_| RdataFault::Encoding("hexadecimal digits"))?;
    if octets.len() != length || !super::is_well_formed(rtype, &octets) {
        return Err(RdataFault::Generic);
    }
    out.extend_from_slice(&octets);
    Ok(())
}

fn read_field(
    field: Field,
    input: &mut Input<'_, '_>,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<(), RdataFault> {
    match field {
        Field::Name { .. } => {
            let token = input.take()?;
            name::push_from_text(token.octets, input.origin, out)?;
        }
        Field::U8 => out.push(input.take_number(8)? as u8),
        Field::U16 => out.extend_from_slice(&(input.take_number(16)? as u16).to_be_bytes()),
        Field::U32 => out.extend_from_slice(&input.take_number(32)?.to_be_bytes()),
        Field::Ttl => {
            // The SOA timers are plain 32-bit numbers. The limit of RFC 2181 §8 applies only to
            // TTLs.
            let text = input.take()?.octets;
            let seconds = parse_u32(text).or_else(|| parse_ttl(text)).ok_or(RdataFault::Duration)?;
            out.extend_from_slice(&seconds.to_be_bytes());
        }
        Field::Timestamp => {
            let seconds = timestamp::parse(input.take()?.octets).ok_or(RdataFault::Time)?;
            out.extend_from_slice(&seconds.to_be_bytes());
        }
        Field::AlgorithmNumber => {
            let token = input.take()?.octets;
            out.push(special::algorithm_number(token).ok_or(RdataFault::MnemonicOrNumber(8))?);
        }
        Field::CertificateType => {
            let token = input.take()?.octets;
            let number = special::certificate_type(token).ok_or(RdataFault::MnemonicOrNumber(16))?;
            out.extend_from_slice(&number.to_be_bytes());
        }
        Field::TypeNumber => {
            let rtype = Rtype::from_mnemonic(input.take()?.octets).ok_or(RdataFault::Type)?;
            out.extend_from_slice(&rtype.0.to_be_bytes());
        }
        Field::Ipv4 => push_ipv4(input.take()?.octets, out)?,
        Field::Ipv6 => push_ipv6(input.take()?.octets, out)?,
        Field::CharacterString => push_character_string(input.take()?.octets, out)?,
        Field::CharacterStrings => {
            push_character_string(input.take()?.octets, out)?;
            while let Some(token) = input.take_optional() {
                push_character_string(token.octets, out)?;
            }
        }
        Field::QuotedText => push_unescaped(input.take()?.octets, out).ok_or(RdataFault::Text)?,
        Field::Tag => push_tag(input.take()?.octets, out)?,
        Field::Base64 | Field::Base64OrEmpty => push_base64(field, input, out)?,
        Field::Hex => {
            let octets = push_decoded(&HEXLOWER_PERMISSIVE, &input.take_joined(), out);
            if octets.ok_or(RdataFault::Encoding("hexadecimal digits"))? == 0 {
                return Err(RdataFault::Missing);
            }
        }
        Field::Salt => push_salt(input.take()?.octets, out)?,
        Field::HashedName => push_hashed_name(input.take()?.octets, out)?,
        Field::Bitmap => push_bitmap(input, out)?,
        _ => special::read(field, input, start, out)?,
    }
    Ok(())
}

fn push_tag(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_alphanumeric) {
        return Err(RdataFault::Malformed("property tag (letters and digits)"));
    }
    push_character_string(text, out)
}

fn push_base64(field: Field, input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let octets = push_decoded(&BASE64, &input.take_joined(), out).ok_or(RdataFault::Encoding("base64"))?;
    if octets == 0 && field == Field::Base64 { Err(RdataFault::Missing) } else { Ok(()) }
}

/// Appends the decoded `digits` and returns the number of octets.
fn push_decoded(encoding: &Encoding, digits: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    out.resize(start + encoding.decode_len(digits.len()).ok()?, 0);
    let octets = encoding.decode_mut(digits, &mut out[start..]).ok()?;
    out.truncate(start + octets);
    Some(octets)
}

fn push_salt(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    if text == b"-" {
        out.push(0);
        return Ok(());
    }
    let octets = HEXLOWER_PERMISSIVE.decode(text).map_err(|_| RdataFault::Encoding("salt"))?;
    out.push(u8::try_from(octets.len()).ok().filter(|n| *n > 0).ok_or(RdataFault::Encoding("salt"))?);
    out.extend_from_slice(&octets);
    Ok(())
}

fn push_hashed_name(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let fault = RdataFault::Encoding("base32hex");
    let octets = BASE32HEX_NOPAD.decode(&text.to_ascii_uppercase()).map_err(|_| fault)?;
    out.push(u8::try_from(octets.len()).ok().filter(|n| *n > 0).ok_or(fault)?);
    out.extend_from_slice(&octets);
    Ok(())
}

fn push_bitmap(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let mut types = Vec::new();
    while let Some(token) = input.take_optional() {
        types.push(Rtype::from_mnemonic(token.octets).ok_or(RdataFault::Type)?);
    }
    types.sort_unstable();
    types.dedup();
    bitmap::push(&types, out);
    Ok(())
}
