//! A random tree of zones, the servers of the zones with their faults, and the paths to them.

use super::lookup::OwnedRrset;
use super::name_below;
use super::servers::{glue, hostile_address};
use crate::simulator::{Options, Path};
use nonesuch_proto::{Name, Rtype};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// First octets of the addresses of hostile servers, and of all addresses in forged records.
pub(super) const HOSTILE: [u8; 3] = [6, 6, 6];
/// TTLs of records, in seconds.
const TTLS: [u32; 4] = [0, 5, 300, 86_400];

/// What a server does with queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// As the RFCs say.
    Correct,
    /// It does not respond.
    Silent,
    /// No route leads to it.
    Unreachable,
    /// Nothing listens on its port.
    Closed,
    /// It refuses TCP connections.
    NoTcp,
    /// Each response over UDP is truncated.
    Truncates,
    /// It responds after this time.
    Slow(Duration),
    /// It does not respond to queries with EDNS.
    DropsEdns,
    /// FORMERR to queries with EDNS.
    RejectsEdns,
    /// This RCODE to each query.
    Fails(u16),
    /// Answers do not have the AA flag.
    NotAuthoritative,
    /// Referrals to the root to each query.
    RefersUp,
    /// NXDOMAIN for names that have only names below them.
    DeniesEmptyNames,
    /// The question in its responses is in lower case.
    LosesCase,
    /// Its responses have octets after the last record.
    TrailingOctets,
    /// Forged responses precede its responses: with another ID, another question, from another
    /// address.
    Spoofed,
    /// Its responses have another ID.
    WrongId,
    /// Its responses have another question.
    WrongQuestion,
    /// Its responses have no question.
    NoQuestion,
    /// Its responses are no messages.
    Garbage,
    /// Referrals to the zone itself for each query.
    RefersToItself,
    /// NOERROR without records for each query.
    Empty,
    /// Denials do not have the SOA record.
    NoSoa,
    /// It ignores EDNS: its responses have no OPT record.
    IgnoresEdns,
    /// BADVERS to queries with EDNS.
    BadVersion,
}

impl Behaviour {
    const FAULTS: [Self; 27] = [
        Self::Silent,
        Self::Unreachable,
        Self::Closed,
        Self::NoTcp,
        Self::Truncates,
        Self::Slow(Duration::from_millis(700)),
        Self::Slow(Duration::from_millis(3500)),
        Self::DropsEdns,
        Self::RejectsEdns,
        Self::Fails(2),
        Self::Fails(4),
        Self::Fails(5),
        Self::NotAuthoritative,
        Self::RefersUp,
        Self::DeniesEmptyNames,
        Self::LosesCase,
        Self::TrailingOctets,
        Self::Spoofed,
        Self::WrongId,
        Self::WrongQuestion,
        Self::NoQuestion,
        Self::Garbage,
        Self::RefersToItself,
        Self::Empty,
        Self::NoSoa,
        Self::IgnoresEdns,
        Self::BadVersion,
    ];

    /// Whether a resolver can get wrong answers from the server, without an attack.
    const fn is_misleading(self) -> bool {
        matches!(
            self,
            Self::DeniesEmptyNames
                | Self::NotAuthoritative
                | Self::TrailingOctets
                | Self::Empty
                | Self::NoSoa
        )
    }
}

/// A nameserver.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: Name,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) behaviour: Behaviour,
}

/// RDATA of the records of an RRset, with its TTL in seconds.
pub(super) type Rrset = (u32, Vec<Vec<u8>>);

/// A zone.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) apex: Name,
    pub(super) parent: Option<usize>,
    /// The nameservers, which are in the NS RRset of the apex.
    pub(super) hosts: Vec<usize>,
    /// Hosts that only the delegation names, and that do not serve the zone.
    pub(super) lame: Vec<usize>,
    /// Whether the servers lie.
    pub(super) is_hostile: bool,
    /// Whether the delegation has addresses of nameservers that are not below the apex, too.
    pub(super) has_sibling_glue: bool,
    /// The nameservers and addresses in the delegation; `None`: those of `hosts` and `lame`.
    pub(super) delegation: Option<Vec<(Name, Vec<IpAddr>)>>,
    pub(super) names: BTreeMap<Name, BTreeMap<u16, Rrset>>,
}

/// The zones and servers.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// The first zone is the root.
    pub(super) zones: Vec<Zone>,
    pub(super) hosts: Vec<Host>,
    /// Whether nothing is wrong: each name resolves.
    pub(super) is_calm: bool,
    /// Options of the simulator.
    pub(super) options: Options,
}

