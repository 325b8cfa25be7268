//! Items about UDP and TCP between resolver and servers.

use super::super::authority::Observation;
use super::super::zones::{DROPPED_OVER, Role, SLOW, sized_name};
use super::super::{Evidence, Exchange, Outcome, Row, Transport};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::sizes::{payload_note, payloads};
use super::{item, quick};
use crate::query::{TcpClient, random_id};
use nonesuch_proto::message::{Header, Rcode, Section};
use nonesuch_proto::{Name, Rtype, edns};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Instant;

/// The recommended maximum UDP payload size in octets, for paths with an MTU of 1,500 octets (RFC 9715 §3.2,
/// R5, and appendix A).
const UNFRAGMENTED: u16 = 1400;
/// Number of queries on one connection.
const PIPELINED: usize = 6;
/// Number of names whose queries show IDs and ports.
const SAMPLED: usize = 48;
/// Minimum share of distinct IDs: 48 random numbers of 16 bits are distinct with a probability of 98 %.
const DISTINCT_IDS: f64 = 0.9;
/// Minimum number of distinct ports.
const DISTINCT_PORTS: usize = 4;

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: quick(item(
            "XF-001",
            "The resolver repeats a query over TCP after a response with TC=1",
            &["RFC 7766 §5", "RFC 2181 §9"],
            "The server of a zone truncates every response over UDP. The name must be answered, and the server must see the query over TCP.",
        )),
        run: tcp_after_tc,
    },
    Row {
        item: item(
            "XF-002",
            "The resolver answers several queries on one TCP connection",
            &["RFC 7766 §6.2.1.1", "RFC 7766 §7"],
            "Sends six queries on one connection without waiting; the first is for a name of a slow server. All must be answered. The order is reported.",
        ),
        run: pipelining,
    },
    Row {
        item: item(
            "XF-003",
            "Lost large responses do not prevent an answer; the announced payload size is reported",
            &["RFC 9715 §3.2", "RFC 6891 §6.2.5"],
            "The server of a zone drops responses over UDP of more than 1,232 octets; its answer of 1,400 octets must be found. RFC 9715 recommends to announce at most 1,400 octets, which is reported.",
        ),
        run: fragments,
    },
    Row {
        item: quick(item(
            "XF-004",
            "The queries of the resolver have DO=1",
            &["RFC 4035 §3.2.1", "RFC 4035 §4.1", "RFC 6840 §5.9"],
            "Reads the queries of the resolver for a signed zone. All must have an OPT record with DO. The flags CD and RD are reported.",
        )),
        run: dnssec_ok,
    },
    Row {
        item: item(
            "XF-007",
            "DNS cookies are used correctly, or not at all",
            &["RFC 7873 §4", "RFC 7873 §5.1", "RFC 7873 §5.2.2", "RFC 7873 §5.2.3", "RFC 7873 §5.2.5"],
            "Sends a client cookie, then the returned server cookie, then a malformed cookie. Searches for client cookies in the queries of the resolver to a server that supports cookies: it must return the server cookie of that server.",
        ),
        run: cookies,
    },
    Row {
        item: quick(item(
            "XF-008",
            "The queries of the resolver have random IDs and ports",
            &["RFC 5452 §9.2"],
            "Asks for 48 new names, and compares IDs and source ports of the queries of the resolver over UDP.",
        )),
        run: randomness,
    },
];

fn tcp_after_tc(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let name = check.name("www.truncates");
    let asked = check.lookup(evidence, &name, Rtype::A);
    let mut findings = Findings::default();
    match asked.status() {
        Ok(Status::Fails) => findings.add(Err(format!("{name}: expected an answer, observed SERVFAIL"))),
        Ok(_) => {}
        Err(fault) => findings.add(Err(format!("{name}: {fault}"))),
    }
    let zone = check.name("truncates");
    let over_tcp =
        asked.upstream.iter().filter(|seen| seen.transport == Transport::Tcp && seen.is_at_or_below(&zone));
    findings.require(over_tcp.count() > 0, || "the servers saw no query over TCP".to_owned());
    findings.outcome()
}

fn pipelining(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let label = check.fresh_label();
    let slow = check.name(&format!("{label}.wild.slow"));
    let fast = (1..PIPELINED).map(|_| {
        let label = check.fresh_label();
        check.name(&format!("{label}.wild.plain"))
    });
    let names: Vec<Name> = std::iter::once(slow).chain(fast).collect();
    match exchange_pipelined(check, evidence, &names) {
        Err(fault) => Outcome::Fail(fault),
        Ok(order) if order.len() < names.len() => Outcome::Fail(format!(
            "expected {} responses on the connection, observed {}",
            names.len(),
            order.len()
        )),
        Ok(order) if order.first() == Some(&0) => Outcome::Pass(format!(
            "answers in the order of the queries, although the first takes {} ms",
            SLOW.as_millis()
        )),
        Ok(_) => Outcome::Pass("answers out of order".to_owned()),
    }
}

