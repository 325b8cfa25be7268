//! The counts of generated snapshots. They come from the states of the model, not from the rows.

use super::domain::{Domain, State};
use super::model::{OPERATORS, Operator};
use crate::snapshot::{Day, date_text};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a report of the generated data must find.
#[derive(Serialize)]
pub(super) struct Truth {
    pub(super) seed: u64,
    pub(super) domains: u32,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) every_days: u16,
    pub(super) rows: u64,
    pub(super) operators: Vec<Operator>,
    pub(super) snapshots: Vec<SnapshotTruth>,
}

/// Counts of a snapshot.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SnapshotTruth {
    pub(super) source: &'static str,
    pub(super) date: String,
    pub(super) domains: u64,
    pub(super) signed: u64,
    pub(super) dnskey_without_ds: u64,
    pub(super) unsigned: u64,
    pub(super) unknown: u64,
    /// Signed domains by number of the algorithm.
    pub(super) algorithms: BTreeMap<u8, u64>,
    /// Domains with keys by denial mechanism.
    pub(super) denial: BTreeMap<&'static str, u64>,
    /// Domains with NSEC3 by iterations.
    pub(super) iterations: BTreeMap<u16, u64>,
    /// Domains with NSEC3 and opt-out.
    pub(super) opt_out: u64,
    /// Signed domains by operator.
    pub(super) operators: BTreeMap<&'static str, u64>,
    /// Domains and signed domains with a rank up to 1,000, 10,000, 100,000 and 1,000,000; each domain
    /// is in one class.
    pub(super) ranks: BTreeMap<i32, (u64, u64)>,
}

impl SnapshotTruth {
    pub(super) fn new(source: &'static str, day: Day) -> Self {
        Self {
            source,
            date: date_text(day),
            domains: 0,
            signed: 0,
            dnskey_without_ds: 0,
            unsigned: 0,
            unknown: 0,
            algorithms: BTreeMap::new(),
            denial: BTreeMap::new(),
            iterations: BTreeMap::new(),
            opt_out: 0,
            operators: BTreeMap::new(),
            ranks: BTreeMap::new(),
        }
    }

    /// Counts a domain.
    pub(super) fn count(&mut self, domain: &Domain, state: State) {
        let operator = &OPERATORS[domain.operator];
        self.domains += 1;
        let mut is_signed = false;
        match state {
            State::Unknown => self.unknown += 1,
            State::Unsigned => self.unsigned += 1,
            State::Keys { rollover, has_ds, zero_iterations } => {
                self.count_denial(operator, zero_iterations);
                is_signed = has_ds;
                if has_ds {
                    self.signed += 1;
                    *self.operators.entry(operator.name).or_default() += 1;
                    for number in operator.key_numbers(rollover) {
                        *self.algorithms.entry(number).or_default() += 1;
                    }
                } else {
                    self.dnskey_without_ds += 1;
                }
            }
        }
        if let Some(rank) = domain.rank {
            let class = [1000, 10_000, 100_000].into_iter().find(|class| rank <= *class).unwrap_or(1_000_000);
            let (domains, signed) = self.ranks.entry(class).or_default();
            *domains += 1;
            *signed += u64::from(is_signed);
        }
    }

    fn count_denial(&mut self, operator: &Operator, zero_iterations: bool) {
        *self.denial.entry(operator.denial).or_default() += 1;
        if let Some(policy) = &operator.nsec3 {
            let iterations = if zero_iterations { 0 } else { policy.iterations };
            *self.iterations.entry(iterations).or_default() += 1;
            self.opt_out += u64::from(policy.opt_out);
        }
    }
}

/// Returns the snapshots of the first day of each month, and of the last day.
pub(super) fn selected(snapshots: &[SnapshotTruth]) -> Vec<SnapshotTruth> {
    let mut first_days: BTreeMap<&str, &str> = BTreeMap::new();
    for snapshot in snapshots {
        first_days.entry(&snapshot.date[..7]).or_insert(&snapshot.date);
    }
    let last = snapshots.last().map(|snapshot| snapshot.date.as_str());
    let is_selected = |snapshot: &&SnapshotTruth| {
        first_days.get(&snapshot.date[..7]) == Some(&snapshot.date.as_str())
            || Some(snapshot.date.as_str()) == last
    };
    snapshots.iter().filter(is_selected).cloned().collect()
}
