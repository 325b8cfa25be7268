//! Published attacks on resolvers, against the whole state machine in the simulator: the work is
//! bounded, other clients get their answers, and no data reach a zone that their server does not
//! serve.

mod budget;
mod failures;
mod network;
mod nsec5;
mod signed;
mod validation;

use network::*;
use nonesuch_conformance::simulator::TraceEvent;
use nonesuch_net::Transport;
use nonesuch_proto::message::{Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::zones::{ZoneRule, ZoneRules};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The default limit of queries to servers for one client query.
fn query_limit() -> usize {
    ResolverOptions::default().limits.queries as usize
}

/// Whether the question is for a name in this zone.
fn is_for(asked: &Message, zone: &str) -> bool {
    asked.questions[0].name.view().is_at_or_below(name(zone).view())
}

fn question(asked: &Message) -> String {
    asked.questions[0].name.to_string()
}

/// NXNSAttack (CVE-2020-8616, CVE-2020-12662): a referral to many nameserver names of a victim.
#[test]
fn a_referral_to_many_names_of_a_victim_causes_few_queries() {
    let hostile = |asked: &Message, _: Ipv4Addr| {
        let servers =
            (0..100).map(|number| pointer(&question(asked), Rtype::NS, &format!("n{number}.good.")));
        Some(referral(asked, servers.map(|ns| within(Section::Authority, ns)).collect()))
    };
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |_| {});
    let (reply, _) = resolve(&mut simulator, "a.evil.");
    assert_eq!(reply.rcode(), Rcode::SERVFAIL);
    // 4 names for each delegation, with A and AAAA.
    let victim = simulator.network().count(GOOD);
    assert!((1..=10).contains(&victim), "{victim} queries to the victim");
    let limit = query_limit();
    // The next name of the attacker costs the same, not more.
    resolve(&mut simulator, "b.evil.");
    let twice = simulator.network().count(GOOD);
    assert!(twice <= 2 * victim && simulator.statistics().sent as usize <= 2 * limit, "{twice}");
    assert_good(&mut simulator);
}

/// NRDelegation (CVE-2022-3204): a referral to very many servers that do not respond. Another client
/// is not disturbed.
#[test]
fn servers_that_do_not_respond_do_not_disturb_other_clients() {
    let hostile = |asked: &Message, server: Ipv4Addr| {
        if server != EVIL || asked.questions[0].name.view().label_count() < 2 {
            return None;
        }
        let servers = (0..1500_u16).flat_map(|number| {
            let server = format!("n{number}.silent.evil.");
            let silent = Ipv4Addr::new(203, 0, (number >> 8) as u8 + 1, number as u8);
            let ns = within(Section::Authority, pointer(&question(asked), Rtype::NS, &server));
            [ns, within(Section::Additional, address(&server, silent))]
        });
        Some(referral(asked, servers.collect()))
    };
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |_| {});
    let attack: Vec<_> =
        (0..20).map(|number| ask_at(&mut simulator, number, 0, &format!("x{number}.evil."))).collect();
    let good = ask_at(&mut simulator, 1000, 0, "www.good.");
    simulator.run_until_answered().expect("replies in time");
    assert_eq!(addresses(&reply(&simulator, good)), [WEB]);
    let took = simulator.reply(good).expect("a reply").at - Duration::from_secs(1);
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert!(attack.iter().all(|token| reply(&simulator, *token).rcode() == Rcode::SERVFAIL));
    let sent = simulator.statistics().sent as usize;
    assert!(sent <= 22 * query_limit(), "{sent}");
}

