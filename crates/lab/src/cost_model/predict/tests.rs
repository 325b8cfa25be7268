//! The figures of document 000, and predictions for simulated recordings.

use super::*;
use crate::cost_model::simulate::Simulation;
use crate::record::tests::sample;

fn options<'a>(recordings: &'a [LabelledRecording], rates: &'a [Rate]) -> PredictOptions<'a> {
    PredictOptions {
        recordings,
        load: GivenLoad::default(),
        rates,
        cores: 4,
        home_router: HomeRouterOptions::default(),
        current_algorithm: None,
        dnskey_share: None,
        ranking: None,
        intervals: IntervalChoice::Automatic,
    }
}

fn simulated(simulation: &Simulation) -> LabelledRecording {
    LabelledRecording { resolver: None, population: None, recording: simulation.recording() }
}

#[test]
fn the_document_gets_its_shares_of_a_core() {
    let rates = published();
    let prediction = predict(&options(&[], &rates)).expect("a prediction");
    let resolver = &prediction.resolvers[0];
    let shares: Vec<f64> = resolver.today.requirements.iter().map(|needs| needs.core_share * 100.0).collect();
    // As the document rounds them.
    let rounded =
        |place: usize, decimals: i32| (shares[place] * 10f64.powi(decimals)).round() / 10f64.powi(decimals);
    assert_eq!(
        [rounded(0, 0), rounded(1, 0), rounded(2, 1), rounded(3, 1), rounded(4, 1)],
        [12.0, 4.0, 1.5, 1.1, 3.1]
    );
    assert!(resolver.all_signed.is_none());
    let input =
        |name: &str| resolver.inputs.iter().find(|input| input.name.starts_with(name)).expect("an input");
    assert_eq!((input("S_v").value, input("S_v").provenance), (150.0, Provenance::Document));
    assert_eq!((input("Q").value, input("Q").provenance), (1800.0, Provenance::Assumed));
}

#[test]
fn the_home_router_of_the_document_keeps_up_and_its_other_parameters_are_assumed() {
    let rates = published();
    let mut options = options(&[], &rates);
    let router = predict(&options).expect("a prediction").home_router;
    assert!(router.keeps_up && router.keeps_up_all_signed.is_none());
    let provenances: Vec<Provenance> = router.inputs.iter().map(|input| input.provenance).collect();
    let (document, assumed) = (Provenance::Document, Provenance::Assumed);
    assert_eq!(provenances, [document, document, document, assumed, assumed, assumed]);
    assert_eq!([0, 1, 2].map(|place: usize| router.inputs[place].value), [10.0, 60.0, 35.0]);
    // Each query needs a verification.
    options.load = GivenLoad { validations: Some(1800.0), queries: Some(1800.0), signed_share: Some(1.0) };
    options.home_router = HomeRouterOptions { cache_hit_rate: Some(0.4), queries_per_miss: Some(1.0) };
    let router = predict(&options).expect("a prediction").home_router;
    assert!(
        (router.queries - 36.0).abs() < 1e-9 && !router.keeps_up && router.keeps_up_all_signed == Some(false)
    );
    assert!((router.sufficient_hit_rate - 25.0 / 60.0).abs() < 1e-12);
}

#[test]
fn a_given_load_grows_with_the_share_of_signed_responses() {
    let rates = published();
    let load = GivenLoad { validations: Some(150.0), queries: Some(1000.0), signed_share: Some(0.25) };
    let prediction = predict(&PredictOptions { load, ..options(&[], &rates) }).expect("a prediction");
    let all = prediction.resolvers[0].all_signed.as_ref().expect("scenario 2");
    assert!((all.scenario.validations.peak - 600.0).abs() < 1e-9);
    let p384 = all.scenario.requirements[0];
    assert!((p384.max_queries.expect("a limit") - 1236.0 / 0.6).abs() < 1e-9 && p384.cores == 1);
    assert!((p384.max_queries_all_cores.expect("a limit") - 4.0 * 1236.0 / 0.6).abs() < 1e-9);
    let (first, last) = (all.curve[0], all.curve[all.curve.len() - 1]);
    assert!((first.peak - 150.0).abs() < 1e-9 && (last.peak - 600.0).abs() < 1e-9);
}

#[test]
fn a_recording_predicts_what_happens_if_all_zones_are_signed() {
    let rates = published();
    let today = Simulation::default();
    let recordings = [simulated(&today)];
    let prediction = predict(&options(&recordings, &rates)).expect("a prediction");
    let resolver = &prediction.resolvers[0];
    let all = resolver.all_signed.as_ref().expect("scenario 2");
    // The same resolver, with each response signed.
    let [r, _, s, alpha_v] = today.slopes;
    let signed = Simulation { slopes: [r, 0.999, s, alpha_v], seed: 2, ..today };
    let columns = Columns::of(&signed.recording()).expect("valid");
    let observed = mean(columns.rates(Symbol::Verified));
    let found = all.scenario.validations.mean;
    assert!((found - observed).abs() < 0.02 * observed, "{found} {observed}");
    assert!(all.mean_interval.expect("an interval").contains(found));
    assert_eq!(all.growth.first().map(|point| point.domains), Some(0));
    assert!(all.growth.is_sorted_by(|one, other| one.signed_share <= other.signed_share));
    assert!(resolver.octets.len() == 4 && resolver.today.validations.peak > resolver.today.validations.mean);
    assert!(resolver.inputs.iter().any(|input| input.provenance == Provenance::Assumed));
}

#[test]
fn the_report_has_both_scenarios_and_their_charts() {
    let rates = published();
    let recordings = [simulated(&Simulation::default())];
    let prediction = predict(&options(&recordings, &rates)).expect("a prediction");
    let text = prediction.text();
    for part in
        ["SCENARIO 1", "SCENARIO 2", "SIZE OF RESPONSES", "HOME ROUTER", "keeps up", "assumed", "4 cores"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = prediction.page(&sample("run", "machine")).expect("a page");
    assert_eq!(page.matches("<figure").count(), 3);
    assert!(page.contains("OpenSSL 1.0.2") && page.contains("Popular domains first"));
    let given = predict(&options(&[], &rates)).expect("a prediction").text();
    assert!(
        given.contains("--signed-share") && given.contains("The sizes of responses are unknown"),
        "{given}"
    );
}

#[test]
fn without_rates_or_usable_windows_there_is_no_prediction() {
    assert!(matches!(predict(&options(&[], &[])), Err(PredictError::NoRates)));
    let rates = published();
    let mut one = simulated(&Simulation::default());
    one.recording.windows.truncate(3);
    assert!(matches!(predict(&options(&[one], &rates)), Err(PredictError::Fit(_))));
    let mut falling = simulated(&Simulation::default());
    let most = falling.recording.windows.iter().map(|window| window.verified).max().expect("windows");
    falling.recording.windows.iter_mut().for_each(|window| window.verified = most - window.verified);
    assert!(matches!(predict(&options(&[falling], &rates)), Err(PredictError::NoSlope { .. })));
}
