//! Entries: a message, and how it is compared or changed.

use super::Dialect;
use super::error::RplFault;
use super::lines::{Lines, number, without_comment, words};
use super::record::{Defaults, read_question, read_record};
use data_encoding::HEXLOWER_PERMISSIVE;
use nonesuch_proto::edns::{CO, DO};
use nonesuch_proto::message::{Header, Message, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use std::time::Duration;

mod vocabulary;

use vocabulary::{read_adjust, read_match, read_reply};

/// Payload size of entries of Deckard, in octets.
const DECKARD_PAYLOAD: u16 = 4096;
/// Payload size of entries of Unbound, in octets.
const UNBOUND_PAYLOAD: u16 = 1232;

/// A rule of a MATCH line: what is compared. `word` in the comments is the word of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchRule {
    /// `opcode`: the opcode.
    Opcode,
    /// `qtype`: the type of the question.
    Qtype,
    /// `qname`: the name of the question, in any case.
    Qname,
    /// `qcase`: the name of the question, in the same case.
    Qcase,
    /// `subdomain`: the name of the question is at or below that of the entry.
    Subdomain,
    /// `flags`: the flags of the header.
    Flags,
    /// `rcode`: the extended response code.
    Rcode,
    /// `question`: the question section.
    Question,
    /// `answer`: the answer section.
    Answer,
    /// `answertypes`: the types in the answer section, without RRSIG.
    AnswerTypes,
    /// `answerrrsigs`: the types in the answer section, and the types that its RRSIG cover.
    AnswerSignatures,
    /// `authority`: the authority section.
    Authority,
    /// `additional`: the additional section.
    Additional,
    /// `edns`: EDNS version and payload size.
    Edns,
    /// `nsid`: the NSID option.
    Nsid,
    /// `all`: the whole message; Deckard does not compare EDNS.
    All,
    /// `all_noedns`: the whole message without EDNS.
    AllWithoutEdns,
    /// `ttl`: comparisons of records include the TTL.
    Ttl,
    /// `DO`: the DO flag is set.
    DnssecOk,
    /// `CO`: the CO flag is set.
    CompactOk,
    /// `noedns`: there is no OPT record.
    WithoutEdns,
    /// `ednsdata`: the options of the OPT record.
    EdnsData,
    /// `UDP`: the transport.
    Udp,
    /// `TCP`: the transport.
    Tcp,
    /// `serial`: the serial of the SOA record in the authority section.
    Serial(u32),
    /// `ede`: an extended error with this code, or with any code.
    ExtendedError(Option<u16>),
    /// `client_cookie`: a cookie option of 8 octets.
    ClientCookie,
    /// `server_cookie`: a cookie option of 24 octets.
    ServerCookie,
}

/// The rules of an ADJUST line: how a message is changed before it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adjust {
    /// `copy_id`: the ID is that of the query. In Deckard's dialect, the name of the question and
    /// EDNS, too.
    pub copies_id: bool,
    /// `copy_query`: the question is that of the query.
    pub copies_question: bool,
    /// `raw_id`: the ID of a RAW message is that of the query.
    pub copies_id_to_raw: bool,
    /// `do_not_answer`: there is no response.
    pub is_silent: bool,
    /// `copy_ednsdata_assume_clientsubnet`: unsupported.
    pub copies_client_subnet: bool,
    /// `sleep` and `packet_sleep`: time before the message is sent.
    pub delay: Duration,
}

/// A message of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line of ENTRY_BEGIN.
    pub line: u32,
    /// The rules of the MATCH lines.
    pub rules: Vec<MatchRule>,
    /// The rules of the ADJUST lines.
    pub adjust: Adjust,
    /// The message with the ID 0, and with an OPT record if the dialect adds one.
    pub message: Message,
    /// The octets of RAW or HEX_ANSWER_BEGIN, which are sent instead of `message`.
    pub raw: Option<Vec<u8>>,
    /// Whether a query has to match the entry (`MANDATORY`).
    pub is_mandatory: bool,
    /// Whether the message has a TSIG record, which is unsupported.
    pub has_tsig: bool,
    /// Number of further messages (`EXTRA_PACKET`), which are unsupported.
    pub extra_messages: usize,
}

/// An entry while it is read.
struct Reader {
    entry: Entry,
    opt_flags: u16,
    /// Upper bits of the response code.
    extended_rcode: u8,
    options: Vec<u8>,
    section: Option<Section>,
    /// Whether the sections are those of an extra packet.
    is_extra: bool,
}

impl Entry {
    /// Reads an entry after its ENTRY_BEGIN, until ENTRY_END.
    pub(super) fn read(
        lines: &mut Lines<'_>,
        dialect: Dialect,
        defaults: &mut Defaults,
    ) -> Result<Self, RplFault> {
        let mut reader = Reader::new(lines.number);
        loop {
            let line = lines.next_line().ok_or(RplFault::Missing("ENTRY_END"))?;
            let keyword = without_comment(line).split_whitespace().next().unwrap_or_default();
            if keyword == "ENTRY_END" {
                return Ok(reader.finish(dialect));
            }
            reader.read_line(keyword, line, lines, defaults)?;
        }
    }
}

