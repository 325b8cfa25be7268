//! Items about the sizes of messages.

use super::super::resolver::{Findings, item, jprs, quick};
use super::super::{Evidence, Outcome, Query, Row, Transport};
use super::context::{Passed, ProxyCheck};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Header, Rcode, Section, flags};

/// Payload size of the client, in octets.
pub(super) const LARGE: u16 = 4096;
/// Sizes up to that which resolvers and servers must support (RFC 4035 §4.1).
const REQUIRED: [usize; 3] = [512, 513, 1220];
/// Larger sizes, up to that which they should support.
const WANTED: [usize; 3] = [1221, 1400, 4000];

/// Cases 2 to 4 of the report of JPRS.
pub(super) const CASES: &[Row<ProxyCheck>] = &[
    Row {
        item: jprs(quick(item(
            "P-2",
            "UDP responses of 1,220 octets pass",
            &["RFC 5625 §4.4", "RFC 6891 §6.2.6", "RFC 4035 §4.1"],
            "Asks with the payload size 4,096 for responses of exactly 512, 513 and 1,220 octets. They must arrive complete over UDP.",
        ))),
        run: |check, evidence| complete(check, evidence, &REQUIRED),
    },
    Row {
        item: jprs(quick(item(
            "P-3",
            "UDP responses of 4,000 octets pass",
            &["RFC 5625 §4.4", "RFC 5625 §4.4.3", "RFC 4035 §4.1"],
            "As P-2, with 1,221, 1,400 and 4,000 octets.",
        ))),
        run: |check, evidence| complete(check, evidence, &WANTED),
    },
    Row {
        item: jprs(quick(item(
            "P-4",
            "After a truncated response, the client gets the answer over TCP",
            &["RFC 5625 §4.4", "RFC 5625 §4.4.1", "RFC 7766 §5"],
            "Asks for a response of 4,000 octets with the payload sizes 512 and 1,232. The response over UDP must have TC, and TCP must have the answer.",
        ))),
        run: fallback,
    },
];

pub(super) const ITEMS: &[Row<ProxyCheck>] = &[
    Row {
        item: quick(item(
            "XP-002",
            "The EDNS payload size of queries is forwarded unchanged",
            &["RFC 5625 §4.4.2", "RFC 6891 §6.2.6"],
            "Sends queries with the payload sizes 512, 1,232 and 4,096, and compares the OPT record behind the proxy.",
        )),
        run: payload,
    },
    Row {
        item: quick(item(
            "XP-003",
            "A response that is not complete has TC=1",
            &["RFC 5625 §4.4", "RFC 2181 §9"],
            "Asks for responses of 513 to 4,000 octets, with EDNS and without. Each response over UDP must be complete or have TC.",
        )),
        run: truncation,
    },
];

pub(super) fn query(check: &mut ProxyCheck, size: usize, payload: u16) -> Query {
    check.query(&format!("size-{size}"), Rtype::TXT).with_payload(payload)
}

/// The response of this size arrives over UDP.
fn arrives(check: &mut ProxyCheck, evidence: &mut Evidence, size: usize) -> Result<(), String> {
    let query = query(check, size, LARGE);
    let passed = check.pass(evidence, &query, Transport::Udp);
    let octets = passed.received.as_ref().map_err(|fault| format!("{size} octets: {fault}"))?;
    if octets.len() != size {
        let tc = passed.response().map_or(0, |response| u8::from(response.has(flags::TC)));
        return Err(format!("expected {size} octets over UDP, observed {} octets and TC={tc}", octets.len()));
    }
    passed.is_unchanged().map_err(|fault| format!("{size} octets: {fault}"))
}

pub(super) fn complete(check: &mut ProxyCheck, evidence: &mut Evidence, sizes: &[usize]) -> Outcome {
    let mut findings = Findings::default();
    sizes.iter().for_each(|size| findings.add(arrives(check, evidence, *size)));
    findings.outcome()
}

pub(super) fn fallback(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for payload in [512, 1232] {
        let query = query(check, 4000, payload);
        let over_udp = check.pass(evidence, &query, Transport::Udp);
        findings.add(over_udp.response().and_then(|response| {
            if response.has(flags::TC) {
                Ok(())
            } else {
                Err(format!(
                    "payload size {payload}: expected TC=1, observed {} octets with TC=0",
                    response.octets.len()
                ))
            }
        }));
        let over_tcp = check.pass(evidence, &query, Transport::Tcp);
        findings.add(over_tcp.response().map_err(|fault| format!("over TCP: {fault}")).and_then(
            |response| {
                if response.octets.len() == 4000 {
                    Ok(())
                } else {
                    Err(format!("over TCP: expected 4,000 octets, observed {}", response.octets.len()))
                }
            },
        ));
    }
    findings.outcome()
}

fn payload(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for payload in [512, 1232, LARGE] {
        let query = query(check, 400, payload);
        let passed = check.pass(evidence, &query, Transport::Udp);
        findings.add(passed.forwarded().and_then(|seen| match seen.edns() {
            Some((found, ..)) if found == payload => Ok(()),
            Some((found, ..)) => {
                Err(format!("expected the payload size {payload} behind the proxy, observed {found}"))
            }
            None => Err("the query behind the proxy has no OPT record".to_owned()),
        }));
    }
    findings.outcome()
}

fn truncation(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for size in [513, 1220, 4000] {
        let with_edns = query(check, size, LARGE);
        let without = query(check, size, LARGE).without_edns();
        for query in [with_edns, without] {
            let passed = check.pass(evidence, &query, Transport::Udp);
            // No response at all belongs to P-2 and P-3.
            findings.add(is_complete_or_truncated(&passed, size));
        }
    }
    findings.outcome()
}

/// A response must be complete, have TC, or be an error. No response is none that misleads the client.
pub(super) fn is_complete_or_truncated(passed: &Passed, size: usize) -> Result<(), String> {
    let Ok(octets) = &passed.received else { return Ok(()) };
    let header = Header::read(octets);
    let is_truncated = header.is_some_and(|header| header.flags & flags::TC != 0);
    let is_error = header.is_some_and(|header| header.rcode() != Rcode::NOERROR);
    let is_complete =
        passed.response().is_ok_and(|response| response.message.section(Section::Answer).next().is_some());
    if is_truncated || is_error || is_complete {
        return Ok(());
    }
    Err(format!("a response of {size} octets arrived as {} octets with TC=0", octets.len()))
}
