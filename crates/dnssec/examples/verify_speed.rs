//! Measures the time for verifying a version of a zone of which one name in a hundred, or one name,
//! differs from a verified previous version. Compares it with full and structural verification.
//!
//! Usage: `verify_speed NAMES nsec|nsec3|nsec3-opt-out`. The zone is generated in memory, has
//! `NAMES` delegations and is signed with ECDSA P-256.

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
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
}

/// Generates a zone with `names` delegations. Six of ten have a DS record. Where the number of the
/// delegation is a multiple of `change_interval`, the DS record differs in each version.
fn zone(names: u32, change_interval: u32, version: u32) -> Contents {
    let mut text = format!(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 hostmaster {version} 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n"
    );
    for number in 0..names {
        let label = format!("d{:x}", u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
        let _ =
            write!(text, "{label} NS ns1.operator{0}.test.\n{label} NS ns2.operator{0}.test.\n", number % 50);
        if number % 10 < 6 {
            let digest =
                if number % change_interval == 0 { format!("{version:02x}") } else { "0a".to_owned() };
            let _ = writeln!(text, "{label} DS {} 13 2 {}", number % 60000, digest.repeat(32));
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
    let versions = |change_interval| {
        let mut options = SignOptions::new(mechanism, NOW - 3600, NOW + 14 * 86_400);
        let old = sign(&zone(names, change_interval, 1), &keys, &options).expect("signed").into_contents();
        options.previous = Some(PreviousZone::new(&old, 14 * 86_400));
        let new = sign(&zone(names, change_interval, 2), &keys, &options).expect("signed").into_contents();
        (old, new)
    };
    let ((old, new), (old_one, new_one)) = (versions(100), versions(names));
    let options = |mode| VerifyOptions { now: Some(NOW), mode, ..VerifyOptions::default() };
    let (predecessor, predecessor_one) = (
        VerifiedPredecessor::assume_verified(&old, Some(NOW)),
        VerifiedPredecessor::assume_verified(&old_one, Some(NOW)),
    );
    let inputs = |predecessor| VerifyInputs { predecessor: Some(predecessor), ..VerifyInputs::default() };
    let methods: [(&str, &dyn Fn() -> Report); 4] = [
        ("full", &|| verify(&new, &options(Mode::Full))),
        ("changed, one name in 100", &|| {
            verify_with_inputs(&new, &options(Mode::Full), &inputs(predecessor))
        }),
        ("changed, one name", &|| {
            verify_with_inputs(&new_one, &options(Mode::Full), &inputs(predecessor_one))
        }),
        ("structural", &|| verify(&new, &options(Mode::Structural))),
    ];
    let mut times = vec![(Vec::new(), Vec::new()); methods.len()];
    let mut reports = vec![Report::default(); methods.len()];
    for _ in 0..RUNS {
        for (index, (_, run)) in methods.iter().enumerate() {
            let (started, cpu_before) = (Instant::now(), cpu_seconds());
            reports[index] = run();
            times[index].0.push((cpu_seconds() - cpu_before) * 1e3);
            times[index].1.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (((method, _), (cpu, wall)), report) in methods.iter().zip(times).zip(reports) {
        let (cpu, wall) = (median(cpu), median(wall));
        let Report { signatures_verified: verified, signatures_kept: kept, .. } = report;
        let faults = report.format_fault_count();
        println!(
            "{method:24} {cpu:8.1} ms CPU {wall:8.1} ms wall; signatures: {verified} verified, {kept} kept; {faults}"
        );
    }
}
