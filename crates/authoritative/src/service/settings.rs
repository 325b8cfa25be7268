//! Settings of a service as plain values. A configuration parser creates them.

use super::VersionError;
use crate::catalog::ProducedMember;
use crate::zones::ZonePolicy;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::verify::VERIFICATION_RULES_VERSION;
use nonesuch_proto::Name;
use nonesuch_secondary::inbound::TransferBounds;
use nonesuch_secondary::{TimeBounds, Timing};
use nonesuch_server::acl::{AccessEntry, AccessList, Prefix, Remote};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Maximum number of signatures of a zone that [`VerifyChoice::Auto`] and [`VerifyChoice::Quick`]
/// verify completely.
pub const FULL_VERIFICATION_LIMIT: u64 = 100_000;
/// Name of the default directory of the VRF key of a zone with NSEC5. It is in the directory of the
/// zone file.
pub const NSEC5_DIRECTORY: &str = "nsec5";
/// Default size of the journal of a zone, in bytes: 64 MiB.
pub(super) const DEFAULT_JOURNAL_OCTETS: u64 = 64 << 20;

/// Settings of a service.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The state directory. Without it, published versions are lost when the process ends.
    pub state_dir: Option<PathBuf>,
    /// The configured zones.
    pub zones: Vec<ZoneSettings>,
    /// Templates for zones from catalogs.
    pub templates: BTreeMap<String, ZoneTemplate>,
    /// Number of zones that are loaded concurrently. With 0, this is the number of CPU cores, but
    /// at most 4.
    pub load_jobs: usize,
    /// Seconds added to the clock for the times of signatures, modulo 2^32. It is 0 except in
    /// experiments.
    pub clock_shift: u32,
}

/// Settings of one zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSettings {
    /// Name of the zone in lower case.
    pub apex: Name,
    /// Source of its records.
    pub source: ZoneSource,
    /// Source of its signatures and denials.
    pub signing_mode: SigningMode,
    /// How much to verify before publication.
    pub verify: VerifyChoice,
    /// Whether to serve a version with faults.
    pub on_fault: OnFault,
    /// Whether to reject an unsigned version.
    pub requires_dnssec: bool,
    /// Limits for the number of records and types at a name.
    pub limits: RecordLimits,
    /// Whether to publish a version from a file that validators with the keys of the previous
    /// version regard as bogus.
    pub allows_unsafe_transition: bool,
    /// Clients that may query the zone; `None` permits all clients.
    pub query: Option<AccessList>,
    /// Primaries, secondaries and access lists.
    pub transfers: TransferSettings,
    /// Whether the zone is a catalog (RFC 9432).
    pub catalog: Option<CatalogSettings>,
}

/// Maximum number of records of one type at a name, and of types at a name, without a warning.
/// Applies if no limit is configured.
pub const WARNING_LIMIT: u32 = 100;

/// Limits for the number of records of one type, and of types, at a name. A version that exceeds a
/// limit is rejected. If a limit is not configured (`None`), the version is served, with a warning
/// above [`WARNING_LIMIT`]. The limit 0 permits any number without a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordLimits {
    /// Maximum number of records of one type at one name.
    pub records_per_type: Option<u32>,
    /// Maximum number of types at one name.
    pub types_per_name: Option<u32>,
}

/// Source of the records of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneSource {
    /// A zone file, a compiled zone or an image.
    File(PathBuf),
    /// An input that can be read only once, such as standard input or a pipe, with this name for
    /// messages.
    Stream(PathBuf),
    /// The primaries in [`TransferSettings`].
    Primaries,
    /// The server generates the records and publishes them.
    Producer,
}

impl ZoneSource {
    /// Returns the path of the file, or the name of the stream.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Stream(path) => Some(path),
            Self::Primaries | Self::Producer => None,
        }
    }
}

