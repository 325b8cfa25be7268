//! What a service is to run, as plain values: whoever reads a configuration makes these of it.

use super::VersionError;
use crate::catalog::ProducedMember;
use crate::zones::ZonePolicy;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::verify::VERDICTS;
use nonesuch_proto::Name;
use nonesuch_secondary::inbound::TransferBounds;
use nonesuch_secondary::{TimeBounds, Timing};
use nonesuch_server::acl::{AccessEntry, AccessList, Prefix, Remote};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Signatures up to which [`VerifyChoice::Auto`] verifies all of them.
pub const FULL: u64 = 100_000;
/// Folder of the VRF key beside the file of a zone with NSEC5.
pub const NSEC5_FOLDER: &str = "nsec5";
/// Octets of a zone's journal by default.
pub(super) const JOURNAL: u64 = 64 << 20;

/// The zones of a server.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The folder in which published zones are kept; without it they last as long as the process.
    pub state_dir: Option<PathBuf>,
    /// The zones.
    pub zones: Vec<ZoneSettings>,
    /// What zones are made after that come from a catalog.
    pub templates: BTreeMap<String, ZoneTemplate>,
    /// Zones that are loaded side by side; 0: one for each core.
    pub jobs: usize,
    /// Seconds that the time of signatures is ahead of the clock, modulo 2^32; 0 but in experiments.
    pub clock_shift: u32,
}

/// One zone.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSettings {
    /// Its name, in lower case.
    pub apex: Name,
    /// Where its records come from.
    pub source: ZoneSource,
    /// How it is signed and denied.
    pub signing_mode: SigningMode,
    /// How much is verified before it is published.
    pub verify: VerifyChoice,
    /// Whether a version with faults is served.
    pub on_fault: OnFault,
    /// Whether a version that is not signed is refused.
    pub requires_dnssec: bool,
    /// How many records and types a name may have.
    pub limits: RecordLimits,
    /// Whether a version from a file is published that breaks validators which hold the previous version's keys.
    pub allows_unsafe_transition: bool,
    /// Who may ask for what is in the zone; `None` for everybody.
    pub query: Option<AccessList>,
    /// Whom it comes from and goes to.
    pub transfers: TransferSettings,
    /// Whether it is a catalog (RFC 9432).
    pub catalog: Option<CatalogSettings>,
}

/// Number of records of one type, and of types, above which the server logs a warning where no limit is configured.
pub const MANY: u32 = 100;

/// How many records of one type, and how many types, a name may have. A version that has more is rejected; where nothing is
/// configured, it is served with a warning above [`MANY`]. 0 allows any number without a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordLimits {
    /// Records of one type at one name.
    pub records_per_type: Option<u32>,
    /// Types at one name.
    pub types_per_name: Option<u32>,
}

/// Where the records of a zone come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneSource {
    /// A zone file, a compiled zone or an image.
    File(PathBuf),
    /// What can be read once, as standard input and pipes can; by this name.
    Stream(PathBuf),
    /// The primaries of [`TransferSettings`].
    Primaries,
    /// The server makes them itself, and publishes them.
    Producer,
}

impl ZoneSource {
    /// The file, or what stands for one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Stream(path) => Some(path),
            Self::Primaries | Self::Producer => None,
        }
    }
}

/// Where signatures and denials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningMode {
    /// From the zone, or it has none; a zone with NSEC5 has its VRF key in the folder `nsec5` beside its file.
    AsLoaded,
    /// Denials, and all signatures that the zone has not, are made when asked.
    Online(OnlineSigning),
    /// The zone has NSEC5.
    Nsec5 {
        /// Folder of the VRF key and of the stored proofs.
        keys: PathBuf,
    },
}

/// How a zone is signed online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSigning {
    /// A mechanism whose records are made when asked.
    pub mechanism: Mechanism,
    /// Folder of the key files.
    pub keys: PathBuf,
    /// Validity of signatures, in seconds.
    pub validity: u32,
    /// Whether the times in the key files are ignored: every key is published and signs.
    pub ignore_key_times: bool,
}

