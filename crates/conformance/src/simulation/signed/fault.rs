//! The fault of a world: an error in the responses of a zone's servers.

use super::world::World;
use super::zone::Zone;
use nonesuch_proto::{Name, Rtype};
use rand::Rng as _;
use rand::seq::{IndexedRandom as _, IteratorRandom as _};
use rand_chacha::ChaCha8Rng;
use std::net::Ipv4Addr;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// An octet of the signature is changed.
    CorruptSignature,
    /// The RRset has no signature.
    MissingSignature,
    /// The signature has expired.
    ExpiredSignature,
    /// The signature is not valid yet.
    EarlySignature,
    /// The signature is by the key of another zone, and names it as signer.
    ForeignKey,
    /// The Labels field is that of another owner.
    WrongLabels,
    /// The signature covers another type.
    WrongType,
    /// The signature by the key of the zone names another signer.
    WrongSigner,
    /// The signature has the tag of no key.
    WrongTag,
    /// A record is changed after signing.
    ChangedRecord,
    /// A record is added after signing.
    AddedRecord,
    /// A record is removed after signing.
    RemovedRecord,
    /// The answer is forged and has no signature.
    ForgedAnswer,
    /// The answer is a forged CNAME record.
    ForgedAlias,
    /// NXDOMAIN for a name that exists, with records that prove other denials.
    DeniedName,
    /// NODATA for a type that exists, with records that prove other denials.
    DeniedType,
    /// NXDOMAIN or NODATA with the record of the parent zone at the zone cut.
    DeniedByParent,
    /// A referral to the servers of an attacker.
    ForgedReferral,
    /// Neither DS RRset nor a proof of its absence.
    MissingDs,
    /// The records of the child zone deny its DS RRset.
    DsDeniedByChild,
    /// Denials have no proof.
    MissingProof,
    /// Denials have the proof for another name.
    OtherProof,
    /// Denials have the proof of another zone.
    ForeignProof,
    /// The type bit maps are changed after signing.
    ChangedBitmap,
    /// Wildcard answers have no proof.
    MissingWildcardProof,
    /// The server sets the AD flag. This has no effect.
    AdFlag,
    /// The TTLs are too high: the original TTL is the maximum.
    RaisedTtls,
    /// One of the servers does not respond. This has no effect.
    SilentServer,
    /// One of the servers responds SERVFAIL. This has no effect.
    FailingServer,
}

/// The effect of a fault on the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// None.
    Nothing,
    /// The data are true, but a validator cannot know that.
    Proof,
    /// The data are false.
    Data,
}

/// The faulty records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An RRset of the zone, by its owner in the zone.
    Rrset(Name, Rtype),
    /// All names at and below a name.
    Tree(Name),
    /// All records of the denial chain.
    Denials,
    /// The proofs of wildcard answers.
    WildcardProofs,
    /// All responses.
    Everything,
}

/// The fault of a world.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) zone: usize,
    pub(super) target: Target,
    /// The only server with the fault; `None`: all servers of the zone.
    pub(super) server: Option<Ipv4Addr>,
    /// Another zone, whose keys or records are used.
    pub(super) other: Option<usize>,
}

impl FaultKind {
    const ALL: [Self; 29] = [
        Self::CorruptSignature,
        Self::MissingSignature,
        Self::ExpiredSignature,
        Self::EarlySignature,
        Self::ForeignKey,
        Self::WrongLabels,
        Self::WrongType,
        Self::WrongSigner,
        Self::WrongTag,
        Self::ChangedRecord,
        Self::AddedRecord,
        Self::RemovedRecord,
        Self::ForgedAnswer,
        Self::ForgedAlias,
        Self::DeniedName,
        Self::DeniedType,
        Self::DeniedByParent,
        Self::ForgedReferral,
        Self::MissingDs,
        Self::DsDeniedByChild,
        Self::MissingProof,
        Self::OtherProof,
        Self::ForeignProof,
        Self::ChangedBitmap,
        Self::MissingWildcardProof,
        Self::AdFlag,
        Self::RaisedTtls,
        Self::SilentServer,
        Self::FailingServer,
    ];

