//! Counters for the resolver cost model: queries to servers, responses, signatures in them, and verified
//! signatures. Document 000 of the laboratory calls them Q, R, R_s, S and S_v (docs/metrics.md).
//!
//! Each worker writes its own counters; reading sums those of all workers.

use nonesuch_net::Transport;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, flags};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of algorithms.
const ALGORITHMS: usize = 256;

/// The counters of one worker. Only the worker writes them.
#[derive(Debug)]
pub(crate) struct ModelCounters {
    queries: AtomicU64,
    tcp_queries: AtomicU64,
    responses: AtomicU64,
    truncated: AtomicU64,
    response_octets: AtomicU64,
    signed_responses: AtomicU64,
    /// Signatures in responses, by algorithm.
    signatures: [AtomicU64; ALGORITHMS],
    /// Verified signatures, by algorithm.
    verified: [AtomicU64; ALGORITHMS],
    hash_blocks: AtomicU64,
    proofs: AtomicU64,
}

/// The counters of all workers.
#[derive(Debug, Default)]
pub struct Model(Mutex<Vec<Arc<ModelCounters>>>);

/// The sums of all workers, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelTotals {
    /// Queries to servers, repeated ones included (Q).
    pub queries: u64,
    /// Those over TCP.
    pub tcp_queries: u64,
    /// Responses, truncated ones included (R).
    pub responses: u64,
    /// Truncated responses.
    pub truncated: u64,
    /// Octets of all responses.
    pub response_octets: u64,
    /// Responses with a signature (R_s).
    pub signed_responses: u64,
    /// Number of each algorithm, signatures in responses (S), and verified signatures, failed ones
    /// included (S_v). Algorithms without any are missing.
    pub algorithms: Vec<(u8, u64, u64)>,
    /// SHA-1 blocks of NSEC3 hashes.
    pub hash_blocks: u64,
    /// Verified NSEC5 proofs, failed ones included.
    pub proofs: u64,
}

impl ModelTotals {
    /// Signatures in responses, of all algorithms.
    #[must_use]
    pub fn signatures(&self) -> u64 {
        self.algorithms.iter().map(|(_, signatures, _)| signatures).sum()
    }

    /// Verified signatures, of all algorithms.
    #[must_use]
    pub fn verified(&self) -> u64 {
        self.algorithms.iter().map(|(.., verified)| verified).sum()
    }
}

impl Model {
    /// Returns counters for a worker.
    pub(crate) fn worker(&self) -> Arc<ModelCounters> {
        let counters = Arc::new(ModelCounters::new());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counters));
        counters
    }

    /// Returns the sums of all workers.
    #[must_use]
    pub fn totals(&self) -> ModelTotals {
        let workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |value: &dyn Fn(&ModelCounters) -> &AtomicU64| {
            workers.iter().map(|counters| value(counters).load(Ordering::Relaxed)).sum::<u64>()
        };
        let algorithms = (0..=u8::MAX).filter_map(|number| {
            let signatures = sum(&|counters| &counters.signatures[usize::from(number)]);
            let verified = sum(&|counters| &counters.verified[usize::from(number)]);
            (signatures + verified > 0).then_some((number, signatures, verified))
        });
        ModelTotals {
            queries: sum(&|counters| &counters.queries),
            tcp_queries: sum(&|counters| &counters.tcp_queries),
            responses: sum(&|counters| &counters.responses),
            truncated: sum(&|counters| &counters.truncated),
            response_octets: sum(&|counters| &counters.response_octets),
            signed_responses: sum(&|counters| &counters.signed_responses),
            algorithms: algorithms.collect(),
            hash_blocks: sum(&|counters| &counters.hash_blocks),
            proofs: sum(&|counters| &counters.proofs),
        }
    }
}

impl ModelCounters {
    const fn new() -> Self {
        Self {
            queries: AtomicU64::new(0),
            tcp_queries: AtomicU64::new(0),
            responses: AtomicU64::new(0),
            truncated: AtomicU64::new(0),
            response_octets: AtomicU64::new(0),
            signed_responses: AtomicU64::new(0),
            signatures: [const { AtomicU64::new(0) }; ALGORITHMS],
            verified: [const { AtomicU64::new(0) }; ALGORITHMS],
            hash_blocks: AtomicU64::new(0),
            proofs: AtomicU64::new(0),
        }
    }

    pub(crate) fn count_query(&self, transport: Transport) {
        add(&self.queries);
        if transport == Transport::Tcp {
            add(&self.tcp_queries);
        }
    }

    /// Counts a truncated response that cannot be read.
    pub(crate) fn count_truncated(&self, octets: usize) {
        add(&self.responses);
        add(&self.truncated);
        add_number(&self.response_octets, octets as u64);
    }

    /// Counts a response, which had this number of octets.
    pub(crate) fn count_response(&self, response: &Message, octets: usize) {
        add(&self.responses);
        add_number(&self.response_octets, octets as u64);
        if response.header.flags & flags::TC != 0 {
            add(&self.truncated);
        }
        let signatures = response.records.iter().filter(|record| record.rtype == Rtype::RRSIG);
        // RFC 4034 §3.1: the algorithm is the third octet.
        let mut algorithms = signatures.filter_map(|record| record.rdata.get(2)).peekable();
        if algorithms.peek().is_some() {
            add(&self.signed_responses);
        }
        algorithms.for_each(|number| add(&self.signatures[usize::from(*number)]));
    }

    pub(crate) fn count_verification(&self, algorithm: u8) {
        add(&self.verified[usize::from(algorithm)]);
    }

    /// SHA-1 blocks of NSEC3 hashes so far.
    pub(crate) fn hash_blocks(&self) -> u64 {
        self.hash_blocks.load(Ordering::Relaxed)
    }

    /// Counts NSEC3 hashes and NSEC5 proofs.
    pub(crate) fn count_denial_work(&self, hash_blocks: u32, proofs: u32) {
        add_number(&self.hash_blocks, hash_blocks.into());
        add_number(&self.proofs, proofs.into());
    }
}

/// Adds one to a counter that no other thread writes.
fn add(counter: &AtomicU64) {
    add_number(counter, 1);
}

fn add_number(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::response;
    use nonesuch_proto::message::Rcode;

    #[test]
    fn the_totals_are_the_sums_of_all_workers() {
        let model = Model::default();
        let (first, second) = (model.worker(), model.worker());
        first.count_query(Transport::Udp);
        second.count_query(Transport::Tcp);
        let mut response =
            response(("www.example.", Rtype::A), Rcode::NOERROR, &["www.example. 60 A 192.0.2.1"]);
        second.count_response(&response, 60);
        let mut signature = response.records[0].clone();
        signature.rtype = Rtype::RRSIG;
        for algorithm in [13, 8, 13] {
            signature.rdata = vec![0, 1, algorithm];
            response.records.push(signature.clone());
        }
        first.count_response(&response, 400);
        first.count_truncated(512);
        (0..2).for_each(|_| second.count_verification(13));
        first.count_denial_work(3, 0);
        second.count_denial_work(4, 1);
        let totals = model.totals();
        let expected = ModelTotals {
            queries: 2,
            tcp_queries: 1,
            responses: 3,
            truncated: 1,
            response_octets: 60 + 400 + 512,
            signed_responses: 1,
            algorithms: vec![(8, 1, 0), (13, 2, 2)],
            hash_blocks: 7,
            proofs: 1,
        };
        assert_eq!((totals.signatures(), totals.verified()), (3, 2));
        assert_eq!(totals, expected);
    }
}
