//! Builds the picture of a chain of trust from the steps of a validation: each step is one response with the decision
//! about it.

mod place;

use super::signature::{MessageRrset, SignatureFault, verify_signature};
use crate::report::PartStatus;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::inspect::KeyInfo;
use nonesuch_dnssec::validate::{ProvedAnswer, RrsetOutcome, RrsetStatus, SecurityStatus, Validation};
use nonesuch_proto::message::{Message, Section};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeMap;

pub use crate::report::{Picture, PictureError};

/// Maximum number of zones of a picture.
const ZONES_MAX: usize = 16;
/// Maximum number of signatures that are verified for a picture.
const VERIFICATIONS_MAX: usize = 300;

/// One response, and what the validation decided about it.
#[derive(Clone, Copy, Debug)]
pub struct ChainStep<'a> {
    /// Name of the question.
    pub name: &'a Name,
    /// Type of the question.
    pub rtype: Rtype,
    /// The response.
    pub message: &'a Message,
    /// The decision.
    pub verdict: Verdict<'a>,
}

/// What a validation decided about a response.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'a> {
    /// The keys of a zone have validated the response.
    Validated {
        /// The zone.
        zone: &'a Name,
        /// Key tags and algorithms of the trusted keys of the zone. For its DNSKEY RRset: the keys that a DS RRset or
        /// trust anchor names.
        keys: &'a [(u16, Algorithm)],
        /// The result.
        validation: &'a Validation,
    },
    /// The response is at or below this zone cut, outside the chain of trust.
    Insecure {
        /// The zone cut.
        cut: &'a Name,
        /// The reason, as a sentence without a full stop.
        reason: &'a str,
    },
    /// The keys for the response are unknown, for this reason.
    NoKeys {
        /// The reason, as a sentence without a full stop.
        reason: &'a str,
    },
}

/// Draws the chain of trust of a validation. `now`: the time of the validation, in seconds since 1970
/// modulo 2^32.
#[must_use]
pub fn chain_picture(title: &str, steps: &[ChainStep<'_>], now: u32) -> Picture {
    let mut chain = Chain { zones: BTreeMap::new(), now, verifications: 0 };
    for step in steps {
        chain.add_step(step);
    }
    chain.link();
    chain.to_picture(title)
}

/// The facts about a zone.
#[derive(Debug, Default)]
struct Zone {
    status: PartStatus,
    reason: String,
    keys: Vec<KeyInfo>,
    /// The signatures over the DNSKEY RRset.
    key_signatures: Vec<Signature>,
    /// Key tags and algorithms that a trust anchor or DS RRset names.
    entry_keys: Vec<(u16, Algorithm)>,
    /// Its DS RRset in the parent, or the denial of it.
    delegation: Option<Data>,
    ds: Vec<Vec<u8>>,
    data: Vec<Data>,
    /// Number of RRsets that were not added.
    omitted: usize,
}

/// An RRset, or records that deny one.
#[derive(Debug)]
struct Data {
    owner: Name,
    rtype: Rtype,
    lines: Vec<String>,
    status: PartStatus,
    reason: String,
    is_denial: bool,
    signatures: Vec<Signature>,
    /// The zone whose keys sign it.
    zone: Name,
}

/// A signature: the key that it names, and whether it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Signature {
    tag: u16,
    algorithm: Algorithm,
    fault: Option<SignatureFault>,
}

/// All zones, by their canonical names.
struct Chain {
    zones: BTreeMap<Name, Zone>,
    now: u32,
    verifications: usize,
}

impl Chain {
    /// The zone at this apex; `None` if there are too many zones.
    fn zone(&mut self, apex: &Name) -> Option<&mut Zone> {
        let apex = apex.view().to_canonical();
        if !self.zones.contains_key(&apex) && self.zones.len() >= ZONES_MAX {
            return None;
        }
        Some(self.zones.entry(apex).or_default())
    }

