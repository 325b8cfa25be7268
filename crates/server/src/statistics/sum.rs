//! Totals over the counters of all threads.

use super::histograms::{Latencies, Sizes};
use super::thread::{CookieResult, Counters, DropReason, OutcomeIndex, QueryFlags, RCODES, TsigResult};
use super::transfers::TransferTotals;
use nonesuch_net::Transport;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Totals since the start of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticsTotals {
    /// Totals for each transport, in the order of [`Transport::ALL`].
    pub transports: [TransportTotals; Transport::ALL.len()],
    /// Transfers and NOTIFY.
    pub transfers: TransferTotals,
}

impl StatisticsTotals {
    /// Returns the totals of one transport.
    #[must_use]
    pub const fn of(&self, transport: Transport) -> &TransportTotals {
        &self.transports[transport as usize]
    }

    /// Returns the number of messages with this opcode that got an error response and are not
    /// counted as queries.
    #[must_use]
    pub fn error_responses(&self, opcode: u8) -> u64 {
        let all = self.transports.iter().flat_map(|transport| &transport.other_messages);
        let errors = all.filter(|((found, rcode), _)| *found == opcode && *rcode != Rcode::NOERROR);
        errors.map(|(_, count)| count).sum()
    }
}

/// Totals of one transport. *Queries* are messages with opcode QUERY that the server could read and
/// answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransportTotals {
    /// Queries by type. All types above 257 (CAA) share the key `None`.
    pub types: BTreeMap<Option<Rtype>, u64>,
    /// Responses to queries by response code. Code 31 includes all higher codes.
    pub rcodes: BTreeMap<Rcode, u64>,
    /// Queries with an OPT record.
    pub edns: u64,
    /// Queries with the DO flag.
    pub dnssec_ok: u64,
    /// Truncated responses to queries.
    pub truncated: u64,
    /// Queries by size.
    pub query_sizes: Sizes,
    /// Responses to queries by size.
    pub response_sizes: Sizes,
    /// Responses by latency: the time from the return of the receive call to the return of the send
    /// call.
    pub latencies: Latencies,
    /// Other answered messages, by opcode and response code: NOTIFY, UPDATE and malformed messages.
    pub other_messages: BTreeMap<(u8, Rcode), u64>,
    /// Messages that were not answered, in the order of [`DropReason::ALL`].
    pub drops: [u64; DropReason::ALL.len()],
    /// Cookie options, in the order of [`CookieResult::ALL`].
    pub cookies: [u64; CookieResult::ALL.len()],
    /// TSIG records, in the order of [`TsigResult::ALL`].
    pub tsig: [u64; TsigResult::ALL.len()],
    /// Responses that rate limiting truncated.
    pub slips: u64,
    /// Queries whose online work exceeded the budget.
    pub over_budget: u64,
    /// Queries that an access list denied.
    pub prohibited: u64,
}

impl TransportTotals {
    pub(super) fn add(&mut self, counters: &Counters) {
        for (number, count) in nonzero(&counters.types) {
            *self.types.entry(Some(Rtype(number as u16))).or_default() += count;
        }
        for (_, count) in nonzero(std::slice::from_ref(&counters.other_types)) {
            *self.types.entry(None).or_default() += count;
        }
        for (index, count) in nonzero(&counters.outcomes) {
            let (rcode, flags) = OutcomeIndex::decode(index);
            *self.rcodes.entry(rcode).or_default() += count;
            self.edns += if flags.has(QueryFlags::EDNS) { count } else { 0 };
            self.dnssec_ok += if flags.has(QueryFlags::DNSSEC_OK) { count } else { 0 };
            self.truncated += if flags.has(QueryFlags::TRUNCATED) { count } else { 0 };
        }
        for (index, count) in nonzero(&counters.other_messages) {
            let key = ((index / RCODES) as u8, Rcode((index % RCODES) as u16));
            *self.other_messages.entry(key).or_default() += count;
        }
        self.query_sizes.add(&counters.query_sizes);
        self.response_sizes.add(&counters.response_sizes);
        self.latencies.add(&counters.latencies);
        add_all(&mut self.drops, &counters.drops);
        add_all(&mut self.cookies, &counters.cookies);
        add_all(&mut self.tsig, &counters.tsig);
        self.slips += counters.slips.load(Relaxed);
        self.over_budget += counters.over_budget.load(Relaxed);
        self.prohibited += counters.prohibited.load(Relaxed);
    }
}

/// Returns the counters that are not zero, with their indexes.
fn nonzero(counters: &[AtomicU64]) -> impl Iterator<Item = (usize, u64)> + '_ {
    let counts = counters.iter().map(|counter| counter.load(Relaxed)).enumerate();
    counts.filter(|(_, count)| *count > 0)
}

fn add_all(sums: &mut [u64], counters: &[AtomicU64]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum += counter.load(Relaxed);
    }
}
