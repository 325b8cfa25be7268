//! The parts of a configuration that are of the server as a whole, and the TSIG keys.

use super::model::{Cookies, Dnstap, DnstapTo, Limits, Log, LogFormat, LogLevel, Server, TlsFiles};
use super::reader::Section;
use super::secrets::{read_secret_file, warn_of_inline, warn_of_open};
use super::socket::complain_of_length;
use super::sources::{Role, Spot};
use super::values::{boolean, choice, identifier, name, number, octets, parse_name, path, prefix, seconds};
use super::values::{socket_address, text};
use nonesuch_authoritative::acl::{PORT, TLS_PORT};
use nonesuch_authoritative::cookies::{self, Secret};
use nonesuch_authoritative::limits::{
    RATES, RateSettings, RequireCookie, SHARES, SLIPS, TABLE_OCTETS, WhenOver,
};
use nonesuch_authoritative::tsig::{Algorithm, Key};
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::de::DeValue;
use zeroize::Zeroizing;

/// Version of the form of configurations that this program reads.
const VERSION: u32 = 1;
const METRICS_PORT: u16 = 9530;

pub(super) fn check_version(root: &Section<'_, '_>) {
    let version = root.take("version", number(1..=u32::MAX));
    match version {
        Some(VERSION) => {}
        Some(other) => root.fault(
            "version",
            format!(
                "{other} is a version of configurations that this program does not know: it knows {VERSION}"
            ),
        ),
        None if !root.has("version") => {
            root.fault("version", format!("missing: write version = {VERSION} as the first line"));
        }
        None => {}
    }
}

pub(super) fn read_server(root: &Section<'_, '_>) -> Server {
    let folder = root.context().folder();
    let default = Server::default();
    let listen = root.take_list("listen", "addresses", socket_address(PORT));
    let listen_tls = root.take_list("listen-tls", "addresses", socket_address(TLS_PORT)).unwrap_or_default();
    let server = Server {
        user: root.take("user", text),
        state_dir: root.take("state-dir", path(folder)),
        listen: listen.unwrap_or(default.listen),
        tls: read_tls(root, !listen_tls.is_empty()),
        listen_tls,
        tls_authorities: root.take("tls-authorities", path(folder)),
        workers: root.take("workers", number(1..=1024)),
        cpus: root.take_list("cpus", "numbers of CPUs", number(0..=4095)).unwrap_or_default(),
        nsid: root.take("nsid", identifier),
        identity: root.take("identity", identifier),
        server_version: root.take("server-version", identifier),
        report_channel: root.take("report-channel", name),
        padding_block: root.take("padding-block", number(0..=4096)).unwrap_or(default.padding_block),
        control_socket: root.take("control-socket", path(folder)),
        control_group: root.take("control-group", text),
        metrics_listen: root.take("metrics-listen", socket_address(METRICS_PORT)),
        metrics_zones: root.take("metrics-zones", number(0..=1_000_000)).unwrap_or(default.metrics_zones),
        signature_cache: root
            .take("signature-cache", octets(1 << 20..=1 << 40))
            .unwrap_or(default.signature_cache),
        load_jobs: root.take("load-jobs", number(1..=1024)),
    };
    check_server(root, &server);
    super::warnings::look_at_server(root);
    note_server(root, &server);
    server
}

/// Notes what the server as a whole names in the system.
fn note_server(root: &Section<'_, '_>, server: &Server) {
    root.note_places(&[
        "user",
        "listen",
        "listen-tls",
        "state-dir",
        "cpus",
        "control-socket",
        "control-group",
        "tls-certificate",
        "tls-key",
        "tls-authorities",
        "metrics-listen",
    ]);
    if let Some(TlsFiles { certificate, key }) = &server.tls {
        root.note_file("tls-certificate", certificate, Role::Tls);
        root.note_file("tls-key", key, Role::Tls);
        warn_of_open(root, "tls-key", key);
    }
    if let Some(authorities) = &server.tls_authorities {
        root.note_file("tls-authorities", authorities, Role::Authorities);
    }
    if let Some(socket) = &server.control_socket {
        root.note_file("control-socket", socket, Role::Control);
    }
}

