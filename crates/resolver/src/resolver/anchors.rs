//! Queries for the DNSKEY RRsets of zones whose trust anchors are updated automatically (RFC 5011 §2.3),
//! and the signals of the trusted keys (RFC 8145 §5). Only the first worker sends them.

use super::{Resolver, Timer};
use crate::budget::Budget;
use crate::cache::Question;
use crate::record::Rrset;
use crate::task::{Outcome, Waiter};
use crate::trust_anchors::signal_query_name;
use nonesuch_net::machine::{Now, Output};
use nonesuch_proto::{Class, Name, Rtype};
use std::cmp::Reverse;
use std::time::Duration;

/// The worker that sends the queries.
pub(super) const ANCHOR_WORKER: usize = 0;
/// Maximum time until the next comparison with UNIX time, which can be set, in seconds.
pub(super) const CLOCK_INTERVAL: u64 = 3600;
/// The type of signals (RFC 8145 §5.1).
const NULL: Rtype = Rtype(10);

impl Resolver {
    /// Sets the timer of the next query.
    pub(super) fn schedule_anchor_queries(&mut self, now: Now) {
        if self.worker != ANCHOR_WORKER {
            return;
        }
        let next = self.shared.next_anchor_query(now.unix);
        self.anchor_timer = next.map(|next| {
            let seconds = next.saturating_sub(now.unix).min(CLOCK_INTERVAL);
            now.instant + Duration::from_secs(seconds)
        });
        self.timers.extend(self.anchor_timer.map(|due| Reverse((due, Timer::Anchors))));
    }

    /// Starts the queries that are due.
    pub(super) fn query_anchors(&mut self, now: Now) {
        for apex in self.shared.begin_anchor_queries(now.unix) {
            // Signatures are verified with the keys of the state: validation might fail before a new key
            // is accepted.
            let question = unvalidated(apex.clone(), Rtype::DNSKEY);
            if !self.fetch_for(question, Waiter::Anchor, now) {
                self.end_anchor_query(&apex, None, now);
            }
        }
        self.schedule_anchor_queries(now);
    }

    /// Lets `waiter` wait for a task of its own question, which fetches the RRset even if it is cached.
    /// Returns `false` if no further task may start.
    pub(super) fn fetch_for(&mut self, question: Question, waiter: Waiter, now: Now) -> bool {
        if let Some(task) = self.tasks.find(&question).and_then(|id| self.tasks.get_mut(id)) {
            task.fetches_keys = true;
            task.waiters.push(waiter);
            return true;
        }
        if self.is_full() {
            return false;
        }
        let budget = Budget::new(self.settings.options.limits, now.instant);
        let id = self.start_task(question, (0, 0), budget, vec![waiter]);
        if let Some(task) = self.tasks.get_mut(id) {
            task.fetches_keys = true;
        }
        true
    }

    /// Processes the outcome of a query for the DNSKEY RRset of `apex`.
    pub(super) fn observe_anchor(&mut self, apex: &Name, outcome: &Outcome, now: Now) {
        let is_dnskey = |rrset: &&Rrset| rrset.rtype == Rtype::DNSKEY && rrset.owner == *apex;
        self.end_anchor_query(apex, outcome.answer.iter().find(is_dnskey), now);
        self.schedule_anchor_queries(now);
    }

    fn end_anchor_query(&mut self, apex: &Name, dnskeys: Option<&Rrset>, now: Now) {
        let observed = self.shared.end_anchor_query(apex.view(), dnskeys, now.unix);
        if observed.has_changed {
            self.use_new_settings();
        }
        if self.settings.options.validation.signals_tags {
            self.signal_tags(apex, &observed.tags, now);
        }
    }

    /// Uses settings that this worker has changed, and lets the other workers use them.
    pub(super) fn use_new_settings(&mut self) {
        self.settings = self.shared.settings.load_full();
        let others = self.shared.anchor_workers().filter(|worker| *worker != self.worker);
        self.outputs.push_back(Output::Wake(others.collect()));
    }

    /// Sends a query whose name has the key tags of the trust anchors. Its answer is not used.
    fn signal_tags(&mut self, apex: &Name, tags: &[u16], now: Now) {
        let Some(name) = signal_query_name(apex.view(), tags) else { return };
        let question = unvalidated(name, NULL);
        if self.tasks.find(&question).is_none() && !self.is_full() {
            let budget = Budget::new(self.settings.options.limits, now.instant);
            self.start_task(question, (0, 0), budget, Vec::new());
        }
    }
}

/// A question whose answer is not validated. The name is in lower case.
pub(super) const fn unvalidated(name: Name, rtype: Rtype) -> Question {
    Question { name, rtype, class: Class::IN, checking_disabled: true }
}
