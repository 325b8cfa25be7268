//! Lexer for zone file text (RFC 1035 §5.1): splits it into entries of tokens and handles comments,
//! parentheses and quoted strings.

use nonesuch_proto::text::Token;

/// Error in the structure of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexFault {
    UnclosedQuote,
    UnclosedParenthesis,
    StrayParenthesis,
    NestedParenthesis,
}

/// Result of [`Lexer::next_entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexerStep {
    /// An entry was read; its tokens are in [`Lexer::tokens`].
    Entry,
    /// The text has no further entry.
    End,
    /// The entry continues beyond the end of this text, and this text is not the last of its file.
    Cut,
}

/// Splits a text into entries and holds the current entry. The text is a whole file, or a block of
/// a file that begins with an entry.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    /// Offset of the next octet to read.
    at: usize,
    /// Whether the end of the text is the end of the file.
    is_last: bool,
    /// Line of the next octet to read, from 1.
    current_line: u32,
    /// Line on which the current entry begins, from 1.
    pub(crate) line: u32,
    /// Offset of the first octet of the current entry.
    pub(crate) start: usize,
    /// The tokens of the current entry.
    pub(crate) tokens: Vec<Token<'a>>,
    /// Whether the current entry begins with white space. Its record then has the owner of the
    /// previous record.
    pub(crate) begins_blank: bool,
}

/// Meaning of an octet outside of quotes.
#[derive(Clone, Copy)]
enum OctetKind {
    Plain,
    Blank,
    Newline,
    Comment,
    Open,
    Close,
    Quote,
    Backslash,
}

static OCTET_KINDS: [OctetKind; 256] = octet_kinds();

const fn octet_kinds() -> [OctetKind; 256] {
    let mut octet_kinds = [OctetKind::Plain; 256];
    octet_kinds[b' ' as usize] = OctetKind::Blank;
    octet_kinds[b'\t' as usize] = OctetKind::Blank;
    octet_kinds[b'\r' as usize] = OctetKind::Blank;
    octet_kinds[b'\n' as usize] = OctetKind::Newline;
    octet_kinds[b';' as usize] = OctetKind::Comment;
    octet_kinds[b'(' as usize] = OctetKind::Open;
    octet_kinds[b')' as usize] = OctetKind::Close;
    octet_kinds[b'"' as usize] = OctetKind::Quote;
    octet_kinds[b'\\' as usize] = OctetKind::Backslash;
    octet_kinds
}

/// Result of the search for the closing quote.
enum QuoteEnd {
    /// The closing quote was found; the value is the offset directly after it.
    Closed(usize),
    /// The line ends before a closing quote.
    Open,
    /// The text ends before a closing quote.
    Cut,
}

impl<'a> Lexer<'a> {
    /// Creates a lexer for `text`. `is_last` states that the end of `text` is the end of its file.
    pub(crate) fn new(text: &'a [u8], is_last: bool) -> Self {
        let tokens = Vec::with_capacity(32);
        Self { text, at: 0, is_last, current_line: 1, line: 1, start: 0, tokens, begins_blank: false }
    }

    /// Skips a byte order mark, which would otherwise become part of the first owner name. Call
    /// this only at the start of a file.
    pub(crate) fn skip_byte_order_mark(&mut self) {
        if self.text.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
    }

    /// Number of newlines before the current position.
    pub(crate) const fn lines(&self) -> u32 {
        self.current_line - 1
    }

    /// Returns the line and the column in octets, both from 1, of the offset `at`.
    pub(crate) fn position(&self, at: usize) -> (u32, u32) {
        let before = &self.text[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|octet| *octet == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|octet| **octet == b'\n').count();
        (line as u32, (before.len() - line_start + 1) as u32)
    }

    /// Moves to the next entry that has tokens.
    ///
    /// # Errors
    /// The fault, and the offset of the octet that causes it.
    pub(crate) fn next_entry(&mut self) -> Result<LexerStep, (LexFault, usize)> {
        loop {
            if self.at >= self.text.len() {
                self.tokens.clear();
                return Ok(LexerStep::End);
            }
            let step = self.read_entry()?;
            if step == LexerStep::Cut || !self.tokens.is_empty() {
                return Ok(step);
            }
        }
    }