/// TsuKing (2023): delegations to open resolvers make resolvers query each other. Queries have no RD
/// bit, answers of resolvers do not count as those of a server, and a failure is cached.
#[test]
fn a_delegation_to_open_resolvers_is_no_chain_of_resolvers() {
    let hostile = |asked: &Message, server: Ipv4Addr| {
        if server == EVIL {
            let servers = (1..=6_u8).flat_map(|number| {
                let server = format!("open{number}.evil.");
                let ns = within(Section::Authority, pointer("chain.evil.", Rtype::NS, &server));
                [ns, within(Section::Additional, address(&server, Ipv4Addr::new(203, 0, 113, number)))]
            });
            return Some(referral(asked, servers.collect()));
        }
        // An open resolver that cannot resolve the name.
        let mut response = answer(asked, Vec::new());
        response.header.flags = flags::QR | flags::RA | Rcode::SERVFAIL.0;
        Some(response)
    };
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |_| {});
    let (first, _) = resolve(&mut simulator, "a.chain.evil.");
    assert_eq!(first.rcode(), Rcode::SERVFAIL);
    assert!(simulator.network().seen.iter().all(|seen| seen.flags & flags::RD == 0));
    let sent = simulator.statistics().sent;
    assert!(sent <= 30, "{sent}");
    resolve(&mut simulator, "a.chain.evil.");
    assert_eq!(simulator.statistics().sent, sent, "the failure was not cached (RFC 9520)");
}

/// CacheFlush: an attacker fills the cache. What clients use often stays.
#[test]
fn a_flood_of_names_does_not_flush_names_in_use() {
    let hostile = |asked: &Message, _: Ipv4Addr| {
        let owner = question(asked);
        Some(answer(
            asked,
            (0..20).map(|number| record(&owner, Rtype::A, vec![198, 18, 1, number])).collect(),
        ))
    };
    let attack = |number: u64| format!("{}{number}.evil.", "x".repeat(50));
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |_| {});
    for number in 0..10_000 {
        ask_at(&mut simulator, number * 10, 0, &attack(number));
        if number % 20 == 0 {
            ask_at(&mut simulator, number * 10 + 1, 0, "www.good.");
        }
    }
    simulator.run_until_answered().expect("replies");
    // The TTL is 300 s and the flood takes 100 s: one query for the address.
    let asked =
        |seen: &&Seen| seen.server == GOOD && seen.name == name("www.good.") && seen.rtype == Rtype::A;
    assert_eq!(simulator.network().seen.iter().filter(asked).count(), 1);
    // The flood was larger than the cache.
    let before = simulator.network().count(EVIL);
    resolve(&mut simulator, &attack(0));
    assert!(simulator.network().count(EVIL) > before);
}

/// MaginotDNS (2023): a forwarder, or an attacker who forges its responses, sends data for other zones.
#[test]
fn a_forwarder_cannot_change_other_zones() {
    let forwarder = Ipv4Addr::new(203, 0, 113, 53);
    let hostile = move |asked: &Message, _: Ipv4Addr| {
        let mut response = answer(
            asked,
            vec![
                pointer(&question(asked), Rtype::CNAME, "www.good."),
                address("www.good.", EVIL),
                within(Section::Authority, pointer("good.", Rtype::NS, "ns.evil.")),
                within(Section::Authority, pointer(".", Rtype::NS, "ns.evil.")),
                within(Section::Additional, address("ns.good.", EVIL)),
                within(Section::Additional, address("a.root.", EVIL)),
            ],
        );
        response.header.flags |= flags::RA;
        Some(response)
    };
    let rule = ZoneRule::forward(name("corp."), vec![SocketAddr::from((forwarder, 53))]);
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |options| {
        options.zones = ZoneRules::new([rule]).expect("a rule");
    });
    let (reply, _) = resolve(&mut simulator, "www.corp.");
    assert_eq!(addresses(&reply), [WEB], "{}", simulator.trace());
    assert_good(&mut simulator);
}

