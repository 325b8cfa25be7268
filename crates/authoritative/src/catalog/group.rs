//! Values of the `group` property (RFC 9432 §4.3.2).

use std::fmt;

/// A value of the `group` property: the entire RDATA of a TXT record. A value of two strings
/// differs from a value of one string with the same octets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(Vec<u8>);

impl Group {
    /// Creates a value from the RDATA of a TXT record.
    #[must_use]
    pub fn from_rdata(rdata: &[u8]) -> Self {
        Self(rdata.to_vec())
    }

    /// Creates a value of one string. Returns `None` if the string is longer than 255 octets.
    #[must_use]
    pub fn from_string(text: &[u8]) -> Option<Self> {
        let length = u8::try_from(text.len()).ok()?;
        Some(Self([&[length], text].concat()))
    }

    /// Returns the RDATA of the TXT record: one or more strings, each after its length.
    #[must_use]
    pub fn rdata(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text, if the value is one string of valid UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let (length, text) = self.0.split_first()?;
        (usize::from(*length) == text.len()).then_some(())?;
        std::str::from_utf8(text).ok()
    }
}

impl fmt::Display for Group {
    /// Writes the strings in quotation marks, as in a zone file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        let mut separator = "";
        while let Some((length, tail)) = rest.split_first() {
            let (string, behind) = tail.split_at(usize::from(*length).min(tail.len()));
            write!(f, "{separator}\"{}\"", string.escape_ascii())?;
            (rest, separator) = (behind, " ");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_strings_differ_from_one_string_with_the_same_octets() {
        let one = Group::from_rdata(b"\x06signed");
        let two = Group::from_rdata(b"\x04sign\x02ed");
        assert_eq!(Group::from_string(b"signed"), Some(one.clone()));
        assert_ne!(one, two);
        assert_eq!((one.text(), two.text()), (Some("signed"), None));
        assert_eq!(
            (one.to_string(), two.to_string()),
            ("\"signed\"".to_owned(), "\"sign\" \"ed\"".to_owned())
        );
        assert_eq!(Group::from_string(&[b'g'; 256]), None);
        assert_eq!(Group::from_rdata(b"\x01\xff").text(), None);
        assert_eq!(Group::from_rdata(b"\x02a\n").to_string(), "\"a\\n\"");
    }
}