/// Sends queries for A records of `names` on one connection; returns the order of the responses.
fn exchange_pipelined(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    names: &[Name],
) -> Result<Vec<usize>, String> {
    let client = check.client().clone();
    let start = Instant::now();
    // Several slow queries may lead to the answer.
    let deadline = start + client.timeout * client.attempts + SLOW;
    let first_id = random_id().map_err(|fault| fault.to_string())?;
    let queries: Vec<Vec<u8>> = (0..)
        .zip(names)
        .map(|(number, name)| lookup(name, Rtype::A).to_octets(first_id.wrapping_add(number)))
        .collect();
    let mut connection = TcpClient::connect(client.server, deadline).map_err(|fault| fault.to_string())?;
    for query in &queries {
        connection.send(query, deadline).map_err(|fault| fault.to_string())?;
    }
    let mut replies: HashMap<usize, Result<Vec<u8>, String>> = HashMap::new();
    let mut order = Vec::new();
    let mut fault = None;
    while order.len() < queries.len() && fault.is_none() {
        match connection.receive(deadline) {
            Err(found) => fault = Some(found.to_string()),
            Ok(reply) => {
                let id = Header::read(&reply).map(|header| usize::from(header.id.wrapping_sub(first_id)));
                match id.filter(|index| *index < queries.len() && !replies.contains_key(index)) {
                    None => fault = Some("a response has an ID of no query".to_owned()),
                    Some(index) => {
                        order.push(index);
                        replies.insert(index, Ok(reply));
                    }
                }
            }
        }
    }
    for (index, query) in queries.into_iter().enumerate() {
        let missing = || Err(fault.clone().unwrap_or_else(|| "no response".to_owned()));
        let reply = replies.remove(&index).unwrap_or_else(missing);
        let (server, transport, elapsed) = (client.server, Transport::Tcp, start.elapsed());
        evidence.push(Exchange { sender: "check", server, transport, query, reply, elapsed });
    }
    check.new_observations(evidence);
    Ok(order)
}

fn fragments(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let zone = check.name("drop-large");
    let Some(name) = sized_name(1400, &zone) else { return Outcome::pass() };
    let asked = check.lookup(evidence, &name, Rtype::TXT);
    let payloads = payloads(&asked.upstream);
    let largest = payloads.iter().max().copied().unwrap_or_default();
    if largest > UNFRAGMENTED {
        findings.note(format!("announces {largest} octets to authoritative servers; RFC 9715 §3.2 recommends at most {UNFRAGMENTED}"));
    }
    if !check.is_separate(Role::DropsLarge) {
        findings.note("the loss of large responses was not tested, because the servers have one address");
        return findings.outcome();
    }
    match asked.status() {
        Ok(Status::Secure) => findings.note(payload_note(&payloads)),
        Ok(found) => findings.add(Err(format!(
            "{name}: responses over UDP of more than {DROPPED_OVER} octets are lost: expected a secure answer, observed {}",
            found.name()
        ))),
        Err(fault) => findings.add(Err(format!("{name}: {fault}"))),
    }
    findings.outcome()
}

fn dnssec_ok(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let label = check.fresh_label();
    let name = check.name(&format!("{label}.wild.special"));
    let asked = check.lookup(evidence, &name, Rtype::A);
    if asked.upstream.is_empty() {
        return Outcome::Fail(
            "the servers of the check saw no query: the resolver does not use them".to_owned(),
        );
    }
    let mut findings = Findings::default();
    let without =
        asked.upstream.iter().filter(|seen| seen.edns().is_none_or(|(_, flags, _)| flags & edns::DO == 0));
    let without: Vec<String> =
        without.filter_map(Observation::question).map(|(name, rtype)| format!("{name} {rtype}")).collect();
    findings.require(without.is_empty(), || {
        format!(
            "{} of {} queries have no DO flag: {}",
            without.len(),
            asked.upstream.len(),
            without.join(", ")
        )
    });
    let count = |flag: u16| {
        asked
            .upstream
            .iter()
            .filter_map(Observation::header)
            .filter(|header| header.flags & flag != 0)
            .count()
    };
    let (cd, rd) = (count(nonesuch_proto::message::flags::CD), count(nonesuch_proto::message::flags::RD));
    findings.note(format!("{} queries, {cd} with CD, {rd} with RD", asked.upstream.len()));
    findings.outcome()
}

fn cookies(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    match server_cookies(check, evidence) {
        Ok(note) => findings.note(note),
        Err(failure) => findings.add(Err(failure)),
    }
    let zone = check.name("cookies");
    let mut upstream = Vec::new();
    for _ in 0..3 {
        let label = check.fresh_label();
        let name = check.name(&format!("{label}.wild.cookies"));
        upstream.extend(check.lookup(evidence, &name, Rtype::A).upstream);
    }
    let server = check.tree().zone_of(zone.view()).map(|found| IpAddr::from(found.server));
    let sent: Vec<Option<Vec<u8>>> = upstream
        .iter()
        .filter(|seen| {
            seen.is_at_or_below(&zone) && Some(seen.server.ip()) == server && seen.transport == Transport::Udp
        })
        .map(|seen| seen.option(edns::COOKIE))
        .collect();
    let with: Vec<&Vec<u8>> = sent.iter().flatten().collect();
    if with.is_empty() {
        findings.note("sends no cookies to servers, which is optional");
    } else {
        let lengths_fit = with.iter().all(|cookie| cookie.len() == 8 || (16..=40).contains(&cookie.len()));
        findings.require(lengths_fit, || "a query has a cookie of a wrong length".to_owned());
        let returned = with.iter().skip(1).all(|cookie| cookie.len() > 8);
        findings.require(returned, || "a later query to the same server has no server cookie".to_owned());
        findings.note(format!("{} of {} queries to a server with cookies have one", with.len(), sent.len()));
    }
    findings.outcome()
}

