//! The key files of a zone in a directory, as [`KeyFiles`] with file names and texts that the
//! caller passes.
//!
//! A key has two files, `K<zone>+<algorithm>+<tag>.key` and `.private`, as in BIND. The file names
//! determine the zone; the times in the private files determine the phase of each key
//! ([`KeyDirectory::zone_keys`]).

mod error;
mod name;

pub use error::KeyDirectoryError;
pub use name::{SUFFIXES, file_paths, is_of_zone, is_private_key, owner_of, zone_of};

use super::{
    KeyEvent, KeyFileError, KeyPair, KeyPhase, KeyRecord, KeySet, KeyTimes, PassiveKey, SyncPhase, Timing,
};
use nonesuch_crypto::PrivateKey;
use nonesuch_proto::Name;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The text of a file, or the error of reading it; `None` if the file does not exist.
pub type FileText = Option<io::Result<Zeroizing<String>>>;

/// The two files of a key.
#[derive(Debug)]
pub struct KeyFiles {
    /// Name of the files without `.key` and `.private`.
    pub base: String,
    /// The `.key` file.
    pub public: FileText,
    /// The `.private` file.
    pub private: FileText,
}

/// The key files of one zone in a directory.
#[derive(Debug)]
pub struct KeyDirectory {
    path: PathBuf,
    zone: Name,
    /// Sorted by name.
    files: Vec<KeyFiles>,
}

/// A key without a private file in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineKey {
    /// The DNSKEY record.
    pub record: KeyRecord,
    /// Its `.key` file.
    pub path: PathBuf,
}

/// The keys of a zone, classified by the times in their files.
#[derive(Debug, Default)]
pub struct ZoneKeys {
    /// The key pairs that sign.
    pub pairs: Vec<KeyPair>,
    /// The keys without a private file.
    pub offline: Vec<OfflineKey>,
    /// The other keys and the CDS and CDNSKEY records, according to the times.
    pub timing: Timing,
}

impl ZoneKeys {
    /// The records of all keys that are published.
    #[must_use]
    pub fn published(&self) -> Vec<KeyRecord> {
        let offline = self.offline.iter().map(|key| &key.record);
        let passive = self.timing.passive.iter().map(|key| &key.record);
        self.pairs.iter().map(KeyRecord::of).chain(offline.chain(passive).cloned()).collect()
    }
}

impl KeyDirectory {
    /// The key files of `zone` in the directory at `path`. Ignores files of other zones.
    ///
    /// # Errors
    /// [`KeyDirectoryError::NoKeys`] if `zone` has no `.key` file.
    pub fn new(path: &Path, zone: &Name, mut files: Vec<KeyFiles>) -> Result<Self, KeyDirectoryError> {
        files.retain(|files| is_of_zone(&files.base, zone));
        if files.iter().all(|files| files.public.is_none()) {
            return Err(KeyDirectoryError::NoKeys { dir: path.to_path_buf(), zone: zone.clone() });
        }
        files.sort_unstable_by(|a, b| a.base.cmp(&b.base));
        Ok(Self { path: path.to_path_buf(), zone: zone.clone(), files })
    }

    /// The keys, classified by the times in their files at `at` (seconds since 1970). `None`
    /// ignores the times.
    ///
    /// # Errors
    /// If a file cannot be read or is malformed, or if no key with a private file is active.
    pub fn zone_keys(self, at: Option<u32>) -> Result<ZoneKeys, KeyDirectoryError> {
        let mut reader = Reader::default();
        for files in self.files {
            reader.read(&self.path, files, at)?;
        }
        let Reader { keys, has_private, next } = reader;
        match at.filter(|_| keys.pairs.is_empty() && has_private) {
            Some(now) => Err(KeyDirectoryError::NoActiveKey { dir: self.path, zone: self.zone, now, next }),
            None => Ok(keys),
        }
    }

