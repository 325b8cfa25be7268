//! The configuration of a resolver: the keys of `nonesuch resolve --config`.

use super::keys::{Row, Table, default, example, hidden, key};
use super::outputs::log_table;
use super::problem::{Document, Problem, Problems};
use super::section::{Diagnostics, NamedTable, Section};
use super::server::{METRICS_PORT, check_control, check_metrics_address, require_version, version};
use super::tls::{HasTls, Tls, handshake_row, listener_rows, padding_rows};
use super::values::{
    access, boolean, bytes, choice, duration_text, file, identifier, list, name, number, parse_name, parsed,
    path, seconds, size_text, socket_address, text,
};
use super::{FileRole, Log, MAX_CONFIGURATION_BYTES, Sources, parse_table, read_file};
use crate::hints::read_hints;
use crate::trust_anchors::{TrustAnchorsError, trust_anchors};
use crate::zones::time_or_now;
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_resolver::local_names::LocalNames;
use nonesuch_resolver::options::{
    AddressFamilies, EDNS_PAYLOAD_RANGE, MAX_TTL, MEMORY_RANGE, NegativeAnchor, OptionsError, ResolverOptions,
};
use nonesuch_resolver::trust_anchors::TrustAnchors;
use nonesuch_resolver::zones::{ZoneRule, ZoneRules};
use nonesuch_server::acl::DNS_PORT;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tables of the configuration.
const TABLES: [&str; 5] = ["log", "limits", "forward", "stub", "negative-anchor"];

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

type Rows = Vec<Row<ResolverConfiguration>>;

