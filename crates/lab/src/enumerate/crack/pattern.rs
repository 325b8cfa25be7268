//! Patterns of names: each octet is fixed or one of a set. Masks, words and affixes become patterns.
//!
//! A mask is text in which `?` and a letter stand for a set of octets:
//!
//! | mask | octets |
//! | --- | --- |
//! | `?l` | a to z |
//! | `?d` | 0 to 9 |
//! | `?h` | 0 to 9, a to f |
//! | `?a` | a to z, 0 to 9, hyphen |
//! | `[abc0-9]` | the octets and ranges between the brackets |
//! | `.` | the end of a label |
//! | `\` and an octet | this octet |
//! | another octet | this octet; letters in lower case |

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const HEXADECIMAL: &[u8] = b"0123456789abcdef";
const HOST: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-";

/// Maximum octets of the part of a name before the zone.
pub(super) const PREFIX_MAX: usize = 253;

/// Why a mask is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// The mask is empty.
    #[error("the mask is empty")]
    Empty,
    /// A question mark is not followed by the letter of a set.
    #[error("'?' must be followed by l, d, h or a; write \\? for a question mark")]
    UnknownSet,
    /// A bracket is not closed, or the set is empty, or a range is reversed.
    #[error("a set in brackets is not closed, empty or reversed, for example [a-f0-9]")]
    Brackets,
    /// A backslash is the last octet.
    #[error("a backslash ends the mask")]
    Escape,
    /// A label is empty or has more than 63 octets, or the labels do not fit into a name.
    #[error("a label of the mask is empty or has more than 63 octets, or the name has more than 253 octets")]
    Label,
    /// The mask has more than 2^63 names.
    #[error("the mask has more than 2^63 names")]
    TooMany,
}

/// An element of a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Octet(u8),
    Set(Arc<[u8]>),
    /// The end of a label.
    Dot,
}

/// A mask: the names of one pattern, or a prefix or suffix of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    text: String,
    elements: Vec<Element>,
    size: u64,
}

impl Mask {
    /// The empty affix, with one name.
    #[must_use]
    pub const fn empty() -> Self {
        Self { text: String::new(), elements: Vec::new(), size: 1 }
    }

    /// The number of texts that the mask stands for.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The pattern of the mask as a complete name.
    ///
    /// # Errors
    /// [`MaskError::Label`] if the labels are invalid.
    pub fn pattern(&self) -> Result<Pattern, MaskError> {
        let mut pattern = Pattern::default();
        pattern.set_word(&Self::empty(), &[], self).then_some(pattern).ok_or(MaskError::Label)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Mask {
    type Err = MaskError;

    fn from_str(text: &str) -> Result<Self, MaskError> {
        let mut rest = text.as_bytes();
        let mut elements = Vec::new();
        while let Some((&octet, after)) = rest.split_first() {
            rest = after;
            elements.push(match octet {
                b'.' => Element::Dot,
                b'?' => {
                    let (&letter, after) = rest.split_first().ok_or(MaskError::UnknownSet)?;
                    rest = after;
                    Element::Set(named_set(letter)?.into())
                }
                b'[' => {
                    let end = rest.iter().position(|octet| *octet == b']').ok_or(MaskError::Brackets)?;
                    let set = bracket_set(&rest[..end])?;
                    rest = &rest[end + 1..];
                    Element::Set(set.into())
                }
                b'\\' => {
                    let (&octet, after) = rest.split_first().ok_or(MaskError::Escape)?;
                    rest = after;
                    Element::Octet(octet.to_ascii_lowercase())
                }
                octet => Element::Octet(octet.to_ascii_lowercase()),
            });
        }
        if elements.is_empty() {
            return Err(MaskError::Empty);
        }
        let size = elements.iter().try_fold(1_u64, |size, element| match element {
            Element::Set(set) => size.checked_mul(set.len() as u64).filter(|size| *size <= 1 << 63),
            Element::Octet(_) | Element::Dot => Some(size),
        });
        Ok(Self { text: text.to_owned(), elements, size: size.ok_or(MaskError::TooMany)? })
    }
}

fn named_set(letter: u8) -> Result<&'static [u8], MaskError> {
    match letter {
        b'l' => Ok(LETTERS),
        b'd' => Ok(DIGITS),
        b'h' => Ok(HEXADECIMAL),
        b'a' => Ok(HOST),
        _ => Err(MaskError::UnknownSet),
    }
}

/// The octets of a set in brackets, in ascending order.
fn bracket_set(text: &[u8]) -> Result<Vec<u8>, MaskError> {
    let mut set = Vec::new();
    let mut at = 0;
    while let Some(&first) = text.get(at) {
        // A hyphen at the end is an octet.
        if let (Some(b'-'), Some(&last)) = (text.get(at + 1), text.get(at + 2)) {
            if last < first {
                return Err(MaskError::Brackets);
            }
            set.extend(first..=last);
            at += 3;
        } else {
            set.push(first);
            at += 1;
        }
    }
    set.make_ascii_lowercase();
    set.sort_unstable();
    set.dedup();
    if set.is_empty() { Err(MaskError::Brackets) } else { Ok(set) }
}

/// An octet of a pattern that is one of a set.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// Offset in the wire form.
    pub(crate) at: usize,
    /// The octets, in order.
    pub(crate) set: Arc<[u8]>,
}

