//! The secret key of anonymisation.

use super::error::KeyError;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use zeroize::Zeroizing;

/// Length of a key in octets: the AES-128 key of Crypto-PAn (prefix-preserving anonymisation of IP
/// addresses, Xu et al. 2002), and the block from which it derives its padding.
const KEY_SIZE: usize = 32;
/// Maximum octets that are read from a key file: the digits and some white space.
const FILE_OCTETS_MAX: u64 = 256;

/// A key of 32 octets. With the same key, an address or name always has the same replacement. The
/// key is wiped from memory when it is dropped.
#[derive(Clone)]
pub struct AnonymisationKey(Zeroizing<[u8; KEY_SIZE]>);

impl fmt::Debug for AnonymisationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnonymisationKey")
    }
}

impl AnonymisationKey {
    /// Creates a key from its octets.
    #[must_use]
    pub fn from_octets(octets: &[u8; KEY_SIZE]) -> Self {
        Self(Zeroizing::new(*octets))
    }

    /// Generates a key from the system's random octets.
    ///
    /// # Errors
    /// [`KeyError::Random`] if the system returns no random octets.
    pub fn generate() -> Result<Self, KeyError> {
        let mut octets = Zeroizing::new([0; KEY_SIZE]);
        getrandom::fill(&mut octets[..]).map_err(KeyError::Random)?;
        Ok(Self(octets))
    }

    /// Reads a key file: 64 hexadecimal digits. If the file does not exist, generates a key and
    /// creates the file with mode 0600.
    ///
    /// # Errors
    /// [`KeyError::Read`] if the file cannot be read, [`KeyError::Create`] if it cannot be created,
    /// [`KeyError::Random`] if no key can be generated, [`KeyError::Malformed`] if it is not a key,
    /// [`KeyError::Exposed`] if its mode gives the group or other users access.
    pub fn read_or_create(path: &Path) -> Result<Self, KeyError> {
        match path.metadata() {
            Ok(metadata) if !metadata.is_file() => Err(KeyError::Malformed { path: path.to_path_buf() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Self::generate()?;
                key.create(path).map_err(|source| KeyError::Create { path: path.to_path_buf(), source })?;
                Ok(key)
            }
            _ => Self::read(path),
        }
    }

    fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Read { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.to_path_buf() });
        }
        let mut text = Zeroizing::new(Vec::with_capacity(FILE_OCTETS_MAX as usize));
        file.take(FILE_OCTETS_MAX).read_to_end(&mut text).map_err(failed)?;
        let mut octets = Zeroizing::new([0; KEY_SIZE]);
        let digits = text.trim_ascii();
        let is_key =
            digits.len() == 2 * KEY_SIZE && HEXLOWER_PERMISSIVE.decode_mut(digits, &mut octets[..]).is_ok();
        if is_key { Ok(Self(octets)) } else { Err(KeyError::Malformed { path: path.to_path_buf() }) }
    }

    fn create(&self, path: &Path) -> io::Result<()> {
        let mut text = Zeroizing::new(vec![0; 2 * KEY_SIZE]);
        HEXLOWER.encode_mut(&self.0[..], &mut text);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&text)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// Returns the two halves: the AES key and the padding block of Crypto-PAn.
    pub(super) fn halves(&self) -> (&[u8], &[u8]) {
        self.0.split_at(KEY_SIZE / 2)
    }

    /// Derives a key for another purpose with BLAKE3. `purpose` is its context string.
    pub(super) fn derive(&self, purpose: &str) -> Zeroizing<[u8; KEY_SIZE]> {
        Zeroizing::new(blake3::derive_key(purpose, &self.0[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_missing_key_is_created_for_its_owner_and_read_back() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("key");
        let key = AnonymisationKey::read_or_create(&path).expect("created");
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        let again = AnonymisationKey::read_or_create(&path).expect("read");
        assert_eq!(key.halves(), again.halves());
        let other = AnonymisationKey::read_or_create(&folder.path().join("other")).expect("created");
        assert_ne!(key.halves(), other.halves());
        assert_eq!(format!("{key:?}"), "AnonymisationKey");
    }

    #[test]
    fn files_that_are_no_keys_or_are_exposed_are_errors() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("key");
        for text in ["", "00", &"0g".repeat(32), &"00".repeat(33), &"00".repeat(1000)] {
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
            let error = AnonymisationKey::read_or_create(&path).expect_err("no key");
            assert!(matches!(error, KeyError::Malformed { .. }), "{error}");
        }
        fs::write(&path, "Ab".repeat(32)).expect("written");
        assert_eq!(AnonymisationKey::read_or_create(&path).expect("a key").halves().0, [0xab; 16]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        let error = AnonymisationKey::read_or_create(&path).expect_err("exposed");
        assert!(matches!(error, KeyError::Exposed { .. }), "{error}");
        let error = AnonymisationKey::read_or_create(folder.path()).expect_err("a directory");
        assert!(matches!(error, KeyError::Malformed { .. }), "{error}");
        let error =
            AnonymisationKey::read_or_create(&folder.path().join("no/key")).expect_err("no directory");
        assert!(matches!(error, KeyError::Create { .. }), "{error}");
    }
}
