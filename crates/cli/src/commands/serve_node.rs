//! A running server with all that belongs to it: what signals and the control socket act on.

use super::serve_control::no_zone;
use super::serve_system::Notifier;
use crate::config::certificate::warn_of_expiry;
use crate::config::{self, Configuration, CookieDemand, DnstapTo, Limits, LogFormat, LogLevel, OverBudget};
use crate::files::counted;
use crate::logging;
use crate::metrics::{Snapshot, ZoneRow};
use crate::zones::now_or;
use nonesuch_authoritative::chaos::Chaos;
use nonesuch_authoritative::cookies::Cookies;
use nonesuch_authoritative::limits::{
    self, LimitSettings, OnlineSettings, RateSettings, RequireCookie, WhenOver,
};
use nonesuch_authoritative::notify;
use nonesuch_authoritative::reply_options::ReplySettings;
use nonesuch_authoritative::secondary::{Counts, Transfers};
use nonesuch_authoritative::server::Server;
use nonesuch_authoritative::service::{ActivityStatus, Service, Source};
use nonesuch_authoritative::statistics::{Direction, TransferKind, TransferResult, TransferSum};
use nonesuch_authoritative::tap::{Destination, TapOptions};
use nonesuch_authoritative::{Settings, Shared};
use nonesuch_net::tcp::{Exempt, TcpOptions};
use nonesuch_net::tls::IdentitySlot;
use nonesuch_proto::Name;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a running server is made of.
pub(super) struct Node {
    /// The configuration's file.
    pub(super) path: PathBuf,
    /// The configuration that is in force.
    pub(super) configuration: Mutex<Configuration>,
    pub(super) service: Arc<Service>,
    pub(super) shared: Shared,
    pub(super) transfers: Arc<Transfers>,
    pub(super) identity: Option<IdentitySlot>,
    pub(super) server: Mutex<Option<Server>>,
    pub(super) notifier: Notifier,
    pub(super) stop: Notify,
    /// Held by the reload that goes on: the next one reads the configuration after it, so that the newest one stays.
    pub(super) reloading: Mutex<()>,
    pub(super) begun: Instant,
}

impl Node {
    fn configuration(&self) -> MutexGuard<'_, Configuration> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the server stop.
    pub(super) fn ask_to_stop(&self) {
        self.stop.notify_one();
    }

