//! Measures ML-DSA-44 on one core: `cargo run --release -p nonesuch-crypto --example mldsa_speed`. With
//! `--features portable`, it runs without the AVX2 kernels; the environment variable `OPENSSL_ia32cap` restricts
//! aws-lc.
//!
//! `first` is a verification with a key that was just parsed, `second` the next one, which expands the key, and
//! `later` a verification with an expanded key. `aws-lc` is a verification by aws-lc with a parsed key.

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::signature::{ML_DSA_44, ParsedPublicKey};
use nonesuch_crypto::{Algorithm, PrivateKey, PublicKey};

const ROUNDS: usize = 4000;

/// Prints the minimum and the median of times in microseconds.
fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    println!("{name:<8} best {:>7.2} us  median {:>7.2} us", times[0], times[times.len() / 2]);
}

/// Returns the time of a call in microseconds.
fn time(call: impl FnOnce()) -> f64 {
    let start = Instant::now();
    call();
    start.elapsed().as_secs_f64() * 1e6
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let message = [7; 120];
    let private = PrivateKey::generate(Algorithm::MLDSA44, None)?;
    let library = ParsedPublicKey::new(&ML_DSA_44, private.public_key())?;
    let mut signature = Vec::new();
    private.sign(&message, &mut signature)?;
    let mut failed = 0;
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let key = PublicKey::parse(Algorithm::MLDSA44, private.public_key())?;
        for times in &mut times[..3] {
            let mut verify = || failed += u32::from(key.verify(black_box(&message), &signature).is_err());
            times.push(time(&mut verify));
        }
        times[3].push(time(|| failed += u32::from(library.verify_sig(&message, &signature).is_err())));
    }
    for (name, times) in ["first", "second", "later", "aws-lc"].into_iter().zip(times) {
        report(name, times);
    }
    if failed > 0 { Err("a signature was rejected".into()) } else { Ok(()) }
}
