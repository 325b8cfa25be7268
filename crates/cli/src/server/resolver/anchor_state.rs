//! The state files of trust anchors that are updated automatically (RFC 5011): one file for each zone.

use crate::files::{FileError, count_text, read_public_text, write_output};
use crate::server::resolver::daemon::ResolverDaemon;
use nonesuch_crypto::DigestType;
use nonesuch_proto::Name;
use nonesuch_resolver::trust_anchors::managed::{Change, ManagedAnchor, ManagedAnchorError, StateError};
use nonesuch_resolver::trust_anchors::{TrustAnchors, ZoneAnchor};
use nonesuch_resolver::{AnchorEvent, Shared};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a state file, in octets. It has at most 64 keys.
const MAX_OCTETS: usize = 1 << 20;
/// Maximum length of the name of a zone in the name of its file, in bytes. The longest name has 1,020
/// in presentation form.
const MAX_STEM_BYTES: usize = 180;
const SUFFIX: &str = ".anchor";
/// Maximum number of files that a log event lists.
const MAX_LISTED: usize = 20;
/// Mode of the files: the keys are public.
const MODE: u32 = 0o644;

/// Why the states of trust anchors are not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AnchorStateError {
    #[error("{0}")]
    File(#[from] FileError),
    #[error("anchor-state: {}: it is no directory: name a directory", path.display())]
    NotDirectory { path: PathBuf },
    #[error("{}: {source}", path.display())]
    State { path: PathBuf, source: StateError },
    #[error("{0}")]
    Anchor(#[from] ManagedAnchorError),
}

/// The directory with the state files.
#[derive(Debug)]
pub(crate) struct AnchorFiles {
    directory: PathBuf,
    written: Mutex<Written>,
}

/// What the files have.
#[derive(Debug, Default)]
struct Written {
    /// The revision of the states in the files.
    revision: u64,
    states: Vec<(Name, String)>,
    /// Whether the last attempt failed.
    has_failed: bool,
}

impl AnchorFiles {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), written: Mutex::default() }
    }

    fn path(&self, apex: &Name) -> PathBuf {
        self.directory.join(file_stem(apex) + SUFFIX)
    }

    /// Reads the state of each zone. Zones without a file have only the configured trust anchors. `now`
    /// is in seconds since 1970.
    ///
    /// # Errors
    /// The directory does not exist, or a file cannot be read or is malformed.
    pub(crate) fn read(
        &self,
        configured: &TrustAnchors,
        now: u64,
    ) -> Result<Vec<ManagedAnchor>, AnchorStateError> {
        let directory = &self.directory;
        let metadata = std::fs::metadata(directory);
        if !metadata.map_err(|source| FileError::Read { path: directory.clone(), source })?.is_dir() {
            return Err(AnchorStateError::NotDirectory { path: directory.clone() });
        }
        let read_zone = |zone: &ZoneAnchor| {
            let path = self.path(&zone.apex);
            match read_public_text(&path, MAX_OCTETS) {
                Ok(text) => ManagedAnchor::parse(&text, zone, now)
                    .map_err(|source| AnchorStateError::State { path, source }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ManagedAnchor::new(zone, now)?),
                Err(source) => Err(FileError::Read { path, source }.into()),
            }
        };
        configured.iter().map(read_zone).collect()
    }

    /// Logs the files of zones without configured trust anchors, which are not used and not removed.
    pub(crate) fn log_unused(&self, configured: &TrustAnchors) {
        let used: Vec<PathBuf> = configured.iter().map(|zone| self.path(&zone.apex)).collect();
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|path| {
            path.extension().is_some_and(|extension| extension == &SUFFIX[1..]) && !used.contains(path)
        });
        let mut names: Vec<String> = files.map(|path| path.display().to_string()).collect();
        names.sort();
        if names.is_empty() {
            return;
        }
        let count = count_text(names.len(), "state file");
        names.truncate(MAX_LISTED);
        let files = names.join(", ");
        tracing::warn!(name: "anchor-state-unused", files, "anchor-state: {count} of zones without configured trust anchor: {files}; remove them if the zones are not configured again");
    }

    /// Writes the states that changed since the last call, each to its file.
    ///
    /// # Errors
    /// A file cannot be written. It then has its previous content, and the next call writes it again.
    pub(crate) fn write(&self, shared: &Shared) -> Result<(), FileError> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = shared.anchor_revision();
        if written.revision == revision {
            return Ok(());
        }
        for state in shared.anchor_states() {
            if written.states.contains(&state) {
                continue;
            }
            let (apex, text) = &state;
            write_output(&self.path(apex), MODE, |out| {
                out.write_all(text.as_bytes())
                    .map_err(|source| FileError::Write { path: self.path(apex), source })
            })?;
            written.states.retain(|(known, _)| known != apex);
            written.states.push(state);
        }
        written.revision = revision;
        Ok(())
    }

    /// Remembers whether the last attempt to write failed. Returns whether this is a new failure.
    fn note_failure(&self, has_failed: bool) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut written.has_failed, has_failed) && has_failed
    }
}

