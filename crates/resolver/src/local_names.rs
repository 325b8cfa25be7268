//! Names that the resolver answers itself: special-use names (RFC 6761) and locally served zones
//! (RFC 6303), and its identity in class CH (RFC 4892). [`known_zones`] lists all of them.
//!
//! - A negative answer has an SOA record of the local zone, as RFC 6303 §3 defines it. Answers have
//!   no signatures: the zones that are delegated at all have insecure delegations.
//! - The DS RRset of the apex of a local zone is not local. It is in the parent zone, where it, or
//!   the proof that there is none, can be validated (RFC 8375 §4, RFC 9665 §8.4). For top-level
//!   names that the DNS does not have, such as `onion.`, the result is the NXDOMAIN of the root zone.
//! - A local zone is off if the configuration says so. A forward or stub zone at or below a local
//!   zone has priority for its names.

mod table;

use crate::name_map::NameMap;
use crate::record::{RecordData, Rrset, Security};
use crate::zones::{ZoneRule, ZoneRules};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use nonesuch_server::chaos::Chaos;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use table::{Apexes, Content, LOOPBACK_IPV4, ROWS};

/// TTL of all records, in seconds, and the minimum field of SOA records (RFC 6303 §3).
const TTL: u32 = 10_800;
/// RNAME of SOA records (RFC 6303 §3): `nobody.invalid.`
const RNAME: &[u8] = b"\x06nobody\x07invalid\0";
/// `localhost.`
const LOCALHOST: &[u8] = b"\x09localhost\0";

/// An answer without queries to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAnswer {
    /// NOERROR, NXDOMAIN, or REFUSED for a query of class CH.
    pub rcode: Rcode,
    /// The answer section.
    pub answer: Vec<Rrset>,
    /// The authority section: an SOA record if the answer is negative.
    pub authority: Vec<Rrset>,
}

/// A zone that resolvers serve locally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalZone {
    /// The apex.
    pub apex: Name,
    /// The RFC that reserves the name.
    pub source: &'static str,
}

/// Error: a name is not the apex of a local zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{name}' is not a local zone, so it cannot be switched off: remove it (a forward or stub zone does not need it)"
)]
pub struct UnknownLocalZone {
    /// The name.
    pub name: Name,
}

/// Returns all local zones.
#[must_use]
pub fn known_zones() -> Vec<LocalZone> {
    let zones = expand_rows();
    zones.map(|(apex, _, source)| LocalZone { apex, source }).collect()
}

/// Returns apex, content and source of each local zone.
fn expand_rows() -> impl Iterator<Item = (Name, Content, &'static str)> {
    let parse = |text: &str| text.parse().expect("a name of the table");
    ROWS.iter().flat_map(move |row| {
        let apexes: Vec<Name> = match &row.apexes {
            Apexes::One(apex) => vec![parse(apex)],
            Apexes::Numbers(range, parent) => {
                range.clone().map(|number| parse(&format!("{number}.{parent}"))).collect()
            }
        };
        apexes.into_iter().map(|apex| (apex, row.content, row.source))
    })
}

/// A local zone that is on.
#[derive(Clone, Debug)]
struct Zone {
    content: Content,
    soa: Rrset,
}

/// An entry of the table of names. Zones are given by their index.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// The apex of a local zone.
    Apex(usize),
    /// A name that exists below the apex of a local zone: it has a PTR record with `localhost.`, or
    /// is an empty non-terminal.
    Existing { zone: usize, has_pointer: bool },
    /// The apex of a forward or stub zone. If it is below the apex of a local zone, that zone is the
    /// parent.
    Configured { parent: Option<usize> },
}

/// Where a name is in a local zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Apex,
    Existing { has_pointer: bool },
    Elsewhere,
}

/// The names that a resolver answers itself.
#[derive(Clone, Debug)]
pub struct LocalNames {
    entries: NameMap<Entry>,
    zones: Vec<Zone>,
    chaos: Chaos,
}

impl LocalNames {
    /// Returns all local zones without those whose apexes are in `disabled`. `rules` has the forward
    /// and stub zones, which have priority; `chaos` has the answers in class CH.
    ///
    /// # Errors
    /// A name in `disabled` is not the apex of a local zone.
    pub fn new(disabled: &[Name], rules: &ZoneRules, chaos: Chaos) -> Result<Self, UnknownLocalZone> {
        let known: Vec<_> = expand_rows().collect();
        if let Some(name) = disabled.iter().find(|name| !known.iter().any(|(apex, ..)| apex == *name)) {
            return Err(UnknownLocalZone { name: name.clone() });
        }
        let mut names = Self { entries: NameMap::default(), zones: Vec::new(), chaos };
        for (apex, content, _) in known {
            if !disabled.contains(&apex) {
                names.entries.insert(apex.view(), Entry::Apex(names.zones.len()));
                names.zones.push(Zone { content, soa: soa(&apex) });
            }
        }
        names.give_way_to(rules);
        names.add_loopback_pointer();
        Ok(names)
    }