impl World {
    /// Returns the world of a seed.
    pub(super) fn random(seed: u64) -> Self {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let is_calm = random.random_bool(0.25);
        let options = options(seed, is_calm, random);
        let mut world = Self { zones: Vec::new(), hosts: Vec::new(), is_calm, options };
        let has_hostile = !is_calm && random.random_bool(0.6);
        for _ in 0..random.random_range(3..=14) {
            world.add_zone(has_hostile, random);
        }
        if !is_calm {
            world.break_delegations(random);
        }
        let targets = world.known_names();
        for zone in &mut world.zones {
            zone.add_aliases(&targets, random);
        }
        world
    }

    fn add_zone(&mut self, has_hostile: bool, random: &mut ChaCha8Rng) {
        let number = self.zones.len();
        // Small numbers are likely, so that the tree is not only a chain.
        let parent = number.checked_sub(1).map(|last| random.random_range(0..=last.min(5)));
        let (apex, is_below_hostile) = match parent {
            Some(parent) => {
                let Zone { apex, is_hostile, .. } = &self.zones[parent];
                (name_below(&format!("z{number}"), apex), *is_hostile)
            }
            None => (Name::root(), false),
        };
        let is_hostile = is_below_hostile || has_hostile && number > 1 && random.random_bool(0.3);
        let mut zone = Zone::new(&apex, parent, is_hostile, random);
        let honest: Vec<usize> = (0..self.hosts.len()).filter(|host| !self.is_hostile_host(*host)).collect();
        for index in 0..random.random_range(1..=3) {
            match honest.choose(random) {
                Some(host) if !is_hostile && number > 1 && random.random_bool(0.3) => {
                    if !zone.hosts.contains(host) {
                        zone.hosts.push(*host);
                    }
                }
                _ => {
                    zone.hosts.push(self.hosts.len());
                    let host = self.host(&zone, number, index, random);
                    zone.add_addresses(&host);
                    self.hosts.push(host);
                }
            }
        }
        let servers = zone.hosts.iter().map(|host| self.hosts[*host].name.wire().to_vec()).collect();
        zone.add(zone.apex.clone(), Rtype::NS, 86_400, servers);
        self.zones.push(zone);
    }

    /// Returns a new nameserver of `zone`, with a name in the zone.
    fn host(&self, zone: &Zone, number: usize, index: u8, random: &mut ChaCha8Rng) -> Host {
        let name = name_below(&format!("ns{index}"), &zone.apex);
        let number = u8::try_from(number).unwrap_or(u8::MAX);
        let ipv4 = match zone.is_hostile {
            true => hostile_address(number * 4 + index),
            false => Ipv4Addr::new(193, 0, number, index + 1).into(),
        };
        let mut addresses = vec![ipv4];
        if !zone.is_hostile && random.random_bool(0.3) {
            let ipv6 = Ipv6Addr::new(0x2a00, 0, 0, 0, 0, 0, number.into(), (index + 1).into());
            addresses.push(ipv6.into());
        }
        let is_faulty = !self.is_calm && !zone.is_hostile && random.random_bool(0.3);
        let fault = Behaviour::FAULTS.choose(random).copied().filter(|_| is_faulty);
        Host { name, addresses, behaviour: fault.unwrap_or(Behaviour::Correct) }
    }

    /// Makes some delegations lame, and some depend on each other.
    fn break_delegations(&mut self, random: &mut ChaCha8Rng) {
        let honest: Vec<usize> = (1..self.zones.len()).filter(|zone| !self.zones[*zone].is_hostile).collect();
        let Some((&one, &other)) = honest.choose(random).zip(honest.choose(random)) else { return };
        if random.random_bool(0.3) {
            let lame = self.zones[other].hosts.clone();
            let added = lame.into_iter().filter(|host| !self.zones[one].hosts.contains(host)).collect();
            self.zones[one].lame = added;
        }
        if one != other && random.random_bool(0.2) {
            let (of_one, of_other) = (self.zones[one].hosts.clone(), self.zones[other].hosts.clone());
            for (zone, hosts) in [(one, of_other), (other, of_one)] {
                let servers = hosts.iter().map(|host| self.hosts[*host].name.wire().to_vec()).collect();
                let apex = self.zones[zone].apex.clone();
                self.zones[zone].add(apex, Rtype::NS, 86_400, servers);
                self.zones[zone].hosts = hosts;
            }
        }
    }

    fn is_hostile_host(&self, host: usize) -> bool {
        self.hosts[host].addresses.iter().any(|address| is_hostile_address(*address))
    }

    /// Returns names that exist, and names near them.
    pub(super) fn known_names(&self) -> Vec<Name> {
        let mut names = BTreeSet::new();
        for zone in &self.zones {
            names.extend(zone.names.keys().filter(|name| !name.view().is_wildcard()).cloned());
            let near = ["missing", "x.y", "q.wild", "x.q.wild", "b.c", "www.d0", "deep.host1"];
            names.extend(near.iter().map(|labels| name_below(labels, &zone.apex)));
        }
        names.into_iter().collect()
    }

