//! Faults of keys.

use super::FaultPlanter;
use crate::tree::data::{ZonePlan, with_key_tag};
use crate::tree::delegation::UNKNOWN_NUMBER;
use crate::tree::error::TreeError;
use crate::tree::fault::Fault;
use crate::tree::keys::{key_pair, random_stream};
use crate::tree::records::Records;
use nonesuch_crypto::key_tag;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::Rtype;

/// Maximum number of DNSKEY records that [`Fault::CollidingKeyTags`] adds.
const COLLIDING_KEYS: usize = 12;
/// Total size of these keys, above which there are fewer of them, in octets.
const COLLIDING_OCTETS: usize = 16_384;
/// DNSKEY RDATA with an algorithm number that no validator knows: a key of 32 octets.
const UNKNOWN_KEY: [u8; 36] = {
    let mut rdata = [0x5a; 36];
    (rdata[0], rdata[1], rdata[2], rdata[3]) = (1, 0, 3, UNKNOWN_NUMBER);
    rdata
};

/// RDATA of DNSKEY records with the tag of the key that signs the data, for
/// [`Fault::CollidingKeyTags`] and [`Fault::CollidingKeyTag`]; empty without these faults.
pub(in crate::tree) fn colliding_keys(
    plan: &ZonePlan<'_>,
    keys: &KeySet,
    seed: u64,
) -> Result<Vec<Vec<u8>>, TreeError> {
    let mut colliding = Vec::new();
    let Some(key) = data_signing_key(keys) else { return Ok(colliding) };
    let count = if plan.zone.has(Fault::CollidingKeyTags) {
        COLLIDING_KEYS.min(COLLIDING_OCTETS / key.private().public_key().len()).max(2)
    } else {
        usize::from(plan.zone.has(Fault::CollidingKeyTag))
    };
    let mut random = random_stream(seed, plan.origin.view(), "colliding");
    while colliding.len() < count {
        let other = key_pair(&plan.origin, 0, plan.zone, &mut random)?;
        colliding.extend(with_key_tag(other.dnskey_rdata(), key.tag()));
    }
    Ok(colliding)
}

fn data_signing_key(keys: &KeySet) -> Option<&KeyPair> {
    keys.signers(Rtype::A).first().and_then(|index| keys.keys().get(*index))
}

impl FaultPlanter<'_> {
    pub(super) fn plant_keys(&self, fault: Fault, records: &mut Records) -> Result<(), TreeError> {
        let apex = &self.plan.origin;
        let dnskey = [(apex.clone(), Rtype::DNSKEY)];
        match fault {
            Fault::MissingDnskey => records.remove(Rtype::DNSKEY, |owner| owner == apex),
            Fault::UnsignedDnskey => {
                let signatures = records.rrset_mut(apex, Rtype::DNSKEY, true);
                signatures.into_iter().for_each(|set| set.rdatas.clear());
            }
            Fault::UnknownAlgorithmKey => {
                let keys = records.rrset_mut(apex, Rtype::DNSKEY, false);
                keys.into_iter().for_each(|set| set.rdatas.push(UNKNOWN_KEY.to_vec()));
                return records.re_sign_all(&dnskey, self.keys, fault, &|_| {});
            }
            Fault::DnskeySignedByZsk => {
                return self.sign_all_with(&dnskey, data_signing_key(self.keys), fault, records);
            }
            Fault::DataSignedByKsk => {
                let signed = records.signed_rrsets(|_, _| true);
                return self.sign_all_with(&signed, self.keys.secure_entry_points().next(), fault, records);
            }
            Fault::CollidingKeyTag => {}
            _ => return self.publish_changed_keys(fault, records),
        }
        Ok(())
    }

    /// Signs RRsets with one key.
    fn sign_all_with(
        &self,
        rrsets: &[(nonesuch_proto::Name, Rtype)],
        key: Option<&KeyPair>,
        fault: Fault,
        records: &mut Records,
    ) -> Result<(), TreeError> {
        let zone = &self.plan.origin;
        key.into_iter().flat_map(|key| rrsets.iter().map(move |rrset| (key, rrset))).try_for_each(
            |(key, (owner, rtype))| {
                let signed = records.sign_with(owner, *rtype, key);
                signed.map_err(|source| TreeError::FaultySignature { zone: zone.clone(), fault, source })
            },
        )
    }

    /// Replaces the DNSKEY records as the fault of the zone requires, and signs everything
    /// with their key tags.
    fn publish_changed_keys(&self, fault: Fault, records: &mut Records) -> Result<(), TreeError> {
        let keys: Vec<Vec<u8>> = self.keys.keys().iter().map(|key| key.dnskey_rdata()).collect();
        let tags: Vec<(u16, u16)> =
            keys.iter().map(|rdata| (key_tag(rdata), key_tag(&self.plan.published_rdata(rdata)))).collect();
        if let Some(set) = records.rrset_mut(&self.plan.origin, Rtype::DNSKEY, false) {
            set.rdatas.iter_mut().for_each(|rdata| *rdata = self.plan.published_rdata(rdata));
        }
        let signed = records.signed_rrsets(|_, _| true);
        records.re_sign_all(&signed, self.keys, fault, &|fields| {
            let found = tags.iter().find(|(tag, _)| *tag == fields.tag);
            fields.tag = found.map_or(fields.tag, |(_, published)| *published);
        })
    }
}
