//! Splits XML into tags and text. It reads only the XML that `root-anchors.xml` needs: no document
//! types, no CDATA, no entities.

use super::error::SyntaxFault;

/// Maximum number of attributes of an element.
const MAX_ATTRIBUTES: usize = 16;

/// A piece of an XML text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A start tag, or a tag of an empty element.
    Start { name: &'a str, attributes: Vec<(&'a str, &'a str)>, is_empty: bool },
    /// An end tag.
    End { name: &'a str },
    /// Text between tags.
    Text(&'a str),
}

/// The pieces of an XML text, in order. It skips processing instructions and comments.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    rest: &'a str,
    /// The line of the begin of `rest`, from 1.
    pub(super) line: u32,
}

const END_OF_TAG: SyntaxFault = SyntaxFault::Xml("a tag has no '>'");
const ATTRIBUTE: SyntaxFault = SyntaxFault::Xml("an attribute is not of the form name=\"value\"");

impl<'a> Pieces<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// Takes `length` octets, which must end at a character.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += taken.bytes().filter(|octet| *octet == b'\n').count() as u32;
        taken
    }

    /// Takes the text up to `end`, and `end`. Returns the text.
    fn take_through(&mut self, end: &str) -> Option<&'a str> {
        let length = self.rest.find(end)?;
        let taken = self.take(length);
        self.take(end.len());
        Some(taken)
    }

    /// Takes a name: the text up to a blank or a delimiter.
    fn take_name(&mut self) -> &'a str {
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/' | '>' | '<' | '"' | '\'');
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        self.take(length)
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest.len() - self.rest.trim_ascii_start().len();
        self.take(blanks);
    }

    /// Returns the next piece, or `None` at the end of the text.
    pub(super) fn next(&mut self) -> Result<Option<Piece<'a>>, SyntaxFault> {
        loop {
            if self.rest.is_empty() {
                return Ok(None);
            }
            if !self.rest.starts_with('<') {
                let length = self.rest.find('<').unwrap_or(self.rest.len());
                return Ok(Some(Piece::Text(self.take(length))));
            }
            let skipped = if self.rest.starts_with("<?") {
                self.take_through("?>")
            } else if self.rest.starts_with("<!--") {
                self.take(4);
                self.take_through("-->")
            } else if self.rest.starts_with("<!") {
                return Err(SyntaxFault::XmlDeclaration);
            } else {
                return self.read_tag().map(Some);
            };
            skipped.ok_or(SyntaxFault::Xml("a comment or processing instruction has no end"))?;
        }
    }

    fn read_tag(&mut self) -> Result<Piece<'a>, SyntaxFault> {
        self.take(1);
        if self.rest.starts_with('/') {
            self.take(1);
            let name = self.take_name();
            self.skip_blanks();
            return if self.take(1) == ">" { Ok(Piece::End { name }) } else { Err(END_OF_TAG) };
        }
        let name = self.take_name();
        if name.is_empty() {
            return Err(SyntaxFault::Xml("a tag has no name"));
        }
        let mut attributes = Vec::new();
        loop {
            self.skip_blanks();
            let is_empty = self.rest.starts_with("/>");
            if is_empty || self.rest.starts_with('>') {
                self.take(if is_empty { 2 } else { 1 });
                return Ok(Piece::Start { name, attributes, is_empty });
            }
            if self.rest.is_empty() {
                return Err(END_OF_TAG);
            }
            if attributes.len() == MAX_ATTRIBUTES {
                return Err(SyntaxFault::Xml("an element has too many attributes"));
            }
            attributes.push(self.read_attribute()?);
        }
    }

    fn read_attribute(&mut self) -> Result<(&'a str, &'a str), SyntaxFault> {
        let name = self.take_name();
        self.skip_blanks();
        if name.is_empty() || self.take(1) != "=" {
            return Err(ATTRIBUTE);
        }
        self.skip_blanks();
        let quote @ ("\"" | "'") = self.take(1) else { return Err(ATTRIBUTE) };
        self.take_through(quote).map(|value| (name, value)).ok_or(ATTRIBUTE)
    }
}
