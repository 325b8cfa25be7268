//! One budget for all work of a client query, whatever path causes it: chains of aliases, referrals, DS
//! RRsets, and denials from the cache. The tests count operations.

use super::network::*;
use super::signed::*;
use nonesuch_conformance::simulator::Simulator;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Record, Section};
use nonesuch_resolver::Shared;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::trust_anchors::AnchorRecord;
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The server of a child zone of `evil.`
const CHILD: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// How the hostile server signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signatures {
    Valid,
    /// Three forged ones before the valid one.
    Late,
}

/// A server of `evil.` and of 20 signed zones `zN.evil.`, whose names are aliases of names of the next one.
fn simulate_chain(signatures: Signatures) -> (Simulator<'static, Servers>, Arc<Shared>) {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    let children: Vec<Zone> =
        (0..20).map(|number| Zone::at(&format!("z{number}.evil."), Algorithm::ECDSAP256SHA256)).collect();
    simulate_signed(&anchors, move |asked: &Message, _: Ipv4Addr| {
        let (question, rtype) = (&asked.questions[0], asked.questions[0].rtype);
        let text = question.name.to_string();
        let number = text.rsplit('.').nth(2).and_then(|label| label[1..].parse::<usize>().ok());
        let sign = |zone: &Zone, records: Vec<Record>| match signatures {
            Signatures::Valid => zone.sign(records),
            Signatures::Late => zone.sign_late(records),
        };
        let child = number.and_then(|number| children.get(number));
        let records = match (rtype, child) {
            (Rtype::DNSKEY, None) => sign(&zone, zone.keys()),
            (Rtype::DNSKEY, Some(child)) => sign(child, child.keys()),
            (Rtype::DS, Some(child)) => sign(&zone, vec![record(&text, Rtype::DS, child.ds())]),
            (_, Some(child)) if question.name.view().label_count() > 2 => {
                let target = format!("a.z{}.evil.", number.unwrap_or(0) + 1);
                sign(child, vec![pointer(&text, Rtype::CNAME, &target)])
            }
            _ => return Some(denial(asked, "evil.", Rcode::NOERROR)),
        };
        Some(answer(asked, records))
    })
}

/// The limits hold for the whole chain, not for each zone of it.
#[test]
fn a_chain_of_aliases_through_signed_zones_has_one_budget() {
    for (signatures, least) in [(Signatures::Valid, 30), (Signatures::Late, 16)] {
        let (mut simulator, shared) = simulate_chain(signatures);
        for number in 0..5 {
            let before = shared.model.totals().verified();
            let (rcode, error) = attack(&mut simulator, &format!("a{number}.z0.evil."));
            assert_eq!((rcode, error), (Rcode::SERVFAIL, Some(0)), "{signatures:?}");
            let verified = shared.model.totals().verified() - before;
            assert!(verified <= u64::from(limits().signatures), "{signatures:?}: {verified}");
            assert!(number > 0 || verified >= least, "{signatures:?}: {verified}");
        }
        if signatures == Signatures::Late {
            // Three of four do not verify.
            let verified = shared.model.totals().verified();
            assert!(verified <= 5 * u64::from(limits().signature_failures) * 4 / 3 + 5, "{verified}");
        }
    }
}

/// A server of the signed zone `evil.` that refers names below `child` to an unsigned zone. The records of
/// `proof` deny its DS RRset.
fn simulate_referral(
    child: &'static str,
    proof: impl Fn() -> Vec<Record> + 'static,
) -> (Simulator<'static, Servers>, Arc<Shared>) {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    simulate_signed(&anchors, move |asked: &Message, server: Ipv4Addr| {
        let question = &asked.questions[0];
        if server == CHILD {
            return Some(answer(asked, vec![address(&question.name.to_string(), EVIL)]));
        }
        let is_below = question.name.view().is_at_or_below(name(child).view());
        let signed = || proof().into_iter().flat_map(|record| zone.sign(vec![record]));
        Some(match question.rtype {
            Rtype::DNSKEY if question.name == name("evil.") => answer(asked, zone.sign(zone.keys())),
            Rtype::DS => {
                let soa = zone.sign(denial(asked, "evil.", Rcode::NOERROR).records);
                answer(asked, soa.into_iter().chain(signed()).collect())
            }
            _ if is_below => {
                let ns = within(Section::Authority, pointer(child, Rtype::NS, "ns.child.evil."));
                let glue = within(Section::Additional, address("ns.child.evil.", CHILD));
                referral(asked, [ns, glue].into_iter().chain(signed()).collect())
            }
            _ => denial(asked, "evil.", Rcode::NOERROR),
        })
    })
}

