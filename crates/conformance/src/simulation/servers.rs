//! The servers of a world: correct ones, faulty ones, and hostile ones.

use super::lies::{self, Lie};
use super::lookup::{Found, OwnedRrset};
use super::name_below;
use super::world::{Behaviour, Host, World, is_hostile_address};
use crate::describe::read_opt;
use crate::simulator::{Delivery, Network, Reaction, ServerQuery};
use nonesuch_net::Transport;
use nonesuch_net::machine::{Now, SendFailure};
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Payload size in responses, in octets.
const PAYLOAD: u16 = 1232;
/// Payload size of queries without EDNS, in octets.
const PLAIN_PAYLOAD: usize = 512;
/// Maximum number of aliases in one response.
const ALIASES_MAX: usize = 8;

/// All servers.
pub(super) struct Servers<'w> {
    pub(super) world: &'w World,
    pub(super) random: ChaCha8Rng,
    /// What hostile servers do most often.
    pub(super) favourite: Lie,
    /// The first query for a name outside hostile zones that a hostile server got.
    pub(super) misdirected: Option<(SocketAddr, Name)>,
}

impl Network for Servers<'_> {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let Some((asked, question)) = read_query(query) else { return Reaction::SILENCE };
        let address = query.server.ip();
        if is_hostile_address(address) {
            if !self.world.is_hostile_name(&question.name) && self.misdirected.is_none() {
                self.misdirected = Some((query.server, question.name.clone()));
            }
            let zone = self.world.zone_of(&question.name);
            let honest = respond(self.world, &[zone], &asked, &question);
            let lie =
                if self.random.random_bool(0.7) { self.favourite } else { Lie::random(&mut self.random) };
            return lies::respond(lie, self.world, query, honest, &question, &mut self.random);
        }
        react(self.world, query, &asked, &question)
    }
}

/// Reads a query and its question, whose name is returned in lower case. Returns `None` if it is
/// malformed.
pub(super) fn read_query(query: &ServerQuery<'_>) -> Option<(Message, Question)> {
    let asked = Message::parse(query.message).ok()?;
    let mut question = asked.questions.first()?.clone();
    question.name = question.name.view().to_canonical();
    Some((asked, question))
}

/// The reaction to a query for an address that is not hostile.
pub(super) fn react(
    world: &World,
    query: &ServerQuery<'_>,
    asked: &Message,
    question: &Question,
) -> Reaction {
    let has_address = |host: &usize| world.hosts[*host].addresses.contains(&query.server.ip());
    match (0..world.hosts.len()).find(has_address) {
        Some(host) => serve(world, host, query, asked, question),
        None => Reaction::Failure(SendFailure::Unreachable),
    }
}

/// The reaction of an honest server.
fn serve(
    world: &World,
    host: usize,
    query: &ServerQuery<'_>,
    asked: &Message,
    question: &Question,
) -> Reaction {
    let Host { behaviour, .. } = world.hosts[host];
    let has_edns = asked.opt().is_some();
    let zones: Vec<usize> =
        (0..world.zones.len()).filter(|zone| world.zones[*zone].hosts.contains(&host)).collect();
    let response = match behaviour {
        Behaviour::Silent => return Reaction::SILENCE,
        Behaviour::Unreachable => return Reaction::Failure(SendFailure::Unreachable),
        Behaviour::Closed => return Reaction::Failure(SendFailure::Refused),
        Behaviour::NoTcp if query.transport != Transport::Udp => {
            return Reaction::Failure(SendFailure::Refused);
        }
        Behaviour::DropsEdns if has_edns => return Reaction::SILENCE,
        Behaviour::RejectsEdns if has_edns => {
            let flags = asked.header.flags | flags::QR | Rcode::FORMERR.0;
            let header = Header { flags, counts: [0; 4], ..asked.header };
            Message { header, questions: Vec::new(), records: Vec::new() }
        }
        Behaviour::BadVersion if has_edns => return bad_version(query, asked),
        Behaviour::Garbage => return Reaction::answer(query.server, asked.header.id.to_be_bytes().repeat(9)),
        Behaviour::Fails(rcode) => failure(asked, Rcode(rcode)),
        Behaviour::RefersToItself => {
            let mut response = response_to(asked);
            zones.last().into_iter().for_each(|zone| add_referral(world, *zone, &mut response));
            response
        }
        Behaviour::Empty => {
            let mut response = response_to(asked);
            response.header.flags |= flags::AA;
            response
        }
        Behaviour::RefersUp => {
            let mut response = response_to(asked);
            add_referral(world, 0, &mut response);
            response
        }
        _ => respond(world, &zones, asked, question),
    };
    let from = query.server;
    let deliveries = match behaviour {
        Behaviour::Slow(delay) => {
            vec![Delivery { delay, from, message: octets(query, asked, response) }]
        }
        // A connection cannot be forged without its sequence numbers.
        Behaviour::Spoofed if query.transport == Transport::Udp => {
            lies::forged_before(query, octets(query, asked, response), asked)
        }
        _ => {
            let response = spoil(behaviour, query, question, response);
            let message = match behaviour {
                Behaviour::IgnoresEdns => octets(query, &without_edns(asked), response),
                _ => octets(query, asked, response),
            };
            let trailing = if behaviour == Behaviour::TrailingOctets { &[0, 1, 2][..] } else { &[] };
            let message = [message.as_slice(), trailing].concat();
            vec![Delivery { delay: Duration::ZERO, from, message }]
        }
    };
    Reaction::Messages(deliveries)
}

