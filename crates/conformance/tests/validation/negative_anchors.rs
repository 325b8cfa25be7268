//! Negative trust anchors (RFC 7646) begin, end at their time, and end when the zone validates again.

use crate::tree::{CHILD, Change, START, Tree, World, ds, name};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use nonesuch_resolver::NegativeAnchorEnd::{Expired, Validates};
use nonesuch_resolver::options::NegativeAnchor;
use std::time::Duration;

const HOUR: u64 = 3600;
/// The extended error of answers that a negative trust anchor makes insecure.
const NEGATIVE_ANCHOR: u16 = 33;

/// The signatures of `child.` are missing.
fn without_signatures() -> Change {
    Box::new(|server, response| {
        if server == CHILD {
            response.records.retain(|record| record.rtype != Rtype::RRSIG);
        }
    })
}

fn broken_tree() -> Tree {
    Tree { change: without_signatures(), ..Tree::new() }
}

fn negative_anchor(of: &str, lifetime: u64) -> NegativeAnchor {
    NegativeAnchor { name: name(of), expires: Some(START + lifetime), is_rechecked: true }
}

fn add(world: &mut World, anchor: NegativeAnchor) {
    world.shared.add_negative_anchor(anchor).expect("added");
    world.wake();
}

#[track_caller]
fn assert_insecure(world: &mut World) {
    for worker in 0..2 {
        let reply = world.ask(worker, "host.child.");
        assert_eq!((reply.rcode, reply.is_secure), (Rcode::NOERROR, false), "{reply:?}");
        assert_eq!(reply.code(), Some(NEGATIVE_ANCHOR), "{reply:?}");
    }
}

#[track_caller]
fn assert_secure(world: &mut World) {
    for worker in 0..2 {
        let reply = world.ask(worker, "host.child.");
        assert_eq!((reply.rcode, reply.is_secure), (Rcode::NOERROR, true), "{reply:?}");
    }
}

#[track_caller]
fn assert_fails(world: &mut World) {
    for worker in 0..2 {
        let reply = world.ask(worker, "host.child.");
        assert_eq!(reply.rcode, Rcode::SERVFAIL, "{reply:?}");
    }
}

#[test]
fn a_negative_anchor_begins_at_once_and_ends_when_the_zone_validates_again() {
    let mut world = World::new(broken_tree(), |_| {});
    assert_fails(&mut world);
    add(&mut world, negative_anchor("child.", 24 * HOUR));
    assert_insecure(&mut world);
    world.run_for(3 * HOUR);
    assert_insecure(&mut world);
    assert_eq!(world.shared.take_negative_anchor_events(), []);
    world.simulator.network_mut().change = Box::new(|_, _| ());
    // The checks are five minutes apart. Insecure data of the cache are removed.
    world.run_for(301);
    assert_eq!(world.shared.take_negative_anchor_events(), [(name("child."), Validates)]);
    assert_eq!(world.shared.negative_anchors(), []);
    assert_secure(&mut world);
}

#[test]
fn a_negative_anchor_ends_at_its_time() {
    let mut world = World::new(broken_tree(), |options| {
        options.validation.negative_anchors.push(negative_anchor("child.", HOUR));
    });
    world.run_for(HOUR - 1);
    assert_insecure(&mut world);
    world.run_for(2);
    assert_eq!(world.shared.take_negative_anchor_events(), [(name("child."), Expired)]);
    assert_fails(&mut world);
}

#[test]
fn a_removed_negative_anchor_ends_at_once() {
    let mut world = World::new(broken_tree(), |_| {});
    add(&mut world, negative_anchor("child.", HOUR));
    assert_insecure(&mut world);
    assert!(world.shared.remove_negative_anchor(name("CHILD.").view()));
    assert!(!world.shared.remove_negative_anchor(name("child.").view()));
    world.wake();
    assert_fails(&mut world);
}

#[test]
fn a_negative_anchor_that_is_not_checked_stays() {
    let mut world = World::new(Tree::new(), |_| {});
    add(&mut world, NegativeAnchor { is_rechecked: false, ..negative_anchor("child.", HOUR) });
    world.run_for(HOUR - 1);
    assert_insecure(&mut world);
    let mut world = World::new(Tree::new(), |options| {
        options.validation.negative_anchor_recheck = Duration::ZERO;
    });
    add(&mut world, negative_anchor("child.", HOUR));
    world.run_for(HOUR - 1);
    assert_insecure(&mut world);
}

/// A name without a DS RRset in a secure zone, the root zone with its trust anchor, and a zone above
/// another negative trust anchor.
#[test]
fn negative_anchors_at_all_places_of_the_chain_of_trust_end() {
    for of in [".", "sub.child.", "none.child.", "none."] {
        let mut world = World::new(Tree::new(), |_| {});
        add(&mut world, negative_anchor(of, HOUR));
        world.run_for(301);
        assert_eq!(world.shared.take_negative_anchor_events(), [(name(of), Validates)], "{of}");
    }
    let mut world = World::new(Tree::new(), |_| {});
    [".", "child."].into_iter().for_each(|of| add(&mut world, negative_anchor(of, HOUR)));
    world.run_for(601);
    let events = [(name("."), Validates), (name("child."), Validates)];
    assert_eq!(world.shared.take_negative_anchor_events(), events);
    assert_secure(&mut world);
}

/// Without DS RRset the zone is insecure, which needs no negative trust anchor; with the DS record of
/// another key it is bogus.
#[test]
fn a_changed_ds_rrset_decides() {
    let mut world = World::new(broken_tree(), |_| {});
    add(&mut world, negative_anchor("child.", 24 * HOUR));
    assert_insecure(&mut world);
    let mut other = ds("child.");
    other[10] ^= 1;
    world.simulator.network_mut().set_ds(Some(&other));
    world.run_for(HOUR);
    assert_eq!(world.shared.take_negative_anchor_events(), []);
    world.simulator.network_mut().set_ds(None);
    world.run_for(301);
    assert_eq!(world.shared.take_negative_anchor_events(), [(name("child."), Validates)]);
    let reply = world.ask(0, "host.child.");
    assert_eq!((reply.rcode, reply.error), (Rcode::NOERROR, None));
}

#[test]
fn a_reload_keeps_added_negative_anchors_and_does_not_begin_ended_ones_again() {
    let mut world = World::new(Tree::new(), |options| {
        options.validation.negative_anchors.push(negative_anchor("child.", HOUR));
    });
    add(&mut world, negative_anchor("sub.child.", HOUR));
    let names = |world: &World| {
        let all = world.shared.negative_anchors().into_iter();
        all.map(|active| (active.anchor.name.to_string(), active.is_configured)).collect::<Vec<_>>()
    };
    assert_eq!(names(&world), [("child.".into(), true), ("sub.child.".into(), false)]);
    world.run_for(301);
    world.reload(|options| options.qname_minimisation = false);
    assert_eq!(names(&world), [("sub.child.".into(), false)]);
    // Another end is another negative trust anchor.
    world.reload(|options| options.validation.negative_anchors[0].expires = Some(START + 2 * HOUR));
    assert_eq!(names(&world).len(), 2);
    assert_insecure(&mut world);
    world.reload(|options| options.validation.negative_anchors.clear());
    assert_eq!(names(&world), [("sub.child.".into(), false)]);
    assert_secure(&mut world);
}
