//! TCP connections, NOTIFY, and the form of names (XA-011, XA-013, XA-014).

use super::super::{Evidence, Exchange, Outcome, Query, Response, Row, Transport};
use super::cases::Cases;
use super::responses::{compressed_types, expect_rcode};
use super::{Authoritative, Fault, quick, row};
use crate::query::{QueryFault, TcpClient, random_id};
use nonesuch_proto::message::{Header, Message, Rcode, flags, opcode};
use nonesuch_proto::{Name, Rtype, edns};
use std::time::Instant;

pub(super) const PIPELINING: &[Row<Authoritative>] = &[quick(row(
    "XA-011",
    "Answers several queries on one TCP connection",
    &["RFC 7766 §6.2.1", "RFC 7766 §6.2.1.1", "RFC 7828 §3.3.1", "RFC 7828 §3.3.2"],
    "Five queries at once on one connection, each answered in any order; then another query on the same connection, \
     with the option edns-tcp-keepalive. Over UDP the response must not have this option.",
    tcp_connection,
))];

pub(super) const ITEMS: &[Row<Authoritative>] = &[
    quick(row(
        "XA-013",
        "Answers NOTIFY",
        &["RFC 1996 §4.7", "RFC 1996 §3.10", "RFC 1996 §3.12", "RFC 8906 §3.1.4"],
        "A NOTIFY message for the zone, from an address that is not a primary. Any of NOERROR, REFUSED, NOTAUTH and \
         NOTIMP is an answer. A server may ignore the message: then the item is not testable.",
        notify,
    )),
    quick(row(
        "XA-014",
        "Preserves the case of the query name, and compresses no names in RDATA of newer types",
        &["RFC 1034 §3.1", "RFC 4343 §4.1", "RFC 3597 §4", "RFC 4034 §3.1.7", "RFC 4034 §4.1.1"],
        "Queries with names in mixed case: the question of the response has the same octets. Responses with RRSIG, NSEC \
         and, in a test zone, SRV, NAPTR, RP, AFSDB, KX, SVCB, HTTPS and DNAME records.",
        names,
    )),
];

/// XA-011.
fn tcp_connection(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    match pipeline(check, evidence) {
        Ok(keepalive) => {
            cases.add("connection", Ok(()));
            cases.note(keepalive);
        }
        Err(fault) => cases.add("connection", Err(fault)),
    }
    let mut query = check.query(&check.zone, Rtype::SOA);
    query.options.push((edns::KEEPALIVE, Vec::new()));
    let result = check.client.ask_over(evidence, &query, Transport::Udp);
    let result = result.map_err(|fault| fault.to_string()).and_then(|response| {
        expect_rcode(&response, &[Rcode::NOERROR])?;
        if keepalive_of(&response.message).is_some() {
            return Err("the response over UDP has the option edns-tcp-keepalive".to_owned());
        }
        Ok(())
    });
    cases.add("edns-tcp-keepalive over UDP", result);
    cases.outcome()
}

fn keepalive_of(message: &Message) -> Option<Vec<u8>> {
    let opt = message.opt()?;
    edns::Options::new(&opt.rdata).find(|(code, _)| *code == edns::KEEPALIVE).map(|(_, data)| data.to_vec())
}

/// Returns the idle timeout that the server announces, as text.
fn pipeline(check: &Authoritative, evidence: &mut Evidence) -> Result<String, Fault> {
    let missing = check.random_name(&check.zone)?;
    let questions = [
        (&check.zone, Rtype::SOA),
        (&check.zone, Rtype::NS),
        (&check.zone, Rtype::DNSKEY),
        (&missing, Rtype::A),
        (&check.zone, Rtype::TXT),
    ];
    let fail = |fault: QueryFault| fault.to_string();
    let mut queries = Vec::new();
    for (name, rtype) in questions {
        queries.push(check.query(name, rtype).to_octets(random_id().map_err(fail)?));
    }
    let deadline = Instant::now() + check.client.timeout;
    let mut connection = TcpClient::connect(check.client.server, deadline).map_err(fail)?;
    for query in &queries {
        connection.send(query, deadline).map_err(fail)?;
    }
    let count = queries.len();
    for received in 0..count {
        let started_at = Instant::now();
        let message = connection.receive(deadline);
        let message = message.map_err(|fault| format!("{received} of {count} queries answered: {fault}"))?;
        let answered = queries.iter().position(|query| crate::query::is_response(query, &message));
        let Some(answered) = answered else {
            return Err("a response answers none of the queries".to_owned());
        };
        let query = queries.swap_remove(answered);
        evidence.push(exchange(check, query, message, started_at));
    }
    let mut query = check.query(&check.zone, Rtype::SOA);
    query.options.push((edns::KEEPALIVE, Vec::new()));
    let query = query.to_octets(random_id().map_err(fail)?);
    let deadline = Instant::now() + check.client.timeout;
    let started_at = Instant::now();
    let reply = connection.send(&query, deadline).and_then(|()| connection.receive(deadline));
    let octets = reply.map_err(|fault| format!("a further query on the same connection: {fault}"))?;
    evidence.push(exchange(check, query, octets.clone(), started_at));
    let response = Message::parse(&octets).map_err(|error| error.to_string())?;
    keepalive_text(&response)
}

