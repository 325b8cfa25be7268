//! Key files as BIND and ldns write them: `.key` with the DNSKEY record, `.private` with the private key.

use super::{KeyFileError, KeyPair, KeyRecord, KeyTimes, PROTOCOL, check_base_name};
use data_encoding::BASE64;
use nonesuch_crypto::PrivateKey;
use zeroize::Zeroizing;

/// TTL written in `.key` files, in seconds.
const TTL: u32 = 3600;

impl KeyPair {
    /// Text of the `.key` file: BIND's comment lines and the DNSKEY record.
    #[must_use]
    pub fn key_file_text(&self, times: &KeyTimes) -> String {
        let kind = match (self.is_revoked(), self.is_sep()) {
            (true, _) => "revoked key-signing",
            (false, true) => "key-signing",
            (false, false) => "zone-signing",
        };
        let (owner, flags, algorithm) = (&self.owner, self.flags, self.algorithm().0);
        let key = BASE64.encode(self.private.public_key());
        format!(
            "; This is a {kind} key, keyid {}, for {owner}\n{}\
             {owner} {TTL} IN DNSKEY {flags} {PROTOCOL} {algorithm} {key}\n",
            self.tag(),
            times.comments()
        )
    }

    /// Text of the `.private` file; wiped from memory when dropped.
    #[must_use]
    pub fn private_file_text(&self, times: &KeyTimes) -> Zeroizing<String> {
        let key = self.private.to_bind();
        // Room for all of it: a string that grows leaves a copy behind that nobody wipes.
        let mut text = Zeroizing::new(String::with_capacity(key.len() + 32 * times.len()));
        text.push_str(&key);
        times.push_private(&mut text);
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
