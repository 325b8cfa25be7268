//! The configuration of a server: a TOML file, and the files that it includes ([`mod@include`]).
//!
//! The reader reads all files and reports each problem with file, line, key and permitted values.
//! Each key is declared once ([`keys`]).

pub(crate) mod added_zones;
mod include;
mod keys;
mod limits;
mod outputs;
mod overlap;
mod problem;
pub(crate) mod reference;
pub(crate) mod resolver;
mod secrets;
mod section;
mod server;
mod sources;
mod tls;
mod value_error;
mod values;
mod zone;
mod zones;

pub(crate) use limits::Limits;
pub(crate) use outputs::{Dnstap, DnstapDestination, Log};
pub(crate) use problem::{ConfigLocation, Problem, Problems};
pub(crate) use secrets::Cookies;
pub(crate) use server::Server;
pub(crate) use sources::{FileRole, NamedFile, Sources};
pub(crate) use tls::Tls;
pub(crate) use values::duration_text;

use crate::files::read_wiped;
use include::Include;
use keys::{INCLUDED_TABLES, report_unknown};
use nonesuch_authoritative::service::{Settings, ZoneSettings, ZoneTemplate};
use nonesuch_proto::Name;
use nonesuch_server::acl::AccessList;
use nonesuch_server::tsig::TsigKeys;
use problem::Document;
use secrets::TsigList;
use section::{Diagnostics, NamedTable, Section};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeTable;
use zeroize::{Zeroize as _, Zeroizing};
use zones::ConfigContext;

/// Maximum size of a configuration, in bytes; enough for several hundred thousand zones.
const MAX_CONFIGURATION_BYTES: u64 = 64 << 20;
/// Minimum size of the first read buffer, in bytes.
const MIN_BUFFER_BYTES: usize = 4096;
/// Keys that name other configuration files. They are read before all other keys, because the named
/// files are read before the other keys.
const FILE_KEYS: [&str; 2] = ["include", "added-zones-file"];

/// The complete configuration.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) server: Server,
    pub(crate) log: Log,
    pub(crate) dnstap: Option<Dnstap>,
    pub(crate) limits: Limits,
    pub(crate) cookies: Cookies,
    /// TSIG keys.
    pub(crate) keys: TsigKeys,
    /// The templates with primaries, by name. Catalog members are created from them.
    pub(crate) templates: BTreeMap<String, ZoneTemplate>,
    pub(crate) zones: Vec<ZoneSettings>,
}

impl Configuration {
    /// A configuration with only this zone, and defaults for all other settings.
    pub(crate) fn of_zone(zone: ZoneSettings) -> Self {
        Self {
            server: server::table().defaults().server,
            log: outputs::log_table().defaults(),
            dnstap: None,
            limits: Limits::defaults(),
            cookies: secrets::cookie_table().defaults().cookies,
            keys: TsigKeys::default(),
            templates: BTreeMap::new(),
            zones: vec![zone],
        }
    }

    /// The settings of the service.
    pub(crate) fn service_settings(&self) -> Settings {
        Settings {
            state_dir: self.server.state_dir.clone(),
            zones: self.zones.clone(),
            templates: self.templates.clone(),
            load_jobs: self.server.load_jobs.unwrap_or(0),
            clock_shift: 0,
        }
    }
}

/// A configuration, its warnings and its sources.
#[derive(Debug)]
pub(crate) struct LoadedConfiguration {
    pub(crate) configuration: Configuration,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) sources: Sources,
}

/// Reads the configuration at `path`.
///
/// # Errors
/// All problems of the configuration that prevent its use; see [`LoadedConfiguration::warnings`]
/// for the others.
pub(crate) fn load(path: &Path) -> Result<LoadedConfiguration, Problems> {
    load_with(path, None)
}

