//! Responses in wire form. An owner that is the queried name is a pointer to the question, so that the
//! size of a response follows from its records.

use nonesuch_proto::Name;
use nonesuch_proto::message::{Header, Message, Section};

/// A pointer to the name of the first question.
const QUESTION_POINTER: [u8; 2] = [0xc0, 12];

/// Appends the message. The question is `question` in the wire form of the query, so that it has the
/// same case.
pub(in crate::check) fn push_message(message: &Message, question: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&message.header.to_octets());
    out.extend_from_slice(question);
    let asked = message.questions.first().map(|question| &question.name);
    let mut counts = [u16::from(!question.is_empty()), 0, 0, 0];
    for (index, section) in [Section::Answer, Section::Authority, Section::Additional].into_iter().enumerate()
    {
        for record in message.records.iter().filter(|record| record.section == section) {
            push_owner(&record.owner, asked, out);
            out.extend_from_slice(&record.rtype.0.to_be_bytes());
            out.extend_from_slice(&record.class.0.to_be_bytes());
            out.extend_from_slice(&record.ttl.to_be_bytes());
            // RDATA have at most 65,535 octets.
            out.extend_from_slice(&(record.rdata.len() as u16).to_be_bytes());
            out.extend_from_slice(&record.rdata);
            counts[index + 1] += 1;
        }
    }
    let header = Header { counts, ..message.header };
    out[start..start + 12].copy_from_slice(&header.to_octets());
}

/// TXT RDATA of this length: strings of at most 255 octets.
pub(in crate::check) fn txt_rdata(octets: usize) -> Vec<u8> {
    let mut rdata = Vec::with_capacity(octets);
    while rdata.len() < octets {
        let length = (octets - rdata.len() - 1).min(255);
        rdata.push(length as u8);
        rdata.extend(std::iter::repeat_n(b'x', length));
    }
    rdata
}

fn push_owner(owner: &Name, asked: Option<&Name>, out: &mut Vec<u8>) {
    // The case of the owner may differ on purpose.
    let is_asked = asked.is_some_and(|asked| asked.wire() == owner.wire() && !owner.view().is_root());
    out.extend_from_slice(if is_asked { &QUESTION_POINTER } else { owner.wire() });
}
