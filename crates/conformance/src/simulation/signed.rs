//! Random simulations of validation: a seed determines a tree of signed and unsigned zones, one fault
//! in the responses of one zone, bad paths, the options of the resolver, and the queries of clients.
//!
//! The judge has an oracle, which knows the zones and the fault and does not validate. Data of a secure
//! zone that reach a client are those of the zone. A reply has the AD flag exactly if all of its data
//! are from secure zones. An answer that needs the faulty data is SERVFAIL, unless the fault has no
//! effect for the client; every other answer is correct. Afterwards the servers are repaired: first
//! nothing false is in the cache, and when all TTLs have ended, all answers are correct.

mod chain;
mod fault;
mod judge;
mod keys;
mod lookup;
mod oracle;
mod plant;
mod respond;
mod servers;
#[cfg(test)]
mod tests;
mod world;
mod zone;

use super::{REST, Results, SLACK, Violation, is_counted, machines};
use crate::simulator::Simulator;
use fault::{Fault, Target};
use judge::{Asked, check_reply};
use nonesuch_dnssec::validate::AlgorithmPolicy;
use nonesuch_net::Transport;
use nonesuch_net::machine::Now;
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::{AddressFamilies, MEMORY_RANGE, ResolverOptions, ValidationOptions};
use oracle::Phase;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use servers::Servers;
use std::time::Duration;
use world::World;

/// Types of client queries.
const TYPES: [Rtype; 11] = [
    Rtype::A,
    Rtype::A,
    Rtype::A,
    Rtype::A,
    Rtype::AAAA,
    Rtype::TXT,
    Rtype::NS,
    Rtype::CNAME,
    Rtype::SOA,
    Rtype::DS,
    Rtype::DNSKEY,
];
/// Octets of memory: the minimum. The keys of a zone must fit into their part of it.
const MEMORY: u64 = *MEMORY_RANGE.start();
/// Time in which the queries of clients to faulty servers arrive.
const QUERY_TIME: Duration = Duration::from_secs(20);
/// Time after the repair of the servers until no data or failures from before are in the cache.
const EXPIRY: Duration = Duration::from_secs(900);

/// Runs the simulation of a seed. Returns its results and its trace.
///
/// # Errors
/// The resolver did something wrong.
pub fn run(seed: u64) -> (Result<Results, Violation>, String) {
    let world = World::random(seed);
    let random = &mut ChaCha8Rng::seed_from_u64(!seed);
    let mut simulation = Simulation::new(&world, random);
    let result = simulation.run(random);
    (result, format!("{}{}", describe(&world), simulation.simulator.trace()))
}

/// A running simulation.
struct Simulation<'w> {
    world: &'w World,
    simulator: Simulator<'w, Servers<'w>>,
    workers: usize,
    /// Maximum number of queries to servers for a client query.
    limit: u64,
    asked: Vec<Asked>,
}

impl<'w> Simulation<'w> {
    fn new(world: &'w World, random: &mut ChaCha8Rng) -> Self {
        let options = resolver_options(world, random);
        let workers = random.random_range(1..=2);
        let mut simulator_options = world.options.clone();
        simulator_options.patience = options.limits.time + SLACK;
        let now = Now { instant: simulator_options.start, unix: simulator_options.unix };
        let limit = u64::from(options.limits.queries);
        let machines = machines(options, workers, now, random);
        let network = Servers { world, is_faulty: true };
        let simulator = Simulator::new(simulator_options, machines, network);
        Self { world, simulator, workers, limit, asked: Vec::new() }
    }

    fn run(&mut self, random: &mut ChaCha8Rng) -> Result<Results, Violation> {
        let count = random.random_range(4..=12);
        for _ in 0..count {
            let question = random_question(self.world, random);
            self.ask(question, QUERY_TIME, Phase::Faulty, random);
        }
        self.simulator.run_until_answered()?;
        self.simulator.run_for(Duration::from_secs(random.random_range(0..=100)))?;
        self.simulator.network_mut().is_faulty = false;
        self.ask_again(count / 2, Phase::Repaired, random);
        self.simulator.run_until_answered()?;
        self.simulator.run_for(EXPIRY)?;
        self.ask_again(count / 2, Phase::Expired, random);
        self.simulator.run_until_answered()?;
        self.simulator.run_for(REST)?;
        self.judge()
    }

    /// Asks some of the questions again.
    fn ask_again(&mut self, count: usize, phase: Phase, random: &mut ChaCha8Rng) {
        for _ in 0..count {
            let Some(Asked { name, rtype, .. }) = self.asked.choose(random).cloned() else { return };
            self.ask((name, rtype), Duration::from_millis(1500), phase, random);
        }
    }

