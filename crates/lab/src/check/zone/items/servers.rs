//! Items about each server by itself.

use super::item;
use crate::check::zone::client::NoAnswer;
use crate::check::zone::context::ZoneContext;
use crate::check::zone::findings::Findings;
use crate::check::zone::lookup::Server;
use crate::check::{Evidence, Outcome, Query, Response, Row, Transport};
use nonesuch_proto::message::{Message, Rcode, Section, flags};
use nonesuch_proto::{Name, Rtype};

/// A name that no zone on the Internet has (RFC 6761 §6.4).
const FOREIGN_NAME: &str = "nonesuch-check.invalid.";

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-020",
            "each server answers over UDP",
            &["RFC 1035 §4.2.1", "RFC 7766 §5", "RFC 8906 §3.1.1"],
            "Queries the SOA record of the zone over UDP at each address of each nameserver.",
        ),
        run: |context, evidence| answers(context, evidence, Transport::Udp),
    },
    Row {
        item: item(
            "Z-021",
            "each server answers over TCP",
            &["RFC 7766 §5", "RFC 8906 §3.1.5"],
            "Queries the SOA record of the zone over TCP at each address of each nameserver.",
        ),
        run: |context, evidence| answers(context, evidence, Transport::Tcp),
    },
    Row {
        item: item(
            "Z-022",
            "each server is authoritative for the zone",
            &["RFC 1034 §4.2.1", "RFC 1912 §2.8", "RFC 8906 §3.1.1"],
            "Queries the SOA record of the zone. The response must have the flag AA and one SOA record.",
        ),
        run: authoritative,
    },
    Row {
        item: item(
            "Z-023",
            "each server supports EDNS",
            &["RFC 6891 §6.1.1", "RFC 6891 §7", "RFC 4035 §3"],
            "Queries the SOA record of the zone with an OPT record. The response must have an OPT record. A server \
             without EDNS that answers FORMERR passes if the zone is not signed.",
        ),
        run: supports_edns,
    },
    Row {
        item: item(
            "Z-024",
            "each server answers an unknown EDNS version with BADVERS",
            &["RFC 6891 §6.1.3"],
            "Queries the SOA record of the zone with EDNS version 1.",
        ),
        run: rejects_versions,
    },
    Row {
        item: item(
            "Z-025",
            "no server resolves names for everyone",
            &["RFC 5358 §4"],
            "Queries the name nonesuch-check.invalid with RD. A server that offers recursion (RA) and answers \
             without AA resolves names of other zones.",
        ),
        run: no_recursion,
    },
    Row {
        item: item(
            "Z-026",
            "no server transfers the zone to everyone",
            &["RFC 5936 §5"],
            "Requests a transfer (AXFR) over TCP without TSIG and reads the first message. The operator may permit \
             transfers to all clients: a transfer is noted.",
        ),
        run: no_transfer,
    },
];

/// Why no server can be tested.
fn no_server(context: &ZoneContext) -> Option<Outcome> {
    let fault = context.fault().filter(|_| context.discovery.servers.is_empty());
    fault.map(|fault| Outcome::NotTestable(fault.to_string()))
}

/// The servers that were found but have no route, as not tested.
fn skip_unreachable(context: &ZoneContext, findings: &mut Findings) {
    for server in &context.discovery.unreachable {
        findings.skip(format!("this machine has no route to {}", server.text()));
    }
}

fn answers(context: &mut ZoneContext, evidence: &mut Evidence, transport: Transport) -> Outcome {
    if let Some(outcome) = no_server(context) {
        return outcome;
    }
    let mut findings = Findings::default();
    for server in context.discovery.servers.clone() {
        let query = Query::new(context.zone().clone(), Rtype::SOA);
        let response = context.network.client.ask_over(evidence, server.address, &query, transport);
        findings.check(
            response.err().map(|fault| format!("{} over {}: {fault}", server.text(), transport.name())),
        );
    }
    skip_unreachable(context, &mut findings);
    findings.outcome()
}

fn authoritative(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_server(context) {
        return outcome;
    }
    let mut findings = Findings::default();
    let zone = context.zone().clone();
    for server in context.discovery.servers.clone() {
        let text = server.text();
        match context.ask_apex(evidence, &server, Rtype::SOA) {
            Err(fault) => findings.skip(format!("{text}: {fault}")),
            Ok(response) => {
                findings.check(authority_fault(&response, &zone).map(|fault| format!("{text}: {fault}")))
            }
        }
    }
    findings.outcome()
}

