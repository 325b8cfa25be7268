//! Zones and templates of a configuration: their keys, what a zone takes over from a template, and what contradicts.

use super::reader::Section;
use super::values::{boolean, choice, name, number, octets, parsed, path, seconds, text};
use nonesuch_authoritative::acl::{AccessEntry, AccessList, Remote};
use nonesuch_authoritative::service::{
    Catalog, Making, OnFault, RecordLimits, Source, Template, TransferSettings, VerifyChoice, ZoneSettings,
};
use nonesuch_authoritative::transfer::inbound::TransferBounds;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::{MECHANISMS, Made};
use nonesuch_dnssec::online::{DEFAULT_VALIDITY, LEAST_VALIDITY, MOST_VALIDITY};
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use toml::de::DeValue;

/// Longest time of a SOA record that is taken as it is: a year.
const MOST_TIME: u64 = 31_536_000;

/// Highest limit on records of one type and on types: a message has fewer records, and a type has two octets.
const MOST_RECORDS: u32 = 65_535;

/// What a catalog zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatalogRole {
    Producer,
    Consumer,
}

/// The keys of a zone or template that are there.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneKeys {
    file: Option<PathBuf>,
    keys: Option<PathBuf>,
    denial: Option<Mechanism>,
    signature_validity: Option<u32>,
    nsec5_keys: Option<PathBuf>,
    verify: Option<VerifyChoice>,
    on_fault: Option<OnFault>,
    requires_dnssec: Option<bool>,
    limits: RecordLimits,
    allows_unsafe_transition: Option<bool>,
    primaries: Option<Vec<Remote>>,
    allow_query: Option<Vec<AccessEntry>>,
    transfer: Option<Vec<AccessEntry>>,
    notify_from: Option<Vec<AccessEntry>>,
    also_notify: Option<Vec<Remote>>,
    journal_size: Option<u64>,
    bounds: [Option<u32>; 6],
    request_ixfr: Option<bool>,
    transfer_size_max: Option<u64>,
    transfer_records_max: Option<u64>,
    pub(super) catalog: Option<CatalogRole>,
    pub(super) member_template: Option<String>,
    pub(super) group_templates: Option<BTreeMap<String, String>>,
    pub(super) catalog_zone: Option<Name>,
    pub(super) catalog_next: Option<Name>,
    pub(super) catalog_former: Option<Name>,
    pub(super) group: Option<String>,
}

/// Keys of the bounds on a SOA record's times.
const BOUNDS: [&str; 6] =
    ["refresh-min", "refresh-max", "retry-min", "retry-max", "expire-min", "expire-max"];

impl ZoneKeys {
    /// Reads all keys but `template`.
    pub(super) fn read(section: &Section<'_, '_>) -> Self {
        super::warnings::look_at_zone(section);
        let folder = section.context().folder();
        let roles = [("producer", CatalogRole::Producer), ("consumer", CatalogRole::Consumer)];
        let verify = [
            ("auto", VerifyChoice::Auto),
            ("full", VerifyChoice::Full),
            ("changed", VerifyChoice::Changed),
            ("structural", VerifyChoice::Structural),
            ("none", VerifyChoice::Nothing),
        ];
        let on_fault = [("reject", OnFault::Reject), ("warn", OnFault::Warn)];
        let limit = || number(0..=MOST_RECORDS);
        let validity = seconds(u64::from(LEAST_VALIDITY)..=u64::from(MOST_VALIDITY));
        let groups = section.take_table("group-templates").map(|table| {
            let pairs = table.pairs();
            pairs.into_iter().collect::<BTreeMap<_, _>>()
        });
        Self {
            file: section.take("file", path(folder)),
            keys: section.take("keys", path(folder)),
            denial: section.take("denial", mechanism),
            signature_validity: section.take("signature-validity", validity).map(|seconds| seconds as u32),
            nsec5_keys: section.take("nsec5-keys", path(folder)),
            verify: section.take("verify", choice(&verify)),
            on_fault: section.take("on-fault", choice(&on_fault)),
            requires_dnssec: section.take("dnssec", choice(&[("required", true), ("optional", false)])),
            limits: RecordLimits {
                records_per_type: section.take("max-records-per-type", limit()),
                types_per_name: section.take("max-types-per-name", limit()),
            },
            allows_unsafe_transition: section.take("allow-unsafe-transition", boolean),
            primaries: section.take_list("primaries", "servers", parsed),
            allow_query: section.take_list("allow-query", "prefixes and keys", parsed),
            transfer: section.take_list("transfer", "prefixes and keys", parsed),
            notify_from: section.take_list("notify-from", "prefixes and keys", parsed),
            also_notify: section.take_list("also-notify", "servers", parsed),
            journal_size: section.take("journal-size", octets(0..=1 << 40)),
            bounds: BOUNDS.map(|key| section.take(key, seconds(1..=MOST_TIME)).map(|time| time as u32)),
            request_ixfr: section.take("request-ixfr", boolean),
            transfer_size_max: section.take("transfer-size-max", octets(1 << 10..=1 << 50)),
            transfer_records_max: section.take("transfer-records-max", number(1..=1 << 40)),
            catalog: section.take("catalog", choice(&roles)),
            member_template: section.take("member-template", text),
            group_templates: groups,
            catalog_zone: section.take("catalog-zone", name),
            catalog_next: section.take("catalog-next", name),
            catalog_former: section.take("catalog-former", name),
            group: section.take("group", text),
        }
    }

