//! Random zones: what the cache proves is true in the zone, and a client validates it.

use super::signed_zone::{SignedZone, Truth};
use super::*;
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::Name;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

const TYPES: [Rtype; 6] = [Rtype::A, Rtype::TXT, Rtype::DS, Rtype::NS, Rtype::CNAME, Rtype::ANY];

/// Every kind of name.
const EVERY_KIND: &str = "a A 192.0.2.1\na.a A 192.0.2.1\nb.a.a TXT \"t\"\nc CNAME a\nd NS ns.d\nns.d A 192.0.2.9\n\
    n DNAME target.test.\no.n TXT \"occluded\"\ns NS ns.elsewhere.test.\n\
    s DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n\
    *.w A 192.0.2.1\nx.w A 192.0.2.1\n*.v NS ns.elsewhere.test.\na.*.e TXT \"t\"\nx.y.ent A 192.0.2.1\n\
    i.un NS ns.elsewhere.test.\n*.cn CNAME a\nx.*.star A 192.0.2.1\nk.l.w.d.a A 192.0.2.1\n";

fn any_name() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec!["a", "b", "C", "*", "d", "z1"]);
    prop::collection::vec(label, 1..5).prop_map(|labels| labels.join("."))
}

/// Owners from a small alphabet, so that zone cuts, DNAME records, wildcards and empty non-terminals
/// coincide.
fn any_zone() -> impl Strategy<Value = String> {
    let data = prop::sample::select(vec![
        "A 192.0.2.1",
        "A 192.0.2.2",
        "TXT \"text\"",
        "TYPE65400 \\# 2 0102",
        "NS ns.elsewhere.test.",
        "NS ns.elsewhere.test.",
        "DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
        "DNAME target.test.",
    ]);
    let records = prop::collection::vec((any_name(), data), 0..16)
        .prop_map(|records| records.into_iter().map(|(owner, data)| format!("{owner} {data}\n")).collect());
    prop_oneof![4 => records, 1 => Just(EVERY_KIND.to_owned())]
}

fn any_mechanism() -> impl Strategy<Value = Mechanism> {
    prop::sample::select(vec![
        Mechanism::Nsec,
        Mechanism::Nsec,
        Mechanism::Nsec3,
        Mechanism::Nsec3,
        Mechanism::Nsec3OptOut,
        Mechanism::Nsec5,
        Mechanism::Nsec5OptOut,
    ])
}

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

/// The existing names, names around and below them, and the names of `random`.
fn questions(zone: &SignedZone, random: &[String]) -> BTreeSet<Name> {
    let mut all: BTreeSet<Name> = random.iter().map(|text| name(&format!("{text}.example."))).collect();
    for owner in zone.names.keys() {
        all.insert(owner.clone());
        for label in ["x", "*", "A"] {
            let Ok(child) = Name::prepend(label.as_bytes(), owner.view()) else { continue };
            all.insert(Name::prepend(b"deep", child.view()).unwrap());
            all.insert(child);
        }
    }
    all
}

fn is_nsec5(mechanism: Mechanism) -> bool {
    matches!(mechanism, Mechanism::Nsec5 | Mechanism::Nsec5OptOut)
}

/// The names for which an NSEC5 server generates proofs: existing names and next closer names.
fn names_to_prove(zone: &SignedZone, questions: &BTreeSet<Name>) -> BTreeSet<Name> {
    let next_closer = |owner: &Name| match zone.truth(owner.view(), Rtype::A) {
        Truth::NxDomain { encloser }
        | Truth::UnusualWildcard { encloser }
        | Truth::WildcardData { encloser }
        | Truth::WildcardNoData { encloser } => {
            Some(owner.view().suffix(encloser.view().label_count() + 1).to_canonical())
        }
        Truth::Elsewhere | Truth::Data | Truth::NoData => None,
    };
    questions.iter().filter_map(next_closer).chain(zone.names.keys().cloned()).collect()
}

