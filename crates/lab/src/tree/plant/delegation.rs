//! Faults of delegations, which are in the records of the parent.

use super::denial::{add_to_bitmap, change_bitmap};
use super::{FaultPlanter, needs_no_ds};
use crate::tree::data::ZonePlan;
use crate::tree::error::TreeError;
use crate::tree::fault::{Fault, FaultScope};
use crate::tree::records::Records;
use nonesuch_dnssec::denial::DenialGeneration;
use nonesuch_proto::Rtype;

/// Checks that the parent of each zone with a fault of its delegation is suitable.
pub(in crate::tree) fn check_delegations(plans: &[ZonePlan<'_>]) -> Result<(), TreeError> {
    for plan in plans {
        let Some(parent) = plan.parent.and_then(|index| plans.get(index)) else { continue };
        let is_suitable = parent.zone.signed
            && parent.zone.denial.generation() == DenialGeneration::Offline
            && !parent.zone.denial.is_opt_out();
        let planted = plan.zone.faults.iter().find(|planted| planted.fault.scope() == FaultScope::Delegation);
        if let Some(planted) = planted.filter(|_| !is_suitable) {
            let (zone, fault) = (plan.origin.clone(), planted.fault);
            let needed = "a parent that is signed offline, without opt-out";
            return Err(TreeError::Fault { zone, fault, needed });
        }
    }
    Ok(())
}

impl FaultPlanter<'_> {
    /// Plants the faults of the delegations to `children`.
    pub(super) fn plant_delegations(
        &self,
        children: &[&ZonePlan<'_>],
        records: &mut Records,
    ) -> Result<(), TreeError> {
        for child in children {
            for planted in &child.zone.faults {
                match planted.fault {
                    Fault::UnsignedDs => {
                        let signatures = records.rrset_mut(&child.origin, Rtype::DS, true);
                        signatures.into_iter().for_each(|set| set.rdatas.clear());
                    }
                    Fault::ExpiredDs => {
                        let rrset = [(child.origin.clone(), Rtype::DS)];
                        self.re_sign_changed(&rrset, Fault::ExpiredSignature, records)?;
                    }
                    fault if needs_no_ds(fault) => self.plant_ds_denial(child, fault, records)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Changes the denial of the DS records of `child`.
    fn plant_ds_denial(
        &self,
        child: &ZonePlan<'_>,
        fault: Fault,
        records: &mut Records,
    ) -> Result<(), TreeError> {
        let Some(owner) = self.chain_owner(&child.origin) else { return Ok(()) };
        let rtype = self.chain().rtype();
        if fault == Fault::MissingDsDenial {
            records.remove(rtype, |name| *name == owner);
            return Ok(());
        }
        if let Some(set) = records.rrset_mut(&owner, rtype, false) {
            set.rdatas.iter_mut().for_each(|octets| match fault {
                Fault::DsBitWithoutDs => add_to_bitmap(rtype, octets, Rtype::DS),
                Fault::SoaBitAtDelegation => add_to_bitmap(rtype, octets, Rtype::SOA),
                _ => change_bitmap(rtype, octets, |types| types.retain(|rtype| *rtype != Rtype::NS)),
            });
        }
        records.re_sign_all(&[(owner, rtype)], self.keys, fault, &|_| {})
    }
}
