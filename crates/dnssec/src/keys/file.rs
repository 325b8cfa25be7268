//! Key files as BIND and ldns write them: `.key` with the DNSKEY record, `.private` with the private key.

use super::{KeyPair, KeyRecord, PROTOCOL, check_base_name};
use data_encoding::BASE64;
use nonesuch_crypto::{Algorithm, KeyError, PrivateKey};
use nonesuch_proto::{NameError, rdata, timestamp};
use zeroize::Zeroizing;

/// TTL written in `.key` files, in seconds.
const TTL: u32 = 3600;

/// Why two files are no key pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The `.key` file holds no DNSKEY record.
    #[error("the .key file holds no DNSKEY record (expected: \"example. IN DNSKEY 257 3 13 BASE64\")")]
    NoRecord,
    /// The `.key` file holds more than one record.
    #[error("the .key file holds more than one record: write each key to files of its own")]
    SecondRecord,
    /// The owner is no name.
    #[error("the owner in the .key file is no domain name: {0}")]
    Owner(NameError),
    /// The fields of the DNSKEY record are malformed.
    #[error("the DNSKEY record in the .key file is malformed: {0}")]
    Record(rdata::RdataFault),
    /// The flags or the protocol are not those of a zone's key.
    #[error(
        "the .key file has flags {flags} and protocol {protocol}: a zone key has flags 256 or 257 and protocol 3"
    )]
    NotAZoneKey {
        /// The flags.
        flags: u16,
        /// The protocol.
        protocol: u8,
    },
    /// The public key is malformed, or of a kind that is not used.
    #[error("the public key in the .key file: {0}; restore the file from a copy, or make another key")]
    Public(KeyError),
    /// The private key is unusable.
    #[error("the .private file: {0}; restore it from a copy")]
    Private(#[from] KeyError),
    /// The two files are of different algorithms.
    #[error(
        "the .key file is of algorithm {public}, the .private file of {private}: they are not of one key; restore the .key or .private file that belongs to the other"
    )]
    Algorithm {
        /// In the `.key` file.
        public: Algorithm,
        /// In the `.private` file.
        private: Algorithm,
    },
    /// The two files hold different public keys.
    #[error(
        "the .key file holds the public key {public}, but the .private file belongs to {private}: they are not of one key; restore the .key or .private file that belongs to the other"
    )]
    PublicKey {
        /// Tag of the key in the `.key` file.
        public: u16,
        /// Tag of the public key that belongs to the `.private` file.
        private: u16,
    },
    /// The files' name says another key.
    #[error(
        "the files are named {found}, but hold the key {expected}: rename them, or restore the .key file if it was altered"
    )]
    BaseName {
        /// Base name of the key that the files hold.
        expected: String,
        /// Base name of the files.
        found: String,
    },
}

impl KeyPair {
    /// Text of the `.key` file: BIND's comment line and the DNSKEY record.
    #[must_use]
    pub fn key_file_text(&self) -> String {
        let kind = match (self.is_revoked(), self.is_sep()) {
            (true, _) => "revoked key-signing",
            (false, true) => "key-signing",
            (false, false) => "zone-signing",
        };
        let (owner, flags, algorithm) = (&self.owner, self.flags, self.algorithm().0);
        let key = BASE64.encode(self.private.public_key());
        format!(
            "; This is a {kind} key, keyid {}, for {owner}\n\
             {owner} {TTL} IN DNSKEY {flags} {PROTOCOL} {algorithm} {key}\n",
            self.tag()
        )
    }

    /// Text of the `.private` file; wiped from memory when dropped.
    #[must_use]
    pub fn private_file_text(&self, times: &KeyTimes) -> Zeroizing<String> {
        let key = self.private.to_bind();
        // Room for all of it: a string that grows leaves a copy behind that nobody wipes.
        let mut text = Zeroizing::new(String::with_capacity(key.len() + 32 * times.0.len()));
        text.push_str(&key);
        for (event, seconds) in &times.0 {
            let mut digits = Vec::with_capacity(14);
            timestamp::push(*seconds, &mut digits);
            for part in [*event, ": ", &String::from_utf8_lossy(&digits), "\n"] {
                text.push_str(part);
            }
        }
        text
    }

    /// Reads a key pair from the texts of its two files.
    ///
    /// # Errors
    /// Where either text is malformed or its key cannot be used, or they are not of one key.
    pub fn parse(key_file: &str, private_file: &str) -> Result<Self, KeyFileError> {
        let record = KeyRecord::parse(key_file)?;
        // A damaged public key fits no private key: its own fault is the one to tell.
        record.check_public()?;
        record.join(PrivateKey::from_bind(private_file)?)
    }

    /// Checks that files of this key are named `base_name`, as [`KeyPair::base_name`] has it.
    ///
    /// # Errors
    /// [`KeyFileError::BaseName`] where they belong to another key.
    pub fn check_base_name(&self, base_name: &str) -> Result<(), KeyFileError> {
        check_base_name(self.base_name(), base_name)
    }
}

/// Events in the life of a key whose times BIND's tools keep in the `.private` file, as they name them.
const EVENTS: [&str; 9] = [
    "Created",
    "Publish",
    "Activate",
    "Revoke",
    "Inactive",
    "Delete",
    "DSPublish",
    "SyncPublish",
    "SyncDelete",
];

/// Times of a key's life for other tools, in seconds since 1970. We write them and leave the rest to those tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTimes(Vec<(&'static str, u32)>);

impl KeyTimes {
    /// The times of a key that is published and signs from `since` on: without such times `dnssec-signzone -S` and
    /// `named` leave a key alone.
    #[must_use]
    pub fn since(since: u32) -> Self {
        Self(EVENTS[..3].iter().map(|event| (*event, since)).collect())
    }

    /// The times in a `.private` file; `None` where it has none, as ldns and PowerDNS write it.
    #[must_use]
    pub fn of_file(private_file: &str) -> Option<Self> {
        let time = |event: &str| {
            let mut values = private_file.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = values.find(|(name, _)| name.trim() == event)?;
            // BIND may add the date in words behind it.
            timestamp::parse(value.split_whitespace().next()?.as_bytes())
        };
        let times: Vec<_> = EVENTS.into_iter().filter_map(|event| Some((event, time(event)?))).collect();
        (!times.is_empty()).then_some(Self(times))
    }
}
