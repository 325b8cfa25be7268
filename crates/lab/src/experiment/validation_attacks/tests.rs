//! From parameters to report: known figures, and rejected parameters.

use super::measure::Measurement;
use super::probe::{Responses, Series};
use super::*;
use crate::experiment::method::Method;
use crate::experiment::results::{FORMAT, Record};
use crate::experiment::{Definition, DefinitionError, ParameterOverrides, Results, store};
use crate::load::{Latency, LoadReport};
use crate::peers::Peer;
use std::collections::BTreeMap;

const SERIES: [Measurement; 4] =
    [Measurement::Hit, Measurement::NewZone, Measurement::NewName, Measurement::Repeated];
const LOADS: [Measurement; 3] = [Measurement::Alone, Measurement::Rate, Measurement::Saturated];

fn find(set: &[(&str, &str)], full: bool) -> Result<Definition, DefinitionError> {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Definition::find("validation-attacks", ParameterOverrides { full, set: &set })
}

fn parameters(set: &[(&str, &str)], full: bool) -> Parameters {
    match find(set, full).expect("valid").method {
        Method::ValidationAttacks(parameters) => parameters,
        other => panic!("{other:?}"),
    }
}

/// A resolver in the data: CPU times of the series in µs, p99 of the other clients in µs.
struct Case {
    resolver: Resolver,
    attack: &'static str,
    cpu: [f64; 4],
    p99: [f64; 3],
    /// Number of answers with AD in each series and load with hostile queries.
    authenticated: u64,
}

impl Case {
    fn rows(&self, round: u32) -> Vec<Row> {
        let attack: Attack = self.attack.parse().expect("an attack");
        // Rounds differ, but not the ratios of both resolvers.
        let speed = 1.0 + f64::from(round);
        let series = SERIES.into_iter().zip(self.cpu).map(|(measurement, cpu)| {
            let hit = measurement == Measurement::Hit;
            let responses = Responses {
                servfail: if hit { 0 } else { 20 },
                noerror: if hit { 20 } else { 0 },
                sampled: 20,
                authenticated: if hit { 20 } else { self.authenticated },
                ..Responses::default()
            };
            let series = Series {
                queries: 20,
                cpu_us: Some(speed * cpu),
                cpu_max_us: Some(2.0 * speed * cpu),
                responses,
            };
            Row::new(&attack, self.resolver, measurement).with_series(&series, false)
        });
        let loads = LOADS.into_iter().zip(self.p99).map(|(measurement, p99)| {
            let latency = Latency { p50: 100.0, p99, max: 2.0 * p99, ..Latency::default() };
            let others = LoadReport {
                sent: 1000,
                received: 990,
                lost: 10,
                latency_us: Some(latency),
                ..LoadReport::default()
            };
            let row = Row::new(&attack, self.resolver, measurement).with_others(&others);
            if measurement == Measurement::Alone {
                return row;
            }
            let rcodes = BTreeMap::from([("SERVFAIL".to_owned(), 300)]);
            row.with_hostile(&LoadReport {
                sent: 320,
                lost: 20,
                seconds: 1.5,
                rcodes,
                ..LoadReport::default()
            })
        });
        series.chain(loads).map(|row| Row { round, ..row }).collect()
    }
}

/// Two rounds of an attack on two resolvers, and of one that a peer does not know.
fn sample(p99_saturated: f64, authenticated: u64) -> Results {
    let cases = [
        Case {
            resolver: Resolver::Nonesuch,
            attack: "keytrap-p256",
            cpu: [20.0, 700.0, 400.0, 30.0],
            p99: [500.0, 700.0, p99_saturated],
            authenticated,
        },
        Case {
            resolver: Resolver::Peer(Peer::Unbound),
            attack: "keytrap-p256",
            cpu: [25.0, 7000.0, 8000.0, 30.0],
            p99: [500.0, 20_000.0, 50_000.0],
            authenticated: 0,
        },
        Case {
            resolver: Resolver::Nonesuch,
            attack: "nsec5",
            cpu: [20.0, 600.0, 300.0, 30.0],
            p99: [500.0, 600.0, 1400.0],
            authenticated: 20,
        },
    ];
    let experiment = find(&[], false).expect("built in");
    let mut findings = Findings::new(experiment.presentation().columns());
    for round in 0..2 {
        for case in &cases {
            let attack = case.attack.parse().expect("an attack");
            case.rows(round)
                .into_iter()
                .try_for_each(|row| push(row, round, &attack, &mut findings))
                .expect("rows");
        }
    }
    let titles: Vec<_> =
        Attack::all().iter().map(|attack| json!({ "name": attack.name, "title": attack.title })).collect();
    let about = json!({ "version": "Nonesuch 0", "attacks": titles, "resolver_cpu": 1, "load_cpu": null });
    let record = Record {
        seconds: None,
        format: FORMAT,
        experiment,
        run: crate::record::tests::sample("a-run", "a-machine"),
        about: BTreeMap::from([("validation-attacks".to_owned(), about)]),
        notes: findings.notes,
    };
    Results { record, data: findings.data }
}