/// Source of the signatures and denials of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningMode {
    /// The zone contains them, or is unsigned. For a zone with NSEC5, the VRF key is in the
    /// directory `nsec5` next to the zone file.
    AsLoaded,
    /// The server generates denials and missing signatures online.
    Online(OnlineSigning),
    /// The zone has NSEC5.
    Nsec5 {
        /// Directory of the VRF key and of the stored proofs.
        key_directory: PathBuf,
    },
}

/// Settings for online signing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSigning {
    /// The denial mechanism. It must generate its records online.
    pub mechanism: Mechanism,
    /// Directory of the key files.
    pub key_directory: PathBuf,
    /// Validity of signatures, in seconds.
    pub validity: u32,
    /// Whether to ignore the timing metadata in key files; every key is then published and signs.
    pub ignore_key_times: bool,
}

/// How much of a signed zone to verify before publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum VerifyChoice {
    /// [`Full`](Self::Full) for zones with at most [`FULL_VERIFICATION_LIMIT`] signatures,
    /// otherwise [`Changed`](Self::Changed).
    #[default]
    Auto,
    /// Verify everything.
    Full,
    /// Verify the chain, bit maps and times of the complete zone, and the signatures that differ
    /// from the previously published version. Verify everything if no verified previous version
    /// exists.
    Changed,
    /// [`Full`](Self::Full) for zones with at most [`FULL_VERIFICATION_LIMIT`] signatures,
    /// otherwise [`Structural`](Self::Structural), so that verification takes a short time.
    Quick,
    /// Verify everything except the mathematics of signatures.
    Structural,
    /// Verify nothing; the zone is served unchecked.
    Nothing,
}

/// Action on a version of a zone with faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFault {
    /// Reject it; the previous version remains. Default for zone files.
    #[default]
    Reject,
    /// Serve it and log warnings. Default for zones from primaries: a primary that begins to sign a
    /// zone, or changes its denial mechanism, publishes intermediate versions with faults (RFC 5155
    /// §10.4, §10.5). A secondary that rejected them would deprive clients without validation of
    /// the zone.
    Warn,
}

/// Primaries, secondaries, access lists and timing of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferSettings {
    /// Primaries from which the zone is transferred.
    pub primaries: Vec<Remote>,
    /// Clients that may transfer the zone from this server.
    pub transfer: AccessList,
    /// Servers that may send NOTIFY, in addition to the primaries.
    pub notify_from: AccessList,
    /// Servers that receive a NOTIFY when the zone changes.
    pub also_notify: Vec<Remote>,
    /// Maximum size in bytes of the journal for incremental transfers; 0 disables it.
    pub journal_octets: u64,
    /// Minimum and maximum of the refresh time in the SOA record, in seconds.
    pub refresh: RangeInclusive<u32>,
    /// Minimum and maximum of the retry time, in seconds.
    pub retry: RangeInclusive<u32>,
    /// Minimum and maximum of the expire time, in seconds.
    pub expire: RangeInclusive<u32>,
    /// Whether to request incremental transfers (IXFR) from the primaries.
    pub request_ixfr: bool,
    /// Limits for one transfer.
    pub bounds: TransferBounds,
}

impl Default for TransferSettings {
    fn default() -> Self {
        let Timing { refresh, retry, expire } = Timing::default();
        let range = |span: TimeBounds| span.min..=span.max;
        Self {
            primaries: Vec::new(),
            transfer: AccessList::default(),
            notify_from: AccessList::default(),
            also_notify: Vec::new(),
            journal_octets: DEFAULT_JOURNAL_OCTETS,
            refresh: range(refresh),
            retry: range(retry),
            expire: range(expire),
            request_ixfr: true,
            bounds: TransferBounds::default(),
        }
    }
}

/// The role of a catalog zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogSettings {
    /// The server produces the catalog, which lists its zones.
    Producer {
        /// The listed zones. A zone that moves from another catalog retains its label in that
        /// catalog.
        members: Vec<ProducedMember>,
    },
    /// The server serves the members of the catalog.
    Consumer {
        /// Template of members without a group, or with a group that `groups` does not contain.
        template: String,
        /// Templates by group.
        groups: BTreeMap<String, String>,
    },
}

