//! The cost model of document 000 from end to end: resolvers are recorded with today's share of signed
//! zones, the model is fitted, and its prediction for "all zones are signed" is compared with a recording
//! in which all zones are signed.
//!
//! Two trees have the same zones: in one, the share of signed zones is that of today; in the other, all zones
//! are signed. In front of each tree, all resolvers run at the same time and get the same queries. `nonesuch
//! plan record` records each of them, as an operator would. A recording is divided into slices of time. Each
//! resolver, population and slice is a row.

mod bench;
mod parameters;
mod population;
mod recorder;
mod row;
mod zones;

pub(super) use parameters::Parameters;

use super::error::{RunError, temporary_directory};
use super::parameters::deduplicate;
use super::run::{Findings, RunOptions};
use crate::cost_model::{FitOptions, LabelledRecording, fit, published};
use crate::testbed::{Network, Resolver, ServersOptions, TestbedError, TreeFiles, TreeServers, ZoneServer};
use bench::{Bench, Recorded};
use population::Population;
use row::Row;
use serde_json::json;
use zones::{Signed, Zones};

/// A row gets a note if more than this share of its client queries has no response.
const MAX_LOST_SHARE: f64 = 0.01;
/// A row gets a note if its load took longer than planned by more than this factor: then the rates of client
/// queries before and after differ.
const MAX_RELATIVE_DURATION: f64 = 1.05;

/// Runs the experiment and returns its description for the record of the run.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let library = parameters.counting_library(options.program);
    let resolvers = possible_resolvers(parameters, library.is_some(), findings);
    let populations = population::possible(parameters, findings)?;
    if resolvers.is_empty() || populations.is_empty() {
        return Err(findings.nothing_to_measure("set resolvers and populations"));
    }
    let zones = Zones::new(parameters, options.seed);
    let directory = temporary_directory(&std::env::temp_dir())?;
    let mut recorded = Vec::new();
    let steps = 2 * (1 + populations.len());
    for (state, signed) in [Signed::Today, Signed::All].into_iter().enumerate() {
        let first_step = state * (1 + populations.len());
        options.begin(first_step, steps, &format!("building the tree, {signed}"));
        let place = directory.path().join(signed.file_name());
        let tree = TreeFiles::write(&zones.description(signed), options.seed, options.now, &place)?;
        let network = Network::new(None, &tree.addresses, None)?;
        let how = ServersOptions {
            program: options.program,
            cpu: None,
            zone_server: ZoneServer::Nonesuch,
            directory: directory.path(),
            settings: "",
        };
        let _servers = TreeServers::start(&tree, &network, how)?;
        for (number, population) in populations.iter().enumerate() {
            options.begin(first_step + 1 + number, steps, &format!("{population}, {signed}"));
            let bench = Bench {
                parameters,
                zones: &zones,
                tree: &tree,
                network: &network,
                library: library.as_deref(),
                program: options.program,
                directory: &directory.path().join(format!("{}-{number}", signed.file_name())),
                seed: options.seed,
            };
            recorded.extend(bench.record(&resolvers, population, signed)?);
        }
    }
    for recorded in &recorded {
        note_overload(recorded, findings);
    }
    let today = labelled(&recorded, Signed::Today);
    let fits = fit(&today, &FitOptions::default()).map_err(TestbedError::from)?;
    let measured = recorded.iter().filter(|one| one.signed == Signed::All);
    for ((fitted, today), after) in fits.fits.iter().zip(&today).zip(measured) {
        findings.push(&Row::new(fitted, &today.recording, after))?;
    }
    findings.record_peers(resolvers.iter().filter_map(|resolver| resolver.peer()));
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "populations": populations.iter().map(Population::describe).collect::<Vec<_>>(),
        "signed_zones": zones.signed_count(),
        "zones": zones.count(),
        "equality": fits.equality,
        "rates": published().iter().map(|rate| json!({
            "scheme": rate.scheme, "implementation": rate.implementation, "per_second": rate.per_second,
        })).collect::<Vec<_>>(),
    }))
}

/// The resolvers that can be recorded. Others become notes.
fn possible_resolvers(parameters: &Parameters, has_library: bool, findings: &mut Findings) -> Vec<Resolver> {
    let mut resolvers = deduplicate(parameters.resolvers.clone());
    resolvers.retain(|resolver| match resolver {
        Resolver::Nonesuch => true,
        Resolver::Peer(peer) if has_library => findings.found_or_note(peer.require_programs()).is_some(),
        Resolver::Peer(peer) => {
            findings.note(format!(
                "Left out: {}: its verified signatures are counted by a library: build it with `just \
                 count-verifications`, or set library.",
                peer.info().title
            ));
            false
        }
    });
    resolvers
}

/// The recordings of one state of the tree, for a fit.
fn labelled(recorded: &[Recorded], signed: Signed) -> Vec<LabelledRecording> {
    let of_state = recorded.iter().filter(|one| one.signed == signed);
    let label = |one: &Recorded| LabelledRecording {
        resolver: Some(one.resolver.to_string()),
        population: Some(format!("{}, slice {}", one.population, one.slice)),
        recording: one.recording.clone(),
    };
    of_state.map(label).collect()
}

fn note_overload(recorded: &Recorded, findings: &mut Findings) {
    let Recorded { resolver, population, signed, lost_share, relative_duration, .. } = recorded;
    if *lost_share > MAX_LOST_SHARE {
        let percent = 100.0 * lost_share;
        findings.note(format!(
            "{resolver}, {population}, {signed}: {percent:.1} % of the client queries have no response."
        ));
    }
    if *relative_duration > MAX_RELATIVE_DURATION {
        findings.note(format!(
            "{population}, {signed}: the load took {relative_duration:.2} times as long as planned, so that the rates \
             of client queries differ: use a faster or idle machine, or a lower rate."
        ));
    }
}
