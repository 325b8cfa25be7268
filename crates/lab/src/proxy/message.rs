//! What a proxy reads of messages, and what its faults change. Without a fault, messages stay octet by
//! octet unchanged, except for the ID over UDP.

use super::fault::{Fault, Faults};
use nonesuch_proto::edns::DO;
use nonesuch_proto::message::{HEADER, Header, Message, Rcode, Record, flags, opcode};
use nonesuch_proto::{Class, Name, Rtype};

/// Octets of type and class of a question.
const TYPE_AND_CLASS: usize = 4;
/// The flags AD, CD and Z in the fourth octet of a message.
const AD_CD_Z: u8 = 0x70;
/// The size at which some devices cut or drop messages (RFC 1035 §4.2.1).
const CLASSIC_SIZE: usize = 512;
/// The size that validators must support (RFC 4035 §4.1).
const DNSSEC_SIZE: usize = 1220;
/// The largest message in one IPv4 packet on Ethernet.
const PACKET_SIZE: usize = 1472;
/// The payload size that some devices announce for all clients (RFC 6891 §6.2.5).
const RAISED_SIZE: u16 = 4096;
/// Types up to this number are known to a device with the fault.
const KNOWN_TYPES: u16 = 255;

/// Whether a message of a client is a query: it has a header without QR.
pub(super) fn is_query(message: &[u8]) -> bool {
    Header::read(message).is_some_and(|header| header.flags & flags::QR == 0)
}

/// The question section of a message with one question; `None` for other messages.
pub(super) fn question(message: &[u8]) -> Option<&[u8]> {
    Header::read(message).filter(|header| header.counts[0] == 1)?;
    let (_, end) = Name::from_message(message, HEADER).ok()?;
    message.get(HEADER..end + TYPE_AND_CLASS)
}

/// Whether a message of the server with the right ID answers a query with this question. The case of
/// letters may differ. Errors, and responses to other opcodes, may lack the question.
pub(super) fn is_response(message: &[u8], asked: Option<&[u8]>) -> bool {
    let Some(header) = Header::read(message).filter(|header| header.flags & flags::QR != 0) else {
        return false;
    };
    match (asked, question(message)) {
        (Some(asked), Some(found)) => found.eq_ignore_ascii_case(asked),
        (Some(_), None) => {
            let may_lack = header.opcode() != opcode::QUERY || header.rcode() != Rcode::NOERROR;
            header.counts[0] == 0 && may_lack
        }
        // A query without a question, or with a malformed one.
        (None, _) => true,
    }
}

/// Changes a query as the faults require. Returns `false` if it is dropped.
pub(super) fn change_query(message: &mut Vec<u8>, faults: Faults) -> bool {
    let Some(header) = Header::read(message) else { return true };
    if faults.has(Fault::DropUnknownOpcodes) && header.opcode() != opcode::QUERY {
        return false;
    }
    if faults.has(Fault::DropUnknownTypes)
        && question_type(message).is_some_and(|rtype| rtype.0 > KNOWN_TYPES)
    {
        return false;
    }
    if faults.has(Fault::ClearFlags) {
        message[3] &= !AD_CD_Z;
    }
    if faults.has_any(&[
        Fault::DropOpt,
        Fault::LimitPayload,
        Fault::RaisePayload,
        Fault::ClearDo,
        Fault::DropTsig,
    ]) {
        rewrite(message, faults);
    }
    true
}

/// Changes a response over UDP as the faults require. Returns `false` if it is dropped.
pub(super) fn change_udp_response(message: &mut Vec<u8>, faults: Faults) -> bool {
    change_response(message, faults);
    let limits = [
        (Fault::DropOver512, CLASSIC_SIZE),
        (Fault::DropOver1220, DNSSEC_SIZE),
        (Fault::DropFragments, PACKET_SIZE),
    ];
    if limits.iter().any(|(fault, octets)| faults.has(*fault) && message.len() > *octets) {
        return false;
    }
    if faults.has(Fault::CutAt512) {
        message.truncate(CLASSIC_SIZE);
    }
    true
}

/// Changes a response over any transport as the faults require.
pub(super) fn change_response(message: &mut Vec<u8>, faults: Faults) {
    if faults.has(Fault::ClearFlags) && message.len() >= HEADER {
        message[3] &= !AD_CD_Z;
    }
    if faults.has(Fault::DropTsig) {
        rewrite(message, faults);
    }
}

fn question_type(message: &[u8]) -> Option<Rtype> {
    let asked = question(message)?;
    let octets = asked.get(asked.len() - TYPE_AND_CLASS..)?;
    Some(Rtype(u16::from_be_bytes([octets[0], octets[1]])))
}

