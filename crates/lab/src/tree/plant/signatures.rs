//! Faults of signatures.

use super::FaultPlanter;
use crate::tree::delegation::UNKNOWN_NUMBER;
use crate::tree::description::PlantedFault;
use crate::tree::error::TreeError;
use crate::tree::fault::Fault;
use crate::tree::keys::random_stream;
use crate::tree::records::Records;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::{Name, NameRef, Rtype};
use rand::RngCore as _;

/// Distance of wrong times from the time of the tree, in seconds: more than the skew of clocks that
/// validators tolerate (Unbound: up to a day).
const WEEK: u32 = 7 * 86_400;
/// In seconds.
const MONTH: u32 = 30 * 86_400;
/// Maximum number of RRSIG records of [`Fault::CollidingKeyTags`].
const COLLIDING_SIGNATURES: usize = 24;
/// Total size of these signatures, above which there are fewer of them, in octets.
const COLLIDING_OCTETS: usize = 16_384;
/// The Signer's Name of [`Fault::WrongSigner`], outside each zone.
pub(super) const OUTSIDE_NAME: NameRef<'static> = NameRef::from_wire_unchecked(b"\x07outside\x07invalid\x00");
/// The Type Covered of [`Fault::WrongTypeCovered`]. It is for private use.
const OTHER_TYPE: Rtype = Rtype(65_401);
/// Place of the algorithm, the Original TTL and the key tag in RRSIG RDATA (RFC 4034 §3.1).
const ALGORITHM_AT: usize = 2;
const ORIGINAL_TTL_END: usize = 7;
const TAG_AT: usize = 16;

