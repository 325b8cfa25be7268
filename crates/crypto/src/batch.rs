//! Many signatures at a time. Every algorithm has a plain loop for both directions; a faster form is put behind
//! [`Signer::sign_batch`](crate::key::Signer) or [`Verifier::verify_batch`](crate::key::Verifier).
//!
//! What is verified together is of one key. Ed25519 and ECDSA on P-256 have a faster form ([`edwards`], [`p256`]), which
//! spends some work on the key first, once; the other algorithms have the loop. P-256 has a faster form of signing too
//! ([`p256::sign`]).

pub(crate) mod edwards;
pub(crate) mod p256;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{BadSignature, SignError};
use crate::key::{PrivateKey, PublicKey};

/// A message and what is said to be the signature over it.
pub(crate) type Signed<'a> = (&'a [u8], &'a [u8]);

/// What is prepared once of a public key for its batches, when it has been seen to be worth it.
pub(crate) struct Lazy<T> {
    /// Signatures that were verified in batches before there was a table.
    seen: AtomicUsize,
    /// `None` inside where the single check must decide on all signatures.
    table: OnceLock<Option<Box<T>>>,
}

impl<T> Lazy<T> {
    pub(crate) const fn new() -> Self {
        Self { seen: AtomicUsize::new(0), table: OnceLock::new() }
    }

    /// The table for a batch of `count` signatures, if there is one or it is time to make it: from `worth` signatures on.
    /// As it is made when about as many signatures were seen as it costs, nobody can make a batch take much more than twice
    /// the time of the loop.
    pub(crate) fn table(&self, count: usize, worth: usize, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        // Nothing but the time that is taken depends on the counter: it needs no order with other memory.
        let is_time = || self.seen.fetch_add(count, Ordering::Relaxed) + count >= worth;
        if self.table.get().is_none() && !is_time() {
            return None;
        }
        self.table.get_or_init(|| make().map(Box::new)).as_deref()
    }
}

/// Appends one signature for each message to `out`, in order, each of [`PrivateKey::signature_octets`] octets.
///
/// With P-256, 16 messages and more take less time than one by one, three and more where the processor has AVX-512 IFMA; they
/// are worked on 64 at a time.
///
/// # Errors
/// Where the library fails; `out` is then as before.
pub fn sign_batch(key: &PrivateKey, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SignError> {
    key.signer().sign_batch(messages, out)
}

/// One signature to verify.
#[derive(Clone, Copy, Debug)]
pub struct VerifyItem<'a> {
    /// The key that is said to have signed.
    pub key: &'a PublicKey,
    /// What is said to be signed.
    pub message: &'a [u8],
    /// The signature field of the RRSIG record.
    pub signature: &'a [u8],
}

/// Verifies many signatures, of any keys and algorithms, in any order. `outcome` is emptied, then holds one result for
/// each item, in order: that of [`PublicKey::verify`], always.
///
/// It is the faster the more items have one key. Clones of a key are one; a key that was parsed twice is two.
pub fn verify_batch(items: &[VerifyItem<'_>], outcome: &mut Vec<Result<(), BadSignature>>) {
    outcome.clear();
    let Some((first, rest)) = items.split_first() else { return };
    if rest.iter().all(|item| item.key.identity() == first.key.identity()) {
        let signed: Vec<_> = items.iter().map(|item| (item.message, item.signature)).collect();
        first.key.verifier().verify_batch(&signed, outcome);
        return;
    }
    outcome.resize(items.len(), Err(BadSignature));
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|place| items[*place].key.identity());
    let (mut signed, mut results) = (Vec::new(), Vec::new());
    for places in order.chunk_by(|a, b| items[*a].key.identity() == items[*b].key.identity()) {
        signed.clear();
        signed.extend(places.iter().map(|place| (items[*place].message, items[*place].signature)));
        results.clear();
        items[places[0]].key.verifier().verify_batch(&signed, &mut results);
        for (place, result) in places.iter().zip(&results) {
            outcome[*place] = *result;
        }
    }
}
