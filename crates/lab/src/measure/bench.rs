//! The loop that counts operations. All figures of the verification benchmark result from it.

mod vrf;

use self::vrf::VrfBench;
use super::probe::CountResult;
use super::subject::{Operation, Selection, Subject};
use crate::process::own_thread_cpu_time;
use nonesuch_crypto::vrf::{BadProof, ProveError, VrfKeyError, VrfPrivateKey};
use nonesuch_crypto::{
    Algorithm, BadSignature, KeyError, PrivateKey, PublicKey, SignError, VerifyItem, sign_batch, verify_batch,
};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::{Name, NameError, Rtype};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number of messages that a loop uses in turn. With a single message, the branch predictor of the
/// processor would learn its branches.
const MESSAGES: usize = 16;
/// Number of messages for algorithms that sign slowly. Each is signed before the measurement.
const SLOW_MESSAGES: usize = 4;
/// Approximate interval between two readings of the clock. It is short enough for short iterations
/// and long enough not to affect the figures.
const CLOCK_PERIOD: Duration = Duration::from_micros(500);

/// Reasons why a subject cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    VrfKey(#[from] VrfKeyError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Prove(#[from] ProveError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the implementation does not verify its own signature or proof")]
    Unsound,
}

/// Error of an operation during the measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Verify(#[from] BadSignature),
    #[error(transparent)]
    Prove(#[from] ProveError),
    #[error(transparent)]
    VerifyProof(#[from] BadProof),
    #[error("unsupported operation")]
    Absent,
}

/// A subject with its key and inputs.
pub(crate) enum Bench {
    Signatures(SignatureBench),
    Vrf(VrfBench),
}

/// A signing key, messages, and the signatures over these messages.
pub(crate) struct SignatureBench {
    subject: Subject,
    private: PrivateKey,
    public: PublicKey,
    messages: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

/// Generates the key of a subject and returns the text of its key file. The function also generates
/// RSA keys of 1024 bits, because zones still use them.
pub(crate) fn make_key(subject: Subject) -> Result<String, PrepareError> {
    Ok(match subject.selection {
        Selection::Signatures(choice) => {
            PrivateKey::generate_any_length(choice.algorithm, choice.bits)?.to_bind().to_string()
        }
        Selection::Vrf(algorithm) => VrfPrivateKey::generate(algorithm)?.to_text().to_string(),
    })
}

impl Bench {
    /// Creates the bench of a subject from the text of its key. `seed` determines the messages or
    /// VRF inputs.
    pub(crate) fn new(subject: Subject, key: &str, seed: u64) -> Result<Self, PrepareError> {
        Ok(match subject.selection {
            Selection::Signatures(_) => {
                Self::Signatures(SignatureBench::new(subject, PrivateKey::from_bind(key)?, seed)?)
            }
            Selection::Vrf(_) => {
                let key = VrfPrivateKey::from_text(key)?;
                Self::Vrf(VrfBench::new(key, seed, subject.batch.unwrap_or(1))?)
            }
        })
    }

    /// Octets of each signed message; `None` for VRFs.
    pub(crate) fn message_octets(&self) -> Option<usize> {
        match self {
            Self::Signatures(bench) => Some(bench.messages.first().map_or(0, Vec::len)),
            Self::Vrf(_) => None,
        }
    }

    pub(crate) fn key_octets(&self) -> usize {
        match self {
            Self::Signatures(bench) => bench.private.public_key().len(),
            Self::Vrf(bench) => bench.key_octets(),
        }
    }

    pub(crate) fn signature_octets(&self) -> usize {
        match self {
            Self::Signatures(bench) => bench.private.signature_octets(),
            Self::Vrf(bench) => bench.proof_octets(),
        }
    }

    /// Repeats `operation` for `seconds` and counts the operations.
    pub(crate) fn count(&self, operation: Operation, seconds: f64) -> Result<CountResult, OperationError> {
        match self {
            Self::Signatures(bench) => bench.count(operation, seconds),
            Self::Vrf(bench) => bench.count(operation, seconds),
        }
    }
}

impl SignatureBench {
    fn new(subject: Subject, private: PrivateKey, seed: u64) -> Result<Self, PrepareError> {
        let public = PublicKey::parse(private.algorithm(), private.public_key())?;
        let is_slow = subject.choice().is_some_and(|choice| choice.signs_slowly());
        let single = if is_slow { SLOW_MESSAGES } else { MESSAGES };
        let count = subject.batch.map_or(single, usize::from);
        let messages = messages(private.algorithm(), seed, count)?;
        let mut signatures = Vec::with_capacity(count);
        for message in &messages {
            let mut signature = Vec::with_capacity(private.signature_octets());
            private.sign(message, &mut signature)?;
            public.verify(message, &signature).map_err(|BadSignature| PrepareError::Unsound)?;
            signatures.push(signature);
        }
        Ok(Self { subject, private, public, messages, signatures })
    }

    fn count(&self, operation: Operation, seconds: f64) -> Result<CountResult, OperationError> {
        match operation {
            Operation::Prove => Err(OperationError::Absent),
            Operation::Verify if self.subject.batch.is_some() => self.count_verified_batches(seconds),
            Operation::Verify => self.count_verifications(seconds),
            Operation::Sign if self.subject.batch.is_some() => self.count_signed_batches(seconds),
            Operation::Sign => self.count_signings(seconds),
        }
    }

    fn count_verifications(&self, seconds: f64) -> Result<CountResult, OperationError> {
        let mut pairs = self.messages.iter().zip(&self.signatures).cycle();
        repeat(seconds, 1, || {
            let Some((message, signature)) = pairs.next() else { return Ok(()) };
            Ok(black_box(self.public.verify(black_box(message), black_box(signature)))?)
        })
    }

    fn count_signings(&self, seconds: f64) -> Result<CountResult, OperationError> {
        let mut messages = self.messages.iter().cycle();
        let mut out = Vec::with_capacity(self.private.signature_octets());
        repeat(seconds, 1, || {
            let Some(message) = messages.next() else { return Ok(()) };
            out.clear();
            self.private.sign(black_box(message), &mut out)?;
            black_box(&out);
            Ok(())
        })
    }

    fn count_verified_batches(&self, seconds: f64) -> Result<CountResult, OperationError> {
        let pairs = self.messages.iter().zip(&self.signatures);
        let items: Vec<VerifyItem<'_>> =
            pairs.map(|(message, signature)| VerifyItem { key: &self.public, message, signature }).collect();
        let mut outcome = Vec::with_capacity(items.len());
        repeat(seconds, items.len() as u64, || {
            verify_batch(black_box(&items), &mut outcome);
            Ok(outcome.drain(..).collect::<Result<(), _>>()?)
        })
    }

    fn count_signed_batches(&self, seconds: f64) -> Result<CountResult, OperationError> {
        let messages: Vec<&[u8]> = self.messages.iter().map(Vec::as_slice).collect();
        let mut out = Vec::with_capacity(messages.len() * self.private.signature_octets());
        repeat(seconds, messages.len() as u64, || {
            out.clear();
            sign_batch(&self.private, black_box(&messages), &mut out)?;
            black_box(&out);
            Ok(())
        })
    }
}

/// Calls `once` until `seconds` have elapsed. Each call performs `each` operations.
fn repeat(
    seconds: f64,
    each: u64,
    mut once: impl FnMut() -> Result<(), OperationError>,
) -> Result<CountResult, OperationError> {
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let (mut calls, mut chunk) = (0_u64, 1_u64);
    let cpu_before = own_thread_cpu_time();
    let start = Instant::now();
    let mut last = Duration::ZERO;
    let elapsed = loop {
        for _ in 0..chunk {
            once()?;
        }
        calls += chunk;
        let elapsed = start.elapsed();
        if elapsed >= limit {
            break elapsed;
        }
        if elapsed - last < CLOCK_PERIOD / 2 {
            chunk *= 2;
        }
        last = elapsed;
    };
    let cpu = cpu_before.zip(own_thread_cpu_time()).map(|(before, after)| after.saturating_sub(before));
    let cpu_seconds = cpu.map(|cpu| cpu.as_secs_f64());
    Ok(CountResult { operations: calls * each, seconds: elapsed.as_secs_f64(), cpu_seconds })
}

/// Generates typical signed data: the RRSIG fields and an RRset of two AAAA records of
/// `www.example.` with the signer `example.` (RFC 4034 §3.1.8.1).
fn messages(algorithm: Algorithm, seed: u64, count: usize) -> Result<Vec<Vec<u8>>, NameError> {
    let (owner, signer): (Name, Name) = ("www.example.".parse()?, "example.".parse()?);
    let fields = Rrsig {
        covered: Rtype::AAAA,
        algorithm,
        labels: owner.view().rrsig_labels(),
        original_ttl: 3600,
        // Inception on 2026-01-13, expiration 30 days later. The values do not affect the cost.
        expiration: 1_770_854_400,
        inception: 1_768_262_400,
        tag: 20_326,
        signer: signer.view(),
        signature: &[],
    };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let message = |_| {
        let mut addresses = [[0_u8; 16]; 2];
        for address in &mut addresses {
            random.fill_bytes(address);
            // 2001:db8::/32 is the documentation prefix (RFC 3849).
            address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        }
        // Canonical order (RFC 4034 §6.3).
        addresses.sort_unstable();
        let mut out = Vec::new();
        push_signed_data(&fields, owner.view(), addresses.iter().map(<[u8; 16]>::as_slice), &mut out);
        out
    };
    Ok((0..count).map(message).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(name: &str) -> Bench {
        let subject: Subject = name.parse().expect("a subject");
        Bench::new(subject, &make_key(subject).expect("a key"), 1).expect("prepared")
    }

    #[test]
    fn operations_are_counted() {
        for (name, operation) in [
            ("ED25519", Operation::Verify),
            ("ED25519", Operation::Sign),
            ("RSASHA256/1024", Operation::Verify),
        ] {
            let counted = bench(name).count(operation, 0.002).expect("counted");
            assert!(counted.operations > 0 && counted.seconds >= 0.002, "{name}: {counted:?}");
        }
        for (name, operation) in [
            ("ED25519*5", Operation::Verify),
            ("ECDSAP256SHA256*5", Operation::Verify),
            ("ECDSAP256SHA256*5", Operation::Sign),
        ] {
            let counted = bench(name).count(operation, 0.002).expect("counted");
            assert!(counted.operations > 0 && counted.operations.is_multiple_of(5), "{name}: {counted:?}");
        }
    }

    #[test]
    fn a_signature_that_is_refused_is_an_error_and_no_figure() {
        for name in ["ED25519", "ED25519*4", "ECDSAP256SHA256*40"] {
            let mut bench = bench(name);
            let Bench::Signatures(signatures) = &mut bench else { panic!("{name} has no signatures") };
            signatures.signatures[3][0] ^= 1;
            let outcome = bench.count(Operation::Verify, 0.5);
            assert!(matches!(outcome, Err(OperationError::Verify(BadSignature))), "{name}");
        }
        let outcome = bench("ED25519").count(Operation::Prove, 0.5);
        assert!(matches!(outcome, Err(OperationError::Absent)));
    }

    #[test]
    fn messages_are_signed_data_of_the_size_that_is_told() {
        let one = messages(Algorithm::ED25519, 7, 3).expect("messages");
        assert_eq!(one, messages(Algorithm::ED25519, 7, 3).expect("messages"));
        assert_ne!(one, messages(Algorithm::ED25519, 8, 3).expect("messages"));
        // RRSIG fields and signer; then twice: owner, type, class, TTL, length and address.
        assert!(one.iter().all(|message| message.len() == 18 + 9 + 2 * (13 + 10 + 16)));
        assert_ne!(one[0], one[1]);
    }
}