    fn add_step(&mut self, step: &ChainStep<'_>) {
        match step.verdict {
            Verdict::Validated { zone, keys, validation } => self.add_validated(step, zone, keys, validation),
            Verdict::Insecure { cut, reason } => self.add_insecure(step, cut, reason),
            Verdict::NoKeys { reason } => self.add_without_keys(step, reason),
        }
    }

    fn add_validated(
        &mut self,
        step: &ChainStep<'_>,
        apex: &Name,
        keys: &[(u16, Algorithm)],
        validation: &Validation,
    ) {
        let (status, reason) = status_of(&validation.status);
        if step.rtype == Rtype::DNSKEY && step.name == apex {
            self.add_keys(step, apex, (status, reason));
            if let Some(zone) = self.zone(apex) {
                zone.entry_keys.extend(
                    keys.iter().filter(|key| !zone.entry_keys.contains(key)).copied().collect::<Vec<_>>(),
                );
            }
            return;
        }
        if self.zone(apex).is_none() {
            return;
        }
        for rrset in &validation.rrsets {
            self.add_outcome(step, apex, rrset);
        }
        self.add_denial(step, apex, validation, (status, reason.clone()));
        if matches!(status, PartStatus::Bogus | PartStatus::Unknown) {
            self.note_failure(step, apex, status, reason);
        }
    }

    /// Adds an RRset of a response that a zone has validated: an answer, or the DS RRset of a referral.
    fn add_outcome(&mut self, step: &ChainStep<'_>, apex: &Name, outcome: &RrsetOutcome) {
        let is_data = outcome.section == Section::Answer || outcome.rtype == Rtype::DS;
        if !is_data || matches!(outcome.status, RrsetStatus::Unused | RrsetStatus::Unsigned) {
            return;
        }
        let (status, reason) = match &outcome.status {
            RrsetStatus::Bogus(reason) => (PartStatus::Bogus, format!("{reason} ({})", reason.rule())),
            RrsetStatus::Synthesised => (PartStatus::Secure, "follows from the DNAME record".to_owned()),
            _ => (PartStatus::Secure, String::new()),
        };
        let Some(data) = self.data(step, apex, (&outcome.owner, outcome.rtype), (status, reason)) else {
            return;
        };
        if outcome.rtype == Rtype::DS {
            let ds = MessageRrset::find(step.message, &outcome.owner, Rtype::DS);
            let owner = outcome.owner.clone();
            if let Some(child) = self.zone(&owner) {
                child.ds = ds.map(|rrset| rrset.rdatas).unwrap_or_default();
                child.delegation = Some(data);
            }
        } else {
            self.push_data(apex, data);
        }
    }

    /// An RRset of a message with its signatures; `None` if the message does not have it.
    fn data(
        &mut self,
        step: &ChainStep<'_>,
        apex: &Name,
        (owner, rtype): (&Name, Rtype),
        (status, reason): (PartStatus, String),
    ) -> Option<Data> {
        let rrset = MessageRrset::find(step.message, owner, rtype)?;
        let signatures = self.signatures(&rrset, apex);
        let count = rrset.rdatas.len();
        let lines = vec![format!("{owner}"), format!("{rtype}, {}", count_text(count, "record"))];
        let (owner, zone) = (owner.clone(), apex.clone());
        Some(Data { owner, rtype, lines, status, reason, is_denial: false, signatures, zone })
    }

    fn push_data(&mut self, apex: &Name, data: Data) {
        let Some(zone) = self.zone(apex) else { return };
        let same = zone.data.iter().position(|known| {
            known.owner == data.owner && known.rtype == data.rtype && known.is_denial == data.is_denial
        });
        match same {
            // The resolver may have asked several servers: the last response counts.
            Some(known) => zone.data[known] = data,
            None if zone.data.len() < place::DATA_MAX => zone.data.push(data),
            None => zone.omitted += 1,
        }
    }

