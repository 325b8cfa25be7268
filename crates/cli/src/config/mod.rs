//! The configuration of a server: a TOML file, read as a whole, every fault with file, line, key and what is allowed.
//! `etc/nonesuch.toml` explains each key.

pub(crate) mod certificate;
mod check;
pub(crate) mod manual;
mod model;
mod reader;
mod remotes;
mod secrets;
mod server;
mod socket;
mod sources;
mod values;
mod zone;

pub(crate) use check::{Effect, Eyes, Fault, check_reading, check_start, load_identity, read_by_reload};
pub(crate) use model::{Configuration, CookieDemand, DnstapTo, Limits, LogFormat, LogLevel, OverBudget};
pub(crate) use reader::Problem;
pub(crate) use socket::find_control_socket;
pub(crate) use sources::{Role, Sources};

use nonesuch_authoritative::acl::{AccessList, Remote, TlsName};
use nonesuch_authoritative::catalog::Listed;
use nonesuch_authoritative::service::{Catalog, Settings, Template, ZoneSettings};
use nonesuch_authoritative::tsig::{Key, Keys};
use nonesuch_proto::Name;
use reader::{Context, Section};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{SocketAddr, UdpSocket};
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
    /// Where it names what.
    pub(crate) sources: Sources,
}

/// Reads the configuration at `path`.
pub(crate) fn load(path: &Path) -> Result<Read, Problems> {
    let whole = |message: String| Problems(vec![Problem { message, ..Problem::of_file(path) }]);
    let text = read_text(path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => ": name the file with --config",
            io::ErrorKind::PermissionDenied => ": make it readable for the user that runs this",
            io::ErrorKind::InvalidData => ": it is no text: name a TOML file",
            _ => "",
        };
        whole(format!("cannot be read: {error}{remedy}"))
    })?;
    let mut read = parse(path, &text)?;
    if !read.sources.has("listen") {
        // Nobody has asked for IPv6, and a host may have none.
        let is_there = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
        read.configuration.server.listen.retain(|address| address.is_ipv4() || is_there(address));
    }
    Ok(read)
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
    let sources = context.take_sources();
    let (problems, warnings) = context.into_findings();
    if problems.is_empty()
        && let Some(configuration) = configuration
    {
        return Ok(Read { configuration, warnings, sources });
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
    context.set_own(&server);
    let (log, dnstap) = (server::read_log(&root), server::read_dnstap(&root));
    let (limits, cookies) = (server::read_limits(&root), server::read_cookies(&root));
    let keys = server::read_keys(&root);
    let has_state = server.state_dir.is_some() || root.has("state-dir");
    let (templates, zones) = read_zones(&root, &keys, has_state);
    sources::check_places(context, server.state_dir.as_deref());
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
    let has_authorities = root.has("tls-authorities");
    let mut bases: BTreeMap<String, ZoneKeys> = BTreeMap::new();
    let mut templates = BTreeMap::new();
    for (name, _, section) in root.take_tables("template") {
        let base = ZoneKeys::read(&section);
        // A template need not be whole: only what members of catalogs are made after must be.
        if base.is_for_members() {
            let template = base.settle_template(&section, has_state);
            let settings = template.as_ref().map(Template::settings);
            check_keys(settings, &section, keys);
            check_authorities(settings, &section, has_authorities);
            templates.extend(template.map(|template| (name.clone(), template)));
        }
        bases.insert(name, base);
        section.finish();
    }
    let mut zones = Zones {
        bases: &bases,
        keys,
        has_state,
        has_authorities,
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
    has_authorities: bool,
    seen: BTreeMap<Name, String>,
    list: Vec<ZoneSettings>,
    /// The catalog that lists a zone, how, and where that is said.
    members: Vec<(Name, Listed, Range<usize>)>,
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
        check_authorities(settings.as_ref(), section, self.has_authorities);
        if let Some(catalog) = keys.catalog_zone {
            let mut listed = Listed::new(apex, keys.group);
            if let Some(former) = keys.catalog_former {
                // It is let go there until the operator takes that out.
                let let_go = Listed { new_owner: Some(catalog.clone()), ..listed.clone() };
                self.members.push((former.clone(), let_go, section.span()));
                listed.former_owner = Some(former);
            }
            listed.new_owner = keys.catalog_next;
            self.members.push((catalog, listed, section.span()));
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
        for (catalog, listed, span) in std::mem::take(&mut self.members) {
            let settings = self.list.iter_mut().find(|settings| settings.apex == catalog);
            match settings.map(|settings| &mut settings.catalog) {
                Some(Some(Catalog::Producer { members })) if listed.zone != catalog => members.push(listed),
                _ => {
                    let message = format!(
                        "{catalog} is no catalog that this server makes: give it catalog = \"producer\""
                    );
                    root.context().fault(span, &format!("zone.\"{}\".catalog-zone", listed.zone), message);
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
        // What is wrong with a key that is there is said of it.
        let is_there =
            |name: &Name| keys.iter().any(|key| key.name() == name.view()) || section.context().has_key(name);
        for name in names.iter().filter(|name| !is_there(name)) {
            section.fault(
                place,
                format!("there is no key {name}: add [key.{:?}] with its secret", name.to_string()),
            );
        }
    }
}

/// Whoever must have the certificate of a name needs somebody who vouches for it.
fn check_authorities(settings: Option<&ZoneSettings>, section: &Section<'_, '_>, has_authorities: bool) {
    let Some(transfers) = settings.map(|settings| &settings.transfers).filter(|_| !has_authorities) else {
        return;
    };
    for (key, remotes) in [("primaries", &transfers.primaries), ("also-notify", &transfers.also_notify)] {
        let named = remotes.iter().find_map(|remote| match &remote.tls {
            Some(TlsName::Named(host)) => Some(host),
            _ => None,
        });
        if let Some(host) = named {
            let message = format!(
                "nothing says who vouches for the certificate of {host}: add tls-authorities at the top, a file of \
                 certificates in PEM, or write tls alone, which authenticates nobody"
            );
            section.fault(key, message);
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
