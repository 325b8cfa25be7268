//! Batches of signatures. By default, a batch is a loop over single signatures. A faster form
//! overrides [`Signer::sign_batch`](crate::key::Signer) or
//! [`Verifier::verify_batch`](crate::key::Verifier).
//!
//! Ed25519 and ECDSA on P-256 have a faster form of verification for signatures of one key
//! ([`edwards`], [`p256`]), which builds a table for the key once. P-256 also has one for signatures
//! of different keys ([`p256::verify_by_tables`], [`p256::verify_each`]). The other algorithms use the
//! loop. P-256 also has a faster form of signing ([`p256::sign`]), for messages of any P-256 keys.

pub(crate) mod edwards;
pub(crate) mod p256;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::p256::LaneKey;
use crate::ecdsa::sign_together;
use crate::error::{BadSignature, SignError};
use crate::key::{PrivateKey, PublicKey};
use crate::p256::Engine;

/// A message, and the signature over it that must be verified.
pub(crate) type SignedMessage<'a> = (&'a [u8], &'a [u8]);

/// The table of a public key for batches, built once when enough signatures of the key have been
/// seen.
pub(crate) struct LazyTable<T> {
    /// Number of signatures verified before the table was built.
    signatures_seen: AtomicUsize,
    /// Unset until the table is built. `None` inside means that the single check must verify all
    /// signatures of this key.
    table: OnceLock<Option<Box<T>>>,
}

impl<T> LazyTable<T> {
    pub(crate) const fn new() -> Self {
        Self { signatures_seen: AtomicUsize::new(0), table: OnceLock::new() }
    }

    /// Whether the table was built. It is not if `build` returned `None`.
    pub(crate) fn is_built(&self) -> bool {
        self.table.get().is_some_and(Option::is_some)
    }

    /// Returns the table for a batch of `count` signatures. Builds it when at least `threshold`
    /// signatures have been seen, including this batch. Returns `None` if fewer were seen, or if
    /// `build` returned `None`.
    ///
    /// The table is built when the number of signatures corresponds to its cost. Therefore the time
    /// of a batch is at most about twice the time of the loop, whatever the signatures are.
    pub(crate) fn table(
        &self,
        count: usize,
        threshold: usize,
        build: impl FnOnce() -> Option<T>,
    ) -> Option<&T> {
        // The counter only affects timing, so relaxed ordering is sufficient.
        let is_due = || self.signatures_seen.fetch_add(count, Ordering::Relaxed) + count >= threshold;
        if self.table.get().is_none() && !is_due() {
            return None;
        }
        self.table.get_or_init(|| build().map(Box::new)).as_deref()
    }
}

/// Appends one signature for each message to `out`, in order. Each has
/// [`PrivateKey::signature_octets`] octets.
///
/// With P-256, a batch is faster than single signatures from 16 messages on, or from three messages
/// on if the processor has AVX-512 IFMA. The batch processes 64 messages at a time.
///
/// # Errors
/// If the library fails. `out` is then unchanged.
pub fn sign_batch(key: &PrivateKey, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SignError> {
    key.signer().sign_batch(messages, out)
}

/// One signature to generate.
#[derive(Clone, Copy, Debug)]
pub struct SignItem<'a> {
    /// The key to sign with.
    pub key: &'a PrivateKey,
    /// The data to sign.
    pub message: &'a [u8],
}