/// Asks with a client cookie, with the returned server cookie, and with a malformed one. Returns a note.
fn server_cookies(check: &mut ResolverCheck, evidence: &mut Evidence) -> Result<&'static str, String> {
    let name = check.name("www.plain");
    let client_cookie = *b"\x11\x22\x33\x44\x55\x66\x77\x88";
    let mut query = lookup(&name, Rtype::A);
    query.options = vec![(edns::COOKIE, client_cookie.to_vec())];
    let cookie_of = |response: &super::super::Response| {
        let opt = response.message.opt()?;
        let found = edns::Options::new(&opt.rdata).find(|(code, _)| *code == edns::COOKIE);
        found.map(|(_, data)| data.to_vec())
    };
    let asked = check.ask(evidence, &query);
    let response = asked.ok()?;
    if response.message.rcode() != Rcode::NOERROR && response.message.rcode() != Rcode::BADCOOKIE {
        return Err(format!(
            "a query with a client cookie: expected NOERROR, observed {}",
            response.message.rcode()
        ));
    }
    let Some(cookie) = cookie_of(response) else {
        return Ok("has no cookies for clients, which is optional");
    };
    if cookie.get(..8) != Some(&client_cookie) || !(16..=40).contains(&cookie.len()) {
        return Err(format!(
            "expected the client cookie and 8 to 32 octets, observed a cookie of {} octets",
            cookie.len()
        ));
    }
    query.options = vec![(edns::COOKIE, cookie)];
    let rcode = check.ask(evidence, &query).ok()?.message.rcode();
    if rcode != Rcode::NOERROR {
        return Err(format!("a query with the server cookie: expected NOERROR, observed {rcode}"));
    }
    // RFC 7873 §5.2.2: a cookie of a wrong length is a format error.
    query.options = vec![(edns::COOKIE, vec![1; 5])];
    let rcode = check.ask(evidence, &query).ok()?.message.rcode();
    if rcode != Rcode::FORMERR {
        return Err(format!("a query with a cookie of 5 octets: expected FORMERR, observed {rcode}"));
    }
    Ok("returns cookies to clients")
}

fn randomness(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut upstream = Vec::new();
    for _ in 0..SAMPLED {
        let label = check.fresh_label();
        let name = check.name(&format!("{label}.wild.plain"));
        upstream.extend(check.lookup(evidence, &name, Rtype::A).upstream);
    }
    let over_udp: Vec<&Observation> =
        upstream.iter().filter(|seen| seen.transport == Transport::Udp).collect();
    let ids: Vec<u16> = over_udp.iter().filter_map(|seen| seen.header()).map(|header| header.id).collect();
    let ports: Vec<u16> = over_udp.iter().map(|seen| seen.client.port()).collect();
    if ids.len() < SAMPLED / 2 {
        return Outcome::NotTestable(format!(
            "the servers saw only {} queries over UDP for {SAMPLED} names",
            ids.len()
        ));
    }
    let distinct = |values: &[u16]| values.iter().collect::<BTreeSet<_>>().len();
    // Of the differences of random numbers, few are equal.
    let is_sequence = |values: &[u16]| {
        let steps: Vec<u16> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let small = steps.iter().filter(|step| (1..=4).contains(*step)).count();
        small * 2 > steps.len()
    };
    let mut findings = Findings::default();
    let (distinct_ids, distinct_ports) = (distinct(&ids), distinct(&ports));
    findings.require(distinct_ids as f64 >= DISTINCT_IDS * ids.len() as f64 && !is_sequence(&ids), || {
        format!("{} queries have {distinct_ids} distinct IDs: expected random ones", ids.len())
    });
    findings.require(distinct_ports >= DISTINCT_PORTS && !is_sequence(&ports), || {
        format!("{} queries have {distinct_ports} distinct source ports: expected random ones", ports.len())
    });
    findings.note(format!("{} queries with {distinct_ids} IDs and {distinct_ports} ports", ids.len()));
    let is_mixed = |seen: &&&Observation| {
        seen.question().is_some_and(|(name, _)| name.wire().iter().any(u8::is_ascii_uppercase))
    };
    if over_udp.iter().filter(is_mixed).count() > 0 {
        findings.note("names have random case (0x20)");
    }
    findings.outcome()
}

/// Whether a response has an answer of the type.
pub(super) fn has_answer(response: &super::super::Response, rtype: Rtype) -> bool {
    response.message.section(Section::Answer).any(|record| record.rtype == rtype)
}
