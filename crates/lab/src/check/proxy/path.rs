//! Items about the paths of messages: path MTU, lost fragments, and transports that a path or the resolver
//! refuses. The check starts the proxy in network namespaces with a simulated path before or behind it.

use super::super::resolver::{Findings, item};
use super::super::{Evidence, Outcome, Row, Transport};
use super::context::{Passed, ProxyCheck};
use super::sizes::{LARGE, complete, fallback, is_complete_or_truncated, query};
use super::start::{ProxyCheckError, ProxyTarget};
use super::{cache, opaque};
use crate::link::{LinkOptions, PathOptions};
use crate::testbed::{LinkPlace, PlacedLink};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, Section, flags};

/// MTU of Ethernet, in octets.
const ETHERNET_MTU: u16 = 1500;
/// The minimum MTU of IPv6 (RFC 8200 §5), in octets.
const MINIMUM_MTU: u16 = 1280;
/// Octets of the headers of IPv4 (RFC 791 §3.1) and UDP.
const HEADERS: usize = 28;
/// The largest message in one packet of 1,500 octets, the next size, and three packets.
const ETHERNET_SIZES: [usize; 3] = [1472, 1473, 4000];
/// The payload size of most clients, the largest message in one packet of 1,280 octets, the next size, a message that
/// its sender fragments, and three packets of its sender.
const MINIMUM_SIZES: [usize; 5] = [1232, 1252, 1253, 1473, 4000];
/// Payload size of a client that avoids fragments (RFC 6891 §6.2.3).
const UNFRAGMENTED: u16 = 1232;
/// Attempts of a client. A sender may learn the path MTU from the loss of the first response (RFC 1191 §3).
const ATTEMPTS: u32 = 2;
/// Both places of a path.
const BOTH: &[LinkPlace] = &[LinkPlace::Clients, LinkPlace::Servers];

pub(super) const ITEMS: &[Row<ProxyCheck>] = &[
    Row {
        item: item(
            "XP-009",
            "Responses over UDP that need several IP packets pass",
            &["RFC 5625 §4.4.3", "RFC 791 §3.2"],
            "Asks for responses of 1,472, 1,473 and 4,000 octets over UDP, on paths with an MTU of 1,500 octets before and behind the proxy. The last two arrive in fragments, the first one does not.",
        ),
        run: ethernet,
    },
    Row {
        item: item(
            "XP-011",
            "On a path with an MTU of 1,280 octets, each answer arrives, and small responses are not fragmented",
            &["RFC 5625 §4.4.3", "RFC 8200 §5", "RFC 1191 §3"],
            "As XP-009, with 1,232 and 1,252 octets, which are one packet, and with 1,253, 1,473 and 4,000 octets. The client sends a query again if its first response is lost. After a response with TC, it asks over TCP.",
        ),
        run: |check, evidence| {
            let part: Part = ("", |check, evidence| in_packets(check, evidence, MINIMUM_MTU, &MINIMUM_SIZES));
            over(check, evidence, (BOTH, with_mtu(MINIMUM_MTU), Transport::Udp), &[part])
        },
    },
    Row {
        item: item(
            "XP-012",
            "If fragments from the resolver are lost, clients that avoid fragments get their answers",
            &["RFC 5625 §4.4.2", "RFC 5625 §4.4.3", "RFC 6891 §6.2.3"],
            "Drops fragments behind the proxy. Asks for 4,000 octets with the payload size 4,096, then with 512 and 1,232: the response must have TC, and TCP the answer. A response of 1,232 octets must arrive over UDP.",
        ),
        run: |check, evidence| lost_fragments(check, evidence, LinkPlace::Servers),
    },
    Row {
        item: item(
            "XP-013",
            "If fragments to the client are lost, clients that avoid fragments get their answers",
            &["RFC 5625 §4.4", "RFC 5625 §4.4.3", "RFC 6891 §6.2.3"],
            "As XP-012, with a path before the proxy.",
        ),
        run: |check, evidence| lost_fragments(check, evidence, LinkPlace::Clients),
    },
    Row {
        item: item(
            "XP-014",
            "If the resolver refuses TCP, the client gets an error or the end of its connection",
            &["RFC 1035 §4.1.1", "RFC 7766 §6.2.4"],
            "Closes the TCP port of the resolver, and sends a query over TCP. The proxy must respond or close the connection before the time limit. A query over UDP must be answered afterwards.",
        ),
        run: refused_tcp,
    },
    Row {
        item: item(
            "XP-015",
            "If UDP to the resolver is blocked, queries over TCP are answered",
            &["RFC 5625 §4.4.1"],
            "Drops all UDP datagrams behind the proxy. Sends a query over UDP: if it gets a response, this must be an error, complete, or have TC. A query over TCP must be answered.",
        ),
        run: |check, evidence| {
            let path = PathOptions { drop_udp: true, ..PathOptions::default() };
            over(check, evidence, (&[LinkPlace::Servers], path, Transport::Tcp), &[("", blocked_udp)])
        },
    },
    Row {
        item: item(
            "XP-016",
            "Flags, OPT records and the cache obey the rules on a path with an MTU of 1,280 octets, too",
            &["RFC 5625 §3", "RFC 5625 §4.1", "RFC 5625 §4.4.2"],
            "Runs P-1, P-5, XP-006 and XP-010 with a path before the proxy, and with a path behind it.",
        ),
        run: |check, evidence| {
            over(
                check,
                evidence,
                (BOTH, with_mtu(MINIMUM_MTU), Transport::Udp),
                &[
                    ("P-1: ", opaque::flags_and_opt),
                    ("P-5: ", cache::two_clients),
                    ("XP-006: ", opaque::header_flags),
                    ("XP-010: ", cache::distinguishes),
                ],
            )
        },
    },
];

