//! Random simulations: a seed determines a tree of zones with faulty and hostile servers, bad paths,
//! changes of the clock, the options of the resolver, and the queries of clients.
//!
//! The judge of each simulation: every query gets a reply in time, the work is bounded, all
//! exchanges end, no data reach a zone that their server does not serve, and replies are true. In a
//! calm simulation, where nothing is wrong, each name resolves.

mod faulty_tree;
mod lies;
mod lookup;
mod servers;
pub mod signed;
#[cfg(test)]
mod tests;
mod world;

pub use faulty_tree::{FaultyTree, TreeQuestion};

use crate::describe::{MessageText, RecordText};
use crate::simulator::{Fault, Simulator, TraceEvent};
use lies::Lie;
use lookup::Truth;
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, Machine, Now};
use nonesuch_proto::message::{Message, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::{AddressFamilies, ResolverOptions};
use nonesuch_resolver::{Resolver, Shared};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use servers::Servers;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use world::{HOSTILE, World};

/// Types of client queries.
const TYPES: [Rtype; 8] =
    [Rtype::A, Rtype::A, Rtype::A, Rtype::AAAA, Rtype::TXT, Rtype::NS, Rtype::CNAME, Rtype::SOA];
/// Octets of memory, half of them for the cache.
const MEMORY: u64 = 2 << 20;
/// Time in which the queries of clients arrive.
const QUERY_TIME: Duration = Duration::from_secs(30);
/// Time after the last reply until all exchanges must have ended.
const REST: Duration = Duration::from_secs(60);
/// Time that a reply may take beyond the time of a query.
const SLACK: Duration = Duration::from_millis(500);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);

/// What the resolver did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The simulator found a fault, for example a query without a reply.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// A reply that no client accepts.
    #[error("the reply to {question} is malformed, or does not fit the query")]
    Malformed {
        /// The question.
        question: String,
    },
    /// A reply that is not true.
    #[error("the reply to {question} is not {expected}:\n{reply}")]
    Untrue {
        /// The question.
        question: String,
        /// The correct response code and records.
        expected: String,
        /// The reply.
        reply: String,
    },
    /// Data of a server reached a zone that it does not serve.
    #[error("the reply to {question} has forged data: {record}")]
    Forged {
        /// The question.
        question: String,
        /// The record.
        record: String,
    },
    /// A hostile server got a query for a name of an honest zone.
    #[error("the hostile server {server} was asked for {name}")]
    Misdirected {
        /// The server.
        server: SocketAddr,
        /// The name.
        name: Name,
    },
    /// More queries to servers than the limits of the client queries permit.
    #[error("{sent} queries to servers, more than {limit}")]
    TooManyQueries {
        /// Number of queries.
        sent: u64,
        /// The limit.
        limit: u64,
    },
    /// Exchanges did not end.
    #[error("{0} exchanges did not end")]
    OpenExchanges(usize),
}

/// The result of a simulation without a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Replies to clients.
    pub replies: u64,
    /// Replies with SERVFAIL.
    pub failures: u64,
    /// Replies that were compared with the data of the zones.
    pub compared: u64,
    /// Replies with the AD flag.
    pub secure: u64,
    /// Replies with SERVFAIL to queries whose answer is bogus.
    pub bogus: u64,
    /// Queries to servers.
    pub sent: u64,
}

impl std::ops::AddAssign for Results {
    fn add_assign(&mut self, other: Self) {
        self.replies += other.replies;
        self.failures += other.failures;
        self.compared += other.compared;
        self.secure += other.secure;
        self.bogus += other.bogus;
        self.sent += other.sent;
    }
}

/// A client query.
struct Asked {
    token: ClientToken,
    name: Name,
    rtype: Rtype,
}

