//! Reading zone files (RFC 1035 §5, RFC 2308 §4 for $TTL, RFC 3597 §5 for unknown types).

use crate::builder::{Builder, Place, Warning, ZoneFault};
use crate::contents::Contents;
use crate::lexer::{LexFault, Lexer};
use nonesuch_proto::rdata::{self, RdataFault};
use nonesuch_proto::text::parse_ttl;
use nonesuch_proto::{Class, Name, NameError, NameRef, Rtype};
use std::path::{Path, PathBuf};

/// Deepest nesting of $INCLUDE.
const MAX_INCLUDE: usize = 10;

/// What is wrong with a zone file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// A quote is not closed on its line.
    #[error("a double quote is not closed on its line")]
    UnclosedQuote,
    /// A parenthesis is not closed.
    #[error("a parenthesis is not closed: the file ends inside an entry")]
    UnclosedParenthesis,
    /// A closing parenthesis without an opening one.
    #[error("a closing parenthesis without an opening one")]
    StrayParenthesis,
    /// A parenthesis inside parentheses.
    #[error("parentheses do not nest")]
    NestedParenthesis,
    /// The first record has no owner.
    #[error("the first record has no owner name")]
    NoOwner,
    /// An owner name is malformed.
    #[error("bad owner name: {0}")]
    Owner(NameError),
    /// Neither the record nor anything before it says a TTL.
    #[error("no TTL: give one in the record or with $TTL")]
    NoTtl,
    /// The type is missing.
    #[error("the record ends before its type")]
    NoType,
    /// A token is neither TTL, class nor type.
    #[error("'{0}' is no TTL, class or type (unknown types are written TYPEn)")]
    UnknownToken(String),
    /// The class is not IN.
    #[error("class {0} is not served here: zones are of class IN")]
    Class(Class),
    /// A meta type or query type stands as data.
    #[error("{0} is a query or meta type and cannot be data in a zone")]
    MetaType(Rtype),
    /// RDATA is malformed.
    #[error("{rtype}: {fault}")]
    Rdata {
        /// The record's type.
        rtype: Rtype,
        /// What is wrong.
        fault: RdataFault,
    },
    /// A directive is malformed.
    #[error("malformed {0} directive")]
    Directive(&'static str),
    /// A directive is unknown.
    #[error("unknown directive {0} (known: $ORIGIN, $TTL, $INCLUDE)")]
    UnknownDirective(String),
    /// Included files nest too deeply.
    #[error("$INCLUDE nests deeper than 10 files: does a file include itself?")]
    IncludeDepth,
    /// The records are no zone.
    #[error("{0}")]
    Zone(ZoneFault),
}

/// A fault with file, line and column; line and column are 0 where the fault is the whole file's.
#[derive(Debug)]
pub struct ReadError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u32,
    /// Column in octets, from 1.
    pub column: u32,
    /// What is wrong.
    pub fault: ReadFault,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}: {}", self.file.display(), self.fault),
            (line, 0) => write!(f, "{}:{line}: {}", self.file.display(), self.fault),
            (line, column) => write!(f, "{}:{line}:{column}: {}", self.file.display(), self.fault),
        }
    }
}

impl std::error::Error for ReadError {}

/// What a zone file holds.
#[derive(Debug)]
pub struct Reading {
    /// The records.
    pub contents: Contents,
    /// What is odd about them.
    pub warnings: Vec<Warning>,
}

/// Reads the zone file at `path`. `origin` is the apex and the first $ORIGIN; without it the file must say
/// it with $ORIGIN or absolute names, and the SOA record's owner is the apex.
pub fn read_file(path: &Path, origin: Option<&Name>) -> Result<Reading, ReadError> {
    let at_file = |fault| ReadError { file: path.to_path_buf(), line: 0, column: 0, fault };
    let text = std::fs::read(path).map_err(|error| at_file(ReadFault::Io(error)))?;
    read_text(&text, path, origin)
}

/// Reads records that need not be a zone, as DS and DNSKEY records in a file of trust anchors; a TTL may be
/// missing. Returns owner, type and RDATA in the order of the file.
pub fn read_records(
    text: &[u8],
    path: &Path,
    origin: &Name,
) -> Result<Vec<(Name, Rtype, Vec<u8>)>, ReadError> {
    let mut reader = Reader {
        builder: Builder::with_capacity_for(text.len()),
        files: vec![path.to_path_buf()],
        default_ttl: None,
        last_ttl: Some(0),
    };
    reader.read(text, 0, 0, Some(origin.clone()))?;
    Ok(reader.builder.into_records())
}

