//! Plants faults into signed zones, and makes the records that faults need before signing.

use super::data::{ZonePlan, with_key_tag};
use super::description::{PlantedFault, ZoneDescription};
use super::error::TreeError;
use super::fault::{Fault, FaultScope};
use super::keys::{key_pair, random_stream};
use super::records::Records;
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_crypto::{key_tag, nsec3_hash};
use nonesuch_dnssec::denial::nsec5::Proofs;
use nonesuch_dnssec::denial::{DenialGeneration, NameHash};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::{KeySet, Nsec3Params};
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};

/// Distance of wrong times from the time of the tree, in seconds: more than the skew of clocks that
/// validators tolerate (Unbound: up to a day).
const WEEK: u32 = 7 * 86_400;
/// In seconds.
const MONTH: u32 = 30 * 86_400;
/// Maximum number of DNSKEY records that [`Fault::CollidingKeyTags`] adds.
const COLLIDING_KEYS: usize = 12;
/// Maximum number of RRSIG records of [`Fault::CollidingKeyTags`].
const COLLIDING_SIGNATURES: usize = 24;
/// Total size of these keys, and of these signatures, above which there are fewer of them, in
/// octets.
const COLLIDING_OCTETS: usize = 16_384;
/// A name outside each zone: the wrong signer and the wrong next name.
const OUTSIDE_NAME: NameRef<'static> = NameRef::from_wire_unchecked(b"\x07outside\x07invalid\x00");
/// The type that a lying bit map lists by default. It is for private use.
pub(super) const LYING_TYPE: Rtype = Rtype(65_400);

/// Plants the faults of a zone into its signed records.
pub(super) struct FaultPlanter<'p> {
    pub(super) plan: &'p ZonePlan<'p>,
    pub(super) keys: &'p KeySet,
    /// Parameters with which the zone is signed; used only with NSEC3.
    pub(super) nsec3: &'p Nsec3Params,
    /// The stored proofs; `None` without NSEC5.
    pub(super) proofs: Option<&'p Proofs>,
    /// The time of the tree.
    pub(super) now: u32,
    /// The seed of the tree.
    pub(super) seed: u64,
}

/// Checks that the zone is suitable for its faults: [`TreeError::Fault`] names the missing requirement.
pub(super) fn check_faults(plan: &ZonePlan<'_>) -> Result<(), TreeError> {
    let zone = plan.zone;
    for planted in &zone.faults {
        let needed = match (planted.fault, planted.fault.scope()) {
            _ if planted.has_malformed_owner(&plan.origin) => "a domain name: correct `at`",
            (Fault::DsForUnsignedZone, _) if zone.signed => "an unsigned zone",
            (Fault::DsForUnsignedZone, _) | (_, FaultScope::Data) => continue,
            (_, FaultScope::Ds | FaultScope::Servers) if plan.parent.is_none() => "a zone below the root",
            (_, FaultScope::Servers) => continue,
            _ if !zone.signed => "a signed zone",
            (_, FaultScope::Ds) => continue,
            _ if zone.denial.generation() == DenialGeneration::Online => "a zone that is signed offline",
            (_, FaultScope::Keys) if zone.faults.len() > 1 => "a zone without other faults",
            (Fault::NextNameOutsideZone, _) if zone.denial.name_hash() != NameHash::Unhashed => "NSEC",
            (fault, _) if needs_nsec3(fault) && zone.denial.name_hash() != NameHash::Sha1 => "NSEC3",
            (Fault::WildcardWithoutProof, _) if zone.samples == Some(false) => "the sample names",
            _ => continue,
        };
        return Err(TreeError::Fault { zone: plan.origin.clone(), fault: planted.fault, needed });
    }
    Ok(())
}

const fn needs_nsec3(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::UnknownNsec3Hash
            | Fault::UnknownNsec3Flags
            | Fault::Nsec3Iterations
            | Fault::ExcessiveNsec3Iterations
            | Fault::DeepNsec3
    )
}

