//! Items about the sizes of messages: F-85, F-86 and F-87 of the report of JPRS.
//!
//! Answers of exact sizes come from signed and from unsigned zones. The resolver receives them from the
//! servers of the check, and the client receives them from the resolver.

use super::super::authority::Observation;
use super::super::zones::{SizedZone, sized_name};
use super::super::{Evidence, Outcome, Query, Response, Row, Transport};
use super::context::{Asked, ResolverCheck};
use super::faults::Findings;
use super::{item, jprs, quick};
use nonesuch_proto::message::{Section, flags};
use nonesuch_proto::{Name, Rtype};

/// Payload size of the client, in octets.
const LARGE: u16 = 4096;
/// The size that security-aware servers and resolvers must support (RFC 4035 §3 and §4.1).
const REQUIRED: usize = 1220;
/// The size that they should support.
const WANTED: usize = 4000;
/// The size without EDNS (RFC 1035 §2.3.4).
const PLAIN: usize = 512;

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: jprs(quick(item(
            "F-85",
            "The resolver exchanges UDP messages of more than 512 octets with EDNS",
            &[
                "RFC 6891 §6.1.1",
                "RFC 6891 §6.2.3",
                "RFC 4035 §3",
                "RFC 4035 §4.1",
                "RFC 2181 §9",
                "RFC 7766 §5",
            ],
            "Asks for DNSKEY of a signed zone and for TXT RRsets of 513 octets of a signed and an unsigned zone, with the payload sizes 4,096 and 512. The large answers must arrive over UDP with an OPT record; with 512, TC is set and TCP has the answer. The queries of the resolver must announce more than 512 octets.",
        ))),
        run: f85,
    },
    Row {
        item: jprs(quick(item(
            "F-86",
            "The resolver handles UDP messages of 1,220 octets",
            &["RFC 4035 §3", "RFC 4035 §4.1", "RFC 2181 §9", "RFC 7766 §5"],
            "Asks for TXT RRsets whose responses have exactly 1,220 octets, of a signed and an unsigned zone, with the payload sizes 4,096 and 512. The first must arrive over UDP; with 512, TC is set and TCP has the answer. How the response reached the resolver is reported.",
        ))),
        run: |check, evidence| sized(check, evidence, REQUIRED),
    },
    Row {
        item: jprs(quick(item(
            "F-87",
            "The resolver handles answers of 4,000 octets",
            &["RFC 4035 §3", "RFC 4035 §4.1", "RFC 9715 §3.1", "RFC 9715 §3.2", "RFC 2181 §9", "RFC 7766 §5"],
            "As F-86, with responses of exactly 4,000 octets. A resolver that limits its UDP messages by policy must set TC, and have the answer over TCP.",
        ))),
        run: |check, evidence| sized(check, evidence, WANTED),
    },
    Row {
        item: item(
            "XF-009",
            "Responses of exactly the size that the client accepts arrive over UDP, larger ones set TC",
            &[
                "RFC 1035 §4.2.1",
                "RFC 4035 §3",
                "RFC 6891 §6.2.3",
                "RFC 9715 §3.1",
                "RFC 2181 §9",
                "RFC 7766 §5",
            ],
            "Asks without EDNS for a response below 512 octets and for a larger one, and with the payload sizes 1,220 and 1,232 for responses of these sizes and for larger ones. Every larger answer must have TC and be complete over TCP. Above 1,220 octets, the resolver may have a limit of its own.",
        ),
        run: limits,
    },
];

fn f85(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let apex = check.name(SizedZone::Signed.label());
    let asked = check.ask(evidence, &query(&apex, Rtype::DNSKEY, LARGE));
    findings.add(dnskey(&asked));
    for zone in SizedZone::ALL {
        let size = PLAIN + 1;
        let Some(name) = sized_name(size, &check.name(zone.label())) else { continue };
        findings.add(large_answer(check, evidence, &name, size).map(drop));
        findings.add(small_payload(check, evidence, &name));
    }
    let payloads = payloads(&asked.upstream);
    if let Some(smallest) = payloads.iter().min() {
        findings.require(usize::from(*smallest) > PLAIN, || {
            format!("the queries of the resolver announce {smallest} octets: expected more than 512")
        });
    }
    if let Ok(response) = &asked.response {
        findings.note(format!("announces {} octets to clients", announced(response)));
    }
    findings.note(payload_note(&payloads));
    findings.outcome()
}

