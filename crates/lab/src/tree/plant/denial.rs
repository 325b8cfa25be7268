//! Faults of denials.

use super::FaultPlanter;
use super::signatures::OUTSIDE_NAME;
use crate::tree::chain::{Chain, next_hash};
use crate::tree::description::{PlantedFault, ZoneDescription};
use crate::tree::error::TreeError;
use crate::tree::fault::Fault;
use crate::tree::records::{RecordSet, Records};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};

/// The type that a lying bit map lists by default. It is for private use.
const LYING_TYPE: Rtype = Rtype(65_400);
/// Place of hash algorithm, flags and iterations in NSEC3 RDATA (RFC 5155 §3.2).
const HASH_ALGORITHM_AT: usize = 0;
const FLAGS_AT: usize = 1;
const ITERATIONS_AT: std::ops::Range<usize> = 2..4;

/// NSEC3 iterations with which the zone is signed.
pub(in crate::tree) fn iterations(zone: &ZoneDescription) -> u16 {
    let rows = [
        (Fault::DeepNsec3, 50),
        (Fault::Nsec3Iterations51, 51),
        (Fault::Nsec3Iterations, 200),
        (Fault::Nsec3Iterations500, 500),
    ];
    let found = rows.into_iter().find(|(fault, _)| zone.has(*fault));
    found.map_or(zone.iterations, |(_, iterations)| iterations)
}

/// The name whose bit map lies, and the type that the bit map falsely lists.
pub(in crate::tree) fn lying_bitmap_target(planted: &PlantedFault, origin: &Name) -> (Name, Rtype) {
    let at = planted.affected_owner(origin).unwrap_or_else(|| origin.clone());
    (at, planted.rtype.unwrap_or(LYING_TYPE))
}

/// The name whose record denies names below it and must not, with the type that its bit map lists;
/// `None` if the fault is another one.
pub(in crate::tree) fn bit_above_name(fault: Fault, origin: &Name) -> Option<(Name, Rtype)> {
    let rtype = match fault {
        Fault::DelegationBitAboveName => Rtype::NS,
        Fault::DnameBitAboveName => Rtype::DNAME,
        _ => return None,
    };
    Some((Name::prepend(b"www", origin.view()).ok()?, rtype))
}