/// Reads a zone file's `text`; `path` is used in errors and to find included files.
pub fn read_text(text: &[u8], path: &Path, origin: Option<&Name>) -> Result<Reading, ReadError> {
    let mut reader = Reader {
        builder: Builder::with_capacity_for(text.len()),
        files: vec![path.to_path_buf()],
        default_ttl: None,
        last_ttl: None,
    };
    reader.read(text, 0, 0, origin.cloned())?;
    let Reader { builder, files, .. } = reader;
    match builder.finish(origin) {
        Ok((contents, warnings)) => Ok(Reading { contents, warnings }),
        Err(error) => Err(ReadError {
            file: files[usize::from(error.place.file)].clone(),
            line: error.place.line,
            column: u32::from(error.place.line > 0),
            fault: ReadFault::Zone(error.fault),
        }),
    }
}

struct Reader {
    builder: Builder,
    files: Vec<PathBuf>,
    default_ttl: Option<u32>,
    last_ttl: Option<u32>,
}

/// Fault and offset of the octet that has it.
pub(crate) type Located = (ReadFault, usize);

/// What changes while one file is read.
struct FileState {
    file: u16,
    depth: usize,
    origin: Option<Name>,
    owner: Vec<u8>,
}

impl Reader {
    fn read(
        &mut self,
        text: &[u8],
        file: u16,
        depth: usize,
        origin: Option<Name>,
    ) -> Result<Option<Name>, ReadError> {
        let mut state = FileState { file, depth, origin, owner: Vec::new() };
        let mut lexer = Lexer::new(text);
        loop {
            let step = match lexer.next_entry() {
                Ok(false) => return Ok(state.origin),
                Ok(true) => self.read_entry(&lexer, &mut state),
                Err((fault, at)) => Err(Interrupt::Here((lex_fault(fault), at))),
            };
            match step {
                Ok(()) => {}
                Err(Interrupt::Elsewhere(error)) => return Err(*error),
                Err(Interrupt::Here((fault, at))) => {
                    let (line, column) = lexer.position(at);
                    let file = self.files[usize::from(file)].clone();
                    return Err(ReadError { file, line, column, fault });
                }
            }
        }
    }

    fn read_entry(&mut self, lexer: &Lexer<'_>, state: &mut FileState) -> Result<(), Interrupt> {
        let first = lexer.tokens[0];
        if !lexer.begins_blank && !first.quoted && first.octets.first() == Some(&b'$') {
            return self.read_directive(lexer, state);
        }
        Ok(self.read_record(lexer, state)?)
    }

    fn read_directive(&mut self, lexer: &Lexer<'_>, state: &mut FileState) -> Result<(), Interrupt> {
        let tokens = &lexer.tokens;
        let (name, at) = (tokens[0].octets.to_ascii_uppercase(), tokens[0].at);
        match (name.as_slice(), &tokens[1..]) {
            (b"$ORIGIN", [origin]) => {
                let parsed = Name::from_text(origin.octets, state.origin.as_ref().map(Name::view));
                state.origin = Some(parsed.map_err(|error| (ReadFault::Owner(error), origin.at))?);
            }
            (b"$TTL", [ttl]) => {
                let parsed = parse_ttl(ttl.octets);
                self.default_ttl = Some(parsed.ok_or((ReadFault::Directive("$TTL"), ttl.at))?);
            }
            (b"$INCLUDE", [path]) => self.include(path.octets, state.origin.clone(), state, at)?,
            (b"$INCLUDE", [path, origin]) => {
                let parsed = Name::from_text(origin.octets, state.origin.as_ref().map(Name::view));
                let origin = parsed.map_err(|error| (ReadFault::Owner(error), origin.at))?;
                self.include(path.octets, Some(origin), state, at)?;
            }
            (b"$ORIGIN", _) => return Err((ReadFault::Directive("$ORIGIN"), at).into()),
            (b"$TTL", _) => return Err((ReadFault::Directive("$TTL"), at).into()),
            (b"$INCLUDE", _) => return Err((ReadFault::Directive("$INCLUDE"), at).into()),
            _ => {
                let name = String::from_utf8_lossy(tokens[0].octets).into_owned();
                return Err((ReadFault::UnknownDirective(name), at).into());
            }
        }
        Ok(())
    }

    /// RFC 1035 §5.1: the included file's origin does not change the including file's.
    fn include(
        &mut self,
        path: &[u8],
        origin: Option<Name>,
        state: &FileState,
        at: usize,
    ) -> Result<(), Interrupt> {
        if state.depth + 1 >= MAX_INCLUDE {
            return Err((ReadFault::IncludeDepth, at).into());
        }
        let folder =
            self.files[usize::from(state.file)].parent().unwrap_or_else(|| Path::new(".")).to_path_buf();
        let path = folder.join(&*String::from_utf8_lossy(path));
        let file = u16::try_from(self.files.len()).map_err(|_| (ReadFault::IncludeDepth, at))?;
        self.files.push(path.clone());
        let text = std::fs::read(&path).map_err(|error| {
            Box::new(ReadError { file: path, line: 0, column: 0, fault: ReadFault::Io(error) })
        })?;
        self.read(&text, file, state.depth + 1, origin).map_err(Box::new)?;
        Ok(())
    }