/// NSEC3 iterations with which the zone is signed.
pub(super) fn iterations(zone: &ZoneDescription) -> u16 {
    if zone.has(Fault::Nsec3Iterations) {
        200
    } else if zone.has(Fault::DeepNsec3) {
        50
    } else {
        zone.iterations
    }
}

/// RDATA of DNSKEY records with the tag of the key that signs the data, for
/// [`Fault::CollidingKeyTags`]; empty without this fault.
pub(super) fn colliding_keys(
    plan: &ZonePlan<'_>,
    keys: &KeySet,
    seed: u64,
) -> Result<Vec<Vec<u8>>, TreeError> {
    let mut colliding = Vec::new();
    let Some(key) = data_signing_key(keys).filter(|_| plan.zone.has(Fault::CollidingKeyTags)) else {
        return Ok(colliding);
    };
    let mut random = random_stream(seed, plan.origin.view(), "colliding");
    let count = COLLIDING_KEYS.min(COLLIDING_OCTETS / key.private().public_key().len()).max(2);
    while colliding.len() < count {
        let other = key_pair(&plan.origin, 0, plan.zone, &mut random)?;
        colliding.extend(with_key_tag(other.dnskey_rdata(), key.tag()));
    }
    Ok(colliding)
}

fn data_signing_key(keys: &KeySet) -> Option<&nonesuch_dnssec::KeyPair> {
    keys.signers(Rtype::A).first().and_then(|index| keys.keys().get(*index))
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
        self.affected_owner(origin).is_none_or(|at| at == *owner)
            && self.rtype.is_none_or(|wanted| wanted == rtype)
    }
}

