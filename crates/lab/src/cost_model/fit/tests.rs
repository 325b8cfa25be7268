//! Reports of simulated recordings, and refusal of recordings that cannot be fitted.

use super::*;
use crate::cost_model::columns::{MIN_WINDOWS, Symbol};
use crate::cost_model::simulate::{Noise, Simulation};
use crate::record::tests::sample;

fn labelled(simulation: &Simulation) -> LabelledRecording {
    LabelledRecording {
        resolver: Some("unbound".to_owned()),
        population: Some("campus".to_owned()),
        recording: simulation.recording(),
    }
}

fn fit_of(simulation: &Simulation) -> Fits {
    fit(&[labelled(simulation)], &FitOptions::default()).expect("a fit")
}

#[test]
fn a_stable_recording_passes_all_tests() {
    let fits = fit_of(&Simulation::default());
    let found = &fits.fits[0];
    assert!(found.stability.slices.len() == 4 && found.held_out.predicted_windows == 160);
    assert!(found.held_out.relative_bias.abs() < 0.02 && found.held_out.r_squared > 0.9);
    assert_eq!(
        found.held_out.verdict(),
        "Neither test finds a difference between predictions and observations."
    );
    assert!(fits.equality.is_empty() && fits.worst_case == 0);
}

#[test]
fn tests_of_a_stable_recording_seldom_reject() {
    let (mut bias, mut distribution, mut unstable) = (0, 0, 0);
    for seed in 0..200 {
        let noise = Noise::Correlated { correlation: 0.5 };
        let found = &fit_of(&Simulation { noise, seed, windows: 1440, ..Simulation::default() }).fits[0];
        bias += u32::from(found.held_out.bias_test.rejects);
        distribution += u32::from(found.held_out.distribution_test.rejects);
        unstable += u32::from(found.stability.drifts[1].test.rejects());
    }
    println!("of 200 reject: bias {bias}, distribution {distribution}, stability of α_s {unstable}");
    assert!(bias <= 24 && distribution <= 24 && unstable <= 30, "{bias} {distribution} {unstable}");
}

/// A recording in which α_s grows by half at its last third.
fn drifting() -> Recording {
    let mut recording = Simulation::default().recording();
    let later = Simulation { slopes: [0.97, 0.33, 1.4, 0.31], ..Simulation::default() }.recording();
    recording.windows[320..].clone_from_slice(&later.windows[320..]);
    recording
}

#[test]
fn a_drift_is_found_by_criteria_ii_and_iv() {
    let recording = LabelledRecording { recording: drifting(), ..labelled(&Simulation::default()) };
    let fits = fit(&[recording], &FitOptions::default()).expect("a fit");
    let found = &fits.fits[0];
    let drift =
        |name: &str| found.stability.drifts.iter().find(|drift| drift.parameter == name).expect("a drift");
    assert!(drift("α_s").test.rejects() && drift("α_s").relative > 0.3);
    assert!(!drift("s").test.rejects() && drift("s").relative < 0.05);
    assert!(found.held_out.bias_test.rejects && found.held_out.distribution_test.rejects);
    assert!(found.held_out.relative_bias > 0.2);
}