impl Reader {
    fn new(line: u32) -> Self {
        let header = Header { id: 0, flags: 0, counts: [0; 4] };
        let message = Message { header, questions: Vec::new(), records: Vec::new() };
        let entry = Entry {
            line,
            rules: Vec::new(),
            adjust: Adjust::default(),
            message,
            raw: None,
            is_mandatory: false,
            has_tsig: false,
            extra_messages: 0,
        };
        Self { entry, opt_flags: 0, extended_rcode: 0, options: Vec::new(), section: None, is_extra: false }
    }

    fn read_line(
        &mut self,
        keyword: &str,
        line: &str,
        lines: &mut Lines<'_>,
        defaults: &mut Defaults,
    ) -> Result<(), RplFault> {
        let arguments = || words(line).skip(1);
        match keyword {
            "MATCH" => read_match(arguments(), &mut self.entry.rules)?,
            "ADJUST" => read_adjust(arguments(), &mut self.entry.adjust)?,
            "REPLY" | "FLAGS" => self.read_reply_line(arguments())?,
            "SECTION" => self.section = read_section(arguments().next())?,
            "MANDATORY" => self.entry.is_mandatory = true,
            "TSIG" => self.entry.has_tsig = true,
            "RAW" => {
                let line = lines.next_line().ok_or(RplFault::Missing("ENTRY_END"))?;
                self.entry.raw = Some(hexadecimal(without_comment(line))?);
            }
            "EXTRA_PACKET" => {
                self.entry.extra_messages += 1;
                self.is_extra = true;
            }
            "HEX_ANSWER_BEGIN" => self.entry.raw = Some(read_hex_lines(lines, "HEX_ANSWER_END")?),
            "HEX_EDNSDATA_BEGIN" => self.options = read_hex_lines(lines, "HEX_EDNSDATA_END")?,
            "$ORIGIN" => defaults.origin = super::config::name(arguments().next().unwrap_or_default())?,
            "$TTL" => defaults.ttl = number(arguments().next())?,
            _ => self.read_record_line(line, defaults)?,
        }
        Ok(())
    }

    fn read_reply_line<'w>(&mut self, words: impl Iterator<Item = &'w str>) -> Result<(), RplFault> {
        let reply = read_reply(words)?;
        if self.is_extra {
            return Ok(());
        }
        let header = &mut self.entry.message.header;
        header.flags |= reply.flags;
        if let Some(opcode) = reply.opcode {
            header.flags = header.flags & !flags::OPCODE | u16::from(opcode) << 11;
        }
        if let Some(rcode) = reply.rcode {
            header.flags = header.flags & !0x0f | rcode & 0x0f;
            self.extended_rcode = (rcode >> 4) as u8;
        }
        self.opt_flags |= if reply.has_do { DO } else { 0 } | if reply.has_co { CO } else { 0 };
        Ok(())
    }

    fn read_record_line(&mut self, line: &str, defaults: &Defaults) -> Result<(), RplFault> {
        let Some(section) = self.section else {
            let question = read_question(line, defaults)?;
            if !self.is_extra {
                self.entry.message.questions.push(question);
            }
            return Ok(());
        };
        let record = read_record(line, section, defaults)?;
        if !self.is_extra {
            self.entry.message.records.push(record);
        }
        Ok(())
    }

    fn finish(mut self, dialect: Dialect) -> Entry {
        let has_opt = dialect == Dialect::Deckard
            || self.opt_flags != 0
            || self.extended_rcode != 0
            || !self.options.is_empty();
        if has_opt {
            let payload = match dialect {
                Dialect::Deckard => DECKARD_PAYLOAD,
                Dialect::Unbound => UNBOUND_PAYLOAD,
            };
            let ttl = u32::from(self.extended_rcode) << 24 | u32::from(self.opt_flags);
            self.entry.message.records.push(opt_record(payload, ttl, self.options));
        }
        self.entry
    }
}

/// Returns an OPT record. `ttl` has the upper bits of the response code, the version and the flags.
pub(super) fn opt_record(payload: u16, ttl: u32, options: Vec<u8>) -> Record {
    Record {
        section: Section::Additional,
        owner: Name::root(),
        rtype: Rtype::OPT,
        class: Class(payload),
        ttl,
        rdata: options,
    }
}

/// Reads the name of a section; `None` is the question section.
fn read_section(word: Option<&str>) -> Result<Option<Section>, RplFault> {
    match word.unwrap_or_default() {
        "QUESTION" => Ok(None),
        "ANSWER" => Ok(Some(Section::Answer)),
        "AUTHORITY" => Ok(Some(Section::Authority)),
        "ADDITIONAL" => Ok(Some(Section::Additional)),
        word => Err(RplFault::UnknownWord { keyword: "SECTION", word: word.to_owned() }),
    }
}

/// Reads lines of hexadecimal digits until the line `end`.
fn read_hex_lines(lines: &mut Lines<'_>, end: &'static str) -> Result<Vec<u8>, RplFault> {
    let mut digits = String::new();
    loop {
        let line = without_comment(lines.next_line().ok_or(RplFault::Missing(end))?);
        if line == end {
            // Unbound adds a digit to an odd number of digits.
            let padding = if digits.len() % 2 == 1 { "0" } else { "" };
            return hexadecimal(&(digits + padding));
        }
        digits.extend(line.split_whitespace());
    }
}

fn hexadecimal(digits: &str) -> Result<Vec<u8>, RplFault> {
    let octets = HEXLOWER_PERMISSIVE.decode(digits.as_bytes());
    octets.map_err(|_| RplFault::Value { expected: "hexadecimal digits", found: digits.to_owned() })
}
