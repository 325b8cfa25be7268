//! A small network: honest servers with records, and hostile ones with a closure.

use nonesuch_conformance::simulator::{Network, Options, Reaction, ServerQuery, Simulator};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, Machine, Now, SendFailure};
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Message, Question, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::acl::AccessList;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ROOT: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 1);
/// The server of `good.`, an honest zone.
pub(crate) const GOOD: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 2);
/// The server of `evil.`, and the address in forged records.
pub(crate) const EVIL: Ipv4Addr = Ipv4Addr::new(6, 6, 6, 6);
/// The address of `www.good.`
pub(crate) const WEB: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 80);
/// Octets of memory, half of them for the cache.
pub(crate) const MEMORY: u64 = 2 << 20;

/// The response of the hostile server at an address; `None`: it does not respond.
pub(crate) type Hostile = Box<dyn FnMut(&Message, Ipv4Addr) -> Option<Message>>;

/// A query that a server got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) server: Ipv4Addr,
    pub(crate) name: Name,
    pub(crate) rtype: Rtype,
    pub(crate) flags: u16,
    pub(crate) payload: Option<u16>,
    pub(crate) transport: Transport,
}

/// The servers.
pub(crate) struct Servers {
    /// Apex and records of each honest server.
    pub(crate) zones: BTreeMap<Ipv4Addr, (Name, Vec<Record>)>,
    pub(crate) hostile: Hostile,
    /// Whether no server accepts connections.
    pub(crate) refuses_tcp: bool,
    pub(crate) seen: Vec<Seen>,
}

impl Servers {
    /// Returns the servers of the root and of `good.`; every other address is hostile.
    pub(crate) fn new(hostile: Hostile) -> Self {
        let root = vec![
            record(".", Rtype::NS, wire("a.root.")),
            address("a.root.", ROOT),
            record("good.", Rtype::NS, wire("ns.good.")),
            address("ns.good.", GOOD),
            record("evil.", Rtype::NS, wire("ns.evil.")),
            address("ns.evil.", EVIL),
        ];
        let good = vec![
            record("good.", Rtype::NS, wire("ns.good.")),
            address("ns.good.", GOOD),
            address("www.good.", WEB),
        ];
        let zones = BTreeMap::from([(ROOT, (name("."), root)), (GOOD, (name("good."), good))]);
        Self { zones, hostile, refuses_tcp: false, seen: Vec::new() }
    }

    /// Returns the number of queries that a server got.
    pub(crate) fn count(&self, server: Ipv4Addr) -> usize {
        self.seen.iter().filter(|seen| seen.server == server).count()
    }
}

impl Network for Servers {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let asked = Message::parse(query.message).expect("a query");
        let IpAddr::V4(server) = query.server.ip() else { return Reaction::SILENCE };
        let Question { name, rtype, .. } = asked.questions[0].clone();
        let payload = asked.opt().map(|opt| opt.class.0);
        let transport = query.transport;
        self.seen.push(Seen { server, name, rtype, flags: asked.header.flags, payload, transport });
        if transport == Transport::Tcp && self.refuses_tcp {
            return Reaction::Failure(SendFailure::Refused);
        }
        let response = match self.zones.get(&server) {
            Some((apex, records)) => Some(respond(apex, records, &asked)),
            None => (self.hostile)(&asked, server),
        };
        let Some(mut response) = response else { return Reaction::SILENCE };
        let mut octets = response.to_octets();
        if transport == Transport::Udp && octets.len() > payload.unwrap_or(512).into() {
            response.header.flags |= flags::TC;
            response.records.clear();
            octets = response.to_octets();
        }
        Reaction::answer(query.server, octets)
    }
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn wire(text: &str) -> Vec<u8> {
    name(text).wire().to_vec()
}

pub(crate) fn record(owner: &str, rtype: Rtype, rdata: Vec<u8>) -> Record {
    Record { section: Section::Answer, owner: name(owner), rtype, class: Class::IN, ttl: 300, rdata }
}

pub(crate) fn address(owner: &str, address: Ipv4Addr) -> Record {
    record(owner, Rtype::A, address.octets().to_vec())
}

pub(crate) fn pointer(owner: &str, rtype: Rtype, target: &str) -> Record {
    record(owner, rtype, wire(target))
}

/// Returns the record in another section.
pub(crate) fn within(section: Section, record: Record) -> Record {
    Record { section, ..record }
}

/// Returns an authoritative response with these records.
pub(crate) fn answer(asked: &Message, records: Vec<Record>) -> Message {
    let header = Header { flags: flags::QR | flags::AA, ..asked.header };
    Message { header, questions: asked.questions.clone(), records }
}

/// Returns a referral with these records.
pub(crate) fn referral(asked: &Message, records: Vec<Record>) -> Message {
    let mut message = answer(asked, records);
    message.header.flags = flags::QR;
    message
}

/// Returns an authoritative response without records of the question.
pub(crate) fn denial(asked: &Message, apex: &str, rcode: Rcode) -> Message {
    let numbers = [1_u32, 3600, 600, 86_400, 60].into_iter().flat_map(u32::to_be_bytes);
    let soa = wire(apex).into_iter().chain(wire(apex)).chain(numbers).collect();
    let mut message = answer(asked, vec![within(Section::Authority, record(apex, Rtype::SOA, soa))]);
    message.header.flags |= rcode.0;
    message
}

