//! Checks whether the zones with a negative trust anchor validate again (RFC 7646 §4), and ends those whose
//! time is over. Only the first worker does.
//!
//! A check fetches the DS, DNSKEY and SOA RRsets of the name, and validates them as if there were no
//! negative trust anchor. Nothing of it is used for clients.

use super::Resolver;
use super::anchors::{ANCHOR_WORKER, CLOCK_INTERVAL, unvalidated};
use super::chain::{DsStatus, Trust, chain_question, status_of_outcome};
use super::keys::EntryKeys;
use crate::record::{RecordData, Rrset};
use crate::task::{Outcome, Waiter};
use crate::trust_anchors::ZoneAnchor;
use nonesuch_dnssec::validate::{self, Budget, NoEntryPoint, SecurityStatus, TrustedKeys};
use nonesuch_net::machine::Now;
use nonesuch_proto::message::{Header, Message, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The RRsets that a check fetches.
const TYPES: [Rtype; 3] = [Rtype::DS, Rtype::DNSKEY, Rtype::SOA];

/// The checks in progress.
#[derive(Debug, Default)]
pub(super) struct Rechecks {
    running: Vec<Recheck>,
    /// When the next checks begin.
    next: Option<Instant>,
    /// When the next checks begin, or a negative trust anchor may end.
    pub(super) timer: Option<Instant>,
}

/// A check of one zone.
#[derive(Debug)]
struct Recheck {
    name: Name,
    /// The outcomes of the questions for [`TYPES`].
    outcomes: [Option<Outcome>; TYPES.len()],
}

impl Resolver {
    /// Sets the timer of the next checks.
    pub(super) fn schedule_rechecks(&mut self, now: Now) {
        if self.worker != ANCHOR_WORKER {
            return;
        }
        let validation = &self.settings.options.validation;
        let interval = validation.negative_anchor_recheck;
        let is_needed =
            !interval.is_zero() && validation.negative_anchors.iter().any(|anchor| anchor.is_rechecked);
        let next = self.rechecks.next.unwrap_or(now.instant + interval);
        self.rechecks.next = is_needed.then_some(next.min(now.instant + interval));
        let ends = validation.negative_anchors.iter().filter_map(|anchor| anchor.expires);
        // UNIX time can be set.
        let end = ends.min().map(|end| end.saturating_sub(now.unix).min(CLOCK_INTERVAL));
        let end = end.map(|seconds| now.instant + Duration::from_secs(seconds));
        self.rechecks.timer = self.rechecks.next.into_iter().chain(end).min();
        self.timers.extend(self.rechecks.timer.map(|due| Reverse((due, super::Timer::NegativeAnchors))));
    }

    /// Ends negative trust anchors whose time is over, and begins the checks that are due.
    pub(super) fn handle_recheck_timer(&mut self, now: Now) {
        if self.shared.end_expired_negative_anchors(now.unix) {
            self.use_new_settings();
        }
        if self.rechecks.next.is_some_and(|next| next <= now.instant) {
            self.rechecks.next = None;
            for name in self.checkable_names() {
                self.begin_recheck(&name, now);
            }
        }
        self.schedule_rechecks(now);
    }

    /// Returns the names to check. Below another negative trust anchor, nothing can be validated.
    fn checkable_names(&self) -> Vec<Name> {
        let validation = &self.settings.options.validation;
        let all = &validation.negative_anchors;
        let is_checkable = |name: &&Name| {
            let is_hidden = all.iter().any(|other| name.view().is_below(other.name.view()));
            !is_hidden && !self.rechecks.running.iter().any(|recheck| recheck.name == **name)
        };
        let mut names: Vec<Name> = all
            .iter()
            .filter(|anchor| anchor.is_rechecked)
            .map(|anchor| &anchor.name)
            .filter(is_checkable)
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn begin_recheck(&mut self, name: &Name, now: Now) {
        let name = name.view().to_canonical();
        // The root has no DS RRset.
        let no_ds = name.view().is_root().then_some(Outcome::EMPTY);
        self.rechecks.running.push(Recheck { name: name.clone(), outcomes: [no_ds, None, None] });
        for rtype in TYPES {
            let question = match rtype {
                Rtype::DS if name.view().is_root() => continue,
                Rtype::DS => chain_question(name.clone(), rtype),
                // They are validated with all outcomes.
                _ => unvalidated(name.clone(), rtype),
            };
            if !self.fetch_for(question, Waiter::Recheck(name.clone()), now) {
                self.observe_recheck(&name, rtype, &Outcome::failure(super::BUSY, true), now);
            }
        }
    }

    /// Processes an outcome. After the last one, ends the negative trust anchor if the zone validates.
    pub(super) fn observe_recheck(&mut self, name: &Name, rtype: Rtype, outcome: &Outcome, now: Now) {
        let running = &mut self.rechecks.running;
        let Some(index) = running.iter().position(|recheck| recheck.name == *name) else { return };
        if let Some(part) = TYPES.iter().position(|part| *part == rtype) {
            running[index].outcomes[part] = Some(outcome.clone());
        }
        if running[index].outcomes.iter().any(Option::is_none) {
            return;
        }
        let outcomes = running.swap_remove(index).outcomes;
        if self.validates_again(name, &outcomes, now) && self.shared.end_unneeded_negative_anchor(name) {
            self.use_new_settings();
            self.schedule_rechecks(now);
        }
    }

    /// Whether the SOA RRset of the name is secure or insecure without its negative trust anchor.
    fn validates_again(&self, name: &Name, outcomes: &[Option<Outcome>; 3], now: Now) -> bool {
        let [Some(ds), Some(dnskeys), Some(soa)] = outcomes else { return false };
        let validation = &self.settings.options.validation;
        let Some(anchor) = validation.anchors.closest(name.view()) else { return true };
        let budget = &mut Budget::new(self.settings.options.limits.validation);
        let of_zone = |anchor, ds: Option<&RecordData>, budget: &mut Budget| match self
            .validated_keys(name, anchor, ds, dnskeys, now, budget)
        {
            Ok(keys) => is_proved(name, Rtype::SOA, soa, &keys, now, budget),
            Err(is_insecure) => is_insecure,
        };
        if anchor.apex == *name {
            return of_zone(Some(anchor), None, budget);
        }
        match status_of_outcome(name.view(), ds) {
            DsStatus::Secure(ds) => of_zone(None, Some(&ds.records), budget),
            DsStatus::Insecure | DsStatus::NoName => true,
            DsStatus::Failed(_) | DsStatus::Unknown => false,
            // The name is in the zone above it.
            DsStatus::NoCut => match name.view().parent().map(|parent| self.trust_of(parent, &[], now)) {
                Some(Trust::Secure(keys) | Trust::Enclosed(keys)) => {
                    is_proved(name, Rtype::SOA, soa, &keys, now, budget)
                }
                Some(Trust::Insecure(..)) => true,
                _ => false,
            },
        }
    }

    /// Returns the keys of the zone.
    ///
    /// # Errors
    /// The RRset is bogus; or with `true`, the zone is insecure.
    fn validated_keys(
        &self,
        name: &Name,
        anchor: Option<&ZoneAnchor>,
        ds: Option<&RecordData>,
        dnskeys: &Outcome,
        now: Now,
        budget: &mut Budget,
    ) -> Result<Arc<TrustedKeys>, bool> {
        let is_dnskey = |rrset: &&Rrset| rrset.rtype == Rtype::DNSKEY && rrset.owner == *name;
        let rrset = dnskeys.answer.iter().find(is_dnskey).ok_or(false)?;
        let records: Vec<&[u8]> = rrset.records.iter().collect();
        let entry = self.select_entry_keys(name, anchor, ds, &records);
        let EntryKeys { keys, requires_post_quantum } =
            entry.map_err(|reason| matches!(reason, NoEntryPoint::Insecure(_)))?;
        if !is_proved(name, Rtype::DNSKEY, dnskeys, &keys, now, budget) {
            return Err(false);
        }
        Ok(self.zone_keys(name, records, requires_post_quantum))
    }
}

/// Whether the keys prove the outcome of a question that was not validated.
fn is_proved(
    name: &Name,
    rtype: Rtype,
    outcome: &Outcome,
    keys: &TrustedKeys,
    now: Now,
    budget: &mut Budget,
) -> bool {
    let question = validate::Question { name: name.view(), rtype };
    let status = validate::validate(question, &message_of(outcome), keys, now.unix as u32, budget).status;
    matches!(status, SecurityStatus::Secure | SecurityStatus::Insecure(_))
}

/// Returns a response with the records of an outcome.
fn message_of(outcome: &Outcome) -> Message {
    let header = Header { id: 0, flags: flags::QR | outcome.rcode.0 & 0x0f, counts: [0; 4] };
    let mut records = Vec::new();
    for (section, rrsets) in [(Section::Answer, &outcome.answer), (Section::Authority, &outcome.authority)] {
        for rrset in rrsets {
            let record = |rtype, rdata: &[u8]| Record {
                section,
                owner: rrset.owner.clone(),
                rtype,
                class: Class::IN,
                ttl: rrset.ttl,
                rdata: rdata.to_vec(),
            };
            records.extend(rrset.records.iter().map(|rdata| record(rrset.rtype, rdata)));
            records.extend(rrset.signatures.iter().map(|rdata| record(Rtype::RRSIG, rdata)));
        }
    }
    Message { header, questions: Vec::new(), records }
}
