//! A random tree of signed and unsigned zones, with one fault at most.

use super::fault::Fault;
use super::zone::{APEX_TTL, Signing, TTLS, Zone};
use crate::simulation::name_below;
use crate::simulator::{Options, Path};
use nonesuch_dnssec::KeySet;
use nonesuch_proto::Name;
use nonesuch_resolver::trust_anchors::{AnchorRecord, TrustAnchors};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Maximum number of zones below a top-level domain, from it to the deepest one.
const DEPTH_MAX: usize = 3;

/// The zones and servers.
#[derive(Debug)]
pub(super) struct World {
    /// The first zone is the root, the second a top-level domain. A parent precedes its children.
    pub(super) zones: Vec<Zone>,
    pub(super) fault: Option<Fault>,
    /// Whether no message is lost or late.
    pub(super) is_calm: bool,
    /// Options of the simulator.
    pub(super) options: Options,
}

impl World {
    /// Returns the world of a seed.
    pub(super) fn random(seed: u64) -> Self {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let is_calm = random.random_bool(0.7);
        let options = options(seed, is_calm, random);
        let mut world = Self { zones: Vec::new(), fault: None, is_calm, options };
        world.add_zone(&Name::root(), None, Signing::Signed, random);
        world.add_zone(&name_below("tld", &Name::root()), Some(0), random_signing(random, 0.85), random);
        for number in 0..random.random_range(1..=4) {
            world.add_random_zone(number, random);
        }
        world.fill(random);
        world.fault = Fault::random(&world, random);
        world
    }

    fn add_random_zone(&mut self, number: usize, random: &mut ChaCha8Rng) {
        let parents: Vec<usize> =
            (1..self.zones.len()).filter(|zone| self.depth(*zone) < DEPTH_MAX).collect();
        let parent = parents.choose(random).copied().unwrap_or(1);
        // Some delegations are below an empty non-terminal.
        let labels =
            if random.random_bool(0.2) { format!("z{number}.e{number}") } else { format!("z{number}") };
        let apex = name_below(&labels, &self.zones[parent].apex);
        self.add_zone(&apex, Some(parent), random_signing(random, 0.65), random);
    }

    fn depth(&self, zone: usize) -> usize {
        std::iter::successors(Some(zone), |zone| self.zones[*zone].parent).count() - 1
    }

    fn add_zone(&mut self, apex: &Name, parent: Option<usize>, signing: Signing, random: &mut ChaCha8Rng) {
        let number = self.zones.len();
        let mut zone = Zone::random(apex, number, signing, random);
        let above = parent.map(|parent| &self.zones[parent]);
        zone.parent = parent;
        zone.is_secure = signing == Signing::Signed && above.is_none_or(|above| above.is_secure);
        zone.servers = match above {
            // The servers of the parent answer for the zone, so that no resolver gets a referral.
            Some(above) if number > 1 && random.random_bool(0.35) => above.servers.clone(),
            _ => {
                let address = |last| Ipv4Addr::new(193, 0, number as u8, last);
                (1..=random.random_range(1..=2)).map(address).collect()
            }
        };
        self.zones.push(zone);
    }

    /// Adds delegations and aliases, and signs all zones.
    fn fill(&mut self, random: &mut ChaCha8Rng) {
        for zone in 0..self.zones.len() {
            self.zones[zone].add_nameservers();
            if let Some(parent) = self.zones[zone].parent {
                let (before, after) = self.zones.split_at_mut(zone);
                // A DS RRset often expires before the keys that it names.
                let ttl = TTLS.choose(random).copied().unwrap_or(APEX_TTL);
                before[parent].delegate(&after[0], ttl);
            }
        }
        let targets = self.known_names();
        let now = self.options.unix as u32;
        for zone in &mut self.zones {
            zone.add_aliases(&targets, random);
            zone.sign(now, random);
        }
    }

    /// Returns names that exist, and names near them.
    pub(super) fn known_names(&self) -> Vec<Name> {
        let mut names = BTreeSet::new();
        for zone in &self.zones {
            names.extend(zone.records.keys().filter(|name| !name.view().is_wildcard()).cloned());
            let near = [
                "missing",
                "x.y",
                "q.wild",
                "x.q.wild",
                "b.c",
                "www.d0",
                "deep.host1",
                "q.wildalias",
                "x.www",
                "wild",
            ];
            names.extend(near.iter().map(|labels| name_below(labels, &zone.apex)));
        }
        names.into_iter().collect()
    }

    /// Returns the trust anchors: the DS records or the DNSKEY records of the root zone.
    pub(super) fn anchors(&self, random: &mut ChaCha8Rng) -> TrustAnchors {
        let mut anchors = TrustAnchors::default();
        let root = &self.zones[0];
        let has_ds = random.random_bool(0.5);
        for key in root.keys.iter().flat_map(KeySet::secure_entry_points) {
            let record = match super::keys::ds(&root.apex, key).filter(|_| has_ds) {
                Some(ds) => AnchorRecord::Ds(ds),
                None => AnchorRecord::Dnskey(key.dnskey_rdata()),
            };
            anchors.insert(root.apex.view(), record);
        }
        anchors
    }
}

fn random_signing(random: &mut ChaCha8Rng, signed: f64) -> Signing {
    if random.random_bool(signed) {
        return Signing::Signed;
    }
    let others = [Signing::Unsigned, Signing::Unsigned, Signing::Island, Signing::UnknownDigest];
    others.choose(random).copied().unwrap_or(Signing::Unsigned)
}

/// Returns the options of the simulator: paths without faults in a calm world.
fn options(seed: u64, is_calm: bool, random: &mut ChaCha8Rng) -> Options {
    let delay = Duration::from_millis(random.random_range(1..=30));
    let mut default_path = Path { delay, ..Path::default() };
    // Duplicates, another order and TCP do no harm.
    default_path.jitter = Duration::from_millis(random.random_range(0..10));
    default_path.duplication = if random.random_bool(0.2) { 0.2 } else { 0.0 };
    default_path.truncation = if random.random_bool(0.2) { 0.3 } else { 0.0 };
    if !is_calm {
        default_path.jitter = Duration::from_millis(random.random_range(0..300));
        default_path.loss = random.random_range(0.0..0.3);
    }
    Options { seed, default_path, ..Options::default() }
}