/// The response has DNSKEY records with a signature and an OPT record.
fn dnskey(asked: &Asked) -> Result<(), String> {
    let response = asked.ok()?;
    let has = |rtype| response.message.section(Section::Answer).any(|record| record.rtype == rtype);
    if !has(Rtype::DNSKEY) || !has(Rtype::RRSIG) {
        return Err("DNSKEY of a signed zone: expected DNSKEY and RRSIG records, observed none".to_owned());
    }
    if response.message.opt().is_none() {
        return Err("DNSKEY of a signed zone: the response has no OPT record".to_owned());
    }
    Ok(())
}

/// The answer of a size: over UDP, or limited by policy and complete over TCP.
fn sized(check: &mut ResolverCheck, evidence: &mut Evidence, size: usize) -> Outcome {
    let mut findings = Findings::default();
    for zone in SizedZone::ALL {
        let Some(name) = sized_name(size, &check.name(zone.label())) else { continue };
        match large_answer(check, evidence, &name, size) {
            Ok(note) => findings.note(note),
            Err(failure) => findings.add(Err(failure)),
        }
        findings.add(small_payload(check, evidence, &name));
    }
    findings.outcome()
}

/// Asks for a large answer with the payload size 4,096. Returns a note about the transport.
fn large_answer(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    name: &Name,
    size: usize,
) -> Result<String, String> {
    let query = query(name, Rtype::TXT, LARGE);
    let asked = check.observe(evidence, |client, evidence| client.ask_over(evidence, &query, Transport::Udp));
    let response = asked.ok()?;
    let upstream = upstream_note(&asked.upstream, name, size);
    if !response.has(flags::TC) {
        complete(response, name)?;
        if response.octets.len() < size {
            return Err(format!("{name}: expected {size} octets, observed {}", response.octets.len()));
        }
        return Ok(upstream);
    }
    // RFC 4035 §3: a message size of at least 1,220 octets must be supported.
    if size <= REQUIRED {
        return Err(format!(
            "{name}: expected {size} octets over UDP, observed TC=1 for a client that accepts 4,096"
        ));
    }
    let over_tcp =
        check.observe(evidence, |client, evidence| client.ask_over(evidence, &query, Transport::Tcp));
    complete(over_tcp.ok()?, name)?;
    Ok(join([
        &format!("limited by policy (RFC 9715), answered over TCP; announces {} octets", announced(response)),
        &upstream,
    ]))
}

/// How the answer reached the resolver.
fn upstream_note(upstream: &[Observation], name: &Name, size: usize) -> String {
    let of_name = |wanted: Transport| {
        upstream.iter().any(|seen| {
            seen.is_for(name)
                && seen.transport == wanted
                && seen.reply.as_ref().is_some_and(|reply| reply.len() == size)
        })
    };
    match (of_name(Transport::Udp), of_name(Transport::Tcp)) {
        (true, false) => format!("the resolver received {size} octets over UDP"),
        (_, true) => format!("the resolver received {size} octets over TCP"),
        (false, false) => String::new(),
    }
}

/// With the payload size 512, the response has TC, and TCP has the answer.
fn small_payload(check: &mut ResolverCheck, evidence: &mut Evidence, name: &Name) -> Result<(), String> {
    let query = query(name, Rtype::TXT, PLAIN as u16);
    truncated_then_complete(check, evidence, &query)
}

/// A response with TC of at most the accepted size over UDP, and the complete one over TCP.
fn truncated_then_complete(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    query: &Query,
) -> Result<(), String> {
    let accepted = usize::from(query.payload.unwrap_or(PLAIN as u16));
    let over = |check: &mut ResolverCheck, evidence: &mut Evidence, transport| {
        check.observe(evidence, |client, evidence| client.ask_over(evidence, query, transport))
    };
    let asked = over(check, evidence, Transport::Udp);
    let response = asked.ok()?;
    if !response.has(flags::TC) || response.octets.len() > accepted {
        let (octets, tc) = (response.octets.len(), u8::from(response.has(flags::TC)));
        return Err(format!(
            "{}: expected TC=1 and at most {accepted} octets, observed TC={tc} and {octets} octets",
            query.name
        ));
    }
    complete(over(check, evidence, Transport::Tcp).ok()?, &query.name)
}