/// A template for zones from catalogs.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneTemplate {
    settings: ZoneSettings,
}

impl ZoneTemplate {
    /// Creates a template. Its zones have these settings, except for the name. In paths, the name
    /// of the zone replaces `{zone}`.
    #[must_use]
    pub const fn new(settings: ZoneSettings) -> Self {
        Self { settings }
    }

    /// Returns the settings of the template.
    #[must_use]
    pub const fn settings(&self) -> &ZoneSettings {
        &self.settings
    }

    /// Returns the settings of a zone with this template.
    #[must_use]
    pub fn for_member(&self, apex: Name) -> ZoneSettings {
        ZoneSettings { apex, ..self.settings.clone() }.with_zone_name()
    }
}

impl TransferSettings {
    /// Returns the limits for the times in the SOA record.
    pub(super) fn timing(&self) -> Timing {
        let span = |range: &RangeInclusive<u32>| TimeBounds { min: *range.start(), max: *range.end() };
        Timing { refresh: span(&self.refresh), retry: span(&self.retry), expire: span(&self.expire) }
    }
}

impl ZoneSettings {
    /// Creates settings for a zone from a file that is served without online signing and cannot be
    /// transferred.
    #[must_use]
    pub fn of_file(apex: Name, file: PathBuf) -> Self {
        Self {
            apex,
            source: ZoneSource::File(file),
            signing_mode: SigningMode::AsLoaded,
            verify: VerifyChoice::Auto,
            on_fault: OnFault::Reject,
            requires_dnssec: false,
            limits: RecordLimits::default(),
            allows_unsafe_transition: false,
            query: None,
            transfers: TransferSettings::default(),
            catalog: None,
        }
    }

    /// Replaces `{zone}` in paths with the name of the zone.
    #[must_use]
    pub fn with_zone_name(mut self) -> Self {
        let apex = &self.apex;
        match &mut self.source {
            ZoneSource::File(file) => replace_placeholder(file, apex),
            ZoneSource::Stream(_) | ZoneSource::Primaries | ZoneSource::Producer => {}
        }
        match &mut self.signing_mode {
            SigningMode::Online(OnlineSigning { key_directory, .. })
            | SigningMode::Nsec5 { key_directory } => replace_placeholder(key_directory, apex),
            SigningMode::AsLoaded => {}
        }
        self
    }

    /// Returns the time at which timing metadata in key files is evaluated, which is `now`; `None`
    /// if the metadata is ignored.
    pub(super) const fn key_time(&self, now: u32) -> Option<u32> {
        match self.signing_mode {
            SigningMode::Online(OnlineSigning { ignore_key_times: true, .. }) => None,
            _ => Some(now),
        }
    }

    /// Returns whether a version with faults, or an unverified version, is served.
    pub(super) fn serves_faulty(&self) -> bool {
        self.on_fault == OnFault::Warn || self.verify == VerifyChoice::Nothing
    }

    /// Returns the access lists of the zone for workers.
    #[must_use]
    pub fn policy(&self) -> ZonePolicy {
        ZonePolicy {
            query_access: self.query.clone().filter(|list| !list.allows_all()),
            transfer_access: self.transfers.transfer.clone(),
            notify_from: self.notify_from(),
            also_notify: self.transfers.also_notify.clone(),
            is_secondary: self.source == ZoneSource::Primaries,
        }
    }

    /// Returns the servers that may send NOTIFY: those in the settings, and the primaries. If a
    /// primary has a TSIG key, its NOTIFY must be signed with it, because an address can be forged
    /// and each NOTIFY causes queries to primaries.
    fn notify_from(&self) -> AccessList {
        let mut entries = self.transfers.notify_from.entries().to_vec();
        entries.extend(self.transfers.primaries.iter().filter_map(|remote| {
            let address = remote.address.ip().to_canonical();
            let prefix = Prefix::of_address(address)?;
            Some(AccessEntry { prefix: Some(prefix), key: remote.key.clone(), ..AccessEntry::default() })
        }));
        AccessList::new(entries)
    }

