//! The zones and templates of all files. Checks that the keys, templates and catalogs that they
//! name exist.

use super::keys::{self, Table};
use super::problem::ConfigLocation;
use super::section::{Diagnostics, NamedTable, Section, quoted};
use super::server::Root;
use super::sources::FileRole;
use super::values::parse_name;
use super::zone::{self, ZoneFields};
use nonesuch_authoritative::catalog::ProducedMember;
use nonesuch_authoritative::service::{CatalogSettings, SigningMode, ZoneSettings, ZoneTemplate};
use nonesuch_proto::Name;
use nonesuch_server::acl::{Remote, TlsName};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The parts of the configuration outside zones and templates that the zones depend on.
pub(super) struct ConfigContext<'c> {
    pub(super) diagnostics: &'c Diagnostics,
    pub(super) root: &'c Root,
    /// Names of the TSIG keys, including invalid ones.
    pub(super) tsig_names: &'c BTreeSet<Name>,
    /// Whether `state-dir` is set.
    pub(super) has_state_dir: bool,
    /// Whether `tls-authorities` is set.
    pub(super) has_tls_authorities: bool,
}

/// The zones and templates of all files.
#[derive(Default)]
pub(super) struct AllZones {
    pub(super) templates: BTreeMap<String, ZoneTemplate>,
    pub(super) zones: Vec<ZoneSettings>,
    /// Locations of the zone names. The member `key` of a location is the name as written.
    pub(super) locations: BTreeMap<Name, ConfigLocation>,
}

/// A template, and the location of its name.
struct Template<'t> {
    fields: ZoneFields,
    section: Section<'t>,
    location: ConfigLocation,
}

/// A member of a catalog that the server generates.
struct Member {
    catalog: Name,
    listed: ProducedMember,
    /// Location that names the catalog.
    location: ConfigLocation,
}

/// The state of reading the templates and zones.
struct ZoneReader<'c, 't> {
    context: &'c ConfigContext<'c>,
    table: Table<ZoneFields>,
    /// The settings before any key is read.
    defaults: ZoneFields,
    templates: BTreeMap<String, Template<'t>>,
    members: Vec<Member>,
    /// Catalogs with a reported member that consumers cannot transfer.
    reported_catalogs: BTreeSet<Name>,
    result: AllZones,
}

