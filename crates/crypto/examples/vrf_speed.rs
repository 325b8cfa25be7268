//! Measures how fast this machine generates and verifies VRF proofs on one core: `cargo run
//! --release --example vrf_speed`.
//!
//! The rounds of all measurements are interleaved, so that temporary load on the machine affects
//! all of them alike. The output has the median round, the slowest and the fastest. The time is the
//! CPU time of this thread if Linux reports it, otherwise the elapsed time. The first lines are
//! signatures, for comparison between machines.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfPrivateKey, VrfPublicKey};
use nonesuch_crypto::{Algorithm, PrivateKey, PublicKey};

/// Number of rounds of each measurement, and the duration of a round.
const ROUNDS: usize = 21;
const ROUND_DURATION: Duration = Duration::from_millis(100);

/// Number of inputs of one batch.
const BATCH_INPUTS: usize = 32;

/// A measurement: its name, and a function that executes a number of operations and returns this
/// number.
struct Measurement<'a> {
    name: String,
    call: Box<dyn FnMut() -> usize + 'a>,
    rates: Vec<f64>,
}

impl<'a> Measurement<'a> {
    fn new(name: String, call: impl FnMut() -> usize + 'a) -> Self {
        Self { name, call: Box::new(call), rates: Vec::new() }
    }

    fn run(&mut self) {
        let (start, spent) = (Instant::now(), thread_cpu_seconds());
        let mut done = 0;
        while start.elapsed() < ROUND_DURATION {
            done += (self.call)();
        }
        let seconds = match (spent, thread_cpu_seconds()) {
            (Some(before), Some(after)) if after > before => after - before,
            _ => start.elapsed().as_secs_f64(),
        };
        self.rates.push(done as f64 / seconds);
    }

    fn print(&mut self) {
        self.rates.sort_by(f64::total_cmp);
        let [slowest, median, fastest] = [0, ROUNDS / 2, ROUNDS - 1].map(|index| self.rates[index]);
        println!("{:<48} {median:>8.0}/s  ({slowest:.0} to {fastest:.0})", self.name);
    }
}

/// Returns the time that this thread has spent on a processor, in seconds. The first number in the
/// file is this time in nanoseconds.
fn thread_cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> =
        (0..BATCH_INPUTS).map(|number| format!("\x07name{number:03}\x07example\x00")).collect();
    let alphas: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let mut keys = Vec::new();
    for entry in &VRF_ALGORITHMS {
        let private = VrfPrivateKey::generate(entry.algorithm)?;
        let public = VrfPublicKey::parse(entry.algorithm, private.public_key())?;
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        private.prove_batch(&alphas, &mut proofs, &mut hashes)?;
        keys.push((entry, private, public, proofs));
    }
    let mut all = Vec::new();
    for algorithm in [Algorithm::ECDSAP256SHA256, Algorithm::ED25519, Algorithm::RSASHA256] {
        all.extend(signatures(algorithm)?);
    }
    for (entry, private, public, proofs) in &keys {
        all.extend(measurements(entry.mnemonic, entry.proof_octets, private, public, &alphas, proofs));
    }
    for _ in 0..ROUNDS {
        all.iter_mut().for_each(Measurement::run);
    }
    all.iter_mut().for_each(Measurement::print);
    Ok(())
}

fn signatures(algorithm: Algorithm) -> Result<[Measurement<'static>; 2], Box<dyn std::error::Error>> {
    let private = PrivateKey::generate(algorithm, None)?;
    let public = PublicKey::parse(algorithm, private.public_key())?;
    let (mut signature, mut out) = (Vec::new(), Vec::new());
    private.sign(&[7; 64], &mut signature)?;
    let sign = move || {
        out.clear();
        black_box(private.sign(black_box(&[7; 64]), &mut out).is_ok());
        1
    };
    let verify = move || {
        assert!(public.verify(black_box(&[7; 64]), &signature).is_ok());
        1
    };
    Ok([
        Measurement::new(format!("{algorithm} sign"), sign),
        Measurement::new(format!("{algorithm} verify"), verify),
    ])
}

fn measurements<'a>(
    name: &str,
    octets: usize,
    private: &'a VrfPrivateKey,
    public: &'a VrfPublicKey,
    alphas: &'a [&'a [u8]],
    proofs: &'a [u8],
) -> [Measurement<'a>; 4] {
    let (mut out, mut batch, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
    let prove = move || {
        for alpha in alphas {
            out.clear();
            black_box(private.prove(black_box(alpha), &mut out).is_ok());
        }
        alphas.len()
    };
    let prove_batch = move || {
        batch.clear();
        hashes.clear();
        black_box(private.prove_batch(black_box(alphas), &mut batch, &mut hashes).is_ok());
        alphas.len()
    };
    let verify = move || {
        for (alpha, proof) in alphas.iter().zip(proofs.chunks_exact(octets)) {
            assert!(public.verify(black_box(alpha), black_box(proof)).is_ok());
        }
        alphas.len()
    };
    let key = private.public_key();
    let parse = move || {
        black_box(VrfPublicKey::parse(private.algorithm(), black_box(key)).is_ok());
        1
    };
    [
        Measurement::new(format!("{name} prove, one by one"), prove),
        Measurement::new(format!("{name} prove, batches of {BATCH_INPUTS}"), prove_batch),
        Measurement::new(format!("{name} verify"), verify),
        Measurement::new(format!("{name} parse key"), parse),
    ]
}
