//! Key files in the format of BIND and ldns: the `.key` file contains the DNSKEY record, the
//! `.private` file the private key.

use super::{KeyFileError, KeyPair, KeyRecord, KeyTimes, PROTOCOL, check_base_name};
use data_encoding::BASE64;
use nonesuch_crypto::PrivateKey;
use zeroize::Zeroizing;

/// TTL of the DNSKEY record in generated `.key` files, in seconds.
const TTL: u32 = 3600;

impl KeyPair {
    /// Text of the `.key` file: comment lines as in BIND, and the DNSKEY record.
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
            times.key_file_comments()
        )
    }

    /// Text of the `.private` file, zeroized when dropped.
    #[must_use]
    pub fn private_file_text(&self, times: &KeyTimes) -> Zeroizing<String> {
        let key = self.private.to_bind();
        // Allocates the full capacity: a string that grows leaves a copy in memory that is not
        // zeroized.
        let mut text = Zeroizing::new(String::with_capacity(key.len() + 32 * times.len()));
        text.push_str(&key);
        times.push_private_file_lines(&mut text);
        text
    }

    /// Parses a key pair from the texts of its two files.
    ///
    /// # Errors
    /// If either text is malformed, if its key cannot be used, or if the texts are not of the same
    /// key.
    pub fn parse(key_file: &str, private_file: &str) -> Result<Self, KeyFileError> {
        let record = KeyRecord::parse(key_file)?;
        // A damaged public key does not match any private key. Report the damage, not the mismatch.
        record.check_public()?;
        record.into_key_pair(PrivateKey::from_bind(private_file)?)
    }

    /// Checks that `base_name` is the base name of the files of this key, [`KeyPair::base_name`].
    ///
    /// # Errors
    /// [`KeyFileError::BaseName`] if it is the name of another key.
    pub fn check_base_name(&self, base_name: &str) -> Result<(), KeyFileError> {
        check_base_name(self.base_name(), base_name)
    }
}
