//! What a configuration makes of the parts of a server: how it answers, listens and transfers, and what it logs.

use super::serve_reloads::Started;
use crate::config::{Configuration, DnstapTo, Limits, LogFormat, LogLevel};
use crate::logging;
use nonesuch_authoritative::Settings;
use nonesuch_authoritative::chaos::Chaos;
use nonesuch_authoritative::cookies::Cookies;
use nonesuch_authoritative::limits::{self, LimitSettings, OnlineSettings, RateSettings, WhenOver};
use nonesuch_authoritative::reply_options::ReplySettings;
use nonesuch_authoritative::secondary::TransfersOptions;
use nonesuch_authoritative::server::ServerOptions;
use nonesuch_authoritative::tap::{Destination, TapOptions};
use nonesuch_net::Heartbeats;
use nonesuch_net::tcp::{Exempt, TcpOptions};
use nonesuch_net::tls::IdentitySlot;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Sets level and form of the log.
pub(super) fn set_log(configuration: &Configuration) {
    let level = match configuration.log.level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
        LogLevel::Trace => tracing::Level::TRACE,
    };
    let format = match configuration.log.format {
        LogFormat::Auto => logging::Format::Auto,
        LogFormat::Text => logging::Format::Text,
        LogFormat::Journal => logging::Format::Journal,
        LogFormat::Json => logging::Format::Json,
    };
    logging::configure(level, format);
}

/// What the configuration says of answering. What has not changed since `before` is kept with what it has learned: who has
/// used up what, and a random secret.
pub(super) fn answer_settings(
    configuration: &Configuration,
    before: Option<(&Configuration, &Settings)>,
) -> Result<Settings, String> {
    let server = &configuration.server;
    let reply = ReplySettings {
        nsid: server.nsid.clone().unwrap_or_default(),
        keepalive: u16::try_from(configuration.limits.tcp_idle * 10).unwrap_or(u16::MAX),
        padding_block: server.padding_block,
        report_channel: server.report_channel.clone(),
    };
    reply.check().map_err(|error| error.to_string())?;
    let keys = configuration.keys.clone();
    let kept = before
        .filter(|(old, _)| old.cookies == configuration.cookies)
        .and_then(|(_, now)| now.cookies.clone());
    let cookies = match kept {
        Some(cookies) => Some(cookies),
        None => make_cookies(configuration)?,
    };
    let is_same = |old: &Configuration| limit_settings(old) == limit_settings(configuration);
    let kept = before.filter(|(old, _)| is_same(old)).and_then(|(_, now)| now.limits.clone());
    let limits = match kept {
        Some(limits) => limits,
        None => {
            Arc::new(limits::Limits::new(&limit_settings(configuration)).map_err(|error| error.to_string())?)
        }
    };
    let chaos = Chaos {
        identity: server.identity.clone().or_else(|| server.nsid.clone()),
        version: server.server_version.clone(),
    };
    Ok(Settings { keys, cookies, limits: Some(limits), reply, chaos })
}

fn make_cookies(configuration: &Configuration) -> Result<Option<Cookies>, String> {
    let cookies = &configuration.cookies;
    if cookies.is_off {
        return Ok(None);
    }
    match Cookies::with_secrets(cookies.secrets.clone()) {
        Some(cookies) => Ok(Some(cookies)),
        None => Cookies::random().map(Some).map_err(|error| format!("no random secret for cookies: {error}")),
    }
}

/// What the configuration says of limits.
pub(crate) fn limit_settings(configuration: &Configuration) -> LimitSettings {
    let limits = &configuration.limits;
    let rates = RateSettings {
        nxdomain: limits.nxdomain_responses_per_second,
        referral: limits.referral_responses_per_second,
        all: limits.client_responses_per_second,
        slip: limits.slip,
        table_octets: usize::try_from(limits.response_table).unwrap_or(usize::MAX),
        ..RateSettings::of(limits.responses_per_second)
    };
    let is_limited = [rates.positive, rates.nxdomain, rates.referral, rates.all].iter().any(|rate| *rate > 0);
    LimitSettings {
        responses: is_limited.then_some(rates),
        online: OnlineSettings {
            share: limits.online_share,
            busy_share: limits.online_busy_share,
            when_over: limits.online_over,
        },
        exempt: limits.exempt.clone(),
        require_cookie: configuration.cookies.demand,
    }
}

/// The bounds of connections.
fn tcp_options(limits: &Limits) -> TcpOptions {
    let exempt = limits.exempt.clone();
    TcpOptions::new()
        .connections_max(limits.tcp_connections)
        .connections_per_client(limits.tcp_connections_each)
        .exempt(Exempt::new(move |address| exempt.iter().any(|prefix| prefix.contains(address))))
        .idle_timeout(Duration::from_secs(limits.tcp_idle))
        .first_message_timeout(Duration::from_secs(limits.tcp_first_message))
        .write_timeout(Duration::from_secs(limits.tcp_write))
        .stream_idle_timeout(Duration::from_secs(limits.transfer_out_idle))
        .stream_time_max(Duration::from_secs(limits.transfer_out_time))
        .handshake_timeout(Duration::from_secs(limits.tls_handshake))
        .in_flight_max(limits.tcp_queries_in_flight)
        .memory_max(usize::try_from(limits.tcp_memory).unwrap_or(usize::MAX))
}

