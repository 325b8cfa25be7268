//! Tests of the parameters and of the columns.

use super::parameters::{AlgorithmSet, Combination, DenialChoice, Parameters, ServerChoice};
use super::queries::QueryKind;
use super::*;
use crate::load::QueryList;
use nonesuch_proto::Rtype;

fn subjects(settings: &str) -> Vec<String> {
    let parameters: Parameters = toml::from_str(settings).expect("parameters");
    parameters.subjects().iter().map(ToString::to_string).collect()
}

#[test]
fn subjects_are_the_possible_combinations() {
    let found = subjects(
        "zones = [\"sld:100\"]\nservers = [\"nonesuch\", \"knot\"]\nalgorithms = [\"ED25519\", \"RSASHA256\"]\n\
         denial = [\"unsigned\", \"nsec3\", \"nsec5\", \"compact\", \"white-lies\"]\niterations = [0, 10]\n",
    );
    let expected = [
        "nonesuch, sld:100, unsigned",
        "nonesuch, sld:100, ED25519 nsec3",
        "nonesuch, sld:100, ED25519 nsec3, 10 iterations",
        "nonesuch, sld:100, RSASHA256/2048 nsec3",
        "nonesuch, sld:100, RSASHA256/2048 nsec3, 10 iterations",
        "nonesuch, sld:100, ED25519 nsec5",
        "nonesuch, sld:100, RSASHA256/2048 nsec5",
        "nonesuch, sld:100, ED25519 compact",
        "nonesuch, sld:100, RSASHA256/2048 compact",
        "nonesuch, sld:100, ED25519 white-lies",
        "nonesuch, sld:100, RSASHA256/2048 white-lies",
        "knot, sld:100, unsigned",
        "knot, sld:100, ED25519 nsec3",
        "knot, sld:100, ED25519 nsec3, 10 iterations",
        "knot, sld:100, RSASHA256/2048 nsec3",
        "knot, sld:100, RSASHA256/2048 nsec3, 10 iterations",
        "knot, sld:100, ED25519 compact",
        "knot, sld:100, RSASHA256/2048 compact",
    ];
    assert_eq!(found, expected);
}

#[test]
fn combinations_replace_algorithms_and_denial() {
    let found = subjects(
        "servers = [\"nonesuch\", \"nsd\"]\nalgorithms = [\"MLDSA44\"]\niterations = [10]\n\
         combinations = [\"unsigned\", \"ED25519+8/2048 nsec3\", \"ED25519 nsec5\"]\n",
    );
    let expected = [
        "nonesuch, sld:1000, unsigned",
        "nonesuch, sld:1000, ED25519+RSASHA256/2048 nsec3, 10 iterations",
        "nonesuch, sld:1000, ED25519 nsec5",
        "nsd, sld:1000, unsigned",
        "nsd, sld:1000, ED25519+RSASHA256/2048 nsec3, 10 iterations",
    ];
    assert_eq!(found, expected);
    for wrong in ["", "ED25519", "nsec3", "ED25519 unsigned", "X nsec3"] {
        assert!(wrong.parse::<Combination>().is_err(), "{wrong}");
    }
}

