//! Values of the `group` property (RFC 9432 §4.3.2).

use nonesuch_proto::text::push_quoted;
use std::fmt;

/// A value of the `group` property: the entire RDATA of a TXT record. A value of two strings
/// differs from a value of one string with the same octets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(Vec<u8>);

impl Group {
    /// Returns the value whose TXT record has this RDATA.
    #[must_use]
    pub fn from_rdata(rdata: &[u8]) -> Self {
        Self(rdata.to_vec())
    }

    /// Returns the value that consists of one string with these octets, or `None` if there are more
    /// than 255.
    #[must_use]
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        let length = u8::try_from(octets.len()).ok()?;
        Some(Self([&[length], octets].concat()))
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
    /// Writes the strings as in a zone file: in quotation marks, with the escapes of RFC 1035 §5.1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut out) = (&self.0[..], Vec::new());
        while let Some((length, tail)) = rest.split_first() {
            let (string, next) = tail.split_at(usize::from(*length).min(tail.len()));
            if !out.is_empty() {
                out.push(b' ');
            }
            push_quoted(string, &mut out);
            rest = next;
        }
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_strings_differ_from_one_string_with_the_same_octets() {
        let one = Group::from_rdata(b"\x06signed");
        let two = Group::from_rdata(b"\x04sign\x02ed");
        assert_eq!(Group::from_octets(b"signed"), Some(one.clone()));
        assert_ne!(one, two);
        assert_eq!((one.text(), two.text()), (Some("signed"), None));
        assert_eq!(
            (one.to_string(), two.to_string()),
            ("\"signed\"".to_owned(), "\"sign\" \"ed\"".to_owned())
        );
        assert_eq!(Group::from_octets(&[b'g'; 256]), None);
        assert_eq!(Group::from_rdata(b"\x01\xff").text(), None);
        assert_eq!(Group::from_rdata(b"\x05a\n'\"\xff").to_string(), r#""a\010'\"\255""#);
    }
}