fn read_tls(root: &Section<'_, '_>, is_wanted: bool) -> Option<TlsFiles> {
    let folder = root.context().folder();
    let certificate = root.take("tls-certificate", path(folder));
    let key = root.take("tls-key", path(folder));
    for (missing, other) in [("tls-key", "tls-certificate"), ("tls-certificate", "tls-key")] {
        if !root.has(missing) && root.has(other) {
            root.fault(
                other,
                format!("{missing} is missing: a certificate is of use with its key only; give both"),
            );
        }
        if is_wanted && !root.has(missing) && !root.has(other) {
            root.fault(
                "listen-tls",
                "DNS over TLS needs tls-certificate and tls-key: give both, or leave listen-tls out",
            );
        }
    }
    Some(TlsFiles { certificate: certificate?, key: key? })
}

fn check_server(root: &Section<'_, '_>, server: &Server) {
    // Of addresses that are there and wrong that is said.
    let is_said = root.has_items("listen") || root.has_items("listen-tls");
    if server.listen.is_empty() && server.listen_tls.is_empty() && !is_said {
        root.fault("listen", "there is no address to answer on: name one, as \"192.0.2.1:53\"");
    }
    for (key, addresses) in [("listen", &server.listen), ("listen-tls", &server.listen_tls)] {
        let mut sorted = addresses.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1] && pair[0].port() != 0) {
            root.fault(key, format!("{} stands there twice: leave one out", twice[0]));
        }
    }
    if let Some(both) =
        server.listen.iter().find(|address| address.port() != 0 && server.listen_tls.contains(address))
    {
        root.fault(
            "listen-tls",
            format!("{both} is in listen too: DNS over TLS needs a port of its own, as 853"),
        );
    }
    let metrics = server.metrics_listen.filter(|address| address.port() != 0);
    if let Some(both) =
        metrics.filter(|address| server.listen.contains(address) || server.listen_tls.contains(address))
    {
        root.fault(
            "metrics-listen",
            format!("{both} is answered at already: metrics need an address of their own, as 127.0.0.1:9530"),
        );
    }
    if server.report_channel.as_ref().is_some_and(|agent| agent.view().is_root()) {
        root.fault("report-channel", "the root is no agent domain: name one, or leave this out (RFC 9567)");
    }
    if server.control_group.is_some() && server.control_socket.is_none() {
        root.fault(
            "control-group",
            "there is no control-socket that a group could have: add one, or leave this out",
        );
    }
    if let Some(message) = server.control_socket.as_deref().and_then(complain_of_length) {
        root.fault("control-socket", message);
    }
    match server.user.as_deref() {
        Some("") => root.fault("user", "\"\" is no user: name one that is made for this, as \"nonesuch\""),
        Some("root") => root.warn("user", "whoever breaks into the server is root then: name another user"),
        _ => {}
    }
}

pub(super) fn read_log(root: &Section<'_, '_>) -> Log {
    let Some(section) = root.take_table("log") else { return Log::default() };
    let levels = [
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("trace", LogLevel::Trace),
    ];
    let formats = [
        ("auto", LogFormat::Auto),
        ("text", LogFormat::Text),
        ("journal", LogFormat::Journal),
        ("json", LogFormat::Json),
    ];
    let log = Log {
        level: section.take("level", choice(&levels)).unwrap_or_default(),
        format: section.take("format", choice(&formats)).unwrap_or_default(),
    };
    section.finish();
    log
}

pub(super) fn read_dnstap(root: &Section<'_, '_>) -> Option<Dnstap> {
    let section = root.take_table("dnstap")?;
    let folder = root.context().folder();
    let socket = section.take("socket", path(folder));
    let file = section.take("file", path(folder));
    let identity = section.take("identity", text);
    let messages = section.take_list("messages", "\"queries\" and \"responses\"", message_kind);
    let messages = messages.unwrap_or_else(|| vec![false, true]);
    let queue = section.take("queue", octets(64 << 10..=1 << 30)).unwrap_or(1 << 20);
    file.iter().for_each(|file| section.note_file("file", file, Role::Dnstap));
    let to = match (socket, file) {
        (Some(_), Some(_)) => {
            section.fault("file", "socket is given too: dnstap goes to one of them; leave the other out");
            None
        }
        (Some(socket), None) => {
            complain_of_length(&socket).into_iter().for_each(|message| section.fault("socket", message));
            Some(DnstapTo::Socket(socket))
        }
        (None, Some(file)) => Some(DnstapTo::File(file)),
        (None, None) => {
            if !section.has("socket") && !section.has("file") {
                section.fault("socket", "missing: name a socket that a collector listens at, or a file");
            }
            None
        }
    };
    let (queries, responses) = (messages.contains(&false), messages.contains(&true));
    section.finish();
    Some(Dnstap { to: to?, identity, queries, responses, queue })
}

