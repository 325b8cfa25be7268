//! Attacks on validation: KeyTrap (CVE-2023-50387) and expensive denials (CVE-2023-50868). The tests
//! count operations.

use super::network::*;
use super::signed::*;
use nonesuch_conformance::simulator::Simulator;
use nonesuch_dnssec::validate::ValidationLimits;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Section, flags};
use nonesuch_resolver::Shared;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A name with many labels below `evil.`
fn deep_name() -> String {
    format!("{}evil.", "a.".repeat(120))
}

/// Many keys with one tag, and many signatures with this tag over an RRset.
fn simulate_keytrap() -> (Simulator<'static, Servers>, Arc<Shared>) {
    let zone = Zone::new();
    let mut all = zone.colliding_keys(20);
    assert_eq!(all.len(), 20);
    // The validator computes the digests of two keys with the tag of the DS record.
    all.insert(0, zone.dnskey());
    let anchors = [zone.ds()];
    let signed = zone.sign(keys(all));
    simulate_zone(&anchors, signed, move |asked| zone.forge(vec![address(asked, EVIL)], 100))
}

/// RFC 9520: the first query takes all failures that the limit permits, and other names of the zone two
/// each: one for each of two responses.
#[test]
fn colliding_keys_and_many_signatures_end_at_the_limit_of_failures() {
    let (mut simulator, shared) = simulate_keytrap();
    let failures = u64::from(ValidationLimits::default().signature_failures);
    for number in 0..10 {
        let (rcode, error) = attack(&mut simulator, &format!("n{number}.evil."));
        assert_eq!(rcode, Rcode::SERVFAIL);
        assert!(matches!(error, Some(0 | 6)), "{error:?}");
        // One for the DNSKEY RRset.
        let verified = shared.model.totals().verified();
        assert!((8..=1 + failures + 4 * number).contains(&verified), "{number}: {verified}");
    }
}

