//! Responses of hostile servers, through the whole state machine of the resolver: each client query
//! gets a reply with its ID and question, the work is bounded, and no data reach a zone that the
//! hostile servers do not serve.
//!
//! The network is simulated. The servers of the root and of `good.` are honest. The root delegates
//! `evil.` to a hostile server, and every other address is hostile, too. The first octets of the
//! input select queries of clients, and the others the responses of hostile servers: header fields,
//! and records with names, types and addresses of short lists, so that mutation finds combinations
//! that mean something.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_conformance::simulator::{Network, Options, Reaction, ServerQuery, Simulator};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, Machine, Now, SendFailure};
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::{Resolver, Shared};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Servers of the root and of `good.`, and the address of `www.good.`.
const ROOT: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 1);
const GOOD: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 2);
const EVIL: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 66);
const WEB: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 80);
/// Addresses in records of hostile servers.
const ADDRESSES: [Ipv4Addr; 6] = [EVIL, Ipv4Addr::new(193, 0, 0, 67), GOOD, ROOT, Ipv4Addr::LOCALHOST, WEB];
/// Names in client queries and in records of hostile servers.
const NAMES: [&str; 14] = [
    "evil.",
    "www.evil.",
    "ns.evil.",
    "a.b.c.evil.",
    "good.",
    "www.good.",
    "ns.good.",
    "x.www.good.",
    ".",
    "a.root.",
    "com.",
    "sub.evil.",
    "www.sub.evil.",
    "*.evil.",
];
const TYPES: [Rtype; 10] = [
    Rtype::A,
    Rtype::NS,
    Rtype::CNAME,
    Rtype::DNAME,
    Rtype::SOA,
    Rtype::AAAA,
    Rtype::TXT,
    Rtype::OPT,
    Rtype::DS,
    Rtype::NSEC,
];
const TTLS: [u32; 4] = [300, 0, 86_400, u32::MAX];
/// Maximum number of client queries.
const QUERIES_MAX: usize = 6;
/// Octets of memory, half of them for the cache.
const MEMORY: u64 = 8 << 20;
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);

static POOL: LazyLock<Vec<Name>> = LazyLock::new(|| NAMES.iter().map(|text| name(text)).collect());

fn name(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fuzz_target!(|data: &[u8]| {
    let (count, rest) = data.split_first().map_or((0, data), |(count, rest)| (usize::from(*count), rest));
    let asked = 2 * (count % QUERIES_MAX + 1);
    let (choices, hostile) = rest.split_at(asked.min(rest.len()));
    let limit = u64::from(ResolverOptions::default().limits.queries);
    let network = Servers { input: Input(hostile.to_vec(), 0) };
    let mut simulator = Simulator::new(Options::default(), vec![resolver()], network);
    let mut queries: Vec<(ClientToken, Vec<u8>)> = Vec::new();
    for (number, choice) in choices.chunks_exact(2).enumerate() {
        let asked = &POOL[usize::from(choice[0]) % POOL.len()];
        let rtype = TYPES[usize::from(choice[1]) % TYPES.len()];
        // OPT is a meta type that cannot be a question (RFC 6895 section 3.1).
        let rtype = if rtype == Rtype::OPT { Rtype::A } else { rtype };
        queries.push(ask(&mut simulator, asked, rtype, number));
    }
    answered(&mut simulator);
    // The last query shows whether the cache is poisoned, or an honest server is shunned.
    queries.push(ask(&mut simulator, &name("www.good."), Rtype::A, QUERIES_MAX));
    answered(&mut simulator);
    for (token, query) in &queries {
        check_reply(&reply(&simulator, *token), query);
    }
    let (last, _) = queries.last().unwrap_or_else(|| unreachable!("a query was pushed"));
    let last = reply(&simulator, *last);
    let addresses: Vec<&[u8]> = last.section(Section::Answer).map(|record| record.rdata.as_slice()).collect();
    assert_eq!((last.rcode(), addresses), (Rcode::NOERROR, vec![&WEB.octets()[..]]));
    // Each client query has a budget, and so has the priming query.
    assert!(simulator.statistics().sent <= limit * (queries.len() as u64 + 1));
    assert_eq!(simulator.open_exchanges(), 0);
});

/// Schedules a client query. Returns its token and the message.
fn ask(
    simulator: &mut Simulator<'_, Servers>,
    asked: &Name,
    rtype: Rtype,
    number: usize,
) -> (ClientToken, Vec<u8>) {
    let mut message = Vec::new();
    push_query(asked, rtype, 0x4e53, flags::RD, &mut message);
    let at = simulator.time() + Duration::from_millis(number as u64 * 7);
    (simulator.query_at(at, 0, CLIENT, Transport::Tcp, message.clone()), message)
}

fn answered(simulator: &mut Simulator<'_, Servers>) {
    simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}"));
}