/// Changes a correct response as a faulty server does.
fn spoil(
    behaviour: Behaviour,
    query: &ServerQuery<'_>,
    question: &Question,
    mut response: Message,
) -> Message {
    match behaviour {
        Behaviour::Truncates if query.transport == Transport::Udp => {
            response.header.flags |= flags::TC;
            response.records.clear();
        }
        Behaviour::NotAuthoritative => response.header.flags &= !flags::AA,
        Behaviour::WrongId => response.header.id = response.header.id.wrapping_add(1),
        Behaviour::WrongQuestion => {
            for question in &mut response.questions {
                question.name = name_below("other", &question.name);
            }
        }
        Behaviour::NoQuestion => response.questions.clear(),
        Behaviour::NoSoa => response.records.retain(|record| record.rtype != Rtype::SOA),
        Behaviour::LosesCase => response.questions = vec![question.clone()],
        Behaviour::DeniesEmptyNames => {
            let is_empty = response.section(Section::Answer).next().is_none();
            if is_empty && response.header.flags & flags::AA != 0 {
                response.header.flags |= Rcode::NXDOMAIN.0;
            }
        }
        _ => {}
    }
    response
}

/// Returns the octets of a response, with an OPT record if the query has one, and truncated to the
/// payload size of the query.
pub(super) fn octets(query: &ServerQuery<'_>, asked: &Message, mut response: Message) -> Vec<u8> {
    let opt = read_opt(asked);
    if opt.is_some() && !response.questions.is_empty() {
        response.records.push(Record {
            section: Section::Additional,
            owner: Name::root(),
            rtype: Rtype::OPT,
            class: Class(PAYLOAD),
            ttl: 0,
            rdata: Vec::new(),
        });
    }
    let octets = response.to_octets();
    let payload = opt.map_or(PLAIN_PAYLOAD, |opt| usize::from(opt.payload.max(512)));
    if query.transport != Transport::Udp || octets.len() <= payload {
        return octets;
    }
    response.header.flags |= flags::TC;
    response.records.retain(|record| record.rtype == Rtype::OPT);
    response.to_octets()
}

/// A query without its OPT record.
fn without_edns(asked: &Message) -> Message {
    let mut asked = asked.clone();
    asked.records.retain(|record| record.rtype != Rtype::OPT);
    asked
}

/// BADVERS (RFC 6891 §6.1.3) to a query with the only version that exists.
fn bad_version(query: &ServerQuery<'_>, asked: &Message) -> Reaction {
    let mut response = response_to(asked);
    response.records.push(Record {
        section: Section::Additional,
        owner: Name::root(),
        rtype: Rtype::OPT,
        class: Class(PAYLOAD),
        ttl: 1 << 24,
        rdata: Vec::new(),
    });
    Reaction::answer(query.server, response.to_octets())
}

/// Returns an empty response.
pub(super) fn response_to(asked: &Message) -> Message {
    let header = Header { flags: flags::QR | asked.header.flags & flags::RD, ..asked.header };
    Message { header, questions: asked.questions.clone(), records: Vec::new() }
}

