//! The work of the resolver for one query, without sockets, for counting instructions:
//!
//!     valgrind --tool=callgrind target/release/examples/resolver_speed miss 2000
//!
//! Arguments: the kind of queries, their number, and the number of workers, which take turns and share
//! the cache (default 1).
//!
//! - `miss`: each query has a new name of a signed zone, whose server is known, and is answered after
//!   one query to the server.
//! - `denied`: the same with names that do not exist, and NSEC records.
//! - `hit`: the answer is in the cache.
//!
//! The function `ask` has all work of the resolver.

use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientQuery, ClientToken, Event, Machine, Now, Output};
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Message, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::{Resolver, Shared};
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

const ZONE: &str = "z1.example.";
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Octets of memory, half of them for the cache: no entry is evicted.
const MEMORY: u64 = 512 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Miss,
    Denied,
    Hit,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        Some("miss") => Kind::Miss,
        Some("denied") => Kind::Denied,
        Some("hit") => Kind::Hit,
        _ => panic!("usage: resolver_speed miss|denied|hit QUERIES"),
    };
    let queries: u32 = arguments.next().and_then(|text| text.parse().ok()).expect("a number of queries");
    let now = Now { instant: Instant::now(), unix: 1_700_000_000 };
    let workers = arguments.next().map_or(1, |text| text.parse().expect("a number of workers"));
    let mut resolvers = resolvers(workers, now);
    // The resolvers learn the servers of the zone, and for hits the name.
    resolve(&mut resolvers[0], &client_query(0), Kind::Miss, now);
    for number in 1..=queries {
        let message = client_query(if kind == Kind::Hit { 0 } else { number });
        let exchanges = resolve(&mut resolvers[number as usize % workers], &message, kind, now);
        assert_eq!(exchanges, u32::from(kind != Kind::Hit));
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn client_query(number: u32) -> Vec<u8> {
    let mut message = Vec::new();
    push_query(&name(&format!("host{number}.{ZONE}")), Rtype::A, 7, flags::RD, &mut message);
    push_opt(&mut message);
    message
}

fn push_opt(message: &mut Vec<u8>) {
    // The number of records in the additional section.
    message[HEADER - 1] += 1;
    edns::push_opt(1232, 0, edns::DO, message);
}

fn resolvers(workers: usize, now: Now) -> Vec<Resolver> {
    let options = ResolverOptions {
        hints: Hints::new([(name("ns.root."), SERVER.into())]).expect("hints"),
        memory: MEMORY,
        ..ResolverOptions::default()
    };
    let shared = Shared::new(options, [7; 16], &[7; 32], now).expect("local names");
    let shared = Arc::new(shared);
    (0..workers).map(|worker| Resolver::new(Arc::clone(&shared), worker, [7; 32])).collect()
}

/// Resolves one query. Returns the number of queries to the server.
fn resolve(resolver: &mut Resolver, message: &[u8], kind: Kind, now: Now) -> u32 {
    let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
    let query = ClientQuery { token: ClientToken(1), client, transport: Transport::Udp, message };
    let mut outputs = ask(resolver, Event::Query(query), now);
    let mut exchanges = 0;
    while let Some(sent) = outputs.iter().find_map(|output| match output {
        Output::Send(sent) => Some(sent.clone()),
        _ => None,
    }) {
        let response = respond(&sent.message, kind);
        outputs = ask(resolver, Event::Response(sent.exchange, &response), now);
        exchanges += 1;
    }
    assert!(matches!(outputs.last(), Some(Output::Reply(..))), "{outputs:?}");
    exchanges
}

/// Passes an event to the resolver in a turn of its own. Returns the outputs.
#[inline(never)]
fn ask(resolver: &mut Resolver, event: Event<'_>, now: Now) -> Vec<Output> {
    resolver.handle_event(event, now);
    resolver.end_turn(now);
    let mut outputs = Vec::with_capacity(4);
    while let Some(output) = resolver.poll_output() {
        outputs.push(output);
    }
    black_box(resolver.poll_timeout());
    outputs
}

/// The response of the server, which serves the root, the zone and its parent.
fn respond(query: &[u8], kind: Kind) -> Vec<u8> {
    let asked = Message::parse(query).expect("a query");
    let question = &asked.questions[0];
    let (zone, server) = (name(ZONE), name("ns.z1.example."));
    let mut response_flags = flags::QR | flags::AA;
    let mut records = Vec::new();
    let mut add = |section, owner: &Name, rtype, rdata: Vec<u8>| {
        records.push(Record { section, owner: owner.clone(), rtype, class: Class::IN, ttl: 3600, rdata });
    };
    if question.rtype == Rtype::NS {
        add(Section::Answer, &Name::root(), Rtype::NS, name("ns.root.").wire().to_vec());
        add(Section::Additional, &name("ns.root."), Rtype::A, SERVER.octets().to_vec());
    } else if !question.name.view().is_below(zone.view()) {
        // A part of the name: a zone cut.
        response_flags = flags::QR;
        add(Section::Authority, &question.name, Rtype::NS, server.wire().to_vec());
        add(Section::Additional, &server, Rtype::A, SERVER.octets().to_vec());
    } else if kind == Kind::Denied {
        response_flags |= Rcode::NXDOMAIN.0;
        let numbers = [1_u32, 3600, 600, 86_400, 900].into_iter().flat_map(u32::to_be_bytes);
        let names = [server.wire(), name("admin.z1.example.").wire()].concat();
        add(Section::Authority, &zone, Rtype::SOA, names.into_iter().chain(numbers).collect());
        add(Section::Authority, &zone, Rtype::RRSIG, signature(Rtype::SOA));
        for owner in [&zone, &question.name] {
            let next = [zone.wire(), &[0, 6, 0x40, 0, 0, 0, 0, 3]].concat();
            add(Section::Authority, owner, Rtype::NSEC, next);
            add(Section::Authority, owner, Rtype::RRSIG, signature(Rtype::NSEC));
        }
    } else {
        add(Section::Answer, &question.name, Rtype::A, vec![198, 51, 100, 1]);
        add(Section::Answer, &question.name, Rtype::RRSIG, signature(Rtype::A));
    }
    let header = Header { flags: response_flags, ..asked.header };
    let mut octets = Message { header, questions: asked.questions.clone(), records }.to_octets();
    push_opt(&mut octets);
    octets
}

/// RDATA of an RRSIG record with the length of an ECDSA P-256 signature.
fn signature(covered: Rtype) -> Vec<u8> {
    [&covered.0.to_be_bytes()[..], &[7; 16], name(ZONE).wire(), &[7; 64]].concat()
}
