//! `nonesuch check zone`.

use super::{Subject, list, outcome, run_with_progress, write_report, write_text};
use crate::arguments::CheckZoneArguments;
use crate::commands::query::system_servers;
use crate::files::check_writable;
use crate::hints::read_hints;
use crate::outcome::CommandOutcome;
use crate::progress;
use crate::server::resolver::ResolveError;
use crate::trust_anchors::trust_anchors;
use crate::zones::time_or_now;
use nonesuch_lab::check::PictureError;
use nonesuch_lab::check::zone::{Source, TrustAnchor, Undelegated, ZoneCheckOptions, ZoneContext, items};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::trust_anchors::{AnchorRecord, TrustAnchors};
use nonesuch_zone::read::{ReadError, read_records};
use std::net::IpAddr;
use std::path::Path;

/// Attempts of a query over UDP: a datagram may be lost.
const ATTEMPTS: u32 = 2;

/// Why the check does not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("name a zone, for example: nonesuch check zone example.com")]
    NoZone,
    #[error("--ns {0}: the nameserver is in the zone: give its address, for example --ns {0}/192.0.2.1")]
    NoAddress(Name),
    #[error("--ds '{text}': not a DS record: {source}; give key tag, algorithm, digest type and digest")]
    Ds {
        text: String,
        source: ReadError,
    },
    #[error("--ds '{0}': not a DS record: give key tag, algorithm, digest type and digest")]
    NotOneDs(String),
    Resolve(#[from] ResolveError),
    Picture(#[from] PictureError),
}

pub(super) fn run(arguments: &CheckZoneArguments) -> Result<CommandOutcome, super::Failure> {
    let options = &arguments.options;
    if options.list {
        return list(items());
    }
    let Some(zone) = &arguments.zone else { return Err(Failure::NoZone.into()) };
    let rows = options.select(items())?;
    if let Some(path) = &arguments.svg {
        check_writable(path)?;
    }
    let undelegated = undelegated(arguments, zone)?;
    let check = ZoneCheckOptions {
        zone: zone.clone(),
        source: source(arguments, undelegated.as_ref())?,
        undelegated,
        anchors: anchors(arguments)?,
        port: arguments.port,
        timeout: options.timeout(),
        attempts: ATTEMPTS,
        rate: arguments.rate,
        now: time_or_now(arguments.now),
    };
    let spinner = progress::spinner("finding the servers");
    let mut context = ZoneContext::new(check);
    spinner.finish_and_clear();
    let subject = Subject { kind: "zone", name: zone.to_string() };
    let report = run_with_progress(options, subject, &rows, &mut context, ZoneContext::facts);
    let needs_picture = arguments.svg.is_some() || options.html.is_some();
    let picture = needs_picture.then(|| context.picture());
    if let (Some(path), Some(picture)) = (&arguments.svg, &picture) {
        write_text(path, &picture.to_svg().map_err(Failure::from)?)?;
    }
    write_report(options, &report, picture)?;
    Ok(outcome(&report))
}

/// Where names are looked up. Before delegation, nothing may have to be looked up.
fn source(
    arguments: &CheckZoneArguments,
    undelegated: Option<&Undelegated>,
) -> Result<Source, super::Failure> {
    let hints = match &arguments.hints {
        Some(file) => Some(read_hints(file).map_err(|error| Failure::from(ResolveError::from(error)))?),
        None => arguments.from_root.then(Hints::default),
    };
    if let Some(hints) = hints {
        let servers = hints.servers().iter();
        let servers =
            servers.flat_map(|(name, addresses)| addresses.iter().map(|address| (name.clone(), *address)));
        return Ok(Source::Root(servers.collect()));
    }
    let needs_none =
        |planned: &Undelegated| planned.nameservers.iter().all(|(_, addresses)| !addresses.is_empty());
    match system_servers() {
        Ok(servers) => Ok(Source::Resolvers(servers)),
        Err(_) if undelegated.is_some_and(needs_none) => Ok(Source::Resolvers(Vec::new())),
        Err(error) => Err(error.into()),
    }
}

fn anchors(arguments: &CheckZoneArguments) -> Result<Vec<TrustAnchor>, super::Failure> {
    let now = time_or_now(arguments.now);
    let anchors: TrustAnchors = trust_anchors(arguments.anchor.as_deref(), arguments.hints.is_some(), now)
        .map_err(|error| Failure::from(ResolveError::from(error)))?;
    let mut list = Vec::new();
    for anchor in anchors.iter() {
        for record in &anchor.records {
            let (rtype, rdata) = match record {
                AnchorRecord::Ds(rdata) => (Rtype::DS, rdata),
                AnchorRecord::Dnskey(rdata) => (Rtype::DNSKEY, rdata),
            };
            list.push(TrustAnchor { zone: anchor.apex.clone(), rtype, rdata: rdata.to_vec() });
        }
    }
    Ok(list)
}

/// The planned delegation of `--ns` and `--ds`.
fn undelegated(arguments: &CheckZoneArguments, zone: &Name) -> Result<Option<Undelegated>, super::Failure> {
    if arguments.ns.is_empty() {
        return Ok(None);
    }
    let mut nameservers: Vec<(Name, Vec<IpAddr>)> = Vec::new();
    for (name, address) in &arguments.ns {
        let index = nameservers.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            nameservers.push((name.clone(), Vec::new()));
            nameservers.len() - 1
        });
        nameservers[index].1.extend(address);
    }
    let without = nameservers
        .iter()
        .find(|(name, addresses)| addresses.is_empty() && name.view().is_at_or_below(zone.view()));
    if let Some((name, _)) = without {
        return Err(Failure::NoAddress(name.clone()).into());
    }
    let ds = arguments.ds.iter().map(|text| read_ds(text, zone)).collect::<Result<_, _>>()?;
    Ok(Some(Undelegated { nameservers, ds }))
}

/// Reads DS RDATA in presentation form.
fn read_ds(text: &str, zone: &Name) -> Result<Vec<u8>, Failure> {
    let line = format!("{zone} 0 IN DS {text}\n");
    let records = read_records(line.as_bytes(), Path::new("--ds"), zone);
    let records = records.map_err(|source| Failure::Ds { text: text.to_owned(), source })?;
    match <[_; 1]>::try_from(records) {
        Ok([(_, Rtype::DS, rdata)]) => Ok(rdata),
        _ => Err(Failure::NotOneDs(text.to_owned())),
    }
}
