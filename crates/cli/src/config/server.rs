//! The keys outside tables: settings of the server as a whole.

use super::include::Include;
use super::keys::{Row, TABLES, Table, default, example, hidden, key};
use super::section::{Item, Section};
use super::sources::FileRole;
use super::tls::{HasTls, Tls, listener_rows, padding_rows};
use super::value_error::ValueError;
use super::values::{
    access, boolean, bytes, file, identifier, list, name, number, path, size_text, socket_address, text,
};
use crate::files::is_world_readable;
use crate::metrics::DEFAULT_MAX_ZONES;
use nonesuch_authoritative::server::DEFAULT_SIGNATURE_CACHE_OCTETS;
use nonesuch_net::has_address;
use nonesuch_proto::Name;
use nonesuch_server::acl::{AccessList, DNS_PORT};
use nonesuch_server::reply_options::{DEFAULT_UDP_SIZE, UDP_SIZE_RANGE};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Version of the configuration format that this program reads.
pub(super) const VERSION: u32 = 1;
/// Default port of `metrics-listen`.
pub(super) const METRICS_PORT: u16 = 9530;
/// Maximum length of the path of a socket, in bytes (unix(7)). `sun_path` has one more byte, for
/// the terminating zero.
const MAX_SOCKET_PATH: usize = 107;

/// Settings of the server as a whole. [`Default`] leaves all fields empty or 0; [`Table::defaults`]
/// returns the defaults of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) user: Option<String>,
    pub(crate) state_dir: Option<PathBuf>,
    /// File of the zones that `ctl zone add` adds.
    pub(crate) added_zones_file: Option<PathBuf>,
    pub(crate) listen: Vec<SocketAddr>,
    /// DNS over TLS.
    pub(crate) tls: Tls,
    /// Certificates that verify other servers over TLS.
    pub(crate) tls_authorities: Option<PathBuf>,
    /// Number of UDP workers of each address; `None` for one per core.
    pub(crate) workers: Option<usize>,
    /// CPUs to which the UDP workers are bound in turn; empty to bind none.
    pub(crate) cpus: Vec<usize>,
    pub(crate) nsid: Option<Vec<u8>>,
    /// Response to `id.server.` in class CH; `None` for the NSID.
    pub(crate) identity: Option<Vec<u8>>,
    /// Response to `version.server.` in class CH; `None` for REFUSED.
    pub(crate) server_version: Option<Vec<u8>>,
    /// The agent domain that errors are reported to (RFC 9567).
    pub(crate) report_channel: Option<Name>,
    /// Maximum size of a response over UDP, in octets.
    pub(crate) max_udp_size: u16,
    pub(crate) control_socket: Option<PathBuf>,
    pub(crate) control_group: Option<String>,
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) metrics_zones: usize,
    pub(crate) metrics_zone_queries: bool,
    /// Size of the cache of signatures and proofs that are generated online, in bytes.
    pub(crate) signature_cache: u64,
    /// Number of zones that are loaded in parallel; `None` for one per core.
    pub(crate) load_jobs: Option<usize>,
}

/// The fields that the keys outside tables (of the root table) set.
#[derive(Default)]
pub(super) struct Root {
    pub(super) includes: Vec<Include>,
    pub(super) server: Server,
    /// Clients that may query zones without `allow-query`; `None` for all clients.
    pub(super) allow_query: Option<AccessList>,
}

impl HasTls for Root {
    fn tls(&mut self) -> &mut Tls {
        &mut self.server.tls
    }
}

type Rows = Vec<Row<Root>>;

