//! The meaning of a response, independently of the records that express it: RCODE, the RRsets of
//! the answer, the referral, and the denied names and types.

use super::exchange::{ObservedRecord, Question, Reply};
use super::zone::Zone;
use nonesuch_crypto::nsec3_hash;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, NameRef, Rtype, bitmap, rdata};
use std::collections::{BTreeMap, BTreeSet};

/// A record without its TTL, in lower case, as text.
pub(crate) type Data = String;

/// The types at a name that a record matches.
pub(crate) type Types = BTreeSet<Rtype>;

/// The meaning of a response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Meaning {
    pub(crate) rcode: Rcode,
    pub(crate) authoritative: bool,
    pub(crate) answer: BTreeSet<Data>,
    /// NS and DS records of a delegation.
    pub(crate) referral: BTreeSet<Data>,
    pub(crate) has_soa: bool,
    pub(crate) denial: Denial,
}

/// The statements of NSEC3 records about the last name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Denial {
    /// The types at each matched name, of the name itself, its ancestors and the wildcards below
    /// these.
    pub(crate) matched: BTreeMap<Name, Types>,
    /// Covered names among these that could be the next closer name or the wildcard.
    pub(crate) covered: BTreeSet<Name>,
}

/// The last name of the aliases that begin with this name.
pub(crate) fn last_name(name: &Name, reply: &Reply) -> Name {
    let mut names = vec![name.view().to_canonical()];
    loop {
        let last = &names[names.len() - 1];
        let alias = reply.answer.iter().find(|seen| seen.rtype == Rtype::CNAME && seen.owner() == *last);
        match alias.and_then(|alias| NameRef::from_wire(&alias.rdata).ok()).map(NameRef::to_canonical) {
            Some(target) if !names.contains(&target) => names.push(target),
            _ => return last.clone(),
        }
    }
}

fn data(seen: &ObservedRecord) -> Data {
    let lower = seen.to_lower();
    let mut text = Vec::new();
    rdata::push_text(lower.rtype, &lower.rdata, &mut text);
    format!("{} {} {}", seen.owner(), lower.rtype, String::from_utf8_lossy(&text))
}

impl Meaning {
    /// The meaning of a response with NSEC3 denial records without salt and iterations.
    pub(crate) fn of_nsec3(zone: &Zone, name: &Name, reply: &Reply) -> Self {
        Self {
            denial: Denial::of_nsec3(zone, &last_name(name, reply), reply),
            ..Self::without_denial(zone, reply)
        }
    }

    pub(crate) fn without_denial(zone: &Zone, reply: &Reply) -> Self {
        let signed = |seen: &&ObservedRecord| seen.rtype != Rtype::RRSIG;
        let apex = zone.contents.apex();
        let of_cut =
            |seen: &&ObservedRecord| matches!(seen.rtype, Rtype::NS | Rtype::DS) && seen.owner() != *apex;
        Self {
            rcode: reply.rcode,
            authoritative: reply.authoritative,
            answer: reply.answer.iter().filter(signed).map(data).collect(),
            referral: reply.authority.iter().filter(of_cut).map(data).collect(),
            has_soa: reply.authority.iter().any(|seen| seen.rtype == Rtype::SOA),
            denial: Denial::default(),
        }
    }
}

impl Denial {
    fn of_nsec3(zone: &Zone, last: &Name, reply: &Reply) -> Self {
        let apex = zone.contents.apex().view();
        let mut denial = Self::default();
        let records: Vec<Record> = reply.authority.iter().filter_map(Record::of).collect();
        if !last.view().is_at_or_below(apex) {
            return denial;
        }
        for count in apex.label_count()..=last.view().label_count() {
            let above = last.view().suffix(count).to_name();
            for name in [Name::wildcard_below(above.view()).ok(), Some(above)].into_iter().flatten() {
                let hash = hash(name.view());
                if let Some(record) = records.iter().find(|record| record.owner == hash) {
                    denial.matched.insert(name, record.types.clone());
                } else if records.iter().any(|record| record.covers(&hash)) {
                    denial.covered.insert(name);
                }
            }
        }
        let is_expanded =
            !reply.authority.iter().any(|seen| seen.rtype == Rtype::SOA) && !reply.answer.is_empty();
        if is_expanded {
            denial.keep_next_closer(zone, last);
        } else {
            denial.keep_what_counts(last);
        }
        // In a referral, only the record that matches the delegation counts.
        if reply.authority.iter().any(|seen| seen.rtype == Rtype::NS && seen.owner().view() != apex) {
            denial.covered.clear();
        }
        denial
    }