#[test]
fn the_report_states_the_aims_and_each_resolver() {
    let results = sample(2_000.0, 0);
    let report = results.report().expect("a report");
    for part in ["3 of 3 aims are met", "0.050 to 0.10 times", "2.80 ms"] {
        assert!(report.lead.contains(part), "{part}: {}", report.lead);
    }
    for part in ["keytrap-p256", "unbound", "nsec5", "120 SERVFAIL", "0.050", "met"] {
        assert!(report.text.contains(part), "{part} is not in\n{}", report.text);
    }
    assert!(!report.text.contains("missed") && results.record.notes.is_empty(), "{}", report.text);
    let page = results.page().expect("a page");
    for part in ["12 colliding keys, 24 RRSIGs, P-256", "aim", "20 hostile zones"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_missed_aim_and_forged_answers_with_the_flag_ad_are_named() {
    let results = sample(7_000.0, 1);
    let report = results.report().expect("a report");
    assert!(report.lead.contains("2 of 3 aims are met"), "{}", report.lead);
    assert!(report.text.contains("missed"), "{}", report.text);
    // The denials of `nsec5` are genuine: AD is right.
    let expected = ["nonesuch, keytrap-p256: answers with forged data have the flag AD."];
    assert_eq!(results.record.notes, expected);
    assert!(report.text.contains(expected[0]), "{}", report.text);
}

#[test]
fn other_clients_without_the_flag_ad_are_noted() {
    let attack: Attack = "ds".parse().expect("an attack");
    let mut findings = Findings::new(find(&[], false).expect("built in").presentation().columns());
    let response = [0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
    let report = LoadReport { samples: vec![response], ..LoadReport::default() };
    let row = Row::new(&attack, Resolver::Nonesuch, Measurement::Alone).with_others(&report);
    push(row, 0, &attack, &mut findings).expect("a row");
    assert_eq!(findings.notes, ["nonesuch, ds: answers to other clients without the flag AD."]);
}

#[test]
fn results_are_kept_and_read_back() {
    let (directory, results) = (tempfile::tempdir().expect("a directory"), sample(2_000.0, 0));
    store::save(directory.path(), &results).expect("saved");
    assert_eq!(*store::load(directory.path()).expect("loaded").first(), results);
}

#[test]
fn parameters_are_those_of_the_file_and_wrong_ones_are_refused() {
    let quick = parameters(&[], false);
    assert_eq!((quick.rounds.value(), quick.resolvers.len(), quick.attacks.len()), (1, 3, 6));
    let full = parameters(&[], true);
    assert_eq!(full.attacks, Attack::all());
    assert_eq!((full.rounds.value(), full.resolvers.len()), (3, 5));
    let own = parameters(&[("attacks", "ds, nsec5"), ("rate", "50")], false);
    assert_eq!((own.attacks.len(), own.rate.value(), own.zones_of(&own.attacks[0])), (2, 50, 4000));
    assert_eq!(own.zones_of(&own.attacks[1]), 20);
    for (key, value, word) in
        [("attacks", "keytrap", "keytrap-p256"), ("resolvers", "knot", "'knot'"), ("zones", "0", "from 1")]
    {
        let error = find(&[(key, value)], false).expect_err(value);
        assert!(matches!(&error, DefinitionError::Set { message, .. } if message.contains(word)), "{error}");
    }
}

#[test]
fn the_quick_variant_takes_at_most_five_minutes() {
    let quick = parameters(&[], false).duration().as_secs();
    assert!((60..300).contains(&quick), "{quick}");
    assert!(parameters(&[], true).duration().as_secs() > 1800);
}
