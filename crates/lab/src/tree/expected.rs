//! The questions of a tree and the results that a validator should report for them.

use super::fault::{Fault, FaultScope, Outcome};
use super::plant::lie;
use super::{PlantedFault, Tree, TreeZone};
use nonesuch_dnssec::denial::is_signed;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::name_statuses;

/// Number of labels below the apex of the question that shows [`Fault::DeepNsec3`].
const DEEP: usize = 60;

/// A question with the expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The name.
    pub name: Name,
    /// The type.
    pub rtype: Rtype,
    /// The expected result.
    pub outcome: Outcome,
    /// The code of the extended DNS error that a validator should give, if there is one.
    pub extended_error: Option<u16>,
    /// The fault that causes the result; `None` for a sound answer.
    pub fault: Option<Fault>,
}

/// An expected result without a question.
type Expected = (Outcome, Option<Fault>);

impl Tree {
    /// Questions for all data of all zones, for denials and for each fault. A zone below a zone with
    /// a fault has none, because its results depend on the fault above.
    #[must_use]
    pub fn expectations(&self) -> Vec<Expectation> {
        let mut list = Vec::new();
        for zone in &self.zones {
            if let Some(expected) = self.chain_above(zone) {
                zone.push_expectations(expected, &mut list);
            }
        }
        list
    }

    /// The result for a sound zone at this place: Secure, or Insecure below an unsigned delegation.
    /// `None` if a zone above has faults.
    fn chain_above(&self, zone: &TreeZone) -> Option<Outcome> {
        let mut outcome = Outcome::Secure;
        let mut place = zone.parent;
        if !zone.is_linked() {
            outcome = Outcome::Insecure;
        }
        while let Some(above) = place.and_then(|index| self.zones.get(index)) {
            if above.description.faults.iter().any(|planted| planted.fault.scope() != FaultScope::Data) {
                return None;
            }
            if !above.is_linked() {
                outcome = Outcome::Insecure;
            }
            place = above.parent;
        }
        Some(outcome)
    }
}

impl TreeZone {
    /// Whether the zone is signed and a DS record or the trust anchor leads to it.
    fn is_linked(&self) -> bool {
        self.parent.is_none() && self.keys.is_some() || !self.ds.is_empty()
    }

    fn push_expectations(&self, chain: Outcome, list: &mut Vec<Expectation>) {
        let mut push = |name: Name, rtype, (outcome, fault): Expected| {
            let extended_error = fault.and_then(|fault| fault.entry().extended_error);
            list.push(Expectation { name, rtype, outcome, extended_error, fault });
        };
        let of_zone = self.of_zone(chain);
        for (owner, rtype) in self.data() {
            let expected = of_zone.unwrap_or_else(|| self.of_rrset(chain, &owner, rtype));
            push(owner, rtype, expected);
        }
        for name in self.denied() {
            let expected = of_zone.or_else(|| self.of_denial(chain));
            expected.into_iter().for_each(|expected| push(name.clone(), Rtype::A, expected));
        }
        if of_zone.is_some() {
            return;
        }
        for planted in &self.description.faults {
            let expected = (planted.fault.entry().outcome, Some(planted.fault));
            match planted.fault {
                Fault::LyingBitmap if chain == Outcome::Secure => {
                    let (at, rtype) = lie(planted, &self.origin);
                    push(at, rtype, expected);
                }
                Fault::DeepNsec3 if chain == Outcome::Secure => {
                    self.deep_name().into_iter().for_each(|name| push(name, Rtype::A, expected));
                }
                Fault::CnameLoop => {
                    self.name_below(b"loop").into_iter().for_each(|name| push(name, Rtype::A, expected))
                }
                _ => {}
            }
        }
    }

