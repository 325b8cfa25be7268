//! Escapes in presentation form (RFC 1035 §5.1).

/// Resolves the escape whose backslash precedes `rest`. Returns the octet and the number of octets
/// of `rest` that the escape occupies, or `None` if the escape is malformed.
#[must_use]
pub fn unescape(rest: &[u8]) -> Option<(u8, usize)> {
    match rest {
        [a, b, c, ..] if a.is_ascii_digit() => {
            if !(b.is_ascii_digit() && c.is_ascii_digit()) {
                return None;
            }
            let value = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
            u8::try_from(value).ok().map(|value| (value, 3))
        }
        [a, ..] if !a.is_ascii_digit() => Some((*a, 1)),
        _ => None,
    }
}

/// Appends `octets` with escapes resolved. Returns `None` if an escape is malformed; `out` then
/// contains the octets before it.
#[must_use]
pub fn push_unescaped(octets: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if !octets.contains(&b'\\') {
        out.extend_from_slice(octets);
        return Some(());
    }
    let mut rest = octets;
    while let Some((&octet, tail)) = rest.split_first() {
        rest = tail;
        if octet == b'\\' {
            let (octet, used) = unescape(rest)?;
            out.push(octet);
            rest = &rest[used..];
        } else {
            out.push(octet);
        }
    }
    Some(())
}
