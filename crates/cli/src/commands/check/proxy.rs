//! `nonesuch check proxy`.

use super::{Subject, list, run_and_report};
use crate::arguments::CheckProxyArguments;
use crate::commands::query::first_address;
use crate::outcome::CommandOutcome;
use nonesuch_lab::check::proxy::{ProxyCheck, ProxyCheckError, ProxyCheckOptions, items};
use std::net::SocketAddr;

/// Why the check does not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error(
        "name a proxy, for example: nonesuch check proxy 192.0.2.1, or check that of this program with --start-proxy"
    )]
    NoServer,
    Start(#[from] ProxyCheckError),
}

pub(super) fn run(arguments: &CheckProxyArguments) -> Result<CommandOutcome, super::Failure> {
    let options = &arguments.options;
    if options.list {
        return list(items());
    }
    let proxy = arguments.server.as_deref().map(first_address).transpose()?;
    if proxy.is_none() && !arguments.start_proxy {
        return Err(Failure::NoServer.into());
    }
    let rows = options.select(items())?;
    // A proxy that the check starts finds the resolver behind it on any port.
    let port = if arguments.start_proxy { 0 } else { arguments.upstream_listen.port() };
    let mut check = ProxyCheck::start(&ProxyCheckOptions {
        proxy,
        upstream: SocketAddr::new(arguments.upstream_listen.ip(), port),
        wan: arguments.wan,
        faults: arguments.fault.clone(),
        timeout: options.timeout(),
    })
    .map_err(Failure::from)?;
    let subject = Subject { kind: "proxy", name: check.server().to_string() };
    run_and_report(options, subject, &rows, &mut check, |_| Vec::new())
}
