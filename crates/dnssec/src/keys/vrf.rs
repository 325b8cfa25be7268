//! The NSEC5KEY record with the public key of a VRF key (draft-vcelak-nsec5, section 5), and the
//! names of the files with the private key and with the proofs.

use super::push_file_name;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError, VrfPrivateKey, VrfPublicKey};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::Name;
use std::fmt::Write as _;

/// An NSEC5KEY record: NSEC5 algorithm and public key, with any algorithm number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nsec5Key {
    /// At least one octet.
    rdata: Vec<u8>,
}

impl Nsec5Key {
    /// The NSEC5KEY record for a private key.
    #[must_use]
    pub fn of(key: &VrfPrivateKey) -> Self {
        let mut rdata = vec![key.algorithm().0];
        rdata.extend_from_slice(key.public_key());
        Self { rdata }
    }

    /// The record with this RDATA; `None` if they are empty.
    #[must_use]
    pub fn from_rdata(rdata: &[u8]) -> Option<Self> {
        (!rdata.is_empty()).then(|| Self { rdata: rdata.to_vec() })
    }

    /// The RDATA: one octet with the algorithm, then the public key.
    #[must_use]
    pub fn rdata(&self) -> &[u8] {
        &self.rdata
    }

    /// The NSEC5 algorithm.
    #[must_use]
    pub fn algorithm(&self) -> VrfAlgorithm {
        VrfAlgorithm(self.rdata[0])
    }

    /// The key tag: the sum of RFC 4034 appendix B over the RDATA, for all algorithm numbers. The
    /// exception of appendix B.1 is for DNSSEC algorithm 1 (RSA/MD5), which is not algorithm 1 of
    /// NSEC5.
    #[must_use]
    pub fn tag(&self) -> u16 {
        key_tag(&self.rdata)
    }

    /// The public key, parsed and validated (RFC 9381 §5.4.5).
    ///
    /// # Errors
    /// As [`VrfPublicKey::parse`].
    pub fn public_key(&self) -> Result<VrfPublicKey, VrfKeyError> {
        VrfPublicKey::parse(self.algorithm(), &self.rdata[1..])
    }

    /// Finds a signing key with the same key material: returns the key tag of the first of the
    /// DNSKEY or CDNSKEY RDATA for which the private key of this VRF key can sign
    /// ([`VrfAlgorithm::is_signing_key`]), with any flags. A zone with NSEC5 must not have such a
    /// key.
    pub fn find_signing_key<'r>(&self, dnskeys: impl IntoIterator<Item = &'r [u8]>) -> Option<u16> {
        let is_same_key = |rdata: &&[u8]| match rdata {
            [_, _, _, algorithm, key @ ..] => {
                self.algorithm().is_signing_key(&self.rdata[1..], Algorithm(*algorithm), key)
            }
            _ => false,
        };
        dnskeys.into_iter().find(is_same_key).map(key_tag)
    }

    /// Name of the private key file without `.private`: `Nexample.+001+12345`. The file names of
    /// signing keys begin with `K` instead of `N`.
    #[must_use]
    pub fn base_name(&self, zone: &Name) -> String {
        let mut text = String::from("N");
        push_file_name(zone.view(), &mut text);
        // Writing to a `String` cannot fail.
        let _ = write!(text, "+{:03}+{:05}", self.algorithm().0, self.tag());
        text
    }
}

/// Name of the file with the NSEC5 proofs of a zone: `example.proofs`.
#[must_use]
pub fn proofs_file_name(zone: &Name) -> String {
    let mut text = String::new();
    push_file_name(zone.view(), &mut text);
    text + "proofs"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_tags_and_names_of_files() {
        // The sum of RFC 4034 appendix B, computed by hand: 0x0102 + 0x0304 + 0x0500.
        let key = Nsec5Key::from_rdata(&[1, 2, 3, 4, 5]).unwrap();
        assert_eq!((key.tag(), key.algorithm()), (0x0906, VrfAlgorithm::P256_SHA256_TAI));
        assert_eq!(key.base_name(&"Example.".parse().unwrap()), "Nexample.+001+02310");
        assert_eq!(key.base_name(&Name::root()), "N.+001+02310");
        assert_eq!(proofs_file_name(&"a/B.example.".parse().unwrap()), "a%2Fb.example.proofs");
        assert_eq!(proofs_file_name(&Name::root()), ".proofs");
        assert!(Nsec5Key::from_rdata(&[]).is_none() && key.public_key().is_err());
    }
}
