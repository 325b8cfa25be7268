//! A tree with a root, a top-level domain, and a zone for each kind of fault of a delegation. The
//! tree is always the same. It serves to compare resolvers.

use super::name_below;
use super::servers::{react, read_query};
use super::world::{Behaviour, Host, World, Zone, soa};
use crate::simulator::{Options, Reaction, ServerQuery};
use Faulty::{All, One};
use nonesuch_net::Transport;
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// TTL of all records, in seconds: longer than a comparison.
const TTL: u32 = 3600;
/// Number of nameservers in the delegations with many of them.
const MANY: usize = 24;
/// Number of zones of which each has its nameservers in the next.
const CHAIN: usize = 4;

/// An address without a route.
const UNREACHABLE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// How many of the two nameservers of a zone have a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faulty {
    One,
    All,
}

/// Faults of nameservers, with the label of their zones.
const SERVER_FAULTS: [(&str, Behaviour, &[Faulty]); 23] = [
    ("silent", Behaviour::Silent, &[One, All]),
    ("closed", Behaviour::Closed, &[One, All]),
    ("truncates-without-tcp", Behaviour::NoTcp, &[One, All]),
    ("truncates", Behaviour::Truncates, &[One, All]),
    ("slow", Behaviour::Slow(Duration::from_millis(600)), &[One, All]),
    ("drops-edns", Behaviour::DropsEdns, &[One, All]),
    ("rejects-edns", Behaviour::RejectsEdns, &[One, All]),
    ("ignores-edns", Behaviour::IgnoresEdns, &[All]),
    ("badvers", Behaviour::BadVersion, &[One, All]),
    ("servfail", Behaviour::Fails(2), &[One, All]),
    ("notimp", Behaviour::Fails(4), &[One, All]),
    ("refused", Behaviour::Fails(5), &[One, All]),
    ("no-aa", Behaviour::NotAuthoritative, &[One, All]),
    ("refers-up", Behaviour::RefersUp, &[One, All]),
    ("refers-to-itself", Behaviour::RefersToItself, &[One, All]),
    ("denies-empty-names", Behaviour::DeniesEmptyNames, &[All]),
    ("loses-case", Behaviour::LosesCase, &[All]),
    ("trailing-octets", Behaviour::TrailingOctets, &[All]),
    ("wrong-id", Behaviour::WrongId, &[One, All]),
    ("wrong-question", Behaviour::WrongQuestion, &[One, All]),
    ("no-question", Behaviour::NoQuestion, &[One, All]),
    ("garbage", Behaviour::Garbage, &[One, All]),
    ("no-soa", Behaviour::NoSoa, &[All]),
];

/// What a delegation has.
type Delegation = Vec<(Name, Vec<IpAddr>)>;

/// The tree.
#[derive(Clone, Debug)]
pub struct FaultyTree {
    world: World,
    /// The address of the root server.
    root: Ipv4Addr,
    /// The first two octets of all addresses but that of the root server.
    network: [u8; 2],
    /// Labels of the zones below the top-level domain.
    labels: Vec<String>,
}

/// A question about the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeQuestion {
    /// The kind of fault: the label of the zone.
    pub fault: String,
    /// The query name.
    pub name: Name,
    /// The query type.
    pub rtype: Rtype,
}

impl FaultyTree {
    /// Returns the tree. The root server has this address; those of the other servers begin with
    /// these octets.
    #[must_use]
    pub fn new(root: Ipv4Addr, network: [u8; 2]) -> Self {
        let world =
            World { zones: Vec::new(), hosts: Vec::new(), is_calm: true, options: Options::default() };
        let mut tree = Self { world, root, network, labels: Vec::new() };
        tree.add_zone(&Name::root(), None, 1);
        tree.add_zone(&name("example."), Some(0), 1);
        let correct = tree.add("correct");
        for (label, behaviour, kinds) in SERVER_FAULTS {
            for kind in kinds {
                let zone = tree.add(&format!("{label}-{}", if *kind == One { "one" } else { "all" }));
                let faulty = if *kind == One { 1 } else { 2 };
                for host in tree.world.zones[zone].hosts.iter().take(faulty) {
                    tree.world.hosts[*host].behaviour = behaviour;
                }
            }
        }
        tree.add_faulty_delegations(correct);
        tree
    }