impl FaultPlanter<'_> {
    pub(super) fn plant_signatures(
        &self,
        planted: &PlantedFault,
        records: &mut Records,
    ) -> Result<(), TreeError> {
        let (apex, fault) = (&self.plan.origin, planted.fault);
        let rrsets = records.signed_rrsets(|owner, rtype| planted.affects_rrset(apex, owner, rtype));
        if rrsets.is_empty() {
            let needed = "a signed RRset: change `at` or `type`";
            return Err(TreeError::Fault { zone: apex.clone(), fault, needed });
        }
        match fault {
            Fault::MissingSignature => edit_signatures(records, &rrsets, |_| Vec::new()),
            Fault::WrongSignature => edit_each(records, &rrsets, |rdata| flip_last_octet(rdata)),
            Fault::MalformedSignature => edit_each(records, &rrsets, drop_second_half),
            Fault::ChangedOriginalTtl => edit_each(records, &rrsets, |rdata| rdata[ORIGINAL_TTL_END] ^= 1),
            Fault::UnknownSignatureAlgorithm => {
                edit_each(records, &rrsets, |rdata| rdata[ALGORITHM_AT] = UNKNOWN_NUMBER);
            }
            Fault::TtlAboveOriginal => double_ttls(records, &rrsets),
            Fault::CollidingKeyTags => {
                edit_signatures(records, &rrsets, |rdatas| self.wrong_signatures(&rdatas));
            }
            Fault::OneValidSignature => return self.add_wrong_signatures(&rrsets, records),
            Fault::SignatureOfOtherName => return self.sign_as_other_names(&rrsets, records),
            _ => return self.re_sign_changed(&rrsets, fault, records),
        }
        Ok(())
    }

    /// Signs RRsets again with the fields that the fault requires.
    pub(super) fn re_sign_changed(
        &self,
        rrsets: &[(Name, Rtype)],
        fault: Fault,
        records: &mut Records,
    ) -> Result<(), TreeError> {
        records.re_sign_all(rrsets, self.keys, fault, &|fields| {
            change_fields(fault, fields, self.now, |tag| self.free_tag(tag));
        })
    }

    /// A key tag after `tag` that no key of the zone has.
    fn free_tag(&self, tag: u16) -> u16 {
        let is_used = |tag: &u16| self.keys.keys().iter().map(KeyPair::tag).any(|used| used == *tag);
        (1..).map(|step| tag.wrapping_add(step)).find(|tag| !is_used(tag)).unwrap_or(tag)
    }

    /// [`Fault::OneValidSignature`].
    fn add_wrong_signatures(&self, rrsets: &[(Name, Rtype)], records: &mut Records) -> Result<(), TreeError> {
        let valid = records.clone();
        self.re_sign_changed(rrsets, Fault::ExpiredSignature, records)?;
        for (owner, rtype) in rrsets {
            let sound = valid.names.get(owner).and_then(|sets| sets.get(&(*rtype, true)));
            let (Some(sound), Some(set)) = (sound, records.rrset_mut(owner, *rtype, true)) else { continue };
            for rdata in &sound.rdatas {
                let (mut wrong, mut unknown) = (rdata.clone(), rdata.clone());
                flip_last_octet(&mut wrong);
                let tag = self.free_tag(u16::from_be_bytes([rdata[TAG_AT], rdata[TAG_AT + 1]]));
                unknown[TAG_AT..TAG_AT + 2].copy_from_slice(&tag.to_be_bytes());
                set.rdatas.extend([wrong, unknown, rdata.clone()]);
            }
        }
        Ok(())
    }

    /// [`Fault::SignatureOfOtherName`].
    fn sign_as_other_names(&self, rrsets: &[(Name, Rtype)], records: &mut Records) -> Result<(), TreeError> {
        let (zone, fault) = (self.plan.origin.clone(), Fault::SignatureOfOtherName);
        for (owner, rtype) in rrsets {
            let signed = records.re_sign_as((owner, &other_name(owner)), *rtype, self.keys, &|_| {});
            signed.map_err(|source| TreeError::FaultySignature { zone: zone.clone(), fault, source })?;
        }
        Ok(())
    }

    /// RDATA of signatures with the fields of the first signature in `rdatas` and random octets.
    fn wrong_signatures(&self, rdatas: &[Vec<u8>]) -> Vec<Vec<u8>> {
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

/// Changes the fields of an RRSIG record before it is signed.
fn change_fields(fault: Fault, fields: &mut Rrsig<'_>, now: u32, free_tag: impl Fn(u16) -> u16) {
    let (before, after) = (|seconds| now.wrapping_sub(seconds), |seconds| now.wrapping_add(seconds));
    match fault {
        Fault::ExpiredSignature => (fields.inception, fields.expiration) = (before(MONTH), before(WEEK)),
        Fault::SignatureNotYetValid => (fields.inception, fields.expiration) = (after(WEEK), after(MONTH)),
        Fault::ReversedValidity => (fields.inception, fields.expiration) = (after(WEEK), before(WEEK)),
        Fault::WrongLabels => fields.labels += 1,
        Fault::TooFewLabels | Fault::WildcardTooHigh => fields.labels = fields.labels.saturating_sub(1),
        Fault::WrongTypeCovered => fields.covered = OTHER_TYPE,
        Fault::WrongSigner => fields.signer = OUTSIDE_NAME,
        // The signer is the apex.
        Fault::SignerIsParent => fields.signer = fields.signer.parent().unwrap_or(OUTSIDE_NAME),
        Fault::UnknownKeyTag => fields.tag = free_tag(fields.tag),
        _ => {}
    }
}

/// A name with as many labels as `owner`, in the sense of the Labels field.
fn other_name(owner: &Name) -> Name {
    let view = owner.view();
    let above = if view.is_wildcard() { view.parent().and_then(NameRef::parent) } else { view.parent() };
    // The label is shorter than those of generated names, and the other names are short.
    Name::prepend(b"o", above.unwrap_or(view)).unwrap_or_else(|_| owner.clone())
}

fn flip_last_octet(rdata: &mut [u8]) {
    rdata.last_mut().into_iter().for_each(|octet| *octet ^= 1);
}

fn drop_second_half(rdata: &mut Vec<u8>) {
    let signature = Rrsig::parse(rdata).map_or(0, |fields| fields.signature.len());
    rdata.truncate(rdata.len() - signature / 2);
}

fn double_ttls(records: &mut Records, rrsets: &[(Name, Rtype)]) {
    for ((owner, rtype), is_signature) in rrsets.iter().flat_map(|rrset| [(rrset, false), (rrset, true)]) {
        if let Some(set) = records.rrset_mut(owner, *rtype, is_signature) {
            set.ttl *= 2;
        }
    }
}

fn edit_each(records: &mut Records, rrsets: &[(Name, Rtype)], change: impl Fn(&mut Vec<u8>)) {
    edit_signatures(records, rrsets, |mut rdatas| {
        rdatas.iter_mut().for_each(&change);
        rdatas
    });
}

fn edit_signatures(
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