    /// Adds the PTR record of 127.0.0.1, unless a forward or stub zone has its name.
    fn add_loopback_pointer(&mut self) {
        let name: Name = LOOPBACK_IPV4.parse().expect("a name of the table");
        if let Some((below, zone)) = self.enclosing_zone(name.view()) {
            self.entries.insert(name.view(), Entry::Existing { zone, has_pointer: true });
            self.add_empty_non_terminals(name.view(), below, zone);
        }
    }

    /// Excludes the names of forward and stub zones.
    fn give_way_to(&mut self, rules: &ZoneRules) {
        let mut rules: Vec<&Arc<ZoneRule>> = rules.iter().collect();
        // A rule below another one must find it in the table.
        rules.sort_by_key(|rule| rule.apex.view().label_count());
        for rule in rules {
            let apex = rule.apex.view();
            match self.enclosing_zone(apex) {
                None => {}
                Some((0, _)) => {
                    self.entries.insert(apex, Entry::Configured { parent: None });
                }
                Some((below, zone)) => {
                    self.entries.insert(apex, Entry::Configured { parent: Some(zone) });
                    self.add_empty_non_terminals(apex, below, zone);
                    let content = &mut self.zones[zone].content;
                    // NXDOMAIN for the local apex would deny the configured zone too (RFC 8020).
                    if *content == Content::Absent {
                        *content = Content::Empty;
                    }
                }
            }
        }
    }

    /// Adds the names between `name` and the apex of its zone, which is `below` labels above `name`.
    /// They exist, because `name` exists: NXDOMAIN would deny `name` too (RFC 8020).
    fn add_empty_non_terminals(&mut self, name: NameRef<'_>, below: usize, zone: usize) {
        let ancestors = std::iter::successors(name.parent(), |name| name.parent());
        for ancestor in ancestors.take(below.saturating_sub(1)) {
            if self.entries.get(ancestor).is_none() {
                self.entries.insert(ancestor, Entry::Existing { zone, has_pointer: false });
            }
        }
    }

    /// Returns the local zone of `name`, after the number of labels that `name` has below its apex.
    /// Returns `None` if there is none, or if a forward or stub zone is in between.
    fn enclosing_zone(&self, name: NameRef<'_>) -> Option<(usize, usize)> {
        let found = self.entries.find_map(name, |below, entry| match entry {
            Entry::Apex(zone) => Some(Some((below, *zone))),
            Entry::Existing { .. } => None,
            Entry::Configured { .. } => Some(None),
        });
        found.flatten()
    }

    /// Returns the answer to a question, or `None` if it is not local. All questions of class CH are
    /// local; those of classes other than IN and CH are not.
    #[must_use]
    pub fn answer(&self, name: NameRef<'_>, rtype: Rtype, class: Class) -> Option<LocalAnswer> {
        match class {
            Class::IN => {
                let (zone, place) = self.find(name, rtype)?;
                Some(self.zones.get(zone)?.answer(place, name, rtype))
            }
            Class::CH => Some(self.answer_chaos(name, rtype)),
            _ => None,
        }
    }

    /// Returns the local zone that answers a question, and the place of the name in it.
    fn find(&self, name: NameRef<'_>, rtype: Rtype) -> Option<(usize, Place)> {
        let found = self.entries.find_map(name, |below, entry| match *entry {
            // RFC 4035 §3.1.4.1: the DS RRset of an apex is in the parent zone.
            Entry::Apex(_) if below == 0 && rtype == Rtype::DS => Some(None),
            Entry::Apex(zone) if below == 0 => Some(Some((zone, Place::Apex))),
            Entry::Apex(zone) => Some(Some((zone, Place::Elsewhere))),
            Entry::Existing { zone, has_pointer } => {
                (below == 0).then_some(Some((zone, Place::Existing { has_pointer })))
            }
            Entry::Configured { parent: Some(zone) } if below == 0 && rtype == Rtype::DS => {
                Some(Some((zone, Place::Existing { has_pointer: false })))
            }
            Entry::Configured { .. } => Some(None),
        });
        found.flatten()
    }

