//! Trust anchors as DS and DNSKEY records in zone file form, such as the `root.key` file of Unbound.

use super::check::check;
use super::entries::{Entries, Entry};
use super::error::{AnchorFileError, RecordFault, SyntaxFault};
use super::{MAX_FILE_RECORDS, TrustAnchors};
use crate::trust_anchors::AnchorRecord;
use nonesuch_proto::text::{Token, parse_ttl};
use nonesuch_proto::{Class, Name, Rtype, rdata};

/// The comment of Unbound before the state of a key (`validator/autotrust.c`): 0 START, 1 ADDPEND,
/// 2 VALID, 3 MISSING, 4 REVOKED, 5 REMOVED.
const STATE_COMMENT: &[u8] = b";;state=";
/// The states of Unbound in which a key is a trust anchor (RFC 5011 §4.2): VALID and MISSING.
const ANCHOR_STATES: [&[u8]; 2] = [b"2", b"3"];
/// The comment of Unbound before the keys of a zone of which all keys are revoked.
const ZONE_REVOKED_COMMENT: &[u8] = b";;REVOKED";

/// Reads trust anchors in zone file form.
pub(super) fn read(text: &str) -> Result<TrustAnchors, AnchorFileError> {
    let mut reader = Reader {
        origin: Name::root(),
        owner: None,
        is_zone_revoked: false,
        records: 0,
        anchors: TrustAnchors::default(),
    };
    for entry in Entries::new(text.as_bytes()) {
        let entry = entry?;
        reader.is_zone_revoked |=
            entry.comments.iter().any(|comment| comment.starts_with(ZONE_REVOKED_COMMENT));
        if let [first, rest @ ..] = entry.tokens.as_slice() {
            reader.add(&entry, *first, rest)?;
        }
    }
    match reader.records {
        0 => Err(AnchorFileError::NoRecord),
        records if reader.anchors.is_empty() => Err(AnchorFileError::NoAnchor { records }),
        _ => Ok(reader.anchors),
    }
}

struct Reader {
    origin: Name,
    /// The owner of the last record.
    owner: Option<Name>,
    is_zone_revoked: bool,
    records: usize,
    anchors: TrustAnchors,
}

impl Reader {
    fn add(
        &mut self,
        entry: &Entry<'_>,
        first: Token<'_>,
        rest: &[Token<'_>],
    ) -> Result<(), AnchorFileError> {
        let line = entry.line;
        let syntax = |fault| AnchorFileError::Syntax { line, fault };
        if first.octets.starts_with(b"$") {
            return self.read_directive(first.octets, rest).map_err(syntax);
        }
        let mut fields = entry.tokens.as_slice();
        if entry.has_owner {
            let owner = Name::from_text(first.octets, Some(self.origin.view()));
            self.owner = Some(owner.map_err(|fault| syntax(SyntaxFault::Owner(fault)))?);
            fields = rest;
        }
        let owner = self.owner.clone().ok_or_else(|| syntax(SyntaxFault::NoOwner))?;
        let (rtype, fields) = read_type(fields).map_err(syntax)?;
        if self.records == MAX_FILE_RECORDS {
            return Err(AnchorFileError::TooManyRecords { line });
        }
        self.records += 1;
        let is_anchor = !self.is_zone_revoked && has_anchor_state(entry);
        match read_record(rtype, fields, is_anchor) {
            Ok(record) => {
                record.into_iter().for_each(|record| self.anchors.insert(owner.view(), record));
                Ok(())
            }
            Err(fault) => Err(AnchorFileError::Record { line, owner, rtype, fault }),
        }
    }

    fn read_directive(&mut self, directive: &[u8], fields: &[Token<'_>]) -> Result<(), SyntaxFault> {
        if directive.eq_ignore_ascii_case(b"$TTL") {
            return Ok(());
        }
        if !directive.eq_ignore_ascii_case(b"$ORIGIN") {
            return Err(SyntaxFault::Directive);
        }
        let [origin] = fields else { return Err(SyntaxFault::Origin) };
        let origin = Name::from_text(origin.octets, Some(self.origin.view()));
        self.origin = origin.map_err(|_| SyntaxFault::Origin)?;
        Ok(())
    }
}

/// Reads TTL, class and type, of which the TTL and the class are optional and in any order. Returns
/// the type and the tokens after it.
fn read_type<'a, 't>(mut fields: &'t [Token<'a>]) -> Result<(Rtype, &'t [Token<'a>]), SyntaxFault> {
    let (mut has_ttl, mut has_class) = (false, false);
    while let [token, rest @ ..] = fields {
        if !has_ttl && parse_ttl(token.octets).is_some() {
            has_ttl = true;
        } else if let Some(class) = Class::from_mnemonic(token.octets).filter(|_| !has_class) {
            has_class = true;
            if class != Class::IN {
                return Err(SyntaxFault::Class);
            }
        } else {
            return Rtype::from_mnemonic(token.octets).map(|rtype| (rtype, rest)).ok_or(SyntaxFault::NoType);
        }
        fields = rest;
    }
    Err(SyntaxFault::NoType)
}

/// Reads the RDATA of a record. Returns `None` if its key is not an anchor.
fn read_record(
    rtype: Rtype,
    fields: &[Token<'_>],
    is_anchor: bool,
) -> Result<Option<AnchorRecord>, RecordFault> {
    if !matches!(rtype, Rtype::DS | Rtype::DNSKEY) {
        return Err(RecordFault::OtherType);
    }
    let mut octets = Vec::new();
    rdata::push_from_tokens(rtype, fields, None, &mut octets)
        .map_err(|error| RecordFault::Rdata(error.fault))?;
    if is_anchor { check(rtype, octets).map(Some) } else { Ok(None) }
}

/// Returns whether the key is an anchor in the state that the comments of the entry have. Without a
/// state, every key is an anchor.
fn has_anchor_state(entry: &Entry<'_>) -> bool {
    let state_of = |comment: &&[u8]| {
        let at = comment.windows(STATE_COMMENT.len()).position(|window| window == STATE_COMMENT)?;
        let state = &comment[at + STATE_COMMENT.len()..];
        let digits = state.iter().take_while(|octet| octet.is_ascii_digit()).count();
        Some(ANCHOR_STATES.contains(&&state[..digits]))
    };
    entry.comments.iter().filter_map(state_of).all(|is_anchor| is_anchor)
}
