//! Negative trust anchors (RFC 7646): names at and below which nothing is validated for a limited time.
//!
//! They are configured, or added while the resolver runs. Each ends at its time, or as soon as its zone
//! validates again. The first worker checks both. The program takes the events and logs them.

use crate::options::NegativeAnchor;
use crate::shared::Shared;
use nonesuch_proto::{Name, NameRef};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of negative trust anchors that are added while the resolver runs.
pub const MAX_ADDED_NEGATIVE_ANCHORS: usize = 1000;
/// Maximum lifetime of these, in seconds: a week (RFC 7646 §4).
pub const MAX_NEGATIVE_ANCHOR_LIFETIME: u64 = 7 * 86_400;
/// Maximum number of events that the program has not taken. The oldest ones are dropped first.
const MAX_EVENTS: usize = 256;

/// The end of a negative trust anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegativeAnchorEnd {
    /// Its time is over.
    Expired,
    /// The zone validates again (RFC 7646 §4).
    Validates,
}

/// Why no negative trust anchor is added: there are [`MAX_ADDED_NEGATIVE_ANCHORS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_ADDED_NEGATIVE_ANCHORS} added negative trust anchors, the maximum: remove one")]
pub struct TooManyNegativeAnchors;

/// A negative trust anchor in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveNegativeAnchor {
    /// Name and end.
    pub anchor: NegativeAnchor,
    /// Whether it is in the options, and not added later.
    pub is_configured: bool,
}

/// All negative trust anchors.
#[derive(Debug, Default)]
pub(crate) struct NegativeAnchors(Mutex<NegativeState>);

#[derive(Debug, Default)]
pub(crate) struct NegativeState {
    /// The configured ones in the order of the options, then the added ones.
    entries: Vec<Entry>,
    events: VecDeque<(Name, NegativeAnchorEnd)>,
}

#[derive(Clone, Debug)]
struct Entry {
    active: ActiveNegativeAnchor,
    /// A configured one stays, so that a reload does not begin it again.
    has_ended: bool,
}

impl NegativeAnchors {
    pub(crate) fn new(configured: &[NegativeAnchor]) -> Self {
        let negative = Self::default();
        negative.lock().configure(configured);
        negative
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, NegativeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NegativeState {
    /// Replaces the configured ones. One that has ended begins again only if its end is another.
    pub(crate) fn configure(&mut self, configured: &[NegativeAnchor]) {
        let old = std::mem::take(&mut self.entries);
        let entry = |anchor: &NegativeAnchor| {
            let known = old.iter().find(|known| known.active.is_configured && known.active.anchor == *anchor);
            let active = ActiveNegativeAnchor { anchor: anchor.clone(), is_configured: true };
            Entry { active, has_ended: known.is_some_and(|known| known.has_ended) }
        };
        self.entries = configured.iter().map(entry).collect();
        self.entries.extend(old.into_iter().filter(|entry| !entry.active.is_configured));
    }

    /// Returns the negative trust anchors that have not ended, for the options.
    pub(crate) fn active(&self) -> Vec<NegativeAnchor> {
        self.entries
            .iter()
            .filter(|entry| !entry.has_ended)
            .map(|entry| entry.active.anchor.clone())
            .collect()
    }

    /// Ends the negative trust anchors that `ends` selects. Returns their names.
    fn end(&mut self, ends: impl Fn(&NegativeAnchor) -> bool) -> Vec<Name> {
        let mut ended = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| !entry.has_ended && ends(&entry.active.anchor)) {
            entry.has_ended = true;
            ended.push(entry.active.anchor.name.clone());
        }
        self.entries.retain(|entry| entry.active.is_configured || !entry.has_ended);
        ended
    }

    fn push_event(&mut self, name: &Name, end: NegativeAnchorEnd) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((name.clone(), end));
    }
}

impl Shared {
    /// Returns the negative trust anchors that have not ended.
    #[must_use]
    pub fn negative_anchors(&self) -> Vec<ActiveNegativeAnchor> {
        let state = self.negative.lock();
        state.entries.iter().filter(|entry| !entry.has_ended).map(|entry| entry.active.clone()).collect()
    }

