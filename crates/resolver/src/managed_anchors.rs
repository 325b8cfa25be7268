//! Trust anchors that follow the keys of their zones (RFC 5011), for all workers.
//!
//! The program passes the state of each zone at the start ([`Shared::manage_anchors`]). The first
//! worker queries the DNSKEY RRsets when they are due. The program takes the events, logs them, and
//! writes the states to files ([`Shared::anchor_states`]) whenever [`Shared::anchor_revision`] changes.

use crate::local_names::UnknownLocalZone;
use crate::record::Rrset;
use crate::shared::Shared;
use crate::trust_anchors::managed::{
    Change, ManagedAnchor, ManagedAnchorError, Observation, ObservationFault,
};
use crate::trust_anchors::{TrustAnchors, ZoneAnchor};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Name, NameRef};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of events that the program has not taken. The oldest ones are dropped first.
const MAX_EVENTS: usize = 256;

/// Why the options of a resolver are not replaced.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum ReplaceError {
    /// A local zone to switch off is not one.
    LocalNames(#[from] UnknownLocalZone),
    /// Trust anchors cannot be updated automatically.
    Anchors(#[from] ManagedAnchorError),
}

/// An event of the trust anchors of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorEvent {
    /// The state of a key changed.
    Changed(Change),
    /// The DNSKEY RRset of the zone was not accepted.
    Rejected(ObservationFault),
    /// The query for the DNSKEY RRset got no answer.
    NoAnswer,
}

/// The managed trust anchors.
#[derive(Debug, Default)]
pub(crate) struct ManagedAnchors {
    /// Locked while the settings are replaced, so that these always have the anchors of the states.
    state: Mutex<ManagedState>,
}

/// The states of all zones.
#[derive(Debug, Default)]
pub(crate) struct ManagedState {
    /// The time of the start; `None`: the trust anchors are static.
    started: Option<Now>,
    zones: Vec<ManagedZone>,
    events: VecDeque<(Name, AnchorEvent)>,
    /// Number of changes of the states.
    revision: u64,
    /// The number of the last worker.
    last_worker: usize,
}

/// The state of a zone.
#[derive(Clone, Debug)]
struct ManagedZone {
    anchor: ManagedAnchor,
    /// Whether a query for the DNSKEY RRset is in progress.
    is_queried: bool,
}

/// What followed from the end of a query for a DNSKEY RRset.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Whether the trust anchors changed. The settings have the new ones.
    pub(crate) has_changed: bool,
    /// The key tags to signal: those of the trust anchors after an RRset was received.
    pub(crate) tags: Vec<u16>,
}

impl ManagedAnchors {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ManagedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ManagedState {
    /// Returns the states for other configured trust anchors: those of zones that are known continue.
    /// Returns `None` if the trust anchors are static.
    pub(crate) fn merge(
        &self,
        configured: &TrustAnchors,
        unix: u64,
    ) -> Result<Option<MergedAnchors>, ManagedAnchorError> {
        if self.started.is_none() {
            return Ok(None);
        }
        let merge =
            |zone: &ZoneAnchor| match self.zones.iter().find(|known| known.anchor.apex() == zone.apex.view())
            {
                Some(known) => {
                    let anchor = known.anchor.with_configured(zone, unix)?;
                    Ok(ManagedZone { anchor, is_queried: known.is_queried })
                }
                None => Ok(ManagedZone { anchor: ManagedAnchor::new(zone, unix)?, is_queried: false }),
            };
        let zones = configured.iter().map(merge).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(MergedAnchors(zones)))
    }

    /// Takes over the states that [`merge`](Self::merge) returned.
    pub(crate) fn replace(&mut self, merged: MergedAnchors) {
        self.zones = merged.0;
        self.revision += 1;
    }

    /// Returns the times of the next queries that are not in progress, with the zones.
    fn next_queries(&self, unix: u64) -> impl Iterator<Item = (u64, &ManagedZone)> {
        let idle = self.zones.iter().filter(|zone| !zone.is_queried);
        idle.filter_map(move |zone| Some((zone.anchor.next_query(unix)?, zone)))
    }

    fn push_event(&mut self, apex: NameRef<'_>, event: AnchorEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((apex.to_name(), event));
    }
}

/// The states of zones that are not in use yet.
#[derive(Debug)]
pub(crate) struct MergedAnchors(Vec<ManagedZone>);

impl MergedAnchors {
    /// Returns the current trust anchors.
    pub(crate) fn anchors(&self) -> TrustAnchors {
        anchors_of(&self.0)
    }
}

fn anchors_of(zones: &[ManagedZone]) -> TrustAnchors {
    let mut anchors = TrustAnchors::default();
    for ManagedZone { anchor, .. } in zones {
        anchor.anchors().into_iter().for_each(|record| anchors.insert(anchor.apex(), record));
    }
    anchors
}

