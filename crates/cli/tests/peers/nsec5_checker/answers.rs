//! Responses that the test builds from the signed zone by the rules of RFC 1034 §4.3.2 and the
//! table of spec/nsec5.md, without a server.

use super::zone::Zone;
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_proto::message::{Header, Message, Question, Record, Section, flags};
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use std::collections::BTreeSet;

/// The kind of the response after the aliases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(crate) enum Shape {
    Answer,
    WildcardAnswer,
    NoData,
    WildcardNoData,
    /// NODATA for DS, for a name that opt-out omits.
    DsSpan,
    NxDomain,
    SignedReferral,
    UnsignedReferral,
    /// Unsigned referral for a name that opt-out omits.
    ReferralSpan,
    /// An alias with a target outside the zone.
    Alias,
}

/// A verdict.
pub(crate) type Status = &'static str;
pub(crate) const SECURE: Status = "secure";
pub(crate) const INSECURE: Status = "insecure";
pub(crate) const BOGUS: Status = "bogus";
pub(crate) const INDETERMINATE: Status = "indeterminate";

/// A record without its TTL.
pub(crate) type Content = (Section, Name, Rtype, Vec<u8>);

/// A question, a response, the trusted keys, and the expected status.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: Name,
    pub(crate) rtype: Rtype,
    pub(crate) now: u32,
    pub(crate) dnskeys: Vec<Vec<u8>>,
    pub(crate) nsec5_keys: Vec<Vec<u8>>,
    pub(crate) flags: u16,
    pub(crate) questions: Vec<Question>,
    pub(crate) records: Vec<Record>,
    pub(crate) shape: Shape,
    /// The name whose type or absence is proved: the last of the aliases.
    pub(crate) last: Name,
    /// The name that a record matches: closest encloser, name, wildcard, delegation.
    pub(crate) matched: Option<Name>,
    /// Next closer names of wildcard expansions and of the denial.
    pub(crate) covered: Vec<Name>,
    pub(crate) expected: Status,
}

impl Case {
    /// The message, without compression.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let questions = self.questions.clone();
        let header = Header { id: 7, flags: self.flags, counts: [0; 4] };
        Message { header, questions, records: self.records.clone() }.to_octets()
    }

    /// Replaces the records with those of a server's response.
    pub(crate) fn take(&mut self, message: &Message) {
        let shown = [Section::Answer, Section::Authority];
        self.flags = message.header.flags;
        self.records =
            message.records.iter().filter(|record| shown.contains(&record.section)).cloned().collect();
        for record in &mut self.records {
            record.owner = record.owner.view().to_canonical();
        }
    }

    /// RCODE and records without TTLs, sorted.
    pub(crate) fn content(&self) -> (u16, BTreeSet<Content>) {
        let records = self.records.iter().map(|record| {
            (record.section, record.owner.view().to_canonical(), record.rtype, record.rdata.clone())
        });
        (self.flags & 0xf, records.collect())
    }

    pub(crate) fn push(&mut self, records: Vec<Record>) {
        let fresh: Vec<Record> =
            records.into_iter().filter(|record| !self.records.contains(record)).collect();
        self.records.extend(fresh);
    }
}

/// The response of the zone.
pub(crate) fn answer(zone: &Zone, name: &Name, rtype: Rtype) -> Case {
    let dnskeys = zone.contents.apex_rrset(Rtype::DNSKEY).expect("DNSKEY records");
    let mut case = Case {
        name: name.clone(),
        rtype,
        now: zone.now,
        dnskeys: dnskeys.rdatas().map(<[u8]>::to_vec).collect(),
        nsec5_keys: vec![Nsec5Key::of(&zone.vrf).rdata().to_vec()],
        flags: flags::QR | flags::AA,
        questions: vec![Question { name: name.clone(), rtype, class: Class::IN }],
        records: Vec::new(),
        shape: Shape::Alias,
        last: name.clone(),
        matched: None,
        covered: Vec::new(),
        expected: SECURE,
    };
    while step(zone, &mut case) {}
    if zone.is_opt_out() && !case.covered.is_empty() {
        case.expected = INSECURE;
    }
    if matches!(case.shape, Shape::UnsignedReferral | Shape::ReferralSpan) {
        case.expected = INSECURE;
    }
    if rtype == Rtype::DS && case.last == zone.apex {
        case.expected = BOGUS; // the parent zone is authoritative for the DS
    }
    case
}

/// Processes the last name; returns whether an alias leads to another name.
fn step(zone: &Zone, case: &mut Case) -> bool {
    let last = case.last.clone();
    let view = last.view();
    if !view.is_at_or_below(zone.apex.view()) {
        return false;
    }
    for above in enclosers(zone, view) {
        let is_cut = above != zone.apex.view() && zone.has(above, Rtype::NS);
        if is_cut && !(above == view && case.rtype == Rtype::DS) {
            refer(zone, case, above);
            return false;
        }
        if above != view && zone.has(above, Rtype::DNAME) {
            return follow_dname(zone, case, above);
        }
    }
    if zone.holds(view) {
        return tell(zone, case, view, view);
    }
    let encloser = closest_encloser(zone, view).to_name();
    let wildcard = Name::wildcard_below(encloser.view()).expect("a short name");
    let closer = view.suffix(encloser.view().label_count() + 1).to_name();
    if zone.holds(wildcard.view()) {
        cover(zone, case, closer.view());
        let more = tell(zone, case, wildcard.view(), view);
        case.shape = match case.shape {
            Shape::Answer => Shape::WildcardAnswer,
            Shape::NoData => Shape::WildcardNoData,
            other => other,
        };
        return more;
    }
    case.shape = Shape::NxDomain;
    case.flags |= 3;
    push_soa(zone, case);
    matching(zone, case, encloser.view());
    cover(zone, case, closer.view());
    false
}

