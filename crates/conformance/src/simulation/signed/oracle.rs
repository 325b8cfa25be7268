//! What a client must get, from the data of the zones and the fault. The oracle does not validate: it
//! knows which zones are secure, and which RRsets an answer needs (RFC 4035 §4.3, §5; RFC 5155 §9.2).

use super::chain::Proof;
use super::fault::{Damage, Fault, FaultKind, Target};
use super::lookup::{Found, Place};
use super::respond::denied;
use super::world::World;
use super::zone::{RecordSet, Signing};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, NameRef, Rtype};

/// Maximum number of aliases that a client can expect to be followed.
const ALIASES_MAX: usize = 8;
const YXDOMAIN: Rcode = Rcode(6);

/// Whether the servers have the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// They have it.
    Faulty,
    /// They had it until now: false data and failures may be in the cache.
    Repaired,
    /// They had it, but all data from this time have expired.
    Expired,
}

/// An RRset of a correct answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) owner: Name,
    pub(super) rtype: Rtype,
    pub(super) set: RecordSet,
}

/// What a client must get.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) rcode: Rcode,
    pub(super) answer: Vec<Answer>,
    /// Whether all of the correct answer is secure.
    pub(super) is_secure: bool,
    /// Whether the correct answer is bogus: only SERVFAIL is right.
    pub(super) must_fail: bool,
    /// Whether SERVFAIL is right, too.
    pub(super) may_fail: bool,
    /// Whether insecure data of the answer can be false.
    pub(super) may_be_false: bool,
    /// Whether the TTLs are at most those of the zones.
    pub(super) limits_ttls: bool,
}