impl ResolverDaemon {
    /// Logs the events of trust anchors, and writes the states that changed.
    pub(super) fn store_anchors(&self) {
        let Some(files) = &self.anchor_files else { return };
        for (zone, event) in self.shared.take_anchor_events() {
            log_event(&zone.to_string(), event);
        }
        let written = files.write(&self.shared);
        let is_new = files.note_failure(written.is_err());
        if let (Err(error), true) = (written, is_new) {
            tracing::error!(name: "anchor-state-not-written", "anchor-state: {error}; the resolver repeats it each second");
        }
    }
}

fn log_event(zone: &str, event: AnchorEvent) {
    match event {
        AnchorEvent::Changed(Change::Key { tag, event, .. }) => {
            let change = event.name();
            tracing::info!(name: "trust-anchor-changed", zone, key_tag = tag, change, "zone {zone}: trust anchor {tag}: {change}");
        }
        AnchorEvent::Changed(Change::AllRevoked) => {
            tracing::warn!(name: "trust-anchors-revoked", zone, "zone {zone}: all trust anchors are revoked: configure a new one, or the zone is not validated with its own trust anchor");
        }
        AnchorEvent::Rejected(fault) => {
            tracing::warn!(name: "trust-anchors-not-checked", zone, "zone {zone}: trust anchors not updated: {fault}");
        }
        AnchorEvent::NoAnswer => {
            tracing::warn!(name: "trust-anchors-not-checked", zone, "zone {zone}: trust anchors not updated: no answer to the query for the DNSKEY RRset");
        }
    }
}

/// Returns the name of the file of a zone without its suffix: `root`, or the labels of the name. Letters,
/// digits, hyphens, underscores and dots between labels are unchanged, other octets are `%` and two
/// hexadecimal digits. A name that would be too long, or `root.`, is written in hexadecimal digits of
/// its SHA-256 digest.
fn file_stem(apex: &Name) -> String {
    if apex.view().is_root() {
        return "root".to_owned();
    }
    let canonical = apex.view().to_canonical();
    let mut stem = String::new();
    for octet in canonical.to_string().trim_end_matches('.').bytes() {
        match octet {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => stem.push(char::from(octet)),
            b'.' if !stem.is_empty() => stem.push('.'),
            _ => stem.push_str(&format!("%{octet:02x}")),
        }
    }
    if stem.len() > MAX_STEM_BYTES || stem == "root" {
        let digest = DigestType::SHA256.digest(&[canonical.wire()]).unwrap_or_default();
        stem = digest.iter().fold("%".to_owned(), |stem, octet| format!("{stem}{octet:02x}"));
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_safe_and_differ() {
        let long = format!("{0}.{0}.{0}.", "\\255".repeat(60));
        let other = format!("{0}.{0}.{1}.", "\\255".repeat(60), "\\255".repeat(59));
        let names = [
            ".",
            "root.",
            "example.",
            "EXAMPLE.org.",
            "a/b.",
            "\\.\\.example.",
            "%2e.",
            "\\000.x.",
            &long,
            &other,
        ];
        let stems: Vec<String> = names.iter().map(|name| file_stem(&name.parse().expect("a name"))).collect();
        let mut distinct = stems.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len(), "{stems:?}");
        for stem in &stems {
            assert!(!stem.contains('/') && !stem.starts_with('.') && stem.len() < 200, "{stem}");
        }
        assert_eq!(stems[..1], ["root"]);
        assert_eq!(stems[2..4], ["example", "example.org"]);
    }

    /// XF-074: a kill during a write leaves a part of the temporary file, and the previous file. A part
    /// of a state is never a state.
    #[test]
    fn a_kill_at_any_moment_of_a_write_leaves_a_whole_state() {
        const NOW: u64 = 1_790_812_800;
        let folder = tempfile::tempdir().expect("a directory");
        let files = AnchorFiles::new(folder.path());
        let configured = TrustAnchors::iana();
        let before = files.read(&configured, NOW).expect("the configured anchors");
        let text = before[0].to_text();
        std::fs::write(folder.path().join("root.anchor"), &text).expect("written");
        let part = folder.path().join(".nonesuch-ab12Cd.part");
        for cut in (0..100).map(|number| number * text.len() / 100) {
            std::fs::write(&part, &text[..cut]).expect("written");
            let after = files.read(&configured, NOW + 1).expect("the previous state");
            assert_eq!(after[0].to_text(), text, "{cut}");
        }
        for cut in (0..100).map(|number| number * text.len() / 100) {
            std::fs::write(folder.path().join("root.anchor"), &text[..cut]).expect("written");
            let fault = files.read(&configured, NOW).expect_err("a part of a state");
            assert!(matches!(fault, AnchorStateError::State { .. }), "{cut}: {fault}");
        }
        // The next write removes the part, and is complete.
        let shared = crate::server::resolver::shared(Default::default()).expect("a resolver");
        let now = nonesuch_net::machine::Now { instant: std::time::Instant::now(), unix: NOW };
        shared.manage_anchors(before, now);
        files.write(&shared).expect("written");
        let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a directory").flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(std::fs::read_to_string(names[0].path()).expect("a file"), text);
    }
}
