//! Text format of change sets: one record per line, `- owner TTL IN type RDATA` for a removed
//! record and `+ …` for an added record. A `;` begins a comment. Names may be relative to the apex
//! of the zone; the TTL is mandatory.

use super::ChangeSet;
use crate::contents::{Contents, Node, NodesBuilder, Rrset};
use crate::lexer::{Lexer, LexerStep};
use crate::read::{Located, ReadFault, read_fixed_fields};
use nonesuch_proto::text::Token;
use nonesuch_proto::{Name, NameError, NameRef, Rtype, push_name_from_text, rdata, text};
use std::cmp::Ordering;
use std::io::{self, Write};

/// Fault in the text of a change set. Lines and columns count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeReadError {
    /// A line is malformed.
    #[error("{line}:{column}: {fault}")]
    Malformed {
        /// Line.
        line: u32,
        /// Column in octets.
        column: u32,
        /// The fault.
        fault: ReadFault,
    },
    /// A line begins with neither `-` nor `+`.
    #[error("{line}: a change must begin with '- ' (remove the record) or '+ ' (add the record)")]
    NoSign {
        /// Line.
        line: u32,
    },
    /// The text removes or adds the same record twice.
    #[error("{line}: duplicate of the change in line {first}: remove one of them")]
    Duplicate {
        /// Line.
        line: u32,
        /// The other line.
        first: u32,
    },
    /// Records of one RRset on the same side have different TTLs.
    #[error(
        "{line}: the TTL differs from that in line {first}, which is in the same RRset (RFC 2181 section 5.2): write the same TTL in both lines"
    )]
    MixedTtl {
        /// Line.
        line: u32,
        /// The other line.
        first: u32,
    },
}

impl ChangeSet {
    /// Writes the change set as text: the names in canonical order, the SOA record first. Within
    /// each RRset, removed records precede added records.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut lines = Vec::new();
        for touched in self.touched() {
            let is_apex = touched.name() == self.apex().view();
            push_node(touched.removed(), touched.added(), is_apex, &mut lines);
            if lines.len() > 1 << 16 {
                out.write_all(&lines)?;
                lines.clear();
            }
        }
        out.write_all(&lines)
    }

    /// Parses a change set of the zone `apex`.
    ///
    /// # Errors
    /// A fault in the text. If there are several, the error is not necessarily for the first one.
    pub fn parse(octets: &[u8], apex: &Name) -> Result<Self, ChangeReadError> {
        let mut sides = [SideRecords::default(), SideRecords::default()];
        let mut lexer = Lexer::new(octets, true);
        lexer.skip_byte_order_mark();
        loop {
            let at = |(fault, at): Located| {
                let (line, column) = Lexer::new(octets, true).position(at);
                ChangeReadError::Malformed { line, column, fault }
            };
            match lexer.next_entry() {
                Ok(LexerStep::Entry) => {}
                // The lexer returns `Cut` only for a text that does not end its file.
                Ok(LexerStep::End | LexerStep::Cut) => break,
                Err((fault, offset)) => return Err(at((fault.into(), offset))),
            }
            let sign = lexer.tokens.first().filter(|token| !lexer.begins_blank && !token.quoted);
            let side = match sign.map(|token| token.octets) {
                Some(b"-") => &mut sides[0],
                Some(b"+") => &mut sides[1],
                _ => return Err(ChangeReadError::NoSign { line: lexer.line }),
            };
            side.read(&lexer, &lexer.tokens[1..], apex).map_err(at)?;
        }
        let [removed, added] = sides;
        let (removed, removed_lines) = removed.into_contents(apex)?;
        let (added, added_lines) = added.into_contents(apex)?;
        Ok(Self { removed, added, removed_lines, added_lines })
    }
}

/// Parses records of a zone file, each with its owner and TTL. Returns `None` if the text contains
/// a fault, a directive, or a record without owner or TTL.
pub(crate) fn read_part(octets: &[u8], apex: &Name) -> Option<Contents> {
    let mut records = SideRecords::default();
    let mut lexer = Lexer::new(octets, true);
    while lexer.next_entry().ok()? == LexerStep::Entry {
        let is_record = !lexer.begins_blank && lexer.tokens.first()?.octets.first() != Some(&b'$');
        is_record.then_some(())?;
        records.read(&lexer, &lexer.tokens, apex).ok()?;
    }
    Some(records.into_contents(apex).ok()?.0)
}

/// Appends the lines of both sides of one name in the order of the types, with the SOA record first
/// at the apex.
fn push_node(removed: Option<Node<'_>>, added: Option<Node<'_>>, is_apex: bool, out: &mut Vec<u8>) {
    let sort_position = |sign: u8| {
        move |rrset: Rrset<'_>| {
            let is_not_first = !(is_apex && rrset.covered() == Rtype::SOA);
            (is_not_first, super::sort_key(rrset), sign)
        }
    };
    let removed_rrsets =
        removed.into_iter().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset, b'-')));
    let added_rrsets = added.into_iter().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset, b'+')));
    let mut all: Vec<_> = removed_rrsets.chain(added_rrsets).collect();
    // Removed records come first; in ASCII, `+` is less than `-`.
    all.sort_by_key(|(_, rrset, sign)| sort_position(u8::MAX - sign)(*rrset));
    for (node, rrset, sign) in all {
        for record in rrset.rdatas() {
            out.extend_from_slice(&[sign, b' ']);
            text::push_name(node.name(), out);
            out.push(b'\t');
            text::push_decimal(rrset.ttl(), out);
            // Writing to a vector cannot fail.
            let _ = write!(out, "\tIN\t{}\t", rrset.rtype());
            rdata::push_text(rrset.rtype(), record, out);
            out.push(b'\n');
        }
    }
}