    /// The name and address of the root server.
    #[must_use]
    pub fn root_server(&self) -> (Name, IpAddr) {
        let host = &self.world.hosts[0];
        (host.name.clone(), host.addresses[0])
    }

    /// The addresses of all servers, with the transports that they listen on.
    pub fn listeners(&self) -> impl Iterator<Item = (IpAddr, &'static [Transport])> {
        self.world.hosts.iter().flat_map(|host| {
            let transports: &[Transport] = match host.behaviour {
                Behaviour::Closed => &[],
                Behaviour::NoTcp => &[Transport::Udp],
                _ => &[Transport::Udp, Transport::Tcp],
            };
            host.addresses.iter().map(move |address| (*address, transports))
        })
    }

    /// What the servers do with a query.
    #[must_use]
    pub fn react(&self, query: &ServerQuery<'_>) -> Reaction {
        let Some((asked, question)) = read_query(query) else { return Reaction::SILENCE };
        react(&self.world, query, &asked, &question)
    }

    /// The questions: in each zone a name that exists, one that does not, one without the type, an
    /// empty non-terminal, an alias, a wildcard, and the apex.
    #[must_use]
    pub fn questions(&self) -> Vec<TreeQuestion> {
        let mut questions = Vec::new();
        for label in &self.labels {
            let apex = name_below(label, &name("example."));
            for (labels, rtype) in [
                ("www", Rtype::A),
                ("missing", Rtype::A),
                ("www", Rtype::TXT),
                ("b.c", Rtype::A),
                ("alias", Rtype::A),
                ("x.wild", Rtype::A),
            ] {
                let name = name_below(labels, &apex);
                questions.push(TreeQuestion { fault: label.clone(), name, rtype });
            }
            questions.push(TreeQuestion { fault: label.clone(), name: apex, rtype: Rtype::SOA });
        }
        questions
    }

    /// Adds a zone below the top-level domain, with two correct nameservers. Returns its index.
    fn add(&mut self, label: &str) -> usize {
        self.labels.push(label.to_owned());
        self.add_zone(&name_below(label, &name("example.")), Some(1), 2)
    }

    fn add_zone(&mut self, apex: &Name, parent: Option<usize>, servers: u8) -> usize {
        let number = self.world.zones.len();
        let octet = u8::try_from(number).unwrap_or(u8::MAX);
        let mut zone = Zone {
            apex: apex.clone(),
            parent,
            hosts: Vec::new(),
            lame: Vec::new(),
            is_hostile: false,
            has_sibling_glue: false,
            delegation: None,
            names: BTreeMap::new(),
        };
        let address = |last: u8| vec![vec![198, 18, octet, last]];
        zone.add(apex.clone(), Rtype::SOA, TTL, vec![soa(apex)]);
        zone.add(name_below("www", apex), Rtype::A, TTL, address(1));
        zone.add(name_below("a.b.c", apex), Rtype::A, TTL, address(2));
        zone.add(name_below("*.wild", apex), Rtype::A, TTL, address(3));
        let target = name_below("www", apex).wire().to_vec();
        zone.add(name_below("alias", apex), Rtype::CNAME, TTL, vec![target]);
        for index in 0..servers {
            let name = name_below(&format!("ns{index}"), apex);
            let [first, second] = self.network;
            let own = Ipv4Addr::new(first, second, octet, index + 1);
            let addresses = vec![if number == 0 { self.root } else { own }.into()];
            let host = Host { name, addresses, behaviour: Behaviour::Correct };
            zone.add_addresses(&host);
            zone.hosts.push(self.world.hosts.len());
            self.world.hosts.push(host);
        }
        self.world.zones.push(zone);
        self.set_ns(number, &self.delegation(number));
        number
    }

