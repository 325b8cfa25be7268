//! Measures the steps of MAYO-2 on one core: `cargo run --release -p nonesuch-crypto --example
//! mayo_speed`. With `--features portable`, it runs without the AVX2 kernel.
//!
//! It reports the best of many short runs, which limits the influence of other load on the machine.
//! `sign` includes the verification of each signature before it is returned. The cost of signing
//! alone is the difference between `sign` and `verify`.

use std::hint::black_box;
use std::time::Instant;

use nonesuch_crypto::{Algorithm, PrivateKey, PublicKey};

/// Prints the minimum and the median time of a call in microseconds, over 400 runs of 20 calls.
fn measure(name: &str, mut call: impl FnMut()) {
    let mut times: Vec<f64> = (0..400)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..20 {
                call();
            }
            start.elapsed().as_secs_f64() * 1e6 / 20.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let rate = 1e6 / times[0];
    println!(
        "{name:<16} best {:>8.2} us  median {:>8.2} us  {rate:>10.0} a second at best",
        times[0], times[200]
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let message = [7; 120];
    let key = PrivateKey::generate(Algorithm::MAYO2, None)?;
    let octets = key.public_key();
    let public = PublicKey::parse(Algorithm::MAYO2, octets)?;
    let mut signature = Vec::new();
    let mut failed = 0;
    measure("sign", || {
        signature.clear();
        failed += u32::from(key.sign(black_box(&message), &mut signature).is_err());
    });
    measure("verify", || failed += u32::from(public.verify(black_box(&message), &signature).is_err()));
    measure("parse", || failed += u32::from(PublicKey::parse(Algorithm::MAYO2, black_box(octets)).is_err()));
    measure("parse and verify", || {
        let public = PublicKey::parse(Algorithm::MAYO2, black_box(octets));
        failed += u32::from(!public.is_ok_and(|public| public.verify(&message, &signature).is_ok()));
    });
    measure("generate", || failed += u32::from(PrivateKey::generate(Algorithm::MAYO2, None).is_err()));
    if failed > 0 { Err("a call failed".into()) } else { Ok(()) }
}
