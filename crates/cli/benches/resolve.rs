//! Comparison of the resolver with the installed resolvers on a local tree of a root, a top-level domain
//! and 50 zones of 2,000 names each, signed with P-256: `just bench-resolve`. With `--validate true`,
//! all resolvers validate.
//!
//! In each round, every resolver starts with an empty cache and learns the delegations; then each query of
//! the load has a new name. For the column of cache hits, the same 1,000 queries are repeated, also against
//! `nonesuch serve` with the same zones.
//!
//! Options: `--runs`, `--queries` of a load, `--seconds` of cache hits, `--outstanding` queries, `--column`
//! (`existing`, `nsec`, `hits` or `nsec3`) for one column only, `--validate`, `--aggressive` for answers from
//! cached denials.

#[allow(dead_code)] // each benchmark uses its own part
mod common;
#[allow(dead_code)] // each benchmark uses its own part
mod resolvers;
#[allow(dead_code)] // each benchmark uses its own part
mod servers;

use common::{argument, machine};
use resolvers::{
    OUTSTANDING, RESOLVERS, ResolverOptions, Row, Running, Tree, cost_of, learn_delegations, print_rows,
    queries, zones_section,
};
use std::path::Path;

/// Zones below the top-level domain, and names of each.
const ZONES: u64 = 50;
const NAMES: u64 = 2_000;
/// Names of the load of cache hits.
const HIT_NAMES: u64 = 1_000;

/// Names of a load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Existing,
    Denied,
    Hits,
}

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let runs = argument("--runs", 5);
    let count = argument("--queries", 50_000).min(ZONES * NAMES);
    let column = argument("--column", String::new());
    let has = |name: &str| column.is_empty() || column == name;
    println!("{}; {count} queries, DO set, {runs} rounds", machine());
    println!("CPU µs per query; ratios: median (least-greatest) of the rounds\n");
    let columns = [
        ("existing", "existing names", Kind::Existing, count),
        ("nsec", "denied names, NSEC", Kind::Denied, count),
        ("hits", "cache hits", Kind::Hits, argument("--seconds", 3)),
    ];
    if columns.iter().any(|(name, ..)| has(name)) {
        let nsec = start_tree(&dir.path().join("nsec"), "nsec");
        for (_, title, kind, amount) in columns.into_iter().filter(|(name, ..)| has(name)) {
            measure(title, &nsec, kind, runs, amount);
        }
    }
    if has("nsec3") {
        let nsec3 = start_tree(&dir.path().join("nsec3"), "nsec3");
        measure("denied names, NSEC3", &nsec3, Kind::Denied, runs, count);
    }
}

fn start_tree(dir: &Path, denial: &str) -> Tree {
    Tree::start(dir, "ecdsap256sha256", &zones_section(ZONES, NAMES, denial))
}

/// CPU time in µs for each query of a load, user and system, and the number of lost queries.
fn cpu_per_query(running: &Running, kind: Kind, amount: u64) -> (f64, f64, u64) {
    let outstanding = argument("--outstanding", OUTSTANDING);
    learn_delegations(running, ZONES);
    let list = queries(kind == Kind::Denied, ZONES, if kind == Kind::Hits { HIT_NAMES } else { amount });
    let (seconds, limit) = if kind == Kind::Hits {
        running.ask_all(&list, 2 * HIT_NAMES, OUTSTANDING);
        (amount as f64, None)
    } else {
        (120.0, Some(amount))
    };
    cost_of(|| running.cpu(), || running.load(&list, outstanding, seconds, limit))
}

/// One column: all resolvers in turn, in each round.
fn measure(title: &str, tree: &Tree, kind: Kind, runs: u64, amount: u64) {
    let (validates, aggressive) = (argument("--validate", false), argument("--aggressive", false));
    let options = ResolverOptions { validates, aggressive, cache_mib: 64 };
    let mut rows: Vec<Row> = RESOLVERS.iter().map(|resolver| Row::new(resolver.name)).collect();
    if kind == Kind::Hits {
        rows.push(Row::new("nonesuch serve"));
    }
    for _ in 0..runs {
        for (place, row) in rows.iter_mut().enumerate() {
            let started = RESOLVERS.get(place).map(|resolver| Running::start(resolver, tree, options));
            let started = started.unwrap_or_else(|| Ok(Running::start_serve(tree)));
            row.add_round(started, |running| cpu_per_query(running, kind, amount));
        }
    }
    print_rows(title, &rows);
}