    /// These keys, and those of `base` that are not among them. A zone that says where its records come from takes over
    /// neither file nor primaries, and one that says how it is signed none of the keys of that. What has no use for a zone it does
    /// not take over, since it could not leave it out: what is for primaries, for signing when asked, for members of a catalog.
    pub(super) fn over(self, base: &Self) -> Self {
        let mut base = base.clone();
        // Those that contradict each other are said of the template.
        for first in base.contradictions() {
            base.bounds[first..first + 2].fill(None);
        }
        let has_source =
            self.file.is_some() || self.primaries.is_some() || self.catalog == Some(CatalogRole::Producer);
        let has_making = self.denial.is_some() || self.nsec5_keys.is_some();
        let (file, primaries) = if has_source { (None, None) } else { (base.file, base.primaries) };
        let (denial, nsec5_keys) = if has_making { (None, None) } else { (base.denial, base.nsec5_keys) };
        let keys = if self.nsec5_keys.is_some() { None } else { base.keys };
        if self.denial.is_none() && denial.is_none() {
            base.signature_validity = None;
        }
        if self.primaries.is_none() && primaries.is_none() {
            base.notify_from = None;
            base.bounds = Default::default();
            base.request_ixfr = None;
            base.transfer_size_max = None;
            base.transfer_records_max = None;
        }
        if self.primaries.is_some() || primaries.is_some() {
            base.allows_unsafe_transition = None;
        }
        let catalog = self.catalog.or(base.catalog);
        if catalog != Some(CatalogRole::Consumer) {
            base.member_template = None;
            base.group_templates = None;
        }
        let mut bounds = self.bounds;
        bounds.iter_mut().zip(base.bounds).for_each(|(own, base)| *own = own.or(base));
        Self {
            file: self.file.or(file),
            keys: self.keys.or(keys),
            denial: self.denial.or(denial),
            signature_validity: self.signature_validity.or(base.signature_validity),
            nsec5_keys: self.nsec5_keys.or(nsec5_keys),
            verify: self.verify.or(base.verify),
            on_fault: self.on_fault.or(base.on_fault),
            requires_dnssec: self.requires_dnssec.or(base.requires_dnssec),
            limits: RecordLimits {
                records_per_type: self.limits.records_per_type.or(base.limits.records_per_type),
                types_per_name: self.limits.types_per_name.or(base.limits.types_per_name),
            },
            allows_unsafe_transition: self.allows_unsafe_transition.or(base.allows_unsafe_transition),
            primaries: self.primaries.or(primaries),
            allow_query: self.allow_query.or(base.allow_query),
            transfer: self.transfer.or(base.transfer),
            notify_from: self.notify_from.or(base.notify_from),
            also_notify: self.also_notify.or(base.also_notify),
            journal_size: self.journal_size.or(base.journal_size),
            bounds,
            request_ixfr: self.request_ixfr.or(base.request_ixfr),
            transfer_size_max: self.transfer_size_max.or(base.transfer_size_max),
            transfer_records_max: self.transfer_records_max.or(base.transfer_records_max),
            catalog,
            member_template: self.member_template.or(base.member_template),
            group_templates: self.group_templates.or(base.group_templates),
            catalog_zone: self.catalog_zone.or(base.catalog_zone),
            catalog_next: self.catalog_next.or(base.catalog_next),
            catalog_former: self.catalog_former.or(base.catalog_former),
            group: self.group.or(base.group),
        }
    }