    /// The nameservers of a zone with their addresses.
    fn delegation(&self, zone: usize) -> Delegation {
        let hosts = self.world.zones[zone].hosts.iter().map(|host| &self.world.hosts[*host]);
        hosts.map(|host| (host.name.clone(), host.addresses.clone())).collect()
    }

    /// Sets the NS RRset at the apex.
    fn set_ns(&mut self, zone: usize, servers: &Delegation) {
        let zone = &mut self.world.zones[zone];
        let servers = servers.iter().map(|(name, _)| name.wire().to_vec()).collect();
        zone.add(zone.apex.clone(), Rtype::NS, TTL, servers);
    }

    /// Adds a zone with this delegation. Its two nameservers serve it.
    fn add_delegated(&mut self, label: &str, delegation: impl FnOnce(&Self, usize) -> Delegation) -> usize {
        let zone = self.add(label);
        self.world.zones[zone].delegation = Some(delegation(self, zone));
        zone
    }

    /// Adds zones whose delegations have faults. `correct` is a zone without faults.
    fn add_faulty_delegations(&mut self, correct: usize) {
        let in_correct = |label: &str| name_below(label, &name("correct.example."));
        let nobody: IpAddr = Ipv4Addr::new(self.network[0], self.network[1], 255, 1).into();
        let lame = self.delegation(correct);
        let missing = |count: usize| -> Delegation {
            (0..count).map(|number| (in_correct(&format!("none{number}")), Vec::new())).collect()
        };
        let with_own = |mut servers: Delegation, tree: &Self, zone: usize| {
            servers.extend(tree.delegation(zone).into_iter().take(1));
            servers
        };
        self.add_delegated("lame-one", |tree, zone| with_own(lame.clone(), tree, zone));
        self.add_delegated("lame-all", |_, _| lame.clone());
        self.add_delegated("parent-is-server", |tree, _| tree.delegation(1));
        self.add_delegated("missing-name-one", |tree, zone| with_own(missing(1), tree, zone));
        self.add_delegated("missing-name-all", |_, _| missing(2));
        self.add_delegated("name-without-address", |_, _| vec![(in_correct("b.c"), Vec::new())]);
        self.add_delegated("many-missing-names-one", |tree, zone| with_own(missing(MANY), tree, zone));
        self.add_delegated("many-missing-names-all", |_, _| missing(MANY));
        let with_glue = |tree: &Self, zone: usize, glue: &[IpAddr], count: usize| -> Delegation {
            let mut servers = tree.delegation(zone);
            servers.iter_mut().take(count).for_each(|(_, addresses)| *addresses = glue.to_vec());
            servers
        };
        self.add_delegated("no-glue-one", |tree, zone| with_glue(tree, zone, &[], 1));
        self.add_delegated("no-glue-all", |tree, zone| with_glue(tree, zone, &[], 2));
        self.add_delegated("old-glue-one", |tree, zone| with_glue(tree, zone, &[nobody], 1));
        self.add_delegated("old-glue-all", |tree, zone| with_glue(tree, zone, &[nobody], 2));
        let foreign = lame[0].1[0];
        self.add_delegated("glue-of-others-one", |tree, zone| with_glue(tree, zone, &[foreign], 1));
        self.add_delegated("glue-of-others-all", |tree, zone| with_glue(tree, zone, &[foreign], 2));
        let unreachable: IpAddr = UNREACHABLE.into();
        self.add_delegated("unreachable-one", |tree, zone| with_glue(tree, zone, &[unreachable], 1));
        self.add_delegated("unreachable-all", |tree, zone| with_glue(tree, zone, &[unreachable], 2));
        // The parent and the zone name different nameservers.
        let zone = self.add_delegated("disjoint", |tree, zone| tree.delegation(zone)[..1].to_vec());
        let own = self.delegation(zone)[1..].to_vec();
        self.set_ns(zone, &own);
        let zone = self.add_delegated("child-names-missing", Self::delegation);
        self.set_ns(zone, &missing(2));
        let zone = self.add_delegated("child-names-lame", Self::delegation);
        self.set_ns(zone, &lame);
        self.add_alias_of_server(correct);
        self.add_cycle();
        self.add_chain();
        self.add_aliases();
    }

