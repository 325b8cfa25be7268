//! The zones and templates of all files. Checks that the keys, templates and catalogs that they
//! name exist.

use super::keys::{self, Table};
use super::problem::ConfigLocation;
use super::section::{Findings, NamedTable, Section, quoted};
use super::server::Root;
use super::sources::Role;
use super::values::parse_name;
use super::zone::{self, ZoneKeys};
use nonesuch_authoritative::catalog::ProducedMember;
use nonesuch_authoritative::service::{CatalogSettings, SigningMode, ZoneSettings, ZoneTemplate};
use nonesuch_proto::Name;
use nonesuch_server::acl::{Remote, TlsName};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The rest of the configuration.
pub(super) struct ConfigContext<'c> {
    pub(super) findings: &'c Findings,
    pub(super) root: &'c Root,
    /// Names of the TSIG keys.
    pub(super) keys: &'c BTreeSet<Name>,
    pub(super) has_state: bool,
    pub(super) has_authorities: bool,
}

/// The zones and templates of all files.
#[derive(Default)]
pub(super) struct AllZones {
    pub(super) templates: BTreeMap<String, ZoneTemplate>,
    pub(super) zones: Vec<ZoneSettings>,
    /// Locations of the zone names; the keys contain the names as written.
    pub(super) places: BTreeMap<Name, ConfigLocation>,
}

/// A template, and the location of its name.
struct Base<'t> {
    keys: ZoneKeys,
    section: Section<'t>,
    place: ConfigLocation,
}

/// A member of a catalog.
struct Member {
    catalog: Name,
    listed: ProducedMember,
    /// Location that names the catalog.
    place: ConfigLocation,
}

struct Reader<'c, 't> {
    around: &'c ConfigContext<'c>,
    table: Table<ZoneKeys>,
    /// The settings before any key is read.
    blank: ZoneKeys,
    bases: BTreeMap<String, Base<'t>>,
    members: Vec<Member>,
    /// Catalogs for which a member without permitted transfers has been reported.
    closed: BTreeSet<Name>,
    read: AllZones,
}

