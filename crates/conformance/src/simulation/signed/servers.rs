//! The servers of a signed world, and those of an attacker.

use super::fault::FaultKind;
use super::plant::forged_rdata;
use super::respond::{Part, Response};
use super::world::World;
use super::zone::RecordSet;
use crate::describe::read_opt;
use crate::simulation::servers::{octets, read_query};
use crate::simulation::world::is_hostile_address;
use crate::simulator::{Network, Reaction, ServerQuery};
use nonesuch_net::machine::{Now, SendFailure};
use nonesuch_proto::message::{Question, Rcode, Section};
use nonesuch_proto::{Name, Rtype};
use std::net::{IpAddr, Ipv4Addr};

/// TTL of the data of the attacker, in seconds.
const ATTACKER_TTL: u32 = 60;

/// All servers.
pub(super) struct Servers<'w> {
    pub(super) world: &'w World,
    /// Whether the servers have the fault.
    pub(super) is_faulty: bool,
}

impl Network for Servers<'_> {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let Some((asked, question)) = read_query(query) else { return Reaction::SILENCE };
        let IpAddr::V4(server) = query.server.ip() else {
            return Reaction::Failure(SendFailure::Unreachable);
        };
        let dnssec_ok = read_opt(&asked).is_some_and(|opt| opt.dnssec_ok());
        let response = if is_hostile_address(server.into()) {
            attack(&question)
        } else if self.world.zones.iter().any(|zone| zone.servers.contains(&server)) {
            match self.respond(server, &question, dnssec_ok) {
                Some(response) => response,
                None => return Reaction::SILENCE,
            }
        } else {
            return Reaction::Failure(SendFailure::Unreachable);
        };
        Reaction::answer(query.server, octets(query, &asked, response.message(&asked, dnssec_ok)))
    }
}

impl Servers<'_> {
    /// Returns the response of a server of the world; `None` if it does not respond.
    fn respond(&self, server: Ipv4Addr, question: &Question, dnssec_ok: bool) -> Option<Response> {
        let Question { name, rtype, .. } = question;
        let mut response = self.world.respond(server, name, *rtype, dnssec_ok);
        let fault = self.world.fault.as_ref().filter(|_| self.is_faulty);
        let Some(fault) = fault.filter(|fault| fault.server.is_none_or(|faulty| faulty == server)) else {
            return Some(response);
        };
        match fault.kind {
            FaultKind::SilentServer => return None,
            FaultKind::FailingServer => {
                return Some(Response { is_authoritative: false, ..Response::empty(0, Rcode::SERVFAIL) });
            }
            _ => fault.apply(self.world, name, *rtype, &mut response),
        }
        Some(response)
    }
}

/// The response of an attacker to whom a name is delegated: addresses, and denials of everything else.
fn attack(question: &Question) -> Response {
    let mut response = Response::empty(0, Rcode::NOERROR);
    let Question { name, rtype, .. } = question;
    let (section, owner, rtype) = match *rtype {
        Rtype::A | Rtype::TXT => (Section::Answer, name.clone(), *rtype),
        _ => (Section::Authority, parent(name), Rtype::SOA),
    };
    let set = RecordSet { ttl: ATTACKER_TTL, rdatas: vec![forged_rdata(rtype)], signatures: Vec::new() };
    response.parts.push(Part::new(section, &owner, rtype, set));
    response
}

fn parent(name: &Name) -> Name {
    name.view().parent().map_or_else(Name::root, |parent| parent.to_name())
}
