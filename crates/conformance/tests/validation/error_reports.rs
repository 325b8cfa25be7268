//! Reports of failures to the agents of authoritative servers (RFC 9567, XF-082).

use crate::tree::{CHILD, Change, Tree, World, name};
use nonesuch_net::Transport;
use nonesuch_proto::message::{Message, Rcode};
use nonesuch_proto::{Rtype, edns};
use std::net::Ipv4Addr;

/// The server of `child.` names this agent, and its signatures are missing.
fn broken_by(agent: &'static str) -> Change {
    Box::new(move |server: Ipv4Addr, response: &mut Message| {
        if server != CHILD {
            return;
        }
        let is_data = |name: &str| name == "host.child." || name.ends_with(".wild.child.");
        response.records.retain(|record| record.rtype != Rtype::RRSIG || !is_data(&record.owner.to_string()));
        if let Some(opt) = response.records.iter_mut().find(|record| record.rtype == Rtype::OPT) {
            edns::push_option(edns::REPORT_CHANNEL, &[name(agent).wire()], &mut opt.rdata);
        }
    })
}

fn world(agent: &'static str, is_on: bool) -> World {
    let mut tree = Tree::new();
    tree.change = broken_by(agent);
    World::new(tree, |options| options.error_reporting = is_on)
}

/// The reports that servers got, with their transports.
fn reports(world: &World) -> Vec<(String, Transport)> {
    let asked = world.simulator.network().asked.iter();
    let reports = asked.filter(|(_, rtype, _)| *rtype == Rtype::TXT);
    reports.map(|(name, _, transport)| (name.to_string(), *transport)).collect()
}

#[test]
fn a_bogus_answer_is_reported_once() {
    let mut world = world("agent.child.", true);
    for _ in 0..20 {
        for worker in [0, 1] {
            assert_eq!(world.ask(worker, "host.child.").rcode, Rcode::SERVFAIL);
        }
        // The failure is not cached any more, but the answer to the report is.
        world.run_for(2);
    }
    let expected = ("_er.1.host.child.10._er.agent.child.".to_owned(), Transport::Tcp);
    assert_eq!(reports(&world), [expected]);
    // The answer to the report has expired, and the failure, which is cached for 5 minutes at most.
    world.run_for(400);
    world.ask(0, "host.child.");
    world.run_for(2);
    assert_eq!(reports(&world).len(), 2);
}

#[test]
fn nothing_is_reported_without_the_option_or_an_agent() {
    for (agent, is_on) in [("agent.child.", false), (".", true)] {
        let mut world = world(agent, is_on);
        assert_eq!(world.ask(0, "host.child.").rcode, Rcode::SERVFAIL);
        world.run_for(10);
        assert_eq!(reports(&world), [], "{agent} {is_on}");
    }
}

/// A report whose own name fails is not reported, and its rate is bounded.
#[test]
fn reports_are_few_and_cause_no_others() {
    let mut tree = Tree::new();
    tree.servers.remove(&CHILD);
    // No server responds: no agent is known.
    let mut silent = World::new(tree, |options| options.error_reporting = true);
    assert_eq!(silent.ask(0, "host.child.").rcode, Rcode::SERVFAIL);
    silent.run_for(20);
    assert_eq!(reports(&silent), []);
    let mut world = world("agent.child.", true);
    assert_eq!(world.ask(0, "_er.x.wild.child.").rcode, Rcode::SERVFAIL);
    world.run_for(10);
    assert_eq!(reports(&world), []);
    // The failures of less than two seconds.
    let before = world.simulator.time();
    for number in 0..100 {
        world.send(0, &format!("x{number}.wild.child."), Rtype::A);
    }
    world.simulator.run_until_answered().expect("replies");
    assert!((world.simulator.time() - before).as_secs() < 2);
    world.run_for(20);
    let count = reports(&world).len();
    assert!((10..=20).contains(&count), "{count} reports");
}
