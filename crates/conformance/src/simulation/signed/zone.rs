//! A zone of a signed world: its data, which the oracle knows, and the records that its servers send.

use super::chain::Chain;
use super::keys;
use crate::simulation::world::soa;
use crate::simulation::{name_below, servers};
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, ProveOptions, prove_chain};
use nonesuch_dnssec::{KeySet, Mechanism, Nsec3Params, SignOptions, sign};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_zone::{Contents, NodesBuilder};
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// TTLs of data, in seconds.
pub(super) const TTLS: [u32; 3] = [5, 60, 300];
/// TTL of records at zone cuts and apexes, in seconds.
pub(super) const APEX_TTL: u32 = 300;
/// Seconds from the inception of signatures to the start, and from the start to their expiration.
const VALIDITY: [u32; 2] = [86_400, 30 * 86_400];
/// The denial mechanisms, the frequent ones more than once.
const MECHANISMS: [Mechanism; 7] = [
    Mechanism::Nsec,
    Mechanism::Nsec,
    Mechanism::Nsec3,
    Mechanism::Nsec3,
    Mechanism::Nsec3OptOut,
    Mechanism::Nsec5,
    Mechanism::Nsec5OptOut,
];

/// The records of an RRset, and its RRSIG records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordSet {
    pub(super) ttl: u32,
    pub(super) rdatas: Vec<Vec<u8>>,
    pub(super) signatures: Vec<Vec<u8>>,
}

/// The RRsets of names.
pub(super) type Records = BTreeMap<Name, BTreeMap<Rtype, RecordSet>>;

/// How a zone is signed, and how its parent names its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signing {
    /// Signed, with a DS RRset in the parent or a trust anchor.
    Signed,
    /// Signed, without DS RRset: an island.
    Island,
    /// Signed, with a DS RRset whose digest type no validator knows.
    UnknownDigest,
    /// Not signed.
    Unsigned,
}

/// A zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) apex: Name,
    pub(super) parent: Option<usize>,
    pub(super) servers: Vec<Ipv4Addr>,
    pub(super) signing: Signing,
    /// Whether the chain of trust from the root zone includes the zone.
    pub(super) is_secure: bool,
    pub(super) mechanism: Mechanism,
    /// The keys of a signed zone.
    pub(super) keys: Option<KeySet>,
    vrf: Option<VrfPrivateKey>,
    /// The data, and after [`Zone::sign`] the signatures. The cuts have their NS and DS RRsets.
    pub(super) records: Records,
    /// Addresses of nameservers below zone cuts.
    pub(super) glue: Records,
    pub(super) chain: Chain,
}

impl Zone {
    /// Returns a zone with some data. `number` selects its keys.
    pub(super) fn random(apex: &Name, number: usize, signing: Signing, random: &mut ChaCha8Rng) -> Self {
        let mechanism = MECHANISMS.choose(random).copied().unwrap_or(Mechanism::Nsec);
        let is_signed = signing != Signing::Unsigned;
        let mut zone = Self {
            apex: apex.clone(),
            parent: None,
            servers: Vec::new(),
            signing,
            is_secure: false,
            mechanism,
            keys: is_signed.then(|| keys::key_set(apex, number, mechanism, random)),
            vrf: (is_signed && mechanism.name_hash() == NameHash::Vrf).then(|| keys::vrf_key(number)),
            records: Records::new(),
            glue: Records::new(),
            chain: Chain::empty(),
        };
        zone.add(apex, Rtype::SOA, APEX_TTL, vec![soa(apex)]);
        for labels in ["www", "host0", "host1", "a.b.c", "*.wild"] {
            let owner = name_below(labels, apex);
            let ttl = TTLS.choose(random).copied().unwrap_or(APEX_TTL);
            if random.random_bool(0.8) {
                let count = random.random_range(1..=3);
                let addresses = (0..count).map(|_| vec![198, 18, random.random(), random.random()]).collect();
                zone.add(&owner, Rtype::A, ttl, addresses);
            }
            if random.random_bool(0.3) {
                zone.add(&owner, Rtype::TXT, ttl, vec![vec![4, b't', b'e', b'x', b't']]);
            }
        }
        zone
    }

    /// Adds an RRset.
    pub(super) fn add(&mut self, owner: &Name, rtype: Rtype, ttl: u32, mut rdatas: Vec<Vec<u8>>) {
        rdatas.sort();
        rdatas.dedup();
        let set = RecordSet { ttl, rdatas, signatures: Vec::new() };
        self.records.entry(owner.clone()).or_default().insert(rtype, set);
    }

    /// Adds aliases to some of `targets`.
    pub(super) fn add_aliases(&mut self, targets: &[Name], random: &mut ChaCha8Rng) {
        for (labels, rtype) in [
            ("alias0", Rtype::CNAME),
            ("alias1", Rtype::CNAME),
            ("*.wildalias", Rtype::CNAME),
            ("d0", Rtype::DNAME),
        ] {
            if let Some(target) = targets.choose(random).filter(|_| random.random_bool(0.5)) {
                let ttl = TTLS.choose(random).copied().unwrap_or(APEX_TTL);
                self.add(&name_below(labels, &self.apex.clone()), rtype, ttl, vec![target.wire().to_vec()]);
            }
        }
    }