/// Whether a kind of messages is that of responses.
fn message_kind(value: &DeValue<'_>) -> Result<bool, String> {
    choice(&[("queries", false), ("responses", true)])(value)
}

pub(super) fn read_limits(root: &Section<'_, '_>) -> Limits {
    let default = Limits::default();
    let Some(section) = root.take_table("limits") else { return default };
    let count = |key, default: usize| section.take(key, number(1..=1_000_000)).unwrap_or(default);
    let rate = |key, default: u32| section.take(key, number(RATES)).unwrap_or(default);
    let time = |key, default: u64| section.take(key, seconds(1..=3600)).unwrap_or(default);
    let transfer_time = |key, default: u64| section.take(key, seconds(1..=604_800)).unwrap_or(default);
    let size = |key, default: u64| section.take(key, octets(1 << 20..=1 << 40)).unwrap_or(default);
    let share = |key, default: u8| section.take(key, number(SHARES)).unwrap_or(default);
    let of_each = rate("responses-per-second", default.responses_per_second);
    let nxdomain = rate("nxdomain-responses-per-second", of_each);
    let referral = rate("referral-responses-per-second", of_each);
    let of_client = if of_each > 0 { RateSettings::CLIENT_RATE } else { 0 };
    let of_client = rate("client-responses-per-second", of_client);
    if [of_each, nxdomain, referral, of_client].iter().all(|rate| *rate == 0) {
        for key in ["slip", "response-table"].into_iter().filter(|key| section.has(key)) {
            section.warn(key, "it has no effect: response rate limiting is off; set responses-per-second");
        }
    }
    let over = [("truncate", WhenOver::Truncate), ("refuse", WhenOver::Refuse)];
    let transfers_out = count("transfers-out", default.transfers_out);
    let limits = Limits {
        exempt: section.take_list("exempt", "prefixes", prefix).unwrap_or(default.exempt),
        tcp_connections: count("tcp-connections", default.tcp_connections),
        tcp_connections_each: count("tcp-connections-each", default.tcp_connections_each),
        tcp_queries_in_flight: count("tcp-queries-in-flight", default.tcp_queries_in_flight),
        tcp_memory: size("tcp-memory", default.tcp_memory),
        tcp_idle: time("tcp-idle", default.tcp_idle),
        tcp_first_message: time("tcp-first-message", default.tcp_first_message),
        tcp_write: time("tcp-write", default.tcp_write),
        tls_handshake: time("tls-handshake", default.tls_handshake),
        responses_per_second: of_each,
        nxdomain_responses_per_second: nxdomain,
        referral_responses_per_second: referral,
        client_responses_per_second: of_client,
        slip: section.take("slip", number(SLIPS)).unwrap_or(default.slip),
        response_table: section
            .take("response-table", octets(TABLE_OCTETS))
            .unwrap_or(default.response_table),
        online_share: share("online-share", default.online_share),
        online_busy_share: share("online-busy-share", default.online_busy_share),
        online_over: section.take("online-over", choice(&over)).unwrap_or_default(),
        transfers_out,
        transfers_out_each: count("transfers-out-each", default.transfers_out_each.min(transfers_out)),
        transfer_out_idle: time("transfer-out-idle", default.transfer_out_idle),
        transfer_out_time: transfer_time("transfer-out-time", default.transfer_out_time),
        transfers_in: count("transfers-in", default.transfers_in),
        transfers_in_each: count("transfers-in-each", default.transfers_in_each),
        transfer_in_time: transfer_time("transfer-in-time", default.transfer_in_time),
        transfer_in_idle: time("transfer-in-idle", default.transfer_in_idle),
    };
    if limits.tcp_connections_each > limits.tcp_connections {
        section
            .fault("tcp-connections-each", "one client may have more connections than there are: lower it");
    }
    if limits.transfers_out_each > limits.transfers_out {
        section.fault("transfers-out-each", "one client may have more transfers than there are: lower it");
    }
    if limits.online_busy_share > limits.online_share {
        section
            .fault("online-busy-share", "a worker that is behind may do more than one that is not: lower it");
    }
    section.finish();
    limits
}

pub(super) fn read_cookies(root: &Section<'_, '_>) -> Cookies {
    let Some(section) = root.take_table("cookies") else { return Cookies::default() };
    let folder = root.context().folder();
    let is_on = section.take("enabled", boolean).unwrap_or(true);
    let demands = [("never", RequireCookie::Never), ("when-limited", RequireCookie::WhenLimited)];
    let demand = section.take("require", choice(&demands)).unwrap_or_default();
    let file = section.take("secret-file", path(folder));
    let secrets = file.map_or_else(Vec::new, |file| read_cookie_secrets(&section, &file));
    if !is_on && section.has("secret-file") {
        section
            .fault("secret-file", "cookies are off (enabled = false): turn them on, or leave the secret out");
    }
    section.finish();
    Cookies { is_off: !is_on, secrets, demand }
}

