//! Signed local DNS trees: a root, top-level domains and zones below, with planted faults.
//!
//! A [`Description`] and a seed determine a tree. Keys and signatures are the same in each run,
//! except the signatures of ECDSA and Falcon-512, which are randomised. A tree has the zones, the
//! address of the server of each zone on this machine, root hints, trust anchors in the forms
//! of several resolvers, and for each fault the questions that show it with the result that a
//! validator should report ([`Tree::expectations`]).
//!
//! The private keys of a tree are derived from the seed and are no secrets.
//!
//! ```
//! use nonesuch_lab::tree::{AnchorForm, Description, Fault, PlantedFault, Tree, ZoneDescription};
//!
//! let mut broken = ZoneDescription::new("broken.example.");
//! broken.faults = vec![PlantedFault::new(Fault::ExpiredSignature)];
//! let zones = vec![ZoneDescription::new("."), ZoneDescription::new("example."), broken];
//! let tree = Tree::build(&Description { zones, ..Description::default() }, 1, 1_767_225_600)?;
//! assert_eq!(tree.zones.len(), 3);
//! assert!(tree.anchors(AnchorForm::Ds).starts_with(". 3600 IN DS "));
//! # Ok::<(), nonesuch_lab::tree::TreeError>(())
//! ```

mod anchors;
mod chain;
mod data;
mod delegation;
mod description;
mod error;
mod expected;
mod fault;
mod keys;
mod plant;
mod records;
mod respond;
mod rsa;
mod transition;
mod unsupported;
mod write;

#[cfg(test)]
mod tests;

pub use anchors::AnchorForm;
pub use data::with_key_tag;
pub use description::{Description, PlantedFault, ZoneDescription};
pub use error::TreeError;
pub use expected::Expectation;
pub use fault::{FAULTS, Fault, FaultEntry, FaultScope, Outcome, UnknownFault};
pub(crate) use write::SUCCESSOR_SUFFIX;

use data::ZonePlan;
use data_encoding::HEXLOWER_PERMISSIVE;
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, Proofs, ProveOptions, prove_chain};
use nonesuch_dnssec::denial::{DenialGeneration, NameHash};
use nonesuch_dnssec::{KeySet, Mechanism, Nsec3Params, SignOptions, sign};
use nonesuch_proto::{Name, NameRef};
use nonesuch_zone::Contents;
use plant::FaultPlanter;
use records::Records;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Time between the inception of the signatures and the time of the tree, in seconds.
const INCEPTION_OFFSET: u32 = 86_400;
/// Time between the time of the tree and the expiration of the signatures, in seconds.
const EXPIRATION_OFFSET: u32 = 30 * 86_400;

/// A tree of zones.
#[derive(Debug)]
pub struct Tree {
    /// The zones, in the order of the description.
    pub zones: Vec<TreeZone>,
    /// Port of all servers.
    pub port: u16,
    /// The time of the tree, in seconds since 1970 modulo 2^32.
    pub now: u32,
}

/// A zone of a tree.
#[derive(Debug)]
pub struct TreeZone {
    /// The apex.
    pub origin: Name,
    /// Index of the closest enclosing zone in [`Tree::zones`]; `None` for the root.
    pub parent: Option<usize>,
    /// The description of the zone.
    pub description: ZoneDescription,
    /// The name of the nameserver.
    pub nameserver: Name,
    /// The address of the nameserver, which may be that of other zones too.
    pub server: Ipv4Addr,
    /// The records, with the faults. The server of a zone with online signing generates the
    /// signatures.
    pub contents: Contents,
    /// The keys of a signed zone. Those of a zone with an algorithm that this program does not sign with have the
    /// number of another algorithm.
    pub keys: Option<KeySet>,
    /// The VRF key and the stored proofs of a zone with NSEC5.
    pub nsec5: Option<(VrfPrivateKey, Proofs)>,
    /// The version with NSEC5 of a zone in a conservative transition. Its keys are those of this
    /// zone.
    pub successor: Option<Box<Self>>,
    /// RDATA of the DNSKEY records of the secure entry points, as published.
    pub entry_points: Vec<Vec<u8>>,
    /// RDATA of the DS records in the parent.
    pub ds: Vec<Vec<u8>>,
}

impl TreeZone {
    /// Whether the server of the zone generates signatures and denials.
    #[must_use]
    pub fn is_online(&self) -> bool {
        self.keys.is_some() && self.description.denial.generation() == DenialGeneration::Online
    }

    /// Whether a server answers for the zone at the address of the nameserver.
    #[must_use]
    pub fn is_served(&self) -> bool {
        !self.description.has(Fault::UnreachableServer) && !self.description.has(Fault::LameDelegation)
    }

