//! From a query to the response of a server of the check.

use super::behaviour::Behaviour;
use super::encode::push_message;
use super::{Observation, Shared};
use crate::check::Transport;
use crate::tree::TreeZone;
use nonesuch_proto::message::{HEADER, Header, Message, Question, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype, edns, rdata};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// Maximum size of a response over UDP to a query without EDNS (RFC 1035 §2.3.4).
const PLAIN_OCTETS: usize = 512;
/// UDP payload size that the servers announce.
const PAYLOAD: u16 = 4096;
/// An EDNS option code for local use (RFC 6891 §9), which is unknown to resolvers.
const UNKNOWN_OPTION: u16 = 65_001;
/// The cookie of all servers.
const SERVER_COOKIE: &[u8; 16] = b"\x01\0\0\0check cookie";

/// A query that a server understands.
struct Asked {
    header: Header,
    question: Question,
    /// The octets of the question.
    octets: Vec<u8>,
    /// UDP payload size, EDNS flags, options.
    edns: Option<(u16, u16, Vec<u8>)>,
}

impl Asked {
    fn read(query: &[u8]) -> Option<Self> {
        let message = Message::parse(query).ok()?;
        let question = message.questions.first().filter(|_| message.questions.len() == 1)?.clone();
        let end = HEADER + question.name.wire().len() + 4;
        let octets = query.get(HEADER..end)?.to_vec();
        let edns = message.opt().map(|opt| (opt.class.0, opt.ttl as u16, opt.rdata.clone()));
        Some(Self { header: message.header, question, octets, edns })
    }

    fn wants_dnssec(&self) -> bool {
        self.edns.as_ref().is_some_and(|(_, flags, _)| flags & edns::DO != 0)
    }

    /// Whether the resolver accepts NXDOMAIN for compact denial (RFC 9824 §5.1).
    fn accepts_nxdomain(&self) -> bool {
        self.edns.as_ref().is_none_or(|(_, flags, _)| flags & edns::CO != 0 || flags & edns::DO == 0)
    }

    /// A response without records.
    fn reply(&self, rcode: Rcode, added: u16) -> Message {
        let flags = flags::QR | self.header.flags & (flags::RD | flags::CD) | added | rcode.0;
        let header = Header { id: self.header.id, flags, counts: [0; 4] };
        Message { header, questions: vec![self.question.clone()], records: Vec::new() }
    }
}

impl Shared {
    /// Answers a query into `out`, and records it. Returns whether there is a response.
    pub(super) fn answer(
        &self,
        server: SocketAddr,
        client: SocketAddr,
        transport: Transport,
        query: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let is_answered = self.respond(server, transport, query, out).is_some();
        let reply = is_answered.then(|| out.clone());
        self.log().push(Observation { server, client, transport, query: query.to_vec(), reply });
        is_answered
    }

    fn respond(
        &self,
        server: SocketAddr,
        transport: Transport,
        query: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let asked = Asked::read(query)?;
        let IpAddr::V4(address) = server.ip() else { return None };
        let zone = self.zone_at(address, &asked.question.name, asked.question.rtype);
        let Some(zone) = zone else {
            push_message(&asked.reply(Rcode::REFUSED, 0), &asked.octets, out);
            return Some(());
        };
        let default = Behaviour::default();
        let behaviour = self.content.behaviours.get(&zone.origin).unwrap_or(&default);
        thread::sleep(behaviour.delay);
        if behaviour.rejects_edns && asked.edns.is_some() {
            push_message(&asked.reply(Rcode::FORMERR, 0), &asked.octets, out);
            return Some(());
        }
        let mut message = self.message(zone, behaviour, &asked);
        if asked.edns.is_some() && !behaviour.rejects_edns {
            message.records.push(opt(behaviour, &asked));
        }
        push_message(&message, &asked.octets, out);
        if transport == Transport::Tcp {
            return Some(());
        }
        let accepted = asked.edns.as_ref().map_or(PLAIN_OCTETS, |(payload, ..)| usize::from(*payload));
        if behaviour.truncates || out.len() > accepted.clamp(PLAIN_OCTETS, behaviour.udp_octets) {
            message.header.flags |= flags::TC;
            message.records.retain(|record| record.rtype == Rtype::OPT);
            out.clear();
            push_message(&message, &asked.octets, out);
        }
        if behaviour.drops_over.is_some_and(|limit| out.len() > limit) {
            return None;
        }
        Some(())
    }