/// Generates a signature for each item, of any keys and algorithms, in order. It takes the time of
/// [`sign_batch`] for the items of each key; P-256 keys share one batch.
pub fn sign_each(items: &[SignItem<'_>]) -> Vec<Result<Vec<u8>, SignError>> {
    let mut outcome = vec![Err(SignError::Library); items.len()];
    let is_on_p256 = |index: &usize| items[*index].key.signer().batch_key().is_some();
    let (on_p256, mut others): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(is_on_p256);
    let signed = on_p256.iter().map(|index| (items[*index].key.signer(), items[*index].message));
    let mut signatures = Vec::new();
    let result = sign_together(&signed.collect::<Vec<_>>(), &mut signatures);
    distribute(items, &on_p256, result, &signatures, &mut outcome);
    others.sort_by_key(|index| std::ptr::from_ref(items[*index].key));
    for indices in others.chunk_by(|a, b| std::ptr::eq(items[*a].key, items[*b].key)) {
        let messages: Vec<&[u8]> = indices.iter().map(|index| items[*index].message).collect();
        signatures.clear();
        let result = sign_batch(items[indices[0]].key, &messages, &mut signatures);
        distribute(items, indices, result, &signatures, &mut outcome);
    }
    outcome
}

/// Writes the signatures of a batch, all of one length, to the places `indices` of `outcome`. If the
/// batch failed, signs each item alone: the fault of one key must not affect the others.
fn distribute(
    items: &[SignItem<'_>],
    indices: &[usize],
    result: Result<(), SignError>,
    signatures: &[u8],
    outcome: &mut [Result<Vec<u8>, SignError>],
) {
    let octets = (signatures.len() / indices.len().max(1)).max(1);
    let mut signatures = signatures.chunks_exact(octets);
    for index in indices {
        let SignItem { key, message } = items[*index];
        outcome[*index] = match result {
            Ok(()) => signatures.next().map(<[u8]>::to_vec).ok_or(SignError::Library),
            Err(_) => {
                let mut signature = Vec::new();
                key.sign(message, &mut signature).map(|()| signature)
            }
        };
    }
}

/// One signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct VerifyItem<'a> {
    /// The key to verify the signature with.
    pub key: &'a PublicKey,
    /// The signed data.
    pub message: &'a [u8],
    /// The signature field of the RRSIG record.
    pub signature: &'a [u8],
}

/// Verifies signatures of any keys and algorithms, in any order. Replaces the contents of `outcome`
/// with one result for each item, in order. Each result is the same as that of
/// [`PublicKey::verify`].
///
/// The more items have the same key, the faster it is. Clones of a key count as the same key; two
/// results of parsing the same key do not. With P-256, items of different keys are verified eight at
/// a time if the processor has AVX-512 IFMA.
pub fn verify_batch(items: &[VerifyItem<'_>], outcome: &mut Vec<Result<(), BadSignature>>) {
    outcome.clear();
    outcome.resize(items.len(), Err(BadSignature));
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| items[*index].key.identity());
    let (mut with_table, mut without_table) = (Vec::new(), Vec::new());
    for indices in order.chunk_by(|a, b| items[*a].key.identity() == items[*b].key.identity()) {
        let signed = indices.iter().map(|index| (*index, (items[*index].message, items[*index].signature)));
        let verifier = items[indices[0]].key.verifier();
        match verifier.lane_key(indices.len()) {
            Some(LaneKey::Table(table)) => {
                with_table.extend(signed.map(|(at, signed)| (at, (table, signed))))
            }
            Some(LaneKey::Coordinates(key)) => {
                without_table.extend(signed.map(|(at, signed)| (at, (key, signed))));
            }
            None => {
                let (signed, mut results): (Vec<_>, _) =
                    (signed.map(|(_, signed)| signed).collect(), Vec::new());
                verifier.verify_batch(&signed, &mut results);
                indices.iter().zip(results).for_each(|(index, result)| outcome[*index] = result);
            }
        }
    }
    verify_together(items, with_table, p256::verify_by_tables, outcome);
    let minimum = Engine::detect().min_signatures_without_table();
    let is_faster = minimum.is_some_and(|minimum| without_table.len() >= minimum);
    let verify_each = |signed: &[_]| if is_faster { p256::verify_each(signed) } else { Vec::new() };
    verify_together(items, without_table, verify_each, outcome);
}

/// Verifies signatures of P-256 of different keys with `verify`. `signed` has the index of each item. If `verify`
/// has no result, the single check decides.
fn verify_together<T>(
    items: &[VerifyItem<'_>],
    signed: Vec<(usize, T)>,
    verify: impl FnOnce(&[T]) -> Vec<Option<bool>>,
    outcome: &mut [Result<(), BadSignature>],
) {
    let (indices, signed): (Vec<usize>, Vec<T>) = signed.into_iter().unzip();
    let mut are_valid = verify(&signed).into_iter();
    for index in indices {
        let VerifyItem { key, message, signature } = items[index];
        outcome[index] = match are_valid.next().flatten() {
            Some(true) => Ok(()),
            Some(false) => Err(BadSignature),
            None => key.verify(message, signature),
        };
    }
}
