//! The file of added zones: the configuration includes it, and the server writes it for `nonesuch
//! ctl zone add`.
//!
//! Before a change is written, the complete configuration is read with the change, so that the file
//! never contains text that the configuration reader rejects. The file is replaced as a whole;
//! comments in it are lost.

use super::include::read_regular;
use super::problem::ConfigLocation;
use super::section::Section;
use super::{Configuration, LoadedConfiguration, Problem, Problems, load, load_with};
use crate::files::{FileError, resolve_link, write_output};
use nonesuch_authoritative::service::{CatalogSettings, ZoneSettings};
use nonesuch_proto::Name;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use zeroize::Zeroizing;

/// Mode of a new file. It gives other users no access, because they may lack access to the
/// configuration, too.
const NEW_FILE_MODE: u32 = 0o640;
/// Maximum size of the file, in bytes; enough for several hundred thousand zones.
const MAX_FILE_BYTES: usize = 32 << 20;
/// First lines of the file.
const HEADER: &str = "# Written by `nonesuch ctl zone add` and `nonesuch ctl zone remove`. The server \
    replaces the whole file; comments are lost.\n\n";

/// Why a zone is not added or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AddedZonesError {
    #[error("no file for zones that are added while the server runs: set added-zones-file = \"PATH\" in \
        {} and reload", main.display())]
    NoFile { main: PathBuf },
    #[error("zone {apex} is already configured at {location}: `nonesuch ctl zone remove {apex}` removes it")]
    AlreadyAdded { apex: Name, location: ConfigLocation },
    #[error("zone {apex} is configured at {location}: change it there, then run `nonesuch ctl reload`")]
    DeclaredElsewhere { apex: Name, location: ConfigLocation },
    #[error("zone {apex} is not in the configuration: `nonesuch ctl zone status` lists the configured zones")]
    Unknown { apex: Name },
    #[error("zone {apex}: catalogs and zones with catalog-zone cannot be added: configure them in {}", main.display())]
    CatalogZone { apex: Name, main: PathBuf },
    #[error("{} would have {found} bytes, more than the maximum of {MAX_FILE_BYTES}: configure zones in \
        included files of your own", path.display())]
    TooLong { path: PathBuf, found: usize },
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {}", path.display(), link_error_text(source))]
    Link { path: PathBuf, source: io::Error },
    #[error("{}: invalid TOML: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    /// The problems that the configuration reader reports.
    #[error("{0}")]
    ConfigurationRejected(Problems),
    #[error(transparent)]
    Write(#[from] FileError),
}

/// The message about a symbolic link without a target, through which the file cannot be written.
pub(crate) fn link_error_text(error: &io::Error) -> String {
    format!("a symbolic link whose target cannot be found: {error}: create the target, or remove the link")
}

/// A change of the file that the configuration reader accepts and that is not written yet.
#[derive(Debug)]
pub(crate) struct AddedZonesChange {
    target: PathBuf,
    text: String,
    /// The complete configuration with the change.
    pub(crate) loaded: LoadedConfiguration,
}

impl AddedZonesChange {
    /// Replaces the file. Even if the process is killed, the file has either the old text or the
    /// new text.
    ///
    /// # Errors
    /// A write error. The file then has the old text.
    pub(crate) fn write(&self) -> Result<(), AddedZonesError> {
        // The mode is preserved, because an operator may have restricted the access.
        let mode =
            fs::metadata(&self.target).map_or(NEW_FILE_MODE, |found| found.permissions().mode() & 0o777);
        let text = format!("{HEADER}{}", self.text);
        let write = |out: &mut dyn io::Write| {
            let written = out.write_all(text.as_bytes());
            written.map_err(|source| FileError::Write { path: self.target.clone(), source })
        };
        self.confirm_written(&text, write_output(&self.target, mode, write))
    }

    /// The result of writing `text`. If an error occurs after the rename, the file contains the
    /// change, and the result is `Ok`: otherwise the server would not match its configuration.
    fn confirm_written(&self, text: &str, written: Result<(), FileError>) -> Result<(), AddedZonesError> {
        let Err(failure) = written else { return Ok(()) };
        if !fs::read(&self.target).is_ok_and(|found| found == text.as_bytes()) {
            return Err(failure.into());
        }
        tracing::warn!(name: "added-zones-not-synced", "added-zones-file: changed, and may be lost if the machine stops now: {failure}");
        Ok(())
    }

    /// The settings of a zone after the change.
    pub(crate) fn zone(&self, apex: &Name) -> Option<&ZoneSettings> {
        self.loaded.configuration.zones.iter().find(|zone| zone.apex == *apex)
    }
}

/// The current file of added zones.
struct AddedZonesFile {
    main: PathBuf,
    path: PathBuf,
    /// Path for writing: the target, if `path` is a symbolic link.
    target: PathBuf,
    table: Table,
}

impl AddedZonesFile {
    /// Reads the configuration at `main`, which must have no fault, and its file of added zones.
    fn open(main: &Path) -> Result<(Self, LoadedConfiguration), AddedZonesError> {
        let loaded = load(main).map_err(AddedZonesError::ConfigurationRejected)?;
        let path = loaded.configuration.server.added_zones_file.clone();
        let path = path.ok_or_else(|| AddedZonesError::NoFile { main: main.to_path_buf() })?;
        let target =
            resolve_link(&path).map_err(|source| AddedZonesError::Link { path: path.clone(), source })?;
        let text = match read_regular(&path, MAX_FILE_BYTES as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Zeroizing::default(),
            found => found.map_err(|source| AddedZonesError::Read { path: path.clone(), source })?,
        };
        let table = text.parse::<Table>();
        let table = table.map_err(|error| AddedZonesError::Syntax {
            path: path.clone(),
            message: error.message().to_owned(),
        })?;
        Ok((Self { main: main.to_path_buf(), path, target, table }, loaded))
    }