    /// The response of the zone, with ID and flags of the query.
    fn message(&self, zone: &TreeZone, behaviour: &Behaviour, asked: &Asked) -> Message {
        let (name, rtype) = (&asked.question.name, asked.question.rtype);
        let mut message = match self.online.get(&zone.origin) {
            Some(online) => {
                online.respond(zone, name, rtype, self.content.tree.now, asked.accepts_nxdomain())
            }
            None => zone.respond(name.view(), rtype),
        };
        if let Some(records) = self.content.answers.get(&(name.view().to_canonical(), rtype)) {
            message = asked.reply(Rcode::NOERROR, flags::AA);
            message.records =
                records.iter().map(|record| Record { owner: name.clone(), ..record.clone() }).collect();
        }
        message.header.id = asked.header.id;
        message.header.flags |= asked.header.flags & flags::RD;
        message.questions = vec![asked.question.clone()];
        // RFC 4035 §3.1: without DO, no records of DNSSEC except of the queried type.
        if !asked.wants_dnssec() {
            message.records.retain(|record| !record.rtype.is_signature_or_chain() || record.rtype == rtype);
        }
        if behaviour.sets_ad {
            message.header.flags |= flags::AD;
        }
        self.change_records(behaviour, &mut message);
        message
    }

    fn change_records(&self, behaviour: &Behaviour, message: &mut Message) {
        let is_bogus = behaviour.bogus_on_demand && self.is_bogus.load(Relaxed);
        if let Some(forged) = if is_bogus { Some(Rtype::A) } else { behaviour.forges } {
            for record in message.records.iter_mut().filter(|record| covers(record, forged)) {
                record.rdata.last_mut().into_iter().for_each(|octet| *octet ^= 1);
            }
        }
        if behaviour.repeats {
            let is_data =
                |record: &&Record| record.section == Section::Answer && record.rtype != Rtype::RRSIG;
            let again: Vec<Record> = message.records.iter().filter(is_data).cloned().collect();
            message.records.extend(again);
        }
        if behaviour.reorders {
            message.records.reverse();
            let first = message.records.iter().find(|record| record.section == Section::Answer).cloned();
            message.records.extend(first);
        }
        if behaviour.upper_case {
            message.records.iter_mut().for_each(to_upper_case);
        }
    }
}

/// Whether the record is a signature over records of this type.
fn covers(record: &Record, rtype: Rtype) -> bool {
    record.rtype == Rtype::RRSIG && record.rdata.get(..2) == Some(&rtype.0.to_be_bytes())
}

/// Writes the names of a record in upper case: owner, and names in RDATA of the types of RFC 4034 §6.2
/// except the Signer's Name.
fn to_upper_case(record: &mut Record) {
    let owner = record.owner.wire().to_ascii_uppercase();
    // Lengths of labels are below the letters.
    if let Ok((name, _)) = Name::from_message(&owner, 0) {
        record.owner = name;
    }
    if matches!(record.rtype, Rtype::MX | Rtype::NS | Rtype::CNAME) {
        let start = if record.rtype == Rtype::MX { 2 } else { 0 };
        if rdata::is_well_formed(record.rtype, &record.rdata) {
            record.rdata[start..].make_ascii_uppercase();
        }
    }
}

/// The OPT record of a response.
fn opt(behaviour: &Behaviour, asked: &Asked) -> Record {
    let mut options = Vec::new();
    if behaviour.adds_option {
        edns::push_option(UNKNOWN_OPTION, &[b"check"], &mut options);
    }
    if let Some(agent) = &behaviour.report_to {
        edns::push_option(edns::REPORT_CHANNEL, &[agent.wire()], &mut options);
    }
    let cookie = asked.edns.as_ref().and_then(|(.., sent)| {
        edns::Options::new(sent).find(|(code, _)| *code == edns::COOKIE).map(|(_, data)| data.to_vec())
    });
    if let Some(client) = cookie.as_ref().and_then(|cookie| cookie.get(..8)).filter(|_| behaviour.has_cookies)
    {
        edns::push_option(edns::COOKIE, &[client, SERVER_COOKIE], &mut options);
    }
    Record {
        section: Section::Additional,
        owner: Name::root(),
        rtype: Rtype::OPT,
        class: Class(PAYLOAD),
        ttl: if asked.wants_dnssec() { u32::from(edns::DO) } else { 0 },
        rdata: options,
    }
}
