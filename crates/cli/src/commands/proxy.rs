//! `nonesuch proxy`: a transparent DNS proxy, correct or with known faults.

use crate::arguments::ProxyArguments;
use crate::files::{FileError, print_line};
use crate::outcome::CommandOutcome;
use nonesuch_lab::proxy::{FAULTS, Proxy, ProxyError, ProxyOptions};
use std::time::Duration;

/// Why `nonesuch proxy` fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Proxy(#[from] ProxyError),
}

pub(crate) fn run(arguments: &ProxyArguments) -> Result<CommandOutcome, Failure> {
    let Some(upstream) = arguments.upstream.filter(|_| !arguments.list_faults) else {
        print_line(&list_faults(arguments.json))?;
        return Ok(CommandOutcome::Done);
    };
    let proxy = Proxy::start(&ProxyOptions {
        faults: arguments.fault.clone(),
        wan: arguments.wan,
        in_flight: arguments.in_flight.into(),
        connections: arguments.connections.into(),
        // The arguments limit the value.
        timeout: Duration::from_secs_f64(arguments.timeout),
        ..ProxyOptions::new(arguments.listen, upstream)
    })?;
    let names: Vec<&str> = arguments.fault.iter().map(|fault| fault.entry().name).collect();
    let address = proxy.address();
    let line = if arguments.json {
        serde_json::json!({ "ready": { "address": address, "upstream": upstream, "faults": names } })
            .to_string()
    } else {
        let faults = if names.is_empty() { String::new() } else { format!("; faults: {}", names.join(", ")) };
        format!("ready: listening on {address} (udp, tcp), forwarding to {upstream}{faults}")
    };
    print_line(&line)?;
    loop {
        std::thread::park();
    }
}

fn list_faults(json: bool) -> String {
    if json {
        let row = |entry: &nonesuch_lab::proxy::FaultEntry| serde_json::json!({ "fault": entry.name, "items": entry.items, "effect": entry.effect });
        return serde_json::json!(FAULTS.iter().map(row).collect::<Vec<_>>()).to_string();
    }
    let line = |entry: &nonesuch_lab::proxy::FaultEntry| {
        format!("{:<22} {} ({})", entry.name, entry.effect, entry.items)
    };
    FAULTS.iter().map(line).collect::<Vec<_>>().join("\n")
}
