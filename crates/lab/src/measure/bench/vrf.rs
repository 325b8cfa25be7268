//! The loop that counts VRF operations: generation of proofs, one at a time or in batches, and
//! verification.

use super::{OperationError, PrepareError, repeat};
use crate::measure::probe::CountResult;
use crate::measure::subject::Operation;
use nonesuch_crypto::vrf::{BadProof, VrfPrivateKey, VrfPublicKey};
use nonesuch_proto::{Name, NameError};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use std::hint::black_box;

/// Minimum number of inputs that a loop uses in turn. With try-and-increment, the number of
/// attempts differs between inputs. More inputs reduce the effect of chance on the figures.
const INPUTS: usize = 64;
/// Length of the random label, in letters and digits.
const LABEL: usize = 10;

/// A VRF key, inputs, and the proofs of these inputs.
pub(crate) struct VrfBench {
    private: VrfPrivateKey,
    public: VrfPublicKey,
    inputs: Vec<Vec<u8>>,
    proofs: Vec<Vec<u8>>,
    /// Number of proofs that are generated or verified together.
    batch: usize,
}

impl VrfBench {
    /// Creates the bench for a key. `seed` determines the inputs.
    pub(crate) fn new(private: VrfPrivateKey, seed: u64, batch: u16) -> Result<Self, PrepareError> {
        let batch = usize::from(batch.max(1));
        let public = VrfPublicKey::parse(private.algorithm(), private.public_key())?;
        let inputs = inputs(seed, INPUTS.next_multiple_of(batch))?;
        let mut proofs = Vec::with_capacity(inputs.len());
        for input in &inputs {
            let mut proof = Vec::new();
            let hash = private.prove(input, &mut proof)?;
            if public.verify(input, &proof) != Ok(hash) {
                return Err(PrepareError::Unsound);
            }
            proofs.push(proof);
        }
        Ok(Self { private, public, inputs, proofs, batch })
    }

    pub(crate) fn key_octets(&self) -> usize {
        self.private.public_key().len()
    }

    pub(crate) fn proof_octets(&self) -> usize {
        self.proofs.first().map_or(0, Vec::len)
    }

    pub(crate) fn count(&self, operation: Operation, seconds: f64) -> Result<CountResult, OperationError> {
        match operation {
            Operation::Verify => self.count_verifications(seconds),
            Operation::Prove => self.count_proofs(seconds),
            Operation::Sign => Err(OperationError::Absent),
        }
    }

    fn count_verifications(&self, seconds: f64) -> Result<CountResult, OperationError> {
        if self.batch > 1 {
            return self.count_verified_batches(seconds);
        }
        let mut pairs = self.inputs.iter().zip(&self.proofs).cycle();
        repeat(seconds, 1, || {
            let Some((input, proof)) = pairs.next() else { return Ok(()) };
            let verified: Result<_, BadProof> = self.public.verify(black_box(input), black_box(proof));
            black_box(verified?);
            Ok(())
        })
    }

    fn count_verified_batches(&self, seconds: f64) -> Result<CountResult, OperationError> {
        let pairs = self.inputs.iter().zip(&self.proofs);
        let items: Vec<(&[u8], &[u8])> =
            pairs.map(|(input, proof)| (input.as_slice(), proof.as_slice())).collect();
        let mut batches = items.chunks_exact(self.batch).cycle();
        let mut outcome = Vec::with_capacity(self.batch);
        repeat(seconds, self.batch as u64, || {
            let Some(batch) = batches.next() else { return Ok(()) };
            self.public.verify_batch(black_box(batch), &mut outcome);
            for verified in outcome.drain(..) {
                black_box(verified?);
            }
            Ok(())
        })
    }

    /// Counts generated proofs. With a batch of one, the loop has the same cost as
    /// [`VrfPrivateKey::prove`].
    fn count_proofs(&self, seconds: f64) -> Result<CountResult, OperationError> {
        let inputs: Vec<&[u8]> = self.inputs.iter().map(Vec::as_slice).collect();
        let mut batches = inputs.chunks_exact(self.batch).cycle();
        let mut proofs = Vec::with_capacity(self.batch * self.proof_octets());
        let mut hashes = Vec::with_capacity(self.batch);
        repeat(seconds, self.batch as u64, || {
            let Some(batch) = batches.next() else { return Ok(()) };
            proofs.clear();
            hashes.clear();
            self.private.prove_batch(black_box(batch), &mut proofs, &mut hashes)?;
            black_box((&proofs, &hashes));
            Ok(())
        })
    }
}

/// Generates inputs like those of NSEC5: names below `example.` in wire form, with a label of
/// lower-case letters and digits.
fn inputs(seed: u64, count: usize) -> Result<Vec<Vec<u8>>, NameError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let name = |_| {
        let mut octets = [0_u8; LABEL];
        random.fill_bytes(&mut octets);
        let label: String = octets.iter().map(|octet| char::from(LETTERS[usize::from(octet % 32)])).collect();
        let name: Name = format!("{label}.example.").parse()?;
        Ok(name.wire().to_vec())
    };
    (0..count).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Bench, make_key};
    use super::*;
    use crate::measure::subject::Subject;

    fn bench(name: &str) -> VrfBench {
        let subject: Subject = name.parse().expect("a subject");
        match Bench::new(subject, &make_key(subject).expect("a key"), 1).expect("prepared") {
            Bench::Vrf(bench) => bench,
            Bench::Signatures(_) => panic!("{name} is no VRF"),
        }
    }

    #[test]
    fn every_vrf_is_counted() {
        for entry in &nonesuch_crypto::vrf::VRF_ALGORITHMS {
            let bench = bench(&format!("vrf-{}", entry.name));
            for operation in [Operation::Prove, Operation::Verify] {
                let counted = bench.count(operation, 0.002).expect("counted");
                assert!(counted.operations > 0 && counted.seconds >= 0.002, "{}: {counted:?}", entry.name);
            }
            assert!(matches!(bench.count(Operation::Sign, 0.002), Err(OperationError::Absent)));
            assert_eq!(bench.proof_octets(), entry.proof_octets);
        }
        let bench = bench("vrf-ed25519*24");
        // The number of inputs is a multiple of the batch size.
        assert_eq!(bench.inputs.len(), 72);
        let counted = bench.count(Operation::Prove, 0.002).expect("counted");
        assert!(counted.operations > 0 && counted.operations.is_multiple_of(24), "{counted:?}");
        let counted = self::bench("vrf-p256*24").count(Operation::Verify, 0.002).expect("counted");
        assert!(counted.operations > 0 && counted.operations.is_multiple_of(24), "{counted:?}");
    }

    #[test]
    fn a_proof_that_is_refused_is_an_error_and_no_figure() {
        for name in ["vrf-ed25519", "vrf-p256*32"] {
            let mut bench = bench(name);
            bench.proofs[3][40] ^= 1;
            let outcome = bench.count(Operation::Verify, 0.5);
            assert!(matches!(outcome, Err(OperationError::VerifyProof(BadProof))), "{name}");
        }
    }

    #[test]
    fn inputs_are_names_in_wire_form() {
        let one = inputs(7, 3).expect("inputs");
        assert_eq!(one, inputs(7, 3).expect("inputs"));
        assert_ne!(one, inputs(8, 3).expect("inputs"));
        assert!(one.iter().all(|name| name.len() == 11 + 9 && name.ends_with(b"\x07example\x00")));
        assert_ne!(one[0], one[1]);
    }
}
