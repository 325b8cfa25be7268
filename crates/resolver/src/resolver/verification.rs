//! Verification of signatures and NSEC5 proofs at the end of a turn, those of many responses together.
//!
//! All validations that a turn has queued are continued, whatever client they are for. A turn spends
//! about a millisecond on cryptography; the rest is queued, and the client networks take turns. So a
//! zone with expensive signatures delays other clients by little. The cost of a step is an estimate
//! from the number of operations: the machine reads no clock.

use super::Resolver;
use super::iterate::Step;
use crate::hasher::BuildFastHasher;
use crate::task::TaskId;
use crate::validation::Checking;
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::validate::{JobAlgorithm, Validation, verify_jobs};
use nonesuch_net::machine::Now;
use std::collections::{HashMap, VecDeque};

/// Time for cryptography in a turn, in ns.
const TURN_NANOSECONDS: u64 = 1_000_000;
/// Number of valid signatures and NSEC5 proofs that a worker remembers: 128 KiB.
pub(super) const VALID_SIGNATURES: usize = 8192;
/// Number of signatures and proofs from which on no further validation joins a batch.
const BATCH: usize = 64;
/// Time for one record of a response in each step of its validation, in ns.
const RECORD_NANOSECONDS: u64 = 200;
/// Time of a SHA-1 block of an NSEC3 hash, in ns, on a core of 2.6 GHz.
const HASH_BLOCK_NANOSECONDS: u64 = 60;

/// The validations that wait for the end of a turn, by client network.
#[derive(Debug, Default)]
pub(super) struct VerificationQueue {
    tasks: HashMap<u64, VecDeque<TaskId>, BuildFastHasher>,
    /// The networks that have tasks. The first one is next.
    order: VecDeque<u64>,
}

impl VerificationQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn push(&mut self, network: u64, id: TaskId) {
        let tasks = self.tasks.entry(network).or_default();
        if tasks.is_empty() {
            self.order.push_back(network);
        }
        tasks.push_back(id);
    }

    /// Takes a validation of the next network.
    fn pop(&mut self) -> Option<TaskId> {
        let network = self.order.pop_front()?;
        let tasks = self.tasks.get_mut(&network)?;
        let id = tasks.pop_front();
        if tasks.is_empty() {
            self.tasks.remove(&network);
        } else {
            self.order.push_back(network);
        }
        id
    }
}

