//! Faults of servers, with the item that finds each.

use super::faulty::{Fault, edit};
use nonesuch_proto::message::{Header, Message, Rcode, Record, Section, flags, opcode};
use nonesuch_proto::{Class, Name, Rtype, edns};

/// A fault.
pub(super) struct Row {
    /// The item that fails.
    pub(super) item: &'static str,
    /// What the server does.
    pub(super) name: &'static str,
    /// The test zone.
    pub(super) zone: &'static str,
    /// Part of the text of the result.
    pub(super) text: &'static str,
    pub(super) fault: Fault,
}

const fn row(
    item: &'static str,
    zone: &'static str,
    name: &'static str,
    text: &'static str,
    fault: Fault,
) -> Row {
    Row { item, name, zone, text, fault }
}

/// A fault of responses as an edit of the parsed response.
macro_rules! edited {
    ($change:expr) => {
        Fault::of_responses(|query, response, _| edit(query, response, $change))
    };
}

/// Responses have no OPT record.
pub(super) const DROP_OPT: Fault =
    edited!(|_, response| response.records.retain(|record| record.rtype != Rtype::OPT));

const DROP_RRSIG: Fault =
    edited!(|_, response| response.records.retain(|record| record.rtype != Rtype::RRSIG));

const NO_TCP: Fault = Fault::of_responses(|_, response, is_tcp| (!is_tcp).then_some(response));

fn has_question(message: &Message, rtype: Rtype) -> bool {
    message.questions.first().is_some_and(|question| question.rtype == rtype)
}

/// Whether the first label of the query name is this one.
fn is_for(message: &Message, label: &[u8]) -> bool {
    message.questions.first().is_some_and(|question| question.name.view().labels().next() == Some(label))
}

fn set_rcode(message: &mut Message, rcode: Rcode) {
    message.header.flags = message.header.flags & !0x0f | rcode.0;
}

fn opt_mut(message: &mut Message) -> Option<&mut Record> {
    message.records.iter_mut().find(|record| record.rtype == Rtype::OPT)
}

fn opt_flags(message: &Message) -> u16 {
    message.opt().map_or(0, |opt| opt.ttl as u16)
}

fn version(message: &Message) -> u32 {
    message.opt().map_or(0, |opt| opt.ttl >> 16 & 0xff)
}

/// Replaces the UDP payload size of a query, and sets its DO bit if `dnssec` is set.
fn change_opt(query: &mut Vec<u8>, payload: Option<u16>, dnssec: bool) {
    let Ok(mut message) = Message::parse(query) else { return };
    if let Some(opt) = opt_mut(&mut message) {
        opt.class = payload.map_or(opt.class, Class);
        opt.ttl |= if dnssec { u32::from(edns::DO) } else { 0 };
        *query = message.to_octets();
    }
}

/// Clears the flag CO of a query, so that the server answers as one that does not know the flag.
pub(super) fn clear_co(query: &mut Vec<u8>) {
    let Ok(mut message) = Message::parse(query) else { return };
    if let Some(opt) = opt_mut(&mut message) {
        opt.ttl &= !u32::from(edns::CO);
        *query = message.to_octets();
    }
}

/// Truncates a response over UDP that has more than these octets.
fn limit(response: Vec<u8>, is_tcp: bool, octets: usize) -> Option<Vec<u8>> {
    if is_tcp || response.len() <= octets {
        return Some(response);
    }
    let mut message = Message::parse(&response).ok()?;
    message.header.flags |= flags::TC;
    message.records.retain(|record| record.rtype == Rtype::OPT);
    Some(message.to_octets())
}

