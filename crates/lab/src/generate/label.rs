//! Labels of registered names. Their construction guarantees that they are unique, so the generator
//! does not need to store them.
//!
//! The indices of a zone are divided into classes, one for each length and form. Within a class, a
//! reversible encoding converts a number to a label. No label belongs to two forms. Therefore two
//! indices never have the same label. Labels follow the letters-digits-hyphen rule (RFC 1123 §2.1).
//! Internationalised labels follow RFC 5890 §2.3.2.1, with the encoding of RFC 3492.
//!
//! The queries for non-existent names rely on one property: **no label of more than six octets
//! contains the same letter twice in a row**, except A-labels (`xn--`). Letters alternate between
//! vowels and consonants, except in the word at the end of some labels. No word in the list
//! contains a double letter.

use super::profile::LabelProfile;
use super::random::{Permutation, mix};

const CONSONANTS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";
const VOWELS: &[u8; 6] = b"aeiouy";

/// Maximum length of labels of letters that are arbitrary, not alternating. Registries have
/// registrations for almost all short labels, so that alternating labels would not be enough.
const ARBITRARY_LENGTH_MAX: u8 = 6;

/// Upper bound of the numbers that a label encodes. Random letters fill the rest of the label.
const ENCODED_NUMBER_LIMIT: u64 = 1 << 40;

/// Label above the names of the registry's name servers. It is never a registered name.
pub(super) const RESERVED: &[u8; 3] = b"nic";

/// Common words at the end of labels, in ascending order of length. Each word begins with a
/// consonant, and contains two adjacent vowels or two adjacent consonants, so that no alternating
/// label ends in it. No word contains a double letter or is the end of another word.
const WORDS: &[&str] = &[
    "club", "shop", "tech", "farm", "bank", "park", "land", "ford", "film", "golf", "host", "mark", "sport",
    "group", "world", "media", "trade", "house", "store", "point", "cloud", "smart", "print", "craft",
    "trust", "coach", "health", "market", "design", "studio", "travel", "garden", "system", "center",
    "dental", "finance", "kitchen", "partner", "service", "network", "company",
];

/// Non-ASCII letters for internationalised labels. All are PVALID (RFC 5892).
const NON_ASCII_LETTERS: &[char; 12] = &['ä', 'ö', 'ü', 'é', 'è', 'ø', 'å', 'ñ', 'ç', 'ó', 'í', 'á'];

/// Form of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Internationalised,
    DigitsAlone,
    /// Two parts of letters with a hyphen between them.
    WithHyphen,
    /// Letters, then digits.
    WithDigits,
    /// Letters that end in one of [`WORDS`].
    EndingInWord,
    Letters,
}

/// Forms in the order of their classes. [`Form::Letters`] is last, because it replaces the labels
/// that another form is too small for.
const FORMS: [Form; 6] = [
    Form::Internationalised,
    Form::DigitsAlone,
    Form::WithHyphen,
    Form::WithDigits,
    Form::EndingInWord,
    Form::Letters,
];

/// The labels of one form and length.
struct Class {
    /// Rank of the first label of the class.
    start: u64,
    form: Form,
    length: u8,
    /// Number of labels that the form has with this length.
    size: u64,
    permutation: Permutation,
}

/// The labels of a zone, as a function from index to label.
pub(super) struct Labels {
    /// The classes, by their first rank.
    classes: Vec<Class>,
    /// Ranks of the labels by index.
    order: Permutation,
    /// Key of the random letters.
    key: u64,
}

impl Labels {
    /// Creates labels for the indices `0..count`. `count` is at most 2^32.
    pub(super) fn new(count: u64, profile: &LabelProfile, seed: u64) -> Self {
        let key = mix(seed ^ 0x6C61_6265_6C73);
        let total: u64 = profile.lengths.iter().map(|&weight| u64::from(weight)).sum();
        let mut classes = Vec::new();
        let (mut weight_before, mut start, mut excess) = (0, 0, 0);
        for (&weight, length) in profile.lengths.iter().zip(2_u8..) {
            let first = proportion(count, weight_before, total);
            weight_before += u64::from(weight);
            let mut remaining = proportion(count, weight_before, total) - first + excess;
            let of_length = remaining;
            for form in FORMS {
                let wanted = if form == Form::Letters {
                    remaining
                } else {
                    of_length * form_share(form, profile) / 1000
                };
                let size = capacity(form, length);
                let taken = wanted.min(size / 2);
                if taken > 0 {
                    let permutation = Permutation::new(size, mix(key ^ start));
                    classes.push(Class { start, form, length, size, permutation });
                }
                start += taken;
                remaining -= taken;
            }
            excess = remaining;
        }
        debug_assert_eq!(start, count);
        Self { classes, order: Permutation::new(count, key), key }
    }

