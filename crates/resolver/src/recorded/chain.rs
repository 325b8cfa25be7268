//! The chain of trust of recorded responses: the zone cuts, and the keys of the zones (RFC 4035 §5,
//! RFC 6840 appendix C).
//!
//! Everything about a name depends only on shorter names, so that no hostile recording causes an
//! endless search. Each result is computed once.

use super::{ChainFault, RecordedResponses, records_at, referred_child, signer};
use crate::trust_anchors::{AnchorRecord, ZoneAnchor};
use nonesuch_dnssec::validate::{
    Budget, EntryPoints, InsecureReason, NoEntryPoint, ProvedAnswer, Question, RrsetStatus, SecurityStatus,
    TrustedKeys, Validation, validate,
};
use nonesuch_proto::message::{Message, Record};
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use std::sync::Arc;

/// The trust in a zone.
#[derive(Clone, Debug)]
pub(super) enum ZoneState {
    Secure {
        keys: Arc<TrustedKeys>,
        /// Whether the keys are those of the trust anchor, and not those of the DNSKEY RRset.
        is_partial: bool,
    },
    /// The chain of trust ends at this name.
    Insecure(Name, InsecureReason),
    Broken(ChainFault),
}

/// Whether a name is a zone cut.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// It is the apex of a zone with this DS RRset.
    Signed(Vec<Vec<u8>>),
    /// The chain of trust ends at this name.
    Insecure(Name, InsecureReason),
    /// It is proved to be no zone cut.
    None,
    /// No recorded response proves it, for this reason if there is a response.
    Unknown(Option<ChainFault>),
}

impl RecordedResponses {
    /// Goes down from the zone `start` to `lowest` over all known zone cuts. Returns the trust in the last
    /// zone, and the first name below this zone of which no response shows whether it is a zone cut.
    pub(super) fn descend(&mut self, start: NameRef<'_>, lowest: NameRef<'_>) -> (ZoneState, Option<Name>) {
        let mut state = self.zone(start);
        let mut unknown = None;
        for labels in start.label_count() + 1..=lowest.label_count() {
            if !matches!(state, ZoneState::Secure { .. }) {
                break;
            }
            let name = lowest.suffix(labels);
            match self.cut(name) {
                Cut::Signed(_) => (state, unknown) = (self.zone(name), None),
                Cut::Insecure(cut, reason) => return (ZoneState::Insecure(cut, reason), None),
                Cut::None => {}
                Cut::Unknown(_) => unknown = unknown.or_else(|| Some(name.to_name())),
            }
        }
        (state, unknown)
    }

    /// Returns the trust in the zone at `apex`; if this is no zone cut, the trust in the zone above it.
    fn zone(&mut self, apex: NameRef<'_>) -> ZoneState {
        let apex = apex.to_canonical();
        if let Some(state) = self.zones.get(&apex) {
            return state.clone();
        }
        let state = self.find_zone(&apex);
        self.zones.insert(apex, state.clone());
        state
    }

    fn find_zone(&mut self, apex: &Name) -> ZoneState {
        let Some(anchor) = self.anchors.closest(apex.view()).cloned() else {
            return ZoneState::Broken(ChainFault::NoAnchor { name: apex.clone() });
        };
        if anchor.apex == *apex {
            return self.keys_below(apex, &anchor.records);
        }
        match self.cut(apex.view()) {
            Cut::Signed(ds) => {
                let ds: Vec<AnchorRecord> = ds.into_iter().map(AnchorRecord::Ds).collect();
                self.keys_below(apex, &ds)
            }
            Cut::Insecure(cut, reason) => ZoneState::Insecure(cut, reason),
            Cut::None => self.enclosing(&anchor, apex),
            Cut::Unknown(fault) => {
                let fault = fault.unwrap_or_else(|| ChainFault::missing(apex, Rtype::DS));
                match self.enclosing(&anchor, apex) {
                    ZoneState::Secure { .. } => ZoneState::Broken(fault),
                    state => state,
                }
            }
        }
    }

    /// Returns the trust in the last known zone above `apex`, which is below the anchor.
    fn enclosing(&mut self, anchor: &ZoneAnchor, apex: &Name) -> ZoneState {
        let parent = apex.view().parent().unwrap_or(NameRef::ROOT);
        self.descend(anchor.apex.view(), parent).0
    }