/// Changes the OPT and TSIG records. A message that cannot be parsed stays unchanged.
fn rewrite(message: &mut Vec<u8>, faults: Faults) {
    let Ok(mut parsed) = Message::parse(message) else { return };
    let is_kept = |record: &Record| match record.rtype {
        Rtype::OPT => !faults.has(Fault::DropOpt),
        Rtype::TSIG => !faults.has(Fault::DropTsig),
        _ => true,
    };
    parsed.records.retain(is_kept);
    for opt in parsed.records.iter_mut().filter(|record| record.rtype == Rtype::OPT) {
        if faults.has(Fault::LimitPayload) {
            opt.class = Class(CLASSIC_SIZE as u16);
        }
        if faults.has(Fault::RaisePayload) {
            opt.class = Class(RAISED_SIZE);
        }
        if faults.has(Fault::ClearDo) {
            opt.ttl &= !u32::from(DO);
        }
    }
    *message = parsed.to_octets();
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::edns::push_opt;
    use nonesuch_proto::message::push_query;

    fn query(rtype: Rtype) -> Vec<u8> {
        let mut message = Vec::new();
        push_query(
            &"a.example.".parse().expect("a name"),
            rtype,
            7,
            flags::RD | flags::AD | flags::CD,
            &mut message,
        );
        push_opt(4096, 0, DO, &mut message);
        message[11] = 1;
        message
    }

    fn changed(mut message: Vec<u8>, fault: &[Fault]) -> Option<Vec<u8>> {
        change_query(&mut message, Faults::new(fault)).then_some(message)
    }

    #[test]
    fn without_a_fault_nothing_changes() {
        for message in [query(Rtype::A), query(Rtype(65_000)), vec![0; 12], vec![9; 40]] {
            assert_eq!(changed(message.clone(), &[]), Some(message.clone()));
            let mut response = message.clone();
            assert!(change_udp_response(&mut response, Faults::default()));
            assert_eq!(response, message);
        }
    }

    #[test]
    fn each_fault_changes_a_query() {
        let parse = |fault| {
            Message::parse(&changed(query(Rtype::A), &[fault]).expect("forwarded")).expect("a message")
        };
        assert!(parse(Fault::DropOpt).opt().is_none());
        assert_eq!(parse(Fault::LimitPayload).opt().map(|opt| opt.class.0), Some(512));
        let mut small = Message::parse(&query(Rtype::A)).expect("a message");
        small.records.iter_mut().for_each(|record| record.class = Class(1232));
        let raised = changed(small.to_octets(), &[Fault::RaisePayload]).expect("forwarded");
        assert_eq!(Message::parse(&raised).expect("a message").opt().map(|opt| opt.class.0), Some(4096));
        assert_eq!(parse(Fault::ClearDo).opt().map(|opt| opt.ttl), Some(0));
        assert_eq!(parse(Fault::ClearFlags).header.flags, flags::RD);
        assert_eq!(changed(query(Rtype(65_000)), &[Fault::DropUnknownTypes]), None);
        let mut update = query(Rtype::SOA);
        update[2] |= opcode::UPDATE << 3;
        assert_eq!(changed(update, &[Fault::DropUnknownOpcodes]), None);
    }

    #[test]
    fn sizes_of_responses() {
        let change = |octets, fault| {
            let mut message = vec![0; octets];
            change_udp_response(&mut message, Faults::new(&[fault])).then_some(message.len())
        };
        assert_eq!((change(512, Fault::CutAt512), change(513, Fault::CutAt512)), (Some(512), Some(512)));
        assert_eq!((change(512, Fault::DropOver512), change(513, Fault::DropOver512)), (Some(512), None));
        assert_eq!(
            (change(1220, Fault::DropOver1220), change(1221, Fault::DropOver1220)),
            (Some(1220), None)
        );
        assert_eq!(
            (change(1472, Fault::DropFragments), change(1473, Fault::DropFragments)),
            (Some(1472), None)
        );
    }

    #[test]
    fn responses_have_the_question_of_the_query() {
        let sent = query(Rtype::A);
        let mut received = sent.clone();
        received[2] |= 0x80;
        assert!(is_query(&sent) && !is_query(&received) && !is_query(&[0; 11]));
        let asked = question(&sent);
        assert!(asked.is_some() && is_response(&received, asked));
        assert!(!is_response(&sent, asked));
        received[13] = b'A';
        assert!(is_response(&received, asked));
        received[13] = b'b';
        assert!(!is_response(&received, asked));
        assert!(is_response(&received, None));
        // Only an error may lack the question.
        received[4..6].fill(0);
        assert!(!is_response(&received, asked));
        received[3] |= Rcode::SERVFAIL.0 as u8;
        assert!(is_response(&received, asked));
    }
}
