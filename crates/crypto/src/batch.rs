//! Many signatures at a time. Every algorithm has a plain loop for both directions; a faster form is put behind
//! [`Signer::sign_batch`](crate::key::Signer) or [`Verifier::verify_batch`](crate::key::Verifier).
//!
//! What is verified together is of one key. Ed25519 has a faster form ([`edwards`]), which spends some work on the key
//! first, once; the other algorithms have the loop.

pub(crate) mod edwards;

use crate::error::{BadSignature, SignError};
use crate::key::{PrivateKey, PublicKey};

/// A message and what is said to be the signature over it.
pub(crate) type Signed<'a> = (&'a [u8], &'a [u8]);

/// Appends one signature for each message to `out`, in order, each of [`PrivateKey::signature_octets`] octets.
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