impl Resolver {
    /// Queues a validation whose keys are known.
    pub(super) fn queue_verification(&mut self, id: TaskId, checking: Box<Checking>) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.checking = Some(checking);
        task.waits_for_turn = true;
        self.verifications.push(task.network, id);
    }

    /// Continues queued validations until the time of the turn is spent.
    pub(super) fn verify_queued(&mut self, now: Now) {
        let mut left = TURN_NANOSECONDS;
        while left > 0 && !self.verifications.is_empty() {
            left = left.saturating_sub(self.verify_batch(left, now));
            self.run(now);
        }
    }

    /// Continues the next validations, and verifies the signatures and proofs that they need in one batch. Returns
    /// the time that this took, in ns.
    fn verify_batch(&mut self, limit: u64, now: Now) -> u64 {
        let (mut spent, mut jobs, mut waiting) = (0, 0, Vec::new());
        while jobs < BATCH
            && spent < limit
            && let Some(id) = self.verifications.pop()
        {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            let Some(pending) = task.checking.as_mut().and_then(|checking| checking.pending.as_mut()) else {
                continue;
            };
            let before = task.budget.validation.spent().hash_blocks;
            let ended = pending.step(&mut task.budget.validation);
            spent += pending.record_count() as u64 * RECORD_NANOSECONDS;
            let hash_blocks = task.budget.validation.spent().hash_blocks - before;
            self.model.count_denial_work(hash_blocks, 0);
            spent += u64::from(hash_blocks) * HASH_BLOCK_NANOSECONDS;
            match ended {
                Some(validation) => self.end_verification(id, &validation, now),
                None => {
                    jobs += pending.job_count();
                    waiting.push(id);
                }
            }
        }
        spent += self.verify_together(&waiting, now);
        spent.max(1)
    }

    /// Verifies the recorded signatures and proofs of validations, and queues these again. Returns the time that this
    /// took, in ns.
    fn verify_together(&mut self, ids: &[TaskId], now: Now) -> u64 {
        let mut taken: Vec<(TaskId, Box<Checking>)> = Vec::with_capacity(ids.len());
        for id in ids {
            let checking = self.tasks.get_mut(*id).and_then(|task| task.checking.take());
            taken.extend(checking.map(|checking| (*id, checking)));
        }
        let (model, mut spent) = (&self.model, 0);
        let pending = taken.iter_mut().filter_map(|(_, checking)| checking.pending.as_deref_mut());
        verify_jobs(pending, &mut self.valid_signatures, |algorithm| match algorithm {
            JobAlgorithm::Signature(algorithm) => {
                model.count_verification(algorithm.0);
                spent += signature_nanoseconds(algorithm);
            }
            JobAlgorithm::Proof(algorithm) => {
                model.count_denial_work(0, 1);
                spent += proof_nanoseconds(algorithm);
            }
        });
        for (id, checking) in taken {
            if let Some(pending) = &checking.pending {
                // The keys may have tables now.
                self.shared.trust.update_size(pending.keys().apex(), now);
            }
            self.queue_verification(id, checking);
        }
        spent
    }

    /// Uses the result of a validation.
    fn end_verification(&mut self, id: TaskId, validation: &Validation, now: Now) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.waits_for_turn = false;
        let Some(checking) = task.checking.take() else { return };
        match self.use_validation(id, checking, validation, now) {
            Step::Continue => self.ready.push_back(id),
            Step::Wait => {}
            Step::Finish(outcome) => self.finish(id, &outcome, now),
        }
    }
}

/// Returns the approximate time of the verification of an NSEC5 proof, in ns, on a core of 2.6 GHz
/// (docs/component-benchmarks.md).
const fn proof_nanoseconds(algorithm: VrfAlgorithm) -> u64 {
    match algorithm {
        // P-256 in batches. One at a time, and without AVX-512 IFMA, it is 100,000.
        VrfAlgorithm::P256_SHA256_TAI | VrfAlgorithm::RSA_FDH_SHA256 => 20_000,
        _ => 80_000,
    }
}

/// Returns the approximate time of the verification of a signature, in ns, on a core of 2.6 GHz
/// (docs/component-benchmarks.md).
fn signature_nanoseconds(algorithm: Algorithm) -> u64 {
    match algorithm.without_alias() {
        Algorithm::ECDSAP256SHA256 => 14_000,
        Algorithm::ED25519 => 35_000,
        Algorithm::ECDSAP384SHA384 => 220_000,
        Algorithm::ED448 => 165_000,
        Algorithm::MLDSA44 => 45_000,
        Algorithm::FALCON512 => 10_000,
        Algorithm::MAYO2 => 31_000,
        Algorithm::SLHDSA128S => 200_000,
        // RSA with up to 4096 bits.
        _ => 40_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Question;
    use crate::task::{Task, TaskTable};
    use crate::{Budget, UpstreamLimits};
    use nonesuch_proto::{Class, Name, Rtype};
    use std::time::Instant;

    #[test]
    fn client_networks_take_turns() {
        let (mut tasks, mut queue) = (TaskTable::default(), VerificationQueue::default());
        let mut push = |network: u64, label: &str| {
            let name: Name = label.parse().unwrap();
            let question = Question { name, rtype: Rtype::A, class: Class::IN, checking_disabled: false };
            let budget = Budget::new(UpstreamLimits::default(), Instant::now());
            let id = tasks.insert(Task::new(question, 0, budget));
            queue.push(network, id);
            id
        };
        let first: Vec<TaskId> = ["a1.", "a2.", "a3."].map(|label| push(1, label)).to_vec();
        let second = push(2, "b1.");
        let order: Vec<TaskId> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [first[0], second, first[1], first[2]]);
        assert!(queue.is_empty());
    }
}