    /// Appends the label of `index`, in lower case.
    pub(super) fn write(&self, index: u64, out: &mut Vec<u8>) {
        let rank = self.order.apply(index);
        let class =
            &self.classes[self.classes.partition_point(|class| class.start <= rank).saturating_sub(1)];
        let number = class.permutation.apply(rank - class.start);
        let mut encoder =
            Encoder { number, radix_product: 1, number_limit: class.size, random: mix(self.key ^ rank), out };
        encoder.write(class.form, usize::from(class.length));
    }
}

/// Appends the label of a DNS operator: an alternating label of `length` letters, at least seven.
/// The label is unique for numbers below 2^24.
pub(super) fn write_operator_label(number: u64, length: usize, out: &mut Vec<u8>) {
    Encoder { number, radix_product: 1, number_limit: 1 << 24, random: mix(number), out }
        .push_alternating(length, false);
}

/// Returns `count * weight / total`, rounded to the nearest integer.
fn proportion(count: u64, weight: u64, total: u64) -> u64 {
    let total = u128::from(total);
    ((u128::from(count) * u128::from(weight) + total / 2) / total) as u64
}

/// Returns the share of `form` in the labels of each length, per mille.
fn form_share(form: Form, profile: &LabelProfile) -> u64 {
    let not_letters =
        profile.internationalised + profile.digits_alone + profile.with_hyphen + profile.with_digits;
    u64::from(match form {
        Form::Internationalised => profile.internationalised,
        Form::DigitsAlone => profile.digits_alone,
        Form::WithHyphen => profile.with_hyphen,
        Form::WithDigits => profile.with_digits,
        Form::EndingInWord => (1000 - not_letters) * profile.ending_in_word / 1000,
        Form::Letters => 1000 - not_letters,
    })
}

/// Returns the number of labels of a form and length; 0 if the form does not exist with this
/// length.
fn capacity(form: Form, length: u8) -> u64 {
    let size = usize::from(length);
    let labels = match form {
        Form::Letters if length <= ARBITRARY_LENGTH_MAX => {
            26_u64.pow(u32::from(length)) - u64::from(length == 3)
        }
        Form::Letters => 2 * alternating_count(size),
        Form::EndingInWord => match fitting_words(size) {
            [] => 0,
            words => words.len() as u64 * alternating_count(size - words[words.len() - 1].len()),
        },
        Form::WithDigits if length >= 4 => {
            alternating_count(size - digit_count(size)) * 10_u64.pow(digit_count(size) as u32)
        }
        Form::WithHyphen if length >= 7 => {
            alternating_count(size / 2).saturating_mul(alternating_count(size - size / 2 - 1))
        }
        Form::DigitsAlone if (4..=10).contains(&length) => 10_u64.pow(u32::from(length)),
        Form::Internationalised if (4..=40).contains(&length) => {
            NON_ASCII_LETTERS.len() as u64 * u64::from(length) * alternating_count(size - 1)
        }
        _ => 0,
    };
    labels.min(ENCODED_NUMBER_LIMIT)
}

/// Returns the number of alternating labels that begin with a vowel, or with a consonant; at most
/// [`ENCODED_NUMBER_LIMIT`].
fn alternating_count(length: usize) -> u64 {
    let mut labels = 1;
    for position in 0..length {
        // The pattern with more vowels has fewer labels. Its number is a lower bound for both
        // patterns.
        labels *= if position % 2 == 0 { VOWELS.len() as u64 } else { CONSONANTS.len() as u64 };
        if labels >= ENCODED_NUMBER_LIMIT {
            return ENCODED_NUMBER_LIMIT;
        }
    }
    labels
}

/// Returns the words that leave at least five letters for the start of a label of this length.
fn fitting_words(length: usize) -> &'static [&'static str] {
    &WORDS[..WORDS.partition_point(|word| word.len() + 5 <= length)]
}

/// Returns the number of final digits in labels with digits, by length.
fn digit_count(length: usize) -> usize {
    if length < 6 { 1 } else { 1 + length % 4 }
}

/// Encodes a number as letters, least significant digit first, and continues with random letters.
struct Encoder<'a> {
    number: u64,
    /// Product of the radices of the digits so far.
    radix_product: u64,
    /// `number` is below this limit. The label is unique as soon as `radix_product` reaches it.
    number_limit: u64,
    /// State of the generator of random letters.
    random: u64,
    out: &'a mut Vec<u8>,
}