    /// In a response from a wildcard, only the next closer name counts; the signature determines
    /// it.
    fn keep_next_closer(&mut self, zone: &Zone, last: &Name) {
        let encloser = zone.closest(last.view()).map_or(0, NameRef::label_count);
        let closer = last.view().suffix((encloser + 1).min(last.view().label_count())).to_name();
        self.matched.clear();
        self.covered.retain(|name| *name == closer);
    }

    /// The closest encloser is the longest matched name. Wide spans cover many other names; only
    /// the next closer name and the wildcard count.
    fn keep_what_counts(&mut self, last: &Name) {
        let enclosers = self.matched.keys().filter(|name| last.view().is_at_or_below(name.view()));
        let Some(encloser) = enclosers.max_by_key(|name| name.view().label_count()).cloned() else { return };
        if encloser == *last {
            self.covered.clear();
            self.matched.retain(|name, _| name == last);
            return;
        }
        let wildcard = Name::wildcard_below(encloser.view()).ok();
        let closer = last.view().suffix(encloser.view().label_count() + 1).to_name();
        self.covered.retain(|name| *name == closer || Some(name) == wildcard.as_ref());
        self.matched.retain(|name, _| *name == encloser || Some(name) == wildcard.as_ref());
    }
}

fn hash(name: NameRef<'_>) -> Vec<u8> {
    let mut canonical = Vec::new();
    name.push_canonical(&mut canonical);
    nsec3_hash(&canonical, &[], 0).to_vec()
}

/// An NSEC3 record.
struct Record {
    owner: Vec<u8>,
    next: Vec<u8>,
    types: Types,
}

impl Record {
    fn of(seen: &ObservedRecord) -> Option<Self> {
        (seen.rtype == Rtype::NSEC3).then_some(())?;
        let owner = seen.owner();
        let label = owner.view().labels().next()?.to_ascii_uppercase();
        let owner = data_encoding::BASE32HEX_NOPAD.decode(&label).ok()?;
        // Hash algorithm, flags, iterations, no salt, length of the hash.
        let [_, _, _, _, 0, 20, rest @ ..] = &seen.rdata[..] else { return None };
        let (next, map) = rest.split_at_checked(20)?;
        Some(Self { owner, next: next.to_vec(), types: bitmap::types(map).collect() })
    }

    fn covers(&self, hash: &[u8]) -> bool {
        let (owner, next) = (&self.owner[..], &self.next[..]);
        if owner < next { owner < hash && hash < next } else { hash > owner || hash < next }
    }
}

impl Meaning {
    /// The meaning of a response with one NSEC record at the name itself as denial (RFC 9824): it
    /// denies the type.
    pub(crate) fn of_compact(zone: &Zone, question: &Question, reply: &Reply) -> Self {
        let last = last_name(&question.name, reply);
        let mut meaning = Self::without_denial(zone, reply);
        // In a referral, only the delegation counts.
        let has_soa = meaning.has_soa;
        let records = reply.authority.iter().filter(|seen| seen.rtype == Rtype::NSEC && has_soa);
        for seen in records {
            let Ok((_, map)) = NameRef::split_from(&seen.rdata) else { continue };
            let is_denied = !bitmap::contains(map, question.rtype) && !bitmap::contains(map, Rtype::CNAME);
            if seen.owner() == last && is_denied {
                meaning.denial.matched.insert(last.clone(), BTreeSet::new());
            }
        }
        meaning
    }
}
