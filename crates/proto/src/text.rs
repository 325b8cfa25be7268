//! Lexical elements of presentation form (RFC 1035 §5.1): escapes, character strings and tokens.

pub use crate::escape::{push_unescaped, unescape};

use crate::NameRef;
use std::fmt;

/// One token of a zone file entry, with unresolved escapes.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The octets between the delimiters, without quotation marks.
    pub octets: &'a [u8],
    /// Whether the token was in quotation marks.
    pub quoted: bool,
    /// Offset of the first octet of the token in the input.
    pub at: usize,
}

/// Octets of a label that every reader accepts without an escape: letters, digits, hyphen and
/// underscore.
static IS_PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut octet = 0;
    while octet < plain.len() {
        plain[octet] = (octet as u8).is_ascii_alphanumeric() || matches!(octet as u8, b'-' | b'_');
        octet += 1;
    }
    plain
};

/// Appends the presentation form of a name, with a final dot and with the escapes of RFC 1035 §5.1.
pub fn push_name(name: NameRef<'_>, out: &mut Vec<u8>) {
    if name.is_root() {
        out.push(b'.');
        return;
    }
    for label in name.labels() {
        if label.iter().all(|octet| IS_PLAIN[usize::from(*octet)]) {
            out.extend_from_slice(label);
            out.push(b'.');
            continue;
        }
        for &octet in label {
            match octet {
                b'.' | b'\\' | b'"' | b'(' | b')' | b';' | b'@' | b'$' => {
                    out.extend_from_slice(&[b'\\', octet])
                }
                b'!'..=b'~' => out.push(octet),
                _ => push_decimal_escape(octet, out),
            }
        }
        out.push(b'.');
    }
}

impl fmt::Display for NameRef<'_> {
    /// Writes the presentation form: absolute, with the escapes of RFC 1035 §5.1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(self.len() + 8);
        push_name(*self, &mut text);
        f.pad(&String::from_utf8_lossy(&text))
    }
}

/// Appends a character string in quotation marks.
pub fn push_quoted(octets: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &octet in octets {
        match octet {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', octet]),
            b' '..=b'~' => out.push(octet),
            _ => push_decimal_escape(octet, out),
        }
    }
    out.push(b'"');
}

fn push_decimal_escape(octet: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'\\', b'0' + octet / 100, b'0' + octet / 10 % 10, b'0' + octet % 10]);
}

/// Appends a number in decimal.
pub fn push_decimal(value: u32, out: &mut Vec<u8>) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    let mut value = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads an unsigned decimal number below 2^32 with at most ten digits.
#[must_use]
pub fn parse_u32(octets: &[u8]) -> Option<u32> {
    if octets.is_empty() || octets.len() > 10 {
        return None;
    }
    let mut value = 0u64;
    for octet in octets {
        value = value * 10 + u64::from(octet.checked_sub(b'0').filter(|d| *d < 10)?);
    }
    u32::try_from(value).ok()
}

/// Reads a TTL: seconds, or numbers with units (`1h30m`, `2w`), as BIND, Knot and NSD accept them.
/// Returns `None` for other text, and above 2^31 - 1 seconds (RFC 2181 §8).
#[must_use]
pub fn parse_ttl(octets: &[u8]) -> Option<u32> {
    let mut total = 0u64;
    let mut number = None;
    for &octet in octets {
        if octet.is_ascii_digit() {
            let next = number.unwrap_or(0u64) * 10 + u64::from(octet - b'0');
            if next > u64::from(u32::MAX) {
                return None;
            }
            number = Some(next);
            continue;
        }
        let unit = match octet.to_ascii_lowercase() {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        total = total.checked_add(number.take()? * unit)?;
    }
    if octets.is_empty() {
        return None;
    }
    total = total.checked_add(number.unwrap_or(0))?;
    u32::try_from(total).ok().filter(|ttl| *ttl <= 0x7fff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttl_forms() {
        assert_eq!(parse_ttl(b"3600"), Some(3600));
        assert_eq!(parse_ttl(b"1h30M"), Some(5400));
        assert_eq!(parse_ttl(b"1w2d3h4m5s"), Some(604_800 + 2 * 86_400 + 3 * 3600 + 245));
        for bad in [&b""[..], b"h", b"1x", b"-1", b"2147483648", b"99999999999", b"1hh"] {
            assert_eq!(parse_ttl(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_ttl_of_many_numbers_does_not_overflow() {
        assert_eq!(parse_ttl("4294967295w".repeat(8000).as_bytes()), None);
    }

    #[test]
    fn quoting_escapes_special_octets() {
        let mut out = Vec::new();
        push_quoted(b"a\"b\\c\x00\xff ", &mut out);
        assert_eq!(out, br#""a\"b\\c\000\255 ""#);
        let mut back = Vec::new();
        push_unescaped(&out[1..out.len() - 1], &mut back).unwrap();
        assert_eq!(back, b"a\"b\\c\x00\xff ");
        assert_eq!(push_unescaped(b"\\1", &mut back), None);
        assert_eq!(push_unescaped(b"\\", &mut back), None);
    }
}
