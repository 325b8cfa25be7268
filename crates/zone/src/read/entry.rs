//! Reads one entry: a directive, which changes the state, or a record, which is added to a
//! [`RecordBuffer`].

use super::fault::ReadFault;
use crate::builder::RecordBuffer;
use crate::lexer::Lexer;
use nonesuch_proto::rdata;
use nonesuch_proto::text::{Token, parse_ttl};
use nonesuch_proto::{Class, Name, NameRef, Rtype};

/// A fault and the offset of the octet that causes it.
pub(crate) type Located = (ReadFault, usize);

/// State of the reader after an entry, which applies to the entries after it.
#[derive(Clone, Debug)]
pub(super) struct EntryState {
    /// The origin of relative names ($ORIGIN).
    pub(super) origin: Option<Name>,
    /// The TTL of $TTL, in seconds.
    pub(super) default_ttl: Option<u32>,
    /// TTL of the last record. Records without a TTL use it if there is no $TTL (RFC 1035 §5.1).
    pub(super) last_ttl: Option<u32>,
    /// Blocks of a file are read in parallel, so the last TTL before the block can be unknown. This
    /// is the number of records at the start of the block that need it. They get TTL 0 until
    /// [`SpeculativeBlock::accept`](super::block::SpeculativeBlock::accept) fills in the TTL.
    /// `None` if the blocks are read in sequence.
    pub(super) leading_without_ttl: Option<usize>,
    /// Owner of the last record in wire format; empty before the first record.
    pub(super) owner: Vec<u8>,
}

impl EntryState {
    pub(super) const fn new(origin: Option<Name>) -> Self {
        Self { origin, default_ttl: None, last_ttl: None, leading_without_ttl: None, owner: Vec::new() }
    }

    fn origin(&self) -> Option<NameRef<'_>> {
        self.origin.as_ref().map(Name::view)
    }
}

/// An $INCLUDE directive.
#[derive(Debug)]
pub(super) struct Include {
    /// The path of the file as written in the directive.
    pub(super) path: Vec<u8>,
    /// The origin of the included file.
    pub(super) origin: Option<Name>,
    /// Offset of the directive.
    pub(super) at: usize,
}

/// Reads the entries of one text.
pub(super) struct EntryReader<'a> {
    /// Text of the last owner. If the next owner has the same text, it is not parsed again.
    owner_text: &'a [u8],
}

impl<'a> EntryReader<'a> {
    pub(super) const fn new() -> Self {
        Self { owner_text: &[] }
    }

    /// Reads the current entry of `lexer`. Returns an $INCLUDE directive for the caller to process.
    pub(super) fn read(
        &mut self,
        lexer: &Lexer<'a>,
        state: &mut EntryState,
        records: &mut RecordBuffer,
    ) -> Result<Option<Include>, Located> {
        let first = lexer.tokens[0];
        if !lexer.begins_blank && !first.quoted && first.octets.first() == Some(&b'$') {
            // After a directive, the same relative owner may be another name.
            self.owner_text = &[];
            return read_directive(&lexer.tokens, state);
        }
        let mut next = 0;
        if !lexer.begins_blank {
            self.read_owner(first, state)?;
            next = 1;
        } else if state.owner.is_empty() {
            return Err((ReadFault::NoOwner, first.at));
        }
        let (ttl, rtype, token_count) = read_fixed_fields(&lexer.tokens[next..], first.at)?;
        next += token_count;
        if rtype.is_meta() {
            return Err((ReadFault::MetaType(rtype), lexer.tokens[next - 1].at));
        }
        push_record(lexer, next, ttl, rtype, state, records)?;
        Ok(None)
    }

    fn read_owner(&mut self, token: Token<'a>, state: &mut EntryState) -> Result<(), Located> {
        if !self.owner_text.is_empty() && self.owner_text == token.octets {
            return Ok(());
        }
        state.owner.clear();
        let origin = state.origin.as_ref().map(Name::view);
        nonesuch_proto::push_name_from_text(token.octets, origin, &mut state.owner)
            .map_err(|error| (ReadFault::Owner(error), token.at))?;
        self.owner_text = token.octets;
        Ok(())
    }
}

/// Adds the record whose RDATA begins at the token `next`.
fn push_record(
    lexer: &Lexer<'_>,
    next: usize,
    ttl: Option<u32>,
    rtype: Rtype,
    state: &mut EntryState,
    records: &mut RecordBuffer,
) -> Result<(), Located> {
    let tokens = &lexer.tokens[next..];
    let ttl = resolve_ttl(ttl, rtype, tokens, state).ok_or((ReadFault::NoTtl, lexer.tokens[0].at))?;
    let owner = NameRef::from_wire_unchecked(&state.owner);
    let write = |out: &mut Vec<u8>| rdata::push_from_tokens(rtype, tokens, state.origin(), out);
    records.push(owner, rtype, ttl, lexer.line, write).map_err(|error| {
        let end = || lexer.tokens.last().map_or(0, |token| token.at);
        let at = tokens.get(error.token).map_or_else(end, |token| token.at);
        (ReadFault::Rdata { rtype, fault: error.fault }, at)
    })
}

