//! The configuration of a server: a TOML file, read as a whole, every fault with file, line, key and what is allowed.
//! `etc/nonesuch.toml` explains each key. It may include others ([`include`]), which are read with it as one.

pub(crate) mod certificate;
mod check;
mod findings;
mod include;
pub(crate) mod manual;
mod model;
mod reader;
mod remotes;
mod secrets;
mod server;
mod socket;
mod sources;
mod values;
mod warnings;
mod written;
mod zone;

pub(crate) use check::{
    Effect, Eyes, Fault, check_reading, check_start, load_identity, read_by_reload, read_by_transfers,
};
pub(crate) use findings::Problem;
pub(crate) use model::{Configuration, Dnstap, DnstapTo, Limits, LogFormat, LogLevel, Server};
pub(crate) use socket::find_control_socket;
pub(crate) use sources::{Role, Sources};
pub(crate) use written::check_runtime;

use findings::{Context, Findings};
use nonesuch_authoritative::acl::{AccessList, Remote, TlsName};
use nonesuch_authoritative::catalog::Listed;
use nonesuch_authoritative::service::{Catalog, Settings, Template, ZoneSettings};
use nonesuch_authoritative::tsig::{Key, Keys};
use nonesuch_proto::Name;
use reader::{Section, quoted};
use sources::Spot;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;
use values::{parse_name, parsed, text};
use warnings::ClosedMembers;
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
    let text = read_text(path, MOST_OCTETS).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => ": name the file with --config",
            _ => read_remedy(&error),
        };
        whole(format!("cannot be read: {error}{remedy}"))
    })?;
    let mut read = parse(path, text)?;
    if !read.sources.has("listen") {
        // Nobody has asked for IPv6, and a host may have none.
        let is_there = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
        read.configuration.server.listen.retain(|address| address.is_ipv4() || is_there(address));
    }
    Ok(read)
}

/// What is to be done about a file of a configuration that cannot be read.
fn read_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ": make it readable for the user that runs this",
        io::ErrorKind::InvalidData => ": it is no text: name a TOML file",
        _ => "",
    }
}

/// Reads a text of at most `most` octets.
fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut text = String::new();
    file.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let most = MOST_OCTETS >> 20;
        return Err(io::Error::other(format!("longer than {most} MiB in all, which no configuration is")));
    }
    Ok(text)
}

/// Reads `text`, which stands in the file `path`, and the files that it includes.
pub(crate) fn parse(path: &Path, text: impl Into<String>) -> Result<Read, Problems> {
    let findings = Findings::default();
    findings.add(path, text.into());
    let configuration = parse_all(&findings);
    let sources = findings.take_sources();
    let (problems, warnings) = findings.into_findings();
    if problems.is_empty()
        && let Some(configuration) = configuration
    {
        return Ok(Read { configuration, warnings, sources });
    }
    Err(Problems(problems))
}

/// Reads the main file, which is the only one of `findings` yet, and those that it includes.
fn parse_all(findings: &Findings) -> Option<Configuration> {
    let main = findings.documents();
    let context = Context::new(findings, 0, main.first()?);
    let table = parse_table(&context)?;
    let root = Section::root(&context, &table);
    include::read(&root);
    let documents = findings.documents();
    let included = documents.iter().enumerate().skip(1);
    let contexts: Vec<Context<'_>> =
        included.map(|(file, document)| Context::new(findings, file, document)).collect();
    let tables: Vec<_> = contexts.iter().map(parse_table).collect();
    // All that is wrong is said before.
    let tables = tables.into_iter().collect::<Option<Vec<_>>>()?;
    let others = contexts.iter().zip(&tables).map(|(context, table)| Section::root(context, table));
    let mut roots = vec![root];
    roots.extend(others);
    let configuration = read_roots(findings, &roots);
    roots.into_iter().for_each(Section::finish);
    Some(configuration)
}

fn parse_table<'t>(context: &Context<'t>) -> Option<Spanned<DeTable<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(context.text());
    for error in &errors {
        context.fault(error.span().unwrap_or(0..0), "", format!("no TOML: {}", error.message()));
    }
    // What is read of a text with such errors would have others that follow from them.
    errors.is_empty().then_some(table)
}

