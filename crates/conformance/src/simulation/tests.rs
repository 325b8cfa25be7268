//! Tests of the simulations.

use super::*;

/// Number of seeds in a test.
const SEEDS: u64 = 150;
/// A client joins the fetch of another client, whose time ends: its own time does not begin again.
const JOINED_FETCH: u64 = 3528;

#[test]
fn the_resolver_passes_random_simulations() {
    let mut results = Results::default();
    for seed in (0..SEEDS).chain([JOINED_FETCH]) {
        let (result, trace) = run(seed);
        results += result.unwrap_or_else(|violation| panic!("{trace}\nseed {seed}: {violation}"));
    }
    // The judge has something to judge.
    assert!(results.compared > SEEDS && results.failures > 0, "{results:?}");
    assert!(results.failures < results.replies / 2, "{results:?}");
}

#[test]
fn a_seed_gives_the_same_simulation_again() {
    for seed in 0..20 {
        let (first, again) = (run(seed), run(seed));
        assert_eq!(first.1, again.1, "seed {seed}");
        assert_eq!(first.0, again.0);
    }
}