fn failure(asked: &Message, rcode: Rcode) -> Message {
    let mut response = response_to(asked);
    response.header.flags |= rcode.0;
    response
}

/// Returns the correct response of a server with these zones.
fn respond(world: &World, zones: &[usize], asked: &Message, question: &Question) -> Message {
    let is_above = |zone: &&usize| {
        let apex = &world.zones[**zone].apex;
        question.name.view().is_at_or_below(apex.view())
            && !(question.rtype == Rtype::DS && question.name == *apex && zones.len() > 1)
    };
    let zone = zones.iter().filter(is_above).max_by_key(|zone| world.zones[**zone].apex.view().label_count());
    let Some(&zone) = zone else { return failure(asked, Rcode::REFUSED) };
    let mut response = response_to(asked);
    let mut name = question.name.clone();
    for _ in 0..ALIASES_MAX {
        let is_first = response.records.is_empty();
        match world.find(zone, &name, question.rtype) {
            Found::Delegation(child) => {
                if is_first {
                    add_referral(world, child, &mut response);
                }
                return response;
            }
            Found::Answer(rrset) => {
                response.header.flags |= flags::AA;
                add(&rrset, Section::Answer, &mut response);
                return response;
            }
            Found::Alias(rrsets, target) => {
                response.header.flags |= flags::AA;
                rrsets.iter().for_each(|rrset| add(rrset, Section::Answer, &mut response));
                if question.rtype == Rtype::CNAME
                    || !target.view().is_at_or_below(world.zones[zone].apex.view())
                {
                    return response;
                }
                name = target;
            }
            found => {
                response.header.flags |= flags::AA;
                if found == Found::NameError {
                    response.header.flags |= Rcode::NXDOMAIN.0;
                }
                let apex = world.zones[zone].apex.clone();
                if let Found::Answer(soa) = world.find(zone, &apex, Rtype::SOA) {
                    add(&soa, Section::Authority, &mut response);
                }
                return response;
            }
        }
    }
    response
}

/// Adds the NS records of a delegation and the addresses of its nameservers.
fn add_referral(world: &World, child: usize, response: &mut Message) {
    let zone = &world.zones[child];
    for (name, addresses) in zone.delegation.iter().flatten() {
        let ns = (86_400, vec![name.wire().to_vec()]);
        add(
            &OwnedRrset { owner: zone.apex.clone(), rtype: Rtype::NS, data: ns },
            Section::Authority,
            response,
        );
        for address in addresses {
            add(&glue(name, *address), Section::Additional, response);
        }
    }
    if zone.delegation.is_some() {
        return;
    }
    for host in zone.hosts.iter().chain(&zone.lame).map(|host| &world.hosts[*host]) {
        let servers = vec![host.name.wire().to_vec()];
        let ns = OwnedRrset { owner: zone.apex.clone(), rtype: Rtype::NS, data: (86_400, servers) };
        add(&ns, Section::Authority, response);
        if zone.has_sibling_glue || host.name.view().is_at_or_below(zone.apex.view()) {
            for address in &host.addresses {
                add(&glue(&host.name, *address), Section::Additional, response);
            }
        }
    }
}

/// Returns an address record.
pub(super) fn glue(owner: &Name, address: IpAddr) -> OwnedRrset {
    let (rtype, rdata) = match address {
        IpAddr::V4(ipv4) => (Rtype::A, ipv4.octets().to_vec()),
        IpAddr::V6(ipv6) => (Rtype::AAAA, ipv6.octets().to_vec()),
    };
    OwnedRrset { owner: owner.clone(), rtype, data: (3600, vec![rdata]) }
}

/// Adds the records of an RRset to a response.
pub(super) fn add(rrset: &OwnedRrset, section: Section, response: &mut Message) {
    let (ttl, rdata) = &rrset.data;
    response.records.extend(rdata.iter().map(|rdata| Record {
        section,
        owner: rrset.owner.clone(),
        rtype: rrset.rtype,
        class: Class::IN,
        ttl: *ttl,
        rdata: rdata.clone(),
    }));
}

/// An address of a hostile server.
pub(super) fn hostile_address(last: u8) -> IpAddr {
    let [first, second, third] = super::world::HOSTILE;
    Ipv4Addr::new(first, second, third, last).into()
}
