//! `nonesuch check proxy`.

use super::{Subject, list, run_and_report};
use crate::arguments::CheckProxyArguments;
use crate::commands::query::first_address;
use crate::outcome::CommandOutcome;
use nonesuch_lab::check::proxy::{
    ProxyCheck, ProxyCheckError, ProxyCheckOptions, ProxyProgram, ProxyTarget, items,
};
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
    let target = target(arguments)?;
    let rows = options.select(items())?;
    // A proxy that the check starts finds the resolver behind it on any port.
    let port = if arguments.start_proxy { 0 } else { arguments.upstream_listen.port() };
    let mut check = ProxyCheck::start(&ProxyCheckOptions {
        target,
        upstream: SocketAddr::new(arguments.upstream_listen.ip(), port),
        wan: arguments.wan,
        timeout: options.timeout(),
    })
    .map_err(Failure::from)?;
    let server = check.server();
    let name = match &arguments.program {
        Some(program) => format!("{} ({server})", program.display()),
        None => server.to_string(),
    };
    run_and_report(options, Subject { kind: "proxy", name }, &rows, &mut check, |_| Vec::new())
}

/// The proxy that the arguments name.
fn target(arguments: &CheckProxyArguments) -> Result<ProxyTarget, super::Failure> {
    match (&arguments.server, &arguments.program) {
        (Some(server), _) => Ok(ProxyTarget::Running(first_address(server)?)),
        (None, Some(program)) => Ok(ProxyTarget::Program(ProxyProgram {
            program: program.clone(),
            arguments: arguments.arguments.clone(),
        })),
        (None, None) if arguments.start_proxy => Ok(ProxyTarget::Own(arguments.fault.clone())),
        (None, None) => Err(Failure::NoServer.into()),
    }
}