impl FaultPlanter<'_> {
    pub(super) fn plant_denial(
        &self,
        planted: &PlantedFault,
        records: &mut Records,
    ) -> Result<(), TreeError> {
        let rtype = self.chain().rtype();
        let edited = match planted.fault {
            Fault::MissingDenial | Fault::WildcardWithoutProof => {
                records.remove(rtype, |_| true);
                return Ok(());
            }
            Fault::MissingClosestEncloser | Fault::MissingWildcardDenial | Fault::MissingNextCloser => {
                self.remove_records(planted.fault, records);
                return Ok(());
            }
            Fault::RemovedData => {
                self.remove_data(records);
                return Ok(());
            }
            Fault::UnsignedDenial => {
                for (owner, rtype) in records.signed_rrsets(|_, covered| covered == rtype) {
                    records.rrset_mut(&owner, rtype, true).into_iter().for_each(|set| set.rdatas.clear());
                }
                return Ok(());
            }
            Fault::ExpiredDenial => {
                let rrsets = records.signed_rrsets(|_, covered| covered == rtype);
                return self.re_sign_changed(&rrsets, Fault::ExpiredSignature, records);
            }
            Fault::WildcardTooHigh => {
                let rrsets =
                    records.signed_rrsets(|owner, covered| covered != rtype && owner.view().is_wildcard());
                return self.re_sign_changed(&rrsets, planted.fault, records);
            }
            Fault::LyingBitmap => return self.plant_lying_bitmap(planted, records),
            fault => match bit_above_name(fault, &self.plan.origin) {
                Some((name, rtype)) => return self.add_bit(&name, rtype, fault, records),
                None => self.edit_chain(fault, records),
            },
        };
        let edited: Vec<(Name, Rtype)> = edited.into_iter().map(|owner| (owner, rtype)).collect();
        records.re_sign_all(&edited, self.keys, planted.fault, &|_| {})
    }

    /// Changes the RDATA of the chain; returns the owners.
    fn edit_chain(&self, fault: Fault, records: &mut Records) -> Vec<Name> {
        let rtype = self.chain().rtype();
        let encloser = self.chain_owner(&self.plan.origin);
        match fault {
            Fault::NextNameOutsideZone => records.edit_rdata(rtype, |_, octets| {
                replace_next_name(octets, OUTSIDE_NAME.wire());
            }),
            Fault::WrongNextName => records.edit_rdata(rtype, |owner, octets| {
                replace_next(rtype, owner, octets);
            }),
            Fault::UnknownNsec3Hash => records.edit_rdata(rtype, |_, octets| octets[HASH_ALGORITHM_AT] = 2),
            Fault::UnknownNsec3Flags => records.edit_rdata(rtype, |_, octets| octets[FLAGS_AT] |= 0x80),
            Fault::MixedNsec3Parameters => records.edit_rdata(rtype, |owner, octets| {
                octets[ITERATIONS_AT.end - 1] ^= u8::from(encloser.as_ref() == Some(owner));
            }),
            // The signer does not compute this number of hashes, and a validator must not either.
            Fault::Nsec3Iterations501 => edit_iterations(records, 501),
            Fault::ExcessiveNsec3Iterations => edit_iterations(records, 2_500),
            _ => Vec::new(),
        }
    }

    /// Removes the records that prove parts of the denial of a name below the apex.
    fn remove_records(&self, fault: Fault, records: &mut Records) {
        let (chain, apex) = (self.chain(), self.plan.origin.view());
        let rtype = chain.rtype();
        let encloser = chain.owner_of(apex);
        let has_record = |name: &&Name| records.names[*name].contains_key(&(rtype, false));
        let owners = records.names.keys().filter(has_record).map(Name::view);
        let wildcard = Name::wildcard_below(apex).ok();
        let wildcard =
            wildcard.and_then(|name| chain.at_or_before(owners, name.view())).map(NameRef::to_name);
        records.remove(rtype, |owner| match fault {
            Fault::MissingClosestEncloser => Some(owner) == encloser.as_ref(),
            Fault::MissingWildcardDenial => Some(owner) == wildcard.as_ref(),
            _ => Some(owner) != encloser.as_ref() && Some(owner) != wildcard.as_ref(),
        });
    }

    /// Removes the data of `mail` and of the generated names.
    fn remove_data(&self, records: &mut Records) {
        let apex = self.plan.origin.view();
        let prefixes: [&[u8]; 2] = [b"mail", b"host"];
        for (owner, sets) in &mut records.names {
            let label = owner.view().labels().next().unwrap_or_default();
            if owner.view().parent() == Some(apex) && prefixes.iter().any(|prefix| label.starts_with(prefix))
            {
                sets.retain(|(rtype, _), _| rtype.is_signature_or_chain());
            }
        }
    }

    /// Adds the records that faults of responses need.
    pub(super) fn plant_responses(&self, fault: Fault, records: &mut Records) -> Result<(), TreeError> {
        let apex = &self.plan.origin;
        let Some(sets) = records.names.get_mut(apex).filter(|_| fault == Fault::MixedDenial) else {
            return Ok(());
        };
        let mut next = apex.clone();
        next = Name::prepend(b"\0", next.view()).unwrap_or(next);
        let mut rdata = next.wire().to_vec();
        bitmap::push(&[Rtype::NS, Rtype::SOA, Rtype::RRSIG, Rtype::NSEC, Rtype::DNSKEY], &mut rdata);
        let Some(mut signatures) = sets.get(&(Rtype::SOA, true)).cloned() else { return Ok(()) };
        let covered = Rtype::NSEC.0.to_be_bytes();
        signatures.rdatas.iter_mut().for_each(|octets| octets[..covered.len()].copy_from_slice(&covered));
        let set = RecordSet { ttl: signatures.ttl, rdatas: vec![rdata] };
        sets.extend([((Rtype::NSEC, false), set), ((Rtype::NSEC, true), signatures)]);
        records.re_sign_all(&[(apex.clone(), Rtype::NSEC)], self.keys, fault, &|_| {})
    }

    fn plant_lying_bitmap(&self, planted: &PlantedFault, records: &mut Records) -> Result<(), TreeError> {
        let origin = &self.plan.origin;
        let (at, false_type) = lying_bitmap_target(planted, origin);
        if records.rrset_mut(&at, false_type, false).is_some() {
            let needed = "a type that the name does not have: change `type`";
            return Err(TreeError::Fault { zone: origin.clone(), fault: planted.fault, needed });
        }
        self.add_bit(&at, false_type, planted.fault, records)
    }

    /// Adds a type to the bit map of the record of `name`.
    fn add_bit(
        &self,
        name: &Name,
        false_type: Rtype,
        fault: Fault,
        records: &mut Records,
    ) -> Result<(), TreeError> {
        let (owner, rtype) = (self.chain_owner(name), self.chain().rtype());
        let set = owner.as_ref().and_then(|owner| records.rrset_mut(owner, rtype, false));
        let needed = "a name with a denial record: change `at`";
        let zone = &self.plan.origin;
        let set = set.ok_or_else(|| TreeError::Fault { zone: zone.clone(), fault, needed })?;
        set.rdatas.iter_mut().for_each(|octets| add_to_bitmap(rtype, octets, false_type));
        let rrset: Vec<(Name, Rtype)> = owner.into_iter().map(|owner| (owner, rtype)).collect();
        records.re_sign_all(&rrset, self.keys, fault, &|_| {})
    }

    pub(super) fn chain(&self) -> Chain<'_> {
        Chain::new(self.plan.origin.view(), self.plan.zone)
    }

    /// Owner of the chain record for `name`; `None` if NSEC5 has no proof for it.
    pub(super) fn chain_owner(&self, name: &Name) -> Option<Name> {
        let origin = self.plan.origin.view();
        if self.plan.zone.denial.name_hash() != NameHash::Vrf {
            return self.chain().owner_of(name.view());
        }
        let mut entries = self.proofs?.entries();
        let hash = entries.find(|entry| entry.full_name(origin) == *name)?.hash;
        self.chain().hash_owner(hash)
    }
}

