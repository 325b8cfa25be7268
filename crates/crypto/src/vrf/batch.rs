//! Many proofs at once, also of different keys: generation and verification.

use super::{
    BadProof, MAX_BATCH_INPUTS, Private, ProveError, Public, STACK_BYTES, VRF_HASH_OCTETS, VrfPrivateKey,
    VrfPublicKey, p256,
};
use crate::wipe::wiping_stack;

/// A key and an input to prove.
#[derive(Clone, Copy, Debug)]
pub struct VrfProveItem<'a> {
    /// The private key.
    pub key: &'a VrfPrivateKey,
    /// The input: for NSEC5 a name in canonical form.
    pub input: &'a [u8],
}

/// A proof and the hash that it proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VrfProof {
    /// The proof, of [`VrfAlgorithmEntry::proof_octets`](super::VrfAlgorithmEntry::proof_octets).
    pub octets: Vec<u8>,
    /// The hash.
    pub hash: [u8; VRF_HASH_OCTETS],
}

/// Generates a proof for each item, in order. Each is the same as that of [`VrfPrivateKey::prove`].
/// On curves, it takes less time than single proofs: on P-256 whatever the keys are, on Edwards25519
/// for items of one key.
pub fn prove_batch(items: &[VrfProveItem<'_>]) -> Vec<Result<VrfProof, ProveError>> {
    let mut outcome = vec![Err(ProveError::Library); items.len()];
    let is_on_p256 = |index: &usize| matches!(&*items[*index].key.key, Private::P256(_));
    let (on_p256, mut others): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(is_on_p256);
    for indices in on_p256.chunks(MAX_BATCH_INPUTS) {
        let on_p256 = indices.iter().filter_map(|index| match &*items[*index].key.key {
            Private::P256(key) => Some((key, items[*index].input)),
            Private::Edwards(_) | Private::Rsa(_) => None,
        });
        let (on_p256, mut proofs, mut hashes) = (on_p256.collect::<Vec<_>>(), Vec::new(), Vec::new());
        let result = wiping_stack::<STACK_BYTES, _>(|| p256::prove_batch(&on_p256, &mut proofs, &mut hashes));
        distribute(items, indices, result, &proofs, &hashes, &mut outcome);
    }
    others.sort_by_key(|index| std::ptr::from_ref(items[*index].key));
    for indices in others.chunk_by(|a, b| std::ptr::eq(items[*a].key, items[*b].key)) {
        let inputs: Vec<&[u8]> = indices.iter().map(|index| items[*index].input).collect();
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        let result = items[indices[0]].key.prove_batch(&inputs, &mut proofs, &mut hashes);
        distribute(items, indices, result, &proofs, &hashes, &mut outcome);
    }
    outcome
}

/// Writes the proofs of a batch to the places `indices` of `outcome`. If the batch failed, proves each
/// item alone: the fault of one key or input must not affect the others.
fn distribute(
    items: &[VrfProveItem<'_>],
    indices: &[usize],
    result: Result<(), ProveError>,
    proofs: &[u8],
    hashes: &[[u8; VRF_HASH_OCTETS]],
    outcome: &mut [Result<VrfProof, ProveError>],
) {
    if result.is_err() {
        for index in indices {
            let (VrfProveItem { key, input }, mut octets) = (items[*index], Vec::new());
            outcome[*index] = key.prove(input, &mut octets).map(|hash| VrfProof { octets, hash });
        }
        return;
    }
    let octets = proofs.len() / indices.len().max(1);
    for ((index, octets), hash) in indices.iter().zip(proofs.chunks_exact(octets.max(1))).zip(hashes) {
        outcome[*index] = Ok(VrfProof { octets: octets.to_vec(), hash: *hash });
    }
}

/// A key, an input and the proof to verify.
#[derive(Clone, Copy, Debug)]
pub struct VrfVerifyItem<'a> {
    /// The public key.
    pub key: &'a VrfPublicKey,
    /// The input: for NSEC5 a name in canonical form.
    pub input: &'a [u8],
    /// The proof.
    pub proof: &'a [u8],
}

/// Verifies many proofs. Replaces the contents of `outcome` with the results of
/// [`VrfPublicKey::verify`] for each item, in order.
///
/// On P-256, it takes a fraction of the time of single verifications if the processor has AVX-512
/// IFMA, whatever the keys are. In all other cases it is a loop.
pub fn verify_batch(items: &[VrfVerifyItem<'_>], outcome: &mut Vec<Result<[u8; VRF_HASH_OCTETS], BadProof>>) {
    outcome.clear();
    let on_p256 = items.iter().filter_map(|item| match &*item.key.key {
        Public::P256(key) => Some((&**key, item.input, item.proof)),
        Public::Edwards(_) | Public::Rsa(_) => None,
    });
    let mut results = Vec::new();
    p256::verify_batch(&on_p256.collect::<Vec<_>>(), &mut results);
    let mut results = results.into_iter();
    outcome.extend(items.iter().map(|item| match &*item.key.key {
        Public::P256(_) => results.next().unwrap_or(Err(BadProof)),
        Public::Edwards(_) | Public::Rsa(_) => item.key.verify(item.input, item.proof),
    }));
}