    /// Returns whether a name below a trust anchor is a zone cut.
    fn cut(&mut self, name: NameRef<'_>) -> Cut {
        let name = name.to_canonical();
        if let Some(cut) = self.cuts.get(&name) {
            return cut.clone();
        }
        let responses = self.responses_of(&name, Rtype::DS);
        if responses.is_empty() {
            return Cut::Unknown(None);
        }
        let mut found = Cut::Unknown(None);
        for message in responses {
            match (self.read_cut(name.view(), &message), &found) {
                (Cut::Unknown(fault), Cut::Unknown(None)) => found = Cut::Unknown(fault),
                (Cut::Unknown(_), _) => {}
                (proved, _) => {
                    found = proved;
                    break;
                }
            }
        }
        self.cuts.insert(name, found.clone());
        found
    }

    /// Returns what a response for DS, or a referral, proves about a name.
    fn read_cut(&mut self, name: NameRef<'_>, message: &Message) -> Cut {
        let parent = name.parent().unwrap_or(NameRef::ROOT);
        let Some(anchor) = self.anchors.closest(parent).map(|anchor| anchor.apex.clone()) else {
            return Cut::Unknown(None);
        };
        // A response without signature is compared with the closest zone that is known.
        let start =
            signer(message, name, parent, anchor.view()).map_or_else(|| anchor.clone(), NameRef::to_name);
        let keys = match self.descend(start.view(), parent).0 {
            ZoneState::Secure { keys, .. } => keys,
            ZoneState::Insecure(cut, reason) => return Cut::Insecure(cut, reason),
            ZoneState::Broken(fault) => return Cut::Unknown(Some(fault)),
        };
        let own =
            message.questions.first().filter(|own| referred_child(own_question(own), message).is_some());
        let question = own.map_or(Question { name, rtype: Rtype::DS }, own_question);
        let validation = validate(question, message, &keys, self.now, &mut Budget::new(self.limits));
        let fault = match &validation.status {
            SecurityStatus::Bogus(reason) => {
                ChainFault::Bogus { name: name.to_name(), rtype: Rtype::DS, reason: reason.clone() }
            }
            SecurityStatus::Indeterminate(reason) => {
                ChainFault::Indeterminate { name: name.to_name(), rtype: Rtype::DS, reason: *reason }
            }
            SecurityStatus::Secure | SecurityStatus::Insecure(_) => {
                return self.proved_cut(name, message, &validation);
            }
        };
        Cut::Unknown(Some(fault))
    }

    /// What a validated response proves about a name.
    fn proved_cut(&self, name: NameRef<'_>, message: &Message, validation: &Validation) -> Cut {
        let is_secure = validation.rrsets.iter().any(|rrset| {
            rrset.rtype == Rtype::DS && rrset.owner.view() == name && rrset.status == RrsetStatus::Secure
        });
        let is_ds = |record: &&Record| {
            (record.rtype, record.class) == (Rtype::DS, Class::IN) && record.owner.view() == name
        };
        if is_secure {
            let records: Vec<&[u8]> = message.records.iter().filter(is_ds).map(|ds| &*ds.rdata).collect();
            let entry_points = EntryPoints { ds: &records, dnskeys: &[] };
            return match entry_points.check(self.policy, &self.limits) {
                Ok(()) => Cut::Signed(records.into_iter().map(<[u8]>::to_vec).collect()),
                Err(reason) => Cut::Insecure(name.to_name(), reason),
            };
        }
        let is_unsigned_referral = matches!(&validation.proved,
            Some(ProvedAnswer::Referral { child, has_ds: false }) if child.view() == name);
        // After an alias, the denial is for its target.
        let is_denied = validation.is_unsigned_delegation && validation.aliases.is_empty();
        if is_unsigned_referral || is_denied {
            return Cut::Insecure(name.to_name(), InsecureReason::UnsignedDelegation);
        }
        match validation.status {
            // RFC 5155 §9.2, RFC 9276 §3.2: an unsigned delegation may exist.
            SecurityStatus::Insecure(reason) => Cut::Insecure(name.to_name(), reason),
            _ => Cut::None,
        }
    }

    /// Returns the keys of a zone whose DS RRset or trust anchor has the entry points `entry`.
    fn keys_below(&self, apex: &Name, entry: &[AnchorRecord]) -> ZoneState {
        let mut fault = None;
        for message in self.responses_of(apex, Rtype::DNSKEY) {
            match self.read_keys(apex, entry, &message) {
                ZoneState::Broken(found) => fault = fault.or(Some(found)),
                state => return state,
            }
        }
        let anchors = entry.iter().filter_map(|record| match record {
            AnchorRecord::Dnskey(rdata) => Some(rdata.as_slice()),
            AnchorRecord::Ds(_) => None,
        });
        if let Some(fault) = fault {
            return ZoneState::Broken(fault);
        }
        let keys = TrustedKeys::with_policy(apex, anchors, self.policy, &self.limits);
        if keys.tags().next().is_none() {
            return ZoneState::Broken(ChainFault::missing(apex, Rtype::DNSKEY));
        }
        self.with_nsec5_keys(keys, true)
    }

