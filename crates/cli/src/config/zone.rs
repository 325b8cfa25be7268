//! The tables `[zone.…]` and `[template.…]`: their keys, and the keys that a zone inherits from its
//! template.

mod resolve;

pub(super) use resolve::record_files;

use super::keys::{Row, Table, example, key};
use super::section::{Item, Section};
use super::value_error::ValueError;
use super::values::{
    access, alternatives, boolean, bytes, choice, name, number, path, seconds, servers, text, texts_by_name,
};
use nonesuch_authoritative::service::{OnFault, RecordLimits, TransferSettings, VerifyChoice};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::{DenialGeneration, MECHANISMS};
use nonesuch_dnssec::online::{MAX_VALIDITY, MIN_VALIDITY};
use nonesuch_proto::Name;
use nonesuch_server::acl::{AccessList, Remote};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Range of the bounds of SOA times, in seconds: up to a year.
const SOA_TIMES: RangeInclusive<u32> = 1..=31_536_000;
/// Range of the limits on the records of one type and on the types of a name. A message cannot
/// contain more records and there are not more types, because both numbers have 16 bits.
const RECORD_LIMITS: RangeInclusive<u32> = 0..=65_535;
const CATALOG_ROLES: [(&str, CatalogRole); 2] =
    [("producer", CatalogRole::Producer), ("consumer", CatalogRole::Consumer)];
const VERIFY: [(&str, VerifyChoice); 5] = [
    ("auto", VerifyChoice::Auto),
    ("full", VerifyChoice::Full),
    ("changed", VerifyChoice::Changed),
    ("structural", VerifyChoice::Structural),
    ("none", VerifyChoice::Nothing),
];
const ON_FAULT: [(&str, OnFault); 2] = [("reject", OnFault::Reject), ("warn", OnFault::Warn)];
const DNSSEC: [(&str, bool); 2] = [("required", true), ("optional", false)];
/// Keys of [`ZoneFields::bounds`].
const SOA_BOUND_KEYS: [&str; 6] =
    ["refresh-min", "refresh-max", "retry-min", "retry-max", "expire-min", "expire-max"];

/// The role of the server for a catalog zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatalogRole {
    Producer,
    Consumer,
}

/// The fields that the keys of a zone or template set.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneFields {
    /// Names of the keys that are present and valid.
    pub(super) present_keys: BTreeSet<&'static str>,
    pub(super) template: Option<String>,
    file: Option<PathBuf>,
    signing_keys: Option<PathBuf>,
    denial: Option<Mechanism>,
    signature_validity: Option<u32>,
    ignore_key_times: bool,
    nsec5_keys: Option<PathBuf>,
    verify: VerifyChoice,
    on_fault: Option<OnFault>,
    requires_dnssec: bool,
    limits: RecordLimits,
    allows_unsafe_transition: bool,
    allow_query: Option<AccessList>,
    /// Transfer settings, in which the ranges of the SOA times still have their defaults.
    transfers: TransferSettings,
    /// Minimum and maximum of refresh, retry and expire, in seconds and in the order of
    /// [`SOA_BOUND_KEYS`]; `None` for the default.
    bounds: [Option<u32>; 6],
    pub(super) catalog: Option<CatalogRole>,
    pub(super) member_template: Option<String>,
    pub(super) group_templates: BTreeMap<String, String>,
    pub(super) catalog_zone: Option<Name>,
    pub(super) catalog_next: Option<Name>,
    pub(super) catalog_former: Option<Name>,
    pub(super) group: Option<String>,
}

