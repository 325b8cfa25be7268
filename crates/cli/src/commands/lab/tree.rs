//! `nonesuch lab tree`.

use super::Failure;
use crate::arguments::LabTreeArguments;
use crate::files::{count_text, print_line};
use crate::outcome::CommandOutcome;
use crate::zones;
use nonesuch_lab::tree::{Description, Tree, TreeZone};
use std::path::Path;

/// Maximum number of zones that the summary lists.
const LISTED_ZONES_MAX: usize = 50;

pub(super) fn run(arguments: &LabTreeArguments) -> Result<CommandOutcome, Failure> {
    let description = Description::read(&arguments.description)?;
    let tree = Tree::build(&description, arguments.seed, zones::time_or_now(arguments.now))
        .map_err(|source| Failure::Description { path: arguments.description.clone(), source })?;
    tree.write(&arguments.out)?;
    let text = if arguments.json { tree_json(&tree) } else { summary(&tree, &arguments.out) };
    print_line(&text)?;
    Ok(CommandOutcome::Done)
}

fn fault_names(zone: &TreeZone) -> Vec<String> {
    zone.description.faults.iter().map(|planted| planted.fault.to_string()).collect()
}

/// Algorithm and denial mechanism of a signed zone.
fn algorithm_and_denial(zone: &TreeZone) -> Option<[String; 2]> {
    zone.algorithm().map(|algorithm| [algorithm.to_string(), zone.description.denial.to_string()])
}

fn tree_json(tree: &Tree) -> String {
    let zone = |zone: &TreeZone| {
        let [algorithm, denial] = algorithm_and_denial(zone).map_or([None, None], |both| both.map(Some));
        serde_json::json!({
            "origin": zone.origin.to_string(),
            "server": zone.server.to_string(),
            "nameserver": zone.nameserver.to_string(),
            "algorithm": algorithm,
            "denial": denial,
            "faults": fault_names(zone),
        })
    };
    let zones: Vec<_> = tree.zones.iter().map(zone).collect();
    serde_json::json!({ "port": tree.port, "now": tree.now, "zones": zones }).to_string()
}

fn summary(tree: &Tree, out: &Path) -> String {
    let (zones, servers) = (count_text(tree.zones.len(), "zone"), count_text(tree.servers().len(), "server"));
    let mut lines = vec![format!("{zones} on {servers}, port {}, in {}:", tree.port, out.display())];
    for zone in tree.zones.iter().take(LISTED_ZONES_MAX) {
        let signing = algorithm_and_denial(zone).map_or_else(|| "unsigned".to_owned(), |both| both.join(" "));
        let faults = fault_names(zone).join(", ");
        lines.push(
            format!("    {:<24} {:<15} {signing:<32} {faults}", zone.origin, zone.server)
                .trim_end()
                .to_owned(),
        );
    }
    if let Some(more) = tree.zones.len().checked_sub(LISTED_ZONES_MAX).filter(|more| *more > 0) {
        lines.push(format!("    and {} more (--json lists all)", count_text(more, "zone")));
    }
    let out = out.display();
    lines.push(format!("start each server: nonesuch serve --config {out}/servers/ADDRESS.toml"));
    lines.push(format!("configure a resolver: {out}/root.hints, and {out}/anchor.ds or another anchor.*"));
    lines.push(format!("expected results: {out}/expected.csv"));
    lines.push("the private keys are derived from the seed and are no secrets".to_owned());
    lines.join("\n")
}