impl FaultPlanter<'_> {
    /// Plants the faults of the zone that change signed records.
    pub(super) fn plant(&self, records: &mut Records) -> Result<(), TreeError> {
        // Faults of signatures come last, because the other faults re-sign RRsets.
        let faults = self.plan.zone.faults.iter();
        let of_signatures = |planted: &&PlantedFault| planted.fault.scope() == FaultScope::Signatures;
        for planted in faults.clone().filter(|planted| !of_signatures(planted)) {
            match planted.fault.scope() {
                FaultScope::Keys => self.plant_keys(planted.fault, records)?,
                FaultScope::Denial => self.plant_denial(planted, records)?,
                _ => {}
            }
        }
        faults.filter(of_signatures).try_for_each(|planted| self.plant_signatures(planted, records))
    }

    fn plant_keys(&self, fault: Fault, records: &mut Records) -> Result<(), TreeError> {
        let apex = &self.plan.origin;
        if fault == Fault::MissingDnskey {
            records.remove(Rtype::DNSKEY, |owner| owner == apex);
            return Ok(());
        }
        let keys: Vec<Vec<u8>> = self.keys.keys().iter().map(|key| key.dnskey_rdata()).collect();
        let tags: Vec<(u16, u16)> =
            keys.iter().map(|rdata| (key_tag(rdata), key_tag(&self.plan.published_rdata(rdata)))).collect();
        if let Some(set) = records.rrset_mut(apex, Rtype::DNSKEY, false) {
            set.rdatas.iter_mut().for_each(|rdata| *rdata = self.plan.published_rdata(rdata));
        }
        let signed = records.signed_rrsets(|_, _| true);
        records.re_sign_all(&signed, self.keys, fault, &|fields| {
            let found = tags.iter().find(|(tag, _)| *tag == fields.tag);
            fields.tag = found.map_or(fields.tag, |(_, published)| *published);
        })
    }

    fn plant_denial(&self, planted: &PlantedFault, records: &mut Records) -> Result<(), TreeError> {
        let rtype = self.chain_type();
        let edited = match planted.fault {
            Fault::MissingDenial | Fault::WildcardWithoutProof => {
                records.remove(rtype, |_| true);
                return Ok(());
            }
            Fault::LyingBitmap => return self.plant_lying_bitmap(planted, records),
            Fault::NextNameOutsideZone => records.edit_rdata(rtype, |_, octets| {
                let next = NameRef::split_from(octets).map_or(0, |(next, _)| next.len());
                octets.splice(..next, OUTSIDE_NAME.wire().iter().copied());
            }),
            Fault::UnknownNsec3Hash => records.edit_rdata(rtype, |_, octets| octets[0] = 2),
            Fault::UnknownNsec3Flags => records.edit_rdata(rtype, |_, octets| octets[1] |= 0x80),
            Fault::ExcessiveNsec3Iterations => records.edit_rdata(rtype, |_, octets| {
                octets[2..4].copy_from_slice(&2_500_u16.to_be_bytes());
            }),
            _ => return Ok(()),
        };
        let edited: Vec<(Name, Rtype)> = edited.into_iter().map(|owner| (owner, rtype)).collect();
        records.re_sign_all(&edited, self.keys, planted.fault, &|_| {})
    }

    fn plant_lying_bitmap(&self, planted: &PlantedFault, records: &mut Records) -> Result<(), TreeError> {
        let origin = &self.plan.origin;
        let (at, false_type) = lying_bitmap_target(planted, origin);
        let needed = |needed| TreeError::Fault { zone: origin.clone(), fault: planted.fault, needed };
        if records.rrset_mut(&at, false_type, false).is_some() {
            return Err(needed("a type that the name does not have: change `type`"));
        }
        let (owner, rtype) = (self.chain_owner(&at), self.chain_type());
        let set = owner.as_ref().and_then(|owner| records.rrset_mut(owner, rtype, false));
        let set = set.ok_or_else(|| needed("a name with a denial record: change `at`"))?;
        set.rdatas.iter_mut().for_each(|octets| add_to_bitmap(rtype, octets, false_type));
        let rrset: Vec<(Name, Rtype)> = owner.into_iter().map(|owner| (owner, rtype)).collect();
        records.re_sign_all(&rrset, self.keys, planted.fault, &|_| {})
    }

    const fn chain_type_of(name_hash: NameHash) -> Rtype {
        match name_hash {
            NameHash::Unhashed => Rtype::NSEC,
            NameHash::Sha1 => Rtype::NSEC3,
            NameHash::Vrf => Rtype::NSEC5,
        }
    }

    fn chain_type(&self) -> Rtype {
        Self::chain_type_of(self.plan.zone.denial.name_hash())
    }

    /// Owner of the chain record for `name`; `None` if NSEC5 has no proof for it.
    fn chain_owner(&self, name: &Name) -> Option<Name> {
        let origin = self.plan.origin.view();
        let hash = match self.plan.zone.denial.name_hash() {
            NameHash::Unhashed => return Some(name.clone()),
            NameHash::Sha1 => {
                let mut canonical = Vec::new();
                name.view().push_canonical(&mut canonical);
                nsec3_hash(&canonical, &self.nsec3.salt, self.nsec3.iterations).to_vec()
            }
            NameHash::Vrf => {
                let mut entries = self.proofs?.entries();
                entries.find(|entry| entry.full_name(origin) == *name)?.hash.to_vec()
            }
        };
        let label = BASE32HEX_NOPAD.encode(&hash).to_ascii_lowercase();
        Name::prepend(label.as_bytes(), origin).ok()
    }

    fn plant_signatures(&self, planted: &PlantedFault, records: &mut Records) -> Result<(), TreeError> {
        let (apex, fault) = (&self.plan.origin, planted.fault);
        let mut rrsets = records.signed_rrsets(|owner, rtype| planted.affects_rrset(apex, owner, rtype));
        if rrsets.is_empty() {
            let needed = "a signed RRset: change `at` or `type`";
            return Err(TreeError::Fault { zone: apex.clone(), fault, needed });
        }
        match fault {
            Fault::MissingSignature => self.edit_signatures(records, &rrsets, |_| Vec::new()),
            Fault::WrongSignature => self.edit_signatures(records, &rrsets, |mut rdatas| {
                rdatas.iter_mut().filter_map(|rdata| rdata.last_mut()).for_each(|octet| *octet ^= 1);
                rdatas
            }),
            Fault::CollidingKeyTags => {
                rrsets.retain(|(_, rtype)| *rtype != Rtype::DNSKEY);
                self.edit_signatures(records, &rrsets, |rdatas| self.wrong_signatures(&rdatas));
            }
            _ => {
                let used: Vec<u16> = self.keys.keys().iter().map(nonesuch_dnssec::KeyPair::tag).collect();
                let now = self.now;
                let change = |fields: &mut Rrsig<'_>| change_fields(fault, fields, now, &used);
                return records.re_sign_all(&rrsets, self.keys, fault, &change);
            }
        }
        Ok(())
    }

    fn edit_signatures(
        &self,
        records: &mut Records,
        rrsets: &[(Name, Rtype)],
        change: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
    ) {
        for (owner, rtype) in rrsets {
            if let Some(set) = records.rrset_mut(owner, *rtype, true) {
                set.rdatas = change(std::mem::take(&mut set.rdatas));
            }
        }
    }

    /// RDATA of signatures with the fields of the first signature in `rdatas` and random octets.
    fn wrong_signatures(&self, rdatas: &[Vec<u8>]) -> Vec<Vec<u8>> {
        use rand::RngCore as _;
        let mut random = random_stream(self.seed, self.plan.origin.view(), "wrong signatures");
        let Some(first) = rdatas.first() else { return Vec::new() };
        let Some(fields) = Rrsig::parse(first) else { return Vec::new() };
        let start = fields.fields_len();
        let count = COLLIDING_SIGNATURES.min(COLLIDING_OCTETS / fields.signature.len().max(1)).max(10);
        let wrong = |_| {
            let mut rdata = first.clone();
            random.fill_bytes(&mut rdata[start..]);
            // An RSA signature must be below the modulus, or it is rejected without work.
            rdata[start] = 0;
            rdata
        };
        (0..count).map(wrong).collect()
    }
}

