//! Errors of key files.

use nonesuch_crypto::{Algorithm, KeyError};
use nonesuch_proto::{NameError, rdata};

/// The reason why the two files of a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The `.key` file has no DNSKEY record.
    #[error("the .key file has no DNSKEY record (expected: \"example. IN DNSKEY 257 3 13 BASE64\")")]
    NoRecord,
    /// The `.key` file has more than one record.
    #[error("the .key file has more than one record: write each key to separate files")]
    SecondRecord,
    /// The owner in the `.key` file is not a valid name.
    #[error("the owner in the .key file is not a domain name: {0}")]
    Owner(NameError),
    /// The fields of the DNSKEY record are malformed.
    #[error("the DNSKEY record in the .key file is malformed: {0}")]
    Record(rdata::RdataFault),
    /// The flags or the protocol are not those of a zone key.
    #[error(
        "the .key file has flags {flags} and protocol {protocol}: a zone key has flags 256 or 257 and protocol 3"
    )]
    NotAZoneKey {
        /// The flags.
        flags: u16,
        /// The protocol.
        protocol: u8,
    },
    /// The public key is malformed, or of an unsupported kind.
    #[error(
        "invalid public key in the .key file: {0}; restore the file from a copy, or generate another key"
    )]
    Public(KeyError),
    /// The private key is unusable.
    #[error("invalid .private file: {0}; restore it from a copy")]
    Private(#[from] KeyError),
    /// The two files have different algorithms.
    #[error(
        "the .key file has algorithm {public}, but the .private file has {private}: the files belong to \
        different keys; restore the .key or .private file of the same key"
    )]
    Algorithm {
        /// In the `.key` file.
        public: Algorithm,
        /// In the `.private` file.
        private: Algorithm,
    },
    /// The two files have different public keys.
    #[error(
        "the .key file has the public key {public}, but the .private file belongs to {private}: the files \
        belong to different keys; restore the .key or .private file of the same key"
    )]
    PublicKey {
        /// Tag of the key in the `.key` file.
        public: u16,
        /// Tag of the public key of the private key in the `.private` file.
        private: u16,
    },
    /// A time in the `.private` file is malformed.
    #[error(
        "the .private file has a malformed time, \"{event}: {value}\": expected YYYYMMDDHHmmSS; set it with dnssec-settime, or remove the line"
    )]
    Time {
        /// The name of the event in the file.
        event: &'static str,
        /// The text in the file.
        value: String,
    },
    /// The file name is the name of another key.
    #[error(
        "the files are named {found}, but contain the key {expected}: rename them, or restore the .key file if it was altered"
    )]
    BaseName {
        /// Base name of the key in the files.
        expected: String,
        /// Base name of the files.
        found: String,
    },
}
