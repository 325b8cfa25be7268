//! Signatures over RRsets that the zones of a check do not contain.

use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::message::{Record, Section};
use nonesuch_proto::{Class, Name, Rtype};

/// Time from the inception of a signature to the time of the tree, in seconds.
const INCEPTION_OFFSET: u32 = 3600;

/// An RRset to sign.
#[derive(Clone, Debug)]
pub(super) struct Unsigned {
    /// The owner.
    pub(super) owner: Name,
    /// The type.
    pub(super) rtype: Rtype,
    /// TTL in seconds.
    pub(super) ttl: u32,
    /// The RDATA.
    pub(super) rdatas: Vec<Vec<u8>>,
}

impl Unsigned {
    /// The records of a section.
    pub(super) fn records(&self, section: Section) -> Vec<Record> {
        let record = |rdata: &Vec<u8>| self.record(section, self.rtype, rdata.clone());
        self.rdatas.iter().map(record).collect()
    }

    fn record(&self, section: Section, rtype: Rtype, rdata: Vec<u8>) -> Record {
        Record { section, owner: self.owner.clone(), rtype, class: Class::IN, ttl: self.ttl, rdata }
    }

    /// The records with the signatures of the keys that sign this type, valid from an hour before `now` until
    /// `lifetime` seconds after it. Without signatures if the library fails.
    pub(super) fn sign(&self, section: Section, keys: &KeySet, now: u32, lifetime: u32) -> Vec<Record> {
        let signers = keys.signers(self.rtype).iter().filter_map(|index| keys.keys().get(*index));
        let signatures = signers.filter_map(|key| self.signature(key, keys.zone(), now, lifetime));
        let signed = signatures.map(|rdata| self.record(section, Rtype::RRSIG, rdata));
        self.records(section).into_iter().chain(signed).collect()
    }

    /// RDATA of the signature of one key. `None` if the library fails.
    pub(super) fn signature(&self, key: &KeyPair, signer: &Name, now: u32, lifetime: u32) -> Option<Vec<u8>> {
        self.signature_with((key, key.tag()), signer, validity(now, lifetime))
    }

    /// As [`Unsigned::signature`], with these values of the fields Inception and Expiration.
    pub(super) fn signature_from(
        &self,
        key: &KeyPair,
        signer: &Name,
        inception: u32,
        expiration: u32,
    ) -> Option<Vec<u8>> {
        self.signature_with((key, key.tag()), signer, (inception, expiration))
    }

    /// As [`Unsigned::signature`] of a key of the root, with another key tag.
    pub(super) fn signature_with_tag(
        &self,
        key: &KeyPair,
        tag: u16,
        now: u32,
        lifetime: u32,
    ) -> Option<Vec<u8>> {
        self.signature_with((key, tag), &Name::root(), validity(now, lifetime))
    }

    fn signature_with(
        &self,
        (key, tag): (&KeyPair, u16),
        signer: &Name,
        (inception, expiration): (u32, u32),
    ) -> Option<Vec<u8>> {
        let fields = Rrsig {
            covered: self.rtype,
            algorithm: key.algorithm(),
            labels: self.owner.view().rrsig_labels(),
            original_ttl: self.ttl,
            expiration,
            inception,
            tag,
            signer: signer.view(),
            signature: &[],
        };
        fields.sign(self.owner.view(), self.rdatas.iter().map(Vec::as_slice), key.private()).ok()
    }
}

/// Inception and expiration of a signature that is valid from an hour before `now` until `lifetime` seconds after it.
const fn validity(now: u32, lifetime: u32) -> (u32, u32) {
    (now.wrapping_sub(INCEPTION_OFFSET), now.wrapping_add(lifetime))
}
