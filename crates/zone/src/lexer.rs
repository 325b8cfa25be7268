//! Splits a zone file into entries of tokens (RFC 1035 §5.1): comments, parentheses, quotes.

use nonesuch_proto::text::Token;

/// Why an entry cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexFault {
    UnclosedQuote,
    UnclosedParenthesis,
    StrayParenthesis,
    NestedParenthesis,
}

/// One entry: its tokens, and whether it began with white space (so that the last owner is meant).
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    lines: u32,
    /// Line on which the current entry begins, from 1.
    pub(crate) line: u32,
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) begins_blank: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        // A byte order mark is not part of the first owner name.
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { text, at, lines: 1, line: 1, tokens: Vec::with_capacity(32), begins_blank: false }
    }

    /// Line and column, from 1, of an offset.
    pub(crate) fn position(&self, at: usize) -> (u32, u32) {
        let before = &self.text[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|octet| *octet == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|octet| **octet == b'\n').count();
        (line as u32, (before.len() - line_start + 1) as u32)
    }

    /// Moves to the next entry that has tokens; `false` at the end of the text.
    pub(crate) fn next_entry(&mut self) -> Result<bool, (LexFault, usize)> {
        loop {
            if self.at >= self.text.len() {
                self.tokens.clear();
                return Ok(false);
            }
            self.read_entry()?;
            if !self.tokens.is_empty() {
                return Ok(true);
            }
        }
    }

    fn read_entry(&mut self) -> Result<(), (LexFault, usize)> {
        self.tokens.clear();
        self.line = self.lines;
        self.begins_blank = matches!(self.text.get(self.at), Some(b' ' | b'\t'));
        let mut open: Option<usize> = None;
        while let Some(&octet) = self.text.get(self.at) {
            match octet {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.lines += 1;
                    if open.is_none() {
                        return Ok(());
                    }
                }
                b';' => self.skip_comment(),
                b'(' if open.is_some() => return Err((LexFault::NestedParenthesis, self.at)),
                b'(' => {
                    open = Some(self.at);
                    self.at += 1;
                }
                b')' if open.is_none() => return Err((LexFault::StrayParenthesis, self.at)),
                b')' => {
                    open = None;
                    self.at += 1;
                }
                b'"' => self.read_quoted()?,
                _ => self.read_plain(),
            }
        }
        open.map_or(Ok(()), |at| Err((LexFault::UnclosedParenthesis, at)))
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|octet| *octet == b'\n').unwrap_or(rest.len());
    }

    fn read_plain(&mut self) {
        let start = self.at;
        while let Some(&octet) = self.text.get(self.at) {
            match octet {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' => break,
                // A quoted value may follow directly on its key, as in alpn="h2,h3" (RFC 9460 §2.1).
                b'"' if self.at > start && self.text[self.at - 1] == b'=' => {
                    if !self.skip_quoted_tail() {
                        break;
                    }
                }
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.text.len());
        self.tokens.push(Token { octets: &self.text[start..self.at], quoted: false, at: start });
    }

    /// Moves behind a quoted string that begins here; `false` where it is not closed.
    fn skip_quoted_tail(&mut self) -> bool {
        let mut at = self.at + 1;
        while let Some(&octet) = self.text.get(at) {
            match octet {
                b'"' => {
                    self.at = at + 1;
                    return true;
                }
                b'\n' => return false,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        false
    }

    fn read_quoted(&mut self) -> Result<(), (LexFault, usize)> {
        let open = self.at;
        let mut at = open + 1;
        while let Some(&octet) = self.text.get(at) {
            match octet {
                b'"' => {
                    self.tokens.push(Token { octets: &self.text[open + 1..at], quoted: true, at: open });
                    self.at = at + 1;
                    return Ok(());
                }
                // A quoted string may not run over the end of its line: a missing quote is found where it is missing.
                b'\n' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        Err((LexFault::UnclosedQuote, open))
    }
}
