//! The questions of a tree and the results that a validator should report for them.

use super::fault::{Fault, FaultScope, Outcome};
use super::plant::lying_bitmap_target;
use super::{PlantedFault, Tree, TreeZone};
use nonesuch_dnssec::denial::is_signed;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::name_statuses;

/// Number of labels below the apex in the question that shows [`Fault::DeepNsec3`].
const DEEP_NAME_LABELS: usize = 60;

/// A question with the expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The name.
    pub name: Name,
    /// The type.
    pub rtype: Rtype,
    /// The expected result.
    pub outcome: Outcome,
    /// The code of the extended DNS error (RFC 8914) that a validator should give; `None` if no
    /// code fits, or the answer is sound.
    pub extended_error: Option<u16>,
    /// The fault that causes the result; `None` for a sound answer.
    pub fault: Option<Fault>,
}

/// An expected result without a question.
type Expected = (Outcome, Option<Fault>);

impl Tree {
    /// Questions for all data of all zones, for denials and for each fault. A zone below a zone
    /// with a fault has none, because its results depend on the fault above.
    #[must_use]
    pub fn expectations(&self) -> Vec<Expectation> {
        let mut list = Vec::new();
        for zone in &self.zones {
            if let Some(sound_outcome) = self.sound_outcome(zone) {
                zone.push_expectations(sound_outcome, &mut list);
            }
        }
        list
    }

    /// The result for a zone without faults in the place of `zone`: Secure, or Insecure at and
    /// below an unsigned delegation. `None` if a zone above has faults other than those of
    /// [`FaultScope::Data`].
    fn sound_outcome(&self, zone: &TreeZone) -> Option<Outcome> {
        let mut outcome = Outcome::Secure;
        let mut ancestor = zone.parent;
        if !zone.is_in_chain_of_trust() {
            outcome = Outcome::Insecure;
        }
        while let Some(above) = ancestor.and_then(|index| self.zones.get(index)) {
            if above.description.faults.iter().any(|planted| planted.fault.scope() != FaultScope::Data) {
                return None;
            }
            if !above.is_in_chain_of_trust() {
                outcome = Outcome::Insecure;
            }
            ancestor = above.parent;
        }
        Some(outcome)
    }
}

impl TreeZone {
    /// Whether the zone is signed and a DS record or the trust anchor leads to it.
    fn is_in_chain_of_trust(&self) -> bool {
        self.parent.is_none() && self.keys.is_some() || !self.ds.is_empty()
    }

    fn push_expectations(&self, sound_outcome: Outcome, list: &mut Vec<Expectation>) {
        let mut push = |name: Name, rtype, (outcome, fault): Expected| {
            let extended_error = fault.and_then(|fault| fault.entry().extended_error);
            list.push(Expectation { name, rtype, outcome, extended_error, fault });
        };
        let for_zone = self.expected_for_zone(sound_outcome);
        for (owner, rtype) in self.data_rrsets() {
            let expected = for_zone.unwrap_or_else(|| self.expected_for_rrset(sound_outcome, &owner, rtype));
            push(owner, rtype, expected);
        }
        for name in self.denied_names() {
            let expected = for_zone.or_else(|| self.expected_for_denial(sound_outcome));
            expected.into_iter().for_each(|expected| push(name.clone(), Rtype::A, expected));
        }
        if for_zone.is_some() {
            return;
        }
        for planted in &self.description.faults {
            let expected = (planted.fault.entry().outcome, Some(planted.fault));
            match planted.fault {
                Fault::LyingBitmap if sound_outcome == Outcome::Secure => {
                    let (at, rtype) = lying_bitmap_target(planted, &self.origin);
                    push(at, rtype, expected);
                }
                Fault::DeepNsec3 if sound_outcome == Outcome::Secure => {
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
    fn expected_for_zone(&self, sound_outcome: Outcome) -> Option<Expected> {
        let of_scope = |scope| self.first_fault(|planted| planted.fault.scope() == scope);
        let is_secure = sound_outcome == Outcome::Secure;
        let of_dnskey_signature = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Signatures
                && planted.fault != Fault::CollidingKeyTags
                && planted.affects_rrset(&self.origin, &self.origin, Rtype::DNSKEY)
        };
        of_scope(FaultScope::Servers)
            .or_else(|| (!is_secure).then_some((sound_outcome, None)))
            .or_else(|| of_scope(FaultScope::Keys))
            .or_else(|| of_scope(FaultScope::Ds))
            .or_else(|| self.first_fault(of_dnskey_signature))
    }

    /// The expected result of the first planted fault that `is_wanted` selects.
    fn first_fault(&self, is_wanted: impl Fn(&PlantedFault) -> bool) -> Option<Expected> {
        let found = self.description.faults.iter().find(|planted| is_wanted(planted))?;
        Some((found.fault.entry().outcome, Some(found.fault)))
    }

    fn expected_for_rrset(&self, sound_outcome: Outcome, owner: &Name, rtype: Rtype) -> Expected {
        let affects = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Signatures
                && planted.affects_rrset(&self.origin, owner, rtype)
                || planted.fault == Fault::LargeRrset && *owner == self.large_rrset_owner()
        };
        self.first_fault(affects).unwrap_or((sound_outcome, None))
    }

    /// The owner of the records of [`Fault::LargeRrset`].
    fn large_rrset_owner(&self) -> Name {
        self.name_below(b"large").unwrap_or_else(|| self.origin.clone())
    }

    /// The result of a denial, or of an answer from a wildcard. `None` if a fault of signatures may
    /// affect it.
    fn expected_for_denial(&self, sound_outcome: Outcome) -> Option<Expected> {
        let of_signatures = |planted: &PlantedFault| planted.fault.scope() == FaultScope::Signatures;
        if self.first_fault(of_signatures).is_some() {
            return None;
        }
        let affects = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Denial
                && !matches!(planted.fault, Fault::LyingBitmap | Fault::DeepNsec3)
        };
        let is_opt_out = self.description.denial.is_opt_out();
        let is_insecure_by_opt_out = is_opt_out && sound_outcome == Outcome::Secure;
        let sound_denial = if is_insecure_by_opt_out { Outcome::Insecure } else { sound_outcome };
        Some(self.first_fault(affects).unwrap_or((sound_denial, None)))
    }

    /// Owner and type of the authoritative RRsets, without the records that signing generates.
    fn data_rrsets(&self) -> Vec<(Name, Rtype)> {
        let statuses = name_statuses(&self.contents);
        let mut found = Vec::new();
        for (node, status) in self.contents.nodes().zip(statuses) {
            let is_data = |rtype: &Rtype| {
                let is_from_signing = rtype.is_signature_or_chain()
                    || matches!(*rtype, Rtype::DNSKEY | Rtype::NSEC5 | Rtype::NSEC5KEY | Rtype::DS);
                !is_from_signing && is_signed(*rtype, status)
            };
            let rtypes = node.rrsets().map(nonesuch_zone::Rrset::rtype).filter(is_data);
            found.extend(rtypes.map(|rtype| (node.name().to_name(), rtype)));
        }
        found
    }

    /// Names of questions whose answers need a denial: a name that does not exist, and a name for
    /// which the sample wildcard answers.
    fn denied_names(&self) -> Vec<Name> {
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

    /// A name that does not exist, 60 labels below the apex. `None` if it would be too long.
    fn deep_name(&self) -> Option<Name> {
        let below = |name: &Name| Name::prepend(b"n", name.view()).ok();
        std::iter::successors(Some(self.origin.clone()), below).take(DEEP_NAME_LABELS + 1).last()
    }
}