/// Runs the simulation of a seed. Returns its results and its trace.
///
/// # Errors
/// The resolver did something wrong.
pub fn run(seed: u64) -> (Result<Results, Violation>, String) {
    let world = World::random(seed);
    let random = &mut ChaCha8Rng::seed_from_u64(!seed);
    let options = resolver_options(&world, random);
    let workers = random.random_range(1..=2);
    let mut simulator_options = world.options.clone();
    simulator_options.patience = options.limits.time + SLACK;
    let now = Now { instant: simulator_options.start, unix: simulator_options.unix };
    let limit = u64::from(options.limits.queries);
    let machines = machines(options, workers, now, random);
    let favourite = Lie::random(random);
    let network =
        Servers { world: &world, random: ChaCha8Rng::from_rng(random), favourite, misdirected: None };
    let mut simulator = Simulator::new(simulator_options, machines, network);
    let asked = ask(&world, &mut simulator, workers, random);
    let result = judge(&world, &mut simulator, &asked, limit * asked.len() as u64);
    (result, simulator.trace().to_string())
}

fn judge(
    world: &World,
    simulator: &mut Simulator<'_, Servers<'_>>,
    asked: &[Asked],
    limit: u64,
) -> Result<Results, Violation> {
    simulator.run_until_answered()?;
    simulator.run_for(REST)?;
    let mut results = Results { sent: simulator.statistics().sent, ..Results::default() };
    for query in asked {
        let message = simulator.reply(query.token).and_then(|reply| reply.message.as_deref());
        check_reply(world, query, message.unwrap_or_default(), &mut results)?;
    }
    if let Some((server, name)) = simulator.network().misdirected.clone()
        && world.options.default_path.corruption == 0.0
    {
        return Err(Violation::Misdirected { server, name });
    }
    let sent = simulator.trace().entries().filter(|entry| is_counted(&entry.event)).count() as u64;
    if sent > limit {
        return Err(Violation::TooManyQueries { sent, limit });
    }
    match simulator.open_exchanges() {
        0 => Ok(results),
        open => Err(Violation::OpenExchanges(open)),
    }
}

/// Whether the event is a query to a server. Priming queries have a budget of their own.
fn is_counted(event: &TraceEvent) -> bool {
    let TraceEvent::Send(.., message) = event else { return false };
    let question = Message::parse(message).ok().and_then(|message| message.questions.into_iter().next());
    question.is_none_or(|question| !question.name.view().is_root() || question.rtype != Rtype::NS)
}

fn check_reply(world: &World, query: &Asked, message: &[u8], results: &mut Results) -> Result<(), Violation> {
    let question = format!("{} {}", query.name, query.rtype);
    let reply = Message::parse(message).ok().filter(|reply| {
        let asked = reply.questions.first();
        reply.header.id == query.id()
            && reply.header.flags & (flags::QR | flags::RA) == flags::QR | flags::RA
            && asked.is_some_and(|asked| asked.name == query.name && asked.rtype == query.rtype)
    });
    let Some(reply) = reply else { return Err(Violation::Malformed { question }) };
    results.replies += 1;
    let is_failure = reply.rcode() == Rcode::SERVFAIL;
    results.failures += u64::from(is_failure);
    // An octet that the path changes can be anywhere, also in the data.
    if world.options.default_path.corruption > 0.0 {
        return Ok(());
    }
    let is_forged = |record: &&Record| {
        record.rtype == Rtype::A
            && record.rdata.starts_with(&HOSTILE)
            && !world.is_hostile_name(&record.owner)
    };
    if let Some(record) = reply.records.iter().find(is_forged) {
        return Err(Violation::Forged { question, record: RecordText(record).to_string() });
    }
    let Some(truth) = world.truth(&query.name, query.rtype) else { return Ok(()) };
    if is_failure && !world.is_calm {
        return Ok(());
    }
    results.compared += 1;
    if is_true(&reply, &truth) {
        return Ok(());
    }
    let expected = format!("{} {:?}", truth.rcode, truth.answer);
    Err(Violation::Untrue { question, expected, reply: MessageText(&reply).to_string() })
}