/// How much of a signed zone is verified before it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum VerifyChoice {
    /// [`Full`](Self::Full) up to [`FULL`] signatures, and [`Changed`](Self::Changed) above.
    #[default]
    Auto,
    /// Everything.
    Full,
    /// Chain, bit maps and times of the whole zone, and the signatures of what differs from the zone that was published
    /// before; everything where there is none that was verified.
    Changed,
    /// [`Full`](Self::Full) up to [`FULL`] signatures, and [`Structural`](Self::Structural) above: nobody waits for long.
    Quick,
    /// Everything but the mathematics of signatures.
    Structural,
    /// Nothing: the zone is served as it comes.
    Nothing,
}

/// The action on a version of a zone in which verification finds faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFault {
    /// It is rejected: the previous version stays. Default for zone files.
    #[default]
    Reject,
    /// It is served, and its faults are warned of. Default for zones from primaries: a primary that begins to sign a zone, or
    /// changes its chain of denial, publishes versions in between (RFC 5155 §10.4, §10.5), and a secondary that rejects them
    /// takes the zone away from clients that do not validate.
    Warn,
}

/// Whom a zone comes from and goes to.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferSettings {
    /// The servers that the zone is transferred from.
    pub primaries: Vec<Remote>,
    /// Who may transfer it from us.
    pub transfer: AccessList,
    /// Who may tell us that it has changed, beside the primaries.
    pub notify_from: AccessList,
    /// Who is told that it has changed.
    pub also_notify: Vec<Remote>,
    /// Octets of the journal that incremental transfers are made of; 0 for none.
    pub journal_octets: u64,
    /// Bounds of the SOA record's refresh time, in seconds.
    pub refresh: RangeInclusive<u32>,
    /// Bounds of its retry time.
    pub retry: RangeInclusive<u32>,
    /// Bounds of its expire time.
    pub expire: RangeInclusive<u32>,
    /// Whether the primaries are asked for the steps from the version that is here (IXFR).
    pub request_ixfr: bool,
    /// Bounds of one transfer.
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
            journal_octets: JOURNAL,
            refresh: range(refresh),
            retry: range(retry),
            expire: range(expire),
            request_ixfr: true,
            bounds: TransferBounds::default(),
        }
    }
}

/// What a catalog zone is to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogSettings {
    /// It lists zones of this server.
    Producer {
        /// The zones; labels are looked up in the catalogs that they come from.
        members: Vec<ProducedMember>,
    },
    /// Its members are served.
    Consumer {
        /// The template of members without a group, or of a group that is not named here.
        template: String,
        /// The templates of groups.
        groups: BTreeMap<String, String>,
    },
}

/// What a zone is made after that comes from a catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneTemplate {
    settings: ZoneSettings,
}

impl ZoneTemplate {
    /// A template whose zones have these settings but for the name, which stands in paths where the settings have
    /// `{zone}`.
    #[must_use]
    pub const fn new(settings: ZoneSettings) -> Self {
        Self { settings }
    }

    /// What zones of it are like.
    #[must_use]
    pub const fn settings(&self) -> &ZoneSettings {
        &self.settings
    }

    /// The settings of a zone of this template.
    #[must_use]
    pub fn for_member(&self, apex: Name) -> ZoneSettings {
        ZoneSettings { apex, ..self.settings.clone() }.with_zone_name()
    }
}

impl TransferSettings {
    /// Bounds of the SOA record's times.
    pub(super) fn timing(&self) -> Timing {
        let span = |range: &RangeInclusive<u32>| TimeBounds { min: *range.start(), max: *range.end() };
        Timing { refresh: span(&self.refresh), retry: span(&self.retry), expire: span(&self.expire) }
    }
}

impl ZoneSettings {
    /// A zone from a file, served as it is, to nobody else.
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

    /// The settings with the zone's name in paths, in the place of `{zone}`.
    #[must_use]
    pub fn with_zone_name(mut self) -> Self {
        let apex = &self.apex;
        match &mut self.source {
            ZoneSource::File(file) => fill_in(file, apex),
            ZoneSource::Stream(_) | ZoneSource::Primaries | ZoneSource::Producer => {}
        }
        match &mut self.signing_mode {
            SigningMode::Online(OnlineSigning { keys, .. }) | SigningMode::Nsec5 { keys } => {
                fill_in(keys, apex)
            }
            SigningMode::AsLoaded => {}
        }
        self
    }

    /// The time at which the times in key files are read, where it is `now`; `None` where they are ignored.
    pub(super) const fn key_time(&self, now: u32) -> Option<u32> {
        match self.signing_mode {
            SigningMode::Online(OnlineSigning { ignore_key_times: true, .. }) => None,
            _ => Some(now),
        }
    }

