//! Serial number arithmetic (RFC 1982) for SOA serials and for signature times (RFC 4034 §3.1.5).

use std::cmp::Ordering;

/// Compares two serial numbers. Returns `None` if they are 2^31 apart, a case that RFC 1982 §3.2
/// leaves undefined.
#[must_use]
pub const fn compare(a: u32, b: u32) -> Option<Ordering> {
    match a.wrapping_sub(b) {
        0 => Some(Ordering::Equal),
        1..=0x7fff_ffff => Some(Ordering::Greater),
        0x8000_0000 => None,
        _ => Some(Ordering::Less),
    }
}

/// Returns whether `a` precedes `b` in serial number arithmetic.
#[must_use]
pub const fn is_before(a: u32, b: u32) -> bool {
    matches!(compare(a, b), Some(Ordering::Less))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc1982_examples() {
        assert!(is_before(0, 1) && is_before(0xffff_ffff, 0) && !is_before(1, 1));
        assert!(is_before(44, 100) && !is_before(100, 44));
        assert_eq!(compare(0, 0x8000_0000), None);
    }
}