/// Checks what the cache proves for a question.
fn check(zone: &SignedZone, owner: &Name, rtype: Rtype, found: Option<&Found>) {
    let truth = zone.truth(owner.view(), rtype);
    let is_true = match (found, &truth) {
        (None, _) => true,
        (Some(Found::Denied(denied)), truth) => match denied.kind {
            NegativeKind::NxDomain => matches!(truth, Truth::NxDomain { .. }),
            NegativeKind::NoData(denied) => {
                denied == rtype && matches!(truth, Truth::NoData | Truth::WildcardNoData { .. })
            }
        },
        (
            Some(Found::Wildcard(wildcard)),
            Truth::NxDomain { encloser }
            | Truth::UnusualWildcard { encloser }
            | Truth::WildcardData { encloser }
            | Truth::WildcardNoData { encloser },
        ) => wildcard.source == Name::wildcard_below(encloser.view()).unwrap(),
        (Some(Found::Wildcard(_)), _) => false,
    };
    assert!(is_true, "{owner} {rtype}: {truth:?}, not {}", shown(found));
    match found {
        None => {}
        Some(Found::Denied(denied)) => zone.assert_validates_denial(owner.view(), rtype, denied),
        Some(Found::Wildcard(found)) => {
            let has_answer = matches!(truth, Truth::WildcardData { .. }) && rtype != Rtype::ANY;
            if has_answer {
                zone.assert_validates_wildcard(owner.view(), rtype, found);
            }
        }
    }
}

/// Returns what is found and the owners of the records, as text.
fn shown(found: Option<&Found>) -> String {
    let owners = |rrsets: &[Rrset]| {
        rrsets.iter().map(|rrset| format!("{} {}", rrset.owner, rrset.rtype)).collect::<Vec<_>>().join(", ")
    };
    match found {
        None => "nothing".into(),
        Some(Found::Denied(denied)) => format!("{:?} by {}", denied.kind, owners(&denied.authority)),
        Some(Found::Wildcard(found)) => format!("{} by {}", found.source, owners(&found.authority)),
    }
}

/// Whether a cache with all records must find what is true.
fn is_complete(truth: &Truth, found: Option<&Found>) -> bool {
    match truth {
        Truth::NxDomain { .. } => {
            matches!(found, Some(Found::Denied(denied)) if denied.kind == NegativeKind::NxDomain)
        }
        Truth::NoData | Truth::WildcardNoData { .. } => {
            matches!(found, Some(Found::Denied(denied)) if denied.kind != NegativeKind::NxDomain)
        }
        Truth::WildcardData { .. } => matches!(found, Some(Found::Wildcard(_))),
        Truth::Elsewhere | Truth::Data | Truth::UnusualWildcard { .. } => found.is_none(),
    }
}

proptest! {
    #![proptest_config(config(120, 8198))]

    #[test]
    fn what_is_proved_is_true(
        records in any_zone(), mechanism in any_mechanism(), random in prop::collection::vec(any_name(), 8),
        chosen: u64, proved: u128,
    ) {
        let zone = SignedZone::new(&records, mechanism);
        let (cache, questions) = (cache(), questions(&zone, &random));
        let is_chosen = |index: &usize| chosen >> (index % 64) & 1 == 1;
        let chain = zone.chain();
        for response in (0..chain.len()).filter(is_chosen) {
            cache.insert(&zone.keys, &[chain[response].clone(), zone.soa()], &mut Budget::default(), at(0));
        }
        if is_nsec5(mechanism) {
            for (index, owner) in names_to_prove(&zone, &questions).iter().enumerate() {
                if proved >> (index % 128) & 1 == 1 {
                    cache.insert(&zone.keys, &[zone.proof(owner)], &mut Budget::default(), at(0));
                }
            }
        }
        for owner in &questions {
            for rtype in TYPES {
                check(&zone, owner, rtype, prove(&cache, &owner.to_string(), rtype, 0).found.as_ref());
            }
        }
    }
}

proptest! {
    #![proptest_config(config(60, 4592))]

    #[test]
    fn with_all_records_everything_is_proved(
        records in any_zone(), mechanism in any_mechanism(), random in prop::collection::vec(any_name(), 8),
    ) {
        let zone = SignedZone::new(&records, mechanism);
        let (cache, questions) = (cache(), questions(&zone, &random));
        let mut responses = zone.chain();
        if is_nsec5(mechanism) {
            responses.extend(names_to_prove(&zone, &questions).iter().map(|owner| zone.proof(owner)));
        }
        let count = responses.len();
        responses.push(zone.soa());
        assert_eq!(cache.insert(&zone.keys, &responses, &mut Budget::default(), at(0)), count);
        for owner in &questions {
            for rtype in TYPES {
                let (truth, found) = (zone.truth(owner.view(), rtype), prove(&cache, &owner.to_string(), rtype, 0).found);
                check(&zone, owner, rtype, found.as_ref());
                if !matches!(mechanism, Mechanism::Nsec3OptOut | Mechanism::Nsec5OptOut) {
                    let found = found.as_ref();
                    prop_assert!(is_complete(&truth, found), "{owner} {rtype}: {truth:?}, not {}", shown(found));
                }
            }
        }
    }
}