/// Like [`load`]. If `added` is `Some`, it is read instead of the file of added zones.
fn load_with(path: &Path, added: Option<String>) -> Result<LoadedConfiguration, Problems> {
    let text = read_file(path, MAX_CONFIGURATION_BYTES)?;
    parse_text(path, text, added)
}

/// Reads a configuration file of at most `max` bytes.
fn read_file(path: &Path, max: u64) -> Result<Zeroizing<String>, Problems> {
    File::open(path).and_then(|file| read_text(file, max)).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => ": name the file with --config",
            _ => read_remedy(&error),
        };
        Problems::of_file(path, format!("cannot be read: {error}{remedy}"))
    })
}

/// The path of the control socket in the configuration at `path`; `None` if the configuration names
/// no valid path. Other keys and the files that they name are not read, so their faults have no
/// effect.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn find_control_socket(path: &Path) -> Result<Option<PathBuf>, Problems> {
    let text =
        File::open(path).and_then(|file| read_text(file, MAX_CONFIGURATION_BYTES)).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "name the file with --config",
                _ => "make it readable",
            };
            let message = format!(
                "cannot be read: {error}: {remedy}, or name the server's control socket with --socket"
            );
            Problems::of_file(path, message)
        })?;
    let (document, diagnostics) = (Document::new(0, path, text), Diagnostics::default());
    let (table, _) = DeTable::parse_recoverable(document.text());
    let root = Section::root(&document, &diagnostics, &table);
    Ok(root.item("control-socket").and_then(|item| values::path(item).ok()))
}

/// The remedy for a configuration file that cannot be read.
fn read_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ": make it readable for the user that runs this command",
        io::ErrorKind::InvalidData => ": the file is not text: name a TOML file",
        _ => "",
    }
}

/// Reads a text of at most `max` bytes. The text is wiped from memory on drop, because it may
/// contain secrets. However, the parser copies strings with escape sequences and multi-line
/// strings, and the copy of a secret in such a string is not wiped.
fn read_text(file: File, max: u64) -> io::Result<Zeroizing<String>> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The additional byte lets the last read find the end of the file without a larger buffer.
    let capacity = usize::try_from(metadata.len().min(max)).unwrap_or(usize::MAX).saturating_add(1);
    let mut bytes = read_wiped(file.take(max + 1), capacity.max(MIN_BUFFER_BYTES))?;
    if bytes.len() as u64 > max {
        return Err(too_long());
    }
    String::from_utf8(std::mem::take(&mut *bytes)).map(Zeroizing::new).map_err(|error| {
        error.into_bytes().zeroize();
        io::Error::new(io::ErrorKind::InvalidData, "not valid UTF-8")
    })
}

/// The error of files whose total size exceeds [`MAX_CONFIGURATION_BYTES`].
fn too_long() -> io::Error {
    io::Error::other(format!(
        "longer than the maximum of {} MiB for all files of a configuration",
        MAX_CONFIGURATION_BYTES >> 20
    ))
}

/// Reads `text` as the content of the file `path`, and the files that it includes.
#[cfg(test)]
pub(crate) fn parse(path: &Path, text: impl Into<String>) -> Result<LoadedConfiguration, Problems> {
    parse_text(path, text.into().into(), None)
}

fn parse_text(
    path: &Path,
    text: Zeroizing<String>,
    added: Option<String>,
) -> Result<LoadedConfiguration, Problems> {
    let diagnostics = Diagnostics::new(path, server::table().names());
    let read = read_main(&Document::new(0, path, text), &diagnostics, added);
    let (warnings, files) = diagnostics.finish()?;
    let CombinedConfiguration { configuration, top_level_keys, zones } =
        read.ok_or_else(|| Problems(Vec::new()))?;
    Ok(LoadedConfiguration {
        configuration,
        warnings,
        sources: Sources { path: path.to_path_buf(), files, top_level_keys, zones },
    })
}

