//! Cached failures (RFC 9520): a zone without valid keys costs work once in the time for which its failure is
//! cached, whatever names below it clients ask for. The tests count operations.

use super::network::*;
use super::signed::*;
use nonesuch_conformance::simulator::Simulator;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Record, Section, flags};
use nonesuch_resolver::Shared;
use nonesuch_resolver::trust_anchors::AnchorRecord;
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The server of `c.evil.` and of the zones below it.
const CHILD: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
/// Greatest time in seconds for which the first failure is cached.
const FAILURE_TIME: u64 = 5;

/// The signed zone `evil.`, with a secure delegation of `c.evil.`
struct Tree {
    parent: Zone,
    child: Zone,
    /// Has a trust anchor.
    below: Zone,
    /// Whether the digest of a DS record of `c.evil.` is right.
    is_repaired: Rc<Cell<bool>>,
}

impl Tree {
    /// 32 DS records with the tag of the key.
    fn ds(&self) -> Vec<Record> {
        let wrong = |number: u8| {
            let mut ds = self.child.ds();
            if number > 0 || !self.is_repaired.get() {
                ds[4..].fill(number);
            }
            record("c.evil.", Rtype::DS, ds)
        };
        // They expire before the failure does.
        (0..32).map(wrong).map(|ds| Record { ttl: 3, ..ds }).collect()
    }

    fn respond(&self, asked: &Message, server: Ipv4Addr) -> Message {
        let question = &asked.questions[0];
        let is_child = server == CHILD;
        let is_below = question.name.view().is_at_or_below(name("a.c.evil.").view());
        let text = question.name.to_string();
        match (question.rtype, text.as_str()) {
            (Rtype::DNSKEY, "evil.") => answer(asked, self.parent.sign(self.parent.keys())),
            (Rtype::DNSKEY, "c.evil.") => {
                let colliding = self.child.colliding_keys(12).into_iter();
                let keys = colliding.map(|rdata| record("c.evil.", Rtype::DNSKEY, rdata));
                answer(asked, self.child.sign(self.child.keys().into_iter().chain(keys).collect()))
            }
            (Rtype::DNSKEY, "a.c.evil.") => answer(asked, self.below.sign(self.below.keys())),
            (Rtype::DS, "c.evil.") => answer(asked, self.parent.sign(self.ds())),
            _ if is_child && is_below => answer(asked, self.below.sign(vec![address(&text, EVIL)])),
            _ if is_child => answer(asked, self.child.sign(vec![address(&text, EVIL)])),
            _ => {
                let ns = pointer("c.evil.", Rtype::NS, "ns.c.evil.");
                let glue = within(Section::Additional, address("ns.c.evil.", CHILD));
                let authority = [vec![ns], self.parent.sign(self.ds())].concat();
                let authority = authority.into_iter().map(|record| within(Section::Authority, record));
                referral(asked, authority.chain([glue]).collect())
            }
        }
    }
}

/// Returns the simulator, and the switch that repairs the DS RRset.
fn simulate_tree() -> (Simulator<'static, Servers>, Arc<Shared>, Rc<Cell<bool>>) {
    let zone = |apex| Zone::at(apex, Algorithm::ECDSAP256SHA256);
    let is_repaired = Rc::new(Cell::new(false));
    let (parent, child, below) = (zone("evil."), zone("c.evil."), zone("a.c.evil."));
    let anchors = [("evil.", parent.ds()), ("a.c.evil.", below.ds())];
    let tree = Tree { parent, child, below, is_repaired: Rc::clone(&is_repaired) };
    let hostile = move |asked: &Message, server: Ipv4Addr| Some(tree.respond(asked, server));
    let (simulator, shared) = simulate_shared(Servers::new(Box::new(hostile)), 1, |options| {
        for (apex, ds) in anchors {
            options.validation.anchors.insert(name(apex).view(), AnchorRecord::Ds(ds));
        }
    });
    (simulator, shared, is_repaired)
}

fn ask(simulator: &mut Simulator<'_, Servers>, asked: &str, rtype: Rtype, others: u16) -> Message {
    let now = simulator.time().as_millis() as u64;
    let token = ask_for_type(simulator, now, (asked, rtype), others);
    simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}\n{}", simulator.trace()));
    reply(simulator, token)
}

#[test]
fn new_names_of_a_zone_without_valid_keys_cause_no_query_and_no_verification() {
    let (mut simulator, shared, _) = simulate_tree();
    let (rcode, error) = attack(&mut simulator, "n0.x.c.evil.");
    assert_eq!((rcode, error), (Rcode::SERVFAIL, Some(9)));
    let before = shared.model.totals();
    assert!(simulator.network().count(CHILD) > 0 && before.verified() > 0);
    for number in 1..20 {
        let result = attack(&mut simulator, &format!("n{number}.x{number}.c.evil."));
        assert_eq!(result, (rcode, error));
    }
    assert_eq!(shared.model.totals(), before);
}

/// RFC 4035 §3.2.2, and that an RRSIG RRset has no signature: their data are not validated in any case.
#[test]
fn clients_that_validate_themselves_get_data_of_a_zone_without_valid_keys() {
    let (mut simulator, ..) = simulate_tree();
    for number in 0..3 {
        let asked = format!("n{number}.c.evil.");
        assert_eq!(ask(&mut simulator, &asked, Rtype::A, flags::AD).rcode(), Rcode::SERVFAIL);
        assert_eq!(addresses(&ask(&mut simulator, &asked, Rtype::A, flags::CD)), [EVIL]);
        let before = simulator.network().count(CHILD);
        ask(&mut simulator, &asked, Rtype::RRSIG, 0);
        assert!(simulator.network().count(CHILD) > before);
    }
}

#[test]
fn a_trust_anchor_below_a_zone_without_valid_keys_is_used() {
    let (mut simulator, ..) = simulate_tree();
    for number in 0..3 {
        assert_eq!(attack(&mut simulator, &format!("n{number}.c.evil.")).0, Rcode::SERVFAIL);
        let reply = ask(&mut simulator, &format!("n{number}.a.c.evil."), Rtype::A, flags::AD);
        assert_eq!((addresses(&reply), reply.header.flags & flags::AD), (vec![EVIL], flags::AD));
    }
}

/// RFC 9520 §3.2: the time of a failure is bounded. It is the same for all names.
#[test]
fn a_zone_with_keys_that_become_valid_is_used_after_the_time_of_the_failure() {
    let (mut simulator, _, is_repaired) = simulate_tree();
    assert_eq!(attack(&mut simulator, "n0.c.evil.").0, Rcode::SERVFAIL);
    is_repaired.set(true);
    simulator.run_for(Duration::from_secs(1)).expect("no fault");
    assert_eq!(attack(&mut simulator, "n1.c.evil.").0, Rcode::SERVFAIL);
    simulator.run_for(Duration::from_secs(FAILURE_TIME - 1)).expect("no fault");
    for asked in ["n1.c.evil.", "n2.c.evil."] {
        let reply = ask(&mut simulator, asked, Rtype::A, flags::AD);
        assert_eq!((addresses(&reply), reply.header.flags & flags::AD), (vec![EVIL], flags::AD));
    }
}
