//! Measures the cost of verifying the next version of a zone if one name in a hundred has changed
//! and if one name has changed, compared with full and structural verification:
//! `verify_speed NAMES nsec|nsec3|nsec3-opt-out`. The zone is generated in memory, has delegations
//! and is signed with P-256.

use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::sign::PreviousZone;
use nonesuch_dnssec::verify::{Mode, Report, VerifiedPredecessor, VerifyInputs, verify_with_inputs};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, VerifyOptions, sign, verify};
use nonesuch_zone::{Contents, read};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

const NOW: u32 = 1_750_000_000;
const RUNS: usize = 5;

/// Returns the CPU time of all current threads, in seconds.
fn cpu() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
}

/// Generates a zone with `names` delegations. Every `nth` of them has another DS record in each
/// version.
fn zone(names: u32, nth: u32, version: u32) -> Contents {
    let mut text = format!(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 hostmaster {version} 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n"
    );
    for at in 0..names {
        let label = format!("d{:x}", u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
        let _ = write!(text, "{label} NS ns1.operator{0}.test.\n{label} NS ns2.operator{0}.test.\n", at % 50);
        // Six of ten delegations have a DS record, and of those each `nth` has another digest in
        // each version.
        if at % 10 < 6 {
            let digest = if at % nth == 0 { format!("{version:02x}") } else { "0a".to_owned() };
            let _ = writeln!(text, "{label} DS {} 13 2 {}", at % 60000, digest.repeat(32));
        }
    }
    let apex = "example.".parse().expect("a name");
    read::read_text(text.as_bytes(), Path::new("memory"), Some(&apex)).expect("a zone").contents
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let names: u32 = arguments[1].parse().expect("a number");
    let mechanism: Mechanism = arguments[2].parse().expect("a mechanism");
    let apex = "example.".parse().expect("a name");
    let key = |flags| KeyPair::generate(&apex, flags, Algorithm::ECDSAP256SHA256, None).expect("a key");
    let keys = KeySet::new(&apex, vec![key(257), key(256)]).expect("keys");
    // Signs the previous version and the version to verify, which reuses signatures of the previous
    // version.
    let versions = |nth| {
        let mut options = SignOptions::new(mechanism, NOW - 3600, NOW + 14 * 86_400);
        let old = sign(&zone(names, nth, 1), &keys, &options).expect("signed").into_contents();
        options.previous = Some(PreviousZone::new(&old, 14 * 86_400));
        let new = sign(&zone(names, nth, 2), &keys, &options).expect("signed").into_contents();
        (old, new)
    };
    let ((old, new), (before, after)) = (versions(100), versions(names));
    let mode = |mode| VerifyOptions { now: Some(NOW), mode, ..VerifyOptions::default() };
    let (earlier, earlier_one) = (
        VerifiedPredecessor::from_record(&old, Some(NOW)),
        VerifiedPredecessor::from_record(&before, Some(NOW)),
    );
    let known = |earlier| VerifyInputs { predecessor: Some(earlier), ..VerifyInputs::default() };
    let ways: [(&str, &dyn Fn() -> Report); 4] = [
        ("full", &|| verify(&new, &mode(Mode::Full))),
        ("changed, one name in 100", &|| verify_with_inputs(&new, &mode(Mode::Full), &known(earlier))),
        ("changed, one name", &|| verify_with_inputs(&after, &mode(Mode::Full), &known(earlier_one))),
        ("structural", &|| verify(&new, &mode(Mode::Structural))),
    ];
    let mut times = vec![(Vec::new(), Vec::new()); ways.len()];
    let mut reports = vec![Report::default(); ways.len()];
    for _ in 0..RUNS {
        for (at, (_, run)) in ways.iter().enumerate() {
            let (begun, before) = (Instant::now(), cpu());
            reports[at] = run();
            times[at].0.push((cpu() - before) * 1e3);
            times[at].1.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (((way, _), (cpu, wall)), report) in ways.iter().zip(times).zip(reports) {
        let (cpu, wall) = (median(cpu), median(wall));
        let Report { signatures_verified: verified, signatures_kept: kept, .. } = report;
        let count = report.fault_count();
        println!("{way:24} {cpu:8.1} ms CPU {wall:8.1} ms wall; {verified} verified, {kept} kept, {count}");
    }
}
