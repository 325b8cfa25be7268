//! Hostile responses for a signed zone, through the whole validating state machine of the resolver: each
//! client query gets a reply, the work is bounded, and a reply with the AD flag has only true data.
//!
//! The network is simulated. The servers of the root and of `good.` are honest. The server of `evil.` has
//! the correct response to each query, which the input changes: octets, records and their order, records
//! of earlier responses of all servers, header fields. The first octets select queries of clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::{Request, answer};
use nonesuch_conformance::simulator::{Network, Options, Reaction, ServerQuery, Simulator};
use nonesuch_dnssec::Mechanism;
use nonesuch_net::Transport;
use nonesuch_net::machine::{Machine, Now};
use nonesuch_proto::message::{HEADER, Message, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Class, MAX_NAME, Name, Rtype, edns};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::{NegativeAnchor, ResolverOptions};
use nonesuch_resolver::trust_anchors::AnchorRecord;
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::{Contents, Image};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Instant;
use tree::{NOW, ds, ds_line, name, signed};

#[path = "../tree.rs"]
mod tree;

const ROOT: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 1);
const GOOD: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 2);
const EVIL: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 66);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);
/// Names in client queries, and types.
const NAMES: [&str; 10] = [
    "www.evil.",
    "none.evil.",
    "evil.",
    "x.wild.evil.",
    "alias.evil.",
    "a.b.evil.",
    "b.evil.",
    "sub.evil.",
    "www.good.",
    ".",
];
const TYPES: [Rtype; 6] = [Rtype::A, Rtype::TXT, Rtype::DS, Rtype::DNSKEY, Rtype::CNAME, Rtype::SOA];
const QUERIES_MAX: usize = 4;
/// Maximum number of changes of a response.
const CHANGES_MAX: u8 = 5;
/// Maximum number of records that are remembered.
const SEEN_MAX: usize = 200;

/// A zone and its server.
struct Zone {
    address: Ipv4Addr,
    contents: Contents,
    image: Image,
}

static ZONES: LazyLock<[Zone; 3]> = LazyLock::new(|| {
    let root = format!(
        ". 300 SOA a.root. h. 1 3600 600 86400 60\n. 300 NS a.root.\na.root. 300 A {ROOT}\n\
         good. 300 NS ns.good.\nns.good. 300 A {GOOD}\nevil. 300 NS ns.evil.\nns.evil. 300 A {EVIL}\n{}{}",
        ds_line("good."),
        ds_line("evil.")
    );
    let zone = |apex: &str, server: Ipv4Addr| {
        format!(
            "{apex} 300 SOA ns.{apex} h. 1 3600 600 86400 60\n{apex} 300 NS ns.{apex}\nns.{apex} 300 A {server}\n\
             www.{apex} 300 A 198.18.0.80\nwww.{apex} 300 A 198.18.0.81\na.b.{apex} 60 A 198.18.0.82\n\
             *.wild.{apex} 300 A 198.18.0.83\nalias.{apex} 300 CNAME www.good.\nsub.{apex} 300 NS ns.{apex}\n"
        )
    };
    [
        served(".", ROOT, &root, Mechanism::Nsec),
        served("good.", GOOD, &zone("good.", GOOD), Mechanism::Nsec3),
        served("evil.", EVIL, &zone("evil.", EVIL), Mechanism::Nsec),
    ]
});

fn served(apex: &str, address: Ipv4Addr, text: &str, mechanism: Mechanism) -> Zone {
    let contents = signed(apex, text, mechanism);
    let image = Image::compile(&contents).unwrap_or_else(|error| panic!("{error}"));
    Zone { address, contents, image }
}

