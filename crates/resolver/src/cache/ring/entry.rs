//! The form of an entry in the log: a header of 24 octets, the name, the value, and padding.

use nonesuch_proto::MAX_NAME;

/// Entries begin at multiples of this number of octets.
pub(super) const ALIGNMENT: usize = 8;
/// Octets of a header.
pub(super) const HEADER_OCTETS: usize = 24;
/// Offset of the flags in the header.
const FLAGS_AT: usize = 23;
/// Flag: the entry was read since it was written.
const USED: u8 = 1;

/// What an entry of a name is. Only the lower 40 bits may be set: eight for the kind, 16 for a
/// class and 16 for a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::cache) struct Label(pub(in crate::cache) u64);

impl Label {
    /// Returns 16 bits that differ between the labels of a name, as far as 16 bits can.
    pub(super) const fn fold(self) -> u16 {
        let [_, _, _, kind, class_high, class_low, type_high, type_low] = self.0.to_be_bytes();
        let class = u16::from_be_bytes([class_high, class_low]);
        let rtype = u16::from_be_bytes([type_high, type_low]);
        rtype ^ class.rotate_left(8) ^ (kind as u16).wrapping_mul(0x1f35)
    }
}

/// A name in lower case and its hash.
#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct NameKey<'n> {
    pub(super) hash: u64,
    pub(super) lower: &'n [u8],
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct Entry<'e> {
    /// The name, in the case in which it was inserted.
    pub(in crate::cache) name: &'e [u8],
    pub(in crate::cache) label: Label,
    /// The second in which the entry expires: it may be used in earlier seconds.
    pub(in crate::cache) expiry: u32,
    pub(in crate::cache) value: &'e [u8],
}

/// The header of an entry in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The hash of the name.
    pub(super) hash: u64,
    pub(super) label: Label,
    pub(super) expiry: u32,
    value_length: u16,
    name_length: u8,
    pub(super) is_used: bool,
}

impl Header {
    /// Returns the header of an entry that was not read yet; `None` if a length exceeds its field.
    pub(super) fn of(hash: u64, entry: &Entry<'_>) -> Option<Self> {
        const { assert!(MAX_NAME <= u8::MAX as usize) };
        let value_length = u16::try_from(entry.value.len()).ok()?;
        let name_length = u8::try_from(entry.name.len()).ok()?;
        Some(Self {
            hash,
            label: entry.label,
            expiry: entry.expiry,
            value_length,
            name_length,
            is_used: false,
        })
    }

    /// Reads the header at the start of `octets`, which [`Header::write`] has written.
    pub(super) fn read(octets: &[u8]) -> Self {
        let header: &[u8; HEADER_OCTETS] = octets.first_chunk().expect("an entry has a header");
        let (hash, rest) = header.split_first_chunk().expect("24 octets");
        let (label, rest) = rest.split_first_chunk().expect("16 octets");
        let (expiry, rest) = rest.split_first_chunk().expect("8 octets");
        let [low, high, name_length, flags] = *rest else { unreachable!("the last 4 of 24 octets") };
        Self {
            hash: u64::from_le_bytes(*hash),
            label: Label(u64::from_le_bytes(*label)),
            expiry: u32::from_le_bytes(*expiry),
            value_length: u16::from_le_bytes([low, high]),
            name_length,
            is_used: flags & USED != 0,
        }
    }

    /// Writes the header to the start of `octets`.
    pub(super) fn write(&self, octets: &mut [u8]) {
        octets[..8].copy_from_slice(&self.hash.to_le_bytes());
        octets[8..16].copy_from_slice(&self.label.0.to_le_bytes());
        octets[16..20].copy_from_slice(&self.expiry.to_le_bytes());
        octets[20..22].copy_from_slice(&self.value_length.to_le_bytes());
        octets[22] = self.name_length;
        octets[FLAGS_AT] = u8::from(self.is_used) * USED;
    }

    /// Marks the entry at the start of `octets` as used, or as not used.
    pub(super) fn set_used(octets: &mut [u8], is_used: bool) {
        octets[FLAGS_AT] = u8::from(is_used) * USED;
    }

    /// Returns the octets of the entry in the log, with padding.
    pub(super) const fn size(&self) -> usize {
        (HEADER_OCTETS + self.name_length as usize + self.value_length as usize).next_multiple_of(ALIGNMENT)
    }

    /// Returns the entry at the start of `octets`, which has this header.
    pub(super) fn entry<'e>(&self, octets: &'e [u8]) -> Entry<'e> {
        let (_, octets) = octets.split_at(HEADER_OCTETS);
        let (name, octets) = octets.split_at(usize::from(self.name_length));
        let value = &octets[..usize::from(self.value_length)];
        Entry { name, label: self.label, expiry: self.expiry, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn header_round_trip(
            hash: u64, label in 0u64..1 << 40, expiry: u32, is_used: bool, name in 1usize..=255, value in 0usize..40_000
        ) {
            let (name, value) = (vec![b'n'; name], vec![b'v'; value]);
            let entry = Entry { name: &name, label: Label(label), expiry, value: &value };
            let header = Header::of(hash, &entry).unwrap();
            let mut octets = vec![0xff; header.size()];
            header.write(&mut octets);
            octets[HEADER_OCTETS..][..name.len()].copy_from_slice(&name);
            octets[HEADER_OCTETS + name.len()..][..value.len()].copy_from_slice(&value);
            Header::set_used(&mut octets, is_used);
            let read = Header::read(&octets);
            prop_assert_eq!(read, Header { is_used, ..header });
            prop_assert_eq!(read.entry(&octets).name, &name[..]);
            prop_assert_eq!(read.entry(&octets).value, &value[..]);
            prop_assert_eq!(octets.len() % ALIGNMENT, 0);
        }

        #[test]
        fn labels_of_one_kind_and_class_fold_to_different_numbers(kind in 0u64..8, a: u16, b: u16) {
            let label = |rtype: u16| Label(kind << 32 | 1 << 16 | u64::from(rtype));
            prop_assert_eq!(label(a).fold() == label(b).fold(), a == b);
        }
    }

    #[test]
    fn lengths_that_exceed_their_fields_have_no_header() {
        let entry =
            |name: &'static [u8], value: &'static [u8]| Entry { name, label: Label(0), expiry: 0, value };
        assert!(Header::of(0, &entry(&[0; 255], &[0; 65_535])).is_some());
        assert!(Header::of(0, &entry(&[0; 256], &[])).is_none());
        assert!(Header::of(0, &entry(&[0], &[0; 65_536])).is_none());
    }
}