    /// Adds the records that deny the answer or the DS RRset of a referral.
    fn add_denial(
        &mut self,
        step: &ChainStep<'_>,
        apex: &Name,
        validation: &Validation,
        (status, reason): (PartStatus, String),
    ) {
        let records: Vec<(Name, Rtype)> = denial_records(step.message);
        let Some((owner, rtype)) = records.first().cloned() else { return };
        let signatures = self.denial_signatures(step, apex, &records);
        let child = unsigned_child(step, validation);
        let proved = match (&child, &validation.proved) {
            (Some(child), _) => format!("no DS for {child}"),
            (None, Some(proved)) => proved_text(proved, step),
            (None, None) => format!("denial for {} {}", step.name, step.rtype),
        };
        let count = records.iter().filter(|(_, found)| *found == rtype).count();
        let lines = vec![format!("{rtype}, {}", count_text(count, "record")), proved];
        // The denial of a DS RRset is itself secure: only the child zone is not.
        let status = match (status, &child) {
            (PartStatus::Insecure, Some(_)) => PartStatus::Secure,
            (status, _) => status,
        };
        let zone = apex.clone();
        let data = Data { owner, rtype, lines, status, reason, is_denial: true, signatures, zone };
        match child {
            Some(child) => self.set_unsigned(&child, data),
            None if status != PartStatus::Secure || is_denied(validation) => self.push_data(apex, data),
            None => {}
        }
    }

    /// The signatures over all denial records of a message, each once.
    fn denial_signatures(
        &mut self,
        step: &ChainStep<'_>,
        apex: &Name,
        records: &[(Name, Rtype)],
    ) -> Vec<Signature> {
        let mut all: Vec<Signature> = Vec::new();
        for (owner, rtype) in records {
            let Some(rrset) = MessageRrset::find(step.message, owner, *rtype) else { continue };
            for signature in self.signatures(&rrset, apex) {
                if !all.contains(&signature) {
                    all.push(signature);
                }
            }
        }
        all
    }

    /// Sets the denial of the DS RRset of a zone.
    fn set_unsigned(&mut self, child: &Name, denial: Data) {
        let Some(zone) = self.zone(child) else { return };
        if zone.status == PartStatus::Unknown {
            let reason = format!("{} has no DS records for it", denial.zone);
            (zone.status, zone.reason) = (PartStatus::Insecure, reason);
        }
        zone.delegation = Some(denial);
    }

    /// Adds the DNSKEY RRset of a zone.
    fn add_keys(&mut self, step: &ChainStep<'_>, apex: &Name, (status, reason): (PartStatus, String)) {
        let Some(rrset) = MessageRrset::find(step.message, apex, Rtype::DNSKEY) else {
            if let Some(zone) = self.zone(apex) {
                (zone.status, zone.reason) = (status, reason);
            }
            return;
        };
        if let Some(zone) = self.zone(apex) {
            zone.keys = rrset.rdatas.iter().filter_map(|rdata| KeyInfo::read(rdata)).collect();
            (zone.status, zone.reason) = (status, reason);
        }
        let signatures = self.signatures(&rrset, apex);
        if let Some(zone) = self.zone(apex) {
            zone.key_signatures = signatures;
        }
    }

    fn add_insecure(&mut self, step: &ChainStep<'_>, cut: &Name, reason: &str) {
        if let Some(child) = referred_zone(step.message) {
            let _ = self.zone(&child);
            return;
        }
        if step.rtype == Rtype::DNSKEY {
            return self.add_keys(step, step.name, (PartStatus::Insecure, reason.to_owned()));
        }
        let apex =
            closest(&self.zones, step.name.view()).filter(|zone| zone.view().is_at_or_below(cut.view()));
        let apex = apex.unwrap_or_else(|| cut.clone());
        let Some(zone) = self.zone(&apex) else { return };
        if zone.status == PartStatus::Unknown {
            (zone.status, zone.reason) = (PartStatus::Insecure, reason.to_owned());
        }
        let answers: Vec<(Name, Rtype)> = answer_rrsets(step.message);
        if answers.is_empty() {
            self.add_empty_answer(step, &apex, (PartStatus::Insecure, reason.to_owned()));
        }
        for (owner, rtype) in answers {
            let part = (PartStatus::Insecure, String::new());
            if let Some(data) = self.data(step, &apex, (&owner, rtype), part) {
                self.push_data(&apex, data);
            }
        }
    }