/// Whether a reply has the correct RCODE and records, with TTLs that are not too large.
fn is_true(reply: &Message, truth: &Truth) -> bool {
    let key = |owner: &Name, rtype: Rtype, rdata: &[u8]| (owner.clone(), rtype.0, rdata.to_vec());
    let expected = truth.answer.iter().flat_map(|rrset| {
        rrset.data.1.iter().map(|rdata| (key(&rrset.owner, rrset.rtype, rdata), rrset.data.0))
    });
    let expected: std::collections::BTreeMap<_, u32> = expected.collect();
    let records: Vec<&Record> = reply.section(Section::Answer).collect();
    let found: BTreeSet<_> =
        records.iter().map(|record| key(&record.owner, record.rtype, &record.rdata)).collect();
    reply.rcode() == truth.rcode
        && records.len() == expected.len()
        && found.iter().eq(expected.keys())
        && records.iter().all(|record| {
            record.ttl <= expected.get(&key(&record.owner, record.rtype, &record.rdata)).copied().unwrap_or(0)
        })
}

impl Asked {
    /// The ID of the query.
    const fn id(&self) -> u16 {
        self.name.wire().len() as u16
    }
}

/// Schedules the queries of clients and changes of the clock.
fn ask(
    world: &World,
    simulator: &mut Simulator<'_, Servers<'_>>,
    workers: usize,
    random: &mut ChaCha8Rng,
) -> Vec<Asked> {
    let names = world.known_names();
    let at = |random: &mut ChaCha8Rng| random.random_range(Duration::ZERO..QUERY_TIME);
    if random.random_bool(0.3) {
        simulator.set_clock_at(at(random), random.random_range(-1_000_000..1_000_000));
    }
    let mut asked = Vec::new();
    let count = if random.random_bool(0.3) { 1 } else { random.random_range(2..=40) };
    for _ in 0..count {
        let name = names.choose(random).cloned().unwrap_or_else(Name::root);
        let rtype = TYPES.choose(random).copied().unwrap_or(Rtype::A);
        let mut message = Vec::new();
        push_query(&name, rtype, name.wire().len() as u16, flags::RD, &mut message);
        // Several clients ask for the same name at the same time.
        let (time, copies) = (at(random), if random.random_bool(0.1) { 5 } else { 1 });
        for _ in 0..copies {
            let worker = random.random_range(0..workers);
            let token = simulator.query_at(time, worker, CLIENT, Transport::Tcp, message.clone());
            asked.push(Asked { token, name: name.clone(), rtype });
        }
    }
    asked
}

fn resolver_options(world: &World, random: &mut ChaCha8Rng) -> ResolverOptions {
    let hosts = world.zones[0].hosts.iter().map(|host| &world.hosts[*host]);
    let addresses = hosts.flat_map(|host| host.addresses.iter().map(|address| (host.name.clone(), *address)));
    let mut options = ResolverOptions {
        hints: Hints::new(addresses).unwrap_or_default(),
        memory: MEMORY,
        qname_minimisation: random.random_bool(0.8),
        nxdomain_cut: random.random_bool(0.8),
        use_0x20: random.random_bool(0.2),
        families: if random.random_bool(0.3) { AddressFamilies::OnlyIpv4 } else { AddressFamilies::Both },
        ..ResolverOptions::default()
    };
    if !world.is_calm {
        options.limits.queries = random.random_range(8..=64);
    }
    options
}

fn machines(
    options: ResolverOptions,
    workers: usize,
    now: Now,
    random: &mut ChaCha8Rng,
) -> Vec<Box<dyn Machine>> {
    let shared = Shared::new(options, random.random(), &random.random(), now);
    let shared = Arc::new(shared.unwrap_or_else(|error| unreachable!("{error}")));
    let machine = |worker| -> Box<dyn Machine> {
        Box::new(Resolver::new(Arc::clone(&shared), worker, random.random()))
    };
    (0..workers).map(machine).collect()
}

/// Returns a name of one or several labels below `parent`.
fn name_below(labels: &str, parent: &Name) -> Name {
    let prepended = labels.rsplit('.').try_fold(parent.clone(), |name, label| {
        Name::prepend(label.as_bytes(), NameRef::from_wire(name.wire())?)
    });
    // Only a name that would be too long fails.
    prepended.unwrap_or_else(|_| parent.clone())
}
