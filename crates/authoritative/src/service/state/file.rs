//! The state file of a zone: state that a restart needs in addition to the stored version and its
//! journal.
//!
//! The file is a JSON object with the version of the format. A file that cannot be read or parsed
//! is treated as missing: the server then loads, refreshes or transfers the zone like a new zone.

use super::super::image_inputs::ImageInputs;
use super::member::Membership;
use super::{
    Fingerprint, STATE_LOCK_COUNT, STATE_SUFFIX, StateDirectory, ZONE_SUFFIX, file_stem,
    is_written_by_server, legacy,
};
use nix::unistd::syncfs;
use nonesuch_proto::Name;
use nonesuch_secondary::{RejectedVersions, Timers};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

/// Version of the format.
const VERSION: u32 = 1;
/// The first bytes of every state file.
pub(super) const MAGIC: &[u8] = br#"{"nonesuch-"#;
/// Maximum size of a state file, in bytes.
const MAX_OCTETS: u64 = 16 << 20;

/// The stored state of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::service) struct StateFile {
    /// State of the stored image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::service) image: Option<ImageState>,
    /// The catalog that lists the zone as a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::service) member: Option<Membership>,
    /// The highest serial with which versions with different records were published. The journal
    /// must not contain changes from this serial or a lower one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::service) reused_serial: Option<u32>,
    /// Time at which a primary last confirmed the stored version, and the remaining time until
    /// expiry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::service) timers: Option<Timers>,
    /// Versions of primaries that were rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::service) rejected: Option<RejectedVersions>,
}

/// State of a stored image. It is valid only while the file of the stored version has this
/// fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct ImageState {
    /// Fingerprint of the image.
    pub(in crate::service) fingerprint: Fingerprint,
    /// Fingerprints of the files that the version was read from; empty if it was not read from
    /// files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::service) origin: Vec<Fingerprint>,
    /// Inputs of the image of a zone that is signed online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) inputs: Option<ImageInputs>,
}

/// The serialized form of the file: the version of the format, and the fields of `F`, which is
/// [`StateFile`] or a reference to it.
#[derive(Serialize, Deserialize)]
struct Envelope<F> {
    #[serde(rename = "nonesuch-state")]
    version: u32,
    #[serde(flatten)]
    facts: F,
}

impl StateFile {
    fn parse(octets: &[u8]) -> Option<Self> {
        let envelope: Envelope<Self> = serde_json::from_slice(octets).ok()?;
        (envelope.version == VERSION).then_some(envelope.facts)
    }

    fn to_octets(&self) -> io::Result<Vec<u8>> {
        let mut octets = serde_json::to_vec(&Envelope { version: VERSION, facts: self })?;
        octets.push(b'\n');
        Ok(octets)
    }

    /// Returns whether there is nothing to store.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl StateDirectory {
    /// Returns the stored state of a zone; the default state if no file is stored or readable.
    pub(in crate::service) fn read_state(&self, apex: &Name) -> StateFile {
        self.read_stem(&file_stem(apex))
    }

    /// Returns the state in the files with this stem.
    pub(in crate::service) fn read_stem(&self, stem: &str) -> StateFile {
        let path = self.state_path(stem);
        if !self.has_legacy_files {
            return read_state_file(&path).unwrap_or_default();
        }
        // The time is read before the content, because another thread may replace the file in
        // between.
        let modified = legacy::modified_at(&path);
        let stored = read_state_file(&path);
        let written_at = modified.filter(|_| stored.is_some());
        let mut state = stored.unwrap_or_default();
        legacy::LegacyFiles { directory: &self.zones, stem }.merge_into(&mut state, written_at);
        state
    }

    fn state_path(&self, stem: &str) -> PathBuf {
        self.zones.join(format!("{stem}.{STATE_SUFFIX}"))
    }

