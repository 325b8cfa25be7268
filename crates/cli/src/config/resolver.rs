//! The configuration of a resolver: the keys of `nonesuch resolve --config`.

mod tables;

pub(super) use tables::reference;

use super::problem::{Document, Problem, Problems};
use super::section::{Diagnostics, NamedTable, Section};
use super::server::{check_control, check_metrics_address, require_version};
use super::tls::{HasTls, Tls};
use super::values::parse_name;
use super::{Log, MAX_CONFIGURATION_BYTES, Sources, parse_table, read_file};
use crate::hints::read_hints;
use crate::trust_anchors::{TrustAnchorsError, trust_anchors};
use crate::zones::time_or_now;
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_resolver::local_names::LocalNames;
use nonesuch_resolver::options::{NegativeAnchor, OptionsError, ResolverOptions};
use nonesuch_resolver::trust_anchors::TrustAnchors;
use nonesuch_resolver::zones::{ZoneRule, ZoneRules};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tables::{forward_table, limits_table, negative_anchor_table, root_table, stub_table};

/// The configuration of a resolver.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResolverConfiguration {
    pub(crate) listen: Vec<SocketAddr>,
    /// DNS over TLS.
    pub(crate) tls: Tls,
    /// Maximum time of a TLS handshake; `None` for the default.
    pub(crate) tls_handshake: Option<Duration>,
    /// The user that the resolver becomes.
    pub(crate) user: Option<String>,
    /// Number of workers; `None` for one per core.
    pub(crate) workers: Option<usize>,
    pub(crate) control_socket: Option<PathBuf>,
    /// The group that may use the control socket.
    pub(crate) control_group: Option<String>,
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) log: Log,
    pub(crate) options: ResolverOptions,
    /// The file with the servers of the root zone.
    pub(crate) hints: Option<PathBuf>,
    pub(crate) validation: Validation,
    /// The file with the trust anchors.
    pub(crate) trust_anchors: Option<PathBuf>,
    /// The directory with the states of trust anchors that are updated automatically.
    pub(crate) anchor_state: Option<PathBuf>,
}

/// Whether answers are validated. The default is yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validation(pub(crate) bool);

impl Default for Validation {
    fn default() -> Self {
        Self(true)
    }
}

impl ResolverConfiguration {
    /// Sets the trust anchors.
    pub(crate) fn read_trust_anchors(&mut self) -> Result<(), TrustAnchorsError> {
        if self.validation.0 {
            self.options.validation.anchors =
                trust_anchors(self.trust_anchors.as_deref(), self.hints.is_some(), time_or_now(None))?;
        }
        Ok(())
    }
}

impl HasTls for ResolverConfiguration {
    fn tls(&mut self) -> &mut Tls {
        &mut self.tls
    }
}

/// A configuration, its warnings and its sources.
#[derive(Debug)]
pub(crate) struct LoadedResolver {
    pub(crate) configuration: ResolverConfiguration,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) sources: Sources,
}

/// Reads the configuration at `path`, and the hints that it names.
///
/// # Errors
/// All problems of the configuration that prevent its use.
pub(crate) fn load(path: &Path) -> Result<LoadedResolver, Problems> {
    let document = Document::new(0, path, read_file(path, MAX_CONFIGURATION_BYTES)?);
    let diagnostics = Diagnostics::new(path, root_table().names());
    let read = parse_table(&document, &diagnostics).map(|table| {
        let root = Section::root(&document, &diagnostics, &table);
        (read(&root), root.key_locations())
    });
    let (warnings, files) = diagnostics.finish()?;
    let (configuration, top_level_keys) = read.ok_or_else(|| Problems(Vec::new()))?;
    let sources = Sources { path: path.to_path_buf(), files, top_level_keys, zones: BTreeMap::new() };
    Ok(LoadedResolver { configuration, warnings, sources })
}