/// Why a response to the question for the SOA record is not authoritative.
fn authority_fault(response: &Response, zone: &Name) -> Option<String> {
    let message = &response.message;
    let soa =
        message.section(Section::Answer).filter(|record| record.rtype == Rtype::SOA && record.owner == *zone);
    let count = soa.count();
    let rcode = message.rcode();
    if rcode != Rcode::NOERROR {
        return Some(format!("expected NOERROR with an SOA record, got response code {rcode}"));
    }
    if !response.has(flags::AA) {
        return Some("expected an authoritative answer, got a response without AA".to_owned());
    }
    (count != 1).then(|| format!("expected one SOA record, got {count}"))
}

fn supports_edns(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_server(context) {
        return outcome;
    }
    let mut findings = Findings::default();
    let is_signed = !context.dnskeys(evidence).is_empty() || !context.discovery.ds.is_empty();
    let zone = context.zone().clone();
    for server in context.discovery.servers.clone() {
        let text = server.text();
        let response = context.ask_apex(evidence, &server, Rtype::SOA);
        match response {
            Ok(response) if response.message.opt().is_some() => findings.good(),
            Ok(response) if response.message.rcode() == Rcode::FORMERR && !is_signed => {
                findings.good();
                findings.note(format!("{text} does not support EDNS, and answers FORMERR"));
            }
            Ok(response) => {
                let rcode = response.message.rcode();
                findings
                    .fault(format!("{text}: the response ({rcode}) to a query with an OPT record has none"));
            }
            // A server that answers only without EDNS drops such queries.
            Err(fault) => {
                let plain = Query::new(zone.clone(), Rtype::SOA).without_edns();
                match context.network.client.ask_over(evidence, server.address, &plain, Transport::Udp) {
                    Ok(_) => {
                        findings.fault(format!("{text} answers without EDNS, but not with EDNS: {fault}"))
                    }
                    Err(_) => findings.skip(format!("{text}: {fault}")),
                }
            }
        }
    }
    findings.outcome()
}

fn rejects_versions(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let mut query = Query::new(context.zone().clone(), Rtype::SOA).without_do();
    query.version = 1;
    super::for_each_server(context, evidence, |context, evidence, server, findings| {
        let text = server.text();
        match context.network.client.ask_over(evidence, server.address, &query, Transport::Udp) {
            Err(fault) => findings.fault(format!("{text}: EDNS version 1: {fault}")),
            Ok(response) => {
                let message = &response.message;
                let version = message.opt().map(|opt| (opt.ttl >> 16) as u8);
                let (rcode, has_opt) = (message.rcode(), version.is_some());
                let is_right = rcode == Rcode::BADVERS && version == Some(0);
                findings.check((!is_right).then(|| {
                    let opt = if has_opt { "with an OPT record" } else { "without an OPT record" };
                    format!("{text}: expected BADVERS with EDNS version 0, got {rcode} {opt}")
                }));
            }
        }
    })
}

fn no_recursion(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let Ok(name) = FOREIGN_NAME.parse::<Name>() else { return Outcome::pass() };
    let query = Query::new(name, Rtype::A).without_do().with_flags(flags::RD);
    super::for_each_server(context, evidence, |context, evidence, server, findings| {
        match context.network.client.ask_over(evidence, server.address, &query, Transport::Udp) {
            // Silence is no recursion.
            Err(NoAnswer::Fault(_) | NoAnswer::Silent(_)) => findings.good(),
            Err(fault) => findings.skip(format!("{}: {fault}", server.text())),
            Ok(response) => findings.check(is_recursive(&response).then(|| {
                let rcode = response.message.rcode();
                format!("{} resolves {FOREIGN_NAME} (RA, response code {rcode})", server.text())
            })),
        }
    })
}

fn is_recursive(response: &Response) -> bool {
    let is_answer = matches!(response.message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
    response.has(flags::RA) && !response.has(flags::AA) && is_answer
}

fn no_transfer(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    super::for_each_server(context, evidence, |context, evidence, server, findings| {
        findings.good();
        if let Some(text) = transfer(context, evidence, server) {
            findings.note(text);
        }
    })
}

/// What a server transfers; `None` if it refuses.
fn transfer(context: &mut ZoneContext, evidence: &mut Evidence, server: &Server) -> Option<String> {
    let mut query = Query::new(context.zone().clone(), Rtype::AXFR);
    (query.payload, query.edns_flags) = (None, 0);
    let octets = query.to_octets(0x4158);
    // A server may also close the connection.
    let response = context.network.client.send_over_tcp(evidence, server.address, &octets).ok()?;
    let message = Message::parse(&response).ok()?;
    let count = message.section(Section::Answer).count();
    (count > 0).then(|| format!("{} sends a transfer: {count} records in the first message", server.text()))
}
