//! Record types and classes: numbers and mnemonics.

use crate::rdata;
use std::fmt;
use std::str::FromStr;

/// A record type or query type, as the number in wire form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rtype(pub u16);

macro_rules! rtypes {
    ($($name:ident = $number:literal),* $(,)?) => {
        #[allow(missing_docs)] // mnemonics of the IANA registry
        impl Rtype { $(pub const $name: Self = Self($number);)* }
    };
}

rtypes! {
    A = 1, NS = 2, CNAME = 5, SOA = 6, PTR = 12, MX = 15, TXT = 16, SIG = 24, KEY = 25, AAAA = 28, NXT = 30,
    SRV = 33, DNAME = 39, OPT = 41, DS = 43, RRSIG = 46, NSEC = 47, DNSKEY = 48, NSEC3 = 50, NSEC3PARAM = 51,
    CDS = 59, CDNSKEY = 60, ZONEMD = 63, NXNAME = 128, TKEY = 249, TSIG = 250, IXFR = 251, AXFR = 252,
    MAILB = 253, MAILA = 254, ANY = 255,
    // IANA has not assigned numbers to draft-vcelak-nsec5. These numbers for private use are those
    // of its only public implementation.
    NSEC5 = 65280, NSEC5KEY = 65281, NSEC5PROOF = 65282,
}

/// Query types and meta types with their mnemonics, which are not in [`rdata::TYPES`]. `ANY` is
/// missing, because it has two forms.
const META_TYPES: [(u16, &str); 8] = [
    (41, "OPT"),
    (128, "NXNAME"),
    (249, "TKEY"),
    (250, "TSIG"),
    (251, "IXFR"),
    (252, "AXFR"),
    (253, "MAILB"),
    (254, "MAILA"),
];

impl Rtype {
    /// Returns whether the type is a query type or meta type, which never occurs as data in a zone
    /// (RFC 6895 §3.1).
    #[must_use]
    pub const fn is_meta(self) -> bool {
        self.0 == 0 || self.0 == 41 || matches!(self.0, 128..=255)
    }

    /// Returns whether all records of this type in a zone result from DNSSEC signing: RRSIG, NSEC,
    /// NSEC3 and NSEC3PARAM.
    ///
    /// The types of NSEC5 are not included. Their numbers are for private use, and a zone may
    /// contain unrelated records with these numbers. Owner and RDATA identify the records of NSEC5.
    #[must_use]
    pub const fn is_signature_or_chain(self) -> bool {
        matches!(self, Self::RRSIG | Self::NSEC | Self::NSEC3 | Self::NSEC3PARAM)
    }

    /// Returns whether the number is for private use (RFC 6895 §3.1). Other programs do not know a
    /// mnemonic for it.
    #[must_use]
    pub const fn is_private_use(self) -> bool {
        matches!(self.0, 65280..=65534)
    }

    /// Returns the type for display in zone files: the mnemonic, or `TYPEn` if the number is for
    /// private use, because other programs do not know the mnemonic.
    #[must_use]
    pub const fn in_zone_text(self) -> ZoneText {
        ZoneText(self)
    }
}

/// Displays a type in the form that [`Rtype::in_zone_text`] describes.
#[derive(Clone, Copy, Debug)]
pub struct ZoneText(Rtype);

impl fmt::Display for ZoneText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_private_use() {
            return f.pad(&format!("TYPE{}", self.0.0));
        }
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Rtype {
    /// Writes the mnemonic, or `TYPEn` (RFC 3597 §5).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entry) = rdata::entry(*self) {
            return f.pad(entry.mnemonic);
        }
        match META_TYPES.iter().find(|(number, _)| *number == self.0) {
            Some((_, mnemonic)) => f.pad(mnemonic),
            None if self.0 == 255 => f.pad("ANY"),
            None => f.pad(&format!("TYPE{}", self.0)),
        }
    }
}

/// Error: the text is neither the mnemonic of a type nor `TYPEn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown type or class (write a mnemonic, TYPEn or CLASSn)")]
pub struct UnknownMnemonic;

impl FromStr for Rtype {
    type Err = UnknownMnemonic;

    fn from_str(text: &str) -> Result<Self, UnknownMnemonic> {
        Self::from_mnemonic(text.as_bytes()).ok_or(UnknownMnemonic)
    }
}

impl Rtype {
    /// Reads a mnemonic in any case, or `TYPEn` (RFC 3597 §5). `*` denotes `ANY`.
    #[must_use]
    pub fn from_mnemonic(text: &[u8]) -> Option<Self> {
        if let Some(entry) = rdata::entry_by_mnemonic(text) {
            return Some(entry.rtype);
        }
        let meta = META_TYPES.iter().find(|(_, mnemonic)| mnemonic.as_bytes().eq_ignore_ascii_case(text));
        if let Some((number, _)) = meta {
            return Some(Self(*number));
        }
        if text.eq_ignore_ascii_case(b"ANY") || text == b"*" {
            return Some(Self::ANY);
        }
        parse_number_after(text, b"TYPE").map(Self)
    }
}

/// Reads `prefix` in any case, followed by a number of 16 bits.
fn parse_number_after(text: &[u8], prefix: &[u8]) -> Option<u16> {
    let (head, digits) = text.split_at_checked(prefix.len())?;
    if !head.eq_ignore_ascii_case(prefix) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A class, as the number in wire form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(pub u16);

impl Class {
    /// Internet.
    pub const IN: Self = Self(1);
    /// Chaos, for the identity of servers (RFC 4892).
    pub const CH: Self = Self(3);
    /// Any class.
    pub const ANY: Self = Self(255);

    /// Reads a mnemonic in any case, or `CLASSn`.
    #[must_use]
    pub fn from_mnemonic(text: &[u8]) -> Option<Self> {
        match text.to_ascii_uppercase().as_slice() {
            b"IN" => Some(Self::IN),
            b"CH" => Some(Self::CH),
            b"HS" => Some(Self(4)),
            b"ANY" => Some(Self::ANY),
            _ => parse_number_after(text, b"CLASS").map(Self),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.pad("IN"),
            3 => f.pad("CH"),
            4 => f.pad("HS"),
            254 => f.pad("NONE"),
            255 => f.pad("ANY"),
            number => f.pad(&format!("CLASS{number}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_and_numbers() {
        assert_eq!("nsec3param".parse(), Ok(Rtype::NSEC3PARAM));
        assert_eq!("TYPE1".parse(), Ok(Rtype::A));
        assert_eq!("type65535".parse(), Ok(Rtype(65535)));
        assert!("TYPE65536".parse::<Rtype>().is_err());
        assert!("TYPE".parse::<Rtype>().is_err());
        assert_eq!(Rtype(65280 - 1).to_string(), "TYPE65279");
        for number in 0..=u16::MAX {
            assert_eq!(Rtype(number).to_string().parse(), Ok(Rtype(number)));
        }
        assert_eq!(Class::from_mnemonic(b"class1"), Some(Class::IN));
        // Numbers for private use have mnemonics in the output, but not in zone files.
        assert_eq!("nsec5key".parse(), Ok(Rtype::NSEC5KEY));
        assert_eq!((Rtype::NSEC5.to_string(), Rtype(65280)), ("NSEC5".to_owned(), Rtype::NSEC5));
        assert_eq!(Rtype::NSEC5.in_zone_text().to_string(), "TYPE65280");
        assert_eq!(Rtype::NSEC3.in_zone_text().to_string(), "NSEC3");
    }
}