fn read(root: &Section<'_>) -> ResolverConfiguration {
    let mut configuration = root_table().read_all(root);
    require_version(root);
    configuration.log = Log::read(root);
    configuration.options.padding_block = configuration.tls.padding_block;
    let limits = root.subtable("limits");
    if let Some(limits) = &limits {
        let table = limits_table();
        table.read(limits, &mut configuration, |_| true);
        table.report_unknown(limits);
    }
    if let Some(file) = &configuration.hints {
        match read_hints(file) {
            Ok(hints) => configuration.options.hints = hints,
            Err(error) => root.report_fault("hints", error.to_string()),
        }
    }
    if let Err(error) = configuration.read_trust_anchors() {
        root.report_fault("trust-anchors", error.to_string());
    }
    configuration.options.zones = read_rules(root);
    let anchors = &configuration.options.validation.anchors;
    configuration.options.validation.negative_anchors = read_negative_anchors(root, anchors);
    check(&configuration, root, limits.as_ref());
    configuration
}

/// Reads the forward and stub zones, and reports the faults of each at its location.
fn read_rules(root: &Section<'_>) -> ZoneRules {
    let mut rules = ZoneRules::default();
    for (kind, table) in [("forward", forward_table()), ("stub", stub_table())] {
        for named in root.named_subtables(kind) {
            let fields = table.read_all(&named.section);
            let Some(apex) = apex(&named) else { continue };
            if !named.section.has("servers") {
                named.section.report_fault("servers", "missing: name at least one server");
                continue;
            }
            let mut rule = match kind {
                "forward" if fields.falls_back => ZoneRule::forward_first(apex, fields.servers),
                "forward" => ZoneRule::forward(apex, fields.servers),
                _ => ZoneRule::stub(apex, fields.servers),
            };
            rule.tcp = fields.tcp;
            if let Err(error) = rules.insert(rule) {
                named.report_fault(kind, error.to_string());
            }
        }
    }
    rules
}

/// Reads the negative trust anchors. Each must have an end (RFC 7646 §2.1).
fn read_negative_anchors(root: &Section<'_>, positive: &TrustAnchors) -> Vec<NegativeAnchor> {
    let mut anchors = Vec::new();
    for named in root.named_subtables("negative-anchor") {
        let fields = negative_anchor_table().read_all(&named.section);
        let apex = apex(&named);
        // RFC 7646 §3: a warning, so that operators are not surprised.
        let of_zone = apex.as_ref().and_then(|apex| positive.closest(apex.view()));
        if of_zone.zip(apex.as_ref()).is_some_and(|(zone, apex)| zone.apex == *apex) {
            named.section.warn("until", "the zone has a trust anchor, which is not used until then");
        }
        match (apex, fields.until) {
            (Some(name), Some(Rfc3339(until))) => anchors.push(NegativeAnchor {
                name,
                expires: Some(until),
                is_rechecked: !fields.is_not_rechecked,
            }),
            (_, None) if !named.section.has("until") => {
                named
                    .section
                    .report_fault("until", "missing: write the time at which validation begins again");
            }
            _ => {}
        }
    }
    anchors
}

fn apex(named: &NamedTable<'_>) -> Option<Name> {
    parse_name(&named.name).map_err(|error| named.report_fault(named.name.clone(), error.to_string())).ok()
}

/// Reports contradictions between values.
fn check(configuration: &ResolverConfiguration, root: &Section<'_>, limits: Option<&Section<'_>>) {
    let ResolverConfiguration { options, listen, tls, .. } = configuration;
    tls.check(listen, root);
    check_metrics_address(configuration.metrics_listen, listen.iter().chain(&tls.listen), root);
    check_control(configuration.control_socket.as_deref(), configuration.control_group.as_deref(), root);
    if let Some("root") = configuration.user.as_deref() {
        root.warn("user", "an attacker in control of the resolver is root: name another user");
    }
    let names = LocalNames::new(&options.disabled_local_zones, &options.zones, options.chaos.clone());
    if let Err(error) = names {
        root.report_fault("disabled-local-zones", error.to_string());
    }
    let Err(error) = options.check() else { return };
    match &error {
        OptionsError::Range { key, .. } | OptionsError::Order { key, .. } => {
            limits.unwrap_or(root).report_fault(key, error.to_string());
        }
        OptionsError::AccessKey { .. } => root.report_fault("allow-query", error.to_string()),
        _ => root.report_fault("address-families", error.to_string()),
    }
}

#[cfg(test)]
mod tests;