/// Reads all templates, then all zones.
pub(super) fn read(
    templates: &[NamedTable<'_>],
    zones: &[NamedTable<'_>],
    context: &ConfigContext<'_>,
) -> AllZones {
    let mut reader = ZoneReader {
        context,
        table: zone::table(),
        defaults: ZoneFields::default(),
        templates: BTreeMap::new(),
        members: Vec::new(),
        reported_catalogs: BTreeSet::new(),
        result: AllZones::default(),
    };
    let used = used_templates(templates.iter().chain(zones));
    let (zone_keys, mut template_keys) = (reader.table.names(), reader.table.names());
    template_keys.remove("template");
    for template in templates {
        reader.read_template(template, used.contains(template.name.as_str()));
        keys::report_unknown(&template.section, &template_keys, |_| None);
    }
    for template in reader.templates.values() {
        // A template may name a template that follows it.
        reader.check_templates(&template.fields, &template.section);
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

impl<'t> ZoneReader<'_, 't> {
    fn read_template(&mut self, named: &NamedTable<'t>, is_used: bool) {
        let (section, context) = (&named.section, self.context);
        let mut fields = self.defaults.clone();
        fields.read(&self.table, section, |key| key != "template");
        // An unused template may exist for other servers and may name TSIG keys that only they
        // have. A template for catalog members must be complete.
        if is_used || fields.has_primaries() {
            context.check(&fields, section);
        }
        let location = named.location(format!("template.{}", named.name));
        match self.templates.entry(named.name.clone()) {
            // Within one file, TOML permits each name only once.
            Entry::Occupied(earlier) => {
                let message =
                    format!("the template already exists ({}): leave one out", earlier.get().location);
                section.diagnostics.report_fault(&location, message);
            }
            Entry::Vacant(entry) => {
                if fields.has_primaries()
                    && let Some(settings) = context.resolve_zone(&fields, Name::root(), section)
                {
                    // The paths are completed for each member.
                    zone::record_files(&settings, section, |_| FileRole::Template);
                    self.result.templates.insert(named.name.clone(), ZoneTemplate::new(settings));
                }
                entry.insert(Template { fields, section: section.clone(), location });
            }
        }
    }

    fn read_zone(&mut self, named: &NamedTable<'t>) {
        let section = &named.section;
        let mut own = self.defaults.clone();
        own.read(&self.table, section, |_| true);
        let apex = match parse_name(&named.name) {
            Ok(apex) => apex,
            Err(error) => return named.report_fault("zone", error.to_string()),
        };
        // With the name as written, for messages.
        let location = named.location(format!("{:?}", named.name));
        if let Some(earlier) = self.result.locations.get(&apex) {
            let message = format!("the zone already exists, as {} ({earlier}): leave one out", earlier.key);
            return named.report_fault(format!("zone.{}", location.key), message);
        }
        self.result.locations.insert(apex.clone(), location);
        let template = own.template.as_deref();
        let template = template.and_then(|name| self.find_template(name, "template", section));
        let merged = template.map(|template| self.merge_template(&own, section, template));
        let fields = merged.as_ref().unwrap_or(&own);
        self.check_templates(&own, section);
        self.context.check(&own, section);
        let settings =
            self.context.resolve_zone(fields, apex.clone(), section).map(ZoneSettings::with_zone_name);
        if let Some(settings) = &settings {
            zone::record_files(settings, section, |role| role);
        }
        if let Some(catalog) = &fields.catalog_zone {
            if let Some(settings) = &settings {
                self.warn_of_denied_transfer(catalog, settings, section);
            }
            self.record_member(catalog, fields, apex, section);
        }
        self.result.zones.extend(settings);
    }

    /// The fields of a zone with the keys `own`, including those that it inherits from `template`.
    fn merge_template(&self, own: &ZoneFields, section: &Section<'t>, template: &Template<'t>) -> ZoneFields {
        let inherited = own.inherited_keys(&template.fields);
        let mut fields = self.defaults.clone();
        fields.read(&self.table, &template.section.silent(), |key| inherited.contains(key));
        fields.read(&self.table, &section.silent(), |_| true);
        fields
    }

    /// The template `name`, which the value of `key` names. Reports a fault if it does not exist.
    fn find_template(&self, name: &str, key: &str, section: &Section<'_>) -> Option<&Template<'t>> {
        let template = self.templates.get(name);
        if template.is_none() {
            let names: Vec<&str> = self.templates.keys().map(String::as_str).collect();
            let write = format!("write [template.{}]", quoted(name));
            let message = if names.is_empty() {
                format!("the template {name:?} does not exist, nor does any other: {write}")
            } else {
                format!("the template {name:?} does not exist: name one of {}, or {write}", names.join(", "))
            };
            section.report_fault(key, message);
        }
        template
    }

    /// Checks that the templates that a catalog names exist and set `primaries`, the source of the
    /// members.
    fn check_templates(&self, fields: &ZoneFields, section: &Section<'_>) {
        let groups = fields.group_templates.values().map(|template| (template, "group-templates"));
        let default = fields.member_template.iter().map(|template| (template, "member-template"));
        for (template, key) in default.chain(groups) {
            if self.find_template(template, key, section).is_some_and(|found| !found.fields.has_primaries()) {
                let message = format!(
                    "the template {template:?} has no primaries, from which members are transferred: \
                        add them there"
                );
                section.report_fault(key, message);
            }
        }
    }

    /// Records the zone `apex` as a member of `catalog`. If the zone moves to `catalog`, its former
    /// catalog still lists it.
    fn record_member(&mut self, catalog: &Name, fields: &ZoneFields, apex: Name, section: &Section<'_>) {
        let listed = ProducedMember::new(apex, fields.group.clone());
        if let Some(former) = &fields.catalog_former {
            // The former catalog names the new owner until the operator removes `catalog-former`.
            let former_entry = ProducedMember { new_owner: Some(catalog.clone()), ..listed.clone() };
            self.members.push(Member {
                catalog: former.clone(),
                listed: former_entry,
                location: section.location("catalog-former"),
            });
        }
        let (new_owner, former_owner) = (fields.catalog_next.clone(), fields.catalog_former.clone());
        self.members.push(Member {
            catalog: catalog.clone(),
            listed: ProducedMember { new_owner, former_owner, ..listed },
            location: section.location("catalog-zone"),
        });
    }

    /// Warns of the first member of each catalog that consumers cannot transfer. Other members are
    /// not reported, because they usually use the same template and have the same cause.
    fn warn_of_denied_transfer(&mut self, catalog: &Name, settings: &ZoneSettings, section: &Section<'_>) {
        let reason = if matches!(settings.signing_mode, SigningMode::Online(_)) {
            "this zone is signed online, and cannot be transferred"
        } else if settings.transfers.transfer.entries().iter().all(|entry| entry.denies) {
            "no client may transfer this zone (transfer)"
        } else {
            return;
        };
        if self.reported_catalogs.insert(catalog.clone()) {
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
        for zone in &mut self.result.zones {
            if let Some(CatalogSettings::Producer { members }) = &mut zone.catalog {
                producers.insert(zone.apex.clone(), members);
            }
        }
        for Member { catalog, listed, location } in self.members {
            match producers.get_mut(&catalog).filter(|_| listed.zone != catalog) {
                Some(members) => members.push(listed),
                None => {
                    let message = format!(
                        "{catalog} is not a catalog that this server generates: set catalog = \
                            \"producer\" in its table"
                    );
                    self.context.diagnostics.report_fault(&location, message);
                }
            }
        }
        self.result
    }
}

impl ConfigContext<'_> {
    /// The settings of the zone `apex`. Reports contradictions; returns `None` after some of them.
    fn resolve_zone(&self, fields: &ZoneFields, apex: Name, section: &Section<'_>) -> Option<ZoneSettings> {
        fields.resolve(apex, section, self.has_state_dir, self.root.allow_query.as_ref())
    }

    /// Checks the keys that a zone or template itself sets, so that a fault in an inherited key is
    /// reported once, for the template.
    fn check(&self, fields: &ZoneFields, section: &Section<'_>) {
        for (key, names) in fields.tsig_names_by_list() {
            check_tsig_names(key, names, section, self.tsig_names);
        }
        for (key, servers) in fields.server_lists() {
            for server in servers {
                self.check_server(key, server, section);
            }
            let named = servers.iter().find_map(|server| match &server.tls {
                Some(TlsName::Named(host)) => Some(host),
                _ => None,
            });
            if let Some(host) = named.filter(|_| !self.has_tls_authorities) {
                let message = format!(
                    "no authority for the certificate of {host}: set tls-authorities at the top to a \
                        file of certificates in PEM, or write only tls, which authenticates no server"
                );
                section.report_fault(key, message);
            }
        }
        fields.check_journal(section, self.has_state_dir);
        fields.check_bounds(section);
    }

    /// Checks that another server is not this server and has a port.
    fn check_server(&self, key: &str, server: &Remote, section: &Section<'_>) {
        let address = server.address;
        if address.port() == 0 {
            section.report_fault(key, format!("{address}: 0 is not a port: write another, or none"));
        } else if self.is_own_address(server) {
            let reason = if key == "primaries" {
                "would transfer the zone from itself"
            } else {
                "would notify itself"
            };
            section.report_fault(key, format!("{address} is this server, which {reason}: name another one"));
        }
    }

    /// Whether messages to `remote` reach this server. If the server listens on a wildcard address,
    /// only loopback addresses are recognised, because the other addresses of the host are unknown.
    fn is_own_address(&self, remote: &Remote) -> bool {
        let server = &self.root.server;
        let listen = if remote.tls.is_some() { &server.tls.listen } else { &server.listen };
        let (ip, port) = (remote.address.ip().to_canonical(), remote.address.port());
        let reaches = |own: &SocketAddr| {
            let is_wildcard = own.ip().is_unspecified() && own.is_ipv4() == ip.is_ipv4() && ip.is_loopback();
            own.port() == port && (own.ip() == ip || is_wildcard)
        };
        listen.iter().any(reaches)
    }
}

/// Reports each of `names`, the TSIG keys in the value of `key`, that is not in `known`. `known`
/// includes keys with a fault, which are reported separately.
pub(super) fn check_tsig_names(
    key: &str,
    names: BTreeSet<&Name>,
    section: &Section<'_>,
    known: &BTreeSet<Name>,
) {
    for name in names.into_iter().filter(|name| !known.contains(*name)) {
        section.report_fault(
            key,
            format!("the key {name} does not exist: add [key.{:?}] with its secret", name.to_string()),
        );
    }
}