/// A set of names: their wire form without the zone, with the first octet of each set.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    pub(crate) wire: Vec<u8>,
    /// The variable octets. The last one changes fastest.
    pub(crate) positions: Vec<Position>,
}

/// Consecutive names of a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternRange {
    pub(crate) start: u64,
    pub(crate) count: u64,
}

impl Pattern {
    /// One label: `fixed`, and then `count` octets of `set`.
    pub(crate) fn counted(fixed: &[u8], set: &[u8], count: usize) -> Self {
        let mut wire = vec![(fixed.len() + count) as u8];
        wire.extend_from_slice(fixed);
        let set: Arc<[u8]> = set.into();
        let first = set.first().copied().unwrap_or_default();
        let positions = (0..count).map(|index| Position { at: wire.len() + index, set: Arc::clone(&set) });
        let positions = positions.collect();
        wire.resize(wire.len() + count, first);
        Self { wire, positions }
    }

    /// Number of names.
    pub(crate) fn size(&self) -> u64 {
        self.positions.iter().map(|position| position.set.len() as u64).product()
    }

    /// Replaces the pattern with the names `prefix`, `word` and `suffix`, one after the other. A dot in
    /// the word ends a label; a dot at its end is ignored. Returns `false` if the labels are invalid;
    /// the pattern is then undefined.
    pub(crate) fn set_word(&mut self, prefix: &Mask, word: &[u8], suffix: &Mask) -> bool {
        self.wire.clear();
        self.positions.clear();
        self.wire.push(0);
        let mut label_at = 0;
        let literal = word.iter().map(|octet| match octet {
            b'.' => Element::Dot,
            octet => Element::Octet(octet.to_ascii_lowercase()),
        });
        let elements = prefix.elements.iter().cloned().chain(literal).chain(suffix.elements.iter().cloned());
        for element in elements {
            match element {
                Element::Octet(octet) => self.wire.push(octet),
                Element::Set(set) => {
                    self.wire.push(set.first().copied().unwrap_or_default());
                    self.positions.push(Position { at: self.wire.len() - 1, set });
                }
                Element::Dot => {
                    if !self.end_label(label_at) {
                        return false;
                    }
                    label_at = self.wire.len();
                    self.wire.push(0);
                }
            }
        }
        self.end_label(label_at) && self.wire.len() <= PREFIX_MAX
    }

    /// Sets the length of the label that begins at `at`.
    fn end_label(&mut self, at: usize) -> bool {
        match self.wire.len() - at - 1 {
            octets @ 1..=63 => {
                self.wire[at] = octets as u8;
                true
            }
            _ => false,
        }
    }

    /// The wire form of the name with this index, without the zone.
    pub(crate) fn name(&self, index: u64) -> Vec<u8> {
        let mut wire = self.wire.clone();
        let mut rest = index;
        for position in self.positions.iter().rev() {
            let size = position.set.len() as u64;
            wire[position.at] = position.set[(rest % size) as usize];
            rest /= size;
        }
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> Mask {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn names(text: &str) -> Vec<String> {
        let pattern = mask(text).pattern().expect("a pattern");
        (0..pattern.size()).map(|index| String::from_utf8(pattern.name(index)).expect("text")).collect()
    }

    #[test]
    fn masks_stand_for_names_in_order() {
        assert_eq!(names("ns[1-3]"), ["\u{3}ns1", "\u{3}ns2", "\u{3}ns3"]);
        assert_eq!(names("[ab].[xy]"), ["\u{1}a\u{1}x", "\u{1}a\u{1}y", "\u{1}b\u{1}x", "\u{1}b\u{1}y"]);
        assert_eq!(names("A\\?"), ["\u{2}a?"]);
        assert_eq!(mask("?l?d?h?a").size(), 26 * 10 * 16 * 37);
        assert_eq!(mask("[a-cb-]").size(), 4);
        let ten = names("x?d");
        assert_eq!((ten.len(), ten[9].as_str()), (10, "\u{2}x9"));
    }

    #[test]
    fn invalid_masks_are_rejected() {
        for (text, expected) in [
            ("", MaskError::Empty),
            ("?", MaskError::UnknownSet),
            ("?x", MaskError::UnknownSet),
            ("[ab", MaskError::Brackets),
            ("[]", MaskError::Brackets),
            ("[b-a]", MaskError::Brackets),
            ("a\\", MaskError::Escape),
            ("?a?a?a?a?a?a?a?a?a?a?a?a?a", MaskError::TooMany),
        ] {
            assert_eq!(text.parse::<Mask>(), Err(expected), "{text}");
        }
        for text in ["a..b", ".a", "a.", &"x".repeat(64)] {
            assert_eq!(mask(text).pattern().err(), Some(MaskError::Label), "{text}");
        }
    }

    #[test]
    fn affixes_surround_a_word() {
        let mut pattern = Pattern::default();
        assert!(pattern.set_word(&mask("[xy]-"), b"Www", &mask("?d")));
        assert_eq!(pattern.size(), 20);
        assert_eq!(pattern.name(0), b"\x06x-www0");
        assert_eq!(pattern.name(19), b"\x06y-www9");
        assert!(pattern.set_word(&Mask::empty(), b"a.b", &Mask::empty()));
        assert_eq!(pattern.name(0), b"\x01a\x01b");
        assert!(!pattern.set_word(&Mask::empty(), b"", &Mask::empty()));
    }
}