impl Encoder<'_> {
    fn write(&mut self, form: Form, length: usize) {
        match form {
            Form::Letters if length <= usize::from(ARBITRARY_LENGTH_MAX) => {
                self.push_arbitrary_letters(length)
            }
            Form::Letters => {
                let vowel_first = self.next_digit(2) == 1;
                self.push_alternating(length, vowel_first);
            }
            Form::EndingInWord => {
                let words = fitting_words(length);
                let word = words[self.next_digit(words.len())];
                let before = length - word.len();
                // The letter before the word is a vowel, and the word begins with a consonant.
                // Therefore no double letter results.
                self.push_alternating(before, before % 2 == 1);
                self.out.extend_from_slice(word.as_bytes());
            }
            Form::WithDigits => {
                self.push_alternating(length - digit_count(length), false);
                self.push_digits(digit_count(length));
            }
            Form::WithHyphen => {
                self.push_alternating(length / 2, false);
                self.out.push(b'-');
                self.push_alternating(length - length / 2 - 1, false);
            }
            Form::DigitsAlone => self.push_digits(length),
            Form::Internationalised => self.push_internationalised(length),
        }
    }

    /// Returns the next digit in the given radix: first the digits of the number, then random
    /// digits.
    fn next_digit(&mut self, radix: usize) -> usize {
        let radix = radix as u64;
        if self.radix_product >= self.number_limit {
            self.random = mix(self.random);
            self.number = self.random;
            self.radix_product = 1;
            self.number_limit = ENCODED_NUMBER_LIMIT;
        }
        let digit = self.number % radix;
        self.number /= radix;
        self.radix_product *= radix;
        digit as usize
    }

    /// Appends letters that alternate between vowels and consonants.
    fn push_alternating(&mut self, length: usize, vowel_first: bool) {
        let mut is_vowel = vowel_first;
        for _ in 0..length {
            let letter = if is_vowel { VOWELS[self.next_digit(6)] } else { CONSONANTS[self.next_digit(20)] };
            self.out.push(letter);
            is_vowel = !is_vowel;
        }
    }

    fn push_digits(&mut self, length: usize) {
        for _ in 0..length {
            let digit = self.next_digit(10) as u8;
            self.out.push(b'0' + digit);
        }
    }

    fn push_arbitrary_letters(&mut self, length: usize) {
        let mut letters = [0; ARBITRARY_LENGTH_MAX as usize];
        let mut number = self.number;
        if length == RESERVED.len() {
            // `capacity` does not count the reserved label. The numbers from its number on are
            // increased by one to skip it.
            let reserved_number =
                RESERVED.iter().fold(0, |number, letter| number * 26 + u64::from(letter - b'a'));
            number += u64::from(number >= reserved_number);
        }
        for letter in letters[..length].iter_mut().rev() {
            *letter = b'a' + (number % 26) as u8;
            number /= 26;
        }
        self.out.extend_from_slice(&letters[..length]);
    }

    /// Appends an A-label: an alternating label with one inserted non-ASCII letter, encoded as in
    /// RFC 3492 §6.3.
    fn push_internationalised(&mut self, length: usize) {
        let letter = NON_ASCII_LETTERS[self.next_digit(NON_ASCII_LETTERS.len())];
        let position = self.next_digit(length);
        self.out.extend_from_slice(b"xn--");
        self.push_alternating(length - 1, false);
        self.out.push(b'-');
        let mut delta = (u32::from(letter) - 0x80) * length as u32 + position as u32;
        // The threshold is k - bias, limited to the range from tmin (1) to tmax (26). With the
        // initial bias 72, it is 1 for k = 36 and 72, then 26.
        for threshold in [1, 1, 26, 26, 26, 26] {
            if delta < threshold {
                break;
            }
            self.out.push(punycode_digit(threshold + (delta - threshold) % (36 - threshold)));
            delta = (delta - threshold) / (36 - threshold);
        }
        self.out.push(punycode_digit(delta));
    }
}

/// Returns the digit as in RFC 3492 §5: 0-25 are a-z, 26-35 are 0-9.
fn punycode_digit(digit: u32) -> u8 {
    if digit < 26 { b'a' + digit as u8 } else { b'0' + (digit - 26) as u8 }
}

#[cfg(test)]
mod tests {
    use super::super::profile::{Proportions, ZoneModel};
    use super::*;
    use std::collections::HashSet;