    /// Adds a negative trust anchor, or replaces one that was added with the same name. The workers use it from their next
    /// [`Event::Wake`](nonesuch_net::machine::Event::Wake) on.
    ///
    /// # Errors
    /// There are too many.
    pub fn add_negative_anchor(&self, anchor: NegativeAnchor) -> Result<(), TooManyNegativeAnchors> {
        let mut state = self.negative.lock();
        let name = anchor.name.clone();
        state.entries.retain(|entry| entry.active.is_configured || entry.active.anchor.name != name);
        if state.entries.iter().filter(|entry| !entry.active.is_configured).count()
            >= MAX_ADDED_NEGATIVE_ANCHORS
        {
            return Err(TooManyNegativeAnchors);
        }
        let active = ActiveNegativeAnchor { anchor, is_configured: false };
        state.entries.push(Entry { active, has_ended: false });
        self.use_negative_anchors(&state, &[name]);
        Ok(())
    }

    /// Ends the negative trust anchors with this name. Returns whether there was one. The workers use it
    /// from their next [`Event::Wake`](nonesuch_net::machine::Event::Wake) on.
    pub fn remove_negative_anchor(&self, name: NameRef<'_>) -> bool {
        let mut state = self.negative.lock();
        let ended = state.end(|anchor| anchor.name.view() == name);
        self.use_negative_anchors(&state, &ended);
        !ended.is_empty()
    }

    /// Takes the events since the last call, in order, with the names.
    #[must_use]
    pub fn take_negative_anchor_events(&self) -> Vec<(Name, NegativeAnchorEnd)> {
        std::mem::take(&mut self.negative.lock().events).into()
    }

    /// Ends those whose time is over. Returns whether there was one.
    pub(crate) fn end_expired_negative_anchors(&self, unix: u64) -> bool {
        self.end_negative_anchors(NegativeAnchorEnd::Expired, |anchor| anchor.has_expired(unix))
    }

    /// Ends those with a name whose zone validates. Returns whether there was one.
    pub(crate) fn end_unneeded_negative_anchor(&self, name: &Name) -> bool {
        self.end_negative_anchors(NegativeAnchorEnd::Validates, |anchor| {
            anchor.is_rechecked && anchor.name == *name
        })
    }

    fn end_negative_anchors(&self, end: NegativeAnchorEnd, ends: impl Fn(&NegativeAnchor) -> bool) -> bool {
        let mut state = self.negative.lock();
        let ended = state.end(ends);
        ended.iter().for_each(|name| state.push_event(name, end));
        self.use_negative_anchors(&state, &ended);
        !ended.is_empty()
    }

    /// Replaces the negative trust anchors in the settings, and removes the data of the names that
    /// changed (RFC 7646 §4): insecure data at the end of a negative trust anchor, failures at its begin.
    fn use_negative_anchors(&self, state: &NegativeState, changed: &[Name]) {
        if changed.is_empty() {
            return;
        }
        self.change_validation(|validation| validation.negative_anchors = state.active());
        for name in changed {
            self.flush_below(name.view());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ResolverOptions;
    use crate::testing::{name, now};

    fn anchor(text: &str) -> NegativeAnchor {
        NegativeAnchor { name: name(text), expires: Some(100), is_rechecked: true }
    }

    #[test]
    fn the_number_of_added_negative_anchors_is_bounded() {
        let shared = Shared::new(ResolverOptions::default(), [1; 16], &[1; 32], now()).unwrap();
        for number in 0..MAX_ADDED_NEGATIVE_ANCHORS {
            shared.add_negative_anchor(anchor(&format!("n{number}."))).unwrap();
        }
        assert_eq!(shared.add_negative_anchor(anchor("more.")), Err(TooManyNegativeAnchors));
        // One with a known name replaces the other.
        shared.add_negative_anchor(NegativeAnchor { expires: Some(200), ..anchor("N1.") }).unwrap();
        assert_eq!(shared.negative_anchors().len(), MAX_ADDED_NEGATIVE_ANCHORS);
        assert!(shared.end_expired_negative_anchors(100));
        assert_eq!(shared.negative_anchors().len(), 1);
        // The events were not taken.
        assert_eq!(shared.take_negative_anchor_events().len(), MAX_EVENTS);
    }
}
