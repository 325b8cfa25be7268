//! Continuous operation, counted: the loop that every figure of the benchmark comes from.

use super::probe::Counted;
use super::subject::{Operation, Subject};
use nonesuch_crypto::{
    Algorithm, BadSignature, KeyError, PrivateKey, PublicKey, SignError, VerifyItem, verify_batch,
};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::{Name, NameError, Rtype};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Messages that are gone through in turn: one message over and over would let the processor learn its branches.
const MESSAGES: usize = 16;
/// The clock is read about this often: often enough for short iterations, and too seldom to count in the figures.
const CLOCK_PERIOD: Duration = Duration::from_micros(500);

/// Why a subject cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// Its key cannot be made or read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It does not sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The message cannot be made.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its own signature is refused.
    #[error("a signature that it made is not verified")]
    Unsound,
}

/// What fails while it is measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperationError {
    /// Signing.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// Verifying.
    #[error(transparent)]
    Verify(#[from] BadSignature),
}

/// A subject that is ready: its key, messages, and signatures over them.
pub(super) struct Bench {
    subject: Subject,
    private: PrivateKey,
    public: PublicKey,
    messages: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

/// Makes the key of a subject. RSA of 1024 bits too: zones still have such keys.
pub(super) fn make_key(subject: Subject) -> Result<PrivateKey, KeyError> {
    let choice = subject.choice();
    PrivateKey::generate_forced(choice.algorithm, choice.bits)
}

impl Bench {
    /// Prepares a subject with a key, and messages that are drawn from `seed`.
    pub(super) fn new(subject: Subject, private: PrivateKey, seed: u64) -> Result<Self, PrepareError> {
        let public = PublicKey::parse(private.algorithm(), private.public_key())?;
        let count = match subject {
            Subject::Signature(_) => MESSAGES,
            Subject::Batch { size, .. } => usize::from(size),
        };
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

    pub(super) fn message_octets(&self) -> usize {
        self.messages.first().map_or(0, Vec::len)
    }

    pub(super) fn key_octets(&self) -> usize {
        self.private.public_key().len()
    }

    pub(super) fn signature_octets(&self) -> usize {
        self.private.signature_octets()
    }

    /// Does `operation` continuously for `seconds`.
    pub(super) fn count(&self, operation: Operation, seconds: f64) -> Result<Counted, OperationError> {
        match (self.subject, operation) {
            (Subject::Signature(_), Operation::Verify) => self.count_verifications(seconds),
            (Subject::Batch { .. }, Operation::Verify) => self.count_batches(seconds),
            (_, Operation::Sign) => self.count_signings(seconds),
        }
    }

    fn count_verifications(&self, seconds: f64) -> Result<Counted, OperationError> {
        let mut pairs = self.messages.iter().zip(&self.signatures).cycle();
        repeat(seconds, 1, || {
            let Some((message, signature)) = pairs.next() else { return Ok(()) };
            Ok(black_box(self.public.verify(black_box(message), black_box(signature)))?)
        })
    }

    fn count_signings(&self, seconds: f64) -> Result<Counted, OperationError> {
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

    fn count_batches(&self, seconds: f64) -> Result<Counted, OperationError> {
        let pairs = self.messages.iter().zip(&self.signatures);
        let items: Vec<VerifyItem<'_>> =
            pairs.map(|(message, signature)| VerifyItem { key: &self.public, message, signature }).collect();
        let mut outcome = Vec::with_capacity(items.len());
        repeat(seconds, items.len() as u64, || {
            verify_batch(black_box(&items), &mut outcome);
            Ok(outcome.drain(..).collect::<Result<(), _>>()?)
        })
    }
}

/// Calls `once`, which does `each` operations, until `seconds` are over.
fn repeat(
    seconds: f64,
    each: u64,
    mut once: impl FnMut() -> Result<(), OperationError>,
) -> Result<Counted, OperationError> {
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let (mut calls, mut chunk) = (0_u64, 1_u64);
    let cpu_before = thread_cpu_seconds();
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
    let cpu_seconds = cpu_before.zip(thread_cpu_seconds()).map(|(before, after)| after - before);
    Ok(Counted { operations: calls * each, seconds: elapsed.as_secs_f64(), cpu_seconds })
}

/// CPU time of this thread, up to the last tick of the system's clock; nothing where the system does not tell.
fn thread_cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

/// What signatures of DNSSEC are mostly made over: the RRSIG fields and an RRset of two AAAA records of
/// `www.example.`, signed by `example.` (RFC 4034 §3.1.8.1).
fn messages(algorithm: Algorithm, seed: u64, count: usize) -> Result<Vec<Vec<u8>>, NameError> {
    let (owner, signer): (Name, Name) = ("www.example.".parse()?, "example.".parse()?);
    let fields = Rrsig {
        covered: Rtype::AAAA,
        algorithm,
        labels: owner.view().rrsig_labels(),
        original_ttl: 3600,
        // A day in January 2026 and 30 days later: their value costs nothing.
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
            // 2001:db8::/32 is for documentation (RFC 3849).
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
        Bench::new(subject, make_key(subject).expect("a key"), 1).expect("prepared")
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
        let counted = bench("ED25519*5").count(Operation::Verify, 0.002).expect("counted");
        assert!(counted.operations > 0 && counted.operations.is_multiple_of(5), "{counted:?}");
    }

    #[test]
    fn a_signature_that_is_refused_is_an_error_and_no_figure() {
        for name in ["ED25519", "ED25519*4"] {
            let mut bench = bench(name);
            bench.signatures[3][0] ^= 1;
            let outcome = bench.count(Operation::Verify, 0.5);
            assert!(matches!(outcome, Err(OperationError::Verify(BadSignature))), "{name}");
        }
    }

    #[test]
    fn messages_are_signed_data_of_the_size_that_is_told() {
        let one = messages(Algorithm::ED25519, 7, 3).expect("messages");
        assert_eq!(one, messages(Algorithm::ED25519, 7, 3).expect("messages"));
        assert_ne!(one, messages(Algorithm::ED25519, 8, 3).expect("messages"));
        // RRSIG fields with the signer; twice owner, type, class, TTL, length and address.
        assert!(one.iter().all(|message| message.len() == 18 + 9 + 2 * (13 + 10 + 16)));
        assert_ne!(one[0], one[1]);
    }
}