    /// The algorithm number of the keys: with NSEC5 the alias number. `None` if the zone is not
    /// signed.
    #[must_use]
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.keys.as_ref().map(|_| keys::key_algorithm(&self.description))
    }

    /// The zone as the text of a zone file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        nonesuch_zone::write::push_part(&self.contents, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Tree {
    /// Builds the tree: derives all keys from `seed`, signs with a validity from a day before to 30
    /// days after `now` (in seconds since 1970 modulo 2^32), and plants the faults.
    ///
    /// # Errors
    /// [`TreeError`], for example if the description has no root, describes a zone twice, has
    /// records that no zone can have, or plants a fault into an unsuitable zone; if a server
    /// address is neither a loopback address nor in 198.18.0.0/15; or if keys cannot be derived or a zone cannot be signed.
    pub fn build(description: &Description, seed: u64, now: u32) -> Result<Self, TreeError> {
        let plans = plan_zones(description, seed)?;
        let zones = (0..plans.len()).map(|index| build_zone(&plans, index, seed, now));
        let mut zones = zones.collect::<Result<Vec<_>, _>>()?;
        for (zone, plan) in zones.iter_mut().zip(plans) {
            zone.keys = plan.keys.filter(|_| plan.zone.signed);
        }
        Ok(Self { zones, port: description.port, now })
    }

    /// The closest enclosing zone of `name`: the zone with the longest apex at or above it.
    #[must_use]
    pub fn zone_of(&self, name: NameRef<'_>) -> Option<&TreeZone> {
        let enclosing = self.zones.iter().filter(|zone| name.is_at_or_below(zone.origin.view()));
        enclosing.max_by_key(|zone| zone.origin.view().label_count())
    }

    /// The servers that answer: each address with the zones at it.
    #[must_use]
    pub fn servers(&self) -> BTreeMap<Ipv4Addr, Vec<&TreeZone>> {
        let mut servers: BTreeMap<Ipv4Addr, Vec<&TreeZone>> = BTreeMap::new();
        for zone in self.zones.iter().filter(|zone| zone.is_served()) {
            servers.entry(zone.server).or_default().push(zone);
        }
        servers
    }
}

/// Expands the description to the names, addresses, parents and keys of all zones, and checks them.
fn plan_zones(description: &Description, seed: u64) -> Result<Vec<ZonePlan<'_>>, TreeError> {
    let zones = description.expand()?;
    let mut indexes = BTreeMap::new();
    for (index, (origin, _)) in zones.iter().enumerate() {
        if indexes.insert(origin.clone(), index).is_some() {
            return Err(TreeError::DuplicateZone { zone: origin.clone() });
        }
    }
    if !indexes.contains_key(&Name::root()) {
        return Err(TreeError::NoRoot);
    }
    let mut unused_addresses = unused_addresses(description);
    let mut plans = Vec::with_capacity(zones.len());
    for (origin, zone) in zones {
        let ancestors = std::iter::successors(origin.view().parent(), |name| name.parent());
        let parent = ancestors.filter_map(|name| indexes.get(&name.to_name())).next().copied();
        let address = zone.server.or_else(|| unused_addresses.next()).unwrap_or(description.first_address);
        if !description.any_address && !address.is_loopback() && !is_for_benchmarks(address) {
            return Err(TreeError::Address { zone: origin, address });
        }
        let has_keys = zone.signed || zone.has(Fault::DsForUnsignedZone);
        let keys = has_keys.then(|| keys::key_set(&origin, zone, seed)).transpose()?;
        let plan = ZonePlan { origin, zone, parent, address, keys };
        unsupported::check(&plan)?;
        plant::check_faults(&plan)?;
        let can_change = zone.signed && zone.denial == Mechanism::Nsec3 && zone.faults.is_empty();
        if zone.also_nsec5 && !can_change {
            return Err(TreeError::Transition { zone: plan.origin });
        }
        plans.push(plan);
    }
    plant::check_delegations(&plans)?;
    Ok(plans)
}

/// Whether the address is in 198.18.0.0/15, which is not routed on the Internet (RFC 2544 appendix
/// C.2.2, RFC 6890).
const fn is_for_benchmarks(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [198, 18 | 19, ..])
}

/// The addresses from `first_address` on that no zone sets as its `server`.
fn unused_addresses(description: &Description) -> impl Iterator<Item = Ipv4Addr> {
    let used: BTreeSet<Ipv4Addr> = description.zones.iter().filter_map(|zone| zone.server).collect();
    let first = description.first_address.to_bits();
    (first..=u32::MAX).map(Ipv4Addr::from_bits).filter(move |address| !used.contains(address))
}