/// The name and its ancestors within the zone, starting at the apex.
fn enclosers<'n>(zone: &Zone, name: NameRef<'n>) -> Vec<NameRef<'n>> {
    let apex = zone.apex.view().label_count();
    (apex..=name.label_count()).map(|count| name.suffix(count)).collect()
}

pub(crate) fn closest_encloser<'n>(zone: &Zone, name: NameRef<'n>) -> NameRef<'n> {
    enclosers(zone, name).into_iter().rev().find(|above| zone.holds(*above)).expect("the apex exists")
}

/// The response for an existing name: its RRset or alias under `owner`, or NODATA.
fn tell(zone: &Zone, case: &mut Case, at: NameRef<'_>, owner: NameRef<'_>) -> bool {
    if zone.has(at, case.rtype) {
        case.push(zone.records(Section::Answer, at, owner, case.rtype));
        case.shape = Shape::Answer;
        return false;
    }
    if zone.has(at, Rtype::CNAME) {
        let records = zone.records(Section::Answer, at, owner, Rtype::CNAME);
        case.last = NameRef::from_wire(&records[0].rdata).expect("a name").to_canonical();
        case.push(records);
        return true;
    }
    push_soa(zone, case);
    if zone.is_in_chain(at) {
        case.shape = Shape::NoData;
        matching(zone, case, at);
    } else {
        case.shape = Shape::DsSpan;
        span(zone, case, at);
    }
    false
}

fn refer(zone: &Zone, case: &mut Case, cut: NameRef<'_>) {
    case.flags &= !flags::AA;
    let servers = zone.records(Section::Authority, cut, cut, Rtype::NS);
    case.push(servers);
    if zone.has(cut, Rtype::DS) {
        case.shape = Shape::SignedReferral;
        case.push(zone.records(Section::Authority, cut, cut, Rtype::DS));
    } else if zone.is_in_chain(cut) {
        case.shape = Shape::UnsignedReferral;
        matching(zone, case, cut);
    } else {
        case.shape = Shape::ReferralSpan;
        span(zone, case, cut);
    }
}

/// Closest provable encloser and next closer name of a name that opt-out omits.
fn span(zone: &Zone, case: &mut Case, name: NameRef<'_>) {
    let encloser =
        enclosers(zone, name).into_iter().rev().find(|above| *above != name && zone.is_in_chain(*above));
    let encloser = encloser.expect("the apex");
    matching(zone, case, encloser);
    cover(zone, case, name.suffix(encloser.label_count() + 1));
}

fn follow_dname(zone: &Zone, case: &mut Case, above: NameRef<'_>) -> bool {
    let records = zone.records(Section::Answer, above, above, Rtype::DNAME);
    let base = NameRef::from_wire(&records[0].rdata).expect("a name").to_canonical();
    let mut target = base;
    let labels: Vec<Vec<u8>> = case.last.view().labels().map(<[u8]>::to_vec).collect();
    let count = case.last.view().label_count() - above.label_count();
    for label in labels[..count].iter().rev() {
        target = Name::prepend(label, target.view()).expect("a short name");
    }
    case.push(records);
    case.records.push(Record {
        section: Section::Answer,
        owner: case.last.clone(),
        rtype: Rtype::CNAME,
        class: Class::IN,
        ttl: 3600,
        rdata: target.wire().to_vec(),
    });
    case.last = target;
    true
}

fn push_soa(zone: &Zone, case: &mut Case) {
    case.push(zone.records(Section::Authority, zone.apex.view(), zone.apex.view(), Rtype::SOA));
}

/// The record that matches a name, and the name's proof.
fn matching(zone: &Zone, case: &mut Case, name: NameRef<'_>) {
    prove(zone, case, name);
    case.matched = Some(name.to_canonical());
}

/// The record that covers a name, and the name's proof.
fn cover(zone: &Zone, case: &mut Case, name: NameRef<'_>) {
    prove(zone, case, name);
    case.covered.push(name.to_canonical());
}

fn prove(zone: &Zone, case: &mut Case, name: NameRef<'_>) {
    let (hash, rdata) = zone.prove(&zone.vrf, name);
    let owner = zone.covering(&hash);
    case.push(zone.records(Section::Authority, owner.view(), owner.view(), Rtype::NSEC5));
    let (section, owner, ttl) = (Section::Authority, name.to_canonical(), 900);
    case.push(vec![Record { section, owner, rtype: Rtype::NSEC5PROOF, class: Class::IN, ttl, rdata }]);
}