    /// Returns the zone with the longest apex that is `name` or above it.
    pub(super) fn zone_of(&self, name: &Name) -> usize {
        let enclosing =
            (0..self.zones.len()).filter(|zone| name.view().is_at_or_below(self.zones[*zone].apex.view()));
        enclosing.max_by_key(|zone| self.zones[*zone].apex.view().label_count()).unwrap_or(0)
    }

    /// Whether the name is in a zone that lies, or below it.
    pub(super) fn is_hostile_name(&self, name: &Name) -> bool {
        self.zones[self.zone_of(name)].is_hostile
    }

    /// Whether a resolver can get a wrong answer from the servers of the zone or of a zone above it.
    pub(super) fn is_misleading(&self, zone: usize) -> bool {
        let mut zones = std::iter::successors(Some(zone), |zone| self.zones[*zone].parent);
        zones.any(|zone| {
            let Zone { is_hostile, hosts, lame, .. } = &self.zones[zone];
            *is_hostile || hosts.iter().chain(lame).any(|host| self.hosts[*host].behaviour.is_misleading())
        })
    }
}

impl Zone {
    /// Returns a zone with some names.
    fn new(apex: &Name, parent: Option<usize>, is_hostile: bool, random: &mut ChaCha8Rng) -> Self {
        let has_sibling_glue = random.random_bool(0.5);
        let (hosts, lame, names) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (apex_name, delegation) = (apex.clone(), None);
        let mut zone =
            Self { apex: apex_name, parent, hosts, lame, is_hostile, has_sibling_glue, delegation, names };
        zone.add(apex.clone(), Rtype::SOA, 300, vec![soa(apex)]);
        for labels in ["www", "host0", "host1", "a.b.c", "*.wild"] {
            if random.random_bool(0.7) {
                let count = random.random_range(1..=3);
                let addresses = (0..count).map(|_| vec![198, 18, random.random(), random.random()]).collect();
                let ttl = TTLS.choose(random).copied().unwrap_or(300);
                zone.add(name_below(labels, apex), Rtype::A, ttl, addresses);
            }
            if random.random_bool(0.3) {
                zone.add(name_below(labels, apex), Rtype::TXT, 300, vec![vec![4, b't', b'e', b'x', b't']]);
            }
        }
        zone
    }

    pub(super) fn add(&mut self, owner: Name, rtype: Rtype, ttl: u32, rdata: Vec<Vec<u8>>) {
        let distinct: BTreeSet<Vec<u8>> = rdata.into_iter().collect();
        self.names.entry(owner).or_default().insert(rtype.0, (ttl, distinct.into_iter().collect()));
    }

    pub(super) fn add_addresses(&mut self, host: &Host) {
        for address in &host.addresses {
            let OwnedRrset { owner, rtype, data: (ttl, rdata) } = glue(&host.name, *address);
            self.add(owner, rtype, ttl, rdata);
        }
    }

    fn add_aliases(&mut self, targets: &[Name], random: &mut ChaCha8Rng) {
        for (labels, rtype) in [
            ("alias0", Rtype::CNAME),
            ("alias1", Rtype::CNAME),
            ("*.wildalias", Rtype::CNAME),
            ("d0", Rtype::DNAME),
        ] {
            if let Some(target) = targets.choose(random).filter(|_| random.random_bool(0.4)) {
                self.add(name_below(labels, &self.apex), rtype, 300, vec![target.wire().to_vec()]);
            }
        }
    }
}

/// RDATA of the SOA record of a zone.
pub(super) fn soa(apex: &Name) -> Vec<u8> {
    let numbers = [1_u32, 3600, 600, 86_400, 30].into_iter().flat_map(u32::to_be_bytes);
    let names = [name_below("primary", apex), name_below("admin", apex)];
    names.iter().flat_map(|name| name.wire().to_vec()).chain(numbers).collect()
}

/// Whether an address is one of hostile servers and forged records.
pub(super) fn is_hostile_address(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.octets()[..3] == HOSTILE)
}

/// Returns the options of the simulator: paths without faults in a calm world.
fn options(seed: u64, is_calm: bool, random: &mut ChaCha8Rng) -> Options {
    let delay = Duration::from_millis(random.random_range(1..=60));
    let mut default_path = Path { delay, ..Path::default() };
    if !is_calm {
        let faulty = |random: &mut ChaCha8Rng, most: f64| match random.random_bool(0.4) {
            true => random.random_range(0.0..most),
            false => 0.0,
        };
        default_path = Path {
            jitter: Duration::from_millis(random.random_range(0..300)),
            loss: faulty(random, 0.4),
            duplication: faulty(random, 0.3),
            truncation: faulty(random, 0.3),
            corruption: if random.random_bool(0.1) { 0.05 } else { 0.0 },
            datagram_limit: if random.random_bool(0.1) { 512 } else { 65_535 },
            delay,
        };
    }
    Options { seed, default_path, ..Options::default() }
}