/// CVE-2026-1519: the limits of NSEC3 iterations and hashes hold for the proofs of referrals.
#[test]
fn the_proof_of_an_unsigned_delegation_has_the_limits_of_other_denials() {
    let child = "c.d.e.f.g.h.evil.";
    let limit = u64::from(limits().hash_blocks);
    for (iterations, salt) in [(51, 255), (500, 255), (501, 0), (2500, 255), (50, 255), (50, 0)] {
        let proof = move || (0..8).map(|number| nsec3(None, number, iterations, &vec![7; salt])).collect();
        let (mut simulator, shared) = simulate_referral(child, proof);
        for number in 0..10 {
            let before = shared.model.totals().hash_blocks;
            let (rcode, _) = attack(&mut simulator, &format!("n{number}.{child}"));
            let blocks = shared.model.totals().hash_blocks - before;
            assert!(blocks <= limit, "{iterations} {salt}: {blocks}");
            let is_insecure = (51..=500).contains(&iterations);
            assert_eq!(rcode == Rcode::NOERROR, is_insecure, "{iterations} {salt}");
            // RFC 9520: that the DS RRset cannot be validated is cached, for all names of the child zone.
            assert_eq!(blocks > 0, iterations == 50 && number < 2, "{salt}: {blocks}");
        }
    }
}

/// That a zone is insecure is known for the maximum TTL, however long the TTL of the proof is. Then the zone is
/// signed, and its server still answers without signatures.
#[test]
fn an_insecure_zone_that_becomes_signed_is_validated_after_the_maximum_ttl() {
    let zone = Zone::new();
    let mut options = ResolverOptions::default();
    options.validation.anchors.insert(name("evil.").view(), AnchorRecord::Ds(zone.ds()));
    let is_signed = Rc::new(Cell::new(false));
    let is_signed_now = Rc::clone(&is_signed);
    let hostile = move |asked: &Message, server: Ipv4Addr| {
        let question = &asked.questions[0];
        let nsec_rdata = [name("d.evil.").wire(), &[0, 1, 0x20]].concat();
        let nsec = Record { ttl: 1_000_000, ..record("c.evil.", Rtype::NSEC, nsec_rdata) };
        let ds = record("c.evil.", Rtype::DS, zone.ds());
        let authority =
            |records: Vec<Record>| records.into_iter().map(|record| within(Section::Authority, record));
        Some(match question.rtype {
            _ if server == CHILD => answer(asked, vec![address(&question.name.to_string(), EVIL)]),
            Rtype::DNSKEY if question.name == name("evil.") => answer(asked, zone.sign(zone.keys())),
            Rtype::DS if is_signed_now.get() => answer(asked, zone.sign(vec![ds])),
            _ => {
                let proof = if is_signed_now.get() { ds } else { nsec };
                let ns = pointer("c.evil.", Rtype::NS, "ns.c.evil.");
                let glue = within(Section::Additional, address("ns.c.evil.", CHILD));
                referral(
                    asked,
                    authority([vec![ns], zone.sign(vec![proof])].concat()).chain([glue]).collect(),
                )
            }
        })
    };
    let (mut simulator, _) = simulate_shared(Servers::new(Box::new(hostile)), 1, |changed| {
        changed.validation = options.validation;
        changed.ttl.max = 3600;
    });
    assert_eq!(addresses(&resolve(&mut simulator, "a.c.evil.").0), [EVIL]);
    is_signed.set(true);
    simulator.run_for(Duration::from_secs(1800)).expect("no fault");
    assert_eq!(addresses(&resolve(&mut simulator, "b.c.evil.").0), [EVIL]);
    simulator.run_for(Duration::from_secs(2000)).expect("no fault");
    assert_eq!(resolve(&mut simulator, "b.c.evil.").0.rcode(), Rcode::SERVFAIL);
}

/// A server of the signed zone `evil.` with an NSEC3 record of the apex that covers all other names.
fn simulate_nsec3(iterations: u16) -> (Simulator<'static, Servers>, Arc<Shared>) {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    simulate_signed(&anchors, move |asked: &Message, _: Ipv4Addr| {
        if asked.questions[0].rtype == Rtype::DNSKEY {
            return Some(answer(asked, zone.sign(zone.keys())));
        }
        Some(zone.deny(asked, vec![nsec3(Some("evil."), 0, iterations, &[])]))
    })
}

/// Denials from the cache cost hashes too (RFC 8198): each query pays for them from its budget.
#[test]
fn hashes_for_denials_from_the_cache_are_limited() {
    let (mut simulator, shared) = simulate_nsec3(50);
    ask_both(&mut simulator, "first.evil.");
    let before = shared.model.totals().queries;
    let mut blocks = shared.model.totals().hash_blocks;
    for number in 0..20 {
        let deep = format!("n{number}.{}evil.", format!("x{number}.").repeat(60 - number));
        ask_both(&mut simulator, &deep);
        let now = shared.model.totals().hash_blocks;
        assert!((51..=u64::from(limits().hash_blocks)).contains(&(now - blocks)), "{}", now - blocks);
        blocks = now;
    }
    assert!(shared.denials.statistics().hits > 0);
    assert!(shared.model.totals().queries - before <= 20 * 12, "{}", shared.model.totals().queries);
}

/// Names below each other in the test of DS RRsets.
const DEEP_NAMES: usize = 40;

/// Returns name `depth` of [`DEEP_NAMES`].
fn deep_name(depth: usize) -> String {
    (1..=depth).fold("evil.".to_owned(), |above, number| format!("d{number}.{above}"))
}