    /// Validates a response for DNSKEY with the entry points of the zone, and returns its keys.
    fn read_keys(&self, apex: &Name, entry: &[AnchorRecord], message: &Message) -> ZoneState {
        let entry_keys = match self.entry_keys(apex, entry, message) {
            Ok(keys) => keys,
            Err(state) => return state,
        };
        let question = Question { name: apex.view(), rtype: Rtype::DNSKEY };
        let validation = validate(question, message, &entry_keys, self.now, &mut Budget::new(self.limits));
        let (name, rtype) = (apex.clone(), Rtype::DNSKEY);
        match validation.status {
            SecurityStatus::Secure => {
                let dnskeys = records_at(message, apex.view(), Rtype::DNSKEY);
                let keys = TrustedKeys::with_policy(apex, dnskeys, self.policy, &self.limits);
                self.with_nsec5_keys(keys, false)
            }
            SecurityStatus::Insecure(reason) => ZoneState::Insecure(name, reason),
            SecurityStatus::Bogus(reason) => ZoneState::Broken(ChainFault::Bogus { name, rtype, reason }),
            SecurityStatus::Indeterminate(reason) => {
                ZoneState::Broken(ChainFault::Indeterminate { name, rtype, reason })
            }
        }
    }

    /// Returns the keys of a DNSKEY RRset, not validated yet, that the entry points name.
    fn entry_keys(
        &self,
        apex: &Name,
        entry: &[AnchorRecord],
        message: &Message,
    ) -> Result<TrustedKeys, ZoneState> {
        let (mut ds, mut keys): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
        for record in entry {
            match record {
                AnchorRecord::Ds(rdata) => ds.push(rdata),
                AnchorRecord::Dnskey(rdata) => keys.push(rdata),
            }
        }
        let dnskeys: Vec<&[u8]> = records_at(message, apex.view(), Rtype::DNSKEY).collect();
        let entry_points = EntryPoints { ds: &ds, dnskeys: &keys };
        entry_points.select(apex, &dnskeys, self.policy, &self.limits).map_err(|reason| match reason {
            NoEntryPoint::Insecure(reason) => ZoneState::Insecure(apex.clone(), reason),
            NoEntryPoint::Bogus(reason) => {
                ZoneState::Broken(ChainFault::Bogus { name: apex.clone(), rtype: Rtype::DNSKEY, reason })
            }
        })
    }

    /// Returns the keys that validate `message`, a response with the DNSKEY RRset of `zone`; `None` if
    /// this is proved to be no zone.
    pub(super) fn entry_state(&mut self, zone: &Name, message: &Message) -> Option<ZoneState> {
        let anchor = self.anchors.closest(zone.view()).cloned()?;
        let entry = if anchor.apex == *zone {
            anchor.records
        } else {
            match self.cut(zone.view()) {
                Cut::Signed(ds) => ds.into_iter().map(AnchorRecord::Ds).collect(),
                Cut::None => return None,
                Cut::Insecure(..) | Cut::Unknown(_) => return Some(self.zone(zone.view())),
            }
        };
        Some(match self.entry_keys(zone, &entry, message) {
            Ok(keys) => ZoneState::Secure { keys: Arc::new(keys), is_partial: false },
            Err(state) => state,
        })
    }

    /// Adds the NSEC5 keys of the first response that is valid.
    fn with_nsec5_keys(&self, mut keys: TrustedKeys, is_partial: bool) -> ZoneState {
        if keys.may_use_nsec5() {
            for message in self.responses_of(&keys.apex().to_name(), Rtype::NSEC5KEY) {
                keys.learn_nsec5_keys(&message, self.now, &mut Budget::new(self.limits));
                if keys.knows_nsec5_keys() {
                    break;
                }
            }
        }
        ZoneState::Secure { keys: Arc::new(keys), is_partial }
    }

    fn responses_of(&self, name: &Name, rtype: Rtype) -> Vec<Arc<Message>> {
        self.responses.get(&(name.clone(), rtype)).cloned().unwrap_or_default()
    }
}

fn own_question(own: &nonesuch_proto::message::Question) -> Question<'_> {
    Question { name: own.name.view(), rtype: own.rtype }
}
