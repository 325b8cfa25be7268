//! Input for reading RDATA from tokens, and the faults that RDATA in presentation form can have.

use crate::text::{Token, parse_u32, push_unescaped};
use crate::{NameError, NameRef};
use std::borrow::Cow;

/// A fault of RDATA in presentation form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RdataFault {
    /// The entry ends before the last field.
    #[error("a field is missing")]
    Missing,
    /// Tokens follow the last field.
    #[error("too many fields for this type")]
    TrailingToken,
    /// A number is malformed or too large.
    #[error("expected a number of at most {0} bits")]
    Number(u8),
    /// A time is malformed.
    #[error("expected a time (YYYYMMDDHHmmSS or seconds)")]
    Time,
    /// A duration is malformed.
    #[error("expected a number of seconds (units s, m, h, d, w are allowed)")]
    Duration,
    /// An address is malformed.
    #[error("expected an {0} address")]
    Address(&'static str),
    /// A character string has more than 255 octets or a bad escape.
    #[error("expected a character string of at most 255 octets with valid escapes")]
    Text,
    /// Base64, base32hex or hexadecimal digits are malformed.
    #[error("malformed {0}")]
    Encoding(&'static str),
    /// A type mnemonic is unknown.
    #[error("expected a type mnemonic or TYPEn")]
    Type,
    /// A type has no bit in the bit map of NXT (RFC 2535 §5.2).
    #[error("this type cannot be in an NXT bit map (1 to 127)")]
    NxtType,
    /// An algorithm or certificate mnemonic is unknown, or its number is too large.
    #[error("expected a mnemonic or a number of at most {0} bits")]
    MnemonicOrNumber(u8),
    /// A domain name is malformed.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The length in the generic form does not match, or the octets are malformed for the type (RFC
    /// 3597 §5).
    #[error("malformed generic RDATA (write \\# LENGTH HEX)")]
    Generic,
    /// The type has no presentation form other than the generic one.
    #[error("this type has no presentation form (write \\# LENGTH HEX)")]
    NeedsGeneric,
    /// A field that only a few types have is malformed. The text names it, with the expected form
    /// where useful, for example `gateway type (write 0, 1, 2 or 3)`.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The RDATA has more than 65,535 octets.
    #[error("the RDATA has more than 65535 octets")]
    TooLong,
}

/// A fault and the token that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct RdataError {
    /// The fault.
    pub fault: RdataFault,
    /// Index of the token; one past the last if a token is missing.
    pub token: usize,
}

/// The tokens of one RDATA, read from left to right.
pub(super) struct Input<'a, 't> {
    pub(super) tokens: &'t [Token<'a>],
    /// Index of the next token. A fault other than [`RdataFault::Missing`] is reported for the token
    /// before it, so take a token before you reject it.
    pub(super) next: usize,
    /// Completes relative names; `None` if relative names are errors.
    pub(super) origin: Option<NameRef<'t>>,
}

impl<'a> Input<'a, '_> {
    /// Takes the next token.
    pub(super) fn take(&mut self) -> Result<Token<'a>, RdataFault> {
        let token = self.tokens.get(self.next).ok_or(RdataFault::Missing)?;
        self.next += 1;
        Ok(*token)
    }

    pub(super) fn take_optional(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.next)?;
        self.next += 1;
        Some(*token)
    }

    /// Takes the next token if it exists and `accept` returns true for it.
    pub(super) fn take_if(&mut self, accept: impl Fn(&Token<'_>) -> bool) -> Option<Token<'a>> {
        self.tokens.get(self.next).filter(|token| accept(token))?;
        self.take_optional()
    }

    /// Takes a decimal number of at most `bits` bits.
    pub(super) fn take_number(&mut self, bits: u8) -> Result<u32, RdataFault> {
        let value = parse_u32(self.take()?.octets).ok_or(RdataFault::Number(bits))?;
        if u64::from(value) >> bits != 0 { Err(RdataFault::Number(bits)) } else { Ok(value) }
    }

    /// Takes all remaining tokens, concatenated: base64 and hexadecimal digits may contain white
    /// space.
    pub(super) fn take_joined(&mut self) -> Cow<'a, [u8]> {
        let rest = self.tokens.get(self.next..).unwrap_or_default();
        self.next = self.tokens.len();
        match rest {
            [] => Cow::Borrowed(&[]),
            [token] => Cow::Borrowed(token.octets),
            tokens => tokens.iter().flat_map(|token| token.octets).copied().collect(),
        }
    }
}

pub(super) fn push_ipv4(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let address = parse_address::<std::net::Ipv4Addr>(text).ok_or(RdataFault::Address("IPv4"))?;
    out.extend_from_slice(&address.octets());
    Ok(())
}

pub(super) fn push_ipv6(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let address = parse_address::<std::net::Ipv6Addr>(text).ok_or(RdataFault::Address("IPv6"))?;
    out.extend_from_slice(&address.octets());
    Ok(())
}

/// Parses an address with the standard library.
fn parse_address<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

pub(super) fn push_character_string(text: &[u8], out: &mut Vec<u8>) -> Result<(), RdataFault> {
    let length_at = out.len();
    out.push(0);
    push_unescaped(text, out).ok_or(RdataFault::Text)?;
    out[length_at] = u8::try_from(out.len() - length_at - 1).map_err(|_| RdataFault::Text)?;
    Ok(())
}
