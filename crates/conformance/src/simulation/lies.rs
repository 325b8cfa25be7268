//! Responses of hostile servers, and forged responses of attackers who do not see queries.

use super::lookup::OwnedRrset;
use super::name_below;
use super::servers::{add, glue, hostile_address};
use super::world::World;
use crate::simulator::{Delivery, Reaction, ServerQuery};
use nonesuch_net::machine::SendFailure;
use nonesuch_proto::message::{Header, Message, Question, Rcode, Section, flags};
use nonesuch_proto::{Name, NameRef, Rtype};
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;
use std::net::SocketAddr;
use std::time::Duration;

/// Nameserver names in a referral that is an attack (NXNSAttack, CVE-2020-8616).
const MANY_SERVERS: usize = 60;
/// An address from which no query is expected to be answered.
const OTHER_SENDER: &str = "193.255.0.1:53";

/// What a hostile response contains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lie {
    /// Nothing false.
    None,
    Silence,
    Refusal,
    /// Octets that are no message.
    Garbage,
    /// An address of a name of an honest zone, in each section.
    ForeignAddress,
    /// A delegation of an honest zone to hostile servers.
    ForeignDelegation,
    /// A referral of the zone itself, with false addresses of honest nameservers.
    ForeignGlue,
    /// An alias to a name of an honest zone, with a false address of that name.
    ForeignAlias,
    /// A DNAME record at a zone above, with an alias to a hostile name.
    DnameAbove,
    /// NXDOMAIN with the SOA record of a zone above.
    DenialAbove,
    /// A referral to many nameserver names that do not exist in an honest zone.
    ManyServers,
    /// An alias to the next name of an endless chain.
    EndlessAlias,
    /// A referral to a zone one label below, without end.
    EndlessReferral,
    /// The response with another ID or question.
    Mismatch,
}

const LIES: [Lie; 14] = [
    Lie::None,
    Lie::Silence,
    Lie::Refusal,
    Lie::Garbage,
    Lie::ForeignAddress,
    Lie::ForeignDelegation,
    Lie::ForeignGlue,
    Lie::ForeignAlias,
    Lie::DnameAbove,
    Lie::DenialAbove,
    Lie::ManyServers,
    Lie::EndlessAlias,
    Lie::EndlessReferral,
    Lie::Mismatch,
];

impl Lie {
    pub(super) fn random(random: &mut ChaCha8Rng) -> Self {
        LIES.choose(random).copied().unwrap_or(Self::None)
    }
}

/// The reaction of a hostile server to a query whose honest response is `response`.
pub(super) fn respond(
    lie: Lie,
    world: &World,
    query: &ServerQuery<'_>,
    mut response: Message,
    question: &Question,
    random: &mut ChaCha8Rng,
) -> Reaction {
    let names: Vec<Name> =
        world.known_names().into_iter().filter(|name| !world.is_hostile_name(name)).collect();
    let honest = names.choose(random).cloned().unwrap_or_else(Name::root);
    let address = hostile_address(random.random());
    let above = random_ancestor(&question.name, random);
    match lie {
        Lie::None => {}
        Lie::Silence => return Reaction::SILENCE,
        Lie::Refusal => return Reaction::Failure(SendFailure::Refused),
        Lie::Garbage => {
            let length = random.random_range(0..600);
            let octets = (0..length).map(|_| random.random()).collect();
            return Reaction::answer(query.server, octets);
        }
        Lie::ForeignAddress => {
            for section in [Section::Answer, Section::Authority, Section::Additional] {
                add(&glue(&honest, address), section, &mut response);
            }
        }
        Lie::ForeignDelegation => {
            let apexes = world.zones.iter().filter(|zone| !zone.is_hostile).map(|zone| &zone.apex);
            let apexes: Vec<&Name> = apexes.collect();
            let apex = apexes.choose(random).copied().cloned().unwrap_or_else(Name::root);
            if random.random_bool(0.5) {
                clear(&mut response, 0);
            }
            refer(apex, &name_below("ns0", &question.name), &mut response);
            add(&glue(&name_below("ns0", &question.name), address), Section::Additional, &mut response);
        }
        Lie::ForeignGlue => {
            response.records.clear();
            let host = world.hosts.choose(random).map_or(honest, |host| host.name.clone());
            refer(question.name.clone(), &host, &mut response);
            add(&glue(&host, address), Section::Additional, &mut response);
        }
        Lie::ForeignAlias => {
            clear(&mut response, flags::AA);
            alias(question.name.clone(), &honest, Rtype::CNAME, &mut response);
            add(&glue(&honest, address), Section::Answer, &mut response);
        }
        Lie::DnameAbove => {
            clear(&mut response, flags::AA);
            let target =
                world.zones.iter().find(|zone| zone.is_hostile).map_or(honest, |zone| zone.apex.clone());
            alias(above, &target, Rtype::DNAME, &mut response);
            alias(question.name.clone(), &name_below("x", &target), Rtype::CNAME, &mut response);
        }
        Lie::DenialAbove => {
            clear(&mut response, flags::AA | Rcode::NXDOMAIN.0);
            let zone = &world.zones[0];
            if let Some(data) = zone.names.get(&zone.apex).and_then(|node| node.get(&Rtype::SOA.0)) {
                let soa = OwnedRrset { owner: above, rtype: Rtype::SOA, data: data.clone() };
                add(&soa, Section::Authority, &mut response);
            }
        }
        Lie::ManyServers => {
            clear(&mut response, 0);
            for number in 0..MANY_SERVERS {
                refer(question.name.clone(), &name_below(&format!("n{number}"), &honest), &mut response);
            }
        }
        Lie::EndlessAlias => {
            clear(&mut response, flags::AA);
            let next = name_below(&format!("c{}", random.random::<u16>()), &above_hostile(world, question));
            alias(question.name.clone(), &next, Rtype::CNAME, &mut response);
        }
        Lie::EndlessReferral => {
            clear(&mut response, 0);
            let server = name_below("ns9", &question.name);
            refer(question.name.clone(), &server, &mut response);
            add(&glue(&server, address), Section::Additional, &mut response);
        }
        Lie::Mismatch => {
            response.header.id ^= random.random_range(0..4);
            if let Some(question) = response.questions.first_mut().filter(|_| random.random_bool(0.5)) {
                question.name = honest;
            }
        }
    }
    Reaction::answer(query.server, response.to_octets())
}

