//! The tests of RFC 8906 §8: responses to queries with unknown values (XA-015).

use super::super::{Evidence, Outcome, Query, Response, Row, Transport};
use super::cases::Cases;
use super::denial::UNKNOWN_TYPE;
use super::responses::answers;
use super::{Authoritative, Fault, quick, row};
use crate::query::random_id;
use nonesuch_proto::message::{HEADER, Header, Rcode, Section, flags};
use nonesuch_proto::{Rtype, edns};

pub(super) const ITEMS: &[Row<Authoritative>] = &[quick(row(
    "XA-015",
    "Answers unknown types, opcodes, flags, EDNS versions, flags and options correctly",
    &["RFC 8906 §8.1", "RFC 8906 §8.2", "RFC 6891 §6.1.2", "RFC 6891 §6.1.3", "RFC 6891 §6.1.4"],
    "The queries of RFC 8906 §8.1.1 to §8.1.5 and §8.2.1 to §8.2.10, with the expected response code, records and \
     flags.",
    rfc8906,
))];

/// The reserved flag of the header (RFC 1035 §4.1.1).
const Z: u16 = 0x0040;
/// An unassigned flag of EDNS, as in RFC 8906 §8.2.4.
const EDNS_Z: u16 = 0x0040;
/// An unassigned option, as in RFC 8906 §8.2.3.
const UNKNOWN_OPTION: u16 = 100;
/// An unassigned opcode, as in RFC 8906 §8.1.4.
const UNKNOWN_OPCODE: u16 = 15;

/// The expected contents of a response.
#[derive(Clone, Copy)]
enum Expected {
    /// NOERROR, AA, and the SOA record in the answer section.
    Soa,
    /// NOERROR, AA, and an empty answer section.
    NoData,
    /// BADVERS, no AA, and no SOA record.
    BadVersion,
    /// NOERROR; the response is truncated or complete.
    Dnskey,
}

/// A test of RFC 8906 §8.
struct Test {
    section: &'static str,
    change: fn(Query) -> Query,
    transport: Transport,
    expected: Expected,
}

const fn udp(section: &'static str, expected: Expected, change: fn(Query) -> Query) -> Test {
    Test { section, change, transport: Transport::Udp, expected }
}

/// The tests. Queries are for SOA at the apex, with EDNS and without DO, unless the change differs.
const TESTS: &[Test] = &[
    udp("§8.1.1 without EDNS", Expected::Soa, Query::without_edns),
    udp("§8.1.2 unknown type", Expected::NoData, |query| Query {
        rtype: UNKNOWN_TYPE,
        ..query.without_edns()
    }),
    udp("§8.1.3.1 CD", Expected::Soa, |query| query.without_edns().with_flags(flags::CD)),
    udp("§8.1.3.2 AD", Expected::Soa, |query| query.without_edns().with_flags(flags::AD)),
    udp("§8.1.3.3 reserved flag", Expected::Soa, |query| query.without_edns().with_flags(Z)),
    udp("§8.1.3.4 RD", Expected::Soa, |query| query.without_edns().with_flags(flags::RD)),
    Test {
        section: "§8.1.5 TCP",
        change: Query::without_edns,
        transport: Transport::Tcp,
        expected: Expected::Soa,
    },
    udp("§8.2.1 EDNS", Expected::Soa, |query| query),
    udp("§8.2.2 EDNS version 1", Expected::BadVersion, |query| Query { version: 1, ..query }),
    udp("§8.2.3 unknown option", Expected::Soa, with_option),
    udp("§8.2.4 unknown EDNS flag", Expected::Soa, with_flag),
    udp("§8.2.5 version 1, unknown EDNS flag", Expected::BadVersion, |query| Query {
        version: 1,
        ..with_flag(query)
    }),
    udp("§8.2.6 version 1, unknown option", Expected::BadVersion, |query| Query {
        version: 1,
        ..with_option(query)
    }),
    udp("§8.2.7 truncation", Expected::Dnskey, |query| Query {
        rtype: Rtype::DNSKEY,
        edns_flags: edns::DO,
        payload: Some(512),
        ..query
    }),
    udp("§8.2.8 DO", Expected::Soa, |query| Query { edns_flags: edns::DO, ..query }),
    udp("§8.2.9 version 1, DO", Expected::BadVersion, |query| Query {
        version: 1,
        edns_flags: edns::DO,
        ..query
    }),
    udp("§8.2.10 several options", Expected::Soa, |query| {
        let options = vec![
            (edns::COOKIE, vec![1, 2, 3, 4, 5, 6, 7, 8]),
            (edns::NSID, Vec::new()),
            (edns::EXPIRE, Vec::new()),
            // Family 1, and no octet of the address (RFC 7871 §6).
            (edns::CLIENT_SUBNET, vec![0, 1, 0, 0]),
        ];
        Query { options, ..query }
    }),
];

fn with_option(query: Query) -> Query {
    Query { options: vec![(UNKNOWN_OPTION, Vec::new())], ..query }
}

fn with_flag(query: Query) -> Query {
    Query { edns_flags: query.edns_flags | EDNS_Z, ..query }
}

