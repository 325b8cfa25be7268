//! Plants faults into signed zones, and makes the records that faults need before signing.

mod delegation;
mod denial;
mod keys;
mod signatures;

pub(super) use delegation::check_delegations;
pub(super) use denial::{add_to_bitmap, bit_above_name, iterations, lying_bitmap_target, type_map};
pub(super) use keys::colliding_keys;

use super::data::ZonePlan;
use super::description::PlantedFault;
use super::error::TreeError;
use super::fault::{Fault, FaultScope};
use super::records::Records;
use nonesuch_dnssec::KeySet;
use nonesuch_dnssec::denial::nsec5::Proofs;
use nonesuch_dnssec::denial::{DenialGeneration, NameHash};
use nonesuch_proto::{Name, Rtype};

/// Plants the faults of a zone into its signed records.
pub(super) struct FaultPlanter<'p> {
    pub(super) plan: &'p ZonePlan<'p>,
    pub(super) keys: &'p KeySet,
    /// The stored proofs; `None` without NSEC5.
    pub(super) proofs: Option<&'p Proofs>,
    /// The time of the tree.
    pub(super) now: u32,
    /// The seed of the tree.
    pub(super) seed: u64,
}

/// Checks that the zone is suitable for its faults: [`TreeError::Fault`] names the missing requirement.
pub(super) fn check_faults(plan: &ZonePlan<'_>) -> Result<(), TreeError> {
    for planted in &plan.zone.faults {
        if let Some(needed) = missing_requirement(plan, planted) {
            return Err(TreeError::Fault { zone: plan.origin.clone(), fault: planted.fault, needed });
        }
    }
    Ok(())
}

/// What the zone needs and does not have, so that the fault can be planted.
fn missing_requirement(plan: &ZonePlan<'_>, planted: &PlantedFault) -> Option<&'static str> {
    let (zone, fault, scope) = (plan.zone, planted.fault, planted.fault.scope());
    let name_hash = zone.denial.name_hash();
    let samples = zone.samples.unwrap_or_else(|| plan.parent.is_some());
    match (fault, scope) {
        _ if planted.has_malformed_owner(&plan.origin) => Some("a domain name: correct `at`"),
        (Fault::DsForUnsignedZone, _) => zone.signed.then_some("an unsigned zone"),
        (Fault::CnameLoop | Fault::LargeRrset, _) => None,
        (Fault::SignerIsParent, _) | (_, FaultScope::Ds | FaultScope::Delegation | FaultScope::Servers)
            if plan.parent.is_none() =>
        {
            Some("a zone below the root")
        }
        (_, FaultScope::Servers) => None,
        _ if !zone.signed && !needs_no_ds(fault) => Some("a signed zone"),
        (Fault::DsForZsk | Fault::DnskeySignedByZsk, _) if zone.csk => Some("a KSK and a ZSK"),
        (_, FaultScope::Ds | FaultScope::Delegation) => None,
        _ if zone.denial.generation() == DenialGeneration::Online => Some("a zone that is signed offline"),
        (_, FaultScope::Keys) if zone.faults.len() > 1 => Some("a zone without other faults"),
        (Fault::NextNameOutsideZone, _) if name_hash != NameHash::Unhashed => Some("NSEC"),
        (fault, _) if needs_nsec3(fault) && name_hash != NameHash::Sha1 => Some("NSEC3"),
        (fault, _) if needs_nsec_or_nsec3(fault) && name_hash == NameHash::Vrf => Some("NSEC or NSEC3"),
        (fault, _) if needs_samples(fault) && !samples => Some("the sample names"),
        _ => None,
    }
}

/// Whether the parent has no DS records because of the fault, so that the zone need not be signed.
pub(super) const fn needs_no_ds(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::MissingDsDenial | Fault::DsBitWithoutDs | Fault::NoNsBit | Fault::SoaBitAtDelegation
    )
}

