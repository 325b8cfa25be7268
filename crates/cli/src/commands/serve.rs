//! `nonesuch serve`.

use super::publish::publish;
use super::serve_configured;
use super::serve_system::{abort_on_panic, check_root};
use crate::Outcome;
use crate::arguments::{ServeArguments, VerifyMode};
use crate::error::Failure;
use crate::files::{counted, input_name, print_line};
use crate::zones;
use arc_swap::ArcSwap;
use nonesuch_authoritative::Published;
use nonesuch_authoritative::cookies::Cookies;
use nonesuch_authoritative::limits::{LimitSettings, Limits};
use nonesuch_authoritative::server::{Server, ServerOptions};
use nonesuch_authoritative::service::FULL;
use nonesuch_authoritative::zones::{ServedZone, ZoneState, Zones};
use nonesuch_authoritative::{Settings, Shared};
use nonesuch_dnssec::facts::{Expiry, ExpiryWatch, alias_keys, is_key_set};
use nonesuch_dnssec::online::OnlineCounters;
use nonesuch_dnssec::verify::{Mode, VerifyWarning};
use nonesuch_dnssec::{Verified, VerifyOptions, into_verified};
use nonesuch_net::udp::UdpCounters;
use nonesuch_proto::Rtype;
use nonesuch_zone::image::Period;
use nonesuch_zone::{Contents, Verification};
use std::sync::Arc;
use std::time::Duration;

/// Most seconds between two looks at the clock.
const LOOK: u32 = 60;

pub(crate) fn run(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    match &arguments.config {
        Some(path) => serve_configured::run(arguments, path),
        None if arguments.check.is_some() => Err(Failure::CheckWithoutConfiguration),
        None => serve_file(arguments),
    }
}

/// Serves one zone, without a configuration.
fn serve_file(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    check_root(None, [arguments.listen])?;
    abort_on_panic();
    let published = publish(arguments)?;
    let serial = published.image().serial();
    let origin = published.image().apex().to_name();
    let workers =
        arguments.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = ServerOptions {
        workers,
        cpus: arguments.cpus.clone(),
        signature_cache: (arguments.online.signature_cache as usize) << 20,
        // With a time given, signatures are made as of that time.
        clock_shift: arguments.now.map_or(0, |now| now.wrapping_sub(zones::now_or(None))),
        ..ServerOptions::new(arguments.listen)
    };
    let is_online = published.is_online();
    let (how, period) = (published.way(), published.image().period());
    warn_of_aliases(arguments, &published);
    let zones = Arc::new(Zones::new());
    let zone = ServedZone::new(published, Arc::default());
    zones.set(&origin, ZoneState::Serving(Arc::new(zone)));
    let shared =
        Shared { settings: Arc::new(ArcSwap::from_pointee(default_settings()?)), ..Shared::new(zones) };
    let server = Server::start(&shared, &options)?;
    let address = server.addresses()[0];
    print_line(&if arguments.json {
        let ready = serde_json::json!({
            "address": address, "zone": origin.to_string(), "serial": serial, "workers": workers, "served": how,
        });
        serde_json::json!({ "ready": ready }).to_string()
    } else {
        format!(
            "ready: listening on {address} (udp, tcp), zone {origin} serial {serial}, {how}, {}",
            counted(workers, "worker")
        )
    })?;
    let now = || zones::now_or(None).wrapping_add(options.clock_shift);
    wait_for_stop(period, now).map_err(Failure::Output)?;
    let (counters, online) = (server.udp_counters(), server.online_counters());
    server.stop()?;
    let online = is_online.then_some(&online);
    if let Some(online) = online {
        tracing::info!("{}", online_words(online));
    }
    print_line(&last_words(&counters, online, arguments.json))?;
    Ok(Outcome::Done)
}

/// What a configuration has without a word: limits, and cookies with a random secret.
fn default_settings() -> Result<Settings, Failure> {
    let limits =
        Limits::new(&LimitSettings::default()).map_err(|error| Failure::Settings(error.to_string()))?;
    let cookies = Cookies::random();
    let cookies =
        cookies.map_err(|error| Failure::Settings(format!("no random secret for cookies: {error}")))?;
    Ok(Settings { cookies: Some(cookies), limits: Some(Arc::new(limits)), ..Settings::default() })
}

fn online_words(online: &OnlineCounters) -> String {
    let operations: Vec<String> =
        online.operations.iter().map(|(operation, times)| format!("{operation}: {times}")).collect();
    format!(
        "signatures: {} hits, {} misses; proofs: {} stored, {} hits, {} misses; {} batches, {} refused, {} failed; cache {} \
         octets; operations: {}",
        online.signature_hits,
        online.signature_misses,
        online.proofs_stored,
        online.proof_hits,
        online.proof_misses,
        online.batches,
        online.refused,
        online.failed,
        online.cache_octets,
        operations.join(", ")
    )
}