    fn add_without_keys(&mut self, step: &ChainStep<'_>, reason: &str) {
        if step.rtype == Rtype::DNSKEY && !answer_rrsets(step.message).is_empty() {
            return self.add_keys(step, step.name, (PartStatus::Bogus, reason.to_owned()));
        }
        // A later step decides about the child zone.
        if let Some(child) = referred_zone(step.message) {
            let _ = self.zone(&child);
            return;
        }
        let Some(apex) = closest(&self.zones, step.name.view()) else { return };
        let answers = answer_rrsets(step.message);
        for (owner, rtype) in answers {
            let part = (PartStatus::Bogus, reason.to_owned());
            if let Some(data) = self.data(step, &apex, (&owner, rtype), part) {
                self.push_data(&apex, data);
            }
        }
        self.note_failure(step, &apex, PartStatus::Bogus, reason.to_owned());
    }

    /// A response without an answer and without usable denial records.
    fn add_empty_answer(
        &mut self,
        step: &ChainStep<'_>,
        apex: &Name,
        (status, reason): (PartStatus, String),
    ) {
        let rcode = step.message.rcode();
        let lines =
            vec![format!("{} {}", step.name, step.rtype), format!("no answer, response code {rcode}")];
        let (owner, rtype, zone) = (step.name.clone(), step.rtype, apex.clone());
        let data =
            Data { owner, rtype, lines, status, reason, is_denial: true, signatures: Vec::new(), zone };
        self.push_data(apex, data);
    }

    /// Makes sure that a failure is visible, also if no RRset of the response has it.
    fn note_failure(&mut self, step: &ChainStep<'_>, apex: &Name, status: PartStatus, reason: String) {
        let Some(zone) = self.zone(apex) else { return };
        let is_shown = zone.data.iter().any(|data| data.status == status)
            || self.zones.values().any(|zone| {
                let is_bogus = |data: &Data| data.status == status && data.zone == *apex;
                zone.delegation.as_ref().is_some_and(is_bogus)
            });
        if !is_shown {
            self.add_empty_answer(step, apex, (status, reason));
        }
    }

    /// The signatures of an RRset, each verified with the keys of its zone.
    fn signatures(&mut self, rrset: &MessageRrset, apex: &Name) -> Vec<Signature> {
        let keys: Vec<Vec<u8>> = self
            .zones
            .get(&apex.view().to_canonical())
            .map_or_else(Vec::new, |zone| zone.keys.iter().map(|key| key.rdata.clone()).collect());
        let left = VERIFICATIONS_MAX.saturating_sub(self.verifications);
        let signatures: Vec<Signature> = rrset
            .rrsigs()
            .take(left.min(place::SIGNATURES_MAX))
            .map(|rrsig| {
                let fault = verify_signature(&rrsig, rrset, apex, &keys, self.now).err();
                Signature { tag: rrsig.tag, algorithm: rrsig.algorithm, fault }
            })
            .collect();
        self.verifications += signatures.len();
        signatures
    }

    /// Adds what only all steps together show: a zone below an insecure or bogus one is not secure.
    fn link(&mut self) {
        let names: Vec<Name> = self.zones.keys().cloned().collect();
        for name in names {
            let parent = name.view().parent().and_then(|above| closest(&self.zones, above));
            let above = parent.and_then(|parent| self.zones.get(&parent)).map(|zone| zone.status);
            let Some(zone) = self.zones.get_mut(&name) else { continue };
            if zone.status == PartStatus::Unknown && above == Some(PartStatus::Insecure) {
                zone.status = PartStatus::Insecure;
            }
        }
    }
}

