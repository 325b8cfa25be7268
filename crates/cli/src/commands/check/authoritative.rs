//! `nonesuch check authoritative`.

use super::{Subject, list, run_and_report};
use crate::arguments::CheckAuthoritativeArguments;
use crate::commands::query::{TsigSigner, first_address};
use crate::files::print_summary;
use crate::outcome::CommandOutcome;
use crate::zones::{read_anchors, time_or_now};
use nonesuch_lab::check::authoritative::test_zone::{TestZoneError, write_test_zones};
use nonesuch_lab::check::authoritative::{Authoritative, AuthoritativeOptions, Signer, StartError, items};
use std::path::Path;

/// Why the check does not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("name a server and a zone, for example: nonesuch check authoritative 192.0.2.53 --zone example.")]
    NoServer,
    Start(#[from] StartError),
    TestZones(#[from] TestZoneError),
}

pub(super) fn run(arguments: &CheckAuthoritativeArguments) -> Result<CommandOutcome, super::Failure> {
    let options = &arguments.options;
    if options.list {
        return list(items());
    }
    if let Some(out) = &arguments.write_test_zones {
        return write_zones(arguments, out);
    }
    let (Some(server), Some(zone)) = (&arguments.server, &arguments.zone) else {
        return Err(Failure::NoServer.into());
    };
    let rows = options.select(items())?;
    let anchors = arguments.anchor.as_deref().map(|path| read_anchors(path, zone)).transpose()?;
    let server = first_address(server)?;
    let mut context = Authoritative::start(AuthoritativeOptions {
        server,
        zone: zone.clone(),
        timeout: options.timeout(),
        now: time_or_now(arguments.now),
        anchors: anchors.unwrap_or_default(),
        signer: arguments.tsig_key.as_deref().map(signer).transpose()?,
    })
    .map_err(Failure::from)?;
    let subject = Subject { kind: "authoritative server", name: server.to_string() };
    run_and_report(options, subject, &rows, &mut context, Authoritative::facts)
}

/// The TSIG key of an argument as the signer of the check.
fn signer(key: &str) -> Result<Signer, super::Failure> {
    let signer = TsigSigner::read(key)?;
    Ok(Box::new(move |query| {
        let mut verifier = Some(signer.sign(query));
        Box::new(move |message, is_last| {
            let mut checked = verifier.as_mut().map_or(Ok(()), |verifier| verifier.verify(message));
            if is_last && checked.is_ok() {
                checked = verifier.take().map_or(Ok(()), |verifier| verifier.finish());
            }
            checked.map_err(|fault| fault.to_string())
        })
    }))
}

fn write_zones(
    arguments: &CheckAuthoritativeArguments,
    out: &Path,
) -> Result<CommandOutcome, super::Failure> {
    write_test_zones(out, &arguments.origin, time_or_now(arguments.now)).map_err(Failure::from)?;
    print_summary(&format!(
        "{}: test zones below {}: load one of zones/, and check it with --zone",
        out.display(),
        arguments.origin
    ))?;
    Ok(CommandOutcome::Done)
}