/// All faults. Each item has at least one.
pub(super) const FAULTS: &[Row] = &[
    row("A-85", "nsec", "drops OPT", "no OPT record", DROP_OPT),
    row(
        "A-85",
        "nsec",
        "truncates above 512 octets",
        "truncated",
        Fault::of_responses(|_, response, is_tcp| limit(response, is_tcp, 512)),
    ),
    row("A-85", "nsec", "has no TCP", "over TCP", NO_TCP),
    row(
        "A-86",
        "nsec",
        "truncates above 1,219 octets",
        "1220 octets",
        Fault::of_responses(|_, response, is_tcp| limit(response, is_tcp, 1219)),
    ),
    row(
        "A-86",
        "unsigned",
        "cuts off the end without TC",
        "malformed",
        Fault::of_responses(|_, mut response, is_tcp| {
            response.truncate(if is_tcp { usize::MAX } else { 512 });
            Some(response)
        }),
    ),
    row("A-87", "nsec", "has no TCP", "over TCP", NO_TCP),
    row(
        "A-87",
        "nsec",
        "truncates over TCP",
        "flag TC",
        Fault::of_responses(|_, mut response, is_tcp| {
            response[2] |= if is_tcp { 2 } else { 0 };
            Some(response)
        }),
    ),
    row(
        "XA-001",
        "nsec",
        "adds DNSSEC records without DO",
        "without DO",
        Fault::of_queries(|query, _| change_opt(query, None, true)),
    ),
    row("XA-001", "nsec", "omits signatures", "no signature", DROP_RRSIG),
    row(
        "XA-001",
        "nsec",
        "sets AD",
        "flag AD",
        Fault::of_responses(|_, mut response, _| {
            response[3] |= 0x20;
            Some(response)
        }),
    ),
    row(
        "XA-001",
        "nsec",
        "does not copy DO",
        "lacks DO",
        edited!(|_, response: &mut Message| {
            if let Some(opt) = opt_mut(response) {
                opt.ttl &= !u32::from(edns::DO);
            }
        }),
    ),
    row(
        "XA-002",
        "nsec",
        "sets AA in referrals",
        "flag AA",
        edited!(|_, response: &mut Message| response.header.flags |= flags::AA),
    ),
    row(
        "XA-002",
        "nsec",
        "omits the DS records of referrals",
        "signed",
        edited!(|_, response: &mut Message| {
            response.records.retain(|record| record.rtype != Rtype::DS);
        }),
    ),
    row(
        "XA-002",
        "unsigned",
        "omits the NS records of referrals",
        "no NS record",
        edited!(|_, response: &mut Message| {
            response.records.retain(|record| record.rtype != Rtype::NS);
        }),
    ),
    row(
        "XA-003",
        "nsec",
        "answers NXDOMAIN to queries for DS",
        "DS at the apex",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::DS) {
                set_rcode(response, Rcode::NXDOMAIN);
            }
        }),
    ),
    row(
        "XA-004",
        "nsec",
        "omits NSEC records",
        "NXDOMAIN",
        edited!(|_, response: &mut Message| {
            response.records.retain(|record| record.rtype != Rtype::NSEC);
        }),
    ),
    row(
        "XA-004",
        "nsec3",
        "omits one of the NSEC3 records",
        "bogus",
        edited!(|_, response: &mut Message| {
            if let Some(at) = response.records.iter().position(|record| record.rtype == Rtype::NSEC3) {
                response.records.remove(at);
            }
        }),
    ),
    row(
        "XA-004",
        "unsigned",
        "answers NOERROR for names that do not exist",
        "expected NXDOMAIN",
        edited!(|_, response: &mut Message| {
            if response.header.rcode() == Rcode::NXDOMAIN {
                set_rcode(response, Rcode::NOERROR);
            }
        }),
    ),
    row(
        "XA-004",
        "compact",
        "changes a signature",
        "bogus",
        edited!(|_, response: &mut Message| {
            let signatures = response.records.iter_mut().filter(|record| record.rtype == Rtype::RRSIG);
            for record in signatures.filter(|record| record.section == Section::Authority) {
                if let Some(last) = record.rdata.last_mut() {
                    *last ^= 1;
                }
            }
        }),
    ),
    row(
        "XA-005",
        "unsigned",
        "answers NXDOMAIN for empty non-terminals",
        "expected NOERROR",
        edited!(|query, response: &mut Message| {
            if is_for(query, b"ent") {
                set_rcode(response, Rcode::NXDOMAIN);
            }
        }),
    ),
    row(
        "XA-006",
        "nsec3",
        "answers with the NSEC3 record",
        "NSEC3",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::NSEC3) {
                set_rcode(response, Rcode::NOERROR);
            }
        }),
    ),
    row(
        "XA-007",
        "nsec3",
        "has no NSEC3PARAM record",
        "NSEC3PARAM",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::NSEC3PARAM) {
                response.records.retain(|record| record.section != Section::Answer);
            }
        }),
    ),
    row(
        "XA-008",
        "nsec3",
        "uses extra iterations",
        "5 extra iterations",
        edited!(|_, response: &mut Message| {
            for record in response.records.iter_mut().filter(|record| record.rtype == Rtype::NSEC3) {
                record.rdata[3] = 5;
            }
        }),
    ),
    row(
        "XA-009",
        "nsec",
        "ignores the UDP payload size",
        "at most 512",
        Fault::of_queries(|query, is_tcp| {
            if !is_tcp {
                change_opt(query, Some(1232), false);
            }
        }),
    ),
    row(
        "XA-009",
        "nsec",
        "does not set TC",
        "lacks the flag TC",
        Fault::of_responses(|_, mut response, _| {
            response[2] &= !2;
            Some(response)
        }),
    ),
    row(
        "XA-009",
        "nsec",
        "adds OPT to plain responses",
        "the query has none",
        edited!(|_, response: &mut Message| {
            if response.opt().is_none() {
                let name = Name::root();
                let (section, rtype, class) = (Section::Additional, Rtype::OPT, Class(1232));
                response.records.push(Record {
                    section,
                    owner: name,
                    rtype,
                    class,
                    ttl: 0,
                    rdata: Vec::new(),
                });
            }
        }),
    ),
    row("XA-010", "nsec", "has no TCP", "over TCP", NO_TCP),
    row(
        "XA-011",
        "nsec",
        "closes the connection after a response",
        "queries answered",
        Fault::of_responses(|query, response, is_tcp| {
            let is_first = Message::parse(query).is_ok_and(|query| has_question(&query, Rtype::SOA));
            (!is_tcp || is_first).then_some(response)
        }),
    ),
    row(
        "XA-011",
        "nsec",
        "sends keepalive over UDP",
        "over UDP has the option",
        edited!(|_, response: &mut Message| {
            if let Some(opt) = opt_mut(response) {
                edns::push_keepalive(100, &mut opt.rdata);
            }
        }),
    ),
    row(
        "XA-012",
        "nsec",
        "changes a record of a transfer",
        "fault",
        Fault::of_responses(|query, mut response, _| {
            let is_transfer = Message::parse(query).is_ok_and(|query| has_question(&query, Rtype::AXFR));
            let at = response.windows(8).position(|octets| octets == b"xxxxxxxx");
            if let Some(at) = at.filter(|_| is_transfer) {
                response[at] = b'y';
            }
            Some(response)
        }),
    ),
    row(
        "XA-012",
        "unsigned",
        "ignores the serial of IXFR",
        "expected one SOA",
        Fault::of_queries(|query, _| {
            let Ok(mut message) = Message::parse(query) else { return };
            if has_question(&message, Rtype::IXFR) {
                message.questions[0].rtype = Rtype::AXFR;
                message.records.clear();
                *query = message.to_octets();
            }
        }),
    ),
    row(
        "XA-013",
        "nsec",
        "answers SERVFAIL to NOTIFY",
        "the response has SERVFAIL",
        edited!(|query, response: &mut Message| {
            if query.header.opcode() == opcode::NOTIFY {
                set_rcode(response, Rcode::SERVFAIL);
            }
        }),
    ),
    row(
        "XA-014",
        "nsec",
        "converts names to lower case",
        "another case",
        Fault::of_responses(|query, mut response, _| {
            if let Ok((_, end)) = Name::from_message(query, 12) {
                response[12..end].make_ascii_lowercase();
            }
            Some(response)
        }),
    ),
    row(
        "XA-014",
        "nsec",
        "compresses names in SRV records",
        "RDATA of SRV",
        Fault::of_responses(|query, response, _| {
            let is_srv = Message::parse(query).is_ok_and(|query| has_question(&query, Rtype::SRV));
            if is_srv { compress_srv(&response) } else { Some(response) }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "copies the reserved flag",
        "§8.1.3.3",
        Fault::of_responses(|query, mut response, _| {
            response[3] |= query[3] & 0x40;
            Some(response)
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "answers REFUSED to unknown types",
        "§8.1.2",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype(1000)) {
                set_rcode(response, Rcode::REFUSED);
            }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "drops queries with CD",
        "§8.1.3.1",
        Fault::of_responses(|query, response, _| (query[3] & 0x10 == 0).then_some(response)),
    ),
    row(
        "XA-015",
        "nsec",
        "drops queries with AD",
        "§8.1.3.2",
        Fault::of_responses(|query, response, _| (query[3] & 0x20 == 0).then_some(response)),
    ),
    row(
        "XA-015",
        "nsec",
        "does not copy RD",
        "§8.1.3.4",
        Fault::of_responses(|_, mut response, _| {
            response[2] &= !1;
            Some(response)
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "is silent to unknown opcodes",
        "§8.1.4",
        Fault::of_responses(|query, response, _| (query[2] >> 3 & 0x0f != 15).then_some(response)),
    ),
    row("XA-015", "nsec", "has no TCP", "§8.1.5", NO_TCP),
    row("XA-015", "nsec", "drops OPT", "§8.2.1", DROP_OPT),
    row(
        "XA-015",
        "nsec",
        "lacks AA",
        "§8.1.1",
        Fault::of_responses(|_, mut response, _| {
            response[2] &= !4;
            Some(response)
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "answers EDNS version 1 as version 0",
        "§8.2.2",
        Fault::of_queries(|query, _| {
            let Ok(mut message) = Message::parse(query) else { return };
            if let Some(opt) = opt_mut(&mut message) {
                opt.ttl &= 0xff00_ffff;
                *query = message.to_octets();
            }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "copies unknown options",
        "§8.2.3",
        edited!(|query, response: &mut Message| {
            let option =
                query.opt().and_then(|opt| edns::Options::new(&opt.rdata).find(|(code, _)| *code == 100));
            if let (Some(_), Some(opt)) = (option, opt_mut(response)) {
                edns::push_option(100, &[], &mut opt.rdata);
            }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "copies unknown EDNS flags",
        "§8.2.4",
        edited!(|query, response: &mut Message| {
            let unknown = u32::from(opt_flags(query) & 0x40);
            if let Some(opt) = opt_mut(response) {
                opt.ttl |= unknown;
            }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "drops EDNS version 1 with flags",
        "§8.2.5",
        Fault::of_responses(|query, response, _| {
            let is_dropped = Message::parse(query)
                .is_ok_and(|query| version(&query) == 1 && opt_flags(&query) & 0x40 != 0);
            (!is_dropped).then_some(response)
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "drops EDNS version 1 with options",
        "§8.2.6",
        Fault::of_responses(|query, response, _| {
            let has_options = |query: &Message| query.opt().is_some_and(|opt| !opt.rdata.is_empty());
            let is_dropped =
                Message::parse(query).is_ok_and(|query| version(&query) == 1 && has_options(&query));
            (!is_dropped).then_some(response)
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "omits OPT when it truncates",
        "§8.2.7",
        edited!(|_, response: &mut Message| {
            if response.header.flags & flags::TC != 0 {
                response.records.clear();
            }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "does not copy DO",
        "§8.2.8",
        edited!(|_, response: &mut Message| {
            if let Some(opt) = opt_mut(response) {
                opt.ttl &= !u32::from(edns::DO);
            }
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "drops EDNS version 1 with DO",
        "§8.2.9",
        Fault::of_responses(|query, response, _| {
            let is_dropped = Message::parse(query)
                .is_ok_and(|query| version(&query) == 1 && opt_flags(&query) & edns::DO != 0);
            (!is_dropped).then_some(response)
        }),
    ),
    row(
        "XA-015",
        "nsec",
        "rejects several options",
        "§8.2.10",
        edited!(|query, response: &mut Message| {
            if query.opt().is_some_and(|opt| edns::Options::new(&opt.rdata).count() > 2) {
                set_rcode(response, Rcode::FORMERR);
            }
        }),
    ),
    row(
        "XA-016",
        "nsec",
        "changes the client cookie",
        "does not begin with the client cookie",
        edited!(|_, response: &mut Message| {
            if let Some(opt) = opt_mut(response) {
                let cookie = edns::Options::new(&opt.rdata)
                    .find(|(code, _)| *code == edns::COOKIE)
                    .map(|(_, data)| data.to_vec());
                if let Some(mut cookie) = cookie {
                    cookie[0] ^= 1;
                    opt.rdata.clear();
                    edns::push_option(edns::COOKIE, &[&cookie], &mut opt.rdata);
                }
            }
        }),
    ),
    row(
        "XA-016",
        "nsec",
        "accepts malformed cookies",
        "5 octets",
        edited!(|query, response: &mut Message| {
            set_rcode(response, Rcode::NOERROR);
            response.questions.clone_from(&query.questions);
        }),
    ),
    row(
        "XA-017",
        "nsec",
        "answers NOTIMP to ANY",
        "expected NOERROR",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::ANY) {
                set_rcode(response, Rcode::NOTIMP);
            }
        }),
    ),
    row(
        "XA-017",
        "nsec",
        "answers ANY without records",
        "no RRset",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::ANY) {
                response.records.retain(|record| record.section != Section::Answer);
            }
        }),
    ),
    row(
        "XA-018",
        "nsec",
        "announces the root as agent",
        "not a name below the root",
        edited!(|_, response: &mut Message| {
            if let Some(opt) = opt_mut(response) {
                opt.rdata.clear();
                edns::push_option(edns::REPORT_CHANNEL, &[&[0]], &mut opt.rdata);
            }
        }),
    ),
    row(
        "XA-018",
        "nsec",
        "announces an agent in the zone",
        "is in the zone",
        edited!(|query, response: &mut Message| {
            let zone = query.questions.first().map(|question| question.name.wire().to_vec());
            if let (Some(opt), Some(zone)) = (opt_mut(response), zone) {
                opt.rdata.clear();
                edns::push_option(edns::REPORT_CHANNEL, &[b"\x05agent", &zone], &mut opt.rdata);
            }
        }),
    ),
    row(
        "XA-018",
        "nsec",
        "announces two agents",
        "2 times",
        edited!(|_, response: &mut Message| {
            if let Some(opt) = opt_mut(response) {
                edns::push_option(edns::REPORT_CHANNEL, &[b"\x05other\x00"], &mut opt.rdata);
            }
        }),
    ),
    row(
        "XA-019",
        "nsec",
        "omits the CDS records",
        "CDS",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::CDS) {
                response.records.retain(|record| record.section != Section::Answer);
            }
        }),
    ),
    row(
        "XA-020",
        "compact",
        "answers NOERROR with CO",
        "expected NXDOMAIN",
        edited!(|query, response: &mut Message| {
            if opt_flags(query) & edns::CO != 0 {
                set_rcode(response, Rcode::NOERROR);
            }
        }),
    ),
    row(
        "XA-020",
        "compact",
        "answers NOERROR to a query for NXNAME",
        "query for NXNAME",
        edited!(|query, response: &mut Message| {
            if has_question(query, Rtype::NXNAME) {
                set_rcode(response, Rcode::NOERROR);
                response.questions.clone_from(&query.questions);
            }
        }),
    ),
    row(
        "XA-021",
        "catalog",
        "refuses a member zone",
        "member member2.check.example.",
        edited!(|query, response: &mut Message| {
            if is_for(query, b"member2") {
                set_rcode(response, Rcode::REFUSED);
            }
        }),
    ),
    row(
        "XA-022",
        "nsec",
        "is silent to UPDATE",
        "update without effect",
        Fault::of_responses(|query, response, _| {
            let is_update = Header::read(query).is_some_and(|header| header.opcode() == opcode::UPDATE);
            (!is_update).then_some(response)
        }),
    ),
    row(
        "XA-023",
        "nsec",
        "omits the DNAME record",
        "alias",
        edited!(|_, response: &mut Message| {
            response.records.retain(|record| record.rtype != Rtype::DNAME);
        }),
    ),
    row(
        "XA-023",
        "unsigned",
        "answers NXDOMAIN if the target is too long",
        "expected YXDOMAIN",
        edited!(|_, response: &mut Message| {
            if response.header.rcode() == Rcode::YXDOMAIN {
                set_rcode(response, Rcode::NXDOMAIN);
            }
        }),
    ),
];

/// Replaces the target of the first SRV record by a pointer to the query name.
fn compress_srv(response: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(response).ok()?;
    let mut out = Message { records: Vec::new(), ..message.clone() }.to_octets();
    let srv = message.records.iter().find(|record| record.rtype == Rtype::SRV)?;
    out[7] = 1;
    // Owner, type, class, TTL and length; then priority, weight, port and the pointer.
    out.extend_from_slice(&[0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 60, 0, 8]);
    out.extend_from_slice(&srv.rdata[..6]);
    out.extend_from_slice(&[0xc0, 12]);
    Some(out)
}