/// The combined content of all files.
struct CombinedConfiguration {
    configuration: Configuration,
    /// Locations of the keys outside tables, by key.
    top_level_keys: BTreeMap<String, ConfigLocation>,
    /// Locations of the zone declarations.
    zones: BTreeMap<Name, ConfigLocation>,
}

/// Reads the main file and the files that it includes. `added_zones_text` replaces the text of the
/// file of added zones. Returns `None` after a TOML syntax error, which is reported.
fn read_main(
    main: &Document,
    diagnostics: &Diagnostics,
    added_zones_text: Option<String>,
) -> Option<CombinedConfiguration> {
    let table = parse_table(main, diagnostics)?;
    let root = Section::root(main, diagnostics, &table);
    let (keys, mut settings) = (server::table(), server::table().defaults());
    keys.read(&root, &mut settings, |key| FILE_KEYS.contains(&key));
    let added = settings.server.added_zones_file.clone();
    let added = added.map(|path| Include { path, location: root.location("added-zones-file") });
    let documents = include::read(&root, &settings.includes, added, added_zones_text);
    let tables: Vec<_> = documents.iter().map(|document| parse_table(document, diagnostics)).collect();
    let tables = tables.into_iter().collect::<Option<Vec<_>>>()?;
    keys.read(&root, &mut settings, |key| !FILE_KEYS.contains(&key));
    settings.resolve(&root);
    keys.report_unknown(&root);
    let included = documents.iter().zip(&tables);
    let included = included.map(|(document, table)| Section::root(document, diagnostics, table));
    let roots: Vec<_> = std::iter::once(root).chain(included).collect();
    Some(read_tables(&roots, settings))
}

/// Parses the text of a file as TOML. Returns `None` after a syntax error, which is reported.
fn parse_table<'t>(document: &'t Document, diagnostics: &Diagnostics) -> Option<Spanned<DeTable<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(document.text());
    for error in &errors {
        let location = document.location(error.span().unwrap_or(0..0).start, "");
        diagnostics.report_fault(&location, format!("invalid TOML: {}", error.message()));
    }
    // The file is not read further, because later errors could follow from the syntax errors.
    errors.is_empty().then_some(table)
}

/// Reads the tables of all files. The first file is the main file.
fn read_tables(roots: &[Section<'_>], settings: server::Root) -> CombinedConfiguration {
    let root = &roots[0];
    for included in &roots[1..] {
        added_zones::check_tables(included);
        report_unknown(included, &BTreeSet::from(INCLUDED_TABLES), |_| None);
    }
    let (log, dnstap) = (Log::read(root), Dnstap::read(root));
    let (limits, cookies) = (Limits::read(root), Cookies::read(root));
    let named = |key: &str| -> Vec<NamedTable<'_>> {
        roots.iter().flat_map(|root| root.named_subtables(key)).collect()
    };
    let key_tables = named("key");
    let TsigList { keys, names } = TsigList::read(&key_tables);
    let query_keys = settings.allow_query.iter().flat_map(AccessList::keys).collect();
    zones::check_tsig_names("allow-query", query_keys, root, &names);
    let context = ConfigContext {
        diagnostics: root.diagnostics,
        tsig_names: &names,
        has_state_dir: root.has("state-dir"),
        has_tls_authorities: root.has("tls-authorities"),
        root: &settings,
    };
    let read = zones::read(&named("template"), &named("zone"), &context);
    secrets::warn_of_unused_keys(&key_tables);
    overlap::check(root.diagnostics, settings.server.state_dir.as_deref());
    // Cannot fail: `TsigList::read` has reported and left out keys with the same name.
    let keys = TsigKeys::new(keys).unwrap_or_default();
    let (server, templates, zones) = (settings.server, read.templates, read.zones);
    let configuration = Configuration { server, log, dnstap, limits, cookies, keys, templates, zones };
    CombinedConfiguration { configuration, top_level_keys: root.key_locations(), zones: read.locations }
}

#[cfg(test)]
mod tests;
