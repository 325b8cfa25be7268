//! Items about messages that must pass unchanged: flags, OPT records, types, opcodes, TSIG, TCP, and about
//! the queries that the proxy sends.

use super::super::resolver::{Findings, item, jprs, quick};
use super::super::{Evidence, Outcome, Row, Transport};
use super::context::ProxyCheck;
use super::upstream::Z;
use crate::query::random_id;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Header, flags, opcode};
use std::collections::BTreeSet;

/// An option code for local use (RFC 6891 §9).
const UNKNOWN_OPTION: u16 = 65_001;
/// Number of queries whose IDs and ports are compared.
const SAMPLED: usize = 24;
/// Minimum number of distinct IDs of 24 random ones, and of distinct ports.
const DISTINCT: usize = 20;

/// The first case of the report of JPRS.
pub(super) const CASES: &[Row<ProxyCheck>] = &[Row {
    item: jprs(quick(item(
        "P-1",
        "OPT records and the flags DO, AD and CD pass unchanged",
        &["RFC 5625 §3", "RFC 5625 §4.1", "RFC 5625 §4.4.2", "RFC 6891 §6.2.6"],
        "Sends queries with each of the flags, with an EDNS option, and without EDNS. Query and response must be the same before and after the proxy, except for the ID.",
    ))),
    run: flags_and_opt,
}];

pub(super) const ITEMS: &[Row<ProxyCheck>] = &[
    Row {
        item: quick(item(
            "XP-001",
            "Unknown types and opcodes are forwarded",
            &["RFC 5625 §3", "RFC 5625 §4.1", "RFC 5625 §4.3"],
            "Sends queries for unknown types, and messages with the opcodes STATUS, NOTIFY, UPDATE and 15. All must arrive unchanged.",
        )),
        run: types_and_opcodes,
    },
    Row {
        item: quick(item(
            "XP-004",
            "TCP queries are accepted, and forwarded over TCP",
            &["RFC 5625 §4.4.1", "RFC 7766 §5"],
            "Sends a query over TCP. It must arrive over TCP, unchanged.",
        )),
        run: tcp,
    },
    Row {
        item: item(
            "XP-005",
            "Messages with TSIG pass unchanged",
            &["RFC 5625 §4.5", "RFC 8945 §5.5"],
            "Sends a query with a TSIG record, over UDP and TCP. The octets after the ID must be the same, or the signature would fail.",
        ),
        run: tsig,
    },
    Row {
        item: quick(item(
            "XP-006",
            "The flags AD, CD and Z pass unchanged in both directions",
            &["RFC 5625 §3", "RFC 5625 §4.1", "RFC 4035 §3.2.2", "RFC 6840 §5.7"],
            "Sends queries with AD, CD and Z without EDNS, and compares the flags of query and response.",
        )),
        run: header_flags,
    },
    Row {
        item: item(
            "XP-007",
            "Forwarded queries have random IDs and ports",
            &["RFC 5625 §6.1", "RFC 5452 §9.2"],
            "Sends 24 queries with IDs in sequence from one client, and compares IDs and source ports behind the proxy.",
        ),
        run: randomness,
    },
    Row {
        item: item(
            "XP-008",
            "The proxy does not answer on the side of the provider",
            &["RFC 5625 §6.2"],
            "Sends a query to the address of the proxy on the side of the provider (--wan).",
        ),
        run: wan,
    },
];

pub(super) fn flags_and_opt(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let mut with_option = check.query("option", Rtype::A);
    with_option.options = vec![(UNKNOWN_OPTION, vec![1, 2, 3])];
    let queries = [
        ("DO", check.query("do", Rtype::A)),
        ("EDNS without DO", check.query("edns", Rtype::A).without_do()),
        ("DO and CD", check.query("cd", Rtype::A).with_flags(flags::CD)),
        ("DO and AD", check.query("ad", Rtype::A).with_flags(flags::AD)),
        ("an EDNS option", with_option),
        ("no EDNS", check.query("plain", Rtype::A).without_edns()),
    ];
    for (what, query) in queries {
        let passed = check.pass(evidence, &query, Transport::Udp);
        findings.add(passed.is_unchanged().map_err(|fault| format!("query with {what}: {fault}")));
    }
    findings.outcome()
}

fn types_and_opcodes(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for rtype in [Rtype::DNSKEY, Rtype::DS, Rtype::NSEC3, Rtype(64), Rtype(256), Rtype(65_280), Rtype(65_000)]
    {
        let query = check.query("type", rtype);
        let passed = check.pass(evidence, &query, Transport::Udp);
        findings.add(passed.is_unchanged().map_err(|fault| format!("type {rtype}: {fault}")));
    }
    for code in [2, opcode::NOTIFY, opcode::UPDATE, 15] {
        let query = check.query("opcode", Rtype::SOA).without_edns();
        let mut octets = query.to_octets(random_id().unwrap_or(2));
        octets[2] = octets[2] & 0x87 | code << 3;
        let passed = check.pass_octets(evidence, octets, Transport::Udp);
        findings.add(passed.is_unchanged().map_err(|fault| format!("opcode {code}: {fault}")));
    }
    findings.outcome()
}