/// What a validator needs for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item<'a> {
    /// An RRset of a zone, by its owner in the zone.
    Rrset(usize, &'a Name, Rtype),
    /// A proof of a denial by a zone.
    Denial(usize),
    /// As `Denial`, for an answer from a wildcard.
    WildcardProof(usize),
    /// A proof that a validator may need.
    OptionalDenial(usize),
    /// An RRset that a validator may need.
    OptionalRrset(usize, &'a Name, Rtype),
    /// A name in a zone, whatever its type.
    Name(usize, &'a Name),
}

/// Whether a fault affects an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hit {
    No,
    Maybe,
    Yes,
}

impl World {
    /// Returns what a client must get for a question; `None` for more aliases than a resolver must
    /// follow. `checks` is false for a client with the CD flag.
    pub(super) fn verdict(&self, name: &Name, rtype: Rtype, checks: bool, phase: Phase) -> Option<Verdict> {
        let mut verdict = Verdict {
            rcode: Rcode::NOERROR,
            answer: Vec::new(),
            is_secure: true,
            must_fail: false,
            may_fail: !self.is_calm,
            may_be_false: false,
            limits_ttls: true,
        };
        let (mut name, mut names) = (name.clone(), Vec::new());
        loop {
            if names.len() >= ALIASES_MAX || names.contains(&name) {
                return None;
            }
            let zone = self.zone_of(&name, rtype);
            let found = self.find(zone, &name, rtype);
            let is_target = !names.is_empty();
            self.judge_step(zone, (&name, rtype, is_target), &found, checks, phase, &mut verdict);
            names.push(name.clone());
            match self.add_step(zone, &name, rtype, found, &mut verdict) {
                Some(target) => name = target,
                None => return Some(verdict),
            }
        }
    }

    /// Adds the records of a step to the correct answer. Returns the target of an alias.
    fn add_step(
        &self,
        zone: usize,
        name: &Name,
        rtype: Rtype,
        found: Found,
        verdict: &mut Verdict,
    ) -> Option<Name> {
        let mut push = |owner: &Name, source: &Name, rtype| {
            let set = self.zones[zone].set(source, rtype).cloned().unwrap_or_default();
            verdict.answer.push(Answer { owner: owner.clone(), rtype, set });
        };
        match found {
            Found::Rrset(place) => push(&place.name, &place.source, rtype),
            Found::Cname(place, target) => {
                push(&place.name, &place.source, Rtype::CNAME);
                return Some(target);
            }
            Found::Dname(owner, target) => {
                push(&owner, &owner, Rtype::DNAME);
                let Some(target) = target else {
                    verdict.rcode = YXDOMAIN;
                    return None;
                };
                let ttl = verdict.answer.last().map_or(0, |dname| dname.set.ttl);
                let set = RecordSet { ttl, rdatas: vec![target.wire().to_vec()], signatures: Vec::new() };
                verdict.answer.push(Answer { owner: name.clone(), rtype: Rtype::CNAME, set });
                return Some(target).filter(|_| rtype != Rtype::CNAME);
            }
            Found::NameError(_) => verdict.rcode = Rcode::NXDOMAIN,
            Found::NoData(_) | Found::Cut(_) => {}
        }
        None
    }

    /// Judges whether one step is secure, and whether the fault affects it.
    /// `is_target`: the name is the target of an alias.
    fn judge_step(
        &self,
        zone: usize,
        (name, rtype, is_target): (&Name, Rtype, bool),
        found: &Found,
        checks: bool,
        phase: Phase,
        verdict: &mut Verdict,
    ) {
        let is_opt_out = self.proof(zone, found, name).is_some_and(|proof| proof.is_opt_out);
        let is_secure = self.zones[zone].is_secure;
        verdict.is_secure &= is_secure && !is_opt_out;
        let has_raised_ttls = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::RaisedTtls);
        verdict.limits_ttls &= is_secure && checks || !has_raised_ttls;
        let Some(fault) = self.fault.as_ref().filter(|_| phase != Phase::Expired) else { return };
        let own = self.step_hit(fault, zone, name, rtype, found);
        let chain = if checks { self.chain_hit(fault, zone) } else { Hit::No };
        let is_unchecked = !is_secure || !checks || is_opt_out;
        let is_false = own > Hit::No || fault.changes_all_types(name);
        if is_unchecked && is_false && fault.kind.damage() == Damage::Data {
            (verdict.may_be_false, verdict.may_fail) = (true, true);
        }
        // Opt-out permits unsigned data at a name that does not exist, also if a wildcard matches it.
        let is_expanded = matches!(&fault.target, Target::Rrset(owner, _) if owner.view().is_wildcard());
        // A query for an alias may get the answer for its target, instead of the forged referral. The resolver then
        // has the answer in its cache.
        let is_followed =
            matches!(fault.target, Target::Tree(_)) && (is_target || self.is_target_of_alias(name));
        // The proof that a forged cut has no DS RRset can also deny types at it and names below it (RFC 8198).
        let is_denied = matches!(found, Found::NameError(_) | Found::NoData(_))
            && matches!(&fault.target, Target::Tree(cut) if name.view().is_at_or_below(cut.view()));
        let is_avoidable = is_followed || is_denied || (is_opt_out && is_expanded);
        let own = if is_avoidable { own.min(Hit::Maybe) } else { own };
        let hit = if checks && is_secure { own.max(chain) } else { chain };
        let is_everywhere = fault.server.is_none() && phase == Phase::Faulty;
        verdict.must_fail |= hit == Hit::Yes && is_everywhere;
        // A correct response of another server replaces a bogus one.
        verdict.may_fail |= hit == Hit::Maybe || (hit == Hit::Yes && phase == Phase::Repaired);
        verdict.may_fail |= hit == Hit::Yes && fault.server.is_some();
    }

    fn is_target_of_alias(&self, name: &Name) -> bool {
        self.zones.iter().any(|zone| {
            let aliases = zone.records.keys().filter_map(|owner| zone.set(owner, Rtype::CNAME));
            aliases.flat_map(|set| &set.rdatas).any(|target| target.as_slice() == name.wire())
        })
    }

    /// Returns the correct proof of a denial.
    fn proof(&self, zone: usize, found: &Found, name: &Name) -> Option<Proof> {
        let chain = &self.zones[zone].chain;
        match found {
            Found::Rrset(Place { encloser: Some(encloser), name, .. })
            | Found::Cname(Place { encloser: Some(encloser), name, .. }, _) => {
                Some(chain.prove(super::chain::Denied::CloserMatch(name, encloser)))
            }
            found => denied(found, name).map(|denied| chain.prove(denied)),
        }
    }

    /// Whether the fault affects the records of a step.
    fn step_hit(&self, fault: &Fault, zone: usize, name: &Name, rtype: Rtype, found: &Found) -> Hit {
        let apex = &self.zones[zone].apex;
        let mut items = vec![Item::Name(zone, name)];
        let is_expanded = match found {
            Found::Rrset(place) => {
                items.push(Item::Rrset(zone, &place.source, rtype));
                place.encloser.is_some()
            }
            Found::Cname(place, _) => {
                items.push(Item::Rrset(zone, &place.source, Rtype::CNAME));
                place.encloser.is_some()
            }
            Found::Dname(owner, _) => {
                items.push(Item::Rrset(zone, owner, Rtype::DNAME));
                false
            }
            _ => {
                items.extend([Item::Denial(zone), Item::OptionalRrset(zone, apex, Rtype::SOA)]);
                false
            }
        };
        if is_expanded {
            items.extend([Item::Denial(zone), Item::WildcardProof(zone)]);
        }
        if items.contains(&Item::Denial(zone)) {
            items.push(Item::OptionalRrset(zone, apex, Rtype::NSEC5KEY));
        }
        let hit = items.iter().map(|item| fault.hit(*item)).max().unwrap_or(Hit::No);
        // The DS RRset of a genuine cut is not delegated to the attacker.
        let is_cut = rtype == Rtype::DS && self.zones[zone].set(name, Rtype::NS).is_some();
        let is_own_tree = matches!(&fault.target, Target::Tree(cut) if cut == name);
        if fault.spares(rtype) || (is_cut && is_own_tree) { Hit::No } else { hit }
    }

    /// Whether the fault affects the chain of trust to a zone, as far as it is secure.
    fn chain_hit(&self, fault: &Fault, zone: usize) -> Hit {
        let mut zones: Vec<usize> =
            std::iter::successors(Some(zone), |zone| self.zones[*zone].parent).collect();
        zones.reverse();
        let mut hit = Hit::No;
        for zone in zones {
            let of_zone = &self.zones[zone];
            let apex = &of_zone.apex;
            if let Some(parent) = of_zone.parent {
                let labels = [apex, &self.zones[parent].apex].map(|apex| apex.view().label_count());
                // The names between both zones are no zone cuts.
                if labels[0] > labels[1] + 1 {
                    hit = hit.max(fault.hit(Item::OptionalDenial(parent)));
                }
                let item = match of_zone.signing {
                    Signing::Signed | Signing::UnknownDigest => Item::Rrset(parent, apex, Rtype::DS),
                    Signing::Island | Signing::Unsigned => Item::Denial(parent),
                };
                hit = hit.max(fault.hit(item));
                let apex = &self.zones[parent].apex;
                for rtype in [Rtype::SOA, Rtype::NSEC5KEY] {
                    hit = hit.max(fault.hit(Item::OptionalRrset(parent, apex, rtype)));
                }
            }
            if !of_zone.is_secure {
                return hit;
            }
            hit = hit.max(fault.hit(Item::Rrset(zone, apex, Rtype::DNSKEY)));
            hit = hit.max(fault.hit(Item::Name(zone, apex)));
        }
        hit
    }

    /// Whether a record in a reply is what a secure zone has, or is not from a secure zone.
    pub(super) fn is_permitted(&self, owner: &Name, rtype: Rtype, rdata: &[u8]) -> bool {
        let zone = self.zone_of(owner, rtype);
        if !self.zones[zone].is_secure {
            return true;
        }
        let found = self.find(zone, owner, rtype);
        let has = |source: &Name, rtype| {
            self.zones[zone].set(source, rtype).is_some_and(|set| set.rdatas.iter().any(|own| own == rdata))
        };
        // Opt-out permits insecure data at names that do not exist (RFC 5155 §6).
        if self.proof(zone, &found, owner).is_some_and(|proof| proof.is_opt_out) {
            return true;
        }
        match &found {
            Found::Rrset(place) => has(&place.source, rtype),
            Found::Cname(place, _) => has(&place.source, Rtype::CNAME),
            Found::Dname(_, Some(target)) => {
                rtype == Rtype::CNAME && NameRef::from_wire(rdata).is_ok_and(|new| new == target.view())
            }
            _ => false,
        }
    }
}