pub(super) fn table() -> Table<ZoneFields> {
    Table::new(vec![
        Row::Text(r#"
# A template: settings that several zones share. It has any settings of a zone except template. A
# zone names its template with template. A setting in the zone overrides the template. Members of
# catalogs use templates with primaries. In a path, the server replaces `{zone}` with the zone name
# without its final dot, or with `@` for the root. A character other than a letter, digit, `-`, `_`
# or `.` becomes `%` and two hexadecimal digits.
#[template.signed]  # example
#file = "/var/lib/zones/{zone}.signed"  # example
#verify = "full"  # example

#[template.member]  # example
#primaries = ["192.0.2.1 key:transfer.example."]  # example

# A zone from a file. The settings below apply to zones from files and to zones from primaries,
# unless the comment states one of the two.
#[zone."example."]  # example
# Template of the zone. Default: none."#),
        key("template", text, example("signed"), |z, v| z.template = Some(v)),
        Row::Text("# Zone file, or compiled zone of `nonesuch zone compile`; not together with primaries. A reload
# reads the file if it has changed. The file and the files that it includes must be regular files:
# the server rejects pipes, devices and directories. The file must not be in state-dir/zones, the
# directory of the server's stored versions."),
        key("file", path, example("/var/lib/zones/example.signed"), |z, v| z.file = Some(v)),
        Row::Text("#
# Extent of the verification before a version of a signed zone is published. full: everything.
# changed: denial chain, bit maps, times and keys of the whole zone, and signatures of records that
# differ from the previous version; all signatures if the DNSKEY RRset has changed, or if there is
# no verified previous version. structural: everything except the signatures. none: nothing. auto
# (default): full up to 100,000 signatures, changed above."),
        key("verify", choice(VERIFY), example("auto"), |z, v| z.verify = v),
        Row::Text("# Action on a version with faults. reject: keep the previous version. warn: serve the version and
# log its faults; a version without an SOA record, or without NS records at the apex, is rejected
# nevertheless. With reject, an unsigned version without NS records at the apex is served with a
# warning. Default: warn for zones from primaries, else reject."),
        key("on-fault", choice(ON_FAULT), example("reject"), |z, v| z.on_fault = Some(v)),
        Row::Text("# required: reject a version that is not signed. optional (default): accept it."),
        key("dnssec", choice(DNSSEC), example("required"), |z, v| z.requires_dnssec = v),
        Row::Text("# Maximum number of records of one type at a name: 0 to 65535; 0 means no limit. RRSIG records are
# counted by the type that they cover. A version with more is rejected; the previous version stays.
# Default: no limit, and a warning in the log for a version with more than 100."),
        key("max-records-per-type", number(RECORD_LIMITS), example("1000"), |z, v| z.limits.records_per_type = Some(v)),
        Row::Text("# Maximum number of types at a name, without RRSIG: 0 to 65535; 0 means no limit. A version with
# more is rejected; the previous version stays. Default: no limit, and a warning for more than 100."),
        key("max-types-per-name", number(RECORD_LIMITS), example("200"), |z, v| z.limits.types_per_name = Some(v)),
        Row::Text("# Serve a version from a file although validators that hold keys or signatures of the previous
# version may find it bogus. The server does not know the DS records of the parent, so a Double-DS
# rollover needs this setting, although validators accept it. Default: false. Versions from
# primaries are always served, with a warning."),
        key("allow-unsafe-transition", boolean, example("false"), |z, v| z.allows_unsafe_transition = v),
        Row::Text(r#"#
# Clients that may transfer the zone: prefixes, TSIG keys, both, or "any". "tls" requires TLS (RFC
# 9103). A leading "!" denies. The first matching entry decides. Default: none."#),
        key("transfer", access(Some("no client may transfer the zone")), example(r#"["!192.0.2.66", "192.0.2.0/24", "key:transfer.example.", "2001:db8::/32 key:transfer.example. tls"]"#), |z, v| z.transfers.transfer = v),
        Row::Text("# Clients that may query this zone. Default: allow-query at the top of this file."),
        key("allow-query", access(Some("no client may query")), example(r#"["192.0.2.0/24", "2001:db8::/32", "key:transfer.example."]"#), |z, v| z.allow_query = Some(v)),
        Row::Text("# Servers that get NOTIFY for new versions (RFC 1996): addresses with optional port, TSIG key
# (key:NAME), TLS (tls:HOSTNAME, or tls without verification of the certificate) and source address
# (source:ADDRESS). Default: none."),
        key("also-notify", servers, example(r#"["192.0.2.2", "[2001:db8::2]:53 key:transfer.example."]"#), |z, v| z.transfers.also_notify = v),
        Row::Text(r#"# Maximum size of the journal for incremental transfers (RFC 1995): 0B to 1024GiB; "0B" disables the
# journal. Default: 64MiB. Needs state-dir."#),
        key("journal-size", bytes(0..=1 << 40), example("64MiB"), |z, v| z.transfers.journal_octets = v),
        Row::Text(r#"
# A zone with online signing and online denial.
#[zone."online.example."]  # example
#file = "/var/lib/zones/online.example"  # example
# Mechanism: minimal-nsec, compact or white-lies. Needs keys."#),
        key("denial", mechanism, example("compact"), |z, v| z.denial = Some(v)),
        Row::Text("# Directory of the key files. Needs denial."),
        key("keys", path, example("/etc/nonesuch/keys/online.example"), |z, v| z.signing_keys = Some(v)),
        Row::Text("# Validity of a signature: 2h to 366d. Default: 7d."),
        key("signature-validity", seconds(MIN_VALIDITY..=MAX_VALIDITY), example("7d"), |z, v| z.signature_validity = Some(v)),
        Row::Text("# Ignore the times in the key files (Publish, Activate, Inactive and others): every key is published
# and signs. Default: false."),
        key("ignore-key-times", boolean, example("false"), |z, v| z.ignore_key_times = v),
        Row::Text(r#"
# A zone with NSEC5.
#[zone."hidden.example."]  # example
#file = "/var/lib/zones/hidden.example.signed"  # example
# Directory of the VRF key and the stored proofs. Default: nsec5 in the directory of the zone file.
# Neither that directory nor the directory of the zone file may contain a signing key."#),
        key("nsec5-keys", path, example("/etc/nonesuch/keys/hidden.example"), |z, v| z.nsec5_keys = Some(v)),
        Row::Text(r#"
# A zone from primaries. It needs state-dir.
#[zone."secondary.example."]  # example
# Primaries, the preferred one first, in the form of also-notify."#),
        key("primaries", servers, example(r#"["192.0.2.1 key:transfer.example.", "[2001:db8::1]:853 tls:ns1.example key:transfer.example."]"#), |z, v| z.transfers.primaries = v),
        Row::Text("# Other servers that may send NOTIFY for the zone, in addition to the primaries. A primary with a
# TSIG key must sign its NOTIFY; list its address here if it does not. Default: none."),
        key("notify-from", access(None), example(r#"["192.0.2.3"]"#), |z, v| z.transfers.notify_from = v),
        Row::Text("# Minimum and maximum of the refresh time in the SOA record: 1s to 365d. Default: 1m and 4w."),
        key("refresh-min", seconds(SOA_TIMES), example("1m"), |z, v| z.bounds[0] = Some(v)),
        key("refresh-max", seconds(SOA_TIMES), example("4w"), |z, v| z.bounds[1] = Some(v)),
        Row::Text("# Minimum and maximum of the retry time in the SOA record: 1s to 365d. Default: 10s and 2w."),
        key("retry-min", seconds(SOA_TIMES), example("10s"), |z, v| z.bounds[2] = Some(v)),
        key("retry-max", seconds(SOA_TIMES), example("2w"), |z, v| z.bounds[3] = Some(v)),
        Row::Text("# Minimum and maximum of the expire time in the SOA record: 1s to 365d. Default: 10m and no maximum."),
        key("expire-min", seconds(SOA_TIMES), example("10m"), |z, v| z.bounds[4] = Some(v)),
        key("expire-max", seconds(SOA_TIMES), example("30d"), |z, v| z.bounds[5] = Some(v)),
        Row::Text("# Request incremental transfers (IXFR) if a version is stored. Default: true."),
        key("request-ixfr", boolean, example("true"), |z, v| z.transfers.request_ixfr = v),
        Row::Text("# Limit of one transfer: 1KiB to 1048576GiB. It applies to the octets of the messages, and
# separately to memory, where each record counts as its size plus 64 bytes, and each step of an
# incremental transfer as 1 KiB. Default: a quarter of the memory of the machine, or of memory.max
# of the cgroup, at most 16GiB."),
        key("transfer-size-max", bytes(1 << 10..=1 << 50), example("4GiB"), |z, v| z.transfers.bounds.octets = v),
        Row::Text("# Maximum number of records of one transfer: 1 to 1099511627776. Default: no limit."),
        key("transfer-records-max", number(1..=1 << 40), example("50000000"), |z, v| z.transfers.bounds.records = v),
        Row::Text(r#"
# A catalog zone (RFC 9432) that this server generates. It lists the zones that name it in
# catalog-zone. Secondaries transfer it like any other zone. It needs state-dir, which stores the
# labels of its members.
#[zone."catalog.example."]  # example
# producer: the server generates the catalog. consumer: see below."#),
        key("catalog", choice(CATALOG_ROLES), example("producer"), |z, v| z.catalog = Some(v)),
        Row::Text(r#"#transfer = ["key:transfer.example."]  # example

#[zone."listed.example."]  # example
#file = "/var/lib/zones/listed.example"  # example
# Catalog of this server that lists the zone. Default: none."#),
        key("catalog-zone", name, example("catalog.example."), |z, v| z.catalog_zone = Some(v)),
        Row::Text("# Group of the zone in the catalog. Default: none."),
        key("group", text, example("customers"), |z, v| z.group = Some(v)),
        Row::Text("# To move a zone to another catalog of this server (property coo, RFC 9432 §4.3.1): 1. Set
# catalog-next to the new catalog. 2. Set catalog-zone to the new catalog and catalog-former to the
# old one, and delete catalog-next. 3. Delete catalog-former. After each step, reload, and wait
# until all consumers have the new versions of both catalogs."),
        key("catalog-next", name, example("later.catalog.example."), |z, v| z.catalog_next = Some(v)),
        key("catalog-former", name, example("earlier.catalog.example."), |z, v| z.catalog_former = Some(v)),
        Row::Text(r#"
#[zone."earlier.catalog.example."]  # example
#catalog = "producer"  # example

# A catalog from primaries whose zones this server transfers and serves.
#[zone."others.catalog.example."]  # example
#primaries = ["192.0.2.1 key:transfer.example."]  # example
#catalog = "consumer"  # example
# Template of the zones of the catalog. Required."#),
        key("member-template", text, example("member"), |z, v| z.member_template = Some(v)),
        Row::Text("# Templates of the zones in these groups, instead of member-template. Default: none."),
        key("group-templates", texts_by_name, example(r#"{ customers = "member" }"#), |z, v| z.group_templates = v),
    ])
}

/// A mechanism with records that are generated online.
fn mechanism(item: Item<'_, '_>) -> Result<Mechanism, ValueError> {
    let mechanism = text(item)?;
    let online = MECHANISMS.iter().filter(|entry| entry.generation == DenialGeneration::Online);
    let allowed = alternatives(online.map(|entry| entry.name));
    match mechanism.parse::<Mechanism>() {
        Ok(found) if found.entry().generation == DenialGeneration::Online => Ok(found),
        Ok(_) => Err(ValueError::NotOnline { mechanism, allowed }),
        Err(_) => Err(ValueError::not_allowed(item, allowed)),
    }
}

/// The condition under which a key has an effect on a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyCondition {
    /// `denial` is set: the zone is signed online.
    Denial,
    /// `primaries` is set.
    Primaries,
    /// `primaries` is not set.
    NoPrimaries,
    /// The zone is a catalog of which the server is a consumer.
    Consumer,
    /// `catalog-zone` is set: the zone is a member of a catalog of this server.
    Member,
}

/// Keys that have an effect only on zones that meet `condition`, and the message about the keys in
/// other zones.
struct KeyRule {
    condition: KeyCondition,
    keys: &'static [&'static str],
    message: &'static str,
}

/// The rules of keys. A zone that does not meet the condition of a rule does not inherit its keys,
/// because a zone cannot unset an inherited key.
const KEY_RULES: [KeyRule; 7] = [
    KeyRule {
        condition: KeyCondition::Denial,
        keys: &["signature-validity", "ignore-key-times"],
        message: "no effect without online signing: add denial, or leave this out",
    },
    KeyRule {
        condition: KeyCondition::NoPrimaries,
        keys: &["allow-unsafe-transition"],
        message: "no effect on a zone from primaries, whose unsafe versions are served with a warning: \
            leave this out",
    },
    KeyRule {
        condition: KeyCondition::Primaries,
        keys: &["notify-from"],
        message: "no effect on a zone without primaries: add primaries, or leave this out",
    },
    KeyRule {
        condition: KeyCondition::Primaries,
        keys: &SOA_BOUND_KEYS,
        message: "no effect on a zone without primaries, which is not refreshed: add primaries, or \
            leave this out",
    },
    KeyRule {
        condition: KeyCondition::Primaries,
        keys: &["request-ixfr", "transfer-size-max", "transfer-records-max"],
        message: "no effect on a zone without primaries, which is not transferred: add primaries, or \
            leave this out",
    },
    KeyRule {
        condition: KeyCondition::Consumer,
        keys: &["member-template", "group-templates"],
        message: "only a consumer has members to serve: add catalog = \"consumer\", or leave this out",
    },
    KeyRule {
        condition: KeyCondition::Member,
        keys: &["group", "catalog-next", "catalog-former"],
        message: "applies only to a member of a catalog: add catalog-zone, or leave this out",
    },
];

impl ZoneFields {
    /// Reads the keys that `wanted` selects.
    pub(super) fn read(&mut self, table: &Table<Self>, section: &Section<'_>, wanted: impl Fn(&str) -> bool) {
        let read = table.read(section, self, wanted);
        self.present_keys.extend(read);
    }

    /// Names of the keys of `template` that a zone with the keys in `self` inherits. A zone that
    /// sets the source of its records inherits neither `file` nor `primaries`. A zone that sets its
    /// signing mode (`denial` or `nsec5-keys`) does not inherit the other mode.
    pub(super) fn inherited_keys(&self, template: &Self) -> BTreeSet<&'static str> {
        let mut names = template.present_keys.clone();
        let mut leave_out = |keys: &[&str]| names.retain(|name| !keys.contains(name));
        // Contradictions are reported for the template.
        template.contradictory_bounds().for_each(|first| leave_out(&SOA_BOUND_KEYS[first..first + 2]));
        let sets = |key: &str| self.present_keys.contains(key);
        if sets("file") || sets("primaries") || self.catalog == Some(CatalogRole::Producer) {
            leave_out(&["file", "primaries"]);
        }
        if sets("denial") || sets("nsec5-keys") {
            leave_out(&["denial", "nsec5-keys"]);
        }
        if sets("nsec5-keys") {
            leave_out(&["keys"]);
        }
        let both: BTreeSet<_> = names.union(&self.present_keys).copied().collect();
        let catalog = self.catalog.or(template.catalog);
        // Keys of catalog members are also inherited by a zone that is not a member, and
        // `check_rules` reports them.
        let is_unmet = |rule: &&KeyRule| {
            rule.condition != KeyCondition::Member && !rule.condition.is_met(&both, catalog)
        };
        for rule in KEY_RULES.iter().filter(is_unmet) {
            names.retain(|name| !rule.keys.contains(name));
        }
        names
    }

    /// Indices in [`SOA_BOUND_KEYS`] of the minimums that exceed their maximum. The maximum has the
    /// next index.
    fn contradictory_bounds(&self) -> impl Iterator<Item = usize> {
        let min = |first: usize| self.bounds[first].unwrap_or_else(|| self.default_min(first));
        [0, 2, 4].into_iter().filter(move |first| self.bounds[first + 1].is_some_and(|max| min(*first) > max))
    }

    /// The default of the minimum with the index `first` in [`SOA_BOUND_KEYS`], in seconds.
    const fn default_min(&self, first: usize) -> u32 {
        let TransferSettings { refresh, retry, expire, .. } = &self.transfers;
        *[refresh, retry, expire][first / 2].start()
    }

    /// The lists of other servers, by key.
    pub(super) fn server_lists(&self) -> [(&'static str, &[Remote]); 2] {
        [("primaries", &self.transfers.primaries), ("also-notify", &self.transfers.also_notify)]
    }

    /// The names of the TSIG keys in each list of servers or clients, by configuration key.
    pub(super) fn tsig_names_by_list(&self) -> [(&'static str, BTreeSet<&Name>); 5] {
        let [primaries, also_notify] = self
            .server_lists()
            .map(|(key, servers)| (key, servers.iter().filter_map(|server| server.key.as_ref()).collect()));
        let TransferSettings { transfer, notify_from, .. } = &self.transfers;
        [
            ("allow-query", self.allow_query.iter().flat_map(AccessList::keys).collect()),
            primaries,
            also_notify,
            ("transfer", transfer.keys().collect()),
            ("notify-from", notify_from.keys().collect()),
        ]
    }

    /// Whether `primaries` is set. Catalog members can be created only from such a template.
    pub(super) fn has_primaries(&self) -> bool {
        self.present_keys.contains("primaries")
    }
}

impl KeyCondition {
    /// Whether a zone with these keys meets the condition.
    fn is_met(self, keys: &BTreeSet<&str>, catalog: Option<CatalogRole>) -> bool {
        match self {
            Self::Denial => keys.contains("denial"),
            Self::Primaries => keys.contains("primaries"),
            Self::NoPrimaries => !keys.contains("primaries"),
            Self::Consumer => catalog == Some(CatalogRole::Consumer),
            Self::Member => keys.contains("catalog-zone"),
        }
    }
}
