//! The tables of the configuration of a resolver: keys, defaults, and the text of `etc/resolver.toml`.

use super::{ResolverConfiguration, Validation};
use crate::config::FileRole;
use crate::config::keys::{Row, Table, default, example, hidden, key};
use crate::config::outputs::log_table;
use crate::config::server::{METRICS_PORT, version};
use crate::config::tls::{handshake_row, listener_rows, padding_rows};
use crate::config::values::{
    access, boolean, bytes, choice, duration_text, file, identifier, list, name, number, parsed, path,
    seconds, size_text, socket_address, text,
};
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_resolver::options::{
    AddressFamilies, EDNS_PAYLOAD_RANGE, MAX_TTL, MEMORY_RANGE, ResolverOptions,
};
use nonesuch_server::acl::DNS_PORT;
use std::net::SocketAddr;
use std::time::Duration;

/// Tables of the configuration.
const TABLES: [&str; 5] = ["log", "limits", "forward", "stub", "negative-anchor"];

type Rows = Vec<Row<ResolverConfiguration>>;

pub(super) fn root_table() -> Table<ResolverConfiguration> {
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

pub(super) fn limits_table() -> Table<ResolverConfiguration> {
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
pub(super) struct RuleFields {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) tcp: bool,
    pub(super) falls_back: bool,
}

pub(super) fn forward_table() -> Table<RuleFields> {
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

pub(super) fn stub_table() -> Table<RuleFields> {
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
pub(super) struct NegativeAnchorFields {
    pub(super) until: Option<Rfc3339>,
    pub(super) is_not_rechecked: bool,
}

pub(super) fn negative_anchor_table() -> Table<NegativeAnchorFields> {
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
pub(in crate::config) fn reference() -> String {
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