fn online_json(online: &OnlineCounters) -> serde_json::Value {
    let operations: serde_json::Map<String, serde_json::Value> =
        online.operations.iter().map(|(operation, times)| (operation.to_string(), (*times).into())).collect();
    serde_json::json!({
        "signature_hits": online.signature_hits, "signature_misses": online.signature_misses,
        "proofs_stored": online.proofs_stored, "proof_hits": online.proof_hits, "proof_misses": online.proof_misses,
        "batches": online.batches, "refused": online.refused, "failed": online.failed,
        "cache_octets": online.cache_octets, "operations": operations,
    })
}

fn last_words(counters: &UdpCounters, online: Option<&OnlineCounters>, json: bool) -> String {
    let errors = counters.receive_errors + counters.send_errors;
    let UdpCounters { datagrams_in, datagrams_out, system_calls, oversized, .. } = counters;
    if json {
        let stopped = serde_json::json!({
            "datagrams_in": datagrams_in, "datagrams_out": datagrams_out, "system_calls": system_calls,
            "oversized": oversized, "errors": errors, "online": online.map(online_json),
        });
        return serde_json::json!({ "stopped": stopped }).to_string();
    }
    let each = *system_calls as f64 / (*datagrams_in).max(1) as f64;
    format!(
        "stopped: {datagrams_in} datagrams in, {datagrams_out} out, {system_calls} system calls ({each:.3} a datagram), \
         {oversized} oversized, {errors} errors"
    )
}

/// Nothing unverified is published: neither a zone with faults nor one of which nobody knows. A compiled zone whose
/// signatures were verified when it was compiled is trusted by its digest so far; that they are valid now is checked.
pub(super) fn verify(
    arguments: &ServeArguments,
    contents: Contents,
    verification: Option<Verification>,
) -> Result<Verified, Failure> {
    let options = verify_options(arguments, &contents, verification.as_ref());
    let verified = into_verified(contents, &options).map_err(|unverified| {
        if is_key_set(&unverified.0) {
            return Failure::OnlyKeySet { path: arguments.file.clone() };
        }
        let faults = &unverified.1.faults;
        Failure::Unverified {
            path: arguments.file.clone(),
            faults: faults.len(),
            first: faults.first().map_or_else(String::new, ToString::to_string),
        }
    })?;
    // Of keys it is said for every way of serving; that names of a zone with NSEC5 are not matched is meant so.
    let is_other = |warning: &&VerifyWarning| {
        !matches!(warning, VerifyWarning::AliasWithoutNsec5 { .. } | VerifyWarning::NamesNotMatched)
    };
    for warning in verified.report().warnings.iter().filter(is_other) {
        tracing::warn!("{}: {warning}", input_name(&arguments.file).display());
    }
    Ok(verified)
}

pub(super) fn verify_options(
    arguments: &ServeArguments,
    contents: &Contents,
    verification: Option<&Verification>,
) -> VerifyOptions {
    let signatures = count_signatures(contents);
    let mode = match arguments.verify {
        VerifyMode::Full => Mode::Full,
        VerifyMode::Structural => Mode::Structural,
        VerifyMode::Auto if matches!(verification, Some(Verification::Full { .. })) => Mode::Structural,
        VerifyMode::Auto if signatures <= FULL => Mode::Full,
        VerifyMode::Auto => Mode::Structural,
    };
    tracing::info!("verifying {} signatures, mode {mode:?}", signatures);
    VerifyOptions { now: Some(zones::now_or(arguments.now)), anchors: Vec::new(), mode }
}

fn count_signatures(contents: &Contents) -> u64 {
    let sets = contents.nodes().flat_map(|node| node.rrsets());
    sets.filter(|rrset| rrset.rtype() == Rtype::RRSIG).map(|rrset| rrset.count() as u64).sum()
}

/// Keys with a number of zones with NSEC5 have resolvers take the zone for insecure, which only NSEC5 is worth.
fn warn_of_aliases(arguments: &ServeArguments, published: &Published) {
    let image = published.image();
    if image.nsec5_key().is_some() {
        return;
    }
    let dnskeys = image.apex_rdatas(Rtype::DNSKEY);
    for key in alias_keys(dnskeys.iter().map(Vec::as_slice)) {
        tracing::warn!(
            "{}: key {} ({}) has a number for zones with NSEC5, and this zone has none: resolvers without NSEC5 take it for \
             insecure",
            arguments.file.display(),
            key.tag,
            key.algorithm
        );
    }
}

/// Waits for SIGTERM or SIGINT. Signatures of the file that come to their end, at the time that `now` tells, are warned of
/// meanwhile.
fn wait_for_stop(period: Option<Period>, now: impl Fn() -> u32) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = watch_expiry(period, now) => {}
        }
        Ok(())
    })
}

/// Warns, for ever, of signatures that come to their end.
async fn watch_expiry(period: Option<Period>, now: impl Fn() -> u32) {
    let Some(period) = period else { return std::future::pending().await };
    let mut watch = ExpiryWatch::default();
    loop {
        if let Some(expiry) = watch.look(period, now()) {
            tracing::warn!("{expiry}");
        }
        // The clock may be set meanwhile, or the machine may sleep.
        let seconds = Expiry::of(period, now()).next_look().min(LOOK);
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    }
}
