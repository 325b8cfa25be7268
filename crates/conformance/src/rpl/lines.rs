//! Lines of a scenario file, and the tokens of a line.

use super::error::RplFault;
use nonesuch_proto::text::Token;
use std::net::{IpAddr, SocketAddr};

/// Port of DNS servers.
const DNS_PORT: u16 = 53;

/// The lines of a file that are neither empty nor a comment.
#[derive(Clone, Debug)]
pub(super) struct Lines<'t> {
    rest: std::iter::Enumerate<std::str::Lines<'t>>,
    /// Number of the line that was returned last, from 1.
    pub(super) number: u32,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text.lines().enumerate(), number: 0 }
    }

    /// Returns the next line with its comments, without white space around it.
    pub(super) fn next_any(&mut self) -> Option<&'t str> {
        let (index, line) = self.rest.next()?;
        self.number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        Some(line.trim())
    }

    /// Returns the next line that is neither empty nor a comment.
    pub(super) fn next_line(&mut self) -> Option<&'t str> {
        loop {
            let line = self.next_any()?;
            if !line.is_empty() && !line.starts_with([';', '#']) {
                return Some(line);
            }
        }
    }

    /// Skips all lines until the one that begins with `keyword`.
    pub(super) fn skip_until(&mut self, keyword: &'static str) -> Result<(), RplFault> {
        while let Some(line) = self.next_any() {
            if line.split_whitespace().next() == Some(keyword) {
                return Ok(());
            }
        }
        Err(RplFault::Missing(keyword))
    }
}

/// Returns the words of a line after its keyword, without a comment.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    without_comment(line).split_whitespace()
}

/// Returns the part of a line before a comment. The line has no quoted strings.
pub(super) fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or(line).trim()
}

/// Splits a record into tokens, as a zone file reader does. Parentheses are ignored: a record of a
/// scenario is one line.
pub(super) fn tokens(line: &str) -> Result<Vec<Token<'_>>, RplFault> {
    let text = line.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&octet) = text.get(at) {
        match octet {
            b';' => break,
            b'"' => {
                let end = quote_end(text, at + 1)?;
                tokens.push(Token { octets: &text[at + 1..end], quoted: true, at });
                at = end + 1;
            }
            _ if is_separator(octet) => at += 1,
            _ => {
                let start = at;
                at = token_end(text, start)?;
                tokens.push(Token { octets: &text[start..at], quoted: false, at: start });
            }
        }
    }
    Ok(tokens)
}

const fn is_separator(octet: u8) -> bool {
    octet.is_ascii_whitespace() || matches!(octet, b'(' | b')')
}

/// Returns the offset of the quotation mark that closes a string whose text begins at `at`.
fn quote_end(text: &[u8], mut at: usize) -> Result<usize, RplFault> {
    loop {
        match text.get(at) {
            Some(b'"') => return Ok(at),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return Err(RplFault::UnclosedQuote),
        }
    }
}

/// Returns the offset after the token that begins at `start` without a quotation mark.
fn token_end(text: &[u8], start: usize) -> Result<usize, RplFault> {
    let mut at = start;
    while let Some(&octet) = text.get(at) {
        match octet {
            // A quoted value may directly follow its key, as in alpn="h2,h3" (RFC 9460 §2.1).
            b'"' if text[at - 1] == b'=' => at = quote_end(text, at + 1)? + 1,
            b'\\' => at += 2,
            b';' | b'"' => break,
            _ if is_separator(octet) => break,
            _ => at += 1,
        }
    }
    Ok(at.min(text.len()))
}

/// Reads a number.
pub(super) fn number(word: Option<&str>) -> Result<u32, RplFault> {
    let word = word.unwrap_or_default();
    word.parse().map_err(|_| RplFault::Value { expected: "a number", found: word.to_owned() })
}

/// Reads an address with an optional port, `ADDRESS` or `ADDRESS@PORT`.
pub(super) fn address(word: Option<&str>) -> Result<SocketAddr, RplFault> {
    let word = word.unwrap_or_default();
    let (address, port) = word.split_once('@').unwrap_or((word, ""));
    let port = if port.is_empty() { Some(DNS_PORT) } else { port.parse().ok() };
    match (address.parse::<IpAddr>(), port) {
        (Ok(address), Some(port)) => Ok(SocketAddr::new(address, port)),
        _ => Err(RplFault::Value { expected: "an address", found: word.to_owned() }),
    }
}