/// Ghost and Phoenix domains (2012, 2023): the servers of a zone that the parent has removed do not
/// prolong its life.
#[test]
fn a_zone_without_a_delegation_dies_when_the_delegation_expires() {
    let hostile = |asked: &Message, _: Ipv4Addr| {
        let long = |mut record: Record| {
            record.ttl = 86_400;
            record
        };
        let (ns, glue) = (pointer("evil.", Rtype::NS, "ns.evil."), address("ns.evil.", EVIL));
        Some(match asked.questions[0].rtype {
            Rtype::NS => answer(asked, vec![long(ns), within(Section::Additional, long(glue))]),
            _ => {
                let mut response = answer(asked, vec![address(&question(asked), EVIL)]);
                response.records.push(within(Section::Authority, long(ns)));
                response.records.push(within(Section::Additional, long(glue)));
                response
            }
        })
    };
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |_| {});
    assert_eq!(addresses(&resolve(&mut simulator, "www.evil.").0), [EVIL]);
    let (_, records) = simulator.network_mut().zones.get_mut(&ROOT).expect("the root");
    records.retain(|record| record.owner != name("evil."));
    // The attacker refreshes the NS and address records, directly and with names below the zone.
    for number in 0..28 {
        simulator.run_for(Duration::from_secs(10)).expect("no fault");
        resolve(&mut simulator, &format!("n{number}.evil."));
        resolve(&mut simulator, "ns.evil.");
    }
    simulator.run_for(Duration::from_secs(30)).expect("no fault");
    let (reply, _) = resolve(&mut simulator, "new.evil.");
    assert_eq!(reply.rcode(), Rcode::NXDOMAIN, "{}", simulator.trace());
}

/// An attacker who does not see the queries guesses message IDs: many responses reach the right port.
#[test]
fn guessed_message_ids_lead_to_tcp_and_not_to_a_forged_answer() {
    let mut simulator = simulate(Servers::new(Box::new(|_: &Message, _: Ipv4Addr| None)), 1, |_| {});
    resolve(&mut simulator, "good.");
    ask_at(&mut simulator, 0, 0, "www.good.");
    let sent = simulator.statistics().sent;
    simulator.run_until(Duration::MAX, |simulator| simulator.statistics().sent > sent).expect("a query");
    let (exchange, query) = simulator
        .trace()
        .entries()
        .filter_map(|entry| match &entry.event {
            TraceEvent::Send(exchange, _, Transport::Udp, message) => Some((*exchange, message.clone())),
            _ => None,
        })
        .last()
        .expect("a query");
    let asked = Message::parse(&query).expect("a query");
    for guess in 1..=1000_u16 {
        let mut forged = answer(&asked, vec![address("www.good.", EVIL)]);
        forged.header.id = asked.header.id.wrapping_add(guess);
        simulator.inject(0, exchange, SocketAddr::from((GOOD, 53)), forged.to_octets());
    }
    simulator.run_until_answered().expect("a reply");
    let over_tcp = |event: &TraceEvent| matches!(event, TraceEvent::Send(_, _, Transport::Tcp, _));
    assert!(simulator.trace().entries().any(|entry| over_tcp(&entry.event)), "no query over TCP");
    assert_good(&mut simulator);
}

/// A server whose answers do not fit into datagrams is asked over TCP at once. If it then refuses connections,
/// it is asked over UDP.
#[test]
fn a_server_that_is_asked_over_tcp_at_once_may_refuse_connections() {
    let large = |asked: &Message, _: Ipv4Addr| {
        let count: u8 = if question(asked).starts_with("large") { 100 } else { 1 };
        let addresses = (0..count).map(|last| address(&question(asked), Ipv4Addr::new(6, 6, 6, last)));
        Some(answer(asked, addresses.collect()))
    };
    let mut simulator =
        simulate(Servers::new(Box::new(large)), 1, |options| options.qname_minimisation = false);
    let mut ask = |asked: &str, refuses_tcp: bool| {
        simulator.network_mut().refuses_tcp = refuses_tcp;
        simulator.network_mut().seen.clear();
        let reply = resolve(&mut simulator, asked).0;
        let seen = simulator.network().seen.iter().filter(|seen| seen.server == EVIL);
        (addresses(&reply).len(), seen.map(|seen| seen.transport).collect::<Vec<_>>())
    };
    assert_eq!(ask("large1.evil.", false), (100, vec![Transport::Udp, Transport::Tcp]));
    assert_eq!(ask("large2.evil.", false), (100, vec![Transport::Tcp]));
    assert_eq!(ask("small1.evil.", true), (1, vec![Transport::Tcp, Transport::Udp]));
    assert_eq!(ask("small2.evil.", true), (1, vec![Transport::Udp]));
}