impl Shared {
    /// Lets the resolver update the trust anchors of these zones automatically (RFC 5011). They replace
    /// the configured trust anchors. Call it before the workers are created. `now` is the time of the
    /// start.
    pub fn manage_anchors(&self, anchors: Vec<ManagedAnchor>, now: Now) {
        let mut state = self.managed.lock();
        state.started = Some(now);
        state.zones = anchors.into_iter().map(|anchor| ManagedZone { anchor, is_queried: false }).collect();
        state.revision += 1;
        self.use_anchors(&state);
    }

    /// Takes the events since the last call, in order, with the apexes of their zones.
    #[must_use]
    pub fn take_anchor_events(&self) -> Vec<(Name, AnchorEvent)> {
        std::mem::take(&mut self.managed.lock().events).into()
    }

    /// Returns a number that grows with each change of the states that
    /// [`anchor_states`](Self::anchor_states) returns. It is 0 if the trust anchors are static.
    #[must_use]
    pub fn anchor_revision(&self) -> u64 {
        self.managed.lock().revision
    }

    /// Returns the states of the managed trust anchors, in canonical order of the apexes at the start.
    #[must_use]
    pub fn managed_anchors(&self) -> Vec<ManagedAnchor> {
        self.managed.lock().zones.iter().map(|zone| zone.anchor.clone()).collect()
    }

    /// Returns the apex of each zone with managed trust anchors, and the text of its state file
    /// ([`ManagedAnchor::to_text`]).
    #[must_use]
    pub fn anchor_states(&self) -> Vec<(Name, String)> {
        let state = self.managed.lock();
        let anchors = state.zones.iter().map(|zone| &zone.anchor);
        anchors.map(|anchor| (anchor.apex().to_name(), anchor.to_text())).collect()
    }

    /// Registers a worker, which [`anchor_workers`](Self::anchor_workers) returns. Returns the time of
    /// the start if trust anchors are managed.
    pub(crate) fn register_worker(&self, worker: usize) -> Option<Now> {
        let mut state = self.managed.lock();
        state.last_worker = state.last_worker.max(worker);
        state.started
    }

    /// Returns the numbers of all workers.
    pub(crate) fn anchor_workers(&self) -> std::ops::RangeInclusive<usize> {
        0..=self.managed.lock().last_worker
    }

    /// Returns the time of the next query for a DNSKEY RRset, in seconds since 1970.
    pub(crate) fn next_anchor_query(&self, unix: u64) -> Option<u64> {
        self.managed.lock().next_queries(unix).map(|(at, _)| at).min()
    }

    /// Returns the zones whose DNSKEY RRsets must be queried now. The caller reports the result of each
    /// query to [`end_anchor_query`](Self::end_anchor_query).
    pub(crate) fn begin_anchor_queries(&self, unix: u64) -> Vec<Name> {
        let mut state = self.managed.lock();
        let is_due = |(at, zone): (u64, &ManagedZone)| (at <= unix).then(|| zone.anchor.apex().to_name());
        let due: Vec<Name> = state.next_queries(unix).filter_map(is_due).collect();
        let queried =
            state.zones.iter_mut().filter(|zone| due.iter().any(|apex| zone.anchor.apex() == apex.view()));
        queried.for_each(|zone| zone.is_queried = true);
        due
    }

    /// Processes the DNSKEY RRset of a zone, or its absence. If the trust anchors change, the settings
    /// get the new ones, and what followed from the old ones is removed.
    pub(crate) fn end_anchor_query(&self, apex: NameRef<'_>, dnskeys: Option<&Rrset>, unix: u64) -> Observed {
        let mut state = self.managed.lock();
        // A reload may have removed the zone.
        let Some(zone) = state.zones.iter_mut().find(|zone| zone.anchor.apex() == apex) else {
            return Observed::default();
        };
        zone.is_queried = false;
        let Some(rrset) = dnskeys else {
            zone.anchor.record_failure(unix);
            state.revision += 1;
            state.push_event(apex, AnchorEvent::NoAnswer);
            return Observed::default();
        };
        let dnskeys: Vec<&[u8]> = rrset.records.iter().collect();
        let signatures: Vec<&[u8]> = rrset.signatures.iter().collect();
        let before = zone.anchor.anchors();
        let outcome = zone.anchor.observe(Observation { dnskeys: &dnskeys, signatures: &signatures }, unix);
        let has_changed = zone.anchor.anchors() != before;
        let tags = zone.anchor.tags();
        outcome.changes.into_iter().for_each(|change| state.push_event(apex, AnchorEvent::Changed(change)));
        outcome.fault.into_iter().for_each(|fault| state.push_event(apex, AnchorEvent::Rejected(fault)));
        state.revision += 1;
        if has_changed {
            self.use_anchors(&state);
            self.trust.clear_below(apex);
        }
        if has_changed && tags.is_empty() {
            // The zone is not secure any more, unless there is a trust anchor above it (RFC 5011 §5).
            self.cache.flush_below(apex);
            self.denials.flush_below(apex);
        }
        Observed { has_changed, tags }
    }

    /// Replaces the trust anchors in the settings by the current ones.
    fn use_anchors(&self, state: &ManagedState) {
        self.change_validation(|validation| validation.anchors = anchors_of(&state.zones));
    }
}
