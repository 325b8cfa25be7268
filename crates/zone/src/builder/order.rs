//! Sorts groups by the canonical order of their owners (RFC 4034 §6.1). A group is a series of
//! consecutive records of one owner; all groups of a builder are numbered in the order in which
//! they were added.
//!
//! The labels of a name below the apex are encoded, from right to left, as a string of 6-bit
//! digits; the order of these strings is the canonical order. A letter, a decimal digit, `-`, `_`
//! or `*` takes one digit, any other octet takes three, and a digit 0 follows each label. A sort
//! entry holds sixteen digits and the number of the group, so most comparisons do not access the
//! names. If all sixteen digits are equal, the next sixteen decide. If the names are equal, the
//! number of the group decides.

use super::gathered::GatheredParts;
use nonesuch_proto::NameRef;
use rayon::prelude::*;

/// Number of 6-bit digits in a sort entry, above the number of the group.
const DIGITS_PER_ENTRY: usize = 16;
/// Number of low bits of an entry that hold the number of the group.
const GROUP_NUMBER_BITS: u32 = 32;
/// Minimum number of groups that are sorted by several threads.
const MIN_PARALLEL_GROUPS: usize = 4096;

/// For an octet that takes one digit, this digit. For an octet that takes three digits, the first
/// of them, together with [`ESCAPED`]; the other two are the high and the low half of the octet.
static CODES: [u8; 256] = codes();
/// Flag of a code: the octet takes three digits.
const ESCAPED: u8 = 0x80;

const fn codes() -> [u8; 256] {
    let mut codes = [0; 256];
    let mut digit = 0;
    // Whether the octet before takes one digit, or there is none. Of consecutive octets that take
    // three digits, only the first one begins a new digit; the others share it.
    let mut is_after_one_digit = true;
    let mut octet = 0;
    while octet < 256 {
        // Upper-case letters have the codes of the lower-case letters.
        let is_upper = b'A' as usize <= octet && octet <= b'Z' as usize;
        if !is_upper {
            let is_one_digit = matches!(octet as u8, b'*' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z');
            if is_one_digit || is_after_one_digit {
                digit += 1;
            }
            is_after_one_digit = is_one_digit;
            codes[octet] = if is_one_digit { digit } else { digit | ESCAPED };
        }
        octet += 1;
    }
    octet = b'A' as usize;
    while octet <= b'Z' as usize {
        codes[octet] = codes[octet + 32];
        octet += 1;
    }
    codes
}

/// Collects [`DIGITS_PER_ENTRY`] digits of a name.
struct Digits {
    /// Number of digits to skip.
    skip: usize,
    /// Number of digits to collect after these.
    remaining: usize,
    /// The collected digits; the last one is in the lowest bits.
    value: u128,
}

impl Digits {
    fn push(&mut self, digit: u8) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.remaining > 0 {
            self.value = self.value << 6 | u128::from(digit);
            self.remaining -= 1;
        }
    }

    fn push_label(&mut self, label: &[u8]) {
        for &octet in label {
            let code = CODES[usize::from(octet)];
            self.push(code & !ESCAPED);
            if code & ESCAPED != 0 {
                self.push(octet >> 4);
                self.push(octet & 15);
            }
            if self.remaining == 0 {
                return;
            }
        }
        self.push(0);
    }
}

/// Returns the digits of `name` from index `skip` on, [`DIGITS_PER_ENTRY`] of them; digits after
/// the end of the name are 0. The last `apex_octets` octets of `name` are the apex and have no
/// digits.
fn digits(name: NameRef<'_>, apex_octets: usize, skip: usize) -> u128 {
    let below_apex = &name.wire()[..name.len() - apex_octets];
    let (mut starts, mut count, mut at) = ([0u8; 128], 0, 0);
    while at < below_apex.len() {
        starts[count] = at as u8;
        count += 1;
        at += 1 + usize::from(below_apex[at]);
    }
    let mut digits = Digits { skip, remaining: DIGITS_PER_ENTRY, value: 0 };
    for start in starts[..count].iter().rev() {
        let start = usize::from(*start);
        digits.push_label(&below_apex[start + 1..start + 1 + usize::from(below_apex[start])]);
        if digits.remaining == 0 {
            break;
        }
    }
    digits.value << (6 * digits.remaining)
}

/// Returns the number of the group of an entry.
pub(super) const fn group_number(entry: u128) -> u32 {
    entry as u32
}

/// Returns the digits of an entry.
const fn entry_digits(entry: u128) -> u128 {
    entry >> GROUP_NUMBER_BITS
}

