//! The keys of a zone: key pairs and their files, the RDATA of DNSKEY, DS, CDS and CDNSKEY records
//! (RFC 4034 §2 and §5, RFC 7344), and the assignment of keys to RRsets ([`KeySet`]).

pub mod directory;
mod ds;
mod error;
mod file;
mod record;
mod role;
mod set;
mod sync;
mod times;
mod vrf;

pub use ds::ds_rdata;
pub use error::KeyFileError;
pub use record::KeyRecord;
pub(crate) use role::published_keys;
pub use role::{Role, roles};
pub use set::{KeySet, KeySetError, KeyTiming, PassiveKey};
pub use sync::CdsSchedule;
pub(crate) use sync::{DELETE_CDNSKEY, DELETE_CDS};
pub use times::{CdsPhase, KeyEvent, KeyPhase, KeyTimes};
pub use vrf::{Nsec5Key, proofs_file_name};

use nonesuch_crypto::{Algorithm, KeyError, PrivateKey, key_tag};
use nonesuch_proto::{Name, NameRef};
use std::fmt::Write as _;

/// DNSKEY flag of a zone key (RFC 4034 §2.1.1).
pub const ZONE_KEY: u16 = 0x0100;
/// DNSKEY flag of a revoked key (RFC 5011 §2.1).
pub const REVOKE: u16 = 0x0080;
/// DNSKEY flag of a secure entry point, that is, of a KSK or CSK (RFC 3757).
pub const SEP: u16 = 0x0001;
/// The protocol field of every DNSKEY record (RFC 4034 §2.1.2).
pub const PROTOCOL: u8 = 3;

/// A key pair of one zone.
#[derive(Debug)]
pub struct KeyPair {
    /// The zone that the key belongs to.
    pub owner: Name,
    /// The DNSKEY flags: 256 for a ZSK, 257 for a KSK or CSK, plus [`REVOKE`] for a revoked key.
    pub flags: u16,
    private: PrivateKey,
}

impl KeyPair {
    /// The key pair of `private` for the zone at `owner`.
    #[must_use]
    pub const fn new(owner: Name, flags: u16, private: PrivateKey) -> Self {
        Self { owner, flags, private }
    }

    /// Generates a key pair for the zone `owner`. `bits` is the length of an RSA key in bits;
    /// `None` selects the default of the algorithm.
    ///
    /// # Errors
    /// As [`PrivateKey::generate`].
    pub fn generate(
        owner: &Name,
        flags: u16,
        algorithm: Algorithm,
        bits: Option<u16>,
    ) -> Result<Self, KeyError> {
        Ok(Self::new(owner.clone(), flags, PrivateKey::generate(algorithm, bits)?))
    }

    /// As [`KeyPair::generate`], but also generates keys with weak lengths.
    ///
    /// # Errors
    /// As [`PrivateKey::generate_any_length`].
    pub fn generate_any_length(
        owner: &Name,
        flags: u16,
        algorithm: Algorithm,
        bits: Option<u16>,
    ) -> Result<Self, KeyError> {
        Ok(Self::new(owner.clone(), flags, PrivateKey::generate_any_length(algorithm, bits)?))
    }

    /// Adds fresh randomness to all further signatures, as [`PrivateKey::hedge`].
    pub fn hedge(&mut self) {
        self.private.hedge();
    }

    /// Revokes the key (RFC 5011 §2.1). This changes its key tag.
    pub const fn revoke(&mut self) {
        self.flags |= REVOKE;
    }

    /// The private key.
    #[must_use]
    pub const fn private(&self) -> &PrivateKey {
        &self.private
    }

    /// The algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.private.algorithm()
    }

    /// RDATA of the DNSKEY record (RFC 4034 §2.1).
    #[must_use]
    pub fn dnskey_rdata(&self) -> Vec<u8> {
        let key = self.private.public_key();
        let mut rdata = Vec::with_capacity(4 + key.len());
        rdata.extend_from_slice(&self.flags.to_be_bytes());
        rdata.extend_from_slice(&[PROTOCOL, self.algorithm().0]);
        rdata.extend_from_slice(key);
        rdata
    }

    /// The key tag (RFC 4034, appendix B).
    #[must_use]
    pub fn tag(&self) -> u16 {
        key_tag(&self.dnskey_rdata())
    }

    /// Whether the key has the SEP flag, that is, is a KSK or CSK.
    #[must_use]
    pub const fn is_sep(&self) -> bool {
        self.flags & SEP != 0
    }

    /// Whether the key is revoked (RFC 5011 §2.1).
    #[must_use]
    pub const fn is_revoked(&self) -> bool {
        self.flags & REVOKE != 0
    }

    /// Name of the two files of the key without `.key` and `.private`, as in BIND:
    /// `Kexample.+013+12345`.
    #[must_use]
    pub fn base_name(&self) -> String {
        base_name(&self.owner, self.algorithm(), self.tag())
    }
}

/// Lists keys by their tags for a message: `key 7`, `keys 7, 8`.
pub(crate) fn describe_keys(tags: &[u16]) -> String {
    let list: Vec<String> = tags.iter().map(u16::to_string).collect();
    format!("{} {}", if tags.len() == 1 { "key" } else { "keys" }, list.join(", "))
}

/// The base name of a key, as [`KeyPair::base_name`].
fn base_name(owner: &Name, algorithm: Algorithm, tag: u16) -> String {
    let mut text = String::from("K");
    push_file_name(owner.view(), &mut text);
    // Writing to a `String` cannot fail.
    let _ = write!(text, "+{:03}+{tag:05}", algorithm.0);
    text
}

/// Checks that the base name `found` of a file is `expected`, without regard to case, as for domain
/// names.
fn check_base_name(expected: String, found: &str) -> Result<(), KeyFileError> {
    if expected.eq_ignore_ascii_case(found) {
        return Ok(());
    }
    Err(KeyFileError::BaseName { expected, found: found.to_owned() })
}

/// Writes a name as BIND writes it in file names: in lower case, with all octets except letters,
/// digits, `-` and `_` as `%XX`.
fn push_file_name(name: NameRef<'_>, text: &mut String) {
    if name.is_root() {
        text.push('.');
    }
    for label in name.labels() {
        for octet in label {
            match octet.to_ascii_lowercase() {
                octet @ (b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_') => text.push(char::from(octet)),
                _ => {
                    let _ = write!(text, "%{octet:02X}");
                }
            }
        }
        text.push('.');
    }
}