/// The lowest zone at or above a name.
fn closest(zones: &BTreeMap<Name, Zone>, name: NameRef<'_>) -> Option<Name> {
    let above = std::iter::successors(Some(name), |name| name.parent());
    above.map(NameRef::to_canonical).find(|name| zones.contains_key(name))
}

fn status_of(status: &SecurityStatus) -> (PartStatus, String) {
    match status {
        SecurityStatus::Secure => (PartStatus::Secure, String::new()),
        SecurityStatus::Insecure(reason) => (PartStatus::Insecure, format!("{reason} ({})", reason.rule())),
        SecurityStatus::Bogus(reason) => (PartStatus::Bogus, format!("{reason} ({})", reason.rule())),
        SecurityStatus::Indeterminate(reason) => {
            (PartStatus::Unknown, format!("{reason} ({})", reason.rule()))
        }
    }
}

/// The records of a denial chain in a message.
fn denial_records(message: &Message) -> Vec<(Name, Rtype)> {
    let mut found: Vec<(Name, Rtype)> = Vec::new();
    for record in message.section(Section::Authority) {
        let is_chain = matches!(record.rtype, Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5);
        let part = (record.owner.clone(), record.rtype);
        if is_chain && found.len() < 8 && !found.contains(&part) {
            found.push(part);
        }
    }
    found
}

/// The RRsets of the answer section.
fn answer_rrsets(message: &Message) -> Vec<(Name, Rtype)> {
    let mut found: Vec<(Name, Rtype)> = Vec::new();
    for record in message.section(Section::Answer) {
        let part = (record.owner.clone(), record.rtype);
        if record.rtype != Rtype::RRSIG && found.len() < 32 && !found.contains(&part) {
            found.push(part);
        }
    }
    found
}

/// The zone to which a response refers; `None` if it is no referral.
fn referred_zone(message: &Message) -> Option<Name> {
    let has_answer = message.section(Section::Answer).next().is_some();
    let has_soa = message.section(Section::Authority).any(|record| record.rtype == Rtype::SOA);
    if has_answer || has_soa {
        return None;
    }
    let mut authority = message.section(Section::Authority);
    authority.find(|record| record.rtype == Rtype::NS).map(|record| record.owner.clone())
}

/// The child zone whose DS RRset the response denies.
fn unsigned_child(step: &ChainStep<'_>, validation: &Validation) -> Option<Name> {
    match &validation.proved {
        Some(ProvedAnswer::Referral { child, has_ds: false }) => Some(child.clone()),
        Some(_) if step.rtype == Rtype::DS && validation.is_unsigned_delegation => Some(step.name.clone()),
        _ => None,
    }
}

/// Whether the proved content is a denial, or needs one.
fn is_denied(validation: &Validation) -> bool {
    matches!(
        validation.proved,
        Some(
            ProvedAnswer::NoData
                | ProvedAnswer::WildcardNoData
                | ProvedAnswer::NxDomain
                | ProvedAnswer::WildcardAnswer
        )
    )
}

fn proved_text(proved: &ProvedAnswer, step: &ChainStep<'_>) -> String {
    let ChainStep { name, rtype, .. } = step;
    match proved {
        ProvedAnswer::NxDomain => format!("{name} does not exist"),
        ProvedAnswer::NoData => format!("{name} has no {rtype} records"),
        ProvedAnswer::WildcardNoData => format!("the wildcard of {name} has no {rtype} records"),
        ProvedAnswer::WildcardAnswer => format!("{name} exists only as a wildcard"),
        _ => format!("denial for {name} {rtype}"),
    }
}

pub(super) fn count_text(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