    fn read_entry(&mut self) -> Result<LexerStep, (LexFault, usize)> {
        self.tokens.clear();
        self.line = self.current_line;
        self.start = self.at;
        self.begins_blank = matches!(self.text.get(self.at), Some(b' ' | b'\t'));
        let mut open_parenthesis: Option<usize> = None;
        while let Some(&octet) = self.text.get(self.at) {
            match OCTET_KINDS[usize::from(octet)] {
                OctetKind::Plain | OctetKind::Backslash => self.read_unquoted(),
                OctetKind::Blank => self.at += 1,
                OctetKind::Newline => {
                    self.at += 1;
                    self.current_line += 1;
                    if open_parenthesis.is_none() {
                        return Ok(LexerStep::Entry);
                    }
                }
                OctetKind::Comment => self.skip_comment(),
                OctetKind::Open if open_parenthesis.is_some() => {
                    return Err((LexFault::NestedParenthesis, self.at));
                }
                OctetKind::Open => {
                    open_parenthesis = Some(self.at);
                    self.at += 1;
                }
                OctetKind::Close if open_parenthesis.is_none() => {
                    return Err((LexFault::StrayParenthesis, self.at));
                }
                OctetKind::Close => {
                    open_parenthesis = None;
                    self.at += 1;
                }
                OctetKind::Quote => self.read_quoted()?,
            }
        }
        match open_parenthesis {
            _ if !self.is_last => Ok(LexerStep::Cut),
            Some(at) => Err((LexFault::UnclosedParenthesis, at)),
            None => Ok(LexerStep::Entry),
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|octet| *octet == b'\n').unwrap_or(rest.len());
    }

    /// Reads a token that does not begin with a quote.
    fn read_unquoted(&mut self) {
        let start = self.at;
        loop {
            self.at = skip_plain(self.text, self.at);
            match self.text.get(self.at) {
                // A quoted value may directly follow its key, as in alpn="h2,h3" (RFC 9460 §2.1).
                Some(b'"') if self.at > start && self.text[self.at - 1] == b'=' => {
                    let QuoteEnd::Closed(end) = self.find_quote_end(self.at + 1) else { break };
                    self.count_escaped_newlines(self.at, end);
                    self.at = end;
                }
                Some(b'\\') => {
                    self.count_escaped_newlines(self.at, self.at + 2);
                    self.at += 2;
                }
                _ => break,
            }
        }
        self.at = self.at.min(self.text.len());
        self.tokens.push(Token { octets: &self.text[start..self.at], quoted: false, at: start });
    }

    fn read_quoted(&mut self) -> Result<(), (LexFault, usize)> {
        let start = self.at;
        match self.find_quote_end(start + 1) {
            QuoteEnd::Closed(end) => {
                self.count_escaped_newlines(start, end);
                self.tokens.push(Token { octets: &self.text[start + 1..end - 1], quoted: true, at: start });
                self.at = end;
                Ok(())
            }
            QuoteEnd::Cut if !self.is_last => {
                self.at = self.text.len();
                Ok(())
            }
            // A quoted string must end on its line, so the error has the offset of its opening
            // quote.
            QuoteEnd::Cut | QuoteEnd::Open => Err((LexFault::UnclosedQuote, start)),
        }
    }

    fn find_quote_end(&self, mut at: usize) -> QuoteEnd {
        while let Some(&octet) = self.text.get(at) {
            match octet {
                b'"' => return QuoteEnd::Closed(at + 1),
                b'\n' => return QuoteEnd::Open,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        QuoteEnd::Cut
    }

    /// Counts the newlines in a token. A newline after a backslash belongs to the token, but it
    /// also starts a new line.
    fn count_escaped_newlines(&mut self, from: usize, to: usize) {
        let octets = &self.text[from..to.min(self.text.len())];
        self.current_line += octets.iter().filter(|octet| **octet == b'\n').count() as u32;
    }
}

/// Returns the offset of the first octet at or after `at` that is not plain.
fn skip_plain(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let marks = mark_stops(u64::from_le_bytes(*word));
        if marks != 0 {
            at += (marks.trailing_zeros() / 8) as usize;
            // `mark_stops` also marks control characters, which are plain.
            if !matches!(OCTET_KINDS[usize::from(text[at])], OctetKind::Plain) {
                return at;
            }
            at += 1;
            continue;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|octet| matches!(OCTET_KINDS[usize::from(*octet)], OctetKind::Plain)) {
        at += 1;
    }
    at
}

/// Marks octets of `word` that may end a token: a blank, a control character, `"`, `(`, `)`, `;` or
/// `\`. The mark is the highest bit of the octet. Only the lowest mark is exact; octets above it
/// may be marked wrongly.
const fn mark_stops(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    let blanks = word.wrapping_sub(ONES * 0x21) & !word;
    let parentheses = zeros((word | ONES) ^ (ONES * b')' as u64));
    let others = zeros(word ^ (ONES * b'"' as u64))
        | zeros(word ^ (ONES * b';' as u64))
        | zeros(word ^ (ONES * b'\\' as u64));
    (blanks | parentheses | others) & HIGH
}
