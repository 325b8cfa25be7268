//! Text forms of messages, for traces and for the reasons of failed scenarios.

use nonesuch_proto::edns::Opt;
use nonesuch_proto::message::{Header, Message, Question, Record, Section, flags};
use nonesuch_proto::rdata;
use std::fmt;

/// The flags of the header with their mnemonics, in the order of the wire form.
pub const FLAGS: [(u16, &str); 7] = [
    (flags::QR, "QR"),
    (flags::AA, "AA"),
    (flags::TC, "TC"),
    (flags::RD, "RD"),
    (flags::RA, "RA"),
    (flags::AD, "AD"),
    (flags::CD, "CD"),
];

/// Displays the flags of a header by their mnemonics, separated by spaces.
#[derive(Clone, Copy, Debug)]
pub struct FlagNames(pub u16);

impl fmt::Display for FlagNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            FLAGS.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| *name).collect();
        f.write_str(&names.join(" "))
    }
}

/// Displays a message in one line: ID, question, response code, flags, EDNS and numbers of records.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'m>(pub &'m [u8]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(header) = Header::read(self.0) else {
            return write!(f, "{} octets without a header", self.0.len());
        };
        write!(f, "id {}", header.id)?;
        let Ok(message) = Message::parse(self.0) else {
            return write!(f, ", malformed, {} octets", self.0.len());
        };
        for question in &message.questions {
            write!(f, ", {}", QuestionText(question))?;
        }
        if header.opcode() != 0 {
            write!(f, ", opcode {}", header.opcode())?;
        }
        if header.flags & flags::QR != 0 {
            write!(f, ", {}", message.rcode())?;
        }
        write!(f, ", {}", FlagNames(header.flags))?;
        if let Some(opt) = read_opt(&message) {
            write!(f, ", EDNS {}{}", opt.payload, if opt.dnssec_ok() { " DO" } else { "" })?;
        }
        let counts =
            [Section::Answer, Section::Authority, Section::Additional].map(|s| message.section(s).count());
        write!(f, ", {}/{}/{} records, {} octets", counts[0], counts[1], counts[2], self.0.len())
    }
}

/// Displays a question: name, class and type.
#[derive(Clone, Copy, Debug)]
pub struct QuestionText<'q>(pub &'q Question);

impl fmt::Display for QuestionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.0.name.view(), self.0.class, self.0.rtype)
    }
}

/// Displays a record in presentation form.
#[derive(Clone, Copy, Debug)]
pub struct RecordText<'r>(pub &'r Record);

impl fmt::Display for RecordText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { owner, ttl, class, rtype, rdata, .. } = self.0;
        let mut text = Vec::new();
        rdata::push_text(*rtype, rdata, &mut text);
        write!(f, "{} {ttl} {class} {rtype} {}", owner.view(), String::from_utf8_lossy(&text))
    }
}

/// Displays a whole message in several lines, in the form of an entry of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct MessageText<'m>(pub &'m Message);

impl fmt::Display for MessageText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.0;
        write!(f, "REPLY {} {}", FlagNames(message.header.flags), message.rcode())?;
        if message.header.opcode() != 0 {
            write!(f, " opcode {}", message.header.opcode())?;
        }
        if let Some(opt) = read_opt(message) {
            write!(f, " EDNS {} {}{}", opt.version, opt.payload, if opt.dnssec_ok() { " DO" } else { "" })?;
        }
        for question in &message.questions {
            write!(f, "\nSECTION QUESTION\n{}", QuestionText(question))?;
        }
        let sections = [
            (Section::Answer, "ANSWER"),
            (Section::Authority, "AUTHORITY"),
            (Section::Additional, "ADDITIONAL"),
        ];
        for (section, name) in sections {
            let mut records = message.section(section).peekable();
            if records.peek().is_some() {
                write!(f, "\nSECTION {name}")?;
            }
            for record in records {
                write!(f, "\n{}", RecordText(record))?;
            }
        }
        Ok(())
    }
}

/// Returns the OPT record of `message`, if it has a well-formed one.
#[must_use]
pub fn read_opt(message: &Message) -> Option<Opt<'_>> {
    message.opt().and_then(|opt| Opt::from_parts(opt.class.0, opt.ttl, &opt.rdata))
}