fn root_table() -> Table<ResolverConfiguration> {
    let options = ResolverOptions::default();
    let mut rows: Rows = vec![
        Row::Text(
            r#"# Configuration of `nonesuch resolve --config FILE`, in TOML (https://toml.io).
#
# `nonesuch resolve --config FILE --check` checks a configuration. SIGHUP or `nonesuch ctl reload`
# reloads it. Changes of settings with the word "restart" take effect when the resolver starts again.
#
# A line that begins with `#` and the name of a setting shows its default. A line that ends with
# `# example` shows an example; the comment has the default, if the setting has one. Relative paths
# are relative to the directory of this file. Durations: "10s", "5m", "2h", "7d". Sizes: "512KiB",
# "64MiB", "1GiB". The settings outside tables come before the first table.

# Version of the configuration format. Required.
version = 1"#,
        ),
        key("version", version, hidden(), |_, ()| ()),
        Row::Text(
            r#"
# Listen addresses for UDP and TCP (restart). Default port: 53. Other ports: "192.0.2.1:5300",
# "[2001:db8::1]:5300"."#,
        ),
        key("listen", list("addresses", socket_address(DNS_PORT)), default(r#"["127.0.0.1"]"#), |r, v| {
            r.listen = v;
        }),
    ];
    rows.extend(listener_rows());
    rows.extend::<Rows>(vec![
        Row::Text(
            "
# User that the resolver becomes after it has bound its sockets (restart). Required if root starts a
# resolver with an address other than loopback. Default: the user that starts the resolver.",
        ),
        key("user", text, example("nonesuch"), |r, v| r.user = Some(v)),
        Row::Text(
            "
# Control socket for `nonesuch ctl --config FILE` (restart). Without it, the resolver has none.",
        ),
        key("control-socket", file(FileRole::Control), example("/run/nonesuch/resolver"), |r, v| {
            r.control_socket = Some(v)
        }),
        Row::Text("# Group that may use the control socket (restart). Default: only the resolver's user."),
        key("control-group", text, example("nonesuch"), |r, v| r.control_group = Some(v)),
        Row::Text(
            "
# Address for metrics over HTTP (Prometheus) (restart). Default port: 9530. Default: no metrics.",
        ),
        key("metrics-listen", socket_address(METRICS_PORT), example("127.0.0.1:9530"), |r, v| {
            r.metrics_listen = Some(v)
        }),
        Row::Text(
            "
# Number of threads (restart): 1 to 256. All of them share one cache. Default: one for each core.",
        ),
        key("workers", number(1..=256), example("2"), |r, v| r.workers = Some(v)),
        Row::Text(
            "
# Maximum memory that depends on traffic (restart): 8MiB to 1024GiB. Half of it is for the cache, a
# quarter for client queries in progress, and a quarter for the buffers of connections.",
        ),
        key("memory", bytes(MEMORY_RANGE), default(size_text(options.memory)), |r, v| r.options.memory = v),
        Row::Text(
            "# Maximum number of servers of which the resolver stores the round-trip time and other properties
# (restart): 64 to 10000000.",
        ),
        key("server-entries", number(64..=10_000_000), default(options.server_entries), |r, v| {
            r.options.server_entries = v;
        }),
        Row::Text(
            r#"
# Clients that may query: prefixes, or "any". Others get REFUSED. An open resolver is a tool for
# attacks on others: permit only your own networks."#,
        ),
        key(
            "allow-query",
            access(Some("no client may query")),
            default(r#"["127.0.0.0/8", "::1"]"#),
            |r, v| r.options.access = v,
        ),
        Row::Text(
            "
# File with the servers of the root zone, in zone file format. Default: the root servers of the
# Internet. Servers on loopback addresses are queried only if hints, forward or stub zones name a
# loopback address.",
        ),
        key("hints", path, example("root.hints"), |r, v| r.hints = Some(v)),
        Row::Text(
            "
# Validate answers with DNSSEC (restart). Bogus answers get SERVFAIL, and secure ones the AD flag.",
        ),
        key("validation", boolean, default(true), |r, v| r.validation = Validation(v)),
        Row::Text(
            "# File with trust anchors: DS or DNSKEY records in zone file format, a root.key of Unbound, or
# root-anchors.xml of IANA. Default: the keys of the root zone of the Internet; if hints names other
# root servers, nothing is validated without this setting.",
        ),
        key("trust-anchors", path, example("root.key"), |r, v| r.trust_anchors = Some(v)),
        Row::Text(
            "# Update the trust anchors automatically (RFC 5011), and store their states in this directory, in which
# the resolver's user must be able to write (restart). Default: the trust anchors do not change.",
        ),
        key("anchor-state", path, example("/var/lib/nonesuch/anchors"), |r, v| r.anchor_state = Some(v)),
        Row::Text(
            "# Tell the zones whose trust anchors are updated which keys are trusted (RFC 8145).",
        ),
        key("trust-anchor-signals", boolean, default(options.validation.signals_tags), |r, v| {
            r.options.validation.signals_tags = v;
        }),
        Row::Text(
            "# Time between two checks whether the zones with a negative trust anchor validate again, which ends
# it (RFC 7646): 0s (never) to 1w.",
        ),
        key(
            "negative-anchor-recheck",
            seconds(0..=7 * 86_400_u64),
            default(duration_text(options.validation.negative_anchor_recheck.as_secs())),
            |r, v| r.options.validation.negative_anchor_recheck = Duration::from_secs(v),
        ),
        Row::Text(
            "# Know the algorithms with numbers for private use: MAYO-2, Falcon-512, SLH-DSA, and the aliases for
# zones with NSEC5. Otherwise zones with only such algorithms are insecure.",
        ),
        key("experimental-algorithms", boolean, default(false), |r, v| r.options.validation.policy.experimental = v),
        Row::Text(
            "# Zones with only RSASHA1 or RSASHA1-NSEC3-SHA1: \"insecure\" (RFC 9905) or \"validate\".",
        ),
        key("sha1", choice([("insecure", false), ("validate", true)]), default("insecure"), |r, v| {
            r.options.validation.policy.sha1 = v;
        }),
        Row::Text(
            "# Zones with a DS record or trust anchor of a post-quantum algorithm that the resolver knows: with
# \"when-offered\", only their post-quantum signatures count; with \"no\", all signatures.",
        ),
        key(
            "require-post-quantum",
            choice([("no", false), ("when-offered", true)]),
            default("no"),
            |r, v| r.options.validation.policy.requires_post_quantum = v,
        ),
        Row::Text(
            "# Answer from validated denial records and wildcards of earlier responses (RFC 8198) (restart).",
        ),
        key("aggressive-denial", boolean, default(options.validation.aggressive), |r, v| {
            r.options.validation.aggressive = v;
        }),
        Row::Text(
            "
# Address families of queries to servers: both (the round-trip time decides), prefer-ipv4,
# prefer-ipv6, ipv4 or ipv6.",
        ),
        key("address-families", choice(AddressFamilies::NAMES), default(options.families), |r, v| r.options.families = v),
        Row::Text(
            "# Prefixes of servers that are not queried, even if an NS record leads to them. Servers of hints,
# forward and stub zones are queried nevertheless.",
        ),
        key("do-not-query", list("prefixes", parsed), default("[]"), |r, v| r.options.do_not_query = v),
        Row::Text(
            "
# Send servers only the labels of a name that they need (RFC 9156).",
        ),
        key("qname-minimisation", boolean, default(options.qname_minimisation), |r, v| {
            r.options.qname_minimisation = v;
        }),
        Row::Text(
            "# Report failures to the agents that authoritative servers name (RFC 9567): bogus answers, and zones
# whose servers do not answer.",
        ),
        key("dns-error-reporting", boolean, default(options.error_reporting), |r, v| {
            r.options.error_reporting = v;
        }),
        Row::Text("# Answer NXDOMAIN for names below a name that does not exist, without a query (RFC 8020) (restart)."),
        key("nxdomain-cut", boolean, default(options.nxdomain_cut), |r, v| r.options.nxdomain_cut = v),
        Row::Text(
            "# Change the letter case of query names at random, which a forged response must copy (0x20). Servers
# that do not copy it are queried over TCP.",
        ),
        key("random-case", boolean, default(options.use_0x20), |r, v| r.options.use_0x20 = v),
        Row::Text(
            "# EDNS payload size in queries, and maximum size of a response over UDP, in octets (restart): 512 to
# 4096. The default avoids fragmentation on every path (RFC 9715).",
        ),
        key("edns-payload", number(EDNS_PAYLOAD_RANGE), default(options.edns_payload), |r, v| {
            r.options.edns_payload = v;
        }),
    ]);
    rows.extend(padding_rows());
    rows.extend::<Rows>(vec![
        Row::Text(
            "
# Local zones that are resolved as other names are, for example because a forward zone in your
# network has them. The resolver answers the other local zones itself (RFC 6303, RFC 6761).",
        ),
        key("disabled-local-zones", list("names", name), default("[]"), |r, v| {
            r.options.disabled_local_zones = v;
        }),
        Row::Text(
            "
# Identifier of the resolver in responses with NSID (RFC 5001): text of 1 to 128 octets, or \"0x\" and
# hexadecimal digits. Without it, responses have no NSID.",
        ),
        key("nsid", identifier, example("resolver1.example"), |r, v| r.options.nsid = v),
        Row::Text("# Answer to `id.server.` and `hostname.bind.`, class CH (RFC 4892). Default: REFUSED."),
        key("identity", identifier, example("resolver1.example"), |r, v| r.options.chaos.identity = Some(v)),
        Row::Text("# Answer to `version.server.` and `version.bind.`, class CH. Default: REFUSED."),
        key("server-version", identifier, example("unnamed"), |r, v| r.options.chaos.version = Some(v)),
    ]);
    Table { rows, tables: &TABLES }
}

fn limits_table() -> Table<ResolverConfiguration> {
    let ResolverOptions { clients, limits, ttl, .. } = ResolverOptions::default();
    let validation = limits.validation;
    let time = |seconds: u32| duration_text(seconds.into());
    Table::new(vec![
        Row::Text(
            "
[limits]
# Maximum number of client queries in progress in one thread (restart): 1 to 1000000. It is lower if
# memory has no room for them.",
        ),
        key("client-queries", number(1..=1_000_000), default(clients.queries), |r, v| {
            r.options.clients.queries = v;
        }),
        Row::Text(
            "# Maximum number of them from one client network that is not exempt: 1 to client-queries.",
        ),
        key("client-queries-each", number(1..=1_000_000), default(clients.queries_each), |r, v| {
            r.options.clients.queries_each = v;
        }),
        Row::Text("# Prefix lengths that make addresses one client network: 1 to 32 bits, and 1 to 64 bits."),
        key("client-ipv4-prefix", number(1..=32), default(clients.ipv4_prefix), |r, v| {
            r.options.clients.ipv4_prefix = v;
        }),
        key("client-ipv6-prefix", number(1..=64), default(clients.ipv6_prefix), |r, v| {
            r.options.clients.ipv6_prefix = v;
        }),
        Row::Text("# Networks to which client-queries-each does not apply."),
        key("exempt", list("prefixes", parsed), default(r#"["127.0.0.0/8", "::1"]"#), |r, v| {
            r.options.clients.exempt = v;
        }),
        Row::Text("
# Maximum time of a TLS handshake (restart): 1s to 1h."),
        handshake_row(|r: &mut ResolverConfiguration, v| r.tls_handshake = Some(Duration::from_secs(v))),
        Row::Text(
            "
# Limits of the work for one client query. Beyond a limit, the answer is SERVFAIL.
#
# Maximum number of queries to servers: 8 to 1000.",
        ),
        key("upstream-queries", number(8..=1000), default(limits.queries), |r, v| {
            r.options.limits.queries = v
        }),
        Row::Text("# Maximum number of octets in responses of servers: 64KiB to 1GiB."),
        key("upstream-octets", bytes(65_536..=1 << 30), default(size_text(limits.octets.into())), |r, v| {
            r.options.limits.octets = u32::try_from(v).unwrap_or(u32::MAX);
        }),
        Row::Text("# Maximum number of resolutions that wait for each other: 2 to 100."),
        key("upstream-depth", number(2..=100), default(limits.depth), |r, v| r.options.limits.depth = v),
        Row::Text("# Maximum number of aliases (CNAME, DNAME) that are followed: 1 to 100."),
        key("alias-steps", number(1..=100), default(limits.aliases), |r, v| r.options.limits.aliases = v),
        Row::Text("# Maximum number of nameserver addresses that are looked up: 1 to 1000."),
        key("addresses-per-query", number(1..=1000), default(limits.address_fetches), |r, v| {
            r.options.limits.address_fetches = v;
        }),
        Row::Text("# The same for the nameservers of one zone: 1 to 64, at most addresses-per-query."),
        key(
            "addresses-per-delegation",
            number(1..=64),
            default(limits.address_fetches_per_delegation),
            |r, v| r.options.limits.address_fetches_per_delegation = v,
        ),
        Row::Text("# Maximum time until the answer: 1s to 1m."),
        key("query-time", seconds(1..=60_u64), default(duration_text(limits.time.as_secs())), |r, v| {
            r.options.limits.time = Duration::from_secs(v);
        }),
        Row::Text(
            "
# Limits of validation for one client query. Beyond a limit, the answer is SERVFAIL.
#
# Maximum number of signatures to verify: 1 to 10000.",
        ),
        key("signatures", number(1..=10_000), default(validation.signatures), |r, v| {
            r.options.limits.validation.signatures = v;
        }),
        Row::Text(
            "# Maximum number of signatures that do not verify: 1 to 10000. A signature of P-384 counts as five, one
# of Ed448 as four.",
        ),
        key("bad-signatures", number(1..=10_000), default(validation.signature_failures), |r, v| {
            r.options.limits.validation.signature_failures = v;
        }),
        Row::Text("# Maximum number of SHA-1 blocks for NSEC3 hashes: 1 to 1000000."),
        key("nsec3-hash-blocks", number(1..=1_000_000), default(validation.hash_blocks), |r, v| {
            r.options.limits.validation.hash_blocks = v;
        }),
        Row::Text("# Maximum number of NSEC5 proofs to verify: 1 to 1000; for each response, a third of it."),
        key("nsec5-proofs", number(1..=1000), default(validation.proofs), |r, v| {
            r.options.limits.validation.proofs = v;
            r.options.limits.validation.proofs_per_response = v.div_ceil(3);
        }),
        Row::Text(
            "# Zones whose NSEC3 records have more iterations are insecure (RFC 9276): 0 to 2500. Beyond
# nsec3-iterations-max, the answer is SERVFAIL: 0 to 2500.",
        ),
        key("nsec3-iterations", number(0..=2500), default(validation.max_iterations_secure), |r, v| {
            r.options.limits.validation.max_iterations_secure = v;
        }),
        key("nsec3-iterations-max", number(0..=2500), default(validation.max_iterations_insecure), |r, v| {
            r.options.limits.validation.max_iterations_insecure = v;
        }),
        Row::Text(
            "# Maximum number of keys to try for one signature, of signatures to check for one RRset, of DS records
# of a zone to read: 1 to 100 each. Further ones are ignored.",
        ),
        key("keys-per-signature", number(1..=100_usize), default(validation.keys_per_signature), |r, v| {
            r.options.limits.validation.keys_per_signature = v;
        }),
        key("signatures-per-rrset", number(1..=100_usize), default(validation.signatures_per_rrset), |r, v| {
            r.options.limits.validation.signatures_per_rrset = v;
        }),
        key("ds-records", number(1..=100_usize), default(validation.ds_records), |r, v| {
            r.options.limits.validation.ds_records = v;
        }),
        Row::Text(
            "# Maximum number of DNSKEY and NSEC5KEY records of a zone, and of NSEC3 records in a response: 1 to 100
# each. With more, the answer is bogus.",
        ),
        key("dnskeys", number(1..=100_usize), default(validation.dnskeys), |r, v| {
            r.options.limits.validation.dnskeys = v;
        }),
        key("nsec5-keys", number(1..=100_usize), default(validation.nsec5_keys), |r, v| {
            r.options.limits.validation.nsec5_keys = v;
        }),
        key("nsec3-records", number(1..=100_usize), default(validation.nsec3_records), |r, v| {
            r.options.limits.validation.nsec3_records = v;
        }),
        Row::Text(
            "
# Bounds of the times for which records are cached (restart). ttl-min: 0 to 1h; above 0, the resolver
# keeps records longer than their zone permits. ttl-max: 0 to 1w. negative-ttl-max, of answers that a
# name or type does not exist: 0 to 1d.",
        ),
        key("ttl-min", seconds(0..=3600), default(time(ttl.min)), |r, v| r.options.ttl.min = v),
        key("ttl-max", seconds(0..=MAX_TTL), default(time(ttl.max)), |r, v| r.options.ttl.max = v),
        key("negative-ttl-max", seconds(0..=86_400), default(time(ttl.negative_max)), |r, v| {
            r.options.ttl.negative_max = v;
        }),
    ])
}

/// The fields of a forward or stub zone.
#[derive(Default)]
struct RuleFields {
    servers: Vec<SocketAddr>,
    tcp: bool,
    falls_back: bool,
}

fn forward_table() -> Table<RuleFields> {
    let mut rows: Vec<Row<RuleFields>> = vec![Row::Text(
        r#"
# A forward zone: queries for names in it go to other resolvers. The name "." forwards all queries.
#[forward."corp.example."]  # example
# Addresses of the resolvers. Default port: 53."#,
    )];
    rows.extend(rule_rows());
    rows.push(Row::Text("# If the resolvers fail, resolve from the root."));
    rows.push(key("fall-back", boolean, default(false), |z, v| z.falls_back = v));
    Table::new(rows)
}

fn stub_table() -> Table<RuleFields> {
    let mut rows: Vec<Row<RuleFields>> = vec![Row::Text(
        r#"
# A stub zone: its authoritative servers are these, whatever its delegation contains.
#[stub."lab.example."]  # example
# Addresses of the authoritative servers. Default port: 53."#,
    )];
    rows.extend(rule_rows());
    Table::new(rows)
}

/// The fields of a negative trust anchor.
#[derive(Default)]
struct NegativeAnchorFields {
    until: Option<Rfc3339>,
    is_not_rechecked: bool,
}

fn negative_anchor_table() -> Table<NegativeAnchorFields> {
    Table::new(vec![
        Row::Text(
            r#"
# A negative trust anchor: names in this zone are not validated, because its operator has broken the
# signatures and is repairing them (RFC 7646). Answers have the extended error 33.
#[negative-anchor."broken.example."]  # example
# End of the negative trust anchor. RFC 7646 recommends a week at most.
# `nonesuch ctl negative-anchor add` adds one to a running resolver."#,
        ),
        key("until", parsed, example("2030-01-01T00:00:00Z"), |z, v| z.until = Some(v)),
        Row::Text(
            "# End it earlier if the zone validates again. The check is of the DNSKEY and SOA RRsets only.",
        ),
        key("recheck", boolean, default(true), |z, v| z.is_not_rechecked = !v),
    ])
}

fn rule_rows() -> [Row<RuleFields>; 3] {
    [
        key("servers", list("addresses", socket_address(DNS_PORT)), example(r#"["192.0.2.1"]"#), |z, v| {
            z.servers = v;
        }),
        Row::Text("# Send the queries over TCP."),
        key("tcp", boolean, default(false), |z, v| z.tcp = v),
    ]
}

/// The text of `etc/resolver.toml`.
pub(super) fn reference() -> String {
    [
        root_table().reference(false),
        log_table().reference(false),
        limits_table().reference(false),
        forward_table().reference(true),
        stub_table().reference(true),
        negative_anchor_table().reference(true),
    ]
    .concat()
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
