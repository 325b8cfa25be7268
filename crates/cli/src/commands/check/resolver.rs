//! `nonesuch check resolver`.

use super::{Subject, list, run_and_report};
use crate::arguments::CheckResolverArguments;
use crate::commands::query::first_address;
use crate::files::{FileError, print_line, print_summary, write_failure, write_output};
use crate::outcome::CommandOutcome;
use crate::zones::time_or_now;
use nonesuch_lab::check::resolver::{
    Place, ProgramOptions, ResolverCheck, ResolverOptions, StartError, Target, configuration, delegation,
    items,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Why the check does not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("name a resolver, for example: nonesuch check resolver 127.0.0.1:5300")]
    NoServer,
    #[error("{0} already exists: name a new directory")]
    Exists(String),
    File(#[from] FileError),
    #[error("cannot find the program nonesuch: {0}")]
    Program(std::io::Error),
    Start(#[from] StartError),
}

pub(super) fn run(arguments: &CheckResolverArguments) -> Result<CommandOutcome, super::Failure> {
    let options = &arguments.options;
    if options.list {
        return list(items());
    }
    // The configuration does not depend on the resolver.
    let unknown = Target::Running(SocketAddr::from((Ipv4Addr::LOCALHOST, 53)));
    if arguments.print_delegation {
        let text = delegation(&resolver_options(arguments, unknown)).map_err(Failure::from)?;
        print_line(text.trim_end_matches('\n'))?;
        return Ok(CommandOutcome::Done);
    }
    if let Some(directory) = &arguments.write_configuration {
        write_configuration(arguments, &resolver_options(arguments, unknown), directory)?;
        return Ok(CommandOutcome::Done);
    }
    let rows = options.select(items())?;
    let target = match (&arguments.server, arguments.program) {
        (_, Some(kind)) => Target::Program(ProgramOptions {
            kind,
            nonesuch: std::env::current_exe().map_err(Failure::Program)?,
            udp_octets: arguments.program_udp_size,
        }),
        (Some(server), None) => Target::Running(first_address(server)?),
        (None, None) => return Err(Failure::NoServer.into()),
    };
    let mut check = ResolverCheck::start(&resolver_options(arguments, target)).map_err(Failure::from)?;
    let server = check.server();
    let name =
        arguments.program.map_or_else(|| server.to_string(), |kind| format!("{} ({server})", kind.name()));
    let subject = Subject { kind: "resolver", name };
    run_and_report(options, subject, &rows, &mut check, ResolverCheck::facts)
}

fn resolver_options(arguments: &CheckResolverArguments, target: Target) -> ResolverOptions {
    let port = arguments.tree_port;
    let place = match &arguments.delegated {
        Some(zone) => {
            Place::Delegated { zone: zone.view().to_canonical(), listen: arguments.tree_listen.clone(), port }
        }
        None => Place::Local { root: arguments.tree_address, port },
    };
    let now = time_or_now(arguments.now).into();
    ResolverOptions { target, timeout: arguments.options.timeout(), place, seed: arguments.seed, now }
}

fn write_configuration(
    arguments: &CheckResolverArguments,
    options: &ResolverOptions,
    directory: &Path,
) -> Result<(), Failure> {
    let files = configuration(options, arguments.kind)?;
    std::fs::create_dir(directory).map_err(|_| Failure::Exists(directory.display().to_string()))?;
    for (name, text) in files {
        let path = directory.join(name);
        write_output(&path, 0o644, |out| out.write_all(text.as_bytes()).map_err(write_failure(&path)))?;
    }
    print_summary(&format!(
        "{}: include these files in the configuration of the resolver, and start it",
        directory.display()
    ))?;
    Ok(())
}