/// Fragments of a response can be forged without its ID and port: no response needs to be fragmented.
#[test]
fn the_payload_size_avoids_fragments() {
    let mut simulator = simulate(Servers::new(Box::new(|_: &Message, _: Ipv4Addr| None)), 1, |_| {});
    assert_good(&mut simulator);
    let payloads = simulator.network().seen.iter().map(|seen| seen.payload);
    assert!(payloads.into_iter().all(|payload| payload.is_some_and(|payload| payload <= 1232)));
}

/// Endless aliases, loops of aliases, and DNAME records that make names longer.
#[test]
fn alias_tricks_end() {
    let hostile = |asked: &Message, _: Ipv4Addr| {
        let asked_name: Name = asked.questions[0].name.clone();
        let text = asked_name.to_string();
        let records = if is_for(asked, "endless.evil.") {
            let number: u32 = text.split('.').next().and_then(|label| label[1..].parse().ok()).unwrap_or(0);
            vec![pointer(&text, Rtype::CNAME, &format!("c{}.endless.evil.", number + 1))]
        } else if is_for(asked, "loop.evil.") {
            let other = if text.starts_with('a') { "b.loop.evil." } else { "a.loop.evil." };
            vec![pointer(&text, Rtype::CNAME, other)]
        } else if asked_name.view().is_below(name("long.evil.").view()) {
            vec![pointer("long.evil.", Rtype::DNAME, "this-makes-the-name-longer.long.evil.")]
        } else {
            return Some(denial(asked, "evil.", Rcode::NOERROR));
        };
        Some(answer(asked, records))
    };
    let mut simulator = simulate(Servers::new(Box::new(hostile)), 1, |_| {});
    for (asked, rcodes) in [
        ("c0.endless.evil.", [Rcode::SERVFAIL, Rcode::SERVFAIL]),
        ("a.loop.evil.", [Rcode::SERVFAIL, Rcode::SERVFAIL]),
        ("x.long.evil.", [Rcode::SERVFAIL, Rcode::YXDOMAIN]),
    ] {
        let before = simulator.statistics().sent;
        let (reply, _) = resolve(&mut simulator, asked);
        assert!(rcodes.contains(&reply.rcode()), "{asked}: {reply:?}");
        let sent = simulator.statistics().sent - before;
        // At most two for each of 16 aliases, and those to reach the zone.
        assert!(sent <= 36, "{asked}: {sent} queries");
    }
    assert_good(&mut simulator);
}

/// Equal queries are merged, also those of several workers: a forger gets one chance.
#[test]
fn a_thousand_equal_queries_of_two_workers_are_one_query() {
    let mut simulator = simulate(Servers::new(Box::new(|_: &Message, _: Ipv4Addr| None)), 2, |_| {});
    resolve(&mut simulator, "good.");
    let before = simulator.statistics().sent;
    let start = simulator.time().as_millis() as u64;
    let tokens: Vec<_> = (0..1000)
        .map(|number| ask_at(&mut simulator, start + number % 15, number as usize % 2, "www.good."))
        .collect();
    simulator.run_until_answered().expect("replies");
    assert!(tokens.iter().all(|token| addresses(&reply(&simulator, *token)) == [WEB]));
    assert_eq!(simulator.statistics().sent - before, 1);
}