    /// Changes the stored state of a zone. Replaces the complete file, unless `change` changes
    /// nothing. A new file is durable only after [`sync`](Self::sync) and
    /// [`sync_names`](Self::sync_names).
    ///
    /// # Errors
    /// Returns an error if writing fails; the previous state then remains.
    pub(in crate::service) fn update(
        &self,
        apex: &Name,
        change: impl FnOnce(&mut StateFile),
    ) -> io::Result<()> {
        let stem = file_stem(apex);
        let _lock = self.lock_state(&stem);
        let before = self.read_stem(&stem);
        let mut state = before.clone();
        change(&mut state);
        if state == before {
            return Ok(());
        }
        self.write_state(&stem, &state)?;
        if self.has_legacy_files {
            self.sync(apex, STATE_SUFFIX)?;
            self.sync_names()?;
            legacy::LegacyFiles { directory: &self.zones, stem: &stem }.remove();
        }
        Ok(())
    }

    /// Changes the stored state as [`update`](Self::update) does. The state is durable when this
    /// returns.
    ///
    /// # Errors
    /// Returns an error if writing fails; the previous state then remains.
    pub(in crate::service) fn update_durably(
        &self,
        apex: &Name,
        change: impl FnOnce(&mut StateFile),
    ) -> io::Result<()> {
        self.update(apex, change)?;
        self.sync(apex, STATE_SUFFIX)?;
        self.sync_names()
    }

    /// Writes the state of a zone, or removes the file if the state is empty. The caller holds the
    /// lock of [`lock_state`](Self::lock_state).
    fn write_state(&self, stem: &str, state: &StateFile) -> io::Result<()> {
        let path = self.state_path(stem);
        if state.is_empty() {
            self.remove_file(stem, STATE_SUFFIX);
        } else {
            let octets = state.to_octets()?;
            let temporary = self.write_temporary(|out| out.write_all(&octets))?;
            // A file that replaces another one must be complete on disk before it is renamed.
            // Otherwise a crash could lose both. Without a previous file, the caller syncs the new
            // one if it must be durable.
            if fs::symlink_metadata(&path).is_ok() {
                temporary.as_file().sync_all()?;
            }
            Self::rename_temporary(temporary, &path, STATE_SUFFIX)?;
        }
        Ok(())
    }

    /// Locks the state file with this stem, so that no other thread changes it.
    pub(super) fn lock_state(&self, stem: &str) -> MutexGuard<'_, ()> {
        let hash = stem.bytes().fold(0usize, |sum, octet| sum.wrapping_mul(31) + usize::from(octet));
        self.state_locks[hash % STATE_LOCK_COUNT].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state of the stored image of a zone. If `change` leaves inputs of the image in
    /// the state, the state is durable when this returns.
    ///
    /// # Errors
    /// Returns an error if no version of the zone is stored, or if writing fails; the previous state
    /// then remains.
    pub(in crate::service) fn note_image(
        &self,
        apex: &Name,
        change: impl FnOnce(&mut ImageState),
    ) -> io::Result<()> {
        let fingerprint = Fingerprint::of(&self.path(apex, ZONE_SUFFIX))?;
        let mut has_inputs = false;
        self.update(apex, |state| {
            let known = state.image.take().filter(|image| image.fingerprint == fingerprint);
            let mut image = known.unwrap_or(ImageState { fingerprint, origin: Vec::new(), inputs: None });
            change(&mut image);
            has_inputs = image.inputs.is_some();
            state.image = Some(image);
        })?;
        if has_inputs { self.sync(apex, STATE_SUFFIX).and_then(|()| self.sync_names()) } else { Ok(()) }
    }

    /// Returns the state of the stored image of a zone, if it is known for the current file.
    fn image_state(&self, apex: &Name) -> Option<ImageState> {
        let fingerprint = Fingerprint::of(&self.path(apex, ZONE_SUFFIX)).ok()?;
        self.read_state(apex).image.filter(|image| image.fingerprint == fingerprint)
    }

    /// Returns the inputs of the stored image of a zone that is signed online.
    pub(in crate::service) fn image_inputs(&self, apex: &Name) -> Option<ImageInputs> {
        self.image_state(apex)?.inputs
    }

    /// Returns whether the stored version of a zone was read from files with these fingerprints.
    pub(in crate::service) fn was_read_from(&self, apex: &Name, origin: &[Fingerprint]) -> bool {
        !origin.is_empty() && self.image_state(apex).is_some_and(|image| image.origin == origin)
    }