/// XA-015.
fn rfc8906(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    for test in TESTS {
        cases.add(test.section, run(check, evidence, test));
    }
    cases.add("§8.1.4 unknown opcode", unknown_opcode(check, evidence));
    cases.outcome()
}

fn run(check: &Authoritative, evidence: &mut Evidence, test: &Test) -> Result<(), Fault> {
    let query = (test.change)(check.query(&check.zone, Rtype::SOA).without_do());
    let response =
        check.client.ask_over(evidence, &query, test.transport).map_err(|fault| fault.to_string())?;
    check_contents(check, &response, test.expected)?;
    check_flags(&query, &response)?;
    check_opt(&query, &response)
}

fn check_contents(check: &Authoritative, response: &Response, expected: Expected) -> Result<(), Fault> {
    let message = &response.message;
    let (rcode, has_aa) = (message.rcode(), response.has(flags::AA));
    let records = message.section(Section::Answer).count();
    let has_soa = answers(message, &check.zone, Rtype::SOA).next().is_some();
    let is_correct = match expected {
        Expected::Soa => rcode == Rcode::NOERROR && has_aa && has_soa,
        Expected::NoData => rcode == Rcode::NOERROR && has_aa && records == 0,
        Expected::BadVersion => rcode == Rcode::BADVERS && !has_aa && !has_soa,
        Expected::Dnskey => rcode == Rcode::NOERROR,
    };
    if is_correct {
        return Ok(());
    }
    let wanted = match expected {
        Expected::Soa => "NOERROR with AA and the SOA record",
        Expected::NoData => "NOERROR with AA and an empty answer section",
        Expected::BadVersion => "BADVERS without AA and without the SOA record",
        Expected::Dnskey => "NOERROR",
    };
    let aa = if has_aa { "with" } else { "without" };
    Err(format!(
        "expected {wanted}, the response has {rcode} {aa} AA and {records} records in the answer section"
    ))
}

/// The reserved flag is clear, and RD is copied (RFC 8906 §8.1.3). AD is clear unless the query has AD, or DO in a
/// version that the server implements (RFC 8906 §8.1.3.2, §8.2.7 and §8.2.8).
fn check_flags(query: &Query, response: &Response) -> Result<(), Fault> {
    if response.has(Z) {
        return Err("the response has the reserved flag".to_owned());
    }
    if response.has(flags::RD) != (query.flags & flags::RD != 0) {
        return Err("the flag RD of the response is not that of the query".to_owned());
    }
    let has_do = query.edns_flags & edns::DO != 0 && query.payload.is_some();
    let may_have_ad = query.flags & flags::AD != 0 || has_do && query.version == 0;
    if response.has(flags::AD) && !may_have_ad {
        return Err("the response has the flag AD".to_owned());
    }
    Ok(())
}

/// The OPT record: as in the query, version 0, without unknown flags and options.
fn check_opt(query: &Query, response: &Response) -> Result<(), Fault> {
    let opt = response.message.opt();
    let Some(opt) = opt else {
        let is_expected = query.payload.is_none();
        return if is_expected { Ok(()) } else { Err("the response has no OPT record".to_owned()) };
    };
    if query.payload.is_none() {
        return Err("the response has an OPT record, the query has none".to_owned());
    }
    let version = opt.ttl >> 16 & 0xff;
    if version != 0 {
        return Err(format!("the response has EDNS version {version}, expected 0"));
    }
    if opt.ttl as u16 & EDNS_Z != 0 {
        return Err("the response has the unknown EDNS flag".to_owned());
    }
    if edns::Options::new(&opt.rdata).any(|(code, _)| code == UNKNOWN_OPTION) {
        return Err("the response has the unknown option".to_owned());
    }
    let has_signature = response.message.records.iter().any(|record| record.rtype == Rtype::RRSIG);
    if has_signature && opt.ttl as u16 & edns::DO == 0 {
        return Err("the response has RRSIG records and lacks DO".to_owned());
    }
    Ok(())
}

/// A message that is only a header, with an unassigned opcode.
fn unknown_opcode(check: &Authoritative, evidence: &mut Evidence) -> Result<(), Fault> {
    let id = random_id().map_err(|fault| fault.to_string())?;
    let query = Header { id, flags: UNKNOWN_OPCODE << 11, counts: [0; 4] }.to_octets();
    let octets = check.client.send(evidence, &query, Transport::Udp).map_err(|fault| fault.to_string())?;
    let Some(header) = Header::read(&octets) else { return Err("the response has no header".to_owned()) };
    if header.rcode() != Rcode::NOTIMP {
        return Err(format!("expected NOTIMP, the response has {}", header.rcode()));
    }
    if u16::from(header.opcode()) != UNKNOWN_OPCODE {
        return Err(format!("expected the opcode {UNKNOWN_OPCODE}, the response has {}", header.opcode()));
    }
    for (name, flag) in [("AA", flags::AA), ("RD", flags::RD), ("AD", flags::AD)] {
        if header.flags & flag != 0 {
            return Err(format!("the response has the flag {name}"));
        }
    }
    match octets.len() {
        HEADER => Ok(()),
        length => Err(format!("expected a response without records, received {length} octets")),
    }
}
