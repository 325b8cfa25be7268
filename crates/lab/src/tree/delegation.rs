//! The records of a delegation in the parent: NS, addresses and DS.

use super::data::{ZonePlan, rdata_text};
use super::fault::{Fault, FaultScope};
use nonesuch_crypto::{Algorithm, DigestType};
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::Rtype;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Number of DS records of [`Fault::CollidingDs`].
const COLLIDING_DS: u8 = 32;
/// Number of wrong DS records of [`Fault::ManyDs`].
const WRONG_DS: u8 = 5;
/// Algorithm number, and digest type, that no validator knows.
pub(super) const UNKNOWN_NUMBER: u8 = 200;

impl ZonePlan<'_> {
    /// RDATA of the DNSKEY records that are secure entry points, as published.
    pub(super) fn entry_points(&self) -> Vec<Vec<u8>> {
        let keys = self.keys.iter().flat_map(KeySet::secure_entry_points);
        keys.map(KeyPair::dnskey_rdata).map(|rdata| self.published_rdata(&rdata)).collect()
    }

    /// RDATA of the DS records in the parent, with the faults of the zone.
    pub(super) fn ds(&self) -> Vec<Vec<u8>> {
        if !self.zone.ds || self.has_no_ds_by_fault() {
            return Vec::new();
        }
        if self.zone.has(Fault::DsForZsk) {
            let keys = self.keys.iter().flat_map(KeySet::keys).map(KeyPair::dnskey_rdata);
            let keys = keys.map(|rdata| self.published_rdata(&rdata));
            let other = keys.filter(|rdata| !self.entry_points().contains(rdata));
            return other.filter_map(|rdata| self.digest(&rdata, DigestType::SHA256)).collect();
        }
        self.entry_points().into_iter().flat_map(|dnskey| self.ds_of(&dnskey)).collect()
    }

    /// Whether the zone has a fault of a delegation without DS records.
    fn has_no_ds_by_fault(&self) -> bool {
        let without =
            [Fault::MissingDsDenial, Fault::DsBitWithoutDs, Fault::NoNsBit, Fault::SoaBitAtDelegation];
        without.iter().any(|fault| self.zone.has(*fault))
    }

    fn digest(&self, dnskey: &[u8], digest: DigestType) -> Option<Vec<u8>> {
        ds_rdata(self.origin.view(), dnskey, digest)
    }

    /// The DS records for a key, as the zone's fault of the DS records requires.
    fn ds_of(&self, dnskey: &[u8]) -> Vec<Vec<u8>> {
        let [sha1, sha256, sha384] = [DigestType::SHA1, DigestType::SHA256, DigestType::SHA384]
            .map(|digest| self.digest(dnskey, digest).unwrap_or_default());
        let missing_key =
            || self.digest(&with_wrong_end(dnskey.to_vec()), DigestType::SHA256).unwrap_or_default();
        let wrong = || with_wrong_end(sha256.clone());
        let with = |position: usize, value: u8| {
            let mut ds = sha256.clone();
            ds[position] = value;
            ds
        };
        let planted = self.zone.faults.iter().find(|planted| planted.fault.scope() == FaultScope::Ds);
        match planted.map(|planted| planted.fault) {
            Some(Fault::DsMatchesNoKey) => vec![missing_key()],
            Some(Fault::StandbyDs) => vec![missing_key(), sha256],
            Some(Fault::WrongDsDigest) => vec![wrong()],
            Some(Fault::WrongDsTag) => vec![with(1, sha256[1].wrapping_add(1))],
            Some(Fault::DsAlgorithmMismatch) => vec![with(2, other_algorithm(sha256[2]).0)],
            Some(Fault::Sha1Ds) => vec![sha1],
            Some(Fault::Sha384Ds) => vec![sha384],
            Some(Fault::WrongSha1Ds) => vec![with_wrong_end(sha1), sha256],
            Some(Fault::WrongSha256Ds) => vec![sha1, wrong()],
            Some(Fault::UnknownDsAlgorithm) => vec![with(2, UNKNOWN_NUMBER)],
            Some(Fault::UnknownDsDigest) => vec![with(3, UNKNOWN_NUMBER)],
            Some(Fault::KnownAndUnknownDsAlgorithm) => vec![with(2, UNKNOWN_NUMBER), sha256],
            Some(Fault::KnownAndUnknownDsDigest) => vec![with(3, UNKNOWN_NUMBER), sha256],
            Some(Fault::WrongAndUnknownDsDigest) => vec![with(3, UNKNOWN_NUMBER), wrong()],
            Some(Fault::ManyDs) => {
                (0..WRONG_DS).map(|number| colliding_ds(&sha256, number)).chain([sha256.clone()]).collect()
            }
            Some(Fault::CollidingDs) => {
                (0..COLLIDING_DS).map(|number| colliding_ds(&sha256, number)).collect()
            }
            _ => vec![sha256],
        }
    }

    /// Appends the lines of the parent zone for this zone: NS, glue and DS. `parent_server` is the
    /// address of the parent's server.
    pub(super) fn push_delegation(&self, parent_server: Ipv4Addr, text: &mut String) {
        let (origin, nameserver) = (&self.origin, self.nameserver());
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{origin} NS {nameserver}");
        let address = if self.zone.has(Fault::LameDelegation) { parent_server } else { self.address };
        if !self.zone.has(Fault::MissingGlue) {
            let _ = writeln!(text, "{nameserver} A {address}");
        }
        for ds in self.ds() {
            let _ = writeln!(text, "{origin} DS {}", rdata_text(Rtype::DS, &ds));
        }
    }
}

/// A DS record with the tag of `ds` and a wrong digest, different for each number.
fn colliding_ds(ds: &[u8], number: u8) -> Vec<u8> {
    let mut wrong = ds.to_vec();
    if let Some([first, second]) = wrong.get_mut(4..6) {
        (*first, *second) = (*first ^ 0x80, number);
    }
    wrong
}

fn with_wrong_end(mut rdata: Vec<u8>) -> Vec<u8> {
    rdata.last_mut().into_iter().for_each(|octet| *octet ^= 1);
    rdata
}

/// An algorithm that every validator knows, other than this one.
fn other_algorithm(number: u8) -> Algorithm {
    if Algorithm(number) == Algorithm::RSASHA256 { Algorithm::ECDSAP256SHA256 } else { Algorithm::RSASHA256 }
}
