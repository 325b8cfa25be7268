//! Trust anchors in the XML form of IANA, `root-anchors.xml` (RFC 9718 §2).

use super::check::check;
use super::error::{AnchorFileError, RecordFault, SyntaxFault};
use super::xml::{Piece, Pieces};
use super::{MAX_FILE_RECORDS, TrustAnchors};
use nonesuch_proto::text::Token;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, NameRef, Rtype, rdata};

/// The elements of `KeyDigest` that form a DS record, in the order of its fields.
const FIELDS: [&str; 4] = ["KeyTag", "Algorithm", "DigestType", "Digest"];
/// Maximum depth of elements.
const MAX_DEPTH: usize = 16;

/// One element `KeyDigest`.
#[derive(Debug, Default)]
struct KeyDigest {
    line: u32,
    /// The texts of the elements [`FIELDS`].
    fields: [Option<String>; FIELDS.len()],
    valid_from: Option<u64>,
    valid_until: Option<u64>,
}

/// The contents of the file.
#[derive(Debug, Default)]
struct Document {
    zone: Option<String>,
    digests: Vec<KeyDigest>,
}

/// Reads the XML form. With `now`, digests that are not valid at this time are skipped.
pub(super) fn read(text: &str, now: Option<u64>) -> Result<TrustAnchors, AnchorFileError> {
    let mut pieces = Pieces::new(text);
    let document =
        read_document(&mut pieces).map_err(|fault| AnchorFileError::Syntax { line: pieces.line, fault })?;
    let last_line = |fault| AnchorFileError::Syntax { line: pieces.line, fault };
    let zone = document.zone.ok_or_else(|| last_line(missing("TrustAnchor", "Zone")))?;
    let zone = Name::from_text(zone.trim_ascii().as_bytes(), Some(NameRef::ROOT))
        .map_err(|fault| last_line(SyntaxFault::Zone(fault)))?;
    let (mut anchors, records) = (TrustAnchors::default(), document.digests.len());
    for digest in document.digests {
        let (line, rdata) = (digest.line, digest.rdata()?);
        let record = rdata.and_then(|rdata| check(Rtype::DS, rdata)).map_err(|fault| {
            AnchorFileError::Record { line, owner: zone.clone(), rtype: Rtype::DS, fault }
        })?;
        if now.is_none_or(|now| digest.is_valid(now)) {
            anchors.insert(zone.view(), record);
        }
    }
    match records {
        0 => Err(AnchorFileError::NoRecord),
        _ if anchors.is_empty() => Err(AnchorFileError::NoAnchor { records }),
        _ => Ok(anchors),
    }
}

const fn missing(parent: &'static str, element: &'static str) -> SyntaxFault {
    SyntaxFault::MissingElement { parent, element }
}

impl KeyDigest {
    fn begin(line: u32, attributes: &[(&str, &str)]) -> Result<Self, SyntaxFault> {
        let time = |attribute: &'static str| match attributes.iter().find(|(name, _)| *name == attribute) {
            None => Ok(None),
            Some((_, value)) => match Rfc3339::parse(value.trim_ascii().as_bytes()) {
                Some(time) => Ok(Some(time.0)),
                None => Err(SyntaxFault::Time(attribute)),
            },
        };
        let (valid_from, valid_until) = (time("validFrom")?, time("validUntil")?);
        Ok(Self { line, valid_from, valid_until, ..Self::default() })
    }

    fn is_valid(&self, now: u64) -> bool {
        self.valid_from.is_none_or(|from| from <= now) && self.valid_until.is_none_or(|until| now <= until)
    }

    /// Returns the RDATA of the DS record. The outer error is a missing element.
    fn rdata(&self) -> Result<Result<Vec<u8>, RecordFault>, AnchorFileError> {
        let mut tokens = Vec::new();
        for (name, text) in FIELDS.into_iter().zip(&self.fields) {
            let fault = missing("KeyDigest", name);
            let text = text.as_ref().ok_or(AnchorFileError::Syntax { line: self.line, fault })?;
            let words = text.split_ascii_whitespace();
            tokens.extend(words.map(|word| Token { octets: word.as_bytes(), quoted: false, at: 0 }));
        }
        let mut octets = Vec::new();
        let outcome = rdata::push_from_tokens(Rtype::DS, &tokens, None, &mut octets);
        Ok(outcome.map(|()| octets).map_err(|error| RecordFault::Rdata(error.fault)))
    }
}

fn read_document(pieces: &mut Pieces<'_>) -> Result<Document, SyntaxFault> {
    let mut document = Document::default();
    let mut path: Vec<&str> = Vec::new();
    let mut has_root = false;
    while let Some(piece) = pieces.next()? {
        match piece {
            Piece::Start { name, attributes, is_empty } => {
                if path.is_empty() && (has_root || name != "TrustAnchor") {
                    return Err(SyntaxFault::XmlRoot);
                }
                if path.len() == MAX_DEPTH {
                    return Err(SyntaxFault::Xml("the elements are nested too deeply"));
                }
                has_root = true;
                path.push(name);
                document.start(&path, pieces.line, &attributes)?;
                if is_empty {
                    path.pop();
                }
            }
            Piece::End { name } if path.last() == Some(&name) => drop(path.pop()),
            Piece::End { .. } => return Err(SyntaxFault::Xml("an end tag has no start tag")),
            Piece::Text(text) => document.add_text(&path, text)?,
        }
    }
    if path.is_empty() { Ok(document) } else { Err(SyntaxFault::Xml("an element has no end tag")) }
}

impl Document {
    fn start(&mut self, path: &[&str], line: u32, attributes: &[(&str, &str)]) -> Result<(), SyntaxFault> {
        if *path == ["TrustAnchor", "KeyDigest"] {
            if self.digests.len() == MAX_FILE_RECORDS {
                return Err(SyntaxFault::Xml("too many elements <KeyDigest>"));
            }
            self.digests.push(KeyDigest::begin(line, attributes)?);
        }
        match self.text_of(path) {
            Some((name, Some(_))) => Err(SyntaxFault::SecondElement(name)),
            Some((_, text)) => {
                *text = Some(String::new());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn add_text(&mut self, path: &[&str], more: &str) -> Result<(), SyntaxFault> {
        match self.text_of(path) {
            Some(_) if more.contains('&') => Err(SyntaxFault::Xml("entities (&...;) are not supported")),
            Some((_, Some(text))) => {
                text.push_str(more);
                Ok(())
            }
            _ if path.is_empty() && !more.trim_ascii().is_empty() => Err(SyntaxFault::XmlRoot),
            _ => Ok(()),
        }
    }

    /// Returns the name of the element at `path` and the place for its text, if its text is read.
    fn text_of(&mut self, path: &[&str]) -> Option<(&'static str, &mut Option<String>)> {
        match path {
            ["TrustAnchor", "Zone"] => Some(("Zone", &mut self.zone)),
            ["TrustAnchor", "KeyDigest", field] => {
                let index = FIELDS.iter().position(|name| name == field)?;
                let digest = self.digests.last_mut()?;
                Some((FIELDS[index], &mut digest.fields[index]))
            }
            _ => None,
        }
    }
}