fn edit_iterations(records: &mut Records, iterations: u16) -> Vec<Name> {
    records.edit_rdata(Rtype::NSEC3, |_, octets| {
        octets[ITERATIONS_AT].copy_from_slice(&iterations.to_be_bytes());
    })
}

/// Replaces the next name or hash by the first one after the owner.
fn replace_next(rtype: Rtype, owner: &Name, octets: &mut Vec<u8>) {
    if rtype == Rtype::NSEC {
        let first = Name::prepend(b"\0", owner.view());
        first.into_iter().for_each(|first| replace_next_name(octets, first.wire()));
        return;
    }
    let own = owner.view().labels().next().unwrap_or_default().to_ascii_uppercase();
    let (Ok(mut hash), Some(place)) = (data_encoding::BASE32HEX_NOPAD.decode(&own), next_hash(rtype, octets))
    else {
        return;
    };
    for octet in hash.iter_mut().rev() {
        *octet = octet.wrapping_add(1);
        if *octet != 0 {
            break;
        }
    }
    octets.splice(place, hash);
}

fn replace_next_name(octets: &mut Vec<u8>, name: &[u8]) {
    let end = NameRef::split_from(octets).map_or(0, |(next, _)| next.len());
    octets.splice(..end, name.iter().copied());
}

/// The type bit maps of a record of the denial chain.
pub(in crate::tree) fn type_map(rtype: Rtype, octets: &[u8]) -> &[u8] {
    &octets[type_map_start(rtype, octets)..]
}

fn type_map_start(rtype: Rtype, octets: &[u8]) -> usize {
    match rtype {
        Rtype::NSEC => NameRef::split_from(octets).map_or(0, |(next, _)| next.len()),
        _ => next_hash(rtype, octets).map_or(octets.len(), |place| place.end),
    }
}

/// Adds a type to the bit map of a record of the denial chain.
pub(in crate::tree) fn add_to_bitmap(rtype: Rtype, octets: &mut Vec<u8>, added: Rtype) {
    change_bitmap(rtype, octets, |types| types.push(added));
}

/// Changes the types in the bit map of a record of the denial chain.
pub(super) fn change_bitmap(rtype: Rtype, octets: &mut Vec<u8>, change: impl Fn(&mut Vec<Rtype>)) {
    let start = type_map_start(rtype, octets);
    let mut types: Vec<Rtype> = bitmap::types(&octets[start..]).collect();
    change(&mut types);
    types.sort_unstable();
    types.dedup();
    octets.truncate(start);
    bitmap::push(&types, octets);
}
