//! Splits text in zone file form into entries (RFC 1035 §5.1), with the line and the comments of each.

use super::error::{AnchorFileError, SyntaxFault};
use nonesuch_proto::text::Token;

/// One entry: a line, or several lines with parentheses. An empty line is an entry without tokens.
#[derive(Debug, Default)]
pub(super) struct Entry<'a> {
    /// The first line, from 1.
    pub(super) line: u32,
    /// Whether the first token is at the begin of the line.
    pub(super) has_owner: bool,
    pub(super) tokens: Vec<Token<'a>>,
    /// The comments, each from its semicolon to the end of the line.
    pub(super) comments: Vec<&'a [u8]>,
}

/// The entries of a text, in order.
#[derive(Debug)]
pub(super) struct Entries<'a> {
    text: &'a [u8],
    /// Offset of the next octet.
    at: usize,
    /// The line of this octet, from 1.
    line: u32,
}

impl<'a> Entries<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Takes octets up to the first that `is_end` selects.
    fn take_until(&mut self, is_end: fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|octet| is_end(*octet)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Takes a token. A backslash makes the next octet part of the token.
    fn take_token(&mut self) -> Token<'a> {
        let at = self.at;
        while let Some(&octet) = self.text.get(self.at) {
            match octet {
                b'\\' if self.text.get(self.at + 1).is_some_and(|next| *next != b'\n') => self.at += 2,
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' => break,
                _ => self.at += 1,
            }
        }
        Token { octets: &self.text[at..self.at], quoted: false, at }
    }

    fn read_entry(&mut self) -> Result<Entry<'a>, AnchorFileError> {
        let starts_with_blank = matches!(self.text.get(self.at), Some(b' ' | b'\t'));
        let mut entry = Entry { line: self.line, has_owner: !starts_with_blank, ..Entry::default() };
        let mut is_open = false;
        let fault = |line, fault| Err(AnchorFileError::Syntax { line, fault });
        while let Some(&octet) = self.text.get(self.at) {
            match octet {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                    if !is_open {
                        return Ok(entry);
                    }
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b';' => entry.comments.push(self.take_until(|octet| octet == b'\n')),
                b'(' if is_open => return fault(self.line, SyntaxFault::OpenParenthesis),
                b')' if !is_open => return fault(self.line, SyntaxFault::ClosingParenthesis),
                b'(' | b')' => {
                    is_open = octet == b'(';
                    self.at += 1;
                }
                _ => entry.tokens.push(self.take_token()),
            }
        }
        if is_open { fault(entry.line, SyntaxFault::OpenParenthesis) } else { Ok(entry) }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, AnchorFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.at < self.text.len()).then(|| self.read_entry())
    }
}