    /// Replaces the legacy state files. If this fails, they remain and are still read.
    pub(super) fn replace_legacy(&mut self) {
        let stems = legacy::stems(&self.zones);
        if stems.is_empty() {
            return;
        }
        self.has_legacy_files = true;
        let written = stems.iter().try_for_each(|stem| {
            let _lock = self.lock_state(stem);
            self.write_state(stem, &self.read_stem(stem))
        });
        // One system call for all files: a directory may contain the files of a hundred thousand
        // zones.
        let durable = written.and_then(|()| Ok(syncfs(File::open(&self.zones)?)?));
        match durable {
            Ok(()) => {
                let files = |stem| legacy::LegacyFiles { directory: &self.zones, stem };
                stems.iter().for_each(|stem| files(stem).remove());
                self.has_legacy_files = false;
                tracing::info!(
                    name: "state-files-replaced",
                    zones = stems.len(),
                    "state-dir: replaced the state files of an earlier version"
                );
            }
            Err(error) => {
                tracing::warn!(name: "state-files-not-replaced", %error, "state-dir: cannot replace the state files of an earlier version; reading them");
            }
        }
    }
}

/// Reads the state file at `path`. Returns `None` if it is missing, unreadable or invalid, or if no
/// server wrote it.
fn read_state_file(path: &Path) -> Option<StateFile> {
    if !is_written_by_server(path, STATE_SUFFIX) {
        return None;
    }
    let mut octets = Vec::new();
    // A larger file is cut off here, and is then not valid JSON.
    File::open(path).ok()?.take(MAX_OCTETS).read_to_end(&mut octets).ok()?;
    StateFile::parse(&octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Group;
    use nonesuch_zone::Verification;

    const IMAGE: &[u8] = b"\x89NSCI\r\n\x1aimage";

    fn open_directory() -> (tempfile::TempDir, StateDirectory, Name) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        (dir, state, "example.".parse().unwrap())
    }

    fn full_state() -> StateFile {
        let fingerprint = Fingerprint { modified: (i64::MIN, 7), octets: u64::MAX, inode: 1, device: 2 };
        let verification = Verification::Full { at: u32::MAX };
        StateFile {
            image: Some(ImageState {
                fingerprint,
                origin: vec![fingerprint],
                inputs: Some(ImageInputs { digest: "ab".into(), verification, has_signed_keys: true }),
            }),
            member: Some(Membership {
                zone: "a\\000.example.".parse().unwrap(),
                catalog: "catalog.".parse().unwrap(),
                label: b"\0label".to_vec(),
                groups: vec![Group::from_rdata(b"\x03one"), Group::from_rdata(b"\x01\n\x03two")],
            }),
            reused_serial: Some(u32::MAX),
            timers: Some(Timers { serial: 7, refreshed: 1_750_000_000, left: Some(0) }),
            rejected: Some(RejectedVersions {
                judged_by: "these settings".into(),
                serials: vec![
                    ("192.0.2.1:53".parse().unwrap(), 7),
                    ("[2001:db8::1]:5300".parse().unwrap(), 0),
                ],
            }),
        }
    }

    /// The format of version 1. A change of the format needs a new version number, and version 1
    /// must remain readable.
    #[test]
    fn the_format_is_fixed() {
        let text = r#"{"nonesuch-state":1,"image":{"fingerprint":{"modified":[-9223372036854775808,7],"octets":18446744073709551615,"inode":1,"device":2},"origin":[{"modified":[-9223372036854775808,7],"octets":18446744073709551615,"inode":1,"device":2}],"inputs":{"digest":"ab","verification":{"full":{"at":4294967295}},"has-signed-keys":true}},"member":{"zone":"a\\000.example.","catalog":"catalog.","label":"006c6162656c","groups":["036f6e65","010a0374776f"]},"reused-serial":4294967295,"timers":{"serial":7,"refreshed":1750000000,"left":0},"rejected":{"judged-by":"these settings","serials":[["192.0.2.1:53",7],["[2001:db8::1]:5300",0]]}}
"#;
        assert_eq!(String::from_utf8(full_state().to_octets().unwrap()).unwrap(), text);
        assert_eq!(StateFile::parse(text.as_bytes()), Some(full_state()));
        assert!(text.as_bytes().starts_with(MAGIC));
    }

    #[test]
    fn an_invalid_file_is_treated_as_missing() {
        let octets = full_state().to_octets().unwrap();
        for end in 0..octets.len() - 1 {
            assert_eq!(StateFile::parse(&octets[..end]), None, "{end}");
        }
        let text = String::from_utf8(octets).unwrap();
        for (from, to) in [
            (r#""nonesuch-state":1"#, r#""nonesuch-state":2"#),
            ("4294967295", "4294967296"),
            ("006c", "00ZZ"),
            ("catalog.", "cata..log."),
            ("192.0.2.1:53", "192.0.2.1"),
            ("full", "all"),
        ] {
            let altered = text.replacen(from, to, 1);
            assert_ne!(altered, text);
            assert_eq!(StateFile::parse(altered.as_bytes()), None, "{to}");
        }
        assert_eq!(StateFile::parse(&[b'['; 1 << 20]), None);
        assert_eq!(StateFile::parse(br#"{"nonesuch-state":1}"#), Some(StateFile::default()));
    }

    #[test]
    fn state_is_stored_and_an_empty_file_is_removed() {
        let (dir, state, apex) = open_directory();
        assert_eq!(state.read_state(&apex), StateFile::default());
        state.update(&apex, |stored| *stored = full_state()).unwrap();
        assert_eq!(state.read_state(&apex), full_state());
        state.update_durably(&apex, |stored| stored.reused_serial = None).unwrap();
        drop(state);
        let state = StateDirectory::open(dir.path()).unwrap();
        assert_eq!(state.read_state(&apex), StateFile { reused_serial: None, ..full_state() });
        state.remove_versions(&apex);
        let left = StateFile { image: None, reused_serial: None, ..full_state() };
        assert_eq!(state.read_state(&apex), left, "state that does not belong to the versions remains");
        state.update(&apex, |stored| *stored = StateFile::default()).unwrap();
        assert_eq!(fs::read_dir(StateDirectory::zones_directory(dir.path())).unwrap().count(), 0);
    }

    #[test]
    fn concurrent_changes_are_all_stored() {
        let (_dir, state, apex) = open_directory();
        std::thread::scope(|scope| {
            for number in 0..8u16 {
                let (state, apex) = (&state, &apex);
                scope.spawn(move || {
                    let change = |stored: &mut StateFile| {
                        let empty = || RejectedVersions { judged_by: String::new(), serials: Vec::new() };
                        let address = ([127, 0, 0, 1], number).into();
                        stored.rejected.get_or_insert_with(empty).serials.push((address, 0));
                    };
                    (0..20).for_each(|_| state.update(apex, change).unwrap());
                });
            }
        });
        assert_eq!(state.read_state(&apex).rejected.unwrap().serials.len(), 160);
    }

    #[test]
    fn the_state_of_an_image_is_valid_only_for_that_file() {
        let (dir, state, apex) = open_directory();
        let source = dir.path().join("source");
        fs::write(&source, "first").unwrap();
        let origin = [Fingerprint::of(&source).unwrap()];
        let inputs = full_state().image.unwrap().inputs;
        assert!(state.note_image(&apex, |_| {}).is_err(), "there is no image");
        state.write(&apex, ZONE_SUFFIX, |out| out.write_all(IMAGE)).unwrap();
        assert!(!state.was_read_from(&apex, &origin) && !state.was_read_from(&apex, &[]));
        state.note_image(&apex, |image| image.inputs.clone_from(&inputs)).unwrap();
        state.note_image(&apex, |image| image.origin = origin.to_vec()).unwrap();
        assert_eq!(state.image_inputs(&apex), inputs);
        assert!(state.was_read_from(&apex, &origin) && !state.was_read_from(&apex, &[origin[0], origin[0]]));
        fs::write(&source, "second").unwrap();
        assert!(!state.was_read_from(&apex, &[Fingerprint::of(&source).unwrap()]));
        // A new file with the same content.
        state.write(&apex, ZONE_SUFFIX, |out| out.write_all(IMAGE)).unwrap();
        assert!(!state.was_read_from(&apex, &origin) && state.image_inputs(&apex).is_none());
    }
}