    /// The names of the nameservers, with their addresses.
    pub(super) fn nameservers(&self) -> impl Iterator<Item = (Name, Ipv4Addr)> {
        let servers = self.servers.iter().enumerate();
        servers.map(|(index, address)| (name_below(&format!("ns{index}"), &self.apex), *address))
    }

    /// Adds the NS RRset and the addresses of the nameservers to the zone itself.
    pub(super) fn add_nameservers(&mut self) {
        let apex = self.apex.clone();
        let nameservers: Vec<(Name, Ipv4Addr)> = self.nameservers().collect();
        let names = nameservers.iter().map(|(name, _)| name.wire().to_vec()).collect();
        self.add(&apex, Rtype::NS, APEX_TTL, names);
        for (name, address) in nameservers {
            self.add(&name, Rtype::A, APEX_TTL, vec![address.octets().to_vec()]);
        }
    }

    /// Adds the delegation of `child`, with this TTL of the DS RRset.
    pub(super) fn delegate(&mut self, child: &Self, ttl: u32) {
        let names = child.nameservers().map(|(name, _)| name.wire().to_vec()).collect();
        self.add(&child.apex, Rtype::NS, APEX_TTL, names);
        for (name, address) in child.nameservers() {
            let rrset = servers::glue(&name, address.into());
            let set = RecordSet { ttl: APEX_TTL, rdatas: rrset.data.1, signatures: Vec::new() };
            self.glue.entry(name).or_default().insert(Rtype::A, set);
        }
        let entry_points = child.keys.iter().flat_map(KeySet::secure_entry_points);
        let ds: Vec<Vec<u8>> = match child.signing {
            Signing::Signed => entry_points.filter_map(|key| keys::ds(&child.apex, key)).collect(),
            Signing::UnknownDigest => entry_points
                .filter_map(|key| keys::ds(&child.apex, key))
                .map(|mut ds| {
                    ds[3] = keys::UNKNOWN_DIGEST;
                    ds
                })
                .collect(),
            Signing::Island | Signing::Unsigned => return,
        };
        self.add(&child.apex, Rtype::DS, ttl, ds);
    }

    /// Signs the zone. Signatures are valid around `now`, in seconds since 1970.
    pub(super) fn sign(&mut self, now: u32, random: &mut ChaCha8Rng) {
        let Some(keys) = &self.keys else { return };
        let unsigned = self.contents();
        let options = SignOptions::new(self.mechanism, now - VALIDITY[0], now + VALIDITY[1]);
        let salt = if random.random_bool(0.5) { Vec::new() } else { vec![0xab; 4] };
        let nsec3 = Nsec3Params { salt, iterations: random.random_range(0..=2) };
        let proofs = self.vrf.as_ref().map(|key| {
            let proofs = prove_chain(&unsigned, key, &ProveOptions::new(self.mechanism));
            proofs.unwrap_or_else(|error| unreachable!("{error}")).0
        });
        let nsec5 = proofs.as_ref().map(|proofs| Nsec5Chain { proofs, keep_other_keys: false });
        let options = SignOptions { nsec3: nsec3.clone(), nsec5, ..options };
        let signed = sign(&unsigned, keys, &options).unwrap_or_else(|error| unreachable!("{error}"));
        self.records = records_of(signed.contents());
        for name in self.glue.keys() {
            self.records.remove(name);
        }
        self.chain = Chain::take(&self.apex, &mut self.records, self.mechanism, nsec3, self.vrf.take());
    }

    fn contents(&self) -> Contents {
        let mut all = self.records.clone();
        all.extend(self.glue.iter().map(|(name, sets)| (name.clone(), sets.clone())));
        let mut nodes = NodesBuilder::default();
        for (name, sets) in &all {
            nodes.begin_node(name.view());
            for (rtype, set) in sets {
                nodes.begin_rrset(*rtype, *rtype, set.ttl);
                let mut rdatas = set.rdatas.clone();
                rdatas.sort_by(|a, b| rdata::cmp_canonical(*rtype, a, b));
                for octets in rdatas {
                    nodes.push_record(|out| out.extend_from_slice(&octets));
                }
            }
        }
        Contents::from_nodes(&self.apex, nodes)
    }

    /// Returns the RRset of the zone.
    pub(super) fn set(&self, owner: &Name, rtype: Rtype) -> Option<&RecordSet> {
        self.records.get(owner)?.get(&rtype)
    }
}

/// Returns all RRsets with their signatures.
fn records_of(contents: &Contents) -> Records {
    let mut records = Records::new();
    for node in contents.nodes() {
        let sets = records.entry(node.name().to_name()).or_default();
        for rrset in node.rrsets() {
            let set: &mut RecordSet = sets.entry(rrset.covered()).or_default();
            let rdatas = rrset.rdatas().map(<[u8]>::to_vec);
            if rrset.rtype() == Rtype::RRSIG {
                set.signatures.extend(rdatas);
            } else {
                set.ttl = rrset.ttl();
                set.rdatas.extend(rdatas);
            }
        }
    }
    records
}
