//! Service parameters of SVCB and HTTPS (RFC 9460 §2), with `dohpath` (RFC 9461 §5) and `ohttp`
//! (RFC 9540 §4).
//!
//! Wire form: key (2 octets), length (2), value; keys are strictly ascending (RFC 9460 §2.2). The
//! format of the values of known keys is checked in wire form and in presentation form. Consistency
//! between the parameters (§8 and §7.1.1) is only required in presentation form. Records with
//! inconsistent parameters are written in the generic form.
//!
//! A quoted value is accepted inside the token of its key (`alpn="h2"`) and as a separate quoted
//! token directly after `alpn=`.

use crate::rdata::input::{Input, RdataFault, push_ipv4, push_ipv6};
use crate::rdata::output::{push_display, push_encoded};
use crate::text::{Token, parse_u32, push_decimal, push_quoted, push_unescaped};
use data_encoding::BASE64;
use std::net::{Ipv4Addr, Ipv6Addr};

const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6_HINT: u16 = 6;
const DOH_PATH: u16 = 7;
const OHTTP: u16 = 8;

/// Names of the keys 0 to 8 (RFC 9460 §14.3.2, RFC 9461 §9, RFC 9540 §8).
const KEY_NAMES: [&str; 9] =
    ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath", "ohttp"];

const KEY_FAULT: RdataFault = RdataFault::Malformed("service parameter key (write its name or keyNNNNN)");
const VALUE_FAULT: RdataFault = RdataFault::Malformed("value of a service parameter");
const DUPLICATE: RdataFault = RdataFault::Malformed("service parameters (duplicate key)");
const INCONSISTENT: RdataFault = RdataFault::Malformed(
    "service parameters (all keys in mandatory must be present, and no-default-alpn requires alpn)",
);

/// Returns key and value of the first parameter, and the octets after it.
fn split_parameter(octets: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let [key_high, key_low, length_high, length_low, tail @ ..] = octets else { return None };
    let length = usize::from(u16::from_be_bytes([*length_high, *length_low]));
    let (value, rest) = tail.split_at_checked(length)?;
    Some((u16::from_be_bytes([*key_high, *key_low]), value, rest))
}

/// Returns the keys and values of well-formed parameters.
fn parameters(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (key, value, tail) = split_parameter(rest)?;
        rest = tail;
        Some((key, value))
    })
}

/// RFC 9460 §2.2: keys are strictly ascending, and each value has the format of its key.
pub(super) fn measure(rest: &[u8]) -> Option<usize> {
    let mut tail = rest;
    let mut last = None;
    while !tail.is_empty() {
        let (key, value, after) = split_parameter(tail)?;
        if last.is_some_and(|last| key <= last) || !has_format_of_key(key, value) {
            return None;
        }
        last = Some(key);
        tail = after;
    }
    Some(rest.len())
}

/// Returns whether `value` has the format of `key`. For a key without a known format, any value is
/// valid.
fn has_format_of_key(key: u16, value: &[u8]) -> bool {
    let is_list_of = |size: usize| !value.is_empty() && value.len().is_multiple_of(size);
    match key {
        MANDATORY => {
            // RFC 9460 §8: the keys are strictly ascending and do not include `mandatory` itself.
            is_list_of(2)
                && u16_values(value).is_sorted_by(|a, b| a < b)
                && u16_values(value).all(|key| key > 0)
        }
        ALPN => is_valid_alpn(value),
        NO_DEFAULT_ALPN | OHTTP => value.is_empty(),
        PORT => value.len() == 2,
        IPV4_HINT => is_list_of(4),
        IPV6_HINT => is_list_of(16),
        ECH => !value.is_empty(),
        DOH_PATH => is_valid_doh_path(value),
        _ => true,
    }
}

fn u16_values(value: &[u8]) -> impl Iterator<Item = u16> + '_ {
    value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

/// RFC 9460 §7.1.1: identifiers of 1 to 255 octets, each after a length octet, to the end of the
/// value.
fn is_valid_alpn(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some((&length, tail)) = rest.split_first() {
        match tail.get(usize::from(length)..) {
            Some(next) if length > 0 => rest = next,
            _ => return false,
        }
    }
    !value.is_empty()
}

/// RFC 9461 §5: a relative URI template (RFC 6570) in UTF-8 with a variable `dns`.
fn is_valid_doh_path(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    if !text.starts_with('/') {
        return false;
    }
    let mut has_dns = false;
    let mut rest = text;
    while let Some((literal, tail)) = rest.split_once('{') {
        let Some((expression, after)) = tail.split_once('}') else { return false };
        if literal.contains('}') || expression.contains('{') {
            return false;
        }
        has_dns |= variables(expression).any(|variable| variable == "dns");
        rest = after;
    }
    has_dns && !rest.contains('}')
}

