//! The key files of a zone in a directory. The caller reads the files and passes their names and
//! texts as [`KeyFiles`].
//!
//! A key has two files, `K<zone>+<algorithm>+<tag>.key` and `.private`, as in BIND. The file name
//! determines the zone of a key. The times in the private file determine its phase
//! ([`KeyDirectory::zone_keys`]).

mod error;
mod name;

pub use error::KeyDirectoryError;
pub use name::{
    KEY_FILE_SUFFIXES, is_key_file_of, is_private_key, key_file_paths, owner_in_base_name, zone_in_base_name,
};

use super::{
    CdsPhase, KeyEvent, KeyFileError, KeyPair, KeyPhase, KeyRecord, KeySet, KeyTimes, KeyTiming, PassiveKey,
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
    /// Sorted by base name.
    files: Vec<KeyFiles>,
}

/// A key whose `.private` file is not in the directory.
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
    /// The keys without a `.private` file. Their times are unknown, and they count as published.
    pub offline: Vec<OfflineKey>,
    /// The keys that are published or withdrawn and do not sign, and the phases of the CDS and
    /// CDNSKEY records.
    pub timing: KeyTiming,
}

impl ZoneKeys {
    /// The DNSKEY records of all keys that are published.
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
        files.retain(|files| is_key_file_of(&files.base, zone));
        if files.iter().all(|files| files.public.is_none()) {
            return Err(KeyDirectoryError::NoKeys { dir: path.to_path_buf(), zone: zone.clone() });
        }
        files.sort_unstable_by(|a, b| a.base.cmp(&b.base));
        Ok(Self { path: path.to_path_buf(), zone: zone.clone(), files })
    }

    /// The keys, classified by the times in their files at `now` (seconds since 1970). `None`
    /// ignores the times: all keys with a private file sign.
    ///
    /// # Errors
    /// If a file cannot be read or is malformed. With a time, also [`KeyDirectoryError::NoActiveKey`]
    /// if private files exist and none of their keys signs.
    pub fn zone_keys(self, now: Option<u32>) -> Result<ZoneKeys, KeyDirectoryError> {
        let mut reader = Reader::default();
        for files in self.files {
            reader.read(&self.path, files, now)?;
        }
        let Reader { keys, has_private, next_activation: next } = reader;
        match now.filter(|_| keys.pairs.is_empty() && has_private) {
            Some(now) => Err(KeyDirectoryError::NoActiveKey { dir: self.path, zone: self.zone, now, next }),
            None => Ok(keys),
        }
    }

    /// The keys for signing a zone at `now`, classified as in [`KeyDirectory::zone_keys`]. A KSK
    /// needs only its `.key` file if another key signs.
    ///
    /// # Errors
    /// As [`KeyDirectory::zone_keys`], [`KeySet::new`], [`KeySet::with_offline`] and
    /// [`KeySet::with_key_timing`], and if any other file of a key is missing.
    pub fn key_set(self, now: Option<u32>) -> Result<KeySet, KeyDirectoryError> {
        if let Some(incomplete) = self.files.iter().find(|files| files.public.is_none()) {
            // Without its `.key` file, the key would disappear from the zone without a message.
            let [_, path] = key_file_paths(&self.path, &incomplete.base);
            return Err(KeyDirectoryError::NoPublicFile { path });
        }
        let zone = self.zone.clone();
        let ZoneKeys { pairs, offline, timing } = self.zone_keys(now)?;
        // The zone may already have the signatures of a KSK without a private key. The signer
        // checks this.
        if let Some(key) = offline.iter().find(|key| pairs.is_empty() || !key.record.is_sep()) {
            return Err(KeyDirectoryError::NoPrivateFile { path: key.path.clone() });
        }
        let offline = offline.into_iter().map(|key| key.record).collect();
        Ok(KeySet::new(&zone, pairs)?.with_offline(offline)?.with_key_timing(timing)?)
    }

    /// The first time after `now` at which the times in the files change the phase of a key or of
    /// its CDS and CDNSKEY records; `None` if there is no such time. Ignores files that cannot be
    /// read.
    #[must_use]
    pub fn next_event(&self, now: u32) -> Option<u32> {
        let keys = self.files.iter().filter(|files| files.public.is_some());
        let times = keys.filter_map(|files| {
            let text = files.private.as_ref()?.as_ref().ok()?;
            KeyTimes::parse(text).ok().flatten()?.next_event(now)
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
    /// Base name of the key with the earliest activation after the current time, and that time.
    next_activation: Option<(String, u32)>,
}

impl Reader {
    /// Adds the key of `files` in the directory `dir`.
    fn read(&mut self, dir: &Path, files: KeyFiles, now: Option<u32>) -> Result<(), KeyDirectoryError> {
        let [key_path, private_path] = key_file_paths(dir, &files.base);
        // Without a `.key` file, the key is not part of the DNSKEY RRset.
        let Some(public) = files.public else { return Ok(()) };
        let text = public.map_err(read_error(&key_path))?;
        let record = read_record(&text, &files.base).map_err(file_error(&key_path))?;
        let Some(private) = files.private else {
            self.keys.offline.push(OfflineKey { record, path: key_path });
            return Ok(());
        };
        let text = private.map_err(read_error(&private_path))?;
        self.add(&files.base, record, &text, now).map_err(file_error(&private_path))
    }

    /// Adds the key of `record` with the text of its private file.
    fn add(
        &mut self,
        base: &str,
        mut record: KeyRecord,
        private: &str,
        time: Option<u32>,
    ) -> Result<(), KeyFileError> {
        self.has_private = true;
        let times = time.map(|_| KeyTimes::parse(private)).transpose()?.flatten().unwrap_or_default();
        // Without a time, `times` is empty, and the phase does not depend on `now`.
        let now = time.unwrap_or_default();
        let phase = times.phase(now);
        let timing = &mut self.keys.timing;
        // The record in the zone can have the REVOKE flag although the record in the `.key` file
        // does not: a revocation time does not change the `.key` file.
        let [without_revoke, with_revoke] = record.rdata_without_and_with_revoke();
        if phase == KeyPhase::Deleted {
            timing.cds.add(&without_revoke, CdsPhase::Deleted);
            timing.withdrawn.extend([without_revoke, with_revoke]);
            return Ok(());
        }
        let mut pair = record.clone().into_key_pair(PrivateKey::from_bind(private)?)?;
        if phase == KeyPhase::Revoked {
            timing.cds.add(&without_revoke, CdsPhase::Deleted);
            timing.withdrawn.push(without_revoke);
            pair.revoke();
            record.revoke();
        }
        timing.cds.add(record.rdata(), times.cds_phase(now));
        match phase {
            phase if phase.signs() => self.keys.pairs.push(pair),
            phase if phase.is_published() => timing.passive.push(PassiveKey { record, phase }),
            _ => {}
        }
        let activation = times.get(KeyEvent::Activate).filter(|time| *time > now);
        let is_earlier = |time: &u32| self.next_activation.as_ref().is_none_or(|(_, next)| time < next);
        if let Some(time) = activation.filter(is_earlier) {
            self.next_activation = Some((base.to_owned(), time));
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

fn read_error(path: &Path) -> impl FnOnce(io::Error) -> KeyDirectoryError {
    move |source| KeyDirectoryError::ReadFile { path: path.to_path_buf(), source }
}

fn file_error(path: &Path) -> impl FnOnce(KeyFileError) -> KeyDirectoryError {
    move |source| KeyDirectoryError::File { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests;