fn reply(simulator: &Simulator<'_, Servers>, token: ClientToken) -> Message {
    let reply = simulator.reply(token).and_then(|reply| reply.message.clone());
    let reply = reply.unwrap_or_else(|| panic!("the query was dropped"));
    Message::parse(&reply).unwrap_or_else(|error| panic!("{error}"))
}

fn check_reply(reply: &Message, query: &[u8]) {
    let query = Message::parse(query).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((reply.header.id, &reply.questions), (query.header.id, &query.questions));
    assert_ne!(reply.header.flags & flags::QR, 0);
    // Data of good. come only from its own servers, whatever the question was.
    for record in &reply.records {
        if record.rtype == Rtype::A && record.owner == name("www.good.") {
            assert_eq!(record.rdata, WEB.octets(), "{record:?}");
        }
    }
}

fn resolver() -> Box<dyn Machine> {
    let options = ResolverOptions {
        hints: Hints::new([(name("a.root."), ROOT.into())]).unwrap_or_else(|error| panic!("{error}")),
        memory: MEMORY,
        ..ResolverOptions::default()
    };
    let now = Now { instant: Instant::now(), unix: 0 };
    let shared = Shared::new(options, [7; 16], &[7; 32], now).unwrap_or_else(|error| panic!("{error}"));
    Box::new(Resolver::new(Arc::new(shared), 0, [7; 32]))
}

/// All servers of the network.
struct Servers {
    input: Input,
}

impl Network for Servers {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let asked = Message::parse(query.message).unwrap_or_else(|error| panic!("malformed query: {error}"));
        let response = match query.server.ip() {
            IpAddr::V4(ROOT) => root(&asked),
            IpAddr::V4(GOOD) => good(&asked),
            _ => return self.hostile(query, &asked),
        };
        Reaction::answer(query.server, response.to_octets())
    }
}

impl Servers {
    fn hostile(&mut self, query: &ServerQuery<'_>, asked: &Message) -> Reaction {
        let input = &mut self.input;
        match input.next() {
            None | Some(0) => return Reaction::SILENCE,
            Some(1) => return Reaction::Failure(SendFailure::Refused),
            Some(2) => {
                let length = usize::from(input.number());
                let octets = (0..length).map(|_| input.number()).collect();
                return Reaction::answer(query.server, octets);
            }
            Some(_) => {}
        }
        let mut response = response_to(asked);
        response.header.flags |= u16::from(input.number() & 0x0f);
        let bits = input.number();
        if bits & 1 == 0 {
            response.header.flags |= flags::AA;
        }
        if bits & 0x0e == 0x0e {
            response.header.flags |= flags::TC;
        }
        if bits & 0xf0 == 0xf0 {
            response.header.id ^= u16::from(bits);
        }
        if bits & 0xf0 == 0xe0
            && let Some(question) = response.questions.first_mut()
        {
            question.name = input.name(&question.name);
        }
        for _ in 0..input.number() % 9 {
            let record = input.record(asked);
            response.records.push(record);
        }
        Reaction::answer(query.server, response.to_octets())
    }
}

/// The octets that select the responses of hostile servers.
struct Input(Vec<u8>, usize);

impl Input {
    fn next(&mut self) -> Option<u8> {
        self.1 += 1;
        self.0.get(self.1 - 1).copied()
    }