fuzz_target!(|data: &[u8]| {
    let Some((&head, rest)) = data.split_first() else { return };
    let (choices, changes) = rest.split_at((usize::from(head) % QUERIES_MAX + 1).min(rest.len()));
    let has_negative_anchor = head & 0x80 != 0;
    let limit = u64::from(ResolverOptions::default().limits.queries);
    let network = Servers { input: changes.to_vec(), at: 0, seen: Vec::new() };
    let options = Options { unix: NOW.into(), ..Options::default() };
    let mut simulator = Simulator::new(options, vec![resolver(has_negative_anchor)], network);
    let mut count = 1;
    for choice in choices {
        let asked = name(NAMES[usize::from(choice & 0x0f) % NAMES.len()]);
        let rtype = TYPES[usize::from(choice >> 4) % TYPES.len()];
        check(&asked, rtype, &ask(&mut simulator, &asked, rtype), has_negative_anchor);
        count += 1;
    }
    // The cache is not poisoned.
    let last = ask(&mut simulator, &name("www.good."), Rtype::A);
    assert!(last.header.flags & flags::AD != 0 && last.rcode() == Rcode::NOERROR, "{last:?}");
    check(&name("www.good."), Rtype::A, &last, has_negative_anchor);
    // Each client query has a budget, and so have the priming query and the report of a failure.
    assert!(simulator.statistics().sent <= limit * (2 * count + 1));
    assert_eq!(simulator.open_exchanges(), 0);
});

fn resolver(has_negative_anchor: bool) -> Box<dyn Machine> {
    let mut options = ResolverOptions {
        hints: Hints::new([(name("a.root."), ROOT.into())]).unwrap_or_else(|error| panic!("{error}")),
        memory: 8 << 20,
        error_reporting: true,
        ..ResolverOptions::default()
    };
    options.validation.anchors.insert(name(".").view(), AnchorRecord::Ds(ds(".")));
    if has_negative_anchor {
        let negative = NegativeAnchor { name: name("evil."), expires: None, is_rechecked: true };
        options.validation.negative_anchors.push(negative);
    }
    let now = Now { instant: Instant::now(), unix: NOW.into() };
    let shared = Shared::new(options, [7; 16], &[7; 32], now).unwrap_or_else(|error| panic!("{error}"));
    Box::new(Resolver::new(Arc::new(shared), 0, [7; 32]))
}

fn ask(simulator: &mut Simulator<'_, Servers>, asked: &Name, rtype: Rtype) -> Message {
    let mut message = Vec::new();
    push_query(asked, rtype, 0x4e53, flags::RD, &mut message);
    edns::push_opt(1232, 0, edns::DO, &mut message);
    message[HEADER - 1] = 1;
    let token = simulator.query_at(simulator.time(), 0, CLIENT, Transport::Tcp, message);
    simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}"));
    let reply = simulator.reply(token).and_then(|reply| reply.message.clone());
    let reply = reply.unwrap_or_else(|| panic!("the query was dropped"));
    Message::parse(&reply).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that a secure reply is true.
fn check(asked: &Name, rtype: Rtype, reply: &Message, has_negative_anchor: bool) {
    assert_eq!((reply.header.id, reply.questions[0].name.view()), (0x4e53, asked.view()));
    if reply.header.flags & flags::AD == 0 {
        return;
    }
    let is_below = |name: &Name| name.view().is_at_or_below(tree::name("evil.").view());
    // The DS RRset of the zone is in the parent.
    let is_insecure = is_below(asked) && !(rtype == Rtype::DS && *asked == name("evil."));
    assert!(!(has_negative_anchor && is_insecure), "{reply:?}");
    let data = |record: &&Record| record.rtype != Rtype::RRSIG;
    let answer: Vec<&Record> = reply.section(Section::Answer).filter(data).collect();
    for record in &answer {
        let rdatas = rdatas(&record.owner, record.rtype);
        assert!(rdatas.contains(&record.rdata), "{asked} {rtype}: {record:?}");
        let count =
            answer.iter().filter(|other| (&other.owner, other.rtype) == (&record.owner, record.rtype));
        assert_eq!(count.count(), rdatas.len(), "{asked} {rtype}: an incomplete RRset");
    }
    let exists = !rdatas(asked, rtype).is_empty() || !rdatas(asked, Rtype::CNAME).is_empty();
    assert!(!answer.is_empty() || !exists, "{asked} {rtype}: denied");
    assert!(reply.rcode() != Rcode::NXDOMAIN || *asked == name("none.evil."), "{asked}: denied");
}