    /// Schedules a query for a question within `time`.
    fn ask(&mut self, (name, rtype): (Name, Rtype), time: Duration, phase: Phase, random: &mut ChaCha8Rng) {
        let dnssec_ok = random.random_bool(0.5);
        let mut bits = flags::RD;
        bits |= if random.random_bool(0.2) { flags::CD } else { 0 };
        bits |= if random.random_bool(0.3) { flags::AD } else { 0 };
        let mut message = Vec::new();
        push_query(&name, rtype, name.wire().len() as u16, bits, &mut message);
        if dnssec_ok {
            edns::push_opt(1232, 0, edns::DO, &mut message);
            message[HEADER - 1] = 1;
        }
        let at = self.simulator.time() + random.random_range(Duration::ZERO..time);
        let worker = random.random_range(0..self.workers);
        let token = self.simulator.query_at(at, worker, super::CLIENT, Transport::Tcp, message);
        self.asked.push(Asked { token, name, rtype, flags: bits, dnssec_ok, phase });
    }

    fn judge(&self) -> Result<Results, Violation> {
        let mut results = Results { sent: self.simulator.statistics().sent, ..Results::default() };
        for query in &self.asked {
            let message = self.simulator.reply(query.token).and_then(|reply| reply.message.as_deref());
            check_reply(self.world, query, message.unwrap_or_default(), &mut results)?;
        }
        let entries = self.simulator.trace().entries();
        let sent = entries.filter(|entry| is_counted(&entry.event)).count() as u64;
        let limit = self.limit * self.asked.len() as u64;
        if sent > limit {
            return Err(Violation::TooManyQueries { sent, limit });
        }
        match self.simulator.open_exchanges() {
            0 => Ok(results),
            open => Err(Violation::OpenExchanges(open)),
        }
    }
}

/// Returns a question, often one that the fault affects.
fn random_question(world: &World, random: &mut ChaCha8Rng) -> (Name, Rtype) {
    let names = world.known_names();
    let rtype = TYPES.choose(random).copied().unwrap_or(Rtype::A);
    let any = names.choose(random).cloned().unwrap_or_else(Name::root);
    let Some(fault) = world.fault.as_ref().filter(|_| random.random_bool(0.7)) else { return (any, rtype) };
    let apex = &world.zones[fault.zone].apex;
    let in_zone: Vec<&Name> = names.iter().filter(|name| name.view().is_at_or_below(apex.view())).collect();
    let near = in_zone.choose(random).map_or(any, |name| (*name).clone());
    match target_question(fault).filter(|_| random.random_bool(0.6)) {
        Some((name, fault_type)) => (name, fault_type.unwrap_or(rtype)),
        None => (near, rtype),
    }
}

/// Returns a question that the fault affects.
fn target_question(fault: &Fault) -> Option<(Name, Option<Rtype>)> {
    match &fault.target {
        Target::Rrset(owner, rtype) if owner.view().is_wildcard() => {
            let parent = owner.view().parent()?.to_name();
            Some((super::name_below("q", &parent), Some(*rtype)))
        }
        Target::Rrset(owner, Rtype::DNAME) => Some((super::name_below("www", owner), None)),
        Target::Rrset(owner, Rtype::CNAME) => Some((owner.clone(), None)),
        Target::Rrset(owner, rtype) => Some((owner.clone(), Some(*rtype))),
        Target::Tree(name) => Some((name.clone(), Some(Rtype::A))),
        _ => None,
    }
}

fn resolver_options(world: &World, random: &mut ChaCha8Rng) -> ResolverOptions {
    let addresses = world.zones[0].nameservers().map(|(name, address)| (name, address.into()));
    let validation = ValidationOptions {
        anchors: world.anchors(random),
        policy: AlgorithmPolicy::ALL,
        ..ValidationOptions::default()
    };
    ResolverOptions {
        hints: Hints::new(addresses).unwrap_or_default(),
        memory: MEMORY,
        qname_minimisation: random.random_bool(0.7),
        nxdomain_cut: random.random_bool(0.7),
        use_0x20: random.random_bool(0.2),
        families: if random.random_bool(0.5) { AddressFamilies::OnlyIpv4 } else { AddressFamilies::Both },
        validation,
        ..ResolverOptions::default()
    }
}

/// Describes a world for the trace.
fn describe(world: &World) -> String {
    let mut text = String::new();
    for zone in &world.zones {
        let zone::Zone { apex, servers, signing, mechanism, is_secure, .. } = zone;
        let security = if *is_secure { "secure" } else { "insecure" };
        text.push_str(&format!("zone {apex} {signing:?} {mechanism:?} {security}, servers {servers:?}\n"));
    }
    match &world.fault {
        Some(fault) => text.push_str(&format!("fault {fault:?}\n")),
        None => text.push_str("no fault\n"),
    }
    text
}