const fn needs_nsec3(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::UnknownNsec3Hash
            | Fault::UnknownNsec3Flags
            | Fault::MixedNsec3Parameters
            | Fault::MixedDenial
            | Fault::MissingClosestEncloser
            | Fault::Nsec3Iterations51
            | Fault::Nsec3Iterations
            | Fault::Nsec3Iterations500
            | Fault::Nsec3Iterations501
            | Fault::ExcessiveNsec3Iterations
            | Fault::DeepNsec3
    )
}

const fn needs_nsec_or_nsec3(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::MissingWildcardDenial
            | Fault::MissingNextCloser
            | Fault::DelegationBitAboveName
            | Fault::DnameBitAboveName
    )
}

const fn needs_samples(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::WildcardWithoutProof
            | Fault::WildcardTooHigh
            | Fault::RemovedData
            | Fault::DelegationBitAboveName
            | Fault::DnameBitAboveName
            | Fault::UnsignedCname
            | Fault::Dname
            | Fault::UnsignedDname
            | Fault::ForgedCname
    )
}

impl PlantedFault {
    /// Whether `at` is not a domain name.
    fn has_malformed_owner(&self, origin: &Name) -> bool {
        let is_malformed =
            |at: &String| at != "@" && Name::from_text(at.as_bytes(), Some(origin.view())).is_err();
        self.at.as_ref().is_some_and(is_malformed)
    }

    /// The affected owner; `None` if the fault affects all owners.
    pub(super) fn affected_owner(&self, origin: &Name) -> Option<Name> {
        let at = self.at.as_ref()?;
        if at == "@" {
            return Some(origin.clone());
        }
        // `check_faults` rejects a malformed name.
        Some(Name::from_text(at.as_bytes(), Some(origin.view())).unwrap_or_else(|_| origin.clone()))
    }

    /// Whether the fault affects the signatures over an RRset. The scope of the fault must be
    /// [`FaultScope::Signatures`].
    pub(super) fn affects_rrset(&self, origin: &Name, owner: &Name, rtype: Rtype) -> bool {
        let is_exception = match self.fault {
            // The keys must be trusted for the work that the fault causes.
            Fault::CollidingKeyTags => rtype == Rtype::DNSKEY,
            // A wildcard above the apex would belong to another zone.
            Fault::TooFewLabels => owner == origin,
            _ => false,
        };
        !is_exception
            && self.affected_owner(origin).is_none_or(|at| at == *owner)
            && self.rtype.is_none_or(|wanted| wanted == rtype)
    }
}

impl FaultPlanter<'_> {
    /// Plants the faults of the zone that change signed records, and those of the delegations to
    /// `children`.
    pub(super) fn plant(&self, children: &[&ZonePlan<'_>], records: &mut Records) -> Result<(), TreeError> {
        // Faults of signatures come last, because the other faults re-sign RRsets.
        let faults = self.plan.zone.faults.iter();
        let of_signatures = |planted: &&PlantedFault| planted.fault.scope() == FaultScope::Signatures;
        for planted in faults.clone().filter(|planted| !of_signatures(planted)) {
            match planted.fault.scope() {
                FaultScope::Keys => self.plant_keys(planted.fault, records)?,
                FaultScope::Denial => self.plant_denial(planted, records)?,
                FaultScope::Data => self.plant_data(planted.fault, records),
                FaultScope::Responses => self.plant_responses(planted.fault, records)?,
                _ => {}
            }
        }
        self.plant_delegations(children, records)?;
        faults.filter(of_signatures).try_for_each(|planted| self.plant_signatures(planted, records))
    }

    /// Removes the signatures of the faults of data without signatures.
    fn plant_data(&self, fault: Fault, records: &mut Records) {
        let rtype = match fault {
            Fault::UnsignedCname => Rtype::CNAME,
            Fault::UnsignedDname => Rtype::DNAME,
            _ => return,
        };
        for (owner, rtype) in records.signed_rrsets(|_, covered| covered == rtype) {
            records.rrset_mut(&owner, rtype, true).into_iter().for_each(|set| set.rdatas.clear());
        }
    }
}