    fn profile() -> &'static LabelProfile {
        let Proportions::Tld(proportions) = &ZoneModel::Tld.profile().proportions else {
            panic!("a TLD has the proportions of a TLD")
        };
        &proportions.labels
    }

    fn labels(count: u64, seed: u64) -> Vec<String> {
        let labels = Labels::new(count, profile(), seed);
        let label = |index| {
            let mut out = Vec::new();
            labels.write(index, &mut out);
            String::from_utf8(out).unwrap()
        };
        (0..count).map(label).collect()
    }

    #[test]
    fn labels_are_unique_and_well_formed() {
        for (count, seed) in [(1, 0), (2, 1), (50, 2), (3000, 3), (300_000, 4)] {
            let labels = labels(count, seed);
            assert_eq!(labels.iter().collect::<HashSet<_>>().len() as u64, count);
            for label in labels {
                assert!((2..=63).contains(&label.len()), "{label}");
                let ldh = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
                assert!(label.bytes().all(ldh), "{label}");
                assert!(!label.starts_with('-') && !label.ends_with('-'), "{label}");
                assert_eq!(label.get(2..4) == Some("--"), label.starts_with("xn--"), "{label}");
                assert_ne!(label.as_bytes(), RESERVED);
            }
        }
    }

    #[test]
    fn long_labels_never_double_a_letter() {
        for label in labels(100_000, 9).iter().filter(|label| label.len() > 6 && !label.starts_with("xn--")) {
            let doubled =
                label.as_bytes().windows(2).any(|pair| pair[0] == pair[1] && pair[0].is_ascii_alphabetic());
            assert!(!doubled, "{label}");
        }
    }

    #[test]
    fn words_keep_their_rules() {
        let alternates = |word: &str| word.bytes().map(|b| VOWELS.contains(&b)).collect::<Vec<_>>();
        for (place, word) in WORDS.iter().enumerate() {
            assert!(CONSONANTS.contains(&word.as_bytes()[0]), "{word}");
            assert!(alternates(word).windows(2).any(|pair| pair[0] == pair[1]), "{word} alternates");
            assert!(word.as_bytes().windows(2).all(|pair| pair[0] != pair[1]), "{word} doubles a letter");
            assert!(WORDS.iter().filter(|other| other.ends_with(word)).count() == 1, "{word} ends another");
            assert!(place == 0 || WORDS[place - 1].len() <= word.len(), "{word} is out of order");
        }
    }

    #[test]
    fn shares_of_forms_and_lengths_hold() {
        let labels = labels(100_000, 5);
        let share = |keep: &dyn Fn(&&String) -> bool| labels.iter().filter(keep).count() / 100;
        let digit = |label: &str| label.bytes().any(|octet| octet.is_ascii_digit());
        let idn = share(&|label| label.starts_with("xn--"));
        assert!((8..=11).contains(&idn), "{idn} per mille internationalised");
        let hyphen = share(&|label| label.contains('-') && !label.starts_with("xn--"));
        assert!((60..=85).contains(&hyphen), "{hyphen} per mille with a hyphen");
        let digits = share(&|label| digit(label) && !label.starts_with("xn--"));
        assert!((105..=135).contains(&digits), "{digits} per mille with digits");
        let mut lengths: Vec<usize> = labels.iter().map(String::len).collect();
        lengths.sort_unstable();
        assert!((11..=13).contains(&lengths[50_000]), "median {}", lengths[50_000]);
        assert_eq!(lengths[99_999], 63);
    }

    #[test]
    fn what_does_not_fit_moves_on() {
        // More short labels are requested than exist. The excess becomes longer labels, and all
        // labels are different.
        let flat = LabelProfile { lengths: &[1; 62], ..*profile() };
        let labels = Labels::new(62 * 1000, &flat, 1);
        let mut seen = HashSet::new();
        for index in 0..62 * 1000 {
            let mut out = Vec::new();
            labels.write(index, &mut out);
            assert!(seen.insert(out));
        }
    }

    #[test]
    fn a_labels_decode() {
        // RFC 3492 §6.2, for one insertion.
        let decode = |label: &str| {
            let (basic, tail) = label.strip_prefix("xn--")?.rsplit_once('-')?;
            let (mut delta, mut weight) = (0, 1);
            for (place, octet) in tail.bytes().enumerate() {
                let digit = if octet.is_ascii_digit() { octet - b'0' + 26 } else { octet - b'a' };
                let k = 36 * (place as u32 + 1);
                let threshold = if k <= 72 {
                    1
                } else if k >= 72 + 26 {
                    26
                } else {
                    k - 72
                };
                delta += u32::from(digit) * weight;
                if u32::from(digit) < threshold {
                    assert_eq!(place + 1, tail.len(), "{label} ends with its last digit");
                }
                weight *= 36 - threshold;
            }
            let length = basic.len() as u32 + 1;
            let mut text: Vec<char> = basic.chars().collect();
            text.insert((delta % length) as usize, char::from_u32(0x80 + delta / length)?);
            Some(text.into_iter().collect::<String>())
        };
        assert_eq!(decode("xn--bcher-kva").as_deref(), Some("bücher"));
        let labels = labels(20_000, 6);
        let decoded: Vec<String> = labels
            .iter()
            .filter(|label| label.starts_with("xn--"))
            .map(|label| decode(label).unwrap())
            .collect();
        assert!(decoded.len() > 100);
        assert!(
            decoded.iter().all(|text| text.chars().filter(|c| NON_ASCII_LETTERS.contains(c)).count() == 1)
        );
    }
}