    fn answer_chaos(&self, name: NameRef<'_>, rtype: Rtype) -> LocalAnswer {
        let Some(text) = self.chaos.find(name, rtype) else {
            return LocalAnswer { rcode: Rcode::REFUSED, answer: Vec::new(), authority: Vec::new() };
        };
        // At most 255 octets: `find` returns no longer text.
        let string: Vec<u8> = std::iter::once(text.len() as u8).chain(text.iter().copied()).collect();
        // RFC 4892 §2: TTL 0, because the next query may reach another server.
        let answer = Rrset { class: Class::CH, ttl: 0, ..rrset(name, Rtype::TXT, &[&string]) };
        LocalAnswer { rcode: Rcode::NOERROR, answer: vec![answer], authority: Vec::new() }
    }
}

impl Zone {
    fn answer(&self, place: Place, name: NameRef<'_>, rtype: Rtype) -> LocalAnswer {
        let Some(mut answer) = self.rrsets(place, name) else {
            return self.negative(Rcode::NXDOMAIN);
        };
        answer.retain(|rrset| rtype == Rtype::ANY || rrset.rtype == rtype);
        if answer.is_empty() {
            return self.negative(Rcode::NOERROR);
        }
        LocalAnswer { rcode: Rcode::NOERROR, answer, authority: Vec::new() }
    }

    fn negative(&self, rcode: Rcode) -> LocalAnswer {
        LocalAnswer { rcode, answer: Vec::new(), authority: vec![self.soa.clone()] }
    }

    /// Returns the RRsets of a name, or `None` if it does not exist.
    fn rrsets(&self, place: Place, name: NameRef<'_>) -> Option<Vec<Rrset>> {
        match (self.content, place) {
            // RFC 6761 §6.3: address queries have a positive answer, others a negative one.
            (Content::Loopback, _) => Some(loopback_addresses(name)),
            (_, Place::Existing { has_pointer: true }) => Some(vec![pointer(name)]),
            (_, Place::Existing { has_pointer: false }) => Some(Vec::new()),
            (Content::Empty | Content::NoData, Place::Apex) => Some(self.apex_rrsets(name)),
            (Content::Pointer, Place::Apex) => {
                Some(self.apex_rrsets(name).into_iter().chain([pointer(name)]).collect())
            }
            // RFC 9462 §6.4: NODATA for all names below `resolver.arpa.`, because NXDOMAIN in a cache
            // would hide the names that another resolver has.
            (Content::NoData, Place::Elsewhere) => Some(Vec::new()),
            (Content::Absent, Place::Apex | Place::Elsewhere) => None,
            (Content::Empty | Content::Pointer, Place::Elsewhere) => None,
        }
    }

    /// Returns the SOA and NS RRsets of RFC 6303 §3. The name of the server is the apex, which has no
    /// address: clients find no server for dynamic updates.
    fn apex_rrsets(&self, name: NameRef<'_>) -> Vec<Rrset> {
        let soa = Rrset { owner: name.to_name(), ..self.soa.clone() };
        vec![soa, rrset(name, Rtype::NS, &[self.soa.owner.wire()])]
    }
}

fn soa(apex: &Name) -> Rrset {
    let mut rdata = [apex.wire(), RNAME].concat();
    // Serial, refresh, retry, expire, minimum.
    for field in [1, 3600, 1200, 604_800, TTL] {
        rdata.extend_from_slice(&field.to_be_bytes());
    }
    rrset(apex.view(), Rtype::SOA, &[&rdata])
}

fn loopback_addresses(name: NameRef<'_>) -> Vec<Rrset> {
    vec![
        rrset(name, Rtype::A, &[&Ipv4Addr::LOCALHOST.octets()]),
        rrset(name, Rtype::AAAA, &[&Ipv6Addr::LOCALHOST.octets()]),
    ]
}

fn pointer(name: NameRef<'_>) -> Rrset {
    rrset(name, Rtype::PTR, &[LOCALHOST])
}

fn rrset(owner: NameRef<'_>, rtype: Rtype, records: &[&[u8]]) -> Rrset {
    Rrset {
        owner: owner.to_name(),
        rtype,
        class: Class::IN,
        ttl: TTL,
        records: records.iter().copied().collect(),
        signatures: RecordData::default(),
        security: Security::Insecure,
        insecure: None,
    }
}

#[cfg(test)]
mod tests;
