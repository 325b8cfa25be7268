//! Type bit maps of NSEC, NSEC3 and NSEC5 (RFC 4034 §4.1.2).

use crate::Rtype;

/// Appends the type bit map of `types` to `out`. `types` must be sorted and without duplicates.
pub fn push(types: &[Rtype], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(first) = types.get(at) {
        let window = first.0 >> 8;
        let mut bits = [0u8; 32];
        let mut length = 0;
        while let Some(rtype) = types.get(at).filter(|t| t.0 >> 8 == window) {
            let octet = usize::from(rtype.0 & 0xff) / 8;
            bits[octet] |= 0x80 >> (rtype.0 & 7);
            length = octet + 1;
            at += 1;
        }
        out.push(window as u8);
        out.push(length as u8);
        out.extend_from_slice(&bits[..length]);
    }
}

/// Returns whether `map` is well formed: ascending windows, lengths from 1 to 32, and no trailing
/// zero octet in a window.
#[must_use]
pub fn is_valid(map: &[u8]) -> bool {
    let mut rest = map;
    let mut previous_window = None;
    while let [window, length, tail @ ..] = rest {
        let length = usize::from(*length);
        if previous_window.is_some_and(|previous| *window <= previous)
            || !(1..=32).contains(&length)
            || tail.len() < length
        {
            return false;
        }
        if tail[length - 1] == 0 {
            return false;
        }
        previous_window = Some(*window);
        rest = &tail[length..];
    }
    rest.is_empty()
}

/// Returns whether the bit of `rtype` is set in `map`. In a malformed map, all bits after the fault
/// count as not set.
#[must_use]
pub fn contains(map: &[u8], rtype: Rtype) -> bool {
    let mut rest = map;
    while let [window, length, tail @ ..] = rest {
        let Some((bits, next)) = tail.split_at_checked(usize::from(*length)) else { return false };
        if u16::from(*window) == rtype.0 >> 8 {
            let octet = bits.get(usize::from(rtype.0 & 0xff) / 8).copied().unwrap_or(0);
            return octet & (0x80 >> (rtype.0 & 7)) != 0;
        }
        rest = next;
    }
    false
}

/// Returns the types whose bits are set in `map`, in ascending order. The iterator ends at the
/// first fault of a malformed map.
pub fn types(map: &[u8]) -> impl Iterator<Item = Rtype> + '_ {
    let mut rest = map;
    let windows = std::iter::from_fn(move || {
        let [window, length, tail @ ..] = rest else { return None };
        let (bits, next) = tail.split_at_checked(usize::from(*length))?;
        rest = next;
        Some((u16::from(*window) << 8, bits))
    });
    windows.flat_map(|(base, bits)| {
        bits.iter().enumerate().flat_map(move |(octet, bits)| {
            (0..8u16)
                .filter(move |bit| bits & (0x80 >> bit) != 0)
                .map(move |bit| Rtype(base | ((octet as u16) << 3 | bit)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc4034_section_4_3() {
        let types = [Rtype::A, Rtype::MX, Rtype::RRSIG, Rtype::NSEC, Rtype(1234)];
        let mut map = Vec::new();
        push(&types, &mut map);
        let mut expected = vec![0, 6, 0x40, 0x01, 0, 0, 0, 0x03, 4, 27];
        expected.extend([0; 26]);
        expected.push(0x20);
        assert_eq!(map, expected);
        assert!(is_valid(&map) && contains(&map, Rtype(1234)) && !contains(&map, Rtype(1235)));
    }

    #[test]
    fn malformed_maps_are_rejected() {
        for bad in
            [&[0u8][..], &[0, 0], &[0, 33], &[0, 2, 1], &[0, 1, 0], &[0, 1, 1, 0, 1, 1], &[1, 1, 1, 0, 1, 1]]
        {
            assert!(!is_valid(bad), "{bad:?}");
            let _ = types(bad).count();
        }
    }

    proptest! {
        #[test]
        fn round_trip(set in proptest::collection::btree_set(any::<u16>(), 0..40)) {
            let list: Vec<Rtype> = set.into_iter().map(Rtype).collect();
            let mut map = Vec::new();
            push(&list, &mut map);
            prop_assert!(is_valid(&map));
            prop_assert_eq!(types(&map).collect::<Vec<_>>(), list.clone());
            for rtype in list {
                prop_assert!(contains(&map, rtype));
            }
        }
    }
}