    /// Reads the configuration again and does what it says; a faulty one is refused as a whole. While the server starts, and
    /// while another reload goes on, it waits.
    pub(super) fn reload(&self) -> Result<Value, String> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.service.wait();
        self.notifier.reloading();
        let outcome = self.reload_all();
        match &outcome {
            Ok(_) => {}
            Err(problems) => {
                tracing::error!("the configuration is refused, the one of before stays:\n{problems}")
            }
        }
        self.notifier.ready(&self.words());
        outcome
    }

    fn reload_all(&self) -> Result<Value, String> {
        let read = config::load(&self.path).map_err(|problems| problems.to_string())?;
        for warning in &read.warnings {
            tracing::warn!("{warning}");
        }
        let new = read.configuration;
        let identity = match (&self.identity, &new.server.tls) {
            (Some(slot), Some(_)) => {
                let identity = config::load_identity(&new, &read.sources);
                identity.map_err(|problems| problems.to_string())?.map(|identity| (slot, identity))
            }
            _ => None,
        };
        let mut current = self.configuration();
        let settings = answer_settings(&new, Some((&current, &self.shared.settings.load())))?;
        // From here on nothing is refused.
        let restart = needs_restart(&current, &new);
        if !restart.is_empty() {
            tracing::warn!("changes of {} take effect when the server is started again", restart.join(", "));
        }
        set_log(&new);
        self.shared.settings.store(Arc::new(settings));
        if let Some((slot, identity)) = identity {
            slot.replace(identity);
        }
        if let Some(tap) = &self.shared.tap {
            tap.reopen();
        }
        let service_settings = new.service_settings();
        *current = new;
        drop(current);
        self.warn_of_certificate();
        let report = self.service.reload(service_settings);
        let mut report = serde_json::to_value(report).unwrap_or_default();
        report["needs_restart"] = json!(restart);
        Ok(report)
    }

    /// What goes on.
    pub(super) fn activities(&self) -> Vec<ActivityStatus> {
        self.service.activities().list()
    }

    /// Warns of a certificate that has expired, or soon will.
    pub(super) fn warn_of_certificate(&self) {
        let files = self.configuration().server.tls.clone();
        if let Some(said) = files.and_then(|files| warn_of_expiry(&files.certificate, jiff::Timestamp::now()))
        {
            tracing::warn!("{said}");
        }
    }

    /// Loads one zone again.
    pub(super) fn reload_zone(&self, apex: &Name) -> Result<Value, String> {
        let is_secondary =
            self.service.settings_of(apex).is_some_and(|settings| settings.source == Source::Primaries);
        if is_secondary {
            return self.refresh(apex, false);
        }
        let updated = self.service.reload_zone(apex).map_err(|refused| format!("zone {apex}: {refused}"))?;
        // What was odd about the version that stays was said when it came.
        let warnings = if updated { self.service.warnings(apex) } else { Vec::new() };
        Ok(json!({ "zone": apex.to_string(), "updated": updated, "warnings": warnings }))
    }

    /// Asks the primaries of a zone, or transfers all of it.
    pub(super) fn refresh(&self, apex: &Name, is_whole: bool) -> Result<Value, String> {
        let settings = self.service.settings_of(apex).ok_or_else(|| no_zone(apex))?;
        if settings.source != Source::Primaries {
            return Err(format!(
                "zone {apex} has no primaries: `nonesuch ctl reload {apex}` reads its file again"
            ));
        }
        if is_whole {
            self.transfers.retransfer(apex);
        } else {
            self.transfers.refresh(apex);
        }
        Ok(json!({ "zone": apex.to_string(), "asked": true }))
    }

    /// Removes what is kept of a zone that is not there.
    pub(super) fn purge_zone(&self, apex: &Name) -> Result<Value, String> {
        self.service.purge_zone(apex).map_err(|error| error.to_string())?;
        tracing::info!(zone = apex.to_string(), "zone {apex}: what was kept of it is removed");
        Ok(json!({ "zone": apex.to_string(), "purged": true }))
    }

    /// Removes what is kept of all zones that are not there.
    pub(super) fn purge_all(&self) -> Result<Value, String> {
        let purged = self.service.purge_all().map_err(|error| error.to_string())?;
        tracing::info!(
            "what was kept of zones that are not there is removed: {}",
            counted(purged.len(), "zone")
        );
        Ok(json!({ "purged": purged }))
    }

    /// What is told of the server.
    pub(super) fn status(&self) -> Value {
        let configuration = self.configuration();
        let (listen, socket) =
            (configuration.server.listen.clone(), configuration.server.control_socket.clone());
        drop(configuration);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let (addresses, tls) = server.as_ref().map_or((listen, Vec::new()), |server| {
            (server.addresses().to_vec(), server.tls_addresses().to_vec())
        });
        let counters = server.as_ref().map(Server::udp_counters).unwrap_or_default();
        drop(server);
        let mut status = serde_json::to_value(self.service.status()).unwrap_or_default();
        status["version"] = json!(env!("CARGO_PKG_VERSION"));
        status["pid"] = json!(std::process::id());
        status["up_seconds"] = json!(self.begun.elapsed().as_secs());
        status["configuration"] = json!(self.path);
        status["control_socket"] = json!(socket);
        status["listen"] = json!(addresses);
        status["listen_tls"] = json!(tls);
        status["datagrams_in"] = json!(counters.datagrams_in);
        status["datagrams_out"] = json!(counters.datagrams_out);
        status["transfers_in"] = self.transfers_in();
        status["transfers_out"] = self.transfers_out();
        status
    }

    /// Transfers from primaries that are under way.
    fn transfers_in(&self) -> Value {
        let zones = self.transfers.status();
        let under_way = zones.iter().filter_map(|zone| {
            let transfer = zone.transfer.as_ref()?;
            Some(json!({
                "zone": zone.apex.to_string(), "primary": zone.primary, "octets": transfer.octets,
                "records": transfer.records, "since": transfer.since,
            }))
        });
        Value::Array(under_way.collect())
    }

    /// Transfers to secondaries that are under way.
    fn transfers_out(&self) -> Value {
        let under_way = self.shared.outgoing.status();
        let shown = under_way.iter().map(|transfer| {
            json!({
                "zone": transfer.zone.to_string(), "client": transfer.client.to_string(), "octets": transfer.octets,
                "messages": transfer.messages, "records": transfer.records,
            })
        });
        Value::Array(shown.collect())
    }

    /// What is told of one zone, or of all.
    pub(super) fn zone_status(&self, apex: Option<&Name>) -> Vec<Value> {
        let transfers = self.transfers.status();
        let transfers: HashMap<String, _> =
            transfers.iter().map(|zone| (zone.apex.to_string(), zone)).collect();
        let statuses = self.service.zone_status(apex);
        let shown = statuses.into_iter().map(|status| {
            let transfer = transfers.get(&status.zone);
            let mut shown = serde_json::to_value(status).unwrap_or_default();
            if let Some(zone) = transfer {
                shown["primary"] = json!(zone.primary);
                shown["refreshed"] = json!(zone.refreshed);
                shown["next_refresh"] = json!(zone.next);
                shown["expires"] = json!(zone.expires);
                shown["transfer_error"] = json!(zone.last_error);
            }
            shown
        });
        shown.collect()
    }

    /// The state of the server in a line.
    pub(super) fn words(&self) -> String {
        let status = self.service.status();
        format!(
            "{} served, {} waiting, {} failed",
            counted(status.serving, "zone"),
            status.not_ready + status.expired,
            status.failed
        )
    }

    /// The numbers for the metrics.
    pub(super) fn snapshot(&self) -> Snapshot {
        let zones = self.service.zone_status(None);
        let rows = zones.into_iter().map(|status| ZoneRow {
            state: status.state.word(),
            serial: status.serial,
            loaded_at: status.loaded_at,
            nearest_expiration: status.nearest_expiration.map(u64::from),
            records: status.records,
            zone: status.zone,
        });
        let mut statistics = self.shared.statistics.sum();
        add_incoming(&self.transfers.counts(), &mut statistics.transfers);
        let refused = statistics.refused(notify::OPCODE);
        statistics.transfers.add_notifies(Direction::In, false, refused);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let server = server.as_ref();
        Snapshot {
            statistics,
            online: server.map(Server::online_counters).unwrap_or_default(),
            udp: server.map(Server::udp_counters).unwrap_or_default(),
            tcp: server.map(Server::tcp_counters).unwrap_or_default(),
            tls: server.and_then(Server::tls_counters),
            tap: self.shared.tap.as_ref().map(|tap| tap.counters()),
            zones: rows.collect(),
            most_zones: self.configuration().server.metrics_zones,
            now: u64::from(now_or(None)),
        }
    }
}