    /// Adds a zone whose NS record names an alias of its nameserver, which it must not (RFC 2181
    /// §10.3). The alias and its target are in `correct`.
    fn add_alias_of_server(&mut self, correct: usize) {
        let in_correct = |label: &str| name_below(label, &name("correct.example."));
        let (alias, target) = (in_correct("alias-of-server"), in_correct("target-of-alias"));
        let zone = self.add_delegated("name-is-alias", |_, _| vec![(alias.clone(), Vec::new())]);
        let host = Host { name: target.clone(), ..self.world.hosts[self.world.zones[zone].hosts[0]].clone() };
        let correct = &mut self.world.zones[correct];
        correct.add_addresses(&host);
        correct.add(alias, Rtype::CNAME, TTL, vec![target.wire().to_vec()]);
    }

    /// Adds two zones whose nameservers are in each other, without glue.
    fn add_cycle(&mut self) {
        let (one, other) = (self.add("cycle-a"), self.add("cycle-b"));
        for (zone, servers) in [(one, other), (other, one)] {
            let names = self.delegation(servers).into_iter().map(|(name, _)| (name, Vec::new()));
            let delegation: Delegation = names.collect();
            self.set_ns(zone, &delegation);
            self.world.zones[zone].hosts = self.world.zones[servers].hosts.clone();
            self.world.zones[zone].delegation = Some(delegation);
        }
    }

    /// Adds zones of which each has its nameservers in the next; the last one has its own.
    fn add_chain(&mut self) {
        let zones: Vec<usize> = (0..CHAIN).map(|number| self.add(&format!("chain{number}"))).collect();
        for pair in zones.windows(2) {
            let hosts = self.delegation(pair[1]);
            let names = ["next0", "next1"].iter().zip(&hosts);
            let apex = self.world.zones[pair[1]].apex.clone();
            let own = self.delegation(pair[0]);
            let delegation: Delegation =
                names.map(|(label, _)| (name_below(label, &apex), Vec::new())).collect();
            // The names in the next zone have the addresses of this zone's servers.
            for ((server, _), (_, addresses)) in delegation.iter().zip(own) {
                let behaviour = Behaviour::Correct;
                let host = Host { name: server.clone(), addresses, behaviour };
                self.world.zones[pair[1]].add_addresses(&host);
            }
            self.set_ns(pair[0], &delegation);
            self.world.zones[pair[0]].delegation = Some(delegation);
        }
    }

    /// Adds zones with faulty aliases at `alias`.
    fn add_aliases(&mut self) {
        for (label, target) in [
            ("alias-to-itself", "alias"),
            ("alias-loop", "alias2"),
            ("alias-to-missing", "missing"),
            ("alias-to-lame-zone", "www.lame-all.example."),
        ] {
            let number = self.add(label);
            let zone = &mut self.world.zones[number];
            let owner = name_below("alias", &zone.apex);
            let target = if target.ends_with('.') { name(target) } else { name_below(target, &zone.apex) };
            zone.add(owner.clone(), Rtype::CNAME, TTL, vec![target.wire().to_vec()]);
            if label == "alias-loop" {
                zone.add(target, Rtype::CNAME, TTL, vec![owner.wire().to_vec()]);
            }
        }
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap_or_else(|_| Name::root())
}

#[cfg(test)]
mod tests;
