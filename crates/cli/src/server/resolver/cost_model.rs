//! The counters of the cost model in each of the last seconds.

use crate::control_protocol::{CostModelSecond, CostModelStatus};
use nonesuch_resolver::ModelTotals;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Number of seconds that are kept: a client that asks once a minute misses none.
const SECONDS: usize = 90;

/// The last seconds.
#[derive(Debug, Default)]
pub(super) struct CostModelHistory(Mutex<History>);

#[derive(Debug, Default)]
struct History {
    last: ModelTotals,
    seconds: VecDeque<CostModelSecond>,
}

impl CostModelHistory {
    /// Adds the work since the last call. `unix`: the time in seconds since 1970.
    pub(super) fn sample(&self, totals: ModelTotals, unix: u64) {
        let mut history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let second = second(unix, &totals, Some(&history.last));
        history.last = totals;
        if history.seconds.len() == SECONDS {
            history.seconds.pop_front();
        }
        history.seconds.push_back(second);
    }

    pub(super) fn status(&self, totals: &ModelTotals, unix: u64) -> CostModelStatus {
        let history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        CostModelStatus {
            total: second(unix, totals, None),
            seconds: history.seconds.iter().cloned().collect(),
        }
    }
}

/// The difference of two totals; without an earlier one, the totals themselves.
fn second(unix: u64, totals: &ModelTotals, before: Option<&ModelTotals>) -> CostModelSecond {
    let none = ModelTotals::default();
    let before = before.unwrap_or(&none);
    let earlier = |number: u8| {
        let found = before.algorithms.iter().find(|(known, ..)| *known == number);
        found.map_or((0, 0), |(_, signatures, verified)| (*signatures, *verified))
    };
    let differences = totals.algorithms.iter().map(|(number, signatures, verified)| {
        let (signatures_before, verified_before) = earlier(*number);
        (*number, signatures - signatures_before, verified - verified_before)
    });
    let (mut signatures, mut verified) = (BTreeMap::new(), BTreeMap::new());
    for (number, signature_count, verified_count) in differences {
        for (counts, count) in [(&mut signatures, signature_count), (&mut verified, verified_count)] {
            if count > 0 {
                counts.insert(number, count);
            }
        }
    }
    CostModelSecond {
        unix,
        queries: totals.queries - before.queries,
        tcp_queries: totals.tcp_queries - before.tcp_queries,
        responses: totals.responses - before.responses,
        truncated: totals.truncated - before.truncated,
        signed_responses: totals.signed_responses - before.signed_responses,
        response_octets: Some(totals.response_octets - before.response_octets),
        signatures,
        verified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(factor: u64) -> ModelTotals {
        let mut totals = ModelTotals::default();
        (totals.queries, totals.responses, totals.signed_responses) = (5 * factor, 4 * factor, 3 * factor);
        totals.response_octets = 600 * factor;
        totals.algorithms = vec![(8, 2 * factor, 0), (13, 7 * factor, factor)];
        totals
    }

    #[test]
    fn each_second_has_the_work_since_the_last_one() {
        let history = CostModelHistory::default();
        (1..=100).for_each(|number| history.sample(totals(number), 1000 + number));
        let status = history.status(&totals(100), 1100);
        assert_eq!((status.total.queries, status.total.verified.get(&13)), (500, Some(&100)));
        assert_eq!((status.seconds.len(), status.seconds[0].unix), (SECONDS, 1100 - SECONDS as u64 + 1));
        for second in &status.seconds {
            assert_eq!((second.queries, second.responses, second.signed_responses), (5, 4, 3));
            assert_eq!(second.response_octets, Some(600));
            assert_eq!(second.signatures, BTreeMap::from([(8, 2), (13, 7)]));
            assert_eq!(second.verified, BTreeMap::from([(13, 1)]));
        }
    }
}