    /// Returns the directory of the VRF key of a zone with NSEC5.
    pub(super) fn nsec5_directory(&self) -> Result<PathBuf, VersionError> {
        let directory = match (&self.signing_mode, self.source.path()) {
            (SigningMode::Nsec5 { key_directory }, _) => return Ok(key_directory.clone()),
            (_, Some(file)) => file.parent().unwrap_or_else(|| Path::new("")).join(NSEC5_DIRECTORY),
            _ => return Err(VersionError::Nsec5KeysNeeded { directory: None }),
        };
        if directory.is_dir() {
            Ok(directory)
        } else {
            Err(VersionError::Nsec5KeysNeeded { directory: Some(directory) })
        }
    }

    /// Returns a digest of the program and of the settings for the verification of a zone. Returns
    /// `None` if verification also depends on key files.
    pub(super) fn verification_digest(&self) -> Option<String> {
        if self.signing_mode != SigningMode::AsLoaded {
            return None;
        }
        let settings = (self.verify, self.on_fault, self.requires_dnssec, self.limits);
        let primaries = &self.transfers.primaries;
        let text =
            format!("{} {VERIFICATION_RULES_VERSION} {settings:?} {primaries:?}", env!("CARGO_PKG_VERSION"));
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes()).update(&nonesuch_crypto::tables_digest());
        Some(hasher.finalize().to_hex().to_string())
    }

    /// Returns whether to reject a version that validators with the keys of the previous version
    /// regard as bogus. For a transferred zone, the primary has decided.
    pub(super) const fn rejects_unsafe_transitions(&self) -> bool {
        matches!(self.source, ZoneSource::File(_) | ZoneSource::Stream(_)) && !self.allows_unsafe_transition
    }

    /// Returns whether the records of the zone are in memory in addition to the image. Transfers,
    /// NOTIFY and catalogs need them.
    pub(super) fn keeps_contents_in_memory(&self) -> bool {
        let transfers = &self.transfers;
        !transfers.transfer.entries().is_empty()
            || !transfers.also_notify.is_empty()
            || self.catalog.is_some()
            || self.source.path().is_none()
            // The stream cannot be read again when other keys become active.
            || matches!((&self.source, &self.signing_mode), (ZoneSource::Stream(_), SigningMode::Online(_)))
    }
}

/// Placeholder in paths of templates. The file stem of the zone replaces it.
const ZONE_PLACEHOLDER: &str = "{zone}";

/// Replaces [`ZONE_PLACEHOLDER`] with the file stem of the zone. The stem is safe in paths: names
/// also come from catalogs, and must not lead to another directory.
fn replace_placeholder(path: &mut PathBuf, apex: &Name) {
    if let Some(text) = path.to_str().filter(|text| text.contains(ZONE_PLACEHOLDER)) {
        *path = PathBuf::from(text.replace(ZONE_PLACEHOLDER, &super::state::file_stem(apex)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_separate_paths() {
        let of = |signing_mode| ZoneSettings {
            signing_mode,
            ..ZoneSettings::of_file(Name::root(), "z/{zone}.db".into())
        };
        let template = ZoneTemplate::new(of(SigningMode::Nsec5 { key_directory: "keys/{zone}".into() }));
        for (apex, stem) in [
            ("example.", "example"),
            ("a/b.example.", "a%2fb.example"),
            ("a_b.example.", "a_b.example"),
            ("\\.\\./x.", "%5c.%5c.%2fx"),
            (".", "@"),
        ] {
            let member = template.for_member(apex.parse().unwrap());
            assert_eq!(member.source, ZoneSource::File(format!("z/{stem}.db").into()), "{apex}");
            assert_eq!(
                member.signing_mode,
                SigningMode::Nsec5 { key_directory: format!("keys/{stem}").into() },
                "{apex}"
            );
        }
    }
}