#[test]
fn recordings_are_compared_and_the_worst_case_is_named() {
    let slopes = [0.97, 0.22, 1.4, 0.6];
    let other = Simulation { name: "other".to_owned(), slopes, seed: 9, ..Simulation::default() };
    let fits =
        fit(&[labelled(&Simulation::default()), labelled(&other)], &FitOptions::default()).expect("a fit");
    assert_eq!(fits.worst_case, 1);
    let p = |name: &str| {
        fits.equality.iter().find(|equality| equality.parameter == name).expect("a parameter").test.p_value
    };
    assert!(p("α_v") < 1e-6 && p("a") < 1e-6 && p("r") > 0.001);
    let text = fits.text();
    for part in [
        "CRITERION I:",
        "CRITERION II:",
        "CRITERION III:",
        "CRITERION IV:",
        "The worst case is unbound, campus: other",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_report_names_the_method_of_intervals_and_has_charts() {
    let correlated = Simulation { noise: Noise::Correlated { correlation: 0.6 }, ..Simulation::default() };
    let fits = fit_of(&correlated);
    assert!(fits.text().contains("HAC (Newey-West, prewhitened, 28 lags)"), "{}", fits.text());
    assert!(fit_of(&Simulation::default()).text().contains("least squares"));
    let page = fits.page(&sample("run", "machine")).expect("a page");
    // Residuals of four lines, two charts of predictions, and a chart for each of five parameters.
    assert_eq!(page.matches("<figure").count(), 11);
    let json = serde_json::to_value(&fits).expect("JSON");
    assert_eq!(json["fits"][0]["model"]["lines"][0]["intervals"]["method"], "newey-west");
    assert_eq!(json["fits"][0]["model"]["lines"][0]["intervals"]["lags"], 28);
}

fn error_of(change: impl Fn(&mut Recording)) -> FitError {
    let mut recording = Simulation::default().recording();
    change(&mut recording);
    let labelled = LabelledRecording { resolver: None, population: None, recording };
    fit(&[labelled], &FitOptions::default()).expect_err("refused")
}

#[test]
fn recordings_that_cannot_be_fitted_are_refused() {
    assert_eq!(fit(&[], &FitOptions::default()).err(), Some(FitError::NoRecordings));
    let name = || "simulated".to_owned();
    let few = error_of(|recording| recording.windows.truncate(MIN_WINDOWS - 1));
    assert_eq!(few, FitError::TooFewWindows { recording: name(), found: MIN_WINDOWS - 1 });
    let none = error_of(|recording| recording.windows.clear());
    assert_eq!(none, FitError::TooFewWindows { recording: name(), found: 0 });
    let zero = error_of(|recording| recording.windows.iter_mut().for_each(|window| window.verified = 0));
    assert_eq!(zero, FitError::AllZero { recording: name(), symbol: Symbol::Verified });
    let constant = error_of(|recording| recording.windows.iter_mut().for_each(|window| window.queries = 700));
    assert_eq!(constant, FitError::Constant { recording: name(), symbol: Symbol::Queries });
    let swapped = error_of(|recording| {
        recording.windows.iter_mut().for_each(|window| {
            std::mem::swap(&mut window.responses, &mut window.signed_responses);
        });
    });
    assert!(
        matches!(swapped, FitError::Contradiction { number: 1, large: Symbol::Responses, .. }),
        "{swapped}"
    );
    let empty = error_of(|recording| recording.windows[3].length = 0);
    assert!(matches!(empty, FitError::NoLength { number: 4, .. }), "{empty}");
}

#[test]
fn windows_of_another_length_are_not_used() {
    let mut recording = Simulation::default().recording();
    recording.windows[10].length /= 2;
    let labelled = LabelledRecording { resolver: None, population: None, recording };
    let fits = fit(&[labelled], &FitOptions::default()).expect("a fit");
    assert_eq!((fits.fits[0].omitted_windows, fits.fits[0].model.windows), (1, 479));
    assert!(fits.text().contains("another length, which are not used: 1."));
    // Window 11 is missing.
    assert_eq!(fits.fits[0].gaps, 1);
}

/// Points that are all on the line have no residuals to test.
#[test]
fn a_perfect_line_is_fitted() {
    let mut recording = Simulation::default().recording();
    recording.windows.iter_mut().for_each(|window| window.responses = window.queries);
    let labelled = LabelledRecording { resolver: None, population: None, recording };
    let fits = fit(&[labelled], &FitOptions::default()).expect("a fit");
    let line = &fits.fits[0].model.lines[0];
    assert!((line.slope.value - 1.0).abs() < 1e-12 && line.r_squared > 1.0 - 1e-12);
    assert!(!fits.text().contains("NaN"), "{}", fits.text());
}

#[test]
fn the_smallest_recording_is_fitted() {
    let fits = fit_of(&Simulation { windows: MIN_WINDOWS, ..Simulation::default() });
    assert!(fits.fits[0].stability.slices.is_empty());
    assert!(fits.text().contains("too few for two slices"));
}
