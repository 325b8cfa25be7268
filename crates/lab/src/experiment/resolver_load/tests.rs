//! The report of `transition` from known rows.

use super::*;
use crate::experiment::results::{FORMAT, Record};
use crate::experiment::{Definition, ParameterOverrides, Results};
use crate::testbed::{Resolver, UpstreamCounts};
use std::collections::BTreeMap;

const QUERIES: u64 = 100;

/// A row of 100 queries with these octets for each query between resolver and servers.
fn row(resolver: (&str, u8), denial: &str, traffic: &str, octets: u64) -> Row {
    Row {
        resolver: resolver.0.to_owned(),
        experimental: resolver.1,
        scheme: (denial != "unsigned").then(|| "ECDSA P-256".to_owned()),
        denial: denial.to_owned(),
        signers: "all".to_owned(),
        zone_server: Some(ZoneServer::Nonesuch),
        validation: 1,
        dnssec_ok: 1,
        traffic: traffic.to_owned(),
        outstanding: 10,
        transport: "udp".to_owned(),
        udp_octets: 1232,
        path: "direct".to_owned(),
        sent: QUERIES,
        received: QUERIES,
        noerror: QUERIES,
        authenticated: Some(0.0),
        with_nsec3: Some(0.0),
        seconds: 1.0,
        response_octets: Some(octets as f64),
        user_us: Some(50.0),
        system_us: Some(50.0),
        servers_us: Some(10.0),
        upstream: UpstreamCounts {
            upstream_udp: Some(QUERIES),
            upstream_tcp: Some(0),
            upstream_query_octets: Some(0),
            upstream_response_octets: Some(octets * QUERIES),
            ..UpstreamCounts::default()
        },
        ..Row::default()
    }
}

/// Two traffics in four states for Nonesuch, Nonesuch as an old resolver, and Unbound, which here
/// fails for names that do not exist in the conservative state.
fn sample() -> Results {
    let experiment = Definition::find("transition", ParameterOverrides::default()).expect("built in");
    let mut findings = Findings::new(experiment.presentation().columns());
    for resolver in [("nonesuch", 1), ("nonesuch", 0), ("unbound", 0)] {
        for (denial, octets) in [("unsigned", 100), ("nsec3", 300), ("nsec3+nsec5", 500), ("nsec5", 250)] {
            for traffic in ["existing", "denied"] {
                let mut row = row(resolver, denial, traffic, octets);
                let is_secure = match denial {
                    "unsigned" => false,
                    "nsec5" => resolver.1 == 1,
                    _ => true,
                };
                row.authenticated = Some(f64::from(u8::from(is_secure)));
                let has_nsec3 = traffic == "denied" && denial.starts_with("nsec3");
                row.with_nsec3 = Some(f64::from(u8::from(has_nsec3)));
                if resolver.0 == "unbound" && traffic == "denied" && denial == "nsec3+nsec5" {
                    (row.noerror, row.servfail) = (0, QUERIES);
                    (row.authenticated, row.with_nsec3) = (Some(0.0), Some(0.0));
                }
                findings.push(&row).expect("a row");
            }
        }
    }
    let about = json!({ "version": "Nonesuch", "resolver_cpu": 1, "load_cpu": null });
    let record = Record {
        seconds: None,
        format: FORMAT,
        experiment,
        run: crate::record::tests::sample("a-run", "a-machine"),
        about: BTreeMap::from([("resolver-load".to_owned(), about)]),
        notes: Vec::new(),
    };
    Results { record, data: findings.data }
}

#[test]
fn the_report_of_a_transition_judges_each_resolver_and_statement() {
    let results = sample();
    let report = results.report().expect("a report");
    let lead = &report.lead;
    for part in [
        "2 of 3 resolvers validate all answers",
        "validate only a part: unbound",
        "1.67 times the octets",
        "0.83 times the octets",
        "unsigned in 4 of 4 combinations",
    ] {
        assert!(lead.contains(part), "{part} is not in {lead}");
    }
    let page = results.page().expect("a page");
    // Of the 24 combinations, the failure of Unbound concerns two: it validates nothing, and has no
    // NSEC3 records for its client.
    for part in [
        "Of 24 combinations of statement, resolver and traffic, 22 agree",
        "Nonesuch, old",
        "failed",
        "names that do not exist",
        "0 % with NSEC3",
        "× 2.00",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn an_old_resolver_is_only_this_program_without_experimental_algorithms() {
    let set = [("experimental-algorithms".to_owned(), "[true, false]".to_owned())];
    let experiment =
        Definition::find("transition", ParameterOverrides { full: false, set: &set }).expect("built in");
    let crate::experiment::method::Method::ResolverLoad(parameters) = experiment.method else {
        panic!("another method")
    };
    let cases = parameters.resolver_cases();
    let old = cases.iter().filter(|case| case.resolver == Resolver::Nonesuch && !case.experimental);
    assert_eq!((cases.len(), old.count()), (parameters.resolvers.len() + 1, 1));
    let keys = parameters.load_cases().into_iter().find(|load| load.traffic == Traffic::Dnskey);
    assert_eq!(keys.map(|load| parameters.queries_of(&load)), Some(parameters.zones.value().into()));
}
