//! The configuration of a server: a TOML file, read as a whole, every fault with file, line, key and what is allowed.
//! `etc/nonesuch.toml` explains each key.

mod check;
mod model;
mod reader;
mod secrets;
mod server;
mod values;
mod zone;

pub(crate) use check::check_files;
pub(crate) use model::{Configuration, CookieDemand, DnstapTo, Limits, LogFormat, LogLevel, OverBudget};
pub(crate) use reader::Problem;

use nonesuch_authoritative::acl::{AccessList, Remote};
use nonesuch_authoritative::service::{Catalog, Settings, Template, ZoneSettings};
use nonesuch_authoritative::tsig::{Key, Keys};
use nonesuch_proto::Name;
use reader::{Context, Section};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use toml::de::DeTable;
use values::{parse_name, text};
use zone::ZoneKeys;

/// Octets that a configuration may have: some hundred thousand zones.
const MOST_OCTETS: u64 = 64 << 20;
/// Problems that are said; the others are counted.
const MOST_SAID: usize = 50;

/// Why a configuration is refused: all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MOST_SAID).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.0.len().saturating_sub(MOST_SAID) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

/// A configuration and what is odd about it.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) configuration: Configuration,
    pub(crate) warnings: Vec<Problem>,
}

/// Reads the configuration at `path`.
pub(crate) fn load(path: &Path) -> Result<Read, Problems> {
    let whole = |message: String| {
        Problems(vec![Problem { path: path.to_path_buf(), line: 0, column: 0, key: String::new(), message }])
    };
    let text = read_text(path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => ": name the file with --config",
            io::ErrorKind::PermissionDenied => ": make it readable for the user that runs this",
            _ => "",
        };
        whole(format!("cannot be read: {error}{remedy}"))
    })?;
    parse(path, &text)
}

fn read_text(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut text = String::new();
    file.take(MOST_OCTETS + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_OCTETS {
        return Err(io::Error::other(format!(
            "longer than {} MiB, which no configuration is",
            MOST_OCTETS >> 20
        )));
    }
    Ok(text)
}

/// Reads `text`, which stands in the file `path`.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Read, Problems> {
    let context = Context::new(path, text);
    let configuration = parse_in(&context);
    let (problems, warnings) = context.into_findings();
    if problems.is_empty()
        && let Some(configuration) = configuration
    {
        return Ok(Read { configuration, warnings });
    }
    Err(Problems(problems))
}

fn parse_in(context: &Context<'_>) -> Option<Configuration> {
    let (table, errors) = DeTable::parse_recoverable(context.text());
    for error in &errors {
        context.fault(error.span().unwrap_or(0..0), "", format!("no TOML: {}", error.message()));
    }
    // What is read of a text with such errors would have others that follow from them.
    if !errors.is_empty() {
        return None;
    }
    let root = Section::root(context, &table);
    server::check_version(&root);
    let server = server::read_server(&root);
    let (log, dnstap) = (server::read_log(&root), server::read_dnstap(&root));
    let (limits, cookies) = (server::read_limits(&root), server::read_cookies(&root));
    let keys = server::read_keys(&root);
    let has_state = server.state_dir.is_some() || root.has("state-dir");
    let (templates, zones) = read_zones(&root, &keys, has_state);
    root.finish();
    // No two have one name: that was checked one by one.
    let keys = Keys::new(keys).unwrap_or_default();
    Some(Configuration { server, log, dnstap, limits, cookies, keys, templates, zones })
}

/// Templates by their names, and zones.
fn read_zones(
    root: &Section<'_, '_>,
    keys: &[Key],
    has_state: bool,
) -> (BTreeMap<String, Template>, Vec<ZoneSettings>) {
    let mut bases: BTreeMap<String, ZoneKeys> = BTreeMap::new();
    let mut templates = BTreeMap::new();
    for (name, _, section) in root.take_tables("template") {
        let base = ZoneKeys::read(&section);
        // A template need not be whole: only what members of catalogs are made after must be.
        if base.is_for_members() {
            let template = base.settle_template(&section, has_state);
            check_keys(template.as_ref().map(Template::settings), &section, keys);
            templates.extend(template.map(|template| (name.clone(), template)));
        }
        bases.insert(name, base);
        section.finish();
    }
    let mut zones = Zones {
        bases: &bases,
        keys,
        has_state,
        seen: BTreeMap::new(),
        list: Vec::new(),
        members: Vec::new(),
    };
    for (name, span, section) in root.take_tables("zone") {
        zones.read(&name, span, &section);
        section.finish();
    }
    (templates, zones.finish(root))
}