/// Builds a zone. [`Tree::build`] sets its keys later, because the plans of other zones refer to
/// them.
fn build_zone(plans: &[ZonePlan<'_>], index: usize, seed: u64, now: u32) -> Result<TreeZone, TreeError> {
    let plan = &plans[index];
    let zone = plan.zone;
    let signing_keys = if zone.signed { plan.keys.as_ref() } else { None };
    let colliding = signing_keys.map(|keys| plant::colliding_keys(plan, keys, seed)).transpose()?;
    let mut contents = data::unsigned_contents(plans, index, &colliding.unwrap_or_default())?;
    let (mut nsec5, mut successor) = (None, None);
    let is_offline = zone.denial.generation() == DenialGeneration::Offline;
    if let Some(keys) = signing_keys.filter(|_| is_offline) {
        let children: Vec<&ZonePlan<'_>> = plans.iter().filter(|child| child.parent == Some(index)).collect();
        let unsigned = contents;
        (contents, nsec5) = sign_zone(plan, &children, keys, &unsigned, (seed, now))?;
        if zone.also_nsec5 {
            let new = sign_successor(plan, keys, (&unsigned, &contents), (seed, now))?;
            (contents, successor) = (new.old, Some(new.new));
        }
    }
    let version = |description, (contents, nsec5): SignedZone| TreeZone {
        origin: plan.origin.clone(),
        parent: plan.parent,
        description,
        nameserver: plan.nameserver(),
        server: plan.address,
        contents,
        keys: None,
        nsec5,
        successor: None,
        entry_points: plan.entry_points(),
        ds: if plan.parent.is_some() { plan.ds() } else { Vec::new() },
    };
    let successor = successor.map(|signed| Box::new(version(zone.successor(), signed)));
    Ok(TreeZone { successor, ..version(zone.clone(), (contents, nsec5)) })
}

/// Signs the version with NSEC5 of a zone in a conservative transition, and returns both versions.
/// `unsigned` and `old` are the zone without signatures and signed with NSEC3.
fn sign_successor(
    plan: &ZonePlan<'_>,
    keys: &KeySet,
    (unsigned, old): (&Contents, &Contents),
    (seed, now): (u64, u32),
) -> Result<transition::Versions, TreeError> {
    let zone = plan.zone.successor();
    // The keys of the zone replace the signatures of these keys.
    let alias_keys = keys::key_set(&plan.origin, &zone, seed)?;
    let plan = ZonePlan { origin: plan.origin.clone(), zone: &zone, keys: None, ..*plan };
    let signed = sign_zone(&plan, &[], &alias_keys, unsigned, (seed, now))?;
    transition::versions(&plan.origin, keys, old, signed)
}

/// The signed records; with NSEC5 also the VRF key and the proofs.
type SignedZone = (Contents, Option<(VrfPrivateKey, Proofs)>);

/// Signs a zone and plants its faults, and those of the delegations to `children`.
fn sign_zone(
    plan: &ZonePlan<'_>,
    children: &[&ZonePlan<'_>],
    keys: &KeySet,
    unsigned: &Contents,
    (seed, now): (u64, u32),
) -> Result<SignedZone, TreeError> {
    let (origin, zone) = (&plan.origin, plan.zone);
    let vrf = match zone.denial.name_hash() {
        NameHash::Vrf => Some(prove_nsec5(plan, unsigned, seed)?),
        NameHash::Unhashed | NameHash::Sha1 => None,
    };
    let proofs = vrf.as_ref().map(|(_, proofs)| proofs);
    let salt = HEXLOWER_PERMISSIVE.decode(zone.salt.as_bytes());
    let salt = salt.map_err(|_| TreeError::Salt { zone: origin.clone() })?;
    let nsec3 = Nsec3Params { salt, iterations: plant::iterations(zone) };
    let options = SignOptions {
        nsec3,
        nsec5: proofs.map(|proofs| Nsec5Chain { proofs, keep_other_keys: false }),
        now,
        seed,
        ..SignOptions::new(
            zone.denial,
            now.wrapping_sub(INCEPTION_OFFSET),
            now.wrapping_add(EXPIRATION_OFFSET),
        )
    };
    let signed = sign(unsigned, keys, &options);
    let signed =
        signed.map_err(|source| TreeError::Sign { zone: origin.clone(), source: Box::new(source) })?;
    let has_faults = |plan: &ZonePlan<'_>| !plan.zone.faults.is_empty();
    let is_unsupported = zone.has_unsupported_algorithm();
    if !is_unsupported && !has_faults(plan) && !children.iter().any(|child| has_faults(child)) {
        return Ok((signed.into_contents(), vrf));
    }
    let mut records = Records::new(signed.contents());
    FaultPlanter { plan, keys, proofs, now, seed }.plant(children, &mut records)?;
    if is_unsupported {
        unsupported::relabel(plan, keys, &mut records);
    }
    Ok((records.into_contents(), vrf))
}

/// The VRF key and the proofs of a zone with NSEC5.
fn prove_nsec5(
    plan: &ZonePlan<'_>,
    unsigned: &Contents,
    seed: u64,
) -> Result<(VrfPrivateKey, Proofs), TreeError> {
    let key = keys::vrf_key(&plan.origin, plan.zone, seed)?;
    let proofs = prove_chain(unsigned, &key, &ProveOptions::new(plan.zone.denial));
    let fault = |source| TreeError::Nsec5 { zone: plan.origin.clone(), source: Box::new(source) };
    let (mut proofs, _) = proofs.map_err(fault)?;
    if let Some(soa) = unsigned.soa() {
        proofs.set_serial(soa.serial);
    }
    Ok((key, proofs))
}