/// A part of an item: a prefix of its failures, and its test.
type Part = (&'static str, fn(&mut ProxyCheck, &mut Evidence) -> Outcome);

/// A path with this MTU.
fn with_mtu(mtu: u16) -> PathOptions {
    PathOptions { mtu, ..PathOptions::default() }
}

/// Runs tests of the proxy over a path with these properties in both directions, at each of these places. The
/// transport is that of the first query.
fn over(
    check: &ProxyCheck,
    evidence: &mut Evidence,
    (places, path, probe): (&[LinkPlace], PathOptions, Transport),
    parts: &[Part],
) -> Outcome {
    let mut findings = Findings::default();
    for place in places {
        let options = LinkOptions { forward: path, backward: path, seed: 0 };
        let mut linked = match check.start_over(&PlacedLink { place: *place, options }, probe) {
            Ok(linked) => linked,
            Err(ProxyCheckError::NotForwarded { reason, .. }) => {
                findings.add(Err(format!("{}: first query: {reason}", name(*place))));
                continue;
            }
            Err(error) => return Outcome::NotTestable(error.to_string()),
        };
        for (part, test) in parts {
            match test(&mut linked, evidence) {
                Outcome::Fail(text) => findings.add(Err(format!("{}: {part}{text}", name(*place)))),
                Outcome::Pass(note) | Outcome::NotTestable(note) => findings.note(note),
            }
        }
    }
    findings.outcome()
}

const fn name(place: LinkPlace) -> &'static str {
    match place {
        LinkPlace::Clients => "path to the client",
        LinkPlace::Servers => "path to the resolver",
    }
}

fn ethernet(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    if !matches!(check.target(), ProxyTarget::Running(_)) {
        let part: Part = ("", |check, evidence| in_packets(check, evidence, ETHERNET_MTU, &ETHERNET_SIZES));
        return over(check, evidence, (BOTH, with_mtu(ETHERNET_MTU), Transport::Udp), &[part]);
    }
    let outcome = complete(check, evidence, &ETHERNET_SIZES);
    if outcome == Outcome::pass() && check.server().ip().is_loopback() {
        return Outcome::Pass(
            "the proxy has a loopback address, where packets are not fragmented: only the sizes were tested"
                .to_owned(),
        );
    }
    outcome
}

/// Responses of these sizes arrive. A response that fits the MTU is one packet.
fn in_packets(check: &mut ProxyCheck, evidence: &mut Evidence, mtu: u16, sizes: &[usize]) -> Outcome {
    let mut findings = Findings::default();
    for size in sizes {
        match packets(check, evidence, *size) {
            Err(fault) => findings.add(Err(format!("{size} octets: {fault}"))),
            // The minimum MTU may be a reason to limit responses.
            Ok(None) if mtu == MINIMUM_MTU => findings.note(format!("{size} octets over TCP, after TC")),
            Ok(None) => {
                findings.add(Err(format!("{size} octets: expected a response over UDP, observed TC=1")))
            }
            Ok(Some(packets)) if packets > 1 && size + HEADERS <= mtu.into() => {
                findings.add(Err(format!("{size} octets: expected 1 packet, observed {packets}")));
            }
            Ok(Some(1)) => findings.note(format!("{size} octets in 1 packet")),
            Ok(Some(packets)) => findings.note(format!("{size} octets in {packets} packets")),
        }
    }
    findings.outcome()
}

