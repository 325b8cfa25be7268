//! `nonesuch serve`.

use super::publish::publish;
use crate::Outcome;
use crate::arguments::{ServeArguments, VerifyMode};
use crate::error::Failure;
use crate::files::print_line;
use crate::zones;
use nonesuch_authoritative::server::{Server, ServerOptions};
use nonesuch_dnssec::verify::Mode;
use nonesuch_dnssec::{Verified, VerifyOptions, into_verified};
use nonesuch_net::udp::UdpCounters;
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, Verification};

/// Signatures up to which `auto` verifies all of them.
pub(super) const FULL: u64 = 100_000;

pub(crate) fn run(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    let published = publish(arguments)?;
    let serial = published.image().serial();
    let origin = published.image().apex().to_name();
    let workers =
        arguments.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = ServerOptions { listen: arguments.listen, workers, cpus: arguments.cpus.clone() };
    let server = Server::start(published, &options)?;
    let address = server.address();
    print_line(&if arguments.json {
        let ready = serde_json::json!({
            "address": address, "zone": origin.to_string(), "serial": serial, "workers": workers,
        });
        serde_json::json!({ "ready": ready }).to_string()
    } else {
        format!("ready: listening on {address} (udp, tcp), zone {origin} serial {serial}, {workers} workers")
    })?;
    wait_for_stop().map_err(Failure::Output)?;
    let counters = server.udp_counters();
    server.stop()?;
    print_line(&last_words(&counters, arguments.json))?;
    Ok(Outcome::Done)
}

fn last_words(counters: &UdpCounters, json: bool) -> String {
    let errors = counters.receive_errors + counters.send_errors;
    let UdpCounters { datagrams_in, datagrams_out, system_calls, oversized, .. } = counters;
    if json {
        let stopped = serde_json::json!({
            "datagrams_in": datagrams_in, "datagrams_out": datagrams_out, "system_calls": system_calls,
            "oversized": oversized, "errors": errors,
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
    let signatures = count_signatures(&contents);
    let mode = match arguments.verify {
        VerifyMode::Full => Mode::Full,
        VerifyMode::Structural => Mode::Structural,
        VerifyMode::Auto if matches!(verification, Some(Verification::Full { .. })) => Mode::Structural,
        VerifyMode::Auto if signatures <= FULL => Mode::Full,
        VerifyMode::Auto => Mode::Structural,
    };
    tracing::info!("verifying {} signatures, mode {mode:?}", signatures);
    let options = VerifyOptions { now: Some(zones::now_or(arguments.now)), anchors: Vec::new(), mode };
    into_verified(contents, &options).map_err(|unverified| {
        let faults = &unverified.1.faults;
        Failure::Unverified {
            path: arguments.file.clone(),
            faults: faults.len(),
            first: faults.first().map_or_else(String::new, ToString::to_string),
        }
    })
}

fn count_signatures(contents: &Contents) -> u64 {
    let sets = contents.nodes().flat_map(|node| node.rrsets());
    sets.filter(|rrset| rrset.rtype() == Rtype::RRSIG).map(|rrset| rrset.count() as u64).sum()
}

/// Waits for SIGTERM or SIGINT.
fn wait_for_stop() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