/// The response of an honest server.
fn respond(apex: &Name, records: &[Record], asked: &Message) -> Message {
    let Question { name, rtype, .. } = &asked.questions[0];
    let is_cut = |record: &&Record| {
        record.rtype == Rtype::NS
            && record.owner.view().is_below(apex.view())
            && name.view().is_at_or_below(record.owner.view())
    };
    if let Some(ns) = records.iter().find(is_cut) {
        let glue = records.iter().filter(|record| record.owner.wire() == ns.rdata);
        let glue = glue.map(|record| within(Section::Additional, record.clone()));
        return referral(asked, [within(Section::Authority, ns.clone())].into_iter().chain(glue).collect());
    }
    let of_name: Vec<&Record> = records.iter().filter(|record| record.owner == *name).collect();
    let found: Vec<Record> =
        of_name.iter().filter(|record| record.rtype == *rtype).map(|record| (*record).clone()).collect();
    if !found.is_empty() {
        return answer(asked, found);
    }
    let exists = records.iter().any(|record| record.owner.view().is_at_or_below(name.view()));
    denial(asked, &apex.to_string(), if exists { Rcode::NOERROR } else { Rcode::NXDOMAIN })
}

/// Returns a simulator with a resolver. `change` changes its options.
pub(crate) fn simulate(
    servers: Servers,
    workers: usize,
    change: impl FnOnce(&mut ResolverOptions),
) -> Simulator<'static, Servers> {
    simulate_shared(servers, workers, change).0
}

/// As [`simulate`]; also returns what the workers share.
pub(crate) fn simulate_shared(
    servers: Servers,
    workers: usize,
    change: impl FnOnce(&mut ResolverOptions),
) -> (Simulator<'static, Servers>, Arc<Shared>) {
    let mut options = ResolverOptions {
        hints: Hints::new([(name("a.root."), ROOT.into())]).expect("hints"),
        access: AccessList::allow_all(),
        memory: MEMORY,
        ..ResolverOptions::default()
    };
    change(&mut options);
    let simulator =
        Options { patience: options.limits.time + Duration::from_millis(100), ..Options::default() };
    let now = Now { instant: simulator.start, unix: simulator.unix };
    let shared = Arc::new(Shared::new(options, [7; 16], &[7; 32], now).expect("local names"));
    let machine =
        |worker| -> Box<dyn Machine> { Box::new(Resolver::new(Arc::clone(&shared), worker, [7; 32])) };
    (Simulator::new(simulator, (0..workers).map(machine).collect(), servers), shared)
}

/// Schedules a client query for a time in milliseconds.
pub(crate) fn ask_at(
    simulator: &mut Simulator<'_, Servers>,
    milliseconds: u64,
    worker: usize,
    asked: &str,
) -> ClientToken {
    let mut message = Vec::new();
    push_query(&name(asked), Rtype::A, 7, flags::RD, &mut message);
    send(simulator, milliseconds, worker, message)
}

/// As [`ask_at`], with an OPT record.
pub(crate) fn ask_with_edns(
    simulator: &mut Simulator<'_, Servers>,
    milliseconds: u64,
    asked: &str,
) -> ClientToken {
    ask_with_flags(simulator, milliseconds, asked, flags::AD)
}

/// As [`ask_with_edns`], with these flags and RD.
pub(crate) fn ask_with_flags(
    simulator: &mut Simulator<'_, Servers>,
    milliseconds: u64,
    asked: &str,
    others: u16,
) -> ClientToken {
    ask_for_type(simulator, milliseconds, (asked, Rtype::A), others)
}

/// As [`ask_with_flags`], for a type.
pub(crate) fn ask_for_type(
    simulator: &mut Simulator<'_, Servers>,
    milliseconds: u64,
    (asked, rtype): (&str, Rtype),
    others: u16,
) -> ClientToken {
    let mut message = Vec::new();
    push_query(&name(asked), rtype, 7, flags::RD | others, &mut message);
    edns::push_opt(1232, 0, 0, &mut message);
    message[HEADER - 1] = 1;
    send(simulator, milliseconds, 0, message)
}

fn send(
    simulator: &mut Simulator<'_, Servers>,
    milliseconds: u64,
    worker: usize,
    message: Vec<u8>,
) -> ClientToken {
    let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
    simulator.query_at(Duration::from_millis(milliseconds), worker, client, Transport::Tcp, message)
}

/// Asks now, and returns the reply and the time that it took.
pub(crate) fn resolve(simulator: &mut Simulator<'_, Servers>, asked: &str) -> (Message, Duration) {
    let start = simulator.time();
    let token = ask_at(simulator, 0, 0, asked);
    simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}\n{}", simulator.trace()));
    (reply(simulator, token), simulator.time() - start)
}

pub(crate) fn reply(simulator: &Simulator<'_, Servers>, token: ClientToken) -> Message {
    let reply = simulator.reply(token).and_then(|reply| reply.message.clone()).expect("a reply");
    Message::parse(&reply).expect("a message")
}

/// Returns the addresses in the answer.
pub(crate) fn addresses(reply: &Message) -> Vec<Ipv4Addr> {
    let records = reply.section(Section::Answer).filter(|record| record.rtype == Rtype::A);
    records
        .filter_map(|record| <[u8; 4]>::try_from(record.rdata.as_slice()).ok())
        .map(Ipv4Addr::from)
        .collect()
}

/// Checks that `www.good.` has its true address, and comes from its own server.
#[track_caller]
pub(crate) fn assert_good(simulator: &mut Simulator<'_, Servers>) {
    let (reply, _) = resolve(simulator, "www.good.");
    assert_eq!(addresses(&reply), [WEB], "{}", simulator.trace());
    let misdirected =
        |seen: &&Seen| seen.server == EVIL && seen.name.view().is_at_or_below(name("good.").view());
    assert_eq!(simulator.network().seen.iter().find(misdirected), None);
}