/// Reads the main file, which is the first one, and the tables of all.
fn read_roots(findings: &Findings, roots: &[Section<'_, '_>]) -> Configuration {
    let root = &roots[0];
    server::check_version(root);
    let server = server::read_server(root);
    findings.set_own(&server);
    let (log, dnstap) = (server::read_log(root), server::read_dnstap(root));
    let (limits, cookies) = (server::read_limits(root), server::read_cookies(root));
    let keys = server::read_keys(roots);
    let query = root.take_list("allow-query", "prefixes and keys", parsed).map(AccessList::new);
    check_named(&[("allow-query", query.iter().flat_map(AccessList::keys).cloned().collect())], root, &keys);
    findings.set_query(query);
    let has_state = server.state_dir.is_some() || root.has("state-dir");
    let (templates, zones) = read_zones(findings, roots, &keys, has_state);
    warnings::look_at_keys(roots);
    sources::check_places(findings, server.state_dir.as_deref());
    // No two have one name: that was checked one by one.
    let keys = Keys::new(keys).unwrap_or_default();
    Configuration { server, log, dnstap, limits, cookies, keys, templates, zones }
}

/// Templates by their names, and zones.
fn read_zones(
    findings: &Findings,
    roots: &[Section<'_, '_>],
    keys: &[Key],
    has_state: bool,
) -> (BTreeMap<String, Template>, Vec<ZoneSettings>) {
    let checks = Checks { keys, has_state, has_authorities: roots[0].has("tls-authorities") };
    let mut bases: BTreeMap<String, ZoneKeys> = BTreeMap::new();
    let mut places: BTreeMap<String, Spot> = BTreeMap::new();
    let mut templates = BTreeMap::new();
    let mut sections = Vec::new();
    let used = used_templates(roots);
    for (name, span, section) in roots.iter().flat_map(|root| root.take_tables("template")) {
        let context = section.context();
        let base = ZoneKeys::read(&section);
        // One that is there for other servers may name what they alone have; what members are made after must be whole.
        if used.contains(name.as_str()) || base.is_for_members() {
            checks.look(&base, &section);
        }
        // Within a file TOML has each name once.
        if let Some(earlier) = places.get(&name) {
            let message =
                format!("the template is there already ({}): leave one out", findings.locate(*earlier));
            context.fault(span, &format!("template.{name}"), message);
            section.finish();
            continue;
        }
        places.insert(name.clone(), context.spot(&span));
        // A template need not be whole: only what members of catalogs are made after must be.
        if base.is_for_members() {
            let template = base.settle_template(&section, has_state);
            templates.extend(template.map(|template| (name.clone(), template)));
        }
        bases.insert(name.clone(), base);
        sections.push((name, section));
    }
    let mut zones = Zones {
        findings,
        bases: &bases,
        checks,
        seen: BTreeMap::new(),
        list: Vec::new(),
        members: Vec::new(),
        closed: ClosedMembers::default(),
    };
    for (name, section) in sections {
        // Any of them may name those behind it.
        bases.get(&name).into_iter().for_each(|base| zones.check_templates(base, &section));
        section.finish();
    }
    for (name, span, section) in roots.iter().flat_map(|root| root.take_tables("zone")) {
        zones.read(&name, span, &section);
        section.finish();
    }
    (templates, zones.finish())
}

/// The templates that zones and other templates name.
fn used_templates<'c>(roots: &[Section<'c, '_>]) -> BTreeSet<&'c str> {
    let tables = |name: &'static str| roots.iter().flat_map(move |root| root.take_tables(name));
    let mut used = BTreeSet::new();
    for (_, _, section) in tables("zone").chain(tables("template")) {
        let named = ["template", "member-template"].into_iter().flat_map(|key| section.texts(key));
        used.extend(named.map(|(_, text)| text));
        used.extend(section.texts_within("group-templates"));
    }
    used
}