    /// Whether a version is served that was not verified without fault.
    pub(super) fn serves_faulty(&self) -> bool {
        self.on_fault == OnFault::Warn || self.verify == VerifyChoice::Nothing
    }

    /// Who may do what with the zone, for those who answer.
    #[must_use]
    pub fn policy(&self) -> ZonePolicy {
        ZonePolicy {
            query: self.query.clone().filter(|list| !list.is_anybody()),
            transfer: self.transfers.transfer.clone(),
            notify_from: self.notify_from(),
            also_notify: self.transfers.also_notify.clone(),
            is_secondary: self.source == ZoneSource::Primaries,
        }
    }

    /// Who may tell that the zone has changed: those who are named, and the primaries. A primary that has a key signs with it:
    /// an address can be forged, and each NOTIFY has primaries asked.
    fn notify_from(&self) -> AccessList {
        let mut entries = self.transfers.notify_from.entries().to_vec();
        entries.extend(self.transfers.primaries.iter().filter_map(|remote| {
            let address = remote.address.ip().to_canonical();
            let prefix = Prefix::of_host(address)?;
            Some(AccessEntry { prefix: Some(prefix), key: remote.key.clone(), ..AccessEntry::default() })
        }));
        AccessList::new(entries)
    }

    /// The folder of the VRF key of a zone with NSEC5.
    pub(super) fn nsec5_directory(&self) -> Result<PathBuf, VersionError> {
        let folder = match (&self.signing_mode, self.source.path()) {
            (SigningMode::Nsec5 { keys }, _) => return Ok(keys.clone()),
            (_, Some(file)) => file.parent().unwrap_or_else(|| Path::new("")).join(NSEC5_FOLDER),
            _ => return Err(VersionError::Nsec5KeysNeeded { folder: None }),
        };
        if folder.is_dir() { Ok(folder) } else { Err(VersionError::Nsec5KeysNeeded { folder: Some(folder) }) }
    }

    /// A digest of the settings that versions of a zone are verified by, and of the program. `None` where key files are also
    /// needed.
    pub(super) fn verification_digest(&self) -> Option<String> {
        if self.signing_mode != SigningMode::AsLoaded {
            return None;
        }
        let settings = (self.verify, self.on_fault, self.requires_dnssec, self.limits);
        let primaries = &self.transfers.primaries;
        let text = format!("{} {VERDICTS} {settings:?} {primaries:?}", env!("CARGO_PKG_VERSION"));
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes()).update(&nonesuch_crypto::tables_digest());
        Some(hasher.finalize().to_hex().to_string())
    }

    /// Whether a version is rejected that breaks validators which hold the previous version's keys. For a transferred zone the
    /// primary has decided.
    pub(super) const fn rejects_unsafe_transitions(&self) -> bool {
        matches!(self.source, ZoneSource::File(_) | ZoneSource::Stream(_)) && !self.allows_unsafe_transition
    }

    /// Whether the zone's records are held in memory beside its image: for those who transfer it or are told of it, and to
    /// read a catalog.
    pub(super) fn holds_contents(&self) -> bool {
        let transfers = &self.transfers;
        !transfers.transfer.entries().is_empty()
            || !transfers.also_notify.is_empty()
            || self.catalog.is_some()
            || self.source.path().is_none()
            // It cannot be read again when other keys become active.
            || matches!((&self.source, &self.signing_mode), (ZoneSource::Stream(_), SigningMode::Online(_)))
    }
}

/// Stands for the zone's name in paths.
const ZONE_MARK: &str = "{zone}";

/// Puts the zone's name in the place of its mark, as in the names of the files that are kept of it: names come from catalogs too,
/// and none may lead to another folder.
fn fill_in(path: &mut PathBuf, apex: &Name) {
    if let Some(text) = path.to_str().filter(|text| text.contains(ZONE_MARK)) {
        *path = PathBuf::from(text.replace(ZONE_MARK, &super::state::file_stem(apex)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_paths_of_their_own() {
        let of = |making| ZoneSettings {
            signing_mode: making,
            ..ZoneSettings::of_file(Name::root(), "z/{zone}.db".into())
        };
        let template = ZoneTemplate::new(of(SigningMode::Nsec5 { keys: "keys/{zone}".into() }));
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
                SigningMode::Nsec5 { keys: format!("keys/{stem}").into() },
                "{apex}"
            );
        }
    }
}
