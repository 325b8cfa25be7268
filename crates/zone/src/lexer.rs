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
pub(crate) enum Step {
    /// An entry was read; its tokens are in [`Lexer::tokens`].
    Entry,
    /// The text has no further entry.
    End,
    /// The entry continues beyond the end of this text, and this text is not the last of its file.
    Cut,
}

/// Splits a text into entries and holds the current entry.
///
/// If the entry begins with white space (`begins_blank`), its record has the same owner as the
/// previous record. The text is a whole file, or a block of a file that starts at the start of an
/// entry.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether the end of the text is the end of the file.
    is_last: bool,
    lines: u32,
    /// Line on which the current entry begins, from 1.
    pub(crate) line: u32,
    /// Offset of the first octet of the current entry.
    pub(crate) start: usize,
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) begins_blank: bool,
}

/// Class of an octet outside of quotes.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Blank,
    Newline,
    Comment,
    Open,
    Close,
    Quote,
    Backslash,
}

static KINDS: [Kind; 256] = kinds();

const fn kinds() -> [Kind; 256] {
    let mut kinds = [Kind::Plain; 256];
    kinds[b' ' as usize] = Kind::Blank;
    kinds[b'\t' as usize] = Kind::Blank;
    kinds[b'\r' as usize] = Kind::Blank;
    kinds[b'\n' as usize] = Kind::Newline;
    kinds[b';' as usize] = Kind::Comment;
    kinds[b'(' as usize] = Kind::Open;
    kinds[b')' as usize] = Kind::Close;
    kinds[b'"' as usize] = Kind::Quote;
    kinds[b'\\' as usize] = Kind::Backslash;
    kinds
}

/// Result of the search for the closing quote.
enum Quoted {
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
        Self { text, at: 0, is_last, lines: 1, line: 1, start: 0, tokens, begins_blank: false }
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
        self.lines - 1
    }

    /// Returns the line and the column in octets, both from 1, of the offset `at`.
    pub(crate) fn position(&self, at: usize) -> (u32, u32) {
        let before = &self.text[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|octet| *octet == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|octet| **octet == b'\n').count();
        (line as u32, (before.len() - line_start + 1) as u32)
    }

    /// Moves to the next entry that has tokens.
    pub(crate) fn next_entry(&mut self) -> Result<Step, (LexFault, usize)> {
        loop {
            if self.at >= self.text.len() {
                self.tokens.clear();
                return Ok(Step::End);
            }
            let step = self.read_entry()?;
            if step == Step::Cut || !self.tokens.is_empty() {
                return Ok(step);
            }
        }
    }

    fn read_entry(&mut self) -> Result<Step, (LexFault, usize)> {
        self.tokens.clear();
        self.line = self.lines;
        self.start = self.at;
        self.begins_blank = matches!(self.text.get(self.at), Some(b' ' | b'\t'));
        let mut open: Option<usize> = None;
        while let Some(&octet) = self.text.get(self.at) {
            match KINDS[usize::from(octet)] {
                Kind::Plain | Kind::Backslash => self.read_plain(),
                Kind::Blank => self.at += 1,
                Kind::Newline => {
                    self.at += 1;
                    self.lines += 1;
                    if open.is_none() {
                        return Ok(Step::Entry);
                    }
                }
                Kind::Comment => self.skip_comment(),
                Kind::Open if open.is_some() => return Err((LexFault::NestedParenthesis, self.at)),
                Kind::Open => {
                    open = Some(self.at);
                    self.at += 1;
                }
                Kind::Close if open.is_none() => return Err((LexFault::StrayParenthesis, self.at)),
                Kind::Close => {
                    open = None;
                    self.at += 1;
                }
                Kind::Quote => self.read_quoted()?,
            }
        }
        match open {
            _ if !self.is_last => Ok(Step::Cut),
            Some(at) => Err((LexFault::UnclosedParenthesis, at)),
            None => Ok(Step::Entry),
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|octet| *octet == b'\n').unwrap_or(rest.len());
    }

    fn read_plain(&mut self) {
        let start = self.at;
        loop {
            self.at = skip_plain(self.text, self.at);
            match self.text.get(self.at) {
                // A quoted value may directly follow its key, as in alpn="h2,h3" (RFC 9460 §2.1).
                Some(b'"') if self.at > start && self.text[self.at - 1] == b'=' => {
                    let Quoted::Closed(end) = self.find_quote(self.at + 1) else { break };
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
        let open = self.at;
        match self.find_quote(open + 1) {
            Quoted::Closed(end) => {
                self.count_escaped_newlines(open, end);
                self.tokens.push(Token { octets: &self.text[open + 1..end - 1], quoted: true, at: open });
                self.at = end;
                Ok(())
            }
            Quoted::Cut if !self.is_last => {
                self.at = self.text.len();
                Ok(())
            }
            // A quoted string must end on its line, so the error is reported where the quote is
            // missing.
            Quoted::Cut | Quoted::Open => Err((LexFault::UnclosedQuote, open)),
        }
    }

    fn find_quote(&self, mut at: usize) -> Quoted {
        while let Some(&octet) = self.text.get(at) {
            match octet {
                b'"' => return Quoted::Closed(at + 1),
                b'\n' => return Quoted::Open,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        Quoted::Cut
    }

    /// Counts the newlines in a token. A newline after a backslash belongs to the token, but it
    /// also starts a new line.
    fn count_escaped_newlines(&mut self, from: usize, to: usize) {
        let octets = &self.text[from..to.min(self.text.len())];
        self.lines += octets.iter().filter(|octet| **octet == b'\n').count() as u32;
    }
}

/// Returns the offset of the first octet at or after `at` that is not plain.
fn skip_plain(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let stops = find_stops(u64::from_le_bytes(*word));
        if stops != 0 {
            at += (stops.trailing_zeros() / 8) as usize;
            // `find_stops` also marks control characters, which are plain.
            if !matches!(KINDS[usize::from(text[at])], Kind::Plain) {
                return at;
            }
            at += 1;
            continue;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|octet| matches!(KINDS[usize::from(*octet)], Kind::Plain)) {
        at += 1;
    }
    at
}

/// Marks octets of `word` that may end a token: a blank, a control character, `"`, `(`, `)`, `;` or
/// `\`. The mark is the highest bit of the octet. Only the lowest mark is exact; octets above it
/// may be marked wrongly.
const fn find_stops(word: u64) -> u64 {
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