    /// Returns the effect on the data.
    pub(super) const fn damage(self) -> Damage {
        match self {
            Self::AdFlag | Self::RaisedTtls | Self::SilentServer | Self::FailingServer => Damage::Nothing,
            kind if kind.is_of_signatures() => Damage::Proof,
            Self::MissingProof
            | Self::OtherProof
            | Self::ForeignProof
            | Self::ChangedBitmap
            | Self::MissingWildcardProof => Damage::Proof,
            _ => Damage::Data,
        }
    }

    /// Whether the fault changes the signatures of an RRset.
    pub(super) const fn is_of_signatures(self) -> bool {
        (self as u8) <= Self::WrongTag as u8
    }

    /// Whether the fault only changes the answer section: an RRset in the authority section stays
    /// correct.
    pub(super) const fn is_of_answers(self) -> bool {
        matches!(
            self,
            Self::ForgedAnswer
                | Self::ForgedAlias
                | Self::DeniedName
                | Self::DeniedType
                | Self::DeniedByParent
        )
    }

    /// Whether only one server can have the fault.
    const fn is_of_one_server(self) -> bool {
        matches!(self, Self::SilentServer | Self::FailingServer)
    }
}

impl Fault {
    /// Whether an attacker who forges answers leaves those of this type alone: a validator that gets
    /// false data asks for the DS RRset.
    pub(super) fn spares(&self, rtype: Rtype) -> bool {
        let is_target = matches!(self.target, Target::Rrset(_, Rtype::DS));
        self.kind.is_of_answers() && rtype == Rtype::DS && !is_target
    }

    /// Returns a random fault that is possible in the world; `None` for a world without fault.
    pub(super) fn random(world: &World, random: &mut ChaCha8Rng) -> Option<Self> {
        if random.random_bool(0.15) {
            return None;
        }
        (0..20).find_map(|_| Self::try_random(world, random))
    }

    fn try_random(world: &World, random: &mut ChaCha8Rng) -> Option<Self> {
        let kind = FaultKind::ALL.choose(random).copied()?;
        let zone = random.random_range(0..world.zones.len());
        let of_zone = &world.zones[zone];
        let needs_keys = kind.damage() == Damage::Proof;
        if needs_keys && of_zone.keys.is_none() {
            return None;
        }
        let target = match kind {
            kind if kind.is_of_signatures() => signed_target(world, zone, random)?,
            FaultKind::MissingDs | FaultKind::DsDeniedByChild => child_target(world, zone, random)?,
            FaultKind::MissingProof
            | FaultKind::OtherProof
            | FaultKind::ForeignProof
            | FaultKind::ChangedBitmap => Target::Denials,
            FaultKind::MissingWildcardProof => Target::WildcardProofs,
            FaultKind::ForgedReferral => referral_target(world, zone, random)?,
            kind if kind.damage() == Damage::Nothing => Target::Everything,
            _ => data_target(world, zone, kind, random)?,
        };
        let other = other_zone(world, zone, kind, &target, random);
        let needs_other =
            matches!(kind, FaultKind::ForeignKey | FaultKind::ForeignProof | FaultKind::DeniedByParent)
                || kind == FaultKind::DsDeniedByChild;
        if needs_other && other.is_none() {
            return None;
        }
        let one_of_two = of_zone.servers.choose(random).copied().filter(|_| of_zone.servers.len() > 1);
        let server = one_of_two.filter(|_| kind.is_of_one_server() || random.random_bool(0.4));
        if kind.is_of_one_server() && server.is_none() {
            return None;
        }
        Some(Self { kind, zone, target, server, other })
    }
}

/// Whether the resolver may use the RRset to find servers.
fn is_of_nameservers(zone: &Zone, owner: &Name, rtype: Rtype) -> bool {
    rtype == Rtype::NS || zone.nameservers().any(|(name, _)| name == *owner)
}

