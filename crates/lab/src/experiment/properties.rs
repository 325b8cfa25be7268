//! Tables 1 and 2 of "Making NSEC5 Practical for DNSSEC" (ePrint 2017/099), executed: what an attacker
//! learns and forges with each denial mechanism, from the network and with the files of the server.
//!
//! For each mechanism, a server serves a zone with names that a word list has and names that no list has.
//! `nonesuch enumerate` attacks it, as an outsider and then as a thief of the server. The counters of the
//! server show whether it used cryptography to answer. Each mechanism is a row.

mod parameters;
mod row;

pub(super) use parameters::{MechanismChoice, Parameters};

use super::error::{RunError, temporary_directory};
use super::parameters::deduplicate;
use super::run::{Findings, RunOptions};
use crate::testbed::{
    Network, ServersOptions, Site, TestbedError, TreeFiles, TreeServers, ZoneServer, quoted,
};
use crate::tree::{Description, ZoneDescription};
use nonesuch_dnssec::Mechanism;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use row::Row;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The zone.
const ZONE: &str = "zone.";
/// Address of the server.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Labels of the zone that the built-in word list of `nonesuch enumerate` has.
const GUESSABLE: [&str; 8] = ["www", "mail", "ftp", "api", "dev", "vpn", "shop", "test"];
/// Octets of a label that no word list has.
const UNGUESSABLE_OCTETS: usize = 16;
/// Name of the state directory of the server, in the directory of the experiment.
const STATE: &str = "state";

/// Runs the experiment and returns its description for the record of the run.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<Value, RunError> {
    let mechanisms = deduplicate(parameters.mechanisms.clone());
    for (step, mechanism) in mechanisms.iter().enumerate() {
        options.begin(step, mechanisms.len(), &mechanism.to_string());
        let row = attack(parameters, *mechanism, options)?;
        findings.push(&row)?;
    }
    if findings.data.rows().is_empty() {
        return Err(findings.nothing_to_measure("set mechanisms"));
    }
    Ok(json!({ "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")) }))
}

/// Serves the zone with a mechanism, and attacks it.
fn attack(
    parameters: &Parameters,
    mechanism: MechanismChoice,
    options: &RunOptions<'_>,
) -> Result<Row, RunError> {
    let directory = temporary_directory(&std::env::temp_dir())?;
    let path = |name: &str| directory.path().join(name);
    let (state, nothing) = (path(STATE), path("nothing"));
    for created in [&state, &nothing] {
        fs::create_dir(created).map_err(|source| TestbedError::Write { path: created.clone(), source })?;
    }
    let hidden = parameters.hidden_names.value();
    let description = description(mechanism, hidden, options.seed);
    let tree = TreeFiles::write(&description, options.seed, options.now, &path("tree"))?;
    let network = Network::new(None, &tree.addresses, None)?;
    let how = ServersOptions {
        program: options.program,
        cpu: None,
        zone_server: ZoneServer::Nonesuch,
        directory: directory.path(),
        settings: &format!("state-dir = {}\n", quoted(&state)),
    };
    let servers = TreeServers::start(&tree, &network, how)?;
    let enumerate = |stolen: &[PathBuf]| {
        network.run(Site::Clients, || enumerate(options.program, options.seed, stolen))?
    };
    let outsider = enumerate(&[nothing])?;
    let operations = servers.online_operations(&network)?;
    let thief = enumerate(&stolen_directories(mechanism, &path("tree"), state))?;
    Ok(Row::new(mechanism, zone_names(hidden), &outsider, operations, &thief))
}

/// Number of names of the zone: the apex, its name server, and the others.
fn zone_names(hidden: u32) -> u64 {
    2 + GUESSABLE.len() as u64 + u64::from(hidden)
}

fn description(mechanism: MechanismChoice, hidden: u32, seed: u64) -> Description {
    let mut records = String::new();
    // Writing to a `String` cannot fail.
    for label in GUESSABLE {
        let _ = writeln!(records, "{label} A 192.0.2.1");
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..hidden {
        let label: String =
            (0..UNGUESSABLE_OCTETS).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
        let _ = writeln!(records, "{label} A 192.0.2.2");
    }
    let zone = ZoneDescription {
        signed: mechanism.0.is_some(),
        denial: mechanism.0.unwrap_or(Mechanism::Nsec),
        samples: Some(false),
        records,
        server: Some(ADDRESS),
        ..ZoneDescription::new(ZONE)
    };
    let root = ZoneDescription { server: Some(ADDRESS), ..ZoneDescription::new(".") };
    Description { first_address: ADDRESS, zones: vec![root, zone], ..Description::default() }
}

/// What a thief finds: the state directory, and the keys that the server needs for this mechanism.
fn stolen_directories(mechanism: MechanismChoice, tree: &Path, state: PathBuf) -> Vec<PathBuf> {
    let file = ZONE.trim_end_matches('.');
    let keys = match mechanism.0 {
        Some(Mechanism::Nsec5 | Mechanism::Nsec5OptOut) => Some(tree.join("nsec5").join(file)),
        Some(mechanism) if !mechanism.entry().is_served_without_keys() => Some(tree.join("keys").join(file)),
        _ => None,
    };
    [Some(state), keys].into_iter().flatten().collect()
}

/// Runs `nonesuch enumerate` and returns its report.
fn enumerate(program: &Path, seed: u64, stolen: &[PathBuf]) -> Result<Value, TestbedError> {
    let mut command = Command::new(program);
    command.args(["enumerate", ZONE, &format!("@{ADDRESS}:53"), "--json", "--rate", "2000"]);
    command.args(["--seed", &seed.to_string()]);
    for directory in stolen {
        command.arg("--stolen-server").arg(directory);
    }
    let output = command.output().map_err(|error| TestbedError::Enumerate(error.to_string()))?;
    // Status 1: the enumeration ended early; the report has the reason.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(TestbedError::Enumerate(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| TestbedError::Enumerate(error.to_string()))
}
