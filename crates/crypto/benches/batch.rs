//! Compares a loop with a batch, alternately, on one core: `cargo bench -p nonesuch-crypto --bench
//! batch`.
//!
//! The output has microseconds of CPU time for each signature and the ratio loop / batch: the
//! median over the rounds, and the minimum and maximum in parentheses. Every round measures the
//! loop and then the batch, with the same signatures.
//!
//! Ed25519 and P-256 are measured in four forms: all items have one key, or each item has a key of its own;
//! the keys were used before, or were just parsed, so that the batch includes the time for a table. The last
//! column, for Ed25519, is the batch equation of ed25519-dalek for comparison. It does not accept the same signatures as the single check.
//!
//! The last part compares the batches of P-256 without and with eight lanes of AVX-512 IFMA, if the
//! processor has it. Its columns are the batch of the portable code and the batch of the lanes.
//! Options: `--rounds N`, `--algorithm NAME` for one algorithm only, and `--lanes` for the last
//! part only.

use std::hint::black_box;

use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey, VrfPublicKey};
use nonesuch_crypto::{
    ALGORITHMS, Algorithm, AlgorithmEntry, PrivateKey, PublicKey, VerifyItem, sign_batch, verify_batch,
    with_portable_arithmetic,
};

type Failure = Box<dyn std::error::Error>;

const BATCH_SIZES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Length of a message in octets: an RRset with the fields of its signature.
const MESSAGE_OCTETS: usize = 120;

/// Keys, messages and signatures. The key of item i is `keys[i % keys.len()]`.
struct Workload {
    keys: Vec<PublicKey>,
    messages: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

impl Workload {
    fn new(algorithm: Algorithm, count: usize, private: &[PrivateKey]) -> Result<Self, Failure> {
        let parse = |key: &PrivateKey| PublicKey::parse(algorithm, key.public_key());
        let mut work = Self {
            keys: private.iter().map(parse).collect::<Result<_, _>>()?,
            messages: (0..count).map(|index| vec![index as u8; MESSAGE_OCTETS]).collect(),
            signatures: Vec::new(),
        };
        for (index, message) in work.messages.iter().enumerate() {
            let mut signature = Vec::new();
            private[index % private.len()].sign(message, &mut signature)?;
            work.signatures.push(signature);
        }
        Ok(work)
    }

    fn items(&self) -> Vec<VerifyItem<'_>> {
        let pairs = self.messages.iter().zip(&self.signatures).enumerate();
        pairs
            .map(|(index, (message, signature))| VerifyItem {
                key: &self.keys[index % self.keys.len()],
                message,
                signature,
            })
            .collect()
    }
}

/// Returns the CPU time of this thread in seconds. Time of other processes is not included.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer refers to a timespec that outlives the call; the call writes to it.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "there is no clock of the thread's CPU time");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns microseconds for each item, measured over enough calls to take about two milliseconds.
fn time(count: usize, mut call: impl FnMut()) -> f64 {
    let start = cpu_seconds();
    let mut calls = 0;
    loop {
        call();
        calls += 1;
        let elapsed = cpu_seconds() - start;
        if elapsed > 2e-3 {
            return elapsed * 1e6 / (calls * count) as f64;
        }
    }
}

/// Formats the median, and the minimum and maximum in parentheses.
fn median_and_range(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    format!("{median:8.2} ({:.2}-{:.2})", sorted[0], sorted[sorted.len() - 1])
}

/// Measures single calls and a batch alternately, and returns the row of the output without a line
/// end, so that the caller can append a column.
fn comparison_row(
    rounds: usize,
    count: usize,
    mut single_calls: impl FnMut(),
    mut batch: impl FnMut(),
) -> String {
    let (mut loop_times, mut batch_times, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (loop_time, batch_time) = (time(count, &mut single_calls), time(count, &mut batch));
        loop_times.push(loop_time);
        batch_times.push(batch_time);
        ratios.push(loop_time / batch_time);
    }
    format!(
        "{count:4}  {:>26}  {:>26}  {:>22}",
        median_and_range(&loop_times),
        median_and_range(&batch_times),
        median_and_range(&ratios)
    )
}