/// The name whose bit map lies, and the type that the bit map falsely lists.
pub(super) fn lying_bitmap_target(planted: &PlantedFault, origin: &Name) -> (Name, Rtype) {
    let at = planted.affected_owner(origin).unwrap_or_else(|| origin.clone());
    (at, planted.rtype.unwrap_or(LYING_TYPE))
}

/// Changes the fields of an RRSIG record before it is signed, for a fault of signatures. `used` are
/// the key tags of the zone.
fn change_fields(fault: Fault, fields: &mut Rrsig<'_>, now: u32, used: &[u16]) {
    let (before, after) = (|seconds| now.wrapping_sub(seconds), |seconds| now.wrapping_add(seconds));
    match fault {
        Fault::ExpiredSignature => (fields.inception, fields.expiration) = (before(MONTH), before(WEEK)),
        Fault::SignatureNotYetValid => (fields.inception, fields.expiration) = (after(WEEK), after(MONTH)),
        Fault::ReversedValidity => (fields.inception, fields.expiration) = (after(WEEK), before(WEEK)),
        Fault::WrongLabels => fields.labels += 1,
        Fault::WrongSigner => fields.signer = OUTSIDE_NAME,
        Fault::UnknownKeyTag => {
            let mut free = (1..).map(|step| fields.tag.wrapping_add(step)).filter(|tag| !used.contains(tag));
            fields.tag = free.next().unwrap_or(fields.tag);
        }
        _ => {}
    }
}

/// Adds a type to the bit map of a record of the denial chain.
fn add_to_bitmap(rtype: Rtype, octets: &mut Vec<u8>, added: Rtype) {
    let start = match rtype {
        Rtype::NSEC => NameRef::split_from(octets).map_or(0, |(next, _)| next.len()),
        Rtype::NSEC3 => {
            let salt = 5 + usize::from(octets[4]);
            salt + 1 + usize::from(octets[salt])
        }
        _ => 4 + usize::from(octets[3]),
    };
    let mut types: Vec<Rtype> = bitmap::types(&octets[start..]).collect();
    types.push(added);
    types.sort_unstable();
    types.dedup();
    octets.truncate(start);
    bitmap::push(&types, octets);
}