/// Where dnstap goes.
pub(super) fn tap_options(configuration: &Configuration) -> Option<TapOptions> {
    let tap = configuration.dnstap.as_ref()?;
    let destination = match &tap.to {
        DnstapTo::Socket(path) => Destination::Socket(path.clone()),
        DnstapTo::File(path) => Destination::File(path.clone()),
    };
    // Not from /proc, which a service may not see all of.
    let host = || nix::unistd::gethostname().map(OsString::into_encoded_bytes).unwrap_or_default();
    Some(TapOptions {
        identity: tap.identity.clone().map_or_else(host, String::into_bytes),
        version: concat!("nonesuch ", env!("CARGO_PKG_VERSION")).as_bytes().to_vec(),
        queries: tap.queries,
        responses: tap.responses,
        queue_octets: usize::try_from(tap.queue).unwrap_or(usize::MAX),
        ..TapOptions::new(destination)
    })
}

/// How many connections may be open at once.
pub(super) fn connections(configuration: &Configuration) -> u64 {
    let server = &configuration.server;
    let addresses = server.listen.len() + server.listen_tls.len();
    configuration.limits.tcp_connections.saturating_mul(addresses) as u64
}

/// Where the server listens, and with what. Signatures are made `clock_shift` seconds ahead of the clock.
pub(super) fn server_options(
    configuration: &Configuration,
    identity: Option<IdentitySlot>,
    clock_shift: u32,
) -> ServerOptions {
    let server = &configuration.server;
    ServerOptions {
        listen: server.listen.clone(),
        listen_tls: server.listen_tls.clone(),
        identity,
        workers: workers(configuration),
        cpus: server.cpus.clone(),
        tcp: tcp_options(&configuration.limits),
        signature_cache: usize::try_from(server.signature_cache).unwrap_or(usize::MAX),
        clock_shift,
    }
}

/// UDP threads of each address.
pub(super) fn workers(configuration: &Configuration) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    configuration.server.workers.unwrap_or_else(cores)
}

/// How zones are had from primaries.
pub(super) fn transfers_options(configuration: &Configuration, heartbeats: Heartbeats) -> TransfersOptions {
    let limits = &configuration.limits;
    TransfersOptions {
        transfers: limits.transfers_in,
        transfers_each: limits.transfers_in_each,
        tls_authorities: configuration.server.tls_authorities.clone(),
        time_limit: Duration::from_secs(limits.transfer_in_time),
        idle_limit: Duration::from_secs(limits.transfer_in_idle),
        heartbeats,
        ..TransfersOptions::default()
    }
}

/// Settings that a running server keeps as they are.
pub(super) fn needs_restart(old: &Started, new: &Configuration) -> Vec<&'static str> {
    let (a, b) = (&old.server, &new.server);
    let tcp = |limits: &Limits| Limits {
        responses_per_second: 0,
        nxdomain_responses_per_second: 0,
        referral_responses_per_second: 0,
        client_responses_per_second: 0,
        slip: 0,
        response_table: 0,
        online_share: 1,
        online_busy_share: 1,
        online_over: WhenOver::Truncate,
        ..limits.clone()
    };
    let changes = [
        ("user", a.user != b.user),
        ("state-dir", a.state_dir != b.state_dir),
        ("listen", a.listen != b.listen),
        ("listen-tls", a.listen_tls != b.listen_tls),
        ("tls-authorities", a.tls_authorities != b.tls_authorities),
        ("workers", a.workers != b.workers),
        ("cpus", a.cpus != b.cpus),
        ("control-socket", a.control_socket != b.control_socket),
        ("control-group", a.control_group != b.control_group),
        ("metrics-listen", a.metrics_listen != b.metrics_listen),
        ("signature-cache", a.signature_cache != b.signature_cache),
        ("load-jobs", a.load_jobs != b.load_jobs),
        ("dnstap", old.dnstap != new.dnstap),
        ("limits of connections and transfers", tcp(&old.limits) != tcp(&new.limits)),
    ];
    changes.iter().filter(|(_, is_other)| *is_other).map(|(key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration that says nothing of connections has the bounds that a server has by itself.
    #[test]
    fn bounds_of_connections_are_those_of_the_server_by_default() {
        let said = |options: &TcpOptions| format!("{options:?}");
        assert_eq!(said(&tcp_options(&Limits::default())), said(&TcpOptions::new()));
    }

    /// What `docs/limits.md` says of a default, in brackets behind the key, is what it is.
    #[test]
    fn the_manual_has_the_defaults() {
        let page = include_str!("../../../../docs/limits.md");
        let limits = Limits::default();
        for (key, value) in [
            ("client-responses-per-second", RateSettings::CLIENT_RATE),
            ("slip", limits.slip.into()),
            ("online-share", limits.online_share.into()),
            ("online-busy-share", limits.online_busy_share.into()),
            ("padding-block", ReplySettings::default().padding_block.into()),
        ] {
            let behind = page.split_once(&format!("`{key}`")).expect(key).1.split_once('(').expect(key).1;
            let said: String =
                behind.chars().filter(|c| *c != ',').take_while(char::is_ascii_digit).collect();
            assert_eq!(said, value.to_string(), "{key}");
        }
    }
}
