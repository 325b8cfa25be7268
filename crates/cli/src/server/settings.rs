//! Converts a configuration to the settings of the server's parts: answers, listeners, transfers
//! and log.

use crate::config::{Configuration, DnstapDestination, Limits};
use crate::logging;
use nonesuch_authoritative::AnswerSettings;
use nonesuch_authoritative::chaos::Chaos;
use nonesuch_authoritative::server::ServerOptions;
use nonesuch_net::Heartbeats;
use nonesuch_net::tcp::{ExemptClients, TcpOptions};
use nonesuch_net::tls::IdentitySlot;
use nonesuch_secondary::TransfersOptions;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::dnstap::{Destination, DnstapOptions};
use nonesuch_server::limits::{self, LimitError, LimitSettings, OnlineSettings, RateSettings};
use nonesuch_server::reply_options::{ReplySettings, ReplySettingsError};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Why the settings for answers cannot be created from the configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SettingsError {
    #[error(transparent)]
    Reply(#[from] ReplySettingsError),
    #[error(transparent)]
    Limits(#[from] LimitError),
    #[error("cannot generate a random secret for cookies: {0}")]
    Cookies(getrandom::Error),
}

/// Sets the level and the format of the log.
pub(crate) fn set_log(configuration: &Configuration) {
    logging::configure(configuration.log.level, configuration.log.format);
}

/// The configuration that a server runs with, and the settings derived from it.
#[derive(Clone, Copy)]
pub(crate) struct ConfigurationInUse<'a> {
    pub(crate) configuration: &'a Configuration,
    pub(crate) settings: &'a AnswerSettings,
}

/// The settings for answers. If the limits or the cookies do not differ from `previous`, they keep
/// their state: the counters of rate limiting, or the random secret. `previous` is `None` at the
/// start.
///
/// # Errors
/// A setting is out of range, or the system provides no random secret.
pub(crate) fn answer_settings(
    configuration: &Configuration,
    previous: Option<ConfigurationInUse<'_>>,
) -> Result<AnswerSettings, SettingsError> {
    let server = &configuration.server;
    let reply = ReplySettings {
        nsid: server.nsid.clone().unwrap_or_default(),
        keepalive: u16::try_from(configuration.limits.tcp_idle * 10).unwrap_or(u16::MAX),
        padding_block: server.tls.padding_block,
        report_channel: server.report_channel.clone(),
        max_udp_size: server.max_udp_size,
    };
    reply.check()?;
    let keys = configuration.keys.clone();
    let same_cookies =
        |previous: &ConfigurationInUse<'_>| previous.configuration.cookies == configuration.cookies;
    let reused = previous.filter(same_cookies).and_then(|previous| previous.settings.cookies.clone());
    let cookies = match reused {
        Some(cookies) => Some(cookies),
        None => create_cookies(configuration)?,
    };
    let same_limits = |previous: &ConfigurationInUse<'_>| {
        limit_settings(previous.configuration) == limit_settings(configuration)
    };
    let reused = previous.filter(same_limits).and_then(|previous| previous.settings.limits.clone());
    let limits = match reused {
        Some(limits) => limits,
        None => Arc::new(limits::Limits::new(&limit_settings(configuration))?),
    };
    let chaos = Chaos {
        identity: server.identity.clone().or_else(|| server.nsid.clone()),
        version: server.server_version.clone(),
    };
    let counts_zone_queries = server.metrics_listen.is_some() && server.metrics_zone_queries;
    Ok(AnswerSettings { tsig_keys: keys, cookies, limits: Some(limits), reply, counts_zone_queries, chaos })
}

fn create_cookies(configuration: &Configuration) -> Result<Option<Cookies>, SettingsError> {
    let cookies = &configuration.cookies;
    if cookies.is_disabled {
        return Ok(None);
    }
    match Cookies::with_secrets(cookies.secrets.clone()) {
        Some(cookies) => Ok(Some(cookies)),
        None => Cookies::random().map(Some).map_err(SettingsError::Cookies),
    }
}

/// The settings of rate limiting, online work and cookies for queries.
pub(crate) fn limit_settings(configuration: &Configuration) -> LimitSettings {
    let limits = &configuration.limits;
    let rates = RateSettings {
        nxdomain: limits.nxdomain_responses_per_second,
        referral: limits.referral_responses_per_second,
        all: limits.client_responses_per_second,
        slip: limits.slip,
        table_octets: usize::try_from(limits.response_table).unwrap_or(usize::MAX),
        ..RateSettings::uniform(limits.responses_per_second)
    };
    let has_rate_limit =
        [rates.positive, rates.nxdomain, rates.referral, rates.all].iter().any(|rate| *rate > 0);
    LimitSettings {
        responses: has_rate_limit.then_some(rates),
        online: OnlineSettings {
            share: limits.online_share,
            busy_share: limits.online_busy_share,
            over_budget_action: limits.online_over,
        },
        exempt: limits.exempt.clone(),
        require_cookie: configuration.cookies.require,
    }
}