/// The records of one side in the order of the text. Their octets are in one arena.
#[derive(Default)]
struct SideRecords {
    octets: Vec<u8>,
    records: Vec<Record>,
}

/// A record, with the offsets of its parts in the arena: owner in wire format, sort key of the
/// owner, RDATA, end.
#[derive(Clone, Copy)]
struct Record {
    owner: usize,
    /// Sort key of the owner.
    sort_key: usize,
    rdata: usize,
    end: usize,
    ttl: u32,
    rtype: Rtype,
    covered: Rtype,
    line: u32,
}

impl SideRecords {
    fn read(&mut self, lexer: &Lexer<'_>, tokens: &[Token<'_>], apex: &Name) -> Result<(), Located> {
        let end = lexer.tokens.last().map_or(0, |token| token.at);
        let owner_token = tokens.first().ok_or((ReadFault::NoOwner, end))?;
        let owner = self.octets.len();
        let bad_owner = |error: NameError| (ReadFault::Owner(error), owner_token.at);
        push_name_from_text(owner_token.octets, Some(apex.view()), &mut self.octets).map_err(bad_owner)?;
        let (ttl, rtype, token_count) = read_fixed_fields(&tokens[1..], owner_token.at)?;
        let ttl = ttl.ok_or((ReadFault::NoTtl, owner_token.at))?;
        if rtype.is_meta() {
            return Err((ReadFault::MetaType(rtype), tokens[token_count].at));
        }
        let sort_key_start = self.octets.len();
        let mut sort_key = Vec::with_capacity(sort_key_start - owner);
        NameRef::from_wire_unchecked(&self.octets[owner..sort_key_start]).push_sort_key(&mut sort_key);
        self.octets.extend_from_slice(&sort_key);
        let start = self.octets.len();
        let fields = &tokens[1 + token_count..];
        rdata::push_from_tokens(rtype, fields, Some(apex.view()), &mut self.octets).map_err(|error| {
            let at = fields.get(error.token).map_or(end, |token| token.at);
            (ReadFault::Rdata { rtype, fault: error.fault }, at)
        })?;
        let covered = match (rtype, &self.octets[start..]) {
            (Rtype::RRSIG, [high, low, ..]) => Rtype(u16::from_be_bytes([*high, *low])),
            _ => rtype,
        };
        let line = lexer.line;
        let end = self.octets.len();
        self.records.push(Record {
            owner,
            sort_key: sort_key_start,
            rdata: start,
            end,
            ttl,
            rtype,
            covered,
            line,
        });
        Ok(())
    }

    fn owner(&self, record: &Record) -> &[u8] {
        &self.octets[record.owner..record.sort_key]
    }

    fn rdata(&self, record: &Record) -> &[u8] {
        &self.octets[record.rdata..record.end]
    }

    fn cmp_rrsets(&self, a: &Record, b: &Record) -> Ordering {
        let key = |record: &Record| &self.octets[record.sort_key..record.rdata];
        let types = |record: &Record| (record.covered, record.rtype == Rtype::RRSIG);
        key(a).cmp(key(b)).then_with(|| types(a).cmp(&types(b)))
    }

    /// Sorts the records into nodes and RRsets. The result includes the line of each record.
    fn into_contents(self, apex: &Name) -> Result<(Contents, Vec<u32>), ChangeReadError> {
        let mut order = self.records.clone();
        let cmp_rdata = |a: &Record, b: &Record| rdata::cmp_canonical(a.rtype, self.rdata(a), self.rdata(b));
        order.sort_by(|a, b| {
            self.cmp_rrsets(a, b).then_with(|| cmp_rdata(a, b)).then_with(|| a.line.cmp(&b.line))
        });
        let mut nodes = NodesBuilder::default();
        let mut previous: Option<&Record> = None;
        for record in &order {
            let key = |record: &Record| &self.octets[record.sort_key..record.rdata];
            if previous.is_none_or(|previous| key(previous) != key(record)) {
                nodes.begin_node(NameRef::from_wire_unchecked(self.owner(record)));
            }
            match previous.filter(|previous| self.cmp_rrsets(previous, record).is_eq()) {
                None => nodes.begin_rrset(record.rtype, record.covered, record.ttl),
                Some(previous) => {
                    let (first, line) = (previous.line.min(record.line), previous.line.max(record.line));
                    if previous.ttl != record.ttl {
                        return Err(ChangeReadError::MixedTtl { line, first });
                    }
                    if cmp_rdata(previous, record).is_eq() {
                        return Err(ChangeReadError::Duplicate { line, first });
                    }
                }
            }
            nodes.push_record(|out| out.extend_from_slice(self.rdata(record)));
            previous = Some(record);
        }
        let lines = order.iter().map(|record| record.line).collect();
        Ok((Contents::from_parts(apex, vec![nodes]), lines))
    }
}