pub(super) fn table() -> Table<Root> {
    let mut rows: Rows = vec![
        Row::Text(
            r#"# Configuration of `nonesuch serve --config FILE`, in TOML (https://toml.io).
#
# `nonesuch serve --config FILE --check` checks a configuration; `--check=zones` also verifies its
# zones. A reload (`nonesuch ctl reload`, SIGHUP) reads the configuration again; if it has a fault,
# the server rejects it and keeps the previous one.
#
# A line that begins with `#` and the name of a setting shows its default. A line that ends with
# `# example` shows an example; the comment has the default, if the setting has one. Relative paths
# are relative to the directory of this file. Durations: "10s", "5m", "2h", "7d", "2w". Sizes:
# "512KiB", "64MiB", "1GiB". The order of the settings does not matter, but those outside tables
# come before the first table.
#
# A change of a setting takes effect at a reload. If the comment has "(restart)", it takes effect
# only when the server starts again.

# Version of the configuration format. Required.
version = 1"#,
        ),
        key("version", version, hidden(), |_, ()| ()),
        Row::Text(
            r#"
# Other files with TSIG keys, templates and zones: the tables [key.…], [template.…] and [zone.…].
# All other settings are allowed only in this file. Paths in an included file are relative to the
# directory of that file. In the file name, `*` matches any characters and `?` one character, but
# not a leading dot. It is no error if such a pattern matches no file. Each reload looks for the
# files again."#,
        ),
        key("include", list("paths", included), example(r#"["zones.d/*.toml"]"#), |r, v| r.includes = v),
        Row::Text(
            "
# File with the zones that are added while the server runs (`nonesuch ctl zone add`). It is read as
# the last included file, and may be missing. The server writes it, so the user of the server needs
# write access to its directory.",
        ),
        key("added-zones-file", path, example("/var/lib/nonesuch/added-zones.toml"), |r, v| {
            r.server.added_zones_file = Some(v)
        }),
        Row::Text(
            r#"
# Listen addresses for UDP and TCP (restart). Default port: 53. Other ports: "192.0.2.1:5300",
# "[2001:db8::1]:5300". If an address is not configured on any interface yet, the server answers
# there once an interface has it. The default omits "::1" on a host without IPv6."#,
        ),
        key(
            "listen",
            list("addresses", socket_address(DNS_PORT)),
            default(r#"["127.0.0.1", "::1"]"#),
            |r, v| r.server.listen = v,
        ),
    ];
    rows.extend(listener_rows());
    rows.extend::<Rows>(vec![
        Row::Text(
            "# Certificates in PEM that verify the servers with tls:HOSTNAME in primaries and also-notify
# (restart): those of certification authorities, or of such a server itself. Without it, the server
# does not connect to servers with tls:HOSTNAME.",
        ),
        key(
            "tls-authorities",
            file(FileRole::Authorities),
            example("/etc/nonesuch/tls/authorities.pem"),
            |r, v| r.server.tls_authorities = Some(v),
        ),
        Row::Text(
            "
# User that the server becomes after it has bound its sockets (restart). Required if root starts a
# server with an address other than loopback. Default: the user that starts the server.",
        ),
        key("user", text, example("nonesuch"), |r, v| r.server.user = Some(v)),
        Row::Text(
            "
# State directory (restart): the last published version of each zone, which the server serves after
# a restart, and the journals. Required for zones with primaries and for producers of catalogs.
# Without it, the server stores nothing and has no journals. Only the server's user may write to
# this directory. The stored files of a zone that is removed from this configuration remain until
# `nonesuch ctl zone purge ZONE` or `nonesuch ctl purge`.",
        ),
        key("state-dir", path, example("/var/lib/nonesuch"), |r, v| r.server.state_dir = Some(v)),
        Row::Text(
            "
# Control socket for `nonesuch ctl` (restart). `ctl` finds it in /etc/nonesuch/nonesuch.toml, or in
# the file of --config. Without it, the server has no control socket.",
        ),
        key("control-socket", file(FileRole::Control), example("/run/nonesuch/control"), |r, v| {
            r.server.control_socket = Some(v)
        }),
        Row::Text("# Group that may use the control socket (restart). Default: only the server's user."),
        key("control-group", text, example("nonesuch"), |r, v| r.server.control_group = Some(v)),
        Row::Text(
            "
# Number of UDP threads for each address in listen (restart): 1 to 1024. Default: one for each core.
# In addition, each address in listen and in listen-tls has one thread for TCP or TLS.",
        ),
        key("workers", number(1..=1024), example("2"), |r, v| r.server.workers = Some(v)),
        Row::Text(
            "# CPUs that the UDP threads are bound to in turn (restart): numbers from 0 to 4095, for example
# [0, 1]. The default binds no thread.",
        ),
        key("cpus", list("numbers of CPUs", number(0..=4095)), default("[]"), |r, v| r.server.cpus = v),
        Row::Text(
            "
# Number of zones that are loaded in parallel (restart): 1 to 1024. Default: one for each core, at
# most 4. Each needs memory for two versions of the zone.",
        ),
        key("load-jobs", number(1..=1024), example("2"), |r, v| r.server.load_jobs = Some(v)),
        Row::Text(
            "
# Size of the cache of signatures and proofs that are generated online, for all threads together
# (restart): 1MiB to 1024GiB.",
        ),
        key(
            "signature-cache",
            bytes(1 << 20..=1 << 40),
            default(size_text(DEFAULT_SIGNATURE_CACHE_OCTETS as u64)),
            |r, v| r.server.signature_cache = v,
        ),
        Row::Text(
            r#"
# Clients that may query zones: prefixes, TSIG keys, both, or "any", as in transfer of a zone below.
# The allow-query of a zone overrides this list. Other clients get REFUSED. Zone transfers have a
# separate list (transfer), but a secondary also queries the SOA record: include the secondaries in
# both lists."#,
        ),
        key("allow-query", access(Some("no client may query")), default(r#"["any"]"#), |r, v| {
            r.allow_query = Some(v)
        }),
        Row::Text(
            r#"
# Identifier of the server in responses with NSID (RFC 5001): text of 1 to 128 octets, or "0x" and
# hexadecimal digits. Without it, responses have no NSID."#,
        ),
        key("nsid", identifier, example("ns1.example"), |r, v| r.server.nsid = Some(v)),
        Row::Text(
            "# Answer to `id.server.` and `hostname.bind.`, class CH (RFC 4892), in the form of nsid. Default:
# the value of nsid, else REFUSED.",
        ),
        key("identity", identifier, example("ns1.example"), |r, v| r.server.identity = Some(v)),
        Row::Text(
            "# Answer to `version.server.` and `version.bind.`, class CH, in the form of nsid. Default: REFUSED.",
        ),
        key("server-version", identifier, example("unnamed"), |r, v| r.server.server_version = Some(v)),
        Row::Text(
            "
# Agent domain to which resolvers report errors (RFC 9567). Default: none.",
        ),
        key("report-channel", name, example("agent.example."), |r, v| r.server.report_channel = Some(v)),
    ]);
    rows.extend(padding_rows());
    rows.extend::<Rows>(vec![
        Row::Text(
            "
# Maximum size of a response over UDP, in octets: 512 to 4096. A longer response, or one longer than
# the EDNS size of the client, is truncated, and the client repeats the query over TCP. Also the
# EDNS size in OPT records of this server. The default avoids fragmentation on every path (RFC
# 9715).",
        ),
        key("max-udp-size", number(UDP_SIZE_RANGE), default(DEFAULT_UDP_SIZE), |r, v| {
            r.server.max_udp_size = v
        }),
        Row::Text(
            "
# Address for metrics over HTTP (Prometheus) (restart). Default port: 9530. Default: no metrics.",
        ),
        key("metrics-listen", socket_address(METRICS_PORT), example("127.0.0.1:9530"), |r, v| {
            r.server.metrics_listen = Some(v)
        }),
        Row::Text(
            "# Maximum number of zones for which the server exports metrics of each zone: 0 to 1000000. With
# more zones, it exports only metrics of all zones together.",
        ),
        key("metrics-zones", number(0..=1_000_000), default(DEFAULT_MAX_ZONES), |r, v| {
            r.server.metrics_zones = v
        }),
        Row::Text("# Count the queries for each zone. The cost is one atomic addition for each query."),
        key("metrics-zone-queries", boolean, default(false), |r, v| r.server.metrics_zone_queries = v),
    ]);
    Table { rows, tables: &TABLES }
}

/// Reports a fault if the configuration has no version.
pub(super) fn require_version(root: &Section<'_>) {
    if !root.has("version") {
        root.report_fault("version", format!("missing: write version = {VERSION} as the first line"));
    }
}

pub(super) fn version(item: Item<'_, '_>) -> Result<(), ValueError> {
    match number(1..=u32::MAX)(item)? {
        VERSION => Ok(()),
        found => Err(ValueError::Version { found, known: VERSION }),
    }
}

/// A path or pattern of included files.
fn included(item: Item<'_, '_>) -> Result<Include, ValueError> {
    Ok(Include { path: path(item)?, location: item.location() })
}

impl Root {
    /// Completes the settings after all keys are read, and reports contradictions.
    pub(super) fn resolve(&mut self, root: &Section<'_>) {
        require_version(root);
        if !root.has("listen") {
            // The default address list includes IPv6, and a host may have no IPv6 address.
            self.server.listen.retain(|address| address.is_ipv4() || has_address(address.ip()));
        }
        if !root.has("allow-query") {
            // `None` permits all clients like the default list, without a search in a list.
            self.allow_query = None;
        }
        let Server { listen, tls, metrics_listen, .. } = &self.server;
        tls.check(listen, root);
        check_metrics_address(*metrics_listen, listen.iter().chain(&tls.listen), root);
        check_control(self.server.control_socket.as_deref(), self.server.control_group.as_deref(), root);
        if self.server.report_channel.as_ref().is_some_and(|agent| agent.view().is_root()) {
            let message = "the root is not an agent domain: name another, or leave this out (RFC 9567)";
            root.report_fault("report-channel", message);
        }
        match self.server.user.as_deref() {
            Some("") => {
                root.report_fault(
                    "user",
                    "\"\" is not a user: name a user for this server, for example \
                    \"nonesuch\"",
                );
            }
            Some("root") => {
                root.warn("user", "an attacker in control of the server is root: name another user");
            }
            _ => {}
        }
    }
}

/// Reports an address for metrics that is also one for DNS.
pub(super) fn check_metrics_address<'c>(
    metrics_listen: Option<SocketAddr>,
    mut listen: impl Iterator<Item = &'c SocketAddr>,
    root: &Section<'_>,
) {
    let Some(address) = metrics_listen.filter(|address| address.port() != 0) else { return };
    if listen.any(|taken| *taken == address) {
        let message = format!(
            "{address} is in listen or listen-tls too: metrics need their own address, for example \
                127.0.0.1:9530"
        );
        root.report_fault("metrics-listen", message);
    }
}

/// Reports a group without a control socket, and a path that is too long for one.
pub(super) fn check_control(control_socket: Option<&Path>, control_group: Option<&str>, root: &Section<'_>) {
    if control_group.is_some() && control_socket.is_none() {
        let message = "no control-socket to give to a group: add control-socket, or leave this out";
        root.report_fault("control-group", message);
    }
    if let Some(message) = control_socket.and_then(socket_path_error) {
        root.report_fault("control-socket", message);
    }
}

/// The fault of a path that is too long for a socket; `None` if it is short enough.
pub(super) fn socket_path_error(path: &Path) -> Option<String> {
    let length = path.as_os_str().len();
    (length > MAX_SOCKET_PATH).then(|| {
        format!(
            "{}: {length} octets, longer than the maximum of {MAX_SOCKET_PATH} for the path of a \
                socket: name a shorter one, for example /run/nonesuch/control",
            path.display()
        )
    })
}

/// Warns of a file with a secret that every user may read.
pub(super) fn warn_if_world_readable(section: &Section<'_>, key: &str, path: &Path) {
    if is_world_readable(path) {
        section.warn(key, format!("{}: every user may read this secret: chmod o= it", path.display()));
    }
}