/// Returns the true records, of all zones that have the name. Wildcards are those of the text above.
fn rdatas(owner: &Name, rtype: Rtype) -> Vec<Vec<u8>> {
    let wildcard = owner.view().parent().and_then(|parent| Name::wildcard_below(parent).ok());
    let apex_of = |zone: &Zone| zone.contents.apex().view().label_count();
    let mut zones: Vec<&Zone> = ZONES
        .iter()
        .filter(|zone| {
            let apex = zone.contents.apex();
            owner.view().is_at_or_below(apex.view()) && !(rtype == Rtype::DS && owner == apex)
        })
        .collect();
    zones.sort_by_key(|zone| apex_of(zone));
    let Some(zone) = zones.last() else { return Vec::new() };
    let of = |name: &Name| {
        let node = zone.contents.find(name.view()).ok();
        let rrset = node.and_then(|node| node.rrset(rtype));
        rrset.into_iter().flat_map(|rrset| rrset.rdatas().map(<[u8]>::to_vec)).collect::<Vec<_>>()
    };
    let own = of(owner);
    if own.is_empty() { wildcard.map_or(own, |wildcard| of(&wildcard)) } else { own }
}

/// All servers.
struct Servers {
    /// The octets that select the changes.
    input: Vec<u8>,
    at: usize,
    /// Records of earlier responses.
    seen: Vec<Record>,
}

impl Network for Servers {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let Some(zone) = ZONES.iter().find(|zone| IpAddr::V4(zone.address) == query.server.ip()) else {
            return Reaction::SILENCE;
        };
        let parsed = Query::parse(query.message).unwrap_or_else(|fault| panic!("{fault:?}"));
        let (mut octets, mut room) = (Vec::new(), [0; MAX_NAME]);
        let request = Request::new(&parsed, &mut room, Transport::Tcp, &Trailer::PLAIN);
        answer(&zone.image, &request, &mut octets);
        if zone.address != EVIL {
            self.remember(&octets);
            return Reaction::answer(query.server, octets);
        }
        for _ in 0..self.next() % CHANGES_MAX {
            self.change(&mut octets);
        }
        self.remember(&octets);
        Reaction::answer(query.server, octets)
    }
}

impl Servers {
    fn next(&mut self) -> u8 {
        self.at += 1;
        self.input.get(self.at - 1).copied().unwrap_or(0)
    }

    fn remember(&mut self, octets: &[u8]) {
        let Ok(message) = Message::parse(octets) else { return };
        let left = SEEN_MAX - self.seen.len();
        self.seen.extend(message.records.into_iter().filter(|record| record.rtype != Rtype::OPT).take(left));
    }

    /// Makes one change of a response.
    fn change(&mut self, octets: &mut Vec<u8>) {
        let (kind, place, value) = (self.next(), usize::from(self.next()), self.next());
        if kind % 8 == 0 {
            let at = (place << 2 | usize::from(value & 3)) % octets.len().max(1);
            octets.iter_mut().skip(at).take(1).for_each(|octet| *octet ^= value | 1);
            return;
        }
        let Ok(mut message) = Message::parse(octets) else { return };
        let count = message.records.len();
        let section = [Section::Answer, Section::Authority, Section::Additional][usize::from(value) % 3];
        match kind % 8 {
            1 if count > 0 => drop(message.records.remove(place % count)),
            2 if !self.seen.is_empty() => {
                let record = self.seen[place % self.seen.len()].clone();
                message.records.push(Record { section, ..record });
            }
            3 if count > 0 => message.records[place % count].section = section,
            4 => message.records.retain(|record| record.rtype != Rtype::RRSIG),
            5 => message.header.flags = message.header.flags & !0x0f | u16::from(value % 4),
            6 if count > 0 => {
                let record = &mut message.records[place % count];
                let at = usize::from(value) % record.rdata.len().max(1);
                record.rdata.iter_mut().skip(at).take(1).for_each(|octet| *octet = octet.wrapping_add(1));
            }
            7 => {
                let owner = name(NAMES[place % NAMES.len()]);
                let rtype = TYPES[usize::from(value) % TYPES.len()];
                let rdata = vec![198, 18, 6, 6];
                message.records.push(Record { section, owner, rtype, class: Class::IN, ttl: 60, rdata });
            }
            _ => {}
        }
        *octets = message.to_octets();
    }
}
