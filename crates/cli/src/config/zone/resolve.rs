//! Converts the keys of a zone to its settings, and reports contradictions.

use super::{CatalogRole, KEY_RULES, KeyCondition, SOA_BOUND_KEYS, ZoneFields};
use crate::config::section::Section;
use crate::config::sources::FileRole;
use nonesuch_authoritative::service::{
    CatalogSettings, OnFault, OnlineSigning, SigningMode, TransferSettings, ZoneSettings, ZoneSource,
};
use nonesuch_dnssec::online::DEFAULT_VALIDITY;
use nonesuch_proto::Name;
use nonesuch_server::acl::AccessList;
use std::ops::RangeInclusive;

impl ZoneFields {
    /// The settings of the zone `apex`. Reports contradictions; returns `None` if the zone has no
    /// valid source, no valid signing mode or contradictory bounds of SOA times. `default_query` is
    /// the access list for queries if the zone has none.
    pub(in crate::config) fn resolve(
        &self,
        apex: Name,
        section: &Section<'_>,
        has_state_dir: bool,
        default_query: Option<&AccessList>,
    ) -> Option<ZoneSettings> {
        let source = self.resolve_source(section, has_state_dir);
        let signing_mode = self.resolve_signing_mode(section);
        self.check_rules(section);
        self.check_catalogs(section);
        self.check_transfer(section);
        let (are_soa_bounds_valid, catalog) = (self.check_bounds(section), self.catalog_settings());
        let (source, query) = (source?, self.allow_query.as_ref().or(default_query).cloned());
        let on_fault = if source == ZoneSource::Primaries { OnFault::Warn } else { OnFault::Reject };
        let signing_mode = signing_mode.filter(|_| are_soa_bounds_valid)?;
        Some(ZoneSettings {
            source,
            signing_mode,
            verify: self.verify,
            on_fault: self.on_fault.unwrap_or(on_fault),
            requires_dnssec: self.requires_dnssec,
            limits: self.limits,
            allows_unsafe_transition: self.allows_unsafe_transition,
            query,
            catalog,
            apex,
            transfers: self.bounded_transfers(),
        })
    }

    /// The source of the records; `None` after a fault.
    fn resolve_source(&self, section: &Section<'_>, has_state_dir: bool) -> Option<ZoneSource> {
        if self.catalog == Some(CatalogRole::Producer) {
            return self.resolve_producer(section, has_state_dir);
        }
        let primaries = self.present_keys.contains("primaries").then_some(&self.transfers.primaries);
        match (&self.file, primaries) {
            (Some(_), Some(_)) => {
                let message = "file is set too: a zone comes from either a file or primaries, and \
                    transferred versions are stored in state-dir; leave one of them out";
                section.report_fault("primaries", message);
            }
            (Some(file), None) => return Some(ZoneSource::File(file.clone())),
            (None, Some(primaries)) if primaries.is_empty() => {
                // Faults of the listed servers have already been reported.
                if !section.has_items("primaries") {
                    let message = "the list is empty: name a server, for example \"192.0.2.1\"";
                    section.report_fault("primaries", message);
                }
            }
            (None, Some(_)) if has_state_dir => return Some(ZoneSource::Primaries),
            (None, Some(_)) => {
                let message = "a transferred zone needs state-dir for its stored version: add state-dir \
                    at the top";
                section.report_fault("primaries", message);
            }
            // A fault of a key that is present has already been reported.
            (None, None) if section.has("file") || section.has("primaries") => {}
            (None, None) if section.has("catalog") && self.catalog.is_none() => {}
            (None, None) => section.report_fault("file", "missing: set the zone's file, or its primaries"),
        }
        None
    }

    /// The source of a catalog that the server generates; `None` after a fault.
    fn resolve_producer(&self, section: &Section<'_>, has_state_dir: bool) -> Option<ZoneSource> {
        if let Some(key) = ["file", "primaries"].into_iter().find(|key| self.present_keys.contains(key)) {
            let message = "the server generates this catalog (catalog = \"producer\"): leave one of them out";
            section.report_fault(key, message);
            return None;
        }
        if !has_state_dir {
            let message = "a producer needs state-dir for the labels of its members: with new labels \
                after a restart, the consumers would transfer all zones again; add state-dir at the top";
            section.report_fault("catalog", message);
            return None;
        }
        if !self.present_keys.contains("transfer") {
            section.warn(
                "catalog",
                "no client may transfer this catalog, so no consumer can use it: \
                add transfer",
            );
        }
        Some(ZoneSource::Producer)
    }

    /// How the server signs the zone; `None` after a fault.
    fn resolve_signing_mode(&self, section: &Section<'_>) -> Option<SigningMode> {
        if self.nsec5_keys.is_some() && (self.denial.is_some() || self.signing_keys.is_some()) {
            let key = if self.denial.is_some() { "denial" } else { "keys" };
            let message = "the zone has NSEC5 (nsec5-keys): its server has no signing key, so that an \
                attacker who breaks into it cannot forge records, and uses no other denial mechanism; \
                leave keys and denial out";
            section.report_fault(key, message);
            return None;
        }
        match (self.denial, &self.signing_keys, &self.nsec5_keys) {
            (Some(mechanism), Some(keys), _) => {
                let validity = self.signature_validity.unwrap_or(DEFAULT_VALIDITY);
                let (key_directory, ignore_key_times) = (keys.clone(), self.ignore_key_times);
                Some(SigningMode::Online(OnlineSigning {
                    mechanism,
                    key_directory,
                    validity,
                    ignore_key_times,
                }))
            }
            (Some(mechanism), None, _) => {
                let message =
                    format!("{mechanism} signs online and needs keys: name their directory with keys");
                section.report_fault("denial", message);
                None
            }
            (None, Some(_), _) => {
                if !section.has("denial") {
                    let message = "keys are only for online signing: choose a mechanism with denial, or leave \
                            keys out";
                    section.report_fault("keys", message);
                }
                None
            }
            (None, None, Some(keys)) => Some(SigningMode::Nsec5 { key_directory: keys.clone() }),
            (None, None, None) => Some(SigningMode::AsLoaded),
        }
    }