    /// The TSIG keys that each of the lists speaks of.
    pub(super) fn named_keys(&self) -> [(&'static str, Vec<Name>); 5] {
        let of_list = |list: &Option<Vec<AccessEntry>>| {
            list.iter().flatten().filter_map(|entry| entry.key.clone()).collect()
        };
        let of_remotes =
            |remotes: &[Remote]| remotes.iter().filter_map(|remote| remote.key.clone()).collect();
        let [primaries, also_notify] = self.remotes().map(|(key, remotes)| (key, of_remotes(remotes)));
        [
            ("allow-query", of_list(&self.allow_query)),
            primaries,
            also_notify,
            ("transfer", of_list(&self.transfer)),
            ("notify-from", of_list(&self.notify_from)),
        ]
    }

    /// The lists of other servers.
    pub(super) fn remotes(&self) -> [(&'static str, &[Remote]); 2] {
        [("primaries", &self.primaries), ("also-notify", &self.also_notify)]
            .map(|(key, remotes)| (key, remotes.as_deref().unwrap_or_default()))
    }

    /// The settings of the zone `apex`; what contradicts is reported.
    pub(super) fn settle(
        &self,
        apex: Name,
        section: &Section<'_, '_>,
        has_state: bool,
    ) -> Option<ZoneSettings> {
        let settings = self.make(apex, section, has_state)?.filled_in();
        super::sources::note_files(&settings, section, false);
        Some(settings)
    }

    /// The same, paths as they are written.
    fn make(&self, apex: Name, section: &Section<'_, '_>, has_state: bool) -> Option<ZoneSettings> {
        let source = self.source(section, has_state);
        let making = self.making(section);
        self.check_transfers(section);
        let transfers = self.transfers(section);
        let source = source?;
        let by_default = if source == Source::Primaries { OnFault::Warn } else { OnFault::Reject };
        Some(ZoneSettings {
            source,
            making: making?,
            verify: self.verify.unwrap_or_default(),
            on_fault: self.on_fault.unwrap_or(by_default),
            requires_dnssec: self.requires_dnssec.unwrap_or_default(),
            limits: self.limits,
            allows_unsafe_transition: self.allows_unsafe_transition.unwrap_or_default(),
            query: self
                .allow_query
                .clone()
                .map(AccessList::new)
                .or_else(|| section.context().findings().query()),
            transfers: transfers?,
            // Producers get their members when all zones are read.
            catalog: self.catalog_settings(section),
            apex,
        })
    }

    /// As [`settle`](Self::settle), of what members of a catalog are made after: paths are filled in for each.
    pub(super) fn settle_template(&self, section: &Section<'_, '_>, has_state: bool) -> Option<Template> {
        let settings = self.make(Name::root(), section, has_state)?;
        super::sources::note_files(&settings, section, true);
        Some(Template::new(settings))
    }

    /// Whether members of a catalog can be made after it.
    pub(super) fn is_for_members(&self) -> bool {
        self.primaries.is_some()
    }

    fn source(&self, section: &Section<'_, '_>, has_state: bool) -> Option<Source> {
        let (file, primaries) = (self.file.as_ref(), self.primaries.as_deref());
        if self.catalog == Some(CatalogRole::Producer) {
            for (is_there, key) in [(file.is_some(), "file"), (primaries.is_some(), "primaries")] {
                if is_there {
                    section.fault(key, "the server makes this catalog itself (catalog = \"producer\"): leave one of them out");
                    return None;
                }
            }
            if !has_state {
                section.fault(
                    "catalog",
                    "there is no state-dir to keep the labels of its members in: with others after a restart, those who have the \
                     catalog would transfer all zones anew; add one at the top",
                );
                return None;
            }
            if self.transfer.is_none() {
                section.warn(
                    "catalog",
                    "nobody may transfer this catalog, which is made for that: add transfer",
                );
            }
            return Some(Source::Producer);
        }
        match (file, primaries) {
            (Some(_), Some(_)) => {
                let message = "file is given too: a zone comes from a file or from its primaries, and what is transferred is kept \
                               in state-dir; leave one of them out";
                section.fault("primaries", message);
                None
            }
            (Some(file), None) => Some(Source::File(file.clone())),
            // What is wrong with those that are there is said already.
            (None, Some([])) if section.has_items("primaries") => None,
            (None, Some([])) => {
                section.fault("primaries", "there is no server in the list: name one, as \"192.0.2.1\"");
                None
            }
            (None, Some(_)) if !has_state => {
                section.fault(
                    "primaries",
                    "there is no state-dir to keep what is transferred: add one at the top",
                );
                None
            }
            (None, Some(_)) => Some(Source::Primaries),
            // Whether they are there and wrong is said already.
            (None, None) if section.has("file") || section.has("primaries") => None,
            (None, None) if section.has("catalog") && self.catalog.is_none() => None,
            (None, None) => {
                section.fault("file", "missing: name the zone's file, or its primaries");
                None
            }
        }
    }

    fn making(&self, section: &Section<'_, '_>) -> Option<Making> {
        if self.nsec5_keys.is_some() && (self.denial.is_some() || self.keys.is_some()) {
            let key = if self.denial.is_some() { "denial" } else { "keys" };
            let message = "the zone has NSEC5 (nsec5-keys): its server has no signing key, so that nobody who breaks into it forges, \
                           and denies by nothing else; leave keys and denial out";
            section.fault(key, message);
            return None;
        }
        if self.denial.is_none() && self.signature_validity.is_some() {
            section.fault(
                "signature-validity",
                "nothing is signed here without denial: add denial, or leave this out",
            );
            return None;
        }
        match (self.denial, &self.keys, &self.nsec5_keys) {
            (Some(mechanism), Some(keys), _) => {
                let validity = self.signature_validity.unwrap_or(DEFAULT_VALIDITY);
                Some(Making::Online { mechanism, keys: keys.clone(), validity })
            }
            (Some(mechanism), None, _) => {
                section.fault(
                    "denial",
                    format!(
                        "{mechanism} signs when asked, and there are no keys: name their folder with keys"
                    ),
                );
                None
            }
            (None, Some(_), _) if section.has("denial") => None,
            (None, Some(_), _) => {
                let message =
                    "keys sign what is made when asked: say what that is with denial, or leave keys out";
                section.fault("keys", message);
                None
            }
            (None, None, Some(keys)) => Some(Making::Nsec5 { keys: keys.clone() }),
            (None, None, None) => Some(Making::AsItIs),
        }
    }

    /// A journal needs a folder to be kept in.
    pub(super) fn check_journal(&self, section: &Section<'_, '_>, has_state: bool) {
        if self.journal_size.is_some_and(|size| size > 0) && !has_state {
            section.fault(
                "journal-size",
                "there is no state-dir to keep a journal in: add one at the top, or leave this out",
            );
        }
    }

    /// No bound from below may be above the one from above.
    pub(super) fn check_bounds(&self, section: &Section<'_, '_>) {
        for first in self.contradictions() {
            let (least, most) = (BOUNDS[first], BOUNDS[first + 1]);
            if section.has(least) {
                section.fault(least, format!("longer than {most}: lower it"));
            } else {
                let by_default = default_least(first);
                section.fault(
                    most,
                    format!(
                        "shorter than {least} ({by_default} s where nothing is said): raise it, or lower that"
                    ),
                );
            }
        }
    }

    /// Where the bounds from below stand that are above the one from above behind them.
    fn contradictions(&self) -> Vec<usize> {
        let least = |first: usize| self.bounds[first].unwrap_or_else(|| default_least(first));
        let contradicts = |first: &usize| self.bounds[first + 1].is_some_and(|most| least(*first) > most);
        [0, 2, 4].into_iter().filter(contradicts).collect()
    }

    fn check_transfers(&self, section: &Section<'_, '_>) {
        let transfers =
            self.transfer.as_ref().is_some_and(|entries| entries.iter().any(|entry| !entry.is_denied));
        if transfers && self.denial.is_some() {
            let message = "what the server signs when asked cannot be transferred: the signatures are not in the zone; leave transfer \
                           or denial out";
            section.fault("transfer", message);
        }
        if self.allows_unsafe_transition.is_some() && self.primaries.is_some() {
            let message =
                "the zone comes from primaries, whose versions are served with a warning: leave this out";
            section.fault("allow-unsafe-transition", message);
        }
        if self.notify_from.is_some() && self.primaries.is_none() {
            section.fault(
                "notify-from",
                "the zone has no primaries that could be asked then: add them, or leave this out",
            );
        }
        for (key, bound) in BOUNDS.iter().zip(self.bounds) {
            if bound.is_some() && self.primaries.is_none() {
                section.fault(
                    key,
                    "the zone has no primaries, and is not refreshed: add them, or leave this out",
                );
            }
        }
        for (is_there, key) in [
            (self.request_ixfr.is_some(), "request-ixfr"),
            (self.transfer_size_max.is_some(), "transfer-size-max"),
            (self.transfer_records_max.is_some(), "transfer-records-max"),
        ] {
            if is_there && self.primaries.is_none() {
                let message =
                    "the zone has no primaries that it is transferred from: add them, or leave this out";
                section.fault(key, message);
            }
        }
        for (is_there, key) in [
            (self.group.is_some(), "group"),
            (self.catalog_next.is_some(), "catalog-next"),
            (self.catalog_former.is_some(), "catalog-former"),
        ] {
            if is_there && self.catalog_zone.is_none() {
                let message =
                    format!("{key} is of a member of a catalog: add catalog-zone, or leave this out");
                section.fault(key, message);
            }
        }
        for (other, key) in [(&self.catalog_next, "catalog-next"), (&self.catalog_former, "catalog-former")] {
            if other.is_some() && *other == self.catalog_zone {
                section.fault(key, "the zone is in this catalog: name another one, or leave this out");
            }
        }
        if self.catalog != Some(CatalogRole::Consumer) {
            for (is_there, key) in [
                (self.member_template.is_some(), "member-template"),
                (self.group_templates.is_some(), "group-templates"),
            ] {
                if is_there {
                    section.fault(
                        key,
                        "the zone has no members to serve: add catalog = \"consumer\", or leave this out",
                    );
                }
            }
        } else if self.member_template.is_none() && !section.has("member-template") {
            section.fault(
                "catalog",
                "member-template is missing: name the template that members are made after",
            );
        }
    }

    fn transfers(&self, section: &Section<'_, '_>) -> Option<TransferSettings> {
        let default = TransferSettings::default();
        let list = |entries: &Option<Vec<AccessEntry>>| AccessList::new(entries.clone().unwrap_or_default());
        self.check_bounds(section);
        let range = |first: usize, default: &RangeInclusive<u32>| {
            let least = self.bounds[first].unwrap_or_else(|| *default.start());
            least..=self.bounds[first + 1].unwrap_or_else(|| (*default.end()).max(least))
        };
        let (refresh, retry, expire) =
            (range(0, &default.refresh), range(2, &default.retry), range(4, &default.expire));
        self.contradictions().is_empty().then(|| TransferSettings {
            primaries: self.primaries.clone().unwrap_or_default(),
            transfer: list(&self.transfer),
            notify_from: list(&self.notify_from),
            also_notify: self.also_notify.clone().unwrap_or_default(),
            journal_octets: self.journal_size.unwrap_or(default.journal_octets),
            refresh,
            retry,
            expire,
            request_ixfr: self.request_ixfr.unwrap_or(default.request_ixfr),
            bounds: TransferBounds {
                records: self.transfer_records_max.unwrap_or(default.bounds.records),
                octets: self.transfer_size_max.unwrap_or(default.bounds.octets),
                ..default.bounds
            },
        })
    }

    fn catalog_settings(&self, section: &Section<'_, '_>) -> Option<Catalog> {
        match self.catalog? {
            CatalogRole::Producer => Some(Catalog::Producer { members: Vec::new() }),
            CatalogRole::Consumer => {
                if self.denial.is_some() {
                    section.fault("denial", "nobody asks for the records of a catalog: leave denial out");
                }
                let groups = self.group_templates.clone().unwrap_or_default();
                Some(Catalog::Consumer { template: self.member_template.clone()?, groups })
            }
        }
    }
}

/// Whether the first of two bounds is above the second.
/// The bound from below, in seconds, where nothing is said.
fn default_least(first: usize) -> u32 {
    let default = TransferSettings::default();
    *[default.refresh, default.retry, default.expire][first / 2].start()
}

/// A mechanism whose records are made when asked.
fn mechanism(value: &DeValue<'_>) -> Result<Mechanism, String> {
    let text = text(value)?;
    let online = MECHANISMS.iter().filter(|entry| entry.made == Made::WhenAsked);
    let names: Vec<String> = online.map(|entry| format!("{:?}", entry.name)).collect();
    match text.parse::<Mechanism>() {
        Ok(mechanism) if mechanism.entry().made == Made::WhenAsked => Ok(mechanism),
        Ok(mechanism) => Err(format!(
            "{text:?} makes its records when the zone is signed: sign it with `nonesuch zone sign --denial {mechanism}` and leave \
             denial out, or write {}",
            names.join(" or ")
        )),
        Err(_) => Err(format!("{text:?} is not allowed: write {}", names.join(" or "))),
    }
}