/// Returns the variables of a template expression, without the operator and without modifiers (RFC
/// 6570 §2.2 to §2.4).
fn variables(expression: &str) -> impl Iterator<Item = &str> {
    let list = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
    list.split(',').map(|variable| variable.split([':', '*']).next().unwrap_or(variable))
}

/// Returns whether the presentation form can represent the parameters, that is, whether they are
/// consistent with each other: RFC 9460 §8 for mandatory, §7.1.1
/// for no-default-alpn.
pub(super) fn has_presentation_form(octets: &[u8]) -> bool {
    let has = |wanted: u16| parameters(octets).any(|(key, _)| key == wanted);
    parameters(octets).all(|(key, value)| match key {
        MANDATORY => u16_values(value).all(has),
        NO_DEFAULT_ALPN => has(ALPN),
        _ => true,
    })
}

pub(super) fn read(input: &mut Input<'_, '_>, out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let start = out.len();
    let mut read: Vec<(u16, Vec<u8>)> = Vec::new();
    while let Some(token) = input.take_optional() {
        let parameter = read_parameter(token, input)?;
        if read.iter().any(|(key, _)| *key == parameter.0) {
            return Err(DUPLICATE);
        }
        read.push(parameter);
    }
    read.sort_unstable();
    for (key, value) in read {
        let length = u16::try_from(value.len()).map_err(|_| RdataFault::TooLong)?;
        out.extend_from_slice(&key.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&value);
    }
    if has_presentation_form(&out[start..]) { Ok(()) } else { Err(INCONSISTENT) }
}

/// Reads one parameter: `key`, `key=value` or `key="value"`.
fn read_parameter<'a>(token: Token<'a>, input: &mut Input<'a, '_>) -> Result<(u16, Vec<u8>), RdataFault> {
    if token.quoted {
        return Err(KEY_FAULT);
    }
    let (name, value) = match token.octets.iter().position(|octet| *octet == b'=') {
        Some(at) => (&token.octets[..at], Some(&token.octets[at + 1..])),
        None => (token.octets, None),
    };
    let (key, is_named) = key_number(name).ok_or(KEY_FAULT)?;
    let value = match value {
        Some([]) => quoted_value(token, input),
        Some(value) => strip_quotes(value).ok_or(VALUE_FAULT)?,
        None => &[],
    };
    let mut octets = Vec::with_capacity(value.len());
    match key {
        // RFC 9460 §2.1: with `keyNNNNN`, the value is in wire form, also for known keys.
        MANDATORY..=OHTTP if is_named => read_value(key, value, &mut octets)?,
        _ => push_unescaped(value, &mut octets).ok_or(VALUE_FAULT)?,
    }
    if has_format_of_key(key, &octets) { Ok((key, octets)) } else { Err(VALUE_FAULT) }
}

/// Takes the quoted token directly after a token that ends in `=`. Returns an empty value if no
/// such token follows.
fn quoted_value<'a>(token: Token<'a>, input: &mut Input<'a, '_>) -> &'a [u8] {
    let end = token.at + token.octets.len();
    // The tokens are adjacent if at most the quotation mark is between them.
    let is_adjacent = |next: &Token<'_>| next.quoted && (end..=end + 1).contains(&next.at);
    input.take_if(is_adjacent).map_or(&[], |token| token.octets)
}

/// Returns the value without enclosing quotation marks, or `None` if it contains another unescaped
/// quotation mark.
fn strip_quotes(value: &[u8]) -> Option<&[u8]> {
    let (is_quoted, inner) = match value {
        [b'"', inner @ ..] => (true, inner),
        _ => (false, value),
    };
    let mut escaped = false;
    for (at, octet) in inner.iter().enumerate() {
        if !escaped && *octet == b'"' {
            return (is_quoted && at + 1 == inner.len()).then(|| &inner[..at]);
        }
        escaped = !escaped && *octet == b'\\';
    }
    (!is_quoted).then_some(inner)
}

/// Returns the key that `name` or `keyNNNNN` denotes, and whether it is denoted by its name. RFC
/// 9460 §2.1: names are in lower case, and numbers have no leading zeros.
fn key_number(name: &[u8]) -> Option<(u16, bool)> {
    if let Some(key) = (0..).zip(KEY_NAMES).find(|(_, known)| known.as_bytes() == name).map(|(key, _)| key) {
        return Some((key, true));
    }
    let digits = name.strip_prefix(b"key")?;
    if digits.len() > 1 && digits.first() == Some(&b'0') {
        return None;
    }
    u16::try_from(parse_u32(digits)?).ok().map(|key| (key, false))
}