/// The zones that were read so far.
struct Zones<'c> {
    bases: &'c BTreeMap<String, ZoneKeys>,
    keys: &'c [Key],
    has_state: bool,
    seen: BTreeMap<Name, String>,
    list: Vec<ZoneSettings>,
    /// Zone, the catalog that lists it, its group, and where that is said.
    members: Vec<(Name, Name, Option<String>, Range<usize>)>,
}

impl Zones<'_> {
    fn read(&mut self, name: &str, span: Range<usize>, section: &Section<'_, '_>) {
        let context = section.context();
        // All keys are asked for, even where the zone is not taken: none of them is unknown.
        let template = section.take("template", text);
        let own = ZoneKeys::read(section);
        let apex = match parse_name(name) {
            Ok(apex) => apex,
            Err(message) => return context.fault(span, "zone", message),
        };
        if let Some(other) = self.seen.insert(apex.clone(), name.to_owned()) {
            let message = format!("the zone is there already, as {other:?}: leave one out");
            return context.fault(span, &format!("zone.{name:?}"), message);
        }
        let base = template.as_deref().and_then(|template| self.base(template, "template", section));
        let keys = base.map_or_else(|| own.clone(), |base| own.clone().over(base));
        self.check_templates(&keys, section);
        let settings = keys.settle(apex.clone(), section, self.has_state);
        check_keys(settings.as_ref(), section, self.keys);
        if let Some(catalog) = keys.catalog_zone {
            self.members.push((apex, catalog, keys.group, section.span()));
        }
        self.list.extend(settings);
    }

    /// The template `name`, which the value of `key` names.
    fn base(&self, name: &str, key: &str, section: &Section<'_, '_>) -> Option<&ZoneKeys> {
        let base = self.bases.get(name);
        if base.is_none() {
            let names: Vec<&str> = self.bases.keys().map(String::as_str).collect();
            let there = if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            section.fault(key, format!("there is no template {name:?}: {there}; write [template.{name}]"));
        }
        base
    }

    /// Templates that a catalog names must be there, and say where members come from.
    fn check_templates(&self, keys: &ZoneKeys, section: &Section<'_, '_>) {
        let groups = keys.group_templates.iter().flatten().map(|(_, template)| (template, "group-templates"));
        let default = keys.member_template.iter().map(|template| (template, "member-template"));
        for (template, key) in default.chain(groups) {
            if let Some(base) = self.base(template, key, section)
                && !base.is_for_members()
            {
                section.fault(
                    key,
                    format!(
                        "the template {template:?} has no primaries, which members come from: add them there"
                    ),
                );
            }
        }
    }

    /// The zones, the producers among them with their members.
    fn finish(mut self, root: &Section<'_, '_>) -> Vec<ZoneSettings> {
        for (zone, catalog, group, span) in std::mem::take(&mut self.members) {
            let settings = self.list.iter_mut().find(|settings| settings.apex == catalog);
            match settings.map(|settings| &mut settings.catalog) {
                Some(Some(Catalog::Producer { members })) if zone != catalog => members.push((zone, group)),
                _ => {
                    let message = format!(
                        "{catalog} is no catalog that this server makes: give it catalog = \"producer\""
                    );
                    root.context().fault(span, &format!("zone.\"{zone}\".catalog-zone"), message);
                }
            }
        }
        self.list
    }
}

/// Every key that a zone names must be there.
fn check_keys(settings: Option<&ZoneSettings>, section: &Section<'_, '_>, keys: &[Key]) {
    let Some(transfers) = settings.map(|settings| &settings.transfers) else { return };
    let of_remotes = |remotes: &[Remote]| remotes.iter().filter_map(|remote| remote.key.clone()).collect();
    let of_list = |list: &AccessList| list.keys().cloned().collect();
    let named: [(&str, Vec<Name>); 4] = [
        ("primaries", of_remotes(&transfers.primaries)),
        ("also-notify", of_remotes(&transfers.also_notify)),
        ("transfer", of_list(&transfers.transfer)),
        ("notify-from", of_list(&transfers.notify_from)),
    ];
    for (place, names) in named {
        let names: BTreeSet<Name> = names.into_iter().collect();
        for name in names.iter().filter(|name| !keys.iter().any(|key| key.name() == name.view())) {
            section.fault(
                place,
                format!("there is no key {name}: add [key.{:?}] with its secret", name.to_string()),
            );
        }
    }
}

impl Configuration {
    /// What the service is to run.
    pub(crate) fn service_settings(&self) -> Settings {
        Settings {
            state_dir: self.server.state_dir.clone(),
            zones: self.zones.clone(),
            templates: self.templates.clone(),
            jobs: self.server.load_jobs.unwrap_or(0),
            clock_shift: 0,
        }
    }
}

#[cfg(test)]
mod tests;