/// RFC 9520 §3.2: the failure is cached, whatever its reason is. So is that of a referral with forged
/// signatures over the DS RRset.
#[test]
fn a_repeated_query_verifies_no_signature_again() {
    let zone = Zone::new();
    let (anchors, signed) = ([zone.ds()], zone.sign(keys(vec![zone.dnskey()])));
    let referring = simulate_signed(&anchors, move |asked: &Message, _: Ipv4Addr| {
        let rtype = asked.questions[0].rtype;
        let ds = || zone.forge(vec![record("child.evil.", Rtype::DS, zone.ds())], 100);
        if rtype == Rtype::DNSKEY {
            return Some(answer(asked, signed.clone()));
        }
        if rtype == Rtype::DS {
            return Some(answer(asked, ds()));
        }
        let ns = vec![pointer("child.evil.", Rtype::NS, "ns.child.evil.")];
        let authority = ns.into_iter().chain(ds()).map(|record| within(Section::Authority, record));
        let glue = within(Section::Additional, address("ns.child.evil.", EVIL));
        Some(referral(asked, authority.chain([glue]).collect()))
    });
    for (mut simulator, shared) in [simulate_keytrap(), referring] {
        let mut counts = Vec::new();
        for _ in 0..10 {
            let (rcode, error) = attack(&mut simulator, "www.child.evil.");
            assert_eq!(rcode, Rcode::SERVFAIL);
            assert!(error.is_some());
            counts.push(shared.model.totals().verified());
        }
        assert!(counts[0] >= 8 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    }
}

/// Many signatures by the right key over the DNSKEY RRset. Further queries for the zone cost nothing.
#[test]
fn a_key_set_with_many_failing_signatures_is_verified_once() {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    let forged = zone.forge(keys(vec![zone.dnskey()]), 100);
    let (mut simulator, shared) =
        simulate_zone(&anchors, forged, move |asked| zone.sign(vec![address(asked, EVIL)]));
    let failures = u64::from(ValidationLimits::default().signature_failures);
    for number in 0..10 {
        let (rcode, error) = attack(&mut simulator, &format!("n{number}.evil."));
        assert_eq!(rcode, Rcode::SERVFAIL);
        assert!(matches!(error, Some(0 | 6 | 9)), "{error:?}");
    }
    let verified = shared.model.totals().verified();
    assert!((1..=failures).contains(&verified), "{verified} verifications for ten queries");
}

/// Many DS records with the tag of many keys, and no right digest: no signature is verified.
#[test]
fn colliding_ds_records_cause_no_verification() {
    let zone = Zone::new();
    let mut all = zone.colliding_keys(20);
    all.push(zone.dnskey());
    let wrong = |number: u8| {
        let mut ds = zone.ds();
        ds[4..].fill(number);
        ds
    };
    let anchors: Vec<Vec<u8>> = (0..50).map(wrong).collect();
    let forged = zone.forge(keys(all), 100);
    let (mut simulator, shared) =
        simulate_zone(&anchors, forged, move |asked| zone.forge(vec![address(asked, EVIL)], 100));
    let (rcode, error) = attack(&mut simulator, "www.evil.");
    assert_eq!((rcode, error), (Rcode::SERVFAIL, Some(9)));
    assert_eq!(shared.model.totals().verified(), 0);
}

/// Asks for a deep name of a zone that denies with `records` NSEC3 records. Returns the result of the
/// attack, and the number of SHA-1 blocks.
fn deny_deep_name(records: u8, iterations: u16, salt: usize) -> ((Rcode, Option<u16>), u64) {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    let (mut simulator, shared) = simulate_signed(&anchors, move |asked: &Message, _: Ipv4Addr| {
        if asked.questions[0].rtype == Rtype::DNSKEY {
            return Some(answer(asked, zone.sign(keys(vec![zone.dnskey()]))));
        }
        // None of them matches an ancestor of the name.
        let salt = vec![7; salt];
        let all = (0..records).map(|number| nsec3(None, number, iterations, &salt)).collect();
        Some(zone.deny(asked, all))
    });
    let result = attack(&mut simulator, &deep_name());
    let totals = shared.model.totals();
    let limit = u64::from(ValidationLimits::default().signatures);
    assert!(totals.verified() <= limit, "{}", totals.verified());
    (result, totals.hash_blocks)
}

/// The search for the closest encloser of a deep name, with expensive parameters.
#[test]
fn nsec3_hashes_end_at_the_limit_of_blocks() {
    let limit = u64::from(ValidationLimits::default().hash_blocks);
    for (records, iterations, salt) in [(8, 50, 255), (8, 50, 0), (8, 1, 255), (1, 50, 255)] {
        let ((rcode, error), blocks) = deny_deep_name(records, iterations, salt);
        assert_eq!((rcode, error), (Rcode::SERVFAIL, Some(0)), "{iterations} {salt}");
        assert!((limit / 2..=limit).contains(&blocks), "{blocks} blocks");
    }
    // A cheap search ends, and proves nothing.
    let ((rcode, error), blocks) = deny_deep_name(8, 0, 0);
    assert!(rcode == Rcode::SERVFAIL && error.is_some_and(|code| code != 0), "{error:?}");
    assert!(blocks <= limit, "{blocks} blocks");
}

/// RFC 9276 §3.2, and the limit of records in a response.
#[test]
fn too_many_iterations_or_nsec3_records_cause_no_hash() {
    assert_eq!(deny_deep_name(2, 51, 255), ((Rcode::NXDOMAIN, Some(27)), 0));
    let ((rcode, error), blocks) = deny_deep_name(2, 501, 0);
    assert_eq!((rcode, blocks), (Rcode::SERVFAIL, 0));
    assert!(error.is_some(), "no extended error");
    let ((rcode, _), blocks) = deny_deep_name(9, 0, 0);
    assert_eq!((rcode, blocks), (Rcode::SERVFAIL, 0));
}

/// Data that were not validated, because a client set CD, answer only such clients, and without AD (RFC 4035
/// §3.2.2 and §3.2.3). The failure of others does not hold for clients with CD.
#[test]
fn bogus_data_answer_only_clients_that_validate_themselves() {
    let zone = Zone::new();
    let (anchors, signed) = ([zone.ds()], zone.sign(zone.keys()));
    let (mut simulator, _) =
        simulate_zone(&anchors, signed, move |asked| zone.forge(vec![address(asked, EVIL)], 1));
    let mut ask = |others: u16| {
        let now = simulator.time().as_millis() as u64;
        let token = ask_with_flags(&mut simulator, now, "www.evil.", others);
        simulator.run_until_answered().expect("a reply");
        let reply = reply(&simulator, token);
        assert_eq!(reply.header.flags & flags::AD, 0);
        (reply.rcode(), addresses(&reply))
    };
    for _ in 0..2 {
        assert_eq!(ask(flags::CD | flags::AD), (Rcode::NOERROR, vec![EVIL]));
        assert_eq!(ask(flags::AD), (Rcode::SERVFAIL, Vec::new()));
    }
}