#[test]
fn a_transition_needs_each_nsec3_zone_with_nsec5() {
    let found = subjects(
        "zones = [\"sld:100\"]\nservers = [\"nonesuch\", \"knot\"]\nalgorithms = [\"ED25519\", \"ED25519+MLDSA44\"]\n\
         denial = [\"nsec3\"]\niterations = [5]\nconservative-nsec5 = true\n",
    );
    let expected = [
        "nonesuch, sld:100, ED25519 nsec3, 5 iterations",
        "nonesuch, sld:100, ED25519+MLDSA44 nsec3, 5 iterations",
        "knot, sld:100, ED25519 nsec3, 5 iterations",
        "knot, sld:100, ED25519+MLDSA44 nsec3, 5 iterations",
        "nonesuch, sld:100, ED25519 nsec5",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_load_has_each_payload_at_each_rate() {
    let loads = |settings: &str| -> Vec<(u16, Option<f64>)> {
        let parameters: Parameters = toml::from_str(settings).expect("parameters");
        parameters.loads_of(()).map(|((), payload, rate)| (payload, rate)).collect()
    };
    assert_eq!(loads("udp-octets = 512"), [(512, None)]);
    let expected = [(512, None), (512, Some(9.0)), (1232, None), (1232, Some(9.0))];
    assert_eq!(loads("payloads = [512, 1232]\nrates = [0, 9]"), expected);
}

#[test]
fn only_datagrams_count_for_the_size_over_udp() {
    // One response of 100 octets, one of 40 octets that was truncated and replaced by 1000 octets.
    let report = LoadReport {
        received: 2,
        response_octets_mean: 550.0,
        truncated: 1,
        truncated_octets_mean: Some(40.0),
        followed: Some(1),
        followed_octets_mean: Some(1000.0),
        ..LoadReport::default()
    };
    assert_eq!(udp_octets(&report), Some(70.0));
    assert_eq!(udp_octets(&LoadReport::default()), None);
}

#[test]
fn all_error_codes_together_are_frequent() {
    let codes = |refused, failed| {
        let rcodes = [("NOERROR", 985), ("NXDOMAIN", 5), ("REFUSED", refused), ("SERVFAIL", failed)];
        let rcodes = rcodes.map(|(rcode, count)| (rcode.to_owned(), count)).into();
        let report = LoadReport { received: 1000, rcodes, ..LoadReport::default() };
        frequent_error_codes(&report).join(" ")
    };
    assert_eq!(codes(6, 5), "REFUSED SERVFAIL");
    assert_eq!(codes(5, 5), "");
}

#[test]
fn the_size_of_queries_includes_the_mean_random_label() {
    let list = QueryList::parse("list".as_ref(), b"example. A\n").expect("a list");
    let added = |kind: &str| {
        let kind: QueryKind = kind.parse().expect("a kind");
        kind.query_octets(&list) - QueryKind::Existing.query_octets(&list)
    };
    // A length octet and six characters.
    assert_eq!([added("label"), added("label:100"), added("label:0")], [7.0, 7.0, 0.0]);
    assert!((added("label:30") - 2.1).abs() < 1e-9);
}

#[test]
fn names_in_all_forms() {
    for text in
        ["existing", "denied", "denied:8", "label", "label:50", "referral", "no-data", "wildcard", "DNSKEY"]
    {
        assert_eq!(text.parse::<QueryKind>().map(|kind| kind.to_string()), Ok(text.to_owned()));
    }
    assert_eq!("DNSKEY".parse(), Ok(QueryKind::Apex(Rtype::DNSKEY)));
    for wrong in ["", "denied:", "denied:101", "denied:x", "label:", "label:101", "no data"] {
        assert!(wrong.parse::<QueryKind>().is_err(), "{wrong}");
    }
    assert!("unbound".parse::<ServerChoice>().is_err(), "a resolver");
    assert_eq!(
        "ED25519+8/2048".parse::<AlgorithmSet>().expect("a set").to_string(),
        "ED25519+RSASHA256/2048"
    );
    assert!("ED25519+".parse::<AlgorithmSet>().is_err());
    assert_eq!("unsigned".parse(), Ok(DenialChoice(None)));
}

#[test]
fn the_standard_deviation_is_that_of_the_values() {
    // 2, 4, 4, 4, 5, 5, 7, 9 µs: the sum of the squared differences is 32.
    let histogram = [(2000, 1), (4000, 3), (5000, 2), (7000, 1), (9000, 1)];
    let deviation = standard_deviation_us(&histogram).expect("several values");
    assert!((deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-9);
    assert_eq!((standard_deviation_us(&[]), standard_deviation_us(&[(5, 1)])), (None, None));
}