    fn read_record(&mut self, lexer: &Lexer<'_>, state: &mut FileState) -> Result<(), Located> {
        let tokens = &lexer.tokens[..];
        let mut next = 0;
        if !lexer.begins_blank {
            let token = tokens[0];
            state.owner.clear();
            let origin = state.origin.as_ref().map(Name::view);
            nonesuch_proto::push_name_from_text(token.octets, origin, &mut state.owner)
                .map_err(|error| (ReadFault::Owner(error), token.at))?;
            next = 1;
        } else if state.owner.is_empty() {
            return Err((ReadFault::NoOwner, tokens[0].at));
        }
        let (ttl, rtype, used) = read_fixed_fields(&tokens[next..], tokens[0].at)?;
        next += used;
        if rtype.is_meta() {
            return Err((ReadFault::MetaType(rtype), tokens[next - 1].at));
        }
        self.push_record(lexer, next, ttl, rtype, state)
    }

    fn push_record(
        &mut self,
        lexer: &Lexer<'_>,
        next: usize,
        ttl: Option<u32>,
        rtype: Rtype,
        state: &FileState,
    ) -> Result<(), Located> {
        let tokens = &lexer.tokens[next..];
        let end = lexer.tokens.last().map_or(0, |token| token.at);
        let origin = state.origin.as_ref().map(Name::view);
        let owner = NameRef::from_checked(&state.owner);
        let place = Place { file: state.file, line: lexer.line };
        // RFC 2308 §4 and RFC 1035 §5.1: $TTL, else the last TTL stated; a SOA record that comes first may
        // take its own minimum, as BIND and Knot do.
        let known = ttl.or(self.default_ttl).or(self.last_ttl);
        let mut soa_minimum = None;
        let mut rdata_ttl = known;
        if known.is_none() && rtype == Rtype::SOA {
            soa_minimum = tokens.last().and_then(|token| parse_ttl(token.octets));
            rdata_ttl = soa_minimum;
        }
        let ttl = rdata_ttl.ok_or((ReadFault::NoTtl, lexer.tokens[0].at))?;
        self.last_ttl = if soa_minimum.is_some() { soa_minimum } else { Some(ttl) };
        let write = |out: &mut Vec<u8>| rdata::push_from_tokens(rtype, tokens, origin, out);
        self.builder.push(owner, rtype, ttl, place, write).map_err(|error| {
            let at = tokens.get(error.token).map_or(end, |token| token.at);
            (ReadFault::Rdata { rtype, fault: error.fault }, at)
        })
    }
}

/// TTL and class in any order, then the type; returns how many tokens they took.
pub(crate) fn read_fixed_fields(
    tokens: &[nonesuch_proto::text::Token<'_>],
    entry_at: usize,
) -> Result<(Option<u32>, Rtype, usize), Located> {
    let (mut ttl, mut class) = (None, None);
    for (index, token) in tokens.iter().enumerate() {
        let starts_with_digit = token.octets.first().is_some_and(u8::is_ascii_digit);
        if ttl.is_none() && starts_with_digit {
            let value = parse_ttl(token.octets);
            let unknown = || (ReadFault::UnknownToken(printable(token.octets)), token.at);
            ttl = Some(value.ok_or_else(unknown)?);
            continue;
        }
        if let Some(rtype) = Rtype::from_mnemonic(token.octets) {
            return Ok((ttl, rtype, index + 1));
        }
        match Class::from_mnemonic(token.octets) {
            Some(Class::IN) if class.is_none() => class = Some(Class::IN),
            Some(other) => return Err((ReadFault::Class(other), token.at)),
            None => return Err((ReadFault::UnknownToken(printable(token.octets)), token.at)),
        }
    }
    Err((ReadFault::NoType, tokens.last().map_or(entry_at, |token| token.at)))
}

fn printable(octets: &[u8]) -> String {
    let text: String = octets.iter().take(40).map(|octet| octet.escape_ascii().to_string()).collect();
    if octets.len() > 40 { text + "…" } else { text }
}

/// A fault in this file, or one in an included file that knows its own place.
enum Interrupt {
    Here(Located),
    Elsewhere(Box<ReadError>),
}

impl From<Located> for Interrupt {
    fn from(located: Located) -> Self {
        Self::Here(located)
    }
}

impl From<Box<ReadError>> for Interrupt {
    fn from(error: Box<ReadError>) -> Self {
        Self::Elsewhere(error)
    }
}

pub(crate) const fn lex_fault(fault: LexFault) -> ReadFault {
    match fault {
        LexFault::UnclosedQuote => ReadFault::UnclosedQuote,
        LexFault::UnclosedParenthesis => ReadFault::UnclosedParenthesis,
        LexFault::StrayParenthesis => ReadFault::StrayParenthesis,
        LexFault::NestedParenthesis => ReadFault::NestedParenthesis,
    }
}