fn exchange(check: &Authoritative, query: Vec<u8>, reply: Vec<u8>, started_at: Instant) -> Exchange {
    Exchange {
        sender: "check",
        server: check.client.server,
        transport: Transport::Tcp,
        query,
        reply: Ok(reply),
        elapsed: started_at.elapsed(),
    }
}

fn keepalive_text(response: &Message) -> Result<String, Fault> {
    let Some(data) = keepalive_of(response) else { return Ok("announces no idle timeout".to_owned()) };
    match edns::read_keepalive(&data) {
        Some(Some(tenths)) => Ok(format!("idle timeout {}.{} s", tenths / 10, tenths % 10)),
        // RFC 7828 §3.3.2: the option of a server has a timeout.
        _ => Err(format!(
            "the option edns-tcp-keepalive of the response has {} octets, expected 2",
            data.len()
        )),
    }
}

/// XA-013.
fn notify(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    match send_notify(check, evidence) {
        Ok(Some(rcode)) => {
            let is_answer = matches!(rcode, Rcode::NOERROR | Rcode::REFUSED | Rcode::NOTAUTH | Rcode::NOTIMP);
            let result = if is_answer {
                Ok(())
            } else {
                Err(format!("expected NOERROR, REFUSED, NOTAUTH or NOTIMP, the response has {rcode}"))
            };
            cases.add("NOTIFY", result);
            cases.note(format!("answers {rcode}"));
        }
        Ok(None) => cases.skip("the server does not answer NOTIFY from an address that is not a primary"),
        Err(fault) => cases.add("NOTIFY", Err(fault)),
    }
    cases.outcome()
}

/// The response code; `None`: the server ignores the message, as RFC 1996 §3.10 permits.
fn send_notify(check: &Authoritative, evidence: &mut Evidence) -> Result<Option<Rcode>, Fault> {
    let id = random_id().map_err(|fault| fault.to_string())?;
    let mut query = check.query(&check.zone, Rtype::SOA).without_edns().to_octets(id);
    // RFC 1996 §4.5: the flag AA, and the opcode NOTIFY.
    let word = u16::from(opcode::NOTIFY) << 11 | flags::AA;
    query[2..4].copy_from_slice(&word.to_be_bytes());
    let octets = match check.client.send(evidence, &query, Transport::Udp) {
        Err(QueryFault::TimedOut(_)) => return Ok(None),
        result => result.map_err(|fault| fault.to_string())?,
    };
    let header = Header::read(&octets).ok_or("the response has no header")?;
    Ok(Some(header.rcode()))
}

/// XA-014.
fn names(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if let Err(fault) = name_cases(check, evidence, &mut cases) {
        cases.add("names", Err(fault));
    }
    cases.outcome()
}

fn name_cases(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let missing = check.random_name(&check.zone)?;
    let mut questions =
        vec![(check.zone.clone(), Rtype::SOA), (check.zone.clone(), Rtype::DNSKEY), (missing, Rtype::A)];
    if check.is_test_zone {
        for rtype in [Rtype::SRV, NAPTR, RP, AFSDB, KX, SVCB, HTTPS] {
            questions.push((check.name("types")?, rtype));
        }
        questions.push((check.name("redirect")?, Rtype::DNAME));
        questions.push((check.name("www")?, Rtype::A));
    }
    for (name, rtype) in questions {
        let name = mixed_case(&name);
        let response = check.ask(evidence, &Query::new(name.clone(), rtype));
        cases.add(&format!("{name} {rtype}"), response.and_then(|response| check_names(&response, &name)));
    }
    Ok(())
}

const NAPTR: Rtype = Rtype(35);
const RP: Rtype = Rtype(17);
const AFSDB: Rtype = Rtype(18);
const KX: Rtype = Rtype(36);
const SVCB: Rtype = Rtype(64);
const HTTPS: Rtype = Rtype(65);

/// The name with letters in upper and lower case in turn.
fn mixed_case(name: &Name) -> Name {
    let change = |(index, letter): (usize, char)| {
        if index % 2 == 0 { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
    };
    let text: String = name.to_string().chars().enumerate().map(change).collect();
    text.parse().unwrap_or_else(|_| name.clone())
}

fn check_names(response: &Response, name: &Name) -> Result<(), Fault> {
    expect_rcode(response, &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
    // Names are equal without regard to case, so the octets are compared.
    let question = response.message.questions.first().map(|question| question.name.wire());
    if question != Some(name.wire()) {
        return Err("the question of the response has the letters in another case".to_owned());
    }
    match compressed_types(response)[..] {
        [] => Ok(()),
        [rtype, ..] => Err(format!("names in the RDATA of {rtype} are compressed")),
    }
}