/// Appends the wire form of the value of a key that is denoted by its name.
fn read_value(key: u16, value: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    // RFC 9460 §7.1.1, §7.2, §7.3, §8: lists of key names, numbers and addresses allow no escapes.
    // The functions that read these reject a backslash.
    match key {
        MANDATORY => read_mandatory(value, out),
        ALPN => read_alpn(value, out).ok_or(VALUE_FAULT),
        PORT => {
            let port = parse_u32(value).and_then(|port| u16::try_from(port).ok());
            out.extend_from_slice(&port.ok_or(RdataFault::Number(16))?.to_be_bytes());
            Ok(())
        }
        IPV4_HINT => value.split(|octet| *octet == b',').try_for_each(|address| push_ipv4(address, out)),
        IPV6_HINT => value.split(|octet| *octet == b',').try_for_each(|address| push_ipv6(address, out)),
        ECH => {
            out.extend(BASE64.decode(value).map_err(|_| RdataFault::Encoding("base64"))?);
            Ok(())
        }
        _ => push_unescaped(value, out).ok_or(VALUE_FAULT),
    }
}

/// RFC 9460 §8: keys are in any order in presentation form, and ascending in wire form. The check
/// of the wire form rejects a duplicate key.
fn read_mandatory(value: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let keys = value.split(|octet| *octet == b',').map(|name| key_number(name).map(|(key, _)| key));
    let mut keys = keys.collect::<Option<Vec<u16>>>().ok_or(KEY_FAULT)?;
    keys.sort_unstable();
    out.extend(keys.into_iter().flat_map(u16::to_be_bytes));
    Ok(())
}

/// RFC 9460 §7.1.1 and appendix A.1: first the escapes of the character string are resolved, then
/// commas separate the list. Inside an identifier, `\,` and `\\` denote a comma and a backslash.
fn read_alpn(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut list = Vec::with_capacity(value.len());
    push_unescaped(value, &mut list)?;
    let mut identifier = Vec::new();
    let mut octets = list.into_iter();
    while let Some(octet) = octets.next() {
        match octet {
            b'\\' => identifier.push(octets.next().filter(|next| matches!(next, b',' | b'\\'))?),
            b',' => push_identifier(&mut identifier, out)?,
            _ => identifier.push(octet),
        }
    }
    push_identifier(&mut identifier, out)
}

fn push_identifier(identifier: &mut Vec<u8>, out: &mut Vec<u8>) -> Option<()> {
    out.push(u8::try_from(identifier.len()).ok().filter(|length| *length > 0)?);
    out.append(identifier);
    Some(())
}

pub(super) fn write(octets: &[u8], out: &mut Vec<u8>) {
    for (index, (key, value)) in parameters(octets).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        write_key(key, out);
        if !value.is_empty() {
            out.push(b'=');
            write_value(key, value, out);
        }
    }
}

fn write_key(key: u16, out: &mut Vec<u8>) {
    match KEY_NAMES.get(usize::from(key)) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => push_display(format_args!("key{key}"), out),
    }
}

fn write_value(key: u16, value: &[u8], out: &mut Vec<u8>) {
    let comma = |index: usize| if index > 0 { "," } else { "" };
    match key {
        MANDATORY => {
            for (index, key) in u16_values(value).enumerate() {
                out.extend_from_slice(comma(index).as_bytes());
                write_key(key, out);
            }
        }
        ALPN => write_alpn(value, out),
        PORT => u16_values(value).for_each(|port| push_decimal(u32::from(port), out)),
        IPV4_HINT => {
            for (index, address) in value.as_chunks::<4>().0.iter().enumerate() {
                push_display(format_args!("{}{}", comma(index), Ipv4Addr::from(*address)), out);
            }
        }
        IPV6_HINT => {
            for (index, address) in value.as_chunks::<16>().0.iter().enumerate() {
                push_display(format_args!("{}{}", comma(index), Ipv6Addr::from(*address)), out);
            }
        }
        ECH => push_encoded(&BASE64, value, out),
        _ => write_string(value, out),
    }
}

fn write_alpn(value: &[u8], out: &mut Vec<u8>) {
    let mut list = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&length, tail)) = rest.split_first() {
        let Some((identifier, after)) = tail.split_at_checked(usize::from(length)) else { break };
        if !list.is_empty() {
            list.push(b',');
        }
        for &octet in identifier {
            if matches!(octet, b',' | b'\\') {
                list.push(b'\\');
            }
            list.push(octet);
        }
        rest = after;
    }
    write_string(&list, out);
}

/// Appends a character string. It is quoted only if it contains white space or special characters.
fn write_string(octets: &[u8], out: &mut Vec<u8>) {
    let is_plain =
        |octet: &u8| octet.is_ascii_graphic() && !matches!(octet, b'"' | b'\\' | b';' | b'(' | b')');
    if octets.iter().all(is_plain) {
        out.extend_from_slice(octets);
    } else {
        push_quoted(octets, out);
    }
}