/// Returns an entry for each group, in the canonical order of their owners; [`group_number`]
/// returns the number of the group. Groups with the same owner are in the order of their numbers.
/// All owners must be at or below the apex, whose wire format has `apex_octets` octets.
pub(super) fn sort(gathered: &GatheredParts, apex_octets: usize) -> Vec<u128> {
    let mut entries = vec![0; gathered.group_count()];
    let mut rest = entries.as_mut_slice();
    let mut slices = Vec::with_capacity(gathered.parts.len());
    for part in &gathered.parts {
        let (slice, tail) = rest.split_at_mut(part.group_count());
        slices.push(slice);
        rest = tail;
    }
    slices.into_par_iter().enumerate().for_each(|(part_index, slice)| {
        let part = &gathered.parts[part_index];
        for (index_in_part, entry) in slice.iter_mut().enumerate() {
            let number = gathered.first_group(part_index) + index_in_part as u32;
            let digits = digits(part.name(index_in_part), apex_octets, 0);
            *entry = digits << GROUP_NUMBER_BITS | u128::from(number);
        }
    });
    sort_entries(&mut entries);
    sort_ties(&mut entries, gathered, apex_octets, DIGITS_PER_ENTRY);
    entries
}

fn sort_entries(entries: &mut [u128]) {
    if entries.is_sorted() {
        return;
    }
    if entries.len() < MIN_PARALLEL_GROUPS { entries.sort_unstable() } else { entries.par_sort_unstable() }
}

/// Sorts entries with equal digits by the next digits of their names. `sorted_digits` is the number
/// of digits of a name by which the entries are sorted already.
fn sort_ties(entries: &mut [u128], gathered: &GatheredParts, apex_octets: usize, sorted_digits: usize) {
    if entries.len() < MIN_PARALLEL_GROUPS {
        for same in entries.chunk_by_mut(|a, b| entry_digits(*a) == entry_digits(*b)) {
            sort_tie(same, gathered, apex_octets, sorted_digits);
        }
        return;
    }
    entries
        .par_chunk_by_mut(|a, b| entry_digits(*a) == entry_digits(*b))
        .for_each(|same| sort_tie(same, gathered, apex_octets, sorted_digits));
}

/// Sorts entries that all have equal digits; see [`sort_ties`].
fn sort_tie(same: &mut [u128], gathered: &GatheredParts, apex_octets: usize, sorted_digits: usize) {
    // A name has at most three consecutive digits 0: two of an octet, and one after its label. So
    // if all sixteen digits are 0, they extend beyond the ends of the names, and the names are
    // equal.
    if same.len() < 2 || entry_digits(same[0]) == 0 {
        return;
    }
    for entry in same.iter_mut() {
        let number = group_number(*entry);
        let digits = digits(gathered.name(number), apex_octets, sorted_digits);
        *entry = digits << GROUP_NUMBER_BITS | u128::from(number);
    }
    sort_entries(same);
    sort_ties(same, gathered, apex_octets, sorted_digits + DIGITS_PER_ENTRY);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;
    use proptest::prelude::*;

    #[test]
    fn codes_have_six_bits_and_the_order_of_octets() {
        let mut last = (0, 0);
        for octet in (0..=255u8).filter(|octet| !octet.is_ascii_uppercase()) {
            let code = CODES[usize::from(octet)];
            let digit = code & !ESCAPED;
            let rank = (digit, if code & ESCAPED == 0 { 0 } else { u16::from(octet) + 1 });
            assert!((1..64).contains(&digit) && rank > last, "{octet}: {rank:?} after {last:?}");
            last = rank;
        }
        assert_eq!(CODES[usize::from(b'Q')], CODES[usize::from(b'q')]);
    }

    fn any_name() -> impl Strategy<Value = Name> {
        let octet = prop_oneof![any::<u8>(), Just(b'a'), Just(b'A'), Just(b'-'), Just(0), Just(255)];
        let label = proptest::collection::vec(octet, 1..6);
        proptest::collection::vec(label, 0..5).prop_map(|labels| {
            let apex: Name = "example.".parse().unwrap();
            labels.iter().fold(apex, |name, label| Name::prepend(label, name.view()).unwrap())
        })
    }

    proptest! {
        #[test]
        fn digits_are_in_canonical_order(a in any_name(), b in any_name()) {
            let apex = 9;
            let all =
                |name: &Name| [0, 1, 2, 3, 4, 5].map(|level| digits(name.view(), apex, level * DIGITS_PER_ENTRY));
            prop_assert_eq!(all(&a).cmp(&all(&b)), a.cmp(&b));
        }
    }
}