fn verify_each(items: &[VerifyItem<'_>], outcome: &mut Vec<Result<(), nonesuch_crypto::BadSignature>>) {
    outcome.clear();
    outcome.extend(items.iter().map(|item| item.key.verify(item.message, item.signature)));
}

fn verify_row(rounds: usize, work: &Workload) -> String {
    let items = work.items();
    let (mut loop_outcome, mut batch_outcome) = (Vec::new(), Vec::new());
    let row = comparison_row(
        rounds,
        items.len(),
        || verify_each(black_box(&items), &mut loop_outcome),
        || verify_batch(black_box(&items), &mut batch_outcome),
    );
    assert!(loop_outcome == batch_outcome && loop_outcome.iter().all(Result::is_ok), "the outcomes differ");
    row
}

/// Like [`verify_row`], but parses the keys in each call.
fn verify_row_with_parsed_keys(
    rounds: usize,
    algorithm: Algorithm,
    work: &Workload,
    fields: &[Vec<u8>],
) -> String {
    let with_keys = |verify_all: fn(&[VerifyItem<'_>], &mut Vec<_>), outcome: &mut Vec<_>| {
        let parse = |field: &Vec<u8>| PublicKey::parse(algorithm, field).ok();
        let keys: Vec<_> = fields.iter().filter_map(parse).collect();
        let pairs = work.messages.iter().zip(&work.signatures).enumerate();
        let items = pairs.map(|(index, (message, signature))| VerifyItem {
            key: &keys[index % keys.len()],
            message,
            signature,
        });
        let items: Vec<_> = items.collect();
        verify_all(&items, outcome);
    };
    let (mut loop_outcome, mut batch_outcome) = (Vec::new(), Vec::new());
    comparison_row(
        rounds,
        work.messages.len(),
        || with_keys(verify_each, &mut loop_outcome),
        || with_keys(verify_batch, &mut batch_outcome),
    )
}

fn sign_row(rounds: usize, key: &PrivateKey, count: usize) -> String {
    let message = [7; MESSAGE_OCTETS];
    let messages = vec![&message[..]; count];
    let (mut loop_outcome, mut batch_outcome) = (Vec::new(), Vec::new());
    comparison_row(
        rounds,
        count,
        || {
            loop_outcome.clear();
            for message in &messages {
                assert!(key.sign(black_box(message), &mut loop_outcome).is_ok(), "signing fails");
            }
        },
        || {
            batch_outcome.clear();
            assert!(sign_batch(key, black_box(&messages), &mut batch_outcome).is_ok(), "signing fails");
        },
    )
}

/// Measures the batch equation of ed25519-dalek and returns microseconds for each signature.
fn dalek_column(rounds: usize, work: &Workload, fields: &[Vec<u8>]) -> Result<String, Failure> {
    let keys: Vec<ed25519_dalek::VerifyingKey> = (0..work.messages.len())
        .map(|index| {
            Ok(ed25519_dalek::VerifyingKey::from_bytes(fields[index % fields.len()][..].try_into()?)?)
        })
        .collect::<Result<_, Failure>>()?;
    let messages: Vec<&[u8]> = work.messages.iter().map(Vec::as_slice).collect();
    let signatures: Vec<_> = work
        .signatures
        .iter()
        .map(|signature| ed25519_dalek::Signature::from_slice(signature))
        .collect::<Result<_, _>>()?;
    let times: Vec<f64> = (0..rounds)
        .map(|_| {
            time(messages.len(), || {
                let outcome = ed25519_dalek::verify_batch(&messages, &signatures, &keys);
                assert!(black_box(outcome).is_ok(), "a signature is refused");
            })
        })
        .collect();
    Ok(median_and_range(&times))
}

/// Measures the four forms, for an algorithm with tables of keys.
fn with_tables(rounds: usize, algorithm: Algorithm) -> Result<(), Failure> {
    let forms = [
        ("one key, used before", 1, false),
        ("one key, just parsed", 1, true),
        ("a key for each item, used before", 256, false),
        ("a key for each item, just parsed", 256, true),
    ];
    for (form, keys, is_fresh) in forms {
        println!("\n{algorithm}, verify, {form}");
        for count in BATCH_SIZES {
            let make = |_| PrivateKey::generate(algorithm, None);
            let private: Vec<_> = (0..keys.min(count)).map(make).collect::<Result<_, _>>()?;
            let fields: Vec<_> = private.iter().map(|key| key.public_key().to_vec()).collect();
            let work = Workload::new(algorithm, count, &private)?;
            let row = match is_fresh {
                true => verify_row_with_parsed_keys(rounds, algorithm, &work, &fields),
                false => verify_row(rounds, &work),
            };
            let dalek = if algorithm == Algorithm::ED25519 {
                dalek_column(rounds, &work, &fields)?
            } else {
                String::new()
            };
            println!("{row}  {dalek:>26}");
        }
    }
    Ok(())
}

/// Measures VRF proofs on P-256 without and with lanes, then verifications one by one and in a
/// batch.
fn vrf_rows(rounds: usize) -> Result<(), Failure> {
    let key = VrfPrivateKey::generate(VrfAlgorithm::P256_SHA256_TAI)?;
    let public = VrfPublicKey::parse(key.algorithm(), key.public_key())?;
    let octets = key.algorithm().entry().map_or(0, |entry| entry.proof_octets);
    println!("\n{}, without lanes and with them: prove; verify one by one and in a batch", key.algorithm());
    for count in BATCH_SIZES {
        let names: Vec<Vec<u8>> = (0..count).map(|index| format!("name {index}").into_bytes()).collect();
        let alphas: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let prove = || {
            let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
            assert!(key.prove_batch(black_box(&alphas), &mut proofs, &mut hashes).is_ok(), "proving fails");
            (proofs, hashes)
        };
        let (proofs, hashes) = prove();
        assert!(with_portable_arithmetic(prove) == (proofs.clone(), hashes.clone()), "the proofs differ");
        println!(
            "prove  {}",
            comparison_row(rounds, count, || drop(with_portable_arithmetic(prove)), || drop(prove()))
        );
        let items: Vec<(&[u8], &[u8])> = alphas.iter().copied().zip(proofs.chunks_exact(octets)).collect();
        let expected: Vec<_> = hashes.into_iter().map(Ok).collect();
        let each = || {
            let verified = black_box(&items).iter().map(|(alpha, proof)| public.verify(alpha, proof));
            assert!(verified.eq(expected.iter().cloned()), "a proof is refused");
        };
        let batch = || {
            let mut outcome = Vec::new();
            public.verify_batch(black_box(&items), &mut outcome);
            assert!(outcome == expected, "a proof is refused");
        };
        println!("verify {}", comparison_row(rounds, count, each, batch));
    }
    Ok(())
}

/// Measures ECDSA batches on P-256 without and with lanes, with keys that have tables already.
fn ecdsa_rows(rounds: usize) -> Result<(), Failure> {
    let algorithm = Algorithm::ECDSAP256SHA256;
    let private = PrivateKey::generate(algorithm, None)?;
    println!("\n{algorithm}, without lanes and with them: sign, verify");
    // The format of a table depends on the arithmetic that built it, so each arithmetic needs its
    // own keys.
    let [plain, packed] = [(); 2].map(|()| Workload::new(algorithm, 256, std::slice::from_ref(&private)));
    let (plain, packed) = (plain?, packed?);
    let verify = |work: &Workload, count: usize| {
        let mut outcome = Vec::new();
        verify_batch(&black_box(work.items())[..count], &mut outcome);
        assert!(outcome.iter().all(Result::is_ok), "a signature is refused");
    };
    with_portable_arithmetic(|| verify(&plain, 256));
    verify(&packed, 256);
    for count in BATCH_SIZES {
        let message = [7; MESSAGE_OCTETS];
        let messages = vec![&message[..]; count];
        let sign = || assert!(sign_batch(&private, black_box(&messages), &mut Vec::new()).is_ok());
        println!("sign   {}", comparison_row(rounds, count, || with_portable_arithmetic(sign), sign));
        let verify_portable = || with_portable_arithmetic(|| verify(&plain, count));
        println!("verify {}", comparison_row(rounds, count, verify_portable, || verify(&packed, count)));
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name);
        index.and_then(|index| arguments.get(index + 1))
    };
    let rounds = option("--rounds").map_or(Ok(9), |value| value.parse())?;
    let selected: Option<Algorithm> = option("--algorithm").map(|name| name.parse()).transpose()?;
    let is_selected = |algorithm: Algorithm| selected.is_none_or(|selected| selected == algorithm);
    println!("µs of CPU time for each signature, median (least-greatest) of {rounds} rounds");
    println!("{:>4}  {:>26}  {:>26}  {:>22}  {:>26}", "n", "loop", "batch", "ratio", "equation of dalek");
    if arguments.iter().any(|argument| argument == "--lanes") {
        vrf_rows(rounds)?;
        return ecdsa_rows(rounds);
    }
    for algorithm in
        [Algorithm::ECDSAP256SHA256, Algorithm::ED25519].into_iter().filter(|each| is_selected(*each))
    {
        with_tables(rounds, algorithm)?;
    }
    let is_row_selected = |entry: &&AlgorithmEntry| entry.alias_of.is_none() && is_selected(entry.algorithm);
    for entry in ALGORITHMS.iter().filter(is_row_selected) {
        let key = PrivateKey::generate(entry.algorithm, None)?;
        for count in [1, 16, 256] {
            let work = Workload::new(entry.algorithm, count, std::slice::from_ref(&key))?;
            println!("\n{}, {count}", entry.mnemonic);
            println!("verify {}", verify_row(rounds, &work));
            println!("sign   {}", sign_row(rounds, &key, count));
        }
    }
    if is_selected(Algorithm::ECDSAP256SHA256) {
        vrf_rows(rounds)?;
        ecdsa_rows(rounds)?;
    }
    Ok(())
}