    /// The result for all names of the zone, if one fault or the chain of trust determines it.
    fn of_zone(&self, chain: Outcome) -> Option<Expected> {
        let of = |scope| self.first(|planted| planted.fault.scope() == scope);
        let is_secure = chain == Outcome::Secure;
        let all = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Signatures
                && planted.fault != Fault::CollidingKeyTags
                && planted.selects(&self.origin, &self.origin, Rtype::DNSKEY)
        };
        of(FaultScope::Servers)
            .or_else(|| (!is_secure).then_some((chain, None)))
            .or_else(|| of(FaultScope::Keys))
            .or_else(|| of(FaultScope::Ds))
            .or_else(|| self.first(all))
    }

    fn first(&self, is_wanted: impl Fn(&PlantedFault) -> bool) -> Option<Expected> {
        let found = self.description.faults.iter().find(|planted| is_wanted(planted))?;
        Some((found.fault.entry().outcome, Some(found.fault)))
    }

    fn of_rrset(&self, chain: Outcome, owner: &Name, rtype: Rtype) -> Expected {
        let affects = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Signatures && planted.selects(&self.origin, owner, rtype)
                || planted.fault == Fault::LargeRrset && *owner == self.large()
        };
        self.first(affects).unwrap_or((chain, None))
    }

    fn large(&self) -> Name {
        self.name_below(b"large").unwrap_or_else(|| self.origin.clone())
    }

    /// The result of a denial, or of an answer from a wildcard. `None` if a fault of signatures may
    /// affect it.
    fn of_denial(&self, chain: Outcome) -> Option<Expected> {
        let of_signatures = |planted: &PlantedFault| planted.fault.scope() == FaultScope::Signatures;
        if self.first(of_signatures).is_some() {
            return None;
        }
        let affects = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Denial
                && !matches!(planted.fault, Fault::LyingBitmap | Fault::DeepNsec3)
        };
        let is_opt_out = self.description.denial.is_opt_out();
        let sound = if is_opt_out && chain == Outcome::Secure { Outcome::Insecure } else { chain };
        Some(self.first(affects).unwrap_or((sound, None)))
    }

    /// Owner and type of the authoritative RRsets, without the records that signing generates.
    fn data(&self) -> Vec<(Name, Rtype)> {
        let statuses = name_statuses(&self.contents);
        let mut found = Vec::new();
        for (node, status) in self.contents.nodes().zip(statuses) {
            let is_data = |rtype: &Rtype| {
                let by_signing = rtype.is_signature_or_chain()
                    || matches!(*rtype, Rtype::DNSKEY | Rtype::NSEC5 | Rtype::NSEC5KEY | Rtype::DS);
                !by_signing && is_signed(*rtype, status)
            };
            let rtypes = node.rrsets().map(nonesuch_zone::Rrset::rtype).filter(is_data);
            found.extend(rtypes.map(|rtype| (node.name().to_name(), rtype)));
        }
        found
    }

    /// Names of questions whose answers need a denial: a name that does not exist, and a name for
    /// which the sample wildcard answers.
    fn denied(&self) -> Vec<Name> {
        let exists = |name: NameRef<'_>| self.contents.find(name).is_ok();
        let has_wildcard = Name::wildcard_below(self.origin.view()).is_ok_and(|name| exists(name.view()));
        let missing = self.name_below(b"does-not-exist").filter(|name| !has_wildcard && !exists(name.view()));
        let wild = self
            .name_below(b"wild")
            .filter(|name| Name::wildcard_below(name.view()).is_ok_and(|wildcard| exists(wildcard.view())));
        missing
            .into_iter()
            .chain(wild.and_then(|wild| Name::prepend(b"expanded", wild.view()).ok()))
            .collect()
    }

    fn name_below(&self, label: &[u8]) -> Option<Name> {
        Name::prepend(label, self.origin.view()).ok()
    }

    /// A name that does not exist, with as many labels as fit.
    fn deep_name(&self) -> Option<Name> {
        let below = |name: &Name| Name::prepend(b"n", name.view()).ok();
        std::iter::successors(Some(self.origin.clone()), below).take(DEEP + 1).last()
    }
}