/// Reads all templates, then all zones.
pub(super) fn read(
    templates: &[NamedTable<'_>],
    zones: &[NamedTable<'_>],
    around: &ConfigContext<'_>,
) -> AllZones {
    let mut reader = Reader {
        around,
        table: zone::table(),
        blank: ZoneKeys::default(),
        bases: BTreeMap::new(),
        members: Vec::new(),
        closed: BTreeSet::new(),
        read: AllZones::default(),
    };
    let used = used_templates(templates.iter().chain(zones));
    let (zone_keys, mut template_keys) = (reader.table.names(), reader.table.names());
    template_keys.remove("template");
    for template in templates {
        reader.read_template(template, used.contains(template.name.as_str()));
        keys::report_unknown(&template.section, &template_keys, |_| None);
    }
    for base in reader.bases.values() {
        // A template may name a template that follows it.
        reader.check_templates(&base.keys, &base.section);
    }
    for zone in zones {
        reader.read_zone(zone);
        keys::report_unknown(&zone.section, &zone_keys, |_| None);
    }
    reader.finish()
}

/// The templates that zones and other templates name.
fn used_templates<'t: 'n, 'n>(tables: impl Iterator<Item = &'n NamedTable<'t>>) -> BTreeSet<&'t str> {
    let keys = ["template", "member-template", "group-templates"];
    tables.flat_map(|table| keys.into_iter().flat_map(|key| table.section.texts(key))).collect()
}

impl<'t> Reader<'_, 't> {
    fn read_template(&mut self, named: &NamedTable<'t>, is_used: bool) {
        let (section, around) = (&named.section, self.around);
        let mut keys = self.blank.clone();
        keys.read(&self.table, section, |key| key != "template");
        // An unused template may exist for other servers and may name keys that only they have. A
        // template for catalog members must be complete.
        if is_used || keys.is_for_members() {
            around.check(&keys, section);
        }
        let place = named.place(format!("template.{}", named.name));
        match self.bases.entry(named.name.clone()) {
            // Within one file, TOML permits each name only once.
            Entry::Occupied(earlier) => {
                let message = format!("the template already exists ({}): leave one out", earlier.get().place);
                section.findings.fault(&place, message);
            }
            Entry::Vacant(entry) => {
                if keys.is_for_members()
                    && let Some(settings) = around.settle(&keys, Name::root(), section)
                {
                    // The paths are completed for each member.
                    zone::note_files(&settings, section, |_| Role::Template);
                    self.read.templates.insert(named.name.clone(), ZoneTemplate::new(settings));
                }
                entry.insert(Base { keys, section: section.clone(), place });
            }
        }
    }

    fn read_zone(&mut self, named: &NamedTable<'t>) {
        let section = &named.section;
        let mut own = self.blank.clone();
        own.read(&self.table, section, |_| true);
        let apex = match parse_name(&named.name) {
            Ok(apex) => apex,
            Err(error) => return named.fault("zone", error.to_string()),
        };
        // The key contains the name as written.
        let place = named.place(format!("{:?}", named.name));
        if let Some(earlier) = self.read.places.get(&apex) {
            let message = format!("the zone already exists, as {} ({earlier}): leave one out", earlier.key);
            return named.fault(format!("zone.{}", place.key), message);
        }
        self.read.places.insert(apex.clone(), place);
        let base = own.template.as_deref().and_then(|template| self.base(template, "template", section));
        let merged = base.map(|base| self.over(&own, section, base));
        let keys = merged.as_ref().unwrap_or(&own);
        self.check_templates(&own, section);
        self.around.check(&own, section);
        let settings = self.around.settle(keys, apex.clone(), section).map(ZoneSettings::with_zone_name);
        if let Some(settings) = &settings {
            zone::note_files(settings, section, |role| role);
        }
        if let Some(catalog) = &keys.catalog_zone {
            if let Some(settings) = &settings {
                self.warn_of_closed(catalog, settings, section);
            }
            self.note_member(catalog, keys, apex, section);
        }
        self.read.zones.extend(settings);
    }

    /// The keys of a zone, including the keys that it inherits from its template.
    fn over(&self, own: &ZoneKeys, section: &Section<'t>, base: &Base<'t>) -> ZoneKeys {
        let inherited = own.inherited(&base.keys);
        let mut keys = self.blank.clone();
        keys.read(&self.table, &base.section.silent(), |key| inherited.contains(key));
        keys.read(&self.table, &section.silent(), |_| true);
        keys
    }

    /// The template `name`, which the value of `key` names.
    fn base(&self, name: &str, key: &str, section: &Section<'_>) -> Option<&Base<'t>> {
        let base = self.bases.get(name);
        if base.is_none() {
            let names: Vec<&str> = self.bases.keys().map(String::as_str).collect();
            let write = format!("write [template.{}]", quoted(name));
            let message = if names.is_empty() {
                format!("the template {name:?} does not exist, nor does any other: {write}")
            } else {
                format!("the template {name:?} does not exist: name one of {}, or {write}", names.join(", "))
            };
            section.fault(key, message);
        }
        base
    }

    /// Checks that the templates that a catalog names exist and set `primaries`, the source of the
    /// members.
    fn check_templates(&self, keys: &ZoneKeys, section: &Section<'_>) {
        let groups = keys.group_templates.values().map(|template| (template, "group-templates"));
        let default = keys.member_template.iter().map(|template| (template, "member-template"));
        for (template, key) in default.chain(groups) {
            if self.base(template, key, section).is_some_and(|base| !base.keys.is_for_members()) {
                let message = format!(
                    "the template {template:?} has no primaries, from which members are transferred: \
                        add them there"
                );
                section.fault(key, message);
            }
        }
    }

    /// Records a member of `catalog`. The former catalog of the zone still lists it.
    fn note_member(&mut self, catalog: &Name, keys: &ZoneKeys, apex: Name, section: &Section<'_>) {
        let listed = ProducedMember::new(apex, keys.group.clone());
        if let Some(former) = &keys.catalog_former {
            // The former catalog names the new owner until the operator removes `catalog-former`.
            let let_go = ProducedMember { new_owner: Some(catalog.clone()), ..listed.clone() };
            self.members.push(Member {
                catalog: former.clone(),
                listed: let_go,
                place: section.place("catalog-former"),
            });
        }
        let (new_owner, former_owner) = (keys.catalog_next.clone(), keys.catalog_former.clone());
        self.members.push(Member {
            catalog: catalog.clone(),
            listed: ProducedMember { new_owner, former_owner, ..listed },
            place: section.place("catalog-zone"),
        });
    }

    /// Warns of the first member of each catalog that cannot be transferred. Other members usually
    /// have the same cause, because they use the same template.
    fn warn_of_closed(&mut self, catalog: &Name, settings: &ZoneSettings, section: &Section<'_>) {
        let reason = if matches!(settings.signing_mode, SigningMode::Online(_)) {
            "this zone is signed online, and cannot be transferred"
        } else if settings.transfers.transfer.entries().iter().all(|entry| entry.is_denied) {
            "no client may transfer this zone (transfer)"
        } else {
            return;
        };
        if self.closed.insert(catalog.clone()) {
            let message = format!(
                "{reason}, and consumers of the catalog {catalog} would fail to transfer it: allow \
                    them, or leave catalog-zone out; other members of that catalog are not reported"
            );
            section.warn("catalog-zone", message);
        }
    }

    /// Returns the zones; producers get their members.
    fn finish(mut self) -> AllZones {
        let mut producers: BTreeMap<Name, &mut Vec<ProducedMember>> = BTreeMap::new();
        for zone in &mut self.read.zones {
            if let Some(CatalogSettings::Producer { members }) = &mut zone.catalog {
                producers.insert(zone.apex.clone(), members);
            }
        }
        for Member { catalog, listed, place } in self.members {
            match producers.get_mut(&catalog).filter(|_| listed.zone != catalog) {
                Some(members) => members.push(listed),
                None => {
                    let message = format!(
                        "{catalog} is not a catalog that this server generates: set catalog = \
                            \"producer\" in its table"
                    );
                    self.around.findings.fault(&place, message);
                }
            }
        }
        self.read
    }
}

impl ConfigContext<'_> {
    fn settle(&self, keys: &ZoneKeys, apex: Name, section: &Section<'_>) -> Option<ZoneSettings> {
        keys.resolve(apex, section, self.has_state, self.root.query.as_ref())
    }

    /// Checks a zone or template alone. A fault in an inherited key is reported once, for the
    /// template.
    fn check(&self, keys: &ZoneKeys, section: &Section<'_>) {
        for (key, names) in keys.named_keys() {
            check_named(key, names, section, self.keys);
        }
        for (key, servers) in keys.servers() {
            for server in servers {
                self.check_server(key, server, section);
            }
            let named = servers.iter().find_map(|server| match &server.tls {
                Some(TlsName::Named(host)) => Some(host),
                _ => None,
            });
            if let Some(host) = named.filter(|_| !self.has_authorities) {
                let message = format!(
                    "no authority for the certificate of {host}: set tls-authorities at the top to a \
                        file of certificates in PEM, or write only tls, which authenticates no server"
                );
                section.fault(key, message);
            }
        }
        keys.check_journal(section, self.has_state);
        keys.check_bounds(section);
    }

    /// Checks that another server is not this server and has a port.
    fn check_server(&self, key: &str, server: &Remote, section: &Section<'_>) {
        let address = server.address;
        if address.port() == 0 {
            section.fault(key, format!("{address}: 0 is not a port: write another, or none"));
        } else if self.is_this(server) {
            let reason = if key == "primaries" {
                "would transfer the zone from itself"
            } else {
                "would notify itself"
            };
            section.fault(key, format!("{address} is this server, which {reason}: name another one"));
        }
    }

    /// Whether messages to `remote` reach this server. Of a wildcard listen address, only the
    /// loopback addresses are known to belong to this host.
    fn is_this(&self, remote: &Remote) -> bool {
        let server = &self.root.server;
        let listen = if remote.tls.is_some() { &server.listen_tls } else { &server.listen };
        let (ip, port) = (remote.address.ip().to_canonical(), remote.address.port());
        let reaches = |own: &SocketAddr| {
            let all = own.ip().is_unspecified() && own.is_ipv4() == ip.is_ipv4() && ip.is_loopback();
            own.port() == port && (own.ip() == ip || all)
        };
        listen.iter().any(reaches)
    }
}

/// Reports TSIG keys that the value of `key` names and that do not exist. An existing key with a
/// fault is reported separately.
pub(super) fn check_named(key: &str, names: BTreeSet<&Name>, section: &Section<'_>, known: &BTreeSet<Name>) {
    for name in names.into_iter().filter(|name| !known.contains(*name)) {
        section.fault(
            key,
            format!("the key {name} does not exist: add [key.{:?}] with its secret", name.to_string()),
        );
    }
}
