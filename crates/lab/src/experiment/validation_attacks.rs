//! Hostile zones against validating resolvers, this program and others: the CPU time of a hostile
//! query, and the latency of other clients during an attack.
//!
//! For each attack, the experiment builds a tree with hostile zones and starts its servers. In a
//! round, each resolver starts with an empty cache, gets the names of the other clients into its
//! cache, and is measured with single queries and under load while no other resolver runs. Each
//! series of single queries and each load is a row. All waits are bounded.

mod attack;
mod measure;
mod parameters;
mod probe;
mod row;
mod zones;

pub(super) use parameters::Parameters;

use super::error::{RunError, temporary_directory};
use super::parameters::deduplicate;
use super::run::{Findings, RunOptions};
use crate::machine::{self, CpuPlacement};
use crate::testbed::{Network, Resolver, ServersOptions, TreeServers, ZoneServer};
use attack::Attack;
use measure::{Bench, good_queries};
use row::Row;
use serde_json::json;

/// Runs the experiment and returns its description for the record of the run.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let attacks = deduplicate(parameters.attacks.clone());
    let resolvers = deduplicate(parameters.resolvers.clone());
    if attacks.is_empty() || resolvers.is_empty() {
        return Err(findings.nothing_to_measure("set attacks and resolvers"));
    }
    let cpus = machine::choose_cpus();
    for (index, attack) in attacks.iter().enumerate() {
        let place = Place { index, attacks: attacks.len(), cpus, options };
        measure_attack(parameters, attack, &resolvers, place, findings)?;
    }
    findings.note_failures();
    if findings.data.rows().is_empty() {
        return Err(findings.nothing_to_measure("no resolver can be measured"));
    }
    findings.record_peers(resolvers.iter().filter_map(|resolver| resolver.peer()));
    let titles = attacks.iter().map(|attack| json!({ "name": attack.name, "title": attack.title }));
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "attacks": titles.collect::<Vec<_>>(),
        "resolver_cpu": cpus.map(|cpus| cpus.server),
        "load_cpu": cpus.map(|cpus| cpus.load),
    }))
}

/// The position of an attack in the experiment.
#[derive(Clone, Copy)]
struct Place<'p> {
    index: usize,
    attacks: usize,
    cpus: Option<CpuPlacement>,
    options: &'p RunOptions<'p>,
}

/// Measures all resolvers with one attack. A resolver that cannot be measured becomes a note.
fn measure_attack(
    parameters: &Parameters,
    attack: &Attack,
    resolvers: &[Resolver],
    Place { index, attacks, cpus, options }: Place<'_>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let rounds = parameters.rounds.value();
    let each = rounds as usize * resolvers.len();
    options.begin(index * each, attacks * each, &format!("building the tree {attack}"));
    let directory = temporary_directory(&std::env::temp_dir())?;
    let place = directory.path().join("tree");
    let tree = zones::write(attack, parameters.zones_of(attack), (options.seed, options.now), &place)?;
    let load_cpu = cpus.map(|cpus| cpus.load);
    let network = Network::new(None, &tree.addresses, load_cpu)?;
    let how = ServersOptions {
        program: options.program,
        cpu: load_cpu,
        zone_server: ZoneServer::Nonesuch,
        directory: directory.path(),
        settings: "",
    };
    let _servers = TreeServers::start(&tree, &network, how)?;
    let bench = Bench {
        parameters,
        attack,
        tree: &tree,
        network: &network,
        cpus,
        program: options.program,
        directory: directory.path(),
        good: &good_queries()?,
    };
    for round in 0..rounds {
        for (number, resolver) in resolvers.iter().enumerate() {
            let step = index * each + round as usize * resolvers.len() + number;
            options.begin(step, attacks * each, &format!("{resolver}, {attack}"));
            if *resolver != Resolver::Nonesuch && !attack.is_known_to_peers() {
                continue;
            }
            match bench.measure(*resolver) {
                Ok(rows) => rows.into_iter().try_for_each(|row| push(row, round, attack, findings))?,
                Err(reason) => {
                    findings.record_failure(&resolver.to_string(), attack.to_string(), &reason);
                }
            }
        }
    }
    Ok(())
}

/// Adds a row, and notes if it shows that the resolver does not validate.
fn push(row: Row, round: u32, attack: &Attack, findings: &mut Findings) -> Result<(), RunError> {
    let is_hostile = row.measurement != measure::Measurement::Hit.name();
    if is_hostile && attack.has_forged_data() && row.responses.authenticated > 0 {
        findings.note(format!("{}, {attack}: answers with forged data have the flag AD.", row.resolver));
    }
    if row.others_insecure.is_some_and(|count| count > 0) {
        findings.note(format!("{}, {attack}: answers to other clients without the flag AD.", row.resolver));
    }
    findings.push(&Row { round, ..row })
}

#[cfg(test)]
mod tests;
