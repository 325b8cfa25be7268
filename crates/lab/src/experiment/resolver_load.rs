//! Loads validating resolvers in front of a local tree: this program and others. Varied: how the
//! tree is signed, validation, DO, traffic, transport, UDP payload size, and the path between
//! resolver and servers or between clients and resolver.
//!
//! The experiment writes each tree once. In a round, the servers of each tree run at each path, and
//! each resolver starts with an empty cache for each load, learns the zones, and is loaded while
//! nothing else runs. Each load is a row.

mod measure;
mod parameters;
mod path_choice;
mod replayed;
mod row;
mod traffic;
mod tree_choice;

pub(super) use parameters::Parameters;

use super::error::{RunError, temporary_directory};
use super::run::{Findings, RunOptions};
use crate::machine;
use crate::peers::{Peer, TlsIdentity};
use crate::testbed::{Network, ServersOptions, TestbedError, TreeFiles, TreeServers, ZoneServer};
use measure::{Bench, TLS_NAME};
use parameters::{ClientTransport, LoadCase, ResolverCase, Surroundings};
use replayed::Recorded;
use row::Row;
use serde_json::json;
use std::fs;
use std::path::Path;
use traffic::Traffic;
use tree_choice::TreeChoice;

/// A load gets a note if more than this share of its queries has no response.
const MAX_LOST_SHARE: f64 = 0.01;

/// Runs the experiment and returns its description for the record of the run.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let (all, cases) = (parameters.surroundings(), parameters.resolver_cases());
    let file = Some(parameters.query_file.as_path()).filter(|file| !file.as_os_str().is_empty());
    let recorded = file.map(Recorded::read).transpose();
    let recorded = recorded.map_err(TestbedError::Queries)?;
    let loads = possible_loads(parameters, recorded.as_ref(), findings);
    if all.is_empty() || cases.is_empty() || loads.is_empty() {
        return Err(findings.nothing_to_measure("set trees, paths, resolvers and traffic that fit together"));
    }
    let directory = temporary_directory(&std::env::temp_dir())?;
    let wants_tls = parameters.transports.contains(&ClientTransport::Tls);
    let identity = if wants_tls { Some(certificate(directory.path())?) } else { None };
    let cpus = machine::choose_cpus();
    let mut trees: Vec<(TreeChoice, TreeFiles)> = Vec::new();
    let rounds = parameters.rounds.value();
    let steps = rounds as usize * all.len() * cases.len();
    let mut step = 0;
    for round in 0..rounds {
        for surroundings in &all {
            let index = match trees.iter().position(|(choice, _)| *choice == surroundings.tree) {
                Some(index) => index,
                None => {
                    options.begin(step, steps, &format!("building the tree {}", surroundings.tree));
                    let place = directory.path().join(format!("tree-{}", trees.len()));
                    let description = surroundings.tree.description(parameters.queried_tree());
                    let tree = TreeFiles::write(&description, options.seed, options.now, &place)?;
                    trees.push((surroundings.tree.clone(), tree));
                    trees.len() - 1
                }
            };
            let tree = &trees[index].1;
            let link = surroundings.path.link(options.seed.wrapping_add(round.into()));
            let load_cpu = cpus.map(|cpus| cpus.load);
            let network = Network::new(link.as_ref(), &tree.addresses, load_cpu)?;
            let how = ServersOptions {
                program: options.program,
                cpu: load_cpu,
                zone_server: surroundings.zone_server,
                directory: directory.path(),
                settings: "",
            };
            let servers = match TreeServers::start(tree, &network, how) {
                Ok(servers) => servers,
                Err(reason) => {
                    findings.record_failure("servers", surroundings.to_string(), &reason);
                    step += cases.len();
                    continue;
                }
            };
            let bench = Bench {
                parameters,
                surroundings,
                tree,
                network: &network,
                servers: &servers,
                recorded: recorded.as_ref(),
                tls: identity.as_ref(),
                cpus,
                program: options.program,
                directory: directory.path(),
                seed: options.seed,
            };
            for case in &cases {
                options.begin(step, steps, &format!("{case}, {surroundings}"));
                step += 1;
                for load in &loads {
                    measure(&bench, case, load, round, findings)?;
                }
            }
            note_overruns(&network, surroundings, findings);
        }
    }
    findings.note_failures();
    if findings.data.rows().is_empty() {
        return Err(findings.nothing_to_measure("no resolver can be measured"));
    }
    let has_powerdns = parameters.zone_servers.contains(&ZoneServer::Powerdns);
    let resolvers = parameters.resolvers.iter().filter_map(|resolver| resolver.peer());
    findings.record_peers(resolvers.chain(has_powerdns.then_some(Peer::PowerDns)));
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "resolver_cpu": cpus.map(|cpus| cpus.server),
        "load_cpu": cpus.map(|cpus| cpus.load),
    }))
}