/// Responses of exactly the accepted size, and one octet more.
fn limits(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let zone = check.name(SizedZone::Unsigned.label());
    // The sizes of the zone include an OPT record of 11 octets.
    let plain = sized_name(PLAIN, &zone)
        .map(|name| Query::new(name, Rtype::TXT).with_flags(flags::RD).without_edns());
    plain.into_iter().for_each(|query| add_fitting(check, evidence, &query, &mut findings));
    for (payload, larger) in [(1220, 1221), (1232, 1400)] {
        let exact = sized_name(payload, &zone).map(|name| query(&name, Rtype::TXT, payload as u16));
        let more = sized_name(larger, &zone).map(|name| query(&name, Rtype::TXT, payload as u16));
        exact.into_iter().for_each(|query| add_fitting(check, evidence, &query, &mut findings));
        more.into_iter().for_each(|query| findings.add(truncated_then_complete(check, evidence, &query)));
    }
    if let Some(name) = sized_name(1220, &zone) {
        let query = Query::new(name, Rtype::TXT).with_flags(flags::RD).without_edns();
        findings.add(truncated_then_complete(check, evidence, &query));
    }
    findings.outcome()
}

fn add_fitting(check: &mut ResolverCheck, evidence: &mut Evidence, query: &Query, findings: &mut Findings) {
    match fits(check, evidence, query) {
        Ok(note) => findings.note(note),
        Err(failure) => findings.add(Err(failure)),
    }
}

/// The complete answer arrives over UDP. A resolver may have a lower limit of its own (RFC 9715 §3.1, R3), but
/// not below 1,220 octets with EDNS (RFC 4035 §3). Returns a note about the limit.
fn fits(check: &mut ResolverCheck, evidence: &mut Evidence, query: &Query) -> Result<String, String> {
    let over = |check: &mut ResolverCheck, evidence: &mut Evidence, transport| {
        check.observe(evidence, |client, evidence| client.ask_over(evidence, query, transport))
    };
    let asked = over(check, evidence, Transport::Udp);
    let response = asked.ok()?;
    if !response.has(flags::TC) {
        return complete(response, &query.name).map(|()| String::new());
    }
    let accepted = query.payload.map(usize::from);
    if let Some(octets) = accepted.filter(|octets| *octets > REQUIRED) {
        complete(over(check, evidence, Transport::Tcp).ok()?, &query.name)?;
        return Ok(format!("{octets} octets: limited by policy (RFC 9715), answered over TCP"));
    }
    let payload = accepted.map_or_else(|| "no EDNS".to_owned(), |payload| format!("payload size {payload}"));
    Err(format!("{}: expected a complete answer over UDP ({payload}), observed TC=1", query.name))
}

/// The response has the TXT RRset.
fn complete(response: &Response, name: &Name) -> Result<(), String> {
    let has_answer = response.message.section(Section::Answer).any(|record| record.rtype == Rtype::TXT);
    if response.message.rcode().0 != 0 || !has_answer || response.has(flags::TC) {
        let rcode = response.message.rcode();
        return Err(format!(
            "{name}: expected a complete TXT RRset, observed {rcode} in {} octets",
            response.octets.len()
        ));
    }
    Ok(())
}

fn query(name: &Name, rtype: Rtype, payload: u16) -> Query {
    Query::new(name.clone(), rtype).with_flags(flags::RD).with_payload(payload)
}

/// The UDP payload size that a response announces.
pub(super) fn announced(response: &Response) -> u16 {
    response.message.opt().map_or(PLAIN as u16, |opt| opt.class.0)
}

/// The payload sizes of the queries of the resolver over UDP.
pub(super) fn payloads(upstream: &[Observation]) -> Vec<u16> {
    let over_udp = upstream.iter().filter(|seen| seen.transport == Transport::Udp);
    over_udp.filter_map(|seen| seen.edns()).map(|(payload, ..)| payload).collect()
}

/// The payload sizes in words.
pub(super) fn payload_note(payloads: &[u16]) -> String {
    let (Some(smallest), Some(largest)) = (payloads.iter().min(), payloads.iter().max()) else {
        return String::new();
    };
    if smallest == largest {
        format!("announces {smallest} octets to authoritative servers")
    } else {
        format!("announces {smallest} to {largest} octets to authoritative servers")
    }
}

fn join(texts: [&str; 2]) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}