/// The apex of the hostile zone of the question.
fn above_hostile(world: &World, question: &Question) -> Name {
    world.zones[world.zone_of(&question.name)].apex.clone()
}

/// Returns a name above `name`, or `name`.
fn random_ancestor(name: &Name, random: &mut ChaCha8Rng) -> Name {
    let kept = random.random_range(0..=name.view().label_count());
    name.view().suffix(kept).to_name()
}

/// Removes all records, and sets these flags, with or without AA.
fn clear(response: &mut Message, set: u16) {
    response.records.clear();
    response.header.flags = response.header.flags & !flags::AA | set;
}

fn refer(apex: Name, server: &Name, response: &mut Message) {
    let data = (3600, vec![server.wire().to_vec()]);
    add(&OwnedRrset { owner: apex, rtype: Rtype::NS, data }, Section::Authority, response);
}

fn alias(owner: Name, target: &Name, rtype: Rtype, response: &mut Message) {
    let data = (3600, vec![target.wire().to_vec()]);
    add(&OwnedRrset { owner, rtype, data }, Section::Answer, response);
}

/// Returns forged responses with addresses of the attacker, followed by the response of the server.
/// The attacker does not know the ID of the query, or cannot send from the address of the server.
pub(super) fn forged_before(query: &ServerQuery<'_>, response: Vec<u8>, asked: &Message) -> Vec<Delivery> {
    let mut forged = Message {
        header: Header { flags: flags::QR | flags::AA, ..asked.header },
        questions: asked.questions.clone(),
        records: Vec::new(),
    };
    for question in &asked.questions {
        add(&glue(&question.name, hostile_address(99)), Section::Answer, &mut forged);
    }
    let deliver = |from: SocketAddr, milliseconds: u64, message: Vec<u8>| Delivery {
        delay: Duration::from_millis(milliseconds),
        from,
        message,
    };
    let other: SocketAddr = OTHER_SENDER.parse().unwrap_or(query.server);
    let mut deliveries = vec![deliver(other, 0, forged.to_octets())];
    for guess in 1..=3 {
        forged.header.id = asked.header.id.wrapping_add(guess);
        deliveries.push(deliver(query.server, 0, forged.to_octets()));
    }
    forged.header.id = asked.header.id;
    for question in &mut forged.questions {
        question.name =
            name_below("other", &question.name.view().parent().unwrap_or(NameRef::ROOT).to_name());
    }
    deliveries.push(deliver(query.server, 0, forged.to_octets()));
    deliveries.push(deliver(query.server, 1, response));
    deliveries
}