/// The number of packets of a response of this size; `None` if it is truncated, and arrives over TCP.
fn packets(check: &mut ProxyCheck, evidence: &mut Evidence, size: usize) -> Result<Option<u64>, String> {
    let query = query(check, size, LARGE);
    let mut attempt = 1;
    loop {
        let before = check.response_packets();
        let passed = check.pass(evidence, &query, Transport::Udp);
        if passed.is_timeout && attempt < ATTEMPTS {
            attempt += 1;
            continue;
        }
        if passed.response()?.has(flags::TC) {
            let over_tcp = check.pass(evidence, &query, Transport::Tcp);
            return is_answer(&over_tcp)
                .map(|()| None)
                .map_err(|fault| format!("over TCP, after TC: {fault}"));
        }
        return is_answer(&passed).map(|()| Some(check.response_packets() - before));
    }
}

/// The client got an answer. The other items compare its contents.
fn is_answer(passed: &Passed) -> Result<(), String> {
    let response = passed.response()?;
    if response.has(flags::TC) {
        return Err("observed TC=1".to_owned());
    }
    match (response.message.rcode(), response.message.section(Section::Answer).next()) {
        (Rcode::NOERROR, Some(_)) => Ok(()),
        (Rcode::NOERROR, None) => Err("observed no records".to_owned()),
        (rcode, _) => Err(format!("observed {rcode}")),
    }
}

/// Without fragments on the path at this place, a client gets each answer that its payload size permits.
fn lost_fragments(check: &mut ProxyCheck, evidence: &mut Evidence, place: LinkPlace) -> Outcome {
    let path = PathOptions { drop_fragments: true, ..PathOptions::default() };
    over(check, evidence, (&[place], path, Transport::Udp), &[("", small_answers)])
}

/// The answers that no path prevents: those in one packet, and those over TCP.
fn small_answers(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let large = query(check, 4000, LARGE);
    let passed = check.pass_briefly(evidence, &large);
    findings.add(is_complete_or_truncated(&passed, 4000));
    if passed.received.is_err() {
        findings.note("no response of 4,000 octets over UDP");
    }
    if let Outcome::Fail(text) = fallback(check, evidence) {
        findings.add(Err(text));
    }
    let small = query(check, UNFRAGMENTED.into(), UNFRAGMENTED);
    let passed = check.pass(evidence, &small, Transport::Udp);
    findings.add(is_answer(&passed).map_err(|fault| format!("{UNFRAGMENTED} octets: {fault}")));
    findings.outcome()
}

fn refused_tcp(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let query = check.query("refused", Rtype::TXT);
    let passed = match check.without_tcp(|check| check.pass(evidence, &query, Transport::Tcp)) {
        Ok(passed) => passed,
        Err(error) => return Outcome::NotTestable(error.to_string()),
    };
    let mut findings = Findings::default();
    findings.require(!passed.is_timeout, || {
        "over TCP: expected a response or the end of the connection, observed none before the time limit"
            .to_owned()
    });
    findings.add(
        is_complete_or_truncated(&passed, 0).map_err(|_| "over TCP: the response has no error".to_owned()),
    );
    let next = check.query("next", Rtype::A);
    let over_udp = check.pass(evidence, &next, Transport::Udp);
    findings.add(is_answer(&over_udp).map_err(|fault| format!("over UDP, afterwards: {fault}")));
    findings.note(match passed.response() {
        Ok(response) => format!("response over TCP: {}", response.message.rcode()),
        Err(fault) => format!("over TCP: {fault}"),
    });
    findings.outcome()
}

fn blocked_udp(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let blocked = query(check, 400, LARGE);
    let over_udp = check.pass_briefly(evidence, &blocked);
    findings.add(is_complete_or_truncated(&over_udp, 400));
    let waiting = query(check, 4000, LARGE);
    let over_tcp = check.pass(evidence, &waiting, Transport::Tcp);
    findings.add(is_answer(&over_tcp).map_err(|fault| format!("over TCP: {fault}")));
    findings.outcome()
}