    /// The keys for signing a zone, classified as in [`KeyDirectory::zone_keys`]. KSKs need only
    /// their `.key` files.
    ///
    /// # Errors
    /// As [`KeyDirectory::zone_keys`] and [`KeySet::new`], and if a file of a key pair is missing.
    pub fn key_set(self, at: Option<u32>) -> Result<KeySet, KeyDirectoryError> {
        if let Some(lone) = self.files.iter().find(|files| files.public.is_none()) {
            // Without its `.key` file, the key would disappear from the zone without a message.
            let [_, path] = file_paths(&self.path, &lone.base);
            return Err(KeyDirectoryError::NoPublicFile { path });
        }
        let zone = self.zone.clone();
        let ZoneKeys { pairs, offline, timing } = self.zone_keys(at)?;
        // The signatures of KSKs may be part of the zone, which the signer checks.
        if let Some(key) = offline.iter().find(|key| pairs.is_empty() || !key.record.is_sep()) {
            return Err(KeyDirectoryError::NoPrivateFile { path: key.path.clone() });
        }
        let offline = offline.into_iter().map(|key| key.record).collect();
        Ok(KeySet::new(&zone, pairs)?.with_offline(offline)?.with_timing(timing)?)
    }

    /// The first time after `now` at which the times in the files change the phase of a key or of
    /// its CDS and CDNSKEY records. Ignores files that cannot be read.
    #[must_use]
    pub fn next_event(&self, now: u32) -> Option<u32> {
        let keys = self.files.iter().filter(|files| files.public.is_some());
        let times = keys.filter_map(|files| {
            let text = files.private.as_ref()?.as_ref().ok()?;
            KeyTimes::of_file(text).ok().flatten()?.next_event(now)
        });
        times.map(|(_, time)| time).min()
    }
}

/// Reads the files of the keys one after another.
#[derive(Default)]
struct Reader {
    keys: ZoneKeys,
    /// Whether a private file exists.
    has_private: bool,
    /// Base name of the next key that becomes active, and the time.
    next: Option<(String, u32)>,
}

impl Reader {
    fn read(&mut self, dir: &Path, files: KeyFiles, at: Option<u32>) -> Result<(), KeyDirectoryError> {
        let [key_path, private_path] = file_paths(dir, &files.base);
        // Without a `.key` file, the key is not part of the DNSKEY RRset.
        let Some(public) = files.public else { return Ok(()) };
        let text = public.map_err(unreadable(&key_path))?;
        let record = read_record(&text, &files.base).map_err(in_file(&key_path))?;
        let Some(private) = files.private else {
            self.keys.offline.push(OfflineKey { record, path: key_path });
            return Ok(());
        };
        let text = private.map_err(unreadable(&private_path))?;
        self.add(&files.base, record, &text, at).map_err(in_file(&private_path))
    }

    /// Adds the key of `record` with the text of its private file.
    fn add(
        &mut self,
        base: &str,
        mut record: KeyRecord,
        private: &str,
        at: Option<u32>,
    ) -> Result<(), KeyFileError> {
        self.has_private = true;
        let times = at.map(|_| KeyTimes::of_file(private)).transpose()?.flatten().unwrap_or_default();
        let now = at.unwrap_or_default();
        let phase = times.phase(now);
        let timing = &mut self.keys.timing;
        // The zone may have the record in the other form than the `.key` file: the revocation of a
        // key does not change the file.
        let [usual, revoked] = record.both_forms();
        if phase == KeyPhase::Deleted {
            timing.sync.add(&usual, SyncPhase::Deleted);
            timing.withdrawn.extend([usual, revoked]);
            return Ok(());
        }
        let mut pair = record.clone().join(PrivateKey::from_bind(private)?)?;
        if phase == KeyPhase::Revoked {
            timing.sync.add(&usual, SyncPhase::Deleted);
            timing.withdrawn.push(usual);
            pair.revoke();
            record.revoke();
        }
        timing.sync.add(record.rdata(), times.sync_phase(now));
        match phase {
            phase if phase.signs() => self.keys.pairs.push(pair),
            phase if phase.is_published() => timing.passive.push(PassiveKey { record, phase }),
            _ => {}
        }
        let activation = times.get(KeyEvent::Activate).filter(|time| *time > now);
        if let Some(time) = activation.filter(|time| self.next.as_ref().is_none_or(|(_, next)| time < next)) {
            self.next = Some((base.to_owned(), time));
        }
        Ok(())
    }
}

/// Reads the record of a `.key` file. The key must be usable and match the file name.
fn read_record(text: &str, base: &str) -> Result<KeyRecord, KeyFileError> {
    let record = KeyRecord::parse(text)?;
    record.check_public()?;
    record.check_base_name(base)?;
    Ok(record)
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> KeyDirectoryError {
    move |source| KeyDirectoryError::ReadFile { path: path.to_path_buf(), source }
}

fn in_file(path: &Path) -> impl FnOnce(KeyFileError) -> KeyDirectoryError {
    move |source| KeyDirectoryError::File { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests;