/// Selects an RRset with signatures, or all denials.
fn signed_target(world: &World, zone: usize, random: &mut ChaCha8Rng) -> Option<Target> {
    let of_zone = &world.zones[zone];
    let apex = &of_zone.apex;
    match random.random_range(0..20) {
        0..3 => return Some(Target::Rrset(apex.clone(), Rtype::DNSKEY)),
        3..6 => return child_target(world, zone, random),
        6..10 => return Some(Target::Denials),
        10 if of_zone.set(apex, Rtype::NSEC5KEY).is_some() => {
            return Some(Target::Rrset(apex.clone(), Rtype::NSEC5KEY));
        }
        _ => {}
    }
    let all = of_zone.records.iter().flat_map(|(owner, sets)| sets.iter().map(move |set| (owner, set)));
    let is_data = |rtype: Rtype| {
        !matches!(rtype, Rtype::NSEC | Rtype::DNSKEY | Rtype::DS | Rtype::NSEC3PARAM | Rtype::NSEC5KEY)
    };
    let signed = all.filter(|(_, (rtype, set))| !set.signatures.is_empty() && is_data(**rtype));
    signed.choose(random).map(|(owner, (rtype, _))| Target::Rrset(owner.clone(), *rtype))
}

/// Selects the DS RRset of a child zone.
fn child_target(world: &World, zone: usize, random: &mut ChaCha8Rng) -> Option<Target> {
    let owners = world.zones[zone].records.iter().filter(|(_, sets)| sets.contains_key(&Rtype::DS));
    owners.choose(random).map(|(owner, _)| Target::Rrset(owner.clone(), Rtype::DS))
}

/// Selects an RRset whose data change.
fn data_target(world: &World, zone: usize, kind: FaultKind, random: &mut ChaCha8Rng) -> Option<Target> {
    let of_zone = &world.zones[zone];
    let is_removal = kind == FaultKind::RemovedRecord;
    let all = of_zone.records.iter().flat_map(|(owner, sets)| sets.iter().map(move |set| (owner, set)));
    let usable = all.filter(|(owner, (rtype, set))| {
        let is_data = !matches!(**rtype, Rtype::NSEC | Rtype::NSEC3PARAM | Rtype::NSEC5KEY);
        let is_large = set.rdatas.len() > 1 || !is_removal;
        is_data && is_large && !is_of_nameservers(of_zone, owner, **rtype)
    });
    usable.choose(random).map(|(owner, (rtype, _))| Target::Rrset(owner.clone(), *rtype))
}

/// Selects a name that is delegated to an attacker.
fn referral_target(world: &World, zone: usize, random: &mut ChaCha8Rng) -> Option<Target> {
    let of_zone = &world.zones[zone];
    let is_usable = |name: &&Name| {
        let child = world.zones.iter().find(|child| child.apex == **name && child.parent == Some(zone));
        // The servers of both zones never refer from one to the other.
        let is_shared = child.is_some_and(|child| child.servers == of_zone.servers);
        // A query for the DS RRset of an alias gets the alias.
        let is_alias = of_zone.set(name, Rtype::CNAME).is_some();
        let is_own = **name == of_zone.apex || name.view().is_wildcard() || is_alias;
        !is_own && !is_shared && !is_of_nameservers(of_zone, name, Rtype::A)
    };
    of_zone.records.keys().filter(is_usable).choose(random).map(|name| Target::Tree(name.clone()))
}

/// Selects the zone whose keys or records are used.
fn other_zone(
    world: &World,
    zone: usize,
    kind: FaultKind,
    target: &Target,
    random: &mut ChaCha8Rng,
) -> Option<usize> {
    let parent = world.zones[zone].parent;
    let is_above = |other: &usize| world.zones[zone].apex.view().is_below(world.zones[*other].apex.view());
    // Nothing in a response shows that the servers of a zone also serve one below it.
    let is_unseen =
        |other: &usize| is_above(other) && world.zones[*other].servers == world.zones[zone].servers;
    let signed = |other: &usize| {
        let may_sign = kind != FaultKind::ForeignKey || !is_unseen(other);
        *other != zone && world.zones[*other].keys.is_some() && may_sign
    };
    match (kind, target) {
        (FaultKind::DsDeniedByChild, Target::Rrset(owner, _)) => {
            (0..world.zones.len()).find(|other| world.zones[*other].apex == *owner)
        }
        (FaultKind::DeniedByParent, _) => parent.filter(signed),
        _ if random.random_bool(0.4) => parent.filter(signed),
        _ => (0..world.zones.len()).filter(signed).choose(random),
    }
}