/// The zones that were read so far.
struct Zones<'c> {
    findings: &'c Findings,
    bases: &'c BTreeMap<String, ZoneKeys>,
    checks: Checks<'c>,
    /// Zones as they are written, and where.
    seen: BTreeMap<Name, (String, Spot)>,
    list: Vec<ZoneSettings>,
    /// The catalog that lists a zone, how, and where that is said, by which key.
    members: Vec<(Name, Listed, Spot, &'static str)>,
    closed: ClosedMembers,
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
        if let Some((other, place)) = self.seen.get(&apex) {
            let place = self.findings.locate(*place);
            let message = format!("the zone is there already, as {other:?} ({place}): leave one out");
            return context.fault(span, &format!("zone.{name:?}"), message);
        }
        self.seen.insert(apex.clone(), (name.to_owned(), context.spot(&span)));
        let base = template.as_deref().and_then(|template| self.base(template, "template", section));
        let keys = base.map_or_else(|| own.clone(), |base| own.clone().over(base));
        self.check_templates(&own, section);
        self.checks.look(&own, section);
        let settings = keys.settle(apex.clone(), section, self.checks.has_state);
        if let Some(catalog) = keys.catalog_zone {
            if let Some(settings) = &settings {
                self.closed.look(&catalog, settings, section);
            }
            let mut listed = Listed::new(apex, keys.group);
            if let Some(former) = keys.catalog_former {
                // It is let go there until the operator takes that out.
                let let_go = Listed { new_owner: Some(catalog.clone()), ..listed.clone() };
                let place = context.spot(&section.place("catalog-former"));
                self.members.push((former.clone(), let_go, place, "catalog-former"));
                listed.former_owner = Some(former);
            }
            listed.new_owner = keys.catalog_next;
            let place = context.spot(&section.place("catalog-zone"));
            self.members.push((catalog, listed, place, "catalog-zone"));
        }
        self.list.extend(settings);
    }

    /// The template `name`, which the value of `key` names.
    fn base(&self, name: &str, key: &str, section: &Section<'_, '_>) -> Option<&ZoneKeys> {
        let base = self.bases.get(name);
        if base.is_none() {
            let names: Vec<&str> = self.bases.keys().map(String::as_str).collect();
            let write = format!("write [template.{}]", quoted(name));
            let message = if names.is_empty() {
                format!("there is no template {name:?}, nor any other: {write}")
            } else {
                format!("there is no template {name:?}: name one of {}, or {write}", names.join(", "))
            };
            section.fault(key, message);
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
    fn finish(mut self) -> Vec<ZoneSettings> {
        for (catalog, listed, spot, key) in std::mem::take(&mut self.members) {
            let settings = self.list.iter_mut().find(|settings| settings.apex == catalog);
            match settings.map(|settings| &mut settings.catalog) {
                Some(Some(Catalog::Producer { members })) if listed.zone != catalog => members.push(listed),
                _ => {
                    let message = format!(
                        "{catalog} is no catalog that this server makes: give it catalog = \"producer\""
                    );
                    self.findings.fault(spot, &format!("zone.\"{}\".{key}", listed.zone), message);
                }
            }
        }
        self.list
    }
}

/// What is held against the rest of the configuration, of each zone and template by itself: what a zone takes over is said of the
/// template, once.
#[derive(Clone, Copy)]
struct Checks<'c> {
    keys: &'c [Key],
    has_state: bool,
    has_authorities: bool,
}

impl Checks<'_> {
    fn look(self, keys: &ZoneKeys, section: &Section<'_, '_>) {
        check_named(&keys.named_keys(), section, self.keys);
        for (key, remotes) in keys.remotes() {
            remotes::check(key, remotes, section);
            if !self.has_authorities {
                check_authorities(key, remotes, section);
            }
        }
        keys.check_journal(section, self.has_state);
        keys.check_bounds(section);
    }
}

/// Reports the keys that are named at these places, and are not there.
fn check_named(named: &[(&str, Vec<Name>)], section: &Section<'_, '_>, keys: &[Key]) {
    for (place, names) in named {
        let names: BTreeSet<&Name> = names.iter().collect();
        // What is wrong with a key that is there is said of it.
        let is_there =
            |name: &Name| keys.iter().any(|key| key.name() == name.view()) || section.context().has_key(name);
        for name in names.into_iter().filter(|name| !is_there(name)) {
            section.fault(
                place,
                format!("there is no key {name}: add [key.{:?}] with its secret", name.to_string()),
            );
        }
    }
}

/// Whoever must have the certificate of a name needs somebody who vouches for it.
fn check_authorities(key: &str, remotes: &[Remote], section: &Section<'_, '_>) {
    let named = remotes.iter().find_map(|remote| match &remote.tls {
        Some(TlsName::Named(host)) => Some(host),
        _ => None,
    });
    if let Some(host) = named {
        let message = format!(
            "nothing says who vouches for the certificate of {host}: add tls-authorities at the top, a file of certificates in PEM, \
             or write tls alone, which authenticates nobody"
        );
        section.fault(key, message);
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