/// Determines the TTL of a record and stores it as the last TTL: the TTL of the record itself,
/// otherwise that of $TTL (RFC 2308 §4), otherwise that of the last record (RFC 1035 §5.1). If the
/// last record is in another block that is read in parallel, the record is counted and gets the
/// placeholder 0. Otherwise an SOA record for which none of these exists uses its own minimum
/// field, as in BIND and Knot DNS.
fn resolve_ttl(
    stated: Option<u32>,
    rtype: Rtype,
    rdata: &[Token<'_>],
    state: &mut EntryState,
) -> Option<u32> {
    let mut ttl = stated.or(state.default_ttl).or(state.last_ttl);
    if ttl.is_none()
        && let Some(count) = &mut state.leading_without_ttl
    {
        // This includes an SOA record, which uses its minimum field only if no earlier TTL exists.
        // In this case the block is rejected and read again in sequence.
        *count += 1;
        return Some(0);
    }
    if ttl.is_none() && rtype == Rtype::SOA {
        ttl = rdata.last().and_then(|minimum| parse_ttl(minimum.octets));
    }
    state.last_ttl = ttl.or(state.last_ttl);
    ttl
}

fn read_directive(tokens: &[Token<'_>], state: &mut EntryState) -> Result<Option<Include>, Located> {
    let (name, at) = (tokens[0].octets.to_ascii_uppercase(), tokens[0].at);
    let read_origin = |token: &Token<'_>| {
        let name = Name::from_text(token.octets, state.origin());
        name.map(Some).map_err(|error| (ReadFault::Origin(error), token.at))
    };
    match (name.as_slice(), &tokens[1..]) {
        (b"$ORIGIN", [origin]) => state.origin = read_origin(origin)?,
        (b"$TTL", [ttl]) => {
            let parsed = parse_ttl(ttl.octets);
            let fault = || (invalid_ttl_fault(ttl.octets, |_| ReadFault::Directive("$TTL")), ttl.at);
            state.default_ttl = Some(parsed.ok_or_else(fault)?);
        }
        (b"$INCLUDE", [path]) => {
            return Ok(Some(Include { path: path.octets.to_vec(), origin: state.origin.clone(), at }));
        }
        (b"$INCLUDE", [path, origin]) => {
            let origin = read_origin(origin)?;
            return Ok(Some(Include { path: path.octets.to_vec(), origin, at }));
        }
        (b"$ORIGIN", _) => return Err((ReadFault::Directive("$ORIGIN"), at)),
        (b"$TTL", _) => return Err((ReadFault::Directive("$TTL"), at)),
        (b"$INCLUDE", _) => return Err((ReadFault::Directive("$INCLUDE"), at)),
        _ => {
            let name = String::from_utf8_lossy(tokens[0].octets).into_owned();
            return Err((ReadFault::UnknownDirective(name), at));
        }
    }
    Ok(None)
}

/// Returns the fault for a token that is not a valid TTL: [`ReadFault::TtlTooLarge`] if the token
/// has the form of a TTL and is therefore too large, otherwise `other`.
fn invalid_ttl_fault(octets: &[u8], other: impl FnOnce(String) -> ReadFault) -> ReadFault {
    let is_unit = |octet: u8| b"smhdw".contains(&octet.to_ascii_lowercase());
    // Each unit follows a number.
    let has_ttl_form = octets.first().is_some_and(u8::is_ascii_digit)
        && octets.iter().all(|octet| octet.is_ascii_digit() || is_unit(*octet))
        && !octets.windows(2).any(|pair| is_unit(pair[0]) && is_unit(pair[1]));
    if has_ttl_form { ReadFault::TtlTooLarge(printable(octets)) } else { other(printable(octets)) }
}

/// Reads the TTL and class, in any order, and then the type. Returns the TTL, the type, and the
/// number of tokens read. A class other than IN is an error, so the class is not returned.
pub(crate) fn read_fixed_fields(
    tokens: &[Token<'_>],
    entry_at: usize,
) -> Result<(Option<u32>, Rtype, usize), Located> {
    let (mut ttl, mut class) = (None, None);
    for (index, token) in tokens.iter().enumerate() {
        let starts_with_digit = token.octets.first().is_some_and(u8::is_ascii_digit);
        if ttl.is_none() && starts_with_digit {
            let value = parse_ttl(token.octets);
            ttl = Some(
                value.ok_or_else(|| (invalid_ttl_fault(token.octets, ReadFault::UnknownToken), token.at))?,
            );
            continue;
        }
        // Fast path for the class that is on nearly every line; no type has this mnemonic.
        if class.is_none() && token.octets == b"IN" {
            class = Some(Class::IN);
            continue;
        }
        if let Some(rtype) = Rtype::from_mnemonic(token.octets) {
            return Ok((ttl, rtype, index + 1));
        }
        match Class::from_mnemonic(token.octets) {
            Some(Class::IN) if class.is_none() => class = Some(Class::IN),
            Some(Class::IN) => return Err((ReadFault::RepeatedClass, token.at)),
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