/// The loads for which the trees have enough names. Others become notes.
fn possible_loads(
    parameters: &Parameters,
    recorded: Option<&Recorded>,
    findings: &mut Findings,
) -> Vec<LoadCase> {
    let names = parameters.queried_tree().total();
    let mut loads = parameters.load_cases();
    loads.retain(|load| {
        let queries = parameters.queries_of(load) * u64::from(parameters.intervals.value());
        let needed = match (load.traffic, recorded) {
            (Traffic::Replayed, None) => {
                findings.note("Left out: replayed traffic: set query-file.".to_owned());
                return false;
            }
            (Traffic::Replayed, Some(recorded)) => recorded.names(),
            (traffic, _) if traffic.repeats() => 0,
            (traffic, _) => traffic.needed_names(queries),
        };
        if needed > names {
            findings.note(format!(
                "Left out: {} traffic: its {queries} queries need {needed} names, but the trees have {names}; \
                 set more names, more zones or fewer queries.",
                load.traffic
            ));
        }
        needed <= names
    });
    loads
}

/// Measures one load and adds its rows. A resolver that cannot be measured becomes a note.
fn measure(
    bench: &Bench<'_>,
    case: &ResolverCase,
    load: &LoadCase,
    round: u32,
    findings: &mut Findings,
) -> Result<(), RunError> {
    match bench.measure(case, load) {
        Ok(rows) => rows.into_iter().try_for_each(|row| {
            note_losses(&row, case, load, findings);
            findings.push(&Row { round, ..row })
        }),
        Err(reason) => {
            let place = format!("{}, {}", bench.surroundings, load.traffic);
            findings.record_failure(&case.to_string(), place, &reason);
            Ok(())
        }
    }
}

fn note_losses(row: &Row, case: &ResolverCase, load: &LoadCase, findings: &mut Findings) {
    let share = row.unanswered_share();
    if share > MAX_LOST_SHARE {
        findings.note(format!("{case}, {} traffic: queries without a response.", load.traffic));
    }
}

fn note_overruns(network: &Network, surroundings: &Surroundings, findings: &mut Findings) {
    if network.overruns() > 0 {
        findings.note(format!(
            "The path {} was too slow for the load: the system dropped packets in addition to its loss.",
            surroundings.path
        ));
    }
}

/// Writes a self-signed certificate and its key.
fn certificate(directory: &Path) -> Result<TlsIdentity, TestbedError> {
    let fault = |error: rcgen::Error| TestbedError::Certificate(error.to_string());
    let key = rcgen::KeyPair::generate().map_err(fault)?;
    let parameters = rcgen::CertificateParams::new(vec![TLS_NAME.to_owned()]).map_err(fault)?;
    let own = parameters.self_signed(&key).map_err(fault)?;
    let identity =
        TlsIdentity { certificate: directory.join("certificate.pem"), key: directory.join("key.pem") };
    for (path, text) in [(&identity.certificate, own.pem()), (&identity.key, key.serialize_pem())] {
        fs::write(path, text).map_err(|source| TestbedError::Write { path: path.clone(), source })?;
    }
    Ok(identity)
}

#[cfg(test)]
mod tests;
