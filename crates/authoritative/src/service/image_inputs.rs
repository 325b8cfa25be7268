//! Inputs of the image of a zone that is signed online. After a restart, the server maps the image
//! if the inputs are the same.
//!
//! Such an image depends on the records of the zone, which follow the image in the file, on the
//! denial mechanism, and on the DNSKEY records in the key directory, which are published if the
//! zone has none. It contains only signatures that came with the zone. The digest does not include
//! private keys, because they are loaded at each start.

use super::SigningKeys;
use nonesuch_crypto::tables_digest;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_zone::Verification;
use serde::{Deserialize, Serialize};

/// Inputs of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ImageInputs {
    /// Digest of the denial mechanism and the key records ([`inputs_digest`]).
    pub(super) digest: String,
    /// Extent of the verification of the zone.
    #[serde(with = "VerificationForm")]
    pub(super) verification: Verification,
    /// Whether the DNSKEY RRset of the zone came with signatures.
    pub(super) has_signed_keys: bool,
}

/// The serialized form of [`Verification`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Verification", rename_all = "kebab-case")]
enum VerificationForm {
    Nothing,
    Structural { at: u32 },
    Full { at: u32 },
    OtherTables { at: u32 },
}

/// Returns a digest of all inputs of an image except the zone: the mechanism, the public records of
/// all published keys, the keys whose CDS records are published, and the tables of algorithms that
/// verified the zone.
pub(super) fn inputs_digest(mechanism: Mechanism, keys: &SigningKeys) -> String {
    let mut rdatas: Vec<&[u8]> = keys.records.iter().map(KeyRecord::rdata).collect();
    rdatas.sort_unstable();
    rdatas.dedup();
    let mut hasher = blake3::Hasher::new();
    let tables = tables_digest();
    for part in [mechanism.to_string().as_bytes(), &tables].into_iter().chain(rdatas) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut sync: Vec<Vec<u8>> =
        keys.sync.iter().map(|(key, phase)| [&[phase as u8], key].concat()).collect();
    sync.sort_unstable();
    for part in sync {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(&part);
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns a digest of the same inputs and of the signing keys. The image itself does not depend on
/// which of the published keys sign.
pub(super) fn signers_digest(mechanism: Mechanism, keys: &SigningKeys) -> String {
    let mut signers: Vec<Vec<u8>> =
        keys.pairs.iter().map(|pair| KeyRecord::of(pair).rdata().to_vec()).collect();
    signers.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    hasher.update(inputs_digest(mechanism, keys).as_bytes());
    for part in signers {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(&part);
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A digest of an earlier version lacks the tables, and therefore never matches.
    #[test]
    fn digests_depend_on_the_tables_of_algorithms() {
        let mechanism = Mechanism::Compact.to_string();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(mechanism.len() as u64).to_le_bytes()).update(mechanism.as_bytes());
        assert_ne!(
            inputs_digest(Mechanism::Compact, &SigningKeys::default()),
            hasher.finalize().to_hex().to_string()
        );
        hasher.update(&(tables_digest().len() as u64).to_le_bytes()).update(&tables_digest());
        assert_eq!(
            inputs_digest(Mechanism::Compact, &SigningKeys::default()),
            hasher.finalize().to_hex().to_string()
        );
    }

    #[test]
    fn digests_differ_by_mechanism() {
        assert_ne!(
            inputs_digest(Mechanism::Compact, &SigningKeys::default()),
            inputs_digest(Mechanism::WhiteLies, &SigningKeys::default())
        );
    }
}