impl Fault {
    /// Whether a false answer of the fault may change all types of the name: it is NXDOMAIN (RFC 8020) or a
    /// CNAME record.
    fn changes_all_types(&self, name: &Name) -> bool {
        let Target::Rrset(owner, _) = &self.target else { return false };
        let below = owner.view().parent().filter(|_| owner.view().is_wildcard());
        self.kind.is_of_answers() && name.view().is_at_or_below(below.unwrap_or_else(|| owner.view()))
    }

    /// Whether the fault affects an item.
    fn hit(&self, item: Item<'_>) -> Hit {
        let is_hit = match (item, &self.target) {
            (
                Item::Rrset(zone, owner, rtype) | Item::OptionalRrset(zone, owner, rtype),
                Target::Rrset(target, target_type),
            ) => zone == self.zone && owner == target && rtype == *target_type,
            (Item::Denial(zone) | Item::OptionalDenial(zone), Target::Denials) => zone == self.zone,
            (Item::WildcardProof(zone), Target::WildcardProofs) => zone == self.zone,
            (Item::Name(_, name), Target::Tree(cut)) => name.view().is_at_or_below(cut.view()),
            _ => false,
        };
        let is_optional = match item {
            Item::OptionalDenial(_) | Item::OptionalRrset(..) => true,
            // The RRset is also in referrals, or in the answers to queries for the DS RRset of an alias.
            Item::Rrset(_, _, Rtype::DS | Rtype::CNAME | Rtype::DNAME) => self.kind.is_of_answers(),
            _ => false,
        };
        match (is_hit, is_optional) {
            _ if self.kind.damage() == Damage::Nothing => Hit::No,
            (false, _) => Hit::No,
            (true, true) => Hit::Maybe,
            (true, false) => Hit::Yes,
        }
    }
}
