//! Messages as text for people: names of codes and flags, options, records with comments.

mod edns;
mod names;
mod record;

pub use edns::{
    EdnsOption, describe_opt, extended_error_meaning, flag_names as edns_flag_names, printable, read_options,
};
pub use names::{flag_names, name as rcode_name, opcode_name};
pub use record::{line as record_line, to_json as record_to_json, type_and_rdata};

use nonesuch_proto::message::{Message, Question, Record, Section};
use std::fmt::Write as _;

/// The sections with their headings.
pub const SECTIONS: [(Section, &str); 3] =
    [(Section::Answer, "ANSWER"), (Section::Authority, "AUTHORITY"), (Section::Additional, "ADDITIONAL")];

/// Header, EDNS options and question as comments of a zone file.
#[must_use]
pub fn header_text(message: &Message) -> String {
    let header = message.header;
    let mut text = format!(
        ";; {} {}, id {}, flags {}\n",
        opcode_name(header.opcode()),
        rcode_name(message.rcode()),
        header.id,
        flag_names(header).join(" ")
    );
    if let Some(opt) = describe_opt(message) {
        // Writing to a string does not fail.
        let _ = writeln!(text, ";; EDNS {opt}");
    }
    for option in read_options(message) {
        let _ = writeln!(text, ";; {} {}", option.name(), option.describe());
    }
    for Question { name, rtype, class } in &message.questions {
        let _ = writeln!(text, ";; QUESTION {name} {class} {rtype}");
    }
    text
}

/// The sections that have records, each with a heading and a line for each record.
#[must_use]
pub fn sections_text<'m>(mut records: impl FnMut(Section) -> Vec<&'m Record>) -> String {
    let mut text = String::new();
    for (section, name) in SECTIONS {
        let records = records(section);
        if !records.is_empty() {
            let _ = writeln!(text, "\n;; {name}");
        }
        for record in records {
            text.push_str(&record_line(record));
            text.push('\n');
        }
    }
    text
}

/// The message in these octets as a zone file with comments; if they are malformed, a comment with
/// the reason.
#[must_use]
pub fn to_text(octets: &[u8]) -> String {
    match Message::parse(octets) {
        Ok(message) => header_text(&message) + &sections_text(|section| message.section(section).collect()),
        Err(error) => format!(";; malformed message: {error}\n"),
    }
}