/// One secret of 32 hexadecimal digits on each line, the current one first.
fn read_cookie_secrets(section: &Section<'_, '_>, file: &Path) -> Vec<Secret> {
    let Some(text) = read_secret_file(section, "secret-file", file) else { return Vec::new() };
    cookies::Cookies::parse_secrets(&text).unwrap_or_else(|error| {
        let place = file.display();
        section.fault("secret-file", format!("{place}: {error}, as `openssl rand -hex 16` prints them"));
        Vec::new()
    })
}

pub(super) fn read_keys(roots: &[Section<'_, '_>]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    let mut places: BTreeMap<Name, Spot> = BTreeMap::new();
    for (name, span, section) in roots.iter().flat_map(|root| root.take_tables("key")) {
        let context = section.context();
        if let Some(key) = read_key(&name, span.clone(), &section) {
            if let Some(earlier) = places.get(&key.name().to_canonical()) {
                let message = format!(
                    "a key of this name is there already ({}): leave one out; names do not differ by the case of letters",
                    context.findings().locate(*earlier)
                );
                context.fault(span, "key", message);
            } else {
                places.insert(key.name().to_canonical(), context.spot(&span));
                keys.push(key);
            }
        }
        section.finish();
    }
    keys
}

fn read_key(name: &str, span: Range<usize>, section: &Section<'_, '_>) -> Option<Key> {
    let folder = section.context().folder();
    let parsed = parse_name(name).map_err(|message| section.context().fault(span, "key", message)).ok();
    parsed.iter().for_each(|name| section.context().note_key(name));
    let algorithm = section.take("algorithm", |value| {
        let text = text(value)?;
        text.parse::<Algorithm>().map_err(|_| {
            format!("{text:?} is not allowed: write \"hmac-sha256\", \"hmac-sha384\" or \"hmac-sha512\"")
        })
    });
    let inline = section.take("secret", |value| text(value).map(Zeroizing::new));
    let file = section.take("secret-file", path(folder));
    let (secret, place) = match (inline, file) {
        (Some(_), Some(_)) => {
            section.fault("secret-file", "secret is given too: leave one of them out");
            return None;
        }
        (Some(secret), None) => {
            warn_of_inline(section, "secret");
            (secret, "secret")
        }
        (None, Some(file)) => (read_secret_file(section, "secret-file", &file)?, "secret-file"),
        (None, None) => {
            if !section.has("secret") && !section.has("secret-file") {
                section.fault(
                    "secret-file",
                    "missing: name a file with the secret in base64, or give secret = \"…\"",
                );
            }
            return None;
        }
    };
    if secret.contains('{') {
        return take_bind_key(section, place, &parsed?, algorithm, &secret);
    }
    let algorithm = algorithm.or_else(|| {
        let default = (!section.has("algorithm")).then(|| "hmac-sha256".parse().ok());
        default.flatten()
    });
    let key = Key::from_base64(&parsed?, algorithm?, secret.trim());
    match key {
        Ok(key) => {
            if key.is_short() {
                section.warn(
                    place,
                    "the secret is shorter than the hash (RFC 8945, section 8): make a longer one",
                );
            }
            Some(key)
        }
        Err(error) => {
            section.fault(place, format!("{error}"));
            None
        }
    }
}

/// The key of this name out of what BIND has of it: `key "NAME" { algorithm …; secret "…"; };`.
fn take_bind_key(
    section: &Section<'_, '_>,
    place: &str,
    name: &Name,
    algorithm: Option<Algorithm>,
    text: &str,
) -> Option<Key> {
    let keys = nonesuch_authoritative::tsig::read_keys(text)
        .map_err(|error| section.fault(place, error.to_string()))
        .ok()?;
    let Some(key) = keys.into_iter().find(|key| key.name() == name.view()) else {
        section.fault(
            place,
            format!("there is no key {name} in it: write the secret in base64 alone, or its name"),
        );
        return None;
    };
    if algorithm.is_some_and(|algorithm| algorithm != key.algorithm()) {
        section.fault("algorithm", format!("the key's file says {}: leave this out", key.algorithm()));
        return None;
    }
    Some(key)
}