fn tcp(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for label in ["tcp", "size-4000"] {
        let query = check.query(label, Rtype::TXT);
        let passed = check.pass(evidence, &query, Transport::Tcp);
        let over_tcp = passed.forwarded().and_then(|seen| match seen.transport {
            Transport::Tcp => Ok(()),
            Transport::Udp => Err("the query over TCP was forwarded over UDP".to_owned()),
        });
        findings.add(
            over_tcp.and_then(|()| passed.is_unchanged()).map_err(|fault| format!("{}: {fault}", query.name)),
        );
    }
    findings.outcome()
}

/// A query with a TSIG record (RFC 8945 §4.2), whose MAC is not valid: the proxy has no key.
fn tsig(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for transport in [Transport::Udp, Transport::Tcp] {
        let id = random_id().unwrap_or(3);
        let mut octets = check.query("tsig", Rtype::A).without_edns().to_octets(id);
        push_tsig(id, &mut octets);
        let passed = check.pass_octets(evidence, octets, transport);
        findings.add(passed.is_unchanged().map_err(|fault| format!("{}: {fault}", transport.name())));
    }
    findings.outcome()
}

fn push_tsig(id: u16, message: &mut Vec<u8>) {
    message.extend_from_slice(b"\x03key\x00");
    message.extend_from_slice(&Rtype::TSIG.0.to_be_bytes());
    // Class ANY, TTL 0.
    message.extend_from_slice(&[0, 255, 0, 0, 0, 0]);
    let mut rdata = b"\x0bhmac-sha256\x00".to_vec();
    // Time signed, fudge, size of the MAC, MAC, original ID, error, size of other data.
    rdata.extend_from_slice(&[0, 0, 0x65, 0, 0, 0, 1, 44, 0, 32]);
    rdata.extend_from_slice(&[0xa5; 32]);
    rdata.extend_from_slice(&id.to_be_bytes());
    rdata.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
    message.extend_from_slice(&rdata);
    // ARCOUNT.
    message[11] += 1;
}

pub(super) fn header_flags(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for (what, flag) in
        [("AD", flags::AD), ("CD", flags::CD), ("Z", Z), ("AD, CD and Z", flags::AD | flags::CD | Z)]
    {
        let query = check.query("flags", Rtype::A).without_edns().with_flags(flag);
        let passed = check.pass(evidence, &query, Transport::Udp);
        let forwarded =
            passed.forwarded().map(|seen| seen.header().map_or(0, |header| header.flags) & flag == flag);
        match forwarded {
            Ok(true) => {}
            Ok(false) => findings.add(Err(format!("{what}: the proxy cleared the flag in the query"))),
            Err(fault) => findings.add(Err(format!("{what}: {fault}"))),
        }
        let received = passed.received.as_ref().ok().and_then(|octets| Header::read(octets));
        let has_flag = received.is_some_and(|header| header.flags & flag == flag);
        findings.require(has_flag, || format!("{what}: the response does not have the flag"));
    }
    findings.outcome()
}

fn randomness(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let (mut ids, mut ports) = (BTreeSet::new(), BTreeSet::new());
    let mut count = 0;
    for number in 0..SAMPLED {
        let query = check.query("random", Rtype::A);
        let passed = check.pass_octets(evidence, query.to_octets(number as u16), Transport::Udp);
        if let Ok(seen) = passed.forwarded() {
            count += 1;
            ids.extend(seen.header().map(|header| header.id));
            ports.insert(seen.client.port());
        }
    }
    if count < SAMPLED {
        return Outcome::Fail(format!("{count} of {SAMPLED} queries arrived behind the proxy"));
    }
    let mut findings = Findings::default();
    findings.require(ids.len() >= DISTINCT, || {
        format!("{count} queries have {} distinct IDs: expected random ones", ids.len())
    });
    let is_copied = ids.iter().enumerate().all(|(number, id)| usize::from(*id) == number);
    findings.require(!is_copied, || "the IDs are those of the client: expected random ones".to_owned());
    findings.require(ports.len() >= DISTINCT, || {
        format!("{count} queries have {} distinct source ports: expected random ones", ports.len())
    });
    findings.note(format!("{count} queries with {} IDs and {} ports", ids.len(), ports.len()));
    findings.outcome()
}

fn wan(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let Some(wan) = check.wan() else {
        return Outcome::NotTestable(
            "the address on the side of the provider is unknown: set --wan ADDRESS".to_owned(),
        );
    };
    let client = check.client_of(wan);
    for transport in [Transport::Udp, Transport::Tcp] {
        let octets = check.query("wan", Rtype::A).to_octets(random_id().unwrap_or(4));
        let passed = check.pass_to(&client, evidence, octets, transport);
        if passed.received.is_ok() || !passed.upstream.is_empty() {
            return Outcome::Fail(format!(
                "{wan}: the proxy accepted a query over {}: expected no answer",
                transport.name()
            ));
        }
    }
    Outcome::pass()
}
