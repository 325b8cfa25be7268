//! Tests of the simulations of validation.

use super::fault::FaultKind;
use super::zone::{APEX_TTL, Signing, Zone};
use super::*;
use crate::simulator::Options;
use std::net::Ipv4Addr;

/// Number of seeds in a test.
const SEEDS: u64 = 150;

#[test]
fn the_resolver_passes_random_simulations_of_validation() {
    let mut results = Results::default();
    for seed in 0..SEEDS {
        let (result, trace) = run(seed);
        results += result.unwrap_or_else(|violation| panic!("{trace}\nseed {seed}: {violation}"));
    }
    // The judge has something to judge.
    assert!(results.compared > SEEDS && results.secure > SEEDS && results.bogus > SEEDS / 4, "{results:?}");
    assert!(results.failures < results.replies / 2, "{results:?}");
}

#[test]
fn a_seed_gives_the_same_simulation_again() {
    for seed in 0..10 {
        let (first, again) = (run(seed), run(seed));
        assert_eq!(first.1, again.1, "seed {seed}");
        assert_eq!(first.0, again.0);
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// Returns the root, `tld.` and `z.tld.`, with a server for each. The DS RRsets have a TTL of 5 s.
/// `alias.tld.` is a CNAME record to `www.z.tld.`
fn world(signings: [Signing; 2], fault: Option<Fault>) -> World {
    let random = &mut ChaCha8Rng::seed_from_u64(1);
    let zones = [(".", Signing::Signed), ("tld.", signings[0]), ("z.tld.", signings[1])];
    let mut world = World { zones: Vec::new(), fault, is_calm: true, options: Options::default() };
    for (number, (apex, signing)) in zones.into_iter().enumerate() {
        let mut zone = Zone::random(&name(apex), number, signing, random);
        zone.servers = vec![Ipv4Addr::new(193, 0, number as u8, 1)];
        zone.parent = number.checked_sub(1);
        zone.is_secure = signing == Signing::Signed && world.zones.iter().all(|above| above.is_secure);
        zone.add(
            &super::super::name_below("www", &zone.apex.clone()),
            Rtype::A,
            5,
            vec![vec![198, 18, 0, 1]],
        );
        zone.add_nameservers();
        world.zones.push(zone);
    }
    world.zones[1].add(&name("alias.tld."), Rtype::CNAME, APEX_TTL, vec![name("www.z.tld.").wire().to_vec()]);
    for child in [1, 2] {
        let (above, below) = world.zones.split_at_mut(child);
        above[child - 1].delegate(&below[0], 5);
    }
    let now = world.options.unix as u32;
    world.zones.iter_mut().for_each(|zone| zone.sign(now, random));
    world
}

/// Asks the questions one after the other, with ten seconds between them, and judges the replies.
fn ask_in_turn(world: &World, questions: &[(&str, Rtype)]) -> Results {
    let random = &mut ChaCha8Rng::seed_from_u64(2);
    let mut simulation = Simulation::new(world, random);
    for (owner, rtype) in questions {
        simulation.ask((name(owner), *rtype), Duration::from_millis(1), Phase::Faulty, random);
        simulation.simulator.run_for(Duration::from_secs(10)).expect("no fault of the machine");
    }
    let trace = simulation.simulator.trace().to_string();
    simulation.judge().unwrap_or_else(|violation| panic!("{trace}\n{violation}"))
}

fn fault(kind: FaultKind, zone: usize, owner: &str, rtype: Rtype, other: usize) -> Option<Fault> {
    let target = Target::Rrset(name(owner), rtype);
    Some(Fault { kind, zone, target, server: None, other: Some(other) })
}

#[test]
fn the_keys_of_a_zone_are_validated_again_when_its_ds_rrset_has_expired() {
    let world = world([Signing::Signed; 2], None);
    let results = ask_in_turn(&world, &[("www.z.tld.", Rtype::A), ("missing.z.tld.", Rtype::A)]);
    assert_eq!((results.failures, results.compared), (0, 2));
}

#[test]
fn an_alias_to_an_insecure_zone_leaves_its_owner_secure() {
    let forged = fault(FaultKind::ForgedAnswer, 1, "alias.tld.", Rtype::CNAME, 0);
    let world = world([Signing::Signed, Signing::Unsigned], forged);
    assert_eq!(ask_in_turn(&world, &[("alias.tld.", Rtype::A)]).failures, 1);
}

#[test]
fn a_zone_above_that_of_an_rrset_cannot_sign_it() {
    let foreign = fault(FaultKind::ForeignKey, 2, "www.z.tld.", Rtype::A, 1);
    let world_with = |foreign| world([Signing::Signed; 2], foreign);
    assert_eq!(ask_in_turn(&world_with(foreign), &[("www.z.tld.", Rtype::A)]).bogus, 1);
    let foreign = fault(FaultKind::ForeignKey, 2, "z.tld.", Rtype::DNSKEY, 0);
    assert_eq!(ask_in_turn(&world_with(foreign), &[("z.tld.", Rtype::DNSKEY)]).bogus, 1);
}

#[test]
fn a_referral_to_an_unsigned_zone_says_nothing_about_names_in_it() {
    let world = world([Signing::Unsigned; 2], None);
    let question = ("x.missing.tld.", Rtype::DS);
    assert_eq!(ask_in_turn(&world, &[question, question]).compared, 2);
}

#[test]
fn the_ds_rrset_of_the_target_of_an_alias_is_from_the_parent() {
    let mut world = world([Signing::Unsigned, Signing::Unsigned], None);
    world.zones[2].add(&name("up.z.tld."), Rtype::CNAME, 5, vec![name("z.tld.").wire().to_vec()]);
    world.zones[1].add(&name("z.tld."), Rtype::DS, 5, vec![plant::forged_rdata(Rtype::DS)]);
    assert_eq!(ask_in_turn(&world, &[("up.z.tld.", Rtype::DS)]).compared, 1);
}
