//! How fast this machine signs, verifies and hashes, on one core: `cargo run --release --example speed`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nonesuch_crypto::{ALGORITHMS, PrivateKey, PublicKey, nsec3_hash};

/// Calls a second, over about half a second.
fn rate(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < Duration::from_millis(500) {
        for _ in 0..16 {
            call();
        }
        calls += 16;
    }
    f64::from(calls) / start.elapsed().as_secs_f64()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let message = [7; 120];
    for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
        let key = PrivateKey::generate(entry.algorithm, None)?;
        let public = PublicKey::parse(entry.algorithm, key.public_key())?;
        let mut signature = Vec::new();
        let signed = rate(|| {
            signature.clear();
            black_box(key.sign(black_box(&message), &mut signature).is_ok());
        });
        let verified = rate(|| {
            black_box(public.verify(black_box(&message), &signature).is_ok());
        });
        println!("{:<16} {signed:>10.0} sign/s {verified:>10.0} verify/s", entry.mnemonic);
    }
    let name = b"\x03www\x07example\x03org\x00";
    for iterations in [0, 10, 100] {
        // Many at a time, or the clock would be what is measured.
        let batch = 1000;
        let hashes = f64::from(batch)
            * rate(|| {
                for _ in 0..batch {
                    black_box(nsec3_hash(black_box(name), black_box(&[]), iterations));
                }
            });
        println!("NSEC3, {iterations:>3} iterations {hashes:>12.0} names/s");
    }
    Ok(())
}
