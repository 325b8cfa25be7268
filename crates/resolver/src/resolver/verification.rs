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
use nonesuch_dnssec::validate::{Budget, JobAlgorithm, Validation, verify_jobs};
use nonesuch_net::machine::Now;
use std::collections::{HashMap, VecDeque};

/// Time for cryptography in a turn, in ns, and for the other steps of tasks.
pub(super) const TURN_NANOSECONDS: u64 = 1_000_000;
/// Number of valid signatures and NSEC5 proofs that a worker remembers: 128 KiB.
pub(super) const VALID_SIGNATURES: usize = 8192;
/// Time for one record of a response in each step of its validation, in ns.
const RECORD_NANOSECONDS: u64 = 200;
/// Time of a SHA-1 block of an NSEC3 hash, in ns, on a core of 2.6 GHz.
pub(super) const HASH_BLOCK_NANOSECONDS: u64 = 60;

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

    /// Continues queued validations until the time of the turn is spent. `tasks_left` is the time for the other
    /// steps of tasks in this turn, in ns.
    pub(super) fn verify_queued(&mut self, tasks_left: &mut u64, now: Now) {
        let mut left = TURN_NANOSECONDS;
        while left > 0 && !self.verifications.is_empty() {
            left = left.saturating_sub(self.verify_batch(left, now));
            self.run(tasks_left, now);
        }
    }

    /// Continues the next validations, and verifies the signatures and proofs that they need in one batch. Returns
    /// the time that this took, in ns.
    fn verify_batch(&mut self, limit: u64, now: Now) -> u64 {
        // Jobs are estimated before they join the batch: a batch of expensive algorithms must not exceed the turn.
        let (mut spent, mut estimated, mut waiting) = (0, 0, Vec::new());
        while spent + estimated < limit
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
                None if pending.has_failures()
                    && self.shared.cache.is_costly_zone(pending.keys().apex(), now) =>
                {
                    self.end_costly(id, now);
                }
                None => {
                    estimated += pending.job_nanoseconds(&self.valid_signatures);
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
        verify_jobs(pending, &mut self.valid_signatures, |algorithm, nanoseconds| {
            match algorithm {
                JobAlgorithm::Signature(algorithm) => model.count_verification(algorithm.0),
                JobAlgorithm::Proof(_) => model.count_denial_work(0, 1),
            }
            spent += u64::from(nanoseconds);
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
        let Some(checking) = self.take_checking(id) else { return };
        let limits = &self.settings.options.limits.validation;
        if let Some(pending) = &checking.pending
            && Budget::has_many_failures(limits, validation.work)
        {
            self.shared.cache.mark_costly_zone(pending.keys().apex(), now);
        }
        let step = self.use_validation(id, checking, validation, now);
        self.end_turn_of(id, step, now);
    }

    /// Ends the validation of a response of a zone with many signatures that do not verify (RFC 9520): one
    /// of its signatures does not verify. So queries for other names of the zone cost little. Valid
    /// responses of the zone are used as before, and those of other servers are tried: an attacker may have
    /// forged the responses with many signatures.
    fn end_costly(&mut self, id: TaskId, now: Now) {
        let Some(checking) = self.take_checking(id) else { return };
        let step = self.use_costly(id, checking.received, now);
        self.end_turn_of(id, step, now);
    }

    fn take_checking(&mut self, id: TaskId) -> Option<Box<Checking>> {
        let task = self.tasks.get_mut(id)?;
        task.waits_for_turn = false;
        task.checking.take()
    }

    fn end_turn_of(&mut self, id: TaskId, step: Step, now: Now) {
        match step {
            Step::Continue => self.ready.push_back(id),
            Step::Wait => {}
            Step::Finish(outcome) => self.finish(id, &outcome, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpstreamLimits;
    use crate::cache::Question;
    use crate::task::{Task, TaskTable};
    use nonesuch_proto::{Class, Name, Rtype};
    use std::time::Instant;

    #[test]
    fn client_networks_take_turns() {
        let (mut tasks, mut queue) = (TaskTable::default(), VerificationQueue::default());
        let mut push = |network: u64, label: &str| {
            let name: Name = label.parse().unwrap();
            let question = Question { name, rtype: Rtype::A, class: Class::IN, checking_disabled: false };
            let budget = crate::Budget::new(UpstreamLimits::default(), Instant::now());
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