    /// The error for the zone `apex`, which is already declared at `location`.
    fn declared_error(&self, apex: &Name, location: &ConfigLocation) -> AddedZonesError {
        let (apex, is_ours, location) = (apex.clone(), *location.path == *self.path, location.clone());
        if is_ours {
            AddedZonesError::AlreadyAdded { apex, location }
        } else {
            AddedZonesError::DeclaredElsewhere { apex, location }
        }
    }

    /// The table `zone`, which contains a table for each added zone.
    fn zone_table(&mut self) -> Result<&mut Table, AddedZonesError> {
        let path = self.path.clone();
        let zones = self.table.entry("zone").or_insert_with(|| Value::Table(Table::new()));
        zones
            .as_table_mut()
            .ok_or_else(|| AddedZonesError::Syntax { path, message: "zone is not a table".to_owned() })
    }

    /// The change, if the complete configuration has no fault with it. Faults of the zone `apex`
    /// are reported without a location, because the text is not in a file yet.
    fn into_change(self, apex: &Name) -> Result<AddedZonesChange, AddedZonesError> {
        let text = self.table.to_string();
        let found = HEADER.len() + text.len();
        if found > MAX_FILE_BYTES {
            return Err(AddedZonesError::TooLong { path: self.path, found });
        }
        let loaded = load_with(&self.main, Some(text.clone()));
        let loaded = loaded.map_err(|Problems(problems)| {
            let prefix = format!("zone.{:?}", apex.to_string());
            let relocate = |Problem { location, message }| {
                let is_new = *location.path == *self.path && location.key.starts_with(&prefix);
                let mut new = ConfigLocation::of_file(Path::new("ctl zone add"));
                new.key.clone_from(&location.key);
                Problem { location: if is_new { new } else { location }, message }
            };
            AddedZonesError::ConfigurationRejected(Problems(problems.into_iter().map(relocate).collect()))
        })?;
        Ok(AddedZonesChange { target: self.target, text, loaded })
    }
}

/// Adds the zone `apex` to the file of added zones of the configuration at `main`. `settings` are
/// the keys and values of its `[zone.…]` table. Nothing is written yet.
///
/// # Errors
/// The configuration has no file of added zones or the file cannot be read; the zone already exists
/// or belongs to a catalog; or the configuration reader reports problems.
pub(crate) fn add(main: &Path, apex: &Name, settings: Table) -> Result<AddedZonesChange, AddedZonesError> {
    let (mut file, loaded) = AddedZonesFile::open(main)?;
    if let Some(location) = loaded.sources.zones.get(apex) {
        return Err(file.declared_error(apex, location));
    }
    file.zone_table()?.insert(apex.to_string(), Value::Table(settings));
    let change = file.into_change(apex)?;
    if is_of_catalog(&change.loaded.configuration, apex) {
        return Err(AddedZonesError::CatalogZone { apex: apex.clone(), main: main.to_path_buf() });
    }
    Ok(change)
}

/// Removes the zone `apex` from the file of added zones of the configuration at `main`. Nothing is
/// written yet.
///
/// # Errors
/// The configuration has no file of added zones or the file cannot be read; the zone does not
/// exist, is declared in another file or belongs to a catalog; or the configuration reader reports
/// problems.
pub(crate) fn remove(main: &Path, apex: &Name) -> Result<AddedZonesChange, AddedZonesError> {
    let (mut file, loaded) = AddedZonesFile::open(main)?;
    let location = loaded.sources.zones.get(apex);
    let location = location.ok_or_else(|| AddedZonesError::Unknown { apex: apex.clone() })?;
    if *location.path != *file.path {
        return Err(file.declared_error(apex, location));
    }
    if is_of_catalog(&loaded.configuration, apex) {
        return Err(AddedZonesError::CatalogZone { apex: apex.clone(), main: main.to_path_buf() });
    }
    let is_named = |name: &str| name.parse::<Name>().is_ok_and(|name| name.view().to_canonical() == *apex);
    file.zone_table()?.retain(|name, _| !is_named(name));
    file.into_change(apex)
}

/// Reports tables other than `zone` in the file of added zones. The server's user may write to this
/// file, and root reads it at the start. So it must not name files with secrets, which root would
/// read for that user. A secret in the file itself would be copied to memory that is not wiped.
pub(super) fn check_tables(root: &Section<'_>) {
    let others = root.table.keys().filter(|name| name.get_ref() != "zone");
    for name in others.filter(|_| root.document.is_added_zones_file) {
        let message = "added-zones-file may contain only zones: move this to another included file";
        root.diagnostics
            .report_fault(&root.document.location(name.span().start, name.get_ref().as_ref()), message);
    }
}

/// Whether the zone is a catalog zone, or a member of a catalog that this server produces.
fn is_of_catalog(configuration: &Configuration, apex: &Name) -> bool {
    configuration.zones.iter().any(|zone| match &zone.catalog {
        Some(_) if zone.apex == *apex => true,
        Some(CatalogSettings::Producer { members }) => members.iter().any(|member| member.zone == *apex),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