/// The lookups of DS RRsets for one response, which are answered from cached NSEC3 records, have one budget of hashes
/// (CVE-2026-42923).
#[test]
fn hashes_for_ds_rrsets_that_the_cache_denies_are_limited() {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    let (mut simulator, shared) = simulate_signed(&anchors, move |asked: &Message, _: Ipv4Addr| {
        let question = &asked.questions[0];
        let text = question.name.to_string();
        Some(match question.rtype {
            Rtype::DNSKEY if text == "evil." => answer(asked, zone.sign(zone.keys())),
            // An insecure zone may begin at each name above, so the resolver looks for each DS RRset.
            Rtype::A if text.starts_with('x') => answer(asked, vec![address(&text, EVIL)]),
            _ => zone.deny_type(asked, vec![narrow_nsec3(&text, 50)]),
        })
    });
    for depth in 1..=DEEP_NAMES {
        let reply = ask_both(&mut simulator, &deep_name(depth));
        assert_eq!(reply.rcode(), Rcode::NOERROR, "{depth}: {:?}", reply.extended_error());
    }
    for number in 0..10 {
        let (before, hits) = (shared.model.totals(), shared.denials.statistics().hits);
        simulator.network_mut().seen.clear();
        let (rcode, _) = attack(&mut simulator, &format!("x{number}.{}", deep_name(DEEP_NAMES)));
        assert_eq!(rcode, Rcode::SERVFAIL);
        let blocks = shared.model.totals().hash_blocks - before.hash_blocks;
        assert!(blocks <= u64::from(limits().hash_blocks), "{number}: {blocks}");
        // With one budget for each lookup, all of them would end in the cache.
        let cached = shared.denials.statistics().hits - hits;
        let sent = simulator.network().seen.iter().filter(|seen| seen.rtype == Rtype::DS).count();
        assert!(
            number > 0 || (cached >= 3 && (cached as usize) < DEEP_NAMES),
            "{cached} cached, {sent} sent"
        );
    }
}

/// The response of `evil.` to a query for a new name: a denial with new records, forged signatures, an unsigned
/// delegation, or no signature.
fn flood(zone: &Zone, asked: &Message) -> Message {
    let question = &asked.questions[0];
    let text = question.name.to_string();
    let number = text.strip_suffix("x.evil.").and_then(|label| label[1..].parse::<u32>().ok()).unwrap_or(0);
    let nsec = |owner: &str, next: &str, map: [u8; 3]| {
        let rdata = [name(next).wire(), &map].concat();
        within(Section::Authority, record(owner, Rtype::NSEC, rdata))
    };
    let first = nsec("evil.", "0.evil.", [0, 1, 0x22]);
    let own = nsec(&format!("n{number:05}.evil."), &format!("n{number:05}y.evil."), [0, 1, 0x40]);
    let cut = nsec(&text, &format!("n{number:05}y.evil."), [0, 1, 0x20]);
    match number % 4 {
        0 => zone.deny(asked, vec![first, own]),
        1 => answer(asked, zone.forge(vec![address(&text, EVIL)], 1)),
        2 if question.rtype != Rtype::DS => {
            let ns = within(Section::Authority, pointer(&text, Rtype::NS, &format!("ns.{text}")));
            let glue = within(Section::Additional, address(&format!("ns.{text}"), CHILD));
            referral(asked, [ns, glue].into_iter().chain(zone.sign(vec![cut])).collect())
        }
        _ => answer(asked, vec![address(&text, EVIL)]),
    }
}

/// Many names of a hostile signed zone fill each cache. None exceeds its memory, and names in use stay.
#[test]
fn caches_stay_within_their_memory_under_many_hostile_names() {
    let zone = Zone::new();
    let anchors = [zone.ds()];
    let (mut simulator, shared) = simulate_signed(&anchors, move |asked: &Message, server: Ipv4Addr| {
        let question = &asked.questions[0];
        Some(match question.rtype {
            _ if server == CHILD => answer(asked, vec![address(&question.name.to_string(), EVIL)]),
            Rtype::DNSKEY if question.name == name("evil.") => answer(asked, zone.sign(zone.keys())),
            _ => flood(&zone, asked),
        })
    });
    let octets = (MEMORY / 2) as usize;
    for round in 0..20 {
        let start = simulator.time().as_millis() as u64;
        for number in 0..1000 {
            let asked = format!("n{:05}x.evil.", round * 1000 + number);
            ask_at(&mut simulator, start + number * 10, 0, &asked);
        }
        let good = ask_at(&mut simulator, start + 5000, 0, "www.good.");
        simulator.run_until_answered().expect("replies");
        assert_eq!(addresses(&reply(&simulator, good)), [WEB]);
        let (cache, denials) = (shared.cache.statistics(), shared.denials.statistics());
        assert!(cache.octets as usize <= octets, "{}", cache.octets);
        assert!(denials.octets <= octets / 8 && shared.trust.size().1 <= octets / 4);
    }
    let denials = shared.denials.statistics();
    assert!(denials.evictions > 0 && denials.entries > 0, "{denials:?}");
    assert_good(&mut simulator);
}