    /// The next octet, or 0 at the end.
    fn number(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// A name of the list, or `asked` or its parent.
    fn name(&mut self, asked: &Name) -> Name {
        match self.number() {
            0..=63 => asked.clone(),
            64..=95 => asked.view().parent().map_or_else(Name::root, |parent| parent.to_name()),
            choice => POOL[usize::from(choice) % POOL.len()].clone(),
        }
    }

    fn record(&mut self, asked: &Message) -> Record {
        let question = asked.questions.first().map_or_else(Name::root, |question| question.name.clone());
        let owner = self.name(&question);
        let rtype = match self.number() {
            0..=63 => asked.questions.first().map_or(Rtype::A, |question| question.rtype),
            choice => TYPES[usize::from(choice) % TYPES.len()],
        };
        let section = match self.number() % 3 {
            0 => Section::Answer,
            1 => Section::Authority,
            _ => Section::Additional,
        };
        let ttl = TTLS[usize::from(self.number()) % TTLS.len()];
        let class = if rtype == Rtype::OPT { Class(1232) } else { Class::IN };
        Record { section, owner, rtype, class, ttl, rdata: self.rdata(rtype, &question) }
    }

    fn rdata(&mut self, rtype: Rtype, asked: &Name) -> Vec<u8> {
        match rtype {
            Rtype::A => ADDRESSES[usize::from(self.number()) % ADDRESSES.len()].octets().to_vec(),
            Rtype::NS | Rtype::CNAME | Rtype::DNAME => self.name(asked).wire().to_vec(),
            Rtype::SOA => soa(&self.name(asked)),
            _ => (0..self.number() % 24).map(|_| self.number()).collect(),
        }
    }
}

fn response_to(asked: &Message) -> Message {
    let header = Header { flags: flags::QR | asked.header.flags & flags::RD, ..asked.header };
    Message { header, questions: asked.questions.clone(), records: Vec::new() }
}

fn record(section: Section, owner: &str, rtype: Rtype, rdata: Vec<u8>) -> Record {
    Record { section, owner: name(owner), rtype, class: Class::IN, ttl: 3600, rdata }
}

fn soa(server: &Name) -> Vec<u8> {
    let numbers = [1_u32, 3600, 600, 86_400, 300].into_iter().flat_map(u32::to_be_bytes);
    server.wire().iter().chain(server.wire()).copied().chain(numbers).collect()
}

/// The root: two delegations, and no other name.
fn root(asked: &Message) -> Message {
    let mut response = response_to(asked);
    let Some(Question { name: asked_name, rtype, .. }) = asked.questions.first() else { return response };
    for (zone, server, address) in [("good.", "ns.good.", GOOD), ("evil.", "ns.evil.", EVIL)] {
        if asked_name.view().is_at_or_below(name(zone).view()) && *rtype != Rtype::DS {
            response.records.push(record(Section::Authority, zone, Rtype::NS, name(server).wire().to_vec()));
            response.records.push(record(Section::Additional, server, Rtype::A, address.octets().to_vec()));
            return response;
        }
    }
    response.header.flags |= flags::AA;
    let server = "a.root.";
    match (asked_name.to_string().to_ascii_lowercase().as_str(), *rtype) {
        (".", Rtype::NS) => {
            response.records.push(record(Section::Answer, ".", Rtype::NS, name(server).wire().to_vec()));
            response.records.push(record(Section::Additional, server, Rtype::A, ROOT.octets().to_vec()));
        }
        ("a.root.", Rtype::A) => {
            response.records.push(record(Section::Answer, server, Rtype::A, ROOT.octets().to_vec()));
        }
        (other, _) => {
            if ![".", "root.", "a.root.", "good.", "evil."].contains(&other) {
                response.header.flags |= Rcode::NXDOMAIN.0;
            }
            response.records.push(record(Section::Authority, ".", Rtype::SOA, soa(&name(server))));
        }
    }
    response
}

/// The server of `good.`, which refuses other names.
fn good(asked: &Message) -> Message {
    let mut response = response_to(asked);
    let Some(Question { name: asked_name, rtype, .. }) = asked.questions.first() else { return response };
    if !asked_name.view().is_at_or_below(name("good.").view()) {
        response.header.flags |= Rcode::REFUSED.0;
        return response;
    }
    response.header.flags |= flags::AA;
    let server = "ns.good.";
    let (owner, rdata) = match (asked_name.to_string().to_ascii_lowercase().as_str(), *rtype) {
        ("good.", Rtype::NS) => ("good.", name(server).wire().to_vec()),
        ("ns.good.", Rtype::A) => (server, GOOD.octets().to_vec()),
        ("www.good.", Rtype::A) => ("www.good.", WEB.octets().to_vec()),
        (other, _) => {
            if !["good.", "ns.good.", "www.good."].contains(&other) {
                response.header.flags |= Rcode::NXDOMAIN.0;
            }
            response.records.push(record(Section::Authority, "good.", Rtype::SOA, soa(&name(server))));
            return response;
        }
    };
    response.records.push(record(Section::Answer, owner, *rtype, rdata));
    response
}