    /// Reports a journal without a state directory, in which it would be stored.
    pub(in crate::config) fn check_journal(&self, section: &Section<'_>, has_state_dir: bool) {
        if self.present_keys.contains("journal-size") && self.transfers.journal_octets > 0 && !has_state_dir {
            let message = "a journal needs state-dir: add state-dir at the top, or leave this out";
            section.report_fault("journal-size", message);
        }
    }

    /// Reports minimums of SOA times that exceed their maximum. Returns true if no minimum
    /// does.
    pub(in crate::config) fn check_bounds(&self, section: &Section<'_>) -> bool {
        for first in self.contradictory_bounds() {
            let (min, max) = (SOA_BOUND_KEYS[first], SOA_BOUND_KEYS[first + 1]);
            if section.has(min) {
                section.report_fault(min, format!("longer than {max}: lower it"));
            } else {
                let default = self.default_min(first);
                let message = format!("shorter than {min} (default {default} s): raise it, or lower {min}");
                section.report_fault(max, message);
            }
        }
        self.contradictory_bounds().next().is_none()
    }

    /// Reports keys that have no effect on this zone.
    fn check_rules(&self, section: &Section<'_>) {
        for rule in KEY_RULES.iter().filter(|rule| !rule.condition.is_met(&self.present_keys, self.catalog)) {
            for key in rule.keys.iter().filter(|key| self.present_keys.contains(*key)) {
                let subject =
                    if rule.condition == KeyCondition::Member { format!("{key} ") } else { String::new() };
                section.report_fault(key, format!("{subject}{}", rule.message));
            }
        }
    }

    /// Reports a zone that is signed online and that clients may transfer.
    fn check_transfer(&self, section: &Section<'_>) {
        let is_transferred = self.transfers.transfer.entries().iter().any(|entry| !entry.denies);
        if is_transferred && self.denial.is_some() {
            let message = "a zone that is signed online cannot be transferred, because the zone does \
                not contain the signatures; leave transfer or denial out";
            section.report_fault("transfer", message);
        }
    }

    /// Reports contradictions of the keys for catalogs.
    fn check_catalogs(&self, section: &Section<'_>) {
        for (other, key) in [(&self.catalog_next, "catalog-next"), (&self.catalog_former, "catalog-former")] {
            if other.is_some() && *other == self.catalog_zone {
                section.report_fault(
                    key,
                    "the zone is already in this catalog: name another one, or leave \
                    this out",
                );
            }
        }
        if self.catalog == Some(CatalogRole::Consumer) {
            if self.member_template.is_none() && !section.has("member-template") {
                let message = "member-template is missing: name the template for the members";
                section.report_fault("catalog", message);
            }
            if self.denial.is_some() {
                section.report_fault(
                    "denial",
                    "a catalog is not signed, because it is not for resolvers: \
                    leave denial out",
                );
            }
        }
    }

    fn catalog_settings(&self) -> Option<CatalogSettings> {
        match self.catalog? {
            // The members of producers are added after all zones are read.
            CatalogRole::Producer => Some(CatalogSettings::Producer { members: Vec::new() }),
            CatalogRole::Consumer => {
                let (template, groups) = (self.member_template.clone()?, self.group_templates.clone());
                Some(CatalogSettings::Consumer { template, groups })
            }
        }
    }

    /// The transfer settings with the ranges that the keys for SOA times set.
    fn bounded_transfers(&self) -> TransferSettings {
        let range = |first: usize, default: &RangeInclusive<u32>| {
            let min = self.bounds[first].unwrap_or_else(|| *default.start());
            min..=self.bounds[first + 1].unwrap_or_else(|| (*default.end()).max(min))
        };
        let TransferSettings { refresh, retry, expire, .. } = &self.transfers;
        let (refresh, retry, expire) = (range(0, refresh), range(2, retry), range(4, expire));
        TransferSettings { refresh, retry, expire, ..self.transfers.clone() }
    }
}

/// Records the files that a zone or a template names. `role` converts the role that a file has for
/// a zone.
pub(in crate::config) fn record_files(
    settings: &ZoneSettings,
    section: &Section<'_>,
    role: impl Fn(FileRole) -> FileRole,
) {
    let apex = || settings.apex.clone();
    let file = if let ZoneSource::File(file) = &settings.source { Some(file) } else { None };
    if let Some(file) = file {
        section.record_file("file", file, role(FileRole::Zone(apex())));
    }
    match &settings.signing_mode {
        SigningMode::AsLoaded => {}
        SigningMode::Online(signing) => {
            let role = role(FileRole::SigningKeys(apex(), signing.ignore_key_times));
            section.record_file("keys", &signing.key_directory, role);
        }
        SigningMode::Nsec5 { key_directory } => {
            section.record_file("nsec5-keys", key_directory, role(FileRole::VrfKeys(apex(), file.cloned())));
        }
    }
}