/// The limits of connections over TCP and TLS to one listen address.
fn tcp_options(limits: &Limits) -> TcpOptions {
    let exempt = limits.exempt.clone();
    TcpOptions {
        connections_max: limits.tcp_connections,
        connections_per_client: limits.tcp_connections_each,
        exempt: ExemptClients::new(move |address| exempt.iter().any(|prefix| prefix.contains(address))),
        idle_timeout: Duration::from_secs(limits.tcp_idle),
        first_message_timeout: Duration::from_secs(limits.tcp_first_message),
        write_timeout: Duration::from_secs(limits.tcp_write),
        stream_idle_timeout: Duration::from_secs(limits.transfer_out_idle),
        stream_time_max: Duration::from_secs(limits.transfer_out_time),
        handshake_timeout: Duration::from_secs(limits.tls_handshake),
        in_flight_max: limits.tcp_queries_in_flight,
        memory_max: usize::try_from(limits.tcp_memory).unwrap_or(usize::MAX),
        ..TcpOptions::default()
    }
}

/// The destination and content of dnstap; `None` without dnstap.
pub(crate) fn dnstap_options(configuration: &Configuration) -> Option<DnstapOptions> {
    let tap = configuration.dnstap.as_ref()?;
    let destination = match &tap.destination {
        DnstapDestination::Socket(path) => Destination::Socket(path.clone()),
        DnstapDestination::File(path) => Destination::File(path.clone()),
    };
    // gethostname(2), because /proc may be hidden from a service.
    let host = || nix::unistd::gethostname().map(OsString::into_encoded_bytes).unwrap_or_default();
    Some(DnstapOptions {
        identity: tap.identity.clone().map_or_else(host, String::into_bytes),
        version: concat!("nonesuch ", env!("CARGO_PKG_VERSION")).as_bytes().to_vec(),
        queries: tap.queries,
        responses: tap.responses,
        queue_octets: usize::try_from(tap.queue).unwrap_or(usize::MAX),
        ..DnstapOptions::new(destination)
    })
}

/// Maximum number of open connections over TCP and TLS at all listen addresses.
pub(crate) fn max_connections(configuration: &Configuration) -> u64 {
    let server = &configuration.server;
    let addresses = server.listen.len() + server.tls.listen.len();
    configuration.limits.tcp_connections.saturating_mul(addresses) as u64
}

/// The listen addresses and options of the server. Signatures are generated for a time
/// `clock_shift` seconds ahead of the clock.
pub(crate) fn server_options(
    configuration: &Configuration,
    identity: Option<IdentitySlot>,
    clock_shift: u32,
) -> ServerOptions {
    let server = &configuration.server;
    ServerOptions {
        listen: server.listen.clone(),
        listen_tls: server.tls.listen.clone(),
        tls_identity: identity,
        workers: workers(configuration),
        cpus: server.cpus.clone(),
        tcp: tcp_options(&configuration.limits),
        signature_cache_octets: usize::try_from(server.signature_cache).unwrap_or(usize::MAX),
        clock_shift,
    }
}

/// Number of UDP workers of each address.
pub(crate) fn workers(configuration: &Configuration) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    configuration.server.workers.unwrap_or_else(cores)
}

/// Options of transfers from primaries.
pub(crate) fn transfers_options(configuration: &Configuration, heartbeats: Heartbeats) -> TransfersOptions {
    let limits = &configuration.limits;
    TransfersOptions {
        transfers: limits.transfers_in,
        transfers_per_primary: limits.transfers_in_each,
        tls_authorities: configuration.server.tls_authorities.clone(),
        time_limit: Duration::from_secs(limits.transfer_in_time),
        idle_limit: Duration::from_secs(limits.transfer_in_idle),
        heartbeats,
        ..TransfersOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_server::reply_options::DEFAULT_UDP_SIZE;

    /// A configuration without connection limits has the defaults of the server.
    #[test]
    fn limits_of_connections_have_the_defaults_of_the_server() {
        let text = |options: &TcpOptions| format!("{options:?}");
        assert_eq!(text(&tcp_options(&Limits::defaults())), text(&TcpOptions::default()));
    }

    /// A default in parentheses after a key in `docs/limits.md` equals the actual default.
    #[test]
    fn the_manual_has_the_defaults() {
        let page = include_str!("../../../../docs/limits.md");
        let limits = Limits::defaults();
        for (key, value) in [
            ("client-responses-per-second", RateSettings::DEFAULT_CLIENT_RATE),
            ("slip", limits.slip.into()),
            ("online-share", limits.online_share.into()),
            ("online-busy-share", limits.online_busy_share.into()),
            ("padding-block", ReplySettings::default().padding_block.into()),
            ("max-udp-size", DEFAULT_UDP_SIZE.into()),
        ] {
            let text_after_key =
                page.split_once(&format!("`{key}`")).expect(key).1.split_once('(').expect(key).1;
            let text: String =
                text_after_key.chars().filter(|c| *c != ',').take_while(char::is_ascii_digit).collect();
            assert_eq!(text, value.to_string(), "{key}");
        }
    }
}