/// Adds what came of transfers from primaries, and of NOTIFY.
fn add_incoming(counts: &Counts, sum: &mut TransferSum) {
    for (kind, result, times) in [
        (TransferKind::Axfr, TransferResult::Done, counts.axfr),
        (TransferKind::Ixfr, TransferResult::Done, counts.ixfr),
        (TransferKind::Any, TransferResult::UpToDate, counts.up_to_date),
        (TransferKind::Any, TransferResult::Refused, counts.refused),
        (TransferKind::Any, TransferResult::Failed, counts.failed),
    ] {
        sum.add(Direction::In, kind, result, times);
    }
    if counts.octets > 0 {
        sum.octets.insert(Direction::In, counts.octets);
    }
    sum.add_notifies(Direction::In, true, counts.notified);
    sum.add_notifies(Direction::Out, true, counts.acknowledged);
    sum.add_notifies(Direction::Out, false, counts.unheard);
}

/// Settings that a running server keeps as they are.
fn needs_restart(old: &Configuration, new: &Configuration) -> Vec<&'static str> {
    let (a, b) = (&old.server, &new.server);
    let tcp = |limits: &Limits| Limits {
        responses_per_second: 0,
        client_responses_per_second: 0,
        slip: 0,
        response_table: 0,
        online_operations: 0,
        online_proven_factor: 1,
        online_share: 1,
        online_busy_share: 1,
        online_over: OverBudget::Truncate,
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
        all: limits.client_responses_per_second,
        slip: limits.slip,
        table_octets: usize::try_from(limits.response_table).unwrap_or(usize::MAX),
        ..RateSettings::of(limits.responses_per_second)
    };
    let is_limited = limits.responses_per_second > 0 || limits.client_responses_per_second > 0;
    LimitSettings {
        responses: is_limited.then_some(rates),
        online: OnlineSettings {
            operations: limits.online_operations,
            proven_factor: limits.online_proven_factor,
            share: limits.online_share,
            busy_share: limits.online_busy_share,
            when_over: match limits.online_over {
                OverBudget::Truncate => WhenOver::Truncate,
                OverBudget::Refuse => WhenOver::Refuse,
            },
            ..OnlineSettings::default()
        },
        exempt: limits.exempt.clone(),
        require_cookie: match configuration.cookies.demand {
            CookieDemand::Never => RequireCookie::Never,
            CookieDemand::WhenLimited => RequireCookie::WhenLimited,
        },
    }
}

/// The bounds of connections.
pub(super) fn tcp_options(limits: &Limits) -> TcpOptions {
    let exempt = limits.exempt.clone();
    TcpOptions::new()
        .connections_max(limits.tcp_connections)
        .connections_per_client(limits.tcp_connections_each)
        .exempt(Exempt::new(move |address| exempt.iter().any(|prefix| prefix.contains(address))))
        .idle_timeout(Duration::from_secs(limits.tcp_idle))
        .first_message_timeout(Duration::from_secs(limits.tcp_first_message))
        .write_timeout(Duration::from_secs(limits.tcp_write))
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
